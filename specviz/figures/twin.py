"""The twin: the target alone with the same seed, and whether it wrote the same text."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from specviz.figures.sentences import Spans, fill
from specviz.figures.table import Table
from specviz.figures.text import Reader, Texts, token, visible
from specviz.trace import Round, Row, Trace, tally

SAME_TEXT = ("greedy", "gumbel_coupling", "token_match")
"""Rules under which the text itself survives the drafter; under the others only its chances do."""

NEAR_TIE = 1e-2
"""Lead of one token over another, in logits (under Gumbel coupling: in log p + g), below which rounding may decide."""
STEPS = {"bfloat16": 2.0**-8, "float16": 2.0**-11}
"""Rounding of a coarse type, as a share of the number: four such steps of the logit may decide as well."""
SAME_CHANCE = 1e-3
"""Share of a probability, and mass in a sum of probabilities, that rounding may move."""

TEMPLATES = {
    "same": "[Same {tokens}], {reads} instead of {alone}.",
    "chances": "[Another text, dealt from the same chances]: {reads} for {tokens}; the target alone needs {alone}.",
    "lucky": "[Same {tokens}, by luck]: only the chances are promised. {reads} instead of {alone}.",
    "near tie": "[Same first {agree}, then a near tie]: {why}. Rounding decides, not the rule.",
    "report": "[The texts part after {agree}]: {why}. They should not; please report it.",
}
DRAWN = "the target’s own draw fell on {ours} with the drafter and on {theirs} alone"
AT_THE_LINE = "; it lies on the line between the two"
RACE = "; in the race one leads the other by {lead:.2g}"
OURS, THEIRS = "with the drafter", "the target alone"

Verdict = Literal["same", "chances", "lucky", "near tie", "report"]


@dataclass(frozen=True, slots=True)
class Twin:
    """Both texts, decoded as one stream of bytes each: ``common`` is what they begin with, ``ours`` and ``theirs`` go
    on from the first token that differs, which is set strong (both empty where none does). ``unfinished`` is whether
    the run has not come to the text's end.

    ``agrees`` is whether run and twin keep what their rule promises. The table holds both records' two largest logits
    at a difference that the rule does not allow; no rows where there is none.
    """

    agrees: bool
    verdict: Verdict
    sentence: Spans
    common: str
    ours: Spans
    theirs: Spans
    unfinished: bool
    table: Table


def layout(trace: Trace, twin: Trace, texts: Texts) -> Twin:
    """Compare a run with the target alone, as far as the run has come; ``texts`` knows the tokens of both."""
    ours, theirs = trace.text_ids, twin.text_ids[: len(trace.text_ids)]
    apart = first_difference(trace, twin)
    settings = (trace.rounds[-1].settings or {}) if trace.rounds else {}
    # At temperature 0 nothing is left to chance, whatever the rule.
    promised = settings.get("rule") in SAME_TEXT or settings.get("temperature") == 0
    verdict: Verdict = "same" if promised else "lucky"
    why = ""
    if apart is not None and not promised:
        verdict = "chances"
    elif apart is not None:
        near, why = _difference(trace, twin, apart, texts)
        verdict = "near tie" if near else "report"
    tokens = min(len(ours), len(theirs))
    sentence = fill(
        TEMPLATES[verdict],
        tokens=_counted(tokens, "token"),
        agree=_counted(apart or 0, "token"),
        reads=_counted(tally(trace.rounds).target_passes, "read"),
        alone=tokens,
        why=why,
    )
    both = side_by_side(ours, theirs, texts)
    return Twin(
        agrees=verdict != "report",
        verdict=verdict,
        sentence=sentence,
        common=both.common,
        ours=both.ours,
        theirs=both.theirs,
        unfinished=trace.finish != "stop",
        table=_table(trace, twin, apart if promised else None, texts),
    )


def compare(trace: Trace, twin: Trace, texts: Texts) -> tuple[bool, Spans]:
    """Whether twin and run agree as their rule promises, and the sentence that says so."""
    both = layout(trace, twin, texts)
    return both.agrees, both.sentence


def first_difference(trace: Trace, twin: Trace) -> int | None:
    """Index of the first token in which the two texts differ; None when the shorter begins the longer."""
    return _parting(trace.text_ids, twin.text_ids)


def _parting(ours: Sequence[int], theirs: Sequence[int]) -> int | None:
    return next((i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), None)


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


# --- the texts --------------------------------------------------------------------------------------------------------


class SideBySide(NamedTuple):
    """Two texts: what they begin with, and how each goes on, as in :class:`Twin`."""

    common: str
    ours: Spans
    theirs: Spans


def side_by_side(ours: Sequence[int], theirs: Sequence[int], texts: Texts) -> SideBySide:
    """Where two texts part. Of two that do not, as much as both have is common."""
    apart = _parting(ours, theirs)
    common, begun = _read(map(texts.raw, ours[: min(len(ours), len(theirs)) if apart is None else apart]))
    if apart is None:
        return SideBySide(common + (token(begun) if begun else ""), (), ())
    return SideBySide(common, _parted(ours[apart:], begun, texts), _parted(theirs[apart:], begun, texts))


def _read(raw: Sequence[bytes] | map[bytes], pending: bytes = b"") -> tuple[str, bytes]:
    """What these bytes say after ``pending``, and the bytes at their end that only begin a character."""
    data = pending + b"".join(raw)
    reader = Reader()
    reader.piece(data)
    begun = reader.pending
    text = data[: len(data) - len(begun)].decode("utf-8", "surrogateescape")
    # Between words a space stays a space, so that the text can be read and can wrap.
    return " ".join(map(visible, text.split(" "))), begun


def _parted(ids: Sequence[int], begun: bytes, texts: Texts) -> Spans:
    """A text from the first token that differs, which is written as a token of its own, with the bytes before it that
    only began a character."""
    raw = begun + texts.raw(ids[0])
    reader = Reader()
    reader.piece(raw)
    rest, unfinished = _read([texts.raw(token_id) for token_id in ids[1:]], reader.pending)
    rest += token(unfinished) if unfinished and len(ids) > 1 else ""
    return ((token(raw), "strong token"), *(((rest, ""),) if rest else ()))


# --- the difference ---------------------------------------------------------------------------------------------------


def _difference(trace: Trace, twin: Trace, index: int, texts: Texts) -> tuple[bool, str]:
    """Whether rounding may have decided where the texts part, and what the records say about it."""
    settings = trace.rounds[-1].settings or {}
    ours, theirs = trace.text_ids[index], twin.text_ids[index]
    rows = _row_at(trace, index), _row_at(twin, index)
    drawn = settings.get("temperature") != 0
    if drawn and settings.get("rule") == "token_match":
        near = _on_the_line(*rows, ours, theirs, _draws(trace, twin, index))
        why = DRAWN.format(ours=texts(ours), theirs=texts(theirs)) + (AT_THE_LINE if near else "")
        return near, why
    score = _race if drawn and settings.get("rule") == "gumbel_coupling" else _logit
    leads = [_lead(rows[0], ours, theirs, score), _lead(rows[1], theirs, ours, score)]
    known = [lead for lead in leads if lead is not None]
    # Each record must put its own token no further ahead of the other one than rounding can carry it.
    near = bool(known) and max(map(abs, known)) < _rounding(rows, trace.header.dtype)
    why = " · ".join(f"{name} {_top_two(row, texts)}" for name, row in zip((OURS, THEIRS), rows, strict=True))
    return near, why + (RACE.format(lead=max(map(abs, known))) if score is _race and known else "")


def _row_at(trace: Trace, index: int) -> Row | None:
    """The row of the text's token ``index``, in the round that wrote it."""
    for round_ in trace.rounds:
        if index < len(round_.emitted):
            return _row_in(round_, index)
        index -= len(round_.emitted)
    return None


