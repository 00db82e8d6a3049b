"""The rivals of `benchmarks/streams.py`.

- The window is an exact GP on the latest 500 rows. Its hyperparameters are learned when the number of rows has
  doubled; it is computed anew for every block of 64, and for every tenth row where rows come singly.
- river's regressors have no density; theirs is a Gaussian with the mean square of their latest 500 residuals.
"""

import math
import warnings
from abc import abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Any, final

import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from gpytorch.kernels import MaternKernel, ScaleKernel
from gpytorch.mlls import ExactMarginalLogLikelihood
from gpytorch.priors import LogNormalPrior
from river import forest, linear_model, preprocessing, tree
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import ConstantKernel, Matern
from stream_methods import AbstractMethod, Batch, Ours, Scores
from torch import Tensor

WINDOW = 500
# A window's GP is computed anew after so many rows: every block of 64, but only each tenth row where rows come singly.
WINDOW_EVERY = 10
FIRST_FIT = 100
NUM_RESIDUALS = 500
# Trees are at times certain, and wrong.
LEAST_PROBABILITY = 1e-3


class AbstractWindow(AbstractMethod):
    """A model of the latest rows only, with hyperparameters learned when the number of rows has doubled."""

    def __init__(self) -> None:
        self.X, self.y = torch.empty(0), torch.empty(0)
        self.num_seen, self.next_fit, self.num_stale = 0, FIRST_FIT, 0

    def learn(self, X: Tensor, y: Tensor) -> None:
        self.X = torch.cat([self.X, X])[-WINDOW:] if self.num_seen else X
        self.y = torch.cat([self.y, y])[-WINDOW:] if self.num_seen else y
        self.num_seen += len(y)
        self.num_stale += len(y)
        if self.num_seen >= self.next_fit:
            self.fit()
            self.next_fit *= 2
            self.num_stale = WINDOW_EVERY

    def score(self, X: Tensor, y: Tensor) -> Scores:
        if self.num_stale >= WINDOW_EVERY:
            self.compute()
            self.num_stale = 0
        return self.predict(X, y)

    def state(self) -> object:
        return self.X.clone(), self.y.clone()

    @abstractmethod
    def fit(self) -> None:
        """Learn hyperparameters from the window."""

    @abstractmethod
    def compute(self) -> None:
        """Condition on the window."""

    @abstractmethod
    def predict(self, X: Tensor, y: Tensor) -> Scores:
        """Predict with what was computed last."""


