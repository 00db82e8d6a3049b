"""The model behind the suggestions: one sparse GP for each outcome."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, final

from botorch.models.model import Model

from streamgp.gp.interactions import InteractionKernel
from streamgp.likelihoods import AbstractLikelihood, Gaussian
from streamgp.loops.model_selection import Comparison
from streamgp.loops.units import OutcomeUnits
from streamgp.models import OnlineGP
from streamgp.storage import register
from streamgp.training import FitResult

__all__ = ["AbstractSurrogate", "SparseSurrogate"]

# Noise below this share of the function's variance is taken for none: to trust the best outcome then costs less than to
# trust the model, which takes what it cannot explain for noise.
_NO_NOISE = 1e-3


class AbstractSurrogate(ABC):
    """A fitted model of what was told up to some time."""

    units: tuple[OutcomeUnits, ...]
    num_fitted: int
    knows_success: bool

    @abstractmethod
    def model(self) -> Model:
        """The model for rules, in its own inputs and units."""

    @abstractmethod
    def noise_share(self, output: int) -> float:
        """The noise variance relative to the function's; infinite for outcomes that are not real numbers."""

    def rough_share(self, output: int) -> float:
        """The variance of noise, and of ripples that may be noise, relative to the function's."""
        return self.noise_share(output)

    def is_noise_free(self, output: int) -> bool:
        """Tell whether noise is next to nothing, less than a thousandth."""
        return self.noise_share(output) < _NO_NOISE

    def is_deterministic(self, output: int) -> bool:
        """Tell whether noise and ripples, which may be noise until a point is evaluated again, are next to nothing."""
        return self.rough_share(output) < _NO_NOISE


@register
@final
@dataclass(frozen=True, eq=False)
class SparseSurrogate(AbstractSurrogate):
    """Fitted GPs: of each objective, of each constraint, and of success if evaluations have failed.

    Attributes:
        results: The last fit of each, whose GP has absorbed what came since.
        units: In which each outcome is modeled.
        num_fitted: Number of rows at the last fit.
        num_cold: Number of rows at the last fit that did not start from an earlier one.
        num_points: How many evaluations are in the beliefs.
        num_pairs: How many comparisons are.
        comparisons: The last comparison of kernels of each; None where they were not compared.
    """

    results: tuple[FitResult, ...]
    units: tuple[OutcomeUnits, ...]
    num_fitted: int
    num_cold: int
    num_points: int
    num_pairs: int
    comparisons: tuple[Comparison | None, ...] = ()

    @property
    def knows_success(self) -> bool:  # type: ignore[override] # follows from the others
        """Tell whether there is a GP of success, the last one."""
        return len(self.results) > len(self.units)

    def noise_share(self, output: int) -> float:
        """The noise variance relative to the function's prior variance."""
        result = self.results[output]
        noise = result.likelihood.gaussian_noise_variance
        if noise is None:
            return math.inf
        variance = result.gp.process.prior.variance(result.gp.inducing_points).mean()
        return float(noise.max() / variance)

    def rough_share(self, output: int) -> float:
        return self.noise_share(output) + _ripple_share(self.results[output])

    def model(self) -> OnlineGP:
        """The model for rules."""
        return OnlineGP([one.gp for one in self.results], [_point_likelihood(one) for one in self.results])


def _ripple_share(result: FitResult) -> float:
    """Of the prior variance, the share of ripples, which explain noise as well as long as no point is repeated."""
    kernel: Any = result.gp.process.prior.kernel
    return float(kernel.shares[..., -1].max()) if isinstance(kernel, InteractionKernel) else 0.0


def _point_likelihood(result: FitResult) -> AbstractLikelihood | None:
    """The likelihood of an outcome at one point.

    A comparison tells less of a utility than an observation of it would: as much as one with Gaussian noise whose
    precision is the expected information of a comparison of two unrelated points.
    """
    likelihood = result.likelihood
    if likelihood.num_inputs == 2:
        variance = 2.0 * result.gp.process.prior.variance(result.gp.inducing_points).mean()
        return Gaussian(1.0 / likelihood.expected_information(variance), is_learned=False)
    has_own = any(value.dim() for value in likelihood.constants().values())
    return None if has_own else likelihood
