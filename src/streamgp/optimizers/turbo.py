"""The trust-region optimizer that users hold."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from botorch.models.model import Model
from jaxtyping import Float
from torch import Tensor

from streamgp.checks import check_count
from streamgp.errors import ValueRangeError
from streamgp.likelihoods import AbstractLikelihood
from streamgp.optimizers.trust_region import Region, RegionRules
from streamgp.optimizers.turbo_models import FittedModel
from streamgp.optimizers.turbo_plots import draw_lengths, draw_progress
from streamgp.optimizers.turbo_settings import TurboSettings
from streamgp.optimizers.turbo_state import observe, start_state
from streamgp.optimizers.turbo_storage import load_turbo, save_turbo
from streamgp.optimizers.turbo_suggest import fit_current, is_initial, suggest_design, suggest_in_region

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["BestObserved", "TurboOptimizer"]


@final
@dataclass(frozen=True, eq=False)
class BestObserved:
    """The best outcome so far; in the user's units.

    Attributes:
        X: Its point.
        y: The outcome as it was observed, with its noise.
        index: When it was told, counted from zero.
    """

    X: Float[Tensor, " d"]
    y: float
    index: int


@final
class TurboOptimizer:
    """Bayesian optimisation in a trust region, for many dimensions, large batches and thousands of evaluations.

    A box around the best point is searched by Thompson sampling from a sparse GP, with look-ahead by default. It grows
    with success, shrinks with failure, and when it has become too small the search begins anew elsewhere: with a new
    initial design and without the data of earlier runs, of which only the best outcome is remembered.

    `ask` suggests points, `tell` takes their outcomes. Each call of `tell` is one step of the trust region, so outcomes
    of a batch are best told together. Failed evaluations are told as NaN: they count as evaluations without success,
    and the model does not see them. Suggestions are random draws, so asking again before telling does not repeat them.
    The same seed and the same calls give the same suggestions, also across `save` and `load`. A call that raises an
    error changes nothing.

    References:
        Eriksson, Pearce, Gardner, Turner, Poloczek (2019), Scalable global optimization via local Bayesian
        optimization.
    """

    def __init__(
        self,
        bounds: Tensor | Sequence[tuple[float, float]],
        *,
        maximize: bool = True,
        likelihood: str | AbstractLikelihood = "gaussian",
        model: str = "sparse",
        acquisition: str = "lts",
        objective: str = "elbo",
        num_inducing: int = 500,
        num_initial: int | None = None,
        num_candidates: int | None = None,
        depth: int = 4,
        num_paths: int = 10,
        rules: RegionRules | None = None,
        seed: int = 0,
    ) -> None:
        """Start without data.

        Args:
            bounds: Of the box that is searched: a tensor `(2, d)` with lower ends in the first row, as BoTorch has it,
                or a list of pairs `(lower, upper)`, one for each dimension.
            maximize: Whether large outcomes are wanted, or small ones.
            likelihood: Of the outcomes, as in `Optimizer`. The best outcome as observed is the centre of the search.
            model: `"sparse"`, or `"exact"` for BoTorch's `SingleTaskGP`.
            acquisition: `"lts"` for Thompson sampling with look-ahead, or `"ts"` without.
            objective: For which the sparse model is fitted, `"elbo"` or `"pll"`.
            num_inducing: Most inducing points.
            num_initial: Evaluations that have to succeed before a run's first model, at points of a scrambled Sobol
                sequence; 2 d by default.
            num_candidates: Points among which each suggestion chooses; between 2000 and 5000 by default.
            depth: Depth of the look-ahead.
            num_paths: Number of its paths.
            rules: How the trust region changes.
            seed: Of everything random.
        """
        settings = TurboSettings.read(
            bounds,
            likelihood=likelihood,
            rules=rules,
            maximize=maximize,
            model=model,
            acquisition=acquisition,
            objective=objective,
            num_inducing=num_inducing,
            num_initial=num_initial,
            num_candidates=num_candidates,
            depth=depth,
            num_paths=num_paths,
            seed=seed,
        )
        self._settings, self._state = settings, start_state(settings)
        self._fitted: FittedModel | None = None  # follows from the state

    def ask(self, q: int = 1) -> Tensor:
        """Suggest points to evaluate next.

        Args:
            q: Number of points.

        Returns:
            Points `(q, d)`, in the user's units.
        """
        check_count(q, "q")
        if is_initial(self._state, self._settings):
            state, points = suggest_design(self._state, self._settings, q)
        else:
            fitted = self._fitted or fit_current(self._state, self._settings)
            state, points = suggest_in_region(self._state, self._settings, fitted, q)
            self._fitted = fitted
        self._state = state
        return self._settings.box.to_user(points)

    def tell(self, X: Any, y: Any) -> None:
        """Learn outcomes, of points that were asked for or of any others.

        Args:
            X: Points `(n, d)`, in the user's units.
            y: Outcomes `(n,)`; NaN for a failed evaluation.
        """
        self._state = observe(self._state, self._settings, X, y)
        self._fitted = None

    def best(self) -> BestObserved:
        """The best outcome of all runs."""
        y = self._state.y
        if y.isnan().all():
            raise ValueRangeError(
                f"Nothing is known yet: of {len(y)} evaluations none has succeeded. "
                "Ask for points and tell their outcomes first."
            )
        worst = -float("inf") if self._settings.maximize else float("inf")
        filled = y.nan_to_num(nan=worst)
        index = int(filled.argmax() if self._settings.maximize else filled.argmin())
        return BestObserved(self.X[index], float(y[index]), index)

    def model(self) -> Model:
        """The model of the current run, on the unit cube; real outcomes are standardised in it."""
        if is_initial(self._state, self._settings):
            num_known = int(self._state.is_known.sum())
            raise ValueRangeError(
                f"The current run has no model yet: {num_known} of the {self._settings.num_initial} evaluations of its "
                "initial design have succeeded. Ask for points and tell their outcomes first."
            )
        return (self._fitted or fit_current(self._state, self._settings)).model

    @property
    def X(self) -> Tensor:  # noqa: N802 # as BoTorch calls it
        """All points that were evaluated, failures included, in the order in which they were told."""
        return self._settings.box.to_user(self._state.X)

    @property
    def y(self) -> Tensor:
        """Outcomes `(n,)`; NaN for each failure."""
        return self._state.y.clone()

    @property
    def region(self) -> Region:
        """The trust region of the current run."""
        return self._state.region

    @property
    def num_runs(self) -> int:
        """How often the search has begun."""
        return self._state.num_runs

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a file that `load` reads: tensors and a JSON description, no pickle; atomically."""
        save_turbo(self._state, self._settings, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "TurboOptimizer":
        """Read an optimizer that `save` wrote; its suggestions go on as they would have."""
        loaded = cls.__new__(cls)
        loaded._state, loaded._settings = load_turbo(path)
        loaded._fitted = None
        return loaded

    def plot_trust_region(self, axes: "Axes | None" = None) -> "Axes":
        """Draw the length of the trust region against evaluations.

        Args:
            axes: Where to draw; a new figure by default.
        """
        return draw_lengths(self._state, self._settings, axes)

    def plot_progress(self, axes: "Axes | None" = None) -> "Axes":
        """Draw outcomes and the best of them against evaluations.

        Args:
            axes: Where to draw; a new figure by default.
        """
        return draw_progress(self._state, self._settings, axes)

    def __repr__(self) -> str:
        state, settings = self._state, self._settings
        goal = "maximize" if settings.maximize else "minimize"
        return (
            f"TurboOptimizer({goal} over {settings.box.num_dims} dimensions by {settings.acquisition!r}: "
            f"{len(state.y)} told, {int(state.y.isnan().sum())} of them failed, run {state.num_runs}, "
            f"length {state.region.length:g})"
        )
