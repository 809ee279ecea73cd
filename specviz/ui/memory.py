"""Keeping a rerun short.

Streamlit collects garbage after every run of a script and holds the interpreter while it does: a walk over every object
there is, 100 ms with a recorded run and more with torch, in the way of the very messages that the run produced. What
stays for the life of the process is therefore taken out of that walk.
"""

from __future__ import annotations

import gc

import streamlit as st


def freeze() -> None:
    """Take everything alive out of future collections; to be called after something large came to stay."""
    gc.collect()
    gc.freeze()


@st.cache_resource(show_spinner=False)
def freeze_once() -> None:
    """The same, once a process."""
    freeze()
