"""What loops learn beside values: gradients, bounds and comparisons."""

import pytest
import torch

import streamgp as sg
from streamgp.errors import FileFormatError, OptionError, ShapeError, UnsupportedError, ValueRangeError
from streamgp.loops.learned_rows import LearnedRows
from streamgp.loops.units import OutcomeUnits
from streamgp.testing.tolerances import judgement, tolerance, within

BOUNDS = [(-2.0, 2.0), (0.0, 4.0)]


def bowl(X):
    """A function with its gradient."""
    return 3.0 * X[:, 0].square() + X.prod(-1), torch.stack([6.0 * X[:, 0] + X[:, 1], X[:, 0]], -1)


def told(optimizer, *, has_gradients, num_told=7):
    low, high = torch.tensor(BOUNDS, dtype=torch.float64).T
    X = low + (high - low) * torch.rand(num_told, 2, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    y, slopes = bowl(X)
    optimizer.tell(X, y, gradient=slopes if has_gradients else None)
    return optimizer


@pytest.mark.slow
def test_gradients_make_predictions_better():
    places = torch.tensor([[-1.5, 0.5], [1.5, 3.5], [0.0, 2.0], [1.8, 0.2], [-1.0, 3.0]], dtype=torch.float64)
    truth, errors = bowl(places)[0], []
    for has_gradients in (True, False):
        optimizer = told(sg.Optimizer(BOUNDS, maximize=False), has_gradients=has_gradients)
        errors.append(float((optimizer.predict(places).mean - truth).abs().max()))
    assert errors[0] < 0.1 * errors[1]


def test_known_slopes_count_for_the_initial_design():
    assert told(sg.Optimizer(BOUNDS, num_initial=21), has_gradients=True).inspect(refit=False).is_initial is False
    assert told(sg.Optimizer(BOUNDS, num_initial=21), has_gradients=False).inspect(refit=False).is_initial is True


@pytest.mark.slow
def test_an_optimizer_with_gradients_goes_on_after_it_was_saved(tmp_path):
    optimizer = told(sg.Optimizer(BOUNDS, num_initial=4, refit=3), has_gradients=True)
    optimizer.ask()
    optimizer.save(tmp_path / "o.streamgp")
    again = sg.Optimizer.load(tmp_path / "o.streamgp")
    for one in (optimizer, again):
        X = one.ask()
        y, slopes = bowl(X)
        one.tell(X, y, gradient=slopes)  # absorbed
    assert torch.equal(optimizer.ask(), again.ask())


@pytest.mark.parametrize("scale", [2.0, -2.0])
def test_slopes_change_as_outcomes_do_in_bent_units(scale):
    units = OutcomeUnits(offset=1.0, scale=scale, lower_knee=0.5, upper_knee=2.0, width=0.3)
    X = torch.linspace(0.1, 0.88, 5, dtype=torch.float64).unsqueeze(-1)
    step, slope = 1e-6, 4.0
    rows = LearnedRows.of(X, slope * X[:, 0]).with_gradients(torch.full_like(X, slope))
    ahead, behind = (units.inside(slope * (X[:, 0] + each)) for each in (step, -step))
    expected = (ahead - behind) / (2.0 * step)
    torch.testing.assert_close(rows.targets(units)[5:], expected, **judgement(absolute=1e-7, relative=1e-7))
    change = (rows.targets(units)[5:] / slope).abs().log().sum()
    assert rows.log_change(units) == pytest.approx(2.0 * float(change), **within(judgement(relative=1e-6)))


def test_slopes_of_logarithmic_parameters_are_those_of_the_unit_cube():
    space = sg.Optimizer({"a": sg.Real(1e-3, 1, log=True), "b": sg.Real(-1, 3)})._settings.space
    points = torch.tensor([[0.2, 0.7], [0.9, 0.1]], dtype=torch.float64)

    def value(points):
        return torch.tensor([one["a"] ** 2 + 3.0 * one["b"] for one in space.show(points)], dtype=torch.float64)

    shown = space.show(points)
    slopes = space.read_slopes([{"a": 2.0 * one["a"], "b": 3.0} for one in shown], points)
    for j in range(2):
        step = 1e-5 * torch.eye(2, dtype=torch.float64)[j]
        finite = (value(points + step) - value(points - step)) / 2e-5
        torch.testing.assert_close(slopes[:, j], finite, **judgement(absolute=1e-6, relative=1e-5))
    assert space.read_slopes([{"b": 1.0}, {"a": 1.0}], points).isnan().tolist() == [[True, False], [False, True]]


def test_gradients_that_are_none_are_refused():
    optimizer = sg.Optimizer(BOUNDS)
    with pytest.raises(ShapeError, match="gradient must have shape"):
        optimizer.tell([[0.0, 1.0]], [1.0], gradient=[[1.0]])
    with pytest.raises(ValueRangeError, match="must be finite"):
        optimizer.tell([[0.0, 1.0]], [1.0], gradient=[[1.0, torch.inf]])
    mixed = sg.Optimizer({"a": sg.Real(0, 1), "k": sg.Integer(1, 3)})
    with pytest.raises(UnsupportedError, match="discrete"):
        mixed.tell([{"a": 0.5, "k": 2}], [1.0], gradient=[{"k": 1.0}])
    with pytest.raises(OptionError, match="names 'c'"):
        mixed.tell([{"a": 0.5, "k": 2}], [1.0], gradient=[{"c": 1.0}])
    with pytest.raises(UnsupportedError, match="single outcome"):
        sg.Optimizer(BOUNDS, likelihood="poisson").tell([[0.0, 1.0]], [1.0], gradient=[[1.0, 1.0]])
    with pytest.raises(UnsupportedError, match="belongs to a box"):
        sg.Learner(torch.rand(5, 2)).tell([0], [1.0], gradient=[[1.0, 1.0]])
    assert not len(optimizer.y)
    assert not len(mixed.y)


@pytest.mark.slow
@pytest.mark.parametrize("sign", [1.0, pytest.param(-1.0, marks=pytest.mark.thorough)])
def test_bounds_are_learned_as_bounds(sign):
    X = torch.linspace(0, 1, 12, dtype=torch.float64).unsqueeze(-1)
    y = sign * (3.0 * X[:, 0]).sin()
    texts = [f"{'<' if sign > 0 else '>'}{sign * 0.5}" if one.abs() < 0.5 else float(one) for one in y]
    optimizer = sg.Optimizer([(0.0, 1.0)], maximize=sign > 0)
    optimizer.tell(X, texts)
    mean = optimizer.predict(X).mean
    is_bound = torch.tensor([isinstance(one, str) for one in texts])
    assert (sign * mean[is_bound] < 0.47).all()
    torch.testing.assert_close(mean[~is_bound], y[~is_bound], **judgement(absolute=0.03))
    optimizer.tell([[0.55]], [f"{'>' if sign < 0 else '<'}{sign * 1.2}"])  # absorbed or fitted, and no value
    assert abs(float(optimizer.predict([[0.55]]).mean) - sign) < 0.1
    assert optimizer.inspect().outcomes[0].noise is not None


def test_bounds_of_a_table_are_bounds(tmp_path):
    path = tmp_path / "past.csv"
    path.write_text("x0,x1,objective\n0,1,<0.5\n1,2,0.7\n0.5,3,>= 2\n1.5,1,failed\n")
    optimizer = sg.Optimizer(BOUNDS)
    optimizer.tell_csv(path)
    told = optimizer.to_parts()["state"].observations
    torch.testing.assert_close(told.y[:, 0], torch.tensor([0.5, 0.7, 2.0, torch.nan]).double(), equal_nan=True)
    assert told.sides[:, 0].tolist() == [-1.0, 0.0, 1.0, 0.0]
    path.write_text("x0,x1,objective\n0,1,about 3\n")
    with pytest.raises(FileFormatError, match=r"<0\.5 for a bound"):
        optimizer.tell_csv(path)


def test_bounds_of_counts_are_refused():
    with pytest.raises(UnsupportedError, match="Gaussian noise"):
        sg.Optimizer(BOUNDS, likelihood="poisson").tell([[0.0, 1.0]], ["<3"])
    with pytest.raises(ValueRangeError, match="or a bound such as"):
        sg.Optimizer(BOUNDS).tell([[0.0, 1.0], [1.0, 1.0]], ["<3", "many"])


def test_comparisons_are_rows_of_differences():
    X = torch.rand(3, 2, dtype=torch.float64)
    rows = LearnedRows.of(X, torch.tensor([0.0, 1.0, 1.0], dtype=torch.float64)).with_comparisons(
        X[torch.tensor([[0, 1], [2, 0]])]
    )
    f = torch.tensor([0.3, -0.4, 1.1], dtype=torch.float64)
    values = f[(rows.inputs.points.unsqueeze(1) == X).all(-1).float().argmax(1)]
    expected = torch.tensor([0.3, -0.4, 1.1, 0.7 / 2**0.5, 0.8 / 2**0.5], dtype=torch.float64)
    torch.testing.assert_close(rows.inputs.sums(values), expected, **tolerance(torch.float64))
    assert rows.targets(OutcomeUnits()).tolist() == [0.0, 1.0, 1.0, 1.0, 1.0]


@pytest.mark.slow
@pytest.mark.parametrize(("effect", "maximize"), [("increasing", True), ("decreasing", False)])
def test_an_outcome_that_is_known_to_rise_is_predicted_to(effect, maximize):
    sign = 1.0 if effect == "increasing" else -1.0
    optimizer = sg.Optimizer({"a": sg.Real(0, 1, effect=effect), "b": sg.Real(0, 1)}, maximize=maximize)
    rng = torch.Generator().manual_seed(1)
    for point in torch.rand(24, 2, generator=rng).tolist():
        noise = 0.3 * float(torch.randn((), generator=rng))
        optimizer.tell([{"a": point[0], "b": point[1]}], [sign * point[0] + noise])
    grid = [{"a": a / 20, "b": b} for b in (0.2, 0.8) for a in range(21)]
    mean = sign * optimizer.predict(grid).mean.reshape(2, 21)
    assert mean.diff(dim=-1).min() > -1e-3 * float(mean.max() - mean.min())


@pytest.mark.slow
def test_yes_no_answers_rise_with_contrast_where_that_is_known():
    means, X = [], (torch.arange(24) / 24).tolist()
    seen = [1.0] * 4 + [0.0] * 12 + [1.0] * 8  # some were lucky
    for effect in (None, "increasing"):
        space = {"contrast": sg.Real(0, 1, effect=effect)}
        learner = sg.Learner(space, likelihood=sg.likelihoods.Bernoulli("probit"), goal=sg.LevelSet(0.5))
        learner.tell([{"contrast": x} for x in X], seen)
        means.append(learner.predict([{"contrast": x / 30} for x in range(31)]).latent_mean)
    assert means[0].diff().min() < 0.0
    assert means[1].diff().min() > -1e-3


def test_an_effect_that_is_none_is_refused():
    with pytest.raises(OptionError, match="effect must be one of"):
        sg.Real(0, 1, effect="up")
