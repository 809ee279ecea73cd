"""The coin: one line a draft, from its chance to its fate.

Under speculative sampling and block verification each line is the draft's own q-lane stretched to 1: what stays, what
goes, and where the coin fell. The pins can be moved in the browser; a line carries all that it takes to say what would
have been. Under the other rules the target chooses for itself and the line sets the two choices side by side. At the
read the panel shows what each row of it saw and wanted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from specviz.figures import events, numbers
from specviz.figures.events import Event, Standing
from specviz.figures.palette import FATES
from specviz.figures.sentences import Spans, fill, plain, rule_of, why_plain
from specviz.figures.table import Table
from specviz.figures.text import Texts
from specviz.trace import Draft, Round, Row, Token, Trace

CANDIDATES = 3
"""How many tokens are named that a correction might have been."""

WORDS = {
    "waiting": "not read yet",
    "unreported": "its chance is not reported",
    # Speculative sampling: a coin. Used again by the what-if.
    "stays": "stays {odds}",
    "sure": "stays for sure, no coin",
    "never": "stays 0 in 100, no coin",
    "inside": "chance {odds}; coin {coin}",
    "outside": "chance {odds}; coin {coin}",
    "unjudged": "written to follow {gone}",
    "over": "behind the end of the text",
    "unknown": "judged next; its coin is not recorded",
    # Block verification: a coin in every row.
    "block.bar": "coin falls inside {odds}",
    "block.inside": "coin {coin} inside {chance}",
    "block.outside": "coin {coin} missed {chance}",
    "block.full": "coin {coin}; full bar",
    "block.empty": "coin {coin}; no bar",
    "block.last": "; the last inside",
    "block.carried": "; carried by place {carrier}",
    # The target chooses for itself.
    "greedy.kept": "same{lead}",
    "greedy.rejected": "differs{lead}",
    "greedy.lead": "; its first leads by {lead} in logits",
    "gumbel_coupling.waiting": "agree {odds}",
    "gumbel_coupling.kept": "same; chance {odds}",
    "gumbel_coupling.rejected": "differs; chance {odds}",
    "token_match.waiting": "match p(draft) {chance}",
    "token_match.kept": "same; p(draft) {chance}",
    "token_match.rejected": "differs; p(draft) {chance}",
    # The closing token.
    "gaps": "drawn from the gaps: {gap} of {tv}",
    "gaps.weighed": "drawn from the gaps: {gap}",
    "gaps.copied": "drawn from p without {gone}: {gap} of {tv}",
    "gaps.none": "no gap to refill: drawn from the target’s own chances",
    "bonus": "drawn from what the target wants next: {p}",
    "plain": "drawn from what the target wants: {p}",
    "own": "the target’s own choice",
    # What would have been.
    "would.gaps": "a correction would be dealt from the gaps here: ",
    "would.none": "a correction would be drawn from the target’s own chances here",
    "would.bonus": "the same read gives one more token; which one is not recorded",
    "would.stay": "Had the coin of {draft} fallen at {coin}, the draft would stay{carried}.",
    "would.go": "Had the coin of {draft} fallen at {coin}, the draft would go.",
    "would.carried": ", carried by place {carrier}",
    "would.all": " All drafts stay: the same read gives {bonus}.",
    "would.more": "one more token",
    "would.token": "{token} as a bonus",
    "would.over": " It ends the text.",
    "pin": "coin {coin}, {side}",
    "pin.stays": "stays",
    "pin.goes": "goes",
}
STORY = {
    "inside": "the coin fell on “stays”",
    "outside": "the coin fell on “goes”",
    "never": "cannot stay, no coin",
    "block.inside": "coin inside its bar",
    "block.outside": "coin missed its bar",
    "block.full": "coin inside its bar",
    "block.empty": "no bar to fall into",
    "greedy.lead": "",
    "gumbel_coupling.kept": "the same",
    "gumbel_coupling.rejected": "differs",
    "token_match.kept": "the same",
    "token_match.rejected": "differs",
    "gaps": "drawn from what the target wanted more",
    "gaps.weighed": "drawn from what the target still wanted",
    "gaps.copied": "drawn from what else the target wanted",
    "bonus": "what the target wants next",
    "plain": "what the target wants",
    "would.stay": "Had the coin of {draft} fallen here, the draft would stay{carried}.",
    "would.go": "Had the coin of {draft} fallen here, the draft would go.",
}
"""Under *Story* chances and coins are words."""
LIKELY = ((0.8, "very likely to stay"), (0.6, "likely to stay"), (0.4, "may stay or go"), (0.2, "likely to go"))
UNLIKELY = "very likely to go"

NOTES = {
    "coin": "Before {draft} was drawn a draft had a chance of [{before}] here (shared). [This] draft had [{this}].",
    "gumbel_coupling": "Before {draft} was drawn both were to pick the same token here with a chance of [{before}]; "
    "shared (1 − TV) is [{most}]. [This] draft had [{this}].",
    "token_match": "Before {draft} was drawn a match had a chance of [{before}] here (Σ p·q). "
    "[This] draft had its p: [{this}].",
    "same": "Both models want exactly the same here: always kept, no gap to refill.",
    "disjoint": "Nothing is shared here (shared 0.00): every draft dies.",
    "copied": "{draft} was copied from the text before, so q = 1 and it stays with p: [{this}].",
    "short": "Only {count}: {left} left to write.",
    "short.unsure": "Only {count}: the drafter was not sure enough of the next.",
    "short.copy": "Only {count}: there was no more to copy.",
}
HINTS = {
    "drafted": "Drawn by the drafter; the target has not read them.",
    "copied": "Copied from the text before; the target has not read them.",
    "coin": "The coin falls anywhere on the bar, each place alike. On “stays” the draft stays.",
    "greedy": "Each model’s first choice. Nothing is left to chance.",
    "gumbel_coupling": "Both models pick with the same noise. Where they pick the same token, the draft stays.",
    "token_match": "The target draws for itself. Where it draws the same token, the draft stays.",
    "block": "All coins count together: the last one inside its bar carries every draft before it.",
    "read": "The target reads the text and {drafts} at once. Each row sees only what stands before it.",
    "plain": "No drafts: plain decoding, one read a token. Nothing is judged, so there is no coin.",
    "plain.last": "Only one token was left to write, so nothing was drafted: one read, one token.",
    "plain.context": "The context is full, so nothing was drafted: one read, one token.",
    "plain.unsure": "The drafter was not sure enough of any token, so nothing was drafted: one read, one token.",
    "plain.copy": "Nothing to copy this round: one read, one token.",
    "plain.unknown": "Nothing was drafted this round: one read, one token.",
    "closing": "No draft was judged here: the read gives one token more.",
    "unreported": "This engine does not report p and q, so no chance can be shown.",
}
LEGENDS = {
    "coin": "bar: p/q, at most 1 · p: the target wants it, q: the drafter offers it",
    "copied": "bar: p, what the target gives the copied token; its q is 1",
    "block": "p: the target wants it, q: the drafter offers it",
}
TITLES = {"coin": "The coin", "choice": "The choice", "read": "One read, {answers} answers", "plain": "The draw"}
HEADS = {
    "coin": ("place", "draft", "chance to stay", "", "fate"),
    "block": ("place", "draft", "bar", "", "fate"),
    "greedy": ("place", "draft", "the target’s first choice", "", "fate"),
    "gumbel_coupling": ("place", "the drafter’s winner", "the target’s winner", "", "fate"),
    "token_match": ("place", "draft", "the target’s own draw", "", "fate"),
}
READ = {
    "label": "one read of the target: {rows} rows",
    "after": "after “{tail}”",
    "text": "after the prompt",
    "wants": " it wants most ",
    "chance": " ({chance})",
    "last": "; used only if all stay",
    "unreported.last": " answered too, used only if all stay",
    "unreported": " its answer is not reported",
    "sees": "sees the text",
    "sees.drafts": "sees the text and {drafts}",
}
APART = {
    "same": "{Rows} reads of one row gave the same {rows} answers (largest difference of a logit {difference}): "
    "[{many} ms instead of {one}].",
    "equal": "{Rows} reads of one row gave the same {rows} answers, to the last digit: [{many} ms instead of {one}].",
    "differs": "{Rows} reads of one row did [not] all have the same first choice: the largest difference of a logit is "
    "{difference}. The same sums in another order round differently, which decides a near tie. "
    "{many} ms instead of {one}.",
}
FORMULAS = {
    "coin": "stays with min(1, p/q) = min(1, {p}/{q}) = {accept}",
    "copied": "q = 1 on the copied token: stays with min(1, p/1) = p = {p}",
    "greedy": "stays where the draft = argmax p",
    "gumbel_coupling": "both take argmax(log probability + g), with the same g\n"
    "agree with 1 / (q · Σ max(p_y/p, q_y/q)) = {accept}",
    "token_match": "stays with p(draft) = {p}",
    "block": "h = Σ max(w·p − q, 0) / (Σ max(w·p − q, 0) + 1 − w); kept = the last place whose coin < h",
}


@dataclass(frozen=True, slots=True)
class Might:
    """What the what-if needs of a draft: its chance and that in words, the coin it met or would have met (None: not
    recorded), whether it ends the text, and what a correction in its place would be dealt from, likeliest first."""

    chance: float
    odds: str
    coin: float | None
    ends: bool
    gaps: Spans


@dataclass(frozen=True, slots=True)
class Line:
    """One draft. ``stays`` and ``coin`` are in [0, 1]; ``other`` is the token that the target chose itself. ``might``
    is there from the draft's verdict on, where the rule throws coins; its pin can be moved where ``coin`` is shown."""

    place: int
    draft: str
    standing: Standing
    current: bool
    words: str
    stays: float | None = None
    coin: float | None = None
    other: str | None = None
    might: Might | None = None


