"""The twin: both texts are shown as they are, and a difference is called by its name."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specviz.figures import twin
from specviz.figures.sentences import plain
from specviz.figures.text import Texts, visible
from specviz.trace import Closing, Draft, Header, Rest, Round, Row, Token, Trace
from tests.synthetic_traces import make_trace

BYTES = {1: b" the", 2: b" town", 3: b" valley", 4: b"\xf0\x9f", 5: b"\x98\x80", 6: b"<script>", 7: "\u202ex".encode()}
TEXTS = Texts(BYTES)


def laws(*listed: Token, top: tuple[tuple[int, float | None], ...] = ((2, 5.0), (3, 4.0)), rest: float = 0.0) -> Row:
    return Row(position=1, tokens=listed, rest=Rest(count=9, p=rest), target_top2=top)


def logits(one: float, other: float) -> Row:
    """A row in which ␣town and ␣valley have these logits."""
    top = tuple(sorted(((2, one), (3, other)), key=lambda pair: -pair[1]))
    return laws(Token(2, target_logit=one, p=0.5), Token(3, target_logit=other, p=0.5), top=top)


def written(
    *ids: int, row: Row | None = None, draw: float | None = None, settings: Any = None, dtype: Any = None
) -> Trace:
    """A run that wrote these tokens, one a round; ``row`` and ``draw`` belong to the last one."""
    settings = {"rule": "greedy", "temperature": 0.0} | (settings or {})
    rounds = [
        Round(i, 1 + i, settings, (), Closing(token_id, "plain", draw if i + 1 == len(ids) else None, row), (token_id,))
        for i, token_id in enumerate(ids)
    ]
    return Trace(Header(prompt_ids=(9,), dtype=dtype), tuple(rounds))


# --- the texts --------------------------------------------------------------------------------------------------------


def test_a_twin_with_the_same_text_counts_the_reads_saved() -> None:
    trace, alone = make_trace("greedy"), make_trace("greedy", gamma=0)
    both = twin.layout(trace, alone, Texts.of(trace))
    assert (both.agrees, both.verdict) == (True, "same")
    assert plain(both.sentence) == f"Same 48 tokens, {len(trace.rounds)} reads instead of 48."
    assert both.common == b"".join(map(Texts.of(trace).raw, trace.text_ids)).decode()
    assert (both.ours, both.theirs, both.table.rows) == ((), (), ())


def test_a_text_is_unfinished_until_the_run_says_that_it_stopped() -> None:
    trace = written(1, 2)
    for finish in (None, "length", "context", "stop"):
        ended = Trace(trace.header, (trace.rounds[0], dataclasses.replace(trace.rounds[1], finish=finish)))
        assert twin.layout(ended, trace, TEXTS).unfinished == (finish != "stop")


@pytest.mark.parametrize("rule", ["speculative_sampling", "block_verification"])
def test_under_sampling_another_text_is_no_fault(rule: str) -> None:
    trace, alone = make_trace(rule), make_trace(rule, gamma=0, seed=8)
    both = twin.layout(trace, alone, Texts.of(trace))
    assert (both.agrees, both.verdict) == (True, "chances")
    assert plain(both.sentence).startswith("Another text, dealt from the same chances: ")
    assert "law" not in plain(both.sentence)
    assert both.table.rows == ()


@pytest.mark.parametrize("rule", ["greedy", "gumbel_coupling", "token_match"])
def test_rows_that_the_text_did_not_come_by_have_no_say_in_a_difference(rule: str) -> None:
    """They stand where a later round reads again, behind other tokens."""
    trace = make_trace(rule)
    texts, start = Texts.of(trace), len(trace.header.prompt_ids)
    bare = [dataclasses.replace(round_, after=None, after_id=None) for round_ in trace.rounds]
    assert bare != [*trace.rounds]
    for index, token_id in enumerate(trace.text_ids):
        parted = written(*trace.text_ids[:index], token_id + 1, settings=trace.rounds[0].settings)
        rounds = tuple(dataclasses.replace(one, position=start + one.index) for one in parted.rounds)
        other = Trace(trace.header, rounds)
        assert twin.layout(trace, other, texts) == twin.layout(Trace(trace.header, tuple(bare)), other, texts)


def test_under_sampling_the_same_text_is_luck() -> None:
    run = written(1, 2, settings={"rule": "speculative_sampling", "temperature": 1.0})
    both = twin.layout(run, written(1, 2), TEXTS)
    assert (both.agrees, both.verdict) == (True, "lucky")
    assert plain(both.sentence).startswith("Same 2 tokens, by luck")


def test_the_common_beginning_stands_once_and_the_first_token_that_differs_is_marked() -> None:
    both = twin.layout(written(1, 2, 1), written(1, 3, 1, 2), TEXTS)
    assert both.common == " the"
    assert both.ours == (("␣town", "strong token"), (" the", ""))
    assert both.theirs == (("␣valley", "strong token"), (" the", ""))


def test_the_twin_tells_nothing_that_the_run_has_not_come_to() -> None:
    both = twin.layout(written(1), written(1, 2, 3), TEXTS)
    assert both.verdict == "same"
    assert "town" not in json.dumps(dataclasses.asdict(both))


def test_a_character_that_both_began_and_ended_differently_is_shown_by_its_bytes() -> None:
    both = twin.layout(written(1, 4, 5), written(1, 4, 2), TEXTS)
    assert both.common == " the"
    assert both.ours == (("😀", "strong token"),)
    # The bytes that began a character are not lost where none came of them.
    assert both.theirs == (("⟨F0 9F⟩␣town", "strong token"),)
    alone = twin.layout(written(1, 4), written(1, 4), TEXTS)
    assert alone.common == " the⟨F0 9F⟩"


@given(
    st.lists(st.sampled_from(sorted(BYTES)), min_size=1, max_size=10), st.integers(0, 9), st.sampled_from(sorted(BYTES))
)
def test_beginning_and_end_together_are_the_text(ids: list[int], at: int, other: int) -> None:
    at %= len(ids)
    changed = [*ids[:at], other, *ids[at + 1 :]]
    both = twin.layout(written(*ids), written(*changed), TEXTS)
    raw = b"".join(BYTES[i] for i in ids)
    if ids == changed:
        assert both.verdict == "same"
        whole = raw.decode("utf-8", "surrogateescape")
        assert both.common.replace("⟩⟨", " ") == " ".join(map(visible, whole.split(" "))).replace("⟩⟨", " ")
    else:
        assert plain(both.sentence).count(str(at) + " token") == 1
        shown = both.common + plain(both.ours)
        words = [BYTES[i].decode().strip() for i in ids if i in (1, 2, 3, 6)]
        assert all(word in shown for word in words)
        assert "\u202e" not in shown


# --- the difference ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("lead", "called"), [(0.0, "near tie"), (1e-4, "near tie"), (0.5, "report")])
@pytest.mark.parametrize(
    "rule", ["greedy", "speculative_sampling", "token_match", "gumbel_coupling", "block_verification"]
)
def test_at_temperature_zero_the_logits_decide_what_a_near_tie_is(rule: str, lead: float, called: str) -> None:
    run = written(1, 2, row=logits(5.0 + lead, 5.0), settings={"rule": rule})
    both = twin.layout(run, written(1, 3, row=logits(5.0, 5.0 + lead)), TEXTS)
    assert both.verdict == called
    assert both.agrees == (called == "near tie")
    said = plain(both.sentence)
    assert "1 token" in said
    assert called in said
    assert f"{5 + lead:.4f} against" in said
    assert [row[:3] for row in both.table.rows] == [
        ("with the drafter", "␣town", "␣town"),
        ("the target alone", "␣valley", "␣valley" if lead else "␣town"),
    ]


def test_one_record_that_is_sure_makes_it_a_report() -> None:
    run = written(1, 2, row=logits(9.0, 5.0))
    assert twin.layout(run, written(1, 3, row=logits(5.0, 5.0001)), TEXTS).verdict == "report"


def test_a_token_that_is_none_of_the_two_largest_is_no_near_tie() -> None:
    """The two largest logits are close, but the run wrote a third token."""
    tokens = (Token(2, target_logit=5.0), Token(3, target_logit=5.0001), Token(1, target_logit=1.0))
    row = laws(*tokens, top=((3, 5.0001), (2, 5.0)))
    assert twin.layout(written(1, 1, row=row), written(1, 3, row=row), TEXTS).verdict == "report"


def test_a_coarse_type_has_coarse_ties() -> None:
    rows = logits(20.0, 19.75), logits(19.75, 20.0)
    for dtype, called in (("bfloat16", "near tie"), ("float32", "report"), (None, "report")):
        run = written(1, 2, row=rows[0], dtype=dtype)
        assert twin.layout(run, written(1, 3, row=rows[1], dtype=dtype), TEXTS).verdict == called


def test_without_logits_it_cannot_be_called_a_near_tie() -> None:
    both = twin.layout(written(1, 2), written(1, 3), TEXTS)
    assert both.verdict == "report"
    assert "not recorded" in plain(both.sentence)
    assert both.table.rows[0] == ("with the drafter", "␣town", "not recorded", "–", "not recorded", "–")


def test_the_row_is_that_of_the_round_that_wrote_the_token() -> None:
    """A draft that was never judged has a row at the same position, after another text."""
    wrong, right = logits(9.0, 1.0), logits(5.0, 5.0)
    drafts = (Draft(2, fate="rejected", row=logits(0.0, 0.0)), Draft(3, fate="unjudged", row=wrong))
    settings = {"rule": "greedy", "temperature": 0.0}
    rounds = (
        Round(0, 1, settings, drafts, Closing(1, "correction"), (1,)),
        Round(1, 2, settings, (Draft(2, fate="kept", row=right),), Closing(1, "bonus"), (2, 1)),
    )
    run = Trace(Header(prompt_ids=(9,)), rounds)
    assert twin.layout(run, written(1, 3, 1, row=right), TEXTS).verdict == "near tie"


@pytest.mark.parametrize(("behind", "called"), [(1e-5, "near tie"), (0.5, "report")])
def test_under_gumbel_coupling_the_race_decides_what_a_near_tie_is(behind: float, called: str) -> None:
    """The logits before any temperature are far apart: they do not matter."""
    settings = {"rule": "gumbel_coupling", "temperature": 1.0}

    def race(first: float, second: float) -> Row:
        tokens = Token(2, p=0.3, noise=1.0 + first), Token(3, p=0.6, noise=1.0 + second - math.log(2))
        return laws(*tokens, top=((1, 9.0), (2, 1.0)))

    run = written(1, 2, row=race(behind, 0.0), settings=settings)
    both = twin.layout(run, written(1, 3, row=race(0.0, behind), settings=settings), TEXTS)
    assert both.verdict == called
    assert "in the race one leads the other by" in plain(both.sentence)


def matched(p_town: float, p_between: float = 0.0, before: float = 0.3) -> Row:
    """A law over the ids in order: ␣the before, ␣town, something between, and ␣valley (which here has id 3)."""
    tokens = (Token(1, p=before), Token(2, p=p_town), Token(3, p=1 - before - p_town - p_between))
    return laws(*tokens, rest=p_between)


MATCH = {"rule": "token_match", "temperature": 1.0}


def test_under_token_match_a_draw_on_the_line_between_two_tokens_is_a_near_tie() -> None:
    """␣town ends at 0.3 + 0.2 = 0.5: rounding puts the draw 0.5 on either side."""
    run = written(1, 2, row=matched(0.2 + 1e-7), draw=0.5, settings=MATCH)
    both = twin.layout(run, written(1, 3, row=matched(0.2 - 1e-7), draw=0.5, settings=MATCH), TEXTS)
    assert both.verdict == "near tie"
    assert "the target’s own draw fell on ␣town with the drafter and on ␣valley alone" in plain(both.sentence)


@pytest.mark.parametrize(
    ("ours", "theirs", "draws"),
    [
        (matched(0.2), matched(0.2), (0.4, 0.4)),  # inside ␣town, not on its line
        (matched(0.2), matched(0.2), (0.5, 0.6)),  # two different draws
        (matched(0.2), matched(0.3), (0.5, 0.5)),  # two different laws
        (matched(0.2), matched(0.2), (None, None)),  # no draw recorded
        (matched(0.2), None, (0.5, 0.5)),  # no law recorded
    ],
)
def test_under_token_match_anything_else_is_reported(ours: Row, theirs: Row | None, draws: tuple[Any, Any]) -> None:
    run = written(1, 2, row=ours, draw=draws[0], settings=MATCH)
    both = twin.layout(run, written(1, 3, row=theirs, draw=draws[1], settings=MATCH), TEXTS)
    assert both.verdict == "report"
    assert "please report it" in plain(both.sentence)


def test_a_token_of_weight_between_the_two_rules_a_near_tie_out() -> None:
    tokens = (Token(1, p=0.3), Token(2, p=0.2), Token(4, p=0.2), Token(6, p=0.3))
    row = laws(*tokens)
    run = written(1, 2, row=row, draw=0.5, settings=MATCH)
    assert twin.layout(run, written(1, 6, row=row, draw=0.5, settings=MATCH), TEXTS).verdict == "report"
    assert twin.layout(run, written(1, 4, row=row, draw=0.5, settings=MATCH), TEXTS).verdict == "near tie"


def test_mass_that_is_not_listed_leaves_the_line_open_as_far_as_it_reaches() -> None:
    """0.1 is not listed and may lie before ␣town: its line is somewhere in 0.5 … 0.6."""
    for draw, called in ((0.55, "near tie"), (0.62, "report"), (0.45, "report")):
        row = matched(0.2, p_between=0.1)
        run = written(1, 2, row=row, draw=draw, settings=MATCH)
        assert twin.layout(run, written(1, 3, row=row, draw=draw, settings=MATCH), TEXTS).verdict == called


@pytest.mark.parametrize("rule", ["greedy", "gumbel_coupling", "token_match"])
def test_compare_says_what_the_layout_says(rule: str) -> None:
    trace, alone = make_trace(rule), make_trace(rule, gamma=0, seed=8)
    both = twin.layout(trace, alone, Texts.of(trace))
    assert twin.compare(trace, alone, Texts.of(trace)) == (both.agrees, both.sentence)


def test_hostile_text_is_shown_as_text() -> None:
    both = twin.layout(written(6, 7, 6), written(6, 6, 6), TEXTS)
    assert both.common == "<script>"
    assert both.ours == (("⟨U+202E⟩x", "strong token"), ("<script>", ""))
    json.dumps(dataclasses.asdict(both)).encode()
