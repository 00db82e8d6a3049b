"""Searches for policies: what they report, what they share, and what they survive."""

import json

import pytest

pytest.importorskip("mujoco")
pytest.importorskip("cma")

from paper.problems import Hopper
from paper.studies import robots
from paper.studies.robots import STUDY, RobotSettings

TINY = RobotSettings(
    num_evaluations_swimmer=2,
    num_evaluations_hopper=12,
    objective="elbo",
    num_inducing=20,
    depth=2,
    num_paths=2,
    num_replayed=1,
)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["svgp-ts", "exact-lts", "cma", "random", "ars"])
def test_best_rewards_never_fall_and_repeat_by_the_seed(method):
    outcome = STUDY.run("hopper", method, 1, TINY)
    assert outcome["num_evaluations"] == [10, 12]
    assert outcome["best"] == sorted(outcome["best"])
    assert outcome["failures"] == []
    assert outcome["replayed"] is not None
    json.dumps(outcome, allow_nan=False)
    again = STUDY.run("hopper", method, 1, TINY)
    assert (again["best"], again["replayed"]) == (outcome["best"], outcome["replayed"])


def test_scalings_differ():
    first, second = (STUDY.run(problem, "random", 0, TINY)["best"] for problem in ("hopper", "hopper-running"))
    assert first != second


def test_episodes_and_suggestions_that_fail_are_recorded_and_the_search_goes_on(monkeypatch):
    observe, num_calls = Hopper.observe, 0

    def fail_sometimes(self, X, generator=None):
        nonlocal num_calls
        num_calls += 1
        if num_calls == 2:
            raise RuntimeError("the simulator broke")
        return observe(self, X, generator)

    class Stubborn:
        def ask(self):
            raise ValueError("no model")

        def tell(self, X, y):
            pass

    monkeypatch.setattr(Hopper, "observe", fail_sometimes)
    outcome = STUDY.run("hopper", "svgp-ts", 0, TINY)
    assert outcome["failures"] == ["call 2, episode: RuntimeError: the simulator broke"]
    monkeypatch.setattr(robots, "_make_search", lambda *_, **__: Stubborn())
    outcome = STUDY.run("hopper", "svgp-ts", 0, TINY)
    assert len(outcome["failures"]) == 12
    assert outcome["failures"][0] == "call 1, suggestion: ValueError: no model"
    assert outcome["num_evaluations"][-1] == 12


@pytest.mark.thorough
def test_a_trust_region_starts_after_the_design():
    settings = RobotSettings(2, 184, "elbo", 200, 2, 2, 1)
    assert STUDY.run("hopper", "svgp-lts", 0, settings)["failures"] == []
