import numpy as np
import pytest
import torch
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
from torch.testing import assert_close

from streamgp.errors import NumericalError
from streamgp.streaming import hyperparameters
from streamgp.streaming.hyperparameters import default_kernel
from streamgp.streaming.plain_bound import PlainBound, is_plain
from streamgp.testing.tolerances import tolerance
from streamgp.training.parameters import hyperparameter_space
from streamgp.training.priors import read_priors


def _space(rng, kernel, d=3, noise=0.2, *, learn_inducing=False):
    X = torch.randn(40, d, generator=rng, dtype=torch.float64)
    setting = hyperparameters._setting(kernel, noise, X[:7], is_noise_learned=True)
    bounds = {"noise_variance": (-9.0, np.inf)}
    return X, hyperparameter_space(setting, learn_inducing=learn_inducing, likelihood_bounds=bounds)


@pytest.mark.parametrize("learn_inducing", [False, True])
@pytest.mark.parametrize("num_targets", [1, 3])
def test_bound_and_gradient_are_those_of_the_general_bound_and_priors(rng, num_targets, learn_inducing):
    X, space = _space(rng, default_kernel(3), learn_inducing=learn_inducing)
    Y = torch.randn(num_targets, 40, generator=rng, dtype=torch.float64)
    assert is_plain(space)
    base = space.base
    prior = read_priors("dim_scaled", base.kernel, base.mean, likelihood=base.likelihood, target_variance=1.7)
    plain = PlainBound.of(space, X, Y, 1.7, hyperparameters._JITTER)
    for shift in (0.0, 0.4):
        x = (space.start + shift).requires_grad_(True)
        expected = hyperparameters._objective(space, prior, X, Y, x)
        value = plain(x)
        assert_close(value, expected, **tolerance(torch.float64))
        (gradient,) = torch.autograd.grad(value, x)
        (wanted,) = torch.autograd.grad(expected, x)
        assert_close(gradient, wanted, **tolerance(torch.float64))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("x", [99.0, -99.0, 710.0, -800.0, np.nan])
def test_hyperparameters_out_of_range_are_refused_without_a_warning(rng, x):
    X = torch.randn(10, 2, generator=rng, dtype=torch.float64).numpy()
    plain = PlainBound(X, X[:, :1].T.copy(), X[:3], 1.0, hyperparameters._JITTER)
    start = np.zeros(4)
    start[1] = x  # a lengthscale
    if abs(x) < 100.0:
        assert np.isfinite(plain.value_and_gradient(start)[0])
    else:
        with pytest.raises(NumericalError, match="shorter step"):
            plain.value_and_gradient(start)


def _frozen():
    kernel = default_kernel(3)
    kernel.base_kernel.raw_lengthscale.requires_grad_(False)
    return kernel


@pytest.mark.parametrize(
    "kernel",
    [
        ScaleKernel(MaternKernel(1.5, ard_num_dims=3)),
        ScaleKernel(MaternKernel(2.5)),
        ScaleKernel(RBFKernel(ard_num_dims=3)),
        ScaleKernel(MaternKernel(2.5, ard_num_dims=3, active_dims=[0, 1, 2])),
        MaternKernel(2.5, ard_num_dims=3),
        _frozen(),
    ],
)
def test_other_kernels_are_left_to_the_general_bound(rng, kernel):
    assert not is_plain(_space(rng, kernel.double())[1])
