"""A page with nothing but the coin panel of a recorded run, at the event in its address."""

import streamlit as st

from specviz import trace as traces
from specviz.figures import coin
from specviz.figures.events import Timeline
from specviz.figures.text import Texts
from specviz.ui import components, recordings, words

trace = traces.read(recordings.FOLDER / f"{st.query_params.get('run', 'sampling')}.jsonl")
timeline = Timeline(trace)
event = timeline.events[st.session_state.setdefault("moment", int(st.query_params["moment"]))]
asked = st.session_state.get("coin", {}).get("asked")


def step() -> None:
    """To the next event."""
    st.session_state.moment += 1


st.button("next event", on_click=step, shortcut="Right")
components.coin(
    coin.layout(trace.rounds[event.round], event, Texts.of(trace), selected=event.place, trace=trace, would_be=True),
    detail=words.DETAILS[1],
    answer=coin.one_at_a_time(5, 2e-5, True, 0.105, 0.295) if asked is not None else (),
    on_thrown=lambda: None,
    on_asked=lambda: None,
)
st.code(str(st.session_state.get("coin", {}).get("thrown")), language=None)
