"""The functions of a row in NumPy, all experts at once: what `compiled` is tested against, and its stand-in."""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.special import gammaln, log_softmax

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
from streamgp.streams.observing import Observing
from streamgp.streams.state import Belief, Dynamics, Said, empty_said

__all__ = ["advance", "learn_rows", "predict_rows"]

_GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)
_LEAST_SLACK = 1e-9


def predict_rows(
    inputs: Float[np.ndarray, "n d"],
    times: Int[np.ndarray, " n"],
    belief: Belief,
    dynamics: Dynamics,
    observing: Observing | None,
    said: Said,
) -> None:
    """Say what rows of these times are expected to be; nothing is changed."""
    for i, x in enumerate(inputs):
        h, slack = _features(x, belief, dynamics)
        location, variance, _ = _look(int(times[i]) - int(belief.clock[0]), h, slack, belief, dynamics)
        _say(said.rows(i, i + 1), location, variance, 1.0, belief, observing)
        said.log_weight[i] = _weights(_near_probability(x, belief), belief)


def learn_rows(
    inputs: Float[np.ndarray, "r d"],
    targets: Float[np.ndarray, " r"],
    counts: Float[np.ndarray, " r"],
    noises: Float[np.ndarray, " r"],
    times: Int[np.ndarray, " r"],
    start: int,
    stop: int,
    belief: Belief,
    dynamics: Dynamics,
    observing: Observing | None,
    most_points: int,
    most_open: float,
    exchanges: bool,
    is_said: bool,
    powers: Float[np.ndarray, " n"],
    said: Said,
) -> tuple[int, float]:
    """Predict, judge, weigh, absorb and forget rows; see `compiled.learn_rows`."""
    left_open, num_questions = 0.0, len(belief.mean) // len(belief.near)
    for i in range(start, stop):
        x, row, lag = inputs[i], i - start, int(times[i] - belief.clock[0])
        if lag > 0:
            advance(lag, belief, dynamics)
            lag = 0
        near = _near_probability(x, belief)
        h, slack = _features(x, belief, dynamics)
        location, variance, gain = _look(lag, h, slack, belief, dynamics)
        told = said.rows(row, row + 1)
        if not is_said:
            _say(told, location, variance, float(noises[i]), belief, observing)
            told.log_weight[0] = _weights(near, belief)
        evidence = _judge(float(targets[i]), float(counts[i]), told, observing, len(belief.near))
        target = float(targets[i]), float(counts[i]), float(noises[i])
        steps = _steps(target, location, variance, belief, observing)
        weights = np.repeat(np.exp(told.log_weight[0]), num_questions, axis=0)
        worth = dynamics.function * steps.precision
        believed = (weights * np.minimum(steps.trust, 1.0)).sum(1)
        opened, highest = float((believed * 0.5 * np.log1p(slack * worth)).sum()), float(worth.max())
        is_full = belief.num_points[0] >= most_points
        if is_full and highest > 0.0:
            if exchanges:
                _note_use(h, slack, highest, belief)
            elif opened > OPEN_NATS:
                left_open += opened
        if opened > OPEN_NATS and slack > _LEAST_SLACK and lag == 0:
            if is_full and exchanges:
                _drop_point(int(np.argmin(belief.use[: belief.num_points[0]])), belief)
                h, slack = _features(x, belief, dynamics)
                location, variance, gain = _look(lag, h, slack, belief, dynamics)
                steps = _steps(target, location, variance, belief, observing)
            if belief.num_points[0] < most_points:
                belief.use[belief.num_points[0]] = opened
                gain = _add_point(x, h, slack, gain, belief, dynamics)
        size = gain.shape[1]
        belief.mean[:, :size] += gain * steps.step[:, None]
        belief.covariance[:, :size, :size] -= gain[:, :, None] * gain[:, None] * steps.shrink[:, None, None]
        if lag == 0:
            advance(1, belief, dynamics)
        if observing is None:
            squares = steps.trust * (steps.step**2 / steps.shrink)[:, None]
            belief.shape[:] = NOISE_KEEP * (belief.shape + 0.5)
            belief.rate[:] = NOISE_KEEP * (belief.rate + 0.5 * squares) + 1e-12
        _weigh(belief.near, evidence, near * powers[row])
        _note_input(x, belief)
        _weigh(belief.far, evidence, (1.0 - near) * powers[row])
        if i % FAR_EVERY == 0 and i > 0:
            past = int(((i * _GOLDEN) % 1.0) * i)
            h, slack = _features(inputs[past], belief, dynamics)
            location, variance, _ = _look(0, h, slack, belief, dynamics)
            told = empty_said(1, belief)
            _say(told, location, variance, 1.0, belief, observing)
            evidence = _judge(float(targets[past]), float(counts[past]), told, observing, len(belief.near))
            _weigh(belief.far, evidence, near * (1.0 - _near_probability(inputs[past], belief)))
        if left_open > most_open:
            return i + 1, left_open
    return stop, left_open


