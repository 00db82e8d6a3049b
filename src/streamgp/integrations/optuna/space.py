"""A search space of Optuna as one of ours."""

from collections.abc import Mapping

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from streamgp.errors import UnsupportedError
from streamgp.loops import Categorical, Integer, ParameterSpace, Real
from streamgp.loops.abstract_parameter import AbstractParameter

__all__ = ["read_space"]


def read_space(search_space: Mapping[str, BaseDistribution]) -> ParameterSpace:
    """Lay out the parameters of Optuna, all of which have more than one value."""
    return ParameterSpace({name: _read_parameter(one) for name, one in search_space.items()})


def _read_parameter(distribution: BaseDistribution) -> AbstractParameter:
    if isinstance(distribution, CategoricalDistribution):
        return Categorical(distribution.choices)
    if isinstance(distribution, FloatDistribution):
        return Real(distribution.low, distribution.high, log=distribution.log, step=distribution.step)
    if isinstance(distribution, IntDistribution):
        return Integer(distribution.low, distribution.high, log=distribution.log, step=distribution.step)
    raise UnsupportedError(
        f"Parameters are floats, integers or categories, but one has a {type(distribution).__name__}. "
        "Use suggest_float, suggest_int or suggest_categorical."
    )
