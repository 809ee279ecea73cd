from __future__ import annotations

import math

import pytest

from specviz.hardware.accelerators import ACCELERATORS, DTYPES, Accelerator, custom, measured

SHEETS = {  # TB/s, dense bf16 TFLOP/s, FLOP/byte, ms for 16.00 GB, tokens/s
    "h100-sxm": (3.35, 989.4, 295.3, 4.776, 209.4),
    "h100-pcie": (2.0, 756, 378.0, 8.000, 125.0),
    "h200": (4.8, 989.4, 206.1, 3.333, 300.0),
    "a100-80": (2.039, 312, 153.0, 7.847, 127.4),
    "a100-40": (1.555, 312, 200.6, 10.289, 97.2),
    "b200": (8.0, 2250, 281.2, 2.000, 500.0),
    "l40s": (0.864, 362.05, 419.0, 18.519, 54.0),
    "l4": (0.3, 121, 403.3, 53.333, 18.8),
    "rtx-4090": (1.008, 165.2, 163.9, 15.873, 63.0),
    "rtx-3090": (0.936, 71, 75.9, 17.094, 58.5),
    "mi300x": (5.3, 1307.4, 246.7, 3.019, 331.2),
}


def test_the_list_is_this_one_and_the_h100_comes_first() -> None:
    assert set(ACCELERATORS) == set(SHEETS)
    assert next(iter(ACCELERATORS)) == "h100-sxm"
    assert all(key == one.id for key, one in ACCELERATORS.items())


@pytest.mark.parametrize("key", SHEETS)
def test_data_sheets_give_the_known_ridges_and_times(key: str) -> None:
    bandwidth, rate, ridge, milliseconds, per_second = SHEETS[key]
    one = ACCELERATORS[key]
    assert one.bandwidth == pytest.approx(bandwidth * 1e12)
    assert one.rate("bf16") == one.rate("fp16") == pytest.approx(rate * 1e12)
    assert one.ridge() == pytest.approx(ridge, abs=0.051)
    assert 16e9 / one.bandwidth * 1e3 == pytest.approx(milliseconds, abs=5.01e-4)
    assert one.bandwidth / 16e9 == pytest.approx(per_second, abs=0.051)


@pytest.mark.parametrize("one", ACCELERATORS.values(), ids=lambda one: one.id)
def test_each_names_its_source_and_says_dense(one: Accelerator) -> None:
    assert one.source.startswith("https://")
    assert "dense, not sparse" in one.note
    assert one.memory is not None
    assert one.origin == "data sheet"


@pytest.mark.parametrize("one", ACCELERATORS.values(), ids=lambda one: one.id)
def test_narrower_numbers_are_never_slower_and_int4_multiplies_at_16_bits(one: Accelerator) -> None:
    assert one.rate("fp32") < one.rate("bf16") <= one.rate("fp8")
    assert one.rate("bf16") <= one.rate("int8")
    assert one.rate("int4") == one.rate("bf16")


def test_fp8_without_a_rate_of_its_own_is_widened() -> None:
    assert "fp8" not in ACCELERATORS["a100-80"].flops
    assert ACCELERATORS["a100-80"].rate("fp8") == 312e12


def test_devices_add_up() -> None:
    two = ACCELERATORS["h100-sxm"].times(2)
    assert two.bandwidth == 6.7e12
    assert two.memory == 160e9
    assert two.rate("bf16") == 2 * 989.4e12
    assert two.ridge() == pytest.approx(ACCELERATORS["h100-sxm"].ridge())
    assert (two.name, two.devices) == ("2 × H100 SXM", 2)
    assert two.times(1) is two
    with pytest.raises(ValueError, match=r"1\.\.1024, got 0"):
        two.times(0)


def test_a_custom_one_has_one_rate_for_every_dtype() -> None:
    mine = custom("mine", 1e12, 1e14, 24e9)
    assert mine.origin == "custom"
    assert {mine.rate(dtype) for dtype in DTYPES} == {1e14}


def test_a_measured_one_has_one_rate_for_every_dtype() -> None:
    here = measured("here", 2e10, 1e11, "fp32")
    assert here.origin == "measured"
    assert {here.rate(dtype) for dtype in DTYPES} == {1e11}


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf, 1e30])
@pytest.mark.parametrize("name", ["bandwidth", "flops", "memory"])
def test_an_impossible_number_is_refused_with_the_range(name: str, value: float) -> None:
    numbers = {"bandwidth": 1e12, "flops": 1e14, "memory": 1e10, name: value}
    with pytest.raises(ValueError, match=rf"{name}.* must be in .*\.\..*, got {value!r}".replace("+", r"\+")):
        custom("mine", **numbers)


def test_unknown_dtypes_are_refused() -> None:
    with pytest.raises(ValueError, match="dtype must be one of fp32, fp16"):
        ACCELERATORS["l4"].rate("fp4")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="a dtype of flops must be one of"):
        Accelerator("a", "a", 1e12, {"bf16": 1e12, "fp4": 1e12})  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="must give a rate for bf16 or fp32, got none"):
        Accelerator("a", "a", 1e12, {})
