"""Beliefs of several experts about the same function, learned side by side as a batch."""

import math
from dataclasses import dataclass, fields
from functools import cached_property
from typing import NamedTuple, final

import torch
from gpytorch.kernels import Kernel
from gpytorch.means import ZeroMean
from jaxtyping import Float
from torch import Tensor

from streamgp.gp import Prior, SparseProcess
from streamgp.linalg import cholesky, solve_lower, solve_vector, symmetric_eigen
from streamgp.streaming.experts import Experts

__all__ = ["Bank", "Seen"]

# Of the prior variance of the inducing values, on the diagonal of their covariance.
_JITTER = 1e-8
# Most rows of which what was seen is kept.
_MOST_KEPT = 16


class Seen(NamedTuple):
    r"""What the experts say of latent values before they are observed.

    Attributes:
        weights: The loading $h(x)$ of each state.
        features: The features $\phi(x)$ that all experts share.
        prior_variance: The prior variance, before amplitudes.
        slack: What the inducing points leave of it.
        mean: Means of the latent values.
        spread: $S h(x)$.
        known: Variances of the latent values as the inducing points know them, $h(x)^\top S h(x)$.
        variance: Variances of the latent values, slack included.
    """

    weights: Float[Tensor, "e 1 k n"]
    features: Float[Tensor, "m n"]
    prior_variance: Float[Tensor, " n"]
    slack: Float[Tensor, " n"]
    mean: Float[Tensor, "e c n"]
    spread: Float[Tensor, "e c k n"]
    known: Float[Tensor, "e c n"]
    variance: Float[Tensor, "e c n"]


