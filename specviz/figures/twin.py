"""The twin: the target alone with the same seed, and whether it wrote the same text."""

from __future__ import annotations

import math

from specviz.figures.sentences import Spans, fill
from specviz.figures.text import Texts
from specviz.trace import Row, Trace, tally

SAME_TEXT = ("greedy", "gumbel_coupling", "token_match")
"""Rules under which the text itself survives the drafter; under the others only its law does."""

NEAR_TIE = 1e-2
"""Lead of one token over another, in logits (under Gumbel coupling: in log p + g), below which rounding may decide."""

TEMPLATES = {
    "same": "[Same {tokens} tokens], {reads} instead of {alone}.",
    "law": "[Another text, the same law]: {reads} for {counted}; the target alone needs {alone}.",
    "lucky": "[Same {tokens} tokens, by luck]: only the law is promised. {reads} instead of {alone}.",
    "near tie": "[Same first {agree} tokens, then a near tie]: {top}. Rounding decides, not the rule.",
    "report": "[The texts part after {agree} tokens]: {top}. They should not; please report it.",
}


def first_difference(trace: Trace, twin: Trace) -> int | None:
    """Index of the first token in which the two texts differ; None when the shorter begins the longer."""
    return next((i for i, (a, b) in enumerate(zip(trace.text_ids, twin.text_ids, strict=False)) if a != b), None)


def compare(trace: Trace, twin: Trace, texts: Texts) -> tuple[bool, Spans]:
    """Whether twin and run agree as their rule promises, and the sentence that says so."""
    ours = trace.rounds[-1].settings or {} if trace.rounds else {}
    # At temperature 0 nothing is left to chance, whatever the rule.
    promised = ours.get("rule") in SAME_TEXT or ours.get("temperature") == 0
    tokens = min(len(trace.text_ids), len(twin.text_ids))
    apart = first_difference(trace, twin)
    fields: dict[str, object] = {
        "tokens": tokens,
        "counted": _counted(tokens, "token"),
        "agree": apart,
        "reads": _counted(tally(trace.rounds).target_passes, "read"),
        "alone": tokens,
        "top": "",
    }
    if apart is None:
        return True, _say("same" if promised else "lucky", fields)
    if not promised:
        return True, _say("law", fields)
    row = _row_at(twin, apart)
    lead, fields["top"] = _top_two(row, texts)
    if ours.get("temperature") != 0:
        lead = _race(row, twin.text_ids[apart], trace.text_ids[apart])
    near = lead is not None and lead < NEAR_TIE
    return near, _say("near tie" if near else "report", fields)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _say(which: str, fields: dict[str, object]) -> Spans:
    return fill(TEMPLATES[which], **fields)


def _row_at(twin: Trace, index: int) -> Row | None:
    position = len(twin.header.prompt_ids) + index
    rows = (row for round_ in twin.rounds for row in round_.rows())
    return next((row for row in rows if row.position == position), None)


def _race(row: Row | None, winner: int, other: int) -> float | None:
    """By how much log p + g of one token leads that of another; None where the rule runs no race or a token is not
    listed."""
    scores = []
    for token in (row.token(winner), row.token(other)) if row is not None else ():
        if token is None or token.noise is None or not token.p:
            return None
        scores.append(math.log(token.p) + token.noise)
    return abs(scores[0] - scores[1]) if scores else None


def _top_two(row: Row | None, texts: Texts) -> tuple[float | None, str]:
    top = row.target_top2 if row is not None else None
    if not top or len(top) < 2:
        return None, "the logits were not recorded"
    (first, high), (second, low) = top[:2]
    if high is None or low is None:
        return None, "one of the logits is infinite"
    return high - low, f"{texts(first)} {high:.4f} against {texts(second)} {low:.4f} in logits"
