"""The place: nothing of either law is lost, nothing is known too early, and winners are those of the record."""

from __future__ import annotations

import dataclasses
import json
import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specviz.figures import events, numbers, place, race
from specviz.figures.events import Event, Timeline
from specviz.figures.sentences import plain
from specviz.figures.text import Texts
from specviz.trace import Closing, Draft, Header, Rest, Round, Row, Token, Trace
from specviz.ui import recordings
from tests.synthetic_traces import make_trace

RULES = ("speculative_sampling", "greedy", "gumbel_coupling", "token_match", "block_verification")
HOSTILE = (b"<script>alert(1)</script>", b"![](x)", "\u202eabc".encode(), b"\xf0\x9f", b"{draft}[x]", b"\x00\n")


@cache
def run(rule: str) -> Trace:
    return make_trace(rule, tokens=64)


@cache
def recorded(name: str) -> Trace:
    found = recordings.recording(name)
    assert found is not None
    return Trace(found.trace.header, found.trace.rounds[:14])


def moments(trace: Trace) -> list[tuple[Round, Event]]:
    return [(trace.rounds[event.round], event) for event in Timeline(trace).events]


def places(trace: Trace) -> list[tuple[Round, int | None, Row, place.Place]]:
    """Every place of the run as it is known when its round is over; None: the bonus or plain token."""
    found: list[tuple[Round, int | None, Row, place.Place]] = []
    texts = Texts.of(trace)
    for round_, event in moments(trace):
        if event.kind == "closing":
            spots: list[tuple[int | None, Row | None]] = [(i, draft.row) for i, draft in enumerate(round_.drafts)]
            spots += [(None, round_.closing.row if round_.closing else None)]
            for selected, row in spots:
                if row is not None:
                    panel = place.layout(trace, round_, event, texts, selected=selected)
                    found.append((round_, selected, row, panel))
    assert found
    return found


def rows_of(panel: place.Place) -> list[place.Bar]:
    return [*panel.bars, *([panel.others] if panel.others else [])]


def one_draft(row: Row, *, rule: str = "speculative_sampling", **changes: Any) -> tuple[Trace, Round]:
    """A run of one round whose only draft, id 0, is rejected."""
    token = row.token(0)
    fixed = {"p": token.p if token else None, "q": token.q if token else None, "coin": 0.5, "fate": "rejected"}
    draft = Draft(id=0, row=row, **{**fixed, **changes.pop("draft", {})})  # type: ignore[arg-type]
    round_ = Round(0, 1, {"rule": rule, **changes}, (draft,), Closing(1, "correction"), (1,))
    return Trace(Header(prompt_ids=(5,)), (round_,)), round_


def over(trace: Trace, round_: Round, selected: int | None = 0) -> place.Place:
    return place.layout(trace, round_, Event(round_.index, "closing"), Texts.of(trace), selected=selected)


def drafted(laws: list[tuple[float, float]], **changes: Any) -> place.Place:
    """The place of a rejected draft where these (p, q) are the whole vocabulary."""
    tokens = tuple(Token(id=i, bytes="61", p=p, q=q) for i, (p, q) in enumerate(laws))
    tv = 1 - sum(min(law) for law in laws)
    row = Row(position=1, tokens=tokens, rest=Rest(count=0, p=0.0, q=0.0, overlap=0.0), tv=tv)
    return over(*one_draft(row, **changes))


# --- segments ---------------------------------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_the_parts_add_up_to_alpha_and_tv_whatever_is_listed(data: st.DataObject) -> None:
    """Tails of both signs: what is not listed may be wanted more by either model, token by token."""
    size = data.draw(st.integers(2, 40))
    weight = st.one_of(st.just(0.0), st.floats(1e-12, 1.0), st.floats(1e-3, 1.0))
    laws = []
    for _ in range(2):
        law = np.array(data.draw(st.lists(weight, min_size=size, max_size=size)))
        laws.append((law if law.sum() > 0 else law + 1) / (law.sum() or size))
    p, q = laws
    listed = sorted({0, *data.draw(st.sets(st.integers(0, size - 1), max_size=25))})
    rest = np.setdiff1d(np.arange(size), listed)
    shared = float(np.minimum(p, q).sum())
    row = Row(
        position=1,
        tokens=tuple(Token(id=i, bytes="61", p=float(p[i]), q=float(q[i])) for i in listed),
        rest=Rest(len(rest), float(p[rest].sum()), float(q[rest].sum()), float(np.minimum(p, q)[rest].sum())),
        tv=max(0.0, 1.0 - shared),
    )
    rule = data.draw(st.sampled_from(["speculative_sampling", "token_match", "block_verification"]))
    panel = over(*one_draft(row, rule=rule, draft={"target_id": 0 if rule == "token_match" else None}))
    every = rows_of(panel)
    assert math.fsum(bar.both for bar in every) == pytest.approx(shared, abs=1e-9)
    for part in ("only_target", "only_drafter"):
        assert math.fsum(getattr(bar, part) for bar in every) == pytest.approx(1 - shared, abs=1e-9)
        assert panel.together is not None
        assert panel.together.both + getattr(panel.together, part) == pytest.approx(1, abs=1e-9)
    for bar in every:
        assert min(bar.both, bar.only_target, bar.only_drafter) >= 0
        assert bar.both + bar.only_target == pytest.approx(bar.p, abs=1e-12)
        assert bar.both + bar.only_drafter == pytest.approx(bar.q, abs=1e-12)


