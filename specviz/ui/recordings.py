"""The recorded runs that ship with the program."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st

import specviz
from specviz import trace as traces
from specviz.trace import Trace

FOLDER = Path(specviz.__file__).parents[1] / "assets" / "traces"
RULES = {
    "speculative_sampling": "sampling",
    "greedy": "greedy",
    "gumbel_coupling": "gumbel",
    "token_match": "match",
    "block_verification": "block",
}
"""Which recording shows which rule; the first one opens the page."""
NGRAM = "ngram"
"""The recording whose drafts are copied from the text so far."""
NAMES = (*RULES.values(), NGRAM)
PICKED = "sampling"
"""The recording whose seed was chosen for what its first rounds show."""


@dataclass(frozen=True, slots=True)
class Recording:
    """A run made beforehand."""

    name: str
    trace: Trace

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings that were in force."""
        return self.trace.rounds[0].said if self.trace.rounds else {}


def recording(name: str) -> Recording | None:
    """The recording with this name; None where its file is not there."""
    trace = _found(f"{name}.jsonl")
    return Recording(name, trace) if trace is not None else None


def twin(name: str) -> Trace | None:
    """The target alone with the same seed, where that was recorded too."""
    return _found(f"{name}.twin.jsonl")


def for_rule(rule: str) -> Recording | None:
    """The recording that shows ``rule``, if there is one."""
    name = RULES.get(rule)
    return recording(name) if name is not None else None


def for_settings(settings: Mapping[str, Any]) -> Recording | None:
    """The recording that shows these settings best: n-gram copies where they draft, else the rule."""
    return recording(NGRAM) if settings.get("drafter") == NGRAM else for_rule(str(settings.get("rule")))


def every() -> Iterator[Recording]:
    """All recordings that are here."""
    return (found for found in map(recording, NAMES) if found is not None)


def first() -> Recording | None:
    """The recording that opens the page."""
    return next(every(), None)


@st.cache_resource(show_spinner=False)
def typical_alpha() -> float | None:
    """The embedded pair's mean sum min(p, q) over the held-out prompts, from its drafter's card."""
    try:
        card = json.loads((FOLDER.parent / "drafter" / "card.json").read_text(encoding="utf-8"))
        return float(card["held_out"]["all"]["alpha"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


@st.cache_resource(show_spinner=False, max_entries=16)
def _read(path: str, modified: int) -> Trace:
    """Parsed once a process, shared by all visitors; ``modified`` is part of the key."""
    return traces.read(Path(path))


def _found(file: str) -> Trace | None:
    path = FOLDER / file
    return _read(str(path), path.stat().st_mtime_ns) if path.exists() else None
