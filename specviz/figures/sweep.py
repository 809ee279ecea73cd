"""A sweep over gamma as it was measured: speed beside the theory, places of the draft, adaptive gamma, what was lost.

Seconds and counts are those of a :class:`specviz.experiments.Sweep`; the lines of the theory beside them are modelled
from its alpha and its reads, and say so.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import Any

from specviz import rules, theory
from specviz.experiments import Place, Policy, Sweep
from specviz.figures.charts import CLEAR, Panel, colour, escaped, figure
from specviz.figures.gamma import FACTORS, Scene
from specviz.figures.gamma import ratio as ratio_told
from specviz.figures.numbers import duration, fraction, probability, significant
from specviz.figures.roofline import times
from specviz.figures.table import Table

FEW = 10
"""Of whatever is counted or timed (rounds of a policy, drafts judged at a place, reads), fewer are too few to say."""
FEW_ROUNDS = f"fewer than {FEW} rounds: too few to say"
SMALLEST, LARGEST = 1e-9, 1e9
"""Between these are all seconds, rates and speeds that are believed."""
NEAR = 0.05
"""Speeds that differ by less are called about the same, however steady the rounds were: a choice."""
BY_SHARED = ("speculative_sampling", "greedy")
"""Under these rules alpha = sum min(p, q) is a draft's chance."""
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


def offered(sweep: Sweep) -> tuple[Policy, ...]:
    """Every policy that is worth a look: at temperature 0 the drafter is always sure, and stops never."""
    return tuple(policy for policy in sweep.policies() if sweep.temperature or not policy.adaptive)


def fixed(sweep: Sweep) -> tuple[Policy, ...]:
    """The policies that always draft gamma tokens, gamma 0 first."""
    return tuple(policy for policy in sweep.policies() if not policy.adaptive)


def adaptive(sweep: Sweep) -> tuple[Policy, ...]:
    """The policies that stop early."""
    return tuple(policy for policy in offered(sweep) if policy.adaptive)


def sure(sweep: Sweep, policies: Sequence[Policy]) -> list[Policy]:
    """Those of some policies that had rounds enough to say anything."""
    return [policy for policy in policies if sweep.rounds(policy) >= FEW]


def drafting(sweep: Sweep, policies: Sequence[Policy]) -> list[Policy]:
    """Those of some policies that drafted, and enough to say anything."""
    return [policy for policy in sure(sweep, policies) if policy.gamma and rate(sweep, policy)]


def too_little(sweep: Sweep) -> str:
    """What is said while nothing can be compared: what is missing."""
    runs = [run for run in sweep.runs if run.policy.gamma]
    if not runs:
        return "Nothing was drafted so far: there is no gamma to compare the target alone with."
    if len(sure(sweep, sweep.policies())) == len(sweep.policies()):
        if sweep.plain_policy() is None:
            return "The target alone was not measured, so no speed over it is told."
        return "No speed can be told: no tokens came, or they took no time."
    written = round(sum(run.emitted for run in runs) / len(runs))
    of = "" if sweep.max_new_tokens is None else f" of {sweep.max_new_tokens:,}"
    return f"{written:,}{of} tokens a run, {FEW_ROUNDS.partition(':')[0]}: too little to say."


def _too_little_fixed(sweep: Sweep) -> str:
    """The same where only fixed gammas count."""
    early = any(run.policy.adaptive for run in sweep.runs)
    return "No fixed gamma was measured so far." if early and not _only_fixed(sweep).runs else too_little(sweep)


def lost_most(sweep: Sweep) -> tuple[str, Policy] | None:
    """The workload and the policy with the lowest speed over the target alone."""
    found = [
        (slow, workload, policy)
        for workload in sweep.workloads()
        for part in (sweep.select(workload),)
        for policy in drafting(part, offered(part))
        if (slow := speed(part, policy)) is not None
    ]
    return min(found, key=lambda one: one[0])[1:] if found else None


def fastest(sweep: Sweep, policies: Sequence[Policy]) -> Policy | None:
    """The fastest of some policies."""
    return max(policies, key=lambda one: rate(sweep, one) or 0.0, default=None)


def alpha(sweep: Sweep) -> float | None:
    """Shared over all judged places under fixed gamma; those that stop early judge other places.

    Under rules whose chance is another, kept of judged. None of few.
    """
    some = _only_fixed(sweep)
    places = some.kept_by_place()
    judged = sum(place.judged for place in places)
    if judged < FEW or not sure(some, some.policies()):
        return None
    found = math.fsum(place.shared if sweep.rule in BY_SHARED else place.kept for place in places) / judged
    return min(max(found, 0.0), 1.0)  # sums may miss 1 by their rounding


def rate(sweep: Sweep, policy: Policy) -> float | None:
    """Tokens a second."""
    return _sound(sweep.tokens_per_second(policy))


def speed(sweep: Sweep, policy: Policy) -> float | None:
    """Speed over the target alone."""
    return _sound(sweep.speedup(policy))


