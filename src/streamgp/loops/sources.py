"""Sources of measurements as a user names them: a parameter of each point, and a budget to spend on them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from streamgp.acquisition import AbstractRule
from streamgp.acquisition.rules.source_rule import KnowledgePerCost
from streamgp.checks import check_positive
from streamgp.errors import ArgumentTypeError, OptionError, UnsupportedError, ValueRangeError
from streamgp.loops.abstract_parameter import AbstractParameter
from streamgp.loops.cube_space import Box
from streamgp.loops.parameters import Categorical, Real
from streamgp.loops.settings import LoopSettings
from streamgp.loops.state import LoopState
from streamgp.loops.suggest import suggest

__all__ = ["SOURCE", "ask_within", "read_sources", "sourced_parameters", "with_source"]

# The parameter that says where a point is measured.
SOURCE = "source"


def read_sources(sources: Any, target: Any) -> KnowledgePerCost:
    """Check names and costs, and make the rule of them.

    Args:
        sources: Costs by name.
        target: Name of the source that matters.
    """
    if not isinstance(sources, Mapping) or len(sources) < 2 or not all(isinstance(name, str) for name in sources):
        raise ArgumentTypeError(
            "sources must be a dictionary of at least two costs by name, such as {'simulation': 1.0, 'plant': 60.0}, "
            f"but is {sources!r}."
        )
    for name, cost in sources.items():
        if not callable(cost):
            check_positive(cost, f"the cost of source {name!r}")
    if target not in sources:
        raise OptionError(f"target must be one of the sources {', '.join(map(repr, sources))}, but is {target!r}.")
    costs = tuple(cost if callable(cost) else float(cost) for cost in sources.values())
    return KnowledgePerCost(tuple(sources), costs, list(sources).index(target))


def sourced_parameters(bounds: Any, names: tuple[str, ...]) -> dict[str, AbstractParameter]:
    """Parameters with one more, the source; the coordinates of a box are called `x0`, `x1` and so on."""
    if isinstance(bounds, Mapping):
        parameters = dict(bounds)
    else:
        box = Box.from_bounds(bounds)
        ends = zip(box.column_names, box.lower.tolist(), box.upper.tolist(), strict=True)
        parameters = {name: Real(low, high) for name, low, high in ends}
    if SOURCE in parameters:
        raise OptionError("With sources, no parameter can be called 'source'. Give yours another name.")
    return {**parameters, SOURCE: Categorical(list(names))}


def with_source(rule: AbstractRule, X: Any, source: Any) -> Any:
    """Points that say where they were measured.

    Args:
        rule: Of the loop.
        X: Points: dictionaries, a table, or rows of numbers.
        source: Name of the source, or one for each point; None where the points say so themselves.
    """
    if source is None:
        return X
    if not isinstance(rule, KnowledgePerCost):
        raise UnsupportedError("This optimizer has no sources. Make one with sources={'test': 1.0, 'plant': 60.0}.")
    if isinstance(X, Mapping):
        return {**X, SOURCE: source}
    if hasattr(X, "assign"):  # a table of pandas
        return X.assign(**{SOURCE: source})
    rows = list(X)
    if rows and not isinstance(rows[0], Mapping):
        X = [[*(row.tolist() if hasattr(row, "tolist") else row)] for row in rows]
        names = [source] * len(rows) if isinstance(source, str) else list(source)
        return [[*row, name] for row, name in zip(X, names, strict=True)]
    names = [source] * len(rows) if isinstance(source, str) else list(source)
    return [{**row, SOURCE: name} for row, name in zip(rows, names, strict=True)]


def ask_within(state: LoopState, settings: LoopSettings, budget: float) -> tuple[LoopState, Tensor]:
    """Choose measurements until nothing more can be paid for.

    Args:
        state: What is known.
        settings: Of a loop with sources.
        budget: What the measurements may cost together.
    """
    rule, left = settings.rule, check_positive(budget, "budget")
    if not isinstance(rule, KnowledgePerCost):
        raise UnsupportedError(
            "A budget is for optimizers with sources, sources={'test': 1.0, 'plant': 60.0}. Ask for a number of points."
        )
    chosen: list[Tensor] = []
    why: tuple[str, ...] = ()
    while True:
        try:
            after, point = suggest(state, replace(settings, rule=replace(rule, budget=left)), 1)
        except ValueRangeError:
            if chosen:
                break
            raise
        shown = settings.space.show(point)[0]
        left -= rule.cost(shown, rule.names.index(shown[SOURCE]))
        chosen.append(point)
        state, why = after, (*why, *after.why)
    points = torch.cat(chosen)
    return replace(state, asked=points, why=why), points
