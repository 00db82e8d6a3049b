"""The expected maximum of lines, in closed form."""

import math

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

__all__ = ["expected_maximum_of_lines"]


def expected_maximum_of_lines(intercepts: Float[Tensor, "*b w"], slopes: Float[Tensor, "*b w"]) -> Float[Tensor, "*b"]:
    r"""Evaluate $\mathbb E[\max_i (a_i + b_i Z)]$ for a standard normal $Z$.

    Only lines of the upper envelope matter. If line $i$ is the highest between $c_i$ and $c_{i+1}$, its part is
    $a_i (\Phi(c_{i+1}) - \Phi(c_i)) + b_i (\varphi(c_i) - \varphi(c_{i+1}))$. Gradients reach intercepts and slopes.

    Args:
        intercepts: $a$.
        slopes: $b$.

    References:
        Frazier, Powell, Dayanik (2009), The knowledge-gradient policy for correlated normal beliefs.
    """
    a, b = torch.broadcast_tensors(intercepts, slopes)
    rows_a, rows_b = a.reshape(-1, a.shape[-1]), b.reshape(-1, b.shape[-1])
    values = [_expected_maximum(one, two) for one, two in zip(rows_a, rows_b, strict=True)]
    return torch.stack(values).reshape(a.shape[:-1]) if values else a.sum(-1)


def _expected_maximum(a: Float[Tensor, " w"], b: Float[Tensor, " w"]) -> Float[Tensor, ""]:
    index = _envelope(a.detach().cpu().numpy(), b.detach().cpu().numpy())
    top_a, top_b = a[index], b[index]
    # Where lines cross, which does not change the value to first order.
    cuts = (-top_a.diff() / top_b.diff()).detach()
    low, high = cuts.new_full((1,), -math.inf), cuts.new_full((1,), math.inf)
    c = torch.cat([low, cuts, high])
    density = torch.exp(-0.5 * c.square()) / math.sqrt(2.0 * math.pi)
    return (top_a * torch.special.ndtr(c).diff() - top_b * density.diff()).sum()


def _envelope(a: np.ndarray, b: np.ndarray) -> Int[Tensor, " k"]:
    """Indices of the lines that are the highest somewhere, by slope."""
    order = np.lexsort((a, b))
    # Of lines with the same slope, the highest is the last.
    order = order[np.append(np.diff(b[order]) > 0, True)]
    kept: list[int] = []
    starts: list[float] = []
    for i in order.tolist():
        start = -math.inf
        while kept:
            start = (a[kept[-1]] - a[i]) / (b[i] - b[kept[-1]])
            if start > starts[-1]:
                break
            kept.pop()
            starts.pop()
            start = -math.inf
        kept.append(i)
        starts.append(start)
    return torch.tensor(kept)
