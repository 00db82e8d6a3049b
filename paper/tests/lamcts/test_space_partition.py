"""The tree of good and bad regions: its cuts, its choice by hand, and samples that stay inside."""

import math

import numpy as np
import pytest

from paper.lamcts.space_partition import (
    Leaf,
    PartitionNode,
    PartitionSettings,
    choose_leaf,
    grow_tree,
    sample_leaf,
)
from streamgp.errors import OptionError, ValueRangeError


@pytest.fixture
def halves():
    """Samples whose values are high where the first input is."""
    X = np.random.default_rng(0).random((60, 2))
    return X, np.where(X[:, 0] > 0.5, 5.0, 0.0) + 0.1 * X[:, 1]


def leaves(node, sides=()):
    if not node.children:
        return [Leaf(node, sides)]
    good, bad = node.children
    return leaves(good, (*sides, (node.border, 1))) + leaves(bad, (*sides, (node.border, 0)))


def test_the_first_cut_parts_good_from_bad(halves):
    X, y = halves
    root = grow_tree(X, y, PartitionSettings(leaf_size=40), seed=0)
    good, bad = root.children
    assert y[good.indices].min() > y[bad.indices].max()
    assert good.mean > root.mean > bad.mean
    probe = np.array([[0.95, 0.5], [0.05, 0.5]])
    assert root.border.predict(probe).tolist() == [1, 0]


def test_every_sample_is_in_one_leaf_and_leaves_are_small_unless_they_cannot_be_cut(halves):
    X, y = halves
    found = leaves(grow_tree(X, y, PartitionSettings(leaf_size=10), seed=0))
    indices = np.concatenate([leaf.node.indices for leaf in found])
    assert sorted(indices.tolist()) == list(range(60))
    assert len(found) > 2


@pytest.mark.parametrize("gamma", ["scale", "auto"])
@pytest.mark.parametrize("num_good", [1, 5])
def test_a_few_good_samples_of_many_dimensions_are_parted_from_the_rest(gamma, num_good):
    """With the least penalty of errors and the width 1 / d, a border gives up all good samples."""
    random = np.random.default_rng(3)
    X, y = random.random((120, 33)), random.random(120)
    y[:num_good] += 500.0
    leaf = choose_leaf(grow_tree(X, y, PartitionSettings(leaf_size=100, gamma=gamma), seed=0), 1.0)
    assert sorted(leaf.node.indices.tolist()) == list(range(num_good))
    assert leaf.contains(X).sum() == num_good
    assert leaf.contains(X[:num_good]).all()


def test_options_are_checked():
    with pytest.raises(ValueRangeError, match="leaf_size"):
        PartitionSettings(leaf_size=0)
    with pytest.raises(OptionError, match="gamma"):
        PartitionSettings(gamma="wide")
    with pytest.raises(ValueRangeError, match="exploration must not be negative"):
        PartitionSettings(exploration=-1.0)


def test_samples_that_are_all_alike_are_not_cut():
    root = grow_tree(np.full((20, 3), 0.5), np.zeros(20), PartitionSettings(leaf_size=5), seed=0)
    assert root.children == ()


def test_the_choice_is_by_the_upper_bound():
    good, bad = PartitionNode(np.arange(9), 1.0), PartitionNode(np.arange(9, 10), 0.0)
    root = PartitionNode(np.arange(10), 0.9, "border", (good, bad))
    # Bounds 1 + 2 c sqrt(2 sqrt(10) / 9) and 2 c sqrt(2 sqrt(10) / 1): equal at this c.
    bound = math.sqrt(2.0 * math.sqrt(10.0))
    equal = 1.0 / (2.0 * bound * (1.0 - 1.0 / 3.0))
    assert choose_leaf(root, 0.99 * equal).node is good
    chosen = choose_leaf(root, 1.01 * equal)
    assert chosen.node is bad
    assert chosen.sides == (("border", 0),)
    assert choose_leaf(root, 0.0).sides == (("border", 1),)


@pytest.mark.slow
def test_samples_of_every_leaf_stay_inside_it_and_inside_the_cube(halves):
    X, y = halves
    for leaf in leaves(grow_tree(X, y, PartitionSettings(leaf_size=15), seed=1)):
        if not leaf.contains(X[leaf.node.indices]).any():
            continue  # the border has none of its samples: points are uniform
        points = sample_leaf(leaf, X, 30, random=np.random.default_rng(2))
        assert points.shape == (30, 2)
        assert leaf.contains(points).all()
        assert ((points >= 0.0) & (points <= 1.0)).all()


def test_without_borders_a_leaf_is_the_whole_cube():
    X = np.full((4, 2), 0.5)
    leaf = Leaf(PartitionNode(np.arange(4), 0.0), ())
    points = sample_leaf(leaf, X, 200, random=np.random.default_rng(0))
    assert np.ptp(points, axis=0).min() > 0.5
