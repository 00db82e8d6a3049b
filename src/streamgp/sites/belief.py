"""Beliefs about the observed latent values, before the observations and after given Gaussian sites."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import NamedTuple, final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.linalg import cholesky, solve_lower, solve_lower_transpose, solve_vector

__all__ = ["AbstractBelief", "DenseBelief", "FactoredBelief", "Updated"]

_NAME = "the covariance of the latent values under their sites"


class Updated(NamedTuple):
    r"""The belief $\mathcal N(m + e, C')$ after sites of precision $\tau$ and pull $r$.

    Attributes:
        shift: $e = C' r$, how far the mean moved.
        gradient: $C^{-1} e = r - \tau e$, the negative gradient of the belief's log density there.
        variance: The diagonal of $C' = (C^{-1} + \operatorname{diag} \tau)^{-1}$.
        spread: The same with the slack.
        log_determinant: $\log \lvert C \rvert - \log \lvert C' \rvert$.
        quadratic: $e^\top C^{-1} e$.
    """

    shift: Float[Tensor, "*s k"]
    gradient: Float[Tensor, "*s k"]
    variance: Float[Tensor, "*s k"]
    spread: Float[Tensor, "*s k"]
    log_determinant: Float[Tensor, "*s"]
    quadratic: Float[Tensor, "*s"]


class AbstractBelief(ABC):
    r"""A Gaussian belief $\mathcal N(m, C)$ about $k$ latent values, each with independent slack of known variance.

    The slack is what a sparse posterior leaves of the prior at inputs that are not inducing points: observations do not
    reduce it, but expectations have to take it into account.
    """

    mean: Float[Tensor, "*b k"]
    slack: Float[Tensor, "*b k"] | None

    @abstractmethod
    def update(self, pull: Float[Tensor, "*s k"], precision: Float[Tensor, "*s k"]) -> Updated:
        r"""Multiply with sites $\exp(r^\top e - \frac12 \sum_i \tau_i e_i^2)$, $e$ the shift from $m$."""

    @abstractmethod
    def variance(self) -> Float[Tensor, "*b k"]:
        """The diagonal of $C$."""

    @abstractmethod
    def in_double(self) -> "AbstractBelief":
        """Return the belief in double precision, with a covariance that has no negative eigenvalues."""

    @final
    def with_slack(self, variance: Float[Tensor, "*s k"]) -> Float[Tensor, "*s k"]:
        """A variance of what sites can reduce, and the slack."""
        return variance if self.slack is None else variance + self.slack


@final
@dataclass(frozen=True, eq=False)
class DenseBelief(AbstractBelief):
    r"""A belief given by its covariance; each update factorizes $I + \tau^{1/2} C \tau^{1/2}$, which is well posed."""

    mean: Float[Tensor, "*b k"]
    covariance: Float[Tensor, "*c k k"]
    slack: Float[Tensor, "*b k"] | None = None

    def update(self, pull: Tensor, precision: Tensor) -> Updated:
        if self.covariance.shape[-1] == 1:
            return self._update_single(pull, precision)
        C, root = self.covariance, precision.sqrt()
        eye = torch.eye(C.shape[-1], dtype=C.dtype, device=C.device)
        L, _ = cholesky(eye + root.unsqueeze(-1) * C * root.unsqueeze(-2), name=_NAME)
        V = solve_lower(L, root.unsqueeze(-1) * C)
        # With the factor on both sides nothing cancels, however large pull and precision are.
        gradient = root * solve_vector(L, solve_vector(L, pull / root), is_transposed=True)
        shift = (C @ gradient.unsqueeze(-1)).squeeze(-1)
        variance = (C.diagonal(dim1=-2, dim2=-1) - V.square().sum(-2)).clamp_min(0.0)
        log_determinant = 2.0 * L.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        quadratic = (gradient * shift).sum(-1)
        return Updated(shift, gradient, variance, self.with_slack(variance), log_determinant, quadratic)

    def _update_single(self, pull: Tensor, precision: Tensor) -> Updated:
        """Update the belief about a single latent value, where all matrices are numbers."""
        C = self.covariance.squeeze(-1)
        excess = precision * C
        gradient = pull / (1.0 + excess)
        shift, variance = C * gradient, C / (1.0 + excess)
        quadratic, log_determinant = (gradient * shift).squeeze(-1), excess.log1p().squeeze(-1)
        return Updated(shift, gradient, variance, self.with_slack(variance), log_determinant, quadratic)

    def variance(self) -> Tensor:
        return self.covariance.diagonal(dim1=-2, dim2=-1)

    def in_double(self) -> "DenseBelief":
        C = self.covariance.double()
        if C.shape[-1] > 1:
            # Rounding leaves eigenvalues below zero, which sites of high precision take for variances below zero.
            lift = (-torch.linalg.eigvalsh(C.detach())[..., 0]).clamp_min(0.0)
            C = C + torch.diag_embed(lift.unsqueeze(-1).expand(C.shape[:-1]))
        return replace(self, mean=self.mean.double(), covariance=C, slack=_double(self.slack))


@final
@dataclass(frozen=True, eq=False)
class FactoredBelief(AbstractBelief):
    r"""A belief with $C = W^\top W$ of low rank; each update factorizes $I + W \operatorname{diag}(\tau) W^\top$."""

    mean: Float[Tensor, "*b k"]
    root: Float[Tensor, "*c m k"]
    slack: Float[Tensor, "*b k"] | None = None

    def update(self, pull: Tensor, precision: Tensor) -> Updated:
        W = self.root
        eye = torch.eye(W.shape[-2], dtype=W.dtype, device=W.device)
        L, _ = cholesky(eye + (W * precision.unsqueeze(-2)) @ W.mT, name=_NAME)
        U = solve_lower(L, W)
        pulled = U @ pull.unsqueeze(-1)
        shift = (U.mT @ pulled).squeeze(-1)
        whitened = solve_lower_transpose(L, pulled).squeeze(-1)
        log_determinant = 2.0 * L.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        gradient, variance = pull - precision * shift, U.square().sum(-2)
        quadratic = whitened.square().sum(-1)
        return Updated(shift, gradient, variance, self.with_slack(variance), log_determinant, quadratic)

    def variance(self) -> Tensor:
        return self.root.square().sum(-2)

    def in_double(self) -> "FactoredBelief":
        return replace(self, mean=self.mean.double(), root=self.root.double(), slack=_double(self.slack))


def _double(slack: Tensor | None) -> Tensor | None:
    return None if slack is None else slack.double()
