"""The Decode page as a visitor meets it, without a browser."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from specviz import trace as traces
from specviz.figures.events import Timeline
from specviz.ui import loader as loader_module
from specviz.ui import recordings, words
from specviz.ui.loader import Status
from tests.decode_page import RECORDED, ROOT, Page
from tests.synthetic_traces import make_trace

pytestmark = pytest.mark.usefixtures("no_weights")


# --- a recorded run ---------------------------------------------------------------------------------------------------


def test_the_page_opens_on_a_recorded_run_at_its_first_rejection() -> None:
    page = Page()
    trace = make_trace()
    dead = next(r for r in trace.rounds if any(d.fate == "rejected" for d in r.drafts))
    assert page.label == f"round {dead.index + 1}, verdict {dead.kept + 1}"
    assert [title.value for title in page.test.title] == ["Decode"]
    assert page.badges[0] == "recorded · CPU · fp32"
    assert page.data("coin")["lines"][dead.kept]["standing"] == "rejected"
    assert page.data("place")["mode"] == "shared"


def test_a_recorded_run_needs_no_torch(recorded_folder: Path) -> None:
    script = f"""
import sys
from pathlib import Path
from streamlit.testing.v1 import AppTest
from specviz.ui import recordings
recordings.FOLDER = Path({str(recorded_folder)!r})
page = AppTest.from_file({str(ROOT / "app.py")!r}, default_timeout=60).run()
heavy = {{"torch", "transformers", "pandas", "numpy"}}
print(sorted(heavy & set(sys.modules)))
for key in ("step", "round", "back", "restart"):
    page.button(key=key).click().run()
    page.run()
