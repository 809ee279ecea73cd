"""The tally: rates that carry their fraction, what they are called elsewhere, and whether it paid in seconds."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from specviz import theory
from specviz.figures import numbers
from specviz.figures.rounds import changes
from specviz.figures.sentences import Spans, fill
from specviz.figures.table import Table
from specviz.trace import ClosingKind, Round, Trace, tally
from specviz.trace import Tally as Counts

ENOUGH = 10
"""Judged drafts (rounds, under a bar of its own) below which a rate says too little."""

NAMES = {
    "alpha": ("shared (alpha)", "mean Σ min(p, q) over judged places"),
    "tested": ("kept of judged", "kept ÷ (kept + rejected)"),
    "drafted": ("kept of drafted", "kept ÷ drafted"),
    "tokens": ("tokens per read", "tokens written ÷ reads of the target"),
}
TOO_FEW = "too few to say"
NOTHING = "Nothing is counted yet: the first round is not over."
NO_DRAFTS = "No drafts: plain decoding, one read a token."
UNKNOWN = {"alpha": "p and q not recorded", "tokens": "reads not recorded"}
NONE_JUDGED, NO_ROUND = "place{s} {rows}: none judged", "{rows} tokens: no round"
WHOLE = "whole run: {value} ({fraction})"
CHANGED = "Counts rounds with different settings: {changes}."

EXPECTED = (
    "Kept so far {kept}; the rule expects {expected} ± {band} from these places. The band is two standard deviations: "
    "about 19 runs in 20 end inside it, {inside}."
)
INSIDE = {True: "and so does this one", False: "and this one does not"}
CERTAIN = "Nothing is left to chance, so there is no band."
BLOCK = (
    "Block verification expects nothing place by place: what a coin decides hangs on the others. So there is no band."
)
BLOCK_LEFT_OUT = "Rounds under block verification are left out: it expects nothing place by place."
NOT_EXPECTED = "The record does not carry what the rule expects, so there is no band."
FORMULA = "expected = Σ e over the judged places, band = 2 √Σ e(1 − e); e = {chance}"
CHANCES = {
    "speculative_sampling": "Σ min(p, q) = 1 − TV",
    "gumbel_coupling": "P(both models pick the same token)",
    "token_match": "Σ p·q",
    "greedy": "1 where both first choices are the same, else 0",
}
WASTED = (
    "{reads} drafter reads went into drafts that were rejected or never judged. The target’s read is never wasted: it "
    "brings at least one token."
)
COPIED = (
    "{reads} drafts were rejected or never judged; copying them took no read. The target’s read is never wasted: it "
    "brings at least one token."
)

PAY = {
    "slower": "{where}: {ours} ms a token against {alone} alone: [{ratio}×, slower than the target alone]. "
    "{eaten} ate it: {sum}.",
    "even": "{where}: {ours} ms a token against {alone} alone: [{ratio}×, as fast as the target alone]. "
    "{eaten} cost the most: {sum}.",
    "faster": "{where}: {ours} ms a token against {alone} alone: [{ratio}×, faster than the target alone]. "
    "{eaten} cost the most: {sum}.",
    "free": "{where}: {ours} ms a token against {alone} alone: [{ratio}×, faster than the target alone]. "
    "{tokens} tokens a read, and nothing was lost on the way.",
    "slower.story": "{where}: [{ratio}×, slower than the target alone]. {eaten} cost the most.",
    "even.story": "{where}: [{ratio}×, as fast as the target alone]. {eaten} cost the most.",
    "faster.story": "{where}: [{ratio}×, faster than the target alone]. {eaten} cost the most.",
    "free.story": "{where}: [{ratio}×, faster than the target alone]. Nothing was lost on the way.",
    "no twin": "Does it pay on this machine? Let the target write it alone to compare.",
    "recorded without": "Does it pay? The target alone was not recorded beside this run.",
    "changed": "Does it pay? What shapes the text was changed midway, so there is no one text for the target alone.",
    "no times": "Does it pay? This record carries no times.",
}
HERE, THEN = "On this machine, measured", "Measured when it was recorded"
SCOPE = {"whole": ", whole run", "live": ", the {rounds} decoded here"}
EATEN = {
    "drafter": "The drafter’s reads",
    "wider": "The wider target reads",
    "rule": "The rule and what else is not reading",
}
SUM = "{alone} ms alone would be {ideal} at {tokens} tokens a read; {parts}: {ours}"
"""Where the time went, as a sum that a reader can follow: the parts add up as written."""
LESS = " (less than alone)"
PARTS = {
    "drafter": "the drafter’s reads",
    "wider": "reading {rows} places at once",
    "rule": "the rule and the rest",
}
SHAPING = ("rule", "temperature", "top_k", "top_p", "seed")
"""Settings that shape the target's own text: one run of the target alone can only be set beside rounds that share
them."""

Part = Literal["drafter", "wider", "rule"]


@dataclass(frozen=True, slots=True)
class Measure:
    """One rate: its name, value, fraction and what it is. ``few`` greys it; ``whole`` is the same over the whole
    run, where that is known."""

    name: str
    value: str
    fraction: str
    what: str
    few: bool
    whole: str


@dataclass(frozen=True, slots=True)
class Bar:
    """A share in [0, 1] of some rounds (None: no such round), with its fraction; ``few`` greys it."""

    share: float | None
    value: str
    fraction: str
    few: bool


@dataclass(frozen=True, slots=True)
class PlaceBars:
    """A place from 1: rounds that kept at least that many drafts ÷ rounds that drafted them; rounds that kept the
    draft here ÷ rounds that judged it."""

    place: int
    reached: Bar
    kept: Bar


@dataclass(frozen=True, slots=True)
class LengthBar:
    """How many rounds brought this many tokens; ``parts`` are their shares of all rounds by how they closed
    ((meaning, fate, share), …)."""

    tokens: int
    rounds: int
    fraction: str
    parts: tuple[tuple[str, str, float], ...]


@dataclass(frozen=True, slots=True)
class Band:
    """Kept drafts against the rule's expectation, on an axis from 0 to ``judged``; ``low`` and ``high`` are clipped
    to it."""

    kept: int
    judged: int
    expected: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Folded:
    """The rows at the end in which nothing is counted, each kind in a few words: "places 6–16: none judged"."""

    places: str
    lengths: str


@dataclass(frozen=True, slots=True)
class Tally:
    """The panel: measures, whether it paid, the band, bars by place and by length, sentences, the engines' names.

    ``places`` and ``lengths`` end where nothing is counted any more, which ``folded`` says; the tables hold all.
    ``engines`` is the one table in which engines' own words stand; ``table`` is the text twin of the bars.
    """

    rounds: int
    measures: tuple[Measure, ...]
    pay: Spans
    band: Band | None
    places: tuple[PlaceBars, ...]
    lengths: tuple[LengthBar, ...]
    lines: tuple[str, ...]
    formula: str | None
    engines: Table
    table: Table
    folded: Folded = field(default_factory=lambda: Folded("", ""))


def layout(
    rounds: Sequence[Round],
    *,
    story: bool = False,
    whole: Sequence[Round] | None = None,
    twin: Trace | None = None,
    live_from: int | None = 0,
) -> Tally:
    """Count the given rounds; under *Story* only the tokens a read brought, and whether it paid.

    Args:
        rounds: the rounds that are over.
        story: show the least.
        whole: all rounds of a run that is known to its end: rates over few drafts stand beside the whole run's.
        twin: the target alone with the same seed, where it was run on the same machine.
        live_from: index of the first round decoded here; the ones before were recorded (None: all of them).
    """
    if not rounds:
        return Tally(0, (), (), None, (), (), (NOTHING,), None, _no_table("Engines’ names"), _no_table("Tally"))
    counts = tally(rounds)
    few = counts.judged < ENOUGH
    measures = _measures(counts, few, tally(whole) if few and whole else None)
    pay, speeds = _pay(rounds, whole if few and whole else None, twin, live_from, story)
    if story or not counts.drafted:
        lines = (NO_DRAFTS,) if not counts.drafted else ()
        table = _table(measures[-1:], speeds, (), (), None)
        return Tally(counts.rounds, measures[-1:], pay, None, (), (), lines, None, _no_table("Engines’ names"), table)
    band, words = _expectation(rounds)
    changed = changes(rounds)
    places, lengths = _places(rounds, counts), _lengths(rounds)
    # A place is judged where every draft before it was kept: behind one that never was, none is.
    judged = tuple(place for place in places if place.kept.share is not None)
    brought = lengths[: max(length.tokens for length in lengths if length.rounds)]
    return Tally(
        rounds=counts.rounds,
        measures=measures,
        pay=pay,
        band=band,
        places=judged,
        lengths=brought,
        lines=tuple(
            line for line in (CHANGED.format(changes=changed) if changed else "", words, _wasted(rounds)) if line
        ),
        formula=_formula(rounds) if band is not None else None,
        engines=_engines(rounds, counts, places, lengths),
        table=_table(measures, speeds, places, lengths, band),
        folded=Folded(_fold(len(judged), len(places), NONE_JUDGED), _fold(len(brought), len(lengths), NO_ROUND)),
    )


# --- rates ------------------------------------------------------------------------------------------------------------


def _measures(counts: Counts, few: bool, whole: Counts | None) -> tuple[Measure, ...]:
    return tuple(_measure(key, counts, few and (key != "tokens" or counts.drafted > 0), whole) for key in NAMES)


def _measure(key: str, counts: Counts, few: bool, whole: Counts | None) -> Measure:
    name, what = NAMES[key]
    value, fraction = _rate(key, counts)
    beside = ""
    if whole is not None and few and _rate(key, whole)[0] is not None:
        over, of = _rate(key, whole)
        beside = WHOLE.format(value=_written(over), fraction=of)
    if value is None:
        return Measure(name, "–", fraction, what, True, beside)
    return Measure(name, _written(value), fraction, TOO_FEW if few else what, few, beside)


def _rate(key: str, counts: Counts) -> tuple[float | None, str]:
    """The value and its fraction; never 0/0."""
    if key == "tokens":
        known = counts.target_passes > 0
        return counts.tokens_per_pass, numbers.fraction(counts.emitted, counts.target_passes) if known else UNKNOWN[key]
    if not counts.judged:
        return None, "none judged"
    if key == "alpha":
        return counts.alpha, f"{counts.judged:,} judged" if counts.alpha is not None else UNKNOWN[key]
    if key == "tested":
        return counts.tested_rate, numbers.fraction(counts.kept, counts.judged)
    return counts.drafted_rate, numbers.fraction(counts.kept, counts.drafted)


def _written(value: float | None) -> str:
    """A rate with two digits, also where it is exactly 0 or 1: all stand in one column."""
    return f"{value:.2f}" if value is not None and (value >= 1 or value == 0) else numbers.probability(value)


def _fold(shown: int, of: int, template: str) -> str:
    """The rows after the first ``shown`` of ``of`` in a few words; empty where there are none."""
    if shown == of:
        return ""
    one = of == shown + 1
    return template.format(s="" if one else "s", rows=of if one else f"{shown + 1}–{of}")


def _bar(part: int, of: int) -> Bar:
    share = part / of if of else None
    return Bar(share, _written(share), numbers.fraction(part, of) if of else "none", of < ENOUGH)


def _places(rounds: Sequence[Round], counts: Counts) -> tuple[PlaceBars, ...]:
    return tuple(
        PlaceBars(
            place=place,
            reached=_bar(kept, sum(len(round_.drafts) >= place for round_ in rounds)),
            # A place is judged where every draft before it was kept, so whoever kept it kept at least that many.
            kept=_bar(kept, judged),
        )
        for place, (kept, judged) in enumerate(zip(counts.kept_at_least, counts.judged_at, strict=True), start=1)
    )


CLOSINGS: dict[ClosingKind | None, tuple[str, str]] = {
    "correction": ("only_target", "correction"),
    "bonus": ("target", "bonus"),
    "plain": ("target", "plain"),
    None: ("both", "kept"),
}
"""Meaning and fate of a round's last token; None: a kept stop token ended the text."""


