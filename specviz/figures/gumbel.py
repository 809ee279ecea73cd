"""Gumbel coupling in figures: the race with any noise, the chance that two models agree, and a place played again.

The race itself is :mod:`specviz.figures.race`, drawn by :mod:`specviz.figures.place`. Tokens bent by hand and places of
a run come here as rows of a record, so that one picture shows both.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go

from specviz import losslessness, noise, theory
from specviz.figures import numbers, place
from specviz.figures.charts import Panel, colour, escaped, figure
from specviz.figures.events import Event
from specviz.figures.numbers import probability, told_apart
from specviz.figures.place import Place
from specviz.figures.race import Race, recorded, score
from specviz.figures.table import Table
from specviz.figures.text import Texts
from specviz.probability import Array, log, overlap, warp
from specviz.rules import GumbelCoupling
from specviz.trace import Closing, Draft, Header, Rest, Round, Row, Token, Trace

RULE = GumbelCoupling()
LETTERS = "ABCDEFGH"
OTHERS = -1
"""The id of everything that a record does not list, where it runs as one."""
MOST_NOISE = 9_999
MOST_TOKENS = 2**20
"""A vocabulary: a file may claim a larger one than memory holds."""
RACES = 1_000
"""Races behind each simulated point."""
SEEN = 5e-4
"""Chances that differ by less look alike in a figure."""
Z95 = 1.959964
"""Of a normal distribution, 95 in 100 lie within so many standard deviations."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two distributions over a few tokens: what the target and what the drafter wants."""

    p: tuple[float, ...]
    q: tuple[float, ...]

    def arrays(self) -> tuple[Array, Array]:
        """Both as float64, shape (vocab,)."""
        return np.array(self.p), np.array(self.q)


THIRD = 1 / 3
PAIRS = {
    "three tokens": Pair((0.5, 0.3, 0.2), (0.2, 0.3, 0.5)),
    "two tokens": Pair((THIRD, 1 - THIRD), (1 - THIRD, THIRD)),
    "nearly the same": Pair((0.6, 0.2, 0.1, 0.1), (0.7, 0.2, 0.05, 0.05)),
    "flat and steep": Pair((0.25, 0.25, 0.25, 0.25), (0.4, 0.3, 0.2, 0.1)),
    "the worst case": Pair((0.5, 0.5, 0.0), (0.5, 0.0, 0.5)),
    "the same": Pair((0.5, 0.3, 0.2), (0.5, 0.3, 0.2)),
    "nothing in common": Pair((0.6, 0.4, 0.0, 0.0), (0.0, 0.0, 0.5, 0.5)),
}
"""Pairs to race, by name."""


# --- places of a run --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Site:
    """A place of a run's text: its number there, from 1, the round that wrote it, the draft there (None: the closing
    token), its row, and the token that stands in the text."""

    number: int
    round: Round
    draft: int | None
    row: Row
    written: int

    @property
    def position(self) -> int:
        """Index of the token in prompt + text."""
        return self.round.position + (self.round.kept if self.draft is None else self.draft)


def sites(trace: Trace) -> tuple[Site, ...]:
    """Every place of the text whose row was recorded, in order."""
    found, number = [], 0
    for round_ in trace.rounds:
        for index, token_id in enumerate(round_.emitted):
            number += 1
            draft = index if index < len(round_.drafts) else None
            closing = round_.closing.row if round_.closing is not None else None
            row = round_.drafts[index].row if draft is not None else closing
            if row is not None:
                found.append(Site(number, round_, draft, row, token_id))
    return tuple(found)


def raced(trace: Trace) -> tuple[Site, ...]:
    """The places at which both models spoke."""
    return tuple(
        site
        for site in sites(trace)
        if site.draft is not None and site.round.drafts[site.draft].fate in ("kept", "rejected") and _both(site.row)
    )


def _both(row: Row) -> bool:
    """Whether each model gives some listed token a chance."""
    return any((token.p or 0.0) > 0 for token in row.tokens) and any((token.q or 0.0) > 0 for token in row.tokens)


