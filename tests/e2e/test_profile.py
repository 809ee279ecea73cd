"""The Profile page in a browser: a cold deep link, its figures, the form in the address, measuring and Cancel."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests import tiny_models
from tests.e2e.conftest import Server


def test_a_deep_link_shows_the_recorded_profile(server: Server, visit: Callable[..., Page]) -> None:
    page = visit(f"{server.url}/Profile")
    expect(page.get_by_role("heading", level=1)).to_have_text("Profile")
    expect(page.locator(".badges")).to_contain_text("recorded")
    expect(page.locator(".profile figure svg")).to_have_count(2)
    expect(page.locator(".profile figure svg").first).to_have_attribute("aria-label", re.compile("Time of a read"))
    page.get_by_text("the reads as a table").click()
    expect(page.locator(".profile table").last).to_contain_text("measured")


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_scrolls_sideways(width: int, server: Server, visit: Callable[..., Page]) -> None:
    page = visit(f"{server.url}/Profile", viewport={"width": width, "height": 844})
    expect(page.locator(".judgement .verdict")).not_to_be_empty()
    page.get_by_text("the reads as a table").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for svg in page.locator(".profile figure svg").all():
        box = svg.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= width


def test_the_form_is_in_the_address(server: Server, visit: Callable[..., Page]) -> None:
    page = visit(f"{server.url}/Profile?server_speed=300&server_batch=many")
    expect(page.locator(".judgement .verdict")).to_contain_text("more than the machine can do")
    expect(page.get_by_text("The link asked for batch many")).to_be_visible()
    page.get_by_label("tokens a second, as you measured").fill("50")
    page.get_by_label("tokens a second, as you measured").press("Tab")
    expect(page.locator(".judgement .verdict")).to_contain_text("Not memory")
    assert "server_speed=50" in page.url


def test_measuring_can_be_cancelled_within_a_second_and_keeps_its_samples(
    tmp_path: Path, launch: Callable[..., Server], visit: Callable[..., Page]
) -> None:
    target, drafter = tiny_models.save_tiny_pair(tmp_path / "pair")
    script = tmp_path / "measured.py"
    script.write_text(
        "import runpy\n"
        "from specviz.models import catalogue\n"
        "from specviz.models.catalogue import local_pair\n"
        "from specviz.ui import experiment\n"
        f"catalogue.pairs = lambda: {{'tiny': local_pair({str(target)!r}, {str(drafter)!r})}}\n"
        "experiment.EMBEDDED = 'tiny'\n"
        "from specviz.decoding import profiling\n"
        "profiling.COPIES, profiling.SQUARES = {'cpu': (1,)}, {'cpu': (64,)}\n"
        "profiling.Profiler.__init__.__kwdefaults__['repeats'] = 10_000\n"
        f"runpy.run_path({str(Path(__file__).parents[2] / 'pages' / 'Profile.py')!r})\n"
    )
    page = visit(launch(script).url)
    page.get_by_role("combobox", name="tokens in the caches").click()
    page.get_by_role("option", name="64", exact=True).click()
    page.get_by_role("button", name="Measure this machine").click()
    progress = page.get_by_text(re.compile(r"[\d,]+ of [\d,]+ samples"))
    expect(progress).to_be_visible()
    page.wait_for_function(
        "() => { const told = document.body.innerText.match(/(\\d+) of \\d+ samples/); return told && +told[1] > 60; }"
    )
    start = time.monotonic()
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_text("What was measured up to then is shown")).to_be_visible()
    assert time.monotonic() - start < 1.5
    expect(page.locator(".badges")).to_contain_text("measured here")
    expect(page.locator(".profile .lines")).to_contain_text("Stopped before the end")
