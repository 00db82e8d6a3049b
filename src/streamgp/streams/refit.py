"""Learning units, hyperparameters and inducing points from the latest rows, and the beliefs anew with them."""

import functools
import math
import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, final

import numpy as np
import torch
from gpytorch.kernels import Kernel, MaternKernel, ScaleKernel
from jaxtyping import Float

from streamgp.likelihoods import AbstractLikelihood
from streamgp.streams.buffer import Buffer, Units
from streamgp.streams.kernels import Stationary
from streamgp.streams.latent_fit import LatentRows, fit_latent, offsets_of
from streamgp.streams.marginal import Rows, fit_prior
from streamgp.streams.observing import Observing
from streamgp.streams.points import choose_points, slack_of, tolerance_of, whitening_of
from streamgp.streams.prior import VALUE_EXPERTS, Expert, Prior
from streamgp.streams.rows import learn_rows
from streamgp.streams.state import NUM_TAILS, Belief, Dynamics, empty_said, new_belief
from streamgp.training import fit

__all__ = ["BackgroundRefit", "Fitted", "Plan", "Refit", "Snapshot", "carry", "refit", "replay", "size_of_state"]

# With fewer rows hyperparameters are the default ones; larger starts with less, and is fooled less.
_FIRST_FIT = 10
# Variance of slopes before that; larger extrapolates the first rows.
_NO_SLOPE = 1e-9
# Rows that the marginal likelihood sees, half of them the latest; more know more, and take time in their cube.
_NUM_FIT_ROWS = 400
# Those of latent functions, whose sites are found again and again; for classes over the root of their number.
_NUM_LATENT_ROWS = 300
# Share of the budget of points that a refit may use, so that rows to come find room; larger leaves less.
_POINT_SHARE = 7 / 8
# Nats that points leave open in an average row before they are learned jointly; larger does so less often.
_POLISH_NATS = 0.05
_NUM_POLISH_ITERATIONS = 50
_MOST_POLISH_ROWS = 2000


class Plan(NamedTuple):
    """Settings of a stream; they do not change while the stream runs, but for classes that appear.

    Attributes:
        experts: Beliefs about how fast the stream forgets.
        most_points: Budget of inducing points.
        kernel: Number of the kernel's family, or a kernel of the user's own.
        likelihood: Likelihood before its parameters are learned; None for real targets with noise whose scale is.
        num_classes: Number of classes; zero for other targets.
        scales_targets: Whether targets are standardized.
        forgets: Whether anything is forgotten.
    """

    experts: tuple[Expert, ...] = VALUE_EXPERTS
    most_points: int = 256
    kernel: int | Kernel = 0
    likelihood: AbstractLikelihood | None = None
    num_classes: int = 0
    scales_targets: bool = True
    forgets: bool = True

    @property
    def num_questions(self) -> int:
        """Number of latent functions: one for each class if there are more than two."""
        return self.num_classes if self.num_classes > 2 else 1

    def default_prior(self, num_dims: int) -> Prior:
        """Return what is expected before there are rows to learn from."""
        return Prior.default(num_dims, self.kernel, has_sites=self.likelihood is not None)


class Fitted(NamedTuple):
    """Units, hyperparameters, likelihood and experts that belong together."""

    units: Units
    prior: Prior
    observing: Observing | None = None
    experts: tuple[Expert, ...] = VALUE_EXPERTS

    @property
    def num_questions(self) -> int:
        """Number of latent functions of each expert."""
        return 1 if self.observing is None else self.observing.num_questions

    def dynamics(self) -> Dynamics:
        """Return how the states of the filters move."""
        return self.prior.dynamics(self.experts, self.num_questions)

    def new_belief(
        self, points: Float[np.ndarray, "p d"], whitening: Float[np.ndarray, "p p"] | None = None, *, clock: int = 0
    ) -> Belief:
        """Return the prior at these points."""
        dynamics = self.dynamics()
        return new_belief(
            dynamics,
            points,
            whitening_of(points, dynamics.kernel) if whitening is None else whitening,
            noise_variance=self.prior.noise_variance,
            clock=clock,
            num_questions=self.num_questions,
            num_tails=NUM_TAILS if self.observing is None else 1,
        )