def coupled(trace: Trace) -> bool:
    """Whether the run's two models shared recorded noise at every place, of a vocabulary that can be played again."""
    rules = {(round_.settings or {}).get("rule") for round_ in trace.rounds}
    rows = [site.row for site in sites(trace)]
    fits = all(recorded(row) and size_of(row) <= MOST_TOKENS for row in rows)
    return rules == {RULE.name} and fits and bool(raced(trace))


# --- the race ---------------------------------------------------------------------------------------------------------


def by_hand(pair: Pair, seed: int) -> tuple[Row, Texts]:
    """The pair's tokens as a row, with the noise that ``seed`` gives them."""
    both = enumerate(zip(pair.p, pair.q, strict=True))
    tokens = tuple(Token(index, LETTERS[index].encode().hex(), p, q) for index, (p, q) in both)
    texts = Texts({index: LETTERS[index].encode() for index in range(len(tokens))})
    return with_noise(Row(0, tokens), seed), texts


def with_noise(row: Row, seed: int, position: int = 0) -> Row:
    """The same place with the noise of another seed. What the record does not list runs as one token."""
    tokens = row.tokens
    rest = row.rest
    if rest is not None and (rest.p or rest.q):
        tokens = (*tokens, Token(OTHERS, None, rest.p, rest.q))
    drawn = noise.gumbel(seed, position, len(tokens))
    tokens = tuple(replace(token, noise=float(g)) for token, g in zip(tokens, drawn, strict=True))
    return Row(position, tokens)


def chances(row: Row) -> tuple[Array, Array]:
    """Both models' chances of the tokens of a row, shape (tokens,)."""
    both = [(max(token.p or 0.0, 0.0), max(token.q or 0.0, 0.0)) for token in row.tokens]
    return tuple(np.array(both).T)


def naming(texts: Texts, row: Row) -> Texts:
    """``texts`` with a name for what runs as one."""
    if row.token(OTHERS) is None:
        return texts
    return Texts({token.id: texts.raw(token.id) for token in row.tokens} | {OTHERS: b"(others)"})


def agreed(row: Row, upto: int) -> int:
    """How often both models' first home is the same token under the noise of seeds 1 to ``upto``."""
    p, q = chances(row)
    drawn = noise.gumbel(np.arange(1, upto + 1), row.position or 0, len(p))
    return int(np.sum(np.argmax(log(p) + drawn, axis=-1) == np.argmax(log(q) + drawn, axis=-1)))


@dataclass(frozen=True, slots=True)
class Shown:
    """The race panel: the picture, a sentence, lines of numbers, and what ran."""

    place: Place
    story: str
    numbers: tuple[str, ...]
    badge: str
    race: Race
    texts: Texts


def as_it_happened(trace: Trace, site: Site, texts: Texts, badge: str) -> Shown:
    """The race at a place of a run, with the noise that was recorded."""
    laid = place.layout(trace, site.round, _over(site), texts, selected=site.draft)
    row = site.row
    known = row.expected_accept is not None and row.tv is not None
    chance = (_chance(row.expected_accept or 0.0, 1 - (row.tv or 0.0)),) if known else ()
    return _shown(laid, row, texts, chance, badge)


def title(trace: Trace, site: Site, texts: Texts) -> str:
    """What the place follows."""
    return place.layout(trace, site.round, _over(site), texts, selected=site.draft).title


def _over(site: Site) -> Event:
    """The moment at which everything about the site's round is known."""
    last = Event(site.round.index, "verdict", len(site.round.judged) - 1)
    return last if site.round.closing is None else Event(site.round.index, "closing")


