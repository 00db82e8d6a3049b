"""Fits to data that lies in shards: of one target, or of classes, each against all others."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import torch
from gpytorch.kernels import Kernel

from streamgp.errors import StreamGPError, ValueRangeError
from streamgp.likelihoods import Bernoulli
from streamgp.tables.labels import check_kinds, read_labels
from streamgp.threads import limit_threads
from streamgp.training.arguments import Options, progress_bar
from streamgp.training.full_batch import Task
from streamgp.training.inducing import kernel_units, kmeans_points
from streamgp.training.parameters import Hyperparameters
from streamgp.training.result import FitResult
from streamgp.training.search import best_start, make_result, rounded_points
from streamgp.training.sharding import AbstractShards, evaluate_over_shards, kmeans_over_shards, optimize_over_shards
from streamgp.training.sharding.shards import row_moments, sample_of
from streamgp.training.starting import prepare

__all__ = ["classes_of", "fit_classes", "fit_over_shards"]

# Rows of all shards on which a start is found, and for each inducing point.
_ROWS_OF_SAMPLE, _ROWS_OF_POINT = 4096, 20


def fit_over_shards(shards: AbstractShards, options: Options) -> FitResult:
    """Find a start on a sample, then train on everything where it is."""
    (result,) = _fit_together([shards], options)
    return result


def _fit_together(questions: Sequence[AbstractShards], options: Options) -> tuple[FitResult, ...]:
    """Fit targets of the same inputs with hyperparameters and inducing points in common.

    Args:
        questions: The same shards with one target each; a start is found for the first.
        options: The arguments.
    """
    likelihood, first = options.likelihood, questions[0]
    moments = row_moments(first, likelihood)
    num_rows = max(_ROWS_OF_SAMPLE, _ROWS_OF_POINT * options.usual_inducing)
    rows = sample_of(first, moments, num_rows, likelihood=likelihood, generator=options.generator)
    task, setting = prepare(rows, options, moments=moments)
    dtype = moments.dtype
    if not options.is_warm:
        trained, _ = best_start(setting, task, dtype=dtype)
        task.log.history.clear()  # of another objective, that of the sample
        setting = trained.setting
        if options.inducing == "distributed_kmeans":
            setting = _clustered(setting, first, task)
    if options.on_stage is not None:
        options.on_stage(options.most_iterations)
    setting = optimize_over_shards(setting, questions, task, num_data=moments.num_data)
    setting = rounded_points(setting, dtype)
    ends = [evaluate_over_shards(setting, each, task) for each in questions]
    return tuple(make_result(trained, process, task, dtype) for trained, process in ends)


def _clustered(setting: Hyperparameters, shards: AbstractShards, task: Task) -> Hyperparameters:
    """Take centers of clusters of all inputs as inducing points, in the units of the kernel at hand."""
    Z, sample = setting.inducing_points, task.data.candidates
    start = kmeans_points(setting.kernel, sample, len(Z), generator=task.options.generator)
    units = kernel_units(setting.kernel, like=sample)
    found = kmeans_over_shards(shards, start, units=units, likelihood=task.options.likelihood, scaling=task.scaling)
    return replace(setting, inducing_points=found.centers)


@limit_threads(math.inf)
def fit_classes(
    shards: AbstractShards,
    classes: Sequence[Any],
    *,
    link: str = "probit",
    kernel: Kernel | None = None,
    num_inducing: int | str = 100,
    inducing: str = "kmeans",
    max_iterations: int | None = None,
    generator: torch.Generator | None = None,
    progress: bool = False,
    callback: Callable[[float], None] | None = None,
) -> tuple[FitResult, ...]:
    """Fit probabilities of classes over shards, with one kernel and one set of inducing points for all of them.

    Two classes are one question, whether a row is of the second; of more, each is one against all others. The sum of
    their bounds is what is maximized, so that the kernel suits all of them.

    Args:
        shards: Pairs (X, y) with labels as targets.
        classes: All labels there are.
        link: As of `streamgp.likelihoods.Bernoulli`.
        kernel: As for `streamgp.fit`, as are the options that follow.
        num_inducing: Number of inducing points.
        inducing: How they are chosen first.
        max_iterations: Most iterations of L-BFGS.
        generator: Source of randomness.
        progress: Show a progress bar.
        callback: Called with the objective after each step.

    Returns:
        A result for each question, inputs standardized.
    """
    began = time.perf_counter()
    if len(classes) < 2:
        raise ValueRangeError(f"There must be two classes or more, but all rows are {list(classes)!r}.")
    questions = [shards.mapped(Against(label)) for label in (classes[1:] if len(classes) == 2 else classes)]
    with progress_bar(is_shown=progress, callback=callback) as reports:
        given: dict[str, Any] = {} if generator is None else {"generator": generator}
        options = Options(
            likelihood=Bernoulli(link),
            kernel=kernel,
            standardize="inputs",
            num_inducing=num_inducing,
            inducing=inducing,
            max_iterations=max_iterations,
            on_iteration=reports.on_iteration,
            on_stage=reports.on_stage,
            **given,
        )
        order = _most_even_first(shards, classes) if len(questions) > 1 else [0]
        results = _fit_together([questions[index] for index in order], options)
    seconds = time.perf_counter() - began
    placed = sorted(zip(order, results, strict=True), key=lambda pair: pair[0])
    return tuple(replace(result, info=replace(result.info, seconds=seconds)) for _, result in placed)


def classes_of(shards: AbstractShards) -> tuple[Any, ...]:
    """The labels of all rows, sorted, as Python's own numbers, texts and dates."""
    parts = shards.ask(_labels)
    check_kinds([label for part in parts for label in part.tolist()])
    return tuple(np.unique(np.concatenate(parts)).tolist())


def _labels(index: int, shard: Any, kept: Any) -> np.ndarray:
    try:
        return np.unique(read_labels(shard[1]))
    except StreamGPError as error:
        raise type(error)(f"Shard {index}: {error}") from error


def _most_even_first(shards: AbstractShards, classes: Sequence[Any]) -> list[int]:
    """Places of the classes, that with a share nearest to one half first."""
    counts = np.sum(shards.ask(_Count(tuple(classes))), axis=0)
    return np.argsort(np.abs(counts / counts.sum() - 0.5), kind="stable").tolist()


@final
@dataclass(frozen=True)
class _Count:
    classes: tuple[Any, ...]

    def __call__(self, index: int, shard: Any, kept: Any) -> np.ndarray:
        y = read_labels(shard[1])
        return np.array([int((y == label).sum()) for label in self.classes])


@final
@dataclass(frozen=True)
class Against:
    """A pair (X, y) with the question whether rows are of a class as its target.

    Attributes:
        label: The class.
    """

    label: Any

    def __call__(self, shard: Any) -> Any:
        """The pair with other targets; what is not a pair is left for others to refuse."""
        if not isinstance(shard, tuple | list) or len(shard) != 2:
            return shard
        return shard[0], (read_labels(shard[1]) == self.label).astype(np.float64)
