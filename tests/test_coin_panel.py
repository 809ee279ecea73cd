"""The coin panel: what it shows is the record, what would have been follows from it, nothing is known too early."""

from __future__ import annotations

import dataclasses
import json
import random
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specviz.decoding.decoder import REPEATS, Decoder
from specviz.decoding.settings import Settings
from specviz.figures import coin, events, numbers, sentences
from specviz.figures.coin import Coin
from specviz.figures.events import Event, Timeline
from specviz.figures.text import Texts
from specviz.noise import RoundNoise
from specviz.trace import Closing, Draft, Header, Pass, Round, Row, Trace
from tests.decoding_runs import begin, decode, tiny_pair
from tests.synthetic_traces import make_trace
from tests.table_models import TablePair, log_law, random_table

RULES = ("speculative_sampling", "greedy", "gumbel_coupling", "token_match", "block_verification")
COINS = ("speculative_sampling", "block_verification")
SEEDS = range(4)
HOSTILE = [b"<script>alert(1)</script>", b"![](x)", b"{coin}{draft}", b"[x]", "\u202e".encode(), b"\xf0\x9f", b""]


@pytest.fixture(scope="module", params=RULES)
def trace(request: pytest.FixtureRequest) -> Trace:
    return make_trace(request.param)


@cache
def decoded(rule: str, *, stop_ids: tuple[int, ...] = (), **settings: Any) -> Trace:
    """A run of the real decoder: its coins are those of :mod:`specviz.noise`."""
    pair = TablePair(random_table(1, 6), random_table(2, 6), vocab_size=6, stop_ids=stop_ids)
    return decode(pair, 60, rule=rule, **({"gamma": 4, "seed": 5} | settings))


def moments(trace: Trace, *, story: bool = False) -> list[tuple[Round, Event]]:
    return [(trace.rounds[event.round], event) for event in Timeline(trace, story=story).events]


def at_the_end(trace: Trace, **options: Any) -> list[tuple[Round, Coin]]:
    """Every round's panel at its last event."""
    texts = Texts.of(trace)
    ends = [(round_, [*events.of_round(round_)][-1]) for round_ in trace.rounds]
    return [(round_, coin.layout(round_, event, texts, trace=trace, **options)) for round_, event in ends]


def said(spans: sentences.Spans) -> str:
    return sentences.plain(spans)


# --- bars and pins ----------------------------------------------------------------------------------------------------


def test_a_coin_is_shown_only_when_it_has_fallen(trace: Trace) -> None:
    texts = Texts.of(trace)
    block = trace.rounds[0].settings["rule"] == "block_verification"  # type: ignore[index]
    for round_, event in moments(trace):
        for line, draft in zip(coin.layout(round_, event, texts, selected=0).lines, round_.drafts, strict=False):
            if line.standing == "waiting":
                assert line.coin is None
                assert line.other is None
                assert line.might is None
            if event.kind == "draft":
                assert line.stays is None
            if line.coin is not None and not block:
                assert (line.coin < (line.stays or 0)) == (draft.fate == "kept")


def test_a_pin_lies_inside_its_bar_exactly_where_the_draft_was_kept() -> None:
    for _, panel in at_the_end(make_trace(tokens=96)):
        for line in panel.lines:
            if line.coin is not None and line.stays is not None:
                assert (line.coin < line.stays) == (line.standing == "kept")


def test_under_block_verification_every_row_has_its_coin_and_the_last_inside_cuts() -> None:
    seen = set()
    for round_, panel in at_the_end(make_trace("block_verification", tokens=300)):
        inside = [line.place for line in panel.lines if line.coin is not None and line.coin < (line.stays or 0)]
        assert [line.coin for line in panel.lines] == [draft.coin for draft in round_.drafts]
        assert round_.kept == max(inside, default=0)
        for line in panel.lines:
            carried = line.standing == "kept" and line.place not in inside
            assert ("carried by place" in line.words) == carried
            assert ("the last inside" in line.words) == (line.place == round_.kept)
            if carried:
                assert line.words.endswith(f"carried by place {round_.kept}")
            # A bar of 1 has a coin too: the sentence of the round speaks of it.
            assert line.words.startswith("coin 0.")
            seen.add((line.standing, "full" in line.words, carried))
    assert {("kept", True, False), ("kept", False, True), ("rejected", False, False)} <= seen


