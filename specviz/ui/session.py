"""What one visitor is looking at, and how that changes.

Everything is in ``st.session_state.decode``: a frozen :class:`Run` that is replaced as a whole. A step of a model that
comes back late therefore cannot spoil what the visitor has turned to meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Literal

import streamlit as st

from specviz.figures import events, strip
from specviz.figures.events import Event, Timeline
from specviz.figures.text import Texts, visible
from specviz.models.catalogue import EMBEDDED
from specviz.trace import Header, Round, Trace
from specviz.ui import controls, recordings, words
from specviz.ui.controls import Wanted
from specviz.ui.engine import lengthened
from specviz.ui.recordings import Recording

MORE_TOKENS = 64
"""How much longer a recorded run becomes when a step at its end takes it live."""
FILE = "file"
"""What a run that a visitor opened from a file is called where a recording has its name."""
SHAPING = ("rule", "temperature", "top_k", "top_p", "seed")
"""Settings that shape the target's own text: the twin shares them."""

Goal = Literal["step", "round"]
_keys = count(1)


@dataclass(frozen=True, slots=True)
class Arrival:
    """What the address asked for besides the controls: the moment ("7.3"), and what could not be had, in words."""

    at: str = ""
    complaint: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """A run on the screen.

    ``key`` changes whenever rounds that were shown are dropped. ``recording`` is its name while it is one, or
    :data:`FILE`; ``base`` what it was before it went live. ``live_round`` is the first round that was decoded here.
    ``picked`` pins a place: (round, draft or None for the closing token). ``stretched``: the length was changed when
    it had already made rounds shorter, or would have. ``fixed`` says why no model can go on from here.
    """

    key: str
    trace: Trace
    pair_id: str
    prompt: str
    settings: Mapping[str, Any]
    length: int
    recording: str | None = None
    base: str | None = None
    live_round: int | None = None
    stretched: bool = False
    fixed: str = ""
    event: Event | None = None
    picked: tuple[int, int | None] | None = None
    twin: Trace | None = None


@dataclass(frozen=True, slots=True)
class View:
    """A trace laid out, under one telling of its events."""

    trace: Trace
    timeline: Timeline
    texts: Texts
    chunks: tuple[dict[str, Any], ...]


@dataclass(slots=True)
class Decode:
    """The page's state."""

    run: Run
    playing: bool = False
    goal: Goal | None = None
    """What a model is still to do."""
    request: int = 0
    """Counts what was asked of a model: a script that an impatient press overtook leaves the newer request alone."""
    ahead: Run | None = None
    """The run that takes this one's place as soon as a model has decoded its next round, and not before."""
    bound: str = ""
    """The moment that a link asked for, while the run is still being decoded up to it."""
    twin_wanted: bool = False
    painted: bool = False
    """The browser has just said that the first page is painted."""
    message: str = ""
    notice: str = ""
    """What is said above the message until the visitor moves: what a link or a file asked for and could not be had."""
    views: dict[bool, View] = field(default_factory=dict)
    settled: bool = False
    """Whether the page has run as a whole."""
    unfinished: bool = False
    """That run left out what follows when the browser has painted it."""

    @property
    def said(self) -> str:
        """Everything that is to be told now, as Markdown in which nothing is marked."""
        return " ".join(filter(None, (self.notice, self.message)))


def state() -> Decode:
    """This visitor's state; :func:`current` makes it."""
    return st.session_state.decode


def current(wanted: Wanted, arrival: Arrival = Arrival()) -> Run:
    """The run to show, after what the controls say has been taken into account.

    The first time it is the one that the address asks for. A recorded run stays as it is, and so does one of another
    pair (the page offers to go on live); a live one follows its settings from the cursor on, and starts over when the
    prompt changes.
    """
    if "decode" not in st.session_state:
        st.session_state.decode = _opened(wanted, arrival)
    now = state()
    run = now.run
    if follows(run, wanted) and changes(run, wanted):
        now.run, now.message, now.notice, now.bound = _turned(run, wanted), "", "", ""
    return now.run


def follows(run: Run, wanted: Wanted) -> bool:
    """Whether the run is a live one of the pair that is wanted: its settings change with the controls."""
    return run.recording is None and run.pair_id == wanted.pair_id


