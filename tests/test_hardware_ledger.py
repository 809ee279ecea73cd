from __future__ import annotations

import json
import math
from dataclasses import asdict, astuple, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specviz import theory
from specviz.hardware import cost
from specviz.hardware.accelerators import ACCELERATORS, Accelerator
from specviz.hardware.ledger import Ledger, Parts, Summary
from specviz.hardware.shapes import PRICED_PAIRS, SHAPES
from specviz.trace import Closing, Draft, Header, Pass, Round, Row, Trace, load, read

TRACES = Path(__file__).parent.parent / "assets" / "traces"
RECORDED = sorted(path.stem for path in TRACES.glob("*.jsonl"))
H100 = ACCELERATORS["h100-sxm"]
LLAMA_8B, LLAMA_1B = SHAPES["llama-3.1-8b"], SHAPES["llama-3.2-1b"]
EMBEDDED = (SHAPES["smollm2-135m"], SHAPES["embedded-drafter"])


@cache
def recorded(name: str) -> Trace:
    return read(TRACES / f"{name}.jsonl")


@cache
def priced(name: str) -> Ledger:
    return Ledger(recorded(name), H100, LLAMA_8B, LLAMA_1B)


def draft(fate: str, tv: float = 0.25, expected: float | None = 0.75) -> Draft:
    return Draft(1, fate=fate, row=Row(tv=tv, expected_accept=expected))  # type: ignore[arg-type]


def round_of(
    index: int,
    position: int,
    fates: tuple[str, ...],
    *,
    prefill: bool = False,
    drafter: str = "model",
    rule: str = "speculative_sampling",
    expected: float | None = 0.75,
) -> Round:
    """A round as the decoder records it: gamma drafter reads of one token, one target read of gamma + 1."""
    kept, behind = fates.count("kept"), position - 1
    reading = drafter in ("model", "target")
    passes = [Pass("drafter", "draft", 1, behind + i) for i in range(len(fates)) if reading]
    if prefill:
        passes.insert(0, Pass("drafter", "prefill", behind, 0))
        passes.append(Pass("target", "prefill", behind, 0))
    passes.append(Pass("target", "verify", len(fates) + 1, behind))
    return Round(
        index=index,
        position=position,
        settings={"rule": rule, "gamma": len(fates), "drafter": drafter},
        drafts=tuple(draft(fate, expected=expected) for fate in fates),
        closing=Closing(2),
        emitted=tuple(range(kept + 1)),
        passes=tuple(passes),
    )


PROMPT = Header(prompt_ids=tuple(range(10)))
FIRST = round_of(0, 10, ("kept", "kept", "rejected", "unjudged"), prefill=True)
SECOND = round_of(1, 13, ("kept", "kept"))
SHORT = Trace(PROMPT, (FIRST, SECOND))


# --- by hand ----------------------------------------------------------------------------------------------------------


def test_a_round_by_hand() -> None:
    first = Ledger(SHORT, H100, LLAMA_8B, LLAMA_1B).rounds[0]
    target, drafter = 2 * 7_504_924_672, 2 * 1_235_814_400  # bytes of weights read
    target_kv, drafter_kv = 131_072, 32_768  # bytes a token
    assert first.bytes.drafter == 4 * drafter
    assert first.bytes.target == target
    # The drafter reads 9, 10, 11, 12 tokens and writes one each; the target reads 9 and writes 5.
    assert first.bytes.kv == (9 + 10 + 11 + 12 + 4) * drafter_kv + (9 + 5) * target_kv
    assert first.bytes.arithmetic == first.seconds.arithmetic == 0.0
    assert first.seconds.total == pytest.approx(first.bytes.total / 3.35e12)
    # Plain decoding writes three tokens behind 9, 10 and 11.
    assert first.plain_bytes == 3 * target + (9 + 10 + 11 + 3) * target_kv
    assert first.plain_seconds == pytest.approx(first.plain_bytes / 3.35e12)
    assert (first.tokens, first.drafted, first.kept) == (3, 4, 2)
    # The third and the fourth draft went.
    assert first.wasted_reads == 2
    assert first.wasted_bytes == 2 * drafter + (11 + 12 + 2) * drafter_kv
    assert first.price == pytest.approx(1 + 4 * drafter / target, rel=1e-3)
    assert first.complete


