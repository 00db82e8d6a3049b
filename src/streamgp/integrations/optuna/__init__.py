"""Optuna: a sampler whose suggestions come from sparse GPs."""

from streamgp.integrations.optuna.sampler import StreamGPSampler

__all__ = ["StreamGPSampler"]
