"""Five cards that lead a newcomer through one round.

They lie between the sentence and the panels and cover nothing. Step drives them: each says what to do, ends when the
run has come there, and makes way for the next one with the step after.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st

from specviz.figures import events
from specviz.figures.events import Event, Timeline
from specviz.figures.sentences import fill, plain
from specviz.figures.text import Texts
from specviz.ui import components, session, words
from specviz.ui.session import Run

CARDS = ("guess", "read", "coin", "refill", "price")


@dataclass(slots=True)
class Tour:
    """Where the visitor is. ``reached`` is the event at which the card's end came, None before."""

    card: int = 0
    reached: Event | None = None
    saved: bool = False
    """Whether a coin was moved so that a draft that went would have stayed."""
    dealt: bool = False
    """Whether a place was dealt many times."""


def tour() -> Tour | None:
    """The visitor's tour, while one is going on."""
    return st.session_state.get("tour")


def start() -> None:
    """Begin at the round of the opening recording in which a draft goes; to be called from a callback."""
    session.open_recording(words.CARDS_RECORDING)
    run = session.state().run
    first = Timeline(run.trace).first_rejection()
    if first is not None:
        session.move(session.view(run, story=False).timeline.starts[first.round], story=False)
    st.session_state.tour = Tour()


def leave() -> None:
    """Put the cards away."""
    st.session_state.tour = None


def turned(step: object) -> None:
    """The visitor asked for the next card (1) or has had enough."""
    now = tour()
    if now is not None and step == 1 and now.card + 1 < len(CARDS):
        now.card, now.reached = now.card + 1, None
    else:
        leave()


def saved() -> None:
    """A coin was moved so that a draft that went would have stayed."""
    now = tour()
    if now is not None:
        now.saved = True


def dealt() -> None:
    """A place was dealt many times."""
    now = tour()
    if now is not None:
        now.dealt = True


def follow(run: Run, slower: Callable[[Run], bool]) -> None:
    """Look whether the card's end has come, and turn to the next card with the step after it.

    ``slower`` measures whether the run loses; it is asked on the last card only.
    """
    now = tour()
    if now is None or run.event is None:
        return
    if now.reached is not None and run.event != now.reached and now.card + 1 < len(CARDS):
        now.card, now.reached = now.card + 1, None
    last = now.card + 1 == len(CARDS)
    if now.reached is None and (slower(run) if last else _ENDS[CARDS[now.card]](now, run, run.event)):
        now.reached = run.event


def draw(run: Run, texts: Texts, *, on_turned: Callable[[], None]) -> None:
    """The card, if a tour is going on."""
    now = tour()
    if now is None:
        return
    said: Mapping[str, str] = words.CARDS[CARDS[now.card]]
    names = _names(run, texts)
    reached = now.reached is not None
    shown: dict[str, Any] = {
        "count": words.CARD["count"].format(number=now.card + 1, of=len(CARDS)),
        "title": plain(fill(said["title"], **names)),
        "text": fill(said["text"], **names),
        "task": fill(said["reached" if reached else "task"], **names),
        "reached": reached,
        "next": words.CARD["next"] if now.card + 1 < len(CARDS) else "",
        "close": words.CARD["close"],
    }
    with st.container(key="card_tour"):  # by this name the layout for a projector knows it
        components.card(shown, on_turned=on_turned)


def _names(run: Run, texts: Texts) -> dict[str, object]:
    """The draft that the cards are about: the one that goes in the round on the screen."""
    round_ = run.trace.rounds[run.event.round] if run.event is not None else None
    gone = next((draft for draft in round_.drafts if draft.fate == "rejected"), None) if round_ is not None else None
    return {
        "draft": texts(gone.id) if gone is not None else words.CARD["some_draft"],
        "count": len(round_.drafts) if round_ is not None else 0,
        "answers": len(round_.drafts) + 1 if round_ is not None else 1,
    }


def _drafted(_: Tour, run: Run, event: Event) -> bool:
    round_ = run.trace.rounds[event.round]
    return event.kind == "draft" and events.drafted(round_, event) == len(round_.drafts)


_ENDS: Mapping[str, Callable[[Tour, Run, Event], bool]] = {
    "guess": _drafted,
    "read": lambda _, __, event: event.kind == "read",
    "coin": lambda now, _, __: now.saved,
    "refill": lambda now, _, __: now.dealt,
}
