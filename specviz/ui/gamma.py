"""The Gamma page's controls, and how its panels are drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import streamlit as st

from specviz import experiments
from specviz.experiments import Policy, Sweep
from specviz.figures import gamma as figures
from specviz.figures import sweep as sweeps
from specviz.figures.charts import Panel
from specviz.figures.gamma import MOST, Scene, Today
from specviz.hardware import measured as profiles
from specviz.ui import controls, experiment, frame, panels, profiler, roofline, sharing, words
from specviz.ui.controls import BOUND, Refused
from specviz.ui.experiment import HERE, RECORDED, SWEEP
from specviz.workloads import WORKLOADS

RANGES: dict[str, tuple[Any, Any]] = {
    "theory_alpha": (0.0, 1.0),
    "theory_c": (0.0, 1.0),
    "theory_gamma": (0, MOST),
    "theory_ops": (0.0, 1.0),
}
USUAL_GAMMA, USUAL_C = 4, 0.1
LOSING = {"theory_alpha": 0.3, "theory_c": 0.5, "theory_gamma": 8}
"""What loses where nothing was measured: a drafter of half the target's cost that agrees three times in ten."""
LENGTHS = (24, 48, 96)
OWN = "own"
"""What a visitor's prompts are filed under."""
MOST_PROMPTS = 8


# --- what came out today ----------------------------------------------------------------------------------------------


def record() -> tuple[Sweep | None, str]:
    """The sweep to show, None without one, and where it is from."""
    found, origin = experiment.current(SWEEP)
    return (found if found is not None and found.runs else None), origin


def today() -> Today | None:
    """Alpha and c of today: of a sweep measured or opened here, else of the run on Decode and the profile."""
    sweep, origin = record()
    if sweep is not None and origin != RECORDED:
        shared, c = sweeps.alpha(sweep), sweeps.ratio(sweep)
        if shared is not None and c is not None:
            return Today(shared, c, words.GAMMA["of_sweep"], words.SWEEP[origin])
    profile, _ = profiler.current()
    shared, c = roofline.todays_alpha(), profiles.measured_c(profile) if profile is not None else None
    if shared is None or c is None:
        return None
    here = "profile" in st.session_state and st.session_state.get("profile_origin") == HERE
    return Today(shared, c, words.GAMMA["of_run"], words.SWEEP[HERE if here else RECORDED])


def _usual() -> dict[str, Any]:
    """Where the sliders open: the recorded pair's own numbers."""
    profile = profiler.recorded()
    c = profiles.measured_c(profile) if profile is not None else None
    reads = [profiles.modelled(profile, model, 1) for model in profiles.MODELS] if profile is not None else []
    target, drafter = reads if len(reads) == 2 else (None, None)
    work = drafter.flops / target.flops if target is not None and drafter is not None else USUAL_C
    return {
        "theory_alpha": roofline.usual_alpha(),
        "theory_c": _within("theory_c", USUAL_C if c is None else c),
        "theory_gamma": USUAL_GAMMA,
        "theory_ops": _within("theory_ops", work),
    }


def _within(key: str, value: float) -> float:
    low, high = RANGES[key]
    return min(max(round(value, 2), low), high)


# --- the heading and the sidebar --------------------------------------------------------------------------------------


def heading() -> None:
    """The page's heading, what its link could not have, and how much is shown."""
    if "gamma_refused" not in st.session_state:  # before any control is drawn: it puts its default in the address
        _arrival()
    sweep, origin = record()
    here = [] if sweep is None else [words.SWEEP[origin]]
    with frame.heading("Gamma", words.GAMMA["lead"], lambda: frame.badges([words.GAMMA["modelled"], *here])):
        pass
    if st.session_state.gamma_refused:
        st.warning(words.literal(st.session_state.gamma_refused))
    frame.detail()


def _names() -> dict[str, dict[Any, str]]:
    """Of each control with options, what it calls each of them: the address has the names."""
    sweep, _ = record()
    names: dict[str, dict[Any, str]] = {"detail": {name: name for name in words.DETAILS}}
    if sweep is not None:
        names["workload"] = {"": words.GAMMA["all"]} | {name: _shown(name) for name in sweep.workloads()}
        running = experiment.state(SWEEP).wanted  # what was chosen stays chosen until it is measured again
        policies = experiments.policies() if running else sweep.policies()
        names["explained"] = {policy: sweeps.name(policy) for policy in policies if policy.gamma}
    return {key: said for key, said in names.items() if said}


def _shown(workload: str) -> str:
    """A workload of a file may be called anything."""
    return sharing.visible_reason(workload) if workload not in (*WORKLOADS, OWN) else workload


