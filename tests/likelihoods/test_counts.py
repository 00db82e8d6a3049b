import pytest
import torch

from streamgp.errors import SupportError
from streamgp.likelihoods import NegativeBinomial, Poisson
from streamgp.likelihoods.counts import sample_counts
from streamgp.likelihoods.parameters import check_counts


@pytest.mark.parametrize("likelihood", [Poisson(2.0), NegativeBinomial()])
def test_a_quantile_is_the_first_count_whose_cumulative_probability_reaches_it(likelihood):
    mean, variance = torch.tensor([-1.0, 1.0, 2.5]).double(), torch.tensor([0.1, 0.5, 1.0]).double()
    for probability in (0.05, 0.5, 0.9):
        count = likelihood.predictive_quantiles(mean, variance, [probability]).squeeze(-1)
        at, before = (likelihood.predictive_cumulative(mean, variance, count - k) for k in (0.0, 1.0))
        assert bool((at >= probability).all())
        assert bool(((before < probability) | (count == 0)).all())


def test_counts_are_whole_and_not_negative():
    for good in (torch.tensor([4.0]), torch.tensor([0.0, 7.0])):
        assert check_counts(good, "Poisson") is good
    for bad in (-1.0, 0.5, float("nan"), float("inf")):
        with pytest.raises(SupportError, match="Poisson"):
            check_counts(torch.tensor([bad]), "Poisson")


def test_counts_of_enormous_rates_are_drawn(rng):
    drawn = sample_counts(torch.tensor([1e300], dtype=torch.float64), generator=rng)
    assert bool(torch.isfinite(drawn).all())
    assert float(drawn) > 0
