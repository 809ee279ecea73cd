"""Roofline: what the chip waits for, in figures, sentences and tables.

Every number is modelled by :mod:`specviz.hardware`, but for :func:`measured`, which has an axis of its own. A
:class:`Panel` opens with one plain sentence; numbers follow, the formula is last.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from specviz import theory
from specviz.figures.charts import CLEAR, Panel, colour, escaped, figure, logarithmic
from specviz.figures.numbers import amount, duration, probability, rows, significant
from specviz.figures.table import Table
from specviz.hardware import cost
from specviz.hardware.accelerators import ACCELERATORS, Accelerator, Dtype, custom
from specviz.hardware.cost import Count, PassCost, RoundPrice
from specviz.hardware.measured import Profile, Spread
from specviz.hardware.shapes import PRICED_PAIRS, SHAPES, ModelShape, PricedPair
from specviz.trace import Trace

WIDTHS = tuple(range(1, 18))
BATCHES = tuple(2**i for i in range(11))
CONTEXTS = (0, *(2**i for i in range(7, 18)))
GAMMAS = (0, 16)
SMALL_GAMMA = 4
PROMPT = 2048
"""Tokens of a prompt that is read in one go."""
EXAMPLE_ALPHAS = (0.45, 0.61, 0.8)
MIXTURE = SHAPES["qwen3-30b-a3b"]
SMALL, BIG = PRICED_PAIRS["llama-3.1-8b+llama-3.2-1b"], PRICED_PAIRS["llama-3.1-70b+llama-3.2-1b"]
H100 = next(iter(ACCELERATORS.values()))
MAX_GAMMA = 16
ROW = 0.13
"""Height of a row of labels above a curve, as a part of the curve's."""
SGLANG_TOKENS_S = 158.34
"""Llama-3.1-8B on an H100 without drafts, MT-bench: docs.sglang.ai, speculative decoding."""
CUSTOM_TB_S = (0.001, 500.0)
CUSTOM_TFLOP_S = (0.01, 1e6)
CUSTOM = {"terabytes_s": CUSTOM_TB_S, "teraflops": CUSTOM_TFLOP_S}
"""What a chip of one's own may have."""


@dataclass(frozen=True, slots=True)
class Scene:
    """What the visitor set; ``chip`` is one device."""

    chip: Accelerator
    pair: PricedPair
    dtype: Dtype = "bf16"
    batch: int = 1
    context: int = 0
    gamma: int = 4
    alpha: float = 0.6
    count: Count = "read"

    @property
    def accelerator(self) -> Accelerator:
        """As many of the chip as the pair is spread over, as one."""
        return self.chip.times(self.pair.devices)

    @property
    def kv_dtype(self) -> Dtype:
        """What the cache is kept in: 32 bits beside fp32 weights, else 16."""
        return "fp32" if self.dtype == "fp32" else "bf16"

    @property
    def rows(self) -> int:
        """Rows of a verifying read, of one reader."""
        return self.gamma + 1

    def read(self, shape: ModelShape, rows: int = 1, context: int | None = None, batch: int | None = None) -> PassCost:
        """A read of ``shape``."""
        return cost.pass_cost(
            shape,
            self.accelerator,
            rows,
            self.context if context is None else context,
            batch or self.batch,
            self.dtype,
            self.kv_dtype,
            self.count,
        )

    def price(self, gamma: int | None = None, batch: int | None = None) -> RoundPrice:
        """The price of a round."""
        return cost.round_price(
            self.pair.target,
            self.pair.drafter,
            self.accelerator,
            self.gamma if gamma is None else gamma,
            self.context,
            batch or self.batch,
            self.dtype,
            self.kv_dtype,
            self.count,
        )

    def a_token(self) -> float:
        """Seconds a token with drafts, by alpha."""
        price = self.price()
        return price.plain_s / price.speed(self.alpha)


# --- numbers ----------------------------------------------------------------------------------------------------------


def times(factor: float) -> str:
    """ "1.45×": as many digits as it takes to tell it from 1."""
    places = 2
    while places < 6 and factor != 1 and float(f"{factor:.{places}f}") == 1:
        places += 1
    return f"{significant(factor) if factor >= 10 else f'{factor:.{places}f}'}×"


