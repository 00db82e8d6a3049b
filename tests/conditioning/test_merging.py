"""Beliefs add: what was learned apart, merged, is what would have been learned together."""

import pytest
import torch
from tests.support.conditioning_laws import BATCH_SHAPES, DTYPES
from tests.support.problems import random_observations, random_sparse_gp

import streamgp as sg
from streamgp.errors import OptionError, ShapeError, StreamGPWarning
from streamgp.testing.tolerances import approximation, belief_rounding


def learned(rng, *, batch_shape=(), dtype=torch.float64, num_shards=3):
    """A prior, shards of observations, and a GP for each."""
    problem = random_sparse_gp(rng, batch_shape=batch_shape, dtype=dtype, width=0.9)
    gp = sg.SparseGP.from_prior(problem.gp.kernel, problem.inducing_points, mean=problem.gp.mean)
    shards = [
        random_observations(rng, num_observations=5, batch_shape=batch_shape, dtype=dtype) for _ in range(num_shards)
    ]
    gps = [absorb(gp, shard) for shard in shards]
    return gp, shards, gps


def absorb(gp, shard):
    return gp.absorb(shard.inputs, shard.targets, noise_variance=shard.noise_variance, inducing="keep")[0]


def assert_same(first, second, dtype):
    X = torch.rand(7, first.inducing_points.shape[-1], dtype=torch.float64).to(dtype)
    limit = belief_rounding(first, second, scale=3.0)
    for moment in ("mean", "covariance"):
        ours, theirs = getattr(first.predict(X), moment), getattr(second.predict(X), moment)
        torch.testing.assert_close(ours, theirs, **limit)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch_shape", BATCH_SHAPES)
def test_merging_equals_absorbing_the_union(rng, batch_shape, dtype):
    gp, shards, gps = learned(rng, batch_shape=batch_shape, dtype=dtype)
    for shard in shards:
        gp = absorb(gp, shard)
    assert_same(sg.merge(gps), gp, dtype)


def test_merging_commutes_and_associates(rng):
    _, _, (a, b, c) = learned(rng)
    merged = sg.merge([a, b, c])
    assert_same(sg.merge([c, a, b]), merged, torch.float64)
    assert_same(sg.merge([sg.merge([a, b]), c]), merged, torch.float64)


def test_merging_with_the_prior_or_alone_changes_nothing(rng):
    prior, _, (gp, *_) = learned(rng)
    assert sg.merge([gp]).process is gp.process
    assert_same(sg.merge([prior, gp]), gp, torch.float64)


def test_beliefs_at_points_that_hold_all_inputs_merge_without_loss(rng):
    _, shards, (gp, *_) = learned(rng)
    prior = sg.SparseGP.from_prior(gp.kernel, torch.cat([shard.inputs for shard in shards[:2]]), mean=gp.mean)
    Z = prior.inducing_points
    ours = sg.SparseGP.from_prior(gp.kernel, Z, mean=gp.mean)
    theirs = sg.SparseGP.from_prior(gp.kernel, Z.flip(0), mean=gp.mean)
    merged = sg.merge([absorb(ours, shards[0]), absorb(theirs, shards[1])])
    X = torch.rand(6, 2, generator=rng, dtype=torch.float64)
    expected = absorb(absorb(prior, shards[0]), shards[1]).predict(X).mean
    # Beliefs are carried from points in one order to those in another, through the jitter of 1e-8.
    A = prior.kernel(Z).to_dense() + torch.cat([shard.noise_variance for shard in shards[:2]]).diag()
    limit = approximation(1e-8 * float(torch.linalg.cond(A.detach())), "jitter")
    torch.testing.assert_close(merged.predict(X).mean, expected, **limit)


def test_points_about_which_nothing_is_known_are_no_common_points(rng, recwarn):
    prior, _, (gp, *_) = learned(rng)
    far = sg.SparseGP.from_prior(prior.kernel, prior.inducing_points + 30.0, mean=prior.mean)
    assert torch.equal(sg.merge([far, gp]).inducing_points, gp.inducing_points)
    assert_same(sg.merge([far, gp]), gp, torch.float64)
    assert not recwarn.list


def test_what_common_points_cannot_express_is_reported(rng):
    gp, shards, _ = learned(rng)
    left = sg.SparseGP.from_prior(gp.kernel, shards[0].inputs[:2], mean=gp.mean)
    right = sg.SparseGP.from_prior(gp.kernel, shards[1].inputs[:2] + 30.0, mean=gp.mean)
    far = shards[1].inputs + 30.0
    right, _ = right.absorb(far, shards[1].targets, noise_variance=0.01, inducing="keep")
    with pytest.warns(StreamGPWarning, match="cannot express all of them"):
        sg.merge([absorb(left, shards[0]), right])


def test_different_priors_are_refused(rng):
    gp, _, (first, *_) = learned(rng)
    kernel = type(gp.kernel)(gp.kernel.base_kernel)
    kernel.outputscale = 7.0
    other = sg.SparseGP.from_prior(kernel, gp.inducing_points, mean=gp.mean)
    with pytest.raises(OptionError, match="must have the same prior, but their kernels differ"):
        sg.merge([first, other])
    with pytest.raises(ShapeError, match="must share dtype, device and input dimension"):
        sg.merge([first, sg.SparseGP.from_prior(gp.kernel, gp.inducing_points.float(), mean=gp.mean)])
    with pytest.raises(
        OptionError, match="merge takes a list of at least one SparseGP, or of MultiOutputGPs, but got nothing"
    ):
        sg.merge([])
