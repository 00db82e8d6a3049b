from dataclasses import dataclass
from typing import final

from jaxtyping import Float
from torch import Tensor

from paper.datasets.tables import read_table
from streamgp.checks import check_count

__all__ = ["Bananas", "load_bananas"]


@final
@dataclass(frozen=True, eq=False)
class Bananas:
    """Two interleaved classes in two dimensions.

    Attributes:
        X_train: Inputs of training, 400.
        y_train: Their classes, 0 or 1.
        X_test: Inputs of the test, 4900.
        y_test: Their classes.
    """

    X_train: Float[Tensor, "n 2"]
    y_train: Float[Tensor, " n"]
    X_test: Float[Tensor, "t 2"]
    y_test: Float[Tensor, " t"]

    def in_batches(self, num_batches: int = 4) -> tuple[tuple[Tensor, Tensor], ...]:
        """The training rows, sorted by the first input, in batches of equal size: each sees a strip of the plane."""
        num_batches = check_count(num_batches, "num_batches")
        order = self.X_train[:, 0].argsort(stable=True)
        batches = (self.X_train[order].tensor_split(num_batches), self.y_train[order].tensor_split(num_batches))
        return tuple(zip(*batches, strict=True))


def load_bananas() -> Bananas:
    """Load the data set `bananas`, with the split that it comes with."""
    X_train, y_train, X_test, y_test = (
        read_table(f"banana/banana_{part}.txt") for part in ("train_x", "train_y", "test_x", "test_y")
    )
    return Bananas(X_train, _to_class(y_train), X_test, _to_class(y_test))


def _to_class(labels: Float[Tensor, "n 1"]) -> Float[Tensor, " n"]:
    """Labels -1 and 1 as 0 and 1."""
    return (labels.squeeze(-1) + 1) / 2