def decades(low: float, high: float, unit: str = "") -> dict[str, Any]:
    """Ticks of a logarithmic axis, a power of ten each, every other one where they are many."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    values = [10.0**power for power in powers][:: 1 if len(powers) < 9 else 2]
    return {
        "tickvals": values,
        "ticktext": [amount(value, unit, 1) if unit else significant(value, 1) for value in values],
    }


def by_batch() -> dict[str, Any]:
    """The axis of batches."""
    return {
        "title": "readers served at once (batch)",
        "type": "log",
        "tickvals": BATCHES[::2],
        "ticktext": [f"{batch:,}" for batch in BATCHES[::2]],
        "range": [-0.05, math.log10(BATCHES[-1]) + 0.05],
    }


# --- the classic example ----------------------------------------------------------------------------------------------


def classic(chip: Accelerator = H100) -> Panel:
    """8 billion weights of 16 bits on an H100, round and as they are, with the input table and without."""
    target = SMALL.target
    counted: list[tuple[str, float]] = [
        ("8 billion weights, 2 bytes each", 16e9),
        (f"{target.name}, as stored", cost.weight_bytes(target, count="stored")),
        (f"{target.name}, as read", cost.weight_bytes(target, count="read")),
    ]
    table = Table(
        f"One token: one read of the weights at {significant(chip.bandwidth / 1e12)} TB/s. "
        f"{chip.name}, bf16, modelled.",
        ("what is read", "GB", f"÷ {significant(chip.bandwidth / 1e12)} TB/s", "tokens a second"),
        tuple(
            (name, f"{size / 1e9:.2f}", f"{1e3 * size / chip.bandwidth:.3f} ms", f"{chip.bandwidth / size:.1f}")
            for name, size in counted
        ),
    )
    round_s = 16e9 / chip.bandwidth
    stored, read = counted[1][1], counted[2][1]
    busy = 16e9 / chip.rate("bf16") / round_s
    return Panel(
        "A fixed example: one token of an 8B model on an H100",
        f"Every token takes {round_s * 1e3:.1f} ms, because the chip reads all 16 GB of weights for it; its "
        f"multipliers have work for {100 * busy:.1f} % of that time.",
        (
            f"Two counts: as stored, {stored / 1e9:.2f} GB. As read, {read / 1e9:.2f} GB: of the table that turns "
            f"input tokens into vectors ({(stored - read) / 1e9:.2f} GB) a read looks up one row. Without it a token "
            f"takes {100 * (1 - read / stored):.1f} % less.",
            f"A bound, not a promise: SGLang’s documentation gives {SGLANG_TOKENS_S} tokens a second for this model on "
            f"an H100, {100 * SGLANG_TOKENS_S * stored / chip.bandwidth:.0f} % of the bound by bytes as stored, "
            f"{100 * SGLANG_TOKENS_S * read / chip.bandwidth:.0f} % as read.",
        ),
        "seconds a token = bytes of the weights ÷ bytes a second of the memory\n"
        f"16.00 GB ÷ {significant(chip.bandwidth / 1e12)} TB/s = {round_s * 1e3:.3f} ms    "
        f"1000 ÷ {round_s * 1e3:.3f} = {1 / round_s:.1f} tokens/s\n"
        f"multiplying: 2 × 8e9 FLOP ÷ {amount(chip.rate('bf16'), 'FLOP/s', 4)} = {duration(16e9 / chip.rate('bf16'))}",
        table,
    )


# --- the roof ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Point:
    """A read on the roof."""

    name: str
    cost: PassCost
    symbol: str
    colour: str
    size: int


def points(scene: Scene) -> tuple[Point, ...]:
    """Plain decoding, verification, a prompt, and the drafter."""
    target, drafter = scene.pair.target, scene.pair.drafter
    plain, prefill = scene.read(target), scene.read(target, PROMPT, context=0, batch=1)
    found = [
        Point("the drafter decodes", scene.read(drafter), "circle-open", "drafter", 19),
        Point("the target decodes", plain, "circle", "target", 11),
        Point(f"the target verifies {rows(scene.rows)}", scene.read(target, scene.rows), "diamond", "target", 13),
        Point(f"the target reads a prompt of {PROMPT:,} tokens", prefill, "square", "target", 11),
    ]
    return tuple(found if scene.gamma else found[:2] + found[3:])


def roof(scene: Scene) -> Panel:
    """FLOP for every byte against FLOP a second, with the reads of a round on it."""
    chip, dtype = scene.accelerator, scene.dtype
    ridge, rate = chip.ridge(dtype), chip.rate(dtype)
    placed = points(scene)
    intensities = [point.cost.intensity for point in placed]
    left, right = min(0.3, *intensities) / 2, max(30 * ridge, *intensities) * 2
    drawn = figure(
        x=logarithmic("FLOP for every byte read", range=[math.log10(left), math.log10(right)], **decades(left, right)),
        y=logarithmic(
            "FLOP a second",
            range=[math.log10(left * chip.bandwidth), math.log10(4 * rate)],
            **decades(left * chip.bandwidth, 4 * rate, "FLOP/s"),
        ),
        hovermode="closest",
    )
    drawn.add_scatter(
        x=[left, ridge, right],
        y=[left * chip.bandwidth, rate, rate],
        mode="lines",
        line={"color": colour("ink"), "width": 2},
        name="the roof",
        hoverinfo="skip",
        showlegend=False,
    )
    drawn.add_scatter(
        x=[ridge, ridge],
        y=[left * chip.bandwidth, rate],
        mode="lines",
        line={"color": colour("muted"), "width": 1, "dash": "dot"},
        hoverinfo="skip",
        showlegend=False,
    )
    drawn.add_annotation(
        x=math.log10(ridge),
        y=math.log10(rate),
        text=f"ridge: {significant(ridge)}",
        showarrow=False,
        yshift=12,
        font={"color": colour("ink")},
    )
    for point in placed:
        drawn.add_scatter(
            x=[point.cost.intensity],
            y=[point.cost.flops / point.cost.seconds],
            mode="markers",
            marker={
                "symbol": point.symbol,
                "size": point.size,
                "color": colour(point.colour),
                "line": {"color": colour(point.colour if "open" in point.symbol else "paper"), "width": 2},
            },
            name=point.name,
            hovertemplate=escaped(
                f"{point.name}: {significant(point.cost.intensity)} FLOP a byte, "
                f"{amount(point.cost.flops / point.cost.seconds, 'FLOP/s')}, {duration(point.cost.seconds)}"
            )
            + "<extra></extra>",
        )
    table = Table(
        f"Reads of {scene.pair.name} on {chip.name}, {said(scene)}, modelled",
        ("read", "GB", "GFLOP", "FLOP a byte", "to read", "to multiply", "it waits for", "FLOP a second"),
        tuple(
            (
                point.name,
                significant(point.cost.bytes / 1e9),
                significant(point.cost.flops / 1e9),
                significant(point.cost.intensity),
                duration(point.cost.memory_s),
                duration(point.cost.compute_s),
                "memory" if point.cost.bound == "memory" else "multipliers",
                amount(point.cost.flops / point.cost.seconds, "FLOP/s"),
            )
            for point in placed
        ),
    )
    plain, wide = scene.read(scene.pair.target), scene.read(scene.pair.target, scene.rows)
    until = cost.rows_until_compute_binds(lambda rows: scene.read(scene.pair.target, rows, batch=scene.batch))
    grew = wide.seconds / plain.seconds
    longer = "the same" if grew < 1.005 else f"{times(grew)} the"
    if plain.bound == "compute":
        story = (
            f"At batch {scene.batch:,} the chip no longer waits for its memory: {duration(plain.compute_s)} of "
            f"multiplying, {duration(plain.memory_s)} of reading. A wider read costs in full: drafts are not free here."
        )
    elif until is None:
        story = "Here the chip always waits for its memory, however many rows are read at once: the cache weighs more."
    elif not scene.gamma:
        story = (
            f"The chip waits for its memory: {duration(plain.memory_s)} of reading for {duration(plain.compute_s)} of "
            "multiplying."
        )
    elif wide.bound == "compute":
        story = (
            f"One row a reader waits for memory, {rows(scene.rows)} wait for the multipliers: the read grows from "
            f"{duration(plain.seconds)} to {duration(wide.seconds)}, and drafts are no longer free."
        )
    else:
        story = (
            f"The chip waits for its memory: {rows(scene.rows)} instead of one do "
            f"{significant(wide.flops / plain.flops, 2)} times the work in {longer} time."
        )
    wider = f"{rows(scene.rows)}: {significant(wide.intensity)} · " if scene.gamma else ""
    filled = (
        f"1 row: {significant(plain.intensity)} FLOP a byte · {wider}"
        f"ridge: {significant(ridge)}, where reading takes as long as multiplying."
    )
    reach = f"Memory binds up to {rows(until)} a reader." if until else ""
    return Panel(
        "The roof",
        story,
        tuple(filter(None, (filled, reach, fits(scene)))),
        "FLOP/s = min(bandwidth × FLOP a byte, peak)\n"
        f"ridge = {amount(rate, 'FLOP/s', 4)} ÷ {amount(chip.bandwidth, 'B/s', 4)} = "
        f"{significant(ridge, 4)} FLOP a byte",
        table,
        drawn,
        f"Log-log: FLOP a second against FLOP for every byte. The roof rises to {amount(rate, 'FLOP/s')} at "
        f"{significant(ridge)} FLOP a byte. " + placement(placed, ridge),
    )


def placement(placed: Iterable[Point], ridge: float) -> str:
    """Where the points lie, in words."""
    return " ".join(
        f"{point.name.capitalize()}: {significant(point.cost.intensity)}, "
        f"{'left' if point.cost.intensity < ridge else 'right'} of the ridge."
        for point in placed
    )


def said(scene: Scene) -> str:
    """The settings in a caption."""
    counted = "as read" if scene.count == "read" else "as stored"
    return f"{scene.dtype}, batch {scene.batch:,}, {scene.context:,} tokens of context, weights {counted}"


def fits(scene: Scene) -> str:
    """A sentence where weights and caches do not fit into the memory that they are read from."""
    has = scene.accelerator.memory
    models = (scene.pair.target, scene.pair.drafter)
    needs = sum(cost.stored_bytes(model, scene.dtype, scene.context, scene.batch) for model in models)
    if has is None or needs <= has:
        return ""
    return (
        f"It does not fit: both models and their caches take {amount(needs, 'B')}, {scene.accelerator.name} has "
        f"{amount(has, 'B')}. The numbers say what it would take if it did."
    )


# --- a block swept once -----------------------------------------------------------------------------------------------


def sweep(scene: Scene, *, mixture: bool = False) -> Panel:
    """The target's read by its width: what it reads stands still, what it multiplies grows."""
    shape = MIXTURE if mixture else scene.pair.target
    if mixture:  # all experts are stored, whatever is read
        scene = replace(scene, count="read")
    reads = {width: scene.read(shape, width) for width in WIDTHS}
    first, last = reads[WIDTHS[0]], reads[WIDTHS[-1]]
    drawn = figure(
        x={"title": "rows read at once, for each reader", "dtick": 2, "tick0": 1},
        y={"title": "ms", "range": [0, 1.12e3 * max(max(one.memory_s, one.compute_s) for one in reads.values())]},
        barmode="group",
        bargap=0.25,
        bargroupgap=0.05,
        hovermode="x unified",
    )
    bars: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("reading", "memory_s", {"color": colour("target")}),
        ("multiplying", "compute_s", {"color": CLEAR, "line": {"color": colour("ink"), "width": 1.5}}),
    )
    for name, part, marker in bars:
        drawn.add_bar(
            x=list(reads),
            y=[1e3 * getattr(read, part) for read in reads.values()],
            name=name,
            marker=marker,
            hovertemplate=f"{name} %{{y:.4~g}} ms<extra></extra>",
        )
    if 1 < scene.rows <= WIDTHS[-1]:
        drawn.add_vline(x=scene.rows, line={"color": colour("muted"), "dash": "dot", "width": 1})
        drawn.add_annotation(
            x=scene.rows,
            y=1,
            yref="paper",
            text=f"γ+1 = {scene.rows}",
            showarrow=False,
            yshift=-2,
            bgcolor=colour("paper"),
        )
    touched = [shape.experts_touched(scene.batch * width) for width in WIDTHS] if shape.experts else []
    table = Table(
        f"Reads of {shape.name} on {scene.accelerator.name} by width, {said(scene)}, modelled",
        (
            "rows",
            "weights GB",
            "cache GB",
            "GFLOP",
            "to read",
            "to multiply",
            *(("experts touched",) if touched else ()),
        ),
        tuple(
            (
                str(width),
                significant(read.weight_bytes / 1e9, 4),
                significant(read.kv_bytes / 1e9),
                significant(read.flops / 1e9),
                duration(read.memory_s, 4),
                duration(read.compute_s),
                *((f"{touched[index]:.1f} of {shape.experts}",) if touched else ()),
            )
            for index, (width, read) in enumerate(reads.items())
        ),
    )
    grew = f"{last.flops / first.flops:.0f}"
    of_each = f" of each of {scene.batch:,} readers" if scene.batch > 1 else ""
    wide = reads[min(scene.rows, WIDTHS[-1])]
    if touched:
        story = (
            f"A mixture of experts is not read whole: 1 row{of_each} needs {touched[0]:.0f} of {shape.experts} experts "
            f"a layer, {WIDTHS[-1]} rows about {touched[-1]:.0f}. " + _wider(first, last)
        )
        numbers: tuple[str, ...] = (
            f"Weights read: {amount(first.weight_bytes, 'B')} for 1 row, {amount(wide.weight_bytes, 'B')} for "
            f"{rows(scene.rows)} ({times(wide.weight_bytes / first.weight_bytes)}); with {touched[scene.gamma]:.1f} "
            f"of {shape.experts} experts touched.",
            "Assumed: every token chooses its experts independently and evenly. Real tokens share experts, and read "
            "less.",
        )
        formula = "experts touched by n rows = E (1 − (1 − k/E)ⁿ)"
    else:
        still = times(last.bytes / first.bytes)
        tail = (
            f"and at {rows(WIDTHS[-1])} multiplying takes {duration(last.compute_s)} of the reading’s "
            f"{duration(last.memory_s)}."
            if last.bound == "memory"
            else f"and at {rows(WIDTHS[-1])} multiplying takes {duration(last.compute_s)}, reading "
            f"{duration(last.memory_s)}: the chip waits for its multipliers."
        )
        story = f"The weights are read once, for 1 row or for 17. What is multiplied grows {grew}-fold, {tail}"
        numbers = (
            f"Bytes: {amount(first.bytes, 'B', 4)} for 1 row, {amount(last.bytes, 'B', 4)} for 17 ({still}). "
            f"FLOP: {amount(first.flops, 'FLOP')} and {amount(last.flops, 'FLOP')}.",
        )
        formula = "bytes = weights + batch × cache    FLOP = 2 × batch × rows × weights + attention"
    return Panel(
        "A block of weights, swept once",
        story,
        numbers,
        formula,
        table,
        drawn,
        f"Bars by width, 1 to 17 rows: reading takes {duration(first.memory_s)} to {duration(last.memory_s)}, "
        f"multiplying {duration(first.compute_s)} to {duration(last.compute_s)}.",
    )