def per_read(sweep: Sweep, policy: Policy) -> float | None:
    """Tokens a read of the target."""
    return _sound(sweep.tokens_per_pass(policy))


def ratio(sweep: Sweep) -> float | None:
    """c, of reads enough; 0 where all drafts are copies."""
    drafted = [run for run in sweep.runs if run.policy.gamma]
    if drafted and all(run.policy.drafter == "ngram" for run in drafted):
        return 0.0
    plain = sum(width == 1 for run in sweep.runs for width, _ in run.verify)
    return _sound(sweep.c()) if min(plain, sum(len(run.draft) for run in sweep.runs)) >= FEW else None


def margin(sweep: Sweep, *policies: Policy) -> float:
    """What luck could make of two speeds that are the same, as a part of them: twice the standard error of their
    quotient, and at least :data:`NEAR`."""
    return max(NEAR, 2 * math.hypot(*(sweep.rate_error(policy) or 0.0 for policy in policies)))


MARGIN = (
    f"Speeds less than {NEAR:.0%} apart are called about the same: a choice. Luck could make what the ups and downs of "
    "tokens and times from round to round could (twice the standard error); slow minutes of the machine come on top."
)


def _sound(value: float | None) -> float | None:
    """A number that a machine can have; a file may hold any."""
    return value if value is not None and SMALLEST < value < LARGEST else None


def _only_fixed(sweep: Sweep) -> Sweep:
    return replace(sweep, runs=tuple(run for run in sweep.runs if run.policy.gamma and not run.policy.adaptive))


def machine(sweep: Sweep) -> str:
    """What ran, and where."""
    return f"{sweep.pair}, {sweep.device} {sweep.dtype}"


# --- what it all comes to ---------------------------------------------------------------------------------------------


def headline(sweep: Sweep) -> str:
    """The best of all ways to draft, those that stop early included, beside the target alone."""
    plain, ways = sweep.plain_policy(), drafting(sweep, offered(sweep))
    best = fastest(sweep, ways)
    if best is None or plain is None or not sure(sweep, [plain]) or (factor := speed(sweep, best)) is None:
        return too_little(sweep)
    near = margin(sweep, best, plain)
    if factor < 1 - near:
        first = f"No way to draft pays here: the best of {len(ways)}, {name(best)}, is {times(factor)} the target alone"
    else:
        first = f"The best of {len(ways)} ways to draft: {name(best)}, {times(factor)} the target alone"
        first += _luckily(factor, near)
    other = fastest(sweep, [one for one in ways if not one.adaptive])
    if not best.adaptive or other is None or (second := speed(sweep, other)) is None:
        return f"{first}."
    return f"{first}. The best fixed one, {name(other)}, is {times(second)}."


def judged(sweep: Sweep, gamma: int) -> tuple[str, bool]:
    """What the sweep says of a fixed gamma, and whether it was slower than the target alone."""
    plain = sweep.plain_policy()
    policy = next((one for one in drafting(sweep, fixed(sweep)) if one.gamma == gamma), None)
    factor = speed(sweep, policy) if policy is not None else None
    if policy is None or plain is None or factor is None:
        return f"Gamma {gamma} was not measured here, or too little to say. {headline(sweep)}", False
    near = margin(sweep, policy, plain)
    told = f"By the clock gamma {gamma} is {times(factor)}, {_beside(factor, near)}."
    return f"{told} {headline(sweep)}", factor < 1 - NEAR


def tied(sweep: Sweep, scene: Scene, policy: Policy | None) -> str:
    """How the top of the page and the sweep hang together: whose alpha and c, and what each makes of one gamma."""
    shared, c = alpha(sweep), ratio(sweep)
    if shared is None or c is None:
        return ""
    first = (
        f"The top of the page takes the sliders’ numbers, shared {probability(scene.alpha)} and c "
        f"{ratio_told(scene.c)}; this sweep has its own, shared {probability(shared)} over these prompts and c "
        f"{ratio_told(c)}. The top, and the dashed line below, also take wider reads to be free."
    )
    parts = gaps(sweep, policy) if policy is not None else None
    if parts is None or policy is None:
        return first
    return (
        f"{first} So {name(policy)} is {times(theory.speedup(scene.alpha, policy.gamma, scene.c))} with the sliders’ "
        f"numbers, {times(parts.theory)} with the sweep’s, {times(parts.theory * parts.drafts * parts.width)} with its "
        f"timed reads, and {times(parts.real)} by the clock."
    )


# --- speed by gamma ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Means:
    """A policy beside the target alone, on the prompts that both decoded: means of all rounds.

    Attributes:
        tokens: that a read brought.
        drafts: of a round.
        plain_s: a read of the target alone, t(1).
        verify_s: a round's read of the target.
        draft_s: a round's reads of the drafter, together.
    """

    tokens: float
    drafts: float
    plain_s: float
    verify_s: float
    draft_s: float


