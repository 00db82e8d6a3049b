"""Learning rows of any likelihood by a bank of experts."""

import warnings

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.errors import ConvergenceError, StreamGPWarning
from streamgp.likelihoods import AbstractLikelihood
from streamgp.sites import DenseBelief, SiteRule, Sites, find_sites
from streamgp.streaming.bank import Bank, Seen
from streamgp.streaming.outliers import Plausibility
from streamgp.streaming.probit_rows import is_probit, moment_sites
from streamgp.streaming.rows import Rows, likelihood_of

__all__ = ["observe"]

# Newton steps for the site of a single observation, and the longest: counts take some from far away.
_NUM_STEPS, _LONGEST_STEP = 5, 4.0
# The residual, in standard deviations, beyond which sites are looked for with more care.
_LARGEST_RESIDUAL = 0.05
_LEAST_PRECISION = 1e-6
# Rounds in which observations of a block take notice of each other, by their moments.
_NUM_TURNS = 5
# Rounds in which the sites of several labels take notice of each other.
_NUM_ROUNDS = 3


def observe(
    bank: Bank,
    seen: Seen,
    rows: Rows,
    likelihood: AbstractLikelihood,
    rule: SiteRule,
    plausible: Plausibility | None = None,
) -> Bank:
    """Learn rows that were seen, and let time go on by as many.

    Args:
        bank: The beliefs.
        seen: What they say of the rows.
        rows: The rows, in the units of the model.
        likelihood: Of one observation.
        rule: How observations that are not Gaussian become Gaussian sites.
        plausible: How far those that are Gaussian tell of the function; None for altogether.
    """
    noise = likelihood.gaussian_noise_variance
    if noise is not None:
        variance = np.full((1, 1, rows.num_rows), float(noise))
        return bank.learn(
            seen, rows.targets, variance if plausible is None else _doubted(bank, seen, variance, plausible)
        )
    likelihood = likelihood_of(likelihood, rows.total_count)
    if rule.rule == "variational":
        matched = _match_moments(seen, rows.targets, likelihood)
        if matched is not None:
            return bank.learn(seen, *matched)
    mean = torch.from_numpy(seen.mean)
    slack = (bank.experts.amplitudes[:, None] * torch.from_numpy(seen.slack)).unsqueeze(-2).expand_as(mean)
    belief = DenseBelief(mean, torch.from_numpy(seen.covariance), slack)
    targets = torch.from_numpy(rows.targets).expand_as(mean)
    if rule.rule == "variational":
        sites, residual = _concave_sites(belief, targets, likelihood)
        if bool(residual < _LARGEST_RESIDUAL):
            return bank.learn(seen, sites.targets.numpy(), sites.variance.numpy())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", StreamGPWarning)  # a stream goes on; what is wrong shows in its metrics
            sites, _ = find_sites(belief, likelihood, targets, rule)
    except ConvergenceError:
        if rows.num_rows == 1:
            return bank.age(1)  # an observation that cannot be learned from is passed over
        for index in range(rows.num_rows):
            row = rows.part(index, index + 1)
            bank = observe(bank, bank.see(row.inputs), row, likelihood, rule)
        return bank
    return bank.learn(seen, sites.targets.numpy(), sites.variance.numpy())


def _doubted(
    bank: Bank, seen: Seen, noise: Float[np.ndarray, "1 1 n"], plausible: Plausibility
) -> Float[np.ndarray, "e c n"]:
    """The noise with which means move by as large a part of the way as rows are plausible; all of it, if trusted."""
    believed = np.where(bank.experts.is_trusting[:, None, None], 1.0, plausible.by_expert)
    return np.asarray((seen.known + noise) / believed - seen.known)