def _row_in(round_: Round, place: int) -> Row | None:
    if place < len(round_.drafts):
        return round_.drafts[place].row
    return round_.closing.row if round_.closing is not None else None


def _logit(row: Row, token_id: int) -> float | None:
    listed = row.token(token_id)
    if listed is not None and listed.target_logit is not None:
        return listed.target_logit
    return dict(row.target_top2 or ()).get(token_id)


def _race(row: Row, token_id: int) -> float | None:
    listed = row.token(token_id)
    return None if listed is None or listed.noise is None or not listed.p else math.log(listed.p) + listed.noise


def _lead(row: Row | None, winner: int, other: int, score: Callable[[Row, int], float | None]) -> float | None:
    """By how much the winner's score leads the other's; None where the record does not list both."""
    if row is None:
        return None
    high, low = score(row, winner), score(row, other)
    return None if high is None or low is None else high - low


def _rounding(rows: tuple[Row | None, Row | None], dtype: str | None) -> float:
    largest = max(
        (abs(logit) for row in rows if row is not None for _, logit in row.target_top2 or () if logit is not None),
        default=0.0,
    )
    return max(NEAR_TIE, 4 * STEPS.get(dtype or "", 0.0) * largest)


def _draws(trace: Trace, twin: Trace, index: int) -> list[float]:
    """The uniforms with which the two records drew this token, where they say."""
    found = []
    for one in (trace, twin):
        left = index
        for round_ in one.rounds:
            if left < len(round_.emitted):
                closes = round_.closing is not None and left == len(round_.emitted) - 1
                if closes and round_.closing is not None and round_.closing.draw is not None:
                    found.append(round_.closing.draw)
                break
            left -= len(round_.emitted)
    return found


