"""Decode: a recorded or live run, one event at a time."""

import streamlit as st

from specviz.ui import controls, frame, recordings, session, stepper, words

frame.page_setup("Decode")
head = st.container()
detail = stepper.transport()
wanted = controls.sidebar(recordings.first(), story=detail == "Story")
run = session.current(wanted)
with head:
    frame.heading("Decode", words.LEAD, run)
frame.offer(run, wanted)
stepper.stage(wanted, detail)
