"""The functions of a row, compiled by numba where it is installed; `plain` has them in NumPy.

A row is predicted, judged, absorbed and forgotten by loops over the arrays of a `Belief`, which are changed in place.
"""

import math
from typing import no_type_check

import numpy as np

from streamgp.streams.compiled_sites import match
from streamgp.streams.compiling import compiled_function, compiled_part
from streamgp.streams.constants import (
    FAR_EVERY,
    LEAST_PROBABILITY,
    LONG_TAIL,
    NEAR_PRIOR,
    NOISE_KEEP,
    OPEN_NATS,
    RECENT_KEEP,
    SHARE,
    USE_KEEP,
)

__all__ = ["learn_rows", "predict_rows"]

_GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)
_ODDS = (1.0 - NEAR_PRIOR) / NEAR_PRIOR


@compiled_part
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


@compiled_part
@no_type_check
def correlation(family, square):
    """Kernel at a squared distance, in lengthscales; see `kernels.value_of`."""
    if family == 3:
        return math.exp(-0.5 * square)
    if family == 0:
        r = math.sqrt(5.0 * square)
        return math.exp(-r) * (1.0 + r + r * r / 3.0)
    r = math.sqrt(square) if family == 2 else math.sqrt(3.0 * square)
    return math.exp(-r) if family == 2 else math.exp(-r) * (1.0 + r)


@compiled_part
@no_type_check
def fill_features(x, belief, dynamics, h):
    """Write (1, x, φ(x)), and return the slack 1 − φᵀφ, the share of the function's variance that is left open."""
    p, d = belief.num_points[0], len(x)
    kernel, family = np.empty(p), dynamics.kernel.family
    for i in range(p):
        square = 0.0
        for j in range(d):
            difference = (belief.points[i, j] - x[j]) * dynamics.kernel.inverse_lengthscales[j]
            square += difference * difference
        kernel[i] = correlation(family, square)
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


@compiled_part
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


@compiled_part
@no_type_check
def size_of(f, p, d, dynamics):
    """Size of a filter's state: the level, the slopes if it has any, and the function's values."""
    return 1 + d + p if dynamics.function[f] > 0.0 else (1 + d if dynamics.slope[f] > 0.0 else 1)


@compiled_part
@no_type_check
def see(x, lag, belief, dynamics, h, seen, locations, variances, gains):
    """Look at a row as all filters; returns the slack."""
    slack = fill_features(x, belief, dynamics, h)
    p, d = belief.num_points[0], len(x)
    for f in range(len(belief.mean)):
        size = size_of(f, p, d, dynamics)
        locations[f], variances[f] = look(f, lag, slack, h, size, d, belief, dynamics, seen, gains[f])
    return slack


@compiled_part
@no_type_check
def say(locations, variances, noise, belief, densities, location, scale, degrees):
    """Write what the filters say of a row."""
    for f in range(len(locations)):
        if densities is None:
            location[f] = locations[f]
            for k in range(scale.shape[1]):
                a = belief.shape[f, k]
                scale[f, k] = belief.rate[f, k] / a * (noise + variances[f])
                degrees[f, k] = 2.0 * a if k == 0 else 1.0 / (1.0 / LONG_TAIL + 0.5 / a)
        else:
            location[f] = locations[f] + densities.offsets[f % len(densities.offsets)]
            scale[f, 0], degrees[f, 0] = variances[f], np.inf


@compiled_part
@no_type_check
def judge(y, count, location, scale, degrees, densities, evidence):
    """Write the log density or probability that each expert has given to a target."""
    num_experts, num_tails = evidence.shape
    if densities is None:
        for e in range(num_experts):
            square = (y - location[e]) ** 2
            for k in range(num_tails):
                evidence[e, k] = t_log_density(square, scale[e, k], degrees[e, k])
    else:
        num_questions = len(densities.offsets)
        for e in range(num_experts):
            total, right = 0.0, 0.0
            for q in range(num_questions):
                f = e * num_questions + q
                answer = y if num_questions == 1 else (1.0 if q == int(y) else 0.0)
                found, _, _ = match(densities, answer, count, 1.0, location[f], scale[f, 0])
                if num_questions > 1:
                    probability = math.exp(found) if answer > 0.5 else 1.0 - math.exp(found)
                    total += max(probability, LEAST_PROBABILITY)
                    right = max(probability, LEAST_PROBABILITY) if answer > 0.5 else right
                else:
                    evidence[e, 0] = found
            if num_questions > 1:
                evidence[e, 0] = math.log(right / total)


