"""Measuring a machine: how fast it copies and multiplies, and how long reads of a pair's models take by width.

A :class:`Profiler` works in small steps, so that whoever calls it may show progress, give way, or stop in between; what
was measured up to then stays. Samples are taken in turns (every width of one model, then of the other, then copies
and products, and again), so that a slow moment of the machine falls on all alike; the first turn warms up and is left
out.
"""

from __future__ import annotations

import os
import platform
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from specviz.hardware import shapes
from specviz.hardware.accelerators import Dtype
from specviz.hardware.measured import (
    LONGEST_CONTEXT,
    MODELS,
    MOST_REPEATS,
    MOST_WIDTHS,
    WIDEST,
    Model,
    Profile,
    Rate,
    Read,
    Spread,
)
from specviz.hardware.shapes import ModelShape
from specviz.models.drafter import DrafterNetwork
from specviz.models.language_model import LanguageModel, Stopwatch
from specviz.models.loading import Pair

WIDTHS = tuple(range(1, 18))
CONTEXT = 256
REPEATS = 7
PIECE = 256
"""Tokens of the context that a processor reads in one step; a GPU reads all of it."""
COPIES = {"cpu": (64, 128, 256), "cuda": (256, 512, 1024)}
"""MiB that are copied: beyond any cache."""
SQUARES = {"cpu": (1024, 2048), "cuda": (4096, 8192)}
"""Rows and columns of square matrices."""
ROWS = {"cpu": 256, "cuda": 4096}
"""Rows that are multiplied with matrices of the model's own shapes."""
PROMPT = "Tell me a short story about a dragon who was afraid of fire. "
DTYPES: dict[str, Dtype] = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}
_TORCH = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@dataclass(frozen=True, slots=True)
class _Task:
    """Something that is timed again and again."""

    take: Callable[[], float]
    seconds: list[float] = field(default_factory=list)

    def spread(self) -> Spread | None:
        return Spread.of(self.seconds)


class Profiler:
    """Measures one pair on the device that it was loaded on.

    Args:
        pair: the models.
        context: tokens in the caches before every read.
        repeats: samples of everything, after one that warms up.
        widths: rows of the reads.

    Raises:
        ValueError: a number is out of range, or a model cannot read that far.
    """

    def __init__(
        self, pair: Pair, *, context: int = CONTEXT, repeats: int = REPEATS, widths: Sequence[int] = WIDTHS
    ) -> None:
        _check("context", context, LONGEST_CONTEXT)
        _check("repeats", repeats, MOST_REPEATS)
        if not 1 <= len(widths) <= MOST_WIDTHS:
            raise ValueError(f"1 to {MOST_WIDTHS} widths can be measured, got {len(widths)}")
        for width in widths:
            _check("a width", width, WIDEST)
        self.pair = pair
        self.context = context
        self.repeats = repeats
        self.widths = tuple(sorted(set(widths)))
        self._device = torch.device(pair.device)
        self._models: dict[Model, LanguageModel] = {"target": pair.target()}
        if pair.drafter_network is not None:
            self._models["drafter"] = pair.drafter()
        for name, model in self._models.items():
            limit = model.max_positions
            if limit is not None and context + self.widths[-1] > limit:
                raise ValueError(
                    f"the {name} reads at most {limit} tokens: context and the widest read are "
                    f"{context} + {self.widths[-1]}"
                )
        ids = pair.tokenizer.chat(PROMPT)
        self._ids = [ids[index % len(ids)] for index in range(context)]
        self._piece = PIECE if self._device.type == "cpu" else context
        self._prefill: dict[Model, float] = {}
        self._reads: dict[tuple[Model, int], _Task] = {}
        self._copies: dict[str, tuple[float, _Task]] = {}
        self._products: dict[str, tuple[float, _Task]] = {}
        self._starts = range(0, context, self._piece)
        self.total = len(self._models) * len(self._starts) + (repeats + 1) * self._tasks_a_turn()
        self.done = 0
        self._work = self._steps()

    @property
    def finished(self) -> bool:
        """Whether everything was measured."""
        return self.done >= self.total

    def step(self) -> None:
        """Take one sample: one read, one copy, one product, or a piece of the context. Does nothing when finished."""
        next(self._work, None)

    def close(self) -> None:
        """Let the caches and the memory that was copied go; what was measured stays."""
        with suppress(ValueError):  # another thread is at a step: it holds them until it is through
            self._work.close()

    def profile(self) -> Profile | None:
        """What was measured so far; None while nothing was."""
        reads = tuple(Read(width, *(self._spread(model, width) for model in MODELS)) for width in self.widths)
        reads = tuple(read for read in reads if read.target is not None or read.drafter is not None)
        if not reads:
            return None
        target, drafter = pair_shapes(self.pair)
        return Profile(
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            pair=self.pair.spec.name,
            device=device_name(self._device),
            device_type="cuda" if self._device.type == "cuda" else "cpu",
            dtype=DTYPES[self.pair.dtype],
            threads=torch.get_num_threads() if self._device.type == "cpu" else None,
            versions=dict(self.pair.versions),
            context=self.context,
            repeats=self.repeats,
            target=target,
            drafter=drafter,
            copies=_rates(self._copies),
            matrices=_rates(self._products),
            reads=reads,
            prefill=dict(self._prefill),
        )

    def _spread(self, name: Model, width: int) -> Spread | None:
        task = self._reads.get((name, width))
        return None if task is None else task.spread()

    def _tasks_a_turn(self) -> int:
        own = len(_own_matrices(self.pair.target_network.module))
        kind = self._device.type
        return len(self._models) * len(self.widths) + len(COPIES[kind]) + len(SQUARES[kind]) + own

    def _steps(self) -> Generator[None]:
        for name, model in self._models.items():
            seconds = 0.0
            for start in self._starts:
                seconds += model.extend(self._ids[start : start + self._piece], rows=1).seconds
                self.done += 1
                yield
            self._prefill[name] = seconds
        tasks = self._tasks()
        for turn in range(self.repeats + 1):
            for task in tasks:
                seconds = task.take()
                if turn:
                    task.seconds.append(seconds)
                self.done += 1
                yield

    def _tasks(self) -> list[_Task]:
        for name, model in self._models.items():
            for width in self.widths:
                self._reads[name, width] = _Task(partial(_read, model, self._ids[-1], width))
        dtype, kind = _TORCH[self.pair.dtype], self._device.type
        largest = max(COPIES[kind]) * 2**20 // dtype.itemsize
        # Written to, so that every page of them is there.
        source, place = (torch.full((largest,), value, dtype=dtype, device=self._device) for value in (0.5, 0.25))
        for mebibytes in COPIES[kind]:
            count = mebibytes * 2**20 // dtype.itemsize
            copy = partial(place[:count].copy_, source[:count])
            moved = 2.0 * count * dtype.itemsize
            self._copies[f"copy {mebibytes} MiB"] = moved, _Task(partial(_timed, self._device, copy))
        sizes = [("square", size, size, size) for size in SQUARES[kind]]
        sizes += [("own", ROWS[kind], *shape) for shape in _own_matrices(self.pair.target_network.module)]
        for what, rows, inner, columns in sizes:
            generator = torch.Generator(self._device).manual_seed(0)
            left, right = (
                torch.randn(shape, generator=generator, device=self._device).to(dtype)
                for shape in ((rows, inner), (inner, columns))
            )
            label = f"{rows:,} × {inner:,} by {inner:,} × {columns:,}{', of the target' if what == 'own' else ''}"
            result = torch.empty(rows, columns, dtype=dtype, device=self._device)
            product = partial(torch.matmul, left, right, out=result)
            self._products[label] = 2.0 * rows * inner * columns, _Task(partial(_timed, self._device, product))
        return [
            *self._reads.values(),
            *(task for _, task in self._copies.values()),
            *(task for _, task in self._products.values()),
        ]


