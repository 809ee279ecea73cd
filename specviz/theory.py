"""What should happen: expected tokens, speed-up, the best gamma, the chance that coupled models agree."""

from __future__ import annotations

from array_api_compat import array_namespace

from specviz.probability import Array


def gumbel_match(p: Array, q: Array) -> Array:
    """Chance that p and q choose the same token under shared Gumbel noise. Shape (...), in [0, 1].

    P(match) = sum over x with p, q > 0 of 1 / sum_y max(p_y / p_x, q_y / q_x). Which of the two is larger is decided by
    comparing p_y / q_y with p_x / q_x, so one sort and two running sums give all denominators: O(vocab log vocab).

    Source: the coupling is that of Daliri et al. 2024 (arXiv 2408.07978); the sum follows from its exponential races.
    """
    xp = array_namespace(p, q)
    total = p + q
    # p / (p + q) sorts as p / q does and cannot overflow.
    order = xp.argsort(p / xp.where(total > 0, total, 1.0), axis=-1)
    p, q = xp.take_along_axis(p, order, axis=-1), xp.take_along_axis(q, order, axis=-1)
    p_from_here = xp.flip(xp.cumulative_sum(xp.flip(p, axis=-1), axis=-1), axis=-1)
    q_before = xp.cumulative_sum(q, axis=-1) - q
    # Numerator and denominator times min(p_x, q_x): no quotient exceeds 1, however small the probabilities.
    smaller = xp.minimum(p, q)
    denominator = p_from_here * smaller / xp.where(smaller > 0, p, 1.0) + q_before * smaller / xp.where(
        smaller > 0, q, 1.0
    )
    match = xp.where(smaller > 0, smaller / xp.where(smaller > 0, denominator, 1.0), 0.0)
    return xp.minimum(xp.sum(match, axis=-1), 1.0 + 0.0 * match[..., 0])
