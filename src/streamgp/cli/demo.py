"""`streamgp demo`: four scenes, each made from a seed, and one picture of all."""

import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from gpytorch.kernels import RBFKernel, ScaleKernel
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy import ndarray
from rich.console import Console
from rich.progress import track
from torch import Tensor

from streamgp.acquisition import KnowledgeGradient, Search
from streamgp.cli.pictures import COLORS, draw_belief, save_figure, style_axes
from streamgp.conditioning import SparseGP
from streamgp.errors import StreamGPWarning
from streamgp.likelihoods import Gaussian
from streamgp.optimizers import Optimizer
from streamgp.streams.classifier import StreamingGPClassifier
from streamgp.streams.regressor import StreamingGPRegressor
from streamgp.training import fit

__all__ = ["Scene", "bookings", "conditioning", "parts", "run_demo", "tuning"]

# Goes through the steps of a scene, and shows how far it has come.
Track = Callable[[Sequence[Any]], Iterable[Any]]

_NOISE_VARIANCE = 0.01  # of the observations that are conditioned on
_DAY, _WEEK = 24, 168  # hours
_LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)  # of predicted quantiles of bookings
_STEADY = 0.35  # share of the parts that are made before the machine drifts
_WINDOW = 150  # parts over which a share of right predictions is taken
_OVEN = ((150.0, 250.0), (10.0, 60.0))  # temperatures and minutes that may be tried


class Scene(NamedTuple):
    """Outcome of a scene in words, and a function that draws it into two panels."""

    sentences: str
    draw: Callable[[Axes, Axes], None]


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
    console, began = console or Console(), time.perf_counter()
    acts: dict[str, Callable[..., Scene]] = {
        "Condition on new data, without refitting": conditioning,
        "Learn a stream of counts": partial(bookings, num_weeks=2 if is_quick else 6),
        "Learn a stream of classes that drifts": partial(parts, num_parts=100 if is_quick else 1200),
        "Decide: Bayesian optimization": partial(tuning, num_tries=7 if is_quick else 24),
    }
    scenes, width = {}, max(map(len, acts))
    with warnings.catch_warnings():
        # That the day, an input of the bookings, leaves the range of the warm-up is as it should be.
        warnings.simplefilter("ignore", StreamGPWarning)
        for title, act in acts.items():
            scenes[title] = act(seed, partial(track, description=title.ljust(width), console=console))
    figure = Figure(figsize=(15, 12.6), layout="constrained")
    top, middle, bottom = figure.subfigures(3, 1, height_ratios=(1.0, 0.95, 1.05), hspace=0.03, squeeze=False)[:, 0]
    places = (top, middle, *bottom.subfigures(1, 2, wspace=0.03))
    for place, (title, scene) in zip(places, scenes.items(), strict=True):
        scene.draw(*place.subplots(1, 2, width_ratios=(3, 1) if place is middle else (1, 1)))
        place.suptitle(title, fontsize=14, fontweight="bold")
    save_figure(figure, output)
    console.print()
    for title, scene in scenes.items():
        console.print(f"[bold]{title}.[/bold] {scene.sentences}\n", highlight=False)
    console.print(f"All of it took {time.perf_counter() - began:.0f} s on one core.", highlight=False)
    console.print(f"Picture: {output}", soft_wrap=True, highlight=False)


