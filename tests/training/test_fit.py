import gpytorch
import numpy as np
import pytest
import torch
from gpytorch.constraints import Interval
from gpytorch.kernels import LinearKernel, MaternKernel, PeriodicKernel, RBFKernel, ScaleKernel
from gpytorch.means import ConstantMean, LinearMean, ZeroMean
from tests.support.conditioning_laws import DTYPES
from tests.support.gpytorch_models import SVGP
from torch.testing import assert_close

import streamgp as sg
from streamgp.errors import (
    DTypeError,
    OptionError,
    ShapeError,
    StreamGPWarning,
    SupportError,
    UnsupportedError,
    ValueRangeError,
)
from streamgp.likelihoods import Bernoulli, Binomial, Gaussian, NegativeBinomial, Poisson, Preference, StudentT
from streamgp.testing.tolerances import approximation, evidence_jitter, judgement, tolerance, within
from streamgp.training import Minibatches


def waves(rng, n=80, *, dtype=torch.float64):
    X = torch.rand(n, 2, generator=rng, dtype=torch.float64)
    f = torch.sin(6 * X[:, 0]) + torch.cos(4 * X[:, 1])
    y = f + 0.2 * torch.randn(n, generator=rng, dtype=torch.float64)
    return X.to(dtype), f.to(dtype), y.to(dtype)


def rmse(result, X, f):
    return (result.predict(X).mean - f).square().mean().sqrt().item()


@pytest.mark.parametrize("dtype", DTYPES)
def test_it_learns_a_function_and_its_noise_in_the_dtype_of_the_data(rng, dtype):
    X, _, y = waves(rng, 150, dtype=dtype)
    W, f, _ = waves(rng, 100, dtype=dtype)
    result = sg.fit(X, y, num_inducing=30)
    assert rmse(result, W, f) < 0.12
    assert 0.02 < result.likelihood.noise_variance < 0.08
    assert result.predict(W).mean.dtype == dtype
    assert result.gp.inducing_points.dtype == result.likelihood.noise_variance.dtype == dtype
    assert result.info.num_inducing == result.gp.num_inducing == 30
    assert result.info.is_converged
    assert result.info.num_evaluations >= len(result.info.history) - 1
    assert result.info.history[-1] == pytest.approx(
        result.info.bound + result.info.log_prior, **within(approximation(1e-6, "iteration"))
    )


def test_the_belief_is_the_optimal_one_for_the_hyperparameters(rng):
    X, _, y = waves(rng)
    result = sg.fit(X, y, num_inducing=12)
    prior = sg.SparseGP.from_prior(result.gp.kernel, result.gp.inducing_points, mean=result.gp.mean)
    noise = result.likelihood.noise_variance
    expected, _ = prior.absorb(X, y, noise_variance=noise, inducing="keep")
    assert_close(result.gp.predict(X).mean, expected.predict(X).mean, **tolerance(X.dtype))
    assert_close(result.gp.predict(X).variance, expected.predict(X).variance, **tolerance(X.dtype))


def test_with_a_point_for_each_input_it_is_the_exact_gp_at_its_best(rng):
    X, _, y = waves(rng, 40)
    result = sg.fit(X, y, num_inducing=40, priors=None, tolerance=1e-8)
    covariance = result.gp.kernel(X).to_dense() + result.likelihood.noise_variance * torch.eye(40)
    exact = torch.distributions.MultivariateNormal(result.gp.mean(X), covariance).log_prob(y)
    near = evidence_jitter(covariance, y - result.gp.mean(X), result.gp.process.jitter)
    assert result.info.bound == pytest.approx(exact.item(), **within(near))
    assert result.info.trace_slack < 1e-4


@pytest.mark.slow
@pytest.mark.thorough
def test_the_bound_is_no_lower_than_that_of_gpytorchs_svgp_after_many_steps(rng):
    X, _, y = waves(rng, 100)
    result = sg.fit(X, y, num_inducing=10, priors=None)
    model, likelihood = SVGP(X[:10].clone()), gpytorch.likelihoods.GaussianLikelihood().double()
    objective = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=100)
    optimizer = torch.optim.Adam([*model.parameters(), *likelihood.parameters()], lr=0.1)
    for _ in range(500):
        optimizer.zero_grad()
        loss = -objective(model(X), y)
        loss.backward()
        optimizer.step()
    assert result.info.bound > -100 * loss.item() - 0.5


