"""Learning hyperparameters and inducing points over shards, as `streamgp.training.full_batch` does at once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.gp import SparseProcess
from streamgp.likelihoods import AbstractLikelihood
from streamgp.training.collapsed import NaturalBelief, collapse
from streamgp.training.full_batch import SITE_GAIN, Task, Trained, alternate, ascend
from streamgp.training.lbfgs import Ascent
from streamgp.training.parameters import Hyperparameters
from streamgp.training.priors import HyperPrior, Layout
from streamgp.training.result import prior_process
from streamgp.training.scaling import Scaling
from streamgp.training.sharding.gaussian import gaussian_objective, gaussian_sums
from streamgp.training.sharding.shards import AbstractShards, ParameterPoint, blocks_of
from streamgp.training.sharding.sites import find_sites_over_shards, sites_objective
from streamgp.training.sites_bound import FINAL_SITE_TOLERANCE, SITE_TOLERANCE

__all__ = ["Clusters", "evaluate_over_shards", "kmeans_over_shards", "optimize_over_shards"]


def optimize_over_shards(
    setting: Hyperparameters,
    questions: Sequence[AbstractShards],
    task: Task,
    *,
    num_data: int,
) -> Hyperparameters:
    """Learn hyperparameters and inducing points from all shards, from a start that was found on a sample.

    Args:
        setting: The start.
        questions: The observations: shards, or several with the same inputs and a target each, whose bounds are added.
        task: Options and log; its data is the sample.
        num_data: Number of all observations.
    """
    options = task.options
    num_data = num_data * len(questions)

    def learn(setting: Hyperparameters, most: int) -> tuple[Hyperparameters, Ascent]:
        point, prior = _start(setting, task, learn_inducing=options.learn_inducing)
        parts = [_objective(shards, point, task) for shards in questions]

        def objective(x: Tensor) -> Tensor:
            return torch.stack([part(x) for part in parts]).sum() + point.space.evaluate(x, prior.log_density)

        gain = 1.0 if setting.likelihood.is_gaussian else SITE_GAIN
        ascent = ascend(objective, point.space, task, max_iterations=most, num_data=num_data, gain=gain)
        return point.space.setting(ascent.x), ascent

    if setting.likelihood.is_gaussian:
        return learn(setting, options.most_iterations)[0]
    return alternate(learn, setting, task, max_iterations=options.most_iterations, num_data=num_data)


def evaluate_over_shards(
    setting: Hyperparameters,
    shards: AbstractShards,
    task: Task,
) -> tuple[Trained, SparseProcess]:
    """Evaluate the bound of all observations at its optimal belief, and that belief."""
    (point, prior), options = _start(setting, task, learn_inducing=False), task.options
    with torch.no_grad():
        if setting.likelihood.is_gaussian:
            sums = gaussian_sums(shards, point, task.data.jitter, beta=options.beta)
            optimum = collapse(sums, options.beta)
            bound, belief = float(optimum.bound), NaturalBelief(optimum.precision, sums.pull)
            slack = options.beta * float(sums.slack) / sums.num_data
        else:
            found, bound = find_sites_over_shards(shards, point, tolerance=FINAL_SITE_TOLERANCE)
            belief, slack = found.belief(), float(found.slack) / found.num_data
        log_prior = float(prior.log_density(point.setting))
        m, R, _ = belief.moments()
        process = prior_process(setting, task.data.jitter).with_belief(m, R.contiguous())
    return Trained(setting, bound, log_prior, slack), process


def _start(setting: Hyperparameters, task: Task, *, learn_inducing: bool) -> tuple[ParameterPoint, HyperPrior]:
    """A setting as a point of the space of what is learned, and its prior."""
    learn_inducing = learn_inducing and bool(len(setting.inducing_points))
    layout, prior = Layout.of(setting, task.data, task.options.priors, learn_inducing=learn_inducing)
    return ParameterPoint(layout, layout.space().start, task.options.likelihood, task.scaling), prior


def _objective(shards: AbstractShards, point: ParameterPoint, task: Task) -> Callable[[Tensor], Tensor]:
    """The bound of one question, at sites that are best where it starts if observations are not Gaussian."""
    if point.layout.base.likelihood.is_gaussian:
        objective: Callable[[Tensor], Tensor] = gaussian_objective(
            shards, point, task.data.jitter, beta=task.options.beta
        )
        return objective
    find_sites_over_shards(shards, point, tolerance=SITE_TOLERANCE)
    at_sites: Callable[[Tensor], Tensor] = sites_objective(shards, point)
    return at_sites


# Passes over all rows, and the share of the inertia that one must gain to be followed by another.
_MOST_STEPS, _LEAST_GAIN = 30, 1e-4


class Clusters(NamedTuple):
    """Centers of clusters.

    Attributes:
        centers: One for each cluster.
        inertia: The sum of all squared distances to the closest center, at the last pass.
        num_steps: Passes over all rows.
    """

    centers: Float[Tensor, "m d"]
    inertia: float
    num_steps: int


def kmeans_over_shards(
    shards: AbstractShards,
    centers: Float[Tensor, "m d"],
    *,
    units: Float[Tensor, "*u d"] | float = 1.0,
    likelihood: AbstractLikelihood | None = None,
    scaling: Scaling | None = None,
) -> Clusters:
    """Move centers to the means of the inputs that are closest to them, until there is little to gain.

    A pass sends the centers to each shard, and brings back the sum and the number of the inputs of each cluster:
    `m (d + 1)` numbers. How the rows are divided makes no difference but for rounding. A center without inputs stays.

    Args:
        shards: Pairs (X, y).
        centers: Where to start, in the units of training.
        units: What distances are divided by in each dimension.
        likelihood: What checks the targets.
        scaling: Units of training.

    References:
        Lloyd (1982), Least squares quantization in PCM.
    """
    inertia, num_steps, is_done = float("inf"), 0, False
    while not is_done and num_steps < _MOST_STEPS:
        question = _Assign(centers, torch.as_tensor(units).to(centers), likelihood, scaling)
        (tally,) = shards.ask(question, plus=_Tally.plus)
        gain, inertia, num_steps = inertia - float(tally.inertia), float(tally.inertia), num_steps + 1
        is_done = gain <= _LEAST_GAIN * inertia
        if not is_done:
            centers = centers + tally.moves / tally.counts.clamp_min(1.0).unsqueeze(-1)
    return Clusters(centers, inertia, num_steps)


class _Tally(NamedTuple):
    """Sums over the inputs of each cluster: differences from the center, their number, and all squared distances."""

    moves: Float[Tensor, "m d"]
    counts: Float[Tensor, " m"]
    inertia: Tensor

    def plus(self, other: "_Tally") -> "_Tally":
        return _Tally(self.moves + other.moves, self.counts + other.counts, self.inertia + other.inertia)


@final
@dataclass(frozen=True, eq=False)
class _Assign:
    """Find the closest center of each input of a shard."""

    centers: Tensor
    units: Tensor
    likelihood: AbstractLikelihood | None
    scaling: Scaling | None

    def __call__(self, index: int, shard: Any, kept: Any) -> _Tally:
        C = self.centers
        total = _Tally(torch.zeros_like(C), C.new_zeros(len(C)), C.new_zeros(()))
        for data in blocks_of(index, shard, likelihood=self.likelihood, scaling=self.scaling):
            X = data.all_inputs.to(C)
            labels = torch.cdist(X / self.units, C / self.units).argmin(-1)
            differences = X - C[labels]
            moves = torch.zeros_like(C).index_add_(0, labels, differences)
            counts = torch.bincount(labels, minlength=len(C)).to(C)
            total = total.plus(_Tally(moves, counts, (differences / self.units).square().sum()))
        return total
