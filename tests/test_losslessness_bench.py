"""The bench: who is on trial, what two tokens of a text show, and what counts say about a law, false alarms and all."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln

from specviz.losslessness import (
    Comparison,
    Entrant,
    compare,
    deal,
    deal_joint,
    entrants,
    expected,
    joint,
    largest_batch,
    whole_count,
)
from specviz.noise import RoundNoise, gumbel
from specviz.probability import Array, log, one_hot, residual, warp
from specviz.rules import (
    RULES,
    WRONG_DRAFTS,
    WRONG_RULES,
    BlockVerification,
    Rule,
    SpeculativeSampling,
    dropped_after_draw,
)
from tests.enumeration import first_token_law, outcomes
from tests.libraries import ToArray, both_libraries

EVERY_RULE = RULES | WRONG_RULES
SAMPLED = [name for name in RULES if name != "greedy"]
RIGHT = [*SAMPLED, "drafter_at_0", "greedy"]
WRONG = [*WRONG_RULES, *WRONG_DRAFTS]

PAIRS = {
    "issue": ((0.6, 0.2, 0.1, 0.1), (0.7, 0.2, 0.05, 0.05)),
    "B": ((0.5, 0.3, 0.2), (0.2, 0.3, 0.5)),
    "D": ((0.6, 0.4), (0.8, 0.2)),
    "C": ((0.5, 0.5, 0.0), (0.5, 0.0, 0.5)),
    "disjoint": ((1.0, 0.0, 0.0), (0.0, 0.5, 0.5)),
    "equal": ((0.5, 0.3, 0.2), (0.5, 0.3, 0.2)),
}
ODDS = 1e-6
"""Chance of a false alarm of every comparison that draws; seeds are fixed, so that it happened or never will."""


def trial(pair: str, temperature: float = 1.0, drafter_temperature: float = 1.0, **cut: Any) -> dict[str, Entrant]:
    """All entrants at a pair of laws, by name."""
    p, q = (log(np.array(law)) for law in PAIRS[pair])
    listed = entrants(p, q, temperature=temperature, drafter_temperature=drafter_temperature, **cut)
    return {entrant.name: entrant for entrant in listed}


def random_laws(places: int, vocab: int, seed: int) -> Array:
    return np.random.default_rng(seed).dirichlet(np.ones(vocab), places)


# --- entrants ---------------------------------------------------------------------------------------------------------


def test_everything_is_on_trial_once() -> None:
    assert sorted(trial("B")) == sorted([*RIGHT, *WRONG])


@pytest.mark.parametrize(
    ("name", "kept"),
    [("speculative_sampling", 0.9), ("drafter_at_0", 0.6), ("token_match", 0.47), ("greedy", 1.0)],
)
def test_one_place_keeps_drafts_as_the_rule_has_it(name: str, kept: float) -> None:
    assert trial("issue")[name].kept == pytest.approx(kept, abs=1e-12)


@pytest.mark.parametrize(
    ("pair", "name", "law"),
    [
        ("issue", "resample_from_p", (0.66, 0.22, 0.06, 0.06)),
        ("D", "resample_from_p", (0.72, 0.28)),
        ("B", "strike_out", (0.3875, 0.4125, 0.2)),
        ("D", "match_then_redraw", (0.744, 0.256)),
        ("D", "argmax_drafted_softmax_reported", (0.75, 0.25)),
        ("B", "argmax_drafted_softmax_reported", (0.6, 0.0, 0.4)),
    ],
)
def test_what_is_wrong_writes_another_law(pair: str, name: str, law: tuple[float, ...]) -> None:
    entrant = trial(pair)[name]
    np.testing.assert_allclose(entrant.law, law, atol=1e-12)
    assert not entrant.exact
    assert entrant.distance == pytest.approx(np.abs(np.array(law) - PAIRS[pair][0]).sum() / 2)


@pytest.mark.parametrize("temperatures", [(1.0, 1.0), (0.7, 1.4), (1.3, 0.0), (0.0, 0.8), (0.0, 0.0)])
@pytest.mark.parametrize("pair", PAIRS)
def test_what_is_right_writes_p(pair: str, temperatures: tuple[float, float]) -> None:
    listed = trial(pair, *temperatures, top_k=3, top_p=0.95)
    for name in RIGHT:
        assert listed[name].exact
        assert listed[name].distance < 1e-12


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("name", [*RIGHT, *WRONG])
def test_an_entrants_chances_are_those_of_every_way_its_round_can_go(name: str, pair: str) -> None:
    entrant = trial(pair, 0.8, 0.6)[name]
    rule, p, q, drawn = entrant.rule, entrant.p, entrant.q, entrant.drawn
    np.testing.assert_allclose(entrant.law, first_token_law(rule, p, q, drawn), atol=1e-12)
    chances = expected(rule, p, q, drawn)
    np.testing.assert_allclose(chances.emitted, entrant.law, atol=1e-12)
    if rule.name != "block_verification":
        assert entrant.kept == pytest.approx(chances.kept.sum(), abs=1e-12)


def test_one_place_does_not_say_what_a_block_keeps() -> None:
    assert trial("B")["block_verification"].kept is None


def test_greedy_is_tried_with_both_rows_at_temperature_0() -> None:
    greedy = trial("B", 1.0, 1.0)["greedy"]
    assert [*greedy.p] == [1, 0, 0]
    assert [*greedy.q] == [0, 0, 1]
    assert greedy.kept == 0


def test_a_lie_that_happens_to_be_true_distorts_nothing_and_is_still_not_exact() -> None:
    lucky, caught = (trial("B", 1.0, heat)["q_before_temperature"] for heat in (1.0, 0.5))
    assert lucky.distance < 1e-12 < caught.distance
    assert not lucky.exact
    assert not caught.exact


def test_a_draft_that_is_looked_at_and_dropped_distorts_the_text() -> None:
    p = np.array([0.6, 0.3, 0.1])
    np.testing.assert_allclose(dropped_after_draw(p, p, 0.2), (0.66, 0.33, 0.01), atol=1e-12)
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])
    np.testing.assert_allclose(dropped_after_draw(p, q, 0.0), p, atol=1e-12)
    np.testing.assert_allclose(dropped_after_draw(p, q, 1.1), p, atol=1e-12)
    kept = np.array([0.0, 0.3, 0.2])
    np.testing.assert_allclose(dropped_after_draw(p, q, 0.3), kept + 0.3 * residual(p, q) + 0.2 * p, atol=1e-12)


# --- two tokens of a text ---------------------------------------------------------------------------------------------


def two_tokens(rule: Rule, p: Array, q: Array, gamma: int, drawn: Array) -> Array:
    """The oracle: every draft of a round, everything that can become of it, and a second round where it wrote one."""

    def begun(place: int) -> tuple[Array, Array]:
        alone, pair = np.zeros(vocab), np.zeros((vocab, vocab))
        for drafts in np.ndindex(*[vocab] * gamma):
            chance = np.prod([drawn[place + i, x] for i, x in enumerate(drafts)])
            ways = outcomes(rule, p[place : place + gamma + 1], q[place : place + gamma], drafts)
            for way, kept, closing in zip(chance * ways.chance, ways.kept, ways.closing, strict=True):
                if kept == 0:
                    alone += way * closing
                elif kept == 1:
                    pair[drafts[0]] += way * closing
                else:
                    pair[drafts[0], drafts[1]] += way
        return alone, pair

    vocab = p.shape[1]
    alone, pair = begun(0)
    next_alone, next_pair = begun(1)
    return pair + np.outer(alone, next_alone + next_pair.sum(axis=1))


@pytest.mark.parametrize("gamma", [1, 2, 3])
@pytest.mark.parametrize("name", [name for name in EVERY_RULE if name != "greedy"])
def test_the_chances_of_two_tokens_are_those_of_every_way_two_rounds_can_go(name: str, gamma: int) -> None:
    p, q = random_laws(gamma + 2, 2, seed=1), random_laws(gamma + 1, 2, seed=2)
    np.testing.assert_allclose(joint(EVERY_RULE[name], p, q, gamma), two_tokens(EVERY_RULE[name], p, q, gamma, q))


@pytest.mark.parametrize("gamma", [1, 2])
@pytest.mark.parametrize("name", ["speculative_sampling", "block_verification", "strike_out", "token_match"])
def test_two_tokens_of_a_lying_drafter_are_counted_by_what_it_draws(name: str, gamma: int) -> None:
    p, q, drawn = random_laws(gamma + 2, 3, 1), random_laws(gamma + 1, 3, 2), random_laws(gamma + 1, 3, 3)
    rule = EVERY_RULE[name]
    np.testing.assert_allclose(joint(rule, p, q, gamma, drawn), two_tokens(rule, p, q, gamma, drawn))


@pytest.mark.parametrize("gamma", [0, 1, 2, 3])
@pytest.mark.parametrize("name", SAMPLED)
def test_two_tokens_of_an_exact_rule_are_those_of_the_target_alone(name: str, gamma: int) -> None:
    p, q = random_laws(gamma + 2, 5, seed=4), random_laws(gamma + 1, 5, seed=5)
    np.testing.assert_allclose(joint(RULES[name], p, q, gamma), np.outer(p[0], p[1]), atol=1e-12)


@pytest.mark.parametrize("gamma", [0, 1, 2, 3])
def test_two_tokens_of_greedy_are_the_likeliest_ones(gamma: int) -> None:
    p, q = warp(random_laws(gamma + 2, 5, seed=4), 0.0), warp(random_laws(gamma + 1, 5, seed=5), 0.0)
    np.testing.assert_array_equal(joint(RULES["greedy"], p, q, gamma), np.outer(p[0], p[1]))


@pytest.mark.parametrize("gamma", [1, 2, 3])
@pytest.mark.parametrize("name", WRONG_RULES)
def test_two_tokens_of_a_wrong_rule_are_not(name: str, gamma: int) -> None:
    p, q = np.tile(PAIRS["B"][0], (gamma + 2, 1)), np.tile(PAIRS["B"][1], (gamma + 1, 1))
    law = joint(WRONG_RULES[name], p, q, gamma)
    assert law.sum() == pytest.approx(1)
    assert np.abs(law - np.outer(p[0], p[1])).sum() / 2 > 0.01


def test_twelve_tokens_and_three_drafts_are_enumerated_at_once() -> None:
    p, q = random_laws(5, 12, seed=6), random_laws(4, 12, seed=7)
    started = time.process_time()
    np.testing.assert_allclose(joint(RULES["block_verification"], p, q, 3), np.outer(p[0], p[1]), atol=1e-12)
    assert time.process_time() - started < 0.5


@pytest.mark.parametrize("gamma", [0, 1, 2, 3])
@pytest.mark.parametrize("name", EVERY_RULE)
def test_two_tokens_that_are_dealt_follow_their_chances(name: str, gamma: int) -> None:
    p, q = random_laws(gamma + 2, 4, seed=8), random_laws(gamma + 1, 4, seed=9)
    seen = deal_joint(EVERY_RULE[name], p, q, gamma, 40_000, seed=3)
    assert seen.sum() == 40_000
    assert compare(seen, joint(EVERY_RULE[name], p, q, gamma)).p_value > ODDS


def test_two_tokens_of_an_entrant_come_from_the_law_it_draws() -> None:
    lie = trial("B")["argmax_drafted_softmax_reported"]
    p, q, drawn = (np.tile(law, (4, 1)) for law in (lie.p, lie.q, lie.drawn))
    seen, law = deal_joint(lie, p, q, 2, 40_000, seed=3, drawn_places=drawn), joint(lie, p, q, 2, drawn)
    assert compare(seen, law).p_value > ODDS
    assert compare(seen, np.outer(p[0], p[1])).p_value < ODDS


class PlainResidual(BlockVerification):
    """Wrong: a block's correction comes from max(p - q, 0), whatever the block carried."""

    def verify(self, p: Array, q: Array, draft_ids: Array, noise: Any) -> Any:
        verdict = super().verify(p, q, draft_ids, noise)
        gamma = q.shape[0]
        closing = verdict.closing.id.copy()
        for place in range(1, gamma):
            here = verdict.kept == place
            line = np.cumsum(residual(p[place], q[place]))
            closing[here] = np.searchsorted(line, noise.residual(place)[here] * line[-1], side="right")
        return type(verdict)(verdict.kept, verdict.judgements, type(verdict.closing)(closing, None, lambda: closing))


