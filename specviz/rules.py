"""Verification rules: which drafts stay, and what follows them.

p is the target's law and q the drafter's. A round of gamma drafts brings ``p (gamma+1, vocab)`` and ``q (gamma, vocab)``,
shared by all runs; ``draft_ids (..., gamma)`` and the noise may carry leading axes, one run each, so that the decoder and
a bench of 100,000 draws run the same code. Places count from 0. gamma 0 is plain decoding with the rule's own draw.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from array_api_compat import array_namespace, device

from specviz.noise import Noise
from specviz.probability import Array, inverse_cdf, log, normalised, one_hot, overlap, residual, warp
from specviz.theory import gumbel_match


@dataclass(frozen=True)
class Judgements:
    """How each draft was tested; arrays of shape (..., gamma).

    Attributes:
        accept_prob: chance of passing given this draft, before coin or noise is seen, float64 in [0, 1].
        passed: outcome of the draft's own test, bool. Drafts behind the first failure are tested too, on paper.
        coin: uniforms in (0, 1), where the rule throws coins, else None.
        target_id: the target's own tokens, where the rule compares, else None. One of the two is always set.
        weight: w of block verification, float64 in [0, 1], else None.
    """

    accept_prob: Array
    passed: Array
    coin: Array | None = None
    target_id: Array | None = None
    weight: Array | None = None


@dataclass(frozen=True)
class Closing:
    """The last token of the round: a correction after a rejection, a bonus after a full accept, plain without drafts.

    Attributes:
        id: int64, shape (...).
        draw: the uniform it was drawn with, shape (...); None where the rule used none.
        law: computes, when called, the law it was drawn from, shape (..., vocab), float64.
    """

    id: Array
    draw: Array | None
    law: Callable[[], Array]


@dataclass(frozen=True)
class Verdict:
    """The outcome of a round: how many drafts are kept, int64 of shape (...) in 0..gamma, why, and what follows them."""

    kept: Array
    judgements: Judgements
    closing: Closing


class Rule(ABC):
    """A verification rule. ``exact``: the text follows the target's law, whatever the drafter. ``by_round``: its noise must
    be keyed by the round's start too (:func:`specviz.noise.uniform`)."""

    name: ClassVar[str]
    exact: ClassVar[bool] = True
    by_round: ClassVar[bool] = False

    def draft(self, q_row: Array, noise: Noise, place: int) -> Array:
        """How the drafter draws under this rule: ids, int64, shape (...), from laws of shape (..., vocab)."""
        return inverse_cdf(q_row, noise.draft(place))

    @abstractmethod
    def verify(self, p: Array, q: Array, draft_ids: Array, noise: Noise) -> Verdict:
        """Judge the drafts and draw the closing token.

        Args:
            p: target's laws, shape (gamma+1, vocab), float64.
            q: the laws that the drafts were drawn from, shape (gamma, vocab), float64.
            draft_ids: int64, shape (..., gamma).
            noise: the numbers of this round.

        Raises:
            ValueError: the shapes do not fit together.
        """

    @abstractmethod
    def keep_probability(self, p: Array, q: Array) -> Array | None:
        """Chance that a draft is kept here, before it is drawn, shape (...); None where a position alone has none."""

    @abstractmethod
    def emitted_law(self, p: Array, q: Array) -> Array:
        """Law of the token that a round with one draft emits first, exactly. Shape (..., vocab)."""


# --- rules that throw coins -------------------------------------------------------------------------------------------


class _RatioRule(Rule):
    """Keep while coin < min(1, p/q); then a correction that is the subclass's own."""

    def verify(self, p: Array, q: Array, draft_ids: Array, noise: Noise) -> Verdict:
        gamma = _check_shapes(p, q, draft_ids)
        accept_prob = _ratio(_at(p, draft_ids), _at(q, draft_ids))
        coin = noise.accept(gamma)
        passed = coin < accept_prob
        kept = _leading(passed)
        closing = _drawn(
            kept, lambda k: p[k] if k == gamma else self.correction(p[k], q[k], draft_ids[..., k]), gamma, noise
        )
        return Verdict(kept, Judgements(accept_prob, passed, coin=coin), closing)

    @abstractmethod
    def correction(self, p: Array, q: Array, draft_id: Array) -> Array:
        """Law of the token in place of a rejected draft: (vocab,), or (..., vocab) where it depends on the draft."""

    def keep_probability(self, p: Array, q: Array) -> Array:
        return overlap(p, q)


class SpeculativeSampling(_RatioRule):
    """Keep while coin < min(1, p/q); correct from the residual. Leviathan et al. 2023, Algorithm 1."""

    name = "speculative_sampling"

    def correction(self, p: Array, q: Array, draft_id: Array) -> Array:
        return residual(p, q)

    def emitted_law(self, p: Array, q: Array) -> Array:
        return _kept_or(p, q, residual(p, q))


