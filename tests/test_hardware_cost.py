from __future__ import annotations

import dataclasses
import json
import math
import subprocess
import sys
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specviz import theory
from specviz.hardware import cost
from specviz.hardware.accelerators import ACCELERATORS, DTYPES, Accelerator
from specviz.hardware.cost import PassCost, pass_cost, round_price
from specviz.hardware.shapes import PRICED_PAIRS, SHAPES, ModelShape

H100 = ACCELERATORS["h100-sxm"]
LLAMA_8B, LLAMA_1B, LLAMA_70B = SHAPES["llama-3.1-8b"], SHAPES["llama-3.2-1b"], SHAPES["llama-3.1-70b"]
GEMMA, MIXTURE = SHAPES["gemma-2-9b"], SHAPES["qwen3-30b-a3b"]

TINY = ModelShape(
    "tiny", "tiny", layers=2, hidden=8, heads=4, kv_heads=2, head_dim=3, head_rows=10, input_rows=10, tied=False,
    layer_params=100, other_params=8,
)  # fmt: skip
"""208 parameters of layers and norm, 80 of the head, 80 of an untied input table."""
SLOW = Accelerator("slow", "slow", bandwidth=1e9, flops={"bf16": 4e9})


# --- by hand ----------------------------------------------------------------------------------------------------------


def test_a_pass_by_hand() -> None:
    """3 rows behind 5 tokens, 2 sequences."""
    one = pass_cost(TINY, SLOW, query_tokens=3, context=5, batch=2)
    a_token = 2 * 2 * 3 * 2 * 2  # layers, kv heads, head_dim, keys and values, bytes
    assert one.weight_bytes == (208 + 80) * 2
    assert one.kv_written_bytes == 2 * 3 * a_token
    assert one.kv_bytes == 2 * (5 + 3) * a_token
    multiply_adds = 2 * 3 * (208 + 80)  # every token and weight
    pairs = 6 + 7 + 8  # tokens that each row looks at
    multiply_adds += 2 * 2 * pairs * (4 * 3) * 2  # sequences, layers, pairs, heads x head_dim, keys and values
    assert one.flops == 2 * multiply_adds
    assert one.bytes == one.weight_bytes + one.kv_bytes
    assert one.memory_s == one.bytes / 1e9
    assert one.compute_s == one.flops / 4e9
    assert one.intensity == one.flops / one.bytes


def test_stored_counts_the_input_table_too() -> None:
    assert pass_cost(TINY, SLOW, count="stored").weight_bytes == (208 + 80 + 80) * 2
    tied = dataclasses.replace(TINY, tied=True)
    assert pass_cost(tied, SLOW, count="stored").weight_bytes == pass_cost(tied, SLOW).weight_bytes == (208 + 80) * 2


@pytest.mark.parametrize(
    ("dtype", "read"),
    [
        ("fp32", 4 * 288),
        ("fp16", 2 * 288),
        ("bf16", 2 * 288),
        ("fp8", 288),
        ("int8", 288),
        ("int4", 208 * 66 / 128 + 160),
    ],
)
def test_bytes_of_weights_by_dtype(dtype: str, read: float) -> None:
    """int4: 64 bytes of weights and 2 of scale for every 128; the head stays at 16 bits."""
    assert cost.weight_bytes(TINY, dtype) == pytest.approx(read)  # type: ignore[arg-type]


def test_a_window_caps_the_cache_and_the_attention_of_its_layers_only() -> None:
    windowed = dataclasses.replace(TINY, window=4, windowed_layers=1)
    layer = 2 * 3 * 2 * 2
    assert cost.kv_read_bytes(windowed, 3) == 2 * 3 * layer
    assert cost.kv_read_bytes(windowed, 10) == (10 + 4) * layer
    attention = cost.pass_flops(windowed, 4, 2) - 2 * 4 * windowed.params_read
    assert attention == 4 * 12 * ((3 + 4 + 5 + 6) + (3 + 4 + 4 + 4))


def test_the_cache_may_be_narrower_than_the_weights() -> None:
    assert cost.kv_bytes_per_token(TINY, "fp8") * 2 == cost.kv_bytes_per_token(TINY, "bf16") == 48
    assert cost.kv_bytes_per_token(TINY, "fp32") == 96


