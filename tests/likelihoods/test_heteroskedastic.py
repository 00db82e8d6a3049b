import math

import torch
from torch.testing import assert_close

from streamgp.likelihoods import HeteroskedasticGaussian
from streamgp.testing.multi_latent_laws import MultiLatentLaws
from streamgp.testing.tolerances import sampling


class TestHeteroskedasticGaussian(MultiLatentLaws):
    covers = "HeteroskedasticGaussian"
    refused = ((float("inf"), "finite numbers"),)
    # All but the density has a closed form, and that is of 64 nodes, for a log noise variance with variance one.
    quadrature = 1e-10

    def likelihood(self):
        return HeteroskedasticGaussian()

    def targets(self, rng, n, dtype):
        return torch.randn(n, generator=rng).to(dtype)

    def log_density_reference(self, mean, variance, y):
        """Exact in the first latent value; by the trapezoidal rule over the log noise variance."""
        t = torch.linspace(-12.0, 12.0, 4001, dtype=torch.float64).unsqueeze(-1)
        total = variance[0] + (mean[1] + variance[1].sqrt() * t).exp()
        log_normal = torch.distributions.Normal(mean[0], total.sqrt()).log_prob(y)
        log_weights = torch.distributions.Normal(0.0, 1.0).log_prob(t) + math.log(24.0 / 4000)
        return (log_weights + log_normal).logsumexp(0, keepdim=True)

    def check_samples(self, likelihood, f, drawn):
        noise = f[1].exp().squeeze(-1)
        n = len(drawn)
        assert_close(drawn.mean(), f[0, 0], **sampling((noise.item() / n) ** 0.5))
        assert_close(drawn.var(), noise, **sampling(noise.item() * (2 / n) ** 0.5))


def test_moments_are_those_of_a_mixture_of_normal_distributions(rng):
    mean, variance = torch.randn(2, 1, generator=rng).double(), torch.rand(2, 1, generator=rng).double()
    likelihood, n = HeteroskedasticGaussian(), 200_000
    f = mean + variance.sqrt() * torch.randn(2, n, generator=rng, dtype=torch.float64)
    drawn = likelihood.sample(f, generator=rng)
    V = likelihood.predictive_variance(mean, variance).item()
    assert_close(drawn.mean(), likelihood.predictive_mean(mean, variance).squeeze(), **sampling((V / n) ** 0.5))
    fourth = (drawn - drawn.mean()).pow(4).mean().item()
    assert_close(drawn.var().item(), V, **sampling(((fourth - V**2) / n) ** 0.5))


def test_learning_starts_at_the_moments_of_the_targets():
    y = torch.tensor([1.0, 3.0, 5.0], dtype=torch.float64)
    mean, variance = HeteroskedasticGaussian().starting_latents(y)
    assert_close(mean, torch.tensor([3.0, math.log(0.1 * 8 / 3)], dtype=torch.float64))
    assert_close(variance, torch.tensor([8 / 3, 1.0], dtype=torch.float64))
    mean, variance = HeteroskedasticGaussian().starting_latents(torch.ones(3, dtype=torch.float64))
    assert_close(mean, torch.tensor([1.0, math.log(0.1)], dtype=torch.float64))
    assert variance.tolist() == [1.0, 1.0]
