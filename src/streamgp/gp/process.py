"""The interface of Gaussian processes, and the prediction that asks one for its moments."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.checks import to_form
from streamgp.display import shown_moments
from streamgp.errors import NumericalError
from streamgp.evidence import Evidence
from streamgp.linalg import cholesky
from streamgp.shapes import broadcast_shapes

__all__ = ["AbstractProcess", "Prediction", "num_own_axes", "row_by_row"]

# Numbers of a matrix of inducing variables and inputs; more inputs are predicted part by part, in little memory.
_PART_NUMBERS = 2_000_000


class AbstractProcess(ABC):
    """A Gaussian process: its moments at any inputs or rows of evidence, which are taken without checks."""

    @property
    @abstractmethod
    def reference(self) -> Float[Tensor, "*b m d"]:
        """Inputs whose dimension, dtype and device all others must share."""

    @property
    @abstractmethod
    def num_inducing(self) -> int:
        """Number of inducing variables."""

    @property
    @abstractmethod
    def batch_shape(self) -> torch.Size:
        """Leading axes of the process."""

    @abstractmethod
    def cross(self, X: Float[Tensor, "*b n d"] | Evidence) -> Float[Tensor, "*c m n"] | None:
        """The covariance of inducing variables and values at inputs, which mean and variance there both begin with.

        None where it is not to be kept from the one to the other: as it is large, has a gradient, or inputs have
        leading axes of their own.
        """

    @abstractmethod
    def mean(
        self, X: Float[Tensor, "*b n d"] | Evidence, cross: Float[Tensor, "*e m n"] | None = None
    ) -> Float[Tensor, "*c n"]:
        """Mean of the latent function.

        Args:
            X: Inputs.
            cross: What `cross` makes of them, if it is there already.
        """

    @abstractmethod
    def variance(
        self, X: Float[Tensor, "*b n d"] | Evidence, cross: Float[Tensor, "*e m n"] | None = None
    ) -> Float[Tensor, "*c n"]:
        """Marginal variances of the latent function.

        Args:
            X: Inputs.
            cross: What `cross` makes of them, if it is there already.
        """

    @abstractmethod
    def covariance(self, X: Float[Tensor, "*b n d"] | Evidence) -> Float[Tensor, "*c n n"]:
        """Joint covariance of the latent function."""

    @abstractmethod
    def prior_variance(self, X: Float[Tensor, "*b n d"] | Evidence) -> Float[Tensor, "*c n"]:
        """Variances before any data: the scale whose rounding all moments carry."""

    def sample(
        self, X: Float[Tensor, "*b n d"] | Evidence, num_samples: int, generator: torch.Generator | None
    ) -> Float[Tensor, "s *c n"]:
        """Draw joint samples by a factor of the covariance."""
        mean = self.mean(X)
        scale = self.prior_variance(X)
        factor, _ = cholesky(self.covariance(X), scale=scale, name="the covariance of the sampled inputs")
        shape = broadcast_shapes(mean.shape, factor.shape[:-1])
        noise = torch.randn(num_samples, *shape, generator=generator, dtype=mean.dtype, device=mean.device)
        return mean + (factor @ noise.unsqueeze(-1)).squeeze(-1)


@final
@dataclass(frozen=True, eq=False, repr=False)
class Prediction:
    """Moments of the latent function, each computed when it is first asked for.

    ```python
    import torch

    X = torch.rand(20, 2, dtype=torch.float64)
    prediction = sg.fit(X, X.sum(-1), num_inducing=10).predict(X[:3])
    prediction.mean, prediction.variance, prediction.covariance  # (3,), (3,) and (3, 3)
    ```

    Attributes:
        process: The process that predicts.
        inputs: Inputs, or rows of evidence; moments of gradients have a last axis for their components.
        is_numpy: Whether moments are arrays of NumPy, as the inputs were, and not tensors.
    """

    process: AbstractProcess
    inputs: Float[Tensor, "*b n d"] | Evidence
    is_numpy: bool = False

    @cached_property
    def mean(self) -> Any:
        """Mean, `(*c, n)`; costs one dot product for each input."""
        return self._shown(self._laid_out(_finite(self._by_parts(self.process.mean), "mean")))

    @cached_property
    def variance(self) -> Any:
        """Marginal variances, `(*c, n)`, never negative; read off the covariance if that is there already."""
        if "covariance" in self.__dict__:
            joint = torch.as_tensor(self.covariance)
            return self._shown(self._laid_out(joint.diagonal(dim1=-2, dim2=-1).clamp_min(0.0)))
        return self._shown(self._laid_out(_finite(self._by_parts(self.process.variance), "variance").clamp_min(0.0)))

    @cached_property
    def covariance(self) -> Any:
        """Joint covariance, `(*c, n, n)`, whose diagonal is never negative."""
        covariance = _finite(self.process.covariance(self.inputs), "covariance")
        below = covariance.detach().diagonal(dim1=-2, dim2=-1).clamp_max(0.0)
        # Rounding can leave variances of known values slightly negative; rarely, so look before paying for a copy.
        return self._shown(covariance - torch.diag_embed(below) if below.any() else covariance)

    @property
    def standard_deviation(self) -> Any:
        """Square root of the variance, `(*c, n)`."""
        return self.variance**0.5

    @property
    def std(self) -> Any:
        """The standard deviation, for short."""
        return self.standard_deviation

    def __repr__(self) -> str:
        return f"Prediction({shown_moments(self, self.inputs.shape[-2])})"

    @cached_property
    def _cross(self) -> Tensor | None:
        return self.process.cross(self.inputs)

    def _laid_out(self, moment: Tensor) -> Tensor:
        """A moment in the shape of the targets of its rows."""
        rows = self.inputs
        if isinstance(rows, Evidence) and len(rows.target_shape) > 1:
            return moment.unflatten(-1, rows.target_shape)
        return moment

    def _by_parts(self, moment: Callable[[Any, Tensor | None], Tensor]) -> Tensor:
        """A moment at all inputs, of which very many are taken one part after the other."""
        X, process = self.inputs, self.process
        if isinstance(X, Evidence):
            return moment(X, self._cross)
        size = max(1, _PART_NUMBERS // max(1, process.num_inducing * process.batch_shape.numel()))
        if X.dim() > 2 or len(X) <= size or X.requires_grad:
            return moment(X, self._cross)
        first = moment(X[:size], None)
        if first.requires_grad:  # through all of them
            return moment(X, None)
        values = first.new_empty(*first.shape[:-1], len(X))
        values[..., :size] = first
        for start in range(size, len(X), size):
            part = slice(start, start + size)
            values[..., part] = moment(X[part], None)
        return values

    def _shown(self, moment: Tensor) -> Any:
        return to_form(moment, is_numpy=self.is_numpy)


def num_own_axes(X: Tensor | Evidence, num_batch: int) -> int:
    """Count the leading axes of inputs that a batch of functions does not have."""
    return X.dim() - 2 - num_batch


def row_by_row(
    function: Callable[[Any], Tensor], X: Float[Tensor, "*s n d"] | Evidence, num_batch: int
) -> Float[Tensor, "*t n"]:
    """Evaluate a function of single inputs, where leading axes of theirs alone are taken as more rows.

    Matrices that all these inputs share then enter into one large product, and not into many products of one column.

    Args:
        function: From inputs to a value for each.
        X: Inputs; rows of evidence are evaluated as they are.
        num_batch: How many of the last leading axes inputs have in common with the function.
    """
    num_own = num_own_axes(X, num_batch)
    if num_own <= 0 or isinstance(X, Evidence):
        return function(X)
    own, n = X.shape[:num_own], X.shape[-2]
    rows = X.reshape(math.prod(own), *X.shape[num_own:]).movedim(0, -3).flatten(-3, -2)
    values = function(rows)
    return values.unflatten(-1, (math.prod(own), n)).movedim(-2, 0).reshape(*own, *values.shape[:-1], n)


def _finite(values: Tensor, name: str) -> Tensor:
    """Pass finite moments on: where a kernel grows without bound, they can leave what their dtype holds."""
    # The sum is much cheaper than a look at each value, and rarely wrong: it may overflow by itself.
    if not math.isfinite(float(values.detach().sum())) and not torch.isfinite(values.detach()).all():
        raise NumericalError(
            f"The {name} of the prediction is beyond what {str(values.dtype).removeprefix('torch.')} can hold.",
            advice="Look for fill values among the inputs, scale inputs and kernel, or use float64.",
        )
    return values
