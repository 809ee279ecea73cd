"""The embedded drafter: a few Llama layers between the target's own embedding table and some of its rows as head.

A folder holds ``model.safetensors`` (bfloat16: ``layers.*`` and ``norm.weight`` as in transformers' ``LlamaModel``, and
``kept_ids`` int32, the ids of the head's rows) and, for people, ``card.json`` (how it was made).
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import AutoModel
from transformers.modeling_outputs import CausalLMOutputWithPast

WEIGHTS = "model.safetensors"


class DrafterNetwork(nn.Module):
    """A small Llama that shares the target's embedding: the table as its input, the rows ``kept_ids`` as its head.

    ``body`` is a ``LlamaModel`` whose layers and norm are random until they are loaded or trained. The head is frozen.

    Args:
        target: the target's network; its table is shared, not copied (the head's rows are a copy).
        kept_ids: (kept,) the ids that the drafter can say, none of them twice.
        num_layers: how many layers it has.

    Raises:
        ValueError: the target is no Llama, or an id is not one of its ids.
    """

    def __init__(self, target: nn.Module, kept_ids: Tensor, num_layers: int = 2) -> None:
        super().__init__()
        config: Any = copy.deepcopy(target.config)
        if config.model_type != "llama":
            raise ValueError(f"the embedded drafter is made for a llama target, got {config.model_type}")
        table: Any = target.get_input_embeddings()  # type: ignore[operator]
        known, device, dtype = table.weight.shape[0], table.weight.device, table.weight.dtype
        if kept_ids.min() < 0 or kept_ids.max() >= known:
            raise ValueError(f"kept ids must be in 0..{known - 1}, got {int(kept_ids.min())}..{int(kept_ids.max())}")
        config.num_hidden_layers = num_layers
        self.config: Any = config
        tableless = copy.deepcopy(config)
        tableless.vocab_size, tableless.pad_token_id = 1, None  # no second table, not even for a moment
        with torch.device(device):
            self.body: Any = AutoModel.from_config(tableless, dtype=dtype)  # type: ignore[no-untyped-call]
        self.body.set_input_embeddings(table)
        self.kept_ids = nn.Buffer(kept_ids.to(device, torch.int64), persistent=False)
        self.head = nn.Buffer(table.weight.detach()[self.kept_ids], persistent=False)  # (kept, width)

    @classmethod
    def load(cls, folder: Path, target: nn.Module) -> DrafterNetwork:
        """Read ``folder``, in the target's dtype and on its device.

        Raises:
            FileNotFoundError: there is no drafter.
            ValueError: it was made for another target.
        """
        if not (folder / WEIGHTS).is_file():
            raise FileNotFoundError(f"no drafter in {folder}: {WEIGHTS} is missing")
        weights = load_file(folder / WEIGHTS)
        kept_ids = weights.pop("kept_ids", None)
        if kept_ids is None:
            raise ValueError(f"the drafter in {folder} has no kept_ids")
        network = cls(target, kept_ids, num_layers=len({key.split(".")[1] for key in weights if "layers." in key}))
        try:
            missing = network.body.load_state_dict(weights, strict=False)
        except RuntimeError as error:
            raise ValueError(f"the drafter in {folder} was made for another target: {error}") from error
        if missing.unexpected_keys or missing.missing_keys != ["embed_tokens.weight"]:
            raise ValueError(f"the drafter in {folder} was made for another target: {missing}")
        return network.eval()

    def save(self, folder: Path) -> None:
        """Write the layers, the norm and the kept ids to ``folder``."""
        folder.mkdir(parents=True, exist_ok=True)
        weights = {
            name: weight.detach().to("cpu", torch.bfloat16).contiguous()
            for name, weight in self.body.state_dict().items()
            if not name.startswith("embed_tokens")
        }
        save_file(weights | {"kept_ids": self.kept_ids.to("cpu", torch.int32)}, folder / WEIGHTS)

    def get_input_embeddings(self) -> nn.Module:
        """The target's table."""
        table: nn.Module = self.body.get_input_embeddings()
        return table

    def forward(
        self,
        input_ids: Tensor,
        cache: Any = None,
        use_cache: bool = False,
        logits_to_keep: int = 0,
        output_hidden_states: bool = False,
    ) -> CausalLMOutputWithPast:
        """As a causal language model of transformers; the logits (batch, rows, kept) belong to ``kept_ids``."""
        states = self.body(input_ids=input_ids, cache=cache, use_cache=use_cache).last_hidden_state
        logits = nn.functional.linear(states[:, -logits_to_keep:], self.head)  # 0 keeps all
        return CausalLMOutputWithPast(
            logits=logits, cache=cache, hidden_states=(states,) if output_hidden_states else None
        )
