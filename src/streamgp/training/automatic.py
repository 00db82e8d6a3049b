"""Fits that choose by themselves: start, kernel and number of inducing points, by evidence and within a budget.

Hyperparameters are learned from the exact evidence of some hundred rows, which costs so little that several starts and
kernels can be compared; then from that of up to a thousand. Where there are more rows, inducing points are added until
they leave little of the noise unexplained or the budget is spent, hyperparameters and points are learned on as many
rows as the budget allows, and the noise, in closed form as the belief, is that of all rows.
"""

import math
from copy import deepcopy
from dataclasses import replace
from typing import Any, NamedTuple

import scipy.optimize
import torch
from gpytorch.kernels import AdditiveKernel, Kernel, LinearKernel, MaternKernel, RBFKernel, ScaleKernel
from torch import Tensor

from streamgp.errors import NumericalError
from streamgp.training.arguments import Options, has_constants, read_rows
from streamgp.training.collapsed import collapse, sum_batches
from streamgp.training.features import Observed
from streamgp.training.full_batch import Log, Task, Trained, climb, trace_slack, train
from streamgp.training.inducing import kmeans_points, leading_kernel
from streamgp.training.parameters import Hyperparameters, hyperparameter_space
from streamgp.training.priors import likelihood_bounds, target_unit, target_variance
from streamgp.training.starting import prepare

__all__ = ["blocks_of_rows", "gain_of_doubling", "perturbed", "quick_evidence", "train_automatically"]

# Multiplications in a second of one idle core, as measured at matrices of 500 to 1000 rows, and the share of the budget
# that is planned: with more, slower machines stop learning early.
_SPEED, _PLANNED = 2.5e10, 0.7
# What an entry of a kernel matrix costs with its gradient, in multiplications, for about ten columns.
_KERNEL = 300.0
# Evaluations for which the budget of the last part of training must last, with more there are fewer points; and for
# which it should last where there are few points, with more these see fewer rows.
_NUM_EVALUATIONS, _MANY_EVALUATIONS = 15, 60
# Rows on which starts and kernels are compared, where an evaluation takes some milliseconds; with more, a kernel is
# chosen better, and slower.
_ROWS_OF_COMPARISON = 400
# Up to as many rows all inputs are inducing points: an evaluation takes a tenth of a second, and the third power of
# more. Of as many the exact evidence is the start of a sparse fit.
_MOST_EXACT_ROWS = 1000
# Fewest rows on which hyperparameters and inducing points are learned together: so many, or so many for each point.
# With more, there are fewer points.
_ROWS_OF_PART, _ROWS_OF_POINT = 4096, 8
# Numbers of points are tried from here on, each so many times the last; with a larger factor there are more points than
# are of use.
_FEWEST_POINTS, _FEWEST_SITES, _MORE_POINTS = 64, 32, 1.5
# Rows of which the slack is looked at, and rows among which points for it are chosen.
_ROWS_OF_SLACK, _ROWS_OF_CENTERS = 2000, 5000
# Rows that are summed together: their features at 1000 inducing points take 64 MB.
_ROWS_OF_BLOCK = 8192
# Factors of the lengthscales from which a fit starts, and iterations after which the best start goes on.
_SCALES, _TRIAL_ITERATIONS = (1.0, 0.3, 3.0), 6
_COMPARISON_ITERATIONS, _VARIANT_ITERATIONS, _LINEAR_ITERATIONS, _EXACT_ITERATIONS = 40, 15, 40, 25
_QUICK_ITERATIONS = 25
# Share of the variance of the targets that a linear part has to begin with; with more, it hides what is not linear.
_LINEAR_SHARE = 0.1
# Standard deviation of the random change of logarithmic hyperparameters for starts that are asked for.
_START_SPREAD = 1.0
# Logarithms of the largest changes of the noise variance when all rows are seen.
_NOISE_CHANGE = (math.log(0.2), math.log(100.0))


class _Budget(NamedTuple):
    """Multiplications of the last part of training, and observations there are."""

    multiplications: float
    num_data: int

    def fewest_rows(self, num_inducing: int) -> int:
        """Fewest rows on which so many points are learned."""
        return min(self.num_data, max(_ROWS_OF_PART, _ROWS_OF_POINT * num_inducing))

    def num_rows(self, num_inducing: int) -> int:
        """Number of rows on which so many points are learned: all that the budget pays for."""
        paid = int(self.multiplications / (_MANY_EVALUATIONS * num_inducing * (5.0 * num_inducing + _KERNEL)))
        return min(self.num_data, max(self.fewest_rows(num_inducing), paid))

    def allows(self, num_inducing: int) -> bool:
        """Tell whether so many points can be learned, and be given the belief of all rows."""
        rest = self.multiplications - 3.0 * self.num_data * num_inducing**2
        return _NUM_EVALUATIONS * _multiplications(self.fewest_rows(num_inducing), num_inducing) <= rest

    def num_iterations(self, num_inducing: int, most: int) -> int:
        """Iterations that the budget pays for."""
        paid = int(self.multiplications / _multiplications(self.num_rows(num_inducing), num_inducing))
        return min(most, max(_NUM_EVALUATIONS, paid))


