"""What a round's record promises to those who draw it: counts that fit, segments that add up, evidence for fates."""

from __future__ import annotations

import dataclasses
import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from specviz.noise import RoundNoise, gumbel
from specviz.probability import warp
from specviz.rules import RULES
from specviz.trace import LISTED, Closing, Draft, Round, Row, Trace, dump, load, tally
from tests.decoding_runs import begin, decode, finish
from tests.table_models import Logits, TablePair, random_table

VOCAB = 26
TARGET, DRAFTER = random_table(7, VOCAB), random_table(8, VOCAB)
TABLES = (TARGET, DRAFTER)
STOPS = (3, 14, 15)
COINS = ("speculative_sampling", "block_verification")
LETTERS = {"kept": "k", "rejected": "r", "unjudged": "u"}


def reduced(logits: Logits) -> Logits:
    """A drafter that cannot say a third of the ids."""

    def fewer(ids: Any) -> Any:
        row = np.array(logits(ids))
        row[::3] = -math.inf
        return row

    return fewer


PAIRS = {
    "other drafter": TablePair(TARGET, DRAFTER, VOCAB, STOPS),
    "equal drafter": TablePair(TARGET, TARGET, VOCAB, STOPS),
    "reduced drafter": TablePair(TARGET, reduced(TARGET), VOCAB, STOPS),
    "short contexts": TablePair(TARGET, DRAFTER, VOCAB, target_positions=11, drafter_positions=8),
    "few tokens": TablePair(random_table(1, 4), random_table(2, 4), 4, (3,)),
}


@st.composite
def runs(draw: st.DrawFn, rule: str) -> tuple[int, Trace]:
    """Sizes of a vocabulary and whole runs over it, under all kinds of settings; most of them draft."""

    def some(*values: Any) -> Any:
        return draw(st.sampled_from(values))

    def temperature() -> float:
        return 0.0 if rule == "greedy" else some(1.0, 3.0, 0.5, 1e-3, 0.0)

    pair = PAIRS[some(*PAIRS)]
    pair.made.clear()
    return pair.vocab_size, decode(
        pair,
        some(12, 9, 7, 3, 2, 1),
        some("a", "bca", "abcabc"),
        rule=rule,
        gamma=some(4, 6, 2, 1, 5, 3, 0),
        temperature=temperature(),
        drafter_temperature=temperature(),
        top_k=some(0, 0, 20, 3, 1),
        top_p=some(1.0, 1.0, 0.9, 0.3),
        seed=draw(st.integers(-(2**63), 2**63 - 1)),
        drafter=some("model", "model", "model", "target", "ngram", "none"),
    )


@pytest.mark.parametrize("rule", RULES)
@settings(max_examples=30)
@given(data=st.data())
def test_a_run_keeps_its_promises(rule: str, data: st.DataObject) -> None:
    vocab_size, trace = data.draw(runs(rule))
    assert load(dump(trace)) == trace
    for index, round_ in enumerate(trace.rounds):
        last = index == len(trace.rounds) - 1
        assert (round_.finish is not None) == last
        check_counts(trace, round_)
        for place, draft in enumerate(round_.drafts):
            check_draft(round_, draft)
            assert draft.row is not None
            assert draft.row.position == round_.position + place
        if round_.closing is not None:
            check_closing(round_, round_.closing)
        check_after(round_)
        for row in round_.rows():
            check_row(row, vocab_size)
    check_rates(trace)


