"""Saving a sparse posterior: tensors and a JSON description in one file, without pickle."""

from copy import deepcopy
from typing import Any

import torch
from gpytorch.kernels import Kernel
from gpytorch.means import Mean
from torch import Tensor
from torch.nn import Module

from streamgp.errors import FileFormatError, UnsupportedError
from streamgp.gp.description import describe_module, rebuild_module
from streamgp.gp.prior import Prior
from streamgp.gp.sparse import SparseProcess

__all__ = ["describe_process", "rebuild_process"]

_TENSORS = ("inducing_points", "whitened_mean", "whitened_root")


def describe_process(process: SparseProcess) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """A sparse posterior as what JSON can hold, and tensors by name."""
    modules = {"kernel": process.prior.kernel, "mean": process.prior.mean_function}
    tensors = {name: getattr(process, name) for name in _TENSORS}
    if process.information is not None:
        tensors["information"] = process.information
    for prefix, module in modules.items():
        tensors |= {f"{prefix}.{key}": value for key, value in _state(module).items()}
    description = {
        "jitter": process.jitter,
        "modules": {
            prefix: {"class": type(module).__name__, "description": describe_module(module)}
            for prefix, module in modules.items()
        },
    }
    return description, tensors


def rebuild_process(
    description: dict[str, Any],
    tensors: dict[str, Tensor],
    *,
    kernel: Kernel | None,
    mean: Mean | None,
    device: torch.device | str | None,
    name: str,
) -> SparseProcess:
    """Build what `describe_process` described.

    Args:
        description: What JSON held.
        tensors: By name.
        kernel: A kernel of the described structure, if it is not known by name.
        mean: A mean, likewise.
        device: Where to put the tensors; the CPU by default.
        name: What an error calls the file.
    """
    missing = [key for key in _TENSORS if key not in tensors]
    if missing:
        raise FileFormatError(f"{name} lacks the tensors {missing}. The file is damaged; save the model again.")
    absent = [key for key in ("jitter", "modules") if key not in description]
    if absent:
        raise FileFormatError(f"{name} lacks the entries {absent}. The file is damaged; save the model again.")
    given = {"kernel": kernel, "mean": mean}
    modules = {prefix: _restore(prefix, given[prefix], description, tensors) for prefix in given}
    Z, m, R = (tensors[key].to(device or "cpu") for key in _TENSORS)
    information = tensors["information"].to(device or "cpu") if "information" in tensors else None
    is_whole = Z.dim() >= 2 and m.shape == Z.shape[:-1] and R.shape == (*m.shape, m.shape[-1])
    if not is_whole or (information is not None and information.shape != m.shape):
        raise FileFormatError(
            f"{name} holds tensors of shapes {tuple(Z.shape)}, {tuple(m.shape)} and {tuple(R.shape)} that do not fit "
            "together. The file is damaged; save the model again."
        )
    prior = Prior.snapshot(modules["kernel"], modules["mean"], like=Z)
    return SparseProcess(prior, Z, m, R, float(description["jitter"]), information)


def _restore(prefix: str, given: Module | None, description: dict[str, Any], tensors: dict[str, Tensor]) -> Module:
    saved = description["modules"][prefix]
    if given is None and saved["description"] is None:
        raise UnsupportedError(
            f"The file was saved with a {prefix} of class {saved['class']}, which cannot be rebuilt by name. "
            f"Pass one of the same structure: streamgp.load(path, {prefix}=...). Its values are then read from it."
        )
    module = deepcopy(given) if given is not None else rebuild_module(saved["description"])
    state = {key.removeprefix(f"{prefix}."): value for key, value in tensors.items() if key.startswith(f"{prefix}.")}
    expected = _state(module)
    if {key: tuple(value.shape) for key, value in expected.items()} != {k: tuple(v.shape) for k, v in state.items()}:
        raise FileFormatError(
            f"The {prefix} has the parameters {sorted(expected)}, but the file holds {sorted(state)} or other shapes. "
            f"Pass a {prefix} of the structure that was saved, a {saved['class']}."
        )
    dtype = tensors["inducing_points"].dtype
    module.to(dtype).load_state_dict(state, strict=False)
    return module


def _state(module: Module) -> dict[str, Tensor]:
    """Parameters and buffers that predictions depend on; priors of hyperparameters are left out."""
    return {key: value for key, value in module.state_dict().items() if "_prior." not in key}
