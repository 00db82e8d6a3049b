"""Effects of single inputs, of pairs, of all, and ripples: a kernel that learns how much there is of each."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import torch
from gpytorch.kernels import Kernel
from gpytorch.priors import NormalPrior
from jaxtyping import Float
from torch import Tensor

from streamgp.gp.jets import Jet, Moving, difference
from streamgp.gp.kernel_function import Normal
from streamgp.gp.spectral import AbstractSpectralKernel

__all__ = ["InteractionFunction", "InteractionKernel"]

# Logarithms of shares a priori, beside that of the interaction of all inputs, and how far they may be from that. It is
# for the data to say that effects add up; and what may be noise or ripples is taken for noise.
_PARTIAL_LOGIT, _RIPPLE_LOGIT, _LOGIT_DEVIATION = -2.0, -4.0, 2.0
# How much shorter the lengthscales of ripples are.
_ROUGHNESS = 6.0


@final
class InteractionKernel(Kernel):  # type: ignore[misc] # GPyTorch's kernels have no types
    r"""A squared-exponential kernel of unit variance, part of which is sums over single inputs and over pairs.

    With $r_j = (x_j - x'_j) / \ell_j$, the mean over all sets $S$ of $o$ of the $d$ inputs, and shares $w$ that sum to
    one,

    $$
    k(x, x') = \sum_{o \in \{1, 2, d\}} w_o \operatorname*{mean}_{|S| = o}
    \exp\Bigl(-\frac{d}{2 o} \sum_{j \in S} r_j^2\Bigr) + w_r \exp\Bigl(-\frac{6^2}{2} \sum_j r_j^2\Bigr) .
    $$

    With $w_d = 1$ it is the squared-exponential kernel itself. Where outcomes are in part sums of effects of single
    inputs or of pairs, a few dozen observations say much more of them; the last term lets ripples be ripples, which
    would make the rest rough. The factor $d / o$ makes the other parts equally rough: points drawn at random correlate
    about as much in each.

    References:
        Duvenaud, Nickisch, Rasmussen (2011), Additive Gaussian processes.
    """

    has_lengthscale = True

    def __init__(self, ard_num_dims: int, **options: Any) -> None:
        """Start with an interaction of all inputs, for the most part.

        Args:
            ard_num_dims: Number of inputs $d$.
            options: Of GPyTorch's kernels.
        """
        super().__init__(ard_num_dims=ard_num_dims, **options)
        num_parts = min(ard_num_dims, 3) + 1
        self.register_parameter("logits", torch.nn.Parameter(torch.zeros(*self.batch_shape, num_parts)))
        self.register_prior("logits_prior", NormalPrior(0.0, _LOGIT_DEVIATION), _get_logits, _set_logits)

    @property
    def shares(self) -> Float[Tensor, "*k p"]:
        """Variances due to single inputs, to pairs and to all, as far as these differ, and to ripples."""
        num_partial = self.logits.shape[-1] - 2
        return (self.logits + self.logits.new_tensor([*[_PARTIAL_LOGIT] * num_partial, 0.0, _RIPPLE_LOGIT])).softmax(-1)

    def function(self) -> "InteractionFunction":
        """The kernel, ready to be evaluated."""
        return InteractionFunction(self.lengthscale, self.shares)

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Tensor:
        """Evaluate by the function that the sparse GP uses."""
        function = self.function()
        if diag:
            return function.matrix(x1.unsqueeze(-2), x2.unsqueeze(-2))[..., 0, 0]
        return function.matrix(x1, x2)


@final
@dataclass(frozen=True)
class InteractionFunction(AbstractSpectralKernel):
    """An `InteractionKernel`, ready to be evaluated.

    Attributes:
        lengthscale: Lengthscales of the interaction of all inputs.
        shares: Of single inputs, pairs and all, as far as these differ, and of ripples.
    """

    lengthscale: Float[Tensor, "*k 1 d"]
    shares: Float[Tensor, "*k p"]

    @property
    def outputscale(self) -> Float[Tensor, "*k"]:  # type: ignore[override] # follows from the shares
        """The sum of all."""
        return self.shares.sum(-1)

    def matrix(self, first: Tensor, second: Tensor) -> Tensor:
        if self.shares.dim() > 1:
            return _evaluate(first, second, self.lengthscale, self.shares)
        fused: Any = _FusedInteractions  # torch leaves `apply` untyped
        return fused.apply(first, second, self.lengthscale, self.shares)

    def diagonal(self, inputs: Tensor) -> Tensor:
        shape = torch.broadcast_shapes(inputs.shape[:-1], (*self.shares.shape[:-1], 1))
        return self.outputscale.unsqueeze(-1).expand(shape)

    def jet(self, first: Moving, second: Moving) -> Jet:
        """Evaluate the sum of `_parts` with slopes, from those of one-dimensional factors."""
        apart = difference(first, second, self.lengthscale)
        squared, d = apart * apart, apart.value.shape[-1]
        distance, factor = squared.sum(), (squared * squared.value.new_tensor(-0.25 * d)).exp()
        weights = [share[..., None, None] for share in self.shares.unbind(-1)]
        half = squared.value.new_tensor(-0.5)
        jet = (distance * half).exp() * weights[-2] + (distance * (_ROUGHNESS**2 * half)).exp() * weights[-1]
        if d > 1:
            singles = (factor * factor).sum()
            jet = jet + singles * (weights[0] / d)
            if d > 2:
                pairs = factor.sum() * factor.sum() + singles * squared.value.new_tensor(-1.0)
                jet = jet + pairs * (weights[1] / (d * (d - 1)))
        return jet

    def frequencies(self, shape: tuple[int, ...], normal: Normal) -> Float[Tensor, "*b f d"]:
        """Choose a part by its share, and inputs by chance; a set has the frequencies of its inputs alone."""
        d = shape[-1]
        sizes = [*range(1, min(d, 3)), d, d]
        # Normal numbers in order are inputs in random order, and a comparison with shares needs uniform ones.
        uniform = torch.special.ndtr(normal(*shape[:-1], 1))
        part = (uniform > self.shares.cumsum(-1).unsqueeze(-2)[..., :-1]).sum(-1)
        rank = normal(*shape).argsort(-1).argsort(-1)
        size = torch.tensor(sizes, device=part.device)[part].unsqueeze(-1)
        is_ripple = (part == len(sizes) - 1).unsqueeze(-1)
        scale = torch.where(is_ripple, _ROUGHNESS, (d / size).sqrt().to(self.lengthscale))
        return torch.where(rank < size, normal(*shape) * scale / self.lengthscale, 0.0)


def _evaluate(x: Tensor, z: Tensor, lengthscale: Tensor, shares: Tensor) -> Tensor:
    """Sum all parts, differentiable as often as one likes."""
    squared = ((x.unsqueeze(-2) - z.unsqueeze(-3)) / lengthscale.unsqueeze(-2)).square()
    parts, _ = _parts(squared)
    return (torch.stack(parts, dim=-1) * shares[..., None, None, :]).sum(-1)


def _parts(squared: Float[Tensor, "*e n m d"]) -> tuple[list[Tensor], Tensor]:
    """The parts of the kernel, and the factors of inputs in pairs; the squares of these are single inputs."""
    d, distance = squared.shape[-1], squared.sum(-1)
    parts = [torch.exp(-0.5 * distance), torch.exp(-0.5 * _ROUGHNESS**2 * distance)]
    factor = torch.exp(-0.25 * d * squared)
    if d > 1:
        singles = factor.square().sum(-1)
        parts.insert(0, singles / d)
        if d > 2:
            parts.insert(1, (factor.sum(-1).square() - singles) / (d * (d - 1)))
    return parts, factor


class _FusedInteractions(torch.autograd.Function):
    r"""Value of the kernel, with a gradient of few operations: matrices are small, and many.

    With $g_j$ the factor of an input in a pair and $G = \sum_j g_j$, the derivative of the first two parts in $r_j^2$
    is $-\frac12 g_j (w_1 g_j + w_2 (G - g_j) / (d - 1))$.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, z: Tensor, lengthscale: Tensor, shares: Tensor) -> Tensor:
        difference = (x.unsqueeze(-2) - z.unsqueeze(-3)) / lengthscale.unsqueeze(-2)
        parts, factor = _parts(difference.square())
        values = torch.stack(parts, dim=-1)
        ctx.save_for_backward(x, z, lengthscale, shares, difference, values, factor)
        return values @ shares

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        (g,) = grad_outputs
        x, z, lengthscale, shares, difference, values, factor = ctx.saved_tensors
        if torch.is_grad_enabled():  # a second derivative was asked for
            return _differentiable_gradient(g, (x, z, lengthscale, shares), ctx.needs_input_grad)
        needs_x, needs_z, needs_lengthscale, needs_shares = ctx.needs_input_grad
        grads: list[Tensor | None] = [None] * 4
        if needs_x or needs_z or needs_lengthscale:
            d = x.shape[-1]
            slope = (shares[-2] * values[..., -2] + _ROUGHNESS**2 * shares[-1] * values[..., -1]).unsqueeze(-1)
            if d > 1:
                pairs = shares[1] / (d - 1) if d > 2 else 0.0
                slope = slope + factor * ((shares[0] - pairs) * factor + pairs * factor.sum(-1, keepdim=True))
            h = -g.unsqueeze(-1) * slope * difference
            if needs_x:
                grads[0] = (h.sum(-2) / lengthscale).sum_to_size(x.shape)
            if needs_z:
                grads[1] = -(h.sum(-3) / lengthscale).sum_to_size(z.shape)
            if needs_lengthscale:
                grads[2] = (
                    -((h * difference).sum(-2) / lengthscale).sum(-2, keepdim=True).sum_to_size(lengthscale.shape)
                )
        if needs_shares:
            grads[3] = (g.unsqueeze(-1) * values).sum_to_size(shares.shape)
        return tuple(grads)


def _differentiable_gradient(g: Tensor, inputs: tuple[Tensor, ...], needs: Sequence[bool]) -> tuple[Tensor | None, ...]:
    """The gradient as a function of the inputs."""
    wanted = [one for one, is_needed in zip(inputs, needs, strict=True) if is_needed]
    found = iter(torch.autograd.grad(_evaluate(*inputs), wanted, g, create_graph=True))
    return tuple(next(found) if is_needed else None for is_needed in needs)


# GPyTorch would make these by itself of the name, as closures that cannot be pickled.
def _get_logits(kernel: InteractionKernel) -> Tensor:
    return kernel.logits


def _set_logits(kernel: InteractionKernel, logits: Tensor) -> None:
    kernel.initialize(logits=logits)
