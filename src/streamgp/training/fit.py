"""Fitting a sparse GP to data."""

import math
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, final, overload

import numpy as np
import torch
from gpytorch.kernels import Kernel
from gpytorch.means import Mean
from torch import Tensor

from streamgp.checks import check_count
from streamgp.conditioning import SparseGP
from streamgp.errors import DTypeError, NumericalError, StreamGPWarning, UnsupportedError
from streamgp.gp import SparseProcess
from streamgp.likelihoods import AbstractLikelihood, Gaussian
from streamgp.threads import few_threads
from streamgp.training.batches import AbstractSource, read_source
from streamgp.training.data import Rows, check_points, read_rows, to_dense, to_observed
from streamgp.training.finishing import cast_process, learn_belief, optimal_process, rounded_points
from streamgp.training.full_batch import Log, Task, Trained, evaluate, target_variance, train
from streamgp.training.minibatch import train_in_minibatches
from streamgp.training.options import Minibatches, Options
from streamgp.training.outputs import MultiOutputFit, fit_outputs
from streamgp.training.parameters import Hyperparameters
from streamgp.training.prior_site import read_prior_site
from streamgp.training.progress import progress_bar
from streamgp.training.result import FitInfo, FitResult
from streamgp.training.scaling import Scaling, describe_unscaled_inputs, find_scaling
from streamgp.training.sharding import (
    AbstractShards,
    MappedShards,
    Overview,
    climb_over_shards,
    evaluate_over_shards,
    overview_of,
    sample_of,
)
from streamgp.training.starting import check_modules, frozen_names, perturbed, read_likelihood, starting_hyperparameters

__all__ = ["fit"]

# More rows than these are visited in minibatches: at 256 inducing points, one matrix of a step would take 100 MB.
_MOST_ROWS_AT_ONCE = 50_000
# Rows of all shards on which a start is found, and for each inducing point.
_ROWS_OF_SAMPLE, _ROWS_OF_POINT = 4096, 20


@overload
def fit(X: Any, y: Any = None, *, outputs: None = None, **options: Any) -> FitResult: ...


@overload
def fit(X: Any, y: Any, *, outputs: str, rank: int | None = None, **options: Any) -> MultiOutputFit: ...


