"""The model of a pool: a sparse GP, fitted when that is due, and updated in closed form between."""

import math
from dataclasses import dataclass, replace
from typing import final

import torch

from streamgp.errors import ValueRangeError
from streamgp.likelihoods import AbstractLikelihood, Gaussian
from streamgp.pools.data import Told
from streamgp.pools.design import seeded
from streamgp.pools.settings import Settings
from streamgp.training import FitResult, fit
from streamgp.training.scaling import Scaling

__all__ = ["Surrogate", "absorb_told", "fit_surrogate", "is_refit_due"]

# Up to this many outcomes a fit is cheap; beyond, one is made for every twentieth part of new ones.
_MOST_REFITTED_ALWAYS = 500
_GROWTH = 0.05
_FIT = 2


@final
@dataclass(frozen=True, eq=False)
class Surrogate:
    """A fitted GP in the units of the model.

    Attributes:
        result: The last fit, whose GP has absorbed what came since.
        num_fitted: Number of outcomes at the last fit.
        num_cold: Number of outcomes at the last fit that did not start from an earlier one.
    """

    result: FitResult
    num_fitted: int
    num_cold: int

    def pool_likelihood(self, settings: Settings) -> AbstractLikelihood:
        """The likelihood of any member, with what was learned."""
        return settings.likelihood.with_learnable(self.result.likelihood.learnable())

    def in_user_units(self, settings: Settings) -> FitResult:
        """The result, which then predicts from inputs as the user has them."""
        shift, scale = settings.shift_and_scale
        zero = shift.new_zeros(())
        return replace(self.result, scaling=Scaling(shift, scale, zero, zero + 1.0))


def fit_surrogate(told: Told, settings: Settings, start: Surrogate | None) -> Surrogate:
    """Fit hyperparameters and belief to all outcomes.

    Every observed place is an inducing point as long as there are no more than allowed. The fit starts from the last
    one, but where data has doubled since hyperparameters were last searched from the start.

    Args:
        told: Outcomes that tell something.
        settings: Of the learner.
        start: The last fit.
    """
    n = len(told.y)
    if not n:
        raise ValueRangeError(
            "Nothing is known yet: no member of the pool has been told with an outcome. Ask for members, and tell what "
            "was observed."
        )
    before = None if start is None or n >= 2 * start.num_cold else start
    X = settings.scaled[told.members]
    places = torch.unique(X, dim=0)
    is_small, training = len(places) <= settings.num_inducing, settings.training
    result = fit(
        X,
        told.y,
        likelihood=_starting_likelihood(told, settings, before),
        kernel=None if before is not None else settings.kernel,
        num_inducing=min(len(places), settings.num_inducing),
        inducing=places if is_small else "pivoted",
        learn_inducing=False,
        objective=training.objective,
        beta=training.beta,
        priors=training.priors,
        num_starts=training.num_starts,
        max_iterations=training.max_iterations,
        start=None if before is None else before.result,
        generator=seeded(settings.seed, _FIT, n),
    )
    return Surrogate(result, n, n if before is None else before.num_cold)


def absorb_told(surrogate: Surrogate, settings: Settings, new: Told) -> Surrogate:
    """Learn new outcomes at once, with the hyperparameters of the last fit."""
    if not len(new.y):
        return surrogate
    gp, likelihood = surrogate.result.gp, new.likelihood(surrogate.pool_likelihood(settings))
    X, size = settings.scaled[new.members], min(settings.num_inducing, gp.num_inducing + len(new.y))
    if isinstance(likelihood, Gaussian):
        after, _ = gp.absorb(X, new.y, noise_variance=likelihood.noise_variance.to(X), num_inducing=size)
    else:
        after, _ = gp.absorb(X, new.y, likelihood=likelihood, num_inducing=size)
    return replace(surrogate, result=replace(surrogate.result, gp=after))


def is_refit_due(surrogate: Surrogate | None, num_outcomes: int, settings: Settings) -> bool:
    """Whether there are enough new outcomes for a fit."""
    if surrogate is None:
        return True
    new, refit = num_outcomes - surrogate.num_fitted, settings.refit
    if refit == "never" or not new:
        return False
    if refit == "always":
        return True
    if isinstance(refit, int):
        return new >= refit
    return num_outcomes <= _MOST_REFITTED_ALWAYS or new >= math.ceil(_GROWTH * surrogate.num_fitted)


def _starting_likelihood(told: Told, settings: Settings, before: Surrogate | None) -> AbstractLikelihood | None:
    """The likelihood of the rows where training starts; None for Gaussian noise in proportion to the data."""
    if before is not None:
        return told.likelihood(before.pool_likelihood(settings))
    return None if settings.name == "gaussian" else told.likelihood(settings.likelihood)
