"""Functions drawn from a GP of several outputs."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from streamgp.checks import ArrayLike, check_inputs, to_form
from streamgp.conditioning.multi_output.prediction import columns
from streamgp.gp import SamplePaths
from streamgp.gp.coregionalization import output_rows

__all__ = ["MultiOutputPaths"]


@final
@dataclass(frozen=True, eq=False)
class MultiOutputPaths:
    """Sampled functions of several outputs, differentiable in their inputs; an array of NumPy gives an array.

    Attributes:
        paths: Functions of inputs with a column for the output.
        outputs: The outputs that are evaluated.
    """

    paths: SamplePaths
    outputs: tuple[int, ...]

    def __call__(self, X: ArrayLike) -> Any:
        """Evaluate all functions at inputs `(*b, n, d)`: values `(s, *b, n, o)`."""
        Z = self.paths.inducing_points
        inputs = check_inputs(X, num_dims=Z.shape[-1] - 1, like=Z, batch_shape=Z.shape[:-2])
        values = columns(self.paths(output_rows(inputs, self.outputs)), len(self.outputs))
        return to_form(values, is_numpy=isinstance(X, np.ndarray))