def _arrival() -> None:
    """Keep what is to be said of an address that asks for what no control takes. That leaves the address, and so do
    empty values; the page starts anew, for controls are seeded from the address that a run began with."""
    names, usual = _names(), _usual()
    refused: dict[str, tuple[str, Refused]] = {}
    for key, raw in st.query_params.items():
        if raw and key in RANGES:
            value = controls.number(raw, RANGES[key], usual[key])
            if isinstance(value, Refused):
                refused[key] = raw, value
        elif raw and key in names and raw not in names[key].values():
            refused[key] = raw, Refused(words.LINK["not_offered"], names[key][_opening(names[key])])
    st.session_state.gamma_refused = sharing.refusal(
        {key.removeprefix("theory_"): asked for key, asked in refused.items()}
    )
    known = (*RANGES, "detail", "workload", "explained")
    gone = [key for key, raw in st.query_params.items() if key in refused or (key in known and not raw)]
    for key in gone:
        del st.query_params[key]
    if gone:
        st.rerun()


def sidebar() -> Scene:
    """Draw the sliders; what they say."""
    usual = _usual()
    story = st.session_state.get("detail") == words.DETAILS[0]
    with st.sidebar:
        for key in RANGES:
            if key != "theory_ops" or not story:
                step: Any = 1 if key == "theory_gamma" else 0.01
                st.slider(words.GAMMA[key], *RANGES[key], usual[key], step=step, key=key, bind=BOUND)
        st.caption(words.GAMMA["from"].format(alpha=usual["theory_alpha"], c=usual["theory_c"]))
        if (now := today()) is not None:
            st.button(
                words.GAMMA["today"].format(alpha=now.alpha, c=now.c),
                key="take_today",
                on_click=_take_today,
                help=words.GAMMA["today.help"].format(source=now.source),
            )
    said = {key: st.session_state.get(key, usual[key]) for key in RANGES}
    return Scene(said["theory_alpha"], said["theory_c"], said["theory_gamma"], said["theory_ops"])


def _take_today() -> None:
    if (now := today()) is not None:
        st.session_state.theory_alpha = _within("theory_alpha", now.alpha)
        st.session_state.theory_c = _within("theory_c", now.c)


def _lose() -> None:
    """The theory set to numbers that lose, and the sweep to the prompts and the gamma that lost most."""
    st.session_state.update(LOSING)
    sweep, _ = record()
    lost = sweeps.lost_most(sweep) if sweep is not None else None
    if sweep is not None and lost is not None:
        st.session_state.workload, st.session_state.explained = lost


# --- panels -----------------------------------------------------------------------------------------------------------


def theory(scene: Scene) -> None:
    """What gamma should bring, and where it pays."""
    curve, _ = panels.row(
        ("curves", lambda: figures.curves(scene)), ("best_map", lambda: figures.best_map(scene, today()))
    )
    curve.button(words.GAMMA["lose"], key="lose", on_click=_lose, help=words.GAMMA["lose.help"])


def measured() -> Any:
    """The sweep, how it differs from the theory, and where the speed went; returns where progress goes."""
    sweep, origin = record()
    st.header(words.GAMMA["sweep"], anchor=False)
    st.caption(words.GAMMA["sweep.lead"])
    slot = _buttons()
    if sweep is None:
        st.text(words.SWEEP["none"])
        panels.row(("too_late", sweeps.too_late))
        return slot
    st.caption(words.literal(_standing(sweep)))
    with st.container(horizontal=True, vertical_alignment="bottom", key="sweep_choice"):
        _choose("workload")
        policy = _choose("explained")
    chosen, badge = _selected(sweep), words.SWEEP[origin]
    by_policy, by_gamma = (chosen, policy, badge), (chosen, badge)
    panels.row(_kept("speeds", sweeps.speeds, *by_policy), _kept("waterfall", sweeps.waterfall, *by_policy))
    panels.row(_kept("yields", sweeps.yields, *by_gamma), _kept("places", sweeps.places, *by_gamma))
    panels.row(_kept("stopping", sweeps.stopping, *by_gamma), ("too_late", sweeps.too_late))
    experiment.files(SWEEP, sweeps.table)
    return slot


def _kept(key: str, make: Callable[..., Panel], *given: Any) -> tuple[str, Callable[[], Panel]]:
    """A panel by its key, made again only when what is given changes: the sliders of the theory change none of it."""
    kept = st.session_state.setdefault("gamma_panels", {})
    if key not in kept or kept[key][0] != given:
        kept[key] = given, make(*given)
    return key, lambda: kept[key][1]


def _standing(sweep: Sweep) -> str:
    lengths = "–" if sweep.max_new_tokens is None else f"{sweep.max_new_tokens:,}"
    told = words.GAMMA["standing"].format(
        pair=sweep.pair,
        device=sweep.device,
        dtype=sweep.dtype,
        rule=words.RULES.get(sweep.rule, sweep.rule),
        temperature=sweep.temperature,
        seed=sweep.seed,
        tokens=lengths,
        created=sweep.created.partition("T")[0],
    )
    return sharing.visible_reason(told)


