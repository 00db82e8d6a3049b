"""Trust regions on rover with exact and sparse models: Fig. 5 a and b."""

import math

from streamgp.experiments.analysis.claims import is_larger, is_no_worse, weigh
from streamgp.experiments.plots.rover_progress import (
    NOTES,
    compare_rewards,
    compare_times,
    describe_rewards,
    draw_columns,
    final_table,
    name_methods,
)
from streamgp.experiments.schema.figure import Figure, Judgement
from streamgp.experiments.schema.record import Records

__all__ = ["FIGURE"]

_METHODS = ("exact-ts", "exact-lts", "svgp-large-pll-ts", "svgp-large-pll-lts")
# As fast: at most half as long again.
_MARGIN = math.log(1.5)


def _judge(records: Records) -> Judgement:
    checks = []
    for label, model in (("SVGP", "svgp-large-pll"), ("exact GP", "exact")):
        ts, lts = [f"{model}-ts"], [f"{model}-lts"]
        checks += [
            is_larger(f"{label}, reward of LTS above TS", compare_rewards(records, lts, ts)),
            is_no_worse(f"{label}, logarithm of the time of TS over LTS", compare_times(records, ts, lts), _MARGIN),
        ]
    return weigh(checks)


FIGURE = Figure(
    name="fig5",
    title="Fig. 5 a and b: look-ahead Thompson sampling on rover",
    study="rover",
    problems=("rover",),
    methods=_METHODS,
    claim="Thompson sampling with look-ahead (LTS) takes about as long as without (TS), and finds larger rewards with "
    "the same evaluations, with exact GPs and with SVGPs.",
    notes=(
        "SVGPs are trained for the predictive log likelihood, as in the paper. At the quick scale the number of their "
        "inducing points and of candidates, and the evaluations, are smaller.",
        *NOTES,
    ),
    draw=lambda records: draw_columns(records, [("", name_methods(records, _METHODS))]),
    describe=lambda records: describe_rewards(records, name_methods(records, _METHODS)),
    judge=_judge,
    tables=lambda records: (final_table(records, name_methods(records, _METHODS)),),
)
