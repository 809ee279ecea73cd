/** The coin panel; see specviz/figures/coin.py. The pins move here, in the browser; the record stays as it is. */
const GLYPHS = __GLYPHS__;
const FATES = __WORDS__;
const KEYS = { ArrowLeft: -0.01, ArrowDown: -0.01, ArrowRight: 0.01, ArrowUp: 0.01, Home: -1, End: 1 };

const PATIENCE_MS = 5000;

/** A template with its fields; what is filled in is never searched for fields. */
const fill = (template, fields) => template.replace(/\{(\w+)\}/g, (_, name) => fields[name]);

/** A coin and the chance beside it, with as many digits as it takes to tell them apart. */
const written = (coin, chance) => {
  let digits = 2;
  while (digits < 12 && probability(coin, digits) === probability(chance, digits)) digits += 1;
  return { coin: probability(coin, digits), chance: probability(chance, digits) };
};

/** What becomes of every draft with these coins: one round of the rules in specviz/rules.py. A null is not known. */
const judge = ({ lines, block }, moved) => {
  const coins = lines.map(({ might }, index) => (might ? moved.get(index) ?? might.coin : null));
  const passes = lines.map(({ might }, index) => {
    if (might && (might.chance <= 0 || might.chance >= 1)) return might.chance >= 1;
    return coins[index] === null ? null : coins[index] < might.chance;
  });
  const carrier = passes.lastIndexOf(true) + 1;
  const first = passes.findIndex((pass) => pass !== true);
  let kept = block ? carrier : first < 0 ? lines.length : first;
  const end = lines.findIndex(({ might }, index) => index < kept && might.ends);
  const over = end >= 0;
  if (over) kept = end + 1;
  const open = !over && kept < lines.length && passes[kept] === null;
  const after = open ? "waiting" : "unjudged";
  const fates = lines.map((_, index) => (index < kept ? "kept" : index > kept || over ? after : open ? "waiting" : "rejected"));
  return { coins, passes, carrier, kept, over, open, fates };
};

/** The few words of a line whose coin or fate is another one than in the record. */
const words = ({ lines, block, said }, now, index) => {
  const line = lines[index], fate = now.fates[index], might = line.might;
  if (fate === "waiting") return line.standing === "waiting" ? line.words : said.unknown;
  if (fate === "unjudged" && now.over) return said.over;
  if (fate === "unjudged" && !block) return fill(said.unjudged, { gone: lines[now.kept].draft });
  const fields = { odds: might.odds, carrier: now.carrier, ...(now.coins[index] === null ? {} : written(now.coins[index], might.chance)) };
  const pass = now.passes[index];
  if (!block) {
    const certain = might.chance >= 1 ? "sure" : might.chance <= 0 ? "never" : null;
    return fill(said[certain ?? (pass ? "inside" : "outside")], fields);
  }
  const fits = might.chance >= 1 ? "full" : might.chance <= 0 ? "empty" : pass ? "inside" : "outside";
  const more = fate === "kept" && !pass ? said["block.carried"] : index + 1 === now.carrier ? said["block.last"] : "";
  return fill(said[`block.${fits}`] + more, fields);
};

const fateNode = (name) => [make("span", "glyph", GLYPHS[name]), FATES[name]];

