"""Learning of the model behind the suggestions: fitted, absorbing, and fitted again."""

import math
import warnings
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from gpytorch.kernels import Kernel, RBFKernel, ScaleKernel
from gpytorch.priors import GammaPrior
from jaxtyping import Float
from torch import Tensor

from streamgp.errors import StreamGPWarning
from streamgp.gp.named_kernels import make_kernel
from streamgp.likelihoods import AbstractLikelihood, Bernoulli, Censored, Gaussian
from streamgp.loops.learned_rows import LearnedRows
from streamgp.loops.model_selection import (
    CONSTRAINT_FLOOR,
    FLOOR,
    MOST_COMPARED,
    Candidates,
    Comparison,
    is_comparison_due,
    log_forecasts,
    select_model,
)
from streamgp.loops.observations import Observations
from streamgp.loops.settings import LoopSettings, SurrogateSettings
from streamgp.loops.surrogate import AbstractSurrogate, SparseSurrogate
from streamgp.loops.units import OutcomeUnits
from streamgp.seeds import seeded
from streamgp.training import FitResult, fit

__all__ = ["absorb_observations", "fit_sparse", "is_refit_due", "make_comparison_kernel"]

# A warm refit takes 0.03 to 0.2 s up to here, which is little beside the search for a suggestion; beyond, one is made
# for every twentieth part of new data.
_MOST_REFITTED_ALWAYS = 500
_GROWTH = 0.05
# The share of outcomes of an objective that count as good, where it is likelier than half of them: a function of powers
# differs among its good outcomes, too, by orders of magnitude.
_FEW_GOOD = 0.2
# Of fewer outcomes, two or three good ones would decide.
_LEAST_TOLD = 12
# Shape and rate of the prior of lengthscales of compared utilities in the unit cube, as BoTorch's model of comparisons
# has them. A comparison tells so little that the prior decides; that of real outcomes has utilities next to linear.
_LENGTHS = (2.4, 2.7)
# Inducing points of the first rows where points are chosen anew, and rows for each one more. Fewer are too few at 750
# yes/no answers (Brier score .196 with 100, .186 with 200), more than 100 gain nothing at 250.
_FEW_POINTS, _ROWS_PER_POINT = 100, 5
# Real outcomes, of which each says more, have one for this many values; of more points, each fit takes seconds.
# Hartmann's function in six dimensions, 300 values: errors among its best fifth are .87 of the deviation of all values
# with 100 points, .80 with 150.
_VALUES_PER_POINT, _MOST_POINTS = 2, 300
# Iterations from the hyperparameters before; they change little with some new rows.
_RENEWING_ITERATIONS = 15
# Up to so many rows there is an inducing point for each slope, too, this far beside its input in the unit cube: a pair
# of points tells of a slope what a difference does. With more rows fits are slow; with a longer step, slopes that bend
# within it count as noise, and with a shorter one rounding does.
_MOST_POINTS_OF_SLOPES, _STEP = 400, 0.02
# Where the noise of outcomes with bounds starts, relative to their variance, and the least that this is taken for.
_START_NOISE, _LEAST_VARIANCE = 0.05, 1e-12
# Places beside those told at which an outcome that is known to rise does so, and the most signs that are observed.
_NUM_RISING, _MOST_SIGNS = 128, 64
# Salts of the seeds of fits, and of a sample of evaluations.
_FIT, _SAMPLE = 2, 5


def fit_sparse(data: Observations, settings: LoopSettings, start: SparseSurrogate | None) -> SparseSurrogate:
    """Fit hyperparameters, inducing points and beliefs to all data.

    Units are found anew. The fit starts from the last one, but where data has doubled since hyperparameters were last
    searched from the start. Of many rows, units, kernel and noise are then chosen by a sample, whose fit is the start
    of that to all of them.

    Args:
        data: All data of the current run.
        settings: Of the loop.
        start: The last fit.
    """
    size = _size(data, settings)
    before = None if start is None or size >= 2 * start.num_cold else start
    if before is None and _is_sampled(data, settings):
        drawn = torch.randperm(len(data.points), generator=seeded(settings.seed, _SAMPLE))[:MOST_COMPARED]
        start = before = replace(fit_sparse(data.rows(drawn.sort().values), settings, None), num_cold=size)
    has_success = settings.surrogate.learns_success and not bool(data.is_success.all())
    is_compared = before is None or is_comparison_due(before.num_fitted, size)
    selected = [
        select_model(_candidates(data, settings, start, before, output, is_compared=is_compared))
        for output in range(len(settings.outcomes) + has_success)
    ]
    results = [one.result for one in selected]
    results[0] = _risen(results[0], data, settings, selected[0].units)
    return SparseSurrogate(
        results=tuple(results),
        units=tuple(one.units for one in selected[: len(settings.outcomes)]),
        num_fitted=size,
        num_cold=size if before is None else before.num_cold,
        num_points=len(data.points),
        num_pairs=len(data.pairs),
        comparisons=tuple(
            replace(one.comparison, num_points=len(data.points)) if is_compared and one.comparison else one.comparison
            for one in selected
        ),
    )


