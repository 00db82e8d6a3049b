import copy

import numpy as np
import torch
from torch.testing import assert_close

from streamgp.streaming.reach import Reach


def _reach():
    return Reach.of(np.array([[0.0, 5.0], [2.0, 5.0]]), margin=0.5)


def test_inputs_within_the_margin_are_in_reach():
    X = np.array([[-1.0, 5.0], [3.0, 5.0], [1.0, 5.0]])
    assert _reach().limit(X) is X


def test_inputs_farther_away_are_taken_to_the_edge():
    X = np.array([[-10.0, 4.0], [1e9, 6.0]])
    assert_close(_reach().limit(X), np.array([[-1.0, 5.0], [3.0, 5.0]]))


def test_what_was_learned_is_in_reach_from_then_on():
    reach, X = _reach(), np.array([[40.0, 6.0]])
    assert reach.extended(X).limit(X) is X
    inside = np.array([[1.0, 5.0]])
    assert reach.extended(inside) is reach


def test_ranges_are_joined():
    other = Reach.of(np.array([[-3.0, 6.0], [1.0, 7.0]]), margin=0.5)
    joined = _reach().joined(other)
    assert joined.lower.tolist() == [-3.0, 5.0]
    assert joined.upper.tolist() == [2.0, 7.0]


def test_copies_hold_no_more_than_the_range():
    reach = _reach()
    reach.limit(np.zeros((1, 2)))
    assert vars(copy.deepcopy(reach)).keys() == {"lower", "upper", "margin"}


def test_without_a_margin_to_keep_everything_is_in_reach():
    X = np.array([[1e9, -1e9]])
    reach = Reach(torch.zeros(2, dtype=torch.float64), torch.ones(2, dtype=torch.float64))
    assert reach.limit(X) is X
