import copy
import math

import numpy as np
import pytest
import torch
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
from gpytorch.means import ZeroMean
from torch.testing import assert_close

from streamgp.gp import Prior
from streamgp.streaming.bank import Bank
from streamgp.streaming.experts import Expert, Experts
from streamgp.streaming.features import KernelColumn
from streamgp.testing.tolerances import tolerance


def _kernel(lengthscale=0.8):
    kernel = ScaleKernel(MaternKernel(2.5, ard_num_dims=2)).double()
    kernel.base_kernel.lengthscale, kernel.outputscale = torch.tensor([lengthscale, 1.3]), 1.7
    return kernel


@pytest.mark.parametrize(
    "kernel",
    [
        _kernel(),
        ScaleKernel(MaternKernel(1.5)).double(),
        RBFKernel(ard_num_dims=2).double(),
        ScaleKernel(MaternKernel(2.5, active_dims=[1])).double(),
    ],
)
def test_covariances_of_an_input_are_those_of_the_kernel(rng, kernel):
    Z, x = torch.randn(9, 2, generator=rng, dtype=torch.float64), torch.randn(1, 2, generator=rng, dtype=torch.float64)
    prior = Prior.snapshot(kernel, ZeroMean(), like=Z)
    k, variance = KernelColumn(prior)(Z.numpy(), x.numpy())
    assert_close(torch.from_numpy(k), prior.covariance(Z, x).squeeze(-1), **tolerance(torch.float64))
    assert variance == pytest.approx(float(prior.variance(x)))


def test_far_away_a_covariance_is_zero():
    x = np.array([[1e200, 0.0]])
    Z = torch.zeros(3, 2, dtype=torch.float64)
    with np.errstate(over="ignore"):
        k, _ = KernelColumn(Prior.snapshot(_kernel(), ZeroMean(), like=Z))(Z.numpy(), x)
    assert (k == 0.0).all()


def _bank(rng, m=12):
    experts = Experts((Expert(), Expert(50.0, level_gain=0.3, slope=1.0)))
    Z = torch.randn(m, 2, generator=rng, dtype=torch.float64)
    return Bank.from_prior(experts, _kernel(), Z, constant=torch.zeros(1, dtype=torch.float64), level_noise=0.1)


def _learned(rng, bank, num_rows, *, is_exchanging):
    noise = np.full((1, 1, 1), 0.1)
    for index in range(num_rows):
        x = torch.randn(1, 2, generator=rng, dtype=torch.float64).numpy()
        if is_exchanging:
            bank = bank.exchanged(x, (7 * index) % bank.num_inducing)
        bank = bank.learn(bank.see(x), np.sin(x[:, :1]), noise)
    return bank


def test_the_basis_whitens_the_kernel_matrix_after_many_exchanges(rng):
    bank = _learned(rng, _bank(rng), 300, is_exchanging=True)
    W, factor = bank.whitening, bank.process.inducing_factor
    assert bank.num_exchanged == 300
    K = factor.double_factor @ factor.double_factor.mT
    # Rounding of one factorization, which grows with the condition, a few hundred times.
    rounding = 300 * torch.finfo(torch.float64).eps * float(torch.linalg.cond(K))
    assert_close(W @ K @ W.mT, torch.eye(len(K), dtype=K.dtype), rtol=0.0, atol=rounding)
    assert_close(torch.from_numpy(bank.features.leave_one_out), factor.leave_one_out, rtol=rounding, atol=rounding)


def test_a_bank_that_is_factorized_believes_the_same(rng):
    bank = _learned(rng, _bank(rng), 60, is_exchanging=True)
    again = bank.factorized()
    X = torch.randn(5, 2, generator=rng, dtype=torch.float64).numpy()
    assert again.basis is None
    assert again.num_exchanged == 0
    close = tolerance(torch.float64)
    assert_close(again.see(X).mean, bank.see(X).mean, **close)
    assert_close(again.see(X).variance, bank.see(X).variance, **close)
    assert again.factorized() is again


def test_exchanges_do_not_go_on_without_a_new_factor(rng, monkeypatch):
    monkeypatch.setattr("streamgp.streaming.bank._MOST_EXCHANGED", 10)
    bank = _learned(rng, _bank(rng), 25, is_exchanging=True)
    assert bank.num_exchanged == 5


def test_one_input_is_seen_and_absorbed_as_several_are(rng):
    bank = _learned(rng, _bank(rng), 30, is_exchanging=True)
    x = torch.randn(1, 2, generator=rng, dtype=torch.float64).numpy()
    one, two = bank.see(x), bank.see(np.concatenate([x, x]))
    close = tolerance(torch.float64)
    for name in ("weights", "features", "prior_variance", "slack", "mean", "spread", "known", "variance"):
        assert_close(getattr(one, name), getattr(two, name)[..., :1], **close)
    y, noise = np.full((1, 1), 0.4), np.full((1, 1, 1), 0.1)
    absorbed = bank.absorb(one, y, noise)
    # Twice with twice the noise is once.
    again = bank.absorb(two, np.tile(y, 2), 2.0 * np.tile(noise, 2))
    assert_close(absorbed.mean, again.mean, **close)
    assert_close(absorbed.covariance, again.covariance, **close)


def test_a_copy_has_the_basis(rng):
    bank = _learned(rng, _bank(rng), 20, is_exchanging=True)
    x = torch.randn(1, 2, generator=rng, dtype=torch.float64).numpy()
    assert np.array_equal(copy.deepcopy(bank).see(x).mean, bank.see(x).mean)
    assert math.isfinite(float(bank.see(x).mean.sum()))