def _wider(narrow: PassCost, wide: PassCost) -> str:
    """What a mixture's wider read costs."""
    longer = wide.seconds / narrow.seconds
    if longer < 1.05:
        return "Nearly all that it needs is read for one row already: a wider read is nearly free."
    why = "has more to multiply" if wide.bound == "compute" else "reads more"
    return f"A wider read {why} and takes {times(longer)} the time, so drafts are not free."


@dataclass(frozen=True, slots=True)
class Measured:
    """Reads of one machine by width, and what to call machine and origin."""

    by_width: Mapping[int, Spread]
    source: str
    badge: str


def from_profile(profile: Profile, badge: str) -> Measured | None:
    """The target's reads of a profile; None before one is measured."""
    found = {read.width: read.target for read in profile.reads if read.target is not None}
    return Measured(found, f"{profile.device}, {profile.dtype}, profiled", badge) if found else None


def from_trace(trace: Trace, badge: str) -> Measured | None:
    """The target's reads of a run, prefills left out; None where their time was not recorded."""
    seconds: dict[int, list[float]] = {}
    for one in (one for round_ in trace.rounds for one in round_.passes):
        if one.model == "target" and one.kind != "prefill" and one.query_tokens and (one.seconds or 0) > 0:
            seconds.setdefault(one.query_tokens, []).append(one.seconds or 0.0)
    spreads = {width: Spread.of(samples) for width, samples in sorted(seconds.items())}
    found = {width: spread for width, spread in spreads.items() if spread is not None}
    machine = " ".join(filter(None, ((trace.header.device or "").upper()[:40], (trace.header.dtype or "")[:40])))
    return Measured(found, f"{machine or 'unnamed machine'}, the run on Decode", badge) if found else None