def check_counts(trace: Trace, round_: Round) -> None:
    kept, drafted, emitted = round_.kept, len(round_.drafts), len(round_.emitted)
    assert 0 <= kept <= drafted
    assert 1 <= emitted <= drafted + 1
    assert round_.emitted[:kept] == tuple(draft.id for draft in round_.drafts[:kept])
    pattern = "".join(LETTERS[draft.fate or ""] for draft in round_.drafts)
    is_cut = emitted == kept
    assert is_cut == (round_.closing is None)
    if is_cut:
        assert round_.emitted[-1] in trace.header.stop_ids
        assert round_.finish == "stop"
        assert re.fullmatch("k+u*", pattern)
    else:
        assert emitted == kept + 1
        assert round_.closing is not None
        assert round_.emitted[-1] == round_.closing.id
        assert re.fullmatch("k*(ru*)?", pattern)
    assert not set(round_.emitted[:-1]) & set(trace.header.stop_ids)
    assert (round_.finish == "stop") == (round_.emitted[-1] in trace.header.stop_ids)
    assert [p.kind for p in round_.passes if p.model == "target" and p.kind != "prefill"] == ["verify"]
    assert (round_.seconds or 0) >= 0


def check_draft(round_: Round, draft: Draft) -> None:
    rule = (round_.settings or {})["rule"]
    row = draft.row
    assert row is not None
    token = row.token(draft.id)
    assert token is not None, "the draft is listed, however unlikely"
    assert (draft.p, draft.q) == (token.p, token.q)
    assert draft.q is not None
    assert draft.q > 0, "it was drawn from q"
    assert draft.accept_prob is not None
    assert 0 <= draft.accept_prob <= 1
    judged = draft.fate != "unjudged"
    if rule == "block_verification":
        assert draft.coin is not None
        assert draft.weight is not None
        assert draft.target_id is None
        assert draft.passed == (draft.coin < draft.accept_prob)
        return
    assert draft.weight is None
    if not judged:
        assert draft.coin is draft.target_id is draft.passed is None
        return
    assert (draft.coin is None) != (draft.target_id is None)
    assert draft.passed == (draft.fate == "kept")
    if draft.coin is not None:
        assert draft.passed == (draft.coin < draft.accept_prob)
        assert draft.accept_prob == pytest.approx(min(1.0, (draft.p or 0) / draft.q), abs=1e-12)
    else:
        assert draft.passed == (draft.target_id == draft.id)
        assert row.token(draft.target_id or 0) is not None, "the target's own token is listed"


def check_closing(round_: Round, closing: Closing) -> None:
    drafted = len(round_.drafts)
    kind = "plain" if not drafted else "bonus" if round_.kept == drafted else "correction"
    assert closing.kind == kind
    assert (closing.row is None) == (kind == "correction")
    row = round_.drafts[round_.kept].row if closing.row is None else closing.row
    assert row is not None
    assert row.position == round_.position + round_.kept
    assert row.token(closing.id) is not None
    assert closing.law is not None
    assert closing.law_rest is not None
    law = dict(closing.law)
    assert list(law.values()) == sorted(law.values(), reverse=True)
    assert law[closing.id] > 0, "it was drawn from this law"
    assert sum(law.values()) + closing.law_rest == pytest.approx(1, abs=1e-9)
    rule = (round_.settings or {})["rule"]
    assert (closing.draw is None) == (rule in ("greedy", "gumbel_coupling"))
    if rule == "block_verification" and kind == "correction":
        return  # its law hangs on the weight of the drafts before
    if rule == "speculative_sampling" and kind == "correction" and (row.tv or 0) < 1e-6:
        return  # rounding
    for token_id, probability in law.items():
        token = row.token(token_id)
        if token is None:
            continue
        expected = token.p
        if rule == "speculative_sampling" and kind == "correction":
            expected = max((token.p or 0) - (token.q or 0), 0) / (row.tv or 1)
        assert probability == pytest.approx(expected, abs=1e-9)


def check_after(round_: Round) -> None:
    """The read's last row is there whatever became of the drafts, once, and the bonus it would have given with it."""
    if not round_.drafts:
        assert round_.after is round_.after_id is None
        return
    bonus = round_.closing is not None and round_.closing.kind == "bonus"
    assert (round_.after is None) == bonus
    row = round_.last_row
    assert row is not None
    assert row is round_.rows()[-1]
    assert len(round_.rows()) == len(round_.drafts) + 1
    assert row.position == round_.position + len(round_.drafts)
    assert row.tv is None
    assert (round_.after_id is None) == ((round_.settings or {})["rule"] not in COINS)
    if round_.after_id is not None:
        assert row.token(round_.after_id) is not None, "the bonus that may have been is listed, however unlikely"
        assert not bonus or round_.after_id == round_.closing.id  # type: ignore[union-attr]


