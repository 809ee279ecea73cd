"""From a round's tensors to its record: the few tokens worth listing, and scalars from the whole vocabulary."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from specviz.noise import Noise
from specviz.probability import entropy, inverse_cdf, log, overlap, top_n
from specviz.rules import Rule, Verdict
from specviz.trace import LISTED, Closing, Draft, Rest, Row, Token


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a round's record is made from.

    ``p`` (gamma+1, vocab) and ``q`` (gamma, vocab) float64 laws; ``target_logits`` (gamma+1, vocab) and
    ``drafter_logits`` (gamma, vocab) float32 before warping, the latter None where no model drafted; ``position`` where
    the round's first token stands.
    """

    rule: Rule
    p: Tensor
    q: Tensor
    target_logits: Tensor
    drafter_logits: Tensor | None
    draft_ids: tuple[int, ...]
    verdict: Verdict
    noise: Noise
    position: int
    tokenizer: Any

    @property
    def gamma(self) -> int:
        """Number of drafts."""
        return len(self.draft_ids)

    @property
    def after_id(self) -> int | None:
        """The token drawn behind the last draft if all stay, where the rule throws coins; None without drafts."""
        if self.gamma == 0 or self.verdict.judgements.coin is None:
            return None
        return int(inverse_cdf(self.p[self.gamma], self.noise.target(self.gamma)))


def drafts(evidence: Evidence, kept: int, *, cut: bool) -> tuple[Draft, ...]:
    """The drafts' records.

    Args:
        evidence: the round.
        kept: number of drafts that entered the text.
        cut: whether the text ended inside the block: drafts behind its end were not judged.
    """
    judgements = evidence.verdict.judgements
    rows = _rows(evidence, range(evidence.gamma))
    coins, targets, weights = map(_listed, (judgements.coin, judgements.target_id, judgements.weight))
    accept_probs, passed = judgements.accept_prob.tolist(), judgements.passed.tolist()
    result = []
    for place, token_id in enumerate(evidence.draft_ids):
        fate = "kept" if place < kept else "rejected" if place == kept and not cut else "unjudged"
        # Block verification throws every coin before it decides; other rules stop at the first rejection.
        tested = fate != "unjudged" or weights is not None
        result.append(
            Draft(
                id=token_id,
                p=float(evidence.p[place, token_id]),
                q=float(evidence.q[place, token_id]),
                accept_prob=accept_probs[place],
                coin=coins[place] if coins is not None and tested else None,
                target_id=targets[place] if targets is not None and tested else None,
                passed=passed[place] if tested else None,
                weight=weights[place] if weights is not None else None,
                fate=fate,  # type: ignore[arg-type]
                row=rows[place],
            )
        )
    return tuple(result)


def closing(evidence: Evidence) -> Closing:
    """The closing token's record; its row is listed unless it stands at a rejected draft's place."""
    kept, last = int(evidence.verdict.kept), evidence.verdict.closing
    law = last.law()  # (vocab,)
    token_id = int(last.id)
    probabilities, ids = top_n(law, min(LISTED, len(law)))
    listed = {i: p for i, p in zip(ids.tolist(), probabilities.tolist(), strict=True) if p > 0}
    listed[token_id] = float(law[token_id])
    return Closing(
        id=token_id,
        kind="plain" if evidence.gamma == 0 else "bonus" if kept == evidence.gamma else "correction",
        draw=None if last.draw is None else float(last.draw),
        row=_rows(evidence, [evidence.gamma])[0] if kept == evidence.gamma else None,
        law=tuple(sorted(listed.items(), key=lambda item: -item[1])),
        law_rest=max(0.0, 1.0 - sum(listed.values())),
    )


def after(evidence: Evidence) -> Row | None:
    """The target's row behind the last draft; None without drafts."""
    return _rows(evidence, [evidence.gamma])[0] if evidence.gamma else None


