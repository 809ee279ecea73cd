"""A machine as it was measured, beside what the cost model says about it: shares, ratios, and the band of the roofline.

A :class:`Profile` holds medians and quartiles only. What is derived from it here divides a modelled number (bytes,
FLOP) by a measured one (seconds), and says so.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

from specviz.hardware import accelerators, cost
from specviz.hardware.accelerators import Accelerator, Dtype
from specviz.hardware.cost import Bound, PassCost
from specviz.hardware.shapes import ModelShape

SCHEMA_VERSION = 1
KIND = "profile"
MOST_WIDTHS, MOST_RATES, MOST_TEXT = 64, 16, 200
WIDEST, LONGEST_CONTEXT, MOST_REPEATS = 1024, 1_000_000, 10_000
MOST_PARAMS = 10**14
LARGEST = {
    "layers": 10_000,
    "windowed_layers": 10_000,
    "hidden": 10**6,
    "heads": 10**5,
    "kv_heads": 10**5,
    "head_dim": 10**5,
    "head_rows": 10**8,
    "input_rows": 10**8,
    "window": 10**9,
    "experts": 10**5,
    "experts_per_token": 10**5,
}
"""Sizes far beyond any model's; those that are not here count parameters."""
SECONDS = (1e-9, 1e5)
FLAT = 1.1
"""A read counts as no dearer than a read of one row up to this ratio."""

Model = Literal["target", "drafter"]
MODELS: tuple[Model, ...] = ("target", "drafter")


@dataclass(frozen=True, slots=True)
class Spread:
    """Repeats of one measurement: the median, the quartiles around it, and how many there were."""

    median: float
    low: float
    high: float
    count: int

    def __post_init__(self) -> None:
        if not (0 < self.low <= self.median <= self.high < math.inf):
            raise ValueError(f"expected 0 < low <= median <= high, got {self.low!r}, {self.median!r}, {self.high!r}")
        if self.count < 1:
            raise ValueError(f"count must be at least 1, got {self.count}")

    @classmethod
    def of(cls, samples: Sequence[float]) -> Spread | None:
        """The spread of some positive numbers; None of none."""
        if not samples:
            return None
        if len(samples) == 1:
            return cls(samples[0], samples[0], samples[0], 1)
        low, median, high = statistics.quantiles(samples, n=4, method="inclusive")
        # Interpolating between equal numbers rounds.
        low, high = min(max(low, min(samples)), median), max(min(high, max(samples)), median)
        return cls(median, low, high, len(samples))

    def per(self, amount: float) -> Spread:
        """``amount`` divided by it: the rate that seconds amount to."""
        return Spread(amount / self.median, amount / self.high, amount / self.low, self.count)


@dataclass(frozen=True, slots=True)
class Rate:
    """How fast one copy (bytes a second, read and written) or one product of matrices (FLOP a second) was."""

    name: str
    per_second: Spread


@dataclass(frozen=True, slots=True)
class Read:
    """Seconds of a read of ``width`` rows behind the context; None where it was not measured."""

    width: int
    target: Spread | None = None
    drafter: Spread | None = None


@dataclass(frozen=True, slots=True)
class Profile:
    """What was measured on one machine.

    Attributes:
        created: when, ISO 8601.
        pair: whose models.
        device: its name for people.
        device_type: cpu (host clock) or cuda (the device's own events).
        dtype: of weights, cache and matrices.
        threads: of the processor that worked; None on a GPU.
        versions: of the programs.
        context: tokens in the cache before every read.
        repeats: how many samples of each were asked for.
        target: the target's shape.
        drafter: the drafter's; None without one.
        copies: copies by size, the largest last.
        matrices: products of matrices.
        reads: by width, ascending.
        prefill: seconds that reading the context took, by model; measured once.
    """

    created: str
    pair: str
    device: str
    device_type: Literal["cpu", "cuda"]
    dtype: Dtype
    threads: int | None
    versions: Mapping[str, str] = field(hash=False)
    context: int
    repeats: int
    target: ModelShape
    drafter: ModelShape | None
    copies: tuple[Rate, ...]
    matrices: tuple[Rate, ...]
    reads: tuple[Read, ...]
    prefill: Mapping[Model, float] = field(hash=False)

    @property
    def bandwidth(self) -> Spread | None:
        """Bytes a second of the largest copy: it fits into no cache."""
        return self.copies[-1].per_second if self.copies else None

    @property
    def rate(self) -> Spread | None:
        """FLOP a second of the fastest product."""
        return max((one.per_second for one in self.matrices), key=lambda rate: rate.median, default=None)

    @property
    def complete(self) -> bool:
        """Whether everything was sampled as often as asked."""
        models = [model for model in MODELS if self.shape(model) is not None]
        taken = [one.per_second for one in (*self.copies, *self.matrices)]
        times = [self.seconds(model, read.width) for model in models for read in self.reads]
        return bool(self.copies and self.matrices and self.reads) and all(
            one is not None and one.count >= self.repeats for one in (*taken, *times)
        )

    @property
    def accelerator(self) -> Accelerator | None:
        """This machine, to price anything on; None before bandwidth and rate are known."""
        return _machine(self, "median", "median")

    def shape(self, model: Model) -> ModelShape | None:
        """The shape of one of the two models."""
        return self.target if model == "target" else self.drafter

    def seconds(self, model: Model, width: int) -> Spread | None:
        """How long a read of ``width`` rows took; None where it was not measured."""
        read = next((one for one in self.reads if one.width == width), None)
        return None if read is None else read.target if model == "target" else read.drafter

    def widths(self, model: Model) -> tuple[int, ...]:
        """The widths that were measured."""
        return tuple(read.width for read in self.reads if self.seconds(model, read.width) is not None)


