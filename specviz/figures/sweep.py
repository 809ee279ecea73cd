"""A sweep over gamma as it was measured: speed beside the theory, places of the draft, adaptive gamma, what was lost.

Seconds and counts are those of a :class:`specviz.experiments.Sweep`; the lines of the theory beside them are modelled
from its alpha and its reads, and say so.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import Any

from specviz import rules, theory
from specviz.experiments import Policy, Sweep
from specviz.figures.charts import CLEAR, Panel, colour, escaped, figure
from specviz.figures.gamma import FACTORS
from specviz.figures.numbers import duration, fraction, probability, rows, significant
from specviz.figures.roofline import times
from specviz.figures.table import Table

FEW = 10
"""Fewer judged than that are too few to say."""
SMALLEST, LARGEST = 1e-9, 1e9
"""Between these are all seconds, rates and speeds that are believed."""
NEAR = 0.05
"""Speeds that differ by less are called about the same: that much changes from one measurement to the next."""
P, LEAST = (0.6, 0.3, 0.1), 0.2
"""The example of a stop that comes too late: both models agree, and a draft below 0.2 is dropped after its draw."""


def name(policy: Policy) -> str:
    """What a policy is called."""
    if not policy.gamma:
        return "the target alone"
    if policy.stop_below:
        return f"up to {policy.gamma}, stops below {significant(policy.stop_below, 2)}"
    if policy.stop_above is not None:
        return f"up to {policy.gamma}, stops above {significant(policy.stop_above, 2)} nats"
    return f"gamma {policy.gamma}"


def fixed(sweep: Sweep) -> tuple[Policy, ...]:
    """The policies that always draft gamma tokens, gamma 0 first."""
    return tuple(policy for policy in sweep.policies() if not policy.adaptive)


def adaptive(sweep: Sweep) -> tuple[Policy, ...]:
    """The policies that stop early."""
    return tuple(policy for policy in sweep.policies() if policy.adaptive)


def lost_most(sweep: Sweep) -> tuple[str, Policy] | None:
    """The workload and the policy with the lowest speed over the target alone."""
    found = [
        (slow, workload, policy)
        for workload in sweep.workloads()
        for part in (sweep.select(workload),)
        for policy in part.policies()
        if policy.gamma and (slow := speed(part, policy)) is not None
    ]
    return min(found, key=lambda one: one[0])[1:] if found else None


def fastest(sweep: Sweep, policies: Sequence[Policy]) -> Policy | None:
    """The fastest of some policies."""
    return max(policies, key=lambda one: rate(sweep, one) or 0.0, default=None)


def alpha(sweep: Sweep) -> float | None:
    """Shared over all judged places under fixed gamma; those that stop early judge other places."""
    found = _only_fixed(sweep).alpha()
    return None if found is None else min(max(found, 0.0), 1.0)  # sums may miss 1 by their rounding


def rate(sweep: Sweep, policy: Policy) -> float | None:
    """Tokens a second."""
    return _sound(sweep.tokens_per_second(policy))


def speed(sweep: Sweep, policy: Policy) -> float | None:
    """Speed over the target alone."""
    return _sound(sweep.speedup(policy))


def per_read(sweep: Sweep, policy: Policy) -> float | None:
    """Tokens a read of the target."""
    return _sound(sweep.tokens_per_pass(policy))


def read_times(sweep: Sweep) -> dict[int, float]:
    """Seconds of a read of the target by its rows."""
    return {width: seconds for width, seconds in sweep.read_seconds().items() if _sound(seconds)}


def ratio(sweep: Sweep) -> float | None:
    """c."""
    return _sound(sweep.c())


def _sound(value: float | None) -> float | None:
    """A number that a machine can have; a file may hold any."""
    return value if value is not None and SMALLEST < value < LARGEST else None


def _only_fixed(sweep: Sweep) -> Sweep:
    return replace(sweep, runs=tuple(run for run in sweep.runs if run.policy.gamma and not run.policy.adaptive))


def machine(sweep: Sweep) -> str:
    """What ran, and where."""
    return f"{sweep.pair}, {sweep.device} {sweep.dtype}"


# --- speed by gamma ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Expected:
    """What the theory says of one gamma, in speeds over the target alone: with free reads, and with measured ones
    (None where no read of that width was timed)."""

    free: float
    timed: float | None


def expected(sweep: Sweep, gamma: int) -> Expected | None:
    """The theory with the sweep's own alpha, c and times of reads; None where it has none of them."""
    shared, c, reads, draft_s = alpha(sweep), ratio(sweep), read_times(sweep), _sound(sweep.draft_seconds())
    if shared is None or c is None or draft_s is None:
        return None
    timed = None
    if {1, gamma + 1} <= reads.keys():
        brings = theory.expected_tokens(shared, gamma)
        timed = theory.measured_speedup(brings, gamma, reads[1], reads[gamma + 1], draft_s)
    return Expected(theory.speedup(shared, gamma, c), timed)


