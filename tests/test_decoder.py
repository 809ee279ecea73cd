"""The decoder: one seed one run, the text of the target alone, caches in step, rounds that are whole or not there."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from specviz.decoding.decoder import Decoder
from specviz.decoding.settings import MAX_GAMMA, Settings
from specviz.models.language_model import LanguageModel, Rows
from specviz.probability import entropy, warp
from specviz.rules import RULES
from specviz.trace import LISTED, Header, Round, Trace, dump, load
from tests.decoding_runs import (
    SAME_TEXT_RULES,
    begin,
    decode,
    finish,
    reads,
    timeless,
    timeless_trace,
    tiny_pair,
    without_reads,
)
from tests.table_models import TableModel, TablePair, random_table

VOCAB = 6
TARGET, DRAFTER, OTHER_DRAFTER = (random_table(seed, VOCAB) for seed in range(3))
KEEPING_RULES = ("greedy", "speculative_sampling", "gumbel_coupling", "block_verification")
"""They keep whatever a drafter equal to the target drafts."""


def tables(**changes: Any) -> TablePair:
    return TablePair(TARGET, DRAFTER, VOCAB, **changes)


# --- what comes out ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", [1, 3, 8])
@pytest.mark.parametrize("rule", KEEPING_RULES)
def test_a_drafter_equal_to_the_target_is_kept_whole(rule: str, gamma: int) -> None:
    trace = decode(TablePair(TARGET, vocab_size=VOCAB), 40, rule=rule, gamma=gamma)
    assert all(round_.kept == len(round_.drafts) for round_ in trace.rounds)
    assert [len(round_.emitted) for round_ in trace.rounds[:-1]] == [gamma + 1] * (len(trace.rounds) - 1)


@pytest.mark.parametrize("rule", KEEPING_RULES)
@pytest.mark.parametrize("family", ["llama", "gpt2", "mistral"])
def test_a_network_that_drafts_for_itself_is_kept_whole(family: str, rule: str) -> None:
    """In float32 a read of five rows and five reads of one agree to about 1e-6: odds of a miss 1e-4 for 48 tokens."""
    decoder = Decoder.start(
        tiny_pair(family), "The dog", Settings(rule=rule, drafter="target"), 48, raw=True, stop_ids=()
    )
    trace = finish(decoder)
    assert all(round_.kept == len(round_.drafts) for round_ in trace.rounds)
    assert len(trace.rounds) == 10


@pytest.mark.parametrize("rule", SAME_TEXT_RULES)
def test_the_text_is_the_target_alone_whatever_is_drafted(rule: str) -> None:
    alone = decode(tables(), 20, rule=rule, gamma=0, seed=5)
    drafted = [decode(tables(), 20, rule=rule, gamma=gamma, seed=5) for gamma in range(1, 9)]
    drafted += [decode(tables(), 20, rule=rule, drafter=kind, seed=5) for kind in ("target", "ngram", "none")]
    drafted += [decode(TablePair(TARGET, OTHER_DRAFTER, VOCAB), 20, rule=rule, seed=5)]
    assert {trace.text_ids for trace in drafted} == {alone.text_ids}
    assert len(set(alone.text_ids)) > 2
    assert len({len(trace.rounds) for trace in drafted}) > 3, "the reads differ, the text does not"


@pytest.mark.parametrize("rule", SAME_TEXT_RULES)
def test_real_networks_write_what_the_target_writes_alone(rule: str) -> None:
    pair = tiny_pair()
    alone = decode(pair, 24, "The dog slept", rule=rule, gamma=0)
    for changes in ({"gamma": 2}, {"gamma": 7}, {"drafter": "ngram"}, {"drafter": "target"}):
        assert decode(pair, 24, "The dog slept", rule=rule, **changes).text_ids == alone.text_ids


@pytest.mark.parametrize("rule", RULES)
def test_one_seed_gives_one_run(rule: str) -> None:
    """Equal to the last character of the file, times and the date apart."""
    first, second = (decode(tables(), rule=rule, seed=17) for _ in range(2))
    assert dump(timeless_trace(first)) == dump(timeless_trace(second))
    if rule != "greedy":
        assert decode(tables(), rule=rule, seed=18).text_ids != first.text_ids


def test_sampling_at_temperature_zero_gives_the_rounds_of_greedy() -> None:
    greedy = decode(tables(), rule="greedy")
    for rule in RULES.keys() - {"greedy"}:
        sampled = decode(tables(), rule=rule, temperature=0)
        assert [(r.emitted, r.kept) for r in sampled.rounds] == [(r.emitted, r.kept) for r in greedy.rounds]


def test_the_drafters_temperature_moves_speed_and_not_the_text_of_a_coupled_run() -> None:
    cold, warm = (decode(tables(), rule="gumbel_coupling", drafter_temperature=t) for t in (0.1, 1.0))
    assert cold.text_ids == warm.text_ids
    assert [r.kept for r in cold.rounds] != [r.kept for r in warm.rounds]


def test_the_header_says_what_ran() -> None:
    header = begin(tables(stop_ids=(5,)), 24, "abc").trace.header
    assert (header.pair, header.drafter, header.device, header.dtype) == ("table", "table", "cpu", "float32")
    assert (header.prompt, header.prompt_ids, header.prompt_bytes) == ("abc", (0, 1, 2), ("61", "62", "63"))
    assert (header.stop_ids, header.max_new_tokens, header.listed) == ((5,), 24, LISTED)
    assert header.created is not None


def test_a_prompt_is_a_users_message_unless_it_is_raw() -> None:
    pair = tiny_pair()
    message = Decoder.start(pair, "The dog", Settings(), 8).trace.header
    raw = Decoder.start(pair, "The dog", Settings(), 8, raw=True).trace.header
    assert message.prompt_ids == tuple(pair.tokenizer.chat("The dog"))
    assert raw.prompt_ids == tuple(pair.tokenizer.encode("The dog")) != message.prompt_ids
    assert message.prompt == raw.prompt == "The dog"


# --- caches -----------------------------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(
    rule=st.sampled_from(list(RULES)),
    gammas=st.lists(st.integers(0, 5), min_size=1, max_size=6),
    seed=st.integers(0, 1000),
)
def test_caches_follow_the_text_and_nothing_is_read_twice(rule: str, gammas: list[int], seed: int) -> None:
    pair = tables()
    decoder = begin(pair, 100, rule=rule, seed=seed)
    (_, target), (_, drafter) = pair.made
    for gamma in gammas:
        decoder = decoder.resume(decoder.trace, dataclasses.replace(decoder.settings, gamma=gamma))
        held, seen = drafter.length, (len(target.reads), len(drafter.reads))
        round_ = decoder.step()
        text = [*decoder.trace.header.prompt_ids, *decoder.trace.text_ids]
        before = len(text) - len(round_.emitted)
        assert target.ids == text[:-1]
        assert drafter.ids == text[: drafter.length]
        assert drafter.length < len(text)
        # One read of the target: the last token of the text and every draft.
        assert reads(round_, "target") == [(before - 1, 1 + gamma)]
        # The drafter catches up on what it lacks, then reads its drafts but the last.
        caught_up = [(held or before - 1, before - (held or before - 1))]
        assert reads(round_, "drafter") == [*caught_up, *((before + i, 1) for i in range(gamma - 1))] * (gamma > 0)
        counted = [(p.context, p.query_tokens) for p in round_.passes]
        assert counted == drafter.reads[seen[1] :] + target.reads[seen[0] :]
    assert len(pair.made) == 2, "no other readers were made"


def test_prefills_stand_in_the_first_round_only() -> None:
    trace = decode(tables())
    assert [p.kind for p in trace.rounds[0].passes] == ["prefill", *["draft"] * 4, "prefill", "verify"]
    assert all(p.kind != "prefill" for round_ in trace.rounds[1:] for p in round_.passes)


# --- looking back -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
def test_a_run_goes_on_from_any_recorded_round_as_if_it_had_never_ended(rule: str) -> None:
    whole = decode(tables(), 12, rule=rule, seed=3)
    for rounds in range(len(whole.rounds)):
        recorded = load(dump(whole)).cut(rounds)
        again = finish(Decoder(tables(), recorded, Settings(rule=rule, seed=3)))
        assert list(map(without_reads, again.rounds)) == list(map(without_reads, whole.rounds))


@pytest.mark.parametrize(
    "changes",
    [
        {"gamma": 2},
        {"temperature": 0.5},
        {"rule": "gumbel_coupling"},
        {"drafter": "ngram"},
        {"seed": 9},
        {"stop_below": 0.5},
    ],
)
def test_another_setting_keeps_the_rounds_at_the_cursor(changes: dict[str, Any]) -> None:
    decoder = begin(tables(), seed=3)
    whole = finish(decoder)
    cursor = len(whole.rounds) // 2
    wanted = Settings(**{"seed": 3, **changes})
    heir = decoder.resume(whole.cut(cursor), wanted)
    assert heir.trace.rounds == whole.rounds[:cursor]
    went_on = finish(heir)
    assert went_on.rounds[:cursor] == whole.rounds[:cursor]
    assert all(round_.settings == wanted.as_dict() for round_ in went_on.rounds[cursor:])
    fresh = finish(Decoder(tables(), whole.cut(cursor), wanted))
    assert list(map(without_reads, went_on.rounds)) == list(map(without_reads, fresh.rounds))


@pytest.mark.parametrize("stop", [{"stop_below": 1.0}, {"stop_above": 0.0}])
def test_a_drafter_that_is_certain_is_sure_enough_for_every_limit(stop: dict[str, float]) -> None:
    pair, greedy = tables(), {"rule": "greedy", "gamma": 4}
    limited, free = (decode(pair, 20, **greedy, **limit) for limit in (stop, {}))
    assert [len(round_.drafts) for round_ in limited.rounds] == [len(round_.drafts) for round_ in free.rounds]


@pytest.mark.parametrize(
    ("stop", "says"),
    [
        ({"stop_below": 0.5}, lambda q: float(q.max()) < 0.5),
        ({"stop_above": 1.0}, lambda q: float(entropy(q)) > 1.0),
    ],
)
def test_a_round_drafts_on_while_the_drafter_is_sure_and_reads_the_row_that_ends_it(
    stop: dict[str, float], says: Callable[[Any], bool]
) -> None:
    pair = tables()
    trace = decode(pair, 40, gamma=4, seed=3, **stop)
    whole = [*trace.header.prompt_ids, *trace.text_ids]
    ended = 0
    for round_ in trace.rounds[:-1]:
        read = sum(one.model == "drafter" and one.kind == "draft" for one in round_.passes)
        text = [*whole[: round_.position], *(draft.id for draft in round_.drafts)]
        laws = [warp(pair.drafter().extend(text[: round_.position + place]).logits[-1], 1.0) for place in range(read)]
        gave_up = read > len(round_.drafts)
        assert [says(q) for q in laws] == [False] * len(round_.drafts) + [True] * gave_up
        assert gave_up or len(round_.drafts) == min(4, 40 - (round_.position - len(trace.header.prompt_ids)) - 1)
        ended += gave_up
    assert 0 < ended < len(trace.rounds), "some rounds ended early and some did not"


@pytest.mark.parametrize("rule", SAME_TEXT_RULES)
def test_a_draft_that_ends_early_leaves_the_text_alone_where_the_rule_promises_it(rule: str) -> None:
    alone = decode(tables(), rule=rule, gamma=0, seed=3)
    assert decode(tables(), rule=rule, gamma=6, seed=3, stop_below=0.5).text_ids == alone.text_ids


def test_look_up_matches_as_long_a_run_as_is_wanted_from_the_next_round_on() -> None:
    """The longest run wins over the latest: behind "abc…dbc…abc" three tokens say what two do not."""
    prompt = "abcadbcdabc"
    first = [begin(tables(), prompt=prompt, drafter="ngram", ngram=longest).step().drafts[0].id for longest in (2, 3)]
    assert first == [3, 0]
    decoder = begin(tables(), prompt=prompt, drafter="ngram", ngram=2)
    heir = decoder.resume(decoder.trace, Settings(drafter="ngram", ngram=3))
    assert heir.step().drafts[0].id == 0


def test_caches_are_taken_over_and_not_read_again() -> None:
    pair = tables()
    decoder = begin(pair, 60)
    for _ in range(6):
        decoder.step()
    heir = decoder.resume(decoder.trace.cut(3), Settings(gamma=2))
    round_ = heir.step()
    assert [p.kind for p in round_.passes] == ["draft", "draft", "verify"]
    assert len(pair.made) == 2


def test_a_decoder_that_was_resumed_steps_no_more() -> None:
    decoder = begin(tables())
    decoder.step()
    heir = decoder.resume(decoder.trace, Settings(gamma=2))
    for move in (decoder.step, lambda: decoder.resume(decoder.trace, Settings())):
        with pytest.raises(RuntimeError, match=r"this decoder was resumed.*resume\(\) returned"):
            move()
    heir.step()


def test_a_resume_that_is_refused_leaves_the_decoder_open() -> None:
    pair = tiny_pair()
    decoder = Decoder.start(dataclasses.replace(pair, drafter_network=None), "The dog", Settings(drafter="ngram"), 8)
    with pytest.raises(ValueError, match="drafter must be target, ngram or none"):
        decoder.resume(decoder.trace, Settings(drafter="model"))
    other = Trace(dataclasses.replace(decoder.trace.header, prompt_ids=(1, 2)))
    with pytest.raises(ValueError, match="its own prompt"):
        decoder.resume(other, Settings(drafter="ngram"))
    decoder.step()


class Failing(TableModel):
    """A reader whose ``failing``-th read from now on fails, before or after the cache has grown."""

    failing = 0
    late = False

    def extend(self, ids: Sequence[int], rows: int = 1) -> Rows:
        self.failing -= 1
        if self.failing == 0 and not self.late:
            raise MemoryError("no room")
        read = super().extend(ids, rows)
        if self.failing == 0:
            raise MemoryError("no room")
        return read


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("rounds_before", [0, 2])
@pytest.mark.parametrize(("who", "nth"), [("target", 1), ("drafter", 1), ("drafter", 2)])
def test_a_step_that_fails_leaves_nothing_behind(who: str, nth: int, rounds_before: int, late: bool) -> None:
    whole = decode(tables(), gamma=3)
    pair = tables()
    decoder = begin(pair, gamma=3)
    for _ in range(rounds_before):
        decoder.step()
    model = dict(pair.made)[who]
    model.__class__ = Failing
    model.failing, model.late = nth, late  # type: ignore[attr-defined]
    before = decoder.trace
    with pytest.raises(MemoryError):
        decoder.step()
    assert decoder.trace is before
    assert not decoder.finished
    assert without_reads(decoder.step()) == without_reads(whole.rounds[rounds_before])
    assert list(map(without_reads, finish(decoder).rounds)) == list(map(without_reads, whole.rounds))


def test_a_network_that_runs_out_of_memory_mid_round_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = decode(tiny_pair(), 16, "The dog", gamma=3)
    decoder = begin(tiny_pair(), 16, "The dog", gamma=3)
    decoder.step()
    read = LanguageModel._over_vocabulary
    calls = iter([None, None, torch.OutOfMemoryError("no room")])

    def failing(self: LanguageModel, logits: torch.Tensor) -> torch.Tensor:
        error = next(calls, None)
        if error is not None:
            raise error
        return read(self, logits)

    monkeypatch.setattr(LanguageModel, "_over_vocabulary", failing)
    with pytest.raises(torch.OutOfMemoryError):
        decoder.step()
    assert [(r.emitted, r.kept) for r in finish(decoder).rounds] == [(r.emitted, r.kept) for r in whole.rounds]


# --- full rows --------------------------------------------------------------------------------------------------------


def rows_match(decoder: Decoder, within: float) -> int:
    """How many recorded rows were compared with full ones."""
    compared = 0
    for round_ in decoder.trace.rounds:
        # Rows behind a rejected draft are about a text that is gone.
        for row in [draft.row for draft in round_.judged] + [round_.closing.row if round_.closing else None]:
            if row is None:
                continue
            target_logits, drafter_logits, drafter_ids = decoder.rows(row.position or 0)
            assert target_logits.shape == (decoder.pair.vocab_size,)
            for token in row.tokens:
                assert target_logits[token.id].item() == pytest.approx(token.target_logit, abs=within)
                if token.drafter_logit is not None:
                    assert drafter_logits is not None
                    assert drafter_logits[token.id].item() == pytest.approx(token.drafter_logit, abs=within)
            assert drafter_ids is not None
            assert drafter_ids.tolist() == list(range(decoder.pair.vocab_size))
            compared += 1
    return compared


def test_full_rows_are_those_that_were_recorded() -> None:
    decoder = begin(tables(), 16, gamma=2)
    finish(decoder)
    caches = [list(model.ids) for _, model in decoder.pair.made]  # type: ignore[attr-defined]
    assert rows_match(decoder, 0) == 16
    assert [model.ids for _, model in decoder.pair.made[:2]] == caches  # type: ignore[attr-defined]


def test_full_rows_of_networks_agree_with_the_cached_ones() -> None:
    decoder = begin(tiny_pair(), 12, "The dog", gamma=2)
    finish(decoder)
    assert rows_match(decoder, 1e-4) == len(decoder.trace.text_ids)


def test_rows_exist_between_the_first_token_and_the_one_that_would_come_next() -> None:
    decoder = begin(tables(), 4, "abc", gamma=1)
    length = 3 + len(finish(decoder).text_ids)
    for position in (1, length):
        decoder.rows(position)
    for position in (-1, 0, length + 1):
        with pytest.raises(ValueError, match=rf"position must be in 1\.\.{length}, got {position}"):
            decoder.rows(position)


@pytest.mark.parametrize("drafter", ["ngram", "none"])
def test_without_a_drafter_model_there_are_no_drafter_rows(drafter: str) -> None:
    assert begin(tables(), drafter=drafter).rows(2)[1:] == (None, None)


def test_where_the_drafter_cannot_read_there_are_no_drafter_rows() -> None:
    decoder = begin(tables(drafter_positions=4), 8)
    finish(decoder)
    assert decoder.rows(4)[1] is not None
    assert decoder.rows(5)[1:] == (None, None)


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prompt", "length", "message"),
    [
        ("", 8, "the prompt must not be empty, got ''"),
        (" \n", 8, r"the prompt must not be empty, got ' \\n'"),
        ("123", 8, "the prompt must have at least one token, got none"),
        ("a\udcff", 8, r"the prompt must be text that UTF-8 can hold, got 'a\\udcff'"),
        ("abc", 0, "max_new_tokens must be at least 1, got 0"),
        ("abc", -3, "max_new_tokens must be at least 1, got -3"),
        ("abcdefgh", 8, "the prompt has 8 tokens and the target reads at most 8: shorten it to 7 or fewer"),
    ],
)
def test_what_cannot_be_decoded_is_refused_with_a_sentence(prompt: str, length: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Decoder.start(TablePair(random_table(0, 9), vocab_size=9, target_positions=8), prompt, Settings(), length)


def test_a_recorded_run_without_a_prompt_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one token"):
        Decoder(tables(), Trace(Header()), Settings())


def test_nothing_follows_the_end() -> None:
    decoder = begin(tables(), 5)
    assert finish(decoder).finish == "length"
    with pytest.raises(RuntimeError, match=r"the text has ended \(length\)"):
        decoder.step()
    assert Decoder(tables(), decoder.trace, Settings()).finished


def test_a_recorded_run_as_long_as_its_budget_has_ended_even_if_it_does_not_say_so() -> None:
    trace = decode(tables(), 5)
    unsaid = Trace(trace.header, (*trace.rounds[:-1], dataclasses.replace(trace.rounds[-1], finish=None)))
    assert Decoder(tables(), unsaid, Settings()).finished


def test_a_pair_without_a_drafter_model_decodes_without_it() -> None:
    pair = dataclasses.replace(tiny_pair(), drafter_network=None)
    for kind in ("target", "ngram", "none"):
        assert len(decode(pair, 6, "The dog", drafter=kind).text_ids) <= 6
    with pytest.raises(ValueError, match="drafter must be target, ngram or none"):
        begin(pair, 6, "The dog")


# --- side by side -----------------------------------------------------------------------------------------------------


def test_two_decoders_on_one_pair_do_not_disturb_each_other() -> None:
    """Two threads, one pair: each run is the run of a single user, to the last number."""
    pair = tiny_pair()
    visitors: list[dict[str, Any]] = [
        {"prompt": "The dog", "seed": 1, "gamma": 3},
        {"prompt": "def add", "seed": 2, "gamma": 5, "rule": "gumbel_coupling"},
    ]
    alone = [decode(pair, 24, **visitor) for visitor in visitors]
    together = Barrier(2)

    def visit(visitor: dict[str, Any]) -> Trace:
        decoder = begin(pair, 24, **visitor)
        together.wait()
        return finish(decoder)

    with ThreadPoolExecutor(2) as pool:
        beside = list(pool.map(visit, visitors))
    assert list(map(timeless_trace, beside)) == list(map(timeless_trace, alone))


def test_decoders_that_take_turns_do_not_share_settings_caches_or_randomness() -> None:
    pair = tables()
    one, other = begin(pair, 30, "abc", seed=1, gamma=2), begin(pair, 30, "fed", seed=2, gamma=5, temperature=0.5)
    rounds: dict[Decoder, list[Round]] = {one: [], other: []}
    while rounds.keys() - {decoder for decoder in rounds if decoder.finished}:
        for decoder, own in rounds.items():
            if not decoder.finished:
                own.append(timeless(decoder.step()))
    alone = [
        decode(tables(), 30, "abc", seed=1, gamma=2),
        decode(tables(), 30, "fed", seed=2, gamma=5, temperature=0.5),
    ]
    assert list(rounds.values()) == [list(map(timeless, trace.rounds)) for trace in alone]


def test_the_largest_gamma_works() -> None:
    trace = decode(TablePair(TARGET, vocab_size=VOCAB), MAX_GAMMA + 1, gamma=MAX_GAMMA, rule="greedy")
    assert [len(round_.emitted) for round_ in trace.rounds] == [MAX_GAMMA + 1]
