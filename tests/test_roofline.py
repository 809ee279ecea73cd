"""The Roofline page's figures: golden numbers, and every figure against the cost model."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specviz.figures import charts, numbers, roofline
from specviz.figures.roofline import BIG, H100, SMALL, Panel, Scene
from specviz.hardware import cost
from specviz.hardware.accelerators import ACCELERATORS, DTYPES
from specviz.hardware.measured import Spread
from specviz.hardware.shapes import PRICED_PAIRS
from specviz.trace import Header, Trace
from tests.synthetic_traces import make_trace

SCENE = Scene(H100, SMALL, count="stored")


def cells(panel: Panel, column: str) -> list[str]:
    """A column of the panel's table."""
    index = panel.table.columns.index(column)
    return [row[index] for row in panel.table.rows]


def trace(panel: Panel, name: str) -> Any:
    """A trace of the panel's figure."""
    return next(one for one in panel.figure.data if one.name == name)


def words_of(panel: Panel) -> str:
    return "\n".join(
        [panel.title, panel.story, *panel.numbers, panel.formula, panel.alt, panel.table.caption]
        + [cell for row in panel.table.rows for cell in row]
    )


def all_panels(scene: Scene, **options: Any) -> list[Panel]:
    today = options.get("today")
    return [
        roofline.classic(),
        roofline.roof(scene),
        roofline.sweep(scene),
        roofline.sweep(scene, mixture=True),
        roofline.clocks(scene),
        roofline.payoff(scene, today),
        roofline.context_share(scene),
        roofline.two_by_two(scene),
        roofline.decoupled(scene),
    ]


# --- the classic example ----------------------------------------------------------------------------------------------


def test_the_classic_example_shows_both_counts() -> None:
    panel = roofline.classic()
    assert cells(panel, "GB") == ["16.00", "16.06", "15.01"]
    assert cells(panel, "÷ 3.35 TB/s") == ["4.776 ms", "4.794 ms", "4.481 ms"]
    assert cells(panel, "tokens a second") == ["209.4", "208.6", "223.2"]
    assert panel.story.startswith("Every token takes 4.8 ms")
    assert "76 % of the bound by bytes as stored, 71 % as read" in panel.numbers[1]


# --- the roof ---------------------------------------------------------------------------------------------------------


def test_every_point_stands_on_the_roof() -> None:
    for point in roofline.points(replace(SCENE, batch=16, context=2048)):
        rate, bandwidth = H100.rate("bf16"), H100.bandwidth
        reached = point.cost.flops / point.cost.seconds
        assert reached == pytest.approx(min(bandwidth * point.cost.intensity, rate))


def test_the_points_are_those_of_the_cost_model() -> None:
    panel = roofline.roof(SCENE)
    wide = cost.pass_cost(SMALL.target, H100, 5, count="stored")
    drawn = trace(panel, "the target verifies 5 rows")
    assert drawn.x[0] == wide.intensity
    assert drawn.y[0] == wide.flops / wide.seconds
    assert "ridge: 295" in [note.text for note in panel.figure.layout.annotations]
    assert "in the same time" in panel.story


def test_one_row_is_one_flop_a_byte_as_read() -> None:
    (line, *_) = roofline.roof(replace(SCENE, count="read")).numbers
    assert line.startswith("1 row: 1.00 FLOP a byte · 5 rows: 5.00 · ridge: 295")


def test_without_drafts_nothing_is_verified() -> None:
    panel = roofline.roof(replace(SCENE, gamma=0))
    assert "verif" not in words_of(panel)
    assert "rows instead of one" not in panel.story


def test_past_the_ridge_the_page_says_that_drafts_are_not_free() -> None:
    assert "drafts are no longer free" in roofline.roof(replace(SCENE, batch=100)).story
    assert "drafts are not free here" in roofline.roof(replace(SCENE, batch=1024)).story


def test_what_does_not_fit_is_said() -> None:
    assert any("It does not fit" in line for line in roofline.roof(replace(SCENE, batch=1024, context=4096)).numbers)
    assert not any("It does not fit" in line for line in roofline.roof(SCENE).numbers)
    # 141 GB of weights do not fit into one H100, and do into two.
    assert not any("It does not fit" in line for line in roofline.decoupled(SCENE).numbers)


# --- the sweep --------------------------------------------------------------------------------------------------------


