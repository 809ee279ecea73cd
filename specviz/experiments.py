"""The records of two experiments, and their files.

A :class:`Sweep` decodes the same prompts under many policies of drafting and keeps what each took; a :class:`Grid`
decodes one prompt with one seed under many drafters and keeps the texts. Everything that a page draws of them is read
from these records. On disk each is one JSON object; unknown keys are left alone. All times are seconds.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from statistics import median
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

from specviz.trace import Count, Hex, Nats, Probability, Seconds, Text, Within, from_plain, plain

SCHEMA_VERSION = 1
MOST_RUNS = 5_000
WORD = 60
"""Characters of a name in a file, at most."""

Gamma = Annotated[int, Within(0, 16, "a whole number in 0..16")]
Width = Annotated[int, Within(1, 1024, "a whole number in 1..1024")]
Temperature = Annotated[float, Within(0.0, 1e9, "a temperature, 0 or more")]
Seed = Annotated[int, Within(-(2**63), 2**63 - 1, "a whole number of 64 bits")]
Drafter = Literal["model", "target", "ngram", "none"]

LONGEST_DRAFT = 12
GRID_RULES = ("gumbel_coupling", "speculative_sampling")
GRID_GAMMAS = tuple(range(1, 9))
GRID_TOKENS = 64


@dataclass(frozen=True, slots=True)
class Policy:
    """How long to draft: at most ``gamma``, and before each draw whether to stop.

    ``stop_below`` ends the draft once the drafter's largest chance is below it, ``stop_above`` once its entropy in nats
    is above it; both look at the law, before the token is drawn.
    """

    gamma: Gamma
    stop_below: Probability = 0.0
    stop_above: Nats | None = None
    drafter: Drafter = "model"

    @property
    def adaptive(self) -> bool:
        """Whether it may stop before gamma."""
        return self.stop_below > 0 or self.stop_above is not None


def policies(drafter: Drafter = "model") -> tuple[Policy, ...]:
    """What a sweep compares: gamma 0 to 12, and, where a model drafts, a draft of 12 that stops early in five ways."""
    fixed = tuple(Policy(gamma, drafter=drafter) for gamma in range(LONGEST_DRAFT + 1))
    if drafter in ("ngram", "none"):
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
        if not self.workload or len(self.workload) > WORD:
            raise ValueError(f"a workload's name must have 1 to {WORD} characters, got {self.workload!r:.80}")
        if not len(self.judged) == len(self.kept) == len(self.shared) <= 16:
            raise ValueError("judged, kept and shared must be as long as each other, and at most 16")
        places = zip(self.kept, self.judged, self.shared, strict=True)
        if any(kept > judged or shared > judged + 1e-6 for kept, judged, shared in places):
            raise ValueError("no place can keep or share more than it judged")
        if sum(self.judged) > self.drafted:
            raise ValueError(f"{sum(self.judged)} drafts cannot be judged where {self.drafted} were drafted")


@dataclass(frozen=True, slots=True)
class Sweep:
    """Prompts under policies, and what they took. A figure of no runs is ``None``."""

    created: Text
    pair: Text
    device: Text
    dtype: Text
    threads: Count | None = None
    versions: Mapping[str, Text] | None = None
    rule: Text = "speculative_sampling"
    temperature: Temperature = 1.0
    seed: Seed = 0
    max_new_tokens: Count | None = None
    runs: tuple[SweepRun, ...] = ()

    def __post_init__(self) -> None:
        _check_runs(self.runs)

    def policies(self) -> tuple[Policy, ...]:
        """Every policy once: fixed ones by gamma, then those that stop early."""
        found = {run.policy for run in self.runs}
        return tuple(
            sorted(
                found, key=lambda one: (one.adaptive, one.gamma, one.stop_below, -(one.stop_above or 0.0), one.drafter)
            )
        )

    def workloads(self) -> tuple[str, ...]:
        """Every workload once, in the order of the runs."""
        return tuple(dict.fromkeys(run.workload for run in self.runs))

    def select(self, workload: str | None) -> Sweep:
        """The part about one workload; None is all of it."""
        return self if workload is None else replace(self, runs=self._runs(workload=workload))

    def plain_policy(self) -> Policy | None:
        """The target alone, where it was measured."""
        return next((policy for policy in self.policies() if policy.gamma == 0), None)

    def tokens_per_second(self, policy: Policy) -> float | None:
        """Tokens emitted over the seconds of their rounds, prefill left out."""
        return _rate(self._runs(policy))

    def speedup(self, policy: Policy) -> float | None:
        """Tokens a second over those of the target alone, on the prompts that both decoded."""
        alone = self.plain_policy()
        if alone is None:
            return None
        ours, theirs = self._runs(policy), self._runs(alone)
        both = {(run.workload, run.prompt) for run in ours} & {(run.workload, run.prompt) for run in theirs}
        fast, slow = (_rate(run for run in runs if (run.workload, run.prompt) in both) for runs in (ours, theirs))
        return fast / slow if fast and slow else None

    def tokens_per_pass(self, policy: Policy) -> float | None:
        """Tokens emitted over reads of the target."""
        runs = self._runs(policy)
        return _ratio(sum(run.emitted for run in runs), sum(run.rounds for run in runs))

    def drafts_per_round(self, policy: Policy) -> float | None:
        """Tokens drafted over rounds: below gamma where the draft stops early or the text ends."""
        runs = self._runs(policy)
        return _ratio(sum(run.drafted for run in runs), sum(run.rounds for run in runs))

    def alpha(self, policy: Policy | None = None) -> float | None:
        """Mean sum min(p, q) over all judged places, of one policy or of all."""
        runs = self._runs(policy)
        return _ratio(sum(sum(run.shared) for run in runs), sum(sum(run.judged) for run in runs))

    def kept_by_place(self, policy: Policy | None = None) -> tuple[Place, ...]:
        """Place 1, 2, … of the drafts of one policy or of all."""
        columns = [(run.judged, run.kept, run.shared) for run in self._runs(policy)]
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

    def _runs(self, policy: Policy | None = None, workload: str | None = None) -> tuple[SweepRun, ...]:
        return tuple(
            run
            for run in self.runs
            if (policy is None or run.policy == policy) and (workload is None or run.workload == workload)
        )


@dataclass(frozen=True, slots=True)
class GridRun:
    """One text: who drafted, how long, the ids that came out, and the reads it took, prefills left out."""

    rule: Text
    drafter: Drafter
    gamma: Gamma
    ids: tuple[Count, ...]
    target_passes: Count
    drafter_passes: Count
    seconds: Seconds


@dataclass(frozen=True, slots=True)
class Grid:
    """One prompt and one seed under many drafters. ``token_bytes`` are the texts of all ids that came out."""

    created: Text
    pair: Text
    device: Text
    dtype: Text
    threads: Count | None = None
    versions: Mapping[str, Text] | None = None
    prompt: Text = ""
    seed: Seed = 0
    temperature: Temperature = 1.0
    max_new_tokens: Count | None = None
    token_bytes: Mapping[int, Hex] | None = None
    runs: tuple[GridRun, ...] = ()

    def __post_init__(self) -> None:
        _check_runs(self.runs)
        unknown = {token_id for run in self.runs for token_id in run.ids} - (self.token_bytes or {}).keys()
        if unknown:
            raise ValueError(f"token_bytes lacks the token {min(unknown)}")

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
        return next((run for run in self.runs if (run.rule, run.drafter, run.gamma) == (rule, drafter, gamma)), None)

    def alone(self, rule: str) -> GridRun | None:
        """The target alone under this rule: what the others are compared with."""
        return next((run for run in self.runs if run.rule == rule and run.drafter == "none"), None)

    def text(self, run: GridRun) -> bytes:
        """The text of a run; it may end inside a character."""
        known = self.token_bytes or {}
        return b"".join(bytes.fromhex(known[token_id]) for token_id in run.ids)

    def sha256(self, run: GridRun) -> str:
        """The hash of a run's text, hexadecimal."""
        return hashlib.sha256(self.text(run)).hexdigest()