def test_a_draft_that_the_text_ended_before_has_not_missed_its_bar() -> None:
    seen = 0
    for seed in range(12):
        for round_, panel in at_the_end(decoded("block_verification", stop_ids=(3,), seed=seed)):
            if round_.closing is None:
                behind = [line.words for line in panel.lines if line.standing == "unjudged"]
                assert set(behind) <= {coin.WORDS["over"]}
                seen += len(behind)
    assert seen


@pytest.mark.parametrize("rule", ["greedy", "gumbel_coupling", "token_match"])
def test_where_the_target_chooses_itself_its_choice_stands_beside_the_draft(rule: str) -> None:
    for _, panel in at_the_end(make_trace(rule)):
        assert panel.chosen or not panel.lines
        for line in panel.lines:
            if line.standing in ("kept", "rejected"):
                assert (line.other == line.draft) == (line.standing == "kept")
                assert line.words.startswith("same" if line.standing == "kept" else "differs")


def test_greedy_says_by_how_much_the_first_choice_leads() -> None:
    round_, panel = at_the_end(make_trace("greedy"))[0]
    row = round_.drafts[0].row
    assert row is not None
    assert row.target_top2 is not None
    (_, first), (_, second) = row.target_top2
    assert first is not None
    assert second is not None
    assert f"leads by {first - second:.2g} in logits" in panel.lines[0].words


# --- words ------------------------------------------------------------------------------------------------------------


def opening(rule: str) -> tuple[Round, Event, Draft, Trace]:
    trace = make_trace(rule)
    event = Timeline(trace).first_rejection()
    assert event is not None
    round_ = trace.rounds[event.round]
    return round_, event, round_.drafts[event.place or 0], trace


def test_the_two_chances_are_named_apart() -> None:
    round_, event, draft, trace = opening("speculative_sampling")
    note = coin.layout(round_, event, Texts.of(trace), selected=event.place).note
    assert draft.row is not None
    assert draft.row.expected_accept is not None
    assert draft.accept_prob is not None
    before = numbers.part(draft.row.expected_accept, beside=draft.accept_prob)
    this = numbers.part(draft.accept_prob, beside=draft.row.expected_accept)
    assert float(this) == pytest.approx(draft.accept_prob, rel=1 / 7)
    assert dict(note)[before] == dict(note)[this] == "strong"
    assert dict(note)[Texts.of(trace)(draft.id)] == "token"
    assert f"chance of {before} here (shared)" in said(note)


def test_gumbel_names_the_chance_of_agreement_beside_one_minus_tv() -> None:
    round_, event, draft, trace = opening("gumbel_coupling")
    note = said(coin.layout(round_, event, Texts.of(trace), selected=event.place).note)
    assert draft.row is not None
    assert draft.row.tv is not None
    assert draft.row.expected_accept is not None
    agree = numbers.part(draft.row.expected_accept, beside=1 - draft.row.tv)
    most = numbers.part(1 - draft.row.tv, beside=draft.row.expected_accept)
    assert float(agree) < float(most)
    assert f"a chance of {agree}; shared (1 − TV) is {most}." in note


def test_story_has_no_numbers_and_numbers_has_no_formula_of_its_own(trace: Trace) -> None:
    texts = Texts.of(trace)
    for round_, event in moments(trace):
        told = coin.layout(round_, event, texts, selected=0, trace=trace, story=True)
        words = [line.words for line in told.lines] + ([told.closing.words] if told.closing else [])
        assert not any(character.isdigit() for text in words for character in text.split("carried by")[0])
        assert not any("strong" in kind for _, kind in told.note)
        assert told.legend == ""