def means(sweep: Sweep, policy: Policy) -> Means | None:
    """The one definition of how long a round's reads take; None where that was not measured, or too little."""
    plain = sweep.plain_policy()
    alone = {(run.workload, run.prompt): run for run in sweep.runs if plain is not None and run.policy == plain}
    runs = [run for run in sweep.runs if run.policy == policy and (run.workload, run.prompt) in alone]
    reads = [seconds for run in runs for _, seconds in alone[run.workload, run.prompt].verify]
    rounds = sum(run.rounds for run in runs)
    if min(rounds, len(reads)) < FEW:
        return None
    plain_s = _sound(math.fsum(reads) / len(reads))
    verify_s = _sound(math.fsum(seconds for run in runs for _, seconds in run.verify) / rounds)
    if plain_s is None or verify_s is None:
        return None
    return Means(
        tokens=sum(run.emitted for run in runs) / rounds,
        drafts=sum(run.drafted for run in runs) / rounds,
        plain_s=plain_s,
        verify_s=verify_s,
        draft_s=math.fsum(seconds for run in runs for seconds in run.draft) / rounds,
    )


@dataclass(frozen=True, slots=True)
class Expected:
    """What the theory says of one gamma, in speeds over the target alone: with free reads, and with measured ones
    (None where too few were timed)."""

    free: float
    timed: float | None


def expected(sweep: Sweep, policy: Policy) -> Expected | None:
    """The theory of a fixed gamma with the sweep's own alpha, c and times of reads; None where it has none of them."""
    shared, c, timed = alpha(sweep), ratio(sweep), means(sweep, policy)
    if shared is None or c is None:
        return None
    brings = theory.expected_tokens(shared, policy.gamma)
    return Expected(
        theory.speedup(shared, policy.gamma, c),
        None if timed is None else brings * timed.plain_s / (timed.verify_s + timed.draft_s),
    )


def speeds(sweep: Sweep, chosen: Policy | None, badge: str) -> Panel:
    """Tokens a second against gamma: measured, and what the theory says with this sweep's alpha, c and reads."""
    said = {policy: expected(sweep, policy) for policy in fixed(sweep)}
    story = _speed_story(sweep)
    return Panel(
        "Tokens a second",
        story,
        (
            *difference(sweep, chosen),
            MARGIN,
            f"{machine(sweep)}; {_counted(sweep)}. The prompt’s own read is left out.",
        ),
        "theory, reads free: tokens/s alone × E ÷ (1 + γ c)\n"
        "theory, reads timed: tokens/s alone × E t(1) ÷ (t(γ+1) + D)\n"
        "t(1), t(γ+1), D: means of a read alone, of a round’s read, of a round’s drafter reads\n"
        f"E = 1 + α + … + α^γ, α = {_number(alpha(sweep), 4)}\n"
        f"c = median drafter read ÷ median read of 1 row = {_seconds(_sound(sweep.draft_seconds()))} ÷ "
        f"{_seconds(_sound(sweep.read_seconds().get(1)))} = {_number(ratio(sweep), 4)}",
        _speed_table(sweep, said, badge),
        _speed_figure(sweep, said),
        f"Tokens a second against gamma, measured beside the theory. {story}",
        badge=f"{badge} · modelled",
    )


def _speed_figure(sweep: Sweep, said: dict[Policy, Expected | None]) -> Any:
    plain = sweep.plain_policy()
    alone = rate(sweep, plain) if plain is not None else None
    gammas = [policy.gamma for policy in said]
    drawn = _by_gamma("tokens a second", said)
    luck = lambda one, value: 2 * (sweep.rate_error(one) or 0.0) * value  # noqa: E731
    for points in _measured("measured", sweep, list(said), rate, luck):
        drawn.add_scatter(**points, hovertemplate="measured: %{y:.3~g} a second<extra></extra>")
    lines = (
        ("theory, wide reads timed", [one.timed if one else None for one in said.values()], "target", "dot"),
        ("theory, wide reads free", [one.free if one else None for one in said.values()], "muted", "dash"),
        ("the target alone", [1.0 for _ in said], "muted", "solid"),
    )
    for label, values, ink, dash in lines:
        if alone is None or all(value is None for value in values):
            continue
        drawn.add_scatter(
            x=gammas,
            y=[None if value is None else alone * value for value in values],
            mode="lines",
            name=label if dash == "solid" else f"{label} (modelled)",
            line={"color": colour(ink), "dash": dash, "width": 1 if dash == "solid" else 2},
            hovertemplate=f"{label}: %{{y:.3~g}} a second<extra></extra>",
        )
    return drawn


def _speed_table(sweep: Sweep, said: dict[Policy, Expected | None], badge: str) -> Table:
    timed = {policy: means(sweep, policy) for policy in said}
    return Table(
        f"By gamma: measured columns ({badge}) and modelled ones; {machine(sweep)}",
        (
            "gamma",
            "rounds",
            "tokens/s, measured",
            "speed, measured",
            "tokens a read, measured",
            "a round’s read, measured (mean)",
            "speed, modelled, reads free",
            "speed, modelled, reads timed",
        ),
        tuple(
            (
                str(policy.gamma),
                f"{sweep.rounds(policy):,}",
                *_if_sure(sweep, policy, _number(rate(sweep, policy)), _times(speed(sweep, policy))),
                *_if_sure(sweep, policy, _number(per_read(sweep, policy))),
                _seconds(mean.verify_s if (mean := timed[policy]) else None),
                _times(one.free if one else None),
                _times(one.timed if one else None),
            )
            for policy, one in said.items()
        ),
    )