def _is_sampled(data: Observations, settings: LoopSettings) -> bool:
    """Tell whether a sample of the evaluations says enough of kernel and noise."""
    num_good = int(data.is_success.sum())
    is_whole = num_good == len(data.points) or num_good == 0  # a sample might hold no failure
    return settings.surrogate.is_smooth and len(data.points) > MOST_COMPARED and not len(data.pairs) and is_whole


def _candidates(
    data: Observations,
    settings: LoopSettings,
    last: SparseSurrogate | None,
    before: SparseSurrogate | None,
    output: int,
    *,
    is_compared: bool,
) -> Candidates:
    """List the models that an outcome may have; that of success if there is no outcome of that number."""
    rows = _rows(data, settings, output)
    options, is_outcome = settings.surrogate, output < len(settings.outcomes)
    outcome = settings.outcomes[output] if is_outcome else None
    is_open = options.kernel is None and options.is_smooth and outcome is not None and outcome.is_real
    has_kernels = is_open and not len(rows.slopes)
    is_unknown = outcome is not None and outcome.has_unknown_noise and options.is_smooth
    return Candidates(
        rows,
        _units_to_try(data, settings, before, output) if is_outcome else [OutcomeUnits()],
        fit=partial(_fit_output, rows, settings=settings),
        likelihood=lambda units, start: _starting_likelihood(data, settings, units, output, before=start, rows=rows),
        before=None if before is None or output >= len(before.results) else before.results[output],
        comparison=_compared(data, settings, last, output, is_due=is_compared),
        kernel=None if has_kernels else _given_kernel(settings, rows.points, output),
        has_kernels=has_kernels,
        is_compared=is_compared,
        may_be_noisy=_may_be_noisy(data, settings, output),
        may_lack_noise=is_unknown
        and len(rows.y) <= (options.num_inducing or _FEW_POINTS)
        and not data.has_bounds(output),
        is_repeatable=bool(data.repeats),
        floor=FLOOR if output < len(settings.objectives) else CONSTRAINT_FLOOR,
    )


def _compared(
    data: Observations, settings: LoopSettings, last: SparseSurrogate | None, output: int, *, is_due: bool
) -> Comparison | None:
    """The last comparison of kernels; if another one is due, with the scores of what was told since."""
    found = last.comparisons[output] if last is not None and output < len(last.comparisons) else None
    if found is None or not is_due:
        return found
    new, scores = data.after(found.num_points, len(data.pairs)), []
    rows = _rows(new, settings, output)
    if new.has_bounds(output) or not rows.num_rows:
        return found
    for score, each in zip(found.scores, found.fits, strict=True):
        likelihood = _starting_likelihood(new, settings, found.units, output, before=each, rows=rows)
        assert likelihood is not None
        scores.append(score + log_forecasts(each, likelihood, rows.points, rows.targets(found.units)))
    return replace(found, scores=tuple(scores))


def _fit_output(
    rows: LearnedRows,
    targets: Tensor,
    *,
    settings: LoopSettings,
    likelihood: AbstractLikelihood | None,
    before: FitResult | None,
    kernel: Kernel | None,
) -> FitResult:
    options, training, num_values = settings.surrogate, settings.surrogate.training, len(rows.y)
    most, iterations, mean = _most_points(options, num_values), training.max_iterations, None
    if before is not None and (options.renews_points or _has_grown(options, before, most, num_values)):
        # Its hyperparameters are handed on, and not its points.
        kernel, mean = (deepcopy(module).requires_grad_(True) for module in (before.gp.kernel, before.gp.mean))
        before, iterations = None, iterations or _RENEWING_ITERATIONS
    points: dict[str, Any] = {"num_inducing": most}
    if not options.has_learned_points:
        places = torch.unique(rows.points, dim=0)
        points = {
            "num_inducing": min(len(places), most),
            "inducing": places if len(places) <= most else "pivoted",
            "learn_inducing": False,
        }
    if len(rows.slopes) > 0 and rows.num_rows <= _MOST_POINTS_OF_SLOPES:
        points = {"num_inducing": rows.num_rows, "inducing": rows.points_beside(_STEP), "learn_inducing": False}
    result = fit(
        rows.inputs,
        targets,
        likelihood=likelihood,
        kernel=kernel if before is None else None,
        mean=mean,
        objective=training.objective,
        beta=training.beta,
        priors=training.priors,
        num_starts=training.num_starts,
        max_iterations=iterations,
        start=before,
        standardize=None,
        generator=seeded(settings.seed, _FIT, num_values),
        **points,
    )
    # Bounds belong to the rows that were told; of what is observed next, values are known.
    return replace(result, likelihood=result.likelihood.uncensored)


