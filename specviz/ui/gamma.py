"""The Gamma page's controls, and how its panels are drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import streamlit as st

from specviz import experiments
from specviz.experiments import Drafter, Policy, Sweep
from specviz.figures import gamma as figures
from specviz.figures import sweep as sweeps
from specviz.figures.charts import Panel
from specviz.figures.gamma import MOST, Found, Scene
from specviz.figures.numbers import probability
from specviz.hardware import measured as profiles
from specviz.hardware.measured import Profile
from specviz.ui import controls, experiment, frame, panels, positions, profiler, roofline, sharing, words
from specviz.ui.controls import Refused
from specviz.ui.experiment import SWEEP
from specviz.ui.session import Run
from specviz.workloads import WORKLOADS

RANGES: dict[str, tuple[Any, Any]] = {
    "theory_alpha": (0.0, 1.0),
    "theory_c": (0.0, 1.0),
    "theory_gamma": (0, MOST),
    "theory_ops": (0.0, 1.0),
}
SAID = (*RANGES, "workload", "explained")
"""Controls that the page itself writes into the address."""
KNOWN = (*SAID, "detail")
USUAL_GAMMA, USUAL_C = 4, 0.1
DIGITS = 3
"""Of the sliders' shares and costs."""
LOSING = {"theory_alpha": 0.3, "theory_c": 0.5, "theory_gamma": 8}
"""What loses where nothing was measured: a drafter of half the target's cost that agrees three times in ten."""
LENGTHS = (24, 48, 96)
DRAFTERS: tuple[Drafter, ...] = ("model", "ngram")
TODAY, SWEPT = "today", "the sweep"
BEFORE = "gamma_before"
"""Of the session: how the controls stood before they were made to lose, and what that set."""
OWN = "own"
"""What a visitor's prompts are filed under."""
MOST_PROMPTS = 8


# --- what came out today ----------------------------------------------------------------------------------------------


def record() -> tuple[Sweep | None, str]:
    """The sweep to show, None without one, and where it is from."""
    found, origin = experiment.current(SWEEP)
    return (found if found is not None and found.runs else None), origin


def found() -> dict[str, Found]:
    """Alpha and c as they came out: today, of the run on Decode and the profile; and of the sweep, once it is over."""
    return {one.name: one for one in (_today(), _swept()) if one is not None}


def _today() -> Found | None:
    run, (profile, origin) = positions.current_run(), profiler.current()
    if run is None or profile is None or not _timed(run, profile):
        return None
    shared, c = roofline.todays_alpha(), profiles.measured_c(profile)
    if shared is None or c is None:
        return None
    return _found(TODAY, shared, c, words.GAMMA["of_run"], origin)


def _timed(run: Run, profile: Profile) -> bool:
    """Whether the drafter of the run is the one that the profile timed: another would cost something else."""
    pair = controls.offered().get(run.pair_id)
    drafters = {round_.said.get("drafter") for round_ in run.trace.rounds if round_.drafts}
    return pair is not None and pair.name == profile.pair and drafters == {"model"}


def _swept() -> Found | None:
    sweep, origin = record()
    if sweep is None or experiment.state(SWEEP).wanted:
        return None
    shared, c = sweeps.alpha(sweep), sweeps.ratio(sweep)
    if shared is None or c is None:
        return None
    return _found(SWEPT, shared, c, words.GAMMA["of_sweep"], origin)


def _found(name: str, shared: float, c: float, source: str, origin: str) -> Found:
    """What came out, as exact as the sliders: a mark and the sliders that took its numbers say the same."""
    return Found(name, round(shared, DIGITS), round(c, DIGITS), source, words.GAMMA["badges"][origin])


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
    return min(max(round(value, DIGITS), low), high)


# --- the heading and the sidebar --------------------------------------------------------------------------------------


def heading() -> None:
    """The page's heading, what its link could not have, and how much is shown."""
    if "gamma_refused" not in st.session_state:  # before any control is drawn: one puts its default in the address
        _arrival()
    elif frame.went_back():
        _return()
    sweep, origin = record()
    here = [] if sweep is None else [words.GAMMA["badges"][origin]]
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
        running = experiment.state(SWEEP)  # what was chosen stays chosen until it is measured again
        policies = running.asked["policies"] if running.wanted and running.asked else sweeps.offered(sweep)
        names["explained"] = {policy: sweeps.name(policy) for policy in policies if policy.gamma}
    return {key: said for key, said in names.items() if said}


def _shown(workload: str) -> str:
    """A workload of a file may be called anything."""
    if workload in (*WORKLOADS, OWN):
        return workload
    shown = sharing.visible_reason(workload)
    return f"“{shown}”" if shown.lower() == words.GAMMA["all"] else shown


