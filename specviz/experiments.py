"""The records of two experiments, their files, and what running one looks like.

A :class:`Sweep` decodes the same prompts under many policies of drafting and keeps what each took; a :class:`Grid`
decodes one prompt with one seed under many drafters and keeps the texts. Everything that a page draws of them is read
from these records. On disk each is one JSON object; unknown keys are left alone. All times are seconds.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import median
from typing import Annotated, Any, Literal, NamedTuple, Protocol, TypeVar

from specviz.rules import RULES
from specviz.trace import Count, Hex, Meets, Nats, Seconds, Text, Within, from_plain, plain

K = TypeVar("K")

SCHEMA_VERSION = 1
MOST_BYTES = 5_000_000
"""Of a file that a page opens. The largest sweep that it makes has 13 prompts of 2,000 characters under 18 policies, 96
tokens each: with every prompt in 18 runs and every read's time that comes to 4.3 MB at most."""
MOST_RUNS, MOST_POLICIES = 2_000, 64
MOST_IDS = 200_000
"""Tokens of all texts of a grid."""
WORD = 60
"""Characters of a name in a file, at most."""
TOKEN_BYTES = 512
DIGITS = 2
"""Of a limit that stops drafts, where a page names it."""

Gamma = Annotated[int, Within(0, 16, "a whole number in 0..16")]
Width = Annotated[int, Within(1, 1024, "a whole number in 1..1024")]
Temperature = Annotated[float, Within(0.0, 1e9, "a temperature, 0 or more")]
Limit = Annotated[float, Within(0.0, 1.0, "a chance in [0, 1]")]
RuleName = Annotated[str, Meets(lambda value: isinstance(value, str) and value in RULES, f"one of {', '.join(RULES)}")]
Seed = Annotated[int, Within(-(2**63), 2**63 - 1, "a whole number of 64 bits")]
Drafter = Literal["model", "target", "ngram", "none"]

LONGEST_DRAFT = 12
GRID_RULES = ("gumbel_coupling", "speculative_sampling")
GRID_GAMMAS = tuple(range(1, 9))
GRID_TOKENS = 64


class Job(Protocol):
    """An experiment at work, in small steps."""

    @property
    def total(self) -> int:
        """How much there is to do."""

    @property
    def done(self) -> int:
        """How much of it is done."""

    @property
    def finished(self) -> bool:
        """Whether all of it is."""

    def step(self) -> None:
        """Do a little."""

    def close(self) -> None:
        """Let go of everything but what is done."""


@dataclass(frozen=True, slots=True)
class Policy:
    """How long to draft: at most ``gamma``, and before each draw whether to stop.

    ``stop_below`` ends the draft once the drafter's largest chance is below it, ``stop_above`` once its entropy in nats
    is above it; both look at the law, before the token is drawn. A policy has one of them at most.
    """

    gamma: Gamma
    stop_below: Limit = 0.0
    stop_above: Nats | None = None
    drafter: Drafter = "model"

    def __post_init__(self) -> None:
        if not 0 <= self.stop_below <= 1 or math.copysign(1, self.stop_below) < 0:
            raise ValueError(f"stop_below must be a chance in [0, 1], got {self.stop_below}")
        if self.stop_above is not None and math.copysign(1, self.stop_above) < 0:
            raise ValueError(f"stop_above must be an entropy in nats, 0 or more, got {self.stop_above}")
        if self.stop_below and self.stop_above is not None:
            raise ValueError(f"a policy must have one limit, got stop_below {self.stop_below} and {self.stop_above}")
        if self.adaptive and not self.gamma:
            raise ValueError("gamma must be at least 1 where drafts stop early, got 0")
        if self.gamma and self.drafter == "none":
            raise ValueError(f"gamma must be 0 where nobody drafts, got {self.gamma}")

    @property
    def adaptive(self) -> bool:
        """Whether it may stop before gamma."""
        return self.stop_below > 0 or self.stop_above is not None


