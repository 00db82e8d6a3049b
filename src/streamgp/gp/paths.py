"""Functions drawn from a sparse posterior, which can be evaluated and differentiated anywhere."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
import torch
from gpytorch.kernels import Kernel
from jaxtyping import Float
from torch import Tensor

from streamgp.checks import ArrayLike, check_inputs, to_form
from streamgp.errors import UnsupportedError
from streamgp.gp.inducing import AbstractInducing
from streamgp.gp.kernel_function import AbstractFeatureKernel
from streamgp.gp.prior import Prior
from streamgp.gp.sparse import SparseProcess
from streamgp.linalg import apply, solve_vector

__all__ = ["SamplePaths", "sample_paths"]


@final
@dataclass(frozen=True, eq=False)
class SamplePaths:
    r"""Sampled functions $f_s(x) = \mu(x) + h_s(x) + k(x, Z) v_s$.

    $h_s$ is a draw of the prior by random features, $v_s = K^{-1}(u_s - \mu(Z) - h_s(Z))$ corrects it so that
    the path meets its draw $u_s$ of the belief at the inducing points. Calling the object with inputs `(*b, n, d)`
    gives values `(s, *b, n)`, differentiable in the inputs, or as an array of NumPy if they were one. With features
    instead of inducing points, $v_s$ is a draw of their weights, which is all there is: $h_s$ is zero.

    Attributes:
        prior: Kernel and mean.
        inducing_points: $Z$.
        prior_features: The features of which $h_s$ is made; None where it is zero.
        feature_weights: Their weights, standard normal numbers.
        update_weights: $v_s$.
    """

    prior: Prior
    inducing_points: Float[Tensor, "*b k d"]
    prior_features: AbstractFeatureKernel | None
    feature_weights: Float[Tensor, "s *b g"]
    update_weights: Float[Tensor, "s *b m"]

    def __call__(self, X: ArrayLike) -> Any:
        """Evaluate all paths."""
        inputs = check_inputs(X, num_dims=self.inducing_points.shape[-1], like=self.inducing_points)
        update = _dot(self.inducing.crossed(inputs), self.update_weights, inputs.dim())
        values = self.prior.mean(inputs) + _dot(self.features(inputs), self.feature_weights, inputs.dim()) + update
        return to_form(values, is_numpy=isinstance(X, np.ndarray))

    @cached_property
    def inducing(self) -> AbstractInducing:
        """The inducing variables."""
        return self.prior.inducing(self.inducing_points)

    def features(self, X: Tensor) -> Tensor:
        """Features of the prior part, `(*b, n, g)`."""
        return X[..., :0] if self.prior_features is None else self.prior_features.features(X)


def sample_paths(
    process: SparseProcess, num_samples: int, generator: torch.Generator | None, *, num_features: int
) -> SamplePaths:
    """Draw functions from a sparse posterior by pathwise conditioning.

    Args:
        process: The sparse posterior, with a kernel whose features can be drawn: Matérn or squared-exponential ones,
            kernels of finite rank, and scales and sums of these, of one output or of several.
        num_samples: How many functions.
        generator: Source of randomness.
        num_features: Number of frequencies; the prior part of the covariance has error of order one over its root.

    References:
        Wilson, Borovitskiy, Terenin, Mostowsky, Deisenroth (2020), Efficiently sampling functions from Gaussian
        process posteriors.
    """
    Z, batch, m = process.inducing_points, process.batch_shape, process.num_inducing

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=Z.dtype, device=Z.device)

    def draw() -> Tensor:
        return process.whitened_mean + apply(process.whitened_root, normal(num_samples, *batch, m))

    if not process.inducing.is_movable:
        weights = solve_vector(process.factor, draw(), is_transposed=True)
        return SamplePaths(process.prior, Z, None, Z.new_zeros(num_samples, *batch, 0), weights)
    points = Z.expand(*batch, *Z.shape[-2:])
    features = process.prior.kernel_function.random_features(points, num_features, normal)
    if features is None:
        raise UnsupportedError(
            f"Sample paths need a kernel with known frequencies: RBFKernel or MaternKernel, kernels with finitely many "
            f"features (as for SparseGP.from_features), or scales and sums of these. The kernel is a "
            f"{_describe(process.prior.kernel)}. "
            "Use sample, which draws from the joint distribution at given inputs for any kernel."
        )
    at_points = features.features(Z)
    feature_weights = normal(num_samples, *batch, at_points.shape[-1])
    belief = draw()
    whitened_prior = solve_vector(process.factor, _dot(at_points, feature_weights, Z.dim()))
    update = solve_vector(process.factor, belief - whitened_prior, is_transposed=True)
    return SamplePaths(process.prior, Z, features, feature_weights, update)


def _describe(kernel: Kernel) -> str:
    """A kernel's name, and those of what it is made of."""
    made_of = dict.fromkeys(type(part).__name__ for part in kernel.sub_kernels() if not any(part.sub_kernels()))
    return " of ".join([type(kernel).__name__, *([" and ".join(made_of)] if made_of else [])])


def _dot(features: Tensor, weights: Tensor, num_axes: int) -> Tensor:
    """Features `(*b, n, g)` times weights `(s, *c, g)`: values `(s, *b, n)`."""
    num_missing = max(num_axes - 2 - (weights.dim() - 2), 0)
    s = weights.shape[0]
    if weights.dim() == 2:  # one process: a single product for all inputs and all samples
        return (features @ weights.mT).movedim(-1, 0)
    weights = weights.reshape(s, *(1,) * num_missing, *weights.shape[1:])
    return (features @ weights.unsqueeze(-1)).squeeze(-1)
