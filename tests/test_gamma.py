"""The Gamma page's figures: golden numbers, and every sentence against theory and sweep."""

from __future__ import annotations

import json
import math
import time
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specviz import theory
from specviz.experiments import Policy, Sweep, SweepRun
from specviz.figures import gamma, sweep
from specviz.figures.charts import Panel
from specviz.figures.gamma import Found, Scene
from tests import sweeps

SCENE = Scene(alpha=0.6, c=0.1, gamma=4)
TODAY = Found("today", 0.4, 0.1, "the run on Decode", "recorded")
SWEPT = Found("the sweep", 0.5, 0.2, "the sweep below", "measured")
MEASURED = sweeps.sweep()


def trace(panel: Panel, name: str) -> Any:
    """A trace of the panel's figure."""
    assert panel.figure is not None
    return next(one for one in panel.figure.data if one.name is not None and one.name.startswith(name))


def cells(panel: Panel, column: str) -> list[str]:
    """A column of the panel's table."""
    index = panel.table.columns.index(column)
    return [row[index] for row in panel.table.rows]


def measured_panels(one: Sweep, policy: Policy | None = None) -> list[Panel]:
    return [
        sweep.speeds(one, policy, "recorded"),
        sweep.yields(one, "recorded"),
        sweep.places(one, "recorded"),
        sweep.stopping(one, "recorded"),
        sweep.waterfall(one, policy, "recorded"),
    ]


# --- theory -----------------------------------------------------------------------------------------------------------


def test_the_curves_hold_the_published_numbers() -> None:
    panel = gamma.curves(Scene(alpha=0.8, c=0.1, gamma=4, c_ops=0.0))
    assert trace(panel, "speed").y[4] == pytest.approx(2.401, abs=5e-4)
    assert trace(panel, "tokens a read").y[8] == pytest.approx(4.3289, abs=5e-4)
    assert trace(panel, "arithmetic").y[5] == pytest.approx(1.6263, abs=5e-5)
    assert "1.6869" in panel.formula  # kept / (1 + gamma c), the slip
    assert len(panel.table.rows) == 41


@pytest.mark.parametrize(
    ("alpha", "c", "best", "speed"),
    [(0.3, 0.3, 0, 1.0), (0.5, 0.05, 3, 1.63), (0.6, 0.1, 3, 1.674), (0.9, 0.01, 24, 7.486), (0.95, 0.01, 40, 12.542)],
)
def test_the_story_names_the_best_gamma(alpha: float, c: float, best: int, speed: float) -> None:
    scene = Scene(alpha, c, 4)
    told = gamma.story(scene)
    assert scene.best == best
    if best:
        assert f"{best} drafts a round should be best: {sweep.times(speed)[:4]}" in told
    else:
        assert "no gamma pays" in told


def test_a_best_gamma_beyond_what_is_looked_at_is_not_called_the_best() -> None:
    assert "40 drafts a round or more should be best: 28.1× with 40" in gamma.story(Scene(0.99, 0.005, 4))
    assert "40 drafts a round or more" in gamma.best_map(SCENE, [Found("today", 0.99, 0.005, "here", "measured")]).story


def test_where_a_draft_brings_what_it_costs_none_is_said_to_cost_more() -> None:
    assert "no draft brings more than it costs" in gamma.story(Scene(0.3, 0.3, 4))


@given(st.integers(0, 1_000), st.integers(0, 1_000))
def test_costs_in_the_same_words_are_the_same_to_a_thousandth(one: int, other: int) -> None:
    a, b = one / 1_000, other / 1_000
    assert (gamma.cost(a) == gamma.cost(b)) == (a == b)
    assert (gamma.ratio(a) == gamma.ratio(b)) == (a == b)


def test_a_loss_is_told_as_one() -> None:
    assert "0.29×, slower than the target alone; the drafter’s reads eat it" in gamma.story(Scene(0.3, 0.5, 8))


