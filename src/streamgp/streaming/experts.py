"""Experts: beliefs about one stream that differ in how its function may change."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from scipy.special import softmax
from torch import Tensor

__all__ = [
    "CLASS_EXPERTS",
    "COUNT_EXPERTS",
    "MANY_CLASS_EXPERTS",
    "REAL_EXPERTS",
    "Expert",
    "Experts",
    "count_experts",
]

# How much experts that forget nothing must be believed, so that the stream stands still.
_BELIEVED = 0.5
# By how many nats others must have been better in the long run, so that these are wrong where nothing was seen of late.
_CLEARLY = 20.0


@final
@dataclass(frozen=True)
class Expert:
    """How a function is expected to change while rows come.

    Attributes:
        half_life: Number of rows after which half of what was known of the function is lost; infinite for nothing.
        level_gain: The share of an error by which a level that is added to the function follows it, in the long run:
            zero for no level, close to one for a level that is the last error.
        amplitude: What the prior variance of the function is multiplied with.
        slope: Prior standard deviation of the weights of a linear trend in standardized inputs; zero for none.
        is_trusting: Whether it takes targets that are far off for jumps, where others take them for outliers.
    """

    half_life: float = math.inf
    level_gain: float = 0.0
    amplitude: float = 1.0
    slope: float = 0.0
    is_trusting: bool = False


# With back-to-the-prior forgetting what is lost is compared with the prior, so that a half-life of 1000 rows already
# follows a function that changes its sign; chosen on the streams that `benchmarks/rival_streams.py` calls tuned.
REAL_EXPERTS = (
    Expert(),
    Expert(slope=1.0),
    Expert(1000.0, slope=1.0),
    Expert(100.0, slope=1.0),
    Expert(20.0, slope=1.0),
    Expert(level_gain=0.1, slope=1.0),
    Expert(level_gain=0.5, slope=1.0),
    Expert(100.0, level_gain=0.5, slope=1.0),
    Expert(level_gain=0.9, slope=1.0, is_trusting=True),
    Expert(level_gain=0.99, amplitude=0.0, is_trusting=True),
)
COUNT_EXPERTS = (
    Expert(),
    Expert(1000.0, slope=0.3),
    Expert(100.0, slope=0.3),
    Expert(level_gain=0.1, slope=0.3),
    Expert(level_gain=0.5, slope=0.3),
    Expert(level_gain=0.03, amplitude=0.0),
)
# With more columns, slopes of counts become smaller, so that a trend has the variance that it has with so many: the
# mean of counts grows with the exponential of what is not known of their rate.
_COLUMNS_OF_SLOPE = 4
# Amplitudes of classes are on the probit scale.
CLASS_EXPERTS = (
    Expert(amplitude=1.0),
    Expert(amplitude=10.0, slope=0.5),
    Expert(1000.0, amplitude=3.0, slope=0.5),
    Expert(100.0, amplitude=3.0, slope=0.5),
    Expert(20.0, amplitude=3.0, slope=0.5),
    Expert(level_gain=0.2, amplitude=3.0, slope=0.5),
)
MANY_CLASS_EXPERTS = (
    Expert(amplitude=2.0, slope=0.5),
    Expert(amplitude=20.0, slope=0.5),
    Expert(1000.0, amplitude=5.0, slope=0.5),
    Expert(100.0, amplitude=5.0, slope=0.5),
)


def count_experts(num_dims: int) -> tuple[Expert, ...]:
    """Experts of counts, for inputs of some columns."""
    share = min(1.0, math.sqrt(_COLUMNS_OF_SLOPE / num_dims))
    return tuple(replace(expert, slope=share * expert.slope) for expert in COUNT_EXPERTS)


@final
@dataclass(frozen=True)
class Experts:
    """Several experts, with what is known of them as tensors, or as arrays where single rows need it."""

    each: tuple[Expert, ...]

    def __len__(self) -> int:
        return len(self.each)

    @cached_property
    def half_lives(self) -> Float[Tensor, " e"]:
        """Half-lives in rows."""
        return torch.tensor([expert.half_life for expert in self.each], dtype=torch.float64)

    @cached_property
    def gains(self) -> Float[Tensor, " e"]:
        """Gains of the levels."""
        return torch.tensor([expert.level_gain for expert in self.each], dtype=torch.float64)

    @cached_property
    def amplitudes(self) -> Float[Tensor, " e"]:
        """What prior variances are multiplied with."""
        return torch.tensor([expert.amplitude for expert in self.each], dtype=torch.float64)

    @cached_property
    def largest_amplitude(self) -> float:
        """The largest of these."""
        return max(expert.amplitude for expert in self.each)

    @cached_property
    def slopes(self) -> Float[Tensor, " e"]:
        """Prior standard deviations of linear weights."""
        return torch.tensor([expert.slope for expert in self.each], dtype=torch.float64)

    @cached_property
    def has_level(self) -> Float[Tensor, " e"]:
        """One for those with a level, zero for the others."""
        return (self.gains > 0).double()

    def remembering(self, log_weights: Float[np.ndarray, " e"]) -> Float[np.ndarray, " e"]:
        """Weights where the stream has long been elsewhere: of experts that forget nothing, if they are trusted there.

        Of places that the stream has left, experts that forget say nothing, and a level is that of another place. They
        are not proven wrong there, as long as the stream does not come back.
        """
        return np.asarray(softmax(self._kept(log_weights)))

    def best_remembering(self, log_weights: Float[np.ndarray, " e"]) -> int:
        """The expert with the largest of these weights."""
        return int(self._kept(log_weights).argmax())

    def _kept(self, log_weights: Float[np.ndarray, " e"]) -> Float[np.ndarray, " e"]:
        return np.where(self.is_lasting, log_weights, -np.inf) if self.is_trusted(log_weights) else log_weights

    def is_trusted(self, log_weights: Float[np.ndarray, " e"]) -> bool:
        """Whether those that forget nothing hold in the long run: what others gain on some rows may be of one place."""
        lasting, others = self._lasting_and_others
        if not len(lasting) or not len(others):
            return not len(others)
        best = np.maximum.reduce(log_weights[lasting])
        return float(best - np.maximum.reduce(log_weights[others])) > -_CLEARLY

    @cached_property
    def _lasting_and_others(self) -> tuple[Int[np.ndarray, " l"], Int[np.ndarray, " o"]]:
        """Which expect a function that does not change, and which do not."""
        return np.flatnonzero(self.is_lasting), np.flatnonzero(~self.is_lasting)

    @cached_property
    def is_lasting(self) -> Bool[np.ndarray, " e"]:
        """Which expect a function that does not change."""
        return np.array([expert.half_life == math.inf and expert.level_gain == 0.0 for expert in self.each])

    def are_still(self, weights: Float[np.ndarray, " e"]) -> bool:
        """Whether, by these weights, the function is believed not to change."""
        return float(weights[self.is_lasting].sum()) >= _BELIEVED

    @cached_property
    def is_trusting(self) -> Bool[np.ndarray, " e"]:
        """Which take every target at its word."""
        return np.array([expert.is_trusting for expert in self.each])

    @cached_property
    def level_steps(self) -> Float[Tensor, " e"]:
        r"""Variance of one step of the level, in units of the noise variance.

        In the long run a level that moves by steps of variance $q$ under noise of variance $v$ is corrected by the
        share $g$ of an error for which $q / v = g^2 / (1 - g)$.
        """
        return self.gains.square() / (1.0 - self.gains)

    def remembered(self, num_rows: int) -> Float[Tensor, " e"]:
        """The share of what is known that is left after some rows."""
        return 0.5 ** (num_rows / self.half_lives)
