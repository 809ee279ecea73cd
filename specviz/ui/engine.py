"""One visitor's decoder: the part of the page that runs a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import streamlit as st

from specviz.trace import Round, Trace

if TYPE_CHECKING:
    from specviz.decoding.decoder import Decoder, OneAtATime
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
            ValueError: settings out of range, an empty prompt, one that does not fit the models, or a trace whose ids
                are other tokens, or none, to the pair.
        """
        decoder = self._ready(pair, trace, prompt, settings, length)
        self._decoder = None  # a step that fails leaves nothing behind
        decoder.step()
        self._decoder = decoder
        return decoder.trace

    def one_at_a_time(self, pair: Pair, trace: Trace, round_: Round) -> OneAtATime:
        """The drafts of ``round_`` of ``trace`` read at once and one by one; the decoder in use is left alone.

        Raises:
            ValueError: see :meth:`step`.
        """
        from specviz.decoding.decoder import Decoder
        from specviz.decoding.settings import Settings

        check_ids(pair, trace)
        return Decoder(pair, trace, Settings(drafter="none")).one_at_a_time(round_)

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
        check_ids(pair, trace)
        return Decoder(pair, trace, wanted)


def check_ids(pair: Pair, trace: Trace) -> None:
    """A trace may come from a file: its ids must be this pair's, and mean the same tokens to it."""
    header = trace.header
    ids = (*header.prompt_ids, *trace.text_ids)
    strange = next((token_id for token_id in ids if not 0 <= token_id < pair.vocab_size), None)
    if strange is not None:
        raise ValueError(f"the run names the token {strange}, and the pair's vocabulary has {pair.vocab_size}")
    for token_id, said in zip(header.prompt_ids, header.prompt_bytes or (), strict=False):
        if pair.tokenizer.bytes(token_id).hex() != said:
            raise ValueError(f"the run was made with another vocabulary: its token {token_id} is not the pair's")


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
