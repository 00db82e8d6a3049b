"""Where results were made: the processor, and versions of what computed them."""

import os
import platform
from importlib.metadata import version
from pathlib import Path

from streamgp import __version__

__all__ = ["describe_machine", "describe_software"]

_LIBRARIES = ("torch", "gpytorch", "botorch")


def describe_machine() -> str:
    """The processor and the number of its cores."""
    cores = os.cpu_count() or 1
    return f"{_processor()}, {cores} core{'s' if cores > 1 else ''}"


def describe_software() -> dict[str, str]:
    """Versions of Python and of the libraries that matter."""
    return {
        "python": platform.python_version(),
        "streamgp": __version__,
        **{name: version(name) for name in _LIBRARIES},
    }


def _processor(path: Path = Path("/proc/cpuinfo")) -> str:
    """Name of the processor; Linux alone tells its own."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return next(iter(names), platform.processor() or platform.machine())
