"""Why exact: the frames are the rule's own arithmetic, for the whole vocabulary, and nothing is known too early."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from specviz import losslessness
from specviz.figures import events, exact, exchange
from specviz.figures.events import Event, Timeline
from specviz.figures.exact import Exact
from specviz.figures.sentences import plain
from specviz.figures.text import Texts
from specviz.rules import RULES
from specviz.theory import gumbel_match
from specviz.trace import Closing, Draft, Rest, Round, Row, Token, Trace
from tests.enumeration import outcomes
from tests.libraries import law
from tests.synthetic_traces import make_trace

Array = np.ndarray[Any, Any]

RULE_NAMES = tuple(RULES)
VOCAB, LISTED = 7, 3
TEXTS = Texts({i: b"abcdefg"[i : i + 1] for i in range(VOCAB)})
EXPECTED = {
    "speculative_sampling": lambda p, q: float(np.minimum(p, q).sum()),
    "token_match": lambda p, q: float(p @ q),
    "gumbel_coupling": lambda p, q: float(gumbel_match(p, q)),
    "greedy": lambda p, q: float(p.argmax() == q.argmax()),
    "block_verification": lambda p, q: None,
}


def row(p: Array, q: Array, rule: str, listed: int = LISTED) -> Row:
    """The place of laws over a whole vocabulary, with few of its tokens listed."""
    rest = slice(listed, None)
    return Row(
        position=1,
        tokens=tuple(Token(i, TEXTS.raw(i).hex(), float(p[i]), float(q[i])) for i in range(listed)),
        rest=Rest(
            len(p) - listed, float(p[rest].sum()), float(q[rest].sum()), float(np.minimum(p[rest], q[rest]).sum())
        ),
        tv=float(np.abs(p - q).sum() / 2),
        expected_accept=EXPECTED[rule](p, q),
    )


def one_draft(p: Array, q: Array, rule: str, draft: int = 0, **more: Any) -> Round:
    drafted = Draft(draft, float(p[draft]), float(q[draft]), fate="rejected", row=row(p, q, rule, **more))
    return Round(0, 1, {"rule": rule}, (drafted,), Closing(1, "correction"), (1,))


def shown(round_: Round, deal: exact.Dealt | None = None, selected: int = 0) -> Exact:
    last = [*events.of_round(round_)][-1]
    return exact.layout(round_, last, TEXTS, selected=selected, deal=deal)


def heights(layout: Exact, frame: int) -> Array:
    return np.array([sum(size for _, size in bar.parts) for bar in layout.frames[frame].bars])


def outlines(layout: Exact) -> Array:
    return np.array([bar.outline for bar in layout.frames[0].bars])


def random_laws(seed: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.full(VOCAB, 0.5), 2)
    cut = q * (rng.random(VOCAB) > 0.3) + np.eye(VOCAB)[0] * 0.05
    return p, cut / cut.sum()


def lumped(values: Array) -> Array:
    """The listed tokens, and all others together."""
    return np.append(values[:LISTED], values[LISTED:].sum())


def joint(rule: Any, p: Array, q: Array) -> Array:
    """Chance of (drafted, kept or not, written), each token a listed one or one of the others."""

    def group(token: int) -> int:
        return min(token, LISTED)

    law = np.zeros((LISTED + 1, 2, LISTED + 1))
    for draft in np.flatnonzero(q):
        ways = outcomes(rule, np.stack([p, p]), q[None], (int(draft),))
        law[group(draft), 1, group(draft)] += q[draft] * ways.chance[ways.kept == 1].sum()
        for token, chance in enumerate(ways.chance[ways.kept == 0] @ ways.closing[ways.kept == 0]):
            law[group(draft), 0, group(token)] += q[draft] * chance
    return law


# --- a few tokens stand for the whole vocabulary ----------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", ["speculative_sampling", "token_match"])
def test_the_others_as_a_few_cells_play_like_the_whole_vocabulary(name: str, seed: int) -> None:
    p, q = random_laws(seed)
    place = exchange.of(one_draft(p, q, name), 0)
    assert place is not None
    assert place.rule is RULES[name]
    for rule in (place.rule, place.wrong):
        np.testing.assert_allclose(joint(rule, place.p, place.q), joint(rule, p, q), atol=1e-12)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", ["speculative_sampling", "token_match", "gumbel_coupling"])
def test_frames_are_what_the_rule_does_with_the_whole_vocabulary(name: str, seed: int) -> None:
    p, q = random_laws(seed)
    layout, full = shown(one_draft(p, q, name)), losslessness.expected(RULES[name], p, q)
    order = [next(i for i in range(LISTED) if label.token == TEXTS(i)) for label in layout.labels[:-1]]

    def on_columns(values: Array) -> Array:
        return np.append(values[order], values[LISTED:].sum())

    np.testing.assert_allclose(outlines(layout), on_columns(p), atol=1e-12)
    np.testing.assert_allclose(heights(layout, 0), on_columns(q), atol=1e-12)
    np.testing.assert_allclose(heights(layout, 2), on_columns(p), atol=1e-12)
    if name != "gumbel_coupling":
        np.testing.assert_allclose(heights(layout, 1), on_columns(full.kept), atol=1e-12)
        wrong = exchange.WRONG_RULES[exchange.WRONG["coin" if name == "speculative_sampling" else name]]
        np.testing.assert_allclose(heights(layout, 3), on_columns(wrong.emitted_law(p, q)), atol=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_a_place_of_a_block_brings_its_share_of_p_given_the_drafts_before(seed: int) -> None:
    rng, rule = np.random.default_rng(seed), RULES["block_verification"]
    p, q = rng.dirichlet(np.full(VOCAB, 0.7), 3), rng.dirichlet(np.full(VOCAB, 0.7), 2)
    drafts = (0, 1)
    verdict = rule.verify(p, q, np.array(drafts), _Coins())
    weights, bars = verdict.judgements.weight, verdict.judgements.accept_prob
    assert weights is not None
    round_ = Round(
        0,
        1,
        {"rule": rule.name},
        tuple(
            Draft(
                x, accept_prob=float(bars[i]), weight=float(weights[i]), fate="unjudged", row=row(p[i], q[i], rule.name)
            )
            for i, x in enumerate(drafts)
        ),
    )
    place = exchange.of(round_, 1)
    assert place is not None
    # The oracle: whatever is drafted at this place, the round writes some token here once it keeps the first draft.
    kept, dealt = np.zeros(VOCAB), np.zeros(VOCAB)
    for here in range(VOCAB):
        ways = outcomes(rule, p, q, (drafts[0], here))
        kept[here] += q[1, here] * ways.chance[ways.kept == 2].sum()
        dealt += q[1, here] * (ways.chance[ways.kept == 1] @ ways.closing[ways.kept == 1])
    np.testing.assert_allclose(place.outcome.kept, lumped(kept), atol=1e-9)
    np.testing.assert_allclose(place.outcome.dealt, lumped(dealt), atol=1e-9)
    np.testing.assert_allclose(kept + dealt, weights[0] * p[1], atol=1e-12)
    np.testing.assert_allclose(heights(shown(round_, selected=1), 2), outlines(shown(round_, selected=1)), atol=1e-9)


class _Coins:
    def accept(self, count: int) -> Array:
        return np.full(count, 0.5)

    def residual(self, place: int) -> Array:
        return np.array(0.5)

    target = draft = residual

    def gumbel(self, place: int, vocab_size: int) -> Array:
        return np.zeros(vocab_size)


@given(law(VOCAB), law(VOCAB))
@settings(max_examples=150, deadline=None)
def test_overflow_and_gaps_are_the_same_size_and_the_refill_fits(p: Array, q: Array) -> None:
    round_ = one_draft(p, q, "speculative_sampling", draft=int(q.argmax()))
    layout = shown(round_)
    overflow = sum(bar.over for bar in layout.frames[1].bars)
    gaps = (outlines(layout) - heights(layout, 1)).sum()
    tv = round_.drafts[0].row.tv  # type: ignore[union-attr]
    assert overflow == pytest.approx(gaps, abs=1e-9)
    assert overflow == pytest.approx(tv, abs=1e-9)
    np.testing.assert_allclose(heights(layout, 2), outlines(layout), atol=1e-12)


# --- many deals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["speculative_sampling", "token_match", "gumbel_coupling"])
def test_a_deal_fills_the_frames_within_the_noise_and_the_wrong_way_does_not(name: str) -> None:
    """A false alarm has a chance of 1 in 100 by the width of the bands; the seed is fixed."""
    p, q = random_laws(4)
    round_ = one_draft(p, q, name)
    deal = exact.deal(round_, 0, seed=1)
    assert deal is not None
    layout = shown(round_, deal)
    assert [bar.off for frame in layout.frames[:3] for bar in frame.bars] == [False] * 3 * len(layout.labels)
    assert "lie within" in plain(layout.dealt)
    for frame in (0, 2):
        assert heights(layout, frame).sum() == pytest.approx(1)
    if deal.wrong is not None:
        assert any(bar.off for bar in layout.frames[3].bars)
        assert "Dealt the wrong way" in plain(layout.dealt)
        assert f"{int(deal.right.kept.sum()):,} of 100,000 stay" in layout.frames[1].caption


def test_a_rule_that_does_what_it_should_not_is_seen() -> None:
    p, q = random_laws(4)
    round_ = one_draft(p, q, "speculative_sampling")
    deal = exact.deal(round_, 0, seed=1)
    assert deal is not None
    assert deal.wrong is not None
    layout = shown(round_, dataclasses.replace(deal, right=deal.wrong))
    assert any(bar.off for bar in layout.frames[2].bars)
    assert "outside the noise" in plain(layout.dealt)


def test_where_the_wrong_way_comes_out_right_it_is_said() -> None:
    p, q = np.array([0.0, 0.5, 0.3, 0.2, 0, 0, 0]), np.eye(VOCAB)[0]
    round_ = one_draft(p, q, "speculative_sampling")
    assert "happens to come out right" in shown(round_).frames[3].caption
    assert "happens to come out right" in plain(shown(round_, exact.deal(round_, 0, seed=1)).dealt)


def test_nothing_is_dealt_at_temperature_0() -> None:
    round_ = one_draft(np.eye(VOCAB)[1], np.eye(VOCAB)[0], "speculative_sampling")
    assert not shown(round_).can_deal
    assert exact.deal(round_, 0, seed=1) is None


@pytest.mark.parametrize("name", ["greedy", "block_verification"])
def test_nothing_is_dealt_where_a_place_has_nothing_to_deal(name: str) -> None:
    round_ = make_trace(name).rounds[0]
    assert exact.deal(round_, 0, seed=1) is None
    assert not exact.layout(round_, Event(1, "draft", 0), TEXTS, selected=0).can_deal


# --- what is said -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("p", "q", "begins"),
    [
        ((0.5, 0.3, 0.2), (0.5, 0.3, 0.2), "Identical:"),
        ((0.5, 0.5, 0.0), (0.0, 0.0, 1.0), "Nothing fits:"),
        ((0.0, 1.0, 0.0), (1.0, 0.0, 0.0), "Nothing is left to chance:"),
        ((0.5, 0.3, 0.2), (0.2, 0.3, 0.5), "Overflow and gaps are the same size (0.30)"),
        ((0.5, 0.3, 0.2), (0.0, 0.0, 1.0), "Overflow and gaps are the same size (0.80)"),
    ],
)
def test_every_kind_of_place_has_its_sentence(p: Sequence[float], q: Sequence[float], begins: str) -> None:
    round_ = one_draft(np.array(p), np.array(q), "speculative_sampling", draft=int(np.argmax(q)), listed=3)
    assert plain(shown(round_).note).startswith(begins)


def test_what_a_record_does_not_carry_is_said() -> None:
    p, q = random_laws(0)
    whole = one_draft(p, q, "speculative_sampling").drafts[0]
    assert whole.row is not None
    assert whole.row.rest is not None
    broken = [
        None,
        Row(),
        dataclasses.replace(whole.row, rest=None),
        dataclasses.replace(whole.row, rest=dataclasses.replace(whole.row.rest, overlap=None)),
        dataclasses.replace(whole.row, rest=dataclasses.replace(whole.row.rest, overlap=7.0)),
        dataclasses.replace(whole.row, tokens=tuple(dataclasses.replace(t, q=None) for t in whole.row.tokens)),
        dataclasses.replace(whole.row, tokens=tuple(dataclasses.replace(t, p=-1.0) for t in whole.row.tokens)),
    ]
    for place in broken:
        round_ = Round(0, 1, {"rule": "speculative_sampling"}, (dataclasses.replace(whole, row=place),))
        layout = exact.layout(round_, Event(0, "read"), TEXTS, selected=0)
        assert plain(layout.note) == exact.NOTES["unknown"]
        assert layout.frames == ()
        assert exact.deal(round_, 0, seed=1) is None
    unnamed = Round(0, 1, None, (whole,))
    assert plain(exact.layout(unnamed, Event(0, "read"), TEXTS, selected=0).note) == exact.NOTES["unnamed"]


def test_a_record_without_a_rest_is_whole() -> None:
    round_ = one_draft(np.array([0.5, 0.5]), np.array([0.25, 0.75]), "speculative_sampling", listed=2)
    (draft,) = round_.drafts
    assert draft.row is not None
    bare = dataclasses.replace(
        round_, drafts=(dataclasses.replace(draft, row=dataclasses.replace(draft.row, rest=None)),)
    )
    assert [label.token for label in shown(bare).labels] == ["b", "a"]


@pytest.fixture(scope="module", params=RULE_NAMES)
def trace(request: pytest.FixtureRequest) -> Trace:
    return make_trace(request.param)


def places(trace: Trace) -> list[tuple[Round, Event, int | None]]:
    return [
        (trace.rounds[event.round], event, place)
        for event in Timeline(trace).events
        for place in (*range(events.drafted(trace.rounds[event.round], event)), None)
    ]


def test_every_moment_of_every_rule_can_be_laid_out(trace: Trace) -> None:
    texts = Texts.of(trace)
    for round_, event, place in places(trace):
        layout = exact.layout(round_, event, texts, selected=place)
        json.dumps(dataclasses.asdict(layout), allow_nan=False)
        assert layout.note
        assert layout.why
        assert bool(layout.frames) == (place is not None and events.read(round_, event)) or "no chance" in plain(
            layout.note
        )
        for frame in layout.frames:
            assert len(frame.bars) == len(layout.labels)
            assert all(0 <= size <= 1 + 1e-9 for bar in frame.bars for _, size in bar.parts)
        if layout.frames:
            np.testing.assert_allclose(heights(layout, 2), outlines(layout), atol=1e-9)
            assert texts(round_.drafts[place or 0].id) in [label.token for label in layout.labels]


def test_nothing_of_p_is_shown_before_the_read(trace: Trace) -> None:
    texts = Texts.of(trace)
    told = {
        exact.layout(round_, event, texts, selected=place).note
        for round_, event, place in places(trace)
        if not events.read(round_, event)
    }
    assert {plain(note) for note in told} == {exact.NOTES["hidden"]}
    for round_, event, place in places(trace):
        if not events.read(round_, event):
            layout = exact.layout(round_, event, texts, selected=place)
            assert (layout.frames, layout.labels, layout.table.rows, layout.formula) == ((), (), (), None)


def test_the_correction_stands_in_the_frames_once_it_is_drawn_and_not_before(trace: Trace) -> None:
    texts = Texts.of(trace)
    for round_, event, place in places(trace):
        if place is None or place != round_.kept or round_.closing is None or round_.closing.kind != "correction":
            continue
        layout = exact.layout(round_, event, texts, selected=place)
        wearing = [label.token for label in layout.labels if label.sign == "correction"]
        closed = events.closed(round_, event) and layout.frames
        assert wearing == ([texts(round_.closing.id)] if closed else [])


def test_story_and_numbers_know_no_laws_and_no_tv() -> None:
    told = [*exact.NOTES.values(), *exact.WHY.values(), *exact.DEALT.values(), *exact.DEALT_FRAMES, *exact.OFF.values()]
    told += [words for frames in exact.FRAMES.values() for frame in frames for words in frame]
    assert [words for words in told if " law" in words or "TV" in words] == []


def test_the_copying_drafter_has_its_own_paragraph() -> None:
    round_ = one_draft(np.array([0.5, 0.5]), np.array([1.0, 0.0]), "speculative_sampling", listed=2)
    copied = dataclasses.replace(round_, settings={"rule": "speculative_sampling", "drafter": "ngram"})
    assert [plain(words).split(",")[0] for words in shown(copied).why] == ["Speculative sampling", "n-gram drafter"]


def test_hostile_tokens_stay_text() -> None:
    hostile = b"<script>[x]{0}\xe2\x80\xae"
    p, q = random_laws(0)
    round_ = one_draft(p, q, "speculative_sampling")
    texts = Texts(dict.fromkeys(range(VOCAB), hostile))
    layout = exact.layout(round_, Event(0, "closing"), texts, selected=0, deal=exact.deal(round_, 0, seed=1))
    assert {label.token for label in layout.labels[:-1]} == {"<script>[x]{0}⟨U+202E⟩"}
    assert layout.table.rows[0][0] == "<script>[x]{0}⟨U+202E⟩"
