import csv
import functools
import gzip
from pathlib import Path

import pytest
import torch

from paper.datasets import load_malaria
from streamgp.errors import OptionError, ValueRangeError


@pytest.fixture
def rows(data_directory):
    """Coordinates, rate and both deviations of each pixel."""
    return read(data_directory)


@functools.cache
def read(directory: Path) -> torch.Tensor:
    """The file, by another reader."""
    with gzip.open(directory / "malaria/nigeria_pfpr_2015_standin.csv.gz", "rt") as file:
        names = ("longitude", "latitude", "mean", "std_dev_standin", "std_dev_temporal")
        table = [[float(row[name]) for name in names] for row in csv.DictReader(file)]
    return torch.tensor(table, dtype=torch.float64)


@pytest.mark.parametrize(("noise", "column"), [("standin", 3), ("temporal", 4)])
def test_pool_and_test_are_the_pixels_of_the_file(rows, noise, column):
    data = load_malaria(0, noise=noise)
    assert len(data.test_y) == 10_000
    assert len(data.pool_y) == len(rows) - 10_000
    found = torch.cat([data.coordinates, data.test_coordinates]).tolist()
    assert sorted(found) == sorted(rows[:, :2].tolist())
    row_of = {tuple(row[:2]): row for row in rows.tolist()}
    pool = torch.tensor([row_of[tuple(place)] for place in data.coordinates.tolist()], dtype=torch.float64)
    assert torch.equal(data.pool_y, pool[:, 2])
    assert torch.allclose(data.pool_noise_variance, pool[:, column] ** 2 + 1e-6)


def test_inputs_are_scaled_to_the_unit_square_and_the_pool_is_in_the_order_of_the_file(rows):
    data = load_malaria(0, num_test=100)
    X = torch.cat([data.pool_X, data.test_X])
    assert X.amin(0).tolist() == [0.0, 0.0]
    assert X.amax(0).tolist() == [1.0, 1.0]
    sides = rows[:, :2].amax(0) - rows[:, :2].amin(0)
    assert torch.allclose(data.pool_X * sides + rows[:, :2].amin(0), data.coordinates)
    position = {tuple(place): index for index, place in enumerate(rows[:, :2].tolist())}
    order = [position[tuple(place)] for place in data.coordinates.tolist()]
    assert order == sorted(order)


def test_the_seed_decides_which_pixels_are_held_out(data_directory):
    first, again, other = (load_malaria(seed, num_test=50).test_X for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_the_pool_must_not_be_empty(data_directory):
    with pytest.raises(ValueRangeError, match=r"num_test must be below 43111, .* but is 43111"):
        load_malaria(0, num_test=43_111)


def test_an_unknown_kind_of_noise_is_refused():
    with pytest.raises(OptionError, match="noise must be one of 'standin', 'temporal', but is 'none'"):
        load_malaria(0, noise="none")
