"""Names that are short for rules with their defaults."""

from collections.abc import Mapping
from typing import Any

from streamgp.acquisition.abstract_rule import AbstractRule
from streamgp.acquisition.rules.goal_rules import (
    ExpectedVolumeChange,
    GlobalMutualInformation,
    StepwiseUncertaintyReduction,
)
from streamgp.acquisition.rules.hypervolume import HypervolumeKnowledgeGradient, NoisyHypervolumeImprovement
from streamgp.acquisition.rules.improvement import (
    ExpectedImprovement,
    Gibbon,
    NoisyExpectedImprovement,
    UpperConfidenceBound,
)
from streamgp.acquisition.rules.knowledge_gradient import KnowledgeGradient, MultiStep
from streamgp.acquisition.rules.pool_rules import (
    Exceedance,
    HotspotEntropy,
    IntegratedVariance,
    LatentVariance,
    ResponseVariance,
)
from streamgp.acquisition.rules.sampling import LookaheadThompson, Random, Thompson
from streamgp.errors import ArgumentTypeError, OptionError

__all__ = ["OPTIMIZER_RULES", "POOL_RULES", "REGION_RULES", "read_rule"]

OPTIMIZER_RULES: Mapping[str, type[AbstractRule]] = {
    "qkg": KnowledgeGradient,
    "qnei": NoisyExpectedImprovement,
    "qei": ExpectedImprovement,
    "qucb": UpperConfidenceBound,
    "gibbon": Gibbon,
    "multi_step": MultiStep,
    "qnehvi": NoisyHypervolumeImprovement,
    "qhvkg": HypervolumeKnowledgeGradient,
    "thompson": Thompson,
    "lookahead_thompson": LookaheadThompson,
    "random": Random,
}
REGION_RULES: Mapping[str, type[AbstractRule]] = {"thompson": Thompson, "lookahead_thompson": LookaheadThompson}
POOL_RULES: Mapping[str, type[AbstractRule]] = {
    "integrated_variance": IntegratedVariance,
    "response_variance": ResponseVariance,
    "hotspot_entropy": HotspotEntropy,
    "exceedance": Exceedance,
    "uncertainty_reduction": StepwiseUncertaintyReduction,
    "mutual_information": GlobalMutualInformation,
    "volume_change": ExpectedVolumeChange,
    "variance": LatentVariance,
    "thompson": Thompson,
    "random": Random,
}
_FORMER = {"lts": "lookahead_thompson", "ts": "thompson"}


def read_rule(acquisition: Any, names: Mapping[str, type[AbstractRule]]) -> AbstractRule:
    """A rule as it is, or the one that a name is short for.

    Args:
        acquisition: Rule or name.
        names: Rules by name.
    """
    if isinstance(acquisition, AbstractRule):
        return acquisition
    if not isinstance(acquisition, str):
        raise ArgumentTypeError(
            f"acquisition must be a name or a rule, an object of a class that derives from "
            f"streamgp.acquisition.AbstractRule, but is a {type(acquisition).__name__}."
        )
    if acquisition not in names:
        hint = f" Its name is {_FORMER[acquisition]!r} now." if acquisition in _FORMER else ""
        raise OptionError(
            f"acquisition must be one of {', '.join(map(repr, names))}, or a rule of streamgp.acquisition, but is "
            f"{acquisition!r}.{hint}"
        )
    return names[acquisition]()
