"""Where training starts: defaults that follow the data, the user's modules, or an earlier result."""

import math
from copy import deepcopy
from typing import Any

import torch
from gpytorch.kernels import Kernel, MaternKernel, ScaleKernel
from gpytorch.means import ConstantMean, Mean
from jaxtyping import Float
from torch import Tensor

from streamgp.conditioning import SparseGP
from streamgp.errors import ArgumentTypeError, ShapeError, UnsupportedError
from streamgp.gp.kernel_dims import check_num_dims
from streamgp.gp.named_kernels import check_kernel_name, make_kernel
from streamgp.likelihoods import AbstractLikelihood, Gaussian, registry
from streamgp.training.features import Observed
from streamgp.training.parameters import Hyperparameters, hyperparameter_space
from streamgp.training.result import FitResult
from streamgp.training.scaling import spread

__all__ = ["check_modules", "frozen_names", "perturbed", "read_likelihood", "starting_hyperparameters"]

# Where a learned noise variance starts, relative to that of the targets.
_START_NOISE = 0.05
# Standard deviation of the random change of logarithmic hyperparameters for starts after the first.
_START_SPREAD = 1.0


def read_likelihood(likelihood: object, start: object) -> AbstractLikelihood | None:
    """Check a likelihood, an object or a name; that of an earlier result if there is none."""
    if likelihood is None:
        return start.likelihood if isinstance(start, FitResult) else None
    return registry.read_likelihood(likelihood)


def check_modules(kernel: object, mean: object, start: object) -> None:
    """Check what a user gave to start with."""
    if isinstance(kernel, str):
        check_kernel_name(kernel)
        kernel = None
    for module, kind, name in ((kernel, Kernel, "kernel"), (mean, Mean, "mean")):
        if module is not None and not isinstance(module, kind):
            raise ArgumentTypeError(
                f"{name} must be one of gpytorch.{name}s, an object and not its class, but is "
                f"{f'the class {module.__name__}' if isinstance(module, type) else f'a {type(module).__name__}'}."
            )
    if start is not None and not isinstance(start, FitResult | SparseGP):
        raise ArgumentTypeError(
            f"start must be what fit returned or a SparseGP, but is a {type(start).__name__}. "
            "Give a starting kernel as kernel."
        )


def starting_hyperparameters(
    data: Observed,
    *,
    likelihood: AbstractLikelihood | None,
    kernel: Kernel | str | None,
    mean: Mean | None,
    start: FitResult | SparseGP | None,
    latent_variance: float | Float[Tensor, " c"],
) -> Hyperparameters:
    """Copy what the user gave in double precision, and make the rest.

    Args:
        data: The observations.
        likelihood: None for Gaussian noise that is learned.
        kernel: A kernel, its name, or None for that of `start`, or a scaled Matérn-5/2 kernel with a lengthscale for
            each dimension.
        mean: None for that of `start`, or a constant.
        start: Earlier result, whose inducing points are the first ones too.
        latent_variance: The natural scale of the latent function, or of each.
    """
    X = data.inputs
    Z = X[:1]
    if start is not None:
        gp = start.gp if isinstance(start, FitResult) else start
        Z = gp.inducing_points.detach().to(X)
        if Z.dim() == 3 and bool((Z[0] == Z).all()):
            Z = Z[0]  # shared by several latent functions
        if Z.dim() == 3 and Z.shape[-1] == X.shape[-1]:
            raise ShapeError(
                f"start has inducing points of shape {tuple(Z.shape)}: its models have points of their own, as they "
                "have after absorbing, but fit starts from points that are shared. Start from the result before, or "
                "pass kernel=result.gp.kernel and mean=result.gp.mean, and leave out start."
            )
        if Z.dim() != 2 or Z.shape[-1] != X.shape[-1]:
            raise ShapeError(
                f"start has inducing points of shape {tuple(Z.shape)}, but must have one model of inputs with "
                f"{X.shape[-1]} columns. Start from a result for data of the same kind."
            )
        frozen = start.frozen if isinstance(start, FitResult) else ()
        kernel = _thawed(gp.kernel, "kernel", frozen) if kernel is None else kernel
        mean = _thawed(gp.mean, "mean", frozen) if mean is None else mean
    if isinstance(kernel, str):
        lower, upper = data.candidates.aminmax(dim=0)
        if isinstance(latent_variance, Tensor):
            raise UnsupportedError(
                f"kernel={kernel!r} is that of one latent function, but the likelihood looks at "
                f"{len(latent_variance)}. Pass a kernel with batch_shape=torch.Size([{len(latent_variance)}]), or none."
            )
        chosen = make_kernel(kernel, lower, upper, variance=latent_variance)
    else:
        chosen = _default_kernel(data, latent_variance) if kernel is None else kernel
    if mean is None:
        mean = _default_mean(data, likelihood)
    chosen, mean = deepcopy(chosen).to(X), deepcopy(mean).to(X)
    if likelihood is None:
        likelihood = Gaussian(_START_NOISE * latent_variance)
    check_num_dims(chosen, X.shape[-1])
    _check_batch_shape(chosen, likelihood)
    return Hyperparameters(chosen, mean, likelihood, Z, {})


