"""The target's law on a corpus, computed once: last hidden states and log-normalisers.

The law at a position is ``softmax(hidden @ embedding.T)``. With the hidden state (in bf16) and the log-normaliser on
disk, training never runs the target again, and 1.2 kB a token stand for a row of 49,152 probabilities.
"""

from __future__ import annotations

import gzip
import json
import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

logger = logging.getLogger(__name__)

TOKENS_A_PASS = 2_000


def read_corpus(path: Path) -> list[tuple[list[int], int]]:
    """Texts of a corpus file (gzipped JSON Lines): (prompt + text ids, number of prompt ids)."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    return [(record["prompt"] + record["gen"], len(record["prompt"])) for record in records if record["gen"]]


class Teacher:
    """Cached hidden states of one or more corpora, read through memory maps."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._parts = []
        self._where: list[tuple[int, int]] = []
        for part, file in enumerate(files):
            with np.load(file.with_suffix(".npz")) as arrays:
                small = {name: arrays[name] for name in ("ids", "starts", "plen", "logz")}
            hidden = np.load(file.with_suffix(".hid.npy"), mmap_mode="r")
            self._parts.append((small, hidden))
            self._where += [(part, index) for index in range(len(small["plen"]))]

    def __len__(self) -> int:
        return len(self._where)

    def length(self, index: int) -> int:
        """Number of ids of a text, prompt included."""
        part, at = self._where[index]
        starts = self._parts[part][0]["starts"]
        return int(starts[at + 1] - starts[at])

    def tokens(self) -> int:
        """Number of positions that a pass over everything trains on."""
        return sum(int(len(small["ids"]) - small["plen"].sum()) for small, _ in self._parts)

    def batch(self, indices: Sequence[int]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Padded ids and, for the rows that predict sampled tokens, the teacher's state.

        Returns:
            ids (n, longest) int64, padded with 0 on the right; mask (n, longest) bool: the rows trained on; hidden
            (rows, hidden) bf16 and log_z (rows,) float32, in the order of ``mask``.
        """
        longest = max(self.length(index) for index in indices)
        ids = torch.zeros(len(indices), longest, dtype=torch.long)
        mask = torch.zeros(len(indices), longest, dtype=torch.bool)
        hidden, log_z = [], []
        for row, index in enumerate(indices):
            part, at = self._where[index]
            small, states = self._parts[part]
            begin, end, given = int(small["starts"][at]), int(small["starts"][at + 1]), int(small["plen"][at])
            ids[row, : end - begin] = torch.from_numpy(small["ids"][begin:end].astype(np.int64))
            # Row i holds the law of token i + 1: from the prompt's last row to the one before the text's last token.
            mask[row, given - 1 : end - begin - 1] = True
            hidden.append(torch.from_numpy(np.array(states[begin + given - 1 : end - 1])).view(torch.bfloat16))
            log_z.append(torch.from_numpy(small["logz"][begin + given - 1 : end - 1]))
        return ids, mask, torch.cat(hidden), torch.cat(log_z)
