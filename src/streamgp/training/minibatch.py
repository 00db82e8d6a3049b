"""Training in minibatches: natural gradients for the belief, Adam for hyperparameters and inducing points."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.errors import ArgumentTypeError, NumericalError, OptionError, ShapeError, ValueRangeError
from streamgp.gp import SparseProcess
from streamgp.likelihoods import AbstractLikelihood
from streamgp.linalg import apply, cholesky
from streamgp.training.arguments import CheckedRows, Minibatches, read_rows
from streamgp.training.collapsed import NaturalBelief, collapse, sum_batches
from streamgp.training.features import Features, Observed, observed_features
from streamgp.training.full_batch import Task, Trained
from streamgp.training.parameters import Hyperparameters
from streamgp.training.priors import Layout, hyper_prior
from streamgp.training.result import optimal_process, prior_process
from streamgp.training.scaling import to_observed
from streamgp.training.uncollapsed import belief_of, divergence, latent_moments, pack_belief

__all__ = ["AbstractSource", "natural_step", "read_source", "train_in_minibatches"]
# Rows that are read together from a NumPy array, which may lie on a disk; a batch is put together from several blocks.
_ROWS_OF_BLOCK = 64


class AbstractSource(ABC):
    """Observations that can be visited in parts.

    Attributes:
        num_data: Number of all observations.
        sample: Some of them, on which a start is found.
        is_repeatable: Whether there can be more than one pass.
    """

    num_data: int
    sample: CheckedRows
    is_repeatable: bool

    @abstractmethod
    def visit(self, generator: torch.Generator) -> Iterator[CheckedRows]:
        """Pass over all observations once, in random order where that is possible."""


@final
@dataclass(frozen=True, eq=False)
class ArraySource(AbstractSource):
    """Tensors or NumPy arrays; only the rows of one batch are read at a time."""

    inputs: Any
    targets: Any
    likelihood: AbstractLikelihood | None
    batch_size: int
    rows_of_block: int
    sample: CheckedRows
    num_data: int
    is_repeatable: bool = True

    def visit(self, generator: torch.Generator) -> Iterator[CheckedRows]:
        for indices in _shuffled(self.num_data, self.rows_of_block, self.batch_size, generator=generator):
            yield _take(self.inputs, self.targets, indices, likelihood=self.likelihood)


@final
@dataclass(frozen=True, eq=False)
class IterableSource(AbstractSource):
    """Batches that something else provides."""

    make: Callable[[], Iterable[Any]]
    likelihood: AbstractLikelihood | None
    sample: CheckedRows
    num_data: int
    is_repeatable: bool

    def visit(self, generator: torch.Generator) -> Iterator[CheckedRows]:
        yield from (_read_batch(batch, self.likelihood) for batch in self.make())


def read_source(
    X: Any,
    y: Any,
    likelihood: AbstractLikelihood | None,
    *,
    options: Minibatches,
    generator: torch.Generator,
) -> AbstractSource:
    """Prepare data for visits.

    Args:
        X: Tensor or array of inputs, with targets `y`; or an iterable of batches `(X, y)`, or a function that
            returns one.
        y: Targets; None for iterables.
        likelihood: Of the observations.
        options: Sizes.
        generator: Draws the sample.
    """
    if isinstance(X, Tensor | np.ndarray):
        if not isinstance(y, Tensor | np.ndarray) or len(X) != len(y):
            raise ShapeError(
                f"y must have one value for each of the {len(X)} rows of X, but is "
                f"{f'of length {len(y)}' if isinstance(y, Tensor | np.ndarray) else type(y).__name__}."
            )
        rows_of_block = 1 if isinstance(X, Tensor) else _ROWS_OF_BLOCK
        first = next(_shuffled(len(X), rows_of_block, options.num_warm_rows, generator=generator))
        sample = _take(X, y, first, likelihood=likelihood)
        return ArraySource(X, y, likelihood, options.batch_size, rows_of_block, sample, len(X))
    if y is not None or not (callable(X) or isinstance(X, Iterable)):
        raise ArgumentTypeError(
            f"X must be a tensor or NumPy array with targets y, or, without y, an iterable of batches (X, y) or a "
            f"function that returns one, but is a {type(X).__name__}."
        )
    if not callable(X) and iter(X) is X:
        return _once(X, likelihood, options)
    make: Callable[[], Iterable[Any]] = X if callable(X) else lambda: X
    sample, num_data = _survey(make(), likelihood, options, generator=generator)
    return IterableSource(make, likelihood, sample, num_data, is_repeatable=True)


def _once(batches: Iterator[Any], likelihood: AbstractLikelihood | None, options: Minibatches) -> IterableSource:
    """An iterator that can be read once: its first batches are the sample, and are visited again first."""
    if options.num_data is None:
        raise OptionError(
            "X is an iterator that can be read only once, so the number of its rows is not known before the end. Pass "
            "minibatches=Minibatches(num_data=...), or a function that returns a new iterator for each pass."
        )
    first: list[CheckedRows] = []
    while sum(len(rows.targets) for rows in first) < options.num_warm_rows:
        batch = next(batches, None)
        if batch is None:
            break
        first.append(_read_batch(batch, likelihood))
    sample = _join(first)
    return IterableSource(lambda: chain(first, batches), likelihood, sample, options.num_data, is_repeatable=False)


def _survey(
    batches: Iterable[Any], likelihood: AbstractLikelihood | None, options: Minibatches, *, generator: torch.Generator
) -> tuple[CheckedRows, int]:
    """Count rows, and keep a random sample: of rows with random keys, those with the smallest ones."""
    kept, keys, num_data = None, torch.zeros(0), 0
    for batch in batches:
        rows = _read_batch(batch, likelihood)
        num_data += len(rows.targets)
        keys = torch.cat([keys, torch.rand(len(rows.targets), generator=generator)])
        kept = rows if kept is None else _join([kept, rows])
        if len(keys) > options.num_warm_rows:
            keys, order = keys.topk(options.num_warm_rows, largest=False)
            kept = CheckedRows(kept.inputs[order], kept.targets[order])
    if kept is None:
        raise ShapeError("X holds no batches. Pass at least one batch (X, y).")
    return kept, options.num_data or num_data


def _shuffled(n: int, rows_of_block: int, batch_size: int, *, generator: torch.Generator) -> Iterator[Tensor]:
    """Indices of batches that are put together from blocks in random order."""
    num_blocks = -(-n // rows_of_block)
    order = torch.randperm(num_blocks, generator=generator)
    for blocks in order.split(max(batch_size // rows_of_block, 1)):
        rows = (rows_of_block * blocks.unsqueeze(-1) + torch.arange(rows_of_block)).flatten()
        yield rows[rows < n]


def _take(X: Any, y: Any, indices: Tensor, *, likelihood: AbstractLikelihood | None) -> CheckedRows:
    if isinstance(X, Tensor):
        chosen = indices.to(X.device)
        return read_rows(X[chosen], y[chosen] if isinstance(y, Tensor) else y[indices.numpy()], likelihood)
    index = indices.numpy()
    return read_rows(np.ascontiguousarray(X[index]), y[index], likelihood)


def _read_batch(batch: Any, likelihood: AbstractLikelihood | None) -> CheckedRows:
    if isinstance(batch, CheckedRows):
        return batch
    if not isinstance(batch, tuple | list) or len(batch) != 2:
        raise ArgumentTypeError(f"Each batch must be a pair (X, y), but one is a {type(batch).__name__}.")
    return read_rows(batch[0], batch[1], likelihood)


def _join(parts: list[CheckedRows]) -> CheckedRows:
    if not parts:
        raise ShapeError("X holds no batches. Pass at least one batch (X, y).")
    return CheckedRows(torch.cat([rows.inputs for rows in parts]), torch.cat([rows.targets for rows in parts]))


# The rates at the end of training, relative to those at its start.
_LAST_RATE = 0.1
# Steps for which there are enough passes, if their number is not given.
_NUM_STEPS = 1000
# Weight of the newest batch in the smoothed objective.
_SMOOTHING = 0.05


def natural_step(
    belief: NaturalBelief,
    features: Features,
    likelihood: AbstractLikelihood,
    targets: Float[Tensor, " n"],
    *,
    weight: float,
    rate: float,
) -> NaturalBelief:
    r"""Take a natural-gradient step on a batch.

    With $g$ and $h$ the expected first and second derivatives of the log density, $\tau = \max(-h, 0)$ and weight $w$,

    $$
    \bar S^{-1} \leftarrow (1 - \rho) \bar S^{-1} + \rho (I + w \phi \operatorname{diag}(\tau) \phi^\top), \qquad
    \bar S^{-1} \bar m \leftarrow (1 - \rho) \bar S^{-1} \bar m + \rho w \phi (g + \tau \phi^\top \bar m) .
    $$

    Args:
        belief: Before the step.
        features: Of the batch.
        likelihood: Of the observations.
        targets: Of the batch.
        weight: $w$, all observations over those of the batch, over the temperature.
        rate: $\rho$.

    References:
        Khan, Lin (2017), Conjugate-computation variational inference.
    """
    m, R, _ = belief.moments()
    phi = features.phi
    mean, variance = latent_moments(features, m, R)
    first, second = likelihood.expected_derivatives(mean, variance, targets)
    tau = (-second).clamp_min(0.0)
    eye = torch.eye(len(phi), dtype=phi.dtype, device=phi.device)
    precision = torch.lerp(belief.precision, eye + weight * (phi * tau) @ phi.mT, rate)
    pull = torch.lerp(belief.pull, weight * apply(phi, first + tau * (mean - features.mean)), rate)
    return NaturalBelief(precision, pull)


def train_in_minibatches(
    setting: Hyperparameters, source: AbstractSource, task: Task, *, sizes: Minibatches
) -> tuple[Trained, SparseProcess]:
    """Train from a start that was found on the sample of the source.

    Memory is that of one batch, O(b m + m²), whatever the number of observations. The belief follows natural gradients
    for `"elbo"`, and Adam as all else for `"pll"`, whose terms are not concave.
    """
    sample, options, log = task.data, task.options, task.log
    run = _StochasticTraining(setting, task, num_data=source.num_data, sizes=sizes)
    num_epochs = _num_epochs(source, sizes)
    for epoch in range(num_epochs):
        seen = 0
        for rows in source.visit(options.generator):
            run.step(
                to_observed(rows.inputs, rows.targets, task.scaling), (epoch + seen / source.num_data) / num_epochs
            )
            seen += len(rows.targets)
    if math.isnan(run.bound):
        raise OptionError(
            "A pass over X had no batches, though an earlier one had. A function must return a new iterator each time."
        )
    setting = run.setting()
    log.reason, log.is_converged = f"passes over all {source.num_data} observations done: {num_epochs}", True
    with torch.no_grad():
        if source.is_repeatable and options.objective == "elbo":
            batches = (to_observed(rows.inputs, rows.targets, task.scaling) for rows in source.visit(options.generator))
            if setting.likelihood.is_gaussian:
                sums = sum_batches(setting, batches, beta=options.beta)
                optimum = collapse(sums, options.beta)
                run.belief, run.bound = NaturalBelief(optimum.precision, sums.pull), float(optimum.bound)
                run.slack = options.beta * float(sums.slack) / sums.num_data
            else:
                for data in batches:
                    run.settle(setting, data)
        process = prior_process(setting, sample.jitter)
        m, R = belief_of(setting) if options.objective == "pll" else run.belief.moments()[:2]
        process = process.with_belief(m, R.contiguous())
        log_prior = float(hyper_prior(setting, sample, options.priors).log_density(setting))
    return Trained(setting, run.bound, log_prior, run.slack), process


class _StochasticTraining:
    """The state of stochastic training; bound and slack are smoothed over batches."""

    def __init__(self, setting: Hyperparameters, task: Task, *, num_data: int, sizes: Minibatches) -> None:
        sample, options = task.data, task.options
        self.num_data, self.sizes, self.options, self.log = num_data, sizes, options, task.log
        process = optimal_process(setting, sample)
        self.belief = _scaled_belief(process, num_data / sample.num_data)
        belief: dict[str, Tensor] = {}
        if options.objective == "pll":
            m, R, _ = self.belief.moments()
            belief = pack_belief(m, R)
        layout, self.prior = Layout.of(
            replace(setting, extra={**setting.extra, **belief}),
            sample,
            options.priors,
            learn_inducing=options.learn_inducing and bool(len(setting.inducing_points)),
            extra=dict.fromkeys(belief, (-math.inf, math.inf)),
        )
        self.space = layout.space()
        self.x = self.space.start.clone().requires_grad_(True)
        self.optimizer = torch.optim.Adam([self.x], lr=sizes.learning_rate)
        self.bound = self.slack = math.nan
        self.num_settled = 0

    def setting(self) -> Hyperparameters:
        """The current setting."""
        return self.space.setting(self.x)

    def step(self, data: Observed, progress: float) -> None:
        """Move belief and hyperparameters along the gradients of a batch; take both back where that fails."""
        decay = _LAST_RATE + (1.0 - _LAST_RATE) * 0.5 * (1.0 + math.cos(math.pi * min(progress, 1.0)))
        self.optimizer.param_groups[0]["lr"] = decay * self.sizes.learning_rate
        before = self.x.detach().clone(), self.belief
        self.log.num_evaluations += 1
        try:
            self._move(data, decay * self.sizes.natural_rate)
        except (NumericalError, ValueRangeError) as error:
            self.log.num_rejected += 1
            if self.log.num_rejected > 10 and 2 * self.log.num_rejected > self.log.num_evaluations:
                raise NumericalError(
                    f"{self.log.num_rejected} of {self.log.num_evaluations} steps failed, the last with: {error} "
                    "Lower learning_rate of Minibatches, or pass standardize=True."
                ) from error
            with torch.no_grad():
                self.x.copy_(before[0])
            self.belief = before[1]

    def settle(self, setting: Hyperparameters, data: Observed) -> None:
        """Move the belief alone, by steps that get smaller, so that it becomes an average over all batches."""
        self.num_settled += 1
        bound = self._bound(setting, data, self.sizes.natural_rate / (1.0 + self.sizes.natural_rate * self.num_settled))
        self.bound += _SMOOTHING * (bound.item() - self.bound)

    def _move(self, data: Observed, natural_rate: float) -> None:
        def objective(setting: Hyperparameters) -> tuple[Tensor, Tensor]:
            return self._bound(setting, data, natural_rate), self.prior.log_density(setting)

        bound, log_prior = self.space.evaluate(self.x, objective)
        (gradient,) = torch.autograd.grad(bound + log_prior, self.x)
        if not bool(torch.isfinite(bound) & torch.isfinite(gradient).all()):
            raise NumericalError("The objective is NaN or infinite.")
        self.x.grad = -gradient / self.num_data
        self.optimizer.step()
        with torch.no_grad():
            self.x.clamp_(*self.space.bounds)
        self.bound = _smoothed(self.bound, bound.item())
        self.log.history.append(self.bound + log_prior.item())
        if self.options.on_iteration is not None:
            self.options.on_iteration(self.log.history[-1])

    def _bound(self, setting: Hyperparameters, data: Observed, natural_rate: float) -> Tensor:
        """Estimate the bound after a natural-gradient step of the belief."""
        features, likelihood, y = observed_features(setting, data), setting.likelihood, data.targets
        weight, options = self.num_data / data.num_data, self.options
        if options.objective == "pll":
            m, R = belief_of(setting)
            kl = divergence(m, R)
        else:
            with torch.no_grad():
                plain = features.detach()
                self.belief = natural_step(
                    self.belief, plain, likelihood, y, weight=weight / options.beta, rate=natural_rate
                )
                m, R, kl = self.belief.moments()
        mean, variance = latent_moments(features, m, R)
        with torch.no_grad():
            _, curvature = likelihood.expected_derivatives(mean, variance, y)
            self.slack = _smoothed(self.slack, (features.slack * (-curvature).clamp_min(0.0)).mean().item())
        term = likelihood.log_predictive_density if options.objective == "pll" else likelihood.expected_log_density
        return weight * term(mean, variance, y).sum() - options.beta * kl


def _smoothed(old: float, new: float) -> float:
    return new if math.isnan(old) else old + _SMOOTHING * (new - old)


def _num_epochs(source: AbstractSource, sizes: Minibatches) -> int:
    if not source.is_repeatable:
        return 1
    return sizes.num_epochs or math.ceil(_NUM_STEPS * sizes.batch_size / source.num_data)


def _scaled_belief(process: SparseProcess, factor: float) -> NaturalBelief:
    """The belief that as many times more observations of the same kind would give."""
    R = process.whitened_root.double()
    L, _ = cholesky(R @ R.mT, name="the covariance of the belief")
    precision = torch.cholesky_inverse(L)
    eye = torch.eye(len(L), dtype=L.dtype, device=L.device)
    return NaturalBelief(eye + factor * (precision - eye), factor * apply(precision, process.whitened_mean.double()))
