import botorch.test_functions as botorch
import pytest
import torch
from torch.testing import assert_close

from paper.problems import Ackley, Branin, Hartmann6, PoissonHartmann6, PreferenceCosine, Rover
from streamgp.errors import ShapeError, ValueRangeError
from streamgp.testing.tolerances import approximation, tolerance, within

DTYPES = [torch.float32, torch.float64]
PROBLEMS = {
    "hartmann": Hartmann6(),
    "poisson": PoissonHartmann6(),
    "branin": Branin(noise_variance=0.1),
    "ackley": Ackley(3),
    "preference": PreferenceCosine(),
    "rover": Rover(),
}
REFERENCES = {
    "hartmann": lambda dtype: botorch.Hartmann(dim=6, negate=True, dtype=dtype),
    "poisson": lambda dtype: botorch.Hartmann(dim=6, negate=True, dtype=dtype),
    "branin": lambda dtype: botorch.Branin(negate=True, dtype=dtype),
    "ackley": lambda dtype: botorch.Ackley(dim=3, negate=True, dtype=dtype),
}


def inputs(problem, rng, *shape, dtype=torch.float64):
    lower, upper = problem.bounds.to(dtype)
    return lower + (upper - lower) * torch.rand(*shape, problem.dim, generator=rng, dtype=dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", REFERENCES)
def test_values_and_bounds_are_those_of_botorch(rng, name, dtype):
    problem, reference = PROBLEMS[name], REFERENCES[name](dtype)
    X = inputs(problem, rng, 50, dtype=dtype)
    assert_close(problem.evaluate(X), reference(X), **tolerance(dtype, scale=20))
    assert_close(problem.bounds, reference.bounds.double(), **approximation(2e-6, "printed"))  # BoTorch rounds them
    assert problem.optimum.value == pytest.approx(
        reference.optimal_value, **within(approximation(1e-4, "printed") | {"rtol": 0.0})
    )


@pytest.mark.parametrize("name", [name for name in PROBLEMS if name != "rover"])
def test_the_optimum_is_a_peak_of_the_stated_height(rng, name):
    problem = PROBLEMS[name]
    peaks = problem.optimum.inputs
    assert_close(
        problem(peaks),
        torch.full((len(peaks),), problem.optimum.value).double(),
        **approximation(1e-5, "printed") | {"rtol": 0.0},
    )
    lower, upper = problem.bounds
    near = peaks.unsqueeze(1) + 0.02 * (upper - lower) * torch.randn(len(peaks), 300, problem.dim, generator=rng)
    assert (problem(near.clamp(lower, upper)) < problem.optimum.value).all()
    assert (problem(inputs(problem, rng, 5000)) < problem.optimum.value).all()
    assert (problem.evaluate_constraints(peaks) <= 0).all()


@pytest.mark.parametrize("name", ["hartmann", "branin", "preference"])
def test_the_gradient_vanishes_at_the_optimum(name):
    problem = PROBLEMS[name]
    peaks = problem.optimum.inputs.clone().requires_grad_()
    problem(peaks).sum().backward()
    assert (peaks.grad.abs() < 1e-3).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", PROBLEMS)
def test_observations_have_the_shape_and_dtype_of_inputs_and_repeat_with_their_seed(rng, name, dtype):
    problem = PROBLEMS[name]
    X = inputs(problem, rng, 2, 5, dtype=dtype)
    first, second = (problem.observe(X, torch.Generator().manual_seed(0)) for _ in range(2))
    trailing = (1 + problem.num_constraints,) if problem.num_constraints else ()
    assert torch.equal(first, second)
    assert first.shape == (2, 5, *trailing)
    assert first.dtype == problem(X).dtype == dtype
    assert problem(X).shape == (2, 5)
    assert problem.evaluate_constraints(X).shape == (2, 5, problem.num_constraints)
    assert_close(problem(X)[1], problem(X[1]))


@pytest.mark.parametrize("name", ["hartmann", "branin", "preference"])
def test_gaussian_noise_has_the_stated_variance(rng, name):
    problem, n = PROBLEMS[name], 4000
    X = inputs(problem, rng, 1).expand(n, -1)
    y = problem.observe(X, rng)
    values = torch.cat([problem(X).unsqueeze(-1), problem.evaluate_constraints(X)], dim=-1)
    residual = y.reshape(n, -1) - values
    variance = problem.noise_variance
    assert (residual.mean(0).abs() < 5 * (variance / n) ** 0.5).all()
    assert ((residual.var(0) - variance).abs() < 5 * variance * (2 / n) ** 0.5).all()


def test_counts_have_the_stated_rate(rng):
    problem, n = PoissonHartmann6(is_constrained=False), 4000
    X = inputs(problem, rng, 1).expand(n, -1)
    counts, rate = problem.observe(X, rng), problem(X)[0].exp()
    assert torch.equal(counts, counts.round())
    assert abs(counts.mean() - rate) < 5 * (rate / n) ** 0.5
    assert abs(counts.var() - rate) < 5 * ((rate + 2 * rate**2) / n) ** 0.5


def test_the_constraint_is_the_sum_of_inputs(rng):
    problem = Hartmann6(noise_variance=0.0)
    X = inputs(problem, rng, 6)
    assert_close(problem.observe(X), torch.stack([problem(X), X.sum(-1) - 3], dim=-1))
    assert Hartmann6(is_constrained=False).observe(X).shape == (6,)


def test_comparisons_follow_the_noisy_values(rng):
    problem, n = PreferenceCosine(), 4000
    best, other = problem.optimum.inputs.expand(n, -1), inputs(problem, rng, 1).expand(n, -1)
    assert problem.compare(best, other, rng).all()
    share = problem.compare(other, other, rng).double().mean()
    assert abs(share - 0.5) < 5 * 0.5 / n**0.5


def test_problems_of_equal_settings_are_equal():
    assert Hartmann6() == Hartmann6()
    assert Ackley(2) != Ackley(3)


@pytest.mark.parametrize("make", [Branin, Hartmann6, PoissonHartmann6, PreferenceCosine, Ackley])
def test_a_negative_variance_is_refused(make):
    with pytest.raises(ValueRangeError, match=r"noise_variance must not be negative, but is -1"):
        make(noise_variance=-1.0)


def test_inputs_outside_the_bounds_are_refused_and_rounding_is_not():
    problem = Branin()
    X = problem.bounds.clone()
    X[1] += 1e-9
    assert_close(problem(X), problem(problem.bounds))
    X[1, 0] = 11.0
    with pytest.raises(ValueRangeError, match=r"bounds of Branin, but 1 of its rows do not, the first at index \(1,\)"):
        problem(X)


def test_inputs_of_the_wrong_shape_are_refused():
    with pytest.raises(ShapeError, match=r"X must have shape \(..., n, 2\).*but has shape \(2,\)"):
        Branin()(torch.zeros(2))
