"""The file that `streamgp fit` writes."""

from dataclasses import dataclass
from typing import final

import numpy as np
import torch

from streamgp.storage import register
from streamgp.training import FitResult

__all__ = ["TableModel"]


@register
@final
@dataclass(frozen=True, eq=False)
class TableModel:
    """A fit, and the columns it belongs to.

    Attributes:
        result: The fit.
        features: Columns of the inputs, in order.
        target: What is predicted.
    """

    result: FitResult
    features: tuple[str, ...]
    target: str

    def predict(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Means and standard deviations of targets, noise included.

        Args:
            X: Inputs `(n, d)`, in the order of the features.
        """
        scaling, likelihood = self.result.scaling, self.result.likelihood
        inputs = torch.from_numpy(np.ascontiguousarray(X, dtype=np.float64))
        latent = self.result.gp.predict(inputs if scaling is None else scaling.inputs(inputs))
        variance = latent.variance.clamp_min(0.0)
        mean = likelihood.predictive_mean(latent.mean, variance)
        deviation = likelihood.predictive_variance(latent.mean, variance).sqrt()
        if scaling is None:
            return mean.numpy(), deviation.numpy()
        scale = scaling.target_scale.to(mean)
        return (scaling.target_shift.to(mean) + scale * mean).numpy(), (scale * deviation).numpy()