@dataclass(frozen=True, slots=True)
class Close:
    """The closing token's line."""

    place: int
    token: str
    kind: str
    words: str
    current: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """One row of the read: how many of the drafts it saw, what it says, and the bar of the draft in its place."""

    seen: int
    sees: str
    answer: Spans
    stays: float | None
    words: Spans


@dataclass(frozen=True, slots=True)
class Coin:
    """The whole panel.

    ``chosen`` says that the target chooses for itself instead of throwing coins; ``block`` that all coins count
    together. ``moment`` names round and event. ``read`` are the rows of the read, at that event only. ``said`` are the
    templates of the what-if and ``bonus`` its closing token where all drafts stay; None while that token may still
    come, and where the record does not say which it is.
    """

    title: str
    round: int
    moment: str
    chosen: bool
    block: bool
    heads: tuple[str, ...]
    note: Spans
    legend: str
    lines: tuple[Line, ...]
    closing: Close | None
    read: tuple[Answer, ...]
    read_label: str
    formula: str | None
    table: Table
    said: Mapping[str, str]
    bonus: Close | None


def layout(
    round_: Round,
    event: Event,
    texts: Texts,
    *,
    selected: int | None = None,
    trace: Trace | None = None,
    story: bool = False,
    would_be: bool = False,
) -> Coin:
    """The panel for ``round_`` as known at ``event``.

    Args:
        round_: the round.
        event: one of this round, or of a later one.
        texts: the tokens' texts.
        selected: the place that the note is about.
        trace: the run, for what stands before the round and what ends it.
        story: chances and coins as words.
        would_be: work out the coins that drafts never judged would have met. It takes NumPy, a fifth of a second that
            the first paint does without; the what-if then says that such a coin is not recorded.
    """
    panel = _Panel(round_, event, texts, trace, story, would_be)
    known = events.drafted(round_, event)
    lines = tuple(panel.line(place, current=place == selected) for place in range(known))
    closed = event.round > round_.index or event.kind == "closing"
    closing = panel.close() if closed else None
    focus = round_.drafts[selected] if selected is not None and selected < known and panel.shown else None
    reading = event.round == round_.index and event.kind == "read"
    read = tuple(map(panel.answer, range(known + 1))) if reading else ()
    return Coin(
        title=f"{panel.title(reading)} · round {round_.index + 1}",
        round=round_.index,
        moment=f"{event.round}/{event.kind}/{event.place}",
        chosen=panel.chosen,
        block=panel.rule == "block",
        heads=HEADS.get(panel.rule, HEADS["coin"]),
        note=panel.note(focus, reading),
        legend=panel.legend(),
        lines=lines,
        closing=closing,
        read=read,
        read_label=READ["label"].format(rows=known + 1),
        formula=panel.formula(focus),
        table=_read_table(round_, read) if reading else _table(round_, lines, closing, panel.shown),
        said=panel.said if panel.throws else {},
        bonus=panel.bonus(),
    )


