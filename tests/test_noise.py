"""Numbers by key: the same everywhere, independent of each other, strictly inside (0, 1).

The statistical tests have fixed seeds, so that each of them passes always or never; at the bound used, a right
generator would fail one of them with odds of 1e-6.
"""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
import torch
from scipy import stats

from specviz.noise import STREAMS, RoundNoise, gumbel, uniform
from tests.libraries import ToArray, both_libraries, close, equal

ODDS = 1e-6
KEYS = [(0, 0, 0), (7, 3, 0), (7, 3, 3), (-1, 0, 0), (2**63 - 1, 2**40, 11), (-(2**63), 1, 1)]


def splitmix64(state: int, index: int) -> int:
    """The reference: Python integers, modulo 2**64."""
    word = 2**64
    z = (state + (index + 1) * 0x9E3779B97F4A7C15) % word
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % word
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % word
    return z ^ (z >> 31)


def reference(*key: int) -> float:
    state = 0
    for part in key:
        state = splitmix64(state, part % 2**64)
    return ((state >> 12) + 0.5) / 2**52


def uniforms_fill_the_square(u: np.ndarray, v: np.ndarray) -> bool:
    """Whether (u, v) is uniform on the unit square, by a chi-square of 16 x 16 cells."""
    observed, _, _ = np.histogram2d(u.ravel(), v.ravel(), bins=16, range=[[0, 1], [0, 1]])
    return bool(stats.chisquare(observed.ravel()).pvalue > ODDS)


def test_the_generator_is_the_published_one() -> None:
    assert [splitmix64(1234567, i) for i in range(3)] == [6457827717110365317, 3203168211198807973, 9817491932198370423]


@both_libraries
@pytest.mark.parametrize("stream", STREAMS)
def test_uniforms_are_equal_to_the_bit_to_those_of_exact_integers(array: ToArray, stream: str) -> None:
    seed, position, start = (array(np.array(part, dtype=np.int64)) for part in zip(*KEYS, strict=True))
    expected = [reference(s, STREAMS.index(stream), x, begin) for s, x, begin in KEYS]
    assert equal(uniform(seed, stream, position, start, like=seed), expected)


@both_libraries
def test_gumbel_values_are_those_of_exact_integers(array: ToArray) -> None:
    like = array([0.0])
    expected = -np.log(-np.log([reference(7, STREAMS.index("gumbel"), 3, 0, token) for token in range(6)]))
    assert close(gumbel(7, 3, 6, like=like), expected)
    assert type(gumbel(7, 3, 6, like=like)) is type(like)


def test_gumbel_noise_agrees_between_the_libraries_and_is_finite() -> None:
    positions = np.arange(20)
    noise = gumbel(5, positions, 49_152)
    assert close(noise, gumbel(5, torch.as_tensor(positions), 49_152, like=torch.zeros(1)))
    assert np.all(np.isfinite(noise))


@pytest.mark.gpu
def test_noise_is_the_same_on_the_gpu(cuda: str) -> None:
    seed, position, start = np.array(KEYS, dtype=np.int64).T
    like = torch.zeros(1, device=cuda)
    there = uniform(torch.as_tensor(seed, device=cuda), "draft", position, start, like=like)
    assert equal(there.cpu(), uniform(seed, "draft", position, start))
    assert close(gumbel(7, 3, 49_152, like=like).cpu(), gumbel(7, 3, 49_152))


@both_libraries
def test_integer_arguments_broadcast(array: ToArray) -> None:
    seeds, positions = array(np.arange(3)[:, None]), array(np.arange(4))
    grid = uniform(seeds, "draft", positions, like=seeds)
    assert tuple(grid.shape) == (3, 4)
    assert float(grid[2, 3]) == float(uniform(2, "draft", 3))
    assert tuple(gumbel(seeds, positions, 5, like=seeds).shape) == (3, 4, 5)
    assert uniform(1, "draft", 2, like=seeds).shape == ()


def test_single_numbers_come_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for seed, position, start in KEYS:
            uniform(seed, "accept", position, start)
            uniform(np.int64(seed), "accept", np.int64(position), start)
            gumbel(seed, position, 3)


