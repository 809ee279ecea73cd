"""The command line: the text alone on standard output, the page's own trace in the file, one line for what is wrong."""

from __future__ import annotations

import dataclasses
import gzip
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from transformers import AutoTokenizer

from specviz.cli import main as cli
from specviz.cli import progress
from specviz.cli.main import COMMANDS, main
from specviz.decoding import decoder as decoding
from specviz.decoding.decoder import Decoder
from specviz.decoding.settings import Settings
from specviz.models import store
from specviz.models.catalogue import PAIRS_VARIABLE, local_pair
from specviz.models.loading import load_pair
from specviz.trace import Trace, read
from tests.decoding_runs import finish, timeless_trace
from tests.tiny_models import save_tiny_pair

PROMPT = "The dog slept by the door"


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    target, drafter = save_tiny_pair(tmp_path_factory.mktemp("pair"))
    return str(target), str(drafter)


@dataclasses.dataclass
class Said:
    status: int
    out: str
    err: str

    @property
    def last_line(self) -> str:
        return self.err.splitlines()[-1]


Call = Callable[..., Said]


@pytest.fixture
def specviz(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Call:
    """Runs a command in this process, with a cache that holds nothing."""
    monkeypatch.setenv("SPECVIZ_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(PAIRS_VARIABLE, raising=False)

    def call(*arguments: str) -> Said:
        capfd.readouterr()
        try:
            status = main(arguments)
        except SystemExit as end:
            status = int(end.code or 0)
        return Said(status, *capfd.readouterr())

    return call


@pytest.fixture
def decode(specviz: Call, folders: tuple[str, str]) -> Call:
    """Decodes with the tiny pair."""
    target, drafter = folders

    def call(*arguments: str, drafter: str = drafter) -> Said:
        return specviz("decode", "--target", target, "--drafter", drafter, "--max-new-tokens", "12", *arguments)

    return call


# --- decode -----------------------------------------------------------------------------------------------------------


def from_python(
    folders: tuple[str, str], settings: Settings, *, raw: bool = False, drafter: str | None = None
) -> Trace:
    pair = load_pair(local_pair(folders[0], drafter or folders[1]))
    return finish(Decoder.start(pair, PROMPT, settings, 12, raw=raw))


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        ("", Settings()),
        ("--rule greedy --gamma 2", Settings(rule="greedy", gamma=2)),
        ("--temperature 0.5 --seed 7", Settings(temperature=0.5, drafter_temperature=0.5, seed=7)),
        (
            "--rule gumbel_coupling --drafter-temperature 1.5 --top-k 50 --top-p 0.9 --seed -3",
            Settings(rule="gumbel_coupling", drafter_temperature=1.5, top_k=50, top_p=0.9, seed=-3),
        ),
        ("--gamma 0", Settings(gamma=0)),
        ("--stop-below 0.3 --stop-above 2", Settings(stop_below=0.3, stop_above=2.0)),
        ("--ngram 2", Settings(ngram=2)),
    ],
)
def test_the_file_is_the_trace_that_the_decoder_gives(
    options: str, settings: Settings, decode: Call, folders: tuple[str, str], tmp_path: Path
) -> None:
    out = tmp_path / "trace.jsonl"
    said = decode("--prompt", PROMPT, *options.split(), "--out", str(out))
    expected = from_python(folders, settings)
    assert said.status == 0
    assert timeless_trace(read(out)) == timeless_trace(expected)


def test_standard_output_holds_the_text_and_nothing_else(decode: Call, folders: tuple[str, str]) -> None:
    said = decode("--prompt", PROMPT)
    trace = from_python(folders, Settings())
    text = load_pair(local_pair(*folders)).tokenizer.decode(trace.text_ids)
    assert (said.status, said.out) == (0, text + "\n")
    assert re.search(
        r"^12 tokens in \d+ reads of the target; kept of drafted \d+/\d+; kept of judged \d+/\d+; alpha 0\.\d{3}; "
        r"ended by length$",
        said.last_line,
    )


def test_a_run_without_drafts_names_no_rate_of_drafts(decode: Call) -> None:
    assert (
        decode("--prompt", PROMPT, "--gamma", "0").last_line == "12 tokens in 12 reads of the target; ended by length"
    )