def with_new_noise(row: Row, texts: Texts, title: str, seed: int) -> Shown:
    """A race with noise ``seed``, from 1, of a row from :func:`by_hand` or :func:`with_noise`."""
    p, q = chances(row)
    match, shared = float(theory.gumbel_match(p, q)), float(overlap(p, q))
    same, expected = agreed(row, seed), seed * match
    lumped = row.token(OTHERS) is not None
    lines = (
        _chance(match, shared, float(np.sum(p * q))),
        f"Noise 1 to {seed:,}: the same winner in {same:,} of {seed:,} races; expected {expected:,.1f}."
        if seed > 1
        else "",
        "“(others)”: every token that the record does not list, running as one: two of them count as the same."
        if lumped
        else "",
    )
    race = Race(row, ("target", "drafter"))
    ours, theirs = race.winner("target"), race.winner("drafter")
    assert ours is not None
    assert theirs is not None
    kept = ours.id == theirs.id
    draft = Draft(
        theirs.id, theirs.p, theirs.q, target_id=ours.id, passed=kept, fate="kept" if kept else "rejected", row=row
    )
    closing = None if kept else Closing(ours.id, "correction")
    round_ = Round(0, row.position or 0, {"rule": RULE.name}, (draft,), closing, (ours.id,))
    event = Event(0, "verdict", 0) if kept else Event(0, "closing")
    laid = place.layout(Trace(Header()), round_, event, texts, selected=0)
    return _shown(replace(laid, title=title), row, texts, tuple(filter(None, lines)), "simulated")


def _chance(match: float, shared: float, independent: float | None = None) -> str:
    pick, most = told_apart(match, shared)
    apart = "" if independent is None else f"; with noise of their own {probability(independent)}"
    return f"Chance that both pick the same token here: {pick}; shared (1 − TV): {most}{apart}."


def _shown(laid: Place, row: Row, texts: Texts, lines: tuple[str, ...], badge: str) -> Shown:
    race = Race(row, ("target", "drafter"))
    ours, theirs = race.winner("target"), race.winner("drafter")
    assert ours is not None
    assert theirs is not None
    if ours.id == theirs.id:
        story = f"“{texts(ours.id)}” is home first in both races: the draft stays."
    else:
        story = (
            f"“{texts(theirs.id)}” is home first for the drafter, “{texts(ours.id)}” for the target: the draft goes, "
            "and the target’s own winner is written. It would have been written whatever was drafted."
        )
    return Shown(laid, story, lines, badge, race, texts)


class Sums(NamedTuple):
    """A figure, what it shows in a sentence, and the same as a table."""

    figure: go.Figure
    alt: str
    table: Table


