"""What is derived from a measured machine, against sums by hand; and its file."""

from __future__ import annotations

import csv
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specviz.figures import profile as figures
from specviz.figures import server as servers
from specviz.figures.sentences import plain
from specviz.hardware import measured
from specviz.hardware.measured import Rate, Read, Spread
from tests.profiles import profile, shape, steady

# --- spread -----------------------------------------------------------------------------------------------------------


def test_a_spread_is_the_median_and_the_quartiles_around_it() -> None:
    assert Spread.of([5.0, 1.0, 3.0, 2.0, 4.0]) == Spread(3.0, 2.0, 4.0, 5)
    assert Spread.of([7.0]) == Spread(7.0, 7.0, 7.0, 1)
    assert Spread.of([]) is None


@given(st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=30))
def test_a_rate_is_the_other_way_round(samples: list[float]) -> None:
    spread = Spread.of(samples)
    assert spread is not None
    rate = spread.per(10.0)
    assert min(samples) <= spread.low <= spread.median <= spread.high <= max(samples)
    assert math.isclose(rate.low * spread.high, 10.0)
    assert math.isclose(rate.median * spread.median, 10.0)
    assert rate.low <= rate.median <= rate.high


@given(st.floats(1e-9, 1e5), st.integers(2, 20))
def test_equal_samples_have_no_spread(value: float, count: int) -> None:
    assert Spread.of([value] * count) == Spread(value, value, value, count)


# --- derived ----------------------------------------------------------------------------------------------------------

TARGET_BYTES = 4 * 10_000 + 9 * 32 * 4 * 11
DRAFTER_BYTES = 4 * 2_000 + 1 * 32 * 4 * 11


def test_the_bandwidth_is_that_of_the_largest_copy_and_the_rate_that_of_the_fastest_product() -> None:
    one = profile()
    assert one.bandwidth == steady(1e9)
    assert one.rate == steady(4e9)
    machine = one.accelerator
    assert machine is not None
    assert (machine.bandwidth, machine.rate("fp32"), machine.origin) == (1e9, 4e9, "measured")


def test_the_share_of_bandwidth_is_modelled_bytes_over_measured_time_over_measured_bandwidth() -> None:
    share = measured.bandwidth_share(profile(), "target", 1)
    assert share is not None
    assert math.isclose(share.median, TARGET_BYTES / 1e-4 / 1e9)
    assert math.isclose(share.low, TARGET_BYTES / 1.25e-4 / 1e9)
    drafter = measured.bandwidth_share(profile(), "drafter", 1)
    assert drafter is not None
    assert math.isclose(drafter.median, DRAFTER_BYTES / 0.2e-4 / 1e9)


def test_the_roof_is_the_slower_of_reading_and_multiplying_with_the_spread_of_both() -> None:
    roof = measured.roof(profile(), "target", 1)
    assert roof is not None
    assert roof.bound == "memory"
    assert math.isclose(roof.seconds, TARGET_BYTES / 1e9)
    assert math.isclose(roof.best, TARGET_BYTES / 1.25e9)
    assert math.isclose(roof.worst, TARGET_BYTES / 0.9e9)
    wide = measured.roof(profile(), "target", 100)
    assert wide is not None
    keys = 100 * 10 + 100 * 101 // 2
    assert wide.bound == "compute"
    assert math.isclose(wide.seconds, (2 * 10_000 * 100 + 4 * 2 * 16 * 9 * keys) / 4e9)


def test_c_is_measured_beside_bytes_and_layers() -> None:
    one = profile()
    assert measured.measured_c(one) == pytest.approx(0.2)
    weights = (4 * 2_000 + 32 * 4 * 10) / (4 * 10_000 + 9 * 32 * 4 * 10)
    assert measured.byte_c(one) == pytest.approx(weights)
    assert measured.layer_c(one) == pytest.approx(1 / 9)


def test_a_round_costs_its_read_and_gamma_drafter_reads() -> None:
    assert measured.growth(profile(), 5) == pytest.approx(1.8)
    assert measured.round_price(profile(), 4) == pytest.approx(1.8 + 4 * 0.2)
    assert measured.round_price(profile(), 0) == pytest.approx(1.0)
    assert measured.round_price(profile(), 3) is None