def test_the_slower_of_memory_and_arithmetic_is_the_time() -> None:
    memory, compute = pass_cost(TINY, SLOW, 1), pass_cost(TINY, SLOW, 64)
    assert (memory.bound, memory.seconds) == ("memory", memory.memory_s)
    assert (compute.bound, compute.seconds) == ("compute", compute.compute_s)


def test_a_mixture_reads_the_experts_that_its_tokens_need_and_multiplies_with_their_own() -> None:
    expert = 3 * 2048 * 768 * 48 * 2
    one, five = pass_cost(MIXTURE, H100, 1), pass_cost(MIXTURE, H100, 5)
    assert (five.weight_bytes - one.weight_bytes) / expert == pytest.approx(35.3029 - 8.0, abs=1e-4)
    assert cost.pass_flops(MIXTURE, 1, 0) == pytest.approx(2 * MIXTURE.params_read, rel=1e-3)
    assert pass_cost(MIXTURE, H100, 1, batch=5).weight_bytes == five.weight_bytes
    assert pass_cost(MIXTURE, H100, count="stored").weight_bytes == 2 * MIXTURE.params


# --- known numbers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "count", "gb", "milliseconds", "per_second"),
    [
        ("llama-3.1-8b", "stored", 16.061, 4.794, 208.6),
        ("llama-3.1-8b", "read", 15.010, 4.481, 223.2),
        ("qwen3-8b", "stored", 16.381, 4.890, 204.5),
        ("qwen3-8b", "read", 15.137, 4.518, 221.3),
    ],
)
def test_the_classic_example(key: str, count: str, gb: float, milliseconds: float, per_second: float) -> None:
    moved = cost.weight_bytes(SHAPES[key], count=count)  # type: ignore[arg-type]
    assert moved / 1e9 == pytest.approx(gb, abs=5.01e-4)
    assert moved / H100.bandwidth * 1e3 == pytest.approx(milliseconds, abs=5.01e-4)
    assert H100.bandwidth / moved == pytest.approx(per_second, abs=0.051)
    assert pass_cost(SHAPES[key], H100, count=count).seconds * 1e3 == pytest.approx(milliseconds, abs=1e-3)  # type: ignore[arg-type]


@pytest.mark.parametrize("rows", [1, 5])
def test_at_16_bits_a_row_is_one_flop_a_byte(rows: int) -> None:
    assert pass_cost(LLAMA_8B, H100, rows).intensity == pytest.approx(rows, rel=2e-4)


def test_a_verification_with_gamma_8_uses_three_hundredths_of_an_h100() -> None:
    one = pass_cost(LLAMA_8B, H100, 9)
    assert one.compute_s / one.memory_s == pytest.approx(0.03, abs=5e-3)


@pytest.mark.parametrize(
    ("key", "context"), [("llama-3.1-8b", 122.5), ("qwen3-8b", 111.1), ("smollm2-1.7b", 17.4), ("qwen3-0.6b", 10.4)]
)
def test_the_context_at_which_the_cache_weighs_as_much_as_the_weights(key: str, context: float) -> None:
    shape = SHAPES[key]
    tokens = cost.weight_bytes(shape, count="stored") / cost.kv_bytes_per_token(shape)
    assert tokens / 1e3 == pytest.approx(context, abs=0.051)


