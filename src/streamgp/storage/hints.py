"""Comparison of values that were read from a file with annotations."""

import collections.abc
import types
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, no_type_check

from jaxtyping import AbstractArray

__all__ = ["matches"]

_SEQUENCES = (list, collections.abc.Sequence, collections.abc.Iterable, collections.abc.Collection)
_MAPPINGS = (dict, collections.abc.Mapping)


@no_type_check  # or the tests would give each call axes of its own
def matches(value: Any, hint: Any) -> bool:
    """Say whether a value fits an annotation.

    Unions, tuples, lists, mappings, literals, classes and shapes of tensors are looked into; what cannot be checked,
    such as a protocol or a function, fits. A whole number is accepted where a float is asked for.
    """
    if hint is Any or isinstance(hint, TypeVar | str):
        return True
    if hint is None or hint is type(None):
        return value is None
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return any(matches(value, each) for each in arguments)
    if origin is Literal:
        return any(type(value) is type(each) and value == each for each in arguments)
    if origin is tuple:
        return _matches_tuple(value, arguments)
    if origin in _SEQUENCES:
        kind = list if origin is list else collections.abc.Sequence
        return isinstance(value, kind) and not isinstance(value, str) and all(matches(v, arguments[0]) for v in value)
    if origin in _MAPPINGS:
        return isinstance(value, collections.abc.Mapping) and all(
            matches(key, arguments[0]) and matches(each, arguments[1]) for key, each in value.items()
        )
    return _matches_class(value, origin or hint)


@no_type_check
def _matches_tuple(value: Any, arguments: tuple[Any, ...]) -> bool:
    if not isinstance(value, tuple):
        return False
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return all(matches(each, arguments[0]) for each in value)
    return len(value) == len(arguments) and all(map(matches, value, arguments))


@no_type_check
def _matches_class(value: Any, hint: Any) -> bool:
    if hint in (int, float) and isinstance(value, bool):
        return False
    if hint is float:
        return isinstance(value, int | float)
    if not isinstance(hint, type):
        return True
    if not issubclass(hint, AbstractArray) and getattr(hint, "_is_protocol", False):
        return True
    return isinstance(value, hint)
