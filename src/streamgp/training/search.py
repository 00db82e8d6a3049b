"""A whole fit: training from one start or several, the belief, and what users get."""

import math
from dataclasses import replace

import torch
from torch import Tensor

from streamgp.errors import NumericalError
from streamgp.gp import SparseProcess
from streamgp.training.automatic import blocks_of_rows, gain_of_doubling, perturbed, train_automatically
from streamgp.training.collapsed import NaturalBelief, collapse, sum_batches
from streamgp.training.full_batch import Log, Task, Trained, evaluate, train
from streamgp.training.parameters import Hyperparameters
from streamgp.training.priors import hyper_prior, target_unit
from streamgp.training.result import FitInfo, FitResult, cast_process, optimal_process, prior_process
from streamgp.training.uncollapsed import learn_belief

__all__ = ["best_start", "make_result", "rounded_points"]

# Of fewer rows the evidence may well not tell a weak dependence from none.
_ROWS_THAT_TELL = 150
# Distance from the fit, in deviations of the noise, from which a target is an outlier, and the share of them of which a
# fit warns: Gaussian noise has one in sixteen thousand. With a smaller share it warns of single slips.
_FAR, _LEAST_SHARE = 4.0, 0.002
# Share of far targets beyond which they are no outliers, and the fit is poor; larger warns of outliers there, too.
_MOST_SHARE = 0.1
# Rows that are looked at for outliers.
_ROWS_LOOKED_AT = 5000


def best_start(first: Hyperparameters, task: Task, *, dtype: torch.dtype) -> tuple[Trained, SparseProcess]:
    """Train from one start or several, and keep the best."""
    log, generator, options = task.log, task.options.generator, task.options
    if options.is_automatic and first.likelihood.is_gaussian:
        return _finish(train_automatically(first, task), task, dtype)
    best: tuple[Trained, SparseProcess] | None = None
    unit = target_unit(first, task.data)
    for index in range(options.num_starts):
        one = Log()
        try:
            setting = first if index == 0 else perturbed(first, generator, target_unit=unit)
            alone = replace(task, log=one)
            trained = train_automatically(setting, alone) if options.is_automatic else train(setting, alone)
            ended = _finish(trained, alone, dtype)
        except NumericalError:
            if index == options.num_starts - 1 and best is None:
                raise
            continue
        log.count(one)
        if best is None or ended[0].bound + ended[0].log_prior > best[0].bound + best[0].log_prior:
            best = ended
            log.history, log.reason, log.is_converged = one.history, one.reason, one.is_converged
            log.warnings = [*log.warnings, *one.warnings]
    assert best is not None
    return best


def _finish(setting: Hyperparameters, task: Task, dtype: torch.dtype) -> tuple[Trained, SparseProcess]:
    """The optimal belief at the end of training, or the one that is learned where it has no closed form."""
    data, options, log = task.data, task.options, task.log
    setting = rounded_points(setting, dtype)
    noise = setting.likelihood.gaussian_noise_variance
    is_elbo = options.objective == "elbo"
    if noise is not None and noise.dim() == 0 and data.carried is None and isinstance(data.inputs, Tensor) and is_elbo:
        trained, process = _in_one_pass(setting, task)
    else:
        trained = evaluate(setting, data, options)
        process = optimal_process(setting, data, beta=options.beta if is_elbo else 1.0, sites=trained.sites)
    if setting.likelihood.is_gaussian and is_elbo and options.beta == 1.0:
        log.warnings += filter(None, [_describe_noise(trained, task), _describe_outliers(setting, process, task)])
        if options.is_automatic and data.carried is None and isinstance(data.inputs, Tensor):
            trained = replace(trained, doubling_gain=gain_of_doubling(trained, task))
    if is_elbo and (options.beta == 1.0 or setting.likelihood.is_gaussian):
        return trained, process
    setting, process, ascent = learn_belief(setting, process, task)
    with torch.no_grad():
        log_prior = float(hyper_prior(setting, data, options.priors).log_density(setting))
    return Trained(setting, ascent.value - log_prior, log_prior, trained.trace_slack), process