def _lengths(rounds: Sequence[Round]) -> tuple[LengthBar, ...]:
    kinds = Counter((len(round_.emitted), round_.closing.kind if round_.closing else None) for round_ in rounds)
    most = max(max(len(round_.drafts) + 1, len(round_.emitted)) for round_ in rounds)
    bars = []
    for tokens in range(1, most + 1):
        found = sum(number for (length, _), number in kinds.items() if length == tokens)
        parts = [(*signs, kinds[tokens, kind] / len(rounds)) for kind, signs in CLOSINGS.items() if kinds[tokens, kind]]
        bars.append(LengthBar(tokens, found, numbers.fraction(found, len(rounds)), tuple(parts)))
    return tuple(bars)


# --- what the rule expects --------------------------------------------------------------------------------------------


def _expectation(rounds: Sequence[Round]) -> tuple[Band | None, str]:
    """Kept so far against what the rule expects from the judged places, or why there is no such thing."""
    drafted = [round_ for round_ in rounds if round_.drafts]
    if all(map(_certain, drafted)):
        return None, CERTAIN
    told = _told(drafted)
    if not told:
        return None, BLOCK
    counts = tally(told)
    if counts.expected_kept is None or counts.expected_kept_variance is None:
        return None, NOT_EXPECTED if counts.judged else ""
    if not counts.expected_kept_variance:
        return None, CERTAIN
    expected, width = counts.expected_kept, 2.0 * math.sqrt(counts.expected_kept_variance)
    inside = abs(counts.kept - expected) <= width
    words = EXPECTED.format(kept=counts.kept, expected=f"{expected:.1f}", band=f"{width:.1f}", inside=INSIDE[inside])
    low, high = max(0.0, expected - width), min(float(counts.judged), expected + width)
    band = Band(counts.kept, counts.judged, expected, low, high)
    return band, words if len(told) == len(drafted) else f"{words} {BLOCK_LEFT_OUT}"


