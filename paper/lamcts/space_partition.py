"""A tree that cuts a cube into good and bad regions, and sampling from one of them."""

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.stats import qmc
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from streamgp.checks import check_choice, keep_count
from streamgp.errors import ValueRangeError
from streamgp.storage import register

__all__ = ["Leaf", "PartitionNode", "PartitionSettings", "choose_leaf", "grow_tree", "sample_leaf"]

_FIRST_LENGTH = 1e-4
# Points of a box that are tried, a power of two for Sobol's sequence.
_NUM_TRIED = 2048
# Of a sample on the wrong side of a border. With the least, a few good samples among many bad ones may all be given up,
# and nothing is cut: a cubic kernel of inputs in [0, 1] with width 1 / d is as small as 0.04.
_PENALTIES = (1.0, 1e3, 1e6)


@register
@final
@dataclass(frozen=True)
class PartitionSettings:
    """How a cube is cut.

    Attributes:
        leaf_size: A node with more samples than this is cut, if it can be.
        exploration: Weight of how rarely a node was sampled, in units of the values; if None, a tenth of their range.
        gamma: Width of the polynomial kernel of a border, `"scale"` or `"auto"`, as scikit-learn has it.
        num_start: New points of a leaf that a search starts from.
        keeps_samples: Whether it also starts from the samples of the leaf, which are known; LA-MCTS as published
            forgets them.
    """

    leaf_size: int = 10
    exploration: float | None = None
    gamma: str = "scale"
    num_start: int = 30
    keeps_samples: bool = True

    def __post_init__(self) -> None:
        """Check the options."""
        keep_count(self, "leaf_size")
        keep_count(self, "num_start", minimum=2)
        check_choice(self.gamma, ("scale", "auto"), "gamma")
        if self.exploration is not None and not 0.0 <= self.exploration < math.inf:
            raise ValueRangeError(f"exploration must not be negative, but is {self.exploration!r}.")


@final
@dataclass(frozen=True, eq=False)
class PartitionNode:
    """A part of the cube with its samples.

    Attributes:
        indices: Which samples are in it.
        mean: Mean of their values.
        border: A classifier that tells its good part from its bad one; None for a leaf.
        children: The good and the bad part; empty for a leaf.
    """

    indices: NDArray[np.int64]
    mean: float
    border: Any = None
    children: tuple["PartitionNode", ...] = ()


@final
@dataclass(frozen=True, eq=False)
class Leaf:
    """A region: one side of every border on the way to it.

    Attributes:
        node: The node, with its samples.
        sides: Borders, and on which side of each it is: 1 for the good one.
    """

    node: PartitionNode
    sides: tuple[tuple[Any, int], ...]

    def contains(self, X: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which rows are inside."""
        is_inside = np.ones(len(X), dtype=bool)
        for border, side in self.sides:
            if is_inside.any():
                is_inside[is_inside] = border.predict(X[is_inside]) == side
        return is_inside


def grow_tree(
    X: NDArray[np.float64], y: NDArray[np.float64], settings: PartitionSettings, *, seed: int
) -> PartitionNode:
    """Cut the unit cube by samples and their values, from the root.

    The samples of a node are parted by 2-means on inputs and value together; the part with the larger mean is the good
    one, and a support vector machine with a cubic kernel describes the border, as soft as it can be while it parts
    samples at all. Parts keep the samples that 2-means gave them.

    Args:
        X: Samples `(n, d)` in the unit cube.
        y: Values, large ones are good.
        settings: How it is cut.
        seed: Of 2-means.

    References:
        Wang, Fonseca, Tian (2020), Learning search space partition for black-box optimization using Monte Carlo tree
        search.
    """
    return _grow(X, y, np.arange(len(y)), settings=settings, seed=seed)


def _grow(
    X: NDArray[np.float64],
    y: NDArray[np.float64],
    indices: NDArray[np.int64],
    *,
    settings: PartitionSettings,
    seed: int,
) -> PartitionNode:
    mean = float(y[indices].mean())
    parts = _cut(X[indices], y[indices], settings.gamma, seed) if len(indices) > settings.leaf_size else None
    if parts is None:
        return PartitionNode(indices, mean)
    border, is_good = parts
    children = (
        _grow(X, y, indices[side], settings=settings, seed=2 * seed + offset)
        for side, offset in ((is_good, 1), (~is_good, 2))
    )
    return PartitionNode(indices, mean, border, tuple(children))


def _cut(X: NDArray[np.float64], y: NDArray[np.float64], gamma: str, seed: int) -> tuple[Any, NDArray[np.bool_]] | None:
    """A border, and which samples are on its good side; None if every border would leave all on one side."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct samples than parts
        labels = KMeans(2, n_init=10, random_state=seed % 2**31).fit_predict(np.column_stack([X, y]))
    if len(set(labels)) < 2:
        return None
    is_good = labels == int(y[labels == 1].mean() > y[labels == 0].mean())
    for penalty in _PENALTIES:
        border = SVC(C=penalty, kernel="poly", degree=3, gamma=gamma, max_iter=100_000).fit(X, is_good.astype(int))
        if len(set(border.predict(X))) == 2:
            return border, is_good
    return None


def choose_leaf(root: PartitionNode, exploration: float) -> Leaf:
    r"""Go down to the child with the larger upper bound $\bar y + 2 c \sqrt{2 \sqrt{n_{parent}} / n}$, to a leaf.

    Args:
        root: The tree.
        exploration: The weight $c$.
    """
    node, sides = root, []
    while node.children:
        scores = [
            child.mean + 2.0 * exploration * math.sqrt(2.0 * math.sqrt(len(node.indices)) / len(child.indices))
            for child in node.children
        ]
        index = int(np.argmax(scores))
        sides.append((node.border, 1 - index))
        node = node.children[index]
    return Leaf(node, tuple(sides))


def sample_leaf(
    leaf: Leaf, X: NDArray[np.float64], num_points: int, *, random: np.random.Generator
) -> NDArray[np.float64]:
    """Draw points of a leaf.

    Around samples of the leaf, boxes grow until they reach beyond its border, and Sobol points of these boxes that are
    inside are drawn from. If none is inside, which may be as samples need not be on their side of a border, points are
    uniform in the cube.

    Args:
        leaf: The leaf.
        X: All samples.
        num_points: How many.
        random: Source of randomness.
    """
    d = X.shape[1]
    found = list(_boxes(leaf, X, random))
    inside = np.concatenate(found) if found else np.empty((0, d))
    if not len(inside):
        return random.random((num_points, d))
    return inside[random.choice(len(inside), num_points, replace=len(inside) < num_points)]


def _boxes(leaf: Leaf, X: NDArray[np.float64], random: np.random.Generator) -> Iterator[NDArray[np.float64]]:
    """Points inside the leaf of the box around each of its samples."""
    d = X.shape[1]
    unit = qmc.Sobol(d, scramble=True, rng=random).random(_NUM_TRIED)
    for index in leaf.node.indices:
        length = _FIRST_LENGTH
        inside = np.empty((0, d))
        while length < 1.0:
            tried = np.clip(X[index] + length * (2.0 * unit - 1.0), 0.0, 1.0)
            is_inside = leaf.contains(tried)
            if not is_inside.any():
                break
            inside = tried[is_inside]
            if not is_inside.all():
                break
            length *= 2.0
        if len(inside):
            yield inside
