"""The exchange at one place: what becomes of each token there, in chances, from the few tokens that a record lists.

What a record does not list is split into cells which behave like it, so that nothing of the vocabulary is missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from specviz import losslessness
from specviz.figures import numbers
from specviz.figures.sentences import rule_of
from specviz.losslessness import Outcome
from specviz.rules import RULES, WRONG_RULES, Rule
from specviz.trace import Draft, Round, Row

WRONG = {"coin": "resample_from_p", "token_match": "match_then_redraw"}
"""The wrong rule that is shown beside a right one."""
ROUNDING = 10.0**-numbers.MOST_DIGITS

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Exchange:
    """A place in chances, by listed token and then by part of the rest.

    ``count`` is the size of the vocabulary. ``wanted`` is p, or under block verification w·p, ``weight`` being that w.
    ``agree`` is the chance that a draft stays. ``rule`` is the rule that a single place follows and ``wrong`` a wrong
    one beside it; None where there is none.
    """

    mode: str
    ids: tuple[int, ...]
    count: int
    p: Array
    q: Array
    wanted: Array
    outcome: Outcome
    agree: float
    rule: Rule | None = None
    wrong: Rule | None = None
    weight: float = 1.0

    @property
    def certain(self) -> bool:
        """Whether nothing is left to chance: one token has all of p, and one all of q."""
        return bool(min(self.p.max(), self.q.max()) > 1 - ROUNDING)


def of(round_: Round, selected: int) -> Exchange | None:
    """The place of draft ``selected``; None where the record does not carry what it takes."""
    mode, draft = rule_of(round_), round_.drafts[selected]
    row = draft.row
    laws = _listed(row)
    if row is None or laws is None:
        return None
    p, q = laws
    ids = tuple(token.id for token in row.tokens)
    count = len(ids) + ((row.rest.count or 0) if row.rest is not None else 0)
    if mode == "block":
        return _block(round_, selected, row, ids, count, p, q)
    if mode == "greedy":
        # The first choices alone count, also where a record holds what stood before temperature 0.
        drafted = ids.index(draft.id) if draft.id in ids else int(q.argmax())
        p, q = np.eye(len(ids))[[int(p.argmax()), drafted]]
    else:
        rest = _rest(row, mode, float(p @ q))
        if rest is None:
            return None
        p, q = np.append(p, rest[0]), np.append(q, rest[1])
    if not (_is_law(p) and _is_law(q)):
        return None
    rule = RULES["speculative_sampling" if mode == "coin" else mode]
    outcome = losslessness.expected(rule, p, q)
    agree = float(outcome.kept.sum())
    if mode == "gumbel_coupling":
        if row.expected_accept is None or not 0 <= row.expected_accept <= 1:
            return None
        agree = row.expected_accept
    wrong = WRONG_RULES[WRONG[mode]] if mode in WRONG else None
    return Exchange(mode, ids, count, p, q, p, outcome, agree, rule, wrong)


def _listed(row: Row | None) -> tuple[Array, Array] | None:
    """p and q of the listed tokens, or None where one is missing."""
    if row is None or not row.tokens or any(token.p is None or token.q is None for token in row.tokens):
        return None
    return np.array([token.p for token in row.tokens]), np.array([token.q for token in row.tokens])


def _is_law(chances: Array) -> bool:
    """Whether these are chances that add up to 1: a file may hold anything."""
    return bool(chances.min() >= 0) and abs(float(chances.sum()) - 1) < 1e-6


def _rest(row: Row, mode: str, listed_match: float) -> tuple[list[float], list[float]] | None:
    """The rest of the vocabulary as a few cells that behave like it: their p and their q.

    Under a coin: what both share, what only the target wants, what only the drafter offers. Under token match: two
    cells whose Σ p·q is that of the rest. Under Gumbel coupling one cell: its chance to agree is not that of the rest,
    but what is drafted and what is written are.
    """
    if row.rest is None:
        return [], []
    p, q, overlap = row.rest.p, row.rest.q, row.rest.overlap
    if p is None or q is None:
        return None
    if mode == "gumbel_coupling":
        return [p], [q]
    if mode == "token_match":
        if row.expected_accept is None:
            return None
        match = min(max(row.expected_accept - listed_match, 0.0), p * q)
        met = match / p if p > 0 else 0.0
        return [p, 0.0], [met, max(q - met, 0.0)]
    if overlap is None:
        return None
    return [overlap, max(p - overlap, 0.0), 0.0], [overlap, 0.0, max(q - overlap, 0.0)]


def _block(
    round_: Round, selected: int, row: Row, ids: tuple[int, ...], count: int, p: Array, q: Array
) -> Exchange | None:
    """Under block verification: w·p beside q, w being the chance that the drafts before stay, all of them."""
    before = round_.drafts[selected - 1] if selected else None
    weight = 1.0 if before is None else before.weight
    rest = row.rest
    if weight is None or not 0 <= weight <= 1 or (rest is not None and (rest.p is None or rest.q is None)):
        return None
    kept, dealt = np.minimum(weight * p, q), np.maximum(weight * p - q, 0.0)
    if rest is not None and rest.p is not None and rest.q is not None:
        gaps = _gaps(before, weight, rest.p, rest.overlap, float(dealt.sum()))
        if gaps is None:
            return None
        gaps = max(gaps, weight * rest.p - rest.q)
        kept, dealt = np.append(kept, weight * rest.p - gaps), np.append(dealt, gaps)
        p, q = np.append(p, rest.p), np.append(q, rest.q)
    if not (_is_law(p) and _is_law(q)):
        return None
    return Exchange("block", ids, count, p, q, weight * p, Outcome(q, kept, dealt), float(kept.sum()), weight=weight)


def _gaps(before: Draft | None, weight: float, p: float, overlap: float | None, listed: float) -> float | None:
    """Σ max(w·p − q, 0) over the rest of the vocabulary.

    The record carries it in a roundabout way: the bar of the draft before is h = S / (S + 1 − w), with S that sum over
    the whole vocabulary. Where w is 1 the bar says nothing, and the rest's overlap says it all.
    """
    bar = None if before is None else before.accept_prob
    if weight > 1 - ROUNDING or bar is None or 1 - bar < ROUNDING:
        return None if overlap is None or weight < 1 - ROUNDING else max(p - overlap, 0.0)
    return min(max(bar * (1 - weight) / (1 - bar) - listed, 0.0), weight * p)
