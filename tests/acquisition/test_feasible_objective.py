import pytest
import torch
from botorch.models.model import Model
from torch.testing import assert_close

from streamgp.acquisition.feasible_objective import FeasibleMean, FeasibleObjective
from streamgp.testing.tolerances import tolerance

LIMITS = ((None, 0.3), (-0.5, 0.8), (0.1, None))


class Independent:
    """A posterior of independent Gaussian outputs."""

    def __init__(self, mean, variance):
        self.mean, self.variance = mean, variance

    def sample(self, num, rng):
        noise = torch.randn(num, *self.mean.shape, generator=rng, dtype=self.mean.dtype)
        return self.mean + self.variance.sqrt() * noise


def independent(rng, num_outputs):
    mean = torch.randn(5, num_outputs, generator=rng, dtype=torch.float64)
    return Independent(mean, torch.rand(5, num_outputs, generator=rng, dtype=torch.float64) + 0.1)


@pytest.mark.parametrize("weight", [1.0, -1.0])
@pytest.mark.parametrize("num_limits", [0, 1, 3])
def test_the_value_is_the_expectation_over_samples(rng, weight, num_limits):
    objective = FeasibleObjective((weight,), LIMITS[:num_limits], cost=2.0)
    posterior = independent(rng, 1 + num_limits)
    samples = posterior.sample(200_000, rng)
    is_feasible = objective.violation(samples) == 0
    draws = torch.where(is_feasible, objective.score(samples) + 2.0, 0.0) - 2.0
    error = draws.std(0) / 200_000**0.5
    assert ((objective.value(posterior) - draws.mean(0)).abs() < 5 * error).all()


def test_feasibility_is_the_share_of_samples_within_the_limits(rng):
    objective = FeasibleObjective((1.0,), LIMITS)
    posterior = independent(rng, 4)
    samples = posterior.sample(100_000, rng)
    chance = objective.feasibility(posterior)
    for j, (lower, upper) in enumerate(LIMITS):
        y = samples[..., j + 1]
        share = ((y >= (lower or -1e9)) & (y <= (upper or 1e9))).double().mean(0)
        assert ((chance[:, j] - share).abs() < 5 * (0.25 / 100_000) ** 0.5).all()


def test_constraints_are_negative_where_the_limits_are_kept(rng):
    objective = FeasibleObjective((1.0,), LIMITS)
    samples = torch.randn(50, 4, generator=rng, dtype=torch.float64)
    is_kept = torch.stack([function(samples) <= 0 for function in objective.constraints]).all(0)
    assert torch.equal(is_kept, objective.violation(samples) == 0)
    assert is_kept.any()
    assert len(objective.constraints) == 4
    assert FeasibleObjective().constraints is None


def test_what_is_certain_is_feasible_or_not(rng):
    mean = torch.tensor([[0.0, 0.29], [0.0, 0.31]], dtype=torch.float64)
    chance = FeasibleObjective((1.0,), LIMITS[:1]).feasibility(Independent(mean, torch.zeros_like(mean)))
    assert chance.squeeze(-1).tolist() == [1.0, 0.0]


def test_the_mean_is_differentiable(rng):
    class Sines(Model):
        num_outputs = 2

        def posterior(self, X):
            mean = torch.stack([X.sum(-1).sin(), X.prod(-1)], dim=-1)
            return Independent(mean, 0.1 + mean.square())

    function = FeasibleMean(Sines(), FeasibleObjective((-1.0,), LIMITS[:1], cost=1.0))
    X = torch.rand(3, 1, 2, generator=rng, dtype=torch.float64).requires_grad_(True)
    assert function(X).shape == (3,)
    assert torch.autograd.gradcheck(function, (X,))


def test_without_limits_the_mean_is_that_of_the_objective(rng):
    posterior = independent(rng, 1)
    assert_close(FeasibleObjective((-1.0,)).value(posterior), -posterior.mean[:, 0], **tolerance(torch.float64))


def test_the_value_asks_for_no_variance_of_the_objective(rng, smooth_model):
    X = torch.rand(8, 2, generator=rng, dtype=torch.float64)
    model = smooth_model(X, torch.stack([X.sum(-1), X.prod(-1)], dim=-1), noise=0.05, lengthscale=0.3)
    objective, lazy, plain = FeasibleObjective((-1.0,), LIMITS[:1], cost=1.0), model.posterior(X), model.posterior(X)
    expected = objective.value(Independent(plain.mean, plain.variance))
    assert_close(objective.value(lazy), expected, **tolerance(torch.float64))
    asked = [set(vars(output)) & {"variance", "deviation", "_covariance"} for output in lazy.outputs]
    assert asked == [set(), {"deviation"}]