def _arrival() -> None:
    """Take what the address asks for, once. What no control takes is told and leaves the address, and so do empty
    values; the page then starts anew, for controls are seeded from the address that a run began with."""
    names = _names()
    asked = {key: raw for key, raw in st.query_params.items() if raw and (key in RANGES or key in names)}
    heard = {key: (raw, _taken(key, raw)) for key, raw in asked.items()}
    refused = {key: (raw, value) for key, (raw, value) in heard.items() if isinstance(value, Refused)}
    st.session_state.update({key: value for key, (_, value) in heard.items() if key in SAID and key not in refused})
    st.session_state.gamma_refused = sharing.refusal(
        {key.removeprefix("theory_"): asked for key, asked in refused.items()}
    )
    gone = [key for key, raw in st.query_params.items() if key in refused or (key in KNOWN and not raw)]
    for key in gone:
        del st.query_params[key]
    if gone:
        st.rerun()


def _return() -> None:
    """Show what an address of before says: what it leaves out is at its default."""
    openings = _openings()
    heard = {key: _taken(key, raw) for key, raw in st.query_params.items() if key in openings and raw}
    good = {key: value for key, value in heard.items() if not isinstance(value, Refused)}
    st.session_state.update(openings | good)
    st.session_state.gamma_refused = ""


def _taken(key: str, raw: str) -> Any:
    """What the page makes of a parameter; :class:`Refused` where it takes no such thing."""
    if key in RANGES:
        return controls.number(raw, RANGES[key], _usual()[key])
    names = _names()[key]
    found = next((value for value, name in names.items() if name == raw), None)
    return Refused(words.LINK["not_offered"], names[_opening(names)]) if found is None else found


def _openings() -> dict[str, Any]:
    """Where every control of the page's own stands when nobody moved it."""
    return _usual() | {key: _opening(names) for key, names in _names().items() if key in SAID}


def write_address() -> None:
    """Have the address say what is shown, all at once, so that a press is one entry of the browser's history. What is
    as usual is left out until it was something else."""
    names, usual = _names(), _openings()

    def written(key: str, value: Any) -> str:
        return names[key].get(value, "") if key in names else f"{value:g}"

    said = st.query_params
    shown = {key: (written(key, st.session_state.get(key, one)), written(key, one)) for key, one in usual.items()}
    changed = {key: text for key, (text, opening) in shown.items() if said.get(key, opening) != text}
    if changed:
        said.update(changed)


def sidebar() -> Scene:
    """Draw the sliders; what they say."""
    usual = _usual()
    story = _story()
    with st.sidebar:
        for key in RANGES:
            if key != "theory_ops" or not story:
                step, form = (1, "%d") if key == "theory_gamma" else (10**-DIGITS, f"%.{DIGITS}f")
                st.session_state.setdefault(key, usual[key])
                st.slider(words.GAMMA[key], *RANGES[key], step=step, format=form, key=key)
        st.caption(words.GAMMA["from"].format(alpha=usual["theory_alpha"], cost=figures.cost(usual["theory_c"])))
        for name in (TODAY, SWEPT):
            one = found().get(name)
            if one is None:
                st.empty()
                continue
            st.button(
                words.GAMMA["take.story" if story else "take"].format(
                    name=name, alpha=probability(one.alpha), c=figures.ratio(one.c)
                ),
                key=f"take_{name.rpartition(' ')[-1]}",
                on_click=_take,
                args=(one,),
                help=words.GAMMA["take.help"].format(source=one.source),
            )
        st.caption(words.GAMMA["whose"])
    said = {key: st.session_state.get(key, usual[key]) for key in RANGES}
    return Scene(said["theory_alpha"], said["theory_c"], said["theory_gamma"], said["theory_ops"])


def _take(one: Found) -> None:
    st.session_state.theory_alpha = _within("theory_alpha", one.alpha)
    st.session_state.theory_c = _within("theory_c", one.c)


# --- a setting that loses ---------------------------------------------------------------------------------------------


