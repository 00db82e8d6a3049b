"""Conditioning: sparse GPs that take in new observations, exactly or in constant size."""

from streamgp.conditioning.absorb import AbsorbInfo
from streamgp.conditioning.abstract_gp import AbstractGP
from streamgp.conditioning.conditioned_gp import ConditionedGP
from streamgp.conditioning.importing import from_gpytorch, import_state
from streamgp.conditioning.merging import merge
from streamgp.conditioning.multi_output import ConditionedMultiOutputGP, MultiOutputGP
from streamgp.conditioning.sparse_gp import SparseGP

__all__ = [
    "AbsorbInfo",
    "AbstractGP",
    "ConditionedGP",
    "ConditionedMultiOutputGP",
    "MultiOutputGP",
    "SparseGP",
    "from_gpytorch",
    "import_state",
    "merge",
]
