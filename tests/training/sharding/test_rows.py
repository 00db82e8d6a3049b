import math

import torch

from streamgp.training.data import CheckedRows
from streamgp.training.sharding.overview import overview_of
from streamgp.training.sharding.rows import blocks_of, sample_of
from streamgp.training.sharding.shards import MappedShards


def test_a_sample_does_not_depend_on_how_rows_are_divided(data, cut):
    samples = []
    for sizes in ([60], [7, 13, 40], [1] * 60):
        shards = MappedShards(cut(data, sizes), map)
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


def test_blocks_are_the_rows_in_their_order(data, monkeypatch):
    monkeypatch.setattr("streamgp.training.sharding.rows._ROWS_OF_BLOCK", 25)
    blocks = list(blocks_of(0, data, likelihood=None, scaling=None))
    assert [block.num_data for block in blocks] == [25, 25, 10]
    assert torch.equal(torch.cat([block.inputs for block in blocks]), data[0])
    assert torch.equal(torch.cat([block.targets for block in blocks]), data[1])