def speeds(sweep: Sweep, chosen: Policy | None, badge: str) -> Panel:
    """Tokens a second against gamma: measured, and what the theory says with this sweep's alpha, c and reads."""
    policies = fixed(sweep)
    said = {policy.gamma: expected(sweep, policy.gamma) for policy in policies}
    plain = sweep.plain_policy()
    alone = rate(sweep, plain) if plain is not None else None
    drawn = _by_gamma("tokens a second")
    drawn.add_scatter(
        **_measured([policy.gamma for policy in policies], [rate(sweep, one) for one in policies]),
        name="measured",
        hovertemplate="measured: %{y:.3~g} a second<extra></extra>",
    )
    lines = (
        ("theory, wide reads timed", [one.timed if one else None for one in said.values()], "target", "dot"),
        ("theory, wide reads free", [one.free if one else None for one in said.values()], "muted", "dash"),
    )
    for label, values, ink, dash in lines:
        drawn.add_scatter(
            x=list(said),
            y=[None if value is None or alone is None else alone * value for value in values],
            mode="lines",
            name=f"{label} (modelled)",
            line={"color": colour(ink), "dash": dash, "width": 2},
            hovertemplate=f"{label}: %{{y:.3~g}} a second<extra></extra>",
        )
    if alone is not None:
        drawn.add_hline(y=alone, line={"color": colour("muted"), "width": 1})
        drawn.add_annotation(
            x=1, xref="paper", y=alone, text="the target alone", showarrow=False, yshift=9, xanchor="right"
        )
    return Panel(
        "Tokens a second",
        _speed_story(sweep, policies),
        (*difference(sweep, chosen), f"{machine(sweep)}; {_counted(sweep)}. The prompt’s own read is left out."),
        "theory, reads free: tokens/s alone × E ÷ (1 + γ c)\n"
        "theory, reads timed: tokens/s alone × E t(1) ÷ (t(γ+1) + γ d)\n"
        f"E = 1 + α + … + α^γ, α = {_number(alpha(sweep), 4)}\n"
        f"c = d ÷ t(1) = {_seconds(_sound(sweep.draft_seconds()))} ÷ {_seconds(read_times(sweep).get(1))} = "
        f"{_number(ratio(sweep), 4)}",
        Table(
            f"By gamma: measured columns ({badge}) and modelled ones; {machine(sweep)}",
            (
                "gamma",
                "tokens/s, measured",
                "speed, measured",
                "tokens a read, measured",
                "read of γ+1 rows, measured",
                "speed, modelled, reads free",
                "speed, modelled, reads timed",
            ),
            tuple(
                (
                    str(policy.gamma),
                    _number(rate(sweep, policy)),
                    _times(speed(sweep, policy)),
                    _number(per_read(sweep, policy)),
                    _seconds(read_times(sweep).get(policy.gamma + 1)),
                    _times(one.free if (one := said[policy.gamma]) else None),
                    _times(one.timed if one else None),
                )
                for policy in policies
            ),
        ),
        drawn,
        f"Tokens a second against gamma, measured beside the theory. {_speed_story(sweep, policies)}",
        badge=f"{badge} · theory modelled",
    )


