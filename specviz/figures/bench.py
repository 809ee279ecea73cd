"""The losslessness bench: what comes out of many draws, beside what the target wants there.

Chances are modelled and draws simulated; each figure says which it shows. Whether draws pass is decided by them alone:
what is known of the rule only tells a right one from luck, or from too few draws.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from specviz import losslessness
from specviz.figures import overlap, palette
from specviz.figures.charts import Panel, colour, escaped, figure, logarithmic
from specviz.figures.numbers import MOST_DIGITS, odds, probability, significant, times, told_apart
from specviz.figures.table import Table
from specviz.losslessness import Comparison, Entrant, Outcome
from specviz.probability import Array, total_variation

NameOf = Callable[[int], str]

BARS = 8
"""Tokens with a bar of their own where the vocabulary is large; the rest is one bar."""
CELLS = 5
"""Tokens of a large vocabulary that keep their name where two are written."""
NAMED = 6
"""Up to so many tokens a table of pairs has room for numbers."""
BY_HAND = 12
MISS = 0.01
"""Chance, at most, that anything of an exact rule lies outside its band."""
ROOM = 0.2
"""Part of the width that a share written beside its bar takes up."""
RARE, SURE = 1e-3, 1e-6
"""What an exact rule shows more rarely than the first is told; than the second, it is called wrong."""
OFF = 1e-9
"""Farther than this from the target's chances is no rounding."""

Judged = Literal["fits", "lucky", "hidden", "open", "wrong"]
"""They pass; so do those of a wrong rule that is right here; they pass although the rule is known to be off; an exact
rule rarely shows this; it never does."""
GLYPHS: dict[Judged, str] = {
    "fits": palette.FATES["kept"].glyph,
    "lucky": palette.FATES["kept"].glyph,
    "hidden": "?",
    "open": "?",
    "wrong": palette.FATES["rejected"].glyph,
}
MARKS: dict[Judged, tuple[str, str, str]] = {
    "fits": ("circle", "ink", "passes"),
    "lucky": ("circle-open-dot", "ink", "passes, by luck"),
    "hidden": ("circle-open", "ink", "passes, though known to be off"),
    "open": ("diamond-open", "ink", "unusual"),
    "wrong": ("x", "rejected", "wrong"),
}
"""How a verdict is drawn: symbol, colour, word."""
VERDICTS = {
    "fits": "exact, as far as {count:,} draws can tell",
    "lucky": "by luck right at this place, as far as {count:,} draws can tell: {luck}",
    "hidden": "known to put {off} on the wrong token, too few for {count:,} draws to show",
    "open": "unusual: an exact rule shows this {odds}. Deal again",
    "wrong": "wrong: “{token}” came {seen}, and the target wants it {wanted}",
    "never": "wrong: “{token}” came, and the target never wants it",
}
OUT_TITLE, FAR_TITLE = "What comes out, beside what the target wants", "How far off, and how far chance alone goes"
OUT_STORY = {
    "chances": "{name}, by its chances: {verdict}. Deal, to see whether draws agree.",
    "exactly": "exactly what the target wants comes out",
    "off": "{off} land on the wrong token",
    "dealt": "{glyph} {name}: {verdict}.",
}
FAR_STORY = {
    "none": "Nothing is dealt yet. Each rule that is stands here with its verdict.",
    "bar": "Exact dealing strays from the chances, too: 99 of 100 exact deals end on the bar.",
    "no_bar": "Where the target wants a single token nothing strays: exact dealing ends at 0, without a bar.",
    "story": "Each rule that was dealt, with its verdict.",
    "pass": " {right} of the {all} that were dealt pass.",
}
PARTS = {"": "what comes out, by its chances", "both": "a draft that stayed", "only_target": "written instead"}
FORMULAS = {
    "out": "n(x): how often x came in N draws\nχ² = Σ (n(x) − N·p(x))² / (N·p(x)), x over the tokens with N·p(x) ≥ 5 "
    "and over all others as one\nbracket of a bar: binomial, together right for at least {sure:.0%} of exact deals",
    "far": "TV = ½ Σ |n(x)/N − p(x)|\nbar: the middle 99 % of that TV over exact deals of the same size",
    "pair": "P(x, y) = Σ over rounds and drafts of P(drafts) · P(kept) · P(closing token), up to two tokens\n"
    "exact: P(x, y) = p₁(x) · p₂(y)",
}
PAIR_TITLE = {"chances": "Two tokens in a row, by their chances", "dealt": "Two tokens in a row, dealt"}
PAIR_STORY = {
    "chances": "One place cannot show the extra token of a round, or a block. Here are all ways to write two tokens, "
    "over one round or two, as if every place were like this one: {verdict}.",
    "exactly": "each pair has exactly the chance that the target gives it",
    "off": "{off} land on the wrong pair",
    "dealt": "{glyph} {verdict}.",
    "coarse": " The five tokens that either model finds likeliest have rows of their own; all others count as one.",
    "none": "Nothing is dealt yet: the pairs that are written stand here, beside what the target wants.",
}
PAIR_DIGITS = (3, 4)
"""Digits of a pair's chance: as many as tell what was written from what is wanted."""