def test_no_words_have_an_unfilled_field(trace: Trace) -> None:
    texts = Texts.of(trace)
    for story in (False, True):
        for round_, event in moments(trace, story=story):
            for selected in (None, 0):
                panel = coin.layout(round_, event, texts, selected=selected, trace=trace, story=story, would_be=True)
                shown = dataclasses.asdict(dataclasses.replace(panel, said={}))
                assert "{" not in json.dumps(shown, ensure_ascii=False).replace('{"', "").replace("{}", "")


def test_a_correction_says_how_much_of_the_gaps_it_had() -> None:
    trace, seen = make_trace(tokens=96), 0
    for round_, panel in at_the_end(trace):
        if round_.closing is not None and round_.closing.kind == "correction":
            row = round_.drafts[round_.kept].row
            assert row is not None
            chosen = row.token(round_.closing.id)
            assert chosen is not None
            gap = numbers.probability((chosen.p or 0) - (chosen.q or 0))
            assert panel.closing is not None
            assert panel.closing.words == f"drawn from the gaps: {gap} of {numbers.probability(row.tv)}"
            assert panel.closing.place == round_.kept + 1
            seen += 1
    assert seen > 5


def test_a_correction_under_block_verification_names_the_gap_that_was_weighed() -> None:
    seen = 0
    for round_, panel in at_the_end(make_trace("block_verification", tokens=300)):
        if round_.closing is None or round_.closing.kind != "correction" or not round_.kept:
            continue
        row, weight = round_.drafts[round_.kept].row, round_.drafts[round_.kept - 1].weight
        assert row is not None
        assert weight is not None
        token = row.token(round_.closing.id)
        assert token is not None
        assert panel.closing is not None
        gap = numbers.probability(weight * (token.p or 0) - (token.q or 0))
        assert panel.closing.words.startswith(f"drawn from the gaps: {gap}")
        seen += 1
    assert seen > 3


# --- rounds that are different ----------------------------------------------------------------------------------------


def test_without_drafts_there_is_a_draw_and_no_coin() -> None:
    trace = make_trace(gamma=0, tokens=3)
    for round_, panel in at_the_end(trace):
        assert panel.title == f"The draw · round {round_.index + 1}"
        assert said(panel.note).startswith("No drafts: plain decoding, one read a token")
        assert panel.lines == ()
        assert panel.closing is not None


def test_a_budget_for_one_token_says_why_nothing_was_drafted() -> None:
    trace = decode(TablePair(log_law([0.25] * 4)), 1, gamma=4)
    assert said(at_the_end(trace)[0][1].note) == coin.HINTS["plain.last"]


def test_a_short_round_says_why_it_is_short() -> None:
    trace = make_trace(tokens=48)
    short = next(round_ for round_ in trace.rounds if 0 < len(round_.drafts) < 4)
    count = len(short.drafts)
    event = Event(short.index, "draft", count - 1)
    note = said(coin.layout(short, event, Texts.of(trace), trace=trace).note)
    assert f"Only {'one draft' if count == 1 else numbers.count(count) + ' drafts'}: {count + 1} tokens left" in note


def test_a_copy_stays_with_p_and_a_round_without_one_says_so() -> None:
    pair = TablePair(random_table(4, 4), vocab_size=4)
    trace = decode(pair, 60, prompt="abcabc", gamma=3, drafter="ngram")
    texts = Texts.of(trace)
    copied = nothing = 0
    for round_, panel in at_the_end(trace):
        if not round_.drafts:
            nothing += said(panel.note) == coin.HINTS["plain.copy"]
            continue
        event = [*events.of_round(round_)][-1]
        note = said(coin.layout(round_, event, texts, selected=0, trace=trace).note)
        assert f"so q = 1 and it stays with p: {numbers.part(round_.drafts[0].p or 0)}" in note
        assert round_.drafts[0].accept_prob == round_.drafts[0].p
        copied += 1
    assert copied
    unmatched = dataclasses.replace(trace.rounds[0], drafts=(), closing=Closing(1, "plain"), finish=None)
    assert said(coin.layout(unmatched, Event(0, "closing"), texts, trace=trace).note) == coin.HINTS["plain.copy"]


