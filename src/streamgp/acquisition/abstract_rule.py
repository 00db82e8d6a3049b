"""What a rule is: an object that chooses the next points."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import torch
from botorch.utils.sampling import manual_seed
from jaxtyping import Bool, Float
from torch import Tensor

from streamgp.acquisition.context import Context
from streamgp.seeds import derived_seed

__all__ = ["AbstractFunctionRule", "AbstractRule"]


class AbstractRule(ABC):
    """How the next points are chosen; a frozen dataclass whose fields are its options.

    A rule of your own derives from this class and has `propose`, or from `AbstractFunctionRule` and has `function`.
    Decorated with `streamgp.storage.register`, it is saved with the loop that holds it.
    """

    knows_constraints: ClassVar[bool] = False
    knows_objectives: ClassVar[bool] = False
    needs_model: ClassVar[bool] = True
    may_repeat: ClassVar[bool] = False

    @abstractmethod
    def propose(self, context: Context, q: int, *, seed: int) -> Tensor:
        """Choose points of the space.

        Args:
            context: What to choose from.
            q: Number of points.
            seed: Of everything random.
        """

    def start(self) -> Any:
        """What the rule remembers before any data: a frozen dataclass, or None."""
        return None

    def remember(self, memory: Any, values: Float[Tensor, " n"], *, is_initial: bool, num_dims: int) -> Any:
        """What it remembers after outcomes that were told together.

        Args:
            memory: Before.
            values: The objective, to be maximised; NaN where an evaluation failed.
            is_initial: Whether the initial design was going on.
            num_dims: Number of the model's inputs.
        """
        return memory

    def run(self, memory: Any) -> int:
        """Number of the current run; a new one has its own initial design."""
        return 0

    def in_run(self, memory: Any, num_told: int) -> Bool[Tensor, " n"]:
        """Which of the evaluations so far the model is to see."""
        return torch.ones(num_told, dtype=torch.bool)


class AbstractFunctionRule(AbstractRule):
    """A rule that maximises an acquisition function of BoTorch."""

    @abstractmethod
    def function(self, context: Context, *, seed: int) -> Any:
        """The acquisition function, of inputs `(*b, q, d)`.

        Args:
            context: What it is made from.
            seed: Of everything random.
        """

    def propose(self, context: Context, q: int, *, seed: int) -> Tensor:
        """Maximise it, over several points one after the other."""
        with manual_seed(derived_seed(seed, 200)):  # for what BoTorch draws without asking
            function = self.function(context, seed=seed)
            return context.space.maximize(
                function, q, context.search, seed=derived_seed(seed, 2), centres=context.centres()
            )
