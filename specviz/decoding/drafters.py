"""Drafters: what proposes the tokens that the target then judges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from specviz.models.language_model import LanguageModel, Rows
from specviz.trace import Pass

Warp = Callable[[Tensor], Tensor]
"""Logits (vocab,) to the law that is drawn from (vocab,), float64."""
Draw = Callable[[Tensor, int], int]
"""A law (vocab,) and a place in the round, from 0, to the id drawn there."""
Stop = Callable[[Tensor], bool]
"""Asked with the law *before* a draw: True ends the draft. Looking at the drawn token instead would bias the text."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """Drafted ids, the very laws they were drawn from, and what that cost.

    ``q`` (len(ids), vocab) float64; ``logits`` (len(ids), vocab) float32 before warping, ``None`` where no model
    drafted.
    """

    ids: tuple[int, ...]
    q: Tensor
    logits: Tensor | None
    passes: tuple[Pass, ...]


class Drafter(Protocol):
    """Proposes up to gamma ids to follow ``ids``."""

    @property
    def max_positions(self) -> int | None:
        """Number of tokens it can read, or None where it has no limit."""

    def propose(self, ids: Sequence[int], gamma: int, warp: Warp, draw: Draw, stop: Stop | None = None) -> Proposal:
        """Draft; ``ids`` is the whole text so far, prompt included."""

    def settle(self, ids: Sequence[int]) -> None:
        """Forget whatever is not a beginning of ``ids``: called when a round is over."""


class ModelDrafter:
    """A language model that drafts one token a pass."""

    def __init__(self, reader: LanguageModel) -> None:
        self.reader = reader

    @property
    def max_positions(self) -> int | None:
        """See :class:`Drafter`."""
        return self.reader.max_positions

    def propose(self, ids: Sequence[int], gamma: int, warp: Warp, draw: Draw, stop: Stop | None = None) -> Proposal:
        """See :class:`Drafter`. The last draft is not fed: the reader owes it to the next round."""
        if gamma == 0:
            return nothing(self.reader.vocab_size)
        passes = []
        prefilled, lacking = prepare(self.reader, ids)
        if prefilled is not None:
            passes.append(as_pass(prefilled, "drafter", "prefill"))
        drafted: list[int] = []
        laws: list[Tensor] = []
        logits: list[Tensor] = []
        for place in range(gamma):
            read = self.reader.extend(lacking)
            passes.append(as_pass(read, "drafter", "draft"))
            q = warp(read.logits[-1])
            if stop is not None and stop(q):
                break
            drafted.append(draw(q, place))
            laws.append(q)
            logits.append(read.logits[-1])
            lacking = drafted[-1:]
        if not drafted:
            return Proposal((), nothing(self.reader.vocab_size).q.to(q.device), None, tuple(passes))
        return Proposal(tuple(drafted), torch.stack(laws), torch.stack(logits), tuple(passes))

    def settle(self, ids: Sequence[int]) -> None:
        """See :class:`Drafter`."""
        forget_beyond(self.reader, ids)


class NgramDrafter:
    """Copies what followed the latest earlier occurrence of the text's last tokens.

    The longest suffix of ``longest`` down to 1 tokens that occurs earlier is taken, and of its occurrences the
    latest. No match means no draft. A copy is chosen without looking at the target's randomness, so its law is one-
    hot.

    Source: prompt look-up decoding; exactness of point-mass drafts follows from Leviathan et al. 2023, Theorem 3.5.
    """

    max_positions = None

    def __init__(self, vocab_size: int, device: str, longest: int = 3) -> None:
        self.vocab_size = vocab_size
        self.device = device
        self.longest = longest

    def propose(self, ids: Sequence[int], gamma: int, warp: Warp, draw: Draw, stop: Stop | None = None) -> Proposal:
        """See :class:`Drafter`. Costs no pass."""
        copied = self._copy(list(ids), gamma)
        q = torch.zeros(len(copied), self.vocab_size, dtype=torch.float64, device=self.device)
        for place, token_id in enumerate(copied):
            q[place, token_id] = 1.0
        return Proposal(tuple(copied), q, None, ())

    def settle(self, ids: Sequence[int]) -> None:
        """Nothing is remembered between rounds."""

    def _copy(self, ids: list[int], gamma: int) -> list[int]:
        for length in range(min(self.longest, len(ids) - 1), 0, -1):
            suffix = ids[-length:]
            for start in range(len(ids) - length - 1, -1, -1):
                if ids[start : start + length] == suffix:
                    return ids[start + length : start + length + gamma]
        return []


class NoDrafter:
    """Drafts nothing: every round is plain decoding."""

    max_positions = None

    def __init__(self, vocab_size: int) -> None:
        self.vocab_size = vocab_size

    def propose(self, ids: Sequence[int], gamma: int, warp: Warp, draw: Draw, stop: Stop | None = None) -> Proposal:
        """See :class:`Drafter`."""
        return nothing(self.vocab_size)

    def settle(self, ids: Sequence[int]) -> None:
        """Nothing is remembered."""


def nothing(vocab_size: int) -> Proposal:
    """A proposal without drafts."""
    return Proposal((), torch.zeros(0, vocab_size, dtype=torch.float64), None, ())


# --- keeping a reader's cache in step with the text -------------------------------------------------------------------


def prepare(reader: LanguageModel, ids: Sequence[int]) -> tuple[Rows | None, list[int]]:
    """Make the reader ready to read the end of ``ids``: prefill an empty cache up to the last token.

    Returns:
        The prefill, if there was one, and the ids that the reader still lacks: at least the last.
    """
    forget_beyond(reader, ids[:-1])
    prefill = None
    if reader.length == 0 and len(ids) > 1:
        prefill = reader.extend(ids[:-1], rows=0)
    return prefill, list(ids[reader.length :])


def forget_beyond(reader: LanguageModel, ids: Sequence[int]) -> None:
    """Roll the reader back to the longest beginning of ``ids`` that it holds."""
    shared = 0
    for held, wanted in zip(reader.ids, ids, strict=False):
        if held != wanted:
            break
        shared += 1
    reader.rollback(reader.length - shared)


def as_pass(read: Rows, model: str, kind: str) -> Pass:
    """The record of a read."""
    return Pass(model, kind, read.query_tokens, read.context, read.seconds)  # type: ignore[arg-type]