def _match_moments(
    seen: Seen, y: Float[np.ndarray, "c n"], likelihood: AbstractLikelihood
) -> tuple[np.ndarray, np.ndarray] | None:
    r"""Targets and noise of the sites that give the moments of exact posteriors; None without a closed form.

    By expectation propagation. They are of latent values as the inducing points know them: what these leave open is not
    taken for noise of the observation, so that they explain it as far as they can. Several observations of a block take
    turns, each with what the others say, a few times.

    References:
        Csató, Opper (2002), Sparse on-line Gaussian processes.
        Minka (2001), Expectation propagation for approximate Bayesian inference.
    """
    before, value = seen.mean, seen.known
    sites = _moment_sites(before, value, y, likelihood)
    if sites is None:
        return None
    observed, noise = sites
    if y.shape[-1] > 1:
        K = seen.covariance
        identity = np.eye(y.shape[-1])
        for _ in range(_NUM_TURNS):
            # Beliefs with all sites, then without the observation's own.
            gain = np.linalg.solve(K + noise[..., None] * identity, K).swapaxes(-1, -2)
            mean = before + (gain @ (observed - before)[..., None])[..., 0]
            variance = np.maximum(value - (gain * K).sum(-1), _LEAST_PRECISION * value)
            share = 1.0 / np.maximum(1.0 - variance / noise, _LEAST_PRECISION)
            center = share * (mean - observed * variance / noise)
            sites = _moment_sites(center, share * variance, y, likelihood)
            assert sites is not None
            observed, noise = 0.5 * (observed + sites[0]), 0.5 * (noise + sites[1])
    return observed, noise


def _moment_sites(
    mean: np.ndarray, variance: np.ndarray, y: Float[np.ndarray, "c n"], likelihood: AbstractLikelihood
) -> tuple[np.ndarray, np.ndarray] | None:
    r"""Targets and noise of the sites that have the effect of observations on beliefs of single values.

    With the derivatives $g$ and $-h$ of the log predictive density, the posterior has the mean $m + v g$ and the
    variance $v - v^2 h$: a Gaussian observation of $m + g / h$ with noise $1 / h - v$ gives the same.
    """
    if is_probit(likelihood):
        return moment_sites(mean, variance, y, _LEAST_PRECISION)
    derivatives = likelihood.log_predictive_derivatives(
        torch.from_numpy(mean), torch.from_numpy(variance), torch.from_numpy(y)
    )
    if derivatives is None:
        return None
    first, second = (each.numpy() for each in derivatives)
    curvature = np.maximum(-second, _LEAST_PRECISION)
    return mean + first / curvature, np.maximum(1.0 / curvature - variance, _LEAST_PRECISION)


def _concave_sites(
    belief: DenseBelief, y: Float[Tensor, "e c n"], likelihood: AbstractLikelihood
) -> tuple[Sites, Float[Tensor, ""]]:
    r"""The variational sites of observations of log-concave likelihoods, in a fixed number of steps.

    First of each observation on its own, $m' = m + v g$ and $1 / v' = 1 / v - h$ with expectations at $(m', v')$, by
    Newton steps of bounded length. Of several observations, these are then moved half of the way to those of the joint
    belief, some times.

    Returns:
        The sites, and the largest residual of those of single observations, in standard deviations.
    """
    assert belief.slack is not None
    before, slack = belief.variance().clamp_min(0.0), belief.slack
    mean, variance = belief.mean, before
    for _ in range(_NUM_STEPS):
        first, precision = _expected(likelihood, mean, variance + slack, y)
        step = (belief.mean + before * first - mean) / (1.0 + before * precision)
        mean = mean + step.clamp(-_LONGEST_STEP, _LONGEST_STEP)
        variance = before / (1.0 + before * precision)
    residual = (step / (variance.sqrt() + _LEAST_PRECISION)).abs().max().nan_to_num(nan=torch.inf)
    first, precision = _expected(likelihood, mean, variance + slack, y)
    pull = first + precision * (mean - belief.mean)
    for _ in range(_NUM_ROUNDS if y.shape[-1] > 1 else 0):
        updated = belief.update(pull, precision)
        first, new_precision = _expected(likelihood, belief.mean + updated.shift, updated.variance + slack, y)
        pull = 0.5 * (pull + first + new_precision * updated.shift)
        precision = 0.5 * (precision + new_precision)
    return Sites(belief.mean + pull / precision, 1.0 / precision), residual


def _expected(
    likelihood: AbstractLikelihood, mean: Tensor, variance: Tensor, y: Tensor
) -> tuple[Float[Tensor, "e c n"], Float[Tensor, "e c n"]]:
    """The expected slope of the log density, and its curvature as a precision."""
    first, second = likelihood.expected_derivatives(mean, variance, y)
    return first, (-second).clamp_min(_LEAST_PRECISION)