LIKELIHOODS = [
    (Bernoulli(), lambda f, rng: torch.bernoulli(torch.sigmoid(2 * f), generator=rng)),
    (Poisson(), lambda f, rng: torch.poisson(f.exp(), generator=rng)),
    pytest.param(NegativeBinomial(), lambda f, rng: torch.poisson(f.exp(), generator=rng), marks=pytest.mark.thorough),
    (StudentT(), lambda f, rng: f + 0.2 * torch.randn(f.shape, generator=rng, dtype=f.dtype)),
]


@pytest.mark.slow
@pytest.mark.parametrize(("likelihood", "draw"), LIKELIHOODS)
def test_other_likelihoods_climb_and_beat_a_constant(rng, likelihood, draw):
    X, f, _ = waves(rng, 80)
    y = draw(f, rng)
    result = sg.fit(X, y, likelihood=likelihood, num_inducing=8, max_iterations=25)
    assert result.info.history[-1] > result.info.history[0]
    flat = sg.fit(X, y, likelihood=likelihood, num_inducing=1, learn_inducing=False, max_iterations=15)
    assert result.info.bound > flat.info.bound
    density = result.log_predictive_density(X, y)
    assert density.mean() > flat.log_predictive_density(X, y).mean()
    assert result.likelihood.learnable().keys() == likelihood.learnable().keys()


@pytest.mark.slow
def test_learned_parameters_of_a_likelihood_move(rng):
    X, f, _ = waves(rng, 120)
    y = f + 0.1 * torch.randn(120, generator=rng, dtype=torch.float64)
    y[::15] += 5.0
    result = sg.fit(X, y, likelihood=StudentT(), num_inducing=8, max_iterations=40)
    before, after = StudentT().learnable(), result.likelihood.learnable()
    assert any(not torch.allclose(before[name].double(), after[name]) for name in before)


def test_comparisons_are_learned_from_pairs(rng):
    X = torch.rand(80, 2, 2, generator=rng, dtype=torch.float64)
    f = 3 * X[..., 0]
    y = (f[:, 0] > f[:, 1]).double()
    result = sg.fit(X, y, likelihood=Preference(), num_inducing=8, max_iterations=40)
    W = torch.tensor([[0.1, 0.5], [0.5, 0.5], [0.9, 0.5]], dtype=torch.float64)
    assert (result.predict(W).mean.diff() > 0).all()


def test_totals_of_each_observation_are_used(rng):
    X, f, _ = waves(rng, 60)
    likelihood = Binomial(torch.full((60,), 20.0, dtype=torch.float64))
    y = torch.binomial(torch.full_like(f, 20.0), torch.sigmoid(f), generator=rng)
    result = sg.fit(X, y, likelihood=likelihood, num_inducing=10)
    assert torch.corrcoef(torch.stack([result.predict(X).mean, f]))[0, 1] > 0.95


@pytest.mark.parametrize(
    "kernel",
    [
        RBFKernel(),
        ScaleKernel(RBFKernel(ard_num_dims=2)) + ScaleKernel(PeriodicKernel()),
        ScaleKernel(MaternKernel(1.5)) * RBFKernel(active_dims=(0,)),
        LinearKernel(),
    ],
)
@pytest.mark.parametrize("mean", [ZeroMean(), LinearMean(2)])
def test_any_kernel_and_mean_can_be_trained(rng, kernel, mean):
    X, _, y = waves(rng, 50)
    before = [parameter.detach().clone() for parameter in kernel.parameters()]
    result = sg.fit(X, y, kernel=kernel, mean=mean, num_inducing=8, max_iterations=4)
    assert torch.isfinite(result.predict(X).mean).all()
    assert all(torch.equal(old, new) for old, new in zip(before, kernel.parameters(), strict=True))
    assert type(result.gp.kernel) is type(kernel)


