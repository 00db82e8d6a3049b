"""Optimizers from files of format version 1: data, settings and what was pending; the model is fitted again."""

from dataclasses import fields, replace
from typing import Any

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from streamgp.acquisition.rules.sampling import LookaheadThompson, Thompson
from streamgp.acquisition.rules.trust_region_rule import RegionMemory
from streamgp.acquisition.search import Search
from streamgp.acquisition.trust_region import Region, RegionRules
from streamgp.loops.outcomes import Constraint
from streamgp.optimizers.optimizer import Optimizer
from streamgp.optimizers.turbo import TurboOptimizer
from streamgp.storage import reads_version_1
from streamgp.storage.registry import register_reader
from streamgp.storage.version1 import likelihood_of, module_of, object_of, plain, tensor_at

__all__: list[str] = []

_RULES = {"ts": "thompson", "lts": "lookahead_thompson"}


def _read_optimizer(
    bounds: tuple[Tensor, Tensor],
    options: dict[str, Any],
    likelihood: Any,
    constraints: tuple[Any, ...],
    search: dict[str, Any],
    kernel: Kernel | None,
    data: tuple[Tensor, Tensor, Tensor, Tensor],
    counters: dict[str, Any],
) -> Optimizer:
    X, y, pairs, pending = data
    rule = options.pop("acquisition")
    optimizer = Optimizer(
        torch.stack(bounds),
        likelihood=likelihood,
        constraints=[Constraint(upper, lower, outcome, name) for upper, lower, outcome, name in constraints],
        acquisition=_RULES.get(rule, rule),
        search=Search(**{each.name: search[each.name] for each in fields(Search) if each.name in search}),
        kernel=kernel,
        **options,
    )
    state, settings = optimizer._state, optimizer._settings
    told = replace(
        state.observations,
        points=X,
        y=y,
        constants=torch.full_like(y, torch.nan),
        pairs=pairs.reshape(-1, 2, X.shape[-1]),
    )
    return Optimizer.from_parts(settings, replace(state, observations=told, pending=pending, **counters))


def _read_turbo(
    bounds: tuple[Tensor, Tensor],
    options: dict[str, Any],
    likelihood: Any,
    rules: dict[str, Any],
    region: dict[str, Any],
    data: tuple[Tensor, Tensor, Tensor, Tensor],
    counters: dict[str, Any],
) -> TurboOptimizer:
    X, y, runs, lengths = data
    rule = _RULES.get(options.pop("acquisition"), "thompson")
    depth, num_paths, num_candidates = (options.pop(name) for name in ("depth", "num_paths", "num_candidates"))
    sampling = Thompson(num_candidates) if rule == "thompson" else LookaheadThompson(num_candidates, depth, num_paths)
    optimizer = TurboOptimizer(
        torch.stack(bounds), likelihood=likelihood, acquisition=sampling, rules=RegionRules(**rules), **options
    )
    state, settings = optimizer._state, optimizer._settings
    column = y.reshape(-1, 1)
    told = replace(state.observations, points=X, y=column, constants=torch.full_like(column, torch.nan))
    memory = RegionMemory(Region(**region), counters.pop("num_runs"), runs, lengths)
    return TurboOptimizer.from_parts(settings, replace(state, observations=told, memory=memory, **counters))


register_reader("optimizers.version1.Optimizer", _read_optimizer)
register_reader("optimizers.version1.TurboOptimizer", _read_turbo)


@reads_version_1("streamgp.Optimizer")
def _upgrade(description: dict[str, Any]) -> Any:
    settings = description["settings"]
    names = ("maximize", "acquisition", "num_initial", "num_inducing", "refit", "seed")
    kernel = settings["kernel"]
    fields = {
        "bounds": [tensor_at("lower"), tensor_at("upper")],
        "options": plain({name: settings[name] for name in names}),
        "likelihood": _outcome_of(settings["objective"]),
        "constraints": [
            [one["upper"], one["lower"], _outcome_of(one["outcome"]), one["name"]] for one in settings["constraints"]
        ],
        "search": plain(settings["search"]),
        "kernel": kernel and module_of(kernel, "kernel", "kernel", description["tensors"], is_frozen=False),
        "data": [tensor_at(name) for name in ("X", "y", "pairs", "pending")],
        "counters": plain(description["counters"]),
    }
    return object_of("optimizers.version1.Optimizer", fields)


@reads_version_1("streamgp.TurboOptimizer")
def _upgrade_turbo(description: dict[str, Any]) -> Any:
    likelihood, region = description["likelihood"], description["region"]
    fields = {
        "bounds": [tensor_at("lower"), tensor_at("upper")],
        "options": plain(description["options"]),
        "likelihood": likelihood if isinstance(likelihood, str) else likelihood_of(likelihood),
        "rules": plain(description["rules"]),
        "region": plain({**region, "best": float(region["best"])}),
        "data": [tensor_at(name) for name in ("X", "y", "run", "lengths")],
        "counters": plain(description["counters"]),
    }
    return object_of("optimizers.version1.TurboOptimizer", fields)


def _outcome_of(described: dict[str, Any]) -> Any:
    return described["name"] if "name" in described else likelihood_of(described["likelihood"])
