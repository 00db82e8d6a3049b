"""Depths of the look-ahead on rover: Fig. 10 a."""

from paper.analysis.claims import is_similar, weigh
from paper.plots.rover_progress import MARGIN, compare_rewards, rover_figure
from paper.schema.figure import Judgement
from paper.schema.record import Records

__all__ = ["FIGURE"]

_BASE = "svgp-large-elbo-lts"
_OTHERS = {f"{_BASE}-depth1": "depth 1", f"{_BASE}-depth2": "depth 2", f"{_BASE}-depth8": "depth 8"}


def _labels(records: Records) -> dict[str, str]:
    return {**_OTHERS, _BASE: f"depth {records.settings['depth']}, as elsewhere"}


def _judge(records: Records) -> Judgement:
    base = f"against depth {records.settings['depth']}"
    return weigh(
        [
            is_similar(f"{label} {base}", compare_rewards(records, [method], [_BASE]), MARGIN)
            for method, label in _OTHERS.items()
        ]
    )


FIGURE = rover_figure(
    "fig10a",
    "Fig. 10 a: depths of the look-ahead",
    _labels,
    methods=(_BASE, *_OTHERS),
    claim="Rewards are similar for all depths of the look-ahead; depth 4 is enough.",
    notes=(
        "Which depths the paper draws is not stated. SVGPs are trained for the evidence bound here, which is cheaper "
        "than the paper's predictive log likelihood.",
    ),
    judge=_judge,
)
