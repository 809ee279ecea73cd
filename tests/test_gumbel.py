"""Gumbel coupling in figures: the race with any noise, the chance of agreement, invariance, and a place again."""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specviz import noise, theory
from specviz import trace as traces
from specviz.experiments import Grid, GridRun
from specviz.figures import gumbel, invariance
from specviz.figures.charts import Panel
from specviz.figures.gumbel import PAIRS, Pair
from specviz.figures.text import Texts
from specviz.trace import Row, Trace

ROOT = Path(__file__).parent.parent
RULES = {"gumbel_coupling": "Gumbel", "speculative_sampling": "Sampling"}
DRAFTERS = {"model": "small model", "target": "the target itself", "ngram": "n-gram: copies"}


@pytest.fixture(scope="module")
def run() -> Trace:
    return traces.read(ROOT / "assets" / "traces" / "gumbel.jsonl")


@pytest.fixture(scope="module")
def texts(run: Trace) -> Texts:
    return Texts.of(run)


# --- the race ---------------------------------------------------------------------------------------------------------


def test_every_token_of_the_recorded_text_has_a_place_and_is_the_first_home_there(run: Trace) -> None:
    places = gumbel.sites(run)
    assert [site.written for site in places] == list(run.text_ids)
    first = len(run.header.prompt_ids)
    assert [site.position for site in places] == list(range(first, first + len(places)))
    assert [site.row.position for site in places] == [site.position for site in places]


def test_a_recorded_race_is_told_as_it_ended(run: Trace, texts: Texts) -> None:
    for site in gumbel.raced(run)[::3]:
        shown = gumbel.as_it_happened(run, site, texts, "recorded")
        assert site.draft is not None
        kept = site.round.drafts[site.draft].fate == "kept"
        assert shown.story.endswith("the draft stays.") == kept
        assert texts(site.written) in shown.story
        assert shown.place.mode == "race"
        assert shown.badge == "recorded"


@settings(max_examples=30)
@given(st.sampled_from(sorted(PAIRS)), st.integers(0, gumbel.MOST_NOISE))
def test_the_first_home_has_the_largest_sum(name: str, seed: int) -> None:
    row, texts = gumbel.by_hand(PAIRS[name], seed)
    shown = gumbel.with_new_noise(row, texts, "title", seed)
    p, q = PAIRS[name].arrays()
    g = noise.gumbel(seed, 0, len(p))
    with np.errstate(divide="ignore"):
        ours, theirs = int(np.argmax(np.log(p) + g)), int(np.argmax(np.log(q) + g))
    assert shown.story.endswith("the draft stays.") == (ours == theirs)
    first = {texts(ours): "target", texts(theirs): "drafter"}
    for bar in shown.place.bars:
        assert (bar.target is not None and bar.target.first) == (bar.label == texts(ours))
        assert (bar.drafter is not None and bar.drafter.first) == (bar.label == texts(theirs))
    table = gumbel.sums(shown).table
    flagged = [[cell for cell in line if cell.endswith("⚑")] for line in table.rows]
    assert sum(map(len, flagged)) == 2
    assert set(first) == {line[0] for line, flags in zip(table.rows, flagged, strict=True) if flags}


def test_the_sums_start_at_the_logarithm_and_share_their_length() -> None:
    row, texts = gumbel.by_hand(PAIRS["three tokens"], 3)
    bars = [one for one in gumbel.sums(gumbel.with_new_noise(row, texts, "title", 3)).figure.data if one.type == "bar"]
    assert len(bars) == 2
    by_noise = [sorted(bar.x) for bar in bars]
    assert by_noise[0] == by_noise[1] == sorted(token.noise for token in row.tokens)
    assert sorted(np.exp(bars[0].base)) == pytest.approx(sorted(PAIRS["three tokens"].p))
    assert sorted(np.exp(bars[1].base)) == pytest.approx(sorted(PAIRS["three tokens"].q))


def test_a_token_that_cannot_be_said_never_runs() -> None:
    for seed in range(20):
        row, texts = gumbel.by_hand(PAIRS["nothing in common"], seed)
        shown = gumbel.with_new_noise(row, texts, "title", seed)
        assert "the draft goes" in shown.story
        assert all("never" in line for line in gumbel.sums(shown).table.rows)


