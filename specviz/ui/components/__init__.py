"""Our own elements in plain HTML, CSS and JavaScript: strip, coin, place, tally, badges.

Each is a thin wrapper: a layout from :mod:`specviz.figures` goes in as JSON, what the visitor did comes back as a
trigger. Whatever comes back is checked by whoever uses it. The sources lie beside this file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from specviz.figures import palette
from specviz.figures.coin import Coin
from specviz.figures.place import Place
from specviz.figures.rounds import Rounds
from specviz.figures.sentences import Spans
from specviz.figures.tallies import Tally
from specviz.figures.twin import Twin
from specviz.ui import words

if TYPE_CHECKING:
    from specviz.figures.exact import Exact  # and with it NumPy, which the first paint does without
    from specviz.figures.invariance import Invariance
    from specviz.figures.lanes import Lanes
    from specviz.figures.lines import Lines
    from specviz.figures.profile import Layout as ProfileLayout
    from specviz.figures.server import Judgement

_FOLDER = Path(__file__).parent


def source(name: str) -> str:
    """A file beside this one; empty where there is none."""
    path = _FOLDER / name
    return path.read_text(encoding="utf-8") if path.exists() else ""


def script(*names: str) -> str:
    """A component's JavaScript with the helpers that all share, and the fates' glyphs and words."""
    glyphs = {fate: sign.glyph for fate, sign in palette.FATES.items()}
    fates = {fate: sign.word for fate, sign in palette.FATES.items()}
    together = "".join(map(source, ("common.js", *names)))
    return together.replace("__GLYPHS__", json.dumps(glyphs)).replace("__WORDS__", json.dumps(fates))


def _component(name: str, *parts: str) -> Callable[..., Any]:
    """Register a component; what it returns mounts it with ``data`` as one JSON object.

    ``parts`` are styles and scripts that it shares with others, by their names.
    """
    names = (*parts, name)
    mount = st.components.v2.component(
        f"specviz_{name}",
        html=source(f"{name}.html"),
        css="\n".join((palette.css(), source("common.css"), *(source(f"{one}.css") for one in names))),
        js=script(*(f"{one}.js" for one in names)),
    )

    def mounted(*, data: dict[str, Any], **options: Any) -> Any:
        # A dictionary would be searched for data frames, which imports pandas: half a second of the first paint.
        return mount(data=(data,), **options)

    return mounted


_run_data, _strip, _coin, _tally, _badges = map(_component, ("run_data", "strip", "coin", "tally", "badges"))
_place = _component("place", "baseline")
_rounds = _component("rounds")


def run_data(run: str, chunks: Sequence[dict[str, Any]]) -> None:
    """Hand the layout of a run (:func:`specviz.figures.strip.layout`) to the page; it shows nothing itself."""
    for index, chunk in enumerate(chunks):
        _run_data(key=f"run_data_{index}", data={"run": run, "index": index, "of": len(chunks), "chunk": chunk})


def strip(
    *,
    run: str,
    rounds: int,
    moment: int,
    address: str,
    prompt: str,
    selected: tuple[int, int],
    pinned: bool,
    live_round: int | None,
    on_moved: Callable[[], None],
    on_stepped: Callable[[], None],
    on_picked: Callable[[], None],
    on_painted: Callable[[], None],
) -> None:
    """The strip with its scrubber and the sentence, at event ``moment`` of a run handed over by :func:`run_data`.

    ``address`` is that moment's in a link; the page's copy button takes it from here.

    The triggers stand in ``st.session_state.strip``: ``moved`` (an event's index), ``stepped`` (1 or −1), ``picked``
    ([round, place], place −1 for the closing token, or None) and ``painted`` (once).
    """
    _strip(
        key="strip",
        data={
            "run": run,
            "rounds": rounds,
            "moment": moment,
            "address": address,
            "prompt": prompt,
            "prompt_title": words.STRIP["prompt"],
            "selected": selected,
            "pinned": pinned,
            "live_round": live_round,
            "empty": ((words.STRIP["empty"], ""),),
            "words": words.STRIP,
        },
        on_moved_change=on_moved,
        on_stepped_change=on_stepped,
        on_picked_change=on_picked,
        on_painted_change=on_painted,
    )


def coin(
    layout: Coin,
    *,
    detail: str = words.DETAILS[1],
    answer: Spans = (),
    on_thrown: Callable[[], None] | None = None,
    on_asked: Callable[[], None] | None = None,
) -> None:
    """The coin panel; at the read, what each of its rows saw and answered.

    The triggers stand in ``st.session_state.coin``: ``thrown`` (a pin was let go: {round, place, coin, stays, changed},
    ``stays`` about that draft, ``changed`` whether any draft would have another fate) and ``asked`` (the round whose
    places are to be asked one at a time; ``answer`` is shown under the button).
    """
    _coin(
        key="coin",
        data=asdict(layout)
        | {
            "words": words.COIN,
            "story": detail == words.DETAILS[0],
            "formula": layout.formula if detail == words.DETAILS[2] else None,
            "answer": answer,
            "reports": on_thrown is not None,
            "asks": on_asked is not None,
        },
        on_thrown_change=on_thrown or _ignore,
        on_asked_change=on_asked or _ignore,
    )


def _ignore() -> None:
    """Nobody listens."""


def place(layout: Place, *, detail: str = words.DETAILS[1], badge: str = "") -> None:
    """The place: on one baseline, or in lanes.

    ``detail`` is how much is shown: Story writes numbers at the tokens it tells of only, Formulas adds the formula.
    ``badge`` says where the numbers come from, where not the whole page does.
    """
    _place(key="place", data=asdict(layout) | {"words": words.PLACE, "detail": detail, "badge": badge})


_bend = _component("bend", "baseline")


def bend(
    layout: Place,
    *,
    base: Mapping[str, Sequence[float]],
    warp: Mapping[str, Mapping[str, float]],
    end: float,
    sizes: tuple[int, int],
    names: Sequence[str],
    warped: bool,
    detail: str,
    badge: str,
    on_bent: Callable[[], None],
) -> None:
    """The place of two laws that are bent by hand; its trigger ``bent`` is {"p": chances, "q": chances}.

    ``base`` are the laws as bent, by "p" and "q", and ``warp`` what is then done to each (temperature, top_k, top_p);
    ``layout`` shows the result. ``end`` is where the scale ends, ``sizes`` the fewest and the most tokens, and
    ``names`` what so many are called. Where ``warped``, the result's numbers stand beside those that are bent.
    """
    fewest, most = sizes
    more = {"base": base, "warp": warp, "warped": warped, "end": end, "fewest": fewest, "most": most, "names": names}
    said = {"words": words.PLACE | words.BEND, "detail": detail, "badge": badge}
    _bend(key="bend", data=asdict(layout) | more | said, on_bent_change=on_bent)


_exact = _component("exact")


def exact(layout: Exact, *, detail: str, on_dealt: Callable[[], None]) -> None:
    """Why the text is exact, in frames; its trigger ``dealt`` (true) asks for the place to be dealt many times.

    ``detail`` is how much is shown: Story hides all numbers but the sizes, Formulas adds the formula.
    """
    _exact(key="exact", data=asdict(layout) | {"words": words.EXACT, "detail": detail}, on_dealt_change=on_dealt)


_lines = _component("lines")


def lines(layout: Lines, *, detail: str) -> None:
    """The lines that ran. ``detail`` is how much is shown: Story leaves out what the rule calls."""
    _lines(key="lines", data=asdict(layout) | {"words": words.LINES, "numbers": detail != words.DETAILS[0]})


def rules(layout: Exact, *, detail: str, badge: str) -> None:
    """One place under every rule, in frames; ``detail`` as in :func:`exact`, ``badge`` as in :func:`place`."""
    _exact(key="rules", data=asdict(layout) | {"words": words.EXACT, "detail": detail, "badge": badge})


_lanes = _component("lanes")


def lanes(layout: Lanes, *, detail: str) -> None:
    """Lanes, staircase and price; its state is the unit that is shown and the round that is pointed at.

    ``detail`` is how much is shown: Story leaves out the staircase, Formulas adds the formula.
    """
    _lanes(key="lanes", data=asdict(layout) | {"words": words.LANES, "detail": detail})


def tally(layout: Tally, *, title: str, twin: Twin | Spans = (), detail: str = "Numbers") -> None:
    """The tally and, under it, the twin: what it says, and both texts."""
    texts = twin if isinstance(twin, Twin) else None
    data = asdict(layout) | {
        "title": title,
        "twin": texts.sentence if texts is not None else twin,
        "texts": asdict(texts) if texts is not None else None,
        "words": words.TALLY,
    }
    _tally(key="tally", data=data if detail == "Formulas" else data | {"formula": None})


def rounds(layout: Rounds) -> None:
    """Every round as one sentence, and as a table."""
    _rounds(key="rounds", data=asdict(layout) | {"words": words.ROUNDS})


def badges(texts: Sequence[str], *, key: str) -> None:
    """Small labels that say where the numbers come from."""
    _badges(key=key, data={"badges": texts})


_card = _component("card")


def card(shown: Mapping[str, Any], *, on_turned: Callable[[], None]) -> None:
    """A card of the guided tour (:mod:`specviz.ui.cards`); its trigger ``turned`` is 1 (next) or 0 (close)."""
    _card(key="card", data=dict(shown), on_turned_change=on_turned)


_jump = _component("jump")


def jump(part: str, *, request: int, block: str = "nearest") -> None:
    """Bring the container with the key ``part`` into view, once for each new ``request``."""
    _jump(key="jump", data={"part": part, "request": request, "block": block})


_copy_link = _component("copy_link")


def copy_link(parameters: Mapping[str, str], *, moment: str, reason: str) -> None:
    """A button that copies this page's address with ``parameters`` and, as ``moment``, the address in the strip;
    disabled, and ``reason`` beside it, where there is one."""
    data = {"parameters": dict(parameters), "moment": moment, "reason": reason, "words": words.LINK}
    _copy_link(key="copy_link", data=data)


_download = _component("download")


def download(label: str, *, name: str, content: str | None, request: int, on_wanted: Callable[[], None]) -> None:
    """A button that saves a text as the file ``name``.

    Its trigger ``wanted`` asks for the ``content``; what comes with a new ``request`` is saved once.
    """
    data = {"label": label, "name": name, "content": content, "request": request}
    _download(key="download", data=data, on_wanted_change=on_wanted)


_profile, _judgement = map(_component, ("profile", "judgement"))


def profile(layout: ProfileLayout, *, origin: str, detail: str) -> None:
    """A measured machine. ``origin`` says in a word whether its clock ran here; ``detail`` is how much is shown: Story
    leaves out bars and tables, Formulas adds the formula."""
    said = words.PROFILE | {"measured": origin}
    data = asdict(layout) | {"words": said, "numbers": detail != words.DETAILS[0]}
    _profile(key="profile_figures", data=data if detail == words.DETAILS[2] else data | {"formula": None})


def judgement(layout: Judgement, *, detail: str) -> None:
    """What binds on somebody's server."""
    data = asdict(layout) | {"words": words.PROFILE, "alt": layout.told}
    data["end"] = words.PROFILE["end.over" if layout.share > 1 else "end"]
    _judgement(key="judgement", data=data if detail == words.DETAILS[2] else data | {"formula": None})


_grid = _component("grid")


def grid(layout: Invariance, *, detail: str, on_picked: Callable[[], None]) -> None:
    """Texts under many drafters, and two of them side by side; its trigger ``picked`` is the key of a text."""
    data = asdict(layout) | {"words": words.TEXTS, "story": detail == words.DETAILS[0]}
    _grid(key="grid_texts", data=data, on_picked_change=on_picked)