def _multiplications(num_rows: int, num_inducing: int) -> float:
    """Multiplications of one evaluation of the bound with its gradient."""
    return num_rows * num_inducing * (5.0 * num_inducing + _KERNEL) + 4.0 * num_inducing**3


def train_automatically(setting: Hyperparameters, task: Task) -> Hyperparameters:
    """Find hyperparameters, as many inducing points as are of use, and a kernel if that is open.

    Args:
        setting: The first start.
        task: Observations, options and log.
    """
    data, options, log = task.data, task.options, task.log
    is_plain = _is_of_values(data) and options.beta == 1.0 and not has_constants(setting.likelihood)
    if not setting.likelihood.is_gaussian or not is_plain:
        return _grow(setting, task)
    setting = _compare(setting, task)
    distinct = torch.unique(data.value_inputs, dim=0)
    is_exact = data.num_data <= _MOST_EXACT_ROWS and len(distinct) <= options.max_inducing
    side = replace(task, data=_some_rows(data, _MOST_EXACT_ROWS, task), log=log if is_exact else Log())
    if side.data.num_data > _ROWS_OF_COMPARISON or is_exact:
        setting = climb(setting, side, max_iterations=options.max_iterations or _EXACT_ITERATIONS, is_exact=True)
    if is_exact:
        return replace(setting, inducing_points=distinct)
    log.count(side.log)
    log.exact = setting
    budget = _Budget(_PLANNED * _SPEED * options.time_budget, data.num_data)
    num_inducing = _enough_points(setting, task, budget, most=min(options.max_inducing, len(distinct)))
    Z = kmeans_points(leading_kernel(setting.kernel), data.value_inputs, num_inducing, generator=options.generator)
    part = replace(task, data=_some_rows(data, budget.num_rows(num_inducing), task), deadline=options.deadline)
    setting = climb(
        replace(setting, inducing_points=Z),
        part,
        max_iterations=budget.num_iterations(num_inducing, options.most_iterations),
        learn_inducing=options.learn_inducing,
    )
    return setting if part.data.num_data == data.num_data else _fit_noise(setting, data)


def _is_of_values(data: Observed) -> bool:
    """Tell whether there are values alone: exact evidence is not that of sums of values or of a carried belief."""
    return data.carried is None and isinstance(data.inputs, Tensor)


def _compare(setting: Hyperparameters, task: Task) -> Hyperparameters:
    """Compare starts and kernels by the exact evidence of some rows."""
    log = task.log
    part = replace(task, data=_some_rows(task.data, _ROWS_OF_COMPARISON, task), log=Log())

    def ascended(start: Hyperparameters, num_iterations: int) -> tuple[float, Hyperparameters] | None:
        one = replace(part, log=Log())
        try:
            end = climb(start, one, max_iterations=num_iterations, is_exact=True)
        except NumericalError:
            return None
        log.count(one.log)
        return one.log.history[-1], end

    starts = [setting, *(_with_lengthscales(setting, factor) for factor in _SCALES[1:])]
    generator, unit = task.options.generator, target_unit(setting, task.data)
    starts += [perturbed(setting, generator, target_unit=unit) for _ in range(task.options.num_starts - 1)]
    ends = [end for start in starts if (end := ascended(start, _TRIAL_ITERATIONS)) is not None]
    if not ends:  # so that the reason is told
        climb(setting, part, max_iterations=1, is_exact=True)
    setting = max(ends, key=lambda end: end[0])[1]
    best = ascended(setting, _COMPARISON_ITERATIONS)
    if best is None:
        return setting
    candidates = {"matern52": best}

    def likeliest() -> str:
        return max(candidates, key=lambda name: candidates[name][0])

    def compare(name: str, start: Hyperparameters, kernel: Kernel, num_iterations: int) -> None:
        end = ascended(replace(start, kernel=kernel), num_iterations)
        if end is not None:
            candidates[name] = end

    if task.options.is_kernel_open:
        for name, kernel in _of_other_smoothness(best[1].kernel).items():
            compare(name, best[1], kernel, _VARIANT_ITERATIONS)
        name = likeliest()
        # From the start, since what was fitted without a linear part has done without it.
        first = _of_other_smoothness(starts[0].kernel).get(name, starts[0].kernel)
        more = f"{name} + linear"
        compare(more, starts[0], _with_linear(first, task.data), _LINEAR_ITERATIONS)
        log.kernels = {name: value / part.data.num_data for name, (value, _) in candidates.items()}
        # In doubt with it, as other kernels fall back to a constant beyond the data.
        doubt = 0.5 * math.log(part.data.num_data)
        if more in candidates and candidates[more][0] > candidates[name][0] - doubt:
            return candidates[more][1]
    return candidates[likeliest()][1]


