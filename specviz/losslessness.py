"""Is a rule exact? Chances and many draws, through the code that the decoder runs, and how far apart the two may be.

At one place p is the target's law and q the drafter's, both (vocab,). A round of one draft also ends with a bonus where
the draft is kept; it stands at the next place and counts nowhere there. Two places in a row show what one cannot: the
bonus, a block, and the round after a rejection.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from array_api_compat import array_namespace, device

from specviz.noise import RoundNoise
from specviz.probability import Array, one_hot, overlap, total_variation, warp
from specviz.rules import RULES, WRONG_DRAFTS, WRONG_RULES, Rule

_TOGETHER, _CELLS = 2**17, 2**18
"""Draws made at once; where each takes a number for every token, numbers at once: they fit the processor's cache."""

_THREADS = 2
"""Races are run by so many threads: NumPy lets go of the interpreter while it computes."""

_KEPT = 4_000_000
"""Numbers in an array that is let go at once. From then on glibc keeps freed memory up to its size (32 MB) instead of
handing it back; to fetch it again for each of a race's arrays takes up to three times as long as the race."""

_FEW = 5
"""Expected fewer times than this, a token is no cell of a chi-square by itself."""

_DRAWN_SINGLY, _FLOOR_DRAWS = 128, 2_000
"""How exact sampling is simulated: how many tokens are drawn as they are, and how often."""


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


@dataclass(frozen=True, eq=False)
class Entrant:
    """A rule and a drafter on trial at one place; laws (vocab,), float64.

    Attributes:
        name: the rule's name, a wrong draft's, or "drafter_at_0".
        rule: judges the draft.
        p: the target's law: what should come out.
        q: the law that the drafter reports.
        drawn: the law that its drafts come from; q itself unless the drafter lies.
    """

    name: str
    rule: Rule
    p: Array
    q: Array
    drawn: Array

    @property
    def exact(self) -> bool:
        """The rule is right and the drafter honest. Others may be lucky at a place: their distance is then 0.

        A lie that happens to be true here is still a lie: at another temperature it distorts.
        """
        return self.rule.exact and self.name not in WRONG_DRAFTS and bool((self.drawn == self.q).all())

    @cached_property
    def kept(self) -> float | None:
        """Chance that a draft is kept, before it is drawn; None where one place alone does not decide it."""
        kept = self.rule.keep_probability(self.p, self.q, self.drawn)
        return None if kept is None else float(kept)

    @property
    def alone(self) -> float:
        """Chance that a draft is kept where no other is judged with it: a block of one is judged as under sampling."""
        return float(overlap(self.p, self.q)) if self.kept is None else self.kept

    @cached_property
    def law(self) -> Array:
        """Exact chances of the token that comes out."""
        return self.rule.emitted_law(self.p, self.q, self.drawn)

    @cached_property
    def distance(self) -> float:
        """TV between :attr:`law` and p."""
        return float(total_variation(self.law, self.p))


def entrants(
    p_logits: Array,
    q_logits: Array,
    *,
    temperature: float,
    drafter_temperature: float,
    top_k: int = 0,
    top_p: float = 1.0,
) -> tuple[Entrant, ...]:
    """Everything on trial at a place: rules that are right, rules that are wrong, right rules given wrong drafts.

    Under greedy both rows are at temperature 0. "drafter_at_0" is speculative sampling with the drafter's row alone at
    temperature 0.

    Args:
        p_logits: the target's, shape (vocab,); the log of a law will do.
        q_logits: the drafter's, shape (vocab,).
        temperature: the target's, finite, at least 0.
        drafter_temperature: the drafter's, finite, at least 0.
        top_k: for both rows, at least 0; 0 keeps all.
        top_p: for both rows, in (0, 1]; 1 keeps all.

    Raises:
        ValueError: see :func:`specviz.probability.warp`.
    """
    p, q = warp(p_logits, temperature, top_k, top_p), warp(q_logits, drafter_temperature, top_k, top_p)
    p_at_0, q_at_0 = warp(p_logits, 0.0), warp(q_logits, 0.0)
    sampling = RULES["speculative_sampling"]
    right = {rule.name: Entrant(rule.name, rule, p, q, q) for rule in RULES.values() if rule.name != "greedy"}
    listed = [
        right.pop(sampling.name),
        Entrant("drafter_at_0", sampling, p, q_at_0, q_at_0),
        *right.values(),
        Entrant("greedy", RULES["greedy"], p_at_0, q_at_0, q_at_0),
        *(Entrant(rule.name, rule, p, q, q) for rule in WRONG_RULES.values()),
    ]
    for lie in WRONG_DRAFTS.values():
        drawn, reported = lie.laws(q_logits, drafter_temperature, top_k, top_p)
        listed.append(Entrant(lie.name, sampling, p, reported, drawn))
    return tuple(listed)


