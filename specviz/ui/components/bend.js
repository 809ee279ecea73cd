/** p and q, bent by hand: a row a token on one baseline, with a handle for each model; see specviz/figures/overlap.py. */
const MODELS = ["p", "q"];
const STEPS = { ArrowLeft: -0.01, ArrowDown: -0.01, ArrowRight: 0.01, ArrowUp: 0.01, PageDown: -0.1, PageUp: 0.1, Home: -1, End: 1 };
const PAUSE_MS = 300;
const NEW = 0.1;

const sum = (values) => values.reduce((total, value) => total + value, 0);
const normal = (weights) => {
  const total = sum(weights);
  return weights.map((weight) => weight / total);
};

const clamped = (value) => Math.min(Math.max(value, 0), 1);

/** What the others have beside token `index`, if it is anything to share by. */
const besides = (law, index) => (law ? sum(law) - law[index] : 0);

/** The chances with token `index` at `value`: the others share what is left as before; where they had nothing, as in `last`, or alike. */
const bent = (law, index, value, last) => {
  const share = clamped(value);
  const by = [law, last].find((one) => one?.length === law.length && besides(one, index) > 1e-9) ?? law.map(() => 1);
  return law.map((_, other) => (other === index ? share : ((1 - share) * by[other]) / besides(by, index)));
};

/** Temperature, top-k and top-p as in specviz/probability.py, for the picture while a handle moves. */
const warped = (law, { temperature, top_k: topK, top_p: topP }) => {
  const largest = Math.max(...law);
  if (temperature === 0) return law.map((_, index) => (index === law.indexOf(largest) ? 1 : 0));
  let kept = law.map((chance) => (chance / largest) ** (1 / temperature));
  if (topK > 0 && topK < law.length) {
    const least = [...kept].sort((a, b) => b - a)[topK - 1];
    kept = kept.map((weight) => (weight >= least ? weight : 0));
  }
  kept = normal(kept);
  if (topP === 1) return kept;
  let before = 0;
  const stay = new Set();
  for (const [chance, index] of kept.map((weight, index) => [weight, index]).sort((a, b) => b[0] - a[0] || a[1] - b[1])) {
    if (before < topP) stay.add(index);
    before += chance;
  }
  return normal(kept.map((chance, index) => (stay.has(index) ? chance : 0)));
};

const typed = (chance) => (Math.abs(chance * 100 - Math.round(chance * 100)) < 0.05 ? chance.toFixed(2) : chance.toFixed(3));

const handle = (model) => make("span", `handle ${model}`);

