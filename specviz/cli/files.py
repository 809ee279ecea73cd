"""Files that a command reads or is to write."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from specviz.experiments import MOST_BYTES

T = TypeVar("T")


def read(name: str, path: Path, reader: Callable[[Path], T]) -> T:
    """What ``reader`` finds in the file that the argument ``name`` names.

    Raises:
        ValueError: it cannot be read; names the file and says why.
    """
    try:
        return reader(path)
    except OSError as error:
        raise ValueError(f"{name} must be a file that can be read, got {str(path)!r}: {error.strerror}") from error
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def write(path: Path, text: str) -> None:
    """Write what a page opens; where it is too much for one, say so."""
    content = text.encode()
    path.write_bytes(content)
    if len(content) > MOST_BYTES:
        print(f"{path} has {len(content) / 1e6:.1f} MB; a page opens {MOST_BYTES / 1e6:g} MB at most", file=sys.stderr)


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


def check_folder(path: Path, names: Sequence[str]) -> None:
    """Find out whether these files can be written into the folder; what is not there yet is not made.

    Raises:
        ValueError: it cannot be made, or a file in it cannot be written; says why.
    """
    new = [folder for folder in (path, *path.parents) if not folder.exists()]
    try:
        path.mkdir(parents=True, exist_ok=True)
        for name in names:
            check_writable(path / name)
    except OSError as error:
        raise ValueError(f"--out must be a folder that can be made, got {str(path)!r}: {error.strerror}") from error
    finally:
        for folder in filter(Path.exists, new):  # the innermost first
            folder.rmdir()
