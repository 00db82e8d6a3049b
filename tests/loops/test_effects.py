"""Slices and averages of what the model says of one parameter."""

import pytest
import torch
from torch.testing import assert_close

import streamgp as sg
from streamgp.errors import OptionError, UnsupportedError, ValueRangeError
from streamgp.loops.effects import partial_dependence, slice_through
from streamgp.testing.tolerances import judgement


@pytest.fixture(scope="module")
def optimizer():
    optimizer = sg.Optimizer(
        {
            "heat": sg.Real(0.01, 10, log=True),
            "solvent": sg.Categorical(["water", "$x$"]),
            "size": sg.Ordinal(["small", "large"]),
            "number": sg.Integer(1, 3),
        },
        num_initial=4,
    )
    optimizer.tell(optimizer.ask(12), torch.arange(12.0))
    assert optimizer.predict(optimizer.X)  # fitted once for all tests
    return optimizer


def parts(optimizer):
    parts = optimizer.to_parts()
    return parts["state"], parts["settings"]


def test_a_slice_is_the_prediction_with_one_value_changed(optimizer):
    at = {"heat": 0.1, "solvent": "water", "size": "small", "number": 2}
    effect = slice_through(*parts(optimizer), "heat", at=at, output=0)
    assert effect.values[0] == pytest.approx(0.01)
    assert effect.values[-1] == pytest.approx(10.0)
    assert effect.at == pytest.approx(0.1)
    found = optimizer.predict([at | {"heat": value} for value in effect.values])
    assert_close(effect.mean, found.mean)
    assert_close(effect.lower, found.lower)
    for name, values in {"solvent": ("water", "$x$"), "size": ("small", "large"), "number": (1, 2, 3)}.items():
        effect = slice_through(*parts(optimizer), name, at=at, output=0)
        assert effect.values == values
        assert_close(effect.mean, optimizer.predict([at | {name: value} for value in values]).mean)


def test_by_default_a_slice_goes_through_the_best_point(optimizer):
    predicted = optimizer.predict(optimizer.X).mean
    best = optimizer.X[int(predicted.argmax())]
    assert slice_through(*parts(optimizer), "number", at=None, output=0).at == best["number"]


def test_partial_dependence_is_the_mean_of_slices(optimizer):
    effect = partial_dependence(*parts(optimizer), "solvent", output=0)
    settings = optimizer.to_parts()["settings"]
    others = settings.space.show(settings.space.design(128, num_initial=128, num_before=0, seed=settings.seed))
    for value, mean in zip(effect.values, effect.mean, strict=True):
        assert_close(mean, optimizer.predict([one | {"solvent": value} for one in others]).mean.mean())
    assert (effect.upper >= effect.lower).all()


@pytest.mark.slow
def test_without_interactions_the_band_of_an_average_is_narrow():
    additive = sg.Optimizer([(0.0, 1.0), (0.0, 1.0)], num_initial=3)
    X = torch.cartesian_prod(*[torch.linspace(0.0, 1.0, 4, dtype=torch.float64)] * 2)
    additive.tell(X, 10.0 * X[:, 0] + X[:, 1])
    effect = partial_dependence(additive._refitted(), additive._settings, "x1", output=0)
    expected = torch.tensor(1.0, dtype=torch.float64)
    assert_close(effect.mean[-1] - effect.mean[0], expected, **judgement(relative=0.05))
    assert float((effect.upper - effect.lower).max()) < 0.3  # of the ten by which curves lie apart


def test_effects_are_drawn_over_numbers_and_names(optimizer):
    axes = optimizer.plot_slice("heat")
    assert axes.get_xscale() == "log"
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("heat", "objective")
    assert optimizer.plot_slice("heat", axes) is axes
    assert [text.get_text() for text in optimizer.plot_slice("number").get_xticklabels()] == ["1", "2", "3"]
    named = optimizer.plot_partial_dependence("solvent")
    assert [text.get_text() for text in named.get_xticklabels()] == ["water", "$x$"]


@pytest.mark.slow
def test_a_dimension_of_a_box_goes_by_its_number():
    box = sg.Optimizer([(0.0, 2.0), (5.0, 6.0)], num_initial=3)
    box.tell([[0.0, 5.0], [1.0, 5.5], [2.0, 6.0]], [1.0, 2.0, 3.0])
    effect = slice_through(box._refitted(), box._settings, 1, at=[1.0, 5.5], output=0)
    assert (effect.name, effect.values[0], effect.values[-1]) == ("x1", 5.0, 6.0)


@pytest.mark.slow
def test_along_a_mixture_only_valid_values_are_shown():
    mixture = sg.Optimizer(
        {"a": sg.Real(0, 1), "b": sg.Real(0, 1)}, input_constraints=[sg.LinearConstraint({"a": 1, "b": 1}, upper=1)]
    )
    mixture.tell([{"a": 0.1, "b": 0.4}, {"a": 0.3, "b": 0.2}], [1.0, 2.0])
    effect = slice_through(mixture._refitted(), mixture._settings, "a", at={"a": 0.1, "b": 0.4}, output=0)
    assert effect.values[-1] == pytest.approx(0.6)
    with pytest.raises(UnsupportedError, match="Partial dependence needs parameters that can be set one by one"):
        mixture.plot_partial_dependence("a")


def test_wrong_questions_are_answered_with_a_sentence(optimizer):
    with pytest.raises(OptionError, match=r"There is no parameter 'color'. The parameters are heat, solvent"):
        optimizer.plot_slice("color")
    with pytest.raises(ValueRangeError, match="output must be below 1"):
        optimizer.plot_slice("heat", output=1)
    with pytest.raises(ValueRangeError, match="A slice goes through one point, but at has 12"):
        optimizer.plot_slice("heat", at=optimizer.X)
