"""Why exact: the exchange at one place, frame by frame, and the same place dealt many times.

A frame holds one bar a token, over the outline of what the target wants. Frame by frame: what the drafter throws, what
of it stays, what replaces the rest, and what a wrong rule would write instead. Tokens that found no bar are one bar of
"others"; it is split so that its part in every frame is that of the whole vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from specviz import losslessness
from specviz.figures import events, numbers
from specviz.figures import exchange as exchanges
from specviz.figures.events import Event
from specviz.figures.exchange import ROUNDING, Array, Exchange
from specviz.figures.sentences import Spans, fill, rule_of
from specviz.figures.table import Table
from specviz.figures.text import Texts
from specviz.losslessness import Outcome
from specviz.trace import Round

COLUMNS = 5
"""Tokens shown besides the bar of others, more where more of them matter."""
COUNT = 100_000
"""How often a place is dealt."""
MISS = 0.01
"""Chance, at most, that any bar of an exact rule falls outside its band."""
SEEN = 0.005
"""An error below this is nothing in two digits."""

TITLE = "Why the text is exactly the target’s"
NOTES = {
    "hidden": "Once the target has read, this shows why nothing is distorted, whatever the drafter threw.",
    "alone": "No draft stands here: the token comes straight from what the target wants. Nothing has to be repaired.",
    "unknown": "This record does not say what both models wanted here, so the exchange cannot be shown.",
    "unnamed": "This record does not name its rule, so nothing can be said about why its text is exact.",
    "coin": "Overflow and gaps are the same size ([{gap}]), so the refill always fits. "
    "Each token is right given the text before it, so the whole text is.",
    "identical": "[Identical:] both models want the same here. Nothing overflows, and no gap is left to refill.",
    "disjoint": "[Nothing fits:] the two share nothing here. Every draft goes, and all that the target wants is dealt.",
    "certain": "[Nothing is left to chance:] every chance is 0 or 1 here, so a draft fits whole or not at all.",
    "greedy": "[Nothing is left to chance:] a draft is kept only where it is the target’s own first choice, "
    "else replaced by it. So every token is the target’s own.",
    "gumbel_coupling": "What is written is always [the target’s own pick], whatever was drafted. "
    "With the same noise both pick the same token [{odds}].",
    "token_match": "What is written is always [the target’s own draw], whatever was drafted. "
    "Two separate draws are the same token [{odds}].",
    "block": "[A place alone is not exact here; the block is.] The drafts before this place stay, all of them, "
    "[{odds}]; the outline is that share of what the target wants. What fits and what fills the gaps make it up "
    "exactly, and so it is at every place.",
    "block.first": "[The first place of the block] has no drafts before it: overflow and gaps are the same size "
    "([{gap}]), so the refill fits. A later draft may still carry this one.",
    "block.never": "[The drafts before this place have no chance to stay,] so nothing is ever written here after them.",
}
"""Where a size stands in a sentence it is the only number that Story shows."""

FRAMES = {
    "coin": (
        ("The drafter throws", "too much of some tokens, too little of others"),
        ("What fits stays", "{stays} fits, {goes} overflows"),
        ("The overflow is dealt again into the gaps", "exactly what the target wants"),
        ("Wrong: dealt again from p, gaps or not", "{off}"),
    ),
    "greedy": (
        ("The drafter’s first choice", "thrown without chance"),
        ("Is it the target’s first choice?", "{same}"),
        ("What is written", "the target’s first choice"),
    ),
    "gumbel_coupling": (
        ("The drafter picks", "what it offers, with the noise of the place"),
        ("The target picks, with the same noise", "the same token {odds}"),
        ("What is written: the target’s own pick", "exactly what the target wants"),
    ),
    "token_match": (
        ("The drafter draws", "what it offers"),
        ("The target’s own draw is the same", "{stays} stays, {goes} goes"),
        ("Else the target’s own draw is written", "exactly what the target wants"),
        ("Wrong: the target draws once more", "{off}"),
    ),
    "block": (
        ("The drafter throws", "against the share of the target that is left"),
        ("What fits stays", "{stays} fits, {goes} overflows"),
        ("A correction fills the gaps", "{gap} of gaps: exactly the share that is left"),
    ),
}
OFF = {"some": "{off} lands on the wrong tokens", "none": "here it happens to come out right"}
SAME = {True: "the same: it stays", False: "another: it goes"}

DEALT = {
    "inside": "[Dealt {count} times:] all {cells} bars lie within the noise of so many deals (the brackets). "
    "Even exact dealing leaves a bar outside its bracket about once in 100 deals.",
    "outside": "[Dealt {count} times:] {out} of {cells} bars {lie} outside the noise of so many deals (the brackets). "
    "Even exact dealing does that about once in 100 deals: deal again.",
    "wrong": " [Dealt the wrong way, {out} of {cells} bars leave them.]",
    "wrong.near": " The wrong way is off by {off} here, too little for {count} deals to show.",
    "wrong.right": " The wrong way passes as well: here it happens to come out right.",
}
DEALT_FRAMES = (
    "{count} drafts",
    "{stays} of {count} stay",
    "{goes} of {count} dealt instead",
    "{out} of {cells} bars off",
)

WHY = {
    "coin": "[Speculative sampling, when and why:] the usual choice where text is sampled. No exact rule that judges "
    "one draft at a time keeps more of them. The chances stay exactly the target’s; the words may change with the "
    "drafter and with gamma.",
    "greedy": "[Greedy, when and why:] for one fixed answer, and for tests. The text is what the target would write "
    "alone at temperature 0, up to rounding where two tokens nearly tie. The price: a good draft that is only the "
    "target’s second choice goes.",
    "gumbel_coupling": "[Gumbel coupling, when and why:] for text that can be reproduced and debugged. The noise "
    "belongs to the seed and the position, so the text depends on prompt, target, its settings and seed alone; another "
    "drafter or gamma changes only how many reads it takes. The price: the picks agree at best as often as the shared "
    "part, mostly a little less.",
    "token_match": "[Token match, when and why:] the simplest exact rule. It needs the drafter’s tokens and not its "
    "chances, and as under Gumbel coupling the text depends on prompt, target, its settings and seed alone. The price: "
    "two separate draws seldom meet where many tokens are possible, even with a perfect drafter. It pays where the "
    "target is sure of itself.",
    "block": "[Block verification, when and why:] sampled text, with the drafts judged together, so that a later one "
    "may carry an earlier one whose own coin missed. On average it keeps at least as many drafts as speculative "
    "sampling, from the same two models. It gains nothing with one draft a round, at temperature 0 or with copied "
    "drafts, and no draft has a chance of its own.",
    "ngram": "[n-gram drafter, when and why:] it copies what followed the same words earlier, so drafting costs no "
    "reads. It is certain of the one token that it copies, whose chance to stay under a coin is what the target gives "
    "it. It pays where text repeats itself (code, quotes, lists). The text stays exact because the copy is chosen "
    "before the target draws.",
}

FORMULAS = {
    "coin": "p = min(p, q) + max(p − q, 0)\n"
    "Σ max(p − q, 0) = Σ max(q − p, 0) = TV(p, q) = {gap}\n"
    "after a rejection the law is max(p − q, 0) / TV\n"
    "wrong: min(p, q) + TV · p, whose TV from p is {off}",
    "greedy": "p(x) = 1 for x = argmax p, else 0",
    "gumbel_coupling": "argmax(log p + g) has the law p\n"
    "P(match) = Σ 1 / Σ max(p(y)/p(x), q(y)/q(x)) = {stays}, x over the tokens of both, y over all\n"
    "(1 − TV) / (1 + TV) ≤ P(match) ≤ 1 − TV",
    "token_match": "p = p·q + p·(1 − q)\nΣ p·q = {stays}\nwrong: p·q + (1 − Σ p·q)·p, whose TV from p is {off}",
    "block": "given the drafts before, all of them stay with chance w = {weight}\n"
    "w·p = min(w·p, q) + max(w·p − q, 0)\n"
    "a correction here has the law max(w·p − q, 0) / Σ max(w·p − q, 0), whose sum is {gap}",
}
LEGEND = {
    "outline": "what the target wants",
    "drafter": "what the drafter throws",
    "both": "stays",
    "only_drafter": "goes",
    "only_target": "dealt instead",
    "target": "the target’s own pick",
}
LEGENDS = {
    "coin": {"only_drafter": "overflows", "only_target": "dealt again into the gaps"},
    "block": {"outline": "the share of what the target wants", "only_drafter": "overflows"},
    "greedy": {"only_target": "the target’s first choice"},
    "token_match": {"only_target": "the target’s own draw"},
}
"""What :data:`LEGEND` is called under a rule."""


@dataclass(frozen=True, slots=True)
class Dealt:
    """A place dealt ``count`` times by its own rule, and by the wrong one beside it where there is one.

    The counts are by token of the place's record, followed by the parts of its rest.
    """

    count: int
    right: Outcome
    wrong: Outcome | None


@dataclass(frozen=True, slots=True)
class Label:
    """A token under its bar, or all the others; ``sign`` is the fate whose glyph it wears, if any."""

    token: str
    sign: str = ""
    rest: bool = False


@dataclass(frozen=True, slots=True)
class Bar:
    """One token in one frame; all sizes in [0, 1].

    ``outline`` is what the target wants; ``parts`` are stacked from the ground as (meaning, size); of what was thrown
    ``over`` goes, drawn from ``over_from`` on. ``band`` is the lowest and the highest share that chance explains,
    ``off`` says that the bar is wrong, and ``error`` by how much, where two digits show it.
    """

    outline: float
    parts: tuple[tuple[str, float], ...]
    over: float = 0.0
    over_from: float = 0.0
    band: tuple[float, float] | None = None
    off: bool = False
    error: str = ""
    words: str = ""


@dataclass(frozen=True, slots=True)
class Frame:
    """One picture: a bar for each label.

    ``wrong`` and ``right`` are verdicts, where there is one. ``kept`` is the chance that a draft stays, where the
    picture is about that, ``highest`` the top of a scale of its own, and ``hint`` a sentence more.
    """

    title: str
    caption: str
    bars: tuple[Bar, ...]
    wrong: bool = False
    right: bool = False
    kept: float | None = None
    highest: float | None = None
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Exact:
    """The whole panel. ``highest`` is the scale's top; ``can_deal`` whether dealing many times shows anything."""

    title: str
    where: str
    note: Spans
    legend: tuple[tuple[str, str], ...]
    labels: tuple[Label, ...]
    frames: tuple[Frame, ...]
    highest: float
    can_deal: bool
    dealt: Spans
    why: tuple[Spans, ...]
    formula: str | None
    table: Table


