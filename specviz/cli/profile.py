"""``python -m specviz profile``: what this machine really does, beside what bandwidth and arithmetic would allow."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

from specviz.cli import files, tables
from specviz.cli.progress import carry_out, tell
from specviz.decoding.profiling import CONTEXT, REPEATS, WIDTHS, Profiler
from specviz.figures import profile as figures
from specviz.figures import sentences
from specviz.hardware import measured
from specviz.hardware.measured import LONGEST_CONTEXT, MOST_REPEATS, MOST_WIDTHS, WIDEST
from specviz.models import catalogue, loading


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.description = (
        "Measure this machine: copy bandwidth, rate of matrix products, and the time of a read against its width. "
        "Close other programs first."
    )
    parser.add_argument("--pair", default=catalogue.EMBEDDED, metavar="ID", help="a pair of `specviz pairs`")
    parser.add_argument(
        "--context",
        type=partial(_whole, most=LONGEST_CONTEXT),
        default=CONTEXT,
        metavar="N",
        help=f"tokens in the caches (default {CONTEXT})",
    )
    parser.add_argument(
        "--repeats",
        type=partial(_whole, most=MOST_REPEATS),
        default=REPEATS,
        metavar="N",
        help=f"samples of everything (default {REPEATS})",
    )
    parser.add_argument(
        "--widths", type=_widths, default=WIDTHS, metavar="N,N,…", help="rows of the reads (default 1 to 17)"
    )
    parser.add_argument("--device", metavar="cpu|cuda", help="default: a GPU where there is one")
    parser.add_argument("--out", type=Path, metavar="FILE.json", help="write the measurement here, for the page")


def run(args: argparse.Namespace) -> int:
    """Measure and print; when interrupted, what was measured up to then.

    Raises:
        ValueError: an option has a value that is not allowed.
        LoadError: the pair cannot be loaded.
    """
    spec = catalogue.find(args.pair)
    if args.out is not None:
        files.check_writable(args.out)
    profiler = Profiler(
        loading.load_pair(spec, device=args.device, progress=tell),
        context=args.context,
        repeats=args.repeats,
        widths=args.widths,
    )
    profile, status = carry_out(profiler, profiler.profile, "Measuring", "Measured")
    for table in figures.tables(profile):
        tables.show(table)
    print(sentences.plain(figures.verdict(profile)))
    if args.out is not None:
        files.write(args.out, measured.dump(profile))
    return status


def _whole(text: str, most: int) -> int:
    """Checked here, for the models take their time to load."""
    if not text.isdecimal() or len(text) > len(str(most)) or not 1 <= int(text) <= most:
        raise argparse.ArgumentTypeError(f"must be a whole number in 1..{most:,}, got {text[:40]!r}")
    return int(text)


def _widths(text: str) -> tuple[int, ...]:
    parts = text.split(",")
    if len(parts) > MOST_WIDTHS:
        raise argparse.ArgumentTypeError(f"must be at most {MOST_WIDTHS} widths, got {len(parts)}")
    return tuple(_whole(part.strip(), WIDEST) for part in parts)