def joined(grids: Iterable[Grid]) -> Grid | None:
    """One grid with the runs of all that are of the first one's prompt and seed; None of none."""
    found = list(grids)
    if not found:
        return None
    first = found[0]
    same = [grid for grid in found if (grid.prompt, grid.seed, grid.pair) == (first.prompt, first.seed, first.pair)]
    known = {token_id: text for grid in same for token_id, text in (grid.token_bytes or {}).items()}
    return replace(first, runs=tuple(run for grid in same for run in grid.runs), token_bytes=known)


# --- as a file --------------------------------------------------------------------------------------------------------

Experiment = TypeVar("Experiment", Sweep, Grid)


def dump(experiment: Sweep | Grid) -> str:
    """The experiment as JSON, a run a line."""
    head = {"kind": type(experiment).__name__.lower(), "schema_version": SCHEMA_VERSION} | plain(experiment)
    lines = ",\n".join(_json(run) for run in head.pop("runs"))
    return f'{_json(head)[:-1]},"runs":[\n{lines}\n]}}\n'


def load(kind: type[Experiment], text: str) -> Experiment:
    """The sweep or grid in a JSON text. Unknown keys are left alone.

    Raises:
        ValueError: it is none, or has a value that cannot be; names the key.
    """
    try:
        said = json.loads(text)
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


def _check_runs(runs: tuple[Any, ...]) -> None:
    if len(runs) > MOST_RUNS:
        raise ValueError(f"an experiment may have {MOST_RUNS:,} runs, got {len(runs):,}")


def _rate(runs: Iterable[SweepRun]) -> float | None:
    counted = [(run.emitted, run.seconds) for run in runs]
    return _ratio(sum(emitted for emitted, _ in counted), sum(seconds for _, seconds in counted))


def _ratio(numerator: float, denominator: float) -> float | None:
    return numerator / denominator if denominator else None
