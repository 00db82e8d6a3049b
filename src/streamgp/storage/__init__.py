"""One codec for every file: objects by their fields, as JSON and arrays, without pickle.

A class that is to be saved is a frozen dataclass (or a named tuple) and is registered; it adds nothing but its fields:

```python
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.storage import load, register, save


@register
@dataclass(frozen=True, eq=False)
class State:
    X: Float[Tensor, "n d"]
    num_asks: int = 0


save(State(torch.zeros(3, 2)), "state.zip")
state = load("state.zip", kind=State)
```

Fields may hold numbers, texts, None, tuples, lists, mappings, tensors, NumPy arrays, kernels, means and other modules
that are known by name (`register_module`), likelihoods, and objects of registered classes. An object of any other
class is an error when it is saved. What is read is compared with the annotations of the fields, shapes of tensors
included; `check=` adds a check of values. A field with a default may be absent from a file. A class that is no
dataclass passes `to_fields` and `from_fields`.
"""

import streamgp.storage.core  # noqa: F401 # registers the classes of gp and likelihoods
from streamgp.storage.modules import register_module
from streamgp.storage.registry import register
from streamgp.storage.saving import describe_unsavable, load, save

__all__ = ["describe_unsavable", "load", "register", "register_module", "save"]
