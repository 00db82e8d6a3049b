"""Trust regions on rover with exact and sparse models: Fig. 5 a and b."""

import math

from paper.analysis.claims import is_larger, is_no_worse, weigh
from paper.plots.rover_progress import compare_rewards, compare_times, name_methods, rover_figure
from paper.schema.figure import Judgement
from paper.schema.record import Records

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


FIGURE = rover_figure(
    "fig5",
    "Fig. 5 a and b: look-ahead Thompson sampling on rover",
    lambda records: name_methods(records, _METHODS),
    methods=_METHODS,
    claim="Thompson sampling with look-ahead (LTS) takes about as long as without (TS), and finds larger rewards with "
    "the same evaluations, with exact GPs and with SVGPs.",
    notes=(
        "SVGPs are trained for the predictive log likelihood, as in the paper. At the quick scale the number of their "
        "inducing points and of candidates, and the evaluations, are smaller.",
    ),
    judge=_judge,
)
