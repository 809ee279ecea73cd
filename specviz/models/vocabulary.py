"""Do two models mean the same by the same id? Token maps are compared, never sizes: output layers are often padded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Difference:
    """The first id that means different strings; ``None``: this tokenizer has no such id."""

    id: int
    target: str | None
    drafter: str | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Whether a drafter can draft for a target.

    ``shared_ids``: below it both mean the same by every id; a drafter must not say ids from there on. ``rule`` names
    the rule that failed, ``message`` says it in one sentence.
    """

    accepted: bool
    shared_ids: int
    rule: Literal["same tokens", "readable"] | None = None
    message: str = ""
    first_difference: Difference | None = None


def compare(
    target: Mapping[int, str],
    drafter: Mapping[int, str],
    *,
    readable_ids: int | None = None,
    names: tuple[str, str] = ("the target", "the drafter"),
) -> Comparison:
    """Compare two maps from id to token string.

    Two rules. *same tokens*: below the end of the smaller vocabulary every id means the same string (or none) in both.
    *readable*: the drafter has an input row for every id that the target can say. Ids that only one model has are thus
    allowed beyond the other's last id: the drafter never says those that the target lacks, and reads those that its own
    tokenizer lacks through rows that were padding to it, which costs acceptance but never exactness.

    Args:
        target: every id of the target's tokenizer, added tokens included.
        drafter: the same of the drafter's.
        readable_ids: the drafter's number of input rows; ``None``: as many as its tokenizer has ids.
        names: what to call the two in the message.

    Raises:
        ValueError: a map is empty.
    """
    if not target or not drafter:
        raise ValueError("a vocabulary must have at least one token, got none")
    target_ids, drafter_ids = max(target) + 1, max(drafter) + 1
    shared = min(target_ids, drafter_ids)
    for token_id in range(shared):
        ours, theirs = target.get(token_id), drafter.get(token_id)
        if ours != theirs:
            return Comparison(
                accepted=False,
                shared_ids=token_id,
                rule="same tokens",
                message=f"{names[0]} and {names[1]} have different vocabularies: "
                f"id {token_id} means {_quoted(ours)} to the first and {_quoted(theirs)} to the second",
                first_difference=Difference(token_id, ours, theirs),
            )
    readable = drafter_ids if readable_ids is None else readable_ids
    if readable < target_ids:
        unreadable = min(token_id for token_id in target if token_id >= readable)
        return Comparison(
            accepted=False,
            shared_ids=shared,
            rule="readable",
            message=f"{names[1]} cannot read all that {names[0]} says: "
            f"it has {readable} input rows, but id {unreadable} means {_quoted(target[unreadable])}",
            first_difference=Difference(unreadable, target[unreadable], drafter.get(unreadable)),
        )
    return Comparison(accepted=True, shared_ids=shared)


def _quoted(token: str | None) -> str:
    return "nothing" if token is None else repr(token)
