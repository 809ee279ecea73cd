"""Settings: every value outside its range is refused by name, and what is recorded can be read back."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specviz.decoding.settings import DRAFTERS, MAX_GAMMA, Settings
from specviz.rules import RULES, WRONG_RULES

NUMBERS = "must be finite and at least 0, got"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("rule", "guess", "rule must be one of greedy, speculative_sampling, .* got 'guess'"),
        ("rule", "", "rule must be one of"),
        ("rule", None, "rule must be one of"),
        ("rule", [], r"rule must be one of .* got \[\]"),
        ("gamma", -1, r"gamma must be a whole number in 0\.\.16, got -1"),
        ("gamma", MAX_GAMMA + 1, r"gamma must be a whole number in 0\.\.16, got 17"),
        ("gamma", 4.0, r"gamma must be a whole number in 0\.\.16, got 4\.0"),
        ("gamma", True, "gamma must be a whole number"),
        ("gamma", "two", "gamma must be a whole number in .* got 'two'"),
        ("temperature", -1, f"temperature {NUMBERS} -1"),
        ("temperature", -1e-9, f"temperature {NUMBERS} -1e-09"),
        ("temperature", math.nan, f"temperature {NUMBERS} nan"),
        ("temperature", math.inf, f"temperature {NUMBERS} inf"),
        ("temperature", 10**400, f"temperature {NUMBERS} 1000"),
        ("temperature", "warm", f"temperature {NUMBERS} 'warm'"),
        ("temperature", True, f"temperature {NUMBERS} True"),
        ("drafter_temperature", -0.5, f"drafter_temperature {NUMBERS} -0.5"),
        ("drafter_temperature", math.nan, f"drafter_temperature {NUMBERS} nan"),
        ("top_k", -1, "top_k must be a whole number from 0, got -1"),
        ("top_k", 1.5, "top_k must be a whole number"),
        ("top_p", 0, r"top_p must be in \(0, 1\], got 0"),
        ("top_p", -0.1, r"top_p must be in \(0, 1\], got -0\.1"),
        ("top_p", 1.0000001, r"top_p must be in \(0, 1\], got 1\.0000001"),
        ("top_p", math.nan, r"top_p must be in \(0, 1\], got nan"),
        ("top_p", None, r"top_p must be in \(0, 1\], got None"),
        ("seed", 2**63, "seed must be a whole number in"),
        ("seed", -(2**63) - 1, "seed must be a whole number in"),
        ("seed", "0", "seed must be a whole number in .* got '0'"),
        ("drafter", "oracle", "drafter must be one of model, target, ngram, none, got 'oracle'"),
        ("drafter", [], "drafter must be one of"),
        ("ngram", 0, r"ngram must be a whole number in 1\.\.16, got 0"),
        ("ngram", 17, r"ngram must be a whole number in 1\.\.16, got 17"),
        ("ngram", None, "ngram must be a whole number"),
        ("stop_below", -0.1, r"stop_below must be in \[0, 1\], got -0\.1"),
        ("stop_below", 1.01, r"stop_below must be in \[0, 1\], got 1\.01"),
        ("stop_below", math.nan, r"stop_below must be in \[0, 1\], got nan"),
        ("stop_below", None, r"stop_below must be in \[0, 1\], got None"),
        ("stop_above", -1, "stop_above must be finite and at least 0, or None, got -1"),
        ("stop_above", math.inf, "stop_above must be finite and at least 0, or None, got inf"),
        ("stop_above", "high", "stop_above must be finite and at least 0, or None, got 'high'"),
    ],
)
def test_a_value_out_of_range_is_named_with_what_is_allowed(name: str, value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Settings(**{name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("gamma", 0),
        ("gamma", 16),
        ("temperature", 0),
        ("temperature", 5e-324),
        ("temperature", 1e308),
        ("top_k", 0),
        ("top_k", 10**9),
        ("top_p", 1),
        ("top_p", 1e-12),
        ("seed", 2**63 - 1),
        ("seed", -(2**63)),
        ("ngram", 1),
        ("ngram", 16),
        ("stop_below", 0),
        ("stop_below", 1),
        ("stop_above", 0),
        ("stop_above", 1e308),
        ("stop_above", None),
    ],
)
def test_the_ends_of_a_range_belong_to_it(name: str, value: Any) -> None:
    assert getattr(Settings(**{name: value}), name) == value


@pytest.mark.parametrize("name", WRONG_RULES)
def test_rules_that_distort_the_text_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"got '{name}'"):
        Settings(rule=name)


def test_greedy_is_temperature_zero_and_nothing_else() -> None:
    assert (Settings(rule="greedy").temperature, Settings(rule="greedy").drafter_temperature) == (0, 0)
    for name in ("temperature", "drafter_temperature"):
        with pytest.raises(ValueError, match=f"the rule greedy needs {name} 0, got 0.5; take speculative_sampling"):
            Settings(rule="greedy", **{name: 0.5})


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule != "greedy"])
def test_the_drafters_temperature_follows_the_targets_unless_it_is_given(rule: str) -> None:
    assert Settings(rule=rule).temperature == 1
    assert Settings(rule=rule, temperature=0.5).drafter_temperature == 0.5
    assert Settings(rule=rule, temperature=0.5, drafter_temperature=0).drafter_temperature == 0
    assert Settings(rule=rule, drafter_temperature=0.3).temperature == 1


def test_nobody_can_change_settings_in_force() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Settings().gamma = 7  # type: ignore[misc]


every_setting = st.builds(
    Settings,
    rule=st.sampled_from([rule for rule in RULES if rule != "greedy"]),
    gamma=st.integers(0, MAX_GAMMA),
    temperature=st.floats(0, 10),
    drafter_temperature=st.none() | st.floats(0, 10),
    top_k=st.integers(0, 100),
    top_p=st.floats(0, 1, exclude_min=True),
    seed=st.integers(-(2**63), 2**63 - 1),
    drafter=st.sampled_from(DRAFTERS),
    ngram=st.integers(1, 16),
    stop_below=st.floats(0, 1),
    stop_above=st.none() | st.floats(0, 20),
)


@given(every_setting)
def test_what_a_round_records_can_be_set_again(settings: Settings) -> None:
    recorded = json.loads(json.dumps(settings.as_dict()))
    assert Settings.from_dict(recorded | {"batch": 3}) == settings


def test_a_record_from_before_a_setting_existed_says_its_default() -> None:
    recorded = Settings().as_dict()
    for name in ("ngram", "stop_below", "stop_above"):
        del recorded[name]
    assert Settings.from_dict(recorded) == Settings()


def test_a_record_with_a_wrong_value_is_refused() -> None:
    with pytest.raises(ValueError, match=r"gamma must be a whole number in 0\.\.16, got 40"):
        Settings.from_dict({"gamma": 40})
