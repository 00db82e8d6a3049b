r"""Tolerances for comparisons of results: derived from the problem, never from what a run happened to give.

There are four kinds of comparisons, and each has its function.

*Rounding.* Two ways to compute one number differ by some $\varepsilon \kappa |x|$: the rounding of the dtype times
the condition number of the matrices at hand, times the size of the values. `rounding` makes a tolerance of them, which
holds on any processor and with any order of summation, and is tight where the problem is easy.

*Approximation.* What is compared differs in exact arithmetic, by a known amount: the jitter of inducing points, the
stop of an iteration, the nodes of a quadrature, digits that were printed. `approximation` takes that amount and says
which of these it is.

*Chance.* Averages over a sample. `sampling` takes the standard error and allows five of them, which one in 1.7 million
draws exceeds; with the fixed seeds of the tests, it passes always or never.

*Judgement.* A result that must be good and not exact (an optimum found, a fit near the truth, a share of a sample) is
compared with a number in the test itself, as that number is the claim. Where it is a tolerance, `judgement` says so.

Tests of this library hold no other literal tolerances.
"""

import math
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor

if TYPE_CHECKING:
    from streamgp.conditioning import SparseGP

__all__ = [
    "approximation",
    "belief_rounding",
    "convergence",
    "evidence_jitter",
    "judgement",
    "prediction_jitter",
    "regression_condition",
    "rounding",
    "sampling",
    "tolerance",
    "within",
]

# Rounding errors of sums of n products grow between sqrt(n) and n units in the last place, and the sums here have
# tens of terms, a few one after the other. Values of exp and log are off by a few units.
_NUM_UNITS = 64.0

# Where no matrix is at hand: well-scaled Gaussian algebra, with the jitter of the library on kernel matrices of a few
# points. The condition number of such a matrix is at most the number of points over the relative jitter.
_USUAL_CONDITION = {torch.float64: 1e6, torch.float32: 250.0}

_NUM_STANDARD_ERRORS = 5.0


def rounding(dtype: torch.dtype, *, condition: float = 1.0, scale: float = 1.0) -> dict[str, Any]:
    """Return `rtol` and `atol` for two ways to compute the same numbers.

    Args:
        dtype: Precision of the computation under test.
        condition: Condition number of the problem: by how much it magnifies relative errors.
        scale: Size of the numbers that were added and subtracted on the way.
    """
    relative = _NUM_UNITS * torch.finfo(dtype).eps * condition
    return {"rtol": relative, "atol": relative * scale}


def tolerance(dtype: torch.dtype, *, scale: float = 1.0) -> dict[str, Any]:
    """`rounding` for well-scaled Gaussian algebra of which no condition number is at hand.

    Args:
        dtype: Precision of the computation under test.
        scale: Size of the numbers compared; multiplies the absolute tolerance.
    """
    return rounding(dtype, condition=_USUAL_CONDITION[dtype], scale=scale)


def belief_rounding(*gps: "SparseGP", scale: float = 1.0) -> dict[str, Any]:
    r"""`rounding` for predictions of one belief that was derived in several ways.

    On the way $I + \bar \Lambda$ is added to, subtracted from and factorized, so that its condition number magnifies
    errors; that of the kernel matrix does not, as inducing points and so the features of predictions are the same.

    Args:
        *gps: All beliefs on the way that precisions were added to or subtracted from.
        scale: Size of the numbers compared; multiplies the absolute tolerance.
    """
    values = [torch.linalg.eigvalsh(gp.whitened_covariance.detach().double()) for gp in gps]
    largest = max(float((1.0 / each[..., 0]).max()) for each in values)  # of the precisions
    smallest = min(float((1.0 / each[..., -1]).min()) for each in values)
    return rounding(gps[0].inducing_points.dtype, condition=largest / smallest, scale=scale)


