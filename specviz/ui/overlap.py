"""The Overlap page: what two models want at one place, bent by hand or taken from a run, under every rule.

What is bent stands in two lists of numbers, which are part of the address; dragging writes into them as typing does.
The page itself writes what is shown into the address, all at once: a press is one entry of the browser's history.
"""

from __future__ import annotations

import math
import string
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from specviz import losslessness
from specviz.figures import overlap as figures
from specviz.figures import palette
from specviz.figures.sentences import Spans, fill
from specviz.figures.text import visible
from specviz.probability import Array, warp
from specviz.ui import bench, components, controls, frame, positions, sharing, words
from specviz.ui.controls import BOUND, Refused
from specviz.ui.overlap_scene import Scene
from specviz.ui.positions import Choice, Laws
from specviz.ui.session import Run

MODELS = ("p", "q")
RANGES: dict[str, tuple[Any, Any]] = {
    "p_temperature": controls.RANGES["temperature"],
    "q_temperature": controls.RANGES["temperature"],
    "pq_top_k": controls.RANGES["top_k"],
    "pq_top_p": controls.RANGES["top_p"],
}
PLAIN: dict[str, Any] = {"p_temperature": 1.0, "q_temperature": 1.0, "pq_top_k": 0, "pq_top_p": 1.0}
SETTING = {
    "p_temperature": "temperature",
    "q_temperature": "drafter_temperature",
    "pq_top_k": "top_k",
    "pq_top_p": "top_p",
}
"""What a run's settings call them."""
RARE = ("q_temperature", "pq_top_k", "pq_top_p")
RARE_ENTRANTS = (*words.RARE_RULES, "match_then_redraw")
"""What Story leaves out."""
SWITCHES = ("wrong_drafts",)
FROM, PLACE = "pq_from", "place"
"""The parameters of a link that say where the two are from and name a place of the run, by its position."""
RUN, HAND = words.OVERLAP["sources"].values()
NAMES = tuple(string.ascii_lowercase[: figures.MOST])
DIGITS = 15
"""As many as a law comes back the same with, and not so many that rounding is seen."""
LONGEST_QUOTE = 40
SCALED = 1e-4
"""A list that adds up to 1 but for so much is none that is scaled."""


@dataclass(frozen=True, slots=True)
class Frozen:
    """A place before any temperature: logits (vocab,), what its tokens are called, and where it is from."""

    logits: tuple[Array, Array]
    called: Callable[[int], str]
    badge: str
    key: str
    label: str = ""
    told: str = ""
    laws: Laws | None = None


def listed(law: tuple[float, ...] | list[float]) -> str:
    """A law as the address writes it."""
    return ", ".join(f"{chance:.{DIGITS}g}" for chance in law)


def weights(text: str) -> tuple[float, ...]:
    """The numbers of a list, scaled so that the largest is 1.

    Raises:
        ValueError: not 2 to 12 numbers, or one of them is below 0 or no number, or all are 0.
    """
    numbers = _numbers(text)
    largest = max(numbers, default=0.0)
    usable = all(math.isfinite(number) and number >= 0 for number in numbers)
    if not (figures.FEWEST <= len(numbers) <= figures.MOST and usable and largest > 0):
        raise ValueError(words.OVERLAP["list.takes"])
    return tuple(number / largest for number in numbers)


def _numbers(text: str) -> list[float]:
    return [float(part) for part in text.replace(",", " ").replace(";", " ").split()]


# --- heading and address ----------------------------------------------------------------------------------------------


def heading(place: Frozen) -> None:
    """The page's heading, what its link and its lists could not have, and how much is shown."""
    origins = dict.fromkeys((place.badge, words.OVERLAP["modelled"]))
    with frame.heading("Overlap", words.OVERLAP["lead"], lambda: frame.badges(list(origins))):
        pass
    for said in (st.session_state.overlap_refused, *_unusable()):
        if said:
            st.warning(words.literal(said))
    frame.detail()


def arrival() -> None:
    """The first thing on the page, before any control is drawn: controls put their defaults in the address."""
    if "overlap_refused" not in st.session_state:
        _arrive()
    elif frame.went_back():
        _return()
    _remember()


