from dataclasses import replace

import pytest
import torch
from tests.support.pool_laws import PoolLaws
from tests.support.problems import random_sparse_gp
from torch.testing import assert_close

from streamgp.acquisition import integrated_variance
from streamgp.acquisition.integrated_variance import bound_integrated_variance, score_integrated_variance
from streamgp.acquisition.pool import Pool, choose_greedily
from streamgp.errors import NumericalError, ShapeError, ValueRangeError
from streamgp.likelihoods import Binomial, Gaussian, Poisson
from streamgp.testing.tolerances import tolerance


class TestIntegratedVariance(PoolLaws):
    covers = "integrated_variance"

    def score(self, gp, pool_X, candidates=None, *, likelihood, pending=None):
        return integrated_variance(gp, pool_X, candidates, likelihood=likelihood, pending=pending)


def brute_force(gp, X, noise, *, targets, weights):
    """Condition on each candidate with noise of its own, and sum what the variances lose."""
    before = gp.predict(X[targets]).variance
    gains = []
    for x, variance in zip(X, noise, strict=True):
        after = gp.condition(x.unsqueeze(0), torch.zeros(1, dtype=X.dtype), noise_variance=float(variance))
        gains.append(((before - after.predict(X[targets]).variance) * weights[targets]).sum())
    return torch.stack(gains)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_it_is_what_conditioning_on_each_candidate_takes_from_the_variances(rng, dtype):
    gp = random_sparse_gp(rng, dtype=dtype).gp
    X = torch.rand(12, 2, generator=rng, dtype=torch.float64).to(dtype)
    noise, weights = (torch.rand(12, generator=rng, dtype=torch.float64).to(dtype) + 0.05 for _ in range(2))
    targets = [0, 3, 4, 9]
    found = integrated_variance(gp, X, likelihood=Gaussian(noise), targets=targets, weights=weights)
    assert_close(found, brute_force(gp, X, noise, targets=targets, weights=weights), **tolerance(dtype))


def test_the_noise_of_a_count_is_the_inverse_of_its_expected_information(rng):
    gp, X = random_sparse_gp(rng).gp, torch.rand(12, 2, generator=rng, dtype=torch.float64)
    prediction = gp.predict(X)
    # The Fisher information of a Poisson rate exp(f) about f is the rate, whose mean is that of a log-normal.
    noise = (-prediction.mean - 0.5 * prediction.variance).exp() / 3.0
    found = integrated_variance(gp, X, likelihood=Poisson(3.0))
    everyone = torch.ones(12, dtype=torch.float64)
    expected = brute_force(gp, X, noise, targets=torch.arange(12), weights=everyone)
    assert_close(found, expected, **tolerance(X.dtype))


def test_a_greedy_batch_is_conditioning_one_after_the_other(rng):
    gp, X = random_sparse_gp(rng).gp, torch.rand(12, 2, generator=rng, dtype=torch.float64)
    noise, everyone = torch.full((12,), 0.1, dtype=torch.float64), torch.ones(12, dtype=torch.float64)
    pool = Pool.read(gp, X, likelihood=Gaussian(0.1), targets=None, weights=None, pending=None)
    chosen = choose_greedily(score_integrated_variance, pool, torch.arange(12), 4).tolist()
    expected, now = [], gp
    for _ in range(4):
        gains = brute_force(now, X, noise, targets=torch.arange(12), weights=everyone)
        gains[expected] = -1.0
        expected.append(int(gains.argmax()))
        place = X[expected[-1:]]
        now = now.condition(place, torch.zeros(1, dtype=X.dtype), noise_variance=0.1)
    assert chosen == expected


def test_no_trials_and_no_weight_gain_nothing(rng):
    gp, X = random_sparse_gp(rng).gp, torch.rand(3, 2, generator=rng, dtype=torch.float64)
    gains = integrated_variance(gp, X, likelihood=Binomial(torch.tensor([10.0, 0.0, 10.0])))
    assert gains[1] == 0
    assert (gains[[0, 2]] > 0).all()


def test_weights_that_make_no_sense_are_refused(rng):
    gp, X = random_sparse_gp(rng).gp, torch.rand(3, 2, generator=rng, dtype=torch.float64)
    with pytest.raises(ShapeError, match=r"weights must have shape \(3,\)"):
        integrated_variance(gp, X, likelihood=Gaussian(), weights=[1.0, 2.0])
    with pytest.raises(ValueRangeError, match="weights must not be negative"):
        integrated_variance(gp, X, likelihood=Gaussian(), weights=[1.0, 2.0, -1.0])


