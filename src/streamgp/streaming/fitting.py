"""What is learned of a stream from its latest rows: kernel, likelihood, constant and outliers."""

import math
import warnings
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import final

import numpy as np
import torch
from gpytorch.means import ConstantMean
from jaxtyping import Float
from torch import Tensor

from streamgp.errors import NumericalError, StreamGPWarning, UnsupportedError
from streamgp.likelihoods import AbstractLikelihood, Gaussian
from streamgp.streaming.bank import Bank
from streamgp.streaming.hyperparameters import (
    FittedHyperparameters,
    default_kernel,
    learn_hyperparameters,
    refine_hyperparameters,
    scaled_to,
)
from streamgp.streaming.placement import place_points
from streamgp.streaming.robust import learn_plainly, learn_robustly
from streamgp.streaming.rows import Rows, likelihood_of
from streamgp.streaming.settings import FEW_ROWS, Room, StreamSettings
from streamgp.training import fit

__all__ = ["LEAST_WINDOW", "StreamFit", "fit_latest"]

# The fewest of the latest rows that hyperparameters are learned from, if there are so many.
LEAST_WINDOW = 200
# Rows for each inducing point, the latest ones, that hyperparameters are learned from: where points are too few for a
# longer part of the stream, it would look like noise.
_ROWS_OF_POINT = 20
# Of these, so many for each point are used, evenly spread: the cost of a fit is theirs.
_FITTED_OF_POINT = 10
# Of earlier rows, so many for each point are shown with them.
_REMEMBERED_OF_POINT = 4
# Where counts are rare or spread out an observation says so little that a level compared with it could go anywhere in a
# few rows. The mean of the counts would go with it, as the exponential of a level grows with what is not known of that.
_MOST_LEVEL_NOISE = 0.1
_FIT_ITERATIONS = 30


@final
@dataclass(frozen=True, eq=False)
class StreamFit:
    """What was learned.

    Attributes:
        hyperparameters: Kernel, noise and inducing points.
        likelihood: Of observations, in the model's units.
        constant: What latent functions are expected to be before their inputs are known.
        gain: What hyperparameters gained over what was learned before, for each value; NaN where that was not compared.
        outliers: Share and variance of the outliers; None where none were looked for.
    """

    hyperparameters: FittedHyperparameters
    likelihood: AbstractLikelihood
    constant: Float[Tensor, " c"]
    gain: float
    outliers: tuple[float, float] | None = None

    @property
    def noise_variance(self) -> float:
        """Of Gaussian noise; zero for other likelihoods."""
        return _noise(self.likelihood) or 0.0

    def level_noise(self, rows: Rows) -> float:
        """The noise variance with which steps of a level are compared: the inverse of the expected curvature."""
        likelihood = self.likelihood
        if (noise := _noise(likelihood)) is not None:
            return noise
        _, y = rows.tensors
        mean = self.constant.unsqueeze(-1).expand_as(y)
        _, curvature = likelihood_of(likelihood, rows.total_count).expected_derivatives(mean, torch.ones_like(mean), y)
        found = 1.0 / max(float(-curvature.mean()), 1e-3)
        return found if likelihood.outcome_kind == "class" else min(found, _MOST_LEVEL_NOISE)


