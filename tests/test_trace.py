"""Records: what a trace holds, how rounds are counted, and that files say what is wrong with them."""

from __future__ import annotations

import dataclasses
import json
import math
import subprocess
import sys
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specviz.trace import (
    Closing,
    Draft,
    Fate,
    Header,
    Hex,
    Pass,
    Round,
    Row,
    Token,
    Trace,
    dump,
    load,
    read,
    save,
    tally,
)

VERIFY = Pass("target", "verify", 5, 10, 0.02)
PREFILL = Pass("target", "prefill", 10, 0, 0.1)


def round_of(fates: str, *, cut: bool = False, shared: float | None = 0.75, **changes: Any) -> Round:
    """A round whose drafts were kept (k), rejected (r) or never judged (u); cut: a kept stop token ended it."""
    names: dict[str, Fate] = {"k": "kept", "r": "rejected", "u": "unjudged"}
    row = Row(tv=None if shared is None else 1 - shared, expected_accept=shared)
    drafts = tuple(Draft(id=1, fate=names[letter], row=row) for letter in fates)
    emitted = (1,) * (fates.count("k") + (not cut))
    closing = None if cut else Closing(2)
    fixed: dict[str, Any] = {"index": 0, "position": 3, "passes": (PREFILL, VERIFY)}
    return Round(**{**fixed, "drafts": drafts, "closing": closing, "emitted": emitted, **changes})


def run_of(*rounds: Round) -> Trace:
    """A trace of these rounds, renumbered so that they follow each other."""
    trace = Trace(Header(prompt="abc", prompt_ids=(0, 1, 2)))
    for round_ in rounds:
        place = 3 + len(trace.text_ids)
        trace = trace.with_round(dataclasses.replace(round_, index=len(trace.rounds), position=place))
    return trace


# --- the file ---------------------------------------------------------------------------------------------------------


def values(hint: Any) -> st.SearchStrategy[Any]:
    """Whatever a field of this type may hold."""
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        hints = typing.get_type_hints(hint, include_extras=True)
        changes = {"schema_version": st.just(1)} if hint is Header else {}
        return st.builds(hint, **{**{name: values(inner) for name, inner in hints.items()}, **changes})
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint == Hex:
        return st.binary(max_size=4).map(bytes.hex)
    if origin is typing.Annotated:
        low, high, _ = hint.__metadata__[0]
        return st.integers(low, high) if arguments[0] is int else st.floats(low, high)
    if origin in (types.UnionType, typing.Union):
        return st.one_of([values(inner) for inner in arguments])
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin is tuple and arguments[-1] is Ellipsis:
        return st.lists(values(arguments[0]), max_size=2).map(tuple)
    if origin is tuple:
        return st.tuples(*map(values, arguments))
    if origin is Mapping:
        return st.dictionaries(st.text(max_size=3), values(arguments[1]), max_size=2)
    if hint is Any:
        return st.one_of(st.none(), st.booleans(), values(int), values(float), st.text(max_size=3))
    plain = {
        float: st.floats(allow_nan=False, allow_infinity=False),
        int: st.integers(),
        bool: st.booleans(),
        str: st.text(max_size=5),
        types.NoneType: st.none(),
    }
    return plain[hint]


@given(header=values(Header), rounds=st.lists(values(Round), max_size=2))
def test_a_trace_survives_its_file(header: Header, rounds: list[Round]) -> None:
    trace = Trace(header)
    for round_ in rounds:
        position = len(header.prompt_ids) + len(trace.text_ids)
        trace = trace.with_round(dataclasses.replace(round_, index=len(trace.rounds), position=position))
    assert load(dump(trace)) == trace


