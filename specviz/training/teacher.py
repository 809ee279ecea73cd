"""The target's law on a corpus, computed once: last hidden states and log-normalisers.

The law at a position is ``softmax(hidden @ embedding.T)``. With the hidden state (in bf16) and the log-normaliser on
disk, training never runs the target again, and 1.2 kB a token stand for a row of 49,152 probabilities.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from specviz.training.corpus import Text, read_texts

logger = logging.getLogger(__name__)

TOKENS_A_PASS = 2_000


def cache_teacher(target: nn.Module, files: Sequence[Path], folder: Path) -> list[Path]:
    """Read every corpus file with the target, in bf16; files that were read before are left alone.

    Returns:
        A ``.npz`` a corpus file, with the hidden states in a ``.npy`` beside it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    caches = [folder / f"{file.name.split('.')[0]}.npz" for file in files]
    missing = [(file, cache) for file, cache in zip(files, caches, strict=True) if not cache.exists()]
    if not missing:
        return caches
    body: Any = target.model
    head = target.get_output_embeddings().weight.to(torch.bfloat16)  # type: ignore[operator]
    with torch.autocast("cpu", torch.bfloat16), torch.inference_mode():
        for number, (file, cache) in enumerate(missing, start=1):
            _cache_file(body, head, read_texts(file), cache)
            logger.info("teacher: %d of %d files", number, len(missing))
    return caches


def _cache_file(body: nn.Module, head: Tensor, texts: list[Text], cache: Path) -> None:
    starts = np.cumsum([0, *(len(ids) for ids, _ in texts)])
    hidden = np.zeros((starts[-1], head.shape[1]), np.int16)  # NumPy has no bf16: the bits are kept as they are
    log_z = np.zeros(starts[-1], np.float32)
    order = sorted(range(len(texts)), key=lambda index: len(texts[index][0]))
    while order:
        longest = len(texts[order[-1]][0])
        count = max(1, TOKENS_A_PASS // longest)
        group, order = order[-count:], order[:-count]
        ids = torch.zeros(len(group), longest, dtype=torch.long)  # padded on the right, where causal rows do not look
        for row, index in enumerate(group):
            ids[row, : len(texts[index][0])] = torch.tensor(texts[index][0])
        states = body(input_ids=ids, use_cache=False).last_hidden_state.to(torch.bfloat16)
        for row, index in enumerate(group):
            own = states[row, : len(texts[index][0])].contiguous()
            where = slice(starts[index], starts[index + 1])
            hidden[where] = own.view(torch.int16).numpy()
            log_z[where] = torch.logsumexp((own @ head.T).float(), dim=-1).numpy()
    np.save(cache.with_suffix(".npy"), hidden)
    arrays: dict[str, Any] = {
        "ids": np.concatenate([np.array(ids, np.int32) for ids, _ in texts]),
        "starts": starts,
        "given": np.array([given for _, given in texts]),
        "log_z": log_z,
    }
    unfinished = cache.with_suffix(".part.npz")  # written last: a cache without it is made again
    np.savez(unfinished, **arrays)
    unfinished.replace(cache)


class Teacher:
    """The cached law on one or more corpus files, read through memory maps."""

    def __init__(self, caches: Sequence[Path]) -> None:
        self._parts: list[tuple[dict[str, Any], Any]] = []
        self._where: list[tuple[int, int]] = []
        for part, cache in enumerate(caches):
            with np.load(cache) as arrays:
                small = {name: arrays[name] for name in ("ids", "starts", "given", "log_z")}
            self._parts.append((small, np.load(cache.with_suffix(".npy"), mmap_mode="r")))
            self._where += [(part, index) for index in range(len(small["given"]))]

    def __len__(self) -> int:
        return len(self._where)

    def length(self, index: int) -> int:
        """Number of ids of a text, prompt included."""
        part, at = self._where[index]
        starts = self._parts[part][0]["starts"]
        return int(starts[at + 1] - starts[at])

    @property
    def tokens(self) -> int:
        """Number of positions that a pass over everything trains on."""
        return sum(int(len(small["ids"]) - small["given"].sum()) for small, _ in self._parts)

    def batch(self, indices: Sequence[int]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Padded ids and, for the rows that predict sampled tokens, the teacher's state.

        Returns:
            ids (n, longest) int64, padded with 0 on the right; mask (n, longest) bool: the rows trained on; hidden
            (rows, width) bf16 and log_z (rows,) float32, in the order of ``mask``.
        """
        longest = max(self.length(index) for index in indices)
        ids = torch.zeros(len(indices), longest, dtype=torch.long)
        mask = torch.zeros(len(indices), longest, dtype=torch.bool)
        hidden, log_z = [], []
        for row, index in enumerate(indices):
            part, at = self._where[index]
            small, states = self._parts[part]
            begin, end, given = int(small["starts"][at]), int(small["starts"][at + 1]), int(small["given"][at])
            ids[row, : end - begin] = torch.from_numpy(small["ids"][begin:end].astype(np.int64))
            # Row i holds the law of token i + 1: from the prompt's last row to the one before the text's last token.
            mask[row, given - 1 : end - begin - 1] = True
            rows = slice(begin + given - 1, end - 1)
            hidden.append(torch.from_numpy(np.array(states[rows])).view(torch.bfloat16))
            log_z.append(torch.from_numpy(small["log_z"][rows]))
        return ids, mask, torch.cat(hidden), torch.cat(log_z)
