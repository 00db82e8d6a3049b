"""What a learner predicts of all members."""

from dataclasses import dataclass
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.acquisition.indices import likelihood_of
from streamgp.acquisition.pool_belief import PoolBelief, blocks
from streamgp.acquisition.response import exceedance_probability, latent_threshold, single_response
from streamgp.errors import ValueRangeError
from streamgp.pools.settings import Settings
from streamgp.pools.state import State

__all__ = ["PoolPrediction", "check_level", "predict_pool"]

# Numbers that quadrature takes for each member.
_ROW_NUMBERS = 256


@final
@dataclass(frozen=True, eq=False)
class PoolPrediction:
    """Predictions of all members, on the scale of the response.

    The response is the prevalence of Bernoulli and Binomial outcomes, the rate of counts for a unit of exposure, and
    the value of real numbers without noise.

    Attributes:
        mean: Expected response.
        lower: Lower end of the interval that holds the response with the asked probability, as much below as above.
        upper: Upper end.
        latent_mean: Mean of the latent function.
        latent_variance: Its variance.
        exceedance: Probability that the response is above the threshold; None without a threshold.
    """

    mean: Float[Tensor, " n"]
    lower: Float[Tensor, " n"]
    upper: Float[Tensor, " n"]
    latent_mean: Float[Tensor, " n"]
    latent_variance: Float[Tensor, " n"]
    exceedance: Float[Tensor, " n"] | None


def check_level(level: Any) -> float:
    """Return the probability of an interval if it is one."""
    if isinstance(level, bool) or not isinstance(level, int | float) or not 0.0 < level < 1.0:
        raise ValueRangeError(f"level must be a probability between 0 and 1, but is {level!r}. The default is 0.95.")
    return float(level)


def predict_pool(state: State, settings: Settings, level: float) -> PoolPrediction:
    """Predict all members, in blocks.

    Args:
        state: With a model.
        settings: Of the learner.
        level: Probability of the intervals.
    """
    assert state.surrogate is not None
    belief = PoolBelief.of(state.surrogate.result.gp, settings.scaled)
    m, v = belief.mean, belief.variance
    response = single_response(state.surrogate.pool_likelihood(settings))
    mean, lower, upper = (torch.empty_like(m) for _ in range(3))
    reach = float(torch.special.ndtri(torch.tensor(0.5 + 0.5 * level, dtype=torch.float64)))
    with torch.no_grad():
        for part, members in blocks(torch.arange(len(m)), _ROW_NUMBERS):
            one = likelihood_of(response, members)
            deviation, certain = reach * v[part].sqrt(), torch.zeros_like(v[part])
            mean[part] = one.predictive_mean(m[part], v[part])
            lower[part] = one.predictive_mean(m[part] - deviation, certain)
            upper[part] = one.predictive_mean(m[part] + deviation, certain)
    above = None
    if settings.threshold is not None:
        above = exceedance_probability(m, v, latent_threshold(settings.likelihood, settings.threshold))
    return PoolPrediction(mean, lower, upper, m, v, above)
