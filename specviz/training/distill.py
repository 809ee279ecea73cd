"""Distilling the two-layer drafter: steps over the cached teacher, resumable.

The student is a Llama of two layers with the target's hidden size. Its input table is the target's embedding and its
head the target's embedding rows of the kept ids, both frozen; the two layers and the norm are trained. The teacher's
law at a position is ``exp(hidden @ head.T - log_normaliser)`` on the kept ids; what it gives to other ids is out of the
student's reach.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import logging
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_

from specviz.models.drafter import DrafterNetwork
from specviz.training.teacher import Teacher

logger = logging.getLogger(__name__)

CHECKPOINT_EVERY = 1_000
LOG_EVERY = 200
TRIM_EVERY = 50


@dataclass(frozen=True, slots=True)
class Recipe:
    """What is trained and how.

    ``source_layers`` are the target's layers that the student starts from. A step takes ``sequences`` texts. The
    learning rate warms up over ``warmup`` steps and then falls linearly to zero at ``steps``. ``tv_from`` is the
    fraction of the steps after which the loss leans over from forward KL to the TV distance, which is 1 - alpha itself.
    """

    steps: int = 20_000
    sequences: int = 4
    learning_rate: float = 1e-3
    warmup: int = 100
    weight_decay: float = 0.1
    clip: float = 1.0
    tv_from: float = 0.5
    tv_weight: float = 0.7
    source_layers: tuple[int, ...] = (0, 29)
    seed: int = 0


class Distance(torch.autograd.Function):
    """(1 - w) * forward KL + w * TV between the teacher's law and the student's softmax, averaged over the rows.

    The teacher's rows may sum to less than 1: its mass outside the kept ids counts in neither gradient. One pass over
    the vocabulary computes loss and gradient together; autograd's own chain of ten passes costs more than the layers.
    """

    @staticmethod
    def forward(ctx, logits: Tensor, law: Tensor, tv_weight: float) -> Tensor:  # type: ignore[no-untyped-def]
        """Logits and law are (rows, kept), any float dtype; the result is a scalar in float32."""
        log_q = torch.log_softmax(logits.float(), dim=-1)
        q = log_q.exp()
        mass = law.sum(dim=-1, keepdim=True)
        loss = logits.new_zeros((), dtype=torch.float32)
        gradient = torch.zeros_like(q)
        if tv_weight < 1.0:
            cross_entropy = -(law * log_q).sum(dim=-1)
            loss = loss + (1.0 - tv_weight) * cross_entropy.mean()
            gradient += (1.0 - tv_weight) * (mass * q - law)
        if tv_weight > 0.0:
            shared = torch.minimum(law, q).sum(dim=-1)
            loss = loss + tv_weight * (1.0 - shared).mean()
            below = q * (q < law)
            gradient += tv_weight * (q * below.sum(dim=-1, keepdim=True) - below)
        ctx.save_for_backward((gradient / len(q)).to(logits.dtype))
        return loss

    @staticmethod
    def backward(ctx, upstream: Tensor) -> tuple[Tensor, None, None]:  # type: ignore[no-untyped-def]
        """The gradient was computed with the loss."""
        (gradient,) = ctx.saved_tensors
        return upstream.to(gradient.dtype) * gradient, None, None


def new_student(target: nn.Module, kept_ids: Tensor, source_layers: tuple[int, ...]) -> DrafterNetwork:
    """A drafter whose layers and norm start as copies of the target's; its input table is the target's own, frozen."""
    student = DrafterNetwork(target, kept_ids, num_layers=len(source_layers))
    body: Any = target.model
    for layer, source in zip(student.body.layers, source_layers, strict=True):
        layer.load_state_dict(body.layers[source].state_dict())
    student.body.norm.load_state_dict(body.norm.state_dict())
    student.get_input_embeddings().requires_grad_(False)
    return student


def batches(teacher: Teacher, sequences: int, seed: int) -> Iterator[list[int]]:
    """Endless batches of sequence indices; each epoch is a new order of all texts, grouped by similar length."""
    epoch = 0
    while True:
        random = np.random.default_rng((seed, epoch))
        order = random.permutation(len(teacher))
        # Sorting within chunks keeps padding small without making the order predictable.
        chunks = [order[i : i + 32 * sequences] for i in range(0, len(order), 32 * sequences)]
        groups = []
        for chunk in chunks:
            by_length = sorted(chunk.tolist(), key=teacher.length)
            groups += [by_length[i : i + sequences] for i in range(0, len(by_length), sequences)]
        for index in random.permutation(len(groups)):
            yield groups[index]
        epoch += 1


def rate(recipe: Recipe, step: int) -> float:
    """Learning rate at ``step``."""
    warm = min(1.0, (step + 1) / recipe.warmup)
    return recipe.learning_rate * warm * (1.0 - step / recipe.steps)


def tv_share(recipe: Recipe, step: int) -> float:
    """Weight of the TV distance in the loss at ``step``: 0, then a ramp over a tenth of the steps."""
    ramp = (step / recipe.steps - recipe.tv_from) / 0.1
    return recipe.tv_weight * min(1.0, max(0.0, ramp))


def train(student: DrafterNetwork, teacher: Teacher, recipe: Recipe, folder: Path, minutes: float | None = None) -> int:
    """Train ``student`` in place; go on from ``folder`` if it holds a checkpoint of the same recipe.

    Args:
        student: from :func:`new_student`.
        teacher: the cached law of the target.
        recipe: what to do.
        folder: where checkpoints and the log go.
        minutes: stop (with a checkpoint) after this long; None trains to the end.

    Returns:
        The number of steps done, all sittings together.

    Raises:
        ValueError: the folder holds a training of another recipe.
    """
    folder.mkdir(parents=True, exist_ok=True)
    parameters = [p for p in student.body.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(
        [
            {"params": [p for p in parameters if p.ndim > 1], "weight_decay": recipe.weight_decay},
            {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
        ],
        lr=recipe.learning_rate,
        betas=(0.9, 0.95),
        fused=True,
    )
    step = _resume(folder, student, optimizer, recipe)
    order = islice(batches(teacher, recipe.sequences, recipe.seed), step, None)
    head = student.head.to(torch.bfloat16)  # (kept, width)
    started, log = time.monotonic(), _Log(folder / "log.jsonl")
    student.train()
    while step < recipe.steps:
        ids, mask, hidden, log_z = teacher.batch(next(order))
        for group in optimizer.param_groups:
            group["lr"] = rate(recipe, step)
        with torch.autocast("cpu", torch.bfloat16):
            states = student.body(input_ids=ids, use_cache=False).last_hidden_state[mask]  # (rows, width)
            logits = states.to(torch.bfloat16) @ head.T  # (rows, kept)
        law = ((hidden @ head.T).float() - log_z[:, None]).exp_()
        loss = Distance.apply(logits, law, tv_share(recipe, step))  # type: ignore[no-untyped-call]
        loss.backward()
        clip_grad_norm_(parameters, recipe.clip)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        step += 1
        log.add(step, loss, logits, law)
        if step % TRIM_EVERY == 0:
            _return_memory()
        late = minutes is not None and time.monotonic() - started > 60 * minutes
        if late or step % CHECKPOINT_EVERY == 0 or step == recipe.steps:
            _checkpoint(folder, student, optimizer, recipe, step)
        if late:
            break
    student.eval()
    return step


def _return_memory() -> None:
    """Give freed memory back to the system, where the C library can.

    Tensors of ever-changing lengths leave holes that its allocator keeps; without this the process grows and grows.
    """
    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


class _Log:
    """Running means of loss and alpha on the training texts, a line every so many steps."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._started = time.monotonic()
        self._losses: list[float] = []
        self._alphas: list[float] = []
        self._tokens = 0

    def add(self, step: int, loss: Tensor, logits: Tensor, law: Tensor) -> None:
        self._losses.append(loss.item())
        self._tokens += len(law)
        if step % 10 == 0:  # alpha costs a softmax of its own
            q = torch.softmax(logits.detach().float(), dim=-1)
            self._alphas.append(float(torch.minimum(law, q).sum(dim=-1).mean()))
        if step % LOG_EVERY == 0:
            line = {
                "step": step,
                "loss": round(fmean(self._losses), 4),
                "alpha": round(fmean(self._alphas), 4),
                "tokens_per_s": round(self._tokens / (time.monotonic() - self._started)),
            }
            self._losses, self._alphas = [], []
            logger.info("%s", line)
            with self._path.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(line) + "\n")


