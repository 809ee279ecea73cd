"""Lanes and price: what the reads of a run would cost on an accelerator, beside the target alone.

Two lanes and a staircase are drawn from a few numbers a round; the lines under them say what a round costs, what it
brought, what came of it, and how every number is made. All of it is modelled, from the run's own reads and the bytes
of the pair that is priced; see :mod:`specviz.hardware.ledger`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from specviz.figures import events
from specviz.figures.events import Event
from specviz.figures.rounds import changes
from specviz.figures.sentences import Spans, fill
from specviz.figures.tallies import CHANGED, ENOUGH
from specviz.hardware import cost
from specviz.hardware.accelerators import Accelerator
from specviz.hardware.ledger import Ledger, RoundEntry, Summary
from specviz.hardware.shapes import ModelShape
from specviz.trace import Round, tally

TITLE = "Does it pay?"
EMPTY = "Nothing is read yet: the lanes grow with the first round."
UNREAD = "This record does not say what was read, so there is nothing to price."
UNFINISHED = "The first round is not over: its price and its yield come with its last token."

LINES = {
    "price": "A round costs [{price}] reads of the target alone ({sum}).",
    "price.story": "A round takes as long as [{price}] reads of the target alone.",
    "brought": "It brought [{brought}] tokens here{few}; {says} [{expected}].",
    "brought.story": "It brought [{brought}] tokens on average{few}.",
    "brought.only": "It brought [{brought}] tokens here{few}; what to expect, this record does not say.",
    "speed": "[{speed}×] in this run{few}, [{expected}×] expected",
    "speed.story": "[{speed}×] as fast in this run{few}, [{expected}×] expected",
    "speed.only": "[{speed}×] in this run{few}",
    "source": " · modelled: acceptance of {ran}, bytes of {priced}.",
    "source.same": " · modelled: bytes of {priced}, the pair that ran.",
    "no drafts": "No drafts: plain decoding. A round costs [1] read of the target and brings [1] token: [1×].",
}
FEW = " (too few to say)"
SAYS = {
    "speculative_sampling": "alpha says",
    "block_verification": "alpha says at least",
    "gumbel_coupling": "the chance that both pick the same says",
    "token_match": "the chance that both draw the same says",
    "greedy": "at the rate at which the first choices agreed it would be",
}
SAYS_MIXED = "what the rules expect says"

WOULD = {"pays": "pay", "loses": "not pay", "even": "be a draw"}
VERDICTS = {
    "pays": "[Pays], because {expected} > {price}.",
    "loses": "[Does not pay], because {expected} < {price}: {eaten} ate it.",
    "even": "[A draw]: {expected} tokens for {price} reads.",
    "few": "[Too few to say]: fewer than {enough} drafts were judged. By these it would {would}.",
    "near": " It is nearly a draw.",
    "try": " Try gamma {gamma}: {speed}× expected.",
    "none": " No gamma pays at this price: drafts stay too seldom.",
    "luck": " In this run it came out the other way, by luck.",
    "pays.here": "[Paid in this run], {brought} > {price}.",
    "loses.here": "[Did not pay in this run], {brought} < {price}: {eaten} ate it.",
    "even.here": "[A draw in this run]: {brought} tokens for {price} reads.",
    "pays.story": "[Pays]: it brings more tokens than it costs reads.",
    "loses.story": "[Does not pay]: {eaten} ate it.",
    "even.story": "[A draw]: what the drafts bring, they cost.",
}
EATEN = {"drafter": "the drafter’s reads", "wider": "the wider reads of the target"}
ASKED = {
    "pays": "You set gamma {gamma}: a round would cost {price} reads and bring {expected} tokens, [{speed}×: it pays].",
    "loses": "You set gamma {gamma}: a round would cost {price} reads and bring {expected} tokens, "
    "[{speed}×: it loses].",
    "even": "You set gamma {gamma}: a round would cost {price} reads and bring {expected} tokens, [{speed}×: a draw].",
    "even.story": "You set gamma {gamma}: that would be [{speed}×: a draw].",
    "pays.story": "You set gamma {gamma}: that would be [{speed}×: it pays].",
    "loses.story": "You set gamma {gamma}: that would be [{speed}×: it loses].",
}
MORE = {
    "moved": "GPU memory (HBM) moved for a token: {ours} GB with the drafter, {alone} GB alone.",
    "wasted": "{wasted} of {reads} drafter reads ({bytes} GB) went into drafts that were rejected or never judged.",
    "copied": "{wasted} of {drafted} drafts were rejected or never judged; copying them took no read.",
    "itself": "Rounds in which the target drafted for itself are priced so: each draft is a read of the target.",
    "room": "{stored} GB of weights do not fit into the {memory} GB of {accelerator}: the price is that of the reads.",
}
COUNTS = {"stored": "as stored", "read": "as read"}
SAME, MOST_DIGITS = 1e-4, 4
"""Two prices so close differ by a few bytes of cache: they are the same."""
COPIES, ITSELF = "n-gram copies", "the target itself"


Row = tuple[Any, ...]
"""A round's numbers as they cross to the browser."""


