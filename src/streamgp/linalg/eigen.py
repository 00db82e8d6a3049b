"""Eigenvalues of symmetric matrices, whose failures are errors of the library."""

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.errors import NumericalError

__all__ = ["symmetric_eigen", "symmetric_eigenvalues"]


def symmetric_eigen(
    matrix: Float[Tensor, "*b n n"], *, name: str = "the matrix"
) -> tuple[Float[Tensor, "*b n"], Float[Tensor, "*b n n"]]:
    r"""Decompose $A = V \operatorname{diag}(w) V^\top$ with ascending eigenvalues $w$.

    Args:
        matrix: Symmetric matrix $A$; only the lower triangle is read.
        name: What the matrix is, for the error message.

    Returns:
        The eigenvalues $w$, and the eigenvectors $V$ as columns.

    Raises:
        NumericalError: If the matrix is not finite, or LAPACK finds no decomposition.
    """
    try:
        values, vectors = torch.linalg.eigh(matrix)
    except RuntimeError as error:  # torch's _LinAlgError, which has no public name, is one
        raise _error(name) from error
    # Depending on the library beneath, entries that are not finite raise, or lead to NaN.
    if not torch.isfinite(values.detach().sum()):
        raise _error(name)
    return values, vectors


def symmetric_eigenvalues(matrix: Float[Tensor, "*b n n"], *, name: str = "the matrix") -> Float[Tensor, "*b n"]:
    """Find the eigenvalues alone, ascending; the largest may overflow where entries are near the largest number.

    Args:
        matrix: Symmetric matrix; only the lower triangle is read.
        name: What the matrix is, for the error message.

    Raises:
        NumericalError: If the matrix is not finite, or LAPACK finds no eigenvalues.
    """
    try:
        values: Tensor = torch.linalg.eigvalsh(matrix)
    except RuntimeError as error:
        raise _error(name) from error
    if bool(values.detach().isnan().any()):
        raise _error(name)
    return values


def _error(name: str) -> NumericalError:
    return NumericalError(
        f"{name} has no eigenvalues that could be computed: it has entries that are NaN or infinite, or is too badly "
        "scaled. Check the scale of inputs, targets and hyperparameters for overflow, or use float64."
    )