def _told(rounds: Sequence[Round]) -> list[Round]:
    return [round_ for round_ in rounds if _settings(round_).get("rule") != "block_verification"]


def _certain(round_: Round) -> bool:
    """Whether neither model drew anything: both at temperature 0, under whatever rule."""
    settings = _settings(round_)
    return settings.get("temperature") == 0 and settings.get("drafter_temperature") == 0


def _formula(rounds: Sequence[Round]) -> str:
    rules = dict.fromkeys(str(_settings(round_).get("rule")) for round_ in _told(rounds))
    return FORMULA.format(chance="; ".join(CHANCES.get(rule, "the rule’s chance of keeping a draft") for rule in rules))


def _wasted(rounds: Sequence[Round]) -> str:
    """The drafter's reads that brought nothing. A draft copied from the text took none."""
    counts = tally(rounds)
    drafting = any(p.model == "drafter" for round_ in rounds for p in round_.passes)
    wasted = numbers.fraction(counts.drafted - counts.kept, counts.drafted)
    return (WASTED if drafting else COPIED).format(reads=wasted.replace("/", " of "))


# --- seconds ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Seconds:
    """Seconds of some rounds, prefills left out: in all, in the drafter's reads, in the target's; reads and tokens."""

    rounds: float
    drafter: float
    target: float
    reads: int
    tokens: int


