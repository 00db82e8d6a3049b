"""Outcomes of several outputs as rows of one: those not observed are left out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from streamgp.checks import check_float, check_matches
from streamgp.conditioning.multi_output.mixed_likelihood import MixedLikelihood
from streamgp.errors import OptionError, ShapeError, UnsupportedError, ValueRangeError
from streamgp.gp.coregionalization import output_rows
from streamgp.likelihoods import read_likelihood
from streamgp.shapes import is_broadcastable

__all__ = ["Outcomes"]


@final
@dataclass(frozen=True, eq=False)
class Outcomes:
    """Observed values of several outputs, one row for each.

    Attributes:
        inputs: Inputs with a column for the output.
        targets: What was observed.
        observed: Indices of the rows among all inputs and outputs, outputs varying fastest.
        num_outputs: Number of outputs.
    """

    inputs: Float[Tensor, "*b k d"]
    targets: Float[Tensor, "*s k"]
    observed: Int[Tensor, " k"]
    num_outputs: int

    @classmethod
    def read(cls, X: Tensor, Y: object, num_outputs: int) -> "Outcomes":
        """Check outcomes `(*s, *b, n, o)` against checked inputs `(*b, n, d)`; NaN is not observed."""
        Y = check_matches(check_float(Y, "Y", like=X), X, "Y")
        expected = (*X.shape[:-1], num_outputs)
        if Y.dim() < 2 or Y.shape[-2:] != expected[-2:] or not is_broadcastable(Y.shape[:-2], X.shape[:-2]):
            raise ShapeError(
                f"Y must have shape {expected}, one column for each of the {num_outputs} outputs, but has shape "
                f"{tuple(Y.shape)}. Put NaN where an output was not observed."
            )
        missing = torch.isnan(Y.detach()).flatten(-2)
        is_missing = missing.all(dim=tuple(range(missing.dim() - 1))) if missing.dim() > 1 else missing
        if bool((missing != is_missing).any()):
            raise UnsupportedError(
                "Outputs that were not observed must be the same for all leading axes of Y, but differ. Condition on "
                "the members one by one."
            )
        if torch.isinf(Y.detach()).any():
            raise ValueRangeError("Y must be finite, or NaN where an output was not observed, but holds infinity.")
        observed = (~is_missing).nonzero().squeeze(-1)
        rows = output_rows(X, range(num_outputs))
        if len(observed) < rows.shape[-2]:
            return cls(rows[..., observed, :], Y.flatten(-2)[..., observed], observed, num_outputs)
        return cls(rows, Y.flatten(-2), observed, num_outputs)

    def noise(self, noise_variance: object) -> Any:
        """Noise of all outputs, of each output `(o,)` or of each outcome `(*b, n, o)`, laid out by rows."""
        if noise_variance is None or isinstance(noise_variance, int | float):
            return noise_variance
        noise = check_float(noise_variance, "noise_variance", like=self.inputs)
        if noise.dim() == 0:
            return noise
        o = self.num_outputs
        if noise.shape[-1] != o:
            raise ShapeError(
                f"noise_variance must be a number, one variance for each of the {o} outputs, or one for each outcome "
                f"of shape (..., n, {o}), but has shape {tuple(noise.shape)}."
            )
        if noise.dim() == 1:
            return noise[self.observed % o]
        return noise.flatten(-2)[..., self.observed]

    def likelihood(self, likelihood: object) -> Any:
        """One likelihood for all outputs, or one for each, as one for all rows."""
        if isinstance(likelihood, str) or not isinstance(likelihood, Sequence):
            return likelihood
        if len(likelihood) != self.num_outputs:
            raise OptionError(
                f"likelihood must be one for all outputs or one for each of the {self.num_outputs}, but there are "
                f"{len(likelihood)}."
            )
        parts = tuple(read_likelihood(one) for one in likelihood)
        return MixedLikelihood(parts, self.observed % self.num_outputs)
