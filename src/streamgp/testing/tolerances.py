r"""How far results may be from what they should be: derived from the problem, never from what a run happened to give.

There are four kinds of comparisons, and each has its function.

*Rounding.* Two ways to compute one number differ by some $\varepsilon \kappa |x|$: the rounding of the dtype times
the condition number of the matrices at hand, times the size of the values. `rounding` makes a tolerance of them; the
references in `streamgp.testing.reference` return such a bound with each prediction, entry by entry. Both hold on any
processor and with any order of summation, and are tight where the problem is easy.

*Approximation.* What is compared differs in exact arithmetic, by a known amount: the jitter of inducing points, the
stop of an iteration, the nodes of a quadrature, digits that were printed. `approximation` takes that amount and says
which of these it is.

*Chance.* Averages over a sample. `sampling` takes the standard error and allows five of them, which one in 1.7 million
draws exceeds; with the fixed seeds of the tests, it passes always or never.

*Judgement.* A result that must be good and not exact (an optimum found, a fit near the truth, a share of a sample) is
compared with a number in the test itself, as that number is the claim. The laws in `streamgp.testing` and the tests of
`linalg`, `gp` and `conditioning` have hardly any other literal tolerances. Tests of training and of what is built on it
have some that are rounding or approximations and still written as numbers; new ones use the functions below.
"""

from typing import TYPE_CHECKING, Any, Literal

import torch

if TYPE_CHECKING:
    from streamgp.conditioning import SparseGP

__all__ = ["approximation", "belief_rounding", "rounding", "sampling", "tolerance"]

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

    On the way $I + \bar \Lambda$ is added to, subtracted from and factorised, so that its condition number magnifies
    errors; that of the kernel matrix does not, as inducing points and so the features of predictions are the same.

    Args:
        *gps: All beliefs on the way that precisions were added to or subtracted from.
        scale: Size of the numbers compared; multiplies the absolute tolerance.
    """
    values = [torch.linalg.eigvalsh(gp.whitened_covariance.detach().double()) for gp in gps]
    largest = max(float((1.0 / each[..., 0]).max()) for each in values)  # of the precisions
    smallest = min(float((1.0 / each[..., -1]).min()) for each in values)
    return rounding(gps[0].inducing_points.dtype, condition=largest / smallest, scale=scale)


def approximation(
    amount: float, reason: Literal["jitter", "iteration", "quadrature", "printed", "finite differences", "model"]
) -> dict[str, Any]:
    """Return `rtol` and `atol` for numbers that differ by a known amount in exact arithmetic.

    Args:
        amount: The difference, relative to the values and to one.
        reason: Where it comes from.
    """
    del reason  # for the reader
    return {"rtol": amount, "atol": amount}


def sampling(standard_error: float) -> dict[str, Any]:
    """Return `rtol` and `atol` for an average over a sample.

    Args:
        standard_error: That of the average.
    """
    return {"rtol": 0.0, "atol": _NUM_STANDARD_ERRORS * standard_error}