# --- beside the model -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Roof:
    """What measured bandwidth and rate allow a read of ``width`` rows: seconds, the quartiles' best and worst, and
    which of the two binds."""

    width: int
    seconds: float
    best: float
    worst: float
    bound: Bound


def modelled(profile: Profile, model: Model, width: int, machine: Accelerator | None = None) -> PassCost | None:
    """The modelled read of ``width`` rows at the profile's context and dtype, on the machine as it was measured."""
    shape, machine = profile.shape(model), machine or profile.accelerator
    if shape is None or machine is None:
        return None
    return cost.pass_cost(shape, machine, width, profile.context, 1, profile.dtype, profile.dtype)


def roof(profile: Profile, model: Model, width: int) -> Roof | None:
    """The roofline of one read, with the spread of what was measured; None before bandwidth and rate are known."""
    middle = modelled(profile, model, width)
    best = modelled(profile, model, width, _machine(profile, "high", "high"))
    worst = modelled(profile, model, width, _machine(profile, "low", "low"))
    if middle is None or best is None or worst is None:
        return None
    return Roof(width, middle.seconds, best.seconds, worst.seconds, middle.bound)


def bandwidth_share(profile: Profile, model: Model, width: int) -> Spread | None:
    """Modelled bytes / measured seconds / measured bandwidth, of a read (MBU); quartiles are those of the seconds."""
    seconds, read, machine = profile.seconds(model, width), modelled(profile, model, width), profile.accelerator
    if seconds is None or read is None or machine is None:
        return None
    return seconds.per(read.bytes / machine.bandwidth)


def growth(profile: Profile, width: int, model: Model = "target") -> float | None:
    """t(width) / t(1), both measured."""
    wide, one = profile.seconds(model, width), profile.seconds(model, 1)
    return None if wide is None or one is None else wide.median / one.median


def measured_c(profile: Profile) -> float | None:
    """A drafter's read of one row over the target's, both measured."""
    drafter, target = profile.seconds("drafter", 1), profile.seconds("target", 1)
    return None if drafter is None or target is None else drafter.median / target.median


def byte_c(profile: Profile) -> float | None:
    """Bytes that the drafter's read of one row moves over the target's: c where nothing but memory takes time."""
    if profile.drafter is None:
        return None
    drafter, target = (
        cost.weight_bytes(shape, profile.dtype) + cost.kv_read_bytes(shape, profile.context, profile.dtype)
        for shape in (profile.drafter, profile.target)
    )
    return drafter / target


def layer_c(profile: Profile) -> float | None:
    """The drafter's layers over the target's: c where nothing but starting the layers takes time."""
    return None if profile.drafter is None else profile.drafter.layers / profile.target.layers


def flat_until(profile: Profile) -> int | None:
    """The widest measured read up to which every one costs at most :data:`FLAT` reads of one row."""
    flat = None
    for width in profile.widths("target"):
        ratio = growth(profile, width)
        if ratio is None or ratio > FLAT:
            break
        flat = width
    return flat


def round_price(profile: Profile, gamma: int) -> float | None:
    """A round in plain reads, measured: t(gamma + 1) / t(1) + gamma c. So many tokens a round must bring to pay."""
    verify, c = growth(profile, gamma + 1), measured_c(profile) if gamma else 0.0
    return None if verify is None or c is None else verify + gamma * c


def _machine(profile: Profile, bandwidth: str, rate: str) -> Accelerator | None:
    if profile.bandwidth is None or profile.rate is None:
        return None
    return accelerators.measured(
        profile.device, getattr(profile.bandwidth, bandwidth), getattr(profile.rate, rate), profile.dtype
    )


# --- as a file --------------------------------------------------------------------------------------------------------


def dump(profile: Profile) -> str:
    """The profile as JSON."""
    return json.dumps({"kind": KIND, "schema_version": SCHEMA_VERSION} | asdict(profile), indent=1) + "\n"