@pytest.mark.parametrize("name", [name for name in recordings.NAMES if name != "greedy"])
def test_the_last_row_of_every_recorded_place_is_alpha_and_tv(name: str) -> None:
    for _, _, row, panel in places(recorded(name)):
        together = panel.together
        assert together is not None
        if row.tv is None:
            assert (together.p, together.q, panel.shared) == (1, None, "")
            continue
        assert together.both == pytest.approx(1 - row.tv, abs=1e-9)
        assert together.only_target == pytest.approx(row.tv, abs=1e-9)
        assert together.only_drafter == pytest.approx(row.tv, abs=1e-9)


def test_the_others_row_has_tails_of_both_signs_without_losing_mass() -> None:
    tokens = tuple(Token(id=i, bytes="61", p=0.05, q=0.05) for i in range(10))
    panel = over(*one_draft(Row(position=1, tokens=tokens, rest=Rest(4, 0.5, 0.5, 0.1), tv=0.4)))
    assert panel.others is not None
    assert panel.others.only_target == panel.others.only_drafter == pytest.approx(0.4)
    assert panel.together is not None
    assert panel.together.both == pytest.approx(0.6, abs=1e-9)


def test_the_rounding_of_a_sum_is_not_written() -> None:
    together = drafted([(0.3, 1.0), (0.7 - 1e-14, 0.0)]).table.rows[-1]
    assert together[:4] == ("all together", "1", "1", "0.30")
    close = drafted([(0.3, 1.0), (0.7 - 1e-9, 0.0)]).table.rows[-1]
    assert close[1] != "1"


def test_every_formula_stands_on_a_line_of_its_own() -> None:
    formula = drafted([(0.3, 1.0), (0.7, 0.0)]).formula
    assert formula is not None
    assert formula.splitlines() == ["α = Σ min(p, q) = 0.30", "TV = ½ Σ |p − q| = 0.70", "α + TV = 1"]


# --- what is shown ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
def test_whoever_the_story_names_always_has_a_row(rule: str) -> None:
    trace = run(rule)
    texts = Texts.of(trace)
    for round_, selected, row, panel in places(trace):
        labels = {bar.label for bar in panel.bars}
        must = set()
        if selected is not None:
            must.add(round_.drafts[selected].id)
            must |= {i for i in (round_.drafts[selected].target_id,) if i is not None}
        if round_.closing is not None and selected in (None, round_.kept):
            must.add(round_.closing.id)
        if panel.mode != "race":
            must.add(max(row.tokens, key=lambda t: t.p or 0).id)
        assert {texts(i) for i in must} <= labels
        assert len(panel.bars) <= place.ROWS + 4


@pytest.mark.parametrize("rule", RULES)
def test_nothing_of_the_target_is_shown_before_it_has_read(rule: str) -> None:
    trace = run(rule)
    for round_, event in moments(trace):
        if event.kind == "draft":
            panel = place.layout(trace, round_, event, Texts.of(trace), selected=event.place)
            assert panel.models == ("drafter",)
            assert {bar.p for bar in panel.bars} == {bar.target for bar in panel.bars} == {None}
            assert panel.together is None
            assert len(panel.heads) == 1
            if panel.mode == "waiting":
                assert all(row[3:6] == ("–", "–", "–") for row in panel.table.rows)


