"""The lines that ran: the rule's own source, and numbers that its own variables held."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from specviz import probability, rules
from specviz.figures import lines
from specviz.figures.lines import Function, Line, Lines
from specviz.figures.sentences import plain
from specviz.noise import RoundNoise
from specviz.probability import residual
from specviz.rules import RULES, WRONG_RULES, Rule

P, Q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])
SOURCES = {
    Path(str(module.__file__)).name: Path(str(module.__file__)).read_text().splitlines()
    for module in (rules, probability)
}
EVERY_RULE = [*RULES.values(), *WRONG_RULES.values()]
SAMPLING = RULES["speculative_sampling"]


def letter(token_id: int) -> str:
    return "abc"[token_id]


def shown(rule: Rule, *, kept: bool, p: Any = P, q: Any = Q) -> Lines:
    seed = lines.seed_where(rule, p, q, kept, first=0)
    return lines.of(rule, p, q, letter, seed=seed or 0)


def function(panel: Lines, name: str) -> Function:
    return next(one for one in panel.functions if one.name.endswith(name))


def line(shown: Function, text: str) -> Line:
    return next(one for one in shown.lines if one.text.strip().startswith(text))


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("rule", EVERY_RULE, ids=lambda rule: rule.name)
def test_every_line_is_the_modules_own(rule: Rule, kept: bool) -> None:
    for one in shown(rule, kept=kept).functions:
        source = SOURCES[one.where.split(",")[0].split("/")[-1]]
        for each in one.lines:
            assert each.text.strip() == source[each.number - 1].strip()


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("rule", EVERY_RULE, ids=lambda rule: rule.name)
def test_the_lines_that_ran_are_those_that_python_counts(rule: Rule, kept: bool) -> None:
    """Held against a tracer of the test's own, by whole statements: each shown line that it saw ran."""
    seed = lines.seed_where(rule, P, Q, kept, first=0) or 0
    counted: set[tuple[str, int]] = set()

    def tracer(frame: Any, event: str, arg: Any) -> Any:
        if event == "line":
            counted.add((Path(frame.f_code.co_filename).name, frame.f_lineno))
        return tracer

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        lines._round(rule, P, Q, Q, seed)
    finally:
        sys.settrace(before)
    panel = lines.of(rule, P, Q, letter, seed=seed)
    for one in panel.functions:
        file = one.where.split(",")[0].split("/")[-1]
        idle = {(file, each.number) for each in one.lines if not each.ran}
        assert not idle & counted
        simple = [each for each in one.lines[1:] if each.ran and each.text.rstrip().endswith(")")]
        for each in simple:
            ahead = {(file, number) for number in range(each.number - 6, each.number + 1)}
            assert ahead & counted


def test_a_kept_draft_runs_no_correction_and_a_rejected_one_does() -> None:
    def corrections(panel: Lines) -> list[str]:
        return [one.name for one in panel.functions if one.name.endswith(".correction")]

    assert corrections(shown(SAMPLING, kept=True)) == []
    rejected = shown(SAMPLING, kept=False)
    assert corrections(rejected) == ["SpeculativeSampling.correction"]
    wanted = ", ".join(lines._number(one) for one in residual(P, Q))
    assert line(function(rejected, ".correction"), "return").said == f"→ [{wanted}]"


def test_the_numbers_are_this_places() -> None:
    seed = lines.seed_where(SAMPLING, P, Q, False, first=0) or 0
    noise = RoundNoise(seed, 0)
    draft = int(SAMPLING.draft(Q, noise, 0))
    verify = function(lines.of(SAMPLING, P, Q, letter, seed=seed), ".verify")
    assert line(verify, "accept_prob =").said == f"accept_prob = {lines._number(min(1, P[draft] / Q[draft]))}"
    assert line(verify, "coin =").said == f"coin = {lines._number(noise.accept(1)[0])}"
    assert line(verify, "passed =").said == "passed = False"
    assert f"“{letter(draft)}”" in line(verify, "def verify").said


def test_a_branch_that_was_not_taken_is_pale() -> None:
    gamma = function(shown(SAMPLING, kept=True), "_gamma")
    assert not line(gamma, "raise ValueError").ran
    assert line(gamma, "return gamma").ran


