"""Verification rules: which drafts stay, and what follows them.

p is the target's law and q the drafter's. A round of gamma drafts brings ``p (gamma+1, vocab)`` and ``q (gamma,
vocab)``, shared by all runs; ``draft_ids (..., gamma)`` and the noise may carry leading axes, one run each, so that the
decoder and a bench of 100,000 draws run the same code. Places count from 0. gamma 0 is plain decoding with the rule's
own draw. Every comparison with a coin is ``coin < threshold``: what has chance 0 never passes.
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
    """How each draft was tested; arrays of shape (..., gamma), which broadcast with each other.

    Attributes:
        accept_prob: chance of passing given this draft, before coin or noise is seen, float64 in [0, 1].
        passed: outcome of the draft's own test, bool; computed for every draft, also behind the first failure.
        coin: uniforms in (0, 1) where the rule throws coins, else None.
        target_id: the target's own tokens where the rule compares with them, else None. One of the two is always set.
        weight: w of block verification, float64 in [0, 1], else None.
    """

    accept_prob: Array
    passed: Array
    coin: Array | None = None
    target_id: Array | None = None
    weight: Array | None = None


@dataclass(frozen=True)
class Closing:
    """The last token of a round: a correction after a rejection, a bonus after a full accept, plain without drafts.

    Attributes:
        id: int64, shape (...).
        draw: the uniform it was drawn with, shape (...); None where the rule used none.
        law: computes, when called, the law it was drawn from: shape (..., vocab), float64.
    """

    id: Array
    draw: Array | None
    law: Callable[[], Array]


@dataclass(frozen=True)
class Verdict:
    """The outcome of a round: how many drafts are kept (int64, shape (...), in 0..gamma), why, and what follows."""

    kept: Array
    judgements: Judgements
    closing: Closing


class Rule(ABC):
    """A verification rule.

    Attributes:
        name: how settings and traces call it.
        exact: the text follows the target's law, whatever the drafter.
        by_round: its noise must be keyed by the round's start as well; see :func:`specviz.noise.uniform`.
        races: it uses a number for every token of the vocabulary, not one or two a draft.
    """

    name: ClassVar[str]
    exact: ClassVar[bool] = True
    by_round: ClassVar[bool] = False
    races: ClassVar[bool] = False

    def draft(self, q_row: Array, noise: Noise, place: int) -> Array:
        """How the drafter draws under this rule: ids, int64, shape (...), from laws of shape (..., vocab)."""
        return inverse_cdf(q_row, noise.draft(place))

    @abstractmethod
    def verify(self, p: Array, q: Array, draft_ids: Array, noise: Noise) -> Verdict:
        """Judge the drafts and draw the closing token.

        Args:
            p: the target's laws, shape (gamma+1, vocab), float64.
            q: the laws that the drafts were drawn from, shape (gamma, vocab), float64.
            draft_ids: int64, shape (..., gamma).
            noise: the numbers of this round.

        Raises:
            ValueError: the shapes do not fit together.
        """

    @abstractmethod
    def keep_probability(self, p: Array, q: Array, drawn: Array | None = None) -> Array | None:
        """Chance that a draft is kept here, before it is drawn, shape (...); None where one position has none.

        ``drawn`` is the law that the draft really comes from, where q is only what the drafter reports.
        """

    @abstractmethod
    def emitted_law(self, p: Array, q: Array, drawn: Array | None = None) -> Array:
        """Exact law of the first token out of a round with one draft: shape (..., vocab). ``drawn`` as above."""


# --- rules that throw coins -------------------------------------------------------------------------------------------


class _RatioRule(Rule):
    """Keep while coin < min(1, p/q). What replaces the first rejected draft is up to the subclass."""

    def verify(self, p: Array, q: Array, draft_ids: Array, noise: Noise) -> Verdict:
        """See :meth:`Rule.verify`; accept_prob is min(1, p/q)."""
        gamma = _gamma(p, q, draft_ids)
        accept_prob = _ratio(_at(p, draft_ids), _at(q, draft_ids))
        coin = noise.accept(gamma)
        passed = coin < accept_prob
        kept = _leading(passed)

        def law_of(k: int) -> Array:
            return p[k] if k == gamma else self.correction(p[k], q[k], draft_ids[..., k])

        def id_of(k: int, u: Array) -> Array:
            return inverse_cdf(p[k], u) if k == gamma else self.corrected(p[k], q[k], draft_ids[..., k], u)

        return Verdict(kept, Judgements(accept_prob, passed, coin=coin), _drawn(kept, law_of, gamma, noise, id_of))

    def corrected(self, p: Array, q: Array, draft_id: Array, u: Array) -> Array:
        """The token that the uniform ``u`` selects from :meth:`correction`, shape (...)."""
        return inverse_cdf(self.correction(p, q, draft_id), u)

    @abstractmethod
    def correction(self, p: Array, q: Array, draft_id: Array) -> Array:
        """Law of the token in place of a rejected draft: (vocab,), or (..., vocab) where it depends on the draft."""

    def keep_probability(self, p: Array, q: Array, drawn: Array | None = None) -> Array:
        """Sum of min(p, q) = 1 - TV; of drawn min(1, p/q) where the report is not what was drawn from."""
        return overlap(p, q) if drawn is None else array_namespace(p).sum(drawn * _ratio(p, q), axis=-1)


class SpeculativeSampling(_RatioRule):
    """Keep while coin < min(1, p/q); correct from the residual. Leviathan et al. 2023, Algorithm 1."""

    name = "speculative_sampling"

    def correction(self, p: Array, q: Array, draft_id: Array) -> Array:
        """What the target wants more than the drafter offered."""
        return residual(p, q)

    def emitted_law(self, p: Array, q: Array, drawn: Array | None = None) -> Array:
        """min(p, q) + TV residual, which is p."""
        return _kept_or_corrected(p, q, drawn, residual(p, q))


class BlockVerification(Rule):
    """Judge the drafts as a block: a later one may carry earlier ones. Sun et al. 2024 (arXiv 2403.10444).

    w_0 = 1 and w_i = min(1, w_(i-1) p/q) for draft i from 1. Draft i's bar is h_i = S_i / (S_i + 1 - w_i) with
    S_i = sum max(w_i p - q, 0) at the place behind it; the last draft's is w_gamma. kept = the *last* i with
    coin < h_i, and the correction comes from max(w_kept p - q, 0), normalised.
    """

    name = "block_verification"
    by_round = True

    def verify(self, p: Array, q: Array, draft_ids: Array, noise: Noise) -> Verdict:
        """See :meth:`Rule.verify`; accept_prob is h, weight is w."""
        xp = array_namespace(p)
        gamma = _gamma(p, q, draft_ids)
        p_draft, q_draft = _at(p, draft_ids), _at(q, draft_ids)
        weight, bar = xp.ones_like(p_draft), xp.ones_like(p_draft)
        for i in range(gamma):
            carried = weight[..., i - 1] if i else 1.0
            weight[..., i] = _ratio(carried * p_draft[..., i], q_draft[..., i])
            bar[..., i] = weight[..., i] if i == gamma - 1 else _bar(weight[..., i], p[i + 1], q[i + 1])
        coin = noise.accept(gamma)
        passed = coin < bar
        # The last pass counts: leading failures, read from the end, are the drafts that go.
        kept = gamma - _leading(~xp.flip(passed, axis=-1))

        def law_of(k: int) -> Array:
            if k == gamma:
                return p[k]
            # Nothing kept: w_0 is 1 for every run, so that they share one law.
            wanted = p[k] if k == 0 else weight[..., k - 1, None] * p[k]
            return normalised(xp.maximum(wanted - q[k], 0.0), otherwise=p[k])

        judgements = Judgements(bar, passed, coin=coin, weight=weight)
        return Verdict(kept, judgements, _drawn(kept, law_of, gamma, noise))

    def keep_probability(self, p: Array, q: Array, drawn: Array | None = None) -> None:
        """None: the fate of a draft hangs on the drafts behind it."""
        return None

    def emitted_law(self, p: Array, q: Array, drawn: Array | None = None) -> Array:
        """A block of one draft is speculative sampling."""
        return _kept_or_corrected(p, q, drawn, residual(p, q))


# --- rules that compare with the target's own token -------------------------------------------------------------------


class _MatchRule(Rule):
    """Keep while the draft is the target's own token, and emit that very token where it is not."""

    def verify(self, p: Array, q: Array, draft_ids: Array, noise: Noise) -> Verdict:
        """See :meth:`Rule.verify`; target_id is the target's own token at every place."""
        xp = array_namespace(p)
        gamma = _gamma(p, q, draft_ids)
        target_ids = xp.stack([self.target_id(p[place], noise, place) for place in range(gamma + 1)], axis=-1)
        passed = draft_ids == target_ids[..., :gamma]
        kept = _leading(passed)
        accept_prob = xp.ones_like(_at(p, draft_ids))
        for place in range(gamma):
            accept_prob[..., place] = self.accept_prob(p[place], q[place], draft_ids[..., place])
        judgements = Judgements(accept_prob, passed, target_id=target_ids[..., :gamma])
        return Verdict(kept, judgements, self.closing(kept, p, target_ids, noise))

    @abstractmethod
    def target_id(self, p: Array, noise: Noise, place: int) -> Array:
        """The token that the target chooses itself at this place, shape (...), whatever was drafted."""

    @abstractmethod
    def accept_prob(self, p: Array, q: Array, draft_ids: Array) -> Array:
        """Chance that the target's own token is the draft, given the draft, shape (...)."""

    def closing(self, kept: Array, p: Array, target_ids: Array, noise: Noise) -> Closing:
        """The target's own token behind the kept drafts: its law is the emitted one, in which q has no part."""
        return Closing(
            id=_chosen(kept, lambda k: target_ids[..., k]),
            draw=None,
            law=lambda: _chosen(kept[..., None], lambda k: self.emitted_law(p[k], p[k])),
        )

    def emitted_law(self, p: Array, q: Array, drawn: Array | None = None) -> Array:
        """p: whatever was drafted, the target's own token comes out."""
        return p


