"""Several outputs as one function of input and output: the linear model of coregionalization."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, final

import torch
from gpytorch.kernels import Kernel
from gpytorch.means import Mean
from jaxtyping import Float
from torch import Tensor

from streamgp.gp.jets import Jet, Moving
from streamgp.gp.kernel_function import AbstractFeatureKernel, AbstractKernelFunction, Normal, all_features

__all__ = [
    "CoregionalizationKernel",
    "CoregionalizedFeatures",
    "CoregionalizedFunction",
    "OutputMean",
    "latent_column",
    "output_rows",
]


@final
class CoregionalizationKernel(Kernel):  # type: ignore[misc] # GPyTorch's kernels have no types
    r"""The covariance of outputs $f_o(x) = \sum_l a_{ol} g_l(x)$ and of their latent functions $g_l$.

    The last column of an input says what is looked at: $o \ge 0$ for output $o$, and $-1 - l$ for latent function $l$.
    With $w = a_o$ or $w = e_l$,

    $$
    k((x, w), (x', w')) = \sum_l w_l w'_l k_l(x, x') .
    $$

    So inducing variables $u = (g_1(Z_1), \dots)$ are inducing points of this kernel, with a block-diagonal covariance,
    and all that is done with inducing points can be done with them.
    """

    def __init__(self, *kernels: Kernel, num_outputs: int, num_latents: int | None = None) -> None:
        """Start with the first latent functions as outputs.

        Args:
            *kernels: One for each latent function, or a single one for all (intrinsic coregionalization).
            num_outputs: Number of outputs.
            num_latents: Number of latent functions; as many as kernels by default.
        """
        super().__init__()
        self.kernels = torch.nn.ModuleList(kernels)
        self.num_outputs = num_outputs
        self.num_latents = len(kernels) if num_latents is None else num_latents
        self.register_parameter("mixing", torch.nn.Parameter(torch.eye(num_outputs, self.num_latents)))

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Tensor:
        """Evaluate by GPyTorch's kernels."""
        (x1, w1), (x2, w2) = (_split(x, self.mixing) for x in (x1, x2))
        if diag:
            values = torch.stack([kernel(x1, x2, diag=True) for kernel in self.kernels], dim=-1)
            return (values * w1 * w2).sum(-1)
        values = torch.stack([kernel(x1, x2).to_dense() for kernel in self.kernels], dim=-1)
        return (values * w1.unsqueeze(-2) * w2.unsqueeze(-3)).sum(-1)


@final
@dataclass(frozen=True)
class CoregionalizedFunction(AbstractKernelFunction):
    """A `CoregionalizationKernel`, ready to be evaluated.

    Attributes:
        parts: Kernels of the latent functions, or a single one for all.
        mixing: The matrix $a$.
    """

    parts: tuple[AbstractKernelFunction, ...]
    mixing: Float[Tensor, "o l"]

    def matrix(self, first: Tensor, second: Tensor) -> Tensor:
        (x1, w1), (x2, w2) = (_split(x, self.mixing) for x in (first, second))
        if len(self.parts) == 1:
            return self.parts[0].matrix(x1, x2) * (w1 @ w2.mT)
        terms = [
            part.matrix(x1, x2) * (w1[..., j : j + 1] * w2[..., j].unsqueeze(-2)) for j, part in enumerate(self.parts)
        ]
        return torch.stack(terms).sum(0)

    def diagonal(self, inputs: Tensor) -> Tensor:
        x, w = _split(inputs, self.mixing)
        if len(self.parts) == 1:
            return self.parts[0].diagonal(x) * w.square().sum(-1)
        return torch.stack([part.diagonal(x) * w[..., j].square() for j, part in enumerate(self.parts)]).sum(0)

    def jet(self, first: Moving, second: Moving) -> Jet:
        (x1, w1), (x2, w2) = (_split(each.points, self.mixing) for each in (first, second))
        # Outputs stand side by side: there are no slopes between them.
        one, other = (
            Moving(x, None if each.directions is None else each.directions[..., :-1])
            for x, each in ((x1, first), (x2, second))
        )
        if len(self.parts) == 1:
            return self.parts[0].jet(one, other) * (w1 @ w2.mT)
        terms = [
            part.jet(one, other) * (w1[..., j : j + 1] * w2[..., j].unsqueeze(-2)) for j, part in enumerate(self.parts)
        ]
        return reduce(add, terms)

    def random_features(self, points: Tensor, num_features: int, normal: Normal) -> "CoregionalizedFeatures | None":
        parts = all_features(part.random_features(points[..., :-1], num_features, normal) for part in self.parts)
        return None if parts is None else CoregionalizedFeatures(parts, self.mixing)


@final
@dataclass(frozen=True)
class CoregionalizedFeatures(AbstractFeatureKernel):
    r"""A `CoregionalizationKernel` of latent functions with finitely many features.

    Outputs are $f_o = \sum_l a_{ol} \phi_l^\top w_l$, with all weights $w$ independent.

    Attributes:
        parts: Kernels of the latent functions, or a single one for all.
        mixing: The matrix $a$.
    """

    parts: tuple[AbstractFeatureKernel, ...]
    mixing: Float[Tensor, "o l"]

    def features(self, inputs: Tensor) -> Tensor:
        x, w = _split(inputs, self.mixing)
        latent = [part.features(x) for part in self.parts] * (w.shape[-1] // len(self.parts))
        return torch.cat([w[..., j : j + 1] * values for j, values in enumerate(latent)], dim=-1)


@final
class OutputMean(Mean):  # type: ignore[misc] # nor have its means
    """A constant for each output, and zero for latent functions."""

    def __init__(self, *, num_outputs: int) -> None:
        """Start with zeros."""
        super().__init__()
        self.num_outputs = num_outputs
        self.register_parameter("constants", torch.nn.Parameter(torch.zeros(num_outputs)))

    def forward(self, x: Tensor) -> Tensor:
        """Look the constants up."""
        index = x[..., -1].round().long()
        return torch.where(index < 0, 0.0, self.constants[index.clamp_min(0)])


def output_rows(X: Float[Tensor, "*b n d"], outputs: Sequence[int]) -> Float[Tensor, "*b k e"]:
    """Inputs with a column for the output, one row for each input and output; outputs vary fastest."""
    d, o = X.shape[-1], len(outputs)
    index = torch.tensor(outputs, dtype=X.dtype, device=X.device).expand(*X.shape[:-1], o)
    repeated = X.unsqueeze(-2).expand(*X.shape[:-1], o, d)
    return torch.cat([repeated, index.unsqueeze(-1)], dim=-1).flatten(-3, -2)


def latent_column(points: Float[Tensor, "*b m d"], latent: int) -> Float[Tensor, "*b m e"]:
    """Points with a column that says which latent function is looked at."""
    return torch.cat([points, points.new_full((*points.shape[:-1], 1), -1.0 - latent)], dim=-1)


def _split(inputs: Tensor, mixing: Tensor) -> tuple[Tensor, Tensor]:
    """Inputs without the last column, and the weights of the latent functions that it stands for."""
    o, num_latents = mixing.shape
    table = torch.cat([mixing, torch.eye(num_latents, dtype=mixing.dtype, device=mixing.device)])
    index = inputs[..., -1].detach().round().long()
    return inputs[..., :-1], table[torch.where(index < 0, o - 1 - index, index)]