def test_reads_are_flat_up_to_the_last_width_before_one_costs_a_tenth_more() -> None:
    assert measured.flat_until(profile()) == 3
    assert measured.flat_until(profile(reads=(Read(2, steady(1.0)),))) is None


def test_without_a_drafter_nothing_is_said_of_c() -> None:
    reads = (Read(1, steady(1e-4)), Read(5, steady(2e-4)))
    alone = profile(drafter=None, reads=reads, prefill={"target": 0.5})
    assert (measured.measured_c(alone), measured.byte_c(alone), measured.layer_c(alone)) == (None, None, None)
    layout = figures.layout(alone)
    assert [chart.model for chart in layout.charts] == ["target"]
    assert layout.ratios == ()
    assert plain(layout.verdict).endswith("Wider reads are not free: a read of 5 rows costs 2.00 reads of 1.")


def test_reads_without_bandwidth_have_no_roof_and_no_share() -> None:
    early = profile(copies=(), matrices=())
    layout = figures.layout(early)
    assert layout.shares == ()
    assert all(chart.roof == () and chart.binds is None for chart in layout.charts)
    assert not early.complete
    assert early.accelerator is None


# --- words ------------------------------------------------------------------------------------------------------------


PARTLY = "Partly. A read uses 53 % of what the memory can move; the rest of the time it waits. "


def times(**ratios: float) -> tuple[Read, ...]:
    return tuple(Read(int(w[1:]), steady(1e-4 * t), steady(2e-5)) for w, t in ratios.items())


@pytest.mark.parametrize(
    ("reads", "said"),
    [
        (
            times(w1=1, w2=1.05, w3=1.08, w5=1.8),
            PARTLY
            + "Wider reads are nearly free up to 3 rows. A read of 5 costs 1.80 reads of 1, so gamma 4 needs 2.60 "
            "tokens a round to pay.",
        ),
        (
            times(w1=1, w5=1.02, w17=1.04),
            PARTLY + "Wider reads are nearly free as far as it was measured: a read of 17 rows costs 1.04 reads of 1. "
            "A read of 5 costs 1.02 reads of 1, so gamma 4 needs 1.82 tokens a round to pay.",
        ),
        (
            times(w1=1, w2=1.9, w5=4.5),
            PARTLY + "Wider reads are not free: a read of 2 rows costs 1.90 reads of 1. A read of 5 costs 4.50 reads "
            "of 1, and with 4 drafts a round costs 5.30 reads: more than the 5 tokens that it can bring, so gamma 4 "
            "never pays.",
        ),
        (
            times(w1=1, w5=1.5),
            PARTLY + "Wider reads are not free. A read of 5 costs 1.50 reads of 1, so gamma 4 needs 2.30 tokens a "
            "round to pay.",
        ),
        (
            times(w1=1, w2=1.05, w5=0.44, w17=0.6),
            "Too unsteady to say what binds: a read of 5 rows seems to cost 0.44 reads of 1. Measure again at a quiet "
            "moment.",
        ),
        (
            (Read(1, steady(1e-4, count=2)), Read(5, steady(2e-4, count=2))),
            "Too few samples to say what binds: 2 of a read of 1 row, where 3 is the least.",
        ),
        (times(w1=1), "Too little was measured to say what binds: reads of 1 row and of a wider one are needed."),
        (times(w2=1), "Too little was measured to say what binds: reads of 1 row and of a wider one are needed."),
    ],
)
def test_the_verdict(reads: tuple[Read, ...], said: str) -> None:
    assert plain(figures.verdict(profile(reads=reads))) == said


