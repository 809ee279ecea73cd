"""One round at a time: draft, read once, judge, record."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import median
from typing import Any, Protocol

import torch
from torch import Tensor

from specviz.decoding import records
from specviz.decoding.drafters import (
    Drafter,
    ModelDrafter,
    NgramDrafter,
    NoDrafter,
    Proposal,
    Stop,
    as_pass,
    forget_beyond,
    prepare,
)
from specviz.decoding.settings import Settings
from specviz.models.language_model import LanguageModel
from specviz.noise import RoundNoise
from specviz.probability import entropy, warp
from specviz.rules import RULES
from specviz.trace import LISTED, Finish, Header, Pass, Round, Trace

REPEATS = 3
"""How often a round is read again to be timed."""


class Pair(Protocol):
    """What the decoder needs of a pair: :class:`specviz.models.loading.Pair`, or a table in a test."""

    @property
    def spec(self) -> Any:
        """Names: ``spec.id`` and ``spec.drafter``."""

    @property
    def tokenizer(self) -> Any:
        """``chat(text)``, ``encode(text)`` and ``bytes(id)``."""

    @property
    def stop_ids(self) -> tuple[int, ...]:
        """The ids that end a text."""

    @property
    def vocab_size(self) -> int:
        """Width of every row."""

    @property
    def device(self) -> str:
        """Where the models run."""

    def target(self) -> LanguageModel:
        """A new reader of the target."""

    def drafter(self, kind: Any = "model") -> LanguageModel:
        """A new reader of the drafter."""


@dataclass(frozen=True, slots=True)
class OneAtATime:
    """A round's read beside as many reads of one row.

    ``rows`` gamma + 1; ``difference`` the largest absolute difference of a logit, over entries that are finite both
    ways; ``agree`` whether every row has the same first choice; median seconds of the forward calls, prefill left out.
    """

    rows: int
    difference: float
    agree: bool
    one_seconds: float
    many_seconds: float


class Decoder:
    """Decodes a text round by round; ``trace`` grows by one record each step.

    A decoder goes on from any trace of the same prompt, its own or a recorded one. A round is atomic: if a step
    fails, the trace stays as it was and the next step starts from it again. Not to be used by two threads at once.

    Args:
        pair: the models; their weights are shared, the caches belong to this decoder.
        trace: what has been decoded so far; its header holds the prompt and the limits.
        settings: in force from the next round on.

    Raises:
        ValueError: the prompt is empty or leaves no room in the target's context, or the pair lacks the drafter.
    """

    def __init__(self, pair: Pair, trace: Trace, settings: Settings) -> None:
        target = pair.target()
        _check_prompt(trace.header.prompt_ids, target.max_positions)
        self._set_up(pair, trace, settings, target, _make_drafter(pair, settings))

    def _set_up(self, pair: Pair, trace: Trace, settings: Settings, target: LanguageModel, drafter: Drafter) -> None:
        self.pair = pair
        self.settings = settings
        self._trace = trace
        self._target = target
        self._drafter = drafter
        self._closed = False

    @classmethod
    def start(
        cls,
        pair: Pair,
        prompt: str,
        settings: Settings,
        max_new_tokens: int,
        *,
        raw: bool = False,
        stop_ids: Sequence[int] | None = None,
    ) -> Decoder:
        """A decoder at the beginning of a text.

        Args:
            pair: the models.
            prompt: a user's message, put into the pair's chat template unless ``raw``.
            settings: see :class:`Settings`.
            max_new_tokens: budget for the text, at least 1.
            raw: take the prompt's ids as they are.
            stop_ids: end the text behind any of these; ``None`` takes the pair's.

        Raises:
            ValueError: see :class:`Decoder`.
        """
        if not prompt.strip():
            raise ValueError(f"the prompt must not be empty, got {prompt!r}")
        if any("\ud800" <= character <= "\udfff" for character in prompt):
            # Half a character: what Python makes of bytes on the command line that are not UTF-8.
            raise ValueError(f"the prompt must be text that UTF-8 can hold, got {prompt!r:.60}")
        if max_new_tokens < 1:
            raise ValueError(f"max_new_tokens must be at least 1, got {max_new_tokens}")
        ids = pair.tokenizer.encode(prompt) if raw else pair.tokenizer.chat(prompt)
        header = Header(
            pair=pair.spec.id,
            drafter=str(pair.spec.drafter),
            device=pair.device,
            dtype=getattr(pair, "dtype", None),
            threads=getattr(pair, "threads", None),
            versions=getattr(pair, "versions", None),
            prompt=prompt,
            prompt_ids=tuple(ids),
            prompt_bytes=tuple(pair.tokenizer.bytes(token_id).hex() for token_id in ids),
            stop_ids=tuple(pair.stop_ids if stop_ids is None else stop_ids),
            max_new_tokens=max_new_tokens,
            listed=LISTED,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
        )
        return cls(pair, Trace(header), settings)

    @property
    def trace(self) -> Trace:
        """Everything decoded so far."""
        return self._trace

    @property
    def finished(self) -> bool:
        """Whether the text has ended; stepping on raises."""
        return self._trace.finish is not None or self._room() < 1

    def resume(self, trace: Trace, settings: Settings) -> Decoder:
        """A new decoder that goes on from ``trace`` with other settings. It takes the caches over; this one is closed.

        Raises:
            ValueError: the trace has another prompt, or the pair lacks the drafter.
        """
        self._check_open()
        if trace.header.prompt_ids != self._trace.header.prompt_ids:
            raise ValueError("a decoder can only go on from a trace of its own prompt")
        # Look-up remembers nothing, and its length may have changed.
        same_drafter = settings.drafter == self.settings.drafter != "ngram"
        drafter = self._drafter if same_drafter else _make_drafter(self.pair, settings)
        heir = Decoder.__new__(Decoder)
        heir._set_up(self.pair, trace, settings, self._target, drafter)
        self._closed = True
        return heir

    def step(self) -> Round:
        """Decode one round and append it to the trace.

        Raises:
            RuntimeError: the text has ended, or another decoder took this one's caches over.
        """
        self._check_open()
        if self.finished:
            raise RuntimeError(f"the text has ended ({self._trace.finish or 'length'}); there is no next round")
        round_ = self._round()
        # The caches follow the text: the target lacks exactly the last token, the drafter at least that one.
        before_last = [*self._trace.header.prompt_ids, *self._trace.text_ids, *round_.emitted][:-1]
        forget_beyond(self._target, before_last)
        self._drafter.settle(before_last)
        assert self._target.ids == before_last, "the target's cache is out of step with the text"
        self._trace = self._trace.with_round(round_)
        return round_

    def rows(self, position: int) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Full logits of both models at one position of the text, by a prefill of its own.

        Args:
            position: of the token that the rows are about, in 1..length of prompt + text.

        Returns:
            target_logits (vocab,) float32; drafter_logits (vocab,) float32, minus infinity where the drafter cannot say
            an id; drafter_ids (n,) int64: the ids it can say. The last two are None without a drafter model, or where
            its own positions end before.

        Raises:
            ValueError: there is no such position.
        """
        ids = [*self._trace.header.prompt_ids, *self._trace.text_ids]
        if not 1 <= position <= len(ids):
            raise ValueError(f"position must be in 1..{len(ids)}, got {position}")
        target_logits = self.pair.target().extend(ids[:position]).logits[-1]
        if not isinstance(self._drafter, ModelDrafter):
            return target_logits, None, None
        reader = self.pair.drafter(self.settings.drafter)
        if reader.max_positions is not None and position > reader.max_positions:
            return target_logits, None, None
        drafter_logits = reader.extend(ids[:position]).logits[-1]
        return target_logits, drafter_logits, torch.nonzero(torch.isfinite(drafter_logits))[:, 0]

    def one_at_a_time(self, round_: Round) -> OneAtATime:
        """Read a round's drafts again: all rows at once, then one row after the other, with a reader of its own.

        Args:
            round_: a round of this decoder's trace, decoded here or recorded elsewhere.

        Raises:
            ValueError: the round is not one of the trace.
        """
        if round_ not in self._trace.rounds:
            raise ValueError(f"round {round_.index} is not a round of this decoder's trace")
        ids = [*self._trace.header.prompt_ids, *self._trace.text_ids][: round_.position]
        fed = [ids[-1], *(draft.id for draft in round_.drafts)]
        reader = self.pair.target()
        prepare(reader, ids)
        seconds, difference, agree = [], 0.0, True
        for _ in range(REPEATS):  # the first reads of a shape take longer, and one read alone is at the machine's mercy
            one = reader.extend(fed, rows=len(fed))
            reader.rollback(len(fed))
            many = [reader.extend([token_id]) for token_id in fed]
            reader.rollback(len(fed))
            seconds.append((one.seconds, sum(read.seconds for read in many)))
            together, apart = one.logits, torch.cat([read.logits for read in many])  # (gamma+1, vocab)
            finite = torch.isfinite(together) & torch.isfinite(apart)
            difference = max(difference, float(torch.where(finite, (together - apart).abs(), 0.0).max()))
            agree &= bool((together.argmax(-1) == apart.argmax(-1)).all())
        return OneAtATime(
            rows=len(fed),
            difference=difference,
            agree=agree,
            one_seconds=median(once for once, _ in seconds),
            many_seconds=median(one_by_one for _, one_by_one in seconds),
        )

    def _round(self) -> Round:
        settings, header = self.settings, self._trace.header
        rule = RULES[settings.rule]
        ids = [*header.prompt_ids, *self._trace.text_ids]
        started = time.perf_counter()

        noise = RoundNoise(settings.seed, len(ids), by_round=rule.by_round, like=self._anchor())
        proposal = self._drafter.propose(
            ids,
            self._gamma(len(ids)),
            warp=lambda logits: warp(logits, settings.drafter_temperature, settings.top_k, settings.top_p),
            draw=lambda q_row, place: int(rule.draft(q_row, noise, place)),
            stop=_stop(settings),
        )
        logits, passes = self._read(ids, proposal)  # (gamma+1, vocab)
        p = warp(logits, settings.temperature, settings.top_k, settings.top_p)
        q = proposal.q.to(p.device)
        draft_ids = torch.tensor(proposal.ids, dtype=torch.int64, device=p.device)
        verdict = rule.verify(p, q, draft_ids, noise)
        kept, closing_id = int(verdict.kept), int(verdict.closing.id)
        seconds = time.perf_counter() - started

        emitted, finish = self._cut([*proposal.ids[:kept], closing_id])
        evidence = records.Evidence(
            rule, p, q, logits, proposal.logits, proposal.ids, verdict, noise, len(ids), self.pair.tokenizer
        )
        kept_in_text = min(kept, len(emitted))
        closing = records.closing(evidence) if len(emitted) > kept else None
        return Round(
            index=len(self._trace.rounds),
            position=len(ids),
            settings=settings.as_dict(),
            drafts=records.drafts(evidence, kept_in_text, cut=len(emitted) <= kept),
            closing=closing,
            emitted=tuple(emitted),
            finish=finish,
            passes=(*proposal.passes, *passes),
            seconds=seconds,
            after=records.after(evidence) if closing is None or closing.row is None else None,
            after_id=evidence.after_id,
        )

    def _read(self, ids: list[int], proposal: Proposal) -> tuple[Tensor, list[Pass]]:
        """The target's one read: logits (gamma+1, vocab), and the passes it took."""
        prefill, lacking = prepare(self._target, ids)
        passes = [] if prefill is None else [as_pass(prefill, "target", "prefill")]
        read = self._target.extend([*lacking, *proposal.ids], rows=len(proposal.ids) + 1)
        return read.logits, [*passes, as_pass(read, "target", "verify")]

    def _gamma(self, length: int) -> int:
        """Drafts of the next round: never more than the budget and both models' positions allow."""
        gamma = min(self.settings.gamma, self._room() - 1)
        if self._drafter.max_positions is not None:
            gamma = min(gamma, self._drafter.max_positions - length + 1)
        return max(gamma, 0)

    def _room(self) -> int:
        """How many tokens may still be emitted."""
        return self._limit()[0] - len(self._trace.text_ids)

    def _limit(self) -> tuple[int, Finish]:
        """How many tokens the text may have, and why not more."""
        header = self._trace.header
        budget = header.max_new_tokens if header.max_new_tokens is not None else 2**63
        if self._target.max_positions is not None:
            positions = self._target.max_positions - len(header.prompt_ids)
            if positions < budget:
                return positions, "context"
        return budget, "length"

    def _cut(self, block: list[int]) -> tuple[list[int], Finish | None]:
        """The block up to its first stop token, and why the text ends, if it does. A stop wins over the budget."""
        for count, token_id in enumerate(block, start=1):
            if token_id in self._trace.header.stop_ids:
                return block[:count], "stop"
        limit, reason = self._limit()
        return block, reason if len(self._trace.text_ids) + len(block) >= limit else None

    def _anchor(self) -> Tensor:
        """A tensor on the pair's device: noise is made there."""
        return torch.empty(0, dtype=torch.float64, device=self.pair.device)

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("this decoder was resumed: its caches belong to the decoder that resume() returned")


def _make_drafter(pair: Pair, settings: Settings) -> Drafter:
    if settings.drafter == "ngram":
        return NgramDrafter(pair.vocab_size, pair.device, settings.ngram)
    if settings.drafter == "none":
        return NoDrafter(pair.vocab_size)
    return ModelDrafter(pair.drafter(settings.drafter))


def _stop(settings: Settings) -> Stop | None:
    """What ends a draft early; None where nothing does."""
    below, above = settings.stop_below, settings.stop_above
    if below == 0 and above is None:
        return None
    return lambda q_row: float(q_row.max()) < below or (above is not None and float(entropy(q_row)) > above)


def _check_prompt(prompt_ids: Sequence[int], max_positions: int | None) -> None:
    if not prompt_ids:
        raise ValueError("the prompt must have at least one token, got none")
    if max_positions is not None and len(prompt_ids) >= max_positions:
        raise ValueError(
            f"the prompt has {len(prompt_ids)} tokens and the target reads at most {max_positions}: "
            f"shorten it to {max_positions - 1} or fewer"
        )
