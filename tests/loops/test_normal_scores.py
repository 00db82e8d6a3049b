"""Normal scores of ranks: an increasing map that comes back."""

import pytest
import torch
from scipy.stats import norm, rankdata
from torch.testing import assert_close

from streamgp.loops.units import find_scores
from streamgp.testing.tolerances import tolerance


@pytest.fixture(params=[torch.float32, torch.float64])
def outcomes(request, rng):
    y = torch.cat([torch.randn(30, generator=rng), 1000.0 + torch.rand(9, generator=rng), torch.tensor([3.0, 3.0])])
    return y.to(request.param)


def test_scores_are_normal_quantiles_of_mean_ranks(outcomes):
    expected = norm.ppf((rankdata(outcomes.numpy()) - 0.5) / len(outcomes))
    scores = find_scores(outcomes).scores_of(outcomes)
    assert scores.dtype == outcomes.dtype
    assert_close(scores, torch.as_tensor(expected).to(scores), **tolerance(outcomes.dtype, scale=3.0))


def test_the_map_comes_back_and_increases_also_beyond_what_was_seen(outcomes):
    ranks = find_scores(outcomes)
    at = torch.linspace(-900.0, 3000.0, 200).to(outcomes)
    scores = ranks.scores_of(at)
    assert (scores.diff() > 0).all()
    steepest = float(ranks.slope(scores).max())
    assert_close(ranks.outcomes_of(scores), at, **tolerance(outcomes.dtype, scale=3000.0 + 3.0 * steepest))
    assert find_scores(outcomes.flip(0)) == ranks


def test_the_slope_is_the_derivative_of_the_way_back(rng):
    ranks = find_scores(torch.randn(20, generator=rng, dtype=torch.float64))
    middles = torch.tensor(ranks.scores, dtype=torch.float64)
    at = torch.cat([middles[:1] - 1.0, 0.5 * (middles[1:] + middles[:-1]), middles[-1:] + 1.0]).requires_grad_()
    (gradient,) = torch.autograd.grad(ranks.outcomes_of(at).sum(), at)
    assert_close(ranks.slope(at.detach()), gradient, **tolerance(torch.float64))
    assert (gradient > 0).all()


def test_outcomes_that_are_all_alike_have_no_scores():
    assert find_scores(torch.full((4,), 2.0)) is None
