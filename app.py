"""Decode: a recorded or live run, one event at a time."""

import streamlit as st

from specviz.ui import controls, decode, frame, memory, recordings, session, sharing, stage, transport

frame.page_setup("Decode")
opening = recordings.first()
arrival = sharing.arrival(opening)  # before anything reads the controls: it sets them
wanted = controls.read(opening)
run = session.current(wanted, arrival)
top, place = st.container(), st.container()
bare = session.bare()

if bare:  # what people came for goes to the browser first; the controls follow when it is painted
    with place:
        stage.stage(wanted)
with top:
    decode.heading(run)
    transport.transport()
    decode.offer(run, wanted)
if not bare:  # slow work last, so that the frame stands still
    controls.sidebar(opening, wanted)
    with st.sidebar:
        sharing.copy_link(run, wanted)
        sharing.files(run)
    with place:
        stage.stage(wanted)
if controls.read(opening) != wanted:  # the address asked for something else
    st.rerun()
session.settle(unfinished=bare)
if not bare:
    memory.freeze_once()
