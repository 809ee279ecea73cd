"""The panel that prices the run: what was priced last is kept, so that a step costs little."""

from __future__ import annotations

from dataclasses import dataclass, field

import streamlit as st

from specviz.figures import lanes
from specviz.figures.lanes import Ran, Row
from specviz.figures.sentences import Spans
from specviz.figures.text import visible
from specviz.hardware.accelerators import ACCELERATORS
from specviz.hardware.cost import Count
from specviz.hardware.ledger import Ledger, Summary
from specviz.hardware.shapes import PRICED_PAIRS
from specviz.models.catalogue import EMBEDDED
from specviz.ui import components, controls, words
from specviz.ui.controls import Wanted
from specviz.ui.session import Run

SHAPES_OF = {
    EMBEDDED: "smollm2-135m+embedded-drafter",
    "qwen3-8b": "qwen3-8b+qwen3-0.6b",
    "llama-3.1-8b": "llama-3.1-8b+llama-3.2-1b",
}
"""The priced pair that a pair on offer is."""
MOST_NAME = 60


@dataclass(slots=True)
class Kept:
    """The ledger that was asked for last, and what its first rounds come to, by how many they are."""

    chosen: dict[str, str]
    ledger: Ledger
    rows: tuple[Row, ...]
    sums: dict[int, tuple[Summary, tuple[float, ...]]] = field(default_factory=dict)


def draw(run: Run, wanted: Wanted, measured: Spans) -> None:
    """The panel and its controls; ``measured`` is what this machine took, in words."""
    kept = _kept(run)
    complete = lanes.over(kept.ledger, run.event)
    summary, expected = _sums(kept, complete)
    drafted = any(round_.drafts for round_ in run.trace.rounds[:complete])
    alone = ((words.LANES["no_drafts"], ""),) if complete and not drafted else ()
    layout = lanes.layout(
        kept.ledger,
        run.event,
        ran(run, kept.chosen["priced"]),
        summary=summary,
        expected=expected,
        rows=kept.rows,
        story=wanted.story,
        gamma=_other_gamma(run, wanted, complete),
        measured=measured or alone,
    )
    components.lanes(layout, detail=wanted.detail)
    if not wanted.story:
        with st.container(horizontal=True, gap="small", key="pricing"):
            controls.pricing()


def speed(run: Run, wanted: Wanted) -> float | None:
    """The expected speed over the target alone, modelled, at the gamma that is set; None where too little is known."""
    kept = _kept(run)
    complete = lanes.over(kept.ledger, run.event)
    gamma = wanted.settings["gamma"]
    return lanes.speed_at(kept.ledger, _sums(kept, complete)[0], gamma, complete) if gamma else None


def ran(run: Run, priced: str) -> Ran:
    """The pair of the run by name, and whether it is the one that is priced."""
    header = run.trace.header
    spec = controls.offered().get(header.pair or "")
    if spec is None:
        return Ran(visible(header.pair or "–")[:MOST_NAME], visible(header.drafter or "–")[:MOST_NAME])
    target, _, drafter = spec.name.partition(" with ")
    return Ran(target, drafter.removeprefix("a ") or spec.drafter, SHAPES_OF.get(spec.id) == priced)


def _kept(run: Run) -> Kept:
    """The ledger of the run at the chosen prices; a longer run prices its new rounds only."""
    chosen = controls.price()
    kept: Kept | None = st.session_state.get("price_kept")
    if kept is None or kept.chosen != chosen:
        pair, device = PRICED_PAIRS[chosen["priced"]], ACCELERATORS[chosen["accelerator"]]
        count: Count = "read" if chosen["count"] == "read" else "stored"
        ledger = Ledger(run.trace, device.times(pair.devices), pair.target, pair.drafter, count=count)
    elif kept.ledger.trace is not run.trace:
        ledger = kept.ledger.grown(run.trace)
    else:
        return kept
    kept = st.session_state.price_kept = Kept(chosen, ledger, lanes.rows_of(ledger))
    return kept


def _sums(kept: Kept, complete: int) -> tuple[Summary, tuple[float, ...]]:
    if complete not in kept.sums:
        kept.sums[complete] = kept.ledger.summary(stop=complete), lanes.expectation(kept.ledger, complete)
    return kept.sums[complete]


def _other_gamma(run: Run, wanted: Wanted, complete: int) -> int | None:
    """The gamma that is set, where the rounds so far had another and were drafted by the same."""
    own = run.trace.rounds[complete - 1].settings if complete else None
    if not own or own.get("drafter", "model") != wanted.settings["drafter"]:
        return None
    gamma = int(wanted.settings["gamma"])
    return gamma if own.get("gamma", gamma) != gamma else None
