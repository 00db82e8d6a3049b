"""The pool learner that users hold."""

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any, final

import torch
from gpytorch.kernels import Kernel

from streamgp.acquisition import AbstractRule, HotspotEntropy, Search
from streamgp.acquisition.response import latent_threshold
from streamgp.acquisition.rules.names import POOL_RULES, read_rule
from streamgp.acquisition.rules.pool_rules import AbstractPoolRule, AbstractThresholdRule
from streamgp.checks import check_count, check_seed
from streamgp.conditioning import SparseGP
from streamgp.errors import ArgumentTypeError, StreamGPWarning, UnsupportedError
from streamgp.likelihoods import AbstractLikelihood
from streamgp.loops import (
    AbstractLoop,
    LoopSettings,
    Objective,
    PoolSpace,
    SurrogateSettings,
    Training,
)
from streamgp.loops.settings import check_kernel, read_refit
from streamgp.loops.surrogate import SparseSurrogate
from streamgp.pools.maps import draw_map
from streamgp.storage import register
from streamgp.training import FitResult
from streamgp.training.scaling import Scaling, describe_unscaled_inputs

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["PoolLearner"]

_LEAST_INITIAL, _MOST_INITIAL = 5, 30


@final
class PoolLearner(AbstractLoop):
    """Active learning on a finite pool, by ask and tell: which places to survey next.

    `ask` proposes members of the pool, `tell` takes what was observed there. Members that were asked for and not told
    yet are pending: they are not proposed again, and later proposals count on their outcomes. No member is proposed
    after it was told. The same seed and the same calls give the same proposals, also across `save` and `load`. A call
    that raises an error changes nothing.

    Hyperparameters are learned anew as `refit` says, by the first of `ask`, `predict` and `fit_result` that needs them;
    between, outcomes enter the belief in closed form.

    ```python
    import numpy as np

    villages = np.random.default_rng(0).random((40, 2))  # where they are
    learner = sg.PoolLearner(villages, likelihood=sg.likelihoods.Binomial(30))  # 30 tests in each
    chosen = learner.ask(3)  # indices
    learner.tell(chosen, [4, 0, 11])
    learner.predict()
    ```
    """

    def __init__(
        self,
        pool_X: Any,
        *,
        likelihood: str | AbstractLikelihood = "gaussian",
        acquisition: str | AbstractRule = "integrated_variance",
        threshold: float | None = None,
        is_clipped: bool = True,
        weights: Any = None,
        costs: Any = None,
        names: Any = None,
        targets: Any = None,
        kernel: Kernel | None = None,
        num_initial: int | None = None,
        num_inducing: int = 500,
        refit: str | int = "auto",
        training: Training | None = None,
        standardize: bool = True,
        seed: int = 0,
    ) -> None:
        """Start without data.

        Args:
            pool_X: Inputs `(n, d)` of all members: coordinates, covariates, or both.
            likelihood: Of an outcome: `"gaussian"`, `"student_t"`, `"poisson"`, `"negative_binomial"`, `"bernoulli"`,
                or an object of `streamgp.likelihoods`. Its total count, exposure or known noise is one number, or a
                tensor `(n,)` with one for each member. Members whose total count is zero are not proposed.
            acquisition: `"integrated_variance"` (reduction of the latent variance over the pool),
                `"response_variance"` (of the variance of prevalences, rates or values, and, if there is a threshold, of
                which side of it each member is on), `"hotspot_entropy"`
                (reduction of the entropy of places above the threshold, for prevalences), `"exceedance"` (uncertainty
                about which side of the threshold a place is on), `"variance"` (of the latent function), or `"random"`.
            threshold: On the scale of the response: a prevalence, a rate, or a value.
            is_clipped: For hotspot entropy: whether outcomes that raise the entropy count as zero, without which little
                is left of the score.
            weights: How much each member counts in sums over the pool, `(n,)`: the people who live there.
            costs: What it costs to observe each member, `(n,)`: hours of travel. Members are then chosen by what is
                gained for each unit of cost.
            names: What the members are called, one for each. Members are then proposed and told by name. If all names
                are numbers, so is a number that is told.
            targets: Indices or names of the members over which gains are summed; by default those that were not told
                yet, or 2000 drawn at random if the pool has more than 5000.
            kernel: GPyTorch kernel of inputs in the units of the model; by default a scaled Matérn-5/2 with a
                lengthscale for each dimension.
            num_initial: Number of outcomes before the model is asked; up to then, members near centers of clusters of
                the pool are proposed. By default 2 (d + 1), at least 5 and at most 30.
            num_inducing: Most inducing points. With no more places than these, each is an inducing point.
            refit: When hyperparameters are learned again: `"always"` if there is something new, `"never"` after the
                first time, a number of new outcomes, or `"auto"`, which is always up to 500 outcomes and then for each
                5 % of new ones.
            training: How they are learned.
            standardize: Whether inputs are scaled to zero mean and unit variance over the pool.
            seed: Of everything random.
        """
        if not isinstance(standardize, bool):
            raise ArgumentTypeError(f"standardize must be True or False, but is {standardize!r}.")
        if training is not None and not isinstance(training, Training):
            raise ArgumentTypeError(
                f"training must be a streamgp.pools.Training, but is a {type(training).__name__}. "
                "Write training=Training(beta=0.1)."
            )
        seed = check_seed(seed)
        space = PoolSpace.from_inputs(
            pool_X,
            weights=weights,
            targets=targets,
            is_standardized=standardize,
            seed=seed,
            names=names,
            costs=costs,
        )
        n, d = space.members.shape
        if not standardize and kernel is None:
            advice = "Leave standardize at True, or scale pool_X."
            unscaled = describe_unscaled_inputs(space.members, advice=advice)
            if unscaled is not None:
                warnings.warn(unscaled, StreamGPWarning, stacklevel=2)
        rule = read_rule(acquisition, POOL_RULES)
        if costs is not None and not isinstance(rule, AbstractPoolRule):
            raise UnsupportedError(
                f"The rule {type(rule).__name__} does not weigh costs. Those that score members do, such as "
                "'integrated_variance'."
            )
        objective = Objective("response", likelihood=likelihood)
        objective.outcome.check_constants(n)
        checked = objective.outcome.likelihood
        constant = objective.outcome.constant
        if constant is not None:  # nothing can be learned of a member without trials or exposure
            space = replace(space, is_left=getattr(checked, constant).cpu().expand(n) > 0)
        default = min(max(2 * (d + 1), _LEAST_INITIAL), _MOST_INITIAL, n)
        self._start(
            LoopSettings(
                space=space,
                objectives=(objective,),
                constraints=(),
                rule=_with_options(rule, threshold, checked, is_clipped=is_clipped),
                surrogate=SurrogateSettings(
                    kernel=check_kernel(kernel, d),
                    num_inducing=check_count(num_inducing, "num_inducing"),
                    refit=read_refit(refit),
                    training=Training() if training is None else training,
                    is_standardized=False,
                ),
                search=Search(),
                num_initial=default if num_initial is None else check_count(num_initial, "num_initial"),
                seed=seed,
                threshold=None if threshold is None else float(threshold),
            )
        )

    @property
    def fit_result(self) -> FitResult:
        """The model as the next proposal will use it; it predicts from inputs in the user's units."""
        with self._lock:
            surrogate = self._refitted().surrogate
        assert isinstance(surrogate, SparseSurrogate)
        shift, scale = self._space.shift_and_scale
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
        return self._space.show(self._space.without(taken).all_points())

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
            self._space.members,
            prediction,
            told=state.observations.points,
            pending=state.pending,
            coordinates=coordinates,
            axes=axes,
        )

    def __repr__(self) -> str:
        n, d = self._space.members.shape
        rule = type(self._settings.rule).__name__
        return f"PoolLearner({n} members with {d} inputs, by {rule}: {self._summary()})"

    @property
    def _space(self) -> PoolSpace:
        space = self._settings.space
        assert isinstance(space, PoolSpace)
        return space


def _with_options(
    rule: AbstractRule, threshold: Any, likelihood: AbstractLikelihood, *, is_clipped: Any
) -> AbstractRule:
    """The rule, with the learner's threshold where it has none of its own."""
    if not isinstance(is_clipped, bool):
        raise ArgumentTypeError(f"is_clipped must be True or False, but is {is_clipped!r}.")
    if threshold is not None:
        latent_threshold(likelihood, threshold)
    if isinstance(rule, AbstractThresholdRule):
        rule = rule.with_threshold(None if threshold is None else float(threshold))
    if isinstance(rule, HotspotEntropy) and not is_clipped:
        rule = replace(rule, is_clipped=False)
    if isinstance(rule, AbstractPoolRule):
        rule.check(likelihood)
    return rule


register(PoolLearner, to_fields=PoolLearner.to_parts, from_fields=PoolLearner.from_parts)
