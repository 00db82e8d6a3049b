"""Sparse variational Gaussian processes that are conditioned on new data in closed form.

The names below are imported when they are first used, so that `import streamgp` and the command
line start at once, and BoTorch is only loaded by what needs it.
"""

import warnings
from importlib import import_module
from typing import TYPE_CHECKING

__all__ = [
    "Band",
    "Categorical",
    "ConditionedGP",
    "Constraint",
    "GPClassifier",
    "GPRegressor",
    "Hotspots",
    "Integer",
    "Learner",
    "LevelSet",
    "LinearConstraint",
    "Map",
    "MultiOutputGP",
    "Objective",
    "OnlineGP",
    "Optimizer",
    "Ordinal",
    "PoolLearner",
    "Prediction",
    "Real",
    "SparseGP",
    "Stream",
    "StreamingGPClassifier",
    "StreamingGPRegressor",
    "TurboOptimizer",
    "__version__",
    "acquisition",
    "errors",
    "evidence",
    "fit",
    "from_gpytorch",
    "import_state",
    "likelihoods",
    "load",
    "load_estimator",
    "loops",
    "merge",
    "storage",
]

__version__ = "0.1.0"

# linear_operator compiles two functions with it when it is imported, of which its users need not hear.
for _category in (DeprecationWarning, FutureWarning):
    warnings.filterwarnings("ignore", r"`torch\.jit\.script` is", _category)

# A new public name goes into three places here: `__all__`, this table, and the imports for type
# checkers. tests/test_imports.py fails if one is forgotten.
_HOMES = {
    "Learner": "streamgp.pools",
    "Map": "streamgp.acquisition",
    "LevelSet": "streamgp.acquisition",
    "Hotspots": "streamgp.acquisition",
    "Band": "streamgp.acquisition",
    "Categorical": "streamgp.loops",
    "ConditionedGP": "streamgp.conditioning",
    "Constraint": "streamgp.loops",
    "GPClassifier": "streamgp.estimators",
    "GPRegressor": "streamgp.estimators",
    "Integer": "streamgp.loops",
    "LinearConstraint": "streamgp.loops",
    "MultiOutputGP": "streamgp.conditioning",
    "Objective": "streamgp.loops",
    "OnlineGP": "streamgp.models",
    "Optimizer": "streamgp.optimizers",
    "Ordinal": "streamgp.loops",
    "PoolLearner": "streamgp.pools",
    "Prediction": "streamgp.gp",
    "Real": "streamgp.loops",
    "SparseGP": "streamgp.conditioning",
    "Stream": "streamgp.streams.stream",
    "StreamingGPClassifier": "streamgp.streams.classifier",
    "StreamingGPRegressor": "streamgp.streams.regressor",
    "TurboOptimizer": "streamgp.optimizers",
    "fit": "streamgp.training",
    "from_gpytorch": "streamgp.conditioning",
    "import_state": "streamgp.conditioning",
    "load": "streamgp.storage",
    "load_estimator": "streamgp.streams.saving",
    "merge": "streamgp.conditioning",
}
_SUBMODULES = ("acquisition", "errors", "evidence", "likelihoods", "loops", "storage")

if TYPE_CHECKING:
    from streamgp import acquisition, errors, evidence, likelihoods, loops, storage
    from streamgp.acquisition import Band, Hotspots, LevelSet, Map
    from streamgp.conditioning import ConditionedGP, MultiOutputGP, SparseGP, merge
    from streamgp.conditioning.importing import from_gpytorch, import_state
    from streamgp.estimators import GPClassifier, GPRegressor
    from streamgp.gp import Prediction
    from streamgp.loops import Categorical, Constraint, Integer, LinearConstraint, Objective, Ordinal, Real
    from streamgp.models import OnlineGP
    from streamgp.optimizers import Optimizer, TurboOptimizer
    from streamgp.pools import Learner, PoolLearner
    from streamgp.storage import load
    from streamgp.streams.classifier import StreamingGPClassifier
    from streamgp.streams.regressor import StreamingGPRegressor
    from streamgp.streams.saving import load_estimator
    from streamgp.streams.stream import Stream
    from streamgp.training.fit import fit
else:  # hidden from type checkers, which would take any name for an attribute

    def __getattr__(name: str) -> object:
        """Import a public name on first use and keep it."""
        if name in _SUBMODULES:
            return import_module(f"streamgp.{name}")
        if name not in _HOMES:
            raise AttributeError(
                f"module 'streamgp' has no attribute {name!r}. Its public names are {', '.join(sorted(__all__))}."
            )
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(__all__)