def measured(reads: Measured) -> Panel:
    """The same by the clock, on an axis of its own."""
    widths, spreads = list(reads.by_width), list(reads.by_width.values())
    drawn = figure(
        x={"title": "rows read at once", "dtick": 2, "tick0": 1, "range": [0, max(18, *widths) + 0.5]},
        y={"title": f"ms, {reads.badge.split()[0]}", "rangemode": "tozero"},
        showlegend=False,
    )
    drawn.add_scatter(
        x=widths,
        y=[1e3 * spread.median for spread in spreads],
        error_y={
            "type": "data",
            "symmetric": False,
            "array": [1e3 * (spread.high - spread.median) for spread in spreads],
            "arrayminus": [1e3 * (spread.median - spread.low) for spread in spreads],
            "color": colour("muted"),
        },
        mode="markers",
        marker={"color": colour("target"), "size": 9, "symbol": "diamond-open", "line": {"width": 2}},
        customdata=[spread.count for spread in spreads],
        hovertemplate="%{x} rows: %{y:.3~g} ms, median of %{customdata}<extra></extra>",
    )
    first, last = spreads[0], spreads[-1]
    grew = last.median / first.median
    story = (
        f"By the clock: {rows(widths[-1])} took {times(grew)} the time of {rows(widths[0])}."
        if len(widths) > 1
        else f"By the clock, only {rows(widths[0])} so far: change gamma in a run to see another width."
    )
    return Panel(
        "The same by the clock",
        story,
        (f"{reads.source}; medians, with the middle half of the repeats as whiskers.",),
        "t(w) = median time of a read of w rows",
        Table(
            f"Time of the target’s read by width: {reads.source}",
            ("rows", "median", "middle half", "reads"),
            tuple(
                (
                    str(width),
                    duration(one.median),
                    f"{duration(one.low)} to {duration(one.high)}",
                    str(one.count),
                )
                for width, one in reads.by_width.items()
            ),
        ),
        drawn,
        f"Time of a read against its width: {story}",
        badge=reads.badge,
    )


