/** The tally and the twin; see specviz/figures/tallies.py and twin.py. */
const percent = (share) => `${(100 * share).toFixed(2)}%`;

const measure = (one) => {
  const node = make(
    "div", `measure${one.few ? " few" : ""}`,
    make("div", "name", one.name), make("div", "value", one.value), make("div", "fraction", one.fraction),
    one.what ? make("div", "what", one.what) : null, one.whole ? make("div", "whole", one.whole) : null,
  );
  node.setAttribute("role", "listitem");
  return node;
};

/** A bar on a track: parts are [class, share]. */
const track = (parts, few) => {
  const node = make("div", `track${few ? " few" : ""}`, ...parts.map(([meaning, share]) => area(meaning, share)));
  node.setAttribute("aria-hidden", "true");
  return node;
};

const number = (bar) => make("span", `number${bar.few ? " few" : ""}`, make("span", "", bar.value), make("span", "of", bar.fraction.replace("/", " of ")));

const half = (name, bar) => make(
  "div", "half", make("span", "side", name), track(bar.share === null ? [] : [["both", bar.share]], bar.few), number(bar),
);

const placeRow = (one, words) => {
  const node = make("div", "row", make("b", "", `${one.place}`), half(words.reached, one.reached), half(words.kept, one.kept));
  node.setAttribute("role", "listitem");
  return node;
};

const lengthRow = (one) => {
  const parts = one.parts.map(([meaning, , share]) => [meaning, share]);
  const node = make("div", "row", make("b", "", `${one.tokens}`), track(parts, false), make("span", "number", one.fraction));
  node.setAttribute("role", "listitem");
  return node;
};

const list = (rows) => {
  const node = make("div", "rows", ...rows);
  node.setAttribute("role", "list");
  return node;
};

const fold = (line) => (line ? [make("p", "muted small fold", line)] : []);

const paintPlaces = (box, places, folded, words) => {
  box.hidden = !places.length;
  if (box.hidden) return;
  const few = places.some((one) => one.reached.few || one.kept.few);
  box.replaceChildren(
    make("figcaption", "", words.places),
    make("div", "row heads", make("b", "", words.place), make("span", "", words.reached), make("span", "", words.kept)),
    list(places.map((one) => placeRow(one, words))),
    ...fold(folded),
    ...(few ? [make("p", "muted small", words.few)] : []),
  );
};

const paintLengths = (box, lengths, folded, words) => {
  box.hidden = !lengths.length;
  if (box.hidden) return;
  // Bonus and plain read are drawn from the target alike: one colour, one key.
  const seen = new Map();
  for (const [meaning, fate] of lengths.flatMap((one) => one.parts)) seen.set(meaning, (seen.get(meaning) ?? new Set()).add(words.closings[fate]));
  const keys = make("div", "keys", ...[...seen].map(([meaning, closings]) => key(meaning, [...closings].join(words.or))));
  box.replaceChildren(make("figcaption", "", words.lengths), list(lengths.map(lengthRow)), ...fold(folded), keys);
};

/** The expectation with its band, and the marker where the run stands. */
const paintBand = (box, band, words) => {
  box.hidden = !band;
  if (box.hidden) return;
  const at = (value) => percent(band.judged ? value / band.judged : 0);
  const span = make("span", "spread");
  span.style.left = at(band.low);
  span.style.width = at(band.high - band.low);
  const middle = make("span", "middle");
  middle.style.left = at(band.expected);
  const pin = make("span", "pin", make("b", "", `${band.kept}`));
  pin.style.left = at(band.kept);
  const scale = make("div", "scale", span, middle, pin);
  scale.setAttribute("aria-hidden", "true");
  box.replaceChildren(
    make("figcaption", "", words.band), scale,
    make("div", "ends", make("span", "", "0"), make("span", "", words.judged.replace("{judged}", band.judged))),
    make("div", "keys", make("span", "key", make("span", "sign-pin"), words.pin), make("span", "key", make("span", "sign-spread"), words.spread)),
  );
};

const textBox = (name, ...content) => make("div", "text", make("div", "side", name), make("p", "", ...content));

/** Whether a text is longer than it is shown; they are shown whole or cut together. */
const measureTexts = (box) => {
  const texts = [...box.querySelectorAll(".text p")];
  const cut = texts.filter((node) => node.scrollHeight > node.clientHeight + 2);
  for (const node of texts) node.classList.toggle("cut", cut.includes(node));
  box.querySelector(".more").hidden = !box.classList.contains("whole") && !cut.length;
};

/** Both texts: the beginning they share, then each on its own from the token that differs. */
const paintTwin = (box, sentence, texts, words) => {
  const shown = sentence.length ? [make("p", "said", ...spans(sentence))] : [];
  if (texts) {
    const parted = texts.ours.length || texts.theirs.length;
    const on = () => (texts.unfinished ? make("span", "muted", words.on) : null);
    if (texts.common) shown.push(textBox(parted ? words.common : words.both, texts.common, parted ? null : on()));
    if (parted) shown.push(make("div", "pair", ...["ours", "theirs"].map((who) => textBox(words[who], ...spans(texts[who]), on()))));
  }
  box.hidden = !shown.length;
  if (!box.firstElementChild) {
    box.append(make("div", "both-texts"), make("button", "more"), make("div", "logits"));
    new ResizeObserver(() => measureTexts(box)).observe(box);
  }
  const more = box.querySelector(".more");
  const name = () => { more.textContent = box.classList.contains("whole") ? words.less : words.more; };
  more.type = "button";
  more.onclick = () => {
    box.classList.toggle("whole");
    name();
    measureTexts(box);
  };
  name();
  box.firstElementChild.replaceChildren(...shown);
  if (texts) twinTable(box.lastElementChild, texts.table, words.logits);
  else box.lastElementChild.replaceChildren();
  measureTexts(box);
};

export default function ({ data: [data], parentElement }) {
  const root = parentElement.querySelector(".tally");
  const find = (selector) => root.querySelector(selector);
  const words = data.words;
  find("h2").textContent = data.title;
  find(".measures").replaceChildren(...data.measures.map(measure));
  find(".pay").replaceChildren(...spans(data.pay));
  find(".pay").hidden = !data.pay.length;
  paintBand(find(".band"), data.band, words);
  paintPlaces(find(".places"), data.places, data.folded.places, words);
  paintLengths(find(".lengths"), data.lengths, data.folded.lengths, words);
  find(".charts").hidden = !data.band && !data.places.length && !data.lengths.length;
  find(".lines").replaceChildren(...data.lines.map((line) => make("p", "", line)));
  paintTwin(find(".twin-texts"), data.twin, data.texts, words);
  find(".formula").textContent = data.formula ?? "";
  find(".formula").hidden = !data.formula;
  twinTable(find(".own"), data.table, words.table);
  twinTable(find(".engines"), data.engines, words.engines);
}
