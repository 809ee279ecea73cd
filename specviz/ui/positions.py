"""Places of the current run, for the pages that freeze one: which there are, and both models' whole rows there."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from specviz import rows
from specviz.decoding.settings import Settings
from specviz.figures.text import Texts
from specviz.rows import Logits, RawRows
from specviz.trace import Round, Trace
from specviz.ui import controls, recordings, session, words
from specviz.ui.engine import check_ids
from specviz.ui.loader import loader
from specviz.ui.pool import device_pool
from specviz.ui.session import Run

if TYPE_CHECKING:
    from specviz.models.loading import Pair

CONTEXT_IDS = 32
"""Tokens before a place that its label is made from: more than it shows."""
POLL_S = 0.2

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Choice:
    """A place of the text.

    ``position`` counts from 0 over prompt and text, ``label`` names it in a list, ``told`` says in a sentence what
    happened there. ``instant``: its rows are shipped, so that no model is needed.
    """

    position: int
    label: str
    told: str
    instant: bool


@dataclass(frozen=True, slots=True)
class Laws:
    """Both models' rows at one place, before any temperature.

    ``target_logits`` and ``drafter_logits`` are (vocab,) float32, the latter minus infinity at ids that the drafter
    cannot say and ``None`` where its own positions end before. Where the run drafted by look-up or not at all it is the
    pair's own drafter's. ``texts`` names any id ("#id" where nobody here
    knows it). ``settings`` are those of the place's round, ``seed`` is theirs; ``badge`` says recorded or measured.
    """

    position: int
    target_logits: Logits
    drafter_logits: Logits | None
    texts: Texts
    settings: Mapping[str, Any]
    seed: int
    badge: str


def current_run() -> Run | None:
    """The run that Decode shows, or would open with; None where no recording is here."""
    if "decode" in st.session_state:
        return session.state().run
    opening = recordings.first()
    if opening is None:
        return None
    kept: Run | None = st.session_state.get("opening_run")
    if kept is None or kept.trace is not opening.trace:
        kept = st.session_state.opening_run = session.recorded(opening)
    return kept


def choices(run: Run) -> tuple[Choice, ...]:
    """Every token of the text with the place where it was decided, in order."""
    header, texts, found = run.trace.header, Texts.of(run.trace), []
    ids, shipped = _ids(run.trace), _shipped()
    for position, round_, place in _places(run.trace):
        if position < 1:  # no model can be asked before the first token
            continue
        rejected = place < len(round_.drafts) and round_.drafts[place].fate == "rejected"
        kept = place < round_.kept
        fate = "kept" if kept else "rejected" if rejected else "bonus" if round_.drafts else "plain"
        before = ids[max(len(header.prompt_ids), position - CONTEXT_IDS) : position]
        tail = texts.tail(before)
        label = words.POSITIONS["place" if tail else "first"].format(
            number=position - len(header.prompt_ids) + 1, tail=tail, fate=words.POSITIONS[fate]
        )
        draft = texts(round_.drafts[place].id) if kept or rejected else ""
        told = words.POSITIONS[f"told.{fate}"].format(draft=draft, token=texts(ids[position]))
        instant = shipped is not None and shipped.fits(header.pair, ids, position)
        found.append(Choice(position, label, told, instant))
    return tuple(found)


def in_focus(run: Run) -> int | None:
    """The position of the token that Decode's coin and place are about; None where the text went another way before."""
    found = session.focus(run)
    if found is None:
        return None
    round_, draft = found
    place = round_.kept if draft is None else draft
    return round_.position + place if place < len(round_.emitted) else None


def point(run: Run, position: int) -> None:
    """Put Decode's cursor on the end of a place's round, and pin the place. ``run`` is the one that Decode shows."""
    number, place = next(
        (number, position - round_.position)
        for number, round_ in enumerate(run.trace.rounds)
        if 0 <= position - round_.position < len(round_.emitted)
    )
    events = session.view(run, story=False).timeline.events
    session.move(max(at for at, event in enumerate(events) if event.round == number), story=False)
    session.pick([number, place if place < len(run.trace.rounds[number].drafts) else -1])