def quick_evidence(X: Any, y: Any, *, log_slopes: Any, generator: torch.Generator) -> float:
    """Compute the log evidence of some rows after a few steps, to compare units of a table.

    The kernel is a Matérn-5/2 with a linear part.

    Args:
        X: Inputs `(n, d)`.
        y: Targets `(n,)`, in units of their own.
        log_slopes: Logarithms of the derivatives of these units in those that are common to what is compared.
        generator: Draws the rows.
    """
    rows = torch.randperm(len(y), generator=generator)[:_ROWS_OF_COMPARISON].sort().values
    inputs, targets = (torch.as_tensor(each)[rows] for each in (X, y))
    task, setting = prepare(read_rows(inputs, targets, None), Options(standardize=True, generator=generator))
    assert task.scaling is not None
    # Without a linear part, units in which a function is linear would not be known from others.
    setting = replace(setting, kernel=_with_linear(setting.kernel, task.data))
    climb(setting, task, max_iterations=_QUICK_ITERATIONS, is_exact=True)
    slopes = torch.as_tensor(log_slopes)[rows].sum() - len(rows) * task.scaling.target_scale.log()
    return task.log.history[-1] + float(slopes)


def _of_other_smoothness(kernel: Any) -> dict[str, Kernel]:
    """Rougher and smoother kernels with the hyperparameters of a scaled Matérn-5/2."""
    lengthscale, d = kernel.base_kernel.lengthscale.detach(), kernel.base_kernel.ard_num_dims

    def scaled(base: Any) -> ScaleKernel:
        made = ScaleKernel(base).to(lengthscale)
        base.lengthscale, made.outputscale = lengthscale, kernel.outputscale.detach()
        return made

    return {"matern32": scaled(MaternKernel(1.5, ard_num_dims=d)), "rbf": scaled(RBFKernel(ard_num_dims=d))}


def _with_linear(kernel: Any, data: Observed) -> Kernel:
    """A kernel with a linear part, which has a share of the variance of the targets to begin with."""
    squares = data.value_inputs.var(0, correction=0).sum().clamp_min(torch.finfo(torch.float64).tiny)
    linear = LinearKernel().to(data.targets)
    linear.variance = _LINEAR_SHARE * target_variance(data, is_gaussian=True) / float(squares)
    return AdditiveKernel(deepcopy(kernel), linear)


def _with_lengthscales(setting: Hyperparameters, factor: float) -> Hyperparameters:
    """All learned lengthscales multiplied by a factor."""
    space = hyperparameter_space(setting)
    change = [torch.full_like(c.start, math.log(factor) if "lengthscale" in c.name else 0.0) for c in space.coordinates]
    if not change:
        return setting
    return space.setting((space.start + torch.cat([each.reshape(-1) for each in change])).clamp(*space.bounds))


def perturbed(setting: Hyperparameters, generator: torch.Generator, *, target_unit: float) -> Hyperparameters:
    """Move all learned hyperparameters at random, on the scale of their logarithms.

    Args:
        setting: The first start.
        generator: Of the moves.
        target_unit: The spread of the targets.
    """
    space = hyperparameter_space(setting, target_unit=target_unit)
    lower, upper = space.bounds
    noise = torch.randn(len(lower), generator=generator, dtype=torch.float64).to(lower)
    return space.setting((space.start + _START_SPREAD * noise).clamp(lower, upper))


def _some_rows(data: Observed, num_rows: int, task: Task) -> Observed:
    """Random rows, or all if there are no more."""
    if data.num_data <= num_rows:
        return data
    chosen = torch.randperm(data.num_data, generator=task.options.generator)[:num_rows].to(data.targets.device)
    variance = target_variance(data, is_gaussian=True)
    return replace(data.part(chosen), whole_variance=variance)