def pair_shapes(pair: Pair) -> tuple[ModelShape, ModelShape | None]:
    """The shapes of a loaded pair's models, with their parameters counted.

    Raises:
        ValueError: a configuration lacks a size.
    """
    target_name, _, drafter_name = pair.spec.name.partition(" with ")
    target = _shape(pair.target_network.module, target_name)
    network = pair.drafter_network
    if network is None:
        return target, None
    if isinstance(network.module, DrafterNetwork):
        layers = len(network.module.body.layers)
        return target, shapes.embedded_drafter(target, layers, len(network.module.kept_ids))
    return target, _shape(network.module, drafter_name or "drafter")


def device_name(device: torch.device) -> str:
    """What the device calls itself."""
    if device.type == "cuda":
        return str(torch.cuda.get_device_name(device))
    return _processor() or platform.processor() or platform.machine() or "CPU"


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    except OSError:
        return ""
    return f"{names[0]}, {os.cpu_count()} cores" if names else ""


def _shape(network: nn.Module, name: str) -> ModelShape:
    config: Any = network.config
    return shapes.from_config(config, name or None, params=sum(weight.numel() for weight in network.parameters()))


def _own_matrices(network: nn.Module) -> list[tuple[int, int]]:
    """(inner, columns) of the largest matrix that a model's layers have, and of the largest of all, mostly the head."""
    counts = Counter(tuple(weight.shape) for weight in network.parameters() if weight.ndim == 2)
    in_layers = [shape for shape, count in counts.items() if count > 1]
    largest = {max(found, key=lambda shape: shape[0] * shape[1]) for found in (in_layers, counts) if found}
    return sorted((shape[1], shape[0]) for shape in largest)


def _read(model: LanguageModel, token_id: int, width: int) -> float:
    seconds = model.extend([token_id] * width, rows=width).seconds
    model.rollback(width)
    return seconds


def _timed(device: torch.device, act: Callable[[], Tensor]) -> float:
    with torch.inference_mode():
        stopwatch = Stopwatch(device)
        act()
        return stopwatch.seconds()


def _rates(measured: dict[str, tuple[float, _Task]]) -> tuple[Rate, ...]:
    spreads = ((name, amount, task.spread()) for name, (amount, task) in measured.items())
    return tuple(Rate(name, spread.per(amount)) for name, amount, spread in spreads if spread is not None)


def _check(name: str, value: int, most: int) -> None:
    if not 1 <= value <= most:
        raise ValueError(f"{name} must be a whole number in 1..{most:,}, got {value!r}")
