"""The default kernel of utilities that are only compared."""

import pytest
import torch
from scipy.stats import gamma, kendalltau

import streamgp as sg
from streamgp.likelihoods import Preference
from streamgp.loops.sparse_fitting import make_comparison_kernel
from streamgp.testing.tolerances import tolerance

BOX = [(0.0, 1.0)] * 4


def test_lengthscales_start_at_the_mode_of_a_prior_and_the_variance_has_that_of_the_fit():
    kernel = make_comparison_kernel(torch.zeros(3, 2, 4, dtype=torch.float64))
    ((name, _, prior, _, _),) = kernel.named_priors()
    assert name == "base_kernel.lengthscale_prior"
    at = torch.tensor(0.8, dtype=torch.float64)
    assert float(prior.log_prob(at)) == pytest.approx(gamma(2.4, scale=1 / 2.7).logpdf(0.8))
    mode = kernel.base_kernel.lengthscale.detach().clone().requires_grad_()
    assert mode.shape[-1] == 4
    (slope,) = torch.autograd.grad(prior.log_prob(mode).sum(), mode)
    torch.testing.assert_close(slope, torch.zeros_like(slope), **tolerance(torch.float64, scale=10.0))
    assert kernel.outputscale.item() == pytest.approx(1.0)


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
