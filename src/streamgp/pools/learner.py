"""The pool learner that users hold."""

import os
from typing import TYPE_CHECKING, Any, final

from gpytorch.kernels import Kernel
from torch import Tensor

from streamgp.checks import check_count
from streamgp.conditioning import SparseGP
from streamgp.likelihoods import AbstractLikelihood
from streamgp.pools.choosing import propose
from streamgp.pools.maps import draw_map
from streamgp.pools.prediction import PoolPrediction, check_level, predict_pool
from streamgp.pools.settings import Settings, Training
from streamgp.pools.state import State, available_members, cancel, observe, refitted
from streamgp.pools.storage import load_learner, save_learner
from streamgp.training import FitResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["PoolLearner"]


@final
class PoolLearner:
    """Active learning on a finite pool, by ask and tell: which places to survey next.

    `ask` proposes members of the pool, `tell` takes what was observed there. Members that were asked for and not told
    yet are pending: they are not proposed again, and later proposals count on their outcomes. No member is proposed
    after it was told. The same seed and the same calls give the same proposals, also across `save` and `load`. A call
    that raises an error changes nothing.

    Hyperparameters are learned anew as `refit` says, by the first of `ask`, `predict` and `fit_result` that needs them;
    between, outcomes enter the belief in closed form.
    """

    def __init__(
        self,
        pool_X: Any,
        *,
        likelihood: str | AbstractLikelihood = "gaussian",
        acquisition: str = "integrated_variance",
        threshold: float | None = None,
        is_clipped: bool = True,
        weights: Any = None,
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
                or an object of `streamgp.likelihoods`. Its totals, exposures or known noise are one number, or a tensor
                `(n,)` with one for each member. Members whose total is zero are not proposed.
            acquisition: `"integrated_variance"` (reduction of the latent variance over the pool),
                `"response_variance"` (of the variance of prevalences, rates or values, and, if there is a threshold, of
                which side of it each member is on), `"hotspot_entropy"`
                (reduction of the entropy of places above the threshold, for prevalences), `"exceedance"` (uncertainty
                about which side of the threshold a place is on), `"variance"` (of the latent function), or `"random"`.
            threshold: On the scale of the response: a prevalence, a rate, or a value.
            is_clipped: For hotspot entropy: whether outcomes that raise the entropy count as zero, without which little
                is left of the score.
            weights: How much each member counts in sums over the pool, `(n,)`.
            targets: Indices of the members over which gains are summed; by default those that were not told yet, or
                2000 drawn at random if the pool has more than 5000.
            kernel: GPyTorch kernel of inputs in the units of the model; by default a scaled Matérn-5/2 with a
                lengthscale for each dimension.
            num_initial: Number of outcomes before the model is asked; up to then, members near centres of clusters of
                the pool are proposed. By default 2 (d + 1), at least 5 and at most 30.
            num_inducing: Most inducing points. With no more places than these, each is an inducing point.
            refit: When hyperparameters are learned again: `"always"` if there is something new, `"never"` after the
                first time, a number of new outcomes, or `"auto"`, which is always up to 500 outcomes and then for each
                5 % of new ones.
            training: How they are learned.
            standardize: Whether inputs are scaled to zero mean and unit variance over the pool.
            seed: Of everything random.
        """
        settings = Settings.read(
            pool_X,
            likelihood=likelihood,
            acquisition=acquisition,
            threshold=threshold,
            is_clipped=is_clipped,
            weights=weights,
            targets=targets,
            kernel=kernel,
            num_initial=num_initial,
            num_inducing=num_inducing,
            refit=refit,
            training=training,
            standardize=standardize,
            seed=seed,
        )
        self._settings, self._state = settings, State()

    def ask(self, q: int = 1) -> Tensor:
        """Propose members to observe next, and keep them as pending.

        Args:
            q: How many; they are chosen one after the other, each given that those before will be observed.

        Returns:
            Indices `(q,)` of rows of the pool.
        """
        self._state, members = propose(self._state, self._settings, check_count(q, "q"))
        return members

    def tell(self, indices: Any, y: Any, *, total_count: Any = None, noise_variance: Any = None) -> None:
        """Learn outcomes, of members that were asked for or of any others.

        Args:
            indices: Members `(k,)`; each may be told once.
            y: Outcomes `(k,)`. NaN stands for a member that could not be observed: it is not proposed again, and
                nothing is learned.
            total_count: Number of trials of Binomial outcomes, where it is not that of the likelihood. Zero tells
                nothing.
            noise_variance: Noise of Gaussian outcomes, likewise, if it is known.
        """
        self._state = observe(
            self._state, self._settings, indices, y, total_count=total_count, noise_variance=noise_variance
        )

    def cancel(self, indices: Any = None) -> None:
        """Forget pending members that will not be observed now; they may be proposed again.

        Args:
            indices: Members; all pending ones by default.
        """
        self._state = cancel(self._state, self._settings, indices)

    def predict(self, level: float = 0.95) -> PoolPrediction:
        """Predict the response of all members, told ones included.

        Args:
            level: Probability that each interval holds the response.
        """
        probability = check_level(level)
        self._state = refitted(self._state, self._settings)
        return predict_pool(self._state, self._settings, probability)

    @property
    def fit_result(self) -> FitResult:
        """The model as the next proposal will use it; it predicts from inputs in the user's units."""
        self._state = refitted(self._state, self._settings)
        assert self._state.surrogate is not None
        return self._state.surrogate.in_user_units(self._settings)

    @property
    def gp(self) -> SparseGP:
        """Its sparse GP, whose inputs are standardised if that was asked for."""
        return self.fit_result.gp

    @property
    def observed(self) -> Tensor:
        """Indices of all members that were told, in that order."""
        return self._state.told.members.clone()

    @property
    def outcomes(self) -> Tensor:
        """Their outcomes; NaN for those that could not be observed."""
        return self._state.told.y.clone()

    @property
    def pending(self) -> Tensor:
        """Indices of members that were asked for and not told yet."""
        return self._state.pending.clone()

    @property
    def available(self) -> Tensor:
        """Indices of members that may still be proposed."""
        return available_members(self._state, self._settings)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a file that `load` reads: tensors and a JSON description, no pickle; atomically."""
        save_learner(self._state, self._settings, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, kernel: Kernel | None = None) -> "PoolLearner":
        """Read a learner that `save` wrote; its proposals go on as they would have.

        Args:
            path: The file.
            kernel: The kernel that the learner was made with, where it cannot be rebuilt by name or has priors.
        """
        loaded = cls.__new__(cls)
        loaded._state, loaded._settings = load_learner(path, kernel=kernel)
        return loaded

    def plot_map(self, coordinates: Any = None, *, axes: Any = None, level: float = 0.95) -> "tuple[Axes, Axes]":
        """Draw prediction and uncertainty at the places of all members, and which were told or are pending.

        Args:
            coordinates: Two numbers for each member, `(n, 2)`; the first two columns of the inputs by default.
            axes: Two axes to draw on; a new figure by default.
            level: Probability of the intervals, whose width is the uncertainty.

        Returns:
            Both axes.
        """
        prediction = self.predict(level)
        return draw_map(self._state, self._settings, prediction, coordinates=coordinates, axes=axes)

    def __repr__(self) -> str:
        state, settings = self._state, self._settings
        return (
            f"PoolLearner({len(settings.inputs)} members with {settings.inputs.shape[-1]} inputs, by "
            f"{settings.acquisition!r}: {len(state.told.members)} told, {len(state.pending)} pending)"
        )
