"""Likelihoods of GPyTorch, by automatic differentiation and quadrature."""

import math
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, cast, final

import torch
from jaxtyping import Float
from torch import Tensor
from torch.distributions import Distribution

from streamgp.checks import check_count
from streamgp.errors import UnsupportedError
from streamgp.likelihoods.base import AbstractLikelihood
from streamgp.likelihoods.bernoulli import Bernoulli
from streamgp.likelihoods.gaussian import Gaussian
from streamgp.likelihoods.parameters import Probabilities, check_support, to_float, to_probabilities
from streamgp.likelihoods.quadrature import expectation, gauss_hermite, nodes_first, standard_deviation
from streamgp.likelihoods.quantiles import continuous_quantiles
from streamgp.likelihoods.student_t import StudentT
from streamgp.shapes import broadcast_shapes

if TYPE_CHECKING:
    from gpytorch.likelihoods import Likelihood

__all__ = ["WrappedLikelihood", "from_gpytorch"]

# Empirical quantiles of this many draws have a standard error of at most 0.008 in probability.
_NUM_DRAWS = 4096

# Below this variance the first derivative is taken as straight, and its mean slope as the slope at the mean.
_SMALLEST_VARIANCE = 1e-6


def from_gpytorch(likelihood: "Likelihood", *, num_nodes: int = 64) -> AbstractLikelihood:
    """Take over a one-dimensional likelihood of GPyTorch, with its present parameters.

    Gaussian, fixed-noise Gaussian, Bernoulli and Student-t likelihoods become their namesakes here,
    which have closed forms. All others (Beta, Laplace, your own) are wrapped.

    Args:
        likelihood: A likelihood whose `forward` maps latent values to one distribution for each. It is
            copied, and not changed.
        num_nodes: Number of Gauss–Hermite nodes.
    """
    import gpytorch.likelihoods as source  # here, as importing it takes seconds that only its users should pay

    if type(likelihood) is source.GaussianLikelihood and likelihood.noise.numel() == 1:
        return Gaussian(likelihood.noise.detach().reshape(()).clone())
    if type(likelihood) is source.FixedNoiseGaussianLikelihood and likelihood.second_noise_covar is None:
        return Gaussian(likelihood.noise.detach().clone())  # one variance for each row, which is never learned
    if type(likelihood) is source.BernoulliLikelihood:
        return Bernoulli("probit")
    if type(likelihood) is source.StudentTLikelihood and likelihood.noise.numel() == 1:
        return StudentT(
            likelihood.deg_free.detach().reshape(()).clone(), likelihood.noise.detach().reshape(()).sqrt().clone()
        )
    if not isinstance(likelihood, source._OneDimensionalLikelihood):
        raise UnsupportedError(
            f"{type(likelihood).__name__} is not a one-dimensional likelihood of GPyTorch, so it cannot be wrapped. "
            "If each target depends on one latent value, derive it from gpytorch.likelihoods._OneDimensionalLikelihood."
        )
    values = {name: value.detach().clone() for name, value in likelihood.named_parameters()}
    return WrappedLikelihood(module=deepcopy(likelihood), values=values, num_nodes=check_count(num_nodes, "num_nodes"))


