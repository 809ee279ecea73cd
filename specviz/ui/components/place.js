/** The place: one row a token, on one baseline or in two lanes; see specviz/figures/place.py. */
const GLYPHS = __GLYPHS__;
const KEYS = {
  shared: { both: "both", only_target: "only_target", only_drafter: "only_drafter" },
  waiting: { only_drafter: "q" },
  alone: { target: "p" },
  unknown: {},
};
const isLanes = (data) => ["race", "pale"].includes(data.mode);

const legend = (data) => {
  if (isLanes(data)) return data.models.map((model) => key(model, data.words.lane[model]));
  const keys = Object.entries(KEYS[data.mode]).map(([meaning, word]) => key(meaning, data.words[word]));
  if (data.mode !== "shared") return keys;
  const owed = data.bars.some((bar) => bar.owed !== null);
  return [...keys, make("span", "break"), ...sumKeys(data.words), ...(owed ? [make("span", "key", make("span", "sample", owedArea(1, 0.5)), data.words.owed)] : [])];
};

/** p as a pale outline, w·p filled inside it. */
const owedArea = (whole, part) => {
  const node = make("span", "owed", area("target", part));
  node.style.width = `${100 * whole}%`;
  return node;
};

const lane = (model, one, data) => {
  if (!data.models.includes(model)) return null;
  const node = make("span", `lane ${one?.first ? "first" : ""}`, one ? area(model, one.length) : null);
  if (one?.beyond) node.append(make("span", "beyond", "▸"));
  if (one?.first) node.append(make("span", "flag", ...(data.mode === "race" ? [make("span", "glyph", "⚑"), " "] : []), data.words.first[data.mode]));
  return node;
};

const track = (bar, data) => {
  if (isLanes(data)) return make("span", `track lanes ${data.mode}`, lane("target", bar.target, data), lane("drafter", bar.drafter, data));
  const line = make("span", "bar");
  if (data.mode === "alone") line.append(area("target", bar.p / data.longest));
  else line.append(...baseline(bar, data.longest));
  if (bar.word) line.append(make("span", "word", bar.word));
  const owed = bar.owed === null || !bar.p ? null : owedArea(bar.p / data.longest, bar.owed / bar.p);
  return make("span", "track", line, owed);
};

const row = (bar, data, kind) => {
  const sign = bar.sign && bar.sign !== "plain" ? make("span", `glyph ${bar.sign}`, GLYPHS[bar.sign]) : null;
  const token = make("span", "token mono", sign, bar.label);
  token.title = bar.word ? `${bar.label} · ${bar.word}` : bar.label;
  const line = track(bar, data);
  // Story has numbers where the story is: at the draft, what replaced it, and the target's own choice.
  const told = data.detail !== "Story" || (bar.word && kind !== "others" && data.mode !== "race" && data.mode !== "pale");
  const node = make("div", `row ${kind}`, token, line, numbers(told ? bar.written : []));
  if (isLanes(data)) {
    const below = [bar.word, data.detail === "Formulas" ? bar.formula : ""].filter(Boolean).join(" · ");
    if (below) node.append(make("span", "below", below));
  }
  node.setAttribute("role", "listitem");
  return node;
};

export default function ({ data: [data], parentElement }) {
  const root = parentElement.querySelector(".place");
  const find = (selector) => root.querySelector(selector);
  const say = (selector, text) => {
    find(selector).textContent = text;
    find(selector).hidden = !text;
  };
  titled(find("h2"), data.title, data.badge);
  find(".legend").replaceChildren(...legend(data));
  find(".note").replaceChildren(...spans(data.note));
  find(".note").hidden = !data.note.length;
  const named = data.bars.length && !(data.detail === "Story" && isLanes(data));
  root.dataset.columns = named ? data.heads.length : 0;
  const heads = named ? [make("div", "row heads", make("span"), make("span"), numbers(data.heads))] : [];
  heads.forEach((node) => node.setAttribute("aria-hidden", "true"));
  const others = data.others ? [row(data.others, data, "others")] : [];
  find(".rows").replaceChildren(...heads, ...data.bars.map((bar) => row(bar, data, "")), ...others);
  find(".together").replaceChildren(...together(data.together, data));
  say(".beside", data.beside);
  say(".reach", data.detail === "Story" ? "" : data.reach);
  say(".formula", data.detail === "Formulas" ? data.formula : "");
  twinTable(root, data.table, data.words.table);
}
