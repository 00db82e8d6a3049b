"""O-SVGP row by row from a fitted GP: a step of Adam on the uncollapsed streaming bound for each."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

import torch
from gpytorch.kernels import MaternKernel
from jaxtyping import Float
from torch import Tensor

from paper.baselines.osvgp import ValueBelief, uncollapsed_bound
from streamgp.conditioning import SparseGP
from streamgp.gp import StationaryKernel

__all__ = ["MaternParameters", "follow_rows"]

# As in the configuration of the authors of O-SVGP with weighted divergences.
_RATE = 1e-3
_JITTER = 1e-4


@final
@dataclass(frozen=True, eq=False)
class MaternParameters:
    """What is learned along a stream, for a scaled Matérn-5/2 kernel.

    Attributes:
        log_lengthscale: Logarithms of the lengthscales.
        log_outputscale: Logarithm of the variance.
        log_noise: Logarithm of the noise variance.
        points: Inducing points.
    """

    log_lengthscale: Float[Tensor, " d"]
    log_outputscale: Float[Tensor, ""]
    log_noise: Float[Tensor, ""]
    points: Float[Tensor, "m d"]

    @property
    def variance(self) -> Float[Tensor, ""]:
        """Of the function at any input."""
        return self.log_outputscale.exp()

    def kernel(self, A: Float[Tensor, "i d"], B: Float[Tensor, "j d"]) -> Float[Tensor, "i j"]:
        """Evaluate the kernel."""
        return StationaryKernel.matern(2.5, self.log_lengthscale.exp().unsqueeze(0), self.variance).matrix(A, B)


def follow_rows(
    gp: SparseGP,
    noise_variance: float,
    X: Float[Tensor, "n d"],
    y: Float[Tensor, " n"],
    *,
    X_test: Float[Tensor, "t d"],
    marks: list[int],
    beta: float = 1.0,
) -> Iterator[Float[Tensor, " t"]]:
    """Learn rows one by one: kernel, noise, inducing points and belief, all by Adam.

    Args:
        gp: The first fit, with a scaled Matérn-5/2 kernel and a constant mean, which stays as it is.
        noise_variance: That of the first fit.
        X: Inputs of the rows.
        y: Their targets.
        X_test: Where to predict.
        marks: After how many rows.
        beta: Weight of all divergences.

    Yields:
        Predicted means at each mark.

    References:
        Bui, Nguyen, Turner (2017), Streaming sparse Gaussian process approximations.
        Stanton, Maddox, Delbridge, Wilson (2021), Kernel interpolation for scalable online Gaussian processes.
    """
    constant = float(gp.mean(X[:1]))
    parameters, mean, raw = _start(gp, noise_variance, constant)
    learned = [parameters.log_lengthscale, parameters.log_outputscale, parameters.log_noise, parameters.points]
    adam = torch.optim.Adam([*learned, mean, raw], lr=_RATE)
    for row in range(len(y)):
        old = _belief(parameters, mean, raw)
        adam.zero_grad()
        bound = uncollapsed_bound(
            parameters,
            (mean, raw.tril()),
            old,
            X=X[row : row + 1],
            y=y[row : row + 1] - constant,
            jitter=_JITTER,
            beta=beta,
        )
        (-bound).backward()
        adam.step()
        if row + 1 in marks:
            with torch.no_grad():
                belief = _belief(parameters, mean, raw)
                weights = torch.linalg.solve(belief.prior, belief.mean)
                yield constant + parameters.kernel(X_test, parameters.points) @ weights


def _start(gp: SparseGP, noise_variance: float, constant: float) -> tuple[MaternParameters, Tensor, Tensor]:
    kernel: Any = gp.kernel
    assert isinstance(kernel.base_kernel, MaternKernel)
    assert kernel.base_kernel.nu == 2.5
    Z = gp.inducing_points.detach().clone()
    at_points = gp.predict(Z, covariance=True)
    S = at_points.covariance.detach() + _JITTER * torch.eye(len(Z), dtype=Z.dtype)
    values = (
        kernel.base_kernel.lengthscale.detach().reshape(-1).log(),
        kernel.outputscale.detach().reshape(()).log(),
        Z.new_tensor(noise_variance).log(),
        Z,
    )
    parameters = MaternParameters(*(value.clone().requires_grad_(True) for value in values))
    mean = (at_points.mean.detach() - constant).clone().requires_grad_(True)
    return parameters, mean, torch.linalg.cholesky(S).requires_grad_(True)


@torch.no_grad()
def _belief(parameters: MaternParameters, mean: Tensor, raw: Tensor) -> ValueBelief:
    """The belief as it is now, cut off from gradients."""
    points = parameters.points.detach().clone()
    prior = parameters.kernel(points, points) + _JITTER * torch.eye(len(points), dtype=points.dtype)
    return ValueBelief(points, mean.detach().clone(), raw.detach().tril(), prior)