def test_gamma_0_and_endless_gammas_have_their_sentence() -> None:
    assert "no drafts, plain decoding" in gamma.story(Scene(0.5, 0.1, 0))
    for scene in (Scene(1.0, 0.1, 4), Scene(0.5, 0.0, 4)):
        panel = gamma.curves(scene)
        assert "every further draft pays" in panel.story
        assert not any((one.name or "").startswith("best") for one in panel.figure.data)


@given(st.floats(0, 1), st.floats(0, 1), st.integers(0, 40), st.floats(0, 1))
@settings(max_examples=25)
def test_every_scene_can_be_drawn(alpha: float, c: float, drafts: int, ops: float) -> None:
    panel = gamma.curves(Scene(alpha, c, drafts, ops))
    json.loads(panel.figure.to_json())
    low, high = panel.figure.layout.yaxis.range
    shown = [math.log10(y) for one in panel.figure.data for y in one.y]
    assert all(low <= y <= high for y in shown)


def test_the_map_agrees_with_the_theory() -> None:
    panel = gamma.best_map(SCENE, [TODAY])
    heat = panel.figure.data[0]
    for row, column in ((0, 0), (30, 26), (45, 18), (50, 20), (10, 40)):
        best = theory.optimal_gamma(gamma.ALPHAS[row], gamma.RATIOS[column], 40)
        assert heat.text[row][column] == str(best)
        assert heat.z[row][column] == pytest.approx(math.log2(best + 1))
    labels = panel.figure.data[-1]
    assert labels.mode == "text", "the numbers lie above the marks"
    at = list(zip(labels.x, labels.y, strict=True)).index((0.05, 0.8))
    assert labels.text[at] == "8"


def test_the_map_marks_what_is_set_and_what_came_out_today() -> None:
    panel = gamma.best_map(SCENE, [TODAY])
    assert (*trace(panel, "yours").x, *trace(panel, "yours").y) == (0.1, 0.6)
    assert (*trace(panel, "today").x, *trace(panel, "today").y) == (0.1, 0.4)
    assert panel.badge == "modelled · recorded"
    both = gamma.best_map(SCENE, [TODAY, SWEPT])
    assert (*trace(both, "the sweep").x, *trace(both, "the sweep").y) == (0.2, 0.5)
    assert both.badge == "modelled · recorded · measured"
    assert "The square: shared 0.50, c 0.20, of the sweep below." in both.numbers
    assert len(gamma.best_map(SCENE, []).figure.data) == len(panel.figure.data) - 1
    assert all("open" in one.marker.symbol for one in both.figure.data[1:-1]), "a number shows in it"


def test_a_slider_answers_within_a_tenth_of_a_second() -> None:
    gamma.best_map(SCENE, [TODAY])
    taken = []
    for alpha in (0.31, 0.52, 0.73):
        start = time.process_time()
        scene = Scene(alpha, 0.1, 4)
        gamma.curves(scene).figure.to_json()
        gamma.best_map(scene, [TODAY]).figure.to_json()
        taken.append(time.process_time() - start)
    assert min(taken) < 0.1


# --- engines ----------------------------------------------------------------------------------------------------------


def test_each_engine_is_told_the_gamma() -> None:
    flags = {engine.name: engine.flags for engine in gamma.engines(5)}
    config = json.loads(flags["vLLM"].partition("--speculative-config '")[2][:-1])
    assert config["num_speculative_tokens"] == 5
    assert "--speculative-num-steps 5 " in flags["SGLang"]
    assert "--speculative-num-draft-tokens 6" in flags["SGLang"]
    assert "--spec-type draft-simple" in flags["llama.cpp"]
    assert "--spec-draft-n-max 5" in flags["llama.cpp"]
    assert all(engine.page.startswith("https://") for engine in gamma.engines(5))


def test_the_flags_of_transformers_are_ones_that_it_knows() -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.GenerationConfig()
    call = gamma.engines(3)[-1].flags.partition("target.generate")[0]
    exec(call, {"drafter": SimpleNamespace(generation_config=config)})
    assert config.num_assistant_tokens == 3
    assert config.num_assistant_tokens_schedule == "constant"
    assert config.assistant_confidence_threshold == 0


