"""How to train: the options of `fit`, checked."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import final

import torch
from torch import Tensor

from streamgp.checks import check_choice, check_positive, check_share, keep_count
from streamgp.errors import ArgumentTypeError, OptionError
from streamgp.training.priors import PRIORS

__all__ = ["Minibatches", "Options"]

_COLD_ITERATIONS, _WARM_ITERATIONS = 200, 10
_USUAL_AUTO = 128


@final
@dataclass(frozen=True)
class Minibatches:
    """How to train on data that is visited in parts.

    Attributes:
        batch_size: Rows of each step; an iterable of batches brings its own.
        num_epochs: Passes over the data; enough for 1000 steps by default.
        learning_rate: Of Adam, for hyperparameters and inducing points; falls to a tenth along a cosine.
        natural_rate: Share of the way that the belief goes in each step; 1 would forget earlier batches. Falls
            likewise.
        num_warm_rows: Rows of the subset on which a start is found first.
        num_data: Number of all rows, where an iterable does not tell.
    """

    batch_size: int = 1024
    num_epochs: int | None = None
    learning_rate: float = 0.01
    natural_rate: float = 0.2
    num_warm_rows: int = 4096
    num_data: int | None = None

    def __post_init__(self) -> None:
        """Check the options."""
        for name in ("batch_size", "num_warm_rows", "num_epochs", "num_data"):
            if getattr(self, name) is not None:
                keep_count(self, name)
        check_positive(self.learning_rate, "learning_rate")
        check_share(self.natural_rate, "natural_rate")


@final
@dataclass(frozen=True, eq=False)
class Options:
    """The options of `fit` that concern the search; described there."""

    num_inducing: int | str = 100
    inducing: str | Tensor = "kmeans"
    learn_inducing: bool = True
    objective: str = "elbo"
    beta: float = 1.0
    priors: str | None = "dim_scaled"
    slack_tolerance: float = 0.05
    max_inducing: int = 1024
    max_iterations: int | None = None
    tolerance: float = 1e-4
    is_warm: bool = False
    on_iteration: Callable[[float], None] | None = None
    on_stage: Callable[[int], None] | None = None
    generator: torch.Generator = field(default_factory=lambda: torch.Generator().manual_seed(0))

    def __post_init__(self) -> None:
        """Check the options."""
        check_choice(self.objective, ("elbo", "pll"), "objective")
        if self.priors is not None:
            check_choice(self.priors, PRIORS, "priors")
        if self.num_inducing != "auto":
            if isinstance(self.num_inducing, str):
                raise OptionError(f"num_inducing must be a whole number or 'auto', but is {self.num_inducing!r}.")
            keep_count(self, "num_inducing")
        if isinstance(self.inducing, str):
            check_choice(self.inducing, ("pivoted", "kmeans", "distributed_kmeans", "features"), "inducing")
        elif not isinstance(self.inducing, Tensor):
            raise ArgumentTypeError(
                f"inducing must be 'pivoted', 'kmeans', 'features' or a tensor of points, but is a "
                f"{type(self.inducing).__name__}."
            )
        if self.max_iterations is not None:
            keep_count(self, "max_iterations")
        keep_count(self, "max_inducing")
        for name in ("beta", "tolerance", "slack_tolerance"):
            check_positive(getattr(self, name), name)
        if self.on_iteration is not None and not callable(self.on_iteration):
            raise ArgumentTypeError(
                f"callback must be a function of the objective, but is a {type(self.on_iteration).__name__}."
            )
        if not isinstance(self.generator, torch.Generator):
            raise ArgumentTypeError(
                f"generator must be a torch.Generator, but is a {type(self.generator).__name__}. "
                "Pass torch.Generator().manual_seed(seed)."
            )

    @property
    def usual_inducing(self) -> int:
        """The number of inducing points, or what it often is where the data decides."""
        return self.num_inducing if isinstance(self.num_inducing, int) else _USUAL_AUTO

    @property
    def most_iterations(self) -> int:
        """Iterations of the last part of training: few for a warm start, which is near the end already."""
        return self.max_iterations or (_WARM_ITERATIONS if self.is_warm else _COLD_ITERATIONS)
