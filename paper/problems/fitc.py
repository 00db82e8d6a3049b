"""Hyperparameters by the FITC likelihood with pseudo-inputs, after Snelson and Ghahramani."""

import contextlib
import math
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from jaxtyping import Float
from scipy.optimize import minimize
from torch import Tensor

__all__ = ["FitcHyperparameters", "fit_fitc", "fitc_loss"]

_JITTER = 1e-6


@final
@dataclass(frozen=True, eq=False)
class FitcHyperparameters:
    """What a fit found, as logarithms.

    Attributes:
        log_inverse_squares: Of inverse squared lengthscales.
        log_signal_variance: Of the variance of the function.
        log_noise_variance: Of the variance of the noise.
        pseudo_inputs: The pseudo-inputs.
        loss: Negative log likelihood of all targets.
    """

    log_inverse_squares: Float[Tensor, " d"]
    log_signal_variance: float
    log_noise_variance: float
    pseudo_inputs: Float[Tensor, "m d"]
    loss: float


class _EnoughError(Exception):
    """The number of evaluations is used up."""


def fitc_loss(
    X: Float[Tensor, "n d"],
    y: Float[Tensor, " n"],
    Z: Float[Tensor, "m d"],
    *,
    log_inverse_squares: Float[Tensor, " d"],
    log_signal_variance: Float[Tensor, ""],
    log_noise_variance: Float[Tensor, ""],
) -> Float[Tensor, ""]:
    r"""Negative log likelihood of targets $y \sim N(0, Q + \operatorname{diag}(K - Q) + \sigma^2 I)$.

    Args:
        X: Inputs.
        y: Targets, centered.
        Z: Pseudo-inputs, whose Nyström approximation of $K$ is $Q$.
        log_inverse_squares: Logarithms of inverse squared lengthscales.
        log_signal_variance: Logarithm of the variance of the function.
        log_noise_variance: Logarithm of $\sigma^2$.
    """
    scale, signal = (0.5 * log_inverse_squares).exp(), log_signal_variance.exp()

    def covariance(A: Tensor, B: Tensor) -> Tensor:
        A, B = (A - center) * scale, (B - center) * scale
        squares = A.square().sum(-1, keepdim=True) - 2.0 * (A @ B.mT) + B.square().sum(-1)
        return signal * (-0.5 * squares.clamp_min(0.0)).exp()

    center = X.mean(0)
    eye = torch.eye(len(Z), dtype=X.dtype)
    L = torch.linalg.cholesky(covariance(Z, Z) + _JITTER * signal * eye)
    V = torch.linalg.solve_triangular(L, covariance(Z, X), upper=False)
    diagonal = signal + log_noise_variance.exp() - V.square().sum(0)
    W = V / diagonal
    R = torch.linalg.cholesky(eye + W @ V.mT)
    b = torch.linalg.solve_triangular(R, (W @ y).unsqueeze(-1), upper=False)
    fit = (y.square() / diagonal).sum() - b.square().sum()
    volume = diagonal.log().sum() + 2.0 * R.diagonal().log().sum()
    return 0.5 * (fit + volume + len(y) * math.log(2.0 * math.pi))


def fit_fitc(
    X: Float[Tensor, "n d"], y: Float[Tensor, " n"], *, num_pseudo: int, num_evaluations: int = 200, seed: int = 1
) -> FitcHyperparameters:
    """Fit hyperparameters and pseudo-inputs together by conjugate gradients.

    Starts: pseudo-inputs at random rows, lengthscales of half the range of inputs and a bit, the variance of the
    targets as that of the function, a quarter of it as noise.

    Args:
        X: Inputs.
        y: Targets; their mean is taken off.
        num_pseudo: Number of pseudo-inputs.
        num_evaluations: Evaluations of likelihood and gradient.
        seed: Of the choice of rows.
    """
    n, d = X.shape
    y = y - y.mean()
    rows = np.random.RandomState(seed).permutation(n)[:num_pseudo]
    width = X.amax(0) - X.amin(0)
    variance = float(y.var(correction=0))
    start = torch.cat(
        [
            X[rows].flatten(),
            -2.0 * ((width + 0.1) / 2.0).log(),
            torch.tensor([math.log(variance + 0.1), math.log(variance / 4.0 + 0.01)], dtype=X.dtype),
        ]
    )
    best, best_loss, num_done = start, math.inf, 0

    def evaluate(values: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal best, best_loss, num_done
        if num_done == num_evaluations:
            raise _EnoughError
        num_done += 1
        vector = torch.from_numpy(values.copy()).requires_grad_()
        try:
            loss = fitc_loss(X, y, **_parts(vector, num_pseudo, d))
        except torch.linalg.LinAlgError:  # type: ignore[attr-defined] # not in its list of exports
            return 1e10, np.zeros_like(values)  # too far: the line search comes back
        (gradient,) = torch.autograd.grad(loss, vector)
        value = loss.item()
        if value < best_loss:
            best, best_loss = vector.detach(), value
        return value, gradient.numpy()

    with contextlib.suppress(_EnoughError):
        minimize(evaluate, start.numpy(), jac=True, method="CG", options={"maxiter": num_evaluations})
    found = _parts(best, num_pseudo, d)
    return FitcHyperparameters(
        found["log_inverse_squares"],
        float(found["log_signal_variance"]),
        float(found["log_noise_variance"]),
        found["Z"],
        best_loss,
    )


def _parts(vector: Tensor, num_pseudo: int, d: int) -> dict[str, Tensor]:
    Z, scales, rest = vector.split([num_pseudo * d, d, 2])
    return {
        "Z": Z.reshape(num_pseudo, d),
        "log_inverse_squares": scales,
        "log_signal_variance": rest[0],
        "log_noise_variance": rest[1],
    }
