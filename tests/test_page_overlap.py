"""The Overlap page as a visitor meets it, without a browser: its upper half."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from specviz.figures import overlap as figures
from specviz.ui import overlap, positions, recordings, session, words
from tests.decode_page import ROOT

pytestmark = pytest.mark.usefixtures("recorded")

HAND = {"pq_from": words.OVERLAP["sources"]["hand"]}


@pytest.fixture
def recorded(no_weights: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The recordings that ship, with their rows, on a machine without weights."""
    monkeypatch.setattr("specviz.ui.recordings.FOLDER", ROOT / "assets" / "traces")


class Overlap:
    """The page under test."""

    def __init__(self, **asked: str) -> None:
        self.test = AppTest.from_file(str(ROOT / "pages" / "Overlap.py"), default_timeout=60)
        for name, value in asked.items():
            self.test.query_params[name] = value
        self.run()

    def run(self) -> Overlap:
        self.test.run()
        assert not self.test.exception
        return self

    def set(self, kind: str, key: str, value: Any) -> Overlap:
        getattr(self.test, kind)(key=key).set_value(value)
        return self.run()

    def shown(self, component: str) -> dict[str, Any]:
        """What a component was given."""
        found = [e.proto for e in self.test.get("bidi_component") if e.proto.component_name == f"specviz_{component}"]
        return json.loads(found[0].json)[0]

    def law(self, model: str) -> list[float]:
        """The law as the picture has it, before temperature."""
        return self.shown("bend")["base"][model]

    @property
    def rules(self) -> dict[str, str]:
        """What each rule's frame says."""
        return {frame["title"]: frame["caption"] for frame in self.shown("exact")["frames"]}

    @property
    def warnings(self) -> list[str]:
        return [warning.value for warning in self.test.warning]


def test_it_opens_with_a_place_of_the_recorded_run() -> None:
    page = Overlap()
    assert [title.value for title in page.test.title] == ["Overlap"]
    assert page.shown("badges")["badges"] == ["recorded", "modelled"]
    place = page.shown("place")
    assert (place["badge"], page.shown("exact")["badge"]) == ("recorded", "modelled")
    assert "49,152" in "".join(text for text, _ in place["note"])
    assert place["others"]["label"].endswith("others")
    assert len(page.test.button_group(key="quick_place").options) == 6
    assert not page.warnings