def test_prefills_are_kept_apart() -> None:
    ledger = Ledger(SHORT, H100, LLAMA_8B, LLAMA_1B)
    first, second = ledger.rounds
    assert [(entry.model, entry.query_tokens, entry.context) for entry in first.prefills] == [
        ("drafter", 9, 0),
        ("target", 9, 0),
    ]
    assert second.prefills == ()
    unread = Trace(PROMPT, (round_of(0, 10, ("kept", "kept", "rejected", "unjudged")), SECOND))
    assert Ledger(unread, H100, LLAMA_8B, LLAMA_1B).summary() == ledger.summary()


def test_the_three_lines_by_hand() -> None:
    summary = Ledger(SHORT, H100, LLAMA_8B, LLAMA_1B, count="stored").summary()
    assert (summary.rounds, summary.tokens, summary.gamma, summary.drafter_reads) == (2, 6, 3.0, 6)
    assert f"{summary.c:.3f}" == "0.154"
    assert summary.verify == pytest.approx(1.0, abs=1e-3)
    assert summary.price == pytest.approx(1 + 3 * 0.154, abs=1e-3)
    assert summary.brought == 3.0
    assert summary.speed == pytest.approx(3.0 / (1 + 3 * 0.154), rel=1e-3)
    assert summary.acceptance == 0.75
    # The second round drafted two: it counts as a short one.
    assert summary.expected == (theory.expected_tokens(0.75, 4) + theory.expected_tokens(0.75, 2)) / 2
    assert summary.expected_speed == pytest.approx(summary.expected / (1 + 3 * 0.154), rel=1e-3)
    assert summary.best_gamma == theory.optimal_gamma(0.75, 0.154)
    assert summary.best_speed == pytest.approx(theory.speedup(0.75, summary.best_gamma, 0.154), rel=1e-3)
    assert (summary.wasted_reads, summary.at_least) == (2, False)


def test_seconds_of_arithmetic_are_what_reading_does_not_cover() -> None:
    slow = Accelerator("slow", "slow", bandwidth=1e12, flops={"bf16": 1e12})
    first = Ledger(SHORT, slow, LLAMA_8B, LLAMA_1B).rounds[0]
    assert {entry.cost.bound for entry in first.entries} == {"compute"}
    assert first.seconds.arithmetic > 0
    assert first.seconds.total == pytest.approx(sum(entry.cost.compute_s for entry in first.entries))
    assert first.price is not None
    assert first.price > 5  # five rows take five times as long


# --- other runs -------------------------------------------------------------------------------------------------------


def test_an_empty_run_costs_nothing_and_has_no_rates() -> None:
    ledger = Ledger(Trace(PROMPT), H100, LLAMA_8B, LLAMA_1B)
    summary = ledger.summary()
    assert ledger.rounds == ()
    assert [astuple(step)[0] for step in ledger.staircase] == [0]
    assert [step.tokens for step in ledger.plain] == [0]
    assert ledger.expected_line() == ((0.0, 0.0),)
    assert summary.bytes == summary.seconds == Parts()
    rates = (summary.gamma, summary.c, summary.price, summary.brought, summary.speed, summary.expected_speed)
    assert rates == (None,) * 6
    assert summary.bytes_per_token is summary.plain_bytes_per_token is None
    assert not summary.near_draw


def test_without_drafts_a_round_is_a_plain_read() -> None:
    summary = priced("sampling.twin").summary()
    assert summary.tokens == summary.rounds == 96
    assert (summary.gamma, summary.c, summary.drafter_reads, summary.wasted_reads) == (0.0, 0.0, 0, 0)
    # Exactly: not a whit slower or faster.
    for one in (summary.price, summary.speed, summary.expected, summary.expected_speed, summary.verify):
        assert one == 1.0
    assert (summary.acceptance, summary.best_gamma) == (None, None)
    assert summary.bytes.total == pytest.approx(summary.plain_bytes)


def test_copied_drafts_cost_no_read_and_short_rounds_count_as_short() -> None:
    ledger, trace = priced("ngram"), recorded("ngram")
    summary = ledger.summary()
    assert (summary.c, summary.bytes.drafter, summary.wasted_reads) == (0.0, 0.0, 0)
    assert summary.price == pytest.approx(1.0, abs=1e-3)
    assert summary.acceptance is not None
    expected = [theory.expected_tokens(summary.acceptance, len(round_.drafts)) for round_ in trace.rounds]
    assert summary.expected == pytest.approx(sum(expected) / len(expected))
    context = sum(round_.position for round_ in trace.rounds) // len(trace.rounds)
    best = cost.best_gamma(lambda gamma: cost.round_price(LLAMA_8B, None, H100, gamma, context), summary.acceptance)
    assert summary.best_gamma == best


