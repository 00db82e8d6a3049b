"""Ask and tell, once for all loops."""

import math
import os
import threading
import warnings
from abc import ABC
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakSet, ref

import torch
from botorch.models.model import Model
from gpytorch.kernels import Kernel
from torch import Tensor

from streamgp.acquisition.rules.pool_rules import AbstractThresholdRule
from streamgp.acquisition.rules.source_rule import KnowledgePerCost
from streamgp.checks import check_count
from streamgp.display import shown_point
from streamgp.errors import ArgumentTypeError, OptionError, StreamGPWarning, UnsupportedError
from streamgp.loops.best import Best, are_within, find_best
from streamgp.loops.inspection import Inspection, describe, inspect_loop, summarize
from streamgp.loops.observations import Observations, find_known, observe_points, read_observations
from streamgp.loops.pareto import ParetoSet, draw_pareto, find_hypervolume, find_pareto
from streamgp.loops.plots import draw_progress
from streamgp.loops.prediction import ResponsePrediction, check_level, predict_objective
from streamgp.loops.settings import LoopSettings, answers
from streamgp.loops.sources import SOURCE, ask_within, with_source
from streamgp.loops.state import (
    LoopState,
    Prepared,
    add_pending,
    cancel,
    check_state,
    compare_points,
    complete,
    current,
    edit,
    enqueue,
    learned,
    observe,
    refitted,
    start_state,
    take_queued,
)
from streamgp.loops.suggest import suggest
from streamgp.loops.suggestions import Reason, Reasons, explained
from streamgp.loops.tables import (
    FAILED,
    TableCounts,
    compared_columns,
    point_rows,
    read_comparisons,
    read_results,
    to_frame,
    write_csv,
)
from streamgp.loops.user_model import make_user_model
from streamgp.storage import describe_unsavable, load, save
from streamgp.threads import limit_threads

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["AbstractLoop"]

Loop = TypeVar("Loop", bound="AbstractLoop")
if TYPE_CHECKING:  # `best` has one type for those who read types: of several objectives, `pareto` has another
    Found = Best
else:
    Found = Best | ParetoSet
# With so many points pending, telling others is a sign that they are left over.
_MANY_PENDING = 10
# All loops of this process, whose locks a forked child renews: the thread that held one is not there any more.
_LOOPS: "WeakSet[AbstractLoop]" = WeakSet()