@pytest.mark.parametrize("name", sorted(PAIRS))
def test_the_count_of_equal_winners_follows_the_exact_chance(name: str) -> None:
    row, _ = gumbel.by_hand(PAIRS[name], 1)
    chance, races = float(theory.gumbel_match(*PAIRS[name].arrays())), gumbel.MOST_NOISE
    spread = math.sqrt(races * chance * (1 - chance))
    assert abs(gumbel.agreed(row, races) - races * chance) <= 4 * spread  # 1 in 16,000


def test_what_is_not_listed_runs_as_one_with_all_its_mass(run: Trace, texts: Texts) -> None:
    site = gumbel.raced(run)[0]
    row = gumbel.with_noise(site.row, 5)
    for chances in gumbel.chances(row):
        assert chances.sum() == pytest.approx(1, abs=1e-9)
    shown = gumbel.with_new_noise(row, gumbel.naming(texts, row), gumbel.title(run, site, texts), 5)
    assert shown.badge == "simulated"
    assert any("running as one" in line for line in shown.numbers)
    assert shown.place.title.startswith(("After", "For the first"))
    assert gumbel.with_noise(site.row, 5) == row
    assert gumbel.with_noise(site.row, 6) != row


# --- the chance of agreement ------------------------------------------------------------------------------------------

GOLDEN = {
    ((0.5, 0.3, 0.2), (0.2, 0.3, 0.5)): (0.700000, 0.630769, 0.538462, 0.290000),
    ((0.5, 0.5, 0.0), (0.5, 0.0, 0.5)): (0.500000, 0.333333, 0.333333, 0.250000),
    ((0.25, 0.25, 0.25, 0.25), (0.4, 0.3, 0.2, 0.1)): (0.800000, 0.762587, 0.666667, 0.250000),
    ((1 / 3, 2 / 3), (2 / 3, 1 / 3)): (0.666667, 0.666667, 0.500000, 0.444444),
    ((0.5, 0.3, 0.2), (0.5, 0.3, 0.2)): (1.0, 1.0, 1.0, 0.380000),
    ((0.6, 0.4), (0.8, 0.2)): (0.800000, 0.800000, 0.666667, 0.560000),
    ((0.7, 0.2, 0.1), (0.1, 0.2, 0.7)): (0.400000, 0.325000, 0.250000, 0.180000),
}


@pytest.mark.parametrize("pair", GOLDEN)
def test_golden_chances_of_agreement(pair: tuple[tuple[float, ...], tuple[float, ...]]) -> None:
    found = gumbel.agreement(Pair(*pair), 0)
    assert (found.most, found.exact, found.least, found.independent) == pytest.approx(GOLDEN[pair], abs=5e-7)


def curves(panel: Panel) -> dict[str, Any]:
    assert panel.figure is not None
    return {trace.name.partition(":")[0]: trace for trace in panel.figure.data}


@pytest.mark.parametrize("name", gumbel.FAMILIES[:-1])
@pytest.mark.parametrize("pair", sorted(PAIRS))
def test_the_exact_curve_lies_between_its_bounds(name: str, pair: str) -> None:
    drawn = curves(gumbel.match(name, pair, 0))
    most, exact, least = (np.array(drawn[key].y) for key in ("shared, 1 − TV", "one noise", "(1 − TV)/(1 + TV)"))
    assert np.all(least <= exact + 1e-12)
    assert np.all(exact <= most + 1e-12)


def test_two_tokens_reach_the_most_and_the_tight_case_the_least() -> None:
    two, tight = curves(gumbel.match(gumbel.TWO, "three tokens", 0)), curves(gumbel.match(gumbel.WORST, "the same", 0))
    assert two["one noise"].y == pytest.approx(two["shared, 1 − TV"].y, abs=1e-12)
    assert tight["one noise"].y == pytest.approx(tight["(1 − TV)/(1 + TV)"].y, abs=1e-12)
    assert dict(zip(tight["one noise"].x, tight["one noise"].y, strict=True))[0.5] == pytest.approx(1 / 3)


@pytest.mark.parametrize("name", gumbel.FAMILIES[:-1])
def test_the_bars_of_the_races_hold_the_exact_chance(name: str) -> None:
    missed = total = 0
    for seed in range(4):
        drawn = curves(gumbel.match(name, "flat and steep", seed))
        seen, exact = drawn[f"seen in {gumbel.RACES:,} races"], np.array(drawn["one noise"].y)
        high, low = np.array(seen.y) + seen.error_y.array, np.array(seen.y) - seen.error_y.arrayminus
        missed += int(np.sum((exact < low - 1e-12) | (exact > high + 1e-12)))
        total += len(exact)
    assert missed <= 14  # of 84 bars of 95 %: more in under 1 of 10,000


