/** A measured machine: reads against their width under the roofline, shares and ratios; see specviz/figures/profile.py. */
const HEIGHT = 250, LEFT = 46, BOTTOM = 40, TOP = 16, RIGHT = 8;

let namespace = null;

/** An element of a drawing; the namespace is that of the drawing that came with the page. */
const draw = (name, attributes, ...children) => {
  const node = document.createElementNS(namespace, name);
  for (const [attribute, value] of Object.entries(attributes)) node.setAttribute(attribute, value);
  node.append(...children);
  return node;
};

const paintChart = (svg, chart, words) => {
  const width = Math.max(svg.clientWidth, 200);
  const last = chart.points.at(-1).width, first = chart.points[0].width;
  const top = chart.ticks.at(-1) || 1;
  const x = (rows) => LEFT + 10 + (rows - first) / Math.max(last - first, 1) * (width - LEFT - RIGHT - 20);
  const y = (ms) => HEIGHT - BOTTOM - ms / top * (HEIGHT - TOP - BOTTOM);
  const path = (places) => places.map(([rows, ms], index) => `${index ? "L" : "M"}${x(rows).toFixed(1)} ${y(ms).toFixed(1)}`).join("");
  const nodes = chart.ticks.flatMap((tick) => [
    draw("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y(tick), y2: y(tick) }),
    draw("text", { x: LEFT - 8, y: y(tick) + 4, "text-anchor": "end" }, tick.toLocaleString("en", tick < 1e5 ? { maximumSignificantDigits: 3 } : { notation: "compact" })),
  ]);
  const room = Math.ceil(chart.points.length / ((width - LEFT) / 26));
  chart.points.forEach((point, index) => {
    if (index % room) return;
    nodes.push(draw("text", { x: x(point.width), y: HEIGHT - BOTTOM + 18, "text-anchor": "middle" }, point.width));
  });
  nodes.push(draw("text", { x: width - RIGHT, y: HEIGHT - 4, "text-anchor": "end" }, words.rows));
  if (chart.roof.length) {
    const edge = (side) => chart.roof.map((one) => [one.width, one[side]]);
    nodes.push(draw("path", { class: "band", d: `${path([...edge("worst"), ...edge("best").reverse()])}Z` }));
    nodes.push(draw("path", { class: "roof", d: path(edge("middle")) }));
  }
  if (chart.binds > first) {
    const place = x(chart.binds);
    nodes.push(draw("line", { class: "binds", x1: place, x2: place, y1: TOP - 8, y2: HEIGHT - BOTTOM }));
    const end = place > width / 2;
    nodes.push(draw("text", { x: place + (end ? -6 : 6), y: TOP - 2, "text-anchor": end ? "end" : "start" }, words.binds));
  }
  nodes.push(draw("path", { class: `line ${chart.model}`, d: path(chart.points.map((point) => [point.width, point.median])) }));
  for (const point of chart.points) {
    const place = x(point.width);
    nodes.push(draw("g", {},
      draw("title", {}, point.label),
      draw("line", { class: `whisker ${chart.model}`, x1: place, x2: place, y1: y(point.low), y2: y(point.high) }),
      draw("circle", { class: chart.model, cx: place, cy: y(point.median), r: 4 }),
    ));
  }
  svg.replaceChildren(...nodes);
};

const figure = (chart, words) => {
  const svg = draw("svg", { height: HEIGHT, role: "img", "aria-label": chart.alt });
  const node = make("figure", "", make("figcaption", "", chart.title, make("span", "muted", ` · ${words.measured}`)), svg);
  new ResizeObserver(() => paintChart(svg, chart, words)).observe(svg);
  return node;
};

const group = (title, bars, words, full) => {
  const most = Math.max(...bars.map((bar) => bar.high), full ? 1 : 0) * 1.04;
  const percent = (value) => `${(100 * value / most).toFixed(2)}%`;
  const rows = bars.map((bar) => {
    const fill = area(bar.meaning);
    fill.classList.add("fill");
    fill.style.width = percent(bar.value);
    const track = make("div", "track", fill);
    if (full) track.append(Object.assign(make("span", "full"), { style: `left: ${percent(1)}` }));
    if (bar.high > bar.low) {
      track.append(Object.assign(make("span", "spread"), { style: `left: ${percent(bar.low)}; width: ${percent(bar.high - bar.low)}` }));
    }
    return make("div", "bar", make("span", "", bar.name, make("span", "badge", bar.badge)), track, make("span", "value", bar.text));
  });
  return make("div", "group", make("h2", "", title), ...rows);
};

const legend = (kind, word) => make("span", "", make("span", `swatch ${kind}`), word);

export default function ({ data: [data], parentElement }) {
  const root = parentElement.querySelector(".profile");
  const find = (selector) => root.querySelector(selector);
  const words = data.words;
  namespace = find(".blank").namespaceURI;
  find(".verdict").replaceChildren(...spans(data.verdict));
  find(".lines").replaceChildren(...data.lines.map((line) => make("p", "", line)));
  // Drawn anew only when the numbers are others: a rerun of the page leaves them alone.
  const said = JSON.stringify(data.charts);
  if (root.dataset.said !== said) find(".charts").replaceChildren(...data.charts.map((chart) => figure(chart, words)));
  root.dataset.said = said;
  find(".keys").replaceChildren(legend("whisker", words.whisker), ...(data.charts.some((chart) => chart.roof.length) ? [legend("roof", words.roof), legend("band", words.band)] : []));
  find(".groups").replaceChildren(
    ...(data.shares.length ? [group(words.shares, data.shares, words, true)] : []),
    ...(data.ratios.length ? [group(words.ratios, data.ratios, words, false)] : []),
  );
  const boxes = find(".tables");
  while (boxes.children.length < data.tables.length) boxes.append(make("div"));
  data.tables.forEach((table, index) => twinTable(boxes.children[index], table, words.tables[index]));
  boxes.hidden = find(".lines").hidden = find(".groups").hidden = !data.numbers;
  find(".formula").textContent = data.formula ?? "";
  find(".formula").hidden = !data.formula;
}