def conditioning(seed: int, track: Track) -> Scene:
    r"""Condition a sparse GP of $\sin(2|x| + x^2/2)$ on new data, beside an exact GP that sees as much."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(100, generator=generator, dtype=torch.float64)
    x = torch.cat([x, 2.5 + 3.0 * torch.rand(25, generator=generator, dtype=torch.float64)])
    noise = _NOISE_VARIANCE**0.5 * torch.randn(125, generator=generator, dtype=torch.float64)
    grid = torch.linspace(-4.0, 7.0, 400, dtype=torch.float64)
    X, y, truth = x.unsqueeze(-1), _rippled(x) + noise, _rippled(grid)
    likelihood, W = Gaussian(_NOISE_VARIANCE, is_learned=False), grid.unsqueeze(-1)
    for _ in track([None]):
        gp = fit(X[:100], y[:100], likelihood=likelihood, kernel=ScaleKernel(RBFKernel()), num_inducing=25).gp
        sparse = gp.predict(W), gp.condition(X[100:], y[100:], noise_variance=_NOISE_VARIANCE).predict(W)
        # A prior that is conditioned on all is an exact GP.
        prior = SparseGP.from_prior(gp.kernel, X[:1], mean=gp.mean)
        exact = [prior.condition(X[:n], y[:n], noise_variance=_NOISE_VARIANCE).predict(W) for n in (100, 125)]
    before, after = (
        float(((ours.mean - theirs.mean).abs() / theirs.std).max()) for ours, theirs in zip(sparse, exact, strict=True)
    )

    def draw(left: Axes, right: Axes) -> None:
        for axes, ours, theirs in zip((left, right), sparse, exact, strict=True):
            draw_belief(axes, grid, ours.mean, ours.variance)
            axes.plot(grid, theirs.mean, ":", color=COLORS["first data"], linewidth=1.6, label="exact GP")
            axes.plot(grid, truth, "--", color=COLORS["truth"], linewidth=1.0, label="truth")
            axes.plot(x[:100], y[:100], "x", color=COLORS["first data"], markersize=4.5, label="first data")
            Z = gp.inducing_points.squeeze(-1)
            axes.plot(Z, torch.full_like(Z, -1.93), "|", color=COLORS["inducing"], markersize=8, label="inducing")
            axes.set(xlim=(-4, 7), ylim=(-2.05, 2.75), xlabel="x")
            style_axes(axes)
        right.plot(x[100:], y[100:], "x", color=COLORS["new data"], markersize=4.5, label="new data")
        left.set_title("Before the new data")
        right.set_title("After it")
        left.legend(*right.get_legend_handles_labels(), loc="upper center", ncols=4, fontsize=8, framealpha=0.9)

    sentences = (
        "A sparse GP with 25 inducing points learned 100 observations, and was then conditioned on 25 new ones without "
        "being fitted again. An exact GP with the same kernel, which keeps all 125, is at most "
        f"{before:.3f} of its standard deviations away before and {after:.3f} after."
    )
    return Scene(sentences, draw)


def bookings(seed: int, track: Track, *, num_weeks: int) -> Scene:
    """Learn the first week of hourly counts, then predict each day before it is learned."""
    every = np.arange(num_weeks * _WEEK)
    counts = np.random.default_rng(seed).poisson(_booking_rate(every)).astype(float)
    angles = 2 * np.pi * np.stack([every / _DAY, every / _WEEK], axis=-1)
    X = np.concatenate([np.sin(angles), np.cos(angles), every[:, None] / _DAY], axis=-1)
    regressor, predicted = StreamingGPRegressor("poisson", num_inducing=60), []
    regressor.partial_fit(X[:_WEEK], counts[:_WEEK])
    for start in track(range(_WEEK, len(counts), _DAY)):
        day = slice(start, start + _DAY)
        predicted.append(regressor.predict(X[day], quantiles=_LEVELS))
        regressor.partial_fit(X[day], counts[day])
    mean, quantiles = (np.concatenate(parts) for parts in zip(*predicted, strict=True))
    seen = counts[_WEEK:]
    inside = np.mean((seen >= quantiles[:, 0]) & (seen <= quantiles[:, -1]))

    def draw(left: Axes, right: Axes) -> None:
        hour, last, color = np.arange(_WEEK), slice(-_WEEK, None), COLORS["belief"]
        for index, alpha, label in ((0, 0.18, "90 % band, a day ahead"), (1, 0.25, "50 % band")):
            low, high = quantiles[last, index], quantiles[last, -1 - index]
            left.fill_between(hour, low, high, step="mid", color=color, alpha=alpha, linewidth=0, label=label)
        left.plot(hour, mean[last], color=color, linewidth=1.6, label="mean")
        left.plot(hour, _booking_rate(every[last]), "--", color=COLORS["truth"], linewidth=1.0, label="true rate")
        left.plot(hour, counts[last], ".", color=COLORS["new data"], markersize=4.5, label="counted")
        left.set_xticks(np.arange(0, _WEEK, _DAY) + _DAY / 2, ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"))
        left.set(xlim=(0, _WEEK - 1), ylim=(0, 1.25 * counts[last].max()), ylabel="bookings an hour")
        left.set_title("The last week")
        left.legend(loc="upper left", ncols=5, fontsize=8, framealpha=0.9)
        # A count has no density: the share below a quantile lies between those with and without the quantile itself.
        below, at_most = (100 * share.mean(0) for share in (seen[:, None] < quantiles, seen[:, None] <= quantiles))
        right.plot([0, 100], [0, 100], "--", color=COLORS["truth"], linewidth=1.0, label="perfect")
        right.vlines(100 * np.array(_LEVELS), below, at_most, color=color, linewidth=4.0, label="observed")
        right.set(xlim=(0, 100), ylim=(0, 100), xlabel="predicted quantile (%)", ylabel="% of counts below it")
        right.set_title("Is it calibrated?")
        right.legend(loc="upper left", fontsize=8, framealpha=0.9)
        style_axes(left)
        style_axes(right)

    sentences = (
        f"Bookings were counted for {len(counts)} hours, and after the first week predicted a day ahead. {inside:.0%} "
        f"fell into the band that should hold at least 90 %; the mean error was {np.abs(seen - mean).mean():.1f} "
        f"bookings, and {np.abs(seen - counts[:-_WEEK]).mean():.1f} for the count a week before."
    )
    return Scene(sentences, draw)


def parts(seed: int, track: Track, *, num_parts: int) -> Scene:
    """Predict and then learn which parts pass while the machine drifts, by default and without forgetting."""
    rng = np.random.default_rng(seed)
    X = np.clip(rng.normal((200.0, 5.0), (11.0, 0.75), (num_parts, 2)), (170.0, 3.0), (230.0, 7.0))
    drift = np.clip((np.linspace(0.0, 1.0, num_parts) - _STEADY) / (1.0 - _STEADY), 0.0, 1.0)
    probability = _passing(X, drift)
    is_passed, first = rng.random(num_parts) < probability, num_parts // 10
    models = [StreamingGPClassifier(num_inducing=50), StreamingGPClassifier(num_inducing=50, half_life=None)]
    for model in models:
        model.partial_fit(X[:first], is_passed[:first], classes=[False, True])
    right: list[list[ndarray]] = [[], []]
    for start in track(range(first, num_parts, 20)):
        rows = slice(start, start + 20)
        for model, found in zip(models, right, strict=True):
            found.append(model.predict(X[rows]) == is_passed[rows])
            model.partial_fit(X[rows], is_passed[rows])
    by_default, remembering = (np.concatenate(found) for found in right)
    at_best = ((probability > 0.5) == is_passed)[first:]

    def draw(left: Axes, axes: Axes) -> None:
        ends = np.linspace(170.0, 230.0, 80), np.linspace(3.0, 7.0, 80)
        grid = np.stack(np.meshgrid(*ends), axis=-1).reshape(-1, 2)
        surface = models[0].predict_proba(grid)[:, 1].reshape(80, 80)
        left.contourf(*ends, surface, levels=np.linspace(0.0, 1.0, 11), cmap="RdYlBu", alpha=0.75)
        for moment, style, label in ((0.0, ":", "window at the start"), (1.0, "-", "window now")):
            truth = _passing(grid, np.array(moment)).reshape(80, 80)
            left.contour(*ends, truth, levels=[0.5], colors="black", linestyles=style, linewidths=1.3)
            left.plot([], [], style, color="black", linewidth=1.3, label=label)
        for is_kind, marker, color, label in ((True, "o", "#0B3C6F", "passed"), (False, "x", "#A4161A", "failed")):
            latest = X[-200:][is_passed[-200:] == is_kind]
            left.plot(*latest.T, marker, color=color, markersize=3.2, label=label)
        left.set(xlabel="temperature (°C)", ylabel="pressure (bar)")
        left.set_title("At the end; blue: likely to pass, red: to fail", fontsize=10)
        left.legend(loc="upper right", fontsize=7.5, ncols=2, framealpha=0.9)
        window = min(_WINDOW, num_parts - first)
        for label, is_right, color in (
            ("knowing the machine", at_best, COLORS["truth"]),
            ("by default", by_default, COLORS["belief"]),
            ("forgetting nothing", remembering, COLORS["new data"]),
        ):
            share = 100 * np.convolve(is_right, np.full(window, 1 / window), mode="valid")
            axes.plot(np.arange(num_parts - len(share), num_parts) + 1, share, color=color, linewidth=1.6, label=label)
        axes.axvline(_STEADY * num_parts, color="#BBBBBB", linewidth=1.0, label="drift begins")
        axes.set(xlabel="part", ylabel=f"% right, of the last {window}", ylim=(48, 104))
        axes.set_title("Predicted before inspected", fontsize=10)
        axes.legend(loc="lower left", fontsize=8, framealpha=0.9)
        style_axes(axes)

    shares = [f"{is_right[-len(at_best) // 3 :].mean():.0%}" for is_right in (by_default, remembering, at_best)]
    sentences = (
        f"{num_parts} parts came off a machine that drifts, and each was predicted before it was inspected. Of the "
        f"last third, {shares[0]} were predicted rightly by default, {shares[1]} when nothing was forgotten; who knows "
        f"the machine reaches {shares[2]}."
    )
    return Scene(sentences, draw)


def tuning(seed: int, track: Track, *, num_tries: int) -> Scene:
    """Ask for settings of an oven, try them with noise, and tell."""
    generator = torch.Generator().manual_seed(seed)
    search, rule = Search(num_restarts=3, raw_samples=64), KnowledgeGradient(num_fantasies=32)
    optimizer = Optimizer(list(_OVEN), acquisition=rule, num_initial=6, search=search, seed=seed)
    for _ in track(range(num_tries)):
        asked = optimizer.ask()
        optimizer.tell(asked, _yield_of(asked) + 1.5 * torch.randn(1, generator=generator, dtype=asked.dtype))
    best = optimizer.best().X
    lower, upper = torch.tensor(_OVEN, dtype=torch.float64).T
    unit = torch.rand(400, num_tries, 2, generator=generator, dtype=torch.float64)
    at_random = _yield_of(lower + (upper - lower) * unit).cummax(-1).values
    temperatures, minutes = (torch.linspace(*ends, 120, dtype=torch.float64) for ends in _OVEN)
    truth = _yield_of(torch.stack(torch.meshgrid(temperatures, minutes, indexing="xy"), dim=-1))

    def draw(left: Axes, right: Axes) -> None:
        left.contourf(temperatures, minutes, truth, levels=14, cmap="Greys", alpha=0.7)
        number, (x, y) = torch.arange(1, num_tries + 1), optimizer.X.T
        left.scatter(x, y, c=number, cmap="viridis", s=36, edgecolors="white", linewidths=0.7, zorder=3)
        left.plot(*best, "*", color=COLORS["new data"], markersize=16, label="recommended", zorder=4)
        left.set(xlim=_OVEN[0], ylim=_OVEN[1], xlabel="temperature (°C)", ylabel="minutes")
        left.set_title("Tries, from dark to light; gray: true yield", fontsize=10)
        left.legend(loc="upper right", fontsize=8, framealpha=0.9)
        low, middle, high = at_random.quantile(torch.tensor([0.1, 0.5, 0.9], dtype=at_random.dtype), dim=0)
        color = COLORS["truth"]
        right.fill_between(number, low, high, color=color, alpha=0.15, linewidth=0, label="random search, 80 % of runs")
        right.plot(number, middle, color=color, linewidth=1.3, label="its median")
        found = _yield_of(optimizer.X).cummax(0).values
        right.step(number, found, where="post", color=COLORS["belief"], linewidth=2.0, label="streamgp")
        right.axhline(float(truth.max()), linestyle="--", color=COLORS["first data"], linewidth=1.0, label="possible")
        right.set(xlabel="tries", ylabel="yield (%)", xlim=(1, num_tries))
        right.set_title("Best so far, noise taken off", fontsize=10)
        right.legend(loc="lower right", fontsize=8, framealpha=0.9)
        style_axes(right)

    sentences = (
        f"{num_tries} settings of an oven were tried, each with noise, and {best[0]:.0f} °C for {best[1]:.0f} minutes "
        f"is recommended: a yield of {_yield_of(best):.1f} %, where {truth.max():.1f} % is possible. Random search "
        f"finds {at_random[:, -1].median():.1f} % with as many tries (median of {len(unit)} runs)."
    )
    return Scene(sentences, draw)


def _rippled(x: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
    return torch.sin(2 * x.abs() + x.square() / 2)


def _booking_rate(hours: ndarray) -> Float[ndarray, " n"]:
    """Two peaks a day, higher ones on the eve of days off, lower ones on them, and growth."""
    day, hour = (hours // _DAY) % 7, hours % _DAY
    is_off, is_eve = np.isin(day, (5, 6)), np.isin(day, (4, 5))
    noon = np.exp(-0.5 * ((hour - 11.5) / 2.6) ** 2) * np.where(is_off, 0.6, 1.0)
    evening = np.exp(-0.5 * ((hour - 19.0) / 2.2) ** 2) * np.where(is_eve, 1.7, 0.9)
    return (1.0 + 14.0 * noon + 16.0 * evening) * (1.0 + 0.012 * hours / _DAY)


def _passing(X: Float[ndarray, "n 2"], drift: Float[ndarray, "..."]) -> Float[ndarray, " n"]:
    """An ellipse of good settings, which moves from the lower left to the upper right."""
    temperature, pressure = X.T
    across, along = (temperature - 193.0 - 17.0 * drift) / 12.0, (pressure - 4.6 - 0.9 * drift) / 0.9
    return 1.0 / (1.0 + np.exp(-5.0 * (1.0 - across**2 - along**2 + 0.8 * across * along)))


def _yield_of(X: Float[Tensor, "*b 2"]) -> Float[Tensor, "*b"]:
    """Yield without noise: a broad hill, and a narrower one that is higher."""
    temperature, minutes = X.unbind(-1)
    a, b = (temperature - 180.0) / 22.0, (minutes - 42.0) / 12.0
    c, d = (temperature - 222.0) / 17.0, (minutes - 25.0) / 9.0
    return 30.0 + 38.0 * torch.exp(-0.5 * (a**2 + b**2 + 0.6 * a * b)) + 62.0 * torch.exp(-0.5 * (c**2 + d**2 + c * d))
