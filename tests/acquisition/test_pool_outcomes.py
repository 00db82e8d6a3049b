import pytest
import torch
from torch.testing import assert_close

from streamgp.acquisition.pool_outcomes import representative_outcomes
from streamgp.likelihoods import Bernoulli, Binomial
from streamgp.testing.tolerances import approximation

MEAN = torch.tensor([-3.0, -1.0, 0.5], dtype=torch.float64)
VARIANCE = torch.tensor([0.2, 1.5, 0.01], dtype=torch.float64)


@pytest.mark.parametrize(
    "likelihood", [Bernoulli(), Bernoulli("probit"), Binomial(7)], ids=["logit", "probit", "seven"]
)
def test_few_outcomes_are_all_there_with_their_probabilities(likelihood):
    outcomes, probability = representative_outcomes(likelihood, MEAN, VARIANCE, 16)
    assert torch.equal(outcomes[0], torch.arange(outcomes.shape[-1]).double())
    density = likelihood.log_predictive_density(MEAN.unsqueeze(-1), VARIANCE.unsqueeze(-1), outcomes)
    assert_close(probability, density.exp(), **approximation(1e-4, "quadrature", scale=0.01))


@pytest.mark.parametrize("total", [100, 1000, 100_000])
def test_parts_keep_the_mean_and_nearly_the_variance_of_the_outcome(total):
    likelihood = Binomial(total)
    outcomes, probability = representative_outcomes(likelihood, MEAN, VARIANCE, 16)
    assert outcomes.shape == probability.shape == (3, 16)
    assert_close(probability.sum(-1), torch.ones(3, dtype=torch.float64))
    assert (outcomes.diff(dim=-1) >= 0).all()
    mean = likelihood.predictive_mean(MEAN, VARIANCE)
    assert_close((outcomes * probability).sum(-1), mean, **approximation(2e-3, "quadrature", scale=0.0))
    spread = ((outcomes - mean.unsqueeze(-1)).square() * probability).sum(-1) / likelihood.predictive_variance(
        MEAN, VARIANCE
    )
    assert (spread > 0.9).all()
    assert (spread < 1.01).all()


def test_totals_may_differ_and_be_zero():
    likelihood = Binomial(torch.tensor([40.0, 0.0, 3.0]))
    outcomes, probability = representative_outcomes(likelihood, MEAN, VARIANCE, 16)
    assert not outcomes[1].any()
    assert (outcomes <= likelihood.total_count.unsqueeze(-1)).all()
    mean = (outcomes * probability).sum(-1)
    assert_close(mean, likelihood.predictive_mean(MEAN, VARIANCE), **approximation(1e-4, "quadrature", scale=0.01))
