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
from specviz.trace import Closing, Draft, Header, Round, Trace
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
    assert numbers.odds(0.2385, beside=0.2402) == "239 in 1,000"


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


# --- records that lack something --------------------------------------------------------------------------------------


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
