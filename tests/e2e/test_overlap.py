"""The Overlap page in a browser: bending by hand, its address, and a phone."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.conftest import Server

Visit = Callable[..., Page]


def grip(page: Page, model: str, token: str) -> Locator:
    return page.get_by_role("slider", name=f"{model} of {token}", exact=True)


def typed(page: Page, model: str, token: str) -> Locator:
    return page.get_by_role("textbox", name=f"{model} of {token}", exact=True)


def drag(page: Page, handle: Locator, by: float, steps: int = 4) -> None:
    """Take a handle and move it by a part of its track, without letting go."""
    box, track = handle.bounding_box(), handle.locator("xpath=..").bounding_box()
    assert box
    assert track
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + by * track["width"], y, steps=steps)


@pytest.fixture
def page(visit: Visit, server: Server) -> Page:
    """Bent by hand, a cold deep link."""
    opened = visit(f"{server.url}/Overlap?pq_from=bent+by+hand")
    expect(grip(opened, "p", "a")).to_be_visible()
    return opened


def test_dragging_bends_the_picture_at_once_and_everything_after_it(page: Page) -> None:
    shared = page.locator(".bend .together")
    expect(shared).to_contain_text("0.70")
    drag(page, grip(page, "q", "c"), -0.3)
    expect(typed(page, "q", "c")).to_have_value("0.20")  # while it is held
    expect(typed(page, "q", "b")).to_have_value("0.48")
    held = shared.inner_text()
    page.mouse.up()
    expect(page.get_by_role("textbox", name="q, the drafter’s")).to_have_value("0.32, 0.48, 0.2")
    expect(page.locator(".st-key-rules")).to_contain_text("kept 0.82")
    assert shared.inner_text() == held
    assert "q=0.32" in page.url
    page.reload()
    expect(typed(page, "q", "c")).to_have_value("0.20")


def test_the_picture_is_bent_here_as_the_server_bends_it(visit: Visit, server: Server) -> None:
    address = "p=4+3+2+1&q=1+1+3+5&p_temperature=0.6&q_temperature=1.4&pq_top_k=3&pq_top_p=0.9"
    page = visit(f"{server.url}/Overlap?{address}")
    expect(grip(page, "p", "d")).to_be_visible()
    drag(page, grip(page, "p", "d"), 0.15)
    held = page.locator(".bend .together").inner_text()
    page.mouse.up()
    expect(page.get_by_role("textbox", name="p, the target’s")).not_to_have_value("4 3 2 1")
    expect(page.locator(".bend .together")).to_have_text(held.replace("\n", ""))
    page.locator(".bend").get_by_text("as a table").click()
    drawn = page.locator(".bend .rows .row:not(.heads) .bar").evaluate_all(
        """bars => bars.map(bar => {
            const all = bar.parentElement.getBoundingClientRect().width - 1;
            const [both, only] = [".both", ".only-target"].map(part => bar.querySelector(part));
            const width = node => node && node.style.visibility !== "hidden" ? node.getBoundingClientRect().width : 0;
            return (width(both) + width(only)) / all;
        })"""
    )
    told = [row.locator("td").nth(1).inner_text() for row in page.locator(".bend tbody tr").all()][: len(drawn)]
    assert drawn == pytest.approx([float(chance) for chance in told], abs=0.02)
    assert told[2] != told[1]  # temperature, top-k and top-p had their part in it
    assert "0" in told


def test_the_keyboard_bends_and_typing_does(page: Page) -> None:
    grip(page, "p", "a").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("PageDown")
    expect(page.get_by_role("textbox", name="p, the target’s")).to_have_value("0.41, 0.354, 0.236")
    expect(grip(page, "p", "a")).to_be_focused()
    typed(page, "q", "b").fill("1")
    page.keyboard.press("Tab")
    expect(page.get_by_role("textbox", name="q, the drafter’s")).to_have_value("0, 1, 0")
    typed(page, "q", "b").fill("<b>")
    page.keyboard.press("Tab")
    expect(typed(page, "q", "b")).to_have_value("1.00")


def test_a_press_is_one_entry_of_the_history_and_back_and_forward_lead_to_one_state(page: Page) -> None:
    def state(p: str, q: str, preset: str) -> None:
        expect(page.get_by_role("textbox", name="p, the target’s")).to_have_value(p)
        expect(page.get_by_role("textbox", name="q, the drafter’s")).to_have_value(q)
        for model, law in (("p", p), ("q", q)):
            expect(typed(page, model, "a")).to_have_value(f"{float(law.split(',')[0]):.2f}")
        chosen = page.locator(".st-key-overlap_preset [aria-checked=true]")
        expect(chosen).to_have_text(preset) if preset else expect(chosen).to_have_count(0)

    mirrored = ("0.5, 0.3, 0.2", "0.2, 0.3, 0.5", "mirrored")
    close = ("0.6, 0.2, 0.1, 0.1", "0.7, 0.2, 0.05, 0.05", "close")
    bent = ("0.9, 0.05, 0.025, 0.025", "0.7, 0.2, 0.05, 0.05", "")
    before = page.evaluate("history.length")
    page.get_by_text("close", exact=True).click()
    state(*close)
    typed(page, "p", "a").fill("0.9")
    page.keyboard.press("Tab")
    state(*bent)
    assert page.evaluate("history.length") == before + 2
    for way, there in (
        (page.go_back, close),
        (page.go_back, mirrored),
        (page.go_forward, close),
        (page.go_forward, bent),
    ):
        way()
        state(*there)


def test_a_number_that_is_no_chance_is_told_and_the_others_come_back_as_they_were(page: Page) -> None:
    typed(page, "p", "a").fill("7")
    page.keyboard.press("Tab")
    expect(page.locator(".bend .clamped")).to_have_text(
        "7 is no chance: one lies between 0 and 1, so it was taken as 1."
    )
    expect(page.get_by_role("textbox", name="p, the target’s")).to_have_value("1, 0, 0")
    typed(page, "p", "a").fill("0.5")
    page.keyboard.press("Tab")
    expect(page.get_by_role("textbox", name="p, the target’s")).to_have_value("0.5, 0.3, 0.2")
    expect(page.locator(".bend .clamped")).to_be_hidden()


def test_tokens_come_and_go(page: Page) -> None:
    page.get_by_role("button", name="+ another token").click()
    expect(typed(page, "p", "d")).to_have_value("0.10")
    expect(page.locator(".st-key-rules .names").first).to_have_text("abcd")
    page.get_by_role("button", name="take a away").click()
    expect(page.get_by_role("textbox", name="p, the target’s")).to_have_value(
        re.compile(r"0\.490909\d*, 0\.32727\d*, 0\.181818\d*")
    )
    page.get_by_role("button", name="take a away").click()
    expect(page.get_by_role("button", name="take a away")).to_be_hidden()


@pytest.mark.parametrize("address", ["p=1+1+1+1+1+1+1+1+1+1+1+1", "detail=Formulas&wrong_drafts=true"])
def test_a_phone_scrolls_in_one_direction_only(visit: Visit, server: Server, address: str) -> None:
    page = visit(f"{server.url}/Overlap?{address}", viewport={"width": 390, "height": 844})
    expect(page.locator(".st-key-rules .frame").first).to_be_visible()
    widths = page.evaluate(
        "[document.scrollingElement.scrollWidth, document.querySelector('[data-testid=stMain]').scrollWidth]"
    )
    assert max(widths) <= 390
