"""The learner of a survey: its likelihood, its acquisition function, and what it is told."""

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.cli.survey.options import SurveyOptions
from streamgp.cli.survey.pool import SurveyPool
from streamgp.errors import OptionError
from streamgp.likelihoods import AbstractLikelihood, Binomial, Gaussian, Poisson
from streamgp.pools import PoolLearner

__all__ = ["choose_acquisition", "expected_tests", "is_predictable", "make_learner"]

# With fewer outcomes than these, where prevalence is high is a guess.
_ENOUGH_SURVEYED = 5


def make_learner(pool: SurveyPool, options: SurveyOptions) -> PoolLearner:
    """Make a learner that knows all outcomes so far, and chooses by its model if these say something."""
    surveyed = pool.is_surveyed.nonzero().squeeze(-1)
    num_left = len(pool.y) - len(surveyed)
    if num_left < options.number:
        raise OptionError(
            f"{options.number} places were asked for, but {num_left or 'none'} of {len(pool.y)} are left that have "
            f"not been surveyed. {f'Pass --number {num_left}, or add' if num_left else 'Add'} places to the source."
        )
    names = _names(pool, options)
    learner = PoolLearner(
        pool.inputs,
        likelihood=_make_likelihood(pool, options),
        acquisition=choose_acquisition(pool, options),
        threshold=options.threshold,
        weights=None if options.weights is None else pool.weights,
        costs=None if options.costs is None else pool.costs,
        names=names,
        num_initial=1 if is_predictable(pool, options) else len(surveyed) + options.number,
        seed=options.seed,
    )
    y, constants = pool.y[surveyed], pool.constants[surveyed]
    if not len(surveyed):
        return learner
    members = surveyed if names is None else [names[i] for i in surveyed.tolist()]
    if options.response == "prevalence":
        learner.tell(members, y, total_count=constants)
    else:
        learner.tell(members, y)
    return learner


def is_predictable(pool: SurveyPool, options: SurveyOptions) -> bool:
    """Tell whether outcomes say more than that all is rare or all is common.

    If no test was positive, or every one was, how rare or how common it is would come from the prior alone.
    """
    y, total_count = pool.y[pool.is_surveyed], pool.constants[pool.is_surveyed]
    if options.response == "value" or not len(y):
        return bool(len(y))
    is_full = options.response == "prevalence" and bool((y == total_count).all())
    return not is_full and bool((y > 0).any())


def choose_acquisition(pool: SurveyPool, options: SurveyOptions) -> str:
    """The acquisition function that was asked for, or the one that suits the columns."""
    if options.acquisition is not None:
        return options.acquisition
    is_known = int(pool.is_surveyed.sum()) >= _ENOUGH_SURVEYED
    if options.response == "value" and options.threshold is not None and is_known:
        return "uncertainty_reduction"
    if options.response == "value" or not is_known:
        return "integrated_variance"
    has_hotspots = options.response == "prevalence" and options.threshold is not None
    return "hotspot_entropy" if has_hotspots else "response_variance"


def expected_tests(pool: SurveyPool) -> float:
    """Number of tests to expect at the next places: the median of those that were surveyed."""
    return float(pool.constants[pool.is_surveyed].nanmedian()) if pool.is_surveyed.any() else 1.0


def _names(pool: SurveyPool, options: SurveyOptions) -> tuple[str, ...] | None:
    """Names of the members in a learner that is saved, if each has one of its own."""
    is_named = options.identifier is not None and all(pool.names) and len(set(pool.names)) == len(pool.names)
    return pool.names if is_named else None


def _make_likelihood(pool: SurveyPool, options: SurveyOptions) -> str | AbstractLikelihood:
    if options.response == "prevalence":
        return Binomial(expected_tests(pool))
    if options.response == "rate":
        return Poisson(pool.constants.nan_to_num(nan=1.0))
    if options.noise is None:
        return "gaussian"
    return Gaussian(_fill(pool.constants), is_learned=False)


def _fill(variances: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
    """Known noise, and its median for places where it is not known yet."""
    median = variances.nanmedian()
    return torch.where(variances.isnan(), torch.where(median.isnan(), 1.0, median), variances)
