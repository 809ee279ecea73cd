"""The coin: one line a draft, from its chance to its fate.

Under speculative sampling and block verification each line is the draft's own q-lane stretched to 1: what stays, what
goes, and where the coin fell. Under the other rules the target chooses for itself and the line sets the two choices
side by side.
"""

from __future__ import annotations

from dataclasses import dataclass

from specviz.figures import events, numbers
from specviz.figures.events import Event, Standing
from specviz.figures.palette import FATES
from specviz.figures.sentences import Spans, fill, rule_of
from specviz.figures.table import Table
from specviz.figures.text import Texts
from specviz.trace import Draft, Round

WORDS = {
    "waiting": "waiting for the read",
    "sure": "stays for sure, no coin",
    "stays": "stays {odds}",
    "coin": "stays {odds}; coin {coin}",
    "never": "stays 0 in 100, no coin",
    "unjudged": "written to follow {gone}",
    "over": "behind the end of the text",
    "missed": "coin {coin} missed {chance}",
    "lifted": "stays 0 in 100 alone, carried by place {carrier}",
    "carried": "coin {coin} missed {chance}, carried by place {carrier}",
    "agree": "agree {odds}",
    "first": "first choice of both",
    "differs": "differs",
    "same": "same",
    "gaps": "drawn from the gaps: {gap} of {tv}",
    "bonus": "drawn from p after all drafts: {p}",
    "plain": "drawn from p: {p}",
    "own": "the target’s own choice",
}
NOTE = "Before a draft was drawn, one had a chance of [{before}] here. [This] draft, {draft}, had [{this}]."
HINTS = {
    "drafted": "Drawn by the drafter; the target has not read them.",
    "greedy": "Each model’s first choice. Nothing is left to chance.",
    "block": "All coins count together: the last one inside its bar carries every draft before it.",
    "closing": "No draft was judged here: the read gives one token more.",
    "unknown": "",
}
FORMULAS = {
    "coin": "stays with min(1, p/q) = min(1, {p}/{q}) = {accept}",
    "greedy": "stays where the draft = argmax p",
    "gumbel_coupling": "both take argmax(log probability + g), with the same g",
    "token_match": "stays with p(draft) = {p}",
    "block": "h = Σ max(w·p − q, 0) / (Σ max(w·p − q, 0) + 1 − w); kept = the last place whose coin < h",
}


@dataclass(frozen=True, slots=True)
class Line:
    """One draft. ``stays`` and ``coin`` are in [0, 1]; ``other`` is the token that the target chose itself."""

    place: int
    draft: str
    standing: Standing
    current: bool
    words: str
    stays: float | None = None
    coin: float | None = None
    other: str | None = None


@dataclass(frozen=True, slots=True)
class Close:
    """The closing token's line."""

    token: str
    kind: str
    words: str
    current: bool


@dataclass(frozen=True, slots=True)
class Coin:
    """The whole panel. ``chosen`` says that the target chooses for itself instead of throwing coins."""

    title: str
    chosen: bool
    note: Spans
    lines: tuple[Line, ...]
    closing: Close | None
    formula: str | None
    table: Table


def layout(round_: Round, event: Event, texts: Texts, *, selected: int | None = None) -> Coin:
    """The panel for ``round_`` as known at ``event``; ``selected`` is the place that the note is about."""
    rule = rule_of(round_)
    known = events.drafted(round_, event)
    lines = tuple(_line(round_, place, event, texts, rule, selected) for place in range(known))
    closed = event.round > round_.index or event.kind == "closing"
    closing = _close(round_, texts, event) if closed and round_.closing is not None else None
    focus = (
        round_.drafts[selected] if selected is not None and selected < known and events.read(round_, event) else None
    )
    return Coin(
        title=f"{'The choice' if _chosen(rule) else 'The coin'} · round {round_.index + 1}",
        chosen=_chosen(rule),
        note=_note(focus, texts, rule) if focus is not None else ((_hint(round_, event, rule), ""),),
        lines=lines,
        closing=closing,
        formula=_formula(focus, rule) if focus is not None else None,
        table=_table(round_, lines, closing, event),
    )


def _chosen(rule: str) -> bool:
    return rule in ("greedy", "gumbel_coupling", "token_match")


def _line(round_: Round, place: int, event: Event, texts: Texts, rule: str, selected: int | None) -> Line:
    draft = round_.drafts[place]
    standing = events.standing(round_, place, event)
    judged = standing in ("kept", "rejected")
    shown = events.read(round_, event)
    # Block verification throws every coin, those of drafts that are never judged too.
    thrown = standing == "unjudged" and draft.coin is not None
    return Line(
        place=place + 1,
        draft=texts(draft.id),
        standing=standing,
        current=place == selected,
        words=_words(round_, place, standing, shown, texts, rule),
        stays=draft.accept_prob if shown and (standing != "unjudged" or thrown) and not _chosen(rule) else None,
        coin=draft.coin if (judged or thrown) and _needs_coin(draft) else None,
        other=texts(draft.target_id) if judged and draft.target_id is not None else None,
    )


