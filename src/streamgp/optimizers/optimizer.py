"""The optimizer that users hold."""

import os
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import torch
from gpytorch.kernels import Kernel

from streamgp.acquisition import AbstractRule, AbstractSpace, Search
from streamgp.acquisition.rules.improvement import NoisyExpectedImprovement
from streamgp.acquisition.rules.names import OPTIMIZER_RULES, read_rule
from streamgp.acquisition.rules.source_rule import Cost, KnowledgePerCost
from streamgp.checks import ArrayLike, check_count
from streamgp.errors import ArgumentTypeError, OptionError, StreamGPWarning, UnsupportedError
from streamgp.gp.named_kernels import make_kernel
from streamgp.likelihoods import AbstractLikelihood
from streamgp.loops import (
    AbstractLoop,
    Best,
    Box,
    Constraint,
    LinearConstraint,
    LoopSettings,
    Objective,
    ParameterSpace,
    SurrogateSettings,
)
from streamgp.loops.abstract_parameter import AbstractParameter
from streamgp.loops.charts import draw_contour, draw_history, draw_parallel, draw_predicted
from streamgp.loops.effects import check_free, draw_effect, partial_dependence, slice_through
from streamgp.loops.evaluation import run_loop
from streamgp.loops.importance import Importance, find_importance
from streamgp.loops.outlook import Outlook, find_outlook
from streamgp.loops.pareto import draw_pareto
from streamgp.loops.plots import check_drawable, draw_acquisition
from streamgp.loops.policies import with_policies
from streamgp.loops.settings import answers, check_kernel, describe_search, read_constraints, read_refit, read_seed
from streamgp.loops.sources import read_sources, sourced_parameters
from streamgp.loops.state import LoopState, compare, move_state
from streamgp.optimizers.reporting import write_report
from streamgp.storage import register

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Optimizer", "check_combination", "read_kernel", "read_objectives", "read_space"]

# Points of an initial design: of few parameters twice as many, and two; of more no more than these, or than parameters
# and two.
_FEW_INITIAL, _MOST_INITIAL = 10, 30
# Names of what is to be small. Values do not tell: those of Hartmann's function, which is maximized, are as positive
# and as skewed as sums of squares.
_LOSS = re.compile(r"(^|[\W_])(loss|losses|error|errors|rmse|mse|mae|nll|perplexity|cost|costs|regret|misfit)([\W_]|$)")


def read_space(bounds: Any, input_constraints: Any) -> AbstractSpace:
    """A space of named parameters, a box, or one of the user's own."""
    if isinstance(input_constraints, str) or not isinstance(input_constraints, Sequence):
        input_constraints = (input_constraints,)
    for one in input_constraints:
        if not isinstance(one, LinearConstraint):
            raise ArgumentTypeError(
                f"input_constraints must be a list of streamgp.LinearConstraint, but has {one!r}. Write "
                "[streamgp.LinearConstraint({'a': 1.0, 'b': 2.0}, upper=0.5)] for a + 2 b <= 0.5."
            )
    if isinstance(bounds, Mapping):
        return ParameterSpace(bounds, tuple(input_constraints))
    if input_constraints:
        raise OptionError(
            "input_constraints are between parameters with names. Make the optimizer with a dictionary of parameters, "
            "such as {'water': streamgp.Real(0, 1), 'ethanol': streamgp.Real(0, 1)}."
        )
    return bounds if isinstance(bounds, AbstractSpace) else Box.from_bounds(bounds)


def read_kernel(kernel: Any, num_dims: int) -> Kernel | None:
    """A kernel for the unit cube, which may be given by name."""
    if isinstance(kernel, str):
        ends = torch.zeros(num_dims, dtype=torch.float64)
        kernel = make_kernel(kernel, ends, ends + 1.0)
    return check_kernel(kernel, num_dims)