@dataclass(frozen=True)
class Draws:
    """What an entrant's draws at a place gave so far."""

    entrant: Entrant
    outcome: Outcome
    seed: int

    @property
    def count(self) -> int:
        """How many draws."""
        return int(self.outcome.drafted.sum())

    @cached_property
    def comparison(self) -> Comparison:
        """The draws beside what the target wants."""
        return losslessness.compare(self.outcome.emitted, self.entrant.p)

    @cached_property
    def verdict(self) -> Judged:
        """What these draws say."""
        return judged(self.comparison, exact=self.entrant.exact, distance=self.entrant.distance)

    def said(self, name_of: NameOf) -> str:
        """The verdict in words."""
        trial = self.entrant
        return _said(
            self.comparison,
            self.outcome.emitted,
            trial.p,
            name_of,
            exact=trial.exact,
            distance=trial.distance,
            luck=overlap.luck(trial),
        )


@dataclass(frozen=True)
class Pairs:
    """How often each pair of tokens was written first, (vocab, vocab), beside its chance under the target alone."""

    counts: Array
    wanted: Array
    seed: int

    @property
    def count(self) -> int:
        """How many texts."""
        return int(self.counts.sum())

    @cached_property
    def comparison(self) -> Comparison:
        """The draws beside what the target wants."""
        return losslessness.compare(self.counts, self.wanted)

    @cached_property
    def off(self) -> Array:
        """Which pairs lie outside the noise of so many draws, bool, (vocab, vocab)."""
        miss = MISS / self.wanted.size
        bands = [losslessness.noise_band(min(float(p), 1.0), self.count, miss) for p in self.wanted.ravel()]
        low, high = np.asarray(bands).T.reshape(2, *self.wanted.shape)
        return (self.counts < low) | (self.counts > high)


def plus(one: Outcome, more: Outcome) -> Outcome:
    """Two deals, one behind the other, as one."""
    return Outcome(one.drafted + more.drafted, one.kept + more.kept, one.dealt + more.dealt)


# --- one token --------------------------------------------------------------------------------------------------------


