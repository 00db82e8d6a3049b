import numpy as np
import pytest
import torch
from gpytorch.kernels import MaternKernel, ScaleKernel
from torch.testing import assert_close

from streamgp.likelihoods import Bernoulli, Gaussian, Poisson, StudentT
from streamgp.sites import SiteRule
from streamgp.streaming import observing
from streamgp.streaming.bank import Bank
from streamgp.streaming.experts import Expert, Experts
from streamgp.streaming.observing import observe
from streamgp.streaming.outliers import Plausibility
from streamgp.streaming.rows import Rows
from streamgp.testing.tolerances import approximation, rounding, tolerance

EXPERTS = Experts((Expert(amplitude=2.0), Expert(30.0, level_gain=0.2, slope=0.5)))


def _bank(rng, m=6, c=2):
    kernel = ScaleKernel(MaternKernel(2.5)).double().requires_grad_(False)
    Z = torch.randn(m, 2, generator=rng, dtype=torch.float64)
    constant = torch.linspace(-0.5, 0.5, c, dtype=torch.float64)
    return Bank.from_prior(EXPERTS, kernel, Z, constant=constant, level_noise=1.0)


def _labels(rng, n, c=2):
    X = torch.randn(n, 2, generator=rng, dtype=torch.float64)
    return Rows(X.numpy(), torch.randint(0, 2, (c, n), generator=rng).double().numpy())


def test_a_label_gives_the_moments_of_its_exact_posterior(rng):
    bank = _bank(rng)
    rows = _labels(rng, 1)
    seen = bank.see(rows.inputs)
    value = torch.from_numpy(seen.known)  # of the part that inducing points know of
    learned = observe(bank, seen, rows, Bernoulli("probit"), SiteRule())
    before, y = torch.from_numpy(seen.mean), torch.from_numpy(rows.targets)
    g = torch.linspace(-12.0, 12.0, 20_001, dtype=torch.float64)
    f = before + value.sqrt() * g
    signs = (2.0 * y - 1.0).expand_as(before)
    density = torch.exp(-0.5 * g.square()) * torch.special.ndtr(signs * f)
    density = density / density.sum(-1, keepdim=True)
    mean = (density * f).sum(-1, keepdim=True)
    variance = (density * (f - mean).square()).sum(-1, keepdim=True)
    # The first expert does not age, so that its belief after the row is the posterior.
    H = torch.from_numpy(seen.weights)
    found_mean = (learned.mean.unsqueeze(-2) @ H).squeeze(-2) + bank.constant.unsqueeze(-1)
    found_variance = (H * (learned.covariance @ H)).sum(-2)
    assert_close(found_mean[0], mean[0], **rounding(mean.dtype, condition=100.0))
    assert_close(found_variance[0], variance[0], **rounding(mean.dtype, condition=100.0))


def test_labels_of_a_block_have_nearly_the_means_of_their_exact_posterior(rng):
    bank, rows = _bank(rng), _labels(rng, 4)
    seen = bank.see(rows.inputs)
    learned = observe(bank, seen, rows, Bernoulli("probit"), SiteRule())
    found = (learned.mean.unsqueeze(-2) @ torch.from_numpy(seen.weights)).squeeze(-2) + bank.constant.unsqueeze(-1)
    K = torch.from_numpy(seen.covariance[0])  # the first expert does not age
    root = torch.linalg.cholesky(K + 1e-10 * torch.eye(4, dtype=K.dtype))
    f = torch.from_numpy(seen.mean[0]).unsqueeze(-1) + root @ torch.randn(4, 400_000, generator=rng, dtype=K.dtype)
    signs = torch.from_numpy(2.0 * rows.targets - 1.0)
    weights = torch.special.log_ndtr(signs.unsqueeze(-1) * f).sum(-2).softmax(-1)
    exact = (weights.unsqueeze(-2) * f).sum(-1)
    deviation = K.diagonal(dim1=-2, dim2=-1).sqrt()
    assert ((found[0] - exact) / deviation).abs().max() < 0.03  # prior deviations, of which sampling errors are 0.004


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_a_label_that_is_certain_or_impossible_leaves_a_belief_of_finite_numbers(rng, sign):
    bank = _bank(rng, c=1)
    far = Bank.from_prior(
        EXPERTS, bank.process.prior.kernel, bank.inducing_points, constant=torch.tensor([60.0 * sign]).double(),
        level_noise=1.0,
    )  # fmt: skip
    row = Rows(bank.inducing_points[:1].numpy(), np.ones((1, 1)))
    learned = observe(far, far.see(row.inputs), row, Bernoulli("probit"), SiteRule())
    assert bool(learned.mean.isfinite().all())
    assert float(torch.linalg.eigvalsh(learned.covariance).min()) > 0.0


