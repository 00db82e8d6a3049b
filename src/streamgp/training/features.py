"""What the inducing points explain of the observed values, as a function of all that is learned."""

from dataclasses import dataclass
from typing import NamedTuple, final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.gp import read_kernel
from streamgp.linalg import cholesky, solve_lower
from streamgp.training.parameters import Setting

__all__ = ["Features", "Moments", "Observed", "observed_features", "prior_moments", "relative_jitter"]

# The same share of the mean variance as in SparseGP.from_prior, so that training sees the model that comes out.
_RELATIVE_JITTER = {torch.float64: 1e-8, torch.float32: 1e-5}


def relative_jitter(dtype: torch.dtype) -> float:
    """Jitter of the inducing points' kernel matrix, relative to its diagonal, of a model in some dtype."""
    return _RELATIVE_JITTER[dtype]


@final
@dataclass(frozen=True, eq=False)
class Observed:
    """Data in double precision, as training sees it.

    Attributes:
        inputs: $X$; for comparisons the first inputs.
        others: For comparisons the second inputs, else None.
        targets: $y$.
        jitter: Relative to the diagonal of the inducing points' kernel matrix.
    """

    inputs: Float[Tensor, "n d"]
    others: Float[Tensor, "n d"] | None
    targets: Float[Tensor, " n"]
    jitter: float = _RELATIVE_JITTER[torch.float64]

    @property
    def num_data(self) -> int:
        """Number of observations."""
        return self.targets.shape[-1]

    @property
    def all_inputs(self) -> Float[Tensor, "k d"]:
        """Every input, those of comparisons one after the other."""
        return self.inputs if self.others is None else torch.cat([self.inputs, self.others])


class Moments(NamedTuple):
    r"""The prior at inducing points and observed values.

    Attributes:
        inducing: $K_{zz}$, with jitter.
        cross: $K_{zx}$.
        variance: The diagonal of $K_{xx}$.
        mean: $\mu(X)$.
    """

    inducing: Float[Tensor, "m m"]
    cross: Float[Tensor, "m n"]
    variance: Float[Tensor, " n"]
    mean: Float[Tensor, " n"]


@final
@dataclass(frozen=True, eq=False)
class Features:
    r"""Whitened features of observations.

    Attributes:
        phi: $\phi(X) = L^{-1} k(Z, X)$, or the differences of comparisons.
        slack: $\operatorname{diag}(K_{xx} - \phi^\top \phi)$, what the inducing points cannot explain.
        mean: The prior mean of the observed values.
    """

    phi: Float[Tensor, "m n"]
    slack: Float[Tensor, " n"]
    mean: Float[Tensor, " n"]

    def detach(self) -> "Features":
        """The same without gradient."""
        return Features(self.phi.detach(), self.slack.detach(), self.mean.detach())


def prior_moments(setting: Setting, data: Observed) -> Moments:
    """Evaluate the prior at inducing points and observed values; one kernel matrix between the two."""
    kernel, Z, X = read_kernel(setting.kernel), setting.inducing_points, data.inputs
    jitter = data.jitter * kernel.diagonal(Z).mean()
    Kzz = kernel.matrix(Z, Z) + jitter * torch.eye(len(Z), dtype=Z.dtype, device=Z.device)
    Kzx, variance, mean = kernel.matrix(Z, X), kernel.diagonal(X).expand(len(X)), setting.mean(X)
    if data.others is not None:
        other = data.others
        between = kernel.matrix(X.unsqueeze(-2), other.unsqueeze(-2)).reshape(-1)
        Kzx, mean = Kzx - kernel.matrix(Z, other), mean - setting.mean(other)
        variance = variance + kernel.diagonal(other) - 2.0 * between
    return Moments(Kzz, Kzx, variance, mean)


def observed_features(setting: Setting, data: Observed) -> Features:
    """Evaluate the features, in O(n m) memory."""
    moments = prior_moments(setting, data)
    L, _ = cholesky(moments.inducing, name="the kernel matrix of the inducing points")
    phi = solve_lower(L, moments.cross)
    return Features(phi, (moments.variance - phi.square().sum(-2)).clamp_min(0.0), moments.mean)