def fit_latest(
    rows: Rows,
    settings: StreamSettings,
    before: FittedHyperparameters | None,
    window: int,
    anchor: Bank | None,
    room: Room,
    *,
    is_searching: bool,
    remembered: Rows | None = None,
    current: Float[Tensor, "k d"] | None = None,
) -> StreamFit:
    """Learn hyperparameters, likelihood, constants and outliers.

    Args:
        rows: The rows, in the model's units.
        settings: Options.
        before: What was learned before, from which one search starts.
        window: How many of the latest rows count.
        anchor: What was believed before the rows.
        room: How many inducing points there may be.
        is_searching: Whether hyperparameters are learned; if not, only inducing points and constants are.
        remembered: Earlier rows, or what is still believed of them, to be explained with these.
        current: Where inducing points are now.
    """
    recent = rows.part(rows.num_rows - window, rows.num_rows)
    likelihood = settings.starting_likelihood
    constant = _constant(recent, likelihood)
    X, _ = recent.tensors
    num_dims = X.shape[-1]
    kernel = default_kernel(num_dims) if settings.kernel is None else settings.kernel
    start = FittedHyperparameters(kernel, _noise(likelihood) or 0.1, X[:1]) if before is None else before
    most = room.most
    part = recent.part(max(0, window - max(LEAST_WINDOW, _ROWS_OF_POINT * most)), window)
    part = part.thinned(max(LEAST_WINDOW, _FITTED_OF_POINT * most))
    is_class = likelihood.outcome_kind == "class"
    gain, outliers, explained = math.nan, None, None
    is_noise_known = likelihood.is_gaussian and not likelihood.learnable()
    if is_searching and recent.num_rows >= FEW_ROWS and _is_varied(part.targets):
        try:
            if not (likelihood.is_gaussian or is_class):
                return _fitted(part, settings, most)
            search = partial(
                learn_hyperparameters,
                kernel=kernel,
                before=before,
                noise_variance=_noise(likelihood) if is_noise_known else None,
                num_inducing=most,
                seed=settings.seed,
                is_thorough=rows.num_rows >= settings.warmup,
            )
            if remembered is not None:
                part = remembered.thinned(_REMEMBERED_OF_POINT * most).append(part)
            if settings.has_outliers:
                found = learn_robustly(*part.tensors, search)
                outliers = found.share, found.variance
                constant = found.mean if found.share else constant
            else:
                found = learn_plainly(*part.tensors, search)
            start, gain = found.learned, found.gain
            explained = found.explained(*part.tensors)
        except NumericalError:
            pass  # what was learned before goes on
    is_rescaled = is_class and explained is not None  # classes are learned as numbers, and have a scale of their own
    placing = scaled_to(start, 1.0).kernel if is_rescaled else start.kernel
    noise = start.noise_variance if likelihood.is_gaussian else 1.0
    points, is_enough = place_points(placing, X, anchor, room, noise, seed=settings.seed, current=current)
    start = replace(start, inducing_points=points)
    if explained is not None and not is_enough:
        with suppress(NumericalError):
            start = refine_hyperparameters(*explained, start, kernel=kernel, is_noise_learned=not is_noise_known)
    if is_rescaled:
        start = scaled_to(start, 1.0)
    if likelihood.is_gaussian and likelihood.learnable():
        likelihood = Gaussian(torch.tensor(start.noise_variance, dtype=torch.float64))
    return StreamFit(start, likelihood, constant, gain, outliers)


def _fitted(rows: Rows, settings: StreamSettings, num_inducing: int) -> StreamFit:
    """The same by `fit`, for likelihoods that need more than a closed form."""
    if len(rows.targets) > 1:
        raise UnsupportedError(
            f"There are {len(rows.targets)} outputs, but the likelihood is {settings.likelihood!r}. Several outputs "
            "are learned together with Gaussian noise only; use one estimator for each."
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StreamGPWarning)  # a stream goes on; what is wrong shows in its metrics
        X, Y = rows.tensors
        result = fit(
            X,
            Y.squeeze(0),
            likelihood=likelihood_of(settings.starting_likelihood, rows.total_count),
            kernel=settings.kernel,
            num_inducing=num_inducing,
            learn_inducing=True,
            max_iterations=_FIT_ITERATIONS,
            generator=torch.Generator().manual_seed(settings.seed),
        )
    mean = result.gp.mean
    constant = mean.constant.detach().double() if isinstance(mean, ConstantMean) else torch.zeros(())
    # Constants of rows, such as numbers of trials, come with the rows.
    likelihood = settings.starting_likelihood if result.likelihood.has_row_constants else result.likelihood
    found = FittedHyperparameters(result.gp.kernel, math.nan, result.gp.inducing_points)
    return StreamFit(found, likelihood, constant.reshape(1), math.nan)


def _is_varied(targets: Float[np.ndarray, "c n"]) -> bool:
    return bool((targets.max(-1) > targets.min(-1)).any())


def _noise(likelihood: AbstractLikelihood) -> float | None:
    noise = likelihood.gaussian_noise_variance
    return None if noise is None else float(noise)


def _constant(rows: Rows, likelihood: AbstractLikelihood) -> Float[Tensor, " c"]:
    """What the latent function is expected to be before its inputs are known."""
    _, y = rows.tensors
    if likelihood.is_gaussian:
        return y.mean(-1)
    if likelihood.outcome_kind == "class":
        return likelihood.inverse_response((y.sum(-1) + 1.0) / (rows.num_rows + 2.0))
    return torch.zeros(len(y), dtype=torch.float64)
