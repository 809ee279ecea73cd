/** The tally; see specviz/figures/tallies.py. */
const measure = (one) => {
  const node = make(
    "div", `measure${one.few ? " few" : ""}`,
    make("div", "name", one.name), make("div", "value", one.value),
    make("div", "fraction", one.fraction), make("div", "known", one.known_as),
  );
  node.setAttribute("role", "listitem");
  return node;
};

export default function ({ data: [data], parentElement }) {
  const root = parentElement.querySelector(".tally");
  const find = (selector) => root.querySelector(selector);
  find("h2").textContent = data.title;
  find(".measures").replaceChildren(...data.measures.map(measure));
  find(".sentences").replaceChildren(
    ...data.lines.map((line) => make("p", "", line)),
    ...(data.twin.length ? [make("p", "", ...spans(data.twin))] : []),
  );
  twinTable(root, data.table, data.words.table);
}