def _speed_story(sweep: Sweep, policies: Sequence[Policy]) -> str:
    drafts = [policy for policy in policies if policy.gamma]
    best, worst = fastest(sweep, drafts), min(drafts, key=lambda one: rate(sweep, one) or 0, default=None)
    if best is None or worst is None:
        return "Only the target alone was measured so far: no gamma to compare it with."
    quickest, slow = speed(sweep, best), speed(sweep, worst)
    if quickest is None or slow is None:
        return f"{_opened(best)} is the fastest so far. The target alone was not measured, so no speed over it is told."
    slowest = "" if worst == best else f"; {name(worst)} is {times(slow)}"
    if quickest < 1 + NEAR:
        pays = "no fixed gamma pays" if quickest < 1 - NEAR else "no fixed gamma gains anything to speak of"
        return f"Here {pays}: the best, {name(best)}, is {times(quickest)}, {_beside(quickest)}{slowest}."
    end = f", {_beside(slow)}" if slowest and slow < 1 - NEAR else ""
    return f"{_opened(best)} was the fastest: {times(quickest)} the target alone{slowest}{end}."


def _beside(factor: float) -> str:
    """A speed beside the target alone, in words."""
    if abs(factor - 1) < NEAR:
        return "about as fast as the target alone"
    return f"{'slower' if factor < 1 else 'faster'} than the target alone"


def _opened(policy: Policy) -> str:
    told = name(policy)
    return told[0].upper() + told[1:]


def difference(sweep: Sweep, policy: Policy | None) -> tuple[str, ...]:
    """Why the theory and the clock differ at one fixed gamma: factors that multiply to the whole difference."""
    parts = gaps(sweep, policy) if policy is not None else None
    if parts is None or policy is None:
        return ()
    width = policy.gamma + 1
    reads = read_times(sweep)
    promised = theory.expected_tokens(alpha(sweep) or 0.0, policy.gamma)
    brought = _number(per_read(sweep, policy))
    return (
        f"{_opened(policy)}: the theory says {times(parts.theory)}, the clock {times(parts.real)}. Three reasons, "
        "which multiply:",
        f"{_by(parts.width)}  A read of {rows(width)} took {times(reads[width] / reads[1])} the time of a read of 1 "
        "row: verification is not free.",
        f"{_by(parts.tokens)}  A read brought {brought} tokens; equal chances at every place would bring "
        f"{promised:.2f}: {_uneven(sweep.rule)}.",
        f"{_by(parts.rest)}  The rest: time outside the reads, and their ups and downs.",
    )


def _uneven(rule: str) -> str:
    """Why a read does not bring what equal chances would."""
    if rule in ("speculative_sampling", "greedy"):
        return "shared is not the same everywhere, and some of it is luck"
    return "under this rule a draft’s chance is not what is shared, nor the same everywhere"


@dataclass(frozen=True, slots=True)
class Gaps:
    """The theory's speed, the factors that lead from it, and the speed by the clock."""

    theory: float
    width: float
    tokens: float
    rest: float
    real: float


def gaps(sweep: Sweep, policy: Policy) -> Gaps | None:
    """What lies between theory and clock at a fixed gamma; None where something of it was not measured."""
    said, real = expected(sweep, policy.gamma), speed(sweep, policy)
    tokens, shared = per_read(sweep, policy), alpha(sweep)
    if policy.adaptive or not policy.gamma or not real or said is None or not said.timed or not tokens or not shared:
        return None
    brought = tokens / theory.expected_tokens(shared, policy.gamma)
    return Gaps(said.free, said.timed / said.free, brought, real / (said.timed * brought), real)


# --- tokens a read ----------------------------------------------------------------------------------------------------


