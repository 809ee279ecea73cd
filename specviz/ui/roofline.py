"""The Roofline page's controls, and how its panels are drawn."""

from __future__ import annotations

from typing import Any

import streamlit as st

from specviz.figures import roofline
from specviz.figures.roofline import Measured, Scene
from specviz.hardware.accelerators import ACCELERATORS, DTYPES, Accelerator
from specviz.hardware.shapes import PRICED_PAIRS
from specviz.trace import Trace, tally
from specviz.ui import controls, experiment, frame, panels, positions, profiler, recordings, sharing, words
from specviz.ui.controls import BOUND, Refused

DEFAULTS: dict[str, Any] = {"dtype": "bf16", "batch": 1, "context": 1024, "drafts": roofline.SMALL_GAMMA}
CHIP = {"terabytes_s": 1.0, "teraflops": 100.0}
"""What a chip of one's own has before it is described."""
CHOICES: dict[str, tuple[Any, ...]] = {"dtype": DTYPES, "batch": roofline.BATCHES, "context": roofline.CONTEXTS}
SWITCHES = ("own_chip", "mixture")
UNKNOWN_ALPHA = 0.5


def heading() -> None:
    """The page's heading, what its link could not have, and how much is shown."""
    if "roofline_refused" not in st.session_state:  # before any control is drawn: it puts its default in the address
        _arrival()
    timed = _timed()
    origins = [words.ROOFLINE["modelled"], *([] if timed is None else [timed.badge])]
    with frame.heading("Roofline", words.ROOFLINE["lead"], lambda: frame.badges(origins)):
        pass
    if st.session_state.roofline_refused:
        st.warning(words.literal(st.session_state.roofline_refused))
    frame.detail()


def _arrival() -> None:
    """Keep what is to be said of an address that asks for what no control takes. That leaves the address, and so do
    empty values; the page starts anew, for controls are seeded from the address that a run began with."""
    refused = _refused()
    st.session_state.roofline_refused = sharing.refusal({_called(key): asked for key, asked in refused.items()})
    known = (*controls.PRICE, "detail", *CHOICES, *SWITCHES, "drafts", "alpha", *CHIP)
    gone = [key for key, raw in st.query_params.items() if key in refused or (key in known and not raw)]
    for key in gone:
        del st.query_params[key]
    if gone:
        st.rerun()


def _called(key: str) -> str:
    """What a parameter is called: its control's label where the parameter is no word."""
    return words.ROOFLINE[key] if key in CHIP else key.replace("_", " ")


def _refused() -> dict[str, tuple[str, Refused]]:
    """What the address asks for and no control takes; what is empty asks for nothing."""
    refused = {}
    shown = recordings.first()
    for key, raw in st.query_params.items():
        value: Any = None
        if not raw:
            continue
        if key in (*controls.PRICE, "detail"):
            value = controls.taken(key, raw, shown)
        elif key in CHOICES and raw not in map(str, CHOICES[key]):
            value = Refused(words.LINK["not_offered"], str(DEFAULTS[key]))
        elif key in SWITCHES and raw.lower() not in ("true", "false"):
            value = Refused(words.LINK["switch"], "false")
        elif key in ("drafts", "alpha"):
            allowed, default = (roofline.GAMMAS, DEFAULTS["drafts"]) if key == "drafts" else ((0.0, 1.0), usual_alpha())
            value = controls.number(raw, allowed, default)
        elif key in CHIP:
            value = controls.number(raw, roofline.CUSTOM[key], CHIP[key])
        if isinstance(value, Refused):
            refused[key] = raw, value
    return refused