def sums(shown: Shown) -> Sums:
    """The race as log p + g and log q + g: of every runner a bar from the logarithm, as long as the noise that both
    models share."""
    race, texts = shown.race, shown.texts
    best = sorted(race.field, key=lambda t: max(score(t, "target"), score(t, "drafter")), reverse=True)
    runners = best[: place.ROWS]
    labels = [texts(token.id) for token in runners]
    drawn = figure(
        x={"title": "log of the chance + g: furthest right wins"},
        y={"tickvals": list(range(len(runners))), "ticktext": [escaped(label) for label in labels], "showgrid": False}
        | {"range": [len(runners) - 0.5, -0.5]},
        barmode="overlay",
        hovermode="closest",
    )
    rows = []
    for model, letter, shift in (("target", "p", -0.19), ("drafter", "q", 0.19)):
        runs = [(i, token) for i, token in enumerate(runners) if score(token, model) > -math.inf]
        won = race.winner(model)
        ends = [score(token, model) for _, token in runs]
        at = [i + shift for i, _ in runs]
        drawn.add_bar(
            base=[total - (token.noise or 0.0) for total, (_, token) in zip(ends, runs, strict=True)],
            x=[token.noise for _, token in runs],
            y=at,
            width=0.26,
            orientation="h",
            marker={"color": colour(model), "opacity": 0.45},
            name=f"from log {letter}, g long",
            hoverinfo="skip",
        )
        first = [won is not None and token.id == won.id for _, token in runs]
        drawn.add_scatter(
            x=ends,
            y=at,
            mode="markers+text",
            text=["⚑" if one else "" for one in first],
            textposition=["middle right" if (token.noise or 0.0) > 0 else "middle left" for _, token in runs],
            textfont={"color": colour("ink"), "size": 16},
            marker={"color": colour(model), "symbol": "line-ns", "size": 15, "line": {"width": 3}}
            | {"line": {"width": 3, "color": colour(model)}},
            name=f"log {letter} + g",
            hovertemplate=[
                escaped(f"{labels[i]}: log {letter} {total - (token.noise or 0):.3f} + g {token.noise:.3f}")
                + f" = {total:.3f}<extra></extra>"
                for total, (i, token) in zip(ends, runs, strict=True)
            ],
        )
    for token, label in zip(runners, labels, strict=True):
        cells = []
        for model in ("target", "drafter"):
            total, won = score(token, model), race.winner(model)
            flag = " ⚑" if won is not None and won.id == token.id else ""
            cells.append("never" if total == -math.inf else f"{_signed(total)}{flag}")
        rows.append((label, probability(token.p), probability(token.q), _signed(token.noise or 0.0), *cells))
    table = Table("The same race as sums; ⚑ wins", ("token", "p", "q", "g", "log p + g", "log q + g"), tuple(rows))
    alt = "Two bars for every token, of the same signed length g: one from log p, one from log q. " + " ".join(
        f"{name} ends furthest right with “{texts(won.id)}”."
        for name, model in (("The target’s", "target"), ("The drafter’s", "drafter"))
        if (won := race.winner(model)) is not None
    )
    return Sums(drawn, alt, table)


# --- the chance of agreement ------------------------------------------------------------------------------------------

STEPS = 21
HEATS = tuple(round(10 ** (i / 14 - 1) if i <= 14 else 3 ** ((i - 14) / 6), 4) for i in range(STEPS))
"""Temperatures from 0.1 to 3; 1, where the drafter says what it was taught, is one of them."""


@dataclass(frozen=True, slots=True)
class Family:
    """Pairs along an axis: ``told`` what changes, ``at`` the axis's values, ``pairs`` the pairs there."""

    axis: str
    told: str
    at: tuple[float, ...]
    pairs: tuple[Pair, ...]


MIX, HEAT, TWO, WORST, RUN = "from p to q", "drafter’s temperature", "two tokens", "the worst case", "places of the run"
FAMILIES = (MIX, HEAT, TWO, WORST, RUN)
OWN_PAIR = (MIX, HEAT)
"""Families of a pair that can be chosen."""


@lru_cache(maxsize=64)
def family(name: str, chosen: str) -> Family:
    """The family ``name``, of the pair ``chosen`` where it is one of :data:`OWN_PAIR`."""
    pair = PAIRS[chosen]
    p, q = pair.arrays()
    parts = tuple(round(i / (STEPS - 1), 6) for i in range(STEPS))
    if name == MIX:
        mixed = tuple(Pair(pair.p, tuple((1 - t) * p + t * q)) for t in parts)
        return Family("how far the drafter is from the target", "the drafter moves from p to q", parts, mixed)
    if name == HEAT:
        tempered = tuple(Pair(pair.p, tuple(warp(log(q), heat))) for heat in HEATS)
        return Family("temperature of the drafter alone", "only the drafter’s temperature changes", HEATS, tempered)
    if name == TWO:
        two = tuple(Pair((1 - t / 2, t / 2), (t / 2, 1 - t / 2)) for t in parts)
        return Family("shared", "two tokens: agreement reaches 1 − TV, the most there is", parts, two)
    tight = tuple(Pair((1 - t, t, 0.0), (1 - t, 0.0, t)) for t in parts)
    return Family(
        "what only one model wants",
        "each model has a token of its own that the other never says: the worst case",
        parts,
        tight,
    )


