/** Every round as one sentence, and as a table; see specviz/figures/rounds.py. */
export default function ({ data: [data], parentElement }) {
  const root = parentElement.querySelector(".rounds");
  const list = root.querySelector("ol");
  const before = list.children.length;
  root.querySelector(".none").textContent = data.note;
  root.querySelector(".none").hidden = !data.note;
  // A run grows at its end: what was written stays, unless it says something else now.
  data.sentences.forEach((sentence, index) => {
    const said = JSON.stringify(sentence);
    const there = list.children[index];
    if (there?.dataset.said === said) return;
    const node = make("li", "", ...spans(sentence));
    node.dataset.said = said;
    if (there) there.replaceWith(node); else list.append(node);
  });
  while (list.children.length > data.sentences.length) list.lastElementChild.remove();
  if (list.children.length !== before) list.scrollTop = list.scrollHeight;
  twinTable(root.querySelector(".own"), data.table, data.words.table);
}
