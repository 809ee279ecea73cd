"""What takes its time, run in the page: a measurement, a sweep, a grid.

An experiment works in the script itself, step by step: Cancel, and whatever else the visitor does, comes through
between two steps, and what is done stays. Its record stands in the session until the visitor leaves
(:func:`current`): run here, opened from a file, or else the one that ships.

A page calls :func:`start` and :func:`cancel` where its buttons are and gives :func:`work`, its last statement, a slot
for the progress.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st

from specviz import experiments
from specviz.experiments import MOST_BYTES, Grid, Job, Sweep
from specviz.models.catalogue import EMBEDDED
from specviz.ui import recordings, sharing, words
from specviz.ui.loader import loader
from specviz.ui.pool import device_pool

RECORDED, HERE, FILE = "recorded", "here", "file"
PAINT_S, POLL_S, REDRAW_S = 0.1, 0.2, 5.0
TELLING = 1 / 8
"""The part of the work after which it says how long the rest takes: by then each kind of step was taken. Until then it
says so roughly, once there were some."""
FIRST_S = 3.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Kind:
    """An experiment on offer.

    Attributes:
        name: of what the session keeps about it, and of its widgets.
        words: see :data:`specviz.ui.words.RUNNING`.
        begin: makes the job from the pair and what was asked for.
        taken: the record of what a job has done so far; None of nothing.
        load: a record from the text of a file; a ValueError says what is wrong with it.
        dump: the other way round.
        shipped: the record that ships, if it is here.
        alone: whether all of it is one turn of the device, because it measures.
        redraw_s: after so many seconds the page is drawn again, with what is done so far.
    """

    name: str
    words: Mapping[str, Any]
    begin: Callable[..., Job]
    taken: Callable[[Any], Any]
    load: Callable[[str], Any]
    dump: Callable[[Any], str]
    shipped: Callable[[], Any]
    alone: bool
    redraw_s: float = REDRAW_S


@dataclass(slots=True)
class Running:
    """One visitor's experiment: asked for, at work, and what is to be said about the last one."""

    wanted: bool = False
    asked: dict[str, Any] = field(default_factory=dict)
    job: Any = None
    message: str = ""
    seconds: float = 0.0
    """That the steps took so far, without waiting for others."""


def state(kind: Kind) -> Running:
    """This visitor's."""
    found: Running = st.session_state.setdefault(f"{kind.name}_running", Running())
    return found


# --- the record -------------------------------------------------------------------------------------------------------


def current(kind: Kind) -> tuple[Any, str]:
    """The record to show, None without one, and where it is from: :data:`HERE`, :data:`FILE` or :data:`RECORDED`."""
    own = st.session_state.get(kind.name)
    if own is not None:
        return own, st.session_state.get(f"{kind.name}_origin", HERE)
    return kind.shipped(), RECORDED


def shipped(load: Callable[[str], Any], path: Path) -> Any:
    """What a file that ships holds; None where it is not there or cannot be read."""
    return _read(load, str(path), path.stat().st_mtime_ns) if path.exists() else None


@st.cache_resource(show_spinner=False, max_entries=16)
def _read(_load: Callable[[str], Any], path: str, modified: int) -> Any:
    """Read once a process; ``modified`` is part of the key."""
    try:
        return _load(Path(path).read_text(encoding="utf-8"))
    except ValueError:
        _log.exception("%s cannot be read", path)
        return None


def files(kind: Kind, csv: Callable[[Any], str] | None = None) -> None:
    """Downloads of the current record, the way back to the one that ships, and a file of the visitor's own."""
    record, origin = current(kind)
    with st.container(horizontal=True, gap="small", key=f"{kind.name}_files"):
        for form, write, mime in (("csv", csv, "text/csv"), ("json", kind.dump, "application/json")):
            if record is not None and write is not None:
                st.download_button(
                    kind.words[form],
                    data=partial(_encoded, write, record),
                    file_name=f"specviz-{kind.name}.{form}",
                    mime=mime,
                    on_click="ignore",
                    key=f"{kind.name}_{form}",
                )
        if origin != RECORDED:
            st.button(kind.words["back"], key=f"{kind.name}_back", on_click=_back, args=(kind,))
    with st.expander(kind.words["open"]):
        st.file_uploader(
            kind.words["open.label"],
            type="json",
            max_upload_size=MOST_BYTES // 1_000_000,
            key=f"{kind.name}_opened",
            on_change=_open,
            args=(kind,),
        )
        if refused := st.session_state.get(f"{kind.name}_refused"):
            st.warning(words.literal(refused))


