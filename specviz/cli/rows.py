"""``python -m specviz rows``: the whole rows of both models at some places of a trace, for the laboratories."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from specviz import rows, trace
from specviz.cli import files
from specviz.cli.progress import tell
from specviz.decoding.decoder import Decoder
from specviz.decoding.settings import Settings
from specviz.models import catalogue
from specviz.models.loading import load_pair
from specviz.probability import top_n


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.description = "Write the raw logits of both models at some places of a trace."
    parser.add_argument("trace", type=Path, metavar="TRACE.jsonl", help="what `specviz decode --out` wrote")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.npz", help="write the rows here")
    parser.add_argument(
        "--position",
        type=int,
        nargs="+",
        metavar="N",
        help="places, counted from 0 over prompt and text, as in the trace's rows (default: six telling ones)",
    )
    parser.add_argument("--device", metavar="cpu|cuda", help="default: a GPU where there is one")


def run(args: argparse.Namespace) -> int:
    """Read the places again and write their rows.

    Raises:
        ValueError: the trace cannot be read, or has no such place.
        LoadError: the pair cannot be loaded.
    """
    recorded = files.read("TRACE.jsonl", args.trace, trace.read)
    positions = sorted(set(args.position)) if args.position else rows.telling(recorded)
    ids = (*recorded.header.prompt_ids, *recorded.text_ids)
    strange = next((position for position in positions if not 1 <= position <= len(ids)), None)
    if strange is not None:
        raise ValueError(f"--position must be in 1..{len(ids)}, got {strange}")
    if not positions:
        raise ValueError(f"{args.trace} has no judged draft with its row; give --position")
    files.check_writable(args.out)
    spec = catalogue.find(recorded.header.pair or catalogue.EMBEDDED)
    pair = load_pair(spec, device=args.device, progress=tell)
    decoder = Decoder(pair, recorded, Settings(drafter="model" if spec.has_drafter_model else "target"))
    target, drafter, named = {}, {}, set()
    for position in positions:
        p_row, q_row, _ = decoder.rows(position)
        target[position] = p_row.cpu().numpy()
        drafter[position] = None if q_row is None else q_row.cpu().numpy()
        for row in (p_row, q_row):
            named |= set() if row is None else set(top_n(row, min(rows.NAMED, len(row)))[1].tolist())
    names = {token_id: pair.tokenizer.bytes(token_id) for token_id in sorted(named)}
    rows.save(rows.RawRows(spec.id, ids[: positions[-1]], target, drafter, names), args.out)
    size = args.out.stat().st_size / 1e6
    print(f"{len(positions)} places ({', '.join(map(str, positions))}), {size:.2f} MB", file=sys.stderr)
    return 0
