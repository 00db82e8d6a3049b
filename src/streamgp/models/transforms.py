"""BoTorch's transforms of inputs and outcomes, frozen once they were fitted."""

from copy import deepcopy

import torch
from botorch.models.transforms.input import AffineInputTransform, InputTransform
from botorch.models.transforms.outcome import OutcomeTransform, Standardize, StratifiedStandardize
from torch import Tensor

from streamgp.errors import ArgumentTypeError, OptionError, ValueRangeError
from streamgp.likelihoods import AbstractLikelihood

__all__ = ["affine_map", "check_keeps_outcomes", "freeze_input_transform", "freeze_outcome_transform"]


def freeze_input_transform(transform: object, like: Tensor) -> InputTransform:
    """Copy a fitted input transform that will not change any more."""
    if not isinstance(transform, InputTransform):
        raise ArgumentTypeError(
            f"input_transform must be an InputTransform of BoTorch, but is a {type(transform).__name__}. "
            "Pass for example botorch.models.transforms.Normalize(d, bounds=bounds)."
        )
    for part in transform.modules():
        if isinstance(part, AffineInputTransform) and part.learn_coefficients and part.training and _is_identity(part):
            raise ValueRangeError(
                f"The input transform {type(part).__name__} learns its coefficients and has seen no data, so it would "
                "leave inputs as they are. Fit it with transform(train_X), give it bounds, or let OnlineGP.fit do so; "
                "if it is meant as it is, call transform.eval()."
            )
    frozen = _freeze(transform, like)
    for part in frozen.modules():
        if isinstance(part, AffineInputTransform):
            part.learn_coefficients = False
    assert isinstance(frozen, InputTransform)
    return frozen


def freeze_outcome_transform(transform: object, like: Tensor) -> OutcomeTransform:
    """Copy a fitted outcome transform that will not change any more."""
    if not isinstance(transform, OutcomeTransform):
        raise ArgumentTypeError(
            f"outcome_transform must be an OutcomeTransform of BoTorch, but is a {type(transform).__name__}. "
            "Pass for example botorch.models.transforms.Standardize(m)."
        )
    for part in transform.modules():
        if isinstance(part, Standardize) and not bool(part._is_trained):
            raise ValueRangeError(
                f"The outcome transform {type(part).__name__} has seen no data, so mean and scale are not known. "
                "Fit it with transform(train_Y), or let OnlineGP.fit do so."
            )
    frozen = _freeze(transform, like)
    assert isinstance(frozen, OutcomeTransform)
    return frozen


def affine_map(transform: OutcomeTransform, X: Tensor, num_outputs: int) -> tuple[Tensor, Tensor]:
    """Offset and scale of a linear transform's way back, each `(*b, 1 or q, o)`.

    Args:
        transform: A frozen linear transform.
        X: Inputs, on which stratified transforms depend.
        num_outputs: Number of outputs.
    """
    is_stratified = any(isinstance(part, StratifiedStandardize) for part in transform.modules())
    rows = X.shape[:-1] if is_stratified else (1,)
    zeros = X.new_zeros(*rows, num_outputs)
    offset, _ = transform.untransform(zeros, X=X)
    ones, _ = transform.untransform(torch.ones_like(zeros), X=X)
    return offset, ones - offset


def check_keeps_outcomes(
    transform: OutcomeTransform, likelihoods: tuple[AbstractLikelihood | None, ...], like: Tensor
) -> None:
    """Refuse a transform of outcomes whose likelihood needs them as they are, such as counts."""
    needs = [j for j, one in enumerate(likelihoods) if one is not None and not one.is_gaussian]
    if not needs:
        return
    probe = torch.tensor([[1.0], [2.0]], dtype=like.dtype, device=like.device).expand(2, len(likelihoods))
    moved, _ = transform(probe, X=like.new_zeros(2, like.shape[-1]))
    for j in needs:
        if not torch.equal(moved[..., j], probe[..., j].expand(moved[..., j].shape)):
            raise OptionError(
                f"outcome_transform changes output {j}, whose likelihood is {type(likelihoods[j]).__name__} and needs "
                "its outcomes as they are. Restrict the transform to the Gaussian outputs with outputs=[...]."
            )


def _freeze(transform: torch.nn.Module, like: Tensor) -> torch.nn.Module:
    return deepcopy(transform).to(dtype=like.dtype, device=like.device).eval().requires_grad_(False)


def _is_identity(transform: AffineInputTransform) -> bool:
    return bool((transform.coefficient == 1).all()) and bool((transform.offset == 0).all())