@dataclass(frozen=True, slots=True)
class Ran:
    """The pair whose acceptance is shown, by name; ``same``: it is the pair that is priced."""

    target: str
    drafter: str
    same: bool = False


@dataclass(frozen=True, slots=True)
class Block:
    """A round on the lanes, in milliseconds.

    Attributes:
        reads: reads of the drafter.
        drafter: what they take in all, cache included.
        target: what the target's read takes, cache included.
        weights: the part of ``drafter`` that reads weights.
        kv: the part of both that moves the caches.
        arithmetic: what multiplying takes beyond reading; it moves no bytes.
        plain: the target alone, for the tokens of the round.
        tokens: tokens that entered the text; in a round under way, those that are known.
        kept: drafts among them.
        closing: fate of the token that closed the round; empty where none did.
        read: whether the target has read; false only in a round under way.
    """

    reads: int
    drafter: float
    target: float
    weights: float
    kv: float
    arithmetic: float
    plain: float
    tokens: int
    kept: int
    closing: str
    read: bool

    @property
    def row(self) -> Row:
        """As it crosses to the browser: in the order of the attributes."""
        written = (self.drafter, self.target, self.weights, self.kv, self.arithmetic, self.plain)
        shown = (float(f"{value:.6g}") for value in written)
        return (self.reads, *shown, self.tokens, self.kept, self.closing, int(self.read))


@dataclass(frozen=True, slots=True)
class Lanes:
    """The panel.

    Attributes:
        title: of the panel.
        badge: that all is modelled, and on what.
        said: why there is nothing to draw, in one sentence; empty where there is.
        rounds: :attr:`Block.row` of the rounds that are over and of the one under way.
        complete: how many of them are over.
        plain: milliseconds of one plain read, about.
        gigabytes: moved in a millisecond.
        expected: tokens after each round that is over if it had brought what the laws expect, from 0; may be empty.
        lines: what a round costs, brings, and what comes of it.
        verdict: whether it pays.
        asked: whether it would at the gamma that is set, where that is another.
        measured: the same on this machine, measured.
        more: further sentences.
        board: the arithmetic, (what, how) a line.
        formula: of it all.
    """

    title: str
    badge: str
    said: str
    rounds: tuple[Row, ...] = ()
    complete: int = 0
    plain: float = 0.0
    gigabytes: float = 0.0
    expected: tuple[float, ...] = ()
    lines: tuple[Spans, ...] = ()
    verdict: Spans = ()
    asked: Spans = ()
    measured: Spans = ()
    more: tuple[str, ...] = ()
    board: tuple[tuple[str, str], ...] = ()
    formula: str = ""


FORMULA = """price of a round = t(γ + 1) ÷ t(1) + γ c,   c = one drafter read ÷ one plain read of the target
t(rows) = max(bytes ÷ bandwidth, FLOP ÷ rate);   expected tokens = 1 + α + … + α^γ = (1 − α^(γ+1)) ÷ (1 − α)
speed over the target alone = tokens of a round ÷ price of a round"""