def yields(sweep: Sweep, badge: str) -> Panel:
    """Tokens a read against gamma, and what equal chances at every place would bring."""
    policies = fixed(sweep)
    shared = alpha(sweep)
    counted = [per_read(sweep, policy) for policy in policies]
    promised = [theory.expected_tokens(shared, one.gamma) if shared is not None else None for one in policies]
    drawn = _by_gamma("tokens a read of the target")
    drawn.add_scatter(
        **_measured([policy.gamma for policy in policies], counted),
        name="counted",
        hovertemplate="counted: %{y:.3f}<extra></extra>",
    )
    if shared is not None:
        drawn.add_scatter(
            x=[policy.gamma for policy in policies],
            y=promised,
            mode="lines",
            name=f"equal chances, shared {probability(shared)} (modelled)",
            line={"color": colour("muted"), "dash": "dash", "width": 2},
            hovertemplate="equal chances: %{y:.3f}<extra></extra>",
        )
    last = next((one for one in reversed(policies) if one.gamma), None)
    told = per_read(sweep, last) if last is not None else None
    story = (
        "Nothing was drafted so far: a read brings one token."
        if last is None or told is None or shared is None
        else f"Each further draft adds less: gamma {last.gamma} brings {told:.2f} tokens a read; "
        f"no gamma brings more than {_limit(shared)} if every draft stays with chance {probability(shared)}."
    )
    return Panel(
        "Tokens a read",
        story,
        (
            "Counted: tokens that entered the text, over reads of the target. The closing token of every round counts.",
            *(
                f"Gamma {one.gamma}: {fraction(*_counts(sweep, one))} = {_number(per_read(sweep, one))}"
                for one in policies
                if one.gamma in (1, 4, 8)
            ),
        ),
        f"E = 1 + α + … + α^γ < 1 ÷ (1 − α) = {_limit(shared)}\n"
        "without that assumption: 1 + Σ rounds that kept at least i ÷ rounds",
        Table(
            f"Tokens a read by gamma: counted ({badge}), and modelled with shared {probability(shared)} at every place",
            ("gamma", "tokens", "reads", "tokens a read, counted", "tokens a read, modelled"),
            tuple(
                (str(one.gamma), *(f"{count:,}" for count in _counts(sweep, one)), _number(seen, 4), _number(ought, 4))
                for one, seen, ought in zip(policies, counted, promised, strict=True)
            ),
        ),
        drawn,
        f"Tokens a read of the target against gamma, counted and modelled. {story}",
        badge=f"{badge} · equal chances modelled",
    )


def _limit(shared: float | None) -> str:
    return "–" if shared is None else "any number" if shared >= 1 else f"{1 / (1 - shared):.2f}"


def _counts(sweep: Sweep, policy: Policy) -> tuple[int, int]:
    runs = [run for run in sweep.runs if run.policy == policy]
    return sum(run.emitted for run in runs), sum(run.rounds for run in runs)


# --- places of the draft ----------------------------------------------------------------------------------------------


def places(sweep: Sweep, badge: str) -> Panel:
    """Shared (alpha) by place of the draft, over all fixed gammas."""
    counted = _only_fixed(sweep).kept_by_place()
    shared = alpha(sweep)
    sure = [index for index, place in enumerate(counted) if place.judged >= FEW]
    drawn = figure(
        x={
            "title": "place in the draft",
            "dtick": 1,
            "tick0": 1,
            "range": [0.4, max([4, *(at + 1 for at, place in enumerate(counted) if place.judged)]) + 0.6],
        },
        y={"title": "shared (alpha)", "range": [0, 1.02]},
        bargap=0.4,
    )
    sets = (
        ("shared", sure, {"color": colour("both")}),
        (
            f"fewer than {FEW} judged: too few to say",
            [index for index, place in enumerate(counted) if 0 < place.judged < FEW],
            {"color": CLEAR, "line": {"color": colour("muted"), "width": 1.5}},
        ),
    )
    for label, at, marker in sets:
        if at:
            drawn.add_bar(
                x=[index + 1 for index in at],
                y=[counted[index].alpha for index in at],
                name=label,
                marker=marker,
                customdata=[counted[index].judged for index in at],
                hovertemplate="place %{x}: %{y:.3f}, mean of %{customdata:,} judged<extra></extra>",
            )
    drawn.add_scatter(
        x=[index + 1 for index in sure],
        y=[counted[index].rate for index in sure],
        mode="markers",
        name="kept of judged",
        marker={"symbol": "diamond-open", "size": 9, "color": colour("ink"), "line": {"width": 2}},
        hovertemplate="place %{x}: kept %{y:.3f} of judged<extra></extra>",
    )
    if shared is not None:
        drawn.add_hline(y=shared, line={"color": colour("muted"), "dash": "dash", "width": 1.5})
    story = _places_story([(index + 1, counted[index].alpha or 0.0) for index in sure], shared)
    return Panel(
        "Shared by place of the draft",
        story,
        (
            "A place is judged only where every draft before it stayed, so later places stand in text that is easier "
            "to guess, and there are fewer of them.",
            "Every gamma drafts the same texts with the same seed, so the counts repeat each other: they say less than "
            "as many drafts of different texts would.",
            *(
                (f"All places together, the dashed line: {probability(shared, 3)}. The theory puts it at every place.",)
                if shared is not None
                else ()
            ),
        ),
        "alpha at place i = mean Σ min(p, q) over rounds that judged place i\n"
        "kept at place i = rounds that kept at least i ÷ rounds that judged place i",
        Table(
            f"By place of the draft, all fixed gammas together, {badge}",
            ("place", "shared (alpha)", "judged", "kept of judged", "kept"),
            tuple(
                (
                    str(index + 1),
                    "too few to say" if place.judged < FEW else probability(place.alpha, 3),
                    f"{place.judged:,}",
                    fraction(place.kept, place.judged),
                    "too few to say" if place.judged < FEW else probability(place.rate, 3),
                )
                for index, place in enumerate(counted)
            ),
        ),
        drawn,
        f"Shared by place of the draft. {story}",
        badge=badge,
    )


