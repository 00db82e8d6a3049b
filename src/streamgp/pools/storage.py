"""Saving a pool learner: all that its proposals depend on, in one file without pickle."""

import os
from dataclasses import asdict
from typing import Any

from gpytorch.kernels import Kernel
from torch import Tensor

from streamgp.conditioning import SparseGP
from streamgp.gp.archive import parts_of, read_archive, write_archive
from streamgp.gp.learnable_kernel import describe_learnable_kernel, rebuild_learnable_kernel
from streamgp.gp.storage import describe_process, rebuild_process
from streamgp.likelihoods.description import describe_likelihood, rebuild_likelihood
from streamgp.pools.data import Told
from streamgp.pools.model import Surrogate
from streamgp.pools.settings import Settings, Training
from streamgp.pools.state import State
from streamgp.training import FitInfo, FitResult

__all__ = ["load_learner", "save_learner"]

Description = dict[str, Any]
Tensors = dict[str, Tensor]

_FORMAT = "streamgp.PoolLearner"
_VERSION = 1
_OPTIONS = (
    "name",
    "acquisition",
    "threshold",
    "is_clipped",
    "num_initial",
    "num_inducing",
    "refit",
    "standardize",
    "seed",
)
_TABLES = ("members", "y", "constants")
_COUNTERS = ("num_designed", "num_asks")


def save_learner(state: State, settings: Settings, path: str | os.PathLike[str]) -> None:
    """Write to a file."""
    described, tensors = _describe_settings(settings)
    description: Description = {
        "format": _FORMAT,
        "version": _VERSION,
        "settings": described,
        "counters": {name: getattr(state, name) for name in _COUNTERS},
        "surrogate": None,
    }
    tensors |= {f"told.{name}": getattr(state.told, name) for name in _TABLES}
    tensors["pending"] = state.pending
    if state.surrogate is not None:
        description["surrogate"], values = _describe_surrogate(state.surrogate)
        tensors |= {f"gp.{name}": value for name, value in values.items()}
    write_archive(path, description, tensors)


def load_learner(path: str | os.PathLike[str], *, kernel: Kernel | None) -> tuple[State, Settings]:
    """Read what `save_learner` wrote.

    Args:
        path: The file.
        kernel: A kernel of the structure that was saved, where it cannot be rebuilt.
    """
    description, tensors = read_archive(path, format=_FORMAT, version=_VERSION)
    with parts_of(path, "a pool learner"):
        settings = _rebuild_settings(description["settings"], tensors, kernel)
        surrogate = None
        if description["surrogate"] is not None:
            surrogate = _rebuild_surrogate(description["surrogate"], _part("gp", tensors), kernel, name=str(path))
        counters: Any = {name: int(description["counters"][name]) for name in _COUNTERS}
        told = Told(*(tensors[f"told.{name}"] for name in _TABLES))
        state = State(told=told, pending=tensors["pending"], surrogate=surrogate, **counters)
    return state, settings


def _describe_settings(settings: Settings) -> tuple[Description, Tensors]:
    described: Description = {name: getattr(settings, name) for name in _OPTIONS}
    described["training"] = asdict(settings.training)
    described["likelihood"] = describe_likelihood(settings.likelihood)
    described["kernel"] = None
    tensors = {"inputs": settings.inputs, "weights": settings.weights}
    if settings.given_targets is not None:
        tensors["targets"] = settings.given_targets
    if settings.kernel is not None:
        described["kernel"], values = describe_learnable_kernel(settings.kernel)
        tensors |= {f"kernel.{name}": value for name, value in values.items()}
    return described, tensors


def _rebuild_settings(described: Description, tensors: Tensors, kernel: Kernel | None) -> Settings:
    saved = described["kernel"]
    return Settings(
        inputs=tensors["inputs"],
        weights=tensors["weights"],
        given_targets=tensors.get("targets"),
        likelihood=rebuild_likelihood(described["likelihood"]),
        kernel=None if saved is None else rebuild_learnable_kernel(saved, _part("kernel", tensors), given=kernel),
        training=Training(**described["training"]),
        **{name: described[name] for name in _OPTIONS},
    )


def _describe_surrogate(surrogate: Surrogate) -> tuple[Description, Tensors]:
    result = surrogate.result
    process, tensors = describe_process(result.gp.process)
    described = {
        "process": process,
        "likelihood": describe_likelihood(result.likelihood),
        "info": asdict(result.info),
        "frozen": list(result.frozen),
        "num_fitted": surrogate.num_fitted,
        "num_cold": surrogate.num_cold,
    }
    return described, tensors


def _rebuild_surrogate(described: Description, tensors: Tensors, kernel: Kernel | None, *, name: str) -> Surrogate:
    process = rebuild_process(described["process"], tensors, kernel=kernel, mean=None, device=None, name=name)
    info: Any = {key: tuple(value) if isinstance(value, list) else value for key, value in described["info"].items()}
    result = FitResult(
        SparseGP(process),
        rebuild_likelihood(described["likelihood"]),
        FitInfo(**info),
        frozen=tuple(described["frozen"]),
    )
    return Surrogate(result, int(described["num_fitted"]), int(described["num_cold"]))


def _part(prefix: str, tensors: Tensors) -> Tensors:
    start = f"{prefix}."
    return {name.removeprefix(start): value for name, value in tensors.items() if name.startswith(start)}
