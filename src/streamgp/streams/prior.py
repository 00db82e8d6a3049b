"""Prior of a stream: a function, a trend and a level that drift, and experts on how fast."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, final

import numpy as np
from jaxtyping import Float

from streamgp.streams.buffer import Units
from streamgp.streams.state import Dynamics

__all__ = ["EXPERTS", "Expert", "Prior"]


class Expert(NamedTuple):
    """A belief about how fast the stream forgets.

    Attributes:
        name: What it is called in reports.
        half_life: Rows after which half of the variance of the function is new; None as learned, infinite for never.
        level_gain: Share of an error by which the level follows; None as learned.
        has_function: Whether it looks at the inputs at all.
    """

    name: str
    half_life: float | None = None
    level_gain: float | None = None
    has_function: bool = True


# More experts cost time in proportion, and on the streams of the diary bought nothing.
EXPERTS = (
    Expert("function, as learned"),
    Expert("function that stays", math.inf),
    Expert("function, half-life 1000", 1000.0, 0.0),
    Expert("function, half-life 100", 100.0, 0.0),
    Expert("last value", math.inf, 0.99, has_function=False),
)


@final
@dataclass(frozen=True, eq=False)
class Prior:
    r"""Hyperparameters of the space-time model of a stream, for standardized inputs and targets.

    The stream is $f_t(x) + \ell_t + s_t^\top x + \varepsilon$, where the covariance of $f$ is a Matérn-5/2 kernel of
    $x$ times $\exp(-|t - t'| / \tau)$, and level and slopes have covariances in time of this shape, too.

    Attributes:
        lengthscales: Of the inputs.
        function_variance: Variance of the function.
        function_life: Rows τ over which the function changes, and with it the slopes.
        level_variance: Variance of the level.
        level_life: Rows over which the level changes.
        slope_variance: Variance of each slope.
        noise_variance: Variance of the noise.
    """

    lengthscales: Float[np.ndarray, " d"]
    function_variance: float = 1.0
    function_life: float = 1000.0
    level_variance: float = 0.1
    level_life: float = 300.0
    slope_variance: float = 0.1
    noise_variance: float = 0.1

    @classmethod
    def default(cls, num_dims: int) -> "Prior":
        """Return what is expected before there are rows to learn from."""
        return cls(np.full(num_dims, math.sqrt(max(num_dims, 1))))

    @classmethod
    def from_log(cls, theta: Float[np.ndarray, " h"]) -> "Prior":
        """Return hyperparameters from their logarithms, lengthscales first."""
        values = np.exp(theta)
        return cls(values[:-6], *map(float, values[-6:]))

    @property
    def log(self) -> Float[np.ndarray, " h"]:
        """Logarithms of all hyperparameters, lengthscales first."""
        rest = (
            self.function_variance,
            self.function_life,
            self.level_variance,
            self.level_life,
            self.slope_variance,
            self.noise_variance,
        )
        return np.log(np.r_[self.lengthscales, rest])

    def rescaled(self, before: Units, after: Units) -> "Prior":
        """Return these hyperparameters, which are for the units before, for those after."""
        ratio = (before.target_scale / after.target_scale) ** 2
        return replace(
            self,
            lengthscales=self.lengthscales * before.input_scale / after.input_scale,
            function_variance=self.function_variance * ratio,
            level_variance=self.level_variance * ratio,
            noise_variance=self.noise_variance * ratio,
        )

    def still(self) -> "Prior":
        """Return the prior of rows whose order means nothing."""
        return replace(self, function_life=math.inf, level_life=math.inf)

    def with_function(
        self, lengthscales: Float[np.ndarray, " d"], function_variance: float, noise_variance: float
    ) -> "Prior":
        """Return the prior with another kernel and noise."""
        return replace(
            self, lengthscales=lengthscales, function_variance=function_variance, noise_variance=noise_variance
        )

    def dynamics(self, experts: Sequence[Expert] = EXPERTS) -> Dynamics:
        """Return how the states of these experts move."""
        noise = self.noise_variance
        function = np.array([self.function_variance / noise * each.has_function for each in experts])
        slope = np.array([self.slope_variance / noise * each.has_function for each in experts])
        learned, kept_level = math.exp(-2.0 / self.function_life), math.exp(-2.0 / self.level_life)
        keep = [learned if each.half_life is None else 0.5 ** (1.0 / each.half_life) for each in experts]
        level, keep_level, walk = [], [], []
        for each in experts:
            if each.level_gain is None:
                level.append(self.level_variance / noise)
                keep_level.append(kept_level)
                walk.append((1.0 - kept_level) * self.level_variance / noise)
            else:
                level.append((self.level_variance + 0.1) / noise)
                keep_level.append(1.0)
                walk.append(each.level_gain**2 / (1.0 - each.level_gain))
        return Dynamics(
            inverse_lengthscales=1.0 / self.lengthscales,
            function=function,
            slope=slope,
            level=np.array(level),
            keep=np.array(keep),
            keep_level=np.array(keep_level),
            walk=np.array(walk),
        )
