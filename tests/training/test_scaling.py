import pytest
import torch
from tests.support.problems import random_sparse_gp
from torch.testing import assert_close

from streamgp.errors import OptionError
from streamgp.gp import Prediction
from streamgp.testing.tolerances import rounding
from streamgp.training.fitted_gp import RescaledProcess
from streamgp.training.scaling import describe_unscaled_inputs, find_scaling


def columns(rng):
    X = torch.rand(50, 3, generator=rng, dtype=torch.float64) * torch.tensor([1.0, 1e4, 0.0]) + 7.0
    return X, 100.0 + 5.0 * torch.randn(50, generator=rng, dtype=torch.float64)


def test_scaled_data_has_zero_mean_and_unit_variance_and_constants_are_shifted(rng):
    X, y = columns(rng)
    scaling = find_scaling(True, X, y, is_gaussian=True)
    scaled = scaling.inputs(X)
    # The mean of values between 7 and 8 has the size of 25 of their standard deviations.
    limits = rounding(torch.float64, scale=25.0)
    assert_close(scaled.mean(0), torch.zeros(3, dtype=torch.float64), **limits)
    assert_close(scaled.std(0, correction=0), torch.tensor([1.0, 1.0, 0.0], dtype=torch.float64), **limits)
    assert_close(scaling.targets(y).var(correction=0), torch.tensor(1.0, dtype=torch.float64))


@pytest.mark.parametrize("unit", [1e-20, 1e20])
def test_columns_are_scaled_whatever_their_units(rng, unit):
    X, y = columns(rng)
    usual, scaling = (
        find_scaling(True, X, y, is_gaussian=True),
        find_scaling(True, unit * X, unit * y, is_gaussian=True),
    )
    assert_close(scaling.inputs(unit * X), usual.inputs(X), **rounding(torch.float64, scale=25.0))
    assert_close(scaling.targets(unit * y), usual.targets(y), **rounding(torch.float64, scale=25.0))


@pytest.mark.parametrize(("standardize", "is_input", "is_target"), [("inputs", True, False), ("targets", False, True)])
def test_one_of_the_two_can_be_scaled(rng, standardize, is_input, is_target):
    X, y = columns(rng)
    scaling = find_scaling(standardize, X, y, is_gaussian=True)
    assert torch.equal(scaling.inputs(X), X) != is_input
    assert torch.equal(scaling.targets(y), y) != is_target


def test_targets_that_are_not_gaussian_stay_as_they_are(rng):
    X, y = columns(rng)
    assert torch.equal(find_scaling(True, X, y, is_gaussian=False).targets(y), y)
    with pytest.raises(OptionError, match="only targets with Gaussian noise can be scaled"):
        find_scaling("targets", X, y, is_gaussian=False)


def test_no_scaling_and_unknown_scalings(rng):
    assert find_scaling(False, *columns(rng), is_gaussian=True) is None
    with pytest.raises(OptionError, match="standardize must be True, False, 'inputs' or 'targets', but is 'both'"):
        find_scaling("both", *columns(rng), is_gaussian=True)


def test_a_rescaled_process_has_the_moments_of_the_scaled_variable(rng):
    process = random_sparse_gp(rng, num_dims=3).gp.process
    X, y = columns(rng)
    scaling = find_scaling(True, X, y, is_gaussian=True)
    rescaled, W = Prediction(RescaledProcess(process, scaling), X[:4]), scaling.inputs(X[:4])
    spread = y.std(correction=0)
    assert_close(rescaled.mean, y.mean() + spread * process.mean(W))
    assert_close(rescaled.variance, spread**2 * process.variance(W))
    assert_close(rescaled.covariance, spread**2 * process.covariance(W))


def test_unscaled_inputs_are_described_with_the_remedy(rng):
    X, _ = columns(rng)
    assert describe_unscaled_inputs(X[:, [0, 2]], advice="Scale them.") is None
    message = describe_unscaled_inputs(X, advice="Scale them.")
    assert "1 of 3 input columns" in message
    assert "column 1" in message
    assert message.endswith("Scale them.")


def test_scaling_follows_columns_of_tiny_scale_but_not_rounding(rng):
    X, y = columns(rng)
    X = X[:, :2]
    tiny = find_scaling(True, 2.0**-100 * X, 2.0**-100 * y, is_gaussian=True)
    usual = find_scaling(True, X, y, is_gaussian=True)
    assert torch.equal(tiny.inputs(2.0**-100 * X), usual.inputs(X))
    assert torch.equal(tiny.targets(2.0**-100 * y), usual.targets(y))
    rounded = 2.0**-100 * (1.0 + 1e-15 * X[:, :1])
    assert find_scaling(True, rounded, y, is_gaussian=True).input_scale.tolist() == [1.0]