class _Steps(NamedTuple):
    """Steps by which filters follow a row.

    Attributes:
        step: Step of the mean along the gain.
        shrink: Share of the gain's square by which the covariance shrinks.
        precision: What the row adds to the precision of its latent value.
        trust: How far the scales trust the error.
    """

    step: Float[np.ndarray, " f"]
    shrink: Float[np.ndarray, " f"]
    precision: Float[np.ndarray, " f"]
    trust: Float[np.ndarray, "f t"]


def _steps(
    target: tuple[float, float, float],
    location: Float[np.ndarray, " f"],
    variance: Float[np.ndarray, " f"],
    belief: Belief,
    observing: Observing | None,
) -> _Steps:
    y, count, noise = target
    ones = np.ones(len(location))
    if observing is None:
        error, total = y - location, noise + variance
        degrees = _degrees(belief)
        trust = (degrees + 1.0) / (degrees + (error**2 / total)[:, None] * belief.shape / belief.rate)
        trust[:, 0] = 1.0
        return _Steps(error / total, 1.0 / total, ones / noise, trust)
    answers = np.resize(observing.answers(np.array([y])), len(location))
    offsets, variance = np.resize(observing.offsets, len(location)), np.maximum(variance, 1e-12)
    found = observing.moments(answers, count * ones, ones / noise, mean=location + offsets, variance=variance)
    return _Steps(
        (found.mean - offsets - location) / variance,
        (variance - found.variance) / variance**2,
        np.maximum(1.0 / found.variance - 1.0 / variance, 0.0),
        ones[:, None],
    )


def _judge(
    y: float, count: float, told: Said, observing: Observing | None, num_experts: int
) -> Float[np.ndarray, "e t"]:
    """Return the log density or probability that each expert has given to a target."""
    if observing is None:
        return _t_log_density(((y - told.location[0]) ** 2)[:, None], told.scale[0], told.degrees[0])
    q, ones = observing.num_questions, np.ones(told.location.shape[1])
    answers = np.resize(observing.answers(np.array([y])), len(ones))
    found = observing.moments(answers, count * ones, ones, mean=told.location[0], variance=told.scale[0, :, 0])
    if q == 1:
        return found.log_evidence[:, None]
    right = np.exp(found.log_evidence)
    each = np.maximum(np.where(answers > 0.5, right, 1.0 - right), LEAST_PROBABILITY).reshape(num_experts, q)
    return np.log(each[:, int(y)] / each.sum(1))[:, None]


def _t_log_density(
    square: Float[np.ndarray, "e 1"], scale: Float[np.ndarray, "e 2"], degrees: Float[np.ndarray, "e 2"]
) -> Float[np.ndarray, "e 2"]:
    half = 0.5 * (degrees + 1.0)
    constant = gammaln(half) - gammaln(0.5 * degrees) - 0.5 * np.log(degrees * np.pi * scale)
    return constant - half * np.log1p(square / (degrees * scale))


