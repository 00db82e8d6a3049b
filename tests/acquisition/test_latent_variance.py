import torch
from tests.support.pool_laws import PoolLaws
from tests.support.problems import random_sparse_gp
from torch.testing import assert_close

from streamgp.acquisition import latent_variance
from streamgp.likelihoods import Bernoulli


class TestLatentVariance(PoolLaws):
    covers = "latent_variance"

    def score(self, gp, pool_X, candidates=None, *, likelihood, pending=None):
        return latent_variance(gp, pool_X, candidates, likelihood=likelihood, pending=pending)


def test_it_is_the_variance_of_the_latent_function(rng):
    gp, X = random_sparse_gp(rng).gp, torch.rand(6, 2, generator=rng, dtype=torch.float64)
    assert_close(latent_variance(gp, X, likelihood=Bernoulli()), gp.predict(X).variance)