def layout(
    ledger: Ledger,
    event: Event | None,
    ran: Ran,
    *,
    summary: Summary | None = None,
    expected: Sequence[float] | None = None,
    rows: Sequence[Row] | None = None,
    story: bool = False,
    gamma: int | None = None,
    measured: Spans = (),
) -> Lanes:
    """Price the rounds up to the moment ``event``.

    Args:
        ledger: the run, priced.
        event: the moment; None where nothing has happened.
        ran: whose acceptance it is.
        summary: of the rounds that are over, where the caller has kept it; see :func:`over`.
        expected: tokens expected after each of them, likewise; see :func:`expectation`.
        rows: of all rounds, likewise; see :func:`rows_of`.
        story: tell the least.
        gamma: the gamma that is set, where that is not the run's own.
        measured: what this machine took, in words.
    """
    badge = f"modelled · {ledger.accelerator.name} · {_priced_name(ledger)} · 16 bits, weights {COUNTS[ledger.count]}"
    if story:
        badge = f"modelled · {ledger.accelerator.name}"
    board = () if story else arithmetic(ledger, ledger.trace.rounds[: event.round + 1] if event is not None else ())
    if event is None:
        return Lanes(TITLE, badge, EMPTY, board=board)
    complete = over(ledger, event)
    shown = ledger.rounds[: event.round + 1]
    if not all(entry.complete for entry in shown):
        return Lanes(TITLE, badge, UNREAD, measured=measured, board=board)
    summary = ledger.summary(stop=complete) if summary is None else summary
    shown_rows = tuple((rows_of(ledger) if rows is None else rows)[:complete])
    if complete < len(shown):
        shown_rows += (_under_way(shown[-1], ledger.trace.rounds[event.round], event).row,)
    lines, verdict = _lines(ledger, summary, complete, ran, story) if complete else ((), ())
    return Lanes(
        title=TITLE,
        badge=badge,
        said="" if complete else UNFINISHED,
        rounds=shown_rows,
        complete=complete,
        plain=1000 * ledger.price(0, ledger.trace.rounds[event.round].position).plain_s,
        gigabytes=ledger.accelerator.bandwidth / 1e12,
        expected=tuple(expectation(ledger, complete) if expected is None else expected),
        lines=lines,
        verdict=verdict,
        asked=_asked(ledger, summary, gamma, story),
        measured=measured,
        more=() if story or not complete else _more(ledger, summary, complete),
        board=(*board, *_division(summary)) if not story else (),
        formula=FORMULA,
    )


def rows_of(ledger: Ledger) -> tuple[Row, ...]:
    """:attr:`Block.row` of every round of the run."""
    return tuple(_block(entry, ledger.trace.rounds[entry.index]).row for entry in ledger.rounds)


def over(ledger: Ledger, event: Event | None) -> int:
    """How many rounds are over at the moment ``event``."""
    return 0 if event is None else event.round + events.closed(ledger.trace.rounds[event.round], event)


def expectation(ledger: Ledger, complete: int) -> tuple[float, ...]:
    """Tokens expected after each of the first ``complete`` rounds, from 0; empty where the laws are not known."""
    return tuple(float(f"{tokens:.5g}") for tokens, _ in ledger.expected_line(stop=complete))


def speed_at(ledger: Ledger, summary: Summary, gamma: int, complete: int) -> float | None:
    """The expected speed over the target alone had every round drafted ``gamma``; None where too little is known."""
    price = _price_at(ledger, summary, gamma)
    if price is None or summary.acceptance is None or tally(ledger.trace.rounds[:complete]).judged < ENOUGH:
        return None
    return price.speed(summary.acceptance)


# --- blocks -----------------------------------------------------------------------------------------------------------


def _block(entry: RoundEntry, round_: Round) -> Block:
    reading = [one for one in entry.entries if one.model == "drafter"]
    drafter = sum(one.cost.seconds for one in reading)
    closing = "" if round_.closing is None else round_.closing.kind or "plain"
    return Block(
        reads=len(reading),
        drafter=1000 * drafter,
        target=1000 * (entry.seconds.total - drafter),
        weights=1000 * entry.seconds.drafter,
        kv=1000 * entry.seconds.kv,
        arithmetic=1000 * entry.seconds.arithmetic,
        plain=1000 * entry.plain_seconds,
        tokens=entry.tokens,
        kept=entry.kept,
        closing=closing,
        read=True,
    )


def _under_way(entry: RoundEntry, round_: Round, event: Event) -> Block:
    """The round as far as it has come: what is still to be drafted, read or judged is not there."""
    whole = _block(entry, round_)
    reads = min(events.drafted(round_, event), whole.reads)
    part = reads / whole.reads if whole.reads else 0.0
    read = events.read(round_, event)
    kept = sum(events.standing(round_, place, event) == "kept" for place in range(len(round_.drafts)))
    plain = whole.plain * kept / whole.tokens if whole.tokens else 0.0
    return Block(reads, whole.drafter * part, whole.target if read else 0.0, 0.0, 0.0, 0.0, plain, kept, kept, "", read)


# --- lines ------------------------------------------------------------------------------------------------------------