def _places_story(seen: Sequence[tuple[int, float]], shared: float | None) -> str:
    if shared is None:
        return "Nothing was drafted so far, so no place was judged."
    if len(seen) < 2:
        return "Too few drafts were judged so far to tell the places apart."
    (_, first), (place, last) = seen[0], seen[-1]
    if abs(last - first) < 0.02:
        return f"About the same at the first place and at place {place}: {probability(first)} and {probability(last)}."
    told = f"Not the same at every place: {probability(first)} at the first, {probability(last)} at place {place}"
    if last > first:
        return f"{told}. A late place is judged only where all before it stayed, and such text is easier."
    return f"{told}. The further ahead the drafter writes, the less it agrees."


# --- adaptive gamma ---------------------------------------------------------------------------------------------------


def stopping(sweep: Sweep, badge: str) -> Panel:
    """Fixed gamma and gammas that stop early, on the same axes."""
    fixed_ones, early = fixed(sweep), adaptive(sweep)
    drawn = figure(
        x={"title": "drafts a round, on average", "dtick": 2, "rangemode": "tozero"},
        y={"title": "tokens a second, measured", "rangemode": "tozero"},
        hovermode="closest",
    )
    sets: tuple[tuple[str, Sequence[Policy], str, str, str, int], ...] = (
        ("fixed gamma", fixed_ones, "diamond", "ink", "lines+markers", 8),
        ("stops below a chance", [one for one in early if one.stop_below], "square-open", "drafter", "markers", 12),
        (
            "stops above an entropy",
            [one for one in early if one.stop_above is not None],
            "triangle-up-open",
            "drafter",
            "markers",
            13,
        ),
    )
    for label, policies, symbol, ink, mode, size in sets:
        if policies:
            drawn.add_scatter(
                x=[sweep.drafts_per_round(one) for one in policies],
                y=[rate(sweep, one) for one in policies],
                mode=mode,
                name=label,
                line={"color": colour(ink), "width": 2},
                marker={"symbol": symbol, "size": size, "color": colour(ink), "line": {"width": 2.5}},
                customdata=[escaped(name(one)) for one in policies],
                hovertemplate="%{customdata}: %{x:.2f} drafts a round, %{y:.3~g} tokens a second<extra></extra>",
            )
    story = _stopping_story(sweep)
    return Panel(
        "Stop drafting when the drafter is unsure",
        story,
        (
            "Before each draw the drafter’s chances are looked at: if its first choice is below a limit, or its "
            "entropy above one, the draft ends there. The token is not drawn yet, so nothing is distorted.",
            "Speeds that differ by less than "
            f"{NEAR:.0%} are called about the same: so much changes from one measurement to the next.",
        ),
        "stop before the draw if max q < limit, or if H(q) = −Σ q ln q > limit (nats)",
        Table(
            f"Fixed and adaptive, {badge}; {machine(sweep)}",
            ("drafting", "drafts a round", "tokens a read", "shared (alpha)", "tokens/s", "speed"),
            tuple(
                (
                    name(one),
                    _number(sweep.drafts_per_round(one)),
                    _number(per_read(sweep, one)),
                    probability(sweep.alpha(one), 3),
                    _number(rate(sweep, one)),
                    _times(speed(sweep, one)),
                )
                for one in (*fixed_ones, *early)
            ),
        ),
        drawn,
        f"Tokens a second against drafts a round, fixed and adaptive. {story}",
        badge=badge,
    )


