"""One visitor's decoder: the part of the page that runs a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import streamlit as st

from specviz.trace import Trace

if TYPE_CHECKING:
    from specviz.decoding.decoder import Decoder
    from specviz.models.loading import Pair


class Engine:
    """Holds a decoder with its caches between two steps. Losing it costs a prefill, nothing else.

    A step works on the trace it is given and returns a longer one; the caller decides whether that is still wanted.
    """

    def __init__(self) -> None:
        self._decoder: Decoder | None = None

    def step(self, pair: Pair, trace: Trace, prompt: str, settings: Mapping[str, Any], length: int) -> Trace:
        """One round behind ``trace``, at most ``length`` tokens in all.

        Raises:
            ValueError: settings out of range, an empty prompt, or one that does not fit the models.
        """
        decoder = self._ready(pair, trace, prompt, settings, length)
        self._decoder = None  # a step that fails leaves nothing behind
        decoder.step()
        self._decoder = decoder
        return decoder.trace

    def close(self) -> None:
        """Let the caches go."""
        self._decoder = None

    def _ready(self, pair: Pair, trace: Trace, prompt: str, settings: Mapping[str, Any], length: int) -> Decoder:
        from specviz.decoding.decoder import Decoder
        from specviz.decoding.settings import Settings

        wanted = Settings.from_dict(settings)
        old = self._decoder
        if not trace.header.prompt_ids:
            return Decoder.start(pair, prompt, wanted, length)
        if old is not None and old.pair is pair and old.trace.header.prompt_ids == trace.header.prompt_ids:
            return old if old.trace is trace and old.settings == wanted else old.resume(trace, wanted)
        return Decoder(pair, trace, wanted)


@st.cache_resource(scope="session", show_spinner=False, on_release=Engine.close)
def engine() -> Engine:
    """This visitor's engine; released when the visitor leaves."""
    return Engine()


@st.cache_resource(scope="session", show_spinner=False, on_release=Engine.close)
def twin_engine() -> Engine:
    """The same for the target alone, so that the two do not take each other's caches."""
    return Engine()


def lengthened(trace: Trace, length: int) -> Trace:
    """The trace with another budget; one that had ended for want of it has not ended any more."""
    header = replace(trace.header, max_new_tokens=length)
    rounds = trace.rounds
    if rounds and rounds[-1].finish == "length" and len(trace.text_ids) < length:
        rounds = (*rounds[:-1], replace(rounds[-1], finish=None))
    return Trace(header, rounds)
