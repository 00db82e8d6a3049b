"""What is known of a stream as what JSON can hold, and tensors: a restored learner goes on as if never saved."""

from dataclasses import asdict, fields
from typing import Any

import numpy as np
from gpytorch.kernels import Kernel
from torch import Tensor

from streamgp.conditioning import SparseGP
from streamgp.errors import FileFormatError, StreamGPError, UnsupportedError
from streamgp.gp.learnable_kernel import describe_learnable_kernel, rebuild_learnable_kernel
from streamgp.gp.storage import describe_process, rebuild_process
from streamgp.likelihoods.description import describe_likelihood, rebuild_likelihood
from streamgp.streaming.learner import StreamLearner
from streamgp.streaming.model import StreamModel
from streamgp.streaming.one_vs_rest import OneVsRest
from streamgp.streaming.refitting import RefitReport
from streamgp.streaming.rows import Rows
from streamgp.streaming.settings import StreamSettings
from streamgp.training.scaling import Scaling

__all__ = ["pack_learner", "unpack_learner"]

Description = dict[str, Any]
Tensors = dict[str, Tensor]

_COUNTERS = ("num_seen", "num_since_start", "next_refit", "num_outside")
_OPTIONS = ("num_inducing", "max_inducing", "warmup", "refit", "buffer_size", "half_life", "seed")
_SCALING = tuple(field.name for field in fields(Scaling))


def pack_learner(learner: StreamLearner | OneVsRest) -> tuple[Description, Tensors]:
    """Take a learner apart.

    Returns:
        A description that JSON can hold, and tensors by name.

    Raises:
        UnsupportedError: If its likelihood cannot be rebuilt by name, or a label is neither text nor a number.
    """
    if isinstance(learner, StreamLearner):
        return _pack_one(learner)
    settings, tensors = _pack_settings(learner.settings)
    description: Description = {"settings": settings, "classes": list(map(_plain, learner.classes)), "learners": []}
    tensors = _prefixed("settings", tensors)
    for index, each in enumerate(learner.learners):
        one, one_tensors = _pack_one(each)
        description["learners"].append(one)
        tensors |= _prefixed(str(index), one_tensors)
    return description, tensors


def unpack_learner(
    description: Description, tensors: Tensors, *, kernel: Kernel | None = None
) -> StreamLearner | OneVsRest:
    """Put a learner together again; its predictions, now and later, are the same to the last bit.

    Args:
        description: What `pack_learner` returned.
        tensors: Likewise.
        kernel: A kernel of the structure that the learner was given, where it cannot be rebuilt by name; its values
            come from the file.

    Raises:
        FileFormatError: If something is missing.
        UnsupportedError: If the kernel is to be passed, and was not.
    """
    try:
        if "classes" not in description:
            return _unpack_one(description, tensors, kernel)
        return OneVsRest(
            settings=_unpack_settings(description["settings"], _part("settings", tensors), kernel),
            classes=tuple(description["classes"]),
            learners=tuple(
                _unpack_one(one, _part(str(index), tensors), kernel)
                for index, one in enumerate(description["learners"])
            ),
        )
    except StreamGPError:
        raise
    except (KeyError, TypeError, AttributeError) as error:
        raise FileFormatError(f"The file's description of the stream is not complete: {error!r}.") from error


def _pack_one(learner: StreamLearner) -> tuple[Description, Tensors]:
    settings, settings_tensors = _pack_settings(learner.settings)
    description: Description = {
        "settings": settings,
        "counters": {name: getattr(learner, name) for name in _COUNTERS},
        "refits": [asdict(report) for report in learner.refits],
    }
    tensors = _prefixed("settings", settings_tensors)
    if learner.model is not None:
        description["model"], model_tensors = _pack_model(learner.model)
        tensors |= _prefixed("model", model_tensors)
    if learner.anchor is not None:
        description["anchor"], anchor_tensors = describe_process(learner.anchor.process)
        tensors |= _prefixed("anchor", anchor_tensors)
    if learner.buffer is not None:
        parts = learner.buffer._asdict().items()
        tensors |= {f"buffer.{name}": tensor for name, tensor in parts if tensor is not None}
    return description, tensors


def _unpack_one(description: Description, tensors: Tensors, kernel: Kernel | None) -> StreamLearner:
    settings = _unpack_settings(description["settings"], _part("settings", tensors), kernel)
    model, anchor, buffer = None, None, _part("buffer", tensors)
    if "model" in description:
        model = _unpack_model(description["model"], _part("model", tensors), kernel)
    if "anchor" in description:
        anchor = _unpack_gp(description["anchor"], _part("anchor", tensors), kernel)
    return StreamLearner(
        settings=settings,
        model=model,
        anchor=anchor,
        buffer=Rows(**buffer) if buffer else None,
        refits=tuple(RefitReport(**report) for report in description["refits"]),
        **{name: description["counters"][name] for name in _COUNTERS},
    )


def _plain(label: object) -> str | int | float:
    """A label as JSON keeps it."""
    label = label.item() if isinstance(label, np.generic) else label
    if not isinstance(label, str | int | float):
        raise UnsupportedError(
            f"The label {label!r} cannot be saved, as it is a {type(label).__name__}. Use texts or numbers as labels."
        )
    return label


def _pack_settings(settings: StreamSettings) -> tuple[Description, Tensors]:
    likelihood = settings.likelihood
    description: Description = {
        "likelihood": likelihood if isinstance(likelihood, str) else describe_likelihood(likelihood),
        "options": {name: getattr(settings, name) for name in _OPTIONS},
        "kernel": None,
    }
    if settings.kernel is None:
        return description, {}
    description["kernel"], tensors = describe_learnable_kernel(settings.kernel)
    return description, tensors


def _unpack_settings(description: Description, tensors: Tensors, kernel: Kernel | None) -> StreamSettings:
    likelihood, saved = description["likelihood"], description["kernel"]
    return StreamSettings(
        likelihood=likelihood if isinstance(likelihood, str) else rebuild_likelihood(likelihood),
        kernel=None if saved is None else rebuild_learnable_kernel(saved, tensors, given=kernel),
        **{name: description["options"][name] for name in _OPTIONS},
    )


def _pack_model(model: StreamModel) -> tuple[Description, Tensors]:
    process, tensors = describe_process(model.gp.process)
    description = {"process": process, "likelihood": describe_likelihood(model.likelihood)}
    scaling = {name: getattr(model.scaling, name) for name in _SCALING}
    return description, {
        **_prefixed("gp", tensors),
        **_prefixed("scaling", scaling),
        "lower": model.lower,
        "upper": model.upper,
    }


def _unpack_model(description: Description, tensors: Tensors, kernel: Kernel | None) -> StreamModel:
    return StreamModel(
        gp=_unpack_gp(description["process"], _part("gp", tensors), kernel),
        likelihood=rebuild_likelihood(description["likelihood"]),
        scaling=Scaling(**_part("scaling", tensors)),
        lower=tensors["lower"],
        upper=tensors["upper"],
    )


def _unpack_gp(description: Description, tensors: Tensors, kernel: Kernel | None) -> SparseGP:
    name = "The description of the stream"
    return SparseGP(rebuild_process(description, tensors, kernel=kernel, mean=None, device=None, name=name))


def _prefixed(prefix: str, tensors: Tensors) -> Tensors:
    return {f"{prefix}.{name}": tensor for name, tensor in tensors.items()}


def _part(prefix: str, tensors: Tensors) -> Tensors:
    start = f"{prefix}."
    return {name.removeprefix(start): tensor for name, tensor in tensors.items() if name.startswith(start)}
