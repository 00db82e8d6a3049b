"""Figures ask for trials until their claims are told from chance."""

from dataclasses import replace
from unittest.mock import patch

import pytest

from paper.engine.execution import UnitTask, execute
from paper.engine.results import append_record
from paper.report import decisions
from paper.schema.configuration import Configuration
from paper.schema.figure import Judgement
from paper.schema.unit import Unit
from paper.tests import tiny_figure
from paper.tests.tiny_study import STUDY, TinySettings

SETTINGS = TinySettings(pause=0.0, sizes=(1, 2), label="x")


@pytest.fixture
def run_trials(tmp_path, monkeypatch):
    """Run trials of the tiny figure, and say whether its claim, decided from four trials on, is open."""
    monkeypatch.setattr(decisions, "read_configuration", lambda study, scale: Configuration(scale, 2, 1.0, SETTINGS))

    def judge(records):
        return Judgement("reproduced", "So it is.", is_decided=len(records.all) >= 8)

    def run(seeds, *, is_statistical=True):
        for seed in seeds:
            for method in ("sum", "process"):
                append_record(execute(UnitTask(Unit("tiny", "quick", "left", method, seed), STUDY, SETTINGS)), tmp_path)
        figure = replace(tiny_figure.FIGURE, judge=judge, is_statistical=is_statistical)
        with tiny_figure.tiny_registry(), patch.object(tiny_figure, "FIGURE", figure):
            return decisions.undecided_figures(["tiny_figure"], "quick", tmp_path)

    return run


def test_a_figure_is_open_until_its_claim_is_decided(run_trials):
    assert run_trials([0]) == ["tiny_figure"]  # too few to judge
    assert run_trials([1, 2]) == ["tiny_figure"]
    assert run_trials([3]) == []


def test_a_figure_of_one_trial_is_never_open(run_trials):
    assert run_trials([], is_statistical=False) == []
