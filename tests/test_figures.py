"""Figures lay out what the records hold: nothing is lost, nothing is known too early, nothing is interpreted."""

from __future__ import annotations

import dataclasses
import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specviz.figures import coin, events, numbers, place, sentences, strip
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


# --- events -----------------------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("story", [False, True])
def test_an_event_keeps_its_place_when_the_telling_changes(trace: Trace, story: bool) -> None:
    told, other = Timeline(trace, story=story), Timeline(trace, story=not story)
    for event in told.events:
        there = other.events[other.index(event)]
        assert there.round == event.round
        assert events.KINDS.index(there.kind) >= events.KINDS.index(event.kind)
        assert told.events[told.index(event)] == event


def test_the_page_opens_where_a_draft_was_kept_and_another_rejected(trace: Trace) -> None:
    event = Timeline(trace).first_rejection()
    assert event is not None
    assert trace.rounds[event.round].judged[-1].fate == "rejected"
    before = [r for r in trace.rounds[: event.round] if any(d.fate == "rejected" for d in r.drafts)]
    assert sum(r.kept for r in trace.rounds[: event.round + 1]) > 0
    assert sum(r.kept for r in before) == 0


def test_a_run_that_keeps_nothing_opens_at_its_first_rejection() -> None:
    trace = Trace(Header(prompt_ids=(5,)), (judged(0.1, 0.4, 0.2, "rejected"),))
    assert Timeline(trace).first_rejection() == Event(0, "verdict", 0)
    assert Timeline(Trace(Header(prompt_ids=(5,)))).first_rejection() is None


def test_the_end_of_a_round_is_its_closing_token() -> None:
    timeline = Timeline(make_trace())
    index = 0
    for round_ in timeline.trace.rounds:
        end = timeline.next_closing(index)
        assert end is not None
        assert timeline.events[end] == Event(round_.index, "closing")
        index = end
    assert timeline.next_closing(index) is None


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


# --- sentences --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("story", [False, True])
def test_every_event_of_every_rule_has_a_sentence_that_names_its_token(trace: Trace, story: bool) -> None:
    texts = Texts.of(trace)
    for round_, event in moments(trace, story=story):
        said = sentences.plain(sentences.of_event(round_, event, texts, story=story, left=3))
        assert said.endswith((".", "!"))
        assert not set(said) & set("[]{}")
        if event.kind == "closing":
            assert round_.closing is not None
            assert texts(round_.closing.id) in said
        if event.kind == "draft" or (event.kind == "verdict" and not events.judges_at_once(round_)):
            assert texts(round_.drafts[event.place or 0].id) in said


def test_the_sentence_of_a_verdict_holds_the_records_numbers() -> None:
    for round_, event in moments(make_trace()):
        if event.kind != "verdict":
            continue
        draft = round_.drafts[event.place or 0]
        said = sentences.plain(sentences.of_event(round_, event, Texts.of(make_trace(tokens=4))))
        p, q = numbers.told_apart(draft.p, draft.q)
        assert f" {p}" in said
        assert f" {q}" in said
        assert draft.accept_prob is not None
        assert draft.coin is not None
        if draft.accept_prob >= 1:
            assert "for sure" in said
        else:
            assert f"The coin fell at {numbers.told_apart(draft.accept_prob, draft.coin)[1]}" in said
            assert ("stays:" in said) == (draft.coin < draft.accept_prob)


def test_marks_in_a_token_are_not_taken_for_emphasis() -> None:
    spans = sentences.say("coin.never", draft="[x]{y}", why="so")
    assert spans[:2] == (("[x]{y}", "strong token"), (" goes:", "strong"))


