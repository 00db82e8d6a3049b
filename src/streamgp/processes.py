"""Objects that are sent to other processes."""

import pickle
from multiprocessing.reduction import ForkingPickler
from typing import Any, TypeVar

__all__ = ["sent_by_value"]

Class = TypeVar("Class", bound=type)


def sent_by_value(cls: Class) -> Class:
    """Let pools and queues of processes send objects of a class by value: a decorator for final classes.

    Torch lets `multiprocessing` share the memory of tensors, for which it moves them *in place*. An array of NumPy that
    looks into a tensor, or a thread that computes with it, would then read memory that is free. Plain pickle copies,
    and so does this.
    """
    ForkingPickler.register(cls, _reduce)
    return cls


def _reduce(value: Any) -> tuple[Any, tuple[bytes]]:
    return pickle.loads, (pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL),)