def _choose(key: str) -> Any:
    """Draw a list of the sweep's own workloads or policies; what was chosen, as the sweep calls it."""
    names = _names().get(key)
    if names is None:
        return None
    options = list(names)
    opening = _opening(names)
    if st.session_state.get(key, opening) not in options:  # another sweep has others
        st.session_state[key] = opening
    return st.selectbox(
        words.GAMMA[key],
        options,
        index=options.index(opening),
        format_func=names.__getitem__,
        key=key,
        bind=BOUND,
        width=260,
    )


def _opening(options: Iterable[Any]) -> Any:
    """What a list opens with: a usual gamma, the usual detail, else its first."""
    found = list(options)
    return next((one for one in found if one in (Policy(USUAL_GAMMA), words.DETAILS[1])), found[0])


def _selected(sweep: Sweep) -> Sweep:
    """The part of the sweep that was chosen."""
    chosen = st.session_state.get("workload")
    return sweep.select(chosen) if chosen in sweep.workloads() else sweep


# --- measuring --------------------------------------------------------------------------------------------------------


def _buttons() -> Any:
    """What to measure, the buttons, and where progress goes."""
    prompts = _prompts()
    tokens = st.session_state.get("sweep_tokens", LENGTHS[1])
    asked = {"prompts": prompts, "policies": experiments.policies(), "max_new_tokens": tokens}
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="sweep_row"):
        experiment.start(SWEEP, asked, disabled=not prompts)
        st.caption(_amount(asked), width="content")
        experiment.cancel(SWEEP)
    with st.expander(words.GAMMA["measure"]):
        busy = experiment.state(SWEEP).wanted
        st.pills(
            words.GAMMA["sets"],
            list(WORKLOADS),
            selection_mode="multi",
            default=list(WORKLOADS)[:1],
            key="sweep_sets",
            disabled=busy,
            persist_state="session",
        )
        st.text_area(
            words.GAMMA["own"],
            key="sweep_own",
            help=words.GAMMA["own.help"].format(most=MOST_PROMPTS),
            disabled=busy,
            persist_state="session",
        )
        if len(own := _own()) > MOST_PROMPTS:
            st.caption(words.GAMMA["own.cut"].format(count=len(own), most=MOST_PROMPTS))
        st.selectbox(
            words.GAMMA["tokens"],
            LENGTHS,
            index=1,
            key="sweep_tokens",
            disabled=busy,
            width=170,
            persist_state="session",
        )
        if not prompts:
            st.caption(words.GAMMA["nothing"])
        st.caption(words.SWEEP["alone"])
    slot = st.empty()
    experiment.told(SWEEP)
    return slot


def _amount(asked: Mapping[str, Any]) -> str:
    count = sum(map(len, asked["prompts"].values()))
    prompts = words.GAMMA["prompts"][count != 1].format(count=count)
    return words.GAMMA["amount"].format(
        prompts=prompts, policies=len(asked["policies"]), tokens=asked["max_new_tokens"]
    )


def _own() -> list[str]:
    lines = (line.strip()[: controls.MAX_PROMPT] for line in st.session_state.get("sweep_own", "").splitlines())
    return list(dict.fromkeys(filter(None, lines)))


def _prompts() -> dict[str, list[str]]:
    """The prompts to measure with, by workload."""
    sets = st.session_state.get("sweep_sets", list(WORKLOADS)[:1])
    chosen = {name: [text] for name, text in WORKLOADS.items() if name in (sets or ())}
    own = _own()[:MOST_PROMPTS]
    return chosen | ({OWN: own} if own else {})


def measure(slot: Any) -> None:
    """Measure, if that was asked for: the last thing that the page does, for it takes its time."""
    experiment.work(SWEEP, slot)


# --- in an engine -----------------------------------------------------------------------------------------------------


def engine(scene: Scene) -> None:
    """The flags for this gamma."""
    with st.container(border=True, key="card_engine"):
        st.subheader(words.GAMMA["engine"], anchor=False)
        if not scene.gamma:
            st.text(words.GAMMA["engine.none"])
            return
        st.text(words.GAMMA["engine.lead"].format(gamma=scene.gamma))
        found = figures.engines(scene.gamma)
        for pair in (found[:2], found[2:]):
            for column, one in zip(st.columns(2, gap="small"), pair, strict=True):
                with column:
                    st.markdown(f"**{words.literal(one.name)}** · [{words.GAMMA['engine.page']}]({one.page})")
                    st.code(one.flags, language=None, wrap_lines=True)
                    st.caption(words.literal(one.note))