class Refit(NamedTuple):
    """Result of a refit.

    Attributes:
        fitted: Units and hyperparameters.
        belief: What the filters know after the rows of the buffer; weights are those that the replay earned.
        gain: Nats a row by which the marginal likelihood rose; infinite without an earlier one.
        seconds: Seconds that it took.
    """

    fitted: Fitted
    belief: Belief
    gain: float
    seconds: float


class Snapshot(NamedTuple):
    """Belief at some row, with the units and hyperparameters of then."""

    fitted: Fitted
    belief: Belief


def refit(
    buffer: Buffer,
    before: Fitted | None,
    plan: Plan,
    *,
    is_timed: bool = True,
    start: Snapshot | None = None,
) -> Refit:
    """Learn units, hyperparameters, points and beliefs from a buffer, which is standardized anew.

    Args:
        buffer: Rows.
        before: What was learned before.
        plan: What the stream is learned with.
        is_timed: Whether time means something; otherwise nothing is forgotten.
        start: What was known before the first row of the buffer; None for nothing.
    """
    began = time.perf_counter()
    n, is_timed = buffer.num_rows, is_timed and plan.forgets
    units = Units.of(
        buffer.inputs[:n],
        buffer.targets[:n],
        None if before is None else before.units,
        scales_targets=plan.scales_targets,
        bends=isinstance(plan.kernel, int),
    )
    buffer.rescale(units)
    d = buffer.inputs.shape[1]
    # A line through so few rows would be drawn out anywhere.
    prior, gain = replace(plan.default_prior(d), slope_variance=_NO_SLOPE), math.inf
    observing = _begun(buffer, plan, before)
    if n >= _FIRST_FIT:
        prior, observing, gain = _learn_prior(buffer, units, before, plan, observing, is_timed=is_timed)
    if not is_timed:
        prior = prior.still()
    X = buffer.scaled_inputs[:n]
    most = max(int(plan.most_points * _POINT_SHARE), 1)
    candidates = X
    if start is not None:
        old = start.belief.points[: start.belief.num_points[0]]
        candidates = np.vstack([X, units.inputs(start.fitted.units.original_inputs(old))])
    prior, points = _learn_points(prior, X, buffer.scaled_targets[:n], candidates, most)
    fitted = Fitted(units, prior, observing, plan.experts)
    belief = replay(buffer, fitted, points, start)
    return Refit(fitted, belief, gain, time.perf_counter() - began)


def _begun(buffer: Buffer, plan: Plan, before: Fitted | None) -> Observing | None:
    """Return the likelihood as learned before, and what latent values are expected to be by the rows of the buffer."""
    if plan.likelihood is None:
        return None
    n = buffer.num_rows
    known = None if before is None else before.observing
    likelihood = plan.likelihood if known is None else known.likelihood
    questions = Observing(likelihood, np.zeros(plan.num_questions))
    answers = questions.answers(buffer.scaled_targets[:n])
    return replace(questions, offsets=offsets_of(likelihood, answers, buffer.counts[:n]))


@final
class BackgroundRefit:
    """A refit in a thread of its own; after a fork, which takes no threads along, it runs where it is waited for."""

    def __init__(self, run: Callable[[], Refit], num_rows: int) -> None:
        self.num_rows = num_rows
        self._run = run
        self._process = os.getpid()
        self._found: Refit | None = None
        self._error: BaseException | None = None
        # Python waits for it when it ends: torch aborts the process where a thread of its own is cut off.
        self._thread = threading.Thread(target=self._keep, name="streamgp-refit", daemon=False)
        self._thread.start()

    @classmethod
    def start(
        cls, buffer: Buffer, before: Fitted | None, plan: Plan, *, start: Snapshot | None = None
    ) -> "BackgroundRefit":
        """Begin a refit to a buffer of its own."""
        return cls(functools.partial(refit, buffer, before, plan, start=start), buffer.num_rows)

    @classmethod
    def catch_up(cls, found: Refit, buffer: Buffer, start: int, *, most_points: int) -> "BackgroundRefit":
        """Begin to learn the rows of a buffer of its own that came while a refit ran."""

        def run() -> Refit:
            n, p = buffer.num_rows, int(found.belief.num_points[0])
            buffer.rescale(found.fitted.units)
            belief = found.belief.copy().with_room(min(max(most_points, p), p + n - start))
            said, fitted = empty_said(n - start, belief), found.fitted
            most = max(most_points, p)
            learn_rows(buffer, start, n, belief, fitted.dynamics(), fitted.observing, most_points=most, said=said)
            return found._replace(belief=belief)

        return cls(run, buffer.num_rows)

    @property
    def is_done(self) -> bool:
        """Tell whether the result is there."""
        return not self._thread.is_alive()

    def result(self) -> Refit:
        """Wait for the result; what went wrong is raised here."""
        if os.getpid() == self._process:
            self._thread.join()
        if self._error is not None:
            raise self._error
        return self._run() if self._found is None else self._found

    def _keep(self) -> None:
        try:
            self._found = self._run()
        except BaseException as error:  # raised where the result is wanted
            self._error = error


