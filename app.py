"""Decode: a recorded or live run, one event at a time."""

import streamlit as st

from specviz.ui import controls, frame, recordings, session, stepper, words

frame.page_setup("Decode")
opening = recordings.first()
wanted = controls.read(opening)
run = session.current(wanted)
heading, buttons, offer = st.container(), st.container(), st.container()

# What people came for goes to the browser first; its controls follow while it is painted.
stepper.stage(wanted)
with buttons:
    stepper.transport()
with heading:
    frame.heading("Decode", words.LEAD, run)
with offer:
    frame.offer(run, wanted)
if not session.bare():
    controls.sidebar(opening, wanted)
if controls.read(opening) != wanted:  # the address asked for something else
    st.rerun()
session.settle()
