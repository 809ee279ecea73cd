"""A pair made of probability tables: drives the real decoder and the pages, and counts its reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from specviz.models.language_model import Rows

Logits = Callable[[Sequence[int]], Sequence[float]]
"""The ids read so far to the logits of the next one."""


class TableModel:
    """A reader whose logits are a function of the ids it has read; the cache is the list of ids."""

    def __init__(self, logits: Logits, vocab_size: int, max_positions: int | None = None) -> None:
        self.logits = logits
        self.vocab_size = vocab_size
        self.max_positions = max_positions
        self.ids: list[int] = []
        self.reads: list[tuple[int, int]] = []
        self.largest_index = -1

    @property
    def length(self) -> int:
        return len(self.ids)

    def extend(self, ids: Sequence[int], rows: int = 1) -> Rows:
        context = len(self.ids)
        if not ids:
            return Rows(torch.zeros(0, self.vocab_size), None, 0, context, 0.0)
        if self.max_positions is not None and context + len(ids) > self.max_positions:
            raise ValueError(f"the model reads at most {self.max_positions} tokens, got {context + len(ids)}")
        self.reads.append((context, len(ids)))
        laws = []
        for token_id in ids:
            self.ids.append(token_id)
            laws.append(self.logits(tuple(self.ids)))
        self.largest_index = max(self.largest_index, len(self.ids) - 1)
        chosen = laws[len(laws) - rows :]
        table = torch.tensor(np.array(chosen), dtype=torch.float32).reshape(rows, self.vocab_size)
        return Rows(table, None, len(ids), context, 1e-3 * len(ids))

    def rollback(self, n: int) -> None:
        if not 0 <= n <= len(self.ids):
            raise ValueError(f"can roll back 0..{len(self.ids)} tokens, got {n}")
        if n:
            del self.ids[-n:]


class LetterTokenizer:
    """Id i is the letter i of the alphabet; spaces and anything else are dropped."""

    def encode(self, text: str) -> list[int]:
        return [ord(letter) - ord("a") for letter in text.lower() if letter.isascii() and letter.isalpha()]

    chat = encode

    def bytes(self, token_id: int) -> bytes:
        return bytes([ord("a") + token_id % 26])

    def decode(self, ids: Sequence[int]) -> str:
        return b"".join(map(self.bytes, ids)).decode()


@dataclass
class TableSpec:
    id: str = "table"
    drafter: str = "table"


@dataclass
class TablePair:
    """A pair of tables; ``drafter_logits`` None makes the drafter equal to the target."""

    target_logits: Logits
    drafter_logits: Logits | None = None
    vocab_size: int = 4
    stop_ids: tuple[int, ...] = ()
    target_positions: int | None = None
    drafter_positions: int | None = None
    device: str = "cpu"
    dtype: str = "float32"
    spec: TableSpec = field(default_factory=TableSpec)
    tokenizer: LetterTokenizer = field(default_factory=LetterTokenizer)
    made: list[tuple[str, TableModel]] = field(default_factory=list)

    def target(self) -> TableModel:
        return self._make("target", self.target_logits, self.target_positions)

    def drafter(self, kind: str = "model") -> TableModel:
        if kind == "target":
            return self._make("drafter", self.target_logits, self.target_positions)
        return self._make("drafter", self.drafter_logits or self.target_logits, self.drafter_positions)

    def _make(self, name: str, logits: Logits, positions: int | None) -> TableModel:
        model = TableModel(logits, self.vocab_size, positions)
        self.made.append((name, model))
        return model


def random_table(seed: int, vocab_size: int, spread: float = 1.5) -> Logits:
    """Logits that depend on the last two ids, drawn once from a seeded generator."""
    table = np.random.default_rng(seed).normal(size=(vocab_size, vocab_size, vocab_size)) * spread

    def logits(ids: Sequence[int]) -> Sequence[float]:
        return table[ids[-2] if len(ids) > 1 else 0, ids[-1]]

    return logits


def log_law(law: Sequence[float]) -> Logits:
    """The same law everywhere, whatever was read."""
    with np.errstate(divide="ignore"):
        logs = np.log(np.array(law, dtype=np.float64))
    return lambda ids: logs


def scripted(sequence: dict[int, int], vocab_size: int, otherwise: int = 0) -> Logits:
    """After a text of ``n`` ids the next id is ``sequence[n]``, almost surely (logit 20 against 0)."""

    def logits(ids: Sequence[int]) -> Sequence[float]:
        row = np.zeros(vocab_size)
        row[sequence.get(len(ids), otherwise)] = 20.0
        return row

    return logits
