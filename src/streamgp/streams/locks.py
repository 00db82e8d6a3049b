"""One lock for each estimator: two threads that learn at the same time lose no row."""

import os
import threading
from contextlib import AbstractContextManager
from weakref import WeakKeyDictionary

__all__ = ["lock_of"]

# Locks cannot be copied or pickled with estimators, so they live beside them.
_LOCKS: WeakKeyDictionary[object, AbstractContextManager[object]] = WeakKeyDictionary()
_GUARD = threading.Lock()


def lock_of(estimator: object) -> AbstractContextManager[object]:
    """The lock under which an estimator learns."""
    with _GUARD:
        return _LOCKS.setdefault(estimator, threading.RLock())


def _forget_locks() -> None:
    """Begin with new locks in a forked process: threads that held the old ones do not exist there."""
    global _LOCKS, _GUARD
    _LOCKS, _GUARD = WeakKeyDictionary(), threading.Lock()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_forget_locks)