@pytest.mark.parametrize(("tv", "expected", "words"), [(0.0, 1.0, "no gap to refill"), (1.0, 0.0, "shared 0.00")])
def test_laws_that_are_the_same_or_share_nothing_say_so(tv: float, expected: float, words: str) -> None:
    draft = Draft(
        1, p=0.5, q=0.5, accept_prob=expected, coin=0.5, fate="kept", row=Row(tv=tv, expected_accept=expected)
    )
    round_ = Round(0, 1, {"rule": "speculative_sampling", "gamma": 1}, (draft,), Closing(2, "bonus"), (1, 2))
    assert words in said(coin.layout(round_, Event(0, "closing"), Texts({}), selected=0).note)


def test_a_record_without_chances_says_so_and_has_no_pin() -> None:
    drafts = (Draft(1, fate="kept"), Draft(2, fate="rejected"), Draft(3, fate="unjudged"))
    round_ = Round(0, 1, {"rule": "speculative_sampling"}, drafts, Closing(4, "correction"), (1, 4))
    for event in events.of_round(round_):
        panel = coin.layout(round_, event, Texts({}), selected=0, would_be=True)
        assert all(line.coin is None and line.might is None and line.stays is None for line in panel.lines)
        if event.kind in ("verdict", "closing"):
            assert "does not report p and q" in said(panel.note)
            assert panel.lines[0].words == coin.WORDS["unreported"]


# --- what would have been ---------------------------------------------------------------------------------------------


def fates(panel: Coin) -> list[str]:
    """The fates that follow from what the layout hands to the browser: the rules once more, without their code."""
    might = [line.might for line in panel.lines]
    passes = [m is not None and m.coin is not None and m.coin < m.chance for m in might]
    if panel.block:
        kept = max((place for place, passed in enumerate(passes, 1) if passed), default=0)
    else:
        kept = next((place for place, passed in enumerate(passes) if not passed), len(passes))
    over = next((place for place, m in enumerate(might[:kept], 1) if m is not None and m.ends), None)
    kept = over or kept
    return ["kept" if i < kept else "rejected" if i == kept and not over else "unjudged" for i in range(len(might))]


@pytest.mark.parametrize("rule", COINS)
@pytest.mark.parametrize("stop_ids", [(), (3,)])
def test_the_fates_follow_from_the_chances_and_coins_that_the_page_is_given(rule: str, stop_ids: tuple[int]) -> None:
    for seed in range(4):
        for _, panel in at_the_end(decoded(rule, stop_ids=stop_ids, seed=seed), would_be=True):
            assert fates(panel) == [line.standing for line in panel.lines]


@pytest.mark.parametrize("rule", COINS)
def test_coins_that_would_have_fallen_are_those_of_the_noise_and_equal_the_recorded_ones(rule: str) -> None:
    unjudged = 0
    for round_, panel in at_the_end(decoded(rule), would_be=True):
        noise = RoundNoise(5, round_.position, by_round=rule == "block_verification")
        made = noise.accept(len(round_.drafts)).tolist()
        assert [line.might.coin for line in panel.lines if line.might] == made
        for line, draft, own in zip(panel.lines, round_.drafts, made, strict=True):
            if draft.coin is not None:
                assert draft.coin == own
            else:
                assert line.coin is None
                unjudged += 1
    assert unjudged or rule == "block_verification"


def test_coins_of_another_engine_are_not_made_up() -> None:
    """The synthetic runs throw coins of a generator of their own."""
    for round_, panel in at_the_end(make_trace(), would_be=True):
        assert [line.might.coin for line in panel.lines if line.might] == [draft.coin for draft in round_.drafts]


