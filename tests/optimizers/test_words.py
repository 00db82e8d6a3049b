"""Words of other libraries are answered, and what is missing is said."""

import warnings

import numpy as np
import pytest
import torch

import streamgp as sg
from streamgp.errors import OptionError, ShapeError, StreamGPWarning, ValueRangeError
from streamgp.testing.tolerances import approximation, judgement, within

BOX = [(0.0, 1.0), (0.0, 2.0)]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sg.Optimizer(BOX, minimize=True), "no argument 'minimize'. Write maximize=False"),
        (lambda: sg.Optimizer(BOX, direction="minimize"), "no argument 'direction'. Write maximize=False to minimize"),
        (lambda: sg.Optimizer(BOX, random_state=3), "no argument 'random_state'. Write seed=1"),
        (lambda: sg.Optimizer(BOX).ask(n=3), r"no argument 'n'. The number of points is q: ask\(3\)"),
    ],
)
def test_the_right_word_is_said(call, message):
    with pytest.raises(OptionError, match=message):
        call()


def test_bounds_are_read_as_pairs_or_as_two_rows_and_refused_where_both_make_sense():
    rows = torch.tensor([[0.0, -1.0, 5.0], [1.0, 2.0, 6.0]], dtype=torch.float64)
    for bounds in (rows, rows.mT, rows.numpy(), rows.mT.numpy(), rows.mT.tolist()):
        assert torch.equal(sg.Optimizer(bounds).to_parts()["settings"].space.lower, rows[0])
    pairs = np.array([[100.0, 180.0], [0.5, 4.0]])
    for bounds in (pairs, torch.from_numpy(pairs), torch.from_numpy(pairs).mT):
        assert sg.Optimizer(bounds).to_parts()["settings"].space.upper.tolist() == [180.0, 4.0]
    with pytest.raises(ShapeError, match=r"may be pairs \(0, 100\), \(1, 180\) or lower ends .* Pass a list of pairs"):
        sg.Optimizer(torch.tensor([[0.0, 100.0], [1.0, 180.0]]))
    assert sg.Optimizer([[0.0, 100.0], [1.0, 180.0]]).to_parts()["settings"].space.upper.tolist() == [100.0, 180.0]


def test_a_seed_that_is_drawn_is_reported_and_repeats_the_run():
    state = torch.get_rng_state()
    drawn = sg.Optimizer(BOX, seed=None)
    assert torch.equal(torch.get_rng_state(), state)
    assert f"seed {drawn.seed}" in repr(drawn)
    assert torch.equal(sg.Optimizer(BOX, seed=drawn.seed).ask(3), drawn.ask(3))
    assert sg.Optimizer(BOX, seed=None).seed != drawn.seed


def test_losses_that_are_maximized_are_warned_of_once():
    def validation_loss(x):
        return float(x.sum())

    optimizer = sg.Optimizer(BOX, num_initial=2)
    with pytest.warns(StreamGPWarning, match="'validation_loss' sounds like what should be small.*maximize=False"):
        optimizer.run(validation_loss, 2, progress=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer.run(validation_loss, 1, progress=False)
        for maximize in (True, False):
            sg.Optimizer(BOX, maximize=maximize, num_initial=2).run(validation_loss, 2, progress=False)
        sg.Optimizer(BOX, num_initial=2).run(lambda x: 1.0, 2, progress=False)


def test_points_of_the_user_are_suggested_first():
    optimizer, twin = (sg.Optimizer({"x": sg.Real(0, 1)}, num_initial=2) for _ in range(2))
    optimizer.enqueue([{"x": 0.5}, {"x": 0.25}])
    assert optimizer.ask() == [{"x": 0.5}]
    assert optimizer.ask(2) == [{"x": 0.25}, *twin.ask(1)]
    assert optimizer.inspect(refit=False).why == ("queued", "initial design")
    assert len(optimizer.pending) == 3


def trade_offs(**options):
    objectives = [sg.Objective("more", **options), sg.Objective("less", maximize=False, **options)]
    optimizer = sg.Optimizer([(0.0, 1.0)], objectives=objectives, num_initial=2)
    x = torch.linspace(0.0, 1.0, 5, dtype=torch.float64).unsqueeze(-1)
    optimizer.tell(x, torch.cat([x, x], dim=-1))
    return optimizer


def test_a_volume_is_measured_from_a_reference_point_or_from_thresholds():
    optimizer = trade_offs()
    # Steps of a quarter under the diagonal from (0, 1): each of five points adds a column to the next.
    exact = sum(0.25 * (1.0 - 0.25 * k) for k in range(1, 5))
    tolerance = within(approximation(1e-3, "model"))
    assert optimizer.hypervolume({"less": 1.0, "more": 0.0}) == pytest.approx(exact, **tolerance)
    assert optimizer.hypervolume([0.0, 1.0]) == pytest.approx(exact, **tolerance)
    with pytest.raises(OptionError, match="a value of each of more, less, but 0 are known"):
        optimizer.hypervolume()
    assert trade_offs(threshold=0.5).hypervolume() == pytest.approx(0.0, **within(judgement(absolute=1e-3)))
    with pytest.raises(ValueRangeError, match="threshold must be a finite outcome"):
        sg.Objective(threshold=float("nan"))


def test_thresholds_keep_the_search_where_trade_offs_are_acceptable():
    objectives = [sg.Objective("more", threshold=0.6), sg.Objective("less", maximize=False, threshold=0.9)]
    optimizer = sg.Optimizer([(0.0, 1.0)], objectives=objectives, num_initial=2)
    x = torch.tensor([[0.0], [0.5], [1.0]], dtype=torch.float64)
    optimizer.tell(x, torch.cat([x, x.square()], dim=-1))
    asked = [optimizer.ask() for _ in range(3)]
    assert all(0.5 < float(point) < 1.0 for point in asked)


def test_a_model_that_keeps_no_data_says_so():
    X = torch.rand(6, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    fitted = sg.fit(X, X.sin().squeeze(-1))
    model = sg.OnlineGP(fitted.gp, fitted.likelihood)
    assert not hasattr(model, "train_inputs")
    with pytest.raises(AttributeError, match=r"keeps a belief and no train_inputs.*qJointEntropySearch"):
        _ = model.train_inputs


def test_points_of_a_plate_share_what_it_has():
    space = {"heat": sg.Real(0, 1), "dose": sg.Real(0, 1), "kind": sg.Categorical(["a", "b"])}
    optimizer = sg.Optimizer(space, num_initial=4)
    plate = optimizer.ask(5, shared=["heat", "kind"])
    assert len({(one["heat"], one["kind"]) for one in plate}) == 1
    assert len({one["dose"] for one in plate}) == 5
    optimizer.tell(plate, [one["dose"] for one in plate])
    assert len({one["heat"] for one in optimizer.ask(3, shared=["heat"])}) == 1
    assert len(optimizer.pending) == 3
    with pytest.raises(OptionError, match="shared names 'hat', but the parameters are heat, dose, kind"):
        optimizer.ask(2, shared=["hat"])
