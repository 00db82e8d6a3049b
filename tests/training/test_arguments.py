import numpy as np
import pytest
import torch
from gpytorch.kernels import RBFKernel

import streamgp as sg
from streamgp.errors import ArgumentTypeError, DTypeError, OptionError, ShapeError, SupportError, ValueRangeError
from streamgp.likelihoods import Binomial, Poisson, Preference
from streamgp.training.arguments import (
    Minibatches,
    Options,
    check_modules,
    check_points,
    has_constants,
    progress_bar,
    read_rows,
)
from streamgp.training.scaling import to_observed

X = torch.rand(4, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
ARRAY = np.random.default_rng(0).uniform(size=(12, 2))
Y = ARRAY[:, 0] + 0.5


def test_arrays_of_numpy_are_rows_too():
    rows = read_rows(np.zeros((4, 2), dtype=np.float32), np.arange(4.0, dtype=np.float32), None)
    assert rows.inputs.dtype == torch.float32
    assert to_observed(*rows).targets.dtype == torch.float64


def test_whole_numbers_become_counts_of_the_dtype_of_the_inputs():
    rows = read_rows(X, torch.arange(4), Poisson())
    assert rows.targets.dtype == X.dtype
    with pytest.raises(SupportError, match="whole numbers"):
        read_rows(X, torch.full((4,), 0.5, dtype=torch.float64), Poisson())


def test_comparisons_are_pairs_of_inputs():
    pairs = torch.stack([X, X + 1], dim=1)
    observed = to_observed(*read_rows(pairs, torch.ones(4, dtype=torch.float64), Preference()))
    assert torch.equal(observed.inputs.points[::2], X)
    assert torch.equal(observed.inputs.points[1::2], X + 1)
    assert observed.all_inputs.shape == (8, 2)


@pytest.mark.parametrize("shape", [(4,), (0, 2), (2, 4, 2)])
def test_inputs_that_are_no_table_are_refused(shape):
    with pytest.raises(ShapeError, match=r"X must have shape \(n, d\)"):
        read_rows(torch.zeros(shape, dtype=torch.float64), torch.zeros(4, dtype=torch.float64), None)


def test_targets_with_an_output_axis_and_points_of_another_dimension_are_refused():
    with pytest.raises(ShapeError, match=r"Drop a trailing output axis with y.squeeze\(-1\)"):
        read_rows(X, torch.zeros(4, 1, dtype=torch.float64), None)
    with pytest.raises(ValueRangeError, match="y must be finite"):
        read_rows(X, torch.full((4,), torch.nan, dtype=torch.float64), None)
    with pytest.raises(ShapeError, match="Fit several outputs with outputs='lmc', 'icm' or 'independent'"):
        sg.fit(torch.rand(4, 2), torch.rand(4, 2))
    with pytest.raises(ShapeError, match="inducing must have 2 columns"):
        check_points(torch.zeros(3, 1, dtype=torch.float64), like=X)


@pytest.mark.parametrize("kind", [list, tuple, np.asarray, lambda v: np.asarray(v, dtype=object)])
def test_lists_and_arrays_are_read_alike(kind):
    rows = read_rows(kind(ARRAY.tolist()), kind(Y.tolist()), None)
    torch.testing.assert_close(rows.inputs, torch.from_numpy(ARRAY), rtol=0, atol=0)
    torch.testing.assert_close(rows.targets, torch.from_numpy(Y), rtol=0, atol=0)


def test_lists_can_be_fitted():
    result = sg.fit(ARRAY.tolist(), Y.tolist(), num_inducing=3, max_iterations=1)
    assert result.gp.inducing_points.dtype == torch.float64


@pytest.mark.parametrize(
    "bad",
    [
        np.array([["a", "b"]] * 12, dtype=object),
        [[1.0, 2.0], [1.0]],
        np.zeros((12, 2), dtype="datetime64[s]"),
        "abc",
        torch.from_numpy(ARRAY).to_sparse(),
        torch.from_numpy(ARRAY).to("meta"),
        {"a": 1},
    ],
    ids=["text", "ragged", "dates", "string", "sparse", "meta", "dict"],
)
def test_what_is_not_numbers_is_refused_with_a_sentence(bad):
    with pytest.raises(DTypeError, match=r"^X (must be (numbers|a dense tensor)|is a list that cannot be read)"):
        read_rows(bad, Y, None)


def test_masked_values_are_refused():
    with pytest.raises(ValueRangeError, match="X is a masked array with 1 masked values"):
        read_rows(np.ma.masked_array(ARRAY, mask=ARRAY[3, 1] == ARRAY), Y, None)


def test_targets_that_are_missing_or_too_large_are_refused():
    with pytest.raises(DTypeError, match="but is None"):
        read_rows(ARRAY, None, None)
    with pytest.raises(ShapeError, match="y must have shape"):
        read_rows(ARRAY, Y[:5], None)
    with pytest.raises(ValueRangeError, match="whose squares overflow in float64"):
        read_rows(ARRAY, 1e155 * Y, None)
    with pytest.raises(ValueRangeError, match="whose squares overflow in float32"):
        read_rows(ARRAY.astype(np.float32), (1e20 * Y).astype(np.float32), None)


@pytest.mark.parametrize("scale", [1e-300, 1e-100, 1e150])
def test_targets_of_any_scale_that_can_be_squared_are_fitted(scale):
    result = sg.fit(ARRAY, scale * Y, num_inducing=3, max_iterations=2, standardize=True)
    prediction = result.predict(torch.from_numpy(ARRAY))
    assert bool(torch.isfinite(prediction.mean).all() & torch.isfinite(prediction.variance).all())


def test_modules_of_another_kind_are_refused():
    for kernel in (3, RBFKernel):
        with pytest.raises(ArgumentTypeError, match=r"kernel must be one of gpytorch\.kernels"):
            check_modules(kernel, None, None)
    with pytest.raises(ArgumentTypeError, match=r"mean must be one of gpytorch\.means"):
        check_modules(None, 3, None)
    with pytest.raises(ArgumentTypeError, match="start must be what fit returned"):
        check_modules(None, None, 3)


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf"), 10**400], ids=str)
def test_weights_that_are_not_positive_and_finite_are_refused(value):
    with pytest.raises(ValueRangeError, match="beta must be a positive, finite number"):
        Options(beta=value)


def test_constants_are_numbers_for_each_observation():
    assert not has_constants(None)
    assert not has_constants(Binomial(5))
    assert has_constants(Binomial(torch.tensor([5.0, 6.0])))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"num_inducing": 0}, ValueRangeError, "num_inducing must be a whole number of at least 1, but is 0"),
        ({"num_inducing": "many"}, OptionError, "num_inducing must be a whole number or 'auto', but is 'many'"),
        (
            {"inducing": "random"},
            OptionError,
            "inducing must be one of 'pivoted', 'kmeans', 'distributed_kmeans', 'features', but is 'random'",
        ),
        ({"objective": "mll"}, OptionError, "objective must be one of 'elbo', 'pll', but is 'mll'"),
        ({"beta": 0.0}, ValueRangeError, "beta must be a positive, finite number, but is 0.0"),
        ({"tolerance": -1.0}, ValueRangeError, "tolerance must be a positive, finite number, but is -1.0"),
        ({"priors": "flat"}, OptionError, "priors must be one of 'dim_scaled'"),
        ({"max_iterations": 0}, ValueRangeError, "max_iterations must be a whole number of at least 1, but is 0"),
    ],
)
def test_wrong_options_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        Options(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size must be a whole number of at least 1, but is 0"),
        ({"natural_rate": 1.5}, "natural_rate must be a number above 0 and at most 1, but is 1.5"),
        ({"learning_rate": 0.0}, "learning_rate must be a positive, finite number, but is 0.0"),
    ],
)
def test_wrong_sizes_of_minibatches_are_refused(options, message):
    with pytest.raises(ValueRangeError, match=message):
        Minibatches(**options)


def test_without_a_bar_the_users_function_is_called_as_it_is():
    def callback(value):
        raise AssertionError

    with progress_bar(is_shown=False, callback=callback) as reports:
        assert reports.on_iteration is callback
        assert reports.on_stage is None
    with progress_bar(is_shown=False, callback=None) as reports:
        assert reports.on_iteration is None


def test_a_bar_shows_the_steps_and_calls_the_users_function(capsys):
    called = []
    with progress_bar(is_shown=True, callback=called.append) as reports:
        reports.on_iteration(1.5)
        reports.on_stage(4)
        reports.on_iteration(2.5)
        reports.on_iteration(3.5)
    assert called == [1.5, 2.5, 3.5]
    shown = capsys.readouterr().out
    assert "2 steps" in shown
    assert "left" in shown