def _encoded(write: Callable[[Any], str], record: Any) -> bytes:
    return write(record).encode()


def _keep(kind: Kind, record: Any, origin: str) -> None:
    st.session_state[kind.name], st.session_state[f"{kind.name}_origin"] = record, origin


def _back(kind: Kind) -> None:
    for key in (kind.name, f"{kind.name}_origin"):
        st.session_state.pop(key, None)
    state(kind).message = ""


def _open(kind: Kind) -> None:
    """The visitor chose a file, or took it away again."""
    uploaded = st.session_state.get(f"{kind.name}_opened")
    st.session_state[f"{kind.name}_refused"] = ""
    if uploaded is None:
        return
    try:
        record = opened(kind, uploaded.getvalue())
    except ValueError as error:
        reason = sharing.visible_reason(str(error))
        st.session_state[f"{kind.name}_refused"] = kind.words["refused"].format(reason=reason)
    else:
        _keep(kind, record, FILE)


def opened(kind: Kind, content: bytes) -> Any:
    """The record in a file.

    Raises:
        ValueError: it is too large or no such record; says why.
    """
    if len(content) > MOST_BYTES:
        raise ValueError(kind.words["size"].format(size=len(content) / 1e6, most=MOST_BYTES / 1e6))
    try:
        return kind.load(content.decode("utf-8"))
    except UnicodeDecodeError:
        raise ValueError("the file is no UTF-8 text") from None


# --- running ----------------------------------------------------------------------------------------------------------


def start(kind: Kind, asked: Mapping[str, Any], *, disabled: bool = False) -> None:
    """The button that starts it; ``asked`` is what :attr:`Kind.begin` takes beside the pair, as of the press."""
    runs = state(kind).wanted
    st.button(
        kind.words["start" if runs or st.session_state.get(kind.name) is None else "again"],
        key=f"{kind.name}_start",
        type="primary",
        disabled=disabled or runs,
        on_click=_start,
        args=(kind, dict(asked)),
    )


def cancel(kind: Kind) -> None:
    """The button that ends it, while it runs: the last of its row, so that nothing else moves (what a running script
    has not drawn yet stays)."""
    if state(kind).wanted:
        st.button(kind.words["cancel"], key=f"{kind.name}_cancel", on_click=_cancel, args=(kind,))


def told(kind: Kind) -> None:
    """What is to be said about the last one."""
    if message := state(kind).message:
        st.info(message)


def _start(kind: Kind, asked: dict[str, Any]) -> None:
    st.session_state[f"{kind.name}_running"] = Running(wanted=True, asked=asked)


def _cancel(kind: Kind) -> None:
    _end(kind, "")
    now = state(kind)
    now.message = kind.words["cancelled" if _kept(kind, now.job) else "cancelled.nothing"]
    now.job = None


def _end(kind: Kind, message: str) -> None:
    now = state(kind)
    if now.job is not None:
        now.job.close()
    now.wanted, now.message = False, message


def _kept(kind: Kind, job: Job | None) -> bool:
    """Keep what the job has done; whether that is anything."""
    record = kind.taken(job) if job is not None else None
    if record is not None:
        _keep(kind, record, HERE)
    return record is not None


def work(kind: Kind, slot: Any) -> None:
    """Run it, if that was asked for: the last thing that a page does, for it takes its time."""
    now = state(kind)
    if not now.wanted:
        return
    pair = _pair(kind, slot)
    if pair is None:
        st.rerun()
    message = ""
    try:
        if now.job is None:
            now.job = kind.begin(pair, **now.asked)
        job = now.job
        _carry_out(kind, job, slot)
        if not job.finished and now.wanted and now.job is job:  # drawn again with what is done, then it goes on
            _kept(kind, job)
            st.rerun()
    except ValueError as error:
        message = kind.words["too_long"].format(reason=words.literal(str(error)))
    except Exception as error:
        _log.exception("an experiment failed")
        memory = isinstance(error, MemoryError) or "OutOfMemory" in type(error).__name__
        message = kind.words["memory" if memory else "failed"].format(reason=type(error).__name__)
    if now.wanted and (now.job is not None or message):
        _end(kind, message)
        _kept(kind, now.job)
        now.job = None
    st.rerun()