@compiled_part
@no_type_check
def weigh_row(y, count, noise, locations, variances, belief, densities, row_steps):
    """Write by how much each filter follows a row.

    The columns are: the step of the mean along the gain, the share of the gain's square by which the covariance
    shrinks, and the precision that the row adds; for real targets also how far the long-tailed scale trusts the error.
    """
    for f in range(len(locations)):
        variance = max(variances[f], 1e-12)
        if densities is None:
            error, total = y - locations[f], noise + variances[f]
            row_steps[f, 0], row_steps[f, 1], row_steps[f, 2] = error / total, 1.0 / total, 1.0 / noise
            degrees = 1.0 / (1.0 / LONG_TAIL + 0.5 / belief.shape[f, 1])
            scale = belief.rate[f, 1] / belief.shape[f, 1] * total
            row_steps[f, 3] = (degrees + 1.0) / (degrees + error * error / scale)
        else:
            num_questions = len(densities.offsets)
            offset = densities.offsets[f % num_questions]
            answer = y if num_questions == 1 else (1.0 if f % num_questions == int(y) else 0.0)
            _, mean, after = match(densities, answer, count, 1.0 / noise, locations[f] + offset, variance)
            row_steps[f, 0] = (mean - offset - locations[f]) / variance
            row_steps[f, 1] = (variance - after) / (variance * variance)
            row_steps[f, 2] = max(1.0 / after - 1.0 / variance, 0.0)
            row_steps[f, 3] = 1.0


@compiled_part
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


@compiled_part
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


@compiled_part
@no_type_check
def weigh(weights, evidence, power):
    """One step of fixed share: weights times the evidence to a power, and a share for all."""
    num_experts, num_tails = weights.shape
    share, highest, total = SHARE * power, -1e300, 0.0
    for e in range(num_experts):
        for k in range(num_tails):
            weights[e, k] += power * evidence[e, k]
            highest = max(highest, weights[e, k])
    for e in range(num_experts):
        for k in range(num_tails):
            weights[e, k] = math.exp(weights[e, k] - highest)
            total += weights[e, k]
    even = share / (num_tails * num_experts)
    for e in range(num_experts):
        for k in range(num_tails):
            weights[e, k] = math.log((1.0 - share) * weights[e, k] / total + even + 1e-300)


@compiled_part
@no_type_check
def mix_weights(near, belief, log_weight):
    """Write the weights for a row that comes from where rows are of late with this probability."""
    num_experts, num_tails = belief.near.shape
    for e in range(num_experts):
        for k in range(num_tails):
            weight = near * math.exp(belief.near[e, k]) + (1.0 - near) * math.exp(belief.far[e, k])
            log_weight[e, k] = math.log(max(weight, 1e-300))


@compiled_part
@no_type_check
def advance(num_rows, belief, dynamics):
    """Move all states on by so many rows."""
    d = belief.points.shape[1]
    for e in range(len(belief.mean)):
        size = size_of(e, belief.num_points[0], d, dynamics)
        kept, kept_level = dynamics.keep[e] ** num_rows, dynamics.keep_level[e] ** num_rows
        move_state(e, size, d, math.sqrt(kept), math.sqrt(kept_level), belief, dynamics)
        if kept_level < 1.0:
            belief.covariance[e, 0, 0] += dynamics.walk[e] * (1.0 - kept_level) / (1.0 - dynamics.keep_level[e])
        else:
            belief.covariance[e, 0, 0] += dynamics.walk[e] * num_rows
    belief.clock[0] += num_rows


@compiled_part
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


