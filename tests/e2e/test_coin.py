"""The pins of the coin panel, moved in a browser: what would have been, and back to what happened."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from specviz import trace as traces
from specviz.figures.events import Timeline
from specviz.figures.text import Texts
from specviz.trace import Round
from specviz.ui import recordings
from tests.e2e.conftest import Server, serve

PAGE = Path(__file__).with_name("coin_page.py")
Visit = Callable[..., Page]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A page with the panel alone."""
    with serve(tmp_path_factory.mktemp("coin"), PAGE) as running:
        yield running


def recorded(run: str, wanted: Callable[[Round], bool], kind: str) -> tuple[Round, int, Texts]:
    """The first round that is as wanted, the moment of its last event of a kind, and the texts of its run."""
    trace = traces.read(recordings.FOLDER / f"{run}.jsonl")
    round_ = next(filter(wanted, trace.rounds))
    events = Timeline(trace).events
    moment = max(i for i, event in enumerate(events) if event.round == round_.index and event.kind == kind)
    return round_, moment, Texts.of(trace)


def by_chance(round_: Round) -> bool:
    """A rejected draft that could have stayed, with another behind it."""
    gone = round_.drafts[round_.kept] if round_.kept + 1 < len(round_.drafts) else None
    return gone is not None and gone.accept_prob is not None and 0.1 < gone.accept_prob < 0.9


def line(page: Page, place: int) -> Locator:
    return page.locator(".coin .drafts .line").nth(place)


def pin(page: Page, place: int) -> Locator:
    return line(page, place).get_by_role("slider")


def drag(page: Page, place: int, to: float) -> None:
    """Take a pin and let it go at ``to`` of its bar's width."""
    held, bar = pin(page, place).bounding_box(), line(page, place).locator(".bar").bounding_box()
    assert held is not None
    assert bar is not None
    page.mouse.move(held["x"] + held["width"] / 2, held["y"] + held["height"] / 2)
    page.mouse.down()
    page.mouse.move(bar["x"] + bar["width"] * to, held["y"] + 4, steps=5)
    page.mouse.up()


def thrown(page: Page) -> Any:
    expect(page.get_by_test_id("stCode")).to_contain_text("round")
    return ast.literal_eval(page.get_by_test_id("stCode").inner_text())


def test_a_draft_that_died_can_be_made_to_live_and_the_rest_is_judged(visit: Visit, alone: Server) -> None:
    round_, moment, texts = recorded("sampling", by_chance, "closing")
    dead = round_.kept
    page = visit(f"{alone.url}/?moment={moment}")
    expect(line(page, dead)).to_contain_text("rejected")
    happened = page.locator(".coin .drafts").inner_text()
    drag(page, dead, 0.02)
    expect(line(page, dead)).to_contain_text("kept")
    expect(line(page, dead)).to_contain_text("what if")
    expect(line(page, dead + 1)).to_contain_text(re.compile("kept|rejected"))
    expect(line(page, dead).locator(".pin.before")).to_be_visible()
    expect(page.locator(".coin .whatif p")).to_contain_text(f"Had the coin of {texts(round_.drafts[dead].id)} fallen")
    sent = thrown(page)
    assert (sent["round"], sent["place"], sent["stays"], sent["changed"]) == (round_.index, dead, True, True)
    expect(line(page, dead)).to_contain_text("what if")  # the run of the script left it as it was
    page.get_by_role("button", name="back to what happened").click()
    assert page.locator(".coin .drafts").inner_text() == happened


def test_a_draft_that_lived_can_be_made_to_die_and_what_follows_falls_silent(visit: Visit, alone: Server) -> None:
    round_, moment, texts = recorded(
        "sampling", lambda r: r.kept == len(r.drafts) and 0 < (r.drafts[0].accept_prob or 0) < 1, "closing"
    )
    page = visit(f"{alone.url}/?moment={moment}")
    expect(page.locator(".coin .close")).to_contain_text("bonus")
    drag(page, 0, 1.0)
    expect(line(page, 0)).to_contain_text("rejected")
    for place in range(1, len(round_.drafts)):
        expect(line(page, place)).to_contain_text("never judged")
        expect(line(page, place)).to_contain_text(f"written to follow {texts(round_.drafts[0].id)}")
    expect(page.locator(".coin .close")).to_contain_text("a correction would be dealt from the gaps here: ")
    expect(page.locator(".coin .close")).to_contain_text(re.compile(r" 0\.\d+ of 0\.\d+"))
    assert thrown(page)["stays"] is False


