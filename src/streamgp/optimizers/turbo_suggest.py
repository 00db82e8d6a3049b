"""One suggestion of TuRBO: from the initial design, or from the model in the trust region."""

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.acquisition import lookahead_thompson_sampling, thompson_sampling
from streamgp.likelihoods import Gaussian
from streamgp.optimizers.design import derived_seed, sobol_points
from streamgp.optimizers.trust_region import draw_in_region
from streamgp.optimizers.turbo_models import FittedModel, fit_exact, fit_sparse
from streamgp.optimizers.turbo_settings import TurboSettings
from streamgp.optimizers.turbo_state import TurboState

__all__ = ["fit_current", "is_initial", "suggest_design", "suggest_in_region"]

# Salts that keep the seeds of different uses apart.
_DESIGN, _FIT, _DRAWS = 1, 2, 3


def is_initial(state: TurboState, settings: TurboSettings) -> bool:
    """Whether the initial design of the current run goes on: until enough of its evaluations succeeded."""
    return int(state.is_known.sum()) < settings.num_initial


def suggest_design(state: TurboState, settings: TurboSettings, q: int) -> tuple[TurboState, Float[Tensor, "q d"]]:
    """The next points of the current run's scrambled Sobol sequence."""
    seed = derived_seed(settings.seed, _DESIGN, state.num_runs)
    points = sobol_points(q, settings.box.num_dims, seed=seed, skip=state.num_designed)
    return replace(state, num_designed=state.num_designed + q, num_asks=state.num_asks + 1), points


def fit_current(state: TurboState, settings: TurboSettings) -> FittedModel:
    """Fit the model to the current run. The same state always gives the same model."""
    X, y = state.X[state.is_known], state.y[state.is_known]
    units = settings.outcome.find_units(y, is_reversed=settings.is_reversed)
    likelihood, seed = settings.outcome.in_units(units), derived_seed(settings.seed, _FIT, len(state.X))
    if settings.model == "exact":
        assert isinstance(likelihood, Gaussian)
        return fit_exact(X, units.inside(y), likelihood=likelihood, start=state.start, seed=seed)
    return fit_sparse(
        X,
        units.inside(y),
        likelihood=likelihood,
        start=state.start,
        num_inducing=settings.num_inducing,
        objective=settings.objective,
        seed=seed,
    )


def suggest_in_region(
    state: TurboState, settings: TurboSettings, fitted: FittedModel, q: int
) -> tuple[TurboState, Float[Tensor, "q d"]]:
    """Choose points in the trust region by Thompson sampling, with look-ahead or without.

    Args:
        state: What is known.
        settings: Of the optimizer.
        fitted: The model of the current run.
        q: Number of points.

    Returns:
        The state after the suggestion, and the points.
    """
    generator = torch.Generator().manual_seed(derived_seed(settings.seed, _DRAWS, state.num_asks))
    known = state.y[state.is_known]
    centre = state.X[state.is_known][known.argmax() if settings.maximize else known.argmin()]

    def candidates(num: int) -> Tensor:
        scale = fitted.hyperparameters.lengthscale
        return draw_in_region(num, centre, length=state.region.length, lengthscale=scale, generator=generator)

    num, is_up = max(settings.num_candidates, q), settings.maximize or settings.is_reversed
    if settings.acquisition == "ts":
        points = thompson_sampling(
            fitted.model, candidates, q=q, num_candidates=num, maximize=is_up, generator=generator
        )
    else:
        points = lookahead_thompson_sampling(
            fitted.model,
            candidates,
            q=q,
            depth=settings.depth,
            num_paths=settings.num_paths,
            num_candidates=num,
            maximize=is_up,
            generator=generator,
        )
    return replace(state, num_asks=state.num_asks + 1, fitted=fitted.hyperparameters), points
