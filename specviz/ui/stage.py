"""The stage: everything that moves when the cursor does, and the panels' own controls."""

from __future__ import annotations

from typing import Any

import streamlit as st

from specviz.figures import coin, place, rounds, tallies, twin
from specviz.figures.events import Event
from specviz.figures.tallies import Tally
from specviz.figures.text import Texts, visible
from specviz.figures.twin import Twin
from specviz.trace import Round, Trace
from specviz.ui import cards, components, imports, recordings, session, sharing, transport, words
from specviz.ui.controls import Wanted
from specviz.ui.extras import extras
from specviz.ui.loader import loader, preloads
from specviz.ui.session import Run
from specviz.ui.work import work

PERIOD_S = 1.0
"""Between two events while playing, at speed 1."""
QUICKEST_S = 0.25
"""Asked to draw more often than this, a stage keeps the session from everything else."""


def stage(wanted: Wanted) -> None:
    """Strip, sentence, card and panels; a fragment that moves by itself while playing."""
    period = max(QUICKEST_S, PERIOD_S / transport.speed())
    # Importing the models holds the interpreter for seconds, in which ticks would pile up; the badges watch that.
    reaching = session.state().bound and loader().pair(session.pair_id()) is not None
    moving = session.state().playing or reaching
    st.fragment(_stage, key="stage", run_every=period if moving else None)(wanted)


def _stage(wanted: Wanted) -> None:
    now = session.state()
    before = _outside()
    if now.playing:
        session.play(story=wanted.story)
    else:
        session.reach(story=wanted.story)
    slot = st.empty()
    work(wanted, slot)
    if now.said:
        slot.warning(now.said)
    cards.follow(now.run, lambda run: slower(run, wanted))
    _draw(now.run, wanted)
    if now.painted:
        now.painted = False
        st.rerun()
    if before != _outside():
        st.rerun()


def _outside() -> tuple[object, ...]:
    """What stands outside the stage and has to be drawn again when it changes."""
    now = session.state()
    return now.playing, bool(now.bound), session.origin(now.run), now.run.trace.header


def _draw(run: Run, wanted: Wanted) -> None:
    if not session.bare():
        imports.numpy_first()
    laid_out = f"{run.key}-{wanted.story}"
    view = session.view(run, story=wanted.story)
    _strip(run, wanted, laid_out)
    cards.draw(run, view.texts, on_turned=_turned)
    if run.event is not None:
        _panels(run, wanted, view.texts)
    with st.container(key="run_data"):
        components.run_data(laid_out, view.chunks)
        components.jump(f"card_{extras().panel}" if extras().panel else "", request=extras().jumps)


def _strip(run: Run, wanted: Wanted, laid_out: str) -> None:
    decoded = session.view(run, story=wanted.story).chunks[0]["prompt"]
    components.strip(
        run=laid_out,
        rounds=len(run.trace.rounds),
        moment=session.moment(story=wanted.story),
        address=sharing.moment(run, story=wanted.story),
        # As it was asked; as it was tokenized where the record does not say.
        prompt=visible(run.prompt) if run.prompt else decoded,
        selected=_selected(run),
        pinned=run.picked is not None,
        live_round=run.live_round,
        on_moved=_moved,
        on_stepped=_stepped,
        on_picked=_picked,
        on_painted=_painted,
    )


def _selected(run: Run) -> tuple[int, int]:
    """Round and place (−1: the closing token) of the token that is outlined."""
    focus = session.focus(run)
    number, place = run.picked or ((focus[0].index, focus[1]) if focus is not None else (-1, None))
    return number, -1 if place is None else place


# --- panels -----------------------------------------------------------------------------------------------------------


def _panels(run: Run, wanted: Wanted, texts: Texts) -> None:
    draw = {"coin": _coin, "place": _place, "exact": _exact, "pays": _pays, "tally": _tally}
    if transport.large():
        chosen = st.session_state.get("panel", "coin")
        with st.container(border=True, key="panel_large"):
            draw[chosen](run, wanted, texts)
        return
    # The panels below the first two need NumPy and their room: they come when those are painted.
    for names in (("coin", "place"), *(() if session.bare() else (("exact",), ("pays",), ("tally",)))):
        for name, column in zip(names, st.columns(len(names), gap="small"), strict=True):
            with column.container(border=True, height="stretch", key=f"card_{name}"):
                draw[name](run, wanted, texts)
    if not session.bare():
        _words(run, texts)


def _coin(run: Run, wanted: Wanted, texts: Texts) -> None:
    round_, draft = _focus(run)
    layout = coin.layout(
        round_,
        _event(run),
        texts,
        selected=draft,
        trace=run.trace,
        story=wanted.story,
        would_be=not session.bare(),
    )
    answered = extras().answered_for == (run.key, round_.index)
    components.coin(
        layout,
        detail=wanted.detail,
        answer=extras().answer if answered else (),
        on_thrown=_thrown,
        on_asked=_asked,
    )


def _place(run: Run, wanted: Wanted, texts: Texts) -> None:
    round_, draft = _focus(run)
    layout = place.layout(run.trace, round_, _event(run), texts, selected=draft)
    components.place(layout, detail=wanted.detail)


def _exact(run: Run, wanted: Wanted, texts: Texts) -> None:
    from specviz.figures import exact  # and NumPy, a fifth of a second that the first paint does without

    round_, draft = _focus(run)
    dealt = extras().deal if extras().dealt_at == (run.key, round_.index, draft) else None
    layout = exact.layout(round_, _event(run), texts, selected=draft, deal=dealt)
    components.exact(layout, detail=wanted.detail, on_dealt=_dealt)


