"""The Profile page as a visitor meets it, without a browser."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from specviz.figures import server as servers
from specviz.figures.sentences import plain
from specviz.hardware import measured
from specviz.hardware.accelerators import ACCELERATORS, DTYPES
from specviz.hardware.shapes import SHAPES
from specviz.ui import experiment, profiler, words
from specviz.ui import loader as loader_module
from specviz.ui.controls import Refused
from specviz.ui.loader import Status
from tests.profiles import profile

ROOT = Path(__file__).parent.parent
SCRIPT = str(ROOT / "pages" / "Profile.py")


@pytest.fixture(autouse=True)
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A recorded profile made by hand, on a machine without weights."""
    (tmp_path / "traces").mkdir()
    path = tmp_path / profiler.RECORDED
    path.write_text(measured.dump(profile()))
    monkeypatch.setattr("specviz.ui.recordings.FOLDER", tmp_path / "traces")
    monkeypatch.setattr("specviz.models.store.embedded_target", lambda: None)
    fresh = loader_module.Loader()
    monkeypatch.setattr(experiment, "loader", lambda: fresh)
    return path


class Page:
    """The page under test."""

    def __init__(self, *, address: dict[str, str] | None = None, **state: Any) -> None:
        self.test = AppTest.from_file(SCRIPT, default_timeout=30)
        for name, value in (address or {}).items():
            self.test.query_params[name] = value
        for name, value in state.items():
            self.test.session_state[name] = value
        self.run()

    def run(self) -> Page:
        self.test.run()
        assert not self.test.exception
        return self

    def data(self, component: str) -> Any:
        elements = [element.proto for element in self.test.get("bidi_component")]
        return next(json.loads(e.json)[0] for e in elements if e.component_name == f"specviz_{component}")

    @property
    def buttons(self) -> set[str]:
        return {button.key for button in self.test.button}

    @property
    def said(self) -> str:
        return " ".join(box.value for box in (*self.test.info, *self.test.warning))


# --- without models ---------------------------------------------------------------------------------------------------


def test_the_page_opens_on_the_recorded_profile() -> None:
    page = Page()
    assert [title.value for title in page.test.title] == ["Profile"]
    assert page.data("badges")["badges"][0] == "recorded · a machine, fp32, 2 threads"
    data = page.data("profile")
    assert plain(data["verdict"]).startswith("Partly. A read uses 53 % of what the memory")
    assert [chart["model"] for chart in data["charts"]] == ["target", "drafter"]
    assert plain(page.data("judgement")["verdict"]).startswith("Memory-bound, 71 %.")


def test_the_page_needs_no_torch(tmp_path: Path) -> None:
    script = f"""
import sys
from streamlit.testing.v1 import AppTest
page = AppTest.from_file({SCRIPT!r}, default_timeout=60).run()
assert not page.exception
print(sorted({{"torch", "transformers"}} & set(sys.modules)))
"""
    result = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert result.stdout.strip() == "[]", result.stderr[-2000:]


def test_the_recorded_profile_that_ships_can_be_read_and_is_complete() -> None:
    shipped = measured.load((ROOT / "assets" / profiler.RECORDED).read_text())
    assert shipped.complete
    assert shipped.widths("target") == shipped.widths("drafter") == tuple(range(1, 18))


def test_without_a_recorded_profile_it_says_what_to_do(recorded: Path) -> None:
    recorded.unlink()
    page = Page()
    assert words.PROFILE["none"] in [text.value for text in page.test.text]
    assert words.PROFILE["this"] not in page.test.selectbox(key="server_accelerator").options


def test_a_broken_recorded_profile_is_as_good_as_none(recorded: Path) -> None:
    recorded.write_text("{")
    assert words.PROFILE["none"] in [text.value for text in Page().test.text]


def test_measuring_without_weights_says_what_to_do_and_keeps_what_is_shown() -> None:
    page = Page()
    page.test.button(key="profile_start").click().run()
    page.run()
    assert "python -m specviz fetch" in page.said
    assert not page.test.button(key="profile_start").disabled
    assert page.data("badges")["badges"][0].startswith("recorded")


def test_story_leaves_out_bars_and_tables_and_formulas_adds_the_formula() -> None:
    assert Page(detail="Story").data("profile")["numbers"] is False
    assert Page().data("profile")["formula"] is None
    assert "max(bytes" in Page(detail="Formulas").data("profile")["formula"]


