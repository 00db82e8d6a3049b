"""The optimizer whose trust regions start where a tree of good and bad regions says."""

from collections.abc import Sequence
from typing import Any, final

from torch import Tensor

from paper.lamcts.space_partition import PartitionNode, PartitionSettings
from paper.lamcts.tree_search import TreeMemory, TreeSearch
from streamgp.acquisition import AbstractRule, RegionRules
from streamgp.acquisition.trust_region import Region
from streamgp.errors import ArgumentTypeError, ValueRangeError
from streamgp.likelihoods import AbstractLikelihood
from streamgp.loops import AbstractLoop
from streamgp.loops.evaluation import BatchRuns
from streamgp.optimizers.turbo import read_region, region_settings
from streamgp.storage import register

__all__ = ["LaMCTSOptimizer"]


@final
class LaMCTSOptimizer(BatchRuns, AbstractLoop):
    """Bayesian optimization in trust regions, each of which starts in the most promising part of the box.

    The loop of `TurboOptimizer` with the rule `TreeSearch`: after an initial design, a tree cuts
    the box into good and bad parts by all outcomes so far, an upper confidence bound chooses one of its leaves, and a
    trust region starts from the samples of that leaf and new points in it. When the region has become too small, the
    tree is grown anew and the next one starts. The trust region itself may leave the leaf.

    `ask` suggests points, fewer than asked for where a design has fewer left; `tell` takes their outcomes, and is one
    step of the trust region. Failed evaluations are told as NaN. The same seed and the same calls give the same
    suggestions, also across `save` and `load`. Threads may share an optimizer.

    ```python
    from paper.lamcts import LaMCTSOptimizer

    optimizer = LaMCTSOptimizer([(-5.0, 5.0)] * 4, maximize=False)
    best = optimizer.run(lambda x: (x**2).sum(), 12, q=4, progress=False)
    ```

    References:
        Wang, Fonseca, Tian (2020), Learning search space partition for black-box optimization using Monte Carlo tree
        search.
    """

    def __init__(
        self,
        bounds: Tensor | Sequence[tuple[float, float]],
        *,
        maximize: bool = True,
        likelihood: str | AbstractLikelihood = "gaussian",
        num_initial: int | None = None,
        partition: Any = None,
        model: str = "sparse",
        acquisition: str | AbstractRule = "thompson",
        objective: str = "elbo",
        num_inducing: int = 500,
        rules: RegionRules | None = None,
        priors: str | None = "dim_scaled",
        scaling: str = "standardize",
        refit: str | int = "always",
        seed: int = 0,
    ) -> None:
        """Start without data.

        Args:
            bounds: Of the box that is searched, as in `TurboOptimizer`.
            maximize: Whether large outcomes are wanted, or small ones.
            likelihood: Of the outcomes, as in `TurboOptimizer`.
            num_initial: Points of the initial design, a Latin hypercube; 2 d by default.
            partition: How the box is cut, a `PartitionSettings`.
            model: Of the trust regions, as in `TurboOptimizer`.
            acquisition: Likewise.
            objective: Likewise.
            num_inducing: Likewise.
            rules: Likewise.
            priors: Likewise.
            scaling: Likewise.
            refit: Likewise.
            seed: Of everything random.
        """
        if partition is not None and not isinstance(partition, PartitionSettings):
            raise ArgumentTypeError(f"partition must be a PartitionSettings, but is a {type(partition).__name__}.")
        rule = TreeSearch(read_region(acquisition, rules), PartitionSettings() if partition is None else partition)
        self._start(
            region_settings(
                bounds,
                rule,
                maximize=maximize,
                likelihood=likelihood,
                model=model,
                objective=objective,
                num_inducing=num_inducing,
                num_initial=num_initial,
                priors=priors,
                scaling=scaling,
                refit=refit,
                seed=seed,
            )
        )

    @property
    def region(self) -> Region:
        """The trust region of the current run."""
        return self._memory.regions.region

    @property
    def num_runs(self) -> int:
        """How many trust regions have started."""
        return self._settings.rule.run(self._memory)

    def tree(self) -> PartitionNode:
        """The tree of all outcomes so far, which is cut as that of the next run would be."""
        rule: Any = self._settings.rule
        told = self._state.observations.rows(self._state.observations.is_informative)
        if not len(told.points):
            raise ValueRangeError("There is no outcome yet by which to cut the box. Tell some, and look again.")
        values = told.y[:, 0] if self._settings.objectives[0].maximize else -told.y[:, 0]
        root: PartitionNode = rule.tree(told.points.numpy(), values.numpy(), seed=self._settings.seed)
        return root

    def __repr__(self) -> str:
        settings = self._settings
        direction = "maximize" if settings.objectives[0].maximize else "minimize"
        return (
            f"LaMCTSOptimizer({direction} over {settings.space.num_dims} dimensions: {self._summary()}, "
            f"{self.num_runs} trust regions so far)"
        )

    @property
    def _memory(self) -> TreeMemory:
        memory: TreeMemory = self._state.memory
        return memory


register(LaMCTSOptimizer, to_fields=LaMCTSOptimizer.to_parts, from_fields=LaMCTSOptimizer.from_parts)
