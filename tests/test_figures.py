"""Figures lay out what the records hold: nothing is lost, nothing is known too early, nothing is interpreted."""

from __future__ import annotations

import dataclasses
import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specviz.figures import coin, events, numbers, place, sentences
from specviz.figures.events import Event, Timeline
from specviz.figures.text import Reader, Texts, token, visible
from specviz.trace import Closing, Draft, Header, Rest, Round, Row, Token, Trace
from tests.synthetic_traces import make_trace

RULES = ("speculative_sampling", "greedy", "gumbel_coupling", "token_match", "block_verification")


@pytest.fixture(scope="module", params=RULES)
def trace(request: pytest.FixtureRequest) -> Trace:
    return make_trace(request.param)


def moments(trace: Trace, *, story: bool = False) -> list[tuple[Round, Event]]:
    return [(trace.rounds[event.round], event) for event in Timeline(trace, story=story).events]


# --- numbers ----------------------------------------------------------------------------------------------------------


@given(st.floats(0, 1), st.floats(0, 1))
def test_two_numbers_that_differ_are_written_differently(one: float, other: float) -> None:
    written = numbers.told_apart(one, other)
    if abs(one - other) > 1e-9 and min(one, other) > 1e-4:
        assert written[0] != written[1]
    if one == other:
        assert written[0] == written[1]


@given(st.floats(0, 1))
def test_only_0_and_1_are_written_as_0_and_1(value: float) -> None:
    assert (numbers.probability(value) in ("0", "1")) == (value in (0.0, 1.0))


@given(st.floats(1e-4, 1 - 1e-4))
def test_a_chance_is_never_written_as_none_or_all(chance: float) -> None:
    hits, out_of = numbers.odds(chance).replace(",", "").split(" in ")
    assert 0 < float(hits) < float(out_of)


def test_odds_are_told_apart_from_the_coin_beside_them() -> None:
    assert numbers.odds(0.24) == "24 in 100"
    assert numbers.times(0.24) == "24 times in 100"
    assert numbers.times(0.01) == "once in 100"
    assert numbers.odds(0.2385, beside=0.2402) == "238 in 1,000"


# --- text -------------------------------------------------------------------------------------------------------------

KINDS = ("", "strong", "token", "strong token")
HOSTILE = [
    b"<script>alert(1)</script>",
    b"<iframe srcdoc='x'>",
    b"![](x)",
    b"$x$ *y* :red[z]",
    "\u202ereversed".encode(),
    "a\u200bb".encode(),
    b"\xf0\x9f",
    b"\xff\xfe",
    "\ud7ff\ue000".encode(),
    b"\x1b[31m",
    b"",
    "e\u0301".encode(),
    "👩\u200d🚀".encode(),
]


def test_what_cannot_be_seen_is_made_visible() -> None:
    assert token(b" the") == "␣the"
    assert token(b"\n\n\t") == "⏎⏎⇥"
    assert token(b"\xf0\x9f") == "⟨F0 9F⟩"
    assert token(b"") == "⟨⟩"
    assert visible("\u202e") == "⟨U+202E⟩"


@pytest.mark.parametrize("raw", HOSTILE)
def test_no_token_is_invisible_or_turns_its_neighbours(raw: bytes) -> None:
    shown = token(raw)
    assert shown.strip()
    assert shown == "".join(c for c in shown if c not in "\u202e\u200b\x1b\n\t")


@pytest.mark.parametrize(
    ("tokens", "pieces"),
    [
        ([b"\xf0\x9f", b"\x98\x80"], ["", "😀"]),
        ([b"A", b" ", b"\xe4\xb8", b"\x96", b"?"], ["A", " ", "", "世", "?"]),
    ],
)
def test_a_character_belongs_to_the_token_that_completes_it(tokens: list[bytes], pieces: list[str]) -> None:
    reader = Reader()
    assert [reader.piece(raw) for raw in tokens] == pieces


def test_a_token_that_only_begins_a_character_shows_its_bytes() -> None:
    reader = Reader()
    assert [reader.label(raw) for raw in (b"ok \xf0\x9f", b"\x98", b"\x80")] == ["ok␣⟨F0 9F⟩", "⟨98⟩", "😀"]


def test_bytes_that_turn_out_to_begin_nothing_are_shown_once() -> None:
    reader = Reader()
    assert [reader.label(raw) for raw in (b"\xf0\x9f", b"A")] == ["⟨F0 9F⟩", "A"]