def test_a_noise_each_agrees_less_even_where_both_want_the_same() -> None:
    drawn = curves(gumbel.match(gumbel.MIX, "the same", 0))
    assert drawn["one noise"].y == pytest.approx([1.0] * gumbel.STEPS)
    assert drawn["noise of their own"].y == pytest.approx([0.38] * gumbel.STEPS)


@pytest.mark.parametrize(
    ("family", "pair", "told"),
    [
        (gumbel.HEAT, "the same", "best at 1 (1)."),
        (gumbel.HEAT, "the worst case", "changes nothing"),
        (gumbel.HEAT, "three tokens", "best at 3 (0.75), the end of the axis, and still rising there."),
        (gumbel.HEAT, "nothing in common", "never agree"),
        (gumbel.MIX, "the worst case", "less often than the most there is"),
        (gumbel.MIX, "two tokens", "as often as anything could"),
    ],
)
def test_the_story_holds_at_the_edges(family: str, pair: str, told: str) -> None:
    assert told in gumbel.match(family, pair, 0).story


@pytest.mark.parametrize("name", gumbel.FAMILIES[:-1])
def test_each_family_says_how_far_its_axis_reaches(name: str) -> None:
    """Else a figure that showed another family keeps that one's."""
    drawn = gumbel.match(name, next(iter(gumbel.PAIRS)), 0).figure
    assert drawn is not None
    at = gumbel.family(name, next(iter(gumbel.PAIRS))).at
    low, high = drawn.layout.xaxis.range
    if drawn.layout.xaxis.type == "log":
        low, high = 10**low, 10**high
    assert low < at[0] < at[-1] < high
    assert high - at[-1] < (at[-1] - at[0]) / 10


def test_the_places_of_the_run_lie_between_the_lines(run: Trace) -> None:
    panel = gumbel.places(run, "recorded")
    points = [t for t in panel.figure.data if t.mode == "markers"]  # type: ignore[union-attr]
    x, y = (np.concatenate([np.array(getattr(t, axis)) for t in points]) for axis in "xy")
    assert len(x) == len(gumbel.raced(run))
    assert np.all(y <= x + 1e-9)
    assert np.all(y >= x / (2 - x) - 1e-9)
    assert panel.badge == "recorded"