assert not page.exception
print(sorted(heavy & set(sys.modules)))
"""
    result = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=120)
    # NumPy comes after the first paint, for the panel that deals.
    assert result.stdout.split("\n")[:2] == ["[]", "['numpy']"], result.stderr[-2000:]


def test_step_and_back_move_one_event() -> None:
    page = Page()
    start = page.data("strip")["moment"]
    assert page.press("step").data("strip")["moment"] == start + 1
    assert page.press("back").data("strip")["moment"] == start
    assert page.press("back").data("strip")["moment"] == start - 1


def test_back_at_the_beginning_stays_there() -> None:
    page = Page().press("restart")
    assert page.data("strip")["moment"] == 0
    assert page.press("back").data("strip")["moment"] == 0


def test_round_goes_to_the_next_closing_token() -> None:
    page = Page().press("restart")
    for number in range(1, 4):
        assert page.press("round").label.startswith(f"round {number}, ")
        assert page.data("coin")["closing"]["current"]


def test_the_tally_counts_the_rounds_that_are_over() -> None:
    page = Page().press("restart")
    assert page.data("tally")["measures"] == []
    page.press("round").press("round").press("round")
    trace = make_trace().cut(3)
    fractions = {m["name"]: m["fraction"] for m in page.data("tally")["measures"]}
    assert fractions["tokens per read"] == f"{len(trace.text_ids)}/3"
    page.press("step")
    assert {m["name"]: m["fraction"] for m in page.data("tally")["measures"]} == fractions


def test_the_future_is_hidden() -> None:
    page = Page().press("restart").press("step")
    assert page.label == "round 1, draft 2 of 4"
    assert [line["standing"] for line in page.data("coin")["lines"]] == ["waiting", "waiting"]
    assert page.data("coin")["closing"] is None
    assert page.data("place")["mode"] == "waiting"


def test_under_story_the_drafts_are_one_step_and_the_rare_controls_are_gone() -> None:
    page = Page(detail="Story").press("restart")
    assert page.label == "round 1, draft 4 of 4"
    assert page.press("step").label == "round 1, the read"
    assert "top_k" not in {box.key for box in page.test.number_input}
    assert len(page.data("tally")["measures"]) <= 1


def test_formulas_are_shown_at_their_detail_only() -> None:
    assert Page().data("coin")["formula"] is None
    assert "min(1, p/q)" in Page(detail="Formulas").data("coin")["formula"]


def test_choosing_a_token_pins_it_and_a_step_lets_go() -> None:
    page = Page().press("restart")
    for _ in range(3):
        page.press("round")
    page.test.session_state.decode.run = replaced(page, picked=(0, 0))
    page.run()
    assert page.data("strip")["pinned"]
    assert page.data("coin")["title"].endswith("round 1")
    page.press("step")
    assert not page.data("strip")["pinned"]


def replaced(page: Page, **changes: Any) -> Any:
    from dataclasses import replace

    return replace(page.test.session_state.decode.run, **changes)


@pytest.mark.parametrize(
    "picked", [None, "x", [0], [0, 99], [99, 0], [-1, 0], [0, -2], [0.5, 0], [0, "0"], {"round": 0}, [[0, 0]]]
)
def test_what_comes_back_from_the_browser_is_checked(picked: Any) -> None:
    from specviz.ui.session import _valid_pick

    page = Page()
    assert _valid_pick(page.test.session_state.decode.run, picked) is None


@pytest.mark.parametrize("rule", RECORDED.values())
def test_a_rule_asked_for_at_the_start_opens_the_run_that_shows_it(rule: str) -> None:
    page = Page(rule=rule)
    assert page.test.session_state.decode.run.settings["rule"] == rule
    assert not page.test.get("offer")
    assert "keep" not in {button.key for button in page.test.button}


def test_the_recorded_twin_says_how_many_reads_were_saved() -> None:
    page = Page(rule="greedy")
    for _ in range(4):
        page.press("round")
    trace = make_trace("greedy").cut(page.data("tally")["rounds"])
    said = "".join(text for text, _ in page.data("tally")["twin"])
    n = len(trace.text_ids)
    assert said == f"Same {n} tokens, {len(trace.rounds)} reads instead of {n}."


def test_without_a_recording_the_page_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(recordings, "FOLDER", tmp_path)
    page = Page()
    assert page.data("strip")["empty"][0][0] == words.STRIP["empty"]
    assert not page.has("coin")


# --- settings touched in a recorded run -------------------------------------------------------------------------------


def test_a_touched_setting_leaves_the_recording_and_offers_to_go_live() -> None:
    page = Page()
    before = page.label
    page.test.slider(key="temperature").set_value(0.7)
    page.run()
    assert page.label == before
    assert page.badges[0].startswith("recorded")
    assert "You changed: T = 0.7." in " ".join(text.value for text in page.test.text)
    assert page.test.button(key="go_live").label == "Continue live from here with T = 0.7"
    assert {"go_live", "start_live", "keep"} <= {button.key for button in page.test.button}


def test_keeping_the_recording_puts_the_settings_back() -> None:
    page = Page()
    page.test.slider(key="temperature").set_value(0.7)
    page.test.slider(key="gamma").set_value(9)
    page.run().press("keep")
    assert page.test.slider(key="temperature").value == 1.0
    assert page.test.slider(key="gamma").value == 4
    assert "keep" not in {button.key for button in page.test.button}


def test_another_rule_offers_its_recording() -> None:
    page = Page()
    page.test.pills(key="rule").set_value("gumbel_coupling")
    page.run().press("open_recording")
    assert page.test.session_state.decode.run.recording == "gumbel"
    assert page.data("coin")["chosen"]
    assert "keep" not in {button.key for button in page.test.button}


def test_greedy_shows_temperature_0_and_keeps_the_one_that_was_set() -> None:
    page = Page()
    page.test.slider(key="temperature").set_value(0.7)
    page.run()
    page.test.pills(key="rule").set_value("greedy")
    page.run()
    off = page.test.slider(key="temperature_off")
    assert (off.value, off.disabled) == (0.0, True)
    assert "temperature" not in {slider.key for slider in page.test.slider}
    assert "You changed: the rule Greedy." in " ".join(text.value for text in page.test.text)
    page.test.pills(key="rule").set_value("speculative_sampling")
    page.run()
    assert page.test.slider(key="temperature").value == 0.7


def test_what_story_hides_stays_in_force() -> None:
    page = Page()
    page.test.number_input(key="top_k").set_value(7)
    page.test.toggle(key="linked").set_value(False)
    page.run()
    page.test.slider(key="drafter_temperature").set_value(0.5)
    page.run()
    page.test.segmented_control(key="detail").set_value("Story")
    page.run().run()
    said = " ".join(text.value for text in page.test.text)
    assert "top-k 7" in said
    assert "drafter T = 0.5" in said
    page.test.segmented_control(key="detail").set_value("Numbers")
    page.run()
    assert page.test.number_input(key="top_k").value == 7
    assert page.test.slider(key="drafter_temperature").value == 0.5


def test_story_offers_the_common_rules_and_the_one_that_is_chosen() -> None:
    assert page_rules(Page(detail="Story")) == ["Sampling", "Greedy", "Gumbel"]
    assert page_rules(Page(detail="Story", rule="token_match")) == ["Sampling", "Greedy", "Gumbel", "Match"]
    assert len(page_rules(Page())) == 5


def page_rules(page: Page) -> list[str]:
    return list(page.test.pills(key="rule").options)


def test_an_own_text_that_is_too_long_is_cut_and_the_page_says_so() -> None:
    page = Page(prompt=words.OWN)
    page.test.text_area(key="own_text").set_value("dragons " * 400)
    page.run()
    assert words.OWN_CUT.format(length=3_199) in [caption.value for caption in page.test.caption]


def test_the_prompt_is_named_and_shown_as_it_begins() -> None:
    assert "chat: Tell me a story…" in Page().test.selectbox(key="prompt").options


# --- links ------------------------------------------------------------------------------------------------------------


def link(**parameters: str) -> Page:
    page = Page.__new__(Page)
    page.test = AppTest.from_file(str(ROOT / "app.py"), default_timeout=30)
    page.test.query_params.update(parameters)
    return page.run().run()


def address(page: Page) -> dict[str, str]:
    copied = page.data("copy_link")
    return {**copied["parameters"], copied["moment"]: page.data("strip")["address"]}


@pytest.mark.parametrize("rule", RECORDED.values())
def test_a_link_to_a_recorded_run_opens_it_at_its_moment(rule: str) -> None:
    page = Page(rule=rule, detail="Story").press("round").press("step")
    opened = link(**address(page))
    assert opened.test.session_state.decode.run.recording == page.test.session_state.decode.run.recording
    assert opened.label == page.label
    assert opened.data("strip")["moment"] == page.data("strip")["moment"]
    assert opened.message == ""
    assert "at" not in opened.test.query_params
    assert address(opened) == address(page)


def test_a_link_is_about_the_run_and_not_about_touched_controls() -> None:
    page = Page()
    before = address(page)
    page.test.slider(key="temperature").set_value(0.7)
    page.run()
    assert address(page) == before


def test_a_link_that_asks_for_nonsense_says_so_until_the_visitor_moves() -> None:
    page = link(gamma="999", at="99.9")
    assert "gamma 999" in page.message
    assert "the moment 99.9" in page.message
    assert page.test.slider(key="gamma").value == 4
    assert page.press("step").message == ""


def test_a_hostile_link_is_quoted_as_text() -> None:
    page = link(rule="![](http://192.0.2.1/x.png) **b** <script>")
    assert words.literal("![](http://192.0.2.1/x.png)".replace(" ", "␣")) in page.message


def test_a_link_to_a_live_run_without_models_shows_a_recording_and_says_so() -> None:
    page = link(gamma="6", at="3.1")
    assert page.message == words.LINK["absent"]
    assert page.test.session_state.decode.run.recording == "sampling"
    assert page.test.session_state.decode.goal is None
    assert "go_live" in {button.key for button in page.run().test.button}


def test_a_link_to_a_live_run_waits_for_the_models() -> None:
    loader_module.loader()._status["embedded"] = Status("loading", "Loading the target", 0.5)
    page = link(gamma="6", at="3.1")
    assert page.message == words.LINK["held"]
    assert page.test.session_state.decode.run.recording == "sampling"
    page.press("back")
    assert page.message == ""
    assert page.test.session_state.decode.bound == ""


# --- files ------------------------------------------------------------------------------------------------------------


def bring(page: Page, content: bytes, name: str = "run.jsonl") -> Page:
    page.test.file_uploader(key="opened").set_value((name, content, "application/jsonl")).run()
    return page.run()


def test_a_run_from_a_file_is_shown_with_its_settings_and_its_badge() -> None:
    trace = make_trace(gamma=2, seed=3, tokens=30)
    page = bring(Page(), traces.dump(trace).encode(), "<img src=x onerror=alert(1)>.jsonl")
    assert page.test.session_state.decode.run.trace == trace
    assert page.badges[0] == "from a file · CPU · fp32"
    assert page.test.slider(key="gamma").value == 2
    assert page.test.number_input(key="seed").value == 3
    assert page.test.slider(key="length").value == 30
    assert "keep" not in {button.key for button in page.test.button}
    assert page.data("copy_link")["reason"] == words.LINK["file"]


def test_a_bad_file_is_refused_with_its_line_and_the_run_stays() -> None:
    page = Page()
    before = page.test.session_state.decode.run
    lines = traces.dump(make_trace()).splitlines()
    bring(page, "\n".join([*lines[:3], lines[5]]).encode())
    assert page.test.session_state.decode.run == before
    assert "Line 4" in page.message
    bring(page, "\n".join(lines).encode())
    assert "Line 4" not in page.message


def stripped(*names: str, **header: Any) -> bytes:
    """A run of an engine that does not report these fields of rounds, drafts, rows, tokens and closing tokens."""

    def strip(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: strip(item) for key, item in value.items() if key not in names}
        return [strip(item) for item in value] if isinstance(value, list) else value

    head, *rounds = map(json.loads, traces.dump(make_trace(tokens=7)).splitlines())
    return "\n".join(json.dumps(record) for record in [head | header, *map(strip, rounds)]).encode()


FOREIGN = {
    "no rows": stripped("row"),
    "no p and q": stripped("row", "p", "q", "accept_prob", "coin", "passed", "law", "law_rest", "draw"),
    "no settings": stripped("settings", "passes", "seconds"),
    "no token's text": stripped("bytes", prompt_bytes=None),
    "no rest": stripped("rest", "tv", "expected_accept", "target_top2", "entropy_p", "entropy_q"),
    "empty rows": stripped("tokens", "rest", "tv", "expected_accept", "target_top2"),
    "another rule": stripped().replace(b'"speculative_sampling"', b'"typical_<b>"'),
    "another pair": stripped(pair="<script>alert(1)</script>"),
    "no prompt": stripped(prompt=None, prompt_bytes=None),
    "hostile": stripped(prompt="<b>**x**</b>\u202e", device="<img src=x>" * 9, dtype="![](x)"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_foreign_run_can_be_walked_from_end_to_end(name: str) -> None:
    """What it does not carry is greyed out; nothing fails."""
    page = bring(Page(detail="Formulas", rounds_told=True), FOREIGN[name])
    assert (page.message == words.FILES["unfit"]) == (name in ("no settings", "another rule"))
    assert page.badges[0].startswith("from a file")
    for event in Timeline(page.test.session_state.decode.run.trace).events:
        page.test.session_state.decode.run = replaced(page, event=event)
        page.run()
    shown = [e.value for kind in ("markdown", "html", "caption", "title") for e in page.run().test.get(kind)]
    assert not any("<script" in str(value) or "<img" in str(value) for value in shown)


def test_a_run_of_a_pair_that_is_not_on_offer_cannot_go_on_and_says_so() -> None:
    page = bring(Page(), FOREIGN["another pair"])
    assert "keep" not in {button.key for button in page.test.button}
    page.test.slider(key="gamma").set_value(2)
    page.run()
    assert page.test.button(key="go_live").label == words.OFFER["start"]
    end(page).press("step")
    assert "not on offer" in page.message
    assert page.test.session_state.decode.goal is None


def test_another_drafter_offers_its_recording(
    recorded_folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in RECORDED:
        (tmp_path / f"{name}.jsonl").write_bytes((recorded_folder / f"{name}.jsonl").read_bytes())
    written = traces.dump(make_trace()).replace('"drafter":"model","', '"drafter":"ngram","')
    (tmp_path / "ngram.jsonl").write_text(written.replace('"drafter":"model"}', '"drafter":"ngram"}'))
    monkeypatch.setattr(recordings, "FOLDER", tmp_path)
    page = Page()
    page.test.selectbox(key="drafter").set_value("ngram")
    page.run().press("open_recording")
    assert page.test.session_state.decode.run.recording == "ngram"
    assert "keep" not in {button.key for button in page.test.button}


# --- models that are not here -----------------------------------------------------------------------------------------


def end(page: Page) -> Page:
    page.test.session_state.decode.run = replaced(page, event=None)
    run = page.test.session_state.decode.run
    page.test.session_state.decode.run = replaced(page, event=Timeline(run.trace).events[-1])
    return page.run()


def test_without_weights_the_page_offers_to_fetch_them_and_fetches_nothing_by_itself() -> None:
    page = Page()
    assert "Fetch the embedded pair" in page.test.button(key="fetch").label
    assert "models not loaded" in page.badges


def test_a_step_at_the_end_of_a_recording_without_weights_says_so_and_changes_nothing() -> None:
    page = end(Page())
    before = page.test.session_state.decode.run
    page.press("step")
    assert page.test.session_state.decode.run == before
    assert page.message == words.MESSAGES["absent"]
    page.press("back")
    assert page.message == ""


def test_going_live_without_weights_keeps_the_recording() -> None:
    page = Page()
    before = page.test.session_state.decode.run
    page.test.slider(key="temperature").set_value(0.7)
    page.run().press("go_live")
    assert page.test.session_state.decode.run == before
    assert page.message == words.MESSAGES["absent"]
    assert "keep" in {button.key for button in page.test.button}


def test_while_the_models_load_the_recording_stays_and_the_step_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    loading = loader_module.loader()
    loading._status["embedded"] = Status("loading", "Loading the target", 0.5)
    page = Page()
    before = page.test.session_state.decode.run
    page.test.slider(key="gamma").set_value(2)
    page.run().press("go_live")
    assert page.test.session_state.decode.run == before
    assert page.message == words.MESSAGES["held"]
    assert page.test.session_state.decode.goal == "step"
    page.press("back")
    assert page.test.session_state.decode.goal is None
    assert "keep" in {button.key for button in page.test.button}


def test_a_press_while_a_live_run_is_awaited_does_not_call_it_off() -> None:
    loader_module.loader()._status["embedded"] = Status("loading", "Loading the target", 0.5)
    page = Page()
    page.test.slider(key="gamma").set_value(6)
    page.run().press("go_live")
    start = page.data("strip")["moment"]
    for key in ("step", "round"):
        page.press(key)
        assert page.data("strip")["moment"] == start
        assert page.test.session_state.decode.ahead is not None
        assert page.message == words.MESSAGES["held"]
    page.press("back")  # this turns to the recording again
    assert page.test.session_state.decode.ahead is None


def test_another_pair_is_offered_and_this_run_kept(live: Callable[..., Page]) -> None:
    page = live().press("round")
    written = text(page)
    page.test.selectbox(key="pair").set_value("qwen3-8b")
    page.run()
    assert text(page) == written
    page.press("keep")
    assert page.test.selectbox(key="pair").value == "embedded"
    assert text(page) == written


def test_a_failed_load_says_why_and_keeps_the_run() -> None:
    page = Page()
    loading = loader_module.loader()
    loading._status["embedded"] = Status("failed", "no connection to the package registry: check the network")
    end(page).press("step")
    assert "no connection" in page.message
    assert "check the network" in page.message
    assert page.badges[0].startswith("recorded")


# --- live -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def pair(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A pair of tables that is ready."""
    from tests.table_models import TablePair, random_table

    made = TablePair(random_table(1, 26), random_table(2, 26), vocab_size=26)
    loading = loader_module.loader()
    loading._pairs["embedded"] = made
    loading._status["embedded"] = Status("ready")
    return made