def bare() -> bool:
    """Whether this is the first run of a plain address, which paints what people came for and nothing else.

    A dozen controls cost the browser as much time as the rest of the page; they follow as soon as that is painted.
    """
    return not state().settled and not st.query_params


def settle(*, unfinished: bool) -> None:
    """The page has run once; ``unfinished``: without what follows when it is painted."""
    now = state()
    now.unfinished, now.settled = unfinished, True


def _opened(wanted: Wanted, arrival: Arrival) -> Decode:
    """The page as it is first shown.

    A link names a moment. Where a recording is the very run that it is about, that is shown, else the run is decoded
    here up to the moment; until then, and for an address without a moment, there is the recording that shows the rule
    asked for, or the first one, or an empty live run.
    """
    notice = words.literal(arrival.complaint)
    same = next((found for found in recordings.every() if _is_of(found, wanted)), None) if arrival.at else None
    if same is not None:
        run = recorded(same)
        event = events.find(Timeline(run.trace), arrival.at)
        notice = notice if event is not None else f"{notice} {_not_there(arrival.at, run)}".strip()
        return Decode(replace(run, event=event or run.event), notice=notice)
    found = recordings.for_settings(wanted.settings) or recordings.first()
    run = recorded(found) if found is not None else _fresh(wanted)
    now = Decode(run, notice=notice)
    if arrival.at and wanted.prompt:
        now.bound, now.goal, now.request = arrival.at, "round", 1
        now.ahead = _fresh(wanted) if found is not None else None
    return now


def _is_of(recording: Recording, wanted: Wanted) -> bool:
    """Whether these controls describe the recording."""
    header = recording.trace.header
    same_run = (header.pair or EMBEDDED, header.prompt, header.max_new_tokens) == (
        wanted.pair_id,
        wanted.prompt,
        wanted.length,
    )
    return same_run and all(recording.settings.get(name) == value for name, value in wanted.settings.items())


def _not_there(at: str, run: Run) -> str:
    rounds = len(run.trace.rounds)
    return words.LINK["no_moment"].format(at=at, rounds="1 round" if rounds == 1 else f"{rounds} rounds")


def recorded(recording: Recording) -> Run:
    """The recording as a run, at its first rejection."""
    run = Run(
        key=f"run-{next(_keys)}",
        trace=recording.trace,
        pair_id=recording.trace.header.pair or EMBEDDED,
        prompt=recording.trace.header.prompt or "",
        settings=dict(recording.settings),
        length=recording.trace.header.max_new_tokens or len(recording.trace.text_ids),
        recording=recording.name,
    )
    return replace(run, event=Timeline(run.trace).first_rejection())


def _fresh(wanted: Wanted) -> Run:
    header = Header(pair=wanted.pair_id, prompt=wanted.prompt, max_new_tokens=wanted.length)
    return Run(
        key=f"run-{next(_keys)}",
        trace=Trace(header),
        pair_id=wanted.pair_id,
        prompt=wanted.prompt,
        settings=wanted.settings,
        length=wanted.length,
        live_round=0,
    )


def branched(run: Run, wanted: Wanted) -> Run:
    """Go on from the rounds that are complete at the cursor, with other settings."""
    complete = rounds_complete(run)
    trace = lengthened(run.trace.cut(complete), wanted.length)
    timeline = Timeline(trace)
    limits = {run.length, wanted.length}
    short = any(min(limits) - written <= round_gamma for written, round_gamma in _room(trace))
    return Run(
        key=run.key if complete == len(run.trace.rounds) else f"run-{next(_keys)}",
        trace=trace,
        pair_id=run.pair_id,
        prompt=run.prompt,
        settings=wanted.settings,
        length=wanted.length,
        base=run.recording or run.base,
        live_round=complete if run.live_round is None else min(run.live_round, complete),
        stretched=bool(complete) and (run.stretched or (len(limits) > 1 and short)),
        event=timeline.events[-1] if len(timeline) else None,
    )


def _room(trace: Trace) -> Iterator[tuple[int, int]]:
    """Of every round, how many tokens were written before it and how many drafts it was to have."""
    written = 0
    for round_ in trace.rounds:
        yield written, int((round_.settings or {}).get("gamma", len(round_.drafts)))
        written += len(round_.emitted)


def _turned(run: Run, wanted: Wanted) -> Run:
    """The run as the controls want it: from the cursor on, or from the start where prompt or pair are others."""
    return branched(run, wanted) if same_text(run, wanted) else _fresh(wanted)


