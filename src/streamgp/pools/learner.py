"""The learner that users hold: a map of a pool, a box or a mixed space, one question at a time."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, final

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from streamgp.acquisition import (
    AbstractGoalRule,
    AbstractRule,
    Search,
)
from streamgp.acquisition.goals import AbstractRegionGoal, LevelSet
from streamgp.conditioning import SparseGP
from streamgp.errors import OptionError, UnsupportedError
from streamgp.likelihoods import AbstractLikelihood, Bernoulli
from streamgp.loops import (
    AbstractLoop,
    Box,
    PoolSpace,
    Training,
)
from streamgp.loops.state import compare, learned
from streamgp.loops.surrogate import SparseSurrogate
from streamgp.pools.arguments import read_settings
from streamgp.pools.maps import draw_map
from streamgp.pools.region import Region
from streamgp.storage import register
from streamgp.training import FitResult
from streamgp.training.scaling import Scaling

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Learner", "PoolLearner"]

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
        self._start(
            read_settings(
                space,
                likelihood=likelihood,
                goal=goal,
                acquisition=acquisition,
                threshold=threshold,
                is_clipped=is_clipped,
                weights=weights,
                costs=costs,
                names=names,
                targets=targets,
                kernel=kernel,
                num_initial=num_initial,
                num_inducing=num_inducing,
                refit=refit,
                training=training,
                standardize=standardize,
                search=search,
                seed=seed,
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


register(Learner, to_fields=Learner.to_parts, from_fields=Learner.from_parts)

# A learner over a pool, which is all that it once was.
PoolLearner = Learner
