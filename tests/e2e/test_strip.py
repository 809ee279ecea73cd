"""The strip in a browser: keys, the scrubber, long prompts, long runs."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from specviz import trace as traces
from specviz.trace import Trace
from tests.e2e.conftest import Server
from tests.synthetic_traces import make_trace

Visit = Callable[..., Page]
Launch = Callable[..., Server]
OTHER_TRACES = Path(__file__).with_name("other_traces.py")


def slider(page: Page) -> Locator:
    return page.get_by_role("slider", name="Moment of the run")


def ready(page: Page) -> Page:
    expect(page.locator(".strip .sentence")).not_to_be_empty()
    expect(page.get_by_role("radio", name="Greedy")).to_be_attached()
    page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for()
    return page


def at(page: Page, index: int) -> None:
    slider(page).fill(str(index))
    expect(slider(page)).to_have_value(str(index))
    page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for()


def focused(page: Page) -> str:
    """Accessible name, or else the text, of what has the focus inside the strip."""
    script = "(strip) => { const one = strip.getRootNode().activeElement; return one?.ariaLabel ?? one?.textContent; }"
    return page.locator(".strip").evaluate(script) or ""


@pytest.fixture
def page(visit: Visit, server: Server) -> Page:
    return ready(visit(server.url))


def with_run(launch: Launch, folder: Path, trace: Trace) -> Server:
    folder.mkdir()
    traces.save(trace, folder / "sampling.jsonl")
    return launch(OTHER_TRACES, SPECVIZ_TEST_TRACES=str(folder))


# --- keys -------------------------------------------------------------------------------------------------------------


def test_tab_reaches_one_token_and_up_and_down_move_among_them(page: Page) -> None:
    at(page, 40)
    assert page.locator(".strip .text [tabindex='0']").count() == 1
    slider(page).focus()
    page.keyboard.press("Tab")
    here = focused(page)
    assert re.search(r", round \d+$", here)
    page.keyboard.press("ArrowUp")
    above = focused(page)
    assert above != here
    page.keyboard.press("ArrowDown")
    assert focused(page) == here
    page.keyboard.press("Home")
    assert focused(page).startswith("Tell␣me")
    page.keyboard.press("ArrowUp")  # there is nothing before the first
    assert focused(page).startswith("Tell␣me")
    page.keyboard.press("End")
    assert re.search(r", round \d+$", focused(page))
    assert page.locator(".strip .text [tabindex='0']").count() == 1
    expect(slider(page)).to_have_value("40")  # neither Home nor an arrow moved the run


@pytest.mark.parametrize("key", ["Enter", "Space"])
def test_enter_and_space_select_the_token_and_do_nothing_else(page: Page, key: str) -> None:
    at(page, 40)
    page.locator(".strip .chip[tabindex='0']").focus()
    while not focused(page).endswith("kept, round 2"):
        page.keyboard.press("ArrowUp")
    name = focused(page)
    page.keyboard.press(key)
    expect(page.get_by_role("button", name=re.compile("^back to the moment"))).to_be_visible()
    expect(page.locator(".strip .chip.selected")).to_have_attribute("aria-label", name)
    assert focused(page) == name  # the token was drawn anew and kept the focus
    expect(slider(page)).to_have_value("40")
    page.get_by_role("button", name=re.compile("^back to the moment")).click()
    expect(page.get_by_role("button", name=re.compile("^back to the moment"))).to_be_hidden()


def test_left_and_right_stay_the_pages_keys_inside_the_strip(page: Page) -> None:
    at(page, 40)
    page.locator(".strip .chip[tabindex='0']").focus()
    page.keyboard.press("ArrowRight")
    expect(slider(page)).to_have_value("41")


def test_the_prompt_says_that_it_was_given(page: Page) -> None:
    page.locator(".strip .given").click()
    expect(page.locator(".strip .sentence")).to_have_text("The prompt: given, not judged.")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".strip .sentence")).not_to_contain_text("given, not judged")


# --- the scrubber -----------------------------------------------------------------------------------------------------


def test_the_scrubber_paints_while_it_is_dragged_without_asking_the_server(page: Page) -> None:
    """Within one task of the browser nothing can have come back from Python."""
    shown = slider(page).evaluate(
        """(range) => {
          const strip = range.getRootNode().querySelector(".strip");
          return [3, 60, 9].map((moment) => {
            range.value = moment;
            range.dispatchEvent(new Event("input", { bubbles: true }));
            return [strip.querySelector("output").textContent, strip.querySelectorAll(".round").length,
                    strip.querySelector(".sentence").textContent];
          });
        }"""
    )
    labels, rounds, spoken = zip(*shown, strict=True)
    assert labels[0] == "round 1, draft 4 of 4"
    assert rounds[0] == rounds[2] == 1 < rounds[1]
    assert len(set(spoken)) == 3


def test_the_marks_of_the_scrubber_hide_what_is_still_to_come(page: Page) -> None:
    last, covered = int(slider(page).get_attribute("max") or 0), []
    for index in (0, 200):
        at(page, index)
        clip = page.locator(".strip .ticks .deaths").evaluate("(node) => getComputedStyle(node).clipPath")
        covered.append(float(clip.split("calc(")[1].split("%")[0]))
    assert covered == pytest.approx([100, 100 * (1 - 200 / last)], abs=0.1)


# --- what is shown ----------------------------------------------------------------------------------------------------


def test_drafts_that_died_are_folded_away_except_now_and_where_chosen(page: Page) -> None:
    at(page, 60)
    count = page.locator(".strip .count").first
    expect(count).to_contain_text("✗")
    page.keyboard.press("Escape")
    folded = page.locator(".strip .count").count()
    count.click()
    expect(page.locator(".strip .count")).to_have_count(folded - 1)
    everything = page.get_by_role("button", name="show all drafts")
    everything.click()
    expect(page.locator(".strip .count")).to_have_count(0)
    assert page.locator(".strip .chip.rejected").count() > 2
    page.get_by_role("button", name="show fewer drafts").click()
    expect(page.locator(".strip .count")).to_have_count(folded - 1)


def test_with_all_drafts_shown_each_hangs_below_its_place_and_the_moment_is_in_sight(page: Page) -> None:
    at(page, 150)
    page.get_by_role("button", name="show all drafts").click()
    page.wait_for_timeout(200)
    gaps = page.locator(".strip").evaluate(
        """(strip) => [...strip.querySelectorAll(".anchor")].map((place) => {
          const rects = [place.firstElementChild, place.querySelector(".lane")].map((n) => n.getBoundingClientRect());
          const [token, lane] = rects;
          return [Math.abs(token.left - lane.left), lane.top - token.bottom];
        })"""
    )
    assert len(gaps) > 5
    assert max(left for left, _ in gaps) < 2
    assert all(-1 <= down < 8 for _, down in gaps)
    frame, now = page.locator(".strip .text").bounding_box(), page.locator(".strip .chip.selected").bounding_box()
    assert frame is not None
    assert now is not None
    assert frame["y"] <= now["y"]
    assert now["y"] + now["height"] <= frame["y"] + frame["height"]


def test_a_long_prompt_is_cut_in_its_middle_until_it_is_asked_for(visit: Visit, launch: Launch, tmp_path: Path) -> None:
    prompt = "Begin 👩‍🚀 " + "words " * 320 + "<b>end</b>"
    run = make_trace(tokens=24)
    run = Trace(replace(run.header, prompt=prompt), run.rounds)
    page = ready(visit(with_run(launch, tmp_path / "long", run).url))
    given = page.locator(".strip .given")
    expect(given).to_contain_text("Begin␣👩")
    expect(given).to_contain_text("<b>end</b>")
    assert len(given.inner_text()) < 300
    page.get_by_role("button", name="show all").first.click()
    assert len(given.inner_text()) > 1_900
    page.get_by_role("button", name="show less").click()
    assert len(given.inner_text()) < 300


def test_plain_decoding_explains_its_one_look(visit: Visit, launch: Launch, tmp_path: Path) -> None:
    page = ready(visit(with_run(launch, tmp_path / "plain", make_trace(gamma=0, tokens=12)).url))
    expect(page.locator(".strip .legend .key")).to_have_text([re.compile("plain read")])
    expect(page.get_by_role("button", name="show all drafts")).to_be_hidden()
    expect(page.locator(".strip .sentence")).to_contain_text("No drafts: plain decoding, one read a token.")
