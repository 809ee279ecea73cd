"""The lower half of the Overlap page: the losslessness bench, two tokens in a row, and the lines that ran.

What is asked for is dealt in the script itself, batch by batch: Stop, and whatever else the visitor does, comes through
between two batches, and what was dealt stays. It belongs to one place: another place starts with nothing dealt.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import streamlit as st

from specviz import losslessness
from specviz.figures import bench as figures
from specviz.figures import lines
from specviz.figures.bench import Draws, Pairs
from specviz.figures.charts import Panel
from specviz.losslessness import Entrant
from specviz.probability import Array
from specviz.ui import components, controls, panels, words
from specviz.ui.controls import BOUND, Refused
from specviz.ui.overlap_scene import Scene

KEYS = ("bench_rule", "bench_gamma", "bench_seed")
"""Controls here that are part of the address."""
GAMMAS = (1, 2, 3)
SEEDS = (1, 2**31 - 1)
FIRST = "speculative_sampling"
PAIRS, PAIR_BATCH = 100_000, 20_000

_log = logging.getLogger(__name__)

Job = tuple[str, int]
"""An entrant by its name, and the gamma of a text of two tokens; 0 for the place alone."""


@dataclass(slots=True)
class Bench:
    """One visitor's bench at one place: what was dealt there, and what is still asked for."""

    place: str = ""
    seed: int = SEEDS[0]
    """Of the draws that are dealt, or were dealt last."""
    wanted: tuple[Job, ...] = ()
    draws: dict[str, Draws] = field(default_factory=dict)
    pairs: dict[Job, Pairs] = field(default_factory=dict)
    chances: dict[Job, Array] = field(default_factory=dict)
    message: str = ""
    shown: tuple[str, int] = ("", 0)
    """Whose lines are shown, and the seed of their round."""
    another: bool | None = None
    """Another round is asked for: one whose drafts stay, or one in which a draft goes."""
    unfound: str = ""


def state() -> Bench:
    """This visitor's."""
    found: Bench = st.session_state.setdefault("bench", Bench())
    return found


def panel(scene: Scene) -> None:
    """Everything below the upper half of the page; what is asked for is dealt at its end."""
    _turn_to(scene)
    trials = {entrant.name: entrant for entrant in scene.entrants}
    with st.container(key="bench"):
        st.subheader(words.BENCH["title"], anchor=False)
        st.text(words.BENCH["lead"])
        chosen, slot = _controls(trials, len(scene.p))
        _one_token(scene, chosen)
        _two_tokens(scene, chosen)
        _lines(scene, chosen)
    _deal(trials, scene, slot)


def _turn_to(scene: Scene) -> None:
    """Another place: what was dealt at the one before goes with it."""
    if state().place != scene.key:
        st.session_state.bench = Bench(scene.key, state().seed)


def _name_of(scene: Scene) -> Callable[[int], str]:
    names = dict(zip(scene.shown, scene.labels, strict=True))
    return lambda token_id: names.get(token_id, f"#{token_id}")


# --- one token --------------------------------------------------------------------------------------------------------


def taken(key: str, raw: str) -> Any:
    """What the bench makes of a parameter of the address; :class:`Refused` where it takes no such thing."""
    if key == "bench_seed":
        return controls.number(raw, SEEDS, SEEDS[0])
    offered = map(str, GAMMAS) if key == "bench_gamma" else words.ENTRANTS.values()
    instead = str(GAMMAS[1]) if key == "bench_gamma" else words.ENTRANTS[FIRST]
    known = raw if key == "bench_gamma" else raw.removesuffix(words.BENCH["wrong"])
    return raw if known in offered else Refused(words.LINK["not_offered"], instead)


