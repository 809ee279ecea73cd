"""Small inputs that broke other programs, through the real decoder."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from specviz.decoding import decoder as decoding
from specviz.decoding.decoder import Decoder
from specviz.decoding.settings import Settings
from specviz.models.catalogue import local_pair
from specviz.models.language_model import LanguageModel, Rows
from specviz.models.loading import Pair, load_pair
from specviz.rules import RULES
from specviz.trace import Header, Round, Row, Trace, tally
from tests.decoding_runs import SAMPLING_RULES, begin, decode, finish, reads, tiny_pair
from tests.table_models import Logits, TablePair, random_table, scripted
from tests.tiny_models import save


def after_one(*ids: int) -> dict[int, int]:
    """A script for a prompt of one token."""
    return dict(enumerate(ids, start=1))


def fixed(logits: Sequence[float]) -> Logits:
    return lambda ids: logits


def fates(round_: Round) -> list[str | None]:
    return [draft.fate for draft in round_.drafts]


def laws(row: Row | None) -> tuple[list[float | None], list[float | None]]:
    """p and q of a row that lists every token, by id."""
    assert row is not None
    tokens = sorted(row.tokens, key=lambda token: token.id)
    return [token.p for token in tokens], [token.q for token in tokens]


# --- the text is drawn ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", SAMPLING_RULES)
def test_temperature_still_matters_with_a_drafter(rule: str) -> None:
    """Odds that a right decoder misses one of three tokens in 80 seeds: 8e-8 a rule."""
    pair = TablePair(fixed([1, 0.5, 0]), fixed([0, 0.5, 1]), vocab_size=3)
    seen = {begin(pair, 3, "a", rule=rule, gamma=2, seed=seed).step().emitted[0] for seed in range(80)}
    assert seen == {0, 1, 2}


@pytest.mark.parametrize("temperature", [0.0, 1e-8, 1e-6, 1e-5])
@pytest.mark.parametrize("rule", SAMPLING_RULES)
def test_a_tiny_temperature_is_greedy_for_both_models(rule: str, temperature: float) -> None:
    pair = TablePair(fixed([1.0, 1.5, -2.0]), fixed([1.2, 1.0, 0.5]), vocab_size=3)
    round_ = begin(pair, 8, "a", rule=rule, gamma=1, temperature=temperature).step()
    assert laws(round_.drafts[0].row) == ([0, 1, 0], [1, 0, 0])
    assert (round_.drafts[0].id, round_.kept, round_.emitted) == (0, 0, (1,))
    assert round_.drafts[0].row is not None
    assert round_.drafts[0].row.tv == 1


def test_the_laws_recorded_are_the_laws_that_decided() -> None:
    pair = TablePair(fixed([1.0, 1.2]), fixed([0.8, 0.5]), vocab_size=2)
    for rule in RULES:
        round_ = begin(pair, 8, "a", rule=rule, gamma=1, temperature=0).step()
        assert laws(round_.drafts[0].row) == ([0, 1], [1, 0])
        assert (round_.drafts[0].id, fates(round_), round_.emitted) == (0, ["rejected"], (1,))
        assert round_.closing is not None
        assert (round_.closing.kind, round_.closing.law) == ("correction", ((1, 1.0),))


def test_the_drafters_temperature_is_the_targets_when_linked() -> None:
    pair = TablePair(fixed([0.0, 1.0, 2.0]), fixed([2.0, 1.0, 0.0]), vocab_size=3)
    linked = begin(pair, 8, "a", temperature=0.5).step()
    for draft in linked.drafts:
        assert laws(draft.row)[1] == pytest.approx([0.866813332, 0.117310428, 0.01587624], abs=1e-9)
    assert linked.settings is not None
    assert (linked.settings["temperature"], linked.settings["drafter_temperature"]) == (0.5, 0.5)


@pytest.mark.parametrize(("logits", "chosen"), [([1.0, 1.0, 0.0], 0), ([0.0, 2.0, 2.0], 1), ([5.0, 5.0, 5.0], 0)])
def test_an_exact_tie_falls_alike_in_drafts_verdicts_bonus_and_plain_decoding(logits: list[float], chosen: int) -> None:
    pair = TablePair(fixed(logits), vocab_size=3)
    for rule in RULES:
        drafted = begin(pair, 8, "a", rule=rule, gamma=2, temperature=0).step()
        assert (drafted.kept, drafted.emitted) == (2, (chosen,) * 3)
        plain = begin(pair, 8, "a", rule=rule, gamma=0, temperature=0).step()
        assert plain.emitted == (chosen,)


@pytest.mark.parametrize(("dtype", "chosen", "margin"), [("float32", 1, 0.0009765625), ("bfloat16", 0, 0.0)])
def test_a_near_tie_is_in_the_record(dtype: str, chosen: int, margin: float) -> None:
    logits = torch.tensor([1.0, 1.0009765625, 0.0]).to(getattr(torch, dtype)).float().tolist()
    round_ = begin(TablePair(fixed(logits), vocab_size=3), 8, "a", rule="greedy", gamma=1).step()
    assert round_.emitted == (chosen, chosen)
    for row in round_.rows():
        assert row.target_top2 is not None
        (first, higher), (_, lower) = row.target_top2
        assert higher is not None
        assert lower is not None
        assert (first, higher - lower) == (chosen, pytest.approx(margin, abs=1e-12))


# --- ends -------------------------------------------------------------------------------------------------------------


def test_a_stop_token_inside_the_block_ends_the_text() -> None:
    pair = TablePair(scripted(after_one(4, 7, 2, 9, 5), 10), vocab_size=10, stop_ids=(2,))
    trace = decode(pair, 20, "a", rule="greedy", gamma=4)
    (round_,) = trace.rounds
    assert (trace.text_ids, trace.finish) == ((4, 7, 2), "stop")
    assert (round_.kept, fates(round_), round_.closing) == (3, ["kept", "kept", "kept", "unjudged"], None)


@pytest.mark.parametrize("rule", RULES)
def test_nothing_is_counted_behind_the_stop(rule: str) -> None:
    pair = TablePair(scripted(after_one(4, 7, 2, 9, 5, 8), 10), vocab_size=10, stop_ids=(2,))
    trace = decode(pair, 20, "a", rule=rule, gamma=5, temperature=0)
    counts = tally(trace.rounds)
    assert (counts.emitted, counts.kept, counts.rejected, counts.tokens_per_pass) == (3, 3, 0, 3.0)
    assert (counts.judged, counts.drafted) == (3, 5)


def test_a_stop_token_that_the_target_rejects_ends_nothing() -> None:
    pair = TablePair(scripted(after_one(4, 7, 3, 9), 10), scripted(after_one(4, 2), 10), vocab_size=10, stop_ids=(2,))
    decoder = begin(pair, 4, "a", rule="greedy", gamma=2)
    first = decoder.step()
    assert ([draft.id for draft in first.drafts], first.kept, first.emitted) == ([4, 2], 1, (4, 7))
    assert (first.finish, decoder.finished) == (None, False)
    trace = finish(decoder)
    assert (trace.text_ids, trace.finish) == ((4, 7, 3, 9), "length")


def test_a_draft_behind_a_kept_stop_token_is_not_judged_even_where_the_target_disagrees() -> None:
    pair = TablePair(scripted(after_one(4, 2, 5), 10), scripted(after_one(4, 2, 9), 10), vocab_size=10, stop_ids=(2,))
    for rule in RULES:
        trace = decode(pair, 8, "a", rule=rule, gamma=3, temperature=0)
        (round_,) = trace.rounds
        assert (trace.text_ids, fates(round_), round_.closing) == ((4, 2), ["kept", "kept", "unjudged"], None)
        assert tally(trace.rounds).tested_rate == 1


def test_a_correction_or_a_bonus_may_stop_too() -> None:
    corrected = TablePair(scripted(after_one(2), 10), scripted(after_one(3), 10), vocab_size=10, stop_ids=(2,))
    trace = decode(corrected, 8, "a", rule="greedy", gamma=2)
    assert (trace.text_ids, trace.finish, fates(trace.rounds[0])) == ((2,), "stop", ["rejected", "unjudged"])
    bonus = TablePair(scripted(after_one(3, 4, 2), 10), vocab_size=10, stop_ids=(2,))
    trace = decode(bonus, 8, "a", rule="greedy", gamma=2)
    closing = trace.rounds[0].closing
    assert closing is not None
    assert (trace.text_ids, trace.finish, closing.kind) == ((3, 4, 2), "stop", "bonus")


@pytest.mark.parametrize(
    ("block", "emitted", "reason"),
    [
        ([10, 11, 9, 20, 21, 22], (10, 11, 9), "stop"),
        ([10, 11, 12, 13, 14, 15, 9], (10, 11, 12, 13, 14), "length"),
        ([10, 11, 12, 13, 9, 15], (10, 11, 12, 13, 9), "stop"),
    ],
)
def test_a_stop_wins_over_the_budget(block: list[int], emitted: tuple[int, ...], reason: str) -> None:
    for gamma in (0, 2, 5):
        pair = TablePair(scripted(after_one(*block), 26), vocab_size=26, stop_ids=(9,))
        trace = decode(pair, 5, "a", rule="greedy", gamma=gamma)
        assert (trace.text_ids, trace.finish) == (emitted, reason)


@pytest.mark.parametrize(("budget", "largest_gamma"), [(1, 0), (2, 1), (3, 2)])
def test_no_more_tokens_than_were_asked_for(budget: int, largest_gamma: int) -> None:
    pair = TablePair(random_table(0, 8), vocab_size=8)
    trace = decode(pair, budget, "fghfg", drafter="ngram", gamma=3)
    assert trace.header.prompt_ids == (5, 6, 7, 5, 6)
    assert (len(trace.text_ids), trace.finish) == (budget, "length")
    assert len(trace.rounds[0].drafts) <= largest_gamma


def test_a_model_without_a_stop_token_decodes() -> None:
    pair = TablePair(random_table(0, 12), vocab_size=12)
    trace = decode(pair, 4, "fghijklhi", drafter="ngram", gamma=3)
    assert trace.header.prompt_ids == (5, 6, 7, 8, 9, 10, 11, 7, 8)
    assert trace.header.stop_ids == ()
    assert [draft.id for draft in trace.rounds[0].drafts] == [9, 10, 11]
    assert (len(trace.text_ids), trace.finish) == (4, "length")


@pytest.mark.parametrize("gamma", [0, 5])
@pytest.mark.parametrize(("drafter_positions", "largest_gamma"), [(16, 2), (14, 1), (12, 0)])
def test_neither_model_reads_behind_its_last_position(drafter_positions: int, largest_gamma: int, gamma: int) -> None:
    pair = TablePair(random_table(0, 4), vocab_size=4, target_positions=16, drafter_positions=drafter_positions)
    decoder = begin(pair, 50, "abcdabcdabcdab", gamma=gamma)
    assert len(decoder.step().drafts) <= min(gamma, largest_gamma)
    trace = finish(decoder)
    assert (len(trace.text_ids), trace.finish) == (2, "context")
    (_, target), (_, drafter) = pair.made
    assert target.largest_index <= 15
    assert drafter.largest_index < drafter_positions


def test_a_drafter_with_a_short_memory_drafts_as_long_as_it_can() -> None:
    pair = TablePair(random_table(0, 4), vocab_size=4, target_positions=40, drafter_positions=12)
    trace = decode(pair, 50, "abcd", rule="greedy", gamma=5)
    # Twelve tokens read draft up to position 12; the rest is plain decoding.
    assert [len(round_.drafts) for round_ in trace.rounds] == [5, 3, *[0] * 26]
    assert (4 + len(trace.text_ids), trace.finish) == (40, "context")


def test_a_round_without_drafts_emits_one_token_and_has_no_rate() -> None:
    pair = TablePair(random_table(0, 4), vocab_size=4)
    gamma_zero = begin(pair, 8, "a", gamma=0).step()
    one_left = begin(pair, 1, "a", gamma=4).step()
    nothing_to_copy = begin(pair, 8, "abc", drafter="ngram").step()
    for round_ in (gamma_zero, one_left, nothing_to_copy):
        assert (len(round_.drafts), len(round_.emitted)) == (0, 1)
        assert round_.closing is not None
        assert round_.closing.kind == "plain"
        counts = tally([round_])
        assert counts.drafted_rate is counts.tested_rate is counts.alpha is None
        assert counts.tokens_per_pass == 1


# --- caches -----------------------------------------------------------------------------------------------------------


def test_acceptance_does_not_decay_with_length() -> None:
    pair = TablePair(random_table(0, 8), vocab_size=8)
    trace = decode(pair, 64, "abc", rule="greedy", gamma=4)
    assert all(round_.kept == len(round_.drafts) for round_ in trace.rounds)
    assert [len(round_.emitted) for round_ in trace.rounds] == [5] * 12 + [4]


def has_read(round_: Round) -> int | None:
    """Tokens the drafter has read when it draws its first draft."""
    first = next(iter(reads(round_, "drafter")), None)
    return None if first is None else (first[0] or 0) + (first[1] or 0)


def test_the_last_draft_is_read_before_the_next_round_drafts() -> None:
    pair = TablePair(random_table(0, 8), vocab_size=8)
    decoder = begin(pair, 50, "abcde", rule="greedy", gamma=3)
    (_, target), (_, drafter) = pair.made
    for start, target_end, drafter_end, read in ((4, 8, 7, 5), (8, 12, 11, 9)):
        round_ = decoder.step()
        assert reads(round_, "target") == [(start, 4)]
        assert (round_.kept, has_read(round_)) == (3, read)
        assert (target.length, drafter.length) == (target_end, drafter_end)


def test_a_round_without_drafting_leaves_no_gap_in_the_drafters_cache() -> None:
    pair = TablePair(random_table(0, 8), vocab_size=8)
    decoder = begin(pair, 50, "abcde", rule="greedy", gamma=3)
    rounds = []
    for gamma in (3, 0, 3):
        decoder = decoder.resume(decoder.trace, Settings(rule="greedy", gamma=gamma))
        rounds.append(decoder.step())
    assert [round_.kept for round_ in rounds] == [3, 0, 3]
    assert [len(round_.emitted) for round_ in rounds] == [4, 1, 4]
    assert list(map(has_read, rounds)) == [5, None, 10]


class Rereading:
    """A reader without a cache: it reads the whole text anew every time."""

    def __init__(self, make: Callable[[], LanguageModel]) -> None:
        self.make = make
        self.ids: list[int] = []
        self.vocab_size, self.max_positions = make().vocab_size, make().max_positions

    @property
    def length(self) -> int:
        return len(self.ids)

    def extend(self, ids: Sequence[int], rows: int = 1) -> Rows:
        context = self.length
        self.ids += ids
        return dataclasses.replace(self.make().extend(self.ids, rows), query_tokens=len(ids), context=context)

    def rollback(self, n: int) -> None:
        self.ids = self.ids[: len(self.ids) - n]


class WithoutCaches:
    """A pair whose readers keep no cache."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair

    def __getattr__(self, name: str) -> Any:
        return getattr(self.pair, name)

    def target(self) -> Any:
        return Rereading(self.pair.target)

    def drafter(self, kind: Any = "model") -> Any:
        return Rereading(lambda: self.pair.drafter(kind))


