import numpy as np
import pytest
import torch
from tests.support.problems import random_sparse_gp

from streamgp.acquisition.indices import read_indices, read_weights
from streamgp.acquisition.pool import Pool
from streamgp.errors import ArgumentTypeError, DTypeError, ShapeError
from streamgp.likelihoods import Gaussian


def read(gp, X, **changes):
    options = {"likelihood": Gaussian(), "targets": None, "weights": None, "pending": None}
    return Pool.read(gp, X, **(options | changes))


def test_what_is_no_pool_is_refused(rng):
    gp, X = random_sparse_gp(rng).gp, torch.rand(3, 2, dtype=torch.float64)
    with pytest.raises(ArgumentTypeError, match="gp must be a SparseGP or a ConditionedGP, but is a str"):
        read("gp", X)
    with pytest.raises(ArgumentTypeError, match=r"likelihood must be a name .*, but is a int"):
        read(gp, X, likelihood=3)
    with pytest.raises(ShapeError, match="of at least one member"):
        read(gp, X[:0])
    with pytest.raises(DTypeError, match="weights must be numbers, but is a str"):
        read(gp, X, weights="all")


def test_members_may_come_as_lists_arrays_and_tensors():
    assert torch.equal(read_indices([2, 0], 3, "indices"), torch.tensor([2, 0]))
    assert torch.equal(read_indices(torch.tensor([2], dtype=torch.int32).numpy(), 3, "indices"), torch.tensor([2]))
    assert read_indices([], 3, "indices").dtype == torch.long
    with pytest.raises(DTypeError, match="must be a list of whole numbers"):
        read_indices([0.5], 3, "indices")
    with pytest.raises(DTypeError, match="cannot be read"):
        read_indices("abc", 3, "indices")


@pytest.mark.parametrize("members", [np.array([0, 2, 1])[::-1], np.array([1, 2, 0], dtype=">i8")])
def test_members_and_weights_may_be_reversed_or_of_another_byte_order(members):
    assert read_indices(members, 3, "indices").tolist() == [1, 2, 0]
    assert read_weights(members, 3).tolist() == [1.0, 2.0, 0.0]


def test_a_pool_leaves_the_users_indices_alone(rng):
    gp, X, targets = random_sparse_gp(rng).gp, torch.rand(3, 2, dtype=torch.float64), torch.tensor([1, 2])
    pool = read(gp, X, targets=targets)
    targets[0] = 0
    assert pool.targets.tolist() == [1, 2]
