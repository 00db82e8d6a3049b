"""`streamgp demo`: four scenes, each made from a seed, and one picture of all."""

import time
import warnings
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure
from rich.console import Console
from rich.progress import track

from streamgp.cli.demo.bookings import play_bookings
from streamgp.cli.demo.conditioning import play_conditioning
from streamgp.cli.demo.parts import play_parts
from streamgp.cli.demo.scene import AbstractScene
from streamgp.cli.demo.tuning import play_tuning
from streamgp.cli.pictures import save_figure
from streamgp.errors import StreamGPWarning

__all__ = ["run_demo"]

_TITLES = {
    "conditioning": "Condition on new data, without refitting",
    "bookings": "Learn a stream of counts",
    "parts": "Learn a stream of classes that drifts",
    "tuning": "Decide: Bayesian optimization",
}


def run_demo(*, output: Path, seed: int = 0, is_quick: bool = False, console: Console | None = None) -> None:
    """Play all scenes, say what happened, and draw it.

    Args:
        output: Where the picture goes.
        seed: Seed of the data.
        is_quick: Whether to play short versions.
        console: Where the text goes; standard output if None.
    """
    # The matrices are small: on a busy machine with two cores, a second thread made fits five times slower.
    torch.set_num_threads(1)
    console = Console() if console is None else console
    began = time.perf_counter()
    with warnings.catch_warnings():
        # That the day, an input of the bookings, leaves the range of the warm-up is as it should be.
        warnings.simplefilter("ignore", StreamGPWarning)
        scenes = _play(seed, is_quick=is_quick, console=console)
    save_figure(_draw(scenes), output)
    console.print()
    for name, scene in scenes.items():
        console.print(f"[bold]{_TITLES[name]}.[/bold] {scene.sentences()}\n", highlight=False)
    console.print(f"All of it took {time.perf_counter() - began:.0f} s on one core.", highlight=False)
    console.print(f"Picture: {output}", soft_wrap=True, highlight=False)


def _play(seed: int, *, is_quick: bool, console: Console) -> dict[str, AbstractScene]:
    width = max(map(len, _TITLES.values()))

    def follow(name: str) -> Any:
        return partial(_follow, description=_TITLES[name].ljust(width), console=console)

    return {
        "conditioning": play_conditioning(seed=seed, track=follow("conditioning")),
        "bookings": play_bookings(seed=seed, num_weeks=2 if is_quick else 6, track=follow("bookings")),
        "parts": play_parts(seed=seed, num_parts=100 if is_quick else 1200, track=follow("parts")),
        "tuning": play_tuning(seed=seed, num_tries=7 if is_quick else 24, track=follow("tuning")),
    }


def _follow(steps: Sequence[Any], *, description: str, console: Console) -> Iterable[Any]:
    return track(steps, description=description, console=console)


def _draw(scenes: dict[str, AbstractScene]) -> Figure:
    """Draw each scene into a strip of its own, the last two side by side."""
    figure = Figure(figsize=(15, 12.6), layout="constrained")
    top, middle, bottom = figure.subfigures(3, 1, height_ratios=(1.0, 0.95, 1.05), hspace=0.03, squeeze=False)[:, 0]
    bottom_left, bottom_right = bottom.subfigures(1, 2, wspace=0.03)
    places = {
        "conditioning": (top, (1, 1)),
        "bookings": (middle, (3, 1)),
        "parts": (bottom_left, (1, 1)),
        "tuning": (bottom_right, (1, 1)),
    }
    for name, (place, widths) in places.items():
        scenes[name].draw(*place.subplots(1, 2, width_ratios=widths))
        place.suptitle(_TITLES[name], fontsize=14, fontweight="bold")
    return figure
