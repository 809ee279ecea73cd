"""The place: what each model wanted at one position, one row a token.

On one baseline: of each token, what both models give it is ``both`` = min(p, q); beyond it only the target (p − q) or
only the drafter (q − p). Over all rows, the one for "others" included, the three add up to alpha, TV and TV. Where a
rule does not look at p and q as they are, every model has a lane instead: greedy shows both before temperature 0,
Gumbel coupling the race of :mod:`specviz.figures.race`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from specviz.figures import events, numbers, race
from specviz.figures.events import Event
from specviz.figures.race import Lane, Race
from specviz.figures.sentences import Spans, fill, rule_of
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
MODELS = {"both": ("target", "drafter"), "waiting": ("drafter",), "alone": ("target",)}
WHO = {"both": "each model", "waiting": "the drafter", "alone": "the target"}
NOTES = {
    "waiting": "The drafter has spoken; the target has not been asked.",
    "bonus": "Every draft stayed. No draft stands here: the target speaks alone.",
    "plain": "No drafts: plain decoding, one token a read.",
    "nothing": "Nothing to copy this round: the target speaks alone.",
    "unsure": "The drafter was not sure enough to draft: the target speaks alone.",
    "short": "Nothing was drafted: only one token was left to write.",
    "race": "Each token gets one random distance, the same for both models; its speed is its probability, "
    "its time distance over speed. The first home wins.",
    "race.one": "Each token gets one random distance; its speed is its probability, its time distance over speed. "
    "The first home wins.",
    "pale": "Pale: before temperature 0, each drawn relative to its model’s first choice. Only the boxed ones count.",
    "identical": "Identical: always kept, no gap to refill.",
    "disjoint": "Nothing in common: every draft dies here.",
    "copied": "Copied from the text so far: the drafter puts everything on {draft}.",
    "draws": "Two independent draws: the drafter drew {draft}, the target drew {target}.",
    "drew": "Two independent draws: the drafter drew {draft}; what the target drew comes with the verdict.",
    "unread": "Two independent draws: the drafter drew {draft}; the target’s own draw was not needed.",
    "owed": "The drafts before this place came up more often than the target wants them: only {times} should go on "
    "from here. So it still wants w·p of each token, not all of p.",
    "cold": "Temperature 0: each model wants its first choice and nothing else.",
    "cold.target": "The target at temperature 0 wants its first choice and nothing else.",
    "cold.drafter": "The drafter at temperature 0 offers its first choice and nothing else.",
    "no p": "This engine does not report p.",
    "no q": "This engine does not report q.",
    "unknown": "This engine does not report p and q.",
    "no rest": "This record leaves out the rest of the vocabulary: nothing is added up.",
}
BEYOND = "▸ comes home later than the picture is wide."
WORDS = {"draft": "draft", "target": "target’s pick", "drawn": "target’s draw", "plain": "written"}
BEST = {
    "one": "best: {one}",
    "two": "best: {one} (target), {two} (drafter)",
    "none": "none of them runs",
    "unknown": "best not recorded",
}
HEADS = {"target": "p target", "drafter": "q drafter", "owed": "w·p"}
LANE_HEADS = {
    "race": {"target": "target’s time", "drafter": "drafter’s time"},
    "pale": {"target": "target’s logit", "drafter": "drafter’s logit"},
}
REACH = "{count:,} ids the drafter can say; the target’s mass elsewhere: {mass}"
REACH_WAITING = "{count:,} ids the drafter can say"
FORMULAS = {
    "shared": "α = Σ min(p, q) = {alpha}\nTV = ½ Σ |p − q| = {tv}\nα + TV = 1",
    "alone": "Σ p = 1",
    "race": "distance E = exp(−g)\nhome at E / p = exp(−(log p + g)): the largest log p + g wins",
    "owed": "w = {weight}\na correction here: ∝ max(w·p − q, 0)",
    "match": "chance of a match = Σ p·q = {chance}",
}
MATCH = "Two draws match here {times}."

Names = dict[int, tuple[str, str]]
"""Of a token: the fate whose sign it wears, and a word."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One row: ``p`` and ``q`` are None where they are not known (yet), the parts are in [0, 1].

    ``sign`` is the fate of a token that stood here, ``word`` what it was, ``written`` its numbers under the panel's
    ``heads``. ``owed`` is w·p where block verification's w is below 1. ``target`` and ``drafter`` are the lanes of a
    panel that has lanes, ``formula`` the same lanes as sums.
    """

    label: str
    p: float | None
    q: float | None
    both: float
    only_target: float
    only_drafter: float
    sign: str = ""
    word: str = ""
    written: tuple[str, ...] = ()
    owed: float | None = None
    target: Lane | None = None
    drafter: Lane | None = None
    formula: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """The whole panel.

    ``mode``: on one baseline "shared" (p and q), "waiting" (q only) or "alone" (p only); in lanes "race" or "pale"
    (greedy); or "unknown". ``models`` are those that can be seen. ``longest`` is the longest bar, for the scale.
    ``shared`` is alpha as written on the last row, ``shared_times`` the same in words. ``beside`` is what else there is
    to say about the picture, ``reach`` how much of the vocabulary the drafter can say.
    """

    title: str
    mode: str
    note: Spans
    models: tuple[str, ...] = ()
    heads: tuple[str, ...] = ()
    bars: tuple[Bar, ...] = ()
    others: Bar | None = None
    together: Bar | None = None
    longest: float = 1.0
    shared: str = ""
    shared_times: str = ""
    beside: str = ""
    reach: str = ""
    formula: str | None = None
    table: Table = field(default_factory=lambda: Table("", (), ()))


@dataclass(frozen=True, slots=True)
class _Here:
    """What is known of the place at the event: ``side`` is "both", "waiting" (q only) or "alone" (p only)."""

    round: Round
    draft: Draft | None
    row: Row
    side: str
    mode: str
    names: Names
    weight: float | None
    texts: Texts

    @property
    def models(self) -> tuple[str, ...]:
        return MODELS[self.side]

    @property
    def match(self) -> float | None:
        """The chance that two independent draws are the same token, where the rule makes two."""
        both = self.side == "both" and rule_of(self.round) == "token_match"
        return self.row.expected_accept if both else None

    def setting(self, name: str) -> object:
        return (self.round.settings or {}).get(name)


def layout(trace: Trace, round_: Round, event: Event, texts: Texts, *, selected: int | None) -> Place:
    """The place of draft ``selected`` of ``round_`` (None: of the bonus or plain token) as known at ``event``."""
    draft = round_.drafts[selected] if selected is not None else None
    closing = round_.closing if events.closed(round_, event) else None
    row = draft.row if draft is not None else closing.row if closing is not None else None
    before = list(trace.text_ids[: round_.position - len(trace.header.prompt_ids)])
    before += [d.id for d in round_.drafts[: len(round_.drafts) if selected is None else selected]]
    read = events.read(round_, event)
    side = _side(row, read)
    who = WHO[side or ("both" if read else "waiting")]
    title = TITLES["after" if before else "first"].format(text=texts.tail(before) if before else "", who=who)
    if row is None or side is None:
        return Place(title, "unknown", fill(NOTES["unknown"]), table=Table(title, ("token", "p", "q"), ()))
    here = closing if closing is not None and (selected is None or selected == round_.kept) else None
    standing = events.standing(round_, selected, event) if selected is not None else None
    names = _names(draft, standing, here, rule_of(round_))
    weight = round_.drafts[selected - 1].weight if selected and side == "both" else None
    owed = weight if weight is not None and weight < 1 else None
    return _panel(title, _Here(round_, draft, row, side, _mode(round_, row, side), names, owed, texts), read, standing)


def _side(row: Row | None, read: bool) -> str | None:
    """Which laws can be shown."""
    tokens = row.tokens if row is not None else ()
    p, q = read and any(token.p is not None for token in tokens), any(token.q is not None for token in tokens)
    return {(True, True): "both", (False, True): "waiting", (True, False): "alone"}.get((p, q))


def _mode(round_: Round, row: Row, side: str) -> str:
    rule = rule_of(round_)
    if rule == "gumbel_coupling" and race.recorded(row):
        return "race"
    if rule == "greedy" and all(
        any(_logit(token, model) is not None for token in row.tokens) for model in MODELS[side]
    ):
        return "pale"
    return "shared" if side == "both" else side


def _names(draft: Draft | None, standing: str | None, closing: Closing | None, rule: str) -> Names:
    """What is known of the tokens that matter here: the draft, the target's own choice, the closing token."""
    names: Names = {}
    if draft is not None:
        names[draft.id] = (standing or "", WORDS["draft"])
        if standing in ("kept", "rejected") and draft.target_id not in (None, draft.id):
            names[draft.target_id] = ("", WORDS["drawn" if rule == "token_match" else "target"])
    if closing is not None:
        sign = closing.kind or "plain"
        names[closing.id] = (sign, WORDS["plain"] if sign == "plain" else sign)
    return names


