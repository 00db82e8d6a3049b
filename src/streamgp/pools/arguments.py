"""Arguments of learners: a space or a pool, the rule of a goal, and the model."""

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gpytorch.kernels import Kernel, RBFKernel, ScaleKernel
from gpytorch.priors import GammaPrior

from streamgp.acquisition import (
    AbstractGoalRule,
    AbstractRule,
    AbstractSpace,
    HotspotEntropy,
    IntegratedError,
    IntegratedVariance,
    Search,
    StepwiseUncertaintyReduction,
)
from streamgp.acquisition.goals import AbstractGoal, AbstractRegionGoal, Hotspots, LevelSet, Map
from streamgp.acquisition.response import latent_threshold
from streamgp.acquisition.rules.names import POOL_RULES, read_rule
from streamgp.acquisition.rules.pool_rules import AbstractPoolRule, AbstractThresholdRule
from streamgp.checks import check_count, check_seed
from streamgp.errors import ArgumentTypeError, OptionError, StreamGPWarning, UnsupportedError
from streamgp.likelihoods import AbstractLikelihood
from streamgp.loops import (
    Box,
    LoopSettings,
    Objective,
    ParameterSpace,
    PoolSpace,
    SurrogateSettings,
    Training,
)
from streamgp.loops.settings import check_kernel, read_refit
from streamgp.training.scaling import describe_unscaled_inputs

__all__ = ["read_settings"]

_LEAST_INITIAL, _MOST_INITIAL = 5, 30
# Trials before the model is asked in a space that is no pool, and between refits there.
_SPACE_INITIAL, _REFIT = 10, 10
# Shape and rate of the priors of lengthscales and variances there. With wider ones, of the variance above all, fewer
# than 200 yes/no answers make beliefs that are sure and wrong, and a look-ahead trusts them.
_LENGTHS, _SCALES = (6.0, 10.0), (4.0, 4.0)
# The search for a question: a person waits for it.
_SEARCH = Search(num_restarts=4, raw_samples=512, max_iterations=20)


def read_settings(
    space: Any,
    *,
    likelihood: str | AbstractLikelihood,
    goal: Any,
    acquisition: str | AbstractRule | None,
    threshold: float | None,
    is_clipped: bool,
    weights: Any,
    costs: Any,
    names: Any,
    targets: Any,
    kernel: Kernel | None,
    num_initial: int | None,
    num_inducing: int | None,
    refit: str | int | None,
    training: Training | None,
    standardize: bool,
    search: Search | None,
    seed: int,
) -> LoopSettings:
    """Settings of a learner; the arguments are those of `Learner`."""
    seed = check_seed(seed)
    if training is not None and not isinstance(training, Training):
        raise ArgumentTypeError(
            f"training must be a streamgp.pools.Training, but is a {type(training).__name__}. "
            "Write training=Training(beta=0.1)."
        )
    if goal is not None and not isinstance(goal, AbstractGoal):
        raise ArgumentTypeError(f"goal must be a goal such as streamgp.LevelSet(0.75), but is a {type(goal).__name__}.")
    objective = Objective("response", likelihood=likelihood)
    kept = _read_space(space)
    if kept is None:
        kept = _read_pool(
            space,
            objective,
            weights=weights,
            targets=targets,
            standardize=standardize,
            seed=seed,
            names=names,
            costs=costs,
            has_kernel=kernel is not None,
        )
        most = len(kept.members)
    else:
        given = {"weights": weights, "costs": costs, "names": names, "targets": targets}
        for name, value in given.items():
            if value is not None:
                raise OptionError(f"{name} belongs to the members of a pool, but this space is none. Leave it out.")
        objective.outcome.check_constants(None)
        most = None
    checked, is_pool = objective.outcome.likelihood, isinstance(kept, PoolSpace)
    rule = _read_rule(acquisition, goal, is_pool=is_pool)
    rule = _with_options(rule, goal, threshold, checked, is_clipped=is_clipped)
    if costs is not None and not isinstance(rule, AbstractPoolRule):
        raise UnsupportedError(
            f"The rule {type(rule).__name__} does not weigh costs. Those that score members do, such as "
            "'integrated_variance'."
        )
    d = kept.num_dims
    default = _SPACE_INITIAL if most is None else min(max(2 * (d + 1), _LEAST_INITIAL), _MOST_INITIAL, most)
    level = goal.threshold if goal is not None else threshold
    has_tight = not is_pool and kernel is None and not objective.outcome.is_real
    return LoopSettings(
        space=kept,
        objectives=(objective,),
        constraints=(),
        rule=rule,
        surrogate=SurrogateSettings(
            kernel=_tight_kernel(d) if has_tight else check_kernel(kernel, d),
            num_inducing=check_count(num_inducing or (500 if is_pool else 200), "num_inducing"),
            refit=read_refit(refit if refit is not None else "auto" if is_pool else _REFIT),
            training=Training() if training is None else training,
            is_standardized=False,
            is_eager=not is_pool,
            renews_points=not is_pool,
        ),
        search=_SEARCH if search is None else search,
        num_initial=default if num_initial is None else check_count(num_initial, "num_initial"),
        seed=seed,
        threshold=None if level is None else float(level),
    )


