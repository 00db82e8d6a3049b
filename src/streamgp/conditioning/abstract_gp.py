"""The interface of all public GPs: predict, sample and save."""

import os
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from streamgp.checks import ArrayLike, check_count, check_generator, check_inputs, to_form
from streamgp.display import draw_band, html_table, new_axes
from streamgp.errors import ShapeError, UnsupportedError, ValueRangeError
from streamgp.evidence import Evidence
from streamgp.gp import AbstractProcess, Prediction
from streamgp.storage import save

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["AbstractGP"]

# Points of the line in a notebook.
_NUM_SKETCHED = 60


class AbstractGP(ABC):
    """A Gaussian process at the boundary: arguments are checked, then handed to a process."""

    @property
    @abstractmethod
    def process(self) -> AbstractProcess:
        """The process behind the object."""

    def predict(self, X: ArrayLike, *, covariance: bool = False) -> Prediction:
        """Predict the latent function.

        Args:
            X: Inputs `(*b, n, d)`, a tensor, NumPy array, table or list; leading axes broadcast with those of the GP.
                Or rows of `streamgp.evidence`, such as averages or gradients: moments are then those of the rows.
            covariance: Compute the joint covariance at once; the variance is then its diagonal. Otherwise each moment
                is computed when it is first read.

        Returns:
            A prediction with `mean`, `variance`, `std` and `covariance`: tensors, or arrays of NumPy if `X` was one.
        """
        prediction = Prediction(self.process, self._checked(X), isinstance(X, np.ndarray))
        if covariance:
            _ = prediction.covariance
        return prediction

    def sample(self, X: ArrayLike, num_samples: int = 1, *, generator: torch.Generator | None = None) -> Any:
        """Draw joint samples of the latent function.

        Args:
            X: Inputs `(*b, n, d)`, or rows of evidence.
            num_samples: Number of samples $s$.
            generator: Source of randomness.

        Returns:
            Samples `(s, *b, n)`: a tensor, or an array of NumPy if `X` was one.
        """
        samples = self.process.sample(
            self._checked(X), check_count(num_samples, "num_samples"), check_generator(generator)
        )
        return to_form(samples, is_numpy=isinstance(X, np.ndarray))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a file that `streamgp.load` reads: tensors and a JSON description, no pickle; atomically.

        Args:
            path: The file.
        """
        save(self, path)

    def plot(
        self,
        axes: "Axes | None" = None,
        *,
        lower: float | None = None,
        upper: float | None = None,
        num_points: int = 200,
    ) -> "Axes":
        """Draw the latent function over a single input: its mean, and two standard deviations on each side.

        Args:
            axes: Where to draw; a new figure by default.
            lower: Where to begin; a little below the inducing points by default.
            upper: Where to end, likewise.
            num_points: How many points to predict.
        """
        x = self._line(lower, upper, check_count(num_points, "num_points", minimum=2))
        mean, variance = (moment.detach().cpu() for moment in self._moments(x))
        axes, x, deviation = new_axes(axes), x.cpu(), 2.0 * variance.sqrt()
        draw_band(axes, x, mean, mean - deviation, mean + deviation, label="mean ± 2 standard deviations")
        Z = self.process.reference.detach().cpu().squeeze(-1)
        axes.plot(Z, torch.full_like(Z, axes.get_ylim()[0]), "|", color="gray", label="inducing points")
        axes.set_xlabel("x")
        axes.set_ylabel("f")
        axes.legend()
        return axes

    def _line(self, lower: float | None, upper: float | None, num_points: int) -> Tensor:
        """Inputs along the only dimension."""
        Z = self.process.reference.detach()
        if Z.shape[-1] != 1 or self.process.batch_shape:
            raise ShapeError(
                f"A GP is drawn over a single input, but this one has {Z.shape[-1]}, and leading axes "
                f"{tuple(self.process.batch_shape)}. Draw what predict returns along a line of your own."
            )
        # A belief about weights has no points to show where the data is.
        low, high = (float(Z.min()), float(Z.max())) if len(Z) else (-1.0, 1.0)
        margin = 0.1 * ((high - low) or 1.0)
        low, high = low - margin if lower is None else lower, high + margin if upper is None else upper
        if not low < high:
            raise ValueRangeError(f"lower must be below upper, but they are {low:g} and {high:g}.")
        return torch.linspace(low, high, num_points, dtype=Z.dtype, device=Z.device)

    def _moments(self, x: Tensor) -> tuple[Tensor, Tensor]:
        prediction = Prediction(self.process, x.unsqueeze(-1))
        return prediction.mean, prediction.variance

    def _repr_html_(self) -> str:
        num_points, d = self.process.reference.shape[-2:]
        dtype = str(self.process.reference.dtype).removeprefix("torch.")
        held = {"inducing points": num_points} if num_points else {"features": self.process.num_inducing}
        facts = held | {"inputs": d, "leading axes": tuple(self.process.batch_shape), "type": dtype}
        line: list[float] = []
        if d == 1 and not self.process.batch_shape:
            line = self._moments(self._line(None, None, _NUM_SKETCHED))[0].detach().flatten().tolist()
        return html_table(type(self).__name__, facts, line=line if len(line) == _NUM_SKETCHED else ())

    def _describe(self) -> str:
        """Summary for a reader of a notebook, instead of all tensors."""
        num_points, d = self.process.reference.shape[-2:]
        dtype = str(self.process.reference.dtype).removeprefix("torch.")
        held = f"num_inducing={num_points}" if num_points else f"num_features={self.process.num_inducing}"
        return f"{held}, num_dims={d}, batch_shape={tuple(self.process.batch_shape)}, dtype={dtype}"

    def _checked(self, X: ArrayLike | Evidence) -> Tensor | Evidence:
        reference = self.process.reference
        if isinstance(X, Evidence):
            if X.is_rate:
                raise UnsupportedError(
                    "Averages of rates are observed, and not predicted. Predict their inputs, and average responses."
                )
            return X.matched(reference, self.process.batch_shape)
        return check_inputs(X, num_dims=reference.shape[-1], like=reference, batch_shape=self.process.batch_shape)
