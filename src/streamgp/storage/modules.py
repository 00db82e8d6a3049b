"""Kernels, means and other modules as plain descriptions: class names and arguments that JSON can hold, without code.

One table says what the constructor of a module takes, another what those of its constraints and priors take.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import torch
from gpytorch import constraints, kernels, means, priors
from torch import Tensor
from torch.nn import Module

from streamgp.errors import FileFormatError, UnsupportedError

__all__ = [
    "describe_module",
    "rebuild_module",
    "register_module",
    "register_prior",
    "restore_module",
    "role_of",
    "state_of",
]

Structure = dict[str, Any]
Shapes = Mapping[str, tuple[int, ...]]

# Bounds on what is built from a file.
_DEEPEST = 24
_MOST_PARTS = 2000
# Values that a module may declare though the file does not hold as many: what they take does not matter.
_MOST_SPARE = 1000

# Arguments of the constructors of constraints and priors: tensors, which are attributes of the same names.
_ARGUMENTS: Mapping[type, tuple[str, ...]] = {
    constraints.GreaterThan: ("lower_bound",),
    constraints.Interval: ("lower_bound", "upper_bound"),
    constraints.LessThan: ("upper_bound",),
    constraints.Positive: (),
    priors.GammaPrior: ("concentration", "rate"),
    priors.HalfCauchyPrior: ("scale",),
    priors.HalfNormalPrior: ("scale",),
    priors.LogNormalPrior: ("loc", "scale"),
    priors.NormalPrior: ("loc", "scale"),
}
_CLASSES = {cls.__name__: cls for cls in _ARGUMENTS}
_DTYPES = {"float32": torch.float32, "float64": torch.float64}


@final
@dataclass(frozen=True)
class _ModuleFormat:
    """Constructor arguments of a class of modules.

    Attributes:
        cls: The class.
        options: Arguments of the constructor, by name, read off a module; those that are None are left out.
        sizes: The options that are sizes of its parameters.
        parts: Attributes that hold modules within it, in the order of the constructor; a list of modules counts, too.
            A star stands for all modules within it, which are then arguments by name.
        batch_shape: Reads the batch shape that the constructor takes; None if it takes none.
    """

    cls: type
    options: Mapping[str, Callable[[Any], Any]]
    sizes: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    batch_shape: Callable[[Any], Sequence[int]] | None = None


_FORMATS: dict[str, _ModuleFormat] = {}


def register_module(
    cls: type,
    *,
    options: Mapping[str, Callable[[Any], Any]] | Sequence[str] = (),
    sizes: Sequence[str] = (),
    parts: Sequence[str] = (),
    batch_shape: Callable[[Any], Sequence[int]] | None = lambda module: module.batch_shape,
) -> None:
    """Let files rebuild modules of a class: a kernel, a mean, a transform.

    Args:
        cls: The class; its name must be its own among all registered ones.
        options: Arguments of the constructor that are no sizes: names of attributes, or functions that read them off.
        sizes: Those that are sizes of parameters, such as `ard_num_dims`. What a file declares is compared with the
            tensors that it holds before anything is allocated.
        parts: Attributes that hold modules within it, passed to the constructor in this order; `("*",)` for all modules
            within it, passed by their names.
        batch_shape: Reads the batch shape, an argument of the constructor; None if it takes none.
    """
    readers = dict(options) if isinstance(options, Mapping) else {name: _attribute(name) for name in options}
    readers |= {name: _attribute(name) for name in sizes if name not in readers}
    _FORMATS[cls.__name__] = _ModuleFormat(cls, readers, tuple(sizes), tuple(parts), batch_shape)


def role_of(module: Module) -> str:
    """Return the option of `load` that stands for such a module."""
    if isinstance(module, kernels.Kernel):
        return "kernel"
    return "mean" if isinstance(module, means.Mean) else "module"


def state_of(module: Module) -> dict[str, Tensor]:
    """Parameters and buffers that are no part of the structure."""
    left_out = ("_prior.", "_constraint.", "active_dims")
    return {name: value for name, value in module.state_dict().items() if not any(part in name for part in left_out)}


def describe_module(module: Module) -> Structure | None:
    """Describe the structure of a module; None if it holds something that cannot be rebuilt by name.

    Priors count in fits. Where nothing is to be learned, those that cannot be rebuilt are left out.
    """
    format = _FORMATS.get(type(module).__name__)
    if format is None or format.cls is not type(module):
        return None
    structure: Structure = {"class": type(module).__name__}
    if format.batch_shape is not None:
        structure["batch_shape"] = list(format.batch_shape(module))
    options = {name: read(module) for name, read in format.options.items()}
    if isinstance(module, kernels.Kernel) and module.active_dims is not None:
        options["active_dims"] = module.active_dims.tolist()
    structure["options"] = {name: value for name, value in options.items() if value is not None}
    described = {
        "constraints": _describe_constraints(module),
        "priors": _describe_priors(module),
        "parts": {name: describe_module(part) for name, part in _parts(module, format).items()},
    }
    if any(None in each.values() for each in described.values()):
        return None
    return structure | described


def rebuild_module(structure: Structure, shapes: Shapes) -> Module:
    """Build a described module, with values still to be loaded.

    Args:
        structure: Result of `describe_module`, from a file.
        shapes: Of the tensors that will be its state, by name.

    Raises:
        FileFormatError: If it is not known, declares more than the tensors hold, or is too deep or too large.
    """
    return _rebuild(structure, shapes, depth=0, budget=[_MOST_PARTS])


def restore_module(name: Any, role: Any, given: Mapping[str, Module | None]) -> Module:
    """Return a copy of the module that the user passed in place of one that cannot be rebuilt."""
    module = given.get(str(role))
    if module is None:
        raise UnsupportedError(
            f"The file was saved with a {role} of class {name}, or with priors on its parameters, that cannot be "
            f"rebuilt by name. Pass one of the same structure: streamgp.load(path, {role}=...); its values are then "
            "read from the file. Or register its class with streamgp.storage.register_module before saving and loading."
        )
    return deepcopy(module)


def _rebuild(structure: Structure, shapes: Shapes, *, depth: int, budget: list[int]) -> Module:
    budget[0] -= 1
    if depth > _DEEPEST or budget[0] < 0:
        raise FileFormatError(
            f"The file describes a kernel or mean of more than {_DEEPEST} levels or {_MOST_PARTS} parts. It is damaged."
        )
    format = _FORMATS.get(structure["class"])
    if format is None:
        raise FileFormatError(
            f"The file names a kernel or mean of class {structure['class']}, which cannot be rebuilt by name."
        )
    parts = {}
    for name, part in structure["parts"].items():
        inner = {key.removeprefix(f"{name}."): shape for key, shape in shapes.items() if key.startswith(f"{name}.")}
        parts[name] = _rebuild(part, inner, depth=depth + 1, budget=budget)
    module = _build(format, structure, parts, shapes)
    if list(_parts(module, format)) != list(parts):
        raise FileFormatError(f"The parts of a {structure['class']} are not {sorted(parts)}. The file is damaged.")
    for name, described in structure["constraints"].items():
        module.register_constraint(name, _rebuild_constraint(described))
    for name, described in structure["priors"].items():
        register_prior(module, name, _rebuild_from_arguments(described))
    return module


def _build(format: _ModuleFormat, structure: Structure, parts: dict[str, Module], shapes: Shapes) -> Any:
    options = dict(structure["options"])
    unknown = options.keys() - format.options.keys() - {"active_dims"}
    if unknown:
        raise FileFormatError(f"The file gives a {structure['class']} the options {sorted(unknown)}. It is damaged.")
    if "active_dims" in options:
        options["active_dims"] = tuple(_count(each, minimum=0) for each in options["active_dims"])
    batch_shape = [_count(size) for size in structure.get("batch_shape", ())]
    declared = math.prod([*batch_shape, *(_count(options[name]) for name in format.sizes if name in options)])
    held = sum(math.prod(shape) for shape in shapes.values())
    if declared > max(held, _MOST_SPARE):
        raise FileFormatError(
            f"The file declares a {structure['class']} with {declared} values, but holds {held}. It is damaged."
        )
    if format.batch_shape is not None:
        options["batch_shape"] = torch.Size(batch_shape)
    return format.cls(**parts, **options) if format.parts == ("*",) else format.cls(*parts.values(), **options)


def _count(value: Any, *, minimum: int = 1) -> int:
    if type(value) is not int or value < minimum:
        raise FileFormatError(f"The file declares a size of {value!r}. It is damaged.")
    return value


def _parts(module: Any, format: _ModuleFormat) -> dict[str, Module]:
    if format.parts == ("*",):
        return dict(module.named_children())
    parts: dict[str, Module] = {}
    for name in format.parts:
        value = getattr(module, name)
        if isinstance(value, torch.nn.ModuleList):
            parts |= {f"{name}.{i}": part for i, part in enumerate(value)}
        else:
            parts[name] = value
    return parts


def _attribute(name: str) -> Callable[[Any], Any]:
    def read(module: Any) -> Any:
        value = getattr(module, name)
        return int(value) if isinstance(value, Tensor) else value

    return read


def _describe_constraints(module: Module) -> dict[str, Structure | None]:
    """Describe constraints of a module's own parameters, by their names; None for one that cannot be rebuilt."""
    names = [name for name, value in module.named_parameters(recurse=False) if value is not None]
    found = {name: getattr(module, f"{name}_constraint", None) for name in names}
    return {name: _describe_constraint(each) for name, each in found.items() if each is not None}


