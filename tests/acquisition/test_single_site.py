import pytest
import torch
from torch.testing import assert_close

from streamgp.acquisition.pool_outcomes import representative_outcomes
from streamgp.acquisition.single_site import single_site_update
from streamgp.errors import ConvergenceError
from streamgp.likelihoods import Bernoulli, Binomial
from streamgp.sites import DenseBelief, SiteRule, find_sites
from streamgp.testing.tolerances import approximation


@pytest.mark.slow
@pytest.mark.parametrize(
    ("likelihood", "outcomes"),
    [
        (Binomial(100), [0.0, 0.4, 7.0, 60.5, 100.0]),
        (Binomial(3), [0.0, 1.0, 3.0]),
        (Binomial(0), [0.0]),
        (Bernoulli(), [0.0, 1.0]),
        (Bernoulli("probit"), [0.0, 1.0]),
    ],
    ids=["hundred", "three", "none", "logit", "probit"],
)
def test_beliefs_are_those_of_the_variational_sites(likelihood, outcomes):
    mean = torch.tensor([-6.0, -2.0, 0.5], dtype=torch.float64).repeat(3).unsqueeze(-1)
    variance = torch.tensor([0.01, 0.7, 4.0], dtype=torch.float64).repeat_interleave(3).unsqueeze(-1)
    y = torch.tensor(outcomes, dtype=torch.float64).expand(9, -1)
    found_mean, found_variance = single_site_update(likelihood, mean, variance, y)
    belief = DenseBelief(mean.unsqueeze(-1), variance.reshape(9, 1, 1, 1))
    sites, _ = find_sites(belief, likelihood, y.unsqueeze(-1), SiteRule(tolerance=1e-4, max_iterations=2000))
    gain = variance / (variance + sites.variance.squeeze(-1))
    expected = mean + gain * (sites.targets.squeeze(-1) - mean)
    deviation = (variance * (1 - gain)).sqrt()
    # Sixteen nodes against thirty-two, in standard deviations of the belief after the outcome.
    assert float(((found_mean - expected) / deviation).abs().max()) < 5e-3
    assert_close(found_variance.sqrt(), deviation, **approximation(5e-3, "quadrature", scale=0.0))


@pytest.mark.parametrize("total", [1, 100, 10_000])
@pytest.mark.parametrize("variance", [1e-6, 1.0, 25.0, 400.0])
def test_the_outcomes_of_all_beliefs_converge(total, variance):
    mean = torch.linspace(-15.0, 15.0, 13, dtype=torch.float64)
    widths = torch.full_like(mean, variance)
    y, _ = representative_outcomes(Binomial(total), mean, widths, 16)
    after_mean, after_variance = single_site_update(Binomial(total), mean.unsqueeze(-1), widths.unsqueeze(-1), y)
    assert after_mean.isfinite().all()
    assert ((after_variance > 0) & (after_variance <= variance * 1.0001)).all()


def test_outcomes_that_are_out_of_the_question_are_refused():
    mean, y = torch.full((1, 1), -30.0, dtype=torch.float64), torch.full((1, 1), 1e6, dtype=torch.float64)
    with pytest.raises(ConvergenceError, match="1 of 1 possible outcomes did not converge"):
        single_site_update(Binomial(1_000_000), mean, torch.full_like(mean, 1e-4), y)
