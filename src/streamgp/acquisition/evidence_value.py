"""Values of evidence of several kinds, each at its cost: which kind to ask for, and where."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.acquisition.goals import AbstractGoal, AbstractRegionGoal, Map
from streamgp.acquisition.lookahead import Lookahead
from streamgp.acquisition.rules.goal_rules import AbstractGoalRule, IntegratedError, StepwiseUncertaintyReduction
from streamgp.checks import check_float
from streamgp.conditioning import ConditionedGP, SparseGP
from streamgp.conditioning.rates import linearize
from streamgp.errors import ArgumentTypeError, OptionError, ShapeError, UnsupportedError, ValueRangeError
from streamgp.evidence import Evidence, combine, values
from streamgp.likelihoods import AbstractLikelihood
from streamgp.likelihoods.registry import read_likelihood

__all__ = ["Offer", "ValuedEvidence", "value_evidence"]

# Rows whose covariances with all targets are formed at once.
_AT_ONCE = 256


@final
@dataclass(frozen=True, eq=False)
class Offer:
    """Evidence of one kind that may be asked for.

    Attributes:
        evidence: Rows of `streamgp.evidence`, one for each question, or inputs `(n, d)` for values.
        likelihood: Of an observation of a row, or its name.
        cost: Of one observation: a number, or one for each row.
        name: What the kind is called.
    """

    evidence: Any
    likelihood: AbstractLikelihood | str
    cost: Any = 1.0
    name: str = ""

    def rows(self, gp: SparseGP | ConditionedGP) -> Evidence:
        """Rows as a model sees them; averages of rates are made linear around the belief."""
        reference = gp.process.reference
        rows = self.evidence if isinstance(self.evidence, Evidence) else values(self.evidence)
        rows = rows.matched(reference, gp.process.batch_shape)
        if not rows.is_rate or rows.row_of is None:
            return rows
        with torch.no_grad():
            mean, variance = gp.process.mean(rows.points), gp.process.variance(rows.points).clamp_min(0.0)
            return linearize(rows, read_likelihood(self.likelihood), mean, variance, gp.process)

    def costs(self, num_rows: int, like: Tensor) -> Float[Tensor, " k"]:
        """The cost of each row."""
        costs = check_float(torch.as_tensor(self.cost, dtype=torch.float64), "cost").to(like)
        if costs.dim() and costs.shape != (num_rows,):
            raise ShapeError(
                f"cost must be a number or have shape ({num_rows},), one for each row of the evidence, but has shape "
                f"{tuple(costs.shape)}."
            )
        if not bool((costs > 0).all()):
            raise ValueRangeError("cost must be positive, as values are divided by it.")
        return costs.expand(num_rows)


class ValuedEvidence(NamedTuple):
    """Values of evidence.

    Attributes:
        values: Of each row of each offer, for each unit of cost.
        offer: Number of the offer with the best row.
        row: Number of that row.
    """

    values: tuple[Float[Tensor, " k"], ...]
    offer: int
    row: int


def value_evidence(
    gp: SparseGP | ConditionedGP,
    offers: Sequence[Offer],
    targets: Any,
    *,
    goal: AbstractGoal | None = None,
    weights: Any = None,
) -> ValuedEvidence:
    """Rate evidence by what it is expected to tell of places for each unit of cost.

    ```python
    import torch
    from gpytorch.kernels import RBFKernel

    places = torch.rand(60, 2, dtype=torch.float64)
    gp = sg.SparseGP.from_prior(RBFKernel(), places[:20])
    district = sg.evidence.average(places, (3 * places[:, 0]).long())
    noise = sg.likelihoods.Gaussian(0.01)
    villages, districts = sg.acquisition.Offer(places, noise, 1.0), sg.acquisition.Offer(district, noise, 5.0)
    best = sg.acquisition.value_evidence(gp, [villages, districts], places)
    best.offer, best.row  # which kind to ask for, and which village or district
    ```

    Args:
        gp: The belief.
        offers: The kinds, with likelihood and cost.
        targets: Inputs `(t, d)` of the places that matter.
        goal: `streamgp.Map()`, by which the variance over places is to be small, or a region such as
            `streamgp.LevelSet(0.5)`, of which it is to be known on which side places are.
        weights: How much each place counts, `(t,)`; equally by default.

    Returns:
        Values of all rows, and the best one.
    """
    goal = Map() if goal is None else goal
    rule = _rule(goal)
    if not offers or not all(isinstance(one, Offer) for one in offers):
        raise ArgumentTypeError("offers must be a list of streamgp.acquisition.Offer, with at least one.")
    if gp.process.batch_shape:
        raise UnsupportedError("Evidence is rated for one GP at a time. Rate it for each member of a batch.")
    places = values(targets).matched(gp.process.reference)
    t = places.num_rows
    share = (
        places.atoms.new_full((t,), 1.0 / t) if weights is None else check_float(weights, "weights").to(places.atoms)
    )
    if share.shape != (t,):
        raise ShapeError(f"weights must have shape ({t},), one for each target, but has shape {tuple(share.shape)}.")
    found = tuple(_values(gp, one, places, rule, share) for one in offers)
    best = [float(each.max()) if len(each) else -torch.inf for each in found]
    offer = max(range(len(best)), key=best.__getitem__)
    if best[offer] == -torch.inf:
        raise OptionError("None of the offers has a row. Leave empty ones out.")
    return ValuedEvidence(found, offer, int(found[offer].argmax()))


def _rule(goal: AbstractGoal) -> AbstractGoalRule:
    if isinstance(goal, AbstractRegionGoal):
        return StepwiseUncertaintyReduction(goal)
    if isinstance(goal, Map):
        return IntegratedError(goal)
    raise UnsupportedError(f"Evidence is rated for Map, LevelSet and Band, but the goal is a {type(goal).__name__}.")


@torch.no_grad()
def _values(
    gp: SparseGP | ConditionedGP, offer: Offer, places: Evidence, rule: AbstractGoalRule, weights: Float[Tensor, " t"]
) -> Float[Tensor, " k"]:
    rows, likelihood = offer.rows(gp), read_likelihood(offer.likelihood)
    rule.check(likelihood)
    costs, total = offer.costs(rows.num_rows, weights), []
    for part in torch.arange(rows.num_rows).split(_AT_ONCE):
        joint = gp.predict(combine(rows.select(part), places), covariance=True)
        mean, covariance, k = joint.mean, joint.covariance, len(part)
        variance = covariance.diagonal().clamp_min(0.0)
        lookahead = Lookahead(
            likelihood=likelihood.at_rows(part),
            mean=mean[:k],
            variance=variance[:k],
            cross=covariance[:k, k:],
            target_mean=mean[k:],
            target_variance=variance[k:],
            weights=weights,
            edges=rule.edges(likelihood),
            pending_variance=torch.zeros_like(weights),
        )
        total.append(rule.value(lookahead))
    return torch.cat(total) / costs if total else costs