def _controls(trials: dict[str, Entrant], vocab: int) -> tuple[Entrant, Any]:
    """Who is on the bench, the buttons, and where progress goes."""
    now, names = state(), list(trials)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="bench_controls"):
        name = st.selectbox(
            words.BENCH["rule"],
            names,
            index=names.index(FIRST),
            format_func=lambda one: words.ENTRANTS[one] + ("" if trials[one].exact else words.BENCH["wrong"]),
            key="bench_rule",
            bind=BOUND,
            width=300,
        )
        chosen = trials[name or FIRST]
        count = losslessness.whole_count(chosen.rule, vocab)
        st.number_input(words.BENCH["seed"], *SEEDS, SEEDS[0], key="bench_seed", bind=BOUND, width=110)
        again = "again" if _moves((chosen.name, 0)) else "deal"
        label, busy = words.BENCH[again].format(count=count), bool(now.wanted)
        st.button(label, key="bench_deal", type="primary", disabled=busy, on_click=_want, args=((chosen.name, 0),))
        everything = tuple((one, 0) for one in names)
        st.button(words.BENCH["all"], key="bench_all", disabled=busy, on_click=_want, args=everything)
        if now.wanted:  # last, so that nothing else moves
            st.button(words.BENCH["stop"], key="bench_stop", on_click=_stop)
    slot = st.empty()
    if now.message:
        slot.caption(now.message)
    return chosen, slot


def _want(*jobs: Job) -> None:
    """Deal these with the seed in sight, or the next one where that was dealt already. While something is dealt, a
    second press is none."""
    now = state()
    if now.wanted:
        return
    if _moves(*jobs):
        st.session_state.bench_seed = now.seed % SEEDS[1] + 1
    now.wanted, now.seed, now.message = jobs, _seed(), ""


def _seed() -> int:
    """The seed in sight, which a link may bring; an empty box counts as the first."""
    return st.session_state.get("bench_seed") or SEEDS[0]


def _moves(*jobs: Job) -> bool:
    """Whether any of these was dealt with the seed in sight."""
    now = state()
    return now.seed == _seed() and any(_done(now, job) for job in jobs)


def _stop() -> None:
    now = state()
    now.wanted, now.message = (), words.BENCH["stopped"]


def _one_token(scene: Scene, chosen: Entrant) -> None:
    now, name_of = state(), _name_of(scene)
    dealt = [(called, now.draws[name]) for name, called in words.ENTRANTS.items() if name in now.draws]
    story = scene.detail == words.DETAILS[0]
    name, draws = words.ENTRANTS[chosen.name], now.draws.get(chosen.name)
    panels.row(
        ("bench_out", lambda: figures.out(chosen, name, draws, scene.shown, name_of, story=story)),
        ("bench_far", lambda: figures.far(dealt, name_of, story=story)),
    )


# --- two tokens -------------------------------------------------------------------------------------------------------


def _two_tokens(scene: Scene, chosen: Entrant) -> None:
    now, name_of = state(), _name_of(scene)
    (p, _, _), kept = figures.cells(chosen.p, chosen.q, chosen.drawn, scene.shown)
    names = [name_of(token) for token in kept] + ([words.BENCH["others"]] if len(p) > len(kept) else [])
    job = (chosen.name, GAMMAS[1])

    def chances() -> Panel:
        nonlocal job
        with st.container(horizontal=True, vertical_alignment="bottom", key="pair_controls"):
            gamma = st.segmented_control(
                words.BENCH["gamma"], GAMMAS, default=GAMMAS[1], required=True, key="bench_gamma", bind=BOUND
            )
            job = (chosen.name, gamma or GAMMAS[1])
            label = words.BENCH["again" if _moves(job) else "deal"].format(count=PAIRS)
            st.button(label, key="bench_pairs", disabled=bool(now.wanted), on_click=_want, args=(job,))
        return figures.pair_chances(_chances(scene, chosen, job), np.outer(p, p), names, coarse=len(p) > len(kept))

    def dealt() -> Panel:
        return figures.pair_dealt(now.pairs.get(job), _chances(scene, chosen, job), names, exact=chosen.exact)

    panels.row(("pair_chances", chances), ("pair_dealt", dealt))


def _places(scene: Scene, trial: Entrant, gamma: int) -> tuple[Array, Array, Array]:
    """Laws by place for two rounds, every place like this one: the target's, the reported and the drafted ones."""
    laws, _ = figures.cells(trial.p, trial.q, trial.drawn, scene.shown)
    p, q, drawn = (np.stack([np.asarray(law)] * (gamma + 2)) for law in laws)
    return p, q, drawn


