"""Verification rules: what they keep, what they record, and the faults that others made."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax

from specviz import losslessness
from specviz.noise import RoundNoise
from specviz.probability import inverse_cdf, overlap, warp
from specviz.rules import RULES, WRONG_DRAFTS, WRONG_RULES, Rule, Verdict
from specviz.theory import block_expected_kept, expected_tokens
from tests.enumeration import FixedNoise, first_token_law, joint_law, outcomes
from tests.libraries import ToArray, both_libraries, close, equal

EVERY_RULE = {**RULES, **WRONG_RULES}
COIN_RULES = ["speculative_sampling", "block_verification", "resample_from_p", "strike_out"]
SAMPLING, BLOCK, GUMBEL = (RULES[name] for name in ("speculative_sampling", "block_verification", "gumbel_coupling"))
B = ([0.5, 0.3, 0.2], [0.2, 0.3, 0.5])
D = ([0.6, 0.4], [0.8, 0.2])
F = ([0.25] * 4, [0.4, 0.3, 0.2, 0.1])
"""Pairs of laws whose figures were worked out by hand."""


def laws(seed: int, gamma: int, vocab: int = 6) -> tuple[np.ndarray, np.ndarray]:
    """Laws of a round, zeros among them."""
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.full(vocab, 0.6), gamma + 1), rng.dirichlet(np.full(vocab, 0.6), gamma)
    p[0, 0] = 0
    q[:, 1] = 0
    return p / p.sum(axis=1, keepdims=True), q / q.sum(axis=1, keepdims=True)


def play(rule: Rule, p: Any, q: Any, seed: Any) -> tuple[Any, Verdict]:
    """Drafts and verdict of a round at position 5, for one seed or for an array of them."""
    noise = RoundNoise(seed, 5, by_round=rule.by_round, like=p)
    gamma = q.shape[0]
    drafts = [np.asarray(rule.draft(q[place], noise, place)) for place in range(gamma)]
    shape = np.shape(seed) if gamma else (*np.shape(seed), 0)
    draft_ids = np.stack([np.broadcast_to(d, np.shape(seed)) for d in drafts], axis=-1) if gamma else np.zeros(shape)
    draft_ids = draft_ids.astype(np.int64)
    return draft_ids, rule.verify(p, q, torch.as_tensor(draft_ids) if torch.is_tensor(p) else draft_ids, noise)


def one(p: Any, q: Any, drafted: int, **noise: Any) -> Verdict:
    """Speculative sampling on one draft with injected numbers."""
    fixed = FixedNoise(**{"residuals": np.array([0.5]), "targets": np.full(2, 0.5), **noise})
    p = np.asarray(p, dtype=float)
    return SAMPLING.verify(np.stack([p, p]), np.asarray([q], dtype=float), np.array([drafted]), fixed)


# --- what every rule promises -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", [0, 1, 4])
@pytest.mark.parametrize("name", EVERY_RULE)
def test_numpy_and_torch_give_one_verdict(name: str, gamma: int) -> None:
    p, q = laws(3, gamma)
    seeds = np.arange(200)
    ids, here = play(EVERY_RULE[name], p, q, seeds)
    other_ids, there = play(EVERY_RULE[name], torch.as_tensor(p), torch.as_tensor(q), torch.as_tensor(seeds))
    assert equal(ids, other_ids)
    assert equal(here.kept, there.kept)
    assert equal(here.closing.id, there.closing.id)
    assert close(here.closing.law(), there.closing.law())
    for field in ("accept_prob", "passed", "coin", "target_id", "weight"):
        mine, other = getattr(here.judgements, field), getattr(there.judgements, field)
        assert (mine is None) == (other is None)
        assert mine is None or close(mine, other)


@both_libraries
@pytest.mark.parametrize("gamma", [0, 1, 3])
@pytest.mark.parametrize("name", EVERY_RULE)
def test_many_runs_are_the_same_as_each_alone(array: ToArray, name: str, gamma: int) -> None:
    p, q = (array(law) for law in laws(4, gamma))
    rule, seeds = EVERY_RULE[name], np.arange(40)
    drafted, many = play(rule, p, q, array(seeds))
    for seed in range(40):
        drafted_alone, alone = play(rule, p, q, seed)
        assert equal(drafted_alone, drafted[seed])
        assert alone.closing.id.shape == () or name == "greedy"
        assert int(alone.kept) == int(np.broadcast_to(many.kept, 40)[seed])
        assert int(alone.closing.id) == int(np.broadcast_to(many.closing.id, 40)[seed])
        law = np.asarray(many.closing.law())
        assert close(alone.closing.law(), law[seed] if law.ndim == 2 else law)


@given(seed=st.integers(0, 10_000), gamma=st.integers(0, 5), name=st.sampled_from(sorted(EVERY_RULE)))
def test_a_verdict_is_within_its_ranges(seed: int, gamma: int, name: str) -> None:
    rule = EVERY_RULE[name]
    p, q = laws(seed, gamma)
    draft_ids, verdict = play(rule, p, q, seed)
    judgements, closing, kept = verdict.judgements, verdict.closing, int(verdict.kept)
    law = closing.law()
    assert 0 <= kept <= gamma
    assert judgements.accept_prob.shape == judgements.passed.shape == draft_ids.shape == (gamma,)
    assert np.all((judgements.accept_prob >= 0) & (judgements.accept_prob <= 1))
    assert (judgements.coin is None) != (judgements.target_id is None)
    assert (judgements.weight is not None) == (name == "block_verification")
    assert law.shape == (6,)
    assert law.sum() == pytest.approx(1, abs=1e-12)
    assert law[closing.id] > 0
    assert np.all(p[range(kept), draft_ids[:kept]] > 0), "kept what the target rules out"
    if judgements.coin is not None:
        assert equal(judgements.passed, judgements.coin < judgements.accept_prob)
    else:
        assert equal(judgements.passed, judgements.target_id == draft_ids)
    if closing.draw is not None:
        assert closing.id == inverse_cdf(law, closing.draw)
    passes = [*judgements.passed.tolist(), False]
    assert kept == (
        max([i + 1 for i in range(gamma) if passes[i]], default=0) if rule is BLOCK else passes.index(False)
    )


@pytest.mark.parametrize("name", EVERY_RULE)
def test_the_expected_acceptance_is_the_mean_over_drafts(name: str) -> None:
    """Before the draft is drawn, a draft is kept with chance sum q accept_prob."""
    for seed in range(20):
        p, q = laws(seed, 1)
        if name == "greedy":
            p, q = warp(np.log(p + 1e-9), 0.0), warp(np.log(q + 1e-9), 0.0)
        rule, any_noise = EVERY_RULE[name], RoundNoise(0, 0)
        bars = [rule.verify(p, q, np.array([x]), any_noise).judgements.accept_prob[0] for x in range(6)]
        expected = overlap(p[0], q[0]) if rule is BLOCK else rule.keep_probability(p[0], q[0])
        assert close(q[0] @ np.array(bars), expected)
    assert (EVERY_RULE[name].keep_probability(p, p) is None) == (name == "block_verification")


@both_libraries
@pytest.mark.parametrize("name", EVERY_RULE)
def test_the_emitted_law_is_what_enumeration_finds(array: ToArray, name: str) -> None:
    rule = EVERY_RULE[name]
    for seed in range(20):
        p, q = laws(seed, 1)
        emitted = np.asarray(rule.emitted_law(array(p[:1]), array(q)))[0]
        assert close(emitted, first_token_law(rule, p[0], q[0]))
        if rule.exact and name != "greedy":
            assert close(emitted, p[0])


@pytest.mark.parametrize("name", RULES)
def test_without_drafts_a_rule_is_plain_decoding(name: str) -> None:
    p = laws(1, 0)[0]
    _, verdict = play(RULES[name], p, np.zeros((0, 6)), 3)
    noise = RoundNoise(3, 5, by_round=RULES[name].by_round)
    choice = {"greedy": np.argmax(p[0]), "gumbel_coupling": np.argmax(np.log(p[0] + 1e-300) + noise.gumbel(0, 6))}
    assert int(verdict.kept) == 0
    assert int(verdict.closing.id) == int(choice.get(name, inverse_cdf(p[0], noise.target(0))))
    assert close(verdict.closing.law(), np.eye(6)[np.argmax(p[0])] if name == "greedy" else p[0])


@pytest.mark.parametrize("name", RULES)
def test_at_temperature_zero_every_rule_gives_the_rounds_of_greedy(name: str) -> None:
    for seed in range(30):
        p, q = laws(seed, 4, vocab=3)
        p, q = warp(np.log(p + 1e-9), 0.0), warp(np.log(q + 1e-9), 0.0)
        (ids, verdict), (greedy_ids, greedy) = play(RULES[name], p, q, seed), play(RULES["greedy"], p, q, seed)
        assert equal(ids, greedy_ids)
        assert (int(verdict.kept), int(verdict.closing.id)) == (int(greedy.kept), int(greedy.closing.id))
        judged = slice(0, int(greedy.kept) + 1)
        assert equal(verdict.judgements.accept_prob[judged], greedy.judgements.accept_prob[judged])


@pytest.mark.parametrize("name", ["greedy", "speculative_sampling", "gumbel_coupling", "block_verification"])
def test_a_drafter_equal_to_the_target_is_kept_whole(name: str) -> None:
    p, _ = laws(7, 5)
    _, verdict = play(RULES[name], p, p[:5], np.arange(300))
    assert np.all(verdict.kept == 5)


@pytest.mark.parametrize("name", RULES)
def test_disjoint_laws_keep_nothing(name: str) -> None:
    p, q = np.array([[0.5, 0.5, 0, 0]] * 4), np.array([[0, 0, 0.5, 0.5]] * 3)
    _, verdict = play(RULES[name], p, q, np.arange(300))
    assert np.all(verdict.kept == 0)
    assert np.all(verdict.judgements.accept_prob == 0)


@pytest.mark.parametrize("name", EVERY_RULE)
def test_shapes_that_do_not_fit_are_named(name: str) -> None:
    p, q = laws(1, 2)
    with pytest.raises(ValueError, match=r"2 drafts need .* got \(2, 6\) and \(2, 6\)"):
        EVERY_RULE[name].verify(p[:2], q, np.array([0, 1]), RoundNoise(0, 0))


def test_verification_never_asks_for_the_numbers_that_drew_the_drafts() -> None:
    """A correction from the noise of the rejected draft would give (.25, .25, 7/30, 4/15) on pair F."""
    p, q = np.array([F[0]] * 3), np.array([F[1]] * 2)
    fixed = {"coins": np.full(2, 0.9), "residuals": np.full(2, 0.5), "targets": np.full(3, 0.5)}
    for name in COIN_RULES:
        EVERY_RULE[name].verify(p, q, np.array([0, 1]), FixedNoise(**fixed))


def test_the_exact_rules_are_those_of_the_decoder() -> None:
    assert all(rule.exact for rule in RULES.values())
    assert not any(rule.exact for rule in WRONG_RULES.values())
    assert [name for name, rule in EVERY_RULE.items() if rule.by_round] == ["block_verification"]
    assert all(rule.name == name for name, rule in EVERY_RULE.items())


# --- block verification -----------------------------------------------------------------------------------------------


def test_a_later_draft_carries_earlier_ones() -> None:
    p, q = np.array([F[0]] * 3), np.array([F[1]] * 2)
    # Draft 0 has w = h_1 < 1; its coin fails, and draft 3 behind it is kept by its own.
    coins = np.array([0.99, 0.5])
    verdict = BLOCK.verify(p, q, np.array([0, 3]), FixedNoise(coins=coins, targets=np.full(3, 0.1)))
    assert verdict.judgements.passed.tolist() == [False, True]
    assert int(verdict.kept) == 2
    assert close(verdict.judgements.weight, [0.625, 1.0])


def test_while_the_weight_is_whole_every_bar_is_exactly_one() -> None:
    """Then no coin can fail: a bar just above or below 1 would be rounding."""
    for seed in range(200):
        p, q = laws(seed, 3)
        judgements = play(BLOCK, p, q, seed)[1].judgements
        whole = judgements.weight == 1
        assert equal(judgements.accept_prob[whole], np.ones(int(whole.sum())))


def test_with_one_draft_or_a_one_hot_drafter_the_block_is_speculative_sampling() -> None:
    p, q = laws(5, 1)
    for x in range(6):
        ways = [outcomes(rule, p, q, (x,)) for rule in (BLOCK, SAMPLING)]
        assert close(ways[0].chance, ways[1].chance)
        assert close(ways[0].closing, ways[1].closing)
    p = laws(2, 3, vocab=4)[0]
    certain = np.eye(4)[[3, 2, 3]]
    ways = [outcomes(rule, p, certain, (3, 2, 3)) for rule in (BLOCK, SAMPLING)]
    kept = [[way.chance[way.kept == k].sum() for k in range(4)] for way in ways]
    assert close(*kept)


def test_the_block_keeps_as_much_as_theory_says_and_never_less_than_single_verdicts() -> None:
    p, q = np.array(F)
    kept = np.zeros(3)
    for first in range(4):
        for second in range(4):
            ways = outcomes(BLOCK, np.stack([p] * 3), np.stack([q] * 2), (first, second))
            kept += q[first] * q[second] * np.bincount(ways.kept, ways.chance, minlength=3)
    assert close(kept, [0.2, 0.1175, 0.6825])
    assert kept @ range(3) == pytest.approx(block_expected_kept(p, q, 2), abs=1e-12)
    assert kept @ range(3) > expected_tokens(0.8, 2) - 1


def test_two_ways_to_read_the_block_rule_wrongly_are_told_apart() -> None:
    """Stopping at the first failed coin bends the first token; the residual without w bends only the joint law."""
    p, q = np.array(F)
    token_residual = np.array([0, 0, 1 / 4, 3 / 4])
    first, joint = np.zeros(4), np.zeros((4, 4, 4))
    for x, y in np.ndindex(4, 4):
        judgements = BLOCK.verify(np.stack([p] * 3), np.stack([q] * 2), np.array([x, y]), RoundNoise(0, 0)).judgements
        h, chance = judgements.accept_prob, q[x] * q[y]
        first[x] += chance * h[0]
        first += chance * (1 - h[0]) * token_residual
        both, one_kept = h[1], (1 - h[1]) * h[0]
        joint[x, y] += chance * both * p
        joint[x] += chance * one_kept * np.outer(token_residual, p)
        joint += chance * (1 - h[1]) * (1 - h[0]) * np.multiply.outer(token_residual, np.outer(p, p))
    assert close(first, [0.052173913, 0.123529412, 0.331074169, 0.493222506], 1e-8)
    assert np.abs(joint - 1 / 64).sum() / 2 == pytest.approx(0.011875, abs=1e-8)
    right = joint_law(BLOCK, lambda text: p, lambda text: q, 2)
    assert close(right, np.full((4, 4, 4), 1 / 64))


# --- faults that others made ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("pair", "emitted"), [(D, [0.75, 0.25]), (B, [0.6, 0.0, 0.4])])
def test_a_drafter_that_takes_its_argmax_but_reports_its_softmax_bends_the_text(
    pair: tuple[list[float], list[float]], emitted: list[float]
) -> None:
    p, q = np.array(pair)
    lie = WRONG_DRAFTS["argmax_drafted_softmax_reported"]
    drawn_from, reported = lie.laws(np.log(q), 1.0)
    assert close(reported, q)
    assert close(drawn_from, np.eye(len(q))[np.argmax(q)])
    assert close(lie.emitted_law(p, np.log(q), 1.0), emitted)
    assert close(first_token_law(SAMPLING, p, reported, drawn_from), emitted)
    # Reported as what it is, the same draft bends nothing.
    assert close(first_token_law(SAMPLING, p, drawn_from), p)
    assert close(SAMPLING.keep_probability(p, drawn_from), p[np.argmax(q)])


def test_a_law_reported_before_top_k_bends_the_text() -> None:
    drafter, target = np.array([[3, 2.6, 2.2, 1, 0.6, 0.2, 0, -0.4], [2, 2.4, 2.8, 1, 0.6, 0.2, 0, -0.4]])
    p, q, unfiltered = warp(target, 1.0, 3), warp(drafter, 1.0, 3), warp(drafter, 1.0)
    assert close(q, [0.471776221, 0.316241058, 0.211982721, 0, 0, 0, 0, 0], 1e-8)
    assert close(p, [0.211982721, 0.316241058, 0.471776221, 0, 0, 0, 0, 0], 1e-8)
    assert close(first_token_law(SAMPLING, p, q), p)
    assert float(SAMPLING.keep_probability(p, q)) == pytest.approx(0.7402065, abs=1e-8)
    faulty = [0.248988195, 0.347193536, 0.403818268, 0, 0, 0, 0, 0]
    assert close(first_token_law(SAMPLING, p, unfiltered, drawn=q), faulty, 1e-8)


def test_a_law_reported_before_temperature_bends_the_text() -> None:
    p, logits = np.array(F[0]), np.log(F[1])
    lie = WRONG_DRAFTS["q_before_temperature"]
    drawn_from, reported = lie.laws(logits, 0.5)
    assert close(drawn_from, np.square(F[1]) / np.square(F[1]).sum())
    assert close(reported, F[1])
    bent = first_token_law(SAMPLING, p, reported, drawn_from)
    assert close(lie.emitted_law(p, logits, 0.5), bent)
    assert np.abs(bent - p).sum() / 2 > 0.05
    assert close(lie.emitted_law(p, logits, 1.0), p), "at temperature 1 the report is true"


def test_drawn_in_bf16_and_scored_in_fp32_bends_the_text() -> None:
    drafter = torch.tensor([20.06, 20.0, 19.94, 12.0])
    p = warp(np.array([19.5, 20.1, 20.0, 13.0]), 1.0)
    q, q_bf16 = (np.asarray(warp(logits, 1.0)) for logits in (drafter, drafter.bfloat16()))
    assert close(q, [0.353481684, 0.332896513, 0.313510129, 0.000111674], 1e-6)
    assert close(q_bf16, [0.333296064, 0.333296064, 0.333296064, 0.000111808], 1e-8)
    assert close(first_token_law(SAMPLING, p, q), p)
    faulty = [0.210827916, 0.403563162, 0.385285444, 0.000323478]
    assert close(first_token_law(SAMPLING, p, q, drawn=q_bf16), faulty, 1e-6)


def test_the_residual_is_divided_by_its_sum_not_pushed_through_a_softmax() -> None:
    p, q = D
    closing = one(p, q, drafted=0, coins=np.array([0.76])).closing
    assert close(closing.law(), [0, 1])
    assert not close(closing.law(), softmax([0.0, 0.2]), 0.1)
    assert close(first_token_law(SAMPLING, p, q), p)


def test_the_correction_has_no_floor_however_large_the_vocabulary() -> None:
    p, q = np.zeros((2, 151_936))
    p[7] = q[3] = 1.0
    verdict = one(p, q, drafted=3, coins=np.array([0.5]), residuals=np.array([1 - 2.0**-53]))
    assert (int(verdict.kept), int(verdict.closing.id)) == (0, 7)
    assert float(verdict.closing.law()[7]) == 1.0


def test_a_rejection_without_a_residual_falls_back_to_p() -> None:
    p = [0.5, 0.3, 0.2]
    verdict = one(p, p, drafted=1, coins=np.array([1.0]))
    assert int(verdict.kept) == 0
    assert equal(verdict.closing.law(), p)


def test_a_coin_of_zero_does_not_save_what_the_target_rules_out() -> None:
    verdict = one([0.0, 1.0], [1.0, 0.0], drafted=0, coins=np.array([0.0]))
    assert (int(verdict.kept), int(verdict.closing.id)) == (0, 1)
    assert equal(verdict.closing.law(), [0, 1])


def test_waiting_for_an_equal_sample_is_exact_but_slow() -> None:
    p = np.array(B[0])
    kept = {name: float(RULES[name].keep_probability(p, p)) for name in RULES if name not in ("greedy", BLOCK.name)}
    assert kept == pytest.approx({"speculative_sampling": 1.0, "gumbel_coupling": 1.0, "token_match": 0.38})
    assert all(close(first_token_law(RULES[name], p, p), p) for name in kept)


def test_redrawing_after_a_mismatch_pulls_towards_agreement() -> None:
    p, q = (np.array(law) for law in D)
    assert close(first_token_law(RULES["token_match"], p, q), [0.6, 0.4])
    assert float(RULES["token_match"].keep_probability(p, q)) == pytest.approx(0.56)
    assert close(WRONG_RULES["match_then_redraw"].emitted_law(p, q), [0.744, 0.256])


def test_a_correction_from_p_deals_the_shared_part_twice() -> None:
    assert close(WRONG_RULES["resample_from_p"].emitted_law(*map(np.array, D)), [0.72, 0.28])


def test_striking_out_the_draft_belongs_to_a_one_hot_drafter() -> None:
    p, q = (np.array(law) for law in B)
    strike_out = WRONG_RULES["strike_out"]
    assert float(strike_out.keep_probability(p, q)) == pytest.approx(0.7)
    assert close(strike_out.emitted_law(p, q), [0.3875, 0.4125, 0.2])
    assert close(strike_out.emitted_law(p, np.eye(3)[2]), p)


@pytest.mark.parametrize(
    ("p", "q", "drawn"),
    [
        ([1, 0], [0, 1], [1, 0]),
        ([1, 0], [0, 1], [0.5, 0.5]),
        ([0, 1, 0], [0.5, 0, 0.5], [0.25, 0.5, 0.25]),
        ([1, 1e-20], [0, 1], [1, 0]),
        ([0.7, 0.2, 0.1], [0.1, 0.9, 0], [0.2, 0.2, 0.6]),
    ],
)
def test_striking_out_follows_its_own_law_even_where_a_lying_drafter_leaves_nothing(
    p: list[float], q: list[float], drawn: list[float]
) -> None:
    laws = [np.array(law, dtype=np.float64) for law in (p, q, drawn)]
    rule = WRONG_RULES["strike_out"]
    law = rule.emitted_law(*laws)
    seen = losslessness.deal(rule, *laws[:2], 20_000, 1, drawn=laws[2]).emitted
    assert law.sum() == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(seen / 20_000, law, atol=0.02)


@pytest.mark.parametrize("temperature", [0.0, 1e-8, 1e-6, 1e-5])
@pytest.mark.parametrize("name", RULES)
def test_drafting_and_verifying_agree_on_what_greedy_is(name: str, temperature: float) -> None:
    p = warp(np.array([[1.0, 1.5, -2.0]] * 2), temperature)
    q = warp(np.array([[1.2, 1.0, 0.5]]), temperature)
    ids, verdict = play(RULES[name], p, q, 0)
    assert (ids.tolist(), int(verdict.kept), int(verdict.closing.id)) == ([0], 0, 1)


@pytest.mark.parametrize("logits", [[1.0, 1.0, 0.0], [0.0, 2.0, 2.0], [5.0, 5.0, 5.0]])
def test_an_exact_tie_falls_alike_in_drafting_verification_bonus_and_plain_decoding(logits: list[float]) -> None:
    law = warp(np.array([logits]), 0.0)
    for rule in RULES.values():
        ids, verdict = play(rule, np.concatenate([law, law]), law, 0)
        _, plain = play(rule, law, law[:0], 0)
        assert ids[0] == int(verdict.closing.id) == int(plain.closing.id) == int(np.argmax(logits))
        assert int(verdict.kept) == 1


def test_a_fixed_list_of_candidates_is_exact() -> None:
    """Candidates chosen without a look at the target are one-hot drafts, tried against what is left of p."""
    p = np.array([0.5, 0.3, 0.2])
    emitted, left, kept = np.zeros(3), 1.0, []
    for candidate in (2, 1):
        verdict = one(p, np.eye(3)[candidate], drafted=candidate, coins=np.array([1.0]))
        accept = float(verdict.judgements.accept_prob[0])
        kept.append(left * accept)
        emitted[candidate] += left * accept
        left, p = left * (1 - accept), verdict.closing.law()
        if candidate == 2:
            assert close(p, [0.625, 0.375, 0])
    assert sum(kept) == pytest.approx(0.5)
    assert close(emitted + left * p, [0.5, 0.3, 0.2])


# --- Gumbel coupling --------------------------------------------------------------------------------------------------

EXPONENTIALS = np.array(
    [[0.9, 0.5, 1.1], [0.2, 1.4, 0.8], [1.3, 0.7, 0.3], [0.6, 0.4, 0.9], [1.0, 0.35, 0.5], [0.25, 0.6, 2.0]]
)
P_BY_POSITION = np.array(
    [[0.5, 0.3, 0.2], [0.2, 0.5, 0.3], [0.3, 0.3, 0.4], [0.6, 0.2, 0.2], [0.1, 0.6, 0.3], [0.4, 0.4, 0.2]]
)
Q_BY_POSITION = np.array(
    [[0.4, 0.4, 0.2], [0.5, 0.3, 0.2], [0.2, 0.2, 0.6], [0.3, 0.4, 0.3], [0.2, 0.5, 0.3], [0.2, 0.6, 0.2]]
)


@pytest.mark.parametrize(
    ("gamma", "rounds"),
    [
        (0, [(0, 0)] * 6),
        (1, [(1, 1), (1, 1), (1, 1)]),
        (2, [(2, 2), (2, 0), (1, 1)]),
        (5, [(5, 3), (1, 1)]),
    ],
)
def test_with_noise_by_position_the_text_is_one_whatever_gamma(gamma: int, rounds: list[tuple[int, int]]) -> None:
    text: list[int] = []
    seen = []
    while len(text) < 6:
        here = slice(len(text), 6)
        drafted = min(gamma, 6 - len(text) - 1)
        noise = FixedNoise(gumbels=-np.log(EXPONENTIALS[here]))
        p, q = P_BY_POSITION[here][: drafted + 1], Q_BY_POSITION[here][:drafted]
        ids = np.array([GUMBEL.draft(q[place], noise, place) for place in range(drafted)], dtype=np.int64)
        assert ids.tolist() == [1, 0, 2, 1, 1, 1][here][:drafted]
        verdict = GUMBEL.verify(p, q, ids, noise)
        kept = int(verdict.kept)
        text += [*ids[:kept].tolist(), int(verdict.closing.id)]
        seen.append((drafted, kept))
    assert text == [1, 0, 2, 0, 1, 0]
    assert seen == rounds


@both_libraries
def test_a_token_without_probability_loses_every_race(array: ToArray) -> None:
    lowest, highest = 2.0**-53, 1 - 2.0**-53
    for law, uniforms in [
        ([0.5, 0, 0.5], [lowest, 0.3, 0.6]),
        ([0.5, 0, 0.5], [0.3, lowest, 0.6]),
        ([0.5, 0, 0.5], [lowest, highest, lowest]),
        ([0.5, 0, 0.5], [highest, 0.3, 0.6]),
        ([0, 0, 1], [0.999999, 0.999999, 1e-12]),
    ]:
        gumbels = -np.log(-np.log(uniforms))
        assert np.all(np.isfinite(gumbels))
        noise = FixedNoise(gumbels=array(gumbels[None]))
        row = array(np.array(law, dtype=float))
        assert law[int(GUMBEL.draft(row, noise, 0))] > 0
        assert (
            law[int(GUMBEL.verify(row[None], row[None][:0], array(np.zeros(0, dtype=np.int64)), noise).closing.id)] > 0
        )


@pytest.mark.parametrize("tiny", [1e-300, 5e-324])
def test_the_race_survives_tiny_probabilities(tiny: float) -> None:
    p, q = np.array([[tiny, 1 - tiny, 0.0]] * 2), np.array([[0.5, tiny, 0.5]])
    for x in range(3):
        accept = GUMBEL.verify(p, q, np.array([x]), RoundNoise(0, 0)).judgements.accept_prob[0]
        assert 0 <= accept <= 1
    assert 0 <= float(GUMBEL.keep_probability(p[0], q[0])) <= 1
    alike = np.array([[tiny, 0.5, 0.5]] * 2)
    same = GUMBEL.verify(alike, alike[:1], np.array([0]), RoundNoise(0, 0))
    assert same.judgements.accept_prob[0] == pytest.approx(1)
