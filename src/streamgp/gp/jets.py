r"""Numbers that carry derivatives along one direction of each of two inputs.

With $\varepsilon^2 = \varepsilon'^2 = 0$, a function of $x + \varepsilon v$ and $x' + \varepsilon' v'$ is
$k + \varepsilon \, v \cdot \partial k + \varepsilon' \, v' \cdot \partial' k + \varepsilon \varepsilon' \, v \cdot
\partial \partial' k \cdot v'$. Sums, products and functions of such numbers are such numbers, so that a kernel made of
parts has the slopes that its parts give it, in closed form.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.errors import UnsupportedError

__all__ = ["Jet", "Moving", "difference", "no_slopes", "slopes_of"]

# Zero stands for itself where a set of inputs does not move.
Part = Tensor | float


class Moving(NamedTuple):
    """Inputs that move.

    Attributes:
        points: Where they are.
        directions: Where each one goes; None where none moves.
    """

    points: Float[Tensor, "*b n d"]
    directions: Float[Tensor, "*b n d"] | None


@final
@dataclass(frozen=True, eq=False)
class Jet:
    r"""A number $k + \varepsilon a + \varepsilon' b + \varepsilon \varepsilon' c$.

    Attributes:
        value: $k$.
        first: $a$, the slope along the direction of the first input.
        second: $b$, that of the second.
        both: $c$, the slope of the one along the other.
    """

    value: Tensor
    first: Part
    second: Part
    both: Part

    def __add__(self, other: "Jet") -> "Jet":
        return Jet(
            self.value + other.value, self.first + other.first, self.second + other.second, self.both + other.both
        )

    def __mul__(self, other: "Jet | Tensor") -> "Jet":
        if isinstance(other, Tensor):
            return Jet(*(_times(part, other) for part in (self.value, self.first, self.second, self.both)))  # type: ignore[arg-type]
        (k, a, b, c), (k2, a2, b2, c2) = self._parts, other._parts
        mixed = _times(a, b2) + _times(b, a2)
        return Jet(
            self.value * other.value,
            _times(a, k2) + _times(k, a2),
            _times(b, k2) + _times(k, b2),
            _times(c, k2) + mixed + _times(k, c2),
        )

    @property
    def _parts(self) -> tuple[Part, Part, Part, Part]:
        return self.value, self.first, self.second, self.both

    def sum(self) -> "Jet":
        """Add up along the last axis."""
        return Jet(*(part.sum(-1) if isinstance(part, Tensor) else part for part in self._parts))  # type: ignore[arg-type]

    def through(self, value: Tensor, slope: Tensor, curvature: Tensor) -> "Jet":
        """A function of the number, given its value and its two derivatives there."""
        a, b = self.first, self.second
        return Jet(
            value, _times(slope, a), _times(slope, b), _times(slope, self.both) + _times(curvature, _times(a, b))
        )

    def exp(self) -> "Jet":
        """The exponential."""
        e = self.value.exp()
        return self.through(e, e, e)

    def blend(self, first: Part, second: Part) -> Tensor:
        """Covariances of atoms, given the weights of values that stand beside slopes.

        Args:
            first: Weights of the first, `(*b, n, 1)`, or one.
            second: Weights of the second, `(*b, 1, m)`, or one.
        """
        blended = self.value * first * second + _times(self.first, second) + _times(self.second, first) + self.both
        assert isinstance(blended, Tensor)
        return blended


def difference(first: Moving, second: Moving, scale: Float[Tensor, "*k 1 d"]) -> Jet:
    """Differences of all pairs of inputs in units of a scale, `(*e, n, m, d)`; subtracted before divided."""
    unit = scale.unsqueeze(-2)
    v = 0.0 if first.directions is None else first.directions.unsqueeze(-2) / unit
    w = 0.0 if second.directions is None else -second.directions.unsqueeze(-3) / unit
    return Jet((first.points.unsqueeze(-2) - second.points.unsqueeze(-3)) / unit, v, w, 0.0)


def slopes_of(
    function: Callable[[Tensor], Tensor], moving: Moving, name: str
) -> tuple[Float[Tensor, "..."], Float[Tensor, "..."] | None]:
    """Evaluate a function of moving inputs and its slope along their directions, by forward mode.

    Args:
        function: What is evaluated, one input at a time.
        moving: Inputs and directions.
        name: Whose function it is, for the error message.
    """
    x, v = moving
    if v is None:
        return function(x), None
    try:
        value, slope = torch.func.jvp(function, (x,), (v.expand_as(x),))[:2]
    except (RuntimeError, NotImplementedError) as error:
        raise no_slopes(f"{name} has no forward mode ({str(error).splitlines()[0]})") from error
    return value, slope


def no_slopes(reason: str) -> UnsupportedError:
    """The error of a kernel or mean under which derivatives are not known."""
    return UnsupportedError(
        f"{reason}, so that derivatives cannot be observed or predicted under it. Use a squared-exponential, "
        "Matérn-3/2, Matérn-5/2, rational-quadratic, periodic or cosine kernel, one with finitely many features, or "
        "sums and products of these, or evidence of values alone."
    )


def _times(one: Part, other: Part) -> Part:
    """The product, without work where one of them is nothing."""
    if (isinstance(one, float) and one == 0.0) or (isinstance(other, float) and other == 0.0):
        return 0.0
    return one * other
