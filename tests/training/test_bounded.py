"""Targets of which some are bounds."""

import numpy as np
import pytest
import torch

import streamgp as sg
from streamgp.errors import ArgumentTypeError, UnsupportedError, ValueRangeError
from streamgp.tables.values import split_bounds, to_bound
from streamgp.testing.tolerances import judgement, within


def assay(num=40):
    X = torch.linspace(0, 1, num, dtype=torch.float64).unsqueeze(-1)
    truth = 300.0 + 40.0 * (4.0 * X[:, 0]).sin()
    y = truth + 4.0 * torch.randn(num, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return X, truth, [f"<{300:g}" if one < 300.0 else float(one) for one in y]


def test_bounds_are_found_in_texts():
    assert to_bound("<0.5") == (0.5, -1)
    assert to_bound(" >= 10 ") == (10.0, 1)
    assert to_bound("≤1e-3") == (1e-3, -1)
    assert [to_bound(each) for each in ("0.5", "<", "<x", "<<1", "< inf", 0.5, None)] == [None] * 7
    assert split_bounds(["<0.5", "0.7", 1, ""])[1] == [-1, 0, 0.0, 0]
    assert np.isnan(split_bounds({"a": ["<0.5", ""]})[0]["a"][1])
    assert split_bounds([0.5, 1.0]) is None
    assert split_bounds(["a", "b"]) is None  # someone else's to refuse
    with pytest.raises(ValueRangeError, match="or a bound such as"):
        split_bounds(["<0.5", "a"])


@pytest.mark.slow
def test_a_fit_knows_that_bounds_are_bounds():
    X, truth, y = assay()
    result = sg.fit(X, y, num_inducing=10)
    prediction = result.predict(X)
    is_bound = torch.tensor([isinstance(one, str) for one in y])
    assert is_bound.sum() > 5
    taken = sg.fit(X, truth.clamp_min(300.0), num_inducing=10).predict(X).mean
    error, naive = ((mean - truth)[is_bound].square().mean().sqrt() for mean in (prediction.mean, taken))
    assert error < 0.7 * naive
    assert (prediction.mean[is_bound] < 303.0).all()
    assert (prediction.mean - truth)[~is_bound].abs().max() < 6.0
    noise = float(result.likelihood.gaussian_noise_variance.sqrt() * result.scaling.target_scale)
    assert 2.0 < noise < 7.0


@pytest.mark.slow
def test_the_units_of_targets_with_bounds_make_no_difference():
    X, _, y = assay()
    small = [f"<{300.0 / 128.0!r}" if isinstance(one, str) else one / 128.0 for one in y]
    first, second = (sg.fit(X, one, num_inducing=6).predict(X).mean for one in (y, small))
    torch.testing.assert_close(first, 128.0 * second, **judgement(absolute=1e-9, relative=1e-9))


@pytest.mark.slow
def test_a_regressor_takes_bounds_and_conditions_on_values_after():
    X, truth, y = assay()
    model = sg.GPRegressor(num_inducing=10, random_state=0).fit(X.numpy(), y)
    assert np.abs(model.predict(X.numpy()) - truth.numpy())[truth > 300.0].max() < 6.0
    after = model.result_.condition(X[-1:], [310.0], noise_variance=1e-4)
    assert float(after.predict(X[-1:]).mean) == pytest.approx(310.0, **within(judgement(absolute=0.1)))


def test_bounds_that_cannot_be_learned_are_refused():
    X, _, y = assay()
    with pytest.raises(ArgumentTypeError, match="Gaussian noise"):
        sg.fit(X, y, likelihood="poisson")
    with pytest.raises(UnsupportedError, match="from the start"):
        sg.fit(X, y, start=sg.fit(X, X[:, 0], num_inducing=4))