def _arrive() -> None:
    """Take what the address asks for, once. What no control takes leaves it, and so do empty values; the page then
    starts anew, for controls are seeded from the address that a run began with."""
    asked = {key: raw for key, raw in st.query_params.items() if key in _known()}
    heard = {key: _taken(key, raw) for key, raw in asked.items() if raw}
    refused = {key: (asked[key], value) for key, value in heard.items() if isinstance(value, Refused)}
    good = {key: value for key, value in heard.items() if key not in refused}
    if "preset" in good:
        for model, law in zip(MODELS, figures.PRESETS[good["preset"]], strict=True):
            good.setdefault(model, listed(law))
    _take_over(good)
    said = any(key in good for key in RANGES)
    st.session_state.overlap_own = not said  # a run's place comes with the run's settings, unless the link has its own
    st.session_state.overlap_refused = sharing.refusal(
        {words.OVERLAP.get(key, key): pair for key, pair in refused.items()}
    )
    gone = [key for key in asked if key in refused or not asked[key] or key == "preset"]
    for key in gone:
        del st.query_params[key]
    if gone:
        st.rerun()


def _return() -> None:
    """Show what an address of before says: what it leaves out is at its default."""
    heard = {key: _taken(key, raw) for key, raw in st.query_params.items() if key in _known() and raw}
    good = {key: value for key, value in heard.items() if not isinstance(value, Refused)}
    usual = dict.fromkeys(SWITCHES, False) | {model: listed(_default(model)) for model in MODELS}
    _take_over(usual | PLAIN | {"detail": words.DETAILS[1], FROM: _from(good), PLACE: None} | good)
    st.session_state.overlap_own, st.session_state.overlap_refused = False, ""


def _take_over(good: dict[str, Any]) -> None:
    """Have the page as ``good`` says; also what is drawn after it is needed."""
    _type({model: good[model] for model in MODELS if model in good})
    keys = (*RANGES, *SWITCHES, "detail")
    st.session_state.update({key: value for key, value in good.items() if key in keys})
    st.session_state.overlap_from = _from(good)
    st.session_state.overlap_place = good.get(PLACE)


def _from(good: dict[str, Any]) -> str:
    """Where the two are from, also where the address does not say."""
    return str(good.get(FROM, HAND if any(model in good for model in MODELS) else _sources()[0]))


def _write(shown: dict[str, str], usual: dict[str, str]) -> None:
    """Have the address say what is shown; what is as usual is left out until it was something else."""
    said = st.query_params
    changed = {key: text for key, text in shown.items() if said.get(key, usual.get(key)) != text}
    if changed:
        said.update(changed)


def _known() -> tuple[str, ...]:
    return (*MODELS, *RANGES, *SWITCHES, *bench.KEYS, "preset", FROM, PLACE, "detail")


def _taken(key: str, raw: str) -> Any:
    """What the page makes of a parameter; :class:`Refused` where it takes no such thing."""
    if key in MODELS:
        try:
            weights(raw)
        except ValueError:
            return Refused(words.OVERLAP["list.takes"], listed(_default(key)))
        return raw
    if key in RANGES:
        return controls.number(raw, RANGES[key], PLAIN[key])
    if key == PLACE:
        places = {choice.position: choice for choice in _choices()}
        found = next((place for place in places if str(place) == raw), None)
        instead = str(_usual(places)) if places else words.OVERLAP["place.none"]
        return Refused(words.OVERLAP["place.takes"], instead) if found is None else found
    if key in bench.KEYS:
        return bench.taken(key, raw)
    if key in SWITCHES:
        return {"true": True, "false": False}.get(raw.lower(), Refused(words.LINK["switch"], "false"))
    offered = {"preset": tuple(figures.PRESETS), FROM: (RUN, HAND), "detail": words.DETAILS}[key]
    instead = {"preset": "default", FROM: _sources()[0], "detail": words.DETAILS[1]}[key]
    return raw if raw in offered else Refused(words.LINK["not_offered"], instead)