@pytest.mark.parametrize(
    ("pair", "stored", "read", "best"),
    [
        ("qwen3-8b+qwen3-0.6b", 0.0728, 0.0788, [(3, 1.786), (5, 2.157), (7, 2.757), (11, 3.985)]),
        ("llama-3.1-8b+llama-3.2-1b", 0.1539, 0.1647, [(2, 1.499), (3, 1.733), (5, 2.085), (8, 2.746)]),
        ("smollm2-1.7b+smollm2-135m", 0.0786, 0.0786, [(3, 1.761), (5, 2.111), (6, 2.685), (11, 3.848)]),
        ("qwen2.5-7b+qwen2.5-0.5b", 0.0649, 0.0699, [(4, 1.831), (5, 2.221), (7, 2.862), (12, 4.194)]),
        ("gemma-2-9b+gemma-2-2b", 0.2829, 0.2829, [(2, 1.252), (2, 1.399), (3, 1.597), (5, 1.941)]),
        ("llama-3.1-70b+llama-3.1-8b", 0.1138, 0.1080, [(3, 1.622), (4, 1.906), (5, 2.351), (9, 3.217)]),
        ("llama-3.1-70b+llama-3.2-1b", 0.0175, 0.0178, [(6, 2.199), (8, 2.806), (12, 3.904), (20, 6.595)]),
        ("pythia-6.9b+pythia-70m", 0.0103, 0.0067, [(7, 2.293), (9, 2.965), (14, 4.218), (24, 7.447)]),
        ("gpt2-xl+distilgpt2", 0.0526, 0.0526, [(4, 1.905), (5, 2.329), (8, 3.047), (13, 4.581)]),
    ],
)
def test_what_a_drafter_read_costs_and_the_gamma_that_it_asks_for(
    pair: str, stored: float, read: float, best: list[tuple[int, float]]
) -> None:
    priced = PRICED_PAIRS[pair]
    for count, c in (("stored", stored), ("read", read)):
        by_bytes = cost.weight_bytes(priced.drafter, count=count) / cost.weight_bytes(priced.target, count=count)  # type: ignore[arg-type]
        assert by_bytes == pytest.approx(c, abs=5.01e-5)
        priced_c = round_price(priced.target, priced.drafter, H100, 4, count=count).c  # type: ignore[arg-type]
        assert priced_c == pytest.approx(by_bytes, rel=1e-3)  # but for the cache that each read writes

    def price(gamma: int) -> cost.RoundPrice:
        return round_price(priced.target, priced.drafter, H100, gamma, count="stored")

    for alpha, (gamma, speed) in zip((0.6, 0.7, 0.8, 0.9), best, strict=True):
        assert cost.best_gamma(price, alpha, max_gamma=40) == gamma
        assert price(gamma).speed(alpha) == pytest.approx(speed, rel=2e-3)


def test_a_round_of_four_costs_1_62_target_reads() -> None:
    price = round_price(LLAMA_8B, LLAMA_1B, H100, 4, context=100, count="stored")
    assert f"{price.c:.3f}" == "0.154"
    assert f"{price.verify:.3f}" == "1.000"
    assert f"{price.reads:.2f}" == "1.62"
    assert price.reads == price.verify + 4 * price.c
    assert f"{theory.expected_tokens(0.61, 4):.2f}" == "2.35"
    assert f"{price.speed(0.61):.2f}" == "1.45"
    assert f"{22 / 7 / price.reads:.2f}" == "1.94"
    assert price.plain_s == pytest.approx(4.798e-3, abs=1e-6)


def test_a_copied_draft_costs_nothing() -> None:
    price = round_price(LLAMA_8B, None, H100, 4)
    assert price.c == 0.0
    assert price.reads == price.verify == pytest.approx(1.0, abs=1e-3)


def test_gamma_0_is_a_plain_read() -> None:
    assert round_price(LLAMA_8B, LLAMA_1B, H100, 0).reads == 1.0


def test_batch_59_meets_the_ridge_and_speculation_stops_paying_elsewhere() -> None:
    assert f"{cost.ridge_batch(H100, 4):.0f}" == "59"
    marks = [cost.break_even_batch(H100, alpha, 4, 0.154) for alpha in (0.45, 0.61, 0.8)]
    assert [f"{mark:.0f}" for mark in marks] == ["69", "102", "162"]


def test_there_is_no_batch_at_which_a_loss_begins_where_it_never_pays() -> None:
    assert cost.break_even_batch(H100, 0.3, 4, 0.4) is None
    assert cost.break_even_batch(H100, 0.9, 0, 0.1) is None


def test_rows_at_the_ridge_follow_the_bytes_of_a_weight() -> None:
    assert cost.ridge_rows(H100) == pytest.approx(295.3, abs=0.05)
    assert cost.ridge_rows(H100, "fp8") == pytest.approx(295.4, abs=0.05)  # half the bytes, twice the rate
    assert cost.ridge_rows(H100, "int4") == pytest.approx(295.3 * 66 / 256, abs=0.05)  # a quarter of the bytes


def test_the_ridge_of_a_model_without_cache_is_the_ridge() -> None:
    assert cost.rows_until_compute_binds(lambda rows: pass_cost(LLAMA_8B, H100, rows)) == pytest.approx(295, abs=2)
    assert cost.rows_until_compute_binds(lambda rows: pass_cost(LLAMA_8B, H100, 1, 0, rows)) == pytest.approx(
        295, abs=2
    )


