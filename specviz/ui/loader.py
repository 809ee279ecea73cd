"""Loading pairs behind the page: one background thread, once for all visitors.

torch and transformers are imported in that thread and nowhere else in the user interface. The thread makes no Streamlit
call; a page asks :meth:`Loader.status` when it draws.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from dataclasses import dataclass, replace
from queue import SimpleQueue
from typing import TYPE_CHECKING, Literal

import streamlit as st

from specviz.models import catalogue, store
from specviz.models.catalogue import EMBEDDED
from specviz.ui import imports, memory

if TYPE_CHECKING:
    from specviz.models.loading import Pair

PRELOAD_VARIABLE = "SPECVIZ_PRELOAD"
State = Literal["absent", "idle", "loading", "ready", "failed"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Status:
    """Where a pair stands. ``absent``: weights must be fetched first; ``idle``: here, but nobody asked for it yet.

    ``message`` is a sentence (what goes on, or why it failed), ``fraction`` how much of it is done if known.
    """

    state: State
    message: str = ""
    fraction: float | None = None
    since: float = 0.0

    @property
    def seconds(self) -> float:
        """How long it has been in this state."""
        return time.monotonic() - self.since


class Loader:
    """Pairs by id; each is loaded at most once and kept."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._status: dict[str, Status] = {}
        self._pairs: dict[str, Pair] = {}
        self._wanted: SimpleQueue[tuple[str, bool]] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def status(self, pair_id: str) -> Status:
        """Where the pair stands now."""
        known = self._status.get(pair_id)
        if known is None or known.state == "absent":
            missing = pair_id == EMBEDDED and store.embedded_target() is None
            return Status("absent" if missing else "idle")
        return known

    def pair(self, pair_id: str) -> Pair | None:
        """The pair, once it is ready."""
        return self._pairs.get(pair_id)

    def start(self, pair_id: str, *, fetch: bool = False) -> None:
        """Load the pair in the background, unless that is going on or done. ``fetch`` allows the one download."""
        with self._lock:
            if self.status(pair_id).state in ("loading", "ready"):
                return
            self._status[pair_id] = Status("loading", since=time.monotonic())
            self._wanted.put((pair_id, fetch))
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="specviz-loader", daemon=True)
                self._thread.start()

    def _work(self) -> None:
        while True:
            pair_id, fetch = self._wanted.get()
            try:
                self._pairs[pair_id] = self._load(pair_id, fetch)
                status = Status("ready")
            except Exception as error:
                _log.exception("loading the pair %s failed", pair_id)
                status = Status("failed", str(error) or type(error).__name__)
            self._status[pair_id] = replace(status, since=time.monotonic())

    def _load(self, pair_id: str, fetch: bool) -> Pair:
        def tell(sentence: str, fraction: float | None) -> None:
            self._status[pair_id] = replace(self._status[pair_id], message=sentence, fraction=fraction)

        if fetch and pair_id == EMBEDDED:
            store.fetch_embedded(tell)
        tell("Importing torch", None)
        imports.numpy_first()
        from specviz.models import loading

        pair = loading.load_pair(catalogue.find(pair_id), progress=tell)
        memory.freeze()
        return pair


@st.cache_resource(show_spinner=False)
def loader() -> Loader:
    """The loader of this process."""
    return Loader()


def preloads() -> bool:
    """Whether the embedded pair is loaded unasked: its weights are here and nobody turned it off."""
    return os.environ.get(PRELOAD_VARIABLE, "1") != "0" and store.embedded_target() is not None
