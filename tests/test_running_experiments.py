"""Sweeps and grids as they run: in rounds, stopped anywhere, on the command line and in a page."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from specviz import experiments, trace
from specviz.cli import files
from specviz.cli.main import main
from specviz.decoding.decoder import Decoder
from specviz.decoding.experiments import Gridder, Sweeper, drafters_of, settings
from specviz.experiments import Grid, Policy, Sweep, SweepRun
from specviz.models.catalogue import local_pair
from specviz.models.loading import load_pair
from specviz.ui import controls, experiment, profiler, recordings, words
from specviz.ui import gamma as gamma_page
from specviz.ui.loader import Status
from specviz.ui.pool import Pool
from specviz.workloads import WORKLOADS
from tests.sweeps import run, sweep
from tests.table_models import TablePair, random_table

ASSETS = Path(__file__).parents[1] / "assets"
POLICIES = (Policy(4), Policy(0), Policy(2), Policy(8, stop_below=0.5), Policy(8, stop_above=1.0))
TOKENS = 12


def pair() -> TablePair:
    return TablePair(random_table(1, 8, 2.5), random_table(2, 8, 2.5), vocab_size=8)


def sweeper(**changes: Any) -> Sweeper:
    asked: dict[str, Any] = {"prompts": {"one": ["a b"], "two": ["c d"]}, "policies": POLICIES, "seed": 3}
    return Sweeper(pair(), **(asked | {"max_new_tokens": TOKENS} | changes))


def finish(job: Any) -> Any:
    while not job.finished:
        job.step()
    return job.result()


# --- a sweep ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def swept() -> Sweep:
    done: Sweep = finish(sweeper())
    return done


def test_every_run_of_a_sweep_is_what_the_decoder_does_alone(swept: Sweep) -> None:
    for one in swept.select("two").runs:
        wanted = settings(one.policy, "speculative_sampling", None, 3)
        alone = Decoder.start(pair(), one.prompt, wanted, TOKENS)
        while not alone.finished:
            alone.step()
        counted = trace.tally(alone.trace.rounds)
        assert (one.emitted, one.rounds, one.drafted) == (counted.emitted, counted.rounds, counted.drafted)
        assert (one.judged, one.kept) == (counted.judged_at, counted.kept_at_least)
        assert [width for width, _ in one.verify] == [len(round_.drafts) + 1 for round_ in alone.trace.rounds]
        if counted.alpha is not None:
            assert sum(one.shared) == pytest.approx(counted.alpha * counted.judged, abs=1e-4)


def test_a_sweep_covers_every_prompt_under_every_policy_the_target_alone_first(swept: Sweep) -> None:
    assert [run.policy.gamma for run in swept.runs[: len(POLICIES)]] == [0, 4, 2, 8, 8]
    assert len({(run.workload, run.prompt, run.policy) for run in swept.runs}) == 2 * len(POLICIES)
    assert swept.workloads() == ("one", "two")


def test_the_texts_of_a_prompt_grow_side_by_side() -> None:
    working = sweeper(prompts={"one": ["a b"]})
    while not working.finished:
        working.step()
        lengths = [run.emitted for run in (working.result() or sweep([])).runs]
        assert max(lengths, default=0) - min(lengths, default=0) <= max(policy.gamma for policy in POLICIES) + 1


def test_a_sweep_that_is_stopped_keeps_what_it_has() -> None:
    working = sweeper()
    assert working.result() is None
    for _ in range(1 + 20):  # the first warms up
        working.step()
    working.close()
    early = working.result()
    working.step()
    assert early is not None
    assert not working.finished
    assert sum(run.rounds for run in early.runs) == 20
    assert sum(run.rounds for run in working.result().runs) == 20  # type: ignore[union-attr]


def test_progress_counts_tokens_and_a_text_that_ended_early_whole() -> None:
    stopping = TablePair(random_table(1, 8), random_table(2, 8), vocab_size=8, stop_ids=(0, 1, 2, 3))
    working = Sweeper(stopping, {"one": ["a b"]}, POLICIES, max_new_tokens=TOKENS)
    assert (working.done, working.total) == (0, len(POLICIES) * TOKENS)
    before = 0
    while not working.finished:
        working.step()
        assert before <= working.done <= working.total
        before = working.done
    done = working.result()
    assert done is not None
    assert sum(run.emitted for run in done.runs) < working.total
    working.step()
    assert working.result().runs == done.runs  # type: ignore[union-attr]


def test_a_draft_that_stops_early_stops_before_the_draw_and_pays_for_the_read() -> None:
    never = Policy(8, stop_below=1.0)
    done = finish(sweeper(policies=(Policy(0), never)))
    assert done.drafts_per_round(never) == 0
    stopped = [run for run in done.runs if run.policy == never]
    # A round with room for a draft reads the drafter once, and drafts nothing.
    assert all(run.rounds - 1 <= len(run.draft) <= run.rounds for run in stopped)


def test_seconds_are_those_of_the_rounds_without_prefill(folders: tuple[Path, Path]) -> None:
    tiny = load_pair(local_pair(*map(str, folders)), device="cpu")
    started = time.perf_counter()
    done = finish(Sweeper(tiny, {"one": ["The dog slept."]}, (Policy(0), Policy(3)), max_new_tokens=12))
    wall = time.perf_counter() - started
    assert sum(run.seconds for run in done.runs) < wall
    for one in done.runs:
        assert sum(one.draft) + sum(seconds for _, seconds in one.verify) < one.seconds
    assert done.pair == tiny.spec.name
    assert (done.dtype, done.threads) == ("fp32", tiny.threads)
    assert done.c() > 0


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"prompts": {}}, "nothing"),
        ({"policies": ()}, "nothing"),
        ({"rule": "resample_from_p"}, "rule"),
        ({"rule": "greedy", "temperature": 1.0}, "greedy"),
        ({"temperature": float("nan")}, "temperature"),
        ({"policies": (Policy(17),)}, "gamma"),
        ({"seed": 2**70}, "seed"),
        ({"prompts": {"one": map(str, range(401))}}, "2,000 runs, got 401 prompts"),
    ],
)
def test_what_cannot_be_swept_is_refused_before_the_work(changes: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        sweeper(**changes)


def test_a_prompt_that_is_given_twice_is_decoded_once() -> None:
    done = finish(sweeper(prompts={"one": ["a b", "a b"]}, policies=(Policy(0), Policy(0)), max_new_tokens=2))
    assert [run.prompt for run in done.runs] == ["a b"]


# --- a grid -----------------------------------------------------------------------------------------------------------


def gridder(**changes: Any) -> Gridder:
    return Gridder(pair(), "a b", **({"gammas": (1, 8), "seed": 5, "max_new_tokens": TOKENS} | changes))


@pytest.fixture(scope="module")
def gridded() -> Grid:
    done: Grid = finish(gridder())
    return done


def test_under_shared_noise_no_drafter_and_no_gamma_changes_the_text(gridded: Grid) -> None:
    assert len({gridded.sha256(run) for run in gridded.select("gumbel_coupling").runs}) == 1
    assert len({gridded.sha256(run) for run in gridded.select("speculative_sampling").runs}) > 1


def test_a_grid_has_every_cell_and_counts_its_reads(gridded: Grid) -> None:
    for rule in experiments.GRID_RULES:
        alone = gridded.alone(rule)
        assert alone is not None
        assert (alone.target_passes, alone.drafter_passes) == (TOKENS, 0)
        for gamma in (1, 8):
            own, copied = gridded.run(rule, "target", gamma), gridded.run(rule, "ngram", gamma)
            assert own is not None
            assert copied is not None
            assert own.target_passes == -(-TOKENS // (gamma + 1))  # the target keeps all that it drafts for itself
            assert copied.drafter_passes == 0


def test_a_grid_that_is_stopped_keeps_the_texts_that_are_through() -> None:
    working = gridder()
    for _ in range(TOKENS - 1):
        working.step()
    assert working.result() is None
    for _ in range(2):
        working.step()
    working.close()
    early = working.result()
    assert early is not None
    assert [(run.drafter, len(run.ids)) for run in early.runs] == [("none", TOKENS)]


def test_a_pair_without_a_drafter_model_is_compared_with_what_it_has(folders: tuple[Path, Path]) -> None:
    assert drafters_of(load_pair(local_pair(str(folders[0]), "none"), device="cpu")) == ("target", "ngram")
    assert drafters_of(pair()) == ("model", "target", "ngram")


def test_a_cell_that_is_asked_for_twice_is_decoded_once_and_too_many_tokens_are_refused() -> None:
    done = finish(gridder(rules=("greedy", "greedy"), drafters=("target",) * 2, gammas=(1, 1), max_new_tokens=2))
    assert [run.cell for run in done.runs] == [("greedy", "none", 0), ("greedy", "target", 1)]
    with pytest.raises(ValueError, match="200,000 tokens, got 14 texts"):
        gridder(max_new_tokens=20_000)


# --- the commands -----------------------------------------------------------------------------------------------------


def test_the_sweep_command_prints_a_row_a_policy_and_writes_the_file(
    tiny: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "sweep.json"
    options = ["--pair", tiny, "--prompt", "The dog slept.", "--max-new-tokens", "4", "--out", str(out)]
    assert main(["sweep", *options]) == 0
    said = capsys.readouterr().out
    assert "up to 12, stops above 2.0 nats" in said
    written = experiments.load(Sweep, out.read_text())
    assert {*written.policies()} == {*experiments.policies()}
    assert len(said.splitlines()) == 2 + len(written.policies()) + 1


def test_an_interrupted_sweep_writes_what_it_has(
    tiny: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    step, out = Sweeper.step, tmp_path / "sweep.json"

    def impatient(self: Sweeper) -> None:
        if self.done >= 9:
            raise KeyboardInterrupt
        step(self)

    monkeypatch.setattr(Sweeper, "step", impatient)
    options = ["--pair", tiny, "--workload", "chat", "--max-new-tokens", "4", "--out", str(out)]
    assert main(["sweep", *options]) == 130
    assert "interrupted" in capsys.readouterr().err
    assert 0 < sum(run.emitted for run in experiments.load(Sweep, out.read_text()).runs) < 40


def test_the_grid_command_writes_a_file_a_rule_and_compares_the_texts(
    tiny: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--pair", tiny, "--prompt", "The dog slept.", "--max-new-tokens", "2", "--out", str(tmp_path / "grid")]
    assert main(["grid", *options]) == 0
    said = capsys.readouterr().out
    assert "differs" not in said.split("speculative_sampling")[0]
    parts = [experiments.load(Grid, path.read_text()) for path in sorted((tmp_path / "grid").iterdir())]
    whole = experiments.joined(parts)
    assert whole is not None
    assert whole.rules() == experiments.GRID_RULES
    assert len(whole.runs) == 2 * (1 + 3 * 8)


@pytest.mark.parametrize("command", ["sweep", "grid"])
def test_what_is_interrupted_before_there_is_anything_promises_and_leaves_nothing(
    command: str, tiny: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(self: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Decoder, "step", interrupted)
    out = tmp_path / "new" / "out" if command == "grid" else tmp_path / "out.json"
    assert main([command, "--pair", tiny, "--out", str(out)]) == 130
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines()[-1] == f"specviz {command}: interrupted"
    assert "follows" not in said.err
    assert [path.name for path in tmp_path.iterdir()] == ["pairs.toml"]


def test_a_file_that_no_page_will_open_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MOST_BYTES", 2)
    files.write(tmp_path / "a.json", "é")
    assert capsys.readouterr().err == ""
    files.write(tmp_path / "a.json", "ééé")
    assert "a.json has 0.0 MB; a page opens 2e-06 MB at most" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["sweep", "--pair", "nowhere"], "nowhere"),
        (["sweep", "--workload", "poetry"], "poetry"),
        (["sweep", "--max-new-tokens", "0"], "--max-new-tokens"),
        (["sweep", "--rule", "greedy", "--temperature", "1"], "greedy"),
        (["sweep", "--rule", "gumbel_coupling"], "gumbel_coupling"),
        (["sweep", "--temperature", "nan"], "temperature"),
        (["sweep", "--prompt", " "], "--prompt"),
        (["sweep", "--prompt", "x" * 20_001], "--prompt must have at most 20,000 characters, got 20,001"),
        (["sweep", "--out", "/nowhere/x.json"], "--out"),
        (["grid", "--rule", "strike_out"], "strike_out"),
        (["grid", "--prompt", ""], "--prompt"),
        (["grid", "--seed", "many"], "many"),
        (["grid", "--out", "/dev/null/grid"], "--out"),
    ],
)
def test_options_that_cannot_be_had_end_with_2_and_one_line(
    options: list[str], named: str, tiny: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if "--pair" not in options:
        options = [*options, "--pair", tiny]
    try:
        status = main(options)
    except SystemExit as ended:
        status = int(ended.code or 0)
    said = capsys.readouterr()
    assert (status, said.out) == (2, "")
    assert named in said.err.splitlines()[-1]


# --- in a page --------------------------------------------------------------------------------------------------------


class Steps:
    """A job of four steps whose record is a sweep with a run a step."""

    total = 4
    before: Callable[[], None] = staticmethod(lambda: None)

    def __init__(self, pair: object, *, seed: int) -> None:
        self.seed, self.done = seed, 0

    @property
    def finished(self) -> bool:
        return self.done >= self.total

    def step(self) -> None:
        type(self).before()
        self.done += 1

    def close(self) -> None:
        self.closed = True

    def result(self) -> Sweep | None:
        runs = [run(Policy(gamma)) for gamma in range(self.done)]
        return sweep(runs, seed=self.seed) if runs else None


def script() -> None:
    import streamlit

    from specviz.ui import experiment

    kind = streamlit.session_state.kind
    drawn = streamlit.session_state
    record, origin = experiment.current(kind)
    drawn.history = [*drawn.get("history", []), (len(record.runs) if record is not None else 0, origin)]
    experiment.start(kind, {"seed": 7})
    experiment.cancel(kind)
    slot = streamlit.empty()
    experiment.told(kind)
    experiment.files(kind)
    experiment.work(kind, slot)


class Ready:
    """A loader whose pair is there."""

    def pair(self, pair_id: str) -> object:
        return object()


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., AppTest]:
    (tmp_path / "traces").mkdir()
    (tmp_path / "sweep.json").write_text(experiments.dump(sweep()))
    monkeypatch.setattr(recordings, "FOLDER", tmp_path / "traces")
    monkeypatch.setattr(experiment, "loader", Ready)
    monkeypatch.setattr(Steps, "before", staticmethod(lambda: None))

    def opened(**changes: Any) -> AppTest:
        test = AppTest.from_function(script, default_timeout=30)
        test.session_state["kind"] = replace(experiment.SWEEP, begin=Steps, **changes)
        test.run()
        assert not test.exception
        return test

    return opened


def started(test: AppTest) -> AppTest:
    test.button(key="sweep_start").click().run()
    assert not test.exception
    return test


def test_what_ships_is_shown_until_something_was_run_here_and_again_after_going_back(
    page: Callable[..., AppTest],
) -> None:
    test = page()
    assert experiment.SWEEP.words["none"] not in [one.value for one in test.text]
    started(test)
    assert [origin for _, origin in test.session_state["history"]] == ["recorded", "recorded", "here"]
    assert test.session_state["sweep"] == sweep([run(Policy(gamma)) for gamma in range(4)], seed=7)
    test.button(key="sweep_back").click().run()
    assert test.session_state["history"][-1] == (len(sweep().runs), "recorded")


def test_the_page_is_drawn_again_with_what_is_done_so_far(page: Callable[..., AppTest]) -> None:
    test = started(page(redraw_s=1e-9, alone=False))
    # However short the time, each script run takes a step, or it would never end.
    assert [count for count, origin in test.session_state["history"] if origin == "here"] == [1, 2, 3, 4]


@pytest.mark.parametrize("alone", [True, False])
def test_a_measurement_is_one_turn_of_the_device_and_others_take_one_a_step(
    alone: bool, page: Callable[..., AppTest], monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = []

    class Pool:
        @contextmanager
        def turn(self, tell: Callable[[int], None]) -> Iterator[None]:
            tell(2)  # somebody else is at it
            turns.append("turn")
            yield

    monkeypatch.setattr(experiment, "device_pool", Pool)
    monkeypatch.setattr(Steps, "before", staticmethod(lambda: turns.append("step")))
    started(page(alone=alone))
    assert turns == (["turn", *["step"] * 4] if alone else ["turn", "step"] * 4)


def test_cancel_keeps_what_was_done(page: Callable[..., AppTest], monkeypatch: pytest.MonkeyPatch) -> None:
    test = page()
    job = Steps(None, seed=7)
    job.done = 2
    test.session_state["sweep_running"] = experiment.Running(wanted=True, job=job)
    with monkeypatch.context() as patch:  # the script is at its next step when the visitor presses Cancel
        patch.setattr(experiment, "work", lambda kind, slot: None)
        test.run()
        assert test.button(key="sweep_start").disabled
        test.button(key="sweep_cancel").click().run()
    assert test.session_state["history"][-1] == (2, "here")
    assert [box.value for box in test.info] == [words.SWEEP["cancelled"]]
    assert job.closed


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ValueError("the prompt has *9* tokens"), r"the prompt has \*9\* tokens"),
        (MemoryError(), words.SWEEP["memory"]),
        (RuntimeError("secret"), "RuntimeError"),
    ],
)
def test_an_experiment_that_fails_says_why_and_keeps_what_it_has(
    error: Exception, told: str, page: Callable[..., AppTest], monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = iter(range(9))

    def fail() -> None:
        if next(steps) == 2:
            raise error

    monkeypatch.setattr(Steps, "before", staticmethod(fail))
    test = started(page())
    said = test.info[0].value
    assert told in said
    assert "secret" not in said
    assert test.session_state["history"][-1] == (2, "here")
    assert not test.button(key="sweep_start").disabled


@pytest.mark.parametrize(("state", "told"), [("absent", "python -m specviz fetch"), ("failed", r"no \*good\*")])
def test_without_models_it_says_what_to_do_and_keeps_what_is_shown(
    state: Any, told: str, page: Callable[..., AppTest], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken:
        def pair(self, pair_id: str) -> None:
            return None

        def status(self, pair_id: str) -> Status:
            return Status(state, "no *good*")

    monkeypatch.setattr(experiment, "loader", Broken)
    test = started(page())
    assert told in test.info[0].value
    assert test.session_state["history"][-1][1] == "recorded"


def test_a_job_at_work_is_never_told_to_wait_for_models_that_are_there(
    page: Callable[..., AppTest], monkeypatch: pytest.MonkeyPatch
) -> None:
    bars: list[tuple[float, str]] = []

    class Slot:
        def progress(self, part: float, told: str) -> Slot:
            bars.append((part, told))
            return self

    work = experiment.work
    monkeypatch.setattr(experiment, "work", lambda kind, slot: work(kind, Slot()))
    started(page(redraw_s=1e-9))
    # Every redraw begins where the one before ended.
    assert [part for part, _ in bars] == [0, 0.25, 0.25, 0.5, 0.5, 0.75, 0.75, 1]
    assert all(f"{4 * part:.0f} of 4" in told for part, told in bars)


@pytest.mark.parametrize("alone", [True, False])
def test_a_job_whose_visitor_is_gone_lets_the_device_go_after_the_step_that_it_is_at(
    alone: bool, page: Callable[..., AppTest], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Gone(BaseException):
        """What Streamlit raises at its next call."""

    class Slot:
        def progress(self, part: float, told: str) -> Slot:
            if part:
                raise Gone
            return self

    pool, job = Pool(), Steps(None, seed=7)
    now = experiment.Running(wanted=True, job=job)
    monkeypatch.setattr(experiment, "device_pool", lambda: pool)
    monkeypatch.setattr(experiment, "state", lambda kind: now)
    with pytest.raises(Gone):
        experiment._carry_out(replace(experiment.SWEEP, alone=alone), job, Slot())
    assert job.done == 1
    with pool.turn(lambda before: pytest.fail("the device is not free")):
        pass


def test_the_largest_sweep_that_the_page_makes_can_be_opened_again(page: Callable[..., AppTest]) -> None:
    tokens, policies = max(gamma_page.LENGTHS), experiments.policies()
    own = ["\x01" * (controls.MAX_PROMPT - 1) + str(i) for i in range(gamma_page.MOST_PROMPTS)]
    prompts = [*WORKLOADS.items(), *((gamma_page.OWN, prompt) for prompt in own)]
    assert all(len(prompt) == controls.MAX_PROMPT for prompt in own)

    def worst(policy: Policy, workload: str, prompt: str) -> SweepRun:  # nothing is kept: a token a round
        one = run(policy, workload, prompt, rounds=tokens)
        drafts = [min(policy.gamma, tokens - 1 - written) for written in range(tokens)]
        verify = tuple((1 + count, 1.234567) for count in drafts)
        return replace(one, verify=verify, draft=(1.234567,) * sum(drafts))

    largest = sweep([worst(policy, *prompt) for prompt in prompts for policy in policies])
    content = experiments.dump(largest).encode()
    assert 2e6 < len(content) <= experiments.MOST_BYTES
    assert experiment.opened(experiment.SWEEP, content) == largest
    with pytest.raises(ValueError, match="at most 5 MB"):
        experiment.opened(experiment.SWEEP, b" " * (experiments.MOST_BYTES + 1))


@pytest.mark.parametrize("kind", [experiment.SWEEP, experiment.GRID, profiler.PROFILE], ids=lambda kind: kind.name)
def test_a_file_may_begin_with_a_mark_of_its_encoding(kind: experiment.Kind) -> None:
    record = kind.shipped()
    assert experiment.opened(kind, b"\xef\xbb\xbf" + kind.dump(record).encode()) == record


def test_a_file_is_shown_as_from_a_file_and_a_broken_one_changes_nothing(page: Callable[..., AppTest]) -> None:
    test = page()
    test.file_uploader(key="sweep_opened").upload("s.json", experiments.dump(sweep([run(Policy(3))])).encode()).run()
    assert test.run().session_state["history"][-1] == (1, "file")
    test.file_uploader(key="sweep_opened").upload("t.json", b'{"kind": "grid"}').run()
    assert "no sweep" in test.warning[0].value
    assert test.session_state["history"][-1] == (1, "file")


# --- what ships -------------------------------------------------------------------------------------------------------


def test_the_sweep_that_ships_covers_every_workload_under_every_policy() -> None:
    shipped = experiments.load(Sweep, (ASSETS / "sweep.json").read_text(encoding="utf-8"))
    assert {*shipped.policies()} == {*experiments.policies()}
    assert {one.prompt: one.workload for one in shipped.runs} == {text: name for name, text in WORKLOADS.items()}
    assert len(shipped.runs) == len(WORKLOADS) * len(experiments.policies())
    assert 0 < (shipped.c() or 0) < 1


def test_the_grid_that_ships_is_of_one_text_under_shared_noise_and_of_many_under_sampling() -> None:
    shipped = experiment.GRID.shipped()
    assert isinstance(shipped, Grid)
    assert shipped.rules() == experiments.GRID_RULES
    coupled, sampled = map(shipped.select, experiments.GRID_RULES)
    assert len(coupled.runs) == len(sampled.runs) == 1 + 3 * len(experiments.GRID_GAMMAS)
    assert len({coupled.sha256(one) for one in coupled.runs}) == 1
    assert len({sampled.sha256(one) for one in sampled.runs}) > 1


def test_the_grid_that_ships_repeats_the_recorded_run_of_its_rule() -> None:
    shipped, recorded = experiment.GRID.shipped(), trace.read(ASSETS / "traces" / "gumbel.jsonl")
    alone = shipped.alone("gumbel_coupling")
    assert shipped.prompt == recorded.header.prompt
    assert alone.ids == recorded.text_ids[: len(alone.ids)]


def test_the_recordings_of_both_experiments_are_small() -> None:
    files = [ASSETS / "sweep.json", *(ASSETS / "traces" / "grid").iterdir()]
    assert sum(path.stat().st_size for path in files) < 800_000
