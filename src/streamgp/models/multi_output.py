"""Several correlated outputs as a BoTorch model."""

from collections.abc import Callable, Sequence
from typing import Any, final

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.models.model import Model
from botorch.posteriors.gpytorch import GPyTorchPosterior
from botorch.sampling.base import MCSampler
from gpytorch.distributions import MultitaskMultivariateNormal, MultivariateNormal
from torch import Tensor

from streamgp.checks import check_float
from streamgp.conditioning import ConditionedMultiOutputGP, MultiOutputGP
from streamgp.conditioning.absorb import AbsorbInfo
from streamgp.errors import DTypeError, OptionError, ShapeError, UnsupportedError
from streamgp.models.arguments import read_indices
from streamgp.shapes import broadcast_shapes

__all__ = ["OnlineMultiOutputGP"]


@final
class OnlineMultiOutputGP(Model):
    """A `MultiOutputGP` behind BoTorch's interface: a correlated posterior, fantasies and look-ahead.

    Outcomes have a column for each output, and NaN where one was not observed. Noise is Gaussian.
    """

    def __init__(self, gp: Any, noise_variance: Any) -> None:
        """Make a model of a GP.

        Args:
            gp: A `MultiOutputGP`, or one that was conditioned, in the units of inputs and outcomes.
            noise_variance: Variance of the noise of each output `(o,)`, or a number for all.
        """
        super().__init__()
        if not isinstance(gp, MultiOutputGP | ConditionedMultiOutputGP):
            raise DTypeError(
                f"gp must be a MultiOutputGP, but is a {type(gp).__name__}. Fit one with streamgp.fit(outputs=...), "
                "or use OnlineGP for independent outputs."
            )
        self.gp = gp
        reference = gp.row_gp.process.reference
        noise = check_float(noise_variance, "noise_variance", like=reference).to(reference)
        if noise.dim() > 1 or (noise.dim() == 1 and len(noise) != gp.num_outputs):
            raise ShapeError(
                f"noise_variance must be a number or have shape ({gp.num_outputs},), one for each output, but has "
                f"shape {tuple(noise.shape)}."
            )
        self.noise_variance = noise.detach().expand(gp.num_outputs)
        self.absorb_info: AbsorbInfo | None = None
        torch.nn.Module.train(self, False)

    @property
    def num_outputs(self) -> int:
        """Number of outputs."""
        return self.gp.num_outputs

    @property
    def batch_shape(self) -> torch.Size:
        """Leading axes of the model; those of fantasies come first."""
        return self.gp.batch_shape

    def posterior(
        self,
        X: Tensor,
        output_indices: Sequence[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: PosteriorTransform | Callable[..., Any] | None = None,
    ) -> Any:
        """Predict at inputs.

        Args:
            X: Inputs `(*b, q, d)`.
            output_indices: Outputs to predict; all by default.
            observation_noise: Whether to add the noise of observations; a tensor that broadcasts with `(*b, q, o)`
                gives its variances.
            posterior_transform: Applied last.

        Returns:
            A `GPyTorchPosterior` of all inputs and outputs jointly.
        """
        indices = read_indices(output_indices, self.num_outputs)
        prediction = self.gp.predict(X, output=indices, covariance=True)
        mean, covariance = prediction.mean, prediction.covariance
        batch = broadcast_shapes(mean.shape[:-2], covariance.shape[:-2])
        if observation_noise is not False:
            variances = self.noise_variance[indices] if observation_noise is True else observation_noise
            variances = variances.expand(*batch, *mean.shape[-2:]).flatten(-2)
            covariance = covariance + torch.diag_embed(variances)
        mean, covariance = mean.expand(*batch, *mean.shape[-2:]), covariance.expand(*batch, *covariance.shape[-2:])
        if len(indices) == 1:
            distribution = MultivariateNormal(mean.squeeze(-1), covariance)
        else:
            distribution = MultitaskMultivariateNormal(mean, covariance)
        posterior = GPyTorchPosterior(distribution)
        return posterior if posterior_transform is None else posterior_transform(posterior)

    def condition_on_observations(  # type: ignore[override] # takes no arguments that it would not read
        self, X: Tensor, Y: Tensor, noise: Tensor | None = None, *, propagate_grads: bool = True
    ) -> "OnlineMultiOutputGP":
        """Condition exactly on outcomes of all outputs or of some.

        Args:
            X: Inputs `(*b, n, d)`.
            Y: Outcomes `(*f, *b, n, o)`, NaN where an output was not observed; leading axes that inputs lack are
                fantasies.
            noise: Noise variances `(*b, n, o)`, instead of the model's.
            propagate_grads: For BoTorch, which passes it; gradients always reach inputs and outcomes.
        """
        variances = self.noise_variance if noise is None else noise
        return OnlineMultiOutputGP(self.gp.condition(X, Y, noise_variance=variances), self.noise_variance)

    def fantasize(
        self,
        X: Tensor,
        sampler: MCSampler,
        observation_noise: Tensor | None = None,
        *,
        evaluation_mask: Tensor | None = None,
        propagate_grads: bool = True,
    ) -> "OnlineMultiOutputGP":
        """Condition on outcomes that are drawn from the posterior, with noise.

        Args:
            X: Inputs `(*b, n, d)`.
            sampler: Sampler of BoTorch.
            observation_noise: Variances `(*b, n, o)` of the noise, instead of the model's.
            evaluation_mask: Which outputs are observed at which input, `(n, o)`; all by default.
            propagate_grads: For BoTorch, which passes it; gradients always reach inputs and outcomes.

        Returns:
            The model with the sampler's axes before its own.
        """
        drawn = sampler(self.posterior(X, observation_noise=True if observation_noise is None else observation_noise))
        if evaluation_mask is not None:
            if tuple(evaluation_mask.shape) != (X.shape[-2], self.num_outputs):
                raise ShapeError(
                    f"evaluation_mask must have shape {(X.shape[-2], self.num_outputs)}, one row for each input and "
                    f"one column for each output, but has shape {tuple(evaluation_mask.shape)}."
                )
            if not bool(evaluation_mask.any()):
                raise OptionError("evaluation_mask must let at least one output be observed, but lets none.")
            drawn = torch.where(evaluation_mask, drawn, torch.nan)
        return self.condition_on_observations(X, drawn, noise=observation_noise)

    def absorb(self, X: Tensor, Y: Tensor, **options: Any) -> "OnlineMultiOutputGP":
        """Learn from outcomes in constant size; options of `MultiOutputGP.absorb`."""
        if not isinstance(self.gp, MultiOutputGP):
            raise UnsupportedError(
                "The model was conditioned on observations or fantasies, and such a model cannot absorb more in "
                "constant size. Absorb real data first, and condition the result."
            )
        absorbed, info = self.gp.absorb(X, Y, noise_variance=self.noise_variance, **options)
        model = OnlineMultiOutputGP(absorbed, self.noise_variance)
        model.absorb_info = info
        return model
