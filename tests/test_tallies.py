"""The tally counts what the rounds hold: every number is found again by hand."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specviz.figures import numbers, tallies
from specviz.figures.sentences import plain
from specviz.trace import Closing, Draft, Pass, Round, Row, Trace
from tests.synthetic_traces import make_trace

RULES = ("speculative_sampling", "greedy", "gumbel_coupling", "token_match", "block_verification")


@pytest.fixture(scope="module", params=RULES)
def trace(request: pytest.FixtureRequest) -> Trace:
    return make_trace(request.param, tokens=96, may_stop=True)


def round_of(index: int, gamma: int, kept: int, **settings: Any) -> Round:
    """A round of ``gamma`` drafts of which the first ``kept`` stay; every place expects 0.5."""
    row = Row(tv=0.5, expected_accept=0.5)
    fate = ["kept" if i < kept else "rejected" if i == kept else "unjudged" for i in range(gamma)]
    drafts = tuple(Draft(id=i, fate=one, row=row) for i, one in enumerate(fate))  # type: ignore[arg-type]
    passes = (*(Pass("drafter", "draft", 1, 0, 0.01) for _ in drafts), Pass("target", "verify", gamma + 1, 0, 0.11))
    kind = "plain" if not gamma else "bonus" if kept == gamma else "correction"
    emitted = (*range(kept), 99)
    rule = {"rule": "speculative_sampling", "gamma": gamma, "temperature": 1.0, "drafter_temperature": 1.0}
    seconds = 0.11 + 0.01 * gamma + 0.006
    closing = Closing(99, kind)  # type: ignore[arg-type]
    return Round(index, 0, {**rule, **settings}, drafts, closing, emitted, None, passes, seconds)


shapes = st.lists(st.integers(0, 5).flatmap(lambda gamma: st.tuples(st.just(gamma), st.integers(0, gamma))), min_size=1)


# --- rates ------------------------------------------------------------------------------------------------------------


def test_every_rate_carries_its_fraction(trace: Trace) -> None:
    measures = {measure.name: measure for measure in tallies.layout(trace.rounds).measures}
    kept = sum(draft.fate == "kept" for round_ in trace.rounds for draft in round_.drafts)
    judged = kept + sum(draft.fate == "rejected" for round_ in trace.rounds for draft in round_.drafts)
    drafted = sum(len(round_.drafts) for round_ in trace.rounds)
    rows = [d.row for r in trace.rounds for d in r.drafts if d.fate in ("kept", "rejected")]
    shared = sum(1 - row.tv for row in rows if row is not None and row.tv is not None) / judged
    written = sum(len(round_.emitted) for round_ in trace.rounds)
    assert measures["kept of judged"].fraction == f"{kept}/{judged}"
    assert measures["kept of drafted"].fraction == f"{kept}/{drafted}"
    assert measures["tokens per read"].fraction == f"{written}/{len(trace.rounds)}"
    assert measures["shared (alpha)"].value == numbers.probability(shared)
    assert measures["kept of judged"].value == numbers.probability(kept / judged)
    assert measures["tokens per read"].value == f"{written / len(trace.rounds):.2f}"


def test_a_rate_over_too_few_drafts_is_grey() -> None:
    short = tallies.layout(make_trace(tokens=5).rounds)
    assert {measure.few for measure in short.measures} == {True}
    assert {measure.what for measure in short.measures} == {tallies.TOO_FEW}
    assert {measure.whole for measure in short.measures} == {""}


def test_beside_a_grey_rate_stands_that_of_the_whole_run_where_it_is_known() -> None:
    trace = make_trace(tokens=96)
    whole = {m.name: m for m in tallies.layout(trace.rounds).measures}
    for measure in tallies.layout(trace.rounds[:1], whole=trace.rounds).measures:
        there = whole[measure.name]
        assert measure.whole == f"whole run: {there.value} ({there.fraction})"
    assert {m.whole for m in tallies.layout(trace.rounds, whole=trace.rounds).measures} == {""}


def test_without_drafts_there_is_no_rate_of_drafts() -> None:
    panel = tallies.layout(make_trace(gamma=0, tokens=12).rounds)
    assert [measure.name for measure in panel.measures] == ["tokens per read"]
    assert panel.measures[0].value == "1.00"
    assert panel.lines == (tallies.NO_DRAFTS,)
    assert (panel.places, panel.lengths, panel.band, panel.pay) == ((), (), None, ())
    assert tallies.layout(()).measures == ()


def test_story_shows_tokens_per_read_and_whether_it_paid_only() -> None:
    panel = tallies.layout(make_trace().rounds, story=True, twin=make_trace(gamma=0))
    assert [measure.name for measure in panel.measures] == ["tokens per read"]
    assert (panel.places, panel.lengths, panel.band, panel.lines, panel.formula) == ((), (), None, (), None)
    assert panel.pay


def test_what_a_record_lacks_is_said_and_never_divided() -> None:
    bare = Round(0, 1, {"rule": "speculative_sampling"}, (Draft(1, fate="rejected"),), Closing(2, "correction"), (2,))
    panel = tallies.layout([bare], twin=make_trace(gamma=0))
    measures = {measure.name: measure for measure in panel.measures}
    assert measures["shared (alpha)"].fraction == "p and q not recorded"
    assert measures["tokens per read"].fraction == "reads not recorded"
    assert tallies.NOT_EXPECTED in panel.lines
    assert "no times" in plain(panel.pay)
    assert "0/0" not in json.dumps(dataclasses.asdict(panel))


@given(shapes)
def test_no_panel_divides_by_nothing_or_loses_a_round(shape: list[tuple[int, int]]) -> None:
    rounds = [round_of(i, gamma, kept) for i, (gamma, kept) in enumerate(shape)]
    panel = tallies.layout(rounds)
    json.dumps(dataclasses.asdict(panel))
    assert "0/0" not in str(panel)
    assert "nan" not in str(panel)
    if panel.lengths:
        assert sum(bar.rounds for bar in panel.lengths) == len(rounds)
        assert sum(share for bar in panel.lengths for *_, share in bar.parts) == pytest.approx(1)
    for bar in panel.places:
        drafted = [r for r in rounds if len(r.drafts) >= bar.place]
        reached = [r for r in drafted if all(d.fate == "kept" for d in r.drafts[: bar.place])]
        judged = [r for r in drafted if r.drafts[bar.place - 1].fate in ("kept", "rejected")]
        here = [r for r in judged if r.drafts[bar.place - 1].fate == "kept"]
        assert bar.reached.fraction == f"{len(reached)}/{len(drafted)}"
        assert bar.kept.fraction == (f"{len(here)}/{len(judged)}" if judged else "none")
        assert bar.kept.share == (len(here) / len(judged) if judged else None)
        assert bar.kept.few == (len(judged) < 10)


def test_the_bars_by_place_and_by_length_hold_for_every_rule(trace: Trace) -> None:
    panel = tallies.layout(trace.rounds)
    kept = sum(round_.kept for round_ in trace.rounds)
    assert sum(int(bar.reached.fraction.split("/")[0]) for bar in panel.places) == kept
    for bar in panel.lengths:
        assert bar.rounds == sum(len(round_.emitted) == bar.tokens for round_ in trace.rounds)
    longest = max(len(round_.emitted) for round_ in trace.rounds)
    assert [bar.tokens for bar in panel.lengths] == [*range(1, longest + 1)]
    for place in panel.places:
        here = sum(len(r.drafts) >= place.place and r.drafts[place.place - 1].fate == "kept" for r in trace.rounds)
        assert place.kept.fraction.split("/")[0] == (str(here) if place.kept.share is not None else "none")


@given(shapes)
def test_rows_in_which_nothing_is_counted_are_folded_and_stay_in_the_table(shape: list[tuple[int, int]]) -> None:
    rounds = [round_of(i, gamma, kept) for i, (gamma, kept) in enumerate(shape)]
    panel = tallies.layout(rounds)
    widest, deepest = max(gamma for gamma, _ in shape), max(min(kept + 1, gamma) for gamma, kept in shape)
    assert [bar.place for bar in panel.places] == [*range(1, deepest + 1)]
    assert (panel.folded.places == "") == (deepest == widest)
    if widest:
        most = max(kept for _, kept in shape) + 1
        assert [bar.tokens for bar in panel.lengths] == [*range(1, most + 1)]
        assert (panel.folded.lengths == "") == (most == widest + 1)
        named = {row[0] for row in panel.table.rows}
        assert {f"kept at place {place}" for place in range(1, widest + 1)} <= named


def test_what_is_folded_is_said() -> None:
    panel = tallies.layout([round_of(i, 16, 4) for i in range(20)])
    assert panel.folded == tallies.Folded("places 6–16: none judged", "6–17 tokens: no round")
    assert tallies.layout([round_of(0, 3, 1)]).folded.places == "place 3: none judged"


@pytest.mark.parametrize(("kept", "value"), [(4, "1.00"), (0, "0.00")])
def test_a_rate_of_exactly_one_or_none_has_two_digits_like_its_neighbours(kept: int, value: str) -> None:
    panel = tallies.layout([round_of(i, 4, kept) for i in range(12)])
    assert {m.value for m in panel.measures if m.name in ("kept of judged", "kept of drafted")} == {value}
    assert panel.places[0].kept.value == panel.places[0].reached.value == value


def test_a_round_that_a_kept_stop_token_ended_closes_with_no_token_of_its_own() -> None:
    trace = make_trace(may_stop=True, seed=7)
    assert trace.rounds[-1].closing is None
    last = next(bar for bar in tallies.layout(trace.rounds).lengths if bar.tokens == len(trace.rounds[-1].emitted))
    assert ("both", "kept") in {parts[:2] for parts in last.parts}


# --- what the rule expects --------------------------------------------------------------------------------------------


def settled(trace: Trace, **settings: Any) -> list[Round]:
    return [dataclasses.replace(r, settings={**(r.settings or {}), **settings}) for r in trace.rounds]


@pytest.mark.parametrize("rule", ["speculative_sampling", "gumbel_coupling", "token_match"])
def test_the_band_is_the_sum_of_the_places_chances(rule: str) -> None:
    trace = make_trace(rule, tokens=96)
    rows = [d.row for r in trace.rounds for d in r.drafts if d.fate in ("kept", "rejected")]
    chances = [row.expected_accept for row in rows if row is not None and row.expected_accept is not None]
    width = 2 * math.sqrt(sum(e * (1 - e) for e in chances))
    panel = tallies.layout(trace.rounds)
    assert panel.band is not None
    assert panel.band.expected == pytest.approx(sum(chances))
    assert panel.band.low == pytest.approx(max(0, sum(chances) - width))
    assert panel.band.high == pytest.approx(min(len(chances), sum(chances) + width))
    assert f"{sum(chances):.1f} ± {width:.1f}" in panel.lines[0]
    inside = abs(panel.band.kept - sum(chances)) <= width
    assert panel.lines[0].endswith(f"{tallies.INSIDE[inside]}.")
    assert panel.formula is not None
    assert tallies.CHANCES[rule] in panel.formula


def test_a_run_outside_the_band_is_called_so() -> None:
    panel = tallies.layout([round_of(i, 4, 4) for i in range(5)])
    assert panel.band is not None
    assert panel.band.kept > panel.band.high
    assert tallies.INSIDE[False] in panel.lines[0]


def test_what_cannot_be_expected_is_said_of_its_own_rounds_only() -> None:
    block = list(make_trace("block_verification").rounds)
    sampling = settled(make_trace(), temperature=1.0, drafter_temperature=1.0)
    greedy = settled(make_trace("greedy"), temperature=0.0, drafter_temperature=0.0)
    assert tallies.BLOCK in tallies.layout(block).lines
    assert tallies.CERTAIN in tallies.layout(greedy).lines
    assert tallies.layout(block).band is None
    assert tallies.layout(greedy).band is None
    for mixed in (sampling + greedy, sampling + block):
        expectation = next(line for line in tallies.layout(mixed).lines if line.startswith("Kept so far"))
        assert (tallies.BLOCK_LEFT_OUT in expectation) == (block[0] in mixed)


def test_at_temperature_zero_nothing_is_left_to_chance_under_any_rule() -> None:
    calm = settled(make_trace(), temperature=0.0, drafter_temperature=0.0)
    assert tallies.CERTAIN in tallies.layout(calm).lines
    drawn = settled(make_trace(), temperature=0.0, drafter_temperature=1.0)
    assert tallies.CERTAIN not in tallies.layout(drawn).lines


def test_rounds_with_different_settings_are_counted_together_and_said_to_be() -> None:
    rounds = [round_of(0, 4, 1), round_of(1, 4, 0), round_of(2, 2, 2, temperature=0.5, drafter_temperature=0.5)]
    said = tallies.layout(rounds).lines[0]
    assert said == "Counts rounds with different settings: gamma 4, then 2; temperature 1, then 0.5."
    assert not any("different" in line for line in tallies.layout(rounds[:2]).lines)


def test_what_a_drafter_reads_for_nothing_is_counted_and_a_copy_reads_nothing() -> None:
    rounds = [round_of(0, 4, 1), round_of(1, 3, 3)]
    assert tallies.WASTED.format(reads="3 of 7") in tallies.layout(rounds).lines
    copied = [dataclasses.replace(r, passes=r.passes[-1:]) for r in rounds]
    assert tallies.COPIED.format(reads="3 of 7") in tallies.layout(copied).lines


# --- seconds ----------------------------------------------------------------------------------------------------------


def alone(rounds: int, read: float, rest: float = 0.0) -> Trace:
    """The target alone at ``read`` seconds a token, and ``rest`` beside the read."""
    trace = make_trace(gamma=0, tokens=rounds)
    passes = (Pass("target", "prefill", 5, 0, 9.0), Pass("target", "verify", 1, 0, read))
    slow = [
        dataclasses.replace(r, passes=passes[i > 0 :], seconds=read + rest + 9.0 * (i == 0))
        for i, r in enumerate(trace.rounds)
    ]
    return Trace(trace.header, tuple(slow))


def test_whether_it_paid_is_seconds_a_token_without_the_prompts_read() -> None:
    rounds = [round_of(i, 4, 1) for i in range(10)]  # 20 tokens in 10 × 0.156 s
    first = rounds[0]
    prefill = Pass("target", "prefill", 30, 0, 5.0)
    rounds[0] = dataclasses.replace(first, passes=(prefill, *first.passes), seconds=5.0 + (first.seconds or 0))
    said = plain(tallies.layout(rounds, twin=alone(40, 0.06)).pay)
    assert said.startswith("On this machine, measured: 78 ms a token against 60 alone: 0.77×, slower than the target")
    assert "The wider target reads ate it: 60 ms alone would be 30 at 2.00 tokens a read; " in said
    assert "reading 5 places at once adds 25, the drafter’s reads 20, the rule and the rest 3: 78." in said
    faster = plain(tallies.layout(rounds, twin=alone(40, 0.1)).pay)
    assert "1.28×, faster than the target alone" in faster
    assert "The drafter’s reads cost the most: 100 ms alone would be 50 at 2.00 tokens a read; " in faster
    cheap = [dataclasses.replace(r, passes=(Pass("target", "verify", 5, 0, 0.06),), seconds=0.06) for r in rounds[1:]]
    assert "nothing was lost on the way" in plain(tallies.layout(cheap, twin=alone(40, 0.06)).pay)
    half = [dataclasses.replace(r, seconds=0.2) for r in rounds[1:]]
    assert "1.00×, as fast as the target alone" in plain(tallies.layout(half, twin=alone(40, 0.1)).pay)


@given(shapes, st.floats(0.01, 1.0), st.floats(0.0, 0.1))
def test_what_ate_it_adds_up_to_the_whole_difference(shape: list[tuple[int, int]], read: float, rest: float) -> None:
    ours = tallies.seconds(round_of(i, gamma, kept) for i, (gamma, kept) in enumerate(shape))
    plain_ = tallies.seconds(alone(12, read, rest).rounds)
    assert ours is not None
    assert plain_ is not None
    parts = tallies._parts(ours, plain_)
    per_read = ours.tokens / ours.reads
    whole = ours.rounds / ours.tokens - plain_.rounds / plain_.tokens / per_read
    assert sum(parts.values()) == pytest.approx(whole, abs=1e-9)


@given(shapes, st.floats(0.0001, 1.0), st.floats(0.0, 0.1))
def test_the_times_add_up_as_they_are_written(shape: list[tuple[int, int]], read: float, rest: float) -> None:
    rounds = [round_of(i, gamma, kept) for i, (gamma, kept) in enumerate(shape)]
    said = plain(tallies.layout(rounds, twin=alone(200, read, rest)).pay)
    ours = tallies.seconds(rounds)
    assert ours is not None
    if " alone would be " not in said:
        assert "nothing was lost" in said or not any(gamma for gamma, _ in shape)
        return
    said = said.replace(" (less than alone)", "")
    written = re.search(r"would be (\S+) at .*; .* adds (\S+), .* (\S+), .* (\S+): (\S+)\.", said)
    assert written is not None
    *parts, total = (Decimal(number.replace("−", "-")) for number in written.groups())
    assert sum(parts) == total
    assert f"{total} ms a token" in said
    unit = Decimal(1).scaleb(total.as_tuple().exponent)  # type: ignore[arg-type]
    ideal = 1000 * (read + rest) * ours.reads / ours.tokens
    assert abs(float(parts[0]) - ideal) <= 0.501 * float(unit)
    of_parts = tallies._parts(ours, tallies.seconds(alone(200, read, rest).rounds))  # type: ignore[arg-type]
    for shown, exact in zip(parts[1:], sorted(of_parts.values(), reverse=True), strict=True):
        assert abs(float(shown) - 1000 * exact) <= 2.01 * float(unit)


def test_story_says_whether_it_paid_and_what_cost_the_most_without_the_sum() -> None:
    rounds = [round_of(i, 4, 1) for i in range(10)]
    slower = plain(tallies.layout(rounds, story=True, twin=alone(40, 0.06)).pay)
    assert slower.endswith("0.77×, slower than the target alone. The wider target reads cost the most.")
    faster = plain(tallies.layout(rounds, story=True, twin=alone(40, 0.1)).pay)
    assert faster.endswith("1.28×, faster than the target alone. The drafter’s reads cost the most.")


@pytest.mark.parametrize(
    ("drafter", "target", "rest", "blamed"),
    [(0.05, 0.06, 0.0, "drafter"), (0.001, 0.2, 0.0, "wider"), (0.001, 0.06, 0.3, "rule")],
)
def test_the_largest_loss_is_named(drafter: float, target: float, rest: float, blamed: Any) -> None:
    passes = (*(Pass("drafter", "draft", 1, 0, drafter) for _ in range(4)), Pass("target", "verify", 5, 0, target))
    slow = [
        dataclasses.replace(round_of(i, 4, 0), passes=passes, seconds=4 * drafter + target + rest) for i in range(12)
    ]
    said = plain(tallies.layout(slow, twin=alone(20, 0.06)).pay)
    assert "slower than the target alone" in said
    assert f"{tallies.EATEN[blamed]} ate it" in said


def test_recorded_and_live_rounds_never_share_a_clock() -> None:
    slow = [dataclasses.replace(round_of(i, 4, 1), seconds=9.0) for i in range(3)]
    rounds = [*slow, *(round_of(i, 4, 1) for i in range(3, 20))]
    twin = alone(60, 0.06)
    mixed = plain(tallies.layout(rounds, twin=twin, live_from=3).pay)
    assert mixed.startswith("On this machine, measured, the 17 rounds decoded here: 78 ms")
    recorded = plain(tallies.layout(rounds[3:], twin=twin, live_from=None).pay)
    assert recorded.startswith("Measured when it was recorded: 78 ms")


def test_where_nothing_can_be_compared_the_page_says_why() -> None:
    rounds = [round_of(i, 4, 1) for i in range(4)]
    assert "Let the target write it alone" in plain(tallies.layout(rounds).pay)
    assert "not recorded" in plain(tallies.layout(rounds, live_from=None).pay)
    turned = [*rounds, round_of(4, 4, 1, temperature=0.3)]
    assert "changed midway" in plain(tallies.layout(turned).pay)
    timeless = [dataclasses.replace(r, seconds=None) for r in rounds]
    assert "no times" in plain(tallies.layout(timeless, twin=alone(20, 0.1)).pay)


def test_a_few_tokens_say_little_about_speed_and_the_whole_run_stands_in_where_it_is_known() -> None:
    rounds = [round_of(i, 4, 1) for i in range(12)]
    twin = alone(40, 0.06)
    assert "4 tokens only: too few to say" in plain(tallies.layout(rounds[:2], twin=twin).pay)
    whole = plain(tallies.layout(rounds[:2], twin=twin, whole=rounds, live_from=None).pay)
    assert whole.startswith("Measured when it was recorded, whole run: 78 ms")
    assert "too few" not in whole


@given(st.floats(1e-5, 10), st.floats(1e-5, 10))
def test_two_times_that_differ_are_written_differently(one: float, other: float) -> None:
    written = tallies._milliseconds(one, other)
    if abs(one - other) > 1e-9 * max(one, other):
        assert written[0] != written[1]
    assert all(float(text) > 0 for text in written)


# --- the engines' names -----------------------------------------------------------------------------------------------


def golden() -> list[Round]:
    """87 rounds, 259 drafts, 167 kept: 70 kept at least one, 55 two, 42 three, as in ggml-org/llama.cpp#24536."""
    kept = [3] * 42 + [2] * 13 + [1] * 15 + [0] * 17
    gammas = [3] * 42 + [3] * 13 + [3] * 13 + [2] * 2 + [3] * 17
    return [round_of(i, gamma, k) for i, (gamma, k) in enumerate(zip(gammas, kept, strict=True))]


