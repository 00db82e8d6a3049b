"""Linear policies of a swimmer: Fig. 5 c."""

from streamgp.experiments.plots.robot_rewards import METHODS, NOTES, RobotRewards
from streamgp.experiments.schema.figure import Figure

__all__ = ["FIGURE"]

_REWARDS = RobotRewards(
    problem="swimmer",
    other="swimmer-running",
    published={
        "lamcts": {100: 276.0, 200: 352.0, 400: 362.0},
        "cma": {200: 281.0, 400: 327.0},
        "random": {100: 230.0, 200: 246.0, 400: 277.0},
    },
    reading=10.0,
    threshold=360.0,
)

FIGURE = Figure(
    name="fig5c",
    title="Fig. 5 c: policies of a swimmer",
    study="robots",
    problems=("swimmer", "swimmer-running"),
    methods=METHODS,
    claim="In trust regions that LA-MCTS places, an SVGP finds good policies of a swimmer with few episodes, with TS "
    "at least as soon as an exact GP; with look-ahead it tends to need the fewest.",
    notes=(
        *NOTES,
        "Published runs take the swimmer's observations as they are; the second problem scales them by a running "
        "filter.",
    ),
    draw=_REWARDS.draw,
    describe=_REWARDS.describe,
    judge=_REWARDS.judge,
    tables=_REWARDS.tables,
    needs_all=False,
    has_published_values=True,
)
