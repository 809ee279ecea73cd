"""Every round in words: one sentence each, and the same as a table.

All wording is in :data:`TEMPLATES`; see :mod:`specviz.figures.sentences` for its marks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from specviz.figures import numbers
from specviz.figures.palette import FATES
from specviz.figures.sentences import Spans, fill, rule_of
from specviz.figures.table import Table
from specviz.figures.text import Texts
from specviz.trace import Draft, Round

NAMED = 3
"""How many drafts that were never judged a sentence names; the table names all."""

TEMPLATES = {
    "round": "[Round {number}]: ",
    "plain": "[{closing}]: one read, one token; no drafts",
    "plain.last": "[{closing}]: one read, one token; only one was left to write",
    "plain.unsure": "[{closing}]: one read, one token; the drafter was not sure enough to draft",
    "plain.nothing": "nothing to copy this round; [{closing}]: one read, one token",
    "goes": "[{draft} goes]",
    "correction": "[{closing} replaces it]",
    "bonus": "the same read gives [{closing}] as a bonus",
    "stop": "the text ends there",
    "length": "the length is reached",
    "context": "the models’ context is full",
    # Why a draft goes, by the way its round was judged.
    "why.coin": "it stays {times}; the coin fell at {coin}",
    "why.never": "the target gives it no chance",
    "why.greedy": "the target’s first choice is {target}",
    "why.gumbel_coupling": "with that noise the target picks {target}",
    "why.token_match": "the target’s own draw is {target}",
    "why.block": "no coin from place {place} on fell inside its bar",
}
STAY = (" stays", " stay")
UNJUDGED = (" was never judged", " were never judged")

SETTINGS = {
    "rule": "rule",
    "drafter": "drafter",
    "gamma": "gamma",
    "temperature": "temperature",
    "drafter_temperature": "drafter temperature",
    "top_k": "top-k",
    "top_p": "top-p",
    "ngram": "longest match",
    "stop_below": "drafter’s largest chance at least",
    "stop_above": "drafter’s entropy at most",
}
"""The settings that shape a round, with the word for each. The seed only shuffles."""

COLUMNS = ("round", "drafts", "closing token", "kept of drafted", "reads", "tokens so far")
CAPTION = "Every round so far: ✓ kept, ✗ rejected, – never judged, ↺ correction, ★ bonus"
NOTHING = "No round is over yet: the first sentence comes with the first closing token."


@dataclass(frozen=True, slots=True)
class Rounds:
    """One sentence a round, and the table; ``note`` says why there is none."""

    sentences: tuple[Spans, ...]
    table: Table
    note: str


def layout(rounds: Sequence[Round], texts: Texts) -> Rounds:
    """The given rounds, which are over, in order; the first one begins the text."""
    changing = varying(rounds)
    columns = (*COLUMNS, *(("settings",) if changing else ()))
    rows, written, said = [], 0, ""
    for round_ in rounds:
        written += len(round_.emitted)
        now = ", ".join(f"{SETTINGS[name]} {_value(_settings(round_).get(name))}" for name in changing)
        rows.append((*_cells(round_, texts, written), *((now if now != said else "as before",) if changing else ())))
        said = now
    return Rounds(
        sentences=tuple(sentence(round_, texts) for round_ in rounds),
        table=Table(CAPTION, columns, tuple(rows)),
        note="" if rounds else NOTHING,
    )


def sentence(round_: Round, texts: Texts) -> Spans:
    """What happened in the round, from its first draft to its closing token."""
    parts = _plain(round_, texts) if not round_.drafts else _judged(round_, texts)
    if round_.finish in TEMPLATES and not (round_.finish == "length" and not round_.drafts):
        parts.append(fill(TEMPLATES[round_.finish]))
    joined: list[tuple[str, str]] = []
    for index, part in enumerate(parts):
        joined += [("; ", "")] if index else []
        joined += part
    return (*fill(TEMPLATES["round"], number=round_.index + 1), *joined, (".", ""))


def varying(rounds: Iterable[Round]) -> tuple[str, ...]:
    """The names of the settings that are not the same in all rounds; a drafter that follows the target's temperature
    is not worth a name of its own."""
    seen = [_settings(round_) for round_ in rounds]
    followed = all(one.get("drafter_temperature") == one.get("temperature") for one in seen)
    names = [name for name in SETTINGS if not (followed and name == "drafter_temperature")]
    return tuple(name for name in names if any(a.get(name) != b.get(name) for a, b in pairwise(seen)))


def changes(rounds: Iterable[Round]) -> str:
    """ "gamma 4, then 8; temperature 1, then 0.7": every setting that changed on the way; "" where none did."""
    rounds = list(rounds)
    told = []
    for name in varying(rounds):
        values = [_value(_settings(round_).get(name)) for round_ in rounds]
        runs = [value for index, value in enumerate(values) if not index or value != values[index - 1]]
        told.append(f"{SETTINGS[name]} {', then '.join(runs)}")
    return "; ".join(told)


def _plain(round_: Round, texts: Texts) -> list[Spans]:
    settings, which = _settings(round_), "plain"
    if round_.gave_up:
        which = "plain.unsure"
    elif settings.get("gamma") and round_.finish in ("length", "context"):
        which = "plain.last"
    elif settings.get("gamma") and settings.get("drafter") == "ngram":
        which = "plain.nothing"
    closing = texts(round_.closing.id) if round_.closing is not None else "–"
    return [fill(TEMPLATES[which], closing=closing)]


def _judged(round_: Round, texts: Texts) -> list[Spans]:
    kept = [texts(draft.id) for draft in round_.drafts if draft.fate == "kept"]
    gone = next((draft for draft in round_.drafts if draft.fate == "rejected"), None)
    left = [texts(draft.id) for draft in round_.drafts if draft.fate not in ("kept", "rejected")]
    parts = [_listed(kept, STAY)] if kept else []
    if gone is not None:
        parts.append(fill(TEMPLATES["goes"], draft=texts(gone.id)) + _why(round_, gone, texts))
    if round_.closing is not None:
        which = "correction" if gone is not None else "bonus"
        parts.append(fill(TEMPLATES[which], closing=texts(round_.closing.id)))
    if left:
        more = len(left) - NAMED if len(left) > NAMED + 1 else 0
        parts.append(_listed(left[: len(left) - more], UNJUDGED, more))
    return parts


def _listed(tokens: Sequence[str], verbs: tuple[str, str], more: int = 0) -> Spans:
    """ "␣a, ␣b and ␣c stay", "␣a, ␣b, ␣c and 9 more were never judged"."""
    words = [(token, "token") for token in tokens] + ([(f"{more} more", "")] if more else [])
    spans = [words[0]]
    for index, word in enumerate(words[1:], start=2):
        spans += [(" and " if index == len(words) else ", ", ""), word]
    return (*spans, (verbs[len(words) > 1], ""))


def _why(round_: Round, gone: Draft, texts: Texts) -> Spans:
    rule = rule_of(round_)
    if rule == "block":
        spans = fill(TEMPLATES["why.block"], place=round_.kept + 1)
    elif rule == "coin" and gone.accept_prob is not None and gone.coin is not None:
        if gone.accept_prob <= 0:
            spans = fill(TEMPLATES["why.never"])
        else:
            coin = numbers.told_apart(gone.accept_prob, gone.coin)[1]
            spans = fill(TEMPLATES["why.coin"], times=numbers.times(gone.accept_prob, beside=gone.coin), coin=coin)
    elif f"why.{rule}" in TEMPLATES and gone.target_id is not None:
        spans = fill(TEMPLATES[f"why.{rule}"], target=texts(gone.target_id))
    else:  # the record does not say
        return ()
    return ((" (", ""), *spans, (")", ""))


def _cells(round_: Round, texts: Texts, written: int) -> tuple[str, ...]:
    drafts = [f"{FATES[draft.fate or 'unjudged'].glyph} {texts(draft.id)}" for draft in round_.drafts]
    closing = "none: the text was over"
    if round_.closing is not None:
        fate = FATES[round_.closing.kind or "plain"]
        closing = f"{fate.glyph} {texts(round_.closing.id)}"
    kept = numbers.fraction(round_.kept, len(round_.drafts)) if round_.drafts else "no drafts"
    return str(round_.index + 1), " · ".join(drafts) or "none", closing, kept, _reads(round_), f"{written:,}"


def _reads(round_: Round) -> str:
    counts = [
        (sum(p.model == model and p.kind != "prefill" for p in round_.passes), model) for model in ("target", "drafter")
    ]
    return ", ".join(f"{count} {model}" for count, model in counts if count) or "–"


def _value(value: object) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return "unknown" if value is None else str(value).replace("_", " ")


def _settings(round_: Round) -> Mapping[str, Any]:
    return round_.said
