"""The settings in the sidebar: what the visitor wants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any, Final

import streamlit as st

from specviz.models import catalogue
from specviz.models.catalogue import EMBEDDED, PairSpec
from specviz.trace import UNSAID, Trace
from specviz.ui import recordings, words
from specviz.ui.recordings import Recording

LENGTHS = (4, 512)
RANGES: dict[str, tuple[Any, Any]] = {
    "gamma": (0, 16),
    "temperature": (0.0, 2.0),
    "drafter_temperature": (0.0, 2.0),
    "top_k": (0, 1_000),
    "top_p": (0.05, 1.0),
    "ngram": (1, 16),
    "length": LENGTHS,
    "seed": (0, 2**31 - 1),
}
"""What each number may be, from and to; whole where the ends are."""
SWITCHES = ("linked", "large")
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
    "ngram": UNSAID["ngram"],
}
PRICE = {"accelerator": "h100-sxm", "priced": "llama-3.1-8b+llama-3.2-1b", "count": "stored"}
"""What is priced, by the key of its control: the first accelerator and pair of :mod:`specviz.hardware`, which is not
imported before the first paint."""
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


@dataclass(frozen=True, slots=True)
class Refused:
    """A value in the address that its control does not take: what it takes, and what is used instead."""

    takes: str
    instead: str


def offered() -> Mapping[str, PairSpec]:
    """The pairs to choose from; those that ship where the list of others cannot be used."""
    try:
        return catalogue.pairs()
    except ValueError:
        return {spec.id: spec for spec in catalogue.SHIPPED}


def choices(shown: Recording | None) -> dict[str, dict[str, str]]:
    """Of each control with options, what it calls each of them: the address has the names."""
    default = defaults(shown)["prompt"]
    presets = {name: _preset(name) for name in words.PRESETS}
    return {
        "pair": _targets(offered()),
        "rule": words.RULES,
        "drafter": words.DRAFTERS,
        "detail": {name: name for name in words.DETAILS},
        **_prices(),
        "prompt": ({} if default in presets else {default: default}) | presets | {words.OWN: words.OWN},
    }


def _prices() -> dict[str, dict[str, str]]:
    from specviz.hardware.accelerators import ACCELERATORS
    from specviz.hardware.shapes import PRICED_PAIRS

    return {
        "accelerator": {one.id: one.name for one in ACCELERATORS.values()},
        "priced": {pair.id: pair.name for pair in PRICED_PAIRS.values()},
        "count": words.COUNTS,
    }


def price() -> dict[str, str]:
    """What the controls of the price say: accelerator, pair and count, by their keys."""
    return {key: st.session_state.get(key) or default for key, default in PRICE.items()}


def pricing() -> None:
    """Draw the controls of the price."""
    for key, names in _prices().items():
        st.selectbox(
            words.CONTROLS[key],
            list(names),
            index=list(names).index(PRICE[key]),
            format_func=names.__getitem__,
            key=key,
            bind=BOUND,
        )


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
        "drafter": settings["drafter"],
        "ngram": settings["ngram"],
        "prompt": preset if preset in words.PRESETS or shown is not None else next(iter(words.PRESETS)),
        "own_text": "",
        "detail": words.DETAILS[1],
        **PRICE,
    }


def read(shown: Recording | None) -> Wanted:
    """What the controls say now: a control that was not drawn yet says its default.

    Streamlit has put new values into the session's state before the script runs, so the page may draw its figures
    first and the controls last.
    """
    said = {key: st.session_state.get(key, default) for key, default in defaults(shown).items()}
    greedy = said["rule"] == "greedy"
    temperature = 0.0 if greedy else float(said["temperature"])
    drafter = _drafter_of(said["pair"], said["drafter"])
    settings = {
        "rule": said["rule"],
        "gamma": said["gamma"],
        "temperature": temperature,
        "drafter_temperature": temperature if greedy or said["linked"] else float(said["drafter_temperature"]),
        "top_k": int(said["top_k"]),
        "top_p": float(said["top_p"]),
        "seed": int(said["seed"]),
        "drafter": drafter,
        "ngram": int(said["ngram"]) if drafter == "ngram" else PLAIN["ngram"],
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
            [name for name in words.RULES if not wanted.story or name not in words.RARE_RULES or name == rule],
            default=default["rule"],
            required=True,
            format_func=words.RULES.__getitem__,
            key="rule",
            bind=BOUND,
        )
        st.caption(words.RULE_HELP[rule])
        _slider("gamma", default, help=words.CONTROLS["gamma.help"])
        _temperatures(rule, default, wanted)
        _slider("length", default, help=words.CONTROLS["length.help"])
        _number("seed", default)
        _prompt(shown, default)
        if not wanted.story:
            _more(default, wanted)


def show(pair_id: str, settings: Mapping[str, Any], prompt: str, length: int) -> None:
    """Set the controls to what a run was decoded with; to be called from a callback."""
    shown = recordings.first()
    for key, value in _said(pair_id, settings, prompt, length, shown).items():
        st.session_state[key] = value
    if st.session_state.prompt == words.OWN:
        st.session_state.own_text = prompt if prompt == prompt.strip()[:MAX_PROMPT] else ""


def address(pair_id: str, settings: Mapping[str, Any], prompt: str, length: int, detail: str) -> dict[str, str]:
    """The parameters of an address at which the controls stand so; those at their defaults are left out."""
    shown = recordings.first()
    default, names = defaults(shown), choices(shown)
    said = _said(pair_id, settings, prompt, length, shown) | {"detail": detail} | price()
    return {
        key: names[key].get(value, value) if key in names else _written(value)
        for key, value in said.items()
        if value != default[key]
    }


def taken(key: str, raw: str, shown: Recording | None) -> Any:
    """What the control ``key`` makes of ``raw`` in the address; :class:`Refused` where it takes no such thing."""
    default, names = defaults(shown).get(key, False), choices(shown).get(key)
    if names is not None:
        found = next((value for value, name in names.items() if name == raw), None)
        return Refused(words.LINK["not_offered"], names[default]) if found is None else found
    if key in SWITCHES:
        known = {"true": True, "false": False}
        return known.get(raw.lower(), Refused(words.LINK["switch"], _written(default)))
    return number(raw, RANGES[key], default)


def number(raw: str, allowed: tuple[Any, Any], default: float) -> Any:
    """What a control of numbers makes of ``raw``; the number is whole where the ends of what is ``allowed`` are."""
    low, high = allowed
    try:
        value = float(raw)
    except ValueError:
        value = float("nan")
    whole = isinstance(low, int)
    if isfinite(value) and low <= value <= high and not (whole and value % 1):
        return int(value) if whole else value
    takes = words.LINK["whole"] if whole else words.LINK["range"]
    return Refused(takes.format(low=low, high=high), _written(default))


def _written(value: float | bool) -> str:
    """A number or a switch as the address writes it."""
    return str(value).lower() if isinstance(value, bool | int) else f"{value:g}"


def fitting(settings: Mapping[str, Any] | None) -> dict[str, Any]:
    """The settings of a foreign record as far as the controls can show them."""
    fits = {}
    for name, plain in PLAIN.items():
        value = (settings or {}).get(name)
        if name in RANGES and type(value) in (int, float):
            fits[name] = plain if isinstance(known := taken(name, str(value), None), Refused) else known
        elif isinstance(value, str) and value in {"rule": words.RULES, "drafter": words.DRAFTERS}.get(name, ()):
            fits[name] = value
    both = {"temperature": 0.0, "drafter_temperature": 0.0} if fits.get("rule") == "greedy" else {}
    unused = {} if fits.get("drafter") == "ngram" else {"ngram": PLAIN["ngram"]}
    return PLAIN | fits | both | unused


def length_of(trace: Trace) -> int:
    """The length that the control shows for a run."""
    return min(max(trace.header.max_new_tokens or len(trace.text_ids), LENGTHS[0]), LENGTHS[1])


def lengthen(by: int) -> None:
    """Raise the length; to be called from a callback."""
    st.session_state.length = min(st.session_state.get("length", LENGTHS[0]) + by, LENGTHS[1])


def _said(
    pair_id: str, settings: Mapping[str, Any], prompt: str, length: int, shown: Recording | None
) -> dict[str, Any]:
    """The value of each control for such a run. Under greedy the temperatures are left as they are."""
    said = {name: settings[name] for name in PLAIN if name in settings and not name.endswith("temperature")}
    if settings.get("rule") != "greedy":
        linked = settings["temperature"] == settings["drafter_temperature"]
        said |= {"temperature": float(settings["temperature"]), "linked": linked}
        said |= {} if linked else {"drafter_temperature": float(settings["drafter_temperature"])}
    names = choices(shown)["prompt"]
    asked = shown.trace.header.prompt if shown is not None else None
    presets = {text: name for name, text in words.PRESETS.items()}
    preset = presets.get(prompt, words.RECORDED if prompt == asked and words.RECORDED in names else words.OWN)
    return said | {"pair": pair_id, "length": length, "prompt": preset}


def _drafter_of(pair_id: str, chosen: str) -> str:
    """Who drafts: a pair without a drafter model has another kind of its own."""
    spec = offered().get(pair_id)
    return spec.drafter if spec is not None and chosen == "model" and not spec.has_drafter_model else chosen


def _targets(pairs: Mapping[str, PairSpec]) -> dict[str, str]:
    """What to call each pair where there is little room: by its target, where no other pair has the same."""
    short = {pair_id: spec.name.partition(" with ")[0] for pair_id, spec in pairs.items()}
    return {
        pair_id: name if list(short.values()).count(name) == 1 else pairs[pair_id].name
        for pair_id, name in short.items()
    }


def _pair() -> None:
    pairs = offered()
    names = _targets(pairs)
    try:
        catalogue.pairs()
    except ValueError as error:
        st.warning(words.MESSAGES["pairs"].format(reason=words.literal(str(error))))
    chosen = st.selectbox(words.CONTROLS["pair"], list(pairs), format_func=names.__getitem__, key="pair", bind=BOUND)
    spec = pairs[chosen]
    st.caption(words.literal(f"{spec.name}: {spec.note}" if spec.note else spec.name))


def _slider(key: str, default: Mapping[str, Any], **options: Any) -> None:
    st.slider(words.CONTROLS[key], *RANGES[key], default[key], key=key, bind=BOUND, **options)


def _number(key: str, default: Mapping[str, Any], **options: Any) -> None:
    st.number_input(words.CONTROLS[key], *RANGES[key], default[key], key=key, bind=BOUND, **options)


def _temperatures(rule: str, default: Mapping[str, Any], wanted: Wanted) -> None:
    if rule == "greedy":
        st.slider(words.CONTROLS["temperature"], *RANGES["temperature"], 0.0, key="temperature_off", disabled=True)
        st.caption(words.CONTROLS["temperature.greedy"])
        return
    _slider("temperature", default, step=0.05)
    linked = st.session_state.get("linked", default["linked"])
    note = "zero" if wanted.settings["temperature"] == 0 else "linked" if linked else "free"
    st.caption(words.CONTROLS[f"temperature.{note}"])
    if wanted.story:
        return
    st.toggle(words.CONTROLS["linked"], default["linked"], key="linked", bind=BOUND)
    if not linked:
        _slider("drafter_temperature", default, step=0.05)
        st.caption(words.CONTROLS[f"drafter_temperature.{'gumbel' if rule == 'gumbel_coupling' else 'note'}"])


def _more(default: Mapping[str, Any], wanted: Wanted) -> None:
    spec = offered().get(wanted.pair_id)
    kinds = [name for name in words.DRAFTERS if name != "model" or spec is None or spec.has_drafter_model]
    with st.expander(words.CONTROLS["more"]):
        st.selectbox(
            words.CONTROLS["drafter"],
            kinds,
            index=kinds.index(_drafter_of(wanted.pair_id, default["drafter"])),
            format_func=words.DRAFTERS.__getitem__,
            key="drafter",
            bind=BOUND,
        )
        st.caption(words.DRAFTER_HELP[wanted.settings["drafter"]])
        if wanted.settings["drafter"] == "ngram":
            _number("ngram", default, help=words.CONTROLS["ngram.help"])
        _number("top_k", default, help=words.CONTROLS["top_k.help"])
        _slider("top_p", default, step=0.05, help=words.CONTROLS["top_p.help"])


def _length(recording: Recording | None) -> int:
    limit = recording.trace.header.max_new_tokens if recording is not None else None
    return min(max(limit or 64, LENGTHS[0]), LENGTHS[1])


def _preset(name: str) -> str:
    """A preset's name and how it begins."""
    return f"{name}: {' '.join(words.PRESETS[name].split()[:4]).rstrip('.,:')}…"


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


def _prompt(shown: Recording | None, default: Mapping[str, Any]) -> None:
    names = choices(shown)["prompt"]
    chosen = st.selectbox(
        words.CONTROLS["prompt"],
        list(names),
        index=list(names).index(default["prompt"]),
        format_func=names.__getitem__,
        key="prompt",
        bind=BOUND,
    )
    if chosen == words.OWN:
        # No max_chars: the browser would drop what is longer without a word.
        written = st.text_area(
            words.OWN_LABEL, key="own_text", placeholder=words.OWN_PLACEHOLDER, persist_state="session"
        )
        if len(written.strip()) > MAX_PROMPT:
            st.caption(words.OWN_CUT.format(length=len(written.strip())))
    elif chosen in words.PRESETS:
        st.caption(words.PRESETS[chosen])
