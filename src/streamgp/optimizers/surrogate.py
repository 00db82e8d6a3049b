"""The model behind the suggestions: one sparse GP for each outcome, fitted, absorbing, and fitted again."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, final

import torch
from gpytorch.kernels import Kernel, RBFKernel
from jaxtyping import Float
from torch import Tensor

from streamgp.likelihoods import AbstractLikelihood, Bernoulli, Gaussian, Preference
from streamgp.models import OnlineGP
from streamgp.optimizers.outcomes import Units
from streamgp.optimizers.settings import Settings
from streamgp.training import FitResult, fit

__all__ = ["Data", "Surrogate", "absorb_data", "fit_surrogate", "is_refit_due"]

# A warm refit takes 0.03 to 0.2 s up to here, which is little beside the search for a suggestion; beyond, one is made
# for every twentieth part of new data.
_MOST_REFITTED_ALWAYS = 500
_GROWTH = 0.05
# Of the trapezoidal rule, in standard deviations: what lies beyond is below 1e-13.
_RANGE, _NUM_NODES = 8.0, 801


@final
@dataclass(frozen=True, eq=False)
class Data:
    """What there is to learn from; points are in the unit cube, outcomes in the user's units.

    Attributes:
        X: Points whose evaluation succeeded.
        y: Their outcomes.
        failures: Points whose evaluation failed.
        pairs: Compared points, the preferred one first.
    """

    X: Float[Tensor, "n d"]
    y: Float[Tensor, "n o"]
    failures: Float[Tensor, "k d"]
    pairs: Float[Tensor, "c 2 d"]

    @property
    def size(self) -> int:
        """Number of rows."""
        return len(self.X) + len(self.failures) + len(self.pairs)

    @property
    def baseline(self) -> Float[Tensor, "n d"]:
        """Points of which something is known."""
        return torch.cat([self.X, torch.unique(self.pairs.flatten(0, 1), dim=0)])


@final
@dataclass(frozen=True, eq=False)
class Surrogate:
    """Fitted GPs: of the objective, of each constraint, and of success if evaluations have failed.

    Attributes:
        results: The last fit of each, whose GP has absorbed what came since.
        units: In which each outcome is modelled.
        num_fitted: Number of rows at the last fit.
        num_cold: Number of rows at the last fit that did not start from an earlier one.
    """

    results: tuple[FitResult, ...]
    units: tuple[Units, ...]
    num_fitted: int
    num_cold: int

    @property
    def knows_success(self) -> bool:
        """Whether there is a GP of success, the last one."""
        return len(self.results) > len(self.units)

    def model(self) -> OnlineGP:
        """The model for acquisition functions, in its own units."""
        return OnlineGP([one.gp for one in self.results], [_point_likelihood(one) for one in self.results])


def fit_surrogate(data: Data, settings: Settings, start: Surrogate | None) -> Surrogate:
    """Fit hyperparameters, inducing points and beliefs to all data.

    Units are found anew. The fit starts from the last one, but where data has doubled since hyperparameters were last
    searched from the start.

    Args:
        data: All data.
        settings: Of the optimizer.
        start: The last fit.
    """
    is_cold = start is None or data.size >= 2 * start.num_cold
    units = tuple(
        outcome.find_units(data.y[:, j], is_reversed=j == 0 and settings.is_reversed)
        for j, outcome in enumerate(settings.outcomes)
    )
    rows = _rows(data, settings, units)
    results = []
    for j, (inputs, targets) in enumerate(rows):
        before = None if start is None or is_cold or j >= len(start.results) else start.results[j]
        likelihood = settings.outcomes[j].in_units(units[j]) if j < len(units) else Bernoulli()
        if before is not None and likelihood.learnable():
            likelihood = before.likelihood
        is_real = j < len(units) and settings.outcomes[j].is_real
        kernel = None if before is not None else settings.kernel or _default_kernel(inputs, is_real=is_real)
        results.append(
            fit(inputs, targets, likelihood=likelihood, kernel=kernel, num_inducing=settings.num_inducing, start=before)
        )
    num_cold = data.size if start is None or is_cold else start.num_cold
    return Surrogate(tuple(results), units, data.size, num_cold)


def _default_kernel(inputs: Float[Tensor, "*n d"], *, is_real: bool) -> Kernel | None:
    """The kernel of standardised outcomes; None for that of `fit`, which learns the scale of others.

    Smooth and of unit variance: with few, noisy observations, a scale to be learned is often taken for noise.
    """
    if not is_real:
        return None
    d = inputs.shape[-1]
    kernel = RBFKernel(ard_num_dims=d).to(inputs)
    # Two points of the unit cube drawn at random are then about 1.4 lengthscales apart.
    kernel.lengthscale = math.sqrt(d / 12.0)
    return kernel


def absorb_data(surrogate: Surrogate, settings: Settings, new: Data) -> Surrogate:
    """Learn from new data at once, with the hyperparameters of the last fit."""
    if not new.size:
        return surrogate
    rows = _rows(new, settings, surrogate.units, is_success_known=surrogate.knows_success)
    results = []
    for result, (inputs, targets) in zip(surrogate.results, rows, strict=True):
        if not len(inputs):
            results.append(result)
            continue
        size = min(settings.num_inducing, result.gp.num_inducing + len(inputs))
        gp, _ = result.gp.absorb(inputs, targets, **_observed(result.likelihood), num_inducing=size)
        results.append(replace(result, gp=gp))
    return replace(surrogate, results=tuple(results))


def is_refit_due(surrogate: Surrogate | None, data: Data, settings: Settings) -> bool:
    """Whether there is enough new data for a fit."""
    if surrogate is None:
        return True
    new, refit = data.size - surrogate.num_fitted, settings.refit
    if len(data.failures) and not surrogate.knows_success:
        return True  # the first failure needs a model of its own
    if refit == "never" or not new:
        return False
    if refit == "always":
        return True
    if isinstance(refit, int):
        return new >= refit
    return data.size <= _MOST_REFITTED_ALWAYS or new >= math.ceil(_GROWTH * surrogate.num_fitted)


def _rows(
    data: Data, settings: Settings, units: tuple[Units, ...], *, is_success_known: bool | None = None
) -> list[tuple[Tensor, Tensor]]:
    """Inputs and targets of each GP, in the units in which they are modelled."""
    if settings.is_preference:
        rows = [(data.pairs, data.pairs.new_ones(len(data.pairs)))]
    else:
        rows = [(data.X, one.inside(data.y[:, j])) for j, one in enumerate(units)]
    if is_success_known or (is_success_known is None and len(data.failures)):
        evaluated = torch.cat([data.X, data.failures])
        succeeded = torch.cat([data.X.new_ones(len(data.X)), data.X.new_zeros(len(data.failures))])
        rows.append((evaluated, succeeded))
    return rows


def _observed(likelihood: AbstractLikelihood) -> Mapping[str, Any]:
    """How a new outcome is seen, as keyword arguments of `absorb`."""
    if isinstance(likelihood, Gaussian):
        return {"noise_variance": likelihood.noise_variance}
    return {"likelihood": likelihood}


def _point_likelihood(result: FitResult) -> AbstractLikelihood:
    """The likelihood of an outcome at one point.

    A comparison tells less of a utility than an observation of it would: as much as one with Gaussian noise whose
    precision is the expected information of a comparison of two unrelated points.
    """
    likelihood = result.likelihood
    if not isinstance(likelihood, Preference):
        return likelihood
    variance = 2.0 * result.gp.process.prior.variance(result.gp.inducing_points).mean()
    return Gaussian(1.0 / _comparison_information(likelihood, variance), is_learned=False)


def _comparison_information(likelihood: Preference, variance: Float[Tensor, ""]) -> Float[Tensor, ""]:
    r"""The expected Fisher information of a comparison on the difference of two utilities.

    With $z = g / (\sqrt 2 s)$ it is $\mathbb E[\phi(z)^2 / (\Phi(z) \Phi(-z))] / (2 s^2)$, where
    $g \sim \mathcal N(0, v)$; by the trapezoidal rule, as $s$ may be much smaller than $\sqrt v$.
    """
    width = math.sqrt(2.0) * likelihood.noise_scale.to(variance)
    spread = variance.sqrt() / width
    z = torch.linspace(-1.0, 1.0, _NUM_NODES).to(variance) * _RANGE * spread.clamp_max(1.0)
    log_information = -z.square() - math.log(2.0 * math.pi) - torch.special.log_ndtr(z) - torch.special.log_ndtr(-z)
    log_density = -0.5 * (z / spread).square() - torch.log(spread) - 0.5 * math.log(2.0 * math.pi)
    return torch.trapezoid((log_information + log_density).exp(), z) / width.square()
