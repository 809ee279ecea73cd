"""What a visitor tries beside the run: it belongs to one place or one round and goes when that is left."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import streamlit as st

from specviz.figures.sentences import Spans


@dataclass(slots=True)
class Extras:
    """``deal`` is what dealing the place ``dealt_at`` many times gave; ``answer`` what asking the places of round
    ``answered_for`` one by one gave, and ``asking`` whether that is still to be done."""

    deal: Any = None
    dealt_at: Hashable = None
    deals: int = 0
    """How often the button was pressed: each press deals with another seed."""
    asking: bool = False
    answer: Spans = ()
    answered_for: Hashable = None
    counted: Any = None
    """The tally that was counted last, and of what."""
    panel: str = ""
    """The panel to bring into view, and how often one was asked for."""
    jumps: int = 0

    def show(self, panel: str) -> None:
        """Bring a panel into view."""
        self.panel, self.jumps = panel, self.jumps + 1


def extras() -> Extras:
    """This visitor's."""
    found: Extras = st.session_state.setdefault("extras", Extras())
    return found
