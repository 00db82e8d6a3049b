"""Named parameters as a space: columns of the unit cube in which only some points are valid."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from streamgp.acquisition import Search
from streamgp.checks import to_double
from streamgp.errors import ArgumentTypeError, OptionError, UnsupportedError, ValueRangeError
from streamgp.loops.abstract_parameter import AbstractParameter
from streamgp.loops.cube_space import AbstractCubeSpace, check_slopes
from streamgp.loops.linear_constraints import LinearConstraint, Polytope
from streamgp.loops.maximize import (
    candidates_around,
    climb,
    evaluate_in_parts,
    one_after_the_other,
)
from streamgp.loops.parameters import Categorical, Ordinal
from streamgp.loops.tables import named_rows
from streamgp.seeds import seeded
from streamgp.storage import register
from streamgp.threads import limit_threads

__all__ = ["ParameterSpace"]

# Most changes of one discrete parameter after the gradient search.
_MOST_MOVES = 8
# Finite spaces of so many points are not searched, but listed.
_MOST_LISTED = 512
# Listed points that differ by less are the same.
_ROUNDING = 1e-9
# Points of a polytope whose mean is well within it.
_NUM_INNER = 16
# Candidates near good points change each discrete parameter with this probability.
_CHANGE = 0.2


@register
@final
@dataclass(frozen=True, eq=False)
class ParameterSpace(AbstractCubeSpace):
    """Parameters by name, and the columns that hold each of them.

    Attributes:
        parameters: In the order of the columns.
        constraints: Linear ones between them.
        fixed: Values that stay as they are for now, by name.
        left_out: Points of a small finite space that are not looked for, as they are known.
    """

    parameters: Mapping[str, AbstractParameter]
    constraints: tuple[LinearConstraint, ...] = ()
    fixed: Mapping[str, Any] | None = None
    left_out: Float[Tensor, "k d"] | None = None

    def __post_init__(self) -> None:
        """Check names, parameters and constraints."""
        if not self.parameters:
            raise ValueRangeError("A space needs at least one parameter, but has none.")
        for name, parameter in self.parameters.items():
            if not isinstance(name, str) or not isinstance(parameter, AbstractParameter):
                raise ArgumentTypeError(
                    f"A space is a dictionary of parameters by name, but has {name!r}: {parameter!r}. Write "
                    "{'temperature': streamgp.Real(100, 180), 'solvent': streamgp.Categorical(['water', 'ethanol'])}."
                )
        _ = self._polytope

    def keeping(self, other: "ParameterSpace", points: Float[Tensor, "n d"]) -> "ParameterSpace":
        """The space with those values that points of another one have, as retired ones where it lacks them.

        Args:
            other: Of the same parameters.
            points: Of the other space.
        """
        told = other.show(points)
        parameters = dict(self.parameters)
        for name, one in parameters.items():
            before = other.parameters.get(name)
            if isinstance(one, Categorical | Ordinal) and type(before) is type(one):
                order = before.choices if isinstance(before, Categorical) else before.values
                parameters[name] = one.keeping([v for v in order if any(v == point[name] for point in told)])
        return self if parameters == self.parameters else replace(self, parameters=parameters)

    def fixing(self, values: Mapping[str, Any] | None) -> "ParameterSpace":
        """The space in which some parameters have a given value."""
        if not values:
            return self
        for name, value in values.items():
            if name not in self.parameters:
                raise OptionError(f"fixed names {name!r}, but the parameters are {', '.join(self.parameters)}.")
            self.parameters[name].encode(value, name)
        space = replace(self, fixed={**(self.fixed or {}), **values})
        _ = space._free_polytope
        return space

    def project(self, points: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
        """Move points to the nearest ones that can be set, with the values that are fixed."""
        moved = self._settled(points)
        kept = self._free_polytope.is_kept(moved)
        if not bool(kept.all()):
            center = torch.where(self._is_free, self._inner, moved)
            moved = torch.where(kept.unsqueeze(-1), moved, self._free_polytope.nearby(moved, self._is_free, center))
        is_same = ((moved - points).abs() < _ROUNDING).all(-1)
        return points if bool(is_same.all()) else torch.where(is_same.unsqueeze(-1), points, moved)

    def _settled(self, points: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
        """Points with values that can be set, and with those that are fixed, whatever the linear constraints."""
        parts = zip(self.parameters.values(), self._split(points), strict=True)
        moved = torch.cat([one.settle(part) for one, part in parts], dim=-1)
        for name, value in (self.fixed or {}).items():
            moved[:, self._columns(name)] = moved.new_tensor(self.parameters[name].encode(value, name))
        return moved

    @cached_property
    def _polytope(self) -> Polytope:
        return Polytope.read(self.constraints, self.parameters, self.num_dims)

    @cached_property
    def _free_polytope(self) -> Polytope:
        """The constraints on what is not fixed."""
        if not self._polytope:
            return self._polytope
        fixed = {
            self._columns(name).start: self.parameters[name].encode(value, name)[0]
            for name, value in (self.fixed or {}).items()
        }
        return self._polytope.given(fixed)

    @cached_property
    def _is_free(self) -> Bool[Tensor, " d"]:
        """Mark columns that are real numbers and are not fixed."""
        free = [
            [one.num_values is None and name not in (self.fixed or {})] * one.num_columns
            for name, one in self.parameters.items()
        ]
        return torch.tensor([each for part in free for each in part])

    @cached_property
    def _inner(self) -> Float[Tensor, " d"]:
        """A point whose free columns are well within the linear constraints."""
        free = self._is_free.nonzero().squeeze(-1)
        point = torch.zeros(self.num_dims, dtype=torch.float64)
        point[free] = self._polytope_points(_NUM_INNER, free, seed=0).mean(0)
        return point

    @property
    def in_words(self) -> str:
        """Parameters and constraints as a text."""
        sums = [(dict(one.weights), one.lower, one.upper) for one in self.constraints]
        return f"{list(self.parameters.items())}, {sums}"

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return tuple(self.parameters)

    @property
    def parts(self) -> Mapping[str, slice]:
        """Columns of each parameter."""
        return {name: self._columns(name) for name in self.parameters}

    @property
    def is_product(self) -> bool:
        """Tell whether there are no linear constraints."""
        return not self._polytope

    def is_allowed(self, points: Float[Tensor, "n d"]) -> Bool[Tensor, " n"]:
        """Mark points that keep the linear constraints."""
        return self._polytope.is_kept(points)

    def parse(self, rows: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
        """Dictionaries; numbers and categories are found by their texts."""
        return [dict(zip(self.parameters, row, strict=True)) for row in rows]

    @property
    def num_dims(self) -> int:
        """Dimension of the cube."""
        return sum(one.num_columns for one in self.parameters.values())

    @property
    def num_parameters(self) -> int:
        """Number of parameters."""
        return len(self.parameters)

    @property
    def is_continuous(self) -> bool:
        """Tell whether all points are valid."""
        return bool(self._is_free.all()) and not self._polytope

    @property
    def num_points(self) -> float:
        """Number of valid points; infinite if some parameter is a real number."""
        counts = [
            1 if name in (self.fixed or {}) else one.num_values or math.inf for name, one in self.parameters.items()
        ]
        return math.prod(counts)

    def all_points(self) -> Float[Tensor, "n d"]:
        """All valid points of a finite space."""
        rows = torch.empty(1, 0, dtype=torch.float64)
        for name, parameter in self.parameters.items():
            if name in (self.fixed or {}):
                columns = rows.new_tensor([parameter.encode((self.fixed or {})[name], name)])
            else:
                columns = parameter.all_columns()
            rows = torch.cat([rows.repeat_interleave(len(columns), 0), columns.repeat(len(rows), 1)], dim=-1)
        return rows

    @property
    def is_listed(self) -> bool:
        """Tell whether there are so few points that all of them are looked at."""
        return self.num_points <= _MOST_LISTED

    def num_left(self, taken: Float[Tensor, "k d"]) -> int:
        """Count the points of a listed space that keep what is fixed and are not among some others."""
        return len(self._listed(taken))

    def without_taken(self, taken: Float[Tensor, "k d"]) -> "ParameterSpace":
        """A listed space in which only other points than these are looked for, if there are any."""
        return replace(self, left_out=taken) if self.is_listed and self.num_left(taken) else self

    def _listed(self, taken: Float[Tensor, "k d"] | None) -> Float[Tensor, "n d"]:
        """All points of a small finite space but some."""
        points = self.all_points()
        points = points[self.is_allowed(points)]
        return points if taken is None else points[~_is_among(points, taken)]

    def encode(self, values: Mapping[str, Any]) -> list[float]:
        """The point of values that were tried, in their ranges or outside."""
        missing = [name for name in self.parameters if name not in values]
        if missing:
            raise OptionError(f"A point needs a value of {missing[0]!r}, but has only {', '.join(map(str, values))}.")
        return [
            column for name, one in self.parameters.items() for column in one.encode(values[name], name, is_told=True)
        ]

    def decode(self, point: Float[Tensor, " d"]) -> dict[str, Any]:
        """The values nearest to a point."""
        parts = self._split(point)
        return {name: one.decode(part) for (name, one), part in zip(self.parameters.items(), parts, strict=True)}

    def read(self, X: Any, name: str = "X") -> Float[Tensor, "n d"]:
        """Check points: dictionaries, a table with a column for each parameter, or rows in their order."""
        rows = [self.encode(one) for one in named_rows(X, tuple(self.parameters), name)]
        return torch.tensor(rows, dtype=torch.float64).reshape(len(rows), self.num_dims)

    @property
    def directions(self) -> Float[Tensor, " d"] | None:
        """Signs of the slopes of the first outcome, zero where they are not known; None where none is."""
        signs = [one.direction for one in self.parameters.values() for _ in range(one.num_columns)]
        return torch.tensor(signs, dtype=torch.float64) if any(signs) else None

    def read_slopes(self, gradient: Any, points: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
        """Slopes in the unit cube: dictionaries with those that are known, a table, or rows in order."""
        rows = named_rows(gradient, tuple(self.parameters), "gradient")
        unknown = [name for row in rows for name in row if name not in self.parameters]
        if unknown:
            raise OptionError(
                f"gradient names {unknown[0]!r}, but the parameters are {', '.join(self.parameters)}. Leave it out."
            )
        slopes = torch.full_like(points, torch.nan)
        for name, part in self.parts.items():
            given = [row.get(name, math.nan) for row in rows]
            column = check_slopes(to_double(given, name).reshape(-1, 1), points[:, :1])
            stretch = self.parameters[name].stretch(points[:, part])
            if stretch is not None:
                slopes[:, part] = column * stretch
            elif not bool(column.isnan().all()):
                raise UnsupportedError(
                    f"gradient has slopes of {name!r}, whose values are discrete. Leave it out, or make it a Real "
                    "without step."
                )
        return slopes

    def show(self, points: Float[Tensor, "n d"]) -> list[dict[str, Any]]:
        """Dictionaries of values by name."""
        return [self.decode(point) for point in points]

    def inputs(self, points: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        """Points moved to valid ones; gradients reach real numbers only."""
        parts = zip(self.parameters.values(), self._split(points), strict=True)
        return torch.cat([one.snap(part) for one, part in parts], dim=-1)

    def design(self, num_points: int, *, num_initial: int, num_before: int, seed: int) -> Float[Tensor, "n d"]:
        """The next points of a Sobol sequence, or uniform ones where there are linear constraints."""
        points = super().design(num_points, num_initial=num_initial, num_before=num_before, seed=seed)
        return self._valid(points, seed=seed, skip=num_before)

    def _valid(self, points: Float[Tensor, "n d"], *, seed: int, skip: int = 0) -> Float[Tensor, "n d"]:
        """Valid points instead of any of the cube."""
        points = self._settled(points)
        if self._polytope:
            free = self._is_free.nonzero().squeeze(-1)
            drawn = self._polytope_points(skip + len(points), free, seed=seed)
            points[:, free] = drawn[skip:]
        return points

    def _polytope_points(self, num_points: int, free: Tensor, *, seed: int) -> Tensor:
        return self._free_polytope.sample(num_points, free, seed=seed, num_columns=self.num_dims)

    def candidates(self, num_points: int, *, centers: Tensor, generator: torch.Generator) -> Float[Tensor, "n d"]:
        """All points of a small finite space; otherwise some over the whole space and some near good points."""
        if self.num_points <= min(_MOST_LISTED, num_points):
            return self.all_points()
        seed = int(torch.randint(2**31, (), generator=generator))
        drawn = candidates_around(centers, num_points, generator=generator)
        points, num_near = self._valid(drawn.clone(), seed=seed), num_points // 2
        near = centers[torch.randint(len(centers), (num_near,), generator=generator)].clone()
        if self._polytope:  # between a good point and any other, all points keep the constraints
            share = torch.rand(num_near, 1, generator=generator, dtype=torch.float64).square()
            moved = (1.0 - share) * near + share * points[-num_near:]
        else:
            moved = drawn[-num_near:]
        for name, one in self.parameters.items():
            columns = self._columns(name)
            if name in (self.fixed or {}):
                continue
            if one.num_values is None:
                near[:, columns] = moved[:, columns]
                continue
            is_changed = torch.rand(num_near, generator=generator) < _CHANGE
            near[is_changed, columns] = self.inputs(points[-num_near:])[is_changed, columns]
        for name, value in (self.fixed or {}).items():
            near[:, self._columns(name)] = near.new_tensor(self.parameters[name].encode(value, name))
        return torch.cat([points[: num_points - num_near], near])

    def maximize(
        self, function: Any, q: int, search: Search, *, seed: int, centers: Tensor | None = None
    ) -> Float[Tensor, "q d"]:
        """By gradients over real numbers and moves of the others in turn; small finite spaces are listed."""
        if self.is_continuous:
            return super().maximize(function, q, search, seed=seed, centers=centers)
        return one_after_the_other(
            function, q, lambda k: self._maximize_one(function, search, seed=seed + k, centers=centers)
        )

    def _maximize_one(
        self, function: Any, search: Search, *, seed: int, centers: Tensor | None
    ) -> Float[Tensor, "1 d"]:
        if self.is_listed:
            listed = self._listed(self.left_out)
            return listed[evaluate_in_parts(function, listed).argmax()].unsqueeze(0)
        raw = self.design(2 * search.raw_samples, num_initial=0, num_before=0, seed=seed)
        best = raw[evaluate_in_parts(function, raw).topk(search.num_restarts - search.num_restarts // 2).indices]
        if centers is not None and search.num_restarts > 1:
            near = self.candidates(4 * search.raw_samples, centers=centers, generator=seeded(seed))
            near = near[len(near) - len(near) // 2 :]
            best = torch.cat([best, near[evaluate_in_parts(function, near).topk(search.num_restarts // 2).indices]])
        tried = self._polish(function, best, search)
        point = tried[evaluate_in_parts(function, tried).argmax()]
        for _ in range(_MOST_MOVES):
            others = torch.cat([point.unsqueeze(0), self.neighbors(point)])
            index = int(evaluate_in_parts(function, others).argmax())
            if index == 0:
                break
            point = self._polish(function, others[index : index + 1], search).squeeze(0)
        return point.unsqueeze(0)

    def _polish(self, function: Any, points: Float[Tensor, "r d"], search: Search) -> Float[Tensor, "r d"]:
        """Improve the real numbers of points; others stay."""
        if not bool(self._is_free.any()):
            return points
        lower = torch.where(self._is_free, 0.0, points).unsqueeze(1)
        upper = torch.where(self._is_free, 1.0, points).unsqueeze(1)
        constraints: dict[str, Any] = {}
        if self._polytope.at_least:
            constraints["inequality_constraints"] = list(self._polytope.at_least)
        if self._polytope.equal:
            constraints["equality_constraints"] = list(self._polytope.equal)
        with limit_threads():
            # Parallel searches would take the same bounds for all points.
            moved, _ = climb(function, points, search, lower=lower, upper=upper, use_parallel_mode=False, **constraints)
        if not self._polytope:
            return moved
        moved = torch.where(self._polytope.is_kept(moved).unsqueeze(-1), moved, points)
        return self._polytope.pulled(moved, torch.where(self._is_free, self._inner, moved))

    def neighbors(self, point: Float[Tensor, " d"]) -> Float[Tensor, "k d"]:
        """Points that differ in the value of one discrete parameter."""
        rows = [point.new_empty(0, len(point))]
        for name, one in self.parameters.items():
            if name in (self.fixed or {}):
                continue
            columns = self._columns(name)
            others = one.alternatives(point[columns])
            moved = point.expand(len(others), -1).clone()
            moved[:, columns] = others
            rows.append(moved)
        return torch.cat(rows)

    def separate(self, points: Tensor, taken: Tensor, *, is_noisy: bool, seed: int) -> Float[Tensor, "q d"]:
        """Points of the design for those that repeat others; of a small finite space, others as long as there are."""
        if self.is_listed:
            return points if is_noisy else self._distinct(points, taken)
        separated = super().separate(points, taken, is_noisy=is_noisy, seed=seed)
        is_same = (separated == points).all(-1, keepdim=True)
        return torch.where(is_same, points, self._valid(separated.clone(), seed=seed))

    def _distinct(self, points: Float[Tensor, "q d"], taken: Float[Tensor, "p d"]) -> Float[Tensor, "q d"]:
        """Points, where those that repeat others are replaced by the points farthest from all, while there are any."""
        kept = self.inputs(taken)
        for point in self.inputs(points):
            others = self._listed(kept)
            if len(others) and bool(_is_among(point.unsqueeze(0), kept)):
                point = others[torch.cdist(others, kept).amin(-1).argmax()]
            kept = torch.cat([kept, point.unsqueeze(0)])
        return kept[len(taken) :]

    def still_pending(self, pending: Tensor, told: Tensor) -> Float[Tensor, "r d"]:
        """Without the nearest one to each told point, if its discrete values are the same and its numbers are near."""
        return super().still_pending(self.inputs(pending), told)

    def _columns(self, name: str) -> slice:
        first = 0
        for other, one in self.parameters.items():
            if other == name:
                return slice(first, first + one.num_columns)
            first += one.num_columns
        raise OptionError(f"There is no parameter {name!r} among {', '.join(self.parameters)}.")

    def _split(self, X: Float[Tensor, "*b d"]) -> tuple[Tensor, ...]:
        return X.split([one.num_columns for one in self.parameters.values()], dim=-1)


def _is_among(points: Float[Tensor, "n d"], others: Float[Tensor, "k d"]) -> Bool[Tensor, " n"]:
    """Mark points that equal one of others, up to rounding."""
    return ((points.unsqueeze(1) - others).abs() < _ROUNDING).all(-1).any(-1)