def _lines(ledger: Ledger, summary: Summary, complete: int, ran: Ran, story: bool) -> tuple[tuple[Spans, ...], Spans]:
    rounds = ledger.trace.rounds[:complete]
    if not any(round_.drafts for round_ in rounds):
        return (fill(LINES["no drafts"]),), ()
    assert summary.price is not None
    assert summary.brought is not None
    assert summary.speed is not None
    few = FEW if tally(rounds).judged < ENOUGH else ""
    price, brought, expected = _apart(summary.price, summary.brought, summary.expected)
    price_line = fill(LINES["price.story" if story else "price"], price=price, sum=_sum(summary))
    if story:
        brought_line = fill(LINES["brought.story"], brought=brought, few=few)
    elif summary.expected is None:
        brought_line = fill(LINES["brought.only"], brought=brought, few=few)
    else:
        brought_line = fill(LINES["brought"], brought=brought, few=few, says=_says(rounds), expected=expected)
    line = LINES["speed.only" if summary.expected_speed is None else "speed.story" if story else "speed"]
    expected_speed = _times(summary.expected_speed or 0.0)
    speed_line = fill(line, speed=_times(summary.speed), expected=expected_speed, few=few) + fill(
        LINES["source.same" if ran.same else "source"],
        ran=_ran_name(rounds, ran),
        priced=_priced_name(ledger, rounds),
    )
    return (price_line, brought_line, speed_line), _verdict(ledger, summary, rounds, (price, brought, expected), story)


def _apart(price: float, brought: float, expected: float | None) -> tuple[str, str, str]:
    """The three as they are compared: with as many digits as it takes to tell the price from what it bought."""
    digits = 2
    while digits < MOST_DIGITS and any(
        f"{value:.{digits}f}" == f"{price:.{digits}f}" and abs(value - price) > SAME
        for value in (brought, expected or brought)
    ):
        digits += 1
    return f"{price:.{digits}f}", f"{brought:.{digits}f}", "" if expected is None else f"{expected:.{digits}f}"


def _times(speed: float) -> str:
    """A speed that does not look like 1 unless it is, but for the caches."""
    digits = 2
    while digits < MOST_DIGITS and float(f"{speed:.{digits}f}") == 1 and abs(speed - 1) > SAME:
        digits += 1
    return f"{speed:.{digits}f}"


def _sum(summary: Summary) -> str:
    """ "1 + 4 × 0.154": the target's read and the drafter's."""
    verify = f"{summary.verify:.2f}".removesuffix(".00")
    if not summary.drafter_reads:
        return f"{verify}: copies cost no read"
    return f"{verify} + {_mean(summary.drafter_reads / summary.rounds)} × {_ratio(summary.c or 0.0)}"


def _ratio(c: float) -> str:
    """Three digits that count."""
    return f"{c:.3f}" if c >= 0.1 or not c else f"{c:.3g}"


