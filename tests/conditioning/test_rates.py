"""Averages of responses: counts of districts, of which each pixel has a rate of its own."""

import pytest
import torch
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel

import streamgp as sg
from streamgp.conditioning.rates import linearize
from streamgp.errors import UnsupportedError, ValueRangeError
from streamgp.likelihoods import Bernoulli, Binomial, Poisson
from streamgp.testing.tolerances import approximation, rounding

DTYPES = [torch.float32, torch.float64]
GRID = torch.linspace(0, 1, 12, dtype=torch.float64).unsqueeze(-1)
GROUPS = [0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 2]


def make_gp(dtype=torch.float64, lengthscale=0.3, num_inducing=12):
    kernel = ScaleKernel(RBFKernel()).to(dtype)
    kernel.base_kernel.lengthscale = lengthscale
    kernel.outputscale = 0.8
    return sg.SparseGP.from_prior(kernel, GRID[:: 12 // num_inducing].to(dtype))


def people(dtype=torch.float64):
    return 0.2 + torch.rand(12, generator=torch.Generator().manual_seed(5), dtype=torch.float64).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("likelihood", [Poisson(30.0), Binomial(40), Bernoulli("probit")])
def test_a_rate_of_one_place_is_that_of_the_value(dtype, likelihood):
    gp, X, y = make_gp(dtype), GRID[::4].to(dtype), torch.tensor([0.0, 1.0, 1.0], dtype=dtype)
    rates = sg.evidence.average(X, [0, 1, 2], rates=True)
    for method in ("condition", "absorb"):
        one, other = (getattr(gp, method)(rows, y, likelihood=likelihood) for rows in (rates, X))
        one, other = (after[0] if isinstance(after, tuple) else after for after in (one, other))
        for moment in ("mean", "variance"):
            found, expected = (getattr(after.predict(X), moment) for after in (one, other))
            torch.testing.assert_close(found, expected, **rounding(dtype, condition=1e4))


@pytest.mark.parametrize("likelihood", [Poisson(), Binomial(9)])
def test_rows_are_the_linearization_by_sampling(likelihood):
    gp, w = make_gp(), people()
    rows = sg.evidence.average(GRID, GROUPS, w, rates=True)
    belief = gp.condition(GRID[::3], torch.tensor([1.0, -0.5, 0.3, -1.0], dtype=torch.float64), noise_variance=0.2)
    prediction = belief.predict(GRID, covariance=True)
    linear = linearize(rows, likelihood, prediction.mean, prediction.variance, belief.process)
    f = belief.sample(GRID, 40_000, generator=torch.Generator().manual_seed(0)).requires_grad_()
    summed = rows.sums(likelihood.response(f))
    latent = likelihood.inverse_response(summed)
    (slopes,) = torch.autograd.grad(latent.sum(), f)
    expected = slopes.mean(0)
    torch.testing.assert_close(linear.weights, expected, **approximation(0.03, "model"))
    center = linear.sums(prediction.mean) + linear.offsets
    torch.testing.assert_close(center, latent.detach().mean(0), **approximation(0.02, "model"))


@pytest.mark.parametrize(
    "likelihood", [Poisson(torch.tensor([20.0, 35.0, 50.0])), Binomial(torch.tensor([60, 60, 90]))]
)
def test_a_belief_from_districts_is_that_of_importance_sampling(likelihood):
    gp, w = make_gp(), people()
    rows = sg.evidence.average(GRID, GROUPS, w, rates=True)
    y = torch.tensor([35.0, 20.0, 22.0], dtype=torch.float64)
    after = gp.condition(rows, y, likelihood=likelihood).predict(GRID)
    f = gp.sample(GRID, 400_000, generator=torch.Generator().manual_seed(1))
    latent = likelihood.inverse_response(rows.sums(likelihood.response(f)))
    share = likelihood.log_density(latent, y).sum(-1).softmax(0).unsqueeze(-1)
    mean = (share * f).sum(0)
    deviation = ((share * f.square()).sum(0) - mean.square()).sqrt()
    assert float(1.0 / share.square().sum()) > 2000.0  # effective samples
    assert ((after.mean - mean) / deviation).abs().max() < 0.12
    assert (after.std / deviation - 1.0).abs().max() < 0.12


def test_absorbing_districts_is_conditioning_where_points_are_everywhere():
    gp, y, likelihood = make_gp(), torch.tensor([35.0, 20.0, 22.0], dtype=torch.float64), Poisson(30.0)
    rows = sg.evidence.average(GRID, GROUPS, people(), rates=True)
    one, other = gp.condition(rows, y, likelihood=likelihood), gp.absorb(rows, y, likelihood=likelihood)[0]
    torch.testing.assert_close(other.predict(GRID).mean, one.predict(GRID).mean, **approximation(2e-3, "jitter"))


def test_districts_and_villages_are_learned_in_one_study():
    gp, likelihood = make_gp(), Poisson(torch.tensor([30.0, 30.0, 30.0, 5.0], dtype=torch.float64))
    both = sg.evidence.combine(sg.evidence.average(GRID, GROUPS, rates=True), GRID[3:4])
    after = gp.condition(both, ([35.0, 20.0, 22.0], [60.0]), likelihood=likelihood).predict(GRID)
    alone = gp.condition(
        sg.evidence.average(GRID, GROUPS, rates=True), [35.0, 20.0, 22.0], likelihood=Poisson(30.0)
    ).predict(GRID)
    assert after.mean[3] > alone.mean[3] + 0.4
    assert after.mean[6] < alone.mean[6]  # as the district has no more than was counted


@pytest.mark.slow
def test_hyperparameters_are_learned_from_counts_of_districts():
    rng = torch.Generator().manual_seed(2)
    X = torch.rand(300, 2, generator=rng, dtype=torch.float64)
    groups = (5 * X[:, 0]).long() + 5 * (4 * X[:, 1]).long()
    f = 2.0 * (5 * X[:, 0]).sin() + X[:, 1]
    rows = sg.evidence.average(X, groups, rates=True)
    order = groups.argsort(stable=True)
    y = torch.poisson(40.0 * rows.sums(f[order].exp()), generator=rng)
    result = sg.fit(rows, y, likelihood=Poisson(40.0), num_inducing=25, standardize="inputs")
    prediction = result.predict(X)
    assert (prediction.mean - f).square().mean().sqrt() < 0.35
    assert ((prediction.mean - f) / prediction.std).square().mean() < 3.0


def test_averages_of_rates_that_mean_nothing_are_refused():
    gp, rows = make_gp(), sg.evidence.average(GRID, GROUPS, rates=True)
    with pytest.raises(UnsupportedError, match="through a likelihood with a response"):
        gp.condition(rows, torch.zeros(3, dtype=torch.float64), noise_variance=0.1)
    with pytest.raises(UnsupportedError, match="Predict their inputs"):
        gp.predict(rows)
    with pytest.raises(UnsupportedError, match="not of the same kind"):
        sg.evidence.combine(rows, sg.evidence.gradient(GRID))
    with pytest.raises(ValueRangeError, match="must not be negative"):
        sg.evidence.average(GRID, GROUPS, 1.0 - 1.5 * (torch.arange(12) == 1).double(), rates=True)
    with pytest.raises(UnsupportedError, match="fitted through a likelihood"):
        sg.fit(rows, torch.zeros(3, dtype=torch.float64))
    after = make_gp().condition(GRID[:1], [0.0], noise_variance=0.1)
    with pytest.raises(UnsupportedError, match="conditioned on at once"):
        after.condition(rows, [1.0, 2.0, 3.0], likelihood="poisson")


def test_rows_with_offsets_are_kept_in_files(tmp_path):
    rows = sg.evidence.average(GRID, GROUPS, rates=True)
    kernel = ScaleKernel(MaternKernel(2.5)).double()
    gp = sg.SparseGP.from_prior(kernel, GRID[::2]).condition(rows, [9.0, 2.0, 1.0], likelihood="poisson")
    gp.save(tmp_path / "gp.streamgp")
    again = sg.load(tmp_path / "gp.streamgp")
    assert torch.equal(gp.predict(GRID).mean, again.predict(GRID).mean)
