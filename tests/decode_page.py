"""The Decode page under AppTest, for every test of a part of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).parent.parent
RECORDED = {"sampling": "speculative_sampling", "greedy": "greedy", "gumbel": "gumbel_coupling"}


class Page:
    """The page under test, with names for what is on it."""

    def __init__(self, **controls: Any) -> None:
        self.test = AppTest.from_file(str(ROOT / "app.py"), default_timeout=30)
        for name, value in controls.items():
            self.test.session_state[name] = value
        self.run().run()  # the browser asks for the second run when the first is painted

    def run(self) -> Page:
        self.test.run()
        assert not self.test.exception
        return self

    def press(self, key: str) -> Page:
        """Press a button. A press may rerun the stage only: run the page again to see all of it."""
        self.test.button(key=key).click().run()
        return self.run()

    def data(self, component: str) -> Any:
        elements = [e.proto for e in self.test.get("bidi_component")]
        return next(json.loads(e.json)[0] for e in elements if e.component_name == f"specviz_{component}")

    def has(self, component: str) -> bool:
        return any(e.proto.component_name == f"specviz_{component}" for e in self.test.get("bidi_component"))

    @property
    def rounds(self) -> list[dict[str, Any]]:
        elements = [e.proto for e in self.test.get("bidi_component")]
        chunks = [json.loads(e.json)[0] for e in elements if e.component_name == "specviz_run_data"]
        return [round_ for chunk in sorted(chunks, key=lambda c: c["index"]) for round_ in chunk["chunk"]["rounds"]]

    @property
    def moments(self) -> list[Any]:
        return [event for round_ in self.rounds for event in round_["events"]]

    @property
    def label(self) -> str:
        return self.moments[self.data("strip")["moment"]][0]

    @property
    def badges(self) -> list[str]:
        return self.data("badges")["badges"]

    @property
    def message(self) -> str:
        return " ".join(warning.value for warning in self.test.warning)
