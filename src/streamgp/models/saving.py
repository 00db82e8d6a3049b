"""A model in files and in PyTorch's `state_dict`: GPs, likelihoods and transforms."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import botorch.models.transforms.input as inputs
import botorch.models.transforms.outcome as outcomes
import torch
from torch import Tensor

from streamgp.conditioning import ConditionedGP, SparseGP
from streamgp.errors import FileFormatError
from streamgp.likelihoods import AbstractLikelihood
from streamgp.storage import register_module
from streamgp.storage.saving import from_arrays, to_arrays

if TYPE_CHECKING:
    from streamgp.models.frozen_model import AbstractFrozenModel

__all__ = ["DESCRIPTION", "STATE", "load_state", "model_fields", "model_state"]

# What the names of the GPs' and likelihoods' tensors start with in a state_dict.
STATE = "belief"
DESCRIPTION = f"{STATE}.description"

_FLAGS = ("transform_on_train", "transform_on_eval", "transform_on_fantasize")
_INDICES = {"indices": lambda transform: _listed(getattr(transform, "indices", None))}
_OUTPUTS = {"outputs": lambda transform: transform._outputs}


def model_fields(model: "AbstractFrozenModel") -> dict[str, Any]:
    """Return the fields that make up a model."""
    return {
        "gps": model.gps,
        "likelihoods": model.likelihoods,
        "input_transform": model._modules.get("input_transform"),
        "outcome_transform": model._modules.get("outcome_transform"),
        "scale": model.scale,
        "fit_info": model.fit_info,
    }


def model_state(model: "AbstractFrozenModel") -> dict[str, Tensor]:
    """All that is known of the GPs and likelihoods as tensors, by name."""
    content, arrays = to_arrays((model.gps, model.likelihoods), STATE)
    text = torch.frombuffer(bytearray(json.dumps(content).encode()), dtype=torch.uint8)
    return {DESCRIPTION: text} | {name: torch.as_tensor(value) for name, value in arrays.items()}


def load_state(
    model: "AbstractFrozenModel", state: Mapping[str, Tensor]
) -> tuple[tuple[SparseGP | ConditionedGP, ...], tuple[AbstractLikelihood | None, ...]]:
    """GPs and likelihoods from the state of a model with as many outputs.

    Args:
        model: The model that takes them over. Its kernels and means stand in where they cannot be rebuilt by name.
        state: What `model_state` returned.

    Raises:
        FileFormatError: If something is missing, or the number of outputs differs.
    """
    like = model.gps[0].process.reference
    content = json.loads(bytes(state[DESCRIPTION].cpu().tolist()))
    found = {name: value.to(like.device) for name, value in state.items()}
    if len(content[0]) != model.num_outputs:
        raise FileFormatError(
            f"The state is that of a model of {len(content[0])} outputs, but this one has {model.num_outputs}. Load it "
            "into a model of as many outputs."
        )
    gps = tuple(
        from_arrays(node, found, modules={"kernel": _prior_of(gp).kernel, "mean": _prior_of(gp).mean_function})
        for node, gp in zip(content[0], model.gps, strict=True)
    )
    return gps, from_arrays(content[1], found)


def _prior_of(gp: SparseGP | ConditionedGP) -> Any:
    return gp.process.prior if isinstance(gp, SparseGP) else gp.process.base.prior


def _listed(indices: Tensor | None) -> list[int] | None:
    return None if indices is None else indices.tolist()


def _register_transforms() -> None:
    """Let files rebuild those transforms of BoTorch that are made of numbers."""
    flags = {name: lambda transform, name=name: getattr(transform, name) for name in _FLAGS}
    size = {"d": lambda transform: transform._d}
    reverse = {"reverse": lambda transform: transform.reverse}
    register_module(
        inputs.Normalize,
        options={
            **size,
            **_INDICES,
            **flags,
            **reverse,
            "min_range": lambda transform: transform.min_range,
            "center": lambda transform: transform.center,
        },
        sizes=("d",),
    )
    register_module(
        inputs.InputStandardize,
        options={**size, **_INDICES, **flags, **reverse, "min_std": lambda transform: transform.min_std},
        sizes=("d",),
    )
    register_module(
        inputs.Warp,
        options={
            "d": lambda transform: transform._normalize._d,
            **_INDICES,
            **flags,
            **reverse,
            "eps": lambda transform: transform._eps,
        },
        sizes=("d",),
    )
    register_module(inputs.Log10, options={**_INDICES, **flags, **reverse}, batch_shape=None)
    register_module(inputs.ChainedInputTransform, parts=("*",), batch_shape=None)
    register_module(
        outcomes.Standardize,
        options={
            "m": lambda transform: transform._m,
            **_OUTPUTS,
            "min_stdv": lambda transform: transform._min_stdv,
        },
        sizes=("m",),
        batch_shape=lambda transform: transform._batch_shape,
    )
    register_module(outcomes.Log, options=_OUTPUTS, batch_shape=None)
    register_module(outcomes.Bilog, options=_OUTPUTS, batch_shape=None)
    register_module(outcomes.Power, options={"power": lambda transform: transform.power, **_OUTPUTS}, batch_shape=None)
    register_module(outcomes.ChainedOutcomeTransform, parts=("*",), batch_shape=None)


_register_transforms()
