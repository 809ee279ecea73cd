"""Carrying a run in and out of the page: what links say and cannot have, which files are runs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specviz import trace as traces
from specviz.figures.events import Timeline
from specviz.trace import Trace
from specviz.ui import controls, recordings, session, sharing, words
from specviz.ui.controls import Refused, Wanted
from specviz.ui.session import FILE, Run
from tests.synthetic_traces import make_trace

SETTINGS = {
    "rule": st.sampled_from(sorted(words.RULES)),
    "gamma": st.integers(0, 16),
    "temperature": st.integers(0, 40).map(lambda n: n / 20),
    "drafter_temperature": st.integers(0, 40).map(lambda n: n / 20),
    "top_k": st.integers(0, 1_000),
    "top_p": st.integers(1, 20).map(lambda n: n / 20),
    "seed": st.integers(0, 2**31 - 1),
    "drafter": st.sampled_from(sorted(words.DRAFTERS)),
    "ngram": st.integers(1, 16),
}


@pytest.fixture(autouse=True, scope="module")
def _recorded(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One recorded run, which decides the defaults."""
    folder = tmp_path_factory.mktemp("recorded")
    traces.save(make_trace(), folder / "sampling.jsonl")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recordings, "FOLDER", folder)
        yield


def run_of(trace: Trace, **changes: Any) -> Run:
    settings = dict(trace.rounds[0].settings or {})
    prompt, length = words.PRESETS["code"], trace.header.max_new_tokens or 64
    run = Run("run", trace, "embedded", prompt, settings, length, live_round=0)
    return replace(run, event=Timeline(trace).events[-1], **changes)


SOME_RUN = run_of(make_trace())


# --- links ------------------------------------------------------------------------------------------------------------


@given(
    settings=st.fixed_dictionaries(SETTINGS),
    length=st.integers(4, 512),
    preset=st.sampled_from(sorted(words.PRESETS)),
    detail=st.sampled_from(words.DETAILS),
)
def test_an_address_says_what_the_controls_take_from_it(
    settings: dict[str, Any], length: int, preset: str, detail: str
) -> None:
    """Reading what was written gives the same run, whatever is at its default."""
    if settings["rule"] == "greedy":
        settings |= {"temperature": 0.0, "drafter_temperature": 0.0}
    shown = recordings.first()
    address = controls.address("embedded", settings, words.PRESETS[preset], length, detail)
    said = controls.defaults(shown) | {key: controls.taken(key, raw, shown) for key, raw in address.items()}
    assert not any(isinstance(value, Refused) for value in said.values())
    assert (said["pair"], said["prompt"], said["length"], said["detail"]) == ("embedded", preset, length, detail)
    for name in ("rule", "gamma", "top_k", "top_p", "seed", "drafter", "ngram"):
        assert said[name] == settings[name], name
    if settings["rule"] != "greedy":
        assert said["temperature"] == settings["temperature"]
        own = said["temperature"] if said["linked"] else said["drafter_temperature"]
        assert own == settings["drafter_temperature"]


def test_a_run_as_the_page_opens_it_has_a_bare_address() -> None:
    shown = recordings.first()
    assert shown is not None
    header = shown.trace.header
    settings, prompt = shown.settings, header.prompt or ""
    assert controls.address("embedded", settings, prompt, header.max_new_tokens or 0, words.DETAILS[1]) == {}


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, ""),
        ({"gamma": "7", "rule": "Gumbel", "at": "7.3", "pair": "SmolLM2"}, "pair SmolLM2"),
        ({"gamma": "999"}, "The link asked for gamma 999; it is a whole number from 0 to 16, so 4 is used."),
        ({"gamma": "4.5"}, "gamma 4.5"),
        ({"gamma": "abc"}, "gamma abc"),
        ({"gamma": "-3"}, "gamma -3"),
        ({"temperature": "nan"}, "The link asked for temperature nan; it goes from 0 to 2, so 1 is used."),
        ({"temperature": "inf"}, "temperature inf"),
        ({"rule": "foo"}, "The link asked for rule foo; that is not on offer, so Sampling is used."),
        ({"linked": "perhaps"}, "it is true or false, so true is used"),
        ({"at": "99"}, "the moment 99; a moment is a round and an event, as in 7.3"),
        ({"at": "0.1"}, "the moment 0.1"),
        ({"drafter_temperature": "9"}, "drafter temperature 9"),
        ({"gamma": "x", "seed": "y"}, "The link asked for gamma x and seed y, which cannot be had"),
        ({"gamma": "x", "seed": "y", "top_k": "z", "top_p": "q", "rule": "r"}, "and 2 more, which cannot be had"),
        ({"embed": "true", "anything": "<b>"}, ""),
    ],
)
def test_what_a_link_cannot_have_is_one_sentence(asked: dict[str, str], said: str) -> None:
    sentence = sharing.complaints(asked, recordings.first())
    assert said in sentence
    assert bool(sentence) == bool(said)
    assert sentence.count("The link asked for") <= 1


