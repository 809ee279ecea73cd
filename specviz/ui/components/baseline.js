/** p and q on one baseline: what both want, and beyond it what only one of them does. */

/** What p and q are made of. */
const SUMS = { p: ["both", "only_target"], q: ["both", "only_drafter"] };

const sumKeys = (words) => Object.entries(SUMS).map(([name, parts]) => make("span", "key", ...parts.map((part) => area(part)), words[name]));

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

/** A token's bar on a scale that ends at `longest`. */
const baseline = (bar, longest) => [bar.both > 0 ? area("both", bar.both / longest) : "", beyond(bar, longest)];

const numbers = (written) => make("span", "numbers", ...written.map((value) => make("span", "", value)));

const together = (bar, data) => {
  if (!bar || !data.shared) return [];
  const story = data.detail === "Story";
  const value = story ? data.shared_times : data.shared;
  const shared = bar.both > 0 ? area("both", bar.both) : null;
  const fits = bar.both > (story ? 0.5 : 0.4);
  if (fits) {
    shared.classList.add("fits");
    shared.textContent = `${data.words.shared} ${value}`;
  }
  const line = (className, number, word) => make("div", className, make("b", "", number), ` ${word}`);
  const words = [line(fits ? "inside" : "", value, data.words.shared)];
  if (!story) words.push(...["only_target", "only_drafter"].map((part, index) => line("", bar.written[index], data.words[part])));
  return [make("span", "label", bar.label), make("span", "track", make("span", "bar", shared, beyond(bar, 1))), make("span", "words", ...words)];
};