def one_at_a_time(rows: int, difference: float, agree: bool, one_seconds: float, many_seconds: float) -> Spans:
    """What came of asking the places one by one.

    Args:
        rows: how many answers there are, gamma + 1.
        difference: largest absolute difference of a logit, at least 0.
        agree: whether every row has the same first choice both ways.
        one_seconds: time of the one read.
        many_seconds: time of the reads of one row each, together.
    """
    return fill(
        APART["differs" if not agree else "same" if difference else "equal"],
        Rows=numbers.count(rows).capitalize(),
        rows=numbers.count(rows),
        # One digit says how large it is.
        difference=f"{float(f'{difference:.1g}'):.7f}".rstrip("0") if difference >= 1e-7 else f"{difference:.0e}",
        one=_milliseconds(one_seconds),
        many=_milliseconds(many_seconds),
    )


def _milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:,.0f}" if seconds >= 0.01 else f"{1e3 * seconds:.2g}"


class _Panel:
    """A round at an event: what every part of the panel asks about it."""

    def __init__(
        self, round_: Round, event: Event, texts: Texts, trace: Trace | None, story: bool, would_be: bool
    ) -> None:
        self.round, self.event, self.texts, self.trace, self.story = round_, event, texts, trace, story
        self.rule = rule_of(round_)
        self.chosen = self.rule in ("greedy", "gumbel_coupling", "token_match")
        self.throws = self.rule in ("coin", "block")
        self.copied = _settings(round_).get("drafter") == "ngram"
        self.shown = events.read(round_, event)
        self.settled = events.settled(round_, event)
        self.said = WORDS | STORY if story else WORDS
        self.coins = _coins(round_, would_be=would_be and self.settled)
        # Under block verification the last coin inside its bar decides, whatever the fates say of a text that ended.
        self.carrier = max((place for place, draft in enumerate(round_.drafts, 1) if draft.passed), default=0)

    # --- a draft's line ---

    def line(self, place: int, *, current: bool) -> Line:
        draft = self.round.drafts[place]
        standing = events.standing(self.round, place, self.event)
        judged = standing in ("kept", "rejected")
        # Block verification throws every coin, those of drafts that are never judged too.
        thrown = standing == "unjudged" and draft.coin is not None
        bar = self.shown and (standing != "unjudged" or thrown) and not self.chosen
        coin = draft.coin if (judged or thrown) and self._needs_coin(draft) else None
        return Line(
            place=place + 1,
            draft=self.texts(draft.id),
            standing=standing,
            current=current,
            words=self.words(place, standing),
            stays=draft.accept_prob if bar else None,
            coin=coin,
            other=self.texts(draft.target_id) if judged and draft.target_id is not None else None,
            might=self._might(place) if standing != "waiting" else None,
        )

    def _needs_coin(self, draft: Draft) -> bool:
        return self.rule == "block" or draft.accept_prob is None or 0 < draft.accept_prob < 1

    def _might(self, place: int) -> Might | None:
        draft = self.round.drafts[place]
        if not self.throws or draft.accept_prob is None:
            return None
        return Might(
            chance=draft.accept_prob,
            odds=numbers.odds(draft.accept_prob),
            coin=self.coins[place],
            ends=draft.id in self._stop_ids(),
            gaps=self._candidates(place),
        )

    def _stop_ids(self) -> tuple[int, ...]:
        if self.trace is not None:
            return self.trace.header.stop_ids
        return self.round.emitted[-1:] if self.round.finish == "stop" else ()

    def words(self, place: int, standing: Standing) -> str:
        """A line's few words."""
        draft, said = self.round.drafts[place], self.said
        if not self.shown:
            return said["waiting"]
        if standing == "unjudged" and self.round.closing is None:
            return said["over"]
        if standing == "unjudged" and (draft.coin is None or self.rule != "block"):
            return said["unjudged"].format(gone=self.texts(self.round.drafts[self.round.kept].id))
        if draft.accept_prob is None:
            return said["unreported"]
        if self.chosen:
            return self._choice_words(draft, standing)
        if standing == "waiting" or draft.coin is None:
            return self._chance(draft)
        if self.rule == "block":
            return self._block_words(place, draft, standing)
        if not self._needs_coin(draft):
            return said["sure" if draft.accept_prob else "never"]
        _, coin = numbers.told_apart(draft.accept_prob, draft.coin)
        odds = numbers.odds(draft.accept_prob, beside=draft.coin)
        return said["inside" if draft.coin < draft.accept_prob else "outside"].format(odds=odds, coin=coin)

    def _chance(self, draft: Draft) -> str:
        """The chance of a draft whose coin has not fallen."""
        assert draft.accept_prob is not None
        if self.rule != "block" and draft.accept_prob in (0, 1):
            return self.said["sure" if draft.accept_prob else "never"]
        if self.story:
            return next((words for least, words in LIKELY if draft.accept_prob >= least), UNLIKELY)
        return self.said["block.bar" if self.rule == "block" else "stays"].format(odds=numbers.odds(draft.accept_prob))

    def _choice_words(self, draft: Draft, standing: Standing) -> str:
        if self.rule == "greedy" and standing == "waiting":
            return ""
        if self.story and standing == "waiting":
            return self._chance(draft)
        assert draft.accept_prob is not None
        lead = _lead(draft.row)
        return self.said[f"{self.rule}.{standing}"].format(
            odds=numbers.odds(draft.accept_prob),
            chance=numbers.probability(draft.accept_prob),
            lead=self.said["greedy.lead"].format(lead=lead) if lead else "",
        )

    def _block_words(self, place: int, draft: Draft, standing: Standing) -> str:
        assert draft.accept_prob is not None
        assert draft.coin is not None
        chance, coin = numbers.told_apart(draft.accept_prob, draft.coin)
        inside = draft.coin < draft.accept_prob
        certain = draft.accept_prob in (0.0, 1.0)
        fits = ("full" if inside else "empty") if certain else "inside" if inside else "outside"
        words = self.said[f"block.{fits}"].format(chance=chance, coin=coin)
        if standing == "kept" and not inside:
            return words + self.said["block.carried"].format(carrier=self.carrier)
        return words + (self.said["block.last"] if place + 1 == self.carrier else "")

    # --- the closing token ---

    def close(self) -> Close | None:
        """The closing token's line."""
        closing, round_ = self.round.closing, self.round
        if closing is None:
            return None
        kind = closing.kind or "plain"
        token = closing.row.token(closing.id) if closing.row is not None else None
        if self.chosen and kind != "plain":
            words = self.said["own"]
        elif kind == "correction":
            words = self._correction_words(closing.id)
        else:
            words = self._drawn_words(kind, token)
        return Close(
            place=round_.kept + 1,
            token=self.texts(closing.id),
            kind=kind,
            words=words,
            current=self.event.round == round_.index and self.event.kind == "closing",
        )

    def bonus(self) -> Close | None:
        """The token behind all drafts that this round's noise would have drawn."""
        round_ = self.round
        to_come = self.event.round == round_.index and self.event.kind != "closing"
        if round_.after_id is None or not self.settled or (to_come and round_.kept == len(round_.drafts)):
            return None
        return Close(
            place=len(round_.drafts) + 1,
            token=self.texts(round_.after_id),
            kind="bonus",
            words=self._drawn_words("bonus", round_.last_row.token(round_.after_id) if round_.last_row else None),
            current=False,
        )

    def _drawn_words(self, kind: str, token: Token | None) -> str:
        """What a bonus or a plain token was drawn from."""
        p = numbers.probability(token.p) if token is not None and token.p is not None else ""
        return self.said[kind].format(p=p).removesuffix(": ")

    def _correction_words(self, token_id: int) -> str:
        gone = self.round.drafts[self.round.kept]
        gaps, total = self._gaps(self.round.kept)
        gap = next((gap for i, gap in gaps if i == token_id), None)
        if gap is None:
            flat = self.throws and gone.row is not None and gone.row.tv == 0
            return self.said["gaps.none"] if flat else ""
        template = "gaps.weighed" if total is None else "gaps.copied" if self.copied else "gaps"
        tv = numbers.probability(total)
        return self.said[template].format(gap=numbers.probability(gap), tv=tv, gone=self.texts(gone.id))

    def _gaps(self, place: int) -> tuple[list[tuple[int, float]], float | None]:
        """What the target wants more than was offered at a place: [id, gap] of listed tokens, widest first, and the
        sum over all tokens. Block verification weighs p first; its sum is not in the record."""
        row = self.round.drafts[place].row
        if not self.throws or row is None:
            return [], None
        weight: float | None = 1.0
        if self.rule == "block" and place:
            weight = self.round.drafts[place - 1].weight
        if weight is None:
            return [], None
        gaps = [(t.id, weight * t.p - t.q) for t in row.tokens if t.p is not None and t.q is not None]
        whole = row.tv if weight == 1 else None
        return sorted((gap for gap in gaps if gap[1] > 0), key=lambda gap: -gap[1]), whole or None

    def _candidates(self, place: int) -> Spans:
        gaps, total = self._gaps(place)
        spans: list[tuple[str, str]] = []
        for token_id, gap in gaps[:CANDIDATES]:
            size = f" {numbers.probability(gap)}"
            if total is not None and not spans:
                size += f" of {numbers.probability(total)}"
            spans += [(", ", "")] if spans else []
            spans += [(self.texts(token_id), "token"), *([] if self.story else [(size, "")])]
        return tuple(spans)

    # --- the read ---

    def answer(self, place: int) -> Answer:
        """One row of the read."""
        drafts = self.round.drafts
        last = place == len(drafts)
        row = self._last_row() if last else drafts[place].row
        if place:
            after: Spans = (("after ", ""), (self.texts(drafts[place - 1].id), "token"))
        else:
            after = ((self._after_text(), ""),)
        shown = {1: "draft 1", 2: "drafts 1 and 2"}.get(place, f"drafts 1 to {place}")
        return Answer(
            seen=place,
            sees=READ["sees.drafts"].format(drafts=shown) if place else READ["sees"],
            answer=(*after, (":", ""), *self._wants(row, last)),
            stays=None if last or self.chosen else drafts[place].accept_prob,
            words=() if last else self._beside(place),
        )

    def _last_row(self) -> Row | None:
        """The row behind the last draft: shown in every round or in none. A record that has it for a bonus alone would
        tell by it that all will stay."""
        told = self.trace.rounds if self.trace is not None else (self.round,)
        return self.round.last_row if all(round_.last_row is not None for round_ in told if round_.drafts) else None

    def _beside(self, place: int) -> Spans:
        """The draft that stands where the row answers, and what its bar says."""
        words = self.words(place, "waiting")
        return (("draft ", ""), (self.texts(self.round.drafts[place].id), "token"), (f" {words}" if words else "", ""))

    def _after_text(self) -> str:
        if self.trace is None or self._written() == 0:
            return READ["text"]
        return READ["after"].format(tail=self.texts.tail(self.trace.text_ids[: self._written()]))

    def _wants(self, row: Row | None, last: bool) -> Spans:
        """What the target wants most in a row."""
        best = max(row.tokens, key=lambda token: token.p or 0.0, default=None) if row is not None else None
        if best is None or best.p is None:
            return ((READ["unreported.last" if last else "unreported"], ""),)
        exact = not self.story and self.rule != "greedy"
        chance = READ["chance"].format(chance=numbers.probability(best.p)) if exact else ""
        return (READ["wants"], ""), (self.texts(best.id), "token"), (chance + (READ["last"] if last else ""), "")

    # --- title, note, formula ---

    def title(self, reading: bool) -> str:
        """The panel's name."""
        if not self.round.drafts:
            return TITLES["plain"]
        if reading:
            return TITLES["read"].format(answers=numbers.count(len(self.round.drafts) + 1))
        return TITLES["choice" if self.chosen else "coin"]

    def legend(self) -> str:
        """What p and q are, where a bar is made of them."""
        if self.story or not self.shown or not self.round.drafts:
            return ""
        return LEGENDS.get("copied" if self.copied and self.rule == "coin" else self.rule, "")

    def note(self, focus: Draft | None, reading: bool) -> Spans:
        """One sentence under the title: about the draft in focus, else about the rule."""
        if not self.round.drafts:
            return ((HINTS[why_plain(self.round, self._left())], ""),)
        if not self.shown:
            return ((HINTS["copied" if self.copied else "drafted"], ""), *self._short())
        if reading:
            count = len(self.round.drafts)
            return (
                (HINTS["read"].format(drafts="its draft" if count == 1 else f"all {numbers.count(count)} drafts"), ""),
            )
        if focus is not None and focus.accept_prob is None:
            return ((HINTS["unreported"], ""),)
        if focus is None or self.story:
            return ((HINTS.get(self.rule, HINTS["closing"]), ""),)
        return self._chances(focus) or ((HINTS.get(self.rule, ""), ""),)

    def _chances(self, draft: Draft) -> Spans:
        """The two chances that are easily confused: of a draft before it was drawn, and of this one."""
        before = draft.row.expected_accept if draft.row is not None else None
        assert draft.accept_prob is not None
        text, this = self.texts(draft.id), numbers.part(draft.accept_prob, beside=before)
        if self.copied and self.rule in ("coin", "gumbel_coupling", "token_match"):
            return fill(NOTES["copied"], draft=text, this=this)
        if before is None or self.rule not in NOTES or draft.row is None:
            return ()
        if self.rule == "coin" and draft.row.tv == 0:
            return fill(NOTES["same"])
        if self.rule == "coin" and before == 0:
            return fill(NOTES["disjoint"])
        # Under Gumbel coupling the chance of agreement stands beside 1 − TV.
        shared = 1.0 - draft.row.tv if draft.row.tv is not None else None
        beside = shared if self.rule == "gumbel_coupling" else draft.accept_prob
        most = numbers.part(shared, beside=before) if shared is not None else "–"
        return fill(NOTES[self.rule], before=numbers.part(before, beside=beside), this=this, draft=text, most=most)

    def _short(self) -> Spans:
        """Why there are fewer drafts than gamma, once all of them are on the table."""
        count, gamma = len(self.round.drafts), _settings(self.round).get("gamma")
        all_there = events.drafted(self.round, self.event) == count
        if not all_there or not isinstance(gamma, int) or count >= gamma:
            return ()
        drafts = "one draft" if count == 1 else f"{numbers.count(count)} drafts"
        if self.round.gave_up:
            return ((" " + NOTES["short.unsure"].format(count=drafts), ""),)
        left = self._left()
        if left is not None and left == count + 1:
            return ((" " + NOTES["short"].format(count=drafts, left=f"{left} tokens"), ""),)
        return ((" " + NOTES["short.copy"].format(count=drafts), ""),) if self.copied else ()

    def _left(self) -> int | None:
        """How many tokens could still be written when the round began."""
        if self.trace is None or self.trace.header.max_new_tokens is None:
            return None
        return self.trace.header.max_new_tokens - self._written()

    def _written(self) -> int:
        """How many tokens of the text stand before the round."""
        return self.round.position - len(self.trace.header.prompt_ids) if self.trace is not None else 0

    def formula(self, focus: Draft | None) -> str | None:
        """The rule's formula with the focused draft's numbers."""
        if focus is None or self.rule not in FORMULAS or focus.p is None or focus.q is None:
            return None
        p, q = numbers.factors(focus.p, focus.q)
        name = "copied" if self.copied and self.rule == "coin" else self.rule
        accept = numbers.part(focus.accept_prob, beside=focus.coin) if focus.accept_prob is not None else "–"
        return FORMULAS[name].format(p=p, q=q, accept=accept)


