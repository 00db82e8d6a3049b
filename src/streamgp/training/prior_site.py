"""A belief about earlier observations that enters a fit: its Gaussian site, fixed whatever the hyperparameters."""

from dataclasses import dataclass
from typing import NamedTuple, final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.conditioning import SparseGP
from streamgp.errors import ArgumentTypeError, DTypeError, NumericalError, ShapeError, UnsupportedError
from streamgp.gp import Prior, SparseProcess, inducing_variables, read_kernel
from streamgp.linalg import apply, solve_lower, solve_vector, symmetric_eigenvalues
from streamgp.training.parameters import Hyperparameters

__all__ = ["InformedPrior", "PriorSite", "read_prior_site"]

# A site that claims less than no information, as training without closed forms leaves some, has no bound of its own:
# the bound would reward priors under which a direction becomes infinitely wide. Twice the prior's variance is the most.
_LEAST_PRECISION = -0.5


class InformedPrior(NamedTuple):
    r"""The prior of the whitened inducing values times a carried site: $\mathcal N(m_0, S_0)$, and its size.

    Attributes:
        factor: $L_P$ with $S_0^{-1} = L_P L_P^\top$.
        mean: $m_0$.
        log_normalizer: The logarithm of the bound on what prior and site integrate to.
        lost_trace: What the inducing points cannot express of the site; half of it is lost in the bound.
    """

    factor: Float[Tensor, "m m"]
    mean: Float[Tensor, " m"]
    log_normalizer: Float[Tensor, ""]
    lost_trace: Float[Tensor, ""]


@final
@dataclass(frozen=True, eq=False)
class PriorSite:
    r"""A belief about earlier observations, as its prior times a Gaussian site, in double precision.

    With $K' + j I = L' L'^\top$ at the points $Z'$ and $\bar f = L'^{-1} (f(Z') - \mu_{\theta'}(Z'))$, the site is
    $\exp(\bar\lambda^\top \bar f - \frac12 \bar f^\top \bar\Lambda \bar f)$, where $\bar\Lambda = \bar S'^{-1} - I$ and
    $\bar\lambda = \bar S'^{-1} \bar m'$.

    Attributes:
        process: The belief, under the hyperparameters $\theta'$ with which it was formed.
        precision: $\bar\Lambda$; may be singular, or slightly negative.
        pull: $\bar\lambda$.
        is_indefinite: Whether it is negative by more than rounding.
        value_variance: How much the values at $Z'$ differ among each other, those that are known counting most.
    """

    process: SparseProcess
    precision: Float[Tensor, "k k"]
    pull: Float[Tensor, " k"]
    is_indefinite: bool
    value_variance: float

    @property
    def inducing_points(self) -> Float[Tensor, "k d"]:
        """The points $Z'$."""
        return self.process.inducing_points

    @property
    def jitter(self) -> float:
        """The jitter $j$, which stays as it is where the belief moves."""
        return self.process.jitter

    def prior(self, setting: Hyperparameters, factor: Float[Tensor, "m m"]) -> InformedPrior:
        r"""Multiply the site with the prior of a setting $(Z, \theta)$, differentiably.

        With $K_{zz} = L L^\top$, $T = L^{-1} k_\theta(Z, Z') L'^{-\top}$,
        $\bar K = L'^{-1} k_\theta(Z', Z') L'^{-\top}$ and $\bar\delta = L'^{-1} (\mu_\theta(Z') - \mu_{\theta'}(Z'))$,

        $$
        S_0^{-1} = I + T \bar\Lambda T^\top, \qquad
        m_0 = S_0 b, \qquad b = T (\bar\lambda - \bar\Lambda \bar\delta),
        $$
        $$
        \log Z = \tfrac12 b^\top m_0 + \tfrac12 \log \lvert S_0 \rvert
        - \tfrac12 \operatorname{tr} \bar\Lambda (\bar K - T^\top T)
        + \bar\lambda^\top \bar\delta - \tfrac12 \bar\delta^\top \bar\Lambda \bar\delta .
        $$

        The jitter of $Z$ and that of $Z'$ are different noise, even where points coincide, so that all of it is a
        smooth function of $Z$.

        Args:
            setting: Hyperparameters and inducing points.
            factor: $L$.

        Raises:
            NumericalError: If $S_0$ is not a covariance, or too wide a one.
        """
        kernel, Z_old = read_kernel(setting.kernel), self.inducing_points
        L_old, site = self.process.factor, self.precision
        inducing = inducing_variables(setting.inducing_points, kernel)
        T = solve_lower(factor, solve_lower(L_old, inducing.crossed(Z_old)).mT)
        K = solve_lower(L_old, solve_lower(L_old, kernel.matrix(Z_old, Z_old)).mT)
        delta = solve_vector(L_old, setting.mean(Z_old) - self.process.prior.mean(Z_old))
        explained = T @ site @ T.mT
        L_P = self._factorized(explained)
        pull, shifted = self.pull - site @ delta, self.pull - 0.5 * (site @ delta)
        half = solve_vector(L_P, apply(T, pull))
        lost_trace = (site * K).sum() - explained.diagonal().sum()
        log_determinant = 2.0 * L_P.diagonal().log().sum()
        log_normalizer = 0.5 * (half @ half - log_determinant - lost_trace) + shifted @ delta
        return InformedPrior(L_P, solve_vector(L_P, half, is_transposed=True), log_normalizer, lost_trace)

    def _factorized(self, explained: Tensor) -> Tensor:
        eye = torch.eye(len(explained), dtype=explained.dtype, device=explained.device)
        # Not mended by jitter: where the precision is not positive, there is no belief to work with.
        L_P, failed = torch.linalg.cholesky_ex(eye + 0.5 * (explained + explained.mT))
        is_wide = failed > 0
        if self.is_indefinite:
            _, failed = torch.linalg.cholesky_ex(explained.detach() - _LEAST_PRECISION * eye)
            is_wide = is_wide | (failed > 0)
        if bool(is_wide) or not bool(torch.isfinite(L_P.detach().sum())):
            raise NumericalError(_TOO_WIDE)
        return L_P