def test_bytes_stand_still_and_flop_grow() -> None:
    panel = roofline.sweep(SCENE)
    reading, multiplying = trace(panel, "reading"), trace(panel, "multiplying")
    assert list(reading.x) == list(range(1, 18))
    assert max(reading.y) / min(reading.y) < 1.001
    assert multiplying.y[16] / multiplying.y[0] == pytest.approx(17, rel=1e-3)
    for width in (1, 5, 17):
        read = cost.pass_cost(SMALL.target, H100, width, count="stored")
        assert reading.y[width - 1] == 1e3 * read.memory_s
        assert multiplying.y[width - 1] == 1e3 * read.compute_s


def test_a_mixture_reads_more_when_it_reads_wider() -> None:
    """128 experts, 8 a token: 8.0, 35.3 and 85.3 are touched by 1, 5 and 17 rows."""
    panel = roofline.sweep(SCENE, mixture=True)
    touched = cells(panel, "experts touched")
    assert [touched[i] for i in (0, 4, 16)] == ["8.0 of 128", "35.3 of 128", "85.3 of 128"]
    assert trace(panel, "reading").y[4] > 2 * trace(panel, "reading").y[0]
    assert "drafts are not free" in panel.story
    assert "independently" in " ".join(panel.numbers)
    assert "nearly free" in roofline.sweep(replace(SCENE, batch=128, context=1024), mixture=True).story
    slow = replace(SCENE, batch=128, context=65_536, chip=roofline.typed(1, 100))
    assert "has more to multiply" in roofline.sweep(slow, mixture=True).story


def test_measured_reads_have_an_axis_and_a_badge_of_their_own() -> None:
    reads = roofline.Measured(
        {1: Spread(0.010, 0.009, 0.012, 20), 5: Spread(0.016, 0.015, 0.018, 20)}, "here", "measured"
    )
    panel = roofline.measured(reads)
    assert panel.badge == "measured"
    assert panel.figure.layout.yaxis.title.text == "ms, measured"
    assert panel.story == "By the clock: 5 rows took 1.60× the time of 1 row."
    assert cells(panel, "middle half") == ["9.00 ms to 12.0 ms", "15.0 ms to 18.0 ms"]


def test_the_runs_own_reads_stand_in_for_a_profile() -> None:
    run = make_trace()
    found = roofline.from_trace(run, "recorded")
    assert found is not None
    widths = {
        one.query_tokens
        for round_ in run.rounds
        for one in round_.passes
        if one.model == "target" and one.kind != "prefill"
    }
    assert set(found.by_width) == widths
    assert roofline.from_trace(Trace(Header()), "recorded") is None


# --- batch ------------------------------------------------------------------------------------------------------------


def test_the_readers_clock_never_speeds_up_and_the_rooms_does() -> None:
    panel = roofline.clocks(replace(SCENE, context=1024))
    reader, room = list(trace(panel, "one reader").y), list(trace(panel, "the whole room").y)
    assert reader == sorted(reader, reverse=True)
    assert room == sorted(room)
    read = cost.pass_cost(SMALL.target, H100, 1, 1024, 64, count="stored")
    assert reader[6] == 1 / read.seconds
    assert room[6] == 64 / read.seconds


def marked(panel: Panel) -> dict[str, float]:
    """The marks of a figure and the batch of each."""
    return {one.name: one.x[0] for one in panel.figure.data if one.mode == "markers"}


@pytest.mark.parametrize(("alpha", "stops"), [(0.45, 69), (0.61, 102), (0.8, 162)])
def test_the_two_marks(alpha: float, stops: int) -> None:
    at = roofline.marks(H100, alpha, 4, 0.154)
    assert round(at.ridge) == 59
    assert at.stops is not None
    assert round(at.stops) == stops
    panel = roofline.payoff(replace(SCENE, alpha=alpha))
    shown = marked(panel)
    assert round(shown["ridge met:"]) == 59
    assert round(shown["by weights, until"]) == stops
    assert f"by weights alone until batch {stops}" in panel.story
    (row,) = (row for row in panel.table.rows if "(yours)" in row[0])
    assert round(float(row[2])) == 59
    assert round(float(row[-1])) == stops


def test_at_its_mark_drafting_is_as_slow_as_the_target_alone() -> None:
    scene = replace(SCENE, alpha=0.61)
    c = roofline.byte_ratio(scene, "stored")
    assert c == pytest.approx(0.1539, abs=1e-4)
    stops = roofline.marks(H100, 0.61, 4, c).stops
    assert stops is not None
    assert roofline.weights_only(scene, stops, c) == pytest.approx(1)
    assert roofline.weights_only(scene, stops - 1, c) > 1 > roofline.weights_only(scene, stops + 1, c)