@pytest.mark.parametrize("rule", ["speculative_sampling", "gumbel_coupling"])
def test_the_correction_is_not_marked_before_it_is_drawn(rule: str) -> None:
    trace = run(rule)
    event = Timeline(trace).first_rejection()
    assert event is not None
    round_ = trace.rounds[event.round]
    panel = place.layout(trace, round_, event, Texts.of(trace), selected=event.place)
    assert not any(bar.sign == "correction" for bar in panel.bars)
    later = place.layout(trace, round_, Event(event.round, "closing"), Texts.of(trace), selected=event.place)
    assert any(bar.sign == "correction" for bar in later.bars)


def test_a_bonus_is_drawn_from_the_target_alone() -> None:
    trace = run("speculative_sampling")
    round_ = next(r for r in trace.rounds if r.closing is not None and r.closing.kind == "bonus")
    panel = over(trace, round_, None)
    assert (panel.mode, panel.models, panel.heads) == ("alone", ("target",), ("p target",))
    assert panel.title.endswith("what the target wanted")
    assert any(bar.sign == "bonus" for bar in panel.bars)
    assert plain(panel.note) == place.NOTES["bonus"]


@pytest.mark.parametrize("rule", RULES)
def test_every_number_stands_under_a_head(rule: str) -> None:
    for _, _, _, panel in places(run(rule)):
        assert all(len(bar.written) == len(panel.heads) for bar in rows_of(panel))
        assert all(len(cells) == len(panel.table.columns) for cells in panel.table.rows)


def test_the_reach_of_the_drafter_is_told_where_it_is_recorded() -> None:
    row = Row(1, (Token(0, "61", 0.2, 1.0), Token(1, "62", 0.8, 0.0)), Rest(10, 0.0, 0.0, 0.0), tv=0.8)
    assert over(*one_draft(row)).reach == ""
    reaching = dataclasses.replace(row, drafter_ids=11, target_mass_elsewhere=0.04)
    trace, round_ = one_draft(reaching)
    assert over(trace, round_).reach == "11 ids the drafter can say; the target’s mass elsewhere: 0.04"
    waiting = place.layout(trace, round_, Event(0, "draft", 0), Texts({}), selected=0)
    assert waiting.reach == "11 ids the drafter can say"
    whole = dataclasses.replace(row, drafter_ids=12, target_mass_elsewhere=0.0)
    assert over(*one_draft(whole)).reach == ""


# --- Gumbel coupling: a race ------------------------------------------------------------------------------------------


def first(panel: place.Place, model: str) -> str:
    """Who is marked as first home."""
    homes = [bar.label for bar in rows_of(panel) if (lane := getattr(bar, model)) is not None and lane.first]
    assert len(homes) == 1
    return homes[0]


@pytest.mark.parametrize("trace", [run("gumbel_coupling"), recorded("gumbel")], ids=["synthetic", "recorded"])
def test_the_winners_of_both_races_are_the_draft_and_the_targets_own_token(trace: Trace) -> None:
    texts = Texts.of(trace)
    met = 0
    for round_, selected, _, panel in places(trace):
        assert panel.mode == "race"
        if selected is not None:
            draft = round_.drafts[selected]
            assert first(panel, "drafter") == texts(draft.id)
            if draft.target_id is not None:
                assert first(panel, "target") == texts(draft.target_id)
                met += 1
        elif round_.closing is not None:
            assert first(panel, "target") == texts(round_.closing.id)
    assert met > 10


def test_the_first_home_has_the_shortest_lane_and_rows_come_in_that_order() -> None:
    trace = recorded("gumbel")
    for _, selected, row, panel in places(trace):
        models = ("target", "drafter") if selected is not None else ("target",)
        for model in models:
            lanes = [lane for bar in rows_of(panel) if (lane := getattr(bar, model)) is not None]
            shortest = min(lanes, key=lambda lane: lane.length)
            assert shortest.first
            assert not shortest.beyond
            assert all(0 < lane.length <= 1 for lane in lanes)
        runs = race.Race(row, models)
        labels = [Texts.of(trace)(token.id) for token in sorted(row.tokens, key=runs.finish)]
        shown = [bar.label for bar in panel.bars]
        assert shown == [label for label in labels if label in shown][: len(shown)]


def test_time_is_the_distance_over_the_speed_and_the_largest_sum_wins() -> None:
    for _, _, row, _ in places(recorded("gumbel")):
        for token in row.tokens:
            if token.p:
                assert race.time(token, "target") == pytest.approx(math.exp(-(token.noise or 0)) / token.p)
        runs = race.Race(row, ("target",))
        winner = runs.winner("target")
        assert winner is not None
        assert race.time(winner, "target") == min(race.time(token, "target") for token in runs.field)


