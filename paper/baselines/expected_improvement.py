"""Bayesian optimization with an online GP of few basis vectors and expected improvement."""

import math

import numpy as np
import torch
from jaxtyping import Float
from scipy.optimize import minimize
from torch import Tensor

from paper.problems.basis_vector_gp import BasisVectorGP

__all__ = ["expected_improvement", "suggest_point"]

# Evaluations of the only search, as in the code of the weighted GP.
_NUM_EVALUATIONS = 100


def expected_improvement(gp: BasisVectorGP, X: Float[Tensor, "n d"], best: Float[Tensor, ""]) -> Float[Tensor, " n"]:
    """Expected improvement over a value, of the function and not of its noisy observation."""
    mean, variance = gp.predict(X)
    deviation = variance.clamp_min(1e-16).sqrt()
    z = (mean - best) / deviation
    density = (-0.5 * z.square()).exp() / math.sqrt(2.0 * math.pi)
    return deviation * (density + z * torch.special.ndtr(z))


def suggest_point(gp: BasisVectorGP, seen: Float[Tensor, "n d"], bounds: Float[Tensor, "2 d"]) -> Float[Tensor, "1 d"]:
    """The point of largest expected improvement that one search from the best seen point finds.

    Args:
        gp: What is known.
        seen: Points that were evaluated.
        bounds: The box.
    """
    lower, upper = bounds
    means = gp.predict(seen)[0]
    best, start = means.max(), seen[int(means.argmax())]
    width = upper - lower

    def evaluate(share: np.ndarray) -> tuple[float, np.ndarray]:
        point = torch.from_numpy(share.copy()).requires_grad_()
        value = expected_improvement(gp, (lower + width * point).unsqueeze(0), best).squeeze(0)
        (gradient,) = torch.autograd.grad(value, point)
        return -value.item(), -gradient.numpy()

    found = minimize(
        evaluate,
        ((start - lower) / width).clamp(0.0, 1.0).numpy(),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, 1.0)] * len(lower),
        options={"maxfun": _NUM_EVALUATIONS},
    )
    return (lower + width * torch.from_numpy(found.x)).clamp(lower, upper).unsqueeze(0)
