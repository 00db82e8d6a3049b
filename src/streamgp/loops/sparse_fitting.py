"""How the model behind the suggestions learns: fitted, absorbing, and fitted again."""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from streamgp.likelihoods import AbstractLikelihood, Bernoulli
from streamgp.loops.comparison_kernel import make_comparison_kernel
from streamgp.loops.likelier_kernel import fit_likelier_kernel, is_comparison_due
from streamgp.loops.likelier_units import fit_in_likelier_units
from streamgp.loops.noise_free import CONSTRAINT_FLOOR, FLOOR, Fitter, fit_with_or_without_noise
from streamgp.loops.observations import Observations
from streamgp.loops.settings import LoopSettings
from streamgp.loops.surrogate import AbstractSurrogate, SparseSurrogate
from streamgp.loops.units import OutcomeUnits
from streamgp.seeds import seeded
from streamgp.training import FitResult, fit

__all__ = ["absorb_observations", "fit_sparse", "is_refit_due"]

# A warm refit takes 0.03 to 0.2 s up to here, which is little beside the search for a suggestion; beyond, one is made
# for every twentieth part of new data.
_MOST_REFITTED_ALWAYS = 500
_GROWTH = 0.05
# The share of outcomes of an objective that count as good, where it is likelier than half of them: a function of powers
# differs among its good outcomes, too, by orders of magnitude.
_FEW_GOOD = 0.2
# Of fewer outcomes, two or three good ones would decide.
_LEAST_TOLD = 12
# Salt of the seeds of fits.
_FIT = 2


def fit_sparse(data: Observations, settings: LoopSettings, start: SparseSurrogate | None) -> SparseSurrogate:
    """Fit hyperparameters, inducing points and beliefs to all data.

    Units are found anew. The fit starts from the last one, but where data has doubled since hyperparameters were last
    searched from the start.

    Args:
        data: All data of the current run.
        settings: Of the loop.
        start: The last fit.
    """
    size = _size(data, settings)
    before = None if start is None or size >= 2 * start.num_cold else start
    options = [_units_to_try(data, settings, before, j) for j in range(len(settings.outcomes))]
    units = [first for first, *_ in options]
    has_success = settings.surrogate.learns_success and not bool(data.is_success.all())
    is_compared = before is None or is_comparison_due(before.num_fitted, size)
    fits = []
    for j, (inputs, targets) in enumerate(_rows(data, settings, units, has_success=has_success)):
        fit_to = partial(_fit_outcome, data, settings, units, before, inputs, output=j, is_compared=is_compared)
        if j < len(units) and len(options[j]) > 1:
            units[j], fitted = fit_in_likelier_units(fit_to, data.y[data.is_informative, j], options[j])
        else:
            fitted = fit_to(targets)
        fits.append(fitted)
    return SparseSurrogate(
        results=tuple(result for result, _ in fits),
        units=tuple(units),
        num_fitted=size,
        num_cold=size if before is None else before.num_cold,
        num_points=len(data.points),
        num_pairs=len(data.pairs),
        others=tuple(other for _, other in fits),
    )


def _fit_outcome(
    data: Observations,
    settings: LoopSettings,
    units: Sequence[OutcomeUnits],
    before: SparseSurrogate | None,
    inputs: Tensor,
    targets: Tensor,
    *,
    output: int,
    is_compared: bool,
) -> tuple[FitResult, FitResult | None]:
    """Fit one outcome with the likelier of two kernels, or with the user's; that of the other kernel is the second."""
    result = None if before is None else _earlier(before.results, output)
    other = None if before is None else _earlier(before.others, output)
    fit_to = partial(_fit_rows, data, settings, units, inputs, targets, output=output)
    if not _has_default_kernel(settings, output):
        return fit_to(before=result, kernel=_given_kernel(settings, inputs, output)), None
    is_noisy = _may_be_noisy(data, settings, output)
    return fit_likelier_kernel(fit_to, inputs, result, other, is_compared=is_compared, is_noisy=is_noisy)


def _earlier(results: tuple[FitResult | None, ...], output: int) -> FitResult | None:
    """The fit of an outcome, where there is one."""
    return results[output] if output < len(results) else None


