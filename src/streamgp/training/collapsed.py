"""The collapsed bound of Gaussian observations, in which the optimal belief has been put in closed form."""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from streamgp.gp import read_kernel
from streamgp.linalg import cholesky, solve_lower, solve_lower_transpose, solve_vector
from streamgp.training.features import Moments, Observed, observed_features, prior_moments
from streamgp.training.parameters import Hyperparameters

__all__ = [
    "Adjoint",
    "NaturalBelief",
    "Sums",
    "collapse",
    "collapsed_bound",
    "differentiate",
    "exact_evidence",
    "gaussian_bound",
    "sum_batches",
]


class NaturalBelief(NamedTuple):
    r"""A whitened belief by its natural parameters.

    Attributes:
        precision: $\bar S^{-1} = I + \bar\Lambda$.
        pull: $\bar S^{-1} \bar m$.
    """

    precision: Float[Tensor, "*c m m"]
    pull: Float[Tensor, "*c m"]

    @classmethod
    def of_sites(
        cls, phi: Float[Tensor, "*c m n"], precision: Float[Tensor, "*c n"], pull: Float[Tensor, "*c n"]
    ) -> "NaturalBelief":
        r"""The prior times sites $\exp(\lambda_i v_i - \frac12 \tau_i v_i^2)$ of $v = \phi^\top w$."""
        eye = torch.eye(phi.shape[-2], dtype=phi.dtype, device=phi.device)
        return cls(eye + (phi * precision.unsqueeze(-2)) @ phi.mT, (phi @ pull.unsqueeze(-1)).squeeze(-1))

    def moments(self) -> tuple[Float[Tensor, "*c m"], Float[Tensor, "*c m m"], Float[Tensor, ""]]:
        r"""The mean $\bar m$, a root $R$ with $\bar S = R R^\top$, and the divergence from the prior."""
        L, _ = cholesky(self.precision, name="the precision of the belief")
        eye = torch.eye(L.shape[-1], dtype=L.dtype, device=L.device)
        mean = solve_vector(L, solve_vector(L, self.pull), is_transposed=True)
        root = solve_lower(L, eye.expand(L.shape)).mT
        log_determinant = -2.0 * L.diagonal(dim1=-2, dim2=-1).log().sum()
        return mean, root, 0.5 * (root.square().sum() + mean.square().sum() - mean.numel() - log_determinant)


class Sums(NamedTuple):
    r"""Sums over Gaussian observations that the bound consists of, wherever the observations are.

    With features $\phi = L^{-1} K_{zx}$, $K_{zz} = L L^\top$, residuals $r = y - \mu$ and weights
    $W = (\beta \Sigma)^{-1}$:

    Attributes:
        gram: $\phi W \phi^\top$.
        pull: $\phi W r$; a row for each of several targets.
        squares: $r^\top W r$, of all targets.
        variance: $\operatorname{tr} W K_{xx}$.
        log_noise: $\log \lvert 2 \pi \Sigma \rvert$.
        num_data: $n$.
    """

    gram: Float[Tensor, "m m"]
    pull: Float[Tensor, "*c m"]
    squares: Float[Tensor, ""]
    variance: Float[Tensor, ""]
    log_noise: Float[Tensor, ""]
    num_data: int

    @classmethod
    def of(
        cls,
        phi: Float[Tensor, "m n"],
        variance: Float[Tensor, " n"],
        residual: Float[Tensor, "*c n"],
        noise: Float[Tensor, "..."],
        beta: float = 1.0,
    ) -> "Sums":
        """Sum over observations with given features, prior variances and residuals."""
        scale = (beta * noise).rsqrt()
        return cls._of_scaled(phi * scale, variance, residual * scale, noise, scale)

    @classmethod
    def _of_scaled(cls, G: Tensor, variance: Tensor, r: Tensor, noise: Tensor, scale: Tensor) -> "Sums":
        n = G.shape[-1]
        constant = torch.log(2.0 * math.pi * noise).expand(n).sum()
        return cls(G @ G.mT, r @ G.mT, r.square().sum(), (variance * scale.square()).sum(), constant, n)

    def plus(self, other: "Sums") -> "Sums":
        """The sums over both."""
        return Sums(
            self.gram + other.gram,
            self.pull + other.pull,
            self.squares + other.squares,
            self.variance + other.variance,
            self.log_noise + other.log_noise,
            self.num_data + other.num_data,
        )

    def with_noise(self, factor: float) -> "Sums":
        """The sums under noise variances that are multiplied by a factor."""
        constant = self.log_noise + self.num_data * math.log(factor)
        gram, pull = self.gram / factor, self.pull / factor
        return Sums(gram, pull, self.squares / factor, self.variance / factor, constant, self.num_data)

    @property
    def slack(self) -> Float[Tensor, ""]:
        r"""Variance that the inducing points leave unexplained, $\operatorname{tr} W (K_{xx} - Q_{xx})$."""
        return self.variance - self.gram.diagonal().sum()


