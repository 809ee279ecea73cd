"""A page with nothing but the place panel of a recorded run, at the event in its address."""

import streamlit as st

from specviz import trace as traces
from specviz.figures import place
from specviz.figures.events import Timeline
from specviz.figures.text import Texts
from specviz.ui import components, recordings

trace = traces.read(recordings.FOLDER / f"{st.query_params['run']}.jsonl")
timeline = Timeline(trace)
event = timeline.events[int(st.query_params["moment"])]
round_ = trace.rounds[event.round]
selected = event.place if event.place is not None else min(round_.kept, len(round_.drafts) - 1)
texts = Texts.of(trace)
if "hostile" in st.query_params:
    texts = Texts(dict.fromkeys(trace.token_bytes(), st.query_params["hostile"].encode()))
components.place(
    place.layout(trace, round_, event, texts, selected=selected if round_.drafts else None),
    detail=st.query_params.get("detail", "Numbers"),
)
