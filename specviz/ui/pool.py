"""One device, many visitors."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import streamlit as st


class Pool:
    """First come, first served: one step at a time on the device, and runs that were abandoned leave the queue."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[object] = deque()

    @contextmanager
    def turn(self, while_waiting: Callable[[int], object], poll_s: float = 0.1) -> Iterator[None]:
        """Hold the device for one step.

        ``while_waiting(before)`` is called every ``poll_s`` seconds with the number of visitors ahead. It should make a
        Streamlit call: a script run that was abandoned ends there, and its ticket goes with it.
        """
        ticket = object()
        with self._changed:
            self._waiting.append(ticket)
        try:
            while True:
                with self._changed:
                    if self._waiting[0] is not ticket:
                        self._changed.wait(poll_s)
                    before = self._waiting.index(ticket)
                if before == 0:
                    break
                while_waiting(before)
            yield
        finally:
            with self._changed:
                self._waiting.remove(ticket)
                self._changed.notify_all()


@st.cache_resource(show_spinner=False)
def device_pool() -> Pool:
    """The pool of this process."""
    return Pool()