def _speed_story(sweep: Sweep) -> str:
    drafts, plain = drafting(sweep, fixed(sweep)), sweep.plain_policy()
    best, worst = fastest(sweep, drafts), min(drafts, key=lambda one: rate(sweep, one) or 0, default=None)
    if best is None or worst is None or (plain is not None and not sure(sweep, [plain])):
        return _too_little_fixed(sweep)
    quickest, slow = speed(sweep, best), speed(sweep, worst)
    if plain is not None and (quickest is None or slow is None):
        return too_little(sweep)
    if plain is None or quickest is None or slow is None:
        return f"{_opened(best)} is the fastest so far. The target alone was not measured, so no speed over it is told."
    near = margin(sweep, best, plain)
    slowest = "" if worst == best else f"; {name(worst)} is {times(slow)}"
    if quickest < 1 + near:
        pays = "no fixed gamma pays" if quickest < 1 - near else "no fixed gamma gains anything to speak of"
        return f"Here {pays}: the best, {name(best)}, is {times(quickest)}, {_beside(quickest, near)}{slowest}."
    below = slow < 1 - margin(sweep, worst, plain)
    end = f", {_beside(slow, NEAR)}" if slowest and below else ""
    return f"{_opened(best)} was the fastest: {times(quickest)} the target alone{slowest}{end}."


def _beside(factor: float, near: float) -> str:
    """A speed beside the target alone, in words; ``near`` is what luck could make."""
    if abs(factor - 1) < NEAR:
        return "about as fast as the target alone"
    return f"{'slower' if factor < 1 else 'faster'} than the target alone{_luckily(factor, near)}"


def _opened(policy: Policy) -> str:
    told = name(policy)
    return told[0].upper() + told[1:]


def difference(sweep: Sweep, policy: Policy | None) -> tuple[str, ...]:
    """Why the theory and the clock differ at one fixed gamma: factors that multiply to the whole difference."""
    if policy is None or (parts := gaps(sweep, policy)) is None or (mean := means(sweep, policy)) is None:
        return ()
    shared, c = alpha(sweep) or 0.0, ratio(sweep) or 0.0
    drafts = significant(mean.draft_s / mean.plain_s)
    return (
        f"{_opened(policy)}: the theory says {times(parts.theory)}, the clock {times(parts.real)}. Four reasons, "
        "which multiply:",
        f"{_by(parts.tokens)}  A read brought {mean.tokens:.2f} tokens; equal chances at every place would bring "
        f"{theory.expected_tokens(shared, policy.gamma):.2f}: {_uneven(sweep.rule, policy)}.",
        f"{_by(parts.drafts)}  A round’s drafter reads took as long as {drafts} reads of the target; "
        f"{policy.gamma} × c would be {significant(policy.gamma * c)}: a text’s last rounds are short, and c is of "
        "typical (median) reads.",
        f"{_by(parts.width)}  The wider read took as long as {_wider(mean)} reads of one row: verification is not "
        "free.",
        f"{_by(parts.rest)}  Outside the reads. This and the wider read are in the next panel too.",
    )


def _wider(mean: Means) -> str:
    """A round's read of the target in reads of one row."""
    return significant(mean.verify_s / mean.plain_s)


def _uneven(rule: str, policy: Policy) -> str:
    """Why a read does not bring what equal chances would."""
    if policy.drafter == "ngram":
        return "some rounds find nothing to copy, and some of it is luck"
    if rule in BY_SHARED:
        return "shared is not the same everywhere, and some of it is luck"
    return "under this rule a draft’s chance is not what is shared, nor the same everywhere"


@dataclass(frozen=True, slots=True)
class Gaps:
    """The theory's speed, the factors that lead from it, and the speed by the clock."""

    theory: float
    tokens: float
    drafts: float
    width: float
    rest: float
    real: float


def gaps(sweep: Sweep, policy: Policy) -> Gaps | None:
    """What lies between theory and clock at a fixed gamma; None where something of it was not measured.

    The last two factors are those of :func:`attributed`.
    """
    said, lost = expected(sweep, policy), attributed(sweep, policy)
    shared, c = alpha(sweep), ratio(sweep)
    if policy.adaptive or said is None or lost is None or shared is None or c is None:
        return None
    return Gaps(
        theory=said.free,
        tokens=lost.kept / theory.expected_tokens(shared, policy.gamma),
        drafts=lost.drafted / lost.kept * (1 + policy.gamma * c),
        width=lost.read / lost.drafted,
        rest=lost.real / lost.read,
        real=lost.real,
    )


# --- tokens a read ----------------------------------------------------------------------------------------------------


