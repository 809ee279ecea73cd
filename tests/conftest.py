"""What all tests share. Nothing heavy is imported here: most tests need neither torch nor Streamlit."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from specviz.models.loading import Pair

# No page under test loads weights behind the test's back, and no library asks a hub.
os.environ["SPECVIZ_PRELOAD"] = "0"
os.environ["HF_HUB_OFFLINE"] = "1"

# On a submission the examples are always the same; at a desk they differ from run to run and find more.
settings.register_profile("desk", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "desk")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The browser tests run last: they are the slowest, and their event loop stays open to the end of the session."""
    items.sort(key=lambda item: "e2e" in item.path.parts)


@pytest.fixture(scope="session", autouse=True)
def _only_this_machine() -> Iterator[None]:
    """Fail the test that reaches for another machine."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in ("127.0.0.1", "::1", "localhost"):
            pytest.fail(f"a connection to {address} was asked for; the tests run without a network")
        connect(self, address)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", guarded)
        yield


@pytest.fixture(scope="session")
def recorded_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Synthetic recordings of three rules with their twins, under the names that the page looks for."""
    from specviz import trace
    from tests.decode_page import RECORDED
    from tests.synthetic_traces import make_trace

    folder = tmp_path_factory.mktemp("traces")
    for name, rule in RECORDED.items():
        trace.save(make_trace(rule), folder / f"{name}.jsonl")
        trace.save(make_trace(rule, gamma=0), folder / f"{name}.twin.jsonl")
    return folder


@pytest.fixture
def no_weights(monkeypatch: pytest.MonkeyPatch, recorded_folder: Path) -> None:
    """The page over these recordings, on a machine without weights."""
    from specviz.models import store
    from specviz.ui import loader, recordings

    monkeypatch.setattr(recordings, "FOLDER", recorded_folder)
    monkeypatch.setattr(store, "embedded_target", lambda: None)
    fresh = loader.Loader()
    monkeypatch.setattr(loader, "loader", lambda: fresh)
    for module in ("decode", "positions", "stage", "transport", "work"):
        monkeypatch.setattr(f"specviz.ui.{module}.loader", lambda: fresh)


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A small target and a small drafter."""
    from tests import tiny_models

    return tiny_models.save_tiny_pair(tmp_path_factory.mktemp("pair"))


@pytest.fixture
def tiny(folders: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A list of pairs with the small one in it; its id."""
    listed = tmp_path / "pairs.toml"
    listed.write_text(f'[tiny]\ntarget = "{folders[0]}"\ndrafter = "{folders[1]}"\n')
    monkeypatch.setenv("SPECVIZ_PAIRS", str(listed))
    return "tiny"


@pytest.fixture(scope="session")
def embedded_target() -> None:
    """Skip where the embedded target was not fetched."""
    from specviz.models import store

    if store.embedded_target() is None:
        pytest.skip("the embedded target is not in the cache; `python -m specviz fetch` gets it")


@pytest.fixture(scope="session")
def embedded_pair(embedded_target: None) -> Pair:
    """The real pair in fp32 on the CPU; weights are shared by all tests, caches are not."""
    from specviz.models import catalogue, loading

    return loading.load_pair(catalogue.find(catalogue.EMBEDDED), device="cpu")


@pytest.fixture
def cuda() -> str:
    """Skip where there is no CUDA device."""
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    return "cuda"
