"""A finite pool as a space: its points are the indices of members."""

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from numbers import Integral
from typing import Any, final

import torch
from gpytorch.kernels import RBFKernel
from jaxtyping import Bool, Float, Int
from torch import Tensor

from streamgp.acquisition import AbstractSpace, Search
from streamgp.acquisition.indices import read_indices, read_weights
from streamgp.acquisition.pool import Pool
from streamgp.acquisition.pool_belief import PoolBelief
from streamgp.checks import check_finite, to_double
from streamgp.conditioning import SparseGP
from streamgp.errors import ArgumentTypeError, OptionError, ShapeError, ValueRangeError
from streamgp.likelihoods import AbstractLikelihood
from streamgp.loops.tables import parse_number
from streamgp.seeds import seeded
from streamgp.storage import register
from streamgp.storage.registry import check_finite_fields
from streamgp.training.inducing import kmeans_points
from streamgp.training.scaling import spread

__all__ = ["PoolSpace", "in_order", "input_names", "positions", "read_costs", "read_names"]

# Gains over larger pools are summed over a subset.
_MOST_TARGETS, _NUM_TARGETS = 5000, 2000
# Salts that keep the seeds of different uses apart.
_DESIGN, _TARGETS, _RANDOM = 0, 1, 3
# Members whose value is computed at a time.
_CHUNK = 512


def read_names(names: Any, num_members: int) -> tuple[str, ...]:
    """Check the names of members, which must be different."""
    called = tuple(str(name) for name in names)
    if len(called) != num_members:
        raise ShapeError(f"names must have one for each of the {num_members} members, but has {len(called)}.")
    repeated = [name for name, count in Counter(called).items() if count > 1]
    if repeated:
        raise ValueRangeError(f"names must be different, but {repeated[0]!r} comes more than once. Number them.")
    return called


def input_names(table: Any) -> tuple[str, ...] | None:
    """Names of the columns of a pandas table; None for what has numbers or nothing for names."""
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(table, pandas.DataFrame):
        return None
    called = tuple(table.columns)
    is_named = all(isinstance(name, str) for name in called) and len(set(called)) == len(called)
    return called if is_named else None


def in_order(places: Any, wanted: tuple[str, ...] | None) -> Any:
    """The columns of a table in the order in which the pool has them; what has no names as it is.

    Args:
        places: A table, or an array.
        wanted: Names of the inputs of the pool; None if they have none.
    """
    called = input_names(places)
    if wanted is None or called is None:
        return places
    missing = [name for name in wanted if name not in called]
    if missing:
        raise OptionError(
            f"The inputs of the pool are {', '.join(wanted)}, but the table has no column {missing[0]!r}. "
            "Add it, or pass an array with the columns in that order."
        )
    return places.iloc[:, [called.index(name) for name in wanted]]


def read_costs(costs: Any, num_members: int) -> Float[Tensor, " n"]:
    """Check what it costs to observe each member."""
    values = to_double(costs, "costs")
    if values.shape != (num_members,):
        raise ShapeError(
            f"costs must have shape ({num_members},), one for each member of the pool, but has {tuple(values.shape)}."
        )
    if not bool((check_finite(values, "costs") > 0).all()):
        raise ValueRangeError(f"costs must be positive, but the least is {float(values.min()):g}.")
    return values


def positions(value: Any, names: tuple[str, ...] | None) -> Any:
    """Indices of members that are given by name; others as they are.

    Where all names are numbers, such as those of a register, whole numbers are names: as indices, they would be those
    of other members.
    """
    given = list(value.tolist() if isinstance(value, Tensor) else value) if isinstance(value, Iterable) else []
    if names is not None and all(map(_is_number, names)):
        given = [str(one) if isinstance(one, Integral) else one for one in given]
    if not given or not all(isinstance(one, str) for one in given):
        return value
    if names is None:
        raise ArgumentTypeError(
            f"Members of this pool have numbers and no names, but {given[0]!r} came. Pass names=... first."
        )
    place = {name: i for i, name in enumerate(names)}
    for name in given:
        if name not in place:
            near = get_close_matches(name, names, n=1)
            raise ValueRangeError(
                f"There is no member {name!r} in the pool.{f' Did you mean {near[0]!r}?' if near else ''}"
            )
    return [place[name] for name in given]


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True


