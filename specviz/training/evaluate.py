"""How good a drafter is, on prompts that it was not trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import torch
from torch import nn

from specviz.models.language_model import LanguageModel
from specviz.models.tokenizer import Tokenizer
from specviz.probability import overlap, warp
from specviz.training.corpus import sample_texts
from specviz.training.prompts import HELD_OUT

LENGTH = 100


@dataclass(frozen=True, slots=True)
class Score:
    """Means over ``positions`` sampled tokens of a kind of prompt.

    ``alpha``: sum min(p, q) at temperature 1 along texts that the target sampled at 1. ``agreement``: share of the
    positions of the target's greedy texts at which both models' likeliest token is the same.
    """

    alpha: float
    agreement: float
    positions: int


def score(
    target: nn.Module,
    target_reader: LanguageModel,
    drafter_reader: LanguageModel,
    tokenizer: Tokenizer,
    stop_id: int,
    seed: int = 0,
    length: int = LENGTH,
) -> dict[str, Score]:
    """Score a drafter on the held-out prompts, by kind and over ``all``.

    Args:
        target: the target's network, which writes the texts.
        target_reader: a reader of it.
        drafter_reader: a reader of the drafter.
        tokenizer: of both.
        stop_id: ends a text.
        seed: of the sampled texts.
        length: tokens a text at most.
    """
    prompts = [(kind, tokenizer.chat(prompt)) for kind, several in HELD_OUT.items() for prompt in several]
    ids = [prompt for _, prompt in prompts]
    temperatures = torch.ones(len(ids))
    sampled = sample_texts(target, ids, temperatures, length, stop_id, torch.Generator().manual_seed(seed))
    greedy = sample_texts(target, ids, temperatures, length, stop_id, None)
    alphas: dict[str, list[float]] = {}
    agreements: dict[str, list[float]] = {}
    for (kind, prompt), text in zip(prompts, sampled, strict=True):
        p, q = _rows(target_reader, prompt, text), _rows(drafter_reader, prompt, text)
        alphas.setdefault(kind, []).extend(overlap(warp(p, 1.0), warp(q, 1.0)).tolist())
    for (kind, prompt), text in zip(prompts, greedy, strict=True):
        p, q = _rows(target_reader, prompt, text), _rows(drafter_reader, prompt, text)
        agreements.setdefault(kind, []).extend((p.argmax(-1) == q.argmax(-1)).double().tolist())
    return {
        kind: Score(fmean(_of(alphas, kind)), fmean(_of(agreements, kind)), len(_of(alphas, kind)))
        for kind in [*HELD_OUT, "all"]
    }


def _of(by_kind: dict[str, list[float]], kind: str) -> list[float]:
    return by_kind[kind] if kind != "all" else [value for values in by_kind.values() for value in values]


def _rows(reader: LanguageModel, prompt: Sequence[int], text: Sequence[int]) -> torch.Tensor:
    """The logits that a reader gives at every position of ``text``, shape (len(text), vocab)."""
    reader.reset()
    return reader.extend([*prompt, *text[:-1]], rows=len(text)).logits