@pytest.fixture
def live(pair: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Page]:
    """A page without recordings: every run is live."""
    monkeypatch.setattr(recordings, "FOLDER", tmp_path)
    return Page


def text(page: Page) -> tuple[int, ...]:
    return page.test.session_state.decode.run.trace.text_ids


def test_a_live_step_runs_one_round_and_shows_its_first_event(live: Callable[..., Page]) -> None:
    page = live().press("step")
    assert len(page.rounds) == 1
    assert page.label == "round 1, draft 1 of 4"
    assert page.badges[0] == "measured here · CPU · fp32"
    page.press("step")
    assert len(page.rounds) == 1


def test_looking_back_and_forth_calls_no_model(live: Callable[..., Page], pair: Any) -> None:
    page = live().press("round").press("round")
    reads = [len(model.reads) for _, model in pair.made]
    page.press("back").press("restart").press("step").press("round")
    assert [len(model.reads) for _, model in pair.made] == reads


def test_the_page_writes_what_the_decoder_writes(live: Callable[..., Page], pair: Any) -> None:
    from specviz.decoding.decoder import Decoder
    from specviz.decoding.settings import Settings

    page = live(length=24)
    while page.test.session_state.decode.run.trace.finish is None:
        page.press("round")
    run = page.test.session_state.decode.run
    decoder = Decoder.start(pair, run.prompt, Settings.from_dict(run.settings), 24)
    while not decoder.finished:
        decoder.step()
    assert text(page) == decoder.trace.text_ids