def _default(model: str) -> tuple[float, ...]:
    return figures.PRESETS["default"][MODELS.index(model)]


def _typed() -> dict[str, str]:
    """Both lists as typed, whether they can be used or not; a box forgets where it is not drawn."""
    typed: dict[str, str] = st.session_state.setdefault("overlap_typed", {m: listed(_default(m)) for m in MODELS})
    return typed


def _type(lists: dict[str, str]) -> None:
    st.session_state.overlap_typed = _typed() | lists


def _remember() -> None:
    """Keep the last list of each model that can be used."""
    good = st.session_state.setdefault("overlap_good", {model: listed(_default(model)) for model in MODELS})
    for model, text in _typed().items():
        try:
            weights(text)
        except ValueError:
            continue
        good[model] = text


def _unusable() -> list[str]:
    """Of each list as typed that cannot be used: a sentence."""
    good = st.session_state.overlap_good
    return [
        words.OVERLAP["list.refused"].format(
            model=words.OVERLAP[model],
            raw=visible(text[:LONGEST_QUOTE]) + "…" * (len(text) > LONGEST_QUOTE),
            takes=words.OVERLAP["list.takes"],
            instead=good[model],
        )
        for model, text in _typed().items()
        if text != good[model]
    ]


# --- controls ---------------------------------------------------------------------------------------------------------


def _choices() -> tuple[Choice, ...]:
    """The places of the current run."""
    run = positions.current_run()
    if run is None:
        return ()
    kept = st.session_state.get("overlap_choices")
    if kept is None or kept[0] is not run.trace:
        kept = st.session_state.overlap_choices = run.trace, positions.choices(run)
    return kept[1]


def _sources() -> tuple[str, ...]:
    """Where the two may come from, the usual first: something real, where there is something."""
    return (RUN, HAND) if any(choice.instant for choice in _choices()) else (HAND, RUN)


def sidebar(place: Frozen) -> None:
    """The controls of what is done to both models' chances."""
    story = _detail() == words.DETAILS[0]
    with st.sidebar:
        for key in RANGES:
            # A story is told without them, unless they have a part in it.
            if story and key in RARE and _warp()[key] == PLAIN[key]:
                continue
            if isinstance(PLAIN[key], int):
                st.number_input(words.OVERLAP[key], *RANGES[key], PLAIN[key], key=key, bind=BOUND)
            else:
                st.slider(words.OVERLAP[key], *RANGES[key], PLAIN[key], step=0.05, key=key, bind=BOUND)
            if f"{key}.note" in words.OVERLAP:
                st.caption(words.OVERLAP[f"{key}.note"])
        if place.laws is not None and _warp() != _of_run(place.laws):
            st.button(words.OVERLAP["own.button"], key="own_settings", on_click=_take_own)
        if place.laws is None:
            st.caption(words.OVERLAP["lists"], help=words.OVERLAP["list.help"])
            for model in MODELS:
                st.session_state[model] = _typed()[model]
                st.text_input(words.OVERLAP[model], key=model, on_change=_box, args=(model,))


def _box(model: str) -> None:
    _type({model: st.session_state[model]})


def _warp() -> dict[str, Any]:
    """What the controls say; a number that is missing or out of range counts as its default."""
    said = {key: st.session_state.get(key, plain) for key, plain in PLAIN.items()}
    return {
        key: value if isinstance(value, int | float) and RANGES[key][0] <= value <= RANGES[key][1] else PLAIN[key]
        for key, value in said.items()
    }


def _of_run(laws: Laws) -> dict[str, Any]:
    """The run's own settings, by the controls' keys and as far as these go."""
    own = controls.fitting(laws.settings)
    return {key: type(PLAIN[key])(own[name]) for key, name in SETTING.items()}


def _take_own() -> None:
    st.session_state.overlap_own = True