def yields(sweep: Sweep, badge: str) -> Panel:
    """Tokens a read against gamma, and what equal chances at every place would bring."""
    policies = fixed(sweep)
    shared = alpha(sweep)
    promised = [theory.expected_tokens(shared, one.gamma) if shared is not None else None for one in policies]
    drawn = _by_gamma("tokens a read of the target", policies)
    for points in _measured("counted", sweep, policies, per_read, lambda one, _: 2 * (sweep.tokens_error(one) or 0.0)):
        drawn.add_scatter(**points, hovertemplate="counted: %{y:.3f}<extra></extra>")
    if shared is not None:
        drawn.add_scatter(
            x=[policy.gamma for policy in policies],
            y=promised,
            mode="lines",
            name=f"equal chances, shared {probability(shared)} (modelled)",
            line={"color": colour("muted"), "dash": "dash", "width": 2},
            hovertemplate="equal chances: %{y:.3f}<extra></extra>",
        )
    story = _yield_story(sweep)
    return Panel(
        "Tokens a read",
        story,
        (
            "Counted: tokens that entered the text, over reads of the target. The closing token of every round counts. "
            "Luck: twice the standard error, from how unlike each other the rounds are; the whiskers show it.",
            *(
                f"Gamma {one.gamma}: {fraction(*_counts(sweep, one))} = {_number(per_read(sweep, one))}"
                for one in drafting(sweep, policies)
                if one.gamma in (1, 4, 8)
            ),
            *_ceiling(sweep, shared),
        ),
        f"E = 1 + α + … + α^γ < 1 ÷ (1 − α) = {_limit(shared)}\n"
        "without that assumption: 1 + Σ rounds that kept at least i ÷ rounds\n"
        "standard error = s ÷ √rounds, s the standard deviation of kept drafts from round to round",
        Table(
            f"Tokens a read by gamma: counted ({badge}), and modelled with shared {probability(shared)} at every place",
            ("gamma", "tokens", "reads", "tokens a read, counted", "luck, ±", "tokens a read, modelled"),
            tuple(
                (
                    str(one.gamma),
                    *(f"{count:,}" for count in _counts(sweep, one)),
                    _number(per_read(sweep, one), 4),
                    _number(None if (error := sweep.tokens_error(one)) is None else 2 * error, 2),
                    _number(ought, 4),
                )
                for one, ought in zip(policies, promised, strict=True)
            ),
        ),
        drawn,
        f"Tokens a read of the target against gamma, counted and modelled. {story}",
        badge=f"{badge} · modelled",
    )


def _yield_story(sweep: Sweep) -> str:
    """What follows from the counts: where they grow, and from where on only luck tells them apart."""
    seen = [
        (one.gamma, brought, 2 * (sweep.tokens_error(one) or 0.0))
        for one in drafting(sweep, fixed(sweep))
        if (brought := per_read(sweep, one)) is not None
    ]
    if not seen:
        return _too_little_fixed(sweep)
    first, last = seen[0], seen[-1]
    if len(seen) == 1:
        return f"Gamma {first[0]} brings {first[1]:.2f} tokens a read, give or take {first[2]:.2f} of luck."
    top = max(seen, key=lambda one: one[1])
    alike = [abs(one[1] - top[1]) <= math.hypot(one[2], top[2]) + 0.005 for one in seen]
    start = next((at for at in range(len(seen)) if all(alike[at:])), len(seen))
    level = seen[start:]
    opening = f"Gamma {first[0]} brings {first[1]:.2f} tokens a read"
    if len(level) == 1:
        return f"{opening}, gamma {last[0]} {last[1]:.2f}: more drafts bring more."
    if level:
        counts = [one[1] for one in level]
        spread = f"{min(counts):.2f} to {max(counts):.2f}"
        luck = f"luck could make the differences: it moves each by up to {max(one[2] for one in level):.2f}"
        return (
            f"{opening}. From gamma {level[0][0]} on it is {spread}, and {luck}."
            if start
            else f"Every gamma brings about as much, {spread} tokens a read; {luck}."
        )
    return (
        f"Gamma {top[0]} brought most, {top[1]:.2f} tokens a read, gamma {last[0]} only {last[1]:.2f}: other drafts "
        "make another text, which is harder to guess."
    )