export default function ({ data: [data], parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".bend");
  const find = (selector) => root.querySelector(selector);
  const { words } = data;
  root.last ??= {};
  // What the visitor is about to send is newer than what comes in.
  if (!root.held && !root.pause) root.laws = { p: [...data.base.p], q: [...data.base.q] };

  root.send = () => {
    clearTimeout(root.pause);
    root.pause = null;
    setTriggerValue("bent", root.laws);
  };
  root.change = (model, index, value) => {
    // One that has it all leaves nothing to share by: the proportions of before come back with the others.
    if (Math.max(...root.laws[model]) < 1) root.last[model] = root.laws[model];
    root.laws[model] = bent(root.laws[model], index, value, root.last[model]);
    draw();
  };
  root.end = data.end;
  root.warped = data.warped;
  const resize = (next) => {
    for (const model of MODELS) root.laws[model] = next(root.laws[model]);
    build();
    draw();
    root.send();
  };

  // The nodes of a row outlive a run of the script, so they ask the root for what a run brings.
  const grip = (model, index) => {
    const node = make("button", `grip ${model}`, handle(model));
    node.type = "button";
    node.setAttribute("role", "slider");
    node.setAttribute("aria-valuemin", "0");
    node.setAttribute("aria-valuemax", "1");
    node.onpointerdown = (event) => {
      root.held = true;
      node.classList.add("held");
      node.setPointerCapture(event.pointerId);
    };
    node.onpointermove = (event) => {
      if (!node.hasPointerCapture(event.pointerId)) return;
      const track = node.parentElement.getBoundingClientRect();
      root.change(model, index, Math.round((100 * root.end * (event.clientX - track.left)) / track.width) / 100);
    };
    node.onlostpointercapture = () => {
      root.held = false;
      node.classList.remove("held");
      root.send();
    };
    node.onkeydown = (event) => {
      if (!(event.key in STEPS)) return;
      event.preventDefault();
      clearTimeout(root.pause);
      root.pause = setTimeout(() => root.send(), PAUSE_MS);
      root.change(model, index, Math.round(100 * (root.laws[model][index] + STEPS[event.key])) / 100);
    };
    return node;
  };

  const input = (model, index) => {
    const node = make("input", "typed");
    node.inputMode = "decimal";
    node.onchange = () => {
      const value = Number(node.value.replace(",", "."));
      find(".clamped").textContent = "";
      if (node.value.trim() && Number.isFinite(value)) {
        if (value !== clamped(value)) find(".clamped").textContent = words.clamped.replace("{typed}", value).replace("{chance}", clamped(value));
        root.change(model, index, value);
        root.send();
      }
      node.value = typed(root.laws[model][index]);
    };
    return node;
  };

  const build = () => {
    root.rows = root.laws.p.map((_, index) => {
      const label = data.names[index];
      const parts = { line: make("span", "bar"), grips: MODELS.map((model) => grip(model, index)), inputs: MODELS.map((model) => input(model, index)), now: MODELS.map(() => make("span", "now")) };
      const less = make("button", "less", "×");
      less.type = "button";
      less.title = words.remove.replace("{token}", label);
      less.setAttribute("aria-label", less.title);
      MODELS.forEach((model, which) => {
        const called = words.chance.replace("{model}", model).replace("{token}", label);
        parts.grips[which].setAttribute("aria-label", called);
        parts.inputs[which].setAttribute("aria-label", called);
      });
      const node = make("div", "row", make("span", "token mono", label), make("span", "track", parts.line, ...parts.grips), ...parts.inputs.map((node, which) => make("span", "", node, parts.now[which])), less);
      node.setAttribute("role", "listitem");
      return { node, less, ...parts };
    });
    const heads = make("div", "row heads", make("span"), make("span"), ...data.heads.map((head) => make("span", "", head)), make("span"));
    heads.setAttribute("aria-hidden", "true");
    find(".rows").replaceChildren(heads, ...root.rows.map(({ node }) => node));
  };

  /** Everything that moves while a handle does. */
  const draw = () => {
    const { laws } = root;
    const p = warped(laws.p, data.warp.p);
    const q = warped(laws.q, data.warp.q);
    const bars = p.map((chance, index) => {
      const both = Math.min(chance, q[index]);
      return { both, only_target: chance - both, only_drafter: q[index] - both };
    });
    const writing = root.getRootNode().activeElement;
    root.rows.forEach(({ line, grips, inputs, now }, index) => {
      line.replaceChildren(...baseline(bars[index], data.end));
      MODELS.forEach((model, which) => {
        const chance = laws[model][index];
        grips[which].style.left = `${Math.min((100 * chance) / data.end, 100)}%`;
        grips[which].setAttribute("aria-valuenow", chance.toFixed(3));
        if (inputs[which] !== writing) inputs[which].value = typed(chance);
        now[which].textContent = root.warped ? words.now.replace("{chance}", probability([p, q][which][index], 2)) : "";
        now[which].title = words["now.help"].replace("{model}", model).replace("{token}", data.names[index]);
      });
    });
    const alpha = sum(bars.map(({ both }) => both));
    const shared = probability(alpha, 2);
    const gap = complement(shared, 1 - alpha);
    const moved = { label: data.together.label, both: alpha, only_target: 1 - alpha, only_drafter: 1 - alpha, written: [gap, gap] };
    const moving = { ...data, shared, shared_times: `${Math.round(100 * TIE * alpha)} in 100` };
    find(".together").replaceChildren(...(root.held || root.pause ? together(moved, moving) : together(data.together, data)));
  };

  titled(find("h2"), data.title, data.badge);
  const keys = ["both", "only_target", "only_drafter"].map((meaning) => key(meaning, words[meaning]));
  const handles = MODELS.map((model) => make("span", "key", handle(model), words.handle[model]));
  find(".legend").replaceChildren(...keys, make("span", "break"), ...sumKeys(words), ...handles);
  find(".note").replaceChildren(...spans(data.note));
  if (root.rows?.length !== root.laws.p.length) build();
  for (const { less } of root.rows) less.hidden = root.laws.p.length <= data.fewest;
  root.rows.forEach(({ less }, index) => {
    less.onclick = () => resize((law) => bent(law, index, 0).filter((_, other) => other !== index));
  });
  const add = find(".add");
  add.textContent = words.add;
  add.hidden = root.laws.p.length >= data.most;
  add.onclick = () => resize((law) => [...law.map((chance) => chance * (1 - NEW)), NEW]);
  draw();
  twinTable(root, data.table, words.table);
}
