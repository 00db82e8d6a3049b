"""Parameters: numbers, whole numbers, ordered values and categories, as parts of the unit interval."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.checks import check_choice
from streamgp.errors import ArgumentTypeError, UnsupportedError, ValueRangeError
from streamgp.loops.abstract_parameter import AbstractGridParameter, AbstractParameter, NumberGrid
from streamgp.storage import register

__all__ = ["Categorical", "Integer", "Ordinal", "Real"]

# How far outside its range a value may be, relative to its width, and still be taken for one of its ends: rounding.
_ROUNDING = 1e-6
_DIRECTIONS = {"increasing": 1.0, "decreasing": -1.0}
# Beyond, doubles are more than one apart.
_LARGEST_INTEGER = 2**53
# Digits of a value, beside those of its range: two less than a double has, which rounding may change.
_DIGITS = 13


@register
@final
@dataclass(frozen=True)
class Real(AbstractParameter):
    """A real number.

    ```python
    sg.Optimizer({"temperature": sg.Real(100, 180, step=5), "loading": sg.Real(1e-4, 1, log=True)}).ask()
    ```

    Attributes:
        low: Least value.
        high: Greatest value.
        log: Whether its logarithm is what matters: from 1e-4 to 1, say.
        step: Distance of the values that can be set, counted from the least; None for any. What is told between them is
            taken for the nearest.
        effect: `"increasing"` or `"decreasing"` if the first outcome is known to rise or fall with it, whatever the
            other parameters are: more contrast is easier to see.
    """

    low: float
    high: float
    log: bool = False
    step: float | None = None
    effect: str | None = None

    def __post_init__(self) -> None:
        """Check the range and the effect."""
        if self.effect is not None:
            check_choice(self.effect, tuple(_DIRECTIONS), "effect")
        _check_range(self.low, self.high, is_log=self.log, step=self.step)
        if self.step is not None and (self.high - self.low) / self.step >= _LARGEST_INTEGER:
            raise ValueRangeError(
                f"A step of {self.step:g} makes more values between {self.low:g} and {self.high:g} than a double can "
                "tell apart. Leave it out, so that any number can be set."
            )

    @property
    def direction(self) -> float:
        """One if the first outcome is known to rise with it, minus one if it falls, zero if it is not known."""
        return 0.0 if self.effect is None else _DIRECTIONS[self.effect]

    @property
    def num_values(self) -> int | None:
        """Number of steps; None where any number can be set."""
        return None if self.step is None else self._grid.num_values

    @property
    def _grid(self) -> NumberGrid:
        assert self.step is not None
        return NumberGrid(float(self.low), float(self.high), float(self.step), self.log)

    def encode(self, value: Any, name: str) -> list[float]:
        number = _read_number(value, self.low, self.high, name)
        if self.step is not None:
            return self._grid.encode(number)
        low, high, v = (_logarithm(x, self.log) for x in (self.low, self.high, number))
        return [min(max((v - low) / (high - low), 0.0), 1.0)]

    def decode(self, columns: Float[Tensor, " c"]) -> float:
        if self.step is not None:
            return self._grid.decode(columns)
        low, high = (_logarithm(x, self.log) for x in (self.low, self.high))
        v = low + float(columns) * (high - low)
        return min(max(_rounded(math.exp(v) if self.log else v, self), self.low), self.high)

    def stretch(self, columns: Float[Tensor, "n c"]) -> Float[Tensor, "n c"] | None:
        if self.step is not None:
            return None
        if not self.log:
            return torch.full_like(columns, self.high - self.low)
        rate = math.log(self.high / self.low)
        return self.low * rate * (rate * columns).exp()

    def snap(self, columns: Float[Tensor, "*b c"]) -> Float[Tensor, "*b c"]:
        return columns if self.step is None else self._grid.snap(columns)

    def all_columns(self) -> Float[Tensor, "k c"]:
        if self.step is None:
            raise UnsupportedError("A real number without steps has more values than could be listed. Give it a step.")
        return self._grid.all_columns()

    def alternatives(self, columns: Float[Tensor, " c"]) -> Float[Tensor, "k c"]:
        return columns.new_empty(0, 1) if self.step is None else self._grid.alternatives(columns)


@register
@final
@dataclass(frozen=True)
class Integer(AbstractGridParameter):
    """A whole number.

    ```python
    sg.Optimizer({"stirrers": sg.Integer(1, 4), "layers": sg.Integer(8, 256, log=True)}).ask()
    ```

    Attributes:
        low: Least value.
        high: Greatest value.
        log: Whether its logarithm is what matters.
        step: Distance of the values that can be set, counted from the least.
    """

    low: int
    high: int
    log: bool = False
    step: int = 1

    def __post_init__(self) -> None:
        """Check the range."""
        _check_range(self.low, self.high, is_log=self.log, step=self.step)
        for value in (self.low, self.high, self.step):
            if int(value) != value:
                raise ValueRangeError(f"Integer takes whole numbers, but has {value!r}. Use Real with a step.")
            if abs(value) > _LARGEST_INTEGER:
                raise ValueRangeError(
                    f"Integer takes whole numbers up to 2 ** 53, which are known exactly, but has {value!r}. Use Real."
                )

    @property
    def _grid(self) -> NumberGrid:
        return NumberGrid(float(self.low), float(self.high), float(self.step), self.log)

    def encode(self, value: Any, name: str) -> list[float]:
        number = _read_number(value, self.low, self.high, name)
        if abs(number - round(number)) > _ROUNDING:
            raise ValueRangeError(
                f"The parameter {name!r} must be a whole number, but is {number:g}. Make it a Real with a step of 1, "
                "for which such values are taken for the nearest, or round it."
            )
        return self._grid.encode(number)

    def decode(self, columns: Float[Tensor, " c"]) -> int:
        return round(self._grid.decode(columns))


@register
@final
@dataclass(frozen=True)
class Ordinal(AbstractGridParameter):
    """One of a few values that have an order, at equal distances: small, medium, large, or bottles of 10, 50, 250 ml.

    ```python
    sg.Optimizer({"flask": sg.Ordinal([50, 100, 250]), "dose": sg.Ordinal(["low", "middle", "high"])}).ask()
    ```

    Attributes:
        values: In order.
    """

    values: tuple[Any, ...]

    def __init__(self, values: Sequence[Any]) -> None:
        """Keep the values.

        Args:
            values: In order; at least two.
        """
        object.__setattr__(self, "values", _read_choices(values, "Ordinal"))

    @property
    def _grid(self) -> NumberGrid:
        return NumberGrid(0.0, len(self.values) - 1.0, 1.0, False)

    def encode(self, value: Any, name: str) -> list[float]:
        return self._grid.encode(float(_index_of(value, self.values, name)))

    def decode(self, columns: Float[Tensor, " c"]) -> Any:
        return self.values[round(self._grid.decode(columns))]


@register
@final
@dataclass(frozen=True)
class Categorical(AbstractParameter):
    """One of a few values without an order; a column for each, of which one is 1 and the others are 0.

    ```python
    optimizer = sg.Optimizer({"solvent": sg.Categorical(["water", "ethanol"]), "hours": sg.Real(1, 8)})
    optimizer.ask(2, fixed={"solvent": "water"})
    ```

    Attributes:
        choices: The values.
    """

    choices: tuple[Any, ...]

    def __init__(self, choices: Sequence[Any]) -> None:
        """Keep the values.

        Args:
            choices: At least two.
        """
        object.__setattr__(self, "choices", _read_choices(choices, "Categorical"))

    @property
    def num_columns(self) -> int:
        """One for each value."""
        return len(self.choices)

    @property
    def num_values(self) -> int:
        """Number of values."""
        return len(self.choices)

    def encode(self, value: Any, name: str) -> list[float]:
        index = _index_of(value, self.choices, name)
        return [float(j == index) for j in range(len(self.choices))]

    def decode(self, columns: Float[Tensor, " c"]) -> Any:
        return self.choices[int(columns.argmax())]

    def snap(self, columns: Float[Tensor, "*b c"]) -> Float[Tensor, "*b c"]:
        index = columns.detach().argmax(-1)
        return torch.nn.functional.one_hot(index, len(self.choices)).to(columns)

    def all_columns(self) -> Float[Tensor, "k c"]:
        return torch.eye(len(self.choices), dtype=torch.float64)

    def alternatives(self, columns: Float[Tensor, " c"]) -> Float[Tensor, "k c"]:
        return self.all_columns()[torch.arange(len(self.choices)) != columns.argmax()]


def _check_range(low: Any, high: Any, *, is_log: bool, step: Any) -> None:
    numbers = [low, high] if step is None else [low, high, step]
    if not all(isinstance(one, int | float) and not isinstance(one, bool) and math.isfinite(one) for one in numbers):
        raise ArgumentTypeError(f"The range of a parameter must be finite numbers, but goes from {low!r} to {high!r}.")
    if not low < high:
        raise ValueRangeError(
            f"The least value of a parameter must be below the greatest, but it goes from {low:g} to {high:g}. Leave a "
            "parameter out that has one value, or use ask(fixed=...)."
        )
    if not math.isfinite(high - low):
        raise ValueRangeError(f"A range must have a finite width, but goes from {low:g} to {high:g}. Narrow it.")
    if is_log and low <= 0:
        raise ValueRangeError(f"A parameter on a logarithmic scale must be positive, but goes from {low:g}.")
    if step is not None and not 0 < step <= high - low:
        raise ValueRangeError(f"A step must be positive and fit into the range {low:g} to {high:g}, but is {step:g}.")


def _read_number(value: Any, low: float, high: float, name: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ArgumentTypeError(f"The parameter {name!r} must be a number, but is {value!r}.") from None
    slack = _ROUNDING * (high - low)
    if not low - slack <= number <= high + slack:
        raise ValueRangeError(
            f"The parameter {name!r} must lie between {low:g} and {high:g}, but is {number:g}. Leave such points out, "
            "or make the optimizer with a wider range."
        )
    return min(max(number, low), high)


def _read_choices(values: Any, name: str) -> tuple[Any, ...]:
    if not isinstance(values, Sequence) or isinstance(values, str):
        raise ArgumentTypeError(
            f"{name} takes a list of values, but got {values!r}. Write {name}(['water', 'ethanol'])."
        )
    if len(values) < 2:
        raise ValueRangeError(f"{name} needs at least two values, but has {list(values)}.")
    for i, value in enumerate(values):
        if any(type(other) is type(value) and other == value for other in values[:i]):
            raise ValueRangeError(f"{name} needs different values, but {value!r} comes more than once.")
    return tuple(values)


def _index_of(value: Any, values: tuple[Any, ...], name: str) -> int:
    """Find a value: one of the same type if there is one, else an equal one, else one that reads alike."""
    same = [one is value or (type(one) is type(value) and one == value) for one in values]
    equal, alike = [bool(one == value) for one in values], [str(one) == str(value) for one in values]
    for found in (same, equal, alike):
        if True in found:
            return found.index(True)
    raise ValueRangeError(f"The parameter {name!r} must be one of {list(values)}, but is {value!r}.")


def _rounded(value: float, parameter: Real) -> float:
    """Without the last digits, so that 0.1 is 0.1 after its way to the unit interval and back."""
    decimals = _DIGITS - math.floor(math.log10(parameter.high - parameter.low))
    if parameter.log:  # as many digits where values are small
        decimals = max(decimals, _DIGITS - math.floor(math.log10(value)))
    return round(value, decimals)


def _logarithm(value: float, is_log: bool) -> float:
    return math.log(value) if is_log else value
