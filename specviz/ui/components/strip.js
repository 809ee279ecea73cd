/** The strip: paints any moment of a run from the layout that run_data keeps; see specviz/figures/strip.py. */
const GLYPHS = __GLYPHS__;
const WORDS = __WORDS__;
const SEND_EVERY_MS = 200;
const [PROMPT_START, PROMPT_END, PROMPT_MOST] = [160, 80, 320];
const [MOST_MARKS, THUMB] = [60, 15];
const DRAFTED = ["kept", "rejected", "unjudged", "correction", "bonus", "waiting"];

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

const button = (className, ...children) => {
  const node = make("button", className, ...children);
  node.type = "button";
  node.tabIndex = -1;
  return node;
};

const chip = (text, fate, index, place, view) => {
  // A kept token's sign stands above it, where it leaves the text readable: see strip.css.
  const node = button(`chip ${fate}`, fate === "kept" ? null : make("span", "glyph", GLYPHS[fate]), text);
  if (view.selected[0] === index && view.selected[1] === place) {
    node.classList.add("selected");
    node.setAttribute("aria-current", "true");
  }
  node.dataset.round = index;
  node.dataset.place = place;
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
    mark.append(make("em", "", view.words.live.replace("{token}", round.token)));
  }
  let first = make("span", "first", mark);
  node.append(first);
  // The round's mark stays on one line with its first token.
  const append = (piece) => { (first ?? node).append(piece); first = null; };
  const dead = [];
  round.drafts.forEach((draft, place) => {
    const fate = fateAt(draft, moment);
    if (fate === null) return;
    const one = chip(draft[0], fate, index, place, view);
    if (fate === "rejected" || fate === "unjudged") dead.push(one); else append(cell(one));
  });
  let anchor = null;
  if (round.closing && moment >= round.closing[2]) {
    anchor = cell(chip(round.closing[0], round.closing[1], index, -1, view));
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
    node.classList.add("with-dead");
    anchor.classList.add("anchor");
    anchor.append(lane(dead, index, view));
  }
  // An empty place is where the text goes on; else a caret says so.
  if (index === view.current && !anchor?.querySelector(".gap")) node.append(make("span", "caret"));
  return node;
};

const lane = (dead, index, view) => {
  if (view.all || view.open.includes(index)) {
    // Under an older round the neighbours' counts stay readable: its drafts hang one line lower.
    const node = make("span", `lane open${index === view.current ? "" : " low"}`, ...dead.map((one) => item("", one)));
    node.setAttribute("role", "list"); // inside a cell, itself an item, the drafts are a list of their own
    return node;
  }
  const rejected = dead.filter((node) => node.classList.contains("rejected")).length;
  const later = dead.length - rejected;
  const label = `${rejected ? GLYPHS.rejected : GLYPHS.unjudged}${later && rejected ? ` +${later}` : rejected ? "" : ` ${later}`}`;
  const count = button("count", label);
  count.dataset.round = index;
  count.dataset.place = dead[0].dataset.place;
  count.title = dead.map((node) => node.textContent).join("  ");
  count.setAttribute("aria-label", `${rejected} rejected, ${later} never judged in round ${index + 1}; show`);
  return make("span", "lane", count);
};

/** The prompt; a long one is cut in its middle, so that the text stays in sight. */
const paintPrompt = (data, open, toggle) => {
  const letters = Array.from(data.prompt); // by characters: half an emoji is none
  const long = letters.length > PROMPT_MOST;
  const parts = long && !open
    ? [letters.slice(0, PROMPT_START).join(""), " … ", letters.slice(-PROMPT_END).join("")]
    : [data.prompt];
  const node = item("prompt", make("span", "given", ...parts));
  node.firstChild.tabIndex = -1;
  node.title = data.prompt_title;
  if (long) {
    const more = button("link", open ? data.words.part : data.words.whole.replace("{characters}", letters.length.toLocaleString("en")));
    more.tabIndex = 0;
    more.onclick = toggle;
    node.append(" ", more);
  }
  return node;
};

