"""The losslessness bench in a browser: dealing, Stop, its figures and the lines that ran."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import Server

HAND = "Overlap?p=0.6, 0.2, 0.1, 0.1&q=0.7, 0.2, 0.05, 0.05"
WRONG = "&bench_rule=Dealt again from p (wrong)"


@pytest.mark.parametrize("width", [390, 1280])
def test_a_wrong_rule_fails_in_sight_and_nothing_scrolls_sideways(
    width: int, server: Server, visit: Callable[..., Page]
) -> None:
    page = visit(f"{server.url}/{HAND}{WRONG}", viewport={"width": width, "height": 844})
    page.get_by_role("button", name="Deal 100,000 times").first.click()
    expect(page.get_by_text(re.compile("✗ Dealt again from p: wrong: .* came 66 times in 100"))).to_be_visible()
    expect(page.locator(".st-key-card_bench_out .canvas svg.main-svg").first).to_be_visible()
    expect(page.locator(".st-key-card_bench_far .canvas svg.main-svg").first).to_be_visible()
    expect(page.locator("section.lines .line.ran").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for line in page.locator("section.lines .own .line").all()[:20]:
        box = line.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= width


def test_the_lines_tell_this_places_numbers_and_follow_the_buttons(server: Server, visit: Callable[..., Page]) -> None:
    page = visit(f"{server.url}/{HAND}")
    story, ran = page.locator("section.lines .story"), page.locator("section.lines .line.ran")
    page.get_by_role("button", name="A draft that stays").click()
    expect(story).to_contain_text("it stays")
    expect(page.locator("section.lines")).not_to_contain_text("SpeculativeSampling.correction")
    page.get_by_role("button", name="A draft that goes").click()
    expect(story).to_contain_text("it goes")
    expect(page.locator("section.lines .function").filter(has_text="SpeculativeSampling.correction")).to_be_visible()
    expect(ran.filter(has_text="passed = coin < accept_prob")).to_contain_text("passed = False")


def test_stop_ends_a_long_deal_within_a_second_and_keeps_what_it_has(
    tmp_path: Path, launch: Callable[..., Server], visit: Callable[..., Page]
) -> None:
    script = tmp_path / "long.py"
    script.write_text(
        "import runpy\n"
        "from specviz import losslessness\n"
        "losslessness.whole_count = lambda *_: 10_000_000\n"
        f"runpy.run_path({str(Path(__file__).parents[2] / 'pages' / 'Overlap.py')!r})\n"
    )
    page = visit(f"{launch(script).url}/?{HAND.partition('?')[2]}")
    expect(page.locator(".st-key-card_bench_out .canvas svg.main-svg").first).to_be_visible()
    page.get_by_role("button", name="Deal 10,000,000 times").click()
    expect(page.get_by_text(re.compile(r"Sampling: [\d,]+ of 10,000,000"))).to_be_visible()
    start = time.monotonic()
    page.get_by_role("button", name="Stop", exact=True).click()
    expect(page.get_by_text("What was dealt up to then stays")).to_be_visible()
    assert time.monotonic() - start < 1.5
    expect(page.get_by_text(re.compile(r"✓ Sampling: exact, as far as [\d,]+ draws can tell"))).to_be_visible()
