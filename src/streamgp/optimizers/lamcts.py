"""Trust regions that start where a tree of good and bad regions says."""

import math
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Float
from scipy.stats import qmc
from torch import Tensor

from streamgp.acquisition import AbstractRule, RegionRules
from streamgp.checks import check_count
from streamgp.errors import DTypeError, ShapeError, UnsupportedError
from streamgp.loops import Best, Box
from streamgp.loops.running import BatchRuns
from streamgp.optimizers.space_partition import PartitionNode, PartitionSettings, choose_leaf, grow_tree, sample_leaf
from streamgp.optimizers.turbo import TurboOptimizer
from streamgp.storage import load, register, save

__all__ = ["LaMCTSOptimizer"]

# Without a weight of exploration: this share of the range of outcomes.
_EXPLORATION = 0.1


@register
@final
@dataclass(frozen=True, eq=False)
class LaMCTSSettings:
    """What the search was made with.

    Attributes:
        box: What is searched.
        partition: How it is cut.
        num_initial: Points of the initial design.
        seed: Of everything random.
        maximize: Whether large outcomes are wanted.
        options: Other options of the trust regions.
    """

    box: Box
    partition: PartitionSettings
    num_initial: int
    seed: int
    maximize: bool
    options: Mapping[str, Any]


@register
@final
@dataclass(frozen=True, eq=False)
class LaMCTSState:
    """Everything that suggestions depend on but the settings.

    Attributes:
        X: All points that were told, in the unit cube.
        y: Their outcomes.
        waiting: Points of a design that were not given out yet.
        turbo: The trust region of now; None between two of them.
        num_runs: How many have started.
    """

    X: Float[Tensor, "n d"]
    y: Float[Tensor, " n"]
    waiting: Float[Tensor, "w d"]
    turbo: TurboOptimizer | None = None
    num_runs: int = 0


