"""Which villages to visit to find the hotspots of a disease."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar, final

import torch
from gpytorch.kernels import Kernel, MaternKernel, RBFKernel, ScaleKernel
from torch import Tensor

from paper.active_learning.villages import (
    AbstractVillageSurveyor,
    ForestSurveyor,
    PoolSurveyor,
    Prevalences,
)
from paper.baselines.forest_kriging import ForestSettings, Villages
from paper.datasets import Hotspots, load_hotspots
from paper.schema.rounding import rounded
from paper.schema.study import Study, UnitOutcome
from streamgp.checks import check_choice
from streamgp.likelihoods import Binomial
from streamgp.pools import PoolLearner, Training

__all__ = ["STUDY", "HotspotSettings", "scale_inputs", "village_kernel"]

ResultT = TypeVar("ResultT")

_SMOOTHNESS = {"matern12": 0.5, "matern32": 1.5, "matern52": 2.5}
_SCALINGS = ("initial_range", "pool_range", "pool_deviation", "pool_ranks")
_PREDICTORS = ("mean", "median")


@final
@dataclass(frozen=True)
class HotspotSettings:
    """Settings of the survey.

    Attributes:
        total_count: People who are tested in each village.
        num_initial: Random villages that are visited first.
        num_queries: Villages that are visited one at a time.
        kernel: Kernel of the sparse GP: `"matern12"`, `"matern32"`, `"matern52"` or `"rbf"`, with a lengthscale for
            each input.
        has_spatial_part: Whether a kernel of the same kind of the coordinates alone is added.
        scaling: Units of the inputs: `"initial_range"` (the range of the first villages is [0, 1], as in the paper),
            `"pool_range"`, `"pool_deviation"` (zero mean and unit variance over all villages), or `"pool_ranks"`.
        priors: Set of priors of `streamgp.fit`, or `"none"`.
        beta: Weight of the divergence of the belief from the prior.
        num_starts: Number of starts of a fit.
        max_iterations: Most iterations of each fit; 0 for the default.
        refit_interval: New villages from one fit of hyperparameters to the next.
        is_clipped: Whether outcomes that raise the entropy count as zero.
        predictor: Predicted prevalence: `"mean"`, the expected prevalence, or `"median"`, the sigmoid of the latent
            mean, as in the paper.
        num_trees: Trees of a forest.
        num_folds: Folds of its cross-validation.
        least_leaf: Fewest rows in a leaf.
        forest_smoothness: Smoothness of the spatial kernel of the kriging.
        forest_interval: New villages from one set of forests to the next.
    """

    total_count: int
    num_initial: int
    num_queries: int
    kernel: str
    has_spatial_part: bool
    scaling: str
    priors: str
    beta: float
    num_starts: int
    max_iterations: int
    refit_interval: int
    is_clipped: bool
    predictor: str
    num_trees: int
    num_folds: int
    least_leaf: int
    forest_smoothness: float
    forest_interval: int


def run(problem: str, method: str, seed: int, settings: HotspotSettings) -> UnitOutcome:
    """Survey a country by a method, named by its model and its rule.

    All methods of a seed start with the same villages, and those that choose at random choose the same.

    Returns:
        For each number of visited villages `num_villages`: `accuracy`, the share of the others that are rightly called
        hotspots or not, `error`, the mean squared error of their predicted prevalence, and the seconds of the processor
        for the fit and the choice, `fit_seconds` and `choice_seconds` (one less). `visited` are all villages in their
        order. Of seed 0 also `map`: `longitude`, `latitude`, predicted `prevalence`, and `exceedance`, the probability
        of being a hotspot.
    """
    check_choice(settings.predictor, _PREDICTORS, "predictor")
    data = load_hotspots(problem)
    counts = data.survey(seed, settings.total_count)
    order = torch.randperm(len(counts), generator=torch.Generator().manual_seed(seed))
    visited = order[: settings.num_initial]
    model, rule = method.split("-")
    surveyor = _start(model, rule, data, visited, seed=seed, settings=settings).visit(visited, counts[visited])
    rows: dict[str, list[float]] = {name: [] for name in ("accuracy", "error", "fit_seconds", "choice_seconds")}
    while True:
        surveyor, seconds = _timed(surveyor.fit)
        beliefs = surveyor.predict()
        accuracy, error = _score(beliefs, data, visited, settings.predictor)
        _append(rows, accuracy=accuracy, error=error, fit_seconds=seconds)
        n = len(visited)
        if n == settings.num_initial + settings.num_queries:
            break
        chosen, seconds = (order[n : n + 1], 0.0) if rule == "random" else _timed(surveyor.choose)
        _append(rows, choice_seconds=seconds)
        surveyor = surveyor.visit(chosen, counts[chosen])
        visited = torch.cat([visited, chosen])
    outcome: UnitOutcome = {
        "num_villages": list(range(settings.num_initial, n + 1)),
        **rows,
        "visited": visited.tolist(),
    }
    return outcome | ({"map": _map(beliefs, data, settings.predictor)} if seed == 0 else {})


def village_kernel(settings: HotspotSettings, num_dims: int) -> Kernel:
    """The kernel of the sparse GP."""
    check_choice(settings.kernel, ("rbf", *_SMOOTHNESS), "kernel")

    def part(dims: tuple[int, ...] | None, size: int) -> ScaleKernel:
        if settings.kernel == "rbf":
            return ScaleKernel(RBFKernel(ard_num_dims=size, active_dims=dims))
        return ScaleKernel(MaternKernel(_SMOOTHNESS[settings.kernel], ard_num_dims=size, active_dims=dims))

    kernel: Kernel = part(None, num_dims)
    return (kernel + part((0, 1), 2) if settings.has_spatial_part else kernel).double()


def scale_inputs(inputs: Tensor, initial: Tensor, scaling: str) -> Tensor:
    """Inputs of all villages in the units of the model.

    Args:
        inputs: Of all villages, as in the file.
        initial: Indices of the first villages.
        scaling: One of the settings.
    """
    check_choice(scaling, _SCALINGS, "scaling")
    if scaling == "pool_deviation":
        return (inputs - inputs.mean(0)) / inputs.std(0)
    if scaling == "pool_ranks":
        return inputs.argsort(0).argsort(0).to(inputs) / (len(inputs) - 1)
    rows = inputs[initial] if scaling == "initial_range" else inputs
    return (inputs - rows.amin(0)) / (rows.amax(0) - rows.amin(0))


def _timed(task: Callable[[], ResultT]) -> tuple[ResultT, float]:
    began = time.process_time()
    return task(), time.process_time() - began


def _append(rows: dict[str, list[float]], **values: float) -> None:
    for name, value in values.items():
        rows[name].append(rounded(value))


def _start(
    model: str, rule: str, data: Hotspots, initial: Tensor, *, seed: int, settings: HotspotSettings
) -> AbstractVillageSurveyor:
    """A surveyor that has not visited any village."""
    if model == "forest":
        nothing = torch.empty(0, dtype=torch.long)
        return ForestSurveyor(
            Villages(data.coordinates, data.inputs[:, 2:], settings.total_count),
            data.threshold,
            ForestSettings(settings.num_trees, settings.num_folds, settings.least_leaf, settings.forest_smoothness),
            settings.forest_interval,
            seed,
            visited=nothing,
            counts=nothing.double(),
        )
    acquisition = {"entropy": "hotspot_entropy", "response": "response_variance"}.get(rule, rule)
    inputs = scale_inputs(data.inputs, initial, settings.scaling)
    learner = PoolLearner(
        inputs,
        likelihood=Binomial(settings.total_count),
        acquisition=acquisition,
        threshold=data.threshold,
        is_clipped=settings.is_clipped,
        kernel=village_kernel(settings, data.inputs.shape[-1]),
        num_initial=len(initial),
        num_inducing=len(data.prevalence),
        refit=settings.refit_interval,
        training=Training(
            beta=settings.beta,
            priors=None if settings.priors == "none" else settings.priors,
            num_starts=settings.num_starts,
            max_iterations=settings.max_iterations or None,
        ),
        standardize=False,
        seed=seed,
    )
    return PoolSurveyor(learner, inputs)


def _score(beliefs: Prevalences, data: Hotspots, visited: Tensor, predictor: str) -> tuple[float, float]:
    """Accuracy and mean squared error over the villages that were not visited.

    A village is called a hotspot where that is more probable than not, which is where the median is above the
    threshold, whatever the predictor.
    """
    is_left = torch.ones(len(data.prevalence), dtype=torch.bool)
    is_left[visited] = False
    is_right = (beliefs.median > data.threshold) == data.is_hotspot
    error = (_prevalence(beliefs, predictor) - data.prevalence).square()
    return float(is_right[is_left].double().mean()), float(error[is_left].mean())


def _prevalence(beliefs: Prevalences, predictor: str) -> Tensor:
    return beliefs.mean if predictor == "mean" else beliefs.median


def _map(beliefs: Prevalences, data: Hotspots, predictor: str) -> UnitOutcome:
    return {
        "longitude": rounded(data.coordinates[:, 0], num_digits=5),
        "latitude": rounded(data.coordinates[:, 1], num_digits=5),
        "prevalence": rounded(_prevalence(beliefs, predictor), num_digits=3),
        "exceedance": rounded(beliefs.exceedance(data.threshold), num_digits=3),
    }


STUDY = Study(
    name="hotspots",
    problems={
        "civ": "schistosomiasis in Côte d'Ivoire, 1500 villages",
        "hti": "1500 villages of Haiti",
        "mwi": "1500 villages of Malawi",
        "phl": "1500 villages of the Philippines",
    },
    methods={
        "svgp-entropy": "SVGP, hotspot entropy",
        "svgp-response": "SVGP, response variance",
        "svgp-random": "SVGP, random",
        "forest-adaptive": "forest and kriging, adaptive",
        "forest-random": "forest and kriging, random",
        "svgp-exceedance": "SVGP, exceedance",
        "svgp-variance": "SVGP, variance",
    },
    settings=HotspotSettings,
    run=run,
    datasets=("hotspots",),
)