def _fit_rows(
    data: Observations,
    settings: LoopSettings,
    units: Sequence[OutcomeUnits],
    inputs: Tensor,
    targets: Tensor,
    *,
    output: int,
    before: FitResult | None,
    kernel: Kernel | None = None,
) -> FitResult:
    """Fit one outcome, from an earlier fit or with a kernel; without noise where it has none."""
    likelihood = _starting_likelihood(data, settings, units, output, before=before)
    fit_to: Fitter = partial(_fit_output, inputs, targets, settings, kernel=kernel)
    if not _may_lack_noise(settings, output) or len(inputs) > settings.surrogate.num_inducing:
        return fit_to(likelihood=likelihood, before=before)
    return fit_with_or_without_noise(
        fit_to,
        inputs,
        targets,
        likelihood=likelihood,
        before=before,
        is_repeatable=bool(data.repeats),
        floor=FLOOR if output < len(settings.objectives) else CONSTRAINT_FLOOR,
    )


def _fit_output(
    inputs: Tensor,
    targets: Tensor,
    settings: LoopSettings,
    *,
    likelihood: AbstractLikelihood | None,
    before: FitResult | None,
    kernel: Kernel | None,
) -> FitResult:
    options, training = settings.surrogate, settings.surrogate.training
    points: dict[str, Any] = {"num_inducing": options.num_inducing}
    if not options.has_learned_points:
        places = torch.unique(inputs.flatten(0, -2), dim=0)
        points = {
            "num_inducing": min(len(places), options.num_inducing),
            "inducing": places if len(places) <= options.num_inducing else "pivoted",
            "learn_inducing": False,
        }
    return fit(
        inputs,
        targets,
        likelihood=likelihood,
        kernel=kernel if before is None else None,
        objective=training.objective,
        beta=training.beta,
        priors=training.priors,
        num_starts=training.num_starts,
        max_iterations=training.max_iterations,
        start=before,
        standardize=None,
        generator=seeded(settings.seed, _FIT, len(inputs)),
        **points,
    )


def absorb_observations(
    surrogate: SparseSurrogate, settings: LoopSettings, new: Observations, *, num_points: int, num_pairs: int
) -> SparseSurrogate:
    """Learn from new data at once, with the hyperparameters of the last fit.

    Args:
        surrogate: Before.
        settings: Of the loop.
        new: New data.
        num_points: Evaluations in all.
        num_pairs: Comparisons in all.
    """
    rows = _rows(new, settings, surrogate.units, has_success=surrogate.knows_success)
    results = []
    for j, (result, (inputs, targets)) in enumerate(zip(surrogate.results, rows, strict=True)):
        if not len(inputs):
            results.append(result)
            continue
        size = min(settings.surrogate.num_inducing, result.gp.num_inducing + len(inputs))
        likelihood = _starting_likelihood(new, settings, surrogate.units, j, before=result)
        gp, _ = result.gp.absorb(inputs, targets, likelihood=likelihood, num_inducing=size)
        results.append(replace(result, gp=gp))
    return replace(surrogate, results=tuple(results), num_points=num_points, num_pairs=num_pairs)


def is_refit_due(surrogate: AbstractSurrogate | None, data: Observations, settings: LoopSettings) -> bool:
    """Whether there is enough new data for a fit."""
    if surrogate is None:
        return True
    size = _size(data, settings)
    new, refit = size - surrogate.num_fitted, settings.surrogate.refit
    if settings.surrogate.learns_success and not surrogate.knows_success and not bool(data.is_success.all()):
        return True  # the first failure needs a model of its own
    if refit == "never" or not new:
        return False
    if refit == "always":
        return True
    if isinstance(refit, int):
        return new >= refit
    return size <= _MOST_REFITTED_ALWAYS or new >= math.ceil(_GROWTH * surrogate.num_fitted)


def _size(data: Observations, settings: LoopSettings) -> int:
    """Number of rows to learn from."""
    num_points = len(data.points) if settings.surrogate.learns_success else int(data.is_informative.sum())
    return num_points + len(data.pairs)