@pytest.mark.parametrize("settings", [Settings(gamma=3, temperature=0), Settings(gamma=3, seed=1)])
@pytest.mark.parametrize("family", ["llama", "mistral"])
def test_the_cache_changes_nothing(family: str, settings: Settings) -> None:
    pair = tiny_pair(family)
    begun = Trace(Header(prompt_ids=(3, 4, 5), max_new_tokens=24))
    cached = finish(Decoder(pair, begun, settings))
    reread = finish(Decoder(WithoutCaches(pair), begun, settings))
    assert cached.text_ids == reread.text_ids
    assert [r.kept for r in cached.rounds] == [r.kept for r in reread.rounds]
    assert {len(r.drafts) - r.kept for r in cached.rounds} > {0}, "some drafts were rejected, so caches rolled back"


def test_the_first_draft_is_verified() -> None:
    """The target disagrees with the copy at once, and with no other."""
    pair = TablePair(scripted({3: 2}, 4, otherwise=1), vocab_size=4)
    round_ = begin(pair, 8, "bbb", rule="greedy", drafter="ngram").step()
    assert [draft.id for draft in round_.drafts] == [1]
    assert (round_.kept, round_.emitted) == (0, (2,))


def test_the_mask_of_passed_tests_is_not_summed() -> None:
    """Tests 1, 3 and 4 pass, test 2 fails."""
    pair = TablePair(scripted(after_one(1, 2, 3, 4, 6), 8), scripted(after_one(1, 5, 3, 4), 8), vocab_size=8)
    round_ = begin(pair, 20, "a", rule="greedy", gamma=4).step()
    assert [draft.id for draft in round_.drafts] == [1, 5, 3, 4]
    assert (round_.kept, round_.emitted) == (1, (1, 2))
    assert fates(round_) == ["kept", "rejected", "unjudged", "unjudged"]
    assert [draft.passed for draft in round_.drafts] == [True, False, None, None]


