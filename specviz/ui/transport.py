"""Moving through a run: the buttons, the links under the lead, and how much is to be shown.

They stand outside the fragment that draws the stage, so that Pause acts at once. A press is a request: it moves the
cursor, or asks for one round, and reruns the stage only.
"""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from specviz.figures.events import Event, Timeline
from specviz.ui import cards, controls, frame, session, words
from specviz.ui.extras import extras
from specviz.ui.loader import loader
from specviz.ui.session import Goal

JUMPS: dict[str, tuple[str, Callable[[Timeline], Event | None]]] = {
    "died": ("coin", Timeline.first_rejection),
    "exact": ("exact", Timeline.first_correction),
    "pays": ("pays", Timeline.last),
}
"""Of each link under the lead: the panel that answers it, and the event at which it does."""


def large() -> bool:
    """Whether the page is laid out for a projector."""
    return bool(st.session_state.get("large"))


def links() -> None:
    """The three questions, each a way to an event and a panel, and the cards."""
    for name in JUMPS:
        st.button(words.LINKS[name], key=f"link_{name}", type="tertiary", on_click=_jump, args=(name,))
    st.button(words.LINKS["cards"], key="link_cards", type="tertiary", on_click=cards.start)


def size() -> None:
    """The switch between the page and its layout for a projector."""
    st.toggle(words.LAYOUT["large"], key="large", bind=controls.BOUND)


def transport() -> None:
    """The row of buttons, and how much is to be shown."""
    playing = session.state().playing
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center", key="transport"):
        with st.container(horizontal=True, gap="small", width="content", key="buttons"):
            st.button(words.BUTTONS["restart"], key="restart", on_click=_restart, shortcut="Home")
            st.button(words.BUTTONS["back"], key="back", on_click=_back, shortcut="Left")
            st.button(words.BUTTONS["step"], key="step", on_click=_step, shortcut="Right", type="primary")
            st.button(words.BUTTONS["round"], key="round", on_click=_round, shortcut="N")
            label = words.BUTTONS["pause" if playing else "play"]
            st.button(label, key="play", on_click=_play, args=(not playing,), shortcut="P")
            if not large():
                st.button(words.SPEEDS[speed()], key="speed_button", help=words.LAYOUT["speed"], on_click=_faster)
        with st.container(horizontal=True, gap="small", width="content", vertical_alignment="center", key="telling"):
            if large():
                st.segmented_control(
                    words.LAYOUT["panel"],
                    list(words.PANELS),
                    default="coin",
                    required=True,
                    format_func=words.PANELS.__getitem__,
                    key="panel",
                    label_visibility="collapsed",
                    persist_state="session",
                )
            frame.detail()
            if large():
                size()


def speed() -> float:
    """How many events Play shows a second."""
    return float(st.session_state.get("speed", 1.0))


def _faster() -> None:
    speeds = list(words.SPEEDS)
    st.session_state.speed = speeds[(speeds.index(speed()) + 1) % len(speeds)]


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


def _play(on: bool) -> None:
    """Do what the button said when it was pressed: a press that arrives twice must not undo itself."""
    now = session.state()
    now.playing, now.message = on, ""


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


def _jump(name: str) -> None:
    """Go to the event that answers, and bring its panel into view."""
    panel, event_of = JUMPS[name]
    timeline = session.view(session.state().run, story=_story()).timeline
    event = event_of(timeline)
    if event is not None:
        session.move(timeline.index(event), story=_story())
    st.session_state.panel = panel
    extras().show(panel)
    st.rerun("stage")
