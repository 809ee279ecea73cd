"""What the stage asks of the models: a round, the target alone, or the places of a round one by one.

Each is done inside the fragment that draws the stage, in a turn of the device's pool, and changes the visitor's run
only when it has succeeded.
"""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from typing import Any

import streamlit as st

from specviz.figures import coin
from specviz.figures.events import Timeline
from specviz.trace import Trace
from specviz.ui import session, words
from specviz.ui.controls import Wanted
from specviz.ui.engine import engine, lengthened, twin_engine
from specviz.ui.extras import extras
from specviz.ui.loader import Status, loader
from specviz.ui.pool import device_pool
from specviz.ui.session import Goal

_log = logging.getLogger(__name__)


def work(wanted: Wanted, slot: Any) -> None:
    """Do what was asked for, if a model is needed for it and ready: one round at most, the twin, a comparison.

    ``slot`` is where waiting is told.
    """
    now, tried = session.state(), extras()
    goal, request = now.goal, now.request
    if goal is None and not now.twin_wanted and not tried.asking:
        return
    pair = loader().pair(session.pair_id())
    if pair is None:
        _hold(loader().status(session.pair_id()))
        return
    try:
        if goal is not None:
            _decode(pair, goal, wanted, slot)
        if now.twin_wanted:
            _decode_twin(pair, slot)
            now.twin_wanted = False
        if tried.asking:
            _ask_one_by_one(pair, slot)
            tried.asking = False
    except ValueError as error:
        _give_up(words.MESSAGES["refused"].format(reason=words.literal(str(error))))
    except Exception as error:
        _log.exception("a step failed")
        memory = isinstance(error, MemoryError) or "OutOfMemory" in type(error).__name__
        _give_up(words.MESSAGES["memory" if memory else "step"].format(reason=type(error).__name__))
    finally:
        if now.request == request:
            now.goal, now.ahead = None, None


def _give_up(message: str) -> None:
    """Say why nothing comes, and stop asking for it. What is shown stays."""
    now = session.state()
    now.message, now.playing, now.bound = message, False, ""
    now.goal, now.ahead, now.twin_wanted, extras().asking = None, None, False, False


def _hold(status: Status) -> None:
    """The models are not ready: say so, and let them come. What is shown stays."""
    bound = session.state().bound
    if status.state in ("failed", "absent"):
        reason = words.MESSAGES[status.state].format(reason=words.literal(status.message))
        _give_up(words.LINK["absent"] if bound and status.state == "absent" else reason)
        return
    session.state().message = words.LINK["held"] if bound else words.MESSAGES["held"]
    if status.state == "idle":
        loader().start(session.pair_id())
        st.rerun()  # so that the badges begin to watch it


def _turn(slot: Any) -> AbstractContextManager[None]:
    return device_pool().turn(lambda ahead: slot.caption(words.MESSAGES["waiting"].format(before=ahead)))


def _decode(pair: Any, goal: Goal, wanted: Wanted, slot: Any) -> None:
    now = session.state()
    with _turn(slot):
        before = now.run  # an overtaken script may have added a round while this one waited
        run = now.ahead or (before if before.recording is None else session.branched(before, wanted))
        if not run.prompt:
            _give_up(words.MESSAGES["own"])
            return
        finish = run.trace.finish or ("length" if len(run.trace.text_ids) >= run.length else None)
        if finish is not None:
            _give_up(words.MESSAGES[finish].format(length=run.length))
            return
        trace = engine().step(pair, run.trace, run.prompt, run.settings, run.length)
        if now.run is not before:  # the visitor has turned to something else meanwhile
            return
        new, timeline = len(run.trace.rounds), Timeline(trace, story=wanted.story)
        there = timeline.starts[new + 1] - 1 if goal == "round" else timeline.starts[new]
        now.run, now.message = replace(run, trace=trace, event=timeline.events[there], picked=None), ""
        if before.recording is not None and now.ahead is None:  # nobody asked for it but the end of the recording
            now.notice = words.OFFER["live"]
        if now.ahead is run:
            now.ahead = None  # it is on the screen; what was asked for meanwhile goes on from there


def _decode_twin(pair: Any, slot: Any) -> None:
    """The target alone, one token a turn, as far as the run has come."""
    now = session.state()
    run, settings = now.run, dict(now.run.settings) | {"gamma": 0, "drafter": "none"}
    goal = len(run.trace.text_ids)
    start = Trace(replace(run.trace.header, drafter="none", max_new_tokens=goal))
    trace = lengthened(run.twin, goal) if run.twin is not None else start
    with slot.container():
        bar = st.progress(0.0)
        while len(trace.text_ids) < goal and trace.finish is None:
            with device_pool().turn(lambda ahead: bar.progress(0.0, words.MESSAGES["waiting"].format(before=ahead))):
                trace = twin_engine().step(pair, trace, run.prompt, settings, goal)
            bar.progress(len(trace.text_ids) / goal, f"{len(trace.text_ids)} / {goal}")
    slot.empty()
    if now.run is run:
        now.run = replace(run, twin=trace)


def _ask_one_by_one(pair: Any, slot: Any) -> None:
    """The places of the round in focus read one at a time, beside the one read of all."""
    run = session.state().run
    focus = session.focus(run)
    if focus is None:
        return
    with _turn(slot):
        found = engine().one_at_a_time(pair, run.trace, focus[0])
    extras().answer, extras().answered_for = coin.one_at_a_time(**asdict(found)), (run.key, focus[0].index)