def _panel(title: str, here: _Here, read: bool, standing: str | None) -> Place:
    shown = _chosen_tokens(here)
    bars = tuple(_bar(token, here) for token in shown)
    others = _others(here, shown)
    every = (*bars, *((others,) if others else ()))
    whole = here.row.rest is not None and here.row.rest.p is not None
    together = sum_up(every, here.side) if whole and here.mode != "pale" and others is not None else None
    alpha = together.both if together is not None and here.side == "both" else None
    heads = tuple(LANE_HEADS.get(here.mode, HEADS)[model] for model in here.models)
    place = Place(
        title=title,
        mode=here.mode,
        note=_note(here, read, standing),
        models=here.models,
        heads=heads + ((HEADS["owed"],) if here.weight is not None and here.mode == "shared" else ()),
        bars=bars,
        others=others,
        together=together,
        longest=max((bar.both + max(bar.only_target, bar.only_drafter) for bar in every), default=1.0) or 1.0,
        shared=numbers.probability(alpha) if alpha is not None else "",
        shared_times=numbers.odds(alpha) if alpha is not None else "",
        beside=_beside(here, every),
        reach=_reach(here),
        formula=_formula(here, alpha),
    )
    return replace(place, table=as_table(place))


# --- rows -------------------------------------------------------------------------------------------------------------