# --- a sweep ----------------------------------------------------------------------------------------------------------


def test_the_theory_runs_through_the_same_axes() -> None:
    panel = sweep.speeds(MEASURED, Policy(4), "recorded")
    alone = MEASURED.tokens_per_second(Policy(0))
    assert alone is not None
    measured, free, timed = (trace(panel, name) for name in ("measured", "theory, wide reads free", "theory, wide"))
    assert tuple(measured.x) == tuple(free.x) == (0, 1, 2, 4, 8)
    assert measured.y[0] == pytest.approx(alone)
    assert free.y[3] == pytest.approx(alone * theory.speedup(0.5, 4, 0.1))
    assert timed.y[3] == pytest.approx(alone * theory.expected_tokens(0.5, 4) * 10 / (18 + 4))
    assert panel.badge == "recorded · modelled"


@pytest.mark.parametrize("drafts", [1, 2, 4, 8])
def test_the_reasons_multiply_to_the_whole_difference(drafts: int) -> None:
    parts = sweep.gaps(MEASURED, Policy(drafts))
    assert parts is not None
    whole = math.prod((parts.theory, parts.tokens, parts.drafts, parts.width, parts.rest))
    assert whole == pytest.approx(parts.real, rel=1e-12)
    assert parts.width == pytest.approx((10 + drafts) / (10 + 2 * drafts + drafts), rel=1e-9)
    told = sweep.speeds(MEASURED, Policy(drafts), "recorded").numbers
    assert any("verification is not free" in line for line in told)


@given(st.integers(1, 8), st.floats(0.5, 3), st.floats(0.0, 0.01))
@settings(max_examples=20)
def test_neighbouring_panels_have_the_same_factors(drafts: int, slow: float, overhead_s: float) -> None:
    """The wider read and the rest, though the text's last rounds are short and reads of one width differ."""
    policy = Policy(drafts)
    uneven = sweeps.run(policy, overhead_s=overhead_s)
    verify = ((1, 0.02),) * 4 + tuple((width, seconds * slow) for width, seconds in uneven.verify[4:])
    one = sweeps.sweep([sweeps.run(Policy(0)), replace(uneven, verify=verify, draft=uneven.draft[5:])])
    parts, lost = sweep.gaps(one, policy), sweep.attributed(one, policy)
    assert parts is not None
    assert lost is not None
    assert parts.width == pytest.approx(lost.read / lost.drafted)
    assert parts.rest == pytest.approx(lost.real / lost.read)
    told, fallen = sweep.speeds(one, policy, ""), sweep.waterfall(one, policy, "")
    factors = {line.split("  ")[0] for line in told.numbers if line.startswith("×")}
    assert {note.text for note in fallen.figure.layout.annotations[3:5]} <= factors
    (wider,) = (line for line in fallen.numbers if line.startswith("The wider read"))
    assert any(wider.partition("as long as ")[2].partition(" reads")[0] in line for line in told.numbers)


def test_no_gamma_that_pays_is_told_as_such() -> None:
    slow = [sweeps.run(policy, rounds=64, overhead_s=0.05 * bool(policy.gamma)) for policy in sweeps.FIXED]
    panel = sweep.speeds(sweeps.sweep(slow), None, "recorded")
    assert panel.story.startswith("Here no fixed gamma pays")


def test_tokens_a_read_are_counted_and_not_guessed() -> None:
    panel = sweep.yields(MEASURED, "recorded")
    assert tuple(trace(panel, "counted").y) == pytest.approx([1, 1.5, 1.75, 1.9375, 1.984375])
    assert cells(panel, "tokens a read, counted")[3] == "1.938"
    assert any("no gamma would bring more than 2.00" in line for line in panel.numbers)