def _needs_coin(draft: Draft) -> bool:
    return draft.accept_prob is None or 0 < draft.accept_prob < 1


def _words(round_: Round, place: int, standing: Standing, shown: bool, texts: Texts, rule: str) -> str:
    draft = round_.drafts[place]
    if not shown:
        return WORDS["waiting"]
    if standing == "unjudged" and draft.coin is not None and draft.accept_prob is not None:
        if draft.accept_prob == 0:
            return WORDS["never"]
        chance, coin = numbers.told_apart(draft.accept_prob, draft.coin)
        return WORDS["missed"].format(coin=coin, chance=chance)
    if standing == "unjudged":
        over = round_.closing is None
        return WORDS["over"] if over else WORDS["unjudged"].format(gone=texts(round_.drafts[round_.kept].id))
    if draft.accept_prob is None:
        return ""
    if _chosen(rule):
        if rule == "greedy":
            return "" if standing == "waiting" else WORDS["same" if standing == "kept" else "differs"]
        return WORDS["agree"].format(odds=numbers.odds(draft.accept_prob))
    if not _needs_coin(draft):
        if standing == "kept" and draft.accept_prob == 0:
            return WORDS["lifted"].format(carrier=round_.kept)
        return WORDS["sure" if draft.accept_prob >= 1 else "never"]
    if standing == "waiting" or draft.coin is None:
        return WORDS["stays"].format(odds=numbers.odds(draft.accept_prob))
    chance, coin = numbers.told_apart(draft.accept_prob, draft.coin)
    if standing == "kept" and draft.passed is False:
        return WORDS["carried"].format(coin=coin, chance=chance, carrier=round_.kept)
    return WORDS["coin"].format(odds=numbers.odds(draft.accept_prob, beside=draft.coin), coin=coin)


def _close(round_: Round, texts: Texts, event: Event) -> Close | None:
    closing = round_.closing
    if closing is None:
        return None
    rule, kind = rule_of(round_), closing.kind or "plain"
    token = closing.row.token(closing.id) if closing.row is not None else None
    if _chosen(rule):
        words = WORDS["own"]
    elif kind == "correction":
        row = round_.drafts[round_.kept].row
        token = row.token(closing.id) if row is not None else None
        known = rule == "coin" and row is not None and row.tv and token is not None
        gap = (token.p or 0.0) - (token.q or 0.0) if known and token is not None else None
        words = (
            WORDS["gaps"].format(gap=numbers.probability(gap), tv=numbers.probability(row.tv))
            if gap is not None and row is not None
            else ""
        )
    else:
        words = WORDS[kind].format(p=numbers.probability(token.p if token is not None else None))
    current = event.round == round_.index and event.kind == "closing"
    return Close(token=texts(closing.id), kind=kind, words=words, current=current)


def _note(draft: Draft, texts: Texts, rule: str) -> Spans:
    """The two chances that are easily confused: of a draft before it was drawn, and of this one."""
    before = draft.row.expected_accept if draft.row is not None else None
    if before is None or draft.accept_prob is None or rule == "greedy":
        return ((HINTS.get(rule, ""), ""),)
    first, second = numbers.told_apart(before, draft.accept_prob)
    return fill(NOTE, before=first, this=second, draft=texts(draft.id))


def _hint(round_: Round, event: Event, rule: str) -> str:
    """What to say where no draft is looked at."""
    if not events.read(round_, event):
        return HINTS["drafted"]
    return HINTS.get(rule, HINTS["closing"])


def _formula(draft: Draft, rule: str) -> str | None:
    if rule not in FORMULAS or draft.p is None or draft.q is None:
        return None
    p, q = numbers.told_apart(draft.p, draft.q)
    return FORMULAS[rule].format(p=p, q=q, accept=numbers.probability(draft.accept_prob))


def _table(round_: Round, lines: tuple[Line, ...], closing: Close | None, event: Event) -> Table:
    shown = events.read(round_, event)
    rows = [
        (
            str(line.place),
            line.draft,
            numbers.probability(draft.p) if shown else "",
            numbers.probability(draft.q),
            line.words,
            FATES[line.standing].word,
        )
        for line, draft in zip(lines, round_.drafts, strict=False)
    ]
    if closing is not None:
        rows.append(("", closing.token, "", "", closing.words, FATES[closing.kind].word))
    return Table(f"Round {round_.index + 1}", ("place", "token", "p", "q", "chance", "fate"), tuple(rows))
