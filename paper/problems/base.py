"""What every problem can tell about itself."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.checks import check_finite, check_float
from streamgp.errors import ShapeError, ValueRangeError

__all__ = ["AbstractProblem", "Optimum", "add_noise", "check_noise_variance", "unit_cube"]

# Rounding of inputs that were scaled to a box and back, relative to its sides.
_ROUNDING = 1e-6


@final
@dataclass(frozen=True, eq=False)
class Optimum:
    """The largest value of a problem.

    Attributes:
        value: The value; an upper bound, where `inputs` is None.
        inputs: Where it is reached, one row for each such point; None where no point is known.
    """

    value: float
    inputs: Float[Tensor, "k d"] | None


class AbstractProblem(ABC):
    """A function on a box, to be maximized, and how it is observed.

    Subclasses are frozen values. A problem may have constraints, functions that must not be positive.
    """

    @property
    @abstractmethod
    def bounds(self) -> Float[Tensor, "2 d"]:
        """Lower and upper bounds of the inputs, in double precision."""

    @property
    @abstractmethod
    def optimum(self) -> Optimum:
        """The largest value, and where."""

    @abstractmethod
    def _evaluate(self, X: Float[Tensor, "*b d"]) -> Float[Tensor, "*b"]:
        """The function, at inputs that were checked."""

    @abstractmethod
    def observe(self, X: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Observe the function.

        Args:
            X: Inputs `(*b, n, d)`.
            generator: Source of the noise.

        Returns:
            Outcomes `(*b, n)`; with constraints `(*b, n, 1 + c)`, the objective first.
        """

    @property
    def num_constraints(self) -> int:
        """Number of constraints."""
        return 0

    @property
    def dim(self) -> int:
        """Number of inputs."""
        return self.bounds.shape[-1]

    def __call__(self, X: Tensor) -> Tensor:
        """Evaluate the function without noise; see `evaluate`."""
        return self.evaluate(X)

    def evaluate(self, X: Tensor) -> Tensor:
        """Evaluate the function without noise.

        Args:
            X: Inputs `(*b, n, d)`.

        Returns:
            Values `(*b, n)`.
        """
        return self._evaluate(self._checked(X))

    def evaluate_constraints(self, X: Tensor) -> Tensor:
        """Evaluate the constraints without noise, `(*b, n, c)`; none may be positive."""
        return self._evaluate_constraints(self._checked(X))

    def _evaluate_constraints(self, X: Float[Tensor, "*b d"]) -> Float[Tensor, "*b c"]:
        """The constraints, at inputs that were checked."""
        return X.new_zeros(*X.shape[:-1], 0)

    def _checked(self, X: Tensor) -> Tensor:
        """Inputs inside the bounds; rounding errors beyond them are clipped."""
        X = check_finite(check_float(X, "X"), "X")
        if X.dim() < 2 or X.shape[-1] != self.dim:
            raise ShapeError(
                f"X must have shape (..., n, {self.dim}), one row for each input, but has shape {tuple(X.shape)}. "
                "For a single input use X.reshape(1, -1)."
            )
        lower, upper = self.bounds.to(X)
        slack = _ROUNDING * (upper - lower)
        is_outside = ((lower - slack > X) | (upper + slack < X)).any(-1)
        if is_outside.any():
            row = tuple(is_outside.nonzero()[0].tolist())
            raise ValueRangeError(
                f"X must lie in the bounds of {type(self).__name__}, but {int(is_outside.sum())} of its rows do not, "
                f"the first at index {row}. Scale inputs to problem.bounds."
            )
        return torch.minimum(torch.maximum(X, lower), upper)


def add_noise(values: Tensor, variance: float, generator: torch.Generator | None) -> Tensor:
    """Add Gaussian noise."""
    if variance == 0.0:
        return values
    noise = torch.randn(values.shape, generator=generator, dtype=values.dtype, device=values.device)
    return values + variance**0.5 * noise


def check_noise_variance(variance: float) -> None:
    """Refuse a variance that is negative or not finite."""
    if not 0.0 <= variance < float("inf"):
        raise ValueRangeError(f"noise_variance must not be negative, but is {variance!r}. Pass a squared deviation.")


def unit_cube(num_dims: int) -> Float[Tensor, "2 d"]:
    """The bounds zero and one."""
    return torch.stack([torch.zeros(num_dims), torch.ones(num_dims)]).double()
