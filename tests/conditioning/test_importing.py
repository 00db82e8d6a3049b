"""GPyTorch models of several outputs, read."""

import gpytorch
import pytest
import torch
from gpytorch.variational import (
    CholeskyVariationalDistribution,
    IndependentMultitaskVariationalStrategy,
    LMCVariationalStrategy,
    UnwhitenedVariationalStrategy,
    VariationalStrategy,
)
from tests.support.problems import random_sparse_gp
from torch.testing import assert_close

import streamgp as sg
from streamgp.errors import UnsupportedError
from streamgp.testing.tolerances import approximation, tolerance


class MultitaskModel(gpytorch.models.ApproximateGP):
    """Three outputs of latent functions."""

    def __init__(self, rng, *, kind, base, is_shared=False, mean=None):
        num_latents = 2 if kind == "lmc" else 3
        shape = torch.Size([num_latents])
        Z = torch.rand(num_latents, 5, 2, generator=rng, dtype=torch.float64)
        distribution = CholeskyVariationalDistribution(5, batch_shape=shape)
        strategy = base(self, Z, distribution, learn_inducing_locations=True)
        if kind == "lmc":
            strategy = LMCVariationalStrategy(strategy, num_tasks=3, num_latents=2, latent_dim=-1)
        else:
            strategy = IndependentMultitaskVariationalStrategy(strategy, num_tasks=3)
        super().__init__(strategy)
        kernel_shape = torch.Size() if is_shared else shape
        self.mean_module = gpytorch.means.ConstantMean(batch_shape=shape) if mean is None else mean
        base_kernel = gpytorch.kernels.MaternKernel(batch_shape=kernel_shape, ard_num_dims=2)
        self.covar_module = gpytorch.kernels.ScaleKernel(base_kernel, batch_shape=kernel_shape)
        self.double()
        root = torch.eye(5) + 0.3 * torch.randn(num_latents, 5, 5, generator=rng).tril()
        with torch.no_grad():
            for parameter in self.mean_module.parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=rng))
            distribution.variational_mean.copy_(torch.randn(num_latents, 5, generator=rng))
            distribution.chol_variational_covar.copy_(0.5 * root)
            self.covar_module.outputscale = 0.5 + torch.rand(kernel_shape, generator=rng)
        inner = self.variational_strategy.base_variational_strategy
        inner.variational_params_initialized.fill_(1)
        self.eval()

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


@pytest.mark.parametrize("kind", ["lmc", "independent"])
@pytest.mark.parametrize("base", [VariationalStrategy, UnwhitenedVariationalStrategy])
@pytest.mark.parametrize("is_shared", [False, True])
def test_a_model_of_several_outputs_is_read_to_the_same_predictions(rng, kind, base, is_shared):
    model = MultitaskModel(rng, kind=kind, base=base, is_shared=is_shared)
    gp = sg.from_gpytorch(model)
    assert isinstance(gp, sg.MultiOutputGP)
    X = torch.rand(4, 2, generator=rng, dtype=torch.float64)
    with torch.no_grad():
        expected = model(X)
    assert_close(gp.predict(X).mean, expected.mean, **approximation(1e-6, "jitter"))
    # GPyTorch adds its jitter of 1e-6 or so to predictive variances.
    assert_close(gp.predict(X).covariance, expected.covariance_matrix, **approximation(2e-4, "jitter"))
    conditioned = gp.condition(X, torch.zeros(4, 3, dtype=torch.float64), noise_variance=0.1)
    assert torch.isfinite(conditioned.predict(X).mean).all()


def test_a_model_of_one_output_is_read_to_the_same_predictions(rng):
    gp = random_sparse_gp(rng).gp
    model, X = gp.to_gpytorch(), torch.rand(4, 2, generator=rng, dtype=torch.float64)
    assert_close(sg.from_gpytorch(model).predict(X).covariance, gp.predict(X).covariance, **tolerance(torch.float64))


def test_means_that_cannot_be_mixed_are_refused(rng):
    mean = gpytorch.means.LinearMean(2, batch_shape=torch.Size([2]))
    model = MultitaskModel(rng, kind="lmc", base=VariationalStrategy, mean=mean)
    with pytest.raises(UnsupportedError, match="must have zero or constant means, but have a LinearMean"):
        sg.from_gpytorch(model)
