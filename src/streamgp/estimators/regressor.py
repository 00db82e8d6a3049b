"""Batch regression, for scikit-learn."""

from collections.abc import Sequence
from typing import Any, final

import numpy as np
import torch
from sklearn.base import RegressorMixin
from sklearn.utils import Tags, check_random_state

from streamgp.errors import OptionError, UnsupportedError
from streamgp.estimators.base import AbstractGPEstimator, read_weights, rebuilt, reweighted, stored_fields
from streamgp.estimators.warps import stand_in
from streamgp.likelihoods.registry import read_likelihood
from streamgp.storage import register
from streamgp.tables.values import split_bounds

__all__ = ["GPRegressor"]


@final
class GPRegressor(RegressorMixin, AbstractGPEstimator):
    r"""Gaussian-process regression on a table: exact up to 1000 rows, sparse beyond, with any likelihood.

    Follows `sklearn.gaussian_process.GaussianProcessRegressor`, with a time that grows as the number of rows, noise
    that is learned, inputs and real targets that are standardized, and a kernel that is chosen by evidence where none
    is given. What was learned can be conditioned on new rows, or absorb them, in closed form.

    ```python
    import numpy as np

    X = np.random.default_rng(0).random((80, 2))
    model = sg.GPRegressor().fit(X, np.sin(6 * X[:, 0]))
    mean, deviation = model.predict(X[:3], return_std=True)
    later = model.condition(X[:2] + 0.5, [0.1, -0.2])
    ```

    Args:
        likelihood: `"gaussian"`, `"student_t"`, `"poisson"`, `"negative_binomial"`, another name, or an object of
            `streamgp.likelihoods`. Targets are standardized where it is Gaussian.
        kernel: GPyTorch kernel for standardized inputs, or `"matern"`, `"rbf"`, `"interactions"`,
            `"spherical_linear"`; the likeliest of Matérn-3/2, Matérn-5/2, squared exponential, and Matérn-5/2 with a
            linear part by default.
        num_inducing: Number of inducing points; `"auto"` as for `streamgp.fit`.
        num_starts: Starts of the fit from hyperparameters changed at random, beside three scales of lengthscales.
        time_budget: For `"auto"`: seconds that the fit may take.
        warp: `"auto"` bends columns of inputs and real targets toward normal values where that makes some rows
            likelier, unless a kernel object is given; `"inputs"` or `"targets"` asks it of one of them, None of none.
        random_state: Seed, generator or None.

    Attributes:
        result_: What `streamgp.fit` returned, or what became of it by `condition` and `absorb`.
        info_: Diagnostics of the fit.
        kernel_: The kernel that was learned, for standardized inputs.
        likelihood_: The likelihood that was learned.
        log_marginal_likelihood_value_: The bound on the log marginal likelihood of the standardized targets.
        n_features_in_: Number of input columns.
        feature_names_in_: Names of the columns, if the inputs had any.
    """

    def __init__(
        self,
        likelihood: Any = "gaussian",
        *,
        kernel: Any = None,
        num_inducing: Any = "auto",
        num_starts: Any = 1,
        time_budget: Any = 10.0,
        warp: Any = "auto",
        random_state: Any = 0,
    ) -> None:
        super().__init__(
            kernel=kernel,
            num_inducing=num_inducing,
            num_starts=num_starts,
            time_budget=time_budget,
            warp=warp,
            random_state=random_state,
        )
        self.likelihood = likelihood

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = read_likelihood(self.likelihood).support[0] >= 0.0
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "GPRegressor":
        """Learn from a table.

        Args:
            X: Inputs `(n, d)`: numbers with or without NaN, or a data frame in which columns may hold words and dates.
            y: Targets `(n,)`, some of which may be texts such as `"<0.5"`, of which no more than a bound is known.
            sample_weight: How often each row counts. Weights that are not whole numbers divide the noise variance of
                their rows, which only a Gaussian likelihood has; kernel and noise are then those of rows that count
                once.
        """
        split = split_bounds(y)
        X, numbers, columns = self._read(X, y if split is None else split[0], y_numeric=True)
        y = numbers if split is None else np.asarray(y, dtype=object)
        counts, weights = read_weights(sample_weight, X)
        if split is not None and weights is not None:
            raise UnsupportedError("Weights that are not whole numbers belong to values, but y has bounds. Round them.")
        if counts is not None:
            X, y, numbers = np.repeat(X, counts, axis=0), np.repeat(y, counts), np.repeat(numbers, counts)
        named = read_likelihood(self.likelihood)
        is_gaussian = named.is_gaussian and named is not self.likelihood
        likelihood = None if is_gaussian else named
        units: bool | str = True if is_gaussian else "inputs"
        guide = numbers if is_gaussian else stand_in(numbers, named)
        is_open = is_gaussian and split is None
        result, reading = self._fit(X, y, columns, guide, is_open, likelihood=likelihood, standardize=units)
        if weights is not None:
            result = reweighted(result, reading.inputs(X), reading.targets(y), weights)
        self._remember(result, reading)
        return self

    def predict(
        self,
        X: Any,
        return_std: bool = False,
        return_cov: bool = False,
        quantiles: Sequence[float] | None = None,
    ) -> Any:
        """Predict targets.

        Args:
            X: Inputs `(n, d)`.
            return_std: Return standard deviations of the targets, noise included, too.
            return_cov: Return their covariance matrix, noise on its diagonal, too.
            quantiles: Probabilities of quantiles of the targets, which are returned, too.

        Returns:
            Means `(n,)`; if more was asked for, a tuple of means and standard deviations `(n,)` or covariances
            `(n, n)`, and quantiles `(n, k)`.
        """
        if return_std and return_cov:
            raise OptionError(
                "Either return_std or return_cov may be asked for, as one is on the diagonal of the other."
            )
        inputs = self._inputs(X)
        latent = self.result_.predict(inputs, covariance=return_cov)
        mean, variance = torch.from_numpy(latent.mean), torch.from_numpy(latent.variance)
        seen = self._likelihood_of_users
        bend, expected = self._reading.targets, seen.predictive_mean(mean, variance).numpy()
        needs_spread = return_std or not bend.is_identity
        spread = seen.predictive_variance(mean, variance).numpy() if needs_spread else np.zeros(0)
        normal = expected
        if not bend.is_identity:
            expected, spread = bend.moments(normal, spread)
        asked = [expected]
        if return_std:
            asked.append(np.sqrt(spread))
        if return_cov:
            covariance = latent.covariance + float(self._noise_of_users) * np.eye(len(mean))
            asked.append(bend.covariance(normal, covariance))
        if quantiles is not None:
            levels = torch.tensor(list(quantiles), dtype=mean.dtype)
            asked.append(bend.back(seen.predictive_quantiles(mean, variance, levels).numpy()))
        return asked[0] if len(asked) == 1 else tuple(asked)

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> np.ndarray:
        """Draw joint samples of targets, noise included.

        Args:
            X: Inputs `(n, d)`.
            n_samples: Number of samples.
            random_state: Seed, generator or None.

        Returns:
            Samples `(n, n_samples)`.
        """
        inputs = self._inputs(X)
        generator = torch.Generator().manual_seed(int(check_random_state(random_state).randint(2**31 - 1)))
        latent = torch.from_numpy(self.result_.sample(inputs, n_samples, generator=generator))
        drawn: np.ndarray = self._likelihood_of_users.sample(latent, generator=generator).numpy()
        return np.ascontiguousarray(self._reading.targets.back(drawn.T))

    def log_predictive_density(self, X: Any, y: Any) -> np.ndarray:
        """Log densities of targets, one for each.

        Args:
            X: Inputs `(n, d)`.
            y: Targets `(n,)`.
        """
        inputs = self._inputs(X)
        targets, bend = np.asarray(y, dtype=np.float64), self._reading.targets
        density: np.ndarray = self.result_.log_predictive_density(inputs, bend(targets)) + bend.log_slope(targets)
        return density

    def condition(self, X: Any, y: Any) -> "GPRegressor":
        """Return the estimator conditioned on further rows: exactly if they are Gaussian, with all it knew kept.

        Args:
            X: Inputs `(n, d)`.
            y: Targets `(n,)`.
        """
        inputs = self._inputs(X)
        other: GPRegressor = self._with_result(self.result_.condition(inputs, self._targets(y)))
        return other

    def absorb(self, X: Any, y: Any, num_inducing: int | None = None) -> "GPRegressor":
        """Return the estimator with further rows absorbed, at constant size.

        Args:
            X: Inputs `(n, d)`.
            y: Targets `(n,)`.
            num_inducing: Number of inducing points; as many as before by default.
        """
        other: GPRegressor = self._absorbed(self._inputs(X), self._targets(y), num_inducing)
        return other

    def _targets(self, y: Any) -> np.ndarray:
        """Targets as the GP sees them."""
        return self._reading.targets(np.asarray(y, dtype=np.float64))

    @property
    def _likelihood_of_users(self) -> Any:
        """The likelihood in the user's units, or in those of bent targets."""
        likelihood, scaling = self.result_.likelihood, self.result_.scaling
        if scaling is None or not likelihood.is_gaussian:
            return likelihood
        return likelihood.rescaled(1.0 / float(scaling.target_scale))

    @property
    def _noise_of_users(self) -> torch.Tensor:
        noise = self._likelihood_of_users.gaussian_noise_variance
        if noise is None:
            raise UnsupportedError(
                f"The targets of a {type(self.result_.likelihood).__name__} likelihood have no covariance in closed "
                "form. Leave out return_cov; return_std and sample_y are there for any likelihood."
            )
        variance: torch.Tensor = noise.detach()
        return variance


def _rebuild(parameters: dict[str, Any], learned: dict[str, Any]) -> GPRegressor:
    regressor: GPRegressor = rebuilt(GPRegressor(**parameters), learned)
    return regressor


register(GPRegressor, name="batch.GPRegressor", to_fields=stored_fields, from_fields=_rebuild)
