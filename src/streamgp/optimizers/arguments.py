"""The arguments of an optimizer: a space, a kernel and objectives, as users write them."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from gpytorch.kernels import Kernel

from streamgp.acquisition import AbstractRule, AbstractSpace
from streamgp.acquisition.rules.names import OPTIMIZER_RULES
from streamgp.errors import ArgumentTypeError, OptionError, UnsupportedError
from streamgp.gp.named_kernels import make_kernel
from streamgp.loops import Box, Constraint, LinearConstraint, Objective, ParameterSpace
from streamgp.loops.settings import check_kernel

__all__ = ["check_combination", "read_kernel", "read_objectives", "read_space"]


def read_space(bounds: Any, input_constraints: Any) -> AbstractSpace:
    """A space of named parameters, a box, or one of the user's own."""
    if isinstance(input_constraints, str) or not isinstance(input_constraints, Sequence):
        input_constraints = (input_constraints,)
    for one in input_constraints:
        if not isinstance(one, LinearConstraint):
            raise ArgumentTypeError(
                f"input_constraints must be a list of streamgp.LinearConstraint, but has {one!r}. Write "
                "[streamgp.LinearConstraint({'a': 1.0, 'b': 2.0}, upper=0.5)] for a + 2 b <= 0.5."
            )
    if isinstance(bounds, Mapping):
        return ParameterSpace(bounds, tuple(input_constraints))
    if input_constraints:
        raise OptionError(
            "input_constraints are between parameters with names. Make the optimizer with a dictionary of parameters, "
            "such as {'water': streamgp.Real(0, 1), 'ethanol': streamgp.Real(0, 1)}."
        )
    return bounds if isinstance(bounds, AbstractSpace) else Box.from_bounds(bounds)


def read_kernel(kernel: Any, num_dims: int) -> Kernel | None:
    """A kernel for the unit cube, which may be given by name."""
    if isinstance(kernel, str):
        ends = torch.zeros(num_dims, dtype=torch.float64)
        kernel = make_kernel(kernel, ends, ends + 1.0)
    return check_kernel(kernel, num_dims)


def read_objectives(objectives: Any, default: Objective) -> tuple[Objective, ...]:
    """Several objectives, or the one that the other arguments describe."""
    if objectives is not None and (default.likelihood, default.maximize) != (Objective.likelihood, Objective.maximize):
        raise OptionError("Give maximize and likelihood to each of the objectives, instead of to the optimizer.")
    wanted = (default,) if objectives is None else tuple(objectives)
    if not wanted or not all(isinstance(one, Objective) for one in wanted):
        raise ArgumentTypeError(
            "objectives must be a list of streamgp.Objective, such as [streamgp.Objective('yield'), "
            f"streamgp.Objective('waste', maximize=False)], but is {objectives!r}."
        )
    if len({one.name for one in wanted}) < len(wanted):
        raise OptionError(f"Objectives need different names, but have {[one.name for one in wanted]}.")
    for one in wanted:
        one.outcome.check_constants(None)
        if len(wanted) > 1 and one.outcome.likelihood.num_inputs != 1:
            raise UnsupportedError("Comparisons cannot be one of several objectives. Make an optimizer for them alone.")
    return wanted


def check_combination(
    objectives: tuple[Objective, ...], constraints: tuple[Constraint, ...], rule: AbstractRule
) -> None:
    """Refuse options that make no sense together."""
    objective = objectives[0]
    if len(objectives) > 1 and not rule.knows_objectives:
        known = [repr(name) for name, one in OPTIMIZER_RULES.items() if one.knows_objectives]
        raise UnsupportedError(
            f"The rule {type(rule).__name__} knows one objective, but there are {len(objectives)}. Those for several "
            f"are {', '.join(known)}."
        )
    is_preference = objective.outcome.likelihood.num_inputs != 1
    if is_preference and constraints:
        raise UnsupportedError(
            "Comparisons cannot be combined with constraints, as no outcome is observed at a point. "
            "Leave the constraints out."
        )
    if is_preference and not objective.maximize:
        raise UnsupportedError(
            "What is preferred has the larger utility, which cannot be minimized. Swap winners and losers instead."
        )
    if constraints and not rule.knows_constraints:
        known = [repr(name) for name, one in OPTIMIZER_RULES.items() if one.knows_constraints]
        raise UnsupportedError(
            f"The rule {type(rule).__name__} knows no constraints. Those that do are {', '.join(known)}."
        )