def _chances(scene: Scene, trial: Entrant, job: Job) -> Array:
    now = state()
    if job not in now.chances:
        p, q, drawn = _places(scene, trial, job[1])
        now.chances[job] = losslessness.joint(trial.rule, p, q, job[1], drawn)
    return now.chances[job]


# --- the lines that ran -----------------------------------------------------------------------------------------------


def _lines(scene: Scene, chosen: Entrant) -> None:
    now = state()
    laws = {"rule": chosen.rule, "p": chosen.p, "q": chosen.q, "drawn": chosen.drawn}
    if now.shown[0] != chosen.name or now.another is not None:
        first = now.shown[1] + 1 if now.another is not None else 0
        found = lines.seed_where(**laws, kept=bool(now.another), first=first)
        asked = now.another is not None and found is None
        now.unfound = words.BENCH["no_stay" if now.another else "no_go"] if asked else ""
        now.shown, now.another = (chosen.name, first if found is None else found), None
    shown = lines.of(**laws, name_of=_name_of(scene), seed=now.shown[1])
    with st.container(border=True, key="card_lines"):
        with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
            st.subheader(shown.title, anchor=False, width="content")
            st.badge("simulated", color="gray")
        with st.container(horizontal=True, gap="small", key="lines_controls"):
            st.button(words.BENCH["goes"], key="lines_goes", on_click=_another, args=(False,))
            st.button(words.BENCH["stays"], key="lines_stays", on_click=_another, args=(True,))
        if now.unfound:
            st.caption(now.unfound)
        components.lines(shown, detail=scene.detail)


def _another(kept: bool) -> None:
    state().another = kept


# --- dealing ----------------------------------------------------------------------------------------------------------


def _deal(trials: dict[str, Entrant], scene: Scene, slot: Any) -> None:
    """Deal what is asked for, if anything is: the last thing, for it may take its time."""
    now = state()
    if not now.wanted:
        return
    try:
        for job in (job for job in now.wanted if job[0] in trials):  # less detail may leave some out
            name = words.ENTRANTS[job[0]]
            for done, whole in _batches(now, trials[job[0]], job, scene):
                told = words.BENCH["progress"].format(name=name, done=done, whole=whole)
                slot.progress(done / whole, told)  # a script that was overtaken ends here
    except Exception as error:
        _log.exception("dealing failed")
        now.message = words.BENCH["failed"].format(reason=type(error).__name__)
    now.wanted = ()
    st.rerun()


def _batches(now: Bench, trial: Entrant, job: Job, scene: Scene) -> Iterator[tuple[int, int]]:
    """Deal a job, a batch at a time, from where it stands; how many draws there are, of how many."""
    gamma, vocab = job[1], len(trial.p)
    whole = PAIRS if gamma else losslessness.whole_count(trial.rule, vocab)
    batch = PAIR_BATCH if gamma else losslessness.largest_batch(trial.rule, vocab)
    while (done := _done(now, job)) < whole:
        size = min(batch, whole - done)
        if gamma:
            p, q, drawn = _places(scene, trial, gamma)
            more = losslessness.deal_joint(trial.rule, p, q, gamma, size, now.seed, first=done, drawn_places=drawn)
            before = now.pairs[job].counts if done else 0
            now.pairs[job] = Pairs(before + more, np.outer(p[0], p[1]), now.seed)
        else:
            dealt = losslessness.deal(trial.rule, trial.p, trial.q, size, now.seed, first=done, drawn=trial.drawn)
            outcome = figures.plus(now.draws[job[0]].outcome, dealt) if done else dealt
            now.draws[job[0]] = Draws(trial, outcome, now.seed)
        yield _done(now, job), whole


def _done(now: Bench, job: Job) -> int:
    """Draws of this job with the seed of the last press."""
    found = now.pairs.get(job) if job[1] else now.draws.get(job[0])
    return found.count if found is not None and found.seed == now.seed else 0