def _rows(evidence: Evidence, places: Any) -> list[Row]:
    """Rows of some places; scalars for all of them in one go."""
    chosen = list(places)
    if not chosen:
        return []
    drafted = chosen[-1] < evidence.gamma
    p, logits = evidence.p[chosen], evidence.target_logits[chosen]  # (places, vocab)
    q = evidence.q[chosen] if drafted else None
    vocab = p.shape[-1]
    likeliest, logit_ids = top_n(logits, min(LISTED, vocab))
    listed = [set(ids) for ids in logit_ids.tolist()]
    columns: dict[str, list[Any]] = {"entropy_p": entropy(p).tolist(), "lse_p": torch.logsumexp(logits, -1).tolist()}
    if q is not None:
        shared = overlap(p, q)
        columns["overlap"] = shared.tolist()
        columns["entropy_q"] = entropy(q).tolist()
        expected = evidence.rule.keep_probability(p, q)
        columns["expected"] = [None] * len(chosen) if expected is None else expected.tolist()
        own = evidence.drafter_logits[chosen] if evidence.drafter_logits is not None else None
        columns["lse_q"] = [None] * len(chosen) if own is None else torch.logsumexp(own, -1).tolist()
        columns["said"], columns["elsewhere"] = _reach(p, own)
        _, ids_of_q = top_n(q if own is None else own, min(LISTED, vocab))
        for row, ids in zip(listed, ids_of_q.tolist(), strict=True):
            row.update(ids)
    rows = []
    for index, place in enumerate(chosen):
        ids = sorted(listed[index] | _told(evidence, place))
        shared_noise = evidence.rule.name == "gumbel_coupling"
        noise = evidence.noise.gumbel(place, vocab) if shared_noise else None
        rows.append(
            Row(
                position=evidence.position + place,
                tokens=_tokens(evidence, place, ids, noise),
                rest=_rest(evidence, place, ids, noise),
                tv=max(0.0, 1.0 - columns["overlap"][index]) if q is not None else None,
                expected_accept=columns["expected"][index] if q is not None else None,
                entropy_p=columns["entropy_p"][index],
                entropy_q=columns["entropy_q"][index] if q is not None else None,
                target_top2=tuple(zip(logit_ids[index, :2].tolist(), likeliest[index, :2].tolist(), strict=True)),
                target_log_normaliser=columns["lse_p"][index],
                drafter_log_normaliser=columns["lse_q"][index] if q is not None else None,
                drafter_ids=columns["said"][index] if q is not None else None,
                target_mass_elsewhere=columns["elsewhere"][index] if q is not None else None,
            )
        )
    return rows


def _reach(p: Tensor, drafter_logits: Tensor | None) -> tuple[list[Any], list[Any]]:
    """Of each row how many ids the drafter's model can say, and the target's mass on the others; both (places, vocab).

    Before top-k and top-p: what the drafter's vocabulary allows, not what its settings cut.
    """
    if drafter_logits is None:
        return [None] * len(p), [None] * len(p)
    said = (drafter_logits > -math.inf).to(p.device)
    return said.sum(-1).tolist(), torch.where(said, 0.0, p).sum(-1).tolist()


def _told(evidence: Evidence, place: int) -> set[int]:
    """Ids that the round's story names at this place, however unlikely: the draft, the closing token, the winners, the
    bonus that may have been."""
    named: set[int] = set()
    if place < evidence.gamma:
        named.add(evidence.draft_ids[place])
        if evidence.verdict.judgements.target_id is not None:
            named.add(int(evidence.verdict.judgements.target_id[place]))
    if place == int(evidence.verdict.kept):
        named.add(int(evidence.verdict.closing.id))
    if place == evidence.gamma and evidence.after_id is not None:
        named.add(evidence.after_id)
    return named


def _tokens(evidence: Evidence, place: int, ids: list[int], shared_noise: Tensor | None) -> tuple[Token, ...]:
    """These tokens, likeliest under either law first; ``shared_noise`` (vocab,) where the rule has some."""
    p = evidence.p[place, ids].tolist()
    q = evidence.q[place, ids].tolist() if place < evidence.gamma else [None] * len(ids)
    target_logits = [x if x > -math.inf else None for x in evidence.target_logits[place, ids].tolist()]
    drafter_logits: list[float | None] = [None] * len(ids)
    if place < evidence.gamma and evidence.drafter_logits is not None:
        # An id that the drafter cannot say has no logit, here as in the file.
        drafter_logits = [x if x > -math.inf else None for x in evidence.drafter_logits[place, ids].tolist()]
    noise: list[float | None] = [None] * len(ids) if shared_noise is None else shared_noise[ids].tolist()
    tokens = [
        Token(token_id, evidence.tokenizer.bytes(token_id).hex(), *numbers)
        for token_id, *numbers in zip(ids, p, q, target_logits, drafter_logits, noise, strict=True)
    ]
    return tuple(
        sorted(tokens, key=lambda token: (-max(token.p or 0.0, token.q or 0.0), -(token.target_logit or 0.0), token.id))
    )


def _rest(evidence: Evidence, place: int, ids: list[int], shared_noise: Tensor | None) -> Rest:
    """What is outside the listed ids, summed directly: no difference of near-equal sums."""
    others = torch.ones(evidence.p.shape[-1], dtype=torch.bool, device=evidence.p.device)
    others[ids] = False
    p = torch.where(others, evidence.p[place], 0.0)
    q = torch.where(others, evidence.q[place], 0.0) if place < evidence.gamma else None

    def runner(law: Tensor | None) -> Token | None:
        if shared_noise is None or law is None or not bool(law.any()):
            return None
        return _tokens(evidence, place, [int(torch.argmax(log(law) + shared_noise))], shared_noise)[0]

    return Rest(
        count=int(others.sum()),
        p=float(p.sum()),
        q=None if q is None else float(q.sum()),
        overlap=None if q is None else float(torch.minimum(p, q).sum()),
        runner=runner(p),
        drafter_runner=runner(q),
    )


def _listed(column: Tensor | None) -> list[Any] | None:
    return None if column is None else column.tolist()
