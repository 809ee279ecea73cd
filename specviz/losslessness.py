"""Is a rule exact? One draft at one place, in chances and in many draws, through the code that the decoder runs.

p is the target's law and q the drafter's at that place, both (vocab,). A round of one draft also ends with a bonus
where the draft is kept; it stands at the next place and counts nowhere here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from array_api_compat import array_namespace, device

from specviz.noise import RoundNoise
from specviz.probability import Array
from specviz.rules import Rule

_FEWEST, _CELLS = 256, 2**18
"""Draws made at once: some rules hold a number for every token of every draw."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What becomes of each token at the place, arrays (vocab,): chances (float64) or how often it was seen (int64).

    Attributes:
        drafted: the drafter threw it.
        kept: the drafter threw it and it stayed.
        dealt: it replaced a draft that went.
    """

    drafted: Array
    kept: Array
    dealt: Array

    @property
    def emitted(self) -> Array:
        """It entered the text."""
        return self.kept + self.dealt


def expected(rule: Rule, p: Array, q: Array) -> Outcome:
    """The exact chances under ``rule``, for laws of a few tokens: some rules compare each token with each.

    ``emitted`` is p within rounding where the rule is exact (and, under greedy, where p is one-hot).

    Args:
        rule: any rule, right or wrong.
        p: the target's law, shape (vocab,), float64.
        q: the drafter's law, shape (vocab,), float64.
    """
    xp = array_namespace(p, q)
    every_token = xp.arange(p.shape[0], device=device(p))[:, None]  # one run for each possible draft
    verdict = rule.verify(*_round(p, q), every_token, RoundNoise(0, 0, rule.by_round, like=p))
    kept = q * verdict.judgements.accept_prob[:, 0]
    return Outcome(q, kept, xp.maximum(rule.emitted_law(p, q) - kept, 0.0))


def deal(rule: Rule, p: Array, q: Array, count: int, seed: int) -> Outcome:
    """Draft, judge and close at this place ``count`` times; same arguments, same result.

    Args:
        rule: any rule, right or wrong.
        p: the target's law, shape (vocab,), float64.
        q: the drafter's law, shape (vocab,), float64.
        count: draws, at least 1.
        seed: any int that fits in 64 bits.

    Returns:
        Counts, int64: ``drafted`` and ``emitted`` each sum to ``count``.

    Raises:
        ValueError: count is below 1.
    """
    if count < 1:
        raise ValueError(f"count must be at least 1, got {count}")
    xp = array_namespace(p, q)
    vocab = p.shape[0]
    both, offered = _round(p, q)
    drafted, kept, dealt = (xp.zeros(vocab, dtype=xp.int64, device=device(p)) for _ in range(3))
    at_once = max(_FEWEST, _CELLS // vocab)
    for first in range(0, count, at_once):
        # Every other position: the one between is the bonus's, and no two draws share a number.
        positions = 2 * xp.arange(first, min(first + at_once, count), dtype=xp.int64, device=device(p))
        noise = RoundNoise(seed, positions, rule.by_round, like=p)
        draft_ids = xp.broadcast_to(rule.draft(q, noise, 0), positions.shape)
        verdict = rule.verify(both, offered, draft_ids[:, None], noise)
        stays = verdict.kept > 0
        drafted += _counts(draft_ids, vocab)
        kept += _counts(draft_ids[stays], vocab)
        dealt += _counts(verdict.closing.id[~stays], vocab)
    return Outcome(drafted, kept, dealt)


@lru_cache(maxsize=256)
def noise_band(chance: float, count: int, miss: float) -> tuple[int, int]:
    """The smallest and the largest count that ``count`` independent draws show of something with this chance.

    Exact binomial tails: a count falls below the band with chance ``miss / 2`` at most, and as rarely above it. Over
    several cells a ``miss`` that is divided by their number bounds the chance that any of them falls outside.

    Raises:
        ValueError: chance is not in [0, 1], count is below 1, or miss is not in (0, 1).
    """
    if not 0 <= chance <= 1 or count < 1 or not 0 < miss < 1:
        raise ValueError(
            f"chance must be in [0, 1], count at least 1 and miss in (0, 1), got {chance}, {count} and {miss}"
        )
    if chance in (0, 1):
        return int(chance * count), int(chance * count)
    log_factorial = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, count + 1)))))
    seen = np.arange(count + 1)
    ways = log_factorial[count] - log_factorial - log_factorial[::-1]
    at_most = np.cumsum(np.exp(ways + seen * np.log(chance) + (count - seen) * np.log1p(-chance)))
    low = np.searchsorted(at_most, miss / 2, side="right")
    high = np.searchsorted(at_most, 1 - miss / 2, side="left")
    return int(low), min(int(high), count)


def _round(p: Array, q: Array) -> tuple[Array, Array]:
    """The laws of a round of one draft: (2, vocab), whose second row is the bonus's, and (1, vocab)."""
    return array_namespace(p, q).stack([p, p]), q[None, :]


def _counts(ids: Array, vocab: int) -> Array:
    """How often each id occurs, int64, shape (vocab,)."""
    xp = array_namespace(ids)
    every_id = xp.arange(vocab, dtype=ids.dtype, device=device(ids))
    ordered = xp.sort(ids)
    return xp.searchsorted(ordered, every_id, side="right") - xp.searchsorted(ordered, every_id, side="left")
