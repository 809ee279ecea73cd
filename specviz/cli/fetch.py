"""``python -m specviz fetch``: the embedded target, fetched and converted once."""

from __future__ import annotations

import argparse

from specviz.cli.progress import tell
from specviz.models import store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """It takes none."""
    parser.description = "Fetch the embedded target (93 MB, once) and convert it; prints the folder it is in."


def run(args: argparse.Namespace) -> int:
    """Fetch unless it is there already; print the folder.

    Raises:
        FetchError: it cannot be had; the message says what to do.
    """
    print(store.fetch_embedded(tell))
    return 0
