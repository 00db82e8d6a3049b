"""Functions drawn from a sparse posterior, which can be evaluated and differentiated anywhere."""

from dataclasses import dataclass
from functools import cached_property
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.checks import check_inputs
from streamgp.errors import UnsupportedError
from streamgp.gp.inducing import AbstractInducing
from streamgp.gp.kernel_function import AbstractFeatureKernel, AbstractSpectralKernel, origin_of
from streamgp.gp.prior import Prior
from streamgp.gp.sparse import SparseProcess
from streamgp.linalg import apply, solve_vector

__all__ = ["SamplePaths", "sample_paths"]


@final
@dataclass(frozen=True, eq=False)
class SamplePaths:
    r"""Sampled functions $f_s(x) = \mu(x) + h_s(x) + k(x, Z) v_s$.

    $h_s$ is a draw of the prior by random Fourier features, $v_s = K^{-1}(u_s - \mu(Z) - h_s(Z))$ corrects it so that
    the path meets its draw $u_s$ of the belief at the inducing points. Calling the object with inputs `(*b, n, d)`
    gives values `(s, *b, n)`, differentiable in the inputs. With features instead of inducing points, $v_s$ is a draw
    of their weights, which is all there is: there are no frequencies.

    Attributes:
        prior: Kernel and mean.
        inducing_points: $Z$.
        frequencies: Frequencies of the features, in the units of the inputs.
        feature_weights: Weights of cosines and sines.
        update_weights: $v_s$.
    """

    prior: Prior
    inducing_points: Float[Tensor, "*b k d"]
    frequencies: Float[Tensor, "*b f d"]
    feature_weights: Float[Tensor, "s *b g"]
    update_weights: Float[Tensor, "s *b m"]

    def __call__(self, X: Tensor) -> Tensor:
        """Evaluate all paths."""
        X = check_inputs(X, num_dims=self.inducing_points.shape[-1], like=self.inducing_points)
        update = _dot(self.inducing.crossed(X), self.update_weights, X.dim())
        return self.prior.mean(X) + _dot(self.features(X), self.feature_weights, X.dim()) + update

    @cached_property
    def inducing(self) -> AbstractInducing:
        """The inducing variables."""
        return self.prior.inducing(self.inducing_points)

    def features(self, X: Tensor) -> Tensor:
        """Cosines and sines of the prior part, `(*b, n, g)`."""
        return _features(X - origin_of(self.inducing_points), self.frequencies)


def sample_paths(
    process: SparseProcess, num_samples: int, generator: torch.Generator | None, *, num_features: int
) -> SamplePaths:
    """Draw functions from a sparse posterior by pathwise conditioning.

    Args:
        process: The sparse posterior, with a scaled or plain Matérn or squared-exponential kernel.
        num_samples: How many functions.
        generator: Source of randomness.
        num_features: Number of frequencies; the prior part of the covariance has error of order one over its root.

    References:
        Wilson, Borovitskiy, Terenin, Mostowsky, Deisenroth (2020), Efficiently sampling functions from Gaussian
        process posteriors.
    """
    Z, batch, m = process.inducing_points, process.batch_shape, process.num_inducing
    kernel = process.prior.kernel_function

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=Z.dtype, device=Z.device)

    def draw() -> Tensor:
        return process.whitened_mean + apply(process.whitened_root, normal(num_samples, *batch, m))

    if isinstance(kernel, AbstractFeatureKernel) and not Z.shape[-2]:
        none = Z.new_zeros(*batch, 0, Z.shape[-1])
        weights = solve_vector(process.factor, draw(), is_transposed=True)
        return SamplePaths(process.prior, Z, none, Z.new_zeros(num_samples, *batch, 0), weights)
    if not isinstance(kernel, AbstractSpectralKernel):
        raise UnsupportedError(
            f"Sample paths need a kernel with known frequencies: RBFKernel or MaternKernel, plain or in a ScaleKernel, "
            f"without active_dims, or with finitely many features (SparseGP.from_features). The kernel is a "
            f"{type(process.prior.kernel).__name__}. "
            "Use sample, which draws from the joint distribution at given inputs for any kernel."
        )

    frequencies = kernel.frequencies((*batch, num_features, Z.shape[-1]), normal)
    amplitude = (kernel.outputscale / num_features).sqrt().unsqueeze(-1)
    feature_weights = normal(num_samples, *batch, 2 * num_features) * amplitude
    belief = draw()
    at_inducing = _dot(_features(Z - origin_of(Z), frequencies), feature_weights, Z.dim())
    whitened_prior = solve_vector(process.factor, at_inducing)
    update = solve_vector(process.factor, belief - whitened_prior, is_transposed=True)
    return SamplePaths(process.prior, Z, frequencies, feature_weights, update)


def _features(X: Tensor, frequencies: Tensor) -> Tensor:
    phase = X @ frequencies.mT
    return torch.cat([phase.cos(), phase.sin()], dim=-1)


def _dot(features: Tensor, weights: Tensor, num_axes: int) -> Tensor:
    """Features `(*b, n, g)` times weights `(s, *c, g)`: values `(s, *b, n)`."""
    num_missing = max(num_axes - 2 - (weights.dim() - 2), 0)
    s = weights.shape[0]
    if weights.dim() == 2:  # one process: a single product for all inputs and all samples
        return (features @ weights.mT).movedim(-1, 0)
    weights = weights.reshape(s, *(1,) * num_missing, *weights.shape[1:])
    return (features @ weights.unsqueeze(-1)).squeeze(-1)
