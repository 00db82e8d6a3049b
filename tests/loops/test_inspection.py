"""A loop tells its model in the user's units, and why it suggested what it did."""

import pytest
import torch

import streamgp as sg
from streamgp.testing.tolerances import judgement, within


def wave(X):
    return torch.sin(6.0 * X).squeeze(-1)


def told(width, scale, **options):
    optimizer = sg.Optimizer([(0.0, width)], num_initial=4, **options)
    X = torch.linspace(0.0, 1.0, 9, dtype=torch.float64).unsqueeze(-1)
    optimizer.tell(width * X, scale * wave(X))
    return optimizer


@pytest.mark.slow
def test_lengthscales_and_deviations_follow_the_users_units():
    one, other = (told(*units).inspect().outcomes[0] for units in ((1.0, 1.0), (50.0, 1000.0)))
    assert other.kernel == one.kernel
    assert other.lengthscales["x0"] == pytest.approx(50.0 * one.lengthscales["x0"], **within(judgement(relative=1e-6)))
    assert other.std == pytest.approx(1000.0 * one.std, **within(judgement(relative=1e-6)))
    assert other.noise == pytest.approx(1000.0 * one.noise, **within(judgement(relative=1e-6)))
    assert other.evidence == pytest.approx(one.evidence, **within(judgement(relative=1e-6)))


def test_a_loop_without_outcomes_has_no_model_yet():
    found = sg.Optimizer([(0.0, 1.0)]).inspect()
    assert (found.outcomes, found.surrogate, found.why, found.asked) == ((), None, (), None)
    assert "no model yet" in repr(found)


def test_to_look_without_a_fit_changes_nothing():
    optimizer = told(1.0, 1.0)
    before = optimizer.to_parts()["state"]
    assert optimizer.inspect(refit=False).surrogate is None
    assert optimizer.to_parts()["state"] is before
    assert optimizer.inspect().surrogate is optimizer.to_parts()["state"].surrogate
    assert "noise" in optimizer.inspect()._repr_html_()


def test_the_lengthscale_of_a_logarithmic_parameter_is_a_factor():
    optimizer = sg.Optimizer({"a": sg.Real(1e-2, 1e2, log=True), "kind": sg.Categorical(["x", "y"])}, num_initial=2)
    optimizer.tell([{"a": 10.0**k, "kind": "xy"[k % 2]} for k in range(-2, 3)], [0.0, 1.0, 2.0, 1.0, 0.5])
    found = optimizer.inspect()
    assert found.outcomes[0].lengthscales.keys() == {"a", "kind"}
    assert found.outcomes[0].lengthscales["a"] > 1.0


def test_a_pool_tells_its_lengthscales_in_the_units_of_its_inputs():
    X = torch.stack([torch.arange(20.0), 1000.0 * torch.arange(20.0).flip(0)], -1)
    learner = sg.PoolLearner(X, num_initial=4)
    learner.tell(list(range(0, 20, 2)), torch.sin(torch.arange(0.0, 20.0, 2.0)))
    assert len(learner.inspect().outcomes[0].lengthscales) == 2
