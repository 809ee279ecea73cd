"""The ledger: what the passes of a run would cost on an accelerator, added up beside plain decoding of the same tokens.

The run's passes say who read how many tokens behind which context; shapes and accelerator say what that costs. The
pair that is priced need not be the pair that ran, and changing it runs no model. Every number is modelled. Prefills
are kept apart: they count in no sum of a round.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Literal

from specviz import theory
from specviz.hardware import cost
from specviz.hardware.accelerators import Accelerator, Dtype
from specviz.hardware.cost import Count, PassCost, RoundPrice
from specviz.hardware.shapes import ModelShape
from specviz.trace import Pass, Round, Tally, Trace, tally

NEAR_DRAW = 0.1
"""An expected speed this close to 1 is a near draw."""
MAX_GAMMA = 16


@dataclass(frozen=True, slots=True)
class Parts:
    """An amount of bytes or seconds by what it went into.

    Attributes:
        drafter: reading the drafter's weights.
        target: reading the target's weights.
        kv: reading and writing both caches.
        arithmetic: seconds that multiplying took beyond the reading; 0 for bytes.
    """

    drafter: float = 0.0
    target: float = 0.0
    kv: float = 0.0
    arithmetic: float = 0.0

    @property
    def total(self) -> float:
        """All of it."""
        return self.drafter + self.target + self.kv + self.arithmetic

    def __add__(self, other: Parts) -> Parts:
        return Parts(
            self.drafter + other.drafter,
            self.target + other.target,
            self.kv + other.kv,
            self.arithmetic + other.arithmetic,
        )


@dataclass(frozen=True, slots=True)
class Entry:
    """A priced pass of round ``round``."""

    round: int
    model: Literal["target", "drafter"]
    kind: Literal["prefill", "draft", "verify"] | None
    query_tokens: int
    context: int
    cost: PassCost
    bytes: Parts
    seconds: Parts


@dataclass(frozen=True, slots=True)
class RoundEntry:
    """A priced round.

    Attributes:
        index: of the round, from 0.
        tokens: tokens that entered the text.
        drafted: drafts.
        kept: drafts that stayed.
        entries: its passes, prefills left out.
        prefills: its prefills.
        bytes: of ``entries``.
        seconds: of ``entries``.
        plain_bytes: of plain decoding of the same tokens.
        plain_seconds: likewise.
        wasted_reads: drafter reads for drafts that were rejected or never judged.
        wasted_bytes: what those reads moved, weights and cache.
        complete: every pass could be priced, and the target read; else the sums say too little.
    """

    index: int
    tokens: int
    drafted: int
    kept: int
    entries: tuple[Entry, ...]
    prefills: tuple[Entry, ...]
    bytes: Parts
    seconds: Parts
    plain_bytes: float
    plain_seconds: float
    wasted_reads: int
    wasted_bytes: float
    complete: bool

    @property
    def price(self) -> float | None:
        """The round in plain reads of the target; None where it cannot be told."""
        if not self.complete or not self.tokens:
            return None
        return _seconds(self.entries) * self.tokens / self.plain_seconds


@dataclass(frozen=True, slots=True)
class Step:
    """A corner of the staircase: what all rounds up to one cost, and plain decoding of as many tokens."""

    tokens: int
    bytes: Parts
    seconds: Parts
    plain_bytes: float
    plain_seconds: float


@dataclass(frozen=True, slots=True)
class PlainStep:
    """A step of plain decoding: bytes and seconds of the first ``tokens`` tokens, one read each."""

    tokens: int
    bytes: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Summary:
    """Some rounds in sum. ``None`` where a figure has no base: no rounds, passes or laws not recorded, no drafts.

    Attributes:
        rounds: how many.
        tokens: tokens that entered the text.
        bytes: moved, prefills left out.
        seconds: taken, prefills left out.
        plain_bytes: of plain decoding of the same tokens.
        plain_seconds: likewise.
        gamma: drafts a round, the mean where rounds differ.
        drafter_reads: the drafter's reads, prefills left out.
        c: a drafter read over a plain read of the target, means of the modelled seconds; 0 where no drafter read.
        verify: the target's read over a plain one; 1 while memory binds, but for the cache.
        price: a round in plain reads: verify + drafter_reads / rounds x c.
        brought: tokens a round.
        acceptance: chance that a judged draft stays, by the laws: mean of what the rule expects of the judged places.
        at_least: the acceptance is alpha, and the rule (block verification) keeps at least as many drafts.
        expected: tokens a round by the acceptance; short rounds count as short.
        speed: over plain decoding, in these rounds.
        expected_speed: over plain decoding, by the acceptance.
        best_gamma: the gamma with the best expected speed, at most 16.
        best_speed: that speed.
        wasted_reads: drafter reads for drafts that were rejected or never judged.
        wasted_bytes: what those reads moved.
    """

    rounds: int
    tokens: int
    bytes: Parts
    seconds: Parts
    plain_bytes: float
    plain_seconds: float
    gamma: float | None
    drafter_reads: int
    c: float | None
    verify: float | None
    price: float | None
    brought: float | None
    acceptance: float | None
    at_least: bool
    expected: float | None
    speed: float | None
    expected_speed: float | None
    best_gamma: int | None
    best_speed: float | None
    wasted_reads: int
    wasted_bytes: float

    @property
    def bytes_per_token(self) -> float | None:
        """Bytes moved for a token that stayed in the text, closing tokens counted."""
        return self.bytes.total / self.tokens if self.price is not None else None

    @property
    def plain_bytes_per_token(self) -> float | None:
        """The same for plain decoding."""
        return self.plain_bytes / self.tokens if self.tokens else None

    @property
    def near_draw(self) -> bool:
        """Whether the expected speed is within :data:`NEAR_DRAW` of plain decoding's."""
        return self.expected_speed is not None and abs(self.expected_speed - 1.0) <= NEAR_DRAW