def expected(rule: Rule, p: Array, q: Array, drawn: Array | None = None) -> Outcome:
    """The exact chances under ``rule``, for laws of a few tokens: some rules compare each token with each.

    ``emitted`` is p within rounding where the rule is exact (and, under greedy, where p is one-hot).

    Args:
        rule: any rule, right or wrong.
        p: the target's law, shape (vocab,), float64.
        q: the drafter's law, shape (vocab,), float64.
        drawn: the law that drafts are really drawn from, if not q.
    """
    xp = array_namespace(p, q)
    drawn = q if drawn is None else drawn
    every_token = xp.arange(p.shape[0], device=device(p))[:, None]  # one run for each possible draft
    judgements = rule.verify(*_round(p, q), every_token, RoundNoise(0, 0, rule.by_round, like=p)).judgements
    if judgements.target_id is not None and drawn is not q:
        return expected(rule, p, drawn)  # such a rule compares tokens: what the drafter reports is not looked at
    kept = drawn * judgements.accept_prob[:, 0]
    return Outcome(drawn, kept, xp.maximum(rule.emitted_law(p, q, drawn) - kept, 0.0))


def deal(
    rule: Rule, p: Array, q: Array, count: int, seed: int, *, first: int = 0, drawn: Array | None = None
) -> Outcome:
    """Draft, judge and close at this place ``count`` times; same arguments, same result.

    Args:
        rule: any rule, right or wrong.
        p: the target's law, shape (vocab,), float64.
        q: the drafter's law, shape (vocab,), float64.
        count: draws, at least 1.
        seed: any int that fits in 64 bits.
        first: number of the first draw, so that deals one behind another add up to a single one.
        drawn: the law that drafts are really drawn from, if not q.

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

    def dealt(start: int, stop: int) -> tuple[Array, Array, Array]:
        """The drafts, those that stay, and what replaces the others."""
        # Every other position: the one between is the bonus's, and no two draws share a number.
        positions = 2 * xp.arange(start, stop, dtype=xp.int64, device=device(p))
        noise = _FirstPlace(seed, positions, rule.by_round, like=p, vocab=vocab)
        draft_ids = xp.broadcast_to(rule.draft(q if drawn is None else drawn, noise, 0), positions.shape)
        verdict = rule.verify(both, offered, draft_ids[:, None], noise)
        stays = verdict.kept > 0
        return draft_ids, draft_ids[stays], verdict.closing.id[~stays]

    parts = zip(*_each(dealt, _batches(rule, vocab, first, count)), strict=True)
    return Outcome(*(_counts(xp.concat(ids), vocab) for ids in parts))


@dataclass(frozen=True)
class _FirstPlace(RoundNoise):
    """The noise of a round of one draft whose bonus counts nowhere, for races of one vocabulary.

    Both models' race at the draft's place is run with the same numbers, made once. The bonus's race gets them too: it
    should have others, but its winner is not looked at.
    """

    vocab: int = 0

    @cached_property
    def _shared(self) -> Array:
        return super().gumbel(0, self.vocab)

    def gumbel(self, place: int, vocab_size: int) -> Array:
        return self._shared


def _batches(rule: Rule, vocab: int, first: int, count: int) -> list[tuple[int, int]]:
    """The draws from ``first`` on, cut into spans (start, stop) that are made at once."""
    at_once = max(1, _CELLS // vocab) if rule.races else _TOGETHER
    return [(start, min(start + at_once, first + count)) for start in range(first, first + count, at_once)]


def _each(work: Callable[[int, int], tuple[Array, ...]], spans: list[tuple[int, int]]) -> list[tuple[Array, ...]]:
    """``work(start, stop)`` for every span, in order."""
    if len(spans) == 1:
        return [work(*spans[0])]
    np.empty(_KEPT)
    with ThreadPoolExecutor(_THREADS) as threads:
        return list(threads.map(lambda span: work(*span), spans))


def largest_batch(rule: Rule, vocab: int) -> int:
    """How many draws :func:`deal` makes in about 0.2 s."""
    return min(max(1, 2 * 10**7 // vocab), 100_000) if rule.races else 100_000


def whole_count(rule: Rule, vocab: int) -> int:
    """How many draws a verdict is based on: races over a large vocabulary cost a number a token."""
    return 2_000 if rule.races and vocab > 1_000 else 100_000


# --- two places in a row ----------------------------------------------------------------------------------------------


def joint(of: Rule | Entrant, p_places: Array, q_places: Array, gamma: int, drawn_places: Array | None = None) -> Array:
    """Exact law of the first two tokens of a text, over as many rounds, one or two, as they take.

    Args:
        of: a rule, or the entrant that uses it.
        p_places: the target's laws by place, shape (gamma + 2, vocab) or more rows: a second round starts at place 1.
        q_places: the drafter's, shape (gamma + 1, vocab) or more rows.
        gamma: drafts a round, at least 0. A block is enumerated: vocab**gamma must stay small.
        drawn_places: the laws that drafts are really drawn from, shape of ``q_places``, if not these.

    Returns:
        Shape (vocab, vocab), float64: [x, y] is the chance that the text begins with x, y. Under an exact rule it is
        p of place 0 times p of place 1.

    Raises:
        ValueError: gamma is negative or there are too few rows.
    """
    rule, drawn_places = _checked(of, p_places, q_places, gamma, drawn_places)
    alone, pair = _written(rule, p_places, q_places, drawn_places, gamma)
    next_alone, next_pair = _written(rule, p_places[1:], q_places[1:], drawn_places[1:], gamma)
    return pair + alone[:, None] * (next_alone + array_namespace(pair).sum(next_pair, axis=-1))


def deal_joint(
    of: Rule | Entrant,
    p_places: Array,
    q_places: Array,
    gamma: int,
    count: int,
    seed: int,
    *,
    first: int = 0,
    drawn_places: Array | None = None,
) -> Array:
    """Write the first two tokens of a text ``count`` times, by the functions that the decoder calls.

    Arguments as in :func:`joint` and :func:`deal`.

    Returns:
        How often each pair of tokens was written, int64, shape (vocab, vocab).

    Raises:
        ValueError: count is below 1, gamma is negative, or there are too few rows.
    """
    if count < 1:
        raise ValueError(f"count must be at least 1, got {count}")
    rule, drawn_places = _checked(of, p_places, q_places, gamma, drawn_places)
    xp = array_namespace(p_places, q_places)
    vocab = p_places.shape[1]

    def begun(place: int, positions: Array) -> tuple[Array, Array, Array]:
        """Drafts kept by the round at ``place`` and the first two tokens it writes, the second only if it kept any."""
        noise = RoundNoise(seed, positions + place, rule.by_round, like=p_places)
        drafts = [xp.broadcast_to(rule.draft(drawn_places[place + i], noise, i), positions.shape) for i in range(gamma)]
        draft_ids = xp.stack(drafts, axis=-1) if drafts else xp.zeros((*positions.shape, 0), dtype=xp.int64)
        verdict = rule.verify(p_places[place : place + gamma + 1], q_places[place : place + gamma], draft_ids, noise)
        closing = xp.broadcast_to(verdict.closing.id, positions.shape)
        one, two = (xp.where(verdict.kept > i, drafts[i], closing) if i < gamma else closing for i in range(2))
        return verdict.kept, one, two

    def written(start: int, stop: int) -> tuple[Array]:
        """Both tokens of every text, as one number."""
        # No two texts share a number: the places of a round, and one more that only the next one sees.
        positions = (gamma + 2) * xp.arange(start, stop, dtype=xp.int64, device=device(p_places))
        kept, one, two = begun(0, positions)
        _, next_one, _ = begun(1, positions)
        return (one * vocab + xp.where(kept > 0, two, next_one),)

    (pairs,) = zip(*_each(written, _batches(rule, vocab, first, count)), strict=True)
    return xp.reshape(_counts(xp.concat(pairs), vocab * vocab), (vocab, vocab))


def _checked(
    of: Rule | Entrant, p_places: Array, q_places: Array, gamma: int, drawn_places: Array | None
) -> tuple[Rule, Array]:
    """The rule, and the laws that drafts are drawn from, once there are laws enough for two rounds."""
    drawn_places = q_places if drawn_places is None else drawn_places
    if gamma < 0:
        raise ValueError(f"gamma must be at least 0, got {gamma}")
    if p_places.shape[0] < gamma + 2 or min(q_places.shape[0], drawn_places.shape[0]) < gamma + 1:
        raise ValueError(
            f"two rounds of {gamma} drafts need {gamma + 2} laws of the target and {gamma + 1} of the drafter, "
            f"got {p_places.shape[0]} and {min(q_places.shape[0], drawn_places.shape[0])}"
        )
    return (of.rule if isinstance(of, Entrant) else of), drawn_places


def _written(rule: Rule, p: Array, q: Array, drawn: Array, gamma: int) -> tuple[Array, Array]:
    """Chances that a round writes one token, x alone: (vocab,), and that it begins with x, y: (vocab, vocab)."""
    if gamma == 0:
        plain = _plain(rule, p[0])
        return plain, array_namespace(p).zeros_like(plain[:, None] * plain)
    if rule.keep_probability(p[0], q[0]) is None:
        return _written_by_block(rule, p, q, drawn, gamma)
    here = expected(rule, p[0], q[0], drawn[0])
    behind = _plain(rule, p[1]) if gamma == 1 else expected(rule, p[1], q[1], drawn[1]).emitted
    return here.dealt, here.kept[:, None] * behind


def _plain(rule: Rule, p: Array) -> Array:
    """Law of the token that a round ends with when nothing is left to judge, (vocab,)."""
    no_ids = array_namespace(p).zeros(0, dtype=array_namespace(p).int64, device=device(p))
    return rule.verify(p[None], p[None][:0], no_ids, RoundNoise(0, 0, rule.by_round, like=p)).closing.law()


def _written_by_block(rule: Rule, p: Array, q: Array, drawn: Array, gamma: int) -> tuple[Array, Array]:
    """The same where drafts are judged together: every block of drafts with every way its coins can fall."""
    xp, vocab = array_namespace(p, q), p.shape[1]
    p, q = p[: gamma + 1], q[:gamma]
    every_draft = _every_choice(vocab, gamma, p)[:, None, :]
    passing = _every_choice(2, gamma, p) == 1
    drafts, passing = xp.broadcast_arrays(every_draft, passing[None])
    bar = rule.verify(p, q, drafts, _Coins(0.5 + xp.zeros_like(p[0, 0]) * drafts)).judgements.accept_prob
    verdict = rule.verify(p, q, drafts, _Coins(xp.where(passing, bar / 2, (1 + bar) / 2)))
    chance = xp.prod(xp.where(passing, bar, 1 - bar), axis=-1)
    for place in range(gamma):
        chance = chance * drawn[place][drafts[..., place]]
    closing, kept = verdict.closing.law(), verdict.kept[..., None]
    second = closing if gamma == 1 else xp.where(kept == 1, closing, one_hot(drafts[..., 1], like=p))
    begun = xp.reshape(chance[..., None] * xp.where(kept > 0, second, 0.0), (-1, vocab))
    alone = xp.reshape(chance[..., None] * xp.where(kept == 0, closing, 0.0), (-1, vocab))
    return xp.sum(alone, axis=0), one_hot(xp.reshape(drafts[..., 0], (-1,)), like=p).T @ begun


def _every_choice(size: int, places: int, like: Array) -> Array:
    """Every row of ``places`` numbers below ``size``, int64, shape (size**places, places)."""
    xp = array_namespace(like)
    index = xp.arange(size**places, dtype=xp.int64, device=device(like))[:, None]
    return index // xp.asarray([size**place for place in range(places)], device=device(like)) % size


@dataclass(frozen=True)
class _Coins:
    """The noise of a round whose coins are given, shape (..., gamma). What else is drawn is not looked at."""

    coins: Array

    def accept(self, count: int) -> Array:
        return self.coins[..., :count]

    def _any(self, place: int, *_: int) -> Array:
        return array_namespace(self.coins).full_like(self.coins[..., 0], 0.5)

    draft = residual = target = gumbel = _any


# --- how far apart ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Comparison:
    """Counts beside the law that they should follow.

    Attributes:
        count: draws.
        tv: TV between the shares seen and the law.
        floor: what exact sampling of the same size shows as TV: the middle 99 % of it runs from the first number to the
            last, and the second is its mean.
        chi_square: sum of (seen - expected)**2 / expected over the cells.
        degrees: of freedom, cells - 1; 0 where at most one cell is frequent enough to compare.
        p_value: chance that exact sampling looks at least as wrong as this; 0 where something without chance was seen.
        cells: cells compared: tokens expected fewer than five times are one cell together.
    """

    count: int
    tv: float
    floor: tuple[float, float, float]
    chi_square: float
    degrees: int
    p_value: float
    cells: int


def compare(counts: Array, law: Array) -> Comparison:
    """Hold counts against a law.

    Args:
        counts: how often each outcome was seen, any shape, at least one in all.
        law: its chance, same shape.

    Raises:
        ValueError: the shapes differ, nothing was seen, or the law has no mass.
    """
    if counts.shape != law.shape:
        raise ValueError(f"counts and law must have one shape, got {tuple(counts.shape)} and {tuple(law.shape)}")
    seen, chances = np.asarray(counts).ravel(), np.asarray(law, dtype=np.float64).ravel()
    count, mass = int(seen.sum()), chances.sum()
    if count < 1 or not mass > 0:
        raise ValueError(f"something must have been seen and the law have mass, got {count} draws and mass {mass}")
    chances = chances / mass
    tv = float(np.abs(seen / count - chances).sum() / 2)
    chi_square, degrees, p_value = _chi_square(seen, chances, count)
    return Comparison(count, tv, _noise_floor(chances.tobytes(), count), chi_square, degrees, p_value, degrees + 1)


def _chi_square(seen: Array, chances: Array, count: int) -> tuple[float, int, float]:
    """Chi-square, its degrees of freedom, and how likely exact sampling is to look as wrong."""
    from scipy import special

    means = count * chances
    often = means >= _FEW
    seen_seldom, mean_seldom = int(seen[~often].sum()), float(means[~often].sum())
    seen_often, means = seen[often], means[often]
    tail = 1.0
    if mean_seldom >= _FEW:
        seen_often, means = np.append(seen_often, seen_seldom), np.append(means, mean_seldom)
    elif mean_seldom > 0 and len(means):
        # Too rare for a cell of their own: they share the smallest one, and are counted against their own chance.
        smallest = means.argmin()
        seen_often[smallest] += seen_seldom
        means[smallest] += mean_seldom
        tail = float(special.bdtrc(seen_seldom - 1, count, mean_seldom / count)) if seen_seldom else 1.0
    chi_square = float(((seen_often - means) ** 2 / means).sum())
    degrees = max(len(means) - 1, 0)  # of a few draws no cell is left, and nothing can be told
    p_value = float(special.chdtrc(degrees, chi_square)) if degrees else 1.0
    if mean_seldom and mean_seldom < _FEW:
        p_value = min(1.0, 2 * min(p_value, tail))
    return chi_square, degrees, 0.0 if seen[chances == 0].any() else p_value


@lru_cache(maxsize=32)
def _noise_floor(law: bytes, count: int) -> tuple[float, float, float]:
    """See :attr:`Comparison.floor`: exact sampling, simulated with a seed of its own.

    The likeliest tokens are drawn as they are. The sum over the many others is normal given how many of them were
    drawn, with the moments of Poisson counts (Holst 1972, Biometrika 59).
    """
    from scipy import special

    generator = np.random.default_rng(0)
    means = np.sort(np.frombuffer(law))[::-1] * count
    head, tail = means[:_DRAWN_SINGLY], means[_DRAWN_SINGLY:]
    drawn = generator.multinomial(count, np.append(head, tail.sum()) / means.sum(), size=_FLOOR_DRAWS)
    distance = np.abs(drawn[:, :-1] - head).sum(axis=1)
    if tail.any():
        tail = tail[tail > 0]
        above = np.floor(tail) + 1
        mean = 2 * np.exp(special.xlogy(above, tail) - tail - special.gammaln(above))
        at_least = [
            np.where(above > back, special.gammainc(np.maximum(above - back, 1), tail), 1.0) for back in range(3)
        ]
        squares_above = tail**2 * (at_least[2] - 2 * at_least[1] + at_least[0]) + tail * at_least[1]
        slope = (2 * squares_above - tail).sum() / tail.sum()
        spread = np.sqrt(max((tail - mean**2).sum() - slope**2 * tail.sum(), 0.0))
        surplus = drawn[:, -1] - tail.sum()
        others = mean.sum() + slope * surplus + spread * generator.standard_normal(_FLOOR_DRAWS)
        distance += np.maximum(others, np.abs(surplus))
    tv = distance / (2 * count)
    low, high = np.quantile(tv, [0.005, 0.995])
    return float(low), float(tv.mean()), float(high)


@lru_cache(maxsize=1024)
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
    from scipy import special  # here, because pages paint before it is imported

    low = bisect_right(range(count), miss / 2, key=lambda seen: special.bdtr(seen, count, chance))
    high = bisect_left(range(count), -miss / 2, key=lambda seen: -special.bdtrc(seen, count, chance))
    return low, high


def _round(p: Array, q: Array) -> tuple[Array, Array]:
    """The laws of a round of one draft: (2, vocab), whose second row is the bonus's, and (1, vocab)."""
    return array_namespace(p, q).stack([p, p]), q[None, :]


def _counts(ids: Array, vocab: int) -> Array:
    """How often each id occurs, int64, shape (vocab,)."""
    xp = array_namespace(ids)
    every_id = xp.arange(vocab, dtype=ids.dtype, device=device(ids))
    ordered = xp.sort(ids)
    return xp.searchsorted(ordered, every_id, side="right") - xp.searchsorted(ordered, every_id, side="left")
