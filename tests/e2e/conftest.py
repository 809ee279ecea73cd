"""A real server and a real browser: what AppTest cannot see."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, Response, expect

from specviz.cli import browser as browsers

expect.set_options(timeout=30_000)

# A deep link asks for these below its own path first: two harmless 404, and Chromium's word about each.
PROBE = re.compile(r"/_stcore/(health|host-config)$")
# Streamlit's file watcher walks torch's lazy namespace where it is not stopped.
LOG_TROUBLE = re.compile(r"Traceback|torch\.classes|Tried to instantiate class")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder is an e2e test and needs a browser."""
    here = [item for item in items if Path(__file__).parent in item.path.parents]
    for item in here:
        item.add_marker(pytest.mark.e2e)
        if browsers.find_chromium() is None:
            item.add_marker(pytest.mark.skip(reason="no Chromium (on Debian: apt-get install chromium)"))


@dataclass(frozen=True)
class Server:
    """A running app: its address and the file its log goes to."""

    url: str
    log: Path


@contextmanager
def serve(folder: Path, script: Path = browsers.APP, **environment: str) -> Iterator[Server]:
    """A fresh server whose log must be clean when it ends.

    Unless ``environment`` says otherwise, the machine never fetched the pair: only recorded runs can be shown.
    """
    alone = {"SPECVIZ_PRELOAD": "0", "SPECVIZ_CACHE": str(folder / "cache")}
    with browsers.serve(folder / "log.txt", script, alone | environment) as url:
        yield Server(url, folder / "log.txt")
    log = (folder / "log.txt").read_text()
    assert not LOG_TROUBLE.search(log), log


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The app with its recorded runs, shared by all tests."""
    with serve(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """``launch(script, **environment)``: a server of the test's own, see :func:`serve`."""
    with ExitStack() as stack:
        yield lambda *script, **environment: stack.enter_context(serve(tmp_path, *script, **environment))


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One Chromium for all tests; each page has a context, and so a session, of its own."""
    with browsers.chromium() as chromium:
        yield chromium


@pytest.fixture
def visit(browser: Browser, launch: Callable[..., Server]) -> Iterator[Callable[..., Page]]:
    """Opens an address in a context of its own; script errors, bad responses and foreign requests fail the test.

    It asks for ``launch`` so that the pages close before their server does.
    """
    trouble: list[str] = []
    contexts: list[BrowserContext] = []

    def open_page(url: str, **options: object) -> Page:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        contexts.append(context)
        own = tuple(f"{scheme}{url.split('://')[1].split('/')[0]}" for scheme in ("http://", "ws://"))

        def said(message: ConsoleMessage) -> None:
            if message.type == "error" and not PROBE.search(message.location["url"]):
                trouble.append(f"console: {message.text}")

        def asked(request: Request) -> None:
            if not request.url.startswith((*own, "data:", "blob:")):
                trouble.append(f"a request left the machine: {request.url}")

        def answered(response: Response) -> None:
            if response.status >= 400 and not PROBE.search(response.url):
                trouble.append(f"{response.status}: {response.url}")

        page = context.new_page()
        page.on("console", said)
        page.on("pageerror", lambda error: trouble.append(f"script error: {error}"))
        page.on("request", asked)
        page.on("response", answered)
        page.goto(url)
        page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for(timeout=30_000)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not trouble, trouble