def test_a_drafter_that_never_pays_has_no_second_mark() -> None:
    panel = roofline.payoff(replace(SCENE, alpha=0.1))
    assert "drafting pays at no batch shown; by weights alone at no batch shown" in panel.story
    assert "slower than the target alone" in panel.numbers[0]
    assert list(marked(panel)) == ["ridge met:"]
    assert "nothing is drafted" in roofline.payoff(replace(SCENE, gamma=0)).story


def test_the_cache_moves_the_crossing_and_both_are_marked() -> None:
    scene = replace(SCENE, alpha=0.42, context=1024, count="read")
    panel = roofline.payoff(scene)
    ((low, until),) = roofline.paying(scene)
    shown = marked(panel)
    assert low == 1
    assert until < shown["by weights, until"]
    assert shown["with the cache, until"] == until
    assert panel.story.startswith(
        f"With 1,024 tokens of context and shared 0.42, drafting pays until batch {roofline.batch_of(until)}; "
        "by weights alone until batch"
    )


def test_drafting_may_begin_to_pay_with_more_readers() -> None:
    """A verification reads the cache once, and a small target's cache soon is most of what it reads."""
    pair = PRICED_PAIRS["smollm2-135m+embedded-drafter"]
    scene = Scene(ACCELERATORS["b200"], pair, context=512, gamma=16, alpha=0.57)
    assert roofline.where(roofline.paying(scene)) == "from batch 7.8 to 69.7"
    assert roofline.where(((1, 12.36), (300.4, 1024))) == "until batch 12.4, and again from batch 300 on"
    assert roofline.where(((3, 40),)) == "from batch 3.0 to 40.0"


def test_todays_alpha_is_named_in_the_table() -> None:
    labels = cells(roofline.payoff(replace(SCENE, alpha=0.5), today=0.43), "alpha")
    assert "0.430 (today’s)" in labels
    assert "0.500 (yours)" in labels


# --- context, quantising, size ----------------------------------------------------------------------------------------


def test_cache_and_weights_weigh_the_same_where_the_page_says() -> None:
    assert roofline.even_context(SCENE, SMALL.target) == pytest.approx(122_500, rel=1e-3)
    for pair in PRICED_PAIRS.values():
        scene = replace(SCENE, pair=pair)
        for shape in (pair.target, pair.drafter):
            at = roofline.even_context(scene, shape)
            if at is not None:
                assert cost.kv_read_bytes(shape, round(at)) == pytest.approx(
                    cost.weight_bytes(shape, count="stored"), rel=1e-3
                )


def test_the_share_of_the_cache_grows_with_the_context() -> None:
    panel = roofline.context_share(SCENE)
    for line in panel.figure.data:
        assert list(line.y) == sorted(line.y)
        assert 0 <= min(line.y) <= max(line.y) <= 1


def test_only_drafting_leaves_the_answers_alone() -> None:
    panel = roofline.two_by_two(replace(SCENE, alpha=0.8))
    assert cells(panel, "weights") == ["bf16", "bf16", "int4", "int4"]
    assert cells(panel, "does it change the model’s answers?") == ["no", "no", "yes", "yes"]
    speeds = [float(speed.rstrip("×")) for speed in cells(panel, "speed")]
    assert speeds[0] == 1
    assert speeds[3] > max(speeds[1], speeds[2])
    assert panel.story.startswith("Both together are fastest")


def test_losses_are_shown_in_the_two_by_two() -> None:
    panel = roofline.two_by_two(replace(SCENE, alpha=0.1))
    assert float(cells(panel, "speed")[1].rstrip("×")) < 1
    assert panel.story.startswith("int4 alone is fastest")


def test_the_big_model_is_priced_on_two_chips() -> None:
    panel = roofline.decoupled(replace(SCENE, alpha=0.8))
    plain = cost.pass_cost(BIG.target, H100.times(2), count="stored").seconds
    assert cells(panel, "a token")[1] == numbers.duration(plain)
    assert "2 × H100 SXM" in panel.table.rows[2][0]
    needed = roofline.alpha_needed(replace(SCENE, pair=BIG), SCENE.price().plain_s)
    assert needed is not None
    best = max(replace(SCENE, pair=BIG).price(gamma).speed(needed) for gamma in range(17))
    assert plain / best == pytest.approx(SCENE.price().plain_s, rel=5e-3)
    assert f"shared {needed:.3f}" in panel.numbers[0]


# --- a chip of one's own ----------------------------------------------------------------------------------------------


