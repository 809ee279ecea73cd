"""From a :class:`~specviz.models.catalogue.PairSpec` to two networks in memory that are known to fit together."""

from __future__ import annotations

import platform
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
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
    if spec.target == EMBEDDED and download:
        store.fetch_embedded(tell)
    source = _Source(_target_folder(spec), download, spec.gated)
    drafter_source = None
    if spec.has_drafter_model and not _is_distilled(spec.drafter):
        drafter_source = _Source(spec.drafter, download, spec.gated)

    tell("Comparing the vocabularies" if drafter_source else "Reading the tokenizer", 0.0)
    tokenizer, rows = source.tokenizer(), source.rows()
    real_ids = min(tokenizer.real_ids, rows)
    shared_ids = real_ids if drafter_source is None else _shared_ids(source, tokenizer, rows, drafter_source)

    tell(f"Loading {source.name}", 0.1)
    target = Network(source.network(place, DTYPES[kind]), real_ids)
    drafter = None
    if spec.has_drafter_model:
        tell("Loading the drafter", 0.8)
        if drafter_source is not None:
            drafter = Network(drafter_source.network(place, DTYPES[kind]), shared_ids)
        else:
            distilled = _distilled(spec.drafter, target.module)
            drafter = Network(distilled, real_ids, distilled.kept_ids)
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
    download: bool
    gated: bool

    def tokenizer(self) -> Tokenizer:
        tokenizer: Tokenizer = self._read(lambda: Tokenizer.load(self.name, download=self.download))
        return tokenizer

    def rows(self) -> int:
        """How many rows its tables have, in and out."""
        config = self._read(lambda: AutoConfig.from_pretrained(self.name, **self._options()))
        rows: int = config.get_text_config().vocab_size
        return rows

    def network(self, device: torch.device, dtype: torch.dtype) -> nn.Module:
        if not self.download:
            disable_progress_bar()  # type: ignore[no-untyped-call]
        network: nn.Module = self._read(
            lambda: AutoModelForCausalLM.from_pretrained(
                self.name, dtype=dtype, device_map=device if device.type == "cuda" else None, **self._options()
            )
        )
        return network.eval().requires_grad_(False)

    def _options(self) -> dict[str, Any]:
        return {"local_files_only": not self.download, "trust_remote_code": False}

    def _read(self, load: Callable[[], Any]) -> Any:
        local = Path(self.name).is_dir()
        if not local and not re.fullmatch(r"[\w.-]+/[\w.-]+", self.name):
            raise LoadError(f"{self.name!r} is neither a folder nor a model of the Hugging Face hub (owner/name)")
        try:
            return load()
        except torch.OutOfMemoryError as error:
            raise LoadError(
                f"not enough GPU memory for {self.name}: close what else uses the GPU, or take a smaller pair"
            ) from error
        except Exception as error:  # transformers raises OSError, ValueError, KeyError, safetensors its own
            if local:
                raise LoadError(
                    f"the folder {self.name} holds no model that can be read: {_first_line(error)}"
                ) from error
            access = (
                "accept the licence on its page at huggingface.co, run `hf auth login`, then " if self.gated else ""
            )
            raise LoadError(
                f'{self.name} is not on this machine: {access}run `hf download {self.name} --exclude "original/*"`'
                if not self.download
                else f"{self.name} could not be fetched: {access}try again ({_first_line(error)})"
            ) from error


def _device(name: str | None) -> torch.device:
    if name is None:
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(f"device must be cpu or a CUDA device of this machine, got {name!r}") from error
    return device


def _target_folder(spec: PairSpec) -> str:
    if spec.target != EMBEDDED:
        return spec.target
    folder = store.embedded_target()
    if folder is None:
        raise LoadError("the embedded target is not on this machine: run `python -m specviz fetch` (93 MB, once)")
    return str(folder)


def _is_distilled(drafter: str) -> bool:
    """Whether a drafter is made of a target's own embedding: the embedded one, or a folder like it."""
    folder = Path(drafter)
    return drafter == EMBEDDED or ((folder / WEIGHTS).is_file() and not (folder / "config.json").exists())


def _distilled(drafter: str, target: nn.Module) -> DrafterNetwork:
    try:
        return DrafterNetwork.load(EMBEDDED_DRAFTER if drafter == EMBEDDED else Path(drafter), target)
    except (OSError, ValueError, SafetensorError) as error:
        raise LoadError(f"the drafter cannot be loaded: {_first_line(error)}") from error


def _shared_ids(target: _Source, tokenizer: Tokenizer, rows: int, drafter: _Source) -> int:
    """How many ids both models mean the same by."""
    drafter_rows = drafter.rows()
    comparison = vocabulary.compare(
        {token_id: token for token_id, token in tokenizer.tokens.items() if token_id < rows},
        {token_id: token for token_id, token in drafter.tokenizer().tokens.items() if token_id < drafter_rows},
        readable_ids=drafter_rows,
        names=(target.name, drafter.name),
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


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0] or type(error).__name__
