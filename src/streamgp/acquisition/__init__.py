"""Acquisition: rules that choose points as objects, and the functions behind them."""

from streamgp.acquisition.abstract_rule import AbstractDrawingRule, AbstractFunctionRule, AbstractRule
from streamgp.acquisition.context import Context
from streamgp.acquisition.exceedance import exceedance
from streamgp.acquisition.hotspot_entropy import hotspot_entropy
from streamgp.acquisition.integrated_variance import integrated_variance
from streamgp.acquisition.latent_variance import latent_variance
from streamgp.acquisition.lookahead_thompson import lookahead_thompson_sampling
from streamgp.acquisition.response_variance import response_variance
from streamgp.acquisition.rules.hypervolume import NoisyHypervolumeImprovement
from streamgp.acquisition.rules.hypervolume_gradient import HypervolumeKnowledgeGradient
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
from streamgp.acquisition.search import Search
from streamgp.acquisition.space import AbstractSpace
from streamgp.acquisition.thompson import thompson_sampling
from streamgp.acquisition.trust_region import RegionRules

__all__ = [
    "AbstractDrawingRule",
    "AbstractFunctionRule",
    "AbstractPoolRule",
    "AbstractRule",
    "AbstractSpace",
    "Context",
    "Exceedance",
    "ExpectedImprovement",
    "ExpectedUtilityOfBest",
    "Gibbon",
    "HotspotEntropy",
    "HypervolumeKnowledgeGradient",
    "IntegratedVariance",
    "KnowledgeGradient",
    "LatentVariance",
    "LookaheadThompson",
    "MultiStep",
    "NoisyExpectedImprovement",
    "NoisyHypervolumeImprovement",
    "Random",
    "RegionRules",
    "ResponseVariance",
    "Search",
    "Thompson",
    "TrustRegion",
    "UpperConfidenceBound",
    "exceedance",
    "hotspot_entropy",
    "integrated_variance",
    "latent_variance",
    "lookahead_thompson_sampling",
    "response_variance",
    "thompson_sampling",
]
