"""Pool learners from files of format version 1: data, settings and what was pending; the model is fitted again."""

from dataclasses import replace
from typing import Any

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from streamgp.likelihoods import AbstractLikelihood
from streamgp.loops.settings import Training
from streamgp.pools.learner import PoolLearner
from streamgp.storage import reads_version_1
from streamgp.storage.registry import register_reader
from streamgp.storage.version1 import likelihood_of, module_of, object_of, plain, tensor_at

__all__: list[str] = []


def _read_learner(
    pool: tuple[Tensor, Tensor, Tensor | None],
    options: dict[str, Any],
    likelihood: AbstractLikelihood,
    name: str | None,
    training: dict[str, Any],
    kernel: Kernel | None,
    told: tuple[Tensor, Tensor, Tensor],
    pending: Tensor,
    counters: dict[str, Any],
) -> PoolLearner:
    inputs, weights, targets = pool
    learner = PoolLearner(
        inputs,
        likelihood=name or likelihood,
        weights=weights,
        targets=targets,
        kernel=kernel,
        training=Training(**training),
        **options,
    )
    members, y, constants = told
    has_constants = bool(torch.isfinite(constants).all()) and constants.shape == y.shape
    state = learner._state
    rows = replace(
        state.observations,
        points=members,
        y=y.reshape(-1, 1),
        constants=constants.reshape(-1, 1) if has_constants else torch.full_like(y, torch.nan).reshape(-1, 1),
    )
    return PoolLearner.from_parts(learner._settings, replace(state, observations=rows, pending=pending, **counters))


register_reader("pools.version1.PoolLearner", _read_learner)


@reads_version_1("streamgp.PoolLearner")
def _upgrade(description: dict[str, Any]) -> Any:
    settings, names = description["settings"], description["tensors"]
    options = ("acquisition", "threshold", "is_clipped", "num_initial", "num_inducing", "refit", "standardize", "seed")
    kernel = settings["kernel"]
    fields = {
        "pool": [tensor_at("inputs"), tensor_at("weights"), tensor_at("targets") if "targets" in names else None],
        "options": plain({option: settings[option] for option in options}),
        "likelihood": likelihood_of(settings["likelihood"]),
        "name": settings["name"],
        "training": plain(settings["training"]),
        "kernel": kernel and module_of(kernel, "kernel", "kernel", names, is_frozen=False),
        "told": [tensor_at(f"told.{part}") for part in ("members", "y", "constants")],
        "pending": tensor_at("pending"),
        "counters": plain(description["counters"]),
    }
    return object_of("pools.version1.PoolLearner", fields)
