"""A model whose hyperparameters are given, so that tests need no fit."""

import pytest
import torch
from gpytorch.kernels import RBFKernel, ScaleKernel

import streamgp as sg
from streamgp.likelihoods import Gaussian


@pytest.fixture
def smooth_model():
    """Make a model of given outcomes, with an inducing point at every input."""

    def make(X, Y, *, noise=1e-3, lengthscale=0.5):
        kernel = ScaleKernel(RBFKernel())
        kernel.outputscale, kernel.base_kernel.lengthscale = 1.0, lengthscale
        start = sg.SparseGP.from_prior(kernel, X)
        gps = [start.absorb(X, y, noise_variance=noise, inducing="keep")[0] for y in torch.unbind(Y, dim=-1)]
        return sg.OnlineGP(gps, [Gaussian(noise)] * len(gps))

    return make