@dataclass(frozen=True, slots=True)
class Agreement:
    """Of one pair: the exact chance, its bounds, what independent draws would give, and what races gave."""

    exact: float
    most: float
    least: float
    independent: float
    seen: float
    low: float
    high: float


@lru_cache(maxsize=256)
def agreement(pair: Pair, seed: int) -> Agreement:
    """``seen`` of :data:`RACES` races through the code that the decoder runs, with a 95 % band (Wilson's)."""
    p, q = pair.arrays()
    bounds = theory.gumbel_bounds(p, q)
    kept = int(losslessness.deal(RULE, p, q, RACES, seed).kept.sum())
    low, high = wilson(kept, RACES)
    return Agreement(
        float(theory.gumbel_match(p, q)),
        float(bounds.upper),
        float(bounds.lower),
        float(np.sum(p * q)),
        kept / RACES,
        low,
        high,
    )


def wilson(hits: int, trials: int) -> tuple[float, float]:
    """The chances, from and to, under which so many hits lie within 95 %. Wilson 1927."""
    share, spread = hits / trials, Z95**2 / trials
    middle = (share + spread / 2) / (1 + spread)
    reach = Z95 * math.sqrt(share * (1 - share) / trials + spread / (4 * trials)) / (1 + spread)
    return min(middle - reach, share), max(middle + reach, share)


CURVES: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("most", "shared, 1 − TV: the most there is", {"color": "both", "dash": "solid", "width": 2}),
    ("exact", "one noise: the exact chance", {"color": "ink", "dash": "solid", "width": 3}),
    ("least", "(1 − TV)/(1 + TV): the least", {"color": "muted", "dash": "dash", "width": 2}),
    ("independent", "noise of their own: Σ p·q", {"color": "muted", "dash": "dot", "width": 2}),
)
FORMULA = (
    "P(match) = Σ_x 1 / Σ_y max(p_y / p_x, q_y / q_x), over the x that both can say\n"
    "(1 − TV)/(1 + TV) ≤ P(match) ≤ 1 − TV = Σ min(p, q)\n"
    "two tokens: P(match) = 1 − TV      noise of their own: Σ p·q      (Daliri et al. 2024, arXiv 2408.07978)"
)


def match(name: str, chosen: str, seed: int) -> Panel:
    """How often both models pick one token, over a family of pairs."""
    along = family(name, chosen)
    found = [agreement(pair, seed + index * 100_003) for index, pair in enumerate(along.pairs)]
    heat = name == HEAT
    ticks = {"type": "log", "tickvals": [0.1, 0.3, 1, 3], "ticktext": ["0.1", "0.3", "1", "3"]} if heat else {}
    low, high = (math.log10(along.at[0]), math.log10(along.at[-1])) if heat else (along.at[0], along.at[-1])
    room = (high - low) / 50
    reach = [low - room, high + room]  # told, for the figure may have had another family's before
    drawn = figure(
        x={"title": along.axis, "range": reach} | ticks,
        y={"title": "chance that both pick the same token", "range": [0, 1.04]},
        hovermode="x unified",
    )
    _curves(drawn, along.at, {key: [getattr(one, key) for one in found] for key, _, _ in CURVES})
    drawn.add_scatter(
        x=along.at,
        y=[one.seen for one in found],
        error_y={
            "type": "data",
            "array": [one.high - one.seen for one in found],
            "arrayminus": [one.seen - one.low for one in found],
            "color": colour("ink"),
            "thickness": 1,
            "width": 3,
        },
        mode="markers",
        marker={"color": colour("paper"), "size": 7, "line": {"color": colour("ink"), "width": 1.5}},
        name=f"seen in {RACES:,} races",
        hovertemplate="seen %{y:.3f}<extra></extra>",
    )
    outside = sum(not one.low <= one.exact <= one.high for one in found)
    last = found[-1]
    whose = f"“{chosen}”" if name in OWN_PAIR else along.told.partition(":")[0]
    table = Table(
        f"{name}: {along.told}; {whose}",
        (along.axis, "1 − TV", "exact", f"seen in {RACES:,}", "95 % band", "(1 − TV)/(1 + TV)", "Σ p·q"),
        tuple(
            (
                f"{x:g}",
                *(probability(value, 4) for value in (one.most, one.exact, one.seen)),
                f"{one.low:.3f} to {one.high:.3f}",
                *(probability(value, 4) for value in (one.least, one.independent)),
            )
            for x, one in zip(along.at, found, strict=True)
        ),
    )
    return Panel(
        "How often do they agree?",
        _told(name, found, along),
        (
            f"At the right end: one noise {probability(last.exact, 3)}, 1 − TV {probability(last.most, 3)}, "
            f"(1 − TV)/(1 + TV) {probability(last.least, 3)}, noise of their own {probability(last.independent, 3)}.",
            f"Circles: {RACES:,} races each through the decoder’s own rule, seed {seed}, with 95 % bars; "
            f"{STEPS - outside} of {STEPS} bars hold the exact chance. About one in twenty may miss it.",
        ),
        FORMULA,
        table,
        drawn,
        f"Chance of agreement while {along.told}: the exact curve lies between (1 − TV)/(1 + TV) and 1 − TV, and the "
        "simulated circles lie on it.",
        "modelled · simulated",
    )


