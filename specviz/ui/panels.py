"""Panels side by side: a title with its badge, one plain sentence, a figure or a table, and what the detail adds."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import streamlit as st

from specviz.figures.charts import Panel
from specviz.figures.table import Table
from specviz.ui import plot, words


def row(*made: tuple[str, Callable[[], Panel]]) -> list[Any]:
    """Panels by their keys, each on a card; what makes one may draw controls, which stand under its sentence.

    Returns the cards: what a page adds to one stands under its panel.
    """
    cards = []
    for (key, make), column in zip(made, st.columns(len(made), gap="small"), strict=True):
        card = column.container(border=True, height="stretch", key=f"card_{key}")
        with card:
            _draw(key, make)
        cards.append(card)
    return cards


def _draw(key: str, make: Callable[[], Panel]) -> None:
    detail = words.DETAILS.index(st.session_state.get("detail") or words.DETAILS[1])
    top, control = st.container(), st.container()
    with control:  # what the panel shows may depend on it
        panel = make()
    with top:
        with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
            st.subheader(panel.title, anchor=False, width="content")
            st.badge(panel.badge, color="gray")
        st.text(panel.story)
    # Every part has its place, empty or not: while a page works on, what moved up would stand beside leftovers.
    table = panel.table if panel.figure is None and panel.table.rows else None
    if panel.figure is not None:
        plot.draw(panel.figure, key=f"plot_{key}", alt=panel.alt, table=panel.table)
    else:
        st.markdown(markdown(table) if table else "")  # an empty place would leave a figure of before standing
    shown(st.caption, words.literal(table.caption) if table else "")
    shown(st.text, "\n\n".join(panel.numbers) if detail else "")
    shown(partial(st.code, language=None, wrap_lines=True), panel.formula if detail > 1 else "")


def shown(draw: Callable[[str], Any], text: str) -> None:
    """Draw a text, or hold its place where there is none."""
    if text:
        draw(text)
    else:
        st.empty()


def markdown(table: Table) -> str:
    """The table in Markdown, its cells as plain text."""
    rows = [table.columns, tuple("---" for _ in table.columns)]
    lines = [[cell if cell == "---" else words.literal(cell) for cell in row] for row in (*rows, *table.rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
