"""Streams of ordinary rows: dates, categories, gaps and missing values included."""

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, final

import numpy as np

from streamgp.checks import check_choice, check_count
from streamgp.errors import (
    ArgumentTypeError,
    OptionError,
    ShapeError,
    StreamGPWarning,
    UnsupportedError,
    ValueRangeError,
)
from streamgp.processes import sent_by_value
from streamgp.storage import save
from streamgp.streams.drift import DriftWatch
from streamgp.streams.explaining import Explanation
from streamgp.streams.history import HistoryPoint, RefitRecord
from streamgp.streams.locks import lock_of
from streamgp.streams.model import ClassPrediction, StreamModel, StreamTicket, ValuePrediction
from streamgp.streams.parameters import read_options
from streamgp.streams.preprocessing import to_records, warn_of_renamed
from streamgp.streams.reading import read_horizon
from streamgp.streams.report import ScoreReport, draw_history
from streamgp.streams.targets import (
    LIKELIHOODS,
    choose_likelihood,
    outside_support,
    read_label,
    read_target,
    refuse_texts,
)
from streamgp.tables.columns import Preprocessing
from streamgp.tables.values import LARGEST, is_missing, read_number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["RowTicket", "Stream"]


@final
@dataclass(frozen=True, eq=False)
class RowTicket:
    """Rows that were asked for, and whose targets are still to come.

    Attributes:
        ticket: What the model keeps of them.
        rows: The rows, while it may still change what columns are.
        version: How often that had changed.
    """

    ticket: StreamTicket
    rows: tuple[dict[str, Any], ...]
    version: int

    @property
    def prediction(self) -> ValuePrediction | ClassPrediction:
        """Prediction of these rows."""
        return self.ticket.prediction