def source() -> Frozen:
    """Draw what the two come from; the place that is frozen."""
    with st.container(horizontal=True, vertical_alignment="center", key="overlap_source"):
        place = _source()
    shown, usual = {FROM: st.session_state.overlap_from}, {FROM: _sources()[0]}
    if place.laws is None:
        shown |= st.session_state.overlap_good
        usual |= {model: listed(_default(model)) for model in MODELS}
    if st.session_state.overlap_place is not None:  # also while the two are bent: it is what the run comes back to
        shown[PLACE] = str(st.session_state.overlap_place)
    _write(shown, usual)
    return place


def _source() -> Frozen:
    st.session_state.pq_from = st.session_state.overlap_from
    chosen = st.segmented_control(
        words.OVERLAP["source"],
        _sources(),
        required=True,
        key="pq_from",
        on_change=_from_elsewhere,
        label_visibility="collapsed",
        width="content",
    )
    run = positions.current_run()
    if chosen == RUN and run is not None and _choices():
        found = _of_places(run)
        if found is not None:
            return found
    elif chosen == RUN:
        st.text(words.OVERLAP["no_run"])
    return _by_hand()


def _from_elsewhere() -> None:
    st.session_state.overlap_from = st.session_state.pq_from


def _by_hand() -> Frozen:
    good = st.session_state.overlap_good
    laws = [weights(good[model]) for model in MODELS]
    matching = next((name for name, pair in figures.PRESETS.items() if tuple(map(listed, pair)) == _good()), None)
    st.session_state.overlap_preset = matching
    st.pills(
        words.OVERLAP["preset"],
        list(figures.PRESETS),
        format_func=lambda name: words.OVERLAP["presets"].get(name, name),
        key="overlap_preset",
        wrap=True,
        on_change=_set_preset,
        label_visibility="collapsed",
    )
    size = max(map(len, laws))
    logits = []
    for law in laws:
        filled = np.array([*law, *(0.0,) * (size - len(law))])
        logits.append(np.log(filled, where=filled > 0, out=np.full(size, -math.inf)))
    return Frozen((logits[0], logits[1]), NAMES.__getitem__, words.OVERLAP["modelled"], f"hand {_good()}")


def _good() -> tuple[str, ...]:
    return tuple(st.session_state.overlap_good[model] for model in MODELS)


def _set_preset() -> None:
    chosen = st.session_state.overlap_preset
    if chosen in figures.PRESETS:
        _type({model: listed(law) for model, law in zip(MODELS, figures.PRESETS[chosen], strict=True)})


def heard(told: Any) -> dict[str, str] | None:
    """Both lists as the picture says they were bent; None where it says no such thing."""
    try:
        p, q = ([float(chance) for chance in told[model]] for model in MODELS)
        # What was bent alike is alike, whatever rounding made of it.
        q = [one if abs(one - other) < figures.ROUNDING else other for one, other in zip(p, q, strict=True)]
        for law in (p, q):
            weights(listed(law))
    except (TypeError, KeyError, ValueError):
        return None
    return {"p": listed(p), "q": listed(q)}


def _bent() -> None:
    _type(heard(st.session_state.bend.bent) or {})


def _of_places(run: Run) -> Frozen | None:
    """Draw the places of the run; the one that is taken, None where none can be."""
    choices = {choice.position: choice for choice in _choices()}
    chosen = _chosen(run, choices)
    shown = chosen
    if not choices[chosen].instant and st.session_state.get("overlap_asked") != (run.trace.header, chosen):
        shown = st.session_state.get("overlap_shown", next((at for at in choices if choices[at].instant), None))
        _offer(run, choices[chosen], choices.get(shown))
        if shown not in choices:
            return None
    laws = positions.take(run, shown)
    if isinstance(laws, str) or laws.drafter_logits is None:
        st.warning(words.literal(laws if isinstance(laws, str) else words.OVERLAP["unread"]))
        return None
    st.session_state.overlap_shown = shown
    if st.session_state.pop("overlap_own", False):
        st.session_state.update(_of_run(laws))
    return Frozen(
        (np.asarray(laws.target_logits), np.asarray(laws.drafter_logits)),
        laws.texts,
        laws.badge if _warp() == _of_run(laws) else words.OVERLAP["modelled"],
        f"run {run.trace.header.created} {shown}",
        choices[shown].label,
        choices[shown].told,
        laws,
    )