def test_at_the_length_the_page_says_how_to_go_on(live: Callable[..., Page]) -> None:
    page = live(length=6)
    for _ in range(8):
        page.press("round")
    assert page.message == words.MESSAGES["length"].format(length=6)
    page.test.slider(key="length").set_value(12)
    page.run().press("round")
    assert page.message == ""
    assert len(text(page)) > 6


def test_a_setting_changed_midway_keeps_the_complete_rounds(live: Callable[..., Page]) -> None:
    page = live().press("round").press("round").press("round")
    before = page.test.session_state.decode.run.trace
    page.press("back")  # the third round is not complete at the cursor any more
    page.test.slider(key="gamma").set_value(2)
    page.run()
    run = page.test.session_state.decode.run
    assert run.trace.rounds == before.rounds[:2]
    page.press("round")
    after = page.test.session_state.decode.run.trace
    assert after.rounds[:2] == before.rounds[:2]
    assert len(after.rounds[2].drafts) == 2


def test_another_drafter_midway_keeps_the_complete_rounds(live: Callable[..., Page]) -> None:
    page = live().press("round").press("round")
    before = page.test.session_state.decode.run.trace
    page.test.selectbox(key="drafter").set_value("none")
    page.run().press("round")
    after = page.test.session_state.decode.run.trace
    assert after.rounds[:2] == before.rounds
    assert after.rounds[2].drafts == ()
    assert after.rounds[2].settings["drafter"] == "none"


