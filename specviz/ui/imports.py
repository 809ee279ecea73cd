"""NumPy, imported by one thread at a time.

Python locks modules one by one while it imports a package. Two threads that come to NumPy at once, the page's script
and the loader of the models, can each hold what the other needs; Python then hands out half a module rather than wait
for ever. Whoever may be the first calls :func:`numpy_first`.
"""

from __future__ import annotations

import importlib
import threading

_LOCK = threading.Lock()


def numpy_first() -> None:
    """Import NumPy and its array API wrapper, or wait until another thread has."""
    with _LOCK:
        importlib.import_module("array_api_compat.numpy")