def take(run: Run, position: int) -> Laws | str:
    """Both rows at ``position``, or why they cannot be had, in a sentence of plain text.

    Shipped rows are there at once. Others are read by the pair in a turn of its own, which may wait for the models to
    load and for other visitors, and are kept until another place is taken.
    """
    here = next((round_ for at, round_, _ in _places(run.trace) if at == position >= 1), None)
    ids = _ids(run.trace)
    if here is None:
        first, last = max(1, len(run.trace.header.prompt_ids)), len(ids) - 1
        return words.POSITIONS["nowhere" if last >= first else "nothing"].format(asked=position, first=first, last=last)
    settings, shipped = _settings(here), _shipped()
    if shipped is not None and shipped.fits(run.trace.header.pair, ids, position):
        texts = _texts(run, shipped.names)
        target = shipped.target[position]
        drafter = target if settings["drafter"] == "target" else shipped.drafter[position]
        return Laws(position, target, drafter, texts, settings, settings["seed"], words.POSITIONS["recorded"])
    if reason := unavailable(run):
        return reason
    key = run.pair_id, ids[:position], settings["drafter"]
    kept = st.session_state.get("rows_taken")
    if kept is not None and kept[0] == key:
        return replace(kept[1], settings=settings, seed=settings["seed"])
    try:
        read = _read(run, position, settings["drafter"])
    except ValueError as error:
        return words.POSITIONS["refused"].format(reason=error)
    except Exception as error:
        _log.exception("reading a place failed")
        return words.POSITIONS["failed"].format(reason=type(error).__name__)
    if isinstance(read, str):
        return read
    laws = Laws(position, *read, _texts(run, {}), settings, settings["seed"], words.POSITIONS["measured"])
    st.session_state.rows_taken = key, laws
    return laws


def unavailable(run: Run) -> str:
    """Why no place of the run can be read but those whose rows are shipped; empty where they can."""
    if run.fixed:
        return words.POSITIONS["fixed"]
    status = loader().status(run.pair_id)
    if status.state == "failed":
        return words.MESSAGES["failed"].format(reason=status.message)
    return words.POSITIONS["absent"] if status.state == "absent" else ""


def _places(trace: Trace) -> Iterator[tuple[int, Round, int]]:
    """Of every token of the text: its position, its round, and its place in the round."""
    for round_ in trace.rounds:
        for place in range(len(round_.emitted)):
            yield round_.position + place, round_, place


def _ids(trace: Trace) -> tuple[int, ...]:
    return *trace.header.prompt_ids, *trace.text_ids


def _read(run: Run, position: int, drafter: str) -> tuple[Logits, Logits | None] | str:
    """The pair's rows, as soon as it is loaded and free."""
    slot = st.empty()
    if loader().status(run.pair_id).state == "idle":
        loader().start(run.pair_id)
    while (pair := loader().pair(run.pair_id)) is None:
        if reason := unavailable(run):
            return reason
        slot.caption(words.POSITIONS["loading"])
        time.sleep(POLL_S)
    with device_pool().turn(lambda ahead: slot.caption(words.MESSAGES["waiting"].format(before=ahead))):
        from specviz.decoding.decoder import Decoder

        check_ids(pair, run.trace)
        models = ("model", "target") if pair.spec.has_drafter_model else ("target",)
        kind = drafter if drafter in models else models[0]
        target, own, _ = Decoder(pair, run.trace, Settings.from_dict({"drafter": kind})).rows(position)
    slot.empty()
    return target.cpu().numpy(), None if own is None else own.cpu().numpy()


def _texts(run: Run, names: Mapping[int, bytes]) -> Texts:
    """What the run's tokens are called, and those of ``names``; the pair knows the rest, once it is loaded."""
    pair: Pair | None = loader().pair(run.pair_id)
    return Texts({**names, **run.trace.token_bytes()}, other=None if pair is None else pair.tokenizer.bytes)


def _settings(round_: Round) -> dict[str, Any]:
    """The round's settings, every one of them; a file may say what none can be, and then what fits is taken."""
    said = {name: value for name, value in (round_.settings or {}).items() if value is not None}
    try:
        return Settings.from_dict(said).as_dict()
    except (ValueError, TypeError):
        return controls.fitting(said)


def _shipped() -> RawRows | None:
    """The rows that were recorded beside the recording that opens the page."""
    path = recordings.FOLDER / f"{recordings.PICKED}.rows.npz"
    return _loaded(str(path), path.stat().st_mtime_ns) if path.exists() else None


@st.cache_resource(show_spinner=False, max_entries=4)
def _loaded(path: str, modified: int) -> RawRows | None:
    """Read once a process; ``modified`` is part of the key."""
    try:
        return rows.read(Path(path))
    except ValueError:
        _log.exception("the recorded rows cannot be read")
        return None