def read_objectives(objectives: Any, default: Objective) -> tuple[Objective, ...]:
    """Several objectives, or the one that the other arguments describe."""
    if objectives is not None and (default.likelihood, default.maximize) != (Objective.likelihood, Objective.maximize):
        raise OptionError("Give maximize and likelihood to each of the objectives, instead of to the optimizer.")
    wanted = (default,) if objectives is None else tuple(objectives)
    if not wanted or not all(isinstance(one, Objective) for one in wanted):
        raise ArgumentTypeError(
            "objectives must be a list of streamgp.Objective, such as [streamgp.Objective('yield'), "
            f"streamgp.Objective('waste', maximize=False)], but is {objectives!r}."
        )
    if len({one.name for one in wanted}) < len(wanted):
        raise OptionError(f"Objectives need different names, but have {[one.name for one in wanted]}.")
    for one in wanted:
        one.outcome.check_constants(None)
        if len(wanted) > 1 and one.outcome.likelihood.num_inputs != 1:
            raise UnsupportedError("Comparisons cannot be one of several objectives. Make an optimizer for them alone.")
    return wanted


def check_combination(
    objectives: tuple[Objective, ...], constraints: tuple[Constraint, ...], rule: AbstractRule
) -> None:
    """Refuse options that make no sense together."""
    objective = objectives[0]
    if len(objectives) > 1 and not rule.knows_objectives:
        known = [repr(name) for name, one in OPTIMIZER_RULES.items() if one.knows_objectives]
        raise UnsupportedError(
            f"The rule {type(rule).__name__} knows one objective, but there are {len(objectives)}. Those for several "
            f"are {', '.join(known)}."
        )
    is_preference = objective.outcome.likelihood.num_inputs != 1
    if is_preference and constraints:
        raise UnsupportedError(
            "Comparisons cannot be combined with constraints, as no outcome is observed at a point. "
            "Leave the constraints out."
        )
    if is_preference and not objective.maximize:
        raise UnsupportedError(
            "What is preferred has the larger utility, which cannot be minimized. Swap winners and losers instead."
        )
    if constraints and not rule.knows_constraints:
        known = [repr(name) for name, one in OPTIMIZER_RULES.items() if one.knows_constraints]
        raise UnsupportedError(
            f"The rule {type(rule).__name__} knows no constraints. Those that do are {', '.join(known)}."
        )


def _by_sources(
    rule: KnowledgePerCost,
    objectives: tuple[Objective, ...],
    constraints: tuple[Constraint, ...],
    *,
    acquisition: AbstractRule,
    kernel: Any,
) -> KnowledgePerCost:
    """The rule of sources, where nothing is asked that it cannot do."""
    if len(objectives) > 1 or constraints or not objectives[0].outcome.has_unknown_noise:
        raise UnsupportedError(
            "Sources are for a single objective with real outcomes, likelihood='gaussian', and no constraints."
        )
    if acquisition != NoisyExpectedImprovement() or kernel is not None:
        raise UnsupportedError("With sources, the rule and the kernel are their own. Leave out acquisition and kernel.")
    return rule


