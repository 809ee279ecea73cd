"""One colour and one pattern for each meaning, on every page.

A meaning is never told by colour alone: it also has a pattern (or a glyph and a word, for fates). The colours are in
pairs, for the light and the dark page.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Pattern = Literal["solid", "dotted", "hollow", "hatch", "outline"]


@dataclass(frozen=True, slots=True)
class Colour:
    """A colour as ``#rrggbb`` on the light and on the dark page."""

    light: str
    dark: str

    @property
    def css(self) -> str:
        """A CSS value that follows the page."""
        return f"light-dark({self.light}, {self.dark})"


@dataclass(frozen=True, slots=True)
class Meaning:
    """What an area of this colour and pattern stands for."""

    colour: Colour
    pattern: Pattern
    word: str


@dataclass(frozen=True, slots=True)
class Fate:
    """What happened to a token: its glyph and its word."""

    glyph: str
    word: str


PAPER = Colour("#ffffff", "#0f1216")
RAISED = Colour("#f6f7f9", "#14181d")
INK = Colour("#1b2027", "#e9ecf0")
MUTED = Colour("#59626e", "#9aa3ae")
HAIRLINE = Colour("#dfe3e8", "#2a3038")
ON_COLOUR = Colour("#1b2027", "#0f1216")
"""Text on a full colour: dark on both pages."""

MEANINGS = {
    "target": Meaning(Colour("#0072b2", "#4b9fe3"), "solid", "the target, p"),
    "drafter": Meaning(Colour("#d98800", "#f2a72e"), "solid", "the drafter, q"),
    "both": Meaning(Colour("#009e73", "#3ecf8e"), "solid", "both (shared, kept)"),
    "only_target": Meaning(Colour("#8f4aa5", "#d09be0"), "dotted", "only the target (correction)"),
    "only_drafter": Meaning(Colour("#d98800", "#f2a72e"), "hollow", "only the drafter"),
    "rejected": Meaning(Colour("#b93a17", "#ff8a6b"), "outline", "rejected"),
    "unjudged": Meaning(Colour("#8b94a0", "#6f7985"), "hatch", "never judged"),
}
"""The bonus is drawn from p: it wears the target's blue, with a star."""

FATES = {
    "kept": Fate("✓", "kept"),
    "rejected": Fate("✗", "rejected"),
    "unjudged": Fate("–", "never judged"),
    "correction": Fate("↺", "correction"),
    "bonus": Fate("★", "bonus"),
    "waiting": Fate("?", "waiting"),
    "plain": Fate("·", "plain read"),
}

TINT = 0.14
"""Share of a meaning's colour in the ground behind a token; the token itself is written in ink."""


def css() -> str:
    """The palette as CSS custom properties, for a component's root."""
    colours = {
        "paper": PAPER,
        "raised": RAISED,
        "ink": INK,
        "muted": MUTED,
        "hairline": HAIRLINE,
        "on-colour": ON_COLOUR,
    }
    colours |= {name.replace("_", "-"): meaning.colour for name, meaning in MEANINGS.items()}
    lines = [f"  --{name}: {colour.css};" for name, colour in colours.items()]
    return "\n".join([":host, .specviz {", *lines, f"  --tint: {TINT:.0%};", "}"])
