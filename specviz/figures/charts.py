"""The ground of plotly figures: calm axes in the palette's colours, and text that stays text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from specviz.figures import palette
from specviz.figures.table import Table

FONT = '"Source Sans", "Source Sans Pro", sans-serif'
SIZE = 13
CLEAR = "rgba(0,0,0,0)"


def colour(name: str) -> str:
    """A colour of the palette by its name, "ink" or a meaning such as "only_target", on either page.

    A figure does not know whether the page is light or dark; whoever draws it puts the page's own colour in.
    """
    assert name in palette.MEANINGS or name in GROUNDS
    return f"var(--{name.replace('_', '-')})"


GROUNDS = ("paper", "raised", "ink", "muted", "hairline", "on_colour")


def escaped(text: str) -> str:
    """Text for a label or a hover box: plotly would read it as markup."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def logarithmic(title: str, **settings: Any) -> dict[str, Any]:
    """An axis by powers of ten."""
    return {"title": title, "type": "log", "dtick": 1, "exponentformat": "SI"} | settings


def figure(*, x: dict[str, Any] | None = None, y: dict[str, Any] | None = None, **layout: Any) -> go.Figure:
    """An empty figure; ``x`` and ``y`` are settings of its axes, such as title and type.

    The template is named: importing Streamlit makes one the default whose colours only its own charts can read.
    """
    ink, hairline = colour("ink"), colour("hairline")
    axis: dict[str, Any] = {
        "gridcolor": hairline,
        "linecolor": hairline,
        "zeroline": False,
        "ticks": "outside",
        "tickcolor": hairline,
        "tickfont": {"color": colour("muted")},
        "fixedrange": True,
        "automargin": True,
    }
    ground: dict[str, Any] = {
        "template": "none",
        "paper_bgcolor": CLEAR,
        "plot_bgcolor": CLEAR,
        "font": {"family": FONT, "size": SIZE, "color": ink},
        "margin": {"l": 8, "r": 12, "t": 8, "b": 8},
        "hoverlabel": {"bgcolor": colour("raised"), "bordercolor": hairline, "font": {"color": ink, "family": FONT}},
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "font": {"color": ink}},
        "xaxis": axis | _titled(x, ink),
        "yaxis": axis | _titled(y, ink),
    }
    return go.Figure(layout=ground | layout)  # in one go: plotly checks a figure again at every change


def _titled(axis: dict[str, Any] | None, ink: str) -> dict[str, Any]:
    said = dict(axis or {})
    if isinstance(said.get("title"), str):
        said["title"] = {"text": said["title"], "font": {"color": ink}, "standoff": 6}
    return said


@dataclass(frozen=True, slots=True)
class Panel:
    """A part of the page: a sentence, a figure with its name and its table (or the table alone), lines of numbers, a
    formula."""

    title: str
    story: str
    numbers: tuple[str, ...]
    formula: str
    table: Table
    figure: go.Figure | None = None
    alt: str = ""
    badge: str = "modelled"
