"""The moments of a run: what is known when.

A round is told in events that hide the future: one a draft (the target has not been asked), the read (all rows light at
once), one verdict a judged draft, the closing token. Under *Story* the drafts are one event. Block verification decides
about all its drafts at once and has one verdict. A round without drafts is one event.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from specviz.figures.palette import FATES
from specviz.trace import Round, Trace

Kind = Literal["draft", "read", "verdict", "closing"]
Standing = Literal["waiting", "kept", "rejected", "unjudged"]
KINDS: tuple[Kind, ...] = ("draft", "read", "verdict", "closing")
ADDRESS = re.compile(r"([1-9][0-9]{0,8})\.([1-9][0-9]{0,8})")


@dataclass(frozen=True, slots=True)
class Event:
    """One moment. ``place`` is the draft it is about, from 0; None for the read and the closing token."""

    round: int
    kind: Kind
    place: int | None = None


def judges_at_once(round_: Round) -> bool:
    """Whether the rule of this round gives one verdict about all drafts."""
    return (round_.settings or {}).get("rule") == "block_verification"


def of_round(round_: Round, *, story: bool = False) -> Iterator[Event]:
    """The events of one round in order."""
    count = len(round_.drafts)
    if count:
        drafted = range(count - 1, count) if story else range(count)
        yield from (Event(round_.index, "draft", place) for place in drafted)
        yield Event(round_.index, "read")
        judged = range(len(round_.judged))
        yield from (Event(round_.index, "verdict", p) for p in (judged[-1:] if judges_at_once(round_) else judged))
    if round_.closing is not None:
        yield Event(round_.index, "closing")


def drafted(round_: Round, event: Event) -> int:
    """How many drafts of the round are on the table at ``event``."""
    if event.round != round_.index:
        return len(round_.drafts) if event.round > round_.index else 0
    return event.place + 1 if event.kind == "draft" and event.place is not None else len(round_.drafts)


def read(round_: Round, event: Event) -> bool:
    """Whether the target has read the round's drafts at ``event``."""
    return event.round > round_.index or (event.round == round_.index and event.kind != "draft")


def settled(round_: Round, event: Event) -> bool:
    """Whether every draft of the round has its fate at ``event``: from its last verdict on."""
    if event.round != round_.index:
        return event.round > round_.index
    last = len(round_.judged) - 1
    return event.kind == "closing" or (event.kind == "verdict" and event.place == last)


def closed(round_: Round, event: Event) -> bool:
    """Whether the round is over at ``event``."""
    return settled(round_, event) and (event.round > round_.index or event.kind == "closing" or round_.closing is None)


def standing(round_: Round, place: int, event: Event) -> Standing:
    """What is known about a draft at ``event``."""
    fate = round_.drafts[place].fate or "unjudged"
    if settled(round_, event):
        return fate
    known = event.kind == "verdict" and event.place is not None and place <= event.place
    return fate if known else "waiting"


class Timeline:
    """All events of a trace, in order."""

    def __init__(self, trace: Trace, *, story: bool = False) -> None:
        self.trace = trace
        self.story = story
        events: list[Event] = []
        starts: list[int] = []
        for round_ in trace.rounds:
            starts.append(len(events))
            events += of_round(round_, story=story)
        self.events = tuple(events)
        self.starts = (*starts, len(events))
        """Index of the first event of each round, and one past the end."""
        self._index = {event: index for index, event in enumerate(events)}

    def __len__(self) -> int:
        return len(self.events)

    def index(self, event: Event) -> int:
        """Where ``event`` stands; for one that this timeline does not tell apart, the nearest that contains it."""
        if event in self._index:
            return self._index[event]
        if not self.events:
            return 0
        number = min(max(event.round, 0), len(self.trace.rounds) - 1)
        inside = range(self.starts[number], self.starts[number + 1])
        if not inside:  # a record may hold a round in which nothing happened
            return min(self.starts[number], len(self.events) - 1)
        later = [i for i in inside if _order(self.events[i]) >= _order(event)]
        return later[0] if later else inside[-1]

    def first_rejection(self) -> Event | None:
        """The first verdict that rejects a draft after another one was kept, so that both can be seen.

        Without such a verdict the first that rejects, and None where none does.
        """
        kept, rejections = 0, []
        for event in self.events:
            round_ = self.trace.rounds[event.round]
            if event.kind == "verdict" and settled(round_, event):
                kept += round_.kept
                if round_.judged[-1].fate == "rejected":
                    rejections.append(event)
                    if kept:
                        return event
        return rejections[0] if rejections else None

    def first_correction(self) -> Event | None:
        """The closing token that replaces the draft of :meth:`first_rejection`, else the first that replaces one."""
        rejection = self.first_rejection()
        corrections = [e for e in self.events if e.kind == "closing" and _corrects(self.trace.rounds[e.round])]
        same = (e for e in corrections if rejection is not None and e.round == rejection.round)
        return next(same, corrections[0] if corrections else None)

    def last(self) -> Event | None:
        """The end of the run so far; None where nothing has happened."""
        return self.events[-1] if self.events else None

    def at(self, address: str) -> Event | None:
        """See :func:`find`."""
        return find(self, address)

    def next_closing(self, index: int) -> int | None:
        """The end of the round that event ``index`` stands in, or of the next one when it stands at an end."""
        ends = [start - 1 for start in self.starts[1:]]
        return next((end for end in ends if end > index), None)


def _order(event: Event) -> tuple[int, int]:
    return (KINDS.index(event.kind), event.place if event.place is not None else -1)


def _corrects(round_: Round) -> bool:
    return round_.closing is not None and round_.closing.kind == "correction" and round_.kept < len(round_.drafts)


def address(timeline: Timeline, event: Event) -> str:
    """ "7.3": the third event of round 7, both counted from one.

    The events are counted one a draft, whatever the telling: every event of *Story* is one of those, so that a link
    keeps its meaning when more or less is shown.

    Raises:
        ValueError: ``event`` is none of the trace's.
    """
    told = list(of_round(timeline.trace.rounds[event.round])) if 0 <= event.round < len(timeline.trace.rounds) else []
    return f"{event.round + 1}.{told.index(event) + 1}"


def find(timeline: Timeline, address: str) -> Event | None:
    """The event at ``address``; None where there is no such event, or where it is no address at all.

    A timeline of another telling places the event by :meth:`Timeline.index`.
    """
    found = ADDRESS.fullmatch(address)
    if found is None or int(found[1]) > len(timeline.trace.rounds):
        return None
    told = list(of_round(timeline.trace.rounds[int(found[1]) - 1]))
    return told[int(found[2]) - 1] if int(found[2]) <= len(told) else None


def label(round_: Round, event: Event) -> str:
    """ "round 7, verdict 3", counted from one."""
    what = {
        "draft": f"draft {(event.place or 0) + 1} of {len(round_.drafts)}",
        "read": "the read",
        "verdict": "the verdict" if judges_at_once(round_) else f"verdict {(event.place or 0) + 1}",
        "closing": FATES[(round_.closing.kind if round_.closing is not None else None) or "plain"].word,
    }[event.kind]
    return f"round {event.round + 1}, {what}"