def check_row(row: Row, vocab_size: int) -> None:
    assert row.rest is not None
    assert row.rest.count is not None
    assert row.rest.p is not None
    assert len(row.tokens) + row.rest.count == vocab_size
    assert len(row.tokens) >= min(LISTED, vocab_size)
    assert len({token.id for token in row.tokens}) == len(row.tokens)
    p = [token.p or 0.0 for token in row.tokens]
    assert min(p) >= 0
    assert sum(p) + row.rest.p == pytest.approx(1, abs=1e-9)
    assert row.entropy_p is not None
    assert row.entropy_p >= 0
    assert row.target_top2 is not None
    by_logit = sorted(row.tokens, key=lambda token: (-(token.target_logit or 0), token.id))
    assert row.target_top2 == tuple((token.id, token.target_logit) for token in by_logit[:2])
    if row.rest.count == 0:
        assert row.entropy_p == pytest.approx(stats.entropy(p), abs=1e-9)
    assert all(token.bytes == bytes([97 + token.id]).hex() for token in row.tokens)
    if row.tv is None:
        assert row.entropy_q is row.rest.q is row.rest.overlap is row.expected_accept is None
        assert all(token.q is token.drafter_logit is None for token in row.tokens)
        return
    q = [token.q or 0.0 for token in row.tokens]
    assert row.rest.q is not None
    assert row.rest.overlap is not None
    assert sum(q) + row.rest.q == pytest.approx(1, abs=1e-9)
    # Shared, only the target's and only the drafter's segments: together alpha, TV and TV.
    alpha = sum(map(min, p, q)) + row.rest.overlap
    assert alpha + row.tv == pytest.approx(1, abs=1e-9)
    only_target = sum(max(a - b, 0) for a, b in zip(p, q, strict=True)) + row.rest.p - row.rest.overlap
    only_drafter = sum(max(b - a, 0) for a, b in zip(p, q, strict=True)) + row.rest.q - row.rest.overlap
    assert only_target == pytest.approx(row.tv, abs=1e-9)
    assert only_drafter == pytest.approx(row.tv, abs=1e-9)
    assert 0 <= row.tv <= 1
    assert row.entropy_q is not None
    assert row.entropy_q >= 0
    if row.rest.count == 0:
        assert row.entropy_q == pytest.approx(stats.entropy(q), abs=1e-9)
    assert row.expected_accept is None or -1e-12 <= row.expected_accept <= 1 + 1e-12


def check_rates(trace: Trace) -> None:
    counts = tally(trace.rounds)
    assert counts.emitted == len(trace.text_ids)
    assert counts.target_passes == counts.rounds
    for rate in (counts.tested_rate, counts.drafted_rate, counts.alpha):
        assert rate is None or 0 <= rate <= 1
    assert (counts.drafted_rate is None) == (counts.drafted == 0)
    cut = sum(round_.closing is None for round_ in trace.rounds)
    assert counts.emitted == counts.kept + counts.rounds - cut


# --- by rule ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
def test_the_expected_acceptance_of_a_position_is_the_rules(rule: str) -> None:
    pair = TablePair(random_table(1, 5), random_table(2, 5), 5)
    judged = [draft for round_ in decode(pair, 20, rule=rule).rounds for draft in round_.judged]
    assert len(judged) > 8
    for draft in judged:
        row = draft.row
        assert row is not None
        p, q = np.array([token.p for token in row.tokens]), np.array([token.q for token in row.tokens])
        match = rate_of_equal_winners(p, q)
        expected = {
            "greedy": float(p.argmax() == q.argmax()),
            "speculative_sampling": 1 - (row.tv or 0),
            "gumbel_coupling": match,
            "token_match": float(p @ q),
            "block_verification": None,
        }[rule]
        assert row.expected_accept == (None if expected is None else pytest.approx(expected, abs=1e-12))