def _stopping_story(sweep: Sweep) -> str:
    drafts = [one for one in fixed(sweep) if one.gamma and rate(sweep, one)]
    best, early = fastest(sweep, drafts), fastest(sweep, adaptive(sweep))
    ours, fast = (rate(sweep, one) if one is not None else None for one in (early, best))
    if early is None or best is None or ours is None or fast is None:
        return "No gamma that stops early was measured so far."
    told = f"The best that stops early ({name(early)}) writes {_number(ours)} tokens a second"
    beside = f"the best fixed one, {name(best)}: {_number(fast)}"
    than = "about the same as" if abs(ours / fast - 1) < NEAR else "more than" if ours > fast else "less than"
    longest = max(drafts, key=lambda one: one.gamma)
    tail = "" if longest == best else f" Always drafting {longest.gamma} writes {_number(rate(sweep, longest))}."
    return f"{told}, {than} {beside}.{tail}"


@cache
def too_late() -> Panel:
    """The same idea with one mistake: the token is drawn first, and dropped if it is unlikely."""
    import numpy as np

    p = np.array(P)
    wrong = [float(chance) for chance in rules.dropped_after_draw(p, p, LEAST)]
    right = [float(chance) for chance in rules.SpeculativeSampling().emitted_law(p, p)]
    tokens = ("likely", "possible", "rare")
    drawn = figure(
        x={"tickvals": [0, 1, 2], "ticktext": tokens, "range": [-0.5, 2.5]},
        y={"title": "chance of coming out", "range": [0, 0.8]},
        barmode="group",
        bargap=0.35,
        bargroupgap=0.08,
    )
    sets: tuple[tuple[str, Sequence[float], dict[str, Any]], ...] = (
        ("the target wants", P, {"color": colour("target")}),
        ("✓ stops before the draw", right, {"color": colour("both")}),
        ("✗ drops after the draw", wrong, {"color": CLEAR, "line": {"color": colour("rejected"), "width": 2}}),
    )
    for label, values, marker in sets:
        drawn.add_bar(
            x=[0, 1, 2],
            y=values,
            name=label,
            marker=marker,
            text=[probability(value) for value in values],
            textposition="outside",
            textfont={"color": colour("ink")},
            cliponaxis=False,
            hovertemplate=f"{label}: %{{y:.3f}}<extra></extra>",
        )
    off = 0.5 * math.fsum(abs(a - b) for a, b in zip(P, wrong, strict=True))
    return Panel(
        "Stop before the draw, never after",
        f"Drawing first and dropping an unlikely draft is wrong: the rare token comes out {probability(wrong[2])} of "
        f"the time instead of {probability(P[2])}, although both models agree.",
        (
            f"An unlikely token (below {LEAST}) gets through only if the target draws it again in the draft’s place: "
            "it has to be drawn twice.",
            f"{off:.0%} of the time another token comes out than the target wants. Before the draw the limit changes "
            "nothing but the speed.",
        ),
        f"dropped after the draw, both models p: p(x) [p(x) ≥ {LEAST}] + p(x) Σ p(y) [p(y) < {LEAST}]\n"
        f"(.6, .3, .1) becomes ({', '.join(f'{value:.2f}' for value in wrong)}): TV {off:.3f}",
        Table(
            "What comes out, by enumeration: both models give the tokens 0.6, 0.3 and 0.1",
            ("token", "the target wants", "stops before the draw (right)", "drops after the draw (wrong)"),
            tuple(
                (token, probability(P[at]), probability(right[at]), probability(wrong[at]))
                for at, token in enumerate(tokens)
            ),
        ),
        drawn,
        "Chances of three tokens: as the target wants them, as they come out when drafting stops before the draw "
        f"(the same), and when drafts are dropped after it: {', '.join(map(probability, wrong))}.",
    )


