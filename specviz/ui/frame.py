"""What every page has: its name, its style, the way to the other pages, one heading, and badges."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import streamlit as st
from streamlit.errors import StreamlitPageNotFoundError
from streamlit.runtime.scriptrunner import get_script_run_ctx

from specviz.ui import components, words

_STYLE = Path(__file__).with_name("page.css")
_CHECKOUT = Path(__file__).parents[2]
SHARED = ("detail", "accelerator", "priced", "count")
"""Keys of controls that several pages have."""


def page_setup(title: str) -> None:
    """The first statement of every page: it stands alone, also when it is the first one that a visitor opens."""
    st.set_page_config(page_title=f"{title} · specviz", layout="wide")
    st.html(_STYLE)
    _carry(title)
    with st.sidebar, st.container(gap="xxsmall", key="pages"):
        st.markdown("**specviz**")
        # A script that is not app.py (a test may run one) knows no other pages.
        with suppress(StreamlitPageNotFoundError):
            for name, script in words.PAGES.items():
                if (_CHECKOUT / script).exists():
                    st.page_link(script, label=name)


def went_back() -> bool:
    """Whether the browser's Back or Forward brought this run: what the address says is then what the page shows."""
    context = get_script_run_ctx()
    return context is not None and context.is_history_navigation


def _carry(title: str) -> None:
    """Controls that several pages have stand on this page as they did on the one before.

    What a link set and nobody touched since is otherwise at its default again when the next page draws the control.
    """
    if st.session_state.get("page", title) != title:
        for key in SHARED:
            if key in st.session_state:
                st.session_state[key] = st.session_state[key]
    st.session_state.page = title


@contextmanager
def heading(
    title: str, lead: str, badges: Callable[[], None], links: Callable[[], None] | None = None
) -> Iterator[None]:
    """The page's one h1, its ``badges`` and, at the end of the row, what is drawn inside the ``with``; then the lead
    with ``links`` under it."""
    with st.container(horizontal=True, vertical_alignment="center", gap="medium", key="heading"):
        st.title(title, anchor=False, width="content")
        badges()
        yield
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="lead"):
        st.markdown(lead, width="content")
        if links is not None:
            links()


def badges(texts: Sequence[str]) -> None:
    """Where the page's numbers come from: the row beside the heading."""
    components.badges(texts, key="badge_row")


def detail() -> str:
    """The control of how much is shown: Story, Numbers or Formulas; one for all pages, and part of the address."""
    return st.segmented_control(
        words.BUTTONS["detail"],
        words.DETAILS,
        default=words.DETAILS[1],
        required=True,
        key="detail",
        bind="query-params",
        label_visibility="collapsed",
    )