def _ceiling(sweep: Sweep, shared: float | None) -> tuple[str, ...]:
    """What no gamma could pass if chances were equal, and whether a count did."""
    if shared is None:
        return ()
    first = f"If every draft stayed with chance {probability(shared)}, no gamma would bring more than {_limit(shared)}."
    counted = [one for policy in drafting(sweep, fixed(sweep)) if (one := per_read(sweep, policy)) is not None]
    if shared < 1 and counted and max(counted) > 1 / (1 - shared):
        first += f" Here {max(counted):.2f} were counted: chances are not equal, and some of it is luck."
    return (first,)


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
    story = _places_story(sweep, counted)
    together = "All places together, the dashed line"
    theirs = "The theory puts it at every place."
    if sweep.rule not in BY_SHARED:
        together, theirs = "Kept of judged, all places together, the dashed line", "Under this rule that is the chance."
    return Panel(
        "Shared by place of the draft",
        story,
        (
            "Two effects, against each other. Easier text: a late place is judged only where every draft before it "
            "stayed. Distance: further ahead a drafter that guesses from one state, or copies, agrees less; a small "
            "model reads the drafts that stayed, just as the target does.",
            "Every gamma starts from the same prompts and seed, and its texts run alike for a while, so the counts are "
            "not independent: where luck is told, all gammas together count as one.",
            *((f"{together}: {probability(shared, 3)}. {theirs}",) if shared is not None else ()),
        ),
        "alpha at place i = mean Σ min(p, q) over rounds that judged place i\n"
        "kept at place i = rounds that kept at least i ÷ rounds that judged place i\n"
        "luck, at most: 2 √(alpha (1 − alpha) × gammas ÷ judged)",
        _places_table(counted, badge),
        _places_figure(counted, shared),
        f"Shared by place of the draft. {story}",
        badge=badge,
    )


