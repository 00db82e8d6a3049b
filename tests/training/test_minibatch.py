import weakref

import pytest
import torch
from gpytorch.kernels import MaternKernel, ScaleKernel
from gpytorch.means import ConstantMean
from torch.testing import assert_close

import streamgp as sg
from streamgp.errors import OptionError
from streamgp.likelihoods import Bernoulli, Gaussian, Poisson
from streamgp.testing.tolerances import judgement, regression_condition, rounding, tolerance
from streamgp.training import Minibatches
from streamgp.training.arguments import Options
from streamgp.training.collapsed import NaturalBelief, collapse, collapsed_bound, sum_batches
from streamgp.training.features import Observed, observed_features
from streamgp.training.full_batch import evaluate
from streamgp.training.minibatch import natural_step
from streamgp.training.parameters import Hyperparameters
from streamgp.training.result import optimal_process
from streamgp.training.uncollapsed import latent_moments


def random_setting(rng, likelihood):
    kernel, mean = ScaleKernel(MaternKernel(2.5, ard_num_dims=2)).double(), ConstantMean().double()
    mean.initialize(constant=0.4)
    return Hyperparameters(kernel, mean, likelihood, torch.rand(6, 2, generator=rng, dtype=torch.float64), {})


def waves(rng, n):
    X = torch.rand(n, 2, generator=rng, dtype=torch.float64)
    f = torch.sin(6 * X[:, 0]) + torch.cos(4 * X[:, 1])
    return X, f, f + 0.2 * torch.randn(n, generator=rng, dtype=torch.float64)


def test_a_whole_step_on_all_gaussian_data_is_the_optimal_belief(rng):
    setting = random_setting(rng, Gaussian(0.2))
    X, _, y = waves(rng, 30)
    data = Observed(X, y)
    start = NaturalBelief(3.0 * torch.eye(6, dtype=torch.float64), torch.ones(6, dtype=torch.float64))
    features = observed_features(setting, data)
    belief = natural_step(start, features, setting.likelihood, y, weight=1.0, rate=1.0)
    m, R, _ = belief.moments()
    process = optimal_process(setting, data)
    same = rounding(torch.float64, condition=regression_condition(30, 0.2))
    assert_close(m, process.whitened_mean, **same)
    assert_close(R @ R.mT, process.whitened_root @ process.whitened_root.mT, **same)


def test_steps_of_natural_gradients_climb(rng):
    setting = random_setting(rng, Poisson())
    X, f, _ = waves(rng, 40)
    y = torch.poisson(f.exp(), generator=rng)
    features = observed_features(setting, Observed(X, y))
    belief = NaturalBelief(torch.eye(6, dtype=torch.float64), torch.zeros(6, dtype=torch.float64))
    values = []
    for _ in range(15):
        m, R, divergence = belief.moments()
        fit = setting.likelihood.expected_log_density(*latent_moments(features, m, R), y).sum()
        values.append((fit - divergence).item())
        belief = natural_step(belief, features, setting.likelihood, y, weight=1.0, rate=0.3)
    assert values == sorted(values)


@pytest.mark.parametrize("beta", [1.0, 0.5])
def test_sums_over_batches_give_belief_and_bound_of_all_data(rng, beta):
    setting = random_setting(rng, Gaussian(0.2))
    X, _, y = waves(rng, 30)
    data = Observed(X, y)
    parts = [Observed(X[i : i + 7], y[i : i + 7]) for i in range(0, 30, 7)]
    with torch.no_grad():
        sums = sum_batches(setting, parts, beta=beta)
        optimum = collapse(sums, beta)
        m, R, _ = NaturalBelief(optimum.precision, sums.pull).moments()
    process = optimal_process(setting, data, beta=beta)
    assert_close(m, process.whitened_mean, **tolerance(torch.float64))
    assert_close(R @ R.mT, process.whitened_root @ process.whitened_root.mT, **tolerance(torch.float64))
    assert float(optimum.bound) == pytest.approx(
        collapsed_bound(setting, data, setting.likelihood.noise_variance, beta=beta).item()
    )
    assert beta * float(sums.slack) / 30 == pytest.approx(evaluate(setting, data, Options()).trace_slack)


@pytest.mark.slow
@pytest.mark.thorough
def test_minibatches_come_near_the_bound_of_all_data_at_once(rng):
    X, _, y = waves(rng, 2000)
    whole = sg.fit(X, y, num_inducing=20)
    sizes = Minibatches(batch_size=400, num_warm_rows=500, num_epochs=40, natural_rate=0.5)
    parts = sg.fit(X, y, num_inducing=20, minibatches=sizes)
    assert parts.info.bound > whole.info.bound - 0.01 * len(y)
    W = torch.rand(50, 2, generator=rng, dtype=torch.float64)
    assert_close(parts.predict(W).mean, whole.predict(W).mean, **judgement(absolute=0.05))


@pytest.mark.slow
def test_minibatches_of_classes_come_near_the_bound_of_all_data_at_once(rng):
    X, f, _ = waves(rng, 600)
    y = torch.bernoulli(torch.sigmoid(3 * f), generator=rng)
    whole = sg.fit(X, y, likelihood=Bernoulli(), num_inducing=10)
    sizes = Minibatches(batch_size=100, num_warm_rows=150, num_epochs=8)
    parts = sg.fit(X, y, likelihood=Bernoulli(), num_inducing=10, minibatches=sizes)
    nlpd = [-result.log_predictive_density(X, y).mean() for result in (whole, parts)]
    assert nlpd[1] < nlpd[0] + 0.01


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["elbo", "pll"])
def test_a_generator_is_enough_and_memory_does_not_grow_with_its_length(objective):
    alive = []

    def batches(num_batches):
        generator = torch.Generator().manual_seed(0)
        for _ in range(num_batches):
            X, _, y = waves(generator, 200)
            alive.append(weakref.ref(X))
            yield X, y
            # The first batch is kept, as the sample; all others may go when the next one comes.
            assert sum(reference() is not None for reference in alive) <= 3

    sizes = Minibatches(num_data=8000, num_warm_rows=200)
    result = sg.fit(batches(40), num_inducing=8, minibatches=sizes, objective=objective)
    X, f, _ = waves(torch.Generator().manual_seed(1), 200)
    assert (result.predict(X).mean - f).square().mean().sqrt() < 0.2
    assert len(alive) == 40
    assert "8000 observations" in result.info.reason


def test_a_function_that_returns_the_same_iterator_twice_is_refused(rng):
    X, _, y = waves(rng, 50)
    once = iter([(X, y)])
    with pytest.raises(OptionError, match="must return a new iterator each time"):
        sg.fit(lambda: once, num_inducing=5, minibatches=Minibatches(num_epochs=1))
