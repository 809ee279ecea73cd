"""The place: what each model wanted at one position, one row a token, all on one baseline.

Of each token, what both models give it is ``both`` = min(p, q); beyond it only the target (p − q) or only the drafter
(q − p). Over all rows, the one for "others" included, the three add up to alpha, TV and TV.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from specviz.figures import events, numbers
from specviz.figures.events import Event
from specviz.figures.sentences import rule_of
from specviz.figures.table import Table
from specviz.figures.text import Texts
from specviz.trace import Closing, Draft, Round, Row, Token, Trace

ROWS = 7
"""Tokens shown besides the row of others."""
ROUNDING = 10.0**-numbers.MOST_DIGITS
"""A sum over the whole vocabulary that is this close to 0 or 1 is meant to be it."""

TITLES = {
    "after": "After “{text}”: what {who} wanted",
    "first": "For the first token: what {who} wanted",
}
NOTES = {
    "waiting": "The drafter has spoken; the target has not been asked.",
    "alone": "No draft stands here: the target speaks alone.",
    "greedy": "Before temperature 0, drawn relative to each first choice. Only the boxed winners count.",
    "identical": "Identical: always kept, no gap to refill.",
    "disjoint": "Nothing in common: every draft dies here.",
    "unknown": "This engine does not report p and q.",
}
WORDS = {"draft": "draft", "target": "target’s pick", "plain": "written"}

Names = dict[int, tuple[str, str]]
"""Of a token: the fate whose sign it wears, and a word."""

FORMULAS = {
    "shared": "α = Σ min(p, q) = {alpha}\nTV = ½ Σ |p − q| = {tv}\nα + TV = 1",
    "alone": "Σ p = 1",
}


@dataclass(frozen=True, slots=True)
class Bar:
    """One row: ``p`` and ``q`` are None where they are not known (yet), the parts are in [0, 1].

    ``sign`` is the fate of a token that stood here, ``word`` what it was, ``written`` the numbers in words.
    """

    label: str
    p: float | None
    q: float | None
    both: float
    only_target: float
    only_drafter: float
    sign: str = ""
    word: str = ""
    written: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """The whole panel.

    ``mode``: "shared" (p and q), "waiting" (q only), "alone" (p only), "pale" (greedy: two bars a token, before
    temperature 0, winners marked) or "unknown". ``longest`` is the longest bar, for the scale; ``shared`` is alpha as
    written on the last row.
    """

    title: str
    mode: str
    note: str
    bars: tuple[Bar, ...]
    others: Bar | None
    together: Bar | None
    longest: float
    shared: str
    formula: str | None
    table: Table


def layout(trace: Trace, round_: Round, event: Event, texts: Texts, *, selected: int | None) -> Place:
    """The place of draft ``selected`` of ``round_`` (None: of the bonus or plain token) as known at ``event``."""
    draft = round_.drafts[selected] if selected is not None else None
    closing = round_.closing if events.closed(round_, event) else None
    row = draft.row if draft is not None else closing.row if closing is not None else None
    before = list(trace.text_ids[: round_.position - len(trace.header.prompt_ids)])
    before += [d.id for d in round_.drafts[: len(round_.drafts) if selected is None else selected]]
    who = "each model" if events.read(round_, event) else "the drafter"
    title = TITLES["after" if before else "first"].format(text=texts.tail(before) if before else "", who=who)
    if row is None or not row.tokens:
        return _empty(title, "unknown")
    here = closing if closing is not None and (selected is None or selected == round_.kept) else None
    standing = events.standing(round_, selected, event) if selected is not None else None
    if not events.read(round_, event):
        return _panel(title, "waiting", row, _names(draft, standing, None), texts)
    if row.rest is None or all(token.q is None for token in row.tokens):
        return _panel(title, "alone", row, _names(None, None, here), texts)
    mode = "pale" if rule_of(round_) == "greedy" and _has_logits(row) else "shared"
    return _panel(title, mode, row, _names(draft, standing, here), texts)


def _names(draft: Draft | None, standing: str | None, closing: Closing | None) -> Names:
    """What is known of the tokens that matter here: the draft, the target's own choice, the closing token."""
    names: Names = {}
    if draft is not None:
        names[draft.id] = (standing or "", WORDS["draft"])
        if standing in ("kept", "rejected") and draft.target_id not in (None, draft.id):
            names[draft.target_id] = ("", WORDS["target"])
    if closing is not None:
        sign = closing.kind or "plain"
        names[closing.id] = (sign, WORDS["plain"] if sign == "plain" else sign)
    return names


def _has_logits(row: Row) -> bool:
    return any(t.target_logit is not None for t in row.tokens) and any(t.drafter_logit is not None for t in row.tokens)


def _empty(title: str, note: str) -> Place:
    table = Table(title, ("token", "p", "q"), ())
    return Place(title, "unknown", NOTES[note], (), None, None, 1.0, "", None, table)


def _panel(title: str, mode: str, row: Row, names: Names, texts: Texts) -> Place:
    shown = _chosen_tokens(row, set(names), mode)
    bars = tuple(_bar(token, mode, row, texts, *names.get(token.id, ("", ""))) for token in shown)
    others = None if mode == "pale" else _others(row, shown, hidden=mode == "waiting")
    together = _together((*bars, *((others,) if others else ())), mode)
    parts = [bar.both + max(bar.only_target, bar.only_drafter) for bar in (*bars, *((others,) if others else ()))]
    alpha = together.both if together is not None else None
    return Place(
        title=title,
        mode=mode,
        note=_note(mode, row),
        bars=bars,
        others=others,
        together=together,
        longest=max(parts, default=1.0) or 1.0,
        shared=numbers.probability(alpha) if mode == "shared" else "",
        formula=_formula(mode, alpha),
        table=_table(title, bars, others, together, mode),
    )


