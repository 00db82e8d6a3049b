import math

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from paper.baselines.streaming_bound import StreamParameters, streaming_bound
from streamgp.testing.tolerances import rounding, tolerance, within

JITTER = 1e-6


def parameters(points, *, lengthscale=0.5, noise=0.1):
    logs = (torch.tensor(math.log(value), dtype=torch.float64) for value in (lengthscale, noise))
    return StreamParameters(*logs, points)


def rows(rng, n):
    X = 4.0 * torch.rand(n, 1, generator=rng, dtype=torch.float64)
    return X, torch.sin(3.0 * X).squeeze(-1) + 0.1 * torch.randn(n, generator=rng, dtype=torch.float64)


def points(*values):
    return torch.tensor(values, dtype=torch.float64).unsqueeze(-1)


def kernel(A, B, lengthscale):
    return np.exp(-0.5 * (A - B.T) ** 2 / lengthscale**2)


def log_normal(y, covariance):
    sign, log_determinant = np.linalg.slogdet(covariance)
    assert sign > 0
    return -0.5 * (y @ np.linalg.solve(covariance, y) + log_determinant + len(y) * np.log(2 * np.pi))


def dense_bound(old, new, X, y):
    """The bound as the paper prints it, with the joint Nyström matrix of pseudo-data and new data."""
    lengthscale, noise = float(new.log_lengthscale.exp()), float(new.log_noise.exp())
    Z, x, y = new.points.numpy(), X.numpy(), y.numpy()
    K = kernel(Z, Z, lengthscale) + JITTER * np.eye(len(Z))
    covariance, targets, traces = noise * np.eye(len(x)), y, 0.0
    inputs = x
    if old is not None:
        L = old.factor.numpy()
        precision = np.linalg.solve(L.T, np.linalg.solve(L.T, old.precision.numpy()).T)
        noise_hat = np.linalg.inv(precision)
        a = old.points.numpy()
        inputs, targets = (
            np.concatenate([a, x]),
            np.concatenate([noise_hat @ np.linalg.solve(L.T, old.pull.numpy()), y]),
        )
        covariance = np.block([[noise_hat, np.zeros((len(a), len(x)))], [np.zeros((len(x), len(a))), covariance]])
        Q = kernel(a, Z, lengthscale) @ np.linalg.solve(K, kernel(Z, a, lengthscale))
        traces += np.trace(precision @ (kernel(a, a, lengthscale) - Q))
    cross = kernel(inputs, Z, lengthscale)
    Q = cross @ np.linalg.solve(K, cross.T)
    traces += np.trace(np.eye(len(x)) - Q[-len(x) :, -len(x) :]) / noise
    return log_normal(targets, Q + covariance) - 0.5 * traces


def test_without_a_carried_site_it_is_the_collapsed_bound_of_sparse_regression(rng):
    X, y = rows(rng, 8)
    new = parameters(points(0.5, 1.5, 2.5, 3.5))
    bound = streaming_bound(new, None, X, y=y, jitter=JITTER)
    assert float(bound.value) == pytest.approx(
        dense_bound(None, new, X, y), **within(rounding(torch.float64, condition=1e3))
    )
    assert float(bound.lost_trace) == 0.0


def test_with_a_carried_site_it_differs_from_the_dense_bound_by_a_constant_of_the_site(rng):
    X, y = rows(rng, 12)
    old = streaming_bound(parameters(points(0.5, 1.5, 2.5, 3.5)), None, X, y=y, jitter=JITTER).site
    X, y = rows(rng, 5)
    settings = [
        parameters(points(0.5, 1.5, 2.5, 3.5)),
        parameters(points(0.3, 1.9, 2.6), lengthscale=0.8, noise=0.05),
        parameters(points(0.1, 1.0, 2.0, 3.0, 4.0), lengthscale=0.4, noise=0.3),
    ]
    found = [
        float(streaming_bound(new, old, X, y=y, jitter=JITTER).value) - dense_bound(old, new, X, y) for new in settings
    ]
    assert found == pytest.approx([found[0]] * len(found), **within(tolerance(torch.float64)))


def test_two_blocks_at_the_same_points_give_the_site_of_both_at_once(rng):
    X, y = rows(rng, 10)
    same = parameters(points(0.5, 1.5, 2.5, 3.5))
    first = streaming_bound(same, None, X[:6], y=y[:6], jitter=0.0).site
    twice = streaming_bound(same, first, X[6:], y=y[6:], jitter=0.0)
    once = streaming_bound(same, None, X, y=y, jitter=0.0).site
    assert_close(twice.site.precision, once.precision, **tolerance(torch.float64, scale=100.0))
    assert_close(twice.site.pull, once.pull, **tolerance(torch.float64, scale=100.0))
    assert float(twice.lost_trace) == pytest.approx(0.0, **within(rounding(torch.float64, condition=1e4)))


def test_jitter_takes_some_of_what_was_known_with_every_block(rng):
    X, y = rows(rng, 10)
    same = parameters(points(0.5, 0.9, 1.3, 1.7, 2.1))
    known = []
    for jitter in (1e-3, 1e-9):
        site = streaming_bound(same, None, X, y=y, jitter=jitter).site
        start = float(site.precision.trace())
        for _ in range(20):
            site = streaming_bound(same, site, X[:0], y=y[:0], jitter=jitter).site
        known.append(float(site.precision.trace()) / start)
    assert known[0] < 0.95 < 0.9999 < known[1]


def test_points_that_an_optimizer_moves_leave_the_site_alone(rng):
    X, y = rows(rng, 6)
    Z = points(0.5, 1.5, 2.5)
    site = streaming_bound(parameters(Z), None, X, y=y, jitter=JITTER).site
    Z += 1.0
    assert_close(site.points, points(0.5, 1.5, 2.5))
