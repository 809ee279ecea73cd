"""Every round in words and as a table: nothing is left out, nothing is interpreted."""

from __future__ import annotations

import dataclasses
import json
import time
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specviz.figures import rounds
from specviz.figures.numbers import told_apart
from specviz.figures.palette import FATES
from specviz.figures.sentences import plain
from specviz.figures.text import Texts, token
from specviz.trace import Closing, Draft, Round, Trace
from tests.synthetic_traces import make_trace

RULES = ("speculative_sampling", "greedy", "gumbel_coupling", "token_match", "block_verification")
HOSTILE = (b"<script>alert(1)</script>", b"{draft}[x]", b"$x$ *y*", "\u202ereversed".encode(), b"\xf0\x9f", b"\n", b"")


@pytest.fixture(scope="module", params=RULES)
def trace(request: pytest.FixtureRequest) -> Trace:
    return make_trace(request.param, tokens=96, may_stop=True)


def words_of(round_: Round, texts: Texts) -> str:
    return plain(rounds.sentence(round_, texts))


def test_a_sentence_names_every_token_of_its_round_in_order(trace: Trace) -> None:
    texts = Texts.of(trace)
    for round_ in trace.rounds:
        spans = [text for text, kind in rounds.sentence(round_, texts) if "token" in kind]
        kept = [texts(d.id) for d in round_.drafts if d.fate == "kept"]
        gone = [texts(d.id) for d in round_.drafts if d.fate == "rejected"]
        left = [texts(d.id) for d in round_.drafts if d.fate == "unjudged"]
        closing = [texts(round_.closing.id)] if round_.closing is not None else []
        chosen = [texts(d.target_id) for d in round_.drafts if d.fate == "rejected" and d.target_id is not None]
        assert spans == [*kept, *gone, *chosen, *closing, *left]
        said = words_of(round_, texts)
        assert said.startswith(f"Round {round_.index + 1}: ")
        assert said.endswith(".")
        assert said.count("stay") - said.count("it stays") == bool(kept)
        assert ("never judged" in said) == bool(left)
        assert (" goes" in said) == (" replaces it" in said) == bool(gone)


def test_a_rejection_says_why_with_the_records_numbers(trace: Trace) -> None:
    texts = Texts.of(trace)
    seen = 0
    for round_ in trace.rounds:
        gone = next((d for d in round_.drafts if d.fate == "rejected"), None)
        if gone is None:
            continue
        said, rule = words_of(round_, texts), (round_.settings or {})["rule"]
        seen += 1
        if rule == "speculative_sampling":
            assert gone.coin is not None
            assert gone.accept_prob is not None
            assert f"the coin fell at {told_apart(gone.accept_prob, gone.coin)[1]})" in said
        elif rule == "block_verification":
            assert f"(no coin from place {round_.kept + 1} on fell inside its bar)" in said
            assert not any(draft.passed for draft in round_.drafts[round_.kept :])
        else:
            assert gone.target_id is not None
            assert f"{texts(gone.target_id)})" in said
    assert seen


def test_a_draft_that_no_coin_could_save_says_so() -> None:
    draft = Draft(1, p=0.0, q=0.4, accept_prob=0.0, coin=0.5, fate="rejected")
    round_ = Round(0, 1, {"rule": "speculative_sampling"}, (draft,), Closing(2, "correction"), (2,))
    assert words_of(round_, Texts({1: b" a", 2: b" b"})) == (
        "Round 1: ␣a goes (the target gives it no chance); ␣b replaces it."
    )


def test_a_record_without_numbers_is_told_without_reasons() -> None:
    drafts = (Draft(1, fate="kept"), Draft(2, fate="rejected"), Draft(3, fate="unjudged"))
    round_ = Round(0, 1, None, drafts, Closing(4, "correction"), (1, 4))
    texts = Texts({1: b" a", 2: b" b", 3: b" c", 4: b" d"})
    assert words_of(round_, texts) == "Round 1: ␣a stays; ␣b goes; ␣d replaces it; ␣c was never judged."
    assert rounds.layout([round_], texts).table.rows[0] == ("1", "✓ ␣a · ✗ ␣b · – ␣c", "↺ ␣d", "1/3", "–", "2")


@pytest.mark.parametrize(
    ("settings", "finish", "said"),
    [
        ({"gamma": 0}, None, "Round 1: ␣a: one read, one token; no drafts."),
        ({"gamma": 4}, "length", "Round 1: ␣a: one read, one token; only one was left to write."),
        ({"gamma": 4, "drafter": "ngram"}, None, "Round 1: nothing to copy this round; ␣a: one read, one token."),
        ({"gamma": 0}, "stop", "Round 1: ␣a: one read, one token; no drafts; the text ends there."),
    ],
)
def test_a_round_without_drafts_says_why_it_has_none(settings: dict[str, Any], finish: Any, said: str) -> None:
    round_ = Round(0, 1, {"rule": "speculative_sampling", **settings}, (), Closing(1, "plain"), (1,), finish)
    assert words_of(round_, Texts({1: b" a"})) == said
    assert rounds.layout([round_], Texts({1: b" a"})).table.rows[0][1:4] == ("none", "· ␣a", "no drafts")