def _has_grown(options: SurrogateSettings, before: FitResult, most: int, num_values: int) -> bool:
    """Tell whether more inducing points are allowed than an earlier fit has, and there are more values than these."""
    return options.num_inducing is None and before.gp.num_inducing < most < num_values


def _most_points(options: SurrogateSettings, num_values: int) -> int:
    """Number of inducing points allowed for so many values."""
    if options.num_inducing is None:
        return max(_FEW_POINTS, min(num_values // _VALUES_PER_POINT, _MOST_POINTS))
    if options.renews_points:
        return min(options.num_inducing, max(_FEW_POINTS, num_values // _ROWS_PER_POINT + _FEW_POINTS // 2))
    return options.num_inducing


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
    results = []
    for j, result in enumerate(surrogate.results):
        rows = _rows(new, settings, j)
        if not rows.num_rows:
            results.append(result)
            continue
        units = surrogate.units[j] if j < len(surrogate.units) else OutcomeUnits()
        most = max(_most_points(settings.surrogate, num_points), result.gp.num_inducing)
        size = min(most, result.gp.num_inducing + rows.num_rows)
        likelihood = _starting_likelihood(new, settings, units, j, before=result, rows=rows)
        sites = "moments" if new.has_bounds(j) else "variational"
        gp, _ = result.gp.absorb(
            rows.inputs, rows.targets(units), likelihood=likelihood, num_inducing=size, sites=sites
        )
        after = replace(result, gp=gp)
        results.append(_risen(after, new, settings, units) if j == 0 else after)
    return replace(surrogate, results=tuple(results), num_points=num_points, num_pairs=num_pairs)


def _risen(result: FitResult, data: Observations, settings: LoopSettings, units: OutcomeUnits) -> FitResult:
    """The first outcome with signs of slopes that are known, where the belief has them wrong."""
    space = settings.space
    if space.directions is None or settings.is_preference:
        return result
    columns = space.directions.nonzero().squeeze(-1)
    some = space.scatter(_NUM_RISING, num_before=0, seed=settings.seed, ask=0)
    X = space.inputs(torch.cat([some, data.points]))
    along = torch.diag(space.directions)[columns] * math.copysign(1.0, units.scale)
    X, along = X.repeat(len(columns), 1), along.repeat_interleave(len(X), 0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gp = result.gp.absorb_increasing(X, along=along, max_signs=_MOST_SIGNS)
    if caught:
        warnings.warn(
            "What was told falls where a parameter's effect says that it rises, or the other way round, by more than "
            "the noise that the model sees. Leave the effect out, or tell repeated points, which show noise.",
            StreamGPWarning,
            stacklevel=4,
        )
    return replace(result, gp=gp)


def is_refit_due(surrogate: AbstractSurrogate | None, data: Observations, settings: LoopSettings) -> bool:
    """Tell whether there is enough new data for a fit."""
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
    options, y = settings.surrogate, data.y[data.is_measured[:, output], output]
    if not options.is_standardized:
        return [OutcomeUnits()]
    find = partial(settings.outcomes[output].find_units, y, is_ranked=options.is_ranked)
    num_objectives = len(settings.objectives)
    if output < num_objectives:
        # Volumes of several objectives are those of the user's units.
        is_bent = options.is_bent and num_objectives == 1
        find = partial(find, is_reversed=settings.objectives[output].is_reversed, is_bent=is_bent)
        if data.gradients is not None:  # which tell what is smooth: a bend, or what it would straighten
            straight, bent = find(is_bent=False), find()
            known = [straight, bent] if bent.is_bent else [straight]
            return known if before is None else known[: 1 + before.units[output].is_bent][-1:]
        if before is not None:
            return [find(good_share=before.units[output].good_share)]
        usual, deeper = find(), find(good_share=_FEW_GOOD)
        return [usual, deeper] if deeper.is_bent and len(y) >= _LEAST_TOLD else [usual]
    straight = find(is_reversed=False)
    bent = find(is_reversed=False, is_bent=options.is_bent, bounds=settings.constraints[output - num_objectives].bounds)
    if not bent.is_bent:
        return [straight]
    return [straight, bent] if before is None else [bent if before.units[output].is_bent else straight]


def _rows(data: Observations, settings: LoopSettings, output: int) -> LearnedRows:
    """Rows of one GP; those of success have ones and zeros."""
    space, is_outcome = settings.space, output < len(settings.outcomes)
    if is_outcome and settings.is_preference:
        pairs = space.inputs(data.pairs)
        return LearnedRows.of(pairs, pairs.new_ones(len(pairs)))
    is_known = data.is_measured[:, output] if is_outcome else data.is_informative
    X = space.inputs(data.points[is_known])
    if is_outcome:
        rows = LearnedRows.of(X, data.y[is_known, output])
        if len(data.pairs):
            return rows.with_comparisons(space.inputs(data.pairs))
        return rows if data.gradients is None else rows.with_gradients(data.gradients[is_known])
    failed = space.inputs(data.failures)
    return LearnedRows.of(torch.cat([X, failed]), torch.cat([X.new_ones(len(X)), X.new_zeros(len(failed))]))


def _starting_likelihood(
    data: Observations,
    settings: LoopSettings,
    units: OutcomeUnits,
    output: int,
    *,
    before: FitResult | None,
    rows: LearnedRows,
) -> AbstractLikelihood | None:
    """The likelihood of the rows, with what was learned before; None for Gaussian noise in proportion to the data."""
    if output >= len(settings.outcomes):
        return Bernoulli() if before is None else before.likelihood
    outcome, has_bounds = settings.outcomes[output], data.has_bounds(output)
    is_unknown = before is None and outcome.has_unknown_noise and not settings.surrogate.is_standardized
    if is_unknown and not has_bounds:
        return None
    likelihood, kept = outcome.likelihood, data.is_measured[:, output]
    if data.points.dim() == 1:  # members of a pool, each of which may have constants
        likelihood = likelihood.at_rows(data.points[kept])
    found = outcome.likelihood_of_rows(likelihood, data.constants[kept, output])
    found = outcome.in_units(units, found)
    if is_unknown:
        found = Gaussian(_START_NOISE * rows.y.var(correction=0).clamp_min(_LEAST_VARIANCE))
    found = found if before is None else found.with_learnable(before.likelihood.learnable())
    if data.sides is None or not has_bounds:
        return found
    noise = found.gaussian_noise_variance
    assert noise is not None  # bounds are of outcomes with Gaussian noise
    sides = data.sides[kept, output] * math.copysign(1.0, units.scale)
    sides = torch.cat([sides, torch.zeros_like(rows.slopes)])
    return Censored.at_bounds(noise, rows.targets(units), sides, is_learned=bool(found.learnable()))


def _may_be_noisy(data: Observations, settings: LoopSettings, output: int) -> bool:
    """Tell whether a repeated point may have another outcome: ripples of a single objective are always checked."""
    is_checked = output == 0 and len(settings.objectives) == 1
    return data.repeats is False or (data.repeats is None and not is_checked)


def _given_kernel(settings: LoopSettings, inputs: Tensor, output: int) -> Kernel | None:
    """The user's kernel, or that of comparisons; None for that of `fit`."""
    options = settings.surrogate
    if options.kernel is not None or not options.is_smooth or output != 0:
        return options.kernel
    if settings.is_preference:
        return make_comparison_kernel(inputs)
    # Slopes tell of the scale of a function from its first values on, so that it is learned.
    ends = torch.zeros(inputs.shape[-1]).to(inputs)
    return make_kernel("rbf", ends, ends + 1.0) if settings.outcomes[0].is_real else None


def make_comparison_kernel(inputs: Float[Tensor, "*n d"]) -> Kernel:
    """Make the default kernel of utilities that are only compared: smooth, with a prior of its own.

    Args:
        inputs: Of the model, in the unit cube.
    """
    shape, rate = inputs.new_tensor(_LENGTHS)
    base = RBFKernel(ard_num_dims=inputs.shape[-1], lengthscale_prior=GammaPrior(shape, rate))
    kernel = ScaleKernel(base).to(inputs)
    base.lengthscale = (shape - 1.0) / rate
    kernel.outputscale = 1.0
    return kernel
