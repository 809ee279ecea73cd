"""The price on the Decode page: its controls, its states, and what of it is in the address."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from specviz import trace as traces
from specviz.figures import lanes
from specviz.figures.events import Timeline
from specviz.trace import Header, Trace
from specviz.ui import cards, controls, sharing, words
from specviz.ui.controls import Refused
from tests.decode_page import ROOT, Page
from tests.synthetic_traces import make_trace

pytestmark = pytest.mark.usefixtures("no_weights")
READS, DRAFTER, TARGET = 0, 1, 2


def link(**parameters: str) -> Page:
    page = Page.__new__(Page)
    page.test = AppTest.from_file(str(ROOT / "app.py"), default_timeout=30)
    page.test.query_params.update(parameters)
    return page.run().run()


def opened(trace: Trace) -> Page:
    page = Page()
    content = traces.dump(trace).encode()
    page.test.file_uploader(key="opened").set_value(("run.jsonl", content, "application/jsonl")).run()
    return end(page.run())


def end(page: Page) -> Page:
    run = page.test.session_state.decode.run
    page.test.session_state.decode.run = replace(run, event=Timeline(run.trace).last())
    return page.run()


def said(page: Page) -> str:
    data = page.data("lanes")
    return " ".join("".join(text for text, _ in line) for line in (*data["lines"], data["verdict"], data["measured"]))


def chosen(page: Page) -> tuple[Any, ...]:
    return tuple(page.test.selectbox(key=key).value for key in controls.PRICE)


# --- the panel --------------------------------------------------------------------------------------------------------


def test_it_stands_between_why_exact_and_the_tally() -> None:
    names = [e.proto.component_name.removeprefix("specviz_") for e in Page().test.get("bidi_component")]
    assert names.index("exact") < names.index("lanes") < names.index("tally")


def test_it_follows_the_moment() -> None:
    page = Page().press("restart")
    assert page.data("lanes")["said"] == lanes.UNFINISHED
    assert page.data("lanes")["rounds"][0][READS] == 1
    page.press("step")
    assert page.data("lanes")["rounds"][0][READS] == 2
    page.press("round").press("round")
    assert page.data("lanes")["complete"] == 2
    assert len(page.data("lanes")["lines"]) == 3


def test_another_accelerator_prices_the_whole_history_anew_and_moves_nothing() -> None:
    page = end(Page())
    before, run = page.data("lanes"), page.test.session_state.decode.run
    assert "modelled · H100 SXM · Llama-3.1-8B + Llama-3.2-1B" in before["badge"]
    assert "weights as stored" in before["badge"]
    page.test.selectbox(key="accelerator").set_value("h100-pcie").run()
    page.run()
    after = page.data("lanes")
    assert "H100 PCIe" in after["badge"]
    for one, other in zip(before["rounds"], after["rounds"], strict=True):
        assert other[TARGET] == pytest.approx(one[TARGET] * 3.35 / 2.0, rel=1e-4)
    assert page.test.session_state.decode.run is run


def test_another_pair_and_the_other_count_are_said_everywhere() -> None:
    page = end(Page())
    assert "acceptance of SmolLM2-135M-Instruct + two-layer drafter, bytes of Llama-3.1-8B + Llama-3.2-1B" in said(page)
    page.test.selectbox(key="count").set_value("read").run()
    page.run()
    assert page.data("lanes")["badge"].endswith("weights as read")
    assert "× 0.165)" in said(page)
    page.test.selectbox(key="priced").set_value("smollm2-135m+embedded-drafter").run()
    page.run()
    assert "SmolLM2-135M + 2-layer drafter" in page.data("lanes")["badge"]
    assert "the pair that ran" in said(page)
    assert "acceptance of" not in said(page)


def test_the_measured_line_is_the_tallys() -> None:
    page = end(Page())
    assert page.data("lanes")["measured"] == page.data("tally")["pay"] != []
    assert "easured" in said(page)


def test_story_has_no_controls_and_keeps_what_they_said() -> None:
    page = end(Page(accelerator="b200", detail="Story"))
    assert not any(box.key in controls.PRICE for box in page.test.selectbox)
    data = page.data("lanes")
    assert data["badge"] == "modelled · B200"
    assert (data["board"], data["more"]) == ([], [])
    assert len(data["lines"]) == 3
    page.test.segmented_control(key="detail").set_value("Numbers").run()
    page.run()
    assert chosen(page)[0] == "b200"


def test_it_is_a_panel_of_the_projectors_layout() -> None:
    page = Page(large=True)
    page.test.segmented_control(key="panel").set_value("pays").run()
    page.run()
    assert page.has("lanes")
    assert not page.has("tally")


def test_the_question_leads_there() -> None:
    page = Page().press("link_pays")
    assert page.data("jump")["part"] == "card_pays"
    assert page.data("lanes")["complete"] == len(make_trace().rounds)


# --- the address ------------------------------------------------------------------------------------------------------


def test_what_is_priced_is_part_of_the_link() -> None:
    page = Page()
    page.test.selectbox(key="accelerator").set_value("rtx-4090").run()
    page.test.selectbox(key="priced").set_value("qwen3-8b+qwen3-0.6b").run()
    page.test.selectbox(key="count").set_value("read").run()
    page.run()
    there = page.data("copy_link")["parameters"]
    assert there["accelerator"] == "RTX 4090"
    assert there["priced"] == "Qwen3-8B + Qwen3-0.6B"
    assert there["count"] == "as read"
    again = link(**there)
    assert again.message == ""
    assert chosen(again) == ("rtx-4090", "qwen3-8b+qwen3-0.6b", "read")
    assert again.data("lanes") == page.data("lanes")


def test_a_run_priced_as_the_page_opens_leaves_the_address_alone() -> None:
    assert not set(controls.PRICE) & set(Page().data("copy_link")["parameters"])


@pytest.mark.parametrize("key", controls.PRICE)
@pytest.mark.parametrize("raw", ["abc", "<b>", "h100-sxm2", "nan", "H100", "…" * 200])
def test_a_malformed_price_falls_back_and_says_so(key: str, raw: str) -> None:
    assert isinstance(controls.taken(key, raw, None), Refused)
    sentence = sharing.complaints({key: raw}, None)
    assert sentence.count("The link asked for") == 1
    assert sentence.endswith("is used.")


def test_a_link_with_a_malformed_price_opens_at_the_usual_one() -> None:
    page = link(accelerator="abacus", priced="..", gamma="4")
    assert chosen(page) == tuple(controls.PRICE.values())
    assert "accelerator abacus and priced" in page.message
    assert page.data("lanes")["badge"].startswith("modelled · H100 SXM · Llama-3.1-8B")


def test_the_defaults_are_the_first_of_the_lists_and_the_classic_count() -> None:
    names = controls.choices(None)
    for key, default in controls.PRICE.items():
        assert next(iter(names[key])) == default


# --- states -----------------------------------------------------------------------------------------------------------


def test_a_file_that_names_no_reads_is_told_so() -> None:
    trace = make_trace(tokens=20)
    bare = replace(trace, rounds=tuple(replace(round_, passes=()) for round_ in trace.rounds))
    data = opened(bare).data("lanes")
    assert (data["said"], data["rounds"]) == (lanes.UNREAD, [])


def test_a_file_of_an_unknown_pair_is_named_as_text() -> None:
    trace = make_trace(tokens=20)
    page = opened(replace(trace, header=replace(trace.header, pair="<b>pair</b>", drafter="![x](y)")))
    assert "acceptance of <b>pair</b> + ![x](y)" in said(page)


def test_a_file_without_drafts_is_plain_decoding() -> None:
    page = opened(make_trace(gamma=0, tokens=12))
    assert said(page) == f"{''.join(t for t, _ in page.data('lanes')['lines'][0])}  {words.LANES['no_drafts']}"
    assert "No drafts: plain decoding." in said(page)


def test_a_file_without_rounds_shows_no_price() -> None:
    page = Page()
    content = traces.dump(Trace(Header(pair="embedded", prompt="x", prompt_ids=(1,)))).encode()
    page.test.file_uploader(key="opened").set_value(("run.jsonl", content, "application/jsonl")).run()
    assert not page.run().has("lanes")


def test_every_recorded_rule_is_priced() -> None:
    for rule in ("speculative_sampling", "greedy", "gumbel_coupling"):
        assert len(end(Page(rule=rule)).data("lanes")["lines"]) == 3


# --- another gamma, and the last card ---------------------------------------------------------------------------------


def test_a_gamma_that_is_set_is_priced_before_it_runs() -> None:
    page = end(Page())
    assert page.data("lanes")["asked"] == []
    page.test.slider(key="gamma").set_value(16).run()
    page.run()
    asked = "".join(text for text, _ in page.data("lanes")["asked"])
    assert asked.startswith("You set gamma 16: a round would cost 3.46 reads")


def test_the_last_card_ends_at_a_gamma_that_loses() -> None:
    page = Page().press("link_cards")
    page.test.session_state["tour"].card = cards.CARDS.index("price")
    end(page)
    assert not page.data("card")["reached"]  # the run may lose as it is: nobody has looked for it yet
    page.test.slider(key="gamma").set_value(16).run()
    page.run()
    assert "it loses" in json.dumps(page.data("lanes")["asked"], ensure_ascii=False)
    assert page.data("card")["reached"]


def test_a_gamma_that_pays_does_not_end_the_last_card() -> None:
    page = Page(priced="llama-3.1-70b+llama-3.2-1b").press("link_cards")
    page.test.session_state["tour"].card = cards.CARDS.index("price")
    end(page)
    page.test.slider(key="gamma").set_value(3).run()
    page.run()
    assert "it pays" in json.dumps(page.data("lanes")["asked"], ensure_ascii=False)
    assert not page.data("card")["reached"]