def same_text(run: Run, wanted: Wanted) -> bool:
    """Whether the text so far can be kept: the same prompt, read by the same pair."""
    # Until an own text is written there is nothing to turn to.
    return not run.fixed and wanted.prompt in (run.prompt, "") and run.pair_id == wanted.pair_id


def pair_id() -> str:
    """The pair that this page needs next."""
    now = state()
    return (now.ahead or now.run).pair_id


def changes(run: Run, wanted: Wanted) -> list[str]:
    """What the controls want otherwise, in words: "gamma 6", "T = 0.7"."""
    said = [words.CHANGED["pair"]] if run.pair_id != wanted.pair_id else []
    said += [words.CHANGED["prompt"]] if wanted.prompt not in (run.prompt, "") else []
    other = {name: value for name, value in wanted.settings.items() if run.settings.get(name, value) != value}
    if wanted.settings["rule"] == "greedy":  # which is temperature 0: nothing to add to the rule's name
        other = {name: value for name, value in other.items() if name not in ("temperature", "drafter_temperature")}
    if wanted.settings["drafter_temperature"] == wanted.settings["temperature"] and "temperature" in other:
        other.pop("drafter_temperature", None)
    other |= {"length": wanted.length} if run.length != wanted.length else {}
    for name, value in other.items():
        written = {"rule": words.RULES, "drafter": words.DRAFTERS}.get(name, {}).get(value, value)
        said.append(words.CHANGED.get(name, "{name} {value}").format(name=name, value=written))
    return said


def origin(run: Run) -> list[str]:
    """Where the run's numbers come from, a badge each: what was recorded before it went live, then what was not."""
    before = run.recording or (run.base if run.live_round else None)
    if before is None:
        return [words.STATUS["measured"]]
    source = words.STATUS["file" if before == FILE else "recorded"]
    if run.recording is not None:
        return [source]
    token = len(run.trace.cut(run.live_round or 0).text_ids)
    until = words.STATUS["until"].format(source=source, token=token)
    return [until, words.STATUS["onwards"]] if len(run.trace.rounds) > (run.live_round or 0) else [until]


def rounds_complete(run: Run) -> int:
    """How many rounds are over at the cursor."""
    if run.event is None:
        return 0
    return run.event.round + events.closed(run.trace.rounds[run.event.round], run.event)


def view(run: Run, *, story: bool) -> View:
    """The run laid out; kept until the trace changes."""
    kept = state().views.get(story)
    if kept is None or kept.trace is not run.trace:
        timeline, texts = Timeline(run.trace, story=story), Texts.of(run.trace)
        kept = state().views[story] = View(run.trace, timeline, texts, strip.layout(timeline, texts))
    return kept


def focus(run: Run) -> tuple[Round, int | None] | None:
    """The round and the draft (None: the closing token) that coin and place are about."""
    if run.event is None or not run.trace.rounds:
        return None
    number, place = run.picked if run.picked is not None else (run.event.round, run.event.place)
    round_ = run.trace.rounds[number]
    if place is not None:
        return round_, place
    if run.picked is None and run.event.kind == "read":
        return round_, 0
    kept = round_.kept  # a correction stands at the place of the draft that it replaces
    return round_, kept if kept < len(round_.drafts) else None


# --- moving -----------------------------------------------------------------------------------------------------------


def move(index: int, *, story: bool) -> None:
    """Put the cursor on the event with this index, clipped to what there is."""
    now = state()
    timeline = view(now.run, story=story).timeline
    if len(timeline):
        event = timeline.events[min(max(index, 0), len(timeline) - 1)]
        now.run = replace(now.run, event=event, picked=None)
    now.message, now.notice, now.goal, now.ahead, now.bound = "", "", None, None, ""


def moment(*, story: bool) -> int:
    """Index of the event under the cursor."""
    run = state().run
    return view(run, story=story).timeline.index(run.event) if run.event is not None else 0


def step(goal: Goal, *, story: bool) -> bool:
    """One event on, or to the end of the round; at the end of what there is, ask for a round and say so by True."""
    now = state()
    timeline = view(now.run, story=story).timeline
    here = moment(story=story)
    there = here + 1 if goal == "step" else timeline.next_closing(here)
    waits = now.ahead is not None  # a live run that is about to come: a press in the meantime is meant for it
    if len(timeline) and there is not None and there < len(timeline) and not waits:
        move(there, story=story)
        return False
    if now.run.fixed and now.ahead is None:
        now.message = now.run.fixed
        return False
    _ask(goal, now.ahead)
    return True


