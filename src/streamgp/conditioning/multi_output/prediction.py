"""Predictions of GPs of several outputs."""

from dataclasses import dataclass
from typing import Any, final

from jaxtyping import Float
from torch import Tensor

from streamgp.checks import to_form
from streamgp.display import shown_moments
from streamgp.gp import Prediction

__all__ = ["MultiOutputPrediction", "columns"]


@final
@dataclass(frozen=True, eq=False, repr=False)
class MultiOutputPrediction:
    """Moments of the latent functions of several outputs, each computed when it is read.

    Attributes:
        rows: The prediction, one row for each input and output; outputs vary fastest.
        num_outputs: Number of outputs that are predicted.
        is_numpy: Whether moments are arrays of NumPy, as the inputs were, and not tensors.
    """

    rows: Prediction
    num_outputs: int
    is_numpy: bool = False

    @property
    def mean(self) -> Any:
        """Means, `(*b, n, o)`."""
        return to_form(columns(self.rows.mean, self.num_outputs), is_numpy=self.is_numpy)

    @property
    def variance(self) -> Any:
        """Marginal variances, `(*b, n, o)`, never negative."""
        return to_form(columns(self.rows.variance, self.num_outputs), is_numpy=self.is_numpy)

    @property
    def standard_deviation(self) -> Any:
        """Square root of the variance, `(*b, n, o)`."""
        return self.variance**0.5

    @property
    def std(self) -> Any:
        """The standard deviation, for short."""
        return self.standard_deviation

    @property
    def covariance(self) -> Any:
        """Joint covariance `(*b, k, k)` of all inputs and outputs; outputs vary fastest."""
        return to_form(self.rows.covariance, is_numpy=self.is_numpy)

    def __repr__(self) -> str:
        num_rows = self.rows.inputs.shape[-2] // self.num_outputs
        return f"MultiOutputPrediction({self.num_outputs} outputs, {shown_moments(self, num_rows)})"


def columns(rows: Float[Tensor, "*b k"], num_outputs: int) -> Float[Tensor, "*b n o"]:
    """Rows of all inputs and outputs as a row for each input."""
    return rows.unflatten(-1, (rows.shape[-1] // num_outputs, num_outputs))