def test_the_others_row_names_its_best_runner() -> None:
    trace = recorded("gumbel")
    texts = Texts.of(trace)
    for _, selected, row, panel in places(trace):
        assert panel.others is not None
        shown = {bar.label for bar in panel.bars}
        models = ("target", "drafter") if selected is not None else ("target",)
        for model in models:
            left = [token for token in race.Race(row, models).field if texts(token.id) not in shown]
            best = max(left, key=lambda token: race.score(token, model))
            assert texts(best.id) in panel.others.word


def test_a_record_without_the_best_of_the_others_says_so() -> None:
    _, _, _, panel = places(run("gumbel_coupling"))[0]
    assert panel.others is not None
    assert panel.others.word == "best not recorded"
    assert panel.others.target is panel.others.drafter is None
    assert set(panel.others.written) == {"–"}


def test_who_has_no_chance_does_not_run() -> None:
    tokens = (Token(0, "61", 0.0, 1.0, noise=0.1), Token(1, "62", 1.0, 0.0, noise=0.2))
    row = Row(1, tokens, Rest(5, 0.0, 0.0, 0.0), tv=1.0)
    panel = over(*one_draft(row, rule="gumbel_coupling", draft={"target_id": 1, "coin": None}))
    own, draft = sorted(panel.bars, key=lambda bar: bar.q or 0)
    assert (draft.target, own.drafter) == (None, None)
    assert (draft.written[0], own.written[1]) == ("never", "never")
    assert panel.others is not None
    assert panel.others.word == "none of them runs"
    assert panel.together is not None
    assert panel.together.both == 0


def test_one_noise_stands_in_both_sums() -> None:
    panel = next(p for _, selected, _, p in places(recorded("gumbel")) if selected is not None)
    for bar in panel.bars:
        noise, *sums = (
            float(part.rpartition(" ")[2].replace("−", "-").replace("∞", "inf")) for part in bar.formula.split(" · ")
        )
        for law, total in zip((bar.p, bar.q), sums, strict=True):
            assert total == pytest.approx(math.log(law) + noise if law else -math.inf, abs=0.011)
    assert panel.formula is not None
    assert "log p + g" in panel.formula


def test_a_race_without_its_noise_is_shown_as_what_both_wanted() -> None:
    row = Row(1, (Token(0, "61", 0.2, 1.0), Token(1, "62", 0.8, 0.0)), Rest(1, 0.0, 0.0, 0.0), tv=0.8)
    assert over(*one_draft(row, rule="gumbel_coupling")).mode == "shared"


# --- the other rules --------------------------------------------------------------------------------------------------


def test_greedy_boxes_the_winners_of_the_laws_that_were_used() -> None:
    """The verdict never contradicts the picture: p and q are 0 or 1, the logits are only drawn."""
    trace = recorded("greedy")
    texts = Texts.of(trace)
    for round_, selected, _, panel in places(trace):
        assert panel.mode == "pale"
        assert panel.together is panel.others is None
        assert plain(panel.note) == place.NOTES["pale"]
        if selected is None:
            continue
        draft = round_.drafts[selected]
        assert first(panel, "drafter") == texts(draft.id)
        assert first(panel, "target") == texts(draft.target_id if draft.target_id is not None else _best(draft))
        assert all(lane.length == 1 for bar in panel.bars for lane in (bar.target, bar.drafter) if lane and lane.first)


def _best(draft: Draft) -> int:
    assert draft.row is not None
    return next(token.id for token in draft.row.tokens if token.p == 1)


@pytest.mark.parametrize("trace", [run("block_verification"), recorded("block")], ids=["synthetic", "recorded"])
def test_under_block_verification_what_is_still_owed_stands_beside_q(trace: Trace) -> None:
    seen = set()
    for round_, selected, _, panel in places(trace):
        weight = round_.drafts[selected - 1].weight if selected else None
        owed = weight is not None and weight < 1
        seen.add(owed)
        assert ("w·p" in panel.heads) == owed
        assert ("w·p" in plain(panel.note)) == owed
        for bar in rows_of(panel):
            assert bar.owed == (pytest.approx((weight or 0) * (bar.p or 0), abs=1e-12) if owed else None)
    assert seen == {True, False}


