import pytest
import torch
from tests.support.conditioning_laws import DTYPES, assert_same_prediction
from tests.support.problems import random_sparse_gp
from tests.support.reference import predict_dense

from streamgp.conditioning import SparseGP
from streamgp.conditioning.transport import transport
from streamgp.errors import NumericalError


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [0.9, 1.3])
def test_to_the_same_points_in_another_order_nothing_changes(rng, dtype, width):
    gp = random_sparse_gp(rng, dtype=dtype, width=width).gp
    moved, info = transport(gp.process, gp.inducing_points.flip(0), gp.process.prior)
    W = torch.rand(5, 2, generator=rng, dtype=torch.float64).to(dtype)
    assert_same_prediction(SparseGP(moved), gp, W, like=predict_dense(gp, W, is_derived=True))
    assert (info.num_clipped, info.num_swapped) == (0, 0)


def test_points_that_are_new_are_counted_and_what_is_lost_is_not_negative(rng):
    gp = random_sparse_gp(rng).gp
    Z = torch.cat([gp.inducing_points[:4], torch.rand(2, 2, generator=rng, dtype=torch.float64)])
    _, info = transport(gp.process, Z, gp.process.prior)
    assert info.num_swapped == 2
    assert info.lost_trace > 0


def test_a_belief_without_spread_is_refused(rng):
    problem = random_sparse_gp(rng)
    sure = problem.gp.process.with_belief(problem.whitened_mean, torch.zeros_like(problem.whitened_root))
    with pytest.raises(NumericalError, match="has no spread in some direction"):
        transport(sure, problem.inducing_points + 0.1, sure.prior)
