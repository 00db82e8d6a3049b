"""Hotspot entropy: how much an observation reduces the uncertainty about places above a threshold."""

from dataclasses import dataclass
from typing import Any, final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from streamgp.acquisition.entropy_table import EntropyTable, make_table
from streamgp.acquisition.pool import Pool, read_candidates
from streamgp.acquisition.pool_belief import blocks
from streamgp.acquisition.pool_outcomes import representative_outcomes
from streamgp.acquisition.response import latent_threshold
from streamgp.acquisition.single_site import single_site_update
from streamgp.checks import keep_count
from streamgp.conditioning import ConditionedGP, SparseGP
from streamgp.errors import UnsupportedError
from streamgp.likelihoods import AbstractLikelihood

__all__ = ["HotspotRule", "hotspot_entropy", "score_hotspot_entropy"]

# Numbers of a block of candidates, outcomes and targets, which fit into the cache of a core.
_CACHE_NUMBERS = 65_536
# A candidate that is known better than this teaches nothing new.
_LEAST_VARIANCE = 1e-12


def hotspot_entropy(
    gp: SparseGP | ConditionedGP,
    pool_X: Tensor,
    candidates: Any = None,
    *,
    likelihood: AbstractLikelihood,
    threshold: float,
    targets: Any = None,
    weights: Any = None,
    pending: Any = None,
    is_clipped: bool = True,
    num_outcomes: int = 16,
) -> Tensor:
    r"""The expected reduction of the entropy of places above a threshold, by an observation of each candidate.

    With the prevalence $p(f)$ and its threshold at $\theta$ on the latent scale, a belief has the entropy

    $$
    h = \sum_t w_t \, \mathbb E_q \bigl[ 1[f_t > \theta] \, H(\mathrm{Bernoulli}(p(f_t))) \bigr] .
    $$

    Each of a few outcomes $y$ of a candidate, which stand for all with their predicted probabilities, is a Gaussian
    site on $f_c$ by the rule `"variational"`, and shifts the means and shrinks the variances of all targets by rank
    one: $\mu_t + k_{tc} a$ and $v_t - k_{tc}^2 b$. No model is built, and the expectations of the marginals are read
    off a table with an error below $10^{-4}$. The score is the mean of $h - h_y$ over outcomes, each clipped at zero as
    in the paper.

    Clipping is what makes the score: $h$ is a mean over the belief, so that without clipping its expected reduction is
    zero but for the approximations. Clipped, the score is half of the expected absolute change of $h$.

    Args:
        gp: The belief.
        pool_X: Inputs `(n, d)` of all members.
        candidates: Indices of the members to be scored; all by default.
        likelihood: Bernoulli or Binomial; its total count is one number, or has shape `(n,)`.
        threshold: The prevalence above which a place is a hotspot.
        targets: Indices of the members over which entropies are summed; all by default.
        weights: How much each member counts, `(n,)`; one by default.
        pending: Indices of members whose observations are awaited.
        is_clipped: Whether an outcome that raises the entropy counts as zero; not to clip is of use for checks only.
        num_outcomes: Outcomes of each candidate.

    Returns:
        Scores `(c,)`.
    """
    pool = Pool.read(gp, pool_X, likelihood=likelihood, targets=targets, weights=weights, pending=pending)
    rule = HotspotRule(threshold, is_clipped, num_outcomes)
    return score_hotspot_entropy(pool, read_candidates(candidates, pool), rule)


@final
@dataclass(frozen=True)
class HotspotRule:
    """The options of `hotspot_entropy`."""

    threshold: float
    is_clipped: bool = True
    num_outcomes: int = 16

    def table(self, likelihood: AbstractLikelihood) -> EntropyTable:
        """The table of expected entropies."""
        keep_count(self, "num_outcomes", minimum=2)
        link = self.check_likelihood(likelihood)
        return make_table(link, latent_threshold(likelihood, self.threshold))

    def check_likelihood(self, likelihood: AbstractLikelihood) -> str:
        """Return the link of a likelihood whose outcomes have a prevalence."""
        if likelihood.outcome_kind == "real" or likelihood.response_range != (0.0, 1.0):
            raise UnsupportedError(
                f"Hotspot entropy needs outcomes with a prevalence, Bernoulli or Binomial, but the likelihood is "
                f"{type(likelihood).__name__}. Use the acquisition 'exceedance', which takes any response."
            )
        return likelihood.link


