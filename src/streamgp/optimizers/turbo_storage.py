"""Saving a TuRBO optimizer: all that its suggestions depend on, in one file without pickle."""

import os
from dataclasses import asdict
from typing import Any

from torch import Tensor

from streamgp.gp.archive import parts_of, read_archive, write_archive
from streamgp.likelihoods.description import describe_likelihood, rebuild_likelihood
from streamgp.optimizers.box import Box
from streamgp.optimizers.outcomes import Outcome
from streamgp.optimizers.trust_region import Region, RegionRules
from streamgp.optimizers.turbo_models import Hyperparameters
from streamgp.optimizers.turbo_settings import TurboSettings
from streamgp.optimizers.turbo_state import TurboState

__all__ = ["load_turbo", "save_turbo"]

_FORMAT = "streamgp.TurboOptimizer"
_VERSION = 1
_OPTIONS = (
    "maximize",
    "model",
    "acquisition",
    "objective",
    "num_inducing",
    "num_initial",
    "num_candidates",
    "depth",
    "num_paths",
    "seed",
)
_TABLES = ("X", "y", "run", "lengths")
_COUNTERS = ("num_runs", "num_designed", "num_asks")
_FITS = ("start", "fitted")


def save_turbo(state: TurboState, settings: TurboSettings, path: str | os.PathLike[str]) -> None:
    """Write to a file."""
    name = settings.outcome.name
    # JSON has no infinity, which the best value is before any data.
    region = {key: str(value) if key == "best" else value for key, value in asdict(state.region).items()}
    description: dict[str, Any] = {
        "format": _FORMAT,
        "version": _VERSION,
        "options": {option: getattr(settings, option) for option in _OPTIONS},
        "rules": asdict(settings.rules),
        "likelihood": name if name is not None else describe_likelihood(settings.outcome.likelihood),
        "counters": {counter: getattr(state, counter) for counter in _COUNTERS},
        "region": region,
        "fits": [fit for fit in _FITS if getattr(state, fit) is not None],
    }
    tensors = {"lower": settings.box.lower, "upper": settings.box.upper}
    tensors |= {table: getattr(state, table) for table in _TABLES}
    for fit in description["fits"]:
        tensors |= _hyperparameter_tensors(fit, getattr(state, fit))
    write_archive(path, description, tensors)


def load_turbo(path: str | os.PathLike[str]) -> tuple[TurboState, TurboSettings]:
    """Read what `save_turbo` wrote."""
    description, tensors = read_archive(path, format=_FORMAT, version=_VERSION)
    with parts_of(path, "an optimizer"):
        likelihood = description["likelihood"]
        settings = TurboSettings(
            box=Box(tensors["lower"], tensors["upper"]),
            outcome=Outcome.read(likelihood if isinstance(likelihood, str) else rebuild_likelihood(likelihood)),
            rules=RegionRules(**description["rules"]),
            **{option: description["options"][option] for option in _OPTIONS},
        )
        region = description["region"]
        parts: dict[str, Any] = {table: tensors[table] for table in _TABLES}
        parts |= {counter: int(description["counters"][counter]) for counter in _COUNTERS}
        parts |= {fit: _hyperparameters(fit, tensors) for fit in description["fits"]}
        state = TurboState(**parts, region=Region(**{**region, "best": float(region["best"])}))
    return state, settings


def _hyperparameter_tensors(prefix: str, values: Hyperparameters) -> dict[str, Tensor]:
    named = {"lengthscale": values.lengthscale, "outputscale": values.outputscale, "constant": values.constant}
    named |= {f"likelihood.{name}": value for name, value in values.likelihood.items()}
    return {f"{prefix}.{name}": value for name, value in named.items()}


def _hyperparameters(prefix: str, tensors: dict[str, Tensor]) -> Hyperparameters:
    likelihood = f"{prefix}.likelihood."
    return Hyperparameters(
        tensors[f"{prefix}.lengthscale"],
        tensors[f"{prefix}.outputscale"],
        tensors[f"{prefix}.constant"],
        {name.removeprefix(likelihood): value for name, value in tensors.items() if name.startswith(likelihood)},
    )