# --- shared objects and seeds -----------------------------------------------------------------------------------------


def test_the_second_of_two_equal_runs_behaves_like_the_first() -> None:
    pair = TablePair(random_table(0, 6), random_table(1, 6), vocab_size=6)
    settings = Settings(gamma=5, seed=4)
    runs = [finish(Decoder.start(pair, "abc", settings, 23)) for _ in range(2)]
    gammas = [[len(round_.drafts) for round_ in run.rounds] for run in runs]
    assert gammas[0] == gammas[1]
    assert gammas[0][-1] < 5, "the budget shortened the last round, and that round only"
    assert runs[0].text_ids == runs[1].text_ids
    assert settings == Settings(gamma=5, seed=4)


@pytest.mark.parametrize(("rule", "equal"), [("speculative_sampling", [0, 1, 3]), ("gumbel_coupling", [0, 1, 2, 3])])
def test_a_run_depends_on_its_seed_and_not_on_who_else_decodes(rule: str, equal: list[int]) -> None:
    pair = TablePair(random_table(0, 6), random_table(1, 6), vocab_size=6)
    run: dict[str, Any] = {"rule": rule, "seed": 17, "temperature": 0.8}
    texts = [decode(pair, 24, gamma=gamma, **run).text_ids for gamma in (2, 2, 5)]
    visited, visitor = begin(pair, 24, gamma=2, **run), begin(pair, 24, "dd", gamma=3, seed=1)
    while not visited.finished:
        visited.step()
        if not visitor.finished:
            visitor.step()
    texts.append(visited.trace.text_ids)
    assert len({texts[i] for i in equal}) == 1
    assert all(len(text) == 24 for text in texts)