def _curves(drawn: go.Figure, at: Sequence[float], values: Mapping[str, Sequence[float]]) -> None:
    for key, label, line in CURVES:
        if key in values:
            drawn.add_scatter(
                x=list(at),
                y=list(values[key]),
                mode="lines",
                line=line | {"color": colour(line["color"])},
                name=label,
                hovertemplate=f"{label.partition(':')[0]} %{{y:.3f}}<extra></extra>",
            )


def _told(name: str, found: Sequence[Agreement], along: Family) -> str:
    if name == TWO:
        return "Of two tokens, both races have one winner as often as anything could: by all that the two share."
    if name == WORST:
        return "Each model has a token that the other never says: agreement falls to the least that is promised."
    lost = max(range(len(found)), key=lambda i: found[i].most - found[i].exact)
    if max(one.most for one in found) < SEEN:
        return "Nothing in common: the two never agree, whatever the noise."
    if found[lost].most - found[lost].exact < SEEN:
        return "One noise agrees as often as anything could; with noise of their own the models would agree less."
    if name == HEAT:
        if max(one.exact for one in found) - min(one.exact for one in found) < SEEN:
            return "Here the drafter’s temperature changes nothing: not the agreement, and never the text."
        return (
            "Only the agreement changes with the drafter’s temperature, never the text; of those shown it is best at "
            f"{_best(found, along.at)}."
        )
    return (
        "One noise agrees less often than the most there is: the price of never asking the other model. It is at most "
        f"{probability(found[lost].most - found[lost].exact)} here."
    )


def _best(found: Sequence[Agreement], at: Sequence[float]) -> str:
    """Where agreement is most likely, and whether it would be more so beyond the end."""
    best = max(range(len(found)), key=lambda i: found[i].exact)
    inner = {0: 1, len(found) - 1: -2}.get(best)
    rising = inner is not None and found[best].exact > found[inner].exact
    told = f"{at[best]:.2g} ({probability(found[best].exact)})"
    return f"{told}, the end of the axis, and still rising there" if rising else told


