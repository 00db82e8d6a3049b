import math

import pytest
import torch
from tests.support.pool_laws import PoolLaws
from tests.support.problems import random_sparse_gp
from torch.testing import assert_close

from streamgp.acquisition import exceedance
from streamgp.errors import ValueRangeError
from streamgp.likelihoods import Bernoulli, Binomial, Gaussian, NegativeBinomial, Poisson, StudentT
from streamgp.testing.tolerances import sampling


class TestExceedance(PoolLaws):
    covers = "exceedance"

    def score(self, gp, pool_X, candidates=None, *, likelihood, pending=None):
        return exceedance(gp, pool_X, candidates, likelihood=likelihood, threshold=0.4, pending=pending)


@pytest.mark.parametrize(
    ("likelihood", "threshold", "response"),
    [
        (Gaussian(), 0.2, lambda f: f),
        (StudentT(), -0.3, lambda f: f),
        (Binomial(20), 0.3, torch.sigmoid),
        (Bernoulli("probit"), 0.3, torch.special.ndtr),
        (Poisson(5.0), 0.8, torch.exp),
        (NegativeBinomial(), 0.8, torch.exp),
    ],
    ids=lambda value: type(value).__name__,
)
def test_it_is_the_entropy_of_the_share_of_samples_above_the_threshold(rng, likelihood, threshold, response):
    gp, X = random_sparse_gp(rng).gp, torch.rand(6, 2, generator=rng, dtype=torch.float64)
    share = (response(gp.sample(X, 40_000, generator=rng)) > threshold).double().mean(0)
    expected = -share * share.log() - (1 - share) * (1 - share).log()
    # The standard error of a share, times the slope of the entropy.
    error = (share * (1 - share) / 40_000).sqrt() * torch.logit(share).abs()
    found = exceedance(gp, X, likelihood=likelihood, threshold=threshold)
    assert_close(found, expected, **sampling(float(error.max())))


def test_it_is_largest_where_both_sides_are_as_likely(rng):
    gp, X = random_sparse_gp(rng).gp, torch.rand(6, 2, generator=rng, dtype=torch.float64)
    level = float(gp.predict(X).mean[2])
    scores = exceedance(gp, X, likelihood=Gaussian(), threshold=level)
    assert int(scores.argmax()) == 2
    assert math.isclose(float(scores[2]), math.log(2.0))
    assert not exceedance(gp, X, likelihood=Gaussian(), threshold=1e6).any()


def test_thresholds_beyond_what_is_possible_are_refused(rng):
    gp, X = random_sparse_gp(rng).gp, torch.rand(6, 2, generator=rng, dtype=torch.float64)
    with pytest.raises(ValueRangeError, match="must be a prevalence between 0 and 1, but is 20"):
        exceedance(gp, X, likelihood=Binomial(100), threshold=20)
    with pytest.raises(ValueRangeError, match="must be a positive, finite rate"):
        exceedance(gp, X, likelihood=Poisson(), threshold=-1.0)
    with pytest.raises(ValueRangeError, match="threshold of a Gaussian likelihood must be finite, but is nan"):
        exceedance(gp, X, likelihood=Gaussian(), threshold=math.nan)