def fit(  # type: ignore[misc] # the options of both are named here
    X: Any,
    y: Any = None,
    *,
    outputs: str | None = None,
    rank: int | None = None,
    likelihood: AbstractLikelihood | str | None = None,
    kernel: Kernel | None = None,
    mean: Mean | None = None,
    num_inducing: int | str = 100,
    inducing: str | Tensor = "kmeans",
    learn_inducing: bool = True,
    objective: str = "elbo",
    beta: float = 1.0,
    priors: str | None = "dim_scaled",
    standardize: bool | str = False,
    start: FitResult | SparseGP | None = None,
    carried: SparseGP | None = None,
    num_starts: int = 1,
    max_iterations: int | None = None,
    tolerance: float = 1e-4,
    slack_tolerance: float = 0.05,
    max_inducing: int = 1024,
    minibatches: Minibatches | None = None,
    map: Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]] | None = None,
    generator: torch.Generator | None = None,
    progress: bool = False,
    callback: Callable[[float], None] | None = None,
) -> FitResult | MultiOutputFit:
    r"""Fit a sparse GP: hyperparameters, inducing points and belief.

    Gaussian observations are fitted by L-BFGS on the collapsed bound, with the belief in closed form; others by
    L-BFGS on the bound at Gaussian sites, which are found anew between; more than 50 000 rows by minibatches, with
    natural gradients for the belief and Adam for the rest. Training runs in double precision, and the result has the
    dtype of the data.

    Args:
        X: Inputs `(n, d)`, a tensor or NumPy array, memory-mapped ones included; pairs `(n, 2, d)` for comparisons.
            Or, without `y`, an iterable of batches `(X, y)`, or a function that returns one for each pass.
        y: Targets `(n,)`; with `outputs`, outcomes `(n, o)` with NaN where an output was not observed.
        outputs: Fit several correlated outputs at once: `"lmc"` for latent functions that outputs share beside one of
            their own, `"icm"` for shared ones of one kernel, `"independent"` for none in common. Gaussian noise is
            learned for each output; of the other options `rank`, `kernel`, `num_inducing`, `max_iterations`,
            `tolerance` and `callback` count. See `streamgp.training.outputs.fit_outputs`.
        rank: Number of latent functions that outputs share.
        likelihood: One of `streamgp.likelihoods` or its name, such as `"poisson"`; Gaussian with learned noise by
            default.
        kernel: GPyTorch kernel, copied; a scaled Matérn-5/2 with a lengthscale for each dimension by default. Its
            constraints and own priors are respected, and parameters with `requires_grad=False` stay as they are.
        mean: GPyTorch mean, likewise; a constant by default.
        num_inducing: Number of inducing points, at most one for each input and carried point; `"auto"` doubles it from
            32 until the trace slack is below `slack_tolerance`.
        inducing: `"kmeans"` takes centres of clusters of the inputs, in units of the lengthscales, `"pivoted"` chooses
            among the inputs by pivoted Cholesky, both again as the kernel changes; a tensor `(m, d)` gives them (in
            standardised units, if those are asked for).
        learn_inducing: Whether they are learned at the end.
        objective: `"elbo"`, or `"pll"` for the predictive log likelihood.
        beta: Weight of the divergence of the belief from the prior.
        priors: Set of priors for hyperparameters that have none of their own: `"dim_scaled"`, `"paper"`,
            `"half_cauchy"` (see `streamgp.training.priors`), or None.
        standardize: Scale inputs and targets to zero mean and unit variance; `"inputs"` or `"targets"` for one of
            them. The result remembers it and predicts in the user's units.
        start: Result or sparse GP whose hyperparameters and inducing points are the start; few steps are then needed.
            Its points are kept, and others added if more are asked for. A result's scaling is kept, too.
        carried: Belief about earlier observations, none of which may be in `X` and `y`. It enters as a fixed Gaussian
            factor of the values at its inducing points, whatever the new hyperparameters, and the result knows of both.
            In the units of `start`, if that has a scaling. Where training starts is for `start` to say.
        num_starts: Number of starts, from hyperparameters changed at random after the first; the best is kept.
        max_iterations: Most iterations of L-BFGS in the last part of training; 200 by default, 10 from a `start`.
        tolerance: Training stops when five iterations gain less than this for each observation.
        slack_tolerance: For `num_inducing="auto"`: $\frac1n \operatorname{tr} \Sigma^{-1}(K_{xx} - Q_{xx})$, of which
            half is what the bound loses for each observation.
        max_inducing: For `num_inducing="auto"`: the most points.
        minibatches: How to visit the data in parts; asks for it where there are few rows, too.
        map: Fits exactly to shards: `X` is then an iterable of pairs `(X, y)`, or of functions that load one, and
            `map(function, items)`, as the built-in one or that of a pool of processes, runs a function on each. A start
            is found on a sample of the rows; how they are divided makes no difference.
        generator: Source of randomness; a fixed seed by default.
        progress: Show a progress bar.
        callback: Called with the objective after each step.

    Returns:
        The fitted GP and likelihood, with diagnostics.

    References:
        Titsias (2009), Variational learning of inducing variables in sparse Gaussian processes.
        Adam, Chang, Khan, Solin (2021), Dual parameterization of sparse variational Gaussian processes.
        Salimbeni, Eleftheriadis, Hensman (2018), Natural gradients in practice.
        Bui, Nguyen, Turner (2017), Streaming sparse Gaussian process approximations.
    """
    if outputs is not None:
        if likelihood is not None or start is not None or carried is not None or minibatches is not None:
            raise UnsupportedError(
                "Several outputs are fitted at once with Gaussian noise, from the start and in one piece. Leave out "
                "likelihood, start, carried and minibatches, or fit the outputs one by one."
            )
        return fit_outputs(
            X,
            y,
            outputs=outputs,
            rank=rank,
            kernel=kernel,
            num_inducing=100 if isinstance(num_inducing, str) else num_inducing,
            max_iterations=200 if max_iterations is None else max_iterations,
            tolerance=tolerance,
            callback=callback,
        )
    began = time.perf_counter()
    check_count(num_starts, "num_starts")
    check_modules(kernel, mean, start)
    if y is not None and not isinstance(X, Tensor | np.ndarray):
        X = to_dense(X, "X")
    with progress_bar(is_shown=progress, callback=callback) as report:
        options = Options(
            num_inducing=num_inducing,
            inducing=inducing,
            learn_inducing=learn_inducing,
            objective=objective,
            beta=beta,
            priors=priors,
            slack_tolerance=slack_tolerance,
            max_inducing=max_inducing,
            max_iterations=max_iterations,
            tolerance=tolerance,
            is_warm=start is not None,
            on_iteration=report,
            generator=torch.Generator().manual_seed(0) if generator is None else generator,
        )
        given = read_likelihood(likelihood, start)
        request = _Request(given, kernel, mean, start, carried, standardize, num_starts)
        shards = _shards(X, y, map, request, options)
        sizes = None if shards is not None else _minibatches(X, given, minibatches)
        if carried is not None:
            _check_supported(request, options, is_in_parts=sizes is not None)
        if shards is not None:
            with few_threads(math.inf):
                result = _fit_over_shards(shards, request, options)
        elif sizes is None:
            rows = read_rows(X, y, given)
            with few_threads(len(rows.targets) * options.usual_inducing**2):
                result = _fit_at_once(rows, request, options)
        else:
            source = read_source(X, y, given, options=sizes, generator=options.generator)
            with few_threads(sizes.batch_size * options.usual_inducing**2):
                result = _fit_in_parts(source, request, options, sizes=sizes)
    for message in result.info.warnings:
        warnings.warn(message, StreamGPWarning, stacklevel=2)
    return replace(result, info=replace(result.info, seconds=time.perf_counter() - began))


