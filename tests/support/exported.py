"""Exported files at work: C that is compiled and called, and Python that is imported, with one interface."""

import ctypes
import importlib.util
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

__all__ = ["CBelief", "NumpyBelief", "compile_c", "needs_compiler"]

_STRICT = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"]
needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler, cc")


def compile_c(source: Path, *options: str, target: Path | None = None) -> Path:
    """Compile a file, with all warnings as errors."""
    target = source.with_suffix(".so") if target is None else target
    shared = ["-shared", "-fPIC"] if target.suffix == ".so" else []
    command = ["cc", *_STRICT, *options, *shared, "-o", str(target), str(source), "-lm"]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return target


class CBelief:
    """A compiled file; refused arguments raise ValueError with the return code."""

    def __init__(self, gp, folder, *, precision="double", options=("-O2",)):
        source = folder / f"belief_{precision}.c"
        gp.export("c", source, precision=precision, name="belief")
        self.library = ctypes.CDLL(str(compile_c(source, *options)))
        self.real, self.dtype = (ctypes.c_double, np.float64) if precision == "double" else (ctypes.c_float, np.float32)
        m = gp.num_inducing
        self.num_bytes = 20 + np.dtype(self.dtype).itemsize * (m + m * (m + 1) // 2)
        self.state = (self.real * (2 * m + m * (m + 1) // 2))()
        self.library.belief_start(self.state)

    def _call(self, name, *arguments):
        converted = [
            self.real(each) if isinstance(each, float) else np.ascontiguousarray(each, self.dtype).ctypes
            if isinstance(each, np.ndarray) else each
            for each in arguments
        ]  # fmt: skip
        code = getattr(self.library, f"belief_{name}")(self.state, *converted)
        if code:
            raise ValueError(f"code {code}")

    def predict(self, x):
        moments = [self.real(), self.real()]
        self._call("predict", x, *map(ctypes.byref, moments))
        return moments[0].value, moments[1].value

    def linearize(self, x):
        moments, gradients = [self.real(), self.real()], np.zeros((2, len(x)), self.dtype)
        self._call("linearize", x, *map(ctypes.byref, moments), *(each.ctypes for each in gradients))
        return moments[0].value, moments[1].value, *gradients

    def absorb(self, x, y, noise_variance):
        self._call("absorb", x, float(y), float(noise_variance))

    def absorb_class(self, x, y):
        self._call("absorb_class", x, int(y))

    def absorb_count(self, x, y, exposure=1.0):
        self._call("absorb_count", x, float(y), float(exposure))

    def forget(self, factor):
        self._call("forget", float(factor))

    def state_out(self):
        content = ctypes.create_string_buffer(self.num_bytes)
        self.library.belief_state_out(self.state, content)
        return content.raw

    def state_in(self, content):
        self._call("state_in", content, ctypes.c_size_t(len(content)))


class NumpyBelief:
    """An imported file."""

    def __init__(self, gp, folder):
        path = folder / "belief_numpy.py"
        gp.export("numpy", path)
        spec = importlib.util.spec_from_file_location("belief_numpy", path)
        self.module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.module)
        self.belief = self.module.Belief()

    def __getattr__(self, name):
        return getattr(self.belief, name)