def test_a_prompt_is_a_users_message_unless_it_is_raw(decode: Call, folders: tuple[str, str], tmp_path: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(folders[0])
    message = tokenizer.apply_chat_template(
        [{"role": "user", "content": PROMPT}], add_generation_prompt=True, return_dict=False
    )
    for options, ids in (([], message), (["--raw"], tokenizer.encode(PROMPT))):
        out = tmp_path / "trace.jsonl"
        decode("--prompt", PROMPT, *options, "--out", str(out))
        assert read(out).header.prompt_ids == tuple(ids)
        assert read(out).header.prompt == PROMPT


@pytest.mark.parametrize("kind", ["target", "ngram", "none"])
def test_who_drafts_can_be_named_instead_of_a_folder(
    kind: str, decode: Call, folders: tuple[str, str], tmp_path: Path
) -> None:
    out = tmp_path / "trace.jsonl"
    assert decode("--prompt", PROMPT, "--out", str(out), drafter=kind).status == 0
    expected = from_python(folders, Settings(drafter=kind), drafter=kind)  # type: ignore[arg-type]
    assert timeless_trace(read(out)) == timeless_trace(expected)
    assert any(round_.drafts for round_ in read(out).rounds) == (kind != "none")


def test_a_file_that_is_there_is_replaced(decode: Call, tmp_path: Path) -> None:
    out = tmp_path / "trace.jsonl"
    out.write_text("something else\n" * 1000)
    assert decode("--prompt", PROMPT, "--out", str(out)).status == 0
    assert len(read(out).text_ids) == 12


def test_a_pair_of_the_operators_list_decodes(
    specviz: Call, folders: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = tmp_path / "pairs.toml"
    listed.write_text(f"[mine]\ntarget = '{folders[0]}'\ndrafter = '{folders[1]}'\n[alone]\ntarget = '{folders[0]}'\n")
    monkeypatch.setenv(PAIRS_VARIABLE, str(listed))
    for pair, drafter, has_drafts in (("mine", None, True), ("mine", "none", False), ("alone", None, False)):
        out = tmp_path / "trace.jsonl"
        options = ["--drafter", drafter] if drafter else []
        said = specviz(
            "decode", "--prompt", PROMPT, "--pair", pair, *options, "--max-new-tokens", "6", "--out", str(out)
        )
        assert said.status == 0, said.err
        assert read(out).header.pair == pair
        assert any(round_.drafts for round_ in read(out).rounds) == has_drafts


def test_text_that_a_terminal_cannot_show_does_not_end_the_run(folders: tuple[str, str]) -> None:
    """A random network soon writes bytes that are no ASCII."""
    arguments = ["decode", "--target", folders[0], "--prompt", "猫😀", "--temperature", "9", "--max-new-tokens", "40"]
    done = subprocess.run(
        [sys.executable, "-m", "specviz", *arguments],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert b"?" in done.stdout
    assert done.stdout.isascii()


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--gamma", "-1"], "gamma must be a whole number in 0..16, got -1"),
        (["--gamma", "17"], "gamma must be a whole number in 0..16, got 17"),
        (["--gamma", "two"], "gamma must be a whole number in 0..16, got 'two'"),
        (["--gamma", "4.0"], "gamma must be a whole number in 0..16, got '4.0'"),
        (["--temperature", "-1"], "temperature must be finite and at least 0, got -1.0"),
        (["--temperature", "nan"], "temperature must be finite and at least 0, got nan"),
        (["--temperature", "inf"], "temperature must be finite and at least 0, got inf"),
        (["--temperature", "warm"], "temperature must be finite and at least 0, got 'warm'"),
        (["--drafter-temperature", "-0.1"], "drafter_temperature must be finite and at least 0, got -0.1"),
        (["--rule", "greedy", "--temperature", "1"], "the rule greedy needs temperature 0, got 1.0"),
        (["--top-p", "0"], "top_p must be in (0, 1], got 0.0"),
        (["--top-p", "1.1"], "top_p must be in (0, 1], got 1.1"),
        (["--top-k", "-1"], "top_k must be a whole number from 0, got -1"),
        (["--seed", "x"], "got 'x'"),
        (["--seed", str(2**63)], "seed must be a whole number in -9223372036854775808..9223372036854775807"),
        (["--max-new-tokens", "0"], "--max-new-tokens must be a whole number from 1, got 0"),
        (["--max-new-tokens", "many"], "--max-new-tokens must be a whole number from 1, got 'many'"),
        (["--rule", "strike_out"], "rule must be one of greedy, speculative_sampling, gumbel_coupling"),
        (["--rule", "hope"], "got 'hope'"),
        (["--prompt", ""], "--prompt must not be empty, got ''"),
        (["--prompt", " \n\t"], r"--prompt must not be empty, got ' \n\t'"),
        (["--out", "no/such/folder/trace.jsonl"], "'no/such/folder/trace.jsonl': No such file or directory"),
        (["--out", "."], "--out must be a file that can be written, got '.': Is a directory"),
        (["--pair", "embedded"], "give --pair or --target, not both, got 'embedded' and '"),
        (["--speed", "11"], "unrecognized arguments: --speed 11"),
        (["--gam", "3"], "unrecognized arguments: --gam 3"),
        (["--gamma"], "argument --gamma: expected one argument"),
    ],
)
def test_bad_input_exits_2_with_one_line(options: list[str], message: str, decode: Call) -> None:
    """All of it before the weights are read: there is no line of progress either."""
    said = decode("--prompt", PROMPT, *options)
    assert (said.status, said.out) == (2, "")
    assert message in said.err
    assert said.err.count("\n") == 1
    assert said.err.startswith("specviz")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), f"required: {'|'.join(COMMANDS)}"),
        (("dance",), f"invalid choice: 'dance' (choose from {', '.join(map(repr, COMMANDS))})"),
        (("decode",), "required: --prompt"),
        (
            ("decode", "--prompt", "a", "--pair", "mine"),
            "pair must be one of embedded, qwen3-8b, llama-3.1-8b, got 'mine'",
        ),
        (
            ("decode", "--prompt", "a", "--drafter", "x/y"),
            "--drafter must be one of model, target, ngram, none beside --pair",
        ),
        (("pairs", "--all"), "unrecognized arguments: --all"),
    ],
)
def test_what_does_not_exist_exits_2_with_one_line(arguments: tuple[str, ...], message: str, specviz: Call) -> None:
    said = specviz(*arguments)
    assert (said.status, said.out) == (2, "")
    assert message in said.err
    assert said.err.count("\n") == 1