def test_scores_that_are_not_numbers_choose_nothing(rng):
    X = torch.rand(3, 2, generator=rng, dtype=torch.float64)
    pool = Pool.read(random_sparse_gp(rng).gp, X, likelihood=Gaussian(), targets=None, weights=None, pending=None)
    with pytest.raises(NumericalError, match="1 of 3 scores of members are NaN"):
        choose_greedily(lambda pool, members: torch.tensor([1.0, torch.nan, 0.0]), pool, torch.arange(3), 1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("likelihood", [Gaussian(0.1), Poisson(3.0)])
def test_scores_after_an_observation_are_within_their_bound(rng, likelihood, dtype):
    gp = random_sparse_gp(rng, dtype=dtype).gp
    X = torch.rand(30, 2, generator=rng, dtype=torch.float64).to(dtype)
    weights = torch.rand(30, generator=rng, dtype=torch.float64)
    pool = Pool.read(gp, X, likelihood=likelihood, targets=list(range(0, 30, 2)), weights=weights, pending=None)
    everyone = torch.arange(30)
    limits = score_integrated_variance(pool, everyone)
    for member in (3, 17, 3):
        after = pool.awaiting(member)
        limits = bound_integrated_variance(pool, after, everyone, limits)
        assert (score_integrated_variance(after, everyone) <= limits * (1.0 + tolerance(dtype)["rtol"])).all()
        pool = after


def test_the_bound_of_one_weighed_target_is_that_of_it_alone(rng):
    gp, X = random_sparse_gp(rng).gp, torch.rand(9, 2, generator=rng, dtype=torch.float64)
    weights = torch.zeros(9, dtype=torch.float64)
    weights[4] = 0.3
    limits = []
    for options in ({"targets": None, "weights": weights}, {"targets": [4], "weights": weights}):
        pool = Pool.read(gp, X, likelihood=Gaussian(0.1), pending=None, **options)
        scores = score_integrated_variance(pool, torch.arange(9))
        limits.append(bound_integrated_variance(pool, pool.awaiting(2), torch.arange(9), scores))
    assert_close(limits[0], limits[1], **tolerance(X.dtype))


def test_what_was_worth_nothing_is_bounded_by_what_the_observation_takes(rng):
    gp, x = random_sparse_gp(rng).gp, torch.rand(1, 2, generator=rng, dtype=torch.float64)
    before = Pool.read(gp, x, likelihood=Gaussian(0.1), targets=None, weights=None, pending=None)
    after = before.awaiting(0)
    limits = bound_integrated_variance(before, after, torch.tensor([0]), torch.zeros(1, dtype=torch.float64))
    expected = after.belief.roots[-1] ** 4 / (0.1 + after.belief.variance)
    assert_close(limits, expected, **tolerance(torch.float64))


def test_members_without_information_have_no_bound(rng):
    gp, X = random_sparse_gp(rng).gp, torch.rand(3, 2, generator=rng, dtype=torch.float64)
    likelihood = Binomial(torch.tensor([10.0, 0.0, 10.0]))
    pool = Pool.read(gp, X, likelihood=likelihood, targets=None, weights=None, pending=None)
    limits = bound_integrated_variance(
        pool, pool.awaiting(0), torch.arange(3), integrated_variance(gp, X, likelihood=likelihood)
    )
    assert limits[1] == torch.inf
    assert limits[[0, 2]].isfinite().all()


@pytest.mark.parametrize("has_costs", [False, True])
def test_members_that_cannot_be_best_are_not_scored_again(rng, has_costs):
    gp, X = random_sparse_gp(rng).gp, 20.0 * torch.rand(4000, 2, generator=rng, dtype=torch.float64)
    pool = Pool.read(gp, X, likelihood=Gaussian(0.1), targets=list(range(40)), weights=None, pending=None)
    if has_costs:
        pool = replace(pool, costs=torch.rand(4000, generator=rng, dtype=torch.float64) + 0.5)
    numbers: list[int] = []

    def score(pool, candidates):
        numbers.append(len(candidates))
        return score_integrated_variance(pool, candidates)

    chosen = choose_greedily(score, pool, torch.arange(4000), 5, bound=bound_integrated_variance)
    assert sum(numbers) < 3 * 4000
    assert torch.equal(chosen, choose_greedily(score_integrated_variance, pool, torch.arange(4000), 5))