def _settings(round_: Round) -> Mapping[str, Any]:
    return round_.settings or {}


def _lead(row: Row | None) -> str:
    """How far the target's first choice is ahead of its second, in logits."""
    top = row.target_top2 if row is not None else None
    if top is None or len(top) < 2 or top[0][1] is None or top[1][1] is None:
        return ""
    return f"{top[0][1] - top[1][1]:.2g}"


def _coins(round_: Round, *, would_be: bool) -> tuple[float | None, ...]:
    """The coin of every draft; for drafts never judged the one it would have met, where the record's seed tells."""
    recorded = tuple(draft.coin for draft in round_.drafts)
    seed = _settings(round_).get("seed")
    if not would_be or None not in recorded or not isinstance(seed, int) or rule_of(round_) not in ("coin", "block"):
        return recorded
    from specviz.noise import RoundNoise  # NumPy

    by_round = rule_of(round_) == "block"
    made = RoundNoise(seed, round_.position, by_round=by_round).accept(len(recorded)).tolist()
    # Another engine's run has another engine's coins: ours count only where they are the ones that fell.
    ours = all(coin is None or coin == own for coin, own in zip(recorded, made, strict=True))
    return tuple(made) if ours and any(coin is not None for coin in recorded) else recorded


def _table(round_: Round, lines: tuple[Line, ...], closing: Close | None, shown: bool) -> Table:
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
        rows.append((str(closing.place), closing.token, "", "", closing.words, FATES[closing.kind].word))
    return Table(f"Round {round_.index + 1}", ("place", "token", "p", "q", "chance", "fate"), tuple(rows))


def _read_table(round_: Round, read: tuple[Answer, ...]) -> Table:
    rows = tuple(
        (str(row.seen + 1), row.sees, plain(row.answer), plain(row.words).removeprefix("draft ") or "–") for row in read
    )
    return Table(f"The read of round {round_.index + 1}", ("row", "sees", "answers", "the draft"), rows)
