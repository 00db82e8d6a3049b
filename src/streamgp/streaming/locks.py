"""One lock for each estimator: two threads that learn at the same time lose no row."""

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
