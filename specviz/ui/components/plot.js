/** A plotly figure that is updated in place. The library comes in a component of its own, after the page. */
const PATIENCE_MS = 30000;

const library = () =>
  new Promise((resolve, reject) => {
    const deadline = performance.now() + PATIENCE_MS;
    const look = () => {
      if (globalThis.SpecvizPlotly) resolve(globalThis.SpecvizPlotly);
      else if (performance.now() > deadline) reject(new Error("The drawing library did not arrive; the table below says the same."));
      else setTimeout(look, 30);
    };
    look();
  });

/** The figure with the page's own colours in place of the palette's names. */
const coloured = (text, root) => {
  const probe = root.querySelector(".probe");
  const known = {};
  return text.replace(/var\((--[\w-]+)\)/g, (_, name) => {
    if (!known[name]) {
      probe.style.color = `var(${name})`;
      known[name] = getComputedStyle(probe).color;
    }
    return known[name];
  });
};

export default function ({ data: [data], parentElement }) {
  const root = parentElement.querySelector(".plot");
  const box = root.querySelector(".canvas");
  box.style.height = `${data.height}px`;
  box.setAttribute("aria-label", data.alt);
  twinTable(root.querySelector(".below"), data.table, data.word);
  // Only the newest figure is drawn, however many arrived while the library was on its way.
  root.figure = data.figure;
  if (!root.drawing) {
    root.drawing = library().then(async (Plotly) => {
      while (root.figure && box.isConnected) {
        const figure = JSON.parse(coloured(root.figure, root));
        root.figure = null;
        await Plotly.react(box, figure.data, figure.layout, { displayModeBar: false, responsive: true, showTips: false });
        if (!root.watcher) {
          root.watcher = new ResizeObserver(() => box.isConnected && box.clientWidth && Plotly.Plots.resize(box));
          root.watcher.observe(box);
        }
      }
    }).catch((error) => { box.replaceChildren(make("p", "waiting-line", error.message)); })
      .finally(() => { root.drawing = null; });
  }
  return () => {
    root.watcher?.disconnect();
    globalThis.SpecvizPlotly?.purge(box);
  };
}