def _pays(run: Run, wanted: Wanted, texts: Texts) -> None:
    from specviz.ui import price  # and the shapes of forty models, which the first paint does without

    _, layout, _ = _counted(run, wanted)
    price.draw(run, wanted, layout.pay)


def _tally(run: Run, wanted: Wanted, texts: Texts) -> None:
    complete, layout, other = _counted(run, wanted)
    over = run.trace.rounds[:complete]
    components.tally(
        layout,
        title=words.TALLY["title"].format(rounds=_rounds(over)) if over else words.TALLY["none"],
        twin=_compared(run, complete, other) if other is not None else (),
        detail=wanted.detail,
    )
    if over and run.live_round is not None and session.twin_fits(run) and not _covers(run.twin, run, complete):
        st.button(words.OFFER["twin"], key="twin", on_click=_want_twin)


def _counted(run: Run, wanted: Wanted) -> tuple[int, Tally, Trace | None]:
    """How many rounds are over, their tally, and the target alone beside them; kept until one of them changes."""
    complete = session.rounds_complete(run)
    other = _twin(run, complete)
    base = (run.trace, complete, other, run.live_round, run.recording, wanted.story)
    if extras().counted is None or extras().counted[0] != base:
        over, known = run.trace.rounds[:complete], run.trace.rounds if run.recording is not None else None
        layout = tallies.layout(over, story=wanted.story, whole=known, twin=other, live_from=run.live_round)
        extras().counted = base, layout
    return complete, extras().counted[1], other


def slower(run: Run, wanted: Wanted) -> bool:
    """Whether a gamma that the visitor set loses: by the price, or measured in the rounds that are over."""
    from specviz.ui import price

    complete = session.rounds_complete(run)
    own = run.trace.rounds[complete - 1].settings if complete else None
    if run.recording is not None and (not own or own.get("gamma") == wanted.settings["gamma"]):
        return False
    measured = None
    if run.recording is None:
        measured = tallies.speed(run.trace.rounds[:complete], _twin(run, complete), run.live_round)
    modelled = price.speed(run, wanted)
    return any(speed is not None and speed < 1 for speed in (measured, modelled))


def _words(run: Run, texts: Texts) -> None:
    """Every round so far in words, made only when it is looked at."""
    told = st.expander(words.ROUNDS["title"], key="rounds_told", on_change="rerun")
    if told.open:
        with told:
            components.rounds(rounds.layout(run.trace.rounds[: session.rounds_complete(run)], texts))


def _rounds(rounds: tuple[Round, ...]) -> str:
    return "1 round" if len(rounds) == 1 else f"{len(rounds)} rounds"


def _event(run: Run) -> Event:
    assert run.event is not None
    return run.event


def _focus(run: Run) -> tuple[Round, int | None]:
    found = session.focus(run)
    assert found is not None
    return found


# --- the twin ---------------------------------------------------------------------------------------------------------


def _want_twin() -> None:
    session.state().twin_wanted = True


def _covers(other: Trace | None, run: Run, complete: int) -> bool:
    return other is not None and len(other.text_ids) >= len(run.trace.cut(complete).text_ids)


def _twin(run: Run, complete: int) -> Trace | None:
    """The target alone with the same seed, where there is one that can be set beside the rounds that are over."""
    recorded = run.recording is not None and run.twin is None and not session.bare()
    other = recordings.twin(run.recording) if recorded and run.recording is not None else run.twin
    return other if complete and _covers(other, run, complete) and session.twin_fits(run) else None


def _compared(run: Run, complete: int, other: Trace) -> Twin:
    trace = run.trace.cut(complete)
    return twin.layout(trace, other, Texts({**other.token_bytes(), **trace.token_bytes()}))


# --- what the panels send ---------------------------------------------------------------------------------------------


def _story() -> bool:
    return st.session_state.get("detail") == "Story"


def _trigger(component: str, name: str) -> Any:
    return (st.session_state.get(component) or {}).get(name)


def _moved() -> None:
    index = _trigger("strip", "moved")
    if isinstance(index, int | float):
        session.move(int(index), story=_story())


def _stepped() -> None:
    by = _trigger("strip", "stepped")
    if by == 1:
        session.step("step", story=_story())
    elif by == -1:
        session.move(session.moment(story=_story()) - 1, story=_story())


def _picked() -> None:
    session.pick(_trigger("strip", "picked"))


def _painted() -> None:
    """The first page is painted: now there is time to import torch, and for the rest of the page."""
    now = session.state()
    pair_id = now.run.pair_id
    starts = preloads() and loader().status(pair_id).state == "idle"
    if starts:
        loader().start(pair_id)
    # Run anew only for what is still to come: whoever turns to another page in this moment would be called back.
    now.painted = now.unfinished or starts


def _turned() -> None:
    cards.turned(_trigger("card", "turned"))


def _thrown() -> None:
    match _trigger("coin", "thrown"):
        case {"stays": True, "changed": True}:
            cards.saved()


def _asked() -> None:
    extras().asking = True


def _dealt() -> None:
    """Deal the place in focus by the very functions that decode, each time with another seed."""
    from specviz.figures import exact

    run, tried = session.state().run, extras()
    round_, draft = _focus(run)
    if draft is None:
        return
    tried.deals += 1
    tried.deal, tried.dealt_at = exact.deal(round_, draft, seed=tried.deals), (run.key, round_.index, draft)
    cards.dealt()
