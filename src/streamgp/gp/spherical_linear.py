"""A linear model on a sphere: a kernel of few features for many dimensions."""

from dataclasses import dataclass
from typing import Any, final

import torch
from gpytorch.kernels import Kernel
from jaxtyping import Float
from torch import Tensor

from streamgp.gp.kernel_function import AbstractFeatureKernel

__all__ = ["SphericalLinearFunction", "SphericalLinearKernel"]


@final
class SphericalLinearKernel(Kernel):  # type: ignore[misc] # GPyTorch's kernels have no types
    r"""The kernel of a linear function on the sphere on which a box is laid out.

    With the center $c$ and half widths $h$ of the box, lengthscales $\ell_j$ and a share $g$ between 0 and 1,

    $$
    z_j = \frac{x_j - c_j}{a \ell_j}, \quad a^2 = g \sum_j \frac{h_j^2}{\ell_j^2}, \quad
    P(z) = \frac{(2 z, \lVert z \rVert^2 - 1)}{1 + \lVert z \rVert^2}, \quad
    k(x, x') = w_0 + w_1 P(z)^\top P(z'), \quad w_0 + w_1 = 1 .
    $$

    $P$ is the inverse stereographic projection: unlike a linear function of $x$, one of $P(z)$ need not be largest in a
    corner of the box. There are $d + 2$ features: a belief about their weights loses nothing
    (`SparseGP.from_features`).

    References:
        Doumont, Fan, Maus, Gardner, Moss, Pleiss (2025), We still don't understand high-dimensional Bayesian
        optimization.
    """

    has_lengthscale = True

    def __init__(self, ard_num_dims: int, **options: Any) -> None:
        """Start with equal shares, in the unit cube.

        Args:
            ard_num_dims: Number of inputs $d$.
            options: Of GPyTorch's kernels.
        """
        super().__init__(ard_num_dims=ard_num_dims, **options)
        self.register_parameter("share_logits", torch.nn.Parameter(torch.zeros(*self.batch_shape, 2)))
        self.register_parameter("radius_logit", torch.nn.Parameter(torch.zeros(self.batch_shape)))
        self.register_buffer("lower", torch.zeros(ard_num_dims))
        self.register_buffer("upper", torch.ones(ard_num_dims))

    def within(self, lower: Float[Tensor, " d"], upper: Float[Tensor, " d"]) -> "SphericalLinearKernel":
        """Lay out another box, with lengthscales in proportion to it; returns the kernel itself.

        Args:
            lower: Lower ends.
            upper: Upper ends, above them.
        """
        self.lower, self.upper = lower.detach().clone(), upper.detach().clone()
        self.to(lower)
        self.lengthscale = 0.5 * lower.shape[-1] ** 0.5 * (upper - lower)
        return self

    def function(self) -> "SphericalLinearFunction":
        """The kernel, ready to be evaluated."""
        half_widths = 0.5 * (self.upper - self.lower)
        squared = (half_widths / self.lengthscale).square().sum(-1, keepdim=True)
        radius = (self.radius_logit.sigmoid()[..., None, None] * squared).sqrt()
        center = 0.5 * (self.upper + self.lower)
        return SphericalLinearFunction(center, radius * self.lengthscale, self.share_logits.softmax(-1))

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Tensor:
        """Evaluate by the function that the sparse GP uses."""
        function = self.function()
        return function.diagonal(x1 + 0.0 * x2) if diag else function.matrix(x1, x2)


@final
@dataclass(frozen=True)
class SphericalLinearFunction(AbstractFeatureKernel):
    """A `SphericalLinearKernel`, ready to be evaluated.

    Attributes:
        center: Of the box.
        scale: What distances from it are divided by.
        shares: Variances of the constant and of the linear function.
    """

    center: Float[Tensor, " d"]
    scale: Float[Tensor, "*k 1 d"]
    shares: Float[Tensor, "*k 2"]

    def matrix(self, first: Tensor, second: Tensor) -> Tensor:
        constant, linear = (share[..., None, None] for share in self.shares.unbind(-1))
        return constant + linear * (self.on_sphere(first) @ self.on_sphere(second).mT)

    def diagonal(self, inputs: Tensor) -> Tensor:
        shape = torch.broadcast_shapes(inputs.shape[:-1], (*self.shares.shape[:-1], 1))
        return self.shares.sum(-1).unsqueeze(-1).expand(shape)

    def features(self, inputs: Tensor) -> Tensor:
        constant, linear = (share.sqrt()[..., None, None] for share in self.shares.unbind(-1))
        P = self.on_sphere(inputs)
        return torch.cat([constant.expand(*P.shape[:-1], 1), linear * P], dim=-1)

    def on_sphere(self, inputs: Float[Tensor, "*b n d"]) -> Float[Tensor, "*c n e"]:
        """Unit vectors of inputs, with one dimension more."""
        z = (inputs - self.center) / self.scale
        squared = z.square().sum(-1, keepdim=True)
        return torch.cat([2.0 * z, squared - 1.0], dim=-1) / (1.0 + squared)
