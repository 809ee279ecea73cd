"""The Gumbel page as a visitor meets it, without a browser and without weights."""

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
from specviz.experiments import Grid
from specviz.figures import gumbel as figures
from specviz.ui import words
from tests.decode_page import ROOT

SHIPPED = ROOT / "assets" / "traces"
PANELS = ("The race", words.TEXTS["title"], "How often do they agree?", "Why it helps debugging: any place, again")


@pytest.fixture(autouse=True)
def _shipped(no_weights: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The recordings that ship, on a machine without weights."""
    from specviz.ui import experiment, loader, recordings

    monkeypatch.setattr(recordings, "FOLDER", SHIPPED)
    monkeypatch.setattr(experiment, "loader", loader.loader)


class Gumbel:
    """The page under test."""

    def __init__(self, **asked: str) -> None:
        self.test = AppTest.from_file(str(ROOT / "pages" / "Gumbel.py"), default_timeout=60)
        for name, value in asked.items():
            self.test.query_params[name] = value
        self.run()

    def run(self) -> Gumbel:
        self.test.run()
        assert not self.test.exception
        return self

    def set(self, kind: str, key: str, value: Any) -> Gumbel:
        getattr(self.test, kind)(key=key).set_value(value)
        return self.run()

    def press(self, key: str) -> Gumbel:
        self.test.button(key=key).click()
        return self.run()

    def data(self, component: str) -> list[Any]:
        elements = [e.proto for e in self.test.get("bidi_component")]
        return [json.loads(e.json)[0] for e in elements if e.component_name == f"specviz_{component}"]

    @property
    def texts(self) -> list[str]:
        return [text.value for text in self.test.text]

    @property
    def badges(self) -> list[str]:
        return [m.value[len(":gray-badge[") : -1] for m in self.test.markdown if "-badge[" in m.value]

    @property
    def first_place(self) -> Any:
        return int(self.test.select_slider(key="race_place").options[0])

    @property
    def race(self) -> Any:
        return self.data("place")[0]


def test_a_cold_deep_link_shows_the_whole_page() -> None:
    page = Gumbel()
    assert [title.value for title in page.test.title] == ["Gumbel"]
    assert tuple(title.value for title in page.test.subheader) == PANELS
    assert page.race["mode"] == "race"
    assert page.badges == ["recorded", "recorded", "modelled · simulated", "recorded · simulated"]
    assert not page.test.warning
    assert [e.proto.component_name for e in page.test.get("bidi_component")][-1] == "specviz_plot_library"


def test_the_page_needs_no_torch() -> None:
    script = f"""
import sys
from streamlit.testing.v1 import AppTest
page = AppTest.from_file({str(ROOT / "pages" / "Gumbel.py")!r}, default_timeout=60).run()
assert not page.exception
print(sorted({{"torch", "transformers"}} & set(sys.modules)))
"""
    result = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert result.stdout.split("\n")[0] == "[]", result.stderr[-2000:]


def test_it_steps_through_the_places_of_the_run() -> None:
    page = Gumbel()
    here = page.test.select_slider(key="race_place").value
    before = page.race["title"]
    page.press("place_step")
    assert page.test.select_slider(key="race_place").value == here + 1
    assert page.race["title"] != before
    page.press("place_back")
    assert page.race["title"] == before
    assert page.set("select_slider", "race_place", page.first_place).test.button(key="place_back").disabled


def test_new_noise_is_another_race_and_the_old_one_comes_back() -> None:
    page = Gumbel()
    before = page.race
    page.press("new_noise")
    assert page.badges[0] == "simulated"
    first = page.race["bars"]
    assert first != before["bars"]
    page.press("more_noise")
    assert any("Noise 1 to 101" in text for text in page.texts)
    page.press("happened")
    assert page.race == before
    page.press("new_noise")
    assert page.race["bars"] == first


def test_a_few_tokens_by_hand() -> None:
    page = Gumbel().set("segmented_control", "race", "hand").set("selectbox", "race_pair", "nothing in common")
    assert any("the draft goes" in text for text in page.texts)
    assert {bar["label"] for bar in page.race["bars"]} == set("ABCD")
    assert any("same token here: 0;" in text for text in page.texts)


def test_every_family_has_its_chart() -> None:
    page = Gumbel()
    for name in figures.FAMILIES:
        page.set("pills", "family", name)
        (plot,) = page.data("plot")
        assert plot["alt"]
        assert plot["table"]["rows"]
        chosen = any(box.key == "match_pair" for box in page.test.selectbox)
        assert chosen == (name in figures.OWN_PAIR)
        assert page.badges[2] == ("recorded" if name == figures.RUN else "modelled · simulated")


@pytest.mark.parametrize("detail", words.DETAILS)
def test_how_much_is_shown(detail: str) -> None:
    page = Gumbel().set("segmented_control", "detail", detail)
    assert any("the draft" in text for text in page.texts)
    assert any("Chance that both" in text for text in page.texts) == (detail != "Story")
    assert len(page.test.code) == {"Story": 0, "Numbers": 1, "Formulas": 4}[detail]
    assert len(page.data("plot")) == (2 if detail == "Formulas" else 1)


def test_every_place_of_the_run_is_played_again() -> None:
    page = Gumbel()
    told = next(text for text in page.texts if "places of this run" in text)
    assert "the winner is the token of the text at 96 of 96" in told
    page.set("select_slider", "replay", 50)
    assert any(text.endswith("is first home again, as in the text.") for text in page.texts)


# --- invariance -------------------------------------------------------------------------------------------------------


def test_the_recorded_grid_keeps_its_text_under_gumbel_and_not_under_sampling() -> None:
    (data,) = Gumbel().data("grid")
    gumbel, sampling = data["matrices"]
    assert (gumbel["title"], sampling["title"]) == ("Gumbel", "Sampling")
    cells = [found for _, row in gumbel["rows"] for found in row]
    assert len(cells) == 24
    assert all(found["same"] for found in cells)
    assert not all(found["same"] for _, row in sampling["rows"] for found in row if found is not None)
    assert data["compared"]["same"]


def test_two_texts_are_compared() -> None:
    page = Gumbel()
    names = page.test.selectbox(key="text_two").options
    page.set("selectbox", "text_two", next(name for name in names if name.startswith("Sampling: small")))
    (data,) = page.data("grid")
    assert not data["compared"]["same"]
    assert data["compared"]["ours"]
    assert data["compared"]["theirs"]


def test_without_weights_the_run_says_what_to_do_and_keeps_the_grid() -> None:
    page = Gumbel()
    before = page.data("grid")
    page.press("grid_start").run()
    assert any("not on this machine" in info.value for info in page.test.info)
    assert page.data("grid") == before
    assert not page.test.button(key="grid_start").disabled


def test_a_grid_without_texts_and_no_grid_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from specviz.ui import recordings

    monkeypatch.setattr(recordings, "FOLDER", tmp_path)
    page = Gumbel()
    assert words.GRID["none"] in page.texts
    assert tuple(title.value for title in page.test.subheader) == PANELS[:3]
    assert {bar["label"] for bar in page.race["bars"]} == set("ABC")
    page.test.session_state["grid"] = Grid("now", "pair", "cpu", "fp32")
    page.run()
    assert page.badges[1] == words.GRID["here"]
    assert words.GRID["none"] not in page.texts


def test_a_strange_grid_is_shown_as_text() -> None:
    said = {"rule": "gumbel_coupling", "drafter": "model", "gamma": 3, "ids": [0], "target_passes": 1}
    runs = [said | {"drafter_passes": 0, "seconds": 0.0}, said | {"drafter": "none", "gamma": 0} | {"ids": []}]
    runs[1] |= {"drafter_passes": 0, "seconds": 0.0}
    plain = {"kind": "grid", "schema_version": 1, "created": "", "pair": "\u202e" * 50, "device": "d", "dtype": "f"}
    text = json.dumps(plain | {"prompt": "p\n" * 5000, "token_bytes": {"0": "ff"}, "runs": runs})
    page = Gumbel()
    page.test.session_state["grid"] = experiments.load(Grid, text)
    page.run()
    (data,) = page.data("grid")
    assert data["matrices"][0]["rows"][0][0] == words.DRAFTERS["model"]
    assert not any("\u202e" in text for text in page.texts)
    assert all(len(text) < 1000 for text in page.texts)


# --- the address ------------------------------------------------------------------------------------------------------

HOSTILE = {
    "race": "<b>1</b>",
    "race_pair": "\u202ehi",
    "race_place": "1e308",
    "noise": "nan",
    "family": "x" * 10_000,
    "match_pair": "-1",
    "match_seed": "-1",
    "replay": "1.5",
    "text_one": "Gumbel",
    "detail": "Poem",
}


@pytest.mark.parametrize("key", HOSTILE)
def test_what_a_link_cannot_have_is_said_and_leaves_the_address(key: str) -> None:
    page = Gumbel(**{key: HOSTILE[key]})
    assert len(page.test.warning) == 1
    assert key.replace("_", " ") in page.test.warning[0].value.replace("\\", "")
    assert HOSTILE[key] not in page.test.query_params.get(key, [])
    assert tuple(title.value for title in page.test.subheader) == PANELS


def test_all_of_it_at_once_is_one_sentence() -> None:
    page = Gumbel(**HOSTILE)
    assert len(page.test.warning) == 1
    assert len(page.test.warning[0].value) < 1000
    assert not set(HOSTILE.values()) & {value for values in page.test.query_params.values() for value in values}
    assert page.texts == Gumbel().texts


def test_an_empty_parameter_is_an_absent_one() -> None:
    page = Gumbel(**dict.fromkeys((*HOSTILE, "grid_prompt", "grid_seed", "text_two"), ""))
    assert not page.test.warning
    assert page.texts == Gumbel().texts


def test_a_link_that_can_be_had_is_taken_in_silence() -> None:
    page = Gumbel(race="a few tokens", race_pair="two tokens", noise="7", family="two tokens", match_seed="3")
    assert not page.test.warning


def test_a_gumbel_run_on_decode_is_the_one_that_races() -> None:
    test = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).run().run()
    run = test.session_state.decode.run
    test.switch_page("pages/Gumbel.py").run()
    assert not test.exception
    assert [words.GUMBEL["sources"][one] for one in ("gumbel", "decode", "hand")] == list(
        test.segmented_control(key="race").options
    )
    test.segmented_control(key="race").set_value("decode").run()
    assert not test.exception
    assert figures.raced(run.trace)
    numbers = [str(site.number) for site in figures.raced(run.trace)]
    assert list(test.select_slider(key="decode_place").options) == numbers


def test_a_link_to_the_run_on_decode_needs_no_visit_there() -> None:
    page = Gumbel(race="the run on Decode", decode_place="9")
    assert not page.test.warning
    assert page.test.segmented_control(key="race").value == "decode"
    assert page.test.select_slider(key="decode_place").value == 9


def test_a_place_has_one_number_wherever_it_is_named() -> None:
    page = Gumbel(race_place="12", replay="12")
    assert page.test.select_slider(key="race_place").value == 12
    assert any("Place 12: " in text for text in page.texts)
    race = page.test.select_slider(key="race_place")
    assert race.label.endswith(f"{len(race.options)} of 96 had a draft")
    assert page.test.select_slider(key="replay").label.endswith("of 96")


def test_a_run_here_begins_with_the_prompt_and_seed_of_what_is_shown() -> None:
    page = Gumbel()
    shown = experiments.load(Grid, (SHIPPED / "grid" / "gumbel_coupling.json").read_text())
    assert words.PRESETS[page.test.selectbox(key="grid_prompt").value] == shown.prompt
    assert page.test.number_input(key="grid_seed").value == shown.seed
    assert any("50 texts of 64 tokens, 3,200 tokens" in text and "minutes" in text for text in page.texts)


def test_texts_that_are_not_there_are_neither_chosen_nor_praised() -> None:
    page = Gumbel()
    sampling = [name for name in page.test.selectbox(key="text_two").options if name.startswith("Sampling: small")]
    page.set("selectbox", "text_one", sampling[2]).set("selectbox", "text_two", sampling[4])
    shown = experiments.load(Grid, (SHIPPED / "grid" / "gumbel_coupling.json").read_text())
    page.test.session_state["grid"] = replace(shown, runs=shown.runs[:1])
    page.run()
    assert not [box for box in page.test.selectbox if box.key in ("text_one", "text_two")]
    assert page.data("grid")[0]["compared"] is None
    assert not any("byte for byte" in text for text in page.texts)
    page.test.session_state["grid"] = replace(shown, runs=shown.runs[:2])
    page.run()
    assert any("the one text so far is the target’s own" in text for text in page.texts)
    for box, run in zip(("text_one", "text_two"), shown.runs, strict=False):
        assert page.test.selectbox(key=box).value in page.test.selectbox(key=box).options
        assert run.drafter == "none" or f"gamma {run.gamma}" in page.test.selectbox(key=box).value


def test_a_story_has_no_numbers_of_the_noise() -> None:
    page = Gumbel(detail="Story")
    assert not any("log p + g" in part.value for part in page.test.markdown)
    assert any("is first home again" in text for text in page.texts)
    assert any("g recorded" in part.value for part in Gumbel(detail="Formulas").test.markdown)