class Optimum(NamedTuple):
    r"""The optimal belief of sums.

    Attributes:
        bound: The collapsed bound, that of all targets.
        precision: $A = I + \phi W \phi^\top$.
        factor: $L_A$ with $A = L_A L_A^\top$.
        mean: $a = A^{-1} \phi W r$, a row for each target.
    """

    bound: Float[Tensor, ""]
    precision: Float[Tensor, "m m"]
    factor: Float[Tensor, "m m"]
    mean: Float[Tensor, "*c m"]


def collapse(sums: Sums, beta: float = 1.0) -> Optimum:
    r"""Put the optimal belief in closed form; differentiable.

    With $c$ targets $\mathcal L = -\frac12 (\beta T + c \log \lvert 2 \pi \Sigma \rvert)$,

    $$
    T = \operatorname{tr} r^\top W r - \operatorname{tr} a^\top \phi W r
    + c \left( \log \lvert A \rvert + \operatorname{tr} W (K_{xx} - Q_{xx}) \right) .
    $$
    """
    eye = torch.eye(len(sums.gram), dtype=sums.gram.dtype, device=sums.gram.device)
    A = eye + sums.gram
    L, _ = cholesky(A, name="the information of the observations")
    pull = sums.pull.reshape(-1, len(A))
    a = solve_lower_transpose(L, solve_lower(L, pull.mT)).mT
    c = len(pull)
    T = sums.squares - (pull * a).sum() + c * (2.0 * L.diagonal().log().sum() + sums.slack)
    return Optimum(-0.5 * (beta * T + c * sums.log_noise), A, L, a.reshape(sums.pull.shape))


class Adjoint(NamedTuple):
    r"""Derivatives of the bound in its sums, as those of moments are made of them.

    Attributes:
        by_inducing: In $K_{zz}$.
        left: $c L^{-\top} (A^{-1} - I)$.
        columns: $L^{-\top} a^\top$.
        by_log_noise: In the logarithm of a noise variance that all observations share.
    """

    by_inducing: Float[Tensor, "m m"]
    left: Float[Tensor, "m m"]
    columns: Float[Tensor, "m c"]
    by_log_noise: Float[Tensor, ""]


