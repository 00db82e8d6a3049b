import gpytorch
import pytest
import torch

import streamgp as sg
from streamgp.errors import NumericalError
from streamgp.testing.problems import random_sparse_gp


@pytest.mark.parametrize("moment", ["mean", "variance", "covariance"])
def test_moments_that_overflow_are_refused(moment):
    kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.LinearKernel())
    gp, _ = sg.SparseGP.from_prior(kernel, torch.ones(1, 1)).absorb(
        torch.ones(1, 1), torch.full((1,), 100.0), noise_variance=0.1, inducing="keep"
    )
    prediction = gp.predict(torch.tensor([[1.0], [3e38]]))
    with pytest.raises(NumericalError, match=f"The {moment} of the prediction is beyond what float32 can hold"):
        getattr(prediction, moment)


def test_moments_are_computed_once_and_only_when_asked_for(rng):
    prediction = random_sparse_gp(rng).gp.predict(torch.rand(3, 2, generator=rng, dtype=torch.float64))
    assert not {"mean", "variance", "covariance"} & set(vars(prediction))
    assert prediction.mean is prediction.mean
    assert prediction.standard_deviation.equal(prediction.variance.sqrt())
    assert "covariance" not in vars(prediction)


def test_the_variance_is_read_off_a_covariance_that_is_there(rng):
    prediction = random_sparse_gp(rng).gp.predict(torch.rand(3, 2, generator=rng, dtype=torch.float64), covariance=True)
    assert prediction.variance.equal(prediction.covariance.diagonal())
