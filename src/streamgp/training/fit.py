"""Fitting a sparse GP to data."""

import math
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, overload

import numpy as np
import torch
from gpytorch.kernels import Kernel
from gpytorch.means import Mean
from torch import Tensor

from streamgp.checks import to_tensor
from streamgp.conditioning import SparseGP
from streamgp.errors import ArgumentTypeError, OptionError, StreamGPWarning, UnsupportedError
from streamgp.evidence import Evidence
from streamgp.likelihoods import AbstractLikelihood
from streamgp.threads import limit_threads
from streamgp.training.arguments import (
    CheckedRows,
    Minibatches,
    Options,
    has_constants,
    progress_bar,
    read_rows,
)
from streamgp.training.bounded import read_bounded
from streamgp.training.minibatch import AbstractSource, read_source, train_in_minibatches
from streamgp.training.outputs import MultiOutputFit, fit_outputs
from streamgp.training.result import FitResult
from streamgp.training.search import best_start, make_result
from streamgp.training.sharded_fit import fit_over_shards
from streamgp.training.sharding import AbstractShards, MappedShards
from streamgp.training.starting import prepare

__all__ = ["fit"]

# More rows than these are visited in minibatches: at 256 inducing points, one matrix of a step would take 100 MB.
_MOST_ROWS_AT_ONCE = 50_000
# Inducing points of each latent function of several outputs, if no number is given.
_POINTS_OF_OUTPUTS = 100
# Times that averages of rates are made linear around the belief of the fit before, and iterations of each fit after the
# first; hyperparameters hardly move in the last.
_RATE_ROUNDS, _RATE_ITERATIONS = 3, 30


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
    likelihood: AbstractLikelihood | str | Sequence[AbstractLikelihood | str | None] | None = None,
    kernel: Kernel | str | None = None,
    mean: Mean | None = None,
    num_inducing: int | str = "auto",
    inducing: str | Tensor = "kmeans",
    learn_inducing: bool = True,
    objective: str = "elbo",
    beta: float = 1.0,
    priors: str | None = "auto",
    standardize: bool | str | None = False,
    start: FitResult | SparseGP | None = None,
    carried: SparseGP | None = None,
    num_starts: int = 1,
    max_iterations: int | None = None,
    tolerance: float = 1e-4,
    slack_tolerance: float = 0.01,
    max_inducing: int = 1024,
    time_budget: float = 10.0,
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

    ```python
    import numpy as np

    X = np.random.default_rng(0).random((80, 2))
    result = sg.fit(X, np.sin(6 * X[:, 0]), num_inducing=15)
    result.predict(X).mean
    counts = sg.fit(X, np.round(5 * X[:, 1]), likelihood="poisson", num_inducing=15)
    ```

    Args:
        X: Inputs `(n, d)`, a tensor or NumPy array, memory-mapped ones included; pairs `(n, 2, d)` for comparisons.
            Or rows of `streamgp.evidence`, such as averages over areas or gradients. Or, without `y`, an iterable of
            batches `(X, y)`, or a function that returns one for each pass.
        y: Targets `(n,)`, some of which may be texts such as `"<0.5"` where no more than a bound is known; with
            `outputs`, outcomes `(n, o)` with NaN where an output was not observed.
        outputs: Fit several correlated outputs at once: `"lmc"` for latent functions that outputs share beside one of
            their own, `"icm"` for shared ones of one kernel, `"independent"` for none in common. `likelihood` is one
            for all outputs, or a list with one for each; of the other options `rank`, `kernel`, `num_inducing`,
            `max_iterations`, `tolerance` and `callback` count. See `streamgp.training.outputs.fit_outputs`.
        rank: Number of latent functions that outputs share.
        likelihood: One of `streamgp.likelihoods` or its name, such as `"poisson"`; Gaussian with learned noise by
            default.
        kernel: GPyTorch kernel, copied; by default a scaled Matérn-5/2 with a lengthscale for each dimension, or,
            with `num_inducing="auto"`, the likeliest of four such. Or
            `"interactions"`, `"matern"`, `"rbf"`, or `"spherical_linear"`, a linear model on a sphere for many
            dimensions. Its constraints and own priors are respected, and parameters with `requires_grad=False` stay as
            they are.
        mean: GPyTorch mean, likewise; a constant by default.
        num_inducing: Number of inducing points, at most one for each input and carried point; as many as a `start`
            has, or `"auto"`: up to 1000 rows all inputs, which makes the fit exact; of more as many as it takes for the
            trace slack to fall below `slack_tolerance`, within `time_budget`. Several starts are compared on 400 rows,
            and, where no kernel is given, Matérn-3/2, Matérn-5/2, squared exponential and Matérn-5/2 with a linear
            part. `info` says how many points were taken, what they leave open, and what twice as many would gain.
        inducing: `"kmeans"` takes centers of clusters of the inputs, in units of the lengthscales, `"pivoted"` chooses
            among the inputs by pivoted Cholesky, both again as the kernel changes; a tensor `(m, d)` gives them (in
            standardized units, if those are asked for). Over shards both look at a sample of the rows;
            `"distributed_kmeans"` then finds clusters of all of them. `"features"` does without points for a kernel
            with finitely many features, such as a linear, polynomial or spherical-linear one: nothing is lost then, and
            the other options that concern points do not count.
        learn_inducing: Whether they are learned at the end.
        objective: `"elbo"`, or `"pll"` for the predictive log likelihood.
        beta: Weight of the divergence of the belief from the prior.
        priors: Set of priors for hyperparameters that have none of their own: `"tabular"`, `"dim_scaled"`, `"paper"`,
            `"half_cauchy"` (see `streamgp.training.priors`), or None; by default the first for `num_inducing="auto"`,
            and the second for a given number.
        standardize: Scale inputs and targets to zero mean and unit variance; `"inputs"` or `"targets"` for one of
            them. The result remembers it and predicts in the user's units. False warns of inputs far from unit scale,
            None does not.
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
        time_budget: For `num_inducing="auto"`: seconds for which the number of points is planned, of one core with
            nothing else to do. What is planned takes some two thirds of it, and gives the same on any machine that
            is as fast; where the processor has worked for that long, learning stops, and `info.reason` says so. A
            given number of points takes no notice.
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
        if start is not None or carried is not None or minibatches is not None:
            raise UnsupportedError(
                "Several outputs are fitted at once, from the start and in one piece. Leave out start, carried and "
                "minibatches, or fit the outputs one by one."
            )
        others = {"mean": mean, "map": map, "inducing": inducing if isinstance(inducing, Tensor) else None}
        others |= {"objective": objective != "elbo", "beta": beta != 1.0, "num_starts": num_starts != 1}
        others |= {"priors": priors not in ("auto", "dim_scaled")}
        asked = [name for name, value in others.items() if value is not None and value is not False]
        if asked or inducing == "features":
            raise UnsupportedError(
                f"Several outputs are fitted without {', '.join(asked) or 'features'}. Leave it out, or start from "
                "MultiOutputGP.from_prior or from_features with hyperparameters of your own."
            )
        return fit_outputs(
            X,
            y,
            outputs=outputs,
            rank=rank,
            likelihood=likelihood,
            kernel=kernel,
            num_inducing=_POINTS_OF_OUTPUTS if isinstance(num_inducing, str) else num_inducing,
            max_iterations=200 if max_iterations is None else max_iterations,
            tolerance=tolerance,
            callback=callback,
        )
    bounded = read_bounded(y, likelihood, start=start)
    if bounded is not None:
        y, likelihood = bounded.targets, bounded.likelihood
        standardize = False if standardize == "targets" else standardize
    if y is not None and not isinstance(X, Tensor | np.ndarray | Evidence):
        X = to_tensor(X, "X", kinds="fiub")
    with progress_bar(is_shown=progress, callback=callback) as reports:
        given: dict[str, Any] = {"likelihood": likelihood}
        if generator is not None:
            given["generator"] = generator
        options = Options(
            kernel=kernel,
            mean=mean,
            num_inducing=num_inducing,
            inducing=inducing,
            learn_inducing=learn_inducing,
            objective=objective,
            beta=beta,
            priors=priors,
            standardize=standardize,
            start=start,
            carried=carried,
            num_starts=num_starts,
            max_iterations=max_iterations,
            tolerance=tolerance,
            slack_tolerance=slack_tolerance,
            max_inducing=max_inducing,
            time_budget=time_budget,
            on_iteration=reports.on_iteration,
            on_stage=reports.on_stage,
            **given,
        )
        shards = _shards(X, y, map, options)
        sizes = None if shards is not None else _minibatches(X, options.likelihood, minibatches)
        options.check_combination(is_in_parts=sizes is not None, is_sharded=shards is not None)
        if shards is not None:
            with limit_threads(math.inf):
                result = fit_over_shards(shards, options)
        elif sizes is None:
            rows = read_rows(X, y, options.likelihood)
            with limit_threads(len(rows.targets) * options.usual_inducing**2):
                result = _fit_at_once(rows, options)
        else:
            source = read_source(X, y, options.likelihood, options=sizes, generator=options.generator)
            with limit_threads(sizes.batch_size * options.usual_inducing**2):
                result = _fit_in_parts(source, options, sizes=sizes)
    result = result if bounded is None else bounded.in_units(result)
    for message in result.info.warnings:
        warnings.warn(message, StreamGPWarning, stacklevel=2)
    return replace(result, info=replace(result.info, seconds=time.perf_counter() - options.began))