def _read_space(space: Any) -> AbstractSpace | None:
    """A box, named parameters or a space; None for a pool."""
    if isinstance(space, AbstractSpace):
        return space
    if isinstance(space, Mapping):
        return ParameterSpace(space)
    is_bounds = isinstance(space, list | tuple) and len(space) > 0 and all(isinstance(one, tuple) for one in space)
    return Box.from_bounds(list(space)) if is_bounds and all(len(one) == 2 for one in space) else None


def _read_pool(pool_X: Any, objective: Objective, *, standardize: Any, has_kernel: bool, **options: Any) -> PoolSpace:
    """A pool, whose members may differ in their number of trials."""
    if not isinstance(standardize, bool):
        raise ArgumentTypeError(f"standardize must be True or False, but is {standardize!r}.")
    space = PoolSpace.from_inputs(pool_X, is_standardized=standardize, **options)
    n, _ = space.members.shape
    if not standardize and not has_kernel:
        unscaled = describe_unscaled_inputs(space.members, advice="Leave standardize at True, or scale pool_X.")
        if unscaled is not None:
            warnings.warn(unscaled, StreamGPWarning, stacklevel=3)
    objective.outcome.check_constants(n)
    constant = objective.outcome.constant
    if constant is None:
        return space
    # Nothing can be learned of a member without trials or exposure.
    return replace(space, is_left=getattr(objective.outcome.likelihood, constant).cpu().expand(n) > 0)


def _read_rule(acquisition: Any, goal: AbstractGoal | None, *, is_pool: bool) -> AbstractRule:
    """The rule, or that of the goal."""
    if acquisition is not None:
        return read_rule(acquisition, POOL_RULES)
    if goal is None:
        return IntegratedVariance() if is_pool else IntegratedError(Map())
    if isinstance(goal, AbstractRegionGoal):
        return StepwiseUncertaintyReduction(goal)
    if isinstance(goal, Hotspots):
        return HotspotEntropy(float(goal.level), goal.is_clipped)
    return IntegratedError(goal)


def _tight_kernel(num_dims: int) -> Kernel:
    """Make a scaled RBF kernel of the unit cube for latent functions of classes and counts."""
    base = RBFKernel(ard_num_dims=num_dims, lengthscale_prior=GammaPrior(*_LENGTHS))
    kernel = ScaleKernel(base, outputscale_prior=GammaPrior(*_SCALES)).double()
    base.lengthscale = _LENGTHS[0] / _LENGTHS[1]
    kernel.outputscale = 1.0
    return kernel


def _with_options(
    rule: AbstractRule, goal: AbstractGoal | None, threshold: Any, likelihood: AbstractLikelihood, *, is_clipped: Any
) -> AbstractRule:
    """The rule, with the learner's threshold where it has none of its own."""
    if not isinstance(is_clipped, bool):
        raise ArgumentTypeError(f"is_clipped must be True or False, but is {is_clipped!r}.")
    if threshold is not None:
        latent_threshold(likelihood, threshold)
    if isinstance(rule, AbstractGoalRule) and (goal is not None or threshold is not None):
        rule = rule.with_goal(LevelSet(threshold) if goal is None else goal)
    if isinstance(rule, AbstractThresholdRule):
        threshold = goal.threshold if threshold is None and goal is not None else threshold
        rule = rule.with_threshold(None if threshold is None else float(threshold))
    if isinstance(rule, HotspotEntropy) and not is_clipped:
        rule = replace(rule, is_clipped=False)
    if isinstance(rule, AbstractPoolRule):
        rule.check(likelihood)
    return rule