@compiled_part
@no_type_check
def absorb(e, size, d, step, shrink, gain, belief, dynamics, moves):
    """Absorb a row by which the mean steps along the gain and the covariance shrinks, and move on to the next row."""
    covariance, mean = belief.covariance[e], belief.mean[e]
    root = math.sqrt(dynamics.keep[e]) if moves else 1.0
    root_level = math.sqrt(dynamics.keep_level[e]) if moves else 1.0
    lost = 1.0 - root * root
    for j in range(size):
        factor = root if j else root_level
        g = gain[j] * shrink
        mean[j] = (mean[j] + gain[j] * step) * factor
        row = covariance[j]
        row[0] = (row[0] - g * gain[0]) * factor * root_level
        factor *= root
        for i in range(1, size):
            row[i] = (row[i] - g * gain[i]) * factor
        if j:
            row[j] += lost * (dynamics.slope[e] if j <= d else dynamics.function[e])
    if moves:
        covariance[0, 0] += dynamics.walk[e]


@compiled_part
@no_type_check
def add_point(x, h, slack, size, belief, dynamics, gains):
    """Make a row a point: one more whitened value, of which the prior alone is known; returns the new size."""
    p, d = belief.num_points[0], len(x)
    root = math.sqrt(slack)
    for j in range(d):
        belief.points[p, j] = x[j]
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


@compiled_part
@no_type_check
def drop_point(point, belief, dynamics):
    """Leave out a point: turn the whitened values so that the last alone is what the others do not say of it."""
    p, d = belief.num_points[0], belief.points.shape[1]
    start, size = 1 + d, 1 + d + p
    # In loops, as sums and copies of NumPy take seconds to compile.
    axis, square = np.empty(p), 0.0
    for i in range(p):
        axis[i] = belief.whitening[i, point]
        square += axis[i] * axis[i]
    for i in range(p):
        axis[i] /= math.sqrt(square)
    turned_one = axis[p - 1]
    axis[p - 1] += 1.0 if turned_one >= 0.0 else -1.0
    beta = 2.0 / (1.0 - turned_one * turned_one + axis[p - 1] * axis[p - 1])
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
    for j in range(d):
        belief.points[point, j] = belief.points[last, j]
    belief.use[point] = belief.use[last]
    for i in range(p):
        belief.whitening[i, point] = belief.whitening[i, last]
    belief.num_points[0] = last


@compiled_part
@no_type_check
def least_used(belief):
    """Find the point that recent rows would miss least."""
    least = 0
    for i in range(belief.num_points[0]):
        if belief.use[i] < belief.use[least]:
            least = i
    return least


@compiled_part
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


@compiled_function
@no_type_check
def predict_rows(inputs, times, belief, dynamics, densities, said):
    """Say what rows of these times are expected to be; nothing is changed."""
    num_filters, size = belief.mean.shape
    h, seen, gains = np.empty(size), np.empty(size), np.empty((num_filters, size))
    locations, variances = np.empty(num_filters), np.empty(num_filters)
    for i in range(len(inputs)):
        see(inputs[i], times[i] - belief.clock[0], belief, dynamics, h, seen, locations, variances, gains)
        say(locations, variances, 1.0, belief, densities, said.location[i], said.scale[i], said.degrees[i])
        mix_weights(near_probability(inputs[i], belief), belief, said.log_weight[i])


