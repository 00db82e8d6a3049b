"""Global models with Thompson sampling and qGIBBON on rover: Fig. 10 c."""

import math

from paper.analysis.claims import is_larger, is_similar, weigh
from paper.plots.best_values import line_verdicts
from paper.plots.rover_progress import (
    MARGIN,
    compare_rewards,
    compare_times,
    describe_rewards,
    draw_columns,
    final_table,
)
from paper.schema.figure import Figure, Judgement, NumberTable
from paper.schema.record import Records
from paper.studies.global_models import STUDY

__all__ = ["FIGURE"]

_METHODS = tuple(STUDY.methods)


def _judge(records: Records) -> Judgement:
    faster = compare_times(records, ["exact"], ["svgp"])
    return weigh(
        [
            is_similar("reward of SVGP less exact GP", compare_rewards(records, ["svgp"], ["exact"]), MARGIN),
            is_larger(
                "logarithm of the time of exact GP over SVGP, beyond half of two",
                None if faster is None else faster.less(math.log(2.0) / 2),
            ),
            is_larger("reward of SVGP above random", compare_rewards(records, ["svgp"], ["random"]), is_sanity=True),
        ]
    )


def _verdicts(records: Records) -> NumberTable:
    lines = [
        (STUDY.methods[method], compare_rewards(records, [method], ["random"]))
        for method in _METHODS
        if method != "random"
    ]
    return line_verdicts(lines, "Each line less random: reward at the end, paired by seed, with a 95 % interval.")


FIGURE = Figure(
    name="fig10c",
    title="Fig. 10 c: global models with qGIBBON",
    study="global_models",
    problems=("rover",),
    methods=_METHODS,
    claim="With a model of the whole box, half of each batch by Thompson sampling and half by qGIBBON, an SVGP is "
    "twice as fast as an exact GP and finds similar rewards; both are much faster than ensemble Bayesian optimization.",
    notes=(
        "The half by qGIBBON has the other half pending, so that the model is conditioned on it; points are chosen one "
        "after the other.",
        "Ensemble Bayesian optimization is not run. The paper says that it took several days, and that exact and "
        "sparse runs in its own paper stay below 1 after 35 000 evaluations.",
        "Exact GPs are sparse ones with an inducing point at every input. Twice as fast is taken as: by more than the "
        "square root of two.",
        "Times are those of the processor, with one thread; evaluations are left out.",
    ),
    draw=lambda records: draw_columns(records, [("", dict(STUDY.methods))]),
    describe=lambda records: describe_rewards(records, dict(STUDY.methods)),
    judge=_judge,
    tables=lambda records: (final_table(records, dict(STUDY.methods)), _verdicts(records)),
    needs_all=False,
)
