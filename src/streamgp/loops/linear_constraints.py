"""Linear constraints between parameters: a mixture that sums to one, two times that fit into a shift."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, SupportsFloat, final

import torch
from botorch.utils.sampling import HitAndRunPolytopeSampler
from jaxtyping import Float
from torch import Tensor

from streamgp.errors import ArgumentTypeError, OptionError, UnsupportedError, ValueRangeError
from streamgp.loops.abstract_parameter import AbstractParameter
from streamgp.loops.parameters import Real
from streamgp.storage import register

__all__ = ["LinearConstraint", "Polytope"]

# A point that misses a constraint by so much, relative to the size of its terms, keeps it: rounding.
_ROUNDING = 1e-6
# How far inside suggestions are that a search left outside: nothing to a user, but more than the rounding of a sum.
_INSIDE = 1e-9


@register
@final
@dataclass(frozen=True)
class LinearConstraint:
    """A weighted sum of parameters with bounds.

    ```python
    space = {"acid": sg.Real(0, 1), "base": sg.Real(0, 1), "water": sg.Real(0, 1)}
    mixture = sg.LinearConstraint({"acid": 1, "base": 1, "water": 1}, lower=1.0, upper=1.0)
    sg.Optimizer(space, input_constraints=[mixture]).ask(2)
    ```

    Attributes:
        weights: Weight of each parameter in the sum, by name.
        upper: The most it may be; None for no such bound.
        lower: The least. A sum that is given has both: `lower=1.0, upper=1.0`.
    """

    weights: Mapping[str, Any]
    upper: float | None = None
    lower: float | None = None

    def __post_init__(self) -> None:
        """Check the numbers."""
        is_named = isinstance(self.weights, Mapping) and len(self.weights) > 0
        if not is_named or not all(isinstance(one, SupportsFloat) for one in self.weights.values()):
            raise ArgumentTypeError(
                "The weights of a LinearConstraint are numbers by the names of parameters, such as {'a': 1.0, 'b': "
                f"1.0}}, but are {self.weights!r}."
            )
        given = [bound for bound in (self.lower, self.upper) if bound is not None]
        if not given:
            raise OptionError("A LinearConstraint must have an upper or a lower bound, but has none. Pass upper=... .")
        if not all(math.isfinite(value) for value in (*given, *self.weights.values())) or given[0] > given[-1]:
            raise ValueRangeError(
                "Weights and bounds of a LinearConstraint must be finite, the lower bound not above the upper, but are "
                f"{dict(self.weights)}, {self.lower} and {self.upper}."
            )


@final
@dataclass(frozen=True, eq=False)
class Polytope:
    """Linear constraints on columns of the unit cube: rows of `A x >= b` and of `C x = d`, as BoTorch has them."""

    at_least: tuple[tuple[Tensor, Tensor, float], ...] = ()
    equal: tuple[tuple[Tensor, Tensor, float], ...] = ()

    @classmethod
    def read(
        cls, constraints: Sequence[LinearConstraint], parameters: Mapping[str, AbstractParameter], num_columns: int
    ) -> "Polytope":
        """Constraints on columns, of those on values.

        Args:
            constraints: By the names of parameters.
            parameters: By name, in the order of their columns.
            num_columns: Of all parameters.
        """
        at_least, equal, first = [], [], {}
        column = 0
        for name, parameter in parameters.items():
            first[name] = column
            column += parameter.num_columns
        for one in constraints:
            index, weights, shift = [], [], 0.0
            for name, weight in one.weights.items():
                found = parameters.get(name)
                if not isinstance(found, Real) or found.log or found.step is not None:
                    raise UnsupportedError(
                        f"Linear constraints are between Real parameters without steps or logarithms, but {name!r} is "
                        f"{'no parameter' if found is None else found}."
                    )
                index.append(first[name])
                weights.append(weight * (found.high - found.low))
                shift += weight * found.low
            columns, weight_row = torch.tensor(index), torch.tensor(weights, dtype=torch.float64)
            if one.lower is not None and one.lower == one.upper:
                equal.append((columns, weight_row, one.lower - shift))
                continue
            if one.lower is not None:
                at_least.append((columns, weight_row, one.lower - shift))
            if one.upper is not None:
                at_least.append((columns, -weight_row, shift - one.upper))
        return cls(tuple(at_least), tuple(equal))

    def __bool__(self) -> bool:
        """Tell whether there are constraints."""
        return bool(self.at_least or self.equal)

    def is_kept(self, X: Float[Tensor, "n d"]) -> Tensor:
        """Mark points that keep all constraints, to rounding."""
        kept = torch.ones(len(X), dtype=torch.bool)
        for columns, weights, bound in self.at_least:
            kept &= X[:, columns] @ weights >= bound - _slack(weights, bound)
        for columns, weights, bound in self.equal:
            kept &= (X[:, columns] @ weights - bound).abs() <= _slack(weights, bound)
        return kept

    def nearby(self, X: Float[Tensor, "n d"], free: Tensor, center: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
        """Points that keep the constraints, near some that do not: the sums of mixtures are often missed by a little.

        Sums that are given are met by the least change of the free columns; what lies outside then is moved toward a
        point within, and replaced by it where that is not enough.

        Args:
            X: Points of the cube.
            free: Mark of each column that can be changed.
            center: A point for each that keeps the constraints.
        """
        moved = X.clone()
        for columns, weights, bound in self.equal:
            w = torch.zeros_like(moved[0]).index_put((columns,), weights) * free
            moved = moved + (bound - moved[:, columns] @ weights).unsqueeze(-1) * w / w.square().sum().clamp_min(1e-300)
        moved = self.pulled(moved.clamp(0.0, 1.0), center)
        return torch.where(self.is_kept(moved).unsqueeze(-1), moved, center)

    def pulled(self, X: Float[Tensor, "n d"], center: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
        """Points that a search left outside by its tolerance, moved toward points within, as far as it takes.

        Args:
            X: Points that keep the constraints to rounding.
            center: A point for each that keeps them with room to spare.
        """
        share = X.new_ones(len(X))
        for columns, weights, bound in self.at_least:
            room = center[:, columns] @ weights - bound
            lack = X[:, columns] @ weights - bound
            margin = _INSIDE * (abs(bound) + float(weights.abs().sum()))
            kept = ((room - margin) / (room - lack).clamp_min(margin)).clamp(0.0, 1.0)
            share = torch.where(lack < 0.0, torch.minimum(share, kept), share)
        return torch.where(share.unsqueeze(-1) < 1.0, center + share.unsqueeze(-1) * (X - center), X)

    def given(self, fixed: Mapping[int, float]) -> "Polytope":
        """The constraints on the other columns, where some have a value."""

        def moved(
            rows: tuple[tuple[Tensor, Tensor, float], ...], is_kept: Callable[[float, float], bool]
        ) -> tuple[tuple[Tensor, Tensor, float], ...]:
            kept = []
            for columns, weights, bound in rows:
                is_fixed = torch.tensor([int(column) in fixed for column in columns])
                known = sum(float(w) * fixed[int(c)] for c, w in zip(columns, weights, strict=True) if int(c) in fixed)
                if not bool(is_fixed.all()):
                    kept.append((columns[~is_fixed], weights[~is_fixed], bound - known))
                elif not is_kept(known - bound, _slack(weights, bound)):
                    raise ValueRangeError(
                        "The fixed values do not keep the linear constraints between parameters, so no point does. "
                        "Fix others, or fewer of them."
                    )
            return tuple(kept)

        if not fixed:
            return self
        at_least = moved(self.at_least, lambda room, slack: room >= -slack)
        return Polytope(at_least, moved(self.equal, lambda room, slack: abs(room) <= slack))

    def sample(self, num_points: int, columns: Tensor, *, seed: int, num_columns: int) -> Float[Tensor, "n c"]:
        """Points that keep the constraints, uniformly over some columns.

        Args:
            num_points: How many.
            columns: Columns of real numbers.
            seed: Of everything random.
            num_columns: Of all parameters.
        """
        bounds = torch.stack([torch.zeros(len(columns)), torch.ones(len(columns))]).double()
        try:
            sampler = HitAndRunPolytopeSampler(
                inequality_constraints=self._matrix(self.at_least, columns, num_columns, sign=-1.0),
                equality_constraints=self._matrix(self.equal, columns, num_columns, sign=1.0),
                bounds=bounds,
                n_burnin=200,
                n_thinning=8,
                seed=seed % 2**31,
            )
            return sampler.draw(num_points)
        except (ValueError, RuntimeError) as error:
            raise ValueRangeError(
                f"No point keeps all linear constraints ({error}). Check their bounds, and what is fixed."
            ) from None

    @staticmethod
    def _matrix(rows: Any, columns: Tensor, num_columns: int, *, sign: float) -> tuple[Tensor, Tensor] | None:
        if not rows:
            return None
        A, b = torch.zeros(len(rows), num_columns, dtype=torch.float64), []
        for i, (index, weights, bound) in enumerate(rows):
            A[i, index] = sign * weights
            b.append([sign * bound])
        return A[:, columns], torch.tensor(b, dtype=torch.float64)


def _slack(weights: Tensor, bound: float) -> float:
    return _ROUNDING * (abs(bound) + float(weights.abs().sum()))
