"""Small random models with a small real tokenizer, saved to folders as any model of transformers would be."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    AutoModelForCausalLM,
    GPT2Config,
    LlamaConfig,
    MistralConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen3Config,
)

from specviz.models.drafter import DrafterNetwork

TEXT = (
    "A farmer who fed the hens every morning had a dog, a cat and two grey horses.",
    "The dog slept by the door; the cat slept on the dog. Nobody knew where the horses slept.",
    "def add(a, b):\n    return a + b\n\nprint(add(1, 2))\n",
    "Ein Käfer saß auf dem Dach, und 猫 saw it. 😀 naïve café",
)
STOP, BEGIN = "<|end|>", "<|begin|>"
CHAT = (
    "{% for m in messages %}{{ '<|begin|>' + m['role'] + '\n' + m['content'] + '<|end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|begin|>assistant\n' }}{% endif %}"
)
WINDOW = 8


@cache
def tokenizer(vocab_size: int = 320) -> PreTrainedTokenizerFast:
    """Byte-level BPE over a few sentences, with a stop and a begin token and a chat template."""
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    bpe.train_from_iterator(
        TEXT,
        trainers.BpeTrainer(
            vocab_size=vocab_size,
            special_tokens=[STOP, BEGIN],
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
            show_progress=False,
        ),
    )
    return PreTrainedTokenizerFast(tokenizer_object=bpe, eos_token=STOP, bos_token=BEGIN, chat_template=CHAT)


def config(family: str, vocab_size: int, **changes: Any) -> Any:
    """A two-layer configuration of *llama*, *qwen3*, *gpt2* or *mistral* (whose window is eight tokens)."""
    if family == "gpt2":
        return GPT2Config(
            **{
                "vocab_size": vocab_size,
                "n_embd": 64,
                "n_layer": 2,
                "n_head": 4,
                "n_positions": 256,
                "initializer_range": 0.3,
            }
            | _ENDS
            | changes
        )
    kinds = {"llama": LlamaConfig, "qwen3": Qwen3Config, "mistral": MistralConfig}
    shape = {
        "vocab_size": vocab_size,
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "max_position_embeddings": 256,
        "tie_word_embeddings": True,
        # Wide enough apart that two tokens are rarely equally likely.
        "initializer_range": 0.3,
    }
    window = {"sliding_window": WINDOW} if family == "mistral" else {}
    return kinds[family](**shape | window | _ENDS | changes)


_ENDS: dict[str, Any] = {"eos_token_id": 0, "bos_token_id": 1, "pad_token_id": None}


def network(family: str = "llama", vocab_size: int = 320, seed: int = 0, **changes: Any) -> PreTrainedModel:
    """A random network in float32 on the CPU; the same seed gives the same weights."""
    model: PreTrainedModel = AutoModelForCausalLM.from_config(
        config(family, vocab_size, **changes), dtype=torch.float32
    )
    generator = torch.Generator().manual_seed(seed)
    spread = model.config.initializer_range
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.ndim > 1:
                weight.normal_(0.0, spread, generator=generator)
            elif name.endswith("bias"):
                weight.zero_()
    return model.eval().requires_grad_(False)


def save(folder: Path, family: str = "llama", vocab_size: int = 320, seed: int = 0, **changes: Any) -> Path:
    """Save a random network and the tokenizer to ``folder``; more rows than 320 are padding."""
    network(family, vocab_size, seed, **changes).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder


def save_tiny_pair(folder: Path, family: str = "llama") -> tuple[Path, Path]:
    """Save a target and a drafter that often agrees with it: the target with a little noise on its weights."""
    target = network(family)
    drafter = network(family)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in drafter.parameters():
            weight += 0.1 * weight.std() * torch.randn(weight.shape, generator=generator)
    for name, model in (("target", target), ("drafter", drafter)):
        model.save_pretrained(folder / name)
        tokenizer().save_pretrained(folder / name)
    return folder / "target", folder / "drafter"


def save_distilled(folder: Path, target: PreTrainedModel, kept: int = 200) -> Path:
    """Save an untrained drafter in the embedded drafter's format: the target's two layers over some of its ids."""
    generator = torch.Generator().manual_seed(2)
    kept_ids = torch.randperm(target.config.vocab_size, generator=generator)[:kept].sort().values
    drafter = DrafterNetwork(target, kept_ids, num_layers=2)
    drafter.body.layers.load_state_dict(target.model.layers[:2].state_dict())
    drafter.body.norm.load_state_dict(target.model.norm.state_dict())
    drafter.save(folder)
    return folder
