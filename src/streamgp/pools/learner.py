"""The learner that users hold: a map of a pool, a box or a mixed space, one question at a time."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, final

import torch
from gpytorch.kernels import Kernel, RBFKernel, ScaleKernel
from gpytorch.priors import GammaPrior
from torch import Tensor

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
from streamgp.conditioning import SparseGP
from streamgp.errors import ArgumentTypeError, OptionError, StreamGPWarning, UnsupportedError
from streamgp.likelihoods import AbstractLikelihood, Bernoulli
from streamgp.loops import (
    AbstractLoop,
    Box,
    LoopSettings,
    Objective,
    ParameterSpace,
    PoolSpace,
    SurrogateSettings,
    Training,
)
from streamgp.loops.settings import check_kernel, read_refit
from streamgp.loops.state import compare, learned
from streamgp.loops.surrogate import SparseSurrogate
from streamgp.pools.maps import draw_map
from streamgp.pools.region import Region
from streamgp.storage import register
from streamgp.training import FitResult
from streamgp.training.scaling import Scaling, describe_unscaled_inputs

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Learner", "PoolLearner"]

_LEAST_INITIAL, _MOST_INITIAL = 5, 30
# Trials before the model is asked in a space that is no pool, and between refits there.
_SPACE_INITIAL, _REFIT = 10, 10
# Shape and rate of the priors of lengthscales and variances there. With wider ones, of the variance above all, fewer
# than 200 yes/no answers make beliefs that are sure and wrong, and a look-ahead trusts them.
_LENGTHS, _SCALES = (6.0, 10.0), (4.0, 4.0)
# The search for a question: a person waits for it.
_SEARCH = Search(num_restarts=4, raw_samples=512, max_iterations=20)
# Quasi-random points that stand for a space.
_NUM_SORTED = 2048


@final
class Learner(AbstractLoop):
    """Active learning by ask and tell: where to observe next, so that a map, or a region of it, is known soon.

    Over a pool, `ask` proposes members, and none of them again once it was told. Over a box or named parameters it
    proposes points, which may repeat: yes/no answers at one point add up. Points that were asked for and not told yet
    are pending: later proposals count on their outcomes. The same seed and the same calls give the same proposals, also
    across `save` and `load`. A call that raises an error changes nothing.

    In a pool, hyperparameters are learned anew as `refit` says, by the first of `ask`, `predict` and `fit_result` that
    needs them. In other spaces that happens in `tell`, so that no person waits for it in front of a question. Between,
    outcomes enter the belief in closed form.

    ```python
    import numpy as np

    villages = np.random.default_rng(0).random((40, 2))  # where they are
    learner = sg.Learner(villages, likelihood=sg.likelihoods.Binomial(30))  # 30 tests in each
    chosen = learner.ask(3)  # indices
    learner.tell(chosen, [4, 0, 11])
    learner.predict()

    space = {"contrast": sg.Real(0.01, 1, log=True), "size": sg.Real(0.1, 4)}
    observer = sg.Learner(space, likelihood=sg.likelihoods.Bernoulli("probit"), goal=sg.LevelSet(0.75))
    question = observer.ask()
    observer.tell(question, [1])  # it was seen
    ```
    """

    def __init__(
        self,
        space: Any,
        *,
        likelihood: str | AbstractLikelihood = "gaussian",
        goal: Any = None,
        acquisition: str | AbstractRule | None = None,
        threshold: float | None = None,
        is_clipped: bool = True,
        weights: Any = None,
        costs: Any = None,
        names: Any = None,
        targets: Any = None,
        kernel: Kernel | None = None,
        num_initial: int | None = None,
        num_inducing: int | None = None,
        refit: str | int | None = None,
        training: Training | None = None,
        standardize: bool = True,
        search: Search | None = None,
        seed: int = 0,
    ) -> None:
        """Start without data.

        Args:
            space: Inputs `(n, d)` of all members of a pool: coordinates, covariates, or both. Or a box as a list of
                tuples `(lower, upper)`, parameters by name, or a space of your own.
            likelihood: Of an outcome: `"gaussian"`, `"student_t"`, `"poisson"`, `"negative_binomial"`,
                `"bernoulli"`, or an object of `streamgp.likelihoods`. In a pool, its total count, exposure or known
                noise is one number, or a tensor `(n,)` with one for each member. Members whose total count is zero are
                not proposed.
            goal: What is to be found out: `streamgp.LevelSet(level)`, `streamgp.Band(low, high)`, `streamgp.Map()`, or
                `streamgp.Hotspots(level)` of a pool. By default what the rule is for, and a map in other spaces.
            acquisition: A rule, or a name that is short for one; by default that of the goal: for regions
                `"uncertainty_reduction"` (expected drop of the variance of which side places are on). Beside it there
                are `"mutual_information"` and `"volume_change"`. Over pools also `"integrated_variance"` (reduction of
                the latent variance over the pool; the default without a goal), `"response_variance"` (of the variance
                of prevalences, rates or values, and, if there is a threshold, of which side of it each member is on),
                `"hotspot_entropy"` (reduction of the entropy of places above the threshold, for prevalences),
                `"exceedance"` (uncertainty about which side of the threshold a place is on, which returns to places
                that are known to be on the edge), `"variance"` (of the latent function), or `"random"`.
            threshold: On the scale of the response, for rules that need one and have no goal.
            is_clipped: For hotspot entropy: whether outcomes that raise the entropy count as zero, without which little
                is left of the score.
            weights: How much each member counts in sums over the pool, `(n,)`: the people who live there.
            costs: What it costs to observe each member, `(n,)`: hours of travel. Members are then chosen by what is
                gained for each unit of cost.
            names: What the members are called, one for each. Members are then proposed and told by name. If all names
                are numbers, so is a number that is told.
            targets: Indices or names of the members over which gains are summed; by default those that were not told
                yet, or 2000 drawn at random if the pool has more than 5000.
            kernel: GPyTorch kernel of inputs in the units of the model: standardized in a pool, in the unit cube
                elsewhere. By default a scaled Matérn-5/2 with a lengthscale for each dimension; of classes and counts
                in other spaces a scaled RBF with priors that keep few answers from making a belief that is sure.
            num_initial: Number of outcomes before the model is asked. In a pool, members near centers of clusters are
                proposed up to then, by default 2 (d + 1), at least 5 and at most 30; in other spaces points of a
                Sobol sequence, by default 10.
            num_inducing: Most inducing points; by default 500 in a pool, where each place is one if there are no more
                places, and 200 in other spaces, where there are 100 up to 250 trials.
            refit: When hyperparameters are learned again: `"always"` if there is something new, `"never"` after the
                first time, a number of new outcomes, or `"auto"`, which is always up to 500 outcomes and then for each
                5 % of new ones. By default `"auto"` in a pool and 10 elsewhere.
            training: How they are learned.
            standardize: Whether inputs are scaled to zero mean and unit variance over the pool.
            search: How much work goes into the search for a point of a space that is no pool.
            seed: Of everything random.
        """
        seed = check_seed(seed)
        if training is not None and not isinstance(training, Training):
            raise ArgumentTypeError(
                f"training must be a streamgp.pools.Training, but is a {type(training).__name__}. "
                "Write training=Training(beta=0.1)."
            )
        if goal is not None and not isinstance(goal, AbstractGoal):
            raise ArgumentTypeError(
                f"goal must be a goal such as streamgp.LevelSet(0.75), but is a {type(goal).__name__}."
            )
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
        self._start(
            LoopSettings(
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
        )

    @property
    def fit_result(self) -> FitResult:
        """The model as the next proposal will use it; it predicts from inputs in the user's units."""
        with self._lock:
            surrogate = self._refitted().surrogate
        assert isinstance(surrogate, SparseSurrogate)
        shift, scale = self._shift_and_scale
        zero = shift.new_zeros(())
        return replace(surrogate.results[0], scaling=Scaling(shift, scale, zero, zero + 1.0))

    @property
    def gp(self) -> SparseGP:
        """Its sparse GP, whose inputs are standardized if that was asked for."""
        return self.fit_result.gp

    @property
    def available(self) -> Any:
        """Indices or names of members that may still be proposed."""
        with self._lock:
            state = self._state
        taken = torch.cat([state.observations.points, state.pending])
        return self._pool.show(self._pool.without(taken).all_points())

    def plot_map(self, coordinates: Any = None, *, axes: Any = None, level: float = 0.95) -> "tuple[Axes, ...]":
        """Draw prediction and uncertainty at the places of all members, and which were told or are pending.

        Args:
            coordinates: Two numbers for each member, `(n, 2)`; the first two columns of the inputs by default.
            axes: Two axes to draw on, or three if the learner or its rule has a threshold; a new figure by default.
            level: Probability of the intervals, whose width is the uncertainty.

        Returns:
            The axes: of the prediction, of the width of its interval, and with a threshold of the probability to be
            above it.
        """
        prediction, state = self.predict(level=level), self._state
        return draw_map(
            self._pool.members,
            prediction,
            told=state.observations.points,
            pending=state.pending,
            coordinates=coordinates,
            axes=axes,
        )

    def probability_above(self, X: Any = None) -> Tensor:
        """Predict the probability of places to belong to the region that is looked for.

        That is to be above the level of `LevelSet` and `Hotspots` or the threshold, or between the ends of `Band`.

        Args:
            X: Points, in the user's units; all members of a pool by default.
        """
        mean, variance, _ = self._latent(X)
        return self._region_probability(mean, variance)

    def region(self, X: Any = None) -> Region:
        """Estimate the region that is looked for, with what is not known of it.

        Args:
            X: Places to sort, in the user's units; by default all members of a pool, and 2048 quasi-random points of
                another space.
        """
        space = self._settings.space
        if X is None and not isinstance(space, PoolSpace):
            X = space.show(space.scatter(_NUM_SORTED, num_before=0, seed=self._settings.seed, ask=0))
        mean, variance, weights = self._latent(X)
        places = space.show(torch.arange(len(mean))) if X is None else X
        return Region.of(places, self._region_probability(mean, variance), weights)

    def report(self) -> str:
        """Say in sentences what is known of the region, and how much of it is not."""
        inside, found = self.inspect(), self.region()
        failed = int(self.y.isnan().any(-1).sum())
        told = f"{inside.num_told} outcomes were told{f', of which {failed} failed' if failed else ''}"
        models = "; ".join(
            f"the {one.kernel} has lengthscales "
            + ", ".join(f"{name} {value:.3g}" for name, value in one.lengthscales.items())
            for one in inside.outcomes
        )
        return f"{told}, and {inside.num_pending} are pending. {found} In the model, {models}."

    def tell_comparison(self, winners: Any, losers: Any) -> None:
        """Learn which of two points is above the other, beside yes/no answers: which of two stimuli looks stronger.

        Each answer has latent noise of variance one, and a comparison that of both points.

        Args:
            winners: Points that are above, in the user's units, or members of a pool.
            losers: The others, row by row.
        """
        likelihood = self._settings.outcomes[0].likelihood
        if not isinstance(likelihood, Bernoulli) or likelihood.link != "probit":
            raise UnsupportedError(
                "Comparisons are learned beside yes/no answers with a probit. Make the learner with "
                "likelihood=streamgp.likelihoods.Bernoulli('probit')."
            )
        with self._lock:
            self._state = learned(compare(self._state, self._settings, winners, losers), self._settings)

    def prepare(self, outcomes: Sequence[Any] | None = None) -> None:
        """Work out the next question for each answer that the pending one may get, so that the next ask takes no time.

        Call it while the answer is awaited, also from another thread. It changes nothing but the time that `tell` and
        `ask` take afterwards.

        Args:
            outcomes: Answers to prepare for; by default both of a yes/no question.
        """
        with self._lock:
            state = self._state
        if len(state.pending) != 1:
            raise UnsupportedError(
                f"One question at a time is prepared for, but {len(state.pending)} points are pending. "
                "Call prepare after ask()."
            )
        likelihood = self._settings.outcomes[0].likelihood
        if outcomes is None:
            if likelihood.outcome_kind != "class":
                raise OptionError("Only the answers of classes are known in advance. Pass those that are likely.")
            low, high = likelihood.support
            outcomes = [low + k for k in range(int(high - low) + 1)]
        self._prepare(state, outcomes)

    def __repr__(self) -> str:
        space, rule = self._settings.space, type(self._settings.rule).__name__
        what = f"{len(space.members)} members with {space.num_dims} inputs" if isinstance(space, PoolSpace) else None
        what = what or f"{space.num_parameters} parameters"
        return f"Learner({what}, by {rule}: {self._summary()})"

    def _latent(self, X: Any) -> tuple[Tensor, Tensor, Tensor]:
        """Latent moments of places, and how much each counts."""
        prediction, space = self.predict(X), self._settings.space
        mean, variance = prediction.latent_mean, prediction.latent_variance
        is_all = X is None and isinstance(space, PoolSpace)
        return mean, variance, self._pool.weights if is_all else torch.ones_like(mean)

    def _region_probability(self, mean: Tensor, variance: Tensor) -> Tensor:
        rule, threshold = self._settings.rule, self._settings.threshold
        goal = rule.goal if isinstance(rule, AbstractGoalRule) else None
        if not isinstance(goal, AbstractRegionGoal):
            if threshold is None:
                raise UnsupportedError(
                    "This learner looks for no region. Make it with goal=streamgp.LevelSet(0.75), or ask predict("
                    "threshold=...) for a probability."
                )
            goal = LevelSet(threshold)
        return goal.probability(self._settings.outcomes[0].likelihood, mean, variance)

    @property
    def _pool(self) -> PoolSpace:
        space = self._settings.space
        if not isinstance(space, PoolSpace):
            raise UnsupportedError("Members belong to a pool, but this learner has a space. Look at X and predict(X).")
        return space

    @property
    def _shift_and_scale(self) -> tuple[Tensor, Tensor]:
        space = self._settings.space
        if isinstance(space, PoolSpace):
            return space.shift_and_scale
        if isinstance(space, Box):
            return space.lower, space.upper - space.lower
        raise UnsupportedError("The model of named parameters has inputs in the unit cube. Use predict or inspect.")


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


register(Learner, to_fields=Learner.to_parts, from_fields=Learner.from_parts)

# A learner over a pool, which is all that it once was.
PoolLearner = Learner