def test_frozen_parameters_stay_and_constraints_hold(rng):
    X, _, y = waves(rng, 60)
    constraint = Interval(0.4, 0.5, transform=None, initial_value=0.45)
    kernel = ScaleKernel(MaternKernel(2.5, ard_num_dims=2, lengthscale_constraint=constraint))
    kernel.outputscale = 1.7
    kernel.raw_outputscale.requires_grad_(False)
    likelihood = Gaussian(0.123, is_learned=False)
    result = sg.fit(X, y, kernel=kernel, likelihood=likelihood, num_inducing=10)
    assert result.gp.kernel.raw_outputscale.item() == kernel.raw_outputscale.item()
    assert result.likelihood.noise_variance == 0.123
    assert (result.gp.kernel.base_kernel.lengthscale >= 0.4).all()
    assert (result.gp.kernel.base_kernel.lengthscale <= 0.5).all()
    assert "kernel.raw_outputscale" in result.frozen
    again = sg.fit(X, y, start=result)
    assert again.gp.kernel.raw_outputscale.item() == kernel.raw_outputscale.item()


@pytest.mark.parametrize("priors", ["dim_scaled", "paper", "half_cauchy", None])
def test_every_set_of_priors_gives_a_model(rng, priors):
    X, f, y = waves(rng, 60)
    assert rmse(sg.fit(X, y, priors=priors, num_inducing=15), X, f) < 0.3


def test_the_half_cauchy_prior_switches_irrelevant_inputs_off(rng):
    X = torch.rand(120, 8, generator=rng, dtype=torch.float64)
    y = torch.sin(6 * X[:, 0]) + 0.1 * torch.randn(120, generator=rng, dtype=torch.float64)
    kernel = sg.fit(X, y, priors="half_cauchy", num_inducing=20).gp.kernel.base_kernel
    assert kernel.lengthscale[0, 1:].min() > 5 * kernel.lengthscale[0, 0]


@pytest.mark.parametrize("inducing", ["kmeans", "pivoted"])
@pytest.mark.parametrize("learn_inducing", [True, False])
def test_inducing_points_can_be_chosen_and_learned(rng, inducing, learn_inducing):
    X, _, y = waves(rng)
    result = sg.fit(X, y, num_inducing=9, inducing=inducing, learn_inducing=learn_inducing)
    assert result.gp.num_inducing == 9
    is_input = (result.gp.inducing_points.unsqueeze(-2) == X).all(-1).any(-1)
    assert is_input.all() == (inducing == "pivoted" and not learn_inducing)


def test_given_inducing_points_stay_unless_they_are_learned(rng):
    X, _, y = waves(rng)
    Z = X[:7].clone()
    assert torch.equal(sg.fit(X, y, inducing=Z, learn_inducing=False).gp.inducing_points, Z)
    assert not torch.equal(sg.fit(X, y, inducing=Z).gp.inducing_points, Z)


@pytest.mark.slow
def test_a_warm_start_needs_fewer_evaluations(rng):
    X, f, y = waves(rng, 110)
    cold = sg.fit(X[:100], y[:100], num_inducing=20)
    warm = sg.fit(X, y, num_inducing=20, start=cold)
    again = sg.fit(X, y, num_inducing=20)
    assert warm.info.num_evaluations < again.info.num_evaluations / 2
    assert warm.info.bound > again.info.bound - 1.0
    from_gp = sg.fit(X, y, num_inducing=25, start=cold.gp, likelihood=cold.likelihood)
    assert from_gp.gp.num_inducing == 25
    assert rmse(from_gp, X, f) < 0.2


def test_a_warm_start_keeps_the_scaling(rng):
    X, _, y = waves(rng, 60)
    cold = sg.fit(100 * X, 50 * y, num_inducing=10, standardize=True)
    warm = sg.fit(100 * X, 50 * y, start=cold, num_inducing=10)
    assert warm.scaling is cold.scaling
    assert_close(warm.predict(100 * X).mean, cold.predict(100 * X).mean, **judgement(relative=0.05, absolute=2.0))