def load(text: str) -> Profile:
    """The profile in a JSON text. Unknown keys are left alone.

    Raises:
        ValueError: it is no profile, or one with a value that cannot be; names the key.
    """
    try:
        said = json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        raise ValueError("the file is no JSON") from None
    if not isinstance(said, dict) or said.get("kind") != KIND:
        raise ValueError('the file is no profile: its "kind" is not "profile"')
    version = said.get("schema_version")
    if version != SCHEMA_VERSION:
        raise ValueError(f"schema_version must be {SCHEMA_VERSION}, got {version!r:.40}")
    versions, prefill = _object(said, "versions"), _object(said, "prefill")
    reads = tuple(
        Read(_whole(one, "width", 1, WIDEST), *(_spread(one, model, SECONDS) for model in MODELS))
        for one in _list(said, "reads", MOST_WIDTHS)
    )
    if [read.width for read in reads] != sorted({read.width for read in reads}):
        raise ValueError("the widths of reads must ascend")
    return Profile(
        created=_text(said, "created"),
        pair=_text(said, "pair"),
        device=_text(said, "device"),
        device_type=_one_of(said, "device_type", ("cpu", "cuda")),
        dtype=_one_of(said, "dtype", tuple(cost.KV_BYTES)),
        threads=None if said.get("threads") is None else _whole(said, "threads", 1, 4096),
        versions={name[:MOST_TEXT]: _text(versions, name) for name in list(versions)[:MOST_RATES]},
        context=_whole(said, "context", 1, LONGEST_CONTEXT),
        repeats=_whole(said, "repeats", 1, MOST_REPEATS),
        target=_shape(_object(said, "target")),
        drafter=None if said.get("drafter") is None else _shape(_object(said, "drafter")),
        copies=_rates(said, "copies", accelerators.BANDWIDTHS),
        matrices=_rates(said, "matrices", accelerators.RATES),
        reads=reads,
        prefill={model: _number(prefill, model, SECONDS) for model in MODELS if prefill.get(model) is not None},
    )


def _wrong(record: Mapping[str, Any], key: str, wanted: str) -> ValueError:
    return ValueError(f"{key} must be {wanted}, got {record.get(key)!r:.60}")


def _text(record: Mapping[str, Any], key: str) -> str:
    value = record.get(key)
    if not isinstance(value, str) or len(value) > MOST_TEXT or any("\ud800" <= sign <= "\udfff" for sign in value):
        raise _wrong(record, key, f"a text of at most {MOST_TEXT} characters")
    return value


def _one_of(record: Mapping[str, Any], key: str, allowed: tuple[Any, ...]) -> Any:
    value = record.get(key)
    if not isinstance(value, str) or value not in allowed:
        raise _wrong(record, key, f"one of {', '.join(allowed)}")
    return value


def _whole(record: Mapping[str, Any], key: str, low: int, high: int) -> int:
    value = record.get(key)
    if type(value) is not int or not low <= value <= high:
        raise _wrong(record, key, f"a whole number in {low}..{high}")
    return value


def _number(record: Mapping[str, Any], key: str, allowed: tuple[float, float]) -> float:
    value: Any = record.get(key)
    if type(value) not in (int, float) or not allowed[0] <= value <= allowed[1]:
        raise _wrong(record, key, f"a number in {allowed[0]:g}..{allowed[1]:g}")
    return float(value)


def _object(record: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = record.get(key)
    if not isinstance(value, dict):
        raise _wrong(record, key, "an object")
    return value


def _list(record: Mapping[str, Any], key: str, most: int) -> list[dict[str, Any]]:
    value = record.get(key)
    if not isinstance(value, list) or len(value) > most or not all(isinstance(one, dict) for one in value):
        raise ValueError(f"{key} must be a list of at most {most} objects")
    return value


def _spread(record: Mapping[str, Any], key: str, allowed: tuple[float, float]) -> Spread | None:
    return None if record.get(key) is None else _full_spread(_object(record, key), key, allowed)


def _full_spread(record: dict[str, Any], key: str, allowed: tuple[float, float]) -> Spread:
    median, low, high = (_number(record, name, allowed) for name in ("median", "low", "high"))
    if not low <= median <= high:
        raise ValueError(f"{key} must have low <= median <= high, got {low:g}, {median:g}, {high:g}")
    return Spread(median, low, high, _whole(record, "count", 1, MOST_REPEATS))


def _rates(record: Mapping[str, Any], key: str, allowed: tuple[float, float]) -> tuple[Rate, ...]:
    return tuple(
        Rate(_text(one, "name"), _full_spread(_object(one, "per_second"), key, allowed))
        for one in _list(record, key, MOST_RATES)
    )


def _shape(record: dict[str, Any]) -> ModelShape:
    """A shape whose sizes are whole numbers; ModelShape itself refuses those that do not fit together."""
    values: dict[str, Any] = {}
    for one in fields(ModelShape):
        if one.name in ("id", "name"):
            values[one.name] = _text(record, one.name)
        elif one.name == "tied":
            values[one.name] = record.get("tied") is True
        elif one.name != "window" or record.get("window") is not None:
            values[one.name] = _whole(record, one.name, 0, LARGEST.get(one.name, MOST_PARAMS))
    shape = ModelShape(**values)
    if shape.params > MOST_PARAMS:
        raise ValueError(f"a model of a file may have {MOST_PARAMS:,} parameters, got {shape.params:,}")
    return shape
