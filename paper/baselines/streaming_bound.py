r"""The collapsed streaming bound of O-SGPR, for an RBF kernel of unit variance and zero mean."""

import math
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, final

import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["CarriedSite", "StreamParameters", "StreamingBound", "streaming_bound"]


@final
@dataclass(frozen=True, eq=False)
class CarriedSite:
    r"""What is carried from block to block: prior times a Gaussian site of the values at the inducing points.

    Attributes:
        points: Inducing points.
        factor: Cholesky factor $L$ of their kernel matrix.
        precision: Whitened precision $\bar\Lambda$ of the site.
        pull: Whitened precision-weighted mean $\bar\lambda$.
    """

    points: Float[Tensor, "m d"]
    factor: Float[Tensor, "m m"]
    precision: Float[Tensor, "m m"]
    pull: Float[Tensor, " m"]


@final
@dataclass(frozen=True, eq=False)
class StreamParameters:
    """What is learned along a stream.

    Attributes:
        log_lengthscale: Logarithm of the lengthscale.
        log_noise: Logarithm of the noise variance.
        points: Inducing points.
    """

    log_lengthscale: Float[Tensor, ""]
    log_noise: Float[Tensor, ""]
    points: Float[Tensor, "m d"]

    @property
    def variance(self) -> float:
        """Of the function at any input."""
        return 1.0

    def kernel(self, A: Float[Tensor, "i d"], B: Float[Tensor, "j d"]) -> Float[Tensor, "i j"]:
        """Evaluate the kernel."""
        scale = self.log_lengthscale.exp()
        return torch.exp(-0.5 * ((A.unsqueeze(1) - B) / scale).square().sum(-1))


class StreamingBound(NamedTuple):
    r"""The bound and what comes with it.

    Attributes:
        value: The bound, up to a constant of the carried site.
        site: The site after these observations, cut off from gradients.
        residual_trace: $\operatorname{tr}(K_{xx} - Q_{xx}) / \sigma^2$, which the paper calls trace 1.
        lost_trace: $\operatorname{tr} \bar\Lambda' (\bar K - T^\top T)$, trace 2.
    """

    value: Float[Tensor, ""]
    site: CarriedSite
    residual_trace: Float[Tensor, ""]
    lost_trace: Float[Tensor, ""]


def streaming_bound(
    parameters: StreamParameters,
    old: CarriedSite | None,
    X: Float[Tensor, "n d"],
    *,
    y: Float[Tensor, " n"],
    jitter: float,
) -> StreamingBound:
    r"""Bound the log density of new observations, given a site from earlier ones.

    With the site $(\bar\Lambda', \bar\lambda')$ at the old points, $T = L^{-1} K_{zz'} L'^{-\top}$,
    $\bar K = L'^{-1} K_{z'z'} L'^{-\top}$, $P = I + T \bar\Lambda' T^\top + \phi \phi^\top / \sigma^2$ and
    $\bar\lambda = T \bar\lambda' + \phi y / \sigma^2$, the bound is

    $$
    \tfrac12 \bar\lambda^\top P^{-1} \bar\lambda - \tfrac12 \log \lvert P \rvert + \log \mathcal N(y; 0, \sigma^2 I)
    - \tfrac12 \operatorname{tr}(K_{xx} - Q_{xx}) / \sigma^2
    - \tfrac12 \operatorname{tr} \bar\Lambda' (\bar K - T^\top T) .
    $$

    Args:
        parameters: Kernel, noise and inducing points.
        old: The site from earlier observations; None if there are none.
        X: Inputs of the new observations.
        y: Targets.
        jitter: Added to the diagonal of the kernel matrix of the inducing points.

    References:
        Bui, Nguyen, Turner (2017), Streaming sparse Gaussian process approximations.
    """
    Z, noise = parameters.points, parameters.log_noise.exp()
    eye = torch.eye(len(Z), dtype=Z.dtype)
    L = torch.linalg.cholesky(parameters.kernel(Z, Z) + jitter * eye)
    phi = torch.linalg.solve_triangular(L, parameters.kernel(Z, X), upper=False)
    precision, pull = phi @ phi.mT / noise, phi @ y / noise
    lost = torch.zeros((), dtype=Z.dtype)
    if old is not None:
        T, lost = _carry(parameters, old, L)
        precision, pull = precision + T @ old.precision @ T.mT, pull + T @ old.pull
    L_P = torch.linalg.cholesky(eye + precision)
    half = torch.linalg.solve_triangular(L_P, pull.unsqueeze(-1), upper=False)
    residual = (len(y) - phi.square().sum()) / noise
    density = -0.5 * (y.square().sum() / noise + len(y) * (2 * math.pi * noise).log())
    value = 0.5 * half.square().sum() - L_P.diagonal().log().sum() + density - 0.5 * (residual + lost)
    # An optimizer changes the points in place: the site keeps its own.
    site = CarriedSite(Z.detach().clone(), L.detach(), precision.detach(), pull.detach())
    return StreamingBound(value, site, residual.detach(), lost.detach())


def _carry(
    parameters: StreamParameters, old: CarriedSite, L: Float[Tensor, "m m"]
) -> tuple[Float[Tensor, "m k"], Float[Tensor, ""]]:
    """The matrix that brings the old site to the new points, and what of it they cannot express."""
    solve_old = partial(torch.linalg.solve_triangular, old.factor, upper=False)
    half = solve_old(parameters.kernel(old.points, parameters.points))
    T = torch.linalg.solve_triangular(L, half.mT, upper=False)
    K = solve_old(solve_old(parameters.kernel(old.points, old.points)).mT)
    return T, (old.precision * (K - T.mT @ T)).sum()
