"""Sparse regression by the collapsed bound in a trust region, on rover: Fig. 10 d."""

from paper.analysis.claims import is_no_worse, weigh
from paper.plots.best_values import line_verdicts
from paper.plots.rover_progress import (
    MARGIN,
    NOTES,
    compare_rewards,
    describe_rewards,
    draw_columns,
    final_table,
)
from paper.schema.figure import Figure, Judgement, NumberTable
from paper.schema.record import Records

__all__ = ["FIGURE"]

_COLLAPSED = {"ts": "svgp-large-elbo-ts", "lts": "svgp-large-elbo-lts"}
_RIVALS = {"SVGP by PLL": "svgp-large-pll", "exact GP": "exact"}


def _labels(acquisition: str) -> dict[str, str]:
    rivals = {f"{model}-{acquisition}": label for label, model in _RIVALS.items()}
    return {_COLLAPSED[acquisition]: "SGPR", **rivals}


def _judge(records: Records) -> Judgement:
    return weigh(
        [
            is_no_worse(
                f"{acquisition.upper()}, SGPR as good as {label}",
                compare_rewards(records, [_COLLAPSED[acquisition]], [f"{model}-{acquisition}"]),
                MARGIN,
            )
            for acquisition in _COLLAPSED
            for label, model in _RIVALS.items()
        ]
    )


def _all_labels() -> dict[str, str]:
    return {
        method: f"{label}, {acquisition.upper()}"
        for acquisition in _COLLAPSED
        for method, label in _labels(acquisition).items()
    }


def _verdicts(records: Records, acquisition: str) -> NumberTable:
    collapsed = _COLLAPSED[acquisition]
    lines = [
        (label, compare_rewards(records, [method], [collapsed]))
        for method, label in _labels(acquisition).items()
        if method != collapsed
    ]
    return line_verdicts(lines, f"{acquisition.upper()}: each line less SGPR, reward at the end, paired by seed.")


FIGURE = Figure(
    name="fig10d",
    title="Fig. 10 d: sparse regression by the collapsed bound",
    study="rover",
    problems=("rover",),
    methods=tuple(_all_labels()),
    claim="In a trust region on rover, SGPR does about as well as SVGPs and exact GPs.",
    notes=(
        "With Gaussian noise, our fits to the evidence bound are on the collapsed bound, the belief in closed form: "
        "they are SGPR. The runs are those of the lines called ELBO in other figures.",
        "Inducing points are centers of clusters of the inputs; the paper's are chosen by pivoted Cholesky.",
        *NOTES,
    ),
    draw=lambda records: draw_columns(records, [(name.upper(), _labels(name)) for name in _COLLAPSED]),
    describe=lambda records: describe_rewards(records, _all_labels()),
    judge=_judge,
    tables=lambda records: (
        final_table(records, _all_labels()),
        *(_verdicts(records, acquisition) for acquisition in _COLLAPSED),
    ),
    needs_all=False,
)
