"""Pictures of accuracy: of the front page, computed, and of benchmarks, from results that are under version control."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import torch
from gpytorch.kernels import RBFKernel, ScaleKernel
from gpytorch.likelihoods import GaussianLikelihood
from matplotlib.figure import Figure as Picture
from scipy import stats
from tests.support.reference import condition_dense

import streamgp as sg
from paper.analysis.drawing import PALETTE, ink, new_picture
from paper.registry import find_figure
from paper.report.themes import LIGHT
from paper.report.trials import select_trials
from paper.schema.results import load_records

# Figures of the paper that a page of the section shows.
_FIGURES = ("fig4b", "fig6", "fig8")
_RIVALS = {"gpsampler": "GPSampler", "botorch": "BoTorch", "tpe": "TPE", "random": "random"}
# Fewer seeds than these say nothing.
_FEWEST = 5
_DOTS = 144
# By seed, then by method: the true value of the recommended point.
_Runs = dict[int, dict[str, float]]


def read_runs(path: Path, q: int) -> dict[str, _Runs]:
    """Values that each method reached on each problem, asked for `q` points at a time."""
    runs: dict[str, _Runs] = defaultdict(lambda: defaultdict(dict))
    for line in path.read_text(encoding="utf-8").splitlines():
        one = json.loads(line)
        if one["q"] == q:
            runs[one["problem"]][one["seed"]][one["method"]] = one["value"]
    return runs


def share_ahead(runs: _Runs, method: str) -> tuple[float, int]:
    """Share of the seeds of which a method ended lower than streamgp, where a tie is half, and the number of seeds."""
    pairs = [one for one in runs.values() if {"streamgp", method} <= set(one)]
    ahead = [np.heaviside(one["streamgp"] - one[method], 0.5) for one in pairs]
    return (float(np.mean(ahead)) if ahead else np.nan), len(pairs)


def mean_ranks(runs: Iterable[_Runs], methods: list[str]) -> np.ndarray:
    """Mean rank of each method for each problem, over the seeds that all of them ran."""
    ranks = []
    for problem in runs:
        whole = [[one[method] for method in methods] for one in problem.values() if set(methods) <= set(one)]
        if whole:
            ranks.append(stats.rankdata(whole, axis=-1).mean(0))
    return np.array(ranks)


def draw_shares(source: Path) -> Picture:
    """Draw how often each other method ended lower than streamgp, for each declared problem."""
    runs = read_runs(source, 1)
    picture = new_picture(height=4.2)
    (axes,) = picture.axes
    for index, (method, label) in enumerate(_RIVALS.items(), start=1):
        rows = [(row + 0.16 * (index - 2.5), *share_ahead(runs[name], method)) for row, name in enumerate(runs)]
        shown = [(share, row) for row, share, number in rows if number >= _FEWEST]
        axes.plot(*zip(*shown, strict=True), "o", color=PALETTE[index], label=label, clip_on=False)
    axes.axvline(0.5, color=ink(), linewidth=0.8)
    axes.set(xlim=(0, 1), yticks=range(len(runs)), xlabel="share of seeds on which another method ended lower")
    axes.set_yticklabels(list(runs))
    axes.invert_yaxis()
    axes.legend(loc="lower right")
    return picture


def draw_ranks(source: Path) -> Picture:
    """Draw mean ranks of the methods that ran everything, with 95 % intervals over problems, for both budgets."""
    methods = ["streamgp", *(name for name in _RIVALS if name != "botorch")]
    picture = new_picture(1, 2, height=1.9)
    for axes, (q, words) in zip(picture.axes, {1: "one at a time", 4: "four at a time"}.items(), strict=True):
        ranks = mean_ranks(read_runs(source, q).values(), methods)
        half = stats.t.ppf(0.975, len(ranks) - 1) * stats.sem(ranks, axis=0)
        for row, method in enumerate(methods):
            color = PALETTE[(["streamgp", *_RIVALS]).index(method)]
            axes.errorbar(ranks.mean(0)[row], row, xerr=half[row], fmt="o", color=color, capsize=3)
        axes.set(xlim=(1, 4), xlabel=f"mean rank, {words}", yticks=range(len(methods)))
        axes.set_yticklabels([_RIVALS.get(name, name) for name in methods])
        axes.invert_yaxis()
    return picture


def draw_accuracy() -> Picture:
    """Draw errors of a conditioned mean against dense algebra: ours, and GPyTorch's through pseudo-data."""
    generator = torch.Generator().manual_seed(0)
    X = 4 * torch.rand(60, 1, generator=generator, dtype=torch.float64)
    y = torch.sin(3 * X).squeeze(-1) + 0.1 * torch.randn(60, generator=generator, dtype=torch.float64)
    kernel = ScaleKernel(RBFKernel())
    kernel.base_kernel.lengthscale = 0.7
    Z = torch.linspace(-2, 6, 20, dtype=torch.float64).unsqueeze(-1)
    gp, _ = sg.SparseGP.from_prior(kernel, Z).absorb(X, y, noise_variance=0.01, inducing="keep")
    X, y = torch.tensor([[4.6], [5.0]], dtype=torch.float64), torch.tensor([0.5, 0.5], dtype=torch.float64)
    w = torch.linspace(-2, 6, 200, dtype=torch.float64).unsqueeze(-1)
    truth = condition_dense(gp, X, y, 0.01 * torch.eye(2, dtype=torch.float64), w).mean
    model = gp.to_gpytorch().eval()
    model.likelihood = GaussianLikelihood().double().initialize(noise=0.01)
    theirs = model.variational_strategy.get_fantasy_model(X, y).eval()(w).mean.detach()
    ours = gp.condition(X, y, noise_variance=0.01).predict(w).mean
    picture = new_picture(height=2.4)
    (axes,) = picture.axes
    for mean, label, color in ((theirs, "GPyTorch's get_fantasy_model", PALETTE[1]), (ours, "streamgp", PALETTE[0])):
        axes.semilogy(w.squeeze(-1), (mean - truth).abs().clamp_min(1e-17), color=color, label=label)
    axes.set(xlabel="input", ylabel="error of the mean", ylim=(1e-17, 10.0))
    axes.legend(loc="center right")
    return picture


def draw_figure(name: str, directory: Path) -> Picture:
    """Draw a figure of the paper from its full results, as the report does."""
    figure = find_figure(name)
    records, _ = load_records(figure.study, "full", directory)
    return figure.draw(select_trials(figure, records).records)


def write_pictures(app: Any) -> None:
    """Draw when the site is built."""
    source = Path(app.srcdir)
    output = source / "images" / "generated"
    output.mkdir(parents=True, exist_ok=True)
    defaults = source.parent / "benchmarks" / "results" / "defaults" / "defaults.jsonl"
    drawers: dict[str, Callable[[], Picture]] = {
        "accuracy": draw_accuracy,
        "defaults-shares": partial(draw_shares, defaults),
        "defaults-ranks": partial(draw_ranks, defaults),
        **{name: partial(draw_figure, name, source.parent / "paper" / "results") for name in _FIGURES},
    }
    for name, draw in drawers.items():
        with matplotlib.rc_context():
            matplotlib.rcdefaults()
            matplotlib.rcParams.update(LIGHT.picture_settings)
            draw().savefig(output / f"{name}.png", dpi=_DOTS)


def setup(app: Any) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("builder-inited", write_pictures)
    return {"parallel_read_safe": True}