@given(raw=st.text(max_size=3_000))
def test_a_strange_value_is_quoted_short_and_without_hidden_signs(raw: str) -> None:
    sentence = sharing.complaints({"rule": raw}, recordings.first())
    if raw in words.RULES.values():
        assert sentence == ""
    else:
        assert sentence.isprintable()
        assert len(sentence) < 700


# --- what can be linked -----------------------------------------------------------------------------------------------


def test_a_run_of_one_piece_can_be_linked_and_others_say_why_not() -> None:
    trace = make_trace()
    run = run_of(trace)
    assert sharing.unlinkable(run) == ""
    other = replace(trace.rounds[3], settings=dict(trace.rounds[3].settings or {}, gamma=2))
    changed = replace(trace, rounds=(*trace.rounds[:3], other, *trace.rounds[4:]))
    assert sharing.unlinkable(run_of(changed)) == words.LINK["midway"]
    assert sharing.unlinkable(replace(run, stretched=True)) == words.LINK["midway"]
    assert sharing.unlinkable(replace(run, settings={**run.settings, "seed": 1})) == words.LINK["midway"]
    assert sharing.unlinkable(replace(run, prompt="my own words")) == words.LINK["own"]
    assert sharing.unlinkable(replace(run, recording=FILE)) == words.LINK["file"]
    assert sharing.unlinkable(replace(run, base=FILE)) == words.LINK["file"]
    assert sharing.unlinkable(replace(run, prompt=make_trace().header.prompt or "")) == ""


def test_a_run_that_was_recorded_before_a_setting_existed_goes_on_in_one_piece() -> None:
    trace = make_trace()
    later = [replace(round_, settings=round_.said) for round_ in trace.rounds[3:]]
    assert "ngram" not in (trace.rounds[0].settings or {})
    assert sharing.unlinkable(run_of(replace(trace, rounds=(*trace.rounds[:3], *later)))) == ""


@pytest.mark.parametrize(
    ("settings", "unfit"),
    [
        ({}, ""),
        ({"ngram": 3, "stop_below": 0.0, "stop_above": None}, ""),
        ({"stop_below": 0.4}, "stops"),
        ({"stop_above": 2.0}, "stops"),
        ({"stop_above": 2.0, "gamma": 40}, "unfit"),
        ({"ngram": 7}, "unfit"),
    ],
)
def test_a_file_whose_settings_the_controls_cannot_show_says_so(settings: dict[str, Any], unfit: str) -> None:
    trace = make_trace()
    rounds = tuple(replace(round_, settings={**(round_.settings or {}), **settings}) for round_ in trace.rounds)
    assert sharing._unfit(replace(trace, rounds=rounds)) == (words.FILES[unfit] if unfit else "")


def wanted_for(run: Run, **changes: Any) -> Wanted:
    settings = {**run.settings, **{k: v for k, v in changes.items() if k != "length"}}
    return Wanted(run.pair_id, settings, run.prompt, changes.get("length", run.length), "Numbers")


@pytest.mark.parametrize(("rounds", "length", "stretched"), [(2, 200, False), (99, 200, True), (99, 48, False)])
def test_a_longer_run_can_be_linked_unless_a_round_was_made_short(rounds: int, length: int, stretched: bool) -> None:
    trace = make_trace().cut(rounds)
    assert session.branched(run_of(trace), wanted_for(run_of(trace), length=length)).stretched == stretched


def test_the_origin_names_every_part_of_a_run() -> None:
    trace = make_trace()
    run = run_of(trace)
    assert session.origin(run) == ["measured here"]
    assert session.origin(replace(run, recording="sampling", live_round=None)) == ["recorded"]
    assert session.origin(replace(run, recording=FILE, live_round=None)) == ["from a file"]
    token = len(trace.cut(3).text_ids)
    branched = replace(run, base="sampling", live_round=3)
    assert session.origin(branched) == [f"recorded until token {token}", "measured here from then on"]
    assert session.origin(replace(branched, base=FILE))[0] == f"from a file until token {token}"
    assert session.origin(replace(branched, trace=trace.cut(3))) == [f"recorded until token {token}"]


def test_changes_are_named_in_a_few_words() -> None:
    run = run_of(make_trace())
    assert session.changes(run, wanted_for(run)) == []
    assert session.changes(run, wanted_for(run, gamma=6)) == ["gamma 6"]
    assert session.changes(run, wanted_for(run, temperature=0.7, drafter_temperature=0.7)) == ["T = 0.7"]
    assert session.changes(run, wanted_for(run, drafter_temperature=0.7)) == ["drafter T = 0.7"]
    assert session.changes(run, wanted_for(run, drafter="ngram")) == ["drafter: n-gram: copies"]
    copies = run_of(make_trace(), settings={**run.settings, "drafter": "ngram", "ngram": 3})
    assert session.changes(copies, wanted_for(copies, ngram=5)) == ["longest match 5"]
    greedy = wanted_for(run, rule="greedy", temperature=0.0, drafter_temperature=0.0)
    assert session.changes(run, greedy) == ["the rule Greedy"]


