"""Drafters: q is the law drawn from, reads feed what is missing and no more, look-up copies what it says it copies."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from specviz.decoding.drafters import ModelDrafter, NgramDrafter, NoDrafter, forget_beyond, prepare
from specviz.probability import warp
from tests.table_models import TableModel, random_table

VOCAB = 5
TABLE = random_table(1, VOCAB)


def law(logits: torch.Tensor) -> torch.Tensor:
    return warp(logits, 0.7, 3)


def likeliest(q_row: torch.Tensor, place: int) -> int:
    return int(q_row.argmax())


def ngram(ids: Sequence[int], gamma: int, longest: int = 3) -> tuple[int, ...]:
    return NgramDrafter(20, "cpu", longest).propose(ids, gamma, law, likeliest).ids


# --- a model ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", [1, 2, 5])
def test_the_law_reported_is_the_very_law_drawn_from(gamma: int) -> None:
    """One array for both: a law that is rounded or filtered once more would bend the text."""
    seen: list[tuple[int, torch.Tensor]] = []

    def draw(q_row: torch.Tensor, place: int) -> int:
        seen.append((place, q_row))
        return int(q_row.argmax())

    proposal = ModelDrafter(TableModel(TABLE, VOCAB)).propose([0, 1], gamma, law, draw)
    assert [place for place, _ in seen] == list(range(gamma))
    assert proposal.q.equal(torch.stack([q_row for _, q_row in seen]))
    assert proposal.q.equal(law(proposal.logits))
    text = [0, 1, *proposal.ids]
    for place in range(gamma):
        expected = np.asarray(TABLE(text[: 2 + place]), dtype=np.float32)
        assert np.array_equal(proposal.logits[place], expected)


def test_the_last_draft_is_owed_to_the_next_round() -> None:
    reader = TableModel(TABLE, VOCAB)
    drafter = ModelDrafter(reader)
    first = drafter.propose([0, 1, 2], 3, law, likeliest)
    assert reader.ids == [0, 1, 2, *first.ids[:2]]
    assert reader.reads == [(0, 2), (2, 1), (3, 1), (4, 1)]
    assert [one.kind for one in first.passes] == ["prefill", "draft", "draft", "draft"]
    drafter.propose([0, 1, 2, *first.ids, 4], 2, law, likeliest)
    assert reader.reads[4:] == [(5, 2), (7, 1)]


def test_without_drafts_to_make_nothing_is_read() -> None:
    reader = TableModel(TABLE, VOCAB)
    proposal = ModelDrafter(reader).propose([0, 1], 0, law, likeliest)
    assert (proposal.ids, proposal.q.shape, proposal.logits, proposal.passes) == ((), (0, VOCAB), None, ())
    assert reader.reads == []


def test_a_draft_may_end_on_the_law_before_a_draw_and_never_on_the_token_drawn() -> None:
    """Looking at the token and dropping it would make the text too peaked."""
    drawn: list[int] = []
    asked: list[torch.Tensor] = []

    def draw(q_row: torch.Tensor, place: int) -> int:
        assert len(asked) == place + 1
        drawn.append(int(q_row.argmax()))
        return drawn[-1]

    def stop(q_row: torch.Tensor) -> bool:
        asked.append(q_row)
        return len(asked) == 3

    proposal = ModelDrafter(TableModel(TABLE, VOCAB)).propose([0], 5, law, draw, stop)
    assert proposal.ids == tuple(drawn)
    assert len(drawn) == 2
    assert proposal.q.equal(torch.stack(asked[:2]))
    assert len(proposal.passes) == 3, "the read that was asked about took place"


def test_a_draft_may_end_before_it_began() -> None:
    drafter = ModelDrafter(TableModel(TABLE, VOCAB))
    proposal = drafter.propose([0, 1], 4, law, likeliest, lambda q_row: True)
    assert (proposal.ids, proposal.q.shape, proposal.logits) == ((), (0, VOCAB), None)
    assert [one.kind for one in proposal.passes] == ["prefill", "draft"]


@given(
    held=st.lists(st.integers(0, 2), max_size=6),
    wanted=st.lists(st.integers(0, 2), min_size=1, max_size=6),
)
def test_a_reader_is_brought_to_a_text_without_reading_twice_what_it_holds(held: list[int], wanted: list[int]) -> None:
    reader = TableModel(random_table(0, 3), 3)
    reader.extend(held)
    shared = next(
        (i for i, (a, b) in enumerate(zip(held, wanted, strict=False)) if a != b), min(len(held), len(wanted))
    )
    prefill, lacking = prepare(reader, wanted)
    assert [*reader.ids, *lacking] == wanted
    assert lacking, "the last token is always fed: its row is the one that is wanted"
    kept = min(shared, len(wanted) - 1)
    assert reader.length == (kept if kept or len(wanted) == 1 else len(wanted) - 1)
    assert (prefill is not None) == (kept == 0 and len(wanted) > 1)


def test_settling_forgets_what_is_gone_and_keeps_the_rest() -> None:
    reader = TableModel(TABLE, VOCAB)
    reader.extend([0, 1, 2, 3])
    forget_beyond(reader, [0, 1, 4])
    assert reader.ids == [0, 1]
    ModelDrafter(reader).settle([0, 1, 4, 4])
    assert reader.ids == [0, 1]


# --- look-up ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ids", "gamma", "copied"),
    [
        ([5, 6, 7, 8, 9, 10, 11, 7, 8], 3, (9, 10, 11)),
        ([1, 1, 1], 4, (1,)),
        ([5, 6, 7, 5, 6], 3, (7, 5, 6)),
        ([5, 6, 7, 5, 6], 2, (7, 5)),
        ([1, 2, 3], 4, ()),
        ([4], 4, ()),
        ([], 4, ()),
        ([1, 2, 9, 1, 2, 8, 1, 2], 1, (8,)),  # the latest of two occurrences
        ([3, 1, 2, 7, 4, 1, 2, 8, 3, 1, 2], 1, (7,)),  # a longer suffix wins over a later occurrence
    ],
)
def test_what_followed_the_longest_suffix_is_copied(ids: list[int], gamma: int, copied: tuple[int, ...]) -> None:
    assert ngram(ids, gamma) == copied


@given(st.lists(st.integers(0, 3), max_size=12), st.integers(0, 5))
def test_a_copy_stands_in_the_text_behind_the_texts_own_end(ids: list[int], gamma: int) -> None:
    copied = ngram(ids, gamma)
    assert len(copied) <= gamma
    if gamma and len(ids) > 1 and ids[-1] in ids[:-1]:
        assert copied
    if copied:
        found = [ids[-1], *copied]
        assert any(ids[i : i + len(found)] == found for i in range(len(ids)))
    else:
        assert gamma == 0 or ids[-1:] == [] or ids[-1] not in ids[:-1]


def test_a_copy_is_certain_of_itself_and_costs_no_read() -> None:
    proposal = NgramDrafter(20, "cpu").propose([1, 2, 3, 1, 2], 2, law, likeliest)
    assert proposal.ids == (3, 1)
    assert proposal.q.equal(torch.eye(20, dtype=torch.float64)[[3, 1]])
    assert (proposal.logits, proposal.passes) == (None, ())


def test_no_drafter_drafts_nothing() -> None:
    drafter = NoDrafter(7)
    proposal = drafter.propose([1, 1, 1], 4, law, likeliest)
    assert (proposal.ids, proposal.q.shape, proposal.logits, proposal.passes) == ((), (0, 7), None, ())
    assert drafter.max_positions is NgramDrafter(7, "cpu").max_positions is None