@given(st.text(max_size=12), st.lists(st.integers(1, 3), max_size=12))
def test_the_pieces_of_a_text_are_the_text(text: str, lengths: list[int]) -> None:
    raw, reader, start, read = text.encode(), Reader(), 0, ""
    for length in [*lengths, len(raw)]:
        read += reader.piece(raw[start : start + length])
        start += length
    assert read == text


# --- the place --------------------------------------------------------------------------------------------------------


def places(trace: Trace) -> list[tuple[Row, place.Place]]:
    found = []
    for round_, event in moments(trace):
        if event.kind == "closing":
            for index, draft in enumerate(round_.drafts):
                assert draft.row is not None
                found.append((draft.row, place.layout(trace, round_, event, Texts.of(trace), selected=index)))
    return found


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule != "greedy"])
def test_the_bars_add_up_to_alpha_and_tv(rule: str) -> None:
    for row, panel in places(make_trace(rule)):
        bars = [*panel.bars, *([panel.others] if panel.others else [])]
        assert row.tv is not None
        assert sum(bar.both for bar in bars) == pytest.approx(1 - row.tv, abs=1e-9)
        assert sum(bar.only_target for bar in bars) == pytest.approx(row.tv, abs=1e-9)
        assert sum(bar.only_drafter for bar in bars) == pytest.approx(row.tv, abs=1e-9)
        assert panel.together is not None
        assert panel.together.both + panel.together.only_target == pytest.approx(1, abs=1e-9)


def test_the_others_row_has_tails_of_both_signs_without_losing_mass() -> None:
    """Tokens that are not listed may be wanted more by either model: their overlap is not the smaller of their sums."""
    tokens = tuple(Token(id=i, bytes="61", p=0.05, q=0.05) for i in range(10))
    rest = Rest(count=4, p=0.5, q=0.5, overlap=0.1)
    row = Row(position=1, tokens=tokens, rest=rest, tv=0.4)
    draft = Draft(id=0, p=0.05, q=0.05, accept_prob=1.0, coin=0.5, fate="kept", row=row)
    round_ = Round(0, 1, {"rule": "speculative_sampling"}, (draft,), Closing(1, "bonus"), (0, 1))
    trace = Trace(Header(prompt_ids=(5,)), (round_,))
    panel = place.layout(trace, round_, Event(0, "closing"), Texts({}), selected=0)
    assert panel.others is not None
    assert panel.others.only_target == panel.others.only_drafter == pytest.approx(0.4)
    assert panel.together is not None
    assert panel.together.both == pytest.approx(0.6, abs=1e-9)


def drafted(laws: list[tuple[float, float]]) -> place.Place:
    """The place of a rejected draft where these (p, q) are the whole vocabulary."""
    tokens = tuple(Token(id=i, bytes="61", p=p, q=q) for i, (p, q) in enumerate(laws))
    tv = 1 - sum(min(law) for law in laws)
    row = Row(position=1, tokens=tokens, rest=Rest(count=0, p=0.0, q=0.0, overlap=0.0), tv=tv)
    draft = Draft(id=0, p=laws[0][0], q=laws[0][1], accept_prob=0.0, coin=0.5, fate="rejected", row=row)
    round_ = Round(0, 1, {"rule": "speculative_sampling"}, (draft,), Closing(1, "correction"), (1,))
    trace = Trace(Header(prompt_ids=(5,)), (round_,))
    return place.layout(trace, round_, Event(0, "closing"), Texts({}), selected=0)


def test_the_rounding_of_a_sum_is_not_written() -> None:
    together = drafted([(0.3, 1.0), (0.7 - 1e-14, 0.0)]).table.rows[-1]
    assert together[:4] == ("all together", "1", "1", "0.30")
    close = drafted([(0.3, 1.0), (0.7 - 1e-9, 0.0)]).table.rows[-1]
    assert close[1] != "1"


def test_laws_with_nothing_in_common_share_exactly_nothing() -> None:
    panel = drafted([(0.0, 1.0), (0.6, 0.0), (0.4, 0.0)])
    assert panel.together is not None
    assert (panel.together.both, panel.together.only_target, panel.together.only_drafter) == (0.0, 1.0, 1.0)
    assert panel.shared == "0"
    assert panel.note == place.NOTES["disjoint"]


def test_every_formula_of_the_place_stands_on_a_line_of_its_own() -> None:
    formula = drafted([(0.3, 1.0), (0.7, 0.0)]).formula
    assert formula is not None
    assert formula.splitlines() == ["α = Σ min(p, q) = 0.30", "TV = ½ Σ |p − q| = 0.70", "α + TV = 1"]


