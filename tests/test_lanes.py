"""Lanes and price: the numbers against an independent sum over the file, what is said, and what is not yet known."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specviz.figures import lanes
from specviz.figures.events import Timeline
from specviz.figures.lanes import Lanes, Ran
from specviz.figures.sentences import plain
from specviz.hardware import cost
from specviz.hardware.accelerators import ACCELERATORS
from specviz.hardware.ledger import Ledger
from specviz.hardware.shapes import PRICED_PAIRS
from specviz.trace import Closing, Draft, Header, Pass, Round, Row, Trace, read
from tests.synthetic_traces import make_trace

TRACES = Path(__file__).parent.parent / "assets" / "traces"
RECORDED = ("sampling", "greedy", "gumbel", "match", "block", "ngram")
RAN = Ran("SmolLM2-135M-Instruct", "two-layer drafter")
READS, DRAFTER, TARGET, WEIGHTS, KV, ARITHMETIC, PLAIN, TOKENS, KEPT, CLOSING, READ = range(11)


@cache
def recorded(name: str) -> Trace:
    return read(TRACES / f"{name}.jsonl")


def ledger(
    trace: Trace, accelerator: str = "h100-sxm", pair: str = "llama-3.1-8b+llama-3.2-1b", **fields: Any
) -> Ledger:
    priced = PRICED_PAIRS[pair]
    device = ACCELERATORS[accelerator].times(priced.devices)
    return Ledger(trace, device, priced.target, priced.drafter, **{"count": "stored", **fields})


def at_end(priced: Ledger, **options: Any) -> Lanes:
    return lanes.layout(priced, Timeline(priced.trace).last(), RAN, **options)


def said(layout: Lanes) -> list[str]:
    return [plain(line) for line in layout.lines]


def draft(fate: str, tv: float | None = 0.25) -> Draft:
    row = None if tv is None else Row(tv=tv, expected_accept=1 - tv)
    return Draft(1, fate=fate, row=row)  # type: ignore[arg-type]


def run(*rounds: str, drafter: str = "model", tv: float | None = 0.25, reads: bool = True, **settings: Any) -> Trace:
    """Rounds of drafts that were kept (k), rejected (r) or never judged (u)."""
    trace = Trace(Header(pair="embedded", drafter="model", prompt_ids=tuple(range(10))))
    fates = {"k": "kept", "r": "rejected", "u": "unjudged"}
    for index, one in enumerate(rounds):
        position = 10 + len(trace.text_ids)
        drafting = len(one) if drafter in ("model", "target") else 0
        passes = [Pass("drafter", "draft", 1, position - 1 + i) for i in range(drafting)]
        passes.append(Pass("target", "verify", len(one) + 1, position - 1))
        kind = "plain" if not one else "bonus" if set(one) == {"k"} else "correction"
        own = {"rule": "speculative_sampling", "gamma": len(one), "drafter": drafter, **settings}
        trace = trace.with_round(
            Round(
                index=index,
                position=position,
                settings=own,
                drafts=tuple(draft(fates[letter], tv) for letter in one),
                closing=Closing(2, kind=kind),  # type: ignore[arg-type]
                emitted=tuple(range(one.count("k") + 1)),
                passes=tuple(passes) if reads else (),
            )
        )
    return trace


# --- the numbers, summed anew from the file ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", RECORDED)
def test_blocks_are_the_bytes_of_each_read_over_the_bandwidth(name: str) -> None:
    """Llama-3.1-8B and Llama-3.2-1B at 16 bits, every parameter; caches of 131,072 and 32,768 bytes a token."""
    weights, cache_bytes = {"target": 16_060_522_496, "drafter": 2_471_628_800}, {"target": 131_072, "drafter": 32_768}
    lines = (TRACES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()[1:]
    rows = at_end(ledger(recorded(name))).rounds
    assert len(rows) == len(lines)
    for row, line in zip(rows, map(json.loads, lines), strict=True):
        spent = {"target": 0.0, "drafter": 0.0}
        reads, caches = 0, 0
        for one in line["passes"]:
            if one["kind"] == "prefill":
                continue
            kv = cache_bytes[one["model"]] * (one["context"] + one["query_tokens"])
            spent[one["model"]] += weights[one["model"]] + kv
            caches += kv
            reads += one["model"] == "drafter"
        emitted = len(line["emitted"])
        alone = sum(weights["target"] + cache_bytes["target"] * (line["position"] + place) for place in range(emitted))
        ms = [value / 3.35e12 * 1000 for value in (spent["drafter"], spent["target"], caches, alone)]
        assert (row[READS], row[TOKENS]) == (reads, emitted)
        assert [row[DRAFTER], row[TARGET], row[KV], row[PLAIN]] == pytest.approx(ms, rel=1e-5)
        assert row[WEIGHTS] == pytest.approx(reads * weights["drafter"] / 3.35e12 * 1000, rel=1e-5)
        assert row[KEPT] == sum(one["fate"] == "kept" for one in line["drafts"])
        assert row[ARITHMETIC] == 0


@pytest.mark.parametrize("name", RECORDED)
def test_what_is_written_is_what_the_rows_come_to(name: str) -> None:
    layout = at_end(ledger(recorded(name)))
    spent = sum(row[DRAFTER] + row[TARGET] for row in layout.rounds)
    alone, tokens = (sum(row[column] for row in layout.rounds) for column in (PLAIN, TOKENS))
    price = spent / len(layout.rounds) / (alone / tokens)
    cost_line, brought_line, speed_line = said(layout)
    assert float(re.findall(r"costs ([\d.]+) reads", cost_line)[0]) == pytest.approx(price, abs=0.006)
    brought = tokens / len(layout.rounds)
    assert float(re.findall(r"brought ([\d.]+)", brought_line)[0]) == pytest.approx(brought, abs=0.006)
    assert float(speed_line.split("×")[0]) == pytest.approx(alone / spent, abs=0.006)


def test_the_classic_figures() -> None:
    layout = at_end(ledger(run(*["kkru"] * 10)))
    assert said(layout)[0] == "A round costs 1.62 reads of the target alone (1 + 4 × 0.154)."
    assert said(layout)[1] == "It brought 3.00 tokens here; alpha says 3.05."
    assert said(layout)[2] == (
        "1.86× in this run, 1.89× expected · modelled: acceptance of SmolLM2-135M-Instruct + two-layer drafter, "
        "bytes of Llama-3.1-8B + Llama-3.2-1B."
    )
    assert plain(layout.verdict) == "Pays, because 3.05 > 1.62."
    board = dict(layout.board)
    assert board["Llama-3.1-8B, as stored (counted here)"] == (
        "16.06 GB ÷ 3.35 TB/s = 4.794 ms; 1000 ÷ 4.794 = 208.6 tokens/s"
    )
    assert board["Llama-3.1-8B, as read"].startswith("15.01 GB ÷ 3.35 TB/s = 4.481 ms; 1000 ÷ 4.481 = 223.2")
    assert board["FLOP for every byte, weights only"] == "1 row: 2 FLOP ÷ 2 bytes = 1 · 5 rows: 5"
    assert "= 295 FLOP a byte" in board["ridge of H100 SXM, dense 16 bits"]
    assert board["rows until arithmetic binds"].startswith("295 ÷ 1 = 295 rows; a read of 5 is 1.7 %")
    assert board["tokens of a round ÷ its price"] == "here 3.00 ÷ 1.62 = 1.86; expected 3.05 ÷ 1.62 = 1.89"
    assert layout.more[1].startswith("20 of 40 drafter reads")


@pytest.mark.parametrize("accelerator", ACCELERATORS)
@pytest.mark.parametrize("pair", PRICED_PAIRS)
@pytest.mark.parametrize("count", ["stored", "read"])
def test_the_board_can_be_checked_with_a_pocket_calculator(accelerator: str, pair: str, count: str) -> None:
    layout = at_end(ledger(run("kkru"), accelerator, pair, count=count))
    checked = 0
    for _, how in layout.board:
        for left, right, result in re.findall(r"([\d.,]+)[^÷;:=·]*÷ ([\d.,]+)[^=;]*= ([\d.,]+)", how):
            left, right, result = (float(number.replace(",", "").rstrip(".")) for number in (left, right, result))
            assert left / right == pytest.approx(result, rel=8e-3), how
            checked += 1
    assert checked >= 7


# --- moments ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("story", [False, True])
@pytest.mark.parametrize("rule", ["speculative_sampling", "block_verification", "greedy"])
def test_a_moment_tells_nothing_of_the_future(rule: str, story: bool) -> None:
    trace = make_trace(rule, tokens=24)
    priced, timeline = ledger(trace), Timeline(trace, story=story)
    for event in timeline.events:
        layout = lanes.layout(priced, event, RAN, story=story)
        until = lanes.layout(ledger(trace.cut(event.round + 1)), event, RAN, story=story)
        assert layout == until
        assert len(layout.rounds) == event.round + 1
        if layout.complete == event.round:
            under_way = layout.rounds[-1]
            assert under_way[CLOSING] == ""
            if event.kind == "draft":
                assert (under_way[READ], under_way[TARGET], under_way[KEPT]) == (0, 0.0, 0)
                assert under_way[READS] == (event.place or 0) + 1


def test_time_only_grows_from_event_to_event() -> None:
    trace = make_trace(tokens=24)
    priced, before = ledger(trace), 0.0
    for event in Timeline(trace).events:
        now = sum(row[DRAFTER] + row[TARGET] for row in lanes.layout(priced, event, RAN).rounds)
        assert now >= before - 1e-9
        before = now


def test_the_line_of_what_is_expected_starts_at_nothing_and_has_a_point_a_round() -> None:
    layout = at_end(ledger(recorded("sampling")))
    assert layout.expected[0] == 0
    assert len(layout.expected) == layout.complete + 1
    assert list(layout.expected) == sorted(layout.expected)


# --- verdicts ---------------------------------------------------------------------------------------------------------


def test_below_one_it_says_what_ate_it() -> None:
    layout = at_end(ledger(run(*["ruuu"] * 12, tv=0.9)))
    assert plain(layout.verdict).startswith("Does not pay, because 1.11 < 1.62: the drafter’s reads ate it.")
    assert "No gamma pays at this price" in plain(layout.verdict)


def test_a_wide_read_that_arithmetic_binds_is_what_eats_it() -> None:
    slow = replace(ACCELERATORS["h100-sxm"], flops={"bf16": 3.35e12})
    priced = replace(ledger(run(*["ruuu"] * 12, tv=0.9)), accelerator=slow, drafter_shape=None)
    assert "the wider reads of the target ate it" in plain(at_end(priced).verdict)


def test_beside_a_near_draw_stands_the_better_gamma() -> None:
    verdict = plain(at_end(ledger(run(*["kruu", "ruuu"] * 8, tv=0.6))).verdict)
    assert "nearly a draw" in verdict
    assert "Try gamma 1: 1.21× expected." in verdict


def test_luck_is_called_luck() -> None:
    verdict = plain(at_end(ledger(run(*["kkkk"] * 4, tv=0.7))).verdict)
    assert verdict.startswith("Does not pay")
    assert verdict.count("by luck") == 1


@pytest.mark.parametrize(("rule", "words"), sorted(lanes.SAYS.items()))
def test_what_is_expected_is_named_after_the_rule(rule: str, words: str) -> None:
    assert words in said(at_end(ledger(run(*["kkru"] * 5, rule=rule))))[1]


def test_fewer_than_ten_judged_are_too_few_to_say() -> None:
    few, enough = (at_end(ledger(run(*["kkru"] * rounds))) for rounds in (3, 4))
    assert [line.count("too few to say") for line in said(few)] == [0, 1, 1]
    assert plain(few.verdict).startswith("Too few to say")
    assert "too few to say" not in " ".join([*said(enough), plain(enough.verdict)]).lower()


def test_another_gamma_is_priced_by_the_chances_so_far() -> None:
    priced = ledger(run(*["kruu", "ruuu"] * 8, tv=0.55))
    assert plain(at_end(priced, gamma=12).asked) == (
        "You set gamma 12: a round would cost 2.85 reads and bring 1.82 tokens, 0.64×: it loses."
    )
    assert plain(at_end(priced, gamma=1).asked).endswith("1.26×: it pays.")
    assert at_end(priced, gamma=0).asked == at_end(priced).asked == ()
    summary = priced.summary()
    assert lanes.speed_at(priced, summary, 12, 16) == pytest.approx(0.64, abs=0.005)
    assert lanes.speed_at(priced, priced.summary(stop=2), 12, 2) is None


# --- edge states ------------------------------------------------------------------------------------------------------


def test_nothing_has_happened_yet() -> None:
    layout = lanes.layout(ledger(Trace(Header())), None, RAN)
    assert (layout.said, layout.rounds, layout.lines) == (lanes.EMPTY, (), ())
    assert layout.board


def test_the_first_round_is_not_over() -> None:
    trace = make_trace()
    layout = lanes.layout(ledger(trace), Timeline(trace).events[1], RAN)
    assert (layout.said, layout.complete, layout.lines, layout.verdict) == (lanes.UNFINISHED, 0, (), ())
    assert layout.rounds[0][READS] == 2


def test_a_record_without_reads_says_so_and_draws_nothing() -> None:
    layout = at_end(ledger(run("kk", "kr", reads=False)))
    assert (layout.said, layout.rounds, layout.lines) == (lanes.UNREAD, (), ())


def test_without_drafts_it_is_plain_decoding() -> None:
    layout = at_end(ledger(run("", "", "")))
    assert said(layout) == ["No drafts: plain decoding. A round costs 1 read of the target and brings 1 token: 1×."]
    assert layout.verdict == ()
    assert layout.more == ()
    assert [row[DRAFTER] for row in layout.rounds] == [0.0] * 3
    assert [row[TARGET] for row in layout.rounds] == [row[PLAIN] for row in layout.rounds]


def test_copies_cost_no_read() -> None:
    layout = at_end(ledger(run(*["kkru"] * 4, drafter="ngram")))
    assert said(layout)[0] == "A round costs 1.00 reads of the target alone (1: copies cost no read)."
    assert "+ n-gram copies, bytes of Llama-3.1-8B." in said(layout)[2]
    assert any("copying them took no read" in line for line in layout.more)


def test_the_target_that_drafts_for_itself_is_priced_so() -> None:
    layout = at_end(ledger(run(*["kkkk"] * 4, drafter="target", tv=0.0)))
    assert said(layout)[0] == "A round costs 5.00 reads of the target alone (1 + 4 × 1.000)."
    assert "+ the target itself, bytes of Llama-3.1-8B." in said(layout)[2]
    assert plain(layout.verdict).startswith("A draw")


def test_a_record_without_laws_is_judged_by_what_happened() -> None:
    layout = at_end(ledger(run(*["kkru"] * 5, tv=None)))
    assert said(layout)[1].endswith("what to expect, this record does not say.")
    assert plain(layout.verdict) == "Paid in this run, 3.00 > 1.62."
    assert layout.expected == ()
    assert layout.asked == at_end(ledger(run(*["kkru"] * 5, tv=None)), gamma=9).asked == ()


def test_settings_that_changed_midway_are_named() -> None:
    layout = at_end(ledger(run("kkru", "kr", "kkkk")))
    assert any(line.startswith("Counts rounds with different settings") for line in layout.more)
    assert "(1 + 3.33 × 0.154)" in said(layout)[0]


def test_the_pair_that_ran_is_not_called_another() -> None:
    same = lanes.layout(
        ledger(run("kkru"), pair="smollm2-135m+embedded-drafter"), Timeline(run("kkru")).last(), replace(RAN, same=True)
    )
    assert said(same)[2].endswith("modelled: bytes of SmolLM2-135M + 2-layer drafter, the pair that ran.")


def test_weights_that_do_not_fit_are_named() -> None:
    layout = at_end(ledger(run("kkru"), "rtx-4090", "llama-3.1-70b+llama-3.2-1b"))
    assert "143.6 GB of weights do not fit into the 48 GB of 2 × RTX 4090" in layout.more[-1]
    assert "fit" not in " ".join(at_end(ledger(run("kkru"), "h100-sxm", "llama-3.1-70b+llama-3.2-1b")).more)


def test_story_is_lanes_lines_and_verdict() -> None:
    layout = at_end(ledger(recorded("sampling")), story=True)
    assert (layout.board, layout.more) == ((), ())
    assert len(layout.lines) == 3
    assert layout.verdict
    assert not re.search(r"alpha|TV|× 0\.", " ".join([*said(layout), plain(layout.verdict)]))


# --- re-pricing -------------------------------------------------------------------------------------------------------

FATES = st.sampled_from(["", "r", "k", "kr", "kk", "ruuu", "kkru", "kkkk", "kkkkkkkk"])


@given(
    rounds=st.lists(FATES, min_size=1, max_size=6),
    accelerator=st.sampled_from(sorted(ACCELERATORS)),
    pair=st.sampled_from(sorted(PRICED_PAIRS)),
    count=st.sampled_from(["stored", "read"]),
)
def test_another_accelerator_stretches_time_and_nothing_else(
    rounds: list[str], accelerator: str, pair: str, count: str
) -> None:
    """While memory binds, which it does for so few rows on every accelerator in the list."""
    trace = run(*rounds)
    here, there = (at_end(ledger(trace, device, pair, count=count)) for device in ("h100-sxm", accelerator))
    stretch = ACCELERATORS["h100-sxm"].bandwidth / ACCELERATORS[accelerator].bandwidth
    for one, other in zip(here.rounds, there.rounds, strict=True):
        ours, theirs = one[DRAFTER : PLAIN + 1], other[DRAFTER : PLAIN + 1]
        assert [value * stretch for value in ours] == pytest.approx(list(theirs), rel=1e-4)
        assert one[TOKENS:] == other[TOKENS:]
        assert sum(ours[:2]) * here.gigabytes == pytest.approx(sum(theirs[:2]) * there.gigabytes, rel=1e-4)
    assert said(here) == said(there)
    assert here.verdict == there.verdict
    assert here.expected == there.expected


@given(rounds=st.lists(FATES, min_size=1, max_size=6), pair=st.sampled_from(sorted(PRICED_PAIRS)))
def test_to_price_anew_is_to_price_at_once(rounds: list[str], pair: str) -> None:
    trace = run(*rounds)
    for shared in range(len(rounds) + 1):
        assert at_end(ledger(trace.cut(shared), pair=pair).grown(trace)) == at_end(ledger(trace, pair=pair))


def test_a_longer_run_prices_its_new_rounds_only(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = run(*["kkru"] * 8)
    priced, asked = ledger(trace.cut(7)), []
    assert len(priced.rounds) == 7
    whole = cost.pass_cost
    monkeypatch.setattr(cost, "pass_cost", lambda *args, **options: asked.append(1) or whole(*args, **options))
    assert len(priced.grown(trace).rounds) == 8
    assert len(asked) == 5 + 3  # the reads of the last round, and of plain decoding beside it


def test_what_crosses_to_the_browser_is_small_and_plain() -> None:
    layout = at_end(ledger(recorded("sampling")))
    written = json.dumps(asdict(layout))
    assert len(written) < 10_000
    assert json.loads(written)["rounds"][0][CLOSING] == "bonus"
