"""What spaces that are the unit cube inside have in common, and that a user's own needs little."""

from dataclasses import dataclass
from typing import final

import pytest
import torch

import streamgp as sg
from streamgp.errors import OptionError, UnsupportedError
from streamgp.loops import AbstractCubeSpace
from streamgp.loops.cube_space import separate_points
from streamgp.loops.maximize import candidates_around


@sg.storage.register
@final
@dataclass(frozen=True)
class Interval(AbstractCubeSpace):
    """A begin, and an end that is not before it."""

    length: float

    @property
    def num_dims(self):
        return 2

    @property
    def column_names(self):
        return ("begin", "end")

    def show(self, points):
        begin = self.length * points[:, 0]
        end = begin + points[:, 1] * (self.length - begin)
        return [{"begin": float(b), "end": float(e)} for b, e in zip(begin, end, strict=True)]

    def read(self, X, name="X"):
        rows = [X] if isinstance(X, dict) else X
        ends = torch.tensor([[row["begin"], row["end"]] for row in rows], dtype=torch.float64)
        share = (ends[:, 1] - ends[:, 0]) / (self.length - ends[:, 0]).clamp_min(1e-12)
        return torch.stack([ends[:, 0] / self.length, share.clamp(0.0, 1.0)], dim=-1)


@pytest.fixture
def optimizer():
    return sg.Optimizer(Interval(10.0), num_initial=3, acquisition="thompson")


def test_a_space_of_ones_own_is_searched_saved_and_loaded(optimizer, tmp_path):
    points = optimizer.ask(4)
    assert all(0.0 <= one["begin"] <= one["end"] <= 10.0 for one in points)
    optimizer.tell(points, [one["end"] - one["begin"] for one in points])
    assert not len(optimizer.pending)
    suggested = optimizer.ask()[0]
    assert 0.0 <= suggested["begin"] <= suggested["end"] <= 10.0
    assert optimizer.best().X in [pytest.approx(one) for one in points]
    optimizer.save(tmp_path / "own.sgo")
    assert sg.load(tmp_path / "own.sgo").X == optimizer.X
    assert repr(optimizer).startswith("Optimizer(2 parameters, 4 outcomes, 1 pending, best ")
    assert optimizer.plot_slice("end").get_xlabel() == "end"


def test_such_spaces_have_more_points_than_can_be_listed(optimizer):
    with pytest.raises(UnsupportedError, match="more points than could be listed"):
        Interval(1.0).all_points()
    with pytest.raises(OptionError, match="input_constraints are between parameters with names"):
        sg.Optimizer(Interval(1.0), input_constraints=[sg.LinearConstraint({"begin": 1.0}, upper=1.0)])


def nearest(points, others):
    return (points.unsqueeze(1) - others).abs().amax(-1).min()


def test_candidates_are_in_the_cube_and_crowd_around_the_centers(rng):
    centers = torch.tensor([[0.9, 0.1, 0.5]], dtype=torch.float64)
    drawn = candidates_around(centers, 400, generator=rng)
    assert drawn.shape == (400, 3)
    assert ((drawn >= 0) & (drawn <= 1)).all()
    near = ((drawn - centers).abs().amax(-1) < 0.05).double().mean()
    assert near > 0.1  # a uniform draw has 0.1 ** 3


def test_points_that_are_new_stay(rng):
    points = torch.tensor([[0.1, 0.1], [0.9, 0.9]], dtype=torch.float64)
    assert torch.equal(separate_points(points, points[:0], seed=0), points)
    assert torch.equal(separate_points(points, points + 0.05, seed=0), points)


def test_points_that_repeat_are_replaced():
    taken = torch.tensor([[0.5, 0.5]], dtype=torch.float64)
    points = torch.cat([taken + 1e-4, taken, taken - 0.3, taken - 0.3])
    new = separate_points(points, taken, seed=0)
    assert torch.equal(new[2], points[2])
    everything = torch.cat([taken, new])
    for i, point in enumerate(everything):
        others = torch.cat([everything[:i], everything[i + 1 :]])
        assert nearest(point.unsqueeze(0), others) >= 5e-3


def test_a_cube_that_is_full_gives_the_loneliest_point():
    taken = torch.linspace(0, 1, 300, dtype=torch.float64).unsqueeze(-1)
    new = separate_points(taken[:1], taken, seed=0)
    assert nearest(new, taken) > 0