@pytest.mark.parametrize(
    ("seconds", "rate", "said"),
    [
        (0.53e-4, 4e9, "Yes. A read uses 99 % of what the memory can move."),
        (0.88e-4, 4e9, "Partly. A read uses 60 % of what the memory can move; the rest of the time it waits."),
        (1.76e-4, 4e9, "No. A read uses 30 % of what the memory can move; the rest of the time it waits."),
        (5e-4, 4e9, "No. A read uses 11 % of what the memory can move; the rest of the time it waits."),
        (3e-4, 1.2e8, "No, it is arithmetic. A read reaches "),
        (1e-5, 4e9, "It cannot be said. A read would use 527 % of what the memory can move"),
    ],
)
def test_the_verdict_begins_with_an_answer_to_what_the_page_asks(seconds: float, rate: float, said: str) -> None:
    reads = (Read(1, steady(seconds)), Read(5, steady(2 * seconds)))
    assert plain(figures.verdict(profile(reads=reads, matrices=(Rate("own", steady(rate)),)))).startswith(said)


@given(st.floats(0.01, 0.999).filter(lambda share: all(abs(share - edge) > 1e-9 for edge in (0.3, 0.6))))
def test_the_answer_and_the_judgement_of_a_server_draw_the_same_lines(share: float) -> None:
    seconds = TARGET_BYTES / 1e9 / share
    reads = (Read(1, steady(seconds)), Read(5, steady(2 * seconds)))
    one = profile(reads=reads)
    machine = one.accelerator
    assert machine is not None
    judged = servers.judge(servers.Server(one.target, "fp32", machine, 1, 10, 1 / seconds)).verdict
    begins = {"Memory-bound": "Yes.", "Partly memory": "Partly.", "Not memory": "No."}
    begin = next(answer for kind, answer in begins.items() if plain(judged).startswith(kind))
    assert plain(figures.verdict(one)).startswith(begin)


def test_numbers_that_no_machine_has_are_short() -> None:
    assert [figures.percent(share) for share in (1e-12, 2e-4, 9.99, 9.995, 7e12)] == [
        "under 0.01 %",
        "0.020 %",
        "999 %",
        "over 999 %",
        "over 999 %",
    ]
    assert [figures.duration(seconds) for seconds in (2e-9, 5e-7, 1e-4, 90.0, 1e6, 1e9)] == [
        "2.00 ns",
        "0.500 µs",
        "0.100 ms",
        "90.0 s",
        "11.6 days",
        "11,600 days",
    ]


@given(st.floats(1e-9, 1e5), st.floats(1e-9, 1e5), st.integers(1, 10**4), st.floats(1e8, 1e15))
def test_whatever_a_file_holds_the_bars_say_it_in_a_few_signs(
    target: float, drafter: float, layers: int, bandwidth: float
) -> None:
    reads = tuple(
        Read(width, Spread(target, target, target, 5), Spread(drafter, drafter, drafter, 5)) for width in (1, 5)
    )
    copies = (Rate("copy", Spread(bandwidth, bandwidth, bandwidth, 5)),)
    layout = figures.layout(profile(reads=reads, copies=copies, target=shape("big", layers)))
    assert all(len(bar.text) <= 12 for bar in (*layout.shares, *layout.ratios))
    assert max(map(len, plain(layout.verdict).split())) <= 12


def test_the_lines_carry_the_arithmetic() -> None:
    said = figures.lines(profile())
    assert said[1] == (
        "A read of 1 row reaches 53 % of the copy bandwidth: 52.7 kB (modelled) in 0.100 ms (measured), "
        "beside 1.00 GB/s (measured)."
    )
    assert said[2].startswith("One drafter read costs 0.200 target reads (measured)")
    assert "counts nowhere: the target 500 ms, the drafter 100 ms" in said[3]


def test_more_than_the_whole_bandwidth_is_explained() -> None:
    fast = profile(reads=(Read(1, steady(1e-5), steady(1e-5)),))
    assert any("527 % of the copy bandwidth" in line and "stayed in a cache" in line for line in figures.lines(fast))


def test_a_wide_spread_is_told() -> None:
    unsteady = profile(reads=(Read(1, Spread(1.0, 0.5, 2.0, 5)), Read(2, steady(1.0))))
    assert any("something else was at work" in line for line in figures.lines(unsteady))
    assert not any("something else" in line for line in figures.lines(profile()))


def test_fewer_samples_than_asked_for_are_told() -> None:
    assert any("Stopped before the end" in line for line in figures.lines(profile(repeats=6)))
    assert not any("Stopped" in line for line in figures.lines(profile()))