def out(
    entrant: Entrant, name: str, draws: Draws | None, shown: Sequence[int], name_of: NameOf, *, story: bool
) -> Panel:
    """Bars of what comes out beside what the target wants: by its chances or, once there are ``draws``, by them.

    Args:
        entrant: on the bench.
        name: what it is called.
        draws: of this very entrant.
        shown: ids that have names, the most telling first.
        name_of: a token's text by its id, made visible.
        story: without the brackets of noise.
    """
    vocab = len(entrant.p)
    tokens = list(range(vocab)) if vocab <= BY_HAND else _telling(entrant, draws, shown)
    bars = _bars(entrant, draws, tokens)
    others = [f"{vocab - len(tokens):,} others"] if vocab > len(tokens) else []
    names = [*(name_of(token) for token in tokens), *others]
    what = "what comes out, by its chances (modelled)" if draws is None else f"{draws.count:,} draws (simulated)"
    rows = tuple(
        (token, *(f"{share:.4f}" for share in (p, came)), "off" if bad else "fits")
        for token, p, came, bad in zip(names, bars.wanted, bars.came, bars.off, strict=True)
    )
    return Panel(
        title=OUT_TITLE,
        story=_story(entrant, name, draws, name_of),
        numbers=_numbers(entrant, draws),
        formula=FORMULAS["out"].format(sure=1 - MISS),
        table=Table(f"{name}: {what}", ("token", "wanted", "came", ""), rows),
        figure=_drawn(bars, names, story=story),
        alt=f"{name}: {what}. " + "; ".join(f"{token}: wanted {p}, came {came}" for token, p, came, _ in rows),
        badge="simulated" if draws else "modelled",
    )


@dataclass(frozen=True, slots=True)
class _Bars:
    """Shares by bar: wanted, what came in parts by their meaning, the band around what is wanted, and what is off."""

    wanted: list[float]
    parts: dict[str, list[float]]
    bands: list[tuple[float, float]]
    off: list[bool]

    @property
    def came(self) -> list[float]:
        return [sum(part) for part in zip(*self.parts.values(), strict=True)]


def _bars(entrant: Entrant, draws: Draws | None, tokens: Sequence[int]) -> _Bars:
    wanted = _folded(entrant.p, tokens)
    if draws is None:
        came = _folded(entrant.law, tokens)
        off = [abs(share - p) > OFF for share, p in zip(came, wanted, strict=True)]
        return _Bars(wanted, {"": came}, [(p, p) for p in wanted], off)
    parts = {
        meaning: _folded(counts / draws.count, tokens)
        for meaning, counts in (("both", draws.outcome.kept), ("only_target", draws.outcome.dealt))
    }
    bands, off = [], []
    for p, share in zip(wanted, map(sum, zip(*parts.values(), strict=True)), strict=True):
        low, high = losslessness.noise_band(min(p, 1.0), draws.count, MISS / len(wanted))
        bands.append((low / draws.count, high / draws.count))
        off.append(not low <= round(share * draws.count) <= high)
    return _Bars(wanted, parts, bands, off)


def _drawn(bars: _Bars, names: Sequence[str], *, story: bool) -> Any:
    places, came = list(range(len(names))), bars.came
    chart = figure(
        x={"title": "share", "rangemode": "tozero"},
        y={
            "tickvals": places,
            "ticktext": [escaped(_short(one)) for one in names],
            "range": [len(names) - 0.4, -0.6],
            "ticks": "",
        },
        barmode="stack",
        bargap=0.35,
    )
    for meaning, shares in bars.parts.items():
        dotted = meaning and palette.MEANINGS[meaning].pattern == "dotted"
        ink = colour(meaning or "muted")
        dots = {"shape": ".", "size": 5, "solidity": 0.4, "fillmode": "replace", "fgcolor": ink}
        chart.add_bar(
            x=shares,
            y=places,
            orientation="h",
            name=PARTS[meaning],
            marker={
                "color": ink if meaning else colour("raised"),
                "pattern": dots if dotted else None,
                "line": {"color": ink, "width": 1},
            },
            hovertemplate=f"%{{x:.4f}}<extra>{PARTS[meaning]}</extra>",
        )
    chart.add_scatter(
        x=bars.wanted,
        y=places,
        mode="markers",
        name="what the target wants",
        marker={"symbol": "line-ns", "size": 160 / max(len(names), 8), "line": {"width": 3, "color": colour("target")}},
        error_x={
            "array": [high - p for p, (_, high) in zip(bars.wanted, bars.bands, strict=True)],
            "arrayminus": [p - low for p, (low, _) in zip(bars.wanted, bars.bands, strict=True)],
            "visible": "" not in bars.parts and not story,
            "color": colour("ink"),
            "thickness": 1,
            "width": 4,
        },
        hovertemplate="%{x:.4f}<extra>wanted</extra>",
    )
    off = [place for place, bad in enumerate(bars.off) if bad]
    # At the end of its bar; behind what is wanted where that would lie under it.
    end = 1.12 * max(*came, *bars.wanted)
    beside = [came[place] if bars.wanted[place] - came[place] > ROOM * end else None for place in off]
    chart.add_scatter(
        x=[max(came[place], bars.bands[place][1]) if at is None else at for place, at in zip(off, beside, strict=True)],
        y=off,
        text=[f" {GLYPHS['wrong']} {told_apart(came[place], bars.wanted[place])[0]}" for place in off],
        mode="text",
        textposition="middle right",
        cliponaxis=False,
        showlegend=False,
        hoverinfo="skip",
    )
    # Room at the end for what is written beside the longest bar.
    return chart.update_xaxes(range=[0, end])


