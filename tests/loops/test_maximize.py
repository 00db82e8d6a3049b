import torch
from torch.testing import assert_close

from streamgp.acquisition import Search
from streamgp.loops.maximize import candidates_around, evaluate_in_parts, maximize_in_cube, one_after_the_other
from streamgp.testing.tolerances import approximation

PEAK = torch.tensor([0.3, 1.0], dtype=torch.float64)


class Bowl:
    """An acquisition function with its maximum at a side of the square."""

    X_pending = None

    def __call__(self, X):
        return -(X - PEAK - torch.tensor([0.0, 0.4])).square().sum((-2, -1))

    def set_X_pending(self, X):  # as BoTorch calls it
        self.X_pending = X


def test_the_maximum_is_found_also_at_a_side():
    search = Search(num_restarts=2, raw_samples=16, max_iterations=50)
    for centers in (None, PEAK.unsqueeze(0) - 0.1):
        found = maximize_in_cube(Bowl(), 1, search, num_dims=2, seed=0, centers=centers)
        assert_close(found, PEAK.unsqueeze(0), **approximation(1e-4, "iteration"))


def test_points_are_chosen_with_those_before_pending():
    bowl, seen = Bowl(), []
    bowl.X_pending = torch.zeros(1, 2)

    def maximize(k):
        seen.append(len(bowl.X_pending))
        return torch.full((1, 2), float(k))

    chosen = one_after_the_other(bowl, 3, maximize)
    assert chosen[:, 0].tolist() == [0.0, 1.0, 2.0]
    assert seen == [1, 2, 3]
    assert torch.equal(bowl.X_pending, torch.zeros(1, 2))


def test_values_in_parts_are_those_of_one_call(rng):
    points = torch.rand(600, 2, generator=rng, dtype=torch.float64)
    assert torch.equal(evaluate_in_parts(Bowl(), points), Bowl()(points.unsqueeze(-2)))


def test_half_of_the_candidates_are_near_good_points(rng):
    centers = torch.full((1, 3), 0.5, dtype=torch.float64)
    points = candidates_around(centers, 200, generator=rng)
    assert points.shape == (200, 3)
    assert bool(((points >= 0) & (points <= 1)).all())
    wide, near = (part.sub(0.5).norm(dim=-1).median() for part in points.split(100))
    assert float(near) < 0.5 * float(wide)
