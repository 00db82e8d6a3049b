import copy

import gpytorch
import pytest
import torch
from gpytorch import variational
from tests.support.conditioning_laws import BATCH_SHAPES, DTYPES
from tests.support.gpytorch_models import SVGP
from torch.testing import assert_close

import streamgp as sg
from streamgp.errors import UnsupportedError, ValueRangeError
from streamgp.testing.tolerances import rounding

STRATEGIES = [variational.VariationalStrategy, variational.UnwhitenedVariationalStrategy]
DISTRIBUTIONS = [
    variational.CholeskyVariationalDistribution,
    variational.MeanFieldVariationalDistribution,
    variational.DeltaVariationalDistribution,
    variational.NaturalVariationalDistribution,
    variational.TrilNaturalVariationalDistribution,
]


def assert_predicts_as(gp, model, X):
    model.eval()
    with torch.no_grad():
        expected = model(X)
    # GPyTorch's whitened strategy adds its jitter to the variances too; the process q does not have it.
    is_whitened = type(model.variational_strategy) is variational.VariationalStrategy
    jitter = model.variational_strategy.jitter_val if is_whitened else 0.0
    covariance = expected.covariance_matrix - jitter * torch.eye(X.shape[-2], dtype=X.dtype)
    tolerances = {"rtol": 1e-9, "atol": 1e-10} if X.dtype == torch.float64 else {"rtol": 1e-3, "atol": 1e-3}
    prediction = gp.predict(X)
    assert_close(prediction.mean, expected.mean, **tolerances)
    assert_close(prediction.covariance, covariance, **tolerances)
    assert_close(prediction.variance, covariance.diagonal(dim1=-2, dim2=-1), **tolerances)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch_shape", BATCH_SHAPES)
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_is_read_predicts_as_the_model_does_from_the_first_moment(rng, strategy, distribution, batch_shape, dtype):
    torch.manual_seed(0)
    Z = torch.rand(*batch_shape, 6, 2, generator=rng, dtype=torch.float64).to(dtype)
    model = SVGP(Z, strategy=strategy, distribution=distribution, batch_shape=batch_shape)
    model.mean_module.constant.data.fill_(0.7)
    X = torch.rand(*batch_shape, 9, 2, generator=rng, dtype=torch.float64).to(dtype)
    assert_predicts_as(sg.from_gpytorch(model), model, X)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_is_read_predicts_as_the_trained_model_does(rng, strategy, distribution):
    torch.manual_seed(0)
    X = torch.rand(60, 2, generator=rng, dtype=torch.float64)
    y = (4 * X).sin().sum(-1) + 2.0
    model = SVGP(X[:7].clone(), strategy=strategy, distribution=distribution)
    likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
    bound = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=60)
    is_natural = "Natural" in distribution.__name__
    hyper = [p for name, p in model.named_parameters() if not (is_natural and "natural" in name)]
    optimizers = [torch.optim.Adam([*hyper, *likelihood.parameters()], lr=0.05)]
    if is_natural:
        optimizers.append(gpytorch.optim.NGD(model.variational_parameters(), num_data=60, lr=0.1))
    model.train()
    for _ in range(30):
        for optimizer in optimizers:
            optimizer.zero_grad()
        (-bound(model(X), y)).backward()
        for optimizer in optimizers:
            optimizer.step()
    gp = sg.from_gpytorch(model)
    W = torch.rand(9, 2, generator=rng, dtype=torch.float64)
    assert_predicts_as(gp, model, W)
    before = gp.predict(W).mean
    model.covar_module.outputscale = 9.0
    assert torch.equal(gp.predict(W).mean, before)


def test_a_shared_set_of_inducing_points_is_read_with_a_batch_of_beliefs(rng):
    torch.manual_seed(0)
    model = SVGP(torch.rand(6, 2, generator=rng, dtype=torch.float64), batch_shape=(3,))
    X = torch.rand(3, 5, 2, generator=rng, dtype=torch.float64)
    gp = sg.from_gpytorch(model)
    assert gp.inducing_points.shape == (3, 6, 2)
    assert_predicts_as(gp, model, X)


def test_a_belief_at_the_prior_can_be_conditioned(rng):
    model = SVGP(torch.rand(6, 2, generator=rng, dtype=torch.float64))
    model.variational_strategy._variational_distribution.mean_init_std = 0.0
    gp = sg.from_gpytorch(model)
    X = torch.rand(3, 2, generator=rng, dtype=torch.float64)
    y = torch.ones(3, dtype=torch.float64)
    prediction = gp.condition(X, y, noise_variance=0.01).predict(X)
    K = model.covar_module(X).to_dense()
    A = K + 0.01 * torch.eye(3, dtype=torch.float64)
    limits = rounding(torch.float64, condition=float(torch.linalg.cond(A.detach())))
    assert_close(prediction.mean, K @ torch.linalg.solve(A, y), **limits)


def test_other_strategies_are_refused_by_name(rng):
    Z = torch.rand(6, 2, generator=rng)
    with pytest.raises(UnsupportedError, match="VariationalStrategy, UnwhitenedVariationalStrategy, but is Ciq"):
        sg.from_gpytorch(SVGP(Z, strategy=variational.CiqVariationalStrategy))


def test_models_that_transform_their_inputs_are_refused(rng):
    class Deep(SVGP):
        def forward(self, x):
            return super().forward(x**2)

    with pytest.raises(UnsupportedError, match="Transform the inputs outside the model"):
        sg.from_gpytorch(Deep(torch.rand(6, 2, generator=rng)))


def test_a_kernel_under_another_name_is_passed_in(rng):
    class Renamed(SVGP):
        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.k(x))

    model = Renamed(torch.rand(6, 2, generator=rng, dtype=torch.float64))
    model.k = copy.deepcopy(model.covar_module)
    del model.covar_module
    with pytest.raises(UnsupportedError, match=r"has no attribute covar_module.*Pass it with kernel=\.\.\."):
        sg.from_gpytorch(model)
    X = torch.rand(4, 2, generator=rng, dtype=torch.float64)
    assert_predicts_as(sg.from_gpytorch(model, kernel=model.k), model, X)


def test_a_model_whose_training_diverged_is_refused(rng):
    model = SVGP(torch.rand(6, 2, generator=rng))
    model.variational_strategy.variational_params_initialized.fill_(1)
    model.variational_strategy._variational_distribution.variational_mean.data.fill_(float("nan"))
    with pytest.raises(ValueRangeError, match="the model's variational mean must be finite"):
        sg.from_gpytorch(model)
