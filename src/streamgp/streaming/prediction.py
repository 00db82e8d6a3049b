"""What a mixture of experts expects to observe."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, TypeVar, final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from streamgp.errors import ArgumentTypeError
from streamgp.likelihoods import AbstractLikelihood
from streamgp.likelihoods.inversion import invert_cumulative
from streamgp.likelihoods.parameters import to_probabilities
from streamgp.likelihoods.quantiles import SLACK, are_few, first_reaching
from streamgp.streaming.mixture import Mixture
from streamgp.streaming.outliers import Outliers, Plausibility
from streamgp.streaming.probit_rows import is_probit, log_probability, probability
from streamgp.streaming.students import StudentMixture

__all__ = ["StreamPrediction"]

Found = TypeVar("Found")

# In standard deviations above their mean, counts that are hardly exceeded.
_FAR = 3.0


@final
@dataclass(frozen=True, eq=False)
class StreamPrediction:
    """What the model expects to observe, in the user's units: a mixture over experts.

    Attributes:
        latent_mean: Mean of the latent function, in the model's units, by each expert for each output.
        latent_variance: Its variance.
        mixture: Weights of the experts, and the scale of their errors.
        likelihood: Of observations given the latent function, in the same units.
        shift: What is added to targets of those units, times `scale`, to come back to the user's.
        scale: See `shift`.
        is_single_output: Whether there is one output, without an axis of its own.
        input_weights: Weights of the experts for each input; None for those of the mixture.
    """

    latent_mean: Float[np.ndarray, "e c n"]
    latent_variance: Float[np.ndarray, "e c n"]
    mixture: Mixture
    likelihood: AbstractLikelihood
    shift: Float[np.ndarray, "c 1"]
    scale: Float[np.ndarray, "c 1"]
    is_single_output: bool = True
    input_weights: Float[np.ndarray, "e 1 n"] | None = None

    @property
    def is_real(self) -> bool:
        """Whether targets are real, with errors whose scale was learned."""
        return self.likelihood.is_gaussian

    @cached_property
    def weights(self) -> Float[np.ndarray, "e 1 #n"]:
        """Weights of the experts, for each input or for all."""
        return self.mixture.weights[:, None, None] if self.input_weights is None else self.input_weights

    @property
    def mean(self) -> Float[Tensor, "n ..."]:
        """Mean of the targets."""
        return self._output(self.means)

    @cached_property
    def means(self) -> Float[np.ndarray, "c n"]:
        """The same with a line for each output."""
        return np.asarray(self.shift + self.scale * self._average(self._means))

    @property
    def variance(self) -> Float[Tensor, "n ..."]:
        """Variance of the targets, noise included, and the outliers that were found.

        Quantiles, densities and samples count with one in 500 where none were found, too; it would be most of the
        variance.
        """
        return self._output(np.square(self.scale) * self._moments[1])

    @property
    def _moments(self) -> tuple[Float[np.ndarray, "c n"], Float[np.ndarray, "c n"]]:
        """Mean and variance of the targets, in the units of the model."""
        means = self._means
        center = self._average(means)
        if self.is_real:
            degrees = self.mixture.degrees
            spread = 1.0 if math.isinf(degrees) else degrees / (degrees - 2.0)
            within = (self._squared_scale + self.mixture.outliers.found_variance) * spread
        else:
            within = self.likelihood.predictive_variance(*self._latent_tensors).numpy()
        return center, self._average(within + np.square(means - center))

    def quantiles(self, probabilities: Sequence[float]) -> Float[Tensor, "n ... k"]:
        """Quantiles of the targets, noise included.

        Those of the mixture. For likelihoods that do not know their cumulative probabilities, the experts' latent
        values are first replaced by one Gaussian of the same mean and variance.
        """
        given: Any = probabilities
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise ArgumentTypeError(
                f"quantiles must be a list of probabilities, such as [0.05, 0.95], but is {given!r}. Pass [{given!r}] "
                "for one."
            )
        levels = _levels(tuple(probabilities))
        found = self._students.quantiles(levels.numpy()) if self.is_real else self._searched_quantiles(levels).numpy()
        found = self.shift[..., None] + self.scale[..., None] * found
        return torch.from_numpy(found[0] if self.is_single_output else found.swapaxes(0, 1))

    def log_density(self, y: Float[Tensor, "n ..."]) -> Float[Tensor, " n"]:
        """Log predictive density, or probability, of targets: jointly, where there are several outputs."""
        return torch.from_numpy(self.mixed(self.log_densities(self._lines(y))))

    def mixed(self, log_densities: Float[np.ndarray, "e n"]) -> Float[np.ndarray, " n"]:
        """Log densities of the mixture from those of its experts."""
        if self.input_weights is None:
            return np.asarray(np.logaddexp.reduce(self.mixture.log_weights[:, None] + log_densities))
        with np.errstate(divide="ignore"):  # in the long run a weight may vanish
            each = np.log(self.weights[:, 0]) + log_densities
        return np.asarray(np.logaddexp.reduce(each))

    def log_densities(self, targets: Float[np.ndarray, "c n"]) -> Float[np.ndarray, "e n"]:
        """The same by each expert."""
        if self.is_real:
            plain, wide = self._log_parts(targets)
            each = plain if wide is None else np.logaddexp(plain, wide)
            return np.asarray(np.add.reduce(each - np.log(self.scale), -2))
        if is_probit(self.likelihood):
            return np.asarray(np.add.reduce(log_probability(self.latent_mean, self.latent_variance, targets), -2))
        return self._asked("_last_densities", targets, self._other_log_densities)

    def _other_log_densities(self, targets: Float[np.ndarray, "c n"]) -> Float[np.ndarray, "e n"]:
        """Those of targets that are neither real nor of two classes by a probit."""
        scaled = torch.from_numpy((targets - self.shift) / self.scale)
        density = self.likelihood.log_predictive_density(*self._latent_tensors, scaled).numpy()
        return np.asarray(np.add.reduce(density - np.log(self.scale), -2))

    @cached_property
    def class_probabilities(self) -> np.ndarray:
        """Where outputs are classes of which one is true, their probabilities by each expert `(e, c, n)`."""
        each = np.maximum(self._means, np.finfo(np.float64).tiny)
        return np.asarray(each / each.sum(-2, keepdims=True))

    def cumulative(self, y: Float[Tensor, "n ..."]) -> Float[Tensor, "n ..."] | None:
        """Probabilities of not more than some targets; None for likelihoods that do not know them."""
        below = self.cumulatives(self._lines(y))
        return None if below is None else self._output(below)

    def cumulatives(self, targets: Float[np.ndarray, "c n"]) -> Float[np.ndarray, "c n"] | None:
        """The same for targets with a line for each output."""
        scaled = (targets - self.shift) / self.scale
        if self.is_real:
            return self._students.cumulative(scaled)
        found = self._cumulative(torch.from_numpy(scaled))
        return None if found is None else found.numpy()

    def squared_errors(self, targets: Float[np.ndarray, "c n"]) -> Float[np.ndarray, "e c n"]:
        """Squares of errors of real targets in units of their deviations, before these were scaled."""
        errors = (targets - self.shift) / self.scale - self.latent_mean
        return np.asarray(errors * errors / self._variances)

    def plausibility(self, targets: Float[np.ndarray, "c n"]) -> tuple[Plausibility | None, Outliers]:
        """How far targets tell of the function, None where no outliers are expected; and what is expected then."""
        outliers = self.mixture.outliers
        if not self.is_real or outliers.share == 0.0:
            return None, outliers
        plain, wide = self._log_parts(targets)
        assert wide is not None
        return outliers.watched(plain, wide, self.mixture.weights)

    def observe(
        self, latent: Float[Tensor, "s c n"], experts: Int[Tensor, " s"], generator: torch.Generator
    ) -> Float[Tensor, "s n ..."]:
        """Draw targets for values of the latent function by some experts."""
        if self.is_real:
            # Errors of the function and of the noise have one scale, which is not known: Student's t.
            center, factor = self._latent_tensors[0][experts], self._scales(experts, generator)
            latent = center + factor * (latent - center)
            variance = self.likelihood.gaussian_noise_variance
            assert variance is not None
            noise = torch.randn(latent.shape, generator=generator, dtype=latent.dtype)
            draws = latent + factor * variance.to(latent).sqrt() * noise
            outliers = self.mixture.outliers
            if outliers.share > 0.0:
                is_far = torch.rand(latent.shape, generator=generator, dtype=latent.dtype) < outliers.share
                far = torch.randn(latent.shape, generator=generator, dtype=latent.dtype)
                scale = torch.from_numpy(self.mixture.scale)[experts]
                wide = factor * (outliers.variance / scale).sqrt().unsqueeze(-1)
                draws = draws + wide * is_far * far
        else:
            draws = self.likelihood.sample(latent, generator=generator)
        return self.latent(draws)

    def latent(self, latent: Float[Tensor, "s c n"]) -> Float[Tensor, "s n ..."]:
        """Values of the latent function in the user's units."""
        return self._output(self.shift + self.scale * latent.numpy())

    def _scales(self, experts: Tensor, generator: torch.Generator) -> Float[Tensor, "s c 1"]:
        degrees, scale = self.mixture.degrees, torch.from_numpy(self.mixture.scale)[experts]
        if math.isinf(degrees):
            return scale.unsqueeze(-1)
        # A chi-squared variable of whole degrees is a sum of squares.
        squares = torch.randn(*scale.shape, round(degrees), generator=generator, dtype=torch.float64).square().sum(-1)
        return (scale * round(degrees) / squares).sqrt().unsqueeze(-1)

    @property
    def _latent_tensors(self) -> tuple[Float[Tensor, "e c n"], Float[Tensor, "e c n"]]:
        """Mean and variance of the latent function, as likelihoods take them."""
        return torch.from_numpy(self.latent_mean), torch.from_numpy(self.latent_variance)

    @cached_property
    def _means(self) -> np.ndarray:
        """Means of the targets by each expert, in the units of the model."""
        if self.is_real:
            return self.latent_mean
        if is_probit(self.likelihood):
            return probability(self.latent_mean, self.latent_variance)
        return self.likelihood.predictive_mean(*self._latent_tensors).numpy()

    @cached_property
    def _variances(self) -> np.ndarray:
        """Variances of real targets, before the scale of errors."""
        noise = self.likelihood.gaussian_noise_variance
        assert noise is not None
        return self.latent_variance + noise.numpy()

    @cached_property
    def _squared_scale(self) -> np.ndarray:
        """The squared scale of Student's t for real targets."""
        return self._variances * self.mixture.scale[..., None]

    @cached_property
    def _students(self) -> StudentMixture:
        """The mixture for real targets, in the model's units: experts, and experts that see an outlier."""
        weights, means, squared_scales = self.weights, self.latent_mean, self._squared_scale
        outliers = self.mixture.outliers
        if outliers.share > 0.0:
            weights = np.concatenate([(1.0 - outliers.share) * weights, outliers.share * weights])
            means = np.concatenate([means, means])
            squared_scales = np.concatenate([squared_scales, squared_scales + outliers.variance])
        return StudentMixture(weights, means, squared_scales, self.mixture.degrees)

    def _log_parts(self, targets: Float[np.ndarray, "c n"]) -> tuple[np.ndarray, np.ndarray | None]:
        """Log densities of real targets by each expert: jointly with being no outliers, and with being some."""
        return self._asked("_last_parts", targets, self._found_parts)

    def _found_parts(self, targets: Float[np.ndarray, "c n"]) -> tuple[np.ndarray, np.ndarray | None]:
        each = self._students.log_densities((targets - self.shift) / self.scale)
        e, share = len(self.latent_mean), self.mixture.outliers.share
        return (each[:e] + math.log1p(-share), each[e:] + math.log(share)) if share > 0.0 else (each, None)

    def _asked(self, name: str, targets: np.ndarray, function: Callable[[np.ndarray], Found]) -> Found:
        """What a function says of targets, kept: those compared with their prediction are likely learned next."""
        last: tuple[bytes, Found] | None = self.__dict__.get(name)
        key = targets.tobytes()
        if last is None or last[0] != key:
            last = key, function(targets)
            self.__dict__[name] = last
        return last[1]

    def _average(self, values: np.ndarray) -> np.ndarray:
        """The mixture's mean `(c, n)` of values `(e, c, n)`."""
        return np.asarray(np.add.reduce(self.weights * values))

    def _lines(self, y: Float[Tensor, "n ..."]) -> np.ndarray:
        """Targets `(c, n)` with a line for each output."""
        return y.numpy()[None] if self.is_single_output else y.numpy().T

    def _output(self, values: Float[np.ndarray, "*s c n"]) -> Tensor:
        return torch.from_numpy(values[..., 0, :] if self.is_single_output else values.swapaxes(-1, -2))

    def _searched_quantiles(self, levels: Float[Tensor, " k"]) -> Float[Tensor, "c n k"]:
        """By a search in the distribution function of the mixture, where the likelihood knows its own."""
        likelihood, is_whole = self.likelihood, self.likelihood.outcome_kind != "real"
        if not likelihood.knows_cumulative:
            mean = self._average(self.latent_mean)
            variance = self._average(self.latent_variance + np.square(self.latent_mean - mean))
            return likelihood.predictive_quantiles(torch.from_numpy(mean), torch.from_numpy(variance), levels)

        def cumulative(values: Tensor) -> Tensor:
            below = self._cumulative(values)
            assert below is not None
            return below

        center, square = self._moments
        if (few := self._few_quantiles(center, square, levels)) is not None:
            return few
        found = invert_cumulative(
            cumulative,
            levels[:, None, None] - (SLACK if is_whole else 0.0),
            center=torch.from_numpy(center),
            deviation=torch.from_numpy(square).sqrt(),
            is_whole=is_whole,
        )
        return found.movedim(0, -1)

    def _few_quantiles(
        self, center: np.ndarray, square: np.ndarray, levels: Float[Tensor, " k"]
    ) -> Float[Tensor, "c n k"] | None:
        """Those of counts that are so small that the first ones can all be looked at; None for others."""
        likely = torch.from_numpy(center + _FAR * np.sqrt(square))
        if not likely.numel() or not are_few(likely):
            return None
        each = self.likelihood.first_cumulatives(*self._latent_tensors)
        if each is None:
            return None
        found = first_reaching((torch.from_numpy(self.weights) * each).sum(-3), levels[:, None, None])
        return None if found is None else found.movedim(0, -1)

    def _cumulative(self, targets: Float[Tensor, "*k c n"]) -> Float[Tensor, "*k c n"] | None:
        """The mixture of the experts' probabilities, for targets that are not real, in the units of the model."""
        found = self.likelihood.predictive_cumulative(*self._latent_tensors, targets.unsqueeze(-3))
        return None if found is None else (torch.from_numpy(self.weights) * found).sum(-3)


@lru_cache(64)
def _levels(probabilities: tuple[float, ...]) -> Float[Tensor, " k"]:
    """Probabilities of quantiles, checked; a stream asks for the same ones again and again."""
    return to_probabilities(probabilities, torch.empty(0, dtype=torch.float64))
