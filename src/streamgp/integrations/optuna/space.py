"""A search space of Optuna as a unit cube in which only some points are valid."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import torch
from botorch.models.transforms.input import InputTransform
from jaxtyping import Float
from optuna.distributions import BaseDistribution
from torch import Tensor

from streamgp.integrations.optuna.axes import AbstractAxis, read_axis

__all__ = ["SnapInputs", "Space"]


@final
@dataclass(frozen=True)
class Space:
    """Parameters by name, and the columns that hold each of them.

    Attributes:
        axes: Of all parameters, in the order of the columns.
    """

    axes: Mapping[str, AbstractAxis]

    @classmethod
    def read(cls, search_space: Mapping[str, BaseDistribution]) -> "Space":
        """Lay out the parameters of Optuna."""
        return cls({name: read_axis(one) for name, one in search_space.items()})

    @property
    def num_columns(self) -> int:
        """Dimension of the cube."""
        return sum(axis.num_columns for axis in self.axes.values())

    @property
    def is_continuous(self) -> bool:
        """Whether all points are valid."""
        return all(axis.num_values is None for axis in self.axes.values())

    @property
    def num_points(self) -> float:
        """Number of valid points; infinite if some parameter is continuous."""
        return math.prod(math.inf if axis.num_values is None else axis.num_values for axis in self.axes.values())

    def all_points(self) -> Float[Tensor, "n d"]:
        """All valid points of a finite space."""
        rows = torch.empty(1, 0, dtype=torch.float64)
        for axis in self.axes.values():
            columns = axis.all_columns()
            rows = torch.cat([rows.repeat_interleave(len(columns), 0), columns.repeat(len(rows), 1)], dim=-1)
        return rows

    def encode(self, params: Mapping[str, Any]) -> list[float]:
        """The point of given values, which may be of more parameters."""
        return [column for name, axis in self.axes.items() for column in axis.encode(params[name])]

    def decode(self, point: Float[Tensor, " d"]) -> dict[str, Any]:
        """The values nearest to a point."""
        parts = self._split(point)
        return {name: axis.decode(part) for (name, axis), part in zip(self.axes.items(), parts, strict=True)}

    def snap(self, X: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        """Move points to valid ones; gradients reach the continuous parameters only."""
        parts = self._split(X)
        return torch.cat([axis.snap(part) for axis, part in zip(self.axes.values(), parts, strict=True)], dim=-1)

    def neighbors(self, point: Float[Tensor, " d"]) -> Float[Tensor, "k d"]:
        """Points that differ in the value of one discrete parameter."""
        parts, rows = self._split(point), [point.new_empty(0, len(point))]
        for j, axis in enumerate(self.axes.values()):
            others = axis.alternatives(parts[j])
            before, after = torch.cat([point[:0], *parts[:j]]), torch.cat([*parts[j + 1 :], point[:0]])
            k = len(others)
            rows.append(torch.cat([before.expand(k, -1), others, after.expand(k, -1)], dim=-1))
        return torch.cat(rows)

    def _split(self, X: Float[Tensor, "*b d"]) -> tuple[Tensor, ...]:
        return X.split([axis.num_columns for axis in self.axes.values()], dim=-1)


@final
class SnapInputs(InputTransform):
    """The input transform with which a model sees only valid points."""

    transform_on_train = True
    transform_on_eval = True
    transform_on_fantasize = True

    def __init__(self, space: Space) -> None:
        """Keep the space."""
        super().__init__()
        self.space = space

    def transform(self, X: Tensor) -> Tensor:
        """Snap inputs `(*b, n, d)`; gradients by discrete parameters are zero, and not missing."""
        return self.space.snap(X) + 0.0 * X
