"""Acquisition functions: Thompson sampling with look-ahead, and choices among the members of a pool."""

from streamgp.acquisition.exceedance import exceedance
from streamgp.acquisition.hotspot_entropy import hotspot_entropy
from streamgp.acquisition.integrated_variance import integrated_variance
from streamgp.acquisition.latent_variance import latent_variance
from streamgp.acquisition.lookahead_thompson import lookahead_thompson_sampling
from streamgp.acquisition.response_variance import response_variance
from streamgp.acquisition.thompson import thompson_sampling

__all__ = [
    "exceedance",
    "hotspot_entropy",
    "integrated_variance",
    "latent_variance",
    "lookahead_thompson_sampling",
    "response_variance",
    "thompson_sampling",
]
