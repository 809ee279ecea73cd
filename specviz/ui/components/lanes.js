/**
 * Lanes, staircase and price; see specviz/figures/lanes.py. Everything is drawn in sixteenths of the page's letter size
 * (pixels, as a rule), over the panel's own width: on a projector the figure grows with its letters.
 */
const GLYPHS = __GLYPHS__;
const WORDS = __WORDS__;
const [READS, DRAFTER, TARGET, WEIGHTS, KV, ARITHMETIC, PLAIN, TOKENS, KEPT, CLOSING, READ] = Array.from({ length: 11 }, (_, index) => index);
const LEAST = 11; // units of a plain read below which the lanes show their last part only
const WIDE = 20; // units of a plain read in that part
const SHORT = 12; // plain reads that the axis has at least
const STACKED = 4; // glyphs in a column; of more kept drafts the number is written
const LINE = 14; // units of a glyph

let namespace; // of the figures that stand in the page
const draw = (name, attributes, ...children) => {
  const node = document.createElementNS(namespace, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
};
const text = (x, y, words, className, anchor = "start") => draw("text", { x, y, class: className, "text-anchor": anchor }, words);
const rect = (x0, y0, x1, y1) => `M${x0.toFixed(2)} ${y0.toFixed(2)}H${x1.toFixed(2)}V${y1.toFixed(2)}H${x0.toFixed(2)}Z`;
const path = (className, parts) => (parts.length ? [draw("path", { class: className, d: parts.join("") })] : []);
const filled = (template, values) => template.replace(/\{(\w+)\}/g, (_, name) => values[name]);
const many = ([one, more], count) => (count === 1 ? one : more).replace("{count}", count.toLocaleString("en"));

/** Three digits that count, thousands whole. */
const amount = (value) => {
  if (value >= 100) return Math.round(value).toLocaleString("en");
  if (value === 0) return "0";
  return value >= 1 ? value.toFixed(value >= 10 ? 1 : 2) : value.toFixed(Math.min(2 - Math.floor(Math.log10(value)), 6));
};

/** The size of a figure: its width and, once drawn, its height in units. */
const unitsWide = (node) => node.clientWidth / unit();
const unit = () => parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
const sizeTo = (svg, width, height) => {
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("height", height * unit());
};

/** Round numbers from 0 to the largest, about as many as there is room for. */
const ticks = (most, room) => {
  const rough = most / Math.max(room, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough);
  return { step, at: Array.from({ length: Math.floor(most / step + 1e-9) + 1 }, (_, index) => index * step) };
};
const label = (value, step) => value.toLocaleString("en", { maximumFractionDigits: Math.max(0, -Math.floor(Math.log10(step))) });

/** Sums at the end of each round: the run's time, plain decoding's, tokens. */
const climb = (rounds) => {
  const ends = [{ time: 0, plain: 0, tokens: 0, target: 0, drafter: 0, kv: 0, bytes: 0 }];
  for (const one of rounds) {
    const last = ends[ends.length - 1];
    const time = one[DRAFTER] + one[TARGET];
    ends.push({
      time: last.time + time,
      plain: last.plain + one[PLAIN],
      tokens: last.tokens + one[TOKENS],
      drafter: last.drafter + one[WEIGHTS],
      kv: last.kv + one[KV],
      target: last.target + time - one[WEIGHTS] - one[KV],
      arithmetic: (last.arithmetic ?? 0) + one[ARITHMETIC],
    });
  }
  return ends;
};

// --- lanes -----------------------------------------------------------------------------------------------------------

/** What hangs below a read: glyphs of kept drafts, then of the token that closed the round. */
const bought = (one, words) => {
  const kept = one[KEPT] > STACKED - 1 ? [["kept", `${GLYPHS.kept}${words.kept_more.replace("{count}", one[KEPT])}`]] : Array(one[KEPT]).fill(["kept", GLYPHS.kept]);
  return one[CLOSING] ? [...kept, [one[CLOSING], GLYPHS[one[CLOSING]]]] : kept;
};

const paintTime = (svg, { rounds, complete, plain, words }, ends, width) => {
  const now = ends[ends.length - 1].time;
  const alone = ends[ends.length - 1].plain;
  const tokens = ends[ends.length - 1].tokens;
  const most = Math.max(now, alone, SHORT * plain);
  const whole = width / (most / plain) >= LEAST;
  const span = whole ? most : (width / WIDE) * plain;
  const from = whole ? 0 : Math.max(0, Math.min(now - 0.85 * span, most - span));
  const x = (time) => ((time - from) / span) * width;
  const inside = (start, end) => end > from && start < from + span;
  const clip = (value) => Math.min(Math.max(value, 0), width);
  const [upper, lower, height] = [20, 70, 15];
  const nodes = [];

  // The target alone: a block a token, as wide as the read that brings it.
  const before = [], later = [], dots = [];
  rounds.forEach((one, index) => {
    const each = one[PLAIN] / Math.max(one[TOKENS], 1);
    for (let place = 0; place < one[TOKENS]; place++) {
      const start = ends[index].plain + place * each;
      if (!inside(start, start + each)) continue;
      (start + each <= now + plain / 1e3 ? before : later).push(rect(clip(x(start) + 0.75), upper, clip(x(start + each) - 0.75), upper + height));
      if (x(start + each) <= width + 1) dots.push(draw("circle", { class: "dot", cx: x(start + each) - 1.5, cy: upper + height + 8, r: 2.25 }));
    }
  });
  const sized = (count, time) => ({ tokens: many(words.tokens, count), time: `${amount(time)} ms`, rounds: complete ? many(words.rounds, complete) : words.under_way });
  nodes.push(text(0, upper - 6, filled(words.alone, sized(tokens, alone)), "bold"));
  nodes.push(...path("target", before), ...path("target later", later), ...dots);

  // With the drafter: thin reads, a thick one, and below it what it bought.
  const thin = [], thick = [], glyphs = [];
  rounds.forEach((one, index) => {
    const start = ends[index].time;
    if (!inside(start, start + one[DRAFTER] + one[TARGET])) return;
    const each = one[DRAFTER] / Math.max(one[READS], 1);
    const gap = Math.min(0.75, (each / span) * width * 0.2);
    for (let place = 0; place < one[READS] && each > 0; place++) {
      const at = start + place * each;
      if (inside(at, at + each)) thin.push(rect(clip(x(at) + gap), lower, clip(x(at + each) - gap), lower + height));
    }
    const end = start + one[DRAFTER] + one[TARGET];
    if (one[READ]) thick.push(rect(clip(x(end - one[TARGET]) + 0.75), lower, clip(x(end) - 0.75), lower + height));
    const middle = x(end) - Math.max((one[TARGET] / span) * width * 0.5, 4);
    if (middle > 4 && middle < width - 4) {
      bought(one, words).forEach(([fate, glyph], line) => glyphs.push(text(middle, lower + height + LINE * (line + 1), glyph, `glyph ${fate}`, "middle")));
    }
  });
  nodes.push(text(0, lower - 6, filled(words.ours, sized(tokens, now)), "bold"));
  nodes.push(...path("drafter", thin), ...path("target", thick), ...glyphs);
  const end = clip(x(now));
  if (alone > now && x(alone) > end) nodes.push(draw("path", { class: "tail", d: `M${end + 2} ${lower + height / 2}H${clip(x(alone))}` }));
  nodes.push(draw("path", { class: "now", d: `M${end} ${upper - 2}V${lower + height}` }));

  // The axis, and the whole run where the lanes show a part.
  const foot = lower + height + LINE * STACKED + 8;
  const scale = ticks(span, width / 70);
  nodes.push(draw("path", { class: "grid", d: `M0 ${foot}H${width}` }));
  for (let tick = Math.ceil(from / scale.step) * scale.step; tick <= from + span * 1.0001; tick += scale.step) {
    const anchor = x(tick) < 8 ? "start" : x(tick) > width - 14 ? "end" : "middle";
    nodes.push(draw("path", { class: "grid", d: `M${x(tick)} ${foot}v4` }), text(x(tick), foot + 16, label(tick, scale.step), "axis", anchor));
  }
  nodes.push(text(width, foot + 33, words.time, "axis", "end"));
  let bottom = foot + 36;
  if (!whole && getComputedStyle(svg).getPropertyValue("--secondary").trim() !== "none") {
    const all = (time) => (time / most) * width;
    const top = foot + 44;
    nodes.push(draw("path", { class: "target", d: rect(0, top, all(alone), top + 5) }));
    const parts = { target: [], drafter: [] };
    rounds.forEach((one, index) => {
      const start = ends[index].time;
      parts.drafter.push(rect(all(start), top + 9, all(start + one[DRAFTER]), top + 14));
      parts.target.push(rect(all(start + one[DRAFTER]), top + 9, all(start + one[DRAFTER] + one[TARGET]), top + 14));
    });
    nodes.push(...path("drafter", parts.drafter), ...path("target", parts.target));
    nodes.push(draw("path", { class: "frame", d: rect(all(from), top - 3, Math.min(all(from + span), width), top + 17) }));
    nodes.push(text(0, top + 32, words.overview, "axis"));
    bottom = top + 38;
  }
  sizeTo(svg, width, bottom);
  const said = [filled(words.alone, sized(tokens, alone)), filled(words.ours, sized(tokens, now))];
  svg.setAttribute("aria-label", `${said.join("; ")}. ${words.time}.`);
  svg.replaceChildren(...nodes);
};

// --- the staircase ---------------------------------------------------------------------------------------------------

/** An amount of a round's sums in the unit that is shown: bytes are milliseconds of reading. */
const inUnit = (data, unit) => (unit === "GB" ? (time, arithmetic = 0) => (time - arithmetic) * data.gigabytes : (time) => time);

const paintStairs = (svg, data, ends, width, unit, picked) => {
  const { complete, expected, words } = data;
  const shown = ends.slice(0, complete + 1);
  const last = shown[shown.length - 1];
  const sized = inUnit(data, unit);
  const all = (end) => sized(end.time, end.arithmetic);
  const most = Math.max(all(last), sized(last.plain), sized(SHORT * data.plain)) * 1.04;
  const furthest = Math.max(last.tokens, expected.length ? expected[expected.length - 1] : 0, SHORT);
  const [left, top, height] = [46, 8, 190];
  const x = (tokens) => left + (tokens / furthest) * (width - left - 8);
  const y = (value) => top + height * (1 - value / most);
  const nodes = [];
  const up = ticks(most, 5);
  for (const tick of up.at) {
    nodes.push(draw("path", { class: "grid", d: `M${left} ${y(tick)}H${width - 8}` }), text(left - 6, y(tick) + 4, label(tick, up.step), "axis", "end"));
  }
  const across = ticks(furthest, width / 60);
  for (const tick of across.at.filter((one) => one === Math.round(one))) nodes.push(text(x(tick), top + height + 16, label(tick, 1), "axis", "middle"));
  nodes.push(text(width - 8, top + height + 32, words.x, "axis", "end"));

  // Stacked, and stepped as the reads are: a round is paid for before its first token is there.
  const stack = { target: [], drafter: [], kv: [] };
  shown.slice(1).forEach((end, index) => {
    const [from, to] = [x(shown[index].tokens), x(end.tokens)];
    let base = 0;
    for (const part of ["target", "drafter", "kv"]) {
      const value = sized(end[part], part === "target" ? end.arithmetic : 0);
      stack[part].push(rect(from, y(base + value), to, y(base)));
      base += value;
    }
  });
  for (const part of ["target", "drafter", "kv"]) nodes.push(...path(part, stack[part]));
  let line = `M${x(0)} ${y(0)}`;
  shown.slice(1).forEach((end, index) => {
    const each = (end.plain - shown[index].plain) / Math.max(end.tokens - shown[index].tokens, 1);
    for (let token = shown[index].tokens; token < end.tokens; token++) {
      line += `V${y(sized(shown[index].plain + (token + 1 - shown[index].tokens) * each)).toFixed(2)}H${x(token + 1).toFixed(2)}`;
    }
  });
  nodes.push(draw("path", { class: "plain", d: line }));
  if (expected.length > 1) {
    const points = expected.map((tokens, index) => `${x(tokens).toFixed(2)} ${y(all(shown[Math.min(index, complete)])).toFixed(2)}`);
    nodes.push(draw("path", { class: "expected", d: `M${points.join("L")}` }));
  }
  if (picked !== null && picked < complete) {
    nodes.push(draw("path", { class: "picked", d: rect(x(shown[picked].tokens), y(all(shown[picked + 1])), x(shown[picked + 1].tokens), y(0)) }));
  }
  sizeTo(svg, width, top + height + 38);
  const told = [
    `${words.keys.plain}: ${amount(sized(last.plain))}`,
    ...["target", "drafter", "kv"].map((part) => `${words.keys[part]}: ${amount(sized(last[part], part === "target" ? last.arithmetic : 0))}`),
  ];
  svg.setAttribute("aria-label", `${filled(words.stairs, { unit: words.units[unit] })}. ${many(words.tokens, last.tokens)}: ${told.join(", ")}.`);
  svg.replaceChildren(...nodes);
  return { tokenAt: (share) => ((share * width - left) / (width - left - 8)) * furthest };
};

/** One round in words. */
const telling = (data, ends, index, unit) => {
  const { words } = data;
  const one = data.rounds[index];
  const sized = inUnit(data, unit);
  const written = (time, arithmetic) => `${amount(sized(time, arithmetic))} ${unit}`;
  const parts = [...(one[READS] ? [filled(many(words.drafting, one[READS]), { time: written(one[DRAFTER]) })] : []), filled(words.reading, { time: written(one[TARGET], one[ARITHMETIC]) })];
  return filled(words.round, {
    number: index + 1,
    parts: parts.join(" + "),
    sum: written(one[DRAFTER] + one[TARGET], one[ARITHMETIC]),
    tokens: many(words.tokens, one[TOKENS]),
    plain: written(one[PLAIN]),
  });
};

/** The text twin; made only while it is open, since a long run has a long one. */
const paintTable = (root, data, ends, unit) => {
  const { words, complete } = data;
  const sized = inUnit(data, unit);
  const empty = { caption: filled(words.caption, { unit: words.units[unit] }), columns: words.columns, rows: complete ? [[]] : [] };
  const details = root.querySelector("details.twin");
  const fill = () => twinTable(root, {
    ...empty,
    rows: data.rounds.slice(0, complete).map((one, index) => [
      `${index + 1}`, `${one[READS]}`, amount(sized(one[DRAFTER])), amount(sized(one[TARGET], one[ARITHMETIC])), amount(sized(one[KV])),
      amount(sized(one[DRAFTER] + one[TARGET], one[ARITHMETIC])), `${one[TOKENS]}`, amount(sized(one[PLAIN])),
      amount(sized(ends[index + 1].time, ends[index + 1].arithmetic)), amount(sized(ends[index + 1].plain)),
    ]),
  }, words.table);
  if (details?.open && complete) fill();
  else twinTable(root, empty, words.table);
  const box = root.querySelector("details.twin");
  if (box) box.ontoggle = () => { if (box.open) fill(); };
};

// --- all of it -------------------------------------------------------------------------------------------------------

const paint = (root) => {
  const { data, ends } = root;
  const find = (selector) => root.querySelector(selector);
  const shown = root.dataset.unit ?? "ms";
  const { words } = data;
  const picture = find(".picture");
  if (picture.hidden) return;
  const width = unitsWide(find(".time"));
  if (!width) return;
  paintTime(find(".time svg"), data, ends, width);
  const stairs = find(".stairs");
  if (stairs.clientWidth) { // neither hidden nor left out for want of room
    find(".stairs figcaption > span").textContent = filled(words.stairs, { unit: words.units[shown] });
    for (const one of find(".units").children) one.setAttribute("aria-pressed", `${one.dataset.unit === shown}`);
    const picked = root.picked !== null && root.picked < data.complete ? root.picked : null;
    root.scale = paintStairs(find(".stairs svg"), data, ends, unitsWide(stairs), shown, picked);
    find(".readout").textContent = picked === null ? words.hover : telling(data, ends, picked, shown);
    paintTable(root, data, ends, shown);
  }
};

/** Pointing at a round, or walking over them with ↑ and ↓ (← and → step through the run). */
const wire = (root) => {
  const svg = root.querySelector(".stairs svg");
  const pick = (index) => {
    if (index === root.picked) return;
    root.picked = index;
    paint(root);
  };
  svg.onpointermove = (event) => {
    const token = root.scale?.tokenAt((event.clientX - svg.getBoundingClientRect().left) / svg.getBoundingClientRect().width) ?? -1;
    const index = root.ends.findIndex((end, at) => at < root.data.complete && token >= end.tokens && token < root.ends[at + 1].tokens);
    pick(index < 0 ? null : index);
  };
  svg.onpointerleave = () => pick(null);
  svg.onblur = () => pick(null);
  svg.onkeydown = (event) => {
    const by = { ArrowUp: 1, ArrowDown: -1 }[event.key];
    if (!by || !root.data.complete) return;
    event.preventDefault();
    const last = root.data.complete - 1;
    pick(root.picked === null ? last : Math.min(Math.max(root.picked + by, 0), last));
  };
  const units = root.querySelector(".units");
  units.replaceChildren(...["ms", "GB"].map((unit) => {
    const button = make("button", "", unit);
    button.type = "button";
    button.dataset.unit = unit;
    button.onclick = () => {
      root.dataset.unit = unit;
      paint(root);
    };
    return button;
  }));
  new ResizeObserver(() => {
    const width = root.querySelector(".picture").clientWidth;
    if (width !== root.width) {
      root.width = width;
      paint(root);
    }
  }).observe(root);
};

const keys = (words, story, expected) => [
  key("target", words.keys.target), key("drafter", words.keys.drafter),
  ...(story ? [] : [key("kv", words.keys.kv), make("span", "key", make("span", "line"), words.keys.plain)]),
  ...(story || !expected ? [] : [make("span", "key", make("span", "line thin"), words.expected)]),
];

const show = (root, data) => {
  const find = (selector) => root.querySelector(selector);
  const { words } = data;
  const story = data.detail === "Story";
  namespace = find("svg").namespaceURI;
  root.data = data;
  root.ends = climb(data.rounds);
  find("h2").textContent = data.title;
  find(".badge").textContent = data.badge;
  find(".said").textContent = data.said;
  find(".picture").hidden = !data.rounds.length;
  find(".stairs").hidden = story || !data.complete;
  find(".lower").classList.toggle("single", story || !data.complete);
  find(".keys").replaceChildren(...keys(words, story || !data.complete, data.expected.length > 1));
  find(".sentences").replaceChildren(...data.lines.map((line) => make("p", "", ...spans(line))));
  find(".verdict").replaceChildren(...spans(data.verdict));
  find(".asked").replaceChildren(...spans(data.asked));
  find(".measured").replaceChildren(...spans(data.measured));
  find(".more").replaceChildren(...data.more.map((line) => make("p", "", line)));
  find(".board h3").textContent = words.board;
  find(".board dl").replaceChildren(...data.board.flatMap(([what, how]) => [make("dt", "", what), make("dd", "", how)]));
  find(".formula").textContent = data.formula;
  find(".formula").hidden = data.detail !== "Formulas" || !data.formula;
  paint(root);
};

/** The strip comes first: lanes and price follow in the frame after it, the latest moment only. */
export default function ({ data: [data], parentElement }) {
  const root = parentElement.querySelector(".lanes");
  if (!root.wired) {
    root.wired = true;
    root.picked = null;
    show(root, data);
    wire(root);
    return;
  }
  if (!root.next) {
    requestAnimationFrame(() => setTimeout(() => {
      show(root, root.next);
      root.next = null;
    }));
  }
  root.next = data;
}
