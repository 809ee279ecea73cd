"""The events of a run: what is known when, and the addresses that a link names them by."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specviz.figures import events
from specviz.figures.events import Event, Timeline
from specviz.trace import Closing, Draft, Header, Round, Row, Trace
from tests.synthetic_traces import make_trace

RULES = ("speculative_sampling", "greedy", "gumbel_coupling", "token_match", "block_verification")
RUN = make_trace(tokens=24)


@pytest.fixture(scope="module", params=RULES)
def trace(request: pytest.FixtureRequest) -> Trace:
    return make_trace(request.param)


def moments(trace: Trace, *, story: bool = False) -> list[tuple[Round, Event]]:
    return [(trace.rounds[event.round], event) for event in Timeline(trace, story=story).events]


def rejection(index: int = 0, position: int = 1, fate: Any = "rejected") -> Round:
    draft = Draft(id=1, p=0.1, q=0.4, accept_prob=0.25, coin=0.5, passed=False, fate=fate, row=Row(tv=0.5))
    return Round(index, position, {}, (draft,), Closing(2, "correction"), (2,))


# --- the order --------------------------------------------------------------------------------------------------------


def test_a_round_is_drafts_then_the_read_then_verdicts_then_the_closing_token() -> None:
    round_ = next(r for r in make_trace().rounds if r.kept == 2 and len(r.drafts) == 4)
    kinds = [(event.kind, event.place) for event in events.of_round(round_)]
    drafts = [("draft", place) for place in range(4)]
    assert kinds == [*drafts, ("read", None), *(("verdict", place) for place in range(3)), ("closing", None)]


def test_block_verification_gives_one_verdict_about_all_drafts() -> None:
    for round_ in make_trace("block_verification").rounds:
        verdicts = [event for event in events.of_round(round_) if event.kind == "verdict"]
        assert len(verdicts) == bool(round_.drafts)
        assert all(events.settled(round_, verdict) for verdict in verdicts)


def test_under_story_the_drafts_are_one_event(trace: Trace) -> None:
    for round_ in trace.rounds:
        told = [event.kind for event in events.of_round(round_, story=True)]
        assert told.count("draft") == bool(round_.drafts)


def test_plain_decoding_is_one_event_a_token() -> None:
    trace = make_trace(gamma=0, tokens=5)
    assert [event.kind for event in Timeline(trace).events] == ["closing"] * 5


# --- what is known ----------------------------------------------------------------------------------------------------


def test_no_fate_is_known_before_its_verdict(trace: Trace) -> None:
    for round_, event in moments(trace):
        for index in range(len(round_.drafts)):
            if event.kind in ("draft", "read"):
                assert events.standing(round_, index, event) == "waiting"
            if events.settled(round_, event):
                assert events.standing(round_, index, event) == round_.drafts[index].fate


def test_drafts_behind_a_kept_stop_token_are_never_judged() -> None:
    trace = make_trace(may_stop=True, seed=7)
    last = trace.rounds[-1]
    assert last.finish == "stop"
    assert last.closing is None
    *_, end = events.of_round(last)
    assert end.kind == "verdict"
    assert events.closed(last, end)
    assert {events.standing(last, index, end) for index in range(len(last.judged), len(last.drafts))} <= {"unjudged"}


# --- moving -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("story", [False, True])
def test_an_event_keeps_its_place_when_the_telling_changes(trace: Trace, story: bool) -> None:
    told, other = Timeline(trace, story=story), Timeline(trace, story=not story)
    for event in told.events:
        there = other.events[other.index(event)]
        assert there.round == event.round
        assert events.KINDS.index(there.kind) >= events.KINDS.index(event.kind)
        assert told.events[told.index(event)] == event


def test_a_round_in_which_nothing_happened_has_a_place_too() -> None:
    empty = Round(1, 2, {}, (), None, ())
    timeline = Timeline(Trace(Header(prompt_ids=(5,)), (rejection(), empty)))
    assert timeline.index(Event(1, "closing")) == len(timeline) - 1


def test_the_end_of_a_round_is_its_closing_token() -> None:
    timeline = Timeline(make_trace())
    index = 0
    for round_ in timeline.trace.rounds:
        end = timeline.next_closing(index)
        assert end is not None
        assert timeline.events[end] == Event(round_.index, "closing")
        index = end
    assert timeline.next_closing(index) is None


# --- where the links lead ---------------------------------------------------------------------------------------------


def test_the_page_opens_where_a_draft_was_kept_and_another_rejected(trace: Trace) -> None:
    event = Timeline(trace).first_rejection()
    assert event is not None
    assert trace.rounds[event.round].judged[-1].fate == "rejected"
    before = [r for r in trace.rounds[: event.round] if any(d.fate == "rejected" for d in r.drafts)]
    assert sum(r.kept for r in trace.rounds[: event.round + 1]) > 0
    assert sum(r.kept for r in before) == 0


def test_a_run_that_keeps_nothing_opens_at_its_first_rejection() -> None:
    trace = Trace(Header(prompt_ids=(5,)), (rejection(),))
    assert Timeline(trace).first_rejection() == Event(0, "verdict", 0)


@pytest.mark.parametrize("story", [False, True])
def test_the_correction_shown_replaces_the_draft_whose_death_was_shown(trace: Trace, story: bool) -> None:
    timeline = Timeline(trace, story=story)
    died, replaced = timeline.first_rejection(), timeline.first_correction()
    assert died is not None
    assert replaced == Event(died.round, "closing")
    assert timeline.last() == timeline.events[-1]


def test_a_run_without_a_rejection_has_no_correction_and_one_without_rounds_no_end() -> None:
    plain, empty = Timeline(make_trace(gamma=0, tokens=4)), Timeline(Trace(Header(prompt_ids=(5,))))
    assert plain.first_rejection() is plain.first_correction() is None
    assert plain.last() == Event(3, "closing")
    assert empty.first_rejection() is empty.first_correction() is empty.last() is None


# --- addresses --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("story", [False, True])
def test_every_event_has_an_address_that_leads_back_to_it(trace: Trace, story: bool) -> None:
    timeline = Timeline(trace, story=story)
    addresses = [events.address(timeline, event) for event in timeline.events]
    assert len(set(addresses)) == len(timeline)
    assert [timeline.at(address) for address in addresses] == list(timeline.events)


def test_an_address_means_the_same_under_every_telling(trace: Trace) -> None:
    story, numbers = Timeline(trace, story=True), Timeline(trace)
    for event in story.events:
        assert events.address(story, event) == events.address(numbers, event)
    third = next(r for r in trace.rounds if len(r.drafts) == 4)
    assert story.at(f"{third.index + 1}.3") == numbers.at(f"{third.index + 1}.3") == Event(third.index, "draft", 2)


@given(st.integers(-3, 30), st.integers(-3, 30))
def test_an_address_outside_the_run_leads_nowhere(number: int, event: int) -> None:
    there = 1 <= number <= len(RUN.rounds) and 1 <= event <= len(list(events.of_round(RUN.rounds[number - 1])))
    found = events.find(Timeline(RUN), f"{number}.{event}")
    assert (found is not None) == there


@given(st.one_of(st.text(), st.from_regex(r"\s?[+-]?[0-9٣_]*[.,][0-9e]*\s?", fullmatch=True)))
def test_no_address_is_too_strange_to_be_refused(address: str) -> None:
    found = events.find(Timeline(RUN), address)
    assert found is None or events.address(Timeline(RUN), found) == address


def test_an_event_of_no_round_has_no_address() -> None:
    for stranger in (Event(99, "read"), Event(-1, "read"), Event(0, "draft", 9)):
        with pytest.raises(ValueError, match="not in list"):
            events.address(Timeline(RUN), stranger)


# --- names ------------------------------------------------------------------------------------------------------------


def test_an_event_is_named_by_its_round_and_what_happens() -> None:
    assert events.label(RUN.rounds[1], Event(1, "draft", 2)) == "round 2, draft 3 of 4"
    assert events.label(RUN.rounds[1], Event(1, "read")) == "round 2, the read"
    assert events.label(RUN.rounds[1], Event(1, "verdict", 0)) == "round 2, verdict 1"
    assert events.label(rejection(), Event(0, "closing")) == "round 1, correction"