def rate_of_equal_winners(p: np.ndarray, q: np.ndarray) -> float:
    """Sum over x of 1 / sum_y max(p_y / p_x, q_y / q_x)."""
    return sum(1 / np.maximum(p / a, q / b).sum() for a, b in zip(p, q, strict=True) if a > 0 and b > 0)


@dataclasses.dataclass(frozen=True)
class AllStay(RoundNoise):
    """The numbers of a round but for its coins: inside every bar, even one of chance 0."""

    def accept(self, count: int) -> Any:
        return np.full(count, -1.0)


@pytest.mark.parametrize("rule", RULES)
@settings(max_examples=12)
@given(
    seed=st.integers(0, 2**31),
    temperature=st.sampled_from([1.0, 3.0, 0.5]),
    top_k=st.sampled_from([0, 3]),
    stop=st.sampled_from([(), STOPS]),
)
def test_what_the_read_says_behind_the_last_draft_is_recorded_whatever_became_of_the_drafts(
    rule: str, seed: int, temperature: float, top_k: int, stop: tuple[int, ...]
) -> None:
    """Beside the laws worked out one by one, and the rule judging once more with coins that let every draft stay."""
    hot = 0.0 if rule == "greedy" else temperature
    pair = TablePair(TARGET, DRAFTER, VOCAB, stop)
    trace = decode(pair, 18, rule=rule, seed=seed, temperature=hot, drafter_temperature=hot, top_k=top_k, gamma=3)
    text = [*trace.header.prompt_ids, *trace.text_ids]
    for round_ in trace.rounds:
        ids, row = [draft.id for draft in round_.drafts], round_.last_row
        if not ids:
            continue
        before = [[*text[: round_.position], *ids[:place]] for place in range(len(ids) + 1)]
        p, q = (np.array([warp(np.float64(table(one)), hot, top_k, 1.0) for one in before]) for table in TABLES)
        assert row is not None
        for token in row.tokens:
            assert token.p == pytest.approx(p[-1, token.id], abs=1e-6)
            assert token.target_logit == pytest.approx(TARGET(before[-1])[token.id], abs=1e-5)
            if rule == "gumbel_coupling":
                noise = gumbel(seed, round_.position + len(ids), VOCAB)[token.id]
                assert token.noise == pytest.approx(noise, abs=1e-9)
        if rule in COINS:
            noise = AllStay(seed, round_.position, by_round=rule == "block_verification")
            verdict = RULES[rule].verify(p, q[:-1], np.array(ids), noise)
            assert verdict.kept == len(ids)
            assert round_.after_id == verdict.closing.id


@pytest.mark.parametrize("rule", RULES)
def test_shared_noise_is_listed_where_there_is_some(rule: str) -> None:
    trace = decode(PAIRS["other drafter"], rule=rule)
    tokens = [token for round_ in trace.rounds for row in round_.rows() for token in row.tokens]
    assert all((token.noise is not None) == (rule == "gumbel_coupling") for token in tokens)


def test_the_winners_of_both_races_are_listed_even_where_nobody_judged() -> None:
    """So hot that a winner is often none of the likeliest tokens."""
    hot, unlikely = 9.0, 0
    for seed in range(4):
        trace = decode(
            PAIRS["reduced drafter"], 16, rule="gumbel_coupling", temperature=hot, drafter_temperature=1.0, seed=seed
        )
        for round_ in trace.rounds:
            context = [*trace.header.prompt_ids, *trace.text_ids][: round_.position]
            for place, draft in enumerate(round_.drafts):
                race = np.array(TARGET(context)) / hot + gumbel(seed, round_.position + place, VOCAB)
                winner = int(np.argmax(race))
                assert draft.row is not None
                assert draft.row.token(draft.id) is not None
                assert draft.row.token(winner) is not None
                likely = {*np.argsort(TARGET(context))[-LISTED:], *np.argsort(reduced(TARGET)(context))[-LISTED:]}
                unlikely += draft.fate == "unjudged" and winner not in likely
                context.append(draft.id)
    assert unlikely > 3


