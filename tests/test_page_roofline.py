"""The Roofline page as a visitor meets it, without a browser, and the way between the pages."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from specviz.figures import roofline as figures
from specviz.ui import words
from tests.decode_page import ROOT

pytestmark = pytest.mark.usefixtures("no_weights")

PANELS = (
    "A fixed example: one token of an 8B model on an H100",
    "The roof",
    "A block of weights, swept once",
    "The same by the clock",
    "The clock does not speed up",
    "Two marks, not one",
    "A long text: the cache is read too",
    "Quantise or speculate?",
    "Speed decoupled from size, and how far",
)


class Roofline:
    """The page under test."""

    def __init__(self, **asked: str) -> None:
        self.test = AppTest.from_file(str(ROOT / "pages" / "Roofline.py"), default_timeout=60)
        for name, value in asked.items():
            self.test.query_params[name] = value
        self.run()

    def run(self) -> Roofline:
        self.test.run()
        assert not self.test.exception
        return self

    def set(self, kind: str, key: str, value: Any) -> Roofline:
        getattr(self.test, kind)(key=key).set_value(value)
        return self.run()

    @property
    def texts(self) -> list[str]:
        return [text.value for text in self.test.text]

    def plots(self) -> list[dict[str, Any]]:
        elements = [e.proto for e in self.test.get("bidi_component")]
        return [json.loads(e.json)[0] for e in elements if e.component_name == "specviz_plot"]

    def plot(self, axis: str) -> dict[str, Any]:
        """The figure whose x axis is called so."""
        found = [json.loads(plot["figure"]) for plot in self.plots()]
        return next(one for one in found if one["layout"]["xaxis"]["title"]["text"] == axis)


def test_a_cold_deep_link_shows_the_whole_page() -> None:
    page = Roofline()
    assert [title.value for title in page.test.title] == ["Roofline"]
    assert tuple(title.value for title in page.test.subheader) == PANELS
    assert any("4.776 ms" in markdown.value for markdown in page.test.markdown)
    assert not page.test.warning
    assert all(plot["alt"] and plot["table"]["rows"] for plot in page.plots())


def test_every_panel_says_where_its_numbers_come_from() -> None:
    page = Roofline()
    assert [badge.value for badge in page.test.markdown if "-badge[" in badge.value] == [
        f":gray-badge[{'recorded' if title == 'The same by the clock' else 'modelled'}]" for title in PANELS
    ]


def test_the_library_comes_last_and_once() -> None:
    names = [e.proto.component_name for e in Roofline().test.get("bidi_component")]
    assert names.count("specviz_plot_library") == 1
    assert names[-1] == "specviz_plot_library"


def test_the_page_needs_no_torch(recorded_folder: Path) -> None:
    script = f"""