def perturbed(setting: Hyperparameters, generator: torch.Generator, *, target_unit: float) -> Hyperparameters:
    """Another start: all learned hyperparameters moved at random, on the scale of their logarithms.

    Args:
        setting: The first one.
        generator: Of the moves.
        target_unit: The spread of the targets.
    """
    space = hyperparameter_space(setting, target_unit=target_unit)
    lower, upper = space.bounds
    noise = torch.randn(len(lower), generator=generator, dtype=torch.float64).to(lower)
    return space.setting((space.start + _START_SPREAD * noise).clamp(lower, upper))


def frozen_names(setting: Hyperparameters) -> tuple[str, ...]:
    """Names of the parameters that are not learned."""
    return tuple(
        f"{group}.{name}"
        for group, module in (("kernel", setting.kernel), ("mean", setting.mean))
        for name, parameter in module.named_parameters()
        if not parameter.requires_grad
    )


def _thawed(module: Any, group: str, frozen: tuple[str, ...]) -> Any:
    """A copy whose parameters are learned again, but for those that were frozen before the earlier fit."""
    copy = deepcopy(module)
    for name, parameter in copy.named_parameters():
        parameter.requires_grad_(f"{group}.{name}" not in frozen)
    return copy.train()


def _check_batch_shape(kernel: Kernel, likelihood: AbstractLikelihood) -> None:
    """One model is trained: of one latent function, or of all that an observation looks at."""
    num = likelihood.num_latents
    if num == 1 and kernel.batch_shape:
        raise UnsupportedError(
            f"The kernel has leading axes {tuple(kernel.batch_shape)}, but fit trains one model. Fit one for each."
        )
    if num > 1 and kernel.batch_shape != (num,):
        raise UnsupportedError(
            f"A {type(likelihood).__name__} likelihood looks at {num} latent functions, but the kernel has leading "
            f"axes {tuple(kernel.batch_shape)}. Pass one with batch_shape=torch.Size([{num}]), or none."
        )


def _default_mean(data: Observed, likelihood: AbstractLikelihood | None) -> Mean:
    if likelihood is not None and likelihood.num_latents > 1:
        mean = ConstantMean(batch_shape=torch.Size([likelihood.num_latents])).to(data.targets)
        mean.initialize(constant=likelihood.starting_latents(data.targets)[0])
        return mean
    mean = ConstantMean()
    is_gaussian = likelihood is None or likelihood.is_gaussian
    mean.initialize(constant=data.targets.mean().item() if is_gaussian else 0.0)
    return mean


def _default_kernel(data: Observed, variance: float | Float[Tensor, " c"]) -> Kernel:
    X = data.candidates
    d, shape = X.shape[-1], variance.shape if isinstance(variance, Tensor) else torch.Size()
    kernel = ScaleKernel(MaternKernel(2.5, ard_num_dims=d, batch_shape=shape), batch_shape=shape).to(X)
    # Two inputs drawn at random are then about 1.4 lengthscales apart, whatever the dimension.
    kernel.base_kernel.lengthscale = math.sqrt(d) * spread(X)
    kernel.outputscale = variance
    return kernel
