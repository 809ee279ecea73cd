"""The Decode page with models behind it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from specviz.models import store
from tests import tiny_models
from tests.e2e.conftest import Server

Visit = Callable[..., Page]
Launch = Callable[..., Server]
LOADING_MS = 180_000
"""torch is imported and weights are read, perhaps beside other work."""


def button(page: Page, name: str) -> Locator:
    return page.get_by_role("button", name=re.compile(f"^{name}\\b"))


def decodes_live(page: Page) -> None:
    """From here on each Round is a round of the models, and Play goes on until Pause."""
    closed = page.locator(".strip .chip.correction, .strip .chip.bonus")
    for _ in range(3):
        before = closed.count()
        button(page, "Round").click()
        expect(closed).not_to_have_count(before)
        page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for()
    button(page, "Play").click()
    expect(closed.nth(closed.count() + 1)).to_be_visible(timeout=LOADING_MS)
    button(page, "Pause").click()
    expect(button(page, "Play")).to_be_visible()


def test_any_pair_runs_live_and_the_log_stays_clean(visit: Visit, launch: Launch, tmp_path: Path) -> None:
    """torch is imported behind the page: Streamlit's file watcher must not trip over it (``launch`` reads the log)."""
    target, drafter = tiny_models.save_tiny_pair(tmp_path)
    listed = tmp_path / "pairs.toml"
    listed.write_text(f'[tiny]\nname = "Tiny"\ntarget = "{target.name}"\ndrafter = "{drafter.name}"\n')
    page = visit(f"{launch(SPECVIZ_PAIRS=str(listed)).url}/?pair=Tiny")
    button(page, "Start a live run").click()
    expect(page.get_by_text("live ready")).to_be_visible(timeout=LOADING_MS)
    decodes_live(page)
    expect(page.get_by_text("measured here")).to_be_visible()


@pytest.mark.slow
def test_the_embedded_pair_goes_on_from_the_recording(visit: Visit, launch: Launch, embedded_target: None) -> None:
    """Nobody asks for the pair: it loads behind the first page, and the reader is not moved by it."""
    page = visit(launch(SPECVIZ_PRELOAD="1", SPECVIZ_CACHE=str(store.cache_folder())).url)
    sentence = page.locator(".strip .sentence")
    expect(sentence).not_to_be_empty()
    said = sentence.inner_text()
    expect(page.get_by_text("live ready")).to_be_visible(timeout=LOADING_MS)
    expect(sentence).to_have_text(said)
    slider = page.get_by_role("slider", name="Moment of the run")
    slider.fill(slider.get_attribute("max") or "0")
    page.wait_for_timeout(500)  # a visitor's hand on its way from the scrubber to the button
    button(page, "Step").click()
    expect(page.get_by_text(re.compile("live from token"))).to_be_visible()
    decodes_live(page)