def seconds(rounds: Iterable[Round]) -> Seconds | None:
    """Add up what the rounds took; None where a time is missing, or nothing was written."""
    total, by_model, reads, tokens = 0.0, {"drafter": 0.0, "target": 0.0}, 0, 0
    for round_ in rounds:
        if round_.seconds is None or any(p.seconds is None or p.model is None for p in round_.passes):
            return None
        total += round_.seconds
        tokens += len(round_.emitted)
        for one in round_.passes:
            spent = one.seconds or 0.0
            if one.kind == "prefill":
                total -= spent
            else:
                by_model[one.model or "target"] += spent
                reads += one.model == "target"
    return Seconds(total, by_model["drafter"], by_model["target"], reads, tokens) if reads and tokens else None


def speed(rounds: Sequence[Round], twin: Trace | None, live_from: int | None) -> float | None:
    """Tokens a second over the target's alone, above 0; None where nothing was measured or too few drafts were judged.

    The arguments are those of :func:`layout`.
    """
    counted = _of_one_clock(rounds, live_from)
    both = _clocked(counted, twin) if twin is not None and tally(counted).judged >= ENOUGH else None
    return _speed(*both) if both is not None else None


def _of_one_clock(rounds: Sequence[Round], live_from: int | None) -> list[Round]:
    """The rounds decoded here, else those recorded: seconds of two machines are never added up."""
    return [round_ for round_ in rounds if live_from is not None and round_.index >= live_from] or list(rounds)