def _in_one_pass(setting: Hyperparameters, task: Task) -> tuple[Trained, SparseProcess]:
    """Bound, slack and belief of Gaussian observations, from sums over blocks of them."""
    data, options = task.data, task.options
    sums = sum_batches(setting, blocks_of_rows(data), beta=options.beta)
    with torch.no_grad():
        optimum = collapse(sums, options.beta)
        log_prior = float(hyper_prior(setting, data, options.priors).log_density(setting))
        mean, root, _ = NaturalBelief(optimum.precision, sums.pull).moments()
    slack = options.beta * float(sums.slack) / data.num_data
    process = prior_process(setting, data.jitter).with_belief(mean, root.contiguous())
    return Trained(setting, float(optimum.bound), log_prior, slack), process


def _describe_noise(trained: Trained, task: Task) -> str | None:
    """Say that a fit is no better than a constant, if it is not; None otherwise."""
    y, n = task.data.targets, task.data.num_data
    variance = float(y.var(correction=0))
    if n < _ROWS_THAT_TELL or variance == 0.0 or not trained.setting.likelihood.learnable():
        return None
    constant = -0.5 * n * (math.log(2.0 * math.pi * variance) + 1.0)
    if trained.bound > constant:
        return None
    return (
        f"The fit found nothing but noise: its bound, {trained.bound:.5g}, is no more than the {constant:.5g} of a "
        f"constant with {n} targets scattered about it. Either the targets do not depend on the inputs, or other "
        "starts, points or inputs are needed: try num_inducing='auto', num_starts=5, more rows, or standardize=True."
    )


def _describe_outliers(setting: Hyperparameters, process: SparseProcess, task: Task) -> str | None:
    """Say that some targets are far from the fit, if they are; None otherwise."""
    data, noise = task.data, setting.likelihood.gaussian_noise_variance
    if noise is None or noise.dim() or not isinstance(data.inputs, Tensor) or not setting.likelihood.learnable():
        return None
    if data.num_data < _ROWS_THAT_TELL:
        return None
    rows = data.part(torch.arange(0, data.num_data, -(-data.num_data // _ROWS_LOOKED_AT)).to(data.targets.device))
    with torch.no_grad():
        distance = (rows.targets - process.mean(rows.value_inputs)).abs()
        # Where too few points leave much open, targets are far from the mean, and not from what is expected.
        is_far = distance > _FAR * (noise + process.variance(rows.value_inputs)).sqrt()
    if not max(3, _LEAST_SHARE * rows.num_data) <= int(is_far.sum()) <= _MOST_SHARE * rows.num_data:
        return None
    return (
        f"{int(is_far.sum())} of {rows.num_data} targets lie more than {_FAR:g} deviations from the fit, where "
        "Gaussian noise has one in sixteen thousand. Such outliers widen the intervals of all rows: pass "
        "likelihood='student_t', which takes them as such, or transform the targets if they are skewed."
    )


def make_result(trained: Trained, process: SparseProcess, task: Task, dtype: torch.dtype) -> FitResult:
    """Put together the result that users get, in the dtype of their data."""
    setting, log = trained.setting, task.log
    learned = {name: value.detach().to(dtype) for name, value in setting.likelihood.learnable().items()}
    info = FitInfo(
        bound=trained.bound,
        log_prior=trained.log_prior,
        history=tuple(log.history),
        seconds=0.0,
        num_evaluations=log.num_evaluations,
        num_rejected=log.num_rejected,
        is_converged=log.is_converged,
        reason=log.reason,
        num_inducing=process.num_inducing,
        trace_slack=trained.trace_slack,
        warnings=tuple(log.warnings),
        doubling_gain=trained.doubling_gain,
        kernels=tuple(log.kernels.items()),
    )
    likelihood = setting.likelihood.with_learnable(learned)
    return FitResult(cast_process(process, dtype), likelihood, info, task.scaling, frozen_names(setting))


def frozen_names(setting: Hyperparameters) -> tuple[str, ...]:
    """Names of the parameters that are not learned."""
    return tuple(
        f"{group}.{name}"
        for group, module in (("kernel", setting.kernel), ("mean", setting.mean))
        for name, parameter in module.named_parameters()
        if not parameter.requires_grad
    )


def rounded_points(setting: Hyperparameters, dtype: torch.dtype) -> Hyperparameters:
    """Round inducing points to what the dtype of the result can hold."""
    Z = setting.inducing_points
    return replace(setting, inducing_points=Z.to(dtype).to(Z.dtype))
