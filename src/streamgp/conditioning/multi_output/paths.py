"""Functions drawn from a GP of several outputs."""

from dataclasses import dataclass
from typing import final

from jaxtyping import Float
from torch import Tensor

from streamgp.checks import ArrayLike, check_inputs
from streamgp.conditioning.multi_output.prediction import columns
from streamgp.gp import SamplePaths
from streamgp.gp.coregionalization import output_rows

__all__ = ["MultiOutputPaths"]


@final
@dataclass(frozen=True, eq=False)
class MultiOutputPaths:
    """Sampled functions of several outputs, differentiable in their inputs.

    Attributes:
        paths: Functions of inputs with a column for the output.
        outputs: The outputs that are evaluated.
    """

    paths: SamplePaths
    outputs: tuple[int, ...]

    def __call__(self, X: ArrayLike) -> Float[Tensor, "s *b n o"]:
        """Evaluate all functions at inputs `(*b, n, d)`."""
        Z = self.paths.inducing_points
        X = check_inputs(X, num_dims=Z.shape[-1] - 1, like=Z, batch_shape=Z.shape[:-2])
        return columns(self.paths(output_rows(X, self.outputs)), len(self.outputs))