def _clocked(rounds: Sequence[Round], twin: Trace) -> tuple[Seconds, Seconds] | None:
    """The seconds of these rounds, and of the target alone for as many tokens."""
    ours = seconds(rounds)
    alone = seconds(twin.rounds[: ours.tokens]) if ours is not None else None
    return (ours, alone) if ours is not None and alone is not None and min(ours.rounds, alone.rounds) > 0 else None


def _speed(ours: Seconds, alone: Seconds) -> float:
    return (alone.rounds / alone.tokens) / (ours.rounds / ours.tokens)


def _pay(
    rounds: Sequence[Round], whole: Sequence[Round] | None, twin: Trace | None, live_from: int | None, story: bool
) -> tuple[Spans, tuple[tuple[str, ...], ...]]:
    """Seconds a token against the target alone and where they went: in words, and as rows of the table."""
    counted = list(rounds if whole is None else whole)
    if not any(round_.drafts for round_ in counted):
        return (), ()
    live = [round_ for round_ in counted if live_from is not None and round_.index >= live_from]
    where, scope = (HERE if live else THEN), "" if whole is None else SCOPE["whole"]
    if live and len(live) < len(counted):
        scope = SCOPE["live"].format(rounds="round" if len(live) == 1 else f"{len(live)} rounds")
    counted = live or counted
    if twin is None:
        shaped = {tuple(_settings(round_).get(name) for name in SHAPING) for round_ in rounds}
        return fill(PAY["changed" if len(shaped) > 1 else "no twin" if live else "recorded without"]), ()
    both = _clocked(counted, twin)
    if both is None:
        return fill(PAY["no times"]), ()
    ours, alone = both
    ratio = _speed(ours, alone)
    parts = _parts(ours, alone)
    lost = ratio < 0.995 * ours.tokens / ours.reads
    which = "even" if f"{ratio:.2f}" == "1.00" else "slower" if ratio < 1 else "faster" if lost else "free"
    mine, theirs = _milliseconds(ours.rounds / ours.tokens, alone.rounds / alone.tokens)
    tokens = f"{ours.tokens / ours.reads:.2f}"
    said = fill(
        PAY[f"{which}.story" if story else which],
        where=where + scope,
        ours=mine,
        alone=theirs,
        ratio=f"{ratio:.2f}",
        tokens=tokens,
        eaten=EATEN[max(parts, key=lambda part: parts[part])],
        sum=SUM.format(
            ours=mine,
            alone=theirs,
            tokens=tokens,
            **_in_words(parts, counted, mine, alone.rounds / alone.tokens * ours.reads / ours.tokens),
        ),
    )
    if tally(counted).judged < ENOUGH:
        said += ((f" {ours.tokens} {'token' if ours.tokens == 1 else 'tokens'} only: {TOO_FEW}.", ""),)
    drafts = sum(len(round_.drafts) for round_ in counted)
    reading = theory.measured_speedup(
        tokens_per_pass=ours.tokens / ours.reads,
        gamma=drafts / ours.reads,
        plain_s=alone.target / alone.reads,
        verify_s=ours.target / ours.reads,
        draft_s=ours.drafter / drafts,
    )
    rows = (
        ("speed against the target alone", f"{ratio:.2f}×", f"{theirs}/{mine} ms a token", "measured, in all"),
        ("the same in reads alone", f"{reading:.2f}×", "", "measured, without the rule and the rest"),
    )
    return said, rows