def test_an_engines_own_log_is_found_again_by_its_definition() -> None:
    rounds = golden()
    assert sum(len(r.drafts) for r in rounds) == 259
    rows = {
        row[0]: dict(zip(tallies.layout(rounds).engines.columns, row, strict=True))
        for row in tallies.layout(rounds).engines.rows
    }
    assert "167/259 = 0.64" in rows["kept of drafted"]["llama.cpp"]
    assert "1 + 167/87 = 2.92" in rows["tokens per read"]["llama.cpp"]
    assert rows["1, 2, … or more kept"]["llama.cpp"].endswith("0.80, 0.63, 0.48")
    assert rows["1, 2, … or more kept"]["vLLM"].endswith("0.80, 0.63, 0.48")
    assert rows["tokens a round"]["vLLM"].endswith("[17, 15, 13, 42]")
    assert "254/87 = 2.92" in rows["tokens per read"]["SGLang"]
    assert {row["transformers"] for row in rows.values()} == {tallies.UNREPORTED}


def test_engines_words_stand_in_their_table_only() -> None:
    panel = dataclasses.asdict(tallies.layout(golden(), twin=alone(300, 0.1)))
    panel.pop("engines")
    said = json.dumps(panel)
    assert not any(word in said for word in ("vLLM", "llama", "SGLang", "accept", "transformers"))


@pytest.mark.parametrize("expected", [1 + 2e-16, 1 + 1e-9, -1e-9])
def test_a_chance_that_misses_its_bounds_by_rounding_is_told_all_the_same(expected: float) -> None:
    """A sum over a vocabulary where both models want the same may be 1.0000000000000002."""
    round_ = make_trace().rounds[0]
    drafts = []
    for draft in round_.drafts:
        assert draft.row is not None
        row = dataclasses.replace(draft.row, expected_accept=expected, tv=1 - expected)
        drafts.append(dataclasses.replace(draft, fate="kept", row=row))
    layout = tallies.layout([dataclasses.replace(round_, drafts=tuple(drafts))])
    assert tallies.CERTAIN in layout.lines
    assert layout.band is None
    assert layout.measures[0].value in ("1.00", "0.00")
