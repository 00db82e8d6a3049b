"""The functions of a row, compiled by numba where it is installed; `plain` has them in NumPy.

A row is predicted, judged, absorbed and forgotten by loops over the arrays of a `Belief`, which are changed in place.
"""

import math
from collections.abc import Callable
from typing import Any, no_type_check

import numpy as np

from streamgp.streams.constants import (
    FAR_EVERY,
    LONG_TAIL,
    NEAR_PRIOR,
    NOISE_KEEP,
    OPEN_NATS,
    RECENT_KEEP,
    SHARE,
    USE_KEEP,
)

__all__ = ["HAS_NUMBA", "learn_rows", "predict_rows"]

try:
    from numba import njit

    HAS_NUMBA = True
except ImportError:  # pragma: no cover - numba is a dependency, but has no wheels for some machines
    HAS_NUMBA = False

    def njit(**_: Any) -> Callable[[Any], Any]:  # type: ignore[no-redef]
        """Leave functions as they are."""
        return lambda function: function


# Sums may be reordered, and nothing is assumed of infinities and NaN.
_compile = njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "arcp", "nsz"})
_GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)
_ODDS = (1.0 - NEAR_PRIOR) / NEAR_PRIOR


@_compile
@no_type_check
def t_log_density(square, scale, degrees):
    """Log density of Student's t at an error of this square."""
    half = 0.5 * (degrees + 1.0)
    if degrees > 1e7:
        return -0.5 * (math.log(2.0 * math.pi * scale) + square / scale)
    return (
        math.lgamma(half)
        - math.lgamma(0.5 * degrees)
        - 0.5 * math.log(degrees * math.pi * scale)
        - half * math.log1p(square / (degrees * scale))
    )


@_compile
@no_type_check
def fill_features(x, belief, dynamics, h):
    """Write (1, x, φ(x)), and return the slack 1 − φᵀφ, the share of the function's variance that is left open."""
    p, d = belief.num_points[0], len(x)
    kernel = np.empty(p)
    for i in range(p):
        square = 0.0
        for j in range(d):
            difference = (belief.points[i, j] - x[j]) * dynamics.inverse_lengthscales[j]
            square += difference * difference
        r = math.sqrt(5.0 * square)
        kernel[i] = math.exp(-r) * (1.0 + r + r * r / 3.0)
    h[0] = 1.0
    for j in range(d):
        h[1 + j] = x[j]
    total = 0.0
    for i in range(p):
        row = belief.whitening[i]
        feature = 0.0
        for j in range(p):
            feature += row[j] * kernel[j]
        h[1 + d + i] = feature
        total += feature * feature
    return max(1.0 - total, 0.0)


@_compile
@no_type_check
def look(e, lag, slack, h, size, d, belief, dynamics, seen, gain):
    """Look at a row as one expert, `lag` rows away from the row of its state.

    Writes the row's features as the state sees them and the state's covariance with the row, and returns the mean and
    the variance in units of the noise's, without the noise.
    """
    away = abs(lag)
    open_ = dynamics.function[e] * slack
    if away:
        kept, kept_level = dynamics.keep[e] ** away, dynamics.keep_level[e] ** away
        root = math.sqrt(kept)
        slopes, functions = 0.0, 0.0
        seen[0] = math.sqrt(kept_level)
        for j in range(1, 1 + d):
            slopes += h[j] * h[j]
            seen[j] = root * h[j]
        for j in range(1 + d, size):
            functions += h[j] * h[j]
            seen[j] = root * h[j]
        if size > 1:
            open_ += (1.0 - kept) * (dynamics.slope[e] * slopes + dynamics.function[e] * functions)
        if kept_level < 1.0:
            open_ += dynamics.walk[e] * (1.0 - kept_level) / (1.0 - dynamics.keep_level[e])
        else:
            open_ += dynamics.walk[e] * away
    else:
        for j in range(size):
            seen[j] = h[j]
    covariance, mean = belief.covariance[e], belief.mean[e]
    location, variance = 0.0, 0.0
    for j in range(size):
        row = covariance[j]
        total = 0.0
        for i in range(size):
            total += row[i] * seen[i]
        gain[j] = total
        variance += total * seen[j]
        location += mean[j] * seen[j]
    return location, open_ + max(variance, 0.0)