def _mean(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _says(rounds: Sequence[Round]) -> str:
    rules = {(round_.settings or {}).get("rule") for round_ in rounds if round_.drafts}
    return SAYS.get(str(rules.pop()), SAYS_MIXED) if len(rules) == 1 else SAYS_MIXED


def _verdict(
    ledger: Ledger, summary: Summary, rounds: Sequence[Round], written: tuple[str, str, str], story: bool
) -> Spans:
    """By what is expected; by what happened where nothing else is known."""
    price, brought, expected = written
    assert summary.speed is not None
    known = summary.expected_speed is not None
    speed = summary.expected_speed if summary.expected_speed is not None else summary.speed
    which = "even" if abs(speed - 1) <= SAME else "pays" if speed > 1 else "loses"
    fields = {"price": price, "brought": brought, "expected": expected, "eaten": EATEN[_eater(summary)]}
    said = fill(VERDICTS[f"{which}.story" if story else which if known else f"{which}.here"], **fields)
    if tally(rounds).judged < ENOUGH:
        return fill(VERDICTS["few"], enough=ENOUGH, would=WOULD[which])
    if not known:
        return said
    if not story and summary.near_draw and which != "even":
        said += fill(VERDICTS["near"])
    if (speed - 1) * (summary.speed - 1) < 0:
        said += fill(VERDICTS["luck"])
    return said if story else said + _better(summary, rounds)


def _better(summary: Summary, rounds: Sequence[Round]) -> Spans:
    """Beside a near draw, or below it: the gamma that would be better."""
    speed, best, best_speed = summary.expected_speed, summary.best_gamma, summary.best_speed
    if speed is None or best is None or best_speed is None or not (summary.near_draw or speed < 1):
        return ()
    if best == 0:
        return fill(VERDICTS["none"])
    gammas = {(round_.settings or {}).get("gamma", len(round_.drafts)) for round_ in rounds}
    if gammas == {best} or best_speed <= speed:
        return ()
    return fill(VERDICTS["try"], gamma=best, speed=_times(best_speed))


def _eater(summary: Summary) -> str:
    """What made a round dear: the drafter's reads, or that the target reads more rows at once."""
    wider = (summary.verify or 1.0) - 1.0
    return "drafter" if (summary.price or 1.0) - 1.0 - wider >= wider else "wider"


def _price_at(ledger: Ledger, summary: Summary, gamma: int) -> cost.RoundPrice | None:
    if summary.acceptance is None or not summary.rounds:
        return None
    rounds = ledger.trace.rounds[: summary.rounds]
    last = next((round_ for round_ in reversed(rounds) if round_.drafts), None)
    copied = last is not None and not any(one.model == "drafter" for one in last.passes)
    return ledger.price(gamma, sum(round_.position for round_ in rounds) // len(rounds), copied)


def _asked(ledger: Ledger, summary: Summary, gamma: int | None, story: bool) -> Spans:
    """What the gamma that is set would cost and bring, by the chances of the rounds so far."""
    price = _price_at(ledger, summary, gamma) if gamma is not None else None
    if price is None or summary.acceptance is None or not gamma:
        return ()
    speed = price.speed(summary.acceptance)
    which = "even" if abs(speed - 1) <= SAME else "loses" if speed < 1 else "pays"
    return fill(
        ASKED[f"{which}.story" if story else which],
        gamma=gamma,
        price=f"{price.reads:.2f}",
        expected=f"{speed * price.reads:.2f}",
        speed=_times(speed),
    )


def _more(ledger: Ledger, summary: Summary, complete: int) -> tuple[str, ...]:
    rounds = ledger.trace.rounds[:complete]
    said = []
    if summary.gamma and summary.bytes_per_token is not None and summary.plain_bytes_per_token is not None:
        ours, alone = _gigabytes(summary.bytes_per_token, summary.plain_bytes_per_token)
        said.append(MORE["moved"].format(ours=ours, alone=alone))
    drafted = sum(len(round_.drafts) for round_ in rounds)
    if summary.drafter_reads:
        (moved,) = _gigabytes(summary.wasted_bytes)
        said.append(MORE["wasted"].format(wasted=summary.wasted_reads, reads=summary.drafter_reads, bytes=moved))
    elif drafted:
        lost = drafted - sum(round_.kept for round_ in rounds)
        said.append(MORE["copied"].format(wasted=lost, drafted=drafted))
    if any(_itself(ledger, round_) for round_ in rounds):
        said.append(MORE["itself"])
    if changed := changes(rounds):
        said.append(CHANGED.format(changes=changed))
    shapes = [shape for shape in (ledger.target_shape, ledger.drafter_shape) if shape is not None]
    stored, memory = sum(map(cost.stored_bytes, shapes)), ledger.accelerator.memory
    if memory is not None and stored > memory:
        name = ledger.accelerator.name
        said.append(MORE["room"].format(stored=f"{stored / 1e9:.1f}", memory=f"{memory / 1e9:.0f}", accelerator=name))
    return tuple(said)


def _itself(ledger: Ledger, round_: Round) -> bool:
    chosen = (round_.settings or {}).get("drafter", "model")
    return bool(round_.drafts) and (
        chosen == "target" or (chosen == "model" and ledger.trace.header.drafter == "target")
    )


def _ran_name(rounds: Sequence[Round], ran: Ran) -> str:
    """Who drafted, by name, whatever the pair's own drafter is."""
    kinds = {str((round_.settings or {}).get("drafter", "model")) for round_ in rounds if round_.drafts}
    names = {"ngram": COPIES, "target": ITSELF}
    return f"{ran.target} + {' and '.join(names.get(kind, ran.drafter) for kind in sorted(kinds))}"


def _priced_name(ledger: Ledger, rounds: Sequence[Round] | None = None) -> str:
    """The pair whose bytes are counted; what the rounds did not read is not named."""
    kinds = {(round_.settings or {}).get("drafter", "model") for round_ in rounds or () if round_.drafts}
    if ledger.drafter_shape is None or (kinds and kinds <= {"ngram", "target"}):
        return ledger.target_shape.name
    return f"{ledger.target_shape.name} + {ledger.drafter_shape.name}"


# --- on a board -------------------------------------------------------------------------------------------------------


def arithmetic(ledger: Ledger, rounds: Sequence[Round]) -> tuple[tuple[str, str], ...]:
    """How the numbers are made, as it is written on a board: what, and how."""
    device, plain = ledger.accelerator, cost.weight_bytes(ledger.target_shape, ledger.dtype, ledger.count)
    lines = [*_weights(ledger.target_shape, device, ledger)]
    rows = 1 + max((len(round_.drafts) for round_ in rounds), default=0)
    if ledger.drafter_shape is not None:
        small = cost.weight_bytes(ledger.drafter_shape, ledger.dtype, ledger.count)
        of, alone = _milliseconds(small / device.bandwidth, plain / device.bandwidth)
        lines.append(
            (
                f"{ledger.drafter_shape.name}, {_count_name(ledger)}",
                f"{_gigabytes(small)[0]} GB ÷ {_bandwidth(device)} = {of} ms; "
                f"{of} ÷ {alone} = {_ratio(small / plain)} = c",
            )
        )
    ridge = cost.ridge_rows(device, ledger.dtype)
    lines += [
        (
            "FLOP for every byte, weights only",
            "1 row: 2 FLOP ÷ 2 bytes = 1" + (f" · {rows} rows: {rows}" if rows > 1 else ""),
        ),
        (
            f"ridge of {device.name}, dense 16 bits",
            f"{device.rate(ledger.dtype) / 1e12:g} TFLOP/s ÷ {_bandwidth(device)} = {ridge:.0f} FLOP a byte",
        ),
        (
            "rows until arithmetic binds",
            f"{ridge:.0f} ÷ 1 = {ridge:.0f} rows; a read of {rows} is {100 * rows / ridge:.1f} % of that",
        ),
    ]
    return tuple(lines)


def _weights(shape: ModelShape, device: Accelerator, ledger: Ledger) -> list[tuple[str, str]]:
    """Bytes ÷ bandwidth = milliseconds, and tokens a second: by both counts where they differ."""
    stored, read = (cost.weight_bytes(shape, ledger.dtype, count) for count in ("stored", "read"))
    counts = {"as stored and as read": stored} if stored == read else {"as stored": stored, "as read": read}
    lines = []
    for name, size in counts.items():
        seconds = size / device.bandwidth
        mark = " (counted here)" if name == COUNTS[ledger.count] else ""
        (written,) = _milliseconds(seconds)
        rate = f"{1 / seconds:,.{0 if seconds < 1e-3 else 1 if seconds < 1e-1 else 2}f} tokens/s"
        how = f"{_gigabytes(size)[0]} GB ÷ {_bandwidth(device)} = {written} ms; 1000 ÷ {written} = {rate}"
        lines.append((f"{shape.name}, {name}{mark}", how))
    return lines


def _count_name(ledger: Ledger) -> str:
    shape = ledger.drafter_shape
    assert shape is not None
    same = cost.weight_bytes(shape, ledger.dtype, "stored") == cost.weight_bytes(shape, ledger.dtype, "read")
    return "as stored and as read" if same else COUNTS[ledger.count]


def _division(summary: Summary) -> tuple[tuple[str, str], ...]:
    """Tokens of a round ÷ price of a round."""
    if summary.price is None or summary.brought is None or summary.speed is None or not summary.gamma:
        return ()
    price, brought, expected = _apart(summary.price, summary.brought, summary.expected)
    parts = [f"here {brought} ÷ {price} = {summary.speed:.2f}"]
    if summary.expected_speed is not None:
        parts.append(f"expected {expected} ÷ {price} = {summary.expected_speed:.2f}")
    return (("tokens of a round ÷ its price", "; ".join(parts)),)


def _bandwidth(device: Accelerator) -> str:
    return f"{device.bandwidth / 1e12:g} TB/s"


def _gigabytes(*values: float) -> tuple[str, ...]:
    return tuple(_written(value / 1e9) for value in values)


def _milliseconds(*values: float) -> tuple[str, ...]:
    return tuple(f"{1000 * value:,.3f}" if value >= 1e-3 else f"{1000 * value:.4g}" for value in values)


def _written(value: float) -> str:
    """Two digits after the point, three that count where it is small."""
    return f"{value:,.2f}" if value >= 1 or not value else f"{value:.3g}"