/** A draft's line; its nodes stay while the run moves on, so that a pin keeps the pointer and the focus. */
const newLine = (state, index) => {
  const node = make("div", "line");
  node.setAttribute("role", "listitem");
  const parts = {
    place: make("span", "place muted small"), token: make("span", "token mono"),
    track: make("span", "track"), bar: make("span", "bar"), before: make("span", "pin before"), pin: make("span", "pin"),
    choice: make("span", "choice"), words: make("span", "words"), fate: make("span", "fate"),
  };
  const { bar, before, pin } = parts;
  bar.setAttribute("role", "img");
  before.setAttribute("aria-hidden", "true");
  pin.setAttribute("role", "slider");
  pin.setAttribute("aria-valuemin", "0");
  pin.setAttribute("aria-valuemax", "1");
  parts.track.append(bar, before, pin);
  const figure = make("span", "figure", parts.track, parts.choice);
  node.append(parts.place, parts.token, figure, parts.words, parts.fate);

  const move = (coin) => {
    const { chance } = state.data.lines[index].might;
    // Never 0 or 1, as a coin is; and both sides of the bar's end can be reached.
    const [least, most] = [Math.min(0.001, chance / 2), Math.max(0.999, (1 + chance) / 2)];
    state.moved.set(index, Math.min(Math.max(Math.round(100 * coin) / 100, least), most));
    state.last = index;
    state.paint();
  };
  const under = (event) => {
    const box = bar.getBoundingClientRect();
    return (event.clientX - box.left) / box.width;
  };
  pin.onpointerdown = (event) => {
    if (event.button !== 0 || pin.tabIndex < 0) return;
    pin.setPointerCapture(event.pointerId);
    state.dragging = index;
  };
  pin.onpointermove = (event) => { if (state.dragging === index) move(under(event)); };
  const release = () => {
    if (state.dragging !== index) return;
    state.dragging = null;
    if (state.moved.has(index)) state.report(index);
  };
  pin.onpointerup = release;
  pin.onlostpointercapture = release;
  // The pin keeps its own keys: without this, an arrow would also be a shortcut of the page.
  pin.onkeydown = (event) => {
    if (!(event.key in KEYS) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    const might = state.data.lines[index].might;
    move((state.moved.get(index) ?? might.coin) + KEYS[event.key]);
    state.pressed = index;
  };
  pin.onkeyup = (event) => {
    if (!(event.key in KEYS)) return;
    event.stopPropagation();
    if (state.pressed === index) state.report(index);
    state.pressed = null;
  };
  return { node, figure, ...parts };
};

const paintLine = (row, line, index, state, base, now) => {
  const { data, moved } = state;
  const fate = now ? now.fates[index] : line.standing;
  const changed = Boolean(now) && (moved.has(index) || fate !== base.fates[index]);
  const coin = !changed ? line.coin : fate === "unjudged" && !data.block ? null : now.coins[index];
  const stays = changed && line.might && (fate !== "unjudged" || data.block) ? line.might.chance : changed && !data.block ? null : line.stays;
  const said = changed ? words(data, now, index) : line.words;
  row.node.className = `line${line.current ? " current" : ""}${changed ? " changed" : ""}${fate === "unjudged" ? " gone" : ""}`;
  row.place.textContent = line.place;
  row.token.textContent = line.draft;
  row.token.title = line.draft;
  row.words.textContent = said;
  row.fate.className = `fate ${fate}`;
  row.fate.replaceChildren(...fateNode(fate), ...(changed ? [make("small", "if", data.words.what_if)] : []));

  const choosing = data.chosen && fate !== "unjudged";
  row.track.hidden = choosing;
  row.choice.hidden = !choosing;
  if (choosing) {
    const label = make("span", "label muted small", `${data.heads[2]}:`);
    row.choice.replaceChildren(label, line.other === null ? make("span", "muted small", data.words.not_yet) : make("span", "mono", line.other));
    return;
  }
  row.bar.setAttribute("aria-label", said);
  const areas = fate === "unjudged" && coin === null ? [area("unjudged", 1)] : stays === null ? [area("waiting", 1)] : [
    ...(stays > 0 ? [area("both", Math.min(stays, 1))] : []), ...(stays < 1 ? [area("only_drafter")] : []),
  ];
  row.bar.replaceChildren(...areas);
  const certain = line.might && !data.block && (line.might.chance <= 0 || line.might.chance >= 1);
  const shown = coin !== null && coin !== undefined && !certain;
  const movable = shown && Boolean(line.might);
  row.pin.hidden = !shown;
  row.pin.style.left = `${100 * (coin ?? 0)}%`;
  row.pin.tabIndex = movable ? 0 : -1;
  row.pin.classList.toggle("fixed", !movable);
  row.pin.setAttribute("aria-hidden", `${!movable}`);
  row.before.hidden = !shown || !moved.has(index) || line.coin === null;
  row.before.style.left = `${100 * (line.coin ?? 0)}%`;
  if (movable) {
    const value = written(coin, line.might.chance).coin;
    const side = data.said[coin < line.might.chance ? "pin.stays" : "pin.goes"];
    row.pin.title = data.words.drag;
    row.pin.setAttribute("aria-label", fill(data.words.pin, { place: line.place, draft: line.draft }));
    row.pin.setAttribute("aria-valuenow", coin);
    row.pin.setAttribute("aria-valuetext", fill(data.said.pin, { coin: value, side }));
  }
};

/** The closing token's line: [its place, token, words, fate], as it happened or as it might have been. */
const closingLine = (place, token, said, fate, className, whatIf) => {
  const node = make(
    "div", `line close ${className}`,
    make("span", "place muted small", `${place}`),
    Object.assign(make("span", "token mono", token), { title: token }),
    make("span", "words", ...said),
    make("span", `fate ${fate}`, ...fateNode(fate), whatIf ? make("small", "if", whatIf) : null),
  );
  node.setAttribute("role", "listitem");
  return node;
};

const closing = (data, base, now) => {
  const same = !now || (now.kept === base.kept && now.over === base.over && now.open === base.open);
  if (same) {
    const close = data.closing;
    return close && closingLine(close.place, close.token, [close.words], close.kind, close.current ? "current" : "", null);
  }
  if (now.over || now.open) return null;
  const all = now.kept === data.lines.length;
  if (all && data.bonus) return closingLine(data.bonus.place, data.bonus.token, [data.bonus.words], "bonus", "changed", data.words.what_if);
  const gaps = all ? [] : data.lines[now.kept].might.gaps;
  const said = all ? [data.said["would.bonus"]] : gaps.length ? [data.said["would.gaps"], ...spans(gaps)] : [data.said["would.none"]];
  return closingLine(now.kept + 1, "…", said, all ? "bonus" : "correction", "changed", data.words.what_if);
};

/** What the read gives where all drafts stay. */
const allStay = ({ said, bonus }) => {
  const [before, after] = said["would.all"].split("{bonus}");
  if (!bonus) return [before, said["would.more"], after];
  const [left, right] = said["would.token"].split("{token}");
  return [before + left, make("span", "token-text", bonus.token), right + after];
};

/** The sentence about the pin moved last. */
const sentence = (data, now, index) => {
  const { draft, might } = data.lines[index];
  const fields = { carrier: now.carrier, ...written(now.coins[index], might.chance) };
  const stays = now.fates[index] === "kept";
  const carried = stays && !now.passes[index] ? fill(data.said["would.carried"], fields) : "";
  const [before, after] = data.said[stays ? "would.stay" : "would.go"].split("{draft}");
  const would = [before, make("span", "token-text", draft), fill(after, { ...fields, carried })];
  if (now.over) return [...would, data.said["would.over"]];
  return now.kept === data.lines.length ? [...would, ...allStay(data)] : would;
};

/** One row of the read: what it sees as a row of cells, what it answers, and the bar of the draft in its place. */
const answer = (row, drafts, data) => {
  const sees = make("span", "sees", make("span", "cell context seen"), ...drafts.map((_, index) => make("span", `cell${index < row.seen ? " seen" : ""}`)));
  sees.setAttribute("role", "img");
  sees.setAttribute("aria-label", row.sees);
  sees.title = row.sees;
  const bar = make("span", "bar");
  if (row.stays !== null) bar.append(...(row.stays > 0 ? [area("both", Math.min(row.stays, 1))] : []), ...(row.stays < 1 ? [area("only_drafter")] : []));
  const beside = make("span", "beside", row.stays === null ? null : bar, make("span", "words", ...spans(row.words)));
  const node = make("div", "answer", sees, make("span", "tells", ...spans(row.answer)), beside);
  node.setAttribute("role", "listitem");
  return node;
};

export default function ({ data: [data], parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".coin");
  const find = (selector) => root.querySelector(selector);
  const state = (root.specviz ??= { rows: [], moved: new Map(), dragging: null, pressed: null });
  // Another event, round or run is another story: what was moved goes back.
  const story = JSON.stringify([data.moment, data.round, data.lines.map((line) => [line.draft, line.coin, line.stays])]);
  if (state.story !== story) Object.assign(state, { story, moved: new Map(), dragging: null, pressed: null });
  const arrived = state.moment !== undefined && state.moment !== data.moment;
  Object.assign(state, { data, moment: data.moment });

  const base = judge(data, new Map());
  const reading = data.read.length > 0;
  state.paint = () => {
    const now = state.moved.size ? judge(data, state.moved) : null;
    data.lines.forEach((line, index) => paintLine((state.rows[index] ??= newLine(state, index)), line, index, state, base, now));
    const close = closing(data, base, now);
    const nodes = [...data.lines.map((_, index) => state.rows[index].node), ...(close ? [close] : [])];
    const list = find(".drafts");
    // Nodes that are there already are not touched: moving one would take the pointer from its pin.
    nodes.forEach((node, index) => {
      const there = list.children[index];
      if (there === node) return;
      if (there && index >= data.lines.length) there.replaceWith(node);
      else list.insertBefore(node, there ?? null);
    });
    while (list.children.length > nodes.length) list.lastElementChild.remove();
    find(".whatif").hidden = !now;
    if (now) find(".whatif p").replaceChildren(...sentence(data, now, state.last));
  };
  state.report = (index) => {
    if (!data.reports) return;
    const now = judge(data, state.moved);
    const stays = now.fates[index] === "kept", changed = now.fates.some((fate, place) => fate !== base.fates[place]);
    setTriggerValue("thrown", { round: data.round, place: index, coin: now.coins[index], stays, changed });
  };

  root.classList.toggle("choosing", data.chosen);
  find("h2").textContent = data.title;
  const pins = data.lines.some((line) => line.coin !== null && line.might);
  const signs = data.chosen || !data.lines.length ? [] : [
    key("both", data.words[data.block ? "inside" : "stays"]),
    key("only_drafter", data.words[data.block ? "outside" : "goes"]),
    ...(reading ? [] : [make("span", "key", make("span", "dot"), data.words[pins ? "coin_drag" : "coin"])]),
    ...(data.legend ? [make("span", "", data.legend)] : []),
  ];
  find(".legend").replaceChildren(...signs);
  find(".note").replaceChildren(...spans(data.note));
  find(".badge").textContent = data.words.what_if;
  const back = find(".whatif button");
  back.textContent = data.words.back;
  back.onclick = () => {
    const focus = state.rows[state.last]?.pin;
    state.moved.clear();
    state.paint();
    focus?.focus();
  };
  find(".heads").replaceChildren(...data.heads.map((head) => make("span", "", head)));
  find(".heads").hidden = !data.lines.length;
  find(".lines").hidden = reading;
  state.paint();

  find(".read").hidden = !reading;
  if (reading) {
    find(".pass").textContent = data.read_label;
    find(".answers").replaceChildren(...data.read.map((row) => answer(row, data.lines, data)));
    find(".read").classList.toggle("lit", arrived);
    const ask = find(".read button");
    const busy = (asking) => {
      ask.disabled = asking;
      ask.textContent = data.words[asking ? "asking" : "ask"];
    };
    clearTimeout(state.asking);
    ask.hidden = !data.asks;
    busy(false);
    ask.onclick = () => {
      busy(true);
      // Where nothing can be asked the page says why and this data stays as it is: then it may be tried again.
      state.asking = setTimeout(() => busy(false), PATIENCE_MS);
      setTriggerValue("asked", data.round);
    };
    find(".said").replaceChildren(...spans(data.answer));
  }
  find(".formula").hidden = !data.formula;
  find(".formula").textContent = data.formula ?? "";
  twinTable(root, data.table, data.words.table);
}