def test_a_target_that_drafts_for_itself_is_priced_as_the_target() -> None:
    by_round = Trace(PROMPT, (round_of(0, 10, ("kept",), drafter="target"),))
    by_pair = Trace(replace(PROMPT, drafter="target"), (round_of(0, 10, ("kept",)),))
    for trace in (by_round, by_pair):
        summary = Ledger(trace, H100, LLAMA_8B, LLAMA_1B).summary()
        assert summary.c == pytest.approx(1.0, abs=1e-4)
        assert summary.price == pytest.approx(2.0, abs=1e-3)


def test_a_drafter_without_shape_reads_nothing() -> None:
    summary = Ledger(SHORT, H100, LLAMA_8B, None).summary()
    assert (summary.c, summary.bytes.drafter, summary.wasted_bytes) == (0.0, 0.0, 0.0)
    assert summary.price == pytest.approx(1.0, abs=1e-3)


def test_settings_may_change_midway_and_parts_of_a_run_can_be_summed() -> None:
    rounds = (FIRST, SECOND, round_of(2, 16, ()), round_of(3, 17, ("kept",), drafter="ngram"))
    ledger = Ledger(Trace(PROMPT, rounds), H100, LLAMA_8B, LLAMA_1B)
    assert [entry.drafted for entry in ledger.rounds] == [4, 2, 0, 1]
    assert ledger.summary(0, 2) == Ledger(SHORT, H100, LLAMA_8B, LLAMA_1B).summary()
    assert ledger.summary(2, 3).price == pytest.approx(1.0)
    assert ledger.summary(3).c == 0.0
    assert ledger.summary().tokens == 9


def test_a_pass_that_the_record_does_not_describe_leaves_no_price() -> None:
    undescribed = Pass("drafter", "draft")
    for passes in ((), (Pass("target", "verify"),), FIRST.passes[:2], (undescribed, *FIRST.passes)):
        trace = Trace(PROMPT, (replace(FIRST, passes=passes), SECOND))
        ledger = Ledger(trace, H100, LLAMA_8B, LLAMA_1B)
        summary = ledger.summary()
        assert not ledger.rounds[0].complete
        assert ledger.rounds[0].price is summary.price is summary.speed is summary.bytes_per_token is None
        assert summary.expected is not None
        assert summary.plain_bytes_per_token is not None
        assert ledger.summary(1).price is not None


def test_without_recorded_laws_nothing_is_expected() -> None:
    first = replace(FIRST, drafts=tuple(replace(one, row=None) for one in FIRST.drafts))
    ledger = Ledger(Trace(PROMPT, (first, SECOND)), H100, LLAMA_8B, LLAMA_1B)
    summary = ledger.summary()
    assert (summary.acceptance, summary.expected, summary.expected_speed, summary.best_gamma) == (None,) * 4
    assert ledger.expected_line() == ()
    assert summary.speed is not None


def test_block_verification_expects_at_least_alpha() -> None:
    block = round_of(0, 10, ("kept", "rejected"), rule="block_verification", expected=None)
    summary = Ledger(Trace(PROMPT, (block,)), H100, LLAMA_8B, LLAMA_1B).summary()
    assert (summary.acceptance, summary.at_least) == (0.75, True)
    coupled = round_of(0, 10, ("kept", "rejected"), rule="gumbel_coupling", expected=None)
    summary = Ledger(Trace(PROMPT, (coupled,)), H100, LLAMA_8B, LLAMA_1B).summary()
    assert (summary.acceptance, summary.at_least) == (None, False)


@pytest.mark.parametrize(("recorded_as", "acceptance"), [(1 + 1e-15, 1.0), (-1e-17, 0.0)])
def test_chances_that_rounding_pushed_outside_are_still_chances(recorded_as: float, acceptance: float) -> None:
    one = round_of(0, 10, ("kept", "kept"), expected=recorded_as)
    assert Ledger(Trace(PROMPT, (one,)), H100, LLAMA_8B, LLAMA_1B).summary().acceptance == acceptance