def brought(tokens: dict[int, float], rounds: int = 400) -> Sweep:
    """Fixed gammas that brought so many tokens a read: their first draft stays in that many rounds."""
    runs = []
    for drafts, mean in tokens.items():
        kept = round((mean - 1) * rounds / max(drafts, 1))
        one = sweeps.run(Policy(drafts), rounds=rounds)
        runs.append(
            replace(one, emitted=rounds + drafts * kept, judged=(rounds,) * drafts, kept=(kept,) * drafts)
            if drafts
            else one
        )
    return sweeps.sweep([replace(one, shared=tuple(map(float, one.kept))) for one in runs])


@pytest.mark.parametrize(
    ("tokens", "rounds", "said"),
    [
        ({0: 1, 1: 1.4, 2: 1.8, 4: 2.6}, 400, "gamma 4 2.60: more drafts bring more."),
        ({0: 1, 1: 1.4, 4: 1.66, 8: 1.60}, 30, "Every gamma brings about as much"),
        ({0: 1, 1: 1.2, 4: 1.7, 8: 1.64}, 400, "From gamma 4 on it is 1.64 to 1.70, and luck could make the"),
        ({0: 1, 2: 1.9, 4: 1.3}, 400, "Gamma 2 brought most, 1.90 tokens a read, gamma 4 only 1.30"),
    ],
)
def test_tokens_a_read_are_told_as_they_are(tokens: dict[int, float], rounds: int, said: str) -> None:
    assert said in sweep.yields(brought(tokens, rounds), "recorded").story


def test_a_count_above_what_equal_chances_allow_is_owned_up_to() -> None:
    panel = sweep.yields(brought({0: 1, 4: 2.0}), "recorded")
    assert any("would bring more than 1.33. Here 2.00 were counted" in line for line in panel.numbers)


def test_places_that_few_drafts_reached_are_not_judged() -> None:
    panel = sweep.places(sweeps.sweep([sweeps.run(Policy(0)), sweeps.run(Policy(8))]), "recorded")
    assert tuple(trace(panel, "shared").x) == (1, 2, 3)  # 64, 32, 16 judged; then 8
    assert tuple(trace(panel, "fewer than 10").x) == (4, 5, 6, 7)
    assert cells(panel, "shared (alpha)")[3:7] == ["too few to say"] * 4
    assert panel.figure.layout.showlegend  # also where there is nothing but these
    assert "nothing can be told from it" in panel.story


@pytest.mark.parametrize(
    ("shared", "said"),
    [
        ((0.2, 0.8, 0.7), "and 0.75 over the later ones (0.70 to 0.80): a late place is judged only where"),
        ((0.8, 0.2, 0.1), "and 0.15 over the later ones (0.10 to 0.20): the further ahead, the less they agree"),
        ((0.45, 0.5, 0.4), "luck could make that difference"),
        ((0.45, 0.5), "and 0.50 at place 2: luck could"),
    ],
)
def test_what_is_told_of_the_places_follows_from_the_solid_bars(shared: tuple[float, ...], said: str) -> None:
    judged = (100,) * len(shared)
    one = replace(
        sweeps.run(Policy(4), rounds=100),
        judged=(*judged, 5),
        kept=(*judged, 0),
        shared=(*(100 * one for one in shared), 5.0),
    )
    assert said in sweep.places(sweeps.sweep([sweeps.run(Policy(0)), one]), "recorded").story


def test_gammas_that_stop_early_stay_out_of_the_places() -> None:
    def runs(policies: tuple[Policy, ...]) -> Sweep:
        return sweeps.sweep([sweeps.run(one, drafts=2 if one.adaptive else None, alpha=0.5) for one in policies])

    with_early, without = (sweep.places(runs(some), "") for some in (sweeps.FIXED + sweeps.EARLY, sweeps.FIXED))
    assert with_early.table == without.table


def test_fixed_and_adaptive_stand_on_the_same_axes() -> None:
    panel = sweep.stopping(MEASURED, "recorded")
    assert tuple(trace(panel, "fixed").x) == (1, 2, 3, 5, 9)  # drafts + 1
    assert tuple(trace(panel, "stops below").x) == tuple(trace(panel, "stops above").x) == (3,)
    assert trace(panel, "stops below").y[0] == pytest.approx(MEASURED.tokens_per_second(sweeps.EARLY[0]))
    assert "about the same" in panel.story


