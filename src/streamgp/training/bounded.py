"""Targets of which some are only bounds, such as "<0.5" below a limit of detection."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from streamgp.errors import ArgumentTypeError, UnsupportedError
from streamgp.likelihoods import AbstractLikelihood, Censored, Gaussian
from streamgp.likelihoods.registry import read_likelihood
from streamgp.tables.values import split_bounds
from streamgp.training.result import FitResult
from streamgp.training.scaling import Scaling, spread

__all__ = ["Bounded", "read_bounded"]

# Where the noise starts, relative to the variance of targets, where no likelihood was given.
_START_NOISE = 0.05


class Bounded(NamedTuple):
    """Targets with bounds, in standard deviations from their mean.

    Attributes:
        targets: Values and bounds.
        likelihood: What is known of each.
        shift: Mean of the targets in the user's units, with bounds for values.
        scale: Their standard deviation.
    """

    targets: np.ndarray
    likelihood: Censored
    shift: Tensor
    scale: Tensor

    def in_units(self, result: FitResult) -> FitResult:
        """The result in the user's units, for observations of values."""
        gp = result.gp
        one = gp.inducing_points.new_ones(gp.inducing_points.shape[-1])
        shift, scale = self.shift.to(one), self.scale.to(one)
        scaling = Scaling(torch.zeros_like(one), one, shift, scale)
        if result.scaling is not None:
            scaling = replace(result.scaling, target_shift=shift, target_scale=scale)
        return replace(result, likelihood=result.likelihood.uncensored, scaling=scaling)


def read_bounded(y: Any, likelihood: object, *, start: object) -> Bounded | None:
    """Read targets with texts such as "<0.5"; None if there are none.

    Args:
        y: Targets as a user passed them.
        likelihood: Of values: none, or a Gaussian one.
        start: An earlier fit, from which bounds cannot be learned.
    """
    split = None if y is None or isinstance(y, Tensor) else split_bounds(y)
    if split is None:
        return None
    values, sides = (torch.from_numpy(np.asarray(one, dtype=np.float64)) for one in split)
    if start is not None:
        raise UnsupportedError("Targets with bounds are fitted from the start. Leave start out.")
    given = Gaussian(_START_NOISE) if likelihood is None else read_likelihood(likelihood)
    if not isinstance(given, AbstractLikelihood) or not given.is_gaussian:
        raise ArgumentTypeError(
            f"Bounds such as '<0.5' are of targets with Gaussian noise, but the likelihood is "
            f"{type(given).__name__}. Pass numbers, or leave the likelihood out."
        )
    shift, scale = values.mean(), spread(values.reshape(-1, 1)).squeeze(-1)
    noise = given if likelihood is None or isinstance(likelihood, str) else given.rescaled(scale)
    targets = (values - shift) / scale
    variance = noise.gaussian_noise_variance
    assert variance is not None
    censored = Censored.at_bounds(variance, targets, sides, is_learned=bool(noise.learnable()))
    return Bounded(targets.numpy(), censored, shift, scale)
