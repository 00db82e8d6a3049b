import math

import pytest
import torch
from tests.support.pool_laws import PoolLaws
from tests.support.problems import random_sparse_gp
from torch.testing import assert_close

from streamgp.acquisition import hotspot_entropy
from streamgp.acquisition.hotspot_entropy import HotspotRule, score_hotspot_entropy
from streamgp.acquisition.pool import Pool, choose_greedily
from streamgp.errors import UnsupportedError, ValueRangeError
from streamgp.likelihoods import Bernoulli, Binomial, Gaussian
from streamgp.testing.tolerances import approximation, rounding

THRESHOLD = 0.4


class TestHotspotEntropy(PoolLaws):
    covers = "hotspot_entropy"
    least_precise = torch.float32  # that of the table

    def score(self, gp, pool_X, candidates=None, *, likelihood, pending=None):
        return hotspot_entropy(gp, pool_X, candidates, likelihood=likelihood, threshold=THRESHOLD, pending=pending)


def entropy_above(mean, variance, link):
    """The expected entropy above the threshold, by a sum over a fine grid."""
    response = torch.sigmoid if link == "logit" else torch.special.ndtr
    low = (
        math.log(THRESHOLD / (1 - THRESHOLD))
        if link == "logit"
        else float(torch.special.ndtri(torch.tensor(THRESHOLD)))
    )
    f = torch.linspace(low, low + 25.0, 2_001, dtype=torch.float64)
    p = response(f)
    entropy = torch.special.entr(p) + torch.special.entr(1 - p)
    density = torch.distributions.Normal(mean.unsqueeze(-1), variance.sqrt().unsqueeze(-1)).log_prob(f).exp()
    return torch.trapezoid(entropy * density, f)


def brute_force(gp, X, likelihood, *, weights, is_clipped):
    """Condition on each candidate and each outcome, and average over outcomes."""
    link = likelihood.link if isinstance(likelihood, Bernoulli) else "logit"
    most = 1 if isinstance(likelihood, Bernoulli) else int(likelihood.total_count)
    y = torch.arange(most + 1.0, dtype=torch.float64).unsqueeze(-1)
    prediction = gp.predict(X)
    before = entropy_above(prediction.mean, prediction.variance, link) @ weights
    gains = []
    for x in X:
        here = gp.predict(x.unsqueeze(0))
        probability = likelihood.log_predictive_density(here.mean, here.variance, y).exp().squeeze(-1)
        after = gp.condition(x.expand(most + 1, 1, -1), y, likelihood=likelihood).predict(X)
        gain = before - torch.stack(
            [entropy_above(m, v, link) @ weights for m, v in zip(after.mean, after.variance, strict=True)]
        )
        gains.append(probability @ (gain.clamp_min(0.0) if is_clipped else gain))
    return torch.stack(gains)


@pytest.mark.slow
@pytest.mark.parametrize("is_clipped", [True, False])
@pytest.mark.parametrize(
    "likelihood", [Binomial(8), Bernoulli(), Bernoulli("probit")], ids=["binomial", "logit", "probit"]
)
def test_it_is_what_conditioning_on_each_outcome_of_each_candidate_takes_from_the_entropy(rng, likelihood, is_clipped):
    gp, X = random_sparse_gp(rng).gp, torch.rand(12, 2, generator=rng, dtype=torch.float64)
    weights = torch.rand(12, generator=rng, dtype=torch.float64)
    found = hotspot_entropy(gp, X, likelihood=likelihood, threshold=THRESHOLD, weights=weights, is_clipped=is_clipped)
    expected = brute_force(gp, X, likelihood, weights=weights, is_clipped=is_clipped)
    assert expected.abs().max() > (0.01 if is_clipped else 0.0)
    # The expectation of each target is off by 1e-4 at most.
    assert_close(found, expected, **approximation(5e-3, "quadrature", scale=0.02 * float(weights.sum())))