def test_a_prompt_longer_than_the_context_is_named_by_its_length(decode: Call, tmp_path: Path) -> None:
    out = tmp_path / "trace.jsonl"
    said = decode("--prompt", "dog " * 300, "--raw", "--out", str(out))
    assert (said.status, said.out) == (2, "")
    assert re.search(r"the prompt has \d{3} tokens and the target reads at most 256: shorten it to 255", said.last_line)
    assert not out.exists(), "a run that is refused leaves no empty trace"


def test_a_prompt_that_is_no_text_is_refused(decode: Call) -> None:
    """What Python makes of bytes on the command line that are not UTF-8."""
    said = decode("--prompt", "a\udcff")
    assert (said.status, said.out) == (2, "")
    assert r"the prompt must be text that UTF-8 can hold, got 'a\udcff'" in said.last_line


def test_a_refused_run_leaves_the_file_that_was_there(decode: Call, tmp_path: Path) -> None:
    out = tmp_path / "trace.jsonl"
    out.write_text("precious")
    assert decode("--prompt", PROMPT, "--out", str(out), "--device", "abacus").status == 2
    assert out.read_text() == "precious"


def test_a_folder_without_a_model_exits_2_and_says_so(specviz: Call, tmp_path: Path) -> None:
    said = specviz("decode", "--prompt", "a", "--target", str(tmp_path))
    assert (said.status, said.out) == (2, "")
    assert f"the folder {tmp_path} holds no model that can be read" in said.last_line


