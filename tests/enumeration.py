"""Every way a round can go, with its exact chance: the oracle for the laws of verification rules.

Drafts are enumerated by the law they are drawn from; the rule's own randomness by injecting, one by one, numbers that
bring about each of its outcomes. The real ``verify`` decides what each outcome is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

import numpy as np

from specviz.rules import Rule, Verdict

Array = np.ndarray[Any, Any]
LawAfter = Callable[[tuple[int, ...]], Array]
"""From the tokens so far to the law of the next one."""


@dataclass
class FixedNoise:
    """Numbers chosen by a test, by place along the axis behind the runs. Asking for what was not given fails."""

    coins: Array | None = None
    targets: Array | None = None
    residuals: Array | None = None
    gumbels: Array | None = None
    drafts: Array | None = None

    def draft(self, place: int) -> Array:
        return _given(self.drafts)[..., place]

    def accept(self, count: int) -> Array:
        return _given(self.coins)[..., :count]

    def residual(self, place: int) -> Array:
        return _given(self.residuals)[..., place]

    def target(self, place: int) -> Array:
        return _given(self.targets)[..., place]

    def gumbel(self, place: int, vocab_size: int) -> Array:
        return _given(self.gumbels)[..., place, :]


def _given(numbers: Array | None) -> Array:
    assert numbers is not None, "the rule asked for numbers that are not its own"
    return numbers


@dataclass
class Outcomes:
    """The ways a round can go after its drafts: chances that sum to 1, drafts kept, laws of the closing token."""

    chance: Array  # (outcomes,)
    kept: Array  # (outcomes,)
    closing: Array  # (outcomes, vocab)


def outcomes(rule: Rule, p: Array, q: Array, draft_ids: Sequence[int]) -> Outcomes:
    """Every outcome of ``verify`` after these drafts."""
    if rule.name == "greedy":
        return _by_target(rule, p, q, draft_ids, FixedNoise(), np.ones(1))
    if rule.name == "gumbel_coupling":
        return _by_race(rule, p, q, draft_ids)
    if rule.name in ("token_match", "match_then_redraw"):
        return _by_sample(rule, p, q, draft_ids)
    return _by_coin(rule, p, q, draft_ids)


def joint_law(
    rule: Rule, p_after: LawAfter, q_after: LawAfter, gamma: int, drawn_after: LawAfter | None = None
) -> Array:
    """Law of the first gamma + 1 tokens: one round from the start, then the target alone. Shape (vocab,) * (gamma + 1).

    ``drawn_after`` is the law that drafts are really drawn from, where it is not the one reported.
    """
    drawn_after = drawn_after or q_after
    vocab = len(p_after(()))
    law = np.zeros((vocab,) * (gamma + 1))
    for drafts in product(range(vocab), repeat=gamma):
        drafted = np.prod([drawn_after(drafts[:i])[x] for i, x in enumerate(drafts)])
        if drafted == 0:
            continue
        p = np.stack([p_after(drafts[:i]) for i in range(gamma + 1)])
        q = np.reshape([q_after(drafts[:i]) for i in range(gamma)], (gamma, vocab))
        ways = outcomes(rule, p, q, drafts)
        for kept in range(gamma + 1):
            closing = ways.chance[ways.kept == kept] @ ways.closing[ways.kept == kept]
            for token in np.flatnonzero(closing):
                emitted = (*drafts[:kept], int(token))
                law[emitted] += drafted * closing[token] * alone(p_after, emitted, gamma - kept)
    return law


def alone(p_after: LawAfter, text: tuple[int, ...], tokens: int) -> Array:
    """Joint law of the next ``tokens`` tokens out of the target alone."""
    if tokens == 0:
        return np.ones(())
    p = p_after(text)
    return np.stack([p[token] * alone(p_after, (*text, token), tokens - 1) for token in range(len(p))])


def first_token_law(rule: Rule, p: Sequence[float], q: Sequence[float], drawn: Sequence[float] | None = None) -> Array:
    """Law of the first token out of a round with one draft."""
    law: Array = joint_law(
        rule,
        lambda text: np.asarray(p, dtype=float),
        lambda text: np.asarray(q, dtype=float),
        gamma=1,
        drawn_after=None if drawn is None else lambda text: np.asarray(drawn, dtype=float),
    )
    return law.sum(axis=1)


def _by_coin(rule: Rule, p: Array, q: Array, draft_ids: Sequence[int]) -> Outcomes:
    gamma = len(draft_ids)
    passing = np.array(list(product([False, True], repeat=gamma)), dtype=bool).reshape(2**gamma, gamma)
    any_draw = np.full((len(passing), gamma + 1), 0.5)

    def verify(coins: Array) -> Verdict:
        noise = FixedNoise(coins=coins, residuals=any_draw, targets=any_draw)
        return rule.verify(p, q, np.asarray(draft_ids, dtype=np.int64), noise)

    bar = np.broadcast_to(verify(np.full(passing.shape, 0.5)).judgements.accept_prob, passing.shape)
    verdict = verify(np.where(passing, bar / 2, (1 + bar) / 2))
    chance = np.prod(np.where(passing, bar, 1 - bar), axis=1)
    return Outcomes(chance, verdict.kept, verdict.closing.law())


def _by_target(rule: Rule, p: Array, q: Array, draft_ids: Sequence[int], noise: FixedNoise, chance: Array) -> Outcomes:
    """Outcomes where the noise decides everything, the closing token too."""
    verdict = rule.verify(p, q, np.asarray(draft_ids, dtype=np.int64), noise)
    shape = chance.shape
    closing = np.eye(p.shape[1])[np.broadcast_to(verdict.closing.id, shape)]
    return Outcomes(chance, np.broadcast_to(verdict.kept, shape), closing)


def _by_sample(rule: Rule, p: Array, q: Array, draft_ids: Sequence[int]) -> Outcomes:
    samples, chance = _every_choice(p)
    above = np.cumsum(p, axis=1)
    uniforms = np.stack([(above[i] - p[i] / 2)[samples[:, i]] for i in range(len(p))], axis=1)
    noise = FixedNoise(targets=uniforms, residuals=np.full(uniforms.shape, 0.5))
    if rule.exact:
        return _by_target(rule, p, q, draft_ids, noise, chance)
    verdict = rule.verify(p, q, np.asarray(draft_ids, dtype=np.int64), noise)
    return Outcomes(chance, verdict.kept, verdict.closing.law())


def _by_race(rule: Rule, p: Array, q: Array, draft_ids: Sequence[int]) -> Outcomes:
    gamma, vocab = len(draft_ids), p.shape[1]
    laws = np.empty_like(p)
    arrivals = np.full((gamma + 1, vocab, vocab), 1e9)
    for place, x in enumerate(draft_ids):
        for y in range(vocab):
            joint, arrivals[place, y] = race(p[place], q[place], x, y)
            laws[place, y] = joint / q[place, x]
    laws[gamma] = p[gamma]
    arrivals[gamma, range(vocab), range(vocab)] = 1e-9
    winners, chance = _every_choice(laws)
    noise = -np.log(np.stack([arrivals[place, winners[:, place]] for place in range(gamma + 1)], axis=1))
    return _by_target(rule, p, q, draft_ids, FixedNoise(gumbels=noise), chance)


def race(p: Array, q: Array, x: int, y: int) -> tuple[float, Array]:
    """Chance that x wins the drafter's race while y wins the target's, and arrivals E that bring it about.

    Token z arrives at E_z / q_z and at E_z / p_z, E exponential. With E_x = a and E_y = t a, all others must come later
    in both races; integrating a out leaves 1 / L(t)**2 with L(t) = sum_z max(q_z / q_x, t p_z / p_y), piecewise linear.
    """
    arrivals = np.full(len(p), 1e9)
    arrivals[x] = 1.0
    if q[x] == 0 or p[y] == 0:
        return 0.0, arrivals
    with np.errstate(divide="ignore", invalid="ignore"):
        turns = (q / q[x]) / (p / p[y])

    def length(t: float) -> float:
        return float(np.sum(np.maximum(q / q[x], t * p / p[y])))

    if x == y:
        return 1 / length(1.0), arrivals
    start, end = q[y] / q[x], p[y] / p[x] if p[x] > 0 else np.inf
    if start >= end:
        return 0.0, arrivals
    arrivals[y] = (start + end) / 2 if np.isfinite(end) else start + 1.0
    inside = sorted(t for t in turns if start < t < end and np.isfinite(t))
    marks = [start, *inside] if np.isinf(end) else [start, *inside, end]
    chance = sum((b - a) / (length(a) * length(b)) for a, b in pairwise(marks))
    if np.isinf(end):
        chance += 1 / (length(marks[-1]) / p[y])
    return float(chance), arrivals


def _every_choice(laws: Array) -> tuple[Array, Array]:
    """All ways to choose one token a place, (ways, places), and their chances under independent laws, (ways,)."""
    choices = np.array(list(product(range(laws.shape[1]), repeat=len(laws))))
    return choices, np.prod(laws[np.arange(len(laws)), choices], axis=1)