# --- measuring --------------------------------------------------------------------------------------------------------


class Clockwork:
    """A profiler whose samples are a profile made by hand: half of it after two steps, all after four."""

    total = 4
    before_step: Callable[[], None] = staticmethod(lambda: None)

    def __init__(self, pair: object, *, context: int) -> None:
        self.context, self.done = context, 0

    @property
    def finished(self) -> bool:
        return self.done >= self.total

    def step(self) -> None:
        type(self).before_step()
        self.done += 1

    def close(self) -> None:
        self.closed = True

    def profile(self) -> measured.Profile | None:
        return profile(context=self.context, repeats=5 if self.finished else 9) if self.done >= 2 else None


class Ready:
    """A loader whose pair is there."""

    def pair(self, pair_id: str) -> object:
        return object()


@pytest.fixture
def clockwork(monkeypatch: pytest.MonkeyPatch) -> type[Clockwork]:
    monkeypatch.setattr(experiment, "loader", Ready)
    monkeypatch.setattr("specviz.decoding.profiling.Profiler", Clockwork)
    monkeypatch.setattr(Clockwork, "before_step", staticmethod(lambda: None))
    return Clockwork


def test_what_was_measured_is_shown_and_kept_for_other_pages(clockwork: type[Clockwork]) -> None:
    page = Page(profile_context=64)
    page.test.button(key="profile_start").click().run()
    page.run()
    assert page.data("badges")["badges"][0].startswith("measured here")
    assert page.test.session_state["profile"] == profile(context=64)
    assert page.said == ""
    assert {"profile_start", "profile_back"} <= page.buttons


def test_back_to_the_recorded_profile(clockwork: type[Clockwork]) -> None:
    page = Page()
    page.test.button(key="profile_start").click().run()
    page.test.button(key="profile_back").click().run()
    assert page.run().data("badges")["badges"][0].startswith("recorded")


@pytest.mark.parametrize(("steps", "kept"), [(1, False), (3, True)])
def test_cancel_keeps_what_was_measured(steps: int, kept: bool, clockwork: type[Clockwork]) -> None:
    page = Page()
    working = clockwork(None, context=256)
    working.done = steps
    page.test.session_state["profile_running"] = experiment.Running(wanted=False, job=working)
    page.test.session_state["profile_running"].wanted = True
    # The script is at its next sample when the visitor presses Cancel.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(profiler, "measure", lambda slot: None)
        page.run()
        assert "profile_cancel" in page.buttons
        assert page.test.button(key="profile_start").disabled
        page.test.button(key="profile_cancel").click().run()
    page.run()
    assert ("profile" in page.test.session_state) is kept
    assert page.said == words.PROFILE["cancelled" if kept else "cancelled.nothing"]
    assert page.test.session_state["profile_running"].job is None
    assert working.closed