@register(check=check_finite_fields)
@final
@dataclass(frozen=True, eq=False)
class PoolSpace(AbstractSpace):
    """Members of a pool, which of them are left, and how much they matter.

    Attributes:
        members: Inputs of all members, in the user's units.
        is_left: Which may still be suggested.
        weights: How much each counts in sums over the pool.
        given_targets: Members over which gains are summed; None for those that are not known yet.
        is_standardized: Whether the model sees inputs of zero mean and unit variance over the pool.
        seed: Of the targets of a large pool.
        names: What users call the members, instead of numbers; None for numbers.
        costs: What it costs to observe each; None where all cost the same.
        inputs_called: Names of the inputs, if they came as a table.
    """

    members: Float[Tensor, "n d"]
    is_left: Bool[Tensor, " n"]
    weights: Float[Tensor, " n"]
    given_targets: Int[Tensor, " t"] | None = None
    is_standardized: bool = True
    seed: int = 0
    names: tuple[str, ...] | None = None
    costs: Float[Tensor, " n"] | None = None
    inputs_called: tuple[str, ...] | None = None

    @classmethod
    def from_inputs(
        cls,
        pool_X: Any,
        *,
        weights: Any,
        targets: Any,
        is_standardized: bool,
        seed: int,
        names: Any = None,
        costs: Any = None,
    ) -> "PoolSpace":
        """Check what a user has of a pool."""
        X = to_double(pool_X, "pool_X")
        if X.dim() != 2 or 0 in X.shape:
            raise ShapeError(
                f"pool_X must have shape (n, d), one row for each member of the pool and at least one of both, but has "
                f"shape {tuple(X.shape)}. A single column is pool_X.reshape(-1, 1)."
            )
        n = len(check_finite(X, "pool_X"))
        called = None if names is None else read_names(names, n)
        chosen = None if targets is None else read_indices(positions(targets, called), n, "targets")
        if chosen is not None and not len(chosen):
            raise ValueRangeError("targets must name at least one member of the pool, but is empty. Pass None for all.")
        return cls(
            X,
            torch.ones(n, dtype=torch.bool),
            X.new_ones(n) if weights is None else read_weights(weights, n),
            chosen,
            is_standardized,
            seed,
            called,
            None if costs is None else read_costs(costs, n),
            input_names(pool_X),
        )

    @cached_property
    def shift_and_scale(self) -> tuple[Float[Tensor, " d"], Float[Tensor, " d"]]:
        """Shift and scale that standardize inputs over the pool, or change nothing."""
        X = self.members
        if not self.is_standardized:
            return torch.zeros_like(X[0]), torch.ones_like(X[0])
        return X.mean(0), spread(X)

    @cached_property
    def scaled(self) -> Float[Tensor, "n d"]:
        """Inputs of all members in the units of the model."""
        return self.to_scaled(self.members)

    def to_scaled(self, X: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        """Any inputs in the units of the model."""
        shift, scale = self.shift_and_scale
        return (X - shift) / scale

    @cached_property
    def _default_targets(self) -> Int[Tensor, " t"]:
        """All members, or a random part of many, known ones included."""
        n = len(self.members)
        if n <= _MOST_TARGETS:
            return torch.arange(n)
        return torch.randperm(n, generator=seeded(self.seed, _TARGETS))[:_NUM_TARGETS].sort().values

    def view(
        self, gp: SparseGP, likelihood: AbstractLikelihood, *, told: Int[Tensor, " k"], pending: Int[Tensor, " p"]
    ) -> Pool:
        """The pool as rules see it, with pending members awaited.

        Args:
            gp: Belief about the inputs of the model.
            likelihood: Of every member.
            told: Members that are known.
            pending: Members whose outcomes are awaited.
        """
        targets = self.given_targets
        if targets is None:
            targets = self._default_targets[~torch.isin(self._default_targets, told)]
            targets = targets if len(targets) else self.all_points()
        pool = Pool(PoolBelief.of(gp, self.scaled), likelihood, targets, self.weights[targets], self.costs)
        for index in pending.tolist():
            pool = pool.awaiting(index)
        return pool

    @property
    def num_dims(self) -> int:
        """Number of inputs."""
        return self.members.shape[-1]

    def read(self, X: Any, name: str = "indices") -> Int[Tensor, " k"]:
        """Check indices or names of distinct members; a single one may be given as it is."""
        value = X if isinstance(X, bool) or not isinstance(X, Integral | str) else [X]
        value = value.reshape(1) if isinstance(value, Tensor) and not value.dim() else value
        return read_indices(positions(value, self.names), len(self.members), "indices" if name == "X" else name)

    def read_inputs(self, X: Any) -> Float[Tensor, "n d"]:
        """Inputs of any places, which need not be members."""
        if X is None:
            return self.scaled
        places = to_double(in_order(X, self.inputs_called), "X")
        places = places.unsqueeze(0) if places.shape == self.members.shape[1:] else places
        if places.dim() != 2 or places.shape[-1] != self.num_dims:
            raise ShapeError(
                f"X must have shape (n, {self.num_dims}), one row for each place, but has {tuple(places.shape)}."
            )
        return self.to_scaled(check_finite(places, "X"))

    @property
    def column_names(self) -> tuple[str, ...]:
        """The index or the name alone."""
        return ("index",) if self.names is None else ("name",)

    def parse(self, rows: Sequence[Sequence[str]]) -> list[int] | list[str]:
        """Whole numbers or names."""
        if self.names is not None:
            return [text for (text,) in rows]
        return [int(parse_number(text, "an index", is_whole=True)) for (text,) in rows]

    def show(self, points: Int[Tensor, " k"]) -> Int[Tensor, " k"] | list[str]:
        """Indices, too, or names if members have them."""
        return points.clone() if self.names is None else [self.names[i] for i in points.tolist()]

    def no_points(self) -> Int[Tensor, " 0"]:
        """None."""
        return torch.empty(0, dtype=torch.long)

    def inputs(self, points: Int[Tensor, "*b"]) -> Float[Tensor, "*b d"]:
        """Inputs of members in the units of the model."""
        return self.scaled[points]

    def without(self, taken: Int[Tensor, " k"]) -> "PoolSpace":
        """The pool without members that were told or are pending."""
        is_left = self.is_left.clone()
        is_left[taken] = False
        space = replace(self, is_left=is_left)
        for name in ("shift_and_scale", "scaled", "_default_targets"):  # that need not be computed again
            if name in self.__dict__:
                space.__dict__[name] = self.__dict__[name]
        return space

    def all_points(self) -> Int[Tensor, " a"]:
        """All members that are left."""
        return self.is_left.nonzero().squeeze(-1)

    def check_left(self, q: int) -> None:
        """Refuse to suggest more members than are left."""
        num_left = int(self.is_left.sum())
        if num_left < q:
            raise ValueRangeError(
                f"{q} members were asked for, but {num_left} of {len(self.members)} are left that were neither told "
                f"nor are pending. Ask for at most {num_left}, or tell or cancel pending ones."
            )

    def design(self, num_points: int, *, num_initial: int, num_before: int, seed: int) -> Int[Tensor, " q"]:
        """Members nearest to centers of clusters of the whole pool, which fill it as it is filled.

        The centers are gone through in a random order, again and again.
        """
        self.check_left(num_points)
        generator, available = seeded(seed, _DESIGN), self.all_points()
        kernel = RBFKernel().to(self.scaled)
        kernel.lengthscale = 1.0
        centers = kmeans_points(kernel, self.scaled, num_initial, generator=generator)
        order = torch.randperm(len(centers), generator=generator)
        chosen = []
        for k in range(num_before, num_before + num_points):
            center = centers[order[k % len(order)]]
            nearest = available[(self.scaled[available] - center).square().sum(-1).argmin()]
            chosen.append(nearest)
            available = available[available != nearest]
        return torch.stack(chosen)

    def scatter(self, num_points: int, *, num_before: int, seed: int, ask: int) -> Int[Tensor, " q"]:
        """Members at random."""
        self.check_left(num_points)
        available = self.all_points()
        return available[torch.randperm(len(available), generator=seeded(seed, _RANDOM, ask))[:num_points]]

    def candidates(self, num_points: int, *, centers: Tensor, generator: torch.Generator) -> Int[Tensor, " c"]:
        """Members that are left, or a random part of many."""
        available = self.all_points()
        if len(available) <= num_points:
            return available
        return available[torch.randperm(len(available), generator=generator)[:num_points].sort().values]

    @torch.no_grad()
    def maximize(
        self, function: Any, q: int, search: Search, *, seed: int, centers: Tensor | None = None
    ) -> Int[Tensor, " q"]:
        """The member of the largest value, one after the other, each given that those before are pending."""
        self.check_left(q)
        space, chosen = self, self.no_points()
        before = function.X_pending if q > 1 else None
        for _ in range(q):
            available = space.all_points()
            values = torch.cat([function(part.unsqueeze(-2)) for part in self.inputs(available).split(_CHUNK)])
            best = available[values.argmax()].reshape(1)
            chosen = torch.cat([chosen, best])
            space = space.without(best)
            if len(chosen) < q:
                taken = self.inputs(chosen)
                function.set_X_pending(taken if before is None else torch.cat([before, taken]))
        return chosen

    def separate(self, points: Tensor, taken: Tensor, *, is_noisy: bool, seed: int) -> Int[Tensor, " q"]:
        """They are different already."""
        return points

    def still_pending(self, pending: Tensor, told: Tensor) -> Int[Tensor, " r"]:
        """Without members that were told."""
        return pending[~torch.isin(pending, told)]
