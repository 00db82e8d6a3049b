import gzip

import numpy as np
import pytest
import torch

from paper.datasets import load_uci
from streamgp.errors import OptionError, ValueRangeError
from streamgp.testing.tolerances import judgement, rounding, within


@pytest.mark.parametrize(
    ("name", "num_columns", "num_rows"),
    [("powerplant", 5, 9568), ("elevators", 19, 1000), ("skillcraft", 20, 1000), ("protein", 10, 1000)],
)
def test_the_split_holds_the_rows_of_the_file_once(data_directory, name, num_columns, num_rows):
    data = load_uci(name, 3, num_rows=num_rows)
    file_name = "powerplant.csv.gz" if name == "powerplant" else f"{name}_data.csv.gz"
    with gzip.open(data_directory / "uci" / file_name, "rt") as file:
        rows = np.genfromtxt(file, delimiter=",", max_rows=num_rows, skip_header=int(name == "powerplant"))
    assert rows.shape == (num_rows, num_columns)
    X = torch.cat([data.X_test, data.X_train])
    assert sorted(X.tolist()) == sorted(rows[:, :-1].tolist())
    assert len(data.y_test) == num_rows // 5
    assert data.y_train.mean().item() == pytest.approx(0, **within(rounding(torch.float64, condition=1e3)))
    assert data.y_train.std().item() == pytest.approx(1)
    # The target is the last column, on another scale.
    order = {tuple(row[:-1]): row[-1] for row in rows.tolist()}
    raw = [order[tuple(row)] for row in X.tolist()]
    assert np.corrcoef(raw, torch.cat([data.y_test, data.y_train]))[0, 1] == pytest.approx(
        1, **within(judgement(absolute=1e-3))
    )


def test_the_seed_decides_the_order(data_directory):
    first, again, other = (load_uci("skillcraft", seed, num_rows=50).y_train for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_the_share_decides_how_many_are_held_out(data_directory):
    data = load_uci("skillcraft", 0, test_share=0.5, num_rows=100)
    assert (len(data.y_train), len(data.y_test)) == (50, 50)


@pytest.mark.parametrize("share", [0.0, 1.0, float("nan")])
def test_a_share_of_nothing_or_of_all_is_refused(share):
    with pytest.raises(ValueRangeError, match="test_share must be a number above 0 and below 1, but is"):
        load_uci("skillcraft", 0, test_share=share)


@pytest.mark.parametrize(("share", "num_rows"), [(0.2, 3), (0.9, 10)])
def test_a_split_that_leaves_a_part_empty_is_refused(data_directory, share, num_rows):
    with pytest.raises(ValueRangeError, match=rf"A share of {share} of {num_rows} rows leaves .* Read more rows"):
        load_uci("skillcraft", 0, test_share=share, num_rows=num_rows)


def test_an_unknown_name_is_refused():
    with pytest.raises(OptionError, match=r"name must be one of 'powerplant', .* but is 'iris'"):
        load_uci("iris", 0)
