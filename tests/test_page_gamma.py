"""The Gamma page as a visitor meets it, without a browser."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from specviz import experiments
from specviz.experiments import Policy, Sweep
from specviz.figures.gamma import ratio
from specviz.figures.numbers import probability
from specviz.ui import loader as loader_module
from specviz.ui import recordings, session, words
from specviz.ui.experiment import Running
from specviz.ui.gamma import RANGES
from specviz.workloads import WORKLOADS
from tests import sweeps

ROOT = Path(__file__).parent.parent
THEORY = ("What a gamma should bring", "Where drafting pays")
MEASURED = (
    "Tokens a second",
    "Where the speed went",
    "Tokens a read",
    "Shared by place of the draft",
    "Stop drafting when the drafter is unsure",
)
ALWAYS = ("Stop before the draw, never after", "Take it to your engine")


@pytest.fixture(autouse=True)
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recorded_folder: Path) -> Path:
    """A recorded sweep made by hand, on a machine without weights."""
    folder = tmp_path / "traces"
    folder.symlink_to(recorded_folder)
    (tmp_path / "profile.json").symlink_to(ROOT / "assets" / "profile.json")
    path = tmp_path / "sweep.json"
    path.write_text(experiments.dump(sweeps.sweep()))
    monkeypatch.setattr("specviz.ui.recordings.FOLDER", folder)
    monkeypatch.setattr("specviz.models.store.embedded_target", lambda: None)
    fresh = loader_module.Loader()
    monkeypatch.setattr("specviz.ui.experiment.loader", lambda: fresh)
    return path


class Gamma:
    """The page under test."""

    def __init__(self, address: dict[str, str] | None = None, **state: Any) -> None:
        self.test = AppTest.from_file(str(ROOT / "pages" / "Gamma.py"), default_timeout=60)
        for name, value in (address or {}).items():
            self.test.query_params[name] = value
        for name, value in state.items():
            self.test.session_state[name] = value
        self.run()

    def run(self) -> Gamma:
        self.test.run()
        assert not self.test.exception
        return self

    def set(self, kind: str, key: str, value: Any) -> Gamma:
        getattr(self.test, kind)(key=key).set_value(value)
        return self.run()

    def press(self, key: str) -> Gamma:
        self.test.button(key=key).click()
        return self.run()

    @property
    def titles(self) -> tuple[str, ...]:
        return tuple(title.value for title in self.test.subheader)

    @property
    def refused(self) -> list[str]:
        """What is said of the link; what is thought of a gamma is another warning."""
        return [one.value for one in self.test.warning if "The link asked" in one.value]

    @property
    def told(self) -> str:
        texts = (*self.test.text, *self.test.caption, *self.test.warning, *self.test.info, *self.test.code)
        return "\n".join(text.value for text in texts)

    def badges(self) -> list[str]:
        return [one.value[12:-1] for one in self.test.markdown if one.value.startswith(":gray-badge[")]

    def plots(self) -> list[dict[str, Any]]:
        elements = [e.proto for e in self.test.get("bidi_component")]
        return [json.loads(e.json)[0] for e in elements if e.component_name == "specviz_plot"]


def test_a_cold_deep_link_shows_the_whole_page() -> None:
    page = Gamma()
    assert [title.value for title in page.test.title] == ["Gamma"]
    assert page.titles == THEORY + MEASURED + ALWAYS
    assert not page.refused
    assert all(plot["alt"] and plot["table"]["rows"] for plot in page.plots())
    assert len(page.plots()) == 8


def test_every_panel_says_where_its_numbers_come_from() -> None:
    badges = Gamma().badges()
    assert badges == [
        "modelled",
        "modelled · recorded",
        "recorded · modelled",
        "recorded",
        "recorded · modelled",
        "recorded",
        "recorded",
        "modelled",
    ]


def test_the_library_comes_last_and_once() -> None:
    names = [e.proto.component_name for e in Gamma().test.get("bidi_component")]
    assert names.count("specviz_plot_library") == 1
    assert names[-1] == "specviz_plot_library"


def test_the_page_needs_no_torch(recorded: Path) -> None:
    script = f"""
import sys
from dataclasses import replace
from pathlib import Path
from streamlit.testing.v1 import AppTest
from specviz.ui import recordings
recordings.FOLDER = Path({str(recorded.parent / "traces")!r})
page = AppTest.from_file({str(ROOT / "pages" / "Gamma.py")!r}, default_timeout=60).run()
assert not page.exception
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True)


# --- theory -----------------------------------------------------------------------------------------------------------