@final
class ExactWindow(AbstractWindow):
    """An exact GP, with the kernel and priors that `fit` has, trained by BoTorch."""

    def fit(self) -> None:
        self.shift, self.scale = self.X.mean(0), self.X.std(0)
        self.scale = torch.where(self.scale > 0, self.scale, 1.0)
        self.target_shift, self.target_scale = self.y.mean(), self.y.std()
        d = self.X.shape[-1]
        prior = LogNormalPrior(math.sqrt(2.0) + 0.5 * math.log(d), math.sqrt(3.0))
        base = MaternKernel(2.5, ard_num_dims=d, lengthscale_prior=prior)
        kernel = ScaleKernel(base, outputscale_prior=LogNormalPrior(1.0, 1.0))
        base.lengthscale, kernel.outputscale = math.sqrt(d), 1.0
        X, y = self._scaled()
        model = SingleTaskGP(X, y.unsqueeze(-1), covar_module=kernel, outcome_transform=None)
        model.likelihood.noise = (
            0.1  # from the prior's mode, the default, fits of noisy data get stuck in interpolation
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        self.kernel, self.noise = model.covar_module.requires_grad_(False), model.likelihood.noise.detach()
        self.constant = model.mean_module.constant.detach()

    def compute(self) -> None:
        X, y = self._scaled()
        self.inputs = X
        K = self.kernel(X).to_dense()
        self.factor = torch.linalg.cholesky(K + (self.noise + 1e-8) * torch.eye(len(y), dtype=K.dtype))
        self.weights = torch.cholesky_solve((y - self.constant).unsqueeze(-1), self.factor)

    def predict(self, X: Tensor, y: Tensor) -> Scores:
        X = (X - self.shift) / self.scale
        k = self.kernel(self.inputs, X).to_dense()
        mean = self.constant + (k.mT @ self.weights).squeeze(-1)
        half = torch.linalg.solve_triangular(self.factor, k, upper=False)
        variance = self.kernel(X, diag=True) - half.square().sum(0) + self.noise
        mean, sd = self.target_shift + self.target_scale * mean, self.target_scale * variance.sqrt()
        return Scores(mean, torch.distributions.Normal(mean, sd).log_prob(y))

    def _scaled(self) -> tuple[Tensor, Tensor]:
        return (self.X - self.shift) / self.scale, (self.y - self.target_shift) / self.target_scale


@final
class LaplaceWindow(AbstractWindow):
    """scikit-learn's GP for classes, whose posterior is Laplace's."""

    def fit(self) -> None:
        self.shift, self.scale = self.X.mean(0), self.X.std(0)
        kernel = ConstantKernel(4.0) * Matern([1.0] * self.X.shape[-1], nu=2.5)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = GaussianProcessClassifier(kernel).fit((self.X - self.shift) / self.scale, self.y)
        self.kernel = model.kernel_

    def compute(self) -> None:
        model = GaussianProcessClassifier(self.kernel, optimizer=None)
        self.model = model.fit((self.X - self.shift) / self.scale, self.y)

    def predict(self, X: Tensor, y: Tensor) -> Scores:
        probability = torch.from_numpy(self.model.predict_proba((X - self.shift) / self.scale)[:, 1])
        return _class_scores(probability, y)


@final
class RiverRegressor(AbstractMethod):
    """A regressor of river; its density is Gaussian, with the mean square of its latest residuals."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.squares: deque[float] = deque([1.0], maxlen=NUM_RESIDUALS)

    def learn(self, X: Tensor, y: Tensor) -> None:
        for row, target in zip(_as_dicts(X), y.tolist(), strict=True):
            self.model.learn_one(row, target)

    def score(self, X: Tensor, y: Tensor) -> Scores:
        mean = torch.tensor([self.model.predict_one(row) for row in _as_dicts(X)], dtype=y.dtype)
        sd = math.sqrt(sum(self.squares) / len(self.squares))
        self.squares.extend((y - mean).square().tolist())
        return Scores(mean, torch.distributions.Normal(mean, sd).log_prob(y))

    def state(self) -> object:
        return self.model


@final
class RiverClassifier(AbstractMethod):
    """A classifier of river."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def learn(self, X: Tensor, y: Tensor) -> None:
        for row, target in zip(_as_dicts(X), y.tolist(), strict=True):
            self.model.learn_one(row, bool(target))

    def score(self, X: Tensor, y: Tensor) -> Scores:
        probabilities = [self.model.predict_proba_one(row).get(True, 0.0) for row in _as_dicts(X)]
        return _class_scores(torch.tensor(probabilities, dtype=y.dtype), y)

    def state(self) -> object:
        return self.model


def _as_dicts(X: Tensor) -> list[dict[int, float]]:
    return [dict(enumerate(row)) for row in X.tolist()]


def _class_scores(probability: Tensor, y: Tensor) -> Scores:
    clipped = probability.clamp(LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
    return Scores(probability, torch.where(y > 0.5, clipped, 1 - clipped).log())


def _window(likelihood: str, seed: int) -> AbstractMethod:
    return ExactWindow() if likelihood == "gaussian" else LaplaceWindow()


def _river(regressor: Callable[[int], Any], classifier: Callable[[int], Any]) -> Callable[[str, int], AbstractMethod]:
    """A pair of river's models behind a scaler, without which its trees are far worse."""

    def make(likelihood: str, seed: int) -> AbstractMethod:
        if likelihood == "gaussian":
            return RiverRegressor(preprocessing.StandardScaler() | regressor(seed))
        return RiverClassifier(preprocessing.StandardScaler() | classifier(seed))

    return make


BATCH = "batch"
METHODS: dict[str, Callable[[str, int], AbstractMethod]] = {
    BATCH: Batch,
    "streamgp": Ours,
    "GP on a window": _window,
    "river, linear": _river(lambda _: linear_model.LinearRegression(), lambda _: linear_model.LogisticRegression()),
    "river, tree": _river(
        lambda seed: tree.HoeffdingAdaptiveTreeRegressor(seed=seed), lambda _: tree.HoeffdingTreeClassifier()
    ),
    "river, forest": _river(lambda seed: forest.ARFRegressor(seed=seed), lambda seed: forest.ARFClassifier(seed=seed)),
}
