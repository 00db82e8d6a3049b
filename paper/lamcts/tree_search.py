"""Trust regions that start where a tree of good and bad regions says, which the rule remembers."""

from dataclasses import dataclass, field, replace
from typing import ClassVar, final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from scipy.stats import qmc
from torch import Tensor

from paper.lamcts.space_partition import PartitionNode, PartitionSettings, choose_leaf, grow_tree, sample_leaf
from streamgp.acquisition.abstract_rule import AbstractRule, Design
from streamgp.acquisition.context import Context
from streamgp.acquisition.rules.trust_region_rule import RegionMemory, TrustRegion
from streamgp.errors import UnsupportedError
from streamgp.storage import register

__all__ = ["TreeMemory", "TreeSearch"]

# Without a weight of exploration: this share of the range of outcomes.
_EXPLORATION = 0.1


@register
@final
@dataclass(frozen=True, eq=False)
class TreeMemory:
    """What is remembered of a search by a tree.

    Attributes:
        regions: Of its trust regions; the first run is the initial design, and has none.
        is_planned: Whether the design of the current run was made.
        waiting: Points of that design that were not given out yet.
        members: Which evaluations of earlier runs the current one knows, those of its leaf.
    """

    regions: RegionMemory
    is_planned: bool = False
    waiting: Float[Tensor, "w d"] = field(default_factory=lambda: torch.empty(0, 0, dtype=torch.float64))
    members: Int[Tensor, " l"] = field(default_factory=lambda: torch.empty(0, dtype=torch.long))


@register
@final
@dataclass(frozen=True)
class TreeSearch(AbstractRule):
    """Search in trust regions, each of which starts in the most promising part of a box.

    After an initial design, a Latin hypercube, a tree cuts the box into good and bad parts by all outcomes so far, an
    upper confidence bound chooses one of its leaves, and a trust region starts from the samples of that leaf and new
    points in it. When the region has become too small, the tree is grown anew and the next one starts. A trust region
    may leave its leaf.

    ```python
    from paper.lamcts import TreeSearch

    optimizer = sg.Optimizer([(-5.0, 5.0)] * 4, acquisition=TreeSearch(), num_initial=8, maximize=False)
    points = optimizer.ask(4)
    optimizer.tell(points, (points**2).sum(-1))
    ```

    Attributes:
        region: How a trust region is searched, and how it changes.
        partition: How the box is cut.

    References:
        Wang, Fonseca, Tian (2020), Learning search space partition for black-box optimization using Monte Carlo tree
        search.
    """

    region: TrustRegion = field(default_factory=TrustRegion)
    partition: PartitionSettings = field(default_factory=PartitionSettings)
    may_repeat: ClassVar[bool] = True

    def propose(self, context: Context, q: int, *, seed: int) -> Tensor:
        """Choose in the trust region."""
        memory: TreeMemory = context.memory
        return self.region.propose(replace(context, memory=memory.regions), q, seed=seed)

    def start(self) -> TreeMemory:
        """Before any data."""
        return TreeMemory(self.region.start())

    def remember(self, memory: TreeMemory, values: Tensor, *, is_initial: bool, num_dims: int) -> TreeMemory:
        """One step of the trust region, if there is one."""
        is_first = self.run(memory) == 0
        regions = self.region.remember(memory.regions, values, is_initial=is_initial or is_first, num_dims=num_dims)
        return self._with_regions(memory, regions)

    def run(self, memory: TreeMemory) -> int:
        """How many trust regions have started."""
        return self.region.run(memory.regions)

    def in_run(self, memory: TreeMemory, num_told: int) -> Bool[Tensor, " n"]:
        """The evaluations of the current run, and those of its leaf."""
        is_known = self.region.in_run(memory.regions, num_told).clone()
        is_known[memory.members] = True
        return is_known

    def num_initial(self, memory: TreeMemory, default: int) -> int:
        """All of the first design; later, new points of the leaf beside what is known of it."""
        return default if self.run(memory) == 0 else self.partition.num_start + len(memory.members)

    def design(self, memory: TreeMemory, q: int, design: Design) -> tuple[TreeMemory, Tensor]:
        """Points of a Latin hypercube, or of the leaf; of the space's own design if more are needed."""
        if not design.space.is_continuous:
            raise UnsupportedError("A tree of regions needs a continuous space. Use streamgp.Optimizer for others.")
        if not memory.is_planned:
            memory = self._planned(memory, design)
        if not len(memory.waiting):
            return super().design(memory, q, design)
        return replace(memory, waiting=memory.waiting[q:]), memory.waiting[:q].clone()

    def designed(self, memory: TreeMemory) -> TreeMemory:
        """After the first design, the first trust region begins."""
        if self.run(memory) > 0:
            return memory
        regions = memory.regions
        start = replace(regions, region=self.region.region.start(), num_runs=regions.num_runs + 1)
        return self._with_regions(memory, start)

    def tree(self, X: NDArray[np.float64], values: NDArray[np.float64], *, seed: int) -> PartitionNode:
        """The tree of samples in the unit cube and their values, large ones good.

        Args:
            X: Samples.
            values: Their values.
            seed: Of the cuts.
        """
        return grow_tree(X, values, self.partition, seed=seed)

    def _with_regions(self, memory: TreeMemory, regions: RegionMemory) -> TreeMemory:
        """What a new run knows, or the same run after a step."""
        is_new = regions.num_runs != memory.regions.num_runs
        return TreeMemory(regions) if is_new else replace(memory, regions=regions)

    def _planned(self, memory: TreeMemory, design: Design) -> TreeMemory:
        """With the points of the current run's design."""
        random, d = np.random.default_rng(design.seed), design.space.num_dims
        rows = design.values.isfinite().nonzero().squeeze(-1)
        if self.run(memory) == 0 or not len(rows):
            num = design.num_initial - design.num_before
            points = qmc.LatinHypercube(d, rng=random).random(max(num, 0))
            return replace(memory, is_planned=True, waiting=torch.from_numpy(points))
        X, values = design.points[rows].numpy(), design.values[rows].numpy()
        weight = self.partition.exploration
        weight = _EXPLORATION * float(np.ptp(values)) if weight is None else weight
        leaf = choose_leaf(self.tree(X, values, seed=design.seed), weight)
        points = sample_leaf(leaf, X, self.partition.num_start, random=random)
        memory = replace(memory, is_planned=True, waiting=torch.from_numpy(points.copy()))
        if not self.partition.keeps_samples:
            return memory
        best = float(values[leaf.node.indices].max())
        regions = replace(memory.regions, region=replace(memory.regions.region, best=best))
        return replace(memory, regions=regions, members=rows[torch.from_numpy(leaf.node.indices)])
