"""Learning a kernel and a noise variance that several targets share."""

import math
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import final

import torch
from gpytorch.kernels import Kernel, MaternKernel, ScaleKernel
from gpytorch.means import ZeroMean
from jaxtyping import Float
from torch import Tensor

from streamgp.gp import read_kernel
from streamgp.likelihoods import Gaussian
from streamgp.streaming.plain_bound import PlainBound, is_plain
from streamgp.training.collapsed import gaussian_bound
from streamgp.training.features import Moments
from streamgp.training.inducing import kmeans_points
from streamgp.training.lbfgs import maximize
from streamgp.training.parameters import Hyperparameters, Space, hyperparameter_space
from streamgp.training.priors import HyperPrior, read_priors

__all__ = ["FittedHyperparameters", "default_kernel", "learn_hyperparameters", "refine_hyperparameters", "scaled_to"]

_JITTER = 1e-8
_START_NOISE = 0.05
# The least noise variance that is learned, relative to the variance of the targets.
_LEAST_NOISE = 1e-5
_WARM_ITERATIONS, _FRESH_ITERATIONS, _JOINT_ITERATIONS = 8, 20, 20
_TOLERANCE = 1e-3


@final
@dataclass(frozen=True, eq=False)
class FittedHyperparameters:
    """What was learned.

    Attributes:
        kernel: The kernel.
        noise_variance: Variance of the noise.
        inducing_points: Points chosen under the kernel, or learned with it.
        bound: The collapsed bound for each value, priors included.
    """

    kernel: Kernel
    noise_variance: float
    inducing_points: Float[Tensor, "m d"]
    bound: float = math.nan


def default_kernel(num_dims: int) -> Kernel:
    """A scaled Matérn-5/2 kernel for standardized inputs, with a lengthscale for each."""
    kernel = ScaleKernel(MaternKernel(2.5, ard_num_dims=num_dims)).double()
    kernel.base_kernel.lengthscale = math.sqrt(num_dims)
    kernel.outputscale = 1.0
    return kernel


def learn_hyperparameters(
    X: Float[Tensor, "n d"],
    Y: Float[Tensor, "c n"],
    *,
    kernel: Kernel,
    before: FittedHyperparameters | None,
    noise_variance: float | None,
    num_inducing: int,
    seed: int,
    is_thorough: bool = True,
) -> tuple[FittedHyperparameters, float]:
    """Maximize the collapsed bound of Gaussian observations, summed over targets that share kernel and noise.

    Twice: from what was learned before, and from the start, as the former can be a local optimum from which no later
    data leads away. The better one is taken.

    Args:
        X: Inputs, standardized.
        Y: Targets of mean zero.
        kernel: Where a search from the start begins; parameters with `requires_grad=False` stay.
        before: What was learned before.
        noise_variance: The noise, if it is known.
        num_inducing: Number of inducing points.
        seed: Of the choice of points.
        is_thorough: Whether to search from the start, too, where something was learned before.

    Returns:
        What was learned, and what it gained over what was learned before, for each value; NaN if there was nothing.
    """
    variance = _variance(Y)
    starts = []
    if before is None or is_thorough:
        starts.append((kernel, noise_variance or _START_NOISE * variance, _FRESH_ITERATIONS))
    if before is not None:
        starts.append((_learnable_as(before.kernel, kernel), noise_variance or before.noise_variance, _WARM_ITERATIONS))
    found = []
    for start, noise, steps in starts:
        Z = kmeans_points(start, X, num_inducing, generator=torch.Generator().manual_seed(seed))
        setting = _setting(start, noise, Z, is_noise_learned=noise_variance is None)
        found.append(_climb(setting, X, Y, variance, steps))
    best = max(found, key=lambda each: each[0].bound)[0]
    return best, best.bound - found[-1][1] if before is not None else math.nan


