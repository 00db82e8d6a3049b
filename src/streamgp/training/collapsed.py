"""The collapsed bound of Gaussian observations, in which the optimal belief has been put in closed form."""

import math
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from streamgp.linalg import cholesky, solve_lower, solve_lower_transpose
from streamgp.training.features import Moments, Observed, observed_features, prior_moments
from streamgp.training.parameters import Hyperparameters

__all__ = ["collapsed_bound", "gaussian_bound", "solve_both"]


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
    moments = Moments(eye, phi, features.slack + phi.square().sum(-2), features.mean)
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
    r"""The bound with its gradient by hand.

    With $K_{zz} = L L^\top$, $G = L^{-1} K_{zx} (\beta \Sigma)^{-1/2}$, $r = (\beta \Sigma)^{-1/2} (y - \mu)$,
    $A = I + G G^\top$, $a = A^{-1} G r$ and $w = r - G^\top a$, the bound is
    $-\frac12 (\beta T + \log \lvert 2 \pi \Sigma \rvert)$ with

    $$
    T = r^\top w + \log \lvert A \rvert + \operatorname{tr} (\beta \Sigma)^{-1} K_{xx} - \lVert G \rVert^2 ,
    $$
    $$
    \partial_G T = 2 ((A^{-1} - I) G - a w^\top), \qquad
    \partial_{K_{zz}} T = L^{-\top} (A - 2 I + A^{-1} + a a^\top) L^{-1} , \qquad \partial_r T = 2 w .
    $$

    For several $r$, $a$ and $w$ have a row for each, products with them are sums over rows, and all other terms count
    as often.
    """

    @staticmethod
    def forward(
        ctx: Any, Kzz: Tensor, Kzx: Tensor, variance: Tensor, residual: Tensor, noise: Tensor, beta: float
    ) -> Tensor:
        scale = (beta * noise).rsqrt()
        L, _ = cholesky(Kzz, name="the kernel matrix of the inducing points")
        G = solve_lower(L, Kzx).mul_(scale)
        r = (residual * scale).reshape(-1, residual.shape[-1])
        eye = torch.eye(len(G), dtype=G.dtype, device=G.device)
        A = torch.addmm(eye, G, G.mT)
        L_A, _ = cholesky(A, name="the information of the observations")
        a = solve_lower_transpose(L_A, solve_lower(L_A, G @ r.mT)).mT
        w = r - a @ G
        ctx.save_for_backward(L, G, A, L_A, a, w, r, scale, variance, noise)
        ctx.beta, ctx.shape = beta, residual.shape
        # What the inducing points explain of the prior variances, |G|^2, is on the diagonal of A.
        slack = (variance * scale.square()).sum() - (A.diagonal().sum() - len(A))
        c, n = r.shape
        T = (r * w).sum() + c * (2.0 * L_A.diagonal().log().sum() + slack)
        constant = c * torch.log(2.0 * math.pi * noise).expand(n).sum()
        return -0.5 * (beta * T + constant)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        L, G, A, L_A, a, w, r, scale, variance, noise = ctx.saved_tensors
        t = -0.5 * ctx.beta * g
        eye = torch.eye(len(A), dtype=A.dtype, device=A.device)
        A_inverse = torch.cholesky_inverse(L_A)
        M = A_inverse - eye
        c, n = r.shape
        grad_Kzz = solve_both(L, torch.addmm(A - 2.0 * eye + A_inverse, a.mT, a, beta=c)) * t
        left, columns = solve_lower_transpose(L, M), solve_lower_transpose(L, a.mT)
        grad_Kzx = (left @ G).addmm_(columns, w, beta=c, alpha=-1.0).mul_(2.0 * t * scale)
        grad_noise = None
        if ctx.needs_input_grad[4]:
            # Through the scale, s ds = -1/2 d(noise) / noise: one sum for one noise, a product for each otherwise.
            others = 2.0 * ((w * r).sum(0) + c * variance * scale.square())
            if noise.dim() == 0:
                change = 2.0 * (c * (M * (A - eye)).sum() - a.square().sum()) + others.sum()
                grad_noise = -0.5 * (t * change + g * (c * n)) / noise
            else:
                change = 2.0 * (G * (c * (M @ G) - a.mT @ w)).sum(0) + others
                grad_noise = -0.5 * (t * change + g * c) / noise
        grad_residual = (2.0 * t * scale * w).reshape(ctx.shape)
        return grad_Kzz, grad_Kzx, t * c * scale.square().expand_as(variance), grad_residual, grad_noise, None


def solve_both(L: Tensor, B: Tensor) -> Tensor:
    r"""Evaluate $L^{-\top} B L^{-1}$ for symmetric $B$."""
    half = solve_lower_transpose(L, B)
    return solve_lower_transpose(L, half.mT)
