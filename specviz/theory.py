"""What should happen: tokens a read, speed-up, the best gamma, and the chance that coupled models agree.

alpha is the chance that a draft is kept, taken as independent and equal at every position (the assumption of Leviathan
et al. 2023, arXiv 2211.17192); c is the time of one drafter step over that of one target pass. Where measured seconds
exist, :func:`measured_speedup` needs neither assumption.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from array_api_compat import array_namespace

from specviz.probability import Array, overlap, total_variation


def expected_tokens(alpha: float, gamma: int) -> float:
    """Tokens a target pass brings, closing token included: 1 + alpha + ... + alpha**gamma, in [1, gamma + 1].

    Source: Leviathan et al. 2023, equation 1; summed, so that alpha = 1 needs no care.

    Raises:
        ValueError: alpha is not in [0, 1], or gamma is negative.
    """
    _check(alpha, gamma)
    return math.fsum(alpha**i for i in range(gamma + 1))


def speedup(alpha: float, gamma: int, c: float) -> float:
    """Expected speed over plain decoding: tokens a pass / (gamma c + 1). Below 1 where drafting does not pay.

    Source: Leviathan et al. 2023, Theorem 3.8. Assumes that a pass over gamma + 1 tokens takes as long as one over 1.

    Raises:
        ValueError: alpha is not in [0, 1], gamma is negative, or c is not a finite number of at least 0.
    """
    _check(alpha, gamma, c)
    return expected_tokens(alpha, gamma) / (gamma * c + 1)


def measured_speedup(tokens_per_pass: float, gamma: float, plain_s: float, verify_s: float, draft_s: float) -> float:
    """Speed over plain decoding from measured seconds: tokens x t(1) / (gamma d + t(gamma + 1)), no assumption made.

    Args:
        tokens_per_pass: emitted tokens / target passes.
        gamma: drafts a round; the mean where rounds differ.
        plain_s: target pass over one token, t(1).
        verify_s: target pass over gamma + 1 tokens.
        draft_s: drafter pass over one token, d.

    Raises:
        ValueError: a time is negative, or the round takes no time at all.
    """
    if min(gamma, plain_s, verify_s, draft_s) < 0 or gamma * draft_s + verify_s <= 0:
        raise ValueError(
            "gamma and times must be at least 0 and a round must take time, "
            f"got gamma {gamma}, plain {plain_s} s, verify {verify_s} s, draft {draft_s} s"
        )
    return tokens_per_pass * plain_s / (gamma * draft_s + verify_s)


class Losses(NamedTuple):
    """Speed over plain decoding as what is ideal is given up, one thing after the other; ``real`` is what is left."""

    ideal: float
    """Every draft kept, drafts free, a wide read as cheap as a narrow one."""
    kept: float
    """The tokens that a read really brought."""
    drafted: float
    """Minus the drafter's time."""
    read: float
    """Minus what a wider read takes longer."""
    real: float
    """Minus everything outside of reads."""


def losses(
    tokens_per_pass: float, gamma: float, plain_s: float, verify_s: float, draft_s: float, speed: float
) -> Losses:
    """Where a speed was lost. Each entry over the one before is one thing's factor; differences add up to the whole.

    Args:
        tokens_per_pass: emitted tokens / target passes.
        gamma: drafts a round; the mean where rounds differ.
        plain_s: target pass over one token.
        verify_s: target pass of a round with drafts.
        draft_s: drafter passes of a round, together.
        speed: measured, over plain decoding.

    Raises:
        ValueError: a read takes no time, or another time is negative.
    """
    if min(plain_s, verify_s) <= 0 or min(draft_s, gamma) < 0:
        raise ValueError(f"a read must take time, got plain {plain_s} s, verify {verify_s} s, drafts {draft_s} s")
    return Losses(
        ideal=gamma + 1,
        kept=tokens_per_pass,
        drafted=tokens_per_pass * plain_s / (plain_s + draft_s),
        read=tokens_per_pass * plain_s / (verify_s + draft_s),
        real=speed,
    )


def operations_factor(alpha: float, gamma: int, c_ops: float) -> float:
    """Arithmetic spent a token over that of plain decoding: (gamma c_ops + gamma + 1) / tokens a pass.

    ``c_ops`` is drafter FLOP / target FLOP a token. Source: Leviathan et al. 2023, Theorem 3.11.

    Raises:
        ValueError: alpha is not in [0, 1], gamma is negative, or c_ops is not a finite number of at least 0.
    """
    _check(alpha, gamma, c_ops)
    return (gamma * c_ops + gamma + 1) / expected_tokens(alpha, gamma)


def optimal_gamma(alpha: float, c: float, max_gamma: int = 40) -> int:
    """The gamma in 0..max_gamma with the largest :func:`speedup`; the smaller one of equals.

    Tokens grow by less and less and time by the same: behind its first step down the speed-up never rises again. 0
    wherever alpha <= c (Leviathan et al. 2023, Corollary 3.9). With c = 0, or with alpha = 1 and c < 1, every further
    draft pays and there is no optimum: the answer is then bounded by ``max_gamma``.

    Raises:
        ValueError: alpha is not in [0, 1], c is not a finite number of at least 0, or max_gamma is negative.
    """
    _check(alpha, max_gamma, c)
    best, fastest = 0, 1.0
    tokens, kept_so_far = 1.0, 1.0
    for gamma in range(1, max_gamma + 1):
        kept_so_far *= alpha
        tokens += kept_so_far
        faster = tokens / (gamma * c + 1)
        if faster < fastest:
            break
        if faster > fastest:
            best, fastest = gamma, faster
    return best


