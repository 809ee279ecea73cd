"""The place panel in a browser: it fits, it hides what is not asked for, and the winners of a race can be seen."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from specviz.figures.events import Timeline
from specviz.figures.text import Texts
from specviz.trace import Round
from specviz.ui import recordings
from tests.e2e.conftest import Server, serve

PAGE = Path(__file__).with_name("place_page.py")
Visit = Callable[..., Page]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A page with the panel alone."""
    with serve(tmp_path_factory.mktemp("place"), PAGE) as running:
        yield running


def rejection(run: str) -> tuple[Round, int, Texts]:
    """The first round that replaces a draft, the moment of its closing token, and the texts of its run."""
    found = recordings.recording(run)
    assert found is not None
    timeline = Timeline(found.trace)
    first = timeline.first_rejection()
    assert first is not None
    end = timeline.next_closing(timeline.index(first))
    assert end is not None
    return found.trace.rounds[first.round], end, Texts.of(found.trace)


@pytest.mark.parametrize("run", recordings.NAMES)
def test_every_rule_fits_a_phone(visit: Visit, alone: Server, run: str) -> None:
    _, moment, _ = rejection(run)
    page = visit(f"{alone.url}/?run={run}&moment={moment}&detail=Formulas", viewport={"width": 390, "height": 844})
    expect(page.locator(".place .row:not(.heads)").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    panel = page.locator(".place").bounding_box()
    assert panel is not None
    for number in page.locator(".place .numbers > span").all():
        box = number.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= panel["x"] + panel["width"] + 1


def test_the_winners_of_a_race_carry_flag_and_word(visit: Visit, alone: Server) -> None:
    round_, moment, texts = rejection("gumbel")
    page = visit(f"{alone.url}/?run=gumbel&moment={moment}")
    gone = round_.drafts[round_.kept]
    assert gone.target_id is not None
    flags = page.locator(".place .flag")
    expect(flags).to_have_count(2)
    for number, (model, token_id) in enumerate({"drafter": gone.id, "target": gone.target_id}.items()):
        row = page.locator(".place .row", has=page.locator(f".lane.first .area.{model}"))
        expect(row).to_have_count(1)
        expect(row.locator(".token")).to_contain_text(texts(token_id))
        expect(row.locator(".flag")).to_have_text("⚑ first home")
        expect(flags.nth(number)).to_be_visible()
    expect(page.locator(".place .others .below")).to_contain_text("best: ")


def test_story_has_numbers_at_the_tokens_it_tells_of_only(visit: Visit, alone: Server) -> None:
    round_, moment, texts = rejection("sampling")
    told = {texts(round_.drafts[round_.kept].id), texts(round_.emitted[-1])}
    page = visit(f"{alone.url}/?run=sampling&moment={moment}&detail=Story")
    rows = page.locator(".place .row:not(.heads)", has=page.locator(".numbers > span"))
    expect(rows).to_have_count(len(told))
    expect(page.locator(".place .together")).to_contain_text(re.compile(r"\d+ in 100"))
    expect(page.locator(".place .together")).not_to_contain_text("only the target")
    expect(page.locator(".place .reach")).to_be_hidden()
    expect(page.locator(".place .formula")).to_be_hidden()


def test_p_and_q_are_named_in_legend_and_columns(visit: Visit, alone: Server) -> None:
    _, moment, _ = rejection("sampling")
    page = visit(f"{alone.url}/?run=sampling&moment={moment}")
    expect(page.locator(".place .legend")).to_contain_text("p, the target’s")
    expect(page.locator(".place .legend")).to_contain_text("q, the drafter’s")
    expect(page.locator(".place .heads .numbers > span")).to_have_text(["p target", "q drafter"])
    expect(page.locator(".place .reach")).to_contain_text("8,192 ids the drafter can say")


def test_hostile_tokens_are_text(visit: Visit, alone: Server) -> None:
    hostile = "<img src=x onerror=alert(1)>"
    for run in recordings.NAMES:
        page = visit(f"{alone.url}/?run={run}&moment=0&hostile={hostile}")
        expect(page.locator(".place .token", has_text="<img").first).to_be_visible()
        expect(page.locator(".place img")).to_have_count(0)
