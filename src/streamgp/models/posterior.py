"""The posterior that BoTorch sees: Gaussian, and computed only as far as it is read."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import torch
from botorch.posteriors.gpytorch import GPyTorchPosterior
from botorch.posteriors.posterior import Posterior
from botorch.posteriors.transformed import TransformedPosterior
from gpytorch.distributions import MultitaskMultivariateNormal, MultivariateNormal
from linear_operator.operators import DenseLinearOperator
from torch import Tensor

from streamgp.display import html_table
from streamgp.likelihoods import AbstractLikelihood
from streamgp.models.output import Output

__all__ = ["LatentPosterior", "describe_model", "model_table", "response_posterior"]


def response_posterior(
    posterior: Posterior, likelihoods: tuple[AbstractLikelihood | None, ...], *, is_observed: bool
) -> TransformedPosterior:
    r"""The posterior of the expected response $g(f) = \mathbb{E}[y \mid f]$ of each output, or of outcomes $y$.

    Samples are $g$ of latent samples, differentiable, or outcomes drawn for them from torch's global generator, which
    are not. Means are exact, and variances of $g(f)$ are where they have a closed form. Outputs with a Gaussian
    likelihood, or none, stay as they are.

    Args:
        posterior: Of the latent functions; with noise for Gaussian outputs, if outcomes are asked for.
        likelihoods: One for each output.
        is_observed: Whether to predict outcomes.
    """
    links = _Links(tuple(None if one is None or one.is_gaussian else one for one in likelihoods))
    if is_observed:
        return TransformedPosterior(posterior, links.outcome, links.mean, links.outcome_variance)
    return TransformedPosterior(posterior, links.response, links.mean, links.variance)


@final
@dataclass(frozen=True)
class _Links:
    """The maps from latent values to responses, column by column; None leaves a column as it is."""

    likelihoods: tuple[AbstractLikelihood | None, ...]

    def mean(self, mean: Tensor, variance: Tensor) -> Tensor:
        return self._columns(lambda one, m, v: one.predictive_mean(m, v), mean, mean, variance)

    def response(self, samples: Tensor) -> Tensor:
        return self._columns(lambda one, f: one.conditional_mean(f), samples, samples)

    def variance(self, mean: Tensor, variance: Tensor) -> Tensor:
        def spread(one: AbstractLikelihood, m: Tensor, v: Tensor) -> Tensor:
            somewhere = torch.ones_like(m)  # where no response is zero
            trials = one.conditional_mean(somewhere) / one.response(somewhere)  # or exposure
            return (trials.square() * one.response_variance(m, v)).clamp_max(torch.finfo(v.dtype).max)

        return self._columns(spread, variance, mean, variance)

    def outcome(self, samples: Tensor) -> Tensor:
        return self._columns(lambda one, f: one.sample(f), samples, samples)

    def outcome_variance(self, mean: Tensor, variance: Tensor) -> Tensor:
        return self._columns(lambda one, m, v: one.predictive_variance(m, v), variance, mean, variance)

    def _columns(self, link: Callable[..., Tensor], default: Tensor, *arguments: Tensor) -> Tensor:
        columns = [
            default[..., j] if one is None else link(one, *(value[..., j] for value in arguments))
            for j, one in enumerate(self.likelihoods)
        ]
        return torch.stack(columns, dim=-1)


def describe_model(
    name: str, processes: Sequence[Any], likelihoods: Sequence[AbstractLikelihood | None], *, num_dims: int
) -> str:
    """Describe a model in a line: `OnlineGP(2 outputs, 30 inducing points, 6 inputs, Gaussian, Poisson)`.

    Args:
        name: Of the class.
        processes: What is known, of each output or of all together.
        likelihoods: One for each output.
        num_dims: Number of inputs.
    """
    facts = _facts(processes, likelihoods, num_dims)
    counts = [_counted(facts[key], key) for key in ("outputs", "inducing points", "inputs")]
    batch = [f"batch {facts['leading axes']}"] if facts["leading axes"] else []
    return f"{name}({', '.join([*counts, facts['likelihood'], *batch])})"


def model_table(
    name: str, processes: Sequence[Any], likelihoods: Sequence[AbstractLikelihood | None], *, num_dims: int
) -> str:
    """Describe a model as a table of HTML, escaped and without scripts."""
    return html_table(name, _facts(processes, likelihoods, num_dims))


def _facts(processes: Sequence[Any], likelihoods: Sequence[AbstractLikelihood | None], num_dims: int) -> dict[str, Any]:
    reference = processes[0].reference
    names = ["no likelihood" if each is None else type(each).__name__ for each in likelihoods]
    sizes = list(dict.fromkeys(process.num_inducing for process in processes))
    return {
        "outputs": len(likelihoods),
        "inducing points": sizes[0] if len(sizes) == 1 else ", ".join(map(str, sizes)),
        "inputs": num_dims,
        "likelihood": ", ".join(dict.fromkeys(names)),
        "leading axes": tuple(processes[0].batch_shape),
        "type": str(reference.dtype).removeprefix("torch."),
    }


def _counted(number: Any, plural: str) -> str:
    return f"1 {plural.removesuffix('s')}" if number == 1 else f"{number} {plural}"


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
