"""The strip: the whole run as rows of tokens, for any moment of it.

The layout says for every token at which event it appears and at which its fate is known, so that the view can paint any
moment by itself, without asking again, while a finger drags the scrubber.
"""

from __future__ import annotations

from typing import Any

from specviz.figures import events, sentences
from specviz.figures.events import Timeline
from specviz.figures.text import Reader, Texts
from specviz.trace import Round

CHUNK = 16
"""Rounds in a chunk: a chunk that is complete does not change any more."""


def layout(timeline: Timeline, texts: Texts) -> tuple[dict[str, Any], ...]:
    """The run in chunks of :data:`CHUNK` rounds; plain JSON.

    A chunk is ``{"rounds": [...]}``; the first also carries ``"prompt"``, the text before the first token. A round is::

        first    index of its first event
        token    number of its first token in the text, from 1
        drafts   [[text, fate, event at which it appears, event at which its fate is known], …]
        closing  [text, kind, event at which it appears] or null
        events   [[label, [[text, kind], …]], …]   one an event, in order
        finish   null, "stop", "length" or "context"
    """
    trace, reader = timeline.trace, Reader()
    prompt = "".join(reader.label(texts.raw(token_id)) for token_id in trace.header.prompt_ids)
    rounds: list[dict[str, Any]] = []
    written = 0
    for round_ in trace.rounds:
        limit = trace.header.max_new_tokens
        left = None if limit is None else limit - written
        rounds.append(_round(timeline, round_, texts, reader.pending, left) | {"token": written + 1})
        for token_id in round_.emitted:
            reader.piece(texts.raw(token_id))
        written += len(round_.emitted)
    chunks: list[dict[str, Any]] = [
        {"rounds": rounds[start : start + CHUNK]} for start in range(0, len(rounds), CHUNK)
    ] or [{"rounds": []}]
    chunks[0]["prompt"] = prompt
    return tuple(chunks)


def _round(timeline: Timeline, round_: Round, texts: Texts, pending: bytes, left: int | None) -> dict[str, Any]:
    first, end = timeline.starts[round_.index], timeline.starts[round_.index + 1]
    moments = timeline.events[first:end]
    reader, closing_reader = Reader(pending), Reader(pending)
    drafts = []
    for place, draft in enumerate(round_.drafts):
        born = next((i for i, e in enumerate(moments) if events.drafted(round_, e) > place), 0)
        known = next((i for i, e in enumerate(moments) if events.standing(round_, place, e) != "waiting"), len(moments))
        drafts.append([reader.label(texts.raw(draft.id)), draft.fate or "unjudged", first + born, first + known])
        if draft.fate == "kept":
            closing_reader.piece(texts.raw(draft.id))
    closing = None
    if round_.closing is not None:
        closing = [closing_reader.label(texts.raw(round_.closing.id)), round_.closing.kind or "plain", end - 1]
    return {
        "first": first,
        "drafts": drafts,
        "closing": closing,
        "events": [
            [events.label(round_, e), sentences.of_event(round_, e, texts, story=timeline.story, left=left)]
            for e in moments
        ],
        "finish": round_.finish,
    }
