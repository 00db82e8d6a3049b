"""Online GPs are exact until basis vectors go, and then follow the formulas of Csató and Opper."""

import pytest
import torch
from torch.testing import assert_close

from paper.problems.basis_vector_gp import BasisVectorGP, SquaredExponential
from streamgp.errors import ShapeError, ValueRangeError
from streamgp.testing.tolerances import tolerance

NOISE = 0.05


def problem(rng, n, dtype=torch.float64, d=2):
    X = 3.0 * torch.rand(n, d, generator=rng, dtype=dtype)
    kernel = SquaredExponential(1.3, torch.tensor([2.0, 0.7][:d], dtype=dtype))
    return kernel, X, X.sum(-1).sin() + 0.1 * torch.randn(n, generator=rng, dtype=dtype)


def exact(kernel, X, y, W, prior_mean):
    K = kernel(X, X) + NOISE * torch.eye(len(X), dtype=X.dtype)
    k = kernel(W, X)
    A = torch.linalg.solve(K, k.mT)
    return prior_mean + A.mT @ (y - prior_mean), kernel.signal_variance - (k * A.mT).sum(-1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_without_deletions_it_is_an_exact_gp(rng, dtype, is_weighted):
    kernel, X, y = problem(rng, 12, dtype)
    W = 3.0 * torch.rand(7, 2, generator=rng, dtype=dtype)
    gp = BasisVectorGP.empty(
        kernel, noise_variance=NOISE, max_basis=12, prior_mean=0.5, is_weighted=is_weighted, novelty=0.0
    ).learn(X, y)
    mean, variance = exact(kernel, X, y, W, 0.5)
    condition = float(torch.linalg.cond(kernel(X, X).double() + NOISE * torch.eye(12)))
    found, spread = gp.predict(W)
    assert_close(found, mean, **tolerance(dtype, scale=condition))
    assert_close(spread, variance, **tolerance(dtype, scale=condition))
    assert_close(0.5 + kernel(W, gp.points) @ gp.weights, mean, **tolerance(dtype, scale=condition))


def test_repeated_rows_are_learned_without_new_basis_vectors(rng):
    kernel, X, y = problem(rng, 6)
    twice, targets = torch.cat([X, X]), torch.cat([y, y + 0.2])
    gp = BasisVectorGP.empty(kernel, noise_variance=NOISE, max_basis=20).learn(twice, targets)
    assert len(gp.points) == 6
    mean, variance = exact(kernel, twice, targets, X, 0.0)
    found, spread = gp.predict(X)
    assert_close(found, mean, **tolerance(torch.float64, scale=1e3))
    assert_close(spread, variance, **tolerance(torch.float64, scale=1e3))


def dense_removal(kernel, gp, index, *, is_weighted):
    """The formulas as they are printed, with α, C and Q; the loss of each basis vector, and the rest without one."""
    K = kernel(gp.points, gp.points)
    Q, V = torch.linalg.inv(K), gp.root @ gp.covariance @ gp.root.mT
    alpha, C = gp.weights, Q @ (V - K) @ Q
    both, eye = Q + C, torch.eye(len(K), dtype=K.dtype)
    target = alpha
    if is_weighted:
        target = (eye + (eye + C @ K) / (alpha @ K @ alpha)) @ alpha

    def remove(i):
        q, s = Q[i], both[i]
        C_hat = C + torch.outer(q, q) / q[i] - torch.outer(s, s) / s[i]
        column = q if is_weighted else s
        return target - target[i] / column[i] * column, C_hat

    losses = alpha.square() / both.diagonal()
    if is_weighted:
        losses = []
        for i in range(len(K)):
            a_hat, C_hat = remove(i)
            V_hat = torch.linalg.inv(C_hat + Q)
            losses.append(
                (2 * target - alpha - a_hat) @ V_hat @ (alpha - a_hat)
                + torch.trace((C - C_hat) @ V_hat)
                - torch.linalg.slogdet(both @ V_hat)[1]
            )
        losses = torch.stack(losses)
    kept = [i for i in range(len(K)) if i != int(losses.argmin())]
    a_hat, C_hat = remove(int(losses.argmin()))
    return gp.points[kept], a_hat[kept], C_hat[kept][:, kept]


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("num_rows", [6, 7, 9])
def test_a_deletion_follows_the_printed_formulas(rng, num_rows, is_weighted):
    kernel, X, y = problem(rng, num_rows)
    y = y + 2.0
    full = BasisVectorGP.empty(kernel, noise_variance=NOISE, max_basis=num_rows, is_weighted=is_weighted, novelty=0.0)
    before = full.learn(X, y)
    points, alpha, C = dense_removal(kernel, before, 0, is_weighted=is_weighted)
    after = before._without_least()
    assert_close(after.points, points)
    W = 3.0 * torch.rand(5, 2, generator=rng, dtype=torch.float64)
    k = kernel(W, points)
    mean, variance = after.predict(W)
    assert_close(mean, k @ alpha, **tolerance(torch.float64, scale=1e4))
    expected = kernel.signal_variance + ((k @ C) * k).sum(-1)
    assert_close(variance, expected, **tolerance(torch.float64, scale=1e4))
    assert_close(after.root @ after.root.mT, kernel(points, points), **tolerance(torch.float64, scale=1e2))


@pytest.mark.parametrize("is_weighted", [False, True])
def test_few_basis_vectors_still_predict_what_they_have_seen(rng, is_weighted):
    kernel, X, y = problem(rng, 60)
    gp = BasisVectorGP.empty(kernel, noise_variance=NOISE, max_basis=15, is_weighted=is_weighted).learn(X, y)
    assert len(gp.points) == 15
    mean, variance = gp.predict(X)
    assert (mean - y).square().mean() < 0.2 * y.var()
    assert ((variance > 0.0) & (variance <= kernel.signal_variance + 1e-9)).all()


def test_the_weighted_one_keeps_what_is_large(rng):
    """Of two bumps that are seen alike, more basis vectors stay at the higher one."""
    X = torch.cat([torch.linspace(0, 1, 20), torch.linspace(9, 10, 20)]).double().unsqueeze(-1)
    y = torch.cat([torch.full((20,), 0.5), torch.full((20,), 3.0)]).double()
    kernel = SquaredExponential(1.0, torch.tensor([30.0], dtype=torch.float64))
    order = torch.randperm(40, generator=rng)
    counts = {}
    for is_weighted in (False, True):
        gp = BasisVectorGP.empty(kernel, noise_variance=NOISE, max_basis=6, is_weighted=is_weighted)
        counts[is_weighted] = int((gp.learn(X[order], y[order]).points > 5.0).sum())
    assert counts[True] >= counts[False] >= 3


def test_what_cannot_be_learned_is_refused(rng):
    kernel, X, y = problem(rng, 3)
    with pytest.raises(ValueRangeError, match="noise_variance and max_basis must be positive"):
        BasisVectorGP.empty(kernel, noise_variance=0.0, max_basis=3)
    with pytest.raises(ShapeError, match="one value for each row of X"):
        BasisVectorGP.empty(kernel, noise_variance=0.1, max_basis=3).learn(X, y[:2])
