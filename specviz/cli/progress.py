"""Progress on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:  # what every command imports is small, or an early Ctrl-C would find it still importing
    from specviz.experiments import Job

T = TypeVar("T")
WIPE = "\r\x1b[K"
"""Makes a terminal forget its current line."""
TELL_S = 0.5


def tell(sentence: str, fraction: float | None) -> None:
    """One line of progress; on a terminal it replaces the one before."""
    done = "" if fraction is None else f" {fraction:4.0%}"
    if sys.stderr.isatty():
        print(f"{WIPE}{sentence}{done}", end="\n" if fraction == 1.0 else "", file=sys.stderr, flush=True)
    elif fraction in (None, 0.0, 1.0):
        print(f"{sentence}{done}", file=sys.stderr, flush=True)


def carry_out(job: Job, result: Callable[[], T | None], doing: str, over: str) -> tuple[T, int]:
    """Step until the job is finished, and tell how far it is.

    Returns:
        The result so far and the exit status: 130 if it was interrupted.

    Raises:
        KeyboardInterrupt: it was interrupted before there was any.
    """
    told, status = 0.0, 0
    try:
        tell(doing, 0.0)
        while not job.finished:
            job.step()
            if job.done and time.monotonic() - told > TELL_S:
                told = time.monotonic()
                tell(doing, job.done / job.total * 0.999)
        tell(over, 1.0)
    except KeyboardInterrupt:
        status = 130
    if (found := result()) is None:
        raise KeyboardInterrupt
    if status:
        print("\ninterrupted: what was done up to here follows", file=sys.stderr)
    return found, status
