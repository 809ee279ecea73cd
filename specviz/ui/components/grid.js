/** Texts under many drafters, a cell each, and two of them side by side; see specviz/figures/invariance.py. */
const sameKey = (a, b) => a && b && a.every((part, index) => part === b[index]);

const cell = (one, data, pick, wide) => {
  const sign = make("span", "sign", one.same ? "=" : "≠");
  sign.setAttribute("aria-hidden", "true");
  const reads = make("span", "", sign, `${one.reads}${wide ? ` ${data.words.reads}` : ""}`);
  const bar = make("span", "bar", area("target", one.part));
  const chosen = data.compared?.keys.some((key) => sameKey(key, one.key));
  const node = make("button", `cell ${one.same ? "" : "differs"} ${chosen ? "chosen" : ""} ${wide ? "wide" : ""}`, reads, bar);
  node.type = "button";
  node.title = `${one.name}: ${data.words[one.same ? "same" : "differs"]}, ${one.reads} ${data.words.reads}`;
  node.setAttribute("aria-label", node.title);
  node.setAttribute("aria-pressed", Boolean(chosen));
  node.onclick = () => pick(one.key);
  return node;
};

const heading = (tag, text, scope) => Object.assign(make(tag, "", text), { scope });

const matrix = (one, data, pick) => {
  const head = make("tr", "", heading("th", data.words.gamma, "col"), ...one.gammas.map((gamma) => heading("th", String(gamma), "col")));
  const rows = one.rows.map(([name, cells]) =>
    make("tr", "", heading("th", name, "row"), ...cells.map((found) => make("td", "", found ? cell(found, data, pick) : "–"))));
  const alone = make("td", "", cell(one.alone, data, pick, true));
  alone.colSpan = one.gammas.length || 1;
  const table = make("table", "", make("thead", "", head), make("tbody", "", make("tr", "", heading("th", data.words.alone, "row"), alone), ...rows));
  return make("div", "matrix", make("h2", "", one.title), data.story ? null : make("p", "told", one.told), make("div", "scroll", table), one.why ? make("p", "told", one.why) : null);
};

const textBox = (name, ...content) => make("div", "text", make("div", "side", name), make("p", "", ...content));

const compared = (two, words) => {
  if (!two) return [];
  const parted = two.ours.length || two.theirs.length;
  const nodes = [make("p", "", make("b", "", `${two.same ? "=" : "≠"} `), two.told, make("span", "hint", ` ${words.hint}`))];
  if (parted) nodes.push(...(two.common ? [textBox(words.common, two.common)] : []));
  else nodes.push(textBox(two.names.join("\n"), two.common));
  if (parted) nodes.push(make("div", "pair", textBox(two.names[0], ...spans(two.ours)), textBox(two.names[1], ...spans(two.theirs))));
  return nodes;
};

export default function ({ data: [data], parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".grid");
  const pick = (key) => setTriggerValue("picked", key);
  const focused = root.getRootNode().activeElement?.getAttribute("aria-label");
  const mark = (same) => make("span", "", make("span", `cell ${same ? "" : "differs"}`, same ? "=" : "≠"), ` ${data.words[same ? "same" : "differs"]}`);
  const legend = make("div", "legend", mark(true), mark(false), key("target", data.words.bar));
  root.querySelector(".matrices").replaceChildren(...data.matrices.map((one) => matrix(one, data, pick)));
  root.querySelector(".legend")?.remove();
  root.prepend(legend);
  root.querySelector(".compared").replaceChildren(...compared(data.compared, data.words));
  twinTable(root.querySelector(".own"), data.table, data.words.table);
  if (focused) [...root.querySelectorAll("button.cell")].find((node) => node.getAttribute("aria-label") === focused)?.focus();
}