@final
class LaMCTSOptimizer(BatchRuns):
    """Bayesian optimisation in trust regions, each of which starts in the most promising part of the box.

    After an initial design, a tree cuts the box into good and bad parts by all outcomes so far, an upper confidence
    bound chooses one of its leaves, and a `TurboOptimizer` starts from points of that leaf. When its trust region has
    become too small, the tree is grown anew and the next one starts. The trust region itself may leave the leaf.

    `ask` suggests points, `tell` takes their outcomes; failed evaluations are told as NaN. The same seed and the same
    calls give the same suggestions, also across `save` and `load`. Threads may share an optimizer.

    ```python
    optimizer = sg.LaMCTSOptimizer([(-5.0, 5.0)] * 4, maximize=False)
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
        num_initial: int | None = None,
        partition: Any = None,
        model: str = "sparse",
        acquisition: str | AbstractRule = "thompson",
        objective: str = "elbo",
        num_inducing: int = 500,
        rules: RegionRules | None = None,
        priors: str | None = "dim_scaled",
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
            priors: Likewise.
            seed: Of everything random.
        """
        box = Box.from_bounds(bounds)
        if partition is not None and not isinstance(partition, PartitionSettings):
            raise DTypeError(
                f"partition must be a streamgp.optimizers.PartitionSettings, but is a {type(partition).__name__}."
            )
        d = box.num_dims
        settings = LaMCTSSettings(
            box=box,
            partition=PartitionSettings() if partition is None else partition,
            num_initial=2 * d if num_initial is None else check_count(num_initial, "num_initial", minimum=2),
            seed=check_count(seed, "seed", minimum=0),
            maximize=maximize,
            options={
                "model": model,
                "acquisition": acquisition,
                "objective": objective,
                "num_inducing": num_inducing,
                "rules": rules,
                "priors": priors,
            },
        )
        design = qmc.LatinHypercube(d, rng=np.random.default_rng(settings.seed)).random(settings.num_initial)
        nothing = torch.empty(0, d, dtype=torch.float64)
        self._start(settings, LaMCTSState(nothing, nothing.new_empty(0), torch.from_numpy(design)))
        self._new_turbo()  # so that wrong options are refused now

    def _start(self, settings: LaMCTSSettings, state: LaMCTSState) -> None:
        self._settings, self._state = settings, state
        self._lock = threading.RLock()

    def ask(self, q: int = 1) -> Tensor:
        """Suggest points `(q, d)`; fewer while points of a design are left, if fewer are."""
        check_count(q, "q")
        with self._lock:
            state = self._state
            if not len(state.waiting) and state.turbo is None:
                self._state = state = self._next_run()
            if len(state.waiting):
                self._state = replace(state, waiting=state.waiting[q:])
                return self._settings.box.show(state.waiting[:q].clone())
            assert state.turbo is not None
            return state.turbo.ask(q)

    def tell(self, X: Any, y: Any) -> None:
        """Learn outcomes.

        Args:
            X: Points `(n, d)`.
            y: Outcomes `(n)`; NaN where an evaluation failed.
        """
        box = self._settings.box
        unit = box.read(X)
        outcomes = torch.as_tensor(y, dtype=torch.float64)
        if outcomes.shape != unit.shape[:1]:
            raise ShapeError(
                f"y must have shape {tuple(unit.shape[:1])}, one outcome for each row of X, but has shape "
                f"{tuple(outcomes.shape)}."
            )
        with self._lock:
            state = self._state
            if state.turbo is not None:
                state.turbo.tell(box.show(unit), outcomes)
            state = replace(state, X=torch.cat([state.X, unit]), y=torch.cat([state.y, outcomes]))
            if state.turbo is not None and state.turbo.num_runs > 1:
                state = replace(state, turbo=None, waiting=state.waiting[:0])
            self._state = state

    def best(self) -> Best:
        """The point of the best outcome that was observed; its uncertainty is not known."""
        X, values = self._known()
        if not len(values):
            raise UnsupportedError(
                "There is no outcome yet. Call ask, evaluate the points, and tell what came of them."
            )
        index = int(values.argmax())
        outcome = float(values[index]) * (1.0 if self._settings.maximize else -1.0)
        point = self._settings.box.show(torch.from_numpy(X[index : index + 1]))[0]
        return Best(point, mean=outcome, std=math.nan, probability_feasible=1.0, observed=outcome)

    @property
    def X(self) -> Tensor:  # noqa: N802 # as BoTorch calls it
        """All points that were told, in the user's units."""
        return self._settings.box.show(self._state.X.clone())

    @property
    def y(self) -> Tensor:
        """Their outcomes."""
        return self._state.y.clone()

    @property
    def num_runs(self) -> int:
        """How many trust regions have started."""
        return self._state.num_runs

    def tree(self) -> PartitionNode:
        """The tree of all outcomes so far, as the next run would see it."""
        X, values = self._known()
        settings = self._settings
        return grow_tree(X, values, settings.partition, seed=settings.seed + self._state.num_runs)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a file that `load` reads: tensors and a JSON description, no pickle; atomically."""
        with self._lock:
            save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "LaMCTSOptimizer":
        """Read what `save` wrote; its suggestions go on as they would have.

        Args:
            path: The file.
        """
        return load(path, kind=cls)

    @classmethod
    def from_parts(cls, settings: LaMCTSSettings, state: LaMCTSState) -> "LaMCTSOptimizer":
        """A search that goes on from a state."""
        search = cls.__new__(cls)
        search._start(settings, state)
        return search

    def to_parts(self) -> dict[str, Any]:
        """Settings and state, which are all there is."""
        return {"settings": self._settings, "state": self._state}

    def __repr__(self) -> str:
        num_told = len(self._state.y)
        best = f", best {self.best().mean:.4g}" if self._state.y.isfinite().any() else ""
        return f"LaMCTSOptimizer({self._settings.box.num_dims} parameters, {num_told} outcomes{best})"

    def __getstate__(self) -> dict[str, Any]:
        return self.to_parts()

    def __setstate__(self, parts: dict[str, Any]) -> None:
        self._start(**parts)

    def _known(self) -> tuple[np.ndarray, np.ndarray]:
        """Points whose outcomes are known, and their values, large ones good."""
        is_known = self._state.y.isfinite()
        values = self._state.y[is_known] * (1.0 if self._settings.maximize else -1.0)
        return self._state.X[is_known].numpy(), values.numpy()

    def _next_run(self) -> LaMCTSState:
        """The state in which a trust region starts from points of the best leaf."""
        state, partition = self._state, self._settings.partition
        random = np.random.default_rng([self._settings.seed, state.num_runs])
        X, values = self._known()
        num = partition.num_start
        if len(values):
            weight = _EXPLORATION * float(np.ptp(values)) if partition.exploration is None else partition.exploration
            start = sample_leaf(choose_leaf(self.tree(), weight), X, num, random=random)
        else:
            start = random.random((num, X.shape[1]))
        waiting, num_runs = torch.from_numpy(start.copy()), state.num_runs + 1
        return replace(state, waiting=waiting, turbo=self._new_turbo(num_runs), num_runs=num_runs)

    def _new_turbo(self, num_runs: int = 0) -> TurboOptimizer:
        settings = self._settings
        return TurboOptimizer(
            torch.stack([settings.box.lower, settings.box.upper]),
            num_initial=settings.partition.num_start,
            maximize=settings.maximize,
            seed=settings.seed + 1000 * num_runs,
            **settings.options,
        )


register(LaMCTSOptimizer, to_fields=LaMCTSOptimizer.to_parts, from_fields=LaMCTSOptimizer.from_parts)
