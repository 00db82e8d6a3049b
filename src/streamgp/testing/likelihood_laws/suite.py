"""The laws of every likelihood, as a suite of tests to inherit.

class TestPoisson(LikelihoodLaws):
    covers = "Poisson"
    is_discrete = True
    support = (0.0, 200.0)
    refused = ((-1.0, "whole numbers"),)

    def likelihood(self):
        return Poisson(exposure=2.0)

    def targets(self, rng, n, dtype):
        return torch.randint(0, 9, (n,), generator=rng).to(dtype)
"""

from streamgp.testing.likelihood_laws.constants import ConstantLaws
from streamgp.testing.likelihood_laws.densities import DensityLaws
from streamgp.testing.likelihood_laws.numbers import NumberLaws
from streamgp.testing.likelihood_laws.predictions import PredictionLaws

__all__ = ["LikelihoodLaws"]


class LikelihoodLaws(DensityLaws, PredictionLaws, NumberLaws, ConstantLaws):
    """Tests that hold for every likelihood."""
