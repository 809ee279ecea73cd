"""``python -m specviz decode|rows|fetch|pairs|train|bench|profile|sweep|grid``.

Standard output holds the result only; progress and errors go to standard error. Bad input exits 2 with one line.
"""

from __future__ import annotations

import argparse
import importlib
import io
import logging
import sys
from collections.abc import Sequence
from typing import NoReturn

from specviz.cli.progress import WIPE

COMMANDS = {
    "decode": "decode a prompt and write the trace that the page draws",
    "rows": "write a trace's telling places whole, for the laboratories",
    "fetch": "fetch the embedded target and convert it, once",
    "pairs": "list the pairs on offer",
    "train": "distil a drafter from the embedded target",
    "bench": "measure the app on this machine",
    "profile": "measure this machine: bandwidth, arithmetic, and reads by width",
    "sweep": "decode a prompt set under every gamma, and drafts that stop early",
    "grid": "decode one prompt with one seed under every drafter, and compare the texts",
}


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Print ``message`` to standard error and exit with 2."""
        self.exit(2, f"{self.prog}: {message}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return _run(given)
    except KeyboardInterrupt:  # also while what the command needs is imported, which takes seconds
        return _fail(" ".join(given[:1]), "interrupted", 130)


def _run(given: list[str]) -> int:
    parser = _Parser(prog="specviz", description="See speculative decoding.", allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True, metavar="|".join(COMMANDS), parser_class=_Parser)
    for name, summary in COMMANDS.items():
        command = commands.add_parser(name, help=summary, allow_abbrev=False)
        # Only the command that runs is imported: some bring torch along.
        if given[:1] == [name]:
            importlib.import_module(f"specviz.cli.{name}").add_arguments(command)
    parsed = parser.parse_args(given)
    if isinstance(sys.stdout, io.TextIOWrapper):  # a character that the terminal lacks must not end a run
        sys.stdout.reconfigure(errors="replace")
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    try:
        status: int = importlib.import_module(f"specviz.cli.{parsed.command}").run(parsed)
    except ValueError as error:
        return _fail(parsed.command, error, 2)
    except (RuntimeError, OSError) as error:
        return _fail(parsed.command, error, 1)
    return status


def _fail(command: str, error: object, status: int) -> int:
    text = " ".join(str(error).split())
    unfinished = WIPE if sys.stderr.isatty() else ""  # progress up to here
    print(f"{unfinished}specviz {command}: {text}", file=sys.stderr)
    return status