@final
@dataclass(frozen=True, eq=False)
class _Request:
    """What to fit; the options of `fit` that do not concern the search."""

    likelihood: AbstractLikelihood | None
    kernel: Kernel | None
    mean: Mean | None
    start: FitResult | SparseGP | None
    carried: SparseGP | None
    standardize: bool | str
    num_starts: int

    @property
    def is_gaussian(self) -> bool:
        return self.likelihood is None or isinstance(self.likelihood, Gaussian)


def _minibatches(X: Any, likelihood: AbstractLikelihood | None, asked: Minibatches | None) -> Minibatches | None:
    """Whether to visit the data in parts, and how."""
    if asked is not None and not isinstance(asked, Minibatches):
        raise DTypeError(f"minibatches must be a streamgp.training.Minibatches, but is a {type(asked).__name__}.")
    is_array = isinstance(X, Tensor | np.ndarray)
    constants = (
        [] if likelihood is None else [v for v in vars(likelihood).values() if isinstance(v, Tensor) and v.dim()]
    )
    if asked is None and is_array and (X.ndim == 0 or len(X) <= _MOST_ROWS_AT_ONCE or constants):
        return None
    if constants:
        raise UnsupportedError(
            f"The {type(likelihood).__name__} likelihood has constants for each observation, which minibatches cannot "
            "take apart. Pass all rows at once, without minibatches."
        )
    return asked or Minibatches()


def _check_supported(request: _Request, options: Options, *, is_in_parts: bool) -> None:
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
    if request.standardize is not False and not is_scaled:
        raise UnsupportedError(
            f"A carried belief has units of its own, but standardize={request.standardize!r} would change those of X "
            "and y. Pass them in the units of the belief, or a start whose scaling these are."
        )


def _shards(X: Any, y: Any, map: Any, request: _Request, options: Options) -> AbstractShards | None:
    """The shards of a user, if that is what was given."""
    if map is None and not isinstance(X, AbstractShards):
        return None
    if y is not None or not isinstance(X, AbstractShards | Iterable) or isinstance(X, Tensor | np.ndarray | str):
        raise DTypeError(
            "With map, X must be an iterable of shards, pairs (X, y) or functions that load one, and y is left out, "
            f"but X is a {type(X).__name__} and y a {type(y).__name__}."
        )
    if not isinstance(X, AbstractShards) and not callable(map):
        raise DTypeError(f"map must be a function such as the built-in map, but is a {type(map).__name__}.")
    likelihood = request.likelihood
    is_plain = options.objective == "elbo" and (options.beta == 1.0 or request.is_gaussian)
    if request.carried is not None or not is_plain or _has_constants(likelihood):
        raise UnsupportedError(
            "Shards are fitted by the bound of all observations, without a carried belief, objective='pll', a beta of "
            "observations that are not Gaussian, or constants of the likelihood for each observation. Leave these out."
        )
    return X if isinstance(X, AbstractShards) else MappedShards(list(X), map)


