"""Measuring this machine from the page, and judging a server from what its owner says.

What was measured, or opened from a file, stands in ``st.session_state.profile`` until the visitor leaves; every page
may price on it (:func:`current`). Measuring runs in the script itself, sample by sample: Cancel, and whatever else the
visitor does, comes through between two samples, and samples that were taken stay.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from specviz.figures import profile as figures
from specviz.figures import server as servers
from specviz.hardware import measured
from specviz.hardware.accelerators import ACCELERATORS, DTYPES, Accelerator
from specviz.hardware.measured import Profile
from specviz.hardware.shapes import SHAPES
from specviz.models.catalogue import EMBEDDED
from specviz.ui import components, controls, frame, recordings, sharing, words
from specviz.ui.controls import Refused
from specviz.ui.loader import loader
from specviz.ui.pool import device_pool

if TYPE_CHECKING:
    from specviz.decoding.profiling import Profiler

RECORDED = "profile.json"
"""The file beside the recorded runs' folder with the embedded pair's recorded profile."""
RECORDED_HERE, MEASURED_HERE, FILE = "recorded", "here", "file"
CONTEXTS = (64, 256, 1024)
MAX_BYTES = 1_000_000
PAINT_S, POLL_S = 0.1, 0.2
TELLING = 1 / 8
"""The part of the samples after which they say how long the rest takes: by then each kind was taken."""
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

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Measuring:
    """One visitor's measurement: asked for, at work, and what is to be said about the last one."""

    wanted: bool = False
    profiler: Profiler | None = None
    message: str = ""
    seconds: float = 0.0
    """That the samples took so far, without waiting for others."""


def state() -> Measuring:
    """This visitor's."""
    found: Measuring = st.session_state.setdefault("measuring", Measuring())
    return found


def current() -> tuple[Profile | None, str]:
    """The profile to show or to price on, and where it is from: measured here, a file, or recorded."""
    own = st.session_state.get("profile")
    if own is not None:
        return own, st.session_state.get("profile_origin", MEASURED_HERE)
    return recorded(), RECORDED_HERE


def recorded() -> Profile | None:
    """The profile that ships; None where its file is not there."""
    path = recordings.FOLDER.parent / RECORDED
    return _read(str(path), path.stat().st_mtime_ns) if path.exists() else None


@st.cache_resource(show_spinner=False, max_entries=4)
def _read(path: str, modified: int) -> Profile | None:
    """Read once a process; ``modified`` is part of the key."""
    try:
        return measured.load(Path(path).read_text(encoding="utf-8"))
    except ValueError:
        _log.exception("the recorded profile cannot be read")
        return None


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
    with st.container(horizontal=True, gap="small", key="profile_files"):
        names = (("csv", figures.csv, "text/csv"), ("json", measured.dump, "application/json"))
        for kind, write, mime in names:
            st.download_button(
                words.PROFILE[kind],
                data=_file(write, profile),
                file_name=f"specviz-profile.{kind}",
                mime=mime,
                on_click="ignore",
                key=f"profile_{kind}",
            )
        if origin != RECORDED_HERE:
            st.button(words.PROFILE["back"], key="profile_back", on_click=_back)
    with st.expander(words.PROFILE["open"]):
        st.file_uploader(
            words.PROFILE["open.label"],
            type="json",
            max_upload_size=MAX_BYTES // 1_000_000,
            key="profile_opened",
            on_change=_open,
        )
        if refused := st.session_state.get("profile_refused"):
            st.warning(words.literal(refused))


def _file(write: Callable[[Profile], str], profile: Profile) -> Callable[[], bytes]:
    return lambda: write(profile).encode()


def _back() -> None:
    st.session_state.pop("profile", None)
    st.session_state.pop("profile_origin", None)
    state().message = ""


def _open() -> None:
    """The visitor chose a file, or took it away again."""
    uploaded = st.session_state.get("profile_opened")
    st.session_state.profile_refused = ""
    if uploaded is None:
        return
    try:
        profile = opened(uploaded.getvalue())
    except ValueError as error:
        reason = sharing.visible_reason(str(error))
        st.session_state.profile_refused = words.PROFILE["refused"].format(reason=reason)
    else:
        _keep(profile, FILE)


def opened(content: bytes) -> Profile:
    """The profile in a file.

    Raises:
        ValueError: it is too large or no profile; says why.
    """
    if len(content) > MAX_BYTES:
        raise ValueError(words.PROFILE["size"].format(size=len(content) / 1e6))
    try:
        return measured.load(content.decode("utf-8"))
    except UnicodeDecodeError:
        raise ValueError("the file is no UTF-8 text") from None


def _keep(profile: Profile, origin: str) -> None:
    st.session_state.profile, st.session_state.profile_origin = profile, origin


# --- measuring --------------------------------------------------------------------------------------------------------


