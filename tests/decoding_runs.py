"""What tests of the decoder share: whole runs, what is comparable of them, a pair of real but tiny networks."""

from __future__ import annotations

import dataclasses
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from specviz.decoding.decoder import Decoder
from specviz.decoding.decoder import Pair as AnyPair
from specviz.decoding.settings import Settings
from specviz.models.catalogue import local_pair
from specviz.models.loading import Pair, load_pair
from specviz.trace import Pass, Round, Trace
from tests.tiny_models import save_tiny_pair

SAMPLING_RULES = ("speculative_sampling", "gumbel_coupling", "token_match", "block_verification")
SAME_TEXT_RULES = ("greedy", "gumbel_coupling", "token_match")
"""Their text follows from target and seed, whatever was drafted."""


def begin(pair: AnyPair, length: int = 24, prompt: str = "abc", **settings: Any) -> Decoder:
    """A decoder at the beginning of a text; keywords are settings."""
    return Decoder.start(pair, prompt, Settings(**settings), length, raw=True)


def decode(pair: AnyPair, length: int = 24, prompt: str = "abc", **settings: Any) -> Trace:
    """A whole run."""
    return finish(begin(pair, length, prompt, **settings))


def finish(decoder: Decoder) -> Trace:
    """Step to the end."""
    while not decoder.finished:
        decoder.step()
    return decoder.trace


def timeless(record: Round) -> Round:
    """A round without its times."""
    passes = tuple(dataclasses.replace(one, seconds=None) for one in record.passes)
    return dataclasses.replace(record, seconds=None, passes=passes)


def without_reads(record: Round) -> Round:
    """A round without its times and reads: what was decided."""
    return dataclasses.replace(record, seconds=None, passes=())


def timeless_trace(trace: Trace) -> Trace:
    """A run without its times."""
    return Trace(dataclasses.replace(trace.header, created=None), tuple(map(timeless, trace.rounds)))


def reads(record: Round, model: str) -> list[tuple[int | None, int | None]]:
    """(context, tokens) of a model's reads in a round, prefills left out."""
    return [(p.context, p.query_tokens) for p in record.passes if p.model == model and not is_prefill(p)]


def is_prefill(one: Pass) -> bool:
    """Whether a pass only read the text so far."""
    return one.kind == "prefill"


@cache
def tiny_pair(family: str = "llama") -> Pair:
    """A random network and a drafter that often agrees with it, in float32."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        target, drafter = save_tiny_pair(Path(folder), family)
        return load_pair(local_pair(str(target), str(drafter)), device="cpu")