def _places_figure(counted: Sequence[Place], shared: float | None) -> Any:
    enough = [index for index, place in enumerate(counted) if place.judged >= FEW and shared is not None]
    few = [index for index, place in enumerate(counted) if place.judged and index not in enough]
    drawn = figure(
        x={
            "title": "place in the draft",
            "dtick": 1,
            "tick0": 1,
            "range": [0.4, max([4, *(at + 1 for at in (*enough, *few))]) + 0.6],
        },
        y={"title": "shared (alpha)", "range": [0, 1.02]},
        bargap=0.4,
        showlegend=True,
    )
    sets = (
        ("shared", enough, {"color": colour("both")}),
        (
            f"fewer than {FEW} judged: too few to say",
            few,
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
        x=[index + 1 for index in enough],
        y=[counted[index].rate for index in enough],
        mode="markers",
        name="kept of judged",
        marker={"symbol": "diamond-open", "size": 9, "color": colour("ink"), "line": {"width": 2}},
        hovertemplate="place %{x}: kept %{y:.3f} of judged<extra></extra>",
    )
    if shared is not None:
        drawn.add_hline(y=shared, line={"color": colour("muted"), "dash": "dash", "width": 1.5})
    return drawn


def _places_table(counted: Sequence[Place], badge: str) -> Table:
    return Table(
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
    )


def _places_story(sweep: Sweep, counted: Sequence[Place]) -> str:
    """The first place beside all later ones that are solid, and which of two effects that shows."""
    seen = [(at + 1, place) for at, place in enumerate(counted) if place.judged >= FEW]
    gammas = len(sure(sweep, [one for one in fixed(sweep) if one.gamma]))
    if not gammas:
        return _too_little_fixed(sweep)
    if alpha(sweep) is None or len(seen) < 2 or seen[0][0] != 1:
        return "Too few drafts were judged so far to tell the places apart."
    first, later = seen[0][1], [place for _, place in seen[1:]]
    after = Place(sum(one.judged for one in later), 0, math.fsum(one.shared for one in later))
    near = math.hypot(*(_luck(place, gammas) for place in (first, after)))
    here, there = first.alpha or 0.0, after.alpha or 0.0
    values = [place.alpha or 0.0 for place in later]
    span = f" ({probability(min(values))} to {probability(max(values))})" if len(later) > 1 else ""
    where = f"at place {seen[1][0]}" if len(later) == 1 else f"over the later ones{span}"
    told = f"Shared is {probability(here)} at the first place and {probability(there)} {where}"
    if abs(there - here) <= near:
        return f"{told}: luck could make that difference, so nothing can be told from it."
    if there > here:
        return f"{told}: a late place is judged only where all before it stayed, and such text is easier to guess."
    return f"{told}: the further ahead, the less they agree, though such text is easier to guess."


def _luck(place: Place, gammas: int) -> float:
    """Twice the standard error of a place's alpha, at most: what is between 0 and 1 spreads no wider than a coin.

    Texts under different gammas run alike for a while, so the counts are not independent: together they count as one.
    """
    mean = min(max(place.alpha or 0.0, 0.0), 1.0)
    return 2 * math.sqrt(mean * (1 - mean) * gammas / place.judged) if place.judged else 0.0


# --- adaptive gamma ---------------------------------------------------------------------------------------------------


def stopping(sweep: Sweep, badge: str) -> Panel:
    """Fixed gamma and gammas that stop early, on the same axes."""
    story = _stopping_story(sweep)
    return Panel(
        "Stop drafting when the drafter is unsure",
        story,
        (
            "Before each draw the drafter’s chances are looked at: if its first choice is below a limit, or its "
            "entropy above one, the draft ends there. The token is not drawn yet, so nothing is distorted.",
            "Entropy, in nats, says how undecided the drafter is: 0 is certain, 1.0 as undecided as between 3 tokens "
            "alike, 2.0 as between 7.",
            *_written(sweep),
            *_picked(sweep),
            MARGIN,
        ),
        "stop before the draw if max q < limit, or if H(q) = −Σ q ln q > limit (nats)\n"
        "as undecided as between e^H tokens alike",
        Table(
            f"Fixed and adaptive, {badge}; {machine(sweep)}",
            ("drafting", "rounds", "drafts a round", "tokens a read", "shared (alpha)", "tokens/s", "speed"),
            tuple(
                (
                    name(one),
                    f"{sweep.rounds(one):,}",
                    _number(sweep.drafts_per_round(one)),
                    *_if_sure(sweep, one, _number(per_read(sweep, one)), probability(sweep.alpha(one), 3)),
                    *_if_sure(sweep, one, _number(rate(sweep, one)), _times(speed(sweep, one))),
                )
                for one in offered(sweep)
            ),
        ),
        _stopping_figure(sweep),
        f"Tokens a second against drafts a round, fixed and adaptive. {story}",
        badge=badge,
    )


def _stopping_figure(sweep: Sweep) -> Any:
    """By rows of a read, drafts + 1, on a logarithmic axis: most that stop early draft few."""
    ticks = (0, 1, 2, 4, 8, 12)
    longest = max((sweep.drafts_per_round(one) or 0.0 for one in offered(sweep)), default=0.0)
    drawn = figure(
        x={
            "title": "drafts a round, on average",
            "type": "log",
            "tickvals": [drafts + 1 for drafts in ticks],
            "ticktext": [str(drafts) for drafts in ticks],
            "range": [math.log10(0.9), math.log10(max(longest, 4) + 1) + 0.05],
        },
        y={"title": "tokens a second, measured", "rangemode": "tozero"},
        hovermode="closest",
        showlegend=True,
    )
    early = adaptive(sweep)
    few = [one for one in offered(sweep) if one not in sure(sweep, [one])]
    sets: tuple[tuple[str, Sequence[Policy], str, str, str, int], ...] = (
        ("fixed gamma", sure(sweep, fixed(sweep)), "diamond", "ink", "lines+markers", 7),
        (
            "stops below a chance",
            [one for one in sure(sweep, early) if one.stop_below],
            "square-open",
            "drafter",
            "markers",
            10,
        ),
        (
            "stops above an entropy",
            [one for one in sure(sweep, early) if one.stop_above is not None],
            "triangle-up-open",
            "drafter",
            "markers",
            11,
        ),
        (FEW_ROUNDS, few, "circle-open", "muted", "markers", 8),
    )
    for label, policies, symbol, ink, mode, size in sets:
        if policies:
            drafts = [sweep.drafts_per_round(one) for one in policies]
            drawn.add_scatter(
                x=[None if count is None else count + 1 for count in drafts],
                y=[rate(sweep, one) for one in policies],
                mode=mode,
                name=label,
                line={"color": colour(ink), "width": 2},
                marker={"symbol": symbol, "size": size, "color": colour(ink), "line": {"width": 2}},
                customdata=[[escaped(name(one)), count] for one, count in zip(policies, drafts, strict=True)],
                hovertemplate="%{customdata[0]}: %{customdata[1]:.2f} drafts a round, %{y:.3~g} tokens a second"
                "<extra></extra>",
            )
    return drawn


def _stopping_story(sweep: Sweep) -> str:
    early, plain = fastest(sweep, drafting(sweep, adaptive(sweep))), sweep.plain_policy()
    if early is None:
        return too_little(sweep) if adaptive(sweep) else "No gamma that stops early was measured so far."
    best = fastest(sweep, drafting(sweep, fixed(sweep)))
    others = (("the target alone", plain), (f"the best fixed one, {name(best)}" if best else "", best))
    beside = [
        f"{times(ours / theirs)} {called}{_luckily(ours / theirs, margin(sweep, early, one))}"
        for called, one in others
        if one is not None and sure(sweep, [one])
        for ours, theirs in ((rate(sweep, early), rate(sweep, one)),)
        if ours and theirs
    ]
    told = f"The best that stops early ({name(early)}) is"
    return f"{told} {'; and '.join(beside)}." if beside else f"{told} all that was measured so far."


def _luckily(factor: float, near: float) -> str:
    """What is to be added to a speed over another; ``near`` is what luck could make."""
    if abs(factor - 1) < NEAR:
        return ", about the same"
    return ", but luck could make that" if abs(factor - 1) < near else ""


def _written(sweep: Sweep) -> tuple[str, ...]:
    """Tokens a second of the target alone, of the best fixed gamma and of the best that stops early."""
    plain = sweep.plain_policy()
    best = [fastest(sweep, drafting(sweep, some)) for some in (fixed(sweep), adaptive(sweep))]
    ours = [one for one in (plain, *best) if one is not None and sure(sweep, [one]) and rate(sweep, one)]
    told = ", ".join(f"{_number(rate(sweep, one))} ({name(one)})" for one in ours)
    return (f"Tokens a second: {told}.",) if told else ()


def _picked(sweep: Sweep) -> tuple[str, ...]:
    """That a winner among many is flattered."""
    early, steady = (len(drafting(sweep, some)) for some in (adaptive(sweep), fixed(sweep)))
    if not early or not steady:
        return ()
    return (
        f"The best of {early} that stop early is set against the best of {steady} fixed ones: the best of many is "
        "partly luck, and the same one measured again would do a little worse.",
    )


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
PLOT_PX = 250
"""About how high the axes of a figure are."""


def attributed(sweep: Sweep, policy: Policy) -> theory.Losses | None:
    """The losses of a policy, on the prompts that the target alone decoded too; None where that was not measured."""
    mean, real = means(sweep, policy), speed(sweep, policy)
    if not policy.gamma or mean is None or real is None:
        return None
    found = theory.losses(mean.tokens, mean.drafts, mean.plain_s, mean.verify_s, mean.draft_s, real)
    return found if all(map(_sound, found)) else None


def waterfall(sweep: Sweep, policy: Policy | None, badge: str) -> Panel:
    """From the ideal speed to the real one, step by step."""
    lost = attributed(sweep, policy) if policy is not None else None
    mean = means(sweep, policy) if policy is not None else None
    plain, title = sweep.plain_policy(), "Where the speed went"
    if lost is None or mean is None or policy is None or plain is None:
        few = policy is not None and policy.gamma and plain and min(map(sweep.rounds, (policy, plain))) < FEW
        return Panel(
            title,
            (f"{_opened(policy)}: {FEW_ROUNDS}." if drafting(sweep, offered(sweep)) else too_little(sweep))
            if few and policy is not None
            else "Nothing to tell yet: it takes a measured gamma above 0, and the target alone on the same prompts.",
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
    near = margin(sweep, policy, plain)
    story = (
        f"{_opened(policy)} could be {ideal} and is {times(lost.real)}, {_beside(lost.real, near)}. Most went with "
        f"{STEPS[biggest][1]}: {_by(factors[biggest])}."
    )
    return Panel(
        title,
        story,
        (
            f"Drafts that died: {significant(lost.ideal - 1)} drafts a round{short} and the closing token could be "
            f"{significant(lost.ideal)} tokens; a read brought {lost.kept:.2f}.",
            f"The drafter’s reads: a round’s take as long as {significant(mean.draft_s / mean.plain_s)} reads of the "
            "target.",
            f"The wider read: it takes as long as {_wider(mean)} reads of one row.",
            "Outside the reads: the coins, and what the program itself does. More than × 1: in proportion to its reads "
            "a round spends less on that than plain decoding does.",
        ),
        "ideal: γ + 1, γ the mean of the rounds\n"
        "drafts that died: τ, tokens a read\n"
        "drafter’s reads: τ t(1) ÷ (t(1) + D), D all of a round’s\n"
        "wider read: τ t(1) ÷ (t(γ+1) + D)\n"
        "t(1), t(γ+1), D: means of a read alone, of a round’s read, of a round’s drafter reads\n"
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
    up = [math.log10(max(span)) / math.log10(high / low) * PLOT_PX for span in spans]
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
            {"x": at, "y": math.log10(max(span)), "text": text, "showarrow": False}
            | {"yshift": 11 - top if -22 < top < 0 else 11}  # clear of the line of the target alone
            for at, (text, span, top) in enumerate(zip(told, spans, up, strict=True))
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
    return drawn.add_hline(y=1, line={"color": colour("ink"), "width": 1}, layer="below")


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


def _by_gamma(title: str, policies: Iterable[Policy]) -> Any:
    last = max([4, *(policy.gamma for policy in policies)])
    return figure(
        x={"title": "gamma γ: drafts a round", "dtick": 1, "tick0": 0, "range": [-0.5, last + 0.5]},
        y={"title": title, "rangemode": "tozero"},
        hovermode="x unified",
        showlegend=True,
    )


def _measured(
    label: str,
    sweep: Sweep,
    policies: Sequence[Policy],
    value: Callable[[Sweep, Policy], float | None],
    luck: Callable[[Policy, float], float],
) -> list[dict[str, Any]]:
    """Points by gamma with whiskers of luck, those of too few rounds by themselves: grey, hollow, in no line."""
    enough = sure(sweep, policies)
    sets = (
        (label, enough, "lines+markers", "ink", "diamond"),
        (FEW_ROUNDS, [one for one in policies if one not in enough], "markers", "muted", "diamond-open"),
    )
    return [
        {
            "x": [one.gamma for one in some],
            "y": [value(sweep, one) for one in some],
            "error_y": {
                "array": [luck(one, value(sweep, one) or 0.0) for one in some],
                "color": colour("muted"),
                "thickness": 1,
                "width": 2,
                "visible": ink == "ink",
            },
            "mode": mode,
            "name": called,
            "line": {"color": colour(ink), "width": 2},
            "marker": {"symbol": symbol, "size": 8, "color": colour(ink)},
        }
        for called, some, mode, ink, symbol in sets
        if some
    ]


def _if_sure(sweep: Sweep, policy: Policy, *told: str) -> tuple[str, ...]:
    """Cells of a policy; of too few rounds, that."""
    return told if sure(sweep, [policy]) else tuple("too few to say" for _ in told)


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
