"""Sweeps made by hand, with round numbers, for tests of what is drawn from them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from specviz.experiments import Policy, Sweep, SweepRun

PLAIN_S, DRAFT_S = 0.01, 0.001
FIXED = tuple(map(Policy, (0, 1, 2, 4, 8)))
EARLY = (Policy(12, stop_below=0.4), Policy(12, stop_above=2.0))


def read_s(width: int) -> float:
    """A read of 1 row takes 10 ms, each row more 2 ms."""
    return PLAIN_S + 0.002 * (width - 1)


def run(
    policy: Policy,
    workload: str = "chat",
    prompt: str = "Hello.",
    *,
    rounds: int = 64,
    drafts: int | None = None,
    overhead_s: float = 0.001,
    alpha: float = 0.5,
) -> SweepRun:
    """Rounds of ``drafts`` drafts (gamma of them), of which half the judged stay at every place."""
    count = policy.gamma if drafts is None else drafts
    judged = tuple(rounds // 2**place for place in range(count))
    kept = tuple(one // 2 for one in judged)
    seconds = rounds * (read_s(count + 1) + count * DRAFT_S + overhead_s)
    return SweepRun(
        policy=policy,
        workload=workload,
        prompt=prompt,
        emitted=rounds + sum(kept),
        rounds=rounds,
        drafted=rounds * count,
        judged=judged,
        kept=kept,
        shared=tuple(alpha * one for one in judged),
        verify=((count + 1, read_s(count + 1)),) * rounds,
        draft=(DRAFT_S,) * (rounds * count),
        seconds=seconds,
    )


def sweep(runs: Iterable[SweepRun] | None = None, **changes: Any) -> Sweep:
    """Fixed gammas 0 to 8 and two that stop early after two drafts on average, over two workloads."""
    if runs is None:
        runs = [
            run(policy, workload, drafts=2 if policy.adaptive else None, alpha=alpha)
            for workload, alpha in (("chat", 0.4), ("code", 0.6))
            for policy in (*FIXED, *EARLY)
        ]
    values: dict[str, Any] = {
        "created": "2030-01-02T03:04:05+00:00",
        "pair": "big with small",
        "device": "a machine",
        "dtype": "fp32",
        "threads": 2,
        "max_new_tokens": 64,
        "runs": tuple(runs),
    }
    return Sweep(**(values | changes))
