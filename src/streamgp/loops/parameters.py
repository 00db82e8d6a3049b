"""Parameters: numbers, whole numbers, ordered values and categories, as parts of the unit interval."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.checks import check_choice, check_finite, to_double
from streamgp.errors import ArgumentTypeError, ShapeError, UnsupportedError, ValueRangeError
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

    def encode(self, value: Any, name: str, *, is_told: bool = False) -> list[float]:
        number = _read_number(value, self, name, is_told=is_told)
        if self.step is not None:
            return self._grid.encode(number)
        low, high, v = (_logarithm(x, self.log) for x in (self.low, self.high, number))
        position = (v - low) / (high - low)
        return [min(max(position, 0.0), 1.0) if self.low <= number <= self.high else position]

    def decode(self, columns: Float[Tensor, " c"]) -> float:
        if self.step is not None:
            return self._grid.decode(columns)
        low, high = (_logarithm(x, self.log) for x in (self.low, self.high))
        v = low + float(columns) * (high - low)
        value = _rounded(math.exp(v) if self.log else v, self)
        return min(max(value, self.low), self.high) if 0.0 <= float(columns) <= 1.0 else value

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

    def encode(self, value: Any, name: str, *, is_told: bool = False) -> list[float]:
        number = _read_number(value, self, name, is_told=is_told)
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
        retired: Those among them that were tried and are not suggested any more.
    """

    values: tuple[Any, ...]
    retired: tuple[Any, ...] = ()

    def __init__(self, values: Sequence[Any], retired: Sequence[Any] = ()) -> None:
        """Keep the values.

        Args:
            values: In order; at least two.
            retired: Those among them that may be told, and are not suggested any more.
        """
        object.__setattr__(self, "values", _read_choices(values, "Ordinal"))
        object.__setattr__(self, "retired", _read_retired(retired, self.values, "Ordinal"))

    def keeping(self, told: Sequence[Any]) -> "Ordinal":
        """Return it with values that were told, in the order of before, as retired ones where it lacks them."""
        values = list(self.values)
        for before, value in zip([None, *told], told, strict=False):
            if not any(_is_same(value, one) for one in values):
                place = [i for i, one in enumerate(values) if _is_same(before, one)]
                values.insert(place[0] + 1 if place else 0, value)
        return Ordinal(values, (*self.retired, *_values_beside(values, self.values)))

    @property
    def num_values(self) -> int:
        """Number of values that are suggested."""
        return len(self.values) - len(self.retired)

    @property
    def _grid(self) -> NumberGrid:
        return NumberGrid(0.0, len(self.values) - 1.0, 1.0, False)

    def encode(self, value: Any, name: str, *, is_told: bool = False) -> list[float]:
        return self._grid.encode(float(_index_of(value, self.values, name, () if is_told else self.retired)))

    def decode(self, columns: Float[Tensor, " c"]) -> Any:
        return self.values[round(self._grid.decode(columns))]

    def settle(self, columns: Float[Tensor, "*b c"]) -> Float[Tensor, "*b c"]:
        return _nearest(self.all_columns(), columns) if self.retired else self.snap(columns)

    def all_columns(self) -> Float[Tensor, "k c"]:
        return super().all_columns()[_kept(self.values, self.retired)]

    def alternatives(self, columns: Float[Tensor, " c"]) -> Float[Tensor, "k c"]:
        return _others(self.all_columns(), columns)


