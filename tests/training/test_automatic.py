import warnings

import numpy as np
import pytest
import torch
from gpytorch.kernels import LinearKernel, MaternKernel, RBFKernel, ScaleKernel

import streamgp as sg
from streamgp.errors import StreamGPWarning
from streamgp.testing.tolerances import judgement, within


def hidden(n, *, num_columns=32, seed=0):
    """A function of 2 of many columns without a linear part, of which a fit that starts badly sees noise alone."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, num_columns))
    f = X[:, 3] * np.cos(2.5 * X[:, 0])
    return X, f, f + 0.1 * rng.normal(size=n)


def fine(n, *, seed=0):
    """A function with more detail than a hundred points can hold."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3))
    f = np.sin(14 * X[:, 0]) * np.cos(11 * X[:, 1]) + np.sin(9 * X[:, 2])
    return X, f, f + 0.05 * rng.normal(size=n)


def error(result, X, f):
    return float(np.sqrt(np.mean((result.predict(X).mean - f) ** 2)))


def test_few_rows_are_fitted_exactly():
    X, _, y = fine(300)
    result = sg.fit(X, y)
    assert result.info.num_inducing == 300
    assert result.info.doubling_gain == 0.0
    noise = float(result.likelihood.noise_variance)
    kernel, mean = result.gp.kernel, result.gp.mean
    inputs, targets = torch.from_numpy(X), torch.from_numpy(y)
    covariance = kernel(inputs).to_dense().detach() + noise * torch.eye(300, dtype=torch.float64)
    weights = torch.linalg.solve(covariance, targets - mean(inputs).detach())
    new = torch.from_numpy(fine(40, seed=1)[0])
    dense = mean(new).detach() + kernel(new, inputs).to_dense().detach() @ weights
    assert np.allclose(result.predict(new.numpy()).mean, dense.numpy(), **judgement(absolute=1e-4))


def test_copies_of_inputs_are_points_once():
    X, _, y = fine(60)
    result = sg.fit(np.concatenate([X, X]), np.concatenate([y, y + 0.01]))
    assert result.info.num_inducing == 60


def test_a_function_of_few_of_many_columns_is_not_taken_for_noise():
    X, f, y = hidden(500)
    with warnings.catch_warnings():
        warnings.simplefilter("error", StreamGPWarning)
        result = sg.fit(X, y)
    assert error(result, *hidden(200, seed=1)[:2]) < 0.3 * f.std()


def test_noise_alone_is_said_to_be_noise():
    rng = np.random.default_rng(0)
    with pytest.warns(StreamGPWarning, match="found nothing but noise.*do not depend on the inputs"):
        sg.fit(rng.random((300, 3)), rng.normal(size=300), num_inducing=5)


def test_outliers_are_told():
    X, _, y = fine(400)
    slipped = np.random.default_rng(1).random(400) < 0.03
    y[slipped] += 5.0
    with pytest.warns(StreamGPWarning, match="targets lie more than 4 deviations from the fit.*'student_t'"):
        sg.fit(X, y, num_inducing=60, max_iterations=20)
    with warnings.catch_warnings():
        warnings.simplefilter("error", StreamGPWarning)
        sg.fit(X, fine(400)[2], num_inducing=60, max_iterations=20)


@pytest.mark.filterwarnings("ignore:.*lie more than 4 deviations")  # beside the step
def test_kernels_are_compared_where_none_is_given():
    X = np.random.default_rng(0).normal(size=(200, 2))
    steps = np.sign(X[:, 0]) + 0.01 * X[:, 1]
    rough, smooth = sg.fit(X, steps), sg.fit(X, np.sin(X[:, 0]) + 0.01 * X[:, 1])
    assert [name for name, _ in rough.info.kernels] == ["matern52", "matern32", "rbf", "matern32 + linear"]
    of_steps = dict(rough.info.kernels)
    assert of_steps["matern32"] > max(of_steps["matern52"], of_steps["rbf"])
    assert of_steps["matern32 + linear"] > of_steps["matern32"] + 0.05
    assert rough.gp.kernel.kernels[0].base_kernel.nu == 1.5
    assert isinstance(rough.gp.kernel.kernels[1], LinearKernel)
    assert [name for name, _ in smooth.info.kernels][-1] == "rbf + linear"
    given = sg.fit(X, steps, kernel=ScaleKernel(RBFKernel(ard_num_dims=2)))
    assert isinstance(given.gp.kernel.base_kernel, RBFKernel)
    assert given.info.kernels == ()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The fit found nothing but noise")  # of 64 points in fifteen steps
def test_points_are_added_until_they_leave_little_open_or_the_budget_is_spent():
    X, f, y = fine(1500)
    small = sg.fit(X, y, time_budget=0.02)
    large = sg.fit(X, y, time_budget=2.0)
    assert small.info.num_inducing < large.info.num_inducing < 1500
    assert error(large, X, f) < error(small, X, f)
    assert 0.0 <= large.info.doubling_gain < 0.02
    smooth = sg.fit(X, np.sin(3 * X[:, 0]) + 0.1 * np.random.default_rng(1).normal(size=1500))
    assert smooth.info.num_inducing == 64
    assert smooth.info.trace_slack < 0.05
    with pytest.warns(StreamGPWarning, match="stopped at max_inducing = 70 points.*Raise max_inducing"):
        few = sg.fit(X, y, max_inducing=70, max_iterations=5)
    assert few.info.num_inducing == 70


@pytest.mark.slow
def test_the_noise_is_that_of_all_rows():
    rng = np.random.default_rng(0)
    X = rng.random((12_000, 2))
    y = np.sin(4 * X[:, 0]) + 0.3 * rng.normal(size=12_000)
    result = sg.fit(X, y, time_budget=0.5)
    assert float(result.likelihood.noise_variance) == pytest.approx(0.09, **within(judgement(relative=0.03)))


def test_seeds_decide():
    X, _, y = fine(500)
    first, again = sg.fit(X, y, kernel=ScaleKernel(MaternKernel())), sg.fit(X, y, kernel=ScaleKernel(MaternKernel()))
    assert first.info.bound == again.info.bound


def test_a_result_says_what_it_chose(tmp_path):
    X, _, y = fine(100)
    result = sg.fit(X, y)
    result.save(tmp_path / "fit")
    assert sg.load(tmp_path / "fit").info == result.info