def buttons() -> tuple[str, Any]:
    """Measure or Cancel, how much is shown, and what is to be said; returns the detail and where progress goes."""
    now = state()
    with st.container(
        horizontal=True, vertical_alignment="bottom", horizontal_alignment="distribute", key="measure_row"
    ):
        with st.container(horizontal=True, vertical_alignment="bottom", gap="small", width="content"):
            again = st.session_state.get("profile") is not None
            label = words.PROFILE["again" if again else "measure"]
            st.button(label, key="measure", type="primary", disabled=now.wanted, on_click=_start)
            st.selectbox(
                words.PROFILE["context"],
                CONTEXTS,
                index=1,
                key="profile_context",
                disabled=now.wanted,
                width=170,
                persist_state="session",
            )
            if now.wanted:  # last, so that nothing else moves: what a running script has not drawn yet stays
                st.button(words.PROFILE["cancel"], key="cancel", on_click=_cancel)
        detail = frame.detail()
    st.caption(words.PROFILE["alone"])
    slot = st.empty()
    if now.message:
        st.info(now.message)
    return detail, slot


def _start() -> None:
    now = state()
    now.wanted, now.profiler, now.message, now.seconds = True, None, "", 0.0


def _cancel() -> None:
    now = state()
    profile = now.profiler.profile() if now.profiler is not None else None
    if now.profiler is not None:
        now.profiler.close()
    if profile is not None:
        _keep(profile, MEASURED_HERE)
    now.message = words.PROFILE["cancelled" if profile is not None else "cancelled.nothing"]
    now.wanted, now.profiler = False, None


def measure(slot: Any) -> None:
    """Measure, if that was asked for: the last thing that the page does, for it takes its time."""
    now = state()
    if not now.wanted:
        return
    bar = slot.progress(0.0, words.PROFILE["models"])
    pair = _pair(bar)
    if pair is None:
        st.rerun()
    message = ""
    try:
        if now.profiler is None:
            from specviz.decoding.profiling import Profiler

            now.profiler = Profiler(pair, context=st.session_state.get("profile_context", CONTEXTS[1]))
        profiler = now.profiler
        # One turn for all of it: others wait, for a time taken while they decode would be no measurement.
        with device_pool().turn(lambda before: bar.progress(0.0, words.PROFILE["waiting"].format(before=before))):
            _sample(profiler, bar)
    except ValueError as error:
        message = words.PROFILE["too_long"].format(reason=words.literal(str(error)))
    except Exception as error:
        _log.exception("measuring failed")
        memory = isinstance(error, MemoryError) or "OutOfMemory" in type(error).__name__
        message = words.PROFILE["memory" if memory else "failed"].format(reason=type(error).__name__)
    if now.wanted and (now.profiler is not None or message):
        profile = now.profiler.profile() if now.profiler is not None else None
        if profile is not None:
            _keep(profile, MEASURED_HERE)
        now.wanted, now.profiler, now.message = False, None, message
    st.rerun()


def _sample(profiler: Profiler, bar: Any) -> None:
    now, painted = state(), 0.0
    while not profiler.finished and now.profiler is profiler:
        started = time.monotonic()
        profiler.step()
        now.seconds += time.monotonic() - started
        if time.monotonic() - painted > PAINT_S or profiler.finished:
            told = progress(profiler.done, profiler.total, now.seconds)
            bar.progress(profiler.done / profiler.total, told)  # a script that was overtaken ends here
            painted = time.monotonic()


def progress(done: int, total: int, seconds: float) -> str:
    """How many samples were taken and, once they can tell, how long the rest will take."""
    told: str = words.PROFILE["progress"].format(done=done, total=total)
    if not TELLING * total <= done < total:
        return told
    left = seconds / done * (total - done)
    if left < 5:
        return str(words.PROFILE["left.soon"].format(progress=told))
    unit, count = ("minutes", math.ceil(left / 60)) if left > 90 else ("seconds", 5 * math.ceil(left / 5))
    return str(words.PROFILE["left"].format(progress=told, time=words.PROFILE[unit].format(count=count)))


def _pair(bar: Any) -> Any:
    """The pair, once it is loaded; None, and the reason told, where it cannot be."""
    run = getattr(st.session_state.get("decode"), "run", None)
    pair_id = getattr(run, "pair_id", EMBEDDED)
    while (pair := loader().pair(pair_id)) is None:
        status = loader().status(pair_id)
        if status.state in ("absent", "failed"):
            now = state()
            reason = words.literal(status.message)
            told = words.PROFILE["absent" if status.state == "absent" else "unloadable"].format(reason=reason)
            now.wanted, now.message = False, told
            return None
        loader().start(pair_id)
        bar.progress(0.0, words.PROFILE["models"])
        time.sleep(POLL_S)
    return pair


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
