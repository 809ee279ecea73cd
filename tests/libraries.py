"""What tests of the mathematics share: both array libraries, comparison of arrays, random laws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

ToArray = Callable[[Any], Any]

both_libraries = pytest.mark.parametrize(
    "array", [np.asarray, lambda values: torch.as_tensor(np.asarray(values))], ids=["numpy", "torch"]
)
"""Runs a test with ``array`` turning lists and NumPy arrays into arrays of one library, then of the other."""


def close(actual: Any, expected: Any, tolerance: float = 1e-12) -> bool:
    """Whether arrays of any library have one shape and agree."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    return actual.shape == expected.shape and np.allclose(actual, expected, rtol=0, atol=tolerance)


def equal(actual: Any, expected: Any) -> bool:
    """Whether arrays of any library have one shape and are the same to the bit."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    return actual.shape == expected.shape and bool(np.all(actual == expected))


def law(vocab: int) -> st.SearchStrategy[np.ndarray[Any, Any]]:
    """Laws over a few tokens, zeros and tiny probabilities among them."""
    weights = st.one_of(st.just(0.0), st.floats(1e-300, 1e-290), st.floats(1e-6, 1.0))
    return arrays(np.float64, vocab, elements=weights).filter(lambda w: w.max() > 1e-6).map(lambda w: w / w.sum())
