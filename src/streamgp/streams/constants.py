"""The numbers that act on a prediction, row by row; each says what happens if it is larger."""

import math

__all__ = [
    "FAR_EVERY",
    "GRID_DEVIATIONS",
    "GRID_NODES",
    "GRID_STEPS",
    "LEAST_PROBABILITY",
    "LEAST_VARIANCE",
    "LONG_TAIL",
    "NEAR_PRIOR",
    "NOISE_KEEP",
    "OPEN_NATS",
    "RECENT_KEEP",
    "SHARE",
    "USE_KEEP",
]

# Degrees of freedom of the long-tailed scale of errors; larger treats large errors as news about the scale.
LONG_TAIL = 4.0
# Share of what is known of the noise that survives a row, 34 rows in all; larger follows changes of the noise later.
NOISE_KEEP = 1.0 - 1.0 / 34.0
# Probability that another expert is right from the next row on; larger follows changes faster, and mixes more.
SHARE = 0.005
# Nats that a row must leave open to become a point; larger saves points, and loses detail.
OPEN_NATS = 0.1
# Share of the moments of recent inputs that survives a row, 100 rows in all; larger notices later that inputs move.
RECENT_KEEP = 0.99
# Probability that a row comes from where rows are of late, before looking at it; larger trusts old places less.
NEAR_PRIOR = 0.95
# A row of long ago is judged again after so many rows; larger saves time, and learns more slowly who is good elsewhere.
FAR_EVERY = 4
# Share of a point's use that survives a row, 64 rows in all; larger exchanges points that were left behind later.
USE_KEEP = math.exp(-1.0 / 64.0)
# Nodes of the grid on which a row's latent value is looked at, deviations that it covers on both sides, and how often
# it may close in; more cost time: with these, evidence is off by at most some thousandths of a nat.
GRID_NODES, GRID_DEVIATIONS, GRID_STEPS = 65, 8.0, 12
# Least share of a latent value's variance that a row leaves; rounding only.
LEAST_VARIANCE = 1e-12
# Least probability of a class; larger is less sure of labels that one against all others does not expect at all.
LEAST_PROBABILITY = 1e-9