def test_gaussian_rows_are_absorbed_with_their_noise_and_time_goes_on(rng):
    bank, rows = _bank(rng), _labels(rng, 3)
    seen = bank.see(rows.inputs)
    learned = observe(bank, seen, rows, Gaussian(0.3), SiteRule())
    noise = np.full((1, 1, 3), 0.3)
    expected = bank.absorb(seen, rows.targets, noise).age(3)
    assert_close(learned.mean, expected.mean, **tolerance(torch.float64))
    assert_close(learned.covariance, expected.covariance, **tolerance(torch.float64))


def test_counts_pull_the_mean_toward_their_logarithm(rng):
    bank = _bank(rng, c=1)
    row = Rows(bank.inducing_points[:1].numpy(), np.full((1, 1), 20.0))
    seen = bank.see(row.inputs)
    after = observe(bank, seen, row, Poisson(), SiteRule()).see(row.inputs)
    assert bool((after.mean > seen.mean + 0.5).all())
    assert bool((after.mean < 3.1).all())


def test_sites_written_out_for_the_probit_link_are_those_of_its_derivatives(rng, monkeypatch):
    mean = torch.randn(3, 1, 4, generator=rng, dtype=torch.float64).numpy()
    y = np.array([[0.0, 1.0, 1.0, 0.0]])
    written = observing._moment_sites(mean, 0.5 + 0.0 * mean, y, Bernoulli("probit"))
    monkeypatch.setattr(observing, "is_probit", lambda _: False)
    general = observing._moment_sites(mean, 0.5 + 0.0 * mean, y, Bernoulli("probit"))
    for one, other in zip(written, general, strict=True):
        assert_close(torch.from_numpy(one), torch.from_numpy(other), **tolerance(torch.float64))
    assert observing._moment_sites(mean, mean**2, y, Bernoulli("logit")) is None


@pytest.mark.parametrize("target", [0.3, 2.0, 20.0])
def test_rows_with_outliers_are_learned_in_a_few_steps_as_by_the_search_for_sites(rng, monkeypatch, target):
    bank, likelihood = _bank(rng, c=1), StudentT(4.0, 0.1)
    row = Rows(bank.inducing_points[:1].numpy(), np.full((1, 1), target))
    seen = bank.see(row.inputs)
    quick = observe(bank, seen, row, likelihood, SiteRule()).see(row.inputs)
    monkeypatch.setattr(observing, "_LARGEST_RESIDUAL", -1.0)
    searched = observe(bank, seen, row, likelihood, SiteRule()).see(row.inputs)
    accepted = 0.05 * np.sqrt(searched.variance).min()
    assert (np.abs(quick.mean - searched.mean) < accepted).all()
    assert_close(quick.variance, searched.variance, **approximation(0.05, "iteration"))


def test_means_move_by_the_part_of_the_way_that_a_row_is_plausible(rng):
    kernel = ScaleKernel(MaternKernel(2.5)).double().requires_grad_(False)
    Z = torch.randn(5, 2, generator=rng, dtype=torch.float64)
    experts = Experts((Expert(), Expert(is_trusting=True)))
    bank = Bank.from_prior(experts, kernel, Z, constant=torch.zeros(1, dtype=torch.float64), level_noise=0.1)
    rows = Rows(Z[:1].numpy() + 0.1, np.array([[3.0]]))
    seen = bank.see(rows.inputs)
    plausible = Plausibility(np.full((2, 1, 1), 0.25), np.full(1, 0.25))
    noise, rule = Gaussian(torch.tensor(0.1, dtype=torch.float64)), SiteRule()
    whole, part = observe(bank, seen, rows, noise, rule), observe(bank, seen, rows, noise, rule, plausible)
    assert_close(part.mean[0], 0.25 * whole.mean[0], **rounding(torch.float64))
    gained, all_gained = (each.covariance[0] - bank.covariance[0] for each in (part, whole))
    assert_close(gained, 0.25 * all_gained, **tolerance(torch.float64))
    assert_close(part.mean[1], whole.mean[1], **rounding(torch.float64))
