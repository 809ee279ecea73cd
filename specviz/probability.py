"""Laws over a vocabulary: how logits become probabilities, and what two laws share.

Written once against the array API, for NumPy and torch alike. A law is the last axis of an array of shape ``(...,
vocab)``: float64, in [0, 1], summing to 1. p is the target's law and q the drafter's, as in Leviathan et al. 2023
(arXiv 2211.17192); Chen et al. 2023 (arXiv 2302.01318) swap the letters.
"""

from __future__ import annotations

import math
from typing import Any

from array_api_compat import array_namespace, device, is_torch_array

Array = Any
"""A NumPy array or a torch tensor. Functions return the kind, on the device, that they were given."""

_COLD, _NEVER = 1e-200, 1000.0
"""Temperatures at which logits of single precision could be divided to infinity; and how far below the largest, in
temperatures, exp is 0."""
_NUCLEUS_GUESS = 1024
"""How many of the likeliest tokens top-p looks at before it sorts the whole row: nearly always enough."""


def is_greedy(temperature: float) -> bool:
    """Whether this temperature means "take the likeliest token": the only place where that is decided."""
    return temperature == 0


def warp(logits: Array, temperature: float, top_k: int = 0, top_p: float = 1.0) -> Array:
    """The law that a token is drawn from: temperature, then top-k, then top-p, then normalised.

    Temperature 0 is a one-hot row on the lowest id among the largest logits. top-k keeps everything that ties with the
    k-th logit. top-p keeps tokens, likeliest first and lowest id first among equals, while the mass before them is
    below ``top_p``: the token that crosses the line stays.

    Args:
        logits: shape (..., vocab), any real dtype. -inf rules a token out.
        temperature: finite, at least 0.
        top_k: at least 0; 0 keeps all.
        top_p: in (0, 1]; 1 keeps all.

    Returns:
        Shape (..., vocab), float64. Tokens that were ruled out have probability exactly 0.

    Raises:
        ValueError: a setting is out of range, or a row has no finite largest logit.
    """
    check_warp(temperature, top_k, top_p)
    xp = array_namespace(logits)
    scaled = xp.astype(logits, xp.float64, copy=True)
    largest = xp.max(scaled, axis=-1, keepdims=True)
    if not xp.all(xp.isfinite(largest)):
        raise ValueError(
            "every row of logits needs a finite largest value, got a row with NaN, +inf or nothing but -inf"
        )
    if is_greedy(temperature):
        return one_hot(xp.argmax(scaled, axis=-1), like=scaled)
    # The largest logit is subtracted first: it stays 0 at any temperature. In place, because on wide rows fresh memory
    # takes several times longer than the arithmetic.
    scaled -= largest
    if temperature < _COLD:  # so far below, a chance is 0 either way
        scaled = xp.maximum(scaled, xp.full_like(scaled, -_NEVER * temperature))
    scaled /= temperature
    if 0 < top_k < scaled.shape[-1]:
        kth_largest = _descending(scaled, top_k)[..., -1:]
        scaled = xp.where(scaled >= kth_largest, scaled, -math.inf)
    p = xp.exp(scaled)
    p /= xp.sum(p, axis=-1, keepdims=True)
    if top_p < 1:
        p = _nucleus(p, top_p)
        p /= xp.sum(p, axis=-1, keepdims=True)
    return p


def check_warp(temperature: float, top_k: int = 0, top_p: float = 1.0) -> None:
    """Raise ValueError, naming the value and what is allowed, unless :func:`warp` can use these settings."""
    if not (math.isfinite(temperature) and temperature >= 0):
        raise ValueError(f"temperature must be a finite number of at least 0, got {temperature}")
    if top_k < 0:
        raise ValueError(f"top_k must be at least 0 (0 keeps all), got {top_k}")
    if not 0 < top_p <= 1:
        raise ValueError(f"top_p must be in (0, 1] (1 keeps all), got {top_p}")


def one_hot(ids: Array, like: Array) -> Array:
    """Laws (..., vocab) that are certain of ``ids`` (...), with the vocabulary and on the device of ``like``."""
    xp = array_namespace(like)
    every_id = xp.arange(like.shape[-1], device=device(like))
    return xp.astype(every_id == ids[..., None], xp.float64)


def overlap(p: Array, q: Array) -> Array:
    """What two laws share, sum min(p, q): the chance that speculative sampling keeps a draft. Shape (...), in [0, 1].

    Source: Leviathan et al. 2023, Corollary 3.6.
    """
    xp = array_namespace(p, q)
    return xp.sum(xp.minimum(p, q), axis=-1)


def total_variation(p: Array, q: Array) -> Array:
    """TV = 1/2 sum |p - q| = 1 - overlap. Shape (...), in [0, 1].

    Source: Leviathan et al. 2023, Lemma 3.3 (called D_LK there).
    """
    xp = array_namespace(p, q)
    return xp.sum(xp.abs(p - q), axis=-1) / 2