def regression_condition(num_rows: int, noise_variance: float, *, prior_variance: float = 1.0) -> float:
    r"""Most that the condition number of $K + \sigma^2 I$ can be, and that of $I + \Phi \Phi^\top / \sigma^2$.

    Args:
        num_rows: Number of observations, whose kernel matrix has a trace of that times the variance.
        noise_variance: That of each, $\sigma^2$.
        prior_variance: That of the function.
    """
    return 1.0 + num_rows * prior_variance / noise_variance


def evidence_jitter(covariance: Tensor, residual: Tensor, jitter: float) -> dict[str, Any]:
    r"""Tolerance of a bound with inducing points at all inputs, beside the log marginal likelihood.

    Jitter $\epsilon$ on $A = K + \sigma^2 I$ moves $\log \mathcal{N}(r; 0, A)$ by $\frac{1}{2} \epsilon (\alpha^\top
    \alpha - \mathrm{tr}\, A^{-1})$ with $\alpha = A^{-1} r$, and leaves at most half of $\epsilon / \sigma^2$ a row.

    Args:
        covariance: The matrix $A$.
        residual: Targets less the mean, $r$; of several columns, the evidences are added.
        jitter: Number added to the diagonal, $\epsilon$.
    """
    inverse, columns = torch.linalg.inv(covariance.detach()), residual.detach().reshape(len(residual), -1)
    amount = jitter * (columns.shape[-1] * inverse.diagonal().sum() + (inverse @ columns).square().sum())
    return {"rtol": 0.0, "atol": float(amount)}


def prediction_jitter(covariance: Tensor, residual: Tensor, jitter: float) -> dict[str, Any]:
    r"""Tolerance of means at the observed inputs, which are the inducing points, beside those of an exact GP.

    They are $K A^{-1} r$, and jitter $\epsilon$ on $K$ and $A$ changes them by at most $2 \epsilon \|A^{-1} r\|$.

    Args:
        covariance: The matrix $A$.
        residual: Targets less the mean, $r$.
        jitter: What is added to the diagonal, $\epsilon$.
    """
    return {"rtol": 0.0, "atol": 2.0 * jitter * float(torch.linalg.solve(covariance, residual).norm())}


def convergence(decrease: float, *, curvature: float) -> dict[str, Any]:
    r"""Tolerance of an optimum where a search has stopped as its values no longer improve.

    Near an optimum they are $\frac{1}{2} c (x - x^*)^2$ from the best one.

    Args:
        decrease: The improvement at which the search stops.
        curvature: The second derivative, $c$; the smallest of them, if there are several.
    """
    return {"rtol": 0.0, "atol": math.sqrt(2.0 * decrease / curvature)}


def approximation(
    amount: float,
    reason: Literal["jitter", "iteration", "quadrature", "printed", "finite differences", "model"],
    *,
    scale: float = 1.0,
) -> dict[str, Any]:
    """Return `rtol` and `atol` for numbers that differ by a known amount in exact arithmetic.

    Args:
        amount: The difference, relative to the values and to their scale.
        reason: Origin of the difference.
        scale: Size of the numbers compared; multiplies the absolute tolerance.
    """
    del reason  # for the reader
    return {"rtol": amount, "atol": amount * scale}


def sampling(standard_error: float) -> dict[str, Any]:
    """Return `rtol` and `atol` for an average over a sample.

    Args:
        standard_error: That of the average.
    """
    return {"rtol": 0.0, "atol": _NUM_STANDARD_ERRORS * standard_error}


def judgement(*, absolute: float = 0.0, relative: float = 0.0) -> dict[str, Any]:
    """Return `rtol` and `atol` for a result that must be good and not exact: the numbers are the claim.

    Args:
        absolute: Largest difference that is accepted.
        relative: Largest difference relative to the values.
    """
    return {"rtol": relative, "atol": absolute}


def within(tolerances: dict[str, Any]) -> dict[str, Any]:
    """Return tolerances under the names that `pytest.approx` has for them."""
    return {"rel": tolerances["rtol"], "abs": tolerances["atol"]}