# --- what was lost ----------------------------------------------------------------------------------------------------

STEPS = (
    ("ideal", "all drafts kept, nothing else costs time"),
    ("kept", "drafts that died"),
    ("drafted", "the drafter’s reads"),
    ("read", "the wider read"),
    ("real", "outside the reads"),
)


def attributed(sweep: Sweep, policy: Policy) -> theory.Losses | None:
    """The losses of a policy, on the prompts that the target alone decoded too; None where that was not measured."""
    plain = sweep.plain_policy()
    alone = {(run.workload, run.prompt): run for run in sweep.runs if plain is not None and run.policy == plain}
    runs = [run for run in sweep.runs if run.policy == policy and (run.workload, run.prompt) in alone]
    reads = [seconds for run in runs for _, seconds in alone[run.workload, run.prompt].verify]
    rounds, real = sum(run.rounds for run in runs), speed(sweep, policy)
    if not policy.gamma or not rounds or not reads or real is None:
        return None
    plain_s = _sound(math.fsum(reads) / len(reads))
    verify_s = _sound(math.fsum(seconds for run in runs for _, seconds in run.verify) / rounds)
    draft_s = math.fsum(seconds for run in runs for seconds in run.draft) / rounds
    if plain_s is None or verify_s is None:
        return None
    found = theory.losses(
        tokens_per_pass=sum(run.emitted for run in runs) / rounds,
        gamma=sum(run.drafted for run in runs) / rounds,
        plain_s=plain_s,
        verify_s=verify_s,
        draft_s=draft_s,
        speed=real,
    )
    return found if all(map(_sound, found)) else None


def waterfall(sweep: Sweep, policy: Policy | None, badge: str) -> Panel:
    """From the ideal speed to the real one, step by step."""
    lost = attributed(sweep, policy) if policy is not None else None
    title = "Where the speed went"
    if lost is None or policy is None:
        return Panel(
            title,
            "Nothing to tell yet: it takes a measured gamma above 0, and the target alone on the same prompts.",
            (),
            "ideal = γ + 1",
            Table("Losses", ("what is counted", "factor", "speed"), ()),
            badge=badge,
        )
    factors = [1.0] + [after / before for before, after in pairwise(lost)]
    biggest = min(range(1, 5), key=lambda at: factors[at])
    ideal = times(lost.ideal)
    why = "some rounds find nothing to copy" if policy.drafter == "ngram" else "a text’s last rounds are short"
    why = "it stops early" if policy.adaptive else why
    short = f" ({why})" if lost.ideal - 1 < policy.gamma - 0.005 else ""
    story = (
        f"{_opened(policy)} could be {ideal} and is {times(lost.real)}, {_beside(lost.real)}. Most went with "
        f"{STEPS[biggest][1]}: {_by(factors[biggest])}."
    )
    return Panel(
        title,
        story,
        (
            f"Drafts that died: {significant(lost.ideal - 1)} drafts a round{short} and the closing token could be "
            f"{significant(lost.ideal)} tokens; a read brought {lost.kept:.2f}.",
            f"The drafter’s reads: a round’s take as long as {significant(lost.kept / lost.drafted - 1)} reads of the "
            "target.",
            "The wider read: it takes as long as "
            f"{significant(lost.kept / lost.read - lost.kept / lost.drafted + 1)} reads of one row.",
            "Outside the reads: the rule, and what the program itself does. Above × 1 where a round has less of that "
            "than plain decoding has for as many reads.",
        ),
        "ideal: γ + 1, γ the mean of the rounds\n"
        "drafts that died: τ, tokens a read\n"
        "drafter’s reads: τ t(1) ÷ (t(1) + D), D all of a round’s\n"
        "wider read: τ t(1) ÷ (t(γ+1) + D)\n"
        "outside the reads: tokens/s ÷ tokens/s alone\n"
        + " × ".join([significant(lost.ideal, 4), *(f"{factor:.4f}" for factor in factors[1:])])
        + f" = {lost.real:.4f}",
        Table(
            f"{_opened(policy)}, {badge}; {machine(sweep)}",
            ("what is counted", "factor", "speed"),
            tuple(
                (label, "–" if at == 0 else f"× {factor:.4f}", f"{speed:.4f}×")
                for at, ((_, label), factor, speed) in enumerate(zip(STEPS, factors, lost, strict=True))
            ),
        ),
        _falls(lost, factors),
        f"Waterfall from {ideal} to {times(lost.real)}. {story}",
        badge=badge,
    )