def places(trace: Trace, badge: str) -> Panel:
    """The same over the places of a run: what they share, and the chance of agreement there."""
    known = [
        (1 - site.row.tv, site.row.expected_accept, site)
        for site in raced(trace)
        if site.row.tv is not None and site.row.expected_accept is not None
    ]
    line = [i / 50 for i in range(51)]
    drawn = figure(
        x={"title": "shared at the place: 1 − TV", "range": [0, 1.02]},
        y={"title": "chance that both pick the same token", "range": [0, 1.04]},
        hovermode="closest",
    )
    _curves(drawn, line, {"most": line, "least": [x / (2 - x) for x in line]})
    kept = [_fate(site) == "kept" for _, _, site in known]
    for fate, sign, symbol in ((True, "✓ kept", "circle"), (False, "✗ rejected", "x-thin")):
        some = [one for one, stays in zip(known, kept, strict=True) if stays == fate]
        tone = colour("both" if fate else "rejected")
        drawn.add_scatter(
            x=[x for x, _, _ in some],
            y=[y for _, y, _ in some],
            mode="markers",
            marker={"symbol": symbol, "size": 8, "color": tone, "line": {"color": tone, "width": 2}},
            name=sign,
            hovertemplate=[
                f"place {site.number}: shared {x:.3f}, chance {y:.3f}, {sign}<extra></extra>" for x, y, site in some
            ],
        )
    expected = sum(y for _, y, _ in known)
    spread = math.sqrt(sum(max(y * (1 - y), 0.0) for _, y, _ in known))
    table = Table(
        "Every judged place of the run",
        ("place", "1 − TV", "chance of agreement", "(1 − TV)/(1 + TV)", ""),
        tuple(
            (str(site.number), probability(x, 4), probability(y, 4), probability(x / (2 - x), 4), _fate(site))
            for x, y, site in known
        ),
    )
    return Panel(
        "How often do they agree?",
        f"At each place of this run the chance of agreement lies between the two lines: {sum(kept)} of {len(kept)} "
        "drafts were kept.",
        (
            f"Kept of judged {numbers.fraction(sum(kept), len(kept))}; the chances add up to {expected:.1f}, give or "
            f"take {2 * spread:.1f} (95 %).",
        ),
        FORMULA,
        table,
        drawn,
        "Every judged place of the run: its shared part across, its chance of agreement up. All lie between "
        "(1 − TV)/(1 + TV) and 1 − TV.",
        badge,
    )


def _fate(site: Site) -> str:
    assert site.draft is not None
    return site.round.drafts[site.draft].fate or ""


# --- a place played again ---------------------------------------------------------------------------------------------

LINES = (
    "g = gumbel({seed}, {position}, {size})  # seed, position, vocabulary: nothing else",
    "max(p, key=lambda token: log(p[token]) + g[token])  # {token}: {text}",
)
"""The lines that play a place again, for whoever has :func:`specviz.noise.gumbel` and the target's p."""
FAITHFUL = 1e-9
"""Noise played again is the recorded one up to this: libraries round a logarithm each in their way, by 1e-12."""
REPLAY = (
    "k = the upper 52 bits of hash(seed, “gumbel”, position, token)\n"
    "u = (k + ½) / 2⁵²      g = −log(−log u)      first home = argmax(log p + g)"
)


REPLAY_DIGITS = (0, 3, numbers.MOST_DIGITS)
"""Of the noise, by how much is shown: none in a story."""


@dataclass(frozen=True, slots=True)
class Check:
    """All places of a run played again: how many places and numbers, the largest difference of a number, and at how
    many places the winner is the token of the text."""

    places: int
    compared: int
    largest: float
    same: int


def seed_of(site: Site) -> int:
    """The seed in force there."""
    return int((site.round.settings or {}).get("seed", 0))


def again(site: Site) -> Array:
    """The noise of a place from its seed and position alone, shape (vocab,)."""
    return noise.gumbel(seed_of(site), site.position, size_of(site.row))


def size_of(row: Row) -> int:
    """Tokens in the vocabulary: enough of them that every listed id is in it."""
    rest = row.rest if row.rest is not None else Rest()
    known = (token.id for token in (*row.tokens, *rest.runners()))
    return max(len(row.tokens) + (rest.count or 0), 1 + max(known, default=0))


def _numbers(site: Site) -> Iterator[tuple[Token, float]]:
    """Every token that the record names with its noise, and the noise played again."""
    g = again(site)
    rest = site.row.rest.runners() if site.row.rest is not None else ()
    for token in (*site.row.tokens, *rest):
        if token.noise is not None:
            yield token, float(g[token.id])