def layout(round_: Round, event: Event, texts: Texts, *, selected: int | None, deal: Dealt | None = None) -> Exact:
    """The place of draft ``selected`` of ``round_`` (None: of the bonus or plain token) as known at ``event``.

    ``deal`` is what :func:`deal` gave for this very place.
    """
    mode = rule_of(round_)
    draft = round_.drafts[selected] if selected is not None else None
    where = f"round {round_.index + 1}" + (f", place {selected + 1}" if selected is not None else "")
    if round_.drafts and not events.read(round_, event):
        return _said("hidden", round_, where)
    if draft is None or selected is None:
        return _said("alone", round_, where)
    if mode not in FRAMES:
        return _said("unnamed", round_, where)
    exchange = exchanges.of(round_, selected)
    if exchange is None:
        return _said("unknown", round_, where)
    if exchange.weight == 0:
        return _said("block.never", round_, where)
    signs = _signs(round_, selected, event)
    columns = _columns(exchange, signs)
    drawn = _Drawn(exchange, columns, deal if _can_deal(exchange) else None)
    labels = tuple(Label(texts(i), signs.get(i, "")) for i in (exchange.ids[c] for c in columns))
    left = exchange.count - len(columns)
    labels += (Label(f"{left:,} {'other' if left == 1 else 'others'}", rest=True),) if drawn.others else ()
    frames = drawn.frames(tuple(label.token for label in labels))
    bars = [bar for frame in frames for bar in frame.bars]
    tops = [max(bar.outline, bar.over_from + bar.over, sum(size for _, size in bar.parts)) for bar in bars]
    return Exact(
        title=TITLE,
        where=where,
        note=fill(NOTES[_which(exchange)], **drawn.sizes),
        legend=_legend(mode, bars),
        labels=labels,
        frames=frames,
        highest=max(tops, default=1.0) or 1.0,
        can_deal=_can_deal(exchange),
        dealt=drawn.verdict(),
        why=_why(round_),
        formula=FORMULAS[mode].format(**drawn.sizes),
        table=drawn.table(where, labels),
    )


