/** The lines that ran: source with the numbers of one place beside each line; see specviz/figures/lines.py. */
const line = ({ number, text, ran, said }, words) => {
  const mark = make("span", "mark", ran ? "▸" : "", make("span", "visually-hidden", text.trim() ? words[ran ? "ran" : "idle"] : ""));
  return make("div", ran ? "line ran" : "line", make("span", "number", `${number}`), mark, make("code", "", text || " "), make("span", "said", said));
};

const written = (shown, words) =>
  make("div", "function", make("p", "title", make("b", "mono", shown.name), make("span", "muted small", shown.where)), make("div", "source", ...shown.lines.map((one) => line(one, words))));

export default function ({ data: [data], parentElement }) {
  const root = parentElement.querySelector(".lines");
  const find = (selector) => root.querySelector(selector);
  root.setAttribute("aria-label", data.title);
  find(".story").replaceChildren(...spans(data.story));
  const [own, called] = [true, false].map((mine) => data.functions.filter((shown) => shown.own === mine).map((shown) => written(shown, data.words)));
  find(".own").replaceChildren(...own);
  find(".called").hidden = !data.numbers || !called.length;
  find(".called summary").textContent = data.words.called;
  find(".called > div").replaceChildren(...called);
  twinTable(find(".twin_box"), data.table, data.words.table);
}
