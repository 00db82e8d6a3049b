"""Optuna: a sampler whose suggestions come from sparse GPs."""

from streamgp.integrations.extras import missing_package

try:
    from streamgp.integrations.optuna.sampler import StreamGPSampler
except ModuleNotFoundError as error:
    raise missing_package(error, "optuna") from error

__all__ = ["StreamGPSampler"]
