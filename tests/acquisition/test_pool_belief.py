import pytest
import torch
from tests.support.problems import random_sparse_gp
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode

from streamgp.acquisition import integrated_variance
from streamgp.acquisition.pool_belief import PoolBelief, blocks
from streamgp.likelihoods import Gaussian, Preference
from streamgp.testing.tolerances import tolerance

both_dtypes = pytest.mark.parametrize("dtype", [torch.float32, torch.float64])


def all_covariances(belief):
    everyone = torch.arange(len(belief.mean))
    return belief.columns(everyone).cross(belief.inputs, belief.roots)


@both_dtypes
@pytest.mark.parametrize("kind", ["sparse", "conditioned", "compared"])
def test_the_belief_is_the_joint_gaussian_of_the_gp(rng, kind, dtype):
    gp = random_sparse_gp(rng, dtype=dtype).gp
    X = torch.rand(9, 2, generator=rng, dtype=torch.float64).to(dtype)
    if kind == "conditioned":
        gp = gp.condition(X[:3], torch.ones(3, dtype=dtype), noise_variance=0.1)
    if kind == "compared":
        gp = gp.condition(X[:4].unflatten(0, (2, 2)), torch.ones(2, dtype=dtype), likelihood=Preference())
    belief = PoolBelief.of(gp, X)
    expected = gp.predict(X, covariance=True)
    assert_close(belief.mean, expected.mean, **tolerance(dtype))
    assert_close(belief.variance, expected.variance, **tolerance(dtype))
    assert_close(all_covariances(belief), expected.covariance, **tolerance(dtype))


@both_dtypes
def test_awaited_observations_reduce_covariances_as_conditioning_does(rng, dtype):
    gp = random_sparse_gp(rng, dtype=dtype).gp
    X = torch.rand(9, 2, generator=rng, dtype=torch.float64).to(dtype)
    belief = PoolBelief.of(gp, X)
    for member, noise in ((2, 0.1), (7, 0.3)):
        belief = belief.await_observation(member, torch.tensor(1 / noise, dtype=dtype))
    after = gp.condition(X[[2, 7]], torch.zeros(2, dtype=dtype), noise_variance=torch.tensor([0.1, 0.3], dtype=dtype))
    expected = after.predict(X, covariance=True)
    assert_close(all_covariances(belief), expected.covariance, **tolerance(dtype))
    assert_close(belief.variance, expected.variance, **tolerance(dtype))
    assert_close(belief.mean, gp.predict(X).mean, **tolerance(dtype))


def test_an_observation_that_tells_nothing_changes_nothing(rng):
    X = torch.rand(5, 2, generator=rng, dtype=torch.float64)
    belief = PoolBelief.of(random_sparse_gp(rng).gp, X)
    after = belief.await_observation(1, torch.zeros((), dtype=torch.float64))
    assert torch.equal(after.variance, belief.variance)


def test_blocks_go_through_all_members_once():
    members = torch.arange(10, 100)
    parts = list(blocks(members, 4_000_000 // 7))
    assert torch.equal(torch.cat([part for _, part in parts]), members)
    assert all(torch.equal(members[where], part) for where, part in parts)
    assert max(len(part) for _, part in parts) == 7


class LargestTensor(TorchDispatchMode):
    """Remembers how many numbers the largest tensor held that was made."""

    numbers = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for one in out if isinstance(out, tuple | list) else (out,):
            if isinstance(one, torch.Tensor):
                self.numbers = max(self.numbers, one.numel())
        return out


@pytest.mark.slow
def test_no_matrix_of_a_large_pool_is_ever_made(rng):
    gp, X = random_sparse_gp(rng).gp, torch.rand(40_000, 2, generator=rng, dtype=torch.float64)
    with LargestTensor() as largest:
        scores = integrated_variance(gp, X, likelihood=Gaussian(0.1), targets=torch.arange(200), pending=[5])
    assert scores.shape == (40_000,)
    # 32 MB in double precision; the candidates against the targets alone would take twice that.
    assert largest.numbers <= 4_000_000
