"""Lanes and price in a browser: re-priced in place while stepping, told round by round, at home on every screen."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.conftest import Server

Visit = Callable[..., Page]
MAIN = "document.querySelector('[data-testid=stMain]')"


def panel(page: Page) -> Locator:
    return page.locator(".lanes")


def ready(page: Page) -> Page:
    expect(panel(page).locator(".badge")).not_to_be_empty()
    page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for()
    return page


def move(page: Page, share: float) -> None:
    slider = page.get_by_role("slider", name="Moment of the run")
    slider.fill(str(int(int(slider.get_attribute("max") or 0) * share)))
    slider.dispatch_event("change")


def at_end(page: Page) -> Page:
    move(page, 1)
    expect(panel(page).locator(".time svg")).to_have_attribute("aria-label", re.compile(r"in \d\d rounds"))
    page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for()
    return page


def choose(page: Page, label: str, option: str) -> None:
    box = page.get_by_role("combobox", name=label)
    box.scroll_into_view_if_needed()
    page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for()
    box.click()
    page.get_by_role("option", name=option, exact=True).click()


def test_another_accelerator_while_stepping_is_drawn_on_the_same_node(visit: Visit, server: Server) -> None:
    page = at_end(ready(visit(server.url)))
    before = panel(page).locator(".time svg").get_attribute("aria-label") or ""
    mark = "(node) => { node.dataset.seen = 'yes'; }"
    panel(page).evaluate(mark)
    panel(page).locator(".time svg").evaluate(mark)
    moment = page.get_by_role("slider", name="Moment of the run")
    last = moment.input_value()
    page.get_by_role("button", name=re.compile("^Back")).click()
    expect(moment).not_to_have_value(last)  # a step that is still being drawn would close the list
    choose(page, "Accelerator", "H100 PCIe")
    page.get_by_role("button", name=re.compile("^Step")).click()
    expect(panel(page).locator(".badge")).to_contain_text("H100 PCIe")
    expect(panel(page).locator(".time svg")).not_to_have_attribute("aria-label", before)
    move(page, 0.5)
    choose(page, "Pair that is priced", "Qwen3-8B + Qwen3-0.6B")
    expect(panel(page).locator(".badge")).to_contain_text("Qwen3-8B + Qwen3-0.6B")
    expect(panel(page)).to_have_attribute("data-seen", "yes")
    expect(panel(page).locator(".time svg")).to_have_attribute("data-seen", "yes")
    expect(page).to_have_url(re.compile(r"accelerator=H100(\+|%20)PCIe"))


def test_a_round_tells_its_numbers_to_pointer_and_keys(visit: Visit, server: Server) -> None:
    page = at_end(ready(visit(server.url)))
    stairs, readout = panel(page).locator(".stairs svg"), panel(page).locator(".readout")
    moment = page.get_by_role("slider", name="Moment of the run").input_value()
    stairs.focus()
    page.keyboard.press("ArrowUp")
    expect(readout).to_contain_text(re.compile(r"^Round \d+: .*one target read 4\.\d+ ms"))
    last = int((readout.text_content() or "").split(":")[0].split()[1])
    page.keyboard.press("ArrowDown")
    expect(readout).to_contain_text(f"Round {last - 1}:")
    assert page.get_by_role("slider", name="Moment of the run").input_value() == moment
    box = stairs.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.2, box["y"] + box["height"] * 0.5)
    expect(readout).not_to_contain_text(f"Round {last - 1}:")
    page.mouse.move(5, 5)


def test_milliseconds_and_gigabytes_are_one_switch(visit: Visit, server: Server) -> None:
    page = at_end(ready(visit(server.url)))
    panel(page).get_by_role("button", name="GB").click()
    expect(panel(page).locator(".stairs figcaption")).to_contain_text("GB moved for the tokens so far; lower is better")
    expect(panel(page).get_by_role("button", name="GB")).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name=re.compile("^Back")).click()  # the switch survives what Python sends
    expect(panel(page).locator(".stairs figcaption")).to_contain_text("GB moved")


def test_every_round_stands_in_the_table(visit: Visit, server: Server) -> None:
    page = at_end(ready(visit(server.url)))
    panel(page).get_by_text("as a table").click()
    rounds = int(re.findall(r"in (\d+) rounds", panel(page).locator(".time svg").get_attribute("aria-label") or "")[0])
    expect(panel(page).locator("details.twin tbody tr")).to_have_count(rounds)


@pytest.mark.parametrize("detail", ["Story", "Numbers", "Formulas"])
def test_it_fits_a_phone(visit: Visit, server: Server, detail: str) -> None:
    page = at_end(ready(visit(f"{server.url}/?detail={detail}", viewport={"width": 390, "height": 844})))
    main = page.locator("[data-testid=stMain]")
    assert main.evaluate("(node) => node.scrollWidth - node.clientWidth") == 0
    width = panel(page).evaluate("(node) => node.clientWidth")
    for svg in panel(page).locator("svg:visible").all():
        box = svg.bounding_box()
        assert box is not None
        assert box["width"] <= width


@pytest.mark.parametrize("detail", ["Story", "Numbers"])
@pytest.mark.parametrize("share", [0.3, 1.0])
def test_on_a_projector_it_fits_without_scrolling(visit: Visit, server: Server, detail: str, share: float) -> None:
    page = visit(f"{server.url}/?large=true&detail={detail}", viewport={"width": 1280, "height": 720})
    # The offer to fetch the models takes a line of its own: this is about a machine that has them.
    page.add_style_tag(content=".st-key-fetch_row { display: none !important; }")
    page.get_by_role("radio", name="Price").click()
    ready(page)
    move(page, share)
    expect(panel(page).locator(".verdict")).not_to_be_empty()
    page.wait_for_function(f"() => {{ const main = {MAIN}; return main.scrollHeight <= main.clientHeight; }}")
    box = panel(page).bounding_box()
    assert box is not None
    assert box["y"] + box["height"] <= 720