def _story(entrant: Entrant, name: str, draws: Draws | None, name_of: NameOf) -> str:
    if draws is not None:
        return OUT_STORY["dealt"].format(glyph=GLYPHS[draws.verdict], name=name, verdict=draws.said(name_of))
    return OUT_STORY["chances"].format(name=name, verdict=_known(entrant.distance, OUT_STORY))


def _known(distance: float, said: dict[str, str]) -> str:
    return said["exactly"] if distance <= OFF else said["off"].format(off=odds(distance))


def _numbers(entrant: Entrant, draws: Draws | None) -> tuple[str, ...]:
    kept = f"kept {probability(_rounded(entrant.alone), 4)}" + (
        ", alone as under Sampling" if entrant.kept is None else ""
    )
    distance = probability(entrant.distance if entrant.distance > OFF else 0.0, 4)
    by_chance = f"By its chances (modelled): {kept}, TV distance to the target’s {distance}."
    if draws is None:
        return (by_chance,)
    seen = int(draws.outcome.kept.sum())
    return (
        by_chance,
        f"Dealt (simulated, seed {draws.seed}): kept {seen:,}/{draws.count:,} = {probability(seen / draws.count, 4)}.",
        *_tested(draws.comparison),
        f"In at least {1 - MISS:.0%} of exact deals every bar ends inside its bracket; {GLYPHS['wrong']} marks one "
        "outside.",
    )


def _tested(found: Comparison) -> tuple[str, ...]:
    low, mean, high = (probability(one, 4) for one in found.floor)
    if high == "0":
        return (f"TV {probability(found.tv, 4)}. Nothing is left to chance here: there is nothing to test.",)
    beyond = "as good as never shows this" if found.p_value < SURE else f"goes as far {odds(found.p_value)} deals"
    return (
        f"TV {probability(found.tv, 4)}; exact dealing of this size: {mean} on average, {low} to {high} in 99 of 100.",
        f"Chi-square {significant(found.chi_square)} over {found.cells:,} cells, {_degrees(found.degrees)} of freedom: "
        f"exact dealing {beyond}."
        if found.degrees
        else f"All but one are too rare for a chi-square; by how often they came, exact dealing {beyond}.",
    )


def _degrees(count: int) -> str:
    return "1 degree" if count == 1 else f"{count:,} degrees"


def _telling(entrant: Entrant, draws: Draws | None, shown: Sequence[int]) -> list[int]:
    """The tokens of a large vocabulary with bars of their own: the likeliest and, of a wrong rule, what is off most."""
    likeliest = sorted(shown, key=lambda token: -float(entrant.p[token]))[:BARS]
    off = np.abs((draws.outcome.emitted / draws.count if draws else entrant.law) - entrant.p)
    worst = int(np.argmax(off))
    wrong = draws.verdict == "wrong" if draws else off[worst] > OFF
    return likeliest if not wrong or worst in likeliest else [*likeliest[:-1], worst]


