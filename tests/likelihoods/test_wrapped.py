import gpytorch.likelihoods as source
import pytest
import scipy.stats
import torch
from torch.testing import assert_close

from streamgp.errors import SupportError, UnsupportedError
from streamgp.likelihoods import Bernoulli, Gaussian, StudentT, from_gpytorch
from streamgp.testing.likelihood_laws import LikelihoodLaws
from streamgp.testing.tolerances import approximation, judgement, rounding


class TestWrappedBeta(LikelihoodLaws):
    covers = "from_gpytorch"
    is_discrete = False
    support = (0.0, 1.0)
    refused = ((-0.2, "BetaLikelihood targets must lie inside the support of Beta"), (1.0, "move them inside"))
    quantile_slack = 0.03  # PyTorch has no distribution function of the Beta: quantiles of draws

    def likelihood(self):
        return from_gpytorch(source.BetaLikelihood())

    def targets(self, rng, n, dtype):
        return 0.1 + 0.8 * torch.rand(n, generator=rng, dtype=dtype)


class TestWrappedPoisson(LikelihoodLaws):
    covers = "from_gpytorch"
    is_discrete = True
    support = (0.0, 100.0)
    refused = ((-1.0, "PoissonLikelihood targets must lie inside the support of Poisson"),)
    quantile_slack = 0.03

    def likelihood(self):
        return from_gpytorch(source.PoissonLikelihood())

    def test_second_derivative_is_never_positive_if_and_only_if_log_concave(self, rng):
        assert not self.likelihood().is_log_concave  # which is not known of what is wrapped

    def targets(self, rng, n, dtype):
        return torch.randint(0, 5, (n,), generator=rng).to(dtype)


def laplace():
    likelihood = source.LaplaceLikelihood()
    likelihood.noise = 0.25
    return likelihood


def test_known_likelihoods_become_their_namesakes():
    gaussian = source.GaussianLikelihood()
    gaussian.noise = 0.37
    student = source.StudentTLikelihood()
    student.noise, student.deg_free = 0.49, 5.0
    fixed = source.FixedNoiseGaussianLikelihood(torch.tensor([0.1, 0.2]))
    assert isinstance(from_gpytorch(gaussian), Gaussian)
    assert_close(from_gpytorch(gaussian).noise_variance.item(), 0.37, **rounding(torch.float32))
    assert from_gpytorch(fixed).learnable() == {}
    assert isinstance(from_gpytorch(source.BernoulliLikelihood()), Bernoulli)
    taken = from_gpytorch(student)
    assert isinstance(taken, StudentT)
    f, y = torch.linspace(-1.0, 1.0, 5), torch.zeros(5)
    assert_close(taken.log_density(f, y), student(f).log_prob(y))


def test_likelihoods_of_several_latent_values_are_refused():
    with pytest.raises(UnsupportedError, match="SoftmaxLikelihood"):
        from_gpytorch(source.SoftmaxLikelihood(num_features=2, num_classes=3))


def test_the_original_is_neither_changed_nor_watched():
    original = laplace()
    wrapped = from_gpytorch(original)
    f, y = torch.zeros(3), torch.ones(3)
    before = wrapped.log_density(f, y)
    original.noise = 9.0
    assert torch.equal(wrapped.log_density(f, y), before)
    assert list(wrapped.learnable()) == ["raw_noise"]


def test_kinks_count_in_the_expected_curvature():
    mean = torch.tensor([0.0, 0.7], dtype=torch.float64)
    variance, y = torch.ones_like(mean), torch.tensor([0.2, -0.1], dtype=torch.float64)
    _, second = from_gpytorch(laplace(), num_nodes=100).expected_derivatives(mean, variance, y)
    # The slope jumps by -2 / b at y, with b = 0.5: the expectation is that times the normal density there.
    # Nodes see a kink only as finely as they are spaced, 0.3 for 100 of them.
    expected = -4.0 * torch.as_tensor(scipy.stats.norm.pdf(y - mean))
    assert_close(second, expected, **judgement(relative=0.15))


def test_narrow_kinked_densities_are_integrated():
    likelihood = laplace()
    likelihood.noise = 1e-4
    mean, y = torch.tensor([0.0], dtype=torch.float64), torch.tensor([0.8], dtype=torch.float64)
    value = from_gpytorch(likelihood).log_predictive_density(mean, torch.ones_like(mean), y)
    # With scale 0.01 the integral is the normal density at y, with a correction of the order of its square.
    assert_close(value, torch.as_tensor(scipy.stats.norm.logpdf(y)), **approximation(1e-3, "model"))


def test_quantiles_use_the_distribution_function_where_there_is_one():
    mean, p = torch.tensor([0.4], dtype=torch.float64), [0.1, 0.5, 0.75]
    quantiles = from_gpytorch(laplace()).predictive_quantiles(mean, torch.zeros_like(mean), p)[0]
    expected = torch.as_tensor(scipy.stats.laplace.ppf(p, 0.4, 0.5))
    assert_close(quantiles, expected, **approximation(1e-6, "iteration"))


def test_derivatives_work_without_gradient_tracking():
    f, y = torch.linspace(0.1, 1.0, 4), torch.full((4,), 0.5)
    likelihood = from_gpytorch(source.BetaLikelihood())
    tracked = likelihood.derivatives(f, y)
    with torch.no_grad():
        plain = likelihood.derivatives(f, y)
    assert_close(plain, tuple(part.detach() for part in tracked))
    assert not any(part.requires_grad for part in plain)


def test_sampling_leaves_the_global_random_state_alone():
    likelihood = from_gpytorch(laplace())
    torch.manual_seed(0)
    expected = torch.rand(2)
    torch.manual_seed(0)
    likelihood.sample(torch.zeros(5), generator=torch.Generator().manual_seed(1))
    likelihood.check_targets(torch.zeros(5))
    assert torch.equal(torch.rand(2), expected)


def test_targets_of_zero_density_are_refused():
    with pytest.raises(SupportError, match="index"):
        from_gpytorch(source.BetaLikelihood()).check_targets(torch.tensor([0.5, 0.0]))