class Greedy(_MatchRule):
    """Keep while the draft is the target's likeliest token: nothing is left to chance. Both temperatures are 0."""

    name = "greedy"

    def draft(self, q_row: Array, noise: Noise, place: int) -> Array:
        """The drafter's likeliest token."""
        return _argmax(q_row)

    def target_id(self, p: Array, noise: Noise, place: int) -> Array:
        """The target's likeliest token."""
        return _argmax(p)

    def accept_prob(self, p: Array, q: Array, draft_ids: Array) -> Array:
        """0 or 1."""
        return self.emitted_law(p, q)[draft_ids]

    def keep_probability(self, p: Array, q: Array, drawn: Array | None = None) -> Array:
        """1 where both models' likeliest tokens agree, else 0."""
        return array_namespace(p).astype(_argmax(p) == _argmax(q if drawn is None else drawn), p.dtype)

    def emitted_law(self, p: Array, q: Array, drawn: Array | None = None) -> Array:
        """Certain of the target's likeliest token."""
        return one_hot(_argmax(p), like=p)


class GumbelCoupling(_MatchRule):
    """Both models take argmax(log law + g) with the same noise g: the text depends on target and seed only.

    Source: Daliri et al. 2024 (arXiv 2408.07978).
    """

    name = "gumbel_coupling"
    races = True

    def draft(self, q_row: Array, noise: Noise, place: int) -> Array:
        """The winner of the drafter's race."""
        return _argmax(log(q_row) + noise.gumbel(place, q_row.shape[-1]))

    def target_id(self, p: Array, noise: Noise, place: int) -> Array:
        """The winner of the target's race, run with the drafter's noise."""
        return _argmax(log(p) + noise.gumbel(place, p.shape[-1]))

    def accept_prob(self, p: Array, q: Array, draft_ids: Array) -> Array:
        """1 / (q_x sum_y max(p_y / p_x, q_y / q_x)) for the draft x."""
        xp = array_namespace(p)
        # Each draft takes a sum over the vocabulary; many runs share a few drafts.
        ids, which = xp.unique_inverse(draft_ids)
        p_x, q_x = p[ids], q[ids]
        # Scaled so that the larger of the two is 1: then the sum is at least 1 and nothing overflows.
        larger = xp.maximum(p_x, q_x)
        larger = xp.where(larger > 0, larger, 1.0)
        p_x, q_x = p_x / larger, q_x / larger
        race = xp.sum(xp.maximum(p * q_x[..., None], q * p_x[..., None]), axis=-1)
        return xp.where(q_x > 0, xp.minimum(p_x, race) / xp.where(race > 0, race, 1.0), 0.0)[which]

    def keep_probability(self, p: Array, q: Array, drawn: Array | None = None) -> Array:
        """Chance that both races have one winner, :func:`specviz.theory.gumbel_match`."""
        return gumbel_match(p, q if drawn is None else drawn)