class AbstractLoop(ABC):
    """A space, a model, a rule, and what is known, behind `ask` and `tell`.

    Points that were asked for and not told yet are pending. The same seed and the same calls give the same suggestions,
    also across `save` and `load`. A call that raises an error changes nothing. Threads may share a loop: a lock of
    its own lets one call in at a time, so that no two get the same point and nothing that is told is lost.
    """

    _settings: LoopSettings
    _state: LoopState

    def _start(self, settings: LoopSettings, state: LoopState | None = None) -> None:
        """Begin without data, or with a state that was saved."""
        if state is None:
            _warn_of_unsavable(settings)
        self._settings = settings
        self._state = start_state(settings) if state is None else state
        self._lock = threading.RLock()
        self._prepared: tuple[Prepared, ...] = ()
        self._reasons: Callable[[], Reasons | None] = lambda: None
        _LOOPS.add(self)

    @answers(
        n="The number of points is q: ask(3), or ask(q=3).",
        num_points="The number of points is q: ask(3), or ask(q=3).",
        batch_size="The number of points is q: ask(3), or ask(q=3).",
    )
    def ask(
        self,
        q: int = 1,
        *,
        fixed: Mapping[str, Any] | None = None,
        as_frame: bool = False,
        budget: float | None = None,
        shared: Sequence[str] = (),
    ) -> Any:
        """Suggest points to evaluate next, and keep them as pending.

        Args:
            q: Number of points.
            fixed: Values of parameters that stay as they are in this suggestion, by name.
            as_frame: Return a DataFrame of pandas, where parameters have names.
            budget: With sources, what the measurements may cost together; their number follows from it.
            shared: Names of parameters that all points have in common, such as the temperature of a plate; the first
                point sets them.

        Returns:
            Points as the user has them: a tensor `(q, d)`, indices of a pool, or a list of dictionaries. They are
            plain ones that have a `why`, the reason of each, beside.
        """
        q = check_count(q, "q")
        settings = replace(self._settings, space=self._settings.space.fixing(fixed)) if fixed else self._settings
        with self._lock, limit_threads(len(self._state.observations.points) ** 3):
            prepared = next((one for one in self._prepared if one.told is self._state and q == 1 and not fixed), None)
            if budget is not None:
                self._state, points = ask_within(self._state, settings, budget)
            elif prepared is not None:
                self._state, points = prepared.asked, prepared.points
            elif shared and q > 1:
                self._state, points = self._suggest_plate(settings, q, shared)
            else:
                self._state, points = self._suggested(settings, q)
            before, reasons = self._reasons(), Reasons(self._state, settings, points, self._state.why)
            if before is not None:
                _ = before.rows
            self._reasons = ref(reasons)
        shown = self._settings.space.show(points)
        if not as_frame:
            return explained(shown, reasons)
        frame = to_frame(shown)
        frame.attrs["why"] = [str(one) for one in reasons.rows]
        return frame

    def _suggest_plate(self, settings: LoopSettings, q: int, shared: Sequence[str]) -> tuple[LoopState, Tensor]:
        """Choose a point, and others that have some of its values."""
        if isinstance(shared, str):
            raise ArgumentTypeError(f"shared must be a list of names of parameters, but is {shared!r}.")
        state, first = suggest(self._state, settings, 1)
        (values,) = point_rows(settings.space.show(first), settings.space.column_names)
        unknown = [name for name in shared if name not in values]
        if unknown:
            raise OptionError(f"shared names {unknown[0]!r}, but the parameters are {', '.join(values)}.")
        plate = replace(settings, space=settings.space.fixing({name: values[name] for name in shared}))
        after, others = suggest(state, plate, q - 1)
        points = torch.cat([first, others])
        return replace(after, asked=points, why=(*state.why, *after.why)), points

    def _suggested(self, settings: LoopSettings, q: int) -> tuple[LoopState, Tensor]:
        """Take points from the queue, and others by the rule."""
        if self._state.queued is None:
            return suggest(self._state, settings, q)
        state = take_queued(self._state, q)
        first, why = state.asked, state.why
        assert first is not None
        if len(first) < q:
            state, points = suggest(state, settings, q - len(first))
            state = replace(state, asked=torch.cat([first, points]), why=(*why, *state.why))
        assert state.asked is not None
        return state, state.asked

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
        """Learn outcomes, of points that were asked for or of any others.

        Args:
            X: Points, in the user's units.
            y: Outcomes `(n,)`, or `(n, o)` with one column for each objective and constraint; or by name, as a
                dictionary, a list of them or a table. A row with NaN is an evaluation that failed. A real outcome of
                which no more than a bound is known is a text, such as "<0.5" below a limit of detection.
            total_count: Number of trials of Binomial outcomes, where it is not that of the likelihood. Zero tells
                nothing. Of several outcomes, a dictionary by name or `(n, o)`.
            noise_variance: Noise of Gaussian outcomes, likewise, if it is known.
            gradient: Slopes of the outcome at the points, where a simulator gives them: `(n, d)` in the user's units,
                or by name; NaN, or left out, where one is not known.
            source: Name of the source of all outcomes, or of each, where points do not say it.
        """
        settings = self._settings
        X = with_source(settings.rule, X, source)
        if settings.is_preference:
            raise UnsupportedError("Preferences are not told as outcomes. Use tell_comparison(winners, losers).")
        new = read_observations(
            settings.space,
            settings.outcomes,
            settings.labels,
            X,
            y,
            names=settings.names,
            total_count=total_count,
            noise_variance=noise_variance,
            gradient=gradient,
        )
        self._learn(new)

    def _learn(self, new: Observations) -> None:
        """Learn evaluations that were checked."""
        settings = self._settings
        _warn_of_outside(settings, new.points)
        with self._lock:
            before = len(self._state.pending)
            prepared = next((one for one in self._prepared if one.is_for(self._state, new)), None)
            self._state = learned(observe(self._state, settings, new), settings) if prepared is None else prepared.told
            if before == len(self._state.pending) >= _MANY_PENDING and len(new.points):
                warnings.warn(
                    f"{before} points are pending, and none of those told now was taken for one of them. Look at what "
                    "is pending, and cancel what will not be evaluated.",
                    StreamGPWarning,
                    stacklevel=3,
                )

    def tell_failure(self, X: Any) -> None:
        """Learn that evaluations failed: their points are not suggested again.

        Args:
            X: Points, in the user's units.
        """
        num_points = len(self._settings.space.read(X))
        self.tell(X, torch.full((num_points, len(self._settings.outcomes)), torch.nan))

    def add_pending(self, X: Any) -> None:
        """Take points for pending that were not asked for, such as those that someone else is evaluating.

        Args:
            X: Points, in the user's units.
        """
        points = self._settings.space.read(X)
        with self._lock:
            self._state = add_pending(self._state, points)

    def enqueue(self, X: Any) -> None:
        """Suggest points of the user's own next, before those of the rule.

        Args:
            X: Points, in the user's units.
        """
        points = self._settings.space.read(X)
        with self._lock:
            self._state = enqueue(self._state, points)

    def cancel(self, X: Any = None) -> None:
        """Forget pending points that will not be evaluated.

        Args:
            X: Points; all pending ones by default.
        """
        with self._lock:
            self._state = cancel(self._state, self._settings, X)

    def best(self, *, anywhere: bool = False, fixed: Mapping[str, Any] | None = None) -> Found:
        """The best point that was evaluated, with what the model recommends, whatever the rule.

        The best of the evaluated points has the best posterior mean. Where there is next to no noise, less than 0.7 %
        of the function's variance (0.1 % if you gave the noise), it has the best outcome, as a model that is not
        perfect would know less than the data. It keeps all constraints with a probability of 0.9, or as observed where
        a constraint has no noise; if none does, the likeliest to do so is returned, and its `probability_feasible` says
        so. The point of the best posterior mean anywhere is its `recommended`. Of several objectives, it is the Pareto
        set, as `pareto` has it. Fits the model if that is due, as `ask` would.

        Args:
            anywhere: Whether what is recommended is returned, be it evaluated or not.
            fixed: A context: values that parameters have, by name. What is returned is recommended within it, evaluated
                or not.
        """
        if isinstance(self._settings.rule, KnowledgePerCost):
            fixed = {**(fixed or {}), SOURCE: self._settings.rule.names[self._settings.rule.target]}
        if fixed:
            if len(self._settings.objectives) > 1:
                raise UnsupportedError("A context has one best point of one objective. Leave fixed out.")
            context = replace(self._settings, space=self._settings.space.fixing(fixed))
            with self._lock:
                return find_best(self._refitted(), context, anywhere=True)
        with self._lock:
            if len(self._settings.objectives) > 1:
                front: Any = find_pareto(self._refitted(), self._settings)
                return front
            settings, has_run = self._settings, bool(current(self._state, self._settings).num_told)
            is_over = settings.rule.run(self._state.memory) > 0 and not has_run
            return find_best(self._state if is_over else self._refitted(), settings, anywhere=anywhere)

    def pareto(self) -> ParetoSet:
        """The evaluated points that no other one beats in all of several objectives, which keep all constraints."""
        if len(self._settings.objectives) < 2:
            raise UnsupportedError("A Pareto set needs two objectives, but there is one. Use best().")
        with self._lock:
            return find_pareto(self._refitted(), self._settings)

    def hypervolume(self, reference: Mapping[str, float] | Sequence[float] | None = None) -> float:
        """Volume between a reference point and the Pareto set, in the user's units.

        Args:
            reference: An outcome of each objective, by name or in order, that is just not acceptable; by default the
                thresholds of the objectives.
        """
        return find_hypervolume(self.pareto(), self._settings.objectives, reference)

    def predict(
        self, X: Any = None, *, level: float = 0.95, output: int | str = 0, threshold: float | None = None
    ) -> ResponsePrediction:
        """Predict the response: values, rates, probabilities or prevalences, in the user's units.

        Fits the model if that is due, as `ask` would.

        Args:
            X: Points, in the user's units; inputs of any places for a pool, whose members are predicted by default.
            level: Probability that each interval holds the response.
            output: Name or number of the outcome, objectives first and then constraints.
            threshold: Of the response, for the probability to exceed it; that of the rule or of the loop by default.
        """
        settings, probability = self._settings, check_level(level)
        index = settings.outcome_index(output)
        rule = settings.rule.innermost
        if isinstance(rule, KnowledgePerCost) and X is not None and not _names_source(X):
            X = with_source(rule, X, rule.names[rule.target])
        inputs = settings.space.read_inputs(X)
        if threshold is None and isinstance(rule, AbstractThresholdRule):
            threshold = rule.threshold
        if threshold is None:
            threshold = settings.threshold
        with self._lock:
            state = self._refitted()
        return predict_objective(state, settings, inputs, level=probability, output=index, threshold=threshold)

    def why(self, X: Any = None) -> tuple[Reason, ...]:
        """Say what is expected of points, how likely they are to improve or to fail, and what chose them.

        Args:
            X: Points, in the user's units; those of the last suggestion by default.
        """
        with self._lock:
            if X is None:
                asked = self._state.pending[:0] if self._state.asked is None else self._state.asked
                return Reasons(self._state, self._settings, asked, self._state.why).rows
            points = self._settings.space.read(X)
            return Reasons(self._refitted(), self._settings, points, ("chosen by you",) * len(points)).rows

    def model(self) -> Model:
        """A BoTorch model of objectives, constraints, and success if some failed, as the next suggestion will use it.

        Inputs are the user's, and so are real outcomes; of counts and classes it is the latent function that is
        modeled.
        """
        with self._lock:
            surrogate = self._refitted().surrogate
        assert surrogate is not None
        return make_user_model(surrogate, self._settings)

    def inspect(self, *, refit: bool = True) -> Inspection:
        """Look inside: the model in the user's units, its noise, the rule, and why the last points were suggested.

        Args:
            refit: Whether the model is fitted if that is due, as `ask` would; if not, it is shown as it is.
        """
        with self._lock:
            data = current(self._state, self._settings)
            is_known = bool(len(data.pairs)) or bool(data.is_informative.any())
            return inspect_loop(self._refitted() if refit and is_known else self._state, self._settings)

    @property
    def X(self) -> Any:  # noqa: N802 # as BoTorch calls it
        """All points that were evaluated, failures included, in the order in which they were told."""
        return self._settings.space.show(self._state.observations.points)

    @property
    def y(self) -> Tensor:
        """Outcomes `(n, o)`; a row of NaN for each failure."""
        return self._state.observations.y.clone()

    @property
    def observations(self) -> Any:
        """All that was told as a DataFrame of pandas: a column for each parameter or input, and for each outcome.

        Of comparisons, columns are those of `winner` and of `loser`.
        """
        return to_frame(self._rows())

    def to_rows(self) -> list[dict[str, Any]]:
        """All that was told and is pending, one dictionary for each evaluation or comparison.

        Its names are parameters or inputs, outcomes, and a status: `"told"`, `"failed"` or `"pending"`.
        """
        space, told = self._settings.space, self._state.observations
        status = ["told"] * len(told.pairs) + ["told" if good else FAILED for good in told.is_success.tolist()]
        rows = [row | {"status": one} for row, one in zip(self._rows(), status, strict=True)]
        names = [] if self._settings.is_preference else self._settings.names
        waiting = dict.fromkeys(names, math.nan) | {"status": "pending"}
        pending = point_rows(space.show(self._state.pending), space.column_names)
        return [*rows, *(row | waiting for row in pending)]

    def to_frame(self) -> Any:
        """All that was told and is pending as a DataFrame of pandas, as `to_rows` has it."""
        return to_frame(self.to_rows())

    @property
    def comparisons(self) -> tuple[Any, Any]:
        """Points that were preferred, and the points they were compared with, row by row as they were told."""
        pairs = self._state.observations.pairs
        return self._settings.space.show(pairs[:, 0]), self._settings.space.show(pairs[:, 1])

    def correct(self, row: int, y: Any = math.nan) -> None:
        """Replace the outcome of an evaluation that was told wrongly, or the winner of a comparison; fit anew.

        Args:
            row: Number of the evaluation, as in `X`, or of the comparison, as in `comparisons`.
            y: Its outcomes, or by name those that change; by default it failed. Of a comparison, the other point was
                preferred, and `y` is left out.
        """
        with self._lock:
            self._state = edit(self._state, self._settings, row, y)

    def remove(self, row: int) -> None:
        """Forget an evaluation, or a comparison; the model is fitted anew.

        Args:
            row: Number of the evaluation, as in `X`, or of the comparison, as in `comparisons`.
        """
        with self._lock:
            self._state = edit(self._state, self._settings, row, None)

    def export(self, path: str | os.PathLike[str]) -> None:
        """Write all that was told to a CSV file, which `tell_csv` reads.

        An outcome that was not measured is an empty cell, and those of an evaluation that failed are the word `failed`.

        Args:
            path: The file.
        """
        settings, rows = self._settings, self._rows()
        columns = [*settings.space.column_names, *settings.names]
        if settings.is_preference:
            columns = [name for side in compared_columns(settings.space) for name in side]
        else:
            failed = dict.fromkeys(settings.names, FAILED)
            rows = _with_bounds(rows, settings.names, self._state.observations.sides)
            is_success = self._state.observations.is_success.tolist()
            rows = [row if good else row | failed for row, good in zip(rows, is_success, strict=True)]
        write_csv(rows, columns, path)

    def tell_csv(self, *paths: str | os.PathLike[str], skip_known: bool = False) -> TableCounts:
        """Learn past evaluations from tables with a column for each parameter or input, and for each outcome.

        Tables are CSV or JSON lines. Columns have the names of parameters and outcomes; those of a box are `x0`, `x1`
        and so on, and those of comparisons begin with `winner.` and `loser.`. Cells are separated by commas, semicolons
        or tabs, and numbers have a decimal point. An empty outcome was not measured, a row without any is not evaluated
        yet and left out, "<0.5" is a bound, and the word `failed` in place of an outcome says that the evaluation
        failed. What is told before the first `ask` takes the place of the initial design as far as it goes. If a row of
        any of the tables cannot be used, nothing is told.

        Args:
            paths: The files.
            skip_known: Leave out rows that were told before with the same outcomes, so that a table may grow and be
                told again. Outcomes that were empty before complete the evaluation that they belong to.

        Returns:
            Numbers of the rows that were learned, and of others.
        """
        settings = self._settings
        if settings.is_preference:
            return self._tell_compared(paths, skip_known=skip_known)
        found = [read_results(path, settings.space, settings.names) for path in paths]
        if not found:
            raise OptionError("tell_csv needs the path of a table at least.")
        new = observe_points(
            torch.cat([one.points for one in found]),
            settings.outcomes,
            settings.labels,
            torch.cat([one.y for one in found]),
            names=settings.names,
            sides=sides if bool((sides := torch.cat([one.sides for one in found])).any()) else None,
        )
        with self._lock:
            others, completing = list(range(len(new.points))), dict[int, int]()
            if skip_known:
                others, completing = find_known(self._state.observations, new)
                if settings.rule.start() is not None:
                    completing = {}
                self._state = complete(self._state, settings, new, completing)
            num_known, new = len(new.points) - len(others) - len(completing), new.rows(others)
            if len(others):
                self._learn(new)
        return TableCounts(
            num_told=len(others),
            num_failed=int((~new.is_success).sum()),
            num_completed=len(completing),
            num_known=num_known,
            num_open=sum(one.num_open for one in found),
        )

    def _tell_compared(self, paths: Sequence[str | os.PathLike[str]], *, skip_known: bool) -> TableCounts:
        found = [read_comparisons(path, self._settings.space) for path in paths]
        first, second = (torch.cat(points) for points in zip(*found, strict=True))
        with self._lock:
            is_new = torch.ones(len(first), dtype=torch.bool)
            if skip_known:
                known = [pair.flatten().tolist() for pair in self._state.observations.pairs]
                for i, pair in enumerate(torch.stack([first, second], dim=1)):
                    if (row := pair.flatten().tolist()) in known:
                        known.remove(row)
                        is_new[i] = False
            self._state = compare_points(self._state, self._settings, first[is_new], second[is_new])
        return TableCounts(int(is_new.sum()), 0, 0, int((~is_new).sum()), 0)

    def _prepare(self, state: LoopState, outcomes: Sequence[Any]) -> None:
        """Work out the next suggestion for each outcome of the only pending point of a state."""
        settings, prepared = self._settings, []
        shown = settings.space.show(state.pending)
        for y in outcomes:
            new = read_observations(
                settings.space,
                settings.outcomes,
                settings.labels,
                shown,
                [y],
                names=settings.names,
                total_count=None,
                noise_variance=None,
            )
            with limit_threads(len(state.observations.points) ** 3):
                told = learned(observe(state, settings, new), settings)
                asked, points = suggest(told, settings, 1)
            prepared.append(Prepared(state, new, told, asked, points))
        with self._lock:
            self._prepared = tuple(prepared)

    def _rows(self) -> list[dict[str, Any]]:
        told, space = self._state.observations, self._settings.space
        if self._settings.is_preference:
            names = compared_columns(space)
            sides = [point_rows(points, columns) for points, columns in zip(self.comparisons, names, strict=True)]
            renamed = [
                [dict(zip(columns, point.values(), strict=True)) for point in side]
                for side, columns in zip(sides, names, strict=True)
            ]
            return [winner | loser for winner, loser in zip(*renamed, strict=True)]
        points = point_rows(space.show(told.points), space.column_names)
        names_of_outcomes = self._settings.names
        return [
            point | dict(zip(names_of_outcomes, y, strict=True))
            for point, y in zip(points, told.y.tolist(), strict=True)
        ]

    @property
    def seed(self) -> int:
        """Seed of everything random, drawn if none was given: with it a run can be repeated."""
        return self._settings.seed

    @property
    def pending(self) -> Any:
        """Points that were asked for and not told yet."""
        return self._settings.space.show(self._state.pending)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a file that `load` reads: tensors and a JSON description, no pickle; atomically."""
        with self._lock:
            save(self, path)

    @classmethod
    def load(cls: type[Loop], path: str | os.PathLike[str], *, kernel: Kernel | None = None) -> Loop:
        """Read what `save` wrote; its suggestions go on as they would have.

        Args:
            path: The file.
            kernel: The kernel that the loop was made with, where it cannot be rebuilt by name or has priors.
        """
        return load(path, kernel=kernel, kind=cls)

    @classmethod
    def from_parts(cls: type[Loop], settings: LoopSettings, state: LoopState) -> Loop:
        """A loop that goes on from a state."""
        check_state(state, settings)
        loop = cls.__new__(cls)
        loop._start(settings, state)
        return loop

    def to_parts(self) -> dict[str, Any]:
        """Settings and state, which are all there is."""
        return {"settings": self._settings, "state": self._state}

    def plot(self, axes: "Axes | None" = None) -> "Axes":
        """Draw the outcomes so far and the best of them, or the trade-offs of several objectives.

        Args:
            axes: Where to draw; a new figure by default.
        """
        if len(self._settings.objectives) == 1:
            return draw_progress(self._state, self._settings, axes)
        with self._lock:
            state = self._refitted()
        return draw_pareto(state, self._settings, axes)

    def plot_progress(self, axes: "Axes | None" = None) -> "Axes":
        """Draw outcomes and the best of them against evaluations.

        Args:
            axes: Where to draw; a new figure by default.
        """
        return draw_progress(self._state, self._settings, axes)

    def __getstate__(self) -> dict[str, Any]:
        return self.to_parts()

    def __setstate__(self, parts: dict[str, Any]) -> None:
        self._start(**parts)

    def _refitted(self) -> LoopState:
        """The state with a model of all that was told, which is kept."""
        self._state = refitted(self._state, self._settings)
        return self._state

    def _summary(self) -> str:
        return summarize(self._state, self._settings)

    def _repr_html_(self) -> str:
        return describe(type(self).__name__, self._state, self._settings)


def _names_source(X: Any) -> bool:
    """Tell whether points say where they are measured."""
    first = X if isinstance(X, Mapping) or hasattr(X, "columns") else next(iter(X), {})
    return not isinstance(first, Sequence) and SOURCE in first


def _renew_locks() -> None:
    """Give all loops locks that nobody holds; their state is replaced in one step, so it is whole."""
    for loop in _LOOPS:
        loop._lock = threading.RLock()


if hasattr(os, "register_at_fork"):  # there is no fork on Windows
    os.register_at_fork(after_in_child=_renew_locks)


def _warn_of_outside(settings: LoopSettings, points: Tensor) -> None:
    """Say that points which were told could not be suggested: by intention, or as a number is wrong."""
    is_outside = ~are_within(settings, points)
    if bool(is_outside.any()):
        row = int(is_outside.nonzero()[0])
        warnings.warn(
            f"{int(is_outside.sum())} of {len(points)} points are outside the range or miss a constraint between "
            f"parameters, the first of them row {row}: {shown_point(settings.space.show(points[row : row + 1])[0])}. "
            "They are learned, but not suggested; remove(row) forgets one whose numbers are wrong.",
            StreamGPWarning,
            stacklevel=4,
        )


def _with_bounds(rows: list[dict[str, Any]], names: Sequence[str], sides: Tensor | None) -> list[dict[str, Any]]:
    """Rows in which outcomes that are bounds are texts, such as "<0.5"."""
    if sides is None:
        return rows
    return [
        row | {name: f"{'<' if side < 0 else '>'}{row[name]}" for name, side in zip(names, values, strict=True) if side}
        for row, values in zip(rows, sides.tolist(), strict=True)
    ]


def _warn_of_unsavable(settings: LoopSettings) -> None:
    """Say before anything is learned that it could not be saved."""
    for label, outcome in zip(settings.labels, settings.outcomes, strict=True):
        reason = describe_unsavable(outcome.likelihood, "likelihood")
        if reason is not None:
            warnings.warn(f"What is learned of {label} cannot be saved: {reason}", StreamGPWarning, stacklevel=4)
