"""Linear policies of a swimmer: Fig. 5 c."""

from paper.plots.robot_rewards import RobotRewards

__all__ = ["FIGURE"]

FIGURE = RobotRewards(
    problem="swimmer",
    other="swimmer-running",
    published={
        "lamcts": {100: 276.0, 200: 352.0, 400: 362.0},
        "cma": {200: 281.0, 400: 327.0},
        "random": {100: 230.0, 200: 246.0, 400: 277.0},
    },
    reading=10.0,
    threshold=360.0,
).figure(
    "fig5c",
    "Fig. 5 c: policies of a swimmer",
    claim="In trust regions that LA-MCTS places, an SVGP finds good policies of a swimmer with few episodes, with TS "
    "at least as soon as an exact GP; with look-ahead it tends to need the fewest.",
    notes=(
        "Published runs take the swimmer's observations as they are; the second problem scales them by a running "
        "filter.",
    ),
)
