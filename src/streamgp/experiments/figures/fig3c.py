"""Knowledge gradient on counts: Fig. 3 c, with the further lines of Fig. 9 c."""

from streamgp.experiments.claims import is_larger, weigh
from streamgp.experiments.figure import Figure, Judgement
from streamgp.experiments.panels.hartmann_progress import (
    NOTES,
    compare,
    describe_progress,
    draw_progress,
    final_table,
)
from streamgp.experiments.record import Records

__all__ = ["FIGURE"]

_PROBLEM = "poisson-q3"
_METHODS = ("svgp-qnei", "svgp-qkg", "svgp-qei", "random")


def _judge(records: Records) -> Judgement:
    pairs = (
        ("qKG above qNEI", "svgp-qkg", "svgp-qnei"),
        ("qKG above qEI", "svgp-qkg", "svgp-qei"),
        ("qNEI above qEI", "svgp-qnei", "svgp-qei"),
        ("qKG above random", "svgp-qkg", "random"),
        ("qNEI above random", "svgp-qnei", "random"),
        ("qEI above random", "svgp-qei", "random"),
    )
    return weigh([is_larger(what, compare(records, [_PROBLEM], [first], [second])) for what, first, second in pairs])


FIGURE = Figure(
    name="fig3c",
    title="Fig. 3 c and 9 c: knowledge gradient on counts",
    study="hartmann",
    problems=(_PROBLEM,),
    methods=_METHODS,
    claim="With counts of rate exp(f), knowledge gradient does better than noisy expected improvement, plain expected "
    "improvement is below both, and all are better than random points.",
    notes=(
        "Counts are drawn from exp(f), as the paper says; its code adds log-normal noise to the rate first.",
        "Sites of counts are found by the variational rule, and those of fantasies from the expected curvature.",
        *NOTES[1:],
    ),
    draw=lambda records: draw_progress(records, _PROBLEM, _METHODS),
    describe=lambda records: describe_progress(records, _PROBLEM, _METHODS),
    judge=_judge,
    tables=lambda records: (final_table(records, _PROBLEM, _METHODS),),
)