def test_the_headline_names_the_best_of_all_ways_beside_the_target_alone() -> None:
    runs = [sweeps.run(policy, overhead_s=0.02 * bool(policy.gamma)) for policy in sweeps.FIXED]
    quick = [*runs, sweeps.run(sweeps.EARLY[0], drafts=2, rounds=400, overhead_s=-0.009)]
    told = sweep.headline(sweeps.sweep(quick))
    assert told.startswith("The best of 5 ways to draft: up to 12, stops below 0.40, 2.")
    assert "The best fixed one, gamma" in told
    early = sweep.stopping(sweeps.sweep(quick), "recorded").story
    assert "× the target alone; and " in early
    assert any("partly luck" in line for line in sweep.stopping(MEASURED, "").numbers)
    assert sweep.headline(sweeps.sweep(runs)).startswith("No way to draft pays here")


def test_under_greedy_nothing_stops_early() -> None:
    greedy = replace(MEASURED, temperature=0.0, rule="greedy")
    assert not sweep.adaptive(greedy)
    assert sweep.offered(greedy) == sweeps.FIXED
    assert "No gamma that stops early" in sweep.stopping(greedy, "recorded").story


def test_under_other_rules_the_chance_is_what_was_kept_of_the_judged() -> None:
    one = sweeps.sweep([sweeps.run(Policy(0)), sweeps.run(Policy(4), alpha=0.9)])
    assert sweep.alpha(one) == pytest.approx(0.9)
    assert sweep.alpha(replace(one, rule="gumbel_coupling")) == pytest.approx(0.5)


def test_the_top_of_the_page_and_the_sweep_are_tied_together() -> None:
    parts = sweep.gaps(MEASURED, Policy(4))
    assert parts is not None
    told = sweep.tied(MEASURED, SCENE, Policy(4))
    assert "shared 0.60 and c 0.10; this sweep has its own, shared 0.50 over these prompts and c 0.10" in told
    assert f"gamma 4 is {sweep.times(SCENE.speed)} with the sliders’ numbers, {sweep.times(parts.theory)} with" in told
    assert told.endswith(f"{sweep.times(parts.real)} by the clock.")


def test_what_is_thought_of_a_gamma_says_where_it_loses() -> None:
    assert "0.29×, slower than the target alone; no gamma pays" in gamma.thought(Scene(0.3, 0.5, 8))
    assert "the best is gamma 3" in gamma.thought(SCENE)
    slow = sweeps.sweep([sweeps.run(policy, overhead_s=0.05 * bool(policy.gamma)) for policy in sweeps.FIXED])
    told, slower = sweep.judged(slow, 4)
    assert slower
    assert "By the clock gamma 4 is 0." in told
    assert "was not measured here" in sweep.judged(slow, 7)[0]


# --- too little -------------------------------------------------------------------------------------------------------


def begun(rounds: int) -> Sweep:
    """Every way to draft wrote two tokens in so many rounds."""
    runs = [sweeps.run(one, rounds=rounds, drafts=2 if one.adaptive else None) for one in sweeps.FIXED + sweeps.EARLY]
    return sweeps.sweep([replace(one, emitted=2) for one in runs], max_new_tokens=24)


def test_of_too_few_rounds_nothing_is_concluded() -> None:
    few = begun(sweep.FEW - 1)
    said = "2 of 24 tokens a run, fewer than 10 rounds: too little to say."
    for panel in measured_panels(few, Policy(4)):
        assert panel.story == said
        assert "×" not in "".join(panel.numbers)
        ours = [one for one in (panel.figure.data if panel.figure is not None else ()) if "modelled" not in one.name]
        grey = [one for one in ours if one.name.startswith("fewer than 10")]
        assert grey or panel.figure is None
    assert sweep.headline(few) == said
    assert sweep.alpha(few) is None
    assert sweep.lost_most(few) is None
    enough = begun(sweep.FEW)
    assert all(panel.story != said for panel in measured_panels(enough, Policy(4)))


