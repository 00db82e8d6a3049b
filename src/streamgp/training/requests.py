"""What was asked of a fit, and the parts that fits of all kinds share: preparing data, starting, and the result."""

from dataclasses import dataclass, replace
from typing import final

import torch
from gpytorch.kernels import Kernel
from gpytorch.means import Mean
from torch import Tensor

from streamgp.conditioning import SparseGP
from streamgp.errors import NumericalError, UnsupportedError
from streamgp.gp import SparseProcess
from streamgp.likelihoods import AbstractLikelihood
from streamgp.training.data import CheckedRows, check_points, to_observed
from streamgp.training.finishing import cast_process, learn_belief, optimal_process, rounded_points
from streamgp.training.full_batch import Log, Task, Trained, evaluate, train
from streamgp.training.objective import latent_variance, target_unit
from streamgp.training.options import Options
from streamgp.training.parameters import Hyperparameters
from streamgp.training.prior_site import read_prior_site
from streamgp.training.result import FitInfo, FitResult
from streamgp.training.scaling import Scaling, describe_unscaled_inputs, find_scaling
from streamgp.training.sharding.overview import Overview
from streamgp.training.starting import frozen_names, perturbed, starting_hyperparameters

__all__ = ["Request", "best_start", "check_carried", "check_several_latents", "make_result", "prepare"]

_ADVICE = "Pass standardize='inputs', which the result remembers, or scale the inputs."


@final
@dataclass(frozen=True, eq=False)
class Request:
    """What to fit; the options of `fit` that do not concern the search."""

    likelihood: AbstractLikelihood | None
    kernel: Kernel | str | None
    mean: Mean | None
    start: FitResult | SparseGP | None
    carried: SparseGP | None
    standardize: bool | str | None
    num_starts: int

    @property
    def is_gaussian(self) -> bool:
        """Whether the observations are."""
        return self.likelihood is None or self.likelihood.is_gaussian


def check_carried(request: Request, options: Options, *, is_in_parts: bool) -> None:
    """Refuse what a carried belief does not go together with."""
    if options.objective != "elbo" or options.beta != 1.0:
        raise UnsupportedError(
            f"A carried belief enters the bound, but objective={options.objective!r} with beta={options.beta:g} was "
            "asked for. Leave both at their defaults."
        )
    if is_in_parts:
        raise UnsupportedError(
            "A carried belief needs all rows at once, at most 50 000 of them as one array, and no minibatches. Pass "
            "fewer rows, and absorb the others."
        )
    is_scaled = isinstance(request.start, FitResult) and request.start.scaling is not None
    if request.standardize not in (False, None) and not is_scaled:
        raise UnsupportedError(
            f"A carried belief has units of its own, but standardize={request.standardize!r} would change those of X "
            "and y. Pass them in the units of the belief, or a start whose scaling these are."
        )


def check_several_latents(request: Request, options: Options, *, is_in_parts: bool) -> None:
    """Refuse what observations of several latent functions do not go together with."""
    if is_in_parts or request.carried is not None or options.objective != "elbo" or options.beta != 1.0:
        raise UnsupportedError(
            f"A {type(request.likelihood).__name__} likelihood looks at several latent functions, which are fitted by "
            "the bound of all observations at once: at most 50 000 rows as one array, without minibatches, map, a "
            "carried belief, objective='pll' or a beta. Leave these out, or fit to fewer rows and absorb the others."
        )


def prepare(
    rows: CheckedRows, request: Request, options: Options, *, overview: Overview | None = None
) -> tuple[Task, Scaling | None, Hyperparameters]:
    """Observations as training sees them, their scaling, and where to start.

    Where the rows are a sample, scaling and priors follow an overview of all of them.
    """
    log = Log()
    data, start = to_observed(rows, dtype=rows.inputs.dtype), request.start
    if isinstance(options.inducing, Tensor):
        check_points(options.inducing, like=rows.inputs)
    scaling = find_scaling(request.standardize, data.all_inputs, data.targets, is_gaussian=request.is_gaussian)
    if overview is not None and scaling is not None:
        scaling = overview.scaling(like=scaling)
    if isinstance(start, FitResult) and start.scaling is not None:
        scaling = start.scaling  # what is carried over has these units
    if scaling is not None:
        data = scaling.observed(data)
    if overview is not None:
        unit = 1.0 if scaling is None else float(scaling.target_scale)
        data = replace(data, whole_variance=overview.target_variance / unit**2)
    if request.carried is None and request.standardize is not None:
        log.warnings += filter(None, [describe_unscaled_inputs(data.all_inputs, advice=_ADVICE)])
    if request.carried is not None:  # whose units were chosen before, for inputs that may have spread further
        data = replace(data, carried=read_prior_site(request.carried, like=rows.inputs))
    setting = starting_hyperparameters(
        data,
        likelihood=request.likelihood,
        kernel=request.kernel,
        mean=request.mean,
        start=start,
        latent_variance=latent_variance(data, request.likelihood),
    )
    return Task(data, options, log), scaling, setting


def best_start(
    first: Hyperparameters, task: Task, *, num_starts: int, dtype: torch.dtype
) -> tuple[Trained, SparseProcess]:
    """Train from one start or several, and keep the best."""
    log, generator = task.log, task.options.generator
    best: tuple[Trained, SparseProcess] | None = None
    unit = target_unit(first, task.data)
    for index in range(num_starts):
        one = Log()
        try:
            setting = first if index == 0 else perturbed(first, generator, target_unit=unit)
            ended = _train_once(setting, replace(task, log=one), dtype)
        except NumericalError:
            if index == num_starts - 1 and best is None:
                raise
            continue
        log.count(one)
        if best is None or ended[0].bound + ended[0].log_prior > best[0].bound + best[0].log_prior:
            best = ended
            log.history, log.reason, log.is_converged = one.history, one.reason, one.is_converged
            log.warnings = [*log.warnings, *one.warnings]
    assert best is not None
    return best


def _train_once(setting: Hyperparameters, task: Task, dtype: torch.dtype) -> tuple[Trained, SparseProcess]:
    data, options = task.data, task.options
    setting = rounded_points(train(setting, task), dtype)
    trained = evaluate(setting, data, options)
    is_gaussian = setting.likelihood.is_gaussian
    if options.objective == "pll" or (options.beta != 1.0 and not is_gaussian):
        return learn_belief(trained, task)
    return trained, optimal_process(setting, data, beta=options.beta, sites=trained.sites)


def make_result(
    trained: Trained, process: SparseProcess, log: Log, *, scaling: Scaling | None, dtype: torch.dtype
) -> FitResult:
    """What the user gets."""
    setting = trained.setting
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
    )
    likelihood = setting.likelihood.with_learnable(learned)
    return FitResult(cast_process(process, dtype), likelihood, info, scaling, frozen_names(setting))
