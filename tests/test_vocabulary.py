"""Two models may draft for each other only if every id that both know means the same string."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specviz.models.vocabulary import Difference, compare


def ids(tokens: str | list[str]) -> dict[int, str]:
    return dict(enumerate(tokens))


vocabularies = st.dictionaries(st.integers(0, 12), st.sampled_from("abc"), min_size=1)


def test_same_size_is_not_the_same_vocabulary() -> None:
    found = compare(ids([*"abcdef", "<x>", "<y>"]), ids([*"abcdef", "<y>", "<x>"]), names=("big", "small"))
    assert not found.accepted
    assert found.rule == "same tokens"
    assert found.first_difference == Difference(6, "<x>", "<y>")
    assert found.shared_ids == 6
    assert found.message == (
        "big and small have different vocabularies: id 6 means '<x>' to the first and '<y>' to the second"
    )


@pytest.mark.parametrize("readable", [151_665, 151_936, 152_064, 200_000])
def test_padding_does_not_matter(readable: int) -> None:
    """One tokenizer under output layers of different sizes."""
    tokens = {i: f"t{i}" for i in range(151_665)}
    found = compare(tokens, dict(tokens), readable_ids=readable)
    assert (found.accepted, found.shared_ids, found.first_difference) == (True, 151_665, None)


def test_a_drafter_may_know_more_than_the_target() -> None:
    found = compare(ids("abc"), ids("abcd"))
    assert (found.accepted, found.shared_ids) == (True, 3)


def test_a_target_may_know_more_where_the_drafter_has_rows_to_read_it() -> None:
    """A newer model's added tokens: the drafter never says them and reads them through its padding."""
    target = ids(["a", "b", "<think>"])
    found = compare(target, ids("ab"), readable_ids=4)
    assert (found.accepted, found.shared_ids) == (True, 2)


def test_a_target_that_says_what_the_drafter_cannot_read_is_refused() -> None:
    found = compare({i: f"t{i}" for i in range(50_000)}, {i: f"t{i}" for i in range(32_768)}, names=("A", "B"))
    assert not found.accepted
    assert found.rule == "readable"
    assert found.message == "B cannot read all that A says: it has 32768 input rows, but id 32768 means 't32768'"


def test_an_added_token_on_an_id_that_the_other_model_uses_is_refused() -> None:
    found = compare(ids("abc"), ids(["a", "b", "<pad>", "d"]))
    assert found.first_difference == Difference(2, "c", "<pad>")


def test_a_gap_differs_from_a_token() -> None:
    found = compare({0: "a", 2: "c"}, ids("abc"))
    assert found.first_difference == Difference(1, None, "b")
    assert "id 1 means nothing to the first and 'b' to the second" in found.message


def test_the_same_gap_in_both_is_the_same() -> None:
    assert compare({0: "a", 2: "c"}, {0: "a", 2: "c"}).accepted


def test_spellings_of_a_space_are_different_tokens() -> None:
    """Byte-level and sentencepiece vocabularies of the same language are not taken for one."""
    assert not compare(ids(["Ġthe"]), ids(["▁the"])).accepted


@given(target=vocabularies, drafter=vocabularies)
def test_shared_ids_mean_the_same_and_the_first_difference_differs(
    target: dict[int, str], drafter: dict[int, str]
) -> None:
    found = compare(target, drafter, readable_ids=13)
    assert all(target.get(i) == drafter.get(i) for i in range(found.shared_ids))
    assert found.accepted == (found.first_difference is None) == (found.message == "")
    if found.first_difference is not None:
        first = found.first_difference
        assert first.id == found.shared_ids < min(max(target), max(drafter)) + 1
        assert (target.get(first.id), drafter.get(first.id)) == (first.target, first.drafter)
        assert first.target != first.drafter


@given(vocabulary=vocabularies)
def test_a_vocabulary_equals_itself(vocabulary: dict[int, str]) -> None:
    assert compare(vocabulary, vocabulary).accepted


def test_an_empty_vocabulary_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one token"):
        compare({}, ids(string.ascii_letters))