_TOO_WIDE = (
    "The carried belief is too wide under these hyperparameters: its covariance exceeds twice that of the prior in "
    "some direction. Start from the hyperparameters with which it was formed, or form it by absorb."
)


def read_prior_site(carried: object, *, like: Tensor) -> PriorSite:
    """Check a belief against inputs, and read its site in double precision."""
    if not isinstance(carried, SparseGP):
        raise ArgumentTypeError(
            f"carried must be a SparseGP, a belief about earlier observations, but is a {type(carried).__name__}. "
            "Pass the gp of a result, or what absorb returned."
        )
    Z = carried.inducing_points
    if carried.process.batch_shape:
        raise UnsupportedError(
            f"carried has leading axes {tuple(carried.process.batch_shape)}, but fit trains one model. "
            "Fit one for each."
        )
    if not Z.shape[-2]:
        raise UnsupportedError(
            "carried is a belief about the weights of features, which another kernel would not have. Absorb the new "
            "observations instead, or fit all of them again."
        )
    if Z.shape[-1] != like.shape[-1]:
        raise ShapeError(
            f"carried has inducing points of shape {tuple(Z.shape)}, but X has {like.shape[-1]} columns. "
            "Carry over a belief about the same function."
        )
    if (Z.dtype, Z.device) != (like.dtype, like.device):
        raise DTypeError(
            f"carried is {Z.dtype} on {Z.device}, but X is {like.dtype} on {like.device}. Convert X and y, with "
            "X.to(carried.inducing_points)."
        )
    return _read_site(_in_double_precision(carried.process))


def _read_site(process: SparseProcess) -> PriorSite:
    inverse, failed = torch.linalg.inv_ex(process.whitened_root)
    if bool(failed) or not bool(torch.isfinite(inverse).all()):
        raise NumericalError(
            "The carried belief has no spread in some direction, as a delta distribution has, so nothing can be "
            "learned beside it. Carry over a belief that was formed by absorb or fit."
        )
    eye = torch.eye(len(inverse), dtype=inverse.dtype, device=inverse.device)
    precision = inverse.mT @ inverse - eye
    precision = 0.5 * (precision + precision.mT)
    values = symmetric_eigenvalues(precision, name="the site of the carried belief")
    rounding = len(inverse) * torch.finfo(inverse.dtype).eps * values.abs().max()
    pull = inverse.mT @ (inverse @ process.whitened_mean)
    return PriorSite(process, precision, pull, bool(values.min() < -rounding), _value_variance(process))


def _value_variance(process: SparseProcess) -> float:
    """The variance of the means at the inducing points, each weighted by the share of its prior variance explained."""
    L, R = process.factor, process.whitened_root
    values = process.prior.mean(process.inducing_points) + L @ process.whitened_mean
    weights = (1.0 - (L @ R).square().sum(-1) / L.square().sum(-1)).clamp_min(0.0)
    total = weights.sum().clamp_min(torch.finfo(weights.dtype).tiny)
    mean = (weights * values).sum() / total
    return float((weights * (values - mean).square()).sum() / total)


def _in_double_precision(process: SparseProcess) -> SparseProcess:
    Z = process.inducing_points.detach().double()
    prior = Prior.snapshot(process.prior.kernel, process.prior.mean_function, like=Z)
    mean, root = process.whitened_mean.detach().double(), process.whitened_root.detach().double()
    return SparseProcess(prior, Z, mean, root, process.jitter)
