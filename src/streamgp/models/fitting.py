"""Fitting the outputs of a model, with BoTorch's transforms around them."""

import warnings
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from botorch.models.transforms.input import InputTransform, Normalize
from botorch.models.transforms.outcome import OutcomeTransform, Standardize
from torch import Tensor

from streamgp.checks import ArrayLike, check_finite, check_float, check_matches, to_tensor
from streamgp.conditioning import SparseGP
from streamgp.errors import OptionError, ShapeError, StreamGPWarning, UnsupportedError
from streamgp.likelihoods import AbstractLikelihood, Gaussian
from streamgp.models.arguments import GP, read_likelihoods
from streamgp.models.warping import fit_with_transform, learned_names
from streamgp.training import fit
from streamgp.training.arguments import check_squares
from streamgp.training.scaling import describe_unscaled_inputs

if TYPE_CHECKING:
    from streamgp.models.frozen_model import AbstractFrozenModel

_ADVICE = "Leave input_transform at 'default', which normalizes them, or scale the inputs."

__all__ = ["Fitted", "check_training_data", "fit_outputs"]


class Fitted(NamedTuple):
    """Fitted GPs and likelihoods in the units of fitted transforms, with diagnostics of each fit."""

    gps: tuple[SparseGP, ...]
    likelihoods: tuple[AbstractLikelihood, ...]
    input_transform: torch.nn.Module | None
    outcome_transform: torch.nn.Module | None
    info: tuple[Any, ...]


def fit_outputs(
    train_X: ArrayLike,
    train_Y: ArrayLike,
    train_Yvar: ArrayLike | None,
    *,
    likelihood: str | AbstractLikelihood | Sequence[str | AbstractLikelihood | None] | None,
    input_transform: torch.nn.Module | str | None,
    outcome_transform: torch.nn.Module | str | None,
    start: "AbstractFrozenModel | None",
    options: Mapping[str, Any],
) -> Fitted:
    """Fit transforms to the data, and a sparse GP to each transformed output.

    Args:
        train_X: Inputs `(n, d)`.
        train_Y: Outcomes `(n, o)`.
        train_Yvar: Known noise variances `(n, o)`, or None.
        likelihood: One for all outputs, or one for each; None for a Gaussian with learned noise.
        input_transform: A transform, `"default"` or None.
        outcome_transform: A transform, `"default"` or None.
        start: A fitted model whose GPs are the start, and whose transforms take the place of the default ones.
        options: Of `streamgp.fit`.
    """
    if options.get("standardize", False) is not False:
        raise OptionError(
            f"standardize={options['standardize']!r} is an option of streamgp.fit alone: here, transforms give data "
            "other units. Leave it out, and leave input_transform and outcome_transform at 'default'."
        )
    options = {**options, "standardize": None}
    train_X = to_tensor(train_X, "train_X")
    train_Y = to_tensor(train_Y, "train_Y", like=train_X)
    train_Yvar = None if train_Yvar is None else to_tensor(train_Yvar, "train_Yvar", like=train_X)
    check_training_data(train_X, train_Y)
    likelihoods = read_likelihoods(likelihood, train_Y.shape[-1])
    starts: Sequence[Any] = (None,) * len(likelihoods)
    if start is not None:
        starts, input_transform, outcome_transform = _read_start(start, likelihoods, input_transform, outcome_transform)
    is_gaussian = [one is None or one.is_gaussian for one in likelihoods]
    _check_noise(train_Yvar, train_Y, is_gaussian)
    learned = learned_names(input_transform)
    _check_learnable(input_transform, learned, len(likelihoods))
    into, X = _fit_input_transform(input_transform, train_X)
    out, Y, Yvar = _fit_outcome_transform(outcome_transform, train_Y, train_Yvar, X, is_gaussian)
    how = [one if Yvar is None else Gaussian(Yvar[:, j], is_learned=False) for j, one in enumerate(likelihoods)]
    if learned:
        assert isinstance(input_transform, InputTransform)
        into, result, gp = fit_with_transform(
            input_transform, train_X, Y[:, 0], likelihood=how[0], start=starts[0], **options
        )
        return Fitted((gp,), (result.likelihood,), into, out, (result.info,))
    unscaled = describe_unscaled_inputs(X, advice=_ADVICE)
    if unscaled is not None:
        warnings.warn(unscaled, StreamGPWarning, stacklevel=3)
    results = [fit(X, Y[:, j], likelihood=one, start=starts[j], **options) for j, one in enumerate(how)]
    return Fitted(
        tuple(result.gp for result in results),
        tuple(result.likelihood for result in results),
        into,
        out,
        tuple(result.info for result in results),
    )