def sidebar() -> Scene:
    """Draw the controls; what they say."""
    with st.sidebar:
        controls.pricing()
        chip = _chip()
        dtype = st.pills(
            words.ROOFLINE["dtype"], DTYPES, default=DEFAULTS["dtype"], required=True, key="dtype", bind=BOUND
        )
        batch, context = (
            st.select_slider(words.ROOFLINE[key], CHOICES[key], DEFAULTS[key], key=key, bind=BOUND, format_func=_plain)
            for key in ("batch", "context")
        )
        gamma = st.slider(words.ROOFLINE["drafts"], *roofline.GAMMAS, DEFAULTS["drafts"], key="drafts", bind=BOUND)
        alpha = st.slider(words.ROOFLINE["alpha"], 0.0, 1.0, usual_alpha(), step=0.01, key="alpha", bind=BOUND)
        st.caption(words.ROOFLINE["alpha.from"].format(alpha=usual_alpha()))
        today = todays_alpha()
        if today is not None:
            label = words.ROOFLINE["today"].format(alpha=today)
            st.button(label, key="today", on_click=_take_today, help=words.ROOFLINE["today.help"])
    said = controls.price()
    return Scene(
        chip=chip or ACCELERATORS[said["accelerator"]],
        pair=PRICED_PAIRS[said["priced"]],
        dtype=dtype or DEFAULTS["dtype"],
        batch=batch,
        context=context,
        gamma=gamma,
        alpha=alpha,
        count="read" if said["count"] == "read" else "stored",
    )


def _plain(number: int) -> str:
    """As the address writes it."""
    return str(number)


def _chip() -> Accelerator | None:
    """The chip that the visitor describes; None where there is none, or it cannot be."""
    if not st.toggle(words.ROOFLINE["own_chip"], key="own_chip", bind=BOUND):
        return None
    typed = [
        st.number_input(words.ROOFLINE[key], value=default, format="%g", step=None, key=key, bind=BOUND)
        for key, default in CHIP.items()
    ]
    try:
        return roofline.typed(*typed)
    except ValueError as error:
        instead = ACCELERATORS[controls.price()["accelerator"]].name
        st.warning(words.literal(words.ROOFLINE["refused"].format(reason=error, instead=instead)))
        return None


def usual_alpha() -> float:
    """The embedded pair's alpha over many prompts."""
    return round(recordings.typical_alpha() or UNKNOWN_ALPHA, 2)


def todays_alpha() -> float | None:
    """Alpha of the run on the Decode page; None where nothing was judged."""
    run = _run()
    return tally(run[0].rounds).alpha if run is not None else None


def _take_today() -> None:
    today = todays_alpha()
    if today is not None:
        st.session_state.alpha = min(1.0, round(today, 2))


def _run() -> tuple[Trace, str] | None:
    """The run that Decode shows, or would open with, and where its times are from."""
    run = positions.current_run()
    if run is None:
        return None
    return run.trace, words.ROOFLINE["here" if run.recording is None else "recorded"]


def _timed() -> Measured | None:
    """Reads by the clock: of a profile, else of the run."""
    profile, origin = profiler.current()
    badge = words.ROOFLINE["here" if origin == experiment.HERE else "recorded"]
    found = roofline.from_profile(profile, badge) if profile is not None else None
    if found is not None:
        return found
    run = _run()
    return roofline.from_trace(*run) if run is not None else None


# --- panels -----------------------------------------------------------------------------------------------------------


def draw(scene: Scene) -> None:
    """The whole page below its heading."""
    timed = _timed()
    panels.row(("classic", roofline.classic))
    panels.row(("roof", lambda: roofline.roof(scene)), ("sweep", lambda: roofline.sweep(scene, mixture=_mixture())))
    clocks = ("clocks", lambda: roofline.clocks(scene))
    if timed is None:
        st.text(words.ROOFLINE["unmeasured"])
        panels.row(clocks)
    else:
        panels.row(("clock", lambda: roofline.measured(timed)), clocks)
    today = todays_alpha()
    panels.row(("payoff", lambda: roofline.payoff(scene, today)), ("cache", lambda: roofline.context_share(scene)))
    _, decoupled = panels.row(
        ("two_by_two", lambda: roofline.two_by_two(scene)), ("decoupled", lambda: roofline.decoupled(scene))
    )
    decoupled.button(words.ROOFLINE["preset"], key="preset", on_click=_set_preset)


def _mixture() -> bool:
    return st.toggle(words.ROOFLINE["mixture"], key="mixture", bind=BOUND)


def _set_preset() -> None:
    st.session_state.priced = roofline.BIG.id
    st.session_state.own_chip = False
