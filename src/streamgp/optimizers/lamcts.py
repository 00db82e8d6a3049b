"""Trust regions that start where a tree of good and bad regions says."""

import threading
from collections.abc import Sequence
from typing import Any, final

import numpy as np
import torch
from scipy.stats import qmc
from torch import Tensor

from streamgp.acquisition import AbstractRule, RegionRules
from streamgp.checks import check_count
from streamgp.errors import DTypeError, ShapeError
from streamgp.loops import Box
from streamgp.optimizers.space_partition import PartitionNode, PartitionSettings, choose_leaf, grow_tree, sample_leaf
from streamgp.optimizers.turbo import TurboOptimizer

__all__ = ["LaMCTSOptimizer"]

# Without a weight of exploration: this share of the range of outcomes.
_EXPLORATION = 0.1


@final
class LaMCTSOptimizer:
    """Bayesian optimisation in trust regions, each of which starts in the most promising part of the box.

    After an initial design, a tree cuts the box into good and bad parts by all outcomes so far, an upper confidence
    bound chooses one of its leaves, and a `TurboOptimizer` starts from points of that leaf. When its trust region has
    become too small, the tree is grown anew and the next one starts. The trust region itself may leave the leaf.

    `ask` suggests points, `tell` takes their outcomes; failed evaluations are told as NaN. The same seed and the same
    calls give the same suggestions. Threads may share an optimizer.

    References:
        Wang, Fonseca, Tian (2020), Learning search space partition for black-box optimization using Monte Carlo tree
        search.
    """

    def __init__(
        self,
        bounds: Tensor | Sequence[tuple[float, float]],
        *,
        maximize: bool = True,
        num_initial: int | None = None,
        partition: Any = None,
        model: str = "sparse",
        acquisition: str | AbstractRule = "thompson",
        objective: str = "elbo",
        num_inducing: int = 500,
        rules: RegionRules | None = None,
        seed: int = 0,
    ) -> None:
        """Start without data.

        Args:
            bounds: Of the box that is searched, as in `TurboOptimizer`.
            maximize: Whether large outcomes are wanted, or small ones.
            num_initial: Points of the initial design, a Latin hypercube; 2 d by default.
            partition: How the box is cut, a `PartitionSettings`.
            model: Of the trust regions, as in `TurboOptimizer`.
            acquisition: Likewise.
            objective: Likewise.
            num_inducing: Likewise.
            rules: Likewise.
            seed: Of everything random.
        """
        self._box = Box.from_bounds(bounds)
        if partition is not None and not isinstance(partition, PartitionSettings):
            raise DTypeError(
                f"partition must be a streamgp.optimizers.PartitionSettings, but is a {type(partition).__name__}."
            )
        self._bounds = bounds
        self._maximize = maximize
        self._partition = PartitionSettings() if partition is None else partition
        self._options: dict[str, Any] = {
            "maximize": maximize,
            "model": model,
            "acquisition": acquisition,
            "objective": objective,
            "num_inducing": num_inducing,
            "rules": rules,
        }
        self._seed = check_count(seed, "seed", minimum=0)
        d = self._box.num_dims
        self._num_initial = 2 * d if num_initial is None else check_count(num_initial, "num_initial", minimum=2)
        self._waiting = qmc.LatinHypercube(d, rng=np.random.default_rng(self._seed)).random(self._num_initial)
        self._X = np.empty((0, d))  # in the unit cube
        self._y = np.empty(0)
        self._turbo: TurboOptimizer | None = None
        self._num_runs = 0
        self._lock = threading.RLock()
        self._new_turbo()  # so that wrong options are refused now

    def ask(self, q: int = 1) -> Tensor:
        """Suggest points `(q, d)`; fewer while points of a design are left, if fewer are."""
        check_count(q, "q")
        with self._lock:
            if not len(self._waiting) and self._turbo is None:
                self._start_run()
            if len(self._waiting):
                chosen, self._waiting = self._waiting[:q], self._waiting[q:]
                return self._box.show(torch.from_numpy(chosen.copy()))
            assert self._turbo is not None
            return self._turbo.ask(q)

    def tell(self, X: Any, y: Any) -> None:
        """Learn outcomes.

        Args:
            X: Points `(n, d)`.
            y: Outcomes `(n)`; NaN where an evaluation failed.
        """
        unit = self._box.read(X)
        outcomes = torch.as_tensor(y, dtype=torch.float64)
        if outcomes.shape != unit.shape[:1]:
            raise ShapeError(
                f"y must have shape {tuple(unit.shape[:1])}, one outcome for each row of X, but has shape "
                f"{tuple(outcomes.shape)}."
            )
        with self._lock:
            if self._turbo is not None:
                self._turbo.tell(self._box.show(unit), outcomes)
            self._X = np.concatenate([self._X, unit.numpy()])
            self._y = np.concatenate([self._y, outcomes.numpy()])
            if self._turbo is not None and self._turbo.num_runs > 1:
                self._turbo, self._waiting = None, self._waiting[:0]

    @property
    def X(self) -> Tensor:  # noqa: N802 # as BoTorch calls it
        """All points that were told, in the user's units."""
        return self._box.show(torch.from_numpy(self._X.copy()))

    @property
    def y(self) -> Tensor:
        """Their outcomes."""
        return torch.from_numpy(self._y.copy())

    @property
    def num_runs(self) -> int:
        """How many trust regions have started."""
        return self._num_runs

    def tree(self) -> PartitionNode:
        """The tree of all outcomes so far, as the next run would see it."""
        is_known = np.isfinite(self._y)
        values = self._y[is_known] if self._maximize else -self._y[is_known]
        return grow_tree(self._X[is_known], values, self._partition, seed=self._seed + self._num_runs)

    def _start_run(self) -> None:
        is_known = np.isfinite(self._y)
        random = np.random.default_rng([self._seed, self._num_runs])
        num = self._partition.num_start
        if is_known.any():
            known = self._y[is_known]
            weight = self._partition.exploration
            leaf = choose_leaf(self.tree(), _EXPLORATION * float(np.ptp(known)) if weight is None else weight)
            self._waiting = sample_leaf(leaf, self._X[is_known], num, random=random)
        else:
            self._waiting = random.random((num, self._box.num_dims))
        self._num_runs += 1
        self._turbo = self._new_turbo()

    def _new_turbo(self) -> TurboOptimizer:
        seed = self._seed + 1000 * self._num_runs
        return TurboOptimizer(self._bounds, num_initial=self._partition.num_start, seed=seed, **self._options)
