"""The sampler that Optuna's studies hold."""

import threading
import warnings
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Float
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.search_space import intersection_search_space
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState
from torch import Tensor

from streamgp.acquisition import AbstractRule, NoisyHypervolumeImprovement, Search
from streamgp.acquisition.rules.names import OPTIMIZER_RULES, read_rule
from streamgp.checks import check_count, check_seed
from streamgp.errors import ArgumentTypeError, NumericalError, OptionError, StreamGPWarning, ValueRangeError
from streamgp.integrations.optuna.space import read_space
from streamgp.integrations.optuna.trials import announce, read_state
from streamgp.likelihoods import AbstractLikelihood, Gaussian
from streamgp.loops import Constraint, LoopSettings, Objective, ParameterSpace, Real, SurrogateSettings
from streamgp.loops.policies import with_policies
from streamgp.loops.state import LoopState
from streamgp.loops.suggest import suggest
from streamgp.seeds import derived_seed

__all__ = ["StreamGPSampler"]

_RULES = {name: OPTIMIZER_RULES[name] for name in ("qnei", "qei", "qkg", "thompson")}
# What a suggestion may cost beside evaluations of a second or more.
_SEARCH = Search(num_restarts=4, raw_samples=128, max_iterations=50)
# Noise of evaluations that are said to have none, relative to the variance of the outcomes.
_NO_NOISE = 1e-6
# BoTorch draws from torch's global generator, and a trial has to be announced before the next one is suggested.
_ONE_AT_A_TIME = threading.Lock()


