"""The laws of every likelihood, as a suite of tests to inherit."""

from streamgp.testing.likelihood_laws.suite import LikelihoodLaws

__all__ = ["LikelihoodLaws"]
