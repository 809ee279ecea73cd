"""A run carried from one browser to another: as a link, and as a file."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from specviz import trace as traces
from specviz.ui import words
from tests.e2e.conftest import Server
from tests.synthetic_traces import make_trace

Visit = Callable[..., Page]


def settled(page: Page) -> None:
    """Wait until no script run is in progress."""
    page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for()


def button(page: Page, name: str) -> Locator:
    return page.get_by_role("button", name=re.compile(f"^{name}\\b"))


def slider(page: Page) -> Locator:
    return page.get_by_role("slider", name="Moment of the run")


def ready(page: Page) -> Page:
    expect(page.locator(".strip .sentence")).not_to_be_empty()
    expect(page.get_by_role("radio", name="Greedy")).to_be_attached()
    expect(button(page, "Copy link")).to_be_attached()
    settled(page)
    return page


def copied(page: Page) -> str:
    """What the button puts on the clipboard; the server is not asked."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    button(page, "Copy link").click()
    expect(button(page, "copied")).to_be_visible()
    text: str = page.evaluate("navigator.clipboard.readText()")
    expect(button(page, "Copy link")).to_be_visible()
    return text


def choose(page: Page, name: str, content: bytes) -> None:
    """Give the page a file."""
    page.get_by_text(words.FILES["open"], exact=True).click()
    page.locator("input[type=file]").set_input_files({"name": name, "mimeType": "text/plain", "buffer": content})


def test_a_copied_link_shows_the_same_moment_in_another_browser(visit: Visit, server: Server) -> None:
    first = ready(visit(f"{server.url}/?rule=Gumbel&detail=Formulas"))
    for _ in range(3):
        before = slider(first).input_value()
        button(first, "Step").click()
        expect(slider(first)).not_to_have_value(before)
    settled(first)
    link = copied(first)
    assert re.search(r"[?&]at=\d+\.\d+(&|$)", link)
    second = ready(visit(link))
    expect(slider(second)).to_have_value(slider(first).input_value())
    expect(second.locator(".strip .sentence")).to_have_text(first.locator(".strip .sentence").inner_text())
    expect(second.get_by_role("radio", name="Gumbel")).to_be_checked()
    expect(second.get_by_role("radio", name="Formulas")).to_be_checked()
    assert "at=" not in second.url
    assert copied(second) == link


def test_without_a_clipboard_the_link_stands_in_a_field_to_be_copied(visit: Visit, server: Server) -> None:
    page = ready(visit(server.url))
    page.evaluate(
        "() => { navigator.clipboard.writeText = () => Promise.reject(); document.execCommand = () => false; }"
    )
    button(page, "Copy link").click()
    field = page.get_by_label(words.LINK["by_hand"])
    expect(field).to_have_value(re.compile(r"\?at=\d+\.\d+$"))
    assert field.evaluate("(node) => node.selectionEnd - node.selectionStart === node.value.length")


def test_a_link_that_asks_for_nonsense_is_answered_in_plain_text(visit: Visit, server: Server) -> None:
    page = visit(f"{server.url}/?gamma=999&rule=<img src=x onerror='window.taken=1'>&at=7.3")
    expect(page.get_by_text("The link asked for")).to_contain_text("<img")
    assert page.evaluate("window.taken") is None
    expect(page.get_by_role("slider", name="gamma γ: drafts a round")).to_have_value("4")


def test_a_downloaded_run_opens_as_the_same_run(visit: Visit, server: Server, tmp_path: Path) -> None:
    page = ready(visit(f"{server.url}/?rule=Greedy"))
    button(page, "Step").click()  # what reruns the stage alone must not take the file away
    page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for()
    with page.expect_download() as waiting:
        button(page, words.FILES["download"]).click()
    assert re.fullmatch(r"specviz-greedy-\d+\.jsonl", waiting.value.suggested_filename)
    waiting.value.save_as(tmp_path / "run.jsonl")
    content = (tmp_path / "run.jsonl").read_bytes()
    shown = page.locator(".strip").get_attribute("aria-label"), slider(page).get_attribute("max")
    other = ready(visit(server.url))
    choose(other, "run.jsonl", content)
    expect(other.get_by_text(re.compile("^from a file ·"))).to_be_visible()
    settled(other)
    assert (other.locator(".strip").get_attribute("aria-label"), slider(other).get_attribute("max")) == shown
    expect(other.get_by_role("radio", name="Greedy")).to_be_checked()
    expect(button(other, "Copy link")).to_be_disabled()
    expect(other.get_by_text(words.LINK["file"])).to_be_visible()
    with other.expect_download() as waiting:
        button(other, words.FILES["download"]).click()
    assert Path(waiting.value.path()).read_bytes() == content


HOSTILE = "<img src=x onerror='window.taken=1'>.jsonl"


@pytest.mark.parametrize("name", ["run.jsonl", HOSTILE], ids=["plain", "hostile"])
def test_a_bad_file_is_refused_with_its_line_and_what_is_shown_stays(visit: Visit, server: Server, name: str) -> None:
    page = ready(visit(server.url))
    said = page.locator(".strip .sentence").inner_text()
    lines = traces.dump(make_trace()).splitlines()
    record = json.loads(lines[3]) | {"position": "<script>window.taken=1</script>"}
    choose(page, name, "\n".join([*lines[:3], json.dumps(record)]).encode())
    expect(page.get_by_text(re.compile("^Line 4: .*<script>"))).to_be_visible()
    settled(page)
    expect(page.locator(".strip .sentence")).to_have_text(said)
    expect(page.get_by_text(re.compile("^from a file ·"))).to_have_count(0)
    assert page.evaluate("window.taken") is None
    assert page.locator("img[src=x]").count() == 0
