"""Evidence and moments of one latent value given a row, compiled, on a grid that closes in on the posterior.

`Observing.moments` does this in NumPy for any likelihood; here are the densities of those that have names.
"""

import math
from typing import NamedTuple, no_type_check

import numpy as np
from jaxtyping import Float

from streamgp.streams.compiling import compiled_part
from streamgp.streams.constants import GRID_DEVIATIONS, GRID_NODES, GRID_STEPS, LEAST_VARIANCE

__all__ = ["BINOMIAL", "NEGATIVE_BINOMIAL", "POISSON", "PROBIT", "STUDENT_T", "Densities", "match"]

PROBIT, BINOMIAL, POISSON, NEGATIVE_BINOMIAL, STUDENT_T = range(5)


class Densities(NamedTuple):
    """Density of targets given latent values.

    Attributes:
        family: Number of the family.
        parameters: Its parameters: dispersion, or degrees of freedom and scale.
        offsets: Means of the latent values before anything is known, one for each question.
    """

    family: int
    parameters: Float[np.ndarray, " 2"]
    offsets: Float[np.ndarray, " q"]


@compiled_part
@no_type_check
def log_normal_cumulative(z):
    """Logarithm of the normal distribution function."""
    if z > -20.0:
        return math.log(0.5 * math.erfc(-z / math.sqrt(2.0)))
    square = 1.0 / (z * z)
    series = math.log1p(-square * (1.0 - square * (3.0 - 15.0 * square)))
    return -0.5 * z * z - math.log(-z) - 0.5 * math.log(2.0 * math.pi) + series


@compiled_part
@no_type_check
def log_density(family, a, b, y, count, f):
    """Log density of a target given a latent value, but for terms without it."""
    if family == PROBIT:
        return log_normal_cumulative(f if y > 0.5 else -f)
    if family == POISSON:
        return y * f - count * math.exp(min(f, 600.0))
    if family == STUDENT_T:
        return -0.5 * (a + 1.0) * math.log1p((y - f) ** 2 / (a * b * b))
    shifted = f - math.log(a) if family == NEGATIVE_BINOMIAL else f
    failures = a if family == NEGATIVE_BINOMIAL else count - y
    softplus = max(shifted, 0.0) + math.log1p(math.exp(-abs(shifted)))
    return y * shifted - (y + failures) * softplus


@compiled_part
@no_type_check
def log_constant(family, a, b, y, count):
    """Terms of the log density without the latent value."""
    if family == POISSON:
        return y * math.log(count) - math.lgamma(y + 1.0)
    if family == BINOMIAL:
        return math.lgamma(count + 1.0) - math.lgamma(y + 1.0) - math.lgamma(count - y + 1.0)
    if family == NEGATIVE_BINOMIAL:
        return math.lgamma(y + a) - math.lgamma(a) - math.lgamma(y + 1.0)
    if family == STUDENT_T:
        return math.lgamma(0.5 * (a + 1.0)) - math.lgamma(0.5 * a) - 0.5 * math.log(a * math.pi) - math.log(b)
    return 0.0


@compiled_part
@no_type_check
def match(densities, y, count, power, mean, variance):
    """Return log evidence, mean and variance of a latent value after a target, whose density is raised to a power."""
    family, a, b = densities.family, densities.parameters[0], densities.parameters[1]
    if family == PROBIT and power == 1.0:
        sign = 1.0 if y > 0.5 else -1.0
        root = math.sqrt(1.0 + variance)
        z = sign * mean / root
        log_evidence = log_normal_cumulative(z)
        ratio = math.exp(-0.5 * z * z - log_evidence) / math.sqrt(2.0 * math.pi)
        left = 1.0 - variance / (1.0 + variance) * ratio * (z + ratio)
        return log_evidence, mean + sign * variance * ratio / root, variance * max(left, LEAST_VARIANCE)
    center, half = mean, GRID_DEVIATIONS * math.sqrt(variance)
    middle = GRID_NODES // 2
    logs = np.empty(GRID_NODES)
    log_evidence, found_mean, found_variance = 0.0, mean, variance
    for _ in range(GRID_STEPS):
        step, top, peak = half / middle, -math.inf, 0
        for j in range(GRID_NODES):
            f = center + (j - middle) * step
            logs[j] = power * log_density(family, a, b, y, count, f) - 0.5 * (f - mean) ** 2 / variance
            if logs[j] > top:
                top, peak = logs[j], j
        total, first, second = 0.0, 0.0, 0.0
        for j in range(GRID_NODES):
            weight, away = math.exp(logs[j] - top), (j - peak) * step
            total += weight
            first += weight * away
            second += weight * away * away
        first /= total
        found_mean = center + (peak - middle) * step + first
        found_variance = max(second / total - first * first, 0.0)
        log_evidence = top + math.log(total * step) - 0.5 * math.log(2.0 * math.pi * variance)
        if peak == 0 or peak == GRID_NODES - 1:
            center += (peak - middle) * step
        elif found_variance < 0.64 * step * step:
            center, half = found_mean, GRID_DEVIATIONS * max(math.sqrt(found_variance), 0.25 * step)
        else:
            break
    log_evidence += power * log_constant(family, a, b, y, count)
    return log_evidence, found_mean, max(found_variance, LEAST_VARIANCE * variance)
