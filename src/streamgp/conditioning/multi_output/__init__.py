"""GPs of several correlated outputs, which are one GP of inputs and outputs."""

from streamgp.conditioning.multi_output.conditioned_gp import ConditionedMultiOutputGP
from streamgp.conditioning.multi_output.gp import MultiOutputGP

__all__ = ["ConditionedMultiOutputGP", "MultiOutputGP"]