def policies(drafter: Drafter = "model", *, greedy: bool = False) -> tuple[Policy, ...]:
    """What a sweep compares: gamma 0 to 12, and, where a model drafts, a draft of 12 that stops early in five ways.

    Copies and ``greedy`` drafts (temperature 0) are always sure: they would never stop.
    """
    fixed = tuple(Policy(gamma, drafter=drafter) for gamma in range(LONGEST_DRAFT + 1))
    if greedy or drafter in ("ngram", "none"):
        return fixed
    sure = (Policy(LONGEST_DRAFT, stop_below=least, drafter=drafter) for least in (0.2, 0.4, 0.6))
    calm = (Policy(LONGEST_DRAFT, stop_above=most, drafter=drafter) for most in (2.0, 1.0))
    return (*fixed, *sure, *calm)


class Place(NamedTuple):
    """One place of the draft over some rounds: how often it was judged and kept, and the sum of min(p, q) there."""

    judged: int
    kept: int
    shared: float

    @property
    def rate(self) -> float | None:
        """kept / judged: the chance of staying, given that all before it stayed."""
        return self.kept / self.judged if self.judged else None

    @property
    def alpha(self) -> float | None:
        """Mean sum min(p, q) of the rounds that came this far."""
        return self.shared / self.judged if self.judged else None


@dataclass(frozen=True, slots=True)
class SweepRun:
    """One prompt decoded under one policy.

    Attributes:
        policy: how long it drafted.
        workload: the name of the set that the prompt is of.
        prompt: a user's message.
        emitted: tokens that entered the text.
        rounds: as many reads of the target, prefill left out.
        drafted: tokens proposed.
        judged: rounds that judged place 1, 2, …
        kept: rounds that kept at least 1, 2, … drafts.
        shared: sum over the judged of sum min(p, q), by place.
        verify: (rows, seconds) of each read of the target.
        draft: seconds of each read of the drafter, those that ended a draft included.
        seconds: of the rounds, prefill left out.
    """

    policy: Policy
    workload: Text
    prompt: Text
    emitted: Count
    rounds: Count
    drafted: Count
    judged: tuple[Count, ...]
    kept: tuple[Count, ...]
    shared: tuple[Annotated[float, Within(0.0, 1e9, "a sum, 0 or more")], ...]
    verify: tuple[tuple[Width, Seconds], ...]
    draft: tuple[Seconds, ...]
    seconds: Seconds

    def __post_init__(self) -> None:
        if not self.workload.strip() or len(self.workload) > WORD:
            raise ValueError(f"a workload's name must have 1 to {WORD} characters, got {self.workload!r:.80}")
        if not len(self.judged) == len(self.kept) == len(self.shared) <= 16:
            raise ValueError("judged, kept and shared must be as long as each other, and at most 16")
        places = zip(self.kept, self.judged, self.shared, strict=True)
        if any(kept > judged or shared > judged + 1e-6 for kept, judged, shared in places):
            raise ValueError("no place can keep or share more than it judged")
        if sum(self.judged) > self.drafted:
            raise ValueError(f"{sum(self.judged)} drafts cannot be judged where {self.drafted} were drafted")


@dataclass(frozen=True)
class Experiment:
    """What both experiments say of where they ran, and with what settings."""

    created: Text
    pair: Text
    device: Text
    dtype: Text
    threads: Count | None = None
    versions: Mapping[str, Text] | None = None
    temperature: Temperature = 1.0
    seed: Seed = 0
    max_new_tokens: Count | None = None