@pytest.mark.parametrize(
    "prompt", ["a\u2028b\u2029c", "\x85 \x0b\x0c\x1c", "a\r\nb\n", "\ufeffmark", "猫😀", '"\\\x00']
)
def test_characters_that_end_lines_elsewhere_end_none_here(prompt: str, tmp_path: Path) -> None:
    trace = dataclasses.replace(run_of(round_of("kr")), header=Header(prompt=prompt, prompt_ids=(7, 8, 9)))
    assert dump(trace).count("\n") == 2
    assert load(dump(trace)) == trace
    save(trace, tmp_path / "trace.jsonl")
    assert read(tmp_path / "trace.jsonl") == trace


def test_a_file_with_other_line_ends_is_read() -> None:
    trace = run_of(round_of("kk"), round_of("r"))
    assert load(dump(trace).replace("\n", "\r\n") + "\n\n") == trace


def test_minus_infinity_is_null() -> None:
    row = Row(position=3, tokens=(Token(4, p=0.0, target_logit=-math.inf),), target_top2=((1, 2.0), (4, -math.inf)))
    line = json.loads(dump(run_of(round_of("", closing=Closing(1, row=row)))).splitlines()[1])
    assert line["closing"]["row"]["tokens"][0]["target_logit"] is None
    assert line["closing"]["row"]["target_top2"] == [[1, 2.0], [4, None]]


def test_nan_is_never_written() -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        dump(run_of(round_of("", seconds=math.nan)))


def test_unknown_keys_are_ignored() -> None:
    trace = run_of(round_of("kr"))
    lines = [json.loads(line) for line in dump(trace).splitlines()]
    for record in (*lines, lines[1]["drafts"][0], lines[1]["closing"], lines[1]["passes"][0]):
        record["added_later"] = {"anything": [1, None]}
    assert load("\n".join(map(json.dumps, lines))) == trace


def test_missing_keys_and_null_are_none() -> None:
    trace = load(
        '{"kind":"header"}\n'
        '{"index":0,"position":0,"emitted":[5],"drafts":[{"id":5}],"closing":null,"seconds":null}\n'
        '{"index":1,"position":1,"emitted":[6],"closing":{"id":6,"row":{"tokens":[{"id":6}]}}}\n'
    )
    assert trace.header == Header()
    first, second = trace.rounds
    assert first.drafts == (Draft(5),)
    assert (first.closing, first.seconds, first.settings, first.finish) == (None, None, None, None)
    assert second.closing == Closing(6, row=Row(tokens=(Token(6),)))
    assert tally(trace.rounds).alpha is None


HEADER, FIRST, SECOND = dump(run_of(round_of("kr"), round_of("kk"))).splitlines()