def _degrees(belief: Belief) -> Float[np.ndarray, "e 2"]:
    return 1.0 / (np.array([0.0, 1.0 / LONG_TAIL]) + 0.5 / belief.shape)


def _features(x: Float[np.ndarray, " d"], belief: Belief, dynamics: Dynamics) -> tuple[Float[np.ndarray, " k"], float]:
    """Return (1, x, φ(x)) and the slack 1 − φᵀφ."""
    p = belief.num_points[0]
    kernel = dynamics.kernel(belief.points[:p], x[None])[:, 0]
    features = belief.whitening[:p, :p] @ kernel
    return np.r_[1.0, x, features], max(float(dynamics.kernel.diagonal(x[None])[0] - features @ features), 0.0)


def _roots(num_rows: int, size: int, dynamics: Dynamics) -> Float[np.ndarray, "f k"]:
    """Return the factors of the states over so many rows."""
    roots = np.repeat(np.sqrt(dynamics.keep**num_rows)[:, None], size, axis=1)
    roots[:, 0] = np.sqrt(dynamics.keep_level**num_rows)
    return roots


def _gained(num_rows: int, num_dims: int, size: int, dynamics: Dynamics) -> Float[np.ndarray, "f k"]:
    """Return the variances that the states gain over so many rows."""
    lost = 1.0 - dynamics.keep**num_rows
    gained = np.repeat((lost * dynamics.function)[:, None], size, axis=1)
    gained[:, 1 : 1 + num_dims] = (lost * dynamics.slope)[:, None]
    kept = dynamics.keep_level
    with np.errstate(invalid="ignore"):
        gained[:, 0] = dynamics.walk * np.where(kept < 1.0, (1.0 - kept**num_rows) / (1.0 - kept), num_rows)
    return gained


def _look(
    lag: int, h: Float[np.ndarray, " k"], slack: float, belief: Belief, dynamics: Dynamics
) -> tuple[Float[np.ndarray, " e"], Float[np.ndarray, " e"], Float[np.ndarray, "f k"]]:
    """Return means, variances without the noise, and covariances of the states with the row."""
    size, d = len(h), belief.points.shape[1]
    seen = _roots(abs(lag), size, dynamics) * h
    if not dynamics.function.all():  # some know the level alone, or a line
        seen[dynamics.function == 0.0, 1 + d :] = 0.0
        seen[(dynamics.function == 0.0) & (dynamics.slope == 0.0), 1:] = 0.0
    open_ = dynamics.function * slack + _gained(abs(lag), d, size, dynamics) @ (h * h)
    gain = np.einsum("ekl,el->ek", belief.covariance[:, :size, :size], seen)
    variance = np.maximum((gain * seen).sum(1), 0.0)
    return (belief.mean[:, :size] * seen).sum(1), open_ + variance, gain


def _say(
    told: Said,
    location: Float[np.ndarray, " f"],
    variance: Float[np.ndarray, " f"],
    noise: float,
    belief: Belief,
    observing: Observing | None,
) -> None:
    """Write what the filters say of one row."""
    told.location[0] = location
    if observing is None:
        told.scale[0] = belief.rate / belief.shape * (noise + variance)[:, None]
        told.degrees[0] = _degrees(belief)
    else:
        told.location[0] += np.resize(observing.offsets, len(location))
        told.scale[0, :, 0], told.degrees[0] = variance, np.inf


def _weights(near: float, belief: Belief) -> Float[np.ndarray, "e t"]:
    weight = near * np.exp(belief.near) + (1.0 - near) * np.exp(belief.far)
    return np.asarray(np.log(np.maximum(weight, 1e-300)))


def advance(num_rows: int, belief: Belief, dynamics: Dynamics) -> None:
    """Move all states on by so many rows."""
    d, size = belief.points.shape[1], 1 + belief.points.shape[1] + int(belief.num_points[0])
    roots = _roots(num_rows, size, dynamics)
    mean, covariance = belief.mean[:, :size], belief.covariance[:, :size, :size]
    mean *= roots
    covariance *= roots[:, :, None] * roots[:, None]
    diagonal = np.einsum("ekk->ek", covariance)
    diagonal += _gained(num_rows, d, size, dynamics)
    belief.clock[0] += num_rows


