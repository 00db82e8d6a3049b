"""LA-MCTS: trust regions that a tree of good and bad parts of the box places."""

from paper.lamcts.optimizer import LaMCTSOptimizer
from paper.lamcts.space_partition import PartitionSettings
from paper.lamcts.tree_search import TreeSearch

__all__ = ["LaMCTSOptimizer", "PartitionSettings", "TreeSearch"]
