/** Helpers of every component. Text from a model only ever goes in through textContent. */
const make = (tag, className, ...children) => {
  const node = document.createElement(tag);
  if (className) node.className = className;
  for (const child of children) {
    if (child !== null && child !== undefined) node.append(child);
  }
  return node;
};

/** [text, kind] pairs: kind is "", "strong", "token" or both. */
const spans = (pairs) => pairs.map(([text, kind]) => make(kind.includes("strong") ? "b" : "span", kind.includes("token") ? "token-text" : "", text));

/** Makes up for the rounding error of a short sum. */
const TIE = 1 + 1e-14;

/** A probability that never looks like 0 or 1 unless it is; see specviz/figures/numbers.py. */
const probability = (value, digits) => {
  if (value > 0 && value < 1e-4) return "<0.0001";
  if ([0, 1].includes(value)) return value.toFixed(0);
  const whole = value * TIE;
  while (digits < 12 && [0, 1].includes(Number(whole.toFixed(digits)))) digits += 1;
  return whole.toFixed(digits);
};

/** What is missing to 1, so that the two add up as they are written. */
const complement = (written, value) => {
  if (written.startsWith("<")) return probability(value, 2);
  return probability(Number((1 - Number(written)).toFixed(12)), written.split(".")[1]?.length ?? 2);
};

/** A class name from Python's spelling of a meaning: only_target → only-target. */
const area = (meaning, width, height) => {
  const node = make("span", `area ${meaning.replace("_", "-")}`);
  if (width !== undefined) node.style.width = `${(100 * width).toFixed(3)}%`;
  if (height !== undefined) node.style.height = height;
  return node;
};

/** A panel's title and, where the panel says so itself, where its numbers come from. */
const titled = (heading, title, badge) => heading.replaceChildren(title, ...(badge ? [" ", make("span", "origin", badge)] : []));

const key = (meaning, word) => make("span", "key", area(meaning), word);

/** The table behind a figure, folded away; open stays open when the numbers change. */
const twinTable = (box, table, title) => {
  let details = box.querySelector("details.twin");
  if (details) details.hidden = !table.rows.length;
  if (!table.rows.length) return;
  if (!details) {
    details = make("details", "twin", make("summary", "", title), make("div", "scroll"));
    box.append(details);
  }
  const head = make("tr", "", ...table.columns.map((name) => Object.assign(make("th", "", name), { scope: "col" })));
  const rows = table.rows.map((cells) => make("tr", "", ...cells.map((cell) => make("td", "", cell))));
  const node = make("table", "", make("caption", "", table.caption), make("thead", "", head), make("tbody", "", ...rows));
  details.querySelector(".scroll").replaceChildren(node);
};