def test_how_long_a_run_is_matched_is_asked_where_look_up_drafts_and_decodes_the_next_round(
    live: Callable[..., Page],
) -> None:
    page = live(drafter="ngram")
    page.test.number_input(key="ngram").set_value(1)
    page.run().press("round")
    assert page.test.session_state.decode.run.trace.rounds[0].settings["ngram"] == 1
    assert address(page)["ngram"] == "1"
    opened = link(**address(page))
    assert opened.test.number_input(key="ngram").value == 1
    page.test.selectbox(key="drafter").set_value("model")
    page.run()
    assert "ngram" not in {box.key for box in page.test.number_input}
    assert page.test.session_state.decode.run.settings["ngram"] == 3


@pytest.mark.parametrize("key", ["ngram", "top_k", "seed"])
@pytest.mark.parametrize("raw", ["2.5", "1e308", ""])
def test_a_number_that_a_link_cannot_have_stands_at_its_default(key: str, raw: str, live: Callable[..., Page]) -> None:
    page = link(**{"drafter": words.DRAFTERS["ngram"], key: raw})
    assert page.test.number_input(key=key).value == {"ngram": 3}.get(key, 0)
    assert (key.replace("_", " ") in page.message) == bool(raw)


def test_a_link_to_a_live_run_is_decoded_up_to_its_moment(live: Callable[..., Page]) -> None:
    page = live(gamma=3, seed=5, rule="gumbel_coupling").press("round").press("round").press("step").press("step")
    run, there = page.test.session_state.decode.run, address(page)
    assert there["at"] == "3.2"
    opened = link(**there)
    for _ in range(5):
        opened.run()  # a tick of the stage
    found = opened.test.session_state.decode
    assert found.run.event == run.event
    assert [r.emitted for r in found.run.trace.rounds] == [r.emitted for r in run.trace.rounds]
    assert (found.bound, found.goal, found.said) == ("", None, "")
    assert address(opened) == there


