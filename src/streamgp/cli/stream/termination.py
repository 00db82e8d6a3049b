"""Ending a stream by SIGTERM: after the rows at hand, or at once while it waits for more."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar, final

__all__ = ["Terminated", "Termination"]

Item = TypeVar("Item")


class Terminated(BaseException):
    """The process was asked to end."""


@final
class Termination:
    """Notes that the process was asked to end, and interrupts only what can be read again."""

    def __init__(self) -> None:
        """Begin unasked, when nothing would be lost yet."""
        self._is_asked, self._is_waiting = False, True

    @contextmanager
    def heeded(self) -> Iterator[None]:
        """Heed SIGTERM; only the main thread can."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before: Any = signal.signal(signal.SIGTERM, self._note)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, before)

    def waiting_for(self, items: Iterator[Item]) -> Iterator[Item]:
        """Pass on items; while one is waited for, a request to end is heeded at once.

        Raises:
            Terminated: If the process was asked to end.
        """
        while True:
            self._is_waiting = True
            try:
                if self._is_asked:
                    raise Terminated
                item = next(items, None)
            finally:
                self._is_waiting = False
            if item is None:
                return
            yield item

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._is_asked = True
        if self._is_waiting:
            raise Terminated