def _chosen(run: Run, choices: dict[int, Choice]) -> int:
    """Draw the lists of places; the position of the one that is wanted."""
    quick = [position for position, choice in choices.items() if choice.instant]
    usual = _usual(choices)
    chosen = st.session_state.overlap_place
    if chosen not in choices:
        chosen = usual
    st.session_state.update(quick_place=chosen if chosen in quick else None, any_place=chosen)
    if quick:
        st.pills(
            words.OVERLAP["place"],
            quick,
            format_func=lambda position: _short(choices[position]),
            key="quick_place",
            wrap=True,
            on_change=_choose,
            args=("quick_place",),
            label_visibility="collapsed",
        )
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="places"):
        st.selectbox(
            words.OVERLAP["other"],
            list(choices),
            format_func=lambda position: choices[position].label,
            key="any_place",
            on_change=_choose,
            args=("any_place",),
            label_visibility="collapsed",
            width=340,
        )
        focus = positions.in_focus(run)
        if focus in choices and focus != chosen:
            label = words.OVERLAP["focus"].format(number=_number(choices[focus]))
            st.button(label, key="focus", on_click=_take, args=(focus,))
        # Only a visitor who was there has a cursor to put.
        if "decode" in st.session_state and st.button(words.OVERLAP["decode"], key="decode_place", type="tertiary"):
            positions.point(run, chosen)
            st.switch_page(words.PAGES["Decode"])
    return chosen


def _offer(run: Run, choice: Choice, shown: Choice | None) -> None:
    """The button that asks the models for a place, and why it cannot or what is ``shown`` until then."""
    reason = positions.unavailable(run)
    st.button(
        words.OVERLAP["ask"].format(position=_number(choice)),
        key="ask",
        disabled=bool(reason),
        help=words.OVERLAP["ask.help"],
        on_click=_ask,
        args=(run.trace.header, choice.position),
    )
    until = words.OVERLAP["unasked"].format(asked=_number(choice), shown=_number(shown)) if shown else ""
    st.text(reason or until)


def _usual(choices: dict[int, Choice]) -> int:
    """The place to begin with: of those at hand the first where a draft died."""
    at_hand = [position for position, choice in choices.items() if choice.instant] or list(choices)
    died = words.POSITIONS["rejected"]
    return next((position for position in at_hand if _fate(choices[position]) == died), at_hand[0])


def _number(choice: Choice) -> str:
    return choice.label.partition(" · ")[0]


def _fate(choice: Choice) -> str:
    return choice.label.rpartition(" · ")[2]


def _short(choice: Choice) -> str:
    """Its number and what happened there."""
    glyph = next((fate.glyph for fate in palette.FATES.values() if fate.word == _fate(choice)), "")
    return f"{_number(choice)} {glyph} {_fate(choice)}"


def _choose(key: str) -> None:
    if st.session_state[key] is not None:
        st.session_state.overlap_place = st.session_state[key]


def _take(position: int) -> None:
    st.session_state.overlap_place = position


def _ask(header: Any, position: int) -> None:
    st.session_state.overlap_asked = header, position


# --- panels -----------------------------------------------------------------------------------------------------------


def _detail() -> str:
    return st.session_state.get("detail") or words.DETAILS[1]


