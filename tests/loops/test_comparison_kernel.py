"""The default kernel of utilities that are only compared."""

import math

import pytest
import torch
from scipy.stats import gamma, kendalltau, lognorm

import streamgp as sg
from streamgp.likelihoods import Preference
from streamgp.loops.comparison_kernel import make_comparison_kernel
from streamgp.testing.tolerances import tolerance

BOX = [(0.0, 1.0)] * 4


@pytest.mark.parametrize("noise_scale", [1.0, 0.1])
def test_it_starts_at_the_modes_of_its_priors_and_its_variance_follows_the_noise(noise_scale):
    kernel = make_comparison_kernel(torch.zeros(3, 2, 4, dtype=torch.float64), noise_scale)
    assert kernel.outputscale.item() == pytest.approx(10.0 * noise_scale**2)
    log_prior = {name: prior for name, _, prior, _, _ in kernel.named_priors()}
    at = torch.tensor(0.8, dtype=torch.float64)
    lengths = log_prior["base_kernel.lengthscale_prior"].log_prob(at)
    assert float(lengths) == pytest.approx(gamma(2.4, scale=1 / 2.7).logpdf(0.8))
    variance = log_prior["outputscale_prior"].log_prob(at)
    expected = lognorm(2.0, scale=10.0 * noise_scale**2 * math.exp(4.0)).logpdf(0.8)
    assert float(variance) == pytest.approx(expected)
    for name, value in (("base_kernel.lengthscale_prior", 1.4 / 2.7), ("outputscale_prior", 10.0 * noise_scale**2)):
        mode = torch.tensor(value, dtype=torch.float64, requires_grad=True)
        (slope,) = torch.autograd.grad(log_prior[name].log_prob(mode), mode)
        torch.testing.assert_close(slope * value, torch.zeros_like(slope), **tolerance(torch.float64, scale=10.0))


@pytest.mark.slow
def test_utilities_are_ranked_by_few_comparisons_and_a_saved_run_goes_on(rng, tmp_path):
    def utility(X):
        return -((X - 0.3).square() * torch.arange(1.0, 5.0)).sum(-1)

    X = torch.rand(2, 60, 4, generator=rng, dtype=torch.float64)
    wins = utility(X[0]) > utility(X[1])
    optimizer = sg.Optimizer(BOX, likelihood=Preference())
    optimizer.tell_comparison(torch.where(wins.unsqueeze(-1), X[0], X[1]), torch.where(wins.unsqueeze(-1), X[1], X[0]))
    T = torch.rand(400, 4, generator=rng, dtype=torch.float64)
    predicted = optimizer.predict(T).mean
    assert kendalltau(predicted, utility(T)).statistic > 0.7
    optimizer.save(tmp_path / "run.sgo")
    assert torch.equal(sg.Optimizer.load(tmp_path / "run.sgo").ask(2), optimizer.ask(2))