def test_measured_and_modelled_stand_in_columns_of_their_own() -> None:
    machine, reads = figures.tables(profile())
    assert machine.columns[1] == "median (measured)"
    assert [name for name in reads.columns if " ms " in name] == [
        f"{model} ms (measured)" if kind == "measured" else "allowed ms (modelled)"
        for model in ("target", "drafter")
        for kind in ("measured", "modelled")
    ]
    assert reads.rows[0][:4] == ("1", "0.100", "0.0900–0.125", "1.00")


def test_nothing_hides_in_a_text_from_a_file() -> None:
    hostile = profile(device="<b>x</b>\u202e\n\x00", pair="a\u200bb", copies=(Rate("c\u202ed", steady(1e9)),))
    said = figures.machine(hostile) + "".join(str(table) for table in figures.tables(hostile))
    assert "<b>x</b>⟨U+202E" in said
    assert not set("\u202e\x00\u200b\n") & set(said)


def test_the_spreadsheet_has_a_row_a_width_in_seconds() -> None:
    rows = list(csv.DictReader(figures.csv(profile()).splitlines()))
    assert [row["rows"] for row in rows] == ["1", "2", "3", "5"]
    assert float(rows[0]["target_median_s_measured"]) == 1e-4
    assert float(rows[3]["drafter_median_s_measured"]) == 0.5e-4


@given(st.floats(1e-9, 1e15))
def test_no_number_is_written_in_powers_of_ten(value: float) -> None:
    written = figures.significant(value)
    assert "e" not in written
    assert math.isclose(float(written.replace(",", "")), value, rel_tol=6e-3)


# --- the file ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("one", [profile(), profile(drafter=None, threads=None), profile(copies=(), prefill={})])
def test_a_profile_survives_its_file(one: measured.Profile) -> None:
    assert measured.load(measured.dump(one)) == one


def test_what_a_later_version_adds_is_left_alone() -> None:
    said = json.loads(measured.dump(profile()))
    said["more"] = said["target"]["more"] = said["reads"][0]["more"] = 1
    assert measured.load(json.dumps(said)) == profile()


def changed(path: str, value: Any) -> str:
    said = json.loads(measured.dump(profile()))
    *way, last = path.split(".")
    place = said
    for step in way:
        place = place[int(step)] if step.isdigit() else place[step]
    place[last] = value
    return json.dumps(said)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("kind", "header"),
        ("schema_version", 2),
        ("schema_version", None),
        ("device", 3),
        ("device", "x" * 201),
        ("device", "half \ud800"),
        ("device_type", "tpu"),
        ("dtype", "int4"),
        ("dtype", ["fp32"]),
        ("threads", 0),
        ("context", 0),
        ("context", 1.5),
        ("context", True),
        ("repeats", 10**9),
        ("versions", []),
        ("target", None),
        ("target.layers", 0),
        ("target.layers", 10**4 + 1),
        ("target.layer_params", 2 * 10**13),
        ("target.head_dim", 10**6),
        ("copies", {}),
        ("copies", [1]),
        ("copies.0.per_second.median", 0),
        ("copies.0.per_second.median", float("nan")),
        ("copies.0.per_second.high", float("inf")),
        ("copies.0.per_second.low", 5e9),
        ("copies.0.per_second.count", 0),
        ("matrices.0.per_second", None),
        ("reads.0.width", 3),
        ("reads.0.width", -1),
        ("reads.0.target.median", "fast"),
        ("reads.0.target.median", -1.0),
        ("reads", [{}] * 65),
        ("prefill.target", 1e9),
    ],
)
def test_a_file_with_a_wrong_value_is_refused(path: str, value: Any) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        measured.load(changed(path, value))


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '"profile"', "[" * 100_000, "{}"])
def test_what_is_no_profile_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="the file is no"):
        measured.load(text)


def test_the_shapes_of_a_file_may_be_of_any_model() -> None:
    moved = profile(target=shape("other", 30))
    assert measured.load(measured.dump(moved)).target.layers == 30
