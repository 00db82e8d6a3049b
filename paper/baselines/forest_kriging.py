"""A random forest of covariates, corrected in space by a binomial GP."""

from dataclasses import dataclass, replace
from typing import final

import numpy as np
import torch
from gpytorch.kernels import MaternKernel, ScaleKernel
from gpytorch.means import Mean
from jaxtyping import Float
from numpy.typing import NDArray
from sklearn.model_selection import KFold
from torch import Tensor

from paper.baselines.probability_forest import ProbabilityForest
from streamgp.conditioning import ConditionedGP, SparseGP
from streamgp.likelihoods import Binomial
from streamgp.training import FitResult, fit

__all__ = ["ForestKriging", "ForestSettings", "Villages", "forest_logits"]

# Probabilities of a forest may be 0 or 1; their logits are kept within those of 1 in 1000.
_LEAST_PROBABILITY = 1e-3


@final
@dataclass(frozen=True)
class ForestSettings:
    """Options of the forest and of the spatial model.

    Attributes:
        num_trees: Number of trees.
        num_folds: Number of folds of cross-validation.
        least_leaf: Fewest rows in a leaf; a village has two, of those who have the disease and those who do not.
        smoothness: Smoothness of the spatial Matérn kernel: 0.5, 1.5 or 2.5.
    """

    num_trees: int
    num_folds: int
    least_leaf: int
    smoothness: float


@final
@dataclass(frozen=True, eq=False)
class Villages:
    """What is known of all villages before they are visited.

    Attributes:
        coordinates: Longitude and latitude.
        covariates: Climate and terrain.
        total_count: People who are tested in each village.
    """

    coordinates: Float[Tensor, "n 2"]
    covariates: Float[Tensor, "n k"]
    total_count: int


class CovariateMean(Mean):  # type: ignore[misc] # GPyTorch's means have no types
    """Linear in the last column of the inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.constant = torch.nn.Parameter(torch.zeros((), dtype=torch.float64))
        self.slope = torch.nn.Parameter(torch.ones((), dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        """The mean at inputs `(*b, n, d)`."""
        return self.constant + self.slope * x[..., -1]


@final
@dataclass(frozen=True, eq=False)
class ForestKriging:
    r"""Counts $y \sim \mathrm{Binomial}(N, \sigma(a + b\,r(x) + g(s)))$, with $r$ the logit of a forest of covariates.

    The forest does not see the coordinates $s$, and $g$ is a GP of them. Where the model is trained, $r$ is predicted
    by forests that have not seen the village (cross-validation); elsewhere by the forest of all visited villages.

    Attributes:
        inputs: Scaled coordinates and the forest's logit of all villages.
        result: The spatial model.
        gp: Its belief, after villages that came since.

    References:
        Andrade-Pacheco et al. (2020), Finding hotspots: development of an adaptive spatial sampling approach.
    """

    inputs: Float[Tensor, "n 3"]
    result: FitResult
    gp: SparseGP | ConditionedGP

    @classmethod
    def fit(
        cls,
        villages: Villages,
        visited: Tensor,
        counts: Tensor,
        *,
        settings: ForestSettings,
        seed: int,
    ) -> "ForestKriging":
        """Grow the forests and fit the spatial model.

        Args:
            villages: All villages.
            visited: Indices `(k,)` of those that were visited.
            counts: How many people there have the disease, `(k,)`.
            settings: Options.
            seed: Seed of forests and folds.
        """
        unseen, fitted = forest_logits(villages, visited, counts, settings=settings, seed=seed)
        corner = villages.coordinates.amin(0)
        scaled = (villages.coordinates - corner) / (villages.coordinates.amax(0) - corner).max()
        inputs = torch.cat([scaled, fitted.unsqueeze(-1)], -1)
        train = torch.cat([scaled[visited], unseen.unsqueeze(-1)], -1)
        kernel = ScaleKernel(MaternKernel(nu=settings.smoothness, active_dims=(0, 1))).double()
        result = fit(
            train,
            counts,
            likelihood=Binomial(villages.total_count),
            kernel=kernel,
            mean=CovariateMean(),
            inducing=train,
            learn_inducing=False,
        )
        return cls(inputs, result, result.gp)

    def observe(self, visited: Tensor, counts: Tensor) -> "ForestKriging":
        """Learn of further villages in closed form, with the forest and all hyperparameters as they are."""
        gp = self.gp.condition(self.inputs[visited], counts, likelihood=self.result.likelihood)
        return replace(self, gp=gp)

    def predict(self) -> tuple[Tensor, Tensor]:
        """Mean and variance of the logit of the prevalence of all villages."""
        prediction = self.gp.predict(self.inputs)
        return prediction.mean, prediction.variance


def forest_logits(
    villages: Villages, visited: Tensor, counts: Tensor, *, settings: ForestSettings, seed: int
) -> tuple[Float[Tensor, " k"], Float[Tensor, " n"]]:
    """Logits of the visited villages from forests that have not seen them, and of all villages from one that has."""
    covariates = villages.covariates.numpy()
    rows, positives = covariates[visited.numpy()], counts.numpy()
    totals = np.full(len(rows), float(villages.total_count))
    unseen = np.empty(len(rows))
    folds = KFold(min(settings.num_folds, len(rows)), shuffle=True, random_state=seed)
    for train, held_out in folds.split(rows):
        forest = _grow(rows[train], positives[train], totals[train], settings=settings, seed=seed)
        unseen[held_out] = forest.predict(rows[held_out])
    everything = _grow(rows, positives, totals, settings=settings, seed=seed).predict(covariates)
    return _logit(unseen), _logit(everything)


def _grow(
    rows: NDArray[np.float64],
    positives: NDArray[np.float64],
    totals: NDArray[np.float64],
    *,
    settings: ForestSettings,
    seed: int,
) -> ProbabilityForest:
    """Grow a forest on two rows for each village, weighed by the people without and with the disease."""
    return ProbabilityForest.grow(
        np.tile(rows, (2, 1)),
        np.repeat([0.0, 1.0], len(rows)),
        np.concatenate([totals - positives, positives]),
        num_trees=settings.num_trees,
        least_leaf=settings.least_leaf,
        seed=seed,
    )


def _logit(probability: NDArray[np.float64]) -> Tensor:
    return torch.from_numpy(probability).clamp(_LEAST_PROBABILITY, 1.0 - _LEAST_PROBABILITY).logit()
