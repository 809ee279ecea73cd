"""Accelerators as data: memory bandwidth and the rate of dense matrix products.

All rates are **dense, not sparse**: makers print tensor rates "with sparsity", for matrices of which two in four
entries are zero, and a language model's are not; dense is half of that. Bytes are decimal: 1 TB/s is 1e12 bytes/s.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

Dtype = Literal["fp32", "fp16", "bf16", "fp8", "int8", "int4"]
Origin = Literal["data sheet", "measured", "custom"]

DTYPES: tuple[Dtype, ...] = ("fp32", "fp16", "bf16", "fp8", "int8", "int4")
BANDWIDTHS = (1e6, 1e15)
"""Allowed bytes a second."""
RATES = (1e5, 1e19)
"""Allowed FLOP a second."""
MEMORIES = (1e6, 1e15)
"""Allowed bytes of memory."""
MOST_DEVICES = 1024


@dataclass(frozen=True, slots=True)
class Accelerator:
    """A device that multiplies, and the memory that feeds it.

    Attributes:
        id: its name in links and lists.
        name: its name for people.
        bandwidth: of its memory, bytes/s.
        flops: FLOP/s of dense matrix products by dtype; at least ``bf16`` or ``fp32``. Half precision is listed once.
        memory: bytes it holds; ``None`` where that is not known.
        source: where the numbers are from, an address.
        note: what to know about them.
        origin: from a data sheet, measured on a machine, or typed in.
        devices: how many of them the numbers above are the sum of.

    Raises:
        ValueError: a number is out of range, or no rate is given.
    """

    id: str
    name: str
    bandwidth: float
    flops: Mapping[Dtype, float] = field(hash=False)
    memory: float | None = None
    source: str = ""
    note: str = ""
    origin: Origin = "data sheet"
    devices: int = 1

    def __post_init__(self) -> None:
        _check("bandwidth", self.bandwidth, BANDWIDTHS, "bytes/s")
        if not {"bf16", "fp32"} & set(self.flops):
            raise ValueError(f"flops must give a rate for bf16 or fp32, got {', '.join(self.flops) or 'none'}")
        for dtype, rate in self.flops.items():
            if dtype not in DTYPES:
                raise ValueError(f"a dtype of flops must be one of {', '.join(DTYPES)}, got {dtype!r}")
            _check(f"flops of {dtype}", rate, RATES, "FLOP/s")
        if self.memory is not None:
            _check("memory", self.memory, MEMORIES, "bytes")

    def rate(self, dtype: Dtype) -> float:
        """FLOP/s of the matrix products of a model whose weights are stored as ``dtype``.

        int4 weights are widened to 16 bits before they multiply. fp8 and int8 take the narrow rate where the device
        has one (activations as narrow as the weights), else the weights are widened too.

        Raises:
            ValueError: the dtype is none of :data:`DTYPES`.
        """
        if dtype not in DTYPES:
            raise ValueError(f"dtype must be one of {', '.join(DTYPES)}, got {dtype!r}")
        if dtype != "int4" and dtype in self.flops:
            return self.flops[dtype]
        # A device without a half-precision rate computes in fp32, one that lists none for fp32 in what it has.
        fallbacks: tuple[Dtype, ...] = ("bf16", "fp32")
        return next(self.flops[known] for known in fallbacks if known in self.flops)

    def ridge(self, dtype: Dtype = "bf16") -> float:
        """FLOP for every byte read at which arithmetic takes as long as reading."""
        return self.rate(dtype) / self.bandwidth

    def times(self, devices: int) -> Accelerator:
        """Several of it as one, each holding a slice of every matrix: bandwidth, rates and memory add.

        A lower bound on time: what the devices must tell each other is not counted.

        Raises:
            ValueError: devices is not in 1..1024.
        """
        if not 1 <= devices <= MOST_DEVICES:
            raise ValueError(f"devices must be in 1..{MOST_DEVICES}, got {devices}")
        if devices == 1:
            return self
        return replace(
            self,
            id=f"{self.id}-x{devices}",
            name=f"{devices} × {self.name}",
            bandwidth=devices * self.bandwidth,
            flops={dtype: devices * rate for dtype, rate in self.flops.items()},
            memory=None if self.memory is None else devices * self.memory,
            devices=devices * self.devices,
        )


def custom(name: str, bandwidth: float, flops: float, memory: float | None = None) -> Accelerator:
    """An accelerator typed in by a visitor: bytes/s, dense 16-bit FLOP/s, bytes.

    Raises:
        ValueError: a number is out of range; the message gives the value and what is allowed.
    """
    return Accelerator("custom", name, bandwidth, {"bf16": flops}, memory, note="typed in", origin="custom")


def measured(name: str, bandwidth: float, flops: float, dtype: Dtype, memory: float | None = None) -> Accelerator:
    """This machine, from a measured copy bandwidth (bytes/s) and a measured matrix rate (FLOP/s) at ``dtype``.

    The rate at any other dtype was not measured: it is taken to be the same.

    Raises:
        ValueError: a number is out of range; the message gives the value and what is allowed.
    """
    rates: dict[Dtype, float] = {"bf16": flops, "fp32": flops, dtype: flops}
    return Accelerator("this-machine", name, bandwidth, rates, memory, note="measured here", origin="measured")


def _check(name: str, value: float, allowed: tuple[float, float], unit: str) -> None:
    low, high = allowed
    if not (math.isfinite(value) and low <= value <= high):
        raise ValueError(f"{name} must be in {low:g}..{high:g} {unit}, got {value!r}")


def _sheet(
    id: str,
    name: str,
    tb_s: float,
    gb: float,
    source: str,
    note: str = "dense, not sparse",
    *,
    fp32: float,
    bf16: float,
    fp8: float | None = None,
    int8: float | None = None,
) -> Accelerator:
    """An accelerator from its data sheet, in TB/s, GB and dense TFLOP/s."""
    rates: dict[Dtype, float | None] = {"fp32": fp32, "bf16": bf16, "fp8": fp8, "int8": int8}
    flops = {dtype: rate * 1e12 for dtype, rate in rates.items() if rate is not None}
    return Accelerator(id, name, tb_s * 1e12, flops, gb * 1e9, source, note)


H100 = "https://resources.nvidia.com/en-us-tensor-core/nvidia-tensor-core-gpu-datasheet"
A100 = "https://www.nvidia.com/content/dam/en-zz/Solutions/Data-Center/a100/pdf/nvidia-a100-datasheet-us-nvidia-1758950-r4-web.pdf"

ACCELERATORS: dict[str, Accelerator] = {
    one.id: one
    for one in (
        _sheet("h100-sxm", "H100 SXM", 3.35, 80, H100, fp32=66.9, bf16=989.4, fp8=1978.9, int8=1978.9),
        _sheet("h100-pcie", "H100 PCIe", 2.0, 80, H100, fp32=51, bf16=756, fp8=1513, int8=1513),
        _sheet(
            "h200",
            "H200 SXM",
            4.8,
            141,
            "https://www.nvidia.com/en-us/data-center/h200/",
            fp32=66.9,
            bf16=989.4,
            fp8=1978.9,
            int8=1978.9,
        ),
        _sheet("a100-80", "A100 80 GB SXM", 2.039, 80, A100, fp32=19.5, bf16=312, int8=624),
        _sheet("a100-40", "A100 40 GB", 1.555, 40, A100, fp32=19.5, bf16=312, int8=624),
        _sheet(
            "b200",
            "B200",
            8.0,
            180,
            "https://www.nvidia.com/en-us/data-center/dgx-b200/",
            "dense, not sparse; an eighth of a DGX B200",
            fp32=75,
            bf16=2250,
            fp8=4500,
            int8=4500,
        ),
        _sheet(
            "l40s",
            "L40S",
            0.864,
            48,
            "https://www.nvidia.com/en-us/data-center/l40s/",
            fp32=91.6,
            bf16=362.05,
            fp8=733,
            int8=733,
        ),
        _sheet(
            "l4",
            "L4",
            0.3,
            24,
            "https://www.nvidia.com/en-us/data-center/l4/",
            fp32=30.3,
            bf16=121,
            fp8=242.5,
            int8=242.5,
        ),
        _sheet(
            "rtx-4090",
            "RTX 4090",
            1.008,
            24,
            "https://images.nvidia.com/aem-dam/Solutions/geforce/ada/nvidia-ada-gpu-architecture.pdf",
            "dense, not sparse; sums kept in fp32",
            fp32=82.6,
            bf16=165.2,
            fp8=330.3,
            int8=660.6,
        ),
        _sheet(
            "rtx-3090",
            "RTX 3090",
            0.936,
            24,
            "https://www.nvidia.com/content/PDF/nvidia-ampere-ga-102-gpu-architecture-whitepaper-v2.pdf",
            "dense, not sparse; sums kept in fp32",
            fp32=35.6,
            bf16=71,
            int8=284,
        ),
        _sheet(
            "mi300x",
            "MI300X",
            5.3,
            192,
            "https://www.amd.com/content/dam/amd/en/documents/instinct-tech-docs/data-sheets/amd-instinct-mi300x-data-sheet.pdf",
            fp32=163.4,
            bf16=1307.4,
            fp8=2614.9,
            int8=2614.9,
        ),
    )
}
"""By id, the default first."""
