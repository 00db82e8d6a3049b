"""Linear algebra: bounded-jitter Cholesky factors, shared triangular solves, pivoted Cholesky."""

from streamgp.linalg.cholesky import (
    apply,
    cholesky,
    extend_cholesky,
    factorize,
    solve_lower,
    solve_lower_transpose,
    solve_vector,
)
from streamgp.linalg.eigen import symmetric_eigen, symmetric_eigenvalues
from streamgp.linalg.pivoted import PivotedCholesky, pivoted_cholesky

__all__ = [
    "PivotedCholesky",
    "apply",
    "cholesky",
    "extend_cholesky",
    "factorize",
    "pivoted_cholesky",
    "solve_lower",
    "solve_lower_transpose",
    "solve_vector",
    "symmetric_eigen",
    "symmetric_eigenvalues",
]
