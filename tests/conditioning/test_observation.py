import numpy as np
import pandas as pd
import pytest
import torch
from gpytorch.kernels import RBFKernel
from torch import Tensor

import streamgp as sg
from streamgp.conditioning.observation import Observation
from streamgp.errors import ArgumentTypeError, DTypeError, OptionError, ShapeError, ValueRangeError
from streamgp.likelihoods import Gaussian, Poisson

LIKE = torch.zeros(1, 2, dtype=torch.float64)
X, Y = torch.rand(3, 2, dtype=torch.float64), torch.ones(3, dtype=torch.float64)


def read(X, y, *, like=LIKE, **options):
    process = sg.SparseGP.from_prior(RBFKernel(), like).process
    return Observation.read(
        X, y, process, **({"noise_variance": None, "likelihood": None, "sites": "laplace"} | options)
    )


def test_what_is_no_number_is_refused_with_a_remedy():
    with pytest.raises(DTypeError, match=r"X must be numbers, but is a str. Pass numbers"):
        read("abc", Y, noise_variance=1.0)
    with pytest.raises(ShapeError, match=r"y must have shape"):
        read(X, 1.0, noise_variance=1.0)
    with pytest.raises(DTypeError, match=r"noise_variance must be numbers, but is a str"):
        read(X, Y, noise_variance="small")


def test_lists_and_arrays_are_read_as_tensors_are():
    for convert in (np.asarray, Tensor.tolist, pd.DataFrame):
        observation = read(convert(X), Y.tolist(), noise_variance=1.0)
        assert torch.equal(observation.inputs, X)
        assert observation.inputs.dtype == LIKE.dtype


def test_a_noise_matrix_that_is_not_symmetric_is_refused():
    n = len(Y)
    with pytest.raises(ValueRangeError, match="noise_variance must be a symmetric matrix, but entries"):
        read(X, Y, noise_variance=torch.eye(n, dtype=X.dtype) + 0.3 * torch.ones(n, n, dtype=X.dtype).tril(-1))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_noise_matrix_that_is_no_covariance_is_refused(dtype):
    n = len(Y)
    inputs, targets, like = X.to(dtype), Y.to(dtype), LIKE.to(dtype)
    eye, ones = torch.eye(n, dtype=dtype), torch.ones(n, n, dtype=dtype)
    with pytest.raises(ValueRangeError, match="noise_variance must be a covariance matrix, but has a negative eigen"):
        read(inputs, targets, noise_variance=2.0 * ones - eye, like=like)
    for singular in (ones, 0.0 * ones, 1e6 * ones):  # some or all combinations are without noise
        assert read(inputs, targets, noise_variance=singular, like=like).noise.is_matrix


@pytest.mark.parametrize("shape", [(0, 0), (2, 0, 0)])
def test_the_noise_of_no_observations_may_be_a_matrix(shape):
    inputs = X[:0].expand(*shape[:-2], 0, X.shape[-1])
    assert read(inputs, Y[:0], noise_variance=X.new_zeros(shape)).noise.values.shape == shape


def test_a_foreign_likelihood_is_refused_with_a_remedy():
    with pytest.raises(ArgumentTypeError, match=r"likelihood must be a name .*, but is a float"):
        read(X, Y, likelihood=1.0)


def test_a_likelihood_by_name_is_that_of_the_registry():
    assert isinstance(read(X, Y.abs().round(), likelihood="poisson").likelihood, Poisson)
    with pytest.raises(OptionError, match=r"likelihood must be one of .*'poisson'.* but is 'fish'"):
        read(X, Y, likelihood="fish")


def test_a_gaussian_likelihood_is_known_noise():
    observation = read(X, Y, likelihood=Gaussian(0.3))
    assert observation.likelihood is None
    assert observation.noise is not None
    assert float(observation.noise.values) == 0.3


@pytest.mark.parametrize("likelihood", ["preference", "poisson", None])
def test_leading_axes_must_broadcast_with_those_of_the_gp(likelihood):
    batch = torch.rand(3, 4, 2, dtype=torch.float64)
    process = sg.SparseGP.from_prior(RBFKernel(), batch).process
    own = (5, 2, 2) if likelihood == "preference" else (5, 2)
    options = {"noise_variance": None if likelihood else 0.1, "likelihood": likelihood, "sites": "laplace"}
    for lead, is_good in (((), True), ((3,), True), ((1,), True), ((7, 3), True), ((2,), False), ((3, 2), False)):
        X, y = torch.rand(*lead, *own, dtype=torch.float64), torch.ones(5, dtype=torch.float64)
        if is_good:
            assert Observation.read(X, y, process, **options).targets.shape[-1] == 5
            lead = lead or (1,)
            fantasies = Observation.read(X, torch.ones(6, *lead, 5, dtype=torch.float64), process, **options)
            assert fantasies.targets.shape == (6, *lead, 5)
        else:
            with pytest.raises(ShapeError, match="X"):
                Observation.read(X, y, process, **options)
    with pytest.raises(ShapeError, match="y"):
        Observation.read(
            torch.rand(own, dtype=torch.float64), torch.ones(2, 5, dtype=torch.float64), process, **options
        )
