/** The strip: paints any moment of a run from the layout that run_data keeps; see specviz/figures/strip.py. */
const GLYPHS = __GLYPHS__;
const WORDS = __WORDS__;
const SEND_EVERY_MS = 200;

/** What a token is at a moment: not there, waiting, or its fate. */
const fateAt = ([, fate, born, known], moment) => (moment < born ? null : moment < known ? "waiting" : fate);

const roundAt = (rounds, moment) => {
  let low = 0, high = rounds.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (rounds[middle].first <= moment) low = middle; else high = middle - 1;
  }
  return low;
};

const chip = (text, fate, index, place, selected) => {
  const glyph = fate === "kept" || fate === "plain" ? null : make("span", "glyph", GLYPHS[fate]);
  const node = make("button", `chip ${fate}${selected ? " selected" : ""}`, glyph, text);
  node.type = "button";
  node.tabIndex = -1;
  node.dataset.round = index;
  node.dataset.place = place;
  node.title = `${text} · ${WORDS[fate]}`;
  node.setAttribute("aria-label", `${text}, ${WORDS[fate]}, round ${index + 1}`);
  return node;
};

/** An item of the list around a chip: the chip itself stays a button. */
const item = (className, content) => {
  const node = make("span", className, content);
  node.setAttribute("role", "listitem");
  return node;
};

const cell = (content) => item("cell", content);

/** One round at a moment. Drafts that died hang below the place where they would have stood. */
const paintRound = (round, index, moment, view) => {
  const node = make("span", "round");
  const mark = make("span", "mark", make("i", "", `${index + 1}`));
  if (view.liveRound === index) {
    mark.classList.add("live");
    mark.append(make("em", "", "live from here"));
  }
  let first = make("span", "first", mark);
  node.append(first);
  // The round's mark stays on one line with its first token.
  const append = (piece) => { (first ?? node).append(piece); first = null; };
  const dead = [];
  round.drafts.forEach((draft, place) => {
    const fate = fateAt(draft, moment);
    const selected = view.selected[0] === index && view.selected[1] === place;
    if (fate === "rejected" || fate === "unjudged") dead.push(chip(draft[0], fate, index, place, selected));
    else if (fate !== null) append(cell(chip(draft[0], fate, index, place, selected)));
  });
  let anchor = null;
  if (round.closing && moment >= round.closing[2]) {
    const selected = view.selected[0] === index && view.selected[1] === -1;
    anchor = cell(chip(round.closing[0], round.closing[1], index, -1, selected));
    append(anchor);
  }
  if (dead.length) {
    if (!anchor) {
      // The place is as wide as the draft that stood there, so that it wraps where the draft would have.
      const ghost = make("span", "ghost", dead[0].textContent);
      ghost.setAttribute("aria-hidden", "true");
      anchor = cell(make("span", "gap", ghost));
      append(anchor);
    }
    (view.all ? node : anchor).append(lane(dead, index, view));
  }
  return node;
};

const lane = (dead, index, view) => {
  if (view.all || view.open.includes(index)) {
    // Under an older round the neighbours' counts stay readable: its drafts hang one line lower.
    const node = make("span", `lane open${index === view.current ? "" : " low"}`, ...dead.map((one) => item("", one)));
    // Inside a cell, itself an item, the drafts are a list of their own.
    if (!view.all) node.setAttribute("role", "list");
    return node;
  }
  const rejected = dead.filter((node) => node.classList.contains("rejected")).length;
  const later = dead.length - rejected;
  const label = `${rejected ? GLYPHS.rejected : GLYPHS.unjudged}${later && rejected ? ` +${later}` : rejected ? "" : ` ${later}`}`;
  const count = make("button", "count", label);
  count.type = "button";
  count.tabIndex = -1;
  count.dataset.round = index;
  count.dataset.place = dead[0].dataset.place;
  count.title = dead.map((node) => node.title).join("\n");
  count.setAttribute("aria-label", `${rejected} rejected, ${later} never judged in round ${index + 1}; show`);
  return make("span", "lane", count);
};