import sys
from pathlib import Path
from streamlit.testing.v1 import AppTest
from specviz.ui import recordings
recordings.FOLDER = Path({str(recorded_folder)!r})
page = AppTest.from_file({str(ROOT / "pages" / "Roofline.py")!r}, default_timeout=60).run()
assert not page.exception
print(sorted({{"torch", "transformers"}} & set(sys.modules)))
"""
    result = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert result.stdout.split("\n")[0] == "[]", result.stderr[-2000:]


@pytest.mark.parametrize("detail", words.DETAILS)
def test_how_much_is_shown(detail: str) -> None:
    page = Roofline().set("segmented_control", "detail", detail)
    assert any("4.8 ms" in text for text in page.texts)
    assert any(text.startswith("1 row: ") for text in page.texts) == (detail != "Story")
    assert bool(page.test.code) == (detail == "Formulas")


def test_the_controls_reach_the_figures() -> None:
    page = Roofline()
    page.set("slider", "drafts", 8)
    assert any(one.get("name") == "the target verifies 9 rows" for one in page.plot("FLOP for every byte read")["data"])
    page.set("select_slider", "batch", 256)
    assert any("At batch 256" in text for text in page.texts)
    page.set("select_slider", "context", 8192)
    assert any("8,192 tokens" in text for text in page.texts)
    page.set("slider", "alpha", 0.8)
    assert any("shared 0.80" in text for text in page.texts)
    page.set("selectbox", "accelerator", "mi300x")
    assert any("MI300X" in caption.value for caption in page.test.caption)
    page.set("selectbox", "priced", "qwen3-8b+qwen3-0.6b")
    assert any(words.literal("Qwen3-8B") in caption.value for caption in page.test.caption)


def test_a_mixture_instead() -> None:
    page = Roofline().set("toggle", "mixture", True)
    assert any("A mixture of experts is not read whole" in text for text in page.texts)


def test_a_chip_of_ones_own() -> None:
    page = Roofline().set("toggle", "own_chip", True)
    assert any("your chip" in caption.value for caption in page.test.caption)
    page.set("number_input", "terabytes_s", -4.0)
    assert [warning.value for warning in page.test.warning] == [
        words.literal("The bandwidth must be between 0.001 and 500 TB/s, got -4. H100 SXM is shown instead.")
    ]
    assert not any("your chip" in caption.value for caption in page.test.caption)


def test_the_preset_prices_70b_on_two_chips() -> None:
    page = Roofline()
    page.test.button(key="preset").click()
    page.run()
    assert page.test.selectbox(key="priced").value == figures.BIG.id
    assert any(
        "Llama-3.1-70B" in plot["table"]["caption"] and "2 × H100" in plot["table"]["caption"] for plot in page.plots()
    )


def test_todays_alpha_is_that_of_the_run() -> None:
    page = Roofline()
    page.test.button(key="today").click()
    page.run()
    from specviz.trace import tally
    from specviz.ui import recordings

    opening = recordings.first()
    assert opening is not None
    alpha = tally(opening.trace.rounds).alpha
    assert alpha is not None
    assert page.test.slider(key="alpha").value == round(alpha, 2)


@pytest.mark.parametrize(
    ("key", "raw", "said"),
    [
        ("batch", "abc", "batch abc"),
        ("context", "-1", "context -1"),
        ("drafts", "99", "drafts 99"),
        ("alpha", "nan", "alpha nan"),
        ("dtype", "<b>fp3</b>", "<b>fp3</b>"),
        ("accelerator", "abacus", "accelerator abacus"),
        ("mixture", "perhaps", "mixture perhaps"),
        ("terabytes_s", "fast", "its bandwidth, TB/s fast; it goes from 0.001 to 500"),
        ("terabytes_s", "900", "its bandwidth, TB/s 900; it goes from 0.001 to 500"),
    ],
)
def test_what_a_link_cannot_have_is_said(key: str, raw: str, said: str) -> None:
    page = Roofline(**{key: raw})
    (warning,) = page.test.warning
    assert words.literal(said) in warning.value
    assert tuple(title.value for title in page.test.subheader) == PANELS


@pytest.mark.parametrize(
    "key",
    ["dtype", "detail", "batch", "context", "drafts", "alpha", "accelerator", "priced", "own_chip", "terabytes_s"],
)
def test_an_empty_parameter_is_an_absent_one(key: str) -> None:
    page = Roofline(**{key: ""})
    assert not page.test.warning
    assert page.texts == Roofline().texts


@pytest.mark.parametrize(("key", "raw"), [("dtype", "fp3"), ("detail", "Poem"), ("terabytes_s", "900")])
def test_what_was_refused_leaves_the_address(key: str, raw: str) -> None:
    page = Roofline(own_chip="true", **{key: raw})
    assert raw not in page.test.query_params.get(key, [])
    assert "terabytes s" not in page.test.warning[0].value
    assert page.texts == Roofline(own_chip="true").texts


def test_a_link_that_can_be_had_is_taken_in_silence() -> None:
    page = Roofline(batch="64", context="4096", drafts="8", alpha="0.8", dtype="int4", accelerator="H200 SXM")
    assert not page.test.warning


# --- several pages ----------------------------------------------------------------------------------------------------


def test_decode_is_as_it_was_after_a_visit_to_another_page() -> None:
    test = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).run().run()
    test.slider(key="gamma").set_value(7).run()
    test.number_input(key="seed").set_value(11).run()
    test.segmented_control(key="detail").set_value("Formulas").run()
    test.button(key="step").click().run()
    before = test.session_state.decode.run
    test.switch_page("pages/Roofline.py").run()
    assert [title.value for title in test.title] == ["Roofline"]
    assert test.segmented_control(key="detail").value == "Formulas"
    test.slider(key="drafts").set_value(2).run()
    test.switch_page("app.py").run()
    assert not test.exception
    assert test.session_state.decode.run.event == before.event
    assert test.session_state.decode.run.trace is before.trace
    assert test.slider(key="gamma").value == 7
    assert test.number_input(key="seed").value == 11
    assert test.segmented_control(key="detail").value == "Formulas"
    test.switch_page("pages/Roofline.py").run()
    assert test.slider(key="drafts").value == 2


def test_the_sidebar_links_to_the_pages_that_are_there() -> None:
    test = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).run()
    links = [link.proto.label for link in test.get("page_link")]
    assert links == [name for name, script in words.PAGES.items() if (ROOT / script).exists()]
    assert links[0] == "Decode"