# --- batch ------------------------------------------------------------------------------------------------------------


def clocks(scene: Scene) -> Panel:
    """One reader's tokens a second beside the room's, as more are served at once."""
    reads = {batch: scene.read(scene.pair.target, batch=batch) for batch in BATCHES}
    one, many, here = reads[BATCHES[0]], reads[BATCHES[-1]], scene.read(scene.pair.target)
    drawn = figure(
        x=by_batch(),
        y=logarithmic("tokens a second", **decades(min(1 / one.seconds, 1 / many.seconds), BATCHES[-1] / many.seconds)),
        hovermode="x unified",
    )
    lines = (
        ("the whole room", [batch / read.seconds for batch, read in reads.items()], "both", "dash", "square"),
        ("one reader", [1 / read.seconds for read in reads.values()], "target", "solid", "circle"),
    )
    for name, values, meaning, dash, symbol in lines:
        drawn.add_scatter(
            x=list(reads),
            y=values,
            mode="lines+markers",
            name=name,
            line={"color": colour("ink") if meaning == "both" else colour(meaning), "dash": dash, "width": 2},
            marker={"symbol": symbol, "size": 7},
            hovertemplate=f"{name}: %{{y:,.4~g}} a second<extra></extra>",
        )
    return Panel(
        "The clock does not speed up",
        f"More readers make the room faster, never a reader: alone {significant(1 / one.seconds)} tokens a second, "
        f"among {BATCHES[-1]:,} no more than {significant(1 / many.seconds)}. Only fewer reads for a token help a "
        "reader: that is what drafts buy.",
        (
            f"At batch {scene.batch:,}: one reader {significant(1 / here.seconds)} tokens a second, the room "
            f"{significant(scene.batch / here.seconds)}.",
        ),
        "a reader: 1 ÷ time of a read    the room: batch ÷ time of a read",
        Table(
            f"Plain decoding of {scene.pair.target.name} on {scene.accelerator.name}, {said(scene)}, modelled",
            ("batch", "a read", "tokens/s, one reader", "tokens/s, the room", "it waits for"),
            tuple(
                (
                    f"{batch:,}",
                    duration(read.seconds),
                    significant(1 / read.seconds),
                    significant(batch / read.seconds),
                    "memory" if read.bound == "memory" else "multipliers",
                )
                for batch, read in reads.items()
            ),
        ),
        drawn,
        f"Tokens a second against batch: the room rises from {significant(1 / one.seconds)} to "
        f"{significant(BATCHES[-1] / many.seconds)}, one reader falls from {significant(1 / one.seconds)} to "
        f"{significant(1 / many.seconds)}.",
    )


# --- the two marks ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Marks:
    """Batches, weights only: where a verification meets the ridge, and where speculation stops paying (None: never
    pays)."""

    ridge: float
    stops: float | None


def marks(chip: Accelerator, alpha: float, gamma: int, c: float, dtype: Dtype = "bf16") -> Marks:
    """The two points of :func:`payoff`."""
    return Marks(cost.ridge_batch(chip, gamma, dtype), cost.break_even_batch(chip, alpha, gamma, c, dtype))


def byte_ratio(scene: Scene, count: Count) -> float:
    """c by bytes of weights: a drafter read over a target read."""
    drafter, target = (cost.weight_bytes(one, scene.dtype, count) for one in (scene.pair.drafter, scene.pair.target))
    return drafter / target


def weights_only(scene: Scene, batch: float, c: float) -> float:
    """Expected speed over plain decoding if nothing but weights were read."""
    rows = cost.ridge_rows(scene.accelerator, scene.dtype)
    verify = max(1.0, batch * scene.rows / rows) / max(1.0, batch / rows)
    return theory.expected_tokens(scene.alpha, scene.gamma) / (verify + scene.gamma * c)


def paying(scene: Scene) -> tuple[tuple[float, float], ...]:
    """The stretches of :data:`BATCHES` in which drafting is faster than the target alone, the cache counted.

    For dense models every read is a straight line of the batch but for one kink, where multiplying overtakes reading:
    between kinks E t(1) - t(gamma + 1) - gamma t_drafter(1) is straight too, and its zeros are exact.
    """
    expected = theory.expected_tokens(scene.alpha, scene.gamma)
    target, drafter = scene.pair.target, scene.pair.drafter
    weighed = ((expected, target, 1), (-1.0, target, scene.rows), (-float(scene.gamma), drafter, 1))
    reads = [(factor, scene.read(shape, rows, batch=1)) for factor, shape, rows in weighed]

    def gain(batch: float) -> float:
        bandwidth, rate = scene.accelerator.bandwidth, scene.accelerator.rate(scene.dtype)
        return sum(
            factor * max((one.weight_bytes + batch * one.kv_bytes) / bandwidth, batch * one.flops / rate)
            for factor, one in reads
        )

    low, high = float(BATCHES[0]), float(BATCHES[-1])
    ridge = scene.accelerator.ridge(scene.dtype)
    kinks = [
        one.weight_bytes / (one.flops / ridge - one.kv_bytes) for _, one in reads if one.flops / ridge > one.kv_bytes
    ]
    corners = [low, *sorted(kink for kink in kinks if low < kink < high), high]
    found: list[tuple[float, float]] = []
    for left, right in pairwise(corners):
        start, end = gain(left), gain(right)
        if max(start, end) <= 0:
            continue
        zero = left if start == end else left + (right - left) * start / (start - end)
        span = (left if start > 0 else zero, right if end > 0 else zero)
        if found and found[-1][1] == span[0]:
            span = found.pop()[0], span[1]
        found.append(span)
    return tuple(found)