def residual(p: Array, q: Array) -> Array:
    """Law of the correction after a rejection: max(p - q, 0), normalised. Shape (..., vocab).

    Zero wherever q >= p. A row where p equals q has nothing to normalise: there p itself is returned (such a rejection
    happens by rounding only), never a floor, which over a large vocabulary would outweigh the residual.

    Source: Leviathan et al. 2023, Algorithm 1.
    """
    xp = array_namespace(p, q)
    return normalised(xp.maximum(p - q, 0.0), otherwise=p)


def normalised(weights: Array, otherwise: Array) -> Array:
    """Rows of weights, each divided by its sum; a row without mass becomes the row of ``otherwise``."""
    xp = array_namespace(weights)
    mass = xp.sum(weights, axis=-1, keepdims=True)
    return xp.where(mass > 0, weights / xp.where(mass > 0, mass, 1.0), otherwise)


def entropy(p: Array) -> Array:
    """-sum p log p in nats. Shape (...), at least 0."""
    xp = array_namespace(p)
    return -xp.sum(p * xp.log(xp.where(p > 0, p, 1.0)), axis=-1)


def log(p: Array) -> Array:
    """log p, with -inf where p is 0 and no warning. Same shape."""
    xp = array_namespace(p)
    return xp.where(p > 0, xp.log(xp.where(p > 0, p, 1.0)), -math.inf)


def inverse_cdf(p: Array, u: Array) -> Array:
    """The ids that uniforms select: the first id whose cumulative probability exceeds ``u`` times the row's sum.

    An id with probability 0 is never selected. One row shared by many uniforms is searched, not repeated.

    Args:
        p: laws, shape (..., vocab); need not be normalised.
        u: uniforms in [0, 1), shape (...), broadcast against the leading axes of ``p``.

    Returns:
        Ids, int64, shape (...).

    Raises:
        ValueError: a row has no mass.
    """
    xp = array_namespace(p)
    cumulative = xp.cumulative_sum(p, axis=-1)
    total = cumulative[..., -1]
    if not xp.all(total > 0):
        raise ValueError("every law needs a positive sum to draw from, got one without mass")
    mark = u * total
    if p.ndim == 1:
        ids = xp.searchsorted(cumulative, mark, side="right")
    else:
        ids = xp.sum(xp.astype(cumulative <= mark[..., None], xp.int64), axis=-1)
    # Rounding can put the mark on the total; nothing but zeros may follow the last id that has mass.
    every_id = xp.arange(p.shape[-1], device=device(p))
    last = xp.max(xp.where(p > 0, every_id, 0), axis=-1)
    return xp.minimum(xp.astype(ids, xp.int64), last)


def top_n(x: Array, n: int) -> tuple[Array, Array]:
    """The ``n`` largest values of each row and their ids, both (..., n), largest first, lowest id first among equals.

    Raises:
        ValueError: n is not in 1..vocab.
    """
    xp = array_namespace(x)
    size = x.shape[-1]
    if not 1 <= n <= size:
        raise ValueError(f"n must be in 1..{size}, got {n}")
    values = _descending(x, n)
    # Their ids by way of a mask: NumPy and torch break ties each in their own way.
    ids = xp.reshape(xp.nonzero(_largest(x, values[..., -1:], n))[-1], values.shape)
    order = xp.argsort(xp.take_along_axis(x, ids, axis=-1), axis=-1, descending=True, stable=True)
    return values, xp.take_along_axis(ids, order, axis=-1)


def _descending(x: Array, n: int) -> Array:
    """The n largest values of each row, largest first, without a sort of the whole row.

    The one place that asks which library it has: the array API knows no partial sort.
    """
    if is_torch_array(x):
        return x.topk(n, dim=-1).values
    xp = array_namespace(x)
    largest = xp.partition(x, x.shape[-1] - n, axis=-1)[..., x.shape[-1] - n :]
    return xp.sort(largest, axis=-1, descending=True)


def _largest(x: Array, least: Array, count: Array | int) -> Array:
    """Mask of the ``count`` largest values of each row, the smallest of which is ``least``; low ids win ties."""
    xp = array_namespace(x)
    reaching = x >= least
    surplus = xp.sum(xp.astype(reaching, xp.int64), axis=-1, keepdims=True) - count
    if not xp.any(surplus > 0):
        return reaching
    tied = xp.astype(x == least, xp.int64)
    room = xp.sum(tied, axis=-1, keepdims=True) - surplus
    return (x > least) | (reaching & (xp.cumulative_sum(tied, axis=-1) <= room))


def _nucleus(p: Array, top_p: float) -> Array:
    """Laws cut by top-p, not normalised."""
    xp = array_namespace(p)
    size = p.shape[-1]
    descending = _descending(p, min(_NUCLEUS_GUESS, size))
    if xp.any(xp.sum(descending, axis=-1) < top_p):
        descending = _descending(p, size)
    before = xp.cumulative_sum(descending, axis=-1) - descending
    count = xp.sum(xp.astype(before < top_p, xp.int64), axis=-1, keepdims=True)
    return xp.where(_largest(p, xp.take_along_axis(descending, count - 1, axis=-1), count), p, 0.0)
