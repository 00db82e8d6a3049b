"""Learning hyperparameters and inducing points over shards, as `streamgp.training.full_batch` does at once."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from streamgp.gp import SparseProcess
from streamgp.likelihoods import AbstractLikelihood
from streamgp.training.collapsed import NaturalBelief, collapse
from streamgp.training.full_batch import SITE_GAIN, Task, Trained, alternate
from streamgp.training.lbfgs import Ascent, maximize
from streamgp.training.parameters import Hyperparameters
from streamgp.training.priors import hyper_prior, likelihood_bounds, target_unit
from streamgp.training.result import prior_process
from streamgp.training.scaling import Scaling
from streamgp.training.sharding.gaussian import gaussian_objective, gaussian_sums
from streamgp.training.sharding.parameters import Layout, ParameterPoint
from streamgp.training.sharding.shards import AbstractShards
from streamgp.training.sharding.sites import find_sites_over_shards, sites_objective
from streamgp.training.sites_bound import FINAL_SITE_TOLERANCE, SITE_TOLERANCE

__all__ = ["evaluate_over_shards", "optimize_over_shards"]


def optimize_over_shards(
    setting: Hyperparameters,
    questions: Sequence[AbstractShards],
    task: Task,
    *,
    num_data: int,
    likelihood: AbstractLikelihood | None,
    scaling: Scaling | None,
) -> Hyperparameters:
    """Learn hyperparameters and inducing points from all shards, from a start that was found on a sample.

    Args:
        setting: The start.
        questions: The observations: shards, or several with the same inputs and a target each, whose bounds are added.
        task: Options and log; its data is the sample.
        num_data: Number of all observations.
        likelihood: What checks the targets.
        scaling: Units of training.
    """
    options = task.options
    num_data = num_data * len(questions)
    if setting.likelihood.is_gaussian:
        layout = _layout(setting, task, likelihood=likelihood, scaling=scaling)
        objective = _total(
            [gaussian_objective(shards, layout, task.data.jitter, beta=options.beta) for shards in questions]
        )
        ascent = _ascend(objective, layout, task, num_data, max_iterations=options.most_iterations, gain=1.0)
        return layout.space().setting(ascent.x)

    def step(setting: Hyperparameters, most: int) -> tuple[Hyperparameters, Ascent]:
        layout = _layout(setting, task, likelihood=likelihood, scaling=scaling)
        point = ParameterPoint(layout, layout.space().start)
        for shards in questions:
            find_sites_over_shards(shards, point, tolerance=SITE_TOLERANCE)
        objective = _total([sites_objective(shards, layout) for shards in questions])
        ascent = _ascend(objective, layout, task, num_data, max_iterations=most, gain=SITE_GAIN)
        return layout.space().setting(ascent.x), ascent

    return alternate(step, setting, task, max_iterations=options.most_iterations, num_data=num_data)


def evaluate_over_shards(
    setting: Hyperparameters,
    shards: AbstractShards,
    task: Task,
    *,
    likelihood: AbstractLikelihood | None,
    scaling: Scaling | None,
) -> tuple[Trained, SparseProcess]:
    """The bound of all observations at its optimal belief, and that belief."""
    layout = replace(_layout(setting, task, likelihood=likelihood, scaling=scaling), learn_inducing=False)
    point, options = ParameterPoint(layout, layout.space().start), task.options
    with torch.no_grad():
        if setting.likelihood.is_gaussian:
            sums = gaussian_sums(shards, point, task.data.jitter, beta=options.beta)
            optimum = collapse(sums, options.beta)
            bound, belief = float(optimum.bound), NaturalBelief(optimum.precision, sums.pull)
            slack = options.beta * float(sums.slack) / sums.num_data
        else:
            found, bound = find_sites_over_shards(shards, point, tolerance=FINAL_SITE_TOLERANCE)
            belief, slack = found.belief(), float(found.slack) / found.num_data
        log_prior = float(hyper_prior(setting, task.data, options.priors).log_density(setting))
        m, R, _ = belief.moments()
        process = prior_process(setting, task.data.jitter).with_belief(m, R.contiguous())
    return Trained(setting, bound, log_prior, slack), process


def _layout(
    setting: Hyperparameters, task: Task, *, likelihood: AbstractLikelihood | None, scaling: Scaling | None
) -> Layout:
    prior = hyper_prior(setting, task.data, task.options.priors)
    setting = replace(setting, extra={**prior.start, **setting.extra})
    bounds = likelihood_bounds(setting, task.data)
    learn_inducing = task.options.learn_inducing and bool(len(setting.inducing_points))
    unit = target_unit(setting, task.data)
    return Layout(setting, learn_inducing, dict(prior.bounds), bounds, likelihood, scaling, unit)


def _total(objectives: Sequence[Callable[[Tensor], Tensor]]) -> Callable[[Tensor], Tensor]:
    return lambda x: torch.stack([objective(x) for objective in objectives]).sum()


def _ascend(
    objective: Callable[[Tensor], Tensor],
    layout: Layout,
    task: Task,
    num_data: int,
    *,
    max_iterations: int,
    gain: float,
) -> Ascent:
    space, options = layout.space(), task.options
    prior = hyper_prior(layout.base, task.data, options.priors)

    def with_prior(x: Tensor) -> Tensor:
        return objective(x) + space.evaluate(x, prior.log_density)

    ascent = maximize(
        with_prior,
        space.start,
        bounds=space.bounds,
        max_iterations=max_iterations,
        tolerance=gain * options.tolerance,
        scale=float(num_data),
        on_iteration=options.on_iteration,
    )
    task.log.add(ascent)
    return ascent
