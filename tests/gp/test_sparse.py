import pytest
import torch
from tests.support.problems import random_sparse_gp
from tests.support.reference import assert_within, predict_dense
from torch.testing import assert_close

from streamgp.gp import InducingFactor, SparseProcess
from streamgp.testing.tolerances import rounding, tolerance


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("batch_shape", [(), (3,), (2, 1)])
def test_moments_equal_their_dense_definition(rng, batch_shape, dtype):
    gp = random_sparse_gp(rng, batch_shape=batch_shape, dtype=dtype, width=1.2).gp
    W = torch.rand(4, 2, generator=rng, dtype=torch.float64).to(dtype)
    expected, process = predict_dense(gp, W), gp.process
    limits = expected.limits(dtype)
    assert_within((process.mean(W).double() - expected.mean).abs(), limits.mean, "mean")
    assert_within((process.variance(W).double() - expected.variance).abs(), limits.variance, "variance")
    assert_within((process.covariance(W).double() - expected.covariance).abs(), limits.covariance, "covariance")


def test_weights_of_covariances_with_the_inducing_values_give_mean_and_covariance(rng):
    process = random_sparse_gp(rng).gp.process
    X, W = (torch.rand(n, 2, generator=rng, dtype=torch.float64) for n in (3, 4))
    cross = process.inducing.crossed(W)
    limits = rounding(W.dtype, condition=torch.linalg.cond(process.factor).item() ** 2)
    assert_close(process.prior.mean(W) + cross @ process.mean_weights, process.mean(W), **limits)
    reduced = cross @ process.cross_weights(process.variance_reduction @ process.features(X))
    both = process.covariance(torch.cat([W, X]))[:4, 4:]
    assert_close(process.prior.covariance(W, X) - reduced, both, **limits)


def test_from_the_prior_nothing_is_known_yet(rng):
    problem = random_sparse_gp(rng)
    prior = problem.gp.process.prior
    process = SparseProcess.from_prior(prior, problem.inducing_points, jitter=problem.jitter)
    W = torch.rand(4, 2, generator=rng, dtype=torch.float64)
    scale = problem.outputscale.item()
    assert torch.equal(process.mean(W), prior.mean(W))
    assert_close(process.covariance(W), prior.covariance(W, W), **rounding(W.dtype, scale=scale))


def test_another_belief_at_the_same_points_shares_their_factor(rng):
    process = random_sparse_gp(rng).gp.process
    other = process.with_belief(torch.zeros_like(process.whitened_mean), process.whitened_root)
    assert other.factor is process.factor
    assert_close(
        process.inducing_factor.leave_one_out,
        1 / torch.linalg.inv(process.factor @ process.factor.T).diagonal(),
        **rounding(torch.float64, condition=torch.linalg.cond(process.factor).item() ** 2),
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_members_of_factors_are_reshaped_and_replaced_with_all_that_follows_from_them(rng, dtype):
    root = torch.randn(2, 3, 4, 4, generator=rng, dtype=torch.float64)
    K = (root @ root.mT + torch.eye(4)).to(dtype)
    whole = InducingFactor.of(K, 0.1)
    assert whole.is_as_stated
    assert_close(whole.total_jitter, torch.full((2, 3), 0.1, dtype=dtype))
    eye = torch.eye(4, dtype=torch.float64)
    assert_close(whole.whitening @ whole.double_factor, eye.expand(2, 3, 4, 4), **tolerance(torch.float64))
    inverse = torch.linalg.inv(K.double() + 0.1 * eye)
    expected = (1.0 / inverse.diagonal(dim1=-2, dim2=-1)).to(dtype)
    assert_close(whole.leave_one_out, expected, **tolerance(dtype))
    flat = whole.reshape(torch.Size([6]))
    other = InducingFactor.of(torch.ones(2, 4, 4, dtype=dtype), 0.0)  # which needs jitter
    _ = other.whitening
    changed = flat.with_members(torch.tensor([1, 4]), other)
    assert not changed.is_as_stated
    for name in ("factor", "double_factor", "total_jitter", "whitening"):
        mine, new = getattr(whole, name).flatten(0, 1).clone(), getattr(other, name)
        assert torch.equal(getattr(flat, name), mine)
        mine[[1, 4]] = new
        assert torch.equal(getattr(changed, name), mine)
        assert torch.equal(getattr(changed.reshape(torch.Size([2, 3])), name).flatten(0, 1), mine)
    assert "whitening" not in vars(InducingFactor.of(K, 0.1).reshape(torch.Size([6])))