def test_on_a_terminal_an_error_takes_the_place_of_unfinished_progress(
    decode: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    lines = decode("--prompt", "a", drafter=str(tmp_path)).err.split("\n")
    assert [line.rpartition(progress.WIPE)[2][:26] for line in lines] == ["specviz decode: the folder", ""]


def test_without_weights_it_says_how_to_get_them(specviz: Call) -> None:
    said = specviz("decode", "--prompt", "a")
    assert (said.status, said.out) == (1, "")
    assert "run `python -m specviz fetch`" in said.last_line


@pytest.mark.parametrize(("error", "status"), [(KeyboardInterrupt(), 130), (RuntimeError("two\nlines"), 1)])
def test_a_run_that_ends_early_says_so_in_a_line(
    error: BaseException, status: int, decode: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(self: Decoder) -> None:
        raise error

    monkeypatch.setattr(decoding.Decoder, "step", failing)
    said = decode("--prompt", PROMPT)
    assert (said.status, said.out) == (status, "")
    assert said.last_line == f"specviz decode: {'interrupted' if status == 130 else 'two lines'}"


@pytest.mark.parametrize("command", COMMANDS)
def test_an_interrupt_while_a_command_is_imported_is_one_line(
    command: str, specviz: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli.importlib, "import_module", interrupted)
    said = specviz(command)
    assert (said.status, said.out, said.err) == (130, "", f"specviz {command}: interrupted\n")


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("nowhere.jsonl", None, "No such file or directory"),
        (".", None, "Is a directory"),
        ("text.jsonl", b"hello", "line 1: not JSON"),
        ("bytes.jsonl", b"\xff", "line 1: expected UTF-8"),
        ("marked.jsonl", b'\xef\xbb\xbf{"kind": "round"}', "line 1: expected the header"),
    ],
)
def test_a_trace_that_cannot_be_read_exits_2_with_one_line_that_names_it(
    name: str, content: bytes | None, why: str, specviz: Call, tmp_path: Path
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    said = specviz("rows", str(path), "--out", str(tmp_path / "x.npz"))
    assert (said.status, said.out) == (2, "")
    assert said.err.count("\n") == 1
    assert str(path) in said.err
    assert why in said.err
    assert not (tmp_path / "x.npz").exists()


@pytest.mark.parametrize("content", [b"hello", b"", gzip.compress(b"{}\n"), gzip.compress(b"[]" * 99)[:-9]])
def test_a_corpus_that_cannot_be_read_exits_2_with_one_line_that_names_it(
    content: bytes, specviz: Call, tmp_path: Path
) -> None:
    path = tmp_path / "corpus.jsonl.gz"
    path.write_bytes(content)
    said = specviz("train", "independent", "--out", str(tmp_path / "out"), "--corpus", str(path))
    assert (said.status, said.out, said.err.count("\n")) == (2, "", 1)
    assert str(path) in said.err


# --- the other commands -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str, specviz: Call) -> None:
    said = specviz(command, "--help")
    assert said.status == 0
    assert said.out.startswith(f"usage: specviz {command}")


def test_the_pairs_on_offer_are_a_line_each(specviz: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pairs.toml").write_text('[mine]\ntarget = "org/model"\nnote = "of the house"\n')
    monkeypatch.setenv(PAIRS_VARIABLE, str(tmp_path / "pairs.toml"))
    rows = [line.split("\t") for line in specviz("pairs").out.splitlines()]
    assert [row[0] for row in rows] == ["embedded", "qwen3-8b", "llama-3.1-8b", "mine"]
    assert [row[2] for row in rows[:3]] == [f"{store.PACKAGE_BYTES / 1e6:.0f} MB", "17.9 GB", "18.5 GB"]
    assert rows[3][2:] == ["local", "of the house"]


def test_a_list_of_pairs_that_is_wrong_exits_2(specviz: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pairs.toml").write_text("[mine]\ntraget = 'x'\n")
    monkeypatch.setenv(PAIRS_VARIABLE, str(tmp_path / "pairs.toml"))
    said = specviz("pairs")
    assert (said.status, said.out) == (2, "")
    assert "mine.traget is no key of a pair" in said.err


def test_the_last_line_of_fetch_is_the_folder(specviz: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def fetched(tell: store.Progress) -> Path:
        tell("Fetching", 0.0)
        return Path("somewhere")

    monkeypatch.setattr(store, "fetch_embedded", fetched)
    said = specviz("fetch")
    assert (said.status, said.out) == (0, "somewhere\n")
    assert said.err == "Fetching   0%\n"


def test_a_fetch_that_fails_says_what_to_do(specviz: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(tell: store.Progress) -> Path:
        raise store.FetchError("there is no network: try again when there is one")

    monkeypatch.setattr(store, "fetch_embedded", failing)
    said = specviz("fetch")
    assert (said.status, said.out) == (1, "")
    assert said.err == "specviz fetch: there is no network: try again when there is one\n"


def test_progress_in_a_file_is_its_beginning_and_its_end(capfd: pytest.CaptureFixture[str]) -> None:
    for fraction in (0.0, 0.3, None, 0.9, 1.0):
        progress.tell("Loading", fraction)
    assert capfd.readouterr().err == "Loading   0%\nLoading\nLoading 100%\n"


def test_progress_on_a_terminal_is_one_line(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    for fraction in (0.0, 0.3, 1.0):
        progress.tell("Loading", fraction)
    assert capfd.readouterr().err.count("\n") == 1


def test_the_command_line_is_there_before_anything_that_takes_time_is_imported() -> None:
    check = "import sys, specviz.cli.main; sys.exit(any(name in sys.modules for name in ('numpy', 'specviz.trace')))"
    assert subprocess.run([sys.executable, "-c", check], capture_output=True, check=False).returncode == 0


def test_listing_pairs_needs_no_torch() -> None:
    check = "import sys; from specviz.cli.main import main; main(['pairs']); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], capture_output=True, check=False).returncode == 0
