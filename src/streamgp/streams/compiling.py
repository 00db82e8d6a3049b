"""Functions of numbers and arrays, compiled by numba where it is installed and kept on disk where that is possible."""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

__all__ = ["HAS_NUMBA", "announced", "compiled_function", "compiled_part"]

try:
    from numba import njit
    from numba.core import event

    HAS_NUMBA = True
except ImportError:  # pragma: no cover - numba is a dependency, but has no wheels for some machines
    HAS_NUMBA = False

# Sums may be reordered, and nothing is assumed of infinities and NaN.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"reassoc", "contract", "arcp", "nsz"}}


def compiled_function(function: Callable[..., Any]) -> Any:
    """Compile a function when it is first called, and keep it on disk; without numba it stays as it is."""
    if not HAS_NUMBA:
        return function
    try:
        return njit(cache=True, **_OPTIONS)(function)
    except RuntimeError:  # no directory for the cache can be written to: compiled anew in each process
        return njit(**_OPTIONS)(function)


def compiled_part(function: Callable[..., Any]) -> Any:
    """Compile a function that only compiled functions call; to be called from Python would take twice the time."""
    lean: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return njit(**lean, **_OPTIONS)(function) if HAS_NUMBA else function


def announced(line: str) -> AbstractContextManager[Any]:
    """Write a line as soon as something begins to be compiled within; what was kept on disk is not."""
    if not HAS_NUMBA:
        return nullcontext()

    class Announcement(event.Listener):
        was_written = False

        def on_start(self, event: Any) -> None:
            if not self.was_written:
                sys.stderr.write(f"{line}\n")
                sys.stderr.flush()
            self.was_written = True

        def on_end(self, event: Any) -> None:
            """Do nothing: the line was about the beginning."""

    installed: AbstractContextManager[Any] = event.install_listener("numba:compile", Announcement())
    return installed