def _folded(values: Array, tokens: Sequence[int]) -> list[float]:
    """The values of ``tokens`` and, behind them, the sum of all others where there are any."""
    named = [float(values[token]) for token in tokens]
    return [*named, max(float(values.sum()) - sum(named), 0.0)] if len(values) > len(tokens) else named


def _short(text: str, length: int = 14) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


# --- verdicts ---------------------------------------------------------------------------------------------------------


def judged(found: Comparison, *, exact: bool, distance: float) -> Judged:
    """What draws say; what is known of the rule only tells a pass from too few draws."""
    if found.p_value >= RARE:
        return "fits" if exact else "lucky" if distance <= OFF else "hidden"
    return "open" if found.p_value >= SURE else "wrong"


def _said(
    found: Comparison,
    counts: Array,
    wanted: Array,
    name_of: NameOf,
    *,
    exact: bool,
    distance: float,
    luck: str = "it need not be at another",
) -> str:
    """The verdict in words."""
    verdict = judged(found, exact=exact, distance=distance)
    if verdict in ("fits", "lucky", "hidden"):
        return VERDICTS[verdict].format(count=found.count, off=odds(distance), luck=luck)
    if verdict == "open":
        return VERDICTS["open"].format(odds=odds(found.p_value))
    never = np.flatnonzero((wanted == 0) & (counts > 0))
    if len(never):
        return VERDICTS["never"].format(token=name_of(int(never[np.argmax(counts[never])])))
    shares = counts / found.count
    worst = int(np.argmax(np.abs(shares - wanted)))
    seen, sought = float(shares[worst]), float(wanted[worst])
    return VERDICTS["wrong"].format(token=name_of(worst), seen=times(seen, sought), wanted=times(sought, seen))


def far(dealt: Sequence[tuple[str, Draws]], name_of: NameOf, *, story: bool) -> Panel:
    """Every entrant that was dealt on a line of its own: its distance, and how far exact dealing strays.

    Args:
        dealt: what each is called, and its draws, in the order of the rows; all that was dealt.
        name_of: a token's text by its id, made visible.
        story: only the verdicts, without distances.
    """
    head = ("rule", "draws", "verdict") if story else ("rule", "draws", "TV", "exact dealing, 99 %", "verdict")
    rows = []
    for name, draws in dealt:
        found = draws.comparison
        low, tv, high = told_apart(found.floor[0], found.tv, found.floor[2])
        numbers = () if story else (tv, f"{low} to {high}")
        rows.append((name, f"{draws.count:,}", *numbers, f"{GLYPHS[draws.verdict]} {draws.said(name_of)}"))
    inside = sum(draws.verdict in ("fits", "lucky", "hidden") for _, draws in dealt)
    table = Table("Each rule that was dealt · simulated", head, tuple(rows))
    bars = {"bar" if draws.comparison.floor[2] > 0 else "no_bar" for _, draws in dealt}
    told = " ".join(FAR_STORY[one] for one in (["none"] if not dealt else ["story"] if story else sorted(bars)))
    return Panel(
        title=FAR_TITLE if not story else "The verdicts",
        story=told + (FAR_STORY["pass"].format(right=inside, all=len(dealt)) if len(dealt) > 1 else ""),
        numbers=(),
        formula=FORMULAS["far"],
        table=table,
        figure=None if story or not dealt else _distances(dealt),
        alt="; ".join(" ".join(row) for row in rows),
        badge="simulated",
    )


