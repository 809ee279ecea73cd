"""A measured machine laid out: time of a read against its width under the roofline, shares, ratios, and a verdict.

Measured and modelled numbers stand in columns of their own; a share of bandwidth is a modelled number over a measured
one, and its name says so.
"""

from __future__ import annotations

import csv as comma_separated
import io
import math
from dataclasses import dataclass

from specviz.figures.numbers import amount, duration, rows, significant
from specviz.figures.sentences import Spans, fill
from specviz.figures.table import Table
from specviz.figures.text import visible
from specviz.hardware import measured
from specviz.hardware.measured import MODELS, Model, Profile, Spread

GAMMA = 4
SHARED_WIDTHS = (1, 5, 9, 17)
"""Widths whose share of the bandwidth is drawn."""
FEWEST = 3
"""Samples of a read of 1 row below which nothing is said of what binds."""
GOOD, FAIR = 0.6, 0.3
"""Shares of what the roof allows: from GOOD on it is what binds; below FAIR it hardly matters."""
CREDIBLE = 1.5
"""Reads that move more of the copy bandwidth than this do not all come from the memory."""
UNSTEADY = 1.5
"""Quartiles further apart than this say that something else was at work."""
NAMES: dict[Model, str] = {"target": "the target", "drafter": "the drafter"}

ANSWERS = {
    "memory": "[Yes.] A read uses {share} of what the memory can move.",
    "between": "[Partly.] A read uses {share} of what the memory can move; the rest of the time it waits.",
    "idle": "[No.] A read uses {share} of what the memory can move; the rest of the time it waits.",
    "arithmetic": "[No, it is arithmetic.] A read reaches {rate} of the fastest product, and uses {share} of "
    "what the memory can move.",
    "too much": "[It cannot be said.] A read would use {share} of what the memory can move, so part of it "
    "stayed in a cache, or a number is off.",
}
"""What the page asks, is it really memory, answered."""
TEMPLATES = {
    "flat": "[Wider reads are nearly free as far as it was measured:] a read of {width} rows costs {growth} reads "
    "of 1.",
    "bends": "[Wider reads are nearly free up to {flat} rows.]",
    "never flat": "[Wider reads are not free:] a read of {width} rows costs {growth} reads of 1.",
    "never flat at gamma": "[Wider reads are not free.]",
    "grows": " A read of {rows} costs {growth} reads of 1",
    "needs": ", so gamma {gamma} needs {price} tokens a round to pay.",
    "cannot": ", and with {gamma} drafts a round costs {price} reads: more than the {most} tokens that it can bring, "
    "so gamma {gamma} never pays.",
    "unsteady": "[Too unsteady to say what binds:] a read of {width} rows seems to cost {growth} reads of 1. Measure "
    "again at a quiet moment.",
    "samples": "[Too few samples to say what binds:] {count} of a read of 1 row, where {fewest} is the least.",
    "few": "[Too little was measured] to say what binds: reads of 1 row and of a wider one are needed.",
}
LINES = {
    "binds": "Measured bandwidth and measured arithmetic would let memory bind up to {rows} rows (modelled).",
    "binds.all": "Measured bandwidth and measured arithmetic would let memory bind at every width (modelled).",
    "binds.none": "Measured bandwidth and measured arithmetic would let arithmetic bind from the first row (modelled).",
    "share": "A read of 1 row reaches {share} of the copy bandwidth: {size} (modelled) in {time} (measured), "
    "beside {bandwidth} (measured).",
    "over": "More than all of it: part of what the model counts stayed in a cache, or reading alone is faster "
    "than copying.",
    "c": "One drafter read costs {measured} target reads (measured); by bytes it would be {bytes} (modelled), "
    "by layers {layers}.",
    "prefill": "The context of {context:,} tokens was read once, and counts nowhere: {times} (measured).",
    "unsteady": "The middle half of the reads of 1 row spreads from {low} to {high}: something else was at work. "
    "Measure again at a quiet moment.",
    "partial": "Stopped before the end: the samples are fewer than the {repeats} asked for.",
}
FORMULA = """share of bandwidth = modelled bytes / measured time / measured bandwidth
roof(w) = max(bytes(w) / bandwidth, FLOP(w) / rate); the band: quartiles of both
round price = t(gamma + 1) / t(1) + gamma c
c = drafter t(1) / target t(1)"""


@dataclass(frozen=True, slots=True)
class Point:
    """A read: milliseconds, the quartiles, and the same in words."""

    width: int
    median: float
    low: float
    high: float
    label: str


