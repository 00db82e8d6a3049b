"""Features of observed values: what inducing points explain of them, as a function of all that is learned."""

from dataclasses import dataclass, replace
from typing import NamedTuple, final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from streamgp.evidence import Evidence
from streamgp.gp import AbstractInducing, inducing_variables, read_kernel
from streamgp.gp.functionals import row_mean, row_variance
from streamgp.linalg import cholesky, solve_lower
from streamgp.training.parameters import Hyperparameters
from streamgp.training.prior_site import InformedPrior, PriorSite

__all__ = [
    "Features",
    "Moments",
    "Observed",
    "inducing_covariance",
    "observed_features",
    "prior_moments",
    "relative_jitter",
]

# The same share of the mean variance as in SparseGP.from_prior, so that training sees the model that comes out.
_RELATIVE_JITTER = {torch.float64: 1e-8, torch.float32: 1e-5}
# Where points for slopes start, in standard deviations of the inputs; they are learned after.
_BESIDE = 0.5
# Rows whose weights add up to less tell of differences and not of the level.
_LEAST_WEIGHT = 1e-6


def relative_jitter(dtype: torch.dtype) -> float:
    """Jitter of the inducing points' kernel matrix, relative to its diagonal, of a model in some dtype."""
    return _RELATIVE_JITTER[dtype]


@final
@dataclass(frozen=True, eq=False)
class Observed:
    """Data in double precision, as training sees it.

    Attributes:
        inputs: $X$, or rows of evidence; comparisons are rows of differences.
        targets: $y$.
        jitter: Relative to the diagonal of the inducing points' kernel matrix.
        carried: A belief about earlier observations; its own jitter then counts.
        whole_variance: Of the targets of all observations, if these are some of them.
    """

    inputs: Float[Tensor, "n d"] | Evidence
    targets: Float[Tensor, " n"]
    jitter: float = _RELATIVE_JITTER[torch.float64]
    carried: PriorSite | None = None
    whole_variance: float | None = None

    @property
    def num_data(self) -> int:
        """Number of observations."""
        return self.targets.shape[-1]

    @property
    def value_inputs(self) -> Float[Tensor, "n d"]:
        """Inputs of values, where there is no other evidence."""
        assert isinstance(self.inputs, Tensor), "rows of evidence have inputs of their own"
        return self.inputs

    @property
    def all_inputs(self) -> Float[Tensor, "k d"]:
        """Every input, all those of a row of evidence."""
        return self.inputs.points if isinstance(self.inputs, Evidence) else self.inputs

    @property
    def candidates(self) -> Float[Tensor, "k d"]:
        """Inputs among which inducing points are chosen: every input, and the points of a carried belief."""
        carried = [] if self.carried is None else [self.carried.inducing_points]
        return torch.cat([self.all_inputs, *self._beside_slopes, *carried])

    @property
    def _beside_slopes(self) -> list[Float[Tensor, "k d"]]:
        """Points on both sides of slopes, along them: the value at the input alone tells nothing of its slope."""
        if not isinstance(self.inputs, Evidence) or self.inputs.directions is None:
            return []
        x, v = self.inputs.points, self.inputs.directions
        is_slope = (v != 0).any(-1)
        x, v = x[is_slope], v[is_slope]
        unit = self.all_inputs.std(0, correction=0)
        length = (v / torch.where(unit > 0, unit, 1.0)).norm(dim=-1, keepdim=True)
        return [x + _BESIDE * v / length, x - _BESIDE * v / length]

    @property
    def levels(self) -> Float[Tensor, " n"]:
        """Targets as values of the function, to begin with: totals for each unit of weight, slopes over the inputs."""
        if not isinstance(self.inputs, Evidence):
            return self.targets
        weight, v = self.inputs.of_constant, self.inputs.directions
        is_value = weight.abs() > _LEAST_WEIGHT
        if bool(is_value.any()):
            return self.targets[is_value] / weight[is_value]
        if v is None:
            return self.targets
        unit = self.all_inputs.std(0, correction=0)
        rise = self.targets * self.inputs.sums((v * unit).norm(dim=-1)) / self.inputs.sums(v.square().sum(-1)).sqrt()
        return rise - rise.mean()

    def part(self, index: Int[Tensor, " k"]) -> "Observed":
        """Some of the observations."""
        if isinstance(self.inputs, Evidence):
            index = index.sort().values
            return replace(self, inputs=self.inputs.select(index), targets=self.targets[index])
        X = self.inputs[index]
        return replace(self, inputs=X, targets=self.targets[index])

    @property
    def most_inducing(self) -> int:
        """The most inducing points that are of use: one for each observation, and those of a carried belief."""
        return self.num_data + (0 if self.carried is None else len(self.carried.inducing_points))