def test_few_outcomes_stand_for_a_hundred(rng):
    gp, X = random_sparse_gp(rng).gp, torch.rand(12, 2, generator=rng, dtype=torch.float64)

    def error(num_outcomes):
        few, everything = (
            hotspot_entropy(gp, X, likelihood=Binomial(100), threshold=THRESHOLD, num_outcomes=num)
            for num in (num_outcomes, 101)
        )
        return float((few - everything).abs().max() / everything.max())

    assert error(16) < 0.1
    assert error(48) < 0.01


def test_without_clipping_nothing_is_expected_to_be_gained(rng):
    # The entropy is a mean over the belief, and beliefs after an observation have that before as their mean.
    gp, X = random_sparse_gp(rng).gp, torch.rand(12, 2, generator=rng, dtype=torch.float64)
    clipped, plain = (
        hotspot_entropy(gp, X, likelihood=Binomial(15), threshold=THRESHOLD, is_clipped=is_clipped)
        for is_clipped in (True, False)
    )
    assert plain.abs().max() < 0.02 * clipped.max()


def test_targets_and_weights_say_what_counts(rng):
    gp, X = random_sparse_gp(rng).gp, torch.rand(12, 2, generator=rng, dtype=torch.float64)
    options = {"likelihood": Binomial(20), "threshold": THRESHOLD, "is_clipped": False}
    weights = torch.zeros(12)
    weights[[2, 5]] = 3.0
    some = hotspot_entropy(gp, X, targets=[2, 5], **options)
    # The table of entropies is in single precision.
    weighted = hotspot_entropy(gp, X, weights=weights, **options)
    assert_close(weighted, 3 * some, **rounding(torch.float32, scale=0.1))


def test_clipping_only_adds(rng):
    gp, X = random_sparse_gp(rng).gp, torch.rand(12, 2, generator=rng, dtype=torch.float64)
    clipped, plain = (
        hotspot_entropy(gp, X, likelihood=Binomial(20), threshold=THRESHOLD, is_clipped=is_clipped)
        for is_clipped in (True, False)
    )
    assert (clipped >= plain - 1e-6).all()
    assert (clipped >= 0).all()


def test_a_place_without_trials_gains_nothing(rng):
    gp, X = random_sparse_gp(rng).gp, torch.rand(3, 2, generator=rng, dtype=torch.float64)
    totals = torch.tensor([30.0, 0.0, 30.0])
    gains = hotspot_entropy(gp, X, likelihood=Binomial(totals), threshold=THRESHOLD)
    assert abs(float(gains[1])) < 1e-5
    assert (gains[[0, 2]] > 1e-3).all()


def test_a_greedy_batch_awaits_those_before(rng):
    gp, X = random_sparse_gp(rng).gp, torch.rand(12, 2, generator=rng, dtype=torch.float64)
    pool = Pool.read(gp, X, likelihood=Binomial(30), targets=None, weights=None, pending=None)
    rule = HotspotRule(THRESHOLD)
    chosen = choose_greedily(lambda p, c: score_hotspot_entropy(p, c, rule), pool, torch.arange(12), 3).tolist()
    expected = []
    for _ in range(3):
        gains = hotspot_entropy(gp, X, likelihood=Binomial(30), threshold=THRESHOLD, pending=expected)
        gains[expected] = -1.0
        expected.append(int(gains.argmax()))
    assert chosen == expected


def test_outcomes_without_a_prevalence_are_refused(rng):
    gp, X = random_sparse_gp(rng).gp, torch.rand(3, 2, generator=rng, dtype=torch.float64)
    with pytest.raises(UnsupportedError, match="Use the acquisition 'exceedance'"):
        hotspot_entropy(gp, X, likelihood=Gaussian(), threshold=0.5)
    with pytest.raises(ValueRangeError, match="must be a prevalence between 0 and 1"):
        hotspot_entropy(gp, X, likelihood=Bernoulli(), threshold=1.0)
    with pytest.raises(ValueRangeError, match="num_outcomes must be a whole number of at least 2"):
        hotspot_entropy(gp, X, likelihood=Bernoulli(), threshold=0.5, num_outcomes=1)