def _near_probability(x: Float[np.ndarray, " d"], belief: Belief) -> float:
    recent, all_ = (belief.moments[[1, 3]] / belief.counts[:, None]) + 1e-4
    log_ratio = 0.5 * float(
        (np.log(all_ / recent) - (x - belief.moments[0]) ** 2 / recent + (x - belief.moments[2]) ** 2 / all_).sum()
    )
    return 1.0 / (1.0 + math.exp(min(-log_ratio, 300.0)) * (1.0 - NEAR_PRIOR) / NEAR_PRIOR)


def _note_input(x: Float[np.ndarray, " d"], belief: Belief) -> None:
    for k, keep in enumerate((RECENT_KEEP, 1.0)):
        belief.counts[k] = keep * belief.counts[k] + 1.0
        error = x - belief.moments[2 * k]
        belief.moments[2 * k] += error / belief.counts[k]
        belief.moments[2 * k + 1] = keep * belief.moments[2 * k + 1] + error * (x - belief.moments[2 * k])


def _weigh(weights: Float[np.ndarray, "e t"], evidence: Float[np.ndarray, "e t"], power: float) -> None:
    share = SHARE * power
    log_weight = log_softmax(weights + power * evidence)
    weights[:] = np.log((1.0 - share) * np.exp(log_weight) + share / weights.size + 1e-300)


def _add_point(
    x: Float[np.ndarray, " d"],
    h: Float[np.ndarray, " k"],
    slack: float,
    gain: Float[np.ndarray, "f k"],
    belief: Belief,
    dynamics: Dynamics,
) -> Float[np.ndarray, "f l"]:
    p, d, size = int(belief.num_points[0]), belief.points.shape[1], len(h)
    root = math.sqrt(slack)
    belief.points[p] = x
    belief.whitening[p, :p] = -(h[1 + d :] @ belief.whitening[:p, :p]) / root
    belief.whitening[:p, p] = 0.0
    belief.whitening[p, p] = 1.0 / root
    belief.covariance[:, size, : size + 1] = 0.0
    belief.covariance[:, : size + 1, size] = 0.0
    belief.covariance[:, size, size] = dynamics.function
    belief.mean[:, size] = 0.0
    belief.num_points[0] = p + 1
    return np.c_[gain, dynamics.function * root]


def _drop_point(point: int, belief: Belief) -> None:
    p, start = int(belief.num_points[0]), 1 + belief.points.shape[1]
    axis = belief.whitening[:p, point] / np.linalg.norm(belief.whitening[:p, point])
    axis[p - 1] += 1.0 if axis[p - 1] >= 0.0 else -1.0
    turn = np.eye(start + p)
    turn[start:, start:] -= 2.0 * np.outer(axis, axis) / (axis @ axis)
    belief.whitening[:p, :p] = turn[start:, start:] @ belief.whitening[:p, :p]
    belief.mean[:, : start + p] = belief.mean[:, : start + p] @ turn
    belief.covariance[:, : start + p, : start + p] = turn @ belief.covariance[:, : start + p, : start + p] @ turn
    last = p - 1
    belief.points[point] = belief.points[last]
    belief.use[point] = belief.use[last]
    belief.whitening[:p, point] = belief.whitening[:p, last]
    belief.num_points[0] = last


def _note_use(h: Float[np.ndarray, " k"], slack: float, variance: float, belief: Belief) -> None:
    p = int(belief.num_points[0])
    whitening = belief.whitening[:p, :p]
    without = (h[1 + belief.points.shape[1] :] @ whitening) ** 2 / (whitening**2).sum(0)
    missed = 0.5 * np.log1p(variance * without / (1.0 + variance * slack))
    belief.use[:p] = USE_KEEP * belief.use[:p] + (1.0 - USE_KEEP) * missed