def _describe_constraint(constraint: constraints.Interval) -> Structure | None:
    described = _describe_arguments(constraint, constraint.lower_bound.dtype)
    if described is None:
        return None
    described["is_transformed"] = constraint._transform is not None
    # Transforms are functions or modules without values: their text tells them apart.
    return described if repr(_rebuild_constraint(described)._transform) == repr(constraint._transform) else None


def _rebuild_constraint(described: Structure) -> constraints.Interval:
    untransformed = {} if described["is_transformed"] else {"transform": None, "inv_transform": None}
    constraint = _rebuild_from_arguments(described, **untransformed)
    dtype = _DTYPES[described["dtype"]]
    constraint.to(dtype)
    for name, value in zip(_ARGUMENTS[type(constraint)], described["arguments"], strict=True):
        constraint.register_buffer(name, torch.tensor(value, dtype=dtype))  # the constructor rounds to single precision
    return constraint


def _describe_priors(module: Any) -> dict[str, Structure | None]:
    """Describe priors of a module's parameters by the names of these; None for one that cannot be rebuilt.

    Where nothing is to be learned, those that cannot be rebuilt are left out.
    """
    described = {}
    for name, (prior, closure, _) in getattr(module, "_priors", {}).items():
        about = name.removesuffix("_prior")
        value = getattr(module, about, None)
        is_plain = about != name and isinstance(value, Tensor) and torch.equal(closure(module), value)
        is_plain = is_plain and getattr(prior, "_transform", None) is None
        described[about] = _describe_arguments(prior) if is_plain else None
    if any(parameter.requires_grad for parameter in module.parameters()):
        return described
    return {name: prior for name, prior in described.items() if prior is not None}