def _minibatches(X: Any, likelihood: AbstractLikelihood | None, asked: Minibatches | None) -> Minibatches | None:
    """Decide whether to visit the data in parts, and with which sizes."""
    if asked is not None and not isinstance(asked, Minibatches):
        raise ArgumentTypeError(
            f"minibatches must be a streamgp.training.Minibatches, but is a {type(asked).__name__}."
        )
    if isinstance(X, Evidence):
        if asked is not None:
            raise UnsupportedError(
                "Rows of evidence are fitted at once, and not in minibatches. Leave minibatches out."
            )
        return None
    is_array = isinstance(X, Tensor | np.ndarray)
    if asked is None and is_array and (X.ndim == 0 or len(X) <= _MOST_ROWS_AT_ONCE or has_constants(likelihood)):
        return None
    if has_constants(likelihood):
        raise UnsupportedError(
            f"The {type(likelihood).__name__} likelihood has constants for each observation, which minibatches cannot "
            "take apart. Pass all rows at once, without minibatches."
        )
    return asked or Minibatches()


def _shards(X: Any, y: Any, map: Any, options: Options) -> AbstractShards | None:
    """The shards of a user, if that is what was given."""
    if map is None and not isinstance(X, AbstractShards):
        if options.inducing == "distributed_kmeans":
            raise OptionError(
                "inducing='distributed_kmeans' is for rows that lie in shards, with map. Pass inducing='kmeans'."
            )
        return None
    if y is not None or not isinstance(X, AbstractShards | Iterable) or isinstance(X, Tensor | np.ndarray | str):
        raise ArgumentTypeError(
            "With map, X must be an iterable of shards, pairs (X, y) or functions that load one, and y is left out, "
            f"but X is a {type(X).__name__} and y a {type(y).__name__}."
        )
    if not isinstance(X, AbstractShards) and not callable(map):
        raise ArgumentTypeError(f"map must be a function such as the built-in map, but is a {type(map).__name__}.")
    is_plain = options.objective == "elbo" and (options.beta == 1.0 or options.is_gaussian)
    if options.carried is not None or not is_plain or has_constants(options.likelihood):
        raise UnsupportedError(
            "Shards are fitted by the bound of all observations, without a carried belief, objective='pll', a beta of "
            "observations that are not Gaussian, or constants of the likelihood for each observation. Leave these out."
        )
    return X if isinstance(X, AbstractShards) else MappedShards(list(X), map)


