"""GPs of several outputs: what all of them can do, and those that are conditioned on outcomes."""

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.checks import ArrayLike, check_inputs
from streamgp.conditioning.conditioned_gp import ConditionedGP
from streamgp.conditioning.multi_output.outcomes import Outcomes
from streamgp.conditioning.multi_output.prediction import MultiOutputPrediction, columns
from streamgp.conditioning.sparse_gp import SparseGP
from streamgp.errors import OptionError
from streamgp.gp import Prediction
from streamgp.gp.coregionalization import output_rows
from streamgp.likelihoods import AbstractLikelihood
from streamgp.sites import SiteRule
from streamgp.storage import register, save

__all__ = ["AbstractMultiOutputGP", "ConditionedMultiOutputGP", "Likelihoods"]

Likelihoods = AbstractLikelihood | str | Sequence[Any] | None


class AbstractMultiOutputGP(ABC):
    """What GPs of several outputs can do: predict and be sampled."""

    @property
    @abstractmethod
    def row_gp(self) -> SparseGP | ConditionedGP:
        """The GP of inputs with a column for the output."""

    @property
    @abstractmethod
    def num_outputs(self) -> int:
        """Number of outputs."""

    @property
    def batch_shape(self) -> torch.Size:
        """Leading axes."""
        return self.row_gp.process.batch_shape

    def predict(
        self, X: ArrayLike, *, output: int | Sequence[int] | None = None, covariance: bool = False
    ) -> MultiOutputPrediction:
        """Predict the latent functions.

        Args:
            X: Inputs `(*b, n, d)`.
            output: One output or several, negative ones counted from the end; all by default.
            covariance: Compute the joint covariance of all inputs and outputs at once.

        Returns:
            A prediction with `mean` and `variance` of shape `(*b, n, o)`, and `covariance`.
        """
        outputs, is_numpy = self._read_outputs(output), isinstance(X, np.ndarray)
        X = self._checked(X)
        rows = output_rows(X, self.num_outputs).unflatten(-2, (X.shape[-2], self.num_outputs))
        prediction = Prediction(self.row_gp.process, rows[..., outputs, :].flatten(-3, -2))
        if covariance:
            _ = prediction.covariance
        return MultiOutputPrediction(prediction, len(outputs), is_numpy)

    def sample(
        self, X: ArrayLike, num_samples: int = 1, *, generator: torch.Generator | None = None
    ) -> Float[Tensor, "s *b n o"]:
        """Draw joint samples of the latent functions of all outputs, `(s, *b, n, o)`."""
        rows = output_rows(self._checked(X), self.num_outputs)
        samples = self.row_gp.sample(rows, num_samples, generator=generator)
        return columns(samples, self.num_outputs)

    def _condition(
        self, X: ArrayLike, Y: ArrayLike, noise_variance: Any, likelihood: Likelihoods, sites: str | SiteRule
    ) -> "ConditionedMultiOutputGP":
        outcomes = Outcomes.read(self._checked(X), Y, self.num_outputs)
        conditioned = self.row_gp.condition(
            outcomes.inputs,
            outcomes.targets,
            noise_variance=outcomes.noise(noise_variance),
            likelihood=outcomes.likelihood(likelihood),
            sites=sites,
        )
        return ConditionedMultiOutputGP(conditioned, self.num_outputs)

    def _read_outputs(self, output: int | Sequence[int] | None) -> list[int]:
        o = self.num_outputs
        if output is None:
            return list(range(o))
        chosen = [output] if isinstance(output, int) else list(output)
        if not chosen or not all(isinstance(j, int) and -o <= j < o for j in chosen):
            raise OptionError(
                f"output must be whole numbers from {-o} to {o - 1}, as there are {o} outputs, but is {output!r}."
            )
        return [j % o for j in chosen]

    def _checked(self, X: ArrayLike) -> Tensor:
        reference = self.row_gp.process.reference
        return check_inputs(X, num_dims=reference.shape[-1] - 1, like=reference, batch_shape=self.batch_shape)

    def _describe(self) -> str:
        reference = self.row_gp.process.reference
        dtype = str(reference.dtype).removeprefix("torch.")
        return (
            f"num_outputs={self.num_outputs}, num_inducing={reference.shape[-2]}, num_dims={reference.shape[-1] - 1}, "
            f"batch_shape={tuple(self.batch_shape)}, dtype={dtype}"
        )


@register
@final
@dataclass(frozen=True, eq=False, repr=False)
class ConditionedMultiOutputGP(AbstractMultiOutputGP):
    """A GP of several outputs conditioned exactly on observations, made by `MultiOutputGP.condition`."""

    conditioned_gp: ConditionedGP
    output_count: int

    @property
    def row_gp(self) -> ConditionedGP:
        """The GP of inputs with a column for the output."""
        return self.conditioned_gp

    @property
    def num_outputs(self) -> int:
        """Number of outputs."""
        return self.output_count

    def condition(
        self,
        X: ArrayLike,
        Y: ArrayLike,
        *,
        noise_variance: ArrayLike | None = None,
        likelihood: Likelihoods = None,
        sites: str | SiteRule = "variational",
    ) -> "ConditionedMultiOutputGP":
        """Condition again; see `MultiOutputGP.condition`."""
        return self._condition(X, Y, noise_variance, likelihood, sites)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a file that `load` reads."""
        save(self, path)

    def __repr__(self) -> str:
        return f"ConditionedMultiOutputGP(num_observations={self.conditioned_gp.num_observations}, {self._describe()})"
