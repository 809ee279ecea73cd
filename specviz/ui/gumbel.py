"""The Gumbel page's controls, and how its panels are drawn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from specviz.experiments import Grid
from specviz.figures import gumbel as figures
from specviz.figures import invariance as invariances
from specviz.figures.charts import Panel
from specviz.figures.events import Timeline
from specviz.figures.gumbel import Check, Shown, Site
from specviz.figures.invariance import Key
from specviz.figures.text import Texts, prose
from specviz.trace import Trace
from specviz.ui import components, controls, experiment, frame, panels, plot, recordings, session, sharing, words
from specviz.ui.controls import BOUND, Refused
from specviz.ui.experiment import GRID

GUMBEL, DECODE, HAND = "gumbel", "decode", "hand"
DEFAULTS: dict[str, Any] = {
    "race": GUMBEL,
    "race_pair": next(iter(figures.PAIRS)),
    "noise": 0,
    "family": figures.MIX,
    "match_pair": next(iter(figures.PAIRS)),
    "match_seed": 0,
}
NOISE = (0, figures.MOST_NOISE)
COMPARED = ("text_one", "text_two")
"""The keys of the two texts that are compared."""


# --- runs -------------------------------------------------------------------------------------------------------------


def coupled() -> tuple[Trace, str] | None:
    """A run whose models shared noise, and where it is from: Decode's where it is one, else the recorded one."""
    here = _decode()
    if here is not None and figures.coupled(here[0]):
        return here
    found = recordings.for_rule(figures.RULE.name)
    return (found.trace, words.GUMBEL["recorded"]) if found is not None and figures.coupled(found.trace) else None


def _decode() -> tuple[Trace, str] | None:
    """The run on the Decode page, once it was visited."""
    if "decode" not in st.session_state:
        return None
    run = session.state().run
    origin = {None: "measured", session.FILE: "file"}.get(run.recording, "recorded")
    return run.trace, words.GUMBEL[origin]


def _sources() -> dict[str, tuple[Trace, str] | None]:
    """What can race: runs by their names, and tokens by hand."""
    here, shared = _decode(), coupled()
    sources = {} if shared is None else {GUMBEL: shared}
    if here is not None and figures.raced(here[0]) and (shared is None or here[0] is not shared[0]):
        sources[DECODE] = here
    return sources | {HAND: None}


# --- the heading ------------------------------------------------------------------------------------------------------


def heading() -> None:
    """The page's heading, what its link could not have, and how much is shown."""
    if "gumbel_refused" not in st.session_state:  # before any control is drawn: it puts its default in the address
        _arrival()
    shared = coupled()
    origins = [*([] if shared is None else [shared[1]]), "simulated", "modelled"]
    with frame.heading("Gumbel", words.GUMBEL["lead"], lambda: frame.badges(origins)):
        pass
    if st.session_state.gumbel_refused:
        st.warning(words.literal(st.session_state.gumbel_refused))
    frame.detail()


def _names() -> dict[str, dict[str, str]]:
    """Of each control with options, what it calls each of them: the address has the names."""
    pairs = {name: name for name in figures.PAIRS}
    return {
        "race": {source: words.GUMBEL["sources"][source] for source in _sources()},
        "race_pair": pairs,
        "match_pair": pairs,
        "family": {name: name for name in _families()},
        "grid_prompt": {name: name for name in words.PRESETS},
        **dict.fromkeys(COMPARED, _compared()),
        "detail": {name: name for name in words.DETAILS},
    }


def _compared() -> dict[str, str]:
    grid, _ = experiment.current(GRID)
    return {name: name for name in _texts(grid)} if grid is not None else {}


def _families() -> tuple[str, ...]:
    return figures.FAMILIES if coupled() is not None else figures.FAMILIES[:-1]


def _numbers() -> dict[str, tuple[tuple[int, int], int]]:
    """Of each control with numbers, what it takes and where it opens."""
    source = next((one for one in _sources().values() if one is not None), None)
    numbers = {"noise": (NOISE, 0), "match_seed": (NOISE, 0), "grid_seed": (controls.RANGES["seed"], 0)}
    if source is not None:
        ends = (1, len(figures.raced(source[0])))
        numbers |= {"race_place": (ends, _opening(source[0]))}
    shared = coupled()
    if shared is not None:
        numbers |= {"replay": ((1, len(figures.sites(shared[0]))), 1)}
    return numbers


def _arrival() -> None:
    """Keep what is to be said of an address that asks for what no control takes. That leaves the address, and so do
    empty values; the page starts anew, for controls are seeded from the address that a run began with."""
    names, numbers, refused = _names(), _numbers(), {}
    known = (*names, *numbers, "race_place", "replay")
    for key, raw in st.query_params.items():
        if not raw or key not in known:
            continue
        value: Any = None
        if key in names and raw not in names[key].values():
            default = DEFAULTS.get(key, words.DETAILS[1])
            value = Refused(words.LINK["not_offered"], names[key].get(default, default))
        elif key in numbers:
            value = controls.number(raw, *numbers[key])
        elif key not in names:
            value = Refused(words.LINK["not_offered"], "1")
        if isinstance(value, Refused):
            refused[key] = raw, value
    st.session_state.gumbel_refused = sharing.refusal({key.replace("_", " "): one for key, one in refused.items()})
    gone = [key for key, raw in st.query_params.items() if key in refused or (key in known and not raw)]
    for key in gone:
        del st.query_params[key]
    if gone:
        st.rerun()