def test_the_best_of_the_rest_in_either_race_is_named() -> None:
    """Hot, so that the rest of the vocabulary often has the second or third of the race."""
    seen = set()
    for seed in range(4):
        trace = decode(PAIRS["reduced drafter"], 16, rule="gumbel_coupling", temperature=5.0, seed=seed)
        ids = [*trace.header.prompt_ids, *trace.text_ids]
        for round_ in trace.rounds:
            context = ids[: round_.position]
            for row in round_.rows():
                assert row.rest is not None
                unlisted = [i for i in range(VOCAB) if row.token(i) is None]
                noise = gumbel(seed, row.position or 0, VOCAB)
                races = {"runner": TARGET(context) / np.float64(5) + noise}
                if row.tv is None:
                    assert row.rest.drafter_runner is None
                else:
                    races["drafter_runner"] = np.float64(reduced(TARGET)(context)) / 5 + noise
                for name, race in races.items():
                    best = max(unlisted, key=lambda i: race[i])
                    runner = getattr(row.rest, name)
                    if race[best] == -math.inf:
                        assert runner is None
                        continue
                    assert (runner.id, runner.noise) == (best, pytest.approx(noise[best], abs=1e-12))
                    assert (runner.p, runner.bytes) == (pytest.approx(softmax(TARGET(context), 5)[best]), letter(best))
                    assert trace.token_bytes()[best] == bytes.fromhex(letter(best))
                    seen.add(name)
                context.append(round_.drafts[len(context) - round_.position].id if row.tv is not None else 0)
    assert seen == {"runner", "drafter_runner"}


@pytest.mark.parametrize("settings", [{"rule": "token_match"}, {"rule": "gumbel_coupling", "temperature": 0.0}])
def test_where_nothing_of_the_rest_runs_no_runner_is_named(settings: dict[str, Any]) -> None:
    rows = [row for round_ in decode(PAIRS["other drafter"], **settings).rounds for row in round_.rows()]
    assert {row.rest.runners() for row in rows if row.rest is not None} == {()}


def softmax(logits: Any, temperature: float) -> np.ndarray:
    weights = np.exp(np.float64(logits) / temperature)
    return weights / weights.sum()


def letter(token_id: int) -> str:
    return bytes([97 + token_id]).hex()


@pytest.mark.parametrize("drafter", ["other drafter", "reduced drafter"])
@pytest.mark.parametrize("temperature", [0.0, 1.0, 4.0])
def test_a_row_says_how_much_the_drafter_cannot_say(drafter: str, temperature: float) -> None:
    trace = decode(PAIRS[drafter], 12, temperature=temperature, top_k=20)
    context = list(trace.header.prompt_ids)
    for round_ in trace.rounds:
        for place, draft in enumerate(round_.drafts):
            row, before = draft.row, [*context, *(d.id for d in round_.drafts[:place])]
            assert row is not None
            silent = drafter == "reduced drafter"
            assert row.drafter_ids == (VOCAB - len(range(0, VOCAB, 3)) if silent else VOCAB)
            p = warp(np.float64(TARGET(before)), temperature, 20, 1.0)
            assert row.target_mass_elsewhere == pytest.approx(p[::3].sum() if silent else 0.0, abs=1e-6)
        if round_.closing is not None and round_.closing.row is not None:
            assert round_.closing.row.drafter_ids is round_.closing.row.target_mass_elsewhere is None
        context += round_.emitted


def test_a_copy_has_no_vocabulary_to_speak_of() -> None:
    rows = [r for round_ in decode(PAIRS["other drafter"], 8, "abcab", drafter="ngram").rounds for r in round_.rows()]
    assert any(row.tv is not None for row in rows)
    assert {(row.drafter_ids, row.target_mass_elsewhere) for row in rows} == {(None, None)}