def test_coins_are_not_worked_out_before_their_round_is_settled_nor_unasked() -> None:
    trace = decoded("speculative_sampling")
    for round_, event in moments(trace):
        for would_be in (False, True):
            panel = coin.layout(round_, event, Texts.of(trace), trace=trace, would_be=would_be)
            for line, draft in zip(panel.lines, round_.drafts, strict=False):
                if not events.settled(round_, event) and draft.coin is None:
                    assert line.might is None
                if not would_be and line.might is not None:
                    assert line.might.coin == draft.coin


def test_a_correction_that_might_have_been_names_the_widest_gaps_first() -> None:
    trace = make_trace(tokens=96)
    texts = Texts.of(trace)
    for round_, panel in at_the_end(trace):
        for line, draft in zip(panel.lines, round_.drafts, strict=True):
            assert draft.row is not None
            assert line.might is not None
            gaps = sorted(((t.p or 0) - (t.q or 0), texts(t.id)) for t in draft.row.tokens)[::-1][: coin.CANDIDATES]
            named = [text for text, kind in line.might.gaps if kind == "token"]
            assert named == [text for gap, text in gaps if gap > 0]
            first = f"{gaps[0][1]} {numbers.probability(gaps[0][0])} of {numbers.probability(draft.row.tv)}"
            assert said(line.might.gaps).startswith(first)


def test_only_where_coins_decide_is_there_a_what_if(trace: Trace) -> None:
    throws = trace.rounds[0].settings["rule"] in COINS  # type: ignore[index]
    for _, panel in at_the_end(trace):
        assert bool(panel.said) == throws
        assert panel.bonus is None or throws
        assert all((line.might is not None) == throws for line in panel.lines)


@pytest.mark.parametrize("rule", COINS)
@pytest.mark.parametrize("story", [False, True])
def test_the_bonus_that_would_have_been_is_named_where_it_is_no_longer_to_come(rule: str, story: bool) -> None:
    seen = set()
    for run in (make_trace(rule), *(decoded(rule, stop_ids=(3,), seed=seed) for seed in SEEDS)):
        texts = Texts.of(run)
        for round_, event in moments(run, story=story):
            panel = coin.layout(round_, event, texts, trace=run, story=story)
            bonus = panel.bonus
            all_stayed = round_.kept == len(round_.drafts)
            known = bool(round_.drafts) and events.settled(round_, event)
            assert (bonus is not None) == (known and (not all_stayed or event.kind == "closing"))
            if bonus is None:
                continue
            assert round_.after_id is not None
            assert round_.last_row is not None
            token = round_.last_row.token(round_.after_id)
            assert token is not None
            words = "what the target wants next" if story else f"next: {numbers.probability(token.p)}"
            assert bonus.words.endswith(words)
            assert (bonus.token, bonus.place) == (texts(round_.after_id), len(round_.drafts) + 1)
            if all_stayed:
                assert panel.closing == dataclasses.replace(bonus, current=True)
            seen.add(all_stayed)
    assert seen == {True, False}


# --- the read ---------------------------------------------------------------------------------------------------------


def reads(trace: Trace, **options: Any) -> list[tuple[Round, Coin]]:
    texts = Texts.of(trace)
    return [(r, coin.layout(r, e, texts, trace=trace, **options)) for r, e in moments(trace) if e.kind == "read"]


def test_one_read_gives_an_answer_to_every_place_and_one_more(trace: Trace) -> None:
    texts = Texts.of(trace)
    for round_, panel in reads(trace):
        assert [row.seen for row in panel.read] == [*range(len(round_.drafts) + 1)]
        assert panel.title.startswith(f"One read, {numbers.count(len(round_.drafts) + 1)} answers")
        for row, draft in zip(panel.read, round_.drafts, strict=False):
            assert draft.row is not None
            best = max(draft.row.tokens, key=lambda token: token.p or 0)
            assert texts(best.id) in [text for text, kind in row.answer if kind == "token"]
            assert row.stays == (None if panel.chosen else draft.accept_prob)
        for row, before in zip(panel.read[1:], round_.drafts, strict=True):
            assert said(row.answer).startswith(f"after {texts(before.id)}:")


