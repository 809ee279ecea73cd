"""Rounds whose drafter gave up: every panel says why there are fewer drafts than gamma, and only then."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specviz import trace as traces
from specviz.figures import coin, place, rounds, sentences, strip
from specviz.figures.events import Timeline
from specviz.figures.text import Texts
from specviz.trace import UNSAID, Pass, Round, Trace
from tests.decoding_runs import decode
from tests.table_models import TablePair, random_table

GAMMA = 3
UNSURE = "not sure enough"


@pytest.fixture(scope="module")
def trace() -> Trace:
    """Some rounds gave up after no, one or more drafts, and some did not."""
    made = decode(TablePair(random_table(0, 6), random_table(1, 6), 6), 60, gamma=GAMMA, seed=3, stop_below=0.4)
    given_up = {len(round_.drafts) for round_ in made.rounds if round_.gave_up}
    assert 0 in given_up
    assert len(given_up) > 1
    assert any(not round_.gave_up and len(round_.drafts) == GAMMA for round_ in made.rounds)
    return made


def test_a_round_gave_up_where_the_drafter_read_once_more_than_it_drafted(trace: Trace) -> None:
    reads = [sum(one.model == "drafter" and one.kind == "draft" for one in r.passes) for r in trace.rounds]
    assert [r.gave_up for r in trace.rounds] == [n > len(r.drafts) for n, r in zip(reads, trace.rounds, strict=True)]
    assert not Round(0, 1, passes=(Pass("drafter", "prefill"), Pass("target", "verify"))).gave_up
    assert traces.load(traces.dump(trace)) == trace


def test_every_panel_says_so_of_these_rounds_and_of_no_other(trace: Trace) -> None:
    texts, timeline = Texts.of(trace), Timeline(trace)
    for round_ in trace.rounds:
        moments = [event for event in timeline.events if event.round == round_.index]
        told = [sentences.plain(sentences.of_event(round_, event, texts, left=50)) for event in moments]
        assert any(UNSURE in sentence for sentence in told) == round_.gave_up, told
        panels = [coin.layout(round_, event, texts, trace=trace, selected=event.place) for event in moments]
        assert any(UNSURE in str(panel) for panel in panels) == round_.gave_up
        alone = not round_.drafts and round_.gave_up
        assert (UNSURE in sentences.plain(rounds.sentence(round_, texts))) == alone
        closed = place.layout(trace, round_, moments[-1], texts, selected=None)
        assert (UNSURE in sentences.plain(closed.note)) == alone


def test_the_reason_is_told_with_the_last_draft_and_not_before(trace: Trace) -> None:
    round_ = next(r for r in trace.rounds if r.gave_up and len(r.drafts) > 1)
    told = [
        sentences.plain(sentences.of_event(round_, event, Texts.of(trace), left=50))
        for event in Timeline(trace).events
        if event.round == round_.index and event.kind == "draft"
    ]
    assert [UNSURE in sentence for sentence in told] == [False] * (len(told) - 1) + [True]


def test_the_strip_and_the_table_hold_such_a_run(trace: Trace) -> None:
    texts = Texts.of(trace)
    assert strip.layout(Timeline(trace), texts)
    assert len(rounds.layout(trace.rounds, texts).table.rows) == len(trace.rounds)


def test_a_setting_that_an_older_record_does_not_name_did_not_change(trace: Trace) -> None:
    """A recorded run goes on live: its first rounds name fewer settings."""
    older = {name: value for name, value in (trace.rounds[0].settings or {}).items() if name not in UNSAID}
    first = replace(trace.rounds[0], settings=older)
    usual = replace(trace.rounds[1], settings=older | dict(UNSAID))
    assert rounds.varying([first, usual]) == ()
    assert rounds.changes([first, trace.rounds[1]]) == "drafter’s largest chance at least 0, then 0.4"
    assert replace(first, settings=None).said == {}