def _fit_at_once(rows: CheckedRows, options: Options) -> FitResult:
    if isinstance(rows.inputs, Evidence) and rows.inputs.is_rate:
        return _fit_rates(rows, rows.inputs, options)
    task, first = prepare(rows, options)
    dtype = rows.inputs.dtype
    trained, process = best_start(first, task, dtype=dtype)
    return make_result(trained, process, task, dtype)


def _fit_rates(rows: CheckedRows, rates: Evidence, options: Options) -> FitResult:
    """Fit to averages of responses: to those of latent values first, then to rows that are linear around the belief."""
    if options.is_gaussian or options.carried is not None or not rates.num_groups:
        raise UnsupportedError(
            "Averages of rates are fitted through a likelihood such as Poisson(population) or Binomial(tested), and "
            "without a carried belief. Pass likelihood=..., or average latent values with rates=False."
        )
    result = _fit_at_once(rows._replace(inputs=replace(rates, is_rate=False)), options)
    for _ in range(_RATE_ROUNDS):
        inside = (
            rates if result.scaling is None else rates.rescaled(result.scaling.input_shift, result.scaling.input_scale)
        )
        gp = SparseGP.from_prior(result.gp.kernel, result.gp.inducing_points, mean=result.gp.mean)
        linear = gp.linear_rates(inside, rows.targets, likelihood=result.likelihood)
        again = rows._replace(inputs=replace(rates, weights=linear.weights, offsets=linear.offsets, is_rate=False))
        most = options.max_iterations or _RATE_ITERATIONS
        result = _fit_at_once(again, replace(options, start=result, kernel=None, mean=None, max_iterations=most))
    return result


def _fit_in_parts(source: AbstractSource, options: Options, *, sizes: Minibatches) -> FitResult:
    """Find a start on a sample, then train on everything."""
    task, first = prepare(source.sample, options)
    dtype = source.sample.inputs.dtype
    sampled = replace(task, options=replace(options, objective="elbo", beta=1.0))
    trained, _ = best_start(first, sampled, dtype=dtype)
    task.log.history.clear()  # of another objective, that of the sample
    trained, process = train_in_minibatches(trained.setting, source, task, sizes=sizes)
    return make_result(trained, process, task, dtype)
