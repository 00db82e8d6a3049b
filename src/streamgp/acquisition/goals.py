"""Questions that a map is learned for: where is it above, where is it within, what is it everywhere."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.acquisition.response import latent_threshold
from streamgp.checks import check_choice
from streamgp.errors import ValueRangeError
from streamgp.likelihoods import AbstractLikelihood
from streamgp.storage import register

__all__ = ["AbstractGoal", "AbstractRegionGoal", "Band", "Hotspots", "LevelSet", "Map"]

_SCALES = ("response", "latent")


class AbstractGoal(ABC):
    """Question that a map is learned for; a frozen dataclass."""

    @property
    @abstractmethod
    def threshold(self) -> float | None:
        """Of the response, for predictions of the probability to exceed it; None if there is none."""

    @abstractmethod
    def check(self, likelihood: AbstractLikelihood) -> None:
        """Refuse thresholds that are no response of the likelihood."""


class AbstractRegionGoal(AbstractGoal):
    """A goal that is a region: the places whose latent value is between edges."""

    @abstractmethod
    def edges(self, likelihood: AbstractLikelihood) -> tuple[float, ...]:
        """Latent values between which the region lies: one, above which it does, or two."""

    def check(self, likelihood: AbstractLikelihood) -> None:
        """Refuse thresholds that are no response of the likelihood."""
        self.edges(likelihood)

    def probability(
        self, likelihood: AbstractLikelihood, mean: Float[Tensor, " n"], variance: Float[Tensor, " n"]
    ) -> Float[Tensor, " n"]:
        """Probability that places belong to the region.

        Args:
            likelihood: Gives the response.
            mean: Latent means.
            variance: Latent variances.
        """
        deviation = variance.clamp_min(torch.finfo(variance.dtype).tiny).sqrt()
        low, *high = ((mean - edge) / deviation for edge in self.edges(likelihood))
        above: Tensor = torch.special.ndtr(low)
        return above - torch.special.ndtr(high[0]) if high else above


@register
@final
@dataclass(frozen=True)
class LevelSet(AbstractRegionGoal):
    """Question where a response is above a threshold.

    ```python
    learner = sg.Learner({"contrast": sg.Real(0, 1), "size": sg.Real(0.1, 4)}, likelihood="bernoulli",
                         goal=sg.LevelSet(0.75))
    learner.tell(learner.ask(3), [0, 1, 1])
    ```

    Attributes:
        level: The threshold.
        of: `"response"` (a probability, a rate, a value) or `"latent"`.
    """

    level: float
    of: str = "response"

    def __post_init__(self) -> None:
        """Check the scale."""
        check_choice(self.of, _SCALES, "of")
        _check_number(self.level, "level")

    @property
    def threshold(self) -> float | None:
        """The level, if it is of the response."""
        return float(self.level) if self.of == "response" else None

    def edges(self, likelihood: AbstractLikelihood) -> tuple[float, ...]:
        """The latent value of the level."""
        return (_latent(self.level, self.of, likelihood),)


@register
@final
@dataclass(frozen=True)
class Band(AbstractRegionGoal):
    """Question where a response is between two values: a process window.

    Attributes:
        low: Lower end.
        high: Upper end.
        of: `"response"` or `"latent"`.
    """

    low: float
    high: float
    of: str = "response"

    def __post_init__(self) -> None:
        """Check the ends."""
        check_choice(self.of, _SCALES, "of")
        _check_number(self.low, "low")
        _check_number(self.high, "high")
        if not self.low < self.high:
            raise ValueRangeError(f"low must be below high, but the band goes from {self.low:g} to {self.high:g}.")

    @property
    def threshold(self) -> float | None:
        """None, as there are two."""
        return None

    def edges(self, likelihood: AbstractLikelihood) -> tuple[float, ...]:
        """The latent values of both ends."""
        return (_latent(self.low, self.of, likelihood), _latent(self.high, self.of, likelihood))


@register
@final
@dataclass(frozen=True)
class Map(AbstractGoal):
    """Question what a response is everywhere: the latent variance, summed over all places, is to be small."""

    @property
    def threshold(self) -> float | None:
        """None, as no level matters."""
        return None

    def check(self, likelihood: AbstractLikelihood) -> None:
        """Accept every likelihood."""


@register
@final
@dataclass(frozen=True)
class Hotspots(AbstractGoal):
    """Question which members of a pool have a prevalence above a threshold, where that is rare.

    Attributes:
        level: The prevalence.
        is_clipped: Whether outcomes that raise the entropy count as zero, without which little is left of the score.
    """

    level: float
    is_clipped: bool = True

    def __post_init__(self) -> None:
        """Check the level."""
        _check_number(self.level, "level")

    @property
    def threshold(self) -> float | None:
        """The level."""
        return float(self.level)

    def check(self, likelihood: AbstractLikelihood) -> None:
        """Refuse a level that is no prevalence."""
        latent_threshold(likelihood, self.level)


def _check_number(value: object, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value or abs(value) == float("inf"):
        raise ValueRangeError(f"{name} must be a finite number, but is {value!r}. Write LevelSet(0.75), for example.")


def _latent(value: float, of: str, likelihood: AbstractLikelihood) -> float:
    return float(value) if of == "latent" else latent_threshold(likelihood, value)
