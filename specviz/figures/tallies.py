"""The tally: rates that carry their fraction under their name."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from specviz.figures import numbers
from specviz.figures.table import Table
from specviz.trace import Round, tally

ENOUGH = 10
"""Judged drafts below which a rate says too little."""

NAMES = {
    "alpha": ("shared (alpha)", "mean Σ min(p, q) over judged places"),
    "tested": ("kept of judged", "kept ÷ (kept + rejected)"),
    "drafted": ("kept of drafted", "vLLM’s and llama.cpp’s acceptance rate"),
    "tokens": ("tokens per read", "vLLM’s mean acceptance length"),
}
TOO_FEW = "too few to say"
NOTHING = "Nothing is counted yet: the first round is not over."
EXPECTED = "Kept so far {kept}; the rule expects {expected} ± {band} from these places."
CERTAIN = "Nothing is left to chance, so there is no band."
BLOCK = "Block verification expects nothing place by place: what a coin decides hangs on the others."
BLOCK_LEFT_OUT = "Rounds under block verification are left out: it expects nothing place by place."
WASTED = "{reads} drafter reads went into drafts that were rejected or never judged."


@dataclass(frozen=True, slots=True)
class Measure:
    """One rate: its name, value, fraction and what others call it. ``few`` greys it."""

    name: str
    value: str
    fraction: str
    known_as: str
    few: bool


@dataclass(frozen=True, slots=True)
class Tally:
    """The panel: measures, then sentences."""

    rounds: int
    measures: tuple[Measure, ...]
    lines: tuple[str, ...]
    table: Table


def layout(rounds: Sequence[Round], *, story: bool = False) -> Tally:
    """Count the given rounds; under *Story* only the tokens a read brought."""
    if not rounds:
        return Tally(0, (), (NOTHING,), Table("Tally", ("measure", "value", "fraction", "what it is"), ()))
    counts = tally(rounds)
    few = counts.judged < ENOUGH
    measures = {
        "alpha": _measure("alpha", counts.alpha, f"{counts.judged} judged" if counts.judged else "none judged", few),
        "tested": _measure("tested", counts.tested_rate, numbers.fraction(counts.kept, counts.judged), few),
        "drafted": _measure("drafted", counts.drafted_rate, numbers.fraction(counts.kept, counts.drafted), few),
        "tokens": _measure(
            "tokens",
            counts.tokens_per_pass,
            numbers.fraction(counts.emitted, counts.target_passes),
            few and counts.drafted > 0,
        ),
    }
    if story or not counts.drafted:
        measures = {"tokens": measures["tokens"]}
    lines = [] if story else [line for line in (_expectation(rounds), _wasted(rounds)) if line]
    rows = tuple((m.name, m.value, m.fraction, m.known_as) for m in measures.values())
    return Tally(
        rounds=counts.rounds,
        measures=tuple(measures.values()),
        lines=tuple(lines),
        table=Table("Tally", ("measure", "value", "fraction", "what it is"), rows),
    )


def _measure(key: str, value: float | None, fraction: str, few: bool) -> Measure:
    name, known_as = NAMES[key]
    if value is None:
        return Measure(name, "–", fraction, known_as, True)
    shown = f"{value:.2f}" if value > 1 else numbers.probability(value)
    return Measure(name, shown, fraction, TOO_FEW if few else known_as, few)


def _expectation(rounds: Sequence[Round]) -> str | None:
    drafted = [round_ for round_ in rounds if round_.drafts]
    if not drafted:
        return None
    if all(map(_certain, drafted)):
        return CERTAIN
    told = [round_ for round_ in drafted if (round_.settings or {}).get("rule") != "block_verification"]
    if not told:
        return BLOCK
    counts = tally(told)
    if counts.expected_kept is None or counts.expected_kept_variance is None:
        return None
    band = 2.0 * math.sqrt(counts.expected_kept_variance)
    sentence = EXPECTED.format(kept=counts.kept, expected=f"{counts.expected_kept:.1f}", band=f"{band:.1f}")
    return sentence if len(told) == len(drafted) else f"{sentence} {BLOCK_LEFT_OUT}"


def _certain(round_: Round) -> bool:
    """Whether neither model drew anything: both at temperature 0, under whatever rule."""
    settings = round_.settings or {}
    return settings.get("temperature") == 0 and settings.get("drafter_temperature") == 0


def _wasted(rounds: Sequence[Round]) -> str | None:
    counts = tally(rounds)
    return (
        WASTED.format(reads=numbers.fraction(counts.drafted - counts.kept, counts.drafted)) if counts.drafted else None
    )