@dataclass(frozen=True, eq=False)
class Ledger:
    """A run, priced. Frozen: another accelerator, pair or longer trace is another ledger.

    Attributes:
        trace: the run.
        accelerator: what is priced on.
        target_shape: the target that is priced.
        drafter_shape: the drafter that is priced; ``None`` reads nothing. Rounds in which the target drafted for itself
            are priced as such.
        dtype: of both models' weights.
        kv_dtype: of both caches.
        count: which weights count; see :func:`specviz.hardware.cost.weight_bytes`.
    """

    trace: Trace
    accelerator: Accelerator
    target_shape: ModelShape
    drafter_shape: ModelShape | None
    dtype: Dtype = "bf16"
    kv_dtype: Dtype = "bf16"
    count: Count = "read"

    @cached_property
    def rounds(self) -> tuple[RoundEntry, ...]:
        """The rounds, priced. Those of a shorter trace are the beginning of those of a longer one."""
        return tuple(self._price(round_) for round_ in self.trace.rounds)

    @cached_property
    def staircase(self) -> tuple[Step, ...]:
        """Nothing, then the sums after every round."""
        start = Step(0, Parts(), Parts(), 0.0, 0.0)
        return tuple(accumulate(self.rounds, _climb, initial=start))

    @cached_property
    def plain(self) -> tuple[PlainStep, ...]:
        """Nothing, then plain decoding after every token of the text."""
        first = len(self.trace.header.prompt_ids)
        costs = (self._plain_read(first + place) for place in range(len(self.trace.text_ids)))
        start = PlainStep(0, 0.0, 0.0)
        return tuple(
            accumulate(
                costs,
                lambda step, one: PlainStep(step.tokens + 1, step.bytes + one.bytes, step.seconds + one.seconds),
                initial=start,
            )
        )

    def grown(self, trace: Trace) -> Ledger:
        """The ledger of another trace at the same prices; the rounds that both begin with are not priced again."""
        other = replace(self, trace=trace)
        if trace.header == self.trace.header:
            same = 0
            for ours, theirs in zip(self.trace.rounds, trace.rounds, strict=False):
                if ours is not theirs:
                    break
                same += 1
            later = (other._price(round_) for round_ in trace.rounds[same:])
            other.__dict__["rounds"] = (*self.rounds[:same], *later)
        return other

    def summary(self, start: int = 0, stop: int | None = None) -> Summary:
        """Rounds ``start`` up to, not including, ``stop`` in sum; all without arguments."""
        entries, rounds = self.rounds[start:stop], self.trace.rounds[start:stop]
        tokens, plain_s = sum(entry.tokens for entry in entries), math.fsum(e.plain_seconds for e in entries)
        passes = [one for entry in entries for one in entry.entries]
        spent_s = _seconds(passes)
        known = tokens > 0 and all(entry.complete for entry in entries)
        counts = tally(rounds)
        acceptance, at_least = _acceptance(rounds, counts)
        expectations = _expected_tokens(rounds, acceptance)
        mean_s = plain_s / tokens if tokens else None
        reads = [one for one in passes if one.model == "drafter"]
        c = verify = price = speed = expected_speed = expected = best = None
        if expectations is not None and rounds:
            expected = math.fsum(expectations) / len(rounds)
        if known and mean_s is not None:
            c = _seconds(reads) / len(reads) / mean_s if reads else 0.0
            verify = _seconds([one for one in passes if one.model == "target"]) / len(entries) / mean_s
            price = spent_s / len(entries) / mean_s
            speed = plain_s / spent_s
            expected_speed = expected / price if expected is not None else None
        if acceptance is not None and known:
            best = self._best(rounds, acceptance)
        return Summary(
            rounds=len(entries),
            tokens=tokens,
            bytes=sum((entry.bytes for entry in entries), Parts()),
            seconds=sum((entry.seconds for entry in entries), Parts()),
            plain_bytes=math.fsum(entry.plain_bytes for entry in entries),
            plain_seconds=plain_s,
            gamma=counts.drafted / len(entries) if entries else None,
            drafter_reads=len(reads),
            c=c,
            verify=verify,
            price=price,
            brought=tokens / len(entries) if entries else None,
            acceptance=acceptance,
            at_least=at_least,
            expected=expected,
            speed=speed,
            expected_speed=expected_speed,
            best_gamma=best.gamma if best is not None else None,
            best_speed=best.speed(acceptance) if best is not None and acceptance is not None else None,
            wasted_reads=sum(entry.wasted_reads for entry in entries),
            wasted_bytes=math.fsum(entry.wasted_bytes for entry in entries),
        )

    def expected_line(self, start: int = 0, stop: int | None = None) -> tuple[tuple[float, float], ...]:
        """(tokens, seconds) after every round of ``start``..``stop`` if each had brought what the laws expect.

        From (0, 0); tokens by the acceptance of these rounds, seconds as the rounds took. Empty where the acceptance is
        not known.
        """
        rounds = self.trace.rounds[start:stop]
        expectations = _expected_tokens(rounds, _acceptance(rounds, tally(rounds))[0])
        if expectations is None:
            return ()
        spent = (entry.seconds.total for entry in self.rounds[start:stop])
        return tuple(zip(accumulate(expectations, initial=0.0), accumulate(spent, initial=0.0), strict=True))

    def price(self, gamma: int, context: int = 0, copied: bool = False) -> RoundPrice:
        """The price of a round of ``gamma`` drafts behind ``context`` tokens; ``copied`` drafts cost no read.

        Raises:
            ValueError: gamma or context is negative.
        """
        drafter = None if copied else self.drafter_shape
        return self._round_price(drafter, gamma, context)

    # --- pricing ------------------------------------------------------------------------------------------------------

    def _price(self, round_: Round) -> RoundEntry:
        drafter = self._drafter(round_)
        priced = [self._entry(round_.index, one, drafter) for one in round_.passes]
        known = [entry for entry in priced if entry is not None]
        entries = tuple(entry for entry in known if entry.kind != "prefill")
        plain = [self._plain_read(round_.position + place) for place in range(len(round_.emitted))]
        drafter_reads = [entry for entry in entries if entry.model == "drafter"]
        wasted = [
            entry
            for draft, entry in zip(round_.drafts, drafter_reads, strict=False)
            if draft.fate in ("rejected", "unjudged")
        ]
        return RoundEntry(
            index=round_.index,
            tokens=len(round_.emitted),
            drafted=len(round_.drafts),
            kept=round_.kept,
            entries=entries,
            prefills=tuple(entry for entry in known if entry.kind == "prefill"),
            bytes=sum((entry.bytes for entry in entries), Parts()),
            seconds=sum((entry.seconds for entry in entries), Parts()),
            plain_bytes=math.fsum(one.bytes for one in plain),
            plain_seconds=math.fsum(one.seconds for one in plain),
            wasted_reads=len(wasted),
            wasted_bytes=math.fsum(entry.bytes.total for entry in wasted),
            complete=len(known) == len(priced) and any(entry.model == "target" for entry in entries),
        )

    def _entry(self, index: int, one: Pass, drafter: ModelShape | None) -> Entry | None:
        """The pass, priced; None where the record does not say enough."""
        if one.model is None or not one.query_tokens or one.context is None:
            return None
        shape = self.target_shape if one.model == "target" else drafter
        if shape is None:
            spent = PassCost(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, "memory", 0.0, 0.0)
        else:
            spent = self._cost(shape, one.query_tokens, one.context)
        in_bytes = _parts(one.model, spent.weight_bytes, spent.kv_bytes)
        bandwidth = self.accelerator.bandwidth
        in_seconds = _parts(one.model, spent.weight_bytes / bandwidth, spent.kv_bytes / bandwidth)
        in_seconds += Parts(arithmetic=spent.seconds - spent.memory_s)
        return Entry(index, one.model, one.kind, one.query_tokens, one.context, spent, in_bytes, in_seconds)

    def _cost(self, shape: ModelShape, query_tokens: int, context: int) -> PassCost:
        return cost.pass_cost(
            shape,
            self.accelerator,
            query_tokens,
            context,
            dtype=self.dtype,
            kv_dtype=self.kv_dtype,
            count=self.count,
        )

    def _plain_read(self, position: int) -> PassCost:
        """The read that plain decoding spends on the token at ``position``: it feeds the token before it."""
        return self._cost(self.target_shape, 1, max(position - 1, 0))

    def _drafter(self, round_: Round) -> ModelShape | None:
        """The shape that drafted: the target's own where it drafted for itself."""
        chosen = (round_.settings or {}).get("drafter", "model")
        itself = chosen == "target" or (chosen == "model" and self.trace.header.drafter == "target")
        return self.target_shape if itself else self.drafter_shape

    def _round_price(self, drafter: ModelShape | None, gamma: int, context: int) -> RoundPrice:
        return cost.round_price(
            self.target_shape,
            drafter,
            self.accelerator,
            gamma,
            context,
            dtype=self.dtype,
            kv_dtype=self.kv_dtype,
            count=self.count,
        )

    def _best(self, rounds: Sequence[Round], acceptance: float) -> RoundPrice:
        """The price of the best gamma for a drafter like that of the last round with drafts, behind a mean context."""
        last = next(round_ for round_ in reversed(rounds) if round_.drafts)
        reads = any(one.model == "drafter" for one in last.passes)
        drafter = self._drafter(last) if reads else None
        context = sum(round_.position for round_ in rounds) // len(rounds)

        def price(gamma: int) -> RoundPrice:
            return self._round_price(drafter, gamma, context)

        return price(cost.best_gamma(price, acceptance, MAX_GAMMA))


