"""Panels side by side: a title with its badge, one plain sentence, a figure or a table, and what the detail adds."""

from __future__ import annotations

from collections.abc import Callable
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
    if panel.figure is not None:
        plot.draw(panel.figure, key=f"plot_{key}", alt=panel.alt, table=panel.table)
    else:
        with _afresh():
            if panel.table.rows:
                st.markdown(markdown(panel.table))
                st.caption(words.literal(panel.table.caption))
    with _afresh():
        if detail:
            for line in panel.numbers:
                st.text(line)
        if detail > 1:
            st.code(panel.formula, language=None, wrap_lines=True)


def _afresh() -> Any:
    """A container in which nothing of before stays: a page that works on for long would else keep what is left over."""
    return st.empty().container()


def markdown(table: Table) -> str:
    """The table in Markdown, its cells as plain text."""
    rows = [table.columns, tuple("---" for _ in table.columns)]
    lines = [[cell if cell == "---" else words.literal(cell) for cell in row] for row in (*rows, *table.rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
