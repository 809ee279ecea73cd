"""The race of Gumbel coupling: which token comes home first in either model.

Every token of the vocabulary gets one random distance E = exp(−g), the same for both models; it runs at the speed of
its probability, so it is home at E / probability = exp(−(log probability + g)). The first home wins: that is the
argmax of log probability + g (Daliri et al. 2024, arXiv 2408.07978).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from specviz.trace import Rest, Row, Token

VIEW = (3.0, 12.0)
"""How many times the slower winner's time the picture is wide: at least, and at most, to show how far one model's
winner is behind in the other's race."""
SEEN = 1 / 100
"""Lanes that differ by this part of the picture look different, so their times are written differently."""
LATEST = 999_999.5
"""Times from here on are written as ">999,999"."""


@dataclass(frozen=True, slots=True)
class Lane:
    """One model's lane of a row: ``length`` in [0, 1] of the picture, ``beyond`` where it leaves it, ``first`` for the
    winner."""

    length: float
    beyond: bool = False
    first: bool = False


def score(token: Token | None, model: str) -> float:
    """log p + g ("target") or log q + g ("drafter"): the largest wins. −inf for a token that does not run."""
    chance = None if token is None else token.p if model == "target" else token.q
    if token is None or chance is None or chance <= 0 or token.noise is None:
        return -math.inf
    return math.log(chance) + token.noise


def time(token: Token | None, model: str) -> float:
    """When the token comes home, above 0; inf where it never does."""
    exponent = -score(token, model)
    return math.exp(exponent) if exponent < 700 else math.inf


@dataclass(frozen=True, slots=True)
class Race:
    """The runners of one row and what they are measured by.

    ``models`` are those whose lanes can be seen: "target", "drafter" or both.
    """

    row: Row
    models: tuple[str, ...]

    @property
    def field(self) -> tuple[Token, ...]:
        """Everybody that the record names, the best of the rest included."""
        return (*self.row.tokens, *(self.row.rest.runners() if self.row.rest is not None else ()))

    def winner(self, model: str) -> Token | None:
        """Who is home first; None where nobody runs."""
        best = max(self.field, key=lambda token: score(token, model), default=None)
        return best if score(best, model) > -math.inf else None

    def winners(self) -> set[int]:
        """The ids of the first home in each lane that can be seen."""
        found = (self.winner(model) for model in self.models)
        return {token.id for token in found if token is not None}

    def finish(self, token: Token) -> float:
        """The earlier of a token's times."""
        return min(time(token, model) for model in self.models)

    def limit(self) -> float:
        """The time at the right edge of the picture."""
        winners = [self.winner(model) for model in self.models]
        slower = max((time(w, m) for w, m in zip(winners, self.models, strict=True) if w is not None), default=1.0)
        slowest = max((t for w in winners for m in self.models if (t := time(w, m)) < math.inf), default=slower)
        return min(max(VIEW[0] * slower, 1.1 * slowest), VIEW[1] * slower)

    def lane(self, token: Token | None, model: str) -> Lane | None:
        """The token's lane; None where that model's cannot be seen or the token does not run there."""
        home = time(token, model)
        if model not in self.models or home == math.inf:
            return None
        share, winner = home / self.limit(), self.winner(model)
        assert token is not None
        return Lane(min(share, 1.0), share > 1, winner is not None and winner.id == token.id)

    def written(self, token: Token | None, model: str) -> str:
        """The token's time, with as many digits as tell the first two home apart, and lanes that look different."""
        value = time(token, model)
        if value == math.inf:
            return "never"
        first, *later = sorted({time(token, model) for token in self.field})[:2]
        least = min(max(2, math.ceil(-math.log10(SEEN * self.limit()))), 9)
        digits = next((d for d in range(least, 9) if not later or f"{first:.{d}f}" != f"{later[0]:.{d}f}"), 9)
        if value < 100:
            return f"{value:.{digits}f}"
        return f"{value:,.0f}" if value < LATEST else ">999,999"

    def formula(self, token: Token | None) -> str:
        """The same race as a sum: "g 1.20 · log p + g −0.45 · log q + g −1.20"."""
        if token is None or token.noise is None:
            return ""
        names = {"target": "log p + g", "drafter": "log q + g"}
        sums = (f"{names[model]} {_signed(score(token, model))}" for model in self.models)
        return " · ".join((f"g {_signed(token.noise)}", *sums))

    def knows(self, model: str) -> bool:
        """Whether the record says who is the best of the rest, or that none of the rest runs."""
        rest = self.row.rest
        mass, runner = (None, None) if rest is None else _rest(rest, model)
        return mass is not None and (mass == 0 or runner is not None)

    def best(self, left: Sequence[Token], model: str) -> Token | None:
        """The best of those without a row of their own; None where that is not known, or where none of them runs."""
        if self.row.rest is None or not self.knows(model):
            return None
        runner = _rest(self.row.rest, model)[1]
        best = max((*left, *((runner,) if runner else ())), key=lambda token: score(token, model), default=None)
        return best if score(best, model) > -math.inf else None


def _rest(rest: Rest, model: str) -> tuple[float | None, Token | None]:
    return (rest.p, rest.runner) if model == "target" else (rest.q, rest.drafter_runner)


def recorded(row: Row) -> bool:
    """Whether a row carries the noise that a race needs."""
    return bool(row.tokens) and all(token.noise is not None for token in row.tokens)


def _signed(value: float) -> str:
    return "−∞" if value == -math.inf else f"{value:.2f}".replace("-", "−")
