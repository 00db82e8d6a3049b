r"""The sparse posterior $q(f) = \int p(f \mid u) q(u) du$ as the Gaussian process that it is."""

from dataclasses import dataclass
from functools import cached_property
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from streamgp.evidence import Evidence
from streamgp.gp.inducing import AbstractInducing
from streamgp.gp.prior import Prior
from streamgp.gp.process import AbstractProcess, num_own_axes, row_by_row
from streamgp.linalg import apply, cholesky, solve_lower, solve_lower_transpose, solve_vector
from streamgp.shapes import broadcast_shapes

__all__ = ["InducingFactor", "SparseProcess"]

# Covariances with inputs are kept from the mean to the variance up to this many numbers, some megabytes.
_MOST_KEPT = 2**20


@final
@dataclass(frozen=True, eq=False)
class InducingFactor:
    r"""The factor of $K = \operatorname{cov}(u) + jI = L L^\top$, and what follows from it alone.

    Shared while the inducing variables stay.

    Attributes:
        factor: $L$, in the dtype of the process.
        double_factor: $L$ as it was computed.
        total_jitter: Jitter on the diagonal of $K$ in all: the stated one, and what the factorization added.
        is_as_stated: Whether the factorization added nothing.
    """

    factor: Float[Tensor, "*b m m"]
    double_factor: Float[Tensor, "*b m m"]
    total_jitter: Float[Tensor, "*b"]
    is_as_stated: bool

    @classmethod
    def of(cls, covariance: Float[Tensor, "*b m m"], jitter: float) -> "InducingFactor":
        """Factorize $k(Z, Z)$ with the stated jitter."""
        # Factorized once and used everywhere, so worth double precision whatever the dtype.
        K = covariance.double()
        K = K + jitter * torch.eye(K.shape[-1], dtype=K.dtype, device=K.device)
        L, extra = cholesky(K, name="the kernel matrix of the inducing points")
        return cls(L.to(covariance), L, (extra + jitter).to(covariance), not bool(extra.any()))

    @cached_property
    def whitening(self) -> Float[Tensor, "*b m m"]:
        """The inverse of $L$, in double precision."""
        L = self.double_factor
        return solve_lower(L, torch.eye(L.shape[-1], dtype=L.dtype, device=L.device).expand_as(L))

    def reshape(self, batch_shape: torch.Size) -> "InducingFactor":
        """Give the factors other leading axes."""
        m = self.factor.shape[-1]
        changed = InducingFactor(
            self.factor.reshape(*batch_shape, m, m),
            self.double_factor.reshape(*batch_shape, m, m),
            self.total_jitter.reshape(batch_shape),
            self.is_as_stated,
        )
        if "whitening" in self.__dict__:
            changed.__dict__["whitening"] = self.whitening.reshape(*batch_shape, m, m)
        return changed

    def with_members(self, index: Int[Tensor, " k"], other: "InducingFactor") -> "InducingFactor":
        """Replace some members of the first axis, without losing what follows from the others.

        Args:
            index: Which.
            other: The factors of those alone.
        """

        def replaced(mine: Tensor, others: Tensor) -> Tensor:
            copy = mine.clone()  # in its own memory layout, on which the last bits of a solution depend
            copy[index] = others
            return copy

        changed = InducingFactor(
            replaced(self.factor, other.factor),
            replaced(self.double_factor, other.double_factor),
            replaced(self.total_jitter, other.total_jitter),
            self.is_as_stated and other.is_as_stated,
        )
        if "whitening" in self.__dict__:
            changed.__dict__["whitening"] = replaced(self.whitening, other.whitening)
        return changed

    @cached_property
    def leave_one_out(self) -> Float[Tensor, "*b m"]:
        r"""The prior variance of each inducing value given the others, $1 / (K^{-1})_{ii}$."""
        return self.whitening.square().sum(-2).reciprocal().to(self.factor.dtype)


