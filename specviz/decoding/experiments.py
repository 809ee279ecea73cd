"""Running the two experiments: one round at a time, so that whoever calls may show progress, give way, or stop.

What was decoded up to then stays: ``result()`` is the experiment of what is there so far.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import product
from typing import Any

import torch

from specviz.decoding.decoder import Decoder, Pair
from specviz.decoding.profiling import DTYPES, device_name
from specviz.decoding.settings import DrafterKind, Settings
from specviz.experiments import (
    GRID_GAMMAS,
    GRID_RULES,
    GRID_TOKENS,
    MOST_IDS,
    MOST_RUNS,
    Grid,
    GridRun,
    Policy,
    Sweep,
    SweepRun,
)
from specviz.trace import Pass, Round, tally


class _Experiment:
    """Works in rounds. ``total`` and ``done`` count tokens: a text that ended early counts whole."""

    def __init__(self, pair: Pair, texts: int, max_new_tokens: int) -> None:
        if texts < 1:
            raise ValueError("there is nothing to decode: no prompt, no policy, or no drafter was given")
        self.pair = pair
        self.max_new_tokens = max_new_tokens
        self.total = texts * max_new_tokens
        self._over = 0
        self._live: list[Decoder] = []
        self._work = self._steps()

    @property
    def done(self) -> int:
        """Of ``total``."""
        return self._over * self.max_new_tokens + sum(map(self._tokens, self._live))

    @property
    def finished(self) -> bool:
        """Whether every text was decoded."""
        return self.done >= self.total

    def step(self) -> None:
        """Decode one round. Does nothing when finished."""
        next(self._work, None)

    def close(self) -> None:
        """Let the caches go; what was decoded stays."""
        with suppress(ValueError):  # another thread is at a step: it holds them until it is through
            self._work.close()

    def _steps(self) -> Generator[None]:
        raise NotImplementedError

    def _start(self, prompt: str, settings: Settings) -> Decoder:
        return Decoder.start(self.pair, prompt, settings, self.max_new_tokens)

    def _tokens(self, decoder: Decoder) -> int:
        return self.max_new_tokens if decoder.finished else len(decoder.trace.text_ids)

    def _head(self) -> dict[str, Any]:
        """What ran, for the record."""
        spec, dtype = self.pair.spec, getattr(self.pair, "dtype", "")
        return {
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "pair": getattr(spec, "name", spec.id),
            "device": device_name(torch.device(self.pair.device)),
            "dtype": DTYPES.get(dtype, dtype),
            "threads": getattr(self.pair, "threads", None),
            "versions": getattr(self.pair, "versions", None),
            "max_new_tokens": self.max_new_tokens,
        }


class Sweeper(_Experiment):
    """Decodes every prompt under every policy.

    The policies of a prompt are decoded side by side, always the one whose text is shortest, the target alone first: a
    slow moment of the machine falls on all alike, and whatever ends the sweep early leaves texts of one length.

    Args:
        pair: the models.
        prompts: users' messages by workload.
        policies: how long to draft.
        rule: an exact rule.
        temperature: of both models; ``None`` is the rule's own.
        seed: of every number drawn.
        max_new_tokens: of every text.

    Raises:
        ValueError: a value is outside its range, or there is nothing to decode.
    """

    def __init__(
        self,
        pair: Pair,
        prompts: Mapping[str, Sequence[str]],
        policies: Iterable[Policy],
        *,
        rule: str = "speculative_sampling",
        temperature: float | None = None,
        seed: int = 0,
        max_new_tokens: int = 48,
    ) -> None:
        self._prompts = [(workload, prompt) for workload, some in prompts.items() for prompt in dict.fromkeys(some)]
        ordered = sorted(dict.fromkeys(policies), key=lambda policy: policy.gamma > 0)
        self._settings = {policy: settings(policy, rule, temperature, seed) for policy in ordered}
        self._runs: list[SweepRun] = []
        self._started: list[tuple[Policy, str, str, Decoder]] = []
        if len(self._prompts) * len(ordered) > MOST_RUNS:
            raise ValueError(f"a sweep may have {MOST_RUNS:,} runs, got {len(self._prompts)} prompts x {len(ordered)}")
        super().__init__(pair, len(self._prompts) * len(ordered), max_new_tokens)

    def result(self) -> Sweep | None:
        """What was measured so far, texts that are not through included; None before the first round."""
        live = [_sweep_run(*one) for one in self._started if one[-1].trace.rounds]
        if not self._runs and not live:
            return None
        first = next(iter(self._settings.values()))
        return Sweep(
            **self._head(),
            rule=first.rule,
            temperature=first.temperature,
            seed=first.seed,
            runs=(*self._runs, *live),
        )

    def _steps(self) -> Generator[None]:
        self._warm_up()
        yield
        for workload, prompt in self._prompts:
            self._started = [
                (policy, workload, prompt, self._start(prompt, wanted)) for policy, wanted in self._settings.items()
            ]
            self._live = [decoder for *_, decoder in self._started]
            while open_ := [decoder for decoder in self._live if not decoder.finished]:
                min(open_, key=self._tokens).step()
                yield
            runs = [_sweep_run(*one) for one in self._started]
            self._live, self._started, self._over = [], [], self._over + len(runs)
            self._runs += runs

    def _warm_up(self) -> None:
        """A round of the longest draft that does not count: first calls of a shape take longer."""
        longest = max(self._settings.values(), key=lambda one: one.gamma)
        self._start(self._prompts[0][1], longest).step()


class Gridder(_Experiment):
    """Decodes one prompt with one seed under every rule, drafter and gamma, the target alone first.

    Args:
        pair: the models.
        prompt: a user's message.
        rules: exact rules.
        drafters: who drafts; ``None`` is everybody that the pair has.
        gammas: drafts a round, from 1.
        temperature: of both models; ``None`` is the rule's own.
        seed: of every number drawn.
        max_new_tokens: of every text.

    Raises:
        ValueError: a value is outside its range, or there is nothing to decode.
    """

    def __init__(
        self,
        pair: Pair,
        prompt: str,
        *,
        rules: Sequence[str] = GRID_RULES,
        drafters: Sequence[DrafterKind] | None = None,
        gammas: Sequence[int] = GRID_GAMMAS,
        temperature: float | None = None,
        seed: int = 0,
        max_new_tokens: int = GRID_TOKENS,
    ) -> None:
        cells = [Policy(0, drafter="none")]
        cells += [Policy(gamma, drafter=one) for one, gamma in product(drafters or drafters_of(pair), gammas)]
        asked = dict.fromkeys(product(rules, cells))
        self._cells = [settings(cell, rule, temperature, seed) for rule, cell in asked]
        if len(self._cells) * max_new_tokens > MOST_IDS:
            raise ValueError(f"a grid may have {MOST_IDS:,} tokens, got {len(self._cells)} texts of {max_new_tokens:,}")
        self._prompt = prompt
        self._runs: list[GridRun] = []
        super().__init__(pair, len(self._cells), max_new_tokens)

    def result(self) -> Grid | None:
        """The texts that are through; None before the first."""
        if not self._runs:
            return None
        ids = sorted({token_id for run in self._runs for token_id in run.ids})
        return Grid(
            **self._head(),
            prompt=self._prompt,
            seed=self._cells[0].seed,
            temperature=self._cells[0].temperature,
            token_bytes={token_id: self.pair.tokenizer.bytes(token_id).hex() for token_id in ids},
            runs=tuple(self._runs),
        )

    def _steps(self) -> Generator[None]:
        for cell in self._cells:
            decoder = self._start(self._prompt, cell)
            self._live = [decoder]
            while not decoder.finished:
                decoder.step()
                if decoder.finished:
                    self._runs.append(_grid_run(cell, decoder))
                    self._live, self._over = [], self._over + 1
                yield


def settings(policy: Policy, rule: str, temperature: float | None, seed: int) -> Settings:
    """A policy as the decoder's settings.

    Raises:
        ValueError: a value is outside its range.
    """
    return Settings(
        rule=rule,
        gamma=policy.gamma,
        temperature=temperature,  # type: ignore[arg-type]  # None is the rule's own
        seed=seed,
        drafter=policy.drafter,
        stop_below=policy.stop_below,
        stop_above=policy.stop_above,
    )


def drafters_of(pair: Pair) -> tuple[DrafterKind, ...]:
    """Who can draft for this pair."""
    own: tuple[DrafterKind, ...] = () if getattr(pair, "drafter_network", pair) is None else ("model",)
    return (*own, "target", "ngram")


def _sweep_run(policy: Policy, workload: str, prompt: str, decoder: Decoder) -> SweepRun:
    rounds = decoder.trace.rounds
    counted = tally(rounds)
    reads = _passes(rounds)
    return SweepRun(
        policy=policy,
        workload=workload,
        prompt=prompt,
        emitted=counted.emitted,
        rounds=counted.rounds,
        drafted=counted.drafted,
        judged=counted.judged_at,
        kept=counted.kept_at_least,
        shared=tuple(round(_shared(rounds, place), 6) for place in range(len(counted.judged_at))),
        verify=tuple((read.query_tokens or 0, _tidy(read.seconds)) for read in reads if read.kind == "verify"),
        draft=tuple(_tidy(read.seconds) for read in reads if read.kind == "draft"),
        seconds=_seconds(rounds),
    )


def _grid_run(cell: Settings, decoder: Decoder) -> GridRun:
    reads = _passes(decoder.trace.rounds)
    return GridRun(
        rule=cell.rule,
        drafter=cell.drafter,
        gamma=cell.gamma,
        ids=decoder.trace.text_ids,
        target_passes=sum(read.kind == "verify" for read in reads),
        drafter_passes=sum(read.kind == "draft" for read in reads),
        seconds=_seconds(decoder.trace.rounds),
    )


def _passes(rounds: Iterable[Round]) -> list[Pass]:
    return [read for round_ in rounds for read in round_.passes]


def _shared(rounds: Iterable[Round], place: int) -> float:
    """Sum of sum min(p, q) over the rounds that judged this place."""
    rows = (round_.judged[place].row for round_ in rounds if len(round_.judged) > place)
    return sum(1.0 - (row.tv or 0.0) for row in rows if row is not None)


def _seconds(rounds: Sequence[Round]) -> float:
    """Of the rounds, without the reads that fill an empty cache."""
    prefill = sum(read.seconds or 0.0 for read in _passes(rounds) if read.kind == "prefill")
    return max(0.0, _tidy(sum(round_.seconds or 0.0 for round_ in rounds) - prefill))


def _tidy(seconds: float | None) -> float:
    """To the microsecond: what a clock can tell."""
    return round(seconds or 0.0, 6)
