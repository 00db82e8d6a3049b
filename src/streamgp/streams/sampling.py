"""Joint beliefs about rows: covariances of the function, and draws."""

import numpy as np
from jaxtyping import Float

from streamgp.streams.refit import Fitted
from streamgp.streams.state import Belief

__all__ = ["choose_part", "latent_covariances", "sample_latents"]


def latent_covariances(
    scaled: Float[np.ndarray, "n d"], lag: int, belief: Belief, fitted: Fitted
) -> Float[np.ndarray, "f n n"]:
    """Return each filter's covariance of the latent values of standardized inputs, in its units, without noise."""
    dynamics, p = fitted.dynamics(), int(belief.num_points[0])
    kernel = dynamics.kernel(scaled, scaled)
    features = dynamics.kernel(scaled, belief.points[:p]) @ belief.whitening[:p, :p].T
    h = np.c_[np.ones(len(scaled)), scaled, features]
    size, open_ = h.shape[1], kernel - features @ features.T
    # Rows of a filter without a function are zero where it has no state.
    known = np.einsum("ni,fij,mj->fnm", h, belief.covariance[:, :size, :size], h, optimize=True)
    return np.asarray(known + dynamics.function[:, None, None] * open_ + (lag * dynamics.walk)[:, None, None])


def sample_latents(
    covariances: Float[np.ndarray, "f n n"], num_samples: int, rng: np.random.Generator
) -> Float[np.ndarray, "s n f"]:
    """Draw deviations from the means for all rows together."""
    n = covariances.shape[1]
    draws = np.empty((num_samples, n, len(covariances)))
    for f, joint in enumerate(covariances):
        values, vectors = np.linalg.eigh(0.5 * (joint + joint.T))
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        draws[..., f] = rng.standard_normal((num_samples, n)) @ root.T
    return draws


def choose_part(
    draws: Float[np.ndarray, "s n c"], weight: Float[np.ndarray, "n c"], rng: np.random.Generator
) -> Float[np.ndarray, "s n"]:
    """Choose one part of a mixture for each draw, for all rows the same where their weights are."""
    below = np.cumsum(weight, axis=1)[None] < rng.random((len(draws), 1, 1))
    found = np.minimum(below.sum(-1, keepdims=True), draws.shape[-1] - 1)
    return np.take_along_axis(draws, found, axis=-1)[..., 0]
