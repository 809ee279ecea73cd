"""The three questions under the lead, the five cards, and the layout for a projector."""

from __future__ import annotations

from typing import Any

import pytest

from specviz.figures.events import Timeline
from specviz.ui import cards, words
from tests.decode_page import Page
from tests.synthetic_traces import make_trace

pytestmark = pytest.mark.usefixtures("no_weights")


def text(spans: Any) -> str:
    return "".join(part for part, _ in spans)


def card(page: Page) -> Any:
    return page.data("card")


def stepped(page: Page, until: str) -> Page:
    """Press Step until the label of the moment contains ``until``."""
    for _ in range(40):
        if until in page.label:
            return page
        page.press("step")
    raise AssertionError(f"{until} never came; the last moment was {page.label}")


def test_each_question_leads_to_the_moment_and_the_panel_that_answer_it() -> None:
    page, timeline = Page(), Timeline(make_trace())
    answers = {
        "died": (timeline.first_rejection(), "card_coin"),
        "exact": (timeline.first_correction(), "card_exact"),
        "pays": (timeline.last(), "card_pays"),
    }
    seen = set()
    for name, (event, panel) in answers.items():
        assert event is not None
        page.press(f"link_{name}")
        assert page.data("strip")["moment"] == timeline.index(event)
        jump = page.data("jump")
        assert jump["part"] == panel
        seen.add(jump["request"])
    assert len(seen) == 3  # each press is a request of its own


def test_the_cards_are_driven_by_step_and_end_at_their_states() -> None:
    page = Page()
    assert not page.has("card")
    page.press("link_cards")
    dead = Timeline(make_trace()).first_rejection()
    assert dead is not None
    assert page.label.startswith(f"round {dead.round + 1}, draft 1")
    assert card(page)["title"] == words.CARDS["guess"]["title"]
    assert not card(page)["reached"]

    stepped(page, "draft 4 of 4")
    assert card(page)["reached"]
    page.press("step")  # the read: the second card comes and has ended already
    assert card(page)["title"].startswith("One read, 5 answers")
    assert card(page)["reached"]

    page.press("step")
    assert card(page)["title"] == words.CARDS["coin"]["title"]
    stepped(page, f"verdict {dead.place + 1 if dead.place is not None else 0}")
    assert not card(page)["reached"]
    tour: cards.Tour = page.test.session_state["tour"]
    tour.saved = True  # what the coin's own script reports when the pin is let go inside the green
    page.run()
    assert card(page)["reached"]

    page.press("step")
    assert card(page)["title"] == words.CARDS["refill"]["title"]
    tour.dealt = True
    page.run()
    assert card(page)["reached"]
    page.press("step")
    assert card(page)["title"] == words.CARDS["price"]["title"]
    assert not card(page)["next"]


def test_a_card_names_the_draft_that_goes_in_its_round() -> None:
    page = Page().press("link_cards")
    dead = Timeline(make_trace()).first_rejection()
    assert dead is not None
    page.test.session_state["tour"].card = cards.CARDS.index("coin")
    page.run()
    gone = next(draft for draft in make_trace().rounds[dead.round].drafts if draft.fate == "rejected")
    assert gone.row is not None
    token = gone.row.token(gone.id)
    assert token is not None
    assert token.bytes is not None
    assert bytes.fromhex(token.bytes).decode().strip() in text(card(page)["task"])


def test_the_last_card_ends_only_where_the_run_was_slower_than_the_target_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    page = Page().press("link_cards")
    page.test.session_state["tour"].card = cards.CARDS.index("price")
    for slower in (False, True):
        monkeypatch.setattr("specviz.ui.stage.slower", lambda *_, answer=slower: answer)
        page.press("round")
        assert card(page)["reached"] is slower


def test_large_shows_the_strip_and_one_panel_and_no_more() -> None:
    page = Page(large=True)
    assert page.has("strip")
    assert page.has("coin")
    assert not any(page.has(panel) for panel in ("place", "exact", "lanes", "tally", "rounds"))
    page.test.segmented_control(key="panel").set_value("exact").run()
    page.run()
    assert page.has("exact")
    assert not page.has("coin")


def test_the_speed_of_play_goes_round() -> None:
    page, seen = Page(), []
    for _ in words.SPEEDS:
        seen.append(page.test.button(key="speed_button").label)
        page.press("speed_button")
    assert seen[0] == words.SPEEDS[1.0]
    assert sorted(seen) == sorted(words.SPEEDS.values())
    assert page.test.button(key="speed_button").label == seen[0]
