"""Knowledge gradient on counts: Fig. 3 c, with the further lines of Fig. 9 c."""

from paper.analysis.claims import Check
from paper.plots.hartmann_progress import NOTES, VALUES
from paper.schema.figure import Figure
from paper.schema.record import Records

__all__ = ["FIGURE"]

_PROBLEM = "poisson-q3"
_METHODS = ("svgp-qnei", "svgp-qkg", "svgp-qei", "random", "adam-qnei", "adam-qkg")


def _checks(records: Records, entry: str) -> list[Check]:
    pairs = (
        ("qKG above qNEI", "svgp-qkg", "svgp-qnei"),
        ("qKG above qEI", "svgp-qkg", "svgp-qei"),
        ("qNEI above qEI", "svgp-qnei", "svgp-qei"),
        ("qKG above random", "svgp-qkg", "random"),
        ("qNEI above random", "svgp-qnei", "random"),
        ("qEI above random", "svgp-qei", "random"),
    )
    return [
        VALUES.larger(what, VALUES.compare(records, [_PROBLEM], [first], [second], entry=entry))
        for what, first, second in pairs
    ]


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
    draw=lambda records: VALUES.draw(records, _PROBLEM, _METHODS),
    describe=lambda records: VALUES.describe(records, _PROBLEM, _METHODS),
    judge=lambda records: VALUES.judge_both(records, _checks),
    needs_all=False,
    tables=lambda records: (VALUES.table(records, _PROBLEM, _METHODS),),
)