def play(*, story: bool) -> None:
    """One tick: one event on; a recording stops at its end, a live run asks for another round."""
    now = state()
    if now.run.recording is not None and moment(story=story) + 1 >= len(view(now.run, story=story).timeline):
        now.playing = False
    elif now.goal is None:
        step("step", story=story)


def reach(*, story: bool) -> None:
    """One tick towards the moment that a link asked for: another round, or the cursor on it as soon as it is there."""
    now = state()
    if not now.bound or now.goal is not None:
        return
    run, at = now.run, now.bound
    timeline = view(run, story=story).timeline
    event = events.find(timeline, at)
    if event is not None:
        move(timeline.index(event), story=story)
    elif run.trace.finish is not None or len(run.trace.rounds) >= int(at.partition(".")[0]):
        now.bound, now.notice = "", _not_there(at, run)
    else:
        _ask("round", None)
        now.bound = at


def pick(picked: object) -> None:
    """Pin a place that the visitor chose; anything that is not there lets go."""
    now = state()
    now.run = replace(now.run, picked=_valid_pick(now.run, picked))


def _valid_pick(run: Run, picked: object) -> tuple[int, int | None] | None:
    match picked:
        case [int(number), int(place)] if run.event is not None and 0 <= number <= run.event.round:
            round_ = run.trace.rounds[number]
            if 0 <= place < events.drafted(round_, run.event):
                return number, place
            if place == -1 and round_.closing is not None and events.closed(round_, run.event):
                return number, None
    return None


# --- from recorded to live --------------------------------------------------------------------------------------------


def go_live(wanted: Wanted) -> None:
    """Go on from the cursor with these settings, or start over where the text is another, with the next round."""
    _ask("step", _turned(state().run, wanted))


def start_live(wanted: Wanted) -> None:
    """A new run with these settings, with its first round."""
    _ask("step", _fresh(replace(wanted, prompt=wanted.prompt or state().run.prompt)))


def _ask(goal: Goal, ahead: Run | None) -> None:
    """Have a model do ``goal`` for the run ``ahead``, or for the one on the screen."""
    now = state()
    now.goal, now.ahead, now.message, now.bound = goal, ahead, "", ""
    now.request += 1


def open_recording(name: str) -> None:
    """Show a recording and set the controls to it; to be called from a callback."""
    found = recordings.recording(name)
    if found is not None:
        _show(recorded(found))


def open_file(trace: Trace, notice: str = "") -> None:
    """Show a run from a file, and ``notice``, and set the controls to it; to be called from a callback."""
    header = trace.header
    on_offer = header.pair in controls.offered()
    reason = "" if on_offer else words.FILES["no_pair"].format(pair=words.literal(visible(header.pair or "–")[:60]))
    if not header.prompt_ids or not header.prompt:
        reason = words.FILES["no_prompt"]
    run = Run(
        key=f"run-{next(_keys)}",
        trace=trace,
        pair_id=header.pair if header.pair is not None and on_offer else EMBEDDED,
        prompt=header.prompt or "",
        settings=controls.fitting(trace.rounds[0].settings if trace.rounds else None),
        length=controls.length_of(trace),
        recording=FILE,
        fixed=reason,
    )
    timeline = Timeline(trace)
    opening = timeline.first_rejection() or (timeline.events[0] if len(timeline) else None)
    _show(replace(run, event=opening))
    state().notice = notice


def keep() -> None:
    """Set the controls back to the run on the screen; to be called from a callback."""
    run = state().run
    controls.show(run.pair_id, run.settings, run.prompt, run.length)


def _show(run: Run) -> None:
    controls.show(run.pair_id, run.settings, run.prompt, run.length)
    now = state()
    now.run, now.goal, now.ahead, now.playing, now.bound = run, None, None, False, ""
    now.message, now.notice = "", ""


def twin_fits(run: Run) -> bool:
    """Whether one target-alone run can be set beside this one: what shapes the target's text never changed."""
    laws = {tuple((round_.settings or {}).get(name) for name in SHAPING) for round_ in run.trace.rounds}
    return len(laws) == 1
