"""Where results were made: the processor, and versions of what computed them."""

import os
import platform
import shutil
import subprocess
from importlib.metadata import version
from pathlib import Path

import torch

from streamgp import __version__

__all__ = ["describe_machine", "describe_software"]

_LIBRARIES = ("torch", "gpytorch", "linear_operator", "botorch", "numpy", "scipy", "scikit-learn")


def describe_machine() -> str:
    """The processor and the number of its cores."""
    cores = os.cpu_count() or 1
    return f"{_processor()}, {cores} core{'s' if cores > 1 else ''}"


def describe_software() -> dict[str, str]:
    """Versions of Python and of the libraries that matter, the instructions that torch uses, and the commit.

    The commit is that of a clone from which the library runs, with a plus if files have changed since.
    """
    commit = _commit(Path(__file__).parents[2])
    return {
        "python": platform.python_version(),
        "streamgp": __version__,
        **({"commit": commit} if commit else {}),
        **{name: version(name) for name in _LIBRARIES},
        "instructions": torch.backends.cpu.get_cpu_capability(),
    }


def _commit(root: Path) -> str:
    """The commit of a clone, with a plus if its sources have changed since; empty if there is none, or no git."""
    git = shutil.which("git")
    if git is None or not (root / ".git").exists():
        return ""

    def ask(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [git, "-C", str(root), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    head = ask("rev-parse", "--short=10", "HEAD").stdout.strip()
    is_changed = ask("diff", "--quiet", "HEAD", "--", "src", "paper", ":!paper/results").returncode != 0
    return f"{head}+" if head and is_changed else head


def _processor(path: Path = Path("/proc/cpuinfo")) -> str:
    """Name of the processor; Linux alone tells its own."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return next(iter(names), platform.processor() or platform.machine())