def test_a_link_beyond_the_end_of_a_live_run_says_so(live: Callable[..., Page]) -> None:
    page = link(length="4", at="40.1", gamma="2")
    for _ in range(8):
        page.run()
    assert "the moment 40.1" in page.test.session_state.decode.said
    assert page.test.session_state.decode.run.trace.finish == "length"


def test_a_run_that_was_changed_midway_is_shared_as_a_file(live: Callable[..., Page]) -> None:
    page = live().press("round")
    assert page.data("copy_link")["reason"] == ""
    page.test.slider(key="gamma").set_value(2)
    page.run().press("round")
    assert page.data("copy_link")["reason"] == words.LINK["midway"]


def test_a_file_of_another_vocabulary_is_refused_when_it_is_to_go_on(live: Callable[..., Page]) -> None:
    from dataclasses import replace

    header = replace(make_trace().header, prompt="abc", prompt_ids=(0, 1), prompt_bytes=("61", "7a"))
    page = bring(live(), traces.dump(traces.Trace(header)).encode()).press("step")
    assert "another vocabulary" in page.message
    assert text(page) == ()


def test_a_file_whose_ids_are_not_the_pairs_is_refused_when_it_is_to_go_on(live: Callable[..., Page]) -> None:
    page = end(bring(live(), traces.dump(make_trace()).encode()))
    before = page.test.session_state.decode.run
    page.press("step")
    assert page.test.session_state.decode.run == before
    assert "vocabulary" in page.message


