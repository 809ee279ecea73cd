"""One sentence an event: it names its token, holds the record's numbers, and says every edge in words."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specviz.figures import events, numbers, sentences
from specviz.figures.events import Event, Timeline
from specviz.figures.text import Texts
from specviz.trace import Closing, Draft, Fate, Finish, Header, Round, Row, Trace
from tests.synthetic_traces import make_trace

RULES = ("speculative_sampling", "greedy", "gumbel_coupling", "token_match", "block_verification")
WORDS = {1: b" town", 2: b" valley", 3: b" and", 4: b" so"}


@pytest.fixture(scope="module", params=RULES)
def trace(request: pytest.FixtureRequest) -> Trace:
    return make_trace(request.param)


def moments(trace: Trace, *, story: bool = False) -> list[tuple[Round, Event]]:
    return [(trace.rounds[event.round], event) for event in Timeline(trace, story=story).events]


def said(round_: Round, event: Event, **how: Any) -> str:
    return sentences.plain(sentences.of_event(round_, event, Texts(WORDS), **how))


def draft(p: float, q: float, accept: float, fate: Fate, *, coin: float | None = 0.66, tv: float = 0.4) -> Draft:
    return Draft(1, p=p, q=q, accept_prob=accept, coin=coin, passed=fate == "kept", fate=fate, row=Row(tv=tv))


def judged(one: Draft, *more: Draft, finish: Finish | None = None, kind: Any = "correction", **settings: Any) -> Round:
    settings = {"rule": "speculative_sampling", **settings}
    return Round(0, 1, settings, (one, *more), Closing(2, kind), (2,), finish)


VERDICT, CLOSING = Event(0, "verdict", 0), Event(0, "closing")
TOWN = draft(0.11, 0.46, 0.24, "rejected")
BEHIND = Draft(3, fate="unjudged")


# --- every sentence ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("story", [False, True])
def test_every_event_of_every_rule_has_a_sentence_that_names_its_token(trace: Trace, story: bool) -> None:
    texts = Texts.of(trace)
    for round_, event in moments(trace, story=story):
        spoken = sentences.plain(sentences.of_event(round_, event, texts, story=story, left=3))
        assert spoken.endswith(".")
        assert not set(spoken) & set("[]{}")
        if event.kind == "closing":
            assert round_.closing is not None
            assert texts(round_.closing.id) in spoken
        if event.kind == "draft" or (event.kind == "verdict" and not events.judges_at_once(round_)):
            assert texts(round_.drafts[event.place or 0].id) in spoken


def test_what_is_said_before_the_read_does_not_depend_on_the_target(trace: Trace) -> None:
    texts = Texts.of(trace)
    for round_, event in moments(trace):
        if event.kind == "draft":
            blind = replace(round_, drafts=tuple(Draft(d.id, q=d.q) for d in round_.drafts), closing=None, finish=None)
            assert sentences.of_event(blind, event, texts) == sentences.of_event(round_, event, texts)


def test_the_sentence_of_a_verdict_holds_the_records_numbers() -> None:
    for round_, event in moments(make_trace()):
        if event.kind != "verdict":
            continue
        one = round_.drafts[event.place or 0]
        spoken = said(round_, event)
        assert one.p is not None
        assert one.q is not None
        p, q = numbers.factors(one.p, one.q)
        assert f" {p}" in spoken
        assert f" {q}" in spoken
        assert one.accept_prob is not None
        assert one.coin is not None
        if one.accept_prob >= 1:
            assert "for sure" in spoken
        else:
            assert f"The coin fell at {numbers.told_apart(one.accept_prob, one.coin)[1]}" in spoken
            assert ("stays:" in spoken) == (one.coin < one.accept_prob) == ("inside" in spoken)


def test_story_tells_no_chance_to_two_digits_and_no_rare_word(trace: Trace) -> None:
    texts = Texts({})  # ids only, so that no number comes from a token
    for round_, event in moments(trace, story=True):
        spoken = re.sub(r"#\d+", "", sentences.plain(sentences.of_event(round_, event, texts, story=True, left=3)))
        assert not re.search(r"\d\.\d", spoken)
        assert not re.search(r"\b(law|logit|noise|TV|q =|p =)", spoken)


def test_no_sentence_needs_the_word_law() -> None:
    for wording in (*sentences.TEMPLATES.values(), *sentences.STORY.values()):
        assert not re.search(r"\blaws?\b", wording)
    assert set(sentences.STORY) <= set(sentences.TEMPLATES)


def test_marks_in_a_token_are_not_taken_for_emphasis() -> None:
    spans = sentences.say("coin.never", draft="[x]{y}", why="so")
    assert spans[:2] == (("[x]{y}", "strong token"), (" goes:", "strong"))


HOSTILE = (b"<script>alert(1)</script>", b"{0.__class__}[x]", "\u202egnp".encode(), b"\xf0\x9f", b"$x$ ![](x)", b"")


@pytest.mark.parametrize("raw", HOSTILE)
@pytest.mark.parametrize("story", [False, True])
def test_a_hostile_token_is_one_span_of_text(trace: Trace, raw: bytes, story: bool) -> None:
    texts = Texts(dict.fromkeys(Texts.of(trace)._known, raw))
    for round_, event in moments(trace, story=story)[:40]:
        for text, kind in sentences.of_event(round_, event, texts, story=story):
            assert set(kind.split()) <= {"strong", "token"}
            assert not set(text) & set("\u202e\n\0")
            if "token" not in kind and raw.strip():
                assert raw.decode("utf-8", "replace") not in text


# --- speculative sampling ---------------------------------------------------------------------------------------------


def test_a_rejected_draft_is_told_as_a_coin_that_fell_outside() -> None:
    assert said(judged(TOWN), VERDICT) == (
        "␣town goes: the target wanted 0.11, the drafter offered 0.46, so a draft like this stays 24 times in 100. "
        "The coin fell at 0.66, outside the 0.24 that stays."
    )
    assert said(judged(TOWN), VERDICT, story=True) == (
        "␣town goes: the drafter was keener on it than the target, "
        "so a coin with 24 chances in 100 decided, and it fell outside."
    )


@given(st.floats(1e-7, 0.999), st.floats(1e-7, 1 - 1e-7))
def test_what_stays_and_where_the_coin_fell_never_contradict_each_other(accept: float, coin: float) -> None:
    fate: Fate = "kept" if coin < accept else "rejected"
    spoken = said(judged(draft(accept / 2, 0.5, accept, fate, coin=coin)), VERDICT)
    found = re.search(r"fell at <?([\d.]+), (inside|outside) the [<>]?([\d.]+) that stays", spoken)
    assert found is not None
    assert found[2] == ("inside" if fate == "kept" else "outside")
    if abs(coin - accept) > 0.01:
        assert (float(found[1]) < float(found[3])) == (fate == "kept")


def test_a_draft_that_the_target_wants_more_needs_no_coin() -> None:
    assert said(judged(draft(0.52, 0.40, 1.0, "kept")), VERDICT) == (
        "␣town stays for sure: the target gives it 0.52, more than the drafter’s 0.40. No coin needed."
    )
    assert "just as much" in said(judged(draft(0.4, 0.4, 1.0, "kept")), VERDICT)


def test_identical_models_are_called_identical() -> None:
    assert "identical" in said(judged(draft(0.4, 0.4, 1.0, "kept", tv=0.0)), VERDICT)
    rounded = draft(0.4, 0.4 + 1e-8, 1 - 1e-8, "kept")
    assert said(judged(rounded, drafter="target"), VERDICT).endswith(
        "the target drafts for itself: p = q, always kept."
    )
    assert "itself" not in said(judged(draft(0.1, 0.4, 0.25, "kept", coin=0.1), drafter="target"), VERDICT)


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
    spoken = said(judged(draft(0.0, 0.4, 0.0, "rejected"), **settings), VERDICT)
    assert why in spoken
    assert "p = 0" in spoken
    assert "Shared" not in spoken


def test_models_with_nothing_in_common_are_said_to_share_nothing() -> None:
    assert "Shared 0.00: every draft dies here." in said(judged(draft(0.0, 0.4, 0.0, "rejected", tv=1.0)), VERDICT)


def test_a_record_that_does_not_say_with_what_chance_says_so() -> None:
    for one in (Draft(1, fate="rejected"), replace(TOWN, coin=None), replace(TOWN, p=None)):
        assert said(judged(one), VERDICT) == "␣town goes. With what chance, this record does not say."
        assert said(replace(judged(one), settings=None), VERDICT).startswith("␣town goes.")
    assert said(judged(Draft(1)), Event(0, "draft", 0)).startswith("The drafter guesses ␣town. ")


# --- the other rules --------------------------------------------------------------------------------------------------


def test_greedy_names_the_targets_first_choice_and_its_lead() -> None:
    row = Row(target_top2=((2, 9.5), (1, 8.25)))
    one = Draft(1, p=0.0, q=1.0, accept_prob=0.0, target_id=2, fate="rejected", row=row)
    round_ = judged(one, rule="greedy", temperature=0.0)
    assert said(round_, VERDICT) == (
        "␣town goes: the target’s first choice is ␣valley, 1.2 ahead of its second (in logits)."
    )
    assert said(round_, VERDICT, story=True) == "␣town goes: the target’s first choice is ␣valley."
    assert said(round_, CLOSING) == "␣valley replaces ␣town: it is the target’s first choice."
    assert said(replace(round_, settings={"rule": "speculative_sampling", "temperature": 0}), CLOSING).endswith(
        "the target’s first choice."
    )


def block(passed: tuple[bool, ...], accepts: tuple[float, ...], kept: int) -> Round:
    drafts = tuple(
        Draft(
            1, accept_prob=a, coin=0.5, passed=ok, fate="kept" if i < kept else "rejected" if i == kept else "unjudged"
        )
        for i, (ok, a) in enumerate(zip(passed, accepts, strict=True))
    )
    return Round(0, 1, {"rule": "block_verification"}, drafts, Closing(2, "correction"), (2,))


@pytest.mark.parametrize(
    ("passed", "accepts", "kept", "spoken"),
    [
        ((False, False), (0.2, 0.3), 0, "None stays: no coin fell inside its bar."),
        (
            (False, True, False),
            (0.2, 0.6, 0.1),
            2,
            "the last coin inside its bar is at place 2; it carries every draft",
        ),
        ((False, True, False), (0.2, 1.0, 0.1), 2, "is 2, whose bar is full, so no coin is needed; it carries"),
        ((True, False), (0.6, 0.1), 1, "One of two stays: the last coin inside its bar is at place 1."),
        ((True,), (0.6,), 1, "It stays: its coin fell inside its bar."),
        ((True,), (1.0,), 1, "It stays: its bar is full, so no coin is needed."),
        ((True, True), (0.6, 0.6), 2, "Both drafts stay: the last coin inside its bar is at place 2; it carries"),
    ],
)
def test_block_verification_says_which_place_carries_the_others(
    passed: tuple[bool, ...], accepts: tuple[float, ...], kept: int, spoken: str
) -> None:
    round_ = block(passed, accepts, kept)
    assert spoken in said(round_, Event(0, "verdict", len(round_.judged) - 1))


def test_under_block_verification_a_full_bar_is_never_said_to_have_had_a_coin() -> None:
    full = 0
    for round_, event in moments(make_trace("block_verification", tokens=200)):
        if event.kind == "verdict" and round_.kept:
            carrier = max(i for i, one in enumerate(round_.drafts) if one.passed)
            sure = (round_.drafts[carrier].accept_prob or 0) >= 1
            assert ("no coin is needed" in said(round_, event)) == sure
            full += sure
    assert full


# --- copied drafts, no drafts, fewer drafts ---------------------------------------------------------------------------


def test_a_copied_draft_claims_everything_and_is_left_out_of_its_correction() -> None:
    round_ = judged(draft(0.3, 1.0, 0.3, "rejected"), drafter="ngram")
    assert "copied from the text" in said(round_, Event(0, "draft", 0))
    assert "q = 1" in said(round_, Event(0, "draft", 0))
    assert "copied from the text" in said(round_, Event(0, "draft", 0), story=True)
    assert "a copy claims all of it (q = 1)" in said(round_, VERDICT)
    assert "keener" not in said(round_, VERDICT, story=True)
    assert said(round_, CLOSING).endswith("drawn from what the target wants, the copied token left out.")


@pytest.mark.parametrize(
    ("settings", "left", "finish", "why"),
    [
        ({"gamma": 0}, 9, None, "No drafts: plain decoding, one read a token"),
        ({"gamma": 4, "drafter": "none"}, 9, None, "No drafts: plain decoding, one read a token"),
        ({"gamma": 4}, 1, "length", "Only one token was left to write"),
        ({"gamma": 4}, None, "length", "Only one token was left to write"),
        ({"gamma": 4}, 9, "context", "The context is full"),
        ({"gamma": 4, "drafter": "ngram"}, 9, None, "Nothing to copy this round"),
        ({"gamma": 4, "drafter": "ngram"}, 1, "length", "Only one token was left to write"),
        ({"gamma": 4}, 9, None, "Nothing was drafted this round"),
    ],
)
def test_a_round_without_drafts_says_why(settings: Any, left: int | None, finish: Finish | None, why: str) -> None:
    round_ = Round(0, 1, {"rule": "speculative_sampling", **settings}, (), Closing(2, "plain"), (2,), finish)
    assert why in said(round_, CLOSING, left=left)


def test_a_short_round_says_why_it_is_short() -> None:
    two = judged(TOWN, BEHIND, gamma=4)
    assert said(two, Event(0, "draft", 1), left=3).endswith(" Only 2 drafts: 3 tokens left.")
    assert "Only" not in said(two, Event(0, "draft", 0), left=3)
    assert "Only" not in said(replace(two, settings={"gamma": 2}), Event(0, "draft", 1), left=3)
    context = replace(two, finish="context")
    assert said(context, Event(0, "draft", 1), left=99).endswith("Only 2 drafts: the context is nearly full.")
    copied = judged(TOWN, BEHIND, gamma=4, drafter="ngram")
    assert said(copied, Event(0, "draft", 1), left=99).endswith("Only 2 drafts: there the text so far ends.")


# --- the closing token, and the end -----------------------------------------------------------------------------------


def test_a_correction_explains_the_gaps_and_what_was_never_judged() -> None:
    assert said(judged(TOWN, BEHIND), CLOSING) == (
        "␣valley replaces ␣town: drawn from the gaps, which is what the target wants more than the drafter offered. "
        "␣and was never judged: it was written to follow ␣town."
    )
    assert "Two drafts behind ␣town were never judged" in said(judged(TOWN, BEHIND, Draft(4, fate="unjudged")), CLOSING)
    assert "gaps" not in said(judged(TOWN), CLOSING, story=True)


@pytest.mark.parametrize(
    ("count", "spoken"),
    [
        (1, "The draft stayed: the same read gives a second"),
        (2, "Both drafts stayed: the same read gives a third"),
        (4, "All four stayed: the same read gives a fifth"),
        (7, "gives an eighth"),
        (16, "All 16 stayed: the same read gives a 17th"),
    ],
)
def test_a_bonus_counts_on(count: int, spoken: str) -> None:
    round_ = judged(*(draft(0.5, 0.4, 1.0, "kept"),) * count, kind="bonus")
    assert spoken in said(round_, CLOSING)


def test_the_read_counts_its_answers() -> None:
    assert said(judged(TOWN, BEHIND), Event(0, "read")) == (
        "One read of the target, three answers: what it wants at the place of each of the two drafts, "
        "and one place further."
    )
    assert "at the place of the draft," in said(judged(TOWN), Event(0, "read"))


def test_the_end_of_the_text_is_said_once_and_by_its_reason() -> None:
    for finish, words in (
        ("stop", "It ends the text."),
        ("length", "length asked for"),
        ("context", "context is full"),
    ):
        round_ = judged(TOWN, finish=finish)  # type: ignore[arg-type]
        assert [words in said(round_, event) for event in events.of_round(round_)] == [False, False, False, True]


@pytest.mark.parametrize("rule", ["speculative_sampling", "block_verification"])
def test_a_stop_token_that_was_kept_ends_the_text(rule: str) -> None:
    trace = next(
        t for t in (make_trace(rule, may_stop=True, seed=s) for s in range(99)) if t.rounds[-1].closing is None
    )
    texts = Texts.of(trace)
    round_, event = moments(trace)[-1]
    spoken = sentences.plain(sentences.of_event(round_, event, texts))
    assert f"{texts(round_.emitted[-1])} ends the text." in spoken
    assert ("the text is over" in spoken) == (len(round_.drafts) > round_.kept)


def test_a_round_in_which_nothing_happened_is_no_trouble() -> None:
    empty = Trace(Header(prompt_ids=(5,)), (Round(0, 1, {}, (), None, ()),))
    assert len(Timeline(empty)) == 0
    assert said(empty.rounds[0], CLOSING).startswith("In this round nothing")


# --- chances in words -------------------------------------------------------------------------------------------------


@given(st.floats(1e-9, 1 - 1e-9), st.floats(0, 1))
def test_a_chance_is_the_same_number_in_all_its_wordings(chance: float, coin: float) -> None:
    said_times, said_chances, part = (
        wording(chance, beside=coin) for wording in (numbers.times, numbers.chances, numbers.part)
    )
    hits, _, out_of = numbers.odds(chance, beside=coin).replace(",", "").partition(" in ")
    assert said_times.replace(",", "").endswith(f" in {out_of}")
    assert said_chances.replace(",", "").startswith(hits)
    assert ("chances" in said_chances) == (hits not in ("1", "under 1"))
    assert float(part.lstrip("<>")) == pytest.approx(int(hits.split()[-1]) / int(out_of), abs=1e-12)


def test_small_and_large_chances_are_bounded_in_words() -> None:
    assert numbers.times(1e-9) == "less than once in 1,000,000"
    assert numbers.chances(0.01) == "1 chance in 100"
    assert numbers.part(1e-9) == "<0.000001"
    assert numbers.part(1 - 1e-9) == ">0.999999"