@final
@dataclass(frozen=True, eq=False)
class WrappedLikelihood(AbstractLikelihood):
    """A likelihood of GPyTorch; made by `from_gpytorch`.

    Quantiles come from the cumulative distribution function, where PyTorch's distribution has one on all
    real numbers, and else from 4096 draws; these have a standard error of up to 0.008 in probability.

    Attributes:
        module: A private copy of the likelihood, never changed.
        values: Its parameters, by name, as GPyTorch stores them (unconstrained).
        num_nodes: Number of Gauss–Hermite nodes.
    """

    support: ClassVar[tuple[float, float]] = (-math.inf, math.inf)

    module: torch.nn.Module
    values: Mapping[str, Tensor]
    num_nodes: int

    def conditional(self, f: Float[Tensor, "..."]) -> Distribution:
        """Return the distribution of $y$ given $f$, in double precision.

        Links that are safe in double precision are not always so in single: softplus is zero at -100.
        """
        values = {name: value.to(f.device).double() for name, value in self.values.items()}
        return cast(Distribution, torch.func.functional_call(self.module, values, (f.double(),)))

    @property
    def outcome_kind(self) -> str:  # type: ignore[override]
        """The kind of outcomes that the distribution has."""
        support = self.conditional(torch.zeros(1)).support
        return "count" if support is not None and support.is_discrete else "real"

    def check_targets(self, y: object) -> Tensor:
        """Return `y` as floating-point numbers if the distribution at $f = 0$ gives each a finite log density."""
        y = to_float(y, "y")
        if y.numel() == 0:
            return y
        distribution = self.conditional(torch.zeros_like(y))
        is_inside = torch.isfinite(y) & distribution.support.check(y)  # type: ignore[union-attr]
        # Targets outside are replaced by draws, which are inside.
        with _own_random_state(), torch.no_grad():
            safe = torch.where(is_inside, y.double(), distribution.sample())
        is_inside = is_inside & torch.isfinite(distribution.log_prob(safe))
        name = type(self.module).__name__
        return check_support(
            y,
            is_inside,
            expected=f"{name} targets must lie inside the support of {type(distribution).__name__}",
            advice="Drop those observations, or move them inside.",
        )

    def log_density(self, f: Float[Tensor, "..."], y: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Evaluate the log density that the distribution gives."""
        return self._evaluate(lambda conditional: conditional.log_prob(y.to(f.device).double()), f, y)

    def response(self, f: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Evaluate the mean that the distribution gives."""
        return self._evaluate(lambda conditional: conditional.mean, f)

    def expected_derivatives(
        self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> tuple[Float[Tensor, "..."], Float[Tensor, "..."]]:
        r"""Evaluate the expectations of both derivatives by quadrature.

        The second is $\mathbb{E}[(f - m) \, \nabla \log p] / v$ (Stein), which also sees kinks, as that
        of the Laplace density, where $\nabla^2 \log p$ is zero on both sides.
        """
        nodes, weights = gauss_hermite(self.num_nodes, mean.dtype, mean.device)
        x = nodes_first(nodes, max(mean.dim(), variance.dim(), y.dim()))
        deviation = standard_deviation(variance)
        first, second = self.derivatives(mean + deviation * x, y)
        safe = variance.clamp(min=_SMALLEST_VARIANCE).sqrt()
        slope = torch.tensordot(weights, first * x, dims=1) / safe
        second = torch.where(variance > _SMALLEST_VARIANCE, slope, torch.tensordot(weights, second, dims=1))
        return torch.tensordot(weights, first, dims=1), second

    def predictive_mean(self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Average the conditional mean."""
        return expectation(self.response, mean, variance, num_nodes=self.num_nodes)

    def predictive_variance(self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Average the conditional variance and add the variance of the conditional mean."""
        center = self.predictive_mean(mean, variance)

        def square(f: Tensor) -> Tensor:
            return self._evaluate(lambda given: given.variance + (given.mean - center).square(), f)

        return expectation(square, mean, variance, num_nodes=self.num_nodes)

    def _typical_outcomes(self, mean: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
        """Those that the distribution takes: the mean instead of others, and whole numbers for counts."""
        support = self.conditional(mean).support
        outcomes = (*super()._typical_outcomes(mean, variance), self.predictive_mean(mean, variance))
        low, high, center = (y.round() if self.outcome_kind == "count" else y for y in outcomes)
        if support is None:
            return low, high
        return torch.where(support.check(low), low, center), torch.where(support.check(high), high, center)

    def conditional_variance(self, f: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Ask the distribution for its variance."""
        return self._evaluate(lambda given: given.variance, f)

    def predictive_quantiles(
        self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."], probabilities: Probabilities
    ) -> Float[Tensor, "..."]:
        """Bisect the mixture of distribution functions, or sort draws if the distribution has none."""
        center, spread = self.predictive_mean(mean, variance), self.predictive_variance(mean, variance).sqrt()
        if center.numel() == 0:
            return center.new_zeros(*center.shape, len(probabilities))
        nodes, weights = gauss_hermite(self.num_nodes, torch.float64, mean.device)
        shape = (-1, 1, *([1] * center.dim()))  # the second axis is that of the probabilities
        conditional = self.conditional(mean.double() + standard_deviation(variance.double()) * nodes.reshape(shape))

        def cumulative(c: Tensor) -> Tensor:
            return (weights.reshape(shape) * conditional.cdf(c)).sum(0)

        try:
            # Bisection may ask outside a bounded support, which distributions of PyTorch refuse.
            conditional.cdf(center.detach().double() - 1e6)
        except (NotImplementedError, ValueError):
            return self._drawn_quantiles(mean, variance, probabilities)
        return continuous_quantiles(cumulative, center, spread, probabilities)

    def sample(self, f: Float[Tensor, "..."], *, generator: torch.Generator | None = None) -> Float[Tensor, "..."]:
        """Draw from the distribution, in a random state of its own that the generator seeds."""
        seed = int(torch.randint(2**62, (), generator=generator, device=generator.device if generator else "cpu"))
        with _own_random_state(), torch.no_grad():
            torch.manual_seed(seed)
            return self._evaluate(lambda conditional: conditional.sample(), f)

    def learnable(self) -> dict[str, Tensor]:
        """Return the parameters as GPyTorch stores them."""
        return dict(self.values)

    def _from_unconstrained(self, values: Mapping[str, Tensor]) -> "WrappedLikelihood":
        return replace(self, values=dict(values))

    def _evaluate(self, function: Callable[[Distribution], Tensor], f: Tensor, *others: Tensor) -> Tensor:
        """Apply a function to the conditional distribution, in the dtype of `f`; none of it if there is no `f`.

        Some distributions of PyTorch cannot be empty.
        """
        if f.numel() == 0:
            return f.expand(broadcast_shapes(f.shape, *(other.shape for other in others)))
        value: Tensor = function(self.conditional(f))
        return value.to(f)

    def _drawn_quantiles(self, mean: Tensor, variance: Tensor, probabilities: Probabilities) -> Tensor:
        """Take quantiles of draws, at latent values that are spread evenly in probability."""
        wanted = to_probabilities(probabilities, mean)
        grid = (torch.arange(_NUM_DRAWS, dtype=mean.dtype, device=mean.device) + 0.5) / _NUM_DRAWS
        scores = nodes_first(torch.special.ndtri(grid), max(mean.dim(), variance.dim()))
        draws = self.sample(
            (mean + standard_deviation(variance) * scores).detach(), generator=torch.Generator().manual_seed(0)
        )
        ranks = (wanted * _NUM_DRAWS).ceil().long().clamp(min=1) - 1
        return draws.sort(0).values[ranks].movedim(0, -1)


def _own_random_state() -> AbstractContextManager[None]:
    """Put the global random states back afterwards; distributions of PyTorch take no generator."""
    return torch.random.fork_rng(devices=range(torch.cuda.device_count()))