def test_every_part_of_the_key_counts() -> None:
    keys = itertools.product(range(3), STREAMS, range(3), range(3))
    assert len({float(uniform(*key)) for key in keys}) == 3 * len(STREAMS) * 3 * 3


def test_uniforms_are_uniform_and_gumbels_are_gumbel() -> None:
    assert stats.kstest(uniform(3, "draft", np.arange(200_000)), "uniform").pvalue > ODDS
    assert stats.kstest(uniform(np.arange(200_000), "draft", 3), "uniform").pvalue > ODDS
    assert stats.kstest(gumbel(3, np.arange(5), 40_000).ravel(), "gumbel_r").pvalue > ODDS


def test_neighbouring_keys_are_independent() -> None:
    seeds, positions = np.arange(500)[:, None], np.arange(500)
    u = uniform(seeds, "accept", positions)
    assert uniforms_fill_the_square(u, uniform(seeds + 1, "accept", positions))
    assert uniforms_fill_the_square(u, uniform(seeds, "accept", positions + 1))
    assert uniforms_fill_the_square(u, uniform(seeds, "accept", positions, start=1))
    assert uniforms_fill_the_square(u, uniform(seeds, "accept", positions, start=positions))
    races = np.exp(-np.exp(-gumbel(np.arange(500), 9, 501)))
    assert uniforms_fill_the_square(races[:, 1:], races[:, :-1])
    assert uniforms_fill_the_square(races[1:], races[:-1])


@pytest.mark.parametrize(("one", "other"), list(itertools.combinations(STREAMS, 2)))
def test_no_stream_repeats_another(one: str, other: str) -> None:
    """A correction drawn with the numbers of the rejected draft would be biased."""
    seeds, positions = np.arange(500)[:, None], np.arange(500)
    assert uniforms_fill_the_square(uniform(seeds, one, positions), uniform(seeds, other, positions))


def test_a_round_reads_the_numbers_of_its_positions() -> None:
    noise = RoundNoise(seed=4, position=10)
    assert noise.draft(2) == uniform(4, "draft", 12)
    assert noise.residual(1) == uniform(4, "residual", 11)
    assert noise.target(0) == uniform(4, "target", 10)
    assert equal(noise.accept(3), uniform(4, "accept", np.array([10, 11, 12])))
    assert equal(noise.gumbel(1, 5), gumbel(4, 11, 5))
    # A place is what its position makes it, however the rounds fall.
    assert RoundNoise(seed=4, position=11).draft(1) == noise.draft(2)


def test_a_round_keyed_by_its_start_shares_no_coin_with_the_next() -> None:
    noise = RoundNoise(seed=4, position=10, by_round=True)
    assert noise.draft(2) == uniform(4, "draft", 12, start=10)
    assert equal(noise.accept(3), uniform(4, "accept", np.array([10, 11, 12]), start=10))
    assert RoundNoise(seed=4, position=11, by_round=True).draft(1) != noise.draft(2)


@both_libraries
def test_rounds_of_many_runs_are_those_of_each_run(array: ToArray) -> None:
    seeds, positions = array(np.array([3, 1, 4])), array(np.array([1, 5, 9]))
    for by_round in (False, True):
        many = RoundNoise(seeds, positions, by_round=by_round, like=seeds)
        singles = [RoundNoise(s, x, by_round=by_round) for s, x in ((3, 1), (1, 5), (4, 9))]
        assert equal(many.draft(2), [one.draft(2) for one in singles])
        assert equal(many.accept(2), [one.accept(2) for one in singles])
        assert close(many.gumbel(1, 4), [one.gumbel(1, 4) for one in singles])
        assert tuple(many.accept(0).shape) == (3, 0)


def test_bad_keys_are_named() -> None:
    with pytest.raises(ValueError, match="got 'bonus'"):
        uniform(0, "bonus", 0)
    with pytest.raises(ValueError, match=f"64 bits, got {2**63}"):
        uniform(2**63, "draft", 0)
