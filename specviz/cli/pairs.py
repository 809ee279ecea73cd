"""``python -m specviz pairs``: what can be decoded here."""

from __future__ import annotations

import argparse

from specviz.models import catalogue, store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """It takes none."""
    parser.description = f"List the pairs on offer, those of the file that {catalogue.PAIRS_VARIABLE} names included."


def run(args: argparse.Namespace) -> int:
    """Print a line a pair: id, name, what fetching costs, note.

    Raises:
        ValueError: the file of pairs is wrong.
    """
    for spec in catalogue.pairs().values():
        if spec.id == catalogue.EMBEDDED and store.embedded_target() is not None:
            size = "on this machine"
        elif spec.download_bytes is None:
            size = "local"
        else:
            size = (
                f"{spec.download_bytes / 1e9:.1f} GB"
                if spec.download_bytes >= 1e9
                else f"{spec.download_bytes / 1e6:.0f} MB"
            )
        print("\t".join([spec.id, spec.name, size, spec.note]))
    return 0