@pytest.mark.slow
def test_standardization_is_undone_exactly(rng):
    X, _, y = waves(rng, 60)
    inputs, targets = 1e3 * X + 7, 40 * y - 9
    result = sg.fit(inputs, targets, num_inducing=10, standardize=True)
    shift, spread = targets.mean(), targets.std(correction=0)
    scaled = (inputs - inputs.mean(0)) / inputs.std(0, correction=0)
    plain = sg.fit(scaled, (targets - shift) / spread, num_inducing=10)
    near = tolerance(X.dtype, scale=float(targets.abs().max()))
    assert_close(result.predict(inputs).mean, shift + spread * plain.predict(scaled).mean, **near)
    expected = spread**2 * plain.predict(scaled, covariance=True).covariance
    near = tolerance(X.dtype, scale=float(spread**2))
    assert_close(result.predict(inputs, covariance=True).covariance, expected, **near)
    density = plain.log_predictive_density(scaled, (targets - shift) / spread) - spread.log()
    assert_close(result.log_predictive_density(inputs, targets), density, **tolerance(X.dtype))


def test_unscaled_inputs_are_warned_of_with_the_remedy(rng):
    X, f, y = waves(rng, 60)
    with pytest.warns(StreamGPWarning, match="standardize='inputs'"):
        result = sg.fit(1e4 * X, y, num_inducing=15)
    assert "far from unit scale" in result.info.warnings[0]
    assert rmse(result, 1e4 * X, f) < 0.4


def test_a_kernel_that_is_not_made_for_the_inputs_is_refused_with_a_sentence(rng):
    X, _, y = waves(rng, 20)
    with pytest.raises(ShapeError, match=r"3 lengthscales .* inputs with 2 columns"):
        sg.fit(X, y, kernel=gpytorch.kernels.RBFKernel(ard_num_dims=3))


@pytest.mark.slow
def test_the_same_seed_gives_the_same_result(rng):
    X, _, y = waves(rng, 60)
    generators = [torch.Generator().manual_seed(seed) for seed in (1, 1, 2)]
    results = [sg.fit(X, y, num_inducing=6, max_iterations=20, generator=generator) for generator in generators]
    assert torch.equal(results[0].predict(X).mean, results[1].predict(X).mean)
    assert not torch.equal(results[0].predict(X).mean, results[2].predict(X).mean)


@pytest.mark.slow
@pytest.mark.thorough
def test_more_starts_are_no_worse(rng):
    X, _, y = waves(rng, 40)
    one, three = (sg.fit(X, y, num_inducing=5, num_starts=num, max_iterations=40) for num in (1, 3))
    assert three.info.bound + three.info.log_prior >= one.info.bound + one.info.log_prior
    assert three.info.num_evaluations > one.info.num_evaluations


@pytest.mark.slow
@pytest.mark.thorough
def test_the_predictive_objective_beats_the_bound_at_its_own_game(rng):
    X, _, y = waves(rng, 60)
    elbo, pll = (sg.fit(X, y, num_inducing=6, objective=name, max_iterations=60) for name in ("elbo", "pll"))
    densities = [result.log_predictive_density(X, y).sum() for result in (elbo, pll)]
    assert densities[1] > densities[0]
    assert pll.info.bound > elbo.info.bound


@pytest.mark.slow
@pytest.mark.parametrize("likelihood", [None, pytest.param(Poisson(), marks=pytest.mark.thorough)])
def test_a_low_temperature_fits_more_closely(rng, likelihood):
    X, f, y = waves(rng, 50)
    y = y if likelihood is None else torch.poisson(f.exp(), generator=rng)
    options = {"num_inducing": 6, "likelihood": likelihood, "max_iterations": 40}
    plain, cold = (sg.fit(X, y, beta=beta, **options) for beta in (1.0, 0.1))
    assert cold.predict(X).variance.mean() < plain.predict(X).variance.mean()
    assert cold.info.bound > plain.info.bound