def deal(round_: Round, selected: int, seed: int) -> Dealt | None:
    """Deal the place of draft ``selected`` :data:`COUNT` times; None where its record or its rule does not allow it."""
    exchange = exchanges.of(round_, selected) if rule_of(round_) in FRAMES else None
    if exchange is None or exchange.rule is None or not _can_deal(exchange):
        return None
    laws = exchange.p, exchange.q
    wrong = losslessness.deal(exchange.wrong, *laws, COUNT, seed) if exchange.wrong is not None else None
    return Dealt(COUNT, losslessness.deal(exchange.rule, *laws, COUNT, seed), wrong)


def _can_deal(exchange: Exchange) -> bool:
    """Whether dealing a single place shows anything: it has a rule of its own, and something is left to chance."""
    return exchange.rule is not None and not exchange.certain


def _said(note: str, round_: Round, where: str) -> Exact:
    """The panel as one sentence."""
    table = Table(TITLE, ("token", "p", "q"), ())
    return Exact(TITLE, where, fill(NOTES[note]), (), (), (), 1.0, False, (), _why(round_), None, table)


def _legend(mode: str, bars: Sequence[Bar]) -> tuple[tuple[str, str], ...]:
    """What is drawn, as (meaning, word)."""
    drawn = {"outline"} | {meaning for bar in bars for meaning, size in bar.parts if size > 0}
    drawn |= {"only_drafter" for bar in bars if bar.over > 0}
    return tuple(
        (meaning, LEGENDS.get(mode, {}).get(meaning, word)) for meaning, word in LEGEND.items() if meaning in drawn
    )