def test_near_a_draw_the_best_gamma_is_another() -> None:
    summary = priced("sampling").summary()
    assert summary.near_draw
    assert summary.best_gamma == theory.optimal_gamma(summary.acceptance or 0, summary.c or 0) == 1
    assert (summary.best_speed or 0) > (summary.expected_speed or 0)


def test_speculation_can_lose() -> None:
    summary = priced("match").summary()
    assert summary.speed is not None
    assert summary.speed < 1
    assert summary.expected is not None
    assert summary.price is not None
    assert summary.expected < summary.price


def test_another_accelerator_or_pair_reprices_the_same_passes() -> None:
    own = Ledger(recorded("sampling"), ACCELERATORS["l4"], *EMBEDDED, dtype="fp32", kv_dtype="fp32")
    assert [len(entry.entries) for entry in own.rounds] == [len(entry.entries) for entry in priced("sampling").rounds]
    assert own.summary().brought == priced("sampling").summary().brought
    assert f"{own.summary().c:.2f}" == "0.09"


# --- against the file -------------------------------------------------------------------------------------------------


def recomputed(name: str, one: Accelerator, target: Any, drafter: Any) -> dict[str, float]:
    """Sums over the trace file, without the ledger and without the cost model."""
    header, *rounds = [json.loads(line) for line in (TRACES / f"{name}.jsonl").read_text("utf-8").splitlines()]
    moved = {"drafter": 0.0, "target": 0.0, "kv": 0.0, "plain": 0.0, "wasted": 0.0}
    position = len(header["prompt_ids"])

    def cache_bytes(shape: Any, tokens: int) -> float:
        return tokens * shape.layers * shape.kv_heads * shape.head_dim * 2 * 2

    for round_ in rounds:
        reads = []
        for one_pass in round_["passes"]:
            if one_pass["kind"] == "prefill":
                continue
            shape = target if one_pass["model"] == "target" else drafter
            kv = cache_bytes(shape, one_pass["context"] + one_pass["query_tokens"])
            moved[one_pass["model"]] += 2 * shape.params_read
            moved["kv"] += kv
            if one_pass["model"] == "drafter":
                reads.append(2 * shape.params_read + kv)
        if reads:
            fates = [one["fate"] for one in round_["drafts"]]
            moved["wasted"] += sum(cost for fate, cost in zip(fates, reads, strict=True) if fate != "kept")
        for _ in round_["emitted"]:
            moved["plain"] += 2 * target.params_read + cache_bytes(target, position)
            position += 1
    moved["seconds"] = (moved["drafter"] + moved["target"] + moved["kv"]) / one.bandwidth
    return moved


@pytest.mark.parametrize("name", RECORDED)
@pytest.mark.parametrize(("target", "drafter"), [(LLAMA_8B, LLAMA_1B), EMBEDDED], ids=["8B + 1B", "embedded"])
def test_the_ledger_adds_up_to_what_the_file_says(name: str, target: Any, drafter: Any) -> None:
    expected = recomputed(name, H100, target, drafter)
    summary = Ledger(recorded(name), H100, target, drafter).summary()
    assert summary.bytes.drafter == pytest.approx(expected["drafter"])
    assert summary.bytes.target == pytest.approx(expected["target"])
    assert summary.bytes.kv == pytest.approx(expected["kv"])
    assert summary.wasted_bytes == pytest.approx(expected["wasted"])
    assert summary.plain_bytes == pytest.approx(expected["plain"])
    assert summary.seconds.total == pytest.approx(expected["seconds"])
    assert summary.plain_seconds == pytest.approx(expected["plain"] / H100.bandwidth)


@pytest.mark.parametrize("name", [name for name in RECORDED if name.endswith(".twin")])
def test_plain_decodings_own_run_costs_the_plain_line(name: str) -> None:
    """The twin's passes are those that the plain line assumes."""
    twin = priced(name)
    assert twin.staircase[-1].seconds.total == pytest.approx(twin.plain[-1].seconds)
    assert [step.seconds.total for step in twin.staircase] == pytest.approx([step.seconds for step in twin.plain])


# --- over ranges ------------------------------------------------------------------------------------------------------

