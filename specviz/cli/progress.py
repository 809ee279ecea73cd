"""Progress on standard error."""

from __future__ import annotations

import sys
import time
from typing import Protocol

WIPE = "\r\x1b[K"
"""Makes a terminal forget its current line."""
TELL_S = 0.5


class Job(Protocol):
    """Work in small steps."""

    @property
    def total(self) -> int:
        """How much there is to do."""

    @property
    def done(self) -> int:
        """How much of it is done."""

    @property
    def finished(self) -> bool:
        """Whether all of it is."""

    def step(self) -> None:
        """Do a little."""


def tell(sentence: str, fraction: float | None) -> None:
    """One line of progress; on a terminal it replaces the one before."""
    done = "" if fraction is None else f" {fraction:4.0%}"
    if sys.stderr.isatty():
        print(f"{WIPE}{sentence}{done}", end="\n" if fraction == 1.0 else "", file=sys.stderr, flush=True)
    elif fraction in (None, 0.0, 1.0):
        print(f"{sentence}{done}", file=sys.stderr, flush=True)


def carry_out(job: Job, doing: str, over: str) -> int:
    """Step until the job is finished, and tell how far it is; returns the exit status: 130 if it was interrupted."""
    told = 0.0
    try:
        tell(doing, 0.0)
        while not job.finished:
            job.step()
            if time.monotonic() - told > TELL_S:
                told = time.monotonic()
                tell(doing, job.done / job.total * 0.999)
    except KeyboardInterrupt:
        print("\ninterrupted: what was measured up to here follows", file=sys.stderr)
        return 130
    tell(over, 1.0)
    return 0
