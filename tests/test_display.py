"""Objects show themselves in few digits, and nothing in a name becomes markup."""

import sys

import pytest
import torch
from gpytorch.kernels import RBFKernel

import streamgp as sg
from streamgp.display import html_rows, html_table, new_axes, with_uncertainty
from streamgp.errors import UnsupportedError

HOSTILE = '<script>alert("1")</script>&'


@pytest.mark.parametrize(
    ("mean", "std", "text"),
    [
        (97.31, 0.42, "97.3 ± 0.4"),
        (97.31, 0.142, "97.31 ± 0.14"),
        (12345.6, 250.0, "1.235e+04 ± 2.5e+02"),
        (3.0, 0.0, "3"),
        (3.0, float("nan"), "3"),
        (1e-9, 2e-10, "1e-09 ± 2e-10"),
        (50.0, 3.0, "50 ± 3"),
    ],
)
def test_numbers_have_the_digits_that_are_known(mean, std, text):
    assert with_uncertainty(mean, std) == text


def test_predictions_show_what_they_predict():
    gp = sg.SparseGP.from_prior(RBFKernel().double(), torch.zeros(1, 1, dtype=torch.float64))
    assert repr(gp.predict([[0.0], [9.0]])) == "Prediction(mean [0, 0], std [1, 1])"
    assert repr(gp.predict(torch.zeros(7, 1).double())) == "Prediction(7 inputs: mean, std, variance, covariance)"
    many = sg.MultiOutputGP.from_prior(
        [RBFKernel().double()], torch.zeros(1, 1).double(), mixing=torch.ones(2, 1).double()
    )
    assert repr(many.predict([[0.0]])) == "MultiOutputPrediction(2 outputs, mean [[0, 0]], std [[1, 1]])"


def test_texts_are_escaped_wherever_they_are():
    for shown in (
        html_table(HOSTILE, {HOSTILE: HOSTILE}, line=[1.0, float("nan"), 2.0, 2.5]),
        html_rows(HOSTILE, [{HOSTILE: HOSTILE}] * 30),
    ):
        assert "<script" not in shown
        assert "&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&amp;" in shown
    assert "and 10 more" in html_rows("rows", [{"a": 1}] * 30)


def test_a_line_is_drawn_of_two_numbers_or_more():
    assert "<svg" in html_table("t", {}, line=[1.0, 1.0])
    assert "<svg" not in html_table("t", {}, line=[1.0, float("inf")])


def test_axes_are_passed_on_and_matplotlib_is_asked_for(monkeypatch):
    axes = new_axes()
    assert new_axes(axes) is axes
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(UnsupportedError, match="matplotlib"):
        new_axes()