def test_only_gammas_that_stop_early_are_not_told_as_nothing() -> None:
    early = sweeps.sweep([sweeps.run(policy, drafts=2) for policy in sweeps.EARLY])
    stories = [panel.story for panel in measured_panels(early, sweeps.EARLY[0])]
    assert stories.count("No fixed gamma was measured so far.") == 3
    assert sweep.headline(early) == "The target alone was not measured, so no speed over it is told."
    assert not any("Nothing was drafted" in story or "fewer than" in story for story in stories)


@pytest.mark.parametrize("changed", [{"seconds": 0.0}, {"emitted": 0}])
def test_where_nothing_took_time_or_nothing_came_none_is_the_fastest(changed: dict[str, Any]) -> None:
    empty = sweeps.sweep([replace(sweeps.run(policy), **changed) for policy in sweeps.FIXED])
    told = [sweep.headline(empty), *(panel.story for panel in measured_panels(empty, Policy(4)))]
    assert told[:2] == ["No speed can be told: no tokens came, or they took no time."] * 2
    assert not any("fastest" in one or "The best" in one or "fewer than" in one for one in told)


def test_what_luck_could_make_is_no_verdict() -> None:
    """0.87× of few, unlike rounds is no proof; of many it is."""

    def at(rounds: int) -> Sweep:
        return sweeps.sweep(
            [sweeps.run(Policy(0), rounds=rounds), sweeps.run(Policy(4), rounds=rounds, overhead_s=0.003)]
        )

    assert "but luck could make that" in sweep.speeds(at(16), Policy(4), "").story
    assert "luck" not in sweep.speeds(at(4_096), Policy(4), "").story


def test_a_stop_after_the_draw_is_shown_as_wrong() -> None:
    panel = sweep.too_late()
    assert tuple(trace(panel, "✗").y) == pytest.approx([0.66, 0.33, 0.01])
    assert tuple(trace(panel, "✓").y) == pytest.approx(sweep.P)


# --- what was lost ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [Policy(1), Policy(4), Policy(8), *sweeps.EARLY])
def test_the_steps_lead_from_the_ideal_to_the_clock(policy: Policy) -> None:
    lost = sweep.attributed(MEASURED, policy)
    assert lost is not None
    drafts = MEASURED.drafts_per_round(policy) or 0.0
    assert lost.ideal == pytest.approx(drafts + 1)
    assert lost.real == pytest.approx(MEASURED.speedup(policy))
    assert lost.ideal + math.fsum(after - before for before, after in pairwise(lost)) == pytest.approx(lost.real)
    assert lost.kept == pytest.approx(MEASURED.tokens_per_pass(policy))
    assert lost.drafted == pytest.approx(lost.kept / (1 + 0.1 * drafts))
    assert lost.read == pytest.approx(lost.kept * 10 / (10 + 2 * drafts + drafts))


@pytest.mark.parametrize("times", [(0, 1, 1), (1, 0, 1), (1, 1, -1)])
def test_losses_need_reads_that_take_time(times: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="a read must take time"):
        theory.losses(2.0, 4, *times, 1.5)


def test_the_waterfall_says_what_it_lost_to() -> None:
    heavy = [sweeps.run(Policy(0)), sweeps.run(Policy(8), overhead_s=0.3)]
    panel = sweep.waterfall(sweeps.sweep(heavy), Policy(8), "recorded")
    assert "Most went with outside the reads" in panel.story
    assert "slower than the target alone" in panel.story
    bars, real = panel.figure.data[0], sweeps.sweep(heavy).speedup(Policy(8))
    assert bars.base[-1] == pytest.approx(real)  # below the target alone
    assert bars.base[-1] + bars.y[-1] == pytest.approx(1)
    assert bars.base[0] == 1
    assert bars.y[0] == 8


