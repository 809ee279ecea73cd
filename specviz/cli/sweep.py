"""``python -m specviz sweep``: what each gamma, and each way to stop early, really brings on this machine."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from specviz import experiments
from specviz.cli import files, options, tables
from specviz.cli.progress import carry_out, tell
from specviz.decoding.experiments import Sweeper
from specviz.decoding.settings import Settings
from specviz.experiments import Policy, Sweep
from specviz.figures import sweep as figures
from specviz.figures.table import Table
from specviz.models import catalogue, loading
from specviz.workloads import WORKLOADS

OWN = "own"
"""What prompts of the command line are filed under."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.description = "Decode prompts under every gamma and print what each brought. Close other programs first."
    parser.add_argument("--pair", default=catalogue.EMBEDDED, metavar="ID", help="a pair of `specviz pairs`")
    parser.add_argument(
        "--workload", action="append", choices=WORKLOADS, help="one of the prompts that ship (default: all of them)"
    )
    parser.add_argument("--prompt", action="append", metavar="TEXT", help="a prompt of your own; may be repeated")
    parser.add_argument("--drafter", default="model", choices=("model", "target", "ngram"), help="who drafts")
    parser.add_argument(
        "--rule",
        default=Settings().rule,
        choices=figures.BY_SHARED,
        help="default speculative_sampling; under other rules a draft's chance is not alpha",
    )
    parser.add_argument("--temperature", type=float, metavar="T", help="of both models (default 1, or 0 if greedy)")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of every number drawn (default 0)")
    parser.add_argument("--max-new-tokens", type=int, default=48, metavar="N", help="of every text (default 48)")
    parser.add_argument("--device", metavar="cpu|cuda", help="default: a GPU where there is one")
    parser.add_argument("--out", type=Path, metavar="FILE.json", help="write the sweep here, for the page")


def run(args: argparse.Namespace) -> int:
    """Measure and print; when interrupted, what was measured up to then.

    Raises:
        ValueError: an option has a value that is not allowed.
        LoadError: the pair cannot be loaded.
    """
    spec = catalogue.find(args.pair)
    prompts = {name: [WORKLOADS[name]] for name in args.workload or (() if args.prompt else WORKLOADS)}
    if args.prompt:
        prompts[OWN] = args.prompt
    wanted = Settings(rule=args.rule, temperature=args.temperature, seed=args.seed)  # refused before weights are read
    for prompt in (prompt for some in prompts.values() for prompt in some):
        options.check_text(prompt, args.max_new_tokens)
    if args.out is not None:
        files.check_writable(args.out)
    sweeper = Sweeper(
        loading.load_pair(spec, device=args.device, progress=tell),
        prompts,
        experiments.policies(args.drafter, greedy=wanted.temperature == 0),
        rule=args.rule,
        temperature=args.temperature,
        seed=args.seed,
        max_new_tokens=args.max_new_tokens,
    )
    sweep, status = carry_out(sweeper, sweeper.result, "Measuring", "Measured")
    tables.show(_table(sweep))
    if args.out is not None:
        files.write(args.out, experiments.dump(sweep))
    return status


def _table(sweep: Sweep) -> Table:
    columns: dict[str, tuple[Callable[[Policy], float | None], str]] = {
        "tokens/s": (sweep.tokens_per_second, ".2f"),
        "speed-up": (sweep.speedup, ".2f"),
        "tokens/read": (sweep.tokens_per_pass, ".2f"),
        "drafts/round": (sweep.drafts_per_round, ".2f"),
        "alpha": (sweep.alpha, ".3f"),
    }
    rows = [
        (figures.name(policy), *(_cell(figure(policy), form) for figure, form in columns.values()))
        for policy in sweep.policies()
    ]
    return Table(f"{sweep.pair} on {sweep.device}, measured", ("policy", *columns), tuple(rows))


def _cell(figure: float | None, form: str) -> str:
    return "–" if figure is None else format(figure, form)
