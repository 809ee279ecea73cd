/** The place: one row a token, on one baseline; see specviz/figures/place.py. */
const GLYPHS = __GLYPHS__;
const LEGENDS = {
  shared: ["both", "only_target", "only_drafter"],
  waiting: ["only_drafter"],
  alone: ["target"],
  pale: ["target", "drafter"],
  unknown: [],
};

/** What only one of the models wants: the target above, the drafter below, both where a row holds many tokens. */
const beyond = (bar, scale) => {
  const node = make("span", "split");
  const width = Math.max(bar.only_target, bar.only_drafter);
  node.style.width = `${(100 * width) / scale}%`;
  const half = (meaning, size) => {
    const part = area(meaning, width ? size / width : 0);
    if (!size) part.style.visibility = "hidden";
    return part;
  };
  node.append(half("only_target", bar.only_target), half("only_drafter", bar.only_drafter));
  return node;
};

const track = (bar, mode, scale) => {
  if (mode === "pale") {
    const [target, drafter] = [area("target", bar.only_target), area("drafter", bar.only_drafter)];
    target.classList.toggle("boxed", bar.p === 1);
    drafter.classList.toggle("boxed", bar.q === 1);
    return make("span", "track pale", target, drafter);
  }
  const node = make("span", "track");
  if (mode === "alone") node.append(area("target", bar.p / scale));
  else {
    if (bar.both > 0) node.append(area("both", bar.both / scale));
    node.append(beyond(bar, scale));
  }
  return node;
};

const numbers = (written) => make("span", "numbers", ...written.split(/ {2}| · /).map((part) => {
  const [name, value] = part.includes(" ") ? part.split(" ") : ["", part];
  return make("span", "", name ? `${name} ` : "", make("b", "", value));
}));

const row = (bar, data, kind) => {
  const line = track(bar, data.mode, data.longest);
  if (bar.word && data.mode !== "pale") line.append(make("span", "word", bar.word));
  const sign = bar.sign && bar.sign !== "plain" ? make("span", `glyph ${bar.sign}`, GLYPHS[bar.sign]) : null;
  const token = make("span", "token mono", sign, bar.label);
  token.title = bar.word ? `${bar.label} · ${bar.word}` : bar.label;
  const node = make("div", `row ${kind}`, token, line, numbers(bar.written));
  node.setAttribute("role", "listitem");
  return node;
};

const together = (bar, data) => {
  if (!bar || data.mode !== "shared") return [];
  const shared = bar.both > 0 ? area("both", bar.both) : null;
  const fits = bar.both > 0.45;
  if (fits) {
    shared.classList.add("fits");
    shared.textContent = `${data.words.shared} ${data.shared}`;
  }
  const line = make("span", "track", shared, beyond(bar, 1));
  const written = fits ? bar.written : `${data.shared} ${data.words.shared}, ${bar.written}`;
  const words = written.split(", ").map((part) => {
    const [value, ...rest] = part.split(" ");
    return make("div", "", make("b", "", value), ` ${rest.join(" ")}`);
  });
  return [make("span", "label", bar.label), line, make("span", "words", ...words)];
};

export default function ({ data: [data], parentElement }) {
  const root = parentElement.querySelector(".place");
  const find = (selector) => root.querySelector(selector);
  find("h2").textContent = data.title;
  find(".legend").replaceChildren(...LEGENDS[data.mode].map((meaning) => key(meaning, data.words[meaning])));
  find(".note").textContent = data.note;
  find(".note").hidden = !data.note;
  const heads = data.mode === "pale" ? [make("div", "row heads", make("span"), make("span"), make("span", "numbers", ...data.words.logits.map((name) => make("span", "", name))))] : [];
  const others = data.others ? [row(data.others, data, "others")] : [];
  find(".rows").replaceChildren(...heads, ...data.bars.map((bar) => row(bar, data, "")), ...others);
  find(".together").replaceChildren(...together(data.together, data));
  find(".formula").hidden = !data.formula;
  find(".formula").textContent = data.formula ?? "";
  twinTable(root, data.table, data.words.table);
}