@sent_by_value
@final
class Stream:
    """A stream of rows as they come: mappings or a table, with dates, categories, gaps and missing values.

    The first rows say what each column is: numbers, dates, or texts, which are categories; and whether the target is a
    number or a label. While they come, each row is predicted and learned as well as it can be; where a later one of
    them says otherwise, the model begins again with the first rows. A missing number is taken as the mean so far; a row
    without a target passes without being learned.

    ```python
    import streamgp as sg

    stream = sg.Stream(target="power")
    for hour in range(48):
        row = {"when": f"2024-03-{1 + hour // 24:02d} {hour % 24:02d}:00", "city": ["Oslo", "Molde"][hour % 2]}
        stream.learn({**row, "power": hour % 24 + hour % 2})
    stream.predict({"when": "2024-03-03 00:00", "city": "Oslo"}).mean
    ```

    Args:
        target: Name of the column to predict, or a list of names of columns of numbers.
        likelihood: `"gaussian"`, `"student_t"` (real numbers), `"poisson"`, `"negative_binomial"` (counts),
            `"binomial"` (successes out of `total_count`), `"classes"` (labels), or an object of `streamgp.likelihoods`;
            `"auto"` looks at the first rows.
        total_count: Name of the column of numbers of trials.
        features: Names of the columns to predict from; all others by default.
        exclude: Names of columns to leave out.
        kinds: By name, `"number"`, `"date"`, `"category"` or `"text"` (not used), where it should not be guessed;
            or one of them for all columns.
        first_rows: Number of rows that say what columns and target are.
        kernel: As for `StreamingGPRegressor`, and so are the others.
        num_inducing: See there.
        max_inducing: See there.
        warmup: See there.
        refit: See there.
        buffer_size: See there.
        half_life: See there.
        drift_detector: See there.
        on_drift: See there.
        link: Link of labels, `"probit"` or `"logit"`.
    """

    def __init__(
        self,
        target: Any,
        *,
        likelihood: Any = "auto",
        total_count: Any = None,
        features: Sequence[Any] | None = None,
        exclude: Sequence[Any] = (),
        kinds: Mapping[Any, str] | str | None = None,
        first_rows: int = 100,
        kernel: Any = None,
        num_inducing: Any = "auto",
        max_inducing: int = 256,
        warmup: int = 200,
        refit: Any = "auto",
        buffer_size: int = 4000,
        half_life: Any = "auto",
        drift_detector: Any = None,
        on_drift: str = "rewarm",
        link: str = "probit",
    ) -> None:
        self.target, self.total_count = target, total_count
        self.features = None if features is None else tuple(features)
        self.exclude = tuple(exclude)
        self.kinds: Any = kinds if isinstance(kinds, str) else dict(kinds or {})
        self.first_rows = check_count(first_rows, "first_rows")
        self.likelihood, self.link = likelihood, link
        self.kernel, self.num_inducing, self.max_inducing = kernel, num_inducing, max_inducing
        self.warmup, self.refit, self.buffer_size, self.half_life = warmup, refit, buffer_size, half_life
        self.drift_detector, self.on_drift = drift_detector, on_drift
        if isinstance(likelihood, str):
            check_choice(likelihood, ("auto", *LIKELIHOODS), "likelihood")
        if likelihood == "binomial" and total_count is None:
            raise OptionError("Binomial targets need their numbers of trials. Name their column as total_count.")
        if total_count is not None and likelihood not in ("auto", "binomial") and isinstance(likelihood, str):
            raise OptionError(
                f"total_count names numbers of trials, but the likelihood is {likelihood!r}. Leave it out, or pass "
                "likelihood='binomial'."
            )
        if not self._is_single and likelihood in ("classes", "binomial"):
            raise OptionError("Several targets are numbers. Make one stream for each target that is not.")
        self._options("gaussian" if likelihood == "auto" else likelihood)
        if drift_detector is not None and not isinstance(drift_detector, str):
            DriftWatch(drift_detector, on_drift, is_label=True)
        check_choice(on_drift, ("rewarm", "reset"), "on_drift")
        self._preprocessing: Preprocessing | None = None
        self._kind: Any = None
        self._model: StreamModel | None = None
        self._first: list[dict[Any, Any]] = []
        self._first_weights: list[float] = []
        self._is_settled = False
        self._version = 0
        self._sums, self._counts = np.zeros(0), np.zeros(0)
        self.num_rows_, self.num_unlabeled_, self.num_unread_, self.num_ignored_ = 0, 0, 0, 0

    # What is known.

    @property
    def columns_(self) -> Preprocessing:
        """Kinds of the columns, with their means so far."""
        if self._preprocessing is None:
            raise UnsupportedError("Nothing is known of the columns before the first row. Call learn or look_at first.")
        means = iter(zip(self._sums.tolist(), self._counts.tolist(), strict=True))
        columns = []
        for column in self._preprocessing.columns:
            if column.kind in ("number", "date"):
                total, count = next(means)
                column = replace(column, mean=total / count if count else column.mean, num_values=int(count))
            columns.append(column)
        return Preprocessing(tuple(columns))

    @property
    def likelihood_(self) -> Any:
        """Likelihood that was found for the target or given, or `"classes"`; None before the first row."""
        return self._kind

    @property
    def classes_(self) -> tuple[Any, ...]:
        """Labels so far, in the order in which they came."""
        return () if self._model is None else self._model.classes

    @property
    def num_seen_(self) -> int:
        """Number of rows learned."""
        return 0 if self._model is None else self._model.num_seen

    @property
    def num_drifts_(self) -> int:
        """Number of changes that a detector found and that were acted upon."""
        return 0 if self._model is None else self._model.num_drifts

    @property
    def num_outside_(self) -> int:
        """Number of rows that lay far outside the range of all rows before them."""
        return self._model.first.num_outside if self._model is not None and self._model.num_seen else 0

    @property
    def num_inducing_(self) -> int:
        """Number of inducing points."""
        belief = self._model.first.belief if self._model is not None and self._model.num_seen else None
        return 0 if belief is None else int(belief.num_points[0])

    @property
    def is_refitting_(self) -> bool:
        """True while a refit runs in the background."""
        return self._model is not None and self._model.is_refitting

    @property
    def history_(self) -> tuple[HistoryPoint, ...]:
        """Course of the stream: weights of experts, scale of the noise, points; in bounded memory."""
        return self._model.first.history.points if self._model is not None and self._model.num_seen else ()

    @property
    def refits_(self) -> tuple[RefitRecord, ...]:
        """The latest refits."""
        return self._model.first.history.refits if self._model is not None and self._model.num_seen else ()

    def __repr__(self) -> str:
        kind = "" if self._kind is None else f", {self._kind}"
        return f"Stream(target={self.target!r}{kind}, {self.num_rows_} rows)"

    # What is done.

    def look_at(self, rows: Any) -> "Stream":
        """Find out from first rows what columns and target are, for good; nothing is learned of them.

        Args:
            rows: A mapping, a list of mappings, or a DataFrame.
        """
        if self._preprocessing is not None:
            raise UnsupportedError("It is known what the columns are. Call look_at before the first row.")
        records = to_records(rows)
        if not records:
            raise ShapeError("The first rows say what the columns are, but there are none. Pass at least one.")
        self._begin(*self._plan(records, is_enough=True))
        self._is_settled = True
        return self

    def issues(self, rows: Any) -> list[str]:
        """Return for each row why it cannot be used; empty texts for good rows.

        Args:
            rows: A mapping, a list of mappings, or a DataFrame.
        """
        records = to_records(rows)
        if self._preprocessing is None:
            return [""] * len(records)
        return [self._issue(record) for record in records]

    def predict(self, rows: Any, *, horizon: Any = 1) -> ValuePrediction | ClassPrediction:
        """Predict rows.

        Args:
            rows: A mapping, a list of mappings, or a DataFrame; what is absent is missing.
            horizon: How many rows ahead they are, 1 for the next one: a whole number, or one for each row.

        Returns:
            For numbers `mean`, `deviation` and `quantiles(...)`; for labels `labels`, `classes` and `probabilities`. Of
            both `frame()`, with the index of a DataFrame, and `records()`, for JSON.

        Raises:
            ValueRangeError: If a value cannot be used.
            OptionError: If the rows have none of the columns.
        """
        records = to_records(rows)
        with lock_of(self):
            model = self._started("predict")
            X, counts = self._inputs(records)
            said = model.predict(X, counts, horizon=read_horizon(horizon, len(records)))
        index = rows.index if hasattr(rows, "iloc") and rows.ndim == 2 else None
        return replace(self._named(said), index=index)

    def expect(self, rows: Any) -> RowTicket:
        """Predict the next rows of the stream, whose targets come later, in any order: give them to `learn`.

        Args:
            rows: A mapping, a list of mappings, or a DataFrame.
        """
        records = to_records(rows)
        with lock_of(self):
            model = self._started("expect")
            ticket = model.expect(*self._inputs(records))
            ticket = replace(ticket, prediction=self._named(ticket.prediction))
            self._count_means(records)
        kept = () if self._is_settled else tuple(_plain(record) for record in records)
        return RowTicket(ticket, kept, self._version)

    def learn(self, rows: Any, targets: Any = None, *, weights: Any = None) -> "Stream":
        """Learn the next rows, in their order, or the targets of rows that were asked for.

        A row that cannot be used changes nothing; one without a target passes without being learned.

        Args:
            rows: A mapping, a list of mappings or a DataFrame, with the target among its fields; or what `expect`
                returned.
            targets: Targets of the rows of a ticket, one for each; a row of values for several targets. None or NaN for
                one that will never come.
            weights: Weights of the rows, for numbers: the noise has the variance that is usual, over the weight.

        Raises:
            ValueRangeError: If a value cannot be used.
        """
        with lock_of(self):
            if isinstance(rows, RowTicket):
                self._learn_ticket(rows, targets, weights)
                return self
            if targets is not None:
                raise ArgumentTypeError("targets are those of a ticket. Pass rows with their targets among the fields.")
            records = to_records(rows)
            if not records:
                return self
            weights = _weights(weights, len(records))
            self._look(records)
            X, counts = self._inputs(records, is_learned=True)
            y = self._targets(records)
            model = self._model
            assert model is not None
            model.learn(X, y, counts, weights=None if self._is_unweighted(weights) else weights)
            self._note(records, y, weights)
        return self

    def explain(self, rows: Any) -> tuple[Explanation, ...]:
        """Say why rows are predicted as they are: the experts in words with their weights, and the nearest rows.

        Args:
            rows: A mapping, a list of mappings, or a DataFrame.
        """
        with lock_of(self):
            return self._started("explain").explain(self._inputs(to_records(rows))[0])

    def score_report(self) -> ScoreReport:
        """Return how well the rows were predicted, each before it was learned, beside baselines."""
        return ScoreReport(self._started("score_report").score.copied())

    def plot_history(self) -> "Figure":
        """Draw the latest predictions with intervals and what came, the running error, weights, points and refits."""
        model = self._started("plot_history")
        history = model.first.history
        return draw_history(model.score, history.points, history.refits, model.first.expert_names)

    def set_refit(self, refit: Any) -> "Stream":
        """Change when hyperparameters are learned again, from now on: `"background"` for a stream in service."""
        before, self.refit = self.refit, refit
        try:
            options = self._options(self._kind or "gaussian")
        except BaseException:
            self.refit = before
            raise
        if self._model is not None:
            with lock_of(self):
                self._model.set_refit(options.refit)
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a file that `streamgp.load` reads; what is read goes on as if it had never been saved."""
        import_module("streamgp.streams.saving")
        with lock_of(self):
            save(self, path)

    # What columns are.

    @property
    def _is_single(self) -> bool:
        return not isinstance(self.target, list | tuple)

    @property
    def _target_names(self) -> tuple[Any, ...]:
        return (self.target,) if self._is_single else tuple(self.target)

    @property
    def _is_label(self) -> bool:
        return isinstance(self._kind, str) and self._kind == "classes"

    def _options(self, kind: Any) -> Any:
        if isinstance(kind, str) and kind == "classes":
            return read_options(self, "bernoulli", link=self.link)
        return read_options(self, kind)

    def _started(self, what: str) -> StreamModel:
        if self._model is None or not self._model.num_seen:
            raise UnsupportedError(f"There is nothing to {what.split('_')[0]} before the first row. Learn one first.")
        return self._model

    def _check_first(self, records: Sequence[Mapping[Any, Any]], *, is_enough: bool) -> list[Any]:
        """Return names of the features among first rows, and refuse those that are not there."""
        names = list(dict.fromkeys(name for record in records for name in record))
        said = [
            *((each, "target") for each in self._target_names),
            *((each, "feature") for each in self.features or ()),
        ]
        said += [] if self.total_count is None else [(self.total_count, "total count")]
        said += [] if isinstance(self.kinds, str) else list(self.kinds.items())
        absent = [(name, role) for name, role in said if name not in names]
        if absent and (is_enough or not set(names).intersection(self._target_names)):
            name, role = absent[0]
            raise OptionError(
                f"There is no column {name!r} for the {role}. The columns are {', '.join(map(repr, names))}."
            )
        others = {*self._target_names, self.total_count, *self.exclude}
        return [name for name in (names if self.features is None else self.features) if name not in others]

    def _plan(self, records: Sequence[Mapping[Any, Any]], *, is_enough: bool) -> tuple[Preprocessing, Any]:
        """Return what the columns and the target are, from first rows."""
        features = self._check_first(records, is_enough=is_enough)
        if not features:
            raise OptionError(
                f"There are no features: the columns are {list(records[0])}, and the target is {self.target!r}. Pass "
                "rows with something to predict from, such as a date."
            )
        given = [{name: record.get(name) for name in features} for record in records]
        said = dict.fromkeys(features, self.kinds) if isinstance(self.kinds, str) else self.kinds
        kinds = {name: kind for name, kind in said.items() if name in features}
        preprocessing = Preprocessing.from_records(given, kinds=kinds)
        if not preprocessing.outputs:
            raise OptionError(
                f"There are no features: the columns {features} hold texts of which most are different. Name those "
                "that are categories: kinds={'name': 'category'}, on the command line --categories name."
            )
        kind = self.likelihood
        values = [record.get(name) for record in records for name in self._target_names]
        if isinstance(kind, str) and kind == "auto":
            kind = "binomial" if self.total_count is not None else "gaussian"
            if self._is_single and self.total_count is None:
                kind = choose_likelihood(values, self.target)
        if not (isinstance(kind, str) and kind == "classes"):
            refuse_texts(values, str(self.target))
        return preprocessing, kind

    def _look(self, records: Sequence[Mapping[Any, Any]]) -> None:
        """Look at first rows for what columns are, and begin again if they say otherwise than those before."""
        if self._is_settled:
            return
        before, after = len(self._first), len(self._first) + len(records)
        is_due = self._preprocessing is None or before.bit_length() != after.bit_length() or after >= self.first_rows
        if not is_due:
            known = {column.name for column in self._preprocessing.columns}  # type: ignore[union-attr]
            ours = {*self._target_names, self.total_count, *self.exclude, *known}
            is_due = self.features is None and any(name not in ours for record in records for name in record)
            is_due = is_due or any(self._issue(record) for record in records)
            is_due = is_due or any(
                read_target(record, name, is_label=self._is_label)[1]
                for record in records
                for name in self._target_names
            )
        if not is_due:
            return
        candidates = [*self._first, *records]
        preprocessing, kind = self._plan(candidates[: self.first_rows], is_enough=len(candidates) >= self.first_rows)
        if self._preprocessing is None:
            self._begin(preprocessing, kind)
        elif _shape(preprocessing) != _shape(self._preprocessing) or kind != self._kind:
            for record in records:  # before anything changes
                issue = self._issue(record, preprocessing)
                if issue:
                    raise ValueRangeError(f"A row cannot be used: {issue}. Mend it, or pass None for what is missing.")
            old, first, weights = self._model, self._first, np.array(self._first_weights)
            self._begin(preprocessing, kind)
            assert self._model is not None
            if first:
                X, counts = self._inputs(first, is_learned=True)
                model = self._model
                model.learn(X, self._targets(first), counts, weights=None if self._is_unweighted(weights) else weights)
                self._count_means(first)
                if old is not None and type(old.score) is type(model.score):
                    model.score = old.score
            self._version += 1

    def _begin(self, preprocessing: Preprocessing, kind: Any) -> None:
        is_label = isinstance(kind, str) and kind == "classes"
        watch = None
        if self.drift_detector is not None:
            watch = DriftWatch(self.drift_detector, self.on_drift, is_label=is_label)
        self._model = StreamModel.begin(self._options(kind), is_label=is_label, watch=watch)
        self._preprocessing, self._kind = preprocessing, kind
        num_means = sum(column.kind in ("number", "date") for column in preprocessing.columns)
        self._sums, self._counts = np.zeros(num_means), np.zeros(num_means)

    # Rows as numbers.

    def _issue(self, record: Mapping[Any, Any], preprocessing: Preprocessing | None = None) -> str:
        """Say why a row cannot be used; nothing if it can."""
        preprocessing = preprocessing or self._preprocessing
        assert preprocessing is not None
        for column in preprocessing.columns:
            issue = column.issue(record)
            if issue:
                return issue
        count: Any = None
        if self.total_count is not None:
            count = read_number(record, self.total_count, "total count")
            if isinstance(count, str):
                return count
        for name in self._target_names:
            value, _, issue = read_target(record, name, is_label=self._is_label)
            issue = issue or outside_support(value, name, self._kind, count, str(self.total_count))
            if issue:
                return issue
        return ""

    def _inputs(
        self, records: Sequence[Mapping[Any, Any]], *, is_learned: bool = False
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Return inputs of rows as numbers, and numbers of trials if there are any."""
        assert self._preprocessing is not None
        X = self._plain_inputs(records)
        if X is None:
            self._check_names(records)
            for row, record in enumerate(records):
                issue = self._issue(record) if is_learned else self._feature_issue(record)
                if issue:
                    raise ValueRangeError(
                        f"Row {row}, counted from 0, cannot be used: {issue}. Mend it, or pass None where nothing is "
                        "known."
                    )
            X = self.columns_.transform(records)
        if self.total_count is None or not any(self.total_count in record for record in records):
            return X, None
        trials = [read_number(record, self.total_count, "total count") for record in records]
        for row, count in enumerate(trials):
            if isinstance(count, str):
                raise ValueRangeError(f"Row {row}, counted from 0, cannot be used: {count}.")
        return X, np.array(trials, dtype=np.float64)

    def _plain_inputs(self, records: Sequence[Mapping[Any, Any]]) -> np.ndarray | None:
        """Return inputs of rows that have a number for each column; None for others."""
        assert self._preprocessing is not None
        columns = self._preprocessing.columns
        if self.total_count is not None or any(each.kind != "number" or each.has_indicator for each in columns):
            return None
        rows = []
        for record in records:
            row = [record.get(column.name) for column in columns]
            if not all(isinstance(value, float | int) for value in row):
                return None
            rows.append(row)
        X = np.array(rows, dtype=np.float64).reshape(len(rows), len(columns))
        known = {column.name for column in columns} | set(self._target_names) | set(self.exclude)
        if not (np.abs(X) <= LARGEST).all() or any(not known.issuperset(record) for record in records):
            return None
        return X

    def _feature_issue(self, record: Mapping[Any, Any]) -> str:
        assert self._preprocessing is not None
        return next((issue for column in self._preprocessing.columns if (issue := column.issue(record))), "")

    def _check_names(self, records: Sequence[Mapping[Any, Any]]) -> None:
        """Refuse rows of another table, and warn where columns may have been renamed."""
        assert self._preprocessing is not None
        names = {name for record in records for name in record}
        features = [column.name for column in self._preprocessing.columns if column.kind != "text"]
        absent = [name for name in features if name not in names]
        if names and len(absent) == len(features):
            raise OptionError(
                f"The rows have none of the columns {features} that the stream is predicted from, but "
                f"{sorted(map(str, names))}. Pass mappings with those names, or a DataFrame."
            )
        known = {column.name for column in self._preprocessing.columns}
        known |= {*self._target_names, self.total_count, *self.exclude}
        others = sorted(map(str, names - known))
        warn_of_renamed(absent, others, stacklevel=5)

    def _targets(self, records: Sequence[Mapping[Any, Any]]) -> Any:
        """Return targets of good rows, None or NaN where they are missing; warns of those that cannot be read."""
        found = []
        for record in records:
            values = []
            for name in self._target_names:
                value, unread, issue = read_target(record, name, is_label=self._is_label)
                issue = issue or outside_support(value, name, self._kind, _count(record, self.total_count), "total")
                if issue:
                    raise ValueRangeError(f"A row cannot be used: {issue}. Mend it, or leave it out.")
                if unread:
                    self.num_unread_ += 1
                    warnings.warn(f"A row is predicted and not learned: {unread}.", StreamGPWarning, stacklevel=4)
                values.append(value)
            found.append(values)
        if self._is_label:
            return [values[0] for values in found]
        y = np.array([[np.nan if value is None else value for value in values] for values in found], dtype=np.float64)
        return y[:, 0] if self._is_single else y

    def _note(self, records: Sequence[Mapping[Any, Any]], y: Any, weights: np.ndarray) -> None:
        """Count rows that were learned, and keep the first ones."""
        self._count_means(records)
        self.num_rows_ += len(records)
        missing = [label is None for label in y] if self._is_label else ~np.isfinite(np.asarray(y)).reshape(len(y), -1)
        self.num_unlabeled_ += int(np.sum(missing if self._is_label else np.all(missing, axis=1)))
        if self._is_settled:
            return
        self._first += [_plain(record, self._target_names) for record in records]
        self._first_weights += weights.tolist()
        if len(self._first) >= self.first_rows:
            self._first, self._first_weights, self._is_settled = [], [], True

    def _count_means(self, records: Sequence[Mapping[Any, Any]]) -> None:
        """Count values in the means, which stand for missing ones."""
        assert self._preprocessing is not None
        columns = [each for each in self._preprocessing.columns if each.kind in ("number", "date")]
        known = {column.name for column in self._preprocessing.columns}
        known |= {*self._target_names, self.total_count, *self.exclude}
        for record in records:
            for index, column in enumerate(columns):
                value = record.get(column.name)
                number = value if type(value) is float and value == value else column.read(value)
                if number is not None:
                    self._sums[index] += number
                    self._counts[index] += 1.0
            if self._is_settled and len(record) > len(columns):
                self.num_ignored_ += sum(name not in known for name in record)

    def _named(self, said: ValuePrediction | ClassPrediction) -> Any:
        if isinstance(said, ClassPrediction):
            return said
        return replace(said, names=tuple(map(str, self._target_names)))

    def _learn_ticket(self, ticket: RowTicket, targets: Any, weights: Any) -> None:
        model, n = self._started("learn"), len(ticket.ticket.inputs)
        if targets is None:
            raise ArgumentTypeError("Pass the targets of the ticket: learn(ticket, targets).")
        weights = _weights(weights, n)
        values = _listed(targets, n, self._target_names)
        rows = [dict(zip(self._target_names, each, strict=True)) for each in values]
        y = self._targets(rows) if self.total_count is None else self._counted_targets(rows)
        given = None if self._is_unweighted(weights) else weights
        if ticket.version == self._version:
            model.learn_ticket(ticket.ticket, y, given)
            self.num_rows_ += n
            self.num_unlabeled_ += sum(all(is_missing(each) for each in row) for row in values)
        else:  # the model has begun again meanwhile
            X, counts = self._inputs(ticket.rows)
            model.learn(X, y, counts, weights=given)
            self._note([{**record, **row} for record, row in zip(ticket.rows, rows, strict=True)], y, weights)

    def _counted_targets(self, rows: Sequence[Mapping[Any, Any]]) -> Any:
        return np.array([np.nan if is_missing(row[self.target]) else float(row[self.target]) for row in rows])

    def _is_unweighted(self, weights: np.ndarray) -> bool:
        return bool((weights == 1.0).all())