# --- the race ---------------------------------------------------------------------------------------------------------


def race() -> None:
    """The race: a place of a run, or a few tokens; with the noise that was, or any other."""
    sources = _sources()
    with st.container(border=True, key="card_race"):
        top = st.container()
        with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="race_controls"):
            if st.session_state.get("race") not in (None, *sources):  # the run it was about is gone
                st.session_state.race = next(iter(sources))
            source = st.segmented_control(
                words.GUMBEL["race"],
                list(sources),
                default=next(iter(sources)),
                required=True,
                format_func=words.GUMBEL["sources"].__getitem__,
                key="race",
                bind=BOUND,
                width="content",
            )
            run = sources[source]
            site = _site(run[0]) if run is not None else None
            pair = _pair("race_pair") if run is None else ""
        with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="noise_controls"):
            seed = _noise(happened=source == GUMBEL)
        if run is None:
            row, texts = figures.by_hand(figures.PAIRS[pair], seed)
            shown = figures.with_new_noise(row, texts, words.GUMBEL["races.title"], seed)
        else:
            assert site is not None
            shown = _of_run(*run, site, seed)
        with top:
            _titled(words.GUMBEL["title"], shown.badge).text(shown.story)
        detail = st.session_state.get("detail") or words.DETAILS[1]
        components.place(shown.place, detail=detail)
        if detail != words.DETAILS[0]:
            for line in shown.numbers:
                st.text(line)
        if detail == words.DETAILS[2]:
            sums = figures.sums(shown)
            plot.draw(sums.figure, key="plot_sums", alt=sums.alt, table=sums.table)


def _titled(title: str, badge: str) -> Any:
    """A card's title with its badge; returns where its sentence goes."""
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
        st.subheader(title, anchor=False, width="content")
        st.badge(badge, color="gray")
    return st.container()


def _of_run(trace: Trace, badge: str, site: Site, seed: int) -> Shown:
    texts = Texts.of(trace)
    if seed == 0 and figures.coupled(trace):
        return figures.as_it_happened(trace, site, texts, badge)
    row = figures.with_noise(site.row, seed, site.position)
    return figures.with_new_noise(row, figures.naming(texts, row), figures.title(trace, site, texts), seed)


def _opening(trace: Trace) -> int:
    """The place to open at, from 1: where Decode opens, at a draft that goes."""
    event = Timeline(trace).first_rejection()
    places = figures.raced(trace)
    at = (event.round, event.place) if event is not None else None
    return next((i for i, site in enumerate(places, 1) if (site.round.index, site.draft) == at), 1)


def _site(trace: Trace) -> Site:
    """A place of the run, and the buttons to the ones beside it."""
    places = figures.raced(trace)
    last, opening = len(places), _opening(trace)
    if st.session_state.get("race_place", 1) > last:  # the run became another one
        st.session_state.race_place = opening

    def step(by: int) -> None:
        now = st.session_state.get("race_place", opening)
        st.session_state.race_place = min(max(now + by, 1), last)

    label = words.GUMBEL["place"].format(last=last)
    chosen = st.slider(label, 1, last, opening, key="race_place", bind=BOUND, width=200) if last > 1 else 1
    for key, by, end, shortcut in (("back", -1, 1, "Left"), ("step", 1, last, "Right")):
        st.button(
            words.BUTTONS[key],
            key=f"place_{key}",
            on_click=step,
            args=(by,),
            disabled=chosen == end,
            shortcut=shortcut,
        )
    return places[chosen - 1]


def _pair(key: str) -> str:
    return st.selectbox(words.GUMBEL["pair"], list(figures.PAIRS), key=key, bind=BOUND, width=200)


def _noise(*, happened: bool) -> int:
    """Which noise: 0 is the run's own where it has one."""

    def add(by: int) -> None:
        st.session_state.noise = (st.session_state.get("noise", 0) + by - 1) % figures.MOST_NOISE + 1

    def back() -> None:
        st.session_state.noise = 0

    st.button(words.GUMBEL["new"], key="new_noise", type="primary", on_click=add, args=(1,), shortcut="N")
    st.button(words.GUMBEL["hundred"], key="more_noise", on_click=add, args=(100,))
    hint = words.GUMBEL["noise.help" if happened else "noise.hand"]
    seed = st.number_input(words.GUMBEL["noise"], *NOISE, 0, key="noise", bind=BOUND, width=130, help=hint)
    if happened:
        st.button(words.GUMBEL["happened"], key="happened", on_click=back, disabled=seed == 0)
    return int(seed)


# --- agreement --------------------------------------------------------------------------------------------------------


def match() -> None:
    """The chance of agreement over a family of pairs."""
    panels.row(("match", _match))


