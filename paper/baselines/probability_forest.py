"""A random forest for the probability of one of two classes, grown with little around its trees."""

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray
from sklearn.tree._criterion import Gini
from sklearn.tree._splitter import BestSplitter
from sklearn.tree._tree import DepthFirstTreeBuilder, Tree

__all__ = ["ProbabilityForest"]

_LARGEST = np.iinfo(np.int32).max


@final
@dataclass(frozen=True, eq=False)
class ProbabilityForest:
    """The forest of scikit-learn's `RandomForestClassifier` with its default options, tree by tree.

    A small tree grows in a fifth of a millisecond, and the estimator around it takes five times as long to check and
    copy its parameters. A study that grows a million of them calls what builds the tree itself.

    Attributes:
        trees: Grown on bootstrap samples.
    """

    trees: tuple[Tree, ...]

    @classmethod
    def grow(
        cls,
        rows: NDArray[np.float64],
        labels: NDArray[np.float64],
        weights: NDArray[np.float64],
        *,
        num_trees: int,
        least_leaf: int,
        seed: int,
    ) -> "ProbabilityForest":
        """Grow trees on samples of the rows, each row drawn as often as its weight says.

        Args:
            rows: Inputs `(n, k)`.
            labels: 0 or 1, `(n,)`.
            weights: Weights `(n,)`; not negative.
            num_trees: Number of trees.
            least_leaf: Fewest rows in a leaf.
            seed: Of samples and splits.
        """
        X = np.ascontiguousarray(rows, dtype=np.float32)
        y = np.ascontiguousarray(labels[:, None], dtype=np.float64)
        shares = weights / weights.sum()
        seeds, numbers = np.random.RandomState(seed), np.random.RandomState()
        return cls(
            tuple(_grow_tree(X, y, shares, least_leaf, seeds.randint(_LARGEST), numbers) for _ in range(num_trees))
        )

    def predict(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Probability `(n,)` of the label 1 for rows `(n, k)`."""
        X = np.ascontiguousarray(rows, dtype=np.float32)
        total = np.zeros(len(X))
        for tree in self.trees:
            total += tree.predict(X)[:, -1]
        return total / len(self.trees)


def _grow_tree(
    X: NDArray[np.float32],
    y: NDArray[np.float64],
    shares: NDArray[np.float64],
    least_leaf: int,
    seed: int,
    numbers: np.random.RandomState,
) -> Tree:
    """Grow one tree; `numbers` is seeded anew for its sample and for its splits, which a new generator makes slow."""
    n, k = X.shape
    numbers.seed(seed)
    counts = np.bincount(numbers.choice(n, n, p=shares), minlength=n).astype(np.float64)
    numbers.seed(seed)
    classes = np.array([2], dtype=np.intp)
    num_tried = max(1, int(math.sqrt(k)))
    splitter = BestSplitter(Gini(1, classes), num_tried, least_leaf, 0.0, numbers, None)
    tree = Tree(k, classes, 1)
    DepthFirstTreeBuilder(splitter, max(2, 2 * least_leaf), least_leaf, 0.0, _LARGEST, 0.0).build(tree, X, y, counts)
    return tree