def test_a_script_that_was_overtaken_goes_on_where_it_was(clockwork: type[Clockwork]) -> None:
    working = clockwork(None, context=256)
    working.done = 3
    page = Page(profile_running=experiment.Running(wanted=True, job=working))
    assert working.done == 4
    assert page.test.session_state["profile"] == profile(context=256)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ValueError("the target reads at most 256 tokens"), "the target reads at most 256 tokens"),
        (MemoryError(), words.PROFILE["memory"]),
        (RuntimeError("secret"), "RuntimeError"),
    ],
)
def test_a_measurement_that_fails_says_why_and_keeps_what_it_has(
    error: Exception, told: str, clockwork: type[Clockwork], monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = iter(range(10))

    def fail() -> None:
        if next(steps) == 2:
            raise error

    monkeypatch.setattr(clockwork, "before_step", staticmethod(fail))
    page = Page()
    page.test.button(key="profile_start").click().run()
    page.run()
    assert told in page.said
    assert "secret" not in page.said
    assert page.test.session_state["profile"].repeats == 9
    assert not page.test.button(key="profile_start").disabled


def test_the_whole_measurement_is_one_turn_of_the_device(
    clockwork: type[Clockwork], monkeypatch: pytest.MonkeyPatch
) -> None:
    held = []
    pool = experiment.device_pool()
    monkeypatch.setattr(clockwork, "before_step", staticmethod(lambda: held.append(len(pool._waiting))))
    page = Page()
    page.test.button(key="profile_start").click().run()
    assert held == [1] * 4
    assert len(pool._waiting) == 0


def test_models_that_cannot_be_loaded_are_told_as_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def pair(self, pair_id: str) -> None:
            return None

        def status(self, pair_id: str) -> Status:
            return Status("failed", "no *good* [here](x)")

    monkeypatch.setattr(experiment, "loader", Broken)
    page = Page()
    page.test.button(key="profile_start").click().run()
    assert r"no \*good\* \[here\]" in page.run().said


@pytest.mark.parametrize(
    ("done", "seconds", "told"),
    [
        (1, 1.0, "1 of 80 samples"),
        (2, 4.0, "2 of 80 samples; roughly 3 minutes left, by the first steps alone"),
        (10, 4.0, "10 of 80 samples; about 30 seconds left"),
        (40, 12.0, "40 of 80 samples; about 15 seconds left"),
        (40, 91.0, "40 of 80 samples; about 2 minutes left"),
        (79, 20.0, "79 of 80 samples; a few seconds left"),
        (80, 20.0, "80 of 80 samples"),
    ],
)
def test_the_samples_taken_say_how_long_the_rest_takes(done: int, seconds: float, told: str) -> None:
    assert experiment.progress(words.PROFILE["progress"], done, 80, seconds) == told


def test_waiting_for_the_device_is_no_part_of_the_time_that_samples_take(
    clockwork: type[Clockwork], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Busy:
        @contextmanager
        def turn(self, tell: Callable[[int], None]) -> Iterator[None]:
            time.sleep(0.3)
            yield

    monkeypatch.setattr(experiment, "device_pool", Busy)
    page = Page()
    page.test.button(key="profile_start").click().run()
    assert 0 < page.test.session_state["profile_running"].seconds < 0.3


# --- files ------------------------------------------------------------------------------------------------------------


def test_a_file_is_shown_as_from_a_file() -> None:
    page = Page()
    page.test.file_uploader(key="profile_opened").upload("p.json", measured.dump(profile(device="theirs")).encode())
    page.run()
    assert page.data("badges")["badges"][0].startswith("from a file · theirs")


@pytest.mark.parametrize("content", [b"{", b"\xff\xfe", b"[]", b"x" * 1_000_001], ids=["half", "bytes", "list", "big"])
def test_a_file_that_is_no_profile_changes_nothing(content: bytes) -> None:
    with pytest.raises(ValueError, match="file"):
        experiment.opened(profiler.PROFILE, content)


# --- somebody's server ------------------------------------------------------------------------------------------------


def test_the_form_follows_the_address() -> None:
    page = Page(address={"server_model": "Qwen3-8B", "server_batch": "8", "server_counted": "all readers together"})
    assert page.test.session_state["server_model"] == "qwen3-8b"
    assert page.test.session_state["server_batch"] == 8
    assert page.data("judgement")["table"]["caption"].startswith("Qwen3-8B")
    assert page.said == ""


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ({"server_batch": "nan"}, "batch nan; it is a whole number from 1 to 4,096, so 1 is used"),
        ({"server_speed": "0"}, "speed 0; it goes from 0.01"),
        ({"server_speed": "inf"}, "speed inf"),
        ({"server_model": "<b>"}, "that is not on offer, so Llama"),
        ({"server_dtype": "fp4", "server_devices": "4.5"}, "dtype fp4 and devices 4.5, which cannot be had"),
        ({"server_devices": "4.5", "server_batch": "2.5"}, "devices 4.5 and batch 2.5, which cannot be had"),
        ({"server_devices": "inf"}, "devices inf"),
        ({"server_batch": "-inf"}, "batch -inf"),
        ({"server_context": "1e999"}, "context 1e999"),
        ({"server_context": "9" * 5000}, "context “9999"),
    ],
)
def test_what_the_address_cannot_have_is_told_in_one_sentence_and_leaves_it(address: dict[str, str], told: str) -> None:
    page = Page(address=address)
    assert told in page.said.replace("\\", "")
    assert page.data("judgement")["kind"] == "memory"
    assert not {*address} & {*page.test.query_params}


@pytest.mark.parametrize("key", [*profiler.DEFAULTS, "detail"])
def test_an_empty_parameter_asks_for_nothing(key: str) -> None:
    page = Page(address={key: ""})
    assert page.said == ""
    assert page.data("judgement") == Page().data("judgement")
    assert key not in page.test.query_params


def test_the_complaint_goes_when_the_form_is_touched() -> None:
    page = Page(address={"server_batch": "nan"})
    assert "batch nan" in page.run().said
    page.test.number_input(key="server_context").set_value(7).run()
    assert page.said == ""