def test_the_sweep_knows_what_lost_most() -> None:
    heavy = [sweeps.run(policy, name) for policy in (Policy(0), Policy(2)) for name in ("chat", "code")]
    heavy.append(sweeps.run(Policy(4), "code", overhead_s=1))
    assert sweep.lost_most(sweeps.sweep(heavy)) == ("code", Policy(4))
    assert sweep.lost_most(sweeps.sweep([])) is None


# --- edges ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "runs",
    [
        [],
        [sweeps.run(Policy(0))],
        [sweeps.run(Policy(4))],
        [sweeps.run(Policy(0)), sweeps.run(Policy(4), rounds=0)],
        [sweeps.run(Policy(0), prompt="<b>&\u202eother"), sweeps.run(Policy(4))],
        [sweeps.run(sweeps.EARLY[0], drafts=0)],
        [sweeps.run(Policy(0)), sweeps.run(Policy(1), alpha=1.0)],
    ],
)
def test_a_sweep_that_has_hardly_begun_is_drawn(runs: list[Any]) -> None:
    one = sweeps.sweep(runs)
    for policy in (None, Policy(4), *one.policies()):
        for panel in measured_panels(one, policy):
            assert panel.story
            assert "nan" not in f"{panel.story}{panel.numbers}{panel.table}".lower().replace("finance", "")
            if panel.figure is not None:
                json.loads(panel.figure.to_json())


EXTREMES = st.sampled_from([0.0, 5e-324, 1e-300, 1e-9, 0.5, 1e9])
POLICIES = st.sampled_from([Policy(0), Policy(1), Policy(16), Policy(4, stop_below=1.0), Policy(4, stop_above=1e3)])


@st.composite
def foreign_runs(draw: st.DrawFn) -> SweepRun:
    """A run with whatever numbers a file may hold."""
    judged = draw(st.lists(st.sampled_from([0, 1, 10, 10**9]), max_size=3))
    kept = [draw(st.sampled_from([0, one])) for one in judged]
    read = st.tuples(st.sampled_from([1, 2, 5, 17, 1024]), EXTREMES)
    return SweepRun(
        policy=draw(POLICIES),
        workload=draw(st.sampled_from(["chat", "code"])),
        prompt="Hello.",
        emitted=draw(st.sampled_from([0, 1, 10**9])),
        rounds=draw(st.sampled_from([0, 1, 10**9])),
        drafted=sum(judged),
        judged=tuple(judged),
        kept=tuple(kept),
        shared=tuple(draw(st.sampled_from([0.0, float(one)])) for one in judged),
        verify=tuple(draw(st.lists(read, max_size=3))),
        draft=tuple(draw(st.lists(EXTREMES, max_size=2))),
        seconds=draw(EXTREMES),
    )


@given(st.lists(foreign_runs(), max_size=4, unique_by=lambda run: (run.policy, run.workload)))
@settings(max_examples=60)
def test_whatever_a_file_holds_is_drawn(runs: list[SweepRun]) -> None:
    one = sweeps.sweep(runs)
    assert sweep.alpha(one) is None or 0 <= sweep.alpha(one) <= 1
    for policy in (None, *one.policies()):
        for panel in measured_panels(one, policy):
            assert len(f"{panel.story}{panel.numbers}{panel.formula}") < 4_000
            if panel.figure is not None:
                json.loads(panel.figure.to_json())


def test_every_sentence_ends() -> None:
    for panel in (gamma.curves(SCENE), gamma.best_map(SCENE, [TODAY]), *measured_panels(MEASURED, Policy(4))):
        assert panel.story.endswith(".")
        assert "  " not in panel.story


def test_the_file_has_a_line_for_every_run_and_no_formula() -> None:
    text = sweep.table(sweeps.sweep([sweeps.run(Policy(0), prompt='=cmd|"x"'), *MEASURED.runs]))
    lines = text.splitlines()
    assert len(lines) == 2 + len(MEASURED.runs)
    assert ",'=cmd" in lines[1].replace('"', "")