EXPONENTIALS = [[0.9, 0.5, 1.1], [0.2, 1.4, 0.8], [1.3, 0.7, 0.3], [0.6, 0.4, 0.9], [1.0, 0.35, 0.5], [0.25, 0.6, 2.0]]
P = [[0.5, 0.3, 0.2], [0.2, 0.5, 0.3], [0.3, 0.3, 0.4], [0.6, 0.2, 0.2], [0.1, 0.6, 0.3], [0.4, 0.4, 0.2]]
Q = [[0.4, 0.4, 0.2], [0.5, 0.3, 0.2], [0.2, 0.2, 0.6], [0.3, 0.4, 0.3], [0.2, 0.5, 0.3], [0.2, 0.6, 0.2]]


@dataclasses.dataclass
class GivenNoise:
    """Gumbel noise by absolute position; the prompt has one token. No other stream may be asked."""

    seed: int
    position: int
    by_round: bool = False
    like: torch.Tensor | None = None

    def gumbel(self, place: int, vocab_size: int) -> torch.Tensor:
        return -torch.log(torch.tensor(EXPONENTIALS[self.position + place - 1], dtype=torch.float64))


@pytest.mark.parametrize(
    ("gamma", "rounds"),
    [
        (0, [(0, 0)] * 6),
        (1, [(1, 1), (1, 1), (1, 1)]),
        (2, [(2, 2), (2, 0), (1, 1)]),
        (5, [(5, 3), (1, 1)]),
    ],
)
def test_with_noise_by_position_the_text_is_one_whatever_gamma(
    gamma: int, rounds: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decoding, "RoundNoise", GivenNoise)
    pair = TablePair(lambda ids: np.log(P[len(ids) - 1]), lambda ids: np.log(Q[len(ids) - 1]), vocab_size=3)
    trace = decode(pair, 6, "a", rule="gumbel_coupling", gamma=gamma)
    assert trace.text_ids == (1, 0, 2, 0, 1, 0)
    assert [(len(round_.drafts), round_.kept) for round_ in trace.rounds] == rounds
    would_pick = [1, 0, 2, 1, 1, 1]
    for round_ in trace.rounds:
        for place, draft in enumerate(round_.drafts):
            assert draft.id == would_pick[round_.position - 1 + place]


