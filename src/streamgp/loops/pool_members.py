"""What users say of the members of a pool: their names and costs."""

import sys
from collections import Counter
from collections.abc import Iterable
from difflib import get_close_matches
from numbers import Integral
from typing import Any

from jaxtyping import Float
from torch import Tensor

from streamgp.checks import check_finite, to_double
from streamgp.errors import ArgumentTypeError, OptionError, ShapeError, ValueRangeError

__all__ = ["in_order", "input_names", "positions", "read_costs", "read_names"]


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
