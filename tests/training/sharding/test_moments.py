import math

import pytest
import torch

from streamgp.training.arguments import CheckedRows
from streamgp.training.scaling import Scaling
from streamgp.training.sharding.shards import MappedShards, blocks_of, row_moments, sample_of


def test_moments_are_those_of_all_rows(data, cut):
    X, y = data
    moments = row_moments(MappedShards(cut(data, [1, 19, 40]), map), None)
    assert moments.counts == (1, 19, 40)
    torch.testing.assert_close(moments.input_mean, X.mean(0))
    torch.testing.assert_close(moments.input_squares, X.var(0, correction=0) * 60)
    assert moments.target_variance == pytest.approx(float(y.var(correction=0)))


def test_the_scaling_of_all_rows_standardizes_them(data, cut):
    X, y = data
    zero, one = torch.zeros((), dtype=torch.float64), torch.ones((), dtype=torch.float64)
    of_some = Scaling(X[:9].mean(0), X[:9].std(0), y[:9].mean(), y[:9].std())
    moments = row_moments(MappedShards(cut(data, [20, 40]), map), None)
    scaling = moments.scaling(like=of_some)
    torch.testing.assert_close(scaling.input_shift, X.mean(0))
    torch.testing.assert_close(scaling.input_scale, X.std(0, correction=0))
    torch.testing.assert_close(scaling.target_scale, y.std(correction=0))
    kept = moments.scaling(like=Scaling(zero.expand(2), one.expand(2), zero, one))
    assert torch.equal(kept.input_scale, torch.ones_like(X[0]))
    assert torch.equal(kept.target_shift, zero)


def test_a_sample_does_not_depend_on_how_rows_are_divided(data, cut):
    samples = []
    for sizes in ([60], [7, 13, 40], [1] * 60):
        shards = MappedShards(cut(data, sizes), map)
        generator = torch.Generator().manual_seed(3)
        samples.append(sample_of(shards, row_moments(shards, None), 20, likelihood=None, generator=generator))
    for sample in samples[1:]:
        torch.testing.assert_close(sample.inputs, samples[0].inputs, rtol=0, atol=0)
        torch.testing.assert_close(sample.targets, samples[0].targets, rtol=0, atol=0)


def test_a_sample_of_very_many_rows_needs_no_list_of_all_of_them(data, monkeypatch):
    shards = MappedShards([data], map)
    moments = row_moments(shards, None)._replace(counts=(10**12,))
    asked = []
    monkeypatch.setattr(MappedShards, "ask", lambda self, question: asked.append(question) or [CheckedRows(*data)])
    sample_of(shards, moments, 2000, likelihood=None, generator=torch.Generator().manual_seed(0))
    (rows,) = asked[0].rows
    assert len(torch.unique(rows)) == 2000
    # Uniform on all of them: the mean of 2000 is within six standard errors of one half.
    assert abs(float(rows.double().mean()) / 10**12 - 0.5) < 6.0 / math.sqrt(12 * 2000)


def test_blocks_are_the_rows_in_their_order(data, monkeypatch):
    monkeypatch.setattr("streamgp.training.sharding.shards._ROWS_OF_BLOCK", 25)
    blocks = list(blocks_of(0, data, likelihood=None, scaling=None))
    assert [block.num_data for block in blocks] == [25, 25, 10]
    assert torch.equal(torch.cat([block.inputs for block in blocks]), data[0])
    assert torch.equal(torch.cat([block.targets for block in blocks]), data[1])