def differentiate(L: Float[Tensor, "m m"], sums: Sums, optimum: Optimum, beta: float = 1.0) -> Adjoint:
    r"""Differentiate the bound in its sums, at $K_{zz} = L L^\top$.

    $$
    \partial_{K_{zz}} T = L^{-\top} (c (A - 2 I + A^{-1}) + a^\top a) L^{-1} , \qquad
    \partial_{\log \sigma^2} T = - c \operatorname{tr} (A^{-1} - I) (A - I) + \operatorname{tr} a a^\top
    - \operatorname{tr} (r - \phi^\top a)^\top W r - c \operatorname{tr} W K_{xx} .
    $$
    """
    A, a = optimum.precision, optimum.mean.reshape(-1, len(optimum.precision))
    c, eye = len(a), torch.eye(len(A), dtype=A.dtype, device=A.device)
    A_inverse = torch.cholesky_inverse(optimum.factor)
    M = A_inverse - eye
    half = solve_lower_transpose(L, torch.addmm(A - 2.0 * eye + A_inverse, a.mT, a, beta=c))
    error = sums.squares - (sums.pull * optimum.mean).sum()
    by_log_noise = a.square().sum() - c * (M * sums.gram).sum() - error - c * sums.variance
    return Adjoint(
        -0.5 * beta * solve_lower_transpose(L, half.mT),
        c * solve_lower_transpose(L, M),
        solve_lower_transpose(L, a.mT),
        -0.5 * (beta * by_log_noise + c * sums.num_data),
    )


def sum_batches(setting: Hyperparameters, batches: Iterable[Observed], *, beta: float = 1.0) -> Sums:
    """Sum over all batches of Gaussian observations at a setting, in the memory of one, without gradient."""
    noise, sums = setting.likelihood.gaussian_noise_variance, None
    assert noise is not None
    with torch.no_grad():
        for data in batches:
            features = observed_features(setting, data)
            residual = data.targets - features.mean
            part = Sums.of(features.phi, features.variance, residual, noise.to(residual), beta)
            sums = part if sums is None else sums.plus(part)
    assert sums is not None
    return sums


def collapsed_bound(
    setting: Hyperparameters, data: Observed, noise_variance: Float[Tensor, "..."], *, beta: float = 1.0
) -> Float[Tensor, ""]:
    """Evaluate the collapsed bound as a function of kernel, mean, inducing points and noise.

    With a carried belief it is the streaming bound, in which that belief takes the place of the prior.

    References:
        Bui, Nguyen, Turner (2017), Streaming sparse Gaussian process approximations.
    """
    if data.carried is None:
        return gaussian_bound(prior_moments(setting, data), data.targets, noise_variance, beta=beta)
    features = observed_features(setting, data)
    phi = features.phi
    eye = torch.eye(len(phi), dtype=phi.dtype, device=phi.device)
    moments = Moments(eye, phi, features.variance, features.mean)
    return gaussian_bound(moments, data.targets, noise_variance, beta=beta) + features.log_normalizer


def gaussian_bound(
    moments: Moments, targets: Float[Tensor, "*c n"], noise_variance: Float[Tensor, "..."], *, beta: float = 1.0
) -> Float[Tensor, ""]:
    r"""Evaluate Titsias' bound on the log marginal likelihood of Gaussian observations.

    With $Q = K_{xz} K_{zz}^{-1} K_{zx}$ and noise $\Sigma$,

    $$
    \mathcal L = \log \mathcal N(y \mid \mu, Q + \Sigma) - \tfrac12 \operatorname{tr} \Sigma^{-1} (K_{xx} - Q) .
    $$

    A weight $\beta$ on the divergence is the same as observations of weight $1 / \beta$, that is of noise
    $\beta \Sigma$ but for a constant: $\mathcal L_\beta = \beta (\mathcal L(\beta \Sigma) + \tfrac12 \log
    \lvert 2 \pi \beta \Sigma \rvert - \tfrac1{2 \beta} \log \lvert 2 \pi \Sigma \rvert)$.

    Costs $3 n m^2$ operations, and $2 n m^2$ more for the gradient.

    Args:
        moments: Prior moments of inducing values and observed values.
        targets: $y$; with a leading axis, several that share all of the rest: their bounds are added.
        noise_variance: The diagonal of $\Sigma$, or one number.
        beta: $\beta$, positive.

    References:
        Titsias (2009), Variational learning of inducing variables in sparse Gaussian processes.
    """
    fused: Any = _FusedBound  # torch leaves `apply` untyped
    noise = noise_variance.to(targets)
    residual = targets - moments.mean
    return fused.apply(moments.inducing, moments.cross, moments.variance, residual, noise, beta)


