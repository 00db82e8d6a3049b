from itertools import pairwise

import pytest
import torch

from paper.datasets import load_bananas
from streamgp.errors import ValueRangeError


@pytest.fixture
def bananas(data_directory):
    return load_bananas()


def test_bananas_have_the_split_that_they_come_with(bananas, data_directory):
    assert bananas.X_train.shape == (400, 2)
    assert bananas.X_test.shape == (4900, 2)
    for part, y in (("train", bananas.y_train), ("test", bananas.y_test)):
        labels = (data_directory / f"banana/banana_{part}_y.txt").read_text().split()
        assert y.dtype == torch.float64
        assert y.tolist() == [float(label == "1") for label in labels]


@pytest.mark.parametrize("num_batches", [1, 4, 7])
def test_batches_are_strips_that_hold_every_row_once(bananas, num_batches):
    batches = bananas.in_batches(num_batches)
    assert len(batches) == num_batches
    assert {len(y) for _, y in batches} <= {400 // num_batches, -(-400 // num_batches)}
    for (left, _), (right, _) in pairwise(batches):
        assert left[:, 0].max() <= right[:, 0].min()
    rows = torch.cat([torch.cat([X, y.unsqueeze(-1)], dim=-1) for X, y in batches])
    expected = torch.cat([bananas.X_train, bananas.y_train.unsqueeze(-1)], dim=-1)
    assert sorted(rows.tolist()) == sorted(expected.tolist())


def test_there_must_be_a_batch(bananas):
    with pytest.raises(ValueRangeError, match="num_batches must be a whole number of at least 1, but is 0"):
        bananas.in_batches(0)
