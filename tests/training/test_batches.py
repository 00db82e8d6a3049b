import numpy as np
import pytest
import torch

from streamgp.errors import ArgumentTypeError, OptionError, ShapeError, ValueRangeError
from streamgp.training.arguments import Minibatches
from streamgp.training.minibatch import read_source

SIZES = Minibatches(batch_size=100, num_warm_rows=150)


def rows(n=1000):
    X = torch.arange(2 * n, dtype=torch.float64).reshape(n, 2)
    return X, X.sum(-1)


def in_memory(tmp_path):
    return read_source(*rows(), None, options=SIZES, generator=torch.Generator().manual_seed(0))


def memory_mapped(tmp_path):
    X, y = rows()
    np.save(tmp_path / "X.npy", X.numpy())
    np.save(tmp_path / "y.npy", y.numpy())
    X, y = (np.load(tmp_path / name, mmap_mode="r") for name in ("X.npy", "y.npy"))
    assert isinstance(X, np.memmap)
    return read_source(X, y, None, options=SIZES, generator=torch.Generator().manual_seed(0))


def batches():
    X, y = rows()
    return zip(X.split(130), y.split(130), strict=True)


def from_function(tmp_path):
    return read_source(batches, None, None, options=SIZES, generator=torch.Generator().manual_seed(0))


def from_list(tmp_path):
    return read_source(list(batches()), None, None, options=SIZES, generator=torch.Generator().manual_seed(0))


def from_iterator(tmp_path):
    sizes = Minibatches(num_warm_rows=150, num_data=1000)
    return read_source(batches(), None, None, options=sizes, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("make", [in_memory, memory_mapped, from_function, from_list, from_iterator])
def test_a_visit_sees_every_row_once(tmp_path, make):
    source = make(tmp_path)
    assert source.num_data == 1000
    visited = list(source.visit(torch.Generator().manual_seed(1)))
    seen = torch.cat([batch.targets for batch in visited]).sort().values
    assert torch.equal(seen, rows()[1])
    assert all(torch.equal(batch.inputs.sum(-1), batch.targets) for batch in visited)
    assert all(len(batch.targets) <= 130 for batch in visited)


@pytest.mark.parametrize("make", [in_memory, memory_mapped, from_function, from_list])
def test_the_sample_is_drawn_from_all_rows(tmp_path, make):
    sample = make(tmp_path).sample
    assert 120 <= len(sample.targets) <= 150
    assert len(sample.targets.unique()) == len(sample.targets)
    assert sample.targets.max() > 3000


@pytest.mark.parametrize("make", [in_memory, memory_mapped])
def test_arrays_are_shuffled_reproducibly(tmp_path, make):
    source = make(tmp_path)
    first, again, other = (next(source.visit(torch.Generator().manual_seed(seed))).targets for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_an_iterator_that_can_be_read_once_must_tell_its_length():
    with pytest.raises(OptionError, match=r"can be read only once.*Minibatches\(num_data=...\)"):
        read_source(batches(), None, None, options=SIZES, generator=torch.Generator())


@pytest.mark.parametrize(
    ("X", "y", "error", "message"),
    [
        (3, None, ArgumentTypeError, "but is a int"),
        ([torch.zeros(3, 2)], None, ArgumentTypeError, r"Each batch must be a pair \(X, y\), but one is a Tensor"),
        ([], None, ShapeError, "X holds no batches"),
        (iter([]), None, ShapeError, "X holds no batches"),
        (torch.zeros(3, 2), torch.zeros(4), ShapeError, "y must have one value for each of the 3 rows of X"),
        ([(torch.full((3, 2), torch.nan), torch.zeros(3))], None, ValueRangeError, "X must be finite"),
    ],
)
def test_what_cannot_be_visited_is_refused(X, y, error, message):
    with pytest.raises(error, match=message):
        read_source(X, y, None, options=Minibatches(num_data=3), generator=torch.Generator())