class BlockVerification(Rule):
    """Judge the block as a whole: a later draft may carry earlier ones. Sun et al. 2024 (arXiv 2403.10444).

    w_0 = 1, w_i = min(1, w_(i-1) p/q); S_i = sum max(w_i p - q, 0) at the place behind draft i; the bar is
    h_i = S_i / (S_i + 1 - w_i), and w_gamma for the last draft. kept = the *last* i with coin < h_i.
    """

    name = "block_verification"
    by_round = True

    def verify(self, p: Array, q: Array, draft_ids: Array, noise: Noise) -> Verdict:
        xp = array_namespace(p)
        gamma = _check_shapes(p, q, draft_ids)
        p_drafts, q_drafts = _at(p, draft_ids), _at(q, draft_ids)
        weight, accept_prob = xp.zeros_like(p_drafts), xp.zeros_like(p_drafts)
        carried = xp.ones_like(p_drafts[..., 0]) if gamma else None
        for i in range(gamma):
            carried = _ratio(carried * p_drafts[..., i], q_drafts[..., i])
            weight[..., i] = carried
            accept_prob[..., i] = carried if i == gamma - 1 else _bar(carried, p[i + 1], q[i + 1])
        coin = noise.accept(gamma)
        passed = coin < accept_prob
        places = xp.arange(1, gamma + 1, dtype=xp.int64, device=device(p))
        kept = xp.max(xp.where(passed, places, 0), axis=-1) if gamma else _leading(passed)

        def law_of(k: int) -> Array:
            if k == gamma:
                return p[k]
            # w_0 is 1 for every run: one law, shared.
            scaled = p[k] if k == 0 else weight[..., k - 1, None] * p[k]
            return normalised(xp.maximum(scaled - q[k], 0.0), otherwise=p[k])

        return Verdict(
            kept, Judgements(accept_prob, passed, coin=coin, weight=weight), _drawn(kept, law_of, gamma, noise)
        )

    def keep_probability(self, p: Array, q: Array) -> None:
        return None

    def emitted_law(self, p: Array, q: Array) -> Array:
        return _kept_or(p, q, residual(p, q))


# --- rules that compare with the target's own token -------------------------------------------------------------------


class _MatchRule(Rule):
    """Keep while the draft is the target's own token; then emit that very token."""

    def verify(self, p: Array, q: Array, draft_ids: Array, noise: Noise) -> Verdict:
        xp = array_namespace(p)
        gamma = _check_shapes(p, q, draft_ids)
        target_ids = xp.stack([self.target_id(p[place], noise, place) for place in range(gamma + 1)], axis=-1)
        passed = draft_ids == target_ids[..., :gamma]
        accept_prob = xp.zeros(draft_ids.shape, dtype=xp.float64, device=device(p))
        for place in range(gamma):
            accept_prob[..., place] = self.accept_prob(p[place], q[place], draft_ids[..., place])
        kept = _leading(passed)
        closing = Closing(
            id=_chosen(kept, lambda k: target_ids[..., k]),
            draw=self.closing_draw(kept, noise),
            law=lambda: _laws(kept, lambda k: self.target_law(p[k])),
        )
        return Verdict(kept, Judgements(accept_prob, passed, target_id=target_ids[..., :gamma]), closing)

    @abstractmethod
    def target_id(self, p: Array, noise: Noise, place: int) -> Array:
        """The token that the target chooses itself at this place, shape (...), whatever was drafted."""

    @abstractmethod
    def accept_prob(self, p: Array, q: Array, draft_ids: Array) -> Array:
        """Chance that the target's own token is the draft, given the draft, shape (...)."""

    def closing_draw(self, kept: Array, noise: Noise) -> Array | None:
        """The uniform that the closing token was drawn with."""
        return None

    def target_law(self, p: Array) -> Array:
        """Law of the target's own token."""
        return p

    def emitted_law(self, p: Array, q: Array) -> Array:
        return self.target_law(p)


class Greedy(_MatchRule):
    """Keep while the draft is the target's likeliest token. No chance is left; both temperatures are 0."""

    name = "greedy"

    def draft(self, q_row: Array, noise: Noise, place: int) -> Array:
        return _argmax(q_row)

    def target_id(self, p: Array, noise: Noise, place: int) -> Array:
        return _argmax(p)

    def target_law(self, p: Array) -> Array:
        return one_hot(_argmax(p), like=p)

    def accept_prob(self, p: Array, q: Array, draft_ids: Array) -> Array:
        return self.target_law(p)[draft_ids]

    def keep_probability(self, p: Array, q: Array) -> Array:
        return overlap(self.target_law(p), self.target_law(q))


class GumbelCoupling(_MatchRule):
    """Both models take argmax(log law + g) with shared noise g: the text depends on seed and target only.

    Source: Daliri et al. 2024 (arXiv 2408.07978).
    """

    name = "gumbel_coupling"

    def draft(self, q_row: Array, noise: Noise, place: int) -> Array:
        return _argmax(log(q_row) + noise.gumbel(place, q_row.shape[-1]))

    def target_id(self, p: Array, noise: Noise, place: int) -> Array:
        return _argmax(log(p) + noise.gumbel(place, p.shape[-1]))

    def accept_prob(self, p: Array, q: Array, draft_ids: Array) -> Array:
        # 1 / (q_x sum_y max(p_y / p_x, q_y / q_x)), all quotients kept below 1.
        xp = array_namespace(p)
        p_x, q_x = p[draft_ids], q[draft_ids]
        larger = xp.maximum(p_x, q_x)
        larger = xp.where(larger > 0, larger, 1.0)
        p_x, q_x = p_x / larger, q_x / larger
        race = xp.sum(xp.maximum(p * q_x[..., None], q * p_x[..., None]), axis=-1)
        return xp.where(q_x > 0, p_x / xp.where(q_x > 0, race, 1.0), 0.0)

    def keep_probability(self, p: Array, q: Array) -> Array:
        return gumbel_match(p, q)


