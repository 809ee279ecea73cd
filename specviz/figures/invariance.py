"""Invariance: one prompt and one seed under many drafters, and which texts come out.

Texts are compared byte for byte with what the target writes alone under the same rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from specviz.experiments import Grid, GridRun
from specviz.figures.numbers import count, fraction
from specviz.figures.sentences import Spans
from specviz.figures.table import Table
from specviz.figures.text import Texts, prose
from specviz.figures.twin import SAME_TEXT, side_by_side

Key = tuple[str, str, int]
"""A run of the grid: rule, drafter, gamma."""
HASH = 12
"""Digits of a hash that are written."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One text: whether it is the target's own byte for byte, the reads of the target that it took, and their part of
    the reads that the target alone needs, in [0, 1]."""

    key: Key
    same: bool
    reads: int
    part: float
    name: str


@dataclass(frozen=True, slots=True)
class Matrix:
    """One rule: a row a drafter, a column a gamma; None where that was not decoded. ``why`` says what would look like a
    fault and is none."""

    rule: str
    title: str
    told: str
    why: str
    alone: Cell
    gammas: tuple[int, ...]
    rows: tuple[tuple[str, tuple[Cell | None, ...]], ...]


@dataclass(frozen=True, slots=True)
class Compared:
    """Two texts of the grid: their names and hashes, what they have in common, and how each goes on."""

    told: str
    same: bool
    keys: tuple[Key, Key]
    names: tuple[str, str]
    common: str
    ours: Spans
    theirs: Spans


@dataclass(frozen=True, slots=True)
class Invariance:
    """The whole panel."""

    story: str
    matrices: tuple[Matrix, ...]
    compared: Compared | None
    numbers: tuple[str, ...]
    table: Table


def key_of(run: GridRun) -> Key:
    """How the page names a run."""
    return run.rule, run.drafter, run.gamma


def layout(
    grid: Grid, rules: Mapping[str, str], drafters: Mapping[str, str], chosen: tuple[Key, Key] | None = None
) -> Invariance:
    """The grid, and two of its texts side by side.

    Args:
        grid: at least one rule's target alone in it, else nothing is compared.
        rules: what to call a rule.
        drafters: what to call a drafter.
        chosen: the texts to compare; None compares none.
    """
    named = {key_of(run): name(run, rules, drafters) for run in grid.runs}
    matrices = tuple(m for rule in grid.rules() if (m := _matrix(grid, rule, rules, drafters, named)) is not None)
    compared = None
    if chosen is not None:
        ours, theirs = (next(run for run in grid.runs if key_of(run) == key) for key in chosen)
        compared = _compared(grid, ours, theirs, named)
    return Invariance(_story(matrices), matrices, compared, _numbers(grid), _table(grid, named))


def name(run: GridRun, rules: Mapping[str, str], drafters: Mapping[str, str]) -> str:
    """What the page calls a run."""
    rule = rules.get(run.rule, prose(run.rule))
    if run.drafter == "none":
        return f"{rule}: the target alone"
    return f"{rule}: {drafters.get(run.drafter, run.drafter)}, gamma {run.gamma}"


def _matrix(
    grid: Grid, rule: str, rules: Mapping[str, str], drafters: Mapping[str, str], named: Mapping[Key, str]
) -> Matrix | None:
    alone = grid.alone(rule)
    if alone is None:
        return None
    drafted = [run for run in grid.runs if run.rule == rule and run.drafter != "none"]
    gammas = tuple(sorted({run.gamma for run in drafted}))
    own = grid.text(alone)

    def cell(run: GridRun | None) -> Cell | None:
        if run is None:
            return None
        part = min(run.target_passes / max(alone.target_passes, 1), 1.0)
        return Cell(key_of(run), grid.text(run) == own, run.target_passes, part, named[key_of(run)])

    rows = tuple(
        (drafters.get(one, one), tuple(cell(grid.run(rule, one, gamma)) for gamma in gammas))
        for one in dict.fromkeys(run.drafter for run in drafted)
    )
    cells = [one for _, row in rows for one in row if one is not None]
    itself = cell(alone)
    assert itself is not None
    return Matrix(rule, rules.get(rule, prose(rule)), _told(grid, rule, cells), _why(grid, rule), itself, gammas, rows)


def _told(grid: Grid, rule: str, cells: list[Cell]) -> str:
    """What became of the rule's texts."""
    if not cells:
        return "Nothing was drafted yet."
    same = sum(cell.same for cell in cells)
    reads = sorted(cell.reads for cell in cells)
    spent = f"{reads[0]} to {reads[-1]} reads" if reads[0] < reads[-1] else f"{reads[0]} reads"
    if same == len(cells):
        return f"{fraction(same, len(cells))} texts are the target’s own, byte for byte; {spent}."
    different = len({grid.sha256(run) for run in grid.runs if run.rule == rule})
    if rule in SAME_TEXT or not grid.temperature:
        return (
            f"{fraction(same, len(cells))} texts are the target’s own: the others part where two tokens nearly tie, or "
            f"there is a fault; {spent}."
        )
    return (
        f"{fraction(same, len(cells))} texts are the target’s own, {different} different ones in all: the chances "
        f"stay, the words do not; {spent}."
    )


