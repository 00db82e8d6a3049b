import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from gpytorch.kernels import RBFKernel, ScaleKernel

import streamgp as sg
from streamgp.errors import ArgumentTypeError, DatasetError, ShapeError, UnsupportedError, ValueRangeError
from streamgp.testing.tolerances import rounding, within
from streamgp.training.sharding import MappedShards


def test_what_is_added_up_is_not_kept_until_the_end(data, cut):
    """Of many shards, whose answers are large, only the sum so far is there."""
    most, alive = [], []

    class Answer:
        def __init__(self, value):
            self.value = value
            alive.append(weakref.ref(self))

    def ask(index, shard, kept):
        most.append(sum(each() is not None for each in alive))
        return Answer(len(shard[1]))

    shards = MappedShards(cut(data, [3] * 20), map)
    (total,) = shards.ask(ask, plus=lambda a, b: Answer(a.value + b.value))
    assert total.value == 60
    assert max(most) <= 3
    assert [each.value for each in shards.ask(ask)] == [3] * 20


@pytest.mark.slow
def test_shards_may_be_functions_that_load_and_run_on_threads(data, cut):
    options = {"num_inducing": 6, "max_iterations": 3, "standardize": True}
    shards = cut(data, [20, 40])
    here = sg.fit(shards, map=map, **options)
    with ThreadPoolExecutor(2) as pool:
        there = sg.fit([lambda s=s: s for s in shards], map=pool.map, **options)
    assert there.info.bound == pytest.approx(here.info.bound, **within(rounding(torch.float64, condition=1e4)))
    assert here.scaling is not None


def test_the_shard_with_a_bad_row_is_named(data, cut):
    X, y = data
    shards = cut((X, y.clone()), [20, 40])
    shards[1][1][5] = torch.nan
    with pytest.raises(ValueRangeError, match=r"Shard 1: y must be finite.*index \(5,\)"):
        sg.fit(shards, map=map)
    with pytest.raises(ArgumentTypeError, match="Shard 0: A shard must be a pair"):
        sg.fit([X], map=map)
    with pytest.raises(ShapeError, match="as many columns"):
        sg.fit([(X, y), (X[:, :1], y)], map=map)
    with pytest.raises(ShapeError, match="no shards"):
        sg.fit([], map=map)

    def missing():
        raise FileNotFoundError("gone.npy")

    with pytest.raises(DatasetError, match="Shard 1 cannot be loaded"):
        sg.fit([(X, y), missing], map=map)


def test_what_shards_do_not_go_with_is_refused(data):
    X, y = data
    with pytest.raises(ArgumentTypeError, match="iterable of shards"):
        sg.fit(X, y, map=map)
    with pytest.raises(UnsupportedError, match="without a carried belief"):
        sg.fit([(X, y)], map=map, objective="pll")
    carried = sg.SparseGP.from_prior(ScaleKernel(RBFKernel()).double(), X[:3])
    with pytest.raises(UnsupportedError, match="without a carried belief"):
        sg.fit([(X, y)], map=map, carried=carried)
