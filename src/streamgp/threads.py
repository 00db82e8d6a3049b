"""Threads of the numerical libraries, limited where a loop alternates between them.

torch brings OpenMP, NumPy and SciPy bring OpenBLAS. Threads that wait for work spin for a while, so that those of one
library take the processor from those of the other: on two cores, a loop that alternates between SciPy and torch takes
several times as long as with one thread in SciPy.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from threading import Lock
from typing import NamedTuple

import scipy.linalg.lapack  # noqa: F401 so that its library is loaded, and found
import torch
from threadpoolctl import ThreadpoolController

__all__ = ["limit_threads"]

# Multiplications of an evaluation, about n m^2, from which a second thread of torch pays. Measured on two cores:
# below, waiting for the other thread costs more than it does.
_WORTH_A_THREAD = 3e7


@contextmanager
def limit_threads(num_multiplications: float = 0.0) -> Iterator[None]:
    """Use one thread in NumPy and SciPy for the length of a loop, and one in torch if its operations are small.

    What was set before is restored at the end, also after an error. May be nested, and entered by several threads of
    Python at once: OpenBLAS, whose setting is that of the process, is restored when the last one leaves. A thread that
    first uses torch meanwhile starts with the limit of this one, as torch hands its setting on. Takes some
    microseconds, and some milliseconds the first time.

    Args:
        num_multiplications: About how many each step of the loop does in its largest operation.
    """
    num_before = torch.get_num_threads()
    is_small = num_multiplications < _WORTH_A_THREAD and num_before > 1
    _BLAS.enter()
    try:
        if is_small:
            torch.set_num_threads(1)
        yield
    finally:
        if is_small:
            torch.set_num_threads(num_before)
        _BLAS.leave()


class _SharedLimit:
    """One thread in the OpenBLAS of NumPy and SciPy while at least one loop asks for it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._num_loops = 0
        self._libraries: list[_Library] | None = None
        self._before: list[int] = []

    def renew(self) -> None:
        """Replace the lock in a forked child, where the thread that held it is not there."""
        self._lock = Lock()

    def enter(self) -> None:
        with self._lock:
            if self._num_loops == 0:
                if self._libraries is None:
                    self._libraries = _libraries_beside_torch()
                self._before = [library.get_num_threads() for library in self._libraries]
                for library in self._libraries:
                    library.set_num_threads(1)
            self._num_loops += 1

    def leave(self) -> None:
        with self._lock:
            self._num_loops -= 1
            if self._num_loops == 0:
                for library, num_threads in zip(self._libraries or [], self._before, strict=True):
                    library.set_num_threads(num_threads)


class _Library(NamedTuple):
    """Functions of one OpenBLAS; threadpoolctl's own refuse to restore what another thread has limited."""

    get_num_threads: Callable[[], int]
    set_num_threads: Callable[[int], None]


def _libraries_beside_torch() -> list[_Library]:
    """Every OpenBLAS of this process with threads of its own that torch does not use; to look takes milliseconds."""
    home, found = Path(torch.__file__).parent, []
    for library in ThreadpoolController().select(internal_api="openblas").lib_controllers:
        if library.threading_layer == "pthreads" and home not in Path(library.filepath).parents:
            for prefix, suffix in product(("", "scipy_"), ("", "64_", "_64")):  # as the wheels rename them
                getter = getattr(library.dynlib, f"{prefix}openblas_get_num_threads{suffix}", None)
                setter = getattr(library.dynlib, f"{prefix}openblas_set_num_threads{suffix}", None)
                if getter is not None and setter is not None:
                    found.append(_Library(getter, setter))
                    break
    return found


_BLAS = _SharedLimit()
if hasattr(os, "register_at_fork"):  # there is no fork on Windows
    os.register_at_fork(after_in_child=_BLAS.renew)