def test_the_sliders_change_the_story_and_the_flags() -> None:
    page = Gamma().set("slider", "theory_alpha", 0.8).set("slider", "theory_c", 0.1).set("slider", "theory_gamma", 7)
    assert "costs a tenth of the target’s, 6 drafts a round should be best: 2.47×. Yours, gamma 7" in page.told
    assert "--spec-draft-n-max 7" in page.told
    assert page.set("slider", "theory_gamma", 0).told.count(words.GAMMA["engine.none"]) == 1


def test_make_it_lose_loses() -> None:
    page = Gamma().press("lose")
    assert "slower than the target alone; the drafter’s reads eat it" in page.told
    worst = page.test.session_state.explained
    assert worst == Policy(8)
    assert page.test.selectbox(key="explained").value == worst
    assert "Set: shared 0.30, a drafter’s read at half of the target’s, gamma 8. Below: prompts “chat”, gamma 8" in (
        page.told.replace("\\", "")
    )


def test_make_it_lose_can_be_taken_back() -> None:
    link = {"theory_alpha": "0.7", "theory_c": "0.2", "theory_gamma": "3", "workload": "code", "explained": "gamma 2"}
    page = Gamma(link).press("lose").press("lose").press("unlose")
    said = [page.test.slider(key=key).value for key in ("theory_alpha", "theory_c", "theory_gamma")]
    assert said == [0.7, 0.2, 3]
    assert (page.test.selectbox(key="workload").value, page.test.selectbox(key="explained").value) == (
        "code",
        Policy(2),
    )
    assert not any(button.key == "unlose" for button in page.test.button)


def test_what_make_it_lose_set_is_told_while_it_stands() -> None:
    page = Gamma().press("lose")
    assert "Set: shared" in page.told.replace("\\", "")
    page.set("slider", "theory_gamma", 2)
    assert "Set: shared" not in page.told.replace("\\", "")
    assert any(button.key == "unlose" for button in page.test.button)


def test_story_shows_sentences_only() -> None:
    page = Gamma({"detail": "Story"})
    assert page.titles == THEORY + MEASURED + ALWAYS
    assert not any("theory_ops" in (slider.key or "") for slider in page.test.slider)
    assert "verification is not free" not in page.told
    assert "verification is not free" in Gamma().told
    assert "arXiv 2211.17192" in Gamma({"detail": "Formulas"}).told
    assert "--spec-draft-n-max" not in page.told
    assert words.GAMMA["engine.story"] in page.told
    assert "c 0." not in page.told + "".join(button.label for button in page.test.button)


def test_a_gamma_that_loses_is_warned_of_before_its_flags() -> None:
    page = Gamma({"theory_alpha": "0.3", "theory_c": "0.5", "theory_gamma": "8"})
    (warning,) = page.test.warning
    assert "slower than the target alone" in warning.value
    good = Gamma({"theory_alpha": "0.8", "theory_gamma": "1"})
    assert not good.test.warning
    assert "By the theory, with the sliders’ numbers, gamma 1" in good.told
    assert "By the clock gamma 1" in good.told


# --- the sweep --------------------------------------------------------------------------------------------------------


def test_a_workload_is_shown_by_itself() -> None:
    page = Gamma().set("selectbox", "workload", "code")
    assert "1 prompt, 7 runs" in page.told
    assert "2 prompts, 14 runs" in Gamma().told


def test_a_chosen_gamma_is_explained() -> None:
    page = Gamma().set("selectbox", "explained", Policy(8))
    assert "Gamma 8 could be 9.00×" in page.told
    assert "The wider read took as long as 2.60 reads of one row" in page.told


@pytest.mark.parametrize("runs", [[], [sweeps.run(Policy(0))], [sweeps.run(Policy(4))]])
def test_a_sweep_that_has_hardly_begun_is_shown(runs: list[Any]) -> None:
    page = Gamma(sweep=sweeps.sweep(runs), sweep_origin="here", explained=Policy(8), workload="code")
    assert page.titles[:2] == THEORY
    assert not page.refused


def test_without_a_recorded_sweep_the_page_says_so(recorded: Path) -> None:
    recorded.unlink()
    page = Gamma()
    assert page.titles == THEORY + ALWAYS
    assert words.SWEEP["none"] in page.told


def test_what_was_measured_here_says_so_and_marks_the_map() -> None:
    page = Gamma(sweep=sweeps.sweep(), sweep_origin="here")
    assert "modelled · recorded · measured" in page.badges()  # today's run is a recorded one
    page.press("take_sweep")
    assert page.test.slider(key="theory_alpha").value == pytest.approx(0.5)
    assert page.test.slider(key="theory_c").value == pytest.approx(0.1)


