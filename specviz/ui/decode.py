"""What stands over the Decode page: where its numbers come from, where the models stand, what may be done next."""

from __future__ import annotations

import math
from pathlib import Path

import streamlit as st

from specviz.figures.text import visible
from specviz.models import catalogue
from specviz.ui import frame, recordings, session, transport, words
from specviz.ui.controls import Wanted
from specviz.ui.loader import Status, loader, preloads
from specviz.ui.session import Run

_LARGE = Path(__file__).with_name("large.css")
TICK_S = 1.0


def heading(run: Run) -> None:
    """The heading of every page, with the three questions; and where the models stand."""
    if transport.large():
        st.html(_LARGE)
    pair_id = session.pair_id()
    status = loader().status(pair_id)
    ticking = status.state == "loading" or (status.state == "idle" and preloads())
    badges = st.fragment(_badges, key="badges", run_every=TICK_S if ticking else None)
    with frame.heading("Decode", words.LEAD, lambda: badges(run, pair_id, status.state), transport.links):
        if not transport.large():
            transport.size()
    typical = recordings.typical_alpha() if run.recording == recordings.PICKED else None
    if typical is not None and not transport.large():
        st.caption(words.PICKED.format(alpha=typical))
    arriving = status.state == "loading" and status.fraction is not None and not transport.large()
    if status.state in ("absent", "failed") or arriving:
        st.fragment(_fetching, key="fetching", run_every=TICK_S if status.state == "loading" else None)(pair_id)


def _badges(run: Run, pair_id: str, before: str) -> None:
    status = loader().status(pair_id)
    *before_live, origin = session.origin(run)
    # What goes on here runs on this machine, wherever its beginning was recorded.
    pair = loader().pair(pair_id) if run.recording is None else None
    at = pair if pair is not None else run.trace.header
    machine = [visible(part) for part in ((at.device or "").upper()[:40], _short(at.dtype)[:40]) if part]
    frame.badges([*before_live, " · ".join([origin, *machine]), _standing(status)])
    if status.state != before and (status.state in ("ready", "failed") or session.state().goal is not None):
        st.rerun()


def _short(dtype: str | None) -> str:
    return {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}.get(dtype or "", dtype or "")


def _standing(status: Status) -> str:
    standing = words.STATUS["idle" if status.state in ("idle", "absent") else status.state]
    return f"{standing} · {status.seconds:.0f} s" if status.state == "loading" else standing


def _fetching(pair_id: str) -> None:
    """The one download, asked for by hand, and how far it is."""
    status = loader().status(pair_id)
    if status.state == "loading":
        st.progress(status.fraction or 0.0, status.message)
        return
    if status.state == "ready":
        return
    if status.state == "failed":
        text, label = words.MESSAGES["failed"].format(reason=status.message), words.STATUS["retry"]
    else:
        megabytes = math.ceil((catalogue.find(pair_id).download_bytes or 0) / 1e6)
        text, label = words.STATUS["absent"], words.STATUS["fetch"].format(megabytes=megabytes)
    with st.container(horizontal=True, vertical_alignment="center", key="fetch_row"):
        st.text(text, width="content")
        if st.button(label, key="fetch"):
            loader().start(pair_id, fetch=True)
            st.rerun()


def offer(run: Run, wanted: Wanted) -> None:
    """Where the controls were touched and the run stays as it is: go on live, another recording, or keep this one."""
    changed = session.changes(run, wanted)
    if session.follows(run, wanted) or not changed or session.state().goal is not None:
        return
    other = recordings.for_settings(wanted.settings) if run.recording is not None else None
    with st.container(border=True, key="offer"):
        text = words.OFFER["changed" if run.recording is not None else "pair"]
        st.text(text.format(changes=", ".join(changed)))
        with st.container(horizontal=True):
            same_text = session.same_text(run, wanted)
            label = words.OFFER["continue" if same_text else "start"].format(changes=", ".join(changed))
            st.button(label, key="go_live", type="primary", on_click=session.go_live, args=(wanted,))
            if same_text:
                st.button(words.OFFER["start"], key="start_live", on_click=session.start_live, args=(wanted,))
            if other is not None and other.name != run.recording:
                label = words.OFFER["open"].format(name=words.RECORDINGS[other.name])
                st.button(label, key="open_recording", on_click=session.open_recording, args=(other.name,))
            label = words.OFFER["keep" if run.recording is not None else "keep_live"]
            st.button(label, key="keep", on_click=session.keep)
