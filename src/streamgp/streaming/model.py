"""The model of a stream: a bank of experts, their weights, and the user's units."""

from dataclasses import dataclass, fields, replace
from typing import NamedTuple, final

import numpy as np
import torch
from jaxtyping import Bool, Float
from scipy.special import softmax
from torch import Tensor

from streamgp.likelihoods import AbstractLikelihood
from streamgp.linalg import cholesky
from streamgp.processes import sent_by_value
from streamgp.streaming.bank import Bank, Seen
from streamgp.streaming.hyperparameters import FittedHyperparameters
from streamgp.streaming.mixture import Mixture
from streamgp.streaming.nearness import is_behind, is_near
from streamgp.streaming.observing import observe
from streamgp.streaming.outliers import Plausibility
from streamgp.streaming.points import Usage, follow, used
from streamgp.streaming.prediction import StreamPrediction
from streamgp.streaming.reach import Reach
from streamgp.streaming.rows import Rows, likelihood_of
from streamgp.streaming.settings import Room, StreamSettings
from streamgp.streaming.units import Units

__all__ = ["Judged", "StreamModel"]

_TINY = np.finfo(np.float64).tiny


class Judged(NamedTuple):
    """What to make of rows that were predicted.

    Attributes:
        mixture: Weights and scales after them.
        log_densities: Of the rows, by each expert.
        plausible: How far they tell of the function; None for altogether.
    """

    mixture: Mixture
    log_densities: Float[np.ndarray, "e n"]
    plausible: Plausibility | None