def test_a_long_context_keeps_a_batch_memory_bound_for_ever() -> None:
    assert cost.rows_until_compute_binds(lambda batch: pass_cost(LLAMA_8B, H100, 1, 8000, batch)) is None


def test_one_row_can_be_too_many() -> None:
    starved = Accelerator("starved", "starved", bandwidth=1e12, flops={"bf16": 1e9})
    assert cost.rows_until_compute_binds(lambda rows: pass_cost(LLAMA_8B, starved, rows)) == 0


@pytest.mark.parametrize("batch", [1, 59, 60, 150, 295, 296, 500])
def test_a_wide_read_costs_what_the_ridge_says(batch: int) -> None:
    """Weights only: t(gamma + 1) / t(1) = max(1, B (gamma + 1) / ridge) / max(1, B / ridge)."""
    ridge = cost.ridge_rows(H100)
    expected = max(1.0, batch * 5 / ridge) / max(1.0, batch / ridge)
    weightless_cache = dataclasses.replace(LLAMA_8B, kv_heads=1, head_dim=1)
    price = round_price(weightless_cache, None, H100, 4, batch=batch)
    assert price.verify == pytest.approx(expected, rel=1e-3)


def test_two_h100s_hold_the_70b_and_one_does_not() -> None:
    needed = cost.stored_bytes(LLAMA_70B, context=4096)
    assert needed == 2 * LLAMA_70B.params + 4096 * 327_680
    assert H100.memory is not None
    assert H100.memory < needed < 2 * H100.memory
    assert pass_cost(LLAMA_70B, H100.times(2)).seconds == pytest.approx(pass_cost(LLAMA_70B, H100).seconds / 2)


def test_a_measured_speed_as_a_share_of_bandwidth() -> None:
    """SGLang's documentation: 158.34 tokens/s plain, Llama-3.1-8B on an H100."""
    read = cost.bandwidth_share(cost.weight_bytes(LLAMA_8B), 158.34, H100)
    stored = cost.bandwidth_share(cost.weight_bytes(LLAMA_8B, count="stored"), 158.34, H100)
    assert (f"{read:.2f}", f"{stored:.2f}") == ("0.71", "0.76")
    with pytest.raises(ValueError, match="reads_per_second must be a finite number of at least 0, got nan"):
        cost.bandwidth_share(1e9, math.nan, H100)


# --- over ranges ------------------------------------------------------------------------------------------------------

shapes = st.sampled_from(sorted(SHAPES.values(), key=lambda shape: shape.id))
accelerators = st.sampled_from(list(ACCELERATORS.values()))
dtypes = st.sampled_from(DTYPES)
counts = st.sampled_from(cost.COUNTS)
rows, contexts, batches = st.integers(1, 64), st.integers(0, 200_000), st.integers(1, 512)


@given(shapes, accelerators, dtypes, counts, rows, contexts, batches)
@settings(max_examples=60, deadline=None)
def test_bytes_are_never_below_the_weights_and_time_never_below_either_side(
    shape: ModelShape, one: Accelerator, dtype: str, count: str, query: int, context: int, batch: int
) -> None:
    spent = pass_cost(shape, one, query, context, batch, dtype, count=count)  # type: ignore[arg-type]
    assert spent.bytes >= spent.weight_bytes >= cost.weight_bytes(shape, dtype, count)  # type: ignore[arg-type]
    assert 0 < spent.kv_written_bytes <= spent.kv_bytes
    assert spent.seconds == max(spent.memory_s, spent.compute_s)
    assert spent.intensity * spent.bytes == pytest.approx(spent.flops)
    assert (spent.intensity > one.ridge(dtype)) == (spent.bound == "compute") or spent.intensity == pytest.approx(  # type: ignore[arg-type]
        one.ridge(dtype)  # type: ignore[arg-type]
    )


def not_less(more: PassCost, less: PassCost) -> bool:
    return (
        more.weight_bytes >= less.weight_bytes
        and more.kv_bytes >= less.kv_bytes
        and more.flops >= less.flops
        and more.seconds >= less.seconds
    )


