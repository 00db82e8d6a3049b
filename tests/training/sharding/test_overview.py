import pytest
import torch

from streamgp.training.scaling import Scaling
from streamgp.training.sharding.overview import overview_of
from streamgp.training.sharding.shards import MappedShards


def test_an_overview_has_the_moments_of_all_rows(data, cut):
    X, y = data
    overview = overview_of(MappedShards(cut(data, [1, 19, 40]), map), None)
    assert overview.counts == (1, 19, 40)
    torch.testing.assert_close(overview.input_mean, X.mean(0))
    torch.testing.assert_close(overview.input_squares, X.var(0, correction=0) * 60)
    assert overview.target_variance == pytest.approx(float(y.var(correction=0)))


def test_the_scaling_of_all_rows_standardizes_them(data, cut):
    X, y = data
    zero, one = torch.zeros((), dtype=torch.float64), torch.ones((), dtype=torch.float64)
    of_some = Scaling(X[:9].mean(0), X[:9].std(0), y[:9].mean(), y[:9].std())
    overview = overview_of(MappedShards(cut(data, [20, 40]), map), None)
    scaling = overview.scaling(like=of_some)
    torch.testing.assert_close(scaling.input_shift, X.mean(0))
    torch.testing.assert_close(scaling.input_scale, X.std(0, correction=0))
    torch.testing.assert_close(scaling.target_scale, y.std(correction=0))
    kept = overview.scaling(like=Scaling(zero.expand(2), one.expand(2), zero, one))
    assert torch.equal(kept.input_scale, torch.ones_like(X[0]))
    assert torch.equal(kept.target_shift, zero)