def _distances(dealt: Sequence[tuple[str, Draws]]) -> Any:
    found = [draws.comparison for _, draws in dealt]
    above = [size for one in found for size in (one.floor[0], one.floor[2], one.tv) if size > 0]
    least, most = min(above, default=1e-3) / 2, min(max(above, default=1.0) * 2, 1.2)
    # No power of ten is 0: it has a place of its own.
    nothing = least / 3 if any(one.tv == 0 for one in found) else None
    steps = (1, 2, 5) if most / least < 100 else (1,)
    ticks = [step * 10.0**power for power in range(-7, 1) for step in steps if least <= step * 10.0**power <= most]
    most_draws = max(draws.count for _, draws in dealt)
    if nothing is not None:
        ticks = [nothing, *ticks]
    labels = [
        f"{GLYPHS[draws.verdict]} {escaped(name)}" + (f", {draws.count:,}" if draws.count < most_draws else "")
        for name, draws in dealt
    ]
    chart = figure(
        x=logarithmic(
            "TV distance to what the target wants",
            range=[float(np.log10((nothing or least) / 1.3)), float(np.log10(most))],
            tickvals=ticks,
            ticktext=["0" if tick == nothing else significant(tick, 1) for tick in ticks],
        ),
        y={"tickvals": list(range(len(dealt))), "ticktext": labels, "range": [len(dealt) - 0.4, -0.6], "ticks": ""},
    )
    bars = [(max(one.floor[0], least), one.floor[2], None) if one.floor[2] else (None,) * 3 for one in found]
    chart.add_scatter(
        x=[x for bar in bars for x in bar],
        y=[y for row in range(len(dealt)) for y in (row, row, None)],
        mode="lines",
        line={"color": colour("muted"), "width": 9},
        opacity=0.45,
        name="exact dealing, 99 of 100",
        hoverinfo="skip",
    )
    for verdict, (symbol, ink, word) in MARKS.items():
        rows = [row for row, (_, draws) in enumerate(dealt) if draws.verdict == verdict]
        if rows:
            chart.add_scatter(
                x=[found[row].tv or nothing for row in rows],
                y=rows,
                mode="markers",
                marker={"symbol": symbol, "size": 11, "color": colour(ink)},
                name=f"{GLYPHS[verdict]} {word}",
                text=[f"TV {probability(found[row].tv, 4)}, {found[row].count:,} draws" for row in rows],
                hovertemplate="%{text}<extra></extra>",
            )
    return chart


# --- two tokens -------------------------------------------------------------------------------------------------------


def cells(p: Array, q: Array, drawn: Array, shown: Sequence[int]) -> tuple[tuple[Array, Array, Array], list[int]]:
    """A place that pairs can be enumerated at: laws of :data:`BY_HAND` tokens at most, and the ids that they keep.

    Of a large vocabulary the likeliest tokens keep a row of their own and all others are one token; the laws that come
    back are those of that small vocabulary, which is a place of its own.
    """
    if len(p) <= BY_HAND:
        return (p, q, drawn), list(range(len(p)))
    kept = sorted(shown, key=lambda token: -max(float(p[token]), float(q[token])))[:CELLS]
    small = [np.asarray(_folded(law, kept)) for law in (p, q, drawn)]
    return (small[0] / small[0].sum(), small[1] / small[1].sum(), small[2] / small[2].sum()), kept


def pair_chances(law: Array, wanted: Array, names: Sequence[str], *, coarse: bool) -> Panel:
    """The joint chances of the first two tokens of a text, ``law`` beside ``wanted``, both (vocab, vocab)."""
    distance = float(total_variation(law.ravel(), wanted.ravel()))
    story = PAIR_STORY["chances"].format(verdict=_known(distance, PAIR_STORY))
    off = np.abs(law - wanted) > OFF
    digits = _digits(law, wanted)
    table = _pair_table("by their chances, modelled", names, law, wanted, off, digits)
    return Panel(
        title=PAIR_TITLE["chances"],
        story=story + (PAIR_STORY["coarse"] if coarse else ""),
        numbers=(f"TV distance to the target’s own pairs {probability(distance if distance > OFF else 0.0, 4)}.",),
        formula=FORMULAS["pair"],
        table=table,
        figure=_heat(law, wanted, off, names, digits),
        alt=_alt(table),
    )


