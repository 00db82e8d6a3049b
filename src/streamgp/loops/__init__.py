"""Loops: a space, a model, a rule and what is known, behind ask and tell."""

from streamgp.loops.best import Best
from streamgp.loops.cube_space import AbstractCubeSpace, Box
from streamgp.loops.importance import Importance
from streamgp.loops.inspection import Inspection
from streamgp.loops.linear_constraints import LinearConstraint
from streamgp.loops.loop import AbstractLoop
from streamgp.loops.outcomes import Constraint, Objective
from streamgp.loops.parameter_space import ParameterSpace
from streamgp.loops.parameters import Categorical, Integer, Ordinal, Real
from streamgp.loops.pareto import ParetoSet
from streamgp.loops.policies import AbstractPolicy, NeighborOfBest, RepeatBest, SpaceFilling
from streamgp.loops.pool_space import PoolSpace
from streamgp.loops.prediction import ResponsePrediction
from streamgp.loops.settings import LoopSettings, SurrogateSettings, Training

__all__ = [
    "AbstractCubeSpace",
    "AbstractLoop",
    "AbstractPolicy",
    "Best",
    "Box",
    "Categorical",
    "Constraint",
    "Importance",
    "Inspection",
    "Integer",
    "LinearConstraint",
    "LoopSettings",
    "NeighborOfBest",
    "Objective",
    "Ordinal",
    "ParameterSpace",
    "ParetoSet",
    "PoolSpace",
    "Real",
    "RepeatBest",
    "ResponsePrediction",
    "SpaceFilling",
    "SurrogateSettings",
    "Training",
]
