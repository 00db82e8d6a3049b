"""The interface of likelihoods: a log density, a support and a response, and all that follows from them."""

import math
from abc import ABC, abstractmethod
from typing import ClassVar, TypeVar, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from streamgp.errors import UnsupportedError, ValueRangeError
from streamgp.likelihoods.expectations import Expectations
from streamgp.likelihoods.forms import in_given_form
from streamgp.likelihoods.learnable import Learnable
from streamgp.likelihoods.marginal import log_concave_marginal, log_marginal
from streamgp.likelihoods.outcomes import outcome_quantiles, outcome_variance
from streamgp.likelihoods.parameters import Probabilities, check_broadcasts, check_support, to_float, to_probabilities
from streamgp.likelihoods.quadrature import expectation, nodes_first

__all__ = ["AbstractLikelihood"]

# Not typing.Self, which beartype refuses on the methods of a class that it does not decorate.
Likelihood = TypeVar("Likelihood", bound="AbstractLikelihood")

# Latent values between which a response is inverted, and halvings of that range: enough for the digits of a double.
_LATENT_RANGE, _NUM_HALVINGS = 1e3, 70
# What users ask of the moments that `predict` returned, and so in their form.
_ASKED_OF_PREDICTIONS = (
    "conditional_mean",
    "conditional_variance",
    "inverse_response",
    "log_predictive_density",
    "predictive_cumulative",
    "predictive_mean",
    "predictive_probabilities",
    "predictive_quantiles",
    "predictive_variance",
    "response",
    "response_variance",
    "sample",
)


