"""Randomness as a pure function: a number follows from (seed, stream, position), in any order and at any time.

A sequential generator is out of step after the first rejection. Here a counter-based 64-bit hash takes its place:
chained splitmix64 (Steele, Lea and Flood 2014, "Fast splittable pseudorandom number generators"), in int64 that wraps.
The integers and the uniforms are equal to the bit on NumPy and torch, CPU and GPU; Gumbel values agree to 1e-12.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import array_api_compat.numpy
from array_api_compat import array_namespace, device

from specviz.probability import Array

STREAMS = ("draft", "accept", "residual", "target", "gumbel")
"""What numbers are for: drafting, the coins, the correction, the target's own draw, the noise both models share.

A correction that reuses the numbers which produced the rejected draft is biased, hence one stream for each purpose.
"""

_WEYL = 0x9E3779B97F4A7C15 - 2**64
_MULTIPLIERS = (0xBF58476D1CE4E5B9 - 2**64, 0x94D049BB133111EB - 2**64)
"""The constants of splitmix64, as signed integers."""

Integers = Any
"""An int or an int64 array."""


def uniform(
    seed: Integers, stream: str, position: Integers, start: Integers = 0, *, like: Array | None = None
) -> Array:
    """Uniforms (k + 1/2) / 2**52, k a 52-bit integer: strictly inside (0, 1), and exact in float64.

    Args:
        seed: int or array of int64. All integer arguments broadcast.
        stream: one of :data:`STREAMS`.
        position: absolute position that the token will occupy in prompt + text.
        start: 0, or the position of the round's first draft where a rule looks at numbers of positions that the next
            round visits again (block verification).
        like: array whose library and device the result uses; NumPy without it.

    Returns:
        float64, of the integers' common shape.

    Raises:
        ValueError: the stream is unknown, or an int does not fit in 64 bits.
    """
    return _unit(_state(seed, stream, position, start, like))[..., 0]


def gumbel(seed: Integers, position: Integers, vocab_size: int, *, like: Array | None = None) -> Array:
    """Standard Gumbel noise for every token at a position: -log E with E ~ Exp(1). Arguments as in :func:`uniform`.

    Returns:
        float64, the integers' common shape followed by ``vocab_size``. All values are finite, in (-3.7, 36.8).
    """
    state = _state(seed, "gumbel", position, 0, like)
    xp = array_namespace(state)
    token_ids = xp.arange(vocab_size, dtype=xp.int64, device=device(state))
    return -xp.log(-xp.log(_unit(_hash(state, token_ids))))


class Noise(Protocol):
    """The numbers of one round, by place from 0. Shapes may carry leading axes, one run each."""

    def draft(self, place: int) -> Array:
        """The uniform that the draft at ``place`` is drawn with, shape (...)."""

    def accept(self, count: int) -> Array:
        """The coins of the first ``count`` places, shape (..., count)."""

    def residual(self, place: int) -> Array:
        """The uniform that a correction at ``place`` is drawn with, shape (...)."""

    def target(self, place: int) -> Array:
        """The uniform of the target's own draw at ``place``, shape (...)."""

    def gumbel(self, place: int, vocab_size: int) -> Array:
        """The noise that both models share at ``place``, shape (..., vocab_size)."""


@dataclass(frozen=True)
class RoundNoise:
    """The noise of a round whose first token stands at ``position``. ``seed`` and ``position`` may be arrays.

    ``by_round`` keys everything but the Gumbel noise with the round's start as well; see :func:`uniform`.
    """

    seed: Integers
    position: Integers
    by_round: bool = False
    like: Array | None = None

    def draft(self, place: int) -> Array:
        """See :class:`Noise`."""
        return self._uniform("draft", self.position + place, self._start)

    def accept(self, count: int) -> Array:
        """See :class:`Noise`."""
        xp, where = _library(self.like)
        places = xp.arange(count, dtype=xp.int64, device=where)
        seed, position, start = (
            _integers(value, self.like)[..., None] for value in (self.seed, self.position, self._start)
        )
        return uniform(seed, "accept", position + places, start, like=self.like)

    def residual(self, place: int) -> Array:
        """See :class:`Noise`."""
        return self._uniform("residual", self.position + place, self._start)

    def target(self, place: int) -> Array:
        """See :class:`Noise`."""
        return self._uniform("target", self.position + place, self._start)

    def gumbel(self, place: int, vocab_size: int) -> Array:
        """See :class:`Noise`."""
        return gumbel(self.seed, self.position + place, vocab_size, like=self.like)

    @property
    def _start(self) -> Integers:
        return self.position if self.by_round else 0

    def _uniform(self, stream: str, position: Integers, start: Integers) -> Array:
        return uniform(self.seed, stream, position, start, like=self.like)


def _library(like: Array | None) -> tuple[Any, Any]:
    """The array library and the device of ``like``."""
    return (array_api_compat.numpy, None) if like is None else (array_namespace(like), device(like))


def _integers(value: Integers, like: Array | None) -> Array:
    """An int or integer array as an int64 array beside ``like``."""
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError(f"seed, position and start must fit in 64 bits, got {value}")
    xp, where = _library(like)
    return xp.asarray(value, dtype=xp.int64, device=where)


def _state(seed: Integers, stream: str, position: Integers, start: Integers, like: Array | None) -> Array:
    """The hash of everything but the token id, with a last axis of length 1 for the token ids."""
    if stream not in STREAMS:
        raise ValueError(f"stream must be one of {', '.join(STREAMS)}, got {stream!r}")
    state: Array = 0
    for value in (seed, STREAMS.index(stream), position, start):
        # The extra axis also keeps NumPy in arrays, where int64 wraps in silence; its scalars warn.
        state = _hash(state, _integers(value, like)[..., None])
    return state


def _hash(state: Array, index: Array) -> Array:
    """Output number ``index`` of the splitmix64 generator that starts at ``state``."""
    z = state + (index + 1) * _WEYL
    # In place, because on wide rows fresh memory takes several times longer than the arithmetic.
    z ^= _shifted(z, 30)
    z *= _MULTIPLIERS[0]
    z ^= _shifted(z, 27)
    z *= _MULTIPLIERS[1]
    z ^= _shifted(z, 31)
    return z


def _shifted(z: Array, bits: int) -> Array:
    """Logical shift to the right: >> on a signed integer copies the sign, and the mask takes the copies out."""
    z = z >> bits
    z &= 2 ** (64 - bits) - 1
    return z


def _unit(z: Array) -> Array:
    """The top 52 bits as a float64 strictly inside (0, 1)."""
    xp = array_namespace(z)
    u = xp.astype(_shifted(z, 12), xp.float64)
    u += 0.5
    u *= 2.0**-52
    return u
