"""What theory predicts, against published tables, worked figures and slower ways to compute the same."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specviz.rules import RULES
from specviz.theory import (
    block_expected_kept,
    expected_tokens,
    gumbel_bounds,
    gumbel_match,
    measured_speedup,
    operations_factor,
    optimal_gamma,
    speedup,
)
from tests.libraries import ToArray, both_libraries, close, law

PAIRS = {
    "A": ([1 / 3, 2 / 3], [2 / 3, 1 / 3]),
    "B": ([0.5, 0.3, 0.2], [0.2, 0.3, 0.5]),
    "C": ([0.5, 0.5, 0], [0.5, 0, 0.5]),
    "D": ([0.6, 0.4], [0.8, 0.2]),
    "E": ([0.7, 0.2, 0.1], [0.1, 0.2, 0.7]),
    "F": ([0.25] * 4, [0.4, 0.3, 0.2, 0.1]),
    "G": ([1, 0, 0], [0, 0.5, 0.5]),
    "H": ([0.5, 0.3, 0.2], [0.5, 0.3, 0.2]),
}

alphas = st.floats(0, 1)
gammas = st.integers(0, 40)


# --- tokens, speed, operations ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("alpha", "tokens"),
    [
        (0, (1, 1, 1, 1, 1)),
        (0.25, (1, 1.25, 1.3125, 1.3320, 1.3333)),
        (0.5, (1, 1.5, 1.75, 1.9375, 1.9961)),
        (0.75, (1, 1.75, 2.3125, 3.0508, 3.6997)),
        (0.9, (1, 1.9, 2.71, 4.0951, 6.1258)),
        (0.99, (1, 1.99, 2.9701, 4.9010, 8.6483)),
        (1, (1, 2, 3, 5, 9)),
    ],
)
def test_expected_tokens_are_those_of_equation_1(alpha: float, tokens: tuple[float, ...]) -> None:
    assert [expected_tokens(alpha, gamma) for gamma in (0, 1, 2, 4, 8)] == pytest.approx(tokens, abs=5e-5)


@given(alpha=st.floats(0, 0.999), gamma=gammas)
def test_expected_tokens_are_the_closed_form(alpha: float, gamma: int) -> None:
    assert expected_tokens(alpha, gamma) == pytest.approx((1 - alpha ** (gamma + 1)) / (1 - alpha))


@pytest.mark.parametrize(
    ("alpha", "gamma", "operations", "factor"),
    [
        (0.6, 2, 1.53, 1.96),
        (0.7, 3, 1.58, 2.53),
        (0.8, 2, 1.23, 2.44),
        (0.8, 5, 1.63, 3.69),
        (0.9, 2, 1.11, 2.71),
        (0.9, 10, 1.60, 6.86),
    ],
)
def test_table_1_of_leviathan(alpha: float, gamma: int, operations: float, factor: float) -> None:
    assert operations_factor(alpha, gamma, 0) == pytest.approx(operations, abs=0.005)
    assert speedup(alpha, gamma, 0) == pytest.approx(factor, abs=0.005)


@pytest.mark.parametrize(
    ("gamma", "alpha", "c", "printed", "exact"),
    [
        (7, 0.75, 0.02, 3.2, 3.1575),
        (7, 0.80, 0.04, 3.3, 3.2509),
        (7, 0.82, 0.11, 2.5, 2.4971),
        (7, 0.62, 0.02, 2.3, 2.2580),
        (5, 0.68, 0.04, 2.4, 2.3467),
        (3, 0.71, 0.11, 2.0, 1.9338),
        (5, 0.65, 0.02, 2.4, 2.4015),
        (5, 0.73, 0.04, 2.6, 2.6193),
        (3, 0.74, 0.11, 2.0, 2.0247),
        (5, 0.53, 0.02, 1.9, 1.8914),
        (3, 0.55, 0.04, 1.8, 1.8026),
        (3, 0.56, 0.11, 1.6, 1.5408),
    ],
)
def test_tables_2_and_4_of_leviathan(gamma: int, alpha: float, c: float, printed: float, exact: float) -> None:
    assert speedup(alpha, gamma, c) == pytest.approx(printed, abs=0.1)
    assert speedup(alpha, gamma, c) == pytest.approx(exact, abs=5e-5)


def test_the_closing_token_counts() -> None:
    kept_only = (expected_tokens(0.8, 4) - 1) / (1 + 4 * 0.1)
    assert kept_only == pytest.approx(1.687, abs=5e-4)
    assert speedup(0.8, 4, 0.1) == pytest.approx(2.401, abs=5e-4)


def test_measured_seconds_can_say_that_speculation_loses() -> None:
    measured = measured_speedup(tokens_per_pass=1.9375, gamma=4, plain_s=0.020, verify_s=0.026, draft_s=0.012)
    assert measured == pytest.approx(0.523648649)
    assert speedup(0.5, 4, 0.6) == pytest.approx(0.569852941)


@given(alpha=alphas, gamma=gammas, c=st.floats(0, 2))
def test_measured_and_expected_speed_agree_where_a_wide_pass_costs_no_more(alpha: float, gamma: int, c: float) -> None:
    measured = measured_speedup(expected_tokens(alpha, gamma), gamma, plain_s=0.03, verify_s=0.03, draft_s=0.03 * c)
    assert measured == pytest.approx(speedup(alpha, gamma, c))


# --- the best gamma ---------------------------------------------------------------------------------------------------

COSTS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)


@pytest.mark.parametrize(
    ("alpha", "best"),
    [
        (0.30, "3 1.376  3 1.337  2 1.264  1 1.182  1 1.083  0 1.000  0 1.000"),
        (0.50, "5 1.875  4 1.794  3 1.630  2 1.458  1 1.250  1 1.154  0 1.000"),
        (0.60, "7 2.297  6 2.170  4 1.921  3 1.674  2 1.400  1 1.231  1 1.067"),
        (0.70, "9 2.972  8 2.758  6 2.353  4 1.981  3 1.583  2 1.369  1 1.133"),
        (0.80, "14 4.232  11 3.817  8 3.092  6 2.470  4 1.868  3 1.554  2 1.220"),
        (0.90, "24 7.486  19 6.365  13 4.674  10 3.431  7 2.373  5 1.874  3 1.376"),
        (0.95, "40 12.542  31 9.954  21 6.600  15 4.479  10 2.875  8 2.175  5 1.514"),
    ],
)
def test_the_best_gamma_and_its_speed(alpha: float, best: str) -> None:
    for c, pair in zip(COSTS, best.split("  "), strict=True):
        gamma, factor = pair.split()
        assert optimal_gamma(alpha, c) == int(gamma)
        assert speedup(alpha, int(gamma), c) == pytest.approx(float(factor), abs=5e-4)


@given(alpha=st.floats(0, 0.9), c=st.floats(0.01, 2))
def test_no_gamma_is_better_than_the_best(alpha: float, c: float) -> None:
    best = optimal_gamma(alpha, c)
    assert speedup(alpha, best, c) >= max(speedup(alpha, gamma, c) for gamma in range(120)) - 1e-9
    if alpha > c:
        assert speedup(alpha, best, c) >= (1 + alpha) / (1 + c) - 1e-12
    else:
        assert best == 0


@pytest.mark.parametrize("alpha", [0, 1e-9, 0.1, 0.25, 0.3, 0.5, 0.62, 0.75, 0.9, 0.97, 0.999, 1])
def test_the_first_step_down_is_the_last_word(alpha: float) -> None:
    for c in (1e-6, 0.01, 0.05, 0.1, 0.2, 0.25, 0.5, 0.75, 0.9, 1, 3):
        assert optimal_gamma(alpha, c) == max(range(41), key=lambda gamma: speedup(alpha, gamma, c))


def test_a_map_of_the_best_gamma_takes_no_time() -> None:
    started = time.process_time()
    for alpha, c in product(np.linspace(0, 1, 60).tolist(), np.linspace(0, 1, 60).tolist()):
        optimal_gamma(alpha, c)
    assert time.process_time() - started < 0.2  # 0.01 s on a quiet machine; the whole row of 41 each took 0.7 s


def test_the_limits_of_the_best_gamma() -> None:
    assert optimal_gamma(0, 0) == 0
    assert optimal_gamma(0, 0.1) == 0
    assert optimal_gamma(0.5, 0.5) == 0
    assert optimal_gamma(1, 1) == 0
    assert optimal_gamma(1, 0.5) == 40
    assert optimal_gamma(0.8, 0) == 40
    assert optimal_gamma(0.8, 0, max_gamma=7) == 7


@pytest.mark.parametrize(
    ("function", "arguments", "named"),
    [
        (expected_tokens, (1.1, 1), "alpha must be in .0, 1., got 1.1"),
        (expected_tokens, (math.nan, 1), "got nan"),
        (expected_tokens, (0.5, -1), "gamma must be at least 0, got -1"),
        (speedup, (0.5, 1, -0.1), "c must be a finite number of at least 0, got -0.1"),
        (operations_factor, (0.5, 1, math.inf), "got inf"),
        (optimal_gamma, (0.5, math.nan), "got nan"),
        (optimal_gamma, (0.5, 0.1, -3), "got -3"),
        (block_expected_kept, (*PAIRS["B"], -1), "got -1"),
        (measured_speedup, (2, 0, 1, 0, 1), "must take time"),
        (measured_speedup, (2, 1, 1, 1, -1), "draft -1 s"),
    ],
)
def test_what_makes_no_sense_is_named(
    function: Callable[..., object], arguments: tuple[object, ...], named: str
) -> None:
    with pytest.raises(ValueError, match=named):
        function(*arguments)


# --- Gumbel coupling --------------------------------------------------------------------------------------------------


@both_libraries
@pytest.mark.parametrize(
    ("pair", "upper", "match", "refined", "lower", "samples", "argmax"),
    [
        ("A", 0.666667, 0.666667, 0.666667, 0.500000, 0.444444, 0.333333),
        ("B", 0.700000, 0.630769, 0.630769, 0.538462, 0.290000, 0.200000),
        ("C", 0.500000, 0.333333, 0.333333, 0.333333, 0.250000, 0.500000),
        ("D", 0.800000, 0.800000, 0.800000, 0.666667, 0.560000, 0.600000),
        ("E", 0.400000, 0.325000, 0.325000, 0.250000, 0.180000, 0.100000),
        ("F", 0.800000, 0.762587, 0.724638, 0.666667, 0.250000, 0.250000),
        ("G", 0.000000, 0.000000, 0.000000, 0.000000, 0.000000, 0.000000),
        ("H", 1.000000, 1.000000, 1.000000, 1.000000, 0.380000, 0.500000),
    ],
)
def test_chances_to_agree(
    array: ToArray,
    pair: str,
    upper: float,
    match: float,
    refined: float,
    lower: float,
    samples: float,
    argmax: float,
) -> None:
    p, q = (array(np.array(law, dtype=float)) for law in PAIRS[pair])
    assert float(gumbel_match(p, q)) == pytest.approx(match, abs=5e-7)
    assert [float(bound) for bound in gumbel_bounds(p, q)] == pytest.approx([lower, refined, upper], abs=5e-7)
    token_match = RULES["token_match"]
    assert float(token_match.keep_probability(p, q)) == pytest.approx(samples, abs=5e-7)
    likeliest = array(np.eye(len(p))[np.argmax(np.asarray(q))])
    assert float(token_match.keep_probability(p, likeliest)) == pytest.approx(argmax, abs=5e-7)


def match_by_definition(p: np.ndarray, q: np.ndarray) -> float:
    """The sum over x, one race at a time."""
    return sum(
        1 / sum(max(p[y] / p[x], q[y] / q[x]) for y in range(len(p))) for x in range(len(p)) if p[x] > 0 and q[x] > 0
    )


@given(law(6), law(6))
def test_the_match_is_the_sum_of_races_and_lies_between_its_bounds(p: np.ndarray, q: np.ndarray) -> None:
    match, (lower, refined, upper) = float(gumbel_match(p, q)), gumbel_bounds(p, q)
    with np.errstate(over="ignore"):
        assert match == pytest.approx(match_by_definition(p, q), abs=1e-12)
    assert 0 <= lower <= refined + 1e-12
    assert refined <= match + 1e-12
    assert match <= upper + 1e-12


@both_libraries
def test_many_rows_match_as_each_alone(array: ToArray) -> None:
    rng = np.random.default_rng(4)
    p, q = rng.dirichlet(np.full(300, 0.1), 5), rng.dirichlet(np.full(300, 0.1), 5)
    q[:, 200:] = 0
    q /= q.sum(axis=1, keepdims=True)
    assert close(gumbel_match(array(p), array(q)), [match_by_definition(*rows) for rows in zip(p, q, strict=True)])
    assert all(tuple(bound.shape) == (5,) for bound in gumbel_bounds(array(p), array(q)))


# --- block verification -----------------------------------------------------------------------------------------------

KEPT = {
    "A": ((0.666667, 1.222222, 1.666667, 2.049383), (0.666667, 1.111111, 1.407407, 1.604938)),
    "B": ((0.700000, 1.250000, 1.695000, 2.063500), (0.630769, 1.028639, 1.279603, 1.437903)),
    "F": ((0.800000, 1.482500, 2.082250, 2.617206), (0.762587, 1.344127, 1.787602, 2.125790)),
}
BY_TOKEN = {
    "A": (0.666667, 1.111111, 1.407407, 1.604938),
    "B": (0.700000, 1.190000, 1.533000, 1.773100),
    "F": (0.800000, 1.440000, 1.952000, 2.361600),
}


@pytest.mark.parametrize("pair", KEPT)
def test_expected_kept_drafts_by_rule(pair: str) -> None:
    p, q = (np.array(law) for law in PAIRS[pair])
    block, gumbel = KEPT[pair]
    for gamma in (1, 2, 3, 4):
        alpha, match = float(gumbel_bounds(p, q).upper), float(gumbel_match(p, q))
        assert block_expected_kept(p, q, gamma) == pytest.approx(block[gamma - 1], abs=5e-7)
        assert expected_tokens(alpha, gamma) - 1 == pytest.approx(BY_TOKEN[pair][gamma - 1], abs=5e-7)
        assert expected_tokens(match, gamma) - 1 == pytest.approx(gumbel[gamma - 1], abs=5e-7)


def test_the_papers_own_example_of_a_block() -> None:
    assert block_expected_kept(*PAIRS["A"], 2) == pytest.approx(11 / 9, abs=1e-14)


@given(law(3), law(3), st.integers(0, 4))
def test_the_block_follows_every_draft_and_never_keeps_less(p: np.ndarray, q: np.ndarray, gamma: int) -> None:
    expected = 0.0
    for drafts in product(np.flatnonzero(q > 0), repeat=gamma):
        weight, chance = 1.0, math.prod(q[x] for x in drafts)
        for x in drafts:
            weight = min(1.0, weight * p[x] / q[x])
            expected += chance * weight
    kept = block_expected_kept(p, q, gamma)
    assert kept == pytest.approx(expected, abs=1e-12)
    assert kept >= expected_tokens(min(1.0, float(gumbel_bounds(p, q).upper)), gamma) - 1 - 1e-12


def test_a_long_block_is_computed_at_once() -> None:
    p, q = PAIRS["F"]
    assert block_expected_kept(p, q, 16) > expected_tokens(0.8, 16) - 1
    assert block_expected_kept(p, p, 16) == 16
