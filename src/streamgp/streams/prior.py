"""Prior of a stream: a function, a trend and a level that drift, and experts on how fast."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, final

import numpy as np
from gpytorch.kernels import Kernel
from jaxtyping import Float

from streamgp.streams.buffer import Units
from streamgp.streams.kernels import ModuleKernel, Stationary, StreamKernel
from streamgp.streams.state import Dynamics

__all__ = ["CLASS_EXPERTS", "COUNT_EXPERTS", "VALUE_EXPERTS", "Expert", "Prior", "expert_of"]


class Expert(NamedTuple):
    """A belief about how fast the stream forgets, and what it looks at.

    Attributes:
        name: What it is called in reports.
        half_life: Rows after which half of the variance of the function is new; None as learned, infinite for never.
        level_gain: Share of an error by which the level follows; None as learned.
        has_function: Whether it looks at the inputs by more than a line.
        slope_variance: Variance of the slopes; None as learned, or zero without a function.
    """

    name: str
    half_life: float | None = None
    level_gain: float | None = None
    has_function: bool = True
    slope_variance: float | None = None


# More experts cost time in proportion, and on the streams of the diary bought nothing.
VALUE_EXPERTS = (
    Expert("function, as learned"),
    Expert("function that stays", math.inf),
    Expert("function, half-life 1000", 1000.0, 0.0),
    Expert("function, half-life 100", 100.0, 0.0),
    Expert("last value", math.inf, 0.99, has_function=False),
)
# A level of latent values follows the latest rows more slowly: each says little, and the mean is its exponential.
COUNT_EXPERTS = (*VALUE_EXPERTS[:4], Expert("latest rows", math.inf, 0.1, has_function=False))
CLASS_EXPERTS = (
    *VALUE_EXPERTS[:4],
    Expert("line", 1000.0, 0.0, has_function=False, slope_variance=10.0),
    Expert("frequencies", math.inf, 0.0, has_function=False),
    Expert("latest labels", math.inf, 0.5, has_function=False),
)


# Factor by which points of latent functions are finer than noise asks for: what they leave open is taken for noise of
# the labels around, too. Larger takes more points and time.
_FINER = 10.0


def expert_of(half_life: float | None) -> Expert:
    """Return the only expert of a stream whose half-life is given; None forgets nothing."""
    if half_life is None:
        return Expert("function that stays", math.inf, 0.0)
    return Expert(f"function, half-life {half_life:g}", half_life, 0.0)


@final
@dataclass(frozen=True, eq=False)
class Prior:
    r"""Hyperparameters of the space-time model of a stream, for standardized inputs and targets.

    The stream is $f_t(x) + \ell_t + s_t^\top x + \varepsilon$, where the covariance of $f$ is a kernel of $x$ times
    $\exp(-|t - t'| / \tau)$, and level and slopes have covariances in time of this shape, too.

    Attributes:
        lengthscales: Of the inputs; none for a kernel of the user's own.
        function_variance: Variance of the function.
        function_life: Rows τ over which the function changes, and with it the slopes.
        level_variance: Variance of the level.
        level_life: Rows over which the level changes.
        slope_variance: Variance of each slope.
        noise_variance: Variance of the noise; of other targets that of a telling site.
        kernel: Number of the kernel's family, or a kernel of the user's own.
        has_sites: Whether rows say of latent values what Gaussian targets with noises of their own would say. Variances
            of the filters then are not in units of the noise.
    """

    lengthscales: Float[np.ndarray, " d"]
    function_variance: float = 1.0
    function_life: float = 1000.0
    level_variance: float = 0.1
    level_life: float = 300.0
    slope_variance: float = 0.1
    noise_variance: float = 0.1
    kernel: int | Kernel = 0
    has_sites: bool = False

    @classmethod
    def default(cls, num_dims: int, kernel: int | Kernel = 0, *, has_sites: bool = False) -> "Prior":
        """Return what is expected before there are rows to learn from."""
        lengthscales = np.full(num_dims if isinstance(kernel, int) else 0, math.sqrt(max(num_dims, 1)))
        return cls(lengthscales, noise_variance=1.0 if has_sites else 0.1, kernel=kernel, has_sites=has_sites)

    def from_log(self, theta: Float[np.ndarray, " h"]) -> "Prior":
        """Return hyperparameters from their logarithms, lengthscales first."""
        values = np.exp(theta)
        function_variance, function_life, level_variance, level_life, slope_variance, noise = map(float, values[-6:])
        return replace(
            self,
            lengthscales=values[:-6],
            function_variance=function_variance,
            function_life=function_life,
            level_variance=level_variance,
            level_life=level_life,
            slope_variance=slope_variance,
            noise_variance=noise,
        )

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
            lengthscales=self.lengthscales
            * (before.input_scale / after.input_scale if len(self.lengthscales) else 1.0),
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

    @property
    def unit(self) -> float:
        """Unit of the variances of filters: that of the noise, or one where each row has a noise of its own."""
        return 1.0 if self.has_sites else self.noise_variance

    @property
    def stream_kernel(self) -> StreamKernel:
        """The kernel as filters take it."""
        if isinstance(self.kernel, int):
            return Stationary(self.kernel, 1.0 / self.lengthscales)
        return ModuleKernel(self.kernel)

    @property
    def worth(self) -> float:
        """Variance of the function in units of the noise, by which points are chosen."""
        return self.function_variance / self.noise_variance * (_FINER if self.has_sites else 1.0)

    def dynamics(self, experts: Sequence[Expert] = VALUE_EXPERTS, num_questions: int = 1) -> Dynamics:
        """Return how the states of these experts move, for so many latent functions each."""
        unit = self.unit
        function = [self.function_variance / unit * each.has_function for each in experts]
        slope = [
            (self.slope_variance * each.has_function if each.slope_variance is None else each.slope_variance) / unit
            for each in experts
        ]
        learned, kept_level = math.exp(-2.0 / self.function_life), math.exp(-2.0 / self.level_life)
        keep = [learned if each.half_life is None else 0.5 ** (1.0 / each.half_life) for each in experts]
        level, keep_level, walk = [], [], []
        for each in experts:
            if each.level_gain is None:
                level.append(self.level_variance / unit)
                keep_level.append(kept_level)
                walk.append((1.0 - kept_level) * self.level_variance / unit)
            else:
                level.append((self.level_variance + 0.1) / unit)
                keep_level.append(1.0)
                # Compared with the noise, but where a row says little, a level would follow it anywhere.
                noise = min(self.noise_variance / unit, 1.0)
                walk.append(noise * each.level_gain**2 / (1.0 - each.level_gain))
        columns = (np.repeat(each, num_questions) for each in (function, slope, level, keep, keep_level, walk))
        return Dynamics(self.stream_kernel, *columns)