@given(
    model=st.sampled_from(sorted(SHAPES)),
    dtype=st.sampled_from(DTYPES),
    accelerator=st.sampled_from(sorted(ACCELERATORS)),
    devices=st.integers(1, profiler.MAX_DEVICES),
    batch=st.integers(1, profiler.MAX_BATCH),
    context=st.integers(0, profiler.MAX_CONTEXT),
    speed=st.floats(0.01, profiler.MAX_SPEED),
    together=st.booleans(),
)
def test_any_server_of_the_form_gets_a_verdict(
    model: str, dtype: Any, accelerator: str, devices: int, batch: int, context: int, speed: float, together: bool
) -> None:
    machine = ACCELERATORS[accelerator].times(devices)
    server = servers.Server(SHAPES[model], dtype, machine, batch, context, speed, together)
    verdict = servers.judge(server)
    assert plain(verdict.verdict)
    assert verdict.share == pytest.approx(
        server.read.bytes * (speed / batch if together else speed) / machine.bandwidth
    )
    assert (verdict.kind == "too much") == (server.read.seconds * server.reads_per_second > 1)
    assert (verdict.kind == "too much") <= bool(verdict.checks)
    assert not any("e+" in cell for row in verdict.table.rows for cell in row)


@pytest.mark.parametrize("key", profiler.RANGES)
@given(data=st.data())
def test_a_number_of_the_address_is_taken_within_its_range_only(key: str, data: st.DataObject) -> None:
    low, high = profiler.RANGES[key]
    number = data.draw(st.one_of(st.integers(), st.floats()))
    heard = profiler.taken(key, str(number))
    fits = low <= number <= high and (isinstance(low, float) or number == int(number))
    assert isinstance(heard, Refused) is not fits


def test_the_share_of_a_known_server_by_hand() -> None:
    """Llama-3.1-8B on one H100: 15.01 GB of weights and 131,072 bytes a token over 3.35 TB/s."""
    server = servers.Server(SHAPES["llama-3.1-8b"], "bf16", ACCELERATORS["h100-sxm"], 1, 999, 100.0)
    read = 2 * (8_030_261_248 - 128_256 * 4096) + 131_072 * 1000
    assert servers.judge(server).share == pytest.approx(read * 100 / 3.35e12)


def verdict(**changes: Any) -> servers.Judgement:
    values: dict[str, Any] = {
        "shape": SHAPES["llama-3.1-8b"],
        "dtype": "bf16",
        "accelerator": ACCELERATORS["h100-sxm"],
        "batch": 1,
        "context": 500,
        "speed": 158.34,
    }
    return servers.judge(servers.Server(**(values | changes)))


@pytest.mark.parametrize(
    ("changes", "kind", "said"),
    [
        ({}, "memory", "Memory-bound, 71 %."),
        ({"speed": 90.0}, "between", "Partly memory, 41 %."),
        ({"speed": 30.0}, "idle", "Not memory: 14 %."),
        ({"speed": 373.25}, "too much", "168 %: more than the machine can do, so an input is off."),
        ({"speed": 223.1}, "too much", "just over 100 %: more than the machine can do, so an input is off."),
        ({"batch": 512, "context": 0, "speed": 100.0}, "arithmetic", "Bound by arithmetic, 78 % of the dense rate."),
    ],
)
def test_the_verdict_on_a_server(changes: dict[str, Any], kind: str, said: str) -> None:
    judged = verdict(**changes)
    assert judged.kind == kind
    assert plain(judged.verdict).startswith(said)


def test_more_than_all_of_it_says_what_to_check() -> None:
    checks = " ".join(verdict(speed=900.0, batch=8).checks)
    assert "speculation on" in checks
    assert "all 8 readers" in checks
    assert verdict().checks == ()


def test_a_model_that_does_not_fit_is_told() -> None:
    (said,) = verdict(shape=SHAPES["llama-3.1-70b"], speed=10.0).checks
    assert said.startswith("141 GB of weights and cache do not fit into 80.0 GB of H100 SXM: it takes 2")
    assert verdict(shape=SHAPES["llama-3.1-70b"], speed=10.0, dtype="int4").checks == ()


@pytest.mark.parametrize("changes", [{"batch": 0}, {"context": -1}, {"speed": 0.0}, {"speed": float("nan")}])
def test_a_server_that_cannot_be_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"got"):
        verdict(**changes)