@dataclass(frozen=True, slots=True)
class Allowed:
    """What bandwidth and rate allow a read of ``width`` rows, milliseconds: the middle, and the band around it."""

    width: int
    middle: float
    best: float
    worst: float


@dataclass(frozen=True, slots=True)
class Chart:
    """Reads of one model against their width. ``binds`` is the first width at which arithmetic binds by the roof."""

    model: Model
    title: str
    points: tuple[Point, ...]
    roof: tuple[Allowed, ...]
    ticks: tuple[float, ...]
    binds: int | None
    alt: str


@dataclass(frozen=True, slots=True)
class Bar:
    """A number as a bar: ``badge`` says how it was come by; ``low`` and ``high`` are quartiles, equal where none."""

    name: str
    badge: str
    value: float
    low: float
    high: float
    text: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Layout:
    """The whole page's figure."""

    verdict: Spans
    lines: tuple[str, ...]
    charts: tuple[Chart, ...]
    shares: tuple[Bar, ...]
    ratios: tuple[Bar, ...]
    tables: tuple[Table, ...]
    formula: str


def layout(profile: Profile) -> Layout:
    """Lay a profile out."""
    charts = tuple(_chart(profile, model) for model in MODELS if profile.widths(model))
    return Layout(
        verdict(profile), lines(profile), charts, _shares(profile), _ratios(profile), tables(profile), FORMULA
    )


def verdict(profile: Profile) -> Spans:
    """Whether it is memory, and what gamma 4 (else the widest read that was measured) needs to pay."""
    widest = max(profile.widths("target"), default=1)
    flat, all_of_it = measured.flat_until(profile), measured.growth(profile, widest)
    if flat is None or all_of_it is None or widest == 1:
        return fill(TEMPLATES["few"])
    one = profile.seconds("target", 1)
    if one is not None and one.count < FEWEST:
        return fill(TEMPLATES["samples"], count=one.count, fewest=FEWEST)
    cheapest = min(profile.widths("target"), key=lambda width: measured.growth(profile, width) or 1.0)
    least = measured.growth(profile, cheapest) or 1.0
    if least < 1 / measured.FLAT:  # more work in less time: it was the machine that changed
        return fill(TEMPLATES["unsteady"], width=cheapest, growth=_times(least))
    gamma = GAMMA if measured.growth(profile, GAMMA + 1) is not None else widest - 1
    price = measured.round_price(profile, gamma)
    if flat == 1:
        second = profile.widths("target")[1]
        kind = "never flat at gamma" if price is not None and second == gamma + 1 else "never flat"
        said = fill(TEMPLATES[kind], width=second, growth=_times(measured.growth(profile, second)))
    elif flat == widest:
        said = fill(TEMPLATES["flat"], width=widest, growth=_times(all_of_it))
    else:
        said = fill(TEMPLATES["bends"], flat=flat)
    said = _answer(profile) + said
    if price is None:
        return said
    rows = fill(TEMPLATES["grows"], rows=gamma + 1, growth=_times(measured.growth(profile, gamma + 1)))
    pays = "needs" if price < gamma + 1 else "cannot"
    return said + rows + fill(TEMPLATES[pays], gamma=gamma, price=_times(price), most=gamma + 1)


def _answer(profile: Profile) -> Spans:
    """Whether a read of one row waits for the memory; nothing before bandwidth and rate are known."""
    share, roof = measured.bandwidth_share(profile, "target", 1), measured.roof(profile, "target", 1)
    one = profile.seconds("target", 1)
    if share is None or roof is None or one is None:
        return ()
    reached = roof.seconds / one.median
    if reached > CREDIBLE:
        kind = "too much"
    elif roof.bound == "compute":
        kind = "arithmetic" if reached >= GOOD else "between" if share.median >= FAIR else "idle"
    else:
        kind = "memory" if reached >= GOOD else "between" if reached >= FAIR else "idle"
    return (*fill(ANSWERS[kind], share=percent(share.median), rate=percent(reached)), (" ", ""))


