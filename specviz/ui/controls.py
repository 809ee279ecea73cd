"""The settings in the sidebar: what the visitor wants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st

from specviz.models import catalogue
from specviz.models.catalogue import EMBEDDED, PairSpec
from specviz.ui import words
from specviz.ui.recordings import Recording

MAX_GAMMA = 16
MAX_TEMPERATURE = 2.0
LENGTHS = (4, 512)
MAX_PROMPT = 2_000
"""Characters of an own text."""
DEFAULTS: dict[str, Any] = {
    "rule": "speculative_sampling",
    "gamma": 4,
    "temperature": 1.0,
    "drafter_temperature": 1.0,
    "top_k": 0,
    "top_p": 1.0,
    "seed": 0,
    "drafter": "model",
}
BOUND = "query-params"
"""Widgets that are part of the page's address."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the controls say. ``settings`` has the keys of a round's record; ``prompt`` may be empty (own text)."""

    pair_id: str
    settings: Mapping[str, Any]
    prompt: str
    length: int


def sidebar(shown: Recording | None, *, story: bool) -> Wanted:
    """Draw the controls; their defaults are the settings of the recording that opens the page."""
    defaults = DEFAULTS | dict(shown.settings if shown is not None else {})
    with st.sidebar:
        pair_id = _pair()
        rule = st.segmented_control(
            words.CONTROLS["rule"],
            list(words.RULES),
            default=defaults["rule"],
            required=True,
            format_func=words.RULES.__getitem__,
            key="rule",
            bind=BOUND,
            width="stretch",
        )
        st.caption(words.RULE_HELP[rule])
        gamma = st.slider(
            words.CONTROLS["gamma"],
            0,
            MAX_GAMMA,
            defaults["gamma"],
            key="gamma",
            bind=BOUND,
            help=words.CONTROLS["gamma.help"],
        )
        temperatures = _temperatures(rule, defaults, story)
        length = st.slider(
            words.CONTROLS["length"],
            *LENGTHS,
            _length(shown),
            key="length",
            bind=BOUND,
            help=words.CONTROLS["length.help"],
        )
        seed = st.number_input(words.CONTROLS["seed"], 0, 2**31 - 1, defaults["seed"], key="seed", bind=BOUND)
        prompt = _prompt(shown)
        top_k, top_p = _cuts(defaults, story)
    settings = {
        "rule": rule,
        "gamma": gamma,
        **temperatures,
        "top_k": top_k,
        "top_p": top_p,
        "seed": int(seed),
        "drafter": "model",
    }
    return Wanted(pair_id, settings, prompt, length)


def show(recording: Recording) -> None:
    """Set the controls to a recording's settings; to be called from a callback."""
    settings = DEFAULTS | dict(recording.settings)
    linked = settings["temperature"] == settings["drafter_temperature"]
    for name in ("rule", "gamma", "drafter_temperature", "top_k", "top_p", "seed"):
        st.session_state[name] = settings[name]
    # Under greedy both are 0, which the slider shows by being off.
    st.session_state.temperature = settings["temperature"] or DEFAULTS["temperature"]
    st.session_state.drafter_temperature = settings["drafter_temperature"] or DEFAULTS["temperature"]
    st.session_state.linked = linked
    st.session_state.length = _length(recording)
    st.session_state.prompt = _preset_of(recording)
    st.session_state.pair = EMBEDDED


def lengthen(by: int) -> None:
    """Raise the length; to be called from a callback."""
    st.session_state.length = min(st.session_state.get("length", LENGTHS[0]) + by, LENGTHS[1])


def _pair() -> str:
    try:
        pairs: Mapping[str, PairSpec] = catalogue.pairs()
    except ValueError as error:
        st.warning(words.MESSAGES["pairs"].format(reason=error))
        pairs = {spec.id: spec for spec in catalogue.SHIPPED}
    return st.selectbox(
        words.CONTROLS["pair"], list(pairs), format_func=lambda pair_id: pairs[pair_id].name, key="pair", bind=BOUND
    )


def _temperatures(rule: str, defaults: Mapping[str, Any], story: bool) -> dict[str, float]:
    greedy = rule == "greedy"
    temperature = st.slider(
        words.CONTROLS["temperature"],
        0.0,
        MAX_TEMPERATURE,
        float(defaults["temperature"]) or DEFAULTS["temperature"],
        step=0.05,
        key="temperature",
        bind=BOUND,
        disabled=greedy,
    )
    if greedy:
        st.caption(words.CONTROLS["temperature.greedy"])
        return {"temperature": 0.0, "drafter_temperature": 0.0}
    linked = True if story else st.session_state.get("linked", True)
    zero = temperature == 0
    st.caption(words.CONTROLS["temperature.zero" if zero else "temperature.linked" if linked else "temperature.free"])
    if story:
        return {"temperature": temperature, "drafter_temperature": temperature}
    linked = st.toggle(words.CONTROLS["linked"], True, key="linked", bind=BOUND)
    if linked:
        return {"temperature": temperature, "drafter_temperature": temperature}
    free = st.slider(
        words.CONTROLS["drafter_temperature"],
        0.0,
        MAX_TEMPERATURE,
        float(defaults["drafter_temperature"]) or DEFAULTS["temperature"],
        step=0.05,
        key="drafter_temperature",
        bind=BOUND,
    )
    note = "gumbel" if rule == "gumbel_coupling" else "note"
    st.caption(words.CONTROLS[f"drafter_temperature.{note}"])
    return {"temperature": temperature, "drafter_temperature": free}


def _cuts(defaults: Mapping[str, Any], story: bool) -> tuple[int, float]:
    if story:
        return 0, 1.0
    with st.expander(words.CONTROLS["more"]):
        top_k = st.number_input(
            words.CONTROLS["top_k"], 0, 1_000, defaults["top_k"], key="top_k", bind=BOUND, help=words.CONTROLS["top_k.help"]
        )
        top_p = st.slider(
            words.CONTROLS["top_p"],
            0.05,
            1.0,
            float(defaults["top_p"]),
            step=0.05,
            key="top_p",
            bind=BOUND,
            help=words.CONTROLS["top_p.help"],
        )
    return int(top_k), float(top_p)


def _length(recording: Recording | None) -> int:
    limit = recording.trace.header.max_new_tokens if recording is not None else None
    return min(max(limit or 64, LENGTHS[0]), LENGTHS[1])


def _preset_of(recording: Recording | None) -> str:
    prompt = recording.trace.header.prompt if recording is not None else None
    return next((name for name, text in words.PRESETS.items() if text == prompt), words.RECORDED)


def _prompt(shown: Recording | None) -> str:
    preset = _preset_of(shown)
    options = [*words.PRESETS, words.OWN]
    if shown is not None and preset == words.RECORDED:
        options.insert(0, words.RECORDED)
    preset = preset if preset in options else options[0]
    chosen = st.selectbox(words.CONTROLS["prompt"], options, index=options.index(preset), key="prompt", bind=BOUND)
    if chosen == words.OWN:
        text = st.text_area(
            words.OWN_LABEL, key="own_text", max_chars=MAX_PROMPT, placeholder=words.OWN_PLACEHOLDER, persist_state="session"
        )
        return text.strip()[:MAX_PROMPT]
    if chosen == words.RECORDED and shown is not None:
        return shown.trace.header.prompt or ""
    prompt = words.PRESETS.get(chosen, "")
    st.caption(prompt)
    return prompt
