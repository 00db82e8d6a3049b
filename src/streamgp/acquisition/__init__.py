"""Acquisition functions that draw functions from a model and follow them."""

from streamgp.acquisition.lts import lookahead_thompson_sampling
from streamgp.acquisition.thompson import thompson_sampling

__all__ = ["lookahead_thompson_sampling", "thompson_sampling"]
