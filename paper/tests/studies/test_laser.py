"""The loop on the laser: what it reports, and what methods share."""

import json
import warnings

import pytest

from paper.problems.laser_simulator import load_rows
from paper.studies.laser import STUDY, LaserSettings
from streamgp.errors import DatasetError

TINY = LaserSettings(
    num_initial=12,
    num_evaluations=2,
    num_inducing=6,
    num_basis=8,
    num_restarts=1,
    raw_samples=4,
    max_iterations=3,
    num_fantasies=2,
    num_samples=8,
)


@pytest.fixture(autouse=True, scope="module")
def has_data():
    try:
        load_rows()
    except DatasetError:
        pytest.skip("the data set `laser` is not here")


def run_quietly(method, seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return STUDY.run("laser", method, seed, TINY)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["exact-qnei", "svgp-qkg", "ogp-ei", "wogp-ei", "random", "random-cube"])
def test_best_values_never_fall_and_all_methods_start_alike(method):
    outcome = run_quietly(method, 1)
    assert outcome["num_evaluations"] == [12, 13, 14]
    assert outcome["best"] == sorted(outcome["best"])
    assert outcome["best"][0] == run_quietly("random", 1)["best"][0]
    assert len(outcome["seconds"]) == 2
    json.dumps(outcome, allow_nan=False)


def test_the_unit_cube_never_helps():
    outcome = run_quietly("random-cube", 2)
    assert len(set(outcome["best"])) == 1
