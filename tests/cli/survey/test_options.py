from pathlib import Path

import pytest

from streamgp.cli.survey.options import SurveyOptions
from streamgp.errors import OptionError

TESTS = {"positives": "k", "tested": "n"}


def options(**given):
    return SurveyOptions(**{"source": "villages.csv", "coordinates": ("lng", "lat"), **given})


@pytest.mark.parametrize(
    ("given", "response"),
    [
        (TESTS, "prevalence"),
        ({"target": "y"}, "value"),
        ({"target": "y", "noise": "s"}, "value"),
        ({"count": "c"}, "rate"),
    ],
)
def test_the_columns_say_what_is_predicted(given, response):
    assert options(**given).response == response


@pytest.mark.parametrize(
    ("source", "output"),
    [("a/villages.csv", "a/villages.next.csv"), ("x.jsonl.gz", "x.next.csv"), ("places", "places.next.csv")],
)
def test_the_chosen_places_go_beside_the_source(tmp_path, monkeypatch, source, output):
    monkeypatch.chdir(tmp_path)
    Path("a").mkdir()
    assert options(source=source, **TESTS).output_path == Path(output)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, r"Say what was measured, in one way: .* None of them came"),
        ({**TESTS, "target": "y"}, "Say what was measured, in one way: .* 2 of them came"),
        ({"positives": "k"}, "A prevalence needs both columns"),
        ({"tested": "n", "count": "c"}, "A prevalence needs both columns"),
        ({"count": "c", "noise": "s"}, "--noise holds standard deviations of --target"),
        (
            {"count": "c", "coordinates": ("lng",)},
            "--coordinates must name two columns, for example lng,lat, but names 1",
        ),
        ({"count": "c", "acquisition": "hope"}, "acquisition must be one of 'integrated_variance', "),
        ({"count": "c", "acquisition": "exceedance"}, "--acquisition exceedance needs a --threshold"),
        ({"count": "c", "acquisition": "hotspot_entropy", "threshold": 1.0}, "is about prevalences.*choose exceedance"),
        ({"count": "c", "imputation": "mean"}, "impute must be one of 'median', but is 'mean'"),
        ({"count": "c", "number": 0}, "number must be"),
        ({"count": "c", "map": Path("map.xyz")}, "--map: .* must end in the name of a picture format"),
        ({"count": "c", "save": Path("absent/s")}, "--save absent/s: the directory does not exist"),
        ({"count": "c", "output": Path("villages.csv")}, "--output villages.csv is also the source"),
        ({"count": "c", "predictions": Path("villages.next.csv")}, "--predictions villages.next.csv is also --output"),
        ({"count": "c", "source": "-"}, "Name a file with --output"),
    ],
)
def test_what_does_not_fit_together_is_refused(tmp_path, monkeypatch, given, sentence):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((OptionError, ValueError), match=sentence):
        options(**given)
