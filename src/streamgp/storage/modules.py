"""Kernels, means and other modules as plain descriptions: class names and options that JSON can hold, without code."""

import math
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, final

import torch
from gpytorch import kernels, means
from torch import Tensor
from torch.nn import Module

from streamgp.errors import FileFormatError, UnsupportedError
from streamgp.storage.constraints import describe_constraints, rebuild_constraint
from streamgp.storage.priors import describe_priors, rebuild_prior, register_prior

__all__ = [
    "describe_module",
    "rebuild_module",
    "register_module",
    "registered_modules",
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


@final
@dataclass(frozen=True)
class _ModuleFormat:
    """How modules of a class are built again.

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


def registered_modules() -> tuple[type, ...]:
    """The classes of modules that files can rebuild."""
    return tuple(each.cls for each in _FORMATS.values())


def role_of(module: Module) -> str:
    """What an option of `load` calls such a module."""
    if isinstance(module, kernels.Kernel):
        return "kernel"
    return "mean" if isinstance(module, means.Mean) else "module"


def state_of(module: Module) -> dict[str, Tensor]:
    """Parameters and buffers that are no part of the structure."""
    left_out = ("_prior.", "_constraint.", "active_dims")
    return {name: value for name, value in module.state_dict().items() if not any(part in name for part in left_out)}


def describe_module(module: Module) -> Structure | None:
    """The structure of a module; None if it holds something that cannot be rebuilt by name.

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
        "constraints": describe_constraints(module),
        "priors": describe_priors(module),
        "parts": {name: describe_module(part) for name, part in _parts(module, format).items()},
    }
    if any(None in each.values() for each in described.values()):
        return None
    return structure | described


def rebuild_module(structure: Structure, shapes: Shapes) -> Module:
    """Build a described module, with values still to be loaded.

    Args:
        structure: What `describe_module` returned, from a file.
        shapes: Of the tensors that will be its state, by name.

    Raises:
        FileFormatError: If it is not known, declares more than the tensors hold, or is too deep or too large.
    """
    return _rebuild(structure, shapes, depth=0, budget=[_MOST_PARTS])


def restore_module(name: Any, role: Any, given: Mapping[str, Module | None]) -> Module:
    """A copy of the module that the user passed in place of one that cannot be rebuilt."""
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
        module.register_constraint(name, rebuild_constraint(described))
    for name, described in structure["priors"].items():
        register_prior(module, name, rebuild_prior(described))
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
