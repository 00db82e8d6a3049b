"""What a mixture of experts expects to observe."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from streamgp.likelihoods import AbstractLikelihood
from streamgp.likelihoods.parameters import to_probabilities
from streamgp.streaming.mixture import Mixture
from streamgp.streaming.outliers import Outliers, Plausibility
from streamgp.streaming.probit_rows import is_probit, log_probability, probability
from streamgp.streaming.students import StudentMixture, student_log_density

__all__ = ["StreamPrediction"]

_NUM_BISECTIONS = 50
# A count whose cumulative probability reaches a level but for this has reached it.
_ROUNDING = 3e-8


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
        is_flat: Whether there is one output, without an axis of its own.
        input_weights: Weights of the experts for each input; None for those of the mixture.
    """

    latent_mean: Float[Tensor, "e c n"]
    latent_variance: Float[Tensor, "e c n"]
    mixture: Mixture
    likelihood: AbstractLikelihood
    shift: Float[Tensor, "c 1"]
    scale: Float[Tensor, "c 1"]
    is_flat: bool = True
    input_weights: Float[np.ndarray, "e 1 n"] | None = None

    @property
    def is_real(self) -> bool:
        """Whether targets are real, with errors whose scale was learned."""
        return self.likelihood.is_gaussian

    @cached_property
    def weights(self) -> Float[np.ndarray, "e 1 #n"]:
        """Weights of the experts, for each input or for all."""
        return self.mixture.weights.numpy()[:, None, None] if self.input_weights is None else self.input_weights

    @cached_property
    def mean(self) -> Float[Tensor, "n ..."]:
        """Mean of the targets."""
        center = self._average(self._means)
        return self._output(torch.from_numpy(self.shift.numpy() + self.scale.numpy() * center))

    @property
    def variance(self) -> Float[Tensor, "n ..."]:
        """Variance of the targets, noise included, and the outliers that were found.

        Quantiles, densities and samples count with one in 500 where none were found, too; it would be most of the
        variance.
        """
        means = self._means
        center = self._average(means)
        if self.is_real:
            degrees = self.mixture.degrees
            spread = 1.0 if math.isinf(degrees) else degrees / (degrees - 2.0)
            within = (self._squared_scale + self.mixture.outliers.found_variance) * spread
        else:
            within = self.likelihood.predictive_variance(self.latent_mean, self.latent_variance).numpy()
        variance = self._average(within + np.square(means - center))
        return self._output(torch.from_numpy(np.square(self.scale.numpy()) * variance))

    def quantiles(self, probabilities: Sequence[float]) -> Float[Tensor, "n ... k"]:
        """Quantiles of the targets, noise included.

        Those of the mixture. For likelihoods that do not know their cumulative probabilities, the experts' latent
        values are first replaced by one Gaussian of the same mean and variance.
        """
        levels = _levels(tuple(probabilities))
        if self.is_real:
            found = torch.from_numpy(self._students.quantiles(levels.numpy()))
        else:
            found = self._searched_quantiles(levels)
        found = self.shift.unsqueeze(-1) + self.scale.unsqueeze(-1) * found
        return found.squeeze(0) if self.is_flat else found.movedim(0, 1)

    def log_density(self, y: Float[Tensor, "n ..."]) -> Float[Tensor, " n"]:
        """Log predictive density, or probability, of targets: jointly, where there are several outputs."""
        return self.mixed(self.log_densities(y.unsqueeze(0) if self.is_flat else y.mT))

    def mixed(self, log_densities: Float[Tensor, "e n"]) -> Float[Tensor, " n"]:
        """Log densities of the mixture from those of its experts."""
        with np.errstate(divide="ignore"):  # in the long run a weight may vanish
            each = np.log(self.weights[:, 0]) + log_densities.numpy()
        return torch.from_numpy(np.logaddexp.reduce(each, 0))

    def log_densities(self, targets: Float[Tensor, "c n"]) -> Float[Tensor, "e n"]:
        """The same by each expert."""
        if self.is_real:
            plain, wide = self._log_parts(targets)
            each = plain if wide is None else np.logaddexp(plain, wide)
            return torch.from_numpy((each - np.log(self.scale.numpy())).sum(-2))
        if is_probit(self.likelihood):
            each = log_probability(self.latent_mean.numpy(), self.latent_variance.numpy(), targets.numpy())
            return torch.from_numpy(each.sum(-2))
        density = self.likelihood.log_predictive_density(
            self.latent_mean, self.latent_variance, (targets - self.shift) / self.scale
        )
        return (density - self.scale.log()).sum(-2)

    @cached_property
    def class_probabilities(self) -> np.ndarray:
        """Where outputs are classes of which one is true, their probabilities by each expert `(e, c, n)`."""
        each = np.maximum(self._means, np.finfo(np.float64).tiny)
        return np.asarray(each / each.sum(-2, keepdims=True))

    def cumulative(self, y: Float[Tensor, "n ..."]) -> Float[Tensor, "n ..."] | None:
        """Probabilities of not more than some targets; None for likelihoods that do not know them."""
        below = self.cumulatives(y.unsqueeze(0) if self.is_flat else y.mT)
        return None if below is None else self._output(below)

    def cumulatives(self, targets: Float[Tensor, "c n"]) -> Float[Tensor, "c n"] | None:
        """The same for targets with a line for each output."""
        if not self.is_real:
            return self._cumulative((targets - self.shift) / self.scale)
        return torch.from_numpy(self._students.cumulative((targets.numpy() - self.shift.numpy()) / self.scale.numpy()))

    def squared_errors(self, targets: Float[Tensor, "c n"]) -> Float[Tensor, "e c n"]:
        """Squares of errors in units of their deviations, before these were scaled."""
        return torch.from_numpy(np.square(self._errors(targets)) / self._variances)

    def plausibility(self, targets: Float[Tensor, "c n"]) -> tuple[Plausibility | None, Outliers]:
        """How far targets tell of the function, None where no outliers are expected; and what is expected then."""
        outliers = self.mixture.outliers
        plain, wide = self._log_parts(targets) if self.is_real else (None, None)
        if plain is None or wide is None:
            return None, outliers
        return outliers.watched(plain, wide, self.mixture.weights.numpy())

    def observe(
        self, latent: Float[Tensor, "s c n"], experts: Int[Tensor, " s"], generator: torch.Generator
    ) -> Float[Tensor, "s n ..."]:
        """Draw targets for values of the latent function by some experts."""
        if self.is_real:
            # Errors of the function and of the noise have one scale, which is not known: Student's t.
            center, factor = self.latent_mean[experts], self._scales(experts, generator)
            latent = center + factor * (latent - center)
            variance = self.likelihood.gaussian_noise_variance
            assert variance is not None
            noise = torch.randn(latent.shape, generator=generator, dtype=latent.dtype)
            draws = latent + factor * variance.to(latent).sqrt() * noise
            outliers = self.mixture.outliers
            if outliers.share > 0.0:
                is_far = torch.rand(latent.shape, generator=generator, dtype=latent.dtype) < outliers.share
                far = torch.randn(latent.shape, generator=generator, dtype=latent.dtype)
                wide = factor * (outliers.variance / self.mixture.scale[experts]).sqrt().unsqueeze(-1)
                draws = draws + wide * is_far * far
        else:
            draws = self.likelihood.sample(latent, generator=generator)
        return self._output(self.shift + self.scale * draws)

    def latent(self, latent: Float[Tensor, "s c n"]) -> Float[Tensor, "s n ..."]:
        """Values of the latent function in the user's units."""
        return self._output(self.shift + self.scale * latent)

    def _scales(self, experts: Tensor, generator: torch.Generator) -> Float[Tensor, "s c 1"]:
        degrees = self.mixture.degrees
        if math.isinf(degrees):
            return self.mixture.scale[experts].unsqueeze(-1)
        shape = (len(experts), self.mixture.scale.shape[-1])
        # A chi-squared variable of whole degrees is a sum of squares.
        squares = torch.randn(*shape, round(degrees), generator=generator, dtype=torch.float64).square().sum(-1)
        return (self.mixture.scale[experts] * round(degrees) / squares).sqrt().unsqueeze(-1)

    # For single rows, NumPy takes a third of the time of torch.

    @cached_property
    def _means(self) -> np.ndarray:
        """Means of the targets by each expert, in the units of the model."""
        if self.is_real:
            return self.latent_mean.numpy()
        if is_probit(self.likelihood):
            return probability(self.latent_mean.numpy(), self.latent_variance.numpy())
        return self.likelihood.predictive_mean(self.latent_mean, self.latent_variance).numpy()

    def _errors(self, targets: Float[Tensor, "c n"]) -> np.ndarray:
        """Errors of real targets in the model's units, by each expert; those asked for last are kept."""
        last = self.__dict__.get("_last")
        if last is not None and last[0] is targets:
            return last[1]
        scaled = (targets.numpy() - self.shift.numpy()) / self.scale.numpy()
        errors = scaled - self.latent_mean.numpy()
        self.__dict__["_last"] = targets, errors
        return errors

    @cached_property
    def _variances(self) -> np.ndarray:
        """Variances of real targets, before the scale of errors."""
        noise = self.likelihood.gaussian_noise_variance
        assert noise is not None
        return self.latent_variance.numpy() + noise.numpy()

    @cached_property
    def _squared_scale(self) -> np.ndarray:
        """The squared scale of Student's t for real targets."""
        return self._variances * self.mixture.scale.numpy()[..., None]

    @cached_property
    def _students(self) -> StudentMixture:
        """The mixture for real targets, in the model's units: experts, and experts that see an outlier."""
        weights, means, squared_scales = self.weights, self.latent_mean.numpy(), self._squared_scale
        outliers = self.mixture.outliers
        if outliers.share > 0.0:
            weights = np.concatenate([(1.0 - outliers.share) * weights, outliers.share * weights])
            means = np.concatenate([means, means])
            squared_scales = np.concatenate([squared_scales, squared_scales + outliers.variance])
        return StudentMixture(weights, means, squared_scales, self.mixture.degrees)

    def _log_parts(self, targets: Float[Tensor, "c n"]) -> tuple[np.ndarray, np.ndarray | None]:
        """Log densities of real targets by each expert: jointly with being no outliers, and with being some.

        Those asked for last are kept.
        """
        last = self.__dict__.get("_last_parts")
        if last is not None and last[0] is targets:
            return last[1]
        outliers, degrees, errors = self.mixture.outliers, self.mixture.degrees, self._errors(targets)
        plain, wide = student_log_density(errors, self._squared_scale, degrees), None
        if outliers.share > 0.0:
            wide = student_log_density(errors, self._squared_scale + outliers.variance, degrees)
            plain, wide = plain + math.log1p(-outliers.share), wide + math.log(outliers.share)
        self.__dict__["_last_parts"] = targets, (plain, wide)
        return plain, wide

    def _average(self, values: np.ndarray) -> np.ndarray:
        """The mixture's mean `(c, n)` of values `(e, c, n)`."""
        average: np.ndarray = (self.weights * values).sum(0)
        return average

    def _output(self, values: Float[Tensor, "*s c n"]) -> Tensor:
        return values.squeeze(-2) if self.is_flat else values.mT

    def _searched_quantiles(self, levels: Float[Tensor, " k"]) -> Float[Tensor, "c n k"]:
        """Between the least and the largest of the experts' quantiles; counts one by one."""
        likelihood, counts = self.likelihood, torch.from_numpy(self.weights > 1e-9).any(-1).any(-1)
        if self._cumulative(self.latent_mean[0]) is None:
            mean = torch.from_numpy(self._average(self.latent_mean.numpy()))
            variance = self._average((self.latent_variance + (self.latent_mean - mean).square()).numpy())
            return likelihood.predictive_quantiles(mean, torch.from_numpy(variance), levels)
        each = likelihood.predictive_quantiles(self.latent_mean[counts], self.latent_variance[counts], levels)
        lower, upper = (bound.movedim(-1, 0) for bound in (each.amin(0), each.amax(0)))
        wanted, is_real = levels[:, None, None], likelihood.outcome_kind == "real"
        for _ in range(_NUM_BISECTIONS):
            if bool((lower >= upper).all()):
                break
            middle = 0.5 * (lower + upper) if is_real else (0.5 * (lower + upper)).floor()
            below = self._cumulative(middle)
            assert below is not None
            is_enough = below >= wanted - _ROUNDING
            upper = torch.where(is_enough, torch.minimum(middle, upper), upper)
            lower = torch.where(is_enough, lower, torch.maximum(lower, middle if is_real else middle + 1.0))
        return upper.movedim(0, -1)

    def _cumulative(self, targets: Float[Tensor, "*k c n"]) -> Float[Tensor, "*k c n"] | None:
        """The mixture of the experts' probabilities, for targets that are not real, in the units of the model."""
        found = self.likelihood.predictive_cumulative(self.latent_mean, self.latent_variance, targets.unsqueeze(-3))
        return None if found is None else (torch.from_numpy(self.weights) * found).sum(-3)


@lru_cache(64)
def _levels(probabilities: tuple[float, ...]) -> Float[Tensor, " k"]:
    """Probabilities of quantiles, checked; a stream asks for the same ones again and again."""
    return to_probabilities(probabilities, torch.empty(0, dtype=torch.float64))
