"""Places of the current run: every token once, rows at once where they ship, a reason where none can be had."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from specviz.figures.text import Texts, token
from specviz.trace import Header, Trace
from specviz.ui import loader as loader_module
from specviz.ui import positions, recordings, session
from specviz.ui.loader import Status
from specviz.ui.positions import Laws
from specviz.ui.session import Run
from tests.decode_page import ROOT, Page
from tests.decoding_runs import decode
from tests.synthetic_traces import make_trace
from tests.table_models import TablePair, TableSpec, random_table

pytestmark = pytest.mark.usefixtures("no_weights")

SCRIPT = """
import streamlit as st
from specviz.ui import positions
st.session_state.answer = positions.take(st.session_state.run, st.session_state.position)
"""
SHIPPED = (47, 50, 77, 80, 120, 133)


class Visitor:
    """Takes places one after another, as a page does."""

    def __init__(self, run: Run) -> None:
        self.test = AppTest.from_string(SCRIPT, default_timeout=30)
        self.test.session_state.run = run

    def take(self, position: int) -> Laws | str:
        self.test.session_state.position = position
        self.test.run()
        assert not self.test.exception
        answer: Laws | str = self.test.session_state.answer
        return answer


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Run:
    """The recording that ships, on a machine without weights."""
    monkeypatch.setattr(recordings, "FOLDER", ROOT / "assets" / "traces")
    opening = recordings.first()
    assert opening is not None
    return session.recorded(opening)


TABLES = TablePair(random_table(1, 26), random_table(2, 26), 26, spec=TableSpec("embedded"))
TABLES.spec.has_drafter_model = True  # type: ignore[attr-defined]


def run_of(trace: Trace, **changes: Any) -> Run:
    run = Run("run", trace, "embedded", "abc", trace.rounds[0].said if trace.rounds else {}, 24, live_round=0)
    return replace(run, **changes)


@pytest.fixture(scope="module")
def live() -> Run:
    return run_of(decode(TABLES, 24, gamma=3, seed=2))


@pytest.fixture
def ready() -> TablePair:
    """The pair is loaded."""
    loading = loader_module.loader()
    loading._pairs["embedded"], loading._status["embedded"] = TABLES, Status("ready")  # type: ignore[assignment]
    TABLES.made.clear()
    return TABLES


# --- which places -----------------------------------------------------------------------------------------------------


def test_every_token_of_the_text_has_one_place_in_order(recorded: Run) -> None:
    trace = recorded.trace
    found = positions.choices(recorded)
    start = len(trace.header.prompt_ids)
    assert [one.position for one in found] == list(range(start, start + len(trace.text_ids)))
    assert len({one.label for one in found}) == len(found)
    assert all(one.label.startswith(f"{number} · ") for number, one in enumerate(found, start=1))
    texts = Texts.of(trace)
    assert all(texts(token_id) in one.told for one, token_id in zip(found, trace.text_ids, strict=True))


def test_a_place_is_named_by_what_stands_before_it_and_by_its_fate(recorded: Run) -> None:
    found = {one.position: one for one in positions.choices(recorded)}
    first, dead = recorded.trace.rounds[0].position, next(r for r in recorded.trace.rounds if r.kept < len(r.drafts))
    assert found[first].label == "1 · the first token · kept"
    there = found[dead.position + dead.kept]
    assert there.label == "8 · after “… village of Luna, there” · rejected"
    assert there.told == "The draft ␣were was rejected here, and ␣lived took its place."
    assert found[47].label.endswith("· bonus")


def test_the_places_that_ship_are_instant_and_no_others(recorded: Run) -> None:
    assert tuple(one.position for one in positions.choices(recorded) if one.instant) == SHIPPED
    elsewhere = replace(recorded.trace, header=replace(recorded.trace.header, pair="another"))
    assert not any(one.instant for one in positions.choices(replace(recorded, trace=elsewhere)))


@pytest.mark.parametrize("settings", [{"gamma": 0}, {"drafter": "ngram"}, {"rule": "block_verification"}])
def test_fates_are_told_under_every_kind_of_run(settings: dict[str, Any]) -> None:
    trace = decode(TABLES, 24, "abcabcab", **settings)
    found = positions.choices(run_of(trace))
    kinds = [one.label.rpartition(" · ")[2] for one in found]
    wanted = [
        "kept" if place < r.kept else "plain" if not r.drafts else "bonus" if r.kept == len(r.drafts) else "rejected"
        for r in trace.rounds
        for place in range(len(r.emitted))
    ]
    assert kinds == wanted


def test_a_run_without_text_has_no_places() -> None:
    empty = run_of(Trace(Header(pair="embedded", prompt="abc")))
    assert positions.choices(empty) == ()
    assert "no text yet" in str(Visitor(empty).take(3))


def test_hostile_tokens_are_named_as_text(recorded: Run) -> None:
    header = replace(recorded.trace.header, prompt_ids=(), prompt_bytes=())
    round_ = replace(recorded.trace.rounds[0], position=0)
    evil = replace(round_.drafts[0].row.tokens[0], bytes="3c696d673e e280ae".replace(" ", ""))  # type: ignore[union-attr]
    row = replace(round_.drafts[0].row, tokens=(evil,), rest=None)  # type: ignore[type-var]
    drafts = (replace(round_.drafts[0], id=evil.id, row=row), *round_.drafts[1:])
    round_ = replace(round_, drafts=drafts, emitted=(evil.id, *round_.emitted[1:]))
    found = positions.choices(replace(recorded, trace=Trace(header, (round_,))))
    assert found[0].position == 1, "before the first token no model can be asked"
    assert "<img>⟨U+202E⟩" in found[0].label


def test_a_long_run_lists_its_places_fast_enough_to_be_done_at_every_change() -> None:
    run, spent = run_of(make_trace(tokens=512)), []
    for _ in range(3):
        started = time.process_time()
        assert len(positions.choices(run)) == 512
        spent.append(time.process_time() - started)
    assert min(spent) < 0.1


# --- rows that ship ---------------------------------------------------------------------------------------------------


def test_shipped_rows_are_there_at_once_without_any_model(recorded: Run) -> None:
    for position in SHIPPED:
        laws = Visitor(recorded).take(position)
        assert isinstance(laws, Laws)
        assert laws.target_logits.shape == (49_152,)
        assert laws.drafter_logits is not None
        assert int(np.isfinite(laws.drafter_logits).sum()) == 8_192
        assert (laws.badge, laws.seed, laws.settings["ngram"]) == ("recorded", 39, 3)
        assert laws.texts(int(laws.target_logits.argmax()))[0] != "#"
        assert laws.texts(10**6) == "#1000000"


def test_where_the_target_drafts_for_itself_both_rows_are_its_own(recorded: Run) -> None:
    rounds = tuple(replace(one, settings={**one.said, "drafter": "target"}) for one in recorded.trace.rounds)
    laws = Visitor(replace(recorded, trace=replace(recorded.trace, rounds=rounds))).take(SHIPPED[0])
    assert isinstance(laws, Laws)
    assert laws.badge == "recorded"
    assert laws.drafter_logits is laws.target_logits


def test_no_page_needs_torch_for_them() -> None:
    script = """