@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_few_observations_are_enough(rng, n):
    X, _, y = waves(rng, n)
    result = sg.fit(X, y)
    W, _, _ = waves(rng, 20)
    prediction = result.predict(W)
    assert result.info.num_inducing <= n
    assert torch.isfinite(prediction.mean).all()
    assert (prediction.variance > 1e-6).any()


@pytest.mark.parametrize("value", [0.0, -3.0, 1e6])
def test_constant_targets_are_predicted(rng, value):
    X, _, _ = waves(rng, 30)
    result = sg.fit(X, torch.full((30,), value, dtype=torch.float64), num_inducing=10)
    expected = torch.full((30,), value, dtype=torch.float64)
    assert_close(result.predict(X).mean, expected, **tolerance(X.dtype, scale=1.0 + abs(value)))


def test_duplicate_rows_are_no_obstacle(rng):
    X, f, y = waves(rng, 10)
    result = sg.fit(X.repeat(6, 1), y.repeat(6), num_inducing=30)
    assert result.info.num_inducing == 10
    assert rmse(result, X, f) < 0.5


def test_all_rows_equal(rng):
    X = torch.full((20, 2), 0.3, dtype=torch.float64)
    y = torch.randn(20, generator=rng, dtype=torch.float64)
    result = sg.fit(X, y)
    assert result.predict(X[:1]).mean.item() == pytest.approx(y.mean().item(), **within(tolerance(X.dtype)))


@pytest.mark.filterwarnings("ignore:The fit found nothing but noise")
def test_a_hundred_dimensions(rng):
    X = torch.rand(60, 100, generator=rng, dtype=torch.float64)
    y = torch.sin(3 * X[:, 0]) + 0.1 * torch.randn(60, generator=rng, dtype=torch.float64)
    result = sg.fit(X, y, num_inducing=20, max_iterations=40)
    assert torch.isfinite(result.predict(X).variance).all()


@pytest.mark.parametrize(("scale", "offset"), [(1e-6, 0.0), (1e6, 0.0), (1e-12, 0.0), (1e12, 0.0), (1e-6, 5.0)])
def test_the_scale_of_the_targets_does_not_matter(rng, scale, offset):
    X, f, y = waves(rng, 80)
    usual = sg.fit(X, y, num_inducing=15)
    scaled = sg.fit(X, scale * y + offset, num_inducing=15)
    assert rmse(scaled, X, scale * f + offset) < 1.01 * scale * rmse(usual, X, f)
    ratio = scaled.likelihood.noise_variance / (scale**2 * usual.likelihood.noise_variance)
    assert float(ratio) == pytest.approx(1.0, **within(judgement(relative=0.01)))


@pytest.mark.parametrize("likelihood", [None, Gaussian(torch.full((200,), 0.04, dtype=torch.float64))])
def test_a_random_part_of_many_rows_is_fitted_first(rng, monkeypatch, likelihood):
    X, f, y = waves(rng, 200)
    monkeypatch.setattr("streamgp.training.full_batch._ROWS_OF_PART", 50)
    result = sg.fit(X, y, likelihood=likelihood, num_inducing=10, max_iterations=30)
    assert rmse(result, X, f) < 0.15
    # Its objective is another, and not part of the history.
    assert result.info.num_evaluations > len(result.info.history) + (20 if likelihood is None else -2)


def test_noise_given_for_each_observation_is_used(rng):
    X, f, _ = waves(rng, 80)
    noise = torch.full((80,), 0.01, dtype=torch.float64)
    noise[::2] = 4.0
    y = f + noise.sqrt() * torch.randn(80, generator=rng, dtype=torch.float64)
    result = sg.fit(X, y, likelihood=Gaussian(noise), num_inducing=20)
    assert rmse(result, X, f) < 0.2
    assert torch.equal(result.likelihood.noise_variance, noise)


@pytest.mark.slow
def test_numpy_arrays_and_memory_maps_are_read(rng, tmp_path):
    X, f, y = waves(rng, 400)
    np.save(tmp_path / "X.npy", X.numpy())
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    whole = sg.fit(mapped, y.numpy(), num_inducing=10)
    parts = sg.fit(mapped, y.numpy(), num_inducing=10, minibatches=Minibatches(batch_size=128, num_epochs=2))
    assert rmse(whole, X, f) < 0.1
    assert rmse(parts, X, f) < 0.1