class AbstractLikelihood(Expectations, Learnable, ABC):
    r"""The distribution $p(y \mid f)$ of an observation $y$ given a latent value $f$.

    A likelihood is a frozen value. Its methods work on each element and broadcast: `f`, `mean`,
    `variance`, `y` and the constants of the likelihood (noise, total counts, exposure) may have any axes
    that broadcast. Results have the dtype and device of `f` or `mean`; where these are arrays of NumPy, answers about
    predictions (response, moments, quantiles, densities, samples) are arrays, too.

    A new likelihood needs `log_density`, `response`, the class attributes `outcome_kind` and `support`, and its fields.
    All else has a numerical default, by quadrature and automatic differentiation, that a closed form may replace.

    Targets are trusted everywhere but in `check_targets`; call that once, where data enters.

    Attributes:
        name: The name by which `from_name` makes it; empty for one that has none.
        outcome_kind: `"real"`, `"count"` or `"class"`.
        support: Ends of what can be observed: of an open interval of real numbers, or the first and last whole number.
        response_range: Ends of the open interval of responses.
        num_latents: How many latent functions one observation looks at: for more than one, those of a batch of GPs.
        num_inputs: How many inputs one observation looks at. With 2, the likelihood is one of the
            difference $g = f(x_1) - f(x_2)$, and every `f` and `mean` here is that difference.
        is_log_concave: Whether $\log p(y \mid f)$ is concave in $f$ for every $y$, so that second
            derivatives are never positive.
        is_location_scale: Whether targets are latent values with noise, so that both may be shifted and scaled.
        is_robust: Whether outliers are expected.
        has_response: Whether the mean of an observation depends on the latent value.
        row_data: Name of the field that may hold data of each observation: a number of trials, an exposure, a known
            noise variance. None if there is none.
        link: Name of the function from the response to the latent value, such as `"log"`.
    """

    name: ClassVar[str] = ""
    outcome_kind: ClassVar[str]
    support: ClassVar[tuple[float, float]]
    response_range: ClassVar[tuple[float, float]] = (-math.inf, math.inf)
    num_latents: ClassVar[int] = 1
    num_inputs: ClassVar[int] = 1
    is_log_concave: ClassVar[bool] = False
    is_location_scale: ClassVar[bool] = False
    is_robust: ClassVar[bool] = False
    has_response: ClassVar[bool] = True
    link: str = "identity"

    def __init_subclass__(cls, **options: object) -> None:
        """Let what the class defines be asked in the form of the predictions."""
        super().__init_subclass__(**options)
        for name in _ASKED_OF_PREDICTIONS:
            if name in vars(cls):
                setattr(cls, name, in_given_form(vars(cls)[name]))

    # What a likelihood is.

    @abstractmethod
    def response(self, f: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        r"""Evaluate the response $g(f)$: the mean of $y$, for one trial or a unit of exposure. It rises with $f$."""

    @in_given_form
    def conditional_mean(self, f: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        r"""Evaluate the mean of $y$ given $f$: the response, times trials or exposure where there are any."""
        return self.response(f)

    @classmethod
    def starting(cls: type[Likelihood]) -> Likelihood:
        """Make one with parameters to start learning from, for targets of unit variance if they can be scaled."""
        return cls()

    def starting_latents(self, y: Float[Tensor, " n"]) -> tuple[Float[Tensor, " c"], Float[Tensor, " c"]]:
        """Means and variances of the priors of latent functions, one for each, to start learning from.

        Args:
            y: Targets.
        """
        return y.new_zeros(self.num_latents), y.new_ones(self.num_latents)

    @property
    def gaussian_noise_variance(self) -> Float[Tensor, "..."] | None:
        r"""The noise variance, where $y = f + \varepsilon$ with Gaussian noise and conditioning is exact; else None."""
        return None

    @property
    def is_gaussian(self) -> bool:
        """True if observations are latent values with Gaussian noise."""
        return self.gaussian_noise_variance is not None

    # Observations.

    def check_targets(self, y: object) -> Tensor:
        """Return `y` as floating-point numbers if all of it can be observed.

        Raises:
            SupportError: If a target is NaN, infinite or outside the support; names the first one.
        """
        y = to_float(y, "y")
        for name, constant in self.constants().items():
            check_broadcasts(y, constant, name)
        what, is_inside = _describe_support(y, self.outcome_kind, self.support)
        return check_support(
            y,
            is_inside,
            expected=f"{type(self).__name__} targets must be {what}",
            advice="Drop those observations, or correct them.",
        )

    def per_unit(self: Likelihood) -> Likelihood:
        """Return the likelihood of one trial, or of a unit of exposure, whose mean is the response."""
        return self

    @property
    def uncensored(self) -> "AbstractLikelihood":
        """The likelihood of an observation without limits of detection: the same where there are none."""
        return self

    def rescaled(self: Likelihood, scale: Tensor | float) -> Likelihood:
        """Return the likelihood of targets and latent values that are both divided by `scale`."""
        raise UnsupportedError(
            f"Targets of a {type(self).__name__} likelihood are not latent values with noise, so they cannot be "
            "scaled. Leave them in their own units."
        )

    # Responses.

    @in_given_form
    def inverse_response(self, response: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Find the latent value of a response, by bisection."""
        response = self.check_response(response)
        low, high = (torch.full_like(response.double(), side * _LATENT_RANGE) for side in (-1.0, 1.0))
        for _ in range(_NUM_HALVINGS):
            middle = 0.5 * (low + high)
            is_short = self.response(middle) < response
            low, high = torch.where(is_short, middle, low), torch.where(is_short, high, middle)
        return (0.5 * (low + high)).to(response)

    @final
    def check_response(self, response: object, name: str = "response") -> Tensor:
        """Return responses as floating-point numbers if all can be means of an observation."""
        if not self.has_response:
            raise UnsupportedError(
                f"A {type(self).__name__} likelihood has no response: the mean of an observation is the same for all "
                "latent values. Use a likelihood of the quantity of interest itself."
            )
        value = to_float(response, name)
        low, high = self.response_range
        is_inside = torch.isfinite(value) & (value > low) & (value < high)
        if not bool(is_inside.all()):
            noun = "a prevalence" if self.outcome_kind != "real" else "a mean"
            what = "finite" if low == -math.inf else f"{noun} between {low:g} and {high:g}"
            what = "a positive, finite rate" if (low, high) == (0.0, math.inf) else what
            raise ValueRangeError(
                f"{name} of a {type(self).__name__} likelihood must be {what}, but is {value[~is_inside][0].item():g}."
                + ("" if low == -math.inf else " Counts are divided by their total count or exposures.")
            )
        return value

    @in_given_form
    def response_variance(self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        r"""Evaluate the variance of the response $g(f)$, without the noise of an observation."""
        center = expectation(self.response, mean, variance, num_nodes=self.num_nodes)
        return expectation(lambda f: (self.response(f) - center).square(), mean, variance, num_nodes=self.num_nodes)

    # Predictions of observations.

    def expected_curvature(self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        r"""Evaluate the precision with which an observation to come is expected to tell of its latent value.

        $$
        W = -\mathbb{E}_{\hat y} \, \mathbb{E}_{f \sim \mathcal N(m, v)} [\partial_f^2 \log p(\hat y \mid f)],
        $$

        where $\hat y$ takes the values $M \pm \sqrt V$ with equal probability, $M$ and $V$ being the predicted mean and
        variance of $y$, or closer ones where these are outside the support. Counts and logit classes have a curvature
        that does not depend on $\hat y$.
        """
        m, v = torch.broadcast_tensors(mean, variance)
        first, second = (self.expected_derivatives(m, v, y.detach())[1] for y in self._typical_outcomes(m, v))
        return -0.5 * (first + second)

    def _typical_outcomes(self, mean: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
        """Outcomes a deviation below and above the mean, or closer ones in the support."""
        M = self.predictive_mean(mean, variance)
        spread = self.predictive_variance(mean, variance).clamp_min(0.0).sqrt()
        if self.outcome_kind == "real":
            low, high = self.support
            spread = torch.minimum(spread, 0.9 * torch.minimum(M - low, high - M))
        return M - spread, M + spread

    def expected_information(self, variance: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        r"""Evaluate the precision of an observation before anything is known: $f \sim \mathcal N(0, v)$."""
        return self.expected_curvature(torch.zeros_like(variance), variance)

    @in_given_form
    def log_predictive_density(
        self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> Float[Tensor, "..."]:
        r"""Evaluate $\log \int p(y \mid f) \, \mathcal{N}(f \mid m, v) \, df$."""
        if self.is_log_concave:
            return log_concave_marginal(
                lambda f: self.log_density(f, y), lambda f: self.derivatives(f, y), mean, variance
            )
        num_axes = self._num_axes(mean, variance, y)
        return log_marginal(lambda f: self.log_density(f, y), mean, variance, num_axes=num_axes)

    def log_predictive_derivatives(
        self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> tuple[Float[Tensor, "..."], Float[Tensor, "..."]] | None:
        r"""Evaluate both derivatives of the log predictive density in $m$; None if they have no closed form.

        With the derivatives $g$ and $h$, the exact posterior $p(f \mid y)$ has the mean $m + v g$ and the variance
        $v + v^2 h$: expectation propagation follows from them.
        """
        return None

    @in_given_form
    def predictive_mean(self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        r"""Evaluate the mean of $y$ when $f \sim \mathcal{N}(m, v)$."""
        num_axes = self._num_axes(mean, variance)
        return expectation(self.response, mean, variance, num_nodes=self.num_nodes, num_axes=num_axes)

    @in_given_form
    def predictive_variance(self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        r"""Evaluate the variance of $y$ when $f \sim \mathcal{N}(m, v)$."""
        center = self.predictive_mean(mean, variance)

        def square(f: Tensor) -> Tensor:
            return self.conditional_variance(f) + (self.response(f) - center).square()

        return expectation(square, mean, variance, num_nodes=self.num_nodes, num_axes=self._num_axes(mean, variance))

    @in_given_form
    def conditional_variance(self, f: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Evaluate the variance of $y$ given $f$, by summation over outcomes; without gradient."""
        with torch.no_grad():
            like = self._expanded(f)
            return outcome_variance(
                lambda y: self.log_density(like.double(), y), kind=self.outcome_kind, support=self.support, like=like
            )

    @in_given_form
    def predictive_quantiles(
        self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."], probabilities: Probabilities
    ) -> Float[Tensor, "..."]:
        r"""Find quantiles of $y$ when $f \sim \mathcal{N}(m, v)$, along a new last axis.

        For counts and classes a quantile is the smallest value whose cumulative probability
        reaches the given one. Quantiles found by search carry no gradient.
        """
        with torch.no_grad():
            like = self.predictive_mean(mean, variance)
            wanted = nodes_first(to_probabilities(probabilities, mean), like.dim())
            m, v = mean.double().expand(like.shape), variance.double().expand(like.shape)
            quantiles = outcome_quantiles(
                lambda y: self.log_predictive_density(m, v, y),
                wanted,
                kind=self.outcome_kind,
                support=self.support,
                like=like,
            )
        return quantiles.movedim(0, -1)

    @property
    def knows_cumulative(self) -> bool:
        """True if there is a `predictive_cumulative`."""
        return type(self).predictive_cumulative is not AbstractLikelihood.predictive_cumulative

    @in_given_form
    def predictive_cumulative(
        self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> Float[Tensor, "..."] | None:
        r"""Evaluate $P(Y \le y)$ when $f \sim \mathcal{N}(m, v)$; None for likelihoods that do not know it."""
        return None

    def first_cumulatives(
        self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."]
    ) -> Float[Tensor, "k ..."] | None:
        r"""Evaluate $P(Y \le k)$ of the first counts at once, on a new first axis; None if that takes too much."""
        return None

    @in_given_form
    def sample(self, f: Float[Tensor, "..."], *, generator: torch.Generator | None = None) -> Float[Tensor, "..."]:
        """Draw one $y$ for each latent value; the same generator state gives the same draw."""
        with torch.no_grad():
            like = self._expanded(f)
            uniform = torch.rand(1, *like.shape, dtype=torch.float64, device=f.device, generator=generator)
            latent = like.double()
            drawn = outcome_quantiles(
                lambda y: self.log_density(latent, y), uniform, kind=self.outcome_kind, support=self.support, like=like
            )
        return drawn.squeeze(0)


def _describe_support(y: Tensor, kind: str, support: tuple[float, float]) -> tuple[str, Bool[Tensor, "..."]]:
    """Describe targets, and find those that are so."""
    low, high = support
    if kind != "real":
        what = f"whole numbers of at least {low:g}" if high == math.inf else f"whole numbers from {low:g} to {high:g}"
        return what, torch.isfinite(y) & (y == y.round()) & (y >= low) & (y <= high)
    if low == -math.inf:
        return "finite numbers", torch.isfinite(y)
    what = f"numbers above {low:g}" if high == math.inf else f"numbers above {low:g} and below {high:g}"
    return what, torch.isfinite(y) & (y > low) & (y < high)