def changed(line: str, **values: Any) -> str:
    return json.dumps({**json.loads(line), **values})


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "line 1: the file is empty"),
        (["", " "], "line 1: the file is empty"),
        ([HEADER, "{"], "line 2: not JSON, expecting property name"),
        ([HEADER, FIRST, "certainly"], "line 3: not JSON, expecting value"),
        ([HEADER, FIRST, SECOND[:-20]], "line 3: "),
        ([HEADER, "", FIRST, SECOND[:40]], "line 4: "),
        ([HEADER, "[1, 2]"], "line 2: expected an object, got list"),
        ([FIRST], 'line 1: expected the header .kind "header". first'),
        (["{}"], "line 1: expected the header"),
        ([changed(HEADER, schema_version=2)], "line 1: schema_version 2; this program reads up to 1"),
        ([HEADER, SECOND], "line 2: round 0 of the trace calls itself 1"),
        ([HEADER, SECOND, FIRST], "line 2: round 0 of the trace calls itself 1"),
        ([HEADER, FIRST, FIRST], "line 3: round 1 of the trace calls itself 0"),
        ([HEADER, FIRST, changed(SECOND, position=6)], "line 3: round 1 starts at position 6, expected 5"),
        ([changed(HEADER, prompt_ids=[1]), FIRST], "line 2: round 0 starts at position 3, expected 1"),
        ([HEADER, FIRST, HEADER], "line 3: round.index is missing"),
        ([HEADER, changed(FIRST, position=None)], "line 2: round.position is missing"),
        ([HEADER, changed(FIRST, drafts=[{}])], "line 2: round.drafts.id is missing"),
        ([changed(HEADER, prompt=3)], "line 1: header.prompt must be str, got 3"),
        ([changed(HEADER, prompt_ids=7)], "line 1: header.prompt_ids must be a list, got 7"),
        ([changed(HEADER, versions="1")], "line 1: header.versions must be an object, got '1'"),
        ([changed(HEADER, prompt_bytes=["6"])], "line 1: header.prompt_bytes must be hexadecimal bytes, got '6'"),
        ([HEADER, changed(FIRST, index="0")], "line 2: round.index must be int, got '0'"),
        ([HEADER, changed(FIRST, index=True)], "line 2: round.index must be int, got True"),
        ([HEADER, changed(FIRST, emitted=[1.0])], "line 2: round.emitted must be int, got 1.0"),
        ([HEADER, changed(FIRST, seconds="fast")], "line 2: round.seconds must be seconds, 0 or more, got 'fast'"),
        ([HEADER, changed(FIRST, seconds=True)], "line 2: round.seconds must be seconds, 0 or more, got True"),
        ([HEADER, changed(FIRST, seconds=math.nan)], "line 2: round.seconds must be seconds, 0 or more, got nan"),
        ([HEADER, changed(FIRST, seconds=-math.inf)], "line 2: round.seconds must be seconds, 0 or more, got -inf"),
        ([HEADER, changed(FIRST, seconds=1e308).replace("1e+308", "1e309")], "line 2: round.seconds must be seconds"),
        ([HEADER, changed(FIRST, seconds=10**400)], "line 2: round.seconds must be seconds, 0 or more"),
        ([HEADER, changed(FIRST, seconds=-0.5)], "line 2: round.seconds must be seconds, 0 or more, got -0.5"),
        (
            [HEADER, changed(FIRST, drafts=[{"id": 1, "accept_prob": 1e308}])],
            r"line 2: round.drafts.accept_prob must be a probability in \[0, 1\], got 1e\+308",
        ),
        (
            [HEADER, changed(FIRST, drafts=[{"id": 1, "row": {"tv": -0.5}}])],
            r"line 2: round.drafts.row.tv must be a probability in \[0, 1\], got -0.5",
        ),
        (
            [HEADER, changed(FIRST, drafts=[{"id": 1, "row": {"tokens": [{"id": 1, "noise": 99}]}}])],
            "line 2: round.drafts.row.tokens.noise must be Gumbel noise within ±50, got 99",
        ),
        ([HEADER, changed(FIRST, finish="bored")], "line 2: round.finish must be stop or length or context"),
        ([HEADER, changed(FIRST, finish=[])], "line 2: round.finish must be stop or length or context"),
        ([HEADER, changed(FIRST, drafts={"id": 1})], "line 2: round.drafts must be a list"),
        ([HEADER, changed(FIRST, drafts=[3])], "line 2: round.drafts must be an object, got 3"),
        ([HEADER, changed(FIRST, closing={"id": 1, "law": [[1]]})], r"line 2: round.closing.law must be a list of 2"),
        ([HEADER, "[" * 100_000], "line 2: nested too deeply"),
    ],
)
def test_every_error_names_its_line(lines: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        load("\n".join(lines))


def test_bytes_that_are_no_text_are_named(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_bytes(HEADER.encode() + b"\n" + b'{"index": \xff}')
    with pytest.raises(ValueError, match=r"^line 2: expected UTF-8 text, got the byte 0xff"):
        read(path)


def test_an_error_stays_short_whatever_the_value() -> None:
    with pytest.raises(ValueError, match=r"line 1: header\.device must be str") as caught:
        load(changed(HEADER, device=["x" * 1000]))
    assert len(str(caught.value)) < 150


# --- the run ----------------------------------------------------------------------------------------------------------


def test_a_longer_trace_leaves_the_shorter_one_alone() -> None:
    short = run_of(round_of("kr"))
    long = short.with_round(dataclasses.replace(round_of("kk", finish="length"), index=1, position=5))
    assert (len(short.rounds), short.finish, short.text_ids) == (1, None, (1, 1))
    assert (len(long.rounds), long.finish, long.text_ids) == (2, "length", (1,) * 5)
    assert long.cut(1) == short
    assert long.cut(0).text_ids == ()


@pytest.mark.parametrize(
    ("index", "position", "message"),
    [(0, 5, "calls itself 0"), (2, 5, "calls itself 2"), (1, 4, "starts at position 4")],
)
def test_a_round_that_does_not_follow_is_refused(index: int, position: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run_of(round_of("kr")).with_round(dataclasses.replace(round_of("k"), index=index, position=position))


def test_records_cannot_be_changed() -> None:
    trace = run_of(round_of("k"))
    for record, name in ((trace, "rounds"), (trace.header, "prompt"), (trace.rounds[0], "emitted")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(record, name, ())


def test_the_trace_knows_the_text_of_every_token_it_names() -> None:
    row = Row(tokens=(Token(4, bytes="c3"), Token(5)))
    trace = Trace(
        Header(prompt_ids=(8, 9), prompt_bytes=("20", "")),
        (Round(0, 2, drafts=(Draft(4, row=row),), closing=Closing(6, row=Row(tokens=(Token(6, bytes="a9"),)))),),
    )
    assert trace.token_bytes() == {8: b" ", 9: b"", 4: b"\xc3", 6: b"\xa9"}
    assert row.token(4) == Token(4, bytes="c3")
    assert row.token(6) is None


def test_the_last_row_of_a_read_is_the_bonus_s_or_stands_by_itself() -> None:
    def row(position: int) -> Row:
        return Row(position, (Token(position, bytes="61"),))

    drafts = (Draft(1, row=row(2), fate="kept"), Draft(1, row=row(3), fate="rejected"))
    corrected = Round(0, 2, drafts=drafts, closing=Closing(5, "correction"), after=row(4))
    bonus = Round(0, 2, drafts=drafts[:1], closing=Closing(5, "bonus", row=row(3)))
    cut = Round(0, 2, drafts=drafts, after=row(4))
    old = Round(0, 2, drafts=drafts, closing=Closing(5, "correction"))
    plain = Round(0, 2, closing=Closing(5, "plain", row=row(2)))
    found = [[one.position for one in round_.rows()] for round_ in (corrected, bonus, cut, old, plain)]
    assert found == [[2, 3, 4], [2, 3], [2, 3, 4], [2, 3], [2]]
    lasts = [round_.last_row.position if round_.last_row else None for round_ in (corrected, bonus, cut, old, plain)]
    assert lasts == [4, 3, 4, None, 2]
    assert 4 in Trace(Header(prompt_ids=(8, 9)), (corrected,)).token_bytes()


# --- counts -----------------------------------------------------------------------------------------------------------


def test_no_rounds_have_no_rates() -> None:
    counts = tally([])
    assert (counts.rounds, counts.drafted, counts.judged, counts.emitted) == (0, 0, 0, 0)
    assert counts.tested_rate is counts.drafted_rate is counts.tokens_per_pass is None
    assert counts.alpha is counts.expected_kept is counts.expected_kept_variance is None


def test_a_full_rate_of_almost_nothing_keeps_its_denominator() -> None:
    counts = tally([round_of("")] * 18 + [round_of("kk")])
    assert (counts.rounds, counts.drafted, counts.kept) == (19, 2, 2)
    assert (counts.drafted_rate, counts.tested_rate) == (1.0, 1.0)
    assert counts.tokens_per_pass == pytest.approx(1.105263158)


def test_what_comes_behind_the_first_rejection_does_not_count() -> None:
    """Place 3 passed its test too, but it was written to follow a token that is gone."""
    batch = [round_of("kru"), round_of("kkk")]
    counts = tally(batch)
    assert [round_.kept for round_ in batch] == [1, 3]
    assert (counts.kept, counts.rejected, counts.judged, counts.drafted, counts.emitted) == (4, 1, 5, 6, 6)
    assert (counts.tested_rate, counts.drafted_rate, counts.tokens_per_pass) == (4 / 5, 4 / 6, 3.0)
    assert (counts.kept_at_least, counts.judged_at) == ((2, 1, 1), (2, 2, 1))


def test_the_closing_token_counts() -> None:
    counts = tally([round_of("kkk")] * 10)
    assert (counts.tokens_per_pass, counts.drafted_rate) == (4.0, 1.0)


def test_nothing_counts_behind_a_stop_token() -> None:
    counts = tally([round_of("kkkuu", cut=True, finish="stop")])
    assert (counts.emitted, counts.kept, counts.judged, counts.tokens_per_pass) == (3, 3, 3, 3.0)


def test_a_mean_of_emitted_tokens_is_one_above_the_mean_of_kept_drafts() -> None:
    """202 of 300 drafts kept in 100 rounds."""
    counts = tally([round_of("kkk")] * 50 + [round_of("kru")] * 48 + [round_of("kkr")] * 2)
    assert counts.tokens_per_pass == pytest.approx(3.02)
    assert counts.kept / counts.target_passes == pytest.approx(2.02)
    assert counts.drafted_rate == pytest.approx(0.673333333)


def test_prefills_and_drafter_passes_are_no_target_passes() -> None:
    passes = (PREFILL, Pass("drafter", "prefill", 9, 0), Pass("drafter", "draft", 1, 9), VERIFY)
    assert tally([round_of("k", passes=passes), round_of("k")]).target_passes == 2


def test_alpha_and_expectation_are_over_judged_positions() -> None:
    unjudged = dataclasses.replace(round_of("u", shared=0.0).drafts[0])
    rounds = [round_of("kr", shared=0.75), round_of("k", shared=0.5)]
    rounds[0] = dataclasses.replace(rounds[0], drafts=(*rounds[0].drafts, unjudged))
    counts = tally(rounds)
    assert counts.alpha == pytest.approx((0.75 + 0.75 + 0.5) / 3)
    assert counts.expected_kept == pytest.approx(2.0)
    assert counts.expected_kept_variance == pytest.approx(2 * 0.75 * 0.25 + 0.25)


def test_a_mean_over_some_of_the_positions_is_not_shown_as_one_over_all() -> None:
    counts = tally([round_of("k"), round_of("k", shared=None)])
    assert counts.alpha is counts.expected_kept is counts.expected_kept_variance is None
    assert counts.tested_rate == 1.0


def test_a_row_that_no_token_was_taken_from_counts_for_nothing() -> None:
    rounds = [round_of("kru"), round_of("kkk"), round_of("kkuu", cut=True)]
    row = Row(position=9, tv=1.0, expected_accept=0.0)
    assert tally(dataclasses.replace(one, after=row, after_id=4) for one in rounds) == tally(rounds)


@given(st.lists(st.from_regex(r"\A(k{0,5}|k{0,4}ru{0,3})\Z"), max_size=6))
def test_rates_are_rates(rounds: list[str]) -> None:
    counts = tally(map(round_of, rounds))
    for rate in (counts.tested_rate, counts.drafted_rate, counts.alpha):
        assert rate is None or 0 <= rate <= 1
    assert counts.emitted == counts.kept + counts.rounds
    assert counts.kept + counts.rejected <= counts.drafted
    assert sum(counts.kept_at_least) == counts.kept
    assert sum(counts.judged_at) == counts.judged


# --- imports ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("module", ["specviz.trace", "specviz.decoding.settings"])
def test_reading_a_run_and_moving_a_slider_need_no_torch(module: str) -> None:
    check = f"import sys, {module}; sys.exit(bool({{'torch', 'transformers', 'streamlit'}} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0