def test_under_gumbel_coupling_the_text_survives_a_change_of_gamma(live: Callable[..., Page]) -> None:
    def run(gamma: int) -> tuple[int, ...]:
        page = live(rule="gumbel_coupling", length=20).press("round").press("round")
        page.test.slider(key="gamma").set_value(gamma)
        page.run()
        while page.test.session_state.decode.run.trace.finish is None:
            page.press("round")
        return text(page)

    assert run(1) == run(7) == run(0)


def test_the_twin_is_made_on_demand_and_agrees(live: Callable[..., Page]) -> None:
    page = live(rule="gumbel_coupling").press("round").press("round").press("twin")
    n = len(text(page))
    said = "".join(part for part, _ in page.data("tally")["twin"])
    assert said == f"Same {n} tokens, 2 reads instead of {n}."
    assert "twin" not in {button.key for button in page.test.button}
    page.press("round")
    assert page.data("tally")["twin"] == []
    assert "twin" in {button.key for button in page.test.button}


def test_an_own_text_starts_a_run_of_its_own(live: Callable[..., Page]) -> None:
    page = live().press("round")
    written = text(page)
    page.test.selectbox(key="prompt").set_value(words.OWN)
    page.run()
    assert text(page) == written  # nothing to turn to yet
    page.test.text_area(key="own_text").set_value("dragons")
    page.run()
    assert text(page) == ()
    assert page.press("step").data("strip")["prompt"] == "dragons"


@pytest.mark.parametrize(
    ("error", "words_in_message"),
    [
        (MemoryError(), "ran out of memory"),
        (RuntimeError("a kernel failed"), "RuntimeError"),
        (ValueError("the prompt has 9000 tokens and the target reads at most 8192"), "9000 tokens"),
    ],
)
def test_a_step_that_fails_keeps_the_run_and_says_what_to_do(
    live: Callable[..., Page], pair: Any, monkeypatch: pytest.MonkeyPatch, error: Exception, words_in_message: str
) -> None:
    from specviz.decoding.decoder import Decoder

    page = live().press("round")
    before = page.test.session_state.decode.run
    with monkeypatch.context() as broken:

        def fail(self: Decoder) -> None:
            raise error

        broken.setattr(Decoder, "step", fail)
        page.press("round")
    assert page.test.session_state.decode.run.trace is before.trace
    assert words_in_message in page.test.session_state.decode.message
    page.press("round")
    assert len(page.rounds) == 2
    assert page.message == ""


