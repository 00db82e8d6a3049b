"""Rules: objects that choose the next points."""

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, final

import torch
from botorch.utils.sampling import manual_seed
from jaxtyping import Bool, Float
from torch import Tensor

from streamgp.acquisition.context import Context
from streamgp.acquisition.space import AbstractSpace, CandidateSource
from streamgp.seeds import derived_seed

__all__ = ["AbstractDrawingRule", "AbstractFunctionRule", "AbstractRule", "Choice", "Design"]


@final
@dataclass(frozen=True, eq=False)
class Design:
    """Ingredients of the initial design of a run.

    Attributes:
        space: Where points are from.
        num_initial: Size of the design.
        num_before: How many of its points were given out before.
        seed: Of everything random in it.
        points: All that was told, as the loop keeps it.
        values: The objective there, to be maximized; NaN where an evaluation failed.
    """

    space: AbstractSpace
    num_initial: int
    num_before: int
    seed: int
    points: Tensor
    values: Float[Tensor, " n"]


@final
@dataclass(frozen=True, eq=False)
class Choice:
    """Points that a rule chose, and why.

    Attributes:
        points: The points, as the space has them.
        why: A few words for each.
        num_repeated: The first points that are to be evaluated again as they are.
    """

    points: Tensor
    why: tuple[str, ...]
    num_repeated: int = 0

    def join(self, other: "Choice") -> "Choice":
        """Both, one after the other."""
        return Choice(torch.cat([self.points, other.points]), (*self.why, *other.why), self.num_repeated)


class AbstractRule(ABC):
    """A way to choose the next points; a frozen dataclass whose fields are its options.

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

    def choose(self, context: Context, q: int, *, seed: int) -> Choice:
        """Choose points of the space, and say why: by the name of the rule.

        Args:
            context: What to choose from.
            q: Number of points.
            seed: Of everything random.
        """
        return Choice(self.propose(context, q, seed=seed), (self.in_words,) * q)

    @property
    def in_words(self) -> str:
        """The name of the rule: `"noisy expected improvement"`."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(self).__name__).lower()

    @property
    def innermost(self) -> "AbstractRule":
        """The rule itself; of one that wraps another, that one."""
        return self

    def extends_design(self, *, are_alike: bool) -> bool:
        """Tell whether the initial design goes on although it is complete.

        Args:
            are_alike: Whether all outcomes so far are the same.
        """
        return False

    def start(self) -> Any:
        """Return what the rule remembers before any data: a frozen dataclass, or None."""
        return None

    def remember(self, memory: Any, values: Float[Tensor, " n"], *, is_initial: bool, num_dims: int) -> Any:
        """Return what it remembers after outcomes that were told together.

        Args:
            memory: Before.
            values: The objective, to be maximized; NaN where an evaluation failed.
            is_initial: Whether the initial design was going on.
            num_dims: Number of the model's inputs.
        """
        return memory

    def run(self, memory: Any) -> int:
        """Number of the current run; a new one has its own initial design."""
        return 0

    def num_initial(self, memory: Any, default: int) -> int:
        """Size of the initial design of the current run.

        Args:
            memory: What the rule remembers.
            default: The size that the loop was made with.
        """
        return default

    def design(self, memory: Any, q: int, design: Design) -> tuple[Any, Tensor]:
        """The next points of an initial design.

        Args:
            memory: What the rule remembers.
            q: How many are wanted.
            design: What they are made from.

        Returns:
            What it remembers after that, and at least one and at most q points.
        """
        points = design.space.design(q, num_initial=design.num_initial, num_before=design.num_before, seed=design.seed)
        return memory, points

    def designed(self, memory: Any) -> Any:
        """Return what it remembers when the initial design of a run is complete; it may begin another run then."""
        return memory

    def in_run(self, memory: Any, num_told: int) -> Bool[Tensor, " n"]:
        """Mark the evaluations that the model is to see."""
        return torch.ones(num_told, dtype=torch.bool)


class AbstractDrawingRule(AbstractRule):
    """A rule that chooses among candidates, wherever these are drawn: what a trust region is searched by."""

    @abstractmethod
    def draw(
        self, context: Context, candidates: CandidateSource, q: int, *, num_candidates: int, generator: torch.Generator
    ) -> Tensor:
        """Choose among candidates.

        Args:
            context: What to choose by.
            candidates: The candidates, or a function that draws a given number of them.
            q: Number of points.
            num_candidates: How many to ask the function for, unless the rule has a number of its own.
            generator: Source of randomness.
        """


class AbstractFunctionRule(AbstractRule):
    """A rule that maximizes an acquisition function of BoTorch."""

    @abstractmethod
    def function(self, context: Context, *, seed: int) -> Any:
        """The acquisition function, of inputs `(*b, q, d)`.

        Args:
            context: What it is made from.
            seed: Of everything random.
        """

    def propose(self, context: Context, q: int, *, seed: int) -> Tensor:
        """Maximize it, over several points one after the other."""
        with manual_seed(derived_seed(seed, 200)):  # for what BoTorch draws without asking
            function = self.function(context, seed=seed)
            return context.space.maximize(
                function, q, context.search, seed=derived_seed(seed, 2), centers=context.centers()
            )
