"""Reading a trained GPyTorch model."""

from typing import Any

import torch
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import Kernel
from gpytorch.means import Mean
from gpytorch.models import ApproximateGP
from gpytorch.variational import (
    CholeskyVariationalDistribution,
    DeltaVariationalDistribution,
    MeanFieldVariationalDistribution,
    NaturalVariationalDistribution,
    TrilNaturalVariationalDistribution,
    UnwhitenedVariationalStrategy,
    VariationalStrategy,
)
from torch import Tensor

from streamgp.checks import check_finite
from streamgp.errors import UnsupportedError
from streamgp.gp.prior import Prior
from streamgp.gp.sparse import SparseProcess
from streamgp.linalg import solve_lower, solve_vector
from streamgp.shapes import broadcast_shapes

__all__ = ["read_gpytorch"]

_STRATEGIES = (VariationalStrategy, UnwhitenedVariationalStrategy)
_DISTRIBUTIONS = (
    CholeskyVariationalDistribution,
    MeanFieldVariationalDistribution,
    DeltaVariationalDistribution,
    NaturalVariationalDistribution,
    TrilNaturalVariationalDistribution,
)


def read_gpytorch(model: ApproximateGP, *, kernel: Kernel | None, mean: Mean | None) -> SparseProcess:
    """Read kernel, mean, inducing points and belief of an `ApproximateGP`, with its own jitter."""
    strategy, distribution = _supported_parts(model)
    kernel = _module(model, kernel, "covar_module", "kernel")
    mean = _module(model, mean, "mean_module", "mean")
    with torch.no_grad():
        if not strategy.variational_params_initialized.item():
            # What the model's first call would do: without it, model and copy would start from different draws.
            distribution.initialize_variational_distribution(strategy.prior_distribution)
            strategy.variational_params_initialized.fill_(1)
        Z = strategy.inducing_points.detach().clone()
        belief = distribution()
        location = belief.mean.detach().clone()
        prior = Prior.snapshot(kernel, mean, like=Z)
        batch = broadcast_shapes(Z.shape[:-2], location.shape[:-1], prior.batch_shape)
        Z = Z.expand(*batch, *Z.shape[-2:])
        location = location.expand(*batch, location.shape[-1])
        root = _root(belief, location)
        for name, value in (("inducing points", Z), ("variational mean", location), ("variational covariance", root)):
            check_finite(value, f"the model's {name}")
        _check_forward(model, prior, Z)
        process = SparseProcess(prior, Z, location, root, strategy.jitter_val)
        if isinstance(strategy, VariationalStrategy):
            return process
        L = process.factor
        return process.with_belief(solve_vector(L, location - prior.mean(Z)), solve_lower(L, root))


def _supported_parts(model: ApproximateGP) -> tuple[Any, Any]:
    strategy: Any = getattr(model, "variational_strategy", None)
    if type(strategy) not in _STRATEGIES:
        raise UnsupportedError(
            f"The model's variational strategy must be one of {_names(_STRATEGIES)}, "
            f"but is {type(strategy).__name__}. Retrain the model with one of these."
        )
    distribution = strategy._variational_distribution
    if type(distribution) not in _DISTRIBUTIONS:
        raise UnsupportedError(
            f"The variational distribution must be one of {_names(_DISTRIBUTIONS)}, "
            f"but is {type(distribution).__name__}. Retrain the model with one of these."
        )
    if isinstance(strategy, VariationalStrategy) and not strategy.updated_strategy.item():
        raise UnsupportedError(
            "The model's variational parameters come from a GPyTorch before 1.2 and are not whitened yet. "
            "Call the model once on any input, which converts them, and try again."
        )
    return strategy, distribution


def _module(model: ApproximateGP, given: Any, attribute: str, option: str) -> Any:
    module = getattr(model, attribute, None) if given is None else given
    if module is None:
        raise UnsupportedError(
            f"The model has no attribute {attribute}, so its {option} is not known. Pass it with {option}=..."
        )
    return module


def _root(belief: object, location: Tensor) -> Tensor:
    m = location.shape[-1]
    if not isinstance(belief, MultivariateNormal):  # a delta distribution has no spread
        return location.new_zeros(*location.shape, m)
    root = belief.lazy_covariance_matrix.root_decomposition().root.to_dense().detach()
    return root.expand(*location.shape, m).clone()


def _check_forward(model: ApproximateGP, prior: Prior, Z: Tensor) -> None:
    """Refuse models whose `forward` does more than call the kernel and the mean, as with a feature extractor."""
    few = Z[..., : min(3, Z.shape[-2]), :]
    claimed = model.forward(few)
    same_mean = torch.allclose(claimed.mean, prior.mean(few), rtol=1e-4, atol=1e-6)
    same_kernel = torch.allclose(claimed.covariance_matrix, prior.covariance(few, few), rtol=1e-3, atol=1e-4)
    if not (same_mean and same_kernel):
        raise UnsupportedError(
            "The model's forward does not return its mean and kernel at the inputs as they are (a feature extractor or "
            "a transform, perhaps), so it cannot be read off. Transform the inputs outside the model, or pass the "
            "kernel and mean that forward really uses with kernel=... and mean=..."
        )


def _names(classes: tuple[type, ...]) -> str:
    return ", ".join(cls.__name__ for cls in classes)
