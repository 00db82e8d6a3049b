import math

import numpy as np
import pytest
import torch
from gpytorch.kernels import MaternKernel, ScaleKernel
from gpytorch.means import ZeroMean
from tests.support.reference import exact_gp
from torch.testing import assert_close

from streamgp.streaming.bank import Bank
from streamgp.streaming.experts import REAL_EXPERTS, Expert, Experts
from streamgp.testing.tolerances import approximation, rounding, tolerance, within

EXPERTS = Experts(
    (Expert(), Expert(30.0, slope=1.0), Expert(level_gain=0.5, slope=0.5), Expert(level_gain=0.99, amplitude=0.0))
)


def _kernel():
    kernel = ScaleKernel(MaternKernel(2.5)).double()
    kernel.base_kernel.lengthscale, kernel.outputscale = 0.8, 1.4
    return kernel.requires_grad_(False)


def _problem(rng, n=12, m=20, c=2, experts=EXPERTS):
    X = torch.randn(n, 2, generator=rng, dtype=torch.float64)
    Z = torch.randn(m, 2, generator=rng, dtype=torch.float64)
    Y = torch.randn(c, n, generator=rng, dtype=torch.float64)
    bank = Bank.from_prior(experts, _kernel(), Z, constant=torch.zeros(c, dtype=torch.float64), level_noise=0.1)
    return bank, X.numpy(), Y.numpy(), np.full((1, 1, n), 0.1)


def _time_covariance(bank, expert, X):
    """The covariance of latent values of one row after the other, as the docstring says."""
    t = torch.arange(len(X), dtype=torch.float64)
    gap = (t.unsqueeze(-1) - t).abs()
    seen = bank.see(X)
    K = torch.from_numpy(expert.amplitude * seen.features.T @ seen.features + expert.slope**2 * X @ X.T)
    decayed = K * 0.5 ** (gap / (2.0 * expert.half_life))
    step = 0.1 * expert.level_gain**2 / (1.0 - expert.level_gain)
    level = 1.0 + step * torch.minimum(t.unsqueeze(-1), t)
    return decayed + (level if expert.level_gain else 0.0)


def test_filtering_row_by_row_equals_the_gp_whose_covariance_decays_with_time(rng):
    bank, X, Y, noise = _problem(rng)
    filtered = bank
    for i in range(len(X) - 1):
        filtered = filtered.learn(filtered.see(X[i : i + 1]), Y[:, i : i + 1], noise[..., :1])
    last = filtered.see(X[-1:])
    for index, expert in enumerate(EXPERTS.each):
        C = _time_covariance(bank, expert, X)
        A = C[:-1, :-1] + 0.1 * torch.eye(len(X) - 1, dtype=torch.float64)
        weights = torch.linalg.solve(A, C[:-1, -1])
        explained = last.variance[index] - expert.amplitude * last.slack
        assert_close(last.mean[index, :, 0], Y[:, :-1] @ weights.numpy(), **tolerance(torch.float64))
        left = (C[-1, -1] - C[:-1, -1] @ weights).expand(2)
        assert_close(torch.from_numpy(explained).squeeze(-1), left, **tolerance(torch.float64))


def test_many_inputs_are_seen_part_by_part(rng, monkeypatch):
    bank, X, Y, noise = _problem(rng, n=50)
    bank = bank.learn(bank.see(X), Y, noise)
    monkeypatch.setattr("streamgp.streaming.bank._PART_NUMBERS", 20 * bank.mean.numel())
    sizes, see = [], Bank.see
    monkeypatch.setattr(Bank, "see", lambda bank, X: sizes.append(len(X)) or see(bank, X))
    mean, variance = bank.moments(X)
    assert sizes == [20, 20, 10]
    expected = see(bank, X)
    assert_close(mean, expected.mean, **tolerance(torch.float64))
    assert_close(variance, expected.variance, **tolerance(torch.float64))


def test_absorbing_at_once_equals_absorbing_one_by_one(rng):
    bank, X, Y, noise = _problem(rng)
    once = bank.absorb(bank.see(X), Y, noise)
    singly = bank
    for i in range(len(X)):
        singly = singly.absorb(singly.see(X[i : i + 1]), Y[:, i : i + 1], noise[..., :1])
    assert_close(singly.mean, once.mean, **tolerance(torch.float64))
    assert_close(singly.covariance, once.covariance, **tolerance(torch.float64))


def test_an_expert_that_forgets_nothing_is_the_exact_gp_where_the_points_are_the_inputs(rng):
    bank, X, Y, noise = _problem(rng, experts=Experts((Expert(),)))
    inputs, targets = torch.from_numpy(X), torch.from_numpy(Y[0])
    bank = Bank.from_prior(bank.experts, _kernel(), inputs, constant=bank.constant, level_noise=0.1)
    W = torch.randn(5, 2, generator=rng, dtype=torch.float64)
    seen = bank.learn(bank.see(X), Y, noise).see(W.numpy())
    exact = exact_gp(_kernel(), ZeroMean(), inputs, targets, 0.1 * torch.eye(len(X), dtype=torch.float64), W)
    assert_close(seen.mean[0, 0], exact.mean.numpy(), **approximation(1e-6, "jitter"))
    assert_close(seen.variance[0, 0], exact.covariance.diagonal().numpy(), **approximation(1e-6, "jitter"))


def test_without_rows_half_of_what_is_known_is_lost_after_a_half_life(rng):
    bank, X, Y, noise = _problem(rng, experts=Experts((Expert(30.0),)))
    learned = bank.absorb(bank.see(X), Y, noise)
    aged = learned.age(30)
    known = bank.see(X).variance - learned.see(X).variance
    assert_close(bank.see(X).variance - aged.see(X).variance, 0.5 * known, **tolerance(torch.float64))
    assert_close(aged.mean, math.sqrt(0.5) * learned.mean, **tolerance(torch.float64))


def test_learning_leaves_the_original_untouched(rng):
    bank, X, Y, noise = _problem(rng)
    mean, covariance = bank.mean.clone(), bank.covariance.clone()
    bank.learn(bank.see(X), Y, noise)
    bank.age(3)
    assert torch.equal(bank.mean, mean)
    assert torch.equal(bank.covariance, covariance)


@pytest.mark.parametrize("gain", [0.1, 0.5, 0.9])
def test_a_level_follows_errors_by_its_gain_in_the_long_run(gain):
    experts = Experts((Expert(level_gain=gain, amplitude=0.0),))
    x = torch.zeros(1, 1, dtype=torch.float64)
    bank = Bank.from_prior(experts, _kernel(), x, constant=torch.zeros(1, dtype=torch.float64), level_noise=0.3)
    x, noise = x.numpy(), np.full((1, 1, 1), 0.3)
    for _ in range(200):
        bank = bank.learn(bank.see(x), np.zeros((1, 1)), noise)
    moved = bank.learn(bank.see(x), np.ones((1, 1)), noise)
    assert moved.see(x).mean.item() == pytest.approx(gain, **within(rounding(torch.float64)))


def test_the_default_bank_has_an_expert_that_forgets_nothing_and_one_that_repeats_the_last_value():
    assert Expert() in REAL_EXPERTS
    assert any(expert.level_gain > 0.95 and expert.amplitude == 0.0 for expert in REAL_EXPERTS)
