"""The Decode page in a browser, on the recorded runs that ship with the program."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import cycle
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from specviz import trace as traces
from tests.e2e.conftest import Server
from tests.synthetic_traces import make_trace

Visit = Callable[..., Page]
Launch = Callable[..., Server]
OTHER_TRACES = Path(__file__).with_name("other_traces.py")


def slider(page: Page) -> Locator:
    return page.get_by_role("slider", name="Moment of the run")


def button(page: Page, name: str) -> Locator:
    return page.get_by_role("button", name=re.compile(f"^{name}\\b"))


def sentence(page: Page) -> Locator:
    return page.locator(".strip .sentence")


def settled(page: Page) -> None:
    """Wait until no script run is in progress."""
    page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for()


def moment(page: Page) -> int:
    return int(slider(page).input_value())


def at(page: Page, index: int) -> None:
    expect(slider(page)).to_have_value(str(index))


@pytest.fixture
def page(visit: Visit, server: Server) -> Page:
    opened = visit(server.url)
    expect(sentence(opened)).not_to_be_empty()
    # The controls follow in a second run of the script; a key that falls into it is lost.
    expect(opened.get_by_role("radio", name="Greedy")).to_be_attached()
    settled(opened)
    return opened


# --- opening ----------------------------------------------------------------------------------------------------------


def test_the_page_opens_on_a_recorded_run_at_a_rejection_and_needs_no_model(page: Page) -> None:
    expect(page.get_by_role("heading", level=1)).to_have_text("Decode")
    expect(page.get_by_text("recorded ·").first).to_be_visible()
    rejected = page.get_by_label(re.compile(r", rejected, round \d+$"))
    expect(rejected.first).to_be_visible()
    expect(sentence(page)).to_contain_text("goes")
    expect(page.get_by_role("heading", name=re.compile("^The coin")).first).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("^Fetch the embedded pair"))).to_be_visible()


def test_the_first_request_of_a_fresh_server_may_be_a_share_link(visit: Visit, launch: Launch) -> None:
    page = visit(f"{launch().url}/?rule=Greedy&detail=Formulas")
    expect(page.get_by_role("radio", name="Greedy")).to_be_checked()
    expect(page.get_by_role("radio", name="Formulas")).to_be_checked()
    expect(sentence(page)).not_to_be_empty()


@pytest.mark.parametrize("numbers", ["seed=4.5", "seed=inf&top_k=1e999", f"seed={'9' * 2_000}"])
def test_nonsense_in_the_address_falls_back_to_the_defaults(visit: Visit, server: Server, numbers: str) -> None:
    page = visit(f"{server.url}/?gamma=999&temperature=nan&length=-3&{numbers}&rule=abc&detail=<b>&pair=..")
    expect(page.get_by_role("radio", name="Sampling")).to_be_checked()
    expect(page.get_by_role("radio", name="Numbers")).to_be_checked()
    expect(page.get_by_role("slider", name="gamma γ: drafts a round")).to_have_value("4")
    expect(sentence(page)).not_to_be_empty()


# --- moving -----------------------------------------------------------------------------------------------------------


def test_step_and_back_are_inverse(page: Page) -> None:
    start, said = moment(page), sentence(page).inner_text()
    button(page, "Step").click()
    at(page, start + 1)
    expect(sentence(page)).not_to_have_text(said)
    button(page, "Back").click()
    at(page, start)
    expect(sentence(page)).to_have_text(said)


def test_restart_goes_to_the_beginning_and_round_to_the_end_of_each_round(page: Page) -> None:
    button(page, "Restart").click()
    at(page, 0)
    assert page.locator(".strip .chip.correction, .strip .chip.bonus").count() == 0
    for number in (1, 2):
        button(page, "Round").click()
        expect(page.locator(".strip output")).to_contain_text(f"round {number},")
        expect(page.locator(".strip .chip.correction, .strip .chip.bonus")).to_have_count(number)


def test_events_hide_the_future(page: Page) -> None:
    """At the first event a draft waits for its verdict, whatever its fate will be."""
    button(page, "Restart").click()
    at(page, 0)
    for fate in ("kept", "rejected", "unjudged"):
        assert page.locator(f".strip .chip.{fate}").count() == 0
    expect(page.locator(".strip .chip.waiting").first).to_be_visible()


def test_the_scrubber_reaches_every_moment_and_its_arrows_move_it_by_one(page: Page) -> None:
    last = int(slider(page).get_attribute("max") or 0)
    for index in (last, 10):
        slider(page).fill(str(index))
        shown = page.locator(".strip output").inner_text().split(",")[0]  # painted in the browser, before Python knows
        expect(page.locator(".coin h2")).to_contain_text(re.compile(rf"{shown}$"))
    slider(page).press("ArrowRight")
    at(page, 11)
    settled(page)
    button(page, "Back").click()
    at(page, 10)


def test_play_moves_by_itself_until_pause(page: Page) -> None:
    button(page, "Restart").click()
    at(page, 0)
    button(page, "Play").click()
    at(page, 3)
    button(page, "Pause").click()
    expect(button(page, "Play")).to_be_visible()
    stopped = moment(page)
    page.wait_for_timeout(2_000)  # nothing to wait for: nothing may happen
    at(page, stopped)


def test_keys_move_as_the_buttons_do(page: Page) -> None:
    start = moment(page)
    page.keyboard.press("ArrowRight")
    at(page, start + 1)
    page.keyboard.press("ArrowLeft")
    at(page, start)
    page.keyboard.press("PageDown")
    at(page, start + 1)
    page.keyboard.press("Home")
    at(page, 0)
    page.keyboard.press("n")
    expect(page.locator(".strip .chip.correction, .strip .chip.bonus")).to_have_count(1)


def test_enter_belongs_to_what_has_the_focus(page: Page) -> None:
    start = moment(page)
    page.locator(".strip .chip").first.focus()
    page.keyboard.press("Enter")
    back = page.get_by_role("button", name=re.compile("^back to the moment"))
    expect(back).to_be_visible()
    at(page, start)
    back.click()
    expect(back).to_be_hidden()


def test_a_changed_control_offers_to_go_live_and_leaves_the_recording_alone(page: Page) -> None:
    start, said = moment(page), sentence(page).inner_text()
    page.get_by_role("radio", name="Gumbel").click()
    expect(page.get_by_text("The recorded run keeps its own settings.")).to_be_visible()
    settled(page)
    at(page, start)
    expect(sentence(page)).to_have_text(said)
    page.get_by_role("button", name="Keep the recording").click()
    expect(page.get_by_text("The recorded run keeps its own settings.")).to_be_hidden()
    expect(page.get_by_role("radio", name="Sampling")).to_be_checked()


# --- looks ------------------------------------------------------------------------------------------------------------


def luminance(page: Page) -> float:
    colour = page.evaluate("getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor")
    red, green, blue = (int(part) for part in re.findall(r"\d+", colour)[:3])
    return (0.2126 * red + 0.7152 * green + 0.0722 * blue) / 255


def test_the_page_follows_the_browsers_colour_scheme(visit: Visit, server: Server) -> None:
    light, dark = (visit(server.url, color_scheme=scheme) for scheme in ("light", "dark"))
    assert luminance(light) > 0.9
    assert luminance(dark) < 0.1


@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_scrolls_sideways(visit: Visit, server: Server, width: int) -> None:
    page = visit(server.url, viewport={"width": width, "height": 800})
    expect(sentence(page)).not_to_be_empty()
    beyond = page.evaluate(
        """() => [document.scrollingElement, document.querySelector('[data-testid=stMain]')]
                 .map((node) => node.scrollWidth - node.clientWidth)"""
    )
    assert beyond == [0, 0]


def test_large_is_switched_by_the_mouse_and_fits_a_projector(visit: Visit, server: Server) -> None:
    page = visit(server.url, viewport={"width": 1280, "height": 720})
    expect(page.get_by_role("radio", name="Greedy")).to_be_attached()
    settled(page)
    page.get_by_text("Large", exact=True).click()
    expect(page.locator("section.place, section.tally")).to_have_count(0)
    expect(page.get_by_role("radio", name="Greedy")).to_be_hidden()
    # The sentence's token is in sight: the strip has followed its new size.
    inside = page.locator(".strip .text").bounding_box()
    chosen = page.locator(".strip .chip.selected").bounding_box()
    assert inside is not None
    assert chosen is not None
    assert inside["y"] <= chosen["y"]
    assert chosen["y"] + chosen["height"] <= inside["y"] + inside["height"] + 1
    main = "document.querySelector('[data-testid=stMain]')"
    assert page.evaluate(f"{main}.scrollHeight - {main}.clientHeight") == 0
    page.get_by_text("Large", exact=True).click()
    expect(page.locator("section.place")).to_be_visible()


def test_keys_work_after_the_speed_was_changed(page: Page) -> None:
    start = moment(page)
    page.get_by_role("button", name="1×", exact=True).click()
    expect(page.get_by_role("button", name="2×", exact=True)).to_be_visible()
    settled(page)
    page.keyboard.press("ArrowRight")
    at(page, start + 1)


# --- hostile text -----------------------------------------------------------------------------------------------------

HOSTILE = (
    "<img src=x onerror='window.taken=1'>",
    "<script>window.taken=1</script>",
    "<iframe srcdoc='<script>parent.taken=1</script>'>",
    "</style><style>*{display:none}",
    "![](http://192.0.2.1/pixel.png)",
    ":red[**$x$**]",
    "[link](javascript:window.taken=1)",
)


@pytest.fixture
def hostile_server(tmp_path: Path, launch: Launch) -> Server:
    """The app over a run whose prompt and tokens try to become markup."""
    run = make_trace()
    text = traces.dump(replace(run, header=replace(run.header, prompt=" ".join(HOSTILE))))
    tokens = {token.bytes for round_ in run.rounds for row in round_.rows() for token in row.tokens if token.bytes}
    for token, hostile in zip(sorted(tokens), cycle(HOSTILE)):
        text = text.replace(f'"bytes":"{token}"', f'"bytes":"{hostile.encode().hex()}"')
    (tmp_path / "sampling.jsonl").write_text(text, encoding="utf-8")
    return launch(OTHER_TRACES, SPECVIZ_TEST_TRACES=str(tmp_path))


def test_a_models_text_stays_text(visit: Visit, hostile_server: Server) -> None:
    """Neither script nor style nor request comes out of it; ``visit`` fails the test on any foreign request."""
    page = visit(hostile_server.url)
    expect(page.locator(".strip .chip").first).to_be_visible()
    for _ in range(6):
        before = moment(page)
        button(page, "Step").click()
        at(page, before + 1)
    expect(page.locator(".strip .chip", has_text="<img").first).to_be_visible()
    expect(page.locator(".place", has_text="<script>")).to_be_visible()
    assert page.locator("iframe, img[src=x], a[href^=javascript]").count() == 0
    assert page.evaluate("window.taken") is None


# --- benchmarks -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [["ui", "--clicks", "2"], ["start", "--launches", "1"]], ids=["ui", "start"])
def test_the_benchmarks_find_what_they_measure(arguments: list[str]) -> None:
    """In a process of its own: a browser is driven from one event loop only."""
    ended = subprocess.run([sys.executable, "-m", "specviz", "bench", *arguments], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert re.search(r"\d (?:ms|s)\b", ended.stdout)