ledgers = st.builds(
    lambda name, one, pair, dtype, count: Ledger(recorded(name), one, pair.target, pair.drafter, dtype, count=count),
    st.sampled_from(RECORDED),
    st.sampled_from(list(ACCELERATORS.values())),
    st.sampled_from(list(PRICED_PAIRS.values())),
    st.sampled_from(["fp32", "bf16", "fp8", "int4"]),
    st.sampled_from(cost.COUNTS),
)


@given(ledgers)
@settings(max_examples=15, deadline=None)
def test_sums_are_the_sums_of_the_passes(ledger: Ledger) -> None:
    entries = [entry for round_ in ledger.rounds for entry in round_.entries]
    summary, last = ledger.summary(), ledger.staircase[-1]
    assert sum(entry.cost.bytes for entry in entries) == pytest.approx(summary.bytes.total)
    assert sum(entry.cost.seconds for entry in entries) == pytest.approx(summary.seconds.total)
    assert sum(entry.seconds.total for entry in entries) == pytest.approx(summary.seconds.total)
    assert astuple(last.seconds) == pytest.approx(astuple(summary.seconds))
    assert astuple(last.bytes) == pytest.approx(astuple(summary.bytes))
    assert last.tokens == summary.tokens == ledger.plain[-1].tokens == len(ledger.trace.text_ids)
    assert last.plain_seconds == pytest.approx(summary.plain_seconds)
    assert ledger.plain[-1].seconds == pytest.approx(summary.plain_seconds)
    assert ledger.plain[-1].bytes == pytest.approx(summary.plain_bytes)
    assert 0 <= summary.wasted_bytes <= summary.bytes.total


@given(ledgers)
@settings(max_examples=15, deadline=None)
def test_the_lines_divide_into_one_another(ledger: Ledger) -> None:
    """price = verify + reads a round x c; speed = tokens a round / price; so for what is expected."""
    summary = ledger.summary()
    assert summary.verify is not None
    assert summary.c is not None
    assert summary.brought is not None
    assert summary.price == pytest.approx(summary.verify + summary.drafter_reads / summary.rounds * summary.c)
    assert summary.speed == pytest.approx(summary.brought / summary.price)
    assert summary.expected_speed == pytest.approx((summary.expected or math.nan) / summary.price)
    line = ledger.expected_line()
    assert line[-1] == pytest.approx(((summary.expected or math.nan) * summary.rounds, summary.seconds.total))


@given(ledgers, st.integers(0, 100))
@settings(max_examples=15, deadline=None)
def test_the_beginning_of_a_run_is_priced_as_in_the_whole(ledger: Ledger, rounds: int) -> None:
    """No number of a round hangs on a later one: nothing flickers while the run grows."""
    cut = replace(ledger, trace=ledger.trace.cut(rounds))
    assert cut.rounds == ledger.rounds[:rounds]
    assert cut.staircase == ledger.staircase[: rounds + 1]
    assert cut.plain == ledger.plain[: len(cut.plain)]
    assert cut.summary() == ledger.summary(0, rounds)


@given(ledgers)
@settings(max_examples=15, deadline=None)
def test_the_staircase_only_climbs(ledger: Ledger) -> None:
    for before, after in zip(ledger.staircase, ledger.staircase[1:], strict=False):
        assert after.tokens > before.tokens
        assert after.seconds.total > before.seconds.total
        assert after.plain_seconds > before.plain_seconds
        assert after.bytes.total > before.bytes.total


def test_records_are_plain_data() -> None:
    summary = priced("sampling").summary()
    assert Summary(**{**asdict(summary), "bytes": summary.bytes, "seconds": summary.seconds}) == summary
    json.dumps(asdict(summary), allow_nan=False)
    json.dumps(asdict(priced("sampling").rounds[0]), allow_nan=False)


def test_a_trace_of_another_engine_without_passes_is_not_priced() -> None:
    text = '{"kind":"header","prompt_ids":[1]}\n{"index":0,"position":1,"emitted":[5,6]}\n'
    ledger = Ledger(load(text), H100, LLAMA_8B, LLAMA_1B)
    assert ledger.summary().speed is None
    assert ledger.summary().plain_seconds > 0


def test_the_price_of_a_round_to_come() -> None:
    ledger = priced("sampling")
    assert ledger.price(4, 100) == cost.round_price(LLAMA_8B, LLAMA_1B, H100, 4, 100)
    assert ledger.price(4, copied=True).c == 0.0
    with pytest.raises(ValueError, match="gamma must be at least 0, got -1"):
        ledger.price(-1)
