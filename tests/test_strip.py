"""The strip's layout: the text reads along the top line, and every token says when it comes and when it is judged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specviz.figures import events, palette, sentences, strip
from specviz.figures.events import Event, Timeline
from specviz.figures.text import Texts
from specviz.trace import Closing, Draft, Header, Round, Trace
from specviz.ui import components, words
from tests.synthetic_traces import make_trace

RULES = ("speculative_sampling", "greedy", "gumbel_coupling", "token_match", "block_verification")


@pytest.fixture(scope="module", params=RULES)
def trace(request: pytest.FixtureRequest) -> Trace:
    return make_trace(request.param)


def shapes(trace: Trace, texts: Texts | None = None, *, story: bool = False) -> list[dict[str, object]]:
    chunks = strip.layout(Timeline(trace, story=story), texts or Texts.of(trace))
    return [round_ for chunk in chunks for round_ in chunk["rounds"]]


def top_line(round_: dict) -> list[str]:  # type: ignore[type-arg]
    return [d[0] for d in round_["drafts"] if d[1] == "kept"] + ([round_["closing"][0]] if round_["closing"] else [])


def test_the_top_line_reads_as_the_text(trace: Trace) -> None:
    texts = Texts.of(trace)
    shown = [label for round_ in shapes(trace) for label in top_line(round_)]
    assert shown == [texts(token_id) for token_id in trace.text_ids]


def test_a_round_knows_the_number_of_its_first_token(trace: Trace) -> None:
    written = 0
    for round_ in shapes(trace):
        assert round_["token"] == written + 1
        written += len(top_line(round_))


@pytest.mark.parametrize("story", [False, True])
def test_every_token_appears_with_its_event_and_its_fate_with_its_verdict(trace: Trace, story: bool) -> None:
    timeline = Timeline(trace, story=story)
    for round_, shape in zip(trace.rounds, shapes(trace, story=story), strict=True):
        for index, (_, fate, born, known) in enumerate(shape["drafts"]):  # type: ignore[misc,arg-type,var-annotated]
            assert fate == round_.drafts[index].fate
            appears = len(round_.drafts) - 1 if story else index
            assert timeline.events[born] == Event(round_.index, "draft", appears)
            assert events.standing(round_, index, timeline.events[known]) == fate
            assert events.standing(round_, index, timeline.events[known - 1]) == "waiting"


@pytest.mark.parametrize("story", [False, True])
def test_the_layout_is_json_with_one_sentence_an_event(trace: Trace, story: bool) -> None:
    timeline = Timeline(trace, story=story)
    chunks = json.loads(json.dumps(strip.layout(timeline, Texts.of(trace))))
    told = [event for chunk in chunks for round_ in chunk["rounds"] for event in round_["events"]]
    assert len(told) == len(timeline)
    assert all(label and sentence for label, sentence in told)
    assert all(len(chunk["rounds"]) == strip.CHUNK for chunk in chunks[:-1])


def test_complete_chunks_stay_as_they_are_when_the_run_grows() -> None:
    trace = make_trace("token_match", tokens=60)
    grown, shorter = (
        strip.layout(Timeline(part), Texts.of(trace)) for part in (trace, trace.cut(len(trace.rounds) - 1))
    )
    assert len(shorter) > 1
    assert grown[: len(shorter) - 1] == shorter[:-1]


def test_a_short_round_says_how_much_was_left() -> None:
    trace = make_trace(tokens=48)
    short = next(r for r in trace.rounds if 0 < len(r.drafts) < 4)
    left = 48 - (short.position - len(trace.header.prompt_ids))
    label, spoken = shapes(trace)[short.index]["events"][len(short.drafts) - 1]  # type: ignore[index]
    assert label.endswith(f"draft {len(short.drafts)} of {len(short.drafts)}")
    assert f": {left} tokens left." in sentences.plain(spoken)


def test_a_run_that_has_not_begun_is_one_empty_chunk_with_the_prompt() -> None:
    header = Header(prompt_ids=(5, 6), prompt_bytes=(b"A".hex(), "\u202eB\n".encode().hex()))
    (chunk,) = strip.layout(Timeline(Trace(header)), Texts.of(Trace(header)))
    assert chunk == {"rounds": [], "prompt": "A⟨U+202E⟩B⏎"}


# --- tokens that are no whole characters, or hide something -----------------------------------------------------------


def test_a_character_cut_in_half_by_two_tokens_is_whole_in_the_strip() -> None:
    known = {7: b"\xf0\x9f", 8: b"\x98\x80", 9: b"x"}
    drafts = (Draft(id=7, fate="kept"), Draft(id=9, fate="rejected"))
    round_ = Round(0, 1, {}, drafts, Closing(8, "correction"), (7, 8))
    (shape,) = shapes(Trace(Header(prompt_ids=(5,)), (round_,)), Texts(known))
    assert [d[0] for d in shape["drafts"]] == ["⟨F0 9F⟩", "x"]  # type: ignore[attr-defined]
    assert shape["closing"][0] == "😀"  # type: ignore[index]


def test_a_character_cut_in_half_by_two_rounds_is_whole_in_the_strip() -> None:
    known = {7: b"\xf0\x9f", 8: b"\x98\x80"}
    rounds = tuple(Round(i, 1 + i, {"gamma": 0}, (), Closing(7 + i, "plain"), (7 + i,)) for i in range(2))
    first, second = shapes(Trace(Header(prompt_ids=(5,)), rounds), Texts(known))
    assert (first["closing"][0], second["closing"][0]) == ("⟨F0 9F⟩", "😀")  # type: ignore[index]


def test_marks_that_turn_the_reading_direction_are_shown_not_obeyed() -> None:
    known = {7: "\u202eevil".encode(), 8: "שלום".encode()}
    rounds = tuple(Round(i, 1 + i, {"gamma": 0}, (), Closing(7 + i, "plain"), (7 + i,)) for i in range(2))
    first, second = shapes(Trace(Header(prompt_ids=(5,)), rounds), Texts(known))
    assert (first["closing"][0], second["closing"][0]) == ("⟨U+202E⟩evil", "שלום")  # type: ignore[index]


@given(st.lists(st.binary(max_size=5), min_size=1, max_size=8))
def test_no_bytes_make_a_token_that_cannot_be_seen(pieces: list[bytes]) -> None:
    rounds = tuple(Round(i, 1 + i, {"gamma": 0}, (), Closing(i, "plain"), (i,)) for i in range(len(pieces)))
    for shape in shapes(Trace(Header(prompt_ids=(5,)), rounds), Texts(dict(enumerate(pieces)))):
        label = shape["closing"][0]  # type: ignore[index]
        assert label.strip()
        label.encode()  # lone surrogates would not reach the browser
        assert label.isprintable() or set("\u200d\ufe0f") & set(label)


# --- the six looks ----------------------------------------------------------------------------------------------------


def test_every_look_has_a_meaning_in_words_and_a_style_of_its_own() -> None:
    style = (Path(components.__file__).parent / "strip.css").read_text(encoding="utf-8")
    assert set(words.STRIP["meanings"]) == set(palette.FATES)
    for fate, sign in palette.FATES.items():
        assert f".chip.{fate}" in style
        assert sign.glyph != sign.word
    assert f'content: "{palette.FATES["kept"].glyph}"' in style
