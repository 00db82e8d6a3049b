"""The arguments of a model, checked and laid out by output."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from streamgp.conditioning import ConditionedGP, SparseGP
from streamgp.errors import ArgumentTypeError, OptionError, ShapeError, UnsupportedError
from streamgp.likelihoods import AbstractLikelihood, read_likelihood
from streamgp.models.output import Output
from streamgp.shapes import broadcast_shapes

__all__ = [
    "GP",
    "aligned",
    "known_noise",
    "noise_column",
    "observation_by",
    "read_gps",
    "read_indices",
    "read_likelihoods",
]

GP = SparseGP | ConditionedGP


def read_gps(gp: Any) -> tuple[GP, ...]:
    """One GP for each output, all for the same inputs."""
    gps = tuple(gp) if isinstance(gp, Sequence) else (gp,)
    for one in gps:
        if not isinstance(one, SparseGP | ConditionedGP):
            raise ArgumentTypeError(
                f"gp must be a SparseGP or ConditionedGP, or one for each output, but has a {type(one).__name__}. "
                "Read a trained GPyTorch model with streamgp.from_gpytorch, or fit one with streamgp.fit."
            )
    if not gps:
        raise OptionError("gp must have at least one GP, but is empty. Pass one for each output.")
    first = gps[0].process.reference
    for one in gps[1:]:
        other = one.process.reference
        if (other.shape[-1], other.dtype, other.device) != (first.shape[-1], first.dtype, first.device):
            raise ShapeError(
                f"All GPs must share input dimension, dtype and device, but have {first.shape[-1]} and "
                f"{other.shape[-1]} dimensions, {first.dtype} and {other.dtype}, {first.device} and {other.device}. "
                "Put models that differ into a ModelList of BoTorch."
            )
    return gps


def read_likelihoods(
    likelihood: str | AbstractLikelihood | Sequence[str | AbstractLikelihood | None] | None, num_outputs: int
) -> tuple[AbstractLikelihood | None, ...]:
    """One likelihood for each output, by name or object."""
    given: tuple[Any, ...] = (
        (likelihood,) * num_outputs
        if isinstance(likelihood, str) or not isinstance(likelihood, Sequence)
        else tuple(likelihood)
    )
    likelihoods = tuple(read_likelihood(one) if isinstance(one, str) else one for one in given)
    if len(likelihoods) != num_outputs:
        raise OptionError(
            f"likelihood must be one for all outputs or one for each of the {num_outputs}, but there are "
            f"{len(likelihoods)}."
        )
    for one in likelihoods:
        if one is not None and not isinstance(one, AbstractLikelihood):
            raise ArgumentTypeError(
                f"likelihood must be one of streamgp.likelihoods, but is a {type(one).__name__}. "
                "Wrap one of GPyTorch's with streamgp.likelihoods.from_gpytorch."
            )
        if one is not None and one.num_latents > 1:
            raise UnsupportedError(
                f"A {type(one).__name__} likelihood looks at {one.num_latents} latent functions, and here is one "
                "for each output. Use streamgp.fit, or one of streamgp.likelihoods with one latent function."
            )
    return likelihoods


def aligned(outputs: list[Output]) -> list[Output]:
    """Outputs of one shape; they differ where not all of them were conditioned on fantasies."""
    shape = broadcast_shapes(*(one.shape for one in outputs))
    return [one if one.shape == shape else Output(one.terms, shape, one.offset) for one in outputs]


def noise_column(noise: Tensor, j: int, num_outputs: int) -> Tensor:
    """Variances of output `j`, for all observations (one value on the last axis) or for each."""
    if noise.dim() == 0 or noise.shape[-1] != num_outputs:
        raise ShapeError(
            f"The noise must have one column for each of the {num_outputs} outputs on its last axis, but has shape "
            f"{tuple(noise.shape)}. Give variances of shape (..., 1 or n, {num_outputs})."
        )
    column = noise[..., j]
    return column.unsqueeze(-1) if column.dim() == 0 else column


def known_noise(noise: Tensor, j: int, num_outputs: int, *, y: Tensor, inputs: Tensor) -> Tensor:
    """Variances of observations of output `j` that no GP can take for anything else.

    Args:
        noise: Variances that broadcast with all outcomes.
        j: Output.
        num_outputs: Number of outputs.
        y: Outcomes of that output.
        inputs: Inputs, transformed.
    """
    column = noise_column(noise, j, num_outputs)
    n = y.shape[-1]
    column = column if column.shape[-1] == n else column.expand(*column.shape[:-1], n)
    # Where there are as many batches as observations, variances would look like a covariance matrix.
    is_ambiguous = column.dim() >= max(inputs.dim(), 2) and column.shape[-2] == n
    return torch.diag_embed(column) if is_ambiguous else column


def read_indices(indices: Sequence[int] | None, num_outputs: int) -> list[int]:
    """Indices of outputs, negative ones counted from the end; all by default."""
    if indices is None:
        return list(range(num_outputs))
    read = [int(j) for j in indices]
    if not read or any(not -num_outputs <= j < num_outputs for j in read):
        raise OptionError(
            f"Output indices must be whole numbers from {-num_outputs} to {num_outputs - 1}, as the model has "
            f"{num_outputs} outputs, and at least one, but are {read}."
        )
    return [j % num_outputs for j in read]


def observation_by(likelihood: AbstractLikelihood | None, j: int, *, like: Tensor) -> dict[str, Any]:
    """Return the observation of output `j` by its likelihood, as keyword arguments of `condition`."""
    if likelihood is None:
        raise OptionError(
            f"Output {j} has no likelihood, so how far its observations can be trusted is not known. "
            "Pass noise=..., or make the OnlineGP with a likelihood."
        )
    known = likelihood.gaussian_noise_variance
    if known is not None:  # the mean, where past observations had their own
        return {"noise_variance": known.to(like).mean()}
    return {"likelihood": likelihood}
