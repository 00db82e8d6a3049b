"""Spaces that are the unit cube inside, whatever their points are to the user."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.acquisition import AbstractSpace, Search
from streamgp.checks import check_finite, to_double
from streamgp.errors import ArgumentTypeError, ShapeError, UnsupportedError, ValueRangeError
from streamgp.loops.maximize import candidates_around, maximize_in_cube
from streamgp.loops.tables import parse_number
from streamgp.seeds import sobol_points
from streamgp.storage import register

__all__ = ["AbstractCubeSpace", "Box", "check_slopes", "separate_points", "without_nearest"]

# A told point closer than this to a pending one, in the unit cube, takes its place: people round what they set.
_SAME = 0.05
# Two suggestions closer than this, in every coordinate of the unit cube, are taken for the same one.
_LEAST_DISTANCE = 5e-3
# How far outside the box a point may lie, relative to its width, and still be taken for one on its edge: rounding.
_ROUNDING = 1e-6


class AbstractCubeSpace(AbstractSpace):
    """A space whose points are rows of numbers between 0 and 1, which are also what the model sees.

    Here, every row is a point. A space of your own needs `num_dims`, `column_names`, and the two ways between points of
    the cube and those of the user, `show` and `read`; the rest is here. Numbers that are close should be points that
    are alike.
    """

    @property
    def is_continuous(self) -> bool:
        """All of it is."""
        return True

    def read_inputs(self, X: Any) -> Float[Tensor, "n d"]:
        """Read points, which are also what the model sees."""
        return self.read(X)

    def parse(self, rows: Sequence[Sequence[str]]) -> Any:
        """Numbers, `(n, d)`."""
        return to_double([[parse_number(text, "a coordinate") for text in row] for row in rows], "X").reshape(
            -1, len(self.column_names)
        )

    def no_points(self) -> Float[Tensor, "0 d"]:
        """None."""
        return torch.empty(0, self.num_dims, dtype=torch.float64)

    def inputs(self, points: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        """The unit cube itself."""
        return points

    def without(self, taken: Tensor) -> AbstractSpace:
        """The whole space: what was told may be told again."""
        return self

    def all_points(self) -> Tensor:
        """There are too many."""
        raise UnsupportedError("This space has more points than could be listed. Use a pool, or discrete parameters.")

    def design(self, num_points: int, *, num_initial: int, num_before: int, seed: int) -> Float[Tensor, "n d"]:
        """The next points of a Sobol sequence."""
        return sobol_points(num_points, self.num_dims, seed=seed, skip=num_before)

    def project(self, points: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
        """Move points to the nearest of the cube."""
        return points if bool(((points >= 0.0) & (points <= 1.0)).all()) else points.clamp(0.0, 1.0)

    def scatter(self, num_points: int, *, num_before: int, seed: int, ask: int) -> Float[Tensor, "n d"]:
        """The Sobol sequence of the design goes on."""
        return self.design(num_points, num_initial=0, num_before=num_before, seed=seed)

    def candidates(self, num_points: int, *, centers: Tensor, generator: torch.Generator) -> Float[Tensor, "n d"]:
        """Half over the whole cube and half around good points."""
        return candidates_around(centers, num_points, generator=generator)

    def maximize(
        self, function: Any, q: int, search: Search, *, seed: int, centers: Tensor | None = None
    ) -> Float[Tensor, "q d"]:
        """By gradients."""
        return maximize_in_cube(function, q, search, num_dims=self.num_dims, seed=seed, centers=centers)

    def separate(self, points: Tensor, taken: Tensor, *, is_noisy: bool, seed: int) -> Float[Tensor, "q d"]:
        """Points of a Sobol sequence for those that repeat others."""
        return separate_points(points, taken, is_noisy=is_noisy, seed=seed)

    def still_pending(self, pending: Tensor, told: Tensor) -> Float[Tensor, "r d"]:
        """Without the nearest one to each told point, if it is near."""
        return without_nearest(pending, told, tolerance=_SAME)


def separate_points(
    points: Float[Tensor, "q d"], taken: Float[Tensor, "p d"], *, is_noisy: bool = False, seed: int
) -> Float[Tensor, "q d"]:
    """Replace points that repeat a taken one, or one before them, by points of a Sobol sequence.

    Acquisition functions that know of pending points do not repeat them unless little is left to learn; this makes
    sure. If the cube is too full for any point to be new, the one farthest from the others is taken.

    Args:
        points: Suggestions.
        taken: Points not to be suggested again.
        is_noisy: Whether points may repeat those before them.
        seed: Of the sequence.
    """
    kept = taken
    for point in points:
        others = taken if is_noisy else kept
        if float(_distances(point.unsqueeze(0), others)) < _LEAST_DISTANCE:
            others = sobol_points(256, points.shape[-1], seed=seed)
            distances = _distances(others, kept)
            is_new = distances >= _LEAST_DISTANCE
            point = others[int(is_new.double().argmax() if is_new.any() else distances.argmax())]
        kept = torch.cat([kept, point.unsqueeze(0)])
    return kept[len(taken) :]


def without_nearest(
    pending: Float[Tensor, "p d"], told: Float[Tensor, "n d"], *, tolerance: float
) -> Float[Tensor, "r d"]:
    """Pending points without the nearest one to each told point, if it is near."""
    remaining: Sequence[int] = range(len(pending))
    for point in told:
        if not remaining:
            break
        distance = (pending[list(remaining)] - point).abs().amax(-1)
        nearest = int(distance.argmin())
        if distance[nearest] < tolerance:
            remaining = [i for k, i in enumerate(remaining) if k != nearest]
    return pending[list(remaining)]


def _oriented(ends: Float[Tensor, "k j"]) -> Float[Tensor, "2 d"]:
    """Bounds with lower ends in the first row, if they can be told from pairs."""
    if tuple(ends.shape) != (2, 2):
        return ends if len(ends) == 2 else ends.mT
    could_be_rows, could_be_pairs = bool((ends[0] < ends[1]).all()), bool((ends[:, 0] < ends[:, 1]).all())
    if could_be_rows and could_be_pairs:
        (a, b), (c, d) = ends.tolist()
        raise ShapeError(
            f"bounds of shape (2, 2) may be pairs ({a:g}, {b:g}), ({c:g}, {d:g}) or lower ends ({a:g}, {b:g}) with "
            f"upper ends ({c:g}, {d:g}). Pass a list of pairs (lower, upper), one for each dimension: "
            f"[({a:g}, {b:g}), ({c:g}, {d:g})] or [({a:g}, {c:g}), ({b:g}, {d:g})]."
        )
    return ends.mT if could_be_pairs else ends


def _distances(points: Float[Tensor, "n d"], others: Float[Tensor, "p d"]) -> Float[Tensor, " n"]:
    """Largest difference of a coordinate to the nearest other point."""
    if not len(others):
        return points.new_full((len(points),), torch.inf)
    return (points.unsqueeze(1) - others).abs().amax(-1).amin(-1)


def check_slopes(gradient: Any, points: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
    """Check a gradient for each point, some of whose components may not be known."""
    slopes = to_double(gradient, "gradient")
    slopes = slopes.unsqueeze(0) if slopes.shape == points.shape[1:] and len(points) == 1 else slopes
    if slopes.shape != points.shape:
        raise ShapeError(
            f"gradient must have shape {tuple(points.shape)}, a slope for each dimension of each point, NaN where one "
            f"is not known, but has shape {tuple(slopes.shape)}."
        )
    if bool(slopes.isinf().any()):
        raise ValueRangeError("gradient must be finite, or NaN where a slope is not known, but has infinite slopes.")
    return slopes


@register
@final
@dataclass(frozen=True, eq=False)
class Box(AbstractCubeSpace):
    """A product of intervals.

    Attributes:
        lower: Lower ends.
        upper: Upper ends.
    """

    lower: Float[Tensor, " d"]
    upper: Float[Tensor, " d"]

    @classmethod
    def from_bounds(cls, bounds: Any) -> "Box":
        """Read bounds: a list of pairs `(lower, upper)`, or an array or tensor `(2, d)` or `(d, 2)`.

        An array `(2, 2)` has lower ends in its first row, as BoTorch has it, or pairs in its rows, as SciPy has them:
        it is refused where both make sense.
        """
        if isinstance(bounds, Tensor | np.ndarray):
            ends = to_double(bounds, "bounds")
            wanted = "(2, d), lower ends in the first row and upper ends in the second, or (d, 2), a pair in each row"
            is_right = ends.dim() == 2 and 2 in ends.shape and 0 not in ends.shape
            if is_right:
                ends = _oriented(ends)
        elif isinstance(bounds, Sequence) and not isinstance(bounds, str):
            ends = to_double(bounds, "bounds")
            wanted = "(d, 2), as a list has one pair (lower, upper) for each dimension"
            is_right = ends.dim() == 2 and ends.shape[1] == 2
            ends = ends.mT if is_right else ends
        else:
            raise ArgumentTypeError(
                f"bounds must be a list of pairs (lower, upper) or an array (2, d) or (d, 2), but is a "
                f"{type(bounds).__name__}. Write [(0.0, 1.0), (10.0, 20.0)] for two dimensions; "
                "spaces of parameters with names are searched by streamgp.Optimizer."
            )
        if not is_right:
            raise ShapeError(f"bounds must have shape {wanted}, but has shape {tuple(ends.shape)}.")
        is_open = ~ends.isfinite().all(0)
        if is_open.any():
            j = int(is_open.nonzero()[0])
            raise ValueRangeError(
                f"bounds must be finite, but dimension {j} goes from {ends[0, j].item():g} to {ends[1, j].item():g}. "
                "Give the range in which points can be set; it may be wide, or of the logarithm."
            )
        is_empty = ends[0] >= ends[1]
        if is_empty.any():
            j = int(is_empty.nonzero()[0])
            raise ValueRangeError(
                f"Every lower bound must be below its upper bound, but dimension {j} goes from {ends[0, j].item():g} "
                f"to {ends[1, j].item():g}."
            )
        is_wide = torch.isinf(ends[1] - ends[0])
        if is_wide.any():
            j = int(is_wide.nonzero()[0])
            raise ValueRangeError(
                f"The distance of the bounds of dimension {j}, {ends[0, j].item():g} and {ends[1, j].item():g}, "
                "overflows. Use closer ones, or search over the logarithm."
            )
        return cls(ends[0].clone(), ends[1].clone())

    @property
    def num_dims(self) -> int:
        """Number of dimensions."""
        return len(self.lower)

    @property
    def in_words(self) -> str:
        """Bounds as a text."""
        return f"{self.lower.tolist()} to {self.upper.tolist()}"

    def show(self, points: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        """Take points of the unit cube to the user's units; never past the bounds by rounding."""
        values = self.lower + points * (self.upper - self.lower)
        is_inside = (points >= 0.0) & (points <= 1.0)
        return torch.where(is_inside, torch.clamp(values, self.lower, self.upper), values)

    def read(self, X: Any, name: str = "X") -> Float[Tensor, "n d"]:
        """Check points in the user's units, and take them to the unit cube; a single point may be a row of numbers.

        Points outside the bounds are outside the cube.
        """
        points = to_double(X, name)
        points = points.unsqueeze(0) if points.shape == self.lower.shape else points
        if points.dim() != 2 or points.shape[-1] != self.num_dims:
            raise ShapeError(
                f"{name} must have shape (n, {self.num_dims}), one row for each point, but has shape "
                f"{tuple(points.shape)}."
            )
        check_finite(points, name)
        unit = (points - self.lower) / (self.upper - self.lower)
        is_near = (unit >= -_ROUNDING) & (unit <= 1.0 + _ROUNDING)
        return torch.where(is_near, unit.clamp(0.0, 1.0), unit)

    def read_slopes(self, gradient: Any, points: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
        """Slopes in the unit cube, from those in the user's units; NaN where one is not known."""
        return check_slopes(gradient, points) * (self.upper - self.lower)

    @property
    def column_names(self) -> tuple[str, ...]:
        """The dimensions by number."""
        return tuple(f"x{j}" for j in range(self.num_dims))