def judged(p: float, q: float, accept: float, fate: Any, **settings: Any) -> Round:
    draft = Draft(id=1, p=p, q=q, accept_prob=accept, coin=0.5, passed=fate == "kept", fate=fate, row=Row(tv=0.5))
    return Round(0, 1, {"rule": "speculative_sampling", **settings}, (draft,), Closing(2, "correction"), (2,))


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"top_p": 0.9}, "top-p rules it out"),
        ({"top_k": 5}, "top-k rules it out"),
        ({"top_k": 5, "top_p": 0.5}, "top-k and top-p rules it out"),
        ({"temperature": 0.0}, "at temperature 0"),
        ({}, "no chance at all"),
    ],
)
def test_a_draft_that_the_target_rules_out_says_what_rules_it_out(settings: dict[str, Any], why: str) -> None:
    round_ = judged(0.0, 0.4, 0.0, "rejected", **settings)
    assert why in sentences.plain(sentences.of_event(round_, Event(0, "verdict", 0), Texts({})))


def test_a_short_round_says_why_it_is_short() -> None:
    trace = make_trace(tokens=48)
    short = next(r for r in trace.rounds if 0 < len(r.drafts) < 4)
    left = 48 - (short.position - len(trace.header.prompt_ids))
    last = Event(short.index, "draft", len(short.drafts) - 1)
    said = sentences.plain(sentences.of_event(short, last, Texts.of(trace), left=left))
    assert f"{left} token" in said


def test_a_stop_token_that_was_kept_ends_the_text() -> None:
    trace = make_trace(may_stop=True, seed=7)
    round_, event = moments(trace)[-1]
    assert "It ends the text." in sentences.plain(sentences.of_event(round_, event, Texts.of(trace)))


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


# --- the strip --------------------------------------------------------------------------------------------------------


def test_the_top_line_reads_as_the_text(trace: Trace) -> None:
    texts = Texts.of(trace)
    rounds = [round_ for chunk in strip.layout(Timeline(trace), texts) for round_ in chunk["rounds"]]
    shown = [
        label
        for round_ in rounds
        for label in [d[0] for d in round_["drafts"] if d[1] == "kept"]
        + ([round_["closing"][0]] if round_["closing"] else [])
    ]
    assert shown == [texts(token_id) for token_id in trace.text_ids]


def test_every_token_appears_with_its_event_and_its_fate_with_its_verdict(trace: Trace) -> None:
    timeline = Timeline(trace)
    laid_out = [round_ for chunk in strip.layout(timeline, Texts.of(trace)) for round_ in chunk["rounds"]]
    for round_, shape in zip(trace.rounds, laid_out, strict=True):
        for index, (_, fate, born, known) in enumerate(shape["drafts"]):
            assert fate == round_.drafts[index].fate
            assert timeline.events[born] == Event(round_.index, "draft", index)
            assert events.standing(round_, index, timeline.events[known]) == fate
            assert events.standing(round_, index, timeline.events[known - 1]) == "waiting"


def test_the_layout_is_json_with_one_sentence_an_event(trace: Trace) -> None:
    timeline = Timeline(trace)
    chunks = json.loads(json.dumps(strip.layout(timeline, Texts.of(trace))))
    assert sum(len(round_["events"]) for chunk in chunks for round_ in chunk["rounds"]) == len(timeline)
    assert all(len(chunk["rounds"]) == strip.CHUNK for chunk in chunks[:-1])


def test_complete_chunks_stay_as_they_are_when_the_run_grows() -> None:
    trace = make_trace("token_match", tokens=60)
    grown, shorter = (
        strip.layout(Timeline(part), Texts.of(trace)) for part in (trace, trace.cut(len(trace.rounds) - 1))
    )
    assert len(shorter) > 1
    assert grown[: len(shorter) - 1] == shorter[:-1]


def test_a_character_cut_in_half_by_two_tokens_is_whole_in_the_strip() -> None:
    known = {7: b"\xf0\x9f", 8: b"\x98\x80", 9: b"x"}
    drafts = (Draft(id=7, fate="kept"), Draft(id=9, fate="rejected"))
    round_ = Round(0, 1, {}, drafts, Closing(8, "correction"), (7, 8))
    trace = Trace(Header(prompt_ids=(5,)), (round_,))
    (chunk,) = strip.layout(Timeline(trace), Texts(known))
    assert [d[0] for d in chunk["rounds"][0]["drafts"]] == ["⟨F0 9F⟩", "x"]
    assert chunk["rounds"][0]["closing"][0] == "😀"


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