def _chosen_tokens(here: _Here) -> list[Token]:
    """The tokens to show: those named and both winners always, the rest by what either model gives them."""
    tokens, runs = here.row.tokens, Race(here.row, here.models)

    def given(token: Token) -> float:
        if here.mode == "race":
            return 1 / runs.finish(token)
        return max(
            _chance(token, model) if here.mode != "pale" else _relative(token, model, here.row) for model in here.models
        )

    ranked = sorted(tokens, key=given, reverse=True)
    must = set(here.names) | {max(tokens, key=lambda token: _chance(token, model)).id for model in here.models}
    if here.mode == "race":
        must = set(here.names) | runs.winners()
    free = max(ROWS - sum(token.id in must for token in ranked), 0)
    chosen = [token for token in ranked if token.id in must]
    chosen += [token for token in ranked if token.id not in must and given(token) > 0][:free]
    return sorted(chosen, key=given, reverse=True)


def _chance(token: Token, model: str) -> float:
    return (token.p if model == "target" else token.q) or 0.0


def _logit(token: Token, model: str) -> float | None:
    return token.target_logit if model == "target" else token.drafter_logit


def _relative(token: Token, model: str, row: Row) -> float:
    """exp(logit − largest logit): the probability before temperature 0, relative to the first choice's."""
    logit = _logit(token, model)
    best = max((value for value in (_logit(other, model) for other in row.tokens) if value is not None), default=0.0)
    return math.exp(logit - best) if logit is not None else 0.0


def _bar(token: Token, here: _Here) -> Bar:
    p = token.p if "target" in here.models else None
    q = token.q if "drafter" in here.models else None
    both = min(p, q) if p is not None and q is not None else 0.0
    bar = bar_of(here.texts(token.id), p, q, both, None if here.weight is None else here.weight * (p or 0.0))
    sign, word = here.names.get(token.id, ("", ""))
    bar = replace(bar, sign=sign, word=word)
    if here.mode == "race":
        return _with_lanes(bar, Race(here.row, here.models), dict.fromkeys(here.models, token))
    if here.mode == "pale":
        lanes = {m: Lane(_relative(token, m, here.row), first=_chance(token, m) == 1) for m in here.models}
        logits = (_logit(token, model) for model in here.models)
        written = tuple("never" if x is None else f"{x:.1f}".replace("-", "−") for x in logits)
        return replace(bar, written=written, target=lanes.get("target"), drafter=lanes.get("drafter"))
    return bar