def test_a_chip_is_typed_in_the_units_of_a_data_sheet() -> None:
    chip = roofline.typed(3.35, 989.4)
    assert (chip.bandwidth, chip.rate("bf16"), chip.origin) == (3.35e12, 989.4e12, "custom")


@pytest.mark.parametrize("numbers", [(0, 100), (-1, 100), (1, 0), (1e9, 100), (1, 1e9), (math.nan, 1), (1, math.inf)])
def test_a_chip_that_cannot_be_is_refused_in_words(numbers: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match=r"must be between .* and .* T(B|FLOP)/s, got"):
        roofline.typed(*numbers)


# --- every setting ----------------------------------------------------------------------------------------------------

CHIPS = st.sampled_from(list(ACCELERATORS.values())) | st.builds(
    roofline.typed, st.floats(*roofline.CUSTOM_TB_S), st.floats(*roofline.CUSTOM_TFLOP_S)
)
SCENES = st.builds(
    Scene,
    chip=CHIPS,
    pair=st.sampled_from(list(PRICED_PAIRS.values())),
    dtype=st.sampled_from(DTYPES),
    batch=st.sampled_from(roofline.BATCHES),
    context=st.sampled_from(roofline.CONTEXTS),
    gamma=st.integers(*roofline.GAMMAS),
    alpha=st.floats(0, 1),
    count=st.sampled_from(("read", "stored")),
)


def finite(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(finite, value.values()))
    if isinstance(value, list):
        return all(map(finite, value))
    return not isinstance(value, float) or math.isfinite(value)


@settings(max_examples=25)
@given(SCENES, st.none() | st.floats(0, 1))
def test_every_setting_gives_finite_figures_and_whole_sentences(scene: Scene, today: float | None) -> None:
    for panel in all_panels(scene, today=today):
        said = words_of(panel)
        assert not re.search(r"\b(?:nan|inf|None)\b|[{}]|\de[+-]?\d\d", said), said
        assert all(part.strip() for part in (panel.title, panel.story, panel.formula))
        assert panel.badge == "modelled"
        if panel.figure is not None:
            assert finite(json.loads(panel.figure.to_json()))
            assert panel.alt


@given(SCENES)
def test_the_sentence_the_curve_and_the_set_batch_agree(scene: Scene) -> None:
    """Whether drafting pays at a batch is one answer, wherever the page gives it."""
    spans = roofline.paying(scene) if scene.gamma else ()
    for batch in (*roofline.BATCHES, 3, 12, 100, 700):
        speed = scene.price(batch=batch).speed(scene.alpha)
        if abs(speed - 1) > 1e-9:
            assert (speed > 1) == any(low <= batch <= high for low, high in spans), (batch, speed, spans)


@settings(max_examples=25)
@given(SCENES)
def test_the_labels_of_the_marks_stand_apart(scene: Scene) -> None:
    panel = roofline.payoff(scene)
    low, high = panel.figure.layout.yaxis.range
    top = max(max(one.y) for one in panel.figure.data if one.mode == "lines")
    rows = sorted(note.ay for note in panel.figure.layout.annotations)
    assert len(rows) == len(marked(panel))
    assert all(top < row < high for row in rows)
    assert all(above - below > 0.06 * (high - low) for below, above in pairwise(rows))


@settings(max_examples=50)
@given(SCENES)
def test_a_mixtures_sentence_is_that_of_its_bars(scene: Scene) -> None:
    panel = roofline.sweep(scene, mixture=True)
    first, last = (max(trace(panel, name).y[index] for name in ("reading", "multiplying")) for index in (0, -1))
    assert ("nearly free" in panel.story) == (last / first < 1.05)
    assert ("drafts are not free" in panel.story) == (last / first >= 1.05)


@given(st.floats(1e-12, 1e18))
def test_numbers_keep_their_digits(value: float) -> None:
    written = numbers.significant(value)
    assert float(written.replace(",", "")) == pytest.approx(value, rel=6e-3)
    assert "e" not in written


# --- charts -----------------------------------------------------------------------------------------------------------


def test_a_figure_carries_no_colour_of_its_own() -> None:
    """The page's own colours are put in where it is drawn, light or dark."""
    for panel in all_panels(SCENE):
        if panel.figure is not None:
            assert not re.findall(r"#[0-9a-f]{6}|rgb\((?!0,0,0,0)", panel.figure.to_json())


def test_text_in_a_figure_stays_text() -> None:
    assert charts.escaped("<b>a</b> & <img src=x>") == "&lt;b&gt;a&lt;/b&gt; &amp; &lt;img src=x&gt;"