class TokenMatch(_MatchRule):
    """Keep while an independent sample of the target happens to be the draft; emit that sample. Exact, and slow."""

    name = "token_match"

    def target_id(self, p: Array, noise: Noise, place: int) -> Array:
        """The target's own sample."""
        return inverse_cdf(p, noise.target(place))

    def accept_prob(self, p: Array, q: Array, draft_ids: Array) -> Array:
        """p of the draft."""
        return p[draft_ids]

    def closing(self, kept: Array, p: Array, target_ids: Array, noise: Noise) -> Closing:
        """The target's sample behind the kept drafts, and the uniform it was drawn with."""
        own = super().closing(kept, p, target_ids, noise)
        return Closing(own.id, _chosen(kept, noise.target), own.law)

    def keep_probability(self, p: Array, q: Array, drawn: Array | None = None) -> Array:
        """Sum of p q."""
        return array_namespace(p, q).sum(p * (q if drawn is None else drawn), axis=-1)


# --- for the laboratory: rules and drafts that are wrong --------------------------------------------------------------


class ResampleFromP(_RatioRule):
    """Wrong: after a rejection it draws from p, so that what the drafter offers too much of comes twice."""

    name = "resample_from_p"
    exact = False

    def correction(self, p: Array, q: Array, draft_id: Array) -> Array:
        """p, although what fits under q was dealt already."""
        return p

    def emitted_law(self, p: Array, q: Array, drawn: Array | None = None) -> Array:
        """min(p, q) + TV p."""
        return _kept_or_corrected(p, q, drawn, p)


