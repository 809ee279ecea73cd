"""The app in a real server, seen by a real Chromium: for the benchmarks and the browser tests.

Playwright is a development dependency (``requirements-dev.txt``); it drives the system's Chromium and downloads none.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser

CHECKOUT = Path(__file__).parents[2]
APP = CHECKOUT / "app.py"
START_S = 60.0
POLL_S = 0.02
_FLAGS = (
    "--no-sandbox",  # CI is root
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
)


class BrowserError(RuntimeError):
    """There is no browser to drive, or the server did not start; one sentence that says what to do."""


def find_chromium() -> str | None:
    """Path of the system's Chromium or Chrome, or None."""
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    return next((path for path in map(shutil.which, names) if path is not None), None)


@contextmanager
def chromium() -> Iterator[Browser]:
    """A headless Chromium.

    Raises:
        BrowserError: playwright is not installed, there is no Chromium, or what was waited for did not come.
    """
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError:
        raise BrowserError("playwright is not installed; pip install -r requirements-dev.txt") from None
    path = find_chromium()
    if path is None:
        raise BrowserError("no Chromium was found; on Debian: apt-get install chromium")
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=path, args=_FLAGS)
        try:
            yield browser
        except Error as error:
            raise BrowserError(f"the browser: {error.message}") from error
        finally:
            browser.close()


@contextmanager
def serve(log: Path, script: Path = APP, environment: Mapping[str, str] | None = None) -> Iterator[str]:
    """A fresh Streamlit server on a free port of the loopback address; yields its URL once it answers.

    Args:
        log: file that the server's output goes to.
        script: the page to serve; the project's ``.streamlit/config.toml`` is in force for any script.
        environment: variables set on top of this process's own.

    Raises:
        BrowserError: the server ended, or did not answer within a minute.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    with log.open("w") as sink:
        process = subprocess.Popen(
            [sys.executable, "-m", "streamlit", "run", str(script), "--server.port", str(port)],
            cwd=CHECKOUT,
            env={**os.environ, **(environment or {})},
            stdout=sink,
            stderr=subprocess.STDOUT,
        )
    try:
        deadline = time.monotonic() + START_S
        while not _answers(url):
            if process.poll() is not None or time.monotonic() > deadline:
                raise BrowserError(f"the server did not start: {_last_line(log)}")
            time.sleep(POLL_S)
        yield url
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _last_line(log: Path) -> str:
    return log.read_text().strip().rpartition("\n")[2] or "it said nothing"


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/_stcore/health", timeout=1):
            return True
    except OSError:
        return False
