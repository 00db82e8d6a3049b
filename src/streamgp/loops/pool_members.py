"""What users say of the members of a pool: their names and costs."""

from collections import Counter
from collections.abc import Iterable
from difflib import get_close_matches
from numbers import Integral
from typing import Any

from jaxtyping import Float
from torch import Tensor

from streamgp.checks import check_finite, to_double
from streamgp.errors import ArgumentTypeError, ShapeError, ValueRangeError

__all__ = ["positions", "read_costs", "read_names"]


def read_names(names: Any, num_members: int) -> tuple[str, ...]:
    """Check the names of members, which must be different."""
    called = tuple(str(name) for name in names)
    if len(called) != num_members:
        raise ShapeError(f"names must have one for each of the {num_members} members, but has {len(called)}.")
    repeated = [name for name, count in Counter(called).items() if count > 1]
    if repeated:
        raise ValueRangeError(f"names must be different, but {repeated[0]!r} comes more than once. Number them.")
    return called


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