def _parts(ours: Seconds, alone: Seconds) -> dict[Part, float]:
    """What a token costs beyond its share of plain reads, in seconds: the three add up to the whole difference.

    ours/tokens = alone/tokens ÷ (tokens a read) + drafter + wider + rule.
    """
    narrow = alone.target / alone.reads
    plain_rest = (alone.rounds - alone.target - alone.drafter) / alone.reads
    rest = ours.rounds - ours.target - ours.drafter
    return {
        "drafter": ours.drafter / ours.tokens,
        "wider": (ours.target - ours.reads * narrow) / ours.tokens,
        "rule": (rest - ours.reads * plain_rest) / ours.tokens,
    }


def _in_words(parts: Mapping[Part, float], rounds: Sequence[Round], total: str, ideal: float) -> dict[str, str]:
    """What a token would take without the parts (``ideal``), and the parts, the dearest first, in milliseconds that add
    up to ``total`` as it is written."""
    widths = sorted({len(round_.drafts) + 1 for round_ in rounds})
    rows = f"{widths[0]}" if len(widths) == 1 else f"up to {widths[-1]}"
    told = sorted(parts, key=lambda part: -parts[part])
    written, first, *others = _adding_up(total, ideal, [parts[part] for part in told])
    names = [PARTS[part].format(rows=rows) for part in told]
    less = {"−": LESS}
    added = (f"{name} {cost}{less.get(cost[0], '')}" for name, cost in zip(names[1:], others, strict=True))
    return {"ideal": written, "parts": ", ".join((f"{names[0]} adds {first}", *added))}


def _adding_up(total: str, ideal: float, parts: Sequence[float]) -> list[str]:
    """The ideal and the parts (seconds) in milliseconds with the total's digits, so that they add up to the total as it
    is written. The ideal is rounded; what rounding leaves over goes to the parts that it changes least."""
    digits = len(total.partition(".")[2])
    unit = 10**digits
    exact = [1000 * part * unit for part in parts]
    units = [math.floor(value) for value in exact]
    best = round(1000 * ideal * unit)
    over = round(float(total) * unit) - best - sum(units)
    order = sorted(range(len(exact)), key=lambda index: units[index] - exact[index])
    for index in order[:over] if over > 0 else order[len(order) + over :]:
        units[index] += 1 if over > 0 else -1
    return [f"{value / unit:.{digits}f}".replace("-", "−") for value in (best, *units)]


def _milliseconds(*values: float) -> tuple[str, ...]:
    """Milliseconds with as many digits as it takes to tell different ones apart, two at least."""
    digits = 0 if min(values) >= 0.01 else max(0, 1 - math.floor(math.log10(1000 * min(values))))
    while digits < numbers.MOST_DIGITS and len({f"{1000 * v:.{digits}f}" for v in values}) < len(set(values)):
        digits += 1
    return tuple(f"{1000 * value:.{digits}f}" for value in values)


# --- tables -----------------------------------------------------------------------------------------------------------

UNREPORTED = "not reported"