def _units_to_try(
    data: Observations, settings: LoopSettings, before: SparseSurrogate | None, output: int
) -> list[OutcomeUnits]:
    """In which an outcome may be modeled; without an earlier fit, the likelier of two are chosen."""
    options, y = settings.surrogate, data.y[data.is_informative, output]
    if not options.is_standardized:
        return [OutcomeUnits()]
    find = partial(settings.outcomes[output].find_units, y, is_ranked=options.is_ranked)
    num_objectives = len(settings.objectives)
    if output < num_objectives:
        # Volumes of several objectives are those of the user's units.
        is_bent = options.is_bent and num_objectives == 1
        find = partial(find, is_reversed=settings.objectives[output].is_reversed, is_bent=is_bent)
        if before is not None:
            return [find(good_share=before.units[output].good_share)]
        usual, deeper = find(), find(good_share=_FEW_GOOD)
        return [usual, deeper] if deeper.is_bent and len(y) >= _LEAST_TOLD else [usual]
    straight = find(is_reversed=False)
    bent = find(is_reversed=False, is_bent=options.is_bent, bounds=settings.constraints[output - num_objectives].bounds)
    if not bent.is_bent:
        return [straight]
    return [straight, bent] if before is None else [bent if before.units[output].is_bent else straight]


def _rows(
    data: Observations, settings: LoopSettings, units: Sequence[OutcomeUnits], *, has_success: bool
) -> list[tuple[Tensor, Tensor]]:
    """Inputs and targets of each GP, in the units in which they are modeled."""
    space, is_known = settings.space, data.is_informative
    X = space.inputs(data.points[is_known])
    if settings.is_preference:
        pairs = space.inputs(data.pairs)
        rows = [(pairs, pairs.new_ones(len(pairs)))]
    else:
        rows = [(X, one.inside(data.y[is_known, j])) for j, one in enumerate(units)]
    if has_success:
        failed = space.inputs(data.failures)
        rows.append((torch.cat([X, failed]), torch.cat([X.new_ones(len(X)), X.new_zeros(len(failed))])))
    return rows


def _starting_likelihood(
    data: Observations,
    settings: LoopSettings,
    units: Sequence[OutcomeUnits],
    output: int,
    *,
    before: FitResult | None,
) -> AbstractLikelihood | None:
    """The likelihood of the rows, with what was learned before; None for Gaussian noise in proportion to the data."""
    if output >= len(units):
        return Bernoulli() if before is None else before.likelihood
    outcome = settings.outcomes[output]
    if before is None and outcome.has_unknown_noise and not settings.surrogate.is_standardized:
        return None
    likelihood, kept = outcome.likelihood, data.is_informative
    if data.points.dim() == 1:  # members of a pool, each of which may have constants
        likelihood = likelihood.at_rows(data.points[kept])
    rows = outcome.likelihood_of_rows(likelihood, data.constants[kept, output])
    rows = outcome.in_units(units[output], rows)
    return rows if before is None else rows.with_learnable(before.likelihood.learnable())


def _may_lack_noise(settings: LoopSettings, output: int) -> bool:
    """Whether an outcome has Gaussian noise that is to be learned, and may be zero."""
    is_unknown = output < len(settings.outcomes) and settings.outcomes[output].has_unknown_noise
    return is_unknown and settings.surrogate.is_smooth


def _may_be_noisy(data: Observations, settings: LoopSettings, output: int) -> bool:
    """Whether a repeated point had another outcome, or may have: ripples of a single objective are always checked."""
    is_checked = output == 0 and len(settings.objectives) == 1
    return data.repeats is False or (data.repeats is None and not is_checked)


def _given_kernel(settings: LoopSettings, inputs: Tensor, output: int) -> Kernel | None:
    """The user's kernel, or that of comparisons; None for that of `fit`."""
    options = settings.surrogate
    if options.kernel is None and options.is_smooth and output == 0 and settings.is_preference:
        return make_comparison_kernel(inputs)
    return options.kernel


def _has_default_kernel(settings: LoopSettings, output: int) -> bool:
    """Whether an outcome is real, and its kernel not given by the user."""
    is_real = output < len(settings.outcomes) and settings.outcomes[output].is_real
    return settings.surrogate.kernel is None and settings.surrogate.is_smooth and is_real
