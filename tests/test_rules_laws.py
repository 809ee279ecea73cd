"""The law of the text under every rule: exact by enumeration, and sampled through the real noise.

Enumeration proves the rules but does not see the noise, so the joint law of several tokens over several rounds is
sampled too and held against the target's by chi-square. The seeds are fixed: a test passes always or never. At the
bound used, a right rule under fresh seeds would fail with odds of 1e-6.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from specviz.noise import RoundNoise
from specviz.probability import warp
from specviz.rules import RULES, WRONG_DRAFTS, WRONG_RULES, Rule
from tests.enumeration import alone, joint_law

VOCAB = 4
ODDS = 1e-6
Array = np.ndarray[Any, Any]


# --- by enumeration ---------------------------------------------------------------------------------------------------


def laws_after_every_text(seed: int, sharpness: float) -> Callable[[tuple[int, ...]], Array]:
    """A law of its own behind every text, some with zeros."""

    def law_after(text: tuple[int, ...]) -> Array:
        rng = np.random.default_rng([seed, *text, 99])
        p = rng.dirichlet(np.full(VOCAB, 1 / sharpness))
        if rng.random() < 0.3:
            p[rng.integers(VOCAB)] = 0
        return p / p.sum()

    return law_after


P_AFTER, Q_AFTER = laws_after_every_text(1, 1.0), laws_after_every_text(2, 0.7)


def certain_after(text: tuple[int, ...]) -> Array:
    return np.eye(VOCAB)[np.argmax(P_AFTER(text))]


@pytest.mark.parametrize("gamma", [0, 1, 2, 3])
@pytest.mark.parametrize("name", [name for name in RULES if name != "greedy"])
def test_the_text_of_an_exact_rule_follows_the_target(name: str, gamma: int) -> None:
    law = joint_law(RULES[name], P_AFTER, Q_AFTER, gamma)
    np.testing.assert_allclose(law, alone(P_AFTER, (), gamma + 1), rtol=0, atol=1e-12)


@pytest.mark.parametrize("gamma", [0, 1, 2, 3])
@pytest.mark.parametrize("name", RULES)
def test_at_temperature_zero_every_exact_rule_is_greedy(name: str, gamma: int) -> None:
    law = joint_law(RULES[name], certain_after, lambda text: np.eye(VOCAB)[np.argmax(Q_AFTER(text))], gamma)
    np.testing.assert_array_equal(law, alone(certain_after, (), gamma + 1))


@pytest.mark.parametrize("gamma", [1, 2, 3])
@pytest.mark.parametrize("name", WRONG_RULES)
def test_the_text_of_a_wrong_rule_does_not(name: str, gamma: int) -> None:
    law = joint_law(WRONG_RULES[name], P_AFTER, Q_AFTER, gamma)
    assert law.sum() == pytest.approx(1, abs=1e-12)
    assert np.abs(law - alone(P_AFTER, (), gamma + 1)).sum() / 2 > 0.01


# --- by sampling ------------------------------------------------------------------------------------------------------

RUNS = 200_000
TARGET_LOGITS = np.log([[4, 3, 2, 1], [1, 2, 3, 2], [2, 2, 1, 3], [3, 1, 2, 2]])
DRAFTER_LOGITS = np.log([[1, 3, 2, 3], [2, 2, 1, 2], [3, 1, 2, 1], [1, 2, 1, 3]])
"""Row by previous token: what comes next depends on what was emitted."""
P, Q = warp(TARGET_LOGITS, 1.0), warp(DRAFTER_LOGITS, 1.0)


def texts(
    rule: Rule,
    gamma: int,
    length: int,
    *,
    q: Array = Q,
    drawn_from: Array | None = None,
    by_round: bool | None = None,
    runs: int = RUNS,
) -> Array:
    """What ``runs`` runs, one a seed, emit after token 0: shape (runs, length). Rounds go on until all have ``length``.

    The rule sees one round's laws for all its runs, so runs are grouped by the tokens those laws depend on.
    """
    drawn_from = q if drawn_from is None else drawn_from
    by_round = rule.by_round if by_round is None else by_round
    emitted = np.zeros((runs, length + gamma + 1), dtype=np.int64)
    emitted_count = np.zeros(runs, dtype=np.int64)
    while len(running := np.flatnonzero(emitted_count < length)):
        start = emitted_count[running]
        previous = np.where(start > 0, emitted[running, start - 1], 0)
        context = np.concatenate([previous[:, None], np.zeros((len(running), gamma), dtype=np.int64)], axis=1)
        noise = RoundNoise(running, start, by_round=by_round)
        for place in range(gamma):
            context[:, place + 1] = rule.draft(drawn_from[context[:, place]], noise, place)
        shape = (VOCAB,) * (gamma + 1)
        group_of = np.ravel_multi_index(tuple(context.T), shape)
        for group in np.unique(group_of):
            members = np.flatnonzero(group_of == group)
            tokens = np.array(np.unravel_index(group, shape))
            seeds, starts = running[members], start[members]
            noise = RoundNoise(seeds, starts, by_round=by_round)
            verdict = rule.verify(P[tokens], q[tokens[:-1]], tokens[1:], noise)
            emitted[seeds[:, None], starts[:, None] + np.arange(gamma)] = tokens[1:]
            emitted[seeds, starts + verdict.kept] = verdict.closing.id
            emitted_count[seeds] += verdict.kept + 1
    return emitted[:, :length]


def false_alarm_odds(sample: Array) -> float:
    """Chance of a chi-square at least this large if the texts followed the target's joint law."""
    length = sample.shape[1]
    expected = len(sample) * alone(lambda text: P[text[-1] if text else 0], (), length).ravel()
    observed = np.bincount(np.ravel_multi_index(tuple(sample.T), (VOCAB,) * length), minlength=expected.size)
    # Cells that expect fewer than five runs are counted together.
    rare = expected < 5
    if rare.any():
        expected = np.append(expected[~rare], expected[rare].sum())
        observed = np.append(observed[~rare], observed[rare].sum())
    return float(stats.chisquare(observed, expected).pvalue)


