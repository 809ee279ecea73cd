"""Progress on standard error."""

from __future__ import annotations

import sys

WIPE = "\r\x1b[K"
"""Makes a terminal forget its current line."""


def tell(sentence: str, fraction: float | None) -> None:
    """One line of progress; on a terminal it replaces the one before."""
    done = "" if fraction is None else f" {fraction:4.0%}"
    if sys.stderr.isatty():
        print(f"{WIPE}{sentence}{done}", end="\n" if fraction == 1.0 else "", file=sys.stderr, flush=True)
    elif fraction in (None, 0.0, 1.0):
        print(f"{sentence}{done}", file=sys.stderr, flush=True)
