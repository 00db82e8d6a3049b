"""The model of a loop as a BoTorch model of the user's inputs and outcomes."""

from copy import deepcopy
from typing import Any, final

import torch
from botorch.models import SingleTaskGP
from botorch.models.model import Model
from botorch.models.transforms.input import AffineInputTransform
from botorch.models.transforms.outcome import OutcomeTransform, Standardize
from botorch.posteriors.transformed import TransformedPosterior
from torch import Tensor

from streamgp.loops.cube_space import Box
from streamgp.loops.exact_surrogate import ExactSurrogate
from streamgp.loops.pool_space import PoolSpace
from streamgp.loops.settings import LoopSettings
from streamgp.loops.surrogate import AbstractSurrogate
from streamgp.loops.units import OutcomeUnits
from streamgp.models import OnlineGP

__all__ = ["make_user_model"]


def make_user_model(surrogate: AbstractSurrogate, settings: LoopSettings) -> Model:
    """The model with transforms from and to the user's units.

    Real outcomes are in these units; of counts and classes, the latent function is modeled, of which `on_scale` gives
    the response. Success, if evaluations have failed, is the last output.
    """
    model, inputs = surrogate.model(), _input_transform(settings)
    if isinstance(surrogate, ExactSurrogate):
        assert isinstance(model, SingleTaskGP)
        assert inputs is not None  # exact models search a box
        return _with_transforms(model, inputs, _outcome_transform(surrogate.units, 1))
    assert isinstance(model, OnlineGP)
    outcomes = _outcome_transform(surrogate.units, model.num_outputs)
    return OnlineGP(model.gps, model.likelihoods, input_transform=inputs, outcome_transform=outcomes)


def _with_transforms(model: Any, inputs: AffineInputTransform, outcomes: OutcomeTransform | None) -> SingleTaskGP:
    """A copy of an exact GP that holds its data in the user's units, as BoTorch transforms it again."""
    model = deepcopy(model)
    model.train()
    model.input_transform = inputs
    model.set_train_data(inputs.untransform(model.train_inputs[0]), strict=False)
    if outcomes is not None:
        model.outcome_transform = outcomes
    return model.eval()


def _input_transform(settings: LoopSettings) -> AffineInputTransform | None:
    space = settings.space
    if isinstance(space, Box):
        shift, scale = space.lower, space.upper - space.lower
    elif isinstance(space, PoolSpace):
        shift, scale = space.shift_and_scale
    else:
        return None
    return AffineInputTransform(len(shift), coefficient=scale, offset=shift)


@final
class _Bent(OutcomeTransform):
    """Units that are not linear, as a transform of BoTorch: the mean is that of the user's median."""

    _is_linear = False

    def __init__(self, units: tuple[OutcomeUnits, ...]) -> None:
        super().__init__()
        self.units = units

    def forward(self, Y: Tensor, Yvar: Tensor | None = None, X: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        inside = self._columns(Y, "inside")
        return inside, None if Yvar is None else Yvar / self._columns(inside, "slope").square()

    def untransform(
        self, Y: Tensor, Yvar: Tensor | None = None, X: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        return self._columns(Y, "outside"), None if Yvar is None else Yvar * self._columns(Y, "slope").square()

    def untransform_posterior(self, posterior: Any, X: Tensor | None = None) -> TransformedPosterior:
        return TransformedPosterior(
            posterior,
            sample_transform=lambda samples: self._columns(samples, "outside"),
            mean_transform=lambda mean, variance: self._columns(mean, "outside"),
            variance_transform=lambda mean, variance: variance * self._columns(mean, "slope").square(),
        )

    def _columns(self, Y: Tensor, name: str) -> Tensor:
        return torch.stack([getattr(one, name)(Y[..., j]) for j, one in enumerate(self.units)], dim=-1)


def _outcome_transform(units: tuple[OutcomeUnits, ...], num_outputs: int) -> OutcomeTransform | None:
    if all(one == OutcomeUnits() for one in units):
        return None
    if not all(one.is_linear for one in units):
        return _Bent(units + (OutcomeUnits(),) * (num_outputs - len(units)))
    offset = [one.offset for one in units] + [0.0] * (num_outputs - len(units))
    scale = [one.scale for one in units] + [1.0] * (num_outputs - len(units))
    transform: Any = Standardize(num_outputs)
    transform.means = torch.tensor([offset], dtype=torch.float64)
    transform.stdvs = torch.tensor([scale], dtype=torch.float64)
    transform._stdvs_sq = transform.stdvs.square()
    transform._is_trained = torch.tensor(True)
    return transform.eval()