class KeyedByPlace(BlockVerification):
    """Wrong: the round after a rejection meets the coins again that failed in the one before."""

    by_round = False


@pytest.mark.parametrize("rule", [PlainResidual(), KeyedByPlace()])
def test_two_tokens_show_what_one_does_not(rule: Rule) -> None:
    p, q = np.full((5, 4), 0.25), np.tile([0.4, 0.3, 0.2, 0.1], (4, 1))
    seen = deal_joint(rule, p, q, 3, 100_000, seed=1)
    assert compare(seen.sum(axis=1), p[0]).p_value > ODDS
    assert compare(seen, np.outer(p[0], p[1])).p_value < ODDS


def test_what_a_comparing_rule_keeps_is_counted_by_what_is_drawn() -> None:
    p, q, drawn = random_laws(3, 4, seed=10)
    for name in ("gumbel_coupling", "token_match", "match_then_redraw"):
        seen = deal(EVERY_RULE[name], p, q, 40_000, 3, drawn=drawn)
        chances = expected(EVERY_RULE[name], p, q, drawn)
        assert compare(seen.drafted, drawn).p_value > ODDS
        assert compare(np.append(seen.kept, seen.dealt), np.append(chances.kept, chances.dealt)).p_value > ODDS


# --- batches and libraries --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERY_RULE)
def test_batches_add_up_to_one_deal(name: str) -> None:
    rule, (p, q) = EVERY_RULE[name], random_laws(2, 6, seed=1)
    whole, parts = deal(rule, p, q, 900, 7), [deal(rule, p, q, n, 7, first=at) for at, n in ((0, 300), (300, 600))]
    for part in ("drafted", "kept", "dealt"):
        np.testing.assert_array_equal(sum(getattr(seen, part) for seen in parts), getattr(whole, part))
    ps, qs = random_laws(4, 3, seed=1), random_laws(3, 3, seed=2)
    both = [deal_joint(rule, ps, qs, 2, n, 7, first=at) for at, n in ((0, 300), (300, 600))]
    np.testing.assert_array_equal(sum(both), deal_joint(rule, ps, qs, 2, 900, 7))


