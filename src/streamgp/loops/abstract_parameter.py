"""Parameters as columns of numbers between 0 and 1."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["AbstractGridParameter", "AbstractParameter", "NumberGrid"]

# Up to so many values are all tried by the search for discrete parameters; of more, those at doubling distances.
_MOST_TRIED = 32


class AbstractParameter(ABC):
    """A parameter as columns of numbers between 0 and 1."""

    @property
    def num_columns(self) -> int:
        """Number of columns."""
        return 1

    @property
    def direction(self) -> float:
        """One if the first outcome is known to rise with it, minus one if it falls, zero if it is not known."""
        return 0.0

    @property
    @abstractmethod
    def num_values(self) -> int | None:
        """Number of values; None where they are not discrete."""

    @abstractmethod
    def encode(self, value: Any, name: str, *, is_told: bool = False) -> list[float]:
        """Columns of a value, checked; errors call the parameter by its name.

        Args:
            value: Of the parameter.
            name: Of the parameter.
            is_told: Whether the value was tried, so that it may be outside the range, where columns are outside the
                unit interval; if not, it has to be one that can be set.
        """

    @abstractmethod
    def decode(self, columns: Float[Tensor, " c"]) -> Any:
        """The value nearest to columns."""

    def stretch(self, columns: Float[Tensor, "n c"]) -> Float[Tensor, "n c"] | None:
        """Slopes of the value in its column; None where values are discrete, so that there are no slopes."""
        return None

    @abstractmethod
    def snap(self, columns: Float[Tensor, "*b c"]) -> Float[Tensor, "*b c"]:
        """Move columns to those of the nearest value; without gradient where values are discrete."""

    def settle(self, columns: Float[Tensor, "*b c"]) -> Float[Tensor, "*b c"]:
        """Move columns to those of the nearest value that can be set, which what was told may not be."""
        return self.snap(columns.clamp(0.0, 1.0))

    @abstractmethod
    def all_columns(self) -> Float[Tensor, "k c"]:
        """Columns of all values of a discrete parameter that can be set, in order."""

    @abstractmethod
    def alternatives(self, columns: Float[Tensor, " c"]) -> Float[Tensor, "k c"]:
        """Columns of other values of a discrete parameter that a search may try."""


@final
@dataclass(frozen=True)
class NumberGrid:
    """Numbers at equal steps, each in the middle of its share of the interval, or of that of logarithms.

    Attributes:
        low: Least value.
        high: Greatest value.
        step: Distance of values.
        is_log: Whether logarithms are what matters.
    """

    low: float
    high: float
    step: float
    is_log: bool

    @property
    def num_values(self) -> int:
        """Number of values."""
        # Where the range is no multiple of the step, what is left of it is not used.
        return int((self.high - self.low) / self.step + 1e-9) + 1

    def encode(self, value: float) -> list[float]:
        """Position of the value nearest to a number; a number beyond all values keeps a position of its own."""
        if self.is_log:
            low, high = self._log_ends()
            position = (math.log(value) - low) / (high - low)
        else:
            position = ((value - self.low) / self.step + 0.5) / self.num_values
        if self.low <= value <= self.high:  # what is left of the range beyond the last step belongs to it
            position = min(max(position, 0.0), 1.0)
        return [float(self.snap(torch.tensor([position], dtype=torch.float64)))]

    def decode(self, columns: Float[Tensor, " c"]) -> float:
        """The value nearest to a position."""
        position = float(columns)
        if 0.0 <= position <= 1.0:
            value = min(self.low + int(self._index(columns)) * self.step, self.high)
        elif self.is_log:
            low, high = self._log_ends()
            value = math.exp(low + position * (high - low))
        else:
            value = self.low + (position * self.num_values - 0.5) * self.step
        # Rounded, as 0.1 + 2 * 0.1 is not what a person would set.
        return float(f"{value:.12g}")

    def snap(self, columns: Float[Tensor, "*b c"]) -> Float[Tensor, "*b c"]:
        """Move positions to those of the nearest value; without gradient. Those beyond all values stay."""
        u = columns.detach()
        return torch.where((u < 0.0) | (u > 1.0), u, self._position(self._index(u)))

    def all_columns(self) -> Float[Tensor, "k c"]:
        """Positions of all values, in order."""
        return self._position(torch.arange(self.num_values, dtype=torch.float64)).unsqueeze(-1)

    def alternatives(self, columns: Float[Tensor, " c"]) -> Float[Tensor, "k c"]:
        """Positions of other values that a search may try."""
        index = self._index(columns)
        if self.num_values <= _MOST_TRIED:
            others = torch.arange(self.num_values, dtype=columns.dtype)
        else:
            distances = 2.0 ** torch.arange(math.ceil(math.log2(self.num_values)), dtype=columns.dtype)
            others = torch.cat([index - distances, index + distances])
        is_other = (others >= 0) & (others < self.num_values) & (others != index)
        return self._position(others[is_other]).unsqueeze(-1)

    def _index(self, u: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Number of the value whose share of the interval a position is in."""
        if self.is_log:
            low, high = self._log_ends()
            index = ((low + u * (high - low)).exp() - self.low).div(self.step).round()
        else:
            index = (u * self.num_values).floor()
        return index.clamp(0, self.num_values - 1)

    def _position(self, index: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        if not self.is_log:
            return (index + 0.5) / self.num_values
        low, high = self._log_ends()
        return ((self.low + self.step * index).log() - low) / (high - low)

    def _log_ends(self) -> tuple[float, float]:
        half = 0.5 * min(self.step, self.low)  # a step may be larger than the least value
        return math.log(self.low - half), math.log(self.high + 0.5 * self.step)


class AbstractGridParameter(AbstractParameter):
    """A parameter of numbers at equal steps."""

    @property
    @abstractmethod
    def _grid(self) -> NumberGrid:
        """The numbers."""

    @property
    def num_values(self) -> int:
        """Number of values."""
        return self._grid.num_values

    def snap(self, columns: Float[Tensor, "*b c"]) -> Float[Tensor, "*b c"]:
        """Move columns to the nearest number."""
        return self._grid.snap(columns)

    def all_columns(self) -> Float[Tensor, "k c"]:
        """Columns of all numbers."""
        return self._grid.all_columns()

    def alternatives(self, columns: Float[Tensor, " c"]) -> Float[Tensor, "k c"]:
        """Columns of other numbers that a search may try."""
        return self._grid.alternatives(columns)