@given(shapes, dtypes, rows, contexts, batches, st.integers(1, 1000))
@settings(max_examples=60, deadline=None)
def test_more_context_more_sequences_and_more_rows_never_cost_less(
    shape: ModelShape, dtype: str, query: int, context: int, batch: int, more: int
) -> None:
    def spent(query: int, context: int, batch: int) -> PassCost:
        return pass_cost(shape, H100, query, context, batch, dtype)  # type: ignore[arg-type]

    base = spent(query, context, batch)
    assert not_less(spent(query + more, context, batch), base)
    assert not_less(spent(query, context + more, batch), base)
    assert not_less(spent(query, context, batch + more), base)


@given(shapes, rows, contexts, st.integers(1, 63))
@settings(max_examples=60, deadline=None)
def test_two_passes_attend_to_the_same_pairs_as_one(shape: ModelShape, query: int, context: int, first: int) -> None:
    first = min(first, query)
    parts = cost.pass_flops(shape, first, context)
    if query > first:
        parts += cost.pass_flops(shape, query - first, context + first)
    assert parts == pytest.approx(cost.pass_flops(shape, query, context))


@given(shapes, st.integers(0, 20_000))
@settings(max_examples=30, deadline=None)
def test_memory_binds_up_to_the_last_row_and_no_further(shape: ModelShape, context: int) -> None:
    def spent(rows: int) -> PassCost:
        return pass_cost(shape, H100, rows, context)

    most = cost.rows_until_compute_binds(spent)
    assert most is not None
    assert most == 0 or spent(most).bound == "memory"
    assert spent(most + 1).bound == "compute"


@given(st.floats(0, 1), st.integers(0, 16), st.floats(0, 1))
@settings(max_examples=100, deadline=None)
def test_at_the_break_even_batch_a_round_costs_what_it_brings(alpha: float, gamma: int, c: float) -> None:
    batch = cost.break_even_batch(H100, alpha, gamma, c)
    if batch is None:
        assert theory.speedup(alpha, gamma, c) <= 1
    else:
        ridge = cost.ridge_rows(H100)
        assert cost.ridge_batch(H100, gamma) <= batch <= ridge * (1 + 1e-12)
        assert gamma * c + batch * (gamma + 1) / ridge == pytest.approx(theory.expected_tokens(alpha, gamma))


@given(st.floats(0, 1), st.sampled_from(list(PRICED_PAIRS)))
@settings(max_examples=40, deadline=None)
def test_the_best_gamma_is_at_least_as_good_as_the_theorys(alpha: float, pair: str) -> None:
    priced = PRICED_PAIRS[pair]

    def price(gamma: int) -> cost.RoundPrice:
        return round_price(priced.target, priced.drafter, H100, gamma)

    theorys = theory.optimal_gamma(alpha, price(1).c, 16)
    assert price(cost.best_gamma(price, alpha)).speed(alpha) >= price(theorys).speed(alpha)


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pass_cost(TINY, SLOW, 0), "query_tokens must be at least 1, got 0"),
        (lambda: pass_cost(TINY, SLOW, 1, -1), "context must be at least 0, got -1"),
        (lambda: pass_cost(TINY, SLOW, 1, 0, 0), "batch must be at least 1, got 0"),
        (lambda: pass_cost(TINY, SLOW, dtype="fp4"), "dtype must be one of fp32, .*, got 'fp4'"),  # type: ignore[arg-type]
        (lambda: pass_cost(TINY, SLOW, kv_dtype="int4"), "kv_dtype must be one of fp32, .*, got 'int4'"),
        (lambda: pass_cost(TINY, SLOW, count="all"), "count must be one of read, stored, got 'all'"),  # type: ignore[arg-type]
        (lambda: round_price(TINY, None, SLOW, -1), "gamma must be at least 0, got -1"),
        (lambda: cost.ridge_batch(SLOW, -2), "gamma must be at least 0, got -2"),
        (lambda: cost.break_even_batch(SLOW, 1.5, 4, 0.1), r"alpha must be in \[0, 1\], got 1.5"),
        (lambda: cost.best_gamma(lambda gamma: round_price(TINY, None, SLOW, gamma), 0.5, -1), "max_gamma must be"),
    ],
)
def test_arguments_out_of_range_are_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_what_prices_needs_neither_numpy_nor_torch() -> None:
    code = (
        "import json, sys, specviz.hardware.cost, specviz.hardware.ledger\n"
        "print(json.dumps(sorted({'numpy', 'torch', 'transformers', 'streamlit', 'plotly'} & set(sys.modules))))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(run.stdout) == []
