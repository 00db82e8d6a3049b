"""GPs of several outputs: what all of them can do, and those that are conditioned on outcomes."""

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from operator import index
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from streamgp.checks import ArrayLike, check_inputs, to_form
from streamgp.conditioning.conditioned_gp import ConditionedGP
from streamgp.conditioning.multi_output.outcomes import Outcomes
from streamgp.conditioning.multi_output.prediction import MultiOutputPrediction, columns
from streamgp.conditioning.sparse_gp import SparseGP
from streamgp.display import html_table
from streamgp.errors import OptionError
from streamgp.evidence import Evidence
from streamgp.gp import Prediction
from streamgp.gp.coregionalization import output_rows
from streamgp.likelihoods import AbstractLikelihood
from streamgp.sites import SiteRule
from streamgp.storage import register, save

__all__ = ["AbstractMultiOutputGP", "ConditionedMultiOutputGP", "Likelihoods"]

Likelihoods = AbstractLikelihood | str | Sequence[Any] | None


class AbstractMultiOutputGP(ABC):
    """Interface of GPs of several outputs: predict, sample, condition and save."""

    @property
    @abstractmethod
    def row_gp(self) -> SparseGP | ConditionedGP:
        """The GP of inputs with a column for the output."""

    @property
    @abstractmethod
    def num_outputs(self) -> int:
        """Number of outputs."""

    @property
    def num_dims(self) -> int:
        """Number of inputs."""
        return self.row_gp.process.reference.shape[-1] - 1

    @property
    def batch_shape(self) -> torch.Size:
        """Leading axes."""
        return self.row_gp.process.batch_shape

    def predict(
        self, X: ArrayLike, *, output: ArrayLike | None = None, covariance: bool = False
    ) -> MultiOutputPrediction:
        """Predict the latent functions.

        Args:
            X: Inputs `(*b, n, d)`.
            output: One output or several, negative ones counted from the end; all by default.
            covariance: Compute the joint covariance of all inputs and outputs at once.

        Returns:
            A prediction with `mean` and `variance` of shape `(*b, n, o)`, and `covariance`.
        """
        outputs = self._read_outputs(output)
        prediction = Prediction(self.row_gp.process, output_rows(self._checked(X), outputs))
        if covariance:
            _ = prediction.covariance
        return MultiOutputPrediction(prediction, len(outputs), isinstance(X, np.ndarray))

    def sample(
        self,
        X: ArrayLike,
        num_samples: int = 1,
        *,
        output: ArrayLike | None = None,
        generator: torch.Generator | None = None,
    ) -> Any:
        """Draw joint samples of the latent functions.

        Args:
            X: Inputs `(*b, n, d)`.
            num_samples: Number of samples $s$.
            output: One output or several, as in `predict`.
            generator: Source of randomness.

        Returns:
            Samples `(s, *b, n, o)`: a tensor, or an array of NumPy if `X` was one.
        """
        outputs = self._read_outputs(output)
        samples = self.row_gp.sample(output_rows(self._checked(X), outputs), num_samples, generator=generator)
        return to_form(columns(samples, len(outputs)), is_numpy=isinstance(X, np.ndarray))

    def condition(
        self,
        X: ArrayLike,
        Y: ArrayLike,
        *,
        noise_variance: ArrayLike | None = None,
        likelihood: Likelihoods = None,
        sites: str | SiteRule = "variational",
    ) -> "ConditionedMultiOutputGP":
        """Condition on outcomes: exactly if they are Gaussian, through Gaussian sites if not.

        Args:
            X: Inputs `(*b, n, d)`, or rows of evidence of single outputs, as `rows_of` makes them; their targets are
                those of the rows.
            Y: Outcomes `(*s, *b, n, o)`, NaN where an output was not observed. Leading axes that the inputs lack are
                fantasies, which share one factor.
            noise_variance: Variance of Gaussian noise: a number, one for each output `(o,)`, or one for each outcome
                `(*b, n, o)`.
            likelihood: The likelihood of other outcomes, or a list with one for each output.
            sites: How those become Gaussian, as in `SparseGP.condition`.

        Returns:
            The conditioned GP, differentiable in inputs, outcomes and noise.
        """
        if isinstance(X, Evidence):
            rows: Any = {"noise_variance": noise_variance, "likelihood": likelihood}
            return ConditionedMultiOutputGP(self.row_gp.condition(X, Y, sites=sites, **rows), self.num_outputs)
        outcomes = Outcomes.read(self._checked(X), Y, self.num_outputs)
        conditioned = self.row_gp.condition(
            outcomes.inputs,
            outcomes.targets,
            noise_variance=outcomes.noise(noise_variance),
            likelihood=outcomes.likelihood(likelihood),
            sites=sites,
        )
        return ConditionedMultiOutputGP(conditioned, self.num_outputs)

    def rows_of(self, evidence: Evidence, output: int) -> Evidence:
        """Return rows of evidence about one output, which `condition`, `absorb` and `row_gp.predict` take.

        Args:
            evidence: About a function of the inputs.
            output: Which output; negative ones counted from the end. `streamgp.evidence.combine` joins those of
                several.
        """
        (index,) = self._read_outputs(output)
        reference = self.row_gp.process.reference
        return evidence.matched(reference[..., :-1]).with_column(float(index))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a file that `streamgp.load` reads.

        Args:
            path: The file.
        """
        save(self, path)

    def _read_outputs(self, output: ArrayLike | None) -> list[int]:
        o = self.num_outputs
        if output is None:
            return list(range(o))
        chosen = _whole_numbers(output)
        if not chosen or not all(-o <= j < o for j in chosen):
            raise OptionError(
                f"output must be whole numbers from {-o} to {o - 1}, as there are {o} outputs, but is {output!r}."
            )
        return [j % o for j in chosen]

    def _checked(self, X: ArrayLike) -> Tensor:
        reference = self.row_gp.process.reference
        return check_inputs(X, num_dims=reference.shape[-1] - 1, like=reference, batch_shape=self.batch_shape)

    def _repr_html_(self) -> str:
        process = self.row_gp.process
        held = "inducing points" if process.reference.shape[-2] else "features"
        facts = {
            "outputs": self.num_outputs,
            held: process.num_inducing,
            "inputs": self.num_dims,
            "leading axes": tuple(self.batch_shape),
            "type": str(process.reference.dtype).removeprefix("torch."),
        }
        return html_table(type(self).__name__, facts)

    def _describe(self) -> str:
        num_points, d = self.row_gp.process.reference.shape[-2:]
        dtype = str(self.row_gp.process.reference.dtype).removeprefix("torch.")
        held = f"num_inducing={num_points}" if num_points else f"num_features={self.row_gp.process.num_inducing}"
        return (
            f"num_outputs={self.num_outputs}, {held}, num_dims={d - 1}, batch_shape={tuple(self.batch_shape)}, "
            f"dtype={dtype}"
        )


def _whole_numbers(values: Any) -> list[int]:
    """A whole number of any library, or several; none where there is another value among them."""
    with suppress(TypeError):
        return [index(values)]
    with suppress(TypeError):
        return [index(each) for each in values]
    return []


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

    def __repr__(self) -> str:
        return f"ConditionedMultiOutputGP(num_observations={self.conditioned_gp.num_observations}, {self._describe()})"