def score_hotspot_entropy(pool: Pool, candidates: Int[Tensor, " c"], rule: HotspotRule) -> Float[Tensor, " c"]:
    """Score candidates of a pool that was read."""
    belief, table = pool.belief, rule.table(pool.likelihood)
    columns = belief.columns(pool.targets)
    # Distances from the threshold in full precision, products of changes with single precision.
    distance = (belief.mean[pool.targets] - table.latent).float()
    variance, weights = belief.variance[pool.targets].float(), pool.weights.float()
    scores = torch.empty_like(belief.mean[candidates])
    with torch.no_grad():
        for part, members in blocks(candidates, columns.row_numbers):
            shift, shrinkage, probability = _outcomes(pool, members, rule.num_outcomes)
            cross = columns.cross(belief.inputs[members], belief.roots[:, members]).float()
            reduction = _reductions(
                table, cross, distance, variance=variance, weights=weights, change=(shift, shrinkage)
            )
            reduction = reduction.clamp_min(0.0) if rule.is_clipped else reduction
            scores[part] = (reduction.to(probability) * probability).sum(-1)
    return scores


def _outcomes(
    pool: Pool, members: Int[Tensor, " c"], num_outcomes: int
) -> tuple[Float[Tensor, "c o"], Float[Tensor, "c o"], Float[Tensor, "c o"]]:
    r"""For outcomes of each candidate: $a$, $b$, and how probable they are.

    If they take its belief from $\mathcal N(m_0, v_0)$ to $\mathcal N(m, v)$, they are $a = (m - m_0) / v_0$ and
    $b = (v_0 - v) / v_0^2$.
    """
    mean, variance = pool.belief.mean[members].double(), pool.belief.variance[members].double()
    likelihood = pool.likelihood.at_rows(members)
    y, probability = representative_outcomes(likelihood, mean, variance, num_outcomes)
    m, v = mean.unsqueeze(-1), variance.clamp_min(_LEAST_VARIANCE).unsqueeze(-1)
    after_mean, after_variance = single_site_update(pool.likelihood.at_rows(members, num_axes=1), m, v, y)
    return (after_mean - m) / v, (v - after_variance) / v.square(), probability


def _reductions(
    table: EntropyTable,
    cross: Float[Tensor, "c t"],
    distance: Float[Tensor, " t"],
    *,
    variance: Float[Tensor, " t"],
    weights: Float[Tensor, " t"],
    change: tuple[Float[Tensor, "c o"], Float[Tensor, "c o"]],
) -> Float[Tensor, "c o"]:
    """The reduction of the entropy by each outcome of each candidate, in pieces that stay in the cache."""
    (shift, shrinkage), (c, t) = (one.float() for one in change), cross.shape
    o = shift.shape[-1]
    before = _entropy(table, distance.clone(), variance.clone())
    result = cross.new_empty(c, o)
    rows = max(1, _CACHE_NUMBERS // max(1, o * t))
    grid = cross.new_empty(1, rows * o, t, 2)
    for start in range(0, c, rows):
        k = cross[start : start + rows].unsqueeze(1)
        part = slice(start, start + rows)
        moved = torch.addcmul(distance, k, shift[part].unsqueeze(-1)).flatten(0, 1)
        left = torch.addcmul(variance, k.square(), shrinkage[part].unsqueeze(-1), value=-1.0).flatten(0, 1)
        after = table.look_up(moved, left, grid[:, : len(moved)])
        result[part] = ((before - after) @ weights).unflatten(0, (-1, o))
    return result


def _entropy(table: EntropyTable, distance: Float[Tensor, " t"], variance: Float[Tensor, " t"]) -> Float[Tensor, " t"]:
    grid = distance.new_empty(1, 1, len(distance), 2)
    return table.look_up(distance.unsqueeze(0), variance.unsqueeze(0), grid).squeeze(0)