def gumbel_match(p: Array, q: Array) -> Array:
    """Chance that both models choose one token under shared Gumbel noise. Laws (..., vocab) to (...), in [0, 1].

    P(match) = sum over x with p, q > 0 of 1 / sum_y max(p_y / p_x, q_y / q_x). p_y / p_x is the larger one where
    p_y / q_y is above p_x / q_x, so that one sort and two running sums give all denominators: O(vocab log vocab).

    Source: the coupling is that of Daliri et al. 2024 (arXiv 2408.07978); the sum follows from its exponential races.
    """
    xp = array_namespace(p, q)
    shared = xp.any(xp.reshape(xp.minimum(p, q) > 0, (-1, p.shape[-1])), axis=0)
    # A token that only one model can say is on the same side of every comparison: no need to sort it.
    p_apart, q_apart = xp.sum(p[..., ~shared], axis=-1), xp.sum(q[..., ~shared], axis=-1)
    p, q = p[..., shared], q[..., shared]
    both = p + q
    # p / (p + q) sorts as p / q does and cannot overflow.
    order = xp.argsort(p / xp.where(both > 0, both, 1.0), axis=-1)
    p, q = xp.take_along_axis(p, order, axis=-1), xp.take_along_axis(q, order, axis=-1)
    p_above = p_apart[..., None] + xp.flip(xp.cumulative_sum(xp.flip(p, axis=-1), axis=-1), axis=-1)
    q_below = q_apart[..., None] + xp.cumulative_sum(q, axis=-1) - q
    # Each term times min(p_x, q_x) / min(p_x, q_x): no quotient exceeds 1, however small the probabilities.
    least = xp.minimum(p, q)
    race = p_above * least / xp.where(p > 0, p, 1.0) + q_below * least / xp.where(q > 0, q, 1.0)
    match = xp.sum(least / xp.where(race > 0, race, 1.0), axis=-1)
    return xp.minimum(match, xp.ones_like(match))


class GumbelBounds(NamedTuple):
    """lower <= refined <= P(match) <= upper, each of shape (...)."""

    lower: Array
    refined: Array
    upper: Array


def gumbel_bounds(p: Array, q: Array) -> GumbelBounds:
    """Bounds of :func:`gumbel_match` that need no sort. Laws (..., vocab).

    lower = (1 - TV) / (1 + TV), which no protocol without communication beats in the worst case; refined = sum_x of
    min_x / (min_x + sum_y max_y - max_x) with min_x = min(p_x, q_x) and so on; upper = 1 - TV. Source: Daliri et al.
    2024.
    """
    xp = array_namespace(p, q)
    shared, tv = overlap(p, q), total_variation(p, q)
    least, most = xp.minimum(p, q), xp.maximum(p, q)
    race = least + xp.sum(most, axis=-1, keepdims=True) - most
    refined = xp.sum(least / xp.where(race > 0, race, 1.0), axis=-1)
    return GumbelBounds(lower=shared / (1 + tv), refined=refined, upper=shared)


def block_expected_kept(p: Array, q: Array, gamma: int) -> float:
    """Drafts that block verification keeps a round when every position has the laws p and q, shape (vocab,).

    The block keeps at least i drafts with chance w_i given these drafts, so the answer is the sum of E[w_i]; w_i =
    min(1, w_(i-1) p/q) is a Markov chain, followed here exactly. Meant for laws of a few tokens: the chain has up to
    vocab**gamma states, fewer as they meet again. Source: Sun et al. 2024 (arXiv 2403.10444).

    Raises:
        ValueError: gamma is negative.
    """
    _check(0.0, gamma)
    import numpy as np  # here, because pages that only count must paint before it is imported

    p, q = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
    ratios, chances = p[q > 0] / q[q > 0], q[q > 0]
    weights: Array = np.ones(1)
    mass: Array = np.ones(1)
    expected = 0.0
    for _ in range(gamma):
        weights = np.minimum(1.0, np.outer(weights, ratios)).ravel()
        mass = np.outer(mass, chances).ravel()
        expected += float(weights @ mass)
        # One product taken in two orders differs by rounding: 15 decimals bring the two together again.
        weights, states = np.unique(np.round(weights, 15), return_inverse=True)
        mass = np.bincount(states, mass)
    return expected


def _check(alpha: float, gamma: int, c: float = 0.0) -> None:
    if not 0 <= alpha <= 1:
        raise ValueError(f"alpha must be in [0, 1], got {alpha}")
    if gamma < 0:
        raise ValueError(f"gamma must be at least 0, got {gamma}")
    if not (math.isfinite(c) and c >= 0):
        raise ValueError(f"c must be a finite number of at least 0, got {c}")
