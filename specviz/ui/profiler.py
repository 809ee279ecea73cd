"""Measuring this machine from the page, and judging a server from what its owner says.

What was measured, or opened from a file, stands until the visitor leaves; every page may price on it
(:func:`current`). Measuring is an :mod:`experiment <specviz.ui.experiment>` whose steps are samples.
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import streamlit as st

from specviz.experiments import Job
from specviz.figures import profile as figures
from specviz.figures import server as servers
from specviz.hardware import measured
from specviz.hardware.accelerators import ACCELERATORS, DTYPES, Accelerator
from specviz.hardware.measured import Profile
from specviz.hardware.shapes import SHAPES
from specviz.ui import components, controls, experiment, frame, recordings, sharing, words
from specviz.ui.controls import Refused

RECORDED = "profile.json"
"""The file beside the recorded runs' folder with the embedded pair's recorded profile."""
CONTEXTS = (64, 256, 1024)
THIS = "this-machine"
MAX_DEVICES, MAX_BATCH, MAX_CONTEXT, MAX_SPEED = 64, 4096, 1_000_000, 1e7
RANGES: dict[str, tuple[Any, Any]] = {
    "server_devices": (1, MAX_DEVICES),
    "server_batch": (1, MAX_BATCH),
    "server_context": (0, MAX_CONTEXT),
    "server_speed": (0.01, MAX_SPEED),
}
DEFAULTS: dict[str, Any] = {
    "server_model": "llama-3.1-8b",
    "server_dtype": "bf16",
    "server_accelerator": "h100-sxm",
    "server_devices": 1,
    "server_batch": 1,
    "server_context": 512,
    "server_speed": 158.34,
    "server_counted": "one",
}
"""An achieved speed that SGLang's documentation gives for this model on this accelerator, without drafts."""


def _profiler(pair: Any, **asked: Any) -> Job:
    from specviz.decoding.profiling import Profiler

    return Profiler(pair, **asked)


def recorded() -> Profile | None:
    """The profile that ships; None where its file is not there."""
    found: Profile | None = experiment.shipped(measured.load, recordings.FOLDER.parent / RECORDED)
    return found


PROFILE = experiment.Kind(
    "profile",
    words.PROFILE,
    _profiler,
    lambda profiler: profiler.profile(),
    measured.load,
    measured.dump,
    recorded,
    alone=True,
    redraw_s=math.inf,
)


def current() -> tuple[Profile | None, str]:
    """The profile to show or to price on, and where it is from: measured here, a file, or recorded."""
    return experiment.current(PROFILE)


# --- the page ---------------------------------------------------------------------------------------------------------


def badges() -> None:
    """Where the numbers come from."""
    profile, origin = current()
    here = [] if profile is None else [f"{words.PROFILE[origin]} · {figures.machine(profile)}"]
    frame.badges([*here, "modelled"])


def shown(detail: str) -> None:
    """The figures of the profile, and its files."""
    profile, origin = current()
    if profile is None:
        st.text(words.PROFILE["none"])
        return
    standing = words.PROFILE["standing"].format(
        pair=profile.pair, context=profile.context, created=profile.created.partition("T")[0]
    )
    st.caption(words.literal(sharing.visible_reason(standing)))
    components.profile(figures.layout(profile), origin=words.PROFILE[origin], detail=detail)
    experiment.files(PROFILE, figures.csv)


# --- measuring --------------------------------------------------------------------------------------------------------


def buttons() -> tuple[str, Any]:
    """Measure or Cancel, how much is shown, and what is to be said; returns the detail and where progress goes."""
    running = experiment.state(PROFILE).wanted
    with st.container(
        horizontal=True, vertical_alignment="bottom", horizontal_alignment="distribute", key="measure_row"
    ):
        with st.container(horizontal=True, vertical_alignment="bottom", gap="small", width="content"):
            experiment.start(PROFILE, {"context": st.session_state.get("profile_context", CONTEXTS[1])})
            st.selectbox(
                words.PROFILE["context"],
                CONTEXTS,
                index=1,
                key="profile_context",
                disabled=running,
                width=170,
                persist_state="session",
            )
            experiment.cancel(PROFILE)
        detail = frame.detail()
    st.caption(words.PROFILE["alone"])
    slot = st.empty()
    experiment.told(PROFILE)
    return detail, slot


def measure(slot: Any) -> None:
    """Measure, if that was asked for: the last thing that the page does, for it takes its time."""
    experiment.work(PROFILE, slot)


# --- somebody's server ------------------------------------------------------------------------------------------------