def runs_that_read(rule: str, *, stop_ids: tuple[int, ...] = ()) -> list[Trace]:
    runs = [decoded(rule, stop_ids=stop_ids, seed=seed, gamma=2) for seed in SEEDS]
    return [make_trace(rule, tokens=96, may_stop=bool(stop_ids)), *runs]


@pytest.mark.parametrize("stop_ids", [(), (3,)])
@pytest.mark.parametrize("rule", RULES)
def test_the_read_does_not_tell_what_will_become_of_the_drafts(rule: str, stop_ids: tuple[int, ...]) -> None:
    """The last row answers alike in every round, and the panel is the same were the verdict the other one."""
    ends = set()
    for run in runs_that_read(rule, stop_ids=stop_ids):
        texts = Texts.of(run)
        for round_, panel in reads(run):
            row, last = round_.last_row, panel.read[-1]
            assert row is not None
            best = max(row.tokens, key=lambda token: token.p or 0)
            chance = "" if rule == "greedy" else f" ({numbers.probability(best.p)})"
            assert said(last.answer) == (
                f"after {texts(round_.drafts[-1].id)}: it wants most {texts(best.id)}{chance}; used only if all stay"
            )
            assert (last.stays, last.words) == (None, ())
            other = dataclasses.replace(run, rounds=(*run.rounds[: round_.index], decided_otherwise(round_)))
            event = Event(round_.index, "read")
            assert coin.layout(other.rounds[-1], event, texts, trace=other) == panel
            ends.add(round_.closing.kind if round_.closing is not None else "stop")
    assert ends >= {"bonus", "correction"}
    assert ("stop" in ends) == bool(stop_ids) or rule == "greedy"


def decided_otherwise(round_: Round) -> Round:
    """The same drafts and the same read: a correction where all had stayed, else a bonus."""
    row, count = round_.last_row, len(round_.drafts)
    stays = round_.closing is None or round_.closing.kind == "correction"
    kept = count if stays else count - 1
    closing = Closing(1, "bonus", row=row) if stays else Closing(1, "correction")
    drafts = tuple(dataclasses.replace(d, fate="kept" if i < kept else "rejected") for i, d in enumerate(round_.drafts))
    emitted = (*(draft.id for draft in drafts[:kept]), 1)
    after = None if stays else row
    return dataclasses.replace(round_, drafts=drafts, closing=closing, emitted=emitted, finish=None, after=after)


def test_a_record_that_has_the_last_answer_of_a_bonus_alone_shows_none(trace: Trace) -> None:
    """Else its presence would tell at the read that all drafts will stay."""
    rounds = tuple(dataclasses.replace(round_, after=None, after_id=None) for round_ in trace.rounds)
    assert {round_.last_row is None for round_ in rounds} == {True, False}
    answers = {said(panel.read[-1].answer).split(":")[1] for _, panel in reads(Trace(trace.header, rounds))}
    assert answers == {" answered too, used only if all stay"}


def test_only_the_event_of_the_read_shows_its_rows(trace: Trace) -> None:
    for round_, event in moments(trace):
        panel = coin.layout(round_, event, Texts.of(trace), trace=trace)
        assert bool(panel.read) == (event.kind == "read")


def test_the_first_answer_follows_the_text() -> None:
    trace = make_trace()
    _, (_, second), *_ = reads(trace)
    assert said(second.read[0].answer).startswith("after “")
    first = said(reads(trace)[0][1].read[0].answer)
    assert first.startswith("after the prompt:")


# --- one place at a time ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", COINS)
def test_one_row_at_a_time_a_real_network_gives_the_same_answers(rule: str) -> None:
    decoder = begin(tiny_pair(), 12, "The dog slept", rule=rule, gamma=3)
    rounds = [decoder.step(), decoder.step()]
    before = decoder.trace
    for round_ in rounds:
        apart = decoder.one_at_a_time(round_)
        assert apart.rows == len(round_.drafts) + 1
        assert apart.agree
        assert 0 <= apart.difference < 1e-4
        assert apart.one_seconds > 0
        assert apart.many_seconds > 0
    assert decoder.trace is before
    decoder.step()