def lines(profile: Profile) -> tuple[str, ...]:
    """Sentences under the verdict."""
    said = []
    roofs = [measured.roof(profile, "target", width) for width in profile.widths("target")]
    bound = [roof.bound for roof in roofs if roof is not None]
    if bound:
        rows = bound.index("compute") if "compute" in bound else None
        kind = "binds.all" if rows is None else "binds" if rows else "binds.none"
        said.append(LINES[kind].format(rows=profile.widths("target")[(rows or 1) - 1]))
    share, one = measured.bandwidth_share(profile, "target", 1), profile.seconds("target", 1)
    cost = measured.modelled(profile, "target", 1)
    if share is not None and one is not None and cost is not None and profile.bandwidth is not None:
        said.append(
            LINES["share"].format(
                share=percent(share.median),
                size=amount(cost.bytes, "B"),
                time=duration(one.median),
                bandwidth=amount(profile.bandwidth.median, "B/s"),
            )
            + (f" {LINES['over']}" if share.median > 1 else "")
        )
    c, by_bytes, by_layers = measured.measured_c(profile), measured.byte_c(profile), measured.layer_c(profile)
    if c is not None and by_bytes is not None and by_layers is not None:
        said.append(LINES["c"].format(measured=_ratio(c), bytes=_ratio(by_bytes), layers=_ratio(by_layers)))
    times = [f"{NAMES[model]} {duration(profile.prefill[model])}" for model in MODELS if model in profile.prefill]
    if times:
        said.append(LINES["prefill"].format(context=profile.context, times=", ".join(times)))
    if one is not None and one.high > UNSTEADY * one.low:
        said.append(LINES["unsteady"].format(low=duration(one.low), high=duration(one.high)))
    if not profile.complete:
        said.append(LINES["partial"].format(repeats=profile.repeats))
    return tuple(said)


def machine(profile: Profile) -> str:
    """The device, its dtype and its threads, in one line of plain text."""
    threads = "" if profile.threads is None else f", {profile.threads} thread{'s' * (profile.threads > 1)}"
    return f"{_shown(profile.device)[:80]}, {profile.dtype}{threads}"


def _shown(text: str) -> str:
    """A text that may be from a file, in one line, with nothing hidden in it."""
    return " ".join(visible(word) for word in text.split())


# --- figures ----------------------------------------------------------------------------------------------------------


def _chart(profile: Profile, model: Model) -> Chart:
    points, roof, binds = [], [], None
    for width in profile.widths(model):
        spread, allowed = profile.seconds(model, width), measured.roof(profile, model, width)
        if spread is not None:
            label = f"{rows(width)}: {duration(spread.median)} (half of {spread.count}: {_between(spread)})"
            points.append(Point(width, 1e3 * spread.median, 1e3 * spread.low, 1e3 * spread.high, label))
        if allowed is not None:
            roof.append(Allowed(width, 1e3 * allowed.seconds, 1e3 * allowed.best, 1e3 * allowed.worst))
            binds = width if binds is None and allowed.bound == "compute" else binds
    top = max(*(point.high for point in points), *(one.worst for one in roof), 0.0)
    first, last = points[0], points[-1]
    alt = (
        f"Time of a read of {NAMES[model]} against its width: {duration(first.median / 1e3)} for {rows(first.width)}, "
        f"{duration(last.median / 1e3)} for {rows(last.width)}, medians."
    )
    title = f"A read of {NAMES[model]}, milliseconds"
    return Chart(model, title, tuple(points), tuple(roof), _ticks(top), binds, alt)


def _shares(profile: Profile) -> tuple[Bar, ...]:
    wanted: list[tuple[Model, int]] = [("target", width) for width in SHARED_WIDTHS]
    bars = []
    for model, width in [*wanted, ("drafter", 1)]:
        share = measured.bandwidth_share(profile, model, width)
        if share is not None:
            name = f"{NAMES[model]}, {rows(width)}"
            badge = "modelled / measured"
            bars.append(Bar(name, badge, share.median, share.low, share.high, percent(share.median), model))
    return tuple(bars)


def _ratios(profile: Profile) -> tuple[Bar, ...]:
    found = [
        ("time of a read", "measured", measured.measured_c(profile), "drafter"),
        ("bytes of a read", "modelled", measured.byte_c(profile), "only_drafter"),
        ("layers", "counted", measured.layer_c(profile), "waiting"),
    ]
    return tuple(
        Bar(name, badge, value, value, value, _ratio(value), meaning)
        for name, badge, value, meaning in found
        if value is not None
    )


# --- tables -----------------------------------------------------------------------------------------------------------


def tables(profile: Profile) -> tuple[Table, ...]:
    """The same numbers as text: the machine, and the reads."""
    return _machine_table(profile), _reads_table(profile)