@final
class StreamGPSampler(BaseSampler):
    """Bayesian optimization with sparse GPs of any likelihood.

    For studies of one objective or several, in either direction; of several, by hypervolume improvement. All parameters
    that every completed trial has are suggested together; others, as those of conditional spaces, on their own.
    Integers, steps and categories are searched among their values, not rounded afterwards.

    The first trial is random, and the trials until `n_startup_trials` are known follow a Sobol sequence. A suggestion
    then depends on the trials in the storage, the seed and the number of the trial, and on nothing that the sampler
    remembers: it may be copied, pickled, and used by threads and processes that share a storage. Trials that are
    running are taken into account, and announce what they will evaluate before they do.

    Constraints follow Optuna: values above zero violate, be they set by `trial.set_constraint` or returned by
    `constraints_func`. Pruned trials count with their last intermediate value. Where trials failed, less is suggested.

    ```python
    import optuna

    from streamgp.integrations.optuna import StreamGPSampler

    study = optuna.create_study(sampler=StreamGPSampler(seed=0, n_startup_trials=4))
    study.optimize(lambda trial: (trial.suggest_float("x", -1, 1) - 0.3) ** 2, n_trials=6)
    study.best_params
    ```
    """

    def __init__(
        self,
        *,
        likelihood: str | AbstractLikelihood = "gaussian",
        acquisition: str | AbstractRule = "qnei",
        n_startup_trials: int = 10,
        constraints_func: Callable[[FrozenTrial], Sequence[float]] | None = None,
        deterministic_objective: bool = False,
        num_inducing: int = 100,
        independent_sampler: BaseSampler | None = None,
        search: Search | None = None,
        seed: int | None = None,
    ) -> None:
        """Check the options.

        Args:
            likelihood: Of the objective, as in `streamgp.Optimizer`: `"gaussian"`, `"student_t"`, `"poisson"`,
                `"negative_binomial"`, `"bernoulli"`, or an object of `streamgp.likelihoods`.
            acquisition: `"qnei"` or `"qei"` (noisy and plain expected improvement), `"qkg"` (knowledge gradient),
                `"thompson"`, or a rule of `streamgp.acquisition`.
            n_startup_trials: How many outcomes must be known before the model is asked.
            constraints_func: Returns the constraints of a finished trial, above zero where they are violated.
            deterministic_objective: Whether evaluations have no noise.
            num_inducing: Most inducing points of each model.
            independent_sampler: Suggests what is not common to all trials; uniformly at random by default.
            search: How much work goes into a suggestion.
            seed: Of everything random; drawn if None.
        """
        self._likelihood = likelihood
        self._rule = read_rule(acquisition, _RULES)
        self._num_startup = check_count(n_startup_trials, "n_startup_trials")
        self._constraints_func = constraints_func
        self._is_deterministic = deterministic_objective
        self._num_inducing = num_inducing
        self._independent_sampler = independent_sampler
        self._search = _SEARCH if search is None else search
        # As many bits as torch's and NumPy's generators take.
        drawn = int(np.random.SeedSequence().generate_state(1)[0])
        self._seed = drawn if seed is None else check_seed(seed)
        some = torch.zeros(2, 1, dtype=torch.float64)
        settings = self._settings(ParameterSpace({"x": Real(0.0, 1.0)}), [StudyDirection.MAXIMIZE], some)
        if settings.is_preference:
            raise OptionError(
                "The objective of a trial is a number of its own, but likelihood is that of comparisons. "
                "Use streamgp.Optimizer and its tell_comparison for preferences."
            )
        if deterministic_objective and settings.objectives[0].outcome.likelihood.gaussian_noise_variance is None:
            raise OptionError(
                f"deterministic_objective=True says that there is no noise, but likelihood is {likelihood!r}. "
                "Use likelihood='gaussian', or leave deterministic_objective out."
            )

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Parameters that all completed trials have with the same range, and that have a choice."""
        common = intersection_search_space(study.get_trials(deepcopy=False))
        return {name: one for name, one in common.items() if not one.single()}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Suggest values of all parameters of a search space together."""
        if not search_space:
            return {}
        space = read_space(search_space)
        with _ONE_AT_A_TIME:
            state = read_state(study, trial, search_space)
            if int(state.observations.is_success.sum()) < self._num_startup:
                point = self._designed(space, trial)
            else:
                point = self._suggested(study, trial, state, space)
            params = space.decode(point)
            announce(study, trial, params, search_space)
        return params

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Suggest a value of one parameter on its own."""
        seed = derived_seed(self._seed, trial.number, zlib.crc32(param_name.encode()))
        sampler = self._independent_sampler or RandomSampler(seed=seed)
        return sampler.sample_independent(study, trial, param_name, param_distribution)

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Tell the independent sampler."""
        if self._independent_sampler is not None:
            self._independent_sampler.before_trial(study, trial)

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        """Store the constraints where Optuna keeps them, and tell the independent sampler."""
        if self._constraints_func is not None and state in (TrialState.COMPLETE, TrialState.PRUNED):
            constraints = _read_constraints(self._constraints_func(trial))
            study._storage.set_trial_system_attr(trial._trial_id, "constraints", constraints)
        if self._independent_sampler is not None:
            self._independent_sampler.after_trial(study, trial, state, values)

    def reseed_rng(self) -> None:
        """Reseed the independent sampler; this one draws anew for each trial's number, whoever holds it."""
        if self._independent_sampler is not None:
            self._independent_sampler.reseed_rng()

    def _designed(self, space: ParameterSpace, trial: FrozenTrial) -> Float[Tensor, " d"]:
        return space.design(1, num_initial=self._num_startup, num_before=trial.number, seed=self._seed).squeeze(0)

    def _suggested(
        self, study: Study, trial: FrozenTrial, state: LoopState, space: ParameterSpace
    ) -> Float[Tensor, " d"]:
        settings = self._settings(space, study.directions, state.observations.y)
        try:
            seeded = replace(settings, seed=derived_seed(self._seed, trial.number))
            _, points = suggest(state, seeded, 1)
        except NumericalError as error:
            warnings.warn(
                f"No suggestion could be computed for trial {trial.number}, so that a point of the initial design was "
                f"taken: {error}",
                StreamGPWarning,
                stacklevel=2,
            )
            return self._designed(space, trial)
        return points.squeeze(0)

    def _settings(
        self, space: ParameterSpace, directions: Sequence[StudyDirection], outcomes: Float[Tensor, "n o"]
    ) -> LoopSettings:
        """Settings of a loop, whose initial design is over."""
        likelihood = self._likelihood
        y = outcomes[~outcomes.isnan().any(-1)]
        if self._is_deterministic and likelihood == "gaussian":
            variance = float(y[:, 0].var(correction=0))
            likelihood = Gaussian(_NO_NOISE * variance if variance > 0 else _NO_NOISE, is_learned=False)
        objectives = tuple(
            Objective(f"value {j}", maximize=one == StudyDirection.MAXIMIZE, likelihood=likelihood)
            for j, one in enumerate(directions)
        )
        for one in objectives:
            one.outcome.check_constants(None)
        return LoopSettings(
            space=space,
            objectives=objectives,
            constraints=(Constraint(upper=0.0),) * (outcomes.shape[-1] - len(objectives)),
            rule=with_policies(
                self._rule if len(objectives) == 1 else NoisyHypervolumeImprovement(), num_objectives=len(objectives)
            ),
            surrogate=SurrogateSettings(
                num_inducing=check_count(self._num_inducing, "num_inducing"),
                refit="always",
                has_learned_points=True,
                is_bent=True,
                is_smooth=True,
                learns_success=True,
            ),
            search=self._search,
            num_initial=1,
            seed=self._seed,
        )


def _read_constraints(values: object) -> list[float]:
    if not isinstance(values, Sequence) or isinstance(values, str):
        raise ArgumentTypeError(
            f"constraints_func must return a sequence of numbers, but returned a {type(values).__name__}. "
            "Return [value] for a single constraint, and of an array its tolist()."
        )
    try:
        constraints = [float(value) for value in values]
    except (TypeError, ValueError) as error:
        raise ArgumentTypeError(
            f"constraints_func must return a sequence of numbers, but returned {values!r}. Return a value above zero "
            "where a constraint is violated."
        ) from error
    if any(value != value for value in constraints):
        raise ValueRangeError(
            f"constraints_func must return numbers, but returned {constraints}. Return a value above zero where a "
            "constraint is violated, or let the trial fail."
        )
    return constraints
