"""The posterior that BoTorch sees: Gaussian, and computed only as far as it is read."""

from collections.abc import Sequence
from typing import Any, final

import torch
from botorch.posteriors.gpytorch import GPyTorchPosterior
from gpytorch.distributions import MultitaskMultivariateNormal, MultivariateNormal
from linear_operator.operators import DenseLinearOperator
from torch import Tensor

from streamgp.models.output import Output

__all__ = ["LatentPosterior"]


@final
class LatentPosterior(GPyTorchPosterior):
    """Independent Gaussian outputs, whose mean never pays for a covariance.

    Takes the place of BoTorch's `GPyTorchPosterior` everywhere. Its `distribution` is made when first read, and samples
    use base samples as BoTorch's own posteriors do: base sample `(i, j)` moves output `j` at point `i` and later ones.
    """

    def __init__(self, outputs: Sequence[Output]) -> None:
        """Keep the outputs, which have the same shape."""
        # Without the constructors of BoTorch, which ask for the distribution.
        self.outputs = tuple(outputs)
        self._made: Any = None

    @property
    def distribution(self) -> Any:  # type: ignore[override] # made when it is read
        """A `MultivariateNormal`, or a `MultitaskMultivariateNormal` for several outputs."""
        if self._made is None:
            each = [MultivariateNormal(one.mean, DenseLinearOperator(one.covariance)) for one in self.outputs]
            self._made = MultitaskMultivariateNormal.from_independent_mvns(each) if self._is_mt else each[0]
        return self._made

    @property
    def _is_mt(self) -> bool:  # type: ignore[override]
        return len(self.outputs) > 1

    @property
    def device(self) -> torch.device:
        """Of all values."""
        return self.outputs[0].terms[0].prediction.inputs.device

    @property
    def dtype(self) -> torch.dtype:
        """Of all values."""
        return self.outputs[0].terms[0].prediction.inputs.dtype

    @property
    def batch_shape(self) -> torch.Size:
        """Leading axes."""
        return self.outputs[0].shape[:-1]

    @property
    def base_sample_shape(self) -> torch.Size:
        """Shape of the base samples for one sample."""
        shape = self.outputs[0].shape
        return torch.Size((*shape, len(self.outputs))) if self._is_mt else shape

    def _extended_shape(self, sample_shape: torch.Size = torch.Size()) -> torch.Size:  # noqa: B008
        return torch.Size((*sample_shape, *self.outputs[0].shape, len(self.outputs)))

    @property
    def mean(self) -> Tensor:
        """Mean `(*b, q, o)`."""
        return _columns([one.mean for one in self.outputs])

    @property
    def variance(self) -> Tensor:
        """Marginal variances `(*b, q, o)`."""
        return _columns([one.variance for one in self.outputs])

    def rsample_from_base_samples(self, sample_shape: torch.Size, base_samples: Tensor) -> Tensor:
        """Map base samples to samples; differentiable.

        Args:
            sample_shape: Leading axes of the samples.
            base_samples: Standard normal numbers, `sample_shape` and then `base_sample_shape`.

        Returns:
            Samples `(*sample_shape, *b, q, o)`.
        """
        if base_samples.shape[: len(sample_shape)] != sample_shape:
            raise RuntimeError(
                f"base_samples must begin with the axes {tuple(sample_shape)} of sample_shape, but has shape "
                f"{tuple(base_samples.shape)}."
            )
        if not self._is_mt:
            return self.outputs[0].sample(base_samples).unsqueeze(-1)
        return torch.stack([one.sample(base_samples[..., j]) for j, one in enumerate(self.outputs)], dim=-1)

    def rsample(self, sample_shape: torch.Size | None = None) -> Tensor:
        """Draw samples from torch's global generator, as BoTorch's posteriors do."""
        shape = torch.Size([1]) if sample_shape is None else sample_shape
        base = torch.randn(*shape, *self.base_sample_shape, dtype=self.dtype, device=self.device)
        return self.rsample_from_base_samples(shape, base)

    def scalarized(self, weights: Tensor, offset: float | Tensor = 0.0) -> "LatentPosterior":
        """The weighted sum of the outputs as a posterior of one output, as lazy as this one.

        Args:
            weights: One for each output.
            offset: A number to add.
        """
        parts = [
            one.affine(weights[j], torch.zeros_like(weights[j]).unsqueeze(-1)) for j, one in enumerate(self.outputs)
        ]
        total = torch.as_tensor(offset, dtype=self.dtype, device=self.device)
        for part in parts:
            total = total if part.offset is None else total + part.offset
        terms = tuple(term for part in parts for term in part.terms)
        return LatentPosterior([Output(terms, self.outputs[0].shape, total)])


def _columns(values: list[Tensor]) -> Tensor:
    return values[0].unsqueeze(-1) if len(values) == 1 else torch.stack(values, dim=-1)
