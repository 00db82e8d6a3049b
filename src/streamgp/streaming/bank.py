"""Beliefs of several experts about the same function, learned side by side as a batch."""

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import NamedTuple, final

import numpy as np
import torch
from gpytorch.kernels import Kernel
from gpytorch.means import ZeroMean
from jaxtyping import Float
from torch import Tensor

from streamgp.gp import Prior, SparseProcess
from streamgp.linalg import cholesky, solve_lower, solve_vector
from streamgp.processes import sent_by_value
from streamgp.streaming.aging import Scales
from streamgp.streaming.experts import Experts
from streamgp.streaming.features import KernelColumn, RowFeatures

__all__ = ["Bank", "Seen"]

# Of the prior variance of the inducing values, on the diagonal of their covariance.
_JITTER = 1e-8
# Most rows of which what was seen is kept.
_MOST_KEPT = 16
# Numbers of the states of all inputs that are seen at once, 8 MB of them.
_PART_NUMBERS = 1_000_000
# Inducing points are exchanged by steps of rank one, whose rounding adds up; after so many they are factorized anew.
_MOST_EXCHANGED = 500
_ONE = np.ones(1)


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

    weights: Float[np.ndarray, "e 1 k n"]
    features: Float[np.ndarray, "m n"]
    prior_variance: Float[np.ndarray, " n"]
    slack: Float[np.ndarray, " n"]
    mean: Float[np.ndarray, "e c n"]
    spread: Float[np.ndarray, "e c k n"]
    known: Float[np.ndarray, "e c n"]
    variance: Float[np.ndarray, "e c n"]

    @property
    def covariance(self) -> Float[np.ndarray, "e c n n"]:
        """Covariances of the latent values as the inducing points know them."""
        return self.weights.swapaxes(-1, -2) @ self.spread