@final
class Optimizer(AbstractLoop):
    r"""Bayesian optimization by ask and tell.

    `ask` suggests points, `tell` takes what came of them. Points that were asked for and not told yet are pending:
    later suggestions take their outcomes into account as fantasies, and do not repeat them. Failed evaluations are told
    as NaN, and do not stop anything. The same seed and the same calls give the same suggestions, also across `save` and
    `load`. A call that raises an error changes nothing, and threads may share an optimizer.

    Counts and classes are optimized on the scale of the latent function, of which rates and probabilities are
    increasing functions: the point of the best median response is looked for.

    ```python
    space = {"temperature": sg.Real(100, 180), "solvent": sg.Categorical(["water", "ethanol"])}
    optimizer = sg.Optimizer(space)
    settings = optimizer.ask(2)  # dictionaries
    optimizer.tell(settings, [61.0, 74.5])
    optimizer.best()
    ```
    """

    _is_direction_open = False  # whether nobody said that large outcomes are wanted

    @answers(
        minimize="Write maximize=False.",
        direction="Write maximize=False to minimize, and nothing to maximize.",
        directions="Write objectives=[streamgp.Objective('yield'), streamgp.Objective('waste', maximize=False)].",
        random_state="Write seed=1.",
        n_initial_points="Write num_initial=10.",
        acq_func="Write acquisition='qnei', or another name.",
    )
    def __init__(
        self,
        bounds: ArrayLike | Mapping[str, AbstractParameter] | AbstractSpace,
        *,
        maximize: bool | None = None,
        likelihood: str | AbstractLikelihood = "gaussian",
        objectives: Sequence[Objective] | None = None,
        constraints: Sequence[Constraint] = (),
        input_constraints: Sequence[LinearConstraint] | LinearConstraint = (),
        acquisition: str | AbstractRule = "auto",
        num_initial: int | None = None,
        num_inducing: int | None = None,
        kernel: Kernel | str | None = None,
        refit: str | int = "auto",
        search: Search | None = None,
        sources: Mapping[str, Cost] | None = None,
        target: str | None = None,
        seed: int | None = 0,
    ) -> None:
        """Start without data.

        Args:
            bounds: Of the box that is searched: a tensor `(2, d)` with lower ends in the first row, as BoTorch has it,
                or a list of pairs `(lower, upper)`, one for each dimension. Or parameters by name, `streamgp.Real`,
                `Integer`, `Ordinal` and `Categorical`; points are then dictionaries. Or a space of your own.
            maximize: Whether large outcomes are wanted, or small ones. If it is not said they are large ones, with a
                warning where what is told is called a loss, an error or a cost.
            likelihood: Of the objective: `"gaussian"`, `"student_t"`, `"poisson"`, `"negative_binomial"`,
                `"bernoulli"`, `"preference"`, or an object of `streamgp.likelihoods`, whose numbers are in the user's
                units. Real outcomes are standardized.
            objectives: Several outcomes to be large or small, instead of `maximize` and `likelihood` of a single one.
            constraints: Further outcomes with bounds.
            input_constraints: Linear constraints between parameters with names.
            acquisition: A rule of `streamgp.acquisition`, or a name that is short for one. By default noisy expected
                improvement, and for comparisons what the better of two is worth. Names are `"qkg"` (knowledge
                gradient), `"qnei"`, `"qei"` (noisy and plain expected improvement), `"qucb"` (upper confidence bound),
                `"gibbon"` (maximum-value entropy), `"multi_step"` (knowledge gradient of two steps), `"thompson"`,
                `"lookahead_thompson"` (Thompson sampling, and with look-ahead), `"random"` (points of the initial
                design's sequence).
            num_initial: Number of points of the initial design, a scrambled Sobol sequence. By default 2 (d + 1) of up
                to four parameters, a category being one, 10 of up to eight, d + 2 of more, at most 30, and at most all.
            num_inducing: Most inducing points of each model; by default 100 up to 200 outcomes, and then one for each
                two, at most 300.
            kernel: GPyTorch kernel for inputs in the unit cube, or `"interactions"` (effects of single inputs, of
                pairs and of all, by learned shares), `"matern"`, `"rbf"`, or `"spherical_linear"`, a linear model on a
                sphere for dozens of dimensions and more. By default one with a lengthscale for each dimension: for real
                outcomes, which are standardized, RBF, Matérn or `"interactions"` of unit variance, whichever has
                forecast best (up to 20 dimensions, RBF beyond); scaled RBF for comparisons, and scaled Matérn-5/2 for
                others.
            refit: When hyperparameters are learned again, before a suggestion: `"always"` if there is new data,
                `"never"` after the first time, a number of new observations, or `"auto"`, which is always up to 500
                observations and then for each 5 % of new ones. New data is absorbed in any case.
            search: How much work goes into the search for a suggestion.
            sources: Ways to measure, from a quick simulation to the real thing: their costs by name, numbers or
                functions of the setting. Suggestions then have a `"source"`, and are those of the largest knowledge
                gradient per unit of cost.
            target: The source that matters, of which `best` is.
            seed: Of everything random; None to draw one, which `seed` then says.
        """
        by_cost = None if sources is None and target is None else read_sources(sources, target)
        if by_cost is not None:
            bounds = sourced_parameters(bounds, by_cost.names)
        space = read_space(bounds, input_constraints)
        is_up = Objective.maximize if maximize is None else maximize
        wanted = read_objectives(objectives, Objective(maximize=is_up, likelihood=likelihood))
        objective, rows = wanted[0], read_constraints(constraints)
        if acquisition == "auto":
            is_compared = objective.outcome.likelihood.num_inputs == 2
            acquisition = "qnehvi" if len(wanted) > 1 else "qkg" if is_compared else "qnei"
        rule = read_rule(acquisition, OPTIMIZER_RULES)
        if by_cost is not None:
            rule = _by_sources(by_cost, wanted, rows, acquisition=rule, kernel=kernel)
        check_combination(wanted, rows, rule)
        if search is not None and not isinstance(search, Search):
            raise ArgumentTypeError(
                f"search must be a streamgp.acquisition.Search, but is a {type(search).__name__}. "
                "Write search=Search(num_restarts=10)."
            )
        self._is_direction_open = maximize is None and objectives is None
        d = space.num_parameters - (by_cost is not None)
        default = min(2 * (d + 1), max(d + 2, _FEW_INITIAL), _MOST_INITIAL)
        if by_cost is not None:  # all sources but the target at all settings, and the target at half of them
            default = default // 2 * (2 * len(by_cost.names) - 1)
        if isinstance(space, ParameterSpace):
            default = int(min(default, space.num_points))
        self._start(
            LoopSettings(
                space=space,
                objectives=wanted,
                constraints=rows,
                rule=rule
                if objective.outcome.likelihood.num_inputs == 2 or by_cost is not None
                else with_policies(rule, num_objectives=len(wanted)),
                surrogate=SurrogateSettings(
                    kernel=read_kernel(kernel, space.num_dims),
                    num_inducing=None if num_inducing is None else check_count(num_inducing, "num_inducing"),
                    refit=read_refit(refit),
                    has_learned_points=True,
                    is_bent=True,
                    is_smooth=True,
                    learns_success=True,
                ),
                search=Search() if search is None else search,
                num_initial=default if num_initial is None else check_count(num_initial, "num_initial"),
                seed=read_seed(seed),
            )
        )

    def tell(
        self,
        X: Any,
        y: Any,
        *,
        total_count: Any = None,
        noise_variance: Any = None,
        gradient: Any = None,
        source: Any = None,
    ) -> None:
        self._warn_of_losses(getattr(y, "name", None))
        known: dict[str, Any] = {"total_count": total_count, "noise_variance": noise_variance, "gradient": gradient}
        super().tell(X, y, source=source, **known)

    tell.__doc__ = AbstractLoop.tell.__doc__

    @classmethod
    def from_csv(
        cls, path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], bounds: Any, **options: Any
    ) -> "Optimizer":
        """Start with past experiments, which take the place of the initial design as far as they go.

        Args:
            path: A file with a column for each parameter and each outcome, by name, or a list of such files; see
                `tell_csv`.
            bounds: As for a new optimizer.
            options: All other arguments of a new one.
        """
        optimizer = cls(bounds, **options)
        optimizer.tell_csv(*([path] if isinstance(path, str | os.PathLike) else path))
        return optimizer

    def change_range(
        self,
        bounds: ArrayLike | Mapping[str, AbstractParameter] | AbstractSpace,
        *,
        input_constraints: Sequence[LinearConstraint] | LinearConstraint = (),
    ) -> None:
        """Search another range of the same parameters from now on; nothing that was told is lost.

        What was tried outside the range is learned and not suggested, and values that are left out of a list are kept
        as retired ones.

        Args:
            bounds: As for a new optimizer.
            input_constraints: Linear constraints between parameters, in place of those before.
        """
        before, space = self._settings.space, read_space(bounds, input_constraints)
        if space.column_names != before.column_names:
            raise OptionError(
                f"The parameters must be those of before, {', '.join(before.column_names)}, but are "
                f"{', '.join(space.column_names)}. Make a new optimizer for others."
            )
        with self._lock:
            told = self._state.observations
            if isinstance(space, ParameterSpace) and isinstance(before, ParameterSpace):
                space = space.keeping(before, torch.cat([told.points, told.pairs.flatten(0, 1), self._state.pending]))
            self._state = move_state(self._state, self._settings, space)
            self._settings = replace(self._settings, space=space)

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
        with self._lock:
            self._state = compare(self._state, self._settings, winners, losers)

    def run(
        self,
        function: Callable[[Any], Any],
        num_evaluations: int,
        *,
        q: int = 1,
        progress: bool = True,
        workers: int | None = None,
        client: Any = None,
        time_limit: float | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        callback: Callable[["Optimizer"], Any] | None = None,
    ) -> Best:
        """Evaluate a function again and again where the optimizer suggests it.

        A function that raises an exception, or returns a number that is not finite, has failed there: that is told, and
        the loop goes on. Exceptions are shown as warnings. Workers do not wait for each other: what comes is told, and
        the next point is asked for with all others pending.

        Args:
            function: Of one point, `(d,)` or a dictionary, in the user's units; returns the outcome, or the outcomes of
                objective and constraints.
            num_evaluations: Number of calls, failed ones included; with a checkpoint, of all evaluations that are known
                in the end.
            q: How many points to ask for at a time.
            progress: Show a progress bar, and in the end what more evaluations may gain.
            workers: Number of evaluations at the same time, in threads or by a client.
            client: Executor of `concurrent.futures`, such as a `ProcessPoolExecutor`, or client of Dask that evaluates.
            time_limit: Seconds after which no evaluation begins; those that run are waited for.
            checkpoint: A file that is written, atomically, with each outcome. If it exists, the run goes on from there;
                points that were being evaluated are evaluated first.
            callback: Called with the optimizer after each outcome; the run ends where it returns True.

        Returns:
            The best point; of several objectives, the Pareto set.
        """
        if self._settings.is_preference:
            raise UnsupportedError("run evaluates outcomes, and preferences have none. Use ask and tell_comparison.")
        self._warn_of_losses(getattr(function, "__name__", None))
        if checkpoint is not None:
            if Path(checkpoint).exists():
                self._resume(checkpoint)
            num_evaluations -= len(self._state.observations.points)
        waiting = self._settings.space.show(self._state.pending) if checkpoint is not None else ()
        num_known = len(self._state.observations.points)

        def told() -> bool:
            nonlocal num_known
            if checkpoint is not None:
                self.save(checkpoint)
            is_new, num_known = len(self.y) > num_known, len(self.y)
            return bool(callback is not None and is_new and callback(self))

        if num_evaluations > 0 or checkpoint is None:
            run_loop(
                self,
                function,
                num_evaluations,
                q=q,
                progress=progress,
                num_outcomes=len(self._settings.outcomes),
                workers=workers,
                client=client,
                time_limit=time_limit,
                waiting=waiting,
                told=told,
            )
        best = self.best()
        if progress and len(self._settings.objectives) == 1:
            from rich.console import Console  # needed only here

            Console().print(str(self.outlook()), highlight=False, markup=False)
        return best

    def _resume(self, checkpoint: str | os.PathLike[str]) -> None:
        """Go on from a checkpoint, if it is one of this search and knows all that this optimizer does."""
        kept = Optimizer.load(checkpoint)
        mine, theirs = self._state.observations, kept._state.observations
        is_same = describe_search(kept._settings) == describe_search(self._settings)
        first = theirs.rows(slice(len(mine.points)))
        is_known = torch.equal(mine.points, first.points) and torch.equal(mine.y.nan_to_num(), first.y.nan_to_num())
        if not (is_same and is_known):
            raise OptionError(
                f"{os.fspath(checkpoint)} holds another search than this: its parameters, outcomes or settings differ, "
                "or it lacks what was told here. Choose another file, or read it by Optimizer.load."
            )
        with self._lock:
            self._state = kept._state

    def outlook(self) -> Outlook:
        """Say what more evaluations may gain, in the units of the objective: a rule when to stop.

        As sure as the model is: see the benchmark for how often it was right.
        """
        if self._settings.is_preference:
            raise UnsupportedError("The outlook is in units of an outcome, and preferences have none.")
        with self._lock:
            return find_outlook(self._refitted(), self._settings)

    def plot_acquisition(self, axes: "Axes | None" = None, *, num_steps: int = 40) -> "Axes":
        """Draw the acquisition function of one more point over two dimensions, as the next `ask` sees it.

        Args:
            axes: Where to draw; a new figure by default.
            num_steps: Points along each axis.
        """
        check_drawable(self._settings, num_steps)
        with self._lock:
            state = self._refitted()
        return draw_acquisition(state, self._settings, axes, num_steps=num_steps)

    def plot_pareto(self, axes: "Axes | None" = None) -> "Axes":
        """Draw the first two of several objectives, with the Pareto set and its uncertainty.

        Args:
            axes: Where to draw; a new figure by default.
        """
        if len(self._settings.objectives) < 2:
            raise UnsupportedError("A Pareto set needs two objectives, but there is one. Use plot_progress().")
        with self._lock:
            state = self._refitted()
        return draw_pareto(state, self._settings, axes)

    def plot_slice(
        self, parameter: str | int, axes: "Axes | None" = None, *, at: Any = None, output: int | str = 0
    ) -> "Axes":
        """Draw the predicted outcome along one parameter, with an interval that holds it with probability 0.95.

        Args:
            parameter: Name, or number of a dimension.
            axes: Where to draw; a new figure by default.
            at: A point with the values of all others; the best evaluated one by default.
            output: Name or number of the outcome, objectives first and then constraints.
        """
        state, index = self._inspected(output)
        effect = slice_through(state, self._settings, parameter, at=at, output=index)
        name = self._settings.names[index]
        return draw_effect(effect, axes, label="expected, 95 %", ylabel=name)

    def plot_contour(
        self,
        first: str | int = 0,
        second: str | int = 1,
        axes: "Axes | None" = None,
        *,
        at: Any = None,
        output: int | str = 0,
    ) -> "Axes":
        """Draw the expected outcome over two parameters, with all that was evaluated and is pending.

        Args:
            first: Name, or number of a dimension, across.
            second: Name, or number of a dimension, upward.
            axes: Where to draw; a new figure by default.
            at: A point with the values of all others; the best evaluated one by default.
            output: Name or number of the outcome, objectives first and then constraints.
        """
        state, index = self._inspected(output)
        pair = (first, second)
        return draw_contour(state, self._settings, pair, axes, at=at, output=index, is_feasibility=False)

    def plot_feasibility(
        self, first: str | int = 0, second: str | int = 1, axes: "Axes | None" = None, *, at: Any = None
    ) -> "Axes":
        """Draw the probability to keep all constraints, and not to fail, over two parameters.

        Args:
            first: Name, or number of a dimension, across.
            second: Name, or number of a dimension, upward.
            axes: Where to draw; a new figure by default.
            at: A point with the values of all others; the best evaluated one by default.
        """
        state, _ = self._inspected(0)
        if not self._settings.constraints and not (state.surrogate and state.surrogate.knows_success):
            raise UnsupportedError("There are no constraints, and nothing has failed. Use plot_contour.")
        return draw_contour(state, self._settings, (first, second), axes, at=at, output=0, is_feasibility=True)

    def plot_parallel(self, axes: "Axes | None" = None, *, output: int | str = 0) -> "Axes":
        """Draw each evaluation as a line through its parameters and its outcome, the best tenth in color.

        Args:
            axes: Where to draw; a new figure by default.
            output: Name or number of the outcome, objectives first and then constraints.
        """
        return draw_parallel(self._state, self._settings, axes, output=self._settings.outcome_index(output))

    def plot_history(self, axes: "Axes | None" = None) -> "Axes":
        """Draw outcomes, the best so far, and the band in which the model expects the best possible outcome.

        Args:
            axes: Where to draw; a new figure by default.
        """
        outlook = self.outlook()
        return draw_history(self._state, self._settings, axes, outlook=outlook)

    def plot_predictions(self, axes: "Axes | None" = None, *, output: int | str = 0) -> "Axes":
        """Draw each outcome against what the model predicts of it from all others, with its interval: cross-validation.

        Args:
            axes: Where to draw; a new figure by default.
            output: Name or number of the outcome, objectives first and then constraints.
        """
        state, index = self._inspected(output)
        return draw_predicted(state, self._settings, axes, output=index)

    def report(self, path: str | os.PathLike[str], *, title: str = "Optimization") -> Path:
        """Write one self-contained page: the best, what is left to gain, all pictures, the model, and all evaluations.

        Args:
            path: The file, which ends in `.html`.
            title: Of the page.

        Returns:
            The file.
        """
        return write_report(self, title).save(path)

    def plot_partial_dependence(
        self, parameter: str | int, axes: "Axes | None" = None, *, output: int | str = 0
    ) -> "Axes":
        """Draw the predicted outcome against one parameter, on average over all others.

        The band holds 80 % of the curves at values of the others, each moved to the common mean: where it is wide, the
        effect of the parameter depends on others.

        Args:
            parameter: Name, or number of a dimension.
            axes: Where to draw; a new figure by default.
            output: Name or number of the outcome, objectives first and then constraints.
        """
        check_free(self._settings.space, "Partial dependence")
        state, index = self._inspected(output)
        effect = partial_dependence(state, self._settings, parameter, output=index)
        name = self._settings.names[index]
        return draw_effect(effect, axes, label="on average, and 80 % of curves", ylabel=name)

    def importance(self, *, output: int | str = 0, num_points: int = 1024) -> Importance:
        """Rank the parameters: Sobol indices of the expected outcome, over equally likely values.

        Args:
            output: Name or number of the outcome, objectives first and then constraints.
            num_points: Size of the quasi-random design.
        """
        check_free(self._settings.space, "Importance")
        state, index = self._inspected(output)
        num_points = check_count(num_points, "num_points", minimum=2)
        return find_importance(state, self._settings, output=index, num_points=num_points)

    def _warn_of_losses(self, name: Any) -> None:
        """Say once that what is maximized is called a loss, if nobody said that it is to be."""
        if self._is_direction_open and isinstance(name, str) and _LOSS.search(name.lower()):
            self._is_direction_open = False
            warnings.warn(
                f"{name!r} sounds like what should be small, but large outcomes are looked for. Make the optimizer "
                "with maximize=False, or with maximize=True if this is meant.",
                StreamGPWarning,
                stacklevel=3,
            )

    def _inspected(self, output: int | str) -> tuple[LoopState, int]:
        """Return the state with a model, and the number of an outcome."""
        index = self._settings.outcome_index(output)
        with self._lock:
            return self._refitted(), index

    def __repr__(self) -> str:
        k = len(self._settings.space.column_names)
        seed = f", seed {self.seed}" if self.seed else ""
        return f"Optimizer({k} {'parameter' if k == 1 else 'parameters'}, {self._summary()}{seed})"


register(Optimizer, to_fields=Optimizer.to_parts, from_fields=Optimizer.from_parts)
