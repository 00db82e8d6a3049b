"""A rover's trajectory among obstacles, in sixty dimensions."""

import math
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from paper.problems.base import AbstractProblem, Optimum, add_noise, check_noise_variance, unit_cube
from paper.problems.rover_obstacles import OBSTACLE_CENTERS

__all__ = ["Rover"]

_NUM_WAY_POINTS, _NUM_POINTS = 30, 1000
_START, _GOAL = 0.05, 0.95
_TRAVEL_COST, _COLLISION_COST, _END_COST = 0.05, 20.0, 10.0
_OBSTACLE_SIDE = 0.05
# Trajectories that are looked at together: their points times the obstacles are the largest array.
_ROWS_AT_ONCE = 128


@final
@dataclass(frozen=True)
class Rover(AbstractProblem):
    r"""Maximize the reward of a trajectory from (0.05, 0.05) to (0.95, 0.95) through 30 way-points.

    Inputs in the unit cube of 60 dimensions are the way-points $(x_1, y_1, x_2, y_2, \dots)$, mapped by $1.2 t - 0.1$.
    The trajectory is the parametric cubic smoothing spline of FITPACK (chord-length parameter, default smoothing
    $s = m - \sqrt{2m} = 22.25$ for $m = 30$ way-points), at 1000 equally spaced parameter values. A constant curve at
    the center of the box leaves a residual of at most $60 \cdot 0.6^2 = 21.6 < s$, so the spline never needs a knot,
    and is the least-squares cubic for all inputs, which is how it is computed: for all trajectories at once.

    A point costs 0.05, and 20 more inside any of 113 square obstacles of side 0.05 or outside the unit square. The
    reward is 5 less the cost along the trajectory (length of each piece times the mean cost of its ends), less 10 times
    the 1-norm by which the ends of the trajectory miss start and goal. No point of largest reward is known; a straight
    line without obstacles would have 4.936. Random inputs have rewards near -19 with standard deviation 5.4.

    The noise is in the way-points, with standard deviation 1e-4; where the trajectory passes an obstacle closely, that
    of the reward is about 0.02.

    Attributes:
        way_point_variance: Variance of the noise of the way-points' coordinates.
    """

    way_point_variance: float = 1e-8

    def __post_init__(self) -> None:
        """Check the noise."""
        check_noise_variance(self.way_point_variance)

    @property
    def bounds(self) -> Tensor:
        return unit_cube(2 * _NUM_WAY_POINTS)

    @property
    def optimum(self) -> Optimum:
        return Optimum(5.0 - _TRAVEL_COST * math.sqrt(2.0) * (_GOAL - _START), None)

    def _evaluate(self, X: Tensor) -> Tensor:
        return _rewards(_way_points(X)).to(X)

    def observe(self, X: Tensor, generator: torch.Generator | None = None) -> Tensor:
        X = self._checked(X)
        return _rewards(add_noise(_way_points(X), self.way_point_variance, generator)).to(X)

    def trajectory(self, X: Tensor) -> Tensor:
        """The points `(*b, n, 1000, 2)` of the trajectories, for drawing."""
        return _trajectory(_way_points(self._checked(X)))


def _way_points(X: Tensor) -> Tensor:
    """Coordinates `(*b, 30, 2)`, in double precision: the least-squares problem and the obstacles' edges need it."""
    return (1.2 * X.double() - 0.1).unflatten(-1, (_NUM_WAY_POINTS, 2))


def _rewards(way_points: Float[Tensor, "*b m 2"]) -> Float[Tensor, "*b"]:
    flat = way_points.reshape(-1, *way_points.shape[-2:])
    parts = [_reward(part) for part in flat.split(_ROWS_AT_ONCE)] if len(flat) else [flat.new_zeros(0)]
    return torch.cat(parts).reshape(way_points.shape[:-2])


def _reward(way_points: Float[Tensor, "n m 2"]) -> Float[Tensor, " n"]:
    path = _trajectory(way_points)
    cost = _TRAVEL_COST + _COLLISION_COST * _is_collision(path).to(path)
    lengths = path.diff(dim=-2).norm(dim=-1)
    travel = (lengths * 0.5 * (cost[..., 1:] + cost[..., :-1])).sum(-1)
    misses = (path[..., 0, :] - _START).abs().sum(-1) + (path[..., -1, :] - _GOAL).abs().sum(-1)
    return 5.0 - travel - _END_COST * misses


def _trajectory(way_points: Float[Tensor, "*b m 2"]) -> Float[Tensor, "*b k 2"]:
    """The least-squares cubic through way-points, in the parameter of their chord lengths."""
    chords = way_points.diff(dim=-2).norm(dim=-1).cumsum(-1)
    total = chords[..., -1:]
    # Way-points that are all one have no chords; any parameter gives the constant curve then, about the mean.
    parameter = torch.cat([torch.zeros_like(total), chords / torch.where(total > 0, total, 1.0)], dim=-1)
    # By singular values, as way-points at fewer than four places leave the cubic undetermined.
    mean = way_points.mean(-2, keepdim=True)
    weights = torch.linalg.lstsq(_legendre(parameter), way_points - mean, driver="gelsd").solution
    grid = torch.linspace(0.0, 1.0, _NUM_POINTS, dtype=way_points.dtype, device=way_points.device)
    return mean + _legendre(grid) @ weights


def _legendre(parameter: Float[Tensor, "*b m"]) -> Float[Tensor, "*b m 4"]:
    """Orthogonal polynomials on the unit interval, up to the cubic."""
    t = 2.0 * parameter - 1.0
    return torch.stack([torch.ones_like(t), t, 1.5 * t.square() - 0.5, t * (2.5 * t.square() - 1.5)], dim=-1)


def _is_collision(path: Float[Tensor, "n k 2"]) -> Tensor:
    """Whether each point is in an obstacle (lower edges included, upper ones not) or outside the unit square."""
    centers = torch.tensor(OBSTACLE_CENTERS, dtype=path.dtype, device=path.device)
    lower, upper = centers - 0.5 * _OBSTACLE_SIDE, centers + 0.5 * _OBSTACLE_SIDE
    x, y = path.unsqueeze(-2).unbind(-1)
    (x_low, y_low), (x_high, y_high) = lower.unbind(-1), upper.unbind(-1)
    is_hit = ((x >= x_low) & (x < x_high) & (y >= y_low) & (y < y_high)).any(-1)
    return is_hit | ((path < 0.0) | (path >= 1.0)).any(-1)