@sent_by_value
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
    $h$, amplitude $a$, slope $s$ and steps of the level. Learning a row costs $O(m^2)$ for each, and so does exchanging
    an inducing point: whitened values are $\bar u = W u$ for any $W$ with $W^\top W = K^{-1}$, the one that is next.

    Attributes:
        experts: What they expect.
        process: Kernel and inducing points; its belief is the prior.
        constant: $b$, for each output.
        level_noise: The noise variance with which the steps of the level are compared.
        mean: Means of the states.
        covariance: Their covariances.
        basis: The matrix $W$; None for the inverse of the Cholesky factor of $K$.
        num_exchanged: How many inducing points were exchanged since it was that.

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
    basis: Float[Tensor, "m m"] | None = None
    num_exchanged: int = 0

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

    @cached_property
    def whitening(self) -> Float[Tensor, "m m"]:
        """The matrix $W$ that whitens inducing values."""
        return self.process.inducing_factor.whitening if self.basis is None else self.basis

    @cached_property
    def features(self) -> RowFeatures:
        """RowFeatures of single inputs."""
        process = self.process
        return RowFeatures(
            process.inducing_points.numpy(), self.whitening.numpy(), KernelColumn(process.prior), process.jitter
        )

    def see(self, X: Float[np.ndarray, "n d"]) -> Seen:
        """Predict latent values; those of the inputs that were seen last are kept, as they are likely learned next."""
        if len(X) > _MOST_KEPT:
            return self._see_many(X)
        last, key = self.__dict__.get("_last"), X.tobytes()
        if last is not None and last[0] == key:
            return last[1]
        seen = self._see_one(X) if len(X) == 1 else self._see_many(X)
        self.__dict__["_last"] = key, seen
        return seen

    @property
    def most_seen(self) -> int:
        """Inputs that can be seen at once in little memory."""
        return max(_MOST_KEPT, _PART_NUMBERS // self.mean.numel())

    def moments(self, X: Float[np.ndarray, "n d"]) -> tuple[Float[np.ndarray, "e c n"], Float[np.ndarray, "e c n"]]:
        """Predict means and variances of latent values alone, of many inputs part by part."""
        mean, variance = (np.empty((*self.mean.shape[:2], len(X))) for _ in range(2))
        for start in range(0, len(X), self.most_seen):
            part = slice(start, start + self.most_seen)
            seen = self.see(X[part])
            mean[..., part], variance[..., part] = seen.mean, seen.variance
        return mean, variance

    def _see_many(self, X: Float[np.ndarray, "n d"]) -> Seen:
        """In torch, whose matrix products of many inputs take less time."""
        process, inputs = self.process, torch.from_numpy(X)
        features = self.whitening @ process.prior.covariance(process.inducing_points, inputs)
        prior = process.prior.variance(inputs)
        slack = (prior - features.square().sum(-2)).clamp_min_(0.0)
        loadings, level = torch.from_numpy(self._scales.loadings), torch.ones(1, len(X), dtype=inputs.dtype)
        H = loadings * torch.cat([features, inputs.mT, level])
        spread = self.covariance @ H
        mean = (self.mean.unsqueeze(-2) @ H).squeeze(-2).add_(self.constant.unsqueeze(-1))
        known = (H * spread).sum(-2).clamp_min_(0.0)
        variance = torch.addcmul(known, torch.from_numpy(self._scales.amplitudes), slack)
        return Seen(*(each.numpy() for each in (H, features, prior, slack, mean, spread, known, variance)))

    def _see_one(self, x: Float[np.ndarray, "1 d"]) -> Seen:
        """The same for a single input, for which torch takes several times as long."""
        phi, prior = self.features.at(x)
        slack = max(prior - float(phi @ phi), 0.0)
        scales = self._scales
        H = scales.loadings * np.concatenate([phi, x[0], _ONE])[:, None]
        spread = self.covariance.numpy() @ H
        h = H.swapaxes(-1, -2)
        mean = (h @ self.mean.numpy()[..., None])[..., 0] + self.constant.numpy()[:, None]
        known = (h @ spread)[..., 0]
        np.maximum(known, 0.0, out=known)
        variance = known + slack * scales.amplitudes
        return Seen(H, phi[:, None], np.array([prior]), np.array([slack]), mean, spread, known, variance)

    def joint_covariance(self, X: Float[np.ndarray, "n d"], seen: Seen) -> Float[Tensor, "e c n n"]:
        """The covariance of latent values, slack included."""
        inputs, features = torch.from_numpy(X), torch.from_numpy(seen.features)
        slack = self.process.prior.covariance(inputs, inputs) - features.mT @ features
        amplitudes = self.experts.amplitudes[:, None, None, None]
        return torch.from_numpy(seen.covariance) + amplitudes * slack

    def absorb(self, seen: Seen, targets: Float[np.ndarray, "... c n"], noise: Float[np.ndarray, "... n"]) -> "Bank":
        """Learn Gaussian observations of values that were seen; time does not go on.

        Args:
            seen: What is believed of them, by this bank.
            targets: What was observed, the same for all experts or for each.
            noise: Variance of the noise.
        """
        if targets.shape[-1] == 1:
            return self._absorb_one(seen, targets, noise)
        W, error = torch.from_numpy(seen.spread), torch.from_numpy(targets - seen.mean)
        A = torch.from_numpy(seen.covariance) + torch.diag_embed(torch.from_numpy(noise).expand_as(error))
        L, _ = cholesky(A, name="the covariance of the observations")
        G = solve_lower(L, W.mT)
        mean = self.mean + (G.mT @ solve_vector(L, error).unsqueeze(-1)).squeeze(-1)
        each = G.flatten(0, 1)
        covariance = torch.baddbmm(self.covariance.flatten(0, 1), each.mT, each, alpha=-1.0)  # in one pass over memory
        return self.with_belief(mean, covariance.view_as(self.covariance))

    def _absorb_one(
        self, seen: Seen, targets: Float[np.ndarray, "... c 1"], noise: Float[np.ndarray, "... 1"]
    ) -> "Bank":
        """The same for a single observation: a step of rank one."""
        W = seen.spread[..., 0]
        gain = W / (seen.known + noise)
        mean = self.mean.numpy() + gain * (targets - seen.mean)
        step = np.einsum("...i,...j->...ij", gain, W)  # takes less time than a product of a column and a row
        np.subtract(self.covariance.numpy(), step, out=step)
        return self.with_belief(torch.from_numpy(mean), torch.from_numpy(step))

    def age(self, num_rows: int) -> "Bank":
        """Let time go on by some rows."""
        return self.with_belief(self.mean.clone(), self.covariance.clone())._aged_in_place(num_rows)

    def learn(self, seen: Seen, targets: Float[np.ndarray, "... c n"], noise: Float[np.ndarray, "... n"]) -> "Bank":
        """Absorb observations, and let time go on by as many rows."""
        return self.absorb(seen, targets, noise)._aged_in_place(targets.shape[-1])

    def _aged_in_place(self, num_rows: int) -> "Bank":
        """The same with a mean and a covariance that nobody else holds."""
        aging = self._scales.over(num_rows)
        mean, S = self.mean.numpy(), self.covariance.numpy()
        mean *= aging.root
        for first, last in aging.forgetting:
            S[first:last] *= aging.products[first:last]
        k = S.shape[-1]
        S.reshape(*S.shape[:2], k * k)[..., :: k + 1] += aging.steps
        return self

    def joined(self, x: Float[np.ndarray, "1 d"]) -> "Bank":
        """Add an inducing point; the belief about it is what the others say, so nothing is lost."""
        m, mean, S = self.num_inducing, self.mean.numpy(), self.covariance.numpy()
        mean = np.insert(mean, m, 0.0, -1)
        S = np.insert(np.insert(S, m, 0.0, -1), m, 0.0, -2)
        S[..., m, m] = 1.0
        return self._at(self.features.joined(x), mean, S, self.num_exchanged)

    def exchanged(self, x: Float[np.ndarray, "1 d"], index: int) -> "Bank":
        """Replace an inducing point, in O(m²) for each expert."""
        features, exchange = self.features.exchanged(x, index)
        bank = self._at(features, *exchange.moved(self.mean.numpy(), self.covariance.numpy()), self.num_exchanged + 1)
        return bank if bank.num_exchanged < _MOST_EXCHANGED else bank.factorized()

    def _at(self, features: RowFeatures, mean: np.ndarray, covariance: np.ndarray, num_exchanged: int) -> "Bank":
        """A belief at other inducing points."""
        process = SparseProcess.from_prior(
            self.process.prior, torch.from_numpy(features.points), jitter=self.process.jitter
        )
        bank = Bank(
            self.experts,
            process,
            self.constant,
            self.level_noise,
            torch.from_numpy(mean),
            torch.from_numpy(covariance),
            torch.from_numpy(features.whitening),
            num_exchanged,
        )
        bank.__dict__["features"] = features
        if mean.shape == self.mean.shape:
            bank.__dict__["_scales"] = self._scales
        return bank

    def worths(self, expert: int) -> Float[np.ndarray, " m"]:
        r"""What an expert's rows would lose without each inducing point, in units of the noise: averaged over outputs.

        Without it the prior variance of a row grows by $w_i^2 / (K^{-1})_{ii}$, with $w = K^{-1} k(Z, x)$. The sum over
        rows is $\Lambda_{ii} / (K^{-1})_{ii}$, where $\Lambda$ is the precision that rows add to the belief about the
        inducing values; so the precision of what the others leave of a point is one more than that.
        """
        m = self.num_inducing
        L, _ = cholesky(self.covariance[expert].mean(0), name="the covariance of the belief")
        directions = torch.zeros(len(L), m, dtype=L.dtype)
        directions[:m] = self.whitening * torch.from_numpy(self.features.leave_one_out).sqrt()
        return (solve_lower(L, directions).square().sum(-2) - 1.0).numpy()

    def factorized(self) -> "Bank":
        """The same belief about values that are whitened by the Cholesky factor."""
        if self.basis is None:
            return self
        W = self.process.inducing_factor.whitening
        T = torch.linalg.solve(self.whitening.mT, W.mT).mT
        T = torch.block_diag(T, torch.eye(self.mean.shape[-1] - len(T), dtype=T.dtype))
        return replace(self, mean=self.mean @ T.mT, covariance=T @ self.covariance @ T.mT, basis=None, num_exchanged=0)

    def __getstate__(self) -> dict[str, object]:
        """What copies and pickles hold: not what was derived from the rest."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def with_belief(self, mean: Float[Tensor, "e c k"], covariance: Float[Tensor, "e c k k"]) -> "Bank":
        """Another belief; what was derived from experts and inducing points is shared."""
        other = Bank(
            self.experts,
            self.process,
            self.constant,
            self.level_noise,
            mean,
            covariance,
            self.basis,
            self.num_exchanged,
        )
        other.__dict__["features"] = self.features
        other.__dict__["_scales"] = self._scales
        return other

    @cached_property
    def _scales(self) -> Scales:
        return Scales.of(self.experts, *self.inducing_points.shape, level_noise=self.level_noise)
