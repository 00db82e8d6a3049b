"""Pictures of what was learned show the numbers that the model has."""

import math
import re

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest
import torch
from torch.testing import assert_close

import streamgp as sg
from streamgp.errors import OptionError, SaveError, UnsupportedError
from streamgp.loops.charts import predicted_and_told
from streamgp.report import Report
from streamgp.testing.tolerances import approximation, within

mpl.use("Agg")
SPACE = {
    "heat": sg.Real(0.0, 1.0),
    "dose": sg.Real(1e-3, 1.0, log=True),
    "kind": sg.Categorical(["a", "b"]),
}


def outcomes(point):
    heat = point["heat"]
    return [-((heat - 0.4) ** 2) - 0.1 * math.log10(point["dose"]) ** 2 + 0.1 * (point["kind"] == "a"), heat]


@pytest.fixture(scope="module")
def optimizer():
    optimizer = sg.Optimizer(SPACE, constraints=[sg.Constraint(upper=0.5, name="waste")], num_initial=12)
    for number, point in enumerate(optimizer.ask(12)):
        optimizer.tell(point, outcomes(point) if number else [math.nan, math.nan])
    optimizer.ask()
    return optimizer


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def test_a_map_shows_what_is_predicted(optimizer):
    axes = optimizer.plot_contour("heat", "kind", at={"heat": 0.0, "dose": 0.1, "kind": "a"})
    cells = next(one for one in axes.collections if hasattr(one, "get_coordinates"))
    shown = cells.get_array().reshape(2, -1)
    for row, kind in enumerate("ab"):
        points = [{"heat": heat, "dose": 0.1, "kind": kind} for heat in (0.0, 1.0)]
        expected = optimizer.predict(points).mean.tolist()
        assert [float(shown[row, 0]), float(shown[row, -1])] == pytest.approx(expected)
    assert [text.get_text() for text in axes.get_yticklabels()] == ["a", "b"]
    labels = {text.get_text() for text in axes.get_legend().get_texts()}
    assert labels == {"evaluated", "not feasible", "failed", "pending"}
    assert optimizer.plot_contour("heat", "dose", output="waste").get_yscale() == "log"


def test_a_map_of_feasibility_is_one_where_the_limit_is_kept(optimizer):
    axes = optimizer.plot_feasibility("heat", "dose")
    shown = next(one for one in axes.collections if hasattr(one, "get_coordinates")).get_array()
    columns = shown.reshape(41, 41).mean(0)
    assert columns[5] > 0.8 * columns.max()
    assert columns[-1] < 0.05


def test_maps_that_make_no_sense_are_refused(optimizer):
    with pytest.raises(OptionError, match="two parameters, but both are 'heat'"):
        optimizer.plot_contour("heat", 0)
    free = sg.Optimizer([(0.0, 1.0)] * 2, num_initial=2)
    free.tell(torch.rand(4, 2), torch.rand(4))
    with pytest.raises(UnsupportedError, match="There are no constraints, and nothing has failed"):
        free.plot_feasibility()
    counts = sg.Optimizer([(0.0, 1.0)] * 2, likelihood="poisson", num_initial=2)
    counts.tell(torch.rand(4, 2), torch.ones(4))
    with pytest.raises(UnsupportedError, match="real numbers with Gaussian noise"):
        counts.plot_predictions()


def test_lines_through_parameters_end_at_their_outcome(optimizer):
    axes = optimizer.plot_parallel()
    lines = [line for line in axes.lines if len(line.get_xdata()) == len(SPACE) + 1]
    y = optimizer.y[:, 0]
    y = y[~y.isnan()]
    expected = ((y - y.min()) / (y.max() - y.min())).sort().values
    found = torch.tensor(sorted(float(line.get_ydata()[-1]) for line in lines), dtype=torch.float64)
    assert_close(found, expected)
    assert sum(line.get_color() == "tab:orange" for line in lines) == 2


def test_outcomes_are_predicted_from_all_others(optimizer):
    """The closed form agrees with a model of the same hyperparameters that never saw the row."""
    alone = sg.Optimizer([(0.0, 1.0)], num_initial=3)
    X = torch.linspace(0.0, 1.0, 9, dtype=torch.float64).unsqueeze(-1)
    alone.tell(X, (3.0 * X).sin().squeeze(-1) + 0.05 * torch.cos(40.0 * X).squeeze(-1))
    told, mean, lower, upper = predicted_and_told(alone.inspect() and alone._state, alone._settings, output=0)
    assert_close(told, alone.y[:, 0])
    result, units = alone._state.surrogate.results[0], alone._state.surrogate.units[0]
    prior, noise = result.gp.process.prior, float(result.likelihood.gaussian_noise_variance)
    kept = torch.arange(9) != 4
    K = prior.covariance(X[kept], X[kept]) + max(noise, 1e-9) * torch.eye(8, dtype=torch.float64)
    k = prior.covariance(X[4:5], X[kept])
    weights = torch.linalg.solve(K, k.mT).mT
    expected = prior.mean(X[4:5]) + weights @ (units.inside(told[kept]) - prior.mean(X[kept]))
    variance = prior.variance(X[4:5]) - (weights * k).sum(-1) + max(noise, 1e-9)
    tolerance = within(approximation(1e-5, "jitter"))
    assert float(mean[4]) == pytest.approx(float(units.outside(expected)), **tolerance)
    ends = units.outside(expected + 1.959964 * variance.sqrt() * torch.tensor([-1.0, 1.0]))
    assert [float(lower[4]), float(upper[4])] == pytest.approx(sorted(ends.tolist()), **tolerance)
    alone.plot_predictions()


def test_the_history_has_a_band_of_the_best_possible_outcome():
    optimizer = sg.Optimizer([(0.0, 1.0)], num_initial=4)
    X = optimizer.ask(6)
    optimizer.tell(X, -((X[:, 0] - 0.3) ** 2))
    axes = optimizer.plot_history()
    assert "best possible, 90 %" in [text.get_text() for text in axes.get_legend().get_texts()]


@pytest.mark.slow
def test_a_report_is_one_page_that_needs_nothing_else(optimizer, tmp_path):
    path = optimizer.report(tmp_path / "report.html", title="Heat <& dose")
    page = path.read_text(encoding="utf-8")
    assert "<title>Heat &lt;&amp; dose</title>" in page
    assert not re.search(r'(src|href)="(?!data:)', page)
    assert page.count("<figure>") >= 6
    assert "All that is left to gain" in page
    assert page.count("<td>told</td>") == 11
    assert page.count("<td>failed</td>") == 1
    assert page.count("<td>pending</td>") == 1


def test_a_report_of_nothing_says_so(tmp_path):
    page = sg.Optimizer(SPACE).report(tmp_path / "report.html").read_text()
    assert "Nothing is known yet." in page
    with pytest.raises(SaveError, match="cannot be written"):
        Report("x").save(tmp_path / "nowhere" / "x.html")


def test_pages_escape_what_they_show():
    page = Report("a", "<b>").heading("<c>").text("<d>").facts({"<e>": "<f>"}).table([{"<g>": 1.23456789}]).to_html()
    assert not re.search(r"<[b-g]>", page)
    assert "1.2346" in page