class StrikeOut(_RatioRule):
    """Wrong: after a rejection it only strikes the draft out of p. That belongs to a one-hot q, not to min(1, p/q)."""

    name = "strike_out"
    exact = False

    def correction(self, p: Array, q: Array, draft_id: Array) -> Array:
        """p without the draft."""
        xp = array_namespace(p)
        return normalised(xp.where(one_hot(draft_id, like=p) > 0, 0.0, p), otherwise=p)

    def corrected(self, p: Array, q: Array, draft_id: Array, u: Array) -> Array:
        """The same token, found by stepping over the draft on p's line: no row for every run."""
        end = array_namespace(p).cumulative_sum(p)
        mark = u * (end[-1] - p[draft_id])
        past = mark >= end[draft_id] - p[draft_id]
        return inverse_cdf(p, (mark + p[draft_id] * past) / end[-1])

    def emitted_law(self, p: Array, q: Array, drawn: Array | None = None) -> Array:
        """min(p, q) + the sum, over the other tokens x, of max(q_x - p_x, 0) p / (1 - p_x).

        Where p has nothing but x, x itself follows its rejection.
        """
        xp = array_namespace(p, q)
        drawn = q if drawn is None else drawn
        kept = drawn * _ratio(p, q)
        left = _others(p)
        spread = (drawn - kept) / xp.where(left > 0, left, 1.0)
        return kept + p * xp.where(left > 0, _others(spread), xp.sum(spread, axis=-1, keepdims=True))


class MatchThenRedraw(TokenMatch):
    """Wrong: where the target's sample differs from the draft, it is thrown away and another one drawn from p."""

    name = "match_then_redraw"
    exact = False

    def closing(self, kept: Array, p: Array, target_ids: Array, noise: Noise) -> Closing:
        """A fresh sample of the target."""
        return _drawn(kept, lambda k: p[k], p.shape[0] - 1, noise)

    def emitted_law(self, p: Array, q: Array, drawn: Array | None = None) -> Array:
        """p q + (1 - sum p q) p: pulled towards tokens that both models like."""
        drawn = q if drawn is None else drawn
        return p * drawn + (1.0 - self.keep_probability(p, drawn)[..., None]) * p


@dataclass(frozen=True)
class WrongDraft:
    """A drafter that lies: it draws from one law and reports another.

    Attributes:
        name: how the laboratory calls it.
        laws: from logits (..., vocab), a temperature and, where they are set, top-k and top-p to (drawn_from,
            reported), both (..., vocab), float64.
    """

    name: str
    laws: Callable[..., tuple[Array, Array]]

    def emitted_law(self, p: Array, logits: Array, temperature: float) -> Array:
        """Exact law of one token when speculative sampling believes the report: shape (..., vocab)."""
        drawn_from, reported = self.laws(logits, temperature)
        return _kept_or_corrected(p, reported, drawn_from, residual(p, reported))


RULES: dict[str, Rule] = {
    rule.name: rule for rule in (Greedy(), SpeculativeSampling(), GumbelCoupling(), TokenMatch(), BlockVerification())
}
"""The exact rules by name: the only ones that the decoder takes."""

WRONG_RULES: dict[str, Rule] = {rule.name: rule for rule in (ResampleFromP(), MatchThenRedraw(), StrikeOut())}
"""Rules that distort the text, by name."""

