"""Overlap: bend p and q, or take a place of a run, and try every rule on it."""

import streamlit as st

from specviz.ui import frame, imports

frame.page_setup("Overlap")
imports.numpy_first()

from specviz.ui import bench, overlap, plot  # noqa: E402

overlap.arrival()
top = st.container()
place = overlap.source()
with top:
    overlap.heading(place)
scene = overlap.panels(place)
overlap.sidebar(place)
bench.panel(scene)
plot.library()