def _parts(model: Literal["target", "drafter"], weights: float, kv: float) -> Parts:
    return Parts(drafter=weights, kv=kv) if model == "drafter" else Parts(target=weights, kv=kv)


def _seconds(entries: Sequence[Entry]) -> float:
    """Exactly rounded, and not by parts: rounds that are plain reads then come out as exactly as fast."""
    return math.fsum(entry.cost.seconds for entry in entries)


def _climb(step: Step, entry: RoundEntry) -> Step:
    return Step(
        tokens=step.tokens + entry.tokens,
        bytes=step.bytes + entry.bytes,
        seconds=step.seconds + entry.seconds,
        plain_bytes=step.plain_bytes + entry.plain_bytes,
        plain_seconds=step.plain_seconds + entry.plain_seconds,
    )


def _acceptance(rounds: Sequence[Round], counts: Tally) -> tuple[float | None, bool]:
    """What the laws expect of a judged draft, and whether the rule does at least as well (block verification).

    Source: a block keeps no fewer drafts in expectation than a place-by-place test, Sun et al. 2024 (arXiv 2403.10444).
    """
    if counts.expected_kept is not None and counts.judged:
        return _chance(counts.expected_kept / counts.judged), False
    rules = {(round_.settings or {}).get("rule") for round_ in rounds if round_.drafts}
    if counts.alpha is not None and rules <= {"block_verification", "speculative_sampling"}:
        return _chance(counts.alpha), "block_verification" in rules
    return None, False


def _chance(mean: float) -> float:
    """A mean of recorded chances: their sums over a vocabulary leave [0, 1] by rounding."""
    return min(max(mean, 0.0), 1.0)


def _expected_tokens(rounds: Sequence[Round], acceptance: float | None) -> tuple[float, ...] | None:
    """Tokens that each round was expected to bring, by its own number of drafts; None where that is not known."""
    if acceptance is None and any(round_.drafts for round_ in rounds):
        return None
    return tuple(theory.expected_tokens(acceptance or 0.0, len(round_.drafts)) for round_ in rounds)