@dataclass(frozen=True)
class Sweep(Experiment):
    """Prompts under policies, and what they took. A figure of no runs is ``None``."""

    rule: RuleName = "speculative_sampling"
    runs: tuple[SweepRun, ...] = ()

    def __post_init__(self) -> None:
        _check_most(len(self.runs), MOST_RUNS, "runs")
        policies, workloads = {run.policy for run in self.runs}, {run.workload for run in self.runs}
        _check_most(len(policies), MOST_POLICIES, "policies")
        _check_distinct("runs", ((run.policy, run.workload, run.prompt) for run in self.runs))
        _check_distinct(f"gamma, stop_below and stop_above of two policies, to {DIGITS} digits,", map(_name, policies))
        plain_names = (" ".join(workload.casefold().split()) for workload in workloads)
        _check_distinct("names of workloads, case and white space aside,", plain_names)

    @cached_property
    def _by_policy(self) -> dict[Policy, tuple[SweepRun, ...]]:
        return _grouped(sorted(self.runs, key=lambda run: _rank(run.policy)), lambda run: run.policy)

    @cached_property
    def _parts(self) -> dict[str, Sweep]:
        groups = _grouped(self.runs, lambda run: run.workload)
        return {workload: replace(self, runs=runs) for workload, runs in groups.items()}

    def runs_of(self, policy: Policy | None = None) -> tuple[SweepRun, ...]:
        """The runs of one policy, or all of them."""
        return self.runs if policy is None else self._by_policy.get(policy, ())

    def policies(self) -> tuple[Policy, ...]:
        """Every policy once: fixed ones by gamma, then those that stop early."""
        return tuple(self._by_policy)

    def workloads(self) -> tuple[str, ...]:
        """Every workload once, in the order of the runs."""
        return tuple(self._parts)

    def select(self, workload: str | None) -> Sweep:
        """The part about one workload, the same object at every call; None is all of it."""
        return self if workload is None else self._parts.get(workload) or replace(self, runs=())

    def plain_policy(self) -> Policy | None:
        """The target alone, where it was measured."""
        return next((policy for policy in self.policies() if policy.gamma == 0), None)

    def tokens_per_second(self, policy: Policy) -> float | None:
        """Tokens emitted over the seconds of their rounds, prefill left out."""
        return _rate(self.runs_of(policy))

    def speedup(self, policy: Policy) -> float | None:
        """Tokens a second over those of the target alone, on the prompts that both decoded."""
        alone = self.plain_policy()
        if alone is None:
            return None
        ours, theirs = self.runs_of(policy), self.runs_of(alone)
        both = {(run.workload, run.prompt) for run in ours} & {(run.workload, run.prompt) for run in theirs}
        fast, slow = (_rate(run for run in runs if (run.workload, run.prompt) in both) for runs in (ours, theirs))
        return fast / slow if fast and slow else None

    def tokens_per_pass(self, policy: Policy) -> float | None:
        """Tokens emitted over reads of the target."""
        runs = self.runs_of(policy)
        return _ratio(sum(run.emitted for run in runs), sum(run.rounds for run in runs))

    def rounds(self, policy: Policy) -> int:
        """Reads of the target, prefill left out."""
        return sum(run.rounds for run in self.runs_of(policy))

    def tokens_error(self, policy: Policy) -> float | None:
        """Standard error of :meth:`tokens_per_pass`, from how unlike each other the rounds are; None below 2 rounds."""
        runs, rounds = self.runs_of(policy), self.rounds(policy)
        if rounds < 2:
            return None
        kept = sum(sum(run.kept) for run in runs)
        squares = sum((2 * place + 1) * count for run in runs for place, count in enumerate(run.kept))
        return math.sqrt(max(squares - kept**2 / rounds, 0.0) / (rounds - 1) / rounds)

    def rate_error(self, policy: Policy) -> float | None:
        """Standard error of :meth:`tokens_per_second` as a part of it: of the rounds' tokens and of the reads' times.

        Rounds are taken as independent, so that slow minutes of the machine are not in it. None below 2 rounds.
        """
        tokens, of_tokens = self.tokens_per_pass(policy), self.tokens_error(policy)
        runs, rounds = self.runs_of(policy), self.rounds(policy)
        round_s = _ratio(sum(run.seconds for run in runs), rounds)
        if not tokens or of_tokens is None or not round_s:
            return None
        verify = _error([seconds for run in runs for _, seconds in run.verify])
        drafts = [seconds for run in runs for seconds in run.draft]
        return math.hypot(of_tokens / tokens, verify / round_s, len(drafts) / rounds * _error(drafts) / round_s)

    def drafts_per_round(self, policy: Policy) -> float | None:
        """Tokens drafted over rounds: below gamma where the draft stops early or the text ends."""
        runs = self.runs_of(policy)
        return _ratio(sum(run.drafted for run in runs), sum(run.rounds for run in runs))

    def alpha(self, policy: Policy | None = None) -> float | None:
        """Mean sum min(p, q) over all judged places, of one policy or of all."""
        runs = self.runs_of(policy)
        return _ratio(sum(sum(run.shared) for run in runs), sum(sum(run.judged) for run in runs))

    def kept_by_place(self, policy: Policy | None = None) -> tuple[Place, ...]:
        """Place 1, 2, … of the drafts of one policy or of all."""
        columns = [(run.judged, run.kept, run.shared) for run in self.runs_of(policy)]
        longest = max((len(judged) for judged, _, _ in columns), default=0)
        reached = ([column for column in columns if len(column[0]) > place] for place in range(longest))
        return tuple(
            Place(*(sum(column[part][place] for column in found) for part in range(3)))  # type: ignore[arg-type]
            for place, found in enumerate(reached)
        )

    def draft_seconds(self) -> float | None:
        """Median seconds of a read of the drafter."""
        return median(seconds) if (seconds := [one for run in self.runs for one in run.draft]) else None

    def read_seconds(self) -> dict[int, float]:
        """Median seconds of a read of the target, by its rows, ascending."""
        by_width: dict[int, list[float]] = defaultdict(list)
        for run in self.runs:
            for width, seconds in run.verify:
                by_width[width].append(seconds)
        return {width: median(by_width[width]) for width in sorted(by_width)}

    def c(self) -> float | None:
        """A read of the drafter over a read of one row of the target, both measured."""
        draft, read = self.draft_seconds(), self.read_seconds().get(1)
        return draft / read if draft is not None and read else None


