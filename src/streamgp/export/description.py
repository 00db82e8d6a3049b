"""Numbers of a sparse GP that an exported file holds: kernel, points, and belief."""

import struct
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
import torch
from jaxtyping import Float

from streamgp.errors import UnsupportedError
from streamgp.gp import SparseProcess
from streamgp.gp.kernel_function import AbstractKernelFunction
from streamgp.gp.kernels import CombinedKernel, ScaledKernel, SelectedKernel
from streamgp.gp.stationary import StationaryKernel

__all__ = ["Description", "KernelPart", "describe", "hash_bytes"]


@final
@dataclass(frozen=True, eq=False)
class KernelPart:
    r"""One of the kernels whose sum is the kernel.

    Attributes:
        variance: Of the part.
        smoothness: Twice the $\nu$ of a Matérn kernel; 0 for the squared exponential.
        scales: $\sqrt{2 \nu} / \ell$ of each dimension, $1 / \ell$ for the squared exponential; 0 where it is not seen.
    """

    variance: float
    smoothness: int
    scales: Float[np.ndarray, " d"]


@final
@dataclass(frozen=True, eq=False)
class Description:
    """A sparse GP in NumPy's numbers of double precision.

    Attributes:
        parts: Of the kernel.
        mean: The constant prior mean.
        points: Inducing points.
        whitening: The inverse of the factor of their kernel matrix.
        belief_mean: Mean of the whitened belief.
        belief_root: A square root of its covariance.
    """

    parts: tuple[KernelPart, ...]
    mean: float
    points: Float[np.ndarray, "m d"]
    whitening: Float[np.ndarray, "m m"]
    belief_mean: Float[np.ndarray, " m"]
    belief_root: Float[np.ndarray, "m m"]
    jitter: float

    @cached_property
    def fingerprint(self) -> int:
        """Number of 32 bits that tells GPs of other points or hyperparameters apart, whatever they have learned."""
        numbers = [self.mean, self.jitter, *self.points.ravel()]
        for part in self.parts:
            numbers += [part.variance, float(part.smoothness), *part.scales]
        # In single precision, as scales are computed and their last digits may differ between processors.
        return hash_bytes(struct.pack(f"<{len(numbers)}f", *numbers))

    @cached_property
    def belief_factor(self) -> Float[np.ndarray, "m m"]:
        r"""The factor $U D U^\top$ of the covariance: $U$ above the diagonal, which holds $D$."""
        flipped = self.belief_root.T[:, ::-1]
        # Rounding, without which a belief that is sure of something has no such factor.
        least = 1e-30 * (1.0 + np.abs(flipped).max()) * np.eye(len(flipped))
        root = np.asarray(np.linalg.qr(np.concatenate([flipped, least]), mode="r")).T[::-1, ::-1]
        diagonal = root.diagonal()
        return root / diagonal - np.eye(len(root)) + np.diag(diagonal**2)


def describe(process: SparseProcess) -> Description:
    """Read a process.

    Raises:
        UnsupportedError: If a file cannot evaluate its kernel or mean, and of batches and beliefs about weights.
    """
    if process.batch_shape:
        raise UnsupportedError(
            f"A file holds one GP, but this is a batch of shape {tuple(process.batch_shape)}. Export the members one "
            "by one."
        )
    if not process.inducing.is_movable:
        raise UnsupportedError(
            "The belief is about weights of features, which a file cannot evaluate. Export a GP with inducing points, "
            "as SparseGP.from_prior makes it."
        )
    constant = process.prior.mean(process.inducing_points[:1])
    if type(process.prior.mean_function).__name__ not in ("ConstantMean", "ZeroMean"):
        raise UnsupportedError(
            f"A file evaluates a ConstantMean or ZeroMean, but the mean is a "
            f"{type(process.prior.mean_function).__name__}. Subtract it from the targets instead."
        )
    d = process.inducing_points.shape[-1]
    with torch.no_grad():
        return Description(
            parts=_parts(process.prior.kernel_function, 1.0, np.arange(d), d),
            mean=float(constant),
            points=_array(process.inducing_points),
            whitening=_array(process.inducing_factor.whitening),
            belief_mean=_array(process.whitened_mean),
            belief_root=_array(process.whitened_root),
            jitter=process.jitter,
        )


def hash_bytes(content: bytes) -> int:
    """The checksum of Fowler, Noll and Vo (FNV-1a) of 32 bits, which takes one line of C."""
    value = 2166136261
    for byte in content:
        value = (value ^ byte) * 16777619 % 2**32
    return value


def _parts(kernel: AbstractKernelFunction, variance: float, dims: np.ndarray, num_dims: int) -> tuple[KernelPart, ...]:
    """The sum that a kernel is, of inputs of which it sees some dimensions."""
    if isinstance(kernel, ScaledKernel):
        return _parts(kernel.base, variance * float(kernel.outputscale), dims, num_dims)
    if isinstance(kernel, SelectedKernel):
        return _parts(kernel.base, variance, dims[kernel.dims.cpu().numpy()], num_dims)
    if isinstance(kernel, CombinedKernel) and not kernel.is_product:
        return tuple(part for base in kernel.parts for part in _parts(base, variance, dims, num_dims))
    if isinstance(kernel, StationaryKernel):
        is_smooth = kernel.smoothness == float("inf")
        scales = np.zeros(num_dims)
        np.add.at(
            scales, dims, (1.0 if is_smooth else (2.0 * kernel.smoothness) ** 0.5) / _array(kernel.lengthscale)[0]
        )
        own = variance * float(kernel.outputscale)
        return (KernelPart(own, 0 if is_smooth else round(2 * kernel.smoothness), scales),)
    raise UnsupportedError(
        "A file evaluates RBFKernel and MaternKernel, with scales, active dimensions and sums of these, but the kernel "
        f"has a part that is a {type(kernel).__name__}. Learn with such a kernel to export it."
    )


def _array(values: torch.Tensor) -> np.ndarray:
    return np.ascontiguousarray(values.detach().double().cpu().numpy())
