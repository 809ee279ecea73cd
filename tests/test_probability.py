"""Laws over a vocabulary, on NumPy and torch."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import softmax

from specviz.probability import (
    entropy,
    inverse_cdf,
    is_greedy,
    log,
    overlap,
    residual,
    top_n,
    total_variation,
    warp,
)
from tests.libraries import ToArray, both_libraries, close, equal, law

RNG = np.random.default_rng(20)
WIDE = RNG.normal(size=(3, 5000)) * 3
"""Rows wider than what top-p looks at first."""


def naive_warp(logits: np.ndarray, temperature: float, top_k: int, top_p: float) -> np.ndarray:
    """One row, token by token."""
    p = softmax(logits / temperature)
    order = np.argsort(-p, kind="stable")
    if top_k:
        p = np.where(logits >= logits[order[min(top_k, p.size) - 1]], p, 0)
        p = p / p.sum()
    kept, before = np.zeros_like(p), 0.0
    for token in order:
        if before < top_p:
            kept[token] = p[token]
        before += p[token]
    return kept / kept.sum()


def test_the_mathematics_does_not_need_torch() -> None:
    names = "specviz.probability, specviz.noise, specviz.rules, specviz.theory"
    subprocess.run([sys.executable, "-c", f"import sys, {names}; assert 'torch' not in sys.modules"], check=True)


# --- warp -------------------------------------------------------------------------------------------------------------


def test_only_temperature_zero_is_greedy() -> None:
    assert is_greedy(0.0)
    assert not any(is_greedy(t) for t in (5e-324, 1e-8, 0.7, 1.0))


@both_libraries
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_warp_without_filters_is_the_softmax(array: ToArray, dtype: str) -> None:
    logits = WIDE.astype(dtype)
    p = warp(array(logits), 0.7)
    assert str(p.dtype).endswith("float64")
    assert close(p, softmax(logits.astype(np.float64) / 0.7, axis=-1))


@both_libraries
@pytest.mark.parametrize("temperature", [5e-324, 1e-310, 1e-300, 1e-201])
@pytest.mark.filterwarnings("error")
def test_the_coldest_temperatures_divide_nothing_to_infinity(array: ToArray, temperature: float) -> None:
    far = np.array([3e38, 1.0, -3e38, -math.inf, 3e38], dtype=np.float32)
    for cut in ({}, {"top_k": 2}, {"top_p": 0.9}):
        assert np.asarray(warp(array(far), temperature, **cut)).tolist() == [0.5, 0, 0, 0, 0.5]
    near = array(np.array([0.0, -temperature, -2 * temperature]))
    assert close(warp(near, temperature), softmax([0.0, -1.0, -2.0]))


@both_libraries
@pytest.mark.parametrize("temperature", [0.3, 1.0, 1.7])
@pytest.mark.parametrize(("top_k", "top_p"), [(0, 0.55), (40, 1.0), (40, 0.55), (3000, 0.97), (9999, 0.999)])
def test_filters_agree_with_a_token_by_token_reading(
    array: ToArray, temperature: float, top_k: int, top_p: float
) -> None:
    expected = [naive_warp(row, temperature, top_k, top_p) for row in WIDE]
    assert close(warp(array(WIDE), temperature, top_k, top_p), expected)


@both_libraries
def test_top_p_sorts_the_whole_row_where_the_likeliest_thousand_do_not_reach_it(array: ToArray) -> None:
    nearly_flat = WIDE * 1e-3
    p = warp(array(nearly_flat), 1.0, top_p=0.9)
    assert np.count_nonzero(np.asarray(p)[0]) > 4000
    assert close(p, [naive_warp(row, 1.0, 0, 0.9) for row in nearly_flat])


@both_libraries
def test_the_order_is_temperature_then_top_k_then_top_p(array: ToArray) -> None:
    logits = np.log([0.4, 0.3, 0.2, 0.1])
    # Of (4/7, 3/7) the first token alone is below 0.6; of the whole law it would not be.
    assert close(warp(array(logits), 1.0, top_k=2, top_p=0.57), [1, 0, 0, 0])
    assert close(warp(array(logits), 1.0, top_k=0, top_p=0.57), [4 / 7, 3 / 7, 0, 0])
    # Temperature 1/2 squares the law first: (16, 9, 4, 1) / 30.
    assert close(warp(array(logits), 0.5, top_p=0.53), [1, 0, 0, 0])


@both_libraries
def test_the_token_that_crosses_the_line_of_top_p_stays(array: ToArray) -> None:
    logits = array(np.log([0.5, 0.3, 0.2]))
    assert close(warp(logits, 1.0, top_p=0.79), [0.625, 0.375, 0])
    assert close(warp(logits, 1.0, top_p=0.81), [0.5, 0.3, 0.2])
    assert close(warp(logits, 1.0, top_p=1e-9), [1, 0, 0])


@both_libraries
def test_ties_with_the_kth_survive_top_k_and_low_ids_survive_top_p(array: ToArray) -> None:
    assert close(warp(array([0.0, 1.0, 0.0, 0.0]), 1.0, top_k=2), softmax([0.0, 1.0, 0.0, 0.0]))
    # Two quarters are exactly one half: the mass before the third token is not below the line.
    assert close(warp(array([0.0, 0.0, 0.0, 0.0]), 1.0, top_p=0.5), [0.5, 0.5, 0, 0])


@both_libraries
@pytest.mark.parametrize(("logits", "chosen"), [([1.0, 1.0, 0.0], 0), ([0.0, 2.0, 2.0], 1), ([5.0, 5.0, 5.0], 0)])
def test_temperature_zero_takes_the_lowest_id_of_an_exact_tie(array: ToArray, logits: list[float], chosen: int) -> None:
    assert equal(warp(array(logits), 0.0, top_k=2, top_p=0.5), np.eye(3)[chosen])


@both_libraries
@pytest.mark.parametrize("temperature", [0.0, 1e-200, 1e-8, 1e-6, 1e-5])
def test_tiny_temperatures_do_not_overflow(array: ToArray, temperature: float) -> None:
    assert equal(warp(array([1.0, 1.5, -2.0]), temperature), [0, 1, 0])
    assert equal(warp(array([1.2, 1.0, 0.5]), temperature, top_p=0.9), [1, 0, 0])
    assert equal(warp(array([-3e38, 3e38, 1.0]), temperature), [0, 1, 0])


@both_libraries
@pytest.mark.parametrize("settings", [(0.0, 0, 1.0), (1.0, 0, 1.0), (0.7, 4, 1.0), (1.3, 0, 0.999), (1e-7, 2, 0.3)])
def test_what_the_logits_rule_out_has_probability_exactly_zero(
    array: ToArray, settings: tuple[float, int, float]
) -> None:
    logits = [[-math.inf, 0.5, -math.inf, 0.1], [2.0, -math.inf, -math.inf, -math.inf]]
    p = np.asarray(warp(array(logits), *settings))
    assert np.all(p[np.isneginf(logits)] == 0)
    assert close(p.sum(axis=-1), [1, 1])


@both_libraries
def test_warp_leaves_the_logits_as_they_were(array: ToArray) -> None:
    logits = array(WIDE.copy())
    warp(logits, 0.5, 10, 0.9)
    assert equal(logits, WIDE)


def test_rounded_logits_flip_a_near_tie() -> None:
    logits = torch.tensor([1.0, 1.0009765625, 0.0])
    assert equal(warp(logits, 0.0), [0, 1, 0])
    assert equal(warp(logits.bfloat16(), 0.0), [1, 0, 0])
    values, _ = top_n(logits, 2)
    assert float(values[0] - values[1]) == pytest.approx(0.000976562, abs=1e-8)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ((-1.0, 0, 1.0), "-1.0"),
        ((math.nan, 0, 1.0), "nan"),
        ((math.inf, 0, 1.0), "inf"),
        ((1.0, -2, 1.0), "-2"),
        ((1.0, 0, 0.0), "0.0"),
        ((1.0, 0, 1.5), "1.5"),
        ((1.0, 0, math.nan), "nan"),
    ],
)
def test_a_setting_out_of_range_is_named(settings: tuple[float, int, float], named: str) -> None:
    with pytest.raises(ValueError, match=f"got {named}"):
        warp(np.zeros(3), *settings)


@both_libraries
@pytest.mark.parametrize("row", [[-math.inf, -math.inf], [math.nan, 0.0], [math.inf, 0.0]])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_row_without_a_finite_maximum_is_refused(array: ToArray, row: list[float], temperature: float) -> None:
    with pytest.raises(ValueError, match="finite largest value"):
        warp(array([[0.0, 1.0], row]), temperature)


# --- two laws ---------------------------------------------------------------------------------------------------------


@given(law(5), law(5))
def test_overlap_and_total_variation_add_up_to_one(p: np.ndarray, q: np.ndarray) -> None:
    assert 0 <= overlap(p, q) <= 1 + 1e-12
    assert overlap(p, q) + total_variation(p, q) == pytest.approx(1, abs=1e-12)
    assert overlap(p, p) == pytest.approx(1, abs=1e-12)


@given(law(5), law(5))
def test_the_residual_refills_exactly_what_overlap_leaves_open(p: np.ndarray, q: np.ndarray) -> None:
    gap = residual(p, q)
    assert gap.sum() == pytest.approx(1, abs=1e-12)
    assert close(np.minimum(p, q) + total_variation(p, q) * gap, p)
    if total_variation(p, q) > 1e-12:
        assert np.all(gap[q >= p] == 0)


@both_libraries
def test_without_a_gap_the_residual_is_p(array: ToArray) -> None:
    p = array([[0.5, 0.3, 0.2], [0.6, 0.4, 0.0]])
    q = array([[0.5, 0.3, 0.2], [0.8, 0.2, 0.0]])
    assert close(residual(p, q), [[0.5, 0.3, 0.2], [0, 1, 0]])


@both_libraries
def test_entropy_is_that_of_the_textbook(array: ToArray) -> None:
    laws = array([[0.25, 0.25, 0.25, 0.25], [1.0, 0.0, 0.0, 0.0], [0.5, 0.5, 0.0, 0.0]])
    assert close(entropy(laws), [math.log(4), 0, math.log(2)])
    assert equal(log(array([0.0, 1.0])), [-math.inf, 0])


# --- drawing and listing ----------------------------------------------------------------------------------------------


@both_libraries
def test_a_uniform_selects_the_token_whose_share_it_falls_into(array: ToArray) -> None:
    p = array([0.0, 0.25, 0.0, 0.75, 0.0])
    u = array([0.0, 0.2499, 0.2501, 1 - 2.0**-53, 1.0])
    assert equal(inverse_cdf(p, u), [1, 1, 3, 3, 3])
    assert equal(inverse_cdf(p * 7, u), [1, 1, 3, 3, 3])
    assert equal(inverse_cdf(p[None], u), [1, 1, 3, 3, 3])


@both_libraries
def test_probability_zero_is_never_drawn(array: ToArray) -> None:
    u = (np.arange(100_000) + 0.5) / 100_000
    ids = np.asarray(inverse_cdf(array([0, 0.25, 0, 0.75]), array(u)))
    assert np.bincount(ids).tolist() == [0, 25_000, 0, 75_000]


@both_libraries
def test_one_law_for_all_draws_as_the_same_law_for_each(array: ToArray) -> None:
    p = RNG.dirichlet(np.full(50, 0.2))
    u = RNG.random(400)
    assert equal(inverse_cdf(array(p), array(u)), inverse_cdf(array(np.tile(p, (400, 1))), array(u)))


@both_libraries
def test_a_law_without_mass_cannot_be_drawn_from(array: ToArray) -> None:
    with pytest.raises(ValueError, match="without mass"):
        inverse_cdf(array([[0.5, 0.5], [0.0, 0.0]]), array([0.1, 0.1]))


@both_libraries
@given(rows=arrays(np.float64, (2, 7), elements=st.sampled_from([-math.inf, -1.0, 0.0, 2.0])), n=st.integers(1, 7))
def test_top_n_lists_by_value_then_by_id(array: ToArray, rows: np.ndarray, n: int) -> None:
    values, ids = top_n(array(rows), n)
    order = np.argsort(-rows, axis=-1, kind="stable")[:, :n]
    assert equal(ids, order)
    assert equal(values, np.take_along_axis(rows, order, axis=-1))


def test_top_n_refuses_more_than_there_is() -> None:
    with pytest.raises(ValueError, match=r"1\.\.3, got 4"):
        top_n(np.zeros(3), 4)


def test_numpy_and_torch_agree() -> None:
    p, q = warp(WIDE, 0.8), warp(WIDE[::-1].copy(), 1.2)
    other_p, other_q = torch.as_tensor(p), torch.as_tensor(q)
    for function in (overlap, total_variation, residual):
        assert close(function(p, q), function(other_p, other_q))
    assert close(entropy(p), entropy(other_p))
    for settings in ((0.8, 0, 1.0), (1.0, 50, 1.0), (1.0, 0, 0.9), (0.0, 0, 1.0)):
        assert close(warp(WIDE, *settings), warp(torch.as_tensor(WIDE), *settings))
    u = RNG.random(3)
    assert equal(inverse_cdf(p, u), inverse_cdf(other_p, torch.as_tensor(u)))
