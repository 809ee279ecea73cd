"""The Gamma page in a browser: its figures, its sliders, its address, both themes, a phone."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.conftest import Server

Visit = Callable[..., Page]
FIGURES = ("curves", "best_map", "speeds", "waterfall", "yields", "places", "stopping", "too_late")


def settled(page: Page) -> None:
    """Wait until no script run is in progress."""
    page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for()


def drawn(page: Page, name: str) -> Locator:
    """A figure, once plotly has drawn it."""
    figure = page.locator(f".st-key-card_{name} .canvas")
    expect(figure.locator("svg.main-svg").first).to_be_attached()
    return figure


@pytest.fixture
def page(visit: Visit, server: Server) -> Page:
    """A cold deep link: the first address that this session asks for."""
    opened = visit(f"{server.url}/Gamma")
    expect(opened.locator("h1")).to_have_text("Gamma")
    return opened


def test_every_figure_is_drawn_and_named(page: Page) -> None:
    for name in FIGURES:
        figure = drawn(page, name)
        assert figure.get_attribute("role") == "img"
        assert len(figure.get_attribute("aria-label") or "") > 20
    card = page.locator(".st-key-card_best_map")
    card.get_by_text("as a table").click()
    expect(card.get_by_role("columnheader", name="c 0.05", exact=True)).to_be_visible()


def test_a_slider_changes_the_figure_in_place_and_the_address(page: Page) -> None:
    curves = drawn(page, "curves")
    expect(curves).to_contain_text("yours: gamma 4")
    curves.evaluate("node => { node.querySelector('svg.main-svg').kept = true; }")
    page.locator(".st-key-theory_gamma").get_by_role("slider").focus()
    page.keyboard.press("ArrowRight")
    expect(curves).to_contain_text("yours: gamma 5")
    assert curves.evaluate("node => node.querySelector('svg.main-svg').kept")
    expect(page.locator(".st-key-card_engine")).to_contain_text("--spec-draft-n-max 5")
    settled(page)
    assert "theory_gamma=5" in page.url


def test_one_press_is_one_entry_of_the_history_and_back_agrees_with_the_page(page: Page) -> None:
    drawn(page, "waterfall")
    before, start = page.evaluate("history.length"), page.url
    page.get_by_role("button", name="make it lose").click()
    expect(page.locator(".st-key-card_curves")).to_contain_text("gamma 8")
    settled(page)
    assert page.evaluate("history.length") == before + 1
    assert "theory_gamma=8" in page.url
    page.go_back()
    expect(page.locator(".st-key-card_curves")).to_contain_text("Yours, gamma 4")
    assert page.url == start
    page.go_forward()
    expect(page.locator(".st-key-card_curves")).to_contain_text("Yours, gamma 8")
    page.locator(".st-key-unlose").get_by_role("button").click()
    expect(page.locator(".st-key-card_curves")).to_contain_text("Yours, gamma 4")


def test_make_it_lose_loses_in_theory_and_by_the_clock(page: Page) -> None:
    drawn(page, "waterfall")
    page.get_by_role("button", name="make it lose").click()
    expect(page.locator(".st-key-card_curves")).to_contain_text("slower than the target alone")
    expect(page.locator(".st-key-card_waterfall")).to_contain_text("slower than the target alone")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_scrolls_in_one_direction_only(visit: Visit, server: Server, scheme: str) -> None:
    page = visit(
        f"{server.url}/Gamma?theory_alpha=0.8&explained=gamma+8&theory_c=",
        viewport={"width": 390, "height": 844},
        color_scheme=scheme,
    )
    for name in ("best_map", "waterfall"):
        drawn(page, name)
    expect(page.locator(".st-key-card_waterfall")).to_contain_text("Gamma 8 could be")
    widths = page.evaluate(
        "[document.scrollingElement.scrollWidth, document.querySelector('[data-testid=stMain]').scrollWidth]"
    )
    assert max(widths) <= 390