def check_training_data(train_X: Tensor, train_Y: Tensor) -> None:
    """Refuse data that is not `(n, d)` and `(n, o)`."""
    X, Y = check_finite(check_float(train_X, "train_X"), "train_X"), check_float(train_Y, "train_Y")
    check_matches(Y, X, "train_Y")
    if X.dim() != 2 or Y.dim() != 2 or len(X) != len(Y) or not Y.numel():
        hint = "Add the output axis with train_Y.reshape(-1, 1)." if Y.dim() == 1 else "Give one row for each input."
        raise ShapeError(
            f"train_X must have shape (n, d) and train_Y (n, o), but they have shapes {tuple(X.shape)} and "
            f"{tuple(Y.shape)}. {hint}"
        )
    check_squares(Y, "train_Y")


def _check_noise(Yvar: Tensor | None, Y: Tensor, is_gaussian: Sequence[bool]) -> None:
    if Yvar is None:
        return
    if Yvar.shape != Y.shape:
        raise ShapeError(
            f"train_Yvar must have the shape {tuple(Y.shape)} of train_Y, but has shape {tuple(Yvar.shape)}."
        )
    if not all(is_gaussian):
        raise OptionError(
            f"train_Yvar was given, but output {list(is_gaussian).index(False)} has a likelihood that is not Gaussian. "
            "Leave train_Yvar out, and give the Gaussian outputs Gaussian(noise, is_learned=False)."
        )


def _fit_input_transform(transform: torch.nn.Module | str | None, X: Tensor) -> tuple[InputTransform | None, Tensor]:
    if transform is None:
        return None, X
    if isinstance(transform, str):
        _check_default(transform, "input_transform")
        transform = Normalize(X.shape[-1])
    # A transform in evaluation mode is one that was fitted before, and stays as it is.
    fitted: Any = deepcopy(transform).to(X)
    with torch.no_grad():
        inputs = fitted(X)
    return fitted.eval(), inputs


def _check_learnable(transform: object, learned: Sequence[str], num_outputs: int) -> None:
    """Refuse to learn one transform from several outputs, each of which would have its own."""
    if learned and num_outputs > 1:
        raise UnsupportedError(
            f"The input transform {type(transform).__name__} has the parameters {', '.join(learned)}, which are "
            f"learned for one output, but there are {num_outputs}. Fit a model for each and join them in a "
            "ModelListGP; or pass the transform after transform.eval(), or with transform.requires_grad_(False), to "
            "use it as it is."
        )


def _fit_outcome_transform(
    transform: torch.nn.Module | str | None, Y: Tensor, Yvar: Tensor | None, X: Tensor, is_gaussian: Sequence[bool]
) -> tuple[OutcomeTransform | None, Tensor, Tensor | None]:
    if isinstance(transform, str):
        _check_default(transform, "outcome_transform")
        chosen = [j for j, one in enumerate(is_gaussian) if one]
        transform = Standardize(Y.shape[-1], outputs=None if all(is_gaussian) else chosen) if chosen else None
    if transform is None:
        return None, Y, Yvar
    fitted: Any = deepcopy(transform).to(Y)
    with torch.no_grad():
        targets, noise = fitted(Y, Yvar, X=X)
    return fitted.eval(), targets, noise


def _check_default(name: str, argument: str) -> None:
    if name != "default":
        raise OptionError(f"{argument} must be a transform of BoTorch, 'default' or None, but is {name!r}.")


def _read_start(
    start: "AbstractFrozenModel",
    likelihoods: Sequence[AbstractLikelihood | None],
    input_transform: torch.nn.Module | str | None,
    outcome_transform: torch.nn.Module | str | None,
) -> tuple[Sequence[GP], torch.nn.Module | str | None, torch.nn.Module | str | None]:
    """GPs to start from, and the transforms whose units they have."""
    if start.num_outputs != len(likelihoods) or not all(isinstance(gp, SparseGP) for gp in start.gps):
        raise OptionError(
            f"start must be a fitted model of {len(likelihoods)} outputs that was not conditioned since, but has "
            f"{start.num_outputs}, as {', '.join(type(gp).__name__ for gp in start.gps)}."
        )
    if input_transform == "default":
        input_transform = start._modules.get("input_transform")
    if outcome_transform == "default":
        outcome_transform = start._modules.get("outcome_transform")
    return start.gps, input_transform, outcome_transform