@given(st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_a_band_holds_what_was_seen_and_stays_in_0_to_1(seen: tuple[int, int]) -> None:
    low, high = gumbel.wilson(*seen)
    assert -1e-12 <= low <= seen[0] / seen[1] <= high <= 1 + 1e-12
    assert low < high


# --- a place again ----------------------------------------------------------------------------------------------------


def test_the_whole_run_follows_from_seed_and_position(run: Trace) -> None:
    found = gumbel.check(run)
    assert found.places == found.same == len(run.text_ids)
    assert found.compared > 1000
    assert found.largest <= 1e-12


def test_another_seed_is_found_out(run: Trace) -> None:
    rounds = tuple(replace(round_, settings=dict(round_.settings or {}) | {"seed": 40}) for round_ in run.rounds)
    found = gumbel.check(Trace(run.header, rounds))
    assert found.largest > 1
    assert found.same < found.places / 2


def test_the_two_lines_do_it(run: Trace, texts: Texts) -> None:
    for site in gumbel.sites(run):
        known = {token.id: token.p for token in site.row.tokens if token.p}
        first, second = gumbel.lines(site, texts).split("\n")
        scope: dict[str, Any] = {"gumbel": noise.gumbel, "log": math.log, "p": known}
        exec(first, scope)
        assert eval(second, scope) == site.written


@pytest.mark.parametrize("index", [0, 1, 5, -1])
def test_a_place_is_shown_beside_its_record(index: int, run: Trace, texts: Texts) -> None:
    site = gumbel.sites(run)[index]
    whole = gumbel.check(run)
    panel = gumbel.replay(site, texts, whole, "recorded", 12)
    assert all(line[2] == line[3] for line in panel.table.rows)
    assert [line[0] for line in panel.table.rows if "⚑" in line[0]] == [f"{texts(site.written)} ⚑"]
    assert panel.story.endswith("is first home again, as in the text.")
    assert f"Place {site.number} of the text (position {site.position}" in panel.table.caption
    assert gumbel.replay(site, texts, whole, "recorded").table.columns == ("token", "p", "g", "log p + g")
    assert not gumbel.replay(site, texts, whole, "recorded", 0).table.rows


def test_what_follows_from_seed_and_position_is_the_noise_and_not_the_token(run: Trace, texts: Texts) -> None:
    story = gumbel.replay(gumbel.sites(run)[0], texts, gumbel.check(run), "recorded").story
    assert story.startswith("The noise follows from the seed and the position alone. The token needs the text so far")


def test_places_of_the_text_count_from_1(run: Trace) -> None:
    assert [site.number for site in gumbel.sites(run)] == list(range(1, len(run.text_ids) + 1))
    assert all(run.text_ids[site.number - 1] == site.written for site in gumbel.raced(run))


@pytest.mark.parametrize("seed", range(1, 60))
def test_lanes_that_look_different_have_different_times(seed: int) -> None:
    row, texts = gumbel.by_hand(PAIRS["flat and steep"], seed)
    shown = gumbel.with_new_noise(row, texts, "title", seed)
    lanes = [
        (lane.length, time)
        for bar in shown.place.bars
        for lane, time in zip((bar.target, bar.drafter), bar.written, strict=True)
        if lane is not None and not lane.beyond
    ]
    for one, time in lanes:
        assert all(time != other for length, other in lanes if abs(length - one) > 0.011)


def test_a_run_without_shared_noise_is_no_race_of_record(run: Trace) -> None:
    sampling = traces.read(ROOT / "assets" / "traces" / "sampling.jsonl")
    assert gumbel.coupled(run)
    assert not gumbel.coupled(sampling)
    assert not gumbel.coupled(Trace(run.header))
    assert gumbel.raced(sampling)


def test_a_file_may_claim_what_it_likes(run: Trace, texts: Texts) -> None:
    def claiming(**claims: Any) -> Trace:
        def strange(row: Row | None) -> Row | None:
            if row is None or row.rest is None:
                return row
            tokens = tuple(replace(token, p=-1e-10 if token.p == 0 else token.p) for token in row.tokens)
            return replace(row, tokens=tokens, rest=replace(row.rest, **claims), position=10**30)

        first = run.rounds[0]
        drafts = tuple(replace(draft, row=strange(draft.row)) for draft in first.drafts)
        return Trace(run.header, (replace(first, drafts=drafts),))

    assert not gumbel.coupled(claiming(count=10**9))  # more than memory holds
    few = claiming(count=0, runner=None, drafter_runner=None)
    assert gumbel.coupled(few)
    site = gumbel.raced(few)[0]
    assert gumbel.check(few).same == gumbel.check(few).places
    assert gumbel.replay(site, texts, gumbel.check(few), "from a file").table.rows
    row = gumbel.with_noise(site.row, 1, site.position)
    assert gumbel.with_new_noise(row, gumbel.naming(texts, row), "t", 1).story
    assert gumbel.places(few, "from a file").table.rows


def test_a_row_that_says_little_still_races() -> None:
    bare = Row(7, (traces.Token(3, "61", 1.0, 1.0),))
    row = gumbel.with_noise(bare, 1)
    shown = gumbel.with_new_noise(row, gumbel.naming(Texts({3: b"<b>"}), row), "t", 1)
    assert shown.story == "“<b>” is home first in both races: the draft stays."


# --- invariance -------------------------------------------------------------------------------------------------------

SAME, OTHER = (0, 1, 2, 3), (0, 1, 4, 3)
BYTES = {0: b"A", 1: b" b", 2: b" c\xc3", 3: b"\xa9", 4: b" <i>"}


def cell(rule: str, drafter: str, gamma: int, ids: tuple[int, ...] = SAME, reads: int = 4) -> GridRun:
    return GridRun(rule, drafter, gamma, ids, reads, 0, 1.0)  # type: ignore[arg-type]


def grid(*runs: GridRun, **more: Any) -> Grid:
    known = {token_id: text.hex() for token_id, text in BYTES.items()}
    return Grid("2000-01-01", "pair", "cpu", "float32", token_bytes=known, runs=runs, **more)


WHOLE = grid(
    cell("gumbel_coupling", "none", 0),
    cell("gumbel_coupling", "model", 1, reads=3),
    cell("gumbel_coupling", "model", 2, reads=2),
    cell("gumbel_coupling", "ngram", 2),
    cell("speculative_sampling", "none", 0),
    cell("speculative_sampling", "model", 1, OTHER, 3),
    cell("speculative_sampling", "ngram", 1),
)


def laid(one: Grid, *chosen: tuple[str, str, int]) -> invariance.Invariance:
    return invariance.layout(one, RULES, DRAFTERS, chosen or invariance.telling(one))  # type: ignore[arg-type]


def test_a_cell_is_same_where_the_bytes_are() -> None:
    gumbel_matrix, sampling = laid(WHOLE).matrices
    assert all(found.same for _, row in gumbel_matrix.rows for found in row if found is not None)
    assert [[found and found.same for found in row] for _, row in sampling.rows] == [[False], [True]]
    assert gumbel_matrix.gammas == (1, 2)
    assert gumbel_matrix.rows[1][1][0] is None  # n-gram with gamma 1 was not decoded
    assert [found and found.reads for found in gumbel_matrix.rows[0][1]] == [3, 2]


def test_the_story_names_the_rule_that_keeps_and_the_one_that_changes() -> None:
    assert "under Gumbel only the number of reads" in laid(WHOLE).story
    assert "each of the three texts is the target’s own" in laid(WHOLE).story
    assert "Under Sampling the text may change" in laid(WHOLE).story
    assert "3/3" in laid(WHOLE).matrices[0].told
    assert "1/2" in laid(WHOLE).matrices[1].told
    assert "2 different ones" in laid(WHOLE).matrices[1].told


def test_a_rule_that_breaks_its_promise_is_not_praised() -> None:
    broken = grid(cell("gumbel_coupling", "none", 0), cell("gumbel_coupling", "model", 1, OTHER))
    assert "here the text changes" in laid(broken).story
    assert "nearly tie, or there is a fault" in laid(broken).matrices[0].told


def test_where_the_target_drafts_for_itself_another_text_is_no_fault() -> None:
    itself = cell("speculative_sampling", "target", 1, OTHER)
    sampling = laid(grid(cell("speculative_sampling", "none", 0), itself, temperature=1.0)).matrices[0]
    assert "though every draft is kept" in sampling.why
    assert not any(matrix.why for matrix in laid(WHOLE).matrices)


@pytest.mark.parametrize("some", [grid(), grid(cell("gumbel_coupling", "none", 0))])
def test_before_anything_was_drafted_no_text_is_said_to_stay_or_to_change(some: Grid) -> None:
    assert "so far there is no text to compare" in laid(some).story
    assert invariance.telling(some) is None


def test_two_texts_side_by_side() -> None:
    two = laid(WHOLE, ("gumbel_coupling", "none", 0), ("speculative_sampling", "model", 1)).compared
    assert two is not None
    assert not two.same
    assert two.common == "A b"
    assert two.ours[0][0] == "␣c⟨C3⟩"
    assert two.theirs[0] == ("␣<i>", "strong token")
    assert two.told == "The same for two tokens, then they part."
    for name, ids in zip(two.names, (SAME, OTHER), strict=True):
        assert hashlib.sha256(b"".join(BYTES[i] for i in ids)).hexdigest()[:12] in name


def test_texts_that_share_nothing_part_at_the_first_token() -> None:
    apart = grid(cell("speculative_sampling", "none", 0), cell("speculative_sampling", "model", 1, (4, 1)))
    two = laid(apart).compared
    assert two is not None
    assert (two.told, two.common) == ("They part at the first token.", "")


def test_it_opens_with_the_target_alone_and_the_fewest_reads() -> None:
    two = laid(WHOLE).compared
    assert two is not None
    assert two.same
    assert two.keys == (("gumbel_coupling", "none", 0), ("gumbel_coupling", "model", 2))
    assert two.told == f"The same {len(b''.join(BYTES[i] for i in SAME))} bytes, 4 tokens."


def test_a_text_that_ends_early_is_the_beginning_of_the_other() -> None:
    cut = grid(cell("gumbel_coupling", "none", 0), cell("gumbel_coupling", "model", 1, SAME[:2]))
    two = laid(cut).compared
    assert two is not None
    assert not two.same
    assert two.told == "The same as far as both go: one has 4 tokens and the other 2."


@pytest.mark.parametrize("some", [grid(), grid(cell("gumbel_coupling", "model", 1)), grid(WHOLE.runs[0])])
def test_a_grid_that_is_not_through_is_shown_as_far_as_it_goes(some: Grid) -> None:
    shown = laid(some)
    assert len(shown.table.rows) == len(some.runs)
    assert shown.story
    assert all(matrix.told for matrix in shown.matrices)


def test_every_text_has_a_row_with_its_hash() -> None:
    rows = laid(WHOLE).table.rows
    assert [line[-1] for line in rows] == ["same", "same", "same", "same", "same", "differs", "same"]
    assert len({line[-2] for line in rows}) == 2
