"""From a :class:`~specviz.models.catalogue.PairSpec` to two networks in memory that are known to fit together."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch
import transformers
from safetensors import SafetensorError
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.utils.logging import disable_progress_bar

import specviz
from specviz.models import store, vocabulary
from specviz.models.catalogue import EMBEDDED, PairSpec
from specviz.models.drafter import WEIGHTS, DrafterNetwork
from specviz.models.language_model import LanguageModel
from specviz.models.tokenizer import Tokenizer

EMBEDDED_DRAFTER = Path(specviz.__file__).parents[1] / "assets" / "drafter"
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


class LoadError(RuntimeError):
    """A pair cannot be loaded; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Network:
    """Weights, shared by every reader: ``real_ids`` and ``kept_ids`` as in :class:`LanguageModel`."""

    module: nn.Module
    real_ids: int
    kept_ids: torch.Tensor | None = None


@dataclass(frozen=True)
class Pair:
    """A loaded pair. It holds weights only; readers made from it have caches of their own."""

    spec: PairSpec
    tokenizer: Tokenizer
    stop_ids: tuple[int, ...]
    device: str
    dtype: str
    threads: int | None
    versions: Mapping[str, str]
    vocab_size: int
    target_network: Network
    drafter_network: Network | None

    def target(self) -> LanguageModel:
        """A new reader of the target with an empty cache."""
        return self._reader(self.target_network)

    def drafter(self, kind: Literal["model", "target"] = "model") -> LanguageModel:
        """A new reader of the drafter, or of the target that drafts for itself, with an empty cache.

        Raises:
            ValueError: the pair has no drafter model.
        """
        if kind == "target":
            return self.target()
        if self.drafter_network is None:
            raise ValueError(f"the pair {self.spec.id} has no drafter model: drafter must be target, ngram or none")
        return self._reader(self.drafter_network)

    def _reader(self, network: Network) -> LanguageModel:
        return LanguageModel(
            network.module, vocab_size=self.vocab_size, real_ids=network.real_ids, kept_ids=network.kept_ids
        )


def load_pair(
    spec: PairSpec,
    *,
    device: str | None = None,
    dtype: str | None = None,
    progress: store.Progress | None = None,
    download: bool = False,
) -> Pair:
    """Load a pair: bfloat16 on CUDA where there is one, float32 on the CPU.

    Without ``download`` no network is used. Code that comes with a model is never run.

    Raises:
        LoadError: weights are missing or broken, the vocabularies differ, or memory runs out.
        ValueError: the device or the dtype does not exist here.
    """
    tell = progress or (lambda sentence, fraction: None)
    place = _device(device)
    kind = dtype or ("bfloat16" if place.type == "cuda" else "float32")
    if kind not in DTYPES:
        raise ValueError(f"dtype must be one of {', '.join(DTYPES)}, got {kind!r}")
    if download and spec.target == EMBEDDED:
        store.fetch_embedded(tell)

    tell("Reading the vocabulary", 0.0)
    source = partial(_Source, gated=spec.gated, download=download, device=place, dtype=DTYPES[kind])
    target_source = source(_target_name(spec))
    tokenizer, rows = target_source.tokenizer(), target_source.rows()
    drafter_source = source(spec.drafter) if spec.has_drafter_model and not _is_distilled(spec.drafter) else None
    # Before any weight is read: a pair that cannot work says so in a second.
    shared_ids = _shared_ids(tokenizer, rows, drafter_source) if drafter_source else 0

    tell("Loading the target", 0.1)
    target = Network(target_source.network(), min(tokenizer.real_ids, rows))
    tell("Loading the drafter", 0.7)
    drafter = None
    if drafter_source:
        drafter = Network(drafter_source.network(), shared_ids)
    elif spec.has_drafter_model:
        distilled = _distilled(spec.drafter, target.module)
        drafter = Network(distilled, target.real_ids, distilled.kept_ids)
    elif spec.drafter == "target":
        drafter = target

    pair = Pair(
        spec=spec,
        tokenizer=tokenizer,
        stop_ids=_stop_ids(target.module, tokenizer),
        device=str(place),
        dtype=kind,
        threads=torch.get_num_threads() if place.type == "cpu" else None,
        versions={
            "specviz": specviz.__version__,
            "python": platform.python_version(),
            "torch": torch.__version__,
            "transformers": transformers.__version__,
        },
        vocab_size=rows,
        target_network=target,
        drafter_network=drafter,
    )
    try:
        pair.target()
        pair.drafter("model" if drafter else "target")
    except ValueError as error:  # a state that cannot be rolled back
        raise LoadError(str(error)) from error
    tell("Ready", 1.0)
    return pair


