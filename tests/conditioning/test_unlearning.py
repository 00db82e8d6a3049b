"""Beliefs subtract: what was absorbed can be taken back."""

import pytest
import torch
from tests.support.conditioning_laws import BATCH_SHAPES, DTYPES
from tests.support.problems import random_observations, random_sparse_gp
from torch.testing import assert_close

import streamgp as sg
from streamgp.errors import UnsupportedError, ValueRangeError
from streamgp.likelihoods import Poisson
from streamgp.testing.tolerances import approximation, belief_rounding


def absorb(gp, shard):
    return gp.absorb(shard.inputs, shard.targets, noise_variance=shard.noise_variance, inducing="keep")[0]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch_shape", BATCH_SHAPES)
def test_unlearning_what_was_absorbed_is_the_identity(rng, batch_shape, dtype):
    gp = random_sparse_gp(rng, batch_shape=batch_shape, dtype=dtype).gp
    first, second = (random_observations(rng, num_observations=n, batch_shape=batch_shape, dtype=dtype) for n in (5, 8))
    both = absorb(absorb(gp, first), second)
    unlearned, info = both.unlearn(first.inputs, first.targets, noise_variance=first.noise_variance)
    expected = absorb(gp, second)
    X = torch.rand(6, 2, generator=rng, dtype=torch.float64).to(dtype)
    limits = belief_rounding(both, expected, scale=2.0)
    assert_close(unlearned.predict(X).mean, expected.predict(X).mean, **limits)
    assert_close(unlearned.predict(X).covariance, expected.predict(X).covariance, **limits)
    assert (info.least_share > 0).all()


def test_unlearning_what_was_never_learned_is_refused(rng):
    gp = random_sparse_gp(rng).gp
    new = random_observations(rng, num_observations=5)
    with pytest.raises(ValueRangeError, match="does not hold as much information"):
        gp.unlearn(new.inputs, new.targets, noise_variance=1e-3)


def test_sites_of_other_likelihoods_are_unlearned(rng):
    gp = random_sparse_gp(rng).gp
    new = random_observations(rng, num_observations=5)
    absorbed, info = gp.absorb(new.inputs, new.targets.abs().round(), likelihood=Poisson(), inducing="keep")
    sites = info.site_info.sites
    back, _ = absorbed.unlearn(new.inputs, sites.targets, noise_variance=sites.variance)
    limits = belief_rounding(absorbed, gp, scale=2.0)
    assert_close(back.predict(new.inputs).mean, gp.predict(new.inputs).mean, **limits)
    assert_close(back.predict(new.inputs).covariance, gp.predict(new.inputs).covariance, **limits)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch_shape", BATCH_SHAPES)
def test_leaving_one_out_equals_absorbing_the_others(rng, batch_shape, dtype):
    gp = random_sparse_gp(rng, batch_shape=batch_shape, dtype=dtype).gp
    new = random_observations(rng, num_observations=6, batch_shape=batch_shape, dtype=dtype)
    whole = absorb(gp, new)
    left_out = whole.leave_one_out(new.inputs, new.targets, noise_variance=new.noise_variance)
    limits = belief_rounding(whole, gp, scale=10.0)  # log densities are that large
    for i in range(6):
        others = [j for j in range(6) if j != i]
        expected = absorb(gp, new.part(torch.tensor(others))).predict(new.inputs[..., i : i + 1, :])
        assert_close(left_out.mean[..., i : i + 1], expected.mean, **limits)
        assert_close(left_out.variance[..., i : i + 1], expected.variance, **limits)
        density = torch.distributions.Normal(
            expected.mean, (expected.variance + new.noise_variance[..., i, None]).sqrt()
        )
        expected_density = density.log_prob(new.targets[..., i : i + 1])
        assert_close(left_out.log_density[..., i : i + 1], expected_density, **limits)


def test_with_all_inputs_as_points_leaving_one_out_equals_the_closed_form_of_the_exact_gp(rng):
    new = random_observations(rng, num_observations=8)
    problem = random_sparse_gp(rng)
    prior = sg.SparseGP.from_prior(problem.gp.kernel, new.inputs, mean=problem.gp.mean)
    left_out = absorb(prior, new).leave_one_out(new.inputs, new.targets, noise_variance=new.noise_variance)
    A = prior.kernel(new.inputs).to_dense() + new.noise_variance.diag()
    inverse = torch.linalg.inv(A)
    residual = inverse @ (new.targets - prior.mean.constant)
    expected = new.targets - residual / inverse.diagonal()
    # The inducing points' jitter, 1e-6 of the variance, moves what is inverted by as much.
    limits = approximation(1e-6 * float(torch.linalg.cond(A.detach())), "jitter")
    assert_close(left_out.mean, expected, **limits)
    assert_close(left_out.variance + new.noise_variance, 1.0 / inverse.diagonal(), **limits)


def test_leaving_out_what_was_never_learned_is_refused(rng):
    gp = random_sparse_gp(rng).gp
    new = random_observations(rng, num_observations=3)
    with pytest.raises(ValueRangeError, match="were not learned, or with more noise"):
        gp.leave_one_out(new.inputs, new.targets, noise_variance=1e-4)
    with pytest.raises(UnsupportedError, match="cannot be left out one by one"):
        gp.leave_one_out(new.inputs, new.targets, noise_variance=torch.eye(3, dtype=torch.float64))