def where(spans: Iterable[tuple[float, float]]) -> str:
    """ "until batch 12.4", "at every batch shown", "from batch 3.0 to 40.0, and again from batch 300 on"."""
    told = []
    for low, high in spans:
        if low <= BATCHES[0]:
            told.append("at every batch shown" if high >= BATCHES[-1] else f"until batch {batch_of(high)}")
        else:
            told.append(f"from batch {batch_of(low)} " + ("on" if high >= BATCHES[-1] else f"to {batch_of(high)}"))
    return ", and again ".join(told) or "at no batch shown"


def payoff(scene: Scene, today: float | None = None) -> Panel:
    """Speed over plain decoding against batch, with the two marks."""
    c = byte_ratio(scene, scene.count)
    at = marks(scene.accelerator, scene.alpha, scene.gamma, c, scene.dtype)
    batches = sorted({*BATCHES, *(round(2 ** (step / 8)) for step in range(81))})
    thin = [weights_only(scene, batch, c) for batch in batches]
    full = [scene.price(batch=batch).speed(scene.alpha) for batch in batches]
    spans = paying(scene) if scene.gamma else ()
    weights = () if at.stops is None or at.stops <= BATCHES[0] else ((BATCHES[0], at.stops),)
    top = max(1.0, *thin, *full)
    named = _named(scene, at, c, spans)
    drawn = figure(
        x=by_batch(),
        y={"title": "times as fast as the target alone", "range": [0, top * (1.1 + ROW * len(named))]},
        hovermode="x unified",
    )
    lines = (
        ("weights only", thin, "ink", "solid"),
        (f"with the cache of {scene.context:,} tokens a reader", full, "target", "dash"),
    )
    for name, values, ink, dash in lines:
        drawn.add_scatter(
            x=batches,
            y=values,
            mode="lines",
            name=name,
            line={"color": colour(ink), "dash": dash, "width": 2},
            hovertemplate=f"{name}: %{{y:.2f}}×<extra></extra>",
        )
    drawn.add_hline(y=1, line={"color": colour("muted"), "dash": "dot", "width": 1})
    for row, (name, symbol, size, ink, batch, height) in enumerate(named):
        drawn.add_scatter(
            x=[batch],
            y=[height],
            mode="markers",
            marker={"symbol": symbol, "size": size, "color": colour(ink)},
            name=name,
            showlegend=False,
            hovertemplate=f"{name} {batch_of(batch)}<extra></extra>",
        )
        # Above both curves, a row each; the paper behind it covers the leaders of the rows above.
        left = batch < math.sqrt(BATCHES[-1])
        drawn.add_annotation(
            x=math.log10(batch),
            y=height,
            ax=0,
            ay=top * (1.05 + ROW * (len(named) - row - 0.5)),
            ayref="y",
            text=f"{name} {batch_of(batch)}",
            xanchor="left" if left else "right",
            arrowhead=0,
            arrowwidth=1,
            arrowcolor=colour("muted"),
            bgcolor=colour("paper"),
            borderpad=1,
        )
    expected = theory.expected_tokens(scene.alpha, scene.gamma)
    alphas = sorted({scene.alpha, *EXAMPLE_ALPHAS, *([] if today is None else [round(today, 4)])})
    counts: tuple[Count, ...] = ("read", "stored")
    ratios = {count: byte_ratio(scene, count) for count in counts}
    table = Table(
        f"Where it stops paying: {scene.accelerator.name}, {scene.dtype}, gamma {scene.gamma}; modelled",
        (
            "alpha",
            "tokens a round",
            "ridge met at batch",
            f"pays, with {scene.context:,} tokens of context",
            *(f"stops paying by weights alone, as {count} (c {ratios[count]:.3f})" for count in counts),
        ),
        tuple(
            (
                f"{significant(alpha)}{' (yours)' if alpha == scene.alpha else ''}"
                f"{' (today’s)' if today is not None and alpha == round(today, 4) else ''}",
                f"{theory.expected_tokens(alpha, scene.gamma):.2f}",
                significant(at.ridge),
                where(paying(replace(scene, alpha=alpha))) if scene.gamma else "nothing is drafted",
                *(
                    batch_of(marks(scene.accelerator, alpha, scene.gamma, ratios[c_of], scene.dtype).stops)
                    for c_of in counts
                ),
            )
            for alpha in alphas
        ),
    )
    shared = probability(scene.alpha)
    if not scene.gamma:
        story = "Gamma 0: nothing is drafted, so there is nothing that could stop paying."
    else:
        story = (
            f"With {scene.context:,} tokens of context and shared {shared}, drafting pays {where(spans)}; "
            f"by weights alone {where(weights)}"
        ) + (
            f", where a wider read is free until batch {significant(at.ridge)}."
            if weights
            else f": a round brings {expected:.2f} tokens and costs {1 + scene.gamma * c:.2f} reads or more."
        )
    here = scene.price().speed(scene.alpha)
    verdict = "slower than the target alone" if here < 1 else "as fast as the target alone" if here == 1 else "faster"
    now = (
        f"At batch {scene.batch:,} with {scene.context:,} tokens of context: {times(here)}, {verdict} (modelled). "
        f"A round brings {expected:.2f} tokens and costs {scene.price().reads:.2f} reads of the target."
    )
    return Panel(
        "Two marks, not one",
        story,
        (now,),
        "ridge met: batch × (γ+1) = ridge    by weights, until batch = ridge × (E − γ c) ÷ (γ+1)\n"
        "with the cache, where t(γ+1) + γ t_drafter = E t(1)\n"
        f"E = 1 + α + … + α^γ = {expected:.3f}    c = {c:.3f}    "
        f"{significant(cost.ridge_rows(scene.accelerator, scene.dtype), 4)} ÷ {scene.rows} = {significant(at.ridge, 4)}"
        + ("" if at.stops is None else f"    × (E − γ c) = {significant(at.stops, 4)}"),
        table,
        drawn,
        f"Speed over plain decoding against batch, from {thin[0]:.2f} times at batch 1 to {thin[-1]:.2f} times at "
        f"{BATCHES[-1]:,}. Ridge met at batch {significant(at.ridge)}. "
        f"By weights alone drafting pays {where(weights)}; "
        f"with {scene.context:,} tokens of context a reader {where(spans)}.",
    )


