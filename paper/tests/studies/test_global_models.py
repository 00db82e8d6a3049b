"""Global models on rover: what the loop reports, and what methods share."""

import json
import warnings

import pytest

from paper.studies.global_models import STUDY, GlobalSettings

TINY = GlobalSettings(6, 2, 8, 4, 16, 8, 1, 4, 2)


def run_quietly(method):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return STUDY.run("rover", method, 1, TINY)


@pytest.mark.parametrize("method", ["exact", "svgp"])
def test_rewards_never_fall_and_methods_start_alike(method):
    outcome = run_quietly(method)
    assert outcome["num_evaluations"] == [6, 8]
    assert outcome["best"] == sorted(outcome["best"])
    assert outcome["best"][0] == run_quietly("random")["best"][0]
    assert len(outcome["seconds"]) == 1
    json.dumps(outcome, allow_nan=False)
