"""Maximization by SciPy's L-BFGS-B, with steps that lead out of the domain rejected and shortened."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import scipy.optimize
import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.errors import NumericalError, ValueRangeError

__all__ = ["Ascent", "maximize"]

# An iteration of L-BFGS may gain little before one that gains much, so progress is judged over several.
_WINDOW = 5
_NUM_CORRECTIONS = 20
# Iterations that are taken even past the deadline: with fewer, a slow machine would learn nothing.
_LEAST_TIMED = 15


@final
@dataclass(frozen=True, eq=False)
class Ascent:
    """Maximum that was found.

    Attributes:
        x: The best point.
        value: The objective there.
        history: The best value so far after each iteration, the start first.
        num_evaluations: Evaluations of value and gradient.
        num_rejected: Those of them that had no value.
        is_converged: Whether it stopped because there was no more to gain.
        reason: Why it stopped, in words.
    """

    x: Float[Tensor, " k"]
    value: float
    history: tuple[float, ...]
    num_evaluations: int
    num_rejected: int
    is_converged: bool
    reason: str


def maximize(
    objective: Callable[[Tensor], Tensor],
    start: Float[Tensor, " k"],
    *,
    bounds: tuple[Float[Tensor, " k"], Float[Tensor, " k"]],
    max_iterations: int,
    tolerance: float,
    scale: float = 1.0,
    on_iteration: Callable[[float], None] | None = None,
    deadline: float = math.inf,
) -> Ascent:
    """Climb to a maximum.

    A step at which the objective raises `NumericalError` or is not finite is rejected: the line search sees a lower
    value there and shortens the step.

    Args:
        objective: Differentiable function of a vector.
        start: Where to begin.
        bounds: Lower and upper bounds, infinite where there is none.
        max_iterations: Iterations after which to stop.
        tolerance: Stop when five iterations gained less than this, times `scale`.
        scale: Natural size of changes of the objective, such as the number of observations.
        on_iteration: Called with the best value after each iteration.
        deadline: Time of `time.thread_time` after which no iteration begins but the first fifteen.

    Raises:
        NumericalError: If the objective has no value at the start.
    """
    run = _Maximization(objective, start, scale, tolerance, on_iteration, deadline)
    if not start.numel():
        return run.finish(is_converged=True, reason="there is nothing to learn")
    reason, is_converged = "the largest number of iterations was reached", False
    lower, upper = (bound.cpu().numpy() for bound in bounds)
    try:
        outcome = scipy.optimize.minimize(
            run.value_and_gradient,
            start.detach().cpu().numpy(),
            jac=True,
            method="L-BFGS-B",
            bounds=scipy.optimize.Bounds(lower, upper),
            callback=run.after_iteration,
            options={
                "maxiter": max_iterations,
                "maxfun": 4 * max_iterations + 20,
                "maxcor": _NUM_CORRECTIONS,
                "ftol": 1e-12,
                "gtol": 1e-10,
            },
        )
        if outcome.status == 0:
            reason, is_converged = "the objective no longer changed", True
        elif outcome.status == 2:
            reason, is_converged = "the line search found no better point", run.num_rejected == 0
    except _Converged:
        reason, is_converged = f"{_WINDOW} iterations gained less than the tolerance", True
    except _Late:
        reason = "the time budget was spent"
    return run.finish(is_converged=is_converged, reason=reason)


class _Converged(Exception):  # noqa: N818 a signal, not an error
    """Enough iterations have gained too little."""


class _Late(Exception):  # noqa: N818 a signal, not an error
    """The deadline has passed."""


class _Maximization:
    """The state of one maximization: the best point, and what has been spent."""

    def __init__(
        self,
        objective: Callable[[Tensor], Tensor],
        start: Tensor,
        scale: float,
        tolerance: float,
        on_iteration: Callable[[float], None] | None,
        deadline: float,
    ) -> None:
        self.objective, self.start, self.scale, self.tolerance = objective, start.detach(), scale, tolerance
        self.on_iteration, self.deadline = on_iteration, deadline
        self.num_evaluations = self.num_rejected = 0
        with torch.no_grad():
            self.best, self.best_x = float(objective(self.start)), self.start
        if not np.isfinite(self.best):
            raise NumericalError(
                "The objective is NaN or infinite at the start of training.",
                advice="Check the scale of inputs, targets and starting hyperparameters; standardize=True of "
                "streamgp.fit scales the first two.",
            )
        self.history = [self.best]

    def value_and_gradient(self, x: Any) -> tuple[float, Any]:
        self.num_evaluations += 1
        point = torch.from_numpy(x.copy()).to(self.start).requires_grad_(True)
        try:
            value = self.objective(point)
            (gradient,) = torch.autograd.grad(value, point)
            is_valid = bool(torch.isfinite(value) & torch.isfinite(gradient).all())
        except (NumericalError, ValueRangeError):
            is_valid = False
        if not is_valid:
            self.num_rejected += 1
            # Moderately worse than the best, so that interpolation shortens the step by some factor, not to nothing.
            worse = -self.best / self.scale
            return worse + 1.0 + abs(worse), np.zeros_like(x)
        if value.item() > self.best:
            self.best, self.best_x = value.item(), point.detach()
        return -value.item() / self.scale, -gradient.cpu().numpy() / self.scale

    def after_iteration(self, _: Any) -> None:
        self.history.append(self.best)
        if self.on_iteration is not None:
            self.on_iteration(self.best)
        if len(self.history) > _WINDOW and self.best - self.history[-1 - _WINDOW] < self.tolerance * self.scale:
            raise _Converged
        if len(self.history) > _LEAST_TIMED and time.thread_time() > self.deadline:
            raise _Late

    def finish(self, *, is_converged: bool, reason: str) -> Ascent:
        return Ascent(
            self.best_x, self.best, tuple(self.history), self.num_evaluations, self.num_rejected, is_converged, reason
        )