def _falls(lost: theory.Losses, factors: Sequence[float]) -> Any:
    """The steps as bars. They are factors, so the axis is by factors too; ideal and real stand on the target alone."""
    labels = ["ideal", "drafts<br>that died", "drafter’s<br>reads", "wider<br>read", "outside<br>the reads", "real"]
    spans = [(1.0, lost.ideal), *pairwise(lost), (1.0, lost.real)]
    inks = ("muted", "rejected", "drafter", "target", "muted", "ink")
    low, high = min(*lost, 1) / 1.5, max(*lost, 1) * 1.5
    told = [times(lost.ideal), *map(_by, factors[1:]), times(lost.real)]
    drawn = figure(
        x={"tickvals": list(range(6)), "ticktext": labels, "range": [-0.6, 5.6]},
        y={
            "title": "times the target alone",
            "type": "log",
            "tickvals": FACTORS,
            "ticktext": [f"{factor:g}×" for factor in FACTORS],
            "range": [math.log10(low), math.log10(high)],
        },
        showlegend=False,
        bargap=0.3,
        annotations=[
            {"x": at, "y": math.log10(max(span)), "text": text, "showarrow": False, "yshift": 11}
            | {"bgcolor": colour("paper")}
            for at, (text, span) in enumerate(zip(told, spans, strict=True))
        ],
    )
    drawn.add_bar(
        x=list(range(6)),
        y=[max(span) - min(span) for span in spans],
        base=[min(span) for span in spans],
        marker={
            "color": [colour(ink) if at == 5 else CLEAR for at, ink in enumerate(inks)],
            "line": {"color": [colour(ink) for ink in inks], "width": 2.5},
        },
        customdata=[times(end) for _, end in spans],
        hovertemplate="%{customdata}<extra></extra>",
    )
    return drawn.add_hline(y=1, line={"color": colour("ink"), "width": 1})


# --- as a file --------------------------------------------------------------------------------------------------------


def table(sweep: Sweep) -> str:
    """Every run as a line of comma-separated values."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        ["workload", "prompt", "gamma", "stop_below", "stop_above", "emitted", "rounds", "drafted", "kept", "seconds"]
    )
    for run in sweep.runs:
        policy = run.policy
        who = _safe(run.workload), _safe(run.prompt), policy.gamma, policy.stop_below, policy.stop_above
        writer.writerow([*who, run.emitted, run.rounds, run.drafted, sum(run.kept), f"{run.seconds:.6f}"])
    return text.getvalue()


def _safe(text: str) -> str:
    """A cell that no spreadsheet takes for a formula."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


# --- numbers ----------------------------------------------------------------------------------------------------------


def _by_gamma(title: str) -> Any:
    return figure(
        x={"title": "gamma γ: drafts a round", "dtick": 1, "tick0": 0},
        y={"title": title, "rangemode": "tozero"},
        hovermode="x unified",
    )


def _measured(x: Sequence[int], y: Sequence[float | None]) -> dict[str, Any]:
    return {
        "x": list(x),
        "y": list(y),
        "mode": "lines+markers",
        "line": {"color": colour("ink"), "width": 2},
        "marker": {"symbol": "diamond", "size": 8, "color": colour("ink")},
    }


def _counted(sweep: Sweep) -> str:
    prompts = {(run.workload, run.prompt) for run in sweep.runs}
    return f"{len(prompts)} {'prompt' if len(prompts) == 1 else 'prompts'}, {len(sweep.runs)} runs"


def _number(value: float | None, digits: int = 3) -> str:
    return "–" if value is None else significant(value, digits)


def _by(factor: float) -> str:
    """ "× 0.706", in one piece."""
    return f"×\u00a0{significant(factor)}"


def _seconds(value: float | None) -> str:
    return "–" if value is None else duration(value)


def _times(value: float | None) -> str:
    return "–" if value is None else times(value)
