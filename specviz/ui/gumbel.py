"""The Gumbel page's controls, and how its panels are drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from specviz.experiments import GRID_GAMMAS, GRID_RULES, GRID_TOKENS, Grid
from specviz.figures import gumbel as figures
from specviz.figures import invariance as invariances
from specviz.figures.charts import Panel
from specviz.figures.events import Timeline
from specviz.figures.gumbel import Check, Shown, Site
from specviz.figures.invariance import Key
from specviz.figures.text import Texts, prose
from specviz.models import catalogue
from specviz.trace import Trace
from specviz.ui import (
    components,
    controls,
    experiment,
    frame,
    panels,
    plot,
    positions,
    recordings,
    session,
    sharing,
    words,
)
from specviz.ui.controls import BOUND, Refused
from specviz.ui.experiment import GRID

GUMBEL, DECODE, HAND = "gumbel", "decode", "hand"
PAIR = next(iter(figures.PAIRS))
"""The pair that opens."""
NOISE = (0, figures.MOST_NOISE)
COMPARED = ("text_one", "text_two")
"""The keys of the two texts that are compared."""
PLACES = {GUMBEL: "race_place", DECODE: "decode_place"}
"""The key of the place that is shown, of each run that can race."""


# --- runs -------------------------------------------------------------------------------------------------------------


def coupled() -> tuple[Trace, str] | None:
    """A run whose models shared noise, and where it is from: Decode's where it is one, else the recorded one."""
    here = _decode()
    if here is not None and figures.coupled(here[0]):
        return here
    found = recordings.for_rule(figures.RULE.name)
    return (found.trace, words.GUMBEL["recorded"]) if found is not None and figures.coupled(found.trace) else None


def _decode() -> tuple[Trace, str] | None:
    """The run on the Decode page, or the one that it opens with."""
    run = positions.current_run()
    if run is None:
        return None
    origin = {None: "measured", session.FILE: "file"}.get(run.recording, "recorded")
    return run.trace, words.GUMBEL[origin]


def _sources() -> dict[str, tuple[Trace, str] | None]:
    """What can race: runs by their names, and tokens by hand."""
    here = _decode()
    runs = {GUMBEL: coupled(), DECODE: here if here is not None and figures.raced(here[0]) else None}
    return {name: run for name, run in runs.items() if run is not None} | {HAND: None}


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


def _offers() -> dict[str, tuple[list[str], str]]:
    """Of each control with options, their names, which the address has, and the one it opens with."""
    sources, shared = _sources(), coupled()
    offers = {
        "race": ([words.GUMBEL["sources"][source] for source in sources], words.GUMBEL["sources"][next(iter(sources))]),
        "race_pair": (list(figures.PAIRS), PAIR),
        "match_pair": (list(figures.PAIRS), PAIR),
        "family": (list(_families()), _families()[0]),
        "grid_prompt": (list(words.PRESETS), _first_asked()[0]),
        "detail": (list(words.DETAILS), words.DETAILS[1]),
    }
    for source, key in PLACES.items():
        if run := sources.get(source):
            offers[key] = [str(site.number) for site in figures.raced(run[0])], str(_opening(run[0]))
    if shared is not None:
        offers["replay"] = [str(site.number) for site in figures.sites(shared[0])], "1"
    grid, _ = experiment.current(GRID)
    if grid is not None and (opening := invariances.telling(grid)) is not None:
        names = {key: name for name, key in _texts(grid).items()}
        offers |= {key: (list(names.values()), names[one]) for key, one in zip(COMPARED, opening, strict=True)}
    return offers


def _families() -> tuple[str, ...]:
    return figures.FAMILIES if coupled() is not None else figures.FAMILIES[:-1]


def _arrival() -> None:
    """Keep what is to be said of an address that asks for what no control takes. That leaves the address, and so do
    empty values; the page starts anew, for controls are seeded from the address that a run began with."""
    offers, refused = _offers(), {}
    numbers = {"noise": (NOISE, 0), "match_seed": (NOISE, 0), "grid_seed": (controls.RANGES["seed"], _first_asked()[1])}
    known = {*offers, *numbers, *PLACES.values(), "replay", *COMPARED}
    for key, raw in st.query_params.items():
        if not raw or key not in known:
            continue
        if key in numbers:
            value = controls.number(raw, *numbers[key])
        else:
            names, first = offers.get(key, ([], words.GUMBEL["nothing"]))
            value = None if raw in names else Refused(words.LINK["not_offered"], first)
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
            site = _raced(run[0], PLACES[source]) if run is not None else None
            pair = _pair("race_pair") if run is None else ""
        with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="noise_controls"):
            seed = _noise(happened=run is not None and figures.coupled(run[0]))
        if run is None:
            row, texts = figures.by_hand(figures.PAIRS[pair], seed)
            shown = figures.with_new_noise(row, texts, words.GUMBEL["races.title"], seed)
        else:
            assert site is not None
            shown = _of_run(*run, site, seed)
        with top:
            _titled(words.GUMBEL["title"], shown.badge)
        st.container(key="race_story").text(shown.story)  # under the buttons: it has one line or two
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
    """The place to open at: where Decode opens, at a draft that goes."""
    event = Timeline(trace).first_rejection()
    places = figures.raced(trace)
    at = (event.round, event.place) if event is not None else None
    return next((site.number for site in places if (site.round.index, site.draft) == at), places[0].number)


