"""Predictions of a loop, on the scale of the response and in the user's units."""

import math
from dataclasses import dataclass
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.acquisition.pool_belief import PoolBelief, blocks
from streamgp.acquisition.response import exceedance_probability, latent_threshold
from streamgp.errors import ValueRangeError
from streamgp.likelihoods import AbstractLikelihood
from streamgp.likelihoods.quadrature import expectation
from streamgp.loops.pool_space import PoolSpace
from streamgp.loops.settings import LoopSettings
from streamgp.loops.state import LoopState
from streamgp.loops.surrogate import SparseSurrogate
from streamgp.loops.units import OutcomeUnits

__all__ = ["ResponsePrediction", "check_level", "predict_objective", "predict_response"]

# Numbers that quadrature takes for each point.
_ROW_NUMBERS = 256
_NUM_NODES = 32


@final
@dataclass(frozen=True, eq=False)
class ResponsePrediction:
    """Predictions of points, on the scale of the response.

    The response is the prevalence or probability of classes, the rate of counts, and the value of real numbers without
    noise.

    Attributes:
        mean: Expected response.
        std: Standard deviation of what is not known of it.
        lower: Lower end of the interval that holds the response with the asked probability, as much below as above.
        upper: Upper end.
        latent_mean: Mean of the latent function, in its own units.
        latent_variance: Its variance.
        exceedance: Probability that the response is above the threshold; None without a threshold.
    """

    mean: Float[Tensor, " n"]
    std: Float[Tensor, " n"]
    lower: Float[Tensor, " n"]
    upper: Float[Tensor, " n"]
    latent_mean: Float[Tensor, " n"]
    latent_variance: Float[Tensor, " n"]
    exceedance: Float[Tensor, " n"] | None = None


def check_level(level: Any) -> float:
    """Return the probability of an interval if it is one."""
    if isinstance(level, bool) or not isinstance(level, int | float) or not 0.0 < level < 1.0:
        raise ValueRangeError(f"level must be a probability between 0 and 1, but is {level!r}. The default is 0.95.")
    return float(level)


@torch.no_grad()
def predict_objective(
    state: LoopState,
    settings: LoopSettings,
    inputs: Float[Tensor, "n d"],
    *,
    level: float = 0.95,
    output: int = 0,
    threshold: float | None = None,
) -> ResponsePrediction:
    """Predict an outcome at inputs of the model.

    Args:
        state: With a model.
        settings: Of the loop.
        inputs: Of the model.
        level: Probability of the intervals.
        output: Which outcome.
        threshold: For the probability to exceed it.
    """
    surrogate, outcome = state.surrogate, settings.outcomes[output]
    assert surrogate is not None
    if isinstance(surrogate, SparseSurrogate):
        belief = PoolBelief.of(surrogate.results[output].gp, inputs)
        m, v = belief.mean, belief.variance
    else:
        posterior: Any = surrogate.model().posterior(inputs)
        m, v = posterior.mean.squeeze(-1), posterior.variance.squeeze(-1)
    is_linear = outcome.is_real or settings.is_preference
    likelihood = None
    if not is_linear:
        assert isinstance(surrogate, SparseSurrogate)
        likelihood = outcome.likelihood.with_learnable(surrogate.results[output].likelihood.learnable())
        if isinstance(settings.space, PoolSpace):  # whose members may differ in their trials
            likelihood = likelihood.per_unit()
    return predict_response(m, v, likelihood, units=surrogate.units[output], level=level, threshold=threshold)


@torch.no_grad()
def predict_response(
    m: Float[Tensor, " n"],
    v: Float[Tensor, " n"],
    likelihood: AbstractLikelihood | None,
    *,
    units: OutcomeUnits | None = None,
    level: float = 0.95,
    threshold: float | None = None,
) -> ResponsePrediction:
    """Predict the response of latent values, in blocks.

    Args:
        m: Latent means.
        v: Latent variances.
        likelihood: Whose mean the response is; None where the response is the latent value.
        units: Of the latent values where they are the response.
        level: Probability of the intervals.
        threshold: Of the response.
    """
    reach = float(torch.special.ndtri(torch.tensor(0.5 + 0.5 * level, dtype=torch.float64)))
    if likelihood is None:
        units = units or OutcomeUnits()
        deviation = v.clamp_min(0.0).sqrt()
        mean, std = units.outside(m), units.slope(m) * deviation
        ends = torch.stack([units.outside(m - reach * deviation), units.outside(m + reach * deviation)])
        above = None
        if threshold is not None:
            sign, limit = math.copysign(1.0, units.scale), units.inside(m.new_tensor(threshold))
            above = exceedance_probability(sign * m, v, sign * float(limit))
        return ResponsePrediction(mean, std, ends.amin(0), ends.amax(0), m, v, above)
    mean, std, lower, upper = (torch.empty_like(m) for _ in range(4))
    for part, _ in blocks(torch.arange(len(m)), _ROW_NUMBERS):
        deviation = reach * v[part].sqrt()
        mean[part], std[part] = _moments(likelihood, m[part], v[part])
        lower[part] = likelihood.conditional_mean(m[part] - deviation)
        upper[part] = likelihood.conditional_mean(m[part] + deviation)
    above = None if threshold is None else exceedance_probability(m, v, latent_threshold(likelihood, threshold))
    return ResponsePrediction(mean, std, lower, upper, m, v, above)


def _moments(likelihood: AbstractLikelihood, m: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of the response."""
    mean = likelihood.predictive_mean(m, v)

    def squared(f: Tensor) -> Tensor:
        return (likelihood.conditional_mean(f) - mean).square()

    return mean, expectation(squared, m, v, num_nodes=_NUM_NODES).sqrt()
