"""Knowledge gradient of a comparison, in closed form."""

import math
from typing import Any, final

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.models.model import Model
from botorch.utils.transforms import t_batch_mode_transform
from jaxtyping import Float
from torch import Tensor

__all__ = ["ComparisonKnowledgeGradient", "comparison_gain"]


def comparison_gain(
    mean: Float[Tensor, "*b k"], covariance: Float[Tensor, "*b k k"], noise_scale: float
) -> Float[Tensor, "*b"]:
    r"""By how much the largest posterior mean is expected to rise when the first two of some points are compared.

    With $g = f_1 - f_2 \sim N(m, v)$, $w^2 = v + 2 s^2$ and $z = m / w$, the first wins with probability $\Phi(z)$, and
    the mean of $f$ then moves by $\operatorname{cov}(f, g) \, \phi(z) / (w \Phi(z))$, exactly. The expected largest
    mean is $\sum_\pm \max_x [\Phi(\pm z) \mu(x) \pm \operatorname{cov}(f(x), g) \, \phi(z) / w]$.

    Args:
        mean: Means of utilities; the first two are compared, the largest of all counts.
        covariance: Their covariance.
        noise_scale: Standard deviation $s$ of the noise of a utility in a comparison.
    """
    shift = covariance[..., 0] - covariance[..., 1]  # covariances with the difference of the first two
    variance = (shift[..., 0] - shift[..., 1]).clamp_min(0.0)
    width = (variance + 2.0 * noise_scale**2).sqrt()
    z = (mean[..., 0] - mean[..., 1]) / width
    step = shift * ((-0.5 * z.square()).exp() / (math.sqrt(2.0 * math.pi) * width)).unsqueeze(-1)
    first, second = (torch.special.ndtr(sign * z).unsqueeze(-1) * mean + sign * step for sign in (1.0, -1.0))
    return first.amax(-1) + second.amax(-1) - mean.amax(-1)


@final
class ComparisonKnowledgeGradient(AcquisitionFunction):
    """Expected rise of the largest posterior mean after two points are compared, one step ahead."""

    def __init__(self, model: Model, rivals: Tensor, noise_scale: float) -> None:
        """Keep what the largest mean is looked for among.

        Args:
            model: Utilities.
            rivals: Points `(k, d)` that may be the best afterwards, besides the two.
            noise_scale: Standard deviation of the noise of a utility in a comparison.
        """
        super().__init__(model=model)
        self._rivals = rivals
        self._noise_scale = noise_scale

    @t_batch_mode_transform(expected_q=2)  # type: ignore[arg-type] # BoTorch asks for its base class
    def forward(self, X: Tensor) -> Tensor:
        """Evaluate at pairs `(*b, 2, d)`."""
        points = torch.cat([X, self._rivals.expand(*X.shape[:-2], -1, -1)], dim=-2)
        posterior: Any = self.model.posterior(points)
        covariance = posterior.distribution.covariance_matrix
        return comparison_gain(posterior.mean.squeeze(-1), covariance, self._noise_scale)