@register
@final
@dataclass(frozen=True)
class Categorical(AbstractParameter):
    """One of a few values without an order; a column for each, of which one is 1 and the others are 0.

    ```python
    optimizer = sg.Optimizer({"solvent": sg.Categorical(["water", "ethanol"]), "hours": sg.Real(1, 8)})
    optimizer.ask(2, fixed={"solvent": "water"})
    ```

    Substances and other values of which numbers are known have these as columns instead, so that the model learns from
    what is alike:

    ```python
    polarity = {"water": [10.2, 18.0], "ethanol": [5.2, 46.1], "acetone": [5.1, 58.1]}
    sg.Optimizer({"solvent": sg.Categorical(list(polarity), descriptors=polarity)}).ask()
    ```

    Attributes:
        choices: The values.
        retired: Those among them that were tried and are not suggested any more.
        descriptors: Numbers of each value, in their order; empty where none are known.
    """

    choices: tuple[Any, ...]
    retired: tuple[Any, ...] = ()
    descriptors: tuple[tuple[float, ...], ...] = ()

    def __init__(self, choices: Sequence[Any], retired: Sequence[Any] = (), descriptors: Any = ()) -> None:
        """Keep the values.

        Args:
            choices: At least two.
            retired: Those among them that may be told, and are not suggested any more.
            descriptors: Numbers that describe each value, by value or in their order, on any scale.
        """
        object.__setattr__(self, "choices", _read_choices(choices, "Categorical"))
        object.__setattr__(self, "retired", _read_retired(retired, self.choices, "Categorical"))
        object.__setattr__(self, "descriptors", _read_descriptors(descriptors, self.choices))

    def keeping(self, told: Sequence[Any]) -> "Categorical":
        """Return it with values that were told, as retired ones where it lacks them."""
        new = _values_beside(told, self.choices)
        if new and self.descriptors:
            raise ValueRangeError(
                f"{new[0]!r} was told, but has no descriptors now. Keep it among the choices, as one of retired=[...]."
            )
        return Categorical((*self.choices, *new), (*self.retired, *new), self.descriptors)

    @cached_property
    def _rows(self) -> Float[Tensor, "k c"]:
        """Columns of all values, retired ones included."""
        if not self.descriptors:
            return torch.eye(len(self.choices), dtype=torch.float64)
        rows = torch.tensor(self.descriptors, dtype=torch.float64)
        low, high = rows.amin(0), rows.amax(0)
        return (rows - low)[:, high > low] / (high - low)[high > low]

    @property
    def num_columns(self) -> int:
        """One for each descriptor that differs, or for each value."""
        return self._rows.shape[-1]

    @property
    def num_values(self) -> int:
        """Number of values that are suggested."""
        return len(self.choices) - len(self.retired)

    def encode(self, value: Any, name: str, *, is_told: bool = False) -> list[float]:
        index = _index_of(value, self.choices, name, () if is_told else self.retired)
        columns: list[float] = self._rows[index].tolist()
        return columns

    def decode(self, columns: Float[Tensor, " c"]) -> Any:
        return self.choices[int(torch.cdist(columns.unsqueeze(0), self._rows.to(columns)).argmin())]

    def snap(self, columns: Float[Tensor, "*b c"]) -> Float[Tensor, "*b c"]:
        if self.descriptors:
            return _nearest(self._rows, columns)
        return torch.nn.functional.one_hot(columns.detach().argmax(-1), len(self.choices)).to(columns)

    def settle(self, columns: Float[Tensor, "*b c"]) -> Float[Tensor, "*b c"]:
        return _nearest(self.all_columns(), columns) if self.retired else self.snap(columns)

    def all_columns(self) -> Float[Tensor, "k c"]:
        return self._rows[_kept(self.choices, self.retired)]

    def alternatives(self, columns: Float[Tensor, " c"]) -> Float[Tensor, "k c"]:
        return _others(self.all_columns(), columns)


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


def _read_number(value: Any, parameter: Real | Integer, name: str, *, is_told: bool) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ArgumentTypeError(f"The parameter {name!r} must be a number, but is {value!r}.") from None
    low, high = float(parameter.low), float(parameter.high)
    slack = _ROUNDING * (high - low)
    if low - slack <= number <= high + slack:
        return min(max(number, low), high)
    if not is_told:
        raise ValueRangeError(f"The parameter {name!r} must lie between {low:g} and {high:g}, but is {number:g}.")
    if not math.isfinite(number) or (parameter.log and number <= 0.0):
        raise ValueRangeError(
            f"The parameter {name!r} must be a {'positive' if parameter.log else 'finite'} number, but is {number:g}. "
            "Leave such points out."
        )
    return number


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


