"""The Gumbel page in a browser: races, cells, the address, a phone, and texts decoded here."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests import tiny_models
from tests.e2e.conftest import Server

Visit = Callable[..., Page]


def test_new_noise_races_in_place_and_is_in_the_address(server: Server, visit: Visit) -> None:
    page = visit(f"{server.url}/Gumbel")
    expect(page.locator("h1")).to_have_text("Gumbel")
    place = page.locator(".place")
    expect(place.locator(".flag")).to_have_count(2)
    place.evaluate("node => { node.kept = true; }")
    page.get_by_role("button", name="New noise").click()
    expect(page.locator(".st-key-card_race")).to_contain_text("simulated")
    expect(place.locator(".flag")).to_have_count(2)
    assert place.evaluate("node => node.kept")
    page.wait_for_url(re.compile("noise=1"))
    page.reload()
    expect(page.locator(".st-key-card_race")).to_contain_text("simulated")


def test_two_cells_compare_their_texts(server: Server, visit: Visit) -> None:
    page = visit(f"{server.url}/Gumbel")
    grid = page.locator(".grid")
    expect(grid.locator(".compared")).to_contain_text("The same 2")
    cell = grid.get_by_role("button", name=re.compile("^Sampling: small model, gamma 4:"))
    cell.focus()
    page.keyboard.press("Enter")
    expect(grid.locator(".compared")).to_contain_text("They part at the first token")
    expect(cell).to_have_attribute("aria-pressed", "true")
    expect(cell).to_be_focused()
    grid.get_by_role("button", name=re.compile("^Gumbel: n-gram: copies, gamma 8:")).click()
    expect(grid.locator(".cell.chosen")).to_have_count(2)
    expect(page.get_by_role("combobox", name="with")).to_have_value("Gumbel: n-gram: copies, gamma 8")
    assert "text_two=Gumbel" in page.url
    grid.get_by_text("as a table").click()
    expect(grid.get_by_role("cell", name="differs").first).to_be_visible()


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_scrolls_sideways(width: int, server: Server, visit: Visit) -> None:
    page = visit(f"{server.url}/Gumbel?detail=Formulas", viewport={"width": width, "height": 844})
    expect(page.locator(".st-key-card_match svg.main-svg").first).to_be_attached()
    assert page.locator("[data-testid=stMain]").evaluate("node => node.scrollWidth - node.clientWidth") <= 0
    box = page.locator(".grid .cell").last.bounding_box()
    assert box is not None
    assert box["x"] + box["width"] <= width


def test_texts_decoded_here_can_be_cancelled_and_stay(
    tmp_path: Path, launch: Callable[..., Server], visit: Visit
) -> None:
    target, drafter = tiny_models.save_tiny_pair(tmp_path / "pair")
    script = tmp_path / "decoded.py"
    script.write_text(
        "import runpy\n"
        "from specviz.models import catalogue\n"
        "from specviz.models.catalogue import local_pair\n"
        "from specviz.ui import experiment\n"
        f"catalogue.pairs = lambda: {{'tiny': local_pair({str(target)!r}, {str(drafter)!r})}}\n"
        "experiment.EMBEDDED = 'tiny'\n"
        f"runpy.run_path({str(Path(__file__).parents[2] / 'pages' / 'Gumbel.py')!r})\n"
    )
    page = visit(launch(script).url)
    page.get_by_role("button", name="Decode them all here").click()
    expect(page.get_by_text(re.compile(r"\d+ of 3,200 tokens"))).to_be_visible()
    page.wait_for_function(
        "() => { const told = document.body.innerText.match(/([\\d,]+) of 3,200 tokens/);"
        " return told && +told[1].replace(',', '') > 300; }"
    )
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_text("Cancelled. The texts that were through")).to_be_visible()
    card = page.locator(".st-key-card_grid")
    expect(card).to_contain_text("measured here")
    expect(card.get_by_role("button", name=re.compile("^Gumbel: small model, gamma 1:"))).to_be_visible()
    page.get_by_role("button", name="Back to the recorded grid").click()
    expect(card).to_contain_text("SmolLM2")
