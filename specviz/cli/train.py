"""``python -m specviz train independent``: the embedded drafter, from prompts to weights."""

from __future__ import annotations

import argparse
import collections
import json
import logging
import math
from dataclasses import asdict
from pathlib import Path

import torch

from specviz.cli.progress import tell
from specviz.models import store
from specviz.models.catalogue import EMBEDDED, PairSpec
from specviz.models.language_model import LanguageModel
from specviz.models.loading import Pair, load_pair
from specviz.training import corpus, evaluate
from specviz.training.distill import Recipe, new_student, train
from specviz.training.teacher import Teacher, cache_teacher

logger = logging.getLogger(__name__)

KEPT = 8_192


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.description = (
        "Distil a drafter from the embedded target: sample a corpus, read it once with the target, train, score. "
        "Interrupt it at any time; the same command goes on."
    )
    parser.add_argument("drafter", choices=["independent"], help="independent: two layers that read the text alone")
    parser.add_argument("--folder", type=Path, default=Path("runs/independent"), help="for everything on the way")
    parser.add_argument("--out", type=Path, required=True, help="folder for the finished drafter")
    parser.add_argument("--tokens", type=int, default=1_000_000, metavar="N", help="sampled tokens of the corpus")
    parser.add_argument("--corpus", type=Path, nargs="+", metavar="FILE", help="use these texts instead of sampling")
    parser.add_argument("--steps", type=int, default=Recipe().steps, metavar="N", help="training steps")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of corpus and training")
    parser.add_argument("--minutes", type=float, metavar="M", help="stop training after this long")


def run(args: argparse.Namespace) -> int:
    """Run the stages that are not done yet; write weights and card to ``--out`` when the last step is done.

    Raises:
        ValueError: an option is out of range, or the folder holds another training.
    """
    for name in ("tokens", "steps"):
        if getattr(args, name) < 1:
            raise ValueError(f"--{name} must be at least 1, got {getattr(args, name)}")
    if args.minutes is not None and not (math.isfinite(args.minutes) and args.minutes > 0):
        raise ValueError(f"--minutes must be above 0, got {args.minutes}")
    for file in args.corpus or ():
        if not file.is_file():
            raise ValueError(f"--corpus names {str(file)!r}, which is no file")
        if not corpus.read_texts(file):  # refused before anything is fetched
            raise ValueError(f"--corpus names {str(file)!r}, which holds no text")
    store.fetch_embedded(tell)
    pair = load_pair(PairSpec(EMBEDDED, "the embedded target alone", target=EMBEDDED), device="cpu", progress=tell)
    target, stop_id = pair.target_network.module, pair.stop_ids[0]
    files = args.corpus or corpus.sample_corpus(
        target, pair.tokenizer, stop_id, args.tokens, args.seed, args.folder / "corpus"
    )
    teacher = Teacher(cache_teacher(target, files, args.folder / "teacher"))
    recipe = Recipe(steps=args.steps, seed=args.seed)
    student = new_student(target, commonest_ids(files), recipe.source_layers)
    done = train(student, teacher, recipe, args.folder / "training", args.minutes)
    if done < recipe.steps:
        logger.info("stopped at step %d of %d; the same command goes on", done, recipe.steps)
        return 0
    student.save(args.out)
    reader = LanguageModel(
        student, vocab_size=pair.vocab_size, real_ids=pair.tokenizer.real_ids, kept_ids=student.kept_ids
    )
    scores = evaluate.score(target, pair.target(), reader, pair.tokenizer, stop_id)
    (args.out / "card.json").write_text(card(pair, files, teacher, recipe, scores), encoding="utf-8")
    for kind, score in scores.items():
        print(f"{kind}\talpha {score.alpha:.3f}\tgreedy agreement {score.agreement:.3f}\t{score.positions} positions")
    return 0


def commonest_ids(files: list[Path]) -> torch.Tensor:
    """The ids sampled most often, in order of id."""
    counts = collections.Counter(
        token_id for file in files for ids, given in corpus.read_texts(file) for token_id in ids[given:]
    )
    return torch.tensor(sorted(token_id for token_id, _ in counts.most_common(KEPT)))


def card(pair: Pair, files: list[Path], teacher: Teacher, recipe: Recipe, scores: dict[str, evaluate.Score]) -> str:
    """How the drafter was made and how good it is, as JSON."""
    made = {
        "target": "SmolLM2-135M-Instruct, Q4_1, computed in fp32",
        "kept_ids": KEPT,
        "recipe": asdict(recipe),
        "corpus_texts": len(teacher),
        "corpus_sampled_tokens": teacher.tokens,
        "corpus_sha256": corpus.fingerprint(files),
        "versions": dict(pair.versions),
        "held_out": {kind: asdict(score) for kind, score in scores.items()},
    }
    return json.dumps(made, indent=2) + "\n"