def replay(buffer: Buffer, fitted: Fitted, points: Float[np.ndarray, "p d"], start: Snapshot | None = None) -> Belief:
    """Learn the rows of a buffer anew, at these points."""
    n, dynamics = buffer.num_rows, fitted.dynamics()
    clock = int(buffer.times[:n].min()) if start is None else int(start.belief.clock[0])
    belief = fitted.new_belief(points, clock=clock)
    if start is not None:
        carry(start, belief, fitted)
    said = empty_said(n, belief)
    learn_rows(buffer, 0, n, belief, dynamics, fitted.observing, most_points=len(points), said=said)
    return belief


def carry(start: Snapshot, belief: Belief, fitted: Fitted) -> None:
    r"""Carry what was known to other units, hyperparameters and points, into a belief that is the prior there.

    What rows have said of the old state is a Gaussian site, $S^{-1} - D^{-1}$ with the prior $D$. The old state is a
    linear map of the new one, which takes the site along; the prior of the new one then completes it.
    """
    old, units, dynamics = start.fitted.units, fitted.units, fitted.dynamics()
    before = start.fitted.dynamics()
    shifts = np.full(len(before.function), (units.target_mean - old.target_mean) / old.target_scale)
    if fitted.observing is not None and start.fitted.observing is not None:
        shifts += np.resize(fitted.observing.offsets - start.fitted.observing.offsets, len(shifts))
    p, q, d = int(start.belief.num_points[0]), int(belief.num_points[0]), len(old.input_mean)
    ratio, stretch = units.target_scale / old.target_scale, old.input_scale / units.input_scale
    shift = (old.input_mean - units.input_mean) / units.input_scale
    points = units.inputs(old.original_inputs(start.belief.points[:p]))
    kernel = dynamics.kernel(points, belief.points[:q])
    whole = np.zeros((1 + d + p, 1 + d + q))
    whole[0, 0] = ratio
    whole[0, 1 : 1 + d] = ratio * shift
    whole[1 : 1 + d, 1 : 1 + d] = np.diag(ratio * stretch)
    whole[1 + d :, 1 + d :] = ratio * start.belief.whitening[:p, :p] @ kernel @ belief.whitening[:q, :q].T
    noise = fitted.prior.unit / start.fitted.prior.unit
    for e in range(len(before.function)):
        rows, columns = size_of_state(before, e, d, p), size_of_state(dynamics, e, d, q)
        precision = np.linalg.inv(start.belief.covariance[e, :rows, :rows])
        weighted = precision @ start.belief.mean[e, :rows]
        expected = np.r_[before.level[e], np.full(d, before.slope[e]), np.full(p, before.function[e])][:rows]
        site = precision - np.diag(1.0 / expected)
        weighted -= site[:, 0] * shifts[e]
        part = whole[:rows, :columns]
        site, weighted = noise * part.T @ site @ part, noise * part.T @ weighted
        values, vectors = np.linalg.eigh(0.5 * (site + site.T))
        new = np.diag(1.0 / np.diag(belief.covariance[e])[:columns])
        covariance = np.linalg.inv(new + (vectors * np.maximum(values, 0.0)) @ vectors.T)
        belief.covariance[e, :columns, :columns] = 0.5 * (covariance + covariance.T)
        belief.mean[e, :columns] = covariance @ weighted
    belief.shape[:] = start.belief.shape
    belief.rate[:] = start.belief.rate / ratio**2
    belief.near[:], belief.far[:], belief.counts[:] = start.belief.near, start.belief.far, start.belief.counts
    belief.moments[:] = start.belief.moments
    belief.moments[[0, 2]] = belief.moments[[0, 2]] * stretch + shift
    belief.moments[[1, 3]] *= stretch**2


