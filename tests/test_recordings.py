"""The runs that ship, and the card of the drafter that made them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from specviz import trace as records
from specviz.trace import Trace

if TYPE_CHECKING:
    from specviz.models.loading import Pair

ASSETS = Path(__file__).parents[1] / "assets"
NAMES = ("sampling", "greedy", "gumbel")


def recording(name: str) -> Trace:
    return records.read(ASSETS / "traces" / f"{name}.jsonl")


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_and_its_twin_share_prompt_seed_and_rule(name: str) -> None:
    run, twin = recording(name), recording(f"{name}.twin")
    assert run.header.prompt_ids == twin.header.prompt_ids
    assert run.header.pair == twin.header.pair == "embedded"
    assert len(run.text_ids) == len(twin.text_ids) >= 64
    assert all(len(round_.emitted) == 1 and not round_.drafts for round_ in twin.rounds)
    for key in ("rule", "seed", "temperature", "top_k", "top_p"):
        assert {round_.settings[key] for round_ in (*run.rounds, *twin.rounds)} == {run.rounds[0].settings[key]}


@pytest.mark.parametrize("name", ["greedy", "gumbel"])
def test_where_the_text_must_be_the_targets_own_it_is(name: str) -> None:
    assert recording(name).text_ids == recording(f"{name}.twin").text_ids


def test_the_first_page_shows_every_fate_early() -> None:
    rounds = recording("sampling").rounds[:6]
    fates = {draft.fate for round_ in rounds for draft in round_.drafts}
    kinds = {round_.closing.kind for round_ in rounds if round_.closing is not None}
    assert fates == {"kept", "rejected", "unjudged"}
    assert kinds == {"correction", "bonus"}


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