def test_green_and_purple_are_p_and_green_and_orange_are_q() -> None:
    for _, panel in places(make_trace()):
        for bar in (*panel.bars, *([panel.others] if panel.others else [])):
            assert bar.both + bar.only_target == pytest.approx(bar.p, abs=1e-12)
            assert bar.both + bar.only_drafter == pytest.approx(bar.q, abs=1e-12)


def test_the_draft_the_correction_and_both_winners_always_have_a_row() -> None:
    trace = make_trace(tokens=96)
    texts = Texts.of(trace)
    for round_, event in moments(trace):
        if event.kind != "closing":
            continue
        for index, draft in enumerate(round_.drafts):
            panel = place.layout(trace, round_, event, texts, selected=index)
            labels = {bar.label for bar in panel.bars}
            assert draft.row is not None
            must = {
                draft.id,
                max(draft.row.tokens, key=lambda t: t.p or 0).id,
                max(draft.row.tokens, key=lambda t: t.q or 0).id,
            }
            if draft.fate == "rejected":
                assert round_.closing is not None
                must.add(round_.closing.id)
            assert {texts(i) for i in must} <= labels
            assert len(panel.bars) <= place.ROWS + 4


def test_nothing_of_p_is_shown_before_the_read(trace: Trace) -> None:
    texts = Texts.of(trace)
    for round_, event in moments(trace):
        if event.kind == "draft":
            panel = place.layout(trace, round_, event, texts, selected=event.place)
            assert panel.mode == "waiting"
            assert {bar.p for bar in panel.bars} == {None}
            assert panel.together is None


def test_the_correction_is_not_marked_before_it_is_drawn() -> None:
    trace = make_trace()
    event = Timeline(trace).first_rejection()
    assert event is not None
    round_ = trace.rounds[event.round]
    panel = place.layout(trace, round_, event, Texts.of(trace), selected=event.place)
    assert not any(bar.sign == "correction" for bar in panel.bars)
    later = place.layout(trace, round_, Event(event.round, "closing"), Texts.of(trace), selected=event.place)
    assert any(bar.sign == "correction" for bar in later.bars)


def test_greedy_shows_the_law_that_was_used_and_the_other_one_pale() -> None:
    """The verdict never contradicts the picture: p and q are 0 or 1, the logits are only drawn."""
    for _, panel in places(make_trace("greedy")):
        assert panel.mode == "pale"
        assert {bar.p for bar in panel.bars} <= {0.0, 1.0}
        assert sum(bar.p or 0 for bar in panel.bars) == 1
        assert sum(bar.q or 0 for bar in panel.bars) == 1
        assert panel.together is None


def test_a_bonus_is_drawn_from_the_target_alone() -> None:
    trace = make_trace()
    round_ = next(r for r in trace.rounds if r.closing is not None and r.closing.kind == "bonus")
    panel = place.layout(trace, round_, Event(round_.index, "closing"), Texts.of(trace), selected=None)
    assert panel.mode == "alone"
    assert any(bar.sign == "bonus" for bar in panel.bars)


def test_a_record_without_laws_says_so_instead_of_an_empty_chart() -> None:
    draft = Draft(id=1, fate="rejected")
    round_ = Round(0, 1, {"rule": "speculative_sampling"}, (draft,), Closing(2, "correction"), (2,))
    trace = Trace(Header(prompt_ids=(5,)), (round_,))
    for event in events.of_round(round_):
        panel = place.layout(trace, round_, event, Texts({}), selected=0)
        assert panel.note
        assert panel.bars == ()
        assert coin.layout(round_, event, Texts({}), selected=0).lines
        assert sentences.of_event(round_, event, Texts({}))


def test_before_the_target_reads_the_table_does_not_know_what_is_shared() -> None:
    trace = make_trace()
    round_, event = next((r, e) for r, e in moments(trace) if e.kind == "draft")
    table = place.layout(trace, round_, event, Texts.of(trace), selected=0).table
    assert all(row[3:6] == ("–", "–", "–") for row in table.rows)


# --- hostile text -----------------------------------------------------------------------------------------------------


def test_hostile_tokens_pass_through_every_figure_as_plain_text() -> None:
    trace = make_trace()
    texts = Texts({i: HOSTILE[i % len(HOSTILE)] for i in range(2000)})
    for round_, event in itertools.islice(moments(trace), 40):
        spans = sentences.of_event(round_, event, texts)
        assert all(isinstance(text, str) and kind in KINDS for text, kind in spans)
        focus = 0 if round_.drafts else None
        for layout in (
            coin.layout(round_, event, texts, selected=focus),
            place.layout(trace, round_, event, texts, selected=focus),
        ):
            json.dumps(dataclasses.asdict(layout)).encode()
