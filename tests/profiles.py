"""Profiles made by hand, with round numbers, for tests of what is derived from them."""

from __future__ import annotations

from typing import Any

from specviz.hardware.measured import Profile, Rate, Read, Spread
from specviz.hardware.shapes import ModelShape


def shape(name: str, layers: int) -> ModelShape:
    """A model whose head is 1,000 parameters and whose layers are 1,000 each; a token leaves 32 numbers a layer."""
    return ModelShape(name, name, layers, 10, 2, 1, 16, 100, 100, True, 1_000, 0)


def steady(value: float, count: int = 5) -> Spread:
    """A measurement that came out at 0.9 to 1.25 times ``value``."""
    return Spread(value, 0.9 * value, 1.25 * value, count)


def profile(**changes: Any) -> Profile:
    """Behind 10 tokens in fp32, a target of 9 layers and a drafter of 1; reads of 1, 2, 3 and 5 rows.

    The target reads 4 x 10,000 bytes of weights and 9 x 32 x 4 x 11 of cache: 52,672 bytes with 1 row.
    """
    times = {1: (1.0, 0.2), 2: (1.05, 0.3), 3: (1.08, 0.4), 5: (1.8, 0.5)}
    values: dict[str, Any] = {
        "created": "2030-01-02T03:04:05+00:00",
        "pair": "big with small",
        "device": "a machine",
        "device_type": "cpu",
        "dtype": "fp32",
        "threads": 2,
        "versions": {"torch": "9.9"},
        "context": 10,
        "repeats": 5,
        "target": shape("big", 9),
        "drafter": shape("small", 1),
        "copies": (Rate("small copy", steady(4e9)), Rate("large copy", steady(1e9))),
        "matrices": (Rate("square", steady(4e9)), Rate("own", steady(2e9))),
        "reads": tuple(Read(w, steady(t * 1e-4), steady(d * 1e-4)) for w, (t, d) in times.items()),
        "prefill": {"target": 0.5, "drafter": 0.1},
    }
    return Profile(**(values | changes))