@pytest.mark.parametrize("name", EVERY_RULE)
def test_a_deal_drafts_with_the_numbers_of_its_places(name: str) -> None:
    rule, (p, q) = EVERY_RULE[name], random_laws(2, 6, seed=1)
    draft_ids = np.broadcast_to(rule.draft(q, RoundNoise(7, 2 * np.arange(500), rule.by_round), 0), 500)
    np.testing.assert_array_equal(deal(rule, p, q, 500, 7).drafted, np.bincount(draft_ids, minlength=6))


class Watched(SpeculativeSampling):
    """Writes down where its rounds stand."""

    def __init__(self) -> None:
        self.starts: list[Array] = []

    def verify(self, p: Array, q: Array, draft_ids: Array, noise: Any) -> Any:
        self.starts.append(noise.position)
        return super().verify(p, q, draft_ids, noise)


def test_no_two_draws_share_a_number() -> None:
    p, q = random_laws(4, 3, seed=1), random_laws(3, 3, seed=2)
    at_one_place, over_two = Watched(), Watched()
    deal(at_one_place, p[0], q[0], 50, 7, first=10)
    (starts,) = at_one_place.starts
    assert np.diff(starts).min() > 1  # a draft and its bonus
    deal_joint(over_two, p, q, 2, 50, 7, first=10)
    one, two = over_two.starts
    np.testing.assert_array_equal(two, one + 1)
    assert np.diff(one).min() > 3  # two drafts and a bonus, one place on in the second round


