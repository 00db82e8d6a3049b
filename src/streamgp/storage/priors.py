"""Priors of the parameters of kernels and means as plain descriptions."""

from functools import partial
from typing import Any

import torch
from gpytorch import priors
from torch import Tensor

from streamgp.errors import FileFormatError

__all__ = ["describe_priors", "rebuild_prior", "register_prior"]

_CLASSES: dict[str, tuple[type, tuple[str, ...]]] = {
    "GammaPrior": (priors.GammaPrior, ("concentration", "rate")),
    "HalfCauchyPrior": (priors.HalfCauchyPrior, ("scale",)),
    "HalfNormalPrior": (priors.HalfNormalPrior, ("scale",)),
    "LogNormalPrior": (priors.LogNormalPrior, ("loc", "scale")),
    "NormalPrior": (priors.NormalPrior, ("loc", "scale")),
}
_DTYPES = {"float32": torch.float32, "float64": torch.float64}


def describe_priors(module: Any) -> dict[str, dict[str, Any] | None]:
    """Priors of a module's own parameters, by the name of what they are about; None for one that cannot be rebuilt.

    Where nothing is to be learned, those that cannot be rebuilt are left out.
    """
    names = [name.removesuffix("_prior") for name in getattr(module, "_priors", {})]
    described = {name: _describe(module, name) for name in names}
    if any(parameter.requires_grad for parameter in module.parameters()):
        return described
    return {name: prior for name, prior in described.items() if prior is not None}


def _describe(module: Any, name: str) -> dict[str, Any] | None:
    prior = module._priors[f"{name}_prior"][0] if f"{name}_prior" in module._priors else None
    cls, arguments = _CLASSES.get(type(prior).__name__, (None, ()))
    if cls is not type(prior) or getattr(prior, "_transform", None) is not None or not _is_plain(module, name):
        return None
    values: list[Tensor] = [getattr(prior, argument) for argument in arguments]
    if not all(bool(torch.isfinite(value).all()) for value in values):
        return None
    dtype = str(values[0].dtype).removeprefix("torch.")
    return {"class": type(prior).__name__, "dtype": dtype, "arguments": [value.tolist() for value in values]}


def _is_plain(module: Any, name: str) -> bool:
    """Whether a prior's function of the module is that of the attribute with its name."""
    value = getattr(module, name, None)
    return isinstance(value, Tensor) and torch.equal(module._priors[f"{name}_prior"][1](module), value)


def rebuild_prior(described: dict[str, Any]) -> Any:
    """Build a described prior.

    Args:
        described: What `describe_priors` said of one.

    Raises:
        FileFormatError: If its arguments are not those of its class.
    """
    cls, arguments = _CLASSES[described["class"]]
    dtype = _DTYPES[described["dtype"]]
    values = [torch.tensor(value, dtype=dtype) for value in described["arguments"]]
    if len(values) != len(arguments) or not all(bool(torch.isfinite(value).all()) for value in values):
        raise FileFormatError(f"The file describes a {described['class']} with other arguments. It is damaged.")
    return cls(*values)


def register_prior(module: Any, name: str, prior: Any) -> None:
    """Give a parameter a prior as GPyTorch does by its name, but so that the module can be pickled."""
    module.register_prior(f"{name}_prior", prior, partial(_get, name), partial(_set, name))


def _get(name: str, module: Any) -> Tensor:
    return getattr(module, name)


def _set(name: str, module: Any, value: Any) -> None:
    module.initialize(**{name: value})
