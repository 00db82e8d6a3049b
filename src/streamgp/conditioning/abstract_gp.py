"""What every GP of the public interface can do: predict and be sampled."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from streamgp.checks import ArrayLike, check_count, check_generator, check_inputs
from streamgp.gp import AbstractProcess, Prediction

__all__ = ["AbstractGP"]


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
            covariance: Compute the joint covariance at once; the variance is then its diagonal. Otherwise each moment
                is computed when it is first read.

        Returns:
            A prediction with `mean`, `variance` and `covariance`.
        """
        prediction = Prediction(self.process, self._checked(X))
        if covariance:
            _ = prediction.covariance
        return prediction

    def sample(self, X: ArrayLike, num_samples: int = 1, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw joint samples of the latent function.

        Args:
            X: Inputs `(*b, n, d)`.
            num_samples: Number of samples $s$.
            generator: Source of randomness.

        Returns:
            Samples `(s, *b, n)`.
        """
        return self.process.sample(
            self._checked(X), check_count(num_samples, "num_samples"), check_generator(generator)
        )

    def _describe(self) -> str:
        """What a reader of a notebook wants to know, instead of all tensors."""
        m, d = self.process.reference.shape[-2:]
        dtype = str(self.process.reference.dtype).removeprefix("torch.")
        return f"num_inducing={m}, num_dims={d}, batch_shape={tuple(self.process.batch_shape)}, dtype={dtype}"

    def _checked(self, X: ArrayLike) -> Tensor:
        reference = self.process.reference
        return check_inputs(X, num_dims=reference.shape[-1], like=reference, batch_shape=self.process.batch_shape)