@pytest.mark.parametrize("name", EVERY_RULE)
@both_libraries
def test_both_libraries_write_the_same_two_tokens(name: str, array: ToArray) -> None:
    rule, p, q = EVERY_RULE[name], random_laws(4, 3, seed=1), random_laws(3, 3, seed=2)
    np.testing.assert_array_equal(
        np.asarray(deal_joint(rule, array(p), array(q), 2, 500, 7)), deal_joint(rule, p, q, 2, 500, 7)
    )
    np.testing.assert_allclose(np.asarray(joint(rule, array(p), array(q), 2)), joint(rule, p, q, 2), atol=1e-12)


# --- counts against a law ---------------------------------------------------------------------------------------------

SEEDS = 200


def p_values(counts_of: Callable[[int], Array], law: Array) -> list[float]:
    return [compare(counts_of(seed), law).p_value for seed in range(SEEDS)]


def uniform_odds(values: list[float]) -> float:
    """Chance that so many uniform numbers look at least as uneven (Kolmogorov-Smirnov)."""
    return float(stats.kstest(values, "uniform").pvalue)


@pytest.mark.parametrize("name", [*SAMPLED, "drafter_at_0"])
def test_p_values_are_uniform_under_whatever_is_right(name: str) -> None:
    p, q = random_laws(2, 8, seed=12)
    listed = {e.name: e for e in entrants(log(p), log(q), temperature=1.0, drafter_temperature=1.0)}
    rule, q = listed[name].rule, listed[name].q
    assert uniform_odds(p_values(lambda seed: deal(rule, p, q, 4_000, seed).emitted, p)) > ODDS


