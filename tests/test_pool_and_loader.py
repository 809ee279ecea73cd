"""One device and one loader for many visitors."""

from __future__ import annotations

import re
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from specviz.models import loading, store
from specviz.ui import components, loader
from specviz.ui.loader import Loader, Status
from specviz.ui.pool import Pool

SOON_S = 10.0


class Abandoned(BaseException):
    """What a Streamlit call raises in a run that was stopped."""


def until(condition: Any) -> None:
    deadline = time.monotonic() + SOON_S
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.005)


# --- the pool ---------------------------------------------------------------------------------------------------------


def test_two_visitors_never_hold_the_device_together_and_come_in_order() -> None:
    pool, inside, order, most = Pool(), [], [], []

    def visit(name: int) -> None:
        with pool.turn(lambda before: None, poll_s=0.005):
            inside.append(name)
            most.append(len(inside))
            order.append(name)
            time.sleep(0.01)
            inside.remove(name)

    visitors = [threading.Thread(target=visit, args=(name,)) for name in range(5)]
    with pool.turn(lambda before: None):
        for count, visitor in enumerate(visitors, start=2):
            visitor.start()
            until(lambda expected=count: len(pool._waiting) == expected)
    for visitor in visitors:
        visitor.join(SOON_S)
    assert max(most) == 1
    assert order == sorted(order)


def test_who_waits_is_told_how_many_are_before_them() -> None:
    pool, told, release = Pool(), [], threading.Event()

    def hold() -> None:
        with pool.turn(lambda before: None):
            release.wait(SOON_S)

    def wait() -> None:
        with pool.turn(told.append, poll_s=0.005):
            pass

    holder, waiter = threading.Thread(target=hold), threading.Thread(target=wait)
    holder.start()
    until(lambda: len(pool._waiting) == 1)
    waiter.start()
    until(lambda: bool(told))
    release.set()
    holder.join(SOON_S)
    waiter.join(SOON_S)
    assert set(told) == {1}


def test_an_abandoned_run_leaves_the_queue_without_its_turn() -> None:
    pool, release, worked = Pool(), threading.Event(), []

    def hold() -> None:
        with pool.turn(lambda before: None):
            release.wait(SOON_S)

    def give_up(before: int) -> None:
        raise Abandoned

    def abandoned() -> None:
        with pytest.raises(Abandoned), pool.turn(give_up, poll_s=0.005):
            worked.append("abandoned")

    holder, leaver = threading.Thread(target=hold), threading.Thread(target=abandoned)
    holder.start()
    until(lambda: len(pool._waiting) == 1)
    leaver.start()
    leaver.join(SOON_S)
    assert len(pool._waiting) == 1
    release.set()
    holder.join(SOON_S)
    with pool.turn(lambda before: None):
        worked.append("next")
    assert worked == ["next"]


def test_a_step_that_fails_gives_the_device_back() -> None:
    pool = Pool()
    with pytest.raises(RuntimeError), pool.turn(lambda before: None):
        raise RuntimeError
    with pool.turn(lambda before: pytest.fail("nobody is before us")):
        pass


# --- the loader -------------------------------------------------------------------------------------------------------


@pytest.fixture
def weights(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(store, "embedded_target", lambda: tmp_path)


def test_a_pair_that_two_visitors_ask_for_is_loaded_once(weights: None, monkeypatch: pytest.MonkeyPatch) -> None:
    loads, go = [], threading.Event()

    def load(spec: Any, progress: Any) -> Any:
        loads.append(spec.id)
        go.wait(SOON_S)
        return SimpleNamespace(spec=spec)

    monkeypatch.setattr(loading, "load_pair", load)
    shared = Loader()
    assert shared.status("embedded").state == "idle"
    visitors = [threading.Thread(target=shared.start, args=("embedded",)) for _ in range(4)]
    for visitor in visitors:
        visitor.start()
    until(lambda: bool(loads))
    assert shared.status("embedded").state == "loading"
    assert shared.pair("embedded") is None
    go.set()
    until(lambda: shared.status("embedded").state == "ready")
    shared.start("embedded")
    assert loads == ["embedded"]
    assert shared.pair("embedded").spec.id == "embedded"  # type: ignore[union-attr]


def test_a_load_that_fails_says_why_and_can_be_tried_again(weights: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(spec: Any, progress: Any) -> Any:
        raise loading.LoadError("the folder holds no model that can be read")

    monkeypatch.setattr(loading, "load_pair", fail)
    shared = Loader()
    shared.start("embedded")
    until(lambda: shared.status("embedded").state == "failed")
    assert shared.status("embedded").message == "the folder holds no model that can be read"
    monkeypatch.setattr(loading, "load_pair", lambda spec, progress: SimpleNamespace(spec=spec))
    shared.start("embedded")
    until(lambda: shared.status("embedded").state == "ready")


def test_nothing_is_fetched_unless_it_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    fetched = []
    monkeypatch.setattr(store, "embedded_target", lambda: None)
    monkeypatch.setattr(store, "fetch_embedded", lambda progress: fetched.append(True))
    monkeypatch.setattr(loading, "load_pair", lambda spec, progress: SimpleNamespace(spec=spec))
    shared = Loader()
    assert shared.status("embedded").state == "absent"
    shared.start("embedded")
    until(lambda: shared.status("embedded").state == "ready")
    assert fetched == []
    again = Loader()
    again.start("embedded", fetch=True)
    until(lambda: again.status("embedded").state == "ready")
    assert fetched == [True]


def test_progress_is_told_while_it_loads(weights: None, monkeypatch: pytest.MonkeyPatch) -> None:
    go = threading.Event()

    def load(spec: Any, progress: Any) -> Any:
        progress("Loading the target", 0.25)
        go.wait(SOON_S)

    monkeypatch.setattr(loading, "load_pair", load)
    shared = Loader()
    shared.start("embedded")
    until(lambda: shared.status("embedded").fraction is not None)
    status = shared.status("embedded")
    go.set()
    assert (status.state, status.message, status.fraction) == ("loading", "Loading the target", 0.25)
    assert status.seconds >= 0
    assert isinstance(status, Status)


@pytest.mark.parametrize(("variable", "here", "wanted"), [("0", True, False), ("1", False, False), ("1", True, True)])
def test_the_pair_is_preloaded_only_where_its_weights_are_and_nobody_turned_it_off(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variable: str, here: bool, wanted: bool
) -> None:
    monkeypatch.setenv(loader.PRELOAD_VARIABLE, variable)
    monkeypatch.setattr(store, "embedded_target", lambda: tmp_path if here else None)
    assert loader.preloads() is wanted


# --- the components' sources ------------------------------------------------------------------------------------------

SOURCES = sorted(Path(components.__file__).parent.glob("*.js"))


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
@pytest.mark.parametrize(
    "word", ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Math.random", "http"]
)
def test_no_script_makes_markup_of_text_draws_at_random_or_leaves_the_machine(source: Path, word: str) -> None:
    assert word not in source.read_text("utf-8")


def test_every_style_takes_its_colours_from_the_palette() -> None:
    for path in Path(components.__file__).parent.glob("*.css"):
        assert re.findall(r"#[0-9a-fA-F]{3,8}\b|\brgba?\(|\bhsla?\(", path.read_text("utf-8")) == [], path.name
