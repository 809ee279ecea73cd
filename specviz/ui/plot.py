"""Plotly figures on a page: drawn in place, so that zoom and selection outlive a change, with a table under each.

The library is the one that the installed plotly brings. It travels once a page, in a component of its own that a page
mounts last (:func:`library`); nothing is asked of another host.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import plotly
import streamlit as st

from specviz.figures import palette
from specviz.figures.table import Table
from specviz.ui import components, words

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_LIBRARY = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
_CSS = "\n".join((palette.css(), components.source("common.css"), components.source("plot.css")))

# Without a shadow root, for plotly's own style sheet must reach what it draws; our rules are nested and stay here.
_plot = st.components.v2.component(
    "specviz_plot",
    html=components.source("plot.html"),
    css=f".plot {{\n{_CSS}\n}}",
    js=components.script("plot.js"),
    isolate_styles=False,
)
_library = st.components.v2.component(
    "specviz_plot_library",
    html="<span hidden>\n</span>",
    js=_LIBRARY.read_text(encoding="utf-8")
    + "\nglobalThis.SpecvizPlotly = globalThis.Plotly;\nexport default function () {}\n",
)


def draw(figure: Figure, *, key: str, alt: str, table: Table, height: int = 340) -> None:
    """Draw ``figure``.

    Args:
        figure: from :mod:`specviz.figures`, on the ground of :func:`specviz.figures.charts.figure`.
        key: names the figure on its page; the same key is the same node.
        alt: what it shows, in a sentence: its name for whoever does not see it.
        table: the same numbers as a table, folded under it.
        height: pixels, without the table.
    """
    figure.update_layout(height=height, uirevision=key)
    rows = {"caption": table.caption, "columns": table.columns, "rows": table.rows}
    data = {"figure": figure.to_json(), "alt": alt, "table": rows, "height": height, "word": words.TABLE}
    _plot(key=key, data=(data,))


def library() -> None:
    """Send plotly.js to this browser: the last statement of a page that draws figures."""
    _library(key="plot_library")
