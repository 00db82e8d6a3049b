"""Kernels and means as plain descriptions: class names and options that JSON can hold, without code."""

import math
from typing import Any

import torch
from gpytorch import constraints, kernels, means
from torch.nn import Module

from streamgp.errors import FileFormatError, UnsupportedError

__all__ = ["describe_module", "rebuild_module"]

# The options that each class needs to be built again; its values are in its state.
_OPTIONS: dict[str, tuple[str, ...]] = {
    "RBFKernel": ("ard_num_dims",),
    "MaternKernel": ("nu", "ard_num_dims"),
    "RQKernel": ("ard_num_dims",),
    "PeriodicKernel": ("ard_num_dims",),
    "CosineKernel": (),
    "LinearKernel": ("ard_num_dims",),
    "PolynomialKernel": ("power",),
    "ConstantKernel": (),
    "SpectralMixtureKernel": ("num_mixtures", "ard_num_dims"),
    "ScaleKernel": (),
    "AdditiveKernel": (),
    "ProductKernel": (),
    "ZeroMean": (),
    "ConstantMean": (),
    "LinearMean": ("input_size", "bias"),
}
_CONSTRAINTS = {
    cls.__name__: cls
    for cls in (constraints.Positive, constraints.GreaterThan, constraints.LessThan, constraints.Interval)
}
_COMPOSITE = ("AdditiveKernel", "ProductKernel")


def describe_module(module: Module) -> dict[str, Any] | None:
    """Describe a kernel or mean; None if it is not one of the common ones."""
    name = type(module).__name__
    home = kernels if isinstance(module, kernels.Kernel) else means
    if name not in _OPTIONS or type(module) is not getattr(home, name, None):
        return None
    described: dict[str, Any] = {"class": name, "batch_shape": list(getattr(module, "batch_shape", ()))}
    options = {key: _option(module, key) for key in _OPTIONS[name]}
    if isinstance(module, kernels.Kernel) and module.active_dims is not None:
        options["active_dims"] = module.active_dims.tolist()
    described["options"] = options
    described["constraints"] = {}
    for key, constraint in ((key, getattr(module, f"{key}_constraint", None)) for key, _ in _own_parameters(module)):
        if constraint is None:
            continue
        bounds = _describe_constraint(constraint)
        if bounds is None:
            return None
        described["constraints"][key] = bounds
    parts = _parts(module)
    described["parts"] = [describe_module(part) for part in parts]
    return None if None in described["parts"] else described


def rebuild_module(described: dict[str, Any]) -> Any:
    """Build a described kernel or mean, with values still to be loaded."""
    try:
        name = described["class"]
        options, batch_shape = dict(described["options"]), torch.Size(described["batch_shape"])
        parts = [rebuild_module(part) for part in described["parts"]]
        if name not in _OPTIONS:
            raise UnsupportedError(f"The file names a kernel or mean of class {name}, which cannot be rebuilt by name.")
        module = _build(name, options, batch_shape, parts)
        for key, bounds in described["constraints"].items():
            module.register_constraint(key, _rebuild_constraint(bounds))
    except (KeyError, TypeError, AttributeError) as error:
        raise FileFormatError(f"The file's description of the kernel or mean is not complete: {error!r}.") from error
    return module


def _build(name: str, options: dict[str, Any], batch_shape: torch.Size, parts: list[Any]) -> Any:
    if name in _COMPOSITE:
        return getattr(kernels, name)(*parts)
    if "active_dims" in options:
        options["active_dims"] = tuple(options["active_dims"])
    cls = getattr(kernels, name, None) or getattr(means, name)
    return cls(*parts, batch_shape=batch_shape, **options)


def _parts(module: Any) -> list[Module]:
    if isinstance(module, kernels.ScaleKernel):
        return [module.base_kernel]
    return list(module.kernels) if type(module).__name__ in _COMPOSITE else []


def _option(module: Any, key: str) -> Any:
    if key == "input_size":
        return module.weights.shape[-2]
    if key == "bias":
        return module.bias is not None
    value = getattr(module, key)
    return int(value) if isinstance(value, torch.Tensor) else value


def _own_parameters(module: Module) -> list[tuple[str, torch.nn.Parameter]]:
    return [(key, value) for key, value in module.named_parameters(recurse=False) if value is not None]


def _describe_constraint(constraint: constraints.Interval) -> dict[str, Any] | None:
    name = type(constraint).__name__
    if name not in _CONSTRAINTS or constraint.lower_bound.numel() != 1 or constraint.upper_bound.numel() != 1:
        return None
    described = {
        "class": name,
        "bounds": [_finite(constraint.lower_bound), _finite(constraint.upper_bound)],
        "is_transformed": constraint._transform is not None,
    }
    # Transforms are functions or modules without values: their text tells them apart.
    return described if repr(_rebuild_constraint(described)._transform) == repr(constraint._transform) else None


def _rebuild_constraint(described: dict[str, Any]) -> constraints.Interval:
    bounds = {"lower_bound": described["bounds"][0], "upper_bound": described["bounds"][1]}
    bounds = {key: value for key, value in bounds.items() if value is not None}
    if described["class"] == "Positive":
        bounds = {}
    untransformed = {} if described["is_transformed"] else {"transform": None, "inv_transform": None}
    return _CONSTRAINTS[described["class"]](**bounds, **untransformed)


def _finite(bound: torch.Tensor) -> float | None:
    value = float(bound)
    return value if math.isfinite(value) else None