def _carry_out(kind: Kind, job: Job, slot: Any) -> None:
    """Step until it is finished or overtaken, or until the page is to be drawn again."""
    now, until = state(kind), time.monotonic() + kind.redraw_s

    def shown() -> tuple[float, str]:
        return job.done / job.total, progress(kind.words["progress"], job.done, job.total, now.seconds)

    def turn(taken: bool) -> AbstractContextManager[None]:
        if not taken:
            return nullcontext()
        waiting = kind.words["waiting"]
        return device_pool().turn(lambda before: bar.progress(job.done / job.total, waiting.format(before=before)))

    bar, painted = slot.progress(*shown()), 0.0
    with turn(kind.alone):
        while not job.finished and now.job is job:
            with turn(not kind.alone):
                started = time.monotonic()
                job.step()
                now.seconds += time.monotonic() - started
            if time.monotonic() - painted > PAINT_S or job.finished:
                bar.progress(*shown())  # a script that was overtaken, or whose visitor is gone, ends here
                painted = time.monotonic()
            if time.monotonic() > until:
                break


def progress(sentence: str, done: int, total: int, seconds: float) -> str:
    """How much is done and, once that can be told, how long the rest will take."""
    so_far = sentence.format(done=done, total=total)
    rough = done < TELLING * total
    if done >= total or (rough and (not done or seconds < FIRST_S)):
        return so_far
    left = seconds / done * (total - done)
    if left < 5:
        return words.RUNNING["left.soon"].format(progress=so_far)
    return words.RUNNING["left.rough" if rough else "left"].format(progress=so_far, time=duration(left))


def duration(seconds: float) -> str:
    """About how long, in words: a multiple of five seconds, or minutes."""
    unit, count = ("minutes", math.ceil(seconds / 60)) if seconds > 90 else ("seconds", 5 * math.ceil(seconds / 5))
    return str(words.RUNNING[unit].format(count=count))


def pair_id() -> str:
    """The pair that runs: the Decode page's."""
    run = getattr(st.session_state.get("decode"), "run", None)
    return str(getattr(run, "pair_id", EMBEDDED))


def _pair(kind: Kind, slot: Any) -> Any:
    """The pair, once it is loaded; None, and the reason told, where it cannot be."""
    asked = pair_id()
    while (pair := loader().pair(asked)) is None:
        status = loader().status(asked)
        if status.state in ("absent", "failed"):
            reason = words.literal(status.message)
            _end(kind, kind.words["absent" if status.state == "absent" else "unloadable"].format(reason=reason))
            return None
        loader().start(asked)
        slot.progress(0.0, kind.words["models"])
        time.sleep(POLL_S)
    return pair


# --- the two of the laboratories --------------------------------------------------------------------------------------


def _sweeper(pair: Any, **asked: Any) -> Job:
    from specviz.decoding.experiments import Sweeper

    return Sweeper(pair, **asked)


def _gridder(pair: Any, **asked: Any) -> Job:
    from specviz.decoding.experiments import Gridder

    return Gridder(pair, **asked)


def _shipped_sweep() -> Sweep | None:
    return shipped(SWEEP.load, recordings.FOLDER.parent / "sweep.json")


def _shipped_grid() -> Grid | None:
    found = (shipped(GRID.load, path) for path in sorted((recordings.FOLDER / "grid").glob("*.json")))
    return experiments.joined(grid for grid in found if grid is not None)


SWEEP = Kind(
    "sweep",
    words.SWEEP,
    _sweeper,
    lambda job: job.result(),
    partial(experiments.load, Sweep),
    experiments.dump,
    _shipped_sweep,
    alone=True,
)
"""``asked``: the arguments of :class:`specviz.decoding.experiments.Sweeper` but the pair."""
GRID = Kind(
    "grid",
    words.GRID,
    _gridder,
    lambda job: job.result(),
    partial(experiments.load, Grid),
    experiments.dump,
    _shipped_grid,
    alone=False,
)
"""``asked``: the arguments of :class:`specviz.decoding.experiments.Gridder` but the pair."""
