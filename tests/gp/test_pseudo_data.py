import pytest
import torch
from tests.support.conditioning_laws import BATCH_SHAPES
from tests.support.problems import random_observations, random_sparse_gp
from tests.support.reference import exact_gp
from torch.testing import assert_close

import streamgp as sg
from streamgp.errors import NumericalError
from streamgp.testing.tolerances import approximation, rounding


def limits(gp, *, scale=1.0):
    """Inverses of both the prior and the belief magnify rounding."""
    factor, S = gp.process.factor, gp.whitened_covariance
    condition = float(torch.linalg.cond(factor).max()) ** 2 * float(torch.linalg.cond(S).max())
    return rounding(factor.dtype, condition=condition, scale=scale)


def test_an_exact_gp_on_the_pseudo_data_predicts_as_the_sparse_posterior(rng):
    problem = random_sparse_gp(rng, width=0.7)
    gp, data = problem.gp, problem.gp.pseudo_data()
    W = torch.rand(5, 2, generator=rng, dtype=torch.float64)
    noise = data.precision.inverse() + problem.jitter * torch.eye(6)
    expected = exact_gp(gp.kernel, gp.mean, data.inputs, data.targets, noise, W)
    assert_close(gp.predict(W).mean, expected.mean, **limits(gp))
    assert_close(gp.predict(W).covariance, expected.covariance, **limits(gp))


@pytest.mark.parametrize("batch_shape", BATCH_SHAPES)
def test_the_precision_form_is_consistent(rng, batch_shape):
    data = (gp := random_sparse_gp(rng, batch_shape=batch_shape, width=1.4).gp).pseudo_data()
    centered = data.targets - gp.process.prior.mean(data.inputs)
    pull = (data.precision @ centered.unsqueeze(-1)).squeeze(-1)
    assert_close(pull, data.precision_mean, **limits(gp, scale=pull.abs().max().item()))


def test_absorbed_data_at_the_inducing_points_is_found_again(rng):
    problem = random_sparse_gp(rng)
    Z = problem.inducing_points
    new = random_observations(rng, num_observations=6)
    prior = sg.SparseGP.from_prior(problem.gp.kernel, Z, mean=problem.gp.mean)
    gp, _ = prior.absorb(Z, new.targets, noise_variance=new.noise_variance, inducing="keep")
    data = gp.pseudo_data()
    assert_close(data.precision, (1 / new.noise_variance).diag(), **approximation(1e-3, "jitter"))
    assert_close(data.targets, new.targets, **approximation(1e-3, "jitter"))


def test_directions_without_information_have_precision_zero(rng):
    problem = random_sparse_gp(rng)
    prior = sg.SparseGP.from_prior(problem.gp.kernel, problem.inducing_points, mean=problem.gp.mean)
    data = prior.pseudo_data()
    assert_close(data.precision, torch.zeros(6, 6, dtype=torch.float64), **limits(prior))
    assert_close(data.targets, prior.mean(problem.inducing_points), **limits(prior))


def test_a_belief_without_spread_is_refused_with_a_sentence(rng):
    problem = random_sparse_gp(rng)
    delta = sg.SparseGP(problem.gp.process.with_belief(problem.whitened_mean, torch.zeros_like(problem.whitened_root)))
    with pytest.raises(NumericalError, match="pseudo-data would have infinite precision"):
        delta.pseudo_data()
