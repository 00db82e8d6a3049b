import math
from copy import deepcopy

import pytest
import torch
from gpytorch.means import ZeroMean

from streamgp.likelihoods import Gaussian
from streamgp.streaming.hyperparameters import (
    FittedHyperparameters,
    _bound,
    default_kernel,
    learn_hyperparameters,
    refine_hyperparameters,
    scaled_to,
)
from streamgp.testing.tolerances import evidence_jitter, within
from streamgp.training.parameters import Hyperparameters


def _problem(rng, n=80, c=1):
    X = torch.randn(n, 2, generator=rng, dtype=torch.float64)
    Y = torch.sin(2.0 * X[:, 0]).expand(c, n) + 0.2 * torch.randn(c, n, generator=rng, dtype=torch.float64)
    return X, Y - Y.mean(-1, keepdim=True)


def test_with_points_at_all_inputs_the_bound_is_the_log_marginal_likelihood_of_all_targets(rng):
    X, Y = _problem(rng, n=20, c=3)
    kernel = default_kernel(2)
    setting = Hyperparameters(kernel, ZeroMean(), Gaussian(torch.tensor(0.3).double()), X, {})
    with torch.no_grad():
        K = kernel(X).to_dense() + 0.3 * torch.eye(20, dtype=torch.float64)
        law = torch.distributions.MultivariateNormal(torch.zeros(20, dtype=torch.float64), K)
        near = evidence_jitter(K, Y.mT, 1e-8 * float(K.diagonal().mean()))
        assert float(_bound(setting, X, Y)) == pytest.approx(float(law.log_prob(Y).sum()), **within(near))


@pytest.fixture(scope="module")
def learned():
    X, Y = _problem(torch.Generator().manual_seed(3))
    options = {"kernel": default_kernel(2), "noise_variance": None, "num_inducing": 20, "seed": 0}
    return X, Y, options, learn_hyperparameters(X, Y, before=None, **options)


def test_noise_and_relevance_of_columns_are_learned(learned):
    _, _, _, (found, gain) = learned
    assert 0.02 < found.noise_variance < 0.08
    first, second = found.kernel.base_kernel.lengthscale.flatten().tolist()
    assert second > 2.0 * first
    assert math.isnan(gain)


def test_a_search_from_what_was_learned_never_loses(learned):
    X, Y, options, (found, _) = learned
    again, gain = learn_hyperparameters(X, Y, before=found, is_thorough=False, **options)
    assert gain >= -1e-9
    assert again.bound >= found.bound - 1e-3


def test_noise_that_is_known_stays(learned):
    X, Y, options, _ = learned
    found, _ = learn_hyperparameters(X, Y, before=None, **{**options, "noise_variance": 0.5})
    assert found.noise_variance == pytest.approx(0.5)


def test_an_outputscale_that_the_user_froze_is_not_scaled(learned):
    _, _, _, (found, _) = learned
    assert float(scaled_to(found, 3.0).kernel.outputscale.detach()) == pytest.approx(3.0)
    frozen = deepcopy(found.kernel)
    frozen.raw_outputscale.requires_grad_(False)
    kept = scaled_to(type(found)(frozen, found.noise_variance, found.inducing_points), 3.0)
    assert torch.equal(kept.kernel.outputscale, found.kernel.outputscale)


def _rough(n=150):
    draw = torch.Generator().manual_seed(1)
    X = torch.randn(n, 4, generator=draw, dtype=torch.float64)
    y = torch.sin(2.0 * X[:, 0]) * torch.cos(X[:, 1]) + X[:, 2] + 0.1 * torch.randn(n, generator=draw).double()
    return X, (y - y.mean()).unsqueeze(0)


def test_points_that_are_learned_with_hyperparameters_explain_more():
    X, Y = _rough()
    kernel = default_kernel(4)
    found, _ = learn_hyperparameters(X, Y, kernel=kernel, before=None, noise_variance=None, num_inducing=15, seed=0)
    refined = refine_hyperparameters(X, Y, found, kernel=kernel, is_noise_learned=True)
    assert refined.bound > found.bound + 0.02
    assert refined.noise_variance < found.noise_variance
    assert refined.inducing_points.shape == found.inducing_points.shape
    assert not torch.equal(refined.inducing_points, found.inducing_points)


def test_what_the_user_froze_or_knows_is_not_refined():
    X, Y = _rough()
    kernel = default_kernel(4)
    kernel.base_kernel.raw_lengthscale.requires_grad_(False)
    start = FittedHyperparameters(kernel, 0.3, X[:15])
    refined = refine_hyperparameters(X, Y, start, kernel=kernel, is_noise_learned=False)
    assert torch.equal(refined.kernel.base_kernel.lengthscale, kernel.base_kernel.lengthscale)
    assert refined.noise_variance == pytest.approx(0.3)
    assert not torch.equal(refined.kernel.outputscale, kernel.outputscale)
    assert not torch.equal(refined.inducing_points, X[:15])