def _shape(preprocessing: Preprocessing) -> tuple[Any, ...]:
    """Return what columns are, without their means."""
    return tuple(replace(column, mean=0.0, num_values=0) for column in preprocessing.columns)


def _plain(record: Mapping[Any, Any], targets: Sequence[Any] = ()) -> dict[Any, Any]:
    """Return a row whose cells files can hold."""
    return {name: read_label(value) if name in targets else _plain_cell(value) for name, value in record.items()}


def _plain_cell(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.astype("datetime64[us]").item() if isinstance(value, np.datetime64) else value.item()
    if is_missing(value):
        return None
    return value if isinstance(value, str | bool | int | float) else str(value)


def _count(record: Mapping[Any, Any], name: Any) -> Any:
    return None if name is None or is_missing(record.get(name)) else float(record[name])


def _weights(weights: Any, num_rows: int) -> np.ndarray:
    values = np.ones(num_rows) if weights is None else np.atleast_1d(np.asarray(weights, dtype=np.float64))
    if values.shape != (num_rows,) or not ((values > 0.0) & np.isfinite(values)).all():
        raise ValueRangeError(f"weights must be {num_rows} positive numbers, one for each row, but are {weights!r}.")
    return values


def _listed(targets: Any, num_rows: int, names: Sequence[Any]) -> list[list[Any]]:
    """Return targets of rows as lists, with a value for each name."""
    if hasattr(targets, "iloc"):
        targets = targets[list(names)].to_numpy().tolist() if targets.ndim == 2 else targets.tolist()
    if isinstance(targets, np.ndarray):
        targets = targets.tolist()
    if isinstance(targets, Mapping) or not isinstance(targets, Sequence) or isinstance(targets, str):
        targets = [targets]
    if (
        len(names) > 1
        and len(targets) == len(names)
        and num_rows == 1
        and not isinstance(targets[0], Sequence | Mapping)
    ):
        targets = [targets]
    rows = []
    for each in targets:
        if isinstance(each, Mapping):
            each = [each.get(name) for name in names]
        rows.append(list(each) if isinstance(each, list | tuple) else [each])
    if len(rows) != num_rows or any(len(row) != len(names) for row in rows):
        raise ShapeError(f"There must be a target {list(names)} for each of the {num_rows} rows of the ticket.")
    return rows
