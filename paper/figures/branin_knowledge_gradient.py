"""The knowledge-gradient picture: maps for an exact GP and for two ways to condition a sparse one."""

import numpy as np
from matplotlib.figure import Figure as Picture
from numpy.typing import NDArray

from paper.analysis.claims import Check, is_larger, weigh
from paper.analysis.drawing import PALETTE, legend_below, new_picture
from paper.analysis.statistics import format_mean, paired_difference
from paper.schema.figure import Figure, Judgement, NumberTable
from paper.schema.record import Records
from paper.studies.branin import STUDY

__all__ = ["FIGURE"]

_PROBLEM = "branin"
_SPARSE = ("conditioned", "absorbed")
# Maps with a larger correlation are taken to look alike.
_LEAST_CORRELATION = 0.8


def draw(records: Records) -> Picture:
    picture = new_picture(1, 3, height=3.1)
    maps = {method: np.array(records.outcome(_PROBLEM, method)["gain"]) for method in STUDY.methods}
    largest = max(float(gain.max()) for gain in maps.values())
    for axes, (method, gain) in zip(picture.axes, maps.items(), strict=True):
        outcome = records.outcome(_PROBLEM, method)
        first, second = outcome["first"], outcome["second"]
        image = axes.pcolormesh(first, second, gain, vmin=0.0, vmax=largest, cmap="viridis", shading="nearest")
        axes.plot(
            *np.transpose(outcome["inputs"]),
            "o",
            color="white",
            markersize=3,
            markeredgecolor="0.3",
            markeredgewidth=0.4,
            label="data",
        )
        row, column = np.unravel_index(gain.argmax(), gain.shape)
        axes.plot(first[column], second[row], "*", color=PALETTE[1], markersize=11, label="best")
        axes.set_title(STUDY.methods[method], fontsize=9)
        axes.set_xlabel("$x_1$")
        axes.grid(False)
    picture.axes[0].set_ylabel("$x_2$")
    legend_below(picture)
    picture.colorbar(image, ax=picture.axes, label="knowledge gradient", shrink=0.9)
    return picture


def correlations(records: Records, method: str) -> list[float]:
    """Correlation of a method's map with the exact GP's, trial by trial."""
    pairs = zip(_maps(records, method), _maps(records, "exact"), strict=True)
    return [float(np.corrcoef(gain.ravel(), exact.ravel())[0, 1]) for gain, exact in pairs]


def shares(records: Records, method: str) -> list[float]:
    """What the exact GP's map is worth where a method's map is largest, as a share of its maximum."""
    pairs = zip(_maps(records, method), _maps(records, "exact"), strict=True)
    return [float(exact.ravel()[gain.argmax()] / exact.max()) for gain, exact in pairs]


def num_agreeing(records: Records, method: str) -> int:
    """In how many trials both maps are largest at the same point."""
    pairs = zip(_maps(records, method), _maps(records, "exact"), strict=True)
    return sum(int(gain.argmax() == exact.argmax()) for gain, exact in pairs)


def _maps(records: Records, method: str) -> list[NDArray[np.float64]]:
    return [np.array(gain) for gain in records.outcomes(_PROBLEM, method, "gain")]


def describe(records: Records) -> str:
    parts = [f"for {STUDY.methods[method]} it is {correlations(records, method)[0]:.2f}" for method in _SPARSE]
    return (
        "Three maps of the knowledge gradient over the square of Branin, with the observations and the best point. "
        f"Correlation with the map of the exact GP: {', '.join(parts)}."
    )


def judge(records: Records) -> Judgement:
    return weigh([_check(records, method) for method in _SPARSE])


def _check(records: Records, method: str) -> Check:
    found = correlations(records, method)
    return is_larger(
        f"correlation of the maps of the exact GP and of {STUDY.methods[method]}, {format_mean(found, digits=3)}, less "
        f"the bound {_LEAST_CORRELATION:g} (the same best point in {num_agreeing(records, method)} of {len(found)})",
        paired_difference(found, [_LEAST_CORRELATION] * len(found)),
    )


def tables(records: Records) -> tuple[NumberTable, ...]:
    rows = []
    for method in _SPARSE:
        agreeing = f"{num_agreeing(records, method)} of {len(_maps(records, method))}"
        cells = (format_mean(correlations(records, method)), agreeing, format_mean(shares(records, method)))
        rows.append((STUDY.methods[method], *cells))
    header = ("map", "correlation", "same best point", "exact value at its best point, as a share of the largest")
    return (NumberTable("Beside the map of the exact GP; the paper gives no numbers", header, tuple(rows)),)


FIGURE = Figure(
    name="branin",
    title="Branin: maps of the knowledge gradient",
    study="branin",
    problems=(_PROBLEM,),
    methods=tuple(STUDY.methods),
    claim="Maps of the knowledge gradient by an exact GP and by conditioned SVGPs, grown or sparse, look alike.",
    notes=(
        "The picture is named in the paper's appendix but not included. Its notebook shows Beale's function, with data "
        "in a corner of the domain, and counts 243 points as the batch; here it is Branin, one point at a time.",
        "Observed values are standardized; the noise has a standard deviation of 0.2 in these units, and is known.",
        "The exact GP and the SVGP learn their own hyperparameters; fantasies share their random numbers.",
        "The mean of 8 fantasies can be slightly negative, more so where a sparse GP gives up a point for the fantasy.",
    ),
    draw=draw,
    describe=describe,
    judge=judge,
    tables=tables,
)
