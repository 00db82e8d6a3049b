"""Everything that training may change, as one vector: coordinates without constraints, or with box bounds."""

import math
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, TypeVar, final

import torch
from gpytorch.constraints import Interval
from gpytorch.kernels import Kernel
from gpytorch.means import Mean
from jaxtyping import Float
from torch import Tensor
from torch.nn import Module, Parameter

from streamgp.likelihoods import AbstractLikelihood

__all__ = ["Hyperparameters", "Space", "hyperparameter_space"]

T = TypeVar("T")

# The spread of inducing points that gets the coordinates 1, about that of the unit cube.
_INDUCING_UNIT = 4.0


@final
@dataclass(frozen=True, eq=False)
class Hyperparameters:
    """One value of everything that training may change.

    Attributes:
        kernel: GPyTorch kernel.
        mean: GPyTorch mean.
        likelihood: Of the observations.
        inducing_points: $Z$.
        extra: Other learned tensors, by name: the scale of a shrinkage prior, a belief about the inducing values.
    """

    kernel: Kernel
    mean: Mean
    likelihood: AbstractLikelihood
    inducing_points: Float[Tensor, "m d"]
    extra: Mapping[str, Tensor]


@final
@dataclass(frozen=True, eq=False)
class _Coordinate:
    """A tensor that is learned.

    Attributes:
        name: Group and name, as in `kernel.base_kernel.raw_lengthscale`.
        start: Where its coordinates start.
        lower: The least that a coordinate may be.
        upper: The most.
        to_value: From coordinates to the tensor that the model uses.
    """

    name: str
    start: Tensor
    lower: Tensor
    upper: Tensor
    to_value: Callable[[Tensor], Tensor]


class _Modules(Module):
    """A kernel and a mean that can be evaluated together under other values of their parameters."""

    def __init__(self, kernel: Module, mean: Module) -> None:
        super().__init__()
        self.kernel, self.mean = kernel, mean

    def forward(self, compute: Callable[[Any, Any], T]) -> T:
        return compute(self.kernel, self.mean)


@final
@dataclass(frozen=True, eq=False)
class Space:
    """The vector space that an optimizer sees.

    Attributes:
        base: Where it starts, and what does not change.
        coordinates: What changes.
    """

    base: Hyperparameters
    coordinates: tuple[_Coordinate, ...]

    @property
    def start(self) -> Float[Tensor, " k"]:
        """The coordinates of the base."""
        return self._join([c.start for c in self.coordinates])

    @property
    def bounds(self) -> tuple[Float[Tensor, " k"], Float[Tensor, " k"]]:
        """Box bounds of the coordinates, infinite where there is none."""
        return self._join([c.lower for c in self.coordinates]), self._join([c.upper for c in self.coordinates])

    @property
    def names(self) -> tuple[str, ...]:
        """Names of what changes."""
        return tuple(c.name for c in self.coordinates)

    def evaluate(self, x: Float[Tensor, " k"], compute: Callable[[Hyperparameters], T]) -> T:
        """Call a function of the setting at given coordinates, differentiable in them."""
        values = self._values(x)
        raw = _group(values, "kernel", is_full_name=True) | _group(values, "mean", is_full_name=True)

        def run(kernel: Kernel, mean: Mean) -> T:
            return compute(
                Hyperparameters(
                    kernel,
                    mean,
                    _likelihood(self.base.likelihood, values),
                    values.get("inducing_points", self.base.inducing_points),
                    {**self.base.extra, **_group(values, "extra")},
                )
            )

        modules = _Modules(self.base.kernel, self.base.mean)
        return torch.func.functional_call(modules, raw, (run,))

    def setting(self, x: Float[Tensor, " k"]) -> Hyperparameters:
        """A copy of the base with the values of given coordinates, without gradient."""
        with torch.no_grad():
            values = self._values(x.detach())
            modules = deepcopy(_Modules(self.base.kernel, self.base.mean))
            parameters = dict(modules.named_parameters())
            for name, value in values.items():
                if name in parameters:
                    parameters[name].copy_(value)
            kernel: Any = modules.kernel
            mean: Any = modules.mean
            return Hyperparameters(
                kernel,
                mean,
                _likelihood(self.base.likelihood, values),
                values.get("inducing_points", self.base.inducing_points).clone(),
                {**self.base.extra, **{key: value.clone() for key, value in _group(values, "extra").items()}},
            )

    def _values(self, x: Tensor) -> dict[str, Tensor]:
        parts = x.split([c.start.numel() for c in self.coordinates])
        return {
            c.name: c.to_value(part.reshape(c.start.shape)) for c, part in zip(self.coordinates, parts, strict=True)
        }

    def _join(self, parts: list[Tensor]) -> Tensor:
        flat = [part.reshape(-1) for part in parts]
        return torch.cat(flat) if flat else self.base.inducing_points.new_zeros(0)


