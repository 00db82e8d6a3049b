"""Registers the classes of `gp` and `likelihoods`, which lie below the codec and cannot do so themselves."""

import dataclasses
import math
from typing import Any

import torch
from gpytorch import likelihoods
from gpytorch.kernels import Kernel
from gpytorch.means import Mean
from jaxtyping import Float
from torch import Tensor

from streamgp.errors import FileFormatError, UnsupportedError
from streamgp.evidence import Evidence
from streamgp.gp import Prior, SparseProcess
from streamgp.gp.coregionalization import CoregionalizationKernel, OutputMean
from streamgp.gp.interactions import InteractionKernel
from streamgp.gp.spherical_linear import SphericalLinearKernel
from streamgp.likelihoods.registry import known_classes
from streamgp.likelihoods.wrapped import WrappedLikelihood
from streamgp.shapes import is_broadcastable
from streamgp.storage.archive import is_finite
from streamgp.storage.modules import register_module
from streamgp.storage.registry import ask_when_unknown, is_registered, register
from streamgp.tables.columns import Column, Preprocessing

__all__ = ["check_process"]

_DTYPES = (torch.float32, torch.float64)


def check_process(process: SparseProcess) -> None:
    """Refuse a belief that no computation can have led to: values that are not finite, or a jitter without sense."""
    Z, m, R = process.inducing_points, process.whitened_mean, process.whitened_root
    named = {"inducing_points": Z, "whitened_mean": m, "whitened_root": R}
    if process.information is not None:
        named["information"] = process.information
    for name, value in named.items():
        if value.dtype != Z.dtype or value.dtype not in _DTYPES:
            raise FileFormatError(f"The file's {name} is {value.dtype}, and its inducing points are {Z.dtype}.")
        if not is_finite(value):
            raise FileFormatError(f"The file's {name} holds values that are NaN or infinite. It is damaged.")
    if not is_broadcastable(process.prior.batch_shape, Z.shape[:-2]) or not Z.shape[-1]:
        raise FileFormatError(
            f"The file's inducing points have shape {tuple(Z.shape)}, and its kernel the leading axes "
            f"{tuple(process.prior.batch_shape)}. They do not fit together; the file is damaged."
        )
    try:
        num_variables = process.inducing.num_variables
    except (UnsupportedError, RuntimeError) as error:
        raise FileFormatError(f"The file's kernel does not go with its inducing points: {error}") from error
    if num_variables != m.shape[-1]:
        raise FileFormatError(
            f"The file's belief is about {m.shape[-1]} values, but has {num_variables} inducing points or features. It "
            "is damaged."
        )
    few = Z[..., :2, :] if Z.shape[-2] else Z.new_zeros(*Z.shape[:-2], 1, Z.shape[-1])
    prior, mean, covariance = process.prior.variance(few), process.prior.mean(few), process.prior.covariance(few, few)
    if not all(is_finite(each) for each in (prior, mean, covariance)):
        raise FileFormatError("The file's kernel or mean is not finite at its inducing points. It is damaged.")
    # As much jitter as variance would leave nothing of the kernel.
    if not 0.0 <= process.jitter <= max(1.0, float(prior.mean())) or not math.isfinite(process.jitter):
        raise FileFormatError(f"The file's jitter is {process.jitter}, which makes no sense. It is damaged.")


def _check_evidence(evidence: Evidence) -> None:
    atoms, row_of, weights, d = evidence.atoms, evidence.row_of, evidence.weights, evidence.num_dims
    n, is_whole = atoms.shape[-2], row_of is None and weights is None
    fits = (
        d > 0 and atoms.shape[-1] in (d, 2 * d + 1) and all(size >= 0 for part in evidence.part_shapes for size in part)
    )
    if row_of is not None and weights is not None and fits:
        in_order = bool((row_of.diff() >= 0).all()) and row_of.dtype == torch.int64
        is_inside = not n or (int(row_of[0]) >= 0 and int(row_of[-1]) < evidence.num_rows)
        is_whole = row_of.shape == weights.shape == (n,) and in_order and is_inside and is_finite(weights)
    elif fits:
        is_whole = is_whole and evidence.num_rows == n
    if not (fits and is_whole and is_finite(atoms)):
        raise FileFormatError("The file's rows of evidence do not fit together. It is damaged.")


