"""Start of training: defaults that follow the data, the user's modules, or an earlier result."""

import math
from copy import deepcopy
from dataclasses import replace
from typing import Any

import torch
from gpytorch.kernels import Kernel, MaternKernel, ScaleKernel
from gpytorch.means import ConstantMean, Mean
from jaxtyping import Float
from torch import Tensor

from streamgp.conditioning import SparseGP
from streamgp.errors import ShapeError, UnsupportedError
from streamgp.evidence import Evidence
from streamgp.gp.kernel_dims import check_num_dims
from streamgp.gp.named_kernels import make_kernel
from streamgp.likelihoods import AbstractLikelihood, Gaussian
from streamgp.training.arguments import CheckedRows, Options, check_points
from streamgp.training.features import Observed
from streamgp.training.full_batch import Log, Task
from streamgp.training.parameters import Hyperparameters
from streamgp.training.prior_site import read_prior_site
from streamgp.training.priors import latent_variance
from streamgp.training.result import FitResult
from streamgp.training.scaling import describe_unscaled_inputs, find_scaling, spread, to_observed
from streamgp.training.sharding.shards import RowMoments

__all__ = ["prepare", "starting_hyperparameters"]

# Where a learned noise variance starts, relative to that of the targets.
_START_NOISE = 0.05
_ADVICE = "Pass standardize='inputs', which the result remembers, or scale the inputs."


def prepare(rows: CheckedRows, options: Options, *, moments: RowMoments | None = None) -> tuple[Task, Hyperparameters]:
    """Read observations as training sees them, and find where to start.

    Where the rows are a sample, scaling and priors follow the moments of all of them.
    """
    log = Log()
    data, start = to_observed(rows.inputs, rows.targets), options.start
    if isinstance(options.inducing, Tensor):
        check_points(options.inducing, like=_points(rows))
    scaling = find_scaling(options.standardize, data.all_inputs, data.levels, is_gaussian=options.is_gaussian)
    if moments is not None and scaling is not None:
        scaling = moments.scaling(like=scaling)
    if isinstance(start, FitResult) and start.scaling is not None:
        scaling = start.scaling  # what is carried over has these units
    if scaling is not None:
        data = scaling.observed(data)
    if moments is not None:
        unit = 1.0 if scaling is None else float(scaling.target_scale)
        data = replace(data, whole_variance=moments.target_variance / unit**2)
    if options.carried is None and options.standardize is not None:
        log.warnings += filter(None, [describe_unscaled_inputs(data.all_inputs, advice=_ADVICE)])
    if options.carried is not None:  # whose units were chosen before, for inputs that may have spread further
        data = replace(data, carried=read_prior_site(options.carried, like=_points(rows)))
    setting = starting_hyperparameters(
        data,
        likelihood=options.likelihood,
        kernel=options.kernel,
        mean=options.mean,
        start=start,
        latent_variance=latent_variance(data, options.likelihood),
    )
    return Task(data, options, log, scaling), setting


def _points(rows: CheckedRows) -> Tensor:
    return rows.inputs.points if isinstance(rows.inputs, Evidence) else rows.inputs


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
    X = data.all_inputs
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
    mean.initialize(constant=data.levels.mean().item() if is_gaussian else 0.0)
    return mean


def _default_kernel(data: Observed, variance: float | Float[Tensor, " c"]) -> Kernel:
    X = data.candidates
    d, shape = X.shape[-1], variance.shape if isinstance(variance, Tensor) else torch.Size()
    kernel = ScaleKernel(MaternKernel(2.5, ard_num_dims=d, batch_shape=shape), batch_shape=shape).to(X)
    # Two inputs drawn at random are then about 1.4 lengthscales apart, whatever the dimension.
    kernel.base_kernel.lengthscale = math.sqrt(d) * spread(X)
    kernel.outputscale = variance
    return kernel
