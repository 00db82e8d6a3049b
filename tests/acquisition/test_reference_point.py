"""The reference point, by its definition."""

import torch
from torch.testing import assert_close

from streamgp.acquisition.rules.hypervolume import find_reference_point

FRONT = torch.tensor([[0.0, 1.0], [0.6, 0.6], [1.0, 0.0]], dtype=torch.float64)


def with_point(*point):
    return torch.cat([FRONT, torch.tensor([point], dtype=torch.float64)])


def test_the_worst_known_values_count():
    assert_close(find_reference_point(with_point(-0.4, -0.7)), torch.tensor([-0.4, -0.7], dtype=torch.float64))


def test_it_is_a_tenth_of_the_range_below_the_set_at_least():
    assert_close(find_reference_point(FRONT), torch.tensor([-0.1, -0.1], dtype=torch.float64))


def test_it_is_a_range_below_the_set_at_most():
    assert_close(find_reference_point(with_point(-50.0, -0.5)), torch.tensor([-1.0, -0.5], dtype=torch.float64))


def test_points_that_are_dominated_do_not_change_the_range():
    inner = find_reference_point(with_point(0.5, 0.5))
    assert_close(inner, find_reference_point(FRONT))


def test_a_single_best_point_has_the_range_of_all_others():
    scores = torch.tensor([[0.0, -1.0], [-0.5, -3.0], [-0.2, -2.0]], dtype=torch.float64)
    assert_close(find_reference_point(scores), torch.tensor([-0.5, -3.0], dtype=torch.float64))
    nearly = torch.cat([scores, torch.tensor([[-1e-9, -1.0 + 1e-9]], dtype=torch.float64)])
    assert_close(find_reference_point(nearly), torch.tensor([-0.5, -3.0], dtype=torch.float64))
    same = torch.zeros(2, 2, dtype=torch.float64)
    assert_close(find_reference_point(same), torch.full((2,), -0.1, dtype=torch.float64))
