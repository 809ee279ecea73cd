"""One place in chances and in many draws: both are what the rules do, and a wrong rule shows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from specviz import losslessness
from specviz.losslessness import Outcome, deal, expected, noise_band
from specviz.rules import RULES, WRONG_RULES, Rule
from tests.enumeration import outcomes
from tests.libraries import ToArray, both_libraries

Array = np.ndarray[Any, Any]

EVERY_RULE = RULES | WRONG_RULES
SAMPLED = [name for name in RULES if name != "greedy"]
PAIRS = {
    "B": ((0.5, 0.3, 0.2), (0.2, 0.3, 0.5)),
    "C": ((0.5, 0.5, 0.0), (0.5, 0.0, 0.5)),
    "F": ((0.25, 0.25, 0.25, 0.25), (0.4, 0.3, 0.2, 0.1)),
    "disjoint": ((1.0, 0.0, 0.0), (0.0, 0.5, 0.5)),
    "equal": ((0.5, 0.3, 0.2), (0.5, 0.3, 0.2)),
    "copied": ((0.5, 0.3, 0.2), (0.0, 0.0, 1.0)),
}
ODDS = 1e-6
"""Chance of a false alarm of every test that draws; seeds are fixed, so that it happened or never will."""


def laws(pair: str) -> tuple[Array, Array]:
    p, q = PAIRS[pair]
    return np.array(p), np.array(q)


def enumerated(rule: Rule, p: Array, q: Array) -> Outcome:
    """Every draft and everything that can become of it."""
    kept, dealt = np.zeros_like(p), np.zeros_like(p)
    for draft in np.flatnonzero(q):
        ways = outcomes(rule, np.stack([p, p]), q[None], (int(draft),))
        kept[draft] = q[draft] * ways.chance[ways.kept == 1].sum()
        dealt += q[draft] * (ways.chance[ways.kept == 0] @ ways.closing[ways.kept == 0])
    return Outcome(q, kept, dealt)


def false_alarm_odds(observed: Array, law: Array, count: int) -> float:
    """Chance of a chi-square at least this large if ``observed``, out of ``count``, followed ``law``."""
    observed, chances = np.append(observed, count - observed.sum()), np.append(law, max(1 - law.sum(), 0.0))
    assert not observed[chances < 1e-12].any(), "what has no chance was seen"
    observed, means = observed[chances >= 1e-12], count * chances[chances >= 1e-12]
    return float(stats.chisquare(observed, means * observed.sum() / means.sum()).pvalue) if len(means) > 1 else 1.0


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("name", EVERY_RULE)
def test_chances_are_those_of_every_way_a_round_can_go(name: str, pair: str) -> None:
    p, q = laws(pair)
    told, counted = expected(EVERY_RULE[name], p, q), enumerated(EVERY_RULE[name], p, q)
    for part in ("drafted", "kept", "dealt"):
        np.testing.assert_allclose(getattr(told, part), getattr(counted, part), atol=1e-12)


@pytest.mark.parametrize("name", SAMPLED)
@pytest.mark.parametrize("pair", PAIRS)
def test_an_exact_rule_writes_p(name: str, pair: str) -> None:
    p, q = laws(pair)
    np.testing.assert_allclose(expected(RULES[name], p, q).emitted, p, atol=1e-12)


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("name", [name for name in EVERY_RULE if name != "greedy"])
def test_what_is_dealt_follows_the_chances(name: str, pair: str) -> None:
    p, q = laws(pair)
    rule, count = EVERY_RULE[name], 20_000
    seen, chances = deal(rule, p, q, count, seed=11), expected(rule, p, q)
    assert seen.drafted.sum() == seen.emitted.sum() == count
    for part in ("drafted", "kept", "dealt"):
        assert false_alarm_odds(getattr(seen, part), getattr(chances, part), count) > ODDS


@pytest.mark.parametrize("name", SAMPLED)
def test_an_exact_rule_passes_and_a_wrong_one_fails_the_same_test(name: str) -> None:
    p, q = laws("B")
    assert false_alarm_odds(deal(RULES[name], p, q, 20_000, seed=3).emitted, p, 20_000) > ODDS
    for wrong in WRONG_RULES.values():
        assert false_alarm_odds(deal(wrong, p, q, 20_000, seed=3).emitted, p, 20_000) < ODDS


def test_greedy_leaves_nothing_to_chance() -> None:
    p, q = np.eye(3)[1], np.eye(3)[2]
    seen = deal(RULES["greedy"], p, q, 10, seed=0)
    assert [*seen.drafted] == [0, 0, 10]
    assert [*seen.emitted] == [0, 10, 0]
    assert not seen.kept.any()


@pytest.mark.parametrize("name", EVERY_RULE)
def test_a_deal_depends_on_its_seed_and_not_on_how_many_are_made_at_once(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    p, q = laws("F")
    once = deal(EVERY_RULE[name], p, q, 1_000, seed=5)
    other = deal(EVERY_RULE[name], p, q, 1_000, seed=6)
    monkeypatch.setattr(losslessness, "_TOGETHER", 7)
    monkeypatch.setattr(losslessness, "_CELLS", 1)
    again = deal(EVERY_RULE[name], p, q, 1_000, seed=5)
    for part in ("drafted", "kept", "dealt"):
        np.testing.assert_array_equal(getattr(again, part), getattr(once, part))
    assert name == "greedy" or (other.drafted != once.drafted).any()


@pytest.mark.parametrize("name", EVERY_RULE)
@both_libraries
def test_both_libraries_deal_the_same(name: str, array: ToArray) -> None:
    p, q = laws("F")
    here = deal(EVERY_RULE[name], p, q, 500, seed=5)
    there = deal(EVERY_RULE[name], array(p), array(q), 500, seed=5)
    for part in ("drafted", "kept", "dealt"):
        np.testing.assert_array_equal(np.asarray(getattr(there, part)), getattr(here, part))


@pytest.mark.parametrize("miss", [0.2, 0.01, 1e-5])
@pytest.mark.parametrize("count", [1, 7, 100, 100_000])
@pytest.mark.parametrize("chance", [1e-6, 0.003, 0.25, 0.5, 0.999])
def test_the_noise_band_is_the_narrowest_that_chance_seldom_leaves(chance: float, count: int, miss: float) -> None:
    low, high = noise_band(chance, count, miss)
    law, half = stats.binom(count, chance), miss / 2 * (1 + 1e-6)
    assert law.cdf(low - 1) <= half
    assert law.sf(high) <= half
    assert law.cdf(low) > half * (1 - 2e-6)
    assert high == 0 or law.sf(high - 1) > half * (1 - 2e-6)


def test_what_is_certain_has_no_noise() -> None:
    assert noise_band(0.0, 50, 0.01) == (0, 0)
    assert noise_band(1.0, 50, 0.01) == (50, 50)


def test_what_cannot_be_dealt_is_refused() -> None:
    p, q = laws("B")
    with pytest.raises(ValueError, match="count must be at least 1"):
        deal(RULES["speculative_sampling"], p, q, 0, seed=1)
    for chance, count, miss in ((1.1, 10, 0.1), (0.5, 0, 0.1), (0.5, 10, 0.0)):
        with pytest.raises(ValueError, match="chance must be"):
            noise_band(chance, count, miss)
