"""A sparse GP given further observations."""

from dataclasses import dataclass
from typing import final

from torch import Tensor

from streamgp.checks import check_inputs, check_targets
from streamgp.conditioning.abstract_gp import AbstractGP
from streamgp.conditioning.gaussian import ConditionedProcess, condition
from streamgp.conditioning.noise import Noise
from streamgp.gp import SparseProcess
from streamgp.shapes import broadcast_shapes

__all__ = ["ConditionedGP", "conditioned"]


@final
@dataclass(frozen=True, eq=False)
class ConditionedGP(AbstractGP):
    """A sparse GP conditioned exactly on observations, made by `SparseGP.condition`.

    It grows with the observations it is conditioned on; to learn from a stream in constant size use `SparseGP.absorb`.
    """

    conditioned_process: ConditionedProcess

    @property
    def process(self) -> ConditionedProcess:
        """The process behind the object."""
        return self.conditioned_process

    @property
    def num_observations(self) -> int:
        """How many observations the sparse GP was conditioned on."""
        return self.process.factor.shape[-1]

    @property
    def jitter(self) -> Tensor:
        """The most that had to be added to the diagonal of the observations' covariance to factorise it."""
        return self.process.jitter

    def condition(self, X: Tensor, y: Tensor, *, noise_variance: float | Tensor | None = None) -> "ConditionedGP":
        """Condition again: the same as conditioning on everything at once. See `SparseGP.condition`."""
        return conditioned(self.process, X, y, noise_variance=noise_variance)


def conditioned(
    process: SparseProcess | ConditionedProcess, X: Tensor, y: Tensor, *, noise_variance: float | Tensor | None
) -> ConditionedGP:
    """Check observations and condition a process on them."""
    reference = process.reference
    X = check_inputs(X, num_dims=reference.shape[-1], like=reference)
    y = check_targets(y, X)
    noise = Noise.read(noise_variance, X)
    batch = broadcast_shapes(y.shape[:-1], X.shape[:-2])
    return ConditionedGP(condition(process, X, y.expand(*batch, y.shape[-1]), noise=noise))
