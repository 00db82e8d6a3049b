"""Reading of the trials of a study, and of what a trial tells the others before it has run."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float
from optuna.distributions import BaseDistribution
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState
from torch import Tensor

from streamgp.integrations.optuna.space import read_space
from streamgp.loops.observations import Observations
from streamgp.loops.state import LoopState

__all__ = ["announce", "read_state"]

_KEY = "streamgp:params"
# Databases keep at most 2048 characters of an attribute.
_LONGEST = 2000
_WITH_OUTCOME = (TrialState.COMPLETE, TrialState.PRUNED)


def read_state(study: Study, trial: FrozenTrial, search_space: Mapping[str, BaseDistribution]) -> LoopState:
    """Read all trials but the given one, as far as they have the parameters of the search space.

    Completed trials are known, and so are pruned ones by their last intermediate value, which is what Optuna takes for
    theirs. Pruned trials without one have failed. Trials that run are pending, and those that lack some of the
    constraints remain so: nothing can be learned from them.

    Returns:
        The state of a loop on the space, whose outcomes are the objectives and the constraints by name, NaN where a
        trial failed.
    """
    space, trials = read_space(search_space), study.get_trials(deepcopy=False)
    names = sorted({name for one in trials if one.state in _WITH_OUTCOME for name in one.constraints})
    good, bad, pending, outcomes = [], [], [], []
    for other in trials:
        params = _params(other, search_space)
        if params is None or other.number == trial.number:
            continue
        point, constraints = space.encode(params), other.constraints
        if other.state == TrialState.FAIL or (other.state == TrialState.PRUNED and not other.values):
            bad.append(point)
        elif other.state in _WITH_OUTCOME and other.values and constraints.keys() >= set(names):
            good.append(point)
            outcomes.append([*other.values, *(constraints[name] for name in names)])
        else:
            pending.append(point)
    d, num_outcomes = space.num_dims, len(study.directions) + len(names)
    y = _bounded(_matrix(outcomes, num_outcomes))
    y = torch.cat([y, y.new_full((len(bad), num_outcomes), torch.nan)])
    told = Observations(_matrix(good + bad, d), y, torch.full_like(y, torch.nan), y.new_empty(0, 2, d))
    return LoopState(told, _matrix(pending, d))


def announce(
    study: Study, trial: FrozenTrial, params: Mapping[str, Any], space: Mapping[str, BaseDistribution]
) -> None:
    """Store what a trial is going to evaluate, so that other threads and processes know of it from the start."""
    internal = {name: space[name].to_internal_repr(value) for name, value in params.items()}
    text = json.dumps(internal)
    for start in range(0, len(text), _LONGEST):
        part = text[start : start + _LONGEST]
        study._storage.set_trial_system_attr(trial._trial_id, f"{_KEY}:{start // _LONGEST}", part)


def _params(trial: FrozenTrial, search_space: Mapping[str, BaseDistribution]) -> dict[str, Any] | None:
    """Values of all parameters of the search space; None if a trial has none for some, or had another range."""
    known = {name: one.to_internal_repr(trial.params[name]) for name, one in trial.distributions.items()}
    if trial.state == TrialState.RUNNING:
        known = {**_announced(trial), **known}
    values = {}
    for name, distribution in search_space.items():
        is_same = trial.distributions.get(name, distribution) == distribution
        if name not in known or not is_same or not distribution._contains(known[name]):
            return None
        values[name] = distribution.to_external_repr(known[name])
    return values


def _announced(trial: FrozenTrial) -> dict[str, float]:
    parts: list[str] = []
    while (part := trial.system_attrs.get(f"{_KEY}:{len(parts)}")) is not None:
        parts.append(part)
    return json.loads("".join(parts)) if parts else {}


def _matrix(rows: Sequence[Sequence[float]], num_columns: int) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64).reshape(len(rows), num_columns)


def _bounded(y: Float[Tensor, "n o"]) -> Float[Tensor, "n o"]:
    """Infinite outcomes, which Optuna allows, as the greatest and least finite ones."""
    is_finite = y.isfinite()
    low = torch.where(is_finite, y, torch.inf).amin(0, keepdim=True) if len(y) else y
    high = torch.where(is_finite, y, -torch.inf).amax(0, keepdim=True) if len(y) else y
    bounded = torch.minimum(torch.maximum(y, low), high)
    return torch.where(bounded.isfinite(), bounded, 0.0)  # where a column has no finite value at all