@dataclass(frozen=True, slots=True)
class GridRun:
    """One text: who drafted, how long, the ids that came out, and the reads it took, prefills left out."""

    rule: RuleName
    drafter: Drafter
    gamma: Gamma
    ids: tuple[Count, ...]
    target_passes: Count
    drafter_passes: Count
    seconds: Seconds

    def __post_init__(self) -> None:
        if (self.drafter == "none") != (self.gamma == 0):
            allowed = "0" if self.drafter == "none" else "at least 1"
            raise ValueError(f"gamma must be {allowed} where the drafter is {self.drafter}, got {self.gamma}")

    @property
    def cell(self) -> tuple[str, str, int]:
        """What tells it from the others of its grid."""
        return self.rule, self.drafter, self.gamma


@dataclass(frozen=True)
class Grid(Experiment):
    """One prompt and one seed under many drafters. ``token_bytes`` are the texts of all ids that came out."""

    prompt: Text = ""
    token_bytes: Mapping[int, Hex] | None = None
    runs: tuple[GridRun, ...] = ()

    def __post_init__(self) -> None:
        _check_distinct("rule, drafter and gamma of two runs", (run.cell for run in self.runs))
        _check_most(sum(len(run.ids) for run in self.runs), MOST_IDS, "tokens")
        _check_most(max(map(len, (self.token_bytes or {}).values()), default=0) // 2, TOKEN_BYTES, "bytes a token")
        unknown = {token_id for run in self.runs for token_id in run.ids} - (self.token_bytes or {}).keys()
        if unknown:
            raise ValueError(f"token_bytes lacks the token {min(unknown)}")

    @cached_property
    def _cells(self) -> dict[tuple[str, str, int], GridRun]:
        return {run.cell: run for run in self.runs}

    @cached_property
    def _bytes(self) -> dict[int, bytes]:
        return {token_id: bytes.fromhex(text) for token_id, text in (self.token_bytes or {}).items()}

    def rules(self) -> tuple[str, ...]:
        """Every rule once, in the order of the runs."""
        return tuple(dict.fromkeys(run.rule for run in self.runs))

    def select(self, rule: str) -> Grid:
        """The part about one rule."""
        runs = tuple(run for run in self.runs if run.rule == rule)
        used = {token_id for run in runs for token_id in run.ids}
        known = {token_id: text for token_id, text in (self.token_bytes or {}).items() if token_id in used}
        return replace(self, runs=runs, token_bytes=known)

    def run(self, rule: str, drafter: str, gamma: int) -> GridRun | None:
        """The run of one cell; None where it was not decoded."""
        return self._cells.get((rule, drafter, gamma))

    def alone(self, rule: str) -> GridRun | None:
        """The target alone under this rule: what the others are compared with."""
        return self.run(rule, "none", 0)

    def text(self, run: GridRun) -> bytes:
        """The text of a run; it may end inside a character."""
        return b"".join(map(self._bytes.__getitem__, run.ids))

    def sha256(self, run: GridRun) -> str:
        """The hash of a run's text, hexadecimal."""
        return hashlib.sha256(self.text(run)).hexdigest()


def joined(grids: Iterable[Grid]) -> Grid | None:
    """One grid with the runs of all that are of the first one's prompt, seed and temperature; None of none.

    Of two runs of one cell the first is taken.
    """
    found = list(grids)
    if not found:
        return None
    first = found[0]
    same = [grid for grid in found if _asked(grid) == _asked(first)]
    known = {token_id: text for grid in same for token_id, text in (grid.token_bytes or {}).items()}
    cells: dict[tuple[str, str, int], GridRun] = {}
    for run in (run for grid in same for run in grid.runs):
        cells.setdefault(run.cell, run)
    return replace(first, runs=tuple(cells.values()), token_bytes=known)


def _asked(grid: Grid) -> tuple[Any, ...]:
    return grid.prompt, grid.seed, grid.temperature, grid.pair


# --- as a file --------------------------------------------------------------------------------------------------------

Kind = TypeVar("Kind", Sweep, Grid)


def dump(experiment: Sweep | Grid) -> str:
    """The experiment as JSON, a run a line."""
    head = {"kind": type(experiment).__name__.lower(), "schema_version": SCHEMA_VERSION} | plain(experiment)
    lines = ",\n".join(_json(run) for run in head.pop("runs"))
    return f'{_json(head)[:-1]},"runs":[\n{lines}\n]}}\n'


def load(kind: type[Kind], text: str) -> Kind:
    """The sweep or grid in a JSON text. Unknown keys are left alone.

    Raises:
        ValueError: it is none, or has a value that cannot be; names the key.
    """
    try:
        said = json.loads(text.removeprefix("\ufeff"))  # a mark of its encoding, as some editors write
    except (ValueError, RecursionError):
        raise ValueError("the file is no JSON") from None
    name = kind.__name__.lower()
    if not isinstance(said, dict) or said.get("kind") != name:
        raise ValueError(f'the file is no {name}: its "kind" is not "{name}"')
    if said.get("schema_version") != SCHEMA_VERSION:
        raise ValueError(f"schema_version must be {SCHEMA_VERSION}, got {said.get('schema_version')!r:.40}")
    return from_plain(kind, said)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _check_most(count: int, most: int, what: str) -> None:
    if count > most:
        raise ValueError(f"an experiment may have {most:,} {what}, got {count:,}")


def _check_distinct(what: str, keys: Iterable[Hashable]) -> None:
    seen: set[Hashable] = set()
    for key in keys:
        if key in seen:
            raise ValueError(f"{what} must differ, got twice {key!r:.200}")
        seen.add(key)


def _name(policy: Policy) -> tuple[Hashable, ...]:
    """What a page tells policies apart by."""
    above = policy.stop_above
    return policy.gamma, f"{policy.stop_below:.{DIGITS}g}", None if above is None else f"{above:.{DIGITS}g}"


def _rank(policy: Policy) -> tuple[Any, ...]:
    """Fixed policies first, by gamma; then those that stop early."""
    return policy.adaptive, policy.gamma, policy.stop_below, -(policy.stop_above or 0.0), policy.drafter


def _grouped(runs: Iterable[SweepRun], key: Callable[[SweepRun], K]) -> dict[K, tuple[SweepRun, ...]]:
    groups: dict[K, list[SweepRun]] = defaultdict(list)
    for run in runs:
        groups[key(run)].append(run)
    return {name: tuple(found) for name, found in groups.items()}


def _rate(runs: Iterable[SweepRun]) -> float | None:
    counted = [(run.emitted, run.seconds) for run in runs]
    return _ratio(sum(emitted for emitted, _ in counted), sum(seconds for _, seconds in counted))


def _error(values: Sequence[float]) -> float:
    """Standard error of the mean; 0 of fewer than two."""
    count = len(values)
    if count < 2:
        return 0.0
    mean = math.fsum(values) / count
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (count - 1) / count)


def _ratio(numerator: float, denominator: float) -> float | None:
    return numerator / denominator if denominator else None