def _why(round_: Round) -> tuple[Spans, ...]:
    """When and why one takes this rule, and this drafter."""
    named = [rule_of(round_), str((round_.settings or {}).get("drafter"))]
    return tuple(fill(WHY[name]) for name in named if name in WHY)


# --- what is drawn ----------------------------------------------------------------------------------------------------


def _signs(round_: Round, selected: int, event: Event) -> dict[int, str]:
    """The signs of the draft and of the correction, as far as they are known."""
    draft, closing = round_.drafts[selected], round_.closing
    standing = events.standing(round_, selected, event)
    signs: dict[int, str] = {}
    if standing in ("kept", "rejected") and draft.target_id is not None:
        signs[draft.target_id] = ""
    if closing is not None and selected == round_.kept and events.closed(round_, event):
        signs[closing.id] = "correction"
    return signs | {draft.id: standing}


def _columns(exchange: Exchange, signs: dict[int, str]) -> list[int]:
    """Which tokens are shown, by index: those with a sign and both winners always, the rest by what they are given."""
    listed = len(exchange.ids)
    p, q = exchange.p[:listed], exchange.q[:listed]
    given = np.maximum(p, q)
    must = {index for index, token_id in enumerate(exchange.ids) if token_id in signs}
    must |= {int(p.argmax()), int(q.argmax())}
    ranked = [int(index) for index in np.argsort(-given, kind="stable")]
    free = max(COLUMNS - len(must), 0)
    more = [index for index in ranked if index not in must and given[index] > 0][:free]
    return [index for index in ranked if index in must or index in more]


def _which(exchange: Exchange) -> str:
    """Which sentence says why it is exact here."""
    gap, share = float(exchange.outcome.dealt.sum()), exchange.agree
    if exchange.mode == "block":
        return "block" if exchange.weight < 1 else "block.first"
    if exchange.mode != "coin":
        return exchange.mode
    if exchange.certain:
        return "certain"
    return "identical" if gap < ROUNDING else "disjoint" if share < ROUNDING else "coin"


