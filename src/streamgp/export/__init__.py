"""Sparse GPs as files of C or NumPy, which go on learning without torch, and the states that these send back."""

from streamgp.export.description import describe
from streamgp.export.state import read_state
from streamgp.export.writing import write_source

__all__ = ["describe", "read_state", "write_source"]