@final
@dataclass(frozen=True, eq=False)
class Bank:
    r"""A Kalman filter for each expert, all with the same kernel and inducing points; a frozen value.

    The latent function of output $c$ is $f_t(x) = b_c + \sqrt{a}\, \phi(x)^\top \bar u_t + s\, x^\top w_t + l_t$, with
    whitened inducing values $\bar u$, linear weights $w$ and a level $l$. The state $(\bar u, w, l)$ starts at
    $\mathcal N(0, I)$. With each row the level takes a step of a random walk, and the others go back to the prior,

    $$
    \bar u_{t+1} = \sqrt\lambda\, \bar u_t + \sqrt{1 - \lambda}\, \xi_t , \qquad \lambda = 2^{-1/h} ,
    $$

    so that $f$ is a Gaussian process with covariance $k(x, x') \lambda^{|t - t'| / 2}$. An expert has its own half-life
    $h$, amplitude $a$, slope $s$ and steps of the level. Learning a row costs $O(m^2)$ for each.

    Attributes:
        experts: What they expect.
        process: Kernel and inducing points; its belief is the prior.
        constant: $b$, for each output.
        level_noise: The noise variance with which the steps of the level are compared.
        mean: Means of the states.
        covariance: Their covariances.

    References:
        Van Vaerenbergh, Lazaro-Gredilla, Santamaria (2012), Kernel recursive least-squares tracker for time-varying
        regression.
    """

    experts: Experts
    process: SparseProcess
    constant: Float[Tensor, " c"]
    level_noise: float
    mean: Float[Tensor, "e c k"]
    covariance: Float[Tensor, "e c k k"]

    @classmethod
    def from_prior(
        cls,
        experts: Experts,
        kernel: Kernel,
        inducing_points: Float[Tensor, "m d"],
        *,
        constant: Float[Tensor, " c"],
        level_noise: float,
    ) -> "Bank":
        """Before any row."""
        Z = inducing_points
        prior = Prior.snapshot(kernel, ZeroMean(), like=Z)
        process = SparseProcess.from_prior(prior, Z, jitter=_JITTER * float(prior.variance(Z).mean()))
        shape = (len(experts), len(constant), sum(Z.shape) + 1)
        eye = torch.eye(shape[-1], dtype=Z.dtype).expand(*shape, shape[-1])
        return cls(experts, process, constant, level_noise, Z.new_zeros(shape), eye.contiguous())

    @property
    def num_inducing(self) -> int:
        """Number of inducing points."""
        return self.inducing_points.shape[-2]

    @property
    def inducing_points(self) -> Float[Tensor, "m d"]:
        """Where the belief is held."""
        return self.process.inducing_points

    def see(self, X: Float[Tensor, "n d"]) -> Seen:
        """Predict latent values; those of the inputs that were seen last are kept, as they are likely learned next."""
        last = self.__dict__.get("_last")
        if last is not None and last[0].shape == X.shape and torch.equal(last[0], X):
            return last[1]
        prior = self.process.prior
        features = self.process.inducing_factor.whitening @ prior.covariance(self.inducing_points, X)
        seen = self._seen(X, features, prior.variance(X))
        if len(X) <= _MOST_KEPT:
            self.__dict__["_last"] = X, seen
        return seen

    def _seen(self, X: Float[Tensor, "n d"], features: Float[Tensor, "m n"], prior: Float[Tensor, " n"]) -> Seen:
        slack = (prior - features.square().sum(-2)).clamp_min_(0.0)
        H = self.weights(X, features)
        spread = self.covariance @ H
        mean = (self._mean_row @ H).squeeze(-2).add_(self.constant.unsqueeze(-1))
        known = (H * spread).sum(-2).clamp_min_(0.0)
        variance = torch.addcmul(known, self._scales.amplitudes, slack)
        return Seen(H, features, prior, slack, mean, spread, known, variance)

    def weights(self, X: Float[Tensor, "n d"], features: Float[Tensor, "m n"]) -> Float[Tensor, "e 1 k n"]:
        """The loadings of the states."""
        return self._scales.loadings * torch.cat([features, X.mT, self._scales.level.expand(1, len(X))])

    def joint_covariance(self, X: Float[Tensor, "n d"], seen: Seen) -> Float[Tensor, "e c n n"]:
        """The covariance of latent values, slack included."""
        slack = self.process.prior.covariance(X, X) - seen.features.mT @ seen.features
        amplitudes = self.experts.amplitudes[:, None, None, None]
        return seen.weights.mT @ seen.spread + amplitudes * slack

    def absorb(self, seen: Seen, targets: Float[Tensor, "... c n"], noise: Float[Tensor, "... n"]) -> "Bank":
        """Learn Gaussian observations of values that were seen; time does not go on.

        Args:
            seen: What is believed of them, by this bank.
            targets: What was observed, the same for all experts or for each.
            noise: Variance of the noise.
        """
        W, error = seen.spread, targets - seen.mean
        if error.shape[-1] == 1:
            gain = W / (seen.known + noise).unsqueeze(-2)
            mean = self.mean + gain.squeeze(-1) * error
            covariance = torch.baddbmm(
                self.covariance.flatten(0, 1), gain.flatten(0, 1), W.flatten(0, 1).mT, alpha=-1.0
            ).view_as(self.covariance)
        else:
            A = seen.weights.mT @ W + torch.diag_embed(noise.expand_as(error))
            L, _ = cholesky(A, name="the covariance of the observations")
            G = solve_lower(L, W.mT)
            mean = self.mean + (G.mT @ solve_vector(L, error).unsqueeze(-1)).squeeze(-1)
            covariance = self.covariance - G.mT @ G
        return self.with_belief(mean, covariance)

    def age(self, num_rows: int) -> "Bank":
        """Let time go on by some rows."""
        return self.with_belief(self.mean.clone(), self.covariance.clone())._aged_in_place(num_rows)

    def learn(self, seen: Seen, targets: Float[Tensor, "... c n"], noise: Float[Tensor, "... n"]) -> "Bank":
        """Absorb observations, and let time go on by as many rows."""
        return self.absorb(seen, targets, noise)._aged_in_place(targets.shape[-1])

    def _aged_in_place(self, num_rows: int) -> "Bank":
        """The same with a mean and a covariance that nobody else holds."""
        root, steps = self._scales[3:] if num_rows == 1 else self._aging(num_rows)
        S = self.covariance.mul_(root.unsqueeze(-1)).mul_(root.unsqueeze(-2))
        S.diagonal(dim1=-2, dim2=-1).add_(steps)
        self.mean.mul_(root)
        return self

    def carried(self, other: "Bank") -> "Bank":
        r"""This belief under the kernel and at the inducing points of another.

        A belief is its prior times a site, $\Lambda = S^{-1} - E$, $\lambda = S^{-1} m$ in the state, with $E = 1$ but
        for the level, which has no prior left: it walks at random. The part for the inducing values moves with
        $T = L^{-1} k_\theta(Z, Z') L'^{-\top}$, the rest stays:

        $$
        \Lambda \leftarrow T \Lambda T^\top, \qquad \lambda \leftarrow T (\lambda + \Lambda \eta) ,
        $$

        where $\eta$ makes up in the state for the change of the constant, so that the function stays where it is. As no
        state is wider than its prior, $\Lambda$ is positive, whatever the kernels.
        """
        Z, Z_old = other.inducing_points, self.inducing_points
        K = other.process.prior.covariance(Z_old, Z)
        T = solve_lower(other.process.factor, solve_lower(self.process.factor, K).mT)
        T = torch.block_diag(T, torch.eye(Z.shape[-1] + 1, dtype=T.dtype))
        L, _ = cholesky(self.covariance, name="the covariance of the carried state")
        half = solve_lower(L, torch.eye(L.shape[-1], dtype=T.dtype).expand_as(L))
        site = half.mT @ half - _without_level(L.shape[-1])
        pull = half.mT @ (half @ self.mean.unsqueeze(-1)) + site @ self._shift(other.constant).unsqueeze(-1)
        pull = T @ pull
        values, vectors = symmetric_eigen(T @ site @ T.mT, name="the site of the carried state")
        precision = _without_level(len(T)) + (vectors * values.clamp_min(0.0).unsqueeze(-2)) @ vectors.mT
        L_P, _ = cholesky(precision, name="the precision of the carried state")
        root = solve_lower(L_P, torch.eye(len(T), dtype=T.dtype).expand_as(L_P))
        mean = (root.mT @ (root @ pull)).squeeze(-1)
        return other.with_belief(mean, root.mT @ root)

    def _shift(self, constant: Float[Tensor, " c"]) -> Float[Tensor, "e c k"]:
        """By how much the state moves where another constant is subtracted: the level, or else the inducing values."""
        change = self.constant - constant
        shift = torch.zeros_like(self.mean)
        shift[..., -1] = self.experts.has_level[:, None] * change
        is_function = (self.experts.has_level == 0.0) & (self.experts.amplitudes > 0.0)
        inverse_roots = torch.where(is_function, self.experts.amplitudes, math.inf).rsqrt()
        ones = self.process.inducing_factor.whitening.sum(-1)
        shift[..., : self.num_inducing] = inverse_roots[:, None, None] * change.unsqueeze(-1) * ones
        return shift

    def __getstate__(self) -> dict[str, object]:
        """What copies and pickles hold: not what was derived from the rest."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def with_belief(
        self,
        mean: Float[Tensor, "e c k"],
        covariance: Float[Tensor, "e c k k"],
        process: SparseProcess | None = None,
    ) -> "Bank":
        """Another belief, at other inducing points if they are given; what was derived from the experts is shared."""
        process = self.process if process is None else process
        other = Bank(self.experts, process, self.constant, self.level_noise, mean, covariance)
        if mean.shape == self.mean.shape:
            other.__dict__["_scales"] = self._scales
        return other

    @cached_property
    def _mean_row(self) -> Float[Tensor, "e c 1 k"]:
        return self.mean.unsqueeze(-2)

    @cached_property
    def _scales(self) -> "_Scales":
        e, (m, d) = self.experts, self.inducing_points.shape
        each = torch.stack([e.amplitudes.sqrt(), e.slopes, e.has_level], -1)
        loadings = each.repeat_interleave(torch.tensor([m, d, 1]), -1)
        return _Scales(
            loadings[:, None, :, None],
            torch.ones(1, 1, dtype=loadings.dtype),
            e.amplitudes[:, None, None],
            *self._aging(1),
        )

    def _aging(self, num_rows: int) -> tuple[Float[Tensor, "e 1 k"], Float[Tensor, "e 1 k"]]:
        """What the states are multiplied with while time goes on by some rows, and the variance that they gain."""
        kept = self.experts.remembered(num_rows)[:, None, None].expand(-1, 1, self.mean.shape[-1]).clone()
        kept[..., -1] = 1.0
        steps = 1.0 - kept
        steps[..., -1] = (num_rows * self.level_noise * self.experts.level_steps).unsqueeze(-1)
        return kept.sqrt(), steps


class _Scales(NamedTuple):
    """What of the experts enters into each row, laid out for a state of some size.

    Attributes:
        loadings: What features, inputs and the level are multiplied with.
        level: The one that stands for the level.
        amplitudes: What prior variances are multiplied with.
        root: What states are multiplied with while time goes on by one row.
        steps: The variance that they gain.
    """

    loadings: Float[Tensor, "e 1 k 1"]
    level: Float[Tensor, "1 1"]
    amplitudes: Float[Tensor, "e 1 1"]
    root: Float[Tensor, "e 1 k"]
    steps: Float[Tensor, "e 1 k"]


def _without_level(size: int) -> Float[Tensor, "k k"]:
    """The identity, but for the last entry."""
    return torch.diag(torch.cat([torch.ones(size - 1, dtype=torch.float64), torch.zeros(1, dtype=torch.float64)]))