def _has_constants(likelihood: AbstractLikelihood | None) -> bool:
    """Whether a likelihood has numbers for each observation."""
    return likelihood is not None and any(isinstance(v, Tensor) and v.dim() for v in vars(likelihood).values())


def _fit_over_shards(shards: AbstractShards, request: _Request, options: Options) -> FitResult:
    """Find a start on a sample, then train on everything where it is."""
    likelihood = request.likelihood
    overview = overview_of(shards, likelihood)
    num_rows = max(_ROWS_OF_SAMPLE, _ROWS_OF_POINT * options.usual_inducing)
    rows = sample_of(shards, overview, num_rows, likelihood=likelihood, generator=options.generator)
    task, scaling, first = _prepare(rows, request, options, overview=overview)
    setting, dtype = first, overview.dtype
    if not options.is_warm:
        trained, _ = _best_start(first, task, num_starts=request.num_starts, dtype=dtype)
        task.log.history.clear()  # of another objective, that of the sample
        setting = trained.setting
    common: dict[str, Any] = {"likelihood": likelihood, "scaling": scaling}
    setting = climb_over_shards(setting, shards, task, num_data=overview.num_data, **common)
    trained, process = evaluate_over_shards(rounded_points(setting, dtype), shards, task, **common)
    return _result(trained, process, task.log, scaling=scaling, dtype=dtype)


def _prepare(
    rows: Rows, request: _Request, options: Options, *, overview: Overview | None = None
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
    if request.carried is None:
        log.warnings += filter(None, [describe_unscaled_inputs(data.all_inputs)])
    else:  # whose units were chosen before, for inputs that may have spread further
        data = replace(data, carried=read_prior_site(request.carried, like=rows.inputs))
    setting = starting_hyperparameters(
        data,
        likelihood=request.likelihood,
        kernel=request.kernel,
        mean=request.mean,
        start=start,
        target_variance=target_variance(data, is_gaussian=request.is_gaussian),
    )
    return Task(data, options, log), scaling, setting


def _fit_at_once(rows: Rows, request: _Request, options: Options) -> FitResult:
    task, scaling, first = _prepare(rows, request, options)
    dtype = rows.inputs.dtype
    trained, process = _best_start(first, task, num_starts=request.num_starts, dtype=dtype)
    return _result(trained, process, task.log, scaling=scaling, dtype=dtype)


def _fit_in_parts(source: AbstractSource, request: _Request, options: Options, *, sizes: Minibatches) -> FitResult:
    """Find a start on a sample, then train on everything."""
    task, scaling, first = _prepare(source.sample, request, options)
    dtype = source.sample.inputs.dtype
    sampled = replace(task, options=replace(options, objective="elbo", beta=1.0))
    trained, _ = _best_start(first, sampled, num_starts=request.num_starts, dtype=dtype)
    task.log.history.clear()  # of another objective, that of the sample
    trained, process = train_in_minibatches(trained.setting, source, task, scaling=scaling, sizes=sizes)
    return _result(trained, process, task.log, scaling=scaling, dtype=dtype)


def _best_start(
    first: Hyperparameters, task: Task, *, num_starts: int, dtype: torch.dtype
) -> tuple[Trained, SparseProcess]:
    log, generator = task.log, task.options.generator
    best: tuple[Trained, SparseProcess] | None = None
    for index in range(num_starts):
        one = Log()
        try:
            setting = first if index == 0 else perturbed(first, generator)
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
    is_gaussian = isinstance(setting.likelihood, Gaussian)
    if options.objective == "pll" or (options.beta != 1.0 and not is_gaussian):
        return learn_belief(trained, task)
    return trained, optimal_process(setting, data, beta=options.beta, sites=trained.sites)


def _result(
    trained: Trained, process: SparseProcess, log: Log, *, scaling: Scaling | None, dtype: torch.dtype
) -> FitResult:
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
        num_inducing=len(setting.inducing_points),
        trace_slack=trained.trace_slack,
        warnings=tuple(log.warnings),
    )
    likelihood = setting.likelihood.with_learnable(learned)
    return FitResult(cast_process(process, dtype), likelihood, info, scaling, frozen_names(setting))