def _named(
    scene: Scene, at: Marks, c: float, spans: tuple[tuple[float, float], ...]
) -> list[tuple[str, str, int, str, float, float]]:
    """The marks within the figure: what each is called, its symbol, size and ink, its batch and height.

    The arrows' tips are the points: the ridge's comes from above and the others' from below, for the two lie close
    together where speculation barely pays.
    """
    if not scene.gamma:
        return []
    found = [("ridge met:", "arrow-down", 13, "ink", at.ridge, weights_only(scene, at.ridge, c))]
    if at.stops is not None:
        found.append(("by weights, until", "arrow-up", 13, "ink", at.stops, weights_only(scene, at.stops, c)))
    for low, high in spans:
        found += [
            ("with the cache, from", "arrow-up", 13, "target", low, 1.0),
            ("with the cache, until", "arrow-up", 13, "target", high, 1.0),
        ]
    return [mark for mark in found if BATCHES[0] < mark[4] < BATCHES[-1]]


def batch_of(batch: float | None) -> str:
    """A batch in a table."""
    return "pays at no batch" if batch is None else significant(batch, 2 if batch < 10 else 3)


# --- context ----------------------------------------------------------------------------------------------------------


def cache_share(scene: Scene, shape: ModelShape, context: int) -> float:
    """The part of what a plain read moves that is cache, 0..1."""
    read = scene.read(shape, context=context)
    return read.kv_bytes / read.bytes


def even_context(scene: Scene, shape: ModelShape) -> float | None:
    """Tokens of context at which the cache weighs as much as the weights; None where windows keep it smaller."""
    weights = cost.weight_bytes(shape, scene.dtype, scene.count, scene.batch)
    a_token = cost.kv_bytes_per_token(shape, scene.kv_dtype) * scene.batch
    if not shape.windowed_layers:
        return weights / a_token
    layer, full = a_token / shape.layers, shape.layers - shape.windowed_layers
    rest = weights - layer * shape.windowed_layers * (shape.window or 0)
    if rest <= 0:
        return weights / a_token
    return rest / (layer * full) if full else None


def context_share(scene: Scene) -> Panel:
    """How much of a read is the cache, against the length of the text."""
    contexts = [round(2 ** (step / 2)) for step in range(14, 37)]
    models = ((scene.pair.target, "target", "solid"), (scene.pair.drafter, "drafter", "dash"))
    drawn = figure(
        x={
            "title": "tokens of context",
            "type": "log",
            "tickvals": contexts[::4],
            "ticktext": [f"{context:,}" for context in contexts[::4]],
        },
        y={"title": "cache, part of the bytes read", "range": [0, 1], "tickformat": ".0%"},
        hovermode="x unified",
    )
    for shape, meaning, dash in models:
        drawn.add_scatter(
            x=contexts,
            y=[cache_share(scene, shape, context) for context in contexts],
            mode="lines",
            name=escaped(f"{shape.name} ({meaning})"),
            line={"color": colour(meaning), "dash": dash, "width": 2},
            hovertemplate="%{y:.1%}<extra></extra>",
        )
    drawn.add_hline(y=0.5, line={"color": colour("muted"), "dash": "dot", "width": 1})
    even = [(shape, even_context(scene, shape)) for shape, _, _ in models]
    told = [f"{shape.name} at {significant(at)} tokens" for shape, at in even if at is not None]
    lighter = scene.pair.drafter.kv_values / scene.pair.target.kv_values
    return Panel(
        "A long text: the cache is read too",
        "Every reader’s text so far is read again for each token, and nobody shares it: the cache weighs as much as "
        f"the weights for {' and '.join(told) or 'neither model'}.",
        (
            f"At batch {scene.batch:,} and {scene.context:,} tokens the cache is "
            f"{100 * cache_share(scene, scene.pair.target, scene.context):.1f} % of what the target reads. A token in "
            f"the drafter’s cache takes {100 * lighter:.0f} % of what it takes in the target’s.",
            "A verification reads the cache once for all its rows, so drafts save cache reads as well.",
        ),
        "cache bytes = batch × context × layers × kv heads × head_dim × 2 × bytes a number",
        Table(
            f"Cache as part of a plain read, batch {scene.batch:,}, {scene.dtype}, modelled",
            ("context", *(shape.name for shape, _, _ in models)),
            tuple(
                (f"{context:,}", *(f"{100 * cache_share(scene, shape, context):.1f} %" for shape, _, _ in models))
                for context in contexts[::2]
            ),
        ),
        drawn,
        "Part of the bytes that are cache, against context: "
        + "; ".join(
            f"{shape.name} from {100 * cache_share(scene, shape, contexts[0]):.1f} % to "
            f"{100 * cache_share(scene, shape, contexts[-1]):.1f} %"
            for shape, _, _ in models
        )
        + ".",
    )