def test_a_kept_stop_token_ends_the_text() -> None:
    trace = make_trace(may_stop=True, seed=7)
    last = trace.rounds[-1]
    assert last.closing is None
    assert "the text ends there." in words_of(last, Texts.of(trace))
    row = rounds.layout(trace.rounds, Texts.of(trace)).table.rows[-1]
    assert row[2] == "none: the text was over"


def test_many_drafts_that_were_never_judged_are_counted_in_the_sentence_and_named_in_the_table() -> None:
    drafts = tuple(Draft(i, fate="rejected" if i == 0 else "unjudged") for i in range(12))
    round_ = Round(0, 1, None, drafts, Closing(20, "correction"), (20,))
    texts = Texts({i: f" t{i}".encode() for i in range(21)})
    assert "␣t1, ␣t2, ␣t3 and 8 more were never judged" in words_of(round_, texts)
    assert all(f"– ␣t{i}" in rounds.layout([round_], texts).table.rows[0][1] for i in range(1, 12))


def test_the_table_counts_what_the_rounds_hold(trace: Trace) -> None:
    texts = Texts.of(trace)
    panel = rounds.layout(trace.rounds, texts)
    assert panel.table.columns == rounds.COLUMNS
    assert len(panel.sentences) == len(panel.table.rows) == len(trace.rounds)
    written = 0
    for round_, row in zip(trace.rounds, panel.table.rows, strict=True):
        written += len(round_.emitted)
        glyphs = [f"{FATES[d.fate].glyph} {texts(d.id)}" for d in round_.drafts if d.fate is not None]
        assert row[0] == str(round_.index + 1)
        assert row[1] == (" · ".join(glyphs) or "none")
        if round_.closing is not None and round_.closing.kind is not None:
            assert row[2] == f"{FATES[round_.closing.kind].glyph} {texts(round_.closing.id)}"
        assert row[3] == (f"{round_.kept}/{len(round_.drafts)}" if round_.drafts else "no drafts")
        assert row[4].startswith("1 target")
        assert row[5] == str(written)


def test_settings_stand_in_the_table_where_they_change_and_only_then() -> None:
    trace = make_trace(tokens=60)
    turned = [
        dataclasses.replace(r, settings={**(r.settings or {}), "gamma": 4 if r.index < 3 else 8, "top_p": 0.9})
        for r in trace.rounds
    ]
    table = rounds.layout(turned, Texts.of(trace)).table
    assert [row[-1] for row in table.rows[:5]] == ["gamma 4", "as before", "as before", "gamma 8", "as before"]
    assert rounds.changes(turned) == "gamma 4, then 8"
    assert rounds.changes(trace.rounds) == ""


@given(st.lists(st.sampled_from([(1.0, 1.0), (0.0, 0.0), (0.5, 1.0)]), min_size=1, max_size=6))
def test_a_drafter_that_follows_the_target_is_not_named_beside_it(temperatures: list[tuple[float, float]]) -> None:
    told = [
        Round(i, 0, {"temperature": t, "drafter_temperature": d}, (), Closing(1, "plain"), (1,))
        for i, (t, d) in enumerate(temperatures)
    ]
    said = rounds.changes(told)
    assert ("temperature" in said) == (len(set(temperatures)) > 1)
    if all(t == d for t, d in temperatures):
        assert "drafter" not in said
    # As many values as there are runs of equal ones.
    runs = 1 + sum(a[0] != b[0] for a, b in pairwise(temperatures))
    if said.startswith("temperature"):
        assert said.split(";")[0].count("then") + 1 == runs


def test_nothing_is_told_before_the_first_round_is_over() -> None:
    panel = rounds.layout((), Texts({}))
    assert (panel.sentences, panel.table.rows, panel.note) == ((), (), rounds.NOTHING)


def test_hostile_tokens_come_out_as_text() -> None:
    texts = Texts(dict(enumerate(HOSTILE)))
    drafts = tuple(Draft(i, fate="kept" if i < 3 else "rejected" if i == 3 else "unjudged") for i in range(6))
    round_ = Round(0, 1, {"rule": "greedy"}, drafts, Closing(6, "correction"), (0, 1, 2, 6))
    spans = rounds.sentence(round_, texts)
    assert [text for text, kind in spans if "token" in kind] == [
        token(raw) for raw in (*HOSTILE[:4], b"", *HOSTILE[4:6])
    ]
    json.dumps(dataclasses.asdict(rounds.layout([round_], texts))).encode()


def test_a_long_run_is_laid_out_fast_enough_to_be_done_at_every_step() -> None:
    trace = make_trace(tokens=256)
    texts = Texts.of(trace)
    took = []
    for _ in range(5):
        started = time.perf_counter()
        rounds.layout(trace.rounds, texts)
        took.append(time.perf_counter() - started)
    assert min(took) < 0.01