class Moments(NamedTuple):
    r"""The prior at inducing points and observed values.

    Attributes:
        inducing: $K_{zz}$, with jitter.
        cross: $K_{zx}$.
        variance: The diagonal of $K_{xx}$.
        mean: $\mu(X)$.
    """

    inducing: Float[Tensor, "*c m m"]
    cross: Float[Tensor, "*c m n"]
    variance: Float[Tensor, "*c n"]
    mean: Float[Tensor, "*c n"]


@final
@dataclass(frozen=True, eq=False)
class Features:
    r"""Whitened features of observations: before them, $f(X) = \mu + \phi^\top w + \varepsilon$, $w$ standard normal.

    A carried belief $\mathcal N(m_0, S_0)$ about the whitened inducing values, $S_0^{-1} = L_P L_P^\top$, takes the
    place of their prior: $\mu + \phi^\top m_0$ and $L_P^{-1} \phi$ then take those of $\mu$ and $\phi$.

    Attributes:
        phi: $\phi(X) = L^{-1} k(Z, X)$, or that of rows of evidence.
        slack: $\operatorname{diag}(K_{xx} - \phi^\top \phi)$, what the inducing points cannot explain.
        mean: The prior mean of the observed values.
        carried: What a carried belief makes of the prior; the three above are those under it already.
    """

    phi: Float[Tensor, "*c m n"]
    slack: Float[Tensor, "*c n"]
    mean: Float[Tensor, "*c n"]
    carried: InformedPrior | None = None

    @property
    def variance(self) -> Float[Tensor, "*c n"]:
        r"""The prior variance of the observed values, $\operatorname{diag} K_{xx}$."""
        return self.slack + self.phi.square().sum(-2)

    @property
    def log_normalizer(self) -> Float[Tensor, ""]:
        """Term that a carried belief adds to the bound of the observations."""
        return self.phi.new_zeros(()) if self.carried is None else self.carried.log_normalizer

    def detach(self) -> "Features":
        """Features without gradient."""
        carried = None if self.carried is None else InformedPrior(*(value.detach() for value in self.carried))
        return Features(self.phi.detach(), self.slack.detach(), self.mean.detach(), carried)


def inducing_covariance(
    setting: Hyperparameters, relative: float, absolute: float | None = None
) -> Float[Tensor, "*c m m"]:
    """The covariance of the inducing variables with jitter, relative to its diagonal or absolute."""
    return _with_jitter(inducing_variables(setting.inducing_points, read_kernel(setting.kernel)), relative, absolute)


def _with_jitter(inducing: AbstractInducing, relative: float, absolute: float | None) -> Float[Tensor, "*c m m"]:
    K = inducing.covariance()
    jitter = inducing.jitter(relative) if absolute is None or not inducing.is_movable else absolute
    return K + jitter * torch.eye(K.shape[-1], dtype=K.dtype, device=K.device)


def prior_moments(setting: Hyperparameters, data: Observed) -> Moments:
    """Evaluate the prior of inducing variables and observed values; one kernel matrix between the two."""
    kernel, X = read_kernel(setting.kernel), data.inputs
    inducing = inducing_variables(setting.inducing_points, kernel)
    Kzz = _with_jitter(inducing, data.jitter, None if data.carried is None else data.carried.jitter)
    Kzx = inducing.cross(X)
    if isinstance(X, Evidence):
        variance, mean = row_variance(kernel, X, setting.kernel.batch_shape), row_mean(setting.mean, X)
    else:
        variance, mean = kernel.diagonal(X), setting.mean(X)
    variance = variance.expand(*variance.shape[:-1], data.num_data)
    return Moments(Kzz, Kzx, variance, mean)


def observed_features(setting: Hyperparameters, data: Observed) -> Features:
    """Evaluate the features, in O(n m) memory."""
    moments = prior_moments(setting, data)
    L, _ = cholesky(moments.inducing, name="the kernel matrix of the inducing points")
    phi = solve_lower(L, moments.cross)
    slack = (moments.variance - phi.square().sum(-2)).clamp_min(0.0)
    if data.carried is None:
        return Features(phi, slack, moments.mean)
    prior = data.carried.prior(setting, L)
    return Features(solve_lower(prior.factor, phi), slack, moments.mean + phi.mT @ prior.mean, prior)