def _with_lanes(bar: Bar, runs: Race, runners: dict[str, Token | None]) -> Bar:
    """The row of a race; ``runners`` are who runs in each lane: one token, or the best of the others."""
    lanes = {model: runs.lane(token, model) for model, token in runners.items()}
    one = next(iter(runners.values()))
    return replace(
        bar,
        written=tuple(runs.written(token, model) for model, token in runners.items()),
        target=lanes.get("target"),
        drafter=lanes.get("drafter"),
        formula=runs.formula(one) if all(token is one for token in runners.values()) else "",
    )


def bar_of(label: str, p: float | None, q: float | None, both: float, owed: float | None = None) -> Bar:
    """A row on the baseline: ``both`` is what the two give it alike, for many tokens the sum of that."""
    written = numbers.told_apart(*(x for x in (p, q, owed) if x is not None))
    return Bar(label, p, q, both, max((p or 0.0) - both, 0.0), max((q or 0.0) - both, 0.0), written=written, owed=owed)


def _others(here: _Here, shown: Sequence[Token]) -> Bar | None:
    """Everything not shown, with its true overlap: listed tokens that found no row, and the rest of the vocabulary."""
    rest, left = here.row.rest, [token for token in here.row.tokens if token not in shown]
    if here.mode == "pale" or rest is None:
        return None
    p = _sum(rest.p, left, "target") if "target" in here.models else None
    q = _sum(rest.q, left, "drafter") if "drafter" in here.models else None
    both = 0.0
    if here.side == "both":
        if p is None or q is None or rest.overlap is None:
            return None
        both = rest.overlap + sum(min(_chance(token, "target"), _chance(token, "drafter")) for token in left)
    elif p is None and not q:  # nothing more was offered, or nothing is known
        return None
    count = (rest.count or 0) + len(left)
    owed = here.weight * p if here.weight is not None and p is not None else None
    bar = bar_of(f"{count:,} {'other' if count == 1 else 'others'}", p, q, both, owed)
    if here.mode != "race":
        return bar
    runs = Race(here.row, here.models)
    runners = {model: runs.best(left, model) for model in here.models}
    named = list(dict.fromkeys(here.texts(token.id) for token in runners.values() if token is not None))
    known = all(runs.knows(model) for model in here.models)
    word = BEST["unknown" if not known else ("none", "one", "two")[len(named)]]
    word = word.format(one=named[0] if named else "", two=named[-1] if named else "")
    bar = replace(_with_lanes(bar, runs, runners), word=word)
    return bar if known else replace(bar, written=("–",) * len(here.models))


def _sum(rest: float | None, left: Sequence[Token], model: str) -> float | None:
    return None if rest is None else rest + sum(_chance(token, model) for token in left)


def sum_up(bars: Sequence[Bar], side: str) -> Bar | None:
    """The last row: all rows added up, as far as the models of this ``side`` are known."""
    if side == "waiting":
        return None
    both, only_target, only_drafter = (
        _whole(math.fsum(getattr(bar, part) for bar in bars)) for part in ("both", "only_target", "only_drafter")
    )
    if side == "alone":
        return Bar("all together", only_target, None, 0.0, only_target, 0.0, written=("1",))
    shared = numbers.probability(both)
    gaps = (numbers.complement(shared, only_target), numbers.complement(shared, only_drafter))
    p, q = _whole(both + only_target), _whole(both + only_drafter)
    return Bar("all together", p, q, both, only_target, only_drafter, written=gaps)


def _whole(total: float) -> float:
    """The sum of many terms, without its rounding error where it can only be 0 or 1."""
    near = round(total)
    return float(near) if abs(total - near) < ROUNDING else total


# --- words ------------------------------------------------------------------------------------------------------------


