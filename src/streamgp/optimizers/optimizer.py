"""The optimizer that users hold."""

import os
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, final

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from streamgp.checks import check_count, to_double
from streamgp.errors import StreamGPWarning, UnsupportedError
from streamgp.likelihoods import AbstractLikelihood
from streamgp.models import OnlineGP
from streamgp.optimizers.best import Best, find_best
from streamgp.optimizers.decision import refitted
from streamgp.optimizers.outcomes import Constraint
from streamgp.optimizers.plots import draw_acquisition, draw_progress
from streamgp.optimizers.settings import Search, Settings
from streamgp.optimizers.state import add_pending, cancel, compare, observe, start_state
from streamgp.optimizers.storage import load_optimizer, save_optimizer
from streamgp.optimizers.suggest import suggest

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Optimizer"]


@final
class Optimizer:
    r"""Bayesian optimisation by ask and tell.

    `ask` suggests points, `tell` takes what came of them. Points that were asked for and not told yet are pending:
    later suggestions take their outcomes into account as fantasies, and do not repeat them. Failed evaluations are told
    as NaN, and do not stop anything. The same seed and the same calls give the same suggestions, also across `save` and
    `load`. A call that raises an error changes nothing.

    Counts and classes are optimised on the scale of the latent function, of which rates and probabilities are
    increasing functions: the point of the best median response is looked for.
    """

    def __init__(
        self,
        bounds: Tensor | Sequence[tuple[float, float]],
        *,
        maximize: bool = True,
        likelihood: str | AbstractLikelihood = "gaussian",
        constraints: Sequence[Constraint] = (),
        acquisition: str = "qkg",
        num_initial: int | None = None,
        num_inducing: int = 100,
        kernel: Kernel | None = None,
        refit: str | int = "auto",
        search: Search | None = None,
        seed: int = 0,
    ) -> None:
        """Start without data.

        Args:
            bounds: Of the box that is searched: a tensor `(2, d)` with lower ends in the first row, as BoTorch has it,
                or a list of pairs `(lower, upper)`, one for each dimension.
            maximize: Whether large outcomes are wanted, or small ones.
            likelihood: Of the objective: `"gaussian"`, `"student_t"`, `"poisson"`, `"negative_binomial"`,
                `"bernoulli"`, `"preference"`, or an object of `streamgp.likelihoods`, whose numbers are in the user's
                units. Real outcomes are standardised.
            constraints: Further outcomes with bounds.
            acquisition: `"qkg"` (knowledge gradient), `"qnei"`, `"qei"` (noisy and plain expected improvement),
                `"qucb"` (upper confidence bound), `"gibbon"` (maximum-value entropy), `"multi_step"` (knowledge
                gradient of two steps), `"thompson"`, `"lts"` (Thompson sampling, and with look-ahead), `"random"`
                (points of the initial design's sequence).
            num_initial: Number of points of the initial design, a scrambled Sobol sequence; 2 (d + 1) by default, at
                most 30.
            num_inducing: Most inducing points of each model.
            kernel: GPyTorch kernel for inputs in the unit cube. By default one with a lengthscale for each dimension:
                RBF of unit variance for real outcomes, which are standardised, and scaled Matérn-5/2 for others.
            refit: When hyperparameters are learned again, before a suggestion: `"always"` if there is new data,
                `"never"` after the first time, a number of new observations, or `"auto"`, which is always up to 500
                observations and then for each 5 % of new ones. New data is absorbed in any case.
            search: How much work goes into a suggestion.
            seed: Of everything random.
        """
        settings = Settings.read(
            bounds,
            likelihood=likelihood,
            maximize=maximize,
            constraints=constraints,
            acquisition=acquisition,
            num_initial=num_initial,
            num_inducing=num_inducing,
            kernel=kernel,
            refit=refit,
            search=search,
            seed=seed,
        )
        self._settings, self._state = settings, start_state(settings)

    def ask(self, q: int = 1) -> Tensor:
        """Suggest points to evaluate next, and keep them as pending.

        Args:
            q: Number of points.

        Returns:
            Points `(q, d)`, in the user's units.
        """
        state, points = suggest(self._state, self._settings, check_count(q, "q"))
        self._state = state
        return self._settings.box.to_user(points)

    def tell(self, X: Any, y: Any) -> None:
        """Learn outcomes, of points that were asked for or of any others.

        Args:
            X: Points `(n, d)`, in the user's units. A point within 0.1 % of the bounds' width of a pending one is taken
                for it.
            y: Outcomes `(n,)`, or `(n, 1 + c)` with one column for each constraint. A row with NaN is a failed
                evaluation.
        """
        if self._settings.is_preference:
            raise UnsupportedError("Preferences are not told as outcomes. Use tell_comparison(winners, losers).")
        self._state = observe(self._state, self._settings, X, y)

    def tell_failure(self, X: Any) -> None:
        """Learn that evaluations failed: their points are not suggested again, and where failures are frequent less is.

        Args:
            X: Points `(n, d)`, in the user's units.
        """
        points = to_double(X, "X")
        num_columns = len(self._settings.outcomes)
        self.tell(points, points.new_full((len(points) if points.dim() else 0, num_columns), torch.nan))

    def tell_comparison(self, winners: Any, losers: Any) -> None:
        """Learn which of two points was preferred, for each pair.

        Args:
            winners: Preferred points `(n, d)`, in the user's units.
            losers: The others, row by row.
        """
        if not self._settings.is_preference:
            raise UnsupportedError(
                "Comparisons need likelihood='preference', but this optimizer observes outcomes. Use tell(X, y)."
            )
        self._state = compare(self._state, self._settings, winners, losers)

    def add_pending(self, X: Any) -> None:
        """Take points for pending that were not asked for, such as those that someone else is evaluating.

        Args:
            X: Points `(n, d)`, in the user's units.
        """
        self._state = add_pending(self._state, self._settings.box.to_unit(X))

    def cancel(self, X: Any = None) -> None:
        """Forget pending points that will not be evaluated.

        Args:
            X: Points `(n, d)`; all pending ones by default.
        """
        self._state = cancel(self._state, self._settings.box, X)

    def best(self, *, anywhere: bool = False) -> Best:
        """The point of best posterior mean that likely keeps the constraints, with its uncertainty.

        It changes nothing. Each constraint must hold with a probability of one half; if none of the points reaches
        that, the one that is likeliest feasible is returned, and its `probability_feasible` says so.

        Args:
            anywhere: Whether it may be a point that was never evaluated.
        """
        return find_best(self._state, self._settings, anywhere=anywhere)

    def run(
        self, function: Callable[[Tensor], Any], num_evaluations: int, *, q: int = 1, progress: bool = True
    ) -> Best:
        """Evaluate a function again and again where the optimizer suggests it.

        A function that raises an exception, or returns a number that is not finite, has failed there: that is told, and
        the loop goes on. Exceptions are shown as warnings.

        Args:
            function: Of one point `(d,)` in the user's units; returns the outcome, or the outcomes of objective and
                constraints.
            num_evaluations: Number of calls, failed ones included.
            q: How many points to ask for at a time.
            progress: Show a progress bar.

        Returns:
            The best point.
        """
        check_count(num_evaluations, "num_evaluations")
        if self._settings.is_preference:
            raise UnsupportedError("run evaluates outcomes, and preferences have none. Use ask and tell_comparison.")
        from rich.progress import Progress  # needed only here

        with Progress(disable=not progress) as bar:
            task = bar.add_task("evaluations", total=num_evaluations)
            num_done = 0
            while num_done < num_evaluations:
                X = self.ask(min(q, num_evaluations - num_done))
                for point in X:
                    self.tell(point.unsqueeze(0), self._evaluate(function, point).unsqueeze(0))
                    num_done += 1
                    bar.advance(task)
        return self.best()

    def model(self) -> OnlineGP:
        """A BoTorch model of objective, constraints, and success if some failed, as the next suggestion will use it.

        Inputs are in the unit cube. Real outcomes are standardised, and those to be minimised have their sign changed.
        """
        surrogate = refitted(self._state, self._settings).surrogate
        assert surrogate is not None
        return surrogate.model()

    @property
    def X(self) -> Tensor:  # noqa: N802 # as BoTorch calls it
        """All points that were evaluated, failures included, in the order in which they were told."""
        return self._settings.box.to_user(self._state.X)

    @property
    def y(self) -> Tensor:
        """Outcomes `(n, 1 + c)`; a row of NaN for each failure."""
        return self._state.y.clone()

    @property
    def pending(self) -> Tensor:
        """Points that were asked for and not told yet."""
        return self._settings.box.to_user(self._state.pending)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a file that `load` reads: tensors and a JSON description, no pickle; atomically."""
        save_optimizer(self._state, self._settings, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, kernel: Kernel | None = None) -> "Optimizer":
        """Read an optimizer that `save` wrote; its suggestions go on as they would have.

        Args:
            path: The file.
            kernel: The kernel that the optimizer was made with, where it cannot be rebuilt by name or has priors.
        """
        loaded = cls.__new__(cls)
        loaded._state, loaded._settings = load_optimizer(path, kernel=kernel)
        return loaded

    def plot_progress(self, axes: "Axes | None" = None) -> "Axes":
        """Draw outcomes and the best of them against evaluations.

        Args:
            axes: Where to draw; a new figure by default.
        """
        return draw_progress(self._state, self._settings, axes)

    def plot_acquisition(self, axes: "Axes | None" = None, *, num_steps: int = 40) -> "Axes":
        """Draw the acquisition function of one more point over two dimensions, as the next `ask` sees it.

        Args:
            axes: Where to draw; a new figure by default.
            num_steps: Points along each axis.
        """
        return draw_acquisition(self._state, self._settings, axes, num_steps=num_steps)

    def __repr__(self) -> str:
        state, settings = self._state, self._settings
        goal = "maximize" if settings.maximize else "minimize"
        return (
            f"Optimizer({goal} over {settings.box.num_dims} dimensions by {settings.acquisition!r}: {state.num_told} "
            f"told, {len(state.failures)} of them failed, {len(state.pending)} pending)"
        )

    def _evaluate(self, function: Callable[[Tensor], Any], point: Tensor) -> Tensor:
        """Outcomes of a point, NaN if the function failed."""
        num_columns = len(self._settings.outcomes)
        try:
            outcome = function(point.clone())
        except Exception as error:  # whatever the user's function raises, it failed there
            message = f"The evaluation at {point.tolist()} failed with {type(error).__name__}: {error}"
            warnings.warn(message, StreamGPWarning, stacklevel=3)
            return point.new_full((num_columns,), torch.nan)
        row = to_double(outcome, "the result of the function").reshape(-1)
        return row if row.isfinite().all() else torch.full_like(row, torch.nan)
