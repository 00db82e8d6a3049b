"""Knowledge gradient on Hartmann6 with a constraint: Fig. 3 a, with the further lines of Fig. 9 a."""

from streamgp.experiments.analysis.claims import Check
from streamgp.experiments.analysis.statistics import Difference
from streamgp.experiments.plots.hartmann_progress import NOTES, VALUES
from streamgp.experiments.schema.figure import Figure
from streamgp.experiments.schema.record import Records

__all__ = ["FIGURE"]

_PROBLEM = "noise0.5-q3"
_METHODS = ("exact-qnei", "exact-qkg", "svgp-qnei", "svgp-qkg", "exact-qei", "svgp-qei", "random")


def _checks(records: Records, entry: str) -> list[Check]:
    def difference(first: tuple[str, ...], second: tuple[str, ...]) -> Difference | None:
        return VALUES.compare(records, [_PROBLEM], first, second, entry=entry)

    qei, qnei, qkg = (tuple(f"{model}-{name}" for model in ("exact", "svgp")) for name in ("qei", "qnei", "qkg"))
    return [
        VALUES.no_worse("SVGP with qKG as good as exact with qKG", difference(("svgp-qkg",), ("exact-qkg",))),
        VALUES.no_worse("as good as exact with qNEI", difference(("svgp-qkg",), ("exact-qnei",))),
        VALUES.larger("better than SVGP with qNEI", difference(("svgp-qkg",), ("svgp-qnei",))),
        VALUES.larger("qKG above qEI, mean of both models", difference(qkg, qei)),
        VALUES.larger("qNEI above qEI, mean of both models", difference(qnei, qei)),
        VALUES.larger("qEI above random, mean of both models", difference(qei, ("random",))),
    ]


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
    draw=lambda records: VALUES.draw(records, _PROBLEM, _METHODS),
    describe=lambda records: VALUES.describe(records, _PROBLEM, _METHODS),
    judge=lambda records: VALUES.judge_both(records, _checks),
    needs_all=False,
    tables=lambda records: (VALUES.table(records, _PROBLEM, _METHODS),),
)
