"""Writing a sparse GP as one file of C or of Python with NumPy."""

import base64
import os
import re
from collections.abc import Callable, Iterable
from functools import partial
from importlib import resources
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.polynomial.hermite_e import hermegauss

from streamgp.checks import check_choice
from streamgp.errors import OptionError
from streamgp.export.description import Description, describe
from streamgp.export.state import num_state_bytes
from streamgp.gp import SparseProcess
from streamgp.storage.writing import write_atomically

__all__ = ["write_source"]

# Nodes of the expectations of a class: as many as the probit likelihood has by default.
_NUM_NODES = 32
# What C calls things in each precision. Kernels are zero beyond `FAR`, where their exponential underflows; noise and
# precisions below `LEAST` count as it, so that quotients stay finite; sites whose residual is larger than `LOOSE`
# deviations after all steps are refused.
_PRECISIONS = {
    "double": {"REAL": "double", "EPSILON": "DBL_EPSILON", "LEAST": "1e-200", "FAR": "745", "LOOSE": "1e-8"},
    "float": {"REAL": "float", "EPSILON": "FLT_EPSILON", "LEAST": "1e-30f", "FAR": "103", "LOOSE": "1e-3f"},
}
_FUNCTIONS = ("exp", "log", "sqrt", "fabs", "erfc", "floor")
_WIDTH = 110


def write_source(
    process: SparseProcess, language: str, path: str | os.PathLike[str], *, precision: str, name: str | None
) -> None:
    """Write a process as a file.

    Args:
        process: What the file knows at its start.
        language: `"c"` or `"numpy"`.
        path: Of the file.
        precision: `"double"` or `"float"`, of C; NumPy's numbers are always double.
        name: What names in C begin with; by default the name of the file.
    """
    check_choice(language, ("c", "numpy"), "language")
    check_choice(precision, tuple(_PRECISIONS), "precision")
    stem = Path(path).name.partition(".")[0]
    name = re.sub(r"\W", "_", stem) if name is None else name
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name):
        raise OptionError(
            f"name must be one that C takes, a letter followed by letters, digits and underscores, but is {name!r}. "
            "Pass another."
        )
    description = describe(process)
    if language == "c":
        file, values = "belief.c", _values_of_c(description, precision, name, Path(path).name)
    else:
        file, values = "belief.py.txt", _values_of_numpy(description, name)
    template = (resources.files("streamgp.export") / "templates" / file).read_text()
    text = re.sub(r"@([A-Z_]+)@", lambda match: values[match[1]], template)

    def write(output: BinaryIO) -> None:
        output.write(text.encode())

    write_atomically(path, write)


def _values_of_c(description: Description, precision: str, name: str, file: str) -> dict[str, str]:
    p, d = description.points.shape
    width = 4 if precision == "float" else 8
    number = partial(_number, precision=precision)
    rows, columns = np.tril_indices(p)
    nodes, weights = _nodes()

    wide = partial(_number, precision="double")

    def listed(values: Iterable[float], number: Callable[[float], str] = number) -> str:
        return _wrapped(", ".join(map(number, values)))

    def nested(matrix: Iterable[Iterable[float]]) -> str:
        return ",\n    ".join(f"{{{listed(row, wide)}}}" for row in matrix)

    functions = "".join(f"#define {each.upper()} {each}{'f' if precision == 'float' else ''}\n" for each in _FUNCTIONS)
    return {
        **_PRECISIONS[precision],
        "WORD": f"uint{8 * width}_t",
        "NAME": name,
        "MACRO": name.upper(),
        "FILE": file,
        "P": str(p),
        "D": str(d),
        "TRIANGLE": str(p * (p + 1) // 2),
        "BYTES": str(width * (2 * p + p * (p + 1) // 2)),
        "STATE_BYTES": str(num_state_bytes(p, width)),
        "PARTS": str(len(description.parts)),
        "NODES": str(_NUM_NODES),
        "FUNCTIONS": functions,
        "SUFFIX": "## f" if precision == "float" else "",
        "MEAN": number(description.mean),
        "PRIOR_VARIANCE": wide(sum(part.variance for part in description.parts)),
        "FINGERPRINT": str(description.fingerprint),
        "VARIANCES": listed((part.variance for part in description.parts), wide),
        "SMOOTHNESS": ", ".join(str(part.smoothness) for part in description.parts),
        "SCALES": nested(part.scales for part in description.parts),
        "POINTS": nested(description.points.T),
        "WHITENING": listed(description.whitening.T[np.triu_indices(p)], wide),
        "START_MEAN": listed(description.belief_mean),
        "START_FACTOR": listed(description.belief_factor[columns, rows]),
        "NODE": listed(nodes),
        "WEIGHT": listed(weights),
    }


def _values_of_numpy(description: Description, name: str) -> dict[str, str]:
    p, d = description.points.shape
    parts = ", ".join(
        f"({part.variance!r}, {part.smoothness}, np.array({part.scales.tolist()}))" for part in description.parts
    )
    nodes, weights = _nodes()
    arrays = {
        "POINTS": description.points,
        "WHITENING": description.whitening,
        "START_MEAN": description.belief_mean,
        "START_ROOT": description.belief_root,
        "NODE": nodes,
        "WEIGHT": weights,
    }
    return {
        # Bytes, as Python takes a third of a second to compile ten thousand numbers.
        **{key: base64.b64encode(array.astype("<f8").tobytes()).decode() for key, array in arrays.items()},
        "NAME": name,
        "P": str(p),
        "D": str(d),
        "STATE_BYTES": str(num_state_bytes(p, 8)),
        "MEAN": repr(description.mean),
        "PARTS": f"({parts},)",
        "FINGERPRINT": str(description.fingerprint),
    }


def _nodes() -> tuple[np.ndarray, np.ndarray]:
    nodes, weights = hermegauss(_NUM_NODES)
    return nodes, weights / weights.sum()


def _number(value: float, precision: str) -> str:
    text = f"{float(np.float32(value)):.9g}" if precision == "float" else f"{value:.17g}"
    text = text if any(mark in text for mark in ".e") else f"{text}.0"
    return f"{text}f" if precision == "float" else text


def _wrapped(text: str) -> str:
    """Break text into lines that an editor shows."""
    lines, rest = [], text
    while len(rest) > _WIDTH:
        cut = rest.rindex(" ", 0, _WIDTH)
        lines.append(rest[:cut])
        rest = rest[cut + 1 :]
    return "\n    ".join([*lines, rest])