def test_a_block_is_judged_with_two_drafts() -> None:
    panel = shown(RULES["block_verification"], kept=False)
    assert line(function(panel, ".verify"), "gamma =").said == "gamma = 2"
    assert "of 2" in plain(panel.story)


@pytest.mark.parametrize("rule", EVERY_RULE, ids=lambda rule: rule.name)
def test_watching_changes_nothing(rule: Rule) -> None:
    def unheard(frame: Any, event: str, arg: Any) -> None:
        return None

    before = sys.gettrace()
    sys.settrace(unheard)
    try:
        for seed in range(8):
            draft_ids, verdict = lines._round(rule, P, Q, Q, seed)
            panel = lines.of(rule, P, Q, letter, seed=seed)
            assert panel.kept == (int(verdict.kept) == len(draft_ids))
            assert f"then “{letter(int(verdict.closing.id))}”" in line(function(panel, ".verify"), "return V").said
        assert sys.gettrace() is unheard
    finally:
        sys.settrace(before)


def test_the_watch_ends_where_a_rule_fails() -> None:
    before = sys.gettrace()
    with pytest.raises(ValueError, match="need p of shape"):
        lines._Watch(letter)(lambda: SAMPLING.verify(P[None], Q[None], np.array([0]), RoundNoise(0, 0)))
    assert sys.gettrace() is before


def test_another_thread_is_not_watched() -> None:
    going = threading.Event()

    def others() -> None:
        while not going.wait(0):
            RULES["gumbel_coupling"].draft(Q, RoundNoise(0, 0), 0)

    thread = threading.Thread(target=others)
    thread.start()
    try:
        for seed in range(30):
            names = [one.name for one in lines.of(SAMPLING, P, Q, letter, seed=seed).functions]
            assert not any("Gumbel" in name for name in names)
    finally:
        going.set()
        thread.join()


@pytest.mark.parametrize("rule", EVERY_RULE, ids=lambda rule: rule.name)
@pytest.mark.parametrize(("p", "q"), [(P, P), ([1.0, 0.0, 0.0], [0.0, 1.0, 0.0]), ([1.0, 0.0, 0.0], [1.0, 0.0, 0.0])])
def test_edge_places_have_lines(rule: Rule, p: Any, q: Any) -> None:
    for kept in (True, False):
        panel = shown(rule, kept=kept, p=np.asarray(p), q=np.asarray(q))
        assert panel.story
        assert any(each.ran for one in panel.functions for each in one.lines)


def test_a_seed_is_found_for_either_fate_and_lies_ahead() -> None:
    for kept in (True, False):
        seed = lines.seed_where(SAMPLING, P, Q, kept, first=5)
        assert seed is not None
        assert seed >= 5
        assert lines.of(SAMPLING, P, Q, letter, seed=seed).kept is kept
    assert lines.seed_where(SAMPLING, P, P, False, first=3) is None


def test_a_draft_comes_from_what_it_is_really_drawn_from() -> None:
    panel = lines.of(SAMPLING, P, Q, letter, seed=0, drawn=np.array([0.0, 1.0, 0.0]))
    assert plain(panel.story).startswith("b is drafted")


@pytest.mark.parametrize("rule", EVERY_RULE, ids=lambda rule: rule.name)
def test_a_whole_vocabulary_is_said_in_a_few_words_and_soon(rule: Rule) -> None:
    size = 49_152
    p, q = np.arange(1, size + 1.0), np.arange(size, 0, -1.0)
    p, q = p / p.sum(), q / q.sum()
    start = time.perf_counter()
    panel = lines.of(rule, p, q, lambda token_id: f"t{token_id}", seed=0)
    assert time.perf_counter() - start < 1
    assert max(len(each.said) for one in panel.functions for each in one.lines) < 400


def test_a_tokens_text_stays_text() -> None:
    hostile = "<img src=x>{0}[b]"
    panel = lines.of(SAMPLING, P, Q, lambda _: hostile, seed=0)
    assert (hostile, "token") in panel.story
