"""Derivatives of a log density that has no closed form for them."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["differentiate_twice"]


def differentiate_twice(
    log_density: Callable[[Tensor], Tensor], f: Float[Tensor, "..."]
) -> tuple[Float[Tensor, "..."], Float[Tensor, "..."]]:
    """Evaluate the first and second derivative of a function of each element.

    Args:
        log_density: A function that may bring in more axes.
        f: Where; gradients flow back to it and to what the function closes over, where they are enabled.
    """
    is_tracked = torch.is_grad_enabled()
    with torch.enable_grad():
        point = (f + torch.zeros_like(log_density(f))).clone()
        point = point if is_tracked and point.requires_grad else point.detach().requires_grad_()
        (first,) = torch.autograd.grad(log_density(point).sum(), point, create_graph=True)
        second = torch.zeros_like(first)
        if first.requires_grad:
            (slope,) = torch.autograd.grad(first.sum(), point, create_graph=is_tracked, allow_unused=True)
            second = second if slope is None else slope
    return (first, second) if is_tracked else (first.detach(), second.detach())
