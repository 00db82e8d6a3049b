"""Random sparse GPs and observations for tests, batched ones with a way to take out one member."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, final
from weakref import WeakKeyDictionary

import gpytorch
import torch
from gpytorch.kernels import ConstantKernel, Kernel, LinearKernel, MaternKernel, ScaleKernel
from torch import Tensor

from streamgp.conditioning import SparseGP
from streamgp.conditioning.observation import Observation
from streamgp.gp import Prior, SparseProcess

__all__ = [
    "AbstractGPProblem",
    "FeatureProblem",
    "NoisyObservations",
    "SparseProblem",
    "random_feature_gp",
    "random_observations",
    "random_sparse_gp",
]

Index = tuple[int, ...]


class AbstractGPProblem(ABC):
    """The numbers of a sparse GP, of which single members of a batch can be taken."""

    @property
    @abstractmethod
    def gp(self) -> SparseGP:
        """The GP itself."""

    @property
    @abstractmethod
    def scale(self) -> float:
        """The largest variance before any data in the unit cube."""

    @abstractmethod
    def member(self, index: Index) -> "AbstractGPProblem":
        """One member of the batch, without leading axes."""


@final
@dataclass(frozen=True, eq=False)
class SparseProblem(AbstractGPProblem):
    """The numbers of a sparse GP with a scaled Matérn-5/2 kernel and a constant mean.

    Attributes:
        lengthscale: `(*b, 1, d)`.
        outputscale: `(*b)`.
        constant: `(*b)`.
        inducing_points: `(*b, m, d)`.
        whitened_mean: `(*b, m)`.
        whitened_root: `(*b, m, m)`.
        jitter: On the diagonal of the inducing points' kernel matrix.
        base: Makes the stationary kernel.
    """

    lengthscale: Tensor
    outputscale: Tensor
    constant: Tensor
    inducing_points: Tensor
    whitened_mean: Tensor
    whitened_root: Tensor
    jitter: float
    base: Callable[..., Kernel]

    @property
    def gp(self) -> SparseGP:
        """The GP itself."""
        if self not in _built:
            _built[self] = _build(self)
        return _built[self]

    @property
    def scale(self) -> float:
        return float(self.outputscale.max())

    def member(self, index: Index) -> "SparseProblem":
        """One member of the batch, without leading axes."""
        return replace(self, **_members(self, index))


@final
@dataclass(frozen=True, eq=False)
class FeatureProblem(AbstractGPProblem):
    """The numbers of a GP of linear functions with a constant, and of a belief about their weights.

    Attributes:
        variance: Of the slopes, `(*b, 1, d)`.
        outputscale: Factor of the variances, `(*b)`.
        offset: Variance of the constant, `(*b)`.
        constant: Mean, `(*b)`.
        whitened_mean: `(*b, d + 1)`.
        whitened_root: `(*b, d + 1, d + 1)`.
    """

    variance: Tensor
    outputscale: Tensor
    offset: Tensor
    constant: Tensor
    whitened_mean: Tensor
    whitened_root: Tensor

    @property
    def gp(self) -> SparseGP:
        """The GP itself."""
        shape, d = self.outputscale.shape, self.variance.shape[-1]
        linear = LinearKernel(ard_num_dims=d, batch_shape=shape).to(self.constant.dtype)
        scaled = ScaleKernel(linear, batch_shape=shape).to(self.constant.dtype)
        constant = ConstantKernel(batch_shape=shape).to(self.constant.dtype)
        linear.variance, scaled.outputscale, constant.constant = self.variance, self.outputscale, self.offset[..., None]
        mean = gpytorch.means.ConstantMean(batch_shape=shape).to(self.constant.dtype)
        mean.initialize(constant=self.constant)
        like = self.constant.new_zeros(*shape, 1, d)
        start = SparseGP.from_features(scaled + constant, like, mean=mean).process
        return SparseGP(start.with_belief(self.whitened_mean, self.whitened_root))

    @property
    def scale(self) -> float:
        return float((self.outputscale * self.variance.sum((-2, -1)) + self.offset).max())

    def member(self, index: Index) -> "FeatureProblem":
        """One member of the batch, without leading axes."""
        return replace(self, **_members(self, index))


def _members(problem: Any, index: Index) -> dict[str, Any]:
    return {name: value[index] for name, value in vars(problem).items() if isinstance(value, Tensor)}


# A GP is built once for its problem, as building takes longer than predicting.
_built: WeakKeyDictionary[SparseProblem, SparseGP] = WeakKeyDictionary()


def _build(problem: SparseProblem) -> SparseGP:
    batch_shape = problem.outputscale.shape
    base = problem.base(ard_num_dims=problem.lengthscale.shape[-1], batch_shape=batch_shape)
    kernel = ScaleKernel(base, batch_shape=batch_shape).to(problem.constant.dtype)
    kernel.outputscale, base.lengthscale = problem.outputscale, problem.lengthscale
    mean = gpytorch.means.ConstantMean(batch_shape=batch_shape).to(problem.constant.dtype)
    mean.initialize(constant=problem.constant)
    prior = Prior.snapshot(kernel, mean, like=problem.inducing_points)
    return SparseGP(
        SparseProcess(prior, problem.inducing_points, problem.whitened_mean, problem.whitened_root, problem.jitter)
    )


@final
@dataclass(frozen=True, eq=False)
class NoisyObservations:
    """Inputs, observed values and noise variances."""

    inputs: Tensor
    targets: Tensor
    noise_variance: Tensor

    def part(self, selection: slice | Tensor) -> "NoisyObservations":
        """Some of the observations."""
        return NoisyObservations(
            self.inputs[..., selection, :], self.targets[..., selection], self.noise_variance[..., selection]
        )

    def read_for(self, gp: SparseGP) -> Observation:
        """The observations as a GP reads them."""
        return Observation.read(
            self.inputs,
            self.targets,
            gp.process,
            noise_variance=self.noise_variance,
            likelihood=None,
            sites="variational",
        )

    def member(self, index: Index) -> "NoisyObservations":
        """The observations of one member of the batch."""
        return NoisyObservations(self.inputs[index], self.targets[index], self.noise_variance[index])


def random_sparse_gp(
    rng: torch.Generator,
    *,
    batch_shape: Index = (),
    dtype: torch.dtype = torch.float64,
    num_inducing: int = 6,
    num_dims: int = 2,
    width: float = 0.9,
    base: Callable[..., Kernel] = MaternKernel,
) -> SparseProblem:
    """Draw a sparse GP.

    Args:
        rng: Source of randomness.
        batch_shape: Leading axes.
        dtype: Precision.
        num_inducing: Number of inducing points.
        num_dims: Input dimension.
        width: Largest eigenvalue of the whitened covariance; above one, the belief is wider than the prior somewhere.
        base: Makes the stationary kernel.
    """

    def uniform(*shape: int) -> Tensor:
        return torch.rand((*batch_shape, *shape), generator=rng, dtype=torch.float64)

    root = torch.randn(*batch_shape, num_inducing, num_inducing, generator=rng, dtype=torch.float64)
    root = root * (width / torch.linalg.matrix_norm(root @ root.mT, ord=2)[..., None, None]).sqrt()
    problem = SparseProblem(
        lengthscale=0.3 + uniform(1, num_dims),
        outputscale=0.5 + uniform(),
        constant=2.0 * uniform() - 1.0,
        inducing_points=uniform(num_inducing, num_dims),
        whitened_mean=2.0 * uniform(num_inducing) - 1.0,
        whitened_root=root,
        jitter=1e-6 if dtype == torch.float64 else 1e-4,
        base=base,
    )
    tensors: dict[str, Any] = {
        name: value.to(dtype) for name, value in vars(problem).items() if isinstance(value, Tensor)
    }
    return replace(problem, **tensors)


def random_feature_gp(
    rng: torch.Generator,
    *,
    batch_shape: Index = (),
    dtype: torch.dtype = torch.float64,
    num_dims: int = 2,
    width: float = 0.9,
) -> FeatureProblem:
    """Draw a GP of linear functions; arguments as of `random_sparse_gp`."""

    def uniform(*shape: int) -> Tensor:
        return torch.rand((*batch_shape, *shape), generator=rng, dtype=torch.float64)

    root = torch.randn(*batch_shape, num_dims + 1, num_dims + 1, generator=rng, dtype=torch.float64)
    root = root * (width / torch.linalg.matrix_norm(root @ root.mT, ord=2)[..., None, None]).sqrt()
    numbers = FeatureProblem(
        variance=0.5 + uniform(1, num_dims),
        outputscale=0.5 + uniform(),
        offset=0.5 + uniform(),
        constant=2.0 * uniform() - 1.0,
        whitened_mean=2.0 * uniform(num_dims + 1) - 1.0,
        whitened_root=root,
    )
    tensors: dict[str, Any] = {name: value.to(dtype) for name, value in vars(numbers).items()}
    return replace(numbers, **tensors)


def random_observations(
    rng: torch.Generator,
    *,
    num_observations: int,
    num_dims: int = 2,
    batch_shape: Index = (),
    sample_shape: Index = (),
    dtype: torch.dtype = torch.float64,
) -> NoisyObservations:
    """Draw inputs in the unit cube, standard normal targets and noise variances between 0.05 and 0.15."""
    n = num_observations
    X = torch.rand(*batch_shape, n, num_dims, generator=rng, dtype=torch.float64)
    y = torch.randn(*sample_shape, *batch_shape, n, generator=rng, dtype=torch.float64)
    noise = 0.05 + 0.1 * torch.rand(*batch_shape, n, generator=rng, dtype=torch.float64)
    return NoisyObservations(X.to(dtype), y.to(dtype), noise.to(dtype))
