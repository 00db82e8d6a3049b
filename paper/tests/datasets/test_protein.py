import csv
import gzip

import numpy as np
import pytest
import torch

from paper.datasets import load_protein
from streamgp.errors import OptionError, ValueRangeError
from streamgp.testing.tolerances import rounding, within


@pytest.mark.parametrize("target", ["log_rmsd", "rmsd"])
def test_all_rows_are_split_and_scaled_together(data_directory, target):
    data = load_protein(0, target=target)
    X, y = torch.cat([data.X_first, data.X_stream, data.X_test]), torch.cat([data.y_first, data.y_stream, data.y_test])
    assert X.shape == (45730, 9)
    assert len(data.y_test) == 4573
    assert len(data.y_first) == 2057  # 5 % of 41157, rounded down
    assert X.amin(0).tolist() == pytest.approx([-1.0] * 9)
    assert X.amax(0).tolist() == pytest.approx([1.0] * 9)
    assert y.mean().item() == pytest.approx(0, **within(rounding(torch.float64, condition=1e3)))
    assert y.std().item() == pytest.approx(1)


def test_the_two_targets_are_the_deviation_of_the_raw_file_and_its_logarithm(data_directory):
    with gzip.open(data_directory / "uci/CASP_raw.csv.gz", "rt") as file:
        rmsd = np.array([float(row["RMSD"]) for row in csv.DictReader(file)])
    for target, values, tolerance in (("rmsd", rmsd, 1e-10), ("log_rmsd", np.log1p(rmsd), 1e-4)):
        data = load_protein(0, target=target)
        y = torch.cat([data.y_first, data.y_stream, data.y_test]).sort().values
        expected = np.sort((values - values.mean()) / values.std(ddof=1))
        np.testing.assert_allclose(y, expected, atol=tolerance)  # the packaged file has five digits


def test_the_seed_decides_and_fewer_rows_are_the_first_of_the_shuffled(data_directory):
    first, again, other = (load_protein(seed, num_rows=200) for seed in (1, 1, 2))
    assert torch.equal(first.X_stream, again.X_stream)
    assert not torch.equal(first.X_stream, other.X_stream)
    assert [len(first.y_test), len(first.y_first), len(first.y_stream)] == [20, 9, 171]
    assert torch.equal(first.X_test, load_protein(1, num_rows=2000).X_test[:20])


def test_too_few_rows_and_other_targets_are_refused(data_directory):
    with pytest.raises(ValueRangeError, match="num_rows must be a whole number of at least 30, but is 10"):
        load_protein(0, num_rows=10)
    with pytest.raises(OptionError, match="target must be one of 'log_rmsd', 'rmsd', but is 'RMSD'"):
        load_protein(0, target="RMSD")