def panels(place: Frozen) -> Scene:
    """The picture, its facts and every rule; what the bench below goes on with."""
    said, detail = _warp(), _detail()
    both = {"top_k": said["pq_top_k"], "top_p": said["pq_top_p"]}
    p = warp(place.logits[0], said["p_temperature"], **both)
    q = warp(place.logits[1], said["q_temperature"], **both)
    hand = place.laws is None
    ids = tuple(range(len(p))) if hand else figures.likeliest(p, q, figures.ROWS)
    with st.container(border=True, key="card_bend"):
        left, right = st.columns([3, 2], gap="medium")
        with left:
            _picture(place, p, q, ids, said, detail)
        with right:
            _facts(p, q, detail)
    every = _entrants(place, said, both)
    few = ids if hand else figures.likeliest(p, q, figures.COLUMNS)
    with st.container(border=True, key="card_rules"):
        above = st.container()
        lies = st.toggle(words.OVERLAP["wrong_drafts"], key="wrong_drafts", bind=BOUND)
        story = detail == words.DETAILS[0]
        shown = [
            one
            for one in every
            if (lies or not figures.is_wrong_draft(one)) and not (story and one.name in RARE_ENTRANTS)
        ]
        names = {one.name: (words.ENTRANTS[one.name], words.OVERLAP["hints"][one.name]) for one in shown}
        called = [place.called(i) for i in few]
        with above:
            settings = {SETTING[key]: value for key, value in said.items()}
            change = partial(figures.change, logits=place.logits, settings=settings, by_hand=hand)
            layout = figures.rules(shown, few, called, names, change=change, story=story)
            components.rules(layout, detail=detail, badge="modelled")
            if story:
                st.caption(
                    words.OVERLAP["story"].format(names=" · ".join(words.ENTRANTS[one] for one in RARE_ENTRANTS))
                )
    return Scene(
        entrants=tuple(shown),
        labels=tuple(place.called(i) for i in ids),
        shown=ids,
        p=p,
        q=q,
        by_hand=hand,
        badge=place.badge,
        key=f"{place.key} {sorted(said.items())}",
        detail=detail,
    )


def _entrants(place: Frozen, said: dict[str, Any], both: dict[str, Any]) -> tuple[losslessness.Entrant, ...]:
    """Everything on trial here; kept, because each works out its chances once."""
    key = place.key, tuple(said.items())
    kept = st.session_state.get("overlap_entrants")
    if kept is None or kept[0] != key:
        made = losslessness.entrants(
            *place.logits, temperature=said["p_temperature"], drafter_temperature=said["q_temperature"], **both
        )
        kept = st.session_state.overlap_entrants = key, made
    return kept[1]


def _picture(place: Frozen, p: Array, q: Array, ids: tuple[int, ...], said: dict[str, Any], detail: str) -> None:
    if place.laws is not None:
        title = words.OVERLAP["title.run"].format(label=place.label)
        note: Spans = ((f"{place.told} ", ""), *fill(words.OVERLAP["note.run"], count=f"{len(p):,}"))
        note += fill(words.OVERLAP.get(f"note.{place.laws.settings['drafter']}", ""))
        story = detail == words.DETAILS[0]
        layout = figures.picture(p, q, ids, place.called, title=title, note=note, story=story)
        components.place(layout, detail=detail, badge=place.badge)
        return
    note = fill(words.OVERLAP["note.hand" if said == PLAIN else "note.warped"])
    for model, text in st.session_state.overlap_good.items():
        if abs(sum(_numbers(text)) - 1) > SCALED:
            note += fill(words.OVERLAP["scaled"], model=model)
    base = {model: _law(logits) for model, logits in zip(MODELS, place.logits, strict=True)}
    components.bend(
        figures.picture(p, q, ids, place.called, title=words.OVERLAP["title.hand"], note=note),
        base=base,
        warp={
            model: {"temperature": said[f"{model}_temperature"], "top_k": said["pq_top_k"], "top_p": said["pq_top_p"]}
            for model in MODELS
        },
        end=figures.scale(p, q, *base.values()),
        sizes=(figures.FEWEST, figures.MOST),
        names=NAMES,
        warped=said != PLAIN,
        detail=detail,
        badge=place.badge,
        on_bent=_bent,
    )


def _law(logits: Array) -> list[float]:
    return [float(chance) for chance in warp(logits, 1.0)]


def _facts(p: Array, q: Array, detail: str) -> None:
    facts = figures.facts(p, q)
    st.markdown("".join(f"**{words.literal(text)}**" if kind else words.literal(text) for text, kind in facts.story))
    if detail != words.DETAILS[0]:
        st.text("\n".join(facts.numbers))
    if detail == words.DETAILS[2]:
        st.code(facts.formula, language=None, wrap_lines=True)
