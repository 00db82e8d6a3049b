"""The loop on comparisons: what it reports, and what methods share."""

import json
import warnings

import pytest

from paper.studies.preferences import STUDY, PreferenceSettings

TINY = PreferenceSettings(
    num_initial=5,
    num_comparisons=6,
    num_batches=1,
    batch_size=3,
    num_inducing=4,
    num_restarts=1,
    raw_samples=4,
    max_iterations=2,
    num_fantasies=2,
    num_samples=8,
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("problem", "method"),
    [
        pytest.param("within", "svgp-exact-kg", marks=pytest.mark.thorough),
        pytest.param("incumbent", "svgp-qkg", marks=pytest.mark.thorough),
        ("within", "laplace-qeubo"),
        pytest.param("incumbent", "random", marks=pytest.mark.thorough),
    ],
)
def test_best_utilities_never_fall_and_the_recommended_one_was_compared(problem, method):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcome = STUDY.run(problem, method, 1, TINY)
    assert outcome["num_evaluations"] == [5, 8]
    assert outcome["best"] == sorted(outcome["best"])
    assert all(value <= best for value, best in zip(outcome["recommended"], outcome["best"], strict=True))
    assert len(outcome["seconds"]) == 1
    json.dumps(outcome, allow_nan=False)