@pytest.mark.parametrize("name", SAMPLED)
def test_p_values_of_two_tokens_are_uniform_too(name: str) -> None:
    p, q = random_laws(4, 3, seed=13), random_laws(3, 3, seed=14)
    law = np.outer(p[0], p[1])
    assert uniform_odds(p_values(lambda seed: deal_joint(RULES[name], p, q, 2, 2_000, seed), law)) > ODDS


def test_p_values_are_uniform_where_most_tokens_are_rare() -> None:
    p, q = (warp(scale * gumbel(seed, 0, 2_000), 1.0) for scale, seed in ((1.5, 1), (1.2, 2)))
    assert (4_000 * p < 5).mean() > 0.9
    rule = RULES["speculative_sampling"]
    assert uniform_odds(p_values(lambda seed: deal(rule, p, q, 4_000, seed).emitted, p)) > ODDS


def test_p_values_are_no_smaller_than_uniform_where_the_rare_are_too_rare_for_a_cell() -> None:
    law = np.array([0.7, 0.2996, 0.0003, 0.0001])
    generator = np.random.default_rng(1)
    values = p_values(lambda _: generator.multinomial(4_000, law), law)
    assert stats.kstest(values, "uniform", alternative="greater").pvalue > ODDS


@pytest.mark.parametrize("pair", ["issue", "B"])
@pytest.mark.parametrize("name", WRONG)
def test_whatever_is_wrong_is_found_out(name: str, pair: str) -> None:
    entrant = trial(pair, 1.0, 0.6)[name]
    assert entrant.distance > 0.02
    for seed in range(5):
        seen = deal(entrant.rule, entrant.p, entrant.q, 100_000, seed, drawn=entrant.drawn)
        found = compare(seen.emitted, entrant.p)
        assert found.p_value < 1e-12
        assert found.tv > found.floor[2]
        assert compare(seen.emitted, entrant.law).p_value > ODDS