def size_of_state(dynamics: Dynamics, e: int, num_dims: int, num_points: int) -> int:
    """Return the size of a filter's state."""
    if dynamics.function[e] > 0.0:
        return 1 + num_dims + num_points
    return 1 + num_dims if dynamics.slope[e] > 0.0 else 1


def _learn_prior(
    buffer: Buffer, units: Units, before: Fitted | None, plan: Plan, observing: Observing | None, *, is_timed: bool
) -> tuple[Prior, Observing | None, float]:
    """Learn hyperparameters by the marginal likelihood of half latest, half thinned rows."""
    n = buffer.num_rows
    chosen = np.arange(n)
    most = _NUM_FIT_ROWS if observing is None else int(_NUM_LATENT_ROWS / math.sqrt(plan.num_questions))
    if n > most:
        half = most // 2
        chosen = np.r_[np.linspace(0, n - half - 1, half).astype(int), np.arange(n - half, n)]
    X, y, times = buffer.scaled_inputs[chosen], buffer.scaled_targets[chosen], buffer.times[chosen].astype(float)
    start = None if before is None or n < 2 * _FIRST_FIT else before.prior.rescaled(before.units, units)
    default = plan.default_prior(X.shape[1])
    if observing is None:
        prior, gain = fit_prior(Rows(X, y[None], times, buffer.noises[chosen][None]), default, start, is_timed=is_timed)
        return prior, None, gain
    rows = LatentRows(X, y, buffer.counts[chosen], 1.0 / buffer.noises[chosen], times)
    assert plan.likelihood is not None
    return fit_latent(rows, observing, default, start, first=plan.likelihood, is_timed=is_timed)


def _learn_points(
    prior: Prior,
    X: Float[np.ndarray, "n d"],
    y: Float[np.ndarray, " n"],
    candidates: Float[np.ndarray, "c d"],
    most: int,
) -> tuple[Prior, Float[np.ndarray, "p d"]]:
    """Choose points, and where the budget leaves too much open, learn them together with the hyperparameters."""
    variance, kernel = prior.worth, prior.stream_kernel
    points = candidates[choose_points(candidates, kernel, most=most, tolerance=tolerance_of(variance))]
    is_default = isinstance(kernel, Stationary) and kernel.family == 0 and not prior.has_sites
    if len(points) < most or len(y) < 50 or not is_default:
        return prior, points
    slack = slack_of(X, points, whitening_of(points, kernel), kernel)
    if 0.5 * float(np.log1p(variance * slack).mean()) <= _POLISH_NATS:
        return prior, points
    n, d = X.shape
    chosen = np.unique(np.linspace(0, n - 1, min(n, _MOST_POLISH_ROWS)).astype(int))
    module = ScaleKernel(MaternKernel(2.5, ard_num_dims=d)).double()
    module.outputscale = prior.function_variance
    module.base_kernel.lengthscale = torch.tensor(np.clip(prior.lengthscales, 1e-3, 1e3))
    num_points = min(most, len(chosen) * 2 // 3)
    first = X[chosen][np.random.default_rng(0).permutation(len(chosen))[:num_points]]
    result = fit(
        torch.tensor(X[chosen]),
        torch.tensor(y[chosen]),
        kernel=module,
        num_inducing=num_points,
        inducing=torch.tensor(first),
        max_iterations=_NUM_POLISH_ITERATIONS,
    )
    learned: Any = result.gp.kernel
    noise: Any = result.likelihood
    polished = prior.with_function(
        learned.base_kernel.lengthscale.detach().numpy().ravel().astype(float),
        float(learned.outputscale.detach()),
        max(float(noise.noise_variance.detach()), 1e-6),
    )
    return polished, result.gp.inducing_points.detach().numpy().copy()
