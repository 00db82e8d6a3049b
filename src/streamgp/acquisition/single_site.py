"""Beliefs about latent values after outcomes that may be observed, for very many of them at once."""

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.errors import ConvergenceError
from streamgp.likelihoods import AbstractLikelihood
from streamgp.likelihoods.quadrature import gauss_hermite

__all__ = ["single_site_update"]

_NUM_NODES = 16
# The iteration ends when no mean moves by more than this share of its standard deviation; convergence is quadratic, so
# that the last step leaves far less.
_TOLERANCE = 1e-3
_MAX_ITERATIONS = 200
# The share of itself that a standard deviation keeps in any step.
_LEAST_SHARE = 0.2


def single_site_update(
    likelihood: AbstractLikelihood,
    mean: Float[Tensor, "*c 1"],
    variance: Float[Tensor, "*c 1"],
    y: Float[Tensor, "*c o"],
) -> tuple[Float[Tensor, "*c o"], Float[Tensor, "*c o"]]:
    r"""Find the Gaussian beliefs about single latent values after outcomes: those of the rule `"variational"`.

    The belief $\mathcal N(m, s^2)$ after an outcome $y$ maximizes

    $$
    \mathbb E[\log p(y \mid m + s z)] - \frac{(m - m_0)^2 + s^2}{2 v_0} + \log s, \qquad z \sim \mathcal N(0, 1),
    $$

    which is concave in $m$ and $s$ where the likelihood is log-concave. Damped Newton steps find it in a few
    iterations; the fixed-point iteration of `find_sites`, which also works for latent values that depend on each other,
    can take a hundred where a belief is wide and all trials ended the same way.

    Args:
        likelihood: Of classes or successes; its constants broadcast with `y`.
        mean: $m_0$.
        variance: $v_0$, positive.
        y: Outcomes that the belief holds possible; need not be whole.

    Returns:
        The means $m$ and the variances $s^2$.
    """
    m, s = _start(likelihood, mean, variance, y)
    nodes, weights = gauss_hermite(_NUM_NODES, y.dtype, y.device)
    moments = torch.stack([weights, weights * nodes, weights * nodes.square()], dim=-1)
    # With an axis for the nodes at the end, which the constants do not have.
    f_axis, constants = y.unsqueeze(-1), likelihood.with_axis()
    for _ in range(_MAX_ITERATIONS):
        first, second = constants.derivatives(m.unsqueeze(-1) + s.unsqueeze(-1) * nodes, f_axis)
        slope, bend = first @ moments, second @ moments
        g_m, g_s = slope[..., 0] - (m - mean) / variance, slope[..., 1] - s / variance + 1.0 / s
        h_mm, h_ms = 1.0 / variance - bend[..., 0], -bend[..., 1]
        h_ss = 1.0 / variance - bend[..., 2] + s.square().reciprocal()
        determinant = h_mm * h_ss - h_ms.square()
        d_m, d_s = (h_ss * g_m - h_ms * g_s) / determinant, (h_mm * g_s - h_ms * g_m) / determinant
        decrement = (g_m * d_m + g_s * d_s).clamp_min(0.0).sqrt()
        length = torch.where(decrement < 0.5, torch.ones_like(decrement), 1.0 / (1.0 + decrement))
        moved = torch.maximum(d_m.abs(), d_s.abs()) / s
        m, s = m + length * d_m, torch.maximum(s + length * d_s, _LEAST_SHARE * s)
        if not bool((moved > _TOLERANCE).any()):
            return m, s.square()
    raise ConvergenceError(
        f"The beliefs after {int((~(moved <= _TOLERANCE)).sum())} of {moved.numel()} possible outcomes did not "
        f"converge in {_MAX_ITERATIONS} steps. Check the scale of kernel and targets: the largest variance is "
        f"{float(variance.max()):.3g}."
    )


def _start(
    likelihood: AbstractLikelihood, mean: Tensor, variance: Tensor, y: Tensor
) -> tuple[Float[Tensor, "*c o"], Float[Tensor, "*c o"]]:
    """Combine the belief with a Gaussian around the log odds that were observed, half a trial added on each side."""
    trials = likelihood.row_values
    total = torch.ones_like(y) if trials is None else trials.to(y)
    share = (y + 0.5) / (total + 1.0)
    information = total * share * (1.0 - share)
    precision = 1.0 / variance + information
    shift = information * (share.logit() - mean) / precision
    return mean + shift, precision.rsqrt()
