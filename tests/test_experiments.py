"""The records of a sweep and of a grid: their figures against sums by hand, and their files."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from dataclasses import replace
from statistics import stdev
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specviz import experiments
from specviz.experiments import Grid, GridRun, Place, Policy, Sweep, SweepRun
from tests.sweeps import run, sweep

ALONE, FOUR = Policy(0), Policy(4)


def measured(policy: Policy, prompt: str, emitted: int, seconds: float) -> SweepRun:
    return replace(run(policy, prompt=prompt), emitted=emitted, seconds=seconds)


def grid(*runs: GridRun, **changes: Any) -> Grid:
    texts = {1: "61", 2: "62", 3: "f09f"}
    head = {"created": "2030-01-02", "pair": "a pair", "device": "a machine", "dtype": "fp32", "prompt": "Hello."}
    return Grid(**(head | {"token_bytes": texts, "runs": runs} | changes))


def text(rule: str, drafter: Any, gamma: int, *ids: int) -> GridRun:
    return GridRun(rule, drafter, gamma, ids, target_passes=len(ids), drafter_passes=gamma, seconds=0.5)


# --- a sweep ----------------------------------------------------------------------------------------------------------


def test_policies_come_by_gamma_and_those_that_stop_early_last() -> None:
    shuffled = (Policy(12, stop_above=1.0), Policy(2), Policy(12, stop_below=0.4), Policy(0), Policy(12))
    mixed = sweep([run(policy, drafts=0) for policy in shuffled])
    assert mixed.policies()[:3] == (Policy(0), Policy(2), Policy(12))
    assert {*mixed.policies()[3:]} == {Policy(12, stop_above=1.0), Policy(12, stop_below=0.4)}
    assert sweep([run(FOUR), run(FOUR, "code")]).policies() == (FOUR,)
    assert [mixed.runs_of(one) for one in shuffled] == [(one,) for one in mixed.runs]
    assert mixed.runs_of() == mixed.runs
    assert mixed.runs_of(Policy(7)) == ()


class Counted(tuple[SweepRun, ...]):
    """Runs that count how often they are gone through."""

    times = 0

    def __iter__(self) -> Iterator[SweepRun]:
        self.times += 1
        return super().__iter__()


@pytest.mark.parametrize("count", [2, experiments.MOST_POLICIES])
def test_however_many_policies_are_looked_up_the_runs_are_gone_through_as_often(count: int) -> None:
    policies = [Policy(1 + i // 8, stop_below=0.1 * (i % 8 + 1)) for i in range(count)]
    runs = Counted(run(policy, drafts=0) for policy in policies)
    runs.times = 0
    whole = replace(sweep([]), runs=runs)
    for policy in whole.policies():
        assert whole.tokens_per_pass(policy) == 1
        assert whole.speedup(policy) is None
        assert whole.select("chat") is whole.select("chat")
    assert runs.times <= 8


def test_tokens_a_second_are_all_tokens_over_all_seconds() -> None:
    both = sweep([measured(FOUR, "a", 10, 1.0), measured(FOUR, "b", 50, 2.0)])
    assert both.tokens_per_second(FOUR) == pytest.approx(20.0)
    assert both.tokens_per_second(ALONE) is None


def test_a_speedup_is_taken_on_the_prompts_that_both_decoded() -> None:
    runs = [measured(ALONE, "a", 10, 1.0), measured(ALONE, "b", 10, 100.0), measured(FOUR, "a", 30, 1.0)]
    assert sweep(runs).speedup(FOUR) == pytest.approx(3.0)
    assert sweep(runs).speedup(ALONE) == pytest.approx(1.0)
    assert sweep(runs[1:]).speedup(FOUR) is None
    assert sweep(runs[2:]).speedup(FOUR) is None


def test_a_workload_is_a_sweep_of_its_own() -> None:
    whole = sweep()
    chat = whole.select("chat")
    assert whole.workloads() == ("chat", "code")
    assert {one.workload for one in chat.runs} == {"chat"}
    assert chat.alpha(FOUR) == pytest.approx(0.4)
    assert whole.alpha(FOUR) == pytest.approx(0.5)
    assert whole.select(None) == whole
    assert whole.select("poetry").alpha() is None


def test_places_add_up_over_runs_of_different_gamma() -> None:
    two, one = run(Policy(2), rounds=8), run(Policy(1), rounds=4, alpha=0.25)
    places = sweep([two, one]).kept_by_place()
    assert places == (Place(12, 6, 8 * 0.5 + 4 * 0.25), Place(4, 2, 2.0))
    assert (places[0].rate, places[1].alpha) == (0.5, 0.5)
    assert sweep([two, one]).kept_by_place(Policy(1)) == (Place(4, 2, 1.0),)
    assert (Place(0, 0, 0.0).rate, Place(0, 0, 0.0).alpha) == (None, None)


def test_rates_a_round_are_sums_over_sums() -> None:
    early = Policy(12, stop_below=0.4)
    one = sweep([run(early, rounds=8, drafts=2), run(early, "code", rounds=2, drafts=0)])
    assert one.drafts_per_round(early) == pytest.approx(16 / 10)
    assert one.tokens_per_pass(early) == pytest.approx((8 + 4 + 2 + 2) / 10)


def test_how_unlike_rounds_are_says_how_sure_their_mean_is() -> None:
    """Rounds that kept 0, 1, 2, 2 of two drafts, against statistics of the same."""
    one = replace(
        run(Policy(2), rounds=4), emitted=9, kept=(3, 2), judged=(4, 3), shared=(2.0, 2.0), draft=(), seconds=1.0
    )
    error = stdev([1, 2, 3, 3]) / 2
    steady, shaky = (
        sweep([replace(one, verify=tuple((3, seconds) for seconds in times))])
        for times in ((0.2,) * 4, (0.1, 0.3, 0.1, 0.3))
    )
    assert steady.tokens_error(Policy(2)) == pytest.approx(error)
    assert steady.rate_error(Policy(2)) == pytest.approx(error / (9 / 4))
    of_time = stdev([0.1, 0.3, 0.1, 0.3]) / 2 / (1.0 / 4)
    assert shaky.rate_error(Policy(2)) == pytest.approx(math.hypot(error / (9 / 4), of_time))
    assert sweep([run(Policy(2), rounds=1)]).tokens_error(Policy(2)) is None
    assert sweep([]).rate_error(Policy(2)) is None


def test_what_is_always_sure_has_no_policy_that_stops() -> None:
    assert any(policy.adaptive for policy in experiments.policies())
    assert not any(policy.adaptive for policy in experiments.policies(greedy=True))
    assert not any(policy.adaptive for policy in experiments.policies("ngram"))


def test_c_is_the_median_drafter_read_over_the_median_read_of_one_row() -> None:
    slow = replace(run(ALONE, rounds=3), verify=((1, 0.01), (1, 0.02), (1, 9.0)))
    drafts = replace(run(FOUR, rounds=3), verify=((5, 0.04),), draft=(0.001, 0.004, 5.0))
    both = sweep([slow, drafts])
    assert both.read_seconds() == {1: 0.02, 5: 0.04}
    assert both.c() == pytest.approx(0.2)
    assert sweep([drafts]).c() is None
    assert sweep([slow]).draft_seconds() is None


@given(
    st.integers(1, 16),
    st.tuples(st.floats(0, 1), st.none()) | st.tuples(st.just(0.0), st.floats(0, 50)),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=50),
)
def test_a_sweep_survives_its_file(gamma: int, limits: tuple[float, float | None], prompt: str) -> None:
    policy = Policy(gamma, *limits, "target")
    one = sweep([run(policy, "a set", prompt, rounds=3)], versions={"specviz": "1"}, seed=-(2**63))
    assert experiments.load(Sweep, experiments.dump(one)) == one


def changed(**values: Any) -> str:
    said = json.loads(experiments.dump(sweep([run(FOUR)])))
    said["runs"][0] |= values
    return json.dumps(said)


def together(*runs: dict[str, Any]) -> str:
    said = json.loads(changed())
    said["runs"] = [said["runs"][0] | one for one in runs]
    return json.dumps(said)


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("{", "no JSON"),
        ("[" * 100_000, "no JSON"),
        ("[]", "no sweep"),
        ('{"kind": "profile"}', "no sweep"),
        ('{"kind": "sweep", "schema_version": 2}', "schema_version"),
        (changed(emitted=-1), "emitted"),
        (changed(seconds=float("nan")), "seconds"),
        (changed(seconds=1e308), "seconds"),
        (changed(policy={"gamma": 99}), "gamma"),
        (changed(policy={"gamma": 4, "stop_below": 2}), "stop_below"),
        (changed(policy={"gamma": 4, "stop_below": -1e-10}), "stop_below .* got -1e-10"),
        (changed(policy={"gamma": 4, "stop_below": -0.0}), "stop_below .* got -0.0"),
        (changed(policy={"gamma": 4, "stop_above": -0.0}), "stop_above .* got -0.0"),
        (changed(policy={"gamma": 4, "stop_below": 0.5, "stop_above": 1.0}), "one limit"),
        (changed(policy={"gamma": 0, "stop_below": 0.5}), "gamma must be at least 1"),
        (changed(policy={"gamma": 4, "drafter": "<b>"}), "drafter"),
        (changed(policy={"gamma": 4, "drafter": "none"}), "gamma must be 0 where nobody drafts, got 4"),
        (together({}, {}), "runs must differ"),
        (together({}, {"policy": {"gamma": 4, "drafter": "ngram"}}), "policies"),
        (together(*({"policy": {"gamma": 4, "stop_below": least}} for least in (0.2, 0.201))), "policies"),
        (together({"workload": "a b"}, {"workload": " A  B "}), "workloads"),
        (changed(workload=" \n"), "workload"),
        (together(*({"prompt": str(i)} for i in range(experiments.MOST_RUNS + 1))), "2,000 runs, got 2,001"),
        (
            together(*({"policy": {"gamma": 1 + i % 16, "stop_above": i // 16}} for i in range(65))),
            "64 policies, got 65",
        ),
        (json.dumps(json.loads(changed()) | {"rule": "hope"}), "rule must be one of greedy"),
        (changed(workload=""), "workload"),
        (changed(workload="x" * 10_000), "workload"),
        (changed(prompt="x" * 1_000_000), "prompt"),
        (changed(prompt="\ud800"), "prompt"),
        (changed(kept=[64, 32, 16]), "as long as each other"),
        (changed(kept=[65, 1, 1, 1]), "more than it judged"),
        (changed(shared=[1e6, 1, 1, 1]), "more than it judged"),
        (changed(drafted=3), "drafted"),
        (changed(verify=[[0, 1.0]]), "verify"),
        (changed(draft="fast"), "draft"),
        (changed(judged=None), "judged is missing"),
    ],
)
def test_a_file_that_is_no_sweep_is_refused_by_name(content: str, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        experiments.load(Sweep, content)


# --- a grid -----------------------------------------------------------------------------------------------------------


def test_the_text_of_a_run_is_the_bytes_of_its_tokens_and_its_hash_is_theirs() -> None:
    one = grid(text("gumbel_coupling", "model", 4, 1, 2, 3))
    assert one.text(one.runs[0]) == b"ab\xf0\x9f"
    assert one.sha256(one.runs[0]) == hashlib.sha256(b"ab\xf0\x9f").hexdigest()


def test_a_cell_is_found_by_rule_drafter_and_gamma() -> None:
    plain, drafted = text("gumbel_coupling", "none", 0, 1), text("gumbel_coupling", "model", 4, 1, 2)
    other = text("speculative_sampling", "none", 0, 3)
    one = grid(plain, drafted, other)
    assert one.rules() == ("gumbel_coupling", "speculative_sampling")
    assert one.run("gumbel_coupling", "model", 4) == drafted
    assert one.run("gumbel_coupling", "model", 5) is None
    assert one.alone("speculative_sampling") == other
    assert one.select("gumbel_coupling").token_bytes == {1: "61", 2: "62"}


def test_files_of_one_prompt_and_seed_join_and_others_are_left_out() -> None:
    one = grid(text("gumbel_coupling", "none", 0, 1), text("speculative_sampling", "none", 0, 2))
    parts = [one.select(rule) for rule in one.rules()]
    assert experiments.joined(parts) == replace(one, token_bytes={1: "61", 2: "62"})
    assert experiments.joined([parts[0], replace(parts[1], seed=9)]) == parts[0]
    assert experiments.joined([parts[0], replace(parts[1], temperature=0.5)]) == parts[0]
    assert experiments.joined([parts[0], parts[0]]) == parts[0]
    assert experiments.joined([]) is None


def test_a_grid_survives_its_file() -> None:
    one = grid(text("gumbel_coupling", "ngram", 8, 1, 3), seed=2**63 - 1, temperature=0.5, max_new_tokens=2)
    assert experiments.load(Grid, experiments.dump(one)) == one


def said(**values: Any) -> dict[str, Any]:
    plain = {"rule": "greedy", "drafter": "none", "gamma": 0, "ids": [1]}
    return plain | {"target_passes": 1, "drafter_passes": 0, "seconds": 0.5} | values


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"token_bytes": {"1": "61"}}, "lacks the token 2"),
        ({"token_bytes": {"one": "61"}}, "whole numbers"),
        ({"token_bytes": {"1": "6"}}, "hexadecimal"),
        ({"token_bytes": {"1": "61" * 513, "2": "62"}}, "512 bytes a token, got 513"),
        ({"token_bytes": ["61"]}, "an object"),
        ({"seed": 2**63}, "seed"),
        ({"temperature": -1}, "temperature"),
        ({"runs": [{}]}, "rule is missing"),
        ({"runs": [said(drafter="none", gamma=1)]}, "gamma must be 0 where the drafter is none, got 1"),
        ({"runs": [said(drafter="model", gamma=0)]}, "gamma must be at least 1 where the drafter is model, got 0"),
        ({"runs": [said(), said(ids=[2])]}, r"must differ, got twice \('greedy', 'none', 0\)"),
        ({"runs": [said(rule="hope")]}, "rule must be one of greedy"),
        ({"runs": [said(rule=["greedy"])]}, "rule must be one of greedy"),
        ({"runs": [said(drafter="magic")]}, "drafter"),
        ({"runs": [said(ids=[1] * (experiments.MOST_IDS + 1))]}, "200,000 tokens, got 200,001"),
        ({"versions": {"\ud800": "1"}}, "versions"),
    ],
)
def test_a_file_that_is_no_grid_is_refused_by_name(changes: dict[str, Any], named: str) -> None:
    content = json.loads(experiments.dump(grid(text("greedy", "none", 0, 1, 2)))) | changes
    with pytest.raises(ValueError, match=named):
        experiments.load(Grid, json.dumps(content))