/** Keep an open lane inside the strip, its first draft below its place: what does not fit goes on in further lines. */
const settleLanes = (text) => {
  const end = text.getBoundingClientRect().left + text.clientWidth;
  const all = text.classList.contains("all-open");
  for (const node of text.querySelectorAll(".lane.open")) {
    node.classList.add("wrap");
    for (const property of ["left", "marginLeft"]) node.style[property] = "";
    node.style.maxWidth = "none";
    const place = all ? [...node.parentElement.querySelectorAll(".cell")].pop() : node.parentElement;
    const start = place.getBoundingClientRect().left;
    const needed = node.firstElementChild.getBoundingClientRect().width + 4;
    const shift = Math.min(end - start - needed, 0); // only a draft that does not fit at all moves left
    if (all) {
      node.style.marginLeft = `${start + shift - node.parentElement.getBoundingClientRect().left}px`;
      continue;
    }
    node.style.left = `${shift}px`;
    node.style.width = "max-content";
    node.style.maxWidth = `${end - start - shift - 2}px`;
    node.parentElement.style.marginBottom = "";
    const extra = node.getBoundingClientRect().height - 24 + (node.classList.contains("low") ? 22 : 0);
    if (extra > 4) node.parentElement.style.marginBottom = `calc(1.9rem + ${extra}px)`;
  }
};

/** Scroll no further than needed to show a node with what hangs below it, and always to the top of a line. */
const reveal = (text, node) => {
  const scrolled = text.scrollTop;
  text.style.paddingBottom = "";
  if (text.scrollHeight <= text.clientHeight + 1) return; // all of it is in sight
  text.scrollTop = scrolled;
  const top = (of) => of.getBoundingClientRect().top - parseFloat(getComputedStyle(of).marginTop);
  const frame = text.getBoundingClientRect();
  const below = node.closest(".lane") ? 8 : 40;
  const [start, end] = [top(node.closest(".cell") ?? node), node.getBoundingClientRect().bottom + below];
  let by = start < frame.top ? start - frame.top : Math.max(end - frame.bottom, 0);
  if (by > 0) {
    const lines = [...text.querySelectorAll(".cell, .mark")].map((of) => top(of) - frame.top);
    by = Math.min(...lines.filter((line) => line >= by - 1), start - frame.top);
  }
  // Where the text ends too early for that, some room is added below it.
  const [wanted, most] = [text.scrollTop + by, text.scrollHeight - text.clientHeight];
  text.style.paddingBottom = wanted > 0 && wanted > most ? `${wanted - most}px` : "";
  text.scrollTop = wanted;
};

