"""Saving an optimizer: all that its suggestions depend on, in one file without pickle."""

import os
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from gpytorch.kernels import Kernel
from torch import Tensor

from streamgp.conditioning import SparseGP
from streamgp.gp.archive import parts_of, read_archive, write_archive
from streamgp.gp.learnable_kernel import describe_learnable_kernel, rebuild_learnable_kernel
from streamgp.gp.storage import describe_process, rebuild_process
from streamgp.likelihoods.description import describe_likelihood, rebuild_likelihood
from streamgp.optimizers.box import Box
from streamgp.optimizers.outcomes import Constraint, Outcome, Units
from streamgp.optimizers.settings import Search, Settings
from streamgp.optimizers.state import State
from streamgp.optimizers.surrogate import Surrogate
from streamgp.training import FitInfo, FitResult

__all__ = ["load_optimizer", "save_optimizer"]

Description = dict[str, Any]
Tensors = dict[str, Tensor]

_FORMAT = "streamgp.Optimizer"
_VERSION = 1
_OPTIONS = ("maximize", "acquisition", "num_initial", "num_inducing", "refit", "seed")
_TABLES = ("X", "y", "pairs", "pending")
_COUNTERS = ("num_designed", "num_asks")


def save_optimizer(state: State, settings: Settings, path: str | os.PathLike[str]) -> None:
    """Write to a file."""
    described, tensors = _describe_settings(settings)
    description: Description = {
        "format": _FORMAT,
        "version": _VERSION,
        "settings": described,
        "counters": {name: getattr(state, name) for name in _COUNTERS},
        "surrogate": None,
    }
    tensors |= {name: getattr(state, name) for name in _TABLES}
    if state.surrogate is not None:
        description["surrogate"], more = _describe_surrogate(state.surrogate)
        tensors |= more
    write_archive(path, description, tensors)


def load_optimizer(path: str | os.PathLike[str], *, kernel: Kernel | None) -> tuple[State, Settings]:
    """Read what `save_optimizer` wrote.

    Args:
        path: The file.
        kernel: A kernel of the structure that was saved, where it cannot be rebuilt.
    """
    description, tensors = read_archive(path, format=_FORMAT, version=_VERSION)
    with parts_of(path, "an optimizer"):
        settings = _rebuild_settings(description["settings"], tensors, kernel)
        surrogate = None
        if description["surrogate"] is not None:
            surrogate = _rebuild_surrogate(description["surrogate"], tensors, kernel, name=str(path))
        tables: Any = {name: tensors[name] for name in _TABLES}
        counters: Any = {name: int(description["counters"][name]) for name in _COUNTERS}
        state = State(**tables, **counters, surrogate=surrogate)
    return state, settings


def _describe_settings(settings: Settings) -> tuple[Description, Tensors]:
    described: Description = {name: getattr(settings, name) for name in _OPTIONS}
    described["search"] = asdict(settings.search)
    described["objective"] = _describe_outcome(settings.objective)
    described["constraints"] = [
        {"upper": one.upper, "lower": one.lower, "name": one.name, "outcome": _describe_outcome(one.outcome)}
        for one in settings.constraints
    ]
    described["kernel"] = None
    tensors = {"lower": settings.box.lower, "upper": settings.box.upper}
    if settings.kernel is not None:
        described["kernel"], values = describe_learnable_kernel(settings.kernel)
        tensors |= {f"kernel.{name}": value for name, value in values.items()}
    return described, tensors


def _rebuild_settings(described: Description, tensors: Tensors, kernel: Kernel | None) -> Settings:
    constraints = tuple(
        Constraint(one["upper"], one["lower"], _given(_rebuild_outcome(one["outcome"])), one["name"])
        for one in described["constraints"]
    )
    saved = described["kernel"]
    return Settings(
        box=Box(tensors["lower"], tensors["upper"]),
        objective=_rebuild_outcome(described["objective"]),
        constraints=constraints,
        kernel=None if saved is None else rebuild_learnable_kernel(saved, _part("kernel", tensors), given=kernel),
        search=Search(**described["search"]),
        **{name: described[name] for name in _OPTIONS},
    )


def _describe_outcome(outcome: Outcome) -> Description:
    name = outcome.name
    return {"name": name} if name is not None else {"likelihood": describe_likelihood(outcome.likelihood)}


def _rebuild_outcome(described: Mapping[str, Any]) -> Outcome:
    return Outcome.read(described["name"] if "name" in described else rebuild_likelihood(described["likelihood"]))


def _given(outcome: Outcome) -> Any:
    """What a user passes for an outcome."""
    return outcome.likelihood if outcome.name is None else outcome.name


def _describe_surrogate(surrogate: Surrogate) -> tuple[Description, Tensors]:
    tensors: Tensors = {}
    results = []
    for j, result in enumerate(surrogate.results):
        process, values = describe_process(result.gp.process)
        tensors |= {f"gp{j}.{name}": value for name, value in values.items()}
        results.append(
            {
                "process": process,
                "likelihood": describe_likelihood(result.likelihood),
                "info": asdict(result.info),
                "frozen": list(result.frozen),
            }
        )
    described = {
        "results": results,
        "units": [asdict(one) for one in surrogate.units],
        "num_fitted": surrogate.num_fitted,
        "num_cold": surrogate.num_cold,
    }
    return described, tensors


def _rebuild_surrogate(described: Description, tensors: Tensors, kernel: Kernel | None, *, name: str) -> Surrogate:
    results = []
    for j, one in enumerate(described["results"]):
        process = rebuild_process(
            one["process"], _part(f"gp{j}", tensors), kernel=kernel, mean=None, device=None, name=name
        )
        info: Any = {key: tuple(value) if isinstance(value, list) else value for key, value in one["info"].items()}
        results.append(
            FitResult(
                SparseGP(process),
                rebuild_likelihood(one["likelihood"]),
                FitInfo(**info),
                frozen=tuple(one["frozen"]),
            )
        )
    units = tuple(Units(**one) for one in described["units"])
    return Surrogate(tuple(results), units, int(described["num_fitted"]), int(described["num_cold"]))


def _part(prefix: str, tensors: Tensors) -> Tensors:
    start = f"{prefix}."
    return {name.removeprefix(start): value for name, value in tensors.items() if name.startswith(start)}
