"""Input transforms with parameters, such as a warp, learned together with hyperparameters."""

from copy import deepcopy
from typing import Any, final

import torch
from botorch.models.transforms.input import AffineInputTransform, InputTransform, Warp
from gpytorch.kernels import Kernel
from gpytorch.means import ConstantMean, ZeroMean
from gpytorch.priors import LogNormalPrior
from jaxtyping import Float
from torch import Tensor

from streamgp.conditioning import SparseGP
from streamgp.errors import UnsupportedError
from streamgp.gp import Prior, SparseProcess, read_kernel
from streamgp.gp.named_kernels import make_kernel
from streamgp.likelihoods import AbstractLikelihood
from streamgp.storage.modules import register_prior
from streamgp.training import FitResult, fit

__all__ = ["WarpedKernel", "fit_with_transform", "learned_names"]

# Variance of the logarithms of a warp's exponents, where it has no priors of its own: as BoTorch recommends.
_WARP_VARIANCE = 0.75


def learned_names(transform: object) -> list[str]:
    """Names of the parameters of a transform that training is to learn."""
    if not isinstance(transform, torch.nn.Module) or not transform.training:
        return []
    return [name for name, parameter in transform.named_parameters() if parameter.requires_grad]


@final
class WarpedKernel(Kernel):  # type: ignore[misc] # GPyTorch's kernels have no types
    r"""A kernel of transformed inputs, $k(w(x), w(x'))$, whose hyperparameters include those of the transform $w$."""

    def __init__(self, base_kernel: Kernel, transform: torch.nn.Module, bounds: Float[Tensor, "2 d"]) -> None:
        """Keep the parts.

        Args:
            base_kernel: Of transformed inputs.
            transform: Of inputs in the user's units; in evaluation mode.
            bounds: Ends of the inputs, which this kernel sees as 0 and 1.
        """
        super().__init__()
        self.base_kernel, self.transform = base_kernel, transform
        self.register_buffer("lower", bounds[0])
        self.register_buffer("width", torch.where(bounds[1] > bounds[0], bounds[1] - bounds[0], 1.0))

    def warp(self, inputs: Float[Tensor, "*b n d"]) -> Float[Tensor, "*b n e"]:
        """Map inputs between 0 and 1 to what the kernel within sees."""
        warped: Tensor = self.transform(self.lower + self.width * inputs)
        return warped

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Tensor:
        """Evaluate the covariance of two sets of inputs, or the variance of one."""
        function, first = read_kernel(self.base_kernel), self.warp(x1)
        return function.diagonal(first) if diag else function.matrix(first, self.warp(x2))


def fit_with_transform(
    transform: InputTransform,
    X: Float[Tensor, "n d"],
    y: Float[Tensor, " n"],
    *,
    likelihood: AbstractLikelihood | None,
    kernel: Kernel | str | None = None,
    **options: Any,
) -> tuple[InputTransform, FitResult, SparseGP]:
    """Fit a sparse GP and the parameters of an input transform at once.

    Args:
        transform: Of inputs in the user's units. A warp without priors gets BoTorch's.
        X: Inputs in the user's units.
        y: Targets.
        likelihood: Of the targets; None for a Gaussian with learned noise.
        kernel: Of transformed inputs; as in `streamgp.fit`.
        **options: Of `streamgp.fit`.

    Returns:
        The learned transform, the fit, and its GP as one of transformed inputs.
    """
    _check_options(options)
    started = _fitted_to(transform, X)
    with torch.no_grad():
        ends = started(X).aminmax(dim=0)
    if kernel is None or isinstance(kernel, str):
        is_gaussian = likelihood is None or likelihood.is_gaussian
        variance = float(y.var()) if is_gaussian and len(y) > 1 else 1.0
        kernel = make_kernel(kernel or "matern", ends.min, ends.max, variance=variance if variance > 0 else 1.0)
    lower, upper = X.aminmax(dim=0)
    warped = WarpedKernel(deepcopy(kernel), _with_priors(started), torch.stack([lower, upper]))
    result = fit((X - warped.lower) / warped.width, y, likelihood=likelihood, kernel=warped, **options)
    found: Any = result.gp.kernel
    with torch.no_grad():
        for parameter, value in zip(started.parameters(), found.transform.parameters(), strict=True):
            parameter.copy_(value)
        points = found.warp(result.gp.inducing_points)
    before = result.gp.process
    prior = Prior.snapshot(found.base_kernel, result.gp.mean, like=points)
    process = SparseProcess(prior, points, before.whitened_mean, before.whitened_root, before.jitter)
    return started, result, SparseGP(process)


def _fitted_to(transform: InputTransform, X: Tensor) -> Any:
    """A copy whose ranges are those of the data, and stay so."""
    copy: Any = deepcopy(transform).to(X)
    with torch.no_grad():
        copy(X)
    for part in copy.modules():
        if isinstance(part, AffineInputTransform):
            part.learn_coefficients = False
    return copy.eval()


def _with_priors(transform: Any) -> Any:
    copy = deepcopy(transform)
    for module in copy.modules():
        if isinstance(module, Warp):
            part: Any = module  # its methods have no types
            for name in ("concentration0", "concentration1"):
                if f"{name}_prior" not in part._priors:
                    register_prior(part, name, LogNormalPrior(0.0, _WARP_VARIANCE**0.5))
    return copy


def _check_options(options: dict[str, Any]) -> None:
    if options.get("start") is not None or isinstance(options.get("inducing"), Tensor):
        raise UnsupportedError(
            "start and given inducing points are in the units of a transform that is known, but the input transform is "
            "still to be learned. Leave them out, or pass the transform after transform.eval()."
        )
    mean = options.get("mean")
    if mean is not None and not isinstance(mean, ConstantMean | ZeroMean):
        raise UnsupportedError(
            f"A {type(mean).__name__} depends on inputs whose transform is still to be learned. Use a constant mean, "
            "or pass the transform after transform.eval()."
        )