def _why(grid: Grid, rule: str) -> str:
    """Why another text comes out even where the target drafts for itself; empty where none does."""
    alone, itself = grid.alone(rule), [run for run in grid.runs if (run.rule, run.drafter) == (rule, "target")]
    differs = alone is not None and any(grid.text(run) != grid.text(alone) for run in itself)
    if not differs or rule in SAME_TEXT or not grid.temperature:
        return ""
    return (
        "Even the target itself as drafter writes another text, though every draft is kept: drafts are drawn with "
        "other random numbers than the target’s own words, so the chances are the same and the words are not."
    )


def _story(matrices: tuple[Matrix, ...]) -> str:
    told = [(m.title, [cell.same for _, row in m.rows for cell in row if cell is not None]) for m in matrices]
    kept = [(title, len(same)) for title, same in told if same and all(same)]
    changed = [title for title, same in told if not all(same)]
    if kept:
        title, texts = kept[0]
        stays = f"each of the {count(texts)} texts" if texts > 1 else "the one text so far"
        held = f"under {title} only the number of reads changes; {stays} is the target’s own, byte for byte."
        return f"Swap the drafter, change gamma: {held}" + (
            f" Under {changed[0]} the text may change, and does." if changed else ""
        )
    if changed:
        return "Swap the drafter, change gamma: here the text changes with them."
    return "Swap the drafter, change gamma: so far there is no text to compare with what the target writes alone."


def telling(grid: Grid) -> tuple[Key, Key] | None:
    """The texts to open with: the target alone under the first rule with drafts, and the one that took the fewest reads
    there; None where nothing was drafted."""
    for rule in grid.rules():
        drafted = [run for run in grid.runs if run.rule == rule and run.drafter != "none"]
        if (alone := grid.alone(rule)) is not None and drafted:
            return key_of(alone), key_of(min(drafted, key=lambda run: run.target_passes))
    return None


def _compared(grid: Grid, ours: GridRun, theirs: GridRun, named: Mapping[Key, str]) -> Compared:
    texts = Texts({token_id: bytes.fromhex(text) for token_id, text in (grid.token_bytes or {}).items()})
    both = side_by_side(ours.ids, theirs.ids, texts)
    raw = grid.text(ours), grid.text(theirs)
    names = tuple(f"{named[key_of(run)]} · {_reads(run)} · sha256 {grid.sha256(run)[:HASH]}" for run in (ours, theirs))
    if raw[0] == raw[1]:
        told = f"The same {len(raw[0]):,} bytes, {len(ours.ids):,} tokens."
    else:
        agree = next((i for i, (a, b) in enumerate(zip(ours.ids, theirs.ids, strict=False)) if a != b), None)
        told = (
            f"The same as far as both go: one has {len(ours.ids):,} tokens and the other {len(theirs.ids):,}."
            if agree is None
            else "They part at the first token."
            if not agree
            else f"The same for {count(agree)} {'token' if agree == 1 else 'tokens'}, then they part."
        )
    return Compared(
        told,
        raw[0] == raw[1],
        (key_of(ours), key_of(theirs)),
        (names[0], names[1]),
        both.common,
        both.ours,
        both.theirs,
    )


def _reads(run: GridRun) -> str:
    return "1 read" if run.target_passes == 1 else f"{run.target_passes} reads"


def _numbers(grid: Grid) -> tuple[str, ...]:
    tokens = max((len(run.ids) for run in grid.runs), default=0)
    return (
        f"{prose(grid.pair)} on {prose(grid.device)}, seed {grid.seed}, temperature {grid.temperature:g}, "
        f"{tokens} tokens a text. Reads: of the target, the prompt’s left out.",
    )


def _table(grid: Grid, named: Mapping[Key, str]) -> Table:
    own = {rule: alone for rule in grid.rules() if (alone := grid.alone(rule)) is not None}
    return Table(
        "Every text of the grid",
        ("text", "reads of the target", "of the drafter", "tokens", "sha256", "beside the target alone"),
        tuple(
            (
                named[key_of(run)],
                str(run.target_passes),
                str(run.drafter_passes),
                str(len(run.ids)),
                grid.sha256(run)[:HASH],
                "" if run.rule not in own else "same" if grid.text(run) == grid.text(own[run.rule]) else "differs",
            )
            for run in grid.runs
        ),
    )
