"""A small Bayesian optimization: the settings of an oven."""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from matplotlib.axes import Axes
from torch import Tensor

from streamgp.acquisition import KnowledgeGradient, Search
from streamgp.cli.demo.scene import AbstractScene, Track
from streamgp.cli.pictures import COLORS, style_axes
from streamgp.optimizers import Optimizer

__all__ = ["TuningScene", "play_tuning", "random_search", "yield_of"]

_BOUNDS = ((150.0, 250.0), (10.0, 60.0))
_NOISE = 1.5
_NUM_INITIAL = 6
_NUM_RANDOM = 400
_NUM_STEPS = 120


@final
@dataclass(frozen=True, eq=False)
class TuningScene(AbstractScene):
    """What was tried, and what random search would have found.

    Attributes:
        X: Settings, in the order in which they were tried.
        best: The settings that are recommended at the end.
        random: Noise-free yield of the best settings so far, for runs of random search.
    """

    X: Float[Tensor, "n 2"]
    best: Float[Tensor, " 2"]
    random: Float[Tensor, "s n"]

    def sentences(self) -> str:
        n, found = len(self.X), float(yield_of(self.best.unsqueeze(0)))
        at_random = float(self.random[:, -1].median())
        temperature, minutes = self.best.tolist()
        return (
            f"{n} settings of an oven were tried, each with noise, and {temperature:.0f} °C for {minutes:.0f} minutes "
            f"is recommended: a yield of {found:.1f} %, where {self._largest():.1f} % is possible. "
            f"Random search finds {at_random:.1f} % with as many tries (median of {len(self.random)} runs)."
        )

    def draw(self, left: Axes, right: Axes) -> None:
        self._draw_map(left)
        self._draw_progress(right)

    def _largest(self) -> float:
        return float(yield_of(_grid()).max())

    def _draw_map(self, axes: Axes) -> None:
        truth = yield_of(_grid()).reshape(_NUM_STEPS, _NUM_STEPS)
        temperatures, minutes = (torch.linspace(*ends, _NUM_STEPS) for ends in _BOUNDS)
        axes.contourf(temperatures, minutes, truth, levels=14, cmap="Greys", alpha=0.7)
        (x, y), number = self.X.T, torch.arange(1, len(self.X) + 1)
        axes.scatter(x, y, c=number, cmap="viridis", s=36, edgecolors="white", linewidths=0.7, zorder=3)
        (best,) = axes.plot(*self.best, "*", color=COLORS["new data"], markersize=16, label="recommended", zorder=4)
        best.set_markeredgecolor("white")
        axes.set(xlim=_BOUNDS[0], ylim=_BOUNDS[1], xlabel="temperature (°C)", ylabel="minutes")
        axes.set_title("Tries, from dark to light; gray: true yield", fontsize=10)
        axes.legend(loc="upper right", fontsize=8, framealpha=0.9)

    def _draw_progress(self, axes: Axes) -> None:
        number = torch.arange(1, len(self.X) + 1)
        low, middle, high = self.random.quantile(torch.tensor([0.1, 0.5, 0.9], dtype=self.random.dtype), dim=0)
        color = COLORS["truth"]
        axes.fill_between(number, low, high, color=color, alpha=0.15, linewidth=0, label="random search, 80 % of runs")
        axes.plot(number, middle, color=color, linewidth=1.3, label="its median")
        found = yield_of(self.X).cummax(0).values
        axes.step(number, found, where="post", color=COLORS["belief"], linewidth=2.0, label="streamgp")
        axes.axhline(self._largest(), linestyle="--", color=COLORS["first data"], linewidth=1.0, label="possible")
        axes.axvline(_NUM_INITIAL + 0.5, color="#BBBBBB", linewidth=1.0, label="end of the first design")
        axes.set(xlabel="tries", ylabel="yield (%)", xlim=(1, len(self.X)))
        axes.set_title("Best so far, noise taken off", fontsize=10)
        axes.legend(loc="lower right", fontsize=8, framealpha=0.9)
        style_axes(axes)


def yield_of(X: Float[Tensor, "*b 2"]) -> Float[Tensor, "*b"]:
    """Yield without noise: a broad hill, and a narrower one that is higher."""
    temperature, minutes = X.unbind(-1)
    a, b = (temperature - 180.0) / 22.0, (minutes - 42.0) / 12.0
    c, d = (temperature - 222.0) / 17.0, (minutes - 25.0) / 9.0
    return 30.0 + 38.0 * torch.exp(-0.5 * (a**2 + b**2 + 0.6 * a * b)) + 62.0 * torch.exp(-0.5 * (c**2 + d**2 + c * d))


def play_tuning(*, seed: int, num_tries: int, track: Track) -> TuningScene:
    """Ask, try and tell.

    Args:
        seed: Seed of the noise and of the optimizer.
        num_tries: Number of tries.
        track: Shows the progress.
    """
    generator = torch.Generator().manual_seed(seed)
    search, rule = Search(num_restarts=3, raw_samples=64), KnowledgeGradient(num_fantasies=32)
    optimizer = Optimizer(list(_BOUNDS), acquisition=rule, num_initial=_NUM_INITIAL, search=search, seed=seed)
    for _ in track(range(num_tries)):
        X = optimizer.ask()
        optimizer.tell(X, yield_of(X) + _NOISE * torch.randn(1, generator=generator, dtype=X.dtype))
    return TuningScene(optimizer.X, optimizer.best().X, random_search(num_tries, generator))


def random_search(num_tries: int, generator: torch.Generator) -> Float[Tensor, "s n"]:
    """Noise-free yield of the best settings so far, for runs of random search."""
    unit = torch.rand(_NUM_RANDOM, num_tries, 2, generator=generator, dtype=torch.float64)
    lower, upper = torch.tensor(_BOUNDS, dtype=torch.float64).T
    return yield_of(lower + (upper - lower) * unit).cummax(-1).values


def _grid() -> Float[Tensor, "g 2"]:
    temperatures, minutes = (torch.linspace(*ends, _NUM_STEPS, dtype=torch.float64) for ends in _BOUNDS)
    grid = torch.meshgrid(temperatures, minutes, indexing="xy")
    return torch.stack(grid, dim=-1).reshape(-1, 2)
