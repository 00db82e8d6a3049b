"""The arrays that a stream's filters hold."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

__all__ = ["NUM_TAILS", "Belief", "Dynamics", "Said", "empty_said", "new_belief"]

# Each filter has two scales of errors, one with Gaussian errors and one with long tails.
NUM_TAILS = 2


class Dynamics(NamedTuple):
    """Transitions of the filters' states between rows; all variances are in units of the noise's.

    Attributes:
        inverse_lengthscales: Of the inputs.
        function: Prior variance of the function; zero for an expert that knows the level alone.
        slope: Prior variance of each slope.
        level: Prior variance of the level.
        keep: Share of the variance of function and slopes that survives a row; below 1 they return to the prior.
        keep_level: Share of the variance of the level that survives a row.
        walk: Variance that the level gains in a row.
    """

    inverse_lengthscales: Float[np.ndarray, " d"]
    function: Float[np.ndarray, " e"]
    slope: Float[np.ndarray, " e"]
    level: Float[np.ndarray, " e"]
    keep: Float[np.ndarray, " e"]
    keep_level: Float[np.ndarray, " e"]
    walk: Float[np.ndarray, " e"]


class Belief(NamedTuple):
    """Beliefs of all filters: one structure of arrays, changed in place by the functions of a row.

    A state is (level, slopes, whitened inducing values), and only the first `1 + d + num_points` entries count.

    Attributes:
        points: Inducing points; room for more than there are.
        whitening: Square root W of the inverse kernel matrix of the points, K⁻¹ = WᵀW; features are W k(Z, x).
        num_points: Number of points.
        clock: Row that the states are for, the next one.
        mean: Means of the states.
        covariance: Covariances of the states, in units of the noise's variance.
        shape: Shapes of the inverse-gamma beliefs about the noise's variance, by tail.
        rate: Rates of these beliefs.
        near: Log weights for inputs such as come of late.
        far: Log weights for other inputs.
        moments: Means and sums of squares of the inputs, of late and of all rows.
        counts: Number of rows in the moments, of late and of all.
        use: How much recent rows would miss each point, in nats a row; kept while the budget of points is spent.
    """

    points: Float[np.ndarray, "p d"]
    whitening: Float[np.ndarray, "p p"]
    num_points: Int[np.ndarray, " 1"]
    clock: Int[np.ndarray, " 1"]
    mean: Float[np.ndarray, "e k"]
    covariance: Float[np.ndarray, "e k k"]
    shape: Float[np.ndarray, "e 2"]
    rate: Float[np.ndarray, "e 2"]
    near: Float[np.ndarray, "e 2"]
    far: Float[np.ndarray, "e 2"]
    moments: Float[np.ndarray, "4 d"]
    counts: Float[np.ndarray, " 2"]
    use: Float[np.ndarray, " p"]

    def copy(self) -> "Belief":
        """Return a belief that shares no memory with this one."""
        return Belief(*(each.copy() for each in self))

    def with_room(self, num_points: int) -> "Belief":
        """Return the belief with room for so many points; itself if it has that already."""
        old = len(self.points)
        if old >= num_points:
            return self
        extra = num_points - old
        return self._replace(
            points=np.pad(self.points, ((0, extra), (0, 0))),
            whitening=np.pad(self.whitening, ((0, extra), (0, extra))),
            mean=np.pad(self.mean, ((0, 0), (0, extra))),
            covariance=np.pad(self.covariance, ((0, 0), (0, extra), (0, extra))),
            use=np.pad(self.use, (0, extra)),
        )


class Said(NamedTuple):
    """Forecasts of the experts for rows: mixtures of Student's t, in standardized units.

    Attributes:
        location: Centers.
        scale: Squared scales, by tail.
        degrees: Degrees of freedom, by tail.
        log_weight: Log weights, by tail.
    """

    location: Float[np.ndarray, "n e"]
    scale: Float[np.ndarray, "n e 2"]
    degrees: Float[np.ndarray, "n e 2"]
    log_weight: Float[np.ndarray, "n e 2"]

    def rows(self, start: int, stop: int) -> "Said":
        """Return what is said of some of the rows."""
        return Said(*(each[start:stop] for each in self))


def empty_said(num_rows: int, num_experts: int) -> Said:
    """Return room for what is said of so many rows."""
    by_tail = (num_rows, num_experts, NUM_TAILS)
    return Said(np.empty((num_rows, num_experts)), np.empty(by_tail), np.empty(by_tail), np.empty(by_tail))


def new_belief(
    dynamics: Dynamics,
    points: Float[np.ndarray, "p d"],
    whitening: Float[np.ndarray, "p p"],
    *,
    noise_variance: float,
    clock: int = 0,
) -> Belief:
    """Return the prior at these points, with equal weights."""
    num_experts, (p, d) = len(dynamics.function), points.shape
    size = 1 + d + p
    covariance = np.zeros((num_experts, size, size))
    diagonal = np.einsum("eii->ei", covariance)
    diagonal[:, 0] = dynamics.level
    diagonal[:, 1 : 1 + d] = dynamics.slope[:, None]
    diagonal[:, 1 + d :] = dynamics.function[:, None]
    even = np.full((num_experts, NUM_TAILS), -np.log(NUM_TAILS * num_experts))
    return Belief(
        points=np.ascontiguousarray(points),
        whitening=np.ascontiguousarray(whitening),
        num_points=np.array([p]),
        clock=np.array([clock]),
        mean=np.zeros((num_experts, size)),
        covariance=covariance,
        shape=np.ones((num_experts, NUM_TAILS)),
        rate=np.full((num_experts, NUM_TAILS), noise_variance),
        near=even.copy(),
        far=even,
        moments=np.vstack([np.zeros(d), np.ones(d), np.zeros(d), np.ones(d)]),
        counts=np.ones(2),
        use=np.zeros(p),
    )
