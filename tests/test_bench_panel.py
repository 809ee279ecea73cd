"""The losslessness bench: its verdicts, what it draws, and the panel on its page."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from specviz import losslessness
from specviz.figures import bench as figures
from specviz.figures.bench import Draws, Pairs
from specviz.figures.charts import Panel
from specviz.losslessness import Entrant, entrants
from specviz.rules import RULES, WRONG_RULES
from specviz.ui import bench, words
from specviz.ui.bench import Bench
from specviz.ui.overlap_scene import Scene
from tests.decode_page import ROOT

P, Q = np.array([0.6, 0.2, 0.1, 0.1]), np.array([0.7, 0.2, 0.05, 0.05])
RIGHT, WRONG = list(RULES), list(WRONG_RULES)


def letter(token_id: int) -> str:
    return "abcdefghijkl"[token_id]


def trials(p: Any = P, q: Any = Q, temperature: float = 1.0) -> dict[str, Entrant]:
    with np.errstate(divide="ignore"):
        logits = np.log(np.asarray(p)), np.log(np.asarray(q))
    every = entrants(*logits, temperature=1.0, drafter_temperature=temperature)
    return {entrant.name: entrant for entrant in every}


def dealt(trial: Entrant, count: int = 100_000, seed: int = 1) -> Draws:
    return Draws(trial, losslessness.deal(trial.rule, trial.p, trial.q, count, seed, drawn=trial.drawn), seed)


def out(trial: Entrant, draws: Draws | None = None, *, story: bool = False) -> Panel:
    return figures.out(trial, trial.name, draws, range(len(trial.p)), letter, story=story)


def came(panel: Panel) -> list[float]:
    return [float(row[2]) for row in panel.table.rows]


def pairs(trial: Entrant, gamma: int, count: int = 100_000) -> tuple[Pairs, Any]:
    p, q, drawn = (np.stack([law] * (gamma + 2)) for law in (trial.p, trial.q, trial.drawn))
    counts = losslessness.deal_joint(trial.rule, p, q, gamma, count, 1, drawn_places=drawn)
    law = losslessness.joint(trial.rule, p, q, gamma, drawn)
    return Pairs(counts, np.outer(trial.p, trial.p), 1), law


# --- verdicts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*RIGHT, "drafter_at_0"])
def test_a_right_rule_passes_and_is_called_exact(name: str) -> None:
    draws = dealt(trials()[name])
    assert draws.verdict == "fits"
    assert draws.said(letter) == "exact, as far as 100,000 draws can tell"


@pytest.mark.parametrize("name", [*WRONG, "q_before_temperature", "argmax_drafted_softmax_reported"])
def test_what_is_wrong_fails_and_a_token_says_by_how_much(name: str) -> None:
    draws = dealt(trials(P[::-1], Q[::-1], temperature=0.6)[name])
    assert draws.verdict == "wrong"
    worst = np.argmax(np.abs(draws.outcome.emitted / draws.count - draws.entrant.p))
    assert draws.said(letter).startswith(f"wrong: “{letter(int(worst))}”")
    assert "the target wants it" in draws.said(letter)


def test_redealing_from_p_gives_the_known_chances_instead_of_p() -> None:
    trial = trials()["resample_from_p"]
    assert came(out(trial)) == [0.66, 0.22, 0.06, 0.06]
    panel = out(trial, dealt(trial))
    assert came(panel) == pytest.approx([0.66, 0.22, 0.06, 0.06], abs=0.006)
    assert [row[1] for row in panel.table.rows] == ["0.6000", "0.2000", "0.1000", "0.1000"]
    assert {row[3] for row in panel.table.rows} == {"off"}
    assert "“a” came 66 times in 100, and the target wants it 60 times in 100" in panel.story


def test_a_wrong_rule_that_comes_out_right_is_called_lucky_not_exact() -> None:
    draws = dealt(trials(P, P)["resample_from_p"])
    assert draws.verdict == "lucky"
    assert draws.said(letter).startswith("by luck right at this place")
    assert draws.said(letter).endswith("p and q are the same")
    assert "exact" not in draws.said(letter)


def test_only_what_has_a_bar_is_said_to_end_on_it() -> None:
    every = {name: dealt(trials()[name], 1_000) for name in ("greedy", "token_match")}
    told = {name: figures.far([(name, draws)], letter, story=False).story for name, draws in every.items()}
    assert "end on the bar" in told["token_match"]
    assert "without a bar" not in told["token_match"]
    assert "end on the bar" not in told["greedy"]
    assert "without a bar" in told["greedy"]
    both = figures.far(list(every.items()), letter, story=False).story
    assert "end on the bar" in both
    assert "without a bar" in both


def test_what_is_kept_is_written_without_its_rounding_error() -> None:
    law = np.full(12, 1 / 12)
    law[0] -= 1e-16
    assert "kept 1," in out(trials(law, law)["speculative_sampling"]).numbers[0]


def test_an_error_too_small_for_the_draws_is_told_and_gets_no_tick() -> None:
    nearly = P + np.array([0.002, -0.002, 0.0, 0.0])
    draws = dealt(trials(P, nearly)["resample_from_p"])
    assert draws.verdict == "hidden"
    assert figures.GLYPHS[draws.verdict] != figures.GLYPHS["fits"]
    assert "too few for 100,000 draws to show" in draws.said(letter)


def test_a_token_that_the_target_never_wants_is_named() -> None:
    lie = Entrant(
        "lie", RULES["speculative_sampling"], np.array([1.0, 0.0]), np.array([1.0, 0.0]), np.array([0.5, 0.5])
    )
    counts = losslessness.Outcome(*(np.array([90, 10]), np.array([90, 10]), np.array([0, 0])))
    draws = Draws(lie, counts, 1)
    assert draws.verdict == "wrong"
    assert draws.said(letter) == "wrong: “b” came, and the target never wants it"


@pytest.mark.parametrize(
    ("p_value", "verdict"),
    [(1.0, "fits"), (1e-3, "fits"), (9e-4, "open"), (1e-6, "open"), (9e-7, "wrong"), (0.0, "wrong")],
)
def test_a_verdict_follows_from_how_rarely_exact_dealing_shows_the_same(p_value: float, verdict: str) -> None:
    found: Any = SimpleNamespace(p_value=p_value)
    assert figures.judged(found, exact=True, distance=0.0) == verdict
    assert figures.judged(found, exact=False, distance=0.1) == {"fits": "hidden"}.get(verdict, verdict)


# --- one token --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*RIGHT, *WRONG])
def test_kept_and_written_instead_make_up_what_came(name: str) -> None:
    draws = dealt(trials()[name], 5_000)
    figure = out(draws.entrant, draws).figure
    assert figure is not None
    kept, instead = (np.array(bar.x) for bar in figure.data if bar.type == "bar")
    assert kept + instead == pytest.approx(draws.outcome.emitted / 5_000)
    assert (kept + instead).sum() == pytest.approx(1)


def test_a_bar_is_off_exactly_where_it_leaves_its_bracket() -> None:
    draws = dealt(trials()["resample_from_p"], 2_000)
    bars = figures._bars(draws.entrant, draws, range(4))
    outside = [not low <= share <= high for share, (low, high) in zip(bars.came, bars.bands, strict=True)]
    assert bars.off == outside
    assert any(outside)


def test_a_large_vocabulary_is_its_likeliest_tokens_the_worst_one_and_the_others() -> None:
    p = np.arange(40, 0, -1.0) / 820
    worst = 30
    q = p + 0.2 * (np.arange(40) == worst)
    trial = trials(p, q / q.sum())["resample_from_p"]
    panel = figures.out(trial, "wrong", None, range(12), str, story=False)
    names = [row[0] for row in panel.table.rows]
    assert len(names) == figures.BARS + 1
    assert names[-1] == f"{40 - figures.BARS} others"
    assert str(worst) in names
    assert sum(came(panel)) == pytest.approx(1, abs=1e-3)


def test_a_story_has_no_brackets_no_tv_and_no_statistics() -> None:
    draws = dealt(trials()["resample_from_p"], 5_000)
    panels = [out(draws.entrant, draws, story=True), figures.far([("wrong", draws)], letter, story=True)]
    brackets = [trace.error_x.visible for trace in panels[0].figure.data if trace.type == "scatter"]  # type: ignore[union-attr]
    assert not any(brackets)
    for panel in panels:
        assert "TV" not in " ".join((panel.title, panel.story, *panel.table.columns))
    assert panels[1].figure is None


def test_every_rule_that_was_dealt_has_a_row_with_its_distance_and_its_noise() -> None:
    every = trials()
    rows = [(name, dealt(every[name], 20_000)) for name in ("speculative_sampling", "greedy", "resample_from_p")]
    panel = figures.far(rows, letter, story=False)
    assert [row[-1][0] for row in panel.table.rows] == ["✓", "✓", "✗"]
    assert "2 of the 3 that were dealt pass" in panel.story
    assert "pass" not in figures.far(rows[:1], letter, story=False).story
    assert panel.figure is not None
    marks = [x for trace in panel.figure.data if trace.mode == "markers" for x in trace.x]
    assert len(marks) == 3
    # Nothing is lost on an axis by powers of ten: a distance of 0 has a place of its own, and no bar.
    axis, bar = panel.figure.layout.xaxis, panel.figure.data[0]
    assert dict(zip(axis.tickvals, axis.ticktext, strict=True))[min(marks)] == "0"
    assert min(marks) < min(x for x in bar.x if x)
    assert [x for x, row in zip(bar.x, bar.y, strict=True) if row == 1] == [None, None]


def test_nothing_left_to_chance_is_said_instead_of_tested() -> None:
    trial = trials()["greedy"]
    assert any("Nothing is left to chance" in line for line in out(trial, dealt(trial, 1_000)).numbers)


def test_a_place_that_is_nearly_certain_is_tested_by_what_hardly_ever_comes() -> None:
    trial = trials((0.9995, 0.0005), (0.5, 0.5))["speculative_sampling"]
    numbers = out(trial, dealt(trial, 2_000)).numbers
    assert not any("Nothing is left to chance" in line for line in numbers)
    assert any("too rare for a chi-square" in line for line in numbers)


def test_hostile_names_stay_text() -> None:
    trial = trials()["resample_from_p"]
    panel = figures.out(trial, "<b>x</b>", dealt(trial, 5_000), range(4), lambda _: "<img src=x>", story=False)
    assert panel.figure is not None
    assert "<img" not in panel.figure.to_json().replace("\\u003c", "<")


# --- two tokens -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", [1, 2, 3])
@pytest.mark.parametrize("name", [*RIGHT, *WRONG])
def test_pairs_have_the_targets_chances_under_right_rules_alone(name: str, gamma: int) -> None:
    trial = trials()[name]
    found, law = pairs(trial, gamma, 50_000)
    by_chance = figures.pair_chances(law, found.wanted, "abcd", coarse=False)
    by_draws = figures.pair_dealt(found, law, "abcd", exact=trial.exact)
    assert ("exactly" in by_chance.story) == (name in RIGHT)
    assert by_draws.story.startswith("✓" if name in RIGHT else "✗")
    assert any(row[-1] == "off" for row in by_chance.table.rows) == (name in WRONG)


def test_rows_are_the_first_token_and_columns_the_second() -> None:
    wanted = np.array([[0.1, 0.9], [0.0, 0.0]])
    panel = figures.pair_chances(wanted, wanted, "ab", coarse=False)
    assert panel.table.rows[1][:4] == ("a", "b", "0.900", "0.900")
    heat = panel.figure.data[0]  # type: ignore[union-attr]
    assert heat.z[0][1] == 0.9
    assert panel.figure.layout.xaxis.title.text == "second token"  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["speculative_sampling", "resample_from_p"])
def test_pairs_are_written_alike_in_chart_and_table_and_tell_what_differs(name: str) -> None:
    found, law = pairs(trials()[name], 1)
    for panel in (
        figures.pair_chances(law, found.wanted, "abcd", coarse=False),
        figures.pair_dealt(found, law, "abcd", exact=name in RIGHT),
    ):
        written = [row[3] for row in panel.table.rows]
        drawn = [text.split()[-1] for line in panel.figure.data[0].text for text in line]  # type: ignore[union-attr]
        assert written == drawn
        assert max(map(len, written)) <= len("0.1234")
    by_chance = figures.pair_chances(law, found.wanted, "abcd", coarse=False).table.rows
    assert all((row[2] != row[3]) == (row[4] == "off") for row in by_chance)


def test_what_is_off_is_written_at_its_own_bar() -> None:
    p = np.array([0.5, 0.3, 0.2])
    lie = Entrant("lie", RULES["speculative_sampling"], p, np.array([0.0, 0.0, 1.0]), np.array([0.0, 0.0, 1.0]))
    counts = losslessness.Outcome(*(np.array([10, 30, 60]), np.array([10, 30, 60]), np.array([0, 0, 0])))
    labels = next(
        one for one in out(lie, Draws(lie, counts, 1)).figure.data if one.type == "scatter" and one.mode == "text"
    )  # type: ignore[union-attr]
    assert dict(zip(labels.y, labels.x, strict=True))[0] == pytest.approx(0.1)


def test_a_block_of_one_is_kept_as_under_sampling() -> None:
    every = trials()
    block, sampling = every["block_verification"], every["speculative_sampling"]
    assert block.alone == pytest.approx(sampling.alone)
    draws = dealt(block)
    assert draws.outcome.kept.sum() / draws.count == pytest.approx(block.alone, abs=0.005)
    assert "kept 0.9000, alone as under Sampling" in out(block).numbers[0]


def test_a_large_vocabulary_becomes_a_small_place_of_its_own() -> None:
    p = np.arange(40, 0, -1.0) / 820
    q = np.roll(p, 3)
    (small_p, small_q, small_drawn), kept = figures.cells(p, q, p, range(12))
    assert len(kept) == figures.CELLS
    for small, law in ((small_p, p), (small_q, q), (small_drawn, p)):
        assert len(small) == figures.CELLS + 1
        assert small.sum() == pytest.approx(1)
        assert small[:-1] == pytest.approx(law[kept])


# --- dealing on the page ----------------------------------------------------------------------------------------------


def scene(trials_: dict[str, Entrant]) -> Scene:
    return Scene(tuple(trials_.values()), tuple("abcd"), tuple(range(4)), P, Q, True, "modelled", "here", "Numbers")


@pytest.mark.parametrize("gamma", [0, 2])
def test_a_deal_that_is_broken_off_goes_on_where_it_stood(gamma: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(losslessness, "whole_count", lambda *_: 1_000)
    monkeypatch.setattr(losslessness, "largest_batch", lambda *_: 300)
    monkeypatch.setattr(bench, "PAIRS", 1_000)
    monkeypatch.setattr(bench, "PAIR_BATCH", 300)
    trial = trials()["resample_from_p"]
    now, job = Bench(seed=7), (trial.name, gamma)
    first = bench._batches(now, trial, job, scene(trials()))
    assert [next(first), next(first)] == [(300, 1_000), (600, 1_000)]
    first.close()
    assert list(bench._batches(now, trial, job, scene(trials()))) == [(900, 1_000), (1_000, 1_000)]
    if gamma:
        p, q = np.stack([P] * 4), np.stack([Q] * 4)
        assert (now.pairs[job].counts == losslessness.deal_joint(trial.rule, p, q, gamma, 1_000, 7)).all()
    else:
        whole = losslessness.deal(trial.rule, P, Q, 1_000, 7)
        assert (now.draws[trial.name].outcome.emitted == whole.emitted).all()
    now.seed = 8
    assert next(bench._batches(now, trial, job, scene(trials()))) == (300, 1_000)


class Page:
    """The page under test, with two distributions by hand."""

    def __init__(self, **asked: str) -> None:
        self.test = AppTest.from_file(str(ROOT / "pages" / "Overlap.py"), default_timeout=60)
        for name, value in {"p": "0.6, 0.2, 0.1, 0.1", "q": "0.7, 0.2, 0.05, 0.05", **asked}.items():
            self.test.query_params[name] = value
        self.run()

    def run(self) -> Page:
        self.test.run()
        assert not self.test.exception
        return self

    def press(self, key: str) -> Page:
        self.test.button(key=key).click()
        return self.run()

    @property
    def texts(self) -> str:
        return "\n".join(text.value for text in self.test.text)

    def mounted(self, name: str) -> list[dict[str, Any]]:
        elements = [element.proto for element in self.test.get("bidi_component")]
        return [json.loads(one.json)[0] for one in elements if one.component_name == name]

    def titles(self) -> Sequence[str]:
        return [heading.value for heading in self.test.subheader]


pytestmark = pytest.mark.usefixtures("no_weights")


def test_a_press_deals_and_another_deals_with_another_seed() -> None:
    page = Page()
    before = page.titles()
    page.press("bench_deal")
    assert page.titles() == before  # nothing moves
    assert "✓ Sampling: exact, as far as 100,000 draws can tell." in page.texts
    assert "seed 1" in page.texts
    page.press("bench_deal")
    assert "seed 2" in page.texts
    assert page.test.query_params["bench_seed"] == "2"


def test_two_who_open_a_link_with_a_seed_see_the_same_verdict() -> None:
    first, second = (Page(bench_seed="41").press("bench_deal") for _ in range(2))
    assert "seed 41" in first.texts
    counts = [one.test.session_state.bench.draws["speculative_sampling"].outcome.emitted for one in (first, second)]
    assert (counts[0] == counts[1]).all()


def test_what_was_dealt_is_counted_and_shown_whatever_the_detail() -> None:
    page = Page().press("bench_all")
    whole = len(page.test.session_state.bench.draws)
    page.test.segmented_control(key="detail").set_value("Story")
    page.run()
    assert f"of the {whole} that were dealt pass" in page.texts
    table = next(one.value for one in page.test.markdown if "| rule" in one.value)
    assert len(table.splitlines()) == whole + 2
    assert words.ENTRANTS["block_verification"] in table


def test_all_rules_at_once_have_a_verdict_each() -> None:
    page = Page().press("bench_all")
    now: Bench = page.test.session_state.bench
    assert not now.wanted
    assert {"speculative_sampling", "resample_from_p", "gumbel_coupling"} <= set(now.draws)
    assert {draws.count for draws in now.draws.values()} == {100_000}
    for name, draws in now.draws.items():
        assert (draws.verdict == "wrong") == (draws.entrant.distance > figures.OFF), name


def test_a_rule_in_the_address_is_on_the_bench() -> None:
    page = Page(bench_rule=words.ENTRANTS["resample_from_p"] + words.BENCH["wrong"])
    assert "8 in 100 land on the wrong token" in page.texts


@pytest.mark.parametrize("asked", ["", "<b>" * 3_000])
def test_an_address_that_cannot_be_had_leaves_the_usual(asked: str) -> None:
    page = Page(bench_rule=asked, bench_gamma=asked)
    assert "Sampling, by its chances: exactly what the target wants comes out" in page.texts


def test_what_was_dealt_at_another_place_is_gone_and_the_bench_stays_usable() -> None:
    page = Page().press("bench_deal")
    page.test.text_input(key="q").set_value("0.1, 0.2, 0.3, 0.4")
    page.run()
    assert "100,000 draws" not in page.texts
    assert page.press("bench_deal").test.session_state.bench.draws


def test_two_tokens_are_dealt_with_the_chosen_gamma() -> None:
    page = Page()
    page.test.segmented_control(key="bench_gamma").set_value(3)
    page.run().press("bench_pairs")
    assert list(page.test.session_state.bench.pairs) == [("speculative_sampling", 3)]
    assert figures.PAIR_TITLE["dealt"] in page.titles()


def test_lines_are_shown_for_either_fate() -> None:
    page = Page()
    for key, kept in (("lines_stays", True), ("lines_goes", False), ("lines_goes", False)):
        before = page.test.session_state.bench.shown[1]
        page.press(key)
        shown = page.mounted("specviz_lines")[0]
        assert shown["kept"] is kept
        assert page.test.session_state.bench.shown[1] > before
    assert any(one["name"] == "SpeculativeSampling.correction" for one in shown["functions"])


def test_a_fate_that_cannot_be_found_is_told() -> None:
    page = Page(q="0.6, 0.2, 0.1, 0.1").press("lines_stays").press("lines_goes")
    assert words.BENCH["no_go"] in [caption.value for caption in page.test.caption]
    assert page.mounted("specviz_lines")[0]["kept"]
    assert words.BENCH["no_go"] not in [caption.value for caption in page.press("lines_stays").test.caption]


def test_a_failure_is_told_and_the_bench_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    page = Page()

    def broken(*_: Any, **__: Any) -> None:
        raise MemoryError

    deal: Callable[..., Any] = losslessness.deal
    monkeypatch.setattr(losslessness, "deal", broken)
    page.press("bench_deal")
    assert any("Dealing failed (MemoryError)" in caption.value for caption in page.test.caption)
    monkeypatch.setattr(losslessness, "deal", deal)
    page.press("bench_deal")
    assert "exact, as far as 100,000 draws can tell" in page.texts