def _describe_arguments(value: Any, dtype: torch.dtype | None = None) -> Structure | None:
    """Describe class and arguments of a constraint or a prior; None if it cannot be rebuilt from them."""
    if type(value) not in _ARGUMENTS:
        return None
    arguments: list[Tensor] = [getattr(value, name) for name in _ARGUMENTS[type(value)]]
    if not all(bool(torch.isfinite(each).all()) for each in arguments):
        return None
    dtype = arguments[0].dtype if dtype is None else dtype
    return {
        "class": type(value).__name__,
        "dtype": str(dtype).removeprefix("torch."),
        "arguments": [each.tolist() for each in arguments],
    }


def _rebuild_from_arguments(described: Structure, **options: None) -> Any:
    """Build a constraint or a prior from what `_describe_arguments` returned."""
    cls = _CLASSES[described["class"]]
    values = [torch.tensor(value, dtype=_DTYPES[described["dtype"]]) for value in described["arguments"]]
    if len(values) != len(_ARGUMENTS[cls]) or not all(bool(torch.isfinite(value).all()) for value in values):
        raise FileFormatError(f"The file describes a {described['class']} with other arguments. It is damaged.")
    return cls(*values, **options)


def register_prior(module: Any, name: str, prior: Any) -> None:
    """Give a parameter a prior as GPyTorch does by its name, but so that the module can be pickled."""
    module.register_prior(f"{name}_prior", prior, partial(_get, name), partial(_set, name))


def _get(name: str, module: Any) -> Tensor:
    return getattr(module, name)


def _set(name: str, module: Any, value: Any) -> None:
    module.initialize(**{name: value})


def _num_frequency_dims(kernel: Any) -> int | None:
    """Dimensions of the frequencies of random features; None before GPyTorch has drawn them."""
    weights = kernel._buffers.get("randn_weights")
    return None if weights is None else weights.shape[-2]


for _kernel in (kernels.RBFKernel, kernels.RQKernel, kernels.PeriodicKernel, kernels.LinearKernel):
    register_module(_kernel, sizes=("ard_num_dims",))
register_module(kernels.MaternKernel, options=("nu",), sizes=("ard_num_dims",))
register_module(kernels.PiecewisePolynomialKernel, options=("q",), sizes=("ard_num_dims",))
register_module(kernels.CosineKernel)
register_module(kernels.ConstantKernel)
register_module(kernels.PolynomialKernel, options=("power",))
register_module(kernels.SpectralMixtureKernel, sizes=("num_mixtures", "ard_num_dims"))
register_module(
    kernels.RFFKernel,
    options={"num_dims": _num_frequency_dims, "ard_num_dims": _attribute("ard_num_dims")},
    sizes=("num_samples", "num_dims"),
)
register_module(
    kernels.IndexKernel,
    options={
        "num_tasks": lambda kernel: kernel.covar_factor.shape[-2],
        "rank": lambda kernel: kernel.covar_factor.shape[-1],
    },
    sizes=("num_tasks", "rank"),
)
register_module(kernels.HammingIMQKernel, options=("vocab_size",))
register_module(kernels.ScaleKernel, parts=("base_kernel",))
register_module(kernels.AdditiveKernel, parts=("kernels",), batch_shape=None)
register_module(kernels.ProductKernel, parts=("kernels",), batch_shape=None)
register_module(means.ZeroMean)
register_module(means.ConstantMean)
register_module(
    means.LinearMean,
    options={"input_size": lambda mean: mean.weights.shape[-2], "bias": lambda mean: mean.bias is not None},
    sizes=("input_size",),
    batch_shape=lambda mean: mean.weights.shape[:-2],
)
