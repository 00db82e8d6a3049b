"""Evidence: observations of anything linear in a function, which stand wherever inputs stand."""

from streamgp.evidence.kinds import average, combine, derivative, difference, gradient, total, values
from streamgp.evidence.rows import Evidence, join

__all__ = ["Evidence", "average", "combine", "derivative", "difference", "gradient", "join", "total", "values"]
