"""Training that sees all observations in every step."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, final

import torch
from torch import Tensor

from streamgp.training.arguments import Options, has_constants
from streamgp.training.collapsed import collapsed_bound, exact_evidence
from streamgp.training.features import Observed, observed_features
from streamgp.training.inducing import extend_points, kmeans_points, leading_kernel, pivoted_points
from streamgp.training.lbfgs import Ascent, maximize
from streamgp.training.parameters import Hyperparameters, Space
from streamgp.training.priors import Layout, hyper_prior
from streamgp.training.scaling import Scaling
from streamgp.training.sites_bound import FINAL_SITE_TOLERANCE, SITE_TOLERANCE, FixedSites, optimal_sites, sites_bound

__all__ = ["Log", "Task", "Trained", "alternate", "ascend", "bound_of", "climb", "evaluate", "trace_slack", "train"]

# Rounds of hyperparameters at points chosen under the kernel of the round before, and iterations of each. Points that
# are learned afterwards need to be chosen less well.
_NUM_ROUNDS, _NUM_ROUNDS_BEFORE_LEARNING, _ROUND_ITERATIONS = 3, 1, 15
# Iterations of hyperparameters between two searches for sites.
SITE_ITERATIONS = 40
# Between two searches for sites each iteration gains less than it would without them, so less is asked of it.
SITE_GAIN = 0.1
# Of twice as many rows or more, a random part of so many is fitted first: its steps are cheap, and end near the end.
_ROWS_OF_PART = 4096


@final
@dataclass
class Log:
    """Account of what training has spent so far; the one thing here that changes."""

    history: list[float] = field(default_factory=list)
    num_evaluations: int = 0
    num_rejected: int = 0
    reason: str = ""
    is_converged: bool = False
    warnings: list[str] = field(default_factory=list)
    kernels: dict[str, float] = field(default_factory=dict)
    exact: Hyperparameters | None = None

    def count(self, other: "Log") -> None:
        """Count the evaluations of training whose objective was another."""
        self.num_evaluations += other.num_evaluations
        self.num_rejected += other.num_rejected

    def add(self, ascent: Ascent) -> None:
        """Add a finished ascent."""
        self.history.extend(ascent.history if not self.history else ascent.history[1:])
        self.num_evaluations += ascent.num_evaluations
        self.num_rejected += ascent.num_rejected
        self.reason, self.is_converged = ascent.reason, ascent.is_converged


@final
@dataclass(frozen=True, eq=False)
class Task:
    """Observations, options, and the log of what is spent.

    Attributes:
        data: The observations.
        options: Of the search.
        log: Changes.
        scaling: Units of the observations; None where they are the user's.
        deadline: Time of `time.thread_time` after which learning stops.
    """

    data: Observed
    options: Options
    log: Log
    scaling: Scaling | None = None
    deadline: float = math.inf


@final
@dataclass(frozen=True, eq=False)
class Trained:
    """A setting at the end of training.

    Attributes:
        setting: The setting.
        bound: The objective without priors.
        log_prior: Log density of the hyperparameters.
        trace_slack: See `FitInfo`.
        sites: Optimal sites of observations that are not Gaussian.
        doubling_gain: See `FitInfo`.
    """

    setting: Hyperparameters
    bound: float
    log_prior: float
    trace_slack: float
    sites: FixedSites | None = None
    doubling_gain: float | None = None


def train(setting: Hyperparameters, task: Task) -> Hyperparameters:
    """Find hyperparameters and inducing points.

    Points are chosen, hyperparameters learned for a few iterations, and again under the new kernel; then both are
    learned together until there is no more to gain. A warm start goes to the last part at once, and so do kernels with
    finitely many features, whose weights need no points.
    """
    data, options = task.data, task.options
    if options.inducing == "features" or (options.is_warm and not len(setting.inducing_points)):
        setting = replace(setting, inducing_points=setting.inducing_points[:0])
        return climb(setting, task, max_iterations=options.most_iterations)
    num_inducing = len(setting.inducing_points)
    if isinstance(options.num_inducing, int):
        num_inducing = min(options.num_inducing, data.most_inducing)
    if not options.is_warm or isinstance(options.inducing, Tensor):
        for _ in range(_NUM_ROUNDS_BEFORE_LEARNING if options.learn_inducing else _NUM_ROUNDS):
            setting = _choose_points(setting, task, num_inducing)
            setting = climb(setting, task, max_iterations=_ROUND_ITERATIONS)
            if isinstance(options.inducing, Tensor):
                break
        if isinstance(options.inducing, str):
            setting = _choose_points(setting, task, num_inducing)
    else:
        Z = extend_points(
            leading_kernel(setting.kernel),
            setting.inducing_points,
            data.candidates,
            num_inducing,
            generator=options.generator,
        )
        setting = replace(setting, inducing_points=Z)
    is_moving = options.learn_inducing and len(setting.inducing_points) < len(data.candidates)
    if (
        is_moving
        and not options.is_warm
        and data.num_data >= 2 * _ROWS_OF_PART
        and not has_constants(setting.likelihood)
    ):
        part = Task(_random_part(data, options.generator), options, Log())
        setting = climb(setting, part, max_iterations=options.most_iterations, learn_inducing=True)
        task.log.count(part.log)
    return climb(setting, task, max_iterations=options.most_iterations, learn_inducing=is_moving)


def _random_part(data: Observed, generator: torch.Generator) -> Observed:
    return data.part(torch.randperm(data.num_data, generator=generator)[:_ROWS_OF_PART].to(data.targets.device))


def _choose_points(setting: Hyperparameters, task: Task, num_inducing: int) -> Hyperparameters:
    """Choose inducing points under the current kernel."""
    inputs, options, kernel = task.data.candidates, task.options, leading_kernel(setting.kernel)
    if isinstance(options.inducing, Tensor):
        return replace(setting, inducing_points=options.inducing.to(setting.inducing_points))
    if options.inducing != "pivoted":  # over shards, on a sample of them
        Z = kmeans_points(kernel, inputs, num_inducing, generator=options.generator)
    else:
        Z = pivoted_points(kernel, inputs, num_inducing, generator=options.generator)
    return replace(setting, inducing_points=Z)


def climb(
    setting: Hyperparameters, task: Task, *, max_iterations: int, learn_inducing: bool = False, is_exact: bool = False
) -> Hyperparameters:
    """Learn hyperparameters by L-BFGS.

    Args:
        setting: The start.
        task: Observations, options and log.
        max_iterations: Most iterations.
        learn_inducing: Learn inducing points, too.
        is_exact: Climb the evidence of Gaussian observations itself, of which the bound falls short.
    """
    if setting.likelihood.is_gaussian:
        options: dict[str, Any] = {"learn_inducing": learn_inducing, "is_exact": is_exact}
        setting, _ = _ascend(setting, task, max_iterations=max_iterations, **options)
        return setting

    def step(setting: Hyperparameters, most: int) -> tuple[Hyperparameters, Ascent]:
        sites, _ = optimal_sites(setting, task.data, tolerance=SITE_TOLERANCE)
        return _ascend(setting, task, max_iterations=most, learn_inducing=learn_inducing, sites=sites)

    return alternate(step, setting, task, max_iterations=max_iterations, num_data=task.data.num_data)


def alternate(
    step: Callable[[Hyperparameters, int], tuple[Hyperparameters, Ascent]],
    setting: Hyperparameters,
    task: Task,
    *,
    max_iterations: int,
    num_data: int,
) -> Hyperparameters:
    """Find sites and learn hyperparameters in turns, until there is no more to gain.

    Args:
        step: Finds the sites of a setting, and learns hyperparameters for at most so many iterations.
        setting: The start.
        task: Options and log.
        max_iterations: Most iterations in all.
        num_data: Number of observations.
    """
    log, options = task.log, task.options
    least_gain = SITE_GAIN * options.tolerance * num_data
    spent, value = 0, -float("inf")
    while spent < max_iterations:
        setting, ascent = step(setting, min(SITE_ITERATIONS, max_iterations - spent))
        spent += max(len(ascent.history) - 1, 1)
        if ascent.value - value < least_gain:
            log.reason, log.is_converged = "new sites and hyperparameters gained less than the tolerance", True
            break
        value = ascent.value
        if time.thread_time() > task.deadline:
            break
        log.reason, log.is_converged = "the largest number of iterations was reached", False
    return setting


def _ascend(
    setting: Hyperparameters,
    task: Task,
    *,
    max_iterations: int,
    learn_inducing: bool,
    sites: FixedSites | None = None,
    is_exact: bool = False,
) -> tuple[Hyperparameters, Ascent]:
    data, options = task.data, task.options
    layout, prior = Layout.of(setting, data, options.priors, learn_inducing=learn_inducing)
    space = layout.space()

    def value(s: Hyperparameters) -> Tensor:
        bound = exact_evidence(s, data) if is_exact else bound_of(s, data, sites, beta=options.beta)
        return bound + prior.log_density(s)

    ascent = ascend(
        lambda x: space.evaluate(x, value),
        space,
        task,
        max_iterations=max_iterations,
        num_data=data.num_data,
        gain=1.0 if sites is None else SITE_GAIN,
    )
    return space.setting(ascent.x), ascent


def ascend(
    objective: Callable[[Tensor], Tensor], space: Space, task: Task, *, max_iterations: int, num_data: int, gain: float
) -> Ascent:
    """Maximize an objective of coordinates, and note it in the log.

    Args:
        objective: The function.
        space: Space of the coordinates.
        task: Options and log.
        max_iterations: Most iterations.
        num_data: Number of observations.
        gain: Factor of the tolerance.
    """
    options = task.options
    ascent = maximize(
        objective,
        space.start,
        bounds=space.bounds,
        max_iterations=max_iterations,
        tolerance=gain * options.tolerance,
        scale=float(num_data),
        on_iteration=options.on_iteration,
        deadline=task.deadline,
    )
    task.log.add(ascent)
    return ascent


def evaluate(setting: Hyperparameters, data: Observed, options: Options) -> Trained:
    """Evaluate the bound at its optimal belief."""
    with torch.no_grad():
        sites = None
        if not setting.likelihood.is_gaussian:
            sites, _ = optimal_sites(setting, data, tolerance=FINAL_SITE_TOLERANCE)
        bound = float(bound_of(setting, data, sites, beta=options.beta))
        log_prior = float(hyper_prior(setting, data, options.priors).log_density(setting))
        return Trained(setting, bound, log_prior, trace_slack(setting, data, sites), sites)


def bound_of(setting: Hyperparameters, data: Observed, sites: FixedSites | None, *, beta: float) -> Tensor:
    """The bound: collapsed where observations are Gaussian, at fixed sites otherwise."""
    noise = setting.likelihood.gaussian_noise_variance
    if noise is not None:
        return collapsed_bound(setting, data, noise, beta=beta)
    assert sites is not None
    return sites_bound(setting, data, sites)


def trace_slack(setting: Hyperparameters, data: Observed, sites: FixedSites | None = None) -> float:
    """Variance of an observation left unexplained, in units of its noise, and what is lost of a carried belief."""
    with torch.no_grad():
        features = observed_features(setting, data)
        slack, lost = features.slack, 0.0 if features.carried is None else float(features.carried.lost_trace)
        noise = setting.likelihood.gaussian_noise_variance
        if noise is not None:
            return float((slack / noise.to(slack)).mean()) + lost / data.num_data
        if sites is None:
            sites, _ = optimal_sites(setting, data, tolerance=SITE_TOLERANCE)
        return float((slack * sites.precision).mean()) + lost / data.num_data
