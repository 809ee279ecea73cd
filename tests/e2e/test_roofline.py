"""The Roofline page in a browser: its figures, its controls, both themes, a phone, and the way between the pages."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.conftest import Server

Visit = Callable[..., Page]


def settled(page: Page) -> None:
    """Wait until no script run is in progress."""
    page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for()


def plot(page: Page, name: str) -> Locator:
    return page.locator(f".st-key-card_{name} .canvas")


def drawn(page: Page, name: str) -> Locator:
    """A figure, once plotly has drawn it."""
    figure = plot(page, name)
    expect(figure.locator("svg.main-svg").first).to_be_attached()
    return figure


def press(page: Page, key: str, name: str, times: int = 1) -> None:
    """Press a key on a slider of the sidebar, and wait for the page."""
    slider = page.locator(f".st-key-{key}").get_by_role("slider")
    slider.focus()
    for _ in range(times):
        page.keyboard.press(name)
    settled(page)


@pytest.fixture
def page(visit: Visit, server: Server) -> Page:
    """A cold deep link: the first address that this session asks for."""
    opened = visit(f"{server.url}/Roofline")
    expect(opened.locator("h1")).to_have_text("Roofline")
    for name in ("roof", "sweep", "clocks", "payoff", "cache"):
        drawn(opened, name)
    return opened


def test_a_slider_changes_a_figure_in_place(page: Page) -> None:
    roof = drawn(page, "roof")
    expect(roof).to_contain_text("the target verifies 5 rows")
    roof.evaluate("node => { node.kept = true; node.querySelector('svg.main-svg').kept = true; }")
    press(page, "drafts", "ArrowRight", 4)
    expect(roof).to_contain_text("the target verifies 9 rows")
    assert roof.evaluate("node => node.kept && node.querySelector('svg.main-svg').kept")
    assert "drafts=8" in page.url


def test_hovering_names_a_point(page: Page) -> None:
    roof = drawn(page, "roof")
    roof.locator(".scatterlayer .trace").last.locator("path.point").hover(force=True)
    expect(roof.locator(".hoverlayer")).to_contain_text("the target reads a prompt of 2,048 tokens")


def test_the_address_carries_the_controls(visit: Visit, server: Server) -> None:
    page = visit(f"{server.url}/Roofline?drafts=8&batch=64&context=4096&alpha=0.8&mixture=true&detail=Formulas")
    expect(drawn(page, "roof")).to_contain_text("the target verifies 9 rows")
    expect(page.get_by_text("A mixture of experts is not read whole")).to_be_visible()
    expect(page.locator(".st-key-card_payoff")).to_contain_text("At batch 64 with 4,096 tokens of context")
    expect(page.locator(".st-key-card_payoff")).to_contain_text("ridge met: batch × (γ+1) = ridge")


def test_each_figure_has_a_name_and_a_table(page: Page) -> None:
    for name in ("roof", "sweep", "clock", "clocks", "payoff", "cache"):
        figure = drawn(page, name)
        assert figure.get_attribute("role") == "img"
        assert len(figure.get_attribute("aria-label") or "") > 20
    card = page.locator(".st-key-card_payoff")
    card.get_by_text("as a table").click()
    expect(card.get_by_role("columnheader", name="tokens a round")).to_be_visible()
    press(page, "drafts", "ArrowRight")
    expect(card.get_by_role("columnheader", name="tokens a round")).to_be_visible()


def test_the_figures_follow_the_theme(page: Page) -> None:
    def ink() -> str:
        return drawn(page, "roof").locator(".xtitle").evaluate("node => getComputedStyle(node).fill")

    light = ink()
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(
        "was => getComputedStyle(document.querySelector('.st-key-card_roof .xtitle')).fill !== was", arg=light
    )
    assert light == "rgb(27, 32, 39)"
    assert ink() == "rgb(233, 236, 240)"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_scrolls_in_one_direction_only(visit: Visit, server: Server, scheme: str) -> None:
    page = visit(f"{server.url}/Roofline", viewport={"width": 390, "height": 844}, color_scheme=scheme)
    for name in ("roof", "payoff"):
        drawn(page, name)
    widths = page.evaluate(
        "[document.scrollingElement.scrollWidth, document.querySelector('[data-testid=stMain]').scrollWidth]"
    )
    assert max(widths) <= 390


def test_a_chip_that_cannot_be_is_told_beside_the_numbers(page: Page) -> None:
    page.get_by_text("a chip of my own").click()
    settled(page)
    expect(page.locator(".st-key-card_two_by_two")).to_contain_text("on your chip")
    bandwidth = page.get_by_role("spinbutton", name="its bandwidth, TB/s")
    bandwidth.fill("-4")
    bandwidth.press("Enter")
    expect(page.get_by_text("The bandwidth must be between 0.001 and 500 TB/s, got -4.")).to_be_visible()
    expect(drawn(page, "roof")).to_contain_text("ridge: 295")


def test_decode_is_found_as_it_was_left(visit: Visit, server: Server) -> None:
    page = visit(server.url)
    expect(page.get_by_role("radio", name="Greedy")).to_be_attached()
    settled(page)
    press(page, "gamma", "ArrowRight", 2)
    page.get_by_role("button", name="Step").click()
    settled(page)
    page.get_by_text("Formulas", exact=True).click()
    settled(page)
    moment = page.get_by_role("slider", name="Moment of the run")
    before = moment.input_value(), page.locator(".strip .sentence").inner_text()
    page.get_by_role("link", name="Roofline").click()
    drawn(page, "roof")
    expect(page.get_by_text("ridge = 989.4 TFLOP/s")).to_be_visible()
    page.get_by_role("link", name="Decode").click()
    expect(moment).to_have_value(before[0])
    expect(page.locator(".strip .sentence")).to_have_text(before[1], use_inner_text=True)
    expect(page.locator(".st-key-gamma")).to_contain_text("6")
    expect(page.get_by_role("radio", name="Formulas")).to_have_attribute("aria-checked", "true")
    settled(page)
    assert "gamma=6" in page.url
    assert "detail=Formulas" in page.url


def test_what_a_link_set_on_one_page_stands_on_the_next(visit: Visit, server: Server) -> None:
    page = visit(f"{server.url}/Roofline?detail=Story&accelerator=MI300X&drafts=9")
    drawn(page, "roof")
    page.get_by_role("link", name="Decode").click()
    expect(page.get_by_role("radio", name="Story")).to_have_attribute("aria-checked", "true")
    settled(page)
    expect(page.get_by_role("radio", name="Story")).to_have_attribute("aria-checked", "true")
    page.get_by_role("link", name="Roofline").click()
    expect(drawn(page, "roof")).to_contain_text("the target verifies 10 rows")
    expect(page.locator(".st-key-card_two_by_two")).to_contain_text("MI300X")


def test_an_empty_value_in_the_address_leaves_the_usual_one_chosen(visit: Visit, server: Server) -> None:
    page = visit(f"{server.url}/Roofline?dtype=&detail=")
    drawn(page, "roof")
    expect(page.get_by_role("radio", name="Numbers")).to_have_attribute("aria-checked", "true")
    expect(page.locator(".st-key-dtype [aria-checked=true]")).to_have_text("bf16")
