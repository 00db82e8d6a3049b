"""A study that takes no time, to test what runs studies."""

import os
import signal
import time
from dataclasses import dataclass

import torch

from paper.schema.study import Study, UnitOutcome

__all__ = ["STUDY", "TinySettings"]


@dataclass(frozen=True)
class TinySettings:
    """Settings of the tiny study.

    Attributes:
        pause: Seconds that a unit takes.
        sizes: Numbers of draws.
        label: A text.
    """

    pause: float
    sizes: tuple[int, ...]
    label: str


def _run(problem: str, method: str, seed: int, settings: TinySettings) -> UnitOutcome:
    """Draw numbers; some methods fail in one way or another."""
    time.sleep(settings.pause)
    if method == "raises":
        raise ArithmeticError(f"seed {seed} has no square root")
    if method == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    draws = [round(float(torch.rand(size).sum()), 4) for size in settings.sizes]
    return {
        "draws": [float("nan")] if method == "nan" else draws,
        "problem": problem,
        "label": settings.label,
    } | ({"process": os.getpid(), "num_threads": torch.get_num_threads()} if method == "process" else {})


STUDY = Study(
    name="tiny",
    problems={"left": "One problem", "right": "Another one"},
    methods={
        "sum": "Sums",
        "process": "Sums, and where they were made",
        "raises": "Always fails",
        "dies": "Is killed",
        "nan": "Not a number",
    },
    settings=TinySettings,
    run=_run,
)
