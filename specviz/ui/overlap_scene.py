"""What the upper half of the Overlap page hands to its lower half: one frozen place and its entrants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from specviz.losslessness import Entrant
    from specviz.probability import Array


@dataclass(frozen=True, slots=True)
class Scene:
    """One place, before any token is drawn.

    Attributes:
        entrants: every rule and, after them, the wrong drafts, each with the laws that it is given here.
        labels: the tokens by name. By hand one for each id. Of a trace one for each of ``shown``.
        shown: the ids that ``labels`` name, the likeliest first where the vocabulary is large.
        p: the target's law, shape (vocab,), float64.
        q: the law that the drafter draws from, shape (vocab,), float64.
        by_hand: bent by hand (2 to 12 tokens); else a place of a run, with its whole vocabulary.
        badge: modelled, recorded or measured.
        key: changes whenever the place does.
        detail: Story, Numbers or Formulas.
    """

    entrants: tuple[Entrant, ...]
    labels: tuple[str, ...]
    shown: tuple[int, ...]
    p: Array
    q: Array
    by_hand: bool
    badge: str
    key: str
    detail: str
