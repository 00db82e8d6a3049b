"""How the values of one parameter lie in the unit interval, or on the corners of a cube."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, final

import torch
from jaxtyping import Float
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from torch import Tensor

from streamgp.errors import UnsupportedError

__all__ = ["AbstractAxis", "ChoiceAxis", "GridAxis", "RangeAxis", "read_axis"]

# Up to so many values are all tried by the search for discrete parameters; of more, those at doubling distances.
_MOST_TRIED = 32


class AbstractAxis(ABC):
    """A parameter as columns of numbers between 0 and 1."""

    @property
    @abstractmethod
    def num_columns(self) -> int:
        """Number of columns."""

    @property
    @abstractmethod
    def num_values(self) -> int | None:
        """Number of values; None where they are not discrete."""

    @abstractmethod
    def encode(self, value: Any) -> list[float]:
        """Columns of a value."""

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


@final
@dataclass(frozen=True)
class RangeAxis(AbstractAxis):
    """Real numbers between two ends, or their logarithms.

    Attributes:
        low: Least value.
        high: Greatest value.
        is_log: Whether logarithms are spread evenly.
    """

    low: float
    high: float
    is_log: bool
    num_columns = 1
    num_values = None

    def encode(self, value: float) -> list[float]:
        low, high, v = (_logarithm(x, self.is_log) for x in (self.low, self.high, value))
        return [(v - low) / (high - low)]

    def decode(self, columns: Float[Tensor, " c"]) -> float:
        low, high = (_logarithm(x, self.is_log) for x in (self.low, self.high))
        v = low + float(columns) * (high - low)
        return min(max(math.exp(v) if self.is_log else v, self.low), self.high)

    def snap(self, columns: Float[Tensor, "*b c"]) -> Float[Tensor, "*b c"]:
        return columns

    def all_columns(self) -> Float[Tensor, "k c"]:
        raise UnsupportedError("A parameter without steps has more values than could be listed. Ask for discrete ones.")

    def alternatives(self, columns: Float[Tensor, " c"]) -> Float[Tensor, "k c"]:
        return columns.new_empty(0, 1)


@final
@dataclass(frozen=True)
class GridAxis(AbstractAxis):
    """Numbers at equal steps, each in the middle of its share of the interval; shares are of logarithms if asked for.

    Attributes:
        low: Least value.
        high: Greatest value.
        step: Distance of neighbours.
        is_integer: Whether values are whole numbers.
        is_log: Whether logarithms are spread evenly.
    """

    low: float
    high: float
    step: float
    is_integer: bool
    is_log: bool
    num_columns = 1

    @property
    def num_values(self) -> int:
        """Number of values."""
        return round((self.high - self.low) / self.step) + 1

    def encode(self, value: float) -> list[float]:
        index = torch.tensor([round((value - self.low) / self.step)], dtype=torch.float64)
        return [float(self._position(index))]

    def decode(self, columns: Float[Tensor, " c"]) -> int | float:
        index = int(self._index(columns))
        if self.is_integer:
            return int(self.low) + index * int(self.step)
        return min(self.low + index * self.step, self.high)

    def snap(self, columns: Float[Tensor, "*b c"]) -> Float[Tensor, "*b c"]:
        return self._position(self._index(columns.detach()))

    def all_columns(self) -> Float[Tensor, "k c"]:
        return self._position(torch.arange(self.num_values, dtype=torch.float64)).unsqueeze(-1)

    def alternatives(self, columns: Float[Tensor, " c"]) -> Float[Tensor, "k c"]:
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
        half = 0.5 * self.step
        return math.log(self.low - half), math.log(self.high + half)


@final
@dataclass(frozen=True)
class ChoiceAxis(AbstractAxis):
    """Categories, one column for each, of which one is 1 and the others are 0.

    Attributes:
        distribution: The categories.
    """

    distribution: CategoricalDistribution

    @property
    def num_columns(self) -> int:
        """Number of categories."""
        return len(self.distribution.choices)

    @property
    def num_values(self) -> int:
        """Number of categories."""
        return self.num_columns

    def encode(self, value: Any) -> list[float]:
        index = int(self.distribution.to_internal_repr(value))
        return [float(j == index) for j in range(self.num_columns)]

    def decode(self, columns: Float[Tensor, " c"]) -> Any:
        return self.distribution.to_external_repr(float(columns.argmax()))

    def snap(self, columns: Float[Tensor, "*b c"]) -> Float[Tensor, "*b c"]:
        index = columns.detach().argmax(-1)
        return torch.nn.functional.one_hot(index, self.num_columns).to(columns)

    def all_columns(self) -> Float[Tensor, "k c"]:
        return torch.eye(self.num_columns, dtype=torch.float64)

    def alternatives(self, columns: Float[Tensor, " c"]) -> Float[Tensor, "k c"]:
        return self.all_columns()[torch.arange(self.num_columns) != columns.argmax()]


def read_axis(distribution: BaseDistribution) -> AbstractAxis:
    """The axis of a distribution of Optuna that has more than one value."""
    if isinstance(distribution, CategoricalDistribution):
        return ChoiceAxis(distribution)
    if isinstance(distribution, FloatDistribution) and distribution.step is None:
        return RangeAxis(distribution.low, distribution.high, distribution.log)
    if isinstance(distribution, IntDistribution | FloatDistribution):
        low, high, step = float(distribution.low), float(distribution.high), float(distribution.step or 1.0)
        return GridAxis(low, high, step, isinstance(distribution, IntDistribution), distribution.log)
    raise UnsupportedError(
        f"Parameters are floats, integers or categories, but one has a {type(distribution).__name__}. "
        "Use suggest_float, suggest_int or suggest_categorical."
    )


def _logarithm(value: float, is_log: bool) -> float:
    return math.log(value) if is_log else value