@_compile
@no_type_check
def say(e, i, location, variance, noise, belief, said):
    """Write what an expert says of row i."""
    said.location[i, e] = location
    for k in range(2):
        a = belief.shape[e, k]
        said.scale[i, e, k] = belief.rate[e, k] / a * (noise + variance)
        said.degrees[i, e, k] = 2.0 * a if k == 0 else 1.0 / (1.0 / LONG_TAIL + 0.5 / a)


@_compile
@no_type_check
def near_probability(x, belief):
    """Probability that a row comes from where rows are of late, and not from where all have been."""
    moments, counts = belief.moments, belief.counts
    log_ratio = 0.0
    for j in range(len(x)):
        recent, all_ = moments[1, j] / counts[0] + 1e-4, moments[3, j] / counts[1] + 1e-4
        log_ratio += 0.5 * (
            math.log(all_ / recent) - (x[j] - moments[0, j]) ** 2 / recent + (x[j] - moments[2, j]) ** 2 / all_
        )
    return 1.0 / (1.0 + math.exp(min(-log_ratio, 300.0)) * _ODDS)


@_compile
@no_type_check
def note_input(x, belief):
    """Add a row to the moments of the inputs."""
    moments, counts = belief.moments, belief.counts
    for k in range(2):
        keep = RECENT_KEEP if k == 0 else 1.0
        counts[k] = keep * counts[k] + 1.0
        for j in range(len(x)):
            error = x[j] - moments[2 * k, j]
            moments[2 * k, j] += error / counts[k]
            moments[2 * k + 1, j] = keep * moments[2 * k + 1, j] + error * (x[j] - moments[2 * k, j])


@_compile
@no_type_check
def weigh(weights, evidence, power):
    """One step of fixed share: weights times the evidence to a power, and a share for all."""
    num_experts = len(weights)
    share, highest, total = SHARE * power, -1e300, 0.0
    for e in range(num_experts):
        for k in range(2):
            weights[e, k] += power * evidence[e, k]
            highest = max(highest, weights[e, k])
    for e in range(num_experts):
        for k in range(2):
            weights[e, k] = math.exp(weights[e, k] - highest)
            total += weights[e, k]
    for e in range(num_experts):
        for k in range(2):
            weights[e, k] = math.log((1.0 - share) * weights[e, k] / total + share / (2 * num_experts) + 1e-300)


@_compile
@no_type_check
def mix_weights(near, i, belief, said):
    """Write the weights for a row that comes from where rows are of late with this probability."""
    for e in range(len(belief.near)):
        for k in range(2):
            weight = near * math.exp(belief.near[e, k]) + (1.0 - near) * math.exp(belief.far[e, k])
            said.log_weight[i, e, k] = math.log(max(weight, 1e-300))


@_compile
@no_type_check
def advance(num_rows, belief, dynamics):
    """Move all states on by so many rows."""
    d = belief.points.shape[1]
    for e in range(len(belief.mean)):
        size = 1 + d + belief.num_points[0] if dynamics.function[e] > 0.0 else 1
        kept, kept_level = dynamics.keep[e] ** num_rows, dynamics.keep_level[e] ** num_rows
        move_state(e, size, d, math.sqrt(kept), math.sqrt(kept_level), belief, dynamics)
        if kept_level < 1.0:
            belief.covariance[e, 0, 0] += dynamics.walk[e] * (1.0 - kept_level) / (1.0 - dynamics.keep_level[e])
        else:
            belief.covariance[e, 0, 0] += dynamics.walk[e] * num_rows
    belief.clock[0] += num_rows