def _checkpoint(
    folder: Path, student: DrafterNetwork, optimizer: torch.optim.Optimizer, recipe: Recipe, step: int
) -> None:
    """Write weights and optimiser; the new file replaces the old one at once, so a cut-off run keeps the last whole
    one."""
    weights = {name: p.detach().clone() for name, p in student.body.named_parameters() if p.requires_grad}
    save_file(weights, folder / "weights.next")
    torch.save({"optimizer": optimizer.state_dict(), "step": step, "recipe": asdict(recipe)}, folder / "state.next")
    (folder / "weights.next").replace(folder / "weights.safetensors")
    (folder / "state.next").replace(folder / "state.pt")


def _resume(folder: Path, student: DrafterNetwork, optimizer: torch.optim.Optimizer, recipe: Recipe) -> int:
    state = folder / "state.pt"
    if not state.is_file():
        return 0
    saved = torch.load(state, weights_only=True)
    if json.dumps(saved["recipe"]) != json.dumps(asdict(recipe)):
        raise ValueError(
            f"{folder} holds a training of another recipe: {saved['recipe']}; give another folder or remove it"
        )
    student.body.load_state_dict(load_file(folder / "weights.safetensors"), strict=False)
    optimizer.load_state_dict(saved["optimizer"])
    step = int(saved["step"])
    logger.info("going on from step %d", step)
    return step
