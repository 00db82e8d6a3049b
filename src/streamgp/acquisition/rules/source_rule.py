"""Knowledge gradient per unit of cost: which setting to try next, and by which source."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from streamgp.acquisition.abstract_rule import AbstractRule, Choice, Design
from streamgp.acquisition.context import Context
from streamgp.acquisition.discrete_knowledge_gradient import expected_maximum_of_lines
from streamgp.errors import ValueRangeError
from streamgp.likelihoods.quadrature import gauss_hermite
from streamgp.seeds import derived_seed, seeded
from streamgp.storage import register

__all__ = ["Cost", "KnowledgePerCost"]

# The cost of one measurement: a number, or a function of the setting.
Cost = float | Callable[[Mapping[str, Any]], float]
# Points among which one will be recommended, settings that are tried with every source, and settings near the best.
_NUM_RECOMMENDED, _NUM_TRIED, _NUM_NEAR = 80, 48, 48
_NUM_DRAWN = 1000
# Nodes of the quadrature by which measurements are screened, and how many of them are valued exactly.
_NUM_NODES, _NUM_EXACT = 16, 16


@register
@final
@dataclass(frozen=True)
class KnowledgePerCost(AbstractRule):
    r"""The growth of the best mean of the target by one measurement of any source, for each unit of its cost.

    A measurement of source $s$ at $x$ moves the mean of the target at $w$ along a line with slope
    $\operatorname{cov}(f_t(w), f_s(x)) / \sqrt{\operatorname{var} f_s(x) + \sigma_s^2}$, so that its value is the
    expected maximum of lines over all $w$, in closed form.

    Attributes:
        names: Of the sources, which are the values of the last parameter.
        costs: Of one measurement of each.
        target: Number of the source that matters.
        budget: What the next measurement may cost at most; None for anything.

    References:
        Poloczek, Wang, Frazier (2017), Multi-information source optimization.
    """

    may_repeat = True  # where there is noise that can be worth the cost, and where there is none it is worth nothing

    names: tuple[str, ...]
    costs: tuple[Cost, ...]
    target: int
    budget: float | None = None

    @property
    def in_words(self) -> str:
        """The name of the rule."""
        return "knowledge gradient per unit of cost"

    def cost(self, setting: Mapping[str, Any], source: int) -> float:
        """Evaluate the cost of one measurement."""
        cost = self.costs[source]
        value = float(cost(setting)) if callable(cost) else float(cost)
        if not 0.0 < value < float("inf"):
            raise ValueRangeError(
                f"The cost of source {self.names[source]!r} must be positive, but is {value:g} at {dict(setting)}."
            )
        return value

    def design(self, memory: Any, q: int, design: Design) -> tuple[Any, Tensor]:
        """Lay out pairs of setting and source: all sources at the first settings, and at more all but the target."""
        chosen = self.pairs(design.num_initial)[design.num_before : design.num_before + q]
        chosen = chosen or [(design.num_before, self.target)]  # those of failed ones
        settings = design.space.design(chosen[-1][0] + 1, num_initial=0, num_before=0, seed=design.seed)
        points = torch.stack([self.at_source(settings[j], s) for j, s in chosen])
        if self.budget is not None:
            costs = [self.cost(one, s) for one, (_, s) in zip(design.space.show(points), chosen, strict=True)]
            if costs[0] > self.budget:
                raise ValueRangeError(
                    f"budget is {self.budget:g}, but the next measurement of the initial design, by "
                    f"{self.names[chosen[0][1]]!r}, costs {costs[0]:g}. Give at least as much."
                )
        return memory, points

    def pairs(self, num_measurements: int) -> list[tuple[int, int]]:
        """Numbers of settings and sources of a design of so many measurements; half of the settings have all."""
        others = [s for s in range(len(self.names)) if s != self.target]
        half = max(2, num_measurements // (1 + 2 * len(others)))
        found = [(j, s) for j in range(half) for s in (*others, self.target)]
        more = [(j, s) for j in range(half, num_measurements) for s in others]
        return [*found, *more][:num_measurements]

    def at_source(self, points: Float[Tensor, "*n d"], source: int) -> Float[Tensor, "*n d"]:
        """Points at which a source is measured."""
        moved = points.clone()
        moved[..., -len(self.names) :] = 0.0
        moved[..., source - len(self.names)] = 1.0
        return moved

    def is_target(self, points: Float[Tensor, "n d"]) -> Bool[Tensor, " n"]:
        """Mark points at which the target is measured."""
        return points[:, self.target - len(self.names)] > 0.5

    def propose(self, context: Context, q: int, *, seed: int) -> Tensor:
        """Choose settings and sources one after the other."""
        return self.choose(context, q, seed=seed).points

    @torch.no_grad()
    def choose(self, context: Context, q: int, *, seed: int) -> Choice:
        """Choose one after the other, each given the expected outcomes of those before."""
        points, why = [], []
        model: Any = context.model
        pending = context.pending
        if len(pending):
            model = model.condition_on_observations(pending, model.posterior(pending).mean)
        for k in range(q):
            point, text = self._choose_one(model, context, seed=derived_seed(seed, k))
            points.append(point)
            why.append(text)
            inputs = context.space.inputs(point)
            model = model.condition_on_observations(inputs, model.posterior(inputs).mean)
        return Choice(torch.cat(points), tuple(why))

    def _choose_one(self, model: Any, context: Context, *, seed: int) -> tuple[Tensor, str]:
        space = context.space
        known = self.at_source(context.baseline, self.target)
        mean = model.posterior(known).mean[:, 0]
        centers = known[mean.topk(min(5, len(mean))).indices]
        drawn = space.candidates(_NUM_DRAWN, centers=centers, generator=seeded(seed))
        drawn = self.at_source(torch.cat([drawn, centers]), self.target)
        posterior = model.posterior(space.inputs(drawn).unsqueeze(-2))
        mean, deviation = posterior.mean[:, 0, 0], posterior.variance[:, 0, 0].clamp_min(0.0).sqrt()
        order = torch.unique(
            torch.cat([(mean + c * deviation).topk(_NUM_RECOMMENDED // 4).indices for c in (0, 1, 2, 4)])
        )
        recommended = drawn[order]
        spread = torch.randperm(len(order), generator=seeded(seed, 1))[:_NUM_TRIED]
        tried = recommended[spread]
        best = self._best_of(model, context, recommended, tried)
        near = space.candidates(2 * _NUM_NEAR, centers=best[1], generator=seeded(seed, 2))[_NUM_NEAR:]
        found = max(best, self._best_of(model, context, recommended, near), key=lambda each: each[0])
        return found[1], f"{self.in_words}, {self.names[found[2]]}"

    def _best_of(
        self, model: Any, context: Context, recommended: Float[Tensor, "w d"], settings: Float[Tensor, "c d"]
    ) -> tuple[float, Float[Tensor, "1 d"], int]:
        """The largest knowledge gradient per unit of cost, its point, and the source."""
        space, num_sources = context.space, len(self.names)
        shown, count = space.show(settings), len(settings)
        costs = torch.tensor([[self.cost(one, s) for one in shown] for s in range(num_sources)], dtype=torch.float64)
        if self.budget is not None:
            costs = torch.where(costs <= self.budget, costs, torch.inf)
            if not bool(costs.isfinite().any()):
                raise ValueRangeError(
                    f"budget is {self.budget:g}, which pays for no measurement. Give at least the cost of one."
                )
        at_target = space.inputs(self.at_source(torch.cat([recommended, settings]), self.target))
        measured = torch.cat([self.at_source(settings, s) for s in range(num_sources)])
        joint = model.posterior(torch.cat([at_target, space.inputs(measured)]))
        weight, first = context.objective.weights[0], len(at_target)
        mean, covariance = weight * joint.mean[:first, 0], joint.distribution.covariance_matrix
        noise = model.tasks.noise_variance.to(mean).repeat_interleave(count)
        variance = covariance.diagonal()[first:] + noise
        slopes = covariance[first:, :first] / variance.clamp_min(1e-12).sqrt().unsqueeze(-1)
        # Of settings, only the one that is measured is recommended beside the others.
        own = torch.arange(count).repeat(num_sources) + len(recommended)
        kept = torch.cat([torch.arange(len(recommended)).expand(len(own), -1), own.unsqueeze(-1)], dim=-1)
        intercepts, gradients, costs = mean[kept], slopes.gather(-1, kept), costs.flatten()
        nodes, weights = gauss_hermite(_NUM_NODES, mean.dtype, mean.device)
        rough = sum(w * (intercepts + z * gradients).amax(-1) for z, w in zip(nodes, weights, strict=True))
        likely = ((rough - intercepts.amax(-1)) / costs).topk(min(_NUM_EXACT, len(own))).indices
        value = expected_maximum_of_lines(intercepts[likely], gradients[likely]) - intercepts[likely].amax(-1)
        share = value.clamp_min(0.0) / costs[likely]
        best = int(share.argmax())
        index = int(likely[best])
        return float(share[best]), measured[index : index + 1], index // count
