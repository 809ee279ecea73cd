"""The Gamma page as a visitor meets it, without a browser."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from specviz import experiments
from specviz.experiments import Policy, Sweep
from specviz.ui import loader as loader_module
from specviz.ui import words
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
    assert not page.test.warning
    assert all(plot["alt"] and plot["table"]["rows"] for plot in page.plots())
    assert len(page.plots()) == 8


def test_every_panel_says_where_its_numbers_come_from() -> None:
    badges = Gamma().badges()
    assert badges == [
        "modelled",
        "modelled" if badges[1] == "modelled" else badges[1],
        "recorded · theory modelled",
        "recorded",
        "recorded · equal chances modelled",
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
    assert "With shared 0.80 and c 0.10, 6 drafts a round should be best: 2.47×. Yours, gamma 7" in page.told
    assert "--spec-draft-n-max 7" in page.told
    assert page.set("slider", "theory_gamma", 0).told.count(words.GAMMA["engine.none"]) == 1


def test_make_it_lose_loses() -> None:
    page = Gamma().press("lose")
    assert "slower than the target alone; the drafter’s reads eat it" in page.told
    worst = page.test.session_state.explained
    assert worst == Policy(8)
    assert page.test.selectbox(key="explained").value == worst


def test_story_shows_sentences_only() -> None:
    page = Gamma({"detail": "Story"})
    assert page.titles == THEORY + MEASURED + ALWAYS
    assert not any("theory_ops" in (slider.key or "") for slider in page.test.slider)
    assert "verification is not free" not in page.told
    assert "verification is not free" in Gamma().told
    assert "arXiv 2211.17192" in Gamma({"detail": "Formulas"}).told


# --- the sweep --------------------------------------------------------------------------------------------------------


def test_a_workload_is_shown_by_itself() -> None:
    page = Gamma().set("selectbox", "workload", "code")
    assert "1 prompt, 7 runs" in page.told
    assert "2 prompts, 14 runs" in Gamma().told


def test_a_chosen_gamma_is_explained() -> None:
    page = Gamma().set("selectbox", "explained", Policy(8))
    assert "Gamma 8 could be 9.00×" in page.told
    assert "A read of 9 rows took 2.60× the time of a read of 1 row" in page.told


@pytest.mark.parametrize("runs", [[], [sweeps.run(Policy(0))], [sweeps.run(Policy(4))]])
def test_a_sweep_that_has_hardly_begun_is_shown(runs: list[Any]) -> None:
    page = Gamma(sweep=sweeps.sweep(runs), sweep_origin="here", explained=Policy(8), workload="code")
    assert page.titles[:2] == THEORY
    assert not page.test.warning


def test_without_a_recorded_sweep_the_page_says_so(recorded: Path) -> None:
    recorded.unlink()
    page = Gamma()
    assert page.titles == THEORY + ALWAYS
    assert words.SWEEP["none"] in page.told


def test_what_was_measured_here_says_so_and_marks_the_map() -> None:
    page = Gamma(sweep=sweeps.sweep(), sweep_origin="here")
    assert "modelled · cross measured here" in page.badges()
    assert "measured here" in page.badges()
    page.press("take_today")
    assert page.test.slider(key="theory_alpha").value == pytest.approx(0.5)
    assert page.test.slider(key="theory_c").value == pytest.approx(0.1)


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
    page.press("sweep_start")
    assert asked[0]["prompts"] == {"chat": [WORKLOADS["chat"]], "own": ["One?", "Two?"]}
    assert asked[0]["policies"] == experiments.policies()
    assert "measured here" in page.badges()
    assert "all, own" in ", ".join(page.test.selectbox(key="workload").options)


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
    assert "measured here" in page.badges()


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
    (warning,) = page.test.warning
    assert words.literal(said) in warning.value or said in warning.value
    assert raw not in page.test.query_params.get(key, [])
    assert page.titles == THEORY + MEASURED + ALWAYS


def test_an_empty_parameter_is_an_absent_one() -> None:
    page = Gamma(dict.fromkeys((*RANGES, "workload", "explained", "detail"), ""))
    assert not page.test.warning
    assert page.told == Gamma().told


def test_a_link_restores_the_page() -> None:
    link = {"theory_alpha": "0.8", "theory_gamma": "9", "workload": "code", "explained": "gamma 8"}
    page = Gamma(link)
    assert not page.test.warning
    assert page.test.slider(key="theory_gamma").value == 9
    assert page.test.selectbox(key="workload").value == "code"
    assert page.test.selectbox(key="explained").value == Policy(8)


def test_a_policy_that_stops_early_can_be_linked() -> None:
    page = Gamma({"explained": "up to 12, stops below 0.40"})
    assert not page.test.warning
    assert page.test.selectbox(key="explained").value == sweeps.EARLY[0]
    assert "Up to 12, stops below 0.40 could be 3.00×" in page.told


@pytest.mark.parametrize("key", ["workload", "explained"])
def test_a_link_to_what_no_sweep_has_is_said(recorded: Path, key: str) -> None:
    recorded.write_text(experiments.dump(sweeps.sweep([sweeps.run(Policy(0))])))
    page = Gamma({key: "gamma 4"})
    assert page.titles == THEORY + MEASURED + ALWAYS
