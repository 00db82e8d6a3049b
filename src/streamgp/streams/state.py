"""The arrays that a stream's filters hold."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from streamgp.streams.kernels import StreamKernel

__all__ = ["NUM_TAILS", "Belief", "Dynamics", "Said", "empty_said", "new_belief"]

# Scales of errors of each filter of real targets: one with Gaussian errors and one with long tails.
NUM_TAILS = 2


class Dynamics(NamedTuple):
    """Transitions of the filters' states between rows; all variances are in units of the noise's.

    There is one filter for each expert, or, of several classes, one for each expert and class, classes last.

    Attributes:
        kernel: Kernel of the function, of variance one if it is stationary.
        function: Prior variance of the function; zero for a filter that has none.
        slope: Prior variance of each slope; zero for a filter that knows the level alone.
        level: Prior variance of the level.
        keep: Share of the variance of function and slopes that survives a row; below 1 they return to the prior.
        keep_level: Share of the variance of the level that survives a row.
        walk: Variance that the level gains in a row.
    """

    kernel: StreamKernel
    function: Float[np.ndarray, " f"]
    slope: Float[np.ndarray, " f"]
    level: Float[np.ndarray, " f"]
    keep: Float[np.ndarray, " f"]
    keep_level: Float[np.ndarray, " f"]
    walk: Float[np.ndarray, " f"]


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
        shape: Shapes of the inverse-gamma beliefs about the noise's variance, by tail; other targets have no tails.
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
    mean: Float[np.ndarray, "f k"]
    covariance: Float[np.ndarray, "f k k"]
    shape: Float[np.ndarray, "e t"]
    rate: Float[np.ndarray, "e t"]
    near: Float[np.ndarray, "e t"]
    far: Float[np.ndarray, "e t"]
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
    """Forecasts of the experts for rows: mixtures of Student's t, in standardized units, or of latent Gaussians.

    Attributes:
        location: Centers.
        scale: Squared scales, by tail; variances of latent values.
        degrees: Degrees of freedom, by tail; infinite for latent values.
        log_weight: Log weights of the experts, by tail.
    """

    location: Float[np.ndarray, "n f"]
    scale: Float[np.ndarray, "n f t"]
    degrees: Float[np.ndarray, "n f t"]
    log_weight: Float[np.ndarray, "n e t"]

    def rows(self, start: int, stop: int) -> "Said":
        """Return what is said of some of the rows."""
        return Said(*(each[start:stop] for each in self))


def empty_said(num_rows: int, belief: Belief) -> Said:
    """Return room for what is said of so many rows."""
    (num_experts, num_tails), num_filters = belief.near.shape, len(belief.mean)
    by_tail = (num_rows, num_filters, num_tails)
    log_weight = np.empty((num_rows, num_experts, num_tails))
    return Said(np.empty((num_rows, num_filters)), np.empty(by_tail), np.empty(by_tail), log_weight)


def new_belief(
    dynamics: Dynamics,
    points: Float[np.ndarray, "p d"],
    whitening: Float[np.ndarray, "p p"],
    *,
    noise_variance: float,
    clock: int = 0,
    num_questions: int = 1,
    num_tails: int = NUM_TAILS,
) -> Belief:
    """Return the prior at these points, with equal weights."""
    num_filters, (p, d) = len(dynamics.function), points.shape
    size, num_experts = 1 + d + p, num_filters // num_questions
    covariance = np.zeros((num_filters, size, size))
    diagonal = np.einsum("eii->ei", covariance)
    diagonal[:, 0] = dynamics.level
    diagonal[:, 1 : 1 + d] = dynamics.slope[:, None]
    diagonal[:, 1 + d :] = dynamics.function[:, None]
    even = np.full((num_experts, num_tails), -np.log(num_tails * num_experts))
    return Belief(
        points=np.ascontiguousarray(points),
        whitening=np.ascontiguousarray(whitening),
        num_points=np.array([p]),
        clock=np.array([clock]),
        mean=np.zeros((num_filters, size)),
        covariance=covariance,
        shape=np.ones((num_experts, num_tails)),
        rate=np.full((num_experts, num_tails), noise_variance),
        near=even.copy(),
        far=even,
        moments=np.vstack([np.zeros(d), np.ones(d), np.zeros(d), np.ones(d)]),
        counts=np.ones(2),
        use=np.zeros(p),
    )
