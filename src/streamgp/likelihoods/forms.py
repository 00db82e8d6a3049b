"""Methods of numbers in whatever form predictions come: tensors, or arrays of NumPy."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np
from torch import Tensor

from streamgp.checks import to_form, to_tensor

__all__ = ["in_given_form"]

Method = TypeVar("Method", bound=Callable[..., Any])


def in_given_form(method: Method) -> Method:
    """Let a method of tensors answer with an array of NumPy if its first argument is one."""

    @wraps(method)
    def answer(self: Any, first: Any, *others: Any, **options: Any) -> Any:
        if not isinstance(first, np.ndarray):
            return method(self, first, *others, **options)
        tensors = [_read(each) for each in (first, *others)]
        result = method(self, *tensors, **{name: _read(each) for name, each in options.items()})
        return to_form(result, is_numpy=True) if isinstance(result, Tensor) else result

    return cast(Method, answer)


def _read(value: Any) -> Any:
    return to_tensor(value, "moments", kinds="fiub") if isinstance(value, np.ndarray) else value
