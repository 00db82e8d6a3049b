from dataclasses import replace

import numpy as np
import torch
from gpytorch.kernels import MaternKernel, ScaleKernel
from torch.testing import assert_close

from streamgp.streaming.bank import Bank
from streamgp.streaming.carrying import carry
from streamgp.streaming.experts import Expert, Experts
from streamgp.testing.tolerances import approximation

EXPERTS = Experts(
    (Expert(), Expert(30.0, slope=1.0), Expert(level_gain=0.5, slope=0.5), Expert(level_gain=0.99, amplitude=0.0))
)


def _kernel():
    kernel = ScaleKernel(MaternKernel(2.5)).double()
    kernel.base_kernel.lengthscale, kernel.outputscale = 0.8, 1.4
    return kernel.requires_grad_(False)


def _problem(rng, m=12, experts=EXPERTS):
    """A bank before any row, inputs, two lines of targets, and noise."""
    X, Z = (torch.randn(size, 2, generator=rng, dtype=torch.float64) for size in (12, m))
    Y = torch.randn(2, 12, generator=rng, dtype=torch.float64)
    bank = Bank.from_prior(experts, _kernel(), Z, constant=torch.zeros(2, dtype=torch.float64), level_noise=0.1)
    return bank, X.numpy(), Y.numpy(), np.full((1, 1, 12), 0.1)


def test_a_belief_carried_to_its_own_kernel_and_points_stays(rng):
    bank, X, Y, noise = _problem(rng, m=10)
    learned = bank.learn(bank.see(X), Y, noise)
    carried = carry(learned, bank)
    # The jitter of a point is noise of its own, so the same point is another one by that much.
    assert_close(carried.see(X).mean, learned.see(X).mean, **approximation(1e-6, "jitter"))
    assert_close(carried.see(X).variance, learned.see(X).variance, **approximation(1e-6, "jitter"))


def test_a_belief_carried_to_another_constant_is_that_which_had_it_from_the_start(rng):
    bank, X, Y, noise = _problem(rng, experts=Experts((Expert(), Expert(slope=1.0), Expert(amplitude=4.0))))
    bank = Bank.from_prior(bank.experts, _kernel(), torch.from_numpy(X), constant=bank.constant, level_noise=0.1)
    other = replace(bank, constant=torch.tensor([0.7, -2.0], dtype=torch.float64))
    carried, fresh = carry(bank.absorb(bank.see(X), Y, noise), other), other.absorb(other.see(X), Y, noise)
    assert_close(carried.see(X).mean, fresh.see(X).mean, **approximation(1e-6, "jitter"))
    assert_close(carried.see(X).variance, fresh.see(X).variance, **approximation(1e-6, "jitter"))


def test_a_level_makes_up_for_another_constant(rng):
    bank, X, Y, noise = _problem(rng, m=10, experts=Experts((Expert(level_gain=0.5), Expert(30.0, level_gain=0.1))))
    learned = bank.learn(bank.see(X), Y, noise)
    carried = carry(learned, replace(bank, constant=torch.tensor([0.7, -2.0], dtype=torch.float64)))
    assert_close(carried.see(X).mean, learned.see(X).mean, **approximation(1e-6, "jitter"))


def test_a_share_of_what_new_points_leave_open_is_noise_of_what_was_known(rng):
    """By square roots of the sites, along whose directions precisions shrink by at most a third."""
    bank, X, Y, noise = _problem(rng, m=6)
    learned = bank.absorb(bank.see(X), Y, noise)
    Z = torch.randn(5, 2, generator=rng, dtype=torch.float64)
    other = Bank.from_prior(EXPERTS, _kernel(), Z, constant=bank.constant, level_noise=0.1)
    covariance, old, new = other.process.prior.covariance, learned.whitening, other.whitening
    T = new @ covariance(Z, bank.inducing_points) @ old.mT
    prior = old @ covariance(bank.inducing_points, bank.inducing_points) @ old.mT
    D = torch.zeros(9, 9, dtype=torch.float64)
    D[:6, :6] = 0.1 * (prior - T.mT @ T)
    T = torch.block_diag(T, torch.eye(3, dtype=torch.float64))
    without_level = [torch.diag(torch.tensor([1.0] * k + [0.0], dtype=torch.float64)) for k in (7, 8)]
    precision = torch.linalg.inv(learned.covariance)
    site = precision - without_level[1]
    known, basis = torch.linalg.eigh(site)
    root = (basis * known.clamp_min(0.0).sqrt().unsqueeze(-2)) @ basis.mT
    added, directions = torch.linalg.eigh(root @ D @ root)
    assert (added > 0.5).any()
    assert ((added > 1e-3) & (added < 0.5)).any()
    shrunk = (directions / (1.0 + added.clamp(0.0, 0.5)).unsqueeze(-2)) @ directions.mT
    narrowed = T @ root @ shrunk
    covariance = torch.linalg.inv(narrowed @ root @ T.mT + without_level[0])
    mean = covariance @ narrowed @ torch.linalg.pinv(root) @ precision @ learned.mean.unsqueeze(-1)
    carried = carry(learned, other)
    assert_close(carried.covariance, covariance, **approximation(1e-6, "jitter"))
    assert_close(carried.mean, mean.squeeze(-1), **approximation(1e-6, "jitter"))
