"""Files that a command is to write."""

from __future__ import annotations

from pathlib import Path


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


def check_folder(path: Path) -> None:
    """Make the folder, if it is not there.

    Raises:
        ValueError: it cannot be made; says why.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"--out must be a folder that can be made, got {str(path)!r}: {error.strerror}") from error
