"""The layout for a projector of 1280 × 720: every panel is seen whole, and can be read from the back of a room."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import Server

Visit = Callable[..., Page]
PANELS = {"Coin": "coin", "Place": "place", "Why exact": "exact", "Tally": "tally"}
SMALLEST_PX = 15

MAIN = "document.querySelector('[data-testid=stMain]')"
SIZES = """(panel) => {
  const zoom = parseFloat(getComputedStyle(document.querySelector('.st-key-panel_large')).zoom);
  const found = [];
  const walk = (node) => {
    if (node.nodeType === 3 && node.textContent.trim()) {
      const style = getComputedStyle(node.parentElement);
      if (node.parentElement.getClientRects().length) found.push([parseFloat(style.fontSize) * zoom, node.textContent]);
    }
    if (node.tagName !== 'STYLE') node.childNodes.forEach(walk);
  };
  walk(panel);
  return found;
}"""


@pytest.mark.parametrize(
    "run",
    [
        "rule=Sampling&at=27.7",
        "rule=Sampling&at=27.5&detail=Story",
        "rule=Gumbel&at=31.8",
        "rule=Gumbel&at=63.4",
        "rule=Block&seed=1&at=30.6",
    ],
)
def test_no_panel_needs_scrolling_and_no_word_is_small(visit: Visit, server: Server, run: str) -> None:
    page = visit(f"{server.url}/?large=true&{run}", viewport={"width": 1280, "height": 720})
    for name, panel in PANELS.items():
        page.locator(".st-key-panel").get_by_role("radio", name=name, exact=True).click()
        section = page.locator(f"section.{panel}")
        expect(section).to_be_visible()
        expect(page.locator("section.specviz:is(.coin, .place, .exact, .tally)")).to_have_count(1)
        deal = section.get_by_role("button", name="deal 100,000 times")
        if deal.is_visible():
            deal.click()
            expect(section.get_by_role("status")).to_contain_text("Dealt 100,000 times")
        page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for()
        assert page.evaluate(f"{MAIN}.scrollHeight - {MAIN}.clientHeight") == 0, name
        sizes = section.evaluate(SIZES)
        assert sizes
        assert min(sizes)[0] >= SMALLEST_PX, min(sizes)