def _chosen_tokens(row: Row, always: set[int], mode: str) -> list[Token]:
    """The tokens to show: those named and both winners always, the rest by what either model gives them."""

    def given(token: Token) -> float:
        if mode == "pale":
            return max(
                _relative(token.target_logit, row, "target_logit"), _relative(token.drafter_logit, row, "drafter_logit")
            )
        return (token.q or 0.0) if mode == "waiting" else max(token.p or 0.0, token.q or 0.0)

    ranked = sorted(row.tokens, key=given, reverse=True)
    winners = {max(row.tokens, key=lambda t: t.q or 0.0).id}
    if mode != "waiting":
        winners.add(max(row.tokens, key=lambda t: t.p or 0.0).id)
    must = always | winners
    free = max(ROWS - sum(token.id in must for token in ranked), 0)
    chosen = [token for token in ranked if token.id in must]
    chosen += [token for token in ranked if token.id not in must and given(token) > 0][:free]
    return sorted(chosen, key=given, reverse=True)


def _relative(logit: float | None, row: Row, which: str) -> float:
    """exp(logit − largest logit): the probability before temperature 0, relative to the first choice's."""
    best = max((v for v in (getattr(token, which) for token in row.tokens) if v is not None), default=0.0)
    return math.exp(logit - best) if logit is not None else 0.0


def _bar(token: Token, mode: str, row: Row, texts: Texts, sign: str, word: str) -> Bar:
    label = texts(token.id)
    if mode == "pale":
        target, drafter = (_relative(getattr(token, name), row, name) for name in ("target_logit", "drafter_logit"))
        written = f"{_logit(token.target_logit)} · {_logit(token.drafter_logit)}"
        return Bar(label, token.p, token.q, 0.0, target, drafter, sign, word, written)
    p, q = (None if mode == "waiting" else token.p), (None if mode == "alone" else token.q)
    return _split(label, p, q, min(p or 0.0, q or 0.0), sign, word)


def _logit(value: float | None) -> str:
    return "never" if value is None else f"{value:.1f}".replace("-", "−")


def _split(label: str, p: float | None, q: float | None, both: float, sign: str = "", word: str = "") -> Bar:
    if p is not None and q is not None:
        shown_p, shown_q = numbers.told_apart(p, q)
        written = f"p {shown_p}  q {shown_q}"
    else:
        written = f"p {numbers.probability(p)}" if p is not None else f"q {numbers.probability(q)}"
    return Bar(label, p, q, both, max((p or 0.0) - both, 0.0), max((q or 0.0) - both, 0.0), sign, word, written)


def _others(row: Row, shown: Sequence[Token], *, hidden: bool) -> Bar | None:
    """Everything not shown, with its true overlap: listed tokens that found no row, and the rest of the vocabulary."""
    rest = row.rest
    left = [token for token in row.tokens if token not in shown]
    if rest is None or rest.p is None:
        return None
    count = (rest.count or 0) + len(left)
    p = None if hidden else rest.p + sum(token.p or 0.0 for token in left)
    q = None if rest.q is None else rest.q + sum(token.q or 0.0 for token in left)
    both = 0.0
    if p is not None and q is not None:
        both = (rest.overlap or 0.0) + sum(min(token.p or 0.0, token.q or 0.0) for token in left)
    return _split(f"{count:,} others", p, q, both)


def _together(bars: Sequence[Bar], mode: str) -> Bar | None:
    if mode not in ("shared", "alone"):
        return None
    both, only_target, only_drafter = (
        _whole(math.fsum(getattr(bar, part) for bar in bars)) for part in ("both", "only_target", "only_drafter")
    )
    if mode == "alone":
        return Bar("all together", only_target, None, 0.0, only_target, 0.0, written="p 1")
    written = (
        f"{numbers.probability(only_target)} only the target, {numbers.probability(only_drafter)} only the drafter"
    )
    p, q = _whole(both + only_target), _whole(both + only_drafter)
    return Bar("all together", p, q, both, only_target, only_drafter, written=written)


def _whole(total: float) -> float:
    """The sum of many terms, without its rounding error where it can only be 0 or 1."""
    near = round(total)
    return float(near) if abs(total - near) < ROUNDING else total


def _note(mode: str, row: Row) -> str:
    if mode == "shared":
        return NOTES["identical"] if row.tv == 0 else NOTES["disjoint"] if row.tv == 1 else ""
    return NOTES["greedy"] if mode == "pale" else NOTES[mode]


def _formula(mode: str, alpha: float | None) -> str | None:
    if mode not in FORMULAS or alpha is None:
        return None
    shared, gap = numbers.told_apart(alpha, 1 - alpha) if alpha != 0.5 else ("0.50", "0.50")
    return FORMULAS[mode].format(alpha=shared, tv=gap)


def _table(title: str, bars: Sequence[Bar], others: Bar | None, together: Bar | None, mode: str) -> Table:
    if mode == "pale":
        rows = tuple((b.label, *b.written.split(" · "), b.word) for b in bars)
        return Table(title, ("token", "target’s logit", "drafter’s logit", ""), rows)
    every = [*bars, *(bar for bar in (others, together) if bar is not None)]
    rows = tuple(
        (
            bar.label,
            numbers.probability(bar.p),
            numbers.probability(bar.q),
            # Before the target has read, what the two share is not known.
            *(
                numbers.probability(None if mode == "waiting" else x)
                for x in (bar.both, bar.only_target, bar.only_drafter)
            ),
            bar.word,
        )
        for bar in every
    )
    return Table(title, ("token", "p", "q", "both", "only the target", "only the drafter", ""), rows)
