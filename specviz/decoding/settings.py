"""The settings of a run: what a visitor can move."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, TypeGuard

from specviz.probability import is_greedy
from specviz.rules import RULES

MAX_GAMMA = 16
MAX_NGRAM = 16
DRAFTERS = ("model", "target", "ngram", "none")

DrafterKind = Literal["model", "target", "ngram", "none"]


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that decides a round besides the pair and the text so far.

    Attributes:
        rule: an exact rule of :data:`specviz.rules.RULES`.
        gamma: drafts a round, 0..16; 0 is the target alone.
        temperature: of the target, finite and at least 0; 0 is greedy.
        drafter_temperature: of the drafter, likewise; ``None`` follows ``temperature``.
        top_k: keep the k likeliest tokens of both rows; 0 keeps all.
        top_p: keep the likeliest tokens up to this mass of both rows, in (0, 1].
        seed: of every number drawn, any 64-bit integer.
        drafter: the pair's drafter model, the target drafting for itself, n-gram look-up, or none.
        ngram: the longest run of tokens that look-up matches, 1..16.
        stop_below: draft no further once the drafter's largest chance is below this, in [0, 1]; 0 never stops.
        stop_above: draft no further once the entropy of the drafter's chances, in nats, is above this, finite and at
            least 0; ``None`` never stops.

    Both stops look at the drafter's row before a token is drawn from it: looking at the token would bend the text.

    The rule ``greedy`` sets both temperatures to 0 where none was given.

    Raises:
        ValueError: a value is outside its range, or ``greedy`` is given a temperature above 0.
    """

    rule: str = "speculative_sampling"
    gamma: int = 4
    temperature: float = None  # type: ignore[assignment]  # filled in below
    drafter_temperature: float = None  # type: ignore[assignment]
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0
    drafter: DrafterKind = "model"
    ngram: int = 3
    stop_below: float = 0.0
    stop_above: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.rule, str) or self.rule not in RULES:
            raise ValueError(f"rule must be one of {', '.join(RULES)}, got {self.rule!r}")
        _check_whole("gamma", self.gamma, 0, MAX_GAMMA)
        _check_whole("top_k", self.top_k, 0, None)
        _check_whole("seed", self.seed, -(2**63), 2**63 - 1)
        if self.drafter not in DRAFTERS:
            raise ValueError(f"drafter must be one of {', '.join(DRAFTERS)}, got {self.drafter!r}")
        _check_whole("ngram", self.ngram, 1, MAX_NGRAM)
        if not (_is_finite(self.stop_below) and 0 <= self.stop_below <= 1):
            raise ValueError(f"stop_below must be in [0, 1], got {self.stop_below!r}")
        if not (self.stop_above is None or (_is_finite(self.stop_above) and self.stop_above >= 0)):
            raise ValueError(f"stop_above must be finite and at least 0, or None, got {self.stop_above!r}")
        if not (_is_finite(self.top_p) and 0 < self.top_p <= 1):
            raise ValueError(f"top_p must be in (0, 1], got {self.top_p!r}")
        if self.temperature is None:
            object.__setattr__(self, "temperature", 0.0 if self.rule == "greedy" else 1.0)
        if self.drafter_temperature is None:
            object.__setattr__(self, "drafter_temperature", self.temperature)
        for name in ("temperature", "drafter_temperature"):
            value = getattr(self, name)
            if not (_is_finite(value) and value >= 0):
                raise ValueError(f"{name} must be finite and at least 0, got {value!r}")
            if self.rule == "greedy" and not is_greedy(value):
                raise ValueError(f"the rule greedy needs {name} 0, got {value!r}; take speculative_sampling to sample")

    def as_dict(self) -> dict[str, Any]:
        """A plain mapping, as a round records it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Settings:
        """Settings from a round's record; keys that are not settings are ignored."""
        names = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in values.items() if name in names})


def _is_finite(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _check_whole(name: str, value: object, low: int, high: int | None) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < low or (high is not None and value > high):
        allowed = f"a whole number in {low}..{high}" if high is not None else f"a whole number from {low}"
        raise ValueError(f"{name} must be {allowed}, got {value!r}")
