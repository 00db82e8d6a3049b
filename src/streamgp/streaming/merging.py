"""Streams that were learned apart, merged without their rows."""

import functools
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from scipy.special import log_softmax
from torch import Tensor

from streamgp.conditioning.merging import check_same_prior
from streamgp.errors import OptionError, StreamGPWarning
from streamgp.linalg import cholesky, pivoted_cholesky, solve_lower, solve_vector
from streamgp.streaming.bank import Bank
from streamgp.streaming.carrying import carry
from streamgp.streaming.learner import StreamLearner
from streamgp.streaming.mixture import Mixture
from streamgp.streaming.model import StreamModel
from streamgp.streaming.one_vs_rest import OneVsRest
from streamgp.streaming.points import Usage
from streamgp.streaming.reach import Reach

__all__ = ["merge_classes", "merge_learners"]

_ADVICE = "Let all of them begin as copies of one model after its warm-up, with refit='never'."


def merge_learners(learners: Sequence[StreamLearner], base: StreamLearner | None = None) -> StreamLearner:
    """Merge learners of one model that saw different rows, as if one had seen all of them side by side.

    Args:
        learners: At least one; they have the same units, hyperparameters, likelihood and experts.
        base: What all of them began with, whose rows count once. Without it, rows that several learned count several
            times.

    Returns:
        A learner that knows the rows of all; later refits see its belief and new rows.
    """
    first, others = _model(learners[0]), [_model(learner) for learner in learners[1:]]
    for other in [*others, *([] if base is None else [_model(base)])]:
        _check_same(first, other)
    banks = [_model(learner).bank for learner in learners]
    shared: list[Bank] = []
    if base is not None:
        # The rows of the base have aged with those that came after them; what is least forgotten is kept.
        ages = sorted(learner.num_seen - base.num_seen for learner in learners)
        if ages[0] < 0:
            raise OptionError(
                "base has learned more rows than a model that is merged. Pass what all of them began with."
            )
        shared = [_model(base).bank.age(age) for age in ages[1:]]
    banks, shared = _at_common_points(banks, shared)
    bank = _merge_banks(banks, shared)
    mixtures = [_model(learner).mixture for learner in learners]
    mixture = _merge_mixtures(mixtures, None if base is None else _model(base).mixture)
    reach = functools.reduce(Reach.joined, (_model(learner).reach for learner in learners))
    model = replace(first, bank=bank, mixture=mixture, usage=Usage.none(bank.num_inducing), reach=reach)

    def total(name: str) -> int:
        repeated = 0 if base is None else (len(learners) - 1) * getattr(base, name)
        return sum(getattr(learner, name) for learner in learners) - repeated

    num_rows = total("num_since_start")
    return replace(
        learners[0],
        model=model,
        anchor=bank,
        halfway=None,
        buffer=None,
        past=None,
        num_seen=total("num_seen"),
        num_since_start=num_rows,
        num_outside=total("num_outside"),
        next_refit=learners[0].settings.next_refit(num_rows),
    )


def merge_classes(learners: Sequence[OneVsRest], base: OneVsRest | None = None) -> OneVsRest:
    """The same for learners of labels, which must have the same classes in the same order.

    Args:
        learners: At least one.
        base: See `merge_learners`.
    """
    first = learners[0]
    each = [*learners, *([] if base is None else [base])]
    different = [learner.classes for learner in each if learner.classes != first.classes]
    if different:
        raise OptionError(
            f"Models that are merged must have the same classes in the same order, but they are {list(first.classes)} "
            f"and {list(different[0])}. Let all of them begin as copies of one model that was told of all, by "
            "partial_fit(..., classes=...)."
        )
    merged = merge_learners([_of(learner) for learner in learners], None if base is None else _of(base))
    again = [] if base is None else [base.sharpness] * (len(learners) - 1)
    sharpness = first.sharpness.joined([learner.sharpness for learner in learners[1:]], again)
    return replace(first, learner=merged, sharpness=sharpness)


def _of(labels: OneVsRest) -> StreamLearner:
    return StreamLearner(labels.settings) if labels.learner is None else labels.learner


def _model(learner: StreamLearner) -> StreamModel:
    if learner.model is None or not learner.is_warm:
        raise OptionError(
            f"Models are merged after their warm-up of {learner.settings.warmup} rows, but one has learned "
            f"{learner.num_since_start}. {_ADVICE}"
        )
    return learner.model


