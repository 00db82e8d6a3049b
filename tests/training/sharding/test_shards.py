import math
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from gpytorch.kernels import RBFKernel, ScaleKernel

import streamgp as sg
from streamgp.errors import ArgumentTypeError, DatasetError, ShapeError, UnsupportedError, ValueRangeError
from streamgp.testing.tolerances import rounding, within
from streamgp.training.data import CheckedRows
from streamgp.training.sharding import MappedShards, overview_of, sample_of


def cut(X, y, sizes):
    return list(zip(X.split(sizes), y.split(sizes), strict=True))


@pytest.fixture
def data(rng):
    X = 10.0 * torch.rand(60, 2, generator=rng, dtype=torch.float64)
    return X, torch.sin(X[:, 0]) + 0.1 * torch.randn(60, generator=rng, dtype=torch.float64)


def test_an_overview_has_the_moments_of_all_rows(data):
    X, y = data
    overview = overview_of(MappedShards(cut(X, y, [1, 19, 40]), map), None)
    assert overview.counts == (1, 19, 40)
    torch.testing.assert_close(overview.input_mean, X.mean(0))
    torch.testing.assert_close(overview.input_squares, X.var(0, correction=0) * 60)
    assert overview.target_variance == pytest.approx(float(y.var(correction=0)))


def test_a_sample_does_not_depend_on_how_rows_are_divided(data):
    samples = []
    for sizes in ([60], [7, 13, 40], [1] * 60):
        shards = MappedShards(cut(*data, sizes), map)
        generator = torch.Generator().manual_seed(3)
        samples.append(sample_of(shards, overview_of(shards, None), 20, likelihood=None, generator=generator))
    for sample in samples[1:]:
        torch.testing.assert_close(sample.inputs, samples[0].inputs, rtol=0, atol=0)
        torch.testing.assert_close(sample.targets, samples[0].targets, rtol=0, atol=0)


def test_a_sample_of_very_many_rows_needs_no_list_of_all_of_them(data, monkeypatch):
    shards = MappedShards([data], map)
    overview = overview_of(shards, None)._replace(counts=(10**12,))
    asked = []
    monkeypatch.setattr(MappedShards, "ask", lambda self, question: asked.append(question) or [CheckedRows(*data)])
    sample_of(shards, overview, 2000, likelihood=None, generator=torch.Generator().manual_seed(0))
    (rows,) = asked[0].rows
    assert len(torch.unique(rows)) == 2000
    # Uniform on all of them: the mean of 2000 is within six standard errors of one half.
    assert abs(float(rows.double().mean()) / 10**12 - 0.5) < 6.0 / math.sqrt(12 * 2000)


def test_what_is_added_up_is_not_kept_until_the_end(data):
    """Of many shards, whose answers are large, only the sum so far is there."""
    most, alive = [], []

    class Answer:
        def __init__(self, value):
            self.value = value
            alive.append(weakref.ref(self))

    def ask(index, shard, kept):
        most.append(sum(each() is not None for each in alive))
        return Answer(len(shard[1]))

    shards = MappedShards(cut(*data, [3] * 20), map)
    (total,) = shards.ask(ask, plus=lambda a, b: Answer(a.value + b.value))
    assert total.value == 60
    assert max(most) <= 3
    assert [each.value for each in shards.ask(ask)] == [3] * 20


@pytest.mark.slow
def test_shards_may_be_functions_that_load_and_run_on_threads(data):
    options = {"num_inducing": 6, "max_iterations": 3, "standardize": True}
    shards = cut(*data, [20, 40])
    here = sg.fit(shards, map=map, **options)
    with ThreadPoolExecutor(2) as pool:
        there = sg.fit([lambda s=s: s for s in shards], map=pool.map, **options)
    assert there.info.bound == pytest.approx(here.info.bound, **within(rounding(torch.float64, condition=1e4)))
    assert here.scaling is not None


def test_the_shard_with_a_bad_row_is_named(data):
    X, y = data
    shards = cut(X, y.clone(), [20, 40])
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
