from functools import partial

import torch
from torch.testing import assert_close

from streamgp.streaming.hyperparameters import FittedHyperparameters, default_kernel, learn_hyperparameters
from streamgp.streaming.robust import _residuals, learn_robustly
from streamgp.testing.tolerances import approximation, rounding

NOISE = 0.1


def _rows(num_rows=150):
    draw = torch.Generator().manual_seed(0)
    X = torch.rand(num_rows, 2, generator=draw, dtype=torch.float64).mul(4.0).sub(2.0)
    noise = NOISE * torch.randn(num_rows, generator=draw, dtype=torch.float64)
    return X, (torch.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1] + noise).unsqueeze(0), draw


def _search(X):
    return partial(
        learn_hyperparameters,
        kernel=default_kernel(X.shape[-1]),
        before=None,
        noise_variance=None,
        num_inducing=30,
        seed=0,
    )


def test_outliers_are_found_and_leave_the_noise_as_it_is():
    X, Y, draw = _rows()
    Y[:, ::25] += 8.0 * torch.randn(1, 6, generator=draw, dtype=torch.float64).sign()
    found = learn_robustly(X, Y, _search(X))
    assert found.share == 6 / 150
    assert 30.0 < found.variance < 100.0
    inputs, targets = found.explained(X, Y)
    assert torch.equal(inputs, X[torch.arange(150) % 25 != 0])
    assert float(targets.abs().max()) < 4.0
    assert_close(targets.mean(), torch.zeros((), dtype=X.dtype), **rounding(X.dtype))
    assert 0.5 * NOISE**2 < found.learned.noise_variance < 2.0 * NOISE**2
    assert learn_robustly(X, Y, _search(X)).learned.noise_variance < 0.01 * _search(X)(X, Y)[0].noise_variance


def test_without_outliers_it_is_the_plain_fit():
    X, Y, _ = _rows()
    found = learn_robustly(X, Y, _search(X))
    plain, _ = _search(X)(X, Y - Y.mean())
    assert found.share == 0.0
    assert found.learned.bound == plain.bound


def test_rows_that_their_inputs_explain_are_none():
    X, Y, _ = _rows()
    is_rare = torch.arange(150) % 25 == 0
    X = torch.cat([X, is_rare.double().unsqueeze(-1).sub(0.04).div(0.2)], -1)
    assert learn_robustly(X, Y + 8.0 * is_rare, _search(X)).share == 0.0


def test_far_rows_that_are_too_many_are_no_outliers():
    X, Y, _ = _rows()
    Y[:, ::3] += 20.0
    assert learn_robustly(X, Y, _search(X)).share == 0.0


def test_a_row_is_far_for_all_outputs_if_it_is_for_one():
    X, Y, _ = _rows()
    Y = torch.cat([Y, -Y])
    Y[1, 7] += 20.0
    assert learn_robustly(X, Y, _search(X)).share == 1 / 150


def test_residuals_are_those_of_exact_gps_without_the_row_and_without_far_ones():
    X, Y, _ = _rows(12)
    kernel = default_kernel(2).requires_grad_(False)
    is_far = torch.arange(12) % 5 == 0
    found = _residuals(X, Y, FittedHyperparameters(kernel, 0.3, X), is_far)
    K = kernel(X).to_dense()
    for index in range(12):
        used = ~is_far & (torch.arange(12) != index)
        A = K[used][:, used] + 0.3 * torch.eye(int(used.sum()), dtype=torch.float64)
        left = Y[0, index] - K[index, used] @ torch.linalg.solve(A, Y[0, used])
        assert_close(found[0, index], left, **approximation(1e-6, "jitter"))
