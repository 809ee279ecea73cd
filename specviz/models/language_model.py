"""A language model with a KV cache that grows and rolls back: the one file that knows the cache API.

Token ids are the truth. The cache is derived from them and can always be rebuilt by feeding them again.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer


@dataclass(frozen=True, slots=True)
class Rows:
    """What one read of a model returned.

    ``logits`` (rows, vocab) float32 on the model's device, minus infinity where the model cannot say an id; ``hidden``
    (rows, width) the states that the head saw, if they were asked for; ``query_tokens`` how many tokens were fed;
    ``context`` how many stood in the cache before; ``seconds`` the forward call alone (CUDA events, else host clock).
    """

    logits: Tensor
    hidden: Tensor | None
    query_tokens: int
    context: int
    seconds: float


class LanguageModel:
    """One reader of a text: shared weights and a cache of its own.

    Readers of the same network may run in different threads; one reader may not.

    Args:
        network: a causal language model of transformers, or a module with the same ``forward``.
        vocab_size: width of the rows returned: the *target's* number of output rows, also for a drafter.
        real_ids: ids from here on are padding, or unknown to the other model: their logits are minus infinity.
        kept_ids: (network's rows,) int64, the id of each of the network's rows; ``None``: row i is id i.

    Raises:
        ValueError: the network keeps a state that cannot be rolled back.
    """

    def __init__(self, network: nn.Module, *, vocab_size: int, real_ids: int, kept_ids: Tensor | None = None) -> None:
        self.vocab_size = vocab_size
        self.ids: list[int] = []
        self._network = network
        self._real_ids = real_ids
        self._kept_ids = kept_ids
        config: Any = network.config
        self._config: Any = config.get_text_config()
        self._cache = _new_cache(self._config)
        table: Any = network.get_input_embeddings()  # type: ignore[operator]
        self._device: torch.device = table.weight.device
        self._readable_ids: int = table.weight.shape[0]

    @property
    def length(self) -> int:
        """Number of tokens in the cache."""
        return len(self.ids)

    @property
    def max_positions(self) -> int | None:
        """Number of tokens the model can read, or None where it has no limit."""
        limit: int | None = getattr(self._config, "max_position_embeddings", None)
        return limit

    def extend(self, ids: Sequence[int], rows: int = 1, *, hidden: bool = False) -> Rows:
        """Feed ``ids`` behind what the cache holds; return the logits after the last ``rows`` of them.

        Feeding nothing does nothing and returns no rows. If the forward fails, the cache is dropped (``length`` 0): a
        reader never holds half a read.

        Raises:
            ValueError: an id the model has no embedding for, more rows than ids, or more tokens than ``max_positions``.
        """
        context = self.length
        if not ids:
            return Rows(self._unsaid(0), None, 0, context, 0.0)
        if not 0 <= rows <= len(ids):
            raise ValueError(f"rows must be in 0..{len(ids)}, the number of ids fed, got {rows}")
        if min(ids) < 0 or max(ids) >= self._readable_ids:
            foreign = next(token_id for token_id in ids if not 0 <= token_id < self._readable_ids)
            raise ValueError(f"token ids must be in 0..{self._readable_ids - 1}, got {foreign}")
        if self.max_positions is not None and context + len(ids) > self.max_positions:
            raise ValueError(f"the model reads at most {self.max_positions} tokens, got {context + len(ids)}")
        fed = torch.tensor([ids], device=self._device)
        try:
            with torch.inference_mode():
                stopwatch = Stopwatch(self._device)
                output: Any = self._network(
                    input_ids=fed,
                    cache=self._cache,
                    use_cache=True,
                    logits_to_keep=max(rows, 1),  # 0 would mean all
                    output_hidden_states=hidden,
                )
                seconds = stopwatch.seconds()
                logits = self._over_vocabulary(output.logits[0, -rows:] if rows else output.logits[0, :0])
                states = output.hidden_states[-1][0, len(ids) - rows :].clone() if hidden else None
        except BaseException:
            self.reset()
            raise
        self.ids.extend(ids)
        return Rows(logits, states, len(ids), context, seconds)

    def rollback(self, n: int) -> None:
        """Forget the last ``n`` tokens; 0 changes nothing.

        Raises:
            ValueError: ``n`` is negative or larger than ``length``.
        """
        if not 0 <= n <= self.length:
            raise ValueError(f"can roll back 0..{self.length} tokens, got {n}")
        if n:
            self._cache.crop(-n)
            del self.ids[-n:]

    def reset(self) -> None:
        """Forget everything."""
        self._cache = _new_cache(self._config)
        self.ids = []

    def _over_vocabulary(self, logits: Tensor) -> Tensor:
        """The network's rows as float32 rows of the target's size, minus infinity where an id cannot be said."""
        if self._kept_ids is None and self._real_ids == self.vocab_size == logits.shape[-1]:
            return logits.float()
        row = self._unsaid(len(logits))  # (rows, vocab)
        if self._kept_ids is None:
            width = min(self.vocab_size, logits.shape[-1])
            row[:, :width] = logits[:, :width]
        else:
            row[:, self._kept_ids] = logits.float()
        row[:, self._real_ids :] = -torch.inf
        return row

    def _unsaid(self, rows: int) -> Tensor:
        return torch.full((rows, self.vocab_size), -torch.inf, device=self._device)


class Stopwatch:
    """Seconds since it was made, on the device's own clock."""

    def __init__(self, device: torch.device) -> None:
        self._start = time.perf_counter()
        self._event = _cuda_event() if device.type == "cuda" else None
        if self._event is not None:
            self._event.record()

    def seconds(self) -> float:
        """How long; waits for a GPU to get there."""
        if self._event is None:
            return time.perf_counter() - self._start
        end = _cuda_event()
        end.record()
        end.synchronize()
        seconds: float = self._event.elapsed_time(end) / 1e3
        return seconds


def _cuda_event() -> Any:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]


def _new_cache(config: Any) -> DynamicCache:
    """An empty cache that can be rolled back to any length."""
    cache = DynamicCache(config=config)
    if not cache.is_croppable:
        kinds = ", ".join(sorted({type(layer).__name__ for layer in cache.layers}))
        raise ValueError(
            f"a {config.model_type} model keeps a state that cannot be rolled back ({kinds}); "
            "speculative decoding needs a model with attention layers only"
        )
    # A windowed layer forgets what it would need to step back further than the last read. The model masks by its window
    # anyway, so layers that remember everything give the same logits and roll back to any length.
    for i, is_sliding in enumerate(cache.is_sliding):
        if is_sliding:
            cache.layers[i] = DynamicLayer()  # type: ignore[no-untyped-call]
    return cache