def test_where_w_is_below_one_the_correction_comes_from_what_is_still_owed() -> None:
    """The law of the correction is max(w p − q, 0) over the whole vocabulary: the panel's w p is the right one."""
    checked = 0
    for round_, selected, row, panel in places(recorded("block")):
        closing = round_.closing
        if selected is None or selected != round_.kept or closing is None or closing.law is None:
            continue
        weight = round_.drafts[selected - 1].weight if selected else 1.0
        law = dict(closing.law)
        gaps = {t.id: max((weight or 0) * (t.p or 0) - (t.q or 0), 0) for t in row.tokens if t.id in law}
        scale = gaps[closing.id] / law[closing.id]
        assert all(gaps[i] / scale == pytest.approx(law[i], abs=1e-9) for i in gaps)
        checked += "w·p" in panel.heads
    assert checked > 2


def test_both_draws_of_a_match_are_named_when_they_are_known() -> None:
    trace = recorded("match")
    texts = Texts.of(trace)
    for round_, event in moments(trace):
        if event.kind not in ("read", "closing"):
            continue
        for selected, draft in enumerate(round_.drafts):
            panel = place.layout(trace, round_, event, texts, selected=selected)
            assert draft.row is not None
            note = plain(panel.note)
            assert f"the drafter drew {texts(draft.id)}" in note
            known = event.kind == "closing" and draft.target_id is not None
            assert (known and f"the target drew {texts(draft.target_id or 0)}" in note) == known
            assert numbers.times(draft.row.expected_accept or 0) in panel.beside


def test_a_copy_is_one_full_row() -> None:
    for round_, selected, _, panel in places(recorded("ngram")):
        if selected is not None:
            full = [bar for bar in panel.bars if bar.q == 1]
            assert len(full) == 1
            assert full[0].both + full[0].only_drafter == panel.longest == 1
            assert panel.reach == ""
        elif not round_.drafts:
            assert plain(panel.note) == place.NOTES["nothing"]


# --- edges ------------------------------------------------------------------------------------------------------------


def test_laws_with_nothing_in_common_share_exactly_nothing() -> None:
    panel = drafted([(0.0, 1.0), (0.6, 0.0), (0.4, 0.0)])
    assert panel.together is not None
    assert (panel.together.both, panel.together.only_target, panel.together.only_drafter) == (0.0, 1.0, 1.0)
    assert panel.shared == "0"
    assert plain(panel.note) == place.NOTES["disjoint"]


def test_equal_laws_and_temperature_zero_are_said_in_a_sentence() -> None:
    assert plain(drafted([(0.5, 0.5), (0.5, 0.5)]).note) == place.NOTES["identical"]
    cold = [(1.0, 0.4), (0.0, 0.6)]
    assert plain(drafted(cold, temperature=0.0, drafter_temperature=1.0).note) == place.NOTES["cold.target"]
    assert (
        plain(drafted([(0.4, 1.0), (0.6, 0.0)], temperature=1.0, drafter_temperature=0.0).note)
        == (place.NOTES["cold.drafter"])
    )


def test_a_record_without_laws_says_so_instead_of_an_empty_chart() -> None:
    draft = Draft(id=1, fate="rejected")
    round_ = Round(0, 1, {"rule": "speculative_sampling"}, (draft,), Closing(2, "correction"), (2,))
    trace = Trace(Header(prompt_ids=(5,)), (round_,))
    for event in events.of_round(round_):
        panel = place.layout(trace, round_, event, Texts({}), selected=0)
        assert plain(panel.note) == place.NOTES["unknown"]
        assert panel.bars == ()


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    ("law", "note"), [({"p": 0.5}, "no q"), ({"q": 0.5}, "no p"), ({"p": 0.5, "q": 0.4}, "no rest"), ({}, "unknown")]
)
def test_a_record_with_a_part_of_the_laws_says_which(rule: str, law: dict[str, float], note: str) -> None:
    panel = over(*one_draft(Row(1, (Token(0, "61", **law),)), rule=rule, draft={"target_id": None}))
    assert panel.together is None
    told = plain(panel.note)
    assert told == place.NOTES[note] or (rule == "token_match" and note == "no rest")


def test_hostile_tokens_stay_plain_text() -> None:
    for name in recordings.NAMES:
        trace = recorded(name)
        texts = Texts({token_id: HOSTILE[token_id % len(HOSTILE)] for token_id in trace.token_bytes()})
        for round_, event in moments(trace)[:12]:
            panel = place.layout(trace, round_, event, texts, selected=0 if round_.drafts else None)
            written = json.dumps(dataclasses.asdict(panel), ensure_ascii=False)
            assert "\u202e" not in written
            assert "\\u0000" not in written