def _check_same(one: StreamModel, other: StreamModel) -> None:
    """Refuse models whose beliefs are not about the same thing."""
    o, other_o = len(one.bank.constant), len(other.bank.constant)
    if o != other_o:
        raise OptionError(
            f"Models that are merged must have the same outputs, but one has {o} and another {other_o}. {_ADVICE}"
        )
    check_same_prior(one.bank.process, other.bank.process)
    ours, theirs = one.likelihood.constants(), other.likelihood.constants()
    is_same = {
        "units": one.units.is_same(other.units),
        "experts": one.bank.experts.each == other.bank.experts.each,
        "constants": torch.equal(one.bank.constant, other.bank.constant),
        "likelihoods": type(one.likelihood) is type(other.likelihood)
        and ours.keys() == theirs.keys()
        and all(torch.equal(value, theirs[name]) for name, value in ours.items()),
        "steps of the level": one.bank.level_noise == other.bank.level_noise,
    }
    different = [name for name, same in is_same.items() if not same]
    if different:
        raise OptionError(f"Models that are merged must have the same {' and '.join(different)}. {_ADVICE}")


def _at_common_points(banks: list[Bank], shared: list[Bank]) -> tuple[list[Bank], list[Bank]]:
    """Carry beliefs to common inducing points, as many as the largest has, if theirs differ."""
    banks, shared = [bank.factorized() for bank in banks], [bank.factorized() for bank in shared]
    each, first = [*banks, *shared], banks[0]
    if all(torch.equal(bank.inducing_points, first.inducing_points) for bank in each):
        return banks, shared
    points = torch.cat([bank.inducing_points for bank in banks]).unique(dim=0)
    most, prior = max(bank.num_inducing for bank in banks), first.process.prior
    chosen = pivoted_cholesky(prior.covariance, points, most, variance=prior.variance(points).expand(len(points)))
    common = Bank.from_prior(
        first.experts,
        prior.kernel,
        points[chosen.pivots.sort(-1).values],
        constant=first.constant,
        level_noise=first.level_noise,
    )
    warnings.warn(
        f"The models have different inducing points, of which {common.num_inducing} are kept: what these cannot "
        "express is lost.",
        StreamGPWarning,
        stacklevel=5,
    )
    return [carry(bank, common) for bank in banks], [carry(bank, common) for bank in shared]


def _merge_banks(banks: Sequence[Bank], shared: Sequence[Bank]) -> Bank:
    r"""Add the sites of beliefs, and subtract those that were counted too often.

    A belief of precision $P$ and mean $m$ is its prior $E$ times a site, so that $P - E$ and $P m$ add. For the level,
    which walks at random and has no prior left, $E$ is zero.
    """
    first = banks[0]
    prior = torch.eye(first.mean.shape[-1], dtype=first.mean.dtype).expand_as(first.covariance).clone()
    prior[..., -1, -1] = 0.0
    P, pull = torch.zeros_like(prior), torch.zeros_like(first.mean)
    for sign, bank in [*((1.0, bank) for bank in banks), *((-1.0, bank) for bank in shared)]:
        precision, precision_mean = _information(bank)
        P, pull = P + sign * precision, pull + sign * precision_mean
    P = P - (len(banks) - len(shared) - 1.0) * prior
    L, _ = cholesky(P, name="the precision of the merged belief")
    half = solve_lower(L, torch.eye(L.shape[-1], dtype=L.dtype).expand_as(L))
    mean = solve_vector(L, solve_vector(L, pull), is_transposed=True)
    return replace(first, mean=mean, covariance=half.mT @ half)


def _information(bank: Bank) -> tuple[Float[Tensor, "e c k k"], Float[Tensor, "e c k"]]:
    """The precision of the states, and the precision-weighted mean."""
    L, _ = cholesky(bank.covariance, name="the covariance of a merged belief")
    half = solve_lower(L, torch.eye(L.shape[-1], dtype=L.dtype).expand_as(L))
    precision = half.mT @ half
    return precision, (precision @ bank.mean.unsqueeze(-1)).squeeze(-1)


def _merge_mixtures(mixtures: Sequence[Mixture], base: Mixture | None) -> Mixture:
    """Weights are products of predictive densities, so they multiply; scales of errors are averaged."""
    first = mixtures[0]
    log_weights, lasting = (
        np.sum([getattr(mixture, name) for mixture in mixtures], 0)
        - (0.0 if base is None else (len(mixtures) - 1) * getattr(base, name))
        for name in ("log_weights", "lasting_log_weights")
    )
    means: dict[str, Any] = {
        name: np.mean([getattr(mixture, name) for mixture in mixtures], 0)
        for name in ("num_errors", "squared_errors", "rate_weights")
    }
    return replace(first, log_weights=log_softmax(log_weights), lasting_log_weights=lasting, **means)