import sys
from specviz.ui import positions
run = positions.current_run()
assert any(one.instant for one in positions.choices(run))
assert positions.take(run, 50).badge == "recorded"
print(sorted({"torch", "transformers", "pandas"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.stdout == "[]\n", done.stderr[-2000:]


def test_rows_that_cannot_be_read_are_none_and_nothing_breaks(
    recorded: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sampling.rows.npz").write_bytes(b"no rows")
    monkeypatch.setattr(recordings, "FOLDER", tmp_path)
    assert not any(one.instant for one in positions.choices(recorded))
    assert "not on this machine" in str(Visitor(recorded).take(50))


# --- rows that the pair reads -----------------------------------------------------------------------------------------


def test_any_other_place_is_read_by_the_pair_whole(live: Run, ready: TablePair) -> None:
    ids = [*live.trace.header.prompt_ids, *live.trace.text_ids]
    for position in (3, 9, len(ids) - 1):
        laws = Visitor(live).take(position)
        assert isinstance(laws, Laws)
        assert laws.target_logits.tolist() == pytest.approx(list(ready.target_logits(ids[:position])), rel=1e-6)
        assert ready.drafter_logits is not None
        assert laws.drafter_logits is not None
        assert laws.drafter_logits.tolist() == pytest.approx(list(ready.drafter_logits(ids[:position])), rel=1e-6)
        assert (laws.position, laws.badge, laws.seed) == (position, "measured", 2)
        assert [laws.texts(token_id) for token_id in range(26)] == [token(bytes([97 + i])) for i in range(26)]


def test_a_place_is_kept_until_another_one_is_taken(live: Run, ready: TablePair) -> None:
    visitor = Visitor(live)
    visitor.take(5)
    made = len(ready.made)
    assert isinstance(visitor.take(5), Laws)
    assert len(ready.made) == made, "no model was asked again"
    visitor.take(6)
    assert len(ready.made) > made


@pytest.mark.parametrize(("drafter", "same"), [("target", True), ("ngram", False), ("none", False), ("model", False)])
def test_a_run_without_a_drafters_model_is_set_beside_the_pairs_own(drafter: str, same: bool, ready: TablePair) -> None:
    laws = Visitor(run_of(decode(TABLES, 12, "abcabc", drafter=drafter))).take(8)
    assert isinstance(laws, Laws)
    assert laws.drafter_logits is not None
    assert np.array_equal(laws.target_logits, laws.drafter_logits) == same
    assert laws.settings["drafter"] == drafter


def test_a_place_waits_for_models_that_are_loading(live: Run) -> None:
    loading = loader_module.loader()
    loading._status["embedded"] = Status("loading")

    def arrive() -> None:
        loading._pairs["embedded"], loading._status["embedded"] = TABLES, Status("ready")  # type: ignore[assignment]

    threading.Timer(1.0, arrive).start()
    laws = Visitor(live).take(5)
    assert isinstance(laws, Laws)
    assert laws.badge == "measured"


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (Status("absent"), "not on this machine"),
        (Status("failed", "the file is *cut short*"), "could not be loaded: the file is *cut short*"),
    ],
)
def test_without_the_pair_the_reason_is_a_sentence(status: Status, said: str, live: Run) -> None:
    loader_module.loader()._status["embedded"] = status
    assert said in positions.unavailable(live)
    answer = Visitor(live).take(5)
    assert isinstance(answer, str)
    assert said in answer
    assert answer.endswith(("`python -m specviz fetch`.", "*cut short*"))


def test_with_the_pair_nothing_stands_in_the_way(live: Run, ready: TablePair) -> None:
    assert positions.unavailable(live) == ""
    assert "not on offer" in positions.unavailable(replace(live, fixed="its pair is not known"))
    assert "not on offer" in str(Visitor(replace(live, fixed="its pair is not known")).take(5))


@pytest.mark.parametrize("position", [-1, 0, 2, 10**9])
def test_a_place_that_the_run_lacks_is_named_with_those_it_has(position: int, live: Run, ready: TablePair) -> None:
    said = Visitor(live).take(position)
    assert said == (
        f"This run has no place {position}: counted with the prompt, those of its text go from 3 to 26. "
        "Choose one of the list."
    )


def test_a_run_of_another_vocabulary_is_refused(ready: TablePair) -> None:
    said = Visitor(run_of(make_trace())).take(len(make_trace().header.prompt_ids) + 3)
    assert "vocabulary" in str(said)


def test_a_reading_that_fails_is_told_and_can_be_tried_again(
    live: Run, ready: TablePair, monkeypatch: pytest.MonkeyPatch
) -> None:
    visitor = Visitor(live)
    with monkeypatch.context() as broken:
        broken.setattr(TablePair, "target", lambda self: 1 / 0)
        assert visitor.take(5) == "Reading this place failed (ZeroDivisionError). Choose it again, or another."
    assert isinstance(visitor.take(5), Laws)


@pytest.mark.parametrize("settings", [None, {}, {"temperature": -1.0, "top_p": 7, "seed": None}, {"rule": "guess"}])
def test_settings_of_a_foreign_run_are_always_ones_that_can_be_used(
    settings: dict[str, Any] | None, live: Run, ready: TablePair
) -> None:
    from specviz.decoding.settings import Settings

    strange = replace(live.trace, rounds=tuple(replace(r, settings=settings) for r in live.trace.rounds))
    laws = Visitor(replace(live, trace=strange)).take(9)
    assert isinstance(laws, Laws)
    assert Settings.from_dict(laws.settings).seed == laws.seed


# --- the current run --------------------------------------------------------------------------------------------------


def test_the_run_is_the_one_that_decode_shows_and_before_that_the_one_it_opens_with() -> None:
    script = "import streamlit as st\nfrom specviz.ui import positions\nst.session_state.got = positions.current_run()"
    test = AppTest.from_string(script).run()
    first = test.session_state.got
    assert first.recording == "sampling"
    assert test.run().session_state.got is first
    page = Page().press("restart")
    test.session_state.decode = page.test.session_state.decode
    assert test.run().session_state.got is page.test.session_state.decode.run


def test_without_any_recording_there_is_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recordings, "FOLDER", tmp_path)
    assert positions.current_run() is None
