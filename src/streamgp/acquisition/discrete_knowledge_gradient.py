"""Knowledge gradient where one of finitely many points is recommended, in closed form."""

from typing import Any, final

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.utils.transforms import t_batch_mode_transform
from jaxtyping import Float
from torch import Tensor

from streamgp.acquisition.context import Context
from streamgp.acquisition.lines import expected_maximum_of_lines

__all__ = ["DiscreteKnowledgeGradient"]


@final
class DiscreteKnowledgeGradient(AcquisitionFunction):
    r"""The expected best mean of a finite set after one observation with Gaussian noise; exact, and differentiable.

    An observation at $x$ moves the mean at $w$ along the line
    $\mu(w) + Z \, k(w, x) / \sqrt{k(x, x) + \sigma^2}$ with a standard normal $Z$, so that the value is the expected
    maximum of lines. The point $x$ itself may be recommended, too. Outcomes of pending points are taken to be their
    means.
    """

    def __init__(self, context: Context, recommended: Float[Tensor, "w d"]) -> None:
        """Keep the model and the set.

        Args:
            context: What it is made from, without limits.
            recommended: Inputs among which the best one will be.
        """
        super().__init__(model=context.model)
        self.weight, self.recommended = context.objective.weights[0], recommended
        self.set_X_pending(context.pending_or_none)

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:  # noqa: N802 # as BoTorch calls it
        """Condition on pending points, with their means for outcomes."""
        pending: Any = X_pending
        self.X_pending = pending
        given: Any = self.model
        if X_pending is not None and len(X_pending):
            with torch.no_grad():
                mean = given.posterior(X_pending).mean
            given = given.condition_on_observations(X_pending, mean)
        self._given: Any = given

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type] # BoTorch asks for its base class
    def forward(self, X: Tensor) -> Tensor:
        """Evaluate at points `(*b, 1, d)`."""
        W = self.recommended.expand(*X.shape[:-2], *self.recommended.shape)
        posterior = self._given.posterior(torch.cat([W, X], dim=-2))
        covariance = posterior.distribution.covariance_matrix
        likelihoods: Any = self.model.likelihoods
        noise = likelihoods[0].gaussian_noise_variance.to(X)
        slopes = covariance[..., -1] / (covariance[..., -1, -1:] + noise).sqrt()
        return expected_maximum_of_lines(self.weight * posterior.mean[..., 0], slopes)