def test_resampling_from_p_is_seen_as_it_is_written() -> None:
    entrant = trial("issue")["resample_from_p"]
    seen = deal(entrant.rule, entrant.p, entrant.q, 100_000, 1).emitted / 100_000
    np.testing.assert_allclose(seen, (0.66, 0.22, 0.06, 0.06), atol=0.008)


def test_what_cannot_come_must_not_come() -> None:
    law = np.array([0.5, 0.5, 0.0])
    assert compare(np.array([500, 500, 0]), law).p_value == 1
    assert compare(np.array([500, 499, 1]), law).p_value == 0
    assert compare(np.array([0, 0, 10]), law).p_value == 0


def test_what_hardly_ever_comes_is_found_out_where_there_is_one_cell_only() -> None:
    law = np.array([1 - 1e-9, 1e-9])
    sure = compare(np.array([1_000, 0]), law)
    assert (sure.p_value, sure.cells, sure.degrees) == (1, 1, 0)
    assert compare(np.array([999, 1]), law).p_value == pytest.approx(2e-6, rel=0.01)
    assert compare(np.array([600, 400]), law).p_value < 1e-300


@pytest.mark.parametrize("counts", [(1, 0), (0, 2), (2, 1), (4, 0)])
def test_a_handful_of_draws_tells_nothing(counts: tuple[int, int]) -> None:
    found = compare(np.array(counts), np.array([0.5, 0.5]))
    assert (found.p_value, found.cells, found.degrees) == (1, 1, 0)
    assert compare(np.array(counts), np.array([1.0, 0.0])).p_value == (counts[1] == 0)


def test_a_comparison_is_what_a_textbook_makes_of_it() -> None:
    law = np.array([0.5, 0.3, 0.19, 0.006, 0.004]) * 0.7 + np.array([0, 0, 0.3, 0, 0])
    seen = np.array([340, 220, 430, 6, 4])
    found = compare(seen, law)
    by_hand = stats.chisquare([340, 220, 430, 10], [350, 210, 433, 7])
    assert found == Comparison(
        1_000, pytest.approx(0.013), found.floor, pytest.approx(by_hand.statistic), 3, pytest.approx(by_hand.pvalue), 4
    )


def floor(law: Array, count: int) -> tuple[float, float, float]:
    """What :func:`compare` says of any counts that are so many."""
    seen = np.zeros(len(law), dtype=np.int64)
    seen[0] = count
    return compare(seen, law).floor


def tv_shown(law: Array, count: int) -> Array:
    """TV of many exact samples, drawn token by token."""
    return np.abs(np.random.default_rng(7).multinomial(count, law, size=4_000) / count - law).sum(axis=1) / 2


@pytest.mark.parametrize("count", [300, 20_000])
@pytest.mark.parametrize("first", [0.0, 0.5])
@pytest.mark.parametrize(("vocab", "sharpness"), [(2, 2), (3, 2), (40, 2), (1_500, 2), (1_500, 0.3)])
def test_the_noise_floor_is_what_exact_sampling_shows(vocab: int, sharpness: float, first: float, count: int) -> None:
    law = (1 - first) * warp(sharpness * gumbel(3, 0, vocab), 1.0)
    law[0] += first
    low, mean, high = floor(law, count)
    shown = tv_shown(law, count)
    assert mean == pytest.approx(shown.mean(), rel=0.05)
    for outside in ((shown < low).mean(), (shown > high).mean()):
        assert outside < 0.012
        assert outside > 0.001 or vocab < 40  # few tokens show few values, and the band ends on one


