import gpytorch
import pytest
import torch
from gpytorch.kernels import MaternKernel, ScaleKernel

from paper.baselines.adam_svgp import AdamLoop, train_svgp
from streamgp.acquisition import NoisyExpectedImprovement, Search
from streamgp.likelihoods import Gaussian, Poisson


def kernel():
    return ScaleKernel(MaternKernel(2.5, ard_num_dims=2)).double()


@pytest.mark.slow
def test_training_with_a_point_at_each_input_comes_to_the_exact_posterior(rng):
    X = torch.rand(8, 2, generator=rng, dtype=torch.float64)
    y = torch.sin(5.0 * X[:, 0])
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    likelihood.noise = 0.1
    gp = train_svgp(X, y, likelihood=likelihood, kernel=kernel(), num_inducing=8, most_steps=150)
    K = gp.kernel(X).to_dense() + 0.1 * torch.eye(8, dtype=X.dtype)
    mean = gp.mean(X)
    exact = mean + gp.kernel(X).to_dense() @ torch.linalg.solve(K, y - mean)
    # Adam stops near the optimum, at which the belief is exact.
    assert float((gp.predict(X).mean - exact).abs().max()) < 0.1
    assert float((exact - y).abs().max()) < float(y.abs().max())


@pytest.mark.parametrize("likelihood", [Gaussian(0.01, is_learned=False), Poisson()])
def test_the_loop_asks_for_points_of_the_box_that_depend_on_the_seed_alone(likelihood, rng):
    X = torch.rand(6, 2, generator=rng, dtype=torch.float64)
    Y = torch.stack([torch.round(3.0 * X[:, 0]), X.sum(-1) - 1.5], dim=-1)

    def asked():
        loop = AdamLoop(
            torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64),
            NoisyExpectedImprovement(16),
            likelihoods=(likelihood, Gaussian(0.01, is_learned=False)),
            make_kernel=kernel,
            num_inducing=4,
            search=Search(num_restarts=1, raw_samples=8, max_iterations=5),
            seed=3,
            most_steps=5,
        )
        loop.tell(X, Y)
        return torch.cat([loop.ask(2), loop.best(anywhere=True).X.unsqueeze(0)])

    first = asked()
    assert first.shape == (3, 2)
    assert bool(((first >= 0.0) & (first <= 1.0)).all())
    assert torch.equal(first, asked())
