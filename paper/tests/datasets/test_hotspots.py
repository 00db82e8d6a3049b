import csv

import pytest
import torch

from paper.datasets import COUNTRIES, load_hotspots
from streamgp.errors import OptionError, ValueRangeError
from streamgp.testing.tolerances import approximation, judgement, within


@pytest.mark.parametrize("country", COUNTRIES)
def test_villages_are_the_rows_of_the_file(data_directory, country):
    villages = load_hotspots(country)
    text = (data_directory / f"hotspots/{country}_data.csv").read_text()  # line ends become \n
    rows = list(csv.DictReader(text.splitlines()))
    assert villages.inputs.tolist() == [[float(row[name]) for name in villages.names] for row in rows]
    assert villages.prevalence.tolist() == [float(row["theta"]) for row in rows]
    assert villages.inputs.shape == (1500, 8)
    assert villages.names[:2] == ("lng", "lat")
    assert torch.equal(villages.coordinates, villages.inputs[:, :2])


def test_the_first_country_is_as_the_paper_describes_it(data_directory):
    villages = load_hotspots()
    assert villages.country == "Côte d'Ivoire"
    assert villages.threshold == 0.1
    assert villages.prevalence.mean().item() == pytest.approx(0.119, **within(approximation(5e-4, "printed")))
    assert villages.is_hotspot.double().mean().item() == pytest.approx(0.28, **within(approximation(5e-3, "printed")))


@pytest.mark.parametrize(("country", "threshold"), [("civ", 0.1), ("hti", 0.1), ("mwi", 0.02), ("phl", 0.02)])
def test_thresholds_are_those_of_the_paper(data_directory, country, threshold):
    assert load_hotspots(country).threshold == threshold


def test_a_survey_is_a_binomial_draw_that_the_seed_decides(data_directory):
    villages = load_hotspots()
    counts = villages.survey(0)
    assert torch.equal(counts, villages.survey(0))
    assert not torch.equal(counts, villages.survey(1))
    assert torch.equal(counts, counts.round())
    assert counts.min() >= 0
    assert counts.max() <= 100
    # Standardized residuals of 1500 binomials: mean 0 ± 0.026 and mean square 1 ± a few hundredths.
    p = villages.prevalence
    residuals = (counts - 100 * p) / (100 * p * (1 - p)).sqrt()
    assert residuals.mean().abs() < 0.1
    assert residuals.square().mean().item() == pytest.approx(1, **within(judgement(absolute=0.2)))


def test_the_number_of_people_can_be_chosen(data_directory):
    assert load_hotspots().survey(0, total_count=1).max() == 1
    with pytest.raises(ValueRangeError, match="total_count must be a whole number of at least 1, but is 0"):
        load_hotspots().survey(0, total_count=0)


def test_an_unknown_country_is_refused():
    with pytest.raises(OptionError, match="country must be one of 'civ', 'hti', 'mwi', 'phl', but is 'nga'"):
        load_hotspots("nga")