def _sum(token: Token, g: float) -> float:
    """log p + g; −inf for a token that the target never says."""
    return math.log(token.p) + g if token.p is not None and token.p > 0 else -math.inf


def _winner(played: Sequence[tuple[Token, float]]) -> int | None:
    score_of, token_id = max(((_sum(token, g), token.id) for token, g in played), default=(-math.inf, 0))
    return token_id if score_of > -math.inf else None


def _signed(value: float, digits: int = 4) -> str:
    return f"{value:.{digits}f}".replace("-", "−")


def check(trace: Trace) -> Check:
    """Play every place of a run again."""
    count = same = compared = 0
    largest = 0.0
    for site in sites(trace):
        played = list(_numbers(site))
        count, compared = count + 1, compared + len(played)
        largest = max([largest, *(abs(token.noise - g) for token, g in played if token.noise is not None)])
        same += _winner(played) == site.written
    return Check(count, compared, largest, same)


def lines(site: Site, texts: Texts) -> str:
    """:data:`LINES` with the place's numbers."""
    return "\n".join(LINES).format(
        seed=seed_of(site),
        position=site.position,
        size=size_of(site.row),
        token=site.written,
        text=texts(site.written),
    )


def replay(site: Site, texts: Texts, whole: Check, badge: str, digits: int = 3) -> Panel:
    """One place played again, and what became of all the others: its table has numbers of so many digits, beside the
    recorded ones where those can be told from them, and no rows of none."""
    played = sorted(_numbers(site), key=lambda one: score(one[0], "target"), reverse=True)[: place.ROWS]
    won = _winner(played)
    beside = digits >= numbers.MOST_DIGITS

    def line(token: Token, g: float) -> tuple[str, ...]:
        total = _sum(token, g)
        return (
            f"{texts(token.id)}{' ⚑' if token.id == won else ''}",
            probability(token.p),
            *((_signed(token.noise or 0.0, digits),) if beside else ()),
            _signed(g, digits),
            _signed(total, min(digits, 4)) if total > -math.inf else "never",
        )

    table = Table(
        f"Place {site.number} of the text (position {site.position} with the prompt), seed {seed_of(site)}: "
        f"g computed again now{' beside the recorded one' if beside else ''}; ⚑ first home",
        ("token", "p", *(("g recorded", "g again") if beside else ("g",)), "log p + g"),
        tuple(line(*one) for one in played) if digits else (),
    )
    story = (
        "The noise follows from the seed and the position alone. The token needs the text so far too, for that makes "
        "p, and nothing of how the text was drafted or drawn: no generator to wind forward, no drafter, no gamma. So "
        "any place can be played again by itself."
        if whole.largest < FAITHFUL
        else "This record’s noise is not what its seed and positions give here: another program made it, or the file "
        "was changed."
    )
    return Panel(
        "Why it helps debugging: any place, again",
        f"{story}\nPlace {site.number}: {_again(won, site, texts)}.",
        (
            f"All {whole.places} places of this run, {whole.compared:,} numbers: {_distance(whole.largest)}; the "
            f"winner is the token of the text at {whole.same} of {whole.places}.",
        ),
        REPLAY,
        table,
        badge=f"{badge} · simulated",
    )


def _again(won: int | None, site: Site, texts: Texts) -> str:
    if won is None:
        return f"nobody is home, and the text has “{texts(site.written)}”"
    if won == site.written:
        return f"“{texts(won)}” is first home again, as in the text"
    return f"“{texts(won)}” is first home now, and the text has “{texts(site.written)}”"


def _distance(largest: float) -> str:
    """How far numbers played again are from the recorded ones."""
    if largest == 0:
        return "each is the recorded one, to the last digit"
    agree = math.floor(-math.log10(largest))
    return (
        f"each agrees with the record to {numbers.count(agree)} digits after the point"
        if largest < FAITHFUL
        else f"the largest difference from the record is {largest:.1g}"
    )
