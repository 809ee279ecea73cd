"""Measuring a machine: every sample is taken, stopping keeps what there is, and the command prints it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from specviz.cli.main import main
from specviz.decoding import profiling
from specviz.decoding.profiling import Profiler
from specviz.figures import profile as figures
from specviz.hardware import measured
from specviz.hardware.measured import MODELS
from specviz.models.catalogue import local_pair
from specviz.models.loading import Pair, load_pair
from tests import tiny_models

WIDTHS = (1, 2, 5)


@pytest.fixture(scope="module")
def pair(folders: tuple[Path, Path]) -> Pair:
    return load_pair(local_pair(*map(str, folders)), device="cpu")


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies and products that take no time; a context that is read in two pieces."""
    monkeypatch.setattr(profiling, "COPIES", {"cpu": (1, 2), "cuda": (1, 2)})
    monkeypatch.setattr(profiling, "SQUARES", {"cpu": (16, 32), "cuda": (16, 32)})
    monkeypatch.setattr(profiling, "ROWS", {"cpu": 8, "cuda": 8})
    monkeypatch.setattr(profiling, "PIECE", 20)


def run(profiler: Profiler) -> measured.Profile:
    while not profiler.finished:
        profiler.step()
    profile = profiler.profile()
    assert profile is not None
    return profile


def test_everything_is_sampled_as_often_as_asked(pair: Pair) -> None:
    profile = run(Profiler(pair, context=32, repeats=3, widths=WIDTHS))
    assert profile.complete
    assert [read.width for read in profile.reads] == [1, 2, 5]
    spreads = [profile.seconds(model, width) for model in MODELS for width in WIDTHS]
    rates = [one.per_second for one in (*profile.copies, *profile.matrices)]
    assert {spread.count for spread in (*spreads, *rates) if spread is not None} == {3}
    assert None not in spreads
    assert (profile.device_type, profile.dtype, profile.threads) == ("cpu", "fp32", torch.get_num_threads())
    assert profile.context == 32
    assert set(profile.prefill) == set(MODELS)
    assert measured.load(measured.dump(profile)) == profile


def test_the_shapes_count_the_parameters_of_the_models(pair: Pair) -> None:
    target, drafter = profiling.pair_shapes(pair)
    weights = sum(weight.numel() for weight in pair.target_network.module.parameters())
    assert (target.params, target.layers) == (weights, 2)
    assert drafter is not None
    assert drafter.params == weights


def test_a_distilled_drafter_is_priced_by_its_layers_and_its_rows(tmp_path: Path) -> None:
    target_folder, _ = tiny_models.save_tiny_pair(tmp_path)
    network = tiny_models.network()
    drafter_folder = tiny_models.save_distilled(tmp_path / "distilled", network, kept=200)
    pair = load_pair(local_pair(str(target_folder), str(drafter_folder)), device="cpu")
    target, drafter = profiling.pair_shapes(pair)
    assert drafter is not None
    assert (drafter.head_rows, drafter.layers, drafter.tied) == (200, 2, False)
    assert drafter.params_read == target.params_read - (target.head_rows - 200) * target.hidden


def test_the_reads_leave_the_caches_as_long_as_they_were(pair: Pair) -> None:
    profiler = Profiler(pair, context=32, repeats=1, widths=WIDTHS)
    for model in profiler._models.values():
        assert model.length == 0
    run(profiler)
    assert [model.length for model in profiler._models.values()] == [32, 32]


def test_the_steps_are_as_many_as_was_said(pair: Pair) -> None:
    profiler = Profiler(pair, context=32, repeats=2, widths=WIDTHS)
    steps = 0
    while not profiler.finished:
        profiler.step()
        steps += 1
    assert steps == profiler.total == 2 * 2 + 3 * (2 * 3 + 2 + 2 + 2)
    profiler.step()
    assert profiler.done == profiler.total


def test_what_was_measured_before_a_stop_is_kept(pair: Pair) -> None:
    profiler = Profiler(pair, context=32, repeats=5, widths=WIDTHS)
    assert profiler.profile() is None
    a_turn = 2 * 3 + 2 + 2 + 2
    for _ in range(4 + a_turn):  # the context, and the turn that warms up
        profiler.step()
    assert profiler.profile() is None
    for _ in range(2):
        profiler.step()
    early = profiler.profile()
    assert early is not None
    assert early.widths("target") == (1, 2)
    assert early.widths("drafter") == ()
    assert (early.copies, early.complete) == ((), False)
    for _ in range(a_turn):
        profiler.step()
    later = profiler.profile()
    assert later is not None
    one, five = later.seconds("target", 1), later.seconds("target", 5)
    assert one is not None
    assert five is not None
    assert (one.count, five.count) == (2, 1)
    assert not later.complete
    assert later.accelerator is not None


