"""What can be set, as columns of numbers between 0 and 1."""

from abc import ABC, abstractmethod
from typing import Any

from jaxtyping import Float
from torch import Tensor

__all__ = ["AbstractParameter"]


class AbstractParameter(ABC):
    """A parameter as columns of numbers between 0 and 1."""

    @property
    def num_columns(self) -> int:
        """Number of columns."""
        return 1

    @property
    @abstractmethod
    def num_values(self) -> int | None:
        """Number of values; None where they are not discrete."""

    @abstractmethod
    def encode(self, value: Any, name: str) -> list[float]:
        """Columns of a value, checked; errors call the parameter by its name."""

    @abstractmethod
    def decode(self, columns: Float[Tensor, " c"]) -> Any:
        """The value nearest to columns."""

    @abstractmethod
    def snap(self, columns: Float[Tensor, "*b c"]) -> Float[Tensor, "*b c"]:
        """Move columns to those of the nearest value; without gradient where values are discrete."""

    @abstractmethod
    def all_columns(self) -> Float[Tensor, "k c"]:
        """Columns of all values of a discrete parameter, in order."""

    @abstractmethod
    def alternatives(self, columns: Float[Tensor, " c"]) -> Float[Tensor, "k c"]:
        """Columns of other values of a discrete parameter that a search may try."""