@dataclass(frozen=True, slots=True)
class _Source:
    """Where a model comes from: a folder, or a model of the hub that is on this machine or may be fetched."""

    name: str
    gated: bool
    download: bool
    device: torch.device
    dtype: torch.dtype

    def tokenizer(self) -> Tokenizer:
        with self._explained():
            return Tokenizer.load(self.name, download=self.download)

    def rows(self) -> int:
        """How many rows the model's tables have, in and out."""
        with self._explained():
            config = AutoConfig.from_pretrained(self.name, **self._options())
            rows: int = config.get_text_config().vocab_size
            return rows

    def network(self) -> nn.Module:
        if not self.download:
            disable_progress_bar()  # type: ignore[no-untyped-call]
        with self._explained():
            loaded: Any = AutoModelForCausalLM.from_pretrained(
                self.name,
                dtype=self.dtype,
                device_map=self.device if self.device.type == "cuda" else None,
                output_loading_info=True,
                **self._options(),
            )
            network, report = loaded
            if report["missing_keys"]:  # transformers would go on with random numbers in their place
                raise ValueError(f"weights are missing: {', '.join(sorted(report['missing_keys']))}")
            frozen: nn.Module = network.eval().requires_grad_(False)
            return frozen

    def _options(self) -> dict[str, Any]:
        return {"local_files_only": not self.download, "trust_remote_code": False}

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn whatever transformers raises into a sentence that says what to do."""
        local = self.name != "" and Path(self.name).is_dir()
        if not local and not re.fullmatch(r"[\w.-]+/[\w.-]+", self.name):
            raise LoadError(f"{self.name!r} is neither a folder nor a model of the Hugging Face hub (owner/name)")
        try:
            yield
        except torch.OutOfMemoryError as error:
            raise LoadError(f"not enough GPU memory for {self.name}: free some, or take a smaller pair") from error
        except Exception as error:
            reason = " ".join(str(error).split())[:200] or type(error).__name__
            if local:
                raise LoadError(f"the folder {self.name} holds no model that can be read: {reason}") from error
            access = "accept the licence on its page at huggingface.co, run `hf auth login`, and " if self.gated else ""
            if self.download:
                raise LoadError(f"{self.name} could not be fetched: {access}try again ({reason})") from error
            # Some repositories hold the weights a second time, in another format, under original/.
            fetch = f'hf download {self.name} --exclude "original/*"'
            raise LoadError(
                f"{self.name} is not on this machine (no such folder, nor in the Hugging Face cache): "
                f"{access}run `{fetch}`"
            ) from error


def _device(name: str | None) -> torch.device:
    if name is None:
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device: torch.device | None = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError):  # unknown, or a torch without CUDA
        device = None
    if device is None or device.type not in ("cpu", "cuda"):
        raise ValueError(f"device must be cpu or a CUDA device of this machine, got {name!r}")
    return device


def _target_name(spec: PairSpec) -> str:
    if spec.target != EMBEDDED:
        return spec.target
    folder = store.embedded_target()
    if folder is None:
        size = f"{store.PACKAGE_BYTES / 1e6:.0f} MB"
        raise LoadError(f"the embedded target is not on this machine: run `python -m specviz fetch` ({size}, once)")
    return str(folder)


def _is_distilled(drafter: str) -> bool:
    """Whether a drafter is made of a target's own embedding: the embedded one, or a folder like it."""
    folder = Path(drafter)
    return drafter == EMBEDDED or ((folder / WEIGHTS).is_file() and not (folder / "config.json").exists())


def _distilled(drafter: str, target: nn.Module) -> DrafterNetwork:
    try:
        return DrafterNetwork.load(EMBEDDED_DRAFTER if drafter == EMBEDDED else Path(drafter), target)
    except (OSError, ValueError, SafetensorError) as error:
        raise LoadError(f"the drafter cannot be loaded: {error}") from error


def _shared_ids(tokenizer: Tokenizer, rows: int, drafter: _Source) -> int:
    """How many ids mean the same to both models."""
    theirs, drafter_rows = drafter.tokenizer(), drafter.rows()
    comparison = vocabulary.compare(
        {token_id: token for token_id, token in tokenizer.tokens.items() if token_id < rows},
        {token_id: token for token_id, token in theirs.tokens.items() if token_id < drafter_rows},
        readable_ids=drafter_rows,
        names=(tokenizer.name, theirs.name),
    )
    if not comparison.accepted:
        raise LoadError(comparison.message)
    return comparison.shared_ids


def _stop_ids(network: nn.Module, tokenizer: Tokenizer) -> tuple[int, ...]:
    """The ids that end a text, as the model's generation settings and its tokenizer say."""
    config: Any = network.generation_config
    stated = config.eos_token_id
    stops = stated if isinstance(stated, list) else [stated]
    return tuple(sorted({stop for stop in (*stops, tokenizer.eos_id) if stop is not None}))
