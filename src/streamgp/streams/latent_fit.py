"""Hyperparameters of latent functions: sites by expectation propagation and marginal likelihood in turn."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from scipy.optimize import minimize

from streamgp.likelihoods import AbstractLikelihood
from streamgp.streams.marginal import Rows, fit_prior, prior_covariance
from streamgp.streams.observing import Observing, with_counts
from streamgp.streams.prior import Prior

__all__ = ["LatentRows", "fit_latent", "offsets_of"]

# Rounds of sites and hyperparameters; more gain little, as refits begin where the last one ended.
_NUM_ROUNDS = 2
# Sweeps over all sites in a round, and the part of the way that they go; more and less are surer to converge.
_NUM_SWEEPS, _DAMPING = 4, 0.7
_LEAST_PRECISION = 1e-6
_NUM_ITERATIONS, _NUM_PRIOR_ITERATIONS = 20, 25
# Of the sites' noises, the quantile that counts as that of the stream: the rows that say most decide how many points
# there are. Larger saves points where most labels are easy, and loses detail at the borders between classes.
_TELLING = 0.1
# How far the likelihood's own parameters, logarithms mostly, may go from the first ones; wider may run away.
_BOUND = 4.0
# Deviation with which they are expected around the first ones; wider lets few rows say more than they know.
_DEVIATION = 2.0


class LatentRows(NamedTuple):
    """Rows with standardized inputs: targets, counts, powers of their densities, and when they were."""

    inputs: Float[np.ndarray, "n d"]
    targets: Float[np.ndarray, " n"]
    counts: Float[np.ndarray, " n"]
    powers: Float[np.ndarray, " n"]
    times: Float[np.ndarray, " n"]


class _Sites(NamedTuple):
    """Gaussian stand-ins of targets, and what the others say of the latent values; one line for each question."""

    precision: Float[np.ndarray, "q n"]
    weighted: Float[np.ndarray, "q n"]
    mean: Float[np.ndarray, "q n"]
    variance: Float[np.ndarray, "q n"]


def offsets_of(
    likelihood: AbstractLikelihood, answers: Float[np.ndarray, "n q"], counts: Float[np.ndarray, " n"]
) -> Float[np.ndarray, " q"]:
    """Return what latent values are expected to be: those whose response is the mean of the targets."""
    if likelihood.outcome_kind != "real":
        # As if half an outcome more had come, and half a trial without it.
        mean = (answers.sum(0) + 0.5) / (counts.sum() + 0.5 * (1 + answers.shape[1]))
    elif likelihood.is_location_scale or not likelihood.has_response:
        start, _ = likelihood.starting_latents(torch.from_numpy(answers[:, 0]))
        return np.median(answers, axis=0) if likelihood.is_location_scale else start.numpy()
    else:
        mean = answers.mean(0)
    return np.asarray(likelihood.per_unit().inverse_response(torch.from_numpy(mean)).numpy(), dtype=float)


def fit_latent(
    rows: LatentRows,
    observing: Observing,
    default: Prior,
    start: Prior | None = None,
    *,
    first: AbstractLikelihood,
    is_timed: bool = True,
) -> tuple[Prior, Observing, float]:
    """Learn hyperparameters and the likelihood's own parameters, from the last ones and from the `first` likelihood's.

    With the sites held, the marginal likelihood of Gaussian targets with noises of their own has the slope of the
    evidence of expectation propagation.

    Returns:
        The hyperparameters, the likelihood, and by how many nats a row they are better than those at the start.
    """
    prior, gain, sites = default if start is None else start, 0.0, None
    for _ in range(_NUM_ROUNDS):
        sites = _propagated(rows, observing, prior, sites, is_timed=is_timed)
        changed = _with_parameters(rows, observing, sites, first)
        if changed is not observing:
            observing, sites = changed, _propagated(rows, changed, prior, sites, is_timed=is_timed)
        noises = 1.0 / sites.precision
        stand_ins = Rows(rows.inputs, sites.weighted * noises, rows.times, noises)
        prior, more = fit_prior(stand_ins, default, prior, is_timed=is_timed, num_iterations=_NUM_PRIOR_ITERATIONS)
        gain += more
    assert sites is not None
    prior = replace(prior, noise_variance=float(np.quantile(1.0 / sites.precision, _TELLING)))
    return prior, observing, np.inf if start is None else gain


def _propagated(
    rows: LatentRows, observing: Observing, prior: Prior, sites: _Sites | None, *, is_timed: bool
) -> _Sites:
    """Return sites by expectation propagation; targets are less the offsets."""
    n, q = len(rows.targets), observing.num_questions
    answers, offsets = observing.answers(rows.targets).T, observing.offsets[:, None]
    zeros = np.zeros((q, n))
    K = prior_covariance(prior, Rows(rows.inputs, zeros, rows.times, zeros), is_timed=is_timed)
    counts, powers = np.tile(rows.counts, q), np.tile(rows.powers, q)
    precision, weighted = (zeros, zeros) if sites is None else (sites.precision, sites.weighted)
    mean, variance = zeros, np.tile(np.diag(K), (q, 1))
    for sweep in range(_NUM_SWEEPS):
        if precision.any():
            mean, variance = _without_own(K, precision, weighted)
        found = observing.moments(
            answers.ravel(), counts, powers, mean=(mean + offsets).ravel(), variance=variance.ravel()
        )
        after, center = found.variance.reshape(q, n), found.mean.reshape(q, n) - offsets
        # A target that leaves more open than there was, an outlier, says nothing.
        says = 1.0 / after - 1.0 / variance > _LEAST_PRECISION
        new = np.where(says, 1.0 / after - 1.0 / variance, _LEAST_PRECISION)
        target = np.where(says, mean + (center - mean) * (1.0 + 1.0 / (new * variance)), center)
        part = 1.0 if sweep == 0 and sites is None else _DAMPING
        precision = precision + part * (new - precision)
        weighted = weighted + part * (new * target - weighted)
    return _Sites(precision, weighted, mean, variance)


def _without_own(
    K: Float[np.ndarray, "n n"], precision: Float[np.ndarray, "q n"], weighted: Float[np.ndarray, "q n"]
) -> tuple[Float[np.ndarray, "q n"], Float[np.ndarray, "q n"]]:
    """Return means and variances of latent values by all sites but their own."""
    n, means, variances = K.shape[0], [], []
    for each, eta in zip(precision, weighted, strict=True):
        root = np.sqrt(each)
        B = root[:, None] * K * root + np.eye(n)
        half = np.linalg.solve(np.linalg.cholesky(B), root[:, None] * K)
        S = np.maximum(np.diag(K) - (half * half).sum(0), 1e-12)
        m = K @ eta - half.T @ (half @ eta)
        variance = 1.0 / np.maximum(1.0 / S - each, 1e-9)
        means.append(variance * (m / S - eta))
        variances.append(variance)
    return np.array(means), np.array(variances)


def _with_parameters(rows: LatentRows, observing: Observing, sites: _Sites, first: AbstractLikelihood) -> Observing:
    """Learn the likelihood's parameters by the density of each target given all others."""
    likelihood = observing.likelihood
    names = list(likelihood.learnable())
    if not names:
        return observing
    y = rows.targets
    _, f, log_weights = observing.grid(
        y, rows.counts, rows.powers, mean=sites.mean[0] + observing.offsets[0], variance=sites.variance[0]
    )
    nodes, log_prior, targets = torch.from_numpy(f), torch.from_numpy(log_weights), torch.from_numpy(y)
    powers = torch.from_numpy(rows.powers)
    values = {name: value.double() for name, value in likelihood.learnable().items()}
    sizes = [value.numel() for value in values.values()]

    def at(theta: Float[np.ndarray, " h"] | torch.Tensor) -> AbstractLikelihood:
        parts = torch.split(torch.as_tensor(theta, dtype=torch.float64), sizes)
        shaped = {name: part.reshape(values[name].shape) for name, part in zip(names, parts, strict=True)}
        return likelihood.with_learnable(shaped)

    def objective(theta: Float[np.ndarray, " h"]) -> tuple[float, Float[np.ndarray, " h"]]:
        variable = torch.tensor(theta, requires_grad=True)
        found = at(variable)
        one = with_counts(found, rows.counts) if observing.has_counts else found
        each = (powers * one.log_density(nodes, targets) + log_prior).logsumexp(0)
        value = -each.sum() - found.log_prior() + 0.5 * ((variable - middle) / _DEVIATION).square().sum()
        (gradient,) = torch.autograd.grad(value, variable)
        return float(value.detach()), gradient.numpy()

    def numbers(each: AbstractLikelihood) -> Float[np.ndarray, " h"]:
        return np.concatenate([value.detach().double().numpy().ravel() for value in each.learnable().values()])

    best, lowest, center = likelihood, np.inf, numbers(first)
    middle = torch.from_numpy(center)
    bounds = list(zip(center - _BOUND, center + _BOUND, strict=True))
    for begin in (numbers(likelihood), center):
        result = minimize(
            objective, begin, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": _NUM_ITERATIONS}
        )
        if result.fun < lowest:
            best, lowest = at(result.x), float(result.fun)
    return replace(observing, likelihood=best)
