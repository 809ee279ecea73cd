"""A corpus for distillation: the target's own answers, sampled in batches and kept in files that can be added to."""

from __future__ import annotations

import gzip
import hashlib
import json
import logging
import zlib
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import DynamicCache

from specviz.models.tokenizer import Tokenizer
from specviz.training.prompts import CorpusPrompt, corpus_prompts

logger = logging.getLogger(__name__)

BATCH = 48
LONGEST = 160
"""Sampled tokens of a text at most."""

Text = tuple[list[int], int]
"""The ids of prompt and text, and how many of them are the prompt's."""


def sample_corpus(
    target: nn.Module, tokenizer: Tokenizer, stop_id: int, tokens: int, seed: int, folder: Path
) -> list[Path]:
    """Sample until ``folder`` holds ``tokens`` sampled tokens, a file a batch; files that are there already count.

    Batch i depends on (seed, i) only, so an interrupted run goes on where it stopped.
    """
    folder.mkdir(parents=True, exist_ok=True)
    prompts = corpus_prompts(seed)
    files: list[Path] = []
    have = 0
    while have < tokens:
        batch = list(islice(prompts, BATCH))
        file = folder / f"{len(files):05d}.jsonl.gz"
        if not file.exists():
            generator = torch.Generator().manual_seed(
                int(np.random.SeedSequence((seed, len(files))).generate_state(1)[0])
            )
            _write(file, _sample(target, tokenizer, batch, stop_id, generator))
        files.append(file)
        have += sum(len(ids) - given for ids, given in read_texts(file))
        logger.info("corpus: %d of %d tokens", have, tokens)
    return files


def read_texts(file: Path) -> list[Text]:
    """The texts of a corpus file: gzipped JSON Lines with the ids ``prompt`` and ``gen``.

    Raises:
        ValueError: it is none; names the file.
    """
    try:
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            records = [json.loads(line) for line in lines]
        return [(record["prompt"] + record["gen"], len(record["prompt"])) for record in records if record["gen"]]
    except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{file} is no corpus that can be read: {error!r}") from error


def fingerprint(files: Iterable[Path]) -> str:
    """SHA-256 over the texts of a corpus, whatever files they are split into."""
    digest = hashlib.sha256()
    for file in files:
        for ids, given in read_texts(file):
            digest.update(json.dumps([ids, given]).encode())
    return digest.hexdigest()


def sample_texts(
    target: nn.Module,
    prompts: Sequence[Sequence[int]],
    temperatures: Tensor,
    length: int,
    stop_id: int,
    generator: torch.Generator | None,
) -> list[list[int]]:
    """Answers of up to ``length`` tokens to several prompts at once, each cut behind its stop token.

    Args:
        target: a causal language model of transformers.
        prompts: ids, one sequence a text.
        temperatures: (texts,), above 0; not used without a generator.
        length: of the answers, in tokens.
        stop_id: ends a text.
        generator: of the draws; ``None`` takes the likeliest token.
    """
    longest = max(map(len, prompts))
    ids = torch.full((len(prompts), longest), stop_id)
    mask = torch.zeros(len(prompts), longest, dtype=torch.long)
    for row, prompt in enumerate(prompts):  # padded on the left, so that all answers start in the same column
        ids[row, longest - len(prompt) :] = torch.tensor(list(prompt))
        mask[row, longest - len(prompt) :] = 1
    config: Any = target.config
    cache = DynamicCache(config=config)
    answers: list[list[int]] = [[] for _ in prompts]
    going = torch.ones(len(prompts), dtype=torch.bool)
    positions = (mask.cumsum(dim=1) - 1).clamp(min=0)
    with torch.inference_mode():
        for _ in range(length):
            output = target(
                input_ids=ids,
                attention_mask=mask,
                position_ids=positions,
                cache=cache,
                use_cache=True,
                logits_to_keep=1,
            )
            logits = output.logits[:, -1].float()  # (texts, vocab)
            if generator is None:
                drawn = logits.argmax(dim=-1)
            else:
                laws = torch.softmax(logits / temperatures[:, None], dim=-1)
                drawn = torch.multinomial(laws, 1, generator=generator)[:, 0]
            for row in torch.nonzero(going)[:, 0].tolist():
                answers[row].append(int(drawn[row]))
            going &= drawn != stop_id
            if not going.any():
                break
            ids = drawn[:, None]
            mask = torch.cat([mask, torch.ones_like(mask[:, :1])], dim=1)
            positions = positions[:, -1:] + 1
    return answers


def _sample(
    target: nn.Module, tokenizer: Tokenizer, batch: Sequence[CorpusPrompt], stop_id: int, generator: torch.Generator
) -> list[dict[str, object]]:
    prompts = [tokenizer.chat(prompt.text) if prompt.chat else tokenizer.encode(prompt.text) for prompt in batch]
    temperatures = torch.tensor([prompt.temperature for prompt in batch])
    answers = sample_texts(target, prompts, temperatures, LONGEST, stop_id, generator)
    return [
        {"T": prompt.temperature, "prompt": list(ids), "gen": answer}
        for prompt, ids, answer in zip(batch, prompts, answers, strict=True)
    ]


def _write(file: Path, records: Iterable[dict[str, object]]) -> None:
    unfinished = file.with_suffix(".part")
    with gzip.open(unfinished, "wt", encoding="utf-8") as lines:
        lines.writelines(json.dumps(record, separators=(",", ":")) + "\n" for record in records)
    unfinished.replace(file)