def losing() -> None:
    """The button that makes it lose, what it set, and the way back."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="losing"):
        st.button(words.GAMMA["lose"], key="lose", on_click=_lose, help=words.GAMMA["lose.help"])
        if BEFORE in st.session_state:
            st.button(words.GAMMA["unlose"], key="unlose", on_click=_unlose)
            if all(st.session_state.get(key) == value for key, value in st.session_state[BEFORE]["set"].items()):
                st.caption(words.literal(st.session_state[BEFORE]["told"]), width="stretch")


def _lose() -> None:
    """The theory set to numbers that lose, and the sweep to the prompts and the gamma that lost most."""
    usual, (sweep, _) = _usual(), record()
    before = {key: st.session_state.get(key, usual[key]) for key in LOSING}
    told = words.GAMMA["lost"].format(
        alpha=LOSING["theory_alpha"], cost=figures.cost(LOSING["theory_c"]), gamma=LOSING["theory_gamma"]
    )
    lost = sweeps.lost_most(sweep) if sweep is not None else None
    wanted: dict[str, Any] = dict(LOSING)
    if lost is not None:
        before |= {key: st.session_state[key] for key in ("workload", "explained") if key in st.session_state}
        wanted["workload"], wanted["explained"] = lost
        told += words.GAMMA["lost.most"].format(workload=_shown(lost[0]), policy=sweeps.name(lost[1]))
    st.session_state.update(wanted)
    before = st.session_state.get(BEFORE, {"before": before})["before"]  # pressed twice, it still goes all the way back
    st.session_state[BEFORE] = {"before": before, "set": wanted, "told": told}


def _unlose() -> None:
    """All as it stood before."""
    st.session_state.update(st.session_state.pop(BEFORE, {"before": {}})["before"])


# --- panels -----------------------------------------------------------------------------------------------------------


def theory(scene: Scene) -> None:
    """What gamma should bring, and where it pays."""
    losing()
    marks = tuple(found().values())
    panels.row(("curves", lambda: figures.curves(scene)), ("best_map", lambda: figures.best_map(scene, marks)))


def measured(scene: Scene) -> Any:
    """The sweep, how it differs from the theory, and where the speed went; returns where progress goes."""
    sweep, origin = record()
    st.header(words.GAMMA["sweep"], anchor=False)
    st.caption(words.GAMMA["sweep.lead"])
    slot = _buttons()
    if sweep is None:
        st.text(words.SWEEP["none"])
        panels.row(("too_late", sweeps.too_late))
        return slot
    st.caption(words.literal(_standing(sweep, words.SWEEP[origin])))
    with st.container(horizontal=True, vertical_alignment="bottom", key="sweep_choice"):
        _choose("workload")
        policy = _choose("explained")
    chosen, badge = _selected(sweep), words.GAMMA["badges"][origin]
    st.markdown(f"**{words.literal(sweeps.headline(chosen))}**")
    panels.shown(st.text, "" if _story() else sweeps.tied(chosen, scene, policy))
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


def _story() -> bool:
    return bool(st.session_state.get("detail") == words.DETAILS[0])


def _standing(sweep: Sweep, origin: str) -> str:
    drafters = {run.policy.drafter for run in sweep.runs if run.policy.gamma}
    lengths = "–" if sweep.max_new_tokens is None else f"{sweep.max_new_tokens:,}"
    told = words.GAMMA["standing"].format(
        origin=origin,
        pair=sweep.pair,
        drafter=", ".join(sorted(words.DRAFTERS[one] for one in drafters)) or "–",
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
    if st.session_state.get(key) not in options:  # another sweep has others
        st.session_state[key] = _opening(names)
    return st.selectbox(
        words.GAMMA[key],
        options,
        format_func=names.__getitem__,
        key=key,
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
    drafter = st.session_state.get("sweep_drafter", DRAFTERS[0])
    asked = {"prompts": prompts, "policies": experiments.policies(drafter), "max_new_tokens": tokens}
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="sweep_row"):
        experiment.start(SWEEP, asked, disabled=not prompts)
        st.caption(_amount(asked, timed=not experiment.state(SWEEP).wanted), width="content")
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
            words.GAMMA["drafter"],
            DRAFTERS,
            format_func=words.DRAFTERS.__getitem__,
            key="sweep_drafter",
            disabled=busy,
            width=260,
            persist_state="session",
        )
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


def _amount(asked: Mapping[str, Any], *, timed: bool) -> str:
    """How much there is to measure, and how long that takes at the pace of the sweep shown."""
    count = sum(map(len, asked["prompts"].values()))
    prompts = words.GAMMA["prompts"][count != 1].format(count=count)
    told = words.GAMMA["amount"].format(
        prompts=prompts,
        policies=len(asked["policies"]),
        tokens=asked["max_new_tokens"],
        total=count * len(asked["policies"]) * asked["max_new_tokens"],
    )
    sweep, _ = record()
    rates = [sweeps.rate(sweep, one) for one in asked["policies"]] if sweep is not None else []
    known = [one for one in rates if one is not None]
    if not (timed and count and known):
        return told
    seconds = count * asked["max_new_tokens"] * sum(1 / one for one in known) * len(rates) / len(known)
    return told + words.GAMMA["about"].format(time=experiment.duration(seconds))


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
    """What is thought of this gamma, and its flags."""
    with st.container(border=True, key="card_engine"):
        st.subheader(words.GAMMA["engine"], anchor=False)
        if not scene.gamma:
            st.text(words.GAMMA["engine.none"])
            return
        sweep, _ = record()
        told, slower = sweeps.judged(_selected(sweep), scene.gamma) if sweep is not None else ("", False)
        thought = f"{figures.thought(scene)} {told}".strip()
        if slower or scene.speed < 1:
            st.warning(words.literal(thought))
        else:
            st.text(thought)
        if _story():
            st.caption(words.GAMMA["engine.story"])
            return
        st.text(words.GAMMA["engine.lead"].format(gamma=scene.gamma))
        ours = figures.engines(scene.gamma)
        for pair in (ours[:2], ours[2:]):
            for column, one in zip(st.columns(2, gap="small"), pair, strict=True):
                with column:
                    st.markdown(f"**{words.literal(one.name)}** · [{words.GAMMA['engine.page']}]({one.page})")
                    st.code(one.flags, language=None, wrap_lines=True)
                    st.caption(words.literal(one.note))