def hyperparameter_space(
    setting: Hyperparameters,
    *,
    learn_inducing: bool = False,
    learn_hyperparameters: bool = True,
    extra: Mapping[str, tuple[float, float]] | None = None,
    likelihood_bounds: Mapping[str, tuple[float, float]] | None = None,
    target_unit: float = 1.0,
) -> Space:
    r"""Lay out what is learned of a setting.

    Parameters with `requires_grad=False` are left out. A parameter that a constraint keeps above a bound $b$ has the
    coordinate $\log(\theta - b)$, in which GP objectives are close to quadratic, whatever transform the constraint
    itself uses. Constraints without a transform become box bounds. Parameters of the mean without a constraint are in
    units of the targets' spread, so that the scale of the targets does not matter.

    Args:
        setting: The start; its modules are not changed.
        learn_inducing: Whether the inducing points are learned.
        learn_hyperparameters: Whether kernel, mean and likelihood are.
        extra: Bounds of those of the setting's extra tensors that are learned.
        likelihood_bounds: Bounds of the likelihood's unconstrained values, where there are any.
        target_unit: The spread of the targets.
    """
    coordinates = []
    if learn_hyperparameters:
        for group, module, unit in (("kernel", setting.kernel, 1.0), ("mean", setting.mean, target_unit)):
            constraints = {id(parameter): c for _, parameter, c in module.named_parameters_and_constraints()}
            for name, parameter in module.named_parameters():
                if parameter.requires_grad:
                    constraint = constraints[id(parameter)]
                    coordinates.append(_module_coordinate(f"{group}.{name}", parameter, constraint, unit))
        for name, value in setting.likelihood.learnable().items():
            bounds = (likelihood_bounds or {}).get(name, (-math.inf, math.inf))
            coordinates.append(_boxed(f"likelihood.{name}", value.detach().to(setting.inducing_points), *bounds))
    for name, (lower, upper) in (extra or {}).items():
        coordinates.append(_boxed(f"extra.{name}", setting.extra[name].detach(), lower, upper))
    if learn_inducing:
        coordinates.append(_inducing_coordinate(setting))
    return Space(setting, tuple(coordinates))


def _module_coordinate(name: str, parameter: Parameter, constraint: Interval | None, unit: float) -> _Coordinate:
    raw = parameter.detach()
    if constraint is None:
        return _in_units(name, raw, unit)
    lower, upper = (bound.to(raw).expand_as(raw) for bound in (constraint.lower_bound, constraint.upper_bound))
    if not constraint.enforced:
        raw = raw.clamp(lower, upper)
        if bool((lower > 0).all()):
            return _Coordinate(name, raw.log(), lower.log(), upper.log(), torch.exp)
        return _Coordinate(name, raw, lower, upper, _identity)
    if bool(torch.isfinite(lower).all() and torch.isinf(upper).all()):
        start = (constraint.transform(raw) - lower).clamp_min(torch.finfo(raw.dtype).tiny).log()

        def to_raw(x: Tensor) -> Tensor:
            return constraint.inverse_transform(lower + x.exp())

        return _Coordinate(name, start, *_unbounded(start), to_raw)
    return _boxed(name, raw, -math.inf, math.inf)


def _inducing_coordinate(setting: Hyperparameters) -> _Coordinate:
    """Inducing points in units of their own spread, so that the scale of the inputs does not matter."""
    Z = setting.inducing_points.detach()
    spread = Z.std(0, correction=0)
    return _in_units("inducing_points", Z, _INDUCING_UNIT * torch.where(spread > 0, spread, 1.0))


def _in_units(name: str, value: Tensor, unit: Tensor | float) -> _Coordinate:
    start = value / unit
    return _Coordinate(name, start, *_unbounded(start), lambda x: x * unit)


def _boxed(name: str, start: Tensor, lower: float, upper: float) -> _Coordinate:
    return _Coordinate(
        name,
        start.clamp(lower, upper),
        torch.full_like(start, lower),
        torch.full_like(start, upper),
        _identity,
    )


def _unbounded(like: Tensor) -> tuple[Tensor, Tensor]:
    return torch.full_like(like, -math.inf), torch.full_like(like, math.inf)


def _identity(x: Tensor) -> Tensor:
    return x


def _group(values: Mapping[str, Tensor], group: str, *, is_full_name: bool = False) -> dict[str, Tensor]:
    prefix = f"{group}."
    return {
        name if is_full_name else name.removeprefix(prefix): value
        for name, value in values.items()
        if name.startswith(prefix)
    }


def _likelihood(likelihood: AbstractLikelihood, values: Mapping[str, Tensor]) -> AbstractLikelihood:
    learned = _group(values, "likelihood")
    return likelihood.with_learnable(learned) if learned else likelihood
