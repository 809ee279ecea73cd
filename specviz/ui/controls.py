"""The settings in the sidebar: what the visitor wants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import streamlit as st

from specviz.models import catalogue
from specviz.models.catalogue import EMBEDDED, PairSpec
from specviz.ui import words
from specviz.ui.recordings import Recording

MAX_GAMMA = 16
MAX_TEMPERATURE = 2.0
LENGTHS = (4, 512)
MAX_TOP_K = 1_000
MAX_PROMPT = 2_000
"""Characters of an own text."""
PLAIN: dict[str, Any] = {
    "rule": "speculative_sampling",
    "gamma": 4,
    "temperature": 1.0,
    "drafter_temperature": 1.0,
    "top_k": 0,
    "top_p": 1.0,
    "seed": 0,
    "drafter": "model",
}
BOUND: Final = "query-params"
"""Widgets that are part of the page's address."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the controls say. ``settings`` has the keys of a round's record; ``prompt`` may be empty (own text)."""

    pair_id: str
    settings: Mapping[str, Any]
    prompt: str
    length: int
    detail: str

    @property
    def story(self) -> bool:
        """Whether only the story is told."""
        return self.detail == "Story"


def defaults(shown: Recording | None) -> dict[str, Any]:
    """Every control's default by its key: the settings of the recording that opens the page."""
    settings = PLAIN | dict(shown.settings if shown is not None else {})
    preset = _preset_of(shown)
    return {
        "pair": EMBEDDED,
        "rule": settings["rule"],
        "gamma": settings["gamma"],
        # Under greedy both are 0, which the sliders show by being off.
        "temperature": float(settings["temperature"]) or PLAIN["temperature"],
        "linked": settings["temperature"] == settings["drafter_temperature"],
        "drafter_temperature": float(settings["drafter_temperature"]) or PLAIN["temperature"],
        "top_k": settings["top_k"],
        "top_p": float(settings["top_p"]),
        "length": _length(shown),
        "seed": settings["seed"],
        "prompt": preset if preset in words.PRESETS or shown is not None else next(iter(words.PRESETS)),
        "own_text": "",
        "detail": words.DETAILS[1],
    }


def read(shown: Recording | None) -> Wanted:
    """What the controls say now: a control that was not drawn yet says its default.

    Streamlit has put new values into the session's state before the script runs, so the page may draw its figures
    first and the controls last.
    """
    said = {key: st.session_state.get(key, default) for key, default in defaults(shown).items()}
    greedy, linked = said["rule"] == "greedy", said["linked"] or said["detail"] == "Story"
    temperature = 0.0 if greedy else float(said["temperature"])
    settings = {
        "rule": said["rule"],
        "gamma": said["gamma"],
        "temperature": temperature,
        "drafter_temperature": temperature if greedy or linked else float(said["drafter_temperature"]),
        "top_k": int(said["top_k"]),
        "top_p": float(said["top_p"]),
        "seed": int(said["seed"]),
        "drafter": "model",
    }
    return Wanted(said["pair"], settings, _asked(said, shown), said["length"], said["detail"])


def sidebar(shown: Recording | None, wanted: Wanted) -> None:
    """Draw the controls."""
    default = defaults(shown)
    rule = wanted.settings["rule"]
    with st.sidebar:
        _pair()
        st.pills(
            words.CONTROLS["rule"],
            list(words.RULES),
            default=default["rule"],
            required=True,
            format_func=words.RULES.__getitem__,
            key="rule",
            bind=BOUND,
        )
        st.caption(words.RULE_HELP[rule])
        _slider("gamma", default, 0, MAX_GAMMA, help=words.CONTROLS["gamma.help"])
        _temperatures(rule, default, wanted)
        _slider("length", default, *LENGTHS, help=words.CONTROLS["length.help"])
        st.number_input(words.CONTROLS["seed"], 0, 2**31 - 1, default["seed"], key="seed", bind=BOUND)
        _prompt(shown, default, wanted)
        if not wanted.story:
            _cuts(default)