def pair_dealt(pairs: Pairs | None, law: Array, names: Sequence[str], *, exact: bool) -> Panel:
    """The same by draws, once there are any: how often each pair was written. ``exact`` says that rule and drafter are
    right."""
    if pairs is None:
        return Panel(PAIR_TITLE["dealt"], PAIR_STORY["none"], (), FORMULAS["far"], Table("", (), ()), badge="simulated")
    found, size, share = pairs.comparison, len(names), pairs.counts / pairs.count
    digits = _digits(share, pairs.wanted)
    table = _pair_table(f"{pairs.count:,} texts, simulated", names, share, pairs.wanted, pairs.off, digits)
    distance = float(total_variation(law.ravel(), pairs.wanted.ravel()))
    verdict = _said(
        found,
        pairs.counts.ravel(),
        pairs.wanted.ravel(),
        lambda cell: f"{names[cell // size]} {names[cell % size]}",
        exact=exact,
        distance=distance,
    )
    return Panel(
        title=PAIR_TITLE["dealt"],
        story=PAIR_STORY["dealt"].format(glyph=GLYPHS[judged(found, exact=exact, distance=distance)], verdict=verdict),
        numbers=(f"Dealt {pairs.count:,} times (simulated, seed {pairs.seed}).", *_tested(found)),
        formula=FORMULAS["far"],
        table=table,
        figure=_heat(share, pairs.wanted, pairs.off, names, digits),
        alt=_alt(table),
        badge="simulated",
    )


def _digits(share: Array, wanted: Array) -> int:
    """As many as tell all pairs that differ from what is wanted, one number for a figure and its table."""
    least, most = PAIR_DIGITS
    apart = np.abs(share - wanted) > OFF
    return least if bool((np.round(share, least) != np.round(wanted, least))[apart].all()) else most


def _pair_table(what: str, names: Sequence[str], share: Array, wanted: Array, off: Array, digits: int) -> Table:
    rows = [
        (
            one,
            other,
            *(probability(_rounded(float(law[i, j])), digits) for law in (wanted, share)),
            "off" if off[i, j] else "fits",
        )
        for i, one in enumerate(names)
        for j, other in enumerate(names)
    ]
    return Table(f"Two tokens, {what}", ("first", "second", "wanted", "written", ""), tuple(rows))


def _alt(table: Table) -> str:
    return f"{table.caption}. " + "; ".join(f"{one} {two}: {share}" for one, two, _, share, _ in table.rows)


def _rounded(chance: float) -> float:
    """A sum, without its rounding error: a chance that is 0 or 1 is written as that."""
    return round(chance, MOST_DIGITS)


def _heat(share: Array, wanted: Array, off: Array, names: Sequence[str], digits: int) -> Any:
    labels, places = [escaped(_short(name, 8)) for name in names], list(range(len(names)))
    angle = 0 if max(map(len, labels)) <= 3 else -90
    chart = figure(
        x={"title": "second token", "tickvals": places, "ticktext": labels, "showgrid": False, "tickangle": angle},
        y={"title": "first token", "tickvals": places, "ticktext": labels, "showgrid": False, "autorange": "reversed"},
    )
    room = len(names) <= NAMED
    texts = [
        [
            (f"{GLYPHS['wrong']} " if bad else "") + (probability(_rounded(one), digits) if room else "")
            for one, bad in zip(*row, strict=True)
        ]
        for row in zip(share.tolist(), off.tolist(), strict=True)
    ]
    chart.add_heatmap(
        z=share.tolist(),
        x=places,
        y=places,
        # Twice the largest chance is the full blue, so that ink is read on all that occurs.
        zmin=0.0,
        zmax=2.0 * float(wanted.max()),
        colorscale=[[0, colour("paper")], [1, colour("target")]],
        showscale=False,
        xgap=2,
        ygap=2,
        text=texts,
        texttemplate="%{text}",
        textfont={"color": colour("ink")},
        customdata=wanted.tolist(),
        hovertemplate="written %{z:.4f}, wanted %{customdata:.4f}<extra></extra>",
    )
    return chart