@_compile
@no_type_check
def move_state(e, size, d, root, root_level, belief, dynamics):
    """Multiply a state by the roots of what is kept, and return the variance that is lost to the prior."""
    covariance, mean = belief.covariance[e], belief.mean[e]
    mean[0] *= root_level
    covariance[0, 0] *= root_level * root_level
    if root == 1.0 and root_level == 1.0:
        return
    lost = 1.0 - root * root
    for j in range(1, size):
        mean[j] *= root
        covariance[0, j] *= root * root_level
        covariance[j, 0] *= root * root_level
        row = covariance[j]
        for i in range(1, size):
            row[i] *= root * root
        covariance[j, j] += lost * (dynamics.slope[e] if j <= d else dynamics.function[e])


@_compile
@no_type_check
def absorb(e, size, d, error, total, gain, belief, dynamics, moves):
    """Absorb a row whose error has this variance in units of the noise's, and move on to the next row."""
    covariance, mean = belief.covariance[e], belief.mean[e]
    root = math.sqrt(dynamics.keep[e]) if moves else 1.0
    root_level = math.sqrt(dynamics.keep_level[e]) if moves else 1.0
    lost = 1.0 - root * root
    for j in range(size):
        factor = root if j else root_level
        g = gain[j] / total
        mean[j] = (mean[j] + g * error) * factor
        row = covariance[j]
        row[0] = (row[0] - g * gain[0]) * factor * root_level
        factor *= root
        for i in range(1, size):
            row[i] = (row[i] - g * gain[i]) * factor
        if j:
            row[j] += lost * (dynamics.slope[e] if j <= d else dynamics.function[e])
    if moves:
        covariance[0, 0] += dynamics.walk[e]


@_compile
@no_type_check
def add_point(x, h, slack, size, belief, dynamics, gains):
    """Make a row a point: one more whitened value, of which the prior alone is known; returns the new size."""
    p, d = belief.num_points[0], len(x)
    root = math.sqrt(slack)
    belief.points[p] = x
    for j in range(p):
        total = 0.0
        for i in range(p):
            total += h[1 + d + i] * belief.whitening[i, j]
        belief.whitening[p, j] = -total / root
        belief.whitening[j, p] = 0.0
    belief.whitening[p, p] = 1.0 / root
    h[size] = root
    for e in range(len(belief.mean)):
        variance = dynamics.function[e]
        if variance > 0.0:
            for j in range(size):
                belief.covariance[e, size, j] = 0.0
                belief.covariance[e, j, size] = 0.0
            belief.covariance[e, size, size] = variance
            belief.mean[e, size] = 0.0
            gains[e, size] = variance * root
    belief.num_points[0] = p + 1
    return size + 1


@_compile
@no_type_check
def drop_point(point, belief, dynamics):
    """Leave out a point: turn the whitened values so that the last alone is what the others do not say of it."""
    p, d = belief.num_points[0], belief.points.shape[1]
    start, size = 1 + d, 1 + d + p
    axis = belief.whitening[:p, point].copy()
    axis /= math.sqrt((axis * axis).sum())
    axis[p - 1] += 1.0 if axis[p - 1] >= 0.0 else -1.0
    beta = 2.0 / (axis * axis).sum()
    for j in range(p):
        total = 0.0
        for i in range(p):
            total += axis[i] * belief.whitening[i, j]
        for i in range(p):
            belief.whitening[i, j] -= beta * total * axis[i]
    turned = np.empty(size)
    for e in range(len(belief.mean)):
        if dynamics.function[e] == 0.0:
            continue
        mean, covariance = belief.mean[e], belief.covariance[e]
        total = 0.0
        for i in range(p):
            total += axis[i] * mean[start + i]
        for i in range(p):
            mean[start + i] -= beta * total * axis[i]
        both = 0.0
        for j in range(size):
            total = 0.0
            for i in range(p):
                total += covariance[j, start + i] * axis[i]
            turned[j] = total
            if j >= start:
                both += total * axis[j - start]
        for j in range(size):
            of_j = axis[j - start] if j >= start else 0.0
            for i in range(size):
                of_i = axis[i - start] if i >= start else 0.0
                covariance[j, i] -= beta * (turned[j] * of_i + of_j * turned[i]) - beta * beta * both * of_j * of_i
    last = p - 1
    belief.points[point] = belief.points[last]
    belief.use[point] = belief.use[last]
    for i in range(p):
        belief.whitening[i, point] = belief.whitening[i, last]
    belief.num_points[0] = last