WRONG_DRAFTS: dict[str, WrongDraft] = {
    draft.name: draft
    for draft in (
        WrongDraft("q_before_temperature", lambda logits, t, *cut: (warp(logits, t, *cut), warp(logits, 1.0, *cut))),
        WrongDraft(
            "argmax_drafted_softmax_reported", lambda logits, t, *cut: (warp(logits, 0.0), warp(logits, t, *cut))
        ),
    )
}
"""Drafts that distort the text under a right rule, by name."""


def dropped_after_draw(p: Array, q: Array, least: float) -> Array:
    """Law of one token when drafting stops by looking at the draft: it is dropped if q < ``least``, p drawn instead.

    Wrong: a token that is seldom drafted enters the text by way of p alone. A drafter that stops *before* it draws, by
    the law, distorts nothing.

    Args:
        p: the target's law, shape (..., vocab).
        q: the drafter's law, shape (..., vocab).
        least: smallest q of a draft that is not dropped.
    """
    xp = array_namespace(p, q)
    offered = xp.where(q >= least, q, 0.0)
    kept = offered * _ratio(p, q)
    rejected, dropped = (xp.sum(part, axis=-1, keepdims=True) for part in (offered - kept, q - offered))
    return kept + rejected * residual(p, q) + dropped * p


# --- steps that rules share -------------------------------------------------------------------------------------------


def _gamma(p: Array, q: Array, draft_ids: Array) -> int:
    """The number of drafts, once the shapes fit together."""
    gamma, vocab = int(draft_ids.shape[-1]), int(p.shape[-1])
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
    """h = S / (S + 1 - w) with S = sum max(w p - q, 0), shape (...); 1 where both parts are 0."""
    xp = array_namespace(p, q)
    surplus = xp.sum(xp.maximum(weight[..., None] * p - q, 0.0), axis=-1)
    whole = surplus + (1.0 - weight)  # in this order w = 1 gives exactly h = 1
    return xp.where(whole > 0, surplus / xp.where(whole > 0, whole, 1.0), 1.0)


def _others(x: Array) -> Array:
    """The sum of all other tokens' values, same shape: of those before and those behind, so that nothing cancels."""
    xp = array_namespace(x)
    before, behind = (
        xp.cumulative_sum(one, axis=-1, include_initial=True)[..., :-1] for one in (x, xp.flip(x, axis=-1))
    )
    return before + xp.flip(behind, axis=-1)


def _kept_or_corrected(p: Array, q: Array, drawn: Array | None, correction: Array) -> Array:
    """Law of one token: a draft from ``drawn``, or q, that passed min(1, p/q), or else a draw from ``correction``."""
    kept = (q if drawn is None else drawn) * _ratio(p, q)
    return kept + (1.0 - array_namespace(p).sum(kept, axis=-1, keepdims=True)) * correction


def _argmax(scores: Array) -> Array:
    """The lowest id among the largest scores, shape (...)."""
    return array_namespace(scores).argmax(scores, axis=-1)


def _leading(passed: Array) -> Array:
    """How many of (..., gamma) are true before the first that is not: int64, shape (...)."""
    xp = array_namespace(passed)
    failures = xp.cumulative_sum(xp.astype(~passed, xp.int64), axis=-1)
    return xp.sum(xp.astype(failures == 0, xp.int64), axis=-1)


def _chosen(kept: Array, value_of: Callable[[int], Array]) -> Array:
    """``value_of(k)`` for the k that each run kept. Only the k that occur are asked for: a law costs a row."""
    xp = array_namespace(kept)
    first, *others = xp.unique_values(kept).tolist()
    chosen = value_of(first)
    for k in others:
        chosen = xp.where(kept == k, value_of(k), chosen)
    return xp.broadcast_arrays(chosen, kept)[0]


def _drawn(
    kept: Array,
    law_of: Callable[[int], Array],
    gamma: int,
    noise: Noise,
    id_of: Callable[[int, Array], Array] | None = None,
) -> Closing:
    """The closing token drawn from ``law_of(kept)``: with the target's own number, or the residual's if it corrects.

    ``id_of(k, u)`` is what a uniform selects from ``law_of(k)``, where there is a shorter way to it.
    """
    id_of = id_of or (lambda k, u: inverse_cdf(law_of(k), u))

    def draw_of(k: int) -> Array:
        return noise.target(k) if k == gamma else noise.residual(k)

    return Closing(
        id=_chosen(kept, lambda k: id_of(k, draw_of(k))),
        draw=_chosen(kept, draw_of),
        law=lambda: _chosen(kept[..., None], law_of),
    )
