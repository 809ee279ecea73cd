"""Moving through a run: the buttons, and the stage they move.

The buttons stand outside the fragment that draws the stage, so that Pause acts at once. A press is a request: it moves
the cursor, or asks for one round, and reruns the stage only.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import streamlit as st

from specviz.figures import coin, place, tallies, twin
from specviz.figures.events import Timeline
from specviz.figures.sentences import Spans
from specviz.figures.text import Texts, visible
from specviz.trace import Round, Trace
from specviz.ui import components, controls, recordings, session, words
from specviz.ui.controls import Wanted
from specviz.ui.engine import engine, lengthened, twin_engine
from specviz.ui.loader import Status, loader, preloads
from specviz.ui.pool import device_pool
from specviz.ui.session import Goal, Run

PERIOD_S = 0.7
"""Between two events while playing."""

_log = logging.getLogger(__name__)


# --- the buttons ------------------------------------------------------------------------------------------------------


def transport() -> None:
    """The row of buttons, and how much is to be shown."""
    playing = session.state().playing
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center", key="transport"):
        with st.container(horizontal=True, gap="small", width="content", key="buttons"):
            st.button(words.BUTTONS["restart"], key="restart", on_click=_restart, shortcut="Home")
            st.button(words.BUTTONS["back"], key="back", on_click=_back, shortcut="Left")
            st.button(words.BUTTONS["step"], key="step", on_click=_step, shortcut="Right", type="primary")
            st.button(words.BUTTONS["round"], key="round", on_click=_round, shortcut="N")
            st.button(words.BUTTONS["pause" if playing else "play"], key="play", on_click=_play, shortcut="P")
        st.segmented_control(
            words.BUTTONS["detail"],
            words.DETAILS,
            default=words.DETAILS[1],
            required=True,
            key="detail",
            bind=controls.BOUND,
            label_visibility="collapsed",
        )


def _story() -> bool:
    return st.session_state.get("detail") == "Story"


def _restart() -> None:
    session.move(0, story=_story())
    st.rerun("stage")


def _back() -> None:
    session.move(session.moment(story=_story()) - 1, story=_story())
    st.rerun("stage")


def _step() -> None:
    _ask("step")


def _round() -> None:
    _ask("round")


def _play() -> None:
    now = session.state()
    now.playing, now.message = not now.playing, ""


def _ask(goal: Goal) -> None:
    """Move on; where that needs a model and the run is a recording, the whole page changes, not the stage alone."""
    now = session.state()
    if session.step(goal, story=_story()) and now.run.recording is not None:
        if loader().status(now.run.pair_id).state == "absent":
            now.goal, now.message = None, words.MESSAGES["absent"]
        elif now.run.trace.finish == "length" and len(now.run.trace.text_ids) >= st.session_state.get("length", 0):
            controls.lengthen(session.MORE_TOKENS)
        return
    st.rerun("stage")


def _moved() -> None:
    index = _trigger("moved")
    if isinstance(index, int | float):
        session.move(int(index), story=_story())


def _stepped() -> None:
    by = _trigger("stepped")
    if by == 1:
        session.step("step", story=_story())
    elif by == -1:
        session.move(session.moment(story=_story()) - 1, story=_story())


def _picked() -> None:
    session.pick(_trigger("picked"))


def _painted() -> None:
    """The first page is painted: now there is time to import torch, and for the rest of the page."""
    now = session.state()
    now.painted = True
    pair_id = now.run.pair_id
    if preloads() and loader().status(pair_id).state == "idle":
        loader().start(pair_id)


def _trigger(name: str) -> Any:
    return (st.session_state.get("strip") or {}).get(name)


# --- the stage --------------------------------------------------------------------------------------------------------


def stage(wanted: Wanted) -> None:
    """Strip, sentence, coin, place and tally; a fragment that moves by itself while playing."""
    playing = session.state().playing
    st.fragment(_stage, key="stage", run_every=PERIOD_S if playing else None)(wanted)


def _stage(wanted: Wanted) -> None:
    now, story = session.state(), wanted.story
    before = (now.playing, now.run.recording, now.run.trace.header)
    if now.playing:
        session.play(story=story)
    slot = st.empty()
    _work(wanted, story, slot)
    if now.message:
        slot.warning(now.message)
    _draw(now.run, wanted)
    if now.painted:
        now.painted = False
        st.rerun()
    if before != (now.playing, now.run.recording, now.run.trace.header):
        st.rerun()  # what stands outside the stage has changed too


def _draw(run: Run, wanted: Wanted) -> None:
    story, formulas = wanted.story, wanted.detail == "Formulas"
    laid_out = f"{run.key}-{story}"
    view = session.view(run, story=story)
    focus = session.focus(run)
    selected = (focus[0].index, -1 if focus[1] is None else focus[1]) if focus else (-1, -1)
    components.strip(
        run=laid_out,
        rounds=len(run.trace.rounds),
        moment=session.moment(story=story),
        prompt=_prompt(run, view.chunks[0]["prompt"]),
        selected=selected,
        pinned=run.picked is not None,
        live_round=run.live_round,
        on_moved=_moved,
        on_stepped=_stepped,
        on_picked=_picked,
        on_painted=_painted,
    )
    if focus is not None and run.event is not None:
        round_, draft = focus
        left, right = st.columns(2, gap="small")
        with left.container(border=True, height="stretch", key="card_coin"):
            components.coin(coin.layout(round_, run.event, view.texts, selected=draft), formulas=formulas)
        with right.container(border=True, height="stretch", key="card_place"):
            components.place(place.layout(run.trace, round_, run.event, view.texts, selected=draft), formulas=formulas)
        with st.container(border=True, key="card_tally"):
            _tally(run, story=story)
    with st.container(key="run_data"):
        components.run_data(laid_out, view.chunks)


def _prompt(run: Run, decoded: str) -> str:
    """The prompt as it was asked; as it was tokenized where the record does not say."""
    return visible(run.prompt) if run.prompt else decoded


def _tally(run: Run, *, story: bool) -> None:
    complete = session.rounds_complete(run)
    rounds = run.trace.rounds[:complete]
    title = words.TALLY["title"].format(rounds=_rounds(rounds)) if rounds else words.TALLY["none"]
    components.tally(tallies.layout(rounds, story=story), title=title, twin=_twin(run, complete))
    if rounds and run.live_round is not None and session.twin_fits(run) and not _twin_covers(run, complete):
        st.button(words.OFFER["twin"], key="twin", on_click=_want_twin)


def _rounds(rounds: tuple[Round, ...]) -> str:
    return "1 round" if len(rounds) == 1 else f"{len(rounds)} rounds"


# --- work of the models -----------------------------------------------------------------------------------------------


def _want_twin() -> None:
    session.state().twin_wanted = True


def _twin_covers(run: Run, complete: int) -> bool:
    return run.twin is not None and len(run.twin.text_ids) >= len(run.trace.cut(complete).text_ids)


def _twin(run: Run, complete: int) -> Spans:
    if run.recording is not None and run.twin is None and not session.bare():
        run = replace(run, twin=recordings.twin(run.recording))
    if not complete or run.twin is None or not _twin_covers(run, complete) or not session.twin_fits(run):
        return ()
    trace = run.trace.cut(complete)
    return twin.compare(trace, run.twin, Texts({**run.twin.token_bytes(), **trace.token_bytes()}))[1]


def _work(wanted: Wanted, story: bool, slot: Any) -> None:
    """Do what was asked for, if a model is needed for it and ready: one round at most, and the twin."""
    now = session.state()
    goal, request = now.goal, now.request
    if goal is None and not now.twin_wanted:
        return
    pair = loader().pair(session.pair_id())
    if pair is None:
        _hold(loader().status(session.pair_id()))
        return
    try:
        if goal is not None:
            _decode(pair, goal, wanted, story, slot)
        if now.twin_wanted:
            _decode_twin(pair, slot)
            now.twin_wanted = False
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
    now.message, now.playing = message, False
    now.goal, now.ahead, now.twin_wanted = None, None, False


def _hold(status: Status) -> None:
    """The models are not ready: say so, and let them come. What is shown stays."""
    if status.state in ("failed", "absent"):
        _give_up(words.MESSAGES[status.state].format(reason=words.literal(status.message)))
        return
    session.state().message = words.MESSAGES["held"]
    if status.state == "idle":
        loader().start(session.pair_id())
        st.rerun()  # so that the badges begin to watch it


def _decode(pair: Any, goal: Goal, wanted: Wanted, story: bool, slot: Any) -> None:
    now = session.state()
    with device_pool().turn(lambda ahead: slot.caption(words.MESSAGES["waiting"].format(before=ahead))):
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
        new, timeline = len(run.trace.rounds), Timeline(trace, story=story)
        there = timeline.starts[new + 1] - 1 if goal == "round" else timeline.starts[new]
        now.run, now.message = replace(run, trace=trace, event=timeline.events[there], picked=None), ""
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