def choices() -> dict[str, dict[str, str]]:
    """Of each list of the form, what it calls its options: the address has these names."""
    machine = {THIS: words.PROFILE["this"]} if _this_machine() is not None else {}
    return {
        "server_model": {shape.id: shape.name for shape in SHAPES.values()},
        "server_dtype": {dtype: dtype for dtype in DTYPES},
        "server_accelerator": {one.id: one.name for one in ACCELERATORS.values()} | machine,
        "server_counted": words.PROFILE["counts"],
    }


def _this_machine() -> Accelerator | None:
    profile, _ = current()
    with suppress(ValueError):  # a file may claim a machine that no accelerator can be
        return None if profile is None else profile.accelerator
    return None


def taken(key: str, raw: str) -> Any:
    """What the form makes of a parameter of the address; :class:`Refused` where it takes no such thing."""
    names = choices().get(key)
    if names is None:
        return controls.number(raw, RANGES[key], DEFAULTS[key])
    found = next((value for value, name in names.items() if name == raw), None)
    return Refused(words.LINK["not_offered"], names[DEFAULTS[key]]) if found is None else found


def arrival() -> str:
    """One sentence about what the address asks of the form and cannot have; the rest is set. Read once."""
    if "profile_arrival" not in st.session_state:
        # Of an empty parameter nothing is said, though a control would take it for no choice.
        empty = [key for key in (*DEFAULTS, "detail") if st.query_params.get(key) == ""]
        asked = {key: st.query_params[key] for key in DEFAULTS if st.query_params.get(key)}
        heard = {key: taken(key, raw) for key, raw in asked.items()}
        st.session_state.update({key: value for key, value in heard.items() if not isinstance(value, Refused)})
        refused = {key: value for key, value in heard.items() if isinstance(value, Refused)}
        called = {key: key.removeprefix("server_") for key in refused}
        st.session_state.profile_arrival = sharing.refusal(
            {called[key]: (asked[key], value) for key, value in refused.items()}
        )
        for key in (*empty, *refused):
            del st.query_params[key]
        if empty or refused:
            st.rerun()  # a control reads the address as this run found it, and breaks at a number without end
    return st.session_state.profile_arrival


def form(detail: str, complaint: str) -> None:
    """The form and its verdict; the complaint goes when the form is touched."""
    st.subheader(words.PROFILE["server"], anchor=False)
    st.caption(words.PROFILE["server.lead"])
    complaining = st.empty()
    names = choices()
    first, second = st.columns([1, 1]), st.columns([1, 1])
    with first[0], st.container(horizontal=True, key="server_what"):
        _select("server_model", "model", names)
        _select("server_dtype", "dtype", names)
    with first[1], st.container(horizontal=True, key="server_where"):
        _select("server_accelerator", "accelerator", names)
        _number("server_devices", "devices")
    with second[0], st.container(horizontal=True, key="server_load"):
        _number("server_batch", "batch")
        _number("server_context", "server_context")
    with second[1], st.container(horizontal=True, key="server_measured"):
        _number("server_speed", "speed", step=1.0, format="%.2f")
        _select("server_counted", "counted", names)
    server = _server()
    if complaint and st.session_state.setdefault("profile_arrived", server) == server:
        complaining.warning(words.literal(complaint))
    components.judgement(servers.judge(server), detail=detail)


def _select(key: str, label: str, names: dict[str, dict[str, str]]) -> None:
    options = list(names[key])
    if st.session_state.get(key, DEFAULTS[key]) not in options:  # this machine's profile is gone
        st.session_state[key] = DEFAULTS[key]
    st.selectbox(
        words.PROFILE[label],
        options,
        index=options.index(DEFAULTS[key]),
        format_func=names[key].__getitem__,
        key=key,
        bind=controls.BOUND,
    )


def _number(key: str, label: str, **options: Any) -> None:
    st.number_input(words.PROFILE[label], *RANGES[key], DEFAULTS[key], key=key, bind=controls.BOUND, **options)


def _server() -> servers.Server:
    """What the form says; a number that is missing or out of range counts as its default."""
    said = {key: st.session_state.get(key, default) for key, default in DEFAULTS.items()}
    for key, (low, high) in RANGES.items():
        value = said[key]
        said[key] = value if isinstance(value, int | float) and low <= value <= high else DEFAULTS[key]
    machine = _this_machine() if said["server_accelerator"] == THIS else None
    return servers.Server(
        shape=SHAPES[said["server_model"]],
        dtype=said["server_dtype"],
        accelerator=(machine or ACCELERATORS[said["server_accelerator"]]).times(said["server_devices"]),
        batch=said["server_batch"],
        context=said["server_context"],
        speed=float(said["server_speed"]),
        together=said["server_counted"] == "all",
    )