@sent_by_value
@final
@dataclass(frozen=True, eq=False)
class StreamModel:
    """All that predictions need; a frozen value.

    Attributes:
        bank: Beliefs of the experts, in standardized units.
        usage: How much rows lean on its inducing points.
        mixture: Weights of the experts, and the scale of their errors.
        likelihood: The fitted likelihood, in the same units.
        hyperparameters: What was learned last, from which the next search starts.
        units: The units.
        reach: How far from the inputs so far predictions go.
        is_multiclass: Whether outputs are classes of which one is true.
        is_single_output: Whether there is one output, without an axis of its own.
    """

    bank: Bank
    usage: Usage
    mixture: Mixture
    likelihood: AbstractLikelihood
    hyperparameters: FittedHyperparameters
    units: Units
    reach: Reach
    is_multiclass: bool = False
    is_single_output: bool = True

    @property
    def inducing_points(self) -> Float[Tensor, "m d"]:
        """Where the beliefs are held, in the user's units."""
        return self.units.points(self.bank.inducing_points)

    def predict(
        self,
        X: Float[np.ndarray, "n d"],
        total_count: Float[np.ndarray, " n"] | None = None,
        *,
        latest: Rows | None = None,
    ) -> StreamPrediction:
        """Predict targets at inputs in the user's units.

        Args:
            X: The inputs.
            total_count: Numbers of trials, for binomial targets.
            latest: The latest rows; elsewhere experts count by what they were worth in the long run. None if
                all of `X` are near them.
        """
        bank, inputs = self.bank, self.units.inputs(self.reach.limit(X))
        if len(X) <= bank.most_seen:
            prediction = self.prediction(bank.see(inputs), total_count)
        else:
            prediction = self._prediction(*bank.moments(inputs), total_count)
        return self._nearby(prediction, X, latest)

    def _nearby(
        self, prediction: StreamPrediction, X: Float[np.ndarray, "n d"], latest: Rows | None
    ) -> StreamPrediction:
        """A prediction in which other weights count at inputs that are not where the next row is expected."""
        if latest is None:
            return prediction
        experts, mixture = self.bank.experts, self.mixture
        near = self.is_near(X, latest)
        behind = is_behind(X, latest.inputs)
        if experts.is_trusted(mixture.lasting_log_weights):
            behind &= near  # farther back, those that forget nothing are asked
        if near.all() and not behind.any():
            return prediction
        elsewhere = experts.remembering(mixture.lasting_log_weights)
        weights = np.where(near, mixture.weights[:, None, None], elsewhere[:, None, None])
        if behind.any():
            weights = np.where(behind, self._weights_in_hindsight(latest)[:, None, None], weights)
        return replace(prediction, input_weights=weights)

    def is_near(self, X: Float[np.ndarray, "n d"], latest: Rows) -> Bool[np.ndarray, " n"]:
        """Whether inputs in the user's units are where the latest rows were; kept, as more than one part asks."""
        if len(X) > 1:
            return is_near(X, latest.inputs, self.units.input_lengths.numpy())
        last, key = self.__dict__.get("_last_near"), (X.tobytes(), latest.inputs.tobytes())
        if last is None or last[0] != key:
            last = key, is_near(X, latest.inputs, self.units.input_lengths.numpy())
            self.__dict__["_last_near"] = last
        near: np.ndarray = last[1]
        return near

    def _weights_in_hindsight(self, latest: Rows) -> Float[np.ndarray, " e"]:
        """Weights by what experts say now of rows that they have learned.

        An expert that foretells the next row by a level, say, may know nothing of where the stream was before.
        """
        inputs = self.units.inputs(self.reach.limit(latest.inputs))
        seen = self.prediction(self.bank.see(inputs), latest.total_count)
        return np.asarray(softmax(self._log_densities(seen, latest).sum(-1)))

    def prediction(self, seen: Seen, total_count: Float[np.ndarray, " n"] | None) -> StreamPrediction:
        """What the experts' latent values mean for targets; kept, as rows are first predicted and then learned."""
        last = self.__dict__.get("_last")
        if last is not None and last[0] is seen and total_count is None:
            return last[1]
        prediction = self._prediction(seen.mean, seen.variance, total_count)
        if total_count is None:
            self.__dict__["_last"] = seen, prediction
        return prediction

    def _prediction(
        self,
        mean: Float[np.ndarray, "e c n"],
        variance: Float[np.ndarray, "e c n"],
        total_count: Float[np.ndarray, " n"] | None,
    ) -> StreamPrediction:
        return StreamPrediction(
            mean,
            variance,
            self.mixture,
            likelihood_of(self.likelihood, total_count),
            *self.units.of_targets,
            self.is_single_output,
        )

    def __getstate__(self) -> dict[str, object]:
        """What copies and pickles hold: not what was derived from the rest."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def _log_densities(self, prediction: StreamPrediction, rows: Rows) -> Float[np.ndarray, "e n"]:
        """Of rows, by each expert."""
        if not self.is_multiclass:
            return prediction.log_densities(rows.targets)
        probability = np.add.reduce(prediction.class_probabilities * rows.targets, -2)
        return np.log(np.maximum(probability, _TINY))

    def judge(self, prediction: StreamPrediction, rows: Rows) -> Judged:
        """What to make of rows, in the user's units, that were predicted."""
        densities = self._log_densities(prediction, rows)
        plausible, outliers = prediction.plausibility(rows.targets)
        mixture = self.mixture.judged(densities, plausible)
        if prediction.is_real:
            mixture = mixture.calibrated(prediction.squared_errors(rows.targets), plausible).expecting(outliers)
        return Judged(mixture, densities, plausible)

    def learned(
        self,
        rows: Rows,
        seen: Seen,
        settings: StreamSettings,
        *,
        mixture: Mixture,
        plausible: Plausibility | None = None,
        reach: Reach | None = None,
        room: Room | None = None,
    ) -> "StreamModel":
        """After rows in the model's units, which were seen.

        Args:
            rows: The rows.
            seen: What was seen of them.
            settings: Options.
            mixture: Weights and scales after them.
            plausible: How far their targets tell of the function; None for altogether.
            reach: How far predictions go after them; as before by default.
            room: How many inducing points there may be, which move to the rows; None if none moves.
        """
        bank, usage = self.bank, self.usage
        if room is not None:
            bank, usage, seen, _ = follow(
                bank,
                usage,
                rows.inputs,
                seen,
                room,
                believed=bank.experts.best_remembering(mixture.lasting_log_weights),
            )
        else:
            usage = used(bank, usage, seen)
        bank = observe(bank, seen, rows, self.likelihood, settings.sites, plausible)
        return StreamModel(
            bank,
            usage,
            mixture,
            self.likelihood,
            self.hyperparameters,
            self.units,
            reach or self.reach,
            self.is_multiclass,
            self.is_single_output,
        )

    def sample_latent(
        self,
        X: Float[np.ndarray, "n d"],
        num_samples: int,
        generator: torch.Generator,
        *,
        latest: Rows | None = None,
    ) -> tuple[Float[Tensor, "s c n"], Tensor, StreamPrediction]:
        """Draw an expert for each sample, and a function of its belief at inputs in the user's units.

        Args:
            X: The inputs; experts are drawn by their weights there on average.
            num_samples: Number of samples.
            generator: Source of randomness.
            latest: See `predict`.
        """
        scaled = self.units.inputs(self.reach.limit(X))
        seen = self.bank.see(scaled)
        prediction = self._nearby(self.prediction(seen, None), X, latest)
        weights = torch.from_numpy(prediction.weights).mean((1, 2))
        experts = torch.multinomial(weights, num_samples, replacement=True, generator=generator)
        used, index = torch.unique(experts, return_inverse=True)
        factor, _ = cholesky(self.bank.joint_covariance(scaled, seen)[used], name="the covariance of the samples")
        noise = torch.randn(num_samples, *seen.mean.shape[1:], generator=generator, dtype=factor.dtype)
        draws = torch.from_numpy(seen.mean)[experts] + (factor[index] @ noise.unsqueeze(-1)).squeeze(-1)
        return draws, experts, prediction