def _read_descriptors(descriptors: Any, choices: tuple[Any, ...]) -> tuple[tuple[float, ...], ...]:
    if isinstance(descriptors, Mapping):
        missing = [value for value in choices if value not in descriptors]
        if missing:
            raise ValueRangeError(f"Each value needs descriptors, but {missing[0]!r} has none.")
        descriptors = [descriptors[value] for value in choices]
    if len(descriptors) == 0:
        return ()
    rows = to_double(descriptors, "descriptors")
    if rows.dim() != 2 or len(rows) != len(choices):
        raise ShapeError(
            f"descriptors must have a row of numbers for each of the {len(choices)} values, but have shape "
            f"{tuple(rows.shape)}."
        )
    check_finite(rows, "descriptors")
    _, index, counts = torch.unique(rows, dim=0, return_inverse=True, return_counts=True)
    if bool((counts > 1).any()):
        same = [choices[i] for i in (counts[index] > 1).nonzero().flatten().tolist()]
        raise ValueRangeError(
            f"Values need different descriptors, but {same[0]!r} and {same[1]!r} are among those that share theirs. "
            "Add a descriptor that tells them apart."
        )
    return tuple(tuple(row) for row in rows.tolist())


def _read_retired(retired: Any, values: tuple[Any, ...], name: str) -> tuple[Any, ...]:
    if isinstance(retired, str) or not isinstance(retired, Sequence):
        raise ArgumentTypeError(f"retired must be a list of values of the {name}, but is {retired!r}.")
    found = tuple(values[_index_of(value, values, "retired")] for value in retired)
    if len(found) >= len(values):
        raise ValueRangeError(f"{name} needs a value that is not retired, but all of {list(values)} are.")
    return found


def _kept(values: tuple[Any, ...], retired: tuple[Any, ...]) -> list[int]:
    """Numbers of the values that are suggested."""
    return [i for i, value in enumerate(values) if not any(_is_same(value, other) for other in retired)]


def _values_beside(values: Sequence[Any], known: Sequence[Any]) -> list[Any]:
    """Return values that are not among those that are known."""
    return [value for value in values if not any(_is_same(value, one) for one in known)]


def _is_same(one: Any, other: Any) -> bool:
    """Tell whether two values are one: 1 and True are not."""
    return one is other or (type(one) is type(other) and bool(one == other))


def _nearest(rows: Float[Tensor, "k c"], columns: Float[Tensor, "*b c"]) -> Float[Tensor, "*b c"]:
    """Return the nearest of some rows."""
    points, rows = columns.detach().reshape(-1, rows.shape[-1]), rows.to(columns)
    distances = torch.cdist(points, rows, compute_mode="donot_use_mm_for_euclid_dist")
    return rows[distances.argmin(-1)].reshape(columns.shape).to(columns)


def _others(columns: Float[Tensor, "k c"], now: Float[Tensor, " c"]) -> Float[Tensor, "j c"]:
    """Rows that are not one of them."""
    return columns[((columns - now).abs() > _ROUNDING).any(-1)]


def _index_of(value: Any, values: tuple[Any, ...], name: str, refused: tuple[Any, ...] = ()) -> int:
    """Find a value: one of the same type if there is one, else an equal one, else one that reads alike.

    Args:
        value: Looked for.
        values: Where.
        name: Of the parameter.
        refused: Values that are retired, and cannot be set.
    """
    same = [_is_same(one, value) for one in values]
    equal, alike = [bool(one == value) for one in values], [str(one) == str(value) for one in values]
    for found in (same, equal, alike):
        if True in found and any(_is_same(values[found.index(True)], one) for one in refused):
            raise ValueRangeError(f"The value {value!r} of the parameter {name!r} is retired. Choose another one.")
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