def _prior_fields(prior: Prior) -> dict[str, Any]:
    return {"kernel": prior.kernel, "mean": prior.mean_function, "zero": prior.zero}


def _rebuild_prior(kernel: Kernel, mean: Mean, zero: Tensor) -> Prior:
    if zero.dtype not in _DTYPES or zero.shape != ():
        raise FileFormatError("The file's prior is neither of single nor of double precision. It is damaged.")
    for module in (kernel, mean):
        module.to(dtype=zero.dtype, device=zero.device).eval().requires_grad_(False)
    return Prior(kernel, mean, torch.zeros_like(zero))


def _rebuild_process(
    prior: Prior,
    inducing_points: Float[Tensor, "*b k d"],
    whitened_mean: Float[Tensor, "*b m"],
    whitened_root: Float[Tensor, "*b m m"],
    jitter: float = 0.0,
    information: Float[Tensor, "*b m"] | None = None,
) -> SparseProcess:
    prior = _rebuild_prior(prior.kernel, prior.mean_function, inducing_points.new_zeros(()))
    return SparseProcess(prior, inducing_points, whitened_mean, whitened_root, float(jitter), information)


register_module(CoregionalizationKernel, sizes=("num_outputs", "num_latents"), parts=("kernels",), batch_shape=None)
register_module(OutputMean, sizes=("num_outputs",), batch_shape=None)
register_module(InteractionKernel, sizes=("ard_num_dims",))
register_module(SphericalLinearKernel, sizes=("ard_num_dims",))
register(Evidence, check=_check_evidence)
register(Column)
register(Preprocessing)
register(Prior, to_fields=_prior_fields, from_fields=_rebuild_prior)
register(SparseProcess, from_fields=_rebuild_process, check=check_process)


def _register_likelihoods() -> None:
    """Register all likelihoods that have a name, those of users included."""
    for cls in known_classes().values():
        is_dataclass = dataclasses.is_dataclass(cls)
        if is_dataclass and not is_registered(cls):
            register(cls, name=f"likelihoods.{cls.__name__}")


def _check_wrapped(likelihood: WrappedLikelihood) -> None:
    module, values = likelihood.module, likelihood.values
    shapes = {name: value.shape for name, value in module.named_parameters()}
    is_likelihood = isinstance(module, likelihoods._OneDimensionalLikelihood)
    if not is_likelihood or shapes != {name: value.shape for name, value in values.items()}:
        raise FileFormatError("The file's likelihood does not fit its parameters. It is damaged.")
    if likelihood.num_nodes < 1 or not all(is_finite(value) for value in values.values()):
        raise FileFormatError("The file's likelihood has parameters that make no sense. It is damaged.")


_register_likelihoods()
ask_when_unknown(_register_likelihoods)
register(WrappedLikelihood, name="likelihoods.WrappedLikelihood", check=_check_wrapped)
register_module(likelihoods.PoissonLikelihood, batch_shape=None)
register_module(likelihoods.BetaLikelihood, batch_shape=lambda module: module.raw_scale.shape[:-1])
register_module(likelihoods.StudentTLikelihood, batch_shape=lambda module: module.raw_noise.shape[:-1])
register_module(likelihoods.LaplaceLikelihood, batch_shape=lambda module: module.raw_noise.shape[:-1])
register_module(
    likelihoods.NegativeBinomialLikelihood,
    options=("num_failures_param",),
    batch_shape=lambda module: module.raw_probs.shape[:-1],
)