class _Drawn:
    """An exchange on its columns, in chances or, once it was dealt, in counts."""

    def __init__(self, exchange: Exchange, columns: Sequence[int], deal: Dealt | None) -> None:
        self.exchange, self.columns, self.deal = exchange, columns, deal
        rest = np.delete(np.arange(len(exchange.p)), columns)
        self.others = bool(np.any((exchange.p[rest] > 0) | (exchange.q[rest] > 0)))
        self.wanted, self.q = self._on_columns(exchange.wanted), self._on_columns(exchange.q)
        self.chances = self._outcome(exchange.outcome)
        self.shown = self._outcome(deal.right, deal.count) if deal is not None else self.chances
        self.wrong: Outcome | None = None
        self.off = 0.0
        if exchange.wrong is not None:
            wrong = losslessness.expected(exchange.wrong, exchange.p, exchange.q)
            self.off = float(np.maximum(wrong.emitted - exchange.p, 0.0).sum())
            dealt = deal.wrong if deal is not None else None
            self.wrong = self._outcome(dealt, deal.count) if deal is not None and dealt else self._outcome(wrong)
        self.sizes = self._sizes()
        self.bands = self._bands()

    def _on_columns(self, values: Array) -> Array:
        """Values by column, the last of which holds all others if there are any."""
        chosen = np.asarray(values)[list(self.columns)]
        return np.append(chosen, np.delete(values, self.columns).sum()) if self.others else chosen

    def _outcome(self, outcome: Outcome, count: int = 1) -> Outcome:
        """An outcome in shares, by column."""
        return Outcome(*(self._on_columns(part) / count for part in (outcome.drafted, outcome.kept, outcome.dealt)))

    def _sizes(self) -> dict[str, str]:
        """The numbers that sentences, captions and formulas name."""
        outcome, agree = self.exchange.outcome, self.exchange.agree
        stays, goes = numbers.told_apart(_whole(agree), _whole(1 - agree))
        return {
            "stays": stays,
            "goes": goes,
            "gap": numbers.probability(_whole(float(outcome.dealt.sum()))),
            "odds": numbers.times(self.exchange.weight if self.exchange.mode == "block" else agree),
            "weight": numbers.probability(self.exchange.weight),
            "off": numbers.probability(_whole(self.off)),
            "same": SAME[agree > 0.5],
        }

    def _bands(self) -> dict[str, list[tuple[int, int]]]:
        """The band of every bar that the deal is checked by, in counts, by what the bar counts."""
        if self.deal is None:
            return {}
        chances = {"drafted": self.q, "emitted": self.wanted}
        if self.exchange.mode != "gumbel_coupling":
            chances["kept"] = self.chances.kept
        uncertain = sum(0 < chance < 1 for law in chances.values() for chance in law)
        count, miss = self.deal.count, MISS / max(uncertain, 1)
        return {
            name: [losslessness.noise_band(min(float(chance), 1.0), count, miss) for chance in law]
            for name, law in chances.items()
        }

    def _outside(self, shares: Array, counted: str) -> int:
        """How many bars lie outside their band."""
        assert self.deal is not None
        seen = np.rint(shares * self.deal.count)
        return sum(not low <= x <= high for x, (low, high) in zip(seen, self.bands[counted], strict=True))

    def frames(self, labels: Sequence[str]) -> tuple[Frame, ...]:
        """The three frames of the rule and, where there is one, the wrong one."""
        kept = "target" if self.exchange.mode == "gumbel_coupling" else "both"
        written: tuple[tuple[str, Array], ...] = (("both", self.shown.kept), ("only_target", self.shown.dealt))
        if kept == "target":
            written = (("target", self.shown.emitted),)
        drawn = [
            self._bars((("drafter", self.shown.drafted),), "drafted", labels),
            self._bars(written, "emitted", labels)
            if kept == "target"
            else self._bars((("both", self.shown.kept),), "kept", labels, over=self.shown.drafted - self.shown.kept),
            self._bars(written, "emitted", labels),
        ]
        if self.wrong is not None:
            parts = (("both", self.wrong.kept), ("only_target", self.wrong.dealt))
            drawn.append(self._bars(parts, "emitted", labels, errors=self.wrong.emitted - self.wanted))
        titles = FRAMES[self.exchange.mode]
        captions = self._captions([caption for _, caption in titles])
        return tuple(
            Frame(title, caption, bars, wrong=number == 3)
            for number, ((title, _), caption, bars) in enumerate(zip(titles, captions, drawn, strict=True))
        )

    def _bars(
        self,
        parts: tuple[tuple[str, Array], ...],
        counted: str,
        labels: Sequence[str],
        *,
        over: Array | None = None,
        errors: Array | None = None,
    ) -> tuple[Bar, ...]:
        bands = self.bands.get(counted)
        bars = []
        for column, label in enumerate(labels):
            stack = tuple((meaning, float(sizes[column])) for meaning, sizes in parts)
            total = sum(size for _, size in stack)
            bar = Bar(float(self.wanted[column]), stack)
            if over is not None:
                # Under a coin what goes is what the target had no room for; else it is any draft that was not met.
                ground = bar.outline if self.exchange.mode in ("coin", "block") else total
                bar = replace(bar, over=max(float(over[column]), 0.0), over_from=ground)
            if bands is not None and self.deal is not None:
                (low, high), count = bands[column], self.deal.count
                seen = round(total * count)
                bar = replace(bar, band=(low / count, high / count), off=not low <= seen <= high)
                words = f"{label}: {seen:,} of {count:,}; chance explains {low:,} to {high:,}"
            else:
                words = f"{label}: {numbers.probability(total)}, wanted {numbers.probability(bar.outline)}"
            if errors is not None:
                error = float(errors[column])
                seen_error = f"{error:+.2f}".replace("-", "−") if abs(error) >= SEEN else ""
                bar = replace(bar, error=seen_error, off=bar.off if bands is not None else bool(seen_error))
            bars.append(replace(bar, words=words))
        return tuple(bars)

    def _captions(self, templates: Sequence[str]) -> list[str]:
        off = OFF["some" if self.off > ROUNDING else "none"].format(**self.sizes)
        captions = [template.format(**self.sizes | {"off": off}) for template in templates]
        if self.deal is None:
            return captions
        count, stays = self.deal.count, int(self.deal.right.kept.sum())
        fields = {"count": f"{count:,}", "stays": f"{stays:,}", "goes": f"{count - stays:,}"}
        out = self._outside(self.wrong.emitted, "emitted") if self.wrong is not None else 0
        fields |= {"out": str(out), "cells": str(len(self.wanted))}
        told = [template.format(**fields) for template in DEALT_FRAMES[: len(templates)]]
        # Whether both picks agree is not what the others together would do.
        return [told[0], *captions[1:]] if self.exchange.mode == "gumbel_coupling" else told

    def verdict(self) -> Spans:
        """What the deal says; empty where nothing was dealt."""
        if self.deal is None:
            return ()
        counted = {"drafted": self.shown.drafted, "kept": self.shown.kept, "emitted": self.shown.emitted}
        out = sum(self._outside(counted[name], name) for name in self.bands)
        fields = {
            "count": f"{self.deal.count:,}",
            "cells": sum(map(len, self.bands.values())),
            "out": out,
            "lie": "lies" if out == 1 else "lie",
        }
        spans = fill(DEALT["outside" if out else "inside"], **fields)
        if self.wrong is None:
            return spans
        wrong = self._outside(self.wrong.emitted, "emitted")
        which = "wrong" if wrong else "wrong.near" if self.off > ROUNDING else "wrong.right"
        fields |= {"out": wrong, "cells": len(self.wanted), "off": self.sizes["off"]}
        return spans + fill(DEALT[which], **fields)

    def table(self, where: str, labels: Sequence[Label]) -> Table:
        """The frames as numbers: chances, then counts once the place was dealt."""
        block = self.exchange.mode == "block"
        columns = ["token", "w·p" if block else "p", "q"]
        cells: list[Array] = [self.wanted, self.q]
        if self.exchange.mode != "gumbel_coupling":
            columns += ["stays", "goes", "dealt"]
            cells += [self.chances.kept, np.maximum(self.q - self.chances.kept, 0.0), self.chances.dealt]
        if self.exchange.wrong is not None:
            wrong = losslessness.expected(self.exchange.wrong, self.exchange.p, self.exchange.q)
            columns.append("written the wrong way")
            cells.append(self._on_columns(wrong.emitted))
        rows = [
            [label.token, *(numbers.probability(_whole(float(law[i]))) for law in cells)]
            for i, label in enumerate(labels)
        ]
        if self.deal is not None:
            columns += ["times drafted", "times written", "chance explains"]
            for row, drafted, written, (low, high) in zip(
                rows, self.shown.drafted, self.shown.emitted, self.bands["emitted"], strict=True
            ):
                count = self.deal.count
                row += [f"{x * count:,.0f}" for x in (drafted, written)]
                row.append(f"{low:,} to {high:,}")
            if self.wrong is not None:
                columns.append("times written the wrong way")
                for row, written in zip(rows, self.wrong.emitted, strict=True):
                    row.append(f"{written * self.deal.count:,.0f}")
        return Table(f"{TITLE}: {where}", tuple(columns), tuple(map(tuple, rows)))


def _whole(value: float) -> float:
    """A sum of many terms, without its rounding error where it can only be 0 or 1."""
    near = round(value)
    return float(near) if abs(value - near) < ROUNDING else value
