"""Traces without a model: two Markov chains over the words of a short story play target and drafter.

The laws are exact (every row sums to 1, the scalars come from the whole vocabulary), so figures and pages can be tested
against them before any weights exist.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from specviz.trace import LISTED, Closing, Draft, Header, Pass, Rest, Round, Row, Token, Trace

STORY = """Once upon a time there lived a small dragon named Ember . Ember lived in a quiet village of bakers , who fed
the small dragon every morning . One day the dragon asked the bakers for a loaf of bread , and the bakers fed the quiet
valley who lived in the village . The dragon , who lived upon a time of bread , named the village every day . In the
morning a small village fed the dragon , and the dragon asked for a quiet day . There lived in the valley a baker who
asked the small dragon for the fire of the morning , and the fire fed the village every day ."""
PIECES = [(" " + word).encode() if word not in ",." else word.encode() for word in STORY.split()]
VOCABULARY = list(dict.fromkeys(PIECES))
STOP = len(VOCABULARY)
BYTES = [*VOCABULARY, b"<|im_end|>"]
SIZE = len(BYTES)
PROMPT = "Tell me a story about a dragon"
PROMPT_BYTES = (b"<|im_start|>", b"user", b"\n", *(piece.encode() for piece in ("Tell", " me", " a", " story")))


def _chains() -> tuple[np.ndarray, np.ndarray]:
    """Target and drafter logits, shape (vocab, vocab): row = the token before."""
    ids = [VOCABULARY.index(piece) for piece in PIECES]
    pairs, words = np.zeros((SIZE, SIZE)), np.full(SIZE, 0.05)
    for before, after in pairwise(ids):
        pairs[before, after] += 1.0
        words[after] += 1.0
    words /= words.sum()
    pairs = (pairs + 0.3 * words) / (pairs + 0.3 * words).sum(axis=-1, keepdims=True)
    tilt = np.exp(np.random.default_rng(1).normal(0.0, 0.7, (SIZE, SIZE)))
    drafter = (0.75 * pairs + 0.25 * words) * tilt
    return np.log(pairs), np.log(drafter / drafter.sum(axis=-1, keepdims=True))


TARGET, DRAFTER = _chains()


def law(logits: np.ndarray, temperature: float) -> np.ndarray:
    """Softmax at a temperature; one-hot at 0."""
    if temperature == 0:
        return np.eye(len(logits))[logits.argmax()]
    weights = np.exp((logits - logits.max()) / temperature)
    return weights / weights.sum()


def _draw(p: np.ndarray, u: float) -> int:
    return int(min(np.searchsorted(np.cumsum(p), u * p.sum()), np.flatnonzero(p)[-1]))


def _row(position: int, before: int, p: np.ndarray, q: np.ndarray | None, listed: set[int], rule: str, g: Any) -> Row:
    top = set(np.argsort(-p, kind="stable")[:LISTED]) | listed
    if q is not None:
        top |= set(np.argsort(-q, kind="stable")[:LISTED])
    ids = sorted(map(int, top), key=lambda i: -p[i])
    rest = np.setdiff1d(np.arange(SIZE), ids)
    overlap = None if q is None else float(np.minimum(p, q).sum())
    best = np.argsort(-TARGET[before], kind="stable")[:2]
    return Row(
        position=position,
        tokens=tuple(
            Token(
                id=i,
                bytes=BYTES[i].hex(),
                p=float(p[i]),
                q=None if q is None else float(q[i]),
                target_logit=float(TARGET[before, i]),
                drafter_logit=None if q is None else float(DRAFTER[before, i]),
                noise=None if g is None else float(g[i]),
            )
            for i in ids
        ),
        rest=Rest(
            count=len(rest),
            p=float(p[rest].sum()),
            q=None if q is None else float(q[rest].sum()),
            overlap=None if q is None else float(np.minimum(p, q)[rest].sum()),
        ),
        tv=None if overlap is None else 1.0 - overlap,
        expected_accept=None if overlap is None or rule == "block_verification" else _expected(p, q, rule),
        entropy_p=float(-(p[p > 0] * np.log(p[p > 0])).sum()),
        entropy_q=None if q is None else float(-(q[q > 0] * np.log(q[q > 0])).sum()),
        target_top2=tuple((int(i), float(TARGET[before, i])) for i in best),
    )


def _expected(p: np.ndarray, q: np.ndarray | None, rule: str) -> float:
    assert q is not None
    if rule == "token_match":
        return float((p * q).sum())
    if rule == "gumbel_coupling":
        return float(sum(_match(p, q, x) for x in np.flatnonzero((p > 0) & (q > 0))))
    return float(np.minimum(p, q).sum())


def _match(p: np.ndarray, q: np.ndarray, x: int) -> float:
    return float(1.0 / np.maximum(p / p[x], q / q[x]).sum())


def make_trace(
    rule: str = "speculative_sampling",
    *,
    gamma: int = 4,
    tokens: int = 48,
    seed: int = 7,
    temperature: float = 1.0,
    may_stop: bool = False,
) -> Trace:
    """A run of ``rule``: same seed, same trace."""
    rng = np.random.default_rng(seed)
    temperature = 0.0 if rule == "greedy" else temperature
    settings = {
        "rule": rule,
        "gamma": gamma,
        "temperature": temperature,
        "drafter_temperature": temperature,
        "top_k": 0,
        "top_p": 1.0,
        "seed": seed,
        "drafter": "model",
    }
    prompt_ids = tuple(range(1000, 1000 + len(PROMPT_BYTES)))
    header = Header(
        pair="embedded",
        drafter="model",
        device="cpu",
        dtype="float32",
        threads=2,
        versions={"torch": "0", "transformers": "0"},
        prompt=PROMPT,
        prompt_ids=prompt_ids,
        prompt_bytes=tuple(piece.hex() for piece in PROMPT_BYTES),
        stop_ids=(STOP,),
        max_new_tokens=tokens,
        created="2000-01-01T00:00:00Z",
    )
    trace = Trace(header)
    while trace.finish is None:
        trace = trace.with_round(_round(trace, settings, rng, tokens, may_stop))
    return trace


def _laws(context: list[int], temperature: float, may_stop: bool) -> tuple[np.ndarray, np.ndarray]:
    before = context[-1] if context and context[-1] < SIZE else 0
    p, q = law(TARGET[before], temperature), law(DRAFTER[before], temperature)
    if may_stop and temperature > 0 and len(context) > 12:
        stop = np.eye(SIZE)[STOP]
        p, q = 0.7 * p + 0.3 * stop, 0.6 * q + 0.4 * stop
    return p, q


def _round(trace: Trace, settings: dict[str, Any], rng: np.random.Generator, limit: int, may_stop: bool) -> Round:
    rule, temperature = settings["rule"], settings["temperature"]
    text = list(trace.text_ids)
    start = len(trace.header.prompt_ids) + len(text)
    gamma = min(settings["gamma"], limit - len(text) - 1)

    context, ids, rows = list(text), [], []
    for _ in range(gamma + 1):
        before = context[-1] if context else 0
        p, q = _laws(context, temperature, may_stop)
        g = rng.gumbel(size=SIZE) if rule == "gumbel_coupling" else None
        rows.append((before, p, q, g))
        if len(ids) < gamma:
            drafted = int(np.argmax(np.log(q + 1e-300) + g)) if g is not None else _draw(q, rng.random())
            ids.append(drafted)
            context.append(drafted)

    def own(i: int) -> int:
        """The token that the target chooses itself at place i."""
        _, p, _, g = rows[i]
        if g is not None:
            return int(np.argmax(np.log(p + 1e-300) + g))
        return int(p.argmax()) if rule == "greedy" else _draw(p, rng.random())

    by_choice = rule in ("greedy", "gumbel_coupling", "token_match")
    accepts, coins, choices, passed, weights = [], [], [], [], []
    weight = 1.0
    for i, x in enumerate(ids):
        _, p, q, _ = rows[i]
        coin = choice = None
        if rule == "block_verification":
            weight = min(1.0, weight * p[x] / q[x])
            if i + 1 == len(ids):
                accept = weight
            else:
                _, later_p, later_q, _ = rows[i + 1]
                gap = float(np.maximum(weight * later_p - later_q, 0).sum())
                accept = gap / (gap + 1.0 - weight) if gap + 1.0 - weight > 0 else 1.0
            weights.append(float(weight))
        elif rule == "gumbel_coupling":
            accept = _match(p, q, x) / q[x]
        elif by_choice:
            accept = float(p[x])
        else:
            accept = min(1.0, float(p[x] / q[x]))
        if by_choice:
            choice = own(i)
        else:
            coin = float(rng.random())
        accepts.append(float(accept))
        coins.append(coin)
        choices.append(choice)
        passed.append(choice == x if by_choice else coin < accept)

    if rule == "block_verification":
        kept = max((i + 1 for i, ok in enumerate(passed) if ok), default=0)
    else:
        kept = next((i for i, ok in enumerate(passed) if not ok), gamma)
    stop = next((i for i, x in enumerate(ids[:kept]) if x == STOP), None)
    if stop is not None:
        kept = stop + 1

    draw = None if rule in ("greedy", "gumbel_coupling") else float(rng.random())
    # One number will do: only one of bonus and correction comes to pass.
    after_id = _draw(rows[gamma][1], draw) if ids and not by_choice and draw is not None else None
    closing = None
    if stop is None:
        _, p, q, _ = rows[kept]
        kind = "plain" if not ids else "bonus" if kept == gamma else "correction"
        if by_choice:
            closing_law = p
            closing_id = choices[kept] if kind == "correction" else own(kept)
        else:
            w = weights[kept - 1] if weights and kept else 1.0
            gaps = np.maximum((w if rule == "block_verification" else 1.0) * p - q, 0)
            closing_law = p if kind != "correction" or gaps.sum() == 0 else gaps / gaps.sum()
            closing_id = _draw(closing_law, draw)
        listed = np.argsort(-closing_law, kind="stable")[:LISTED]
        before = (ids[kept - 1] if kept else text[-1] if text else 0) if kind != "correction" else 0
        closing = Closing(
            id=int(closing_id),
            kind=kind,
            draw=draw,
            row=None
            if kind == "correction"
            else _row(start + kept, before, p, None, {int(closing_id)}, rule, rows[kept][3]),
            law=tuple((int(i), float(closing_law[i])) for i in listed if closing_law[i] > 0),
            law_rest=float(1.0 - closing_law[listed].sum()),
        )

    def fate(i: int) -> str:
        return "kept" if i < kept else "rejected" if i == kept and stop is None else "unjudged"

    drafts = []
    for i, x in enumerate(ids):
        before, p, q, g = rows[i]
        judged = fate(i) != "unjudged"
        listed_ids = {x, int(p.argmax()), int(q.argmax())}
        listed_ids |= {choices[i]} if choices[i] is not None else set()
        listed_ids |= {closing.id} if closing is not None and i == kept else set()
        drafts.append(
            Draft(
                id=x,
                p=float(p[x]),
                q=float(q[x]),
                accept_prob=accepts[i],
                coin=coins[i] if judged or rule == "block_verification" else None,
                target_id=choices[i] if judged else None,
                passed=bool(passed[i]) if judged or rule == "block_verification" else None,
                weight=weights[i] if weights else None,
                fate=fate(i),
                row=_row(start + i, before, p, q, listed_ids, rule, g),
            )
        )
    after = None
    if ids and (closing is None or closing.row is None):
        before, p, _, g = rows[gamma]
        after = _row(start + gamma, before, p, None, set() if after_id is None else {after_id}, rule, g)
    emitted = (*ids[:kept], *(() if closing is None else (closing.id,)))
    done = len(text) + len(emitted)
    finish = "stop" if STOP in emitted else "length" if done >= limit else None
    drafting = (Pass("drafter", "draft", 1, start + i - 1, 0.008) for i in range(gamma))
    passes = (*drafting, Pass("target", "verify", gamma + 1, start - 1, 0.077))
    return Round(
        index=len(trace.rounds),
        position=start,
        settings=settings,
        drafts=tuple(drafts),
        closing=closing,
        emitted=emitted,
        finish=finish,
        passes=passes,
        seconds=0.11,
        after=after,
        after_id=after_id,
    )
