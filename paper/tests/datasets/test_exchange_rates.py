import csv
from statistics import mean, stdev

import pytest
import torch

from paper.datasets import CURRENCIES, load_exchange_rates
from streamgp.errors import OptionError, ValueRangeError
from streamgp.testing.tolerances import rounding, within


@pytest.mark.parametrize("column", CURRENCIES[3:])
def test_a_series_is_the_column_of_its_name_standardized(data_directory, column):
    series = load_exchange_rates(column, 60)
    # The other file of the data set has the names of the columns.
    with (data_directory / "fx/fxdata2007.csv").open() as file:
        values = [float(row[f"{column}/USD"]) for row in csv.DictReader(file)][:60]
    expected = [(value - mean(values)) / stdev(values) for value in values]
    assert series.y.tolist() == pytest.approx(expected)


def test_days_are_evenly_spaced_around_zero(data_directory):
    x = load_exchange_rates().x
    assert x.shape == (60,)
    assert x.mean().item() == pytest.approx(0, **within(rounding(torch.float64, scale=10.0)))
    assert x.std().item() == pytest.approx(1)
    assert torch.allclose(x.diff(), x.diff()[0])


def test_missing_values_are_refused(data_directory):
    with pytest.raises(ValueRangeError, match=r"of the first 60 days of XAU are missing. Choose another column"):
        load_exchange_rates("XAU")


def test_days_beyond_the_year_are_refused(data_directory):
    with pytest.raises(ValueRangeError, match=r"num_days must be at most 251, .* but is 252"):
        load_exchange_rates(num_days=252)
    with pytest.raises(ValueRangeError, match="num_days must be a whole number of at least 2, but is 1"):
        load_exchange_rates(num_days=1)


def test_an_unknown_currency_is_refused():
    with pytest.raises(OptionError, match=r"column must be one of 'XAU'.* but is 'DEM'"):
        load_exchange_rates("DEM")