/** Marks of the scrubber: rounds above, rejected drafts below; what is still to come stays hidden (strip.css). */
const paintMarks = (box, rounds, events) => {
  const draw = (className, moments) => {
    const every = Math.ceil(moments.length / MOST_MARKS);
    const node = make("span", className);
    node.style.backgroundImage = moments
      .filter((_, index) => index % every === 0)
      .map(() => "linear-gradient(var(--mark), var(--mark))").join();
    node.style.backgroundPosition = moments
      .filter((_, index) => index % every === 0)
      .map((moment) => `${((100 * moment) / Math.max(events - 1, 1)).toFixed(2)}% 0`).join();
    return node;
  };
  const rejected = rounds.flatMap((round) => round.drafts.filter(([, fate]) => fate === "rejected").map((draft) => draft[3]));
  box.replaceChildren(
    draw("rounds", rounds.slice(1).map((round) => round.first)),
    draw("deaths", rejected),
  );
};

/** Keep an open lane inside the strip, its first draft below its place: what does not fit goes on in further lines. */
const settleLanes = (text, lanes) => {
  if (text.classList.contains("all-open")) return; // there the lines grow with their drafts
  const end = text.getBoundingClientRect().left + text.clientWidth;
  const spans = lanes.map((node) => {
    const start = node.parentElement.getBoundingClientRect().left;
    return [end - start, node.firstElementChild.getBoundingClientRect().width + 4];
  });
  lanes.forEach((node, index) => {
    const [room, needed] = spans[index];
    const shift = Math.min(room - needed, 0); // only a draft that does not fit at all moves left
    node.style.left = `${shift}px`;
    node.style.maxWidth = `${room - shift - 2}px`;
  });
  const heights = lanes.map((node) => node.getBoundingClientRect().height + (node.classList.contains("low") ? 22 : 0));
  lanes.forEach((node, index) => {
    const extra = heights[index] - 24;
    node.parentElement.style.marginBottom = extra > 4 ? `calc(1.9rem + ${extra}px)` : "";
  });
};

/** Scroll no further than needed to show a node with what hangs below it, and always to the top of a line. */
const reveal = (text, node, rounds) => {
  const pad = parseFloat(text.style.paddingBottom) || 0;
  const most = text.scrollHeight - pad - text.clientHeight;
  if (most <= 1) { // all of it is in sight
    if (pad) text.style.paddingBottom = "";
    return;
  }
  const held = node.closest(".cell") ?? node;
  const margin = parseFloat(getComputedStyle(held).marginTop);
  const top = (of) => of.getBoundingClientRect().top - margin;
  const frame = text.getBoundingClientRect();
  const below = node.closest(".lane") ? 8 : 40;
  const [start, end] = [top(held), node.getBoundingClientRect().bottom + below];
  let by = start < frame.top ? start - frame.top : Math.max(end - frame.bottom, 0);
  if (by > 0) {
    by = start - frame.top > by ? nearestLine(rounds, node.closest(".round"), by + frame.top - 1, start, top) - frame.top : start - frame.top;
  }
  // Where the text ends too early for that, some room is added below it.
  const wanted = text.scrollTop + by;
  const room = wanted > 0 && wanted > most ? wanted - most : 0;
  if (room !== pad) text.style.paddingBottom = room ? `${room}px` : "";
  if (by) text.scrollTop = wanted;
};

/** The uppermost line that begins at or below `limit`, looked for from a round on backwards. */
const nearestLine = (rounds, round, limit, start, top) => {
  let best = start;
  for (let index = rounds.indexOf(round); index >= 0; index--) {
    const tops = [...rounds[index].querySelectorAll(".cell, .mark")].map(top).filter((line) => line >= limit);
    if (!tops.length) break;
    best = Math.min(best, ...tops);
  }
  return best;
};