def test_the_reads_are_one_wide_and_then_one_row_each_and_touch_no_cache() -> None:
    pair = TablePair(random_table(1, 4), random_table(2, 4))
    decoder = begin(pair, 20, gamma=3)
    decoder.step()
    round_ = decoder.step()
    own = [(name, list(model.ids)) for name, model in pair.made]
    apart = decoder.one_at_a_time(round_)
    assert [(name, model.ids) for name, model in pair.made[:-1]] == own
    name, reader = pair.made[-1]
    start = round_.position - 1
    assert name == "target"
    assert reader.reads == [(0, start), *[(start, 4), *((start + i, 1) for i in range(4))] * REPEATS]
    assert (apart.rows, apart.difference, apart.agree) == (4, 0.0, True)


def test_a_recorded_round_can_be_asked_too_and_a_foreign_one_cannot() -> None:
    pair = TablePair(random_table(1, 4), random_table(2, 4))
    recorded = decode(pair, 20, gamma=3)
    decoder = Decoder(pair, recorded, Settings(gamma=2))
    assert decoder.one_at_a_time(recorded.rounds[-2]).rows == len(recorded.rounds[-2].drafts) + 1
    other = dataclasses.replace(recorded.rounds[0], seconds=9.0, passes=(Pass(),))
    with pytest.raises(ValueError, match="not a round of this decoder's trace"):
        decoder.one_at_a_time(other)


def test_logits_that_are_not_finite_do_not_count_and_a_difference_is_found() -> None:
    calls = 0

    def wobbling(ids: Any) -> list[float]:
        nonlocal calls
        calls += 1
        return [1.0 if calls < 9 else 1.5, 1.25, float("-inf"), 0.0]

    decoder = begin(TablePair(log_law([0.25] * 4)), 20, gamma=3)
    round_ = decoder.step()
    decoder.pair = TablePair(wobbling)
    apart = decoder.one_at_a_time(round_)
    assert apart.difference == 0.5
    assert not apart.agree


@given(st.floats(0, 10), st.booleans(), st.integers(2, 17))
def test_the_sentence_says_whether_the_answers_are_the_same(difference: float, agree: bool, rows: int) -> None:
    sentence = said(coin.one_at_a_time(rows, difference, agree, 0.105, 0.295))
    assert ("the same first choice: the largest" in sentence) == (not agree)
    assert sentence.startswith(f"{numbers.count(rows).capitalize()} read")
    assert "295 ms instead of 105" in sentence


def test_the_sentence_of_the_product() -> None:
    assert said(coin.one_at_a_time(5, 0.00002, True, 0.105, 0.295)) == (
        "Five reads of one row gave the same five answers (largest difference of a logit 0.00002): "
        "295 ms instead of 105."
    )


# --- hostile text -----------------------------------------------------------------------------------------------------


def test_hostile_tokens_stay_plain_text(trace: Trace) -> None:
    texts = Texts({i: HOSTILE[i % len(HOSTILE)] for i in range(2000)})
    chosen = random.Random(0).sample(moments(trace), 12)
    for round_, event in chosen:
        panel = coin.layout(round_, event, texts, selected=0 if round_.drafts else None, trace=trace, would_be=True)
        shown = json.dumps(dataclasses.asdict(panel), ensure_ascii=False)
        assert "\u202e" not in shown
        for line, draft in zip(panel.lines, round_.drafts, strict=False):
            assert line.draft == texts(draft.id)


def test_a_round_without_settings_is_laid_out() -> None:
    round_ = Round(0, 1, None, (Draft(1, p=0.5, q=0.5, accept_prob=1.0, fate="kept"),), Closing(2, "bonus"), (1, 2))
    trace = Trace(Header(prompt_ids=(5,)), (round_,))
    for event in events.of_round(round_):
        assert coin.layout(round_, event, Texts({}), selected=0, trace=trace, would_be=True).title