def test_badges_are_the_four_words_that_every_page_has() -> None:
    known = {"measured", "modelled", "simulated", "recorded"}
    for origin in ("here", "file", "recorded"):
        badges = Gamma(sweep=sweeps.sweep(), sweep_origin=origin).badges()
        assert {word for badge in badges for word in badge.split(" · ")} <= known


def test_todays_numbers_are_never_those_of_a_sweep_and_a_running_sweep_has_none() -> None:
    def offered(page: Gamma) -> dict[str, str]:
        return {one.key: one.label for one in page.test.button if one.key and one.key.startswith("take_")}

    before = offered(Gamma())
    assert set(before) == {"take_today", "take_sweep"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("specviz.ui.experiment.work", lambda kind, slot: None)
        running = Gamma(sweep=sweeps.sweep(), sweep_origin="here", sweep_running=Running(wanted=True))
    assert offered(running) == {"take_today": before["take_today"]}
    assert "ways to draft" in running.told
    assert "about" not in next(one.value for one in running.test.caption if "ways to draft" in one.value), "told below"


def test_the_sliders_take_what_came_out_as_it_is_said_on_the_map() -> None:
    page = Gamma(sweep=sweeps.sweep([sweeps.run(policy, alpha=0.4321) for policy in sweeps.FIXED]), sweep_origin="here")
    page.press("take_today")
    alpha, c = (page.test.slider(key=key).value for key in ("theory_alpha", "theory_c"))
    label = page.test.button(key="take_today").label
    assert label.endswith(f"{probability(alpha)}, c {ratio(c)}")
    assert f"The diamond: shared {probability(alpha)}, c {ratio(c)}, " in page.told
    page.press("take_sweep")
    slider = page.test.slider(key="theory_alpha")
    assert slider.value == 0.432
    assert slider.proto.format % slider.value == "0.432"


@pytest.mark.parametrize("called", ["all", "All", " all"])
def test_a_workload_is_never_called_as_all_of_them_are(called: str) -> None:
    page = Gamma(sweep=sweeps.sweep([sweeps.run(policy, called) for policy in sweeps.FIXED]), sweep_origin="file")
    assert list(page.test.selectbox(key="workload").options) == ["all", "“All”"]


def test_a_run_whose_drafter_the_profile_did_not_time_leaves_no_cross(monkeypatch: pytest.MonkeyPatch) -> None:
    opening = session.recorded(recordings.first())
    other = tuple(replace(round_, settings={**round_.settings, "drafter": "target"}) for round_ in opening.trace.rounds)
    run = replace(opening, trace=replace(opening.trace, rounds=other))
    monkeypatch.setattr("specviz.ui.positions.current_run", lambda: run)
    assert [one.key for one in Gamma().test.button if one.key and one.key.startswith("take_")] == ["take_sweep"]


def test_hostile_names_are_shown_as_text() -> None:
    hostile = [
        sweeps.run(policy, "<script>alert(1)</script>\u202e[x](javascript:1)", "\u202e<b>") for policy in sweeps.FIXED
    ]
    page = Gamma(sweep=sweeps.sweep(hostile, pair="<b>*big*</b>", device="# a\nmachine"), sweep_origin="file")
    assert "\u202e" not in page.told
    assert "\u202e" not in "".join(page.test.selectbox(key="workload").options)
    assert any("\\<b\\>\\*big\\*" in caption.value for caption in page.test.caption)


# --- measuring --------------------------------------------------------------------------------------------------------


class _Sweeper:
    """Stands in for the real one: three steps, each adds what one policy took."""

    total = 3

    def __init__(self, pair: Any, **asked: Any) -> None:
        self.asked, self.done = asked, 0

    @property
    def finished(self) -> bool:
        return self.done >= self.total

    def step(self) -> None:
        self.done += 1

    def close(self) -> None:
        pass

    def result(self) -> Sweep | None:
        return sweeps.sweep([sweeps.run(policy, "own") for policy in sweeps.FIXED[: self.done]]) if self.done else None


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What sweeps on a machine with the pair are asked for."""
    seen: list[dict[str, Any]] = []

    def sweeper(pair: Any, **asked: Any) -> _Sweeper:
        seen.append(asked)
        return _Sweeper(pair, **asked)

    monkeypatch.setattr("specviz.decoding.experiments.Sweeper", sweeper)
    monkeypatch.setattr("specviz.ui.experiment._pair", lambda kind, bar: object())
    return seen


def test_a_sweep_of_ones_own_prompts_is_measured_and_shown(asked: list[dict[str, Any]]) -> None:
    page = Gamma().set("text_area", "sweep_own", "  One?  \n\nTwo?\nOne?")
    assert "3 prompts × 18 ways to draft × 48 tokens = 2,592 tokens, about " in page.told
    page.press("sweep_start")
    assert asked[0]["prompts"] == {"chat": [WORKLOADS["chat"]], "own": ["One?", "Two?"]}
    assert asked[0]["policies"] == experiments.policies()
    assert "measured" in page.badges()
    assert "all, own" in ", ".join(page.test.selectbox(key="workload").options)


def test_copies_can_be_measured_and_never_stop_early(asked: list[dict[str, Any]]) -> None:
    page = Gamma().set("selectbox", "sweep_drafter", "ngram")
    assert "1 prompt × 13 ways" in page.told
    page.press("sweep_start")
    assert asked[0]["policies"] == experiments.policies("ngram")


def test_nothing_to_measure_cannot_be_started() -> None:
    page = Gamma()
    page.test.pills[0].set_value([])
    page.run()
    assert page.test.button(key="sweep_start").disabled
    assert words.GAMMA["nothing"] in page.told


def test_too_many_prompts_are_cut_and_said(asked: list[dict[str, Any]]) -> None:
    page = Gamma().set("text_area", "sweep_own", "\n".join(f"{number} {'x' * 10_000}" for number in range(20)))
    assert "20 prompts: the first 8 are measured." in page.told
    page.press("sweep_start")
    assert len(asked[0]["prompts"]["own"]) == 8
    assert max(map(len, asked[0]["prompts"]["own"])) == 2_000


def test_without_weights_the_page_says_what_to_do() -> None:
    page = Gamma().press("sweep_start")
    assert "python -m specviz fetch" in page.told
    assert page.titles == THEORY + MEASURED + ALWAYS
    assert not page.test.button(key="sweep_start").disabled


def test_a_cancelled_sweep_keeps_what_it_has() -> None:
    job = _Sweeper(None)
    job.step()
    page = Gamma(sweep_running=Running(wanted=False, job=job))
    from specviz.ui import experiment

    page.test.session_state.sweep_running = Running(wanted=True, job=job)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiment, "work", lambda kind, slot: None)
        page.run().press("sweep_cancel")
    assert words.SWEEP["cancelled"] in page.told
    assert "measured" in page.badges()


# --- the address ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "raw", "said"),
    [
        ("theory_alpha", "1.5", "alpha 1.5; it goes from 0 to 1"),
        ("theory_alpha", "nan", "alpha nan"),
        ("theory_c", "1e308", "c 1e308"),
        ("theory_c", "-1", "c -1"),
        ("theory_gamma", "41", "gamma 41; it is a whole number from 0 to 40"),
        ("theory_gamma", "2.5", "gamma 2.5"),
        ("workload", "\u202e<b>" + "x" * 10_000, "⟨U+202E⟩"),
        ("explained", "gamma 99", "“gamma␣99”; that is not on offer, so gamma 4 is used"),
        ("detail", "Poem", "detail Poem; that is not on offer, so Numbers is used"),
    ],
)
def test_what_a_link_cannot_have_is_said_and_leaves_the_address(key: str, raw: str, said: str) -> None:
    page = Gamma({key: raw})
    (warning,) = page.refused
    assert words.literal(said) in warning or said in warning
    assert raw not in page.test.query_params.get(key, [])
    assert page.titles == THEORY + MEASURED + ALWAYS


def test_an_empty_parameter_is_an_absent_one() -> None:
    page = Gamma(dict.fromkeys((*RANGES, "workload", "explained", "detail"), ""))
    assert not page.refused
    assert page.told == Gamma().told


def test_a_link_restores_the_page() -> None:
    link = {"theory_alpha": "0.8", "theory_gamma": "9", "workload": "code", "explained": "gamma 8"}
    page = Gamma(link)
    assert not page.refused
    assert page.test.slider(key="theory_gamma").value == 9
    assert page.test.selectbox(key="workload").value == "code"
    assert page.test.selectbox(key="explained").value == Policy(8)


def test_a_policy_that_stops_early_can_be_linked() -> None:
    page = Gamma({"explained": "up to 12, stops below 0.40"})
    assert not page.refused
    assert page.test.selectbox(key="explained").value == sweeps.EARLY[0]
    assert "Up to 12, stops below 0.40 could be 3.00×" in page.told


@pytest.mark.parametrize("key", ["workload", "explained"])
def test_a_link_to_what_no_sweep_has_is_said(recorded: Path, key: str) -> None:
    recorded.write_text(experiments.dump(sweeps.sweep([sweeps.run(Policy(0))])))
    page = Gamma({key: "gamma 4"})
    assert page.titles == THEORY + MEASURED + ALWAYS