/** The sentence of a token as far as the moment knows it. */
const told = (rounds, [index, place], moment) => {
  const round = rounds[index];
  const end = round.closing?.[2];
  const [, fate, born, known] = place < 0 ? ["", "", end, end] : round.drafts[place];
  // What a draft that was never judged followed is told when the round closes.
  const moments = [born, known, ...(fate === "unjudged" && end !== undefined ? [end] : [])];
  const at = moments.filter((one) => one <= moment).pop() ?? born;
  return round.events[Math.min(at - round.first, round.events.length - 1)][1];
};

export default function ({ data: [data], parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".strip");
  const find = (selector) => root.querySelector(selector);
  const [scrub, range, output, text, sentence] = [".scrub", "input", "output", ".text", ".sentence"].map(find);
  const state = (root.specviz ??= { dragging: false, all: false, nodes: [], shown: 0, sent: 0 });
  state.data = data;
  state.send = setTriggerValue;
  globalThis.specvizMoment = data.address;

  const whole = () => {
    const chunks = globalThis.specvizRuns?.get(data.run);
    if (!chunks) return null;
    chunks.rounds ??= chunks.flatMap((chunk) => chunk?.rounds ?? []);
    return chunks.rounds.length === data.rounds ? chunks.rounds : null;
  };

  const say = (spoken, key) => {
    if (sentence.said === key) return;
    sentence.said = key;
    sentence.replaceChildren(...spans(spoken));
  };

  const showPrompt = () => {
    const node = paintPrompt(data, state.promptOpen, () => {
      state.promptOpen = !state.promptOpen;
      showPrompt();
      text.querySelector(".prompt .link").focus();
    });
    if (state.prompt?.parentElement === text) state.prompt.replaceWith(node); else text.prepend(node);
    state.prompt = node;
  };

  /** The rounds up to a moment. Nodes stay: one whose round looks the same is neither built nor touched again. */
  const showRounds = (rounds, now, view) => {
    const fresh = document.createDocumentFragment();
    for (let index = 0; index <= view.current; index++) {
      const round = rounds[index], old = state.nodes[index];
      const stamp = [
        Math.min(now, round.first + round.events.length - 1),
        index === view.current,
        view.all || view.open.includes(index),
        view.selected[0] === index ? view.selected[1] : "",
        view.liveRound === index,
        round.events.length,
      ].join();
      const node = old?.stamp === stamp ? old : paintRound(round, index, now, view);
      node.stamp = stamp;
      state.nodes[index] = node;
      if (index >= state.shown) fresh.append(node);
      else if (node !== old) old.replaceWith(node);
    }
    for (let index = view.current + 1; index < state.shown; index++) state.nodes[index].remove();
    state.nodes.length = Math.min(state.nodes.length, rounds.length);
    state.shown = view.current + 1;
    text.append(fresh);
  };

  const tabStop = (node) => {
    if (state.stop) state.stop.tabIndex = -1;
    if (node) node.tabIndex = 0;
    state.stop = node;
  };

  const paint = (moment) => {
    const rounds = whole();
    if (!rounds) return;
    const ending = rounds[rounds.length - 1];
    const events = ending ? ending.first + ending.events.length : 0;
    const now = Math.min(moment, Math.max(events - 1, 0));
    const current = rounds.length ? roundAt(rounds, now) : -1;
    const selected = state.dragging ? [-1, -1] : data.selected;
    const view = { all: state.all, open: [current, selected[0]], current, selected, liveRound: data.live_round, words: data.words };
    if (state.run !== data.run) {
      Object.assign(state, { run: data.run, nodes: [], shown: 0, promptOpen: false, prompt: null, rounds: null });
      text.replaceChildren();
      showPrompt();
    }
    if (state.rounds !== rounds) {
      state.rounds = rounds;
      paintMarks(find(".ticks"), rounds, events);
      showLegend(rounds);
    }
    const focused = root.getRootNode().activeElement?.closest(".text [data-round]");
    text.classList.toggle("all-open", state.all);
    showRounds(rounds, now, view);
    const shown = [...new Set(view.open)].map((index) => (index < state.shown ? state.nodes[index] : null)).filter(Boolean);
    state.lanes = shown.map((node) => node.querySelector(".lane.open")).filter(Boolean);
    settleLanes(text, state.lanes);
    const chosen = shown.map((node) => node.querySelector(".chip.selected")).find(Boolean);
    const last = current >= 0 ? [...state.nodes[current].querySelectorAll(".chip")].pop() : null;
    const same = focused && text.querySelector(`[data-round="${focused.dataset.round}"][data-place="${focused.dataset.place}"]`);
    tabStop(same ?? chosen ?? last ?? text.querySelector(".given"));
    if (same && same !== focused) same.focus({ preventScroll: true });
    const sight = [data.run, now, selected, state.all].join();
    const goal = chosen ?? (current >= 0 ? state.nodes[current].querySelector(".caret, .gap") : null);
    // What the reader has scrolled to stays in sight until the moment or the selection changes.
    state.reveal = () => { if (goal?.isConnected) reveal(text, goal, state.nodes); };
    if (goal && state.sight !== sight) {
      state.reveal();
      // With all drafts shown, rounds out of sight have a guessed height until they come near: once more when they have.
      if (state.all) requestAnimationFrame(() => requestAnimationFrame(() => {
        if (goal.isConnected && state.sight === sight) reveal(text, goal, state.nodes);
      }));
    }
    state.sight = sight;

    range.max = Math.max(events - 1, 0);
    if (!state.dragging) range.value = now;
    scrub.style.setProperty("--done", events > 1 ? now / (events - 1) : 1);
    const [label, words] = current < 0 ? ["", data.empty] : rounds[current].events[now - rounds[current].first];
    output.textContent = label;
    range.setAttribute("aria-valuetext", label);
    // A token that was picked is what the panels are about: the sentence is about it too.
    const spoken = data.pinned && !state.dragging ? told(rounds, selected, now) : words;
    say(spoken, label + spoken.map(([part]) => part).join(""));
    if (!state.painted) {
      state.painted = true;
      requestAnimationFrame(() => requestAnimationFrame(() => state.send("painted", true)));
    }
  };

  const showLegend = (rounds) => {
    const drafted = rounds.some((round) => round.drafts.length), read = rounds.some((round) => round.closing?.[1] === "plain");
    const looks = [...(drafted || !read ? DRAFTED : []), ...(read ? ["plain"] : [])];
    find(".all").hidden = !drafted;
    find(".fates").replaceChildren(...looks.map((fate) => {
      const node = make("span", "key", fate === "unjudged" ? area("unjudged") : make("span", "", GLYPHS[fate]), WORDS[fate]);
      node.title = data.words.meanings[fate];
      return node;
    }));
  };

  range.title = data.words.scrubber;
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

  const explainPrompt = () => say([[data.prompt_title, ""]], data.prompt_title);
  text.onclick = (event) => {
    const target = event.target.closest("[data-round]");
    if (target) state.send("picked", [Number(target.dataset.round), Number(target.dataset.place)]);
    else if (event.target.closest(".given")) explainPrompt();
  };
  // Titles of thousands of tokens are written when they are asked for.
  text.onpointerover = (event) => {
    const target = event.target.closest(".chip");
    if (target && !target.title) target.title = target.getAttribute("aria-label");
  };
  text.onkeydown = (event) => {
    const stops = () => [...text.querySelectorAll(".given, .chip, .count")];
    const step = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity }[event.key];
    if ((event.key === "Enter" || event.key === " ") && event.target.matches(".given")) explainPrompt();
    if (!step || !event.target.matches(".given, .chip, .count")) return;
    // Home and End belong to the strip while it has the focus: outside, Home is the page's Restart.
    event.preventDefault();
    event.stopPropagation();
    const all = stops(), next = all[Math.min(Math.max(all.indexOf(event.target) + step, 0), all.length - 1)];
    tabStop(next);
    next.focus();
  };

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
  const resized = new ResizeObserver(() => {
    settleLanes(text, (state.lanes ?? []).filter((node) => node.isConnected));
    const size = `${text.clientWidth} × ${text.clientHeight}`;
    if (state.size && state.size !== size) state.reveal?.(); // what was in sight stays in sight
    state.size = size;
  });
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