# --- files ------------------------------------------------------------------------------------------------------------


def lines_of(trace: Trace) -> list[dict[str, Any]]:
    return [json.loads(line) for line in traces.dump(trace).splitlines()]


def as_file(records: list[Any]) -> bytes:
    return "\n".join(json.dumps(record) for record in records).encode()


def test_what_was_downloaded_opens_as_the_same_run() -> None:
    trace = make_trace("block_verification")
    assert sharing.opened(traces.dump(trace).encode()) == (trace, "")


def edited(change: Callable[[list[dict[str, Any]]], object]) -> bytes:
    records = lines_of(make_trace())
    change(records)
    return as_file(records)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "line 1: the file is empty"),
        (b"\xff\xfe", "line 1: expected UTF-8"),
        (b"{}\n", "line 1: expected the header"),
        (traces.dump(make_trace()).encode()[:-300], f"line {1 + len(make_trace().rounds)}: "),
        (b" " * (sharing.MAX_BYTES + 1), "at most 5 MB"),
        (edited(lambda r: r[3].update(position=1)), "line 4: round 2 starts at position 1"),
        (edited(lambda r: r[2].update(drafts=[], closing=None)), "line 3: the round has neither drafts nor"),
        (edited(lambda r: r[2].update(emitted=[])), "line [34]: "),
        (edited(lambda r: r[2]["drafts"][0].update(fate="unjudged")), "line 3: the fates|line 3: the round emits"),
        (edited(lambda r: [d.pop("fate") for d in r[1]["drafts"]]), "line 2: the round emits other tokens"),
        (edited(lambda r: r[0].update(prompt="half \ud83d")), "line 1: a text holds half a character"),
        (edited(lambda r: r[5]["settings"].update(rule="\udc80")), "line 6: a text holds half a character"),
        (edited(lambda r: r[5]["settings"].update(rule=["x"])), "line 6: the setting rule is"),
        (edited(lambda r: r[5]["settings"].update(gamma={})), "line 6: the setting gamma is"),
        (edited(lambda r: r[0].update(prompt="x" * 30_000)), "line 1: a text has 30,000 characters"),
        (edited(lambda r: r[1]["drafts"][0]["row"]["tokens"][0].update(bytes="41" * 3_000)), "line 2: a token has"),
        (edited(lambda r: r[1]["drafts"][0]["row"].update(tokens=[{"id": i} for i in range(600)])), "line 2: a row"),
        (edited(lambda r: r[1].update(drafts=r[1]["drafts"] * 30)), "line 2: the round has 120 drafts"),
    ],
)
def test_a_file_that_cannot_be_shown_is_refused_with_its_line(content: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        sharing.opened(content)


def test_of_a_very_long_run_the_beginning_is_shown_and_the_page_says_so() -> None:
    records: list[Any] = [{"kind": "header"}]
    records += [{"index": i, "position": i, "closing": {"id": 1}, "emitted": [1]} for i in range(60_000)]
    trace, notice = sharing.opened(as_file(records))
    assert len(trace.rounds) == sharing.MAX_ROUNDS
    assert "60,000 rounds" in notice


@given(settings=st.dictionaries(st.sampled_from(sorted(SETTINGS)), st.one_of(st.text(), st.floats(), st.integers())))
def test_a_files_name_is_safe_whatever_its_settings_say(settings: dict[str, Any]) -> None:
    name = sharing.file_name(replace(SOME_RUN, settings=settings))
    assert re.fullmatch(r"specviz(-[A-Za-z0-9_-]{1,40}){0,2}\.jsonl", name)


@given(settings=st.dictionaries(st.sampled_from(sorted(SETTINGS)), st.one_of(st.text(), st.floats(), st.integers())))
def test_foreign_settings_fit_the_controls_or_are_left_out(settings: dict[str, Any]) -> None:
    shown = recordings.first()
    fitted = controls.fitting(settings)
    address = controls.address("embedded", fitted, words.PRESETS["chat"], 64, "Numbers")
    assert not any(isinstance(controls.taken(key, raw, shown), Refused) for key, raw in address.items())


def test_a_reason_is_one_line_of_visible_text() -> None:
    with pytest.raises(ValueError, match="line 6") as caught:
        sharing.opened(edited(lambda r: r[5]["settings"].update(rule=["\u202e<script>\n"])))
    assert sharing.visible_reason(str(caught.value)).isprintable()
