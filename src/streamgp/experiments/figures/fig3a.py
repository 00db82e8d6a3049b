"""Knowledge gradient on Hartmann6 with a constraint: Fig. 3 a, with the further lines of Fig. 9 a."""

from streamgp.experiments.claims import is_larger, is_no_worse, weigh
from streamgp.experiments.figure import Figure, Judgement
from streamgp.experiments.panels.hartmann_progress import (
    MARGIN,
    NOTES,
    compare,
    describe_progress,
    draw_progress,
    final_table,
)
from streamgp.experiments.record import Records
from streamgp.experiments.statistics import Difference

__all__ = ["FIGURE"]

_PROBLEM = "noise0.5-q3"
_METHODS = ("exact-qnei", "exact-qkg", "svgp-qnei", "svgp-qkg", "exact-qei", "svgp-qei", "random")


def _judge(records: Records) -> Judgement:
    def difference(first: tuple[str, ...], second: tuple[str, ...]) -> Difference:
        return compare(records, [_PROBLEM], first, second)

    qei, qnei, qkg = (tuple(f"{model}-{name}" for model in ("exact", "svgp")) for name in ("qei", "qnei", "qkg"))
    return weigh(
        [
            is_no_worse("SVGP with qKG as good as exact with qKG", difference(("svgp-qkg",), ("exact-qkg",)), MARGIN),
            is_no_worse("as good as exact with qNEI", difference(("svgp-qkg",), ("exact-qnei",)), MARGIN),
            is_larger("better than SVGP with qNEI", difference(("svgp-qkg",), ("svgp-qnei",))),
            is_larger("qKG above qEI, mean of both models", difference(qkg, qei)),
            is_larger("qNEI above qEI, mean of both models", difference(qnei, qei)),
            is_larger("qEI above random, mean of both models", difference(qei, ("random",))),
        ]
    )


FIGURE = Figure(
    name="fig3a",
    title="Fig. 3 a and 9 a: knowledge gradient on Hartmann6",
    study="hartmann",
    problems=(_PROBLEM,),
    methods=_METHODS,
    claim="An SVGP with knowledge gradient does as well as exact GPs with knowledge gradient and noisy expected "
    "improvement, and better than an SVGP with the latter (the caption calls all four alike). Plain expected "
    "improvement is worse than both, and better than random points.",
    notes=NOTES,
    draw=lambda records: draw_progress(records, _PROBLEM, _METHODS),
    describe=lambda records: describe_progress(records, _PROBLEM, _METHODS),
    judge=_judge,
    tables=lambda records: (final_table(records, _PROBLEM, _METHODS),),
)
