import itertools

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans
from torch.testing import assert_close

import streamgp as sg
from streamgp.errors import OptionError, ValueRangeError
from streamgp.testing.tolerances import approximation, rounding
from streamgp.training.scaling import Scaling
from streamgp.training.sharding import MappedShards, kmeans_over_shards

K = 12


def inputs(seed=0, n=3000):
    rng = np.random.default_rng(seed)
    middles = rng.uniform(size=(K, 3)) * [1.0, 10.0, 100.0]
    return torch.from_numpy(middles[rng.integers(K, size=n)] + rng.normal(size=(n, 3)) * [0.1, 1.0, 10.0])


def divided(X, *cuts):
    ends = [0, *cuts, len(X)]
    parts = [X[start:end] for start, end in itertools.pairwise(ends)]
    return MappedShards([(part, torch.zeros(len(part), dtype=X.dtype)) for part in parts], map)


def start(X, seed=1):
    return X[torch.randperm(len(X), generator=torch.Generator().manual_seed(seed))[:K]]


def test_from_the_same_start_it_ends_where_scikit_learns_does():
    X, units = inputs(), torch.tensor([1.0, 10.0, 100.0], dtype=torch.float64)
    found = kmeans_over_shards(divided(X, 700, 1900), start(X), units=units)
    scaled = (X / units).numpy()
    theirs = KMeans(K, init=(start(X) / units).numpy(), n_init=1, max_iter=300, tol=0.0).fit(scaled)
    assert theirs.inertia_ * 0.999 <= found.inertia <= theirs.inertia_ * 1.03
    nearest = np.square(scaled[:, None] - (found.centers / units).numpy()).sum(-1).min(-1).sum()
    assert_close(found.inertia, float(nearest), **approximation(0.02, "iteration"))


@pytest.mark.parametrize("cuts", [(), (1,), (10, 11, 500, 2999), tuple(range(100, 3000, 100))])
def test_how_the_rows_are_divided_makes_no_difference(cuts):
    X = inputs()
    whole, found = kmeans_over_shards(divided(X), start(X)), kmeans_over_shards(divided(X, *cuts), start(X))
    scale = float(X.abs().max())
    assert_close(found.centers, whole.centers, **rounding(X.dtype, scale=scale))
    assert_close(found.inertia, whole.inertia, **rounding(X.dtype))
    assert found.num_steps == whole.num_steps


def test_a_center_without_inputs_stays():
    X = torch.tensor([[0.0], [0.2], [1.0], [1.2]], dtype=torch.float64)
    far = torch.tensor([[0.0], [1.0], [50.0]], dtype=torch.float64)
    found = kmeans_over_shards(divided(X, 1), far)
    assert_close(found.centers, torch.tensor([[0.1], [1.1], [50.0]], dtype=torch.float64), **rounding(X.dtype))
    assert_close(found.inertia, 0.04, **rounding(X.dtype))


def test_units_of_training_are_those_of_the_centers():
    X = inputs()
    shift, scale = X.mean(0), X.std(0)
    scaling = Scaling(shift, scale, torch.zeros((), dtype=X.dtype), torch.ones((), dtype=X.dtype))
    first = (start(X) - shift) / scale
    here = kmeans_over_shards(divided(X, 500), first, scaling=scaling)
    there = kmeans_over_shards(divided((X - shift) / scale), first)
    assert_close(here.centers, there.centers, **rounding(X.dtype, scale=float(there.centers.abs().max())))


def test_rows_with_missing_values_are_named():
    X = inputs()
    X[1234, 1] = float("nan")
    with pytest.raises(ValueRangeError, match="Shard 2: X must be finite"):
        kmeans_over_shards(divided(X, 500, 1000), start(X))


@pytest.mark.slow
@pytest.mark.parametrize("learn_inducing", [False, True])
def test_fits_start_from_clusters_of_all_rows(rng, learn_inducing):
    X = torch.rand(120, 2, generator=rng, dtype=torch.float64)
    y = torch.sin(5.0 * X[:, 0]) + 0.1 * torch.randn(120, generator=rng, dtype=torch.float64)
    options = {"num_inducing": 9, "inducing": "distributed_kmeans", "learn_inducing": learn_inducing}

    def shards(*cuts):
        ends = [0, *cuts, 120]
        return [(X[start:end], y[start:end]) for start, end in itertools.pairwise(ends)]

    one, other = (sg.fit(each, map=map, max_iterations=4, **options) for each in (shards(), shards(20, 90)))
    assert one.gp.num_inducing == 9
    assert_close(one.info.bound, other.info.bound, **approximation(1e-8, "iteration"))
    assert_close(one.gp.inducing_points, other.gp.inducing_points, **approximation(1e-5, "iteration"))
    if not learn_inducing:  # where they are, no center is far from the mean of what is closest to it
        lengthscale = one.gp.kernel.base_kernel.lengthscale
        again = kmeans_over_shards(MappedShards(shards(7), map), one.gp.inducing_points, units=lengthscale.detach())
        assert again.num_steps <= 4


def test_it_is_for_shards_alone(rng):
    X = torch.rand(30, 2, generator=rng, dtype=torch.float64)
    with pytest.raises(OptionError, match="is for rows that lie in shards, with map"):
        sg.fit(X, X[:, 0], inducing="distributed_kmeans")
