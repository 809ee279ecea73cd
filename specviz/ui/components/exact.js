/** Why exact: frames of bars over the outline of what the target wants; see specviz/figures/exact.py. */
const GLYPHS = __GLYPHS__;
const percent = (share) => `${(100 * share).toFixed(3)}%`;

const stacked = (meaning, from, size) => {
  const node = area(meaning);
  node.style.bottom = percent(from);
  node.style.height = percent(size);
  return node;
};

const column = (bar, { highest, detail }) => {
  const node = make("span", "column");
  node.title = bar.words;
  const fill = make("span", "fill");
  let top = 0;
  for (const [meaning, size] of bar.parts) {
    if (size > 0) fill.append(stacked(meaning, top / highest, size / highest));
    top += size;
  }
  if (bar.over > 0) fill.append(stacked("only_drafter", bar.over_from / highest, bar.over / highest));
  node.append(stacked("outline", 0, bar.outline / highest), fill);
  if (bar.band) {
    const band = stacked("band", bar.band[0] / highest, (bar.band[1] - bar.band[0]) / highest);
    if (bar.band[1] > 0 && bar.band[0] < 1) node.append(band);
  }
  if (bar.off) {
    const error = make("span", "error", make("span", "glyph rejected", GLYPHS.rejected));
    if (detail !== "Story" && bar.error) error.append(make("span", "amount", bar.error));
    error.style.bottom = percent(Math.max(top, bar.outline, bar.over_from + bar.over) / highest);
    node.append(error);
  }
  return node;
};

const name = ({ token, sign, rest }, index, { others }) => {
  const node = make("span", rest ? "name rest" : "name", sign && GLYPHS[sign] ? make("span", `glyph ${sign}`, GLYPHS[sign]) : null, rest ? others : token);
  node.style.gridColumn = index + 1;
  node.title = token;
  return node;
};

/** A chance as a part of one. */
const meter = (chance) => make("span", "meter", area("both", chance), area("only_drafter", 1 - chance));

const frame = (shown, number, data) => {
  const mark = shown.right ? ["glyph kept", GLYPHS.kept] : shown.wrong ? ["glyph rejected", GLYPHS.rejected] : ["muted", `${number}`];
  const title = make("p", "title", make("span", ...mark), shown.title);
  const plot = make("div", "plot", ...shown.bars.map((bar) => column(bar, { ...data, highest: shown.highest ?? data.highest })));
  plot.setAttribute("role", "img");
  plot.setAttribute("aria-label", shown.bars.map((bar) => bar.words).join("; "));
  const short = data.labels.every(({ token }) => token.length < 3);
  const names = make("div", short ? "names short" : "names", ...data.labels.map((label, index) => name(label, index, data.words)));
  const node = make("div", `frame${shown.wrong ? " wrong" : ""}`, title, plot, names, make("p", "caption", shown.caption, shown.kept === null ? null : meter(shown.kept), shown.hint ? make("span", "hint", shown.hint) : null));
  for (const row of [plot, names]) row.style.setProperty("--columns", data.labels.length);
  node.setAttribute("role", "listitem");
  return node;
};

export default function ({ data: [data], parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".exact");
  const find = (selector) => root.querySelector(selector);
  titled(find("h2"), data.title, data.badge);
  find(".where").textContent = data.where;
  find(".note").replaceChildren(...spans(data.note));
  find(".legend").replaceChildren(...data.legend.map(([meaning, word]) => key(meaning, word)));
  find(".legend").hidden = !data.legend.length;
  // A new deal fills the frames once; a look at it from another event does not.
  const dealt = data.dealt.length ? JSON.stringify([data.where, data.frames.map((shown) => shown.bars.map((bar) => bar.words))]) : "";
  const fresh = dealt !== "" && dealt !== root.dataset.dealt;
  root.dataset.dealt = dealt;
  find(".frames").replaceChildren(...data.frames.map((shown, index) => frame(shown, index + 1, data)));
  find(".frames").style.setProperty("--frames", data.frames.length);
  find(".frames").classList.toggle("many", data.frames.length > 4);
  find(".frames").hidden = !data.frames.length;
  find(".frames").classList.toggle("filling", fresh);
  find(".deal").hidden = !data.can_deal;
  const button = find(".deal button");
  button.textContent = data.words.deal;
  button.onclick = () => setTriggerValue("dealt", true);
  const badge = data.dealt.length ? [make("span", "badge", data.words.badge), " "] : [];
  find(".deal p").replaceChildren(...badge, ...spans(data.dealt));
  find(".why").replaceChildren(...data.why.map((sentence) => make("p", "", ...spans(sentence))));
  find(".formula").hidden = data.detail !== "Formulas" || !data.formula;
  find(".formula").textContent = data.formula ?? "";
  twinTable(root, data.table, data.words.table);
}