def test_playing_stops_where_a_step_fails(live: Callable[..., Page], monkeypatch: pytest.MonkeyPatch) -> None:
    from specviz.decoding.decoder import Decoder

    page = live().press("round")

    def fail(self: Decoder) -> None:
        raise RuntimeError("**no**")

    monkeypatch.setattr(Decoder, "step", fail)
    page.press("play")
    decode = page.test.session_state.decode
    assert not decode.playing
    assert "RuntimeError" in decode.message


def test_a_request_that_overtakes_a_running_one_is_not_lost(
    live: Callable[..., Page], monkeypatch: pytest.MonkeyPatch
) -> None:
    from specviz.decoding.decoder import Decoder

    page = live().press("round")
    whole = Decoder.step

    def overtaken(self: Decoder) -> Any:
        monkeypatch.setattr(Decoder, "step", whole)
        # What the callback of a second press does, in the script that follows, while this one is in its step.
        decode = page.test.session_state.decode
        decode.goal, decode.request = "round", decode.request + 1
        return whole(self)

    monkeypatch.setattr(Decoder, "step", overtaken)
    page.press("round")
    page.test.run()
    assert len(page.rounds) == 3
    assert page.test.session_state.decode.goal is None


def test_a_reason_is_quoted_as_it_stands() -> None:
    assert words.literal("**b** $x$ [l](http://x) `c` <i>") == (r"\*\*b\*\* \$x\$ \[l\]\(http\://x\) \`c\` \<i\>")


def test_hostile_prompts_and_tokens_reach_the_page_as_plain_text(live: Callable[..., Page], pair: Any) -> None:
    pair.tokenizer.bytes = lambda token_id: b"<script>alert(1)</script>![](x)$y$"  # type: ignore[method-assign]
    page = live()
    page.test.selectbox(key="prompt").set_value(words.OWN)
    page.run()
    page.test.text_area(key="own_text").set_value("<iframe srcdoc='<script>alert(1)</script>'>")
    page.run().press("round")
    assert "<iframe" in page.data("strip")["prompt"]
    assert "<script>" in page.rounds[0]["drafts"][0][0]
    shown = [element.value for kind in ("markdown", "html", "caption", "title") for element in page.test.get(kind)]
    assert not any("script" in str(value) for value in shown)


def test_going_on_live_keeps_the_recorded_rounds_before_the_cursor(pair: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The recorded ids are the table pair's too, so that it can go on from them."""
    page = Page()
    trace = page.test.session_state.decode.run.trace
    small = traces.Trace(
        traces.Header(
            pair="embedded", prompt="abc", prompt_ids=(0, 1, 2), max_new_tokens=8, device="cpu", dtype="float32"
        )
    )
    from specviz.decoding.decoder import Decoder
    from specviz.decoding.settings import Settings

    decoder = Decoder(pair, small, Settings.from_dict(trace.rounds[0].settings or {}))
    while not decoder.finished:
        decoder.step()
    recorded = recordings.Recording("sampling", decoder.trace)
    monkeypatch.setattr(recordings, "recording", lambda name: recorded if name == "sampling" else None)
    page = end(Page())
    before = page.test.session_state.decode.run.trace
    page.press("step")
    run = page.test.session_state.decode.run
    assert run.recording is None
    assert run.live_round == len(before.rounds) == page.data("strip")["live_round"]
    assert [r.emitted for r in run.trace.rounds[:-1]] == [r.emitted for r in before.rounds]
    assert page.test.slider(key="length").value == 8 + 64
    assert page.badges[0] == "recorded until token 8"
    assert page.badges[1].startswith("measured here from then on")
    assert page.message == words.OFFER["live"]
    assert page.press("step").message == ""
