"""``python -m specviz decode``: the text to standard output, the trace to a file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import cast, get_args

from specviz import trace as records
from specviz.cli import files, options
from specviz.cli.progress import tell
from specviz.decoding.decoder import Decoder
from specviz.decoding.settings import DrafterKind, Settings
from specviz.models import catalogue
from specviz.models.catalogue import PairSpec
from specviz.models.loading import LoadError, load_pair
from specviz.rules import RULES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.description = "Decode a prompt with a drafter and a target; prints the text."
    parser.add_argument("--prompt", required=True, metavar="TEXT", help="a user's message")
    parser.add_argument("--pair", metavar="ID", help="a pair of `specviz pairs` (default embedded)")
    parser.add_argument("--target", metavar="PATH", help="instead of --pair: a folder or a hub name of the target")
    parser.add_argument("--drafter", metavar="PATH|target|ngram|none", help="the drafter's folder, or who drafts")
    parser.add_argument("--rule", default=Settings().rule, metavar="RULE", help=f"one of {', '.join(RULES)}")
    parser.add_argument("--gamma", type=_whole, default=4, metavar="N", help="drafts a round, 0 to 16 (default 4)")
    parser.add_argument("--temperature", type=_real, metavar="T", help="of the target (default 1, or 0 if greedy)")
    parser.add_argument("--drafter-temperature", type=_real, metavar="T", help="of the drafter (default: the target's)")
    parser.add_argument("--top-k", type=_whole, default=0, metavar="K", help="keep the K likeliest of both (0: all)")
    parser.add_argument("--top-p", type=_real, default=1.0, metavar="P", help="keep the likeliest up to this mass")
    parser.add_argument("--seed", type=_whole, default=0, metavar="S", help="of every number drawn (default 0)")
    parser.add_argument("--ngram", type=_whole, default=3, metavar="N", help="longest run that ngram matches, 1 to 16")
    parser.add_argument(
        "--stop-below",
        type=_real,
        default=0.0,
        metavar="P",
        help="draft no further once the drafter's largest chance is below this (0: never)",
    )
    parser.add_argument(
        "--stop-above", type=_real, metavar="H", help="... once its entropy in nats is above this (default: never)"
    )
    parser.add_argument("--max-new-tokens", type=_whole, default=64, metavar="N", help="budget (default 64)")
    parser.add_argument("--raw", action="store_true", help="take the prompt as it is, without the chat template")
    parser.add_argument("--download", action="store_true", help="fetch missing weights; `specviz pairs` has the sizes")
    parser.add_argument("--device", metavar="cpu|cuda", help="default: a GPU where there is one")
    parser.add_argument("--out", type=Path, metavar="TRACE.jsonl", help="write the trace here")


def run(args: argparse.Namespace) -> int:
    """Decode and print.

    Raises:
        ValueError: an option has a value that is not allowed.
        LoadError: the pair cannot be loaded.
    """
    spec, drafter = _pair(args)
    settings = Settings(
        rule=args.rule,
        gamma=args.gamma,
        temperature=args.temperature,
        drafter_temperature=args.drafter_temperature,
        top_k=args.top_k,
        top_p=args.top_p,
        seed=args.seed,
        drafter=drafter,
        ngram=args.ngram,
        stop_below=args.stop_below,
        stop_above=args.stop_above,
    )
    options.check_text(args.prompt, args.max_new_tokens)
    if args.out is not None:
        files.check_writable(args.out)
    try:
        pair = load_pair(spec, device=args.device, progress=tell, download=args.download)
    except LoadError as error:
        if args.target:  # named on the command line: what is wrong is an option
            raise ValueError(str(error)) from error
        raise
    decoder = Decoder.start(pair, args.prompt, settings, args.max_new_tokens, raw=args.raw)
    while not decoder.finished:
        decoder.step()
    if args.out is not None:
        records.save(decoder.trace, args.out)
    print(pair.tokenizer.decode(decoder.trace.text_ids))
    _summarise(decoder)
    return 0


def _pair(args: argparse.Namespace) -> tuple[PairSpec, DrafterKind]:
    """The pair to load and who drafts in it."""
    kinds = get_args(DrafterKind)
    if args.pair and args.target:
        raise ValueError(f"give --pair or --target, not both, got {args.pair!r} and {args.target!r}")
    if args.target:
        drafter = args.drafter or "none"
        return catalogue.local_pair(args.target, drafter), cast(DrafterKind, drafter if drafter in kinds else "model")
    spec = catalogue.find(args.pair or catalogue.EMBEDDED)
    if args.drafter is None:
        return spec, cast(DrafterKind, "model" if spec.has_drafter_model else spec.drafter)
    if args.drafter not in kinds:
        raise ValueError(
            f"--drafter must be one of {', '.join(kinds)} beside --pair, got {args.drafter!r}; a folder needs --target"
        )
    return spec, args.drafter


def _whole(text: str) -> int | str:
    """A whole number, or else the text as it stands: what refuses it says what is allowed."""
    try:
        return int(text)
    except ValueError:
        return text


def _real(text: str) -> float | str:
    """A number, or else the text as it stands."""
    try:
        return float(text)
    except ValueError:
        return text


def _summarise(decoder: Decoder) -> None:
    tally = records.tally(decoder.trace.rounds)
    parts = [f"{tally.emitted} tokens in {tally.target_passes} reads of the target"]
    if tally.drafted:
        parts.append(f"kept of drafted {tally.kept}/{tally.drafted}")
    if tally.judged:
        parts.append(f"kept of judged {tally.kept}/{tally.judged}")
    if tally.alpha is not None:
        parts.append(f"alpha {tally.alpha:.3f}")
    print("; ".join([*parts, f"ended by {decoder.trace.finish}"]), file=sys.stderr)