def test_under_block_verification_a_later_draft_may_carry_an_earlier_one() -> None:
    """Fates follow the last coin that fell well: a kept draft may have failed its own test."""
    carried = [
        draft
        for seed in range(12)
        for round_ in decode(PAIRS["other drafter"], rule="block_verification", seed=seed, temperature=2.0).rounds
        for draft in round_.drafts
        if draft.fate == "kept" and not draft.passed
    ]
    assert carried


# --- what is listed ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("drafter", ["other drafter", "reduced drafter"])
def test_the_likeliest_tokens_of_both_models_are_listed(drafter: str) -> None:
    decoder = begin(PAIRS[drafter], 10, temperature=1.5)
    for round_ in finish(decoder).rounds:
        for draft in round_.judged:
            assert draft.row is not None
            target_logits, drafter_logits, said = decoder.rows(draft.row.position or 0)
            assert drafter_logits is not None
            assert said is not None
            listed = {token.id for token in draft.row.tokens}
            assert set(target_logits.topk(LISTED).indices.tolist()) <= listed
            assert set(drafter_logits.topk(LISTED).indices.tolist()) <= listed
            assert len(listed) <= 2 * LISTED + 2
            likeliest = [max(token.p or 0, token.q or 0) for token in draft.row.tokens]
            assert likeliest == sorted(likeliest, reverse=True)
            silent = [token for token in draft.row.tokens if token.id not in said.tolist()]
            assert all((token.q, token.drafter_logit) == (0, None) for token in silent)


@pytest.mark.parametrize("temperature", [0.0, 0.3, 1.0, 3.0])
def test_logits_and_their_normalisers_are_the_laws_before_any_temperature(temperature: float) -> None:
    text = (0, 1, 2)
    target, drafter = (np.exp(table(text)) / np.exp(table(text)).sum() for table in (TARGET, DRAFTER))
    row = decode(PAIRS["other drafter"], 8, temperature=temperature, top_k=5).rounds[0].drafts[0].row
    assert row is not None
    for token in row.tokens:
        before = math.exp((token.target_logit or 0) - (row.target_log_normaliser or 0))
        assert before == pytest.approx(target[token.id], abs=1e-6)
        before = math.exp((token.drafter_logit or 0) - (row.drafter_log_normaliser or 0))
        assert before == pytest.approx(drafter[token.id], abs=1e-6)


def test_filters_apply_to_both_laws_and_to_every_row() -> None:
    target, drafter = [2, 2.4, 2.8, 1, 0.6, 0.2, 0, -0.4], [3, 2.6, 2.2, 1, 0.6, 0.2, 0, -0.4]
    pair = TablePair(lambda ids: target, lambda ids: drafter, 8)
    p = [0.211982721, 0.316241058, 0.471776221, 0, 0, 0, 0, 0]
    q = [0.471776221, 0.316241058, 0.211982721, 0, 0, 0, 0, 0]
    rows = [row for round_ in decode(pair, 12, gamma=2, top_k=3).rounds for row in round_.rows()]
    assert {row.tv is None for row in rows} == {True, False}
    for row in rows:
        tokens = sorted(row.tokens, key=lambda token: token.id)
        assert [token.p for token in tokens] == pytest.approx(p, abs=1e-7)
        if row.tv is not None:
            assert [token.q for token in tokens] == pytest.approx(q, abs=1e-7)
            assert row.expected_accept == pytest.approx(0.7402065, abs=1e-7)


def test_a_copied_draft_has_no_logits_and_a_full_lane() -> None:
    trace = decode(TablePair(TARGET, vocab_size=VOCAB), 8, "abcab", drafter="ngram", gamma=2)
    draft = trace.rounds[0].drafts[0]
    assert draft.row is not None
    assert (draft.id, draft.q, draft.row.drafter_log_normaliser) == (2, 1, None)
    assert all(token.drafter_logit is None for token in draft.row.tokens)
    assert draft.accept_prob == draft.p == pytest.approx(1 - (draft.row.tv or 0))