export default function ({ data: [data], parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".strip");
  const find = (selector) => root.querySelector(selector);
  const [range, output, text, sentence] = ["input", "output", ".text", ".sentence"].map(find);
  const state = (root.specviz ??= { dragging: false, all: false, nodes: [], sent: 0 });
  state.data = data;
  state.send = setTriggerValue;

  const whole = () => {
    const chunks = globalThis.specvizRuns?.get(data.run);
    if (!chunks) return null;
    chunks.rounds ??= chunks.flatMap((chunk) => chunk?.rounds ?? []);
    return chunks.rounds.length === data.rounds ? chunks.rounds : null;
  };

  const paint = (moment) => {
    const rounds = whole();
    if (!rounds) return;
    const ending = rounds[rounds.length - 1];
    const events = ending ? ending.first + ending.events.length : 0;
    const now = Math.min(moment, Math.max(events - 1, 0));
    const current = rounds.length ? roundAt(rounds, now) : -1;
    const selected = state.dragging ? [-1, -1] : data.selected;
    const open = [current, selected[0]];
    const view = { all: state.all, open, current, selected, liveRound: data.live_round };
    text.classList.toggle("all-open", state.all);
    if (state.run !== data.run) {
      state.run = data.run;
      state.nodes = [];
      const prompt = make("span", "prompt", data.prompt);
      prompt.title = data.prompt_title;
      text.replaceChildren(prompt);
    }
    rounds.forEach((round, index) => {
      const old = state.nodes[index];
      const there = index <= current;
      const last = round.first + round.events.length - 1;
      const picked = selected[0] === index ? selected[1] : "";
      const stamp = there
        ? [Math.min(now, last), index === current, open.includes(index), state.all, picked, data.live_round === index, round.events.length].join()
        : "";
      if (old && old.stamp === stamp) return;
      const node = there ? paintRound(round, index, now, view) : make("span");
      node.stamp = stamp;
      if (old) old.replaceWith(node); else text.append(node);
      state.nodes[index] = node;
    });
    while (state.nodes.length > rounds.length) state.nodes.pop().remove();
    text.querySelector(".caret")?.remove();
    if (current >= 0 && !text.querySelector(".gap")) {
      const caret = make("span", "caret"), lane = state.nodes[current].querySelector(":scope > .lane");
      if (lane) lane.before(caret); else state.nodes[current].append(caret);
    }
    settleLanes(text);
    const focus = text.querySelector(".chip.selected") ?? text.querySelector(".caret, .gap");
    text.querySelectorAll('[tabindex="0"]').forEach((node) => (node.tabIndex = -1));
    const stop = text.querySelector(".chip.selected") ?? [...text.querySelectorAll(".chip[data-place]")].pop();
    if (stop) stop.tabIndex = 0;
    if (focus) reveal(text, focus);

    range.max = Math.max(events - 1, 0);
    if (!state.dragging) range.value = now;
    root.style.setProperty("--done", `${events > 1 ? (100 * now) / (events - 1) : 100}%`);
    const [label, words] = current < 0 ? ["", data.empty] : rounds[current].events[now - rounds[current].first];
    output.textContent = label;
    range.setAttribute("aria-valuetext", label);
    const said = label + words.map(([part]) => part).join("");
    if (sentence.said !== said) {
      sentence.said = said;
      sentence.replaceChildren(...spans(words));
    }
    if (!state.painted) {
      state.painted = true;
      requestAnimationFrame(() => requestAnimationFrame(() => state.send("painted", true)));
    }
  };

  range.oninput = () => {
    state.dragging = true;
    paint(Number(range.value));
    if (performance.now() - state.sent > SEND_EVERY_MS) {
      state.sent = performance.now();
      state.send("moved", Number(range.value));
    }
  };
  range.onchange = () => {
    state.dragging = false;
    state.send("moved", Number(range.value));
  };
  // The slider keeps its own keys: without this, an arrow would also be a shortcut of the page.
  range.onkeydown = (event) => event.stopPropagation();

  text.onclick = (event) => {
    const target = event.target.closest("[data-round]");
    if (target) state.send("picked", [Number(target.dataset.round), Number(target.dataset.place)]);
  };
  text.onkeydown = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const chips = [...text.querySelectorAll(".chip[data-round]")];
    const next = chips[chips.indexOf(event.target) + step];
    if (next) { event.target.tabIndex = -1; next.tabIndex = 0; next.focus(); }
  };

  const fates = find(".fates");
  if (!fates.childElementCount) {
    for (const fate of data.legend) {
      const sign = fate === "unjudged" ? area("unjudged") : make("span", "", GLYPHS[fate]);
      fates.append(make("span", "key", sign, WORDS[fate]));
    }
  }
  const all = find(".all");
  all.textContent = state.all ? data.words.fewer : data.words.all;
  all.onclick = () => {
    state.all = !state.all;
    all.setAttribute("aria-pressed", `${state.all}`);
    all.textContent = state.all ? data.words.fewer : data.words.all;
    paint(Number(range.value));
  };
  const pause = find(".pause");
  pause.hidden = !data.pinned;
  pause.textContent = data.words.pinned;
  pause.onclick = () => state.send("picked", null);

  if (!state.dragging) paint(data.moment);

  const arrived = () => { if (!state.dragging) paint(state.data.moment); };
  document.addEventListener("specviz-run", arrived);
  const resized = new ResizeObserver(() => settleLanes(text));
  resized.observe(text);
  // A presenter's clicker sends these two; the page's own buttons have one key each.
  const clicker = (event) => {
    const by = { PageDown: 1, PageUp: -1 }[event.key];
    if (!by || event.composedPath().some((node) => node.matches?.("input, textarea, select, [contenteditable]"))) return;
    event.preventDefault();
    state.send("stepped", by);
  };
  document.addEventListener("keydown", clicker);
  state.release?.();
  state.release = () => {
    document.removeEventListener("specviz-run", arrived);
    document.removeEventListener("keydown", clicker);
    resized.disconnect();
  };
  return () => state.release();
}