def _on_the_line(ours: Row | None, theirs: Row | None, one: int, other: int, draws: list[float]) -> bool:
    """Whether one draw may have fallen on two tokens by rounding alone.

    A draw runs through the ids in order and takes the one in whose part of the law it lies. So the two laws must agree
    where both list a token, nothing of weight may lie between the two ids, and the draw must lie on the line behind the
    lower one, as far as the mass that a record does not list leaves it open.
    """
    if ours is None or theirs is None or not draws or max(draws) != min(draws):
        return False
    mine = {listed.id: listed.p for listed in ours.tokens if listed.p is not None}
    alone = {listed.id: listed.p for listed in theirs.tokens if listed.p is not None}
    if not all(math.isclose(p, alone.get(i, p), rel_tol=SAME_CHANCE, abs_tol=1e-9) for i, p in mine.items()):
        return False
    low, high = sorted((one, other))
    laws = mine | alone
    if not {low, high} <= set(laws) or sum(p for i, p in laws.items() if low < i < high) > SAME_CHANCE:
        return False
    before = sum(p for i, p in laws.items() if i <= low)
    return before - SAME_CHANCE <= draws[0] <= before + max(0.0, 1.0 - sum(laws.values())) + SAME_CHANCE


def _top_two(row: Row | None, texts: Texts) -> str:
    top = row.target_top2 if row is not None else None
    if not top or len(top) < 2:
        return "the logits were not recorded"
    (first, high), (second, low) = top[:2]
    if high is None or low is None:
        return "one of the logits is infinite"
    return f"{texts(first)} {high:.4f} against {texts(second)} {low:.4f} in logits"


def _table(trace: Trace, twin: Trace, apart: int | None, texts: Texts) -> Table:
    rows: list[tuple[str, ...]] = []
    if apart is not None:
        for name, one in ((OURS, trace), (THEIRS, twin)):
            row = _row_at(one, apart)
            top = [
                (texts(i), "−∞" if logit is None else f"{logit:.4f}") for i, logit in (row and row.target_top2) or ()
            ]
            top = (top + [("not recorded", "–")] * 2)[:2]
            rows.append((name, texts(one.text_ids[apart]), *top[0], *top[1]))
    columns = ("text", "its token", "first", "logit", "second", "logit")
    return Table("Where the texts part: the target’s two largest logits", columns, tuple(rows))