def refine_hyperparameters(
    X: Float[Tensor, "n d"],
    Y: Float[Tensor, "c n"],
    found: FittedHyperparameters,
    *,
    kernel: Kernel,
    is_noise_learned: bool,
) -> FittedHyperparameters:
    """Maximize the same bound together with inducing points.

    Where points are too few for the function, what they leave open looks like noise, and lengthscales are learned that
    are too long. Points that are learned leave less open.

    Args:
        X: Inputs, standardized.
        Y: Targets of mean zero.
        found: Where the search begins, inducing points included.
        kernel: What was given; parameters with `requires_grad=False` stay.
        is_noise_learned: Whether the noise is.
    """
    start = _learnable_as(found.kernel, kernel)
    setting = _setting(start, found.noise_variance, found.inducing_points, is_noise_learned=is_noise_learned)
    return _climb(setting, X, Y, _variance(Y), _JOINT_ITERATIONS, learn_inducing=True)[0]


def _variance(Y: Float[Tensor, "c n"]) -> float:
    variance = float(Y.square().mean())
    return variance if variance > 1e-12 else 1.0


def _setting(kernel: Kernel, noise: float, points: Tensor, *, is_noise_learned: bool) -> Hyperparameters:
    likelihood = Gaussian(torch.tensor(noise, dtype=points.dtype), is_learned=is_noise_learned)
    return Hyperparameters(deepcopy(kernel).to(points), ZeroMean(), likelihood, points, {})


def _climb(
    setting: Hyperparameters,
    X: Tensor,
    Y: Tensor,
    variance: float,
    max_iterations: int,
    *,
    learn_inducing: bool = False,
) -> tuple[FittedHyperparameters, float]:
    """Learn from one start; returns what was found, and the bound at the start."""
    prior = read_priors(
        "dim_scaled", setting.kernel, setting.mean, likelihood=setting.likelihood, target_variance=variance
    )
    least = math.log(_LEAST_NOISE * variance)
    space = hyperparameter_space(
        setting, learn_inducing=learn_inducing, likelihood_bounds={"noise_variance": (least, math.inf)}
    )
    objective: Callable[[Tensor], Tensor] = lambda x: _objective(space, prior, X, Y, x)  # noqa: E731
    if is_plain(space):
        objective = PlainBound.of(space, X, Y, variance, _JITTER)
    ascent = maximize(
        objective,
        space.start,
        bounds=space.bounds,
        max_iterations=max_iterations,
        tolerance=_TOLERANCE,
        scale=float(Y.numel()),
    )
    learned = space.setting(ascent.x)
    noise = learned.likelihood.gaussian_noise_variance
    assert noise is not None
    found = FittedHyperparameters(learned.kernel, float(noise), learned.inducing_points, ascent.value / Y.numel())
    return found, ascent.history[0] / Y.numel()


def _objective(space: Space, prior: HyperPrior, X: Tensor, Y: Tensor, x: Tensor) -> Tensor:
    return space.evaluate(x, lambda setting: _bound(setting, X, Y) + prior.log_density(setting))


def _bound(setting: Hyperparameters, X: Float[Tensor, "n d"], Y: Float[Tensor, "c n"]) -> Float[Tensor, ""]:
    """Titsias' bound, summed over targets: all share the factors."""
    function, Z = read_kernel(setting.kernel), setting.inducing_points
    noise = setting.likelihood.gaussian_noise_variance
    assert noise is not None
    variance = function.diagonal(X).expand(len(X))
    Kzz = function.matrix(Z, Z) + torch.diag_embed(_JITTER * variance.mean().expand(len(Z)))
    return gaussian_bound(Moments(Kzz, function.matrix(Z, X), variance, X.new_zeros(len(X))), Y, noise)


def _learnable_as(kernel: Kernel, given: Kernel) -> Kernel:
    """A copy whose parameters are learned, but for those that the user froze."""
    copy = deepcopy(kernel)
    is_learned = {name: parameter.requires_grad for name, parameter in given.named_parameters()}
    for name, parameter in copy.named_parameters():
        parameter.requires_grad_(is_learned.get(name, True))
    return copy.train()


def scaled_to(hyperparameters: FittedHyperparameters, outputscale: float) -> FittedHyperparameters:
    """The same with another outputscale, where the kernel has one that is learned."""
    kernel = deepcopy(hyperparameters.kernel)
    if isinstance(kernel, ScaleKernel) and kernel.raw_outputscale.requires_grad:
        kernel.outputscale = outputscale
    return replace(hyperparameters, kernel=kernel)
