"""Knowledge gradient where one of finitely many points is recommended, in closed form."""

import math
from typing import Any, final

import numpy as np
import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.utils.transforms import t_batch_mode_transform
from jaxtyping import Float, Int
from torch import Tensor

from streamgp.acquisition.context import Context

__all__ = ["DiscreteKnowledgeGradient", "expected_maximum_of_lines"]


def expected_maximum_of_lines(intercepts: Float[Tensor, "*b w"], slopes: Float[Tensor, "*b w"]) -> Float[Tensor, "*b"]:
    r"""Evaluate $\mathbb E[\max_i (a_i + b_i Z)]$ for a standard normal $Z$.

    Only lines of the upper envelope matter. If line $i$ is the highest between $c_i$ and $c_{i+1}$, its part is
    $a_i (\Phi(c_{i+1}) - \Phi(c_i)) + b_i (\varphi(c_i) - \varphi(c_{i+1}))$. Gradients reach intercepts and slopes.

    Args:
        intercepts: $a$.
        slopes: $b$.

    References:
        Frazier, Powell, Dayanik (2009), The knowledge-gradient policy for correlated normal beliefs.
    """
    a, b = torch.broadcast_tensors(intercepts, slopes)
    rows_a, rows_b = a.reshape(-1, a.shape[-1]), b.reshape(-1, b.shape[-1])
    values = [_expected_maximum(one, two) for one, two in zip(rows_a, rows_b, strict=True)]
    return torch.stack(values).reshape(a.shape[:-1]) if values else a.sum(-1)


def _expected_maximum(a: Float[Tensor, " w"], b: Float[Tensor, " w"]) -> Float[Tensor, ""]:
    index = _envelope(a.detach().cpu().numpy(), b.detach().cpu().numpy())
    top_a, top_b = a[index], b[index]
    # Where lines cross, which does not change the value to first order.
    cuts = (-top_a.diff() / top_b.diff()).detach()
    low, high = cuts.new_full((1,), -math.inf), cuts.new_full((1,), math.inf)
    c = torch.cat([low, cuts, high])
    density = torch.exp(-0.5 * c.square()) / math.sqrt(2.0 * math.pi)
    return (top_a * torch.special.ndtr(c).diff() - top_b * density.diff()).sum()


def _envelope(a: np.ndarray, b: np.ndarray) -> Int[Tensor, " k"]:
    """Indices of the lines that are the highest somewhere, by slope."""
    order = np.lexsort((a, b))
    # Of lines with the same slope, the highest is the last.
    order = order[np.append(np.diff(b[order]) > 0, True)]
    kept: list[int] = []
    starts: list[float] = []
    for i in order.tolist():
        start = -math.inf
        while kept:
            start = (a[kept[-1]] - a[i]) / (b[i] - b[kept[-1]])
            if start > starts[-1]:
                break
            kept.pop()
            starts.pop()
            start = -math.inf
        kept.append(i)
        starts.append(start)
    return torch.tensor(kept)


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