def test_after_closing_nothing_more_is_measured_and_what_was_measured_stays(pair: Pair) -> None:
    profiler = Profiler(pair, context=16, repeats=5, widths=(1, 2))
    for _ in range(2 + 10 + 1):
        profiler.step()
    profiler.close()
    profiler.step()
    early = profiler.profile()
    assert early is not None
    assert early.widths("target") == (1,)


def test_a_pair_without_a_drafter_is_measured_alone(folders: tuple[Path, Path]) -> None:
    alone = load_pair(local_pair(str(folders[0]), "none"), device="cpu")
    profile = run(Profiler(alone, context=16, repeats=1, widths=(1, 2)))
    assert profile.drafter is None
    assert profile.widths("drafter") == ()
    assert profile.complete


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({"context": 0}, "context"),
        ({"context": 255}, "256 tokens"),
        ({"repeats": 0}, "repeats"),
        ({"widths": ()}, "widths"),
        ({"widths": (0,)}, "width"),
        ({"widths": (5000,)}, "width"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_the_work(pair: Pair, asked: dict[str, int], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        Profiler(pair, **({"context": 16, "repeats": 1, "widths": (1, 2)} | asked))


@pytest.mark.gpu
def test_a_gpu_is_measured_with_its_own_events(cuda: str, folders: tuple[Path, Path]) -> None:
    pair = load_pair(local_pair(*map(str, folders)), device=cuda)
    profile = run(Profiler(pair, context=32, repeats=3, widths=WIDTHS))
    assert (profile.device_type, profile.threads, profile.dtype) == ("cuda", None, "bf16")
    assert profile.device == torch.cuda.get_device_name()
    assert profile.complete


# --- the command ------------------------------------------------------------------------------------------------------


def test_the_command_prints_tables_and_a_verdict_and_writes_the_file(
    tiny: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "profile.json"
    options = ["--context", "16", "--repeats", "3", "--widths", "1,2, 5", "--out", str(out)]
    assert main(["profile", "--pair", tiny, *options]) == 0
    said = capsys.readouterr()
    assert re.search(r"^  copy 2 MiB +[\d.]+ [kMGT]?B/s", said.out, re.MULTILINE)
    assert re.search(r"^  5 +[\d.,]+ ", said.out, re.MULTILINE)
    answers = tuple(answer.split("]")[0].strip("[") for answer in figures.ANSWERS.values())
    assert said.out.rstrip().splitlines()[-1].startswith((*answers, "Too unsteady"))
    assert "Measured" in said.err
    assert measured.load(out.read_text()).widths("target") == (1, 2, 5)


def test_an_interrupted_measurement_prints_what_it_has(
    tiny: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    step, out = Profiler.step, tmp_path / "profile.json"

    def impatient(self: Profiler) -> None:
        if self.done == 2 + 2 * 10:
            raise KeyboardInterrupt
        step(self)

    monkeypatch.setattr(Profiler, "step", impatient)
    options = ["--context", "16", "--repeats", "5", "--widths", "1,2", "--out", str(out)]
    assert main(["profile", "--pair", tiny, *options]) == 130
    said = capsys.readouterr()
    assert "interrupted" in said.err
    assert "target ms (measured)" in said.out
    assert not measured.load(out.read_text()).complete


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--pair", "nowhere"], "nowhere"),
        (["--context", "0"], "0"),
        (["--context", "300"], "256"),
        (["--repeats", "0"], "0"),
        (["--repeats", "many"], "many"),
        (["--widths", "1,x"], "x"),
        (["--widths", "0"], "0"),
        (["--out", "/nowhere/at/all.json"], "all.json"),
    ],
)
def test_bad_input_exits_2_with_one_line(
    options: list[str], named: str, tiny: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pair = [] if "--pair" in options else ["--pair", tiny]
    try:
        status = main(["profile", *pair, *options])
    except SystemExit as end:
        status = int(end.code or 0)
    said = capsys.readouterr()
    assert (status, said.out) == (2, "")
    assert named in said.err.splitlines()[-1]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--context", "0"),
        ("--context", "9" * 5000),
        ("--repeats", "0"),
        ("--repeats", "10001"),
        ("--widths", "1,0"),
        ("--widths", "1025"),
        ("--widths", ",".join(["1"] * 65)),
    ],
)
def test_a_number_out_of_range_is_refused_before_the_models_are_loaded(
    option: str, value: str, tiny: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("specviz.models.loading.load_pair", lambda *_, **__: pytest.fail("the models were loaded"))
    with pytest.raises(SystemExit) as end:
        main(["profile", "--pair", tiny, option, value])
    assert end.value.code == 2
    assert f"argument {option}: must be" in capsys.readouterr().err


def test_the_figures_of_a_profile_need_no_torch() -> None:
    script = "import sys; from specviz.figures import profile, server; print({'torch', 'numpy'} & {*sys.modules})"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert result.stdout.strip() == "set()", result.stderr
