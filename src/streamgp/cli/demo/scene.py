"""What every scene of the demonstration has."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from matplotlib.axes import Axes

__all__ = ["AbstractScene", "Track"]

# Goes through the steps of a scene, and shows how far it has come.
Track = Callable[[Sequence[Any]], Iterable[Any]]


class AbstractScene(ABC):
    """What a scene found out; it was played by the function beside it."""

    @abstractmethod
    def sentences(self) -> str:
        """What happened, in words."""

    @abstractmethod
    def draw(self, left: Axes, right: Axes) -> None:
        """Draw two panels."""