def test_where_all_drafts_are_made_to_live_the_bonus_is_named(visit: Visit, alone: Server) -> None:
    def could_all_stay(round_: Round) -> bool:
        return by_chance(round_) and all(0 < (draft.accept_prob or 0) < 1 for draft in round_.drafts[round_.kept :])

    round_, moment, texts = recorded("sampling", could_all_stay, "closing")
    assert round_.after_id is not None
    bonus = texts(round_.after_id)
    page = visit(f"{alone.url}/?moment={moment}")
    for place in range(round_.kept, len(round_.drafts)):
        pin(page, place).press("Home")
    close = page.locator(".coin .close")
    expect(close.locator(".token")).to_have_text(bonus)
    expect(close).to_contain_text("drawn from what the target wants next: 0.")
    expect(close).to_contain_text(re.compile("bonus.*what if", re.DOTALL))
    expect(close.locator(".place")).to_have_text(f"{len(round_.drafts) + 1}")
    expect(page.locator(".coin .whatif p")).to_contain_text(f"All drafts stay: the same read gives {bonus} as a bonus.")


def test_the_keys_of_a_pin_move_it_and_nothing_else_and_another_event_resets_it(visit: Visit, alone: Server) -> None:
    round_, moment, _ = recorded("sampling", by_chance, "verdict")
    page = visit(f"{alone.url}/?moment={moment}")
    held = pin(page, round_.kept)
    before = float(held.get_attribute("aria-valuenow") or "nan")
    assert held.get_attribute("aria-valuetext") == f"coin {before:.2f}, goes"
    held.press("ArrowLeft")
    assert float(held.get_attribute("aria-valuenow") or "nan") == pytest.approx(before - 0.01, abs=0.006)
    held.press("Home")
    assert (held.get_attribute("aria-valuetext") or "").endswith(", stays")
    expect(page.get_by_test_id("stCode")).to_contain_text("'stays': True")
    expect(page.locator(".coin .close")).to_have_count(0 if round_.closing is None else 1)
    # Right is the shortcut of the page's button too: the pin kept it to itself.
    held.press("ArrowRight")
    expect(page.locator(".coin .whatif")).to_be_visible()
    page.get_by_role("button", name="next event").click()
    expect(page.locator(".coin .whatif")).to_be_hidden()
    expect(page.locator(".coin .close")).to_contain_text("correction")


def test_under_block_verification_the_last_coin_inside_carries_the_drafts_before_it(
    visit: Visit, alone: Server
) -> None:
    def carries(round_: Round) -> bool:
        last = round_.drafts[round_.kept - 1] if round_.kept else None
        return last is not None and round_.kept > 1 and 0 < (last.accept_prob or 0) < 1

    round_, moment, _ = recorded("block", carries, "verdict")
    page = visit(f"{alone.url}/?run=block&moment={moment}")
    place = round_.kept - 1
    expect(line(page, place)).to_contain_text("the last inside")
    drag(page, place, 1.0)
    expect(line(page, place)).to_contain_text("missed")
    assert not re.search(r"missed 0\.00(?!\d)", page.locator(".coin .drafts").inner_text())
    left = max((i + 1 for i, d in enumerate(round_.drafts[:place]) if d.passed), default=0)
    for index in range(len(round_.drafts)):
        fate = "kept" if index < left else "rejected" if index == left else "never judged"
        expect(line(page, index)).to_contain_text(fate)


def test_before_its_verdict_a_draft_has_no_pin(visit: Visit, alone: Server) -> None:
    _, moment, _ = recorded("sampling", by_chance, "draft")
    page = visit(f"{alone.url}/?moment={moment}")
    expect(page.locator(".coin .drafts .line").first).to_be_visible()
    assert page.get_by_role("slider").count() == 0


def test_the_read_lights_all_rows_and_can_be_asked_one_by_one(visit: Visit, alone: Server) -> None:
    round_, moment, _ = recorded("sampling", by_chance, "read")
    page = visit(f"{alone.url}/?moment={moment}")
    rows = page.locator(".coin .answer")
    expect(rows).to_have_count(len(round_.drafts) + 1)
    expect(rows.nth(2).locator(".cell.seen")).to_have_count(3)
    expect(rows.last).to_contain_text(re.compile(r"it wants most \S+ \(0\.\d+\); used only if all stay"))
    page.get_by_role("button", name="ask one place at a time").click()
    expect(page.locator(".coin .said")).to_contain_text("295 ms instead of 105")


def test_on_a_phone_a_finger_moves_the_pin_and_nothing_scrolls_sideways(visit: Visit, alone: Server) -> None:
    round_, moment, _ = recorded("sampling", by_chance, "closing")
    page = visit(f"{alone.url}/?moment={moment}", viewport={"width": 390, "height": 844}, has_touch=True)
    held = pin(page, round_.kept)
    held.scroll_into_view_if_needed()
    box, bar = held.bounding_box(), line(page, round_.kept).locator(".bar").bounding_box()
    assert box is not None
    assert bar is not None
    assert box["width"] >= 44
    finger = page.context.new_cdp_session(page)
    y = box["y"] + box["height"] / 2
    for kind, x in (("touchStart", box["x"] + box["width"] / 2), ("touchMove", bar["x"] + 20), ("touchMove", bar["x"])):
        finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y}]})
    finger.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    expect(line(page, round_.kept)).to_contain_text("kept")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
