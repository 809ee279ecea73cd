/** A server's share of its bandwidth; see specviz/figures/server.py. */
export default function ({ data: [data], parentElement }) {
  const root = parentElement.querySelector(".judgement");
  const find = (selector) => root.querySelector(selector);
  const most = Math.max(data.share, 1);
  find(".verdict").replaceChildren(...spans(data.verdict));
  find(".track").setAttribute("aria-label", data.alt);
  find(".fill").style.width = `${(100 * data.share / most).toFixed(2)}%`;
  find(".full").style.left = `${(100 / most).toFixed(2)}%`;
  find(".full").hidden = most === 1;
  find(".scale").replaceChildren(make("span", "", data.alt), make("span", "", data.end));
  find("ul").replaceChildren(...data.checks.map((check) => make("li", "", check)));
  twinTable(find(".own"), data.table, data.words.table);
  find(".formula").textContent = data.formula ?? "";
  find(".formula").hidden = !data.formula;
}
