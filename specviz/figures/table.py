"""The text twin of a figure: the same numbers as a table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Table:
    """A caption, the columns' names, and rows of plain text, one cell a column."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"a row of {self.caption!r} has {len(row)} cells, expected {len(self.columns)}")