def test_the_noise_floor_of_a_whole_vocabulary_has_the_mean_that_its_binomials_have() -> None:
    law, count = warp(2 * gumbel(3, 0, 49_152), 1.0), 100_000
    above = np.floor(count * law) + 1
    ways = gammaln(count + 1) - gammaln(above + 1) - gammaln(count - above + 1)
    mass = np.exp(ways + above * np.log(law) + (count - above) * np.log1p(-law))
    mean = np.sum(above * (1 - law) * mass) / count  # De Moivre's mean deviation of a binomial
    assert floor(law, count)[1] == pytest.approx(mean, rel=0.005)


def test_what_is_certain_has_no_noise_floor() -> None:
    assert compare(np.array([7, 0]), np.array([1.0, 0.0])).floor == (0, 0, 0)


def test_a_law_is_compared_whatever_its_scale() -> None:
    seen, law = np.array([30, 70]), np.array([0.4, 0.6])
    assert compare(seen, 3 * law).p_value == pytest.approx(compare(seen, law).p_value)


# --- speed ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in [*RIGHT, *WRONG] if name != "gumbel_coupling"])
def test_a_verdict_over_a_whole_vocabulary_takes_less_than_a_second(name: str) -> None:
    p, q = 2 * gumbel(1, 0, 49_152), 2 * gumbel(1, 0, 49_152) + gumbel(2, 0, 49_152)
    (entrant,) = (e for e in entrants(p, q, temperature=1.0, drafter_temperature=0.8) if e.name == name)
    started = time.process_time()
    seen = deal(entrant.rule, entrant.p, entrant.q, 100_000, 1, drawn=entrant.drawn)
    found = compare(seen.emitted, entrant.p)
    assert time.process_time() - started < 1
    assert whole_count(entrant.rule, 49_152) == found.count == 100_000
    assert found.p_value > ODDS or not entrant.exact


@pytest.mark.parametrize("vocab", [1_000, 49_152])
def test_races_take_seconds_of_two_cores_and_no_more(vocab: int) -> None:
    rule = RULES["gumbel_coupling"]
    p, q = warp(2 * gumbel(1, 0, vocab), 1.0), warp(2 * gumbel(2, 0, vocab), 1.0)
    count = whole_count(rule, vocab)
    assert count == {1_000: 100_000, 49_152: 2_000}[vocab]
    started = time.process_time()
    seen = deal(rule, p, q, count, 1)
    assert time.process_time() - started < 3  # 1.2 s on a quiet machine, shared by two threads
    assert compare(seen.emitted, p).p_value > ODDS


def test_a_batch_is_never_larger_than_a_verdict_needs() -> None:
    for rule in EVERY_RULE.values():
        for vocab in (2, 1_000, 49_152, 262_144):
            assert 1 <= largest_batch(rule, vocab) <= 100_000


# --- refusals ---------------------------------------------------------------------------------------------------------


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(ValueError, match=r"one shape, got \(2,\) and \(3,\)"):
        compare(np.array([1, 2]), np.array([0.5, 0.3, 0.2]))
    with pytest.raises(ValueError, match="got 0 draws"):
        compare(np.array([0, 0]), np.array([0.5, 0.5]))
    with pytest.raises(ValueError, match="mass 0"):
        compare(np.array([1, 0]), np.array([0.0, 0.0]))


def test_two_rounds_need_their_laws() -> None:
    rule, p = RULES["speculative_sampling"], one_hot(np.array([0, 1, 2]), like=np.zeros(3))
    for gamma, named in ((-1, "gamma must be at least 0, got -1"), (2, "need 4 laws of the target and 3 of the")):
        with pytest.raises(ValueError, match=named):
            joint(rule, p, p, gamma)
        with pytest.raises(ValueError, match=named):
            deal_joint(rule, p, p, gamma, 10, 1)
    with pytest.raises(ValueError, match="count must be at least 1"):
        deal_joint(rule, p, p, 1, 0, 1)


def test_statistics_are_imported_when_counts_are_compared_and_not_before() -> None:
    script = "import sys, specviz.losslessness; sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