def _match() -> Panel:
    families = _families()
    if st.session_state.get("family") not in (None, *families):
        st.session_state.family = families[0]
    chosen = st.pills(words.GUMBEL["family"], families, default=families[0], required=True, key="family", bind=BOUND)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="match_controls"):
        pair = _pair("match_pair") if chosen in figures.OWN_PAIR else DEFAULTS["match_pair"]
        shared = coupled()
        if chosen == figures.RUN and shared is not None:
            return figures.places(*shared)
        seed = st.number_input(words.GUMBEL["match_seed"], *NOISE, 0, key="match_seed", bind=BOUND, width=150)
    return figures.match(chosen, pair, int(seed))


# --- invariance -------------------------------------------------------------------------------------------------------


def invariance() -> Any:
    """One prompt and one seed under many drafters: which texts come out, and two of them side by side. Returns where
    the progress of decoding them here goes."""
    grid, origin = experiment.current(GRID)
    detail = st.session_state.get("detail") or words.DETAILS[1]
    with st.container(border=True, key="card_grid"):
        story = _titled(words.TEXTS["title"], words.GRID[origin])
        if grid is None:
            story.text(words.GRID["none"])
        else:
            runs = _texts(grid)
            laid = invariances.layout(grid, words.RULES, words.DRAFTERS, _two(grid, runs))
            story.text(laid.story)
            components.grid(laid, detail=detail, on_picked=_picked)
            if detail != words.DETAILS[0]:
                for line in (
                    *laid.numbers,
                    words.TEXTS["asked"].format(prompt=prose(grid.prompt)),
                ):
                    st.text(line)
            if detail == words.DETAILS[2]:
                st.code(words.TEXTS["formula"], language=None, wrap_lines=True)
        slot = _runner()
        if detail != words.DETAILS[0]:
            experiment.files(GRID)
    return slot


def _runner() -> Any:
    """What decodes the texts here: the prompt, the seed, and the buttons."""
    busy = experiment.state(GRID).wanted
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="grid_row"):
        prompt = st.selectbox(
            words.TEXTS["prompt"], list(words.PRESETS), key="grid_prompt", bind=BOUND, width=150, disabled=busy
        )
        seed = st.number_input(
            words.TEXTS["seed"], *controls.RANGES["seed"], 0, key="grid_seed", bind=BOUND, width=150, disabled=busy
        )
        experiment.start(GRID, {"prompt": words.PRESETS[prompt], "seed": int(seed)})
        experiment.cancel(GRID)
    experiment.told(GRID)
    return st.empty()


def work(slot: Any) -> None:
    """Decode the texts, if that was asked for: the last thing that the page does, for it takes its time."""
    experiment.work(GRID, slot)


def _texts(grid: Grid) -> dict[str, Key]:
    """Every text by its name."""
    return {invariances.name(run, words.RULES, words.DRAFTERS): invariances.key_of(run) for run in grid.runs}


def _two(grid: Grid, runs: Mapping[str, Key]) -> tuple[Key, Key] | None:
    """The two texts to compare, as chosen."""
    opening = invariances.telling(grid)
    if opening is None:
        return None
    names = list(runs)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="grid_two"):
        chosen = []
        for key, first in zip(COMPARED, opening, strict=True):
            if st.session_state.get(key, names[0]) not in runs:  # the grid became another one
                del st.session_state[key]
            index = list(runs.values()).index(first)
            chosen.append(st.selectbox(words.TEXTS[key], names, index, key=key, bind=BOUND, width=300))
    return runs[chosen[0]], runs[chosen[1]]


def _picked() -> None:
    """A cell was pressed: its text is compared with the one before."""
    grid, _ = experiment.current(GRID)
    picked = st.session_state.grid_texts.picked
    name = next((name for name, key in _texts(grid).items() if list(key) == picked), None)
    if name is not None:
        st.session_state[COMPARED[0]] = st.session_state[COMPARED[1]]
        st.session_state[COMPARED[1]] = name


# --- a place played again ---------------------------------------------------------------------------------------------


def replay() -> None:
    """Any place of the run from its seed and position alone."""
    shared = coupled()
    if shared is None:
        return
    trace, badge = shared
    panels.row(("replay", lambda: _replay(trace, badge)))


def _replay(trace: Trace, badge: str) -> Panel:
    places = figures.sites(trace)
    if st.session_state.get("replay", 1) > len(places):
        st.session_state.replay = 1
    label = words.GUMBEL["place"].format(last=len(places))
    chosen = st.slider(label, 1, len(places), 1, key="replay", bind=BOUND) if len(places) > 1 else 1
    site, texts = places[chosen - 1], Texts.of(trace)
    if st.session_state.get("detail") != words.DETAILS[0]:
        st.code(figures.lines(site, texts), language="python", wrap_lines=True)
    return figures.replay(site, texts, _checked(trace), badge)


def _checked(trace: Trace) -> Check:
    """All places played again; once, until the run is another."""
    kept = st.session_state.get("gumbel_check")
    if kept is None or kept[0] is not trace:
        kept = st.session_state.gumbel_check = (trace, figures.check(trace))
    return kept[1]