@_compile
@no_type_check
def note_use(h, slack, variance, belief):
    """Add to the use of each point what this row would miss without it, in nats."""
    p = belief.num_points[0]
    d = belief.points.shape[1]
    for j in range(p):
        total, square = 0.0, 0.0
        for i in range(p):
            w = belief.whitening[i, j]
            total += h[1 + d + i] * w
            square += w * w
        missed = 0.5 * math.log1p(variance * total * total / square / (1.0 + variance * slack))
        belief.use[j] = USE_KEEP * belief.use[j] + (1.0 - USE_KEEP) * missed


@_compile
@no_type_check
def predict_rows(inputs, times, belief, dynamics, said):
    """Say what rows of these times are expected to be; nothing is changed."""
    num_experts, d = len(belief.mean), inputs.shape[1]
    full = 1 + d + belief.num_points[0]
    h, seen, gain = np.empty(full), np.empty(full), np.empty(full)
    for i in range(len(inputs)):
        slack = fill_features(inputs[i], belief, dynamics, h)
        for e in range(num_experts):
            size = full if dynamics.function[e] > 0.0 else 1
            lag = times[i] - belief.clock[0]
            location, variance = look(e, lag, slack, h, size, d, belief, dynamics, seen, gain)
            say(e, i, location, variance, 1.0, belief, said)
        mix_weights(near_probability(inputs[i], belief), i, belief, said)


