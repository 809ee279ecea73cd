"""Tables on standard output."""

from __future__ import annotations

from specviz.figures.table import Table


def show(table: Table) -> None:
    """Print it, the first column to the left and the others to the right, and an empty line."""
    rows = (table.columns, *table.rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    print(table.caption)
    for name, *cells in rows:
        right = (cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))
        print("  " + "  ".join((name.ljust(widths[0]), *right)).rstrip())
    print()
