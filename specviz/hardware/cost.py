"""What one pass costs: bytes read, FLOP, and the time that the slower of the two takes (the roofline).

A pass reads the weights once, whatever its width, and each sequence's cache; it multiplies every token with every
weight. Its time is the larger of bytes / bandwidth and FLOP / rate: a lower bound, reached only if reading and
multiplying overlap perfectly and nothing else takes time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Literal

from specviz import theory
from specviz.hardware.accelerators import DTYPES, Accelerator, Dtype
from specviz.hardware.shapes import ModelShape

Count = Literal["read", "stored"]
Bound = Literal["memory", "compute"]

COUNTS: tuple[Count, ...] = ("read", "stored")
INT4_GROUP = 128
WEIGHT_BYTES: dict[Dtype, float] = {
    "fp32": 4.0,
    "fp16": 2.0,
    "bf16": 2.0,
    "fp8": 1.0,
    "int8": 1.0,
    "int4": 0.5 + 2.0 / INT4_GROUP,
}
"""Bytes a weight. int4 includes a 16-bit scale for every 128 weights, and leaves head and input table at 16 bits."""
KV_BYTES: dict[Dtype, float] = {dtype: WEIGHT_BYTES[dtype] for dtype in DTYPES if dtype != "int4"}
"""Bytes of a number in the cache."""
MOST_ROWS = 2**24


@dataclass(frozen=True, slots=True)
class PassCost:
    """A modelled pass.

    Attributes:
        weight_bytes: weights read.
        kv_bytes: cache read and written.
        kv_written_bytes: the part of ``kv_bytes`` that the pass's own tokens leave in the cache.
        flops: two for every multiply-add.
        memory_s: time to move the bytes.
        compute_s: time to multiply.
        bound: which of the two is longer.
        seconds: the longer one.
        intensity: FLOP for every byte.
    """

    weight_bytes: float
    kv_bytes: float
    kv_written_bytes: float
    flops: float
    memory_s: float
    compute_s: float
    bound: Bound
    seconds: float
    intensity: float

    @property
    def bytes(self) -> float:
        """All bytes moved."""
        return self.weight_bytes + self.kv_bytes


def weight_bytes(shape: ModelShape, dtype: Dtype = "bf16", count: Count = "read", tokens: int = 1) -> float:
    """Bytes of the weights.

    Args:
        shape: the model.
        dtype: what the weights are stored as; see :data:`WEIGHT_BYTES` for what int4 includes.
        count: *read*: what a pass over ``tokens`` tokens reads: the head once, an untied input table not at all (it
            is a look-up of a few rows), of a mixture the experts that the tokens are expected to need. *stored*: all
            unique parameters.
        tokens: tokens of the pass, all sequences together, at least 1.

    Raises:
        ValueError: the dtype or the count is unknown, or tokens is below 1.
    """
    _check_one_of("dtype", dtype, DTYPES)
    _check_one_of("count", count, COUNTS)
    _check_at_least("tokens", tokens, 1)
    body = shape.params - shape.table_params if count == "stored" else shape.body_read(tokens)
    tables = shape.table_params if count == "stored" else shape.head_params
    return body * WEIGHT_BYTES[dtype] + tables * (2.0 if dtype == "int4" else WEIGHT_BYTES[dtype])


def kv_bytes_per_token(shape: ModelShape, kv_dtype: Dtype = "bf16") -> float:
    """Bytes that one token leaves in the cache: layers x kv heads x head_dim x 2 x bytes a number.

    Raises:
        ValueError: no cache is kept in this dtype.
    """
    _check_one_of("kv_dtype", kv_dtype, KV_BYTES)
    return shape.kv_values * KV_BYTES[kv_dtype]


def kv_read_bytes(shape: ModelShape, context: int, kv_dtype: Dtype = "bf16") -> float:
    """Bytes of cache that a pass reads for a sequence with ``context`` tokens in it; a layer with a window stops there.

    Raises:
        ValueError: context is negative, or no cache is kept in this dtype.
    """
    _check_at_least("context", context, 0)
    layer = kv_bytes_per_token(shape, kv_dtype) / shape.layers
    full = shape.layers - shape.windowed_layers
    return layer * (full * context + shape.windowed_layers * min(context, shape.window or 0))


def pass_flops(shape: ModelShape, query_tokens: int, context: int, batch: int = 1) -> float:
    """FLOP of a pass, two for every multiply-add.

    Every token meets every weight that it needs (of a mixture, its own experts), and in each layer every query meets
    the keys and the values of the tokens up to itself: 4 x heads x head_dim for a query and a key. Norms, softmax and
    rotation are left out.

    Raises:
        ValueError: query_tokens or batch is below 1, or context is negative.
    """
    _check_at_least("query_tokens", query_tokens, 1)
    _check_at_least("context", context, 0)
    _check_at_least("batch", batch, 1)
    full = shape.layers - shape.windowed_layers
    met = full * _keys_met(query_tokens, context, None)
    met += shape.windowed_layers * _keys_met(query_tokens, context, shape.window)
    return batch * (2.0 * shape.params_read * query_tokens + 4.0 * shape.heads * shape.head_dim * met)


def pass_cost(
    shape: ModelShape,
    accelerator: Accelerator,
    query_tokens: int = 1,
    context: int = 0,
    batch: int = 1,
    dtype: Dtype = "bf16",
    kv_dtype: Dtype = "bf16",
    count: Count = "read",
) -> PassCost:
    """The cost of one pass.

    Args:
        shape: the model.
        accelerator: what it runs on.
        query_tokens: tokens fed to each sequence: 1 plain, gamma + 1 to verify, the prompt to prefill; at least 1.
        context: tokens in each sequence's cache before, at least 0.
        batch: sequences in the pass, at least 1; they share the weights, not the cache.
        dtype: of the weights.
        kv_dtype: of the cache: anything but int4.
        count: which weights count; see :func:`weight_bytes`.

    Raises:
        ValueError: an argument is out of its range; the message gives the value and what is allowed.
    """
    flops = pass_flops(shape, query_tokens, context, batch)
    weights = weight_bytes(shape, dtype, count, tokens=batch * query_tokens)
    written = batch * query_tokens * kv_bytes_per_token(shape, kv_dtype)
    kv = batch * kv_read_bytes(shape, context, kv_dtype) + written
    memory_s, compute_s = (weights + kv) / accelerator.bandwidth, flops / accelerator.rate(dtype)
    return PassCost(
        weight_bytes=weights,
        kv_bytes=kv,
        kv_written_bytes=written,
        flops=flops,
        memory_s=memory_s,
        compute_s=compute_s,
        bound="memory" if memory_s >= compute_s else "compute",
        seconds=max(memory_s, compute_s),
        intensity=flops / (weights + kv),
    )


def stored_bytes(shape: ModelShape, dtype: Dtype = "bf16", context: int = 0, batch: int = 1) -> float:
    """Memory that the weights and the caches of ``batch`` sequences take, the cache at 16 bits."""
    return weight_bytes(shape, dtype, "stored") + batch * kv_read_bytes(shape, context)


# --- where memory ends and arithmetic begins --------------------------------------------------------------------------


def ridge_rows(accelerator: Accelerator, dtype: Dtype = "bf16") -> float:
    """Rows in flight, weights only, at which multiplying a weight takes as long as reading it.

    At 16 bits that is the ridge itself: 2 FLOP and 2 bytes a weight and row.
    """
    return accelerator.ridge(dtype) * WEIGHT_BYTES[dtype] / 2.0


def ridge_batch(accelerator: Accelerator, gamma: int, dtype: Dtype = "bf16") -> float:
    """Batch at which a verification of gamma + 1 rows meets the ridge, weights only: a wider read stops being free.

    Raises:
        ValueError: gamma is negative.
    """
    _check_at_least("gamma", gamma, 0)
    return ridge_rows(accelerator, dtype) / (gamma + 1)


def break_even_batch(
    accelerator: Accelerator, alpha: float, gamma: int, c: float, dtype: Dtype = "bf16"
) -> float | None:
    """Batch at which speculation stops paying, weights only: ridge x (E - gamma c) / (gamma + 1).

    Past :func:`ridge_batch` a verification takes batch x (gamma + 1) / ridge plain reads; with gamma drafter reads of c
    each, it has used up the E = :func:`specviz.theory.expected_tokens` tokens that it brings. ``None`` where it does
    not pay at any batch: nothing is drafted, or E does not exceed 1 + gamma c.

    Raises:
        ValueError: alpha is not in [0, 1], gamma is negative, or c is not a finite number of at least 0.
    """
    if theory.speedup(alpha, gamma, c) <= 1.0:
        return None
    return ridge_batch(accelerator, gamma, dtype) * (theory.expected_tokens(alpha, gamma) - gamma * c)


def rows_until_compute_binds(cost: Callable[[int], PassCost]) -> int | None:
    """The most rows for which memory still binds: 0 where one row is too many, ``None`` beyond 2**24.

    Args:
        cost: rows to the cost of their pass, query tokens or sequences, such as
            ``lambda rows: pass_cost(shape, accelerator, rows)``. Arithmetic must grow faster than bytes, as it does.
    """
    binds_not, binds = 0, 1
    while cost(binds).bound == "memory":
        binds_not, binds = binds, 2 * binds
        if binds > MOST_ROWS:
            return None
    while binds - binds_not > 1:
        middle = (binds_not + binds) // 2
        binds_not, binds = (middle, binds) if cost(middle).bound == "memory" else (binds_not, middle)
    return binds_not


# --- a round ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RoundPrice:
    """What a round of gamma drafts costs, counted in plain reads of the target: ``reads = verify + gamma c``.

    Attributes:
        gamma: drafts.
        c: one drafter read over one plain read of the target; 0 for a drafter that reads nothing.
        verify: the target's read of gamma + 1 rows over a plain one; 1 while memory binds, but for the cache.
        reads: all of it.
        plain_s: the plain read, in seconds.
    """

    gamma: int
    c: float
    verify: float
    reads: float
    plain_s: float

    def speed(self, alpha: float) -> float:
        """Expected speed over plain decoding at this price: tokens a round / reads.

        Raises:
            ValueError: alpha is not in [0, 1].
        """
        return theory.expected_tokens(alpha, self.gamma) / self.reads


def round_price(
    target: ModelShape,
    drafter: ModelShape | None,
    accelerator: Accelerator,
    gamma: int,
    context: int = 0,
    batch: int = 1,
    dtype: Dtype = "bf16",
    kv_dtype: Dtype = "bf16",
    count: Count = "read",
) -> RoundPrice:
    """The price of a round: gamma drafter reads of one token, one target read of gamma + 1.

    Args:
        target: the target.
        drafter: the drafter; ``None`` reads nothing (n-gram look-up).
        accelerator: what both run on.
        gamma: drafts, at least 0.
        context: tokens in both caches, at least 0.
        batch: sequences in each pass.
        dtype: of both models' weights.
        kv_dtype: of both caches.
        count: which weights count; see :func:`weight_bytes`.

    Raises:
        ValueError: an argument is out of its range; the message gives the value and what is allowed.
    """
    _check_at_least("gamma", gamma, 0)

    def seconds(shape: ModelShape, rows: int) -> float:
        return pass_cost(shape, accelerator, rows, context, batch, dtype, kv_dtype, count).seconds

    plain_s = seconds(target, 1)
    c = 0.0 if drafter is None else seconds(drafter, 1) / plain_s
    verify = seconds(target, gamma + 1) / plain_s
    return RoundPrice(gamma, c, verify, verify + gamma * c, plain_s)


def best_gamma(price: Callable[[int], RoundPrice], alpha: float, max_gamma: int = 16) -> int:
    """The gamma in 0..max_gamma with the largest expected speed, the smaller one of equals.

    Agrees with :func:`specviz.theory.optimal_gamma` while a wider read costs no more than a plain one. Where drafts
    cost nothing there may be no optimum, and ``max_gamma`` bounds the answer.

    Raises:
        ValueError: alpha is not in [0, 1], or max_gamma is negative.
    """
    _check_at_least("max_gamma", max_gamma, 0)
    return max(range(max_gamma + 1), key=lambda gamma: price(gamma).speed(alpha))


def bandwidth_share(bytes_per_read: float, reads_per_second: float, accelerator: Accelerator) -> float:
    """Modelled bytes x reads a second / bandwidth (MBU): how much of the bandwidth a measured speed amounts to.

    Above 1 where the bytes are over-counted, or were not read from this memory.

    Raises:
        ValueError: a number is not finite and at least 0.
    """
    for name, value in (("bytes_per_read", bytes_per_read), ("reads_per_second", reads_per_second)):
        if not (math.isfinite(value) and value >= 0):
            raise ValueError(f"{name} must be a finite number of at least 0, got {value!r}")
    return bytes_per_read * reads_per_second / accelerator.bandwidth


def _keys_met(queries: int, context: int, window: int | None) -> int:
    """Query-key pairs of a layer: query i of 1..queries meets context + i tokens, itself the last, or its window."""
    growing = queries if window is None else min(max(window - context, 0), queries)
    met = growing * context + growing * (growing + 1) // 2
    return met + (queries - growing) * (window or 0)


def _check_one_of(name: str, value: str, allowed: Collection[str]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {value!r}")


def _check_at_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value!r}")
