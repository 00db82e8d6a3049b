"""Acquisition: rules that choose points as objects, and the functions behind them."""

from streamgp.acquisition.abstract_rule import AbstractDrawingRule, AbstractFunctionRule, AbstractRule, Choice
from streamgp.acquisition.context import Context
from streamgp.acquisition.evidence_value import Offer, ValuedEvidence, value_evidence
from streamgp.acquisition.goals import AbstractGoal, Band, Hotspots, LevelSet, Map
from streamgp.acquisition.hotspot_entropy import hotspot_entropy
from streamgp.acquisition.integrated_variance import integrated_variance, latent_variance, response_variance
from streamgp.acquisition.lookahead_thompson import lookahead_thompson_sampling
from streamgp.acquisition.response import exceedance
from streamgp.acquisition.rules.goal_rules import (
    AbstractGoalRule,
    ExpectedVolumeChange,
    GlobalMutualInformation,
    IntegratedError,
    StepwiseUncertaintyReduction,
)
from streamgp.acquisition.rules.hypervolume import HypervolumeKnowledgeGradient, NoisyHypervolumeImprovement
from streamgp.acquisition.rules.improvement import (
    ExpectedImprovement,
    ExpectedUtilityOfBest,
    Gibbon,
    NoisyExpectedImprovement,
    UpperConfidenceBound,
)
from streamgp.acquisition.rules.knowledge_gradient import KnowledgeGradient, MultiStep
from streamgp.acquisition.rules.pool_rules import (
    AbstractPoolRule,
    Exceedance,
    HotspotEntropy,
    IntegratedVariance,
    LatentVariance,
    ResponseVariance,
)
from streamgp.acquisition.rules.sampling import LookaheadThompson, Random, Thompson
from streamgp.acquisition.rules.trust_region_rule import TrustRegion
from streamgp.acquisition.space import AbstractSpace, Search
from streamgp.acquisition.thompson import thompson_sampling
from streamgp.acquisition.trust_region import RegionRules

__all__ = [
    "AbstractDrawingRule",
    "AbstractFunctionRule",
    "AbstractGoal",
    "AbstractGoalRule",
    "AbstractPoolRule",
    "AbstractRule",
    "AbstractSpace",
    "Band",
    "Choice",
    "Context",
    "Exceedance",
    "ExpectedImprovement",
    "ExpectedUtilityOfBest",
    "ExpectedVolumeChange",
    "Gibbon",
    "GlobalMutualInformation",
    "HotspotEntropy",
    "Hotspots",
    "HypervolumeKnowledgeGradient",
    "IntegratedError",
    "IntegratedVariance",
    "KnowledgeGradient",
    "LatentVariance",
    "LevelSet",
    "LookaheadThompson",
    "Map",
    "MultiStep",
    "NoisyExpectedImprovement",
    "NoisyHypervolumeImprovement",
    "Offer",
    "Random",
    "RegionRules",
    "ResponseVariance",
    "Search",
    "StepwiseUncertaintyReduction",
    "Thompson",
    "TrustRegion",
    "UpperConfidenceBound",
    "ValuedEvidence",
    "exceedance",
    "hotspot_entropy",
    "integrated_variance",
    "latent_variance",
    "lookahead_thompson_sampling",
    "response_variance",
    "thompson_sampling",
    "value_evidence",
]
