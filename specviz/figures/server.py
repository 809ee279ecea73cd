"""Somebody's server, from what its owner says about it: how much of the memory's bandwidth its speed amounts to.

The speed is measured by the owner; bytes, FLOP and bandwidth are modelled.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from specviz.figures.numbers import amount, duration, significant
from specviz.figures.profile import FAIR, GOOD, percent
from specviz.figures.sentences import Spans, fill
from specviz.figures.table import Table
from specviz.hardware import cost
from specviz.hardware.accelerators import Accelerator, Dtype
from specviz.hardware.cost import PassCost
from specviz.hardware.shapes import ModelShape

TOO_MUCH = 1.0

TEMPLATES = {
    "memory": "[Memory-bound, {share}.] The memory delivers {share} of what it can; more tokens a read are the way "
    "to go faster, which is what drafts are for.",
    "arithmetic": "[Bound by arithmetic, {share} of the dense rate.] {batch} readers fill the multipliers; drafts "
    "would add work, not use what is idle.",
    "between": "[Partly memory, {share}.] The rest of the time the {idle} waits: for starting the layers, for the host "
    "between two reads, or for other devices.",
    "idle": "[Not memory: {share}.] The {idle} waits most of the time. Look at the host, at the start of each layer, "
    "at what devices tell each other, before drafting.",
    "too much": "[{share}: more than the machine can do,] so an input is off.",
}
CHECKS = {
    "batch": "Is the speed that of all {batch} readers together? Then say so.",
    "one": "Is it the speed of several readers together? Then give their number.",
    "draft": "Is speculation on? Then a read brings several tokens: enter tokens/s divided by tokens per read.",
    "dtype": "Are the weights stored in fewer bits than {dtype}?",
    "devices": "Is the model spread over more devices than {devices}?",
    "cache": "Is the model small enough to stay in the processor's cache?",
}
FIT = "{need} of weights and cache do not fit into {memory} of {name}: it takes {devices} of them, or fewer bits."
FORMULA = """share of bandwidth = bytes of a read × reads a second / bandwidth
bytes of a read = weights read + batch × (context + 1) × KV bytes of a token
reads a second = tokens a second of one reader"""


@dataclass(frozen=True, slots=True)
class Server:
    """What the owner says.

    Attributes:
        shape: the model.
        dtype: of the weights.
        accelerator: all devices together.
        batch: readers at a time, at least 1.
        context: tokens in each reader's cache.
        speed: tokens a second, positive.
        together: whether ``speed`` is that of all readers, else of one.

    Raises:
        ValueError: a number is out of range.
    """

    shape: ModelShape
    dtype: Dtype
    accelerator: Accelerator
    batch: int
    context: int
    speed: float
    together: bool = False

    def __post_init__(self) -> None:
        if self.batch < 1:
            raise ValueError(f"batch must be at least 1, got {self.batch}")
        if self.context < 0:
            raise ValueError(f"context must be at least 0, got {self.context}")
        if not (0 < self.speed < math.inf):
            raise ValueError(f"speed must be positive and finite, got {self.speed!r}")

    @property
    def reads_per_second(self) -> float:
        """Every reader gets one token a read."""
        return self.speed / self.batch if self.together else self.speed

    @property
    def kv_dtype(self) -> Dtype:
        """Caches are kept in fp32 beside fp32 weights, else in 16 bits."""
        return "fp32" if self.dtype == "fp32" else "fp16" if self.dtype == "fp16" else "bf16"

    @property
    def read(self) -> PassCost:
        """The modelled read: one token of every reader."""
        return cost.pass_cost(
            self.shape, self.accelerator, 1, self.context, self.batch, self.dtype, self.kv_dtype, "read"
        )


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict: the share of bandwidth, also in words, a sentence, what to check, and the arithmetic as a table."""

    share: float
    told: str
    kind: str
    verdict: Spans
    checks: tuple[str, ...]
    table: Table
    formula: str


def judge(server: Server) -> Judgement:
    """What binds on this server."""
    read, accelerator = server.read, server.accelerator
    share = cost.bandwidth_share(read.bytes, server.reads_per_second, accelerator)
    arithmetic = read.flops * server.reads_per_second / accelerator.rate(server.dtype)
    reached = max(share, arithmetic)
    idle = "memory" if read.bound == "memory" else "arithmetic unit"
    if reached > TOO_MUCH:
        kind = "too much"
    elif reached >= GOOD:
        kind = "memory" if read.bound == "memory" else "arithmetic"
    else:
        kind = "between" if reached >= FAIR else "idle"
    told = _over(reached) if kind == "too much" else percent(reached)
    verdict = fill(TEMPLATES[kind], share=told, batch=server.batch, idle=idle)
    checks = _checks(server) if kind == "too much" else ()
    share_told = f"{percent(share)} of the bandwidth of {accelerator.name}"
    return Judgement(
        share, share_told, kind, verdict, (*checks, *_fit(server)), _table(server, share, arithmetic), FORMULA
    )


def _over(share: float) -> str:
    """Above one it must not look like one."""
    return percent(share) if share >= 1.005 else "just over 100 %"


def _checks(server: Server) -> tuple[str, ...]:
    names = ["batch" if server.batch > 1 and not server.together else "one"] if not server.together else []
    names += ["draft", *(["dtype"] if server.dtype != "int4" else []), "devices"]
    names += ["cache"] if server.accelerator.origin == "measured" else []
    values = {"batch": server.batch, "dtype": server.dtype, "devices": server.accelerator.devices}
    return tuple(CHECKS[name].format(**values) for name in names)


def _fit(server: Server) -> tuple[str, ...]:
    """A sentence where the model and its caches are larger than the memory."""
    memory = server.accelerator.memory
    need = cost.weight_bytes(server.shape, server.dtype, "stored")
    need += server.batch * cost.kv_read_bytes(server.shape, server.context, server.kv_dtype)
    if memory is None or need <= memory:
        return ()
    one = memory / server.accelerator.devices
    name = server.accelerator.name
    sentence = FIT.format(need=amount(need, "B"), memory=amount(memory, "B"), name=name, devices=math.ceil(need / one))
    return (sentence,)


def _table(server: Server, share: float, arithmetic: float) -> Table:
    read, accelerator, rate = server.read, server.accelerator, server.accelerator.rate(server.dtype)
    rows = [
        ("weights read", amount(read.weight_bytes, "B"), "modelled"),
        ("cache read and written", amount(read.kv_bytes, "B"), "modelled"),
        ("bandwidth", amount(accelerator.bandwidth, "B/s"), _origin(accelerator)),
        ("a read at least", duration(read.seconds), "modelled"),
        ("a read here", duration(1 / server.reads_per_second), "yours"),
        ("reads a second at most", significant(1 / read.seconds), "modelled"),
        ("reads a second", significant(server.reads_per_second), "yours"),
        ("share of bandwidth", percent(share), "modelled / yours"),
        ("dense rate", amount(rate, "FLOP/s"), _origin(accelerator)),
        ("share of the dense rate", percent(arithmetic), "modelled / yours"),
        ("what binds by the model", {"memory": "memory", "compute": "arithmetic"}[read.bound], "modelled"),
    ]
    caption = f"{server.shape.name}, {server.dtype}, on {accelerator.name}; cache in {server.kv_dtype}"
    return Table(caption, ("what", "value", "where from"), tuple(rows))


def _origin(accelerator: Accelerator) -> str:
    return {"data sheet": "data sheet", "measured": "measured here", "custom": "typed in"}[accelerator.origin]
