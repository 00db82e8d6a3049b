"""Choosing inducing points anew among the old ones and new inputs."""

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.conditioning.nystrom import NystromPredictive, predict_nystrom
from streamgp.conditioning.observation import Observation
from streamgp.gp import Prior, SparseProcess
from streamgp.linalg import apply, pivoted_cholesky
from streamgp.shapes import broadcast_shapes

__all__ = ["LEAST_WEIGHT", "choose_inducing_points", "derive_information", "input_precision", "site_information"]

# The weight of an old point about which nothing is known, relative to that of a new input: still a candidate.
LEAST_WEIGHT = 1e-6
# An observation of no curvature is still a candidate, behind all others.
_LEAST_CURVATURE = 1e-6
# Up to so many single observations are faster one after the other, in numbers.
_FEW = 8


def choose_inducing_points(
    process: SparseProcess, observation: Observation, *, num_inducing: int, prior: Prior, retention: float = 1.0
) -> Float[Tensor, "*b m d"] | None:
    r"""Choose inducing points among the old ones and new inputs by pivoted Cholesky of the weighted kernel.

    New inputs count with the precision of their observations. Old points count with the geometric mean of that
    precision and of the information the belief holds at them, the diagonal of the site $\Lambda$. By the information
    alone, points that know much would never give way, and new regions stay uncovered while data comes in small
    batches; by coverage alone, points are exchanged that need not be, and each exchange loses some of the belief.

    Old points that stay keep their order.

    Args:
        process: Belief before the observations.
        observation: The new inputs, and how they are observed.
        num_inducing: How many to choose.
        prior: Whose kernel counts.
        retention: What the weights of old points are multiplied with.

    Returns:
        The chosen points, or None if the old ones are chosen again.
    """
    Z, X = process.inducing_points, observation.inputs
    batch = broadcast_shapes(Z.shape[:-2], X.shape[:-2], prior.batch_shape)
    num_old = Z.shape[-2]
    candidates = torch.cat([Z.expand(*batch, *Z.shape[-2:]), X.expand(*batch, *X.shape[-2:])], dim=-2)
    seen = None if observation.likelihood is None else predict_nystrom(process, observation)
    precision = input_precision(observation, seen, prior).expand(*batch, X.shape[-2])
    typical = precision.mean(-1, keepdim=True)
    old_precision = retention * (site_information(process).clamp_min(0.0) * typical).sqrt() + LEAST_WEIGHT * typical
    chosen = pivoted_cholesky(
        prior.covariance,
        candidates,
        num_inducing,
        variance=prior.variance(candidates).expand(candidates.shape[:-1]),
        weights=torch.cat([old_precision.expand(*batch, num_old), precision], dim=-1),
    )
    order = chosen.pivots.sort(-1).values
    if order.shape[-1] == num_old and bool((order == torch.arange(num_old, device=order.device)).all()):
        return None
    return candidates.gather(-2, order.unsqueeze(-1).expand(*order.shape, candidates.shape[-1]))


def site_information(process: SparseProcess) -> Float[Tensor, "*b m"]:
    r"""The diagonal of the site $\Lambda = S^{-1} - K^{-1}$ at the inducing points; may be negative.

    Taken from where it was carried along, or derived from the belief in $O(m^3)$.
    """
    if process.information is not None:
        return process.information
    return derive_information(process.whitened_root, process.inducing_factor.whitening)


def derive_information(
    whitened_root: Float[Tensor, "*b m m"], whitening: Float[Tensor, "*b m m"]
) -> Float[Tensor, "*b m"]:
    """The same of a belief given by its root and the inverse factor of its points."""
    solved, _ = torch.linalg.solve_ex(whitened_root.double(), whitening)
    information = solved.square().sum(-2) - whitening.square().sum(-2)
    # A belief without spread is infinitely sure; as large as the dtype holds with room for products.
    most = torch.finfo(whitened_root.dtype).max ** 0.25
    return information.nan_to_num(nan=most, posinf=most).clamp_max(most).to(whitened_root.dtype)


def input_precision(observation: Observation, seen: NystromPredictive | None, prior: Prior) -> Float[Tensor, "*b n"]:
    """How much each input's observation tells, before its site is known: the expected curvature under the belief.

    Args:
        observation: What was observed.
        seen: What is believed of it; not needed for Gaussian observations.
        prior: Whose variances tell how small a noise is.
    """
    X, H, y = observation.inputs, observation.projection, observation.targets
    if observation.noise is not None:
        return observation.noise.precisions(prior.variance(X))
    assert observation.likelihood is not None
    assert seen is not None
    likelihood = observation.likelihood
    is_few = X.shape[-2] == 1 and y.numel() <= _FEW and H is None
    if is_few and likelihood.num_latents == 1 and not likelihood.has_row_constants:
        moments = (each.reshape(-1).tolist() for each in (seen.mean, seen.variance(), y))
        numbers = [
            max(-likelihood.expected_derivatives_of_one(m, v, one)[1], _LEAST_CURVATURE)
            for m, v, one in zip(*moments, strict=True)
        ]
        return y.new_tensor(numbers).view(y.shape)
    _, curvature = likelihood.expected_derivatives(seen.mean, seen.variance(), y)
    precision = (-curvature).clamp_min(_LEAST_CURVATURE)
    return precision if H is None else apply(H.abs().mT, precision)