@_compile
@no_type_check
def learn_rows(
    inputs,
    targets,
    noises,
    times,
    start,
    stop,
    belief,
    dynamics,
    most_points,
    most_open,
    exchanges,
    is_said,
    powers,
    said,
):
    """Predict, judge, weigh, absorb and forget rows `start` to `stop`, in order.

    Args:
        inputs: Rows before `start` are those that were learned, of which some are judged again.
        targets: Their targets.
        noises: Variance of the noise of each row in units of what is usual, one over its weight.
        times: When the rows were; one that is later than the state moves it on, one that is earlier is learned late.
        start: First row.
        stop: Row after the last.
        belief: Changed in place; has room for `most_points`, or for as many more as there are rows.
        dynamics: How states move.
        most_points: Budget of points.
        most_open: Stop after the row with which rows have left more nats than this open for want of points.
        exchanges: Whether rows may take the places of points that recent rows do not miss.
        is_said: Whether `said` holds what was said of these rows when it was asked; written otherwise.
        powers: Powers of the evidence of each row of `said`.
        said: What was said of row i is in its row i − start.

    Returns:
        The row after the last that was learned, and the nats that rows left open for want of points.
    """
    num_experts, d = len(belief.mean), inputs.shape[1]
    room = len(belief.points)
    h, seen = np.empty(1 + d + room), np.empty(1 + d + room)
    gains, totals = np.empty((num_experts, 1 + d + room)), np.empty(num_experts)
    errors, evidence, trusts = np.empty(num_experts), np.empty((num_experts, 2)), np.empty((num_experts, 2))
    locations = np.empty(num_experts)
    left_open = 0.0
    for i in range(start, stop):
        x, row = inputs[i], i - start
        lag = times[i] - belief.clock[0]
        if lag > 0:
            advance(lag, belief, dynamics)
            lag = 0
        full = 1 + d + belief.num_points[0]
        near = near_probability(x, belief)
        slack = fill_features(x, belief, dynamics, h)
        for e in range(num_experts):
            size = full if dynamics.function[e] > 0.0 else 1
            locations[e], variance = look(e, lag, slack, h, size, d, belief, dynamics, seen, gains[e])
            totals[e] = noises[i] + variance
            if not is_said:
                say(e, row, locations[e], variance, noises[i], belief, said)
        if not is_said:
            mix_weights(near, row, belief, said)
        opened, prior_variance = 0.0, 0.0
        for e in range(num_experts):
            errors[e] = targets[i] - locations[e]
            said_square = (targets[i] - said.location[row, e]) ** 2
            prior_variance = max(prior_variance, dynamics.function[e])
            for k in range(2):
                evidence[e, k] = t_log_density(said_square, said.scale[row, e, k], said.degrees[row, e, k])
                trusts[e, k] = 1.0
                if k == 1:
                    degrees = 1.0 / (1.0 / LONG_TAIL + 0.5 / belief.shape[e, k])
                    scale = belief.rate[e, k] / belief.shape[e, k] * totals[e]
                    trusts[e, k] = (degrees + 1.0) / (degrees + errors[e] * errors[e] / scale)
                weight = math.exp(said.log_weight[row, e, k]) * min(trusts[e, k], 1.0)
                opened += weight * 0.5 * math.log1p(slack * dynamics.function[e])
        if belief.num_points[0] >= most_points and prior_variance > 0.0:
            if exchanges:
                note_use(h, slack, prior_variance, belief)
            elif opened > OPEN_NATS:
                left_open += opened
        if opened > OPEN_NATS and slack > 1e-9 and lag == 0:
            if belief.num_points[0] >= most_points and exchanges:
                drop_point(int(np.argmin(belief.use[: belief.num_points[0]])), belief, dynamics)
                slack = fill_features(x, belief, dynamics, h)
                full = 1 + d + belief.num_points[0]
                for e in range(num_experts):
                    size = full if dynamics.function[e] > 0.0 else 1
                    locations[e], variance = look(e, lag, slack, h, size, d, belief, dynamics, seen, gains[e])
                    totals[e] = noises[i] + variance
                    errors[e] = targets[i] - locations[e]
            if belief.num_points[0] < most_points:
                belief.use[belief.num_points[0]] = opened
                full = add_point(x, h, slack, full, belief, dynamics, gains)
        for e in range(num_experts):
            size = full if dynamics.function[e] > 0.0 else 1
            absorb(e, size, d, errors[e], totals[e], gains[e], belief, dynamics, lag == 0)
            for k in range(2):
                square = trusts[e, k] * errors[e] * errors[e] / totals[e]
                belief.shape[e, k] = NOISE_KEEP * (belief.shape[e, k] + 0.5)
                belief.rate[e, k] = NOISE_KEEP * (belief.rate[e, k] + 0.5 * square) + 1e-12
        if lag == 0:
            belief.clock[0] += 1
        weigh(belief.near, evidence, near * powers[row])
        note_input(x, belief)
        weigh(belief.far, evidence, (1.0 - near) * powers[row])
        if i % FAR_EVERY == 0 and i > 0:
            judge_past(inputs, targets, i, near, belief, dynamics, h, seen, gains[0], evidence)
        if left_open > most_open:
            return i + 1, left_open
    return stop, left_open


@_compile
@no_type_check
def judge_past(inputs, targets, i, near, belief, dynamics, h, seen, gain, evidence):
    """Judge the experts by a row of long ago, for inputs that are unlike those of late."""
    past, d = int(((i * _GOLDEN) % 1.0) * i), inputs.shape[1]
    slack = fill_features(inputs[past], belief, dynamics, h)
    for e in range(len(belief.mean)):
        size = 1 + d + belief.num_points[0] if dynamics.function[e] > 0.0 else 1
        location, variance = look(e, 0, slack, h, size, d, belief, dynamics, seen, gain)
        square = (targets[past] - location) ** 2
        for k in range(2):
            a = belief.shape[e, k]
            degrees = 2.0 * a if k == 0 else 1.0 / (1.0 / LONG_TAIL + 0.5 / a)
            evidence[e, k] = t_log_density(square, belief.rate[e, k] / a * (1.0 + variance), degrees)
    weigh(belief.far, evidence, near * (1.0 - near_probability(inputs[past], belief)))