def _machine_table(profile: Profile) -> Table:
    rows = [
        (
            _shown(one.name),
            amount(one.per_second.median, unit),
            _between_rates(one.per_second, unit),
            f"{one.per_second.count}",
        )
        for group, unit in ((profile.copies, "B/s"), (profile.matrices, "FLOP/s"))
        for one in group
    ]
    columns = ("what", "median (measured)", "middle half", "samples")
    return Table(f"{machine(profile)}: copies (bytes read and written) and products of matrices", columns, tuple(rows))


def _reads_table(profile: Profile) -> Table:
    columns = ["rows"]
    for model in (model for model in MODELS if profile.widths(model)):
        columns += [
            f"{model} ms (measured)",
            "middle half",
            "reads of 1",
            "allowed ms (modelled)",
            "binds",
            "bandwidth",
        ]
    rows = []
    for width in (read.width for read in profile.reads):
        cells = [str(width)]
        for model in (model for model in MODELS if profile.widths(model)):
            cells += _cells(profile, model, width)
        rows.append(tuple(cells))
    caption = (
        f"{_shown(profile.pair)}: reads behind {profile.context:,} tokens; bandwidth: modelled "
        "bytes / measured time / measured bandwidth"
    )
    return Table(caption, tuple(columns), tuple(rows))


def _cells(profile: Profile, model: Model, width: int) -> list[str]:
    seconds, roof = profile.seconds(model, width), measured.roof(profile, model, width)
    share, growth = measured.bandwidth_share(profile, model, width), measured.growth(profile, width, model)
    return [
        "–" if seconds is None else _ms(seconds.median),
        "–" if seconds is None else f"{_ms(seconds.low)}–{_ms(seconds.high)}",
        "–" if growth is None else _times(growth),
        "–" if roof is None else _ms(roof.seconds),
        "–" if roof is None else {"memory": "memory", "compute": "arithmetic"}[roof.bound],
        "–" if share is None else percent(share.median),
    ]


def csv(profile: Profile) -> str:
    """A row a width, seconds and shares in full, for a spreadsheet."""
    out = io.StringIO()
    writer = comma_separated.writer(out, lineterminator="\n")
    models = [model for model in MODELS if profile.widths(model)]
    names = ("median_s_measured", "q1_s_measured", "q3_s_measured", "samples", "roof_s_modelled", "bandwidth_share")
    writer.writerow(["rows", *(f"{model}_{name}" for model in models for name in names)])
    for read in profile.reads:
        row: list[object] = [read.width]
        for model in models:
            seconds, roof = profile.seconds(model, read.width), measured.roof(profile, model, read.width)
            share = measured.bandwidth_share(profile, model, read.width)
            row += [""] * 4 if seconds is None else [seconds.median, seconds.low, seconds.high, seconds.count]
            row += ["" if roof is None else roof.seconds, "" if share is None else share.median]
        writer.writerow(row)
    return out.getvalue()


# --- numbers ----------------------------------------------------------------------------------------------------------


def percent(share: float) -> str:
    """ "74 %"; small ones with a digit more, so that none looks like nothing; in words what no machine can mean."""
    if share >= 9.995 or 0 < share < 1e-4:
        return "over 999 %" if share > 1 else "under 0.01 %"
    return f"{100 * share:.0f} %" if share >= 0.1 or share == 0 else f"{significant(100 * share, 2)} %"


def _ms(seconds: float) -> str:
    return significant(1e3 * seconds)


def _times(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.2f}" if 0.005 <= value < 10 else f"{value:.1f}" if 10 <= value < 999.5 else _beyond(value, 0.01)


def _ratio(value: float) -> str:
    return significant(value) if 1e-4 <= value < 999.5 else _beyond(value, 1e-4)


def _beyond(value: float, least: float) -> str:
    """A ratio that no two models have, in a form that is never long."""
    return "over 999" if value > 1 else f"under {least:g}"


def _between(spread: Spread) -> str:
    low, high = duration(spread.low), duration(spread.high)
    unit = high.partition(" ")[2]
    return f"{low.removesuffix(f' {unit}')} to {high}"


def _between_rates(spread: Spread, unit: str) -> str:
    return f"{amount(spread.low, unit)} – {amount(spread.high, unit)}"


def _ticks(top: float) -> tuple[float, ...]:
    """Round numbers from 0 to at least ``top``, four to seven of them."""
    raw = max(top, 1e-6) / 5
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw)
    return tuple(round(index * step, 12) for index in range(math.ceil(top / step) + 1))
