"""The runs that ship, and the card of the drafter that made them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from specviz import trace as records
from specviz.trace import Trace
from specviz.ui import recordings, words

if TYPE_CHECKING:
    from specviz.models.loading import Pair

ASSETS = Path(__file__).parents[1] / "assets"
NAMES = recordings.NAMES
WITH_TWIN = tuple(recordings.RULES.values())


def recording(name: str) -> Trace:
    return records.read(ASSETS / "traces" / f"{name}.jsonl")


@pytest.mark.parametrize("name", WITH_TWIN)
def test_a_recording_and_its_twin_share_prompt_seed_and_rule(name: str) -> None:
    run, twin = recording(name), recording(f"{name}.twin")
    assert run.header.prompt_ids == twin.header.prompt_ids
    assert run.header.pair == twin.header.pair == "embedded"
    assert len(run.text_ids) == len(twin.text_ids) >= 64
    assert all(len(round_.emitted) == 1 and not round_.drafts for round_ in twin.rounds)
    for key in ("rule", "seed", "temperature", "top_k", "top_p"):
        assert {round_.settings[key] for round_ in (*run.rounds, *twin.rounds)} == {run.rounds[0].settings[key]}


@pytest.mark.parametrize("name", ["greedy", "gumbel", "match"])
def test_where_the_text_must_be_the_targets_own_it_is(name: str) -> None:
    assert recording(name).text_ids == recording(f"{name}.twin").text_ids


def test_the_first_page_shows_every_fate_early() -> None:
    rounds = recording("sampling").rounds[:6]
    fates = {draft.fate for round_ in rounds for draft in round_.drafts}
    kinds = {round_.closing.kind for round_ in rounds if round_.closing is not None}
    assert fates == {"kept", "rejected", "unjudged"}
    assert kinds == {"correction", "bonus"}


def test_every_rule_has_its_recording_and_every_recording_its_name() -> None:
    from specviz.rules import RULES

    assert recordings.RULES.keys() == RULES.keys()
    for rule, name in recordings.RULES.items():
        found = recordings.for_rule(rule)
        assert found is not None
        assert (found.name, found.settings["rule"]) == (name, rule)
    copied = recordings.recording(recordings.NGRAM)
    assert copied is not None
    assert copied.settings["drafter"] == "ngram"
    assert words.RECORDINGS.keys() == set(recordings.NAMES) == {found.name for found in recordings.every()}


def test_the_first_rounds_show_what_the_rule_is_about() -> None:
    """A match kept and one missed; an early miss carried by a later coin; copies kept, and a round without any."""
    match = recording("match").rounds[:4]
    assert {draft.fate for round_ in match for draft in round_.drafts} == {"kept", "rejected", "unjudged"}
    block = recording("block").rounds[:4]
    assert any(draft.fate == "kept" and not draft.passed for round_ in block for draft in round_.drafts)
    copies = recording("ngram").rounds[:4]
    assert any(round_.drafts and round_.kept == len(round_.drafts) for round_ in copies)
    assert any(not round_.drafts for round_ in copies)


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_says_how_far_its_drafter_reaches(name: str) -> None:
    rows = [draft.row for round_ in recording(name).rounds for draft in round_.drafts]
    reach = {row.drafter_ids for row in rows if row is not None}
    elsewhere = [row.target_mass_elsewhere for row in rows if row is not None]
    if name == recordings.NGRAM:
        assert reach == set(elsewhere) == {None}
    else:
        assert reach == {8192}
        assert all(mass is not None and 0 <= mass <= 1 for mass in elsewhere)


def test_every_race_of_the_recording_names_the_best_of_the_rest() -> None:
    rows = [row for round_ in recording("gumbel").rounds for row in round_.rows()]
    assert all(row.rest is not None and row.rest.runner is not None for row in rows)
    raced = [row.rest for row in rows if row.tv is not None]
    assert all(rest is not None and rest.drafter_runner is not None for rest in raced)


@pytest.mark.parametrize("name", NAMES)
def test_every_read_of_a_recording_has_all_its_answers_and_the_bonus_that_would_have_been(name: str) -> None:
    for round_ in recording(name).rounds:
        bonus = round_.closing is not None and round_.closing.kind == "bonus"
        assert (round_.after is None) == (bonus or not round_.drafts)
        assert round_.last_row is not None
        assert round_.last_row.position == round_.position + len(round_.drafts)
        coins = bool(round_.drafts) and round_.settings["rule"] in ("speculative_sampling", "block_verification")
        assert (round_.after_id is not None) == coins
        assert not coins or round_.last_row.token(round_.after_id) is not None
        assert not (bonus and coins) or round_.after_id == round_.closing.id


@pytest.mark.parametrize("name", NAMES)
def test_shared_and_distance_of_every_place_add_up_to_one(name: str) -> None:
    for round_ in recording(name).rounds:
        for draft in round_.drafts:
            row = draft.row
            assert row is not None
            assert row.rest is not None
            shared = row.rest.overlap + sum(min(token.p, token.q) for token in row.tokens)
            assert shared + row.tv == pytest.approx(1, abs=1e-9)


def test_the_card_says_how_good_the_drafter_is_by_kind() -> None:
    card = json.loads((ASSETS / "drafter" / "card.json").read_text(encoding="utf-8"))
    assert set(card["held_out"]) == {"chat", "code", "list", "translation", "repetition", "all"}
    for score in card["held_out"].values():
        assert 0 < score["alpha"] < 1
        assert 0 < score["agreement"] < 1
    readme = (ASSETS.parent / "README.md").read_text(encoding="utf-8")
    for kind, score in card["held_out"].items():
        assert f"| {kind} | {score['alpha']:.3f} | {score['agreement']:.3f} |" in readme


def test_all_that_ships_stays_small() -> None:
    assert sum(file.stat().st_size for file in ASSETS.rglob("*") if file.is_file()) <= 25e6


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_recording_replays_from_its_own_settings(embedded_pair: Pair, name: str) -> None:
    from specviz.decoding.decoder import Decoder
    from specviz.decoding.settings import Settings

    run = recording(name)
    settings = Settings.from_dict(run.rounds[0].settings)
    decoder = Decoder.start(embedded_pair, run.header.prompt, settings, run.header.max_new_tokens)
    for recorded in run.rounds[:8]:
        again = decoder.step()
        assert again.emitted == recorded.emitted
        assert [draft.id for draft in again.drafts] == [draft.id for draft in recorded.drafts]
        assert again.after_id == recorded.after_id
