"""Outcomes that stand for all that may be observed: a few of them, with probabilities."""

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.likelihoods import AbstractLikelihood

__all__ = ["representative_outcomes"]

# Values of the latent function, out to so many standard deviations, over which counts are mixed.
_NUM_LATENT, _RANGE = 64, 5.0
# Counts that are told apart; where more are possible, the grid is as fine as this many allow over the likely range.
_NUM_COUNTS = 257
# Half the width of that range, in standard deviations of the predicted count.
_LIKELY = 10.0


def representative_outcomes(
    likelihood: AbstractLikelihood, mean: Float[Tensor, " c"], variance: Float[Tensor, " c"], num_outcomes: int
) -> tuple[Float[Tensor, "c o"], Float[Tensor, "c o"]]:
    r"""Outcomes and their probabilities when $f \sim \mathcal N(m, v)$, for each candidate.

    If there are no more than `num_outcomes` possible ones, all of them with their predicted probabilities: 0 and 1 for
    classes. If not, the predicted distribution is cut into `num_outcomes` parts of equal probability, and each is
    represented by its mean, which need not be whole. This keeps the mean of the outcome exactly, and the error of an
    expectation falls with the square of the number of parts.

    Args:
        likelihood: Of two classes, or of successes; its total is a number or has a value for each candidate.
        mean: $m$.
        variance: $v$.
        num_outcomes: How many.
    """
    if likelihood.outcome_kind == "class":
        success = likelihood.predictive_mean(mean, variance)
        outcomes = torch.tensor([0.0, 1.0]).to(mean).expand(len(mean), 2)
        return outcomes, torch.stack([1.0 - success, success], dim=-1)
    total = _total_count(likelihood, mean)
    counts = _count_grid(likelihood, mean, variance)
    probability = _mixture(total, counts, mean=mean, variance=variance)
    if counts.shape[-1] <= num_outcomes:
        return counts, probability
    return _part_means(counts, probability, num_outcomes), torch.full_like(mean, 1.0 / num_outcomes).unsqueeze(
        -1
    ).expand(-1, num_outcomes)


def _total_count(likelihood: AbstractLikelihood, mean: Float[Tensor, " c"]) -> Float[Tensor, " c"]:
    """Numbers of trials; one where the likelihood has none."""
    values = likelihood.row_values
    return torch.ones_like(mean) if values is None else values.to(mean).expand_as(mean)


def _count_grid(
    likelihood: AbstractLikelihood, mean: Float[Tensor, " c"], variance: Float[Tensor, " c"]
) -> Float[Tensor, "c g"]:
    """All counts if they are few, otherwise whole numbers over the likely range."""
    total = _total_count(likelihood, mean)
    most = int(total.max()) if len(total) else 0
    if most < _NUM_COUNTS:
        return torch.arange(most + 1).to(mean).expand(len(mean), most + 1)
    center = likelihood.predictive_mean(mean, variance)
    reach = _LIKELY * likelihood.predictive_variance(mean, variance).clamp_min(1.0).sqrt()
    low, high = (center - reach).clamp_min(0.0), torch.minimum(center + reach, total)
    steps = torch.linspace(0.0, 1.0, _NUM_COUNTS).to(mean)
    return (low.unsqueeze(-1) + (high - low).unsqueeze(-1) * steps).round()


def _mixture(
    total: Float[Tensor, " c"],
    counts: Float[Tensor, "c g"],
    *,
    mean: Float[Tensor, " c"],
    variance: Float[Tensor, " c"],
) -> Float[Tensor, "c g"]:
    r"""Probabilities of counts, mixed over latent values.

    Given $f$, counts $y$ have probabilities proportional to $\binom N y e^{y f}$.
    """
    z = torch.linspace(-_RANGE, _RANGE, _NUM_LATENT).to(mean)
    weights = torch.softmax(-0.5 * z.square(), dim=-1)
    rest = (total.unsqueeze(-1) - counts).double()
    log_choices = torch.lgamma(total.double() + 1.0).unsqueeze(-1) - torch.lgamma(rest.clamp_min(0.0) + 1.0)
    log_choices = (log_choices - torch.lgamma(counts.double() + 1.0)).masked_fill(rest < 0.0, -torch.inf)
    # Counts that stand twice on a grid after rounding share their probability.
    is_repeated = torch.cat([torch.zeros_like(rest[:, :1], dtype=torch.bool), counts.diff(dim=-1) == 0], dim=-1)
    log_choices = log_choices.masked_fill(is_repeated, -torch.inf).to(mean)
    probability = torch.zeros_like(counts)
    for weight, node in zip(weights, z, strict=True):
        f = (mean + variance.sqrt() * node).unsqueeze(-1)
        probability += weight * torch.softmax(log_choices + counts * f, dim=-1)
    return probability


def _part_means(
    counts: Float[Tensor, "c g"], probability: Float[Tensor, "c g"], num_parts: int
) -> Float[Tensor, "c o"]:
    r"""Means of parts of equal probability.

    With cumulative probabilities $F$ and cumulative sums $S(y) = \sum_{j \le y} j p_j$, the integral of the quantile
    function up to $u$ is $S(y) - y (F(y) - u)$ at the smallest $y$ with $F(y) \ge u$.
    """
    cumulative, moment = probability.cumsum(-1), (counts * probability).cumsum(-1)
    cumulative = cumulative / cumulative[:, -1:]
    cuts = torch.arange(1, num_parts).to(counts).div(num_parts).expand(len(counts), -1).contiguous()
    index = torch.searchsorted(cumulative.contiguous(), cuts)
    y = counts.gather(-1, index)
    integral = moment.gather(-1, index) - y * (cumulative.gather(-1, index) - cuts)
    ends = torch.cat([torch.zeros_like(integral[:, :1]), integral, moment[:, -1:]], dim=-1)
    return num_parts * ends.diff(dim=-1)
