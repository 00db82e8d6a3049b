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
included; `check=` adds a check of values. A new field with a default needs nothing: older files lack it. When fields
change their meaning, raise `version=` and pass `migrations={1: function}`, a function from the fields of version 1
to those of version 2. A class that is no dataclass passes `to_fields` and `from_fields`.

Files of format version 1, which each class wrote by hand, are read by functions registered with `reads_version_1`;
`streamgp.storage.version1` has the parts.
"""

import streamgp.storage.core  # noqa: F401 # registers the classes of gp and likelihoods
from streamgp.storage.modules import register_module
from streamgp.storage.registry import register
from streamgp.storage.saving import describe_unsavable, load, reads_version_1, save

__all__ = ["describe_unsavable", "load", "reads_version_1", "register", "register_module", "save"]