def _raced(trace: Trace, key: str) -> Site:
    """A place of the run at which both models spoke, and the buttons to the ones beside it."""
    places, opening = figures.raced(trace), _opening(trace)
    chosen = _place(trace, places, opening, key, "place.drafted", width=230)
    index = places.index(chosen)

    def go(number: int) -> None:
        st.session_state[key] = number

    with st.container(horizontal=True, gap="small", width="content", key="place_steps"):
        for name, by, shortcut in (("back", -1, "Left"), ("step", 1, "Right")):
            beside = places[min(max(index + by, 0), len(places) - 1)]
            st.button(
                words.BUTTONS[name],
                key=f"place_{name}",
                on_click=go,
                args=(beside.number,),
                disabled=beside is chosen,
                shortcut=shortcut,
            )
    return chosen


def _place(
    trace: Trace, places: Sequence[Site], opening: int, key: str, word: str = "place", width: Any = "stretch"
) -> Site:
    """The one of ``places`` that the visitor chose, by its number in the text."""
    numbers = [site.number for site in places]
    if st.session_state.get(key, opening) not in numbers:  # the run became another one
        st.session_state[key] = opening
    if len(numbers) == 1:
        return places[0]
    label = words.GUMBEL[word].format(count=len(places), last=len(trace.text_ids))
    chosen = st.select_slider(label, numbers, opening, key=key, bind=BOUND, width=width)
    return places[numbers.index(chosen)]


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
        pair = _pair("match_pair") if chosen in figures.OWN_PAIR else PAIR
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
        names, (first, own) = list(words.PRESETS), _first_asked()
        opening = names.index(first)
        prompt = st.selectbox(
            words.TEXTS["prompt"], names, opening, key="grid_prompt", bind=BOUND, width=150, disabled=busy
        )
        seed = st.number_input(
            words.TEXTS["seed"], *controls.RANGES["seed"], own, key="grid_seed", bind=BOUND, width=150, disabled=busy
        )
        experiment.start(GRID, {"prompt": words.PRESETS[prompt], "seed": int(seed)})
        experiment.cancel(GRID)
    with st.container():  # always there: what stands below would be drawn twice while a script runs
        if all_of_them := _all(timed=not busy):
            st.text(all_of_them)
        experiment.told(GRID)
    return st.empty()


def _first_asked() -> tuple[str, int]:
    """The prompt, by its name, and the seed to begin with: those of the grid that ships."""
    shipped = GRID.shipped()
    names = {prompt: name for name, prompt in words.PRESETS.items()}
    if shipped is None or shipped.prompt not in names:
        return next(iter(words.PRESETS)), 0
    return names[shipped.prompt], shipped.seed


def _all(*, timed: bool) -> str:
    """How much there is to decode, and how long that takes at the pace of the shown texts; empty of an unknown pair."""
    spec = catalogue.pairs().get(experiment.pair_id())
    if spec is None:
        return ""
    texts = len(GRID_RULES) * (1 + (3 if spec.has_drafter_model else 2) * len(GRID_GAMMAS))
    total = texts * GRID_TOKENS
    grid, _ = experiment.current(GRID)
    tokens, seconds = (
        (sum(len(run.ids) for run in grid.runs), sum(run.seconds for run in grid.runs)) if grid else (0, 0)
    )
    time = (
        words.GRID["all.time"].format(time=experiment.duration(seconds / tokens * total))
        if timed and tokens and seconds
        else ""
    )
    return str(words.GRID["all"].format(texts=texts, tokens=GRID_TOKENS, total=total, time=time))


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
        st.empty()  # in their place, for what a running script does not draw again would stay
        return None
    names = list(runs)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="grid_two"):
        chosen = []
        for key, first in zip(COMPARED, opening, strict=True):
            index = list(runs.values()).index(first)
            if st.session_state.get(key, names[index]) not in runs:  # the grid became another one: the browser is told
                st.session_state[key] = names[index]
            chosen.append(st.selectbox(words.TEXTS[key], names, index, key=key, bind=BOUND, width=300))
    return runs[chosen[0]], runs[chosen[1]]


def _picked() -> None:
    """A cell was pressed: its text is compared with the one before."""
    grid, _ = experiment.current(GRID)
    picked = st.session_state.grid_texts.picked
    name = next((name for name, key in _texts(grid).items() if list(key) == picked), None)
    if name is not None and COMPARED[1] in st.session_state:
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
    places, texts = figures.sites(trace), Texts.of(trace)
    site = _place(trace, places, places[0].number, "replay")
    detail = words.DETAILS.index(st.session_state.get("detail") or words.DETAILS[1])
    if detail:
        st.code(figures.lines(site, texts), language="python", wrap_lines=True)
    return figures.replay(site, texts, _checked(trace), badge, figures.REPLAY_DIGITS[detail])


def _checked(trace: Trace) -> Check:
    """All places played again; once, until the run is another."""
    kept = st.session_state.get("gumbel_check")
    if kept is None or kept[0] is not trace:
        kept = st.session_state.gumbel_check = (trace, figures.check(trace))
    return kept[1]
