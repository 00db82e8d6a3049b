"""Streams that several tests of streams look at."""

import numpy as np

from streamgp.streams.buffer import Buffer, Units
from streamgp.streams.compiling import HAS_NUMBA
from streamgp.streams.prior import Prior
from streamgp.streams.refit import Fitted
from streamgp.streams.state import Belief

PRIOR = Prior(np.array([0.7, 2.0, 3.0]), 1.0, 100.0, 0.2, 50.0, 0.1, 0.05)


def moving_rows(num_rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of three columns, of which the first is time."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((num_rows, 3))
    X[:, 0] = np.arange(num_rows) / 60.0 - 2.0
    return X, np.sin(3.0 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(num_rows)


def prior_belief(points: np.ndarray, prior: Prior = PRIOR) -> Belief:
    """Return what is known before the first row."""
    return plain_fit(prior).new_belief(points.copy())


def plain_fit(prior: Prior = PRIOR) -> Fitted:
    """Return hyperparameters for rows that need no scaling."""
    return Fitted(Units.plain(3), prior)


def buffer_of(X: np.ndarray, y: np.ndarray) -> Buffer:
    """Return a buffer of these rows, as they are."""
    buffer = Buffer.empty(X.shape[1])
    buffer.append(X, y, np.ones(len(y)), np.arange(len(y)), Units.plain(X.shape[1]))
    return buffer


def called_from_python(function):
    """Compile a function of a test that calls parts of compiled functions, which Python cannot call itself."""
    if not HAS_NUMBA:
        return function
    from numba import njit

    return njit(function)