def _with_laws(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:
    take = positions.take

    def changed(run: Any, position: int) -> Any:
        laws = take(run, position)
        assert not isinstance(laws, str)
        settings = {**laws.settings, "drafter": changes.get("drafter", "model")}
        return replace(laws, settings=settings, drafter_logits=changes.get("drafter_logits", laws.drafter_logits))

    monkeypatch.setattr(positions, "take", changed)


@pytest.mark.parametrize(
    ("drafter", "said"), [("model", None), ("ngram", "copied its drafts"), ("none", "drafted nothing")]
)
def test_it_says_whose_q_it_is_where_the_run_drafted_otherwise(
    drafter: str, said: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    _with_laws(monkeypatch, drafter=drafter)
    note = "".join(text for text, _ in Overlap().shown("place")["note"])
    assert said is None or said in note
    assert ("the pair’s own drafter’s" in note) == (said is not None)


def test_a_drafter_that_cannot_read_so_far_is_not_called_identical(monkeypatch: pytest.MonkeyPatch) -> None:
    _with_laws(monkeypatch, drafter_logits=None)
    page = Overlap()
    assert any("context ends before this place" in said for said in page.warnings)
    assert page.law("p") != page.law("q")


def test_the_page_needs_no_torch() -> None:
    script = f"""
import sys
from streamlit.testing.v1 import AppTest
page = AppTest.from_file({str(ROOT / "pages" / "Overlap.py")!r}, default_timeout=60).run()
assert not page.exception
print(sorted({{"torch", "transformers"}} & set(sys.modules)))
"""
    result = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert result.stdout.split("\n")[0] == "[]", result.stderr[-2000:]


def test_one_click_takes_another_place_and_the_address_has_it() -> None:
    page = Overlap()
    before = page.shown("place")
    options = page.test.selectbox(key="any_place")
    quick = [choice.position for choice in page.test.session_state.overlap_choices[1] if choice.instant]
    page.set("button_group", "quick_place", quick[2])
    after = page.shown("place")
    assert after["title"] != before["title"]
    assert page.test.query_params["place"] == str(quick[2])
    assert page.test.selectbox(key="any_place").value == quick[2]
    assert Overlap(place=str(quick[2])).shown("place") == after
    assert len(options.options) > 6


def test_the_place_outlasts_bending_and_another_page() -> None:
    page = Overlap()
    asked = [choice.position for choice in page.test.session_state.overlap_choices[1] if choice.instant][3]
    page.set("button_group", "quick_place", asked).set("button_group", "pq_from", HAND["pq_from"])
    page.test.query_params.clear()  # as a link to another page and back leaves it
    page.run()
    assert page.test.query_params["place"] == str(asked)
    page.set("button_group", "pq_from", words.OVERLAP["sources"]["run"])
    assert page.test.selectbox(key="any_place").value == asked


def test_what_is_bent_alike_comes_back_alike() -> None:
    p = [0.9 * 0.9 / 1.71, 0.9 / 1.71]
    q = [p[0] + 1e-16, p[1] - 2e-16]
    lists = overlap.heard({"p": p, "q": q})
    assert lists is not None
    assert lists["p"] == lists["q"]
    assert max(abs(float(one) - law) for one, law in zip(lists["p"].split(", "), p, strict=True)) < 1e-15
    assert "Identical" in "".join(m.value for m in Overlap(**HAND, **lists).test.markdown)


def test_one_click_takes_the_place_where_decode_stands() -> None:
    page = Overlap()
    opening = page.shown("place")["title"]
    assert "rejected" in opening
    assert "focus" not in [button.key for button in page.test.button]
    first = next(choice.position for choice in page.test.session_state.overlap_choices[1] if choice.instant)
    page.set("button_group", "quick_place", first)
    page.test.button(key="focus").click()
    assert page.run().shown("place")["title"] == opening


def test_a_place_without_rows_says_what_it_needs_and_the_picture_stays() -> None:
    page = Overlap()
    before = page.shown("place")
    unshipped = next(one.position for one in page.test.session_state.overlap_choices[1] if not one.instant)
    page.set("selectbox", "any_place", unshipped)
    assert page.test.button(key="ask").disabled
    assert any("not on this machine" in text.value for text in page.test.text)
    assert page.shown("place")["title"] == before["title"]


def test_until_the_models_are_asked_both_places_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(positions, "unavailable", lambda _: "")
    page = Overlap()
    unshipped = next(one for one in page.test.session_state.overlap_choices[1] if not one.instant)
    page.set("selectbox", "any_place", unshipped.position)
    (said,) = (text.value for text in page.test.text if "stays on screen" in text.value)
    shown = page.shown("place")["title"].split(": ")[1].split(" · ")[0]
    assert f"Place {shown} stays" in said
    assert said.endswith(f"for place {unshipped.label.split(' · ')[0]}.")


def test_back_shows_what_the_address_says(monkeypatch: pytest.MonkeyPatch) -> None:
    page = Overlap(**HAND).set("button_group", "overlap_preset", "classic").set("slider", "p_temperature", 0.5)
    said = {**page.test.query_params, "p_temperature": "0.5"}  # AppTest knows no bound parameters
    page.set("button_group", "overlap_preset", "disjoint")
    monkeypatch.setattr("specviz.ui.frame.went_back", lambda: True)
    page.test.query_params.clear()
    for key, value in said.items():
        page.test.query_params[key] = value
    page.run()
    assert [page.law(model) for model in "pq"] == [pytest.approx(law) for law in figures.PRESETS["classic"]]
    assert page.test.text_input(key="p").value == "0.6, 0.2, 0.1, 0.1"
    assert page.test.button_group(key="overlap_preset").value == "classic"
    assert page.shown("bend")["warp"]["p"]["temperature"] == 0.5
    page.test.query_params.clear()
    assert page.run().shown("place")["badge"] == "recorded"


def test_a_list_that_is_scaled_says_so() -> None:
    def note(**asked: str) -> str:
        return "".join(text for text, _ in Overlap(**asked).shown("bend")["note"])

    assert "p as typed did not add up to 1" in note(p="1,2", q="0.5,0.5")
    assert "as typed" not in note(p="0.333333, 0.333333, 0.333333", q="0.5,0.5")


def test_a_place_leads_to_its_moment_on_decode() -> None:
    page = Overlap()
    assert "decode_place" not in [button.key for button in page.test.button]
    run = session.recorded(recordings.first())
    for choice in positions.choices(run):
        here = session.Decode(run)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(session, "state", lambda here=here: here)
            positions.point(run, choice.position)
        assert positions.in_focus(here.run) == choice.position


def test_by_hand_it_begins_with_the_usual_pair() -> None:
    page = Overlap(**HAND)
    assert page.law("p") == pytest.approx([0.5, 0.3, 0.2])
    assert page.law("q") == pytest.approx([0.2, 0.3, 0.5])
    assert page.test.button_group(key="overlap_preset").value == "default"


def test_every_preset_is_one_press() -> None:
    page = Overlap(**HAND)
    for name, pair in reversed(figures.PRESETS.items()):
        page.set("button_group", "overlap_preset", name)
        assert [page.law(model) for model in "pq"] == [pytest.approx(law) for law in pair]
        assert page.test.button_group(key="overlap_preset").value == name


def test_a_link_restores_everything() -> None:
    page = Overlap(
        p="0.6, 0.2, 0.1, 0.1", q="7 2 .5 .5", p_temperature="0.5", pq_top_k="3", wrong_drafts="true", detail="Formulas"
    )
    assert page.law("p") == pytest.approx([0.6, 0.2, 0.1, 0.1])
    assert page.law("q") == pytest.approx([0.7, 0.2, 0.05, 0.05])
    assert page.shown("bend")["warp"]["p"] == {"temperature": 0.5, "top_k": 3, "top_p": 1.0}
    assert words.ENTRANTS["q_before_temperature"] in page.rules
    assert any("P(match)" in code.value for code in page.test.code)
    assert not page.warnings


def test_a_link_may_name_a_preset() -> None:
    page = Overlap(preset="classic")
    assert page.law("p") == pytest.approx([0.6, 0.2, 0.1, 0.1])
    assert page.rules[words.ENTRANTS["speculative_sampling"]].startswith("kept 0.90")
    assert page.rules[words.ENTRANTS["drafter_at_0"]].startswith("kept 0.60")
    assert page.rules[words.ENTRANTS["token_match"]].startswith("kept 0.47")


def test_a_list_may_be_typed_and_the_shorter_one_goes_on_with_zeros() -> None:
    page = Overlap(**HAND).set("text_input", "p", "5 3 1 1")
    assert page.law("p") == pytest.approx([0.5, 0.3, 0.1, 0.1])
    assert page.law("q") == pytest.approx([0.2, 0.3, 0.5, 0])
    assert page.test.button_group(key="overlap_preset").value is None
    assert not page.warnings


HOSTILE = ("", "1", "nan nan", "-1 2", "1e308 nan", "inf 1", "0 0", "1 " * 13, "9" * 10_000, "\u202e<b>x</b>", "a, b")


def test_what_is_no_list_is_named_and_nothing_is_lost() -> None:
    page = Overlap(p="0.6, 0.4", q="0.8, 0.2")
    for text in HOSTILE:
        page.set("text_input", "p", text)
        assert page.law("p") == pytest.approx([0.6, 0.4])
        (said,) = page.warnings
        assert "2 to 12 numbers" in said
        assert "0.6, 0.4 stays" in said
        assert len(said) < 400
        assert "\u202e" not in said
    page.set("text_input", "p", "1e308 1e308")
    assert page.law("p") == pytest.approx([0.5, 0.5])
    assert not page.warnings


KEYS = ("p", "q", "p_temperature", "pq_top_k", "pq_top_p", "place", "preset", "pq_from", "wrong_drafts", "detail")
KEYS += ("bench_rule", "bench_gamma", "bench_seed")


@pytest.mark.parametrize("key", KEYS)
def test_what_an_address_cannot_have_is_named_and_leaves_it(key: str) -> None:
    page = Overlap(**{key: "1e308"})
    (said,) = page.warnings
    assert said.startswith("The link asked for")
    assert "1e308" in said
    assert key not in page.test.query_params
    assert page.shown("place")["bars"]


def test_a_place_that_is_not_there_is_answered_with_the_one_that_is_shown() -> None:
    page = Overlap(place="999999")
    assert f"so {page.test.selectbox(key='any_place').value} is used" in page.warnings[0]


@pytest.mark.parametrize("text", ["nan", "-1", "<b>x</b>", "9" * 2_000])
def test_an_address_of_nothing_but_nonsense_opens_the_usual_page(text: str) -> None:
    page = Overlap(**dict.fromkeys(KEYS, text))
    assert len(page.warnings) == 1
    assert not set(KEYS) & set(page.test.query_params)
    assert page.shown("place")["bars"]


def test_empty_parameters_ask_for_nothing() -> None:
    page = Overlap(**dict.fromkeys(KEYS, ""))
    assert not page.warnings
    assert page.shown("place")["bars"]


def test_what_the_picture_sends_is_checked() -> None:
    hostile: list[Any] = [None, {}, {"p": [1, 2]}, {"p": [1, 2], "q": ["a", "b"]}, {"p": [1, 2], "q": [1, 2, 3]}]
    hostile += [{"p": [float("nan"), 1], "q": [1, 1]}, {"p": [1] * 13, "q": [1] * 13}, {"p": "12", "q": 3}]
    for told in hostile:
        assert overlap.heard(told) is None, told
    assert overlap.heard({"p": [0.25, 0.75], "q": [1, 0]}) == {"p": "0.25, 0.75", "q": "1, 0"}


def test_story_leaves_out_what_is_rare() -> None:
    page = Overlap(detail="Story", **HAND)
    assert words.ENTRANTS["token_match"] not in page.rules
    assert not [number.key for number in page.test.number_input if number.key == "pq_top_k"]
    assert Overlap(detail="Story", pq_top_k="2", **HAND).test.number_input(key="pq_top_k").value == 2


def test_a_run_comes_with_its_own_settings_and_leads_back_to_them() -> None:
    page = Overlap(p_temperature="0.5")
    assert page.shown("badges")["badges"] == ["modelled"]
    page.test.button(key="own_settings").click()
    page.run()
    assert page.test.slider(key="p_temperature").value == 1.0
    assert page.shown("badges")["badges"] == ["recorded", "modelled"]


def test_without_a_run_it_is_bent_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("specviz.ui.recordings.FOLDER", tmp_path)
    page = Overlap()
    assert page.law("p") == pytest.approx([0.5, 0.3, 0.2])
    page.set("button_group", "pq_from", words.OVERLAP["sources"]["run"])
    assert any(text.value == words.OVERLAP["no_run"] for text in page.test.text)
    assert page.law("p") == pytest.approx([0.5, 0.3, 0.2])
