"""The belief about all members of a pool: one joint Gaussian, of which only blocks are ever computed."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from streamgp.conditioning import ConditionedGP, SparseGP
from streamgp.conditioning.conditioned_gp import ConditionedProcess
from streamgp.evidence import Evidence
from streamgp.gp import Prediction, SparseProcess
from streamgp.linalg import solve_lower_transpose

__all__ = ["CovarianceColumns", "PoolBelief", "blocks"]

# Numbers of the temporaries of one block, 32 MB of them in double precision.
_BLOCK_NUMBERS = 4_000_000


def blocks(members: Int[Tensor, " k"], row_numbers: int) -> Iterator[tuple[slice, Int[Tensor, " c"]]]:
    """Split members so that temporaries with so many numbers for each stay small.

    Args:
        members: Any indices.
        row_numbers: How many numbers one of them takes.
    """
    size = max(1, _BLOCK_NUMBERS // max(1, row_numbers))
    for start in range(0, len(members), size):
        part = slice(start, start + size)
        yield part, members[part]


@final
@dataclass(frozen=True, eq=False)
class CovarianceColumns:
    r"""Covariances of any members with fixed ones: $k(x, w) = k_0(x, w) - k_0(x, s) C_w - r(x)^\top r(w)$.

    Attributes:
        process: Whose prior covariance $k_0$ is.
        inputs: The fixed members $w$.
        held: Inputs of observations, whose values and the inducing variables of the process are $s$.
        weights: $C$.
        roots: $r(w)$.
    """

    process: SparseProcess
    inputs: Float[Tensor, "t d"]
    held: Float[Tensor, "h d"] | Evidence | None
    weights: Float[Tensor, "s t"]
    roots: Float[Tensor, "r t"]

    @property
    def row_numbers(self) -> int:
        """Numbers that one row takes, temporaries included."""
        return 4 * (len(self.inputs) + len(self.weights))

    def cross(self, inputs: Float[Tensor, "c d"], roots: Float[Tensor, "r c"]) -> Float[Tensor, "c t"]:
        """Covariances of other members, given by their inputs and roots."""
        prior = self.process.prior
        covariance = torch.addmm(
            prior.covariance(inputs, self.inputs),
            self.process.inducing.crossed(inputs, self.held),
            self.weights,
            alpha=-1.0,
        )
        return torch.addmm(covariance, roots.mT, self.roots, alpha=-1.0) if len(roots) else covariance


@final
@dataclass(frozen=True, eq=False)
class PoolBelief:
    r"""Means, variances and, on demand, covariances of the latent values of a pool.

    Observations that are awaited have reduced the covariance by $\sum_j r_j r_j^\top$; the mean stays, as it does on
    average over their outcomes.

    Attributes:
        process: The belief before those.
        inputs: Of all members.
        mean: $\mu$.
        variance: $v$; not negative.
        roots: $r$, one row for each awaited observation.
    """

    process: SparseProcess | ConditionedProcess
    inputs: Float[Tensor, "n d"]
    mean: Float[Tensor, " n"]
    variance: Float[Tensor, " n"]
    roots: Float[Tensor, "r n"]

    @classmethod
    def of(cls, gp: SparseGP | ConditionedGP, inputs: Float[Tensor, "n d"]) -> "PoolBelief":
        """Predict all members."""
        with torch.no_grad():
            prediction = Prediction(gp.process, inputs)
            mean, variance = prediction.mean, prediction.variance
        return cls(gp.process, inputs, mean, variance, inputs.new_empty(0, len(inputs)))

    def columns(self, members: Int[Tensor, " t"]) -> CovarianceColumns:
        """Prepare covariances with some members."""
        X, process = self.inputs[members], self.process
        base = process if isinstance(process, SparseProcess) else process.base
        phi = base.features(X)
        held: Tensor | Evidence | None = None
        weights = base.cross_weights(base.variance_reduction @ phi)
        if isinstance(process, ConditionedProcess):
            G = solve_lower_transpose(process.factor, process.whitened_cross(X, phi))
            weights = weights - base.cross_weights(process.reduction_features @ G)
            held, weights = process.inputs, torch.cat([weights, G])
        return CovarianceColumns(base, X, held, weights, self.roots[:, members])

    def await_observation(self, member: int, precision: Float[Tensor, ""]) -> "PoolBelief":
        r"""The belief with one more observation awaited, with Gaussian noise of some precision.

        A downdate of rank one: $r = k(\cdot, x) \sqrt{\tau / (1 + \tau v)}$.

        Args:
            member: Which is to be observed.
            precision: $\tau$, the inverse of the noise variance; zero changes nothing.
        """
        columns = self.columns(torch.tensor([member]))
        scale = (precision / (1.0 + precision * self.variance[member])).sqrt()
        root = torch.empty_like(self.mean)
        for part, members in blocks(torch.arange(len(root)), columns.row_numbers):
            root[part] = scale * columns.cross(self.inputs[members], self.roots[:, members]).squeeze(-1)
        variance = (self.variance - root.square()).clamp_min(0.0)
        return replace(self, variance=variance, roots=torch.cat([self.roots, root.unsqueeze(0)]))