class _FusedBound(torch.autograd.Function):
    r"""The bound with its gradient by hand, for observations that are all here.

    With $G = \phi W^{1/2}$, residuals $r$ in units of $W^{-1/2}$ and $w = r - a G$, the derivatives of $T$ (`collapse`)
    are $\partial_G T = 2 (c (A^{-1} - I) G - a^\top w)$ and $\partial_r T = 2 w$.
    """

    @staticmethod
    def forward(
        ctx: Any, Kzz: Tensor, Kzx: Tensor, variance: Tensor, residual: Tensor, noise: Tensor, beta: float
    ) -> Tensor:
        scale = (beta * noise).rsqrt()
        L, _ = cholesky(Kzz, name="the kernel matrix of the inducing points")
        G = solve_lower(L, Kzx).mul_(scale)
        r = (residual * scale).reshape(-1, residual.shape[-1])
        sums = Sums._of_scaled(G, variance, r, noise, scale)
        optimum = collapse(sums, beta)
        ctx.save_for_backward(L, G, r, scale, variance, noise)
        ctx.sums, ctx.optimum, ctx.beta, ctx.shape = sums, optimum, beta, residual.shape
        return optimum.bound

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        L, G, r, scale, variance, noise = ctx.saved_tensors
        c, a = len(r), ctx.optimum.mean
        by = differentiate(L, ctx.sums, ctx.optimum, ctx.beta)
        w, t = r - a @ G, -0.5 * ctx.beta * g
        by_cross = (by.left @ G).addmm_(by.columns, w, alpha=-1.0).mul_(2.0 * t * scale)
        by_noise = None
        if ctx.needs_input_grad[4] and noise.dim() == 0:
            by_noise = g * by.by_log_noise / noise
        elif ctx.needs_input_grad[4]:
            # Through the scale, s ds = -1/2 d(noise) / noise, and G is L^-1 K s.
            change = (by_cross * (L @ G)).sum(0) / scale + 2.0 * t * ((w * r).sum(0) + c * variance * scale.square())
            by_noise = -0.5 * (change + g * c) / noise
        by_residual = (2.0 * t * scale * w).reshape(ctx.shape)
        return g * by.by_inducing, by_cross, t * c * scale.square().expand_as(variance), by_residual, by_noise, None


def exact_evidence(setting: Hyperparameters, data: Observed) -> Float[Tensor, ""]:
    r"""Evaluate $\log \mathcal N(y \mid \mu, K_{xx} + \Sigma)$, the bound with all inputs as inducing points.

    Costs $n^3$ operations with the gradient.
    """
    noise, residual = setting.likelihood.gaussian_noise_variance, data.targets - setting.mean(data.value_inputs)
    assert noise is not None
    fused: Any = _Evidence
    return fused.apply(
        read_kernel(setting.kernel).matrix(data.value_inputs, data.value_inputs), residual, noise.to(residual)
    )


class _Evidence(torch.autograd.Function):
    r"""The evidence with its gradient, $\partial_K = \frac12 (\alpha \alpha^\top - (K + \Sigma)^{-1})$."""

    @staticmethod
    def forward(ctx: Any, K: Tensor, residual: Tensor, noise: Tensor) -> Tensor:
        A = K.clone()
        A.diagonal().add_(noise)
        L, _ = cholesky(A, name="the covariance of the observations")
        half = solve_vector(L, residual)
        ctx.save_for_backward(L, solve_vector(L, half, is_transposed=True), noise)
        return -0.5 * (half @ half + len(half) * math.log(2.0 * math.pi)) - L.diagonal().log().sum()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        L, alpha, noise = ctx.saved_tensors
        by_K = torch.cholesky_inverse(L).addr_(alpha, alpha, beta=-1.0).mul_(0.5 * g)
        by_noise = by_K.diagonal()
        return by_K, -g * alpha, by_noise.clone() if noise.dim() else by_noise.sum()
