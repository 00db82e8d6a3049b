"""Trials are read from a storage as what is known, failed, or awaited."""

import math

import pytest
import torch

optuna = pytest.importorskip("optuna", reason="needs the extra streamgp[optuna]")

from optuna.trial import TrialState  # noqa: E402 # after the check for the extra

from streamgp.integrations.optuna.trials import announce, read_state  # noqa: E402

X_SPACE = {"x": optuna.distributions.FloatDistribution(0.0, 10.0)}


def new_trial(study):
    number = study.ask().number
    return study.get_trials()[number]


def add(study, x, state=TrialState.COMPLETE, *, value=None, constraints=None, space=X_SPACE, steps=None):
    study.add_trial(
        optuna.trial.create_trial(
            state=state,
            params={"x": x},
            distributions=space,
            value=value,
            constraints=constraints,
            intermediate_values=steps or {},
        )
    )


def read(study):
    return read_state(study, new_trial(study), X_SPACE)


def test_completed_pruned_failed_and_running_trials_are_told_apart():
    study = optuna.create_study()
    add(study, 1.0, value=5.0)
    add(study, 2.0, TrialState.PRUNED, value=7.0, steps={3: 7.0})
    add(study, 3.0, TrialState.PRUNED)
    add(study, 4.0, TrialState.FAIL)
    study.ask(X_SPACE)  # runs, with its value known
    state = read(study)
    told = state.observations
    assert told.points[told.is_success].flatten().tolist() == [0.1, 0.2]
    assert told.y[told.is_success].flatten().tolist() == [5.0, 7.0]
    assert told.failures.flatten().tolist() == [0.3, 0.4]
    assert state.pending.shape == (1, 1)


def test_the_value_of_a_pruned_trial_is_its_last_intermediate_one():
    study = optuna.create_study()
    trial = study.ask(X_SPACE)
    trial.report(3.0, step=0)
    trial.report(2.0, step=1)
    study.tell(trial, state=TrialState.PRUNED)
    assert read(study).observations.y.tolist() == [[2.0]]


def test_trials_without_a_parameter_or_with_another_range_say_nothing():
    study = optuna.create_study()
    add(study, 1.0, value=1.0, space={"x": optuna.distributions.FloatDistribution(0.0, 2.0)})
    study.add_trial(optuna.trial.create_trial(value=1.0))
    study.ask()
    state = read(study)
    assert len(state.observations.points) == len(state.pending) == 0


def test_an_announced_trial_is_pending_before_it_asks_for_its_values():
    names = [f"parameter number {j} with a name that is rather long" for j in range(60)]
    space = {name: optuna.distributions.IntDistribution(0, 9) for name in names}
    space["kind"] = optuna.distributions.CategoricalDistribution(("a", "b"))
    study = optuna.create_study()
    running = new_trial(study)
    params = {**{name: j % 10 for j, name in enumerate(names)}, "kind": "b"}
    announce(study, running, params, space)
    stored = study.get_trials()[running.number].system_attrs
    assert len(stored) == 2
    assert all(len(part) <= 2000 for part in stored.values())
    state = read_state(study, new_trial(study), space)
    assert state.pending.shape == (1, 62)
    assert state.pending[0, :3].tolist() == pytest.approx([0.05, 0.15, 0.25])
    assert state.pending[0, -2:].tolist() == [0.0, 1.0]


def test_a_trial_does_not_wait_for_itself():
    study = optuna.create_study()
    running = new_trial(study)
    announce(study, running, {"x": 3.0}, X_SPACE)
    assert len(read_state(study, running, X_SPACE).pending) == 0
    assert len(read(study).pending) == 1


def test_constraints_are_columns_and_trials_that_lack_one_are_awaited():
    study = optuna.create_study()
    add(study, 1.0, value=1.0, constraints={"b": -2.0, "a": 3.0})
    add(study, 2.0, value=2.0, constraints={"a": 4.0})
    add(study, 3.0, value=3.0)
    state = read(study)
    assert state.observations.y.tolist() == [[1.0, 3.0, -2.0]]
    assert state.pending.flatten().tolist() == [0.2, 0.3]


def test_infinite_outcomes_become_the_extremes_of_the_others():
    study = optuna.create_study()
    for x, value in ((1.0, 4.0), (2.0, math.inf), (3.0, -math.inf), (4.0, 9.0)):
        add(study, x, value=value, constraints={"c": math.inf})
    y = read(study).observations.y
    assert y[:, 0].tolist() == [4.0, 9.0, 4.0, 9.0]
    assert y[:, 1].tolist() == [0.0] * 4


def test_a_study_without_trials_is_empty():
    state = read(optuna.create_study())
    assert state.observations.points.shape == (0, 1)
    assert state.observations.y.shape == (0, 1)
    assert state.observations.points.dtype == torch.float64
