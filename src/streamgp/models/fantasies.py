"""Outcomes drawn from a model, and the model given them."""

from dataclasses import dataclass
from typing import Any, final

import torch
from botorch.sampling.base import MCSampler
from botorch.sampling.list_sampler import ListSampler
from torch import Tensor

from streamgp.conditioning import ConditionedGP, SparseGP
from streamgp.conditioning.conditioned_gp import JointPredictive, observe, predict_jointly
from streamgp.conditioning.observation import Noise
from streamgp.errors import ArgumentTypeError, OptionError, ShapeError
from streamgp.gp import Prediction
from streamgp.likelihoods import AbstractLikelihood
from streamgp.models.arguments import noise_column
from streamgp.models.observation_model import expected_noise_variance
from streamgp.models.output import Output, Term
from streamgp.models.posterior import LatentPosterior
from streamgp.shapes import broadcast_shapes

__all__ = ["Fantasies", "check_fantasy_noise"]


@final
@dataclass(frozen=True, eq=False)
class Fantasies:
    """Ingredients for drawing outcomes of independent outputs and conditioning on them.

    Attributes:
        gps: One for each output.
        likelihoods: One for each output.
        inputs: Inputs of each output, transformed.
        sampler: Draws jointly, or one output after the other.
    """

    gps: tuple[SparseGP | ConditionedGP, ...]
    likelihoods: tuple[AbstractLikelihood | None, ...]
    inputs: tuple[Tensor, ...]
    sampler: MCSampler

    @classmethod
    def read(
        cls,
        gps: tuple[SparseGP | ConditionedGP, ...],
        likelihoods: tuple[AbstractLikelihood | None, ...],
        inputs: Tensor,
        *,
        sampler: MCSampler,
        evaluation_mask: Tensor | None,
    ) -> "Fantasies":
        """Check sampler and mask against the outputs."""
        o, n = len(gps), inputs.shape[-2]
        if isinstance(sampler, ListSampler) and len(sampler.samplers) != o:
            raise OptionError(
                f"A ListSampler must have one sampler for each of the {o} outputs, but has {len(sampler.samplers)}."
            )
        if evaluation_mask is None:
            return cls(gps, likelihoods, (inputs,) * o, sampler)
        if tuple(evaluation_mask.shape) != (n, o):
            raise ShapeError(
                f"evaluation_mask must have shape {(n, o)}, one row for each input and one column for each output, "
                f"but has shape {tuple(evaluation_mask.shape)}."
            )
        if not isinstance(sampler, ListSampler):
            raise OptionError(
                f"Outputs that are observed at different inputs are drawn one by one, but the sampler is a "
                f"{type(sampler).__name__}. Pass a ListSampler with one sampler for each output."
            )
        return cls(gps, likelihoods, tuple(inputs[..., evaluation_mask[:, j], :] for j in range(o)), sampler)

    def gaussian(self, noise: Tensor | None) -> list[ConditionedGP]:
        """Draw latent values with noise, and condition on them with the same noise.

        Drawing and conditioning share what the GP expects at the inputs.

        Args:
            noise: Variances with a column for each output; None for the likelihoods'.
        """
        columns = [None if noise is None else noise_column(noise, j, len(self.gps)) for j in range(len(self.gps))]
        predictives = [predict_jointly(gp.process, X) for gp, X in zip(self.gps, self.inputs, strict=True)]
        variances, outputs = [], []
        for gp, likelihood, predictive, column in zip(self.gps, self.likelihoods, predictives, columns, strict=True):
            prediction = _known(gp, predictive)
            variance = expected_noise_variance(likelihood, prediction) if column is None else column
            variances.append(variance)
            outputs.append(_output(gp, prediction, variance))
        return [
            ConditionedGP(observe(gp.process, predictive, y, _noise(variance, predictive)))
            for gp, predictive, y, variance in zip(self.gps, predictives, self._draw(outputs), variances, strict=True)
        ]

    def observed(self) -> list[ConditionedGP]:
        """Draw latent values, then outcomes from the likelihood, and condition on the outcomes."""
        outputs = [
            _output(gp, _known(gp, predict_jointly(gp.process, X)), None)
            for gp, X in zip(self.gps, self.inputs, strict=True)
        ]
        generator = torch.Generator(device=self.inputs[0].device).manual_seed(_seed(self.sampler))
        conditioned = []
        for gp, likelihood, X, f in zip(self.gps, self.likelihoods, self.inputs, self._draw(outputs), strict=True):
            if likelihood is None:
                raise OptionError(
                    "observations=True draws outcomes from the likelihood, but an output has none. "
                    "Make the OnlineGP with a likelihood."
                )
            noise = likelihood.gaussian_noise_variance
            # Noise of past observations stands for that of those to come by its mean.
            usual = likelihood if noise is None else likelihood.with_row_data(noise.to(f).mean())
            y = usual.sample(f.detach(), generator=generator)
            conditioned.append(gp.condition(X, y, likelihood=usual))
        return conditioned

    def _draw(self, outputs: list[Output]) -> list[Tensor]:
        """Samples of each output, `(*s, *b, n)`."""
        if isinstance(self.sampler, ListSampler):
            samplers: Any = self.sampler.samplers
            return [self._sample(sampler, [one]).squeeze(-1) for sampler, one in zip(samplers, outputs, strict=True)]
        shape = broadcast_shapes(*(one.shape for one in outputs))
        aligned = [Output(one.terms, shape) for one in outputs]
        return list(self._sample(self.sampler, aligned).unbind(-1))

    def _sample(self, sampler: MCSampler, outputs: list[Output]) -> Tensor:
        posterior = LatentPosterior(outputs)
        if not outputs[0].shape[-1]:  # no inputs, as where a mask excludes them all
            terms = outputs[0].terms[0].prediction.mean
            return terms.new_empty(posterior._extended_shape(sampler.sample_shape))
        return sampler(posterior)


def _known(gp: SparseGP | ConditionedGP, predictive: JointPredictive) -> Prediction:
    """A prediction whose moments are there already."""
    prediction = Prediction(gp.process, predictive.inputs)
    prediction.__dict__.update(mean=predictive.mean, covariance=predictive.covariance)
    return prediction


def _output(gp: SparseGP | ConditionedGP, prediction: Prediction, variance: Tensor | None) -> Output:
    X = prediction.inputs
    shape = broadcast_shapes(gp.process.batch_shape, X.shape[:-2])
    return Output((Term(prediction, variance),), torch.Size((*shape, X.shape[-2])))


def _noise(variance: Tensor, predictive: JointPredictive) -> Noise:
    return Noise(variance.expand(*variance.shape[:-1], predictive.covariance.shape[-1]))


def _seed(sampler: MCSampler) -> int:
    first: Any = sampler.samplers[0] if isinstance(sampler, ListSampler) else sampler
    return int(first.seed)


def check_fantasy_noise(noise: object, *, observations: bool) -> None:
    """Refuse noise that fantasies cannot have.

    Args:
        noise: Variances, or None.
        observations: Whether real outcomes are drawn.
    """
    if noise is None:
        return
    if not isinstance(noise, Tensor):
        raise ArgumentTypeError(
            f"observation_noise must be a tensor of variances or None in fantasize, but is {noise!r}. "
            "Leave it out to use the likelihood's own noise."
        )
    if observations:
        raise OptionError(
            "Both observations=True and observation_noise were given, but outcomes that are drawn from the "
            "likelihood bring its own noise. Pass one."
        )