@final
@dataclass(frozen=True, eq=False)
class SparseProcess(AbstractProcess):
    r"""A prior and a whitened belief about its inducing variables $u$.

    With $K = \operatorname{cov}(u) + jI = L L^\top$ and features $\phi(x) = L^{-1} \operatorname{cov}(u, f(x))$, which
    are $L^{-1} k(Z, x)$ for values $u = f(Z)$ at inducing points,

    $$
    \mu_q(x) = \mu(x) + \phi(x)^\top \bar m, \qquad
    k_q(x, x') = k(x, x') - \phi(x)^\top D \phi(x'), \qquad D = I - \bar S .
    $$

    $D$ may have negative eigenvalues: training leaves directions where $q$ is wider than the prior.

    Attributes:
        prior: Kernel and mean.
        inducing_points: Inputs $Z$, $u = f(Z)$; none for $u$ the weights of the features of a kernel of finite rank.
        whitened_mean: $\bar m$, the mean of $L^{-1}(u - \operatorname{E} u)$.
        whitened_root: Any square root $R$ of its covariance, $\bar S = R R^\top$.
        jitter: $j$, part of the definition of $u$.
        information: The diagonal of the site $\Lambda = S^{-1} - K^{-1}$ at the inducing points, where it was carried
            along; None where it is to be derived from the belief.
    """

    prior: Prior
    inducing_points: Float[Tensor, "*b k d"]
    whitened_mean: Float[Tensor, "*b m"]
    whitened_root: Float[Tensor, "*b m m"]
    jitter: float = 0.0
    information: Float[Tensor, "*b m"] | None = None

    @classmethod
    def from_prior(cls, prior: Prior, inducing_points: Float[Tensor, "*b m d"], *, jitter: float) -> "SparseProcess":
        """The prior itself, before any data."""
        Z, m = inducing_points, prior.inducing(inducing_points).num_variables
        eye = torch.eye(m, dtype=Z.dtype, device=Z.device).expand(*Z.shape[:-2], m, m)
        return cls(prior, Z, Z.new_zeros(*Z.shape[:-2], m), eye, jitter)

    @property
    def reference(self) -> Tensor:
        return self.inducing_points

    @property
    def batch_shape(self) -> torch.Size:
        return broadcast_shapes(self.whitened_mean.shape[:-1], self.prior.batch_shape)

    @cached_property
    def inducing(self) -> AbstractInducing:
        """The inducing variables $u$."""
        return self.prior.inducing(self.inducing_points)

    @cached_property
    def inducing_factor(self) -> InducingFactor:
        """The factor $L$ and what follows from it."""
        return InducingFactor.of(self.inducing.covariance(), self.jitter)

    @property
    def num_inducing(self) -> int:
        return self.whitened_mean.shape[-1]

    @property
    def factor(self) -> Float[Tensor, "*b m m"]:
        """The factor $L$."""
        return self.inducing_factor.factor

    @property
    def total_jitter(self) -> Float[Tensor, "*b"]:
        """Jitter on the diagonal of $K$ in all: the stated one, and what the factorization added."""
        return self.inducing_factor.total_jitter

    @cached_property
    def variance_reduction(self) -> Float[Tensor, "*b m m"]:
        r"""The matrix $D = I - \bar S$ by which $q$ is narrower than the prior."""
        R = self.whitened_root
        return torch.eye(R.shape[-1], dtype=R.dtype, device=R.device) - R @ R.mT

    @cached_property
    def mean_weights(self) -> Float[Tensor, "*b m"]:
        r"""The weights $a = L^{-\top} \bar m$ of $\operatorname{cov}(f(x), u)$ in the mean."""
        return solve_vector(self.factor, self.whitened_mean, is_transposed=True)

    def with_belief(
        self,
        whitened_mean: Float[Tensor, "*b m"],
        whitened_root: Float[Tensor, "*b m m"],
        information: Float[Tensor, "*b m"] | None = None,
    ) -> "SparseProcess":
        """Another belief about the same inducing variables, sharing their factor."""
        other = SparseProcess(self.prior, self.inducing_points, whitened_mean, whitened_root, self.jitter, information)
        other.__dict__["inducing"], other.__dict__["inducing_factor"] = self.inducing, self.inducing_factor
        return other

    def features(
        self, X: Float[Tensor, "*b n d"] | Evidence, cross: Float[Tensor, "*e m n"] | None = None
    ) -> Float[Tensor, "*c m n"]:
        r"""The features $\phi(X)$."""
        return solve_lower(self.factor, self.inducing.cross(X) if cross is None else cross)

    def cross_weights(self, reduction_features: Float[Tensor, "*c m n"]) -> Float[Tensor, "*c m n"]:
        r"""The matrix $B = L^{-\top} D \phi(X)$, with which $k_q(w, X) = k(w, X) - \operatorname{cov}(f(w), u) B$."""
        return solve_lower_transpose(self.factor, reduction_features)

    def cross(self, X: Tensor | Evidence) -> Tensor | None:
        if X.requires_grad or num_own_axes(X, len(self.batch_shape)) > 0:
            return None
        if self.batch_shape.numel() * self.num_inducing * X.shape[-2] > _MOST_KEPT:
            return None
        cross = self.inducing.cross(X)
        # One of two gradients would use up what the other needs.
        return None if cross.requires_grad else cross

    def mean(self, X: Tensor | Evidence, cross: Tensor | None = None) -> Tensor:
        return self.prior.mean(X) + apply(self.inducing.crossed(X) if cross is None else cross.mT, self.mean_weights)

    def variance(self, X: Tensor | Evidence, cross: Tensor | None = None) -> Tensor:
        return row_by_row(lambda rows: self._variance(rows, cross), X, len(self.batch_shape))

    def _variance(self, X: Tensor | Evidence, cross: Tensor | None) -> Tensor:
        phi = self.features(X, cross)
        # Through the root and not through D, which takes O(m^3) to form.
        return self.prior.variance(X) - phi.square().sum(-2) + (self.whitened_root.mT @ phi).square().sum(-2)

    def prior_variance(self, X: Tensor | Evidence) -> Tensor:
        return self.prior.magnitude(X)

    def covariance(self, X: Tensor | Evidence) -> Tensor:
        phi = self.features(X)
        return self.prior.covariance(X, X) - phi.mT @ (self.variance_reduction @ phi)
