"""Inducing points and losses on rover: Fig. 11."""

from dataclasses import replace

from paper.analysis.claims import is_larger, is_similar, weigh
from paper.plots.rover_progress import (
    MARGIN,
    compare_rewards,
    compare_times,
    name_methods,
    rover_figure,
)
from paper.schema.figure import Judgement
from paper.schema.record import Records

__all__ = ["FIGURE"]

_METHODS = tuple(
    f"svgp-{size}-{objective}-{acquisition}"
    for acquisition in ("ts", "lts")
    for size in ("small", "large")
    for objective in ("elbo", "pll")
)


def _with(*words: str) -> list[str]:
    """The methods whose name has all of these words."""
    return [method for method in _METHODS if set(words) <= set(method.split("-"))]


def _judge(records: Records) -> Judgement:
    judgement = weigh(
        [
            is_similar(
                "TS, large against small", compare_rewards(records, _with("large", "ts"), _with("small", "ts")), MARGIN
            ),
            is_similar(
                "LTS, large against small",
                compare_rewards(records, _with("large", "lts"), _with("small", "lts")),
                MARGIN,
            ),
            is_similar(
                "TS, PLL against ELBO", compare_rewards(records, _with("pll", "ts"), _with("elbo", "ts")), MARGIN
            ),
            is_larger("LTS, PLL above ELBO", compare_rewards(records, _with("pll", "lts"), _with("elbo", "lts"))),
        ]
    )
    times = compare_times(records, _with("elbo"), _with("pll"))
    said = "not run" if times is None else str(times)
    return replace(judgement, remark=f"{judgement.remark} Logarithm of the time of ELBO over PLL, not weighed: {said}.")


def _columns(records: Records) -> list[tuple[str, dict[str, str]]]:
    return [(word.upper(), name_methods(records, _with(word))) for word in ("ts", "lts")]


FIGURE = rover_figure(
    "fig11",
    "Fig. 11: inducing points and losses on rover",
    lambda records: name_methods(records, _METHODS),
    methods=_METHODS,
    claim="Neither the number of inducing points nor the loss makes a large difference; the predictive log likelihood "
    "(PLL) is somewhat faster to train than the evidence bound (ELBO), slightly better with look-ahead, and equal "
    "without.",
    notes=(
        "The evidence bound is maximized in its collapsed form, with the belief in closed form, and the predictive log "
        "likelihood from there on with the belief learned too; so that the latter takes longer here. The paper's "
        "comparison of times is of another bound, and the verdict does not rest on it.",
        "At the quick scale the numbers of inducing points are scaled with the evaluations.",
    ),
    judge=_judge,
    columns=_columns,
)