def tokens_over_two_rounds(gamma: int) -> int:
    """At least four, and more than one round can bring."""
    return max(4, gamma + 2)


@pytest.mark.parametrize("gamma", [1, 2, 3])
@pytest.mark.parametrize("name", [name for name in RULES if name != "greedy"])
def test_sampled_texts_of_an_exact_rule_follow_the_target(name: str, gamma: int) -> None:
    assert false_alarm_odds(texts(RULES[name], gamma, tokens_over_two_rounds(gamma))) > ODDS


@pytest.mark.parametrize("gamma", [1, 2, 3])
@pytest.mark.parametrize("name", WRONG_RULES)
def test_sampled_texts_of_a_wrong_rule_do_not(name: str, gamma: int) -> None:
    assert false_alarm_odds(texts(WRONG_RULES[name], gamma, tokens_over_two_rounds(gamma))) < ODDS


@pytest.mark.parametrize("gamma", [1, 2, 3])
@pytest.mark.parametrize("name", WRONG_DRAFTS)
@pytest.mark.parametrize("rule", ["speculative_sampling", "block_verification"])
def test_sampled_texts_of_a_lying_drafter_do_not(rule: str, name: str, gamma: int) -> None:
    drawn_from, reported = WRONG_DRAFTS[name].laws(DRAFTER_LOGITS, 0.6)
    sample = texts(RULES[rule], gamma, tokens_over_two_rounds(gamma), q=reported, drawn_from=drawn_from)
    assert false_alarm_odds(sample) < ODDS


@pytest.mark.parametrize("gamma", [2, 3])
def test_block_verification_keyed_by_position_alone_is_biased_over_rounds(gamma: int) -> None:
    sample = texts(RULES["block_verification"], gamma, tokens_over_two_rounds(gamma), by_round=False)
    assert false_alarm_odds(sample) < ODDS


def test_the_first_round_alone_would_not_show_it() -> None:
    assert false_alarm_odds(texts(RULES["block_verification"], 2, 1, by_round=False)) > ODDS


@pytest.mark.parametrize("name", ["gumbel_coupling", "token_match"])
def test_the_text_of_a_matching_rule_depends_on_target_and_seed_only(name: str) -> None:
    plain = texts(RULES[name], 0, 6, runs=500)
    for gamma, q in ((1, Q), (2, Q), (3, Q), (2, P), (2, warp(DRAFTER_LOGITS, 0.3)), (3, np.eye(VOCAB))):
        np.testing.assert_array_equal(texts(RULES[name], gamma, 6, q=q, runs=500), plain)


@pytest.mark.parametrize("name", RULES)
def test_one_seed_gives_one_text_whatever_else_runs(name: str) -> None:
    together = texts(RULES[name], 2, 6, runs=50)
    np.testing.assert_array_equal(texts(RULES[name], 2, 6, runs=7), together[:7])


@pytest.mark.parametrize("gamma", [1, 2, 3])
def test_greedy_texts_are_the_targets_likeliest_path(gamma: int) -> None:
    path = [0]
    for _ in range(8):
        path.append(int(np.argmax(P[path[-1]])))
    np.testing.assert_array_equal(texts(RULES["greedy"], gamma, 8, runs=3), [path[1:]] * 3)