# --- quantise or speculate --------------------------------------------------------------------------------------------


def two_by_two(scene: Scene) -> Panel:
    """bf16 or int4, plain or with drafts: milliseconds a token, and whether the answers change."""
    cells: list[tuple[str, str, float, str]] = []
    for dtype in ("bf16", "int4"):
        one = replace(scene, dtype=dtype)
        answers = "no" if dtype == "bf16" else "yes"
        cells.append((dtype, "plain", one.price().plain_s, answers))
        cells.append((dtype, f"drafts, gamma {scene.gamma}", one.a_token(), answers))
    base = cells[0][2]
    table = Table(
        f"{scene.pair.name} on {scene.accelerator.name}, batch {scene.batch:,}, {scene.context:,} tokens of context, "
        f"shared {probability(scene.alpha)}, modelled",
        ("weights", "decoding", "a token", "speed", "does it change the model’s answers?"),
        tuple(
            (dtype, how, duration(seconds), times(base / seconds), answers) for dtype, how, seconds, answers in cells
        ),
    )
    quant, spec, both = cells[2][2], cells[1][2], cells[3][2]
    best = min(
        (base, "Neither pays here"),
        (quant, "int4 alone is fastest"),
        (spec, "Drafting alone is fastest"),
        (both, "Both together are fastest"),
        key=lambda cell: cell[0],
    )[1]
    return Panel(
        "Quantise or speculate?",
        f"{best}: {duration(base)} a token as it is, {duration(quant)} with int4 weights, "
        f"{duration(spec)} with drafts, {duration(both)} with both. Other weights are "
        "other answers; only drafting leaves them as they are.",
        (
            "int4 counts a 16-bit scale for every 128 weights and a head at 16 bits; the cache stays at 16. "
            "How much worse the answers of int4 are is not modelled: measure it on your own tasks.",
            "The same alpha is taken for both: a quantised pair may agree more or less.",
        ),
        "a token = (t(γ+1) + γ t_drafter) ÷ E",
        table,
    )


# --- speed decoupled from size ----------------------------------------------------------------------------------------


def decoupled(scene: Scene) -> Panel:
    """A 70B with a 1B drafter on two of the accelerator, beside the 8B on one."""
    single, big = replace(scene, pair=SMALL), replace(scene, pair=BIG)
    gamma = cost.best_gamma(big.price, scene.alpha, MAX_GAMMA)
    drafted = replace(big, gamma=gamma)
    plain_small, plain_big, fast = single.price().plain_s, big.price().plain_s, drafted.a_token()
    needed = alpha_needed(big, plain_small)
    names = [(f"{SMALL.target.name}, plain, {single.accelerator.name}", plain_small)]
    names.append((f"{BIG.target.name}, plain, {big.accelerator.name}", plain_big))
    names.append((f"{BIG.target.name} + {BIG.drafter.name}, gamma {gamma}, {big.accelerator.name}", fast))
    size = BIG.target.params / SMALL.target.params
    reach = (
        f"To be as fast as the 8B it would take shared {significant(needed)}."
        if needed is not None
        else "No drafter of this size makes it as fast as the 8B, whatever it shares."
    )
    paid = (
        f"with a 1B drafter and shared {probability(scene.alpha)}, {times(fast / plain_small)}"
        if gamma
        else f"no gamma pays with shared {probability(scene.alpha)}"
    )
    return Panel(
        "Speed decoupled from size, and how far",
        f"A 70B is {significant(size, 2)} times as large as an 8B. On two chips its token takes "
        f"{times(plain_big / plain_small)} as long; {paid}.",
        (
            reach,
            "Two chips: bandwidth and rate add up; what they must tell each other is not counted, so this is a bound.",
            *filter(None, (fits(drafted),)),
        ),
        "alpha needed: the smallest alpha for which the best gamma gives t(8B) or less",
        Table(
            f"Batch {scene.batch:,}, {scene.context:,} tokens of context, {scene.dtype}, modelled",
            ("model", "a token", "tokens a second", "time against the 8B"),
            tuple((name, duration(at), significant(1 / at), times(at / plain_small)) for name, at in names),
        ),
    )


def alpha_needed(scene: Scene, seconds: float) -> float | None:
    """The smallest alpha, to a thousandth, at which some gamma brings a token in ``seconds``; None where none does."""
    prices = [scene.price(gamma) for gamma in range(MAX_GAMMA + 1)]

    def reached(step: int) -> bool:
        return any(price.plain_s / price.speed(step / 1000) <= seconds for price in prices)

    step = bisect_left(range(1001), True, key=reached)  # more shared is never slower
    return step / 1000 if step <= 1000 else None


def typed(terabytes_s: float, teraflops: float) -> Accelerator:
    """An accelerator from TB/s and dense TFLOP/s at 16 bits, as a visitor types them.

    Raises:
        ValueError: a number is out of range; in the visitor's units.
    """
    for name, value, (low, high), unit in (
        ("The bandwidth", terabytes_s, CUSTOM_TB_S, "TB/s"),
        ("The rate", teraflops, CUSTOM_TFLOP_S, "TFLOP/s"),
    ):
        if not (math.isfinite(value) and low <= value <= high):
            raise ValueError(f"{name} must be between {low:,g} and {high:,.0f} {unit}, got {value:,g}.")
    return custom("your chip", terabytes_s * 1e12, teraflops * 1e12)