@compiled_function
@no_type_check
def learn_rows(
    inputs,
    targets,
    counts,
    noises,
    times,
    start,
    stop,
    belief,
    dynamics,
    densities,
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
        counts: Their numbers of trials or exposures; ones for targets that have none.
        noises: Variance of the noise of each row in units of what is usual, one over its weight.
        times: When the rows were; one that is later than the state moves it on, one that is earlier is learned late.
        start: First row.
        stop: Row after the last.
        belief: Changed in place; has room for `most_points`, or for as many more as there are rows.
        dynamics: How states move.
        densities: Density of targets given latent values; None for real targets with noise whose scale is learned.
        most_points: Budget of points.
        most_open: Stop after the row with which rows have left more nats than this open for want of points.
        exchanges: Whether rows may take the places of points that recent rows do not miss.
        is_said: Whether `said` holds what was said of these rows when it was asked; written otherwise.
        powers: Powers of the evidence of each row of `said`.
        said: What was said of row i is in its row i − start.

    Returns:
        The row after the last that was learned, and the nats that rows left open for want of points.
    """
    (num_filters, size), d = belief.mean.shape, inputs.shape[1]
    num_experts, num_tails = belief.near.shape
    num_questions = num_filters // num_experts
    h, seen, gains = np.empty(size), np.empty(size), np.empty((num_filters, size))
    locations, variances = np.empty(num_filters), np.empty(num_filters)
    evidence, steps = np.empty((num_experts, num_tails)), np.empty((num_filters, 4))
    past_scale, past_degrees = np.empty((num_filters, num_tails)), np.empty((num_filters, num_tails))
    left_open = 0.0
    for i in range(start, stop):
        x, row = inputs[i], i - start
        lag = times[i] - belief.clock[0]
        if lag > 0:
            advance(lag, belief, dynamics)
            lag = 0
        near = near_probability(x, belief)
        slack = see(x, lag, belief, dynamics, h, seen, locations, variances, gains)
        if not is_said:
            noise = noises[i]
            say(locations, variances, noise, belief, densities, said.location[row], said.scale[row], said.degrees[row])
            mix_weights(near, belief, said.log_weight[row])
        judge(targets[i], counts[i], said.location[row], said.scale[row], said.degrees[row], densities, evidence)
        weigh_row(targets[i], counts[i], noises[i], locations, variances, belief, densities, steps)
        opened, highest = 0.0, 0.0
        for f in range(num_filters):
            e = f // num_questions
            worth = dynamics.function[f] * steps[f, 2]
            highest = max(highest, worth)
            weight = math.exp(said.log_weight[row, e, 0])
            if num_tails > 1:
                weight += math.exp(said.log_weight[row, e, 1]) * min(steps[f, 3], 1.0)
            opened += weight * 0.5 * math.log1p(slack * worth)
        if belief.num_points[0] >= most_points and highest > 0.0:
            if exchanges:
                note_use(h, slack, highest, belief)
            elif opened > OPEN_NATS:
                left_open += opened
        if opened > OPEN_NATS and slack > 1e-9 and lag == 0:
            if belief.num_points[0] >= most_points and exchanges:
                drop_point(least_used(belief), belief, dynamics)
                slack = see(x, lag, belief, dynamics, h, seen, locations, variances, gains)
                weigh_row(targets[i], counts[i], noises[i], locations, variances, belief, densities, steps)
            if belief.num_points[0] < most_points:
                belief.use[belief.num_points[0]] = opened
                add_point(x, h, slack, 1 + d + belief.num_points[0], belief, dynamics, gains)
        for f in range(num_filters):
            n = size_of(f, belief.num_points[0], d, dynamics)
            absorb(f, n, d, steps[f, 0], steps[f, 1], gains[f], belief, dynamics, lag == 0)
            if densities is None:
                square = steps[f, 0] * steps[f, 0] / steps[f, 1]
                for k in range(num_tails):
                    trusted = square if k == 0 else steps[f, 3] * square
                    belief.shape[f, k] = NOISE_KEEP * (belief.shape[f, k] + 0.5)
                    belief.rate[f, k] = NOISE_KEEP * (belief.rate[f, k] + 0.5 * trusted) + 1e-12
        if lag == 0:
            belief.clock[0] += 1
        weigh(belief.near, evidence, near * powers[row])
        note_input(x, belief)
        weigh(belief.far, evidence, (1.0 - near) * powers[row])
        if i % FAR_EVERY == 0 and i > 0:
            past = int(((i * _GOLDEN) % 1.0) * i)
            now = lag * 0  # a zero that is not literal, for which all would be compiled anew
            see(inputs[past], now, belief, dynamics, h, seen, locations, variances, gains)
            say(locations, variances, 1.0, belief, densities, locations, past_scale, past_degrees)
            judge(targets[past], counts[past], locations, past_scale, past_degrees, densities, evidence)
            weigh(belief.far, evidence, near * (1.0 - near_probability(inputs[past], belief)))
        if left_open > most_open:
            return i + 1, left_open
    return stop, left_open
