r"""Outlook of a search: the gain that more evaluations may bring, in the user's units.

With joint samples $f_s$ of the model at points that may be the best, and the best known point $b$, what is left to gain
is distributed as $\max_x f_s(x) - f_s(b)$, where the scale of deviations is not known for sure: they are those of
Student's $t$ with as many degrees of freedom as there are outcomes beside parameters. One more evaluation at $x$, with
noise of variance $\sigma^2$, changes the difference of the expected values of $x$ and $b$ by a normal number of
deviation

$$
\tilde\sigma(x) = \frac{k(x, x) - k(x, b)}{\sqrt{k(x, x) + \sigma^2}} ,
$$

so that it is expected to gain $\tilde\sigma \, [\varphi(u) + u \Phi(u)]$ with $u = (\mu(x) - \mu(b)) / \tilde\sigma$:
the knowledge gradient of the two, and expected improvement where there is no noise.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, final

import torch
from botorch.sampling.normal import IIDNormalSampler
from jaxtyping import Float
from torch import Tensor

from streamgp.acquisition import Context
from streamgp.acquisition.rules.source_rule import KnowledgePerCost
from streamgp.display import html_rows
from streamgp.errors import UnsupportedError
from streamgp.loops.best import best_evaluated
from streamgp.loops.pool_space import PoolSpace
from streamgp.loops.settings import LoopSettings
from streamgp.loops.sources import SOURCE
from streamgp.loops.state import LoopState, current
from streamgp.loops.suggest import make_context
from streamgp.loops.surrogate import AbstractSurrogate, SparseSurrogate
from streamgp.models.posterior import LatentPosterior
from streamgp.seeds import derived_seed, seeded

__all__ = ["Outlook", "find_outlook"]

# Points at which functions are sampled, and functions. With more, their maxima are found a little better.
_NUM_POINTS, _NUM_SAMPLES = 400, 256
# How often points are chosen anew around the maxima of samples, and how far from them, in the unit cube.
_REACH = (0.1, 0.03)
# Least degrees of freedom of the scale: with fewer, it would have no mean.
_LEAST_FREE = 3
# Salt of the seed.
_OUTLOOK = 5


@final
@dataclass(frozen=True, eq=False, repr=False)
class Outlook:
    """The gain that more evaluations may bring, in the user's units.

    Attributes:
        name: Of the objective.
        best: Expected outcome of the best known point.
        next: Expected gain of one more evaluation where it promises most.
        gains: Samples of all that is left to gain, in order.
    """

    name: str
    best: float
    next: float
    gains: Float[Tensor, " s"]

    @property
    def left(self) -> float:
        """All that is left to gain, as expected."""
        return float(self.gains.mean())

    @property
    def most(self) -> float:
        """The gain that what is left does not exceed with probability 0.95."""
        return float(self.gains.quantile(0.95))

    def chance(self, gain: float) -> float:
        """Probability that more than a gain is left.

        Args:
            gain: In the user's units, such as the least that is worth the effort.
        """
        return float((self.gains > gain).double().mean())

    def __str__(self) -> str:
        return (
            f"{self.name} is {self.best:.4g} at the best known point. One more evaluation is expected to gain "
            f"{self.next:.2g}. All that is left to gain is about {self.left:.2g}, and at most {self.most:.2g} with "
            "probability 0.95."
        )

    def __repr__(self) -> str:
        return f"Outlook({self})"

    def _repr_html_(self) -> str:
        facts = {"best": self.best, "next evaluation": self.next, "left": self.left, "at most (95 %)": self.most}
        return html_rows("Outlook", [facts])


@torch.no_grad()
def find_outlook(state: LoopState, settings: LoopSettings) -> Outlook:
    """Look ahead with the model as it is.

    Args:
        state: With a model.
        settings: Of the loop.
    """
    if len(settings.objectives) > 1 or isinstance(settings.space, PoolSpace):
        raise UnsupportedError(
            "The outlook is that of one objective in a space. Of several objectives, watch hypervolume(); of a pool, "
            "predict()."
        )
    space, rule = settings.space, settings.rule.innermost
    if isinstance(rule, KnowledgePerCost):  # the outlook is that of the source that matters
        settings = replace(settings, space=space.fixing({SOURCE: rule.names[rule.target]}))
    context, surrogate = make_context(state, settings), state.surrogate
    assert surrogate is not None
    best = space.inputs(space.project(space.read([best_evaluated(state, settings).X])))
    points = _promising(context, settings, best, seed=derived_seed(settings.seed, _OUTLOOK))
    posterior: Any = context.model.posterior(points)
    values = context.objective.score(_draws(posterior, seed=derived_seed(settings.seed, _OUTLOOK, 1)))
    means = context.objective.score(posterior.mean)
    num_free = int(current(state, settings).is_informative.sum()) - space.num_parameters - 1
    values = means + _scales(max(num_free, _LEAST_FREE), seed=settings.seed).to(values) * (values - means)
    units, weight = surrogate.units[0], context.objective.weights[0]

    def told(score: Tensor) -> Tensor:
        latent = score / weight
        if settings.outcomes[0].is_real or settings.is_preference:
            return units.outside(latent)
        return settings.outcomes[0].likelihood.conditional_mean(latent)

    # A value that breaks a constraint is no gain: chances of feasibility are those of independent outputs.
    chance = context.objective.feasibility(posterior).prod(-1)
    is_kept = torch.rand(values.shape, generator=seeded(settings.seed, _OUTLOOK), dtype=values.dtype) <= chance
    is_kept[:, 0] = True
    top = values.masked_fill(~is_kept, -math.inf).amax(-1)
    gains = (told(top) - told(values[:, 0])).abs().sort().values
    at_best = told(means[:1])
    gain = _next_gain(posterior, context, noise=_noise(surrogate)) * chance
    after = told(means[:1] + gain.max())
    return Outlook(settings.objectives[0].name, float(at_best), float((after - at_best).abs()), gains)


def _promising(context: Context, settings: LoopSettings, best: Tensor, *, seed: int) -> Float[Tensor, "n d"]:
    """Inputs of points among which the maxima of samples are, the best known point first."""
    points = torch.cat([best, context.space.inputs(context.candidates(_NUM_POINTS, seeded(seed)))])
    for number, reach in enumerate(_REACH):
        values = context.objective.score(_draws(context.model.posterior(points), seed=derived_seed(seed, number)))
        tops = torch.unique(points[values.argmax(-1)], dim=0)
        generator = seeded(seed, number)
        chosen = tops[torch.randint(len(tops), (_NUM_POINTS,), generator=generator)]
        moved = chosen + reach * torch.randn(chosen.shape, generator=generator, dtype=chosen.dtype)
        points = torch.cat([best, tops, context.space.inputs(context.space.project(moved.clamp(0.0, 1.0)))])
    return torch.cat([best, torch.unique(points[1:], dim=0)])


def _draws(posterior: Any, *, seed: int) -> Float[Tensor, "s n o"]:
    draws: Tensor = IIDNormalSampler(torch.Size([_NUM_SAMPLES]), seed=seed)(posterior)
    return draws


def _scales(num_free: int, *, seed: int) -> Float[Tensor, "s 1"]:
    """Factors of the deviations of samples, whose scale is known from so many outcomes beside parameters."""
    normal = torch.randn(_NUM_SAMPLES, num_free, generator=seeded(seed, _OUTLOOK, 2), dtype=torch.float64)
    return normal.square().mean(-1, keepdim=True).rsqrt()


def _next_gain(posterior: Any, context: Context, *, noise: float) -> Float[Tensor, " n"]:
    """Expected gain of one evaluation at each point over the first one, in the units of the model."""
    mean = context.objective.score(posterior.mean)
    is_latent = isinstance(posterior, LatentPosterior)
    covariance = posterior.outputs[0].covariance if is_latent else posterior.distribution.covariance_matrix
    variance = covariance.diagonal()
    deviation = (variance - covariance[:, 0]).clamp_min(0.0) / (variance + noise).clamp_min(1e-300).sqrt()
    u = (mean - mean[0]) / deviation.clamp_min(1e-12)
    return deviation * (torch.exp(-0.5 * u.square()) / math.sqrt(2.0 * math.pi) + u * torch.special.ndtr(u))


def _noise(surrogate: AbstractSurrogate) -> float:
    """Variance of an observation beside the function, in the units of the model; 0 where outcomes are not real."""
    if not isinstance(surrogate, SparseSurrogate):
        return 0.0
    noise = surrogate.results[0].likelihood.gaussian_noise_variance
    return 0.0 if noise is None else float(noise.max())
