"""Numbers as people read them."""

from __future__ import annotations

import math

MOST_DIGITS = 12
SMALLEST = 1e-4
TIE = 1 + 1e-14
"""Makes up for the rounding error of a short sum, so that 0.825 is everywhere rounded up."""

WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
ONCE = {"1": "once", "under 1": "less than once"}


def count(number: int) -> str:
    """A count in words up to twelve, in figures above."""
    return WORDS[number] if 0 <= number < len(WORDS) else f"{number:,}"


def ordinal(number: int) -> str:
    """ "first" for 1, up to ten in words, in figures above."""
    return ORDINALS[number - 1] if 1 <= number <= len(ORDINALS) else f"{number}th"


def probability(value: float | None, digits: int = 2) -> str:
    """A probability that never looks like 0 or 1 unless it is."""
    if value is None:
        return "–"
    if value in (0.0, 1.0):
        return f"{value:.0f}"
    if 0 < value < SMALLEST:
        return f"<{SMALLEST:.4f}"
    value *= TIE
    while digits < MOST_DIGITS and float(f"{value:.{digits}f}") in (0.0, 1.0):
        digits += 1
    return f"{value:.{digits}f}"


def complement(written: str, value: float) -> str:
    """What is missing to 1, so that the two add up as they are written; ``value`` where that is too small to tell."""
    if written.startswith("<"):
        return probability(value)
    return probability(round(1 - float(written), MOST_DIGITS), len(written.partition(".")[2]) or 2)


def told_apart(*values: float | None) -> tuple[str, ...]:
    """The values with as many digits (at least two) as it takes to tell the different ones apart."""
    different = len({probability(value, MOST_DIGITS) for value in values})
    for digits in range(2, MOST_DIGITS + 1):
        written = tuple(probability(value, digits) for value in values)
        if len(set(written)) == different:
            break
    return written


def factors(*values: float) -> tuple[str, ...]:
    """Probabilities whose ratio is told beside them: small ones with two significant digits, different ones apart."""
    written = tuple(
        probability(value, max(2, 1 - math.floor(math.log10(value))) if value > 0 else 2) for value in values
    )
    return written if len(set(written)) == len(set(values)) else told_apart(*values)


def odds(chance: float, beside: float | None = None) -> str:
    """ "24 in 100"; in 1,000 or more where 100 is too coarse: off by a seventh, or not to be told from ``beside``."""
    for out_of in (100, 1_000, 10_000, 100_000, 1_000_000):
        hits = math.floor(chance * TIE * out_of + 0.5)
        near = abs(hits / out_of - chance) <= min(chance, 1 - chance) / 7
        if near and (beside is None or beside == chance or hits != math.floor(beside * TIE * out_of + 0.5)):
            return f"{hits:,} in {out_of:,}"
    return f"under 1 in {out_of:,}" if chance < 0.5 else f"over {out_of - 1:,} in {out_of:,}"


def times(chance: float, beside: float | None = None) -> str:
    """ "24 times in 100"."""
    hits, _, out_of = odds(chance, beside).partition(" in ")
    return f"{once} in {out_of}" if (once := ONCE.get(hits)) else f"{hits} times in {out_of}"


def chances(chance: float, beside: float | None = None) -> str:
    """ "24 chances in 100"."""
    hits, _, out_of = odds(chance, beside).partition(" in ")
    return f"{hits} {'chance' if hits in ONCE else 'chances'} in {out_of}"


def part(chance: float, beside: float | None = None) -> str:
    """ "0.24": the same as a part of one, with as many digits."""
    hits, _, out_of = odds(chance, beside).replace(",", "").rpartition(" in ")
    below, _, count = hits.rpartition(" ")
    return f"{'<' if below == 'under' else '>' if below else ''}{int(count) / int(out_of):.{len(out_of) - 1}f}"


def fraction(part: float, whole: float) -> str:
    """ "15/20"."""
    return f"{part:,}/{whole:,}"


# --- quantities -------------------------------------------------------------------------------------------------------

PREFIXES = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def significant(value: float, digits: int = 3) -> str:
    """A number with so many significant digits, never in powers of ten, thousands marked."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    places = digits - 1 - math.floor(math.log10(abs(value)))
    return f"{round(value, places):,.{max(places, 0)}f}"


def amount(value: float, unit: str, digits: int = 3) -> str:
    """ "16.1 GB", "3.35 TB/s", "989 TFLOP/s"."""
    size, prefix = next(((size, prefix) for size, prefix in PREFIXES if value >= size), (1.0, ""))
    return f"{significant(value / size, digits)} {prefix}{unit}"


def duration(seconds: float, digits: int = 3) -> str:
    """ "83.6 ms", "1.67 s", "12.0 days"."""
    units = (("days", 86_400.0, 864_000.0), ("s", 1.0, 1.0), ("ms", 1e-3, 1e-5), ("µs", 1e-6, 1e-8))
    unit, size = next(((unit, size) for unit, size, least in units if seconds >= least), ("ns", 1e-9))
    return f"{significant(seconds / size, digits)} {unit}"


def rows(count: int) -> str:
    """ "1 row", "5 rows"."""
    return "1 row" if count == 1 else f"{count:,} rows"