def show(recording: Recording) -> None:
    """Set the controls to a recording's settings; to be called from a callback."""
    for key, value in defaults(recording).items():
        if key not in ("own_text", "detail"):
            st.session_state[key] = value


def lengthen(by: int) -> None:
    """Raise the length; to be called from a callback."""
    st.session_state.length = min(st.session_state.get("length", LENGTHS[0]) + by, LENGTHS[1])


def _pair() -> None:
    try:
        pairs: Mapping[str, PairSpec] = catalogue.pairs()
    except ValueError as error:
        st.warning(words.MESSAGES["pairs"].format(reason=error))
        pairs = {spec.id: spec for spec in catalogue.SHIPPED}
    st.selectbox(
        words.CONTROLS["pair"], list(pairs), format_func=lambda pair_id: pairs[pair_id].name, key="pair", bind=BOUND
    )


def _slider(key: str, default: Mapping[str, Any], low: Any, high: Any, **options: Any) -> None:
    st.slider(words.CONTROLS[key], low, high, default[key], key=key, bind=BOUND, **options)


def _temperatures(rule: str, default: Mapping[str, Any], wanted: Wanted) -> None:
    greedy = rule == "greedy"
    _slider("temperature", default, 0.0, MAX_TEMPERATURE, step=0.05, disabled=greedy)
    linked = wanted.story or st.session_state.get("linked", default["linked"])
    zero = wanted.settings["temperature"] == 0
    note = "greedy" if greedy else "zero" if zero else "linked" if linked else "free"
    st.caption(words.CONTROLS[f"temperature.{note}"])
    if greedy or wanted.story:
        return
    st.toggle(words.CONTROLS["linked"], default["linked"], key="linked", bind=BOUND)
    if not linked:
        _slider("drafter_temperature", default, 0.0, MAX_TEMPERATURE, step=0.05)
        st.caption(words.CONTROLS[f"drafter_temperature.{'gumbel' if rule == 'gumbel_coupling' else 'note'}"])


def _cuts(default: Mapping[str, Any]) -> None:
    with st.expander(words.CONTROLS["more"]):
        st.number_input(
            words.CONTROLS["top_k"],
            0,
            MAX_TOP_K,
            default["top_k"],
            key="top_k",
            bind=BOUND,
            help=words.CONTROLS["top_k.help"],
        )
        _slider("top_p", default, 0.05, 1.0, step=0.05, help=words.CONTROLS["top_p.help"])


def _length(recording: Recording | None) -> int:
    limit = recording.trace.header.max_new_tokens if recording is not None else None
    return min(max(limit or 64, LENGTHS[0]), LENGTHS[1])


def _preset_of(recording: Recording | None) -> str:
    """The preset with the recording's prompt, else the recording itself."""
    prompt = recording.trace.header.prompt if recording is not None else None
    return next((name for name, text in words.PRESETS.items() if text == prompt), words.RECORDED)


def _asked(said: Mapping[str, Any], shown: Recording | None) -> str:
    if said["prompt"] == words.OWN:
        return str(said["own_text"]).strip()[:MAX_PROMPT]
    if said["prompt"] == words.RECORDED and shown is not None:
        return shown.trace.header.prompt or ""
    return words.PRESETS.get(said["prompt"], "")


def _prompt(shown: Recording | None, default: Mapping[str, Any], wanted: Wanted) -> None:
    options = [*words.PRESETS, words.OWN]
    if default["prompt"] not in options:
        options.insert(0, default["prompt"])
    chosen = st.selectbox(
        words.CONTROLS["prompt"], options, index=options.index(default["prompt"]), key="prompt", bind=BOUND
    )
    if chosen == words.OWN:
        st.text_area(
            words.OWN_LABEL,
            key="own_text",
            max_chars=MAX_PROMPT,
            placeholder=words.OWN_PLACEHOLDER,
            persist_state="session",
        )
    elif chosen in words.PRESETS:
        st.caption(words.PRESETS[chosen])
