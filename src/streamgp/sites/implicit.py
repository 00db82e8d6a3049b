"""Gradients of a fixed point."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["attach_fixed_point_gradient"]

# The adjoint contracts as fast as the iteration that found the fixed point.
_MAX_ITERATIONS = 200


def attach_fixed_point_gradient(
    step: Callable[[Tensor], Tensor], solution: Float[Tensor, "..."]
) -> Float[Tensor, "..."]:
    r"""Make a solution of $x = F(x, \theta)$ differentiable in $\theta$.

    By the implicit function theorem $dx = (I - \partial_x F)^{-1} \partial_\theta F \, d\theta$. The transposed system
    is solved by iterating $w \leftarrow g + (\partial_x F)^\top w$, which needs no matrix and no path of the solver.

    Args:
        step: The map $F(\cdot, \theta)$, differentiable in $x$ and in what it closes over.
        solution: A fixed point, without gradient.

    Returns:
        The same values, with gradient.
    """
    detached = solution.detach().requires_grad_(True)
    with torch.enable_grad():
        again = step(detached)
    attached = step(solution.detach())

    def solve_adjoint(gradient: Tensor | None) -> Tensor | None:
        if gradient is None:  # autograd's way to say zero
            return None
        scale = gradient.abs().max()
        w = gradient
        for _ in range(_MAX_ITERATIONS):
            (pulled,) = torch.autograd.grad(again, detached, w, retain_graph=True)
            w_new = gradient + pulled
            if bool((w_new - w).abs().max() <= 10 * torch.finfo(w.dtype).eps * scale):
                return w_new
            w = w_new
        return w

    attached.register_hook(solve_adjoint)
    return attached