def _note(here: _Here, read: bool, standing: str | None) -> Spans:
    """What this picture is, in a sentence or two."""
    row, rule, draft = here.row, rule_of(here.round), here.draft
    said = here.texts(draft.id) if draft is not None else ""
    copied = here.setting("drafter") == "ngram"
    if here.mode == "race":
        return fill(NOTES["race" if here.side == "both" else "race.one"])
    if here.mode == "pale":
        return fill(NOTES["pale"])
    if here.side == "waiting":
        note = fill(NOTES["no p" if read else "waiting"])
        return note if read or not copied else note + fill(" " + NOTES["copied"], draft=said)
    if draft is None:
        drafted = bool(here.round.drafts)
        short = "short" if here.setting("gamma") and here.setting("drafter") != "none" else "plain"
        plain = "unsure" if here.round.gave_up else "nothing" if copied else short
        return fill(NOTES["bonus" if drafted else plain])
    if here.side == "alone":
        return fill(NOTES["no q"])
    if here.weight is not None:
        return fill(NOTES["owed"], times=numbers.times(here.weight))
    if rule == "token_match":
        key = "drew" if standing == "waiting" else "unread" if draft.target_id is None else "draws"
        return fill(NOTES[key], draft=said, target=here.texts(draft.target_id) if draft.target_id is not None else "")
    if row.tv in (0, 1):
        return fill(NOTES["identical" if row.tv == 0 else "disjoint"])
    if copied:
        return fill(NOTES["copied"], draft=said)
    cold = [name for name in ("temperature", "drafter_temperature") if here.setting(name) == 0]
    if cold:
        return fill(NOTES["cold" if len(cold) == 2 else "cold.target" if cold == ["temperature"] else "cold.drafter"])
    return fill(NOTES["no rest"]) if row.rest is None or row.rest.overlap is None else ()


def _beside(here: _Here, bars: Sequence[Bar]) -> str:
    """Of lanes that leave the picture, or the chance of a match."""
    if any(lane is not None and lane.beyond for bar in bars for lane in (bar.target, bar.drafter)):
        return BEYOND
    return MATCH.format(times=numbers.times(here.match)) if here.match is not None else ""


def _reach(here: _Here) -> str:
    row = here.row
    size = len(row.tokens) + ((row.rest.count or 0) if row.rest is not None else 0)
    if row.drafter_ids is None or row.drafter_ids >= size:
        return ""
    # At temperature 0 all of the target's mass is on its first choice: nothing to say about.
    mass = row.target_mass_elsewhere if "target" in here.models and here.mode != "pale" else None
    template = REACH if mass is not None else REACH_WAITING
    return template.format(count=row.drafter_ids, mass=numbers.probability(mass))


def _formula(here: _Here, alpha: float | None) -> str | None:
    told = [FORMULAS["race"]] if here.mode == "race" else []
    if here.mode == "alone":
        told.append(FORMULAS["alone"])
    if here.weight is not None:
        told.append(FORMULAS["owed"].format(weight=numbers.probability(here.weight)))
    if here.match is not None:
        told.append(FORMULAS["match"].format(chance=numbers.probability(here.match)))
    if alpha is not None:
        shared, gap = numbers.told_apart(alpha, 1 - alpha) if alpha != 0.5 else ("0.50", "0.50")
        told.append(FORMULAS["shared"].format(alpha=shared, tv=gap))
    return "\n".join(told) or None


def as_table(place: Place) -> Table:
    """The same in numbers. Before the target has read, what the two share is not known: a dash."""
    every = [*place.bars, *(bar for bar in (place.others, place.together) if bar is not None)]
    if place.mode in LANE_HEADS:
        lanes = [bar for bar in every if bar is not place.together]
        firsts = {
            "race": ("first home in", "the target’s race", "the drafter’s race"),
            "pale": ("first choice of", "the target", "the drafter"),
        }
        lead, *who = firsts[place.mode]

        def first(bar: Bar) -> str:
            won = [
                name
                for name, lane in zip(who, (bar.target, bar.drafter), strict=True)
                if lane is not None and lane.first
            ]
            return f"{lead} {' and '.join(won)}" if won else ""

        rows = tuple((bar.label, *bar.written, bar.word, first(bar)) for bar in lanes)
        return Table(place.title, ("token", *place.heads, "", "first"), rows)
    owed = HEADS["owed"] in place.heads
    rows = tuple(
        (
            bar.label,
            numbers.probability(bar.p),
            numbers.probability(bar.q),
            *((numbers.probability(bar.owed),) if owed else ()),
            *(
                numbers.probability(x if place.mode != "waiting" else None)
                for x in (bar.both, bar.only_target, bar.only_drafter)
            ),
            bar.word,
        )
        for bar in every
    )
    heads = ("token", "p", "q", *((HEADS["owed"],) if owed else ()), "both", "only the target", "only the drafter", "")
    return Table(place.title, heads, rows)
