"""Several classes in a stream, each against all others."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.conditioning import SparseGP
from streamgp.errors import ShapeError
from streamgp.streaming.learner import LearnInfo, StreamLearner
from streamgp.streaming.refitting import RefitReport, absorb_rows
from streamgp.streaming.rows import Rows, read_inputs
from streamgp.streaming.settings import StreamSettings
from streamgp.streaming.unordered import learn_unordered

__all__ = ["OneVsRest"]


@final
@dataclass(frozen=True, eq=False)
class OneVsRest:
    """What is known of a stream of labels: a frozen value of bounded size.

    The first learner tells whether a row is of another class than the first, each further one whether it is of its own
    class. With two classes these are one question, and there is one learner; with a single class, too.

    A class may come at any time. Its learner then starts from the rows in the buffer, none of which was of it, with
    the hyperparameters of the first learner; it learns everything anew when half a warm-up of rows has come.

    Attributes:
        settings: Options of each learner; the likelihood must be of two classes.
        classes: Labels, in the order in which they came.
        learners: One learner for each class, but a single one for two.
    """

    settings: StreamSettings
    classes: tuple[Hashable, ...] = ()
    learners: tuple[StreamLearner, ...] = ()

    @classmethod
    def from_classes(cls, settings: StreamSettings, classes: Sequence[Hashable]) -> "OneVsRest":
        """Start with classes that are known, before the first row."""
        learner = StreamLearner(settings)
        return cls(settings, tuple(classes), (learner,) * _num_learners(len(classes)))

    @classmethod
    def from_rows(cls, settings: StreamSettings, X: Tensor, y: Sequence[Hashable]) -> tuple["OneVsRest", LearnInfo]:
        """Learn from a data set whose order means nothing, as `learn_unordered` does."""
        empty = cls.from_classes(settings, tuple(dict.fromkeys(y)))
        X = read_inputs(X, num_dims=None)
        learned = [learn_unordered(settings, X, target) for target in empty._targets(y)]
        state = replace(empty, learners=tuple(learner for learner, _ in learned))
        return state, LearnInfo(state.num_outside, state.refits)

    @property
    def is_warm(self) -> bool:
        """Whether the warm-up of the first learner is over."""
        return bool(self.learners) and self.learners[0].is_warm

    @property
    def num_seen(self) -> int:
        """Number of rows so far."""
        return self.learners[0].num_seen if self.learners else 0

    @property
    def num_dims(self) -> int | None:
        """Number of input columns; None before the first row."""
        return self.learners[0].num_dims if self.learners else None

    @property
    def num_outside(self) -> int:
        """Inputs far outside the range of the warm-up so far."""
        return self.learners[0].num_outside if self.learners else 0

    @property
    def refits(self) -> tuple[RefitReport, ...]:
        """The latest reports of all learners, one after the other."""
        return tuple(report for learner in self.learners for report in learner.refits)

    def predict(self, X: Tensor) -> Float[Tensor, "n k"]:
        """Probabilities of the classes at inputs `(n, d)`; there must have been a row to learn from."""
        return self.normalized([learner.predict(X).mean for learner in self.learners])

    def sample(self, X: Tensor, num_samples: int, *, generator: torch.Generator) -> Float[Tensor, "s n k"]:
        """Draw probabilities jointly for all inputs `(n, d)`, each class independent of the others."""
        X, draws = read_inputs(X, num_dims=self.num_dims), []
        for learner in self.learners:
            prediction = learner.predict(X)
            assert learner.model is not None
            latent = learner.model.gp.sample(learner.model.scaling.inputs(X), num_samples, generator=generator)
            draws.append(prediction.likelihood.predictive_mean(latent, torch.zeros_like(latent)))
        return self.normalized(draws)

    def learn(self, X: Tensor, y: Sequence[Hashable]) -> tuple["OneVsRest", LearnInfo]:
        """Learn from rows.

        Args:
            X: Inputs `(n, d)`.
            y: Labels, one for each row.

        Returns:
            The classes and learners after these rows, and diagnostics.
        """
        X = read_inputs(X, num_dims=self.num_dims)
        if len(y) != len(X):
            raise ShapeError(f"y must have {len(X)} labels, one for each row of X, but has {len(y)}.")
        first_rows = {label: index for index, label in reversed(list(enumerate(y))) if label not in self.classes}
        starts = sorted(first_rows.values())
        known = starts[0] if starts else len(y)
        state, refits = self._learn_part(X[:known], y[:known])
        for start, stop in pairwise([*starts, len(y)]):
            state, more = state.with_classes(y[start : start + 1])._learn_part(X[start:stop], y[start:stop])
            refits += more
        return state, LearnInfo(state.num_outside - self.num_outside, refits)

    def with_classes(self, labels: Sequence[Hashable]) -> "OneVsRest":
        """Make room for classes that are to come; those that are known stay as they are."""
        state = self
        for label in labels:
            if label not in state.classes:
                classes = (*state.classes, label)
                learners = state._learners_and_one_more() if self.num_seen else ()
                state = replace(state, classes=classes, learners=learners)
        return state if self.num_seen else self.from_classes(self.settings, state.classes)

    def reset(self) -> "OneVsRest":
        """Forget what the rows said, and keep classes, units, hyperparameters and inducing points."""
        return replace(self, learners=tuple(learner.reset() for learner in self.learners))

    def rewarm(self) -> "OneVsRest":
        """Begin again with a warm-up; the classes and the count of rows stay."""
        return replace(self, learners=tuple(learner.rewarm() for learner in self.learners))

    def normalized(self, yes: Sequence[Float[Tensor, "*s n"]]) -> Float[Tensor, "*s n k"]:
        """Probabilities of the classes from those of each learner's question, for a sum of one."""
        if len(self.classes) == 1:
            return torch.ones_like(yes[0]).unsqueeze(-1)
        others = yes[1:] if len(self.classes) > 2 else yes
        each = torch.stack([1.0 - yes[0], *others], -1).clamp_min(torch.finfo(yes[0].dtype).tiny)
        return each / each.sum(-1, keepdim=True)

    def _learners_and_one_more(self) -> tuple[StreamLearner, ...]:
        """Learners when a class comes."""
        newcomer = _newcomer(self.learners[0])
        if len(self.classes) == 1:
            return (newcomer,)  # in place of one that has seen a single class only
        if len(self.classes) == 2:
            return (*self.learners, *self.learners, newcomer)  # what answered for both goes on as two
        return (*self.learners, newcomer)

    def _learn_part(
        self, X: Float[Tensor, "n d"], y: Sequence[Hashable]
    ) -> tuple["OneVsRest", tuple[RefitReport, ...]]:
        """Learn from rows of known classes."""
        learned = [learner.learn(X, target) for learner, target in zip(self.learners, self._targets(y), strict=True)]
        refits = tuple(report for _, info in learned for report in info.refits)
        return replace(self, learners=tuple(learner for learner, _ in learned)), refits

    def _targets(self, y: Sequence[Hashable]) -> list[Float[Tensor, " n"]]:
        """Answers to the questions of the learners."""
        column = {label: index for index, label in enumerate(self.classes)}
        index = torch.tensor([column[label] for label in y], dtype=torch.long)
        questions = [index != 0, *(index == one for one in range(1, len(self.classes)))]
        return [answer.double() for answer in questions[: _num_learners(len(self.classes))]]


def _num_learners(num_classes: int) -> int:
    return num_classes if num_classes > 2 else min(num_classes, 1)


def _newcomer(like: StreamLearner) -> StreamLearner:
    """A learner to which none of the rows in the buffer of another was of its class."""
    model, buffer, settings = like.model, like.buffer, like.settings
    if model is None or buffer is None:
        return like
    rows = Rows(buffer.inputs, torch.zeros_like(buffer.targets))
    prior = SparseGP.from_prior(model.gp.kernel, model.gp.inducing_points, mean=model.gp.mean)
    gp, _ = absorb_rows(prior, model.scaled(rows), model, inducing="keep")
    num_since_start, next_refit = like.num_since_start, like.next_refit
    if like.is_warm:
        num_since_start = min(rows.num_rows, settings.warmup // 2)
        next_refit = settings.warmup
    return replace(
        like,
        model=replace(model, gp=gp),
        anchor=None,
        buffer=rows,
        num_since_start=num_since_start,
        next_refit=next_refit,
        refits=(),
    )
