"""Arguments of a fit, read and checked: options, observations, likelihood and modules."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, final

import torch
from gpytorch.kernels import Kernel
from gpytorch.means import Mean
from torch import Tensor

from streamgp.checks import (
    check_choice,
    check_finite,
    check_float,
    check_generator,
    check_inputs,
    check_positive,
    check_share,
    check_targets,
    keep_count,
    to_tensor,
)
from streamgp.conditioning import SparseGP
from streamgp.conditioning.observation import check_rows
from streamgp.errors import ArgumentTypeError, DTypeError, OptionError, ShapeError, UnsupportedError, ValueRangeError
from streamgp.evidence import Evidence
from streamgp.gp.named_kernels import check_kernel_name
from streamgp.likelihoods import AbstractLikelihood, registry
from streamgp.training.priors import PRIORS
from streamgp.training.result import FitResult

__all__ = [
    "CheckedRows",
    "Minibatches",
    "Options",
    "check_modules",
    "check_points",
    "check_squares",
    "has_constants",
    "progress_bar",
    "read_rows",
]

_COLD_ITERATIONS, _WARM_ITERATIONS = 200, 10
_USUAL_AUTO = 128


@final
@dataclass(frozen=True)
class Minibatches:
    """Sizes and rates of training on data that is visited in parts.

    Attributes:
        batch_size: Rows of each step; an iterable of batches brings its own.
        num_epochs: Passes over the data; enough for 1000 steps by default.
        learning_rate: Of Adam, for hyperparameters and inducing points; falls to a tenth along a cosine.
        natural_rate: Share of the way that the belief goes in each step; 1 would forget earlier batches. Falls
            likewise.
        num_warm_rows: Rows of the subset on which a start is found first.
        num_data: Number of all rows, where an iterable does not tell.
    """

    batch_size: int = 1024
    num_epochs: int | None = None
    learning_rate: float = 0.01
    natural_rate: float = 0.2
    num_warm_rows: int = 4096
    num_data: int | None = None

    def __post_init__(self) -> None:
        """Check the options."""
        for name in ("batch_size", "num_warm_rows", "num_epochs", "num_data"):
            if getattr(self, name) is not None:
                keep_count(self, name)
        check_positive(self.learning_rate, "learning_rate")
        check_share(self.natural_rate, "natural_rate")


@final
@dataclass(frozen=True, eq=False)
class Options:
    """The arguments of `fit` but for the observations, read and checked; described there."""

    likelihood: Any = None  # a name until it is read, and then an object
    kernel: Kernel | str | None = None
    mean: Mean | None = None
    num_inducing: int | str = "auto"
    inducing: str | Tensor = "kmeans"
    learn_inducing: bool = True
    objective: str = "elbo"
    beta: float = 1.0
    priors: str | None = "auto"
    standardize: bool | str | None = False
    start: FitResult | SparseGP | None = None
    carried: SparseGP | None = None
    num_starts: int = 1
    max_iterations: int | None = None
    tolerance: float = 1e-4
    slack_tolerance: float = 0.01
    max_inducing: int = 1024
    time_budget: float = 10.0
    generator: torch.Generator = field(default_factory=lambda: torch.Generator().manual_seed(0))
    on_iteration: Callable[[float], None] | None = None
    on_stage: Callable[[int], None] | None = None
    began: float = field(default_factory=time.perf_counter)
    began_to_compute: float = field(default_factory=time.thread_time)

    def __post_init__(self) -> None:
        """Check the options."""
        check_modules(self.kernel, self.mean, self.start)
        check_choice(self.objective, ("elbo", "pll"), "objective")
        likelihood = self.likelihood
        if likelihood is None and isinstance(self.start, FitResult):
            likelihood = self.start.likelihood
        self._set("likelihood", None if likelihood is None else registry.read_likelihood(likelihood))
        if self.num_inducing != "auto":
            if isinstance(self.num_inducing, str):
                raise OptionError(f"num_inducing must be a whole number or 'auto', but is {self.num_inducing!r}.")
            keep_count(self, "num_inducing")
        if isinstance(self.inducing, str):
            check_choice(self.inducing, ("pivoted", "kmeans", "distributed_kmeans", "features"), "inducing")
        elif not isinstance(self.inducing, Tensor):
            raise ArgumentTypeError(
                f"inducing must be 'pivoted', 'kmeans', 'features' or a tensor of points, but is a "
                f"{type(self.inducing).__name__}."
            )
        if self.priors == "auto":
            # Those of tables were chosen for fits that choose for themselves; others give what they have always given.
            self._set("priors", "tabular" if self.is_automatic else "dim_scaled")
        if self.priors is not None:
            check_choice(self.priors, PRIORS, "priors")
        for name in ("num_starts", "max_inducing", *(["max_iterations"] if self.max_iterations is not None else [])):
            keep_count(self, name)
        for name in ("beta", "tolerance", "slack_tolerance", "time_budget"):
            check_positive(getattr(self, name), name)
        if self.on_iteration is not None and not callable(self.on_iteration):
            raise ArgumentTypeError(
                f"callback must be a function of the objective, but is a {type(self.on_iteration).__name__}."
            )
        check_generator(self.generator)

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    @property
    def is_warm(self) -> bool:
        """Tell whether training starts from an earlier result."""
        return self.start is not None

    @property
    def is_kernel_open(self) -> bool:
        """Tell whether the kernel is the default one, so that others may take its place."""
        return self.kernel is None and self.start is None

    @property
    def is_gaussian(self) -> bool:
        """Tell whether the observations have Gaussian noise."""
        return self.likelihood is None or self.likelihood.is_gaussian

    @property
    def is_automatic(self) -> bool:
        """Tell whether the number of points, their start and the kernel are to be found."""
        return self.num_inducing == "auto" and not self.is_warm and self.inducing == "kmeans"

    @property
    def usual_inducing(self) -> int:
        """The number of inducing points, or what it often is where the data decides."""
        return self.num_inducing if isinstance(self.num_inducing, int) else _USUAL_AUTO

    @property
    def most_iterations(self) -> int:
        """Iterations of the last part of training: few for a warm start, which is near the end already."""
        return self.max_iterations or (_WARM_ITERATIONS if self.is_warm else _COLD_ITERATIONS)

    @property
    def deadline(self) -> float:
        """Time at which a fit that chooses for itself stops to learn, on the clock of `time.thread_time`.

        It is that of the processor, so that what else runs on a machine makes no difference.
        """
        return self.began_to_compute + self.time_budget

    def check_combination(self, *, is_in_parts: bool, is_sharded: bool) -> None:
        """Refuse combinations of arguments that have no meaning together."""
        is_plain = self.objective == "elbo" and self.beta == 1.0
        is_simple = is_plain and not (is_in_parts or is_sharded) and self.carried is None
        if self.likelihood is not None and self.likelihood.num_latents > 1 and not is_simple:
            raise UnsupportedError(
                f"A {type(self.likelihood).__name__} likelihood looks at several latent functions, which are fitted by "
                "the bound of all observations at once: at most 50 000 rows as one array, without minibatches, map, a "
                "carried belief, objective='pll' or a beta. Leave these out, or fit to fewer rows and absorb others."
            )
        if self.carried is None:
            return
        if not is_plain:
            raise UnsupportedError(
                f"A carried belief enters the bound, but objective={self.objective!r} with beta={self.beta:g} was "
                "asked for. Leave both at their defaults."
            )
        if is_in_parts:
            raise UnsupportedError(
                "A carried belief needs all rows at once, at most 50 000 of them as one array, and no minibatches. "
                "Pass fewer rows, and absorb the others."
            )
        is_scaled = isinstance(self.start, FitResult) and self.start.scaling is not None
        if self.standardize not in (False, None) and not is_scaled:
            raise UnsupportedError(
                f"A carried belief has units of its own, but standardize={self.standardize!r} would change those of X "
                "and y. Pass them in the units of the belief, or a start whose scaling these are."
            )


def check_modules(kernel: object, mean: object, start: object) -> None:
    """Check what a user gave to start with."""
    if isinstance(kernel, str):
        check_kernel_name(kernel)
        kernel = None
    for module, kind, name in ((kernel, Kernel, "kernel"), (mean, Mean, "mean")):
        if module is not None and not isinstance(module, kind):
            raise ArgumentTypeError(
                f"{name} must be one of gpytorch.{name}s, an object and not its class, but is "
                f"{f'the class {module.__name__}' if isinstance(module, type) else f'a {type(module).__name__}'}."
            )
    if start is not None and not isinstance(start, FitResult | SparseGP):
        raise ArgumentTypeError(
            f"start must be what fit returned or a SparseGP, but is a {type(start).__name__}. "
            "Give a starting kernel as kernel."
        )


class CheckedRows(NamedTuple):
    """Checked observations in the user's dtype.

    Attributes:
        inputs: `(n, d)`, pairs `(n, 2, d)`, or rows of evidence.
        targets: `(n,)`.
    """

    inputs: Any
    targets: Tensor


def read_rows(X: object, y: object, likelihood: AbstractLikelihood | None) -> CheckedRows:
    """Check inputs and targets; arrays, tables and lists are converted, and rows of evidence taken as they are."""
    if isinstance(X, Evidence):
        return _read_evidence(X, y, likelihood)
    X = check_float(to_tensor(X, "X", kinds="fiub"), "X")
    if y is None:
        raise DTypeError("y must have one value for each row of X, but is None. Pass the targets.")
    is_given = isinstance(y, Tensor)
    y = to_tensor(y, "y", kinds="fiub")
    if not is_given and y.dtype != X.dtype:
        y = y.to(X.dtype)  # numbers without a dtype of torch take that of the inputs
    is_paired = likelihood is not None and likelihood.num_inputs == 2
    num_axes = 3 if is_paired else 2
    if X.dim() != num_axes or 0 in X.shape or (is_paired and X.shape[-2] != 2):
        wanted = "(n, 2, d), one pair of inputs for each comparison" if is_paired else "(n, d), one row for each input"
        raise ShapeError(
            f"X must have shape {wanted}, with at least one observation, but has shape {tuple(X.shape)}. "
            f"{'A single column is X.reshape(-1, 1).' if X.dim() == 1 else 'fit trains one model on one data set.'}"
        )
    check_finite(X, "X")
    if likelihood is not None:
        checked = likelihood.check_targets(y)
        y = checked if isinstance(y, Tensor) and y.is_floating_point() else checked.to(dtype=X.dtype, device=X.device)
    y = check_float(y, "y")
    if y.dim() == 2 and len(y) == len(X):
        remedy = (
            "Drop a trailing output axis with y.squeeze(-1)."
            if y.shape[-1] == 1
            else ("Fit several outputs with outputs='lmc', 'icm' or 'independent'.")
        )
        raise ShapeError(
            f"y must have shape ({len(X)},), one value for each row of X, but has shape {tuple(y.shape)}. {remedy}"
        )
    y = check_targets(y, X[..., 0, :] if is_paired else X).reshape(len(X))
    if likelihood is not None:
        likelihood.check_rows(y.shape)
    check_squares(y, "y")
    return CheckedRows(X, y)


def _read_evidence(rows: Evidence, y: Any, likelihood: AbstractLikelihood | None) -> CheckedRows:
    if rows.dim() != 2 or not rows.num_rows:
        raise ShapeError(
            f"fit trains one model on one data set, but the evidence has shape {tuple(rows.shape)}. Make it of inputs "
            "without leading axes, with at least one row."
        )
    rows, targets, _, kept = check_rows(rows, y, None, like=rows.points, batch_shape=())
    targets = check_targets(targets.detach(), rows.stand_in).reshape(rows.num_rows)
    if likelihood is not None:
        if kept is not None and likelihood.has_row_constants:
            raise UnsupportedError(
                f"The {type(likelihood).__name__} likelihood has constants for each row, some of which are missing. "
                "Leave the missing rows out of the evidence and of the constants."
            )
        likelihood.check_targets(targets)
        likelihood.check_rows(targets.shape)
    check_squares(targets, "y")
    return CheckedRows(rows, targets)


def check_squares(y: Tensor, name: str) -> None:
    """Refuse targets whose variances would overflow."""
    largest, most = float(y.detach().abs().max()), math.sqrt(torch.finfo(y.dtype).max)
    if largest > most:
        raise ValueRangeError(
            f"{name} has values up to {largest:.3g}, whose squares overflow in "
            f"{str(y.dtype).removeprefix('torch.')}, and so would variances. Divide the targets by a constant, so that "
            f"all are below {most:.3g}."
        )


def check_points(points: Tensor, *, like: Tensor) -> None:
    """Check inducing points that the user gave against the inputs."""
    points = check_inputs(points, num_dims=like.shape[-1], like=like, name="inducing")
    if points.dim() != 2 or not len(points):
        raise ShapeError(
            f"inducing must have shape (m, {like.shape[-1]}), with at least one point, but has shape "
            f"{tuple(points.shape)}."
        )


def has_constants(likelihood: AbstractLikelihood | None) -> bool:
    """Tell whether a likelihood has numbers for each observation, so that these cannot be taken apart."""
    return likelihood is not None and any(isinstance(v, Tensor) and v.dim() for v in vars(likelihood).values())


class Reports(NamedTuple):
    """Functions that training calls on its way.

    Attributes:
        on_iteration: With the objective, after each step.
        on_stage: With the most steps that a stage of training takes, when it begins.
    """

    on_iteration: Callable[[float], None] | None = None
    on_stage: Callable[[int], None] | None = None


@contextmanager
def progress_bar(*, is_shown: bool, callback: Callable[[float], None] | None) -> Iterator[Reports]:
    """Give functions that move the bar, and call the user's function.

    Args:
        is_shown: Whether there is a bar.
        callback: The user's function.
    """
    if not is_shown:
        yield Reports(callback)
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (SpinnerColumn(), TextColumn("fit"), TextColumn("{task.completed} steps"), TimeElapsedColumn())
    left = TextColumn("at most"), TimeRemainingColumn(), TextColumn("left")
    with Progress(*columns, TextColumn("objective {task.fields[objective]}"), *left) as bar:
        task = bar.add_task("fit", total=None, objective="…")

        def report(objective: float) -> None:
            bar.update(task, advance=1, objective=f"{objective:.6g}")
            if callback is not None:
                callback(objective)

        def begin(num_steps: int) -> None:
            bar.reset(task, total=num_steps)

        yield Reports(report, begin)
