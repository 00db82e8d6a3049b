import matplotlib as mpl
import numpy as np
import pytest
import torch
from torch.testing import assert_close

import streamgp as sg
from streamgp.errors import ShapeError

mpl.use("agg")


@pytest.fixture
def result(rng):
    X = torch.rand(30, 2, generator=rng, dtype=torch.float64)
    return sg.fit(X, X.sum(-1), num_inducing=5, max_iterations=5)


def test_the_history_can_be_drawn(result):
    axes = result.plot()
    assert axes.get_ylabel() == "objective"
    assert len(axes.lines[0].get_ydata()) == len(result.info.history)
    assert result.plot(axes) is axes


def test_inputs_are_checked(result):
    with pytest.raises(ShapeError, match="X must have 2 columns"):
        result.predict(torch.zeros(3, 3, dtype=torch.float64))


def test_diagnostics_are_frozen(result):
    with pytest.raises(AttributeError):
        result.info.bound = 0.0
    assert result.info.seconds > 0
    assert "gained less" in result.info.reason or "iterations" in result.info.reason


def test_a_result_says_what_it_is(result):
    assert repr(result).startswith("FitResult(5 inducing points, Gaussian, bound ")
    shown = result._repr_html_()
    assert "<svg" in shown
    assert "stopped" in shown


def test_arrays_go_in_and_out(result, rng):
    X = torch.rand(4, 2, generator=rng, dtype=torch.float64)
    prediction, y = result.predict(X.numpy()), X.sum(-1)
    assert isinstance(prediction.std, np.ndarray)
    assert_close(torch.from_numpy(prediction.mean), result.predict(X).mean)
    density = result.log_predictive_density(X.numpy(), y.numpy())
    assert isinstance(density, np.ndarray)
    assert_close(torch.from_numpy(density), result.log_predictive_density(X, y))
