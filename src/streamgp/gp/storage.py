"""Saving a sparse posterior: tensors and a JSON description in one file, without pickle."""

import io
import json
import os
import tempfile
import zipfile
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gpytorch.kernels import Kernel
from gpytorch.means import Mean
from torch import Tensor
from torch.nn import Module

from streamgp.errors import FileFormatError, UnsupportedError
from streamgp.gp.description import describe_module, rebuild_module
from streamgp.gp.prior import Prior
from streamgp.gp.sparse import SparseProcess

__all__ = ["load_process", "save_process"]

_FORMAT = "streamgp.SparseGP"
_VERSION = 1
_TENSORS = ("inducing_points", "whitened_mean", "whitened_root")


def save_process(process: SparseProcess, path: str | os.PathLike[str]) -> None:
    """Write a sparse posterior to a file: first under a temporary name, then renamed, so that no half file remains."""
    modules = {"kernel": process.prior.kernel, "mean": process.prior.mean_function}
    tensors = {name: getattr(process, name) for name in _TENSORS}
    for prefix, module in modules.items():
        tensors |= {f"{prefix}.{key}": value for key, value in _state(module).items()}
    description = {
        "format": _FORMAT,
        "version": _VERSION,
        "jitter": process.jitter,
        "modules": {
            prefix: {"class": type(module).__name__, "description": describe_module(module)}
            for prefix, module in modules.items()
        },
        "tensors": sorted(tensors),
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("description.json", json.dumps(description, indent=1))
        for name, tensor in tensors.items():
            part = io.BytesIO()
            np.save(part, tensor.detach().cpu().contiguous().numpy(), allow_pickle=False)
            archive.writestr(f"{name}.npy", part.getvalue())
    _write_atomically(Path(path), buffer.getvalue())


def load_process(
    path: str | os.PathLike[str], *, kernel: Kernel | None, mean: Mean | None, device: torch.device | str | None
) -> SparseProcess:
    """Read what `save_process` wrote; kernels and means not known by name are passed in."""
    description, tensors = _read(Path(path))
    given = {"kernel": kernel, "mean": mean}
    modules = {prefix: _restore(prefix, given[prefix], description, tensors) for prefix in given}
    Z, m, R = (tensors[name].to(device or "cpu") for name in _TENSORS)
    if not (Z.dim() >= 2 and m.shape == Z.shape[:-1] and R.shape == (*m.shape, m.shape[-1])):
        raise FileFormatError(
            f"{path} holds tensors of shapes {tuple(Z.shape)}, {tuple(m.shape)} and {tuple(R.shape)} that do not fit "
            "together. The file is damaged; save the model again."
        )
    return SparseProcess(
        Prior.snapshot(modules["kernel"], modules["mean"], like=Z), Z, m, R, float(description["jitter"])
    )


def _restore(prefix: str, given: Module | None, description: dict[str, Any], tensors: dict[str, Tensor]) -> Module:
    saved = description["modules"][prefix]
    if given is None and saved["description"] is None:
        raise UnsupportedError(
            f"The file was saved with a {prefix} of class {saved['class']}, which cannot be rebuilt by name. "
            f"Pass one of the same structure: streamgp.load(path, {prefix}=...). Its values are then read from it."
        )
    module = deepcopy(given) if given is not None else rebuild_module(saved["description"])
    state = {key.removeprefix(f"{prefix}."): value for key, value in tensors.items() if key.startswith(f"{prefix}.")}
    expected = _state(module)
    if {key: tuple(value.shape) for key, value in expected.items()} != {k: tuple(v.shape) for k, v in state.items()}:
        raise FileFormatError(
            f"The {prefix} has the parameters {sorted(expected)}, but the file holds {sorted(state)} or other shapes. "
            f"Pass a {prefix} of the structure that was saved, a {saved['class']}."
        )
    dtype = tensors["inducing_points"].dtype
    module.to(dtype).load_state_dict(state, strict=False)
    return module


def _state(module: Module) -> dict[str, Tensor]:
    """Parameters and buffers that predictions depend on; priors of hyperparameters are left out."""
    return {key: value for key, value in module.state_dict().items() if "_prior." not in key}


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    if not path.is_file():
        raise FileFormatError(f"There is no file {path}. Check the path; it is the one that was given to save.")
    try:
        with zipfile.ZipFile(path) as archive:
            description = json.loads(archive.read("description.json"))
            _check_format(path, description)
            tensors = {
                name: torch.from_numpy(np.load(io.BytesIO(archive.read(f"{name}.npy")), allow_pickle=False))
                for name in description["tensors"]
            }
            _ = description["jitter"], description["modules"]["kernel"], description["modules"]["mean"]
            missing = [name for name in _TENSORS if name not in tensors]
    except FileFormatError:
        raise
    except Exception as error:  # whatever a damaged zip, JSON or array raises, it means one thing to the user
        raise FileFormatError(
            f"{path} is damaged or was not written by streamgp ({type(error).__name__}: {error}). Save the model again."
        ) from error
    if missing:
        raise FileFormatError(f"{path} lacks the tensors {missing}. The file is damaged; save the model again.")
    return description, tensors


def _check_format(path: Path, description: dict[str, Any]) -> None:
    if description.get("format") != _FORMAT:
        raise FileFormatError(f"{path} does not hold a {_FORMAT}, but {description.get('format')!r}.")
    if description.get("version") != _VERSION:
        raise FileFormatError(
            f"{path} has format version {description.get('version')!r}, but this version of streamgp reads {_VERSION}. "
            "Load it with the version that wrote it, or upgrade streamgp."
        )


def _write_atomically(path: Path, content: bytes) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