class TokenMatch(_MatchRule):
    """Keep while the target's independent sample happens to be the draft; emit that very sample. Exact, and slow."""

    name = "token_match"

    def target_id(self, p: Array, noise: Noise, place: int) -> Array:
        return inverse_cdf(p, noise.target(place))

    def accept_prob(self, p: Array, q: Array, draft_ids: Array) -> Array:
        return p[draft_ids]

    def closing_draw(self, kept: Array, noise: Noise) -> Array | None:
        return _chosen(kept, noise.target)

    def keep_probability(self, p: Array, q: Array) -> Array:
        return array_namespace(p).sum(p * q, axis=-1)


RULES: dict[str, Rule] = {
    rule.name: rule for rule in (Greedy(), SpeculativeSampling(), GumbelCoupling(), TokenMatch(), BlockVerification())
}
"""The exact rules, by name: what the decoder takes."""


# --- steps that rules share -------------------------------------------------------------------------------------------


def _check_shapes(p: Array, q: Array, draft_ids: Array) -> int:
    """gamma, after a look at the shapes."""
    gamma = int(draft_ids.shape[-1])
    vocab = p.shape[-1]
    if tuple(p.shape) != (gamma + 1, vocab) or tuple(q.shape) != (gamma, vocab):
        raise ValueError(
            f"{gamma} drafts need p of shape ({gamma + 1}, vocab) and q of shape ({gamma}, vocab), "
            f"got {tuple(p.shape)} and {tuple(q.shape)}"
        )
    return gamma


def _at(laws: Array, draft_ids: Array) -> Array:
    """Each draft's probability under the law of its own place, shape (..., gamma)."""
    places = array_namespace(laws).arange(draft_ids.shape[-1], device=device(laws))
    return laws[places, draft_ids]


def _ratio(p: Array, q: Array) -> Array:
    """min(1, p/q), exactly 1 where p >= q > 0. A token with q = 0 could not have been drafted and gets 0."""
    xp = array_namespace(p, q)
    return xp.minimum(p, q) / xp.where(q > 0, q, 1.0)


def _bar(weight: Array, p: Array, q: Array) -> Array:
    """h = S / (S + 1 - w) with S = sum max(w p - q, 0), shape (...); 1 where both are 0."""
    xp = array_namespace(p)
    surplus = xp.sum(xp.maximum(weight[..., None] * p - q, 0.0), axis=-1)
    whole = surplus + 1.0 - weight
    return xp.where(whole > 0, surplus / xp.where(whole > 0, whole, 1.0), 1.0)


def _kept_or(p: Array, q: Array, correction: Array) -> Array:
    """Law of one emitted token: min(p, q) was kept, the rest came from ``correction``."""
    xp = array_namespace(p, q)
    kept = xp.minimum(p, q)
    return kept + (1.0 - xp.sum(kept, axis=-1, keepdims=True)) * correction


def _argmax(scores: Array) -> Array:
    return array_namespace(scores).argmax(scores, axis=-1)


def _leading(passed: Array) -> Array:
    """How many drafts passed before the first failure: (..., gamma) bool to (...) int64."""
    xp = array_namespace(passed)
    failures = xp.cumulative_sum(xp.astype(~passed, xp.int64), axis=-1)
    return xp.sum(xp.astype(failures == 0, xp.int64), axis=-1)


def _chosen(kept: Array, value_of: Callable[[int], Array]) -> Array:
    """``value_of(k)`` of the k that each run kept; asks only for the k that occur."""
    xp = array_namespace(kept)
    first, *others = xp.unique_values(kept).tolist()
    chosen = value_of(first)
    for k in others:
        chosen = xp.where(kept == k, value_of(k), chosen)
    return chosen


def _laws(kept: Array, law_of: Callable[[int], Array]) -> Array:
    """``law_of(k)`` of the k that each run kept, shape (..., vocab)."""
    xp = array_namespace(kept)
    laws = _chosen(kept[..., None], law_of)
    return xp.broadcast_to(laws, (*kept.shape, laws.shape[-1]))


def _drawn(kept: Array, law_of: Callable[[int], Array], gamma: int, noise: Noise) -> Closing:
    """The closing token drawn from ``law_of(kept)``: a bonus with the target's own number, a correction with another."""

    def draw_of(k: int) -> Array:
        return noise.target(k) if k == gamma else noise.residual(k)

    return Closing(
        id=_chosen(kept, lambda k: inverse_cdf(law_of(k), draw_of(k))),
        draw=_chosen(kept, draw_of),
        law=lambda: _laws(kept, law_of),
    )