# --- vocabularies -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", SAMPLING_RULES)
def test_padding_has_no_probability_in_the_record_and_never_appears(rule: str) -> None:
    absent = [-math.inf] * 2
    pair = TablePair(fixed([1, 0, 2, 0.5, *absent]), fixed([0, 1, 2, 0, *absent]), vocab_size=6)
    trace = decode(pair, 20, rule=rule, gamma=2)
    p, q = laws(trace.rounds[0].drafts[0].row)
    assert p == pytest.approx([0.213097304, 0.078394117, 0.57925853, 0.129250049, 0, 0], abs=1e-9)
    assert q == pytest.approx([0.082594539, 0.224515236, 0.610295685, 0.082594539, 0, 0], abs=1e-9)
    assert p[4:] == q[4:] == [0, 0]
    said = {*trace.text_ids, *(draft.id for round_ in trace.rounds for draft in round_.drafts)}
    assert max(said) < 4
    row = trace.rounds[0].drafts[0].row
    assert row is not None
    assert all(token.target_logit is token.drafter_logit is None for token in row.tokens if token.id >= 4)


@pytest.mark.parametrize("drafter_rows", [320, 336, 384])
def test_pairs_with_padded_tables_decode(drafter_rows: int, tmp_path: Path) -> None:
    """A third of the target's rows is padding: at this temperature it would be drawn within a few tokens."""
    folders = (
        save(tmp_path / "target", vocab_size=480),
        save(tmp_path / "drafter", vocab_size=drafter_rows, seed=1),
    )
    pair = load_pair(local_pair(*map(str, folders)), device="cpu")
    trace = decode(pair, 24, "The dog", temperature=20.0, gamma=3)
    said = {*trace.text_ids, *(draft.id for round_ in trace.rounds for draft in round_.drafts)}
    assert max(said) < 320
    assert tally(trace.rounds).kept > 0