def _enough_points(setting: Hyperparameters, task: Task, budget: _Budget, *, most: int) -> int:
    """Number of points that leave little of the noise unexplained, or that the budget allows."""
    data, options = _some_rows(task.data, _ROWS_OF_SLACK, task), task.options
    num_inducing = min(_FEWEST_POINTS, most)
    while _slack_at(setting, data, num_inducing, options.generator) > options.slack_tolerance:
        if num_inducing == most:
            task.log.warnings.append(
                f"num_inducing='auto' stopped at max_inducing = {most} points, which leave more of the noise variance "
                f"unexplained than the {options.slack_tolerance:.2g} that was asked for. Raise max_inducing."
            )
            break
        more = min(round(_MORE_POINTS * num_inducing), most)
        if not budget.allows(more):
            # The largest number up to the next that the budget allows, in steps of an eighth.
            steps = [num_inducing + (more - num_inducing) * i // 8 for i in range(8)]
            return max([m for m in steps if budget.allows(m)], default=num_inducing)
        num_inducing = more
    return num_inducing


def _slack_at(setting: Hyperparameters, data: Observed, num_inducing: int, generator: torch.Generator) -> float:
    """Variance of some rows that so many points leave unexplained, in units of their noise."""
    Z = kmeans_points(leading_kernel(setting.kernel), data.value_inputs, num_inducing, generator=generator)
    return trace_slack(replace(setting, inducing_points=Z), data)


def gain_of_doubling(trained: Trained, task: Task) -> float:
    """Nats for each row that the bound would gain from twice as many points, as far as some rows tell.

    The larger of what they would explain under the hyperparameters at hand, and of the bound under those that the exact
    evidence led to: too few points make a fit take for noise what it cannot express, and then leave nothing open.
    """
    setting, generator = trained.setting, task.options.generator
    num_inducing = len(setting.inducing_points)
    if num_inducing >= len(torch.unique(task.data.value_inputs, dim=0)):
        return 0.0
    data = _some_rows(task.data, _ROWS_OF_SLACK, task)
    rows = _some_rows(task.data, _ROWS_OF_CENTERS, task).value_inputs

    def with_more(start: Hyperparameters, points: list[Tensor], num_more: int) -> Hyperparameters:
        Z = kmeans_points(leading_kernel(start.kernel), rows, min(num_more, len(rows)), generator=generator)
        return replace(start, inducing_points=torch.cat([*points, Z]))

    more = with_more(setting, [setting.inducing_points], num_inducing)
    gain = 0.5 * (trace_slack(setting, data) - trace_slack(more, data))
    if task.log.exact is not None:
        start = _fit_noise(with_more(task.log.exact, [], 2 * num_inducing), data)
        bound = float(collapse(sum_batches(start, [data])).bound) / data.num_data
        gain = max(gain, bound - trained.bound / task.data.num_data)
    return max(gain, 0.0)


def _fit_noise(setting: Hyperparameters, data: Observed) -> Hyperparameters:
    """Learn the noise variance from all rows, whose sums only have to be divided by it."""
    likelihood = setting.likelihood
    learned = likelihood.learnable()
    if set(learned) != {"noise_variance"}:
        return setting
    sums = sum_batches(setting, blocks_of_rows(data))

    def loss(change: float) -> float:
        return -float(collapse(sums.with_noise(math.exp(change))).bound)

    with torch.no_grad():
        found = scipy.optimize.minimize_scalar(loss, bounds=_NOISE_CHANGE, method="bounded", options={"xatol": 1e-2})
        value = learned["noise_variance"].detach() + found.x
        value = value.clamp_min(likelihood_bounds(setting, data)["noise_variance"][0])
    return replace(setting, likelihood=likelihood.with_learnable({"noise_variance": value}))


def blocks_of_rows(data: Observed) -> list[Observed]:
    """Rows in blocks whose features fit into memory."""
    return [
        replace(data, inputs=data.value_inputs[start:end], targets=data.targets[start:end])
        for start in range(0, data.num_data, _ROWS_OF_BLOCK)
        if (end := start + _ROWS_OF_BLOCK)
    ]


def _grow(setting: Hyperparameters, task: Task) -> Hyperparameters:
    """Double the number of inducing points until what they leave unexplained is small beside the noise."""
    task = replace(task, deadline=task.options.deadline)
    data, options = task.data, task.options
    budget = _Budget(_PLANNED * _SPEED * options.time_budget, data.num_data)
    most = min(options.max_inducing, len(data.candidates))
    num_inducing = min(_FEWEST_SITES, most)
    while True:
        few = replace(options, num_inducing=num_inducing, learn_inducing=False)
        setting = train(setting, replace(task, options=few))
        slack = trace_slack(setting, data)
        if slack <= options.slack_tolerance or num_inducing == most or not budget.allows(2 * num_inducing):
            break
        num_inducing = min(2 * num_inducing, most)
    if slack > options.slack_tolerance and num_inducing == most < len(data.candidates):
        task.log.warnings.append(
            f"num_inducing='auto' stopped at max_inducing = {most} points, which leave {slack:.2g} of the noise "
            f"variance unexplained, and {options.slack_tolerance:.2g} was asked for. Raise max_inducing."
        )
    if options.learn_inducing and num_inducing < len(data.candidates):
        setting = climb(setting, task, max_iterations=options.most_iterations, learn_inducing=True)
    return setting
