"""What two models share at one place, and what becomes of a draft there under every rule, before one is drawn."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from specviz import losslessness
from specviz.figures import exact, numbers, place
from specviz.figures.exact import Bar, Exact, Frame, Label
from specviz.figures.place import Place
from specviz.figures.sentences import Spans, fill
from specviz.figures.table import Table
from specviz.probability import Array, overlap, top_n, total_variation
from specviz.rules import WRONG_DRAFTS
from specviz.theory import gumbel_match

if TYPE_CHECKING:
    from specviz.losslessness import Entrant

FEWEST, MOST = 2, 12
"""Tokens that are bent by hand."""
ROWS, COLUMNS = 7, 5
"""Tokens shown of a large vocabulary: on the baseline, and under every rule."""
SCALES = (0.25, 0.5, 1.0)
"""Where the scale of a place that is bent by hand may end."""
ROUNDING = 10.0**-numbers.MOST_DIGITS

PRESETS: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "default": ((0.5, 0.3, 0.2), (0.2, 0.3, 0.5)),
    "classic": ((0.6, 0.2, 0.1, 0.1), (0.7, 0.2, 0.05, 0.05)),
    "equal": ((0.4, 0.3, 0.2, 0.1), (0.4, 0.3, 0.2, 0.1)),
    "disjoint": ((0.6, 0.4, 0.0, 0.0), (0.0, 0.0, 0.7, 0.3)),
    "greedy drafter": ((0.5, 0.3, 0.2), (1.0, 0.0, 0.0)),
    "sharp target": ((0.9, 0.04, 0.03, 0.03), (0.25, 0.25, 0.25, 0.25)),
    "sharp drafter": ((0.25, 0.25, 0.25, 0.25), (0.9, 0.04, 0.03, 0.03)),
}
"""Pairs of p and q by name."""

FACTS = {
    "story": "A coin keeps a draft here [{times}]: that is what the two share. All other times the draft goes, and the "
    "target fills the gap.",
    "equal": "[Identical:] a coin keeps whatever is drafted here, and no gap is left to refill.",
    "disjoint": "[Nothing in common:] every draft dies here, and the target writes its own.",
    "shared": "{alpha} shared (alpha): stays under a coin",
    "tv": "{tv} apart (TV distance): goes, and as much fills the gaps",
    "match": "{match} the same token, when both pick with the same noise",
    "draws": "{draws} the same token, when each draws for itself",
}
FORMULA = (
    "α = Σ min(p, q) = {alpha}\nTV = ½ Σ |p − q| = {tv} = 1 − α\n"
    "P(match) = Σ 1 / Σ max(p(y)/p(x), q(y)/q(x)) = {match}\nΣ p·q = {draws}"
)
UNDER = {
    "title": "The same place under every rule",
    "note": "No token is drawn yet. How often would a draft stay, and what comes out, beside what the target wants?",
    "kept": "kept {kept}",
    "kept.story": "kept {times}",
    "block": "{kept} where it is alone; in a longer block the drafts behind it decide too",
    "exact": "exact",
    "off": "{off} off",
    "off.story": "{odds} come out wrong",
    "lucky": "by luck nothing is off here: {change} to see it",
    "outline": "what the target wants",
    "both": "comes out as wanted",
    "only_drafter": "comes out too often",
    "missing": "An outline that stays empty: too seldom.",
}
LUCK = {
    "sure": "the target wants a single token",
    "disjoint": "p and q share no token",
    "drafter_sure": "the drafter wants a single token",
    "lie": "what the drafter reports happens to be true",
    "equal": "p and q are the same",
    "other": "q happens to suit it",
}
"""Why nothing is off under a wrong rule."""
BENDS = {
    "sure": "let the target want two tokens",
    "disjoint": "let p and q share a token",
    "drafter_sure": "let the drafter want two tokens",
    "lie": "bend q",
    "equal": "bend p and q apart",
    "other": "bend q",
}
"""How a pair that is bent by hand shows the fault."""
MOVES = {
    "above": "set the {model}’s temperature above 0",
    "off": "set the {model}’s temperature off 1",
    "to": "set the {model}’s temperature to 1",
    "top_k": "raise top-k",
    "top_p": "raise top-p",
    "elsewhere": "take another place",
}
TRIED = 64
"""Tokens of each model, the likeliest, that other settings are tried on."""
UNDER_FORMULA = (
    "speculative sampling: min(p, q) + (1 − α)·residual = p\n"
    "Gumbel: P(argmax(log p + g) = x) = p(x)\n"
    "token match: p·q + p·(1 − q) = p\n"
    "dealt from p instead: min(p, q) + (1 − α)·p ≠ p\n"
    "distance: TV between what comes out and p"
)


@dataclass(frozen=True, slots=True)
class Facts:
    """What two laws share: a sentence, the numbers a line each, and the formulas with them."""

    story: Spans
    numbers: tuple[str, ...]
    formula: str


def facts(p: Array, q: Array) -> Facts:
    """What p and q, both (vocab,), share, and how often each way of agreeing happens."""
    alpha, tv = (_whole(float(law(p, q))) for law in (overlap, total_variation))
    which = "equal" if alpha == 1 else "disjoint" if alpha == 0 else "story"
    match, draws = _whole(float(gumbel_match(p, q))), _whole(float(np.sum(p * q)))
    shared = numbers.probability(alpha)
    written = {"alpha": shared, "tv": numbers.complement(shared, tv)}
    written |= {"match": _beside(match, alpha, shared), "draws": _beside(draws, alpha, shared)}
    return Facts(
        story=fill(FACTS[which], times=numbers.times(alpha)),
        numbers=tuple(FACTS[key].format(**written) for key in ("shared", "tv", "match", "draws")),
        formula=FORMULA.format(**written),
    )


def _beside(value: float, alpha: float, shared: str) -> str:
    """A number beside what is ``shared``, which is written alike all over the page: with more digits, at most four,
    where it is another number and two would not tell."""
    written = [numbers.probability(value, digits) for digits in (2, 3, 4)]
    return next((one for one in written if abs(value - alpha) < ROUNDING or one != shared), written[-1])


def _whole(value: float) -> float:
    """A sum of many terms, without its rounding error where it can only be 0 or 1."""
    near = round(value)
    return float(near) if abs(value - near) < ROUNDING else min(max(value, 0.0), 1.0)


# --- the picture ------------------------------------------------------------------------------------------------------


def likeliest(p: Array, q: Array, most: int) -> tuple[int, ...]:
    """The ids that matter most to either model, at most so many, the likeliest first."""
    given = np.maximum(p, q)
    ids = top_n(given, min(most, given.shape[-1]))[1]
    return tuple(int(token_id) for token_id in ids if given[token_id] > 0)


def picture(
    p: Array,
    q: Array,
    ids: Sequence[int],
    called: Callable[[int], str],
    *,
    title: str,
    note: Spans = (),
    story: bool = False,
) -> Place:
    """Both laws on one baseline: a row for each of ``ids`` and one for all the others, as at a place of a run.

    Args:
        p: the target's law, shape (vocab,).
        q: the drafter's law, shape (vocab,).
        ids: the tokens that have a row, in this order.
        called: a token's name.
        title: the panel's heading.
        note: a sentence under it.
        story: without the columns of numbers.
    """
    both = np.minimum(p, q)
    bars = tuple(place.bar_of(called(i), float(p[i]), float(q[i]), float(both[i])) for i in ids)
    left = p.shape[-1] - len(bars)
    others = None
    if left:
        rest = [max(float(law.sum() - law[list(ids)].sum()), 0.0) for law in (p, q, both)]
        others = place.bar_of(f"{left:,} {'other' if left == 1 else 'others'}", *rest)
    every = (*bars, *((others,) if others else ()))
    together = place.sum_up(every, "both")
    assert together is not None
    shown = Place(
        title=title,
        mode="shared",
        note=note,
        models=place.MODELS["both"],
        heads=() if story else tuple(place.HEADS[model] for model in place.MODELS["both"]),
        bars=bars,
        others=others,
        together=together,
        longest=max(bar.both + max(bar.only_target, bar.only_drafter) for bar in every),
        shared=numbers.probability(together.both),
        shared_times=numbers.odds(together.both),
    )
    return replace(shown, table=place.as_table(shown))


def scale(*laws: Sequence[float]) -> float:
    """Where the scale of laws that are bent by hand ends: a bar that reaches it can be bent on."""
    longest = max(max(law) for law in laws)
    return next((end for end in SCALES if longest < end), SCALES[-1])


# --- every rule -------------------------------------------------------------------------------------------------------


def rules(
    entrants: Sequence[Entrant],
    ids: Sequence[int],
    labels: Sequence[str],
    named: Mapping[str, tuple[str, str]],
    *,
    change: Callable[[Entrant], str],
    story: bool,
) -> Exact:
    """The place under every rule, a frame each, in the form of :mod:`specviz.figures.exact`.

    Args:
        entrants: rules and wrong drafts, each with its own p and q.
        ids: the tokens that have a bar; all others have one together.
        labels: what those tokens are called.
        named: of each entrant's name, what it is called and a sentence.
        change: what shows the fault of a wrong rule that by luck shows none, see :func:`change`.
        story: in words, without sizes.
    """
    vocab = entrants[0].p.shape[-1]
    left = vocab - len(ids)
    shown = [Label(label) for label in labels]
    shown += [Label(f"{left:,} {'other' if left == 1 else 'others'}", rest=True)] if left else []
    names = tuple(label.token for label in shown)
    captions = [f"{_kept(one, story=story)} · {_comes_out(one, change, story=story)}" for one in entrants]
    frames = [
        _frame(entrant, ids, names, named[entrant.name], caption)
        for entrant, caption in zip(entrants, captions, strict=True)
    ]
    # One scale for all that want the same; where the target is at temperature 0 it would leave no room for the others.
    tops = [frame.highest or 0.0 for frame, entrant in zip(frames, entrants, strict=True) if entrant.name != "greedy"]
    frames = [
        frame if entrant.name == "greedy" else replace(frame, highest=None)
        for frame, entrant in zip(frames, entrants, strict=True)
    ]
    legend = ["outline", "both"] + ["only_drafter"] * any(bar.over > 0 for frame in frames for bar in frame.bars)
    return Exact(
        title=UNDER["title"],
        where="",
        note=fill(UNDER["note"]) + (fill(" " + UNDER["missing"]) if len(legend) > 2 else ()),
        legend=tuple((meaning, UNDER[meaning]) for meaning in legend),
        labels=tuple(shown),
        frames=tuple(frames),
        highest=max(tops, default=1.0),
        can_deal=False,
        dealt=(),
        why=(),
        formula=UNDER_FORMULA,
        table=_table(entrants, ids, names, [named[entrant.name][0] for entrant in entrants]),
    )


def _frame(entrant: Entrant, ids: Sequence[int], names: Sequence[str], named: tuple[str, str], caption: str) -> Frame:
    wanted, comes = _on(entrant.p, ids), _on(entrant.law, ids)
    bars = []
    for name, want, come in zip(names, wanted, comes, strict=True):
        error = come - want if abs(come - want) >= exact.SEEN else 0.0
        both, over = min(want, come), max(come - want, 0.0)
        over = over if over > ROUNDING else 0.0
        said = f"{name}: comes out {numbers.probability(_whole(come))}, wanted {numbers.probability(_whole(want))}"
        written = f"{error:+.2f}".replace("-", "−") if error else ""
        bars.append(Bar(want, (("both", both),), over, want, off=bool(written), error=written, words=said))
    return Frame(
        title=named[0],
        caption=caption,
        bars=tuple(bars),
        wrong=not entrant.exact,
        right=entrant.exact,
        hint=named[1],
        kept=entrant.alone,
        highest=max(bar.over_from + bar.over for bar in bars),
    )


def _kept(entrant: Entrant, *, story: bool) -> str:
    kept = _whole(entrant.alone)
    said = UNDER["kept.story" if story else "kept"].format(kept=numbers.probability(kept), times=numbers.times(kept))
    return UNDER["block"].format(kept=said) if entrant.kept is None else said


def _comes_out(entrant: Entrant, change: Callable[[Entrant], str], *, story: bool) -> str:
    if entrant.exact:
        return UNDER["exact"]
    if entrant.distance < ROUNDING:
        return UNDER["lucky"].format(change=change(entrant))
    return UNDER["off.story" if story else "off"].format(
        off=_size(entrant.distance), odds=numbers.odds(entrant.distance)
    )


def luck(entrant: Entrant) -> str:
    """Why nothing is off under a wrong rule, in words."""
    return LUCK[_hides(entrant)]


def change(entrant: Entrant, logits: tuple[Array, Array], settings: Mapping[str, Any], *, by_hand: bool) -> str:
    """What shows the fault of a wrong rule that by luck shows none: the fewest settings with which it was found.

    Args:
        entrant: by luck it is nowhere off.
        logits: the target's and the drafter's, (vocab,) each.
        settings: what :func:`specviz.losslessness.entrants` takes beside them.
        by_hand: the two can be bent, too.
    """
    ids = sorted({int(token) for row in logits for token in top_n(row, min(TRIED, row.shape[-1]))[1]})
    moves = _moves(settings)
    sets = [some for size in range(len(moves) + 1) for some in itertools.combinations(moves, size)]
    plain = np.log(np.arange(1.0, len(ids) + 1))
    for bent, pair in ((False, [row[ids] for row in logits]), (True, [plain[::-1], plain])):
        for some in sets[not bent :] if by_hand or not bent else ():
            moved = {**settings, **{key: value for _, key, value in some}}
            trials = losslessness.entrants(*pair, **moved)
            if next(one for one in trials if one.name == entrant.name).distance > ROUNDING:
                return " and ".join([told for told, _, _ in some] + [BENDS[_hides(entrant)]] * bent)
    return BENDS[_hides(entrant)] if by_hand else MOVES["elsewhere"]


def _moves(settings: Mapping[str, Any]) -> list[tuple[str, str, float]]:
    """Settings that can still be moved: in words, which, and to what."""
    moves = []
    for key, model in (("temperature", "target"), ("drafter_temperature", "drafter")):
        now = settings[key]
        how = "above" if now == 0 else "off" if now == 1 else "to"
        if how != "off" or model == "drafter":
            moves.append((MOVES[how].format(model=model), key, 0.5 if how == "off" else 1.0))
    moves += [(MOVES["top_k"], "top_k", 0)] if settings.get("top_k", 0) > 0 else []
    return moves + ([(MOVES["top_p"], "top_p", 1.0)] if settings.get("top_p", 1.0) < 1 else [])


def _hides(entrant: Entrant) -> str:
    """Why nothing is off under a wrong rule."""
    if entrant.p.max() == 1:
        return "sure"
    alpha = _whole(float(overlap(entrant.p, entrant.q)))
    if alpha == 0:
        return "disjoint"
    if entrant.drawn.max() == 1:
        return "drafter_sure"
    return "lie" if is_wrong_draft(entrant) else "equal" if alpha == 1 else "other"


def _size(distance: float) -> str:
    """A distance with two digits, more where those would be nothing."""
    return numbers.probability(distance, max(2, -math.floor(math.log10(distance)))) if distance > 0 else "0"


def _on(law: Array, ids: Sequence[int]) -> list[float]:
    """A law on the tokens that have a bar and, where there are any, on all others together."""
    chosen = [float(law[i]) for i in ids]
    return chosen + ([max(float(law.sum()) - math.fsum(chosen), 0.0)] if len(ids) < law.shape[-1] else [])


def _table(entrants: Sequence[Entrant], ids: Sequence[int], names: Sequence[str], titles: Sequence[str]) -> Table:
    rows = tuple(
        (
            title,
            "right" if entrant.exact else "wrong",
            numbers.probability(_whole(entrant.alone)),
            *(numbers.probability(_whole(chance)) for chance in _on(entrant.law, ids)),
            numbers.probability(entrant.distance if entrant.distance > ROUNDING else 0.0),
        )
        for title, entrant in zip(titles, entrants, strict=True)
    )
    return Table(UNDER["title"], ("rule", "", "kept", *names, "distance to p"), rows)


def is_wrong_draft(entrant: Entrant) -> bool:
    """Whether this is a right rule that is told a wrong q."""
    return entrant.name in WRONG_DRAFTS
