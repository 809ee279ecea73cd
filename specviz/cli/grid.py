"""``python -m specviz grid``: one prompt, one seed, every drafter. Does the text stay the same?"""

from __future__ import annotations

import argparse
from pathlib import Path

from specviz import experiments
from specviz.cli import files, options, tables
from specviz.cli.progress import carry_out, tell
from specviz.decoding.experiments import Gridder
from specviz.decoding.settings import Settings
from specviz.experiments import GRID_RULES, Grid
from specviz.figures.table import Table
from specviz.models import catalogue, loading
from specviz.rules import RULES
from specviz.workloads import WORKLOADS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.description = "Decode one prompt with one seed under every drafter and gamma 1 to 8, and compare the texts."
    parser.add_argument("--pair", default=catalogue.EMBEDDED, metavar="ID", help="a pair of `specviz pairs`")
    parser.add_argument("--prompt", default=WORKLOADS["chat"], metavar="TEXT", help="a user's message")
    parser.add_argument(
        "--rule", action="append", choices=RULES, help=f"may be repeated (default {' and '.join(GRID_RULES)})"
    )
    parser.add_argument("--temperature", type=float, metavar="T", help="of both models (default 1, or 0 if greedy)")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of every number drawn (default 0)")
    parser.add_argument("--max-new-tokens", type=int, default=64, metavar="N", help="of every text (default 64)")
    parser.add_argument("--device", metavar="cpu|cuda", help="default: a GPU where there is one")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="write a file a rule there, for the page")


def run(args: argparse.Namespace) -> int:
    """Decode and print; when interrupted, what was decoded up to then.

    Raises:
        ValueError: an option has a value that is not allowed.
        LoadError: the pair cannot be loaded.
    """
    spec = catalogue.find(args.pair)
    rules = tuple(dict.fromkeys(args.rule or GRID_RULES))
    for rule in rules:  # refused before the weights are read
        Settings(rule=rule, temperature=args.temperature, seed=args.seed)
    options.check_text(args.prompt, args.max_new_tokens)
    if args.out is not None:
        files.check_folder(args.out, [f"{rule}.json" for rule in rules])
    gridder = Gridder(
        loading.load_pair(spec, device=args.device, progress=tell),
        args.prompt,
        rules=rules,
        temperature=args.temperature,
        seed=args.seed,
        max_new_tokens=args.max_new_tokens,
    )
    grid, status = carry_out(gridder, gridder.result, "Decoding", "Decoded")
    if args.out is not None:
        args.out.mkdir(parents=True, exist_ok=True)
    for rule in grid.rules():
        tables.show(_table(grid, rule))
        if args.out is not None:
            files.write(args.out / f"{rule}.json", experiments.dump(grid.select(rule)))
    return status


def _table(grid: Grid, rule: str) -> Table:
    alone = grid.alone(rule)
    rows = [
        (
            f"{run.drafter}, gamma {run.gamma}",
            str(len(run.ids)),
            str(run.target_passes),
            str(run.drafter_passes),
            "–" if alone is None else "same" if grid.text(run) == grid.text(alone) else "differs",
            grid.sha256(run)[:12],
        )
        for run in grid.select(rule).runs
    ]
    columns = ("drafter", "tokens", "target reads", "drafter reads", "text", "sha256")
    return Table(f"{rule}, seed {grid.seed}", columns, tuple(rows))
