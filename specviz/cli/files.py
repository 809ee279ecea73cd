"""Files that a command is to write."""

from __future__ import annotations

from pathlib import Path


def check_budget(max_new_tokens: int) -> None:
    """Refuse a budget that no text can have, before the weights are read.

    Raises:
        ValueError: it is below 1.
    """
    if max_new_tokens < 1:
        raise ValueError(f"--max-new-tokens must be a whole number from 1, got {max_new_tokens!r}")


def check_writable(path: Path) -> None:
    """Find out before the work is done.

    Raises:
        ValueError: the file cannot be written; says why.
    """
    is_new = not path.exists()
    try:
        with path.open("a", encoding="utf-8"):
            pass
        if is_new:  # a run that is refused later leaves no empty trace behind
            path.unlink()
    except OSError as error:
        raise ValueError(f"--out must be a file that can be written, got {str(path)!r}: {error.strerror}") from error