def _engines(
    rounds: Sequence[Round], counts: Counts, places: Sequence[PlaceBars], lengths: Sequence[LengthBar]
) -> Table:
    """Each figure under the name and by the definition that an engine gives it.

    Sources: vLLM's per-request acceptance metrics and its metrics log; llama.cpp's server log (ggml-org/llama.cpp
    #24536); SGLang's ``meta_info``. transformers' ``generate`` returns none of them.
    """
    drafting = [round_ for round_ in rounds if round_.drafts]
    longer = f"1 + {numbers.fraction(counts.kept, len(drafting))} = {1 + counts.kept / len(drafting):.2f}"
    kept_of_drafted = f"{numbers.fraction(counts.kept, counts.drafted)} = {_written(counts.drafted_rate)}"
    by_place = ", ".join(_written(kept / len(drafting)) for kept in counts.kept_at_least)
    most = max(len(round_.drafts) for round_ in drafting)
    histogram = str([sum(round_.kept == kept for round_ in drafting) for kept in range(most + 1)])
    tokens = counts.tokens_per_pass
    each = f"{numbers.fraction(counts.emitted, counts.target_passes)} = {tokens:.2f}" if tokens is not None else "–"
    rows = (
        (NAMES["alpha"][0], *(UNREPORTED,) * 4),
        (NAMES["tested"][0], *(UNREPORTED,) * 4),
        (
            NAMES["drafted"][0],
            f"draft_acceptance_rate, in the log “Avg Draft acceptance rate”: {kept_of_drafted}",
            f"“draft acceptance”: {kept_of_drafted}",
            f"spec_accept_rate: {kept_of_drafted} (older versions count short rounds as full)",
            UNREPORTED,
        ),
        (
            NAMES["tokens"][0],
            f"mean_acceptance_length: {longer}",
            f"“mean acceptance length”: {longer}",
            f"spec_accept_length: {each}",
            UNREPORTED,
        ),
        (
            "1, 2, … or more kept",
            f"“Per-position acceptance rate”, ÷ all rounds with drafts: {by_place}",
            f"“acceptance rate per position”, ÷ all rounds with drafts: {by_place}",
            UNREPORTED,
            UNREPORTED,
        ),
        ("kept at a judged place", *(UNREPORTED,) * 4),
        (
            "tokens a round",
            f"acceptance_histogram, kept drafts only, from 0: {histogram}",
            UNREPORTED,
            f"spec_correct_drafts_histogram (older: spec_accept_histogram), kept drafts only, from 0: {histogram}",
            UNREPORTED,
        ),
    )
    caption = "What engines call it, with this run’s numbers by their definition"
    return Table(caption, ("here", "vLLM", "llama.cpp", "SGLang", "transformers"), rows)


def _table(
    measures: Sequence[Measure],
    speeds: Sequence[tuple[str, ...]],
    places: Sequence[PlaceBars],
    lengths: Sequence[LengthBar],
    band: Band | None,
) -> Table:
    what = dict(NAMES.values())
    rows: list[tuple[str, ...]] = [(m.name, m.value, m.fraction, what[m.name]) for m in measures]
    rows += speeds
    for one in places:
        reached, kept = one.reached, one.kept
        rows += [
            (
                f"{one.place} or more kept",
                reached.value,
                reached.fraction,
                f"÷ rounds that drafted {one.place} or more",
            ),
            (f"kept at place {one.place}", kept.value, kept.fraction, f"÷ rounds that judged place {one.place}"),
        ]
    for length in lengths:
        share = _written(sum(part for *_, part in length.parts))
        rows.append((f"rounds of {_tokens(length.tokens)}", share, length.fraction, "÷ all rounds"))
    if band is not None:
        between = f"{band.low:.1f} to {band.high:.1f}"
        rows.append(("kept, as the rule expects", f"{band.expected:.1f}", between, "two standard deviations each way"))
    return Table("Tally", ("measure", "value", "fraction", "what it is"), tuple(rows))


def _tokens(count: int) -> str:
    return "1 token" if count == 1 else f"{count} tokens"


def _no_table(caption: str) -> Table:
    return Table(caption, ("measure", "value", "fraction", "what it is"), ())


def _settings(round_: Round) -> Mapping[str, Any]:
    return round_.settings or {}
