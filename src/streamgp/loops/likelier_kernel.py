"""Which kernel an outcome has by default: the likelier of two, one of which may be a sum over inputs."""

import math
from collections.abc import Callable
from typing import Any

import torch
from gpytorch.kernels import Kernel
from jaxtyping import Float
from torch import Tensor

from streamgp.gp.interactions import InteractionKernel
from streamgp.gp.named_kernels import NAMED_KERNELS
from streamgp.loops.evidence import CLEARLY
from streamgp.training import FitResult

__all__ = ["fit_likelier_kernel", "is_comparison_due", "ripple_share"]

# Kernels are compared with each tenth more evaluations, which is with each new one at first; beyond so many, only where
# hyperparameters are searched from the start.
_GROWTH, _MOST_COMPARED = 0.1, 200
# Dimensions up to which kernels are compared: beyond, it was not measured, and a fit takes long.
_MOST_DIMS = 20


# A fit to given rows, by the keywords `before`, the earlier fit to start from or None, and `kernel` where that is None.
KernelFitter = Callable[..., FitResult]


def fit_likelier_kernel(
    fit: KernelFitter,
    inputs: Float[Tensor, "*n d"],
    before: FitResult | None,
    other: FitResult | None,
    *,
    is_compared: bool,
    is_noisy: bool,
) -> tuple[FitResult, FitResult | None]:
    r"""Fit the default kernels of a standardized outcome, and take the one under which outcomes are likelier.

    The first is RBF: smooth, of all inputs together. The second may in part, or altogether, be a sum of functions of
    single inputs and of pairs, with ripples. Where outcomes are such sums a few dozen of them tell where the best value
    of each input is, even if it was never tried together with the best of the others; where they are not, the second
    is likelier by chance at most, and where there is noise it has to be clearly likelier. Both have unit variance: with
    few, noisy outcomes, a scale to be learned is often taken for noise.

    Args:
        fit: To the rows.
        inputs: Of the model, in the unit cube.
        before: The last fit; None to search from the start.
        other: The last fit with the other kernel; None where there is none.
        is_compared: Whether to fit both; if not, the kernel stays as it is, RBF at first.
        is_noisy: Whether there is noise, or may be.

    Returns:
        The fit that is taken, and the latest with the other kernel; None where there is none.
    """
    if before is not None and (other is None or not is_compared):
        return fit(before=before), other
    if before is not None:
        fits = [fit(before=each) for each in (before, other)]
    else:
        names = ("rbf", "interactions") if is_compared and 1 < inputs.shape[-1] <= _MOST_DIMS else ("rbf",)
        fits = [fit(before=None, kernel=_unit_kernel(name, inputs)) for name in names]
    margin = CLEARLY if is_noisy else 0.0
    chosen, *rest = sorted(fits, key=lambda each: margin * _may_be_sum(each) - each.info.bound)
    return chosen, rest[0] if rest else None


def is_comparison_due(num_before: int, num_now: int) -> bool:
    """Whether kernels are to be compared again.

    Args:
        num_before: Number of evaluations at the last fit.
        num_now: Number of evaluations.
    """
    before, now = (math.floor(math.log(max(n, 1)) / math.log1p(_GROWTH)) for n in (num_before, num_now))
    return num_now <= _MOST_COMPARED and now > before


def ripple_share(result: FitResult) -> float:
    """Of the prior variance, what is due to ripples: they explain noise as well, as long as no point is repeated."""
    kernel: Any = result.gp.process.prior.kernel
    return float(kernel.shares[..., -1].max()) if _may_be_sum(result) else 0.0


def _may_be_sum(result: FitResult) -> bool:
    return isinstance(result.gp.process.prior.kernel, InteractionKernel)


def _unit_kernel(name: str, inputs: Float[Tensor, "*n d"]) -> Kernel:
    """A kernel by name, of unit variance; two points of the unit cube are about 1.4 lengthscales apart in it."""
    ends = torch.zeros(inputs.shape[-1]).to(inputs)
    return NAMED_KERNELS[name](ends, ends + 1.0)
