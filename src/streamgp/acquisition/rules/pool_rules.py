"""Rules that score the members of a pool, and choose them one after the other."""

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

from jaxtyping import Float, Int
from torch import Tensor

from streamgp.acquisition.abstract_rule import AbstractRule
from streamgp.acquisition.context import Context
from streamgp.acquisition.hotspot_entropy import HotspotRule, score_hotspot_entropy
from streamgp.acquisition.integrated_variance import (
    bound_integrated_variance,
    score_integrated_variance,
    score_latent_variance,
    score_response_variance,
)
from streamgp.acquisition.pool import Bound, Pool, choose_greedily
from streamgp.acquisition.response import latent_threshold, score_exceedance
from streamgp.errors import OptionError, UnsupportedError
from streamgp.likelihoods import AbstractLikelihood
from streamgp.storage import register

__all__ = [
    "AbstractPoolRule",
    "Exceedance",
    "HotspotEntropy",
    "IntegratedVariance",
    "LatentVariance",
    "ResponseVariance",
]


class AbstractPoolRule(AbstractRule):
    """A rule that scores single members of a pool, given which others will be observed."""

    @abstractmethod
    def score(self, pool: Pool, candidates: Int[Tensor, " c"]) -> Float[Tensor, " c"]:
        """Score candidates; the largest is best."""

    @property
    def bound(self) -> Bound | None:
        """Bound on scores when one more member is observed; None where nothing is known of it."""
        return None

    def check(self, likelihood: AbstractLikelihood) -> None:
        """Refuse outcomes that the rule is not for."""
        return

    def propose(self, context: Context, q: int, *, seed: int) -> Tensor:
        """Choose members one after the other."""
        if context.pool is None:
            raise UnsupportedError(
                f"{type(self).__name__} scores the members of a pool, but the space has none. Use PoolLearner."
            )
        candidates = context.space.all_points()
        return choose_greedily(self.score, context.pool, candidates, q, bound=self.bound)


class AbstractThresholdRule(AbstractPoolRule):
    """A rule that looks at which side of a threshold members are on."""

    threshold: float | None
    needs_threshold: ClassVar[bool] = True

    def with_threshold(self, threshold: float | None) -> "AbstractThresholdRule":
        """The rule with a threshold, unless it has its own."""
        return self if self.threshold is not None else replace(self, threshold=threshold)  # type: ignore[type-var]

    def check(self, likelihood: AbstractLikelihood) -> None:
        """Refuse to go without a threshold, or with one that is no response."""
        if self.threshold is not None:
            latent_threshold(likelihood, self.threshold)
        elif self.needs_threshold:
            raise OptionError(
                f"The rule {type(self).__name__} needs a threshold, on the scale of the response: a prevalence, a "
                "rate or a value. Pass threshold=0.1, for example."
            )


@register
@final
@dataclass(frozen=True)
class IntegratedVariance(AbstractPoolRule):
    """The reduction of the latent variance over the pool."""

    def score(self, pool: Pool, candidates: Tensor) -> Tensor:
        """As `integrated_variance`."""
        return score_integrated_variance(pool, candidates)

    @property
    def bound(self) -> Bound:
        """As `bound_integrated_variance`."""
        return bound_integrated_variance


@register
@final
@dataclass(frozen=True)
class LatentVariance(AbstractPoolRule):
    """The variance of the latent function at a member."""

    def score(self, pool: Pool, candidates: Tensor) -> Tensor:
        """As `latent_variance`."""
        return score_latent_variance(pool, candidates)


@register
@final
@dataclass(frozen=True)
class ResponseVariance(AbstractThresholdRule):
    """The reduction of the variance of the response, and with a threshold of which side each member is on.

    Attributes:
        threshold: Of the response; None for none.
    """

    threshold: float | None = None
    needs_threshold: ClassVar[bool] = False

    def score(self, pool: Pool, candidates: Tensor) -> Tensor:
        """As `response_variance`."""
        return score_response_variance(pool, candidates, self.threshold)


@register
@final
@dataclass(frozen=True)
class Exceedance(AbstractThresholdRule):
    """The uncertainty about which side of a threshold a member is on.

    Attributes:
        threshold: Of the response; that of the learner by default.
    """

    threshold: float | None = None

    def score(self, pool: Pool, candidates: Tensor) -> Tensor:
        """As `exceedance`."""
        assert self.threshold is not None
        return score_exceedance(pool, candidates, self.threshold)


@register
@final
@dataclass(frozen=True)
class HotspotEntropy(AbstractThresholdRule):
    """The expected reduction of the entropy of members above a threshold.

    Attributes:
        threshold: The prevalence above which a member is a hotspot; that of the learner by default.
        is_clipped: Whether outcomes that raise the entropy count as zero, without which little is left of the score.
        num_outcomes: Outcomes of each candidate.
    """

    threshold: float | None = None
    is_clipped: bool = True
    num_outcomes: int = 16

    def score(self, pool: Pool, candidates: Tensor) -> Tensor:
        """As `hotspot_entropy`."""
        return score_hotspot_entropy(pool, candidates, self._options())

    def check(self, likelihood: Any) -> None:
        """Refuse outcomes without a prevalence."""
        super().check(likelihood)
        self._options().check_likelihood(likelihood)

    def _options(self) -> HotspotRule:
        assert self.threshold is not None
        return HotspotRule(self.threshold, self.is_clipped, self.num_outcomes)
