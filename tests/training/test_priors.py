import math

import gpytorch
import pytest
import torch
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
from gpytorch.means import ConstantMean
from scipy import stats

from streamgp.errors import OptionError
from streamgp.likelihoods import Bernoulli, Binomial, Gaussian, NegativeBinomial, Poisson
from streamgp.testing.tolerances import rounding, within
from streamgp.training import fit
from streamgp.training.parameters import Hyperparameters
from streamgp.training.priors import SHRINKAGE, read_priors

LENGTHSCALE = [0.3, 0.8, 1.7]
SAME = within(rounding(torch.float64, scale=20.0))


def density(priors, *, kernel=None, mean=None, likelihood=None, target_variance=1.0, shrinkage=None):
    kernel = scaled_kernel() if kernel is None else kernel
    mean, likelihood = mean or ConstantMean().double(), likelihood or Gaussian(0.03)
    prior = read_priors(priors, kernel, mean, likelihood=likelihood, target_variance=target_variance)
    extra = prior.start if shrinkage is None else {SHRINKAGE: torch.tensor(shrinkage, dtype=torch.float64)}
    setting = Hyperparameters(kernel, mean, likelihood, torch.zeros(1, 3, dtype=torch.float64), extra)
    return prior.log_density(setting).item()


def scaled_kernel():
    kernel = ScaleKernel(MaternKernel(2.5, ard_num_dims=3)).double()
    kernel.outputscale, kernel.base_kernel.lengthscale = 2.5, torch.tensor(LENGTHSCALE, dtype=torch.float64)
    return kernel


def test_the_dimension_scaled_prior_is_botorchs():
    expected = stats.lognorm.logpdf(LENGTHSCALE, math.sqrt(3), scale=math.exp(math.sqrt(2)) * math.sqrt(3)).sum()
    expected += stats.lognorm.logpdf(2.5, 1, scale=math.e * 4) + stats.lognorm.logpdf(0.03, 1, scale=4 * math.exp(-4))
    assert density("dim_scaled", target_variance=4.0) == pytest.approx(expected, **SAME)


def test_the_papers_priors_are_gamma():
    expected = stats.gamma.logpdf(LENGTHSCALE, 3, scale=1 / 6).sum()
    expected += stats.gamma.logpdf(2.5, 2, scale=1 / 0.15) + stats.gamma.logpdf(0.03, 1.1, scale=1 / 0.05)
    assert density("paper") == pytest.approx(expected, **SAME)


@pytest.mark.parametrize("tau", [0.1, 1.0])
def test_the_shrinkage_prior_is_half_cauchy(tau):
    expected = stats.halfcauchy.logpdf([1 / x for x in LENGTHSCALE], scale=tau).sum() + stats.halfcauchy.logpdf(tau)
    expected += stats.gamma.logpdf(2.5, 2, scale=1 / 0.15) + stats.gamma.logpdf(0.03, 1.1, scale=1 / 0.05)
    assert density("half_cauchy", shrinkage=math.log(tau)) == pytest.approx(expected, **SAME)


def test_without_priors_there_is_no_term():
    assert density(None) == 0.0


def test_likelihoods_without_noise_have_no_noise_prior():
    assert density("paper", likelihood=Bernoulli()) == density("paper", likelihood=Gaussian(0.03, is_learned=False))


@pytest.mark.parametrize("likelihood", [Bernoulli(), Binomial(3), Poisson(), NegativeBinomial()])
def test_a_constant_mean_of_classes_and_counts_has_a_weak_normal_prior(likelihood):
    mean, frozen, own = ConstantMean(), ConstantMean(), ConstantMean(gpytorch.priors.NormalPrior(0.0, 2.0))
    frozen.requires_grad_(False)
    for each in (mean.double(), frozen.double(), own.double()):
        each.initialize(constant=-3.0)
    without = density("dim_scaled", mean=frozen, likelihood=likelihood)
    weak = density("dim_scaled", mean=mean, likelihood=likelihood)
    assert weak - without == pytest.approx(stats.norm.logpdf(-3.0, scale=5.0), **SAME)
    theirs = density("dim_scaled", mean=own, likelihood=likelihood)
    assert theirs - without == pytest.approx(stats.norm.logpdf(-3.0, scale=2.0), **SAME)


def test_outcomes_that_are_all_alike_leave_doubt():
    X = torch.linspace(0, 1, 8, dtype=torch.float64).unsqueeze(-1)
    result = fit(X, torch.zeros(8, dtype=torch.float64), likelihood=Binomial(30))
    prediction = result.predict(X)
    prevalence = Binomial(1).predictive_mean(prediction.mean, prediction.variance)
    # Without a prior it was 4e-8; by the rule of three, 3 in 240 is as much as 240 tests without a case allow.
    assert (prevalence > 1e-4).all()
    assert (prevalence < 3 / 240).all()


def test_the_kernels_own_priors_count_and_are_not_doubled():
    own = gpytorch.priors.GammaPrior(2.0, 3.0)
    kernel = ScaleKernel(RBFKernel(lengthscale_prior=own)).double()
    kernel.outputscale, kernel.base_kernel.lengthscale = 2.5, torch.tensor(0.4, dtype=torch.float64)
    expected = stats.gamma.logpdf(0.4, 2, scale=1 / 3)
    assert density(None, kernel=kernel) == pytest.approx(expected, **SAME)
    expected += stats.gamma.logpdf(2.5, 2, scale=1 / 0.15) + stats.gamma.logpdf(0.03, 1.1, scale=1 / 0.05)
    assert density("paper", kernel=kernel) == pytest.approx(expected, **SAME)


def test_frozen_hyperparameters_have_no_prior():
    kernel = scaled_kernel()
    kernel.requires_grad_(False)
    assert density("paper", kernel=kernel, likelihood=Bernoulli()) == 0.0


def test_an_unknown_set_is_refused():
    with pytest.raises(
        OptionError, match="priors must be one of 'dim_scaled', 'tabular', 'paper', 'half_cauchy', but is 'gamma'"
    ):
        density("gamma")