def test_a_callback_sees_each_step_and_a_bar_can_be_shown(rng, capsys):
    X, _, y = waves(rng, 40)
    seen = []
    result = sg.fit(X, y, num_inducing=6, callback=seen.append, progress=True)
    assert len(seen) == len(result.info.history) - 1
    assert "steps" in capsys.readouterr().out


def test_a_fitted_gp_can_be_saved_exported_and_conditioned(rng, tmp_path):
    X, _, y = waves(rng, 60)
    gp = sg.fit(X, y, num_inducing=10).gp
    gp.save(tmp_path / "gp.sgp")
    assert_close(sg.load(tmp_path / "gp.sgp").predict(X).mean, gp.predict(X).mean)
    assert_close(sg.from_gpytorch(gp.to_gpytorch()).predict(X).mean, gp.predict(X).mean)
    assert gp.condition(X[:3], y[:3], noise_variance=0.1).predict(X).variance.sum() < gp.predict(X).variance.sum()


FIVE = torch.zeros(5, dtype=torch.float64)
ROWS = torch.rand(5, 2, dtype=torch.float64)


@pytest.mark.parametrize(
    ("X", "y", "options", "error", "message"),
    [
        (ROWS[0], FIVE, {}, ShapeError, r"X must have shape \(n, d\).*A single column is X.reshape\(-1, 1\)"),
        (ROWS[:0], FIVE[:0], {}, ShapeError, "with at least one observation"),
        (ROWS, FIVE.unsqueeze(-1), {}, ShapeError, r"y.squeeze\(-1\)"),
        (ROWS, FIVE[:3], {}, ShapeError, "y must have shape"),
        (ROWS * torch.nan, FIVE, {}, ValueRangeError, "X must be finite"),
        (ROWS, FIVE * torch.nan, {}, ValueRangeError, "y must be finite"),
        (ROWS, FIVE - 1, {"likelihood": Poisson()}, SupportError, "whole numbers"),
        (ROWS.long(), FIVE, {}, DTypeError, "X must be float32 or float64"),
        (ROWS, FIVE.float(), {}, DTypeError, "y is float32"),
        (ROWS, FIVE, {"likelihood": Preference()}, ShapeError, r"\(n, 2, d\)"),
        (ROWS, FIVE, {"inducing": ROWS[:, :1]}, ShapeError, "inducing must have 2 columns"),
        (ROWS, FIVE, {"inducing": ROWS[:0]}, ShapeError, r"inducing must have shape \(m, 2\)"),
        (ROWS, FIVE, {"inducing": ROWS.float()}, DTypeError, "inducing is float32"),
        (ROWS, FIVE, {"num_starts": 0}, ValueRangeError, "num_starts must be a whole number"),
        (ROWS, FIVE, {"standardize": "all"}, OptionError, "standardize must be"),
        (ROWS, FIVE, {"kernel": RBFKernel(batch_shape=torch.Size([2]))}, UnsupportedError, "leading axes"),
        (
            ROWS,
            FIVE,
            {"likelihood": Gaussian(FIVE + 1), "minibatches": Minibatches()},
            UnsupportedError,
            "constants for each observation",
        ),
    ],
)
def test_what_cannot_be_fitted_is_refused_with_a_sentence(X, y, options, error, message):
    with pytest.raises(error, match=message):
        sg.fit(X, y, **options)


def test_a_start_of_another_dimension_is_refused(rng):
    X, _, y = waves(rng, 20)
    start = sg.fit(X, y, num_inducing=5, max_iterations=3)
    with pytest.raises(ShapeError, match="must have one model of inputs with 1 columns"):
        sg.fit(X[:, :1], y, start=start)


def test_a_constant_mean_starts_at_the_mean_of_the_targets(rng):
    X, _, y = waves(rng, 40)
    result = sg.fit(X, y + 500.0, num_inducing=10)
    assert isinstance(result.gp.mean, ConstantMean)
    assert abs(result.gp.mean.constant.item() - 500.0) < 3.0
